import type { Diagnosis, Finding } from "../rules/diagnosis.ts";
import { preview } from "../rules/fix.ts";
import type { Catalogue } from "../rules/load.ts";
import { canonical, sha256, verifyChain } from "./audit.ts";
import { commandLines } from "./command-text.ts";
import { PAGER } from "./page.ts";
import { cut } from "./plain-text.ts";
import type { Actor, AuditEvent, Incident } from "./ports.ts";
import { workloadWords } from "./workload.ts";

/** What a timeline is made of. */
export interface TimelineSource {
  readonly incident: Incident;
  /** Of this incident, in order. */
  readonly events: readonly AuditEvent[];
  /** As it is stored now; undefined if there is none, or none any more. */
  readonly diagnosis: Diagnosis | undefined;
  /** sha256 of the capture as it is stored now. */
  readonly capture: string | undefined;
  readonly catalogue: Pick<Catalogue, "fixes">;
  /** When the report is made, ISO. */
  readonly madeAt: string;
}

/** Quoted lines of one finding; the rest is in the capture. */
const QUOTED = 20;
/** Characters of one quoted line, and of one value of an event. */
const LINE = 500;
const VALUE = 300;

/** An incident for a post-mortem, as plain data for templates/timeline.*.hbs. All texts in it may be hostile: the templates escape them. */
export interface Timeline {
  readonly title: string;
  readonly incident: string;
  readonly node: string;
  readonly cluster: string;
  readonly asked: string;
  readonly by: string;
  readonly opened: string;
  readonly state: string;
  readonly problem: string;
  readonly review: string;
  readonly madeAt: string;
  readonly found: Found;
  readonly seen: readonly Moment[];
  readonly decisions: readonly Decided[];
  readonly changes: readonly Change[];
  readonly events: readonly Row[];
  readonly chain: { readonly events: number; readonly whole: boolean; readonly last: string; readonly problems: readonly string[] };
}
interface Moment {
  readonly utc: string;
  /** Since the beginning: "+3 min 12 s". */
  readonly after: string;
  readonly who: string;
}
interface Decided extends Moment {
  readonly what: string;
  readonly statement: string;
  readonly reason: string;
  readonly hash: string;
  readonly breakGlass: boolean;
  readonly refused: boolean;
}
interface Row extends Moment {
  readonly number: number;
  readonly what: string;
  readonly details: readonly { readonly name: string; readonly value: string }[];
  readonly breakGlass: boolean;
  readonly hash: string;
}
interface Found {
  readonly known: boolean;
  readonly verdict: string;
  readonly causes: readonly FoundItem[];
  readonly symptoms: readonly FoundItem[];
  readonly unchecked: number;
  readonly hashes: readonly { readonly what: string; readonly hash: string; readonly words: string; readonly good: boolean }[];
}
interface FoundItem {
  readonly rule: string;
  readonly title: string;
  readonly severity: string;
  readonly percent: number;
  readonly summary: string;
  readonly evidence: readonly { readonly command: string; readonly line: number; readonly text: string }[];
  readonly more: number;
}
/** A fix or its rollback. */
interface Change {
  readonly kind: "Fix" | "Rollback";
  readonly title: string;
  readonly id: string;
  readonly version: string;
  readonly proposal: string;
  readonly hash: string;
  readonly parameters: readonly { readonly name: string; readonly value: string }[];
  readonly commands: string;
  readonly commandsNote: string;
  readonly outcome: string;
  readonly reason: string;
  readonly verification: string;
}

const VERDICTS: Record<Diagnosis["verdict"], string> = {
  "cause-found": "A likely cause was found.",
  "symptoms-only": "Symptoms were found, but no cause that netcheck knows.",
  healthy: "No cause was found: everything that was checked is in order.",
  inconclusive: "Inconclusive: nothing was found, but not everything could be checked.",
};

