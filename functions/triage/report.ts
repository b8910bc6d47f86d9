import type { Cause, Diagnosis, Evidence, Finding } from "../rules/diagnosis.ts";
import { preview } from "../rules/fix.ts";
import type { Catalogue, Guide } from "../rules/load.ts";
import { type UncheckedGroup, uncheckedGroups } from "../rules/unchecked.ts";
import { commandLines } from "./command-text.ts";
import { hiding, withoutMuted } from "./muted.ts";
import { cut } from "./plain-text.ts";
import type { Incident, IncidentState, Message, Mute } from "./ports.ts";
import { workloadWords } from "./workload.ts";

/**
 * What the chat is told, as template name and plain data. How it looks is in templates/slack/; what is hostile in it is escaped there.
 */

const STATES: Record<IncidentState, { icon: string; words: string }> = {
  open: { icon: "hourglass_flowing_sand", words: "starting" },
  collecting: { icon: "hourglass_flowing_sand", words: "collecting facts on the node" },
  diagnosed: { icon: "mag", words: "diagnosed" },
  "awaiting-approval": { icon: "raised_hand", words: "a fix is waiting for approval" },
  fixing: { icon: "wrench", words: "running the fix" },
  verifying: { icon: "hourglass_flowing_sand", words: "fix done, verifying" },
  resolved: { icon: "white_check_mark", words: "resolved and verified" },
  unresolved: { icon: "x", words: "not resolved" },
  dismissed: { icon: "no_entry_sign", words: "dismissed" },
  expired: { icon: "hourglass", words: "the proposal expired" },
  failed: { icon: "warning", words: "the triage failed" },
};

const READING = { icon: "hourglass_flowing_sand", words: "reading what was dropped here" };

const VERDICTS: Record<Diagnosis["verdict"], { icon: string; words: string }> = {
  "cause-found": { icon: "red_circle", words: "likely cause found" },
  "symptoms-only": { icon: "large_yellow_circle", words: "symptoms, but no cause that netcheck knows" },
  healthy: { icon: "white_check_mark", words: "no cause found: everything that was checked is in order" },
  inconclusive: { icon: "grey_question", words: "inconclusive: nothing found, but not everything could be checked" },
};

/** Muted findings that are named in one message. */
const SHOWN_MUTED = 5;

/** A time in a list: "2026-11-21 08:00 UTC". */
export const untilText = (until: string): string => `${until.slice(0, 16).replace("T", " ")} UTC`;

/** Evidence lines in one message; the rest is in the report file. */
export const SHOWN = 6;

/**
 * The first message of the thread; edited as the incident goes on.
 * @param differs how many differences worth a look netcheck itself found between a node without a cause and its pool
 */
export function rootMessage(incident: Incident, diagnosis: Diagnosis | undefined, note?: string, differs = 0): Message {
  const cause = diagnosis === undefined ? undefined : withoutMuted(diagnosis, incident.muted).causes[0];
  const state = incident.sources !== undefined && incident.state === "collecting" ? READING : STATES[incident.state];
  const verdict = diagnosis === undefined ? undefined : differs === 0 ? verdictOf(diagnosis, incident.muted) : unlikePool(diagnosis, differs);
  const settled = incident.state === "diagnosed" && verdict !== undefined;
  return {
    template: "root",
    data: {
      target: incident.workload === undefined ? incident.target : `${workloadWords(incident.workload)} on ${incident.target}`,
      icon: settled ? verdict.icon : state.icon,
      state: `${settled ? verdict.words : state.words}${incident.review === "pending" ? "; approved by breaking the glass, not reviewed yet" : ""}`,
      requester: incident.requester.id,
      incident: incident.id,
      headline: cause?.title ?? "",
      note: note ?? incident.problem ?? "",
    },
  };
}

