import { sha256 } from "./audit.ts";
import { ALERT, alertKey } from "./page-alert.ts";
import type { OnCallSource, PageAlert, Ports } from "./ports.ts";

/** An alert that an incident answers. What the monitoring system said is hostile. */
export interface PagedAlert {
  readonly source: string;
  readonly key: string;
  readonly title: string;
  readonly severity: PageAlert["severity"];
  readonly ref?: string;
  readonly url?: string;
  /** Who is to be named in the thread: of the route that the alert took. */
  readonly onCall?: OnCallSource;
}

/** Alerts of one incident that are answered: those that came first. */
const MOST_ALERTS = 20;
const KIND = "paged";

/**
 * Puts on record that an incident answers an alert. Called before its triage starts, and again where a later alert joins it: if the answer is there already, that
 * alert is answered by itself. Idempotent.
 */
export async function linkAlert(
  ports: Pick<Ports, "store" | "work" | "log"> & Partial<Pick<Ports, "pagers">>,
  incident: string,
  alert: PagedAlert,
): Promise<void> {
  let joined = false;
  await ports.store.change<readonly PagedAlert[]>(KIND, incident, (stored = []) => {
    joined = false;
    if (stored.length >= MOST_ALERTS || stored.some(({ source, key }) => source === alert.source && key === alert.key)) return stored;
    const { source, key, title, severity, ref, url, onCall } = alert;
    joined = true;
    return [
      ...stored,
      {
        source,
        key,
        title: title.slice(0, 500),
        severity,
        ...(ref === undefined ? {} : { ref }),
        ...(url === undefined ? {} : { url }),
        ...(onCall === undefined ? {} : { onCall }),
      },
    ];
  });
  if (!joined || ports.pagers === undefined) return;
  const known = await ports.store.incident(incident);
  // while it is examined all of its alerts are answered at its end
  if (known === undefined || known.state === "open" || known.state === "collecting") return;
  const { source, key } = alert;
  const name = `answer-${sha256(`${incident} found ${alertKey(source, key)}`).slice(0, 16)}`;
  await ports.work
    .start(name, { kind: "answer-page", answer: { incident, stage: "found", only: { source, key } } })
    .catch((error: unknown) => ports.log("warn", "a page could not be answered", { incident, problem: (error as Error).message }));
}

/** The alerts that an incident answers; none if a person asked for it. */
export const alertsOf = async (ports: Pick<Ports, "store">, incident: string): Promise<readonly PagedAlert[]> =>
  (await ports.store.kept<readonly PagedAlert[]>(KIND, incident)) ?? [];

/** What netcheck knows of an alert's life, in the documents of kind "alert" that functions/triage/page.ts keeps. */
export interface AlertLife {
  readonly status: PageAlert["status"];
  /** Ids. */
  readonly incidents: readonly string[];
}
export async function alertLife(ports: Pick<Ports, "store">, source: string, key: string): Promise<AlertLife | undefined> {
  return ports.store.kept<AlertLife>(ALERT, alertKey(source, key));
}

/** True if every alert that the incident answers is over; false if there is none. */
export async function isOver(ports: Pick<Ports, "store">, incident: string): Promise<boolean> {
  const alerts = await alertsOf(ports, incident);
  if (alerts.length === 0) return false;
  const lives = await Promise.all(alerts.map(({ source, key }) => alertLife(ports, source, key)));
  return lives.every((life) => life?.status === "resolved");
}
