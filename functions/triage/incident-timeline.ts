import type { Diagnosis } from "../rules/diagnosis.ts";
import type { Catalogue } from "../rules/load.ts";
import { sha256 } from "./audit.ts";
import type { Store } from "./ports.ts";
import { type Timeline, timelineOf } from "./timeline.ts";

/**
 * The timeline of an incident, from what is stored about it; undefined if there is no such incident.
 * @param madeAt ISO time
 */
export async function loadTimeline(
  store: Pick<Store, "incident" | "audit" | "get">,
  catalogue: Pick<Catalogue, "fixes">,
  id: string,
  madeAt: string,
): Promise<Timeline | undefined> {
  const incident = await store.incident(id);
  if (incident === undefined) return undefined;
  const [events, capture, diagnosis] = await Promise.all([store.audit(id), blob(store, incident.capture), blob(store, incident.diagnosis)]);
  return timelineOf({
    incident,
    events,
    diagnosis: diagnosis === undefined ? undefined : (JSON.parse(new TextDecoder().decode(diagnosis)) as Diagnosis),
    capture: capture === undefined ? undefined : sha256(capture),
    catalogue,
    madeAt,
  });
}

const blob = async (store: Pick<Store, "get">, key: string | undefined): Promise<Uint8Array | undefined> => (key === undefined ? undefined : store.get(key));
