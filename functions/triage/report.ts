import { type Comparison, UNLIKE, WORTH_A_LOOK } from "../rules/compare.ts";
import { collectedText, NOT_ALIKE } from "../rules/compare-report.ts";
import type { Cause, Diagnosis, Evidence, Finding } from "../rules/diagnosis.ts";
import { type PreviewStep, preview } from "../rules/fix.ts";
import type { Catalogue, Fix, Guide } from "../rules/load.ts";
import { type UncheckedGroup, uncheckedGroups } from "../rules/unchecked.ts";
import { hiding, withoutMuted } from "./muted.ts";
import type { FixRun, Incident, IncidentState, Message, Mute, Place, Proposal } from "./ports.ts";
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
const SHOWN = 6;

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
  reason,
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
function byCommand(evidence: readonly Evidence[]): { command: string; lines: string }[] {
  const groups = new Map<string, Evidence[]>();
  for (const item of evidence) groups.set(item.command, [...(groups.get(item.command) ?? []), item]);
  // a list of forty sysctl keys says no more than its beginning
  return [...groups].map(([command, items]) => ({
    command: command.length > 90 ? `${command.slice(0, 89)}…` : command,
    lines: items.map((item) => `${item.line}: ${item.text.slice(0, 300)}`).join("\n"),
  }));
}

/** Paragraphs of a README are hard-wrapped; a chat wraps by itself. */
const firstParagraph = (markdown: string): string => (markdown.split(/\n\s*\n/)[0] ?? "").replaceAll(/\s*\n\s*/g, " ");

/** What became of a proposal, in the place of its buttons. */
export interface Closing {
  readonly icon: string;
  /** "Approved" or "Dismissed", and by whom; empty if nobody did. */
  readonly by: string;
  readonly people: readonly string[];
  readonly words: string;
  readonly detail?: string;
  /** With a button that runs the triage again: where no other message will bring one. */
  readonly again?: boolean;
}

/**
 * The proposal with its buttons and the approvals so far, or with what became of it.
 * @param approvers users and groups who may approve; "*" for everybody
 * @param needed how many people must approve
 * @param breakGlass `approvers` may do so only in an emergency
 */
export function proposalMessage(proposal: Proposal, fix: Fix, approvers: readonly string[], outcome?: Closing, needed = 1, breakGlass = false): Message {
  const { shown, more } = commandTexts(stepsOf(proposal, fix), 1);
  return {
    template: outcome === undefined ? "proposal" : "proposal-closed",
    data: {
      incident: proposal.incident,
      proposal: proposal.id,
      target: proposal.target,
      title: fix.file.title,
      kind: kindOf(proposal),
      fix: fix.file.id,
      risk: fix.file.risk,
      hash: proposal.hash,
      commands: shown[0] ?? "",
      commandsMore: more,
      sideEffects: sideEffectsOf(proposal, fix),
      expiresAt: Math.floor(Date.parse(proposal.expiresAt) / 1000),
      expires: proposal.expiresAt,
      approvers: approvers.filter((id) => id !== "*" && id !== "cli").slice(0, 10),
      anyone: approvers.includes("*"),
      requester: proposal.requester.id,
      approved: approvedBy(proposal),
      approvals: approvedBy(proposal).length,
      needed,
      several: needed > 1,
      emergency: breakGlass,
      ...(outcome === undefined
        ? {}
        : {
            icon: outcome.icon,
            by: flagged(outcome.by, proposal),
            people: outcome.people,
            outcome: outcome.words,
            detail: outcome.detail ?? "",
            again: outcome.again ?? false,
          }),
    },
  };
}

/** That the policy was overridden stays visible. */
const flagged = (by: string, { decisions }: Proposal): string =>
  by === "Approved" && decisions.some(({ breakGlass }) => breakGlass !== undefined) ? "Approved (break-glass)" : by;

const kindOf = ({ kind }: Proposal): string => kind ?? "fix";
const stepsOf = (proposal: Proposal, { file }: Fix): PreviewStep[] => preview(proposal.kind === "rollback" ? file.rollback : file.apply, proposal.parameters);
/** Of a fix its own; a rollback has none in the catalogue but that it undoes the fix. */
const sideEffectsOf = (proposal: Proposal, { file }: Fix): readonly string[] =>
  proposal.kind === "rollback" ? [`It undoes what the fix changed on ${proposal.target}; the fault that the fix was for may come back.`] : file.sideEffects;

