import type { Capture } from "../../functions/facts/capture.ts";
import { replayFix } from "../../functions/transports/script.ts";
import { type FixRun, type Job, type JobState, type Target, type Transport, TransportError } from "../../functions/triage/ports.ts";
import { printed, statusFrame } from "../triage/scripted-node.ts";

/** How a fix goes on the node. `silent`: it runs and never reports. */
export type Course = "succeeded" | "useless" | "failed" | "refused" | "unmarked" | "silent";
/** How the way to the node fails. `late`: done, but the service knows nothing of it for the next look. */
export type NodeTrouble = "throttled" | "failed" | "lost" | "late";

interface Kept {
  readonly job: Job;
  readonly kind: "fix" | "rollback" | "status" | "collect";
  /** Looks for which it is not there yet. */
  hidden: number;
  /** Looks for which it runs. */
  running: number;
}

/**
 * A node behind a service. It knows no better than a real one without a marker: a fix that is started again runs again, and every run is counted. What it reports
 * is the truth as far as it reports at all.
 */
export class ChaosNode implements Transport {
  readonly name = "replay";
  /** Every run of something that changes the node, in order. */
  readonly runs: { readonly id: string; readonly kind: "fix" | "rollback"; readonly at: number }[] = [];
  course: Course = "succeeded";
  /** What a collection sees: with the fault, and without. */
  readonly #fault: Capture;
  readonly #cured: Capture;
  /** Asked before each call: "start fix", "poll collect", "find status", … */
  trouble: (call: string) => NodeTrouble | undefined = () => undefined;
  readonly #jobs = new Map<string, Kept>();
  readonly #now: () => number;
  #broken = true;

  constructor(fault: Capture, cured: Capture, now: () => number) {
    this.#fault = fault;
    this.#cured = cured;
    this.#now = now;
  }

  /** The fault is there. */
  get broken(): boolean {
    return this.#broken;
  }

  async start(_target: Target, job: Job): Promise<string> {
    const kind = kindOf(job);
    const trouble = this.trouble(`start ${kind}`);
    if (trouble === "throttled") throw new TransportError("chaos: could not start: Rate exceeded", { retryable: true });
    if (trouble === "failed") throw new Error("read ECONNRESET");
    if (kind === "fix" || kind === "rollback") {
      // a check that refuses, or a marker that cannot be written, comes before anything is changed
      if (this.course !== "refused" && this.course !== "unmarked") {
        this.runs.push({ id: job.id, kind, at: this.#now() });
        if (this.course === "succeeded" || this.course === "silent") this.#broken = kind === "rollback";
      }
    }
    this.#jobs.set(job.id, { job, kind, hidden: trouble === "late" ? 1 : 0, running: job.id.endsWith("-recheck") ? 1 : 0 });
    if (trouble === "lost") throw new Error("socket hang up");
    return job.id;
  }

  async poll(_target: Target, handle: string): Promise<JobState> {
    const kept = this.#jobs.get(handle);
    if (kept === undefined) throw new TransportError(`chaos: there is no job ${handle}`, { retryable: false });
    const { job, kind } = kept;
    const trouble = this.trouble(`poll ${kind}`);
    if (trouble === "late") return { state: "running", detail: "" };
    if (trouble === "lost") return { state: "lost", reason: "it timed out" };
    if (trouble !== undefined) throw new TransportError("chaos: could not look: Rate exceeded", { retryable: true });
    // between the approval and the run some seconds pass, and much may change in them
    if (kept.running-- > 0) return { state: "running", detail: "" };
    if (kind === "collect") return { ...printed(""), capture: this.#broken ? this.#fault : this.#cured };
    if (kind === "status") return printed(statusFrame(this.#marker(job.parameters["run"] ?? ""), job.nonce));
    if (this.course === "silent") return { state: "lost", reason: "it was started and never reported" };
    return printed(replayFix({ outcome: outcomeOf(this.course), repeated: false, steps: [] }, job.nonce));
  }

  async find(_target: Target, jobId: string): Promise<string | undefined> {
    const kept = this.#jobs.get(jobId);
    const trouble = this.trouble(`find ${kept?.kind ?? "nothing"}`);
    if (trouble !== undefined) throw new TransportError("chaos: could not look: Rate exceeded", { retryable: true });
    // a look for a collection may miss one that has only just begun; of anything else the real transports look until they know
    if (kept !== undefined && kept.kind === "collect" && kept.hidden > 0) {
      kept.hidden -= 1;
      return undefined;
    }
    return kept === undefined ? undefined : jobId;
  }

  #marker(run: string): "none" | "unfinished" | FixRun["outcome"] {
    const ran = this.#jobs.get(run);
    if (ran === undefined) return "none";
    return this.course === "silent" ? "unfinished" : outcomeOf(this.course);
  }
}

function outcomeOf(course: Course): FixRun["outcome"] {
  return course === "useless" || course === "silent" ? "succeeded" : course;
}

function kindOf({ script }: Job): Kept["kind"] {
  if (script.name === "fix-status") return "status";
  if (script.name.startsWith("fix-")) return "fix";
  return script.name.startsWith("rollback-") ? "rollback" : "collect";
}
