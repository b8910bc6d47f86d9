import type { Diagnosis } from "../rules/diagnosis.ts";
import { canonical, sha256 } from "./audit.ts";
import { type Collected, collect, examine, loadDiagnosis, release } from "./collect.ts";
import { auditDraft, type Context, fixOf, proposalOf, SYSTEM, threadOf } from "./context.ts";
import { fixPlan, scriptParameters } from "./plan.ts";
import { enough, mayApprove } from "./policy.ts";
import { type FixRun, INTERRUPTED, type Job, type MessageRef, type Proposal, type ProposalState, type Target, type TriageRequest } from "./ports.ts";
import { outcomeMessage, proposalMessage, rootMessage } from "./report.ts";

/** An approved proposal on its way to the node. */
export interface Approved {
  readonly request: TriageRequest;
  readonly target: Target;
  readonly thread: MessageRef;
  readonly proposal: string;
  /** Key of the diagnosis that the proposal stands on. */
  readonly diagnosis: string;
}

interface Outcome {
  readonly outcome: Extract<ProposalState, "succeeded" | "failed" | "unknown" | "refused">;
  readonly reason: string;
  readonly steps: FixRun["steps"];
}

/**
 * Runs an approved fix: lock, precondition and policy again, then at most once on the node, then settle, collect again and judge. Returns the incident's
 * last state. A run whose outcome is not known is looked up (by job, then by its marker on the node) and otherwise reported as unknown; it never runs again.
 */
export async function remediate(context: Context, approved: Approved): Promise<string> {
  const { durable, ports } = context;
  const { target, thread } = approved;
  const id = approved.request.incident;
  const locked = await durable.step("lock", async () => {
    const proposal = await proposalOf(ports, approved.proposal);
    await showProposal(context, proposal, "wrench", "Checking once more that the cause is still there…");
    const incident = await ports.store.update(id, { state: "fixing" }, []);
    await ports.chat.update(thread, rootMessage(incident, await loadDiagnosis(ports, approved.diagnosis)));
    return ports.store.lock(`${target.cluster}/${target.name}`, approved.proposal);
  });
  if (!locked) return finish(context, approved, { outcome: "refused", reason: "another fix is running on this node", steps: [] });
  try {
    const recheck = await collect(durable, ports, context.catalogue, id, target, "recheck");
    const refusal = await durable.step("authorize", () => authorize(context, approved, recheck));
    if (refusal !== "") return await finish(context, approved, { outcome: "refused", reason: refusal, steps: [] });
    const outcome = await runFix(context, approved);
    return await finish(context, approved, outcome);
  } finally {
    await durable.step("unlock", async () => {
      await ports.store.unlock(`${target.cluster}/${target.name}`, approved.proposal);
      return null;
    });
  }
}

/** Right before the run: is the cause still there with the same parameters, and may they still approve it? "" if so, else why not. */
async function authorize({ ports, catalogue }: Context, approved: Approved, recheck: Collected): Promise<string> {
  if (!recheck.ok) return `the node could not be looked at again: ${recheck.reason}`;
  const proposal = await proposalOf(ports, approved.proposal);
  const fix = fixOf(catalogue, proposal);
  const { diagnosis } = await examine(ports, catalogue, recheck.key);
  const cause = diagnosis.causes.find((item) => item.rule === proposal.rule);
  if (cause?.fix === undefined) return `the cause (${proposal.rule}) is no longer found on the node`;
  if (canonical(cause.fix.parameters) !== canonical(proposal.parameters))
    return "the node has changed: the fix would now need other parameters. Run the triage again";
  const evidence = (await loadDiagnosis(ports, approved.diagnosis)).causes.find((item) => item.rule === proposal.rule)?.evidence;
  const bound = { fix: proposal.fix, version: fix.version, parameters: proposal.parameters, target: proposal.target, cluster: proposal.cluster, evidence };
  if (sha256(canonical(bound)) !== proposal.hash) return "the fix, its parameters or its evidence are not what was approved";
  const config = await ports.config();
  const subject = { cluster: proposal.cluster, target: proposal.target, fix: proposal.fix, requester: proposal.requester };
  const standing = [];
  let needed = 1;
  for (const decision of proposal.decisions) {
    const ruling = await mayApprove(config, subject, decision.actor, (group) => ports.members(group));
    if (!ruling.ok || decision.hash !== proposal.hash) continue;
    standing.push(decision);
    needed = Math.max(needed, ruling.approvalsNeeded);
  }
  if (!enough(standing, needed)) return "the policy no longer allows it: an approval does not count any more";
  const data = { proposal: proposal.id, hash: proposal.hash, fix: proposal.fix, version: fix.version, parameters: proposal.parameters };
  const { applied, proposal: now } = await ports.store.transition(
    proposal.id,
    ["approved"],
    { state: "running" },
    auditDraft(ports, "fix-started", SYSTEM, data),
  );
  return applied || now.state === "running" ? "" : `the proposal is ${now.state}`;
}