/** What an event says in words; of a type that is not here, its own name in words. */
const WORDS: Readonly<Record<string, string>> = {
  "incident-opened": "asked for the triage",
  collected: "collected the facts",
  "collected/recheck": "collected the facts again, right before the fix",
  "collected/verify": "collected the facts again, after the fix",
  "collect-failed": "could not look at the node",
  "fell-back": "took another way to the node, because the first one did not work",
  diagnosed: "diagnosed",
  "diagnosed-many": "diagnosed several nodes",
  compared: "compared the node with others",
  "service-checked": "checked the way to the service",
  "fix-proposed": "proposed a fix",
  "proposal-refused": "offered no fix, because of the policy",
  "approval-requested": "asked for approval",
  "approval-posted": "posted the proposal with its buttons",
  previewed: "saw exactly what would run",
  approved: "approved",
  dismissed: "dismissed the proposal",
  refused: "clicked, and was refused",
  expired: "closed the proposal: nobody decided in time",
  reminded: "reminded the approvers",
  "break-glass-approved": "approved by break-glass: the policy alone did not allow it",
  reviewed: "reviewed the use of break-glass",
  "fix-started": "started the fix on the node",
  "fix-finished": "put the result of the fix on record",
  verified: "collected again and judged",
  "rollback-proposed": "proposed to roll the fix back",
  "rollback-started": "started the rollback on the node",
  "rollback-finished": "put the result of the rollback on record",
  failed: "could not finish the triage",
  feedback: "voted on the named cause",
  muted: "muted a rule on a node",
  unmuted: "ended a mute",
  reported: "asked for this report",
  "reported/page-closed": "attached this report, because the page is over",
  "page-answered": "told the monitoring system what was found",
  "page-answered/ended": "told the monitoring system how it ended",
  "followed-up": "looked at the node again, without being asked",
  escalated: "found that nobody took the alert on, and called somebody",
  "page-closed": "closed the thread: the page is over",
  "others-approved": "approved the fix of the other nodes, together",
  "others-dismissed": "dismissed the fix of the other nodes",
  "others-ended": "ended the fix of the other nodes",
  "fix-stopped": "left the other nodes alone, because the first was not fixed and verified",
  shown: "asked for what was found on one node",
  closed: "closed the proposal: it is not run",
  "not-told": "could not show a decision everywhere",
};
const DECISIONS = new Set(["approved", "break-glass-approved", "dismissed", "refused", "reviewed"]);
const OUTCOMES: Readonly<Record<string, string>> = {
  succeeded: "It ran and succeeded.",
  failed: "It failed.",
  unknown: "It is not known whether it ran. It was not run again.",
  refused: "It was not run.",
};

/** Makes the timeline of an incident. Pure: the same source gives the same timeline. */
export function timelineOf(source: TimelineSource): Timeline {
  const { incident, events, catalogue, madeAt } = source;
  const start = Date.parse(events[0]?.at ?? incident.createdAt);
  const moment = ({ at, actor }: AuditEvent): Moment => ({ utc: utcOf(at), after: afterOf(Date.parse(at) - start), who: whoOf(actor) });
  const problems = verifyChain(events, "incident");
  return {
    title: `${incident.id}: ${incident.target}`,
    incident: incident.id,
    node: incident.target,
    cluster: incident.cluster,
    asked: askedOf(incident),
    by: whoOf(incident.requester),
    opened: utcOf(incident.createdAt),
    state: incident.state.replaceAll("-", " "),
    problem: incident.problem ?? "",
    review: reviewOf(incident, events),
    madeAt: utcOf(madeAt),
    found: foundOf(source),
    seen: events.filter(({ type }) => type === "previewed").map(moment),
    decisions: events.filter(({ type }) => DECISIONS.has(type)).map((event) => ({ ...moment(event), ...decisionOf(event) })),
    changes: changesOf(events, catalogue),
    events: events.map((event) => ({
      ...moment(event),
      number: event.sequence,
      what: wordsOf(event),
      details: detailsOf(event.data),
      breakGlass: event.type === "break-glass-approved",
      hash: event.hash,
    })),
    chain: { events: events.length, whole: problems.length === 0, last: events.at(-1)?.hash ?? "", problems },
  };
}

function askedOf({ target, workload, against, sources }: Incident): string {
  if (sources !== undefined) return `What do these files say of ${target}: ${sources.join(", ")}?`;
  if (workload !== undefined) return `What is wrong with ${workloadWords(workload)}? ${target} was looked at for it.`;
  if (against !== undefined) return `What is wrong with the network of ${target}, compared with ${against.join(", ")}?`;
  return `What is wrong with the network of ${target}?`;
}

function reviewOf({ review }: Incident, events: readonly AuditEvent[]): string {
  const used = events.filter(({ type }) => type === "break-glass-approved");
  if (used.length === 0 && review === undefined) return "";
  const people = [...new Set(used.map(({ actor }) => whoOf(actor)))].join(", ");
  const done = events.findLast(({ type }) => type === "reviewed");
  const after = done === undefined ? "Nobody has reviewed this yet." : `${whoOf(done.actor)} reviewed it at ${utcOf(done.at)}.`;
  return `Break-glass was used by ${people || "somebody"}: the policy alone did not allow this change. ${review === "pending" ? "The review is still open." : after}`;
}

function foundOf({ events, diagnosis, capture }: TimelineSource): Found {
  // of the node itself; those with a name behind the slash are of a pod, or of the other end of a service
  const recorded = events.findLast(({ key }) => key === "diagnosed")?.data;
  const held = (what: string, now: string | undefined, then: unknown) => {
    if (typeof then !== "string") return [];
    const words =
      now === undefined ? "is not in the store any more" : now === then ? "is stored as it was recorded" : "is NOT what was recorded: it was changed later";
    return [{ what, hash: then, words, good: now === then }];
  };
  return {
    known: diagnosis !== undefined,
    verdict: diagnosis === undefined ? "" : VERDICTS[diagnosis.verdict],
    causes: (diagnosis?.causes ?? []).map(itemOf),
    symptoms: [...(diagnosis?.symptoms ?? []), ...(diagnosis?.risks ?? [])].map(itemOf),
    unchecked: diagnosis?.unchecked.length ?? 0,
    hashes: [
      ...held("The capture", capture, recorded?.["capture"]),
      ...held("The diagnosis", diagnosis === undefined ? undefined : sha256(canonical(diagnosis)), recorded?.["diagnosis"]),
    ],
  };
}

