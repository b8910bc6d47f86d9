import { release } from "./collect.ts";
import { type Context, fixOf, proposalOf } from "./context.ts";
import { fixPlan, scriptParameters } from "./plan.ts";
import { type FixRun, INTERRUPTED, type Job, type Ports, type Proposal, type ProposalState, type Target } from "./ports.ts";

/** How a run on the node went. */
export interface Outcome {
  readonly outcome: Extract<ProposalState, "succeeded" | "failed" | "unknown" | "refused">;
  /** A clause for people; "" if there is nothing to say. */
  readonly reason: string;
  /** What the node told; none where only its marker was read. */
  readonly steps: FixRun["steps"];
}

/** Where a script keeps what is known of its run, on the node. */
export const markerOf = (proposal: string): string => `/var/lib/netcheck/runs/${proposal}`;

/** What a run needs and a replay must see again: made in a step. */
export interface PlannedRun {
  readonly proposal: Proposal;
  readonly nonce: string;
  readonly statusNonce: string;
}
export async function planRun(ports: Ports, id: string): Promise<PlannedRun> {
  return { proposal: await proposalOf(ports, id), nonce: ports.random(32), statusNonce: ports.random(32) };
}

/**
 * Runs the fix of a proposal, or its way back, at most once. A run whose outcome is not known is looked up (by job, then by its marker on the node) and
 * otherwise reported as unknown; it never runs again.
 * @param kind names the steps, and says which commands of the fix
 * @param planned the job and the marker on the node have the id of its proposal
 */
export async function runOnce(context: Context, kind: "fix" | "rollback", { proposal, nonce, statusNonce }: PlannedRun, target: Target): Promise<Outcome> {
  const { durable, ports, catalogue } = context;
  const transport = ports.transport(target.transport);
  const { id } = proposal;
  const fix = fixOf(catalogue, proposal);
  const job: Job = { id, script: ports.scripts.fix(fixPlan(fix, kind)), parameters: scriptParameters(fix, proposal.parameters), nonce };
  const ask = (lost: string, ended = false): Promise<Outcome> => askMarker(context, kind, id, target, lost, statusNonce, ended);
  let handle: string | undefined;
  try {
    handle = await durable.once(`${kind}-start`, () => transport.start(target, job));
  } catch (error) {
    const { name, message } = error as Error;
    if (name === "TransportError") return { outcome: "failed", reason: `it was not started: ${message}`, steps: [] };
    const interrupted = name === INTERRUPTED ? `netcheck was interrupted while it started the ${kind}` : message;
    let found: string | null;
    try {
      found = await durable.step(`${kind}-find`, async () => (await transport.find(target, job.id)) ?? null);
    } catch (problem) {
      return ask(`${interrupted}; the run could not be looked up (${(problem as Error).message})`);
    }
    if (found === null) return { outcome: "unknown", reason: `${interrupted}; no trace of a run was found. It is not run again`, steps: [] };
    handle = found;
  }
  const started = handle;
  let result: Outcome | { lost: string; ended?: boolean };
  try {
    result = await durable.poll<Outcome | { lost: string; ended?: boolean }>(`${kind}-poll`, 60, async () => {
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
    await release(durable, ports, transport, target, started, kind);
  } catch (error) {
    // not released: it may be running still, and a fix that is stopped in the middle is worse than what is left behind, which expires
    result = { lost: (error as Error).message };
  }
  return "outcome" in result ? result : ask(result.lost, result.ended === true);
}

/** The last resort: what does the run marker on the node say? `ended`: the script has surely come to its end. */
async function askMarker(
  { durable, ports }: Context,
  kind: "fix" | "rollback",
  id: string,
  target: Target,
  lost: string,
  nonce: string,
  ended: boolean,
): Promise<Outcome> {
  const transport = ports.transport(target.transport);
  const marker = kind === "fix" ? "marker" : "rollback-marker";
  try {
    const job: Job = { id: `${id}-status`, script: ports.scripts.fixStatus, parameters: { run: id }, nonce };
    // read-only: unlike the fix it may be started again after a crash
    const handle = await durable.step(`${marker}-start`, async () => (await transport.find(target, job.id, true)) ?? (await transport.start(target, job)));
    const status = await durable
      .poll(`${marker}-poll`, 20, async () => {
        const state = await transport.poll(target, handle, 8000);
        if (state.state === "running") return { done: false, afterSeconds: 2 };
        return { done: true, value: state.state === "done" ? ports.scripts.readFixStatus(state.stdout, nonce) : "unreadable" };
      })
      .finally(() => release(durable, ports, transport, target, handle, marker));
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
