import type { FixParameters } from "../rules/diagnosis.ts";
import { preview } from "../rules/fix.ts";
import type { Fix } from "../rules/load.ts";
import type { FixFile } from "../rules/schema.ts";
import { commandLines } from "./command-text.ts";
import { noteMessage } from "./note.ts";
import type { FixRun, Message, Proposal } from "./ports.ts";
import { markerOf, type Outcome } from "./run.ts";
import type { Verification } from "./verify.ts";

/** What a rollback would undo: the parameters that its script runs with. Plain JSON. */
export interface Undo {
  readonly parameters: FixParameters;
}

/**
 * Is the way back to be offered, and what of it? After a fix that ran and did not help, and after one that failed half-way: then only for what of it ran.
 * Not where the fix helped, where it is not known whether it ran or helped ("could not look" is no reason to change a node again), or where nothing was changed.
 */
export function undoOf({ file }: Fix, proposal: Proposal, result: Outcome, verification: Verification): Undo | undefined {
  if (file.rollback.length === 0 || verification.ok === true) return undefined;
  if (result.outcome === "succeeded") return verification.ok === false ? { parameters: proposal.parameters } : undefined;
  if (result.outcome !== "failed") return undefined;
  const parameters = undoneParameters(file, proposal.parameters, result.steps);
  return parameters === undefined ? undefined : { parameters };
}

/**
 * The parameters that undo what ran of a fix before it failed: its lists as far as the fix got with them. Undefined if nothing ran, or if that cannot be said
 * with these parameters; then people have to look.
 */
export function undoneParameters(file: FixFile, parameters: FixParameters, steps: FixRun["steps"]): FixParameters | undefined {
  let left = steps.filter(({ exitCode }) => exitCode === 0).length;
  if (left === 0) return undefined;
  const rounds = file.apply.map((step) => {
    const all = preview([step], parameters).length;
    const ran = Math.min(all, left);
    left -= ran;
    return ran;
  });
  const most: Record<string, number> = {};
  for (const { each } of file.rollback) {
    if (each === undefined) continue;
    // the steps of the fix that went over the same lists; what only the way back needs (where a rule stood) goes with them
    const shared = each.filter((name) => file.apply.some((step) => step.each?.includes(name)));
    const ran = shared.length === 0 ? [] : file.apply.flatMap((step, at) => (shared.every((name) => step.each?.includes(name)) ? [rounds[at] as number] : []));
    // what the fix did not go over, it did not get to some of only
    if (ran.length > 0) for (const name of each) most[name] = Math.min(most[name] ?? Number.POSITIVE_INFINITY, Math.max(...ran));
  }
  const kept: Record<string, string | readonly string[]> = {};
  for (const [name, value] of Object.entries(parameters)) {
    const list = typeof value === "string" ? value : value.slice(0, most[name]);
    if (list.length > 0) kept[name] = list;
    else if (file.parameters[name]?.optional !== true) return undefined;
  }
  return kept;
}

/** Of a run whose outcome is not known: what a person can look at on the node, and which commands it is about. Nothing is offered. */
export function byHand(proposal: Proposal, { file }: Fix): Message {
  const back = proposal.kind === "rollback";
  const marker = markerOf(proposal.id);
  const lines = [
    `What to look at on ${proposal.target}: ${marker}/outcome says how it went (no such file: it was never begun; "unfinished": it was cut off), and ${marker}/report what its commands printed.`,
    `These are the commands that may have run:\n${commandLines(preview(back ? file.rollback : file.apply, proposal.parameters))}`,
    ...(back || file.rollback.length === 0 ? [] : [`These would undo them:\n${commandLines(preview(file.rollback, proposal.parameters))}`]),
    "netcheck runs none of them again. Look at the node before you change anything by hand, and then run the triage again.",
  ];
  return noteMessage("grey_question", lines.join("\n\n"), proposal.incident, true);
}
