import { sha256 } from "./audit.ts";
import { loadDiagnosis } from "./collect.ts";
import { auditDraft, type Context, SYSTEM, type TriageResult } from "./context.ts";
import { noteMessage } from "./note.ts";
import { PAGER } from "./page.ts";
import { type AlertLife, alertLife } from "./paged.ts";
import { oneLine } from "./plain-text.ts";
import type { Escalation, Message, OnCall, Ports } from "./ports.ts";
import { rootMessage } from "./report.ts";

/** Id of the call for an alert: the same when it is escalated again, and when it is stood down. */
export const callId = (source: string, key: string): string => sha256(`${source}\n${key}`).slice(0, 16);

/** Of the event that says so, on each incident of the alert. */
export const escalatedKey = (source: string, key: string): string => `escalated/${callId(source, key)}`;

/**
 * Waits, and calls somebody if the alert is still there and nobody has taken it on: neither in the monitoring system nor by doing something about one of its
 * incidents in the chat. It is told in the alert's thread, with the reason if nobody could be called.
 */
export async function escalate({ durable, ports }: Context, escalation: Escalation): Promise<TriageResult> {
  const { source, key, afterMinutes, place } = escalation;
  await durable.wait("patience", afterMinutes * 60);
  const { taken, incidents } = await durable.step("taken-on", async () => {
    const life = await alertLife(ports, source, key);
    return { taken: await takenOn(ports, life), incidents: [...(life?.incidents ?? [])] };
  });
  if (taken !== "") return { outcome: taken };
  const run = callId(source, key);
  let problem = "";
  let message: Message | undefined;
  try {
    message = await durable.step("call", () => callSomebody(ports, escalation, run, incidents));
  } catch (error) {
    problem = (error as Error).message;
  }
  await durable.step("tell", async () => {
    const failed = noteMessage(
      "warning",
      `Nobody took this alert on within ${minutesWords(afterMinutes)}, and nobody could be called: ${problem}. Please look at it.`,
    );
    await ports.chat.post(`escalation/${run}/${place.thread ?? ""}/told`, place, message ?? failed);
    for (const incident of incidents) {
      const draft = auditDraft(ports, escalatedKey(source, key), SYSTEM, { source, by: escalation.by, afterMinutes, problem });
      if ((await ports.store.incident(incident)) !== undefined) await ports.store.record(incident, [draft]);
    }
    return null;
  });
  // what belongs to an incident is stood down where its thread is closed; what named no node has nobody else
  if (problem === "" && escalation.by === "pagerduty" && incidents.length === 0) await standDownWhenOver({ durable, ports }, source, key);
  return { outcome: problem === "" ? "escalated" : "not-escalated" };
}

/** Looks, ever less often, for three and a half days, whether the alert is over. */
async function standDownWhenOver({ durable, ports }: Pick<Context, "durable" | "ports">, source: string, key: string): Promise<void> {
  for (let look = 1, minutes = 10; look <= 9; look++, minutes *= 2) {
    await durable.wait(`over-wait-${look}`, minutes * 60);
    const over = await durable.step(`over-${look}`, async () => {
      if ((await alertLife(ports, source, key))?.status !== "resolved") return false;
      await ports.pagers?.standDown(callId(source, key));
      return true;
    });
    if (over) return;
  }
}

/** "" if nobody has. What is over needs nobody. */
async function takenOn(ports: Ports, life: AlertLife | undefined): Promise<"" | "resolved" | "acknowledged" | "in-hand"> {
  if (life?.status === "resolved" || life?.status === "acknowledged") return life.status;
  for (const incident of life?.incidents ?? []) {
    const events = await ports.store.audit(incident);
    if (events.some(({ actor }) => actor.id !== SYSTEM.id && actor.id !== PAGER.id)) return "in-hand";
  }
  return "";
}

/** Calls, and says whom. Repeated it is the same call. */
async function callSomebody(ports: Ports, escalation: Escalation, run: string, incidents: readonly string[]): Promise<Message> {
  const { source, title, severity, by, to, onCall, url, place, afterMinutes } = escalation;
  const words = `nobody took this ${severity} alert on within ${minutesWords(afterMinutes)}: ${title}`;
  if (by === "pagerduty") {
    if (ports.pagers === undefined) throw new Error("netcheck.yaml has no pagers.pagerduty");
    const thread = place.thread === undefined ? undefined : await ports.chat.link?.({ channel: place.channel, ts: place.thread }).catch(() => undefined);
    const details = { source, title: oneLine(title, 500), ...(url === undefined ? {} : { alert: url }), ...(await foundOn(ports, incidents)) };
    await ports.pagers.escalate({ id: run, summary: oneLine(words, 900), severity, details, ...(thread === undefined ? {} : { url: thread }) });
    return escalated(afterMinutes, "PagerDuty was told to call somebody", []);
  }
  const person = to ?? (await onCallNow(ports, escalation))?.actor?.id;
  if (person === undefined) throw new Error(onCall === undefined ? "no one is named (escalate.to, or onCall)" : "who is on call is not known in Slack");
  // a group has no direct messages: it is mentioned in the thread
  if (person.startsWith("S")) return escalated(afterMinutes, "", [person]);
  const where = place.channel;
  const direct = { template: "escalation-direct", data: { title, severity, minutes: minutesWords(afterMinutes), channel: where, url: url ?? "" } };
  await ports.chat.post(`escalation/${run}/${place.thread ?? ""}/direct`, { channel: person }, direct);
  return escalated(afterMinutes, "", [person]);
}

/** What netcheck has found on the alert's nodes by now: "netcheck on node2" → the cause, or how far it is. */
async function foundOn(ports: Ports, incidents: readonly string[]): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const id of incidents.slice(-MOST_NODES)) {
    const incident = await ports.store.incident(id);
    if (incident === undefined) continue;
    const diagnosis = incident.diagnosis === undefined ? undefined : await loadDiagnosis(ports, incident.diagnosis).catch(() => undefined);
    const { state, headline } = rootMessage(incident, diagnosis).data;
    found[`netcheck on ${incident.target}`] = oneLine([state, headline].filter((words) => typeof words === "string" && words !== "").join(": "), 300);
  }
  return found;
}
/** Nodes of one call. */
const MOST_NODES = 10;

const onCallNow = async ({ pagers }: Ports, { onCall }: Escalation): Promise<OnCall | undefined> => (onCall === undefined ? undefined : pagers?.onCall(onCall));

const escalated = (afterMinutes: number, words: string, people: readonly string[]): Message => ({
  template: "escalation",
  data: { minutes: minutesWords(afterMinutes), words, people },
});

const minutesWords = (minutes: number): string =>
  minutes % 60 === 0 ? `${minutes / 60} ${minutes === 60 ? "hour" : "hours"}` : `${minutes} ${minutes === 1 ? "minute" : "minutes"}`;
