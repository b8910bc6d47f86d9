import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { replayFix } from "../../functions/transports/script.ts";
import { type Job, type JobState, type Target, type Transport, TransportError } from "../../functions/triage/ports.ts";
import { fault, fixed } from "./runbooks.ts";
import { phaseOf, printed, statusFrame } from "./scripted-node.ts";

/**
 * A node whose state is in files, so that it outlives netcheck as a real one does. Knows no better than a real one: a fix that is started again runs
 * again, and every run leaves a line in `fix-runs`.
 */
export class FileNode implements Transport {
  readonly name = "file";
  /** Whether the fix cures anything. */
  helps = true;
  readonly #directory: string;
  readonly #reached: (point: string) => void;

  /** @param reached called between the things that happen on the way to the node */
  constructor(directory: string, reached: (point: string) => void) {
    this.#directory = directory;
    this.#reached = reached;
    mkdirSync(directory, { recursive: true });
  }

  /** The jobs that ran the fix, one entry a run. */
  get fixRuns(): string[] {
    return this.#runs("fix");
  }

  /** The same of the way back. */
  get rollbackRuns(): string[] {
    return this.#runs("rollback");
  }

  #runs(kind: "fix" | "rollback"): string[] {
    const file = join(this.#directory, `${kind}-runs`);
    return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  }

  async start(_target: Target, job: Job): Promise<string> {
    appendFileSync(join(this.#directory, job.id), "");
    this.#reached(`node took ${job.id}`);
    const phase = phaseOf(job.id);
    if (phase === "fix" || phase === "rollback") {
      appendFileSync(join(this.#directory, `${phase}-runs`), `${job.id}\n`);
      this.#reached(`node ran the ${phase}`);
    }
    writeFileSync(join(this.#directory, job.id), JSON.stringify({ nonce: job.nonce }));
    return job.id;
  }

  async poll(_target: Target, handle: string): Promise<JobState> {
    const file = join(this.#directory, handle);
    if (!existsSync(file)) throw new TransportError(`file: there is no job ${handle}`, { retryable: false });
    const text = readFileSync(file, "utf8");
    const phase = phaseOf(handle);
    if (phase === "collect" || phase === "recheck" || phase === "verify")
      return { ...printed(""), capture: this.fixRuns.length === 0 || !this.helps ? fault : fixed };
    if (text === "") return { state: "lost", reason: "the node took the job and never reported" };
    const { nonce } = JSON.parse(text) as { nonce: string };
    if (phase === "status")
      return printed(statusFrame(this.#runs(handle.includes("-rollback-") ? "rollback" : "fix").length === 0 ? "none" : "succeeded", nonce));
    return printed(replayFix({ outcome: "succeeded", repeated: false, steps: [{ command: "iptables-restore", exitCode: 0, output: "" }] }, nonce));
  }

  async find(_target: Target, jobId: string): Promise<string | undefined> {
    return existsSync(join(this.#directory, jobId)) ? jobId : undefined;
  }
}
