import { showProposal } from "./approval.ts";
import { canonical, sha256 } from "./audit.ts";
import { type Clearance, clear, leave, limitsOf, takeNode } from "./clearance.ts";
import { type Collected, collect, examine, loadCapture, loadDiagnosis } from "./collect.ts";
import { auditDraft, type Context, fixOf, proposalOf, SYSTEM, threadOf } from "./context.ts";
import type { Limit } from "./policy.ts";
import type { MessageRef, Proposal, Target, TriageRequest } from "./ports.ts";
import { outcomeMessage } from "./proposal-message.ts";
import { rootMessage } from "./report.ts";
import { type Outcome, planRun, runOnce } from "./run.ts";
import { sinceFix } from "./since.ts";
import { byHand, type Undo, undoOf } from "./undo.ts";
import { type Verification, verifyFix } from "./verify.ts";

/** An approved proposal on its way to the node. */
export interface Approved {
  readonly request: TriageRequest;
  readonly target: Target;
  readonly thread: MessageRef;
  readonly proposal: string;
  /** Key of the diagnosis that the proposal stands on. */
  readonly diagnosis: string;
}

/** How it ended: the incident's state, and what to undo, if a rollback is to be offered. */
export interface Remedied {
  readonly state: "resolved" | "unresolved";
  readonly undo?: Undo;
}

/** Seconds that symptoms get to go, once, where the cause is gone already: the kernel keeps a failed neighbour for up to 60 s. */
const LINGER_SECONDS = 60;

/**
 * Runs an approved fix: lock, precondition, policy and limits again, then at most once on the node, then settle, collect again and judge. What the policy
 * counts is taken before the run and given back after it.
 */
export async function remediate(context: Context, approved: Approved): Promise<Remedied> {
  const { durable, ports } = context;
  const { target, thread } = approved;
  const id = approved.request.incident;
  const { busy, planned, wanted } = await durable.step("lock", async () => {
    const planned = await planRun(ports, approved.proposal);
    const { proposal } = planned;
    const wanted = await limitsOf(context, proposal);
    await showProposal(context, proposal, "wrench", "Checking once more that the cause is still there…");
    const incident = await ports.store.update(id, { state: "fixing" }, []);
    await ports.chat.update(thread, rootMessage(incident, await loadDiagnosis(ports, approved.diagnosis)));
    return { busy: await takeNode(ports, proposal), planned, wanted };
  });
  if (busy !== "") return finish(context, approved, refused(busy), undefined);
  let clearance: Clearance = { refusal: "", taken: [] };
  let ran = false;
  try {
    const recheck = await collect(durable, ports, context.catalogue, id, target, "recheck");
    clearance = await durable.step("authorize", () => authorize(context, approved, recheck, wanted));
    if (clearance.refusal !== "") return await finish(context, approved, refused(clearance.refusal), undefined);
    ran = true;
    const outcome = await runOnce(context, "fix", planned, target);
    ran = outcome.outcome !== "refused";
    return await finish(context, approved, outcome, recheck.ok ? recheck.key : undefined);
  } finally {
    await leave(durable, ports, "unlock", { proposal: planned.proposal, wanted, clearance, ran });
  }
}

const refused = (reason: string): Outcome => ({ outcome: "refused", reason, steps: [] });

/** Right before the run: is the cause still there with the same parameters, and may it still be run? */
async function authorize(context: Context, approved: Approved, recheck: Collected, wanted: readonly Limit[]): Promise<Clearance> {
  const { ports, catalogue } = context;
  const refuse = (refusal: string): Clearance => ({ refusal, taken: [] });
  if (!recheck.ok) return refuse(`the node could not be looked at again: ${recheck.reason}`);
  const proposal = await proposalOf(ports, approved.proposal);
  const { diagnosis } = await examine(ports, catalogue, recheck.key);
  const { rule } = proposal;
  const cause = diagnosis.causes.find((item) => item.rule === rule);
  const unsure = diagnosis.unchecked.find((item) => item.rule === rule);
  if (unsure !== undefined) return refuse(`whether the cause (${rule}) is still there could not be checked: ${unsure.reason}`);
  if (diagnosis.symptoms.some((item) => item.rule === rule)) return refuse(`another cause explains this one (${rule}) now. Run the triage again`);
  if (cause === undefined) return refuse(`the cause (${rule}) is no longer found on the node`);
  if (cause.fix === undefined) return refuse(`the fix no longer fits what is found on the node: ${cause.fixProblem ?? "its rule offers none any more"}`);
  if (canonical(cause.fix.parameters) !== canonical(proposal.parameters))
    return refuse("the node has changed: the fix would now need other parameters. Run the triage again");
  return clear(context, proposal, wanted);
}

