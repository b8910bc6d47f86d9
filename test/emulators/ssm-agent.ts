import { spawn } from "node:child_process";
import type { BoundStep } from "./ssm-document.ts";

/** How a script ended. `code` 137 = stopped by the agent (time limit or CancelCommand), as the real agent reports it. */
export interface StepRun {
  code: number;
  ended: "exited" | "timed out" | "cancelled";
  stdout: Buffer;
  stderr: Buffer;
}

/** The script is written to a private directory on the node and run there by its own #! line, or by sh. */
const runner = `umask 077
directory=$(mktemp -d) || exit 1
cat >"$directory/_script.sh" && chmod 700 "$directory/_script.sh"
cd "$directory" && sh -c "$directory/_script.sh" </dev/null
code=$?
cd / && rm -rf "$directory"
exit "$code"`;

/** Run one step on the node that `enter` leads to. The environment is an agent's: bare, with what the step adds. */
export function runStep(enter: readonly string[], instanceId: string, step: BoundStep, cancelled: AbortSignal): Promise<StepRun> {
  const argv = [...enter, "sh", "-c", runner];
  const environment = {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    LANG: "C.UTF-8",
    AWS_SSM_INSTANCE_ID: instanceId,
    AWS_SSM_REGION_NAME: "us-east-1",
  };
  return new Promise((resolve) => {
    const child = spawn(argv[0] ?? "", argv.slice(1), { env: { ...environment, ...step.environment }, detached: true, stdio: ["pipe", "pipe", "pipe"] });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => stderr.push(chunk));
    child.stdin.on("error", () => {}); // the node went away before it had read the script: the exit code tells
    child.stdin.end(step.script);
    let ended: StepRun["ended"] = "exited";
    const stop = (why: StepRun["ended"]) => {
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
      ended = why;
      process.kill(-child.pid, "SIGKILL"); // the script's whole process group
    };
    const timer = setTimeout(() => stop("timed out"), step.timeout * 1000);
    const cancel = () => stop("cancelled");
    cancelled.addEventListener("abort", cancel);
    child.on("error", (error) =>
      resolve({ code: 1, ended: "exited", stdout: Buffer.alloc(0), stderr: Buffer.from(`failed to run commands: ${error.message}`) }),
    );
    child.on("close", (code) => {
      clearTimeout(timer);
      cancelled.removeEventListener("abort", cancel);
      resolve({ code: ended === "exited" ? (code ?? 137) : 137, ended, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr) });
    });
    if (cancelled.aborted) cancel();
  });
}

/** What the agent reports inline: at most `limit` bytes, the cut marked by a suffix inside the limit. */
export function clip(output: Buffer, limit: number): string {
  const suffix = "--output truncated--";
  return output.length <= limit ? output.toString("utf8") : output.toString("utf8", 0, limit - suffix.length) + suffix;
}

/** The one field that ListCommandInvocations shows with Details: stdout and stderr together in 2,500 bytes, shared as the agent shares them. */
export function pluginOutput(stdout: string, stderr: string): string {
  const [outCut, errorCut] = ["\n---Output truncated---", "\n---Error truncated----"];
  const title = stderr.length > 0 ? "\n----------ERROR-------\n" : "";
  const space = 2500 - title.length;
  if (stdout.length + stderr.length < space) return stdout + title + stderr;
  if (stdout.length > space / 2 && stderr.length > space / 2) {
    const half = Math.floor((space - outCut.length - errorCut.length) / 2);
    return stdout.slice(0, half) + outCut + title + stderr.slice(0, half) + errorCut;
  }
  if (stdout.length < space / 2) return stdout + title + stderr.slice(0, space - errorCut.length - stdout.length) + errorCut;
  return stdout.slice(0, space - outCut.length - stderr.length) + outCut + title + stderr;
}