async function runFix(context: Context, approved: Approved): Promise<Outcome> {
  const { durable, ports, catalogue } = context;
  const { target } = approved;
  const transport = ports.transport(target.transport);
  const { nonce, statusNonce, proposal } = await durable.step("fix-plan", async () => ({
    nonce: ports.random(32),
    statusNonce: ports.random(32),
    proposal: await proposalOf(ports, approved.proposal),
  }));
  const fix = fixOf(catalogue, proposal);
  const job: Job = { id: proposal.id, script: ports.scripts.fix(fixPlan(fix)), parameters: scriptParameters(fix, proposal.parameters), nonce };
  let handle: string | undefined;
  try {
    handle = await durable.once("fix-start", () => transport.start(target, job));
  } catch (error) {
    const { name, message } = error as Error;
    if (name === "TransportError") return { outcome: "failed", reason: `it was not started: ${message}`, steps: [] };
    const interrupted = name === INTERRUPTED ? "netcheck was interrupted while it started the fix" : message;
    let found: string | null;
    try {
      found = await durable.step("fix-find", async () => (await transport.find(target, job.id)) ?? null);
    } catch (problem) {
      return askMarker(context, approved, `${interrupted}; the run could not be looked up (${(problem as Error).message})`, statusNonce);
    }
    if (found === null) {
      return {
        outcome: "unknown",
        reason: `${interrupted}; no trace of a run was found. It is not run again`,
        steps: [],
      };
    }
    handle = found;
  }
  const started = handle;
  let result: Outcome | { lost: string; ended?: boolean };
  try {
    result = await durable.poll<Outcome | { lost: string; ended?: boolean }>("fix-poll", 60, async () => {
      const state = await transport.poll(target, started, 8000);
      if (state.state === "running") return { done: false, afterSeconds: 2 };
      if (state.state === "not-run") return { done: true, value: { outcome: "failed", reason: `it never ran: ${state.reason}`, steps: [] } };
      if (state.state === "lost") return { done: true, value: { lost: state.reason } };
      try {
        return { done: true, value: outcomeOf(ports.scripts.readFix(state.stdout, nonce)) };
      } catch (error) {
        const said = state.stderr.trim().split("\n")[0] ?? "";
        const reason = `${(error as Error).message} (exit code ${state.exitCode}${said === "" ? "" : `: ${said.slice(0, 200)}`})`;
        return { done: true, value: { lost: reason, ended: true } };
      }
    });
    await release(durable, ports, transport, target, started, "fix");
  } catch (error) {
    // not released: it may be running still, and a fix that is stopped in the middle is worse than what is left behind, which expires
    result = { lost: (error as Error).message };
  }
  return "outcome" in result ? result : askMarker(context, approved, result.lost, statusNonce, result.ended === true);
}

/** The last resort: what does the run marker on the node say? `ended`: the script has surely come to its end. */
async function askMarker({ durable, ports }: Context, approved: Approved, lost: string, nonce: string, ended = false): Promise<Outcome> {
  const transport = ports.transport(approved.target.transport);
  try {
    const job: Job = { id: `${approved.proposal}-status`, script: ports.scripts.fixStatus, parameters: { run: approved.proposal }, nonce };
    // read-only: unlike the fix it may be started again after a crash
    const handle = await durable.step(
      "marker-start",
      async () => (await transport.find(approved.target, job.id, true)) ?? (await transport.start(approved.target, job)),
    );
    const status = await durable
      .poll("marker-poll", 20, async () => {
        const state = await transport.poll(approved.target, handle, 8000);
        if (state.state === "running") return { done: false, afterSeconds: 2 };
        return { done: true, value: state.state === "done" ? ports.scripts.readFixStatus(state.stdout, nonce) : "unreadable" };
      })
      .finally(() => release(durable, ports, transport, approved.target, handle, "marker"));
    if (status === "succeeded" || status === "failed" || status === "refused")
      return { outcome: status, reason: `${lost}; the node's run marker says it ${status}`, steps: [] };
    // the script makes its marker before it changes anything
    if (status === "none" && ended) return { outcome: "failed", reason: `it never ran: ${lost}; there is no run marker on the node`, steps: [] };
    return { outcome: "unknown", reason: `${lost}; the node's run marker says: ${status}. It is not run again`, steps: [] };
  } catch (error) {
    return { outcome: "unknown", reason: `${lost}; the run marker could not be read (${(error as Error).message}). It is not run again`, steps: [] };
  }
}

function outcomeOf(run: FixRun): Outcome {
  const failed = run.steps.find((step) => step.exitCode !== 0);
  switch (run.outcome) {
    case "succeeded":
      return { outcome: "succeeded", reason: "", steps: run.steps };
    case "failed":
      return { outcome: "failed", reason: `\`${failed?.command ?? "a step"}\` failed with exit code ${failed?.exitCode ?? "?"}`, steps: run.steps };
    case "refused":
      return { outcome: "refused", reason: "the precondition no longer held on the node", steps: run.steps };
    case "unmarked":
      return { outcome: "refused", reason: "no run marker could be written under /var/lib/netcheck/runs on the node", steps: run.steps };
  }
}

