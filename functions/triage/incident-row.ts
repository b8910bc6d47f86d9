import { loadDiagnosis } from "./collect.ts";
import type { Incident, Ports } from "./ports.ts";
import { rootMessage, untilText } from "./report.ts";

/** An incident in one line of a list: the words of its first message, when it began, where it is. Plain data for templates. */
export interface IncidentRow {
  readonly incident: string;
  readonly target: string;
  readonly cluster: string;
  readonly icon: string;
  readonly state: string;
  readonly headline: string;
  readonly requester: string;
  /** Seconds since 1970, and the same for where no date is drawn. */
  readonly since: number;
  readonly sinceText: string;
  /** "" if it has no thread that can be linked. */
  readonly link: string;
}

/** Of a stored incident. What cannot be read of it is left out: a list must not fail because of one line. */
async function incidentRow(ports: Pick<Ports, "store" | "chat" | "log">, incident: Incident): Promise<IncidentRow> {
  const { id, target, cluster, requester, createdAt, thread, diagnosis: key } = incident;
  const told = (problem: unknown): undefined => {
    ports.log("warn", "a line of a list could not be read", { incident: id, problem: (problem as Error).message });
    return undefined;
  };
  const [diagnosis, link] = await Promise.all([
    key === undefined ? undefined : loadDiagnosis(ports, key).catch(told),
    thread === undefined ? undefined : ports.chat.link?.(thread).catch(told),
  ]);
  const { icon, state, headline } = rootMessage(incident, diagnosis).data as { icon: string; state: string; headline: string };
  const since = Math.floor(Date.parse(createdAt) / 1000);
  return { incident: id, target, cluster, icon, state, headline, requester: requester.id, since, sinceText: untilText(createdAt), link: link ?? "" };
}

/** Stored incidents by id, at most `limit` of those that are still there, in the same order. */
export async function rowsOf(ports: Pick<Ports, "store" | "chat" | "log">, ids: readonly string[], limit: number): Promise<readonly IncidentRow[]> {
  const incidents = await Promise.all(ids.slice(0, limit).map((id) => ports.store.incident(id)));
  return Promise.all(incidents.filter((one) => one !== undefined).map((one) => incidentRow(ports, one)));
}