/** Who approved, each person once, in order. */
export const approvedBy = ({ decisions }: Pick<Proposal, "decisions">): string[] => [
  ...new Set(decisions.filter((item) => item.decision === "approve").map((item) => item.actor.id)),
];

/** Characters of commands in one block: Slack takes 3,000. */
const COMMAND_TEXT = 2800;
const LONGEST = new RegExp(`[\\s\\S]{1,${COMMAND_TEXT}}`, "g");
/** Blocks of commands in a modal, which may have 100 in all. */
const COMMAND_BLOCKS = 8;

/**
 * Commands for people, in pieces that fit into a block each. What will run is never left out in silence.
 * @param most pieces
 * @returns `more`: how many commands are not shown, or not to their end
 */
export function commandTexts(steps: readonly PreviewStep[], most = COMMAND_BLOCKS): { readonly shown: readonly string[]; readonly more: number } {
  const shown: string[] = [];
  let current = "";
  for (const [index, step] of steps.entries()) {
    // a line that is longer than a block goes on in the next
    const lines = commandLines([step])
      .split("\n")
      .flatMap((line) => line.match(LONGEST) ?? [""]);
    for (const line of lines) {
      if (current !== "" && current.length + 1 + line.length > COMMAND_TEXT) {
        shown.push(current);
        current = "";
        if (shown.length === most) return { shown, more: steps.length - index };
      }
      current = current === "" ? line : `${current}\n${line}`;
    }
  }
  return { shown: current === "" ? shown : [...shown, current], more: 0 };
}

/** What a person who may approve is asked in the modal. */
export interface Asked {
  /** Where its answer goes. */
  readonly place: Place;
  /** The statement that lets this person approve only in an emergency: then a reason is asked for. */
  readonly breakGlass?: { readonly statement: string; readonly channel?: string };
}

/**
 * The modal: all that somebody who decides should have read.
 * @param asked absent: to look at only, without a button that approves
 */
export function reviewMessage(proposal: Proposal, fix: Fix, diagnosis: Diagnosis, approvers: readonly string[], needed: number, asked?: Asked): Message {
  const { file } = fix;
  const cause = diagnosis.causes.find((item) => item.rule === proposal.rule);
  const { shown, more } = commandTexts(stepsOf(proposal, fix));
  const back = commandTexts(preview(file.rollback, proposal.parameters), 2);
  const rollback = proposal.kind === "rollback";
  const typed = asked !== undefined && file.risk === "disruptive";
  const reason = asked?.breakGlass !== undefined;
  const approved = approvedBy(proposal);
  return {
    template: "review",
    data: {
      ask: asked !== undefined,
      windowTitle: asked === undefined ? (rollback ? "Preview rollback" : "Preview fix") : "Review and approve",
      submit: approved.length + 1 >= needed || reason ? "Approve & run" : "Approve",
      metadata: asked === undefined ? "" : metadataOf(proposal, asked.place, typed, reason),
      kind: kindOf(proposal),
      rollback,
      target: proposal.target,
      cluster: proposal.cluster,
      title: file.title,
      risk: file.risk,
      disruptive: file.risk === "disruptive",
      commands: shown,
      commandsMore: more,
      check: rollback ? "" : file.check.trim(),
      cause: cause?.title ?? "",
      back: rollback ? [] : back.shown,
      backMore: rollback ? 0 : back.more,
      backNote: rollback || back.shown.length > 0 ? "" : (file.rollbackNote ?? ""),
      sideEffects: sideEffectsOf(proposal, fix),
      settle: file.verify.settle,
      verifyNote: rollback ? "The node should then be as it was before the fix; what differs is told." : file.verify.note,
      makeItLast: rollback ? [] : file.makeItLast,
      evidence: byCommand(cause?.evidence.slice(0, SHOWN) ?? []),
      evidenceMore: Math.max(0, (cause?.evidence.length ?? 0) - SHOWN),
      requester: proposal.requester.id,
      expiresAt: Math.floor(Date.parse(proposal.expiresAt) / 1000),
      expires: proposal.expiresAt,
      approved,
      approvals: approved.length,
      needed,
      approvers: approvers.filter((id) => id !== "*" && id !== "cli").slice(0, 10),
      anyone: approvers.includes("*"),
      hash: proposal.hash.slice(0, 12),
      typed,
      reason,
      statement: asked?.breakGlass?.statement ?? "",
      channel: asked?.breakGlass?.channel ?? "",
    },
  };
}

