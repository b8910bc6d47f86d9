import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundlePage } from "../../functions/local/bundle.ts";
import { type Figure, median, ms, run, sideBySide, times } from "./measure.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const ROUNDS = 5;
const LIMIT_MS = 3000;

/** `npm start`: from spawn to the line that says it is ready. `folder`: for its data and a second page cache. */
export async function benchStart(folder: string): Promise<Figure[]> {
  // the first start on a machine also bundles the page
  const before = performance.now();
  await bundlePage(join(folder, "page-cache"));
  const pageMs = performance.now() - before;
  let count = 0;
  const ready = async (): Promise<number> => {
    count += 1;
    return readyMs(["npm", "start", "--", "--port", "0", "--directory", join(folder, `start-${count}`)]);
  };
  // starts npm, prints the environment, runs nothing of ours
  const nothing = async (): Promise<number> => (await run(["npm", "run", "env"], { cwd: root })).wallMs;
  const { ours, baseline } = await sideBySide(ROUNDS, ready, nothing);
  const [a, b] = [median(ours), median(baseline)];
  return [
    {
      what: "`npm start`: spawn → “netcheck is ready”",
      measured: `${ms(a)} (the first time ${ms(pageMs)} more, for the page)`,
      baseline: `${ms(b)} npm alone`,
      ratio: times(a, b),
      target: "< 3 s",
      ok: a < LIMIT_MS,
    },
  ];
}

function readyMs(argv: readonly string[]): Promise<number> {
  const [program = "", ...args] = argv;
  return new Promise((resolve, reject) => {
    const started = performance.now();
    // a group of its own: npm passes no signal on
    const child = spawn(program, args, { cwd: root, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    let took: number | undefined;
    const read = (chunk: Buffer): void => {
      output += chunk.toString("utf8");
      if (took !== undefined || !output.includes("netcheck is ready")) return;
      took = performance.now() - started;
      process.kill(-(child.pid as number), "SIGTERM");
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("error", reject);
    child.once("close", (code) => (took === undefined ? reject(new Error(`bench: npm start ended with ${code}: ${output.slice(-2000)}`)) : resolve(took)));
  });
}