const itemOf = ({ rule, title, severity, confidence, summary, evidence }: Finding): FoundItem => ({
  rule,
  title,
  severity,
  percent: Math.round(confidence * 100),
  summary,
  evidence: evidence.slice(0, QUOTED).map(({ command, line, text }) => ({ command, line, text: cut(text, LINE) })),
  more: Math.max(0, evidence.length - QUOTED),
});

function decisionOf(event: AuditEvent): Omit<Decided, keyof Moment> {
  const { type, data } = event;
  return {
    what: type === "refused" ? `wanted to ${textOf(data["decision"]) || "decide"}, and was refused` : wordsOf(event),
    statement: textOf(data["statement"]),
    reason: textOf(data["reason"]),
    hash: textOf(data["hash"]),
    breakGlass: type === "break-glass-approved",
    refused: type === "refused",
  };
}

function changesOf(events: readonly AuditEvent[], catalogue: Pick<Catalogue, "fixes">): Change[] {
  return events
    .filter(({ type }) => type === "fix-proposed" || type === "rollback-proposed")
    .map(({ type, data }) => {
      const rollback = type === "rollback-proposed";
      const proposal = textOf(data["proposal"]);
      const about = events.filter((event) => event.data["proposal"] === proposal);
      const fix = catalogue.fixes.get(textOf(data["fix"]));
      const version = textOf(data["version"]);
      const parameters = parametersOf(data["parameters"]);
      const same = fix !== undefined && fix.version === version;
      const ended = about.findLast((event) => event.type === "fix-finished" || event.type === "rollback-finished")?.data;
      const verified = about.findLast((event) => event.type === "verified")?.data;
      return {
        kind: rollback ? "Rollback" : "Fix",
        title: fix?.file.title ?? textOf(data["fix"]),
        id: textOf(data["fix"]),
        version,
        proposal,
        hash: textOf(about.find((event) => typeof event.data["hash"] === "string")?.data["hash"]),
        parameters: Object.entries(parameters).map(([name, value]) => ({ name, value: textOf(value) })),
        commands: same ? commandLines(preview(rollback ? fix.file.rollback : fix.file.apply, parameters)) : "",
        commandsNote: same
          ? ""
          : "The catalogue holds another version of it now, so the commands are not shown here. The version names the fix.yaml that was used.",
        outcome: ended === undefined ? "It was not run." : (OUTCOMES[textOf(ended["outcome"])] ?? textOf(ended["outcome"])),
        reason: textOf(ended?.["reason"]),
        verification: textOf(verified?.["words"]),
      };
    });
}

/** Only what a parameter may be: texts, and lists of texts. */
function parametersOf(value: unknown): Record<string, string | readonly string[]> {
  const isValue = (item: unknown): item is string | string[] =>
    typeof item === "string" || (Array.isArray(item) && item.every((one) => typeof one === "string"));
  return typeof value === "object" && value !== null ? Object.fromEntries(Object.entries(value).filter(([, item]) => isValue(item))) : {};
}

const wordsOf = ({ key, type }: AuditEvent): string => own(WORDS, key) ?? own(WORDS, type) ?? type.replaceAll("-", " ");
const own = (words: Readonly<Record<string, string>>, name: string): string | undefined => (Object.hasOwn(words, name) ? words[name] : undefined);

/** What an event says besides: every value, shortened. Hashes are long, and their beginning is enough to find them in an export. */
const detailsOf = (data: AuditEvent["data"]): Row["details"] =>
  Object.entries(data)
    .map(([name, value]) => ({ name: namedOf(name), value: cut(shortHash(textOf(value)), VALUE) }))
    .filter(({ value }) => value !== "");

/** "approvalsNeeded" as "approvals needed". */
const namedOf = (name: string): string => name.replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, " ").toLowerCase();
const shortHash = (text: string): string => (/^[0-9a-f]{64}$/.test(text) ? `${text.slice(0, 12)}…` : text);

function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((item) => typeof item === "string" || typeof item === "number")) return value.join(", ");
  const json = canonical(value);
  return json === "{}" ? "" : json;
}

const whoOf = ({ id }: Actor): string => (id === PAGER.id ? "a page from the monitoring system" : id);

/** "2026-11-21 08:00:12" of an ISO time; what is none stays as it is. */
const utcOf = (at: string): string => (/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}/.test(at) ? at.slice(0, 19).replace("T", " ") : at);

/** "+3 min 12 s". Clocks of different machines may differ, so that it can be below zero. */
function afterOf(milliseconds: number): string {
  if (Number.isNaN(milliseconds)) return "";
  const seconds = Math.floor(Math.abs(milliseconds) / 1000);
  const parts: [number, string][] = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  const shown = first === -1 ? parts.slice(-1) : parts.slice(first, first + 2);
  return `${milliseconds < 0 ? "−" : "+"}${shown.map(([count, unit]) => `${count} ${unit}`).join(" ")}`;
}
