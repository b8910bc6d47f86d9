import type { Diagnosis } from "../rules/diagnosis.ts";
import type { Catalogue } from "../rules/load.ts";
import { sha256 } from "./audit.ts";
import { loadDiagnosis } from "./collect.ts";
import { auditDraft, type Context, SYSTEM, type TriageResult, threadOf } from "./context.ts";
import { withoutMuted } from "./muted.ts";
import { noteMessage } from "./note.ts";
import { alertsOf, type PagedAlert } from "./paged.ts";
import { oneLine } from "./plain-text.ts";
import { type Incident, type Message, type OnCallSource, PAGE_MARK, type PageAnswer, type Place, type Ports } from "./ports.ts";

/** Lines of evidence in a note, and characters of each: the rest is in the thread. */
const LINES = 6;
const LINE = 200;
/** Characters of a note. */
const NOTE = 3000;

/**
 * Has the page that asked for an incident answered, by an execution of its own: a monitoring system that does not answer holds no triage up. Nothing happens
 * where a person asked. Never fails: the thread has the answer, whatever becomes of this one.
 */
export async function startAnswer({ durable, ports }: Context, incident: string, stage: PageAnswer["stage"]): Promise<void> {
  if (ports.pagers === undefined) return;
  await durable
    .step(`answer-page-${stage}`, async () => {
      if ((await alertsOf(ports, incident)).length > 0)
        await ports.work.start(`answer-${sha256(`${incident} ${stage}`).slice(0, 16)}`, { kind: "answer-page", answer: { incident, stage } });
      return null;
    })
    .catch((error: unknown) => ports.log("warn", "a page could not be answered", { incident, problem: (error as Error).message }));
}

/** Leaves a note on each alert that the incident answers, and names who is on call in the thread. What cannot be left is told in the thread, and why. */
export async function answerPage(context: Context, { incident: id, stage, only }: PageAnswer): Promise<TriageResult> {
  const { durable, ports, catalogue } = context;
  const { pagers } = ports;
  if (pagers === undefined) return { outcome: "no-pagers" };
  const answer = await durable.step("note-text", async () => {
    const incident = await ports.store.incident(id);
    // a triage that failed before it began: the thread was told
    if (incident === undefined) return null;
    const diagnosis = incident.diagnosis === undefined ? undefined : withoutMuted(await loadDiagnosis(ports, incident.diagnosis), incident.muted);
    const url = incident.thread === undefined ? undefined : await ports.chat.link?.(incident.thread).catch(() => undefined);
    return {
      alerts: (await alertsOf(ports, id)).filter(({ source, key }) => only === undefined || (source === only.source && key === only.key)),
      note: noteText(incident, stage, diagnosis, catalogue, url),
      place: incident.thread === undefined ? null : threadOf(incident.thread),
    };
  });
  if (answer === null) return { outcome: "no-incident" };
  const { alerts, note, place } = answer;
  const joined = only === undefined ? "" : `-${sha256(`${only.source}/${only.key}`).slice(0, 8)}`;
  const failed: string[] = [];
  let left = 0;
  for (const [index, { source, ref }] of alerts.entries()) {
    try {
      if (await durable.step(`note-${index + 1}`, () => pagers.note(source, ref, note))) left += 1;
    } catch (error) {
      failed.push((error as Error).message);
    }
  }
  await durable.step("noted", async () => {
    const data = { stage, notes: left, of: alerts.length, failed: failed.length };
    if (left > 0 || failed.length > 0) await ports.store.record(id, [auditDraft(ports, `page-answered/${stage}${joined}`, SYSTEM, data)]);
    const [first] = failed;
    if (first !== undefined && place !== null) {
      const more = failed.length === 1 ? "" : ` (${failed.length} notes; this is the first reason)`;
      await ports.chat.post(`${id}/note-failed-${stage}${joined}`, place, noteMessage("warning", `The page does not show this answer: ${first}${more}.`));
    }
    return null;
  });
  if (stage === "found" && place !== null) await nameOnCall(context, id, alerts, place);
  return { outcome: failed.length > 0 ? "failed" : left > 0 ? "noted" : "nothing-to-note" };
}

/** Who is on call is named once in a thread, where the route of an alert says so; or why that is not known. */
async function nameOnCall({ durable, ports }: Context, id: string, alerts: readonly PagedAlert[], place: Place): Promise<void> {
  const source = alerts.find(({ onCall }) => onCall !== undefined)?.onCall;
  if (source === undefined) return;
  const tell = async (message: Message): Promise<null> => {
    await ports.chat.post(`on-call/${place.channel}/${place.thread ?? id}`, place, message);
    return null;
  };
  await durable
    .step("on-call", async () => tell(await onCallMessage(ports, source)))
    .catch((error: unknown) =>
      durable.step("on-call-unknown", () => tell(noteMessage("grey_question", `Who is on call could not be looked up: ${(error as Error).message}.`))),
    )
    .catch((error: unknown) => ports.log("warn", "who is on call could not be told", { incident: id, problem: (error as Error).message }));
}

