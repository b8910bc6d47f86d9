import { sha256 } from "./audit.ts";
import { auditDraft, type Context, incidentOf, SYSTEM, type TriageResult, threadOf } from "./context.ts";
import { callId, escalatedKey } from "./escalate.ts";
import { loadTimeline } from "./incident-timeline.ts";
import { noteMessage } from "./note.ts";
import { alertLife, alertsOf, isOver } from "./paged.ts";
import type { AuditEvent, Incident, PageClosing, Ports } from "./ports.ts";
import { registerClosed } from "./register.ts";
import type { Timeline } from "./timeline.ts";

/** Type of the event that says that an incident's page is over: follow-ups look for it. */
export const PAGE_CLOSED = "page-closed";
/** Moments of the timeline that the thread shows; the file has all of them. */
const SHOWN = 12;
/** Incidents of one alert whose threads are closed: later ones are not a person's work any more. */
const MOST_INCIDENTS = 20;

/**
 * An alert is over: the thread of each of its incidents is closed with a timeline, once all alerts that the incident answers are over; and a call to somebody,
 * if there was one, is stood down. What still waits for a person stays as it is, and the thread says so.
 */
export async function closePage(context: Context, { source, key, title, at }: PageClosing): Promise<TriageResult> {
  const { durable, ports } = context;
  const incidents = await durable.step("alert", async () => {
    const life = await alertLife(ports, source, key);
    // it fires again by now: there is nothing to close
    return life === undefined || life.status !== "resolved" ? [] : life.incidents.slice(-MOST_INCIDENTS);
  });
  let closed = 0;
  for (const [index, id] of incidents.entries()) {
    try {
      if (await durable.step(`close-${index + 1}`, () => closeThread(context, id, { source, title, at }))) closed += 1;
    } catch (error) {
      // one thread that cannot be written in keeps no other open
      ports.log("error", "a thread could not be closed", { incident: id, problem: (error as Error).message });
    }
  }
  await durable
    .step("stand-down", () => standDown(ports, incidents))
    .catch((error: unknown) => ports.log("warn", "a call could not be ended", { alert: key, problem: (error as Error).message }));
  return { outcome: closed === 0 ? "nothing-to-close" : "closed" };
}

/** Whoever was called for one of the incidents' alerts need not come any more, if that alert is over. */
async function standDown({ pagers, store }: Ports, incidents: readonly string[]): Promise<null> {
  if (pagers === undefined) return null;
  const done = new Set<string>();
  for (const incident of incidents) {
    const called = new Set((await store.audit(incident)).filter(({ data }) => data["by"] === "pagerduty").map(({ key }) => key));
    for (const { source, key } of await alertsOf({ store }, incident)) {
      const id = callId(source, key);
      if (done.has(id) || !called.has(escalatedKey(source, key)) || (await alertLife({ store }, source, key))?.status !== "resolved") continue;
      done.add(id);
      await pagers.standDown(id);
    }
  }
  return null;
}

/** False if the incident is closed already, has no thread, or answers another alert that goes on. */
async function closeThread({ ports, catalogue, report }: Context, id: string, page: Omit<PageClosing, "key">): Promise<boolean> {
  const known = await ports.store.incident(id);
  if (known?.thread === undefined || !(await isOver(ports, id))) return false;
  const place = threadOf(known.thread);
  // recorded once: a second event with the same key is ignored
  await ports.store.record(id, [auditDraft(ports, PAGE_CLOSED, SYSTEM, { source: page.source, resolvedAt: page.at })]);
  const events = await ports.store.audit(id);
  // made at the time of that event, so that a repeated step makes the same file
  const ended = events.find(({ key }) => key === PAGE_CLOSED);
  const timeline = await loadTimeline(ports.store, catalogue, id, ended?.at ?? page.at);
  if (timeline === undefined) return false;
  const incident = await incidentOf(ports, id);
  // what runs or waits for a person stays on the list of open incidents
  if (LEFT[incident.state] === undefined) await registerClosed(ports.store, incident);
  await ports.chat.post(`${id}/page-closed`, place, { template: "page-closed", data: closedData(incident, timeline, events, page) });
  const name = `netcheck-${incident.target}-${id}-timeline.md`;
  try {
    const content = report({ ...timeline }, "timeline.md");
    await ports.chat.upload(`${id}/page-closed-timeline`, place, { name, title: `Timeline of ${id}`, content });
    await ports.store.record(id, [auditDraft(ports, `reported/${PAGE_CLOSED}`, SYSTEM, { events: timeline.chain.events, markdown: sha256(content) })]);
  } catch (error) {
    if ((error as { retryable?: boolean }).retryable === true) throw error;
    await ports.chat.post(`${id}/no-timeline`, place, noteMessage("warning", `The timeline could not be attached: ${(error as Error).message}.`));
  }
  return true;
}

/** What a person still has to do, by the incident's state. */
const LEFT: Partial<Record<Incident["state"], string>> = {
  "awaiting-approval": "A fix still waits for approval here: dismiss it if it is not needed any more.",
  fixing: "A fix is running at this moment; its result will follow here.",
  verifying: "A fix is being verified at this moment; its result will follow here.",
  unresolved: "netcheck could not confirm that the cause is gone. The monitoring system does not see the problem any more; the cause may still be there.",
};
/** Said in the thread before, or of no use to who reads on. */
const QUIET = new Set(["approval-posted", "previewed", "reported", "page-answered"]);

function closedData(
  incident: Incident,
  timeline: Timeline,
  events: readonly AuditEvent[],
  { source, title, at }: Omit<PageClosing, "key">,
): Record<string, unknown> {
  const quiet = new Set(events.filter(({ type }) => QUIET.has(type)).map(({ sequence }) => sequence));
  const told = timeline.events.filter(({ number }) => !quiet.has(number));
  const first = told.slice(0, SHOWN - 1);
  const shown = told.length <= SHOWN ? told : [...first, ...told.slice(-1)];
  return {
    source,
    title,
    target: incident.target,
    at,
    resolvedAt: Math.floor(Date.parse(at) / 1000),
    moments: shown.map(({ after, who, what }) => ({ after, who, what })),
    more: told.length - shown.length,
    left: LEFT[incident.state] ?? "",
    review: incident.review === "pending",
  };
}
