import type { Diagnosis } from "../rules/diagnosis.ts";
import { type PreviewStep, preview } from "../rules/fix.ts";
import type { Fix } from "../rules/load.ts";
import { commandLines, commandTexts } from "./command-text.ts";
import type { FixRun, Message, Place, Proposal } from "./ports.ts";
import { byCommand, SHOWN } from "./report.ts";

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
      // where the check refused it, nothing was changed
      rollback:
        verification.ok === true || back || run.outcome === "refused" || run.steps.length === 0
          ? ""
          : commandLines(preview(fix.file.rollback, proposal.parameters)),
      incident: proposal.incident,
    },
  };
}
