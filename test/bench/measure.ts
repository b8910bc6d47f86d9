import { type SpawnOptions, spawn } from "node:child_process";

/** One line of the table. `target`: what must hold, in words; `ok` whether it does, absent where there is no target or it was not measured. */
export interface Figure {
  readonly what: string;
  readonly measured: string;
  readonly baseline: string;
  readonly ratio: string;
  readonly target: string;
  readonly ok?: boolean;
}

/** The middle value; of an even number, the lower one of the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted[Math.floor((sorted.length - 1) / 2)];
  if (middle === undefined) throw new Error("bench: no values");
  return middle;
}

export const ms = (value: number): string =>
  value >= 10_000 ? `${(value / 1000).toFixed(1)} s` : value >= 1000 ? `${(value / 1000).toFixed(2)} s` : `${value.toFixed(0)} ms`;
export const times = (value: number, baseline: number): string => `${(value / baseline).toFixed(2)}×`;

/** A program that ended by itself. */
export interface Run {
  /** Milliseconds from spawn until all output was here and it had ended. */
  readonly wallMs: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end. @throws if it fails, with what it wrote to stderr. */
export function run(argv: readonly string[], options: SpawnOptions = {}): Promise<Run> {
  const [program = "", ...args] = argv;
  return new Promise((resolve, reject) => {
    const started = performance.now();
    const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    let stdout = "";
    let stderr = "";
    child.stdout?.on("data", (chunk: Buffer) => (stdout += chunk.toString("utf8")));
    child.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString("utf8")));
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve({ wallMs: performance.now() - started, stdout, stderr });
      else reject(new Error(`bench: ${argv.slice(0, 3).join(" ")} ended with ${code}: ${stderr.slice(-2000)}`));
    });
  });
}

/** Both sides in turn, `rounds` times after one round that does not count, so that what else the machine does hits both alike. */
export async function sideBySide<A, B>(rounds: number, ours: () => Promise<A>, baseline: () => Promise<B>): Promise<{ ours: A[]; baseline: B[] }> {
  const result: { ours: A[]; baseline: B[] } = { ours: [], baseline: [] };
  for (let round = 0; round <= rounds; round += 1) {
    const [a, b] = [await ours(), await baseline()];
    if (round === 0) continue;
    result.ours.push(a);
    result.baseline.push(b);
  }
  return result;
}