/**
 * Records the outcome, verifies where something may have changed, and tells.
 * @param before key of the capture from right before the run
 */
async function finish(context: Context, approved: Approved, result: Outcome, before: string | undefined): Promise<Remedied> {
  const { durable, ports, catalogue } = context;
  const { target, thread } = approved;
  const id = approved.request.incident;
  const { proposal, at } = await durable.step("fix-finished", async () => {
    const now = ports.now().getTime();
    const stored = await record(context, approved.proposal, "fix-finished", result);
    const icons = { succeeded: "white_check_mark", failed: "x", unknown: "grey_question", refused: "no_entry_sign" };
    const words = { succeeded: "The fix ran.", failed: "The fix failed.", unknown: "It is not known whether the fix ran.", refused: "The fix was not run." };
    await showProposal(context, stored, icons[result.outcome], words[result.outcome], result.reason);
    if (result.outcome !== "refused") {
      const incident = await ports.store.update(id, { state: "verifying" }, []);
      const settling = `letting it settle for ${fixOf(catalogue, stored).file.verify.settle} s`;
      await ports.chat.update(thread, rootMessage(incident, await loadDiagnosis(ports, approved.diagnosis), settling));
    }
    return { proposal: stored, at: now };
  });
  const fix = fixOf(catalogue, proposal);
  const { settle, note } = fix.file.verify;
  let verification: Verification = { ok: undefined, words: "Nothing was changed on the node.", lingers: false };
  if (result.outcome !== "refused") {
    if (settle > 0) await durable.wait("settle", settle);
    const verify = async (phase: string, after: number): Promise<Verification> => {
      const again = await collect(durable, ports, catalogue, id, target, phase);
      return durable.step(phase, () => judge(context, approved, proposal, again, { fixed: at, settle: after, before, note }));
    };
    verification = await verify("verify", settle);
    if (verification.lingers) {
      await durable.wait("linger", LINGER_SECONDS);
      verification = await verify("late-verify", settle + LINGER_SECONDS);
    }
  }
  return durable.step("tell-outcome", async () => {
    const state = verification.ok === true ? "resolved" : "unresolved";
    const undo = undoOf(fix, proposal, result, verification);
    const incident = await ports.store.update(id, { state }, [
      auditDraft(ports, "verified", SYSTEM, { proposal: proposal.id, ok: verification.ok ?? null, words: verification.words }),
    ]);
    await ports.chat.post(`${id}/outcome`, threadOf(thread), outcomeMessage(proposal, fix, result, verification));
    if (result.outcome === "unknown") await ports.chat.post(`${id}/by-hand`, threadOf(thread), byHand(proposal, fix));
    await ports.chat.update(thread, rootMessage(incident, await loadDiagnosis(ports, approved.diagnosis)));
    return { state, ...(undo === undefined ? {} : { undo }) };
  });
}

/** Puts a run's outcome on record. What a step printed is there by its hash alone. */
export async function record({ ports }: Context, id: string, key: string, result: Outcome): Promise<Proposal> {
  const data = {
    proposal: id,
    outcome: result.outcome,
    reason: result.reason,
    steps: result.steps.map((step) => ({ exitCode: step.exitCode, output: sha256(step.output) })),
  };
  return (await ports.store.transition(id, ["approved", "running"], { state: result.outcome }, auditDraft(ports, key, SYSTEM, data))).proposal;
}

/** What the collection after the fix says, without the log lines that are older than the fix. */
async function judge(
  { ports, catalogue }: Context,
  approved: Approved,
  proposal: Proposal,
  again: Collected,
  about: { readonly fixed: number; readonly settle: number; readonly before: string | undefined; readonly note: string },
): Promise<Verification> {
  if (!again.ok) return { ok: undefined, words: `Could not verify: the node could not be looked at again (${again.reason}).`, lingers: false };
  const before = about.before === undefined ? undefined : await loadCapture(ports, about.before);
  const { diagnosis } = await examine(ports, catalogue, again.key, (capture) => sinceFix(capture, about.fixed, about.settle, before));
  const verified = verifyFix(await loadDiagnosis(ports, approved.diagnosis), diagnosis, proposal.rule);
  const note = verified.ok === undefined ? "" : ` ${about.note}`;
  return { ...verified, words: `Collected again after ${about.settle} s: ${verified.words}${note}` };
}