/** What the modal remembers until it is sent off; read by functions/slack/listeners/approval-view.ts. */
function metadataOf(proposal: Proposal, place: Place, typed: boolean, reason: boolean): string {
  const asks = typed ? (reason ? "both" : "typed") : reason ? "reason" : "none";
  return [proposal.incident, proposal.id, proposal.hash, place.channel, place.thread ?? "-", asks, proposal.target].join(" ");
}

/** Somebody overrode the policy: told openly, with a button for whoever reviews it; `reviewed`: who has. */
export function breakGlassMessage(
  proposal: Proposal,
  fix: Fix,
  override: { readonly actor: string; readonly reason: string; readonly statement: string },
  reviewers: readonly string[],
  reviewed = "",
): Message {
  return {
    template: "break-glass",
    data: {
      incident: proposal.incident,
      proposal: proposal.id,
      target: proposal.target,
      cluster: proposal.cluster,
      title: fix.file.title,
      kind: kindOf(proposal),
      ...override,
      reviewers: reviewers.filter((id) => id !== "cli").slice(0, 10),
      open: reviewed === "",
      reviewed,
    },
  };
}

/** What happened when the fix ran, and what the second collection says. */
export function outcomeMessage(
  proposal: Proposal,
  fix: Fix,
  run: { outcome: Proposal["state"]; reason: string; steps: FixRun["steps"] },
  verification: { ok: boolean | undefined; words: string },
): Message {
  const back = proposal.kind === "rollback";
  return {
    template: "outcome",
    data: {
      target: proposal.target,
      title: back ? `Rollback of "${fix.file.title}"` : fix.file.title,
      icon: verification.ok === true ? "white_check_mark" : verification.ok === false ? "x" : "grey_question",
      outcome: run.outcome,
      reason: run.reason,
      steps: run.steps
        .map(
          (step) =>
            `${step.exitCode === 0 ? "✓" : `✗ (exit code ${step.exitCode})`} ${step.command}${step.output === "" ? "" : `\n  ${step.output.slice(0, 300)}`}`,
        )
        .join("\n"),
      verification: verification.words,
      verified: verification.ok === true,
      makeItLast: verification.ok === true && !back ? fix.file.makeItLast : [],
      rollback: verification.ok === true || back || run.steps.length === 0 ? "" : commandLines(preview(fix.file.rollback, proposal.parameters)),
      incident: proposal.incident,
    },
  };
}

/** Differences in one message; if there are more, all of them are in a file. */
const SHOWN_DIFFERENCES = 4;
/** Of a comparison that nobody asked for, only what is worth a look is told, and less of it. */
const SHOWN_UNASKED = 3;

/** A pool whose nodes netcheck looked at by itself, because no rule found a cause on one of them. */
export interface Pool {
  readonly name: string;
  /** How many other nodes are in it. */
  readonly others: number;
  /** How many of them netcheck tried to look at. */
  readonly tried: number;
}

/** How much was compared, and what never is. */
function extentText({ facts, suppressed }: Comparison): string {
  const never = suppressed.momentary.length === 0 ? "" : "; connections, neighbours, log lines and counters are not: healthy nodes differ in them, too";
  return `${facts} ${facts === 1 ? "fact was" : "facts were"} compared${never}.`;
}

const NO_PEER =
  "No rule found a cause, and no other node of the pool could be looked at. Compare with a node that can: `/netcheck` with two names and `vs` between them.";

/** Why peers were looked at, what a difference is worth, and what to do with it. */
function unaskedText({ name, others, tried }: Pool, differences: number): string {
  const which = others === tried ? `the other ${others === 1 ? "node" : `${others} nodes`}` : `${tried} of the other ${others} nodes`;
  const looked = `No rule found a cause, so netcheck compared this node with ${which} of the pool ${name}.`;
  if (differences === 0) return looked;
  return `${looked} A difference is a hint, not a proof, and netcheck has no fix for it. Begin with the first: find out who made it, and what for, before you undo it.`;
}

/**
 * A node held against its peers.
 * @param comparison undefined if no peer could be looked at
 * @param problems peers that could not be looked at
 * @param pool undefined if somebody asked for the comparison
 */
