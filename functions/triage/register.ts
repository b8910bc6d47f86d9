import { loadDiagnosis } from "./collect.ts";
import type { Context } from "./context.ts";
import { withoutMuted } from "./muted.ts";
import type { Actor, Incident, IncidentState, Ports } from "./ports.ts";

/**
 * Two lists of incidents, kept beside them: those of each node (kind "by-target", by cluster/target/createdAt/incident) and those that somebody should
 * still look at (kind "open", by createdAt/incident). They are for finding; what counts is the incident itself.
 */
const BY_TARGET = "by-target";
const OPEN = "open";

/** What the lists say of an incident: enough to choose by. */
export interface Registered {
  readonly incident: string;
  readonly cluster: string;
  readonly target: string;
  readonly requester: Actor;
  readonly createdAt: string;
}

/** Open incidents of one day that are read. */
const MOST_A_DAY = 200;
const DAY_MS = 24 * 60 * 60_000;
const openKey = ({ createdAt, id }: Pick<Incident, "createdAt" | "id">): string => `${createdAt}/${id}`;
/** An incident that nobody closed is no longer listed after this: an approval may last 7 days, and once more for the way back. */
const FORGOTTEN_DAYS = 15;
/** Incidents of one node that a newer one may replace. */
const EARLIER = 20;

/** States in which its execution still goes on, or waits. */
const UNDER_WAY: readonly IncidentState[] = ["open", "collecting", "awaiting-approval", "fixing", "verifying"];
const isUnderWay = ({ state }: Incident): boolean => UNDER_WAY.includes(state);

/** An incident of a node began. Repeated it changes nothing. */
export async function registerOpened(store: Ports["store"], { id, cluster, target, requester, createdAt }: Incident): Promise<void> {
  const entry: Registered = { incident: id, cluster, target, requester, createdAt };
  // side by side: somebody waits for the first message
  await Promise.all([
    store.change<Registered>(BY_TARGET, `${cluster}/${target}/${createdAt}/${id}`, () => entry),
    store.change<Registered>(OPEN, openKey({ createdAt, id }), () => entry),
  ]);
}

/**
 * The execution of an incident ended. It stays open if it left something to look at: a cause, symptoms, doubts, a fix that nobody decided or that did not help.
 * One that looked at the node replaces the earlier ones of the node that are not under way.
 */
export async function registerEnded(ports: Pick<Ports, "store">, id: string): Promise<void> {
  const { store } = ports;
  const incident = await store.incident(id);
  if (incident === undefined) return;
  if (!(await leavesSomething(ports, incident))) await registerClosed(store, incident);
  if (incident.diagnosis === undefined) return;
  for (const { incident: earlier } of await incidentsOn(store, incident.cluster, incident.target, EARLIER)) {
    if (earlier === id) continue;
    const other = await store.incident(earlier);
    if (other !== undefined && other.createdAt <= incident.createdAt && !isUnderWay(other)) await registerClosed(store, other);
  }
}

/** Nobody has to look at an incident any more. */
export async function registerClosed(store: Ports["store"], incident: Pick<Incident, "createdAt" | "id">): Promise<void> {
  await store.change(OPEN, openKey(incident), () => undefined);
}

async function leavesSomething(ports: Pick<Ports, "store">, incident: Incident): Promise<boolean> {
  const { state, diagnosis: key, sources, muted } = incident;
  if (sources !== undefined || state === "resolved" || state === "dismissed") return false;
  if (state !== "diagnosed" || key === undefined) return true;
  const diagnosis = await loadDiagnosis(ports, key);
  if (diagnosis.verdict === "healthy") return false;
  const { causes, symptoms } = withoutMuted(diagnosis, muted);
  // what somebody muted is nothing to look at, what could not be checked is
  return causes.length + symptoms.length > 0 || diagnosis.verdict === "inconclusive";
}

/** As a step of the incident's execution: a list that could not be written is no reason to fail. */
export async function registerEnd({ durable, ports }: Context, id: string): Promise<void> {
  await durable
    .step("register-end", async () => {
      await registerEnded(ports, id);
      return null;
    })
    .catch((error: unknown) => ports.log("warn", "the list of open incidents could not be changed", { incident: id, problem: (error as Error).message }));
}

/** Incidents of a node, newest first. */
export async function incidentsOn(store: Pick<Ports["store"], "list">, cluster: string, target: string, limit: number): Promise<readonly Registered[]> {
  const found = await store.list<Registered>(BY_TARGET, { prefix: `${cluster}/${target}/`, limit, newestFirst: true });
  return found.map(({ value }) => value);
}

/** Open incidents, newest first; those that are too old are left out. Asked for day by day, so that what was closed long ago costs nothing. */
export async function openIncidents(store: Pick<Ports["store"], "list">, at: Date): Promise<readonly Registered[]> {
  const days = Array.from({ length: FORGOTTEN_DAYS }, (_, ago) => new Date(at.getTime() - ago * DAY_MS).toISOString().slice(0, "2026-01-01".length));
  const found = await Promise.all(days.map((day) => store.list<Registered>(OPEN, { prefix: day, limit: MOST_A_DAY, newestFirst: true })));
  return found.flat().map(({ value }) => value);
}
