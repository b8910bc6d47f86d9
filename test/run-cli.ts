import { spawn } from "node:child_process";
import { inject } from "vitest";

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the `netcheck` command as a process of its own, with nothing in its environment but PATH and `env`, and `input` on its standard input. */
export function runCli(args: readonly string[], cwd: string, env: Record<string, string> = {}, input = ""): Promise<Ran> {
  const child = spawn(process.execPath, [inject("cli"), ...args], { cwd, env: { PATH: process.env["PATH"] ?? "", ...env }, stdio: "pipe" });
  child.stdin.end(input);
  const said = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said.stderr += text));
  return new Promise((resolve, reject) => child.on("error", reject).on("close", (code) => resolve({ code, ...said })));
}