/** What the diagnosis comes to for people. Where nothing is left but what is muted it says so: that is neither healthy nor a cause to look at. */
function verdictOf(diagnosis: Diagnosis, mutes: readonly Mute[] = []): { icon: string; words: string } {
  const hidden = hiding(diagnosis, mutes).length;
  const { causes, symptoms } = withoutMuted(diagnosis, mutes);
  const plain = VERDICTS[diagnosis.verdict];
  if (hidden === 0 || diagnosis.verdict === "healthy" || diagnosis.verdict === "inconclusive") return plain;
  if (causes.length > 0) return plain;
  const muted = `${hidden} muted ${hidden === 1 ? "finding" : "findings"}`;
  return { icon: "no_bell", words: symptoms.length > 0 ? `no cause found but ${muted}; there are symptoms` : `no cause found but ${muted}` };
}

/** A green tick on a node that is not like its peers would be read as "all is well". */
function unlikePool({ verdict }: Diagnosis, differs: number): { icon: string; words: string } {
  const found = `${differs} ${differs === 1 ? "difference" : "differences"} from its pool`;
  return { icon: "mag", words: verdict === "healthy" ? `no cause that netcheck knows, but ${found}` : `${VERDICTS[verdict].words}; ${found}` };
}

/**
 * The diagnosis: verdict, likely cause, impact, evidence, what else, what was not checked.
 * @param source where it was read from instead of a node: then it says so, and that no fix follows; without the button that runs it again
 */
export function diagnosisMessage(incident: Incident, diagnosis: Diagnosis, catalogue: Pick<Catalogue, "guides">, source = ""): Message {
  const seen = withoutMuted(diagnosis, incident.muted);
  const muted = hiding(diagnosis, incident.muted ?? []);
  const [cause, ...others] = seen.causes;
  const verdict = verdictOf(diagnosis, incident.muted);
  const open = uncheckedGroups(diagnosis.unchecked);
  return {
    template: "diagnosis",
    data: {
      incident: incident.id,
      target: diagnosis.target,
      icon: verdict.icon,
      verdict: verdict.words,
      cause: cause === undefined ? null : causeData(cause, catalogue.guides.get(cause.rule)),
      others: [...others, ...seen.symptoms, ...seen.risks].slice(0, 8).map((finding) => otherData(finding, seen)),
      othersMore: Math.max(0, others.length + seen.symptoms.length + seen.risks.length - 8),
      muted: muted.slice(0, SHOWN_MUTED).map(({ rule, by, until, reason }) => ({ rule, by: by.id, until: untilText(until), reason })),
      mutedMore: Math.max(0, muted.length - SHOWN_MUTED),
      // nobody votes on what was read from a file: it may be forged
      feedback: cause !== undefined && source === "",
      unchecked: open.slice(0, 6).map(uncheckedData),
      uncheckedMore: open.slice(6).reduce((sum, { rules }) => sum + rules.length, 0),
      checked: diagnosis.stats.rules - diagnosis.unchecked.length,
      rules: diagnosis.stats.rules,
      lines: diagnosis.stats.lines,
      fixProblem: cause?.fixProblem ?? "",
      noFix: cause !== undefined && cause.fix === undefined,
      // a proposal brings a button of its own
      again: cause?.fix === undefined && source === "",
      source,
    },
  };
}

/** At most four rules are named: the file has all of them. */
const uncheckedData = ({ rules, reason }: UncheckedGroup): Record<string, unknown> => ({
  rule: rules.length > 4 ? `${rules.slice(0, 3).join(", ")} and ${rules.length - 3} more` : rules.join(", "),
  // a command is to be copied
  parts: reason
    .split(/(`[^`]+`)/)
    .filter((part) => part !== "")
    .map((part) => (/^`[^`]+`$/.test(part) ? { code: part.slice(1, -1), text: "" } : { code: "", text: part })),
});

