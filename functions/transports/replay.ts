import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FixRun, type Job, type JobState, type Target, type Transport, TransportError } from "../triage/ports.ts";
import { readCaptureFiles } from "./capture-files.ts";
import { replayFix } from "./script.ts";

export interface ReplayOptions {
  /** Keeps what was "fixed", so that a restart does not break it again. */
  readonly directory: string;
  /** The captures of a target: as it is, and as it is after its fix ran. Undefined for a target that is not replayed. */
  readonly captures: (target: Target) => { readonly before: string; readonly after?: string } | undefined;
}

/**
 * Answers with recorded captures instead of asking a node. A fix changes which capture is played, once per job, as on a real node.
 * What a collection is asked to run does not matter: a capture holds what it holds.
 */
export function replayTransport({ directory, captures }: ReplayOptions): Transport {
  mkdirSync(directory, { recursive: true });
  const markerOf = (target: Target): string => join(directory, `${target.cluster}-${target.name}.fixed-by`);
  const fixedBy = (target: Target): string | undefined => read(markerOf(target));
  return {
    name: "replay",

    async start(target: Target, job: Job): Promise<string> {
      if (captures(target) === undefined)
        throw new TransportError(`replay: could not start ${job.id}: there is no capture of ${target.name}`, { retryable: false });
      writeFileSync(join(directory, job.id), JSON.stringify({ script: job.script.name, nonce: job.nonce, target: target.name }), { flag: "wx" });
      return job.id;
    },

    async poll(target: Target, handle: string): Promise<JobState> {
      const text = read(join(directory, handle));
      const files = captures(target);
      if (text === undefined || files === undefined) throw new TransportError(`replay: could not find the job ${handle}`, { retryable: false });
      const { script, nonce } = JSON.parse(text) as { script: string; nonce: string };
      const done = { state: "done" as const, exitCode: 0, stderr: "", truncated: false };
      if (script.startsWith("fix-") || script.startsWith("rollback-")) {
        const by = fixedBy(target);
        const outcome: FixRun["outcome"] = files.after === undefined || (by !== undefined && by !== handle) ? "refused" : "succeeded";
        if (outcome === "succeeded") writeFileSync(markerOf(target), handle);
        return {
          ...done,
          stdout: replayFix(
            { outcome, repeated: false, steps: [{ command: `(replayed) ${script}`, exitCode: outcome === "succeeded" ? 0 : 1, output: "" }] },
            nonce,
          ),
        };
      }
      const path = fixedBy(target) !== undefined && files.after !== undefined ? files.after : files.before;
      const capture = { ...(await readCaptureFiles(path)), target: target.name, transport: "replay" };
      return { ...done, stdout: "", capture };
    },

    async find(_target: Target, jobId: string): Promise<string | undefined> {
      return read(join(directory, jobId)) === undefined ? undefined : jobId;
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