/** Who is on call, as a mention where the chat knows the person. */
async function onCallMessage(ports: Ports, source: OnCallSource): Promise<Message> {
  const found = await ports.pagers?.onCall(source);
  if (found === undefined) return noteMessage("grey_question", `Nobody is on call now by ${source.by} schedule ${source.schedule}.`);
  return {
    template: "on-call",
    data: { people: found.actor === undefined ? [] : [found.actor.id], name: oneLine(found.name, 100), known: found.actor !== undefined },
  };
}

const VERDICTS: Readonly<Record<Diagnosis["verdict"], string>> = {
  "cause-found": "likely cause found",
  "symptoms-only": "symptoms, but no cause that netcheck knows",
  healthy: "no cause found: everything that was checked is in order",
  inconclusive: "inconclusive: nothing found, but not everything could be checked",
};
const ENDS: Partial<Record<Incident["state"], string>> = {
  resolved: "the fix ran, and its cause is gone",
  unresolved: "not resolved",
  dismissed: "the fix was dismissed; nothing was changed",
  expired: "nobody decided on the fix in time; nothing was changed",
  failed: "the triage failed",
};

/** Plain text, at most 3,000 characters. Its first line is of this incident and stage alone. */
export function noteText(
  incident: Incident,
  stage: PageAnswer["stage"],
  diagnosis: Diagnosis | undefined,
  catalogue: Pick<Catalogue, "fixes">,
  url: string | undefined,
): string {
  const head = (words: string): string => `${PAGE_MARK} ${incident.id} ${stage === "found" ? "examined" : "ended for"} ${incident.target}: ${words}`;
  const thread = url === undefined ? (incident.thread === undefined ? [] : [`The thread in Slack begins with run id ${incident.id}.`]) : [`Thread: ${url}`];
  if (diagnosis === undefined) {
    const problem = incident.problem === undefined ? "it could not be looked at" : oneLine(incident.problem, 500);
    return oneNote([head(stage === "found" ? "inconclusive" : "the triage failed"), `${problem}. That says nothing about the node's network.`, ...thread]);
  }
  if (stage === "ended") return oneNote([head(ENDS[incident.state] ?? incident.state), ...thread]);
  const cause = diagnosis.causes[0];
  if (cause === undefined && diagnosis.verdict === "cause-found") {
    const rules = (incident.muted ?? []).map(({ rule }) => rule).join(", ");
    return oneNote([head(`what was found is muted on this node (${rules})`), ...thread]);
  }
  if (cause === undefined) {
    const symptoms = diagnosis.symptoms.slice(0, LINES).map(({ summary }) => `- ${oneLine(summary, LINE)}`);
    return oneNote([head(VERDICTS[diagnosis.verdict]), ...symptoms, ...thread]);
  }
  const evidence = cause.evidence.slice(0, LINES).map(({ command, line, text }) => `  ${oneLine(command, 80)}, line ${line}: ${oneLine(text, LINE)}`);
  const more = cause.evidence.length - evidence.length;
  const others = diagnosis.causes.length - 1;
  const fix = cause.fix === undefined ? undefined : catalogue.fixes.get(cause.fix.id);
  return oneNote([
    head(VERDICTS[diagnosis.verdict]),
    `${oneLine(cause.title, LINE)} (${Math.round(cause.confidence * 100)} % sure, ${cause.severity})`,
    oneLine(cause.summary, 500),
    "Evidence:",
    ...evidence,
    ...(more > 0 ? [`  and ${more} more lines in the thread`] : []),
    ...(others > 0 ? [`${others} more ${others === 1 ? "cause" : "causes"} in the thread`] : []),
    ...(diagnosis.unchecked.length === 0 ? [] : [`${diagnosis.unchecked.length} rules could not be checked`]),
    fix === undefined ? "No fix is offered." : `A fix can be approved in the thread, by those whom the policy names: ${oneLine(fix.file.title, LINE)}`,
    ...thread,
  ]);
}

/** The thread is named at the end: it must not be cut off. */
function oneNote(lines: readonly string[]): string {
  const [last = ""] = lines.slice(-1);
  const body = lines.slice(0, -1).join("\n");
  return lines.length === 1 ? last.slice(0, NOTE) : `${body.slice(0, NOTE - last.length - 1)}\n${last}`;
}
