import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FixRun, type Job, type JobState, type Target, type Transport, TransportError } from "../triage/ports.ts";
import { readCaptureFiles } from "./capture-files.ts";
import { replayFix, replayFixStatus, scripts } from "./script.ts";

export interface ReplayOptions {
  /** Keeps what was "fixed", so that a restart does not break it again. */
  readonly directory: string;
  /** The captures of a target: as it is, and as it is after its fix ran. Undefined for a target that is not replayed. */
  readonly captures: (target: Target) => { readonly before: string; readonly after?: string } | undefined;
}

/** A job as it is kept: what a fix came to is settled when it starts. */
interface Kept {
  readonly script: string;
  readonly nonce: string;
  readonly target: string;
  /** The job that a status job asks about. */
  readonly run: string;
  outcome?: FixRun["outcome"];
}

const JOB = /^[A-Za-z0-9_-]{1,80}$/;

/**
 * Answers with recorded captures instead of asking a node. A fix changes which capture is played, once per job, as on a real node.
 * What a collection is asked to run does not matter: a capture holds what it holds.
 */
export function replayTransport({ directory, captures }: ReplayOptions): Transport {
  mkdirSync(directory, { recursive: true });
  const markerOf = (target: Target): string => join(directory, `${[target.cluster, target.name].map(encodeURIComponent).join("+")}.fixed-by`);
  const jobOf = (id: string): Kept | undefined => {
    const text = JOB.test(id) ? read(join(directory, id)) : undefined;
    return text === undefined ? undefined : (JSON.parse(text) as Kept);
  };
  return {
    name: "replay",

    async start(target: Target, job: Job): Promise<string> {
      const files = captures(target);
      if (files === undefined) throw new TransportError(`replay: could not start ${job.id}: there is no capture of ${target.name}`, { retryable: false });
      if (jobOf(job.id) !== undefined) throw new TransportError(`replay: could not start ${job.id}: a job of that name exists`, { retryable: false });
      const { name } = job.script;
      const kept: Kept = { script: name, nonce: job.nonce, target: target.name, run: job.parameters["run"] ?? "" };
      if (/^(?:fix|rollback)-/.test(name) && name !== scripts.fixStatus.name) {
        const undo = name.startsWith("rollback-");
        const possible = files.after !== undefined && undo === (read(markerOf(target)) !== undefined);
        kept.outcome = possible ? "succeeded" : "refused";
      }
      // the change first: a run that says it succeeded did
      if (kept.outcome === "succeeded" && name.startsWith("rollback-")) rmSync(markerOf(target), { force: true });
      else if (kept.outcome === "succeeded") writeFileSync(markerOf(target), job.id);
      writeFileSync(join(directory, job.id), JSON.stringify(kept), { flag: "wx" });
      return job.id;
    },

    async poll(target: Target, handle: string): Promise<JobState> {
      const job = jobOf(handle);
      const files = captures(target);
      if (job === undefined || files === undefined) throw new TransportError(`replay: could not find the job ${handle}`, { retryable: false });
      const done = { state: "done" as const, exitCode: 0, stderr: "", truncated: false };
      if (job.script === scripts.fixStatus.name) return { ...done, stdout: replayFixStatus(jobOf(job.run)?.outcome ?? "none", job.nonce) };
      if (job.outcome !== undefined) {
        const steps = [{ command: `(replayed) ${job.script}`, exitCode: job.outcome === "succeeded" ? 0 : 1, output: "" }];
        return { ...done, stdout: replayFix({ outcome: job.outcome, repeated: false, steps }, job.nonce) };
      }
      const path = read(markerOf(target)) !== undefined && files.after !== undefined ? files.after : files.before;
      const capture = { ...(await readCaptureFiles(path)), target: target.name, transport: "replay" };
      return { ...done, stdout: "", capture };
    },

    async find(_target: Target, jobId: string): Promise<string | undefined> {
      return jobOf(jobId) === undefined ? undefined : jobId;
    },

    /** Forgets a collection. What a fix came to stays: it is what its marker says. */
    async release(_target: Target, handle: string): Promise<void> {
      if (JOB.test(handle) && jobOf(handle)?.outcome === undefined) rmSync(join(directory, handle), { force: true });
    },
  };
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
