import { approval, showProposal } from "./approval.ts";
import { type Clearance, clear, leave, limitsOf, takeNode } from "./clearance.ts";
import { collect, examine, loadDiagnosis } from "./collect.ts";
import { auditDraft, type Context, fixOf, proposalOf, SYSTEM, threadOf } from "./context.ts";
import { noteMessage } from "./note.ts";
import { keyOf } from "./proposal.ts";
import { outcomeMessage } from "./proposal-message.ts";
import { type Approved, record } from "./remediate.ts";
import { rootMessage } from "./report.ts";
import { type Outcome, planRun, runOnce } from "./run.ts";
import { byHand, type Undo } from "./undo.ts";
import { type Verification, verifyRollback } from "./verify.ts";

/**
 * Offers the way back from a fix, as a proposal of its own with policy, approval, lock and marker of its own; at most once in an incident. If somebody approves
 * it, runs it at most once and collects again: the node should be as before the fix. The incident stays unresolved whatever comes of it.
 */
export async function rollback(context: Context, approved: Approved, undo: Undo): Promise<string> {
  const { durable, ports, catalogue } = context;
  const { request, target, thread, diagnosis } = approved;
  const decided = await approval(context, {
    kind: "rollback",
    incident: request.incident,
    requester: request.requester,
    target,
    thread,
    diagnosis,
    find: async () => {
      const done = await proposalOf(ports, approved.proposal);
      const fix = catalogue.fixes.get(done.fix);
      // the way back in the catalogue is no longer the one from what was run
      if (fix === undefined || fix.version !== done.version) return undefined;
      return { fix, rule: done.rule, parameters: undo.parameters, of: done.id };
    },
  });
  if (decided.kind === "none") {
    await durable.step("tell-no-rollback", async () => {
      const text = "The fix in the catalogue is another one by now than the one that ran, so netcheck does not offer to undo it. Its commands are above.";
      await ports.chat.post(`${request.incident}/no-rollback`, threadOf(thread), noteMessage("no_entry_sign", text, request.incident, true));
      return null;
    });
  }
  if (decided.kind === "approved") await undoFix(context, approved, decided.proposal);
  return "unresolved";
}

async function undoFix(context: Context, approved: Approved, id: string): Promise<void> {
  const { durable, ports } = context;
  const { target, thread } = approved;
  const { busy, planned, wanted } = await durable.step("rollback-lock", async () => {
    const planned = await planRun(ports, id);
    const { proposal } = planned;
    const wanted = await limitsOf(context, proposal);
    await showProposal(context, proposal, "wrench", "Undoing the fix…");
    const incident = await ports.store.update(approved.request.incident, { state: "fixing" }, []);
    await ports.chat.update(thread, rootMessage(incident, await loadDiagnosis(ports, approved.diagnosis), "undoing the fix"));
    return { busy: await takeNode(ports, proposal), planned, wanted };
  });
  const refused = (reason: string): Outcome => ({ outcome: "refused", reason, steps: [] });
  if (busy !== "") return finish(context, approved, id, refused(busy));
  let clearance: Clearance = { refusal: "", taken: [] };
  let ran = false;
  try {
    clearance = await durable.step("rollback-authorize", async () => clear(context, await proposalOf(ports, id), wanted));
    if (clearance.refusal !== "") return await finish(context, approved, id, refused(clearance.refusal));
    ran = true;
    const outcome = await runOnce(context, "rollback", planned, target);
    ran = outcome.outcome !== "refused";
    await finish(context, approved, id, outcome);
  } finally {
    await leave(durable, ports, "rollback-unlock", { proposal: planned.proposal, wanted, clearance, ran });
  }
}

/** Records the outcome, collects again where something may have changed, and tells what differs from before the fix. */
async function finish(context: Context, approved: Approved, id: string, result: Outcome): Promise<void> {
  const { durable, ports, catalogue } = context;
  const { target, thread, request } = approved;
  const proposal = await durable.step("rollback-finished", async () => {
    const stored = await record(context, id, keyOf("rollback-finished", "rollback", id), result);
    const icons = { succeeded: "leftwards_arrow_with_hook", failed: "x", unknown: "grey_question", refused: "no_entry_sign" };
    const words = {
      succeeded: "The fix was undone.",
      failed: "Undoing it failed.",
      unknown: "It is not known whether it was undone.",
      refused: "It was not undone.",
    };
    await showProposal(context, stored, icons[result.outcome], words[result.outcome], result.reason);
    return stored;
  });
  const fix = fixOf(catalogue, proposal);
  let verification: Verification = { ok: undefined, words: "Nothing was undone on the node.", lingers: false };
  if (result.outcome !== "refused") {
    const { settle } = fix.file.verify;
    if (settle > 0) await durable.wait("rollback-settle", settle);
    const again = await collect(durable, ports, catalogue, request.incident, target, "rollback-verify");
    verification = await durable.step("rollback-verify", async () => {
      if (!again.ok) return { ok: undefined, words: `Could not verify: the node could not be looked at again (${again.reason}).`, lingers: false };
      const { diagnosis } = await examine(ports, catalogue, again.key);
      const verified = verifyRollback(await loadDiagnosis(ports, approved.diagnosis), diagnosis, proposal.rule);
      return { ...verified, words: `Collected again after ${settle} s: ${verified.words}` };
    });
  }
  await durable.step("tell-rollback", async () => {
    const data = { proposal: id, ok: verification.ok ?? null, words: verification.words };
    const incident = await ports.store.update(request.incident, { state: "unresolved" }, [auditDraft(ports, keyOf("verified", "rollback", id), SYSTEM, data)]);
    await ports.chat.post(`${request.incident}/rollback-outcome`, threadOf(thread), outcomeMessage(proposal, fix, result, verification));
    if (result.outcome === "unknown") await ports.chat.post(`${request.incident}/rollback-by-hand`, threadOf(thread), byHand(proposal, fix));
    const note = result.outcome === "succeeded" ? "the fix was undone" : undefined;
    await ports.chat.update(thread, rootMessage(incident, await loadDiagnosis(ports, approved.diagnosis), note));
    return null;
  });
}
