import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, open, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Job, type JobState, type Target, type Transport, TransportError } from "../triage/ports.ts";

export interface LocalOptions {
  /** Holds a folder per job, so that a job outlives this process and is found again. */
  readonly directory: string;
  /** What a program is started with to run "on" a target: [] for this machine, `nsenter …` for a lab node. */
  readonly enter: (target: Target) => readonly string[];
}

/** In the folder of a job that changes the node. */
const KEEP = "changes";
/** Output beyond this is cut: the collector's own cap is far below. */
const MAX_OUTPUT = 256 * 1024 * 1024;

/**
 * Runs scripts on this machine. The job runs in its own session and writes its output and exit code into its folder, so killing netcheck neither
 * stops nor loses it. The only file that may start processes.
 */
export function localTransport({ directory, enter }: LocalOptions): Transport {
  const running = new Map<string, ChildProcess>();
  const folderOf = (handle: string): string => join(directory, handle);

  async function state(handle: string): Promise<JobState | undefined> {
    const folder = folderOf(handle);
    const code = await readFile(join(folder, "code"), "utf8").catch(() => undefined);
    if (code !== undefined) {
      const [stdout, stderr] = await Promise.all([readText(join(folder, "out")), readText(join(folder, "err"))]);
      return { state: "done", exitCode: Number(code), stdout: stdout.text, stderr: stderr.text, truncated: stdout.cut };
    }
    const pid = Number(await readFile(join(folder, "pid"), "utf8").catch(() => "0"));
    if (pid > 0 && !alive(pid) && !existsSync(join(folder, "code"))) return { state: "lost", reason: "the process on this machine died without an exit code" };
    return undefined;
  }

  return {
    name: "local",

    async start(target: Target, job: Job): Promise<string> {
      const folder = folderOf(job.id);
      await mkdir(directory, { recursive: true });
      try {
        await mkdir(folder, { mode: 0o700 });
      } catch (cause) {
        throw new TransportError(`local: could not start ${job.id}: a job of that name exists in ${directory}`, { retryable: false, cause });
      }
      await writeFile(join(folder, "script"), job.script.text, { mode: 0o600 });
      if (job.script.changes === true) await writeFile(join(folder, KEEP), "");
      const environment: Record<string, string> = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", NETCHECK_nonce: job.nonce, NETCHECK_job: job.id };
      for (const [name, value] of Object.entries(job.parameters)) environment[`NETCHECK_${name}`] = value;
      const prefix = enter(target);
      const limit = existsSync("/usr/bin/timeout") ? ["timeout", "-k", "5", String(job.script.timeoutSeconds)] : [];
      // the wrapper runs out here, the script in there; what it is to run comes as arguments
      const wrapper = 'echo "$$" >"$0/pid"; script=$1; shift; "$@" <"$script" >"$0/out" 2>"$0/err"; echo "$?" >"$0/code.new"; mv "$0/code.new" "$0/code"';
      const child = spawn("/bin/sh", ["-c", wrapper, folder, join(folder, "script"), ...prefix, ...limit, "/bin/sh", "-s"], {
        env: environment,
        detached: true,
        stdio: "ignore",
      });
      try {
        await new Promise<void>((resolve, reject) => child.once("spawn", resolve).once("error", reject));
      } catch (cause) {
        throw new TransportError(`local: could not start ${job.script.name} on ${target.name}: ${(cause as Error).message}`, { retryable: false, cause });
      }
      child.unref();
      running.set(job.id, child);
      child.once("exit", () => running.delete(job.id));
      return job.id;
    },

    async poll(_target: Target, handle: string, waitMs: number): Promise<JobState> {
      const first = await state(handle);
      if (first !== undefined) return first;
      const child = running.get(handle);
      if (child !== undefined) {
        child.ref();
        await Promise.race([new Promise((resolve) => child.once("exit", resolve)), delay(waitMs)]);
        child.unref();
      } else if (!existsSync(folderOf(handle))) {
        throw new TransportError(`local: could not find the job ${handle} in ${directory}`, { retryable: false });
      }
      return (await state(handle)) ?? { state: "running", detail: "running on this machine" };
    },

    async find(_target: Target, jobId: string): Promise<string | undefined> {
      return existsSync(folderOf(jobId)) ? jobId : undefined;
    },

    /** Takes a collection's folder away. That of a fix stays: as long as it is there, no job of that name is started again. */
    async release(_target: Target, handle: string): Promise<void> {
      if (!existsSync(join(folderOf(handle), KEEP))) await rm(folderOf(handle), { recursive: true, force: true });
    },
  };
}

/** What this machine's sh says of a script that it cannot parse; undefined if it can, or there is no sh to ask. Nothing of the script is run. */
export function shellProblem(script: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = execFile("/bin/sh", ["-n"], (error, _stdout, stderr) => {
      resolve(typeof error?.code === "number" ? (stderr.trim().split("\n")[0] ?? "") : undefined);
    });
    child.stdin?.on("error", () => undefined).end(script); // it may stop reading at the first mistake
  });
}

/** A file's text, at most {@link MAX_OUTPUT} bytes. */
async function readText(path: string): Promise<{ text: string; cut: boolean }> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const buffer = Buffer.alloc(Math.min(size, MAX_OUTPUT));
    await file.read(buffer, 0, buffer.length, 0);
    return { text: buffer.toString("utf8"), cut: size > MAX_OUTPUT };
  } finally {
    await file.close();
  }
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