function causeData(cause: Cause, guide: Guide | undefined): Record<string, unknown> {
  return {
    rule: cause.rule,
    title: cause.title,
    severity: cause.severity,
    confidence: Math.round(cause.confidence * 100),
    summary: cause.summary,
    impact: firstParagraph(guide?.impact ?? ""),
    evidence: byCommand(cause.evidence.slice(0, SHOWN)),
    evidenceMore: Math.max(0, cause.evidence.length - SHOWN),
    explains: cause.explains.join(", "),
  };
}

const otherData = (finding: Finding, diagnosis: Diagnosis): Record<string, unknown> => ({
  rule: finding.rule,
  summary: finding.summary,
  severity: finding.severity,
  role: diagnosis.risks.includes(finding) ? "risk" : diagnosis.symptoms.includes(finding) ? "symptom" : "cause",
  explained: diagnosis.causes[0]?.explains.includes(finding.rule) ?? false,
});

/** Evidence grouped under the command that printed it, in order. */
export function byCommand(evidence: readonly Evidence[]): { command: string; lines: string }[] {
  const groups = new Map<string, Evidence[]>();
  for (const item of evidence) groups.set(item.command, [...(groups.get(item.command) ?? []), item]);
  // a list of forty sysctl keys says no more than its beginning
  return [...groups].map(([command, items]) => ({
    command: cut(command, 90),
    lines: items.map((item) => `${item.line}: ${cut(item.text, 300)}${item.grew === undefined ? "" : `   (${item.grew} between the two samples)`}`).join("\n"),
  }));
}

/** Paragraphs of a README are hard-wrapped; a chat wraps by itself. */
const firstParagraph = (markdown: string): string => (markdown.split(/\n\s*\n/)[0] ?? "").replaceAll(/\s*\n\s*(?!\s|- )/g, " ");

/**
 * The beginning of a report on files: where each diagnosis was read from, as a Markdown table if there are several.
 * @param left how many nodes of the files were not looked at
 */
export function overview(all: readonly { readonly diagnosis: Diagnosis; readonly source: string }[], left: number): string {
  // what a file is called, and what it says of itself, must not make a table of its own
  const cell = (text: string): string => text.replaceAll(/[|`\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ");
  const rows = all.map(
    ({ diagnosis, source }) =>
      `| ${[diagnosis.target, VERDICTS[diagnosis.verdict].words, diagnosis.causes.map(({ rule }) => rule).join(", "), source].map(cell).join(" | ")} |`,
  );
  return [
    "Read from files that were dropped into the chat. Nothing was run on a node, and no fix is proposed from files: run a triage of the live node for that.",
    ...(left === 0 ? [] : [`${left} more nodes in them were not looked at.`]),
    ["| node | verdict | causes | read from |", "| --- | --- | --- | --- |", ...rows].join("\n"),
    "",
  ].join("\n\n");
}

/** Data of templates/report.md.hbs: everything, nothing cut. */
export function reportData(incident: Incident, diagnosis: Diagnosis, catalogue: Pick<Catalogue, "guides" | "fixes">): Record<string, unknown> {
  const cause = withoutMuted(diagnosis, incident.muted).causes[0];
  const fix = cause?.fix === undefined ? undefined : catalogue.fixes.get(cause.fix.id);
  return {
    incident,
    diagnosis,
    verdict: verdictOf(diagnosis, incident.muted).words,
    // everything is in the report, also what is muted
    muted: hiding(diagnosis, incident.muted ?? []).map(({ rule, by, until, reason }) => ({ rule, by: by.id, until: untilText(until), reason })),
    causes: diagnosis.causes.map((item) => ({
      ...item,
      percent: Math.round(item.confidence * 100),
      guide: catalogue.guides.get(item.rule),
      evidence: item.evidence,
    })),
    fix:
      fix === undefined || cause?.fix === undefined
        ? null
        : {
            ...fix.file,
            commands: commandLines(preview(fix.file.apply, cause.fix.parameters)),
            undo: commandLines(preview(fix.file.rollback, cause.fix.parameters)),
          },
  };
}
