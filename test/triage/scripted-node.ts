import type { Capture } from "../../functions/facts/capture.ts";
import { replayFix, replayFixStatus } from "../../functions/transports/script.ts";
import type { FixRun, Job, JobState, Target, Transport } from "../../functions/triage/ports.ts";
import { fault, fixed } from "./runbooks.ts";

/** What a job of the workflow is for, by its id. */
export type Phase = "collect" | "recheck" | "verify" | "fix" | "status" | "rollback";

/** What the marker on the node says; "unreadable": the answer to the question is no answer. */
export type Marker = "none" | "unfinished" | FixRun["outcome"] | "unreadable";

/**
 * A node behind a transport: it has the fault until the fix has run, and remembers how often that was. A test makes it misbehave by setting one of its
 * fields.
 */
export class ScriptedNode implements Transport {
  readonly name = "scripted";
  /** What a collection sees. */
  capture: (phase: Phase, jobId: string) => Capture = () => (this.fixRuns > this.rollbackRuns ? fixed : fault);
  /** How often the fix ran here, and the way back. */
  fixRuns = 0;
  rollbackRuns = 0;
  /** All jobs that the node took, in order. */
  readonly jobs = new Map<string, Job>();
  /** Called before a job reaches the node: throws if it shall not. */
  beforeStart: (phase: Phase) => void = () => undefined;
  /** Called when the node has it: throws if the answer gets lost. */
  afterStart: (phase: Phase) => void | Promise<void> = () => undefined;
  /** How a job is doing, where it is not simply done; throws if it cannot be seen. */
  state: (phase: Phase, polls: number) => JobState | undefined = () => undefined;
  /** How the fix goes, and the way back. */
  outcome: FixRun["outcome"] = "succeeded";
  rollbackOutcome: FixRun["outcome"] = "succeeded";
  /** What the fix tells of its commands. */
  steps: (outcome: FixRun["outcome"]) => FixRun["steps"] = stepsOf;
  /** What its run marker says, unless it is the truth. */
  marker: Marker | undefined;
  /** Called when somebody looks for a job. */
  beforeFind: (phase: Phase) => void = () => undefined;
  /** Hides jobs from whoever looks for them. */
  forgets = false;
  readonly #polls = new Map<string, number>();

  async start(_target: Target, job: Job): Promise<string> {
    const phase = phaseOf(job.id);
    this.beforeStart(phase);
    if (this.jobs.has(job.id)) throw new Error(`${job.id} was started twice`);
    this.jobs.set(job.id, job);
    if (phase === "fix" && this.outcome === "succeeded") this.fixRuns += 1;
    if (phase === "rollback" && this.rollbackOutcome === "succeeded") this.rollbackRuns += 1;
    await this.afterStart(phase);
    return job.id;
  }

  async poll(_target: Target, handle: string): Promise<JobState> {
    const job = this.jobs.get(handle);
    if (job === undefined) throw new Error(`no such job: ${handle}`);
    const phase = phaseOf(handle);
    const polls = (this.#polls.get(handle) ?? 0) + 1;
    this.#polls.set(handle, polls);
    const state = this.state(phase, polls);
    if (state !== undefined) return state;
    if (phase === "fix") return printed(replayFix({ outcome: this.outcome, repeated: false, steps: this.steps(this.outcome) }, job.nonce));
    if (phase === "rollback") return printed(replayFix({ outcome: this.rollbackOutcome, repeated: false, steps: stepsOf(this.rollbackOutcome) }, job.nonce));
    if (phase === "status") {
      const runs = handle.includes("-rollback-") ? this.rollbackRuns : this.fixRuns;
      return printed(statusFrame(this.marker ?? (runs > 0 ? "succeeded" : "none"), job.nonce));
    }
    return { ...printed(""), capture: this.capture(phase, handle) };
  }

  async find(_target: Target, jobId: string): Promise<string | undefined> {
    this.beforeFind(phaseOf(jobId));
    return this.jobs.has(jobId) && !this.forgets ? jobId : undefined;
  }

  /** How many jobs of a phase the node took. */
  count(phase: Phase): number {
    return [...this.jobs.keys()].filter((id) => phaseOf(id) === phase).length;
  }
}

export function phaseOf(jobId: string): Phase {
  return (/-(collect|recheck|verify|fix|status|rollback)$/.exec(jobId)?.[1] ?? "collect") as Phase;
}

/** A job that ended well and printed this. */
export function printed(stdout: string) {
  return { state: "done" as const, exitCode: 0, stdout, stderr: "", truncated: false };
}

function stepsOf(outcome: FixRun["outcome"]): FixRun["steps"] {
  if (outcome === "refused" || outcome === "unmarked") return [];
  return [
    {
      command: "iptables-restore --noflush -w 5",
      exitCode: outcome === "failed" ? 4 : 0,
      output: outcome === "failed" ? "Another app is currently holding the xtables lock" : "",
    },
  ];
}

/** What the script "fix-status" prints. */
export function statusFrame(marker: Marker, nonce: string): string {
  return marker === "unreadable" ? "sh: cannot open /var/lib/netcheck/runs: Input/output error\n" : replayFixStatus(marker, nonce);
}
