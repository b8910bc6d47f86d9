import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect } from "vitest";
import { scripts } from "../../functions/transports/script.ts";
import type { Capture, Plan } from "../../functions/triage/ports.ts";

/** The scripts that netcheck sends, run under the shells and with the programs that nodes have. */

export const nonce = "0123456789abcdef0123456789abcdef";
export const about = { nonce, target: "node1", transport: "test", startedAt: "2026-01-01T00:00:00.000Z", truncated: false };

function found(program: string): boolean {
  return spawnSync(program, ["--help"]).error === undefined;
}
/** Whether a program is there; in CI it has to be. */
export function need(program: string): boolean {
  if (found(program)) return true;
  if (process.env["CI"] === "true") throw new Error(`${program} is missing: .ci/run installs it`);
  return false;
}
export const busybox = need("busybox");
export const shells = [["dash"], ...(busybox ? [["busybox", "sh"]] : [])].filter(([program = ""]) => found(program));

const PATH = /^PATH=.*$/m;
/** The script on a node that has other tools: scripts set their own PATH. */
export const withPath = (text: string, path: string): string => {
  expect(text).toMatch(PATH);
  return text.replace(PATH, `PATH=${path}`);
};

/** Where a program is; throws where it is not. */
export const which = (name: string): string => execFileSync("which", [name], { encoding: "utf8" }).trim();
/** Programs of this machine, by name: for {@link Bench.toolbox}. */
export const gnu = (...names: string[]): Record<string, string> => Object.fromEntries(names.map((name) => [name, which(name)]));
export const applets: ReadonlySet<string> = busybox ? new Set(execFileSync("busybox", ["--list"], { encoding: "utf8" }).trim().split("\n")) : new Set<string>();
/** The same of busybox, as far as it has them. */
export const bb = (...names: string[]): Record<string, string> =>
  Object.fromEntries(names.filter((name) => applets.has(name)).map((name) => [name, which("busybox")]));

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Bench {
  /** A folder of its own for each test; `tmp` in it is the scripts' TMPDIR. */
  readonly directory: () => string;
  /** Runs a script as the local transport does: the shell reads it from its standard input. */
  readonly run: (text: string, shell?: readonly string[]) => Ran;
  /** A folder with these programs and nothing else. */
  readonly toolbox: (tools: Readonly<Record<string, string>>) => string;
  readonly collect: (of: Plan, shell?: readonly string[], path?: string) => Capture;
}

/** To be called once in a file of tests: it makes and removes the folder of each. */
export function scriptBench(): Bench {
  let directory = "";
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "netcheck-script-"));
    mkdirSync(join(directory, "tmp"));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  const run: Bench["run"] = (text, shell = ["sh"]) => {
    const [program = "sh", ...words] = shell;
    const env = { PATH: process.env["PATH"] ?? "", TMPDIR: join(directory, "tmp"), NETCHECK_nonce: nonce, NETCHECK_job: "job-1" };
    const { status, stdout, stderr, error } = spawnSync(program, [...words, "-s"], {
      input: text,
      env,
      encoding: "utf8",
      timeout: 120_000,
      maxBuffer: 256 << 20,
    });
    if (error !== undefined) throw error;
    return { code: status, stdout, stderr };
  };
  return {
    directory: () => directory,
    run,
    toolbox(tools) {
      const folder = join(directory, `bin${readdirSync(directory).length}`);
      mkdirSync(folder);
      for (const [name, path] of Object.entries(tools)) symlinkSync(path, join(folder, name));
      return folder;
    },
    collect(of, shell, path) {
      const { text } = scripts.collect(of);
      const ran = run(path === undefined ? text : withPath(text, path), shell);
      expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: "" });
      expect(readdirSync(join(directory, "tmp")), "nothing is left in /tmp").toEqual([]);
      return scripts.readCapture(ran.stdout, { ...about, plan: of });
    },
  };
}