/** Records the outcome, verifies where something may have changed, and tells. */
async function finish(context: Context, approved: Approved, result: Outcome): Promise<string> {
  const { durable, ports, catalogue } = context;
  const { target, thread } = approved;
  const id = approved.request.incident;
  const proposal = await durable.step("fix-finished", async () => {
    const data = {
      proposal: approved.proposal,
      outcome: result.outcome,
      reason: result.reason,
      steps: result.steps.map((step) => ({ exitCode: step.exitCode, output: sha256(step.output) })),
    };
    const draft = auditDraft(ports, "fix-finished", SYSTEM, data);
    const { proposal: stored } = await ports.store.transition(approved.proposal, ["approved", "running"], { state: result.outcome }, draft);
    const icons = { succeeded: "white_check_mark", failed: "x", unknown: "grey_question", refused: "no_entry_sign" };
    const words = { succeeded: "The fix ran.", failed: "The fix failed.", unknown: "It is not known whether the fix ran.", refused: "The fix was not run." }[
      result.outcome
    ];
    await showProposal(context, stored, icons[result.outcome], words, result.reason);
    return stored;
  });
  const fix = fixOf(catalogue, proposal);
  const touched = result.outcome === "succeeded" || result.outcome === "failed" || result.outcome === "unknown";
  let verification: { ok: boolean | undefined; words: string } = { ok: undefined, words: "Nothing was changed on the node." };
  if (touched) {
    await durable.step("tell-verifying", async () => {
      const incident = await ports.store.update(id, { state: "verifying" }, []);
      await ports.chat.update(
        thread,
        rootMessage(incident, await loadDiagnosis(ports, approved.diagnosis), `letting it settle for ${fix.file.verify.settle} s`),
      );
      return null;
    });
    if (fix.file.verify.settle > 0) await durable.wait("settle", fix.file.verify.settle);
    const again = await collect(durable, ports, catalogue, id, target, "verify");
    verification = await durable.step("verify", () => verify(context, approved, proposal, again));
  }
  return durable.step("tell-outcome", async () => {
    const state = verification.ok === true ? "resolved" : "unresolved";
    const incident = await ports.store.update(id, { state }, [
      auditDraft(ports, "verified", SYSTEM, { proposal: proposal.id, ok: verification.ok ?? null, words: verification.words }),
    ]);
    await ports.chat.post(`${id}/outcome`, threadOf(thread), outcomeMessage(proposal, fix, result, verification));
    await ports.chat.update(thread, rootMessage(incident, await loadDiagnosis(ports, approved.diagnosis)));
    return state;
  });
}

/** The cause must be surely gone, and nothing new must be there. */
async function verify(
  { ports, catalogue }: Context,
  approved: Approved,
  proposal: Proposal,
  again: Collected,
): Promise<{ ok: boolean | undefined; words: string }> {
  const { settle, note } = fixOf(catalogue, proposal).file.verify;
  if (!again.ok) return { ok: undefined, words: `Could not verify: the node could not be looked at again (${again.reason}).` };
  const { diagnosis } = await examine(ports, catalogue, again.key);
  const before = await loadDiagnosis(ports, approved.diagnosis);
  const unsure = diagnosis.unchecked.find((item) => item.rule === proposal.rule);
  // a cause that another one explains now is listed among the symptoms: it is there all the same
  if ([...diagnosis.causes, ...diagnosis.symptoms].some((finding) => finding.rule === proposal.rule))
    return { ok: false, words: `Collected again after ${settle} s: the cause is still there. ${note}` };
  if (unsure !== undefined) return { ok: undefined, words: `Collected again after ${settle} s, but the cause could not be checked: ${unsure.reason}.` };
  const fresh = newCauses(before, diagnosis);
  if (fresh.length > 0) return { ok: false, words: `The cause is gone, but something new was found: ${fresh.join("; ")}.` };
  return { ok: true, words: `Collected again after ${settle} s: the cause is gone. ${note}` };
}

const newCauses = (before: Diagnosis, after: Diagnosis): string[] =>
  after.causes.filter((cause) => !before.causes.some((item) => item.rule === cause.rule)).map((cause) => cause.title);

async function showProposal({ ports, catalogue }: Context, proposal: Proposal, icon: string, words: string, detail = ""): Promise<void> {
  if (proposal.message === undefined) return;
  const people = proposal.decisions.filter((item) => item.decision === "approve").map((item) => item.actor.id);
  await ports.chat.update(proposal.message, proposalMessage(proposal, fixOf(catalogue, proposal), [], { icon, by: "Approved", people, words, detail }));
}