export function comparisonMessage(
  incident: Incident,
  comparison: Comparison | undefined,
  problems: readonly { readonly peer: string; readonly reason: string }[],
  pool: Pool | undefined,
): Message {
  const weighty = comparison?.differences.filter(({ score }) => score >= WORTH_A_LOOK) ?? [];
  const shown = pool !== undefined ? weighty.slice(0, SHOWN_UNASKED) : (comparison?.differences ?? []).slice(0, SHOWN_DIFFERENCES);
  const left = (comparison?.differences.length ?? 0) - shown.length;
  const peers = comparison?.peers ?? problems.map(({ peer }) => peer);
  const headline =
    comparison === undefined
      ? "could not be compared"
      : weighty.length === 0
        ? "no difference that matters to traffic"
        : `${weighty.length} ${weighty.length === 1 ? "difference" : "differences"} worth a look`;
  return {
    template: "comparison",
    data: {
      incident: incident.id,
      target: incident.target,
      peers: peers.join(", "),
      icon: weighty.length > 0 ? "mag" : comparison === undefined ? "grey_question" : "white_check_mark",
      headline,
      hint: weighty.length > UNLIKE ? NOT_ALIKE : pool === undefined ? "" : comparison === undefined ? NO_PEER : unaskedText(pool, weighty.length),
      footing: comparison === undefined ? "" : [collectedText(comparison.collected), extentText(comparison)].filter(Boolean).join(" "),
      differences: shown.map(({ what, why, here, there, notIn, change }, index) => ({
        number: index + 1,
        what,
        why,
        here: sideText(here, change === "missing-here" ? notIn : undefined),
        there: sideText(there, change === "only-here" ? notIn : undefined),
        peer: there[0]?.peer ?? (peers.length === 1 ? (peers[0] as string) : "the peers"),
      })),
      // of a comparison that nobody asked for, and that found nothing, no list is kept in the thread
      more: pool !== undefined && weighty.length === 0 ? 0 : left,
      notCompared: (comparison?.notCompared ?? []).slice(0, 4).map(({ fact, reason }) => ({ fact, reason: reason.slice(0, 300) })),
      notComparedMore: Math.max(0, (comparison?.notCompared.length ?? 0) - 4),
      problems,
    },
  };
}

/** The lines of one side under the command that printed them, or where nothing like it was found. */
function sideText(evidence: readonly Evidence[], notIn: string | undefined): string {
  if (evidence.length === 0) return notIn === undefined ? "" : `nothing like it in: ${notIn.slice(0, 90)}`;
  return byCommand(evidence)
    .map(({ command, lines }) => `$ ${command}\n${lines}`)
    .join("\n");
}

/** A sentence with an icon; `again`: with a button that runs the triage again. */
export const noteMessage = (icon: string, text: string, incident = "", again = false): Message => ({
  template: again ? "note-again" : "note",
  data: { icon, text, incident },
});

/** What netcheck can be asked; `problem`: what was wrong with the question, "" if it was none. */
export const helpMessage = (problem: string): Message => ({ template: "help", data: { problem } });

/** For a name that means nothing here. */
/** One meaning of a name: what its button says, and the command (without "/netcheck") that asks for it. */
export interface Choice {
  readonly label: string;
  readonly command: string;
}

/**
 * A name means several things, or nothing: buttons for what it may have meant. `ambiguous`: it means each of these.
 * @param thread the thread of a message that names all of them, instead of one name; the one that is chosen is examined there
 */
export function chooseTargetMessage(name: string, ambiguous: boolean, choices: readonly Choice[], thread = ""): Message {
  // what could not be typed has no button
  const able = choices.filter(({ command }) => TYPEABLE.test(command));
  const shown = able.slice(0, MOST_CHOICES).map((choice, index) => ({ ...choice, index }));
  return { template: "choose-target", data: { name, ambiguous, unknown: !ambiguous, choices: shown, more: choices.length - shown.length, thread } };
}
/** Names of targets with blanks between them; Slack takes 2,000 characters as the value of a button. */
const TYPEABLE = /^[A-Za-z0-9][A-Za-z0-9_.:/ -]{0,1500}$/;
/** Buttons that one message shows: more are not read, and Slack takes 25. */
const MOST_CHOICES = 10;

/** Commands as a person would type them. */
export function commandLines(steps: readonly PreviewStep[]): string {
  return steps
    .map(({ argv, stdin }) => {
      const command = argv.map((word) => (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
      return stdin === undefined ? command : `${command} <<'EOF'\n${stdin.trimEnd()}\nEOF`;
    })
    .join("\n");
}

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
