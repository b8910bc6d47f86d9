import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { crash } from "./crash.ts";
import { type Counterexample, type DeliveryTally, emptyTally } from "./delivery.ts";
import { type Line, seconds, tableOf, writeTable } from "./page.ts";
import { mb, soak } from "./soak.ts";

/**
 * `npm run chaos [-- --only crash,delivery,soak] [--write]`: proves that nothing is lost, done twice or told wrongly, whatever crashes, repeats or comes late; prints
 * a table of each part, with --write into docs/reliability.md. Exit code 1 if something does not hold. Needs root and the lab's packages for the crash points; says so where they
 * cannot run.
 *
 *     --points 20            so many crash points instead of all          --at "before work.start #1"   that one
 *     --runs 200             so many runs of delivery faults              --seed 7                      from another seed
 *     --path "3:1:0"         with --seed and --runs 1: the counterexample that was told
 *     --triages 100          so many triages of the soak
 */
const { values } = parseArgs({
  options: {
    only: { type: "string", default: "crash,delivery,soak" },
    write: { type: "boolean", default: false },
    points: { type: "string" },
    at: { type: "string" },
    runs: { type: "string", default: "10000" },
    seed: { type: "string", default: "1" },
    path: { type: "string", default: "" },
    triages: { type: "string", default: "2000" },
  },
});
const whole = (name: "points" | "runs" | "seed" | "triages"): number => {
  const number = Number(values[name]);
  if (!Number.isInteger(number) || number < 0) throw new Error(`chaos: --${name} takes a whole number, not "${values[name]}"`);
  return number;
};
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const PARTS: Record<string, () => Promise<Line[]>> = { crash: crashPart, delivery: deliveryPart, soak: soakPart };
const chosen = values.only.split(",");
for (const name of chosen) if (!Object.hasOwn(PARTS, name)) throw new Error(`chaos: there is no "${name}"; there are ${Object.keys(PARTS).join(", ")}`);
if (values.write && (values.points !== undefined || values.at !== undefined || values.path !== ""))
  throw new Error("chaos: --write takes all points: leave --points, --at and --path out");

/** Runs of delivery faults in one process. */
const BATCH = 250;

for (const name of chosen) {
  const lines = (await PARTS[name]?.()) ?? [];
  say(tableOf(lines));
  if (values.write) writeTable(`chaos-${name}`, tableOf(lines));
  if (lines.some(({ ok }) => ok === false)) process.exitCode = 1;
}

async function crashPart(): Promise<Line[]> {
  const started = performance.now();
  const report = await crash({
    points: values.points === undefined ? undefined : whole("points"),
    at: values.at,
    say,
    onFailure: (point, problem) => say(`✗ killed ${point}: ${problem}\n  again: npm run chaos -- --only crash --at "${point}"`),
  });
  if (report === undefined) return [{ what: "crash points", measured: "not run: see above", must: "≥ 200 points", ok: false }];
  const { points, killed, missed, once, never, failures, medianMs, slowestMs } = report;
  const all = values.points === undefined && values.at === undefined;
  return [
    {
      what: "crash points: places in one flow at which a process was killed",
      measured: `${killed} of ${points}`,
      must: all ? "≥ 200" : "some",
      ok: killed >= (all ? 200 : 1),
    },
    {
      what: "crash points: the fix ran on the live node exactly once",
      measured: `${once}`,
      must: "never twice",
      ok: once + never.length === killed + missed.length,
    },
    {
      what: "crash points: the fix did not run, and everybody was told so",
      measured: never.length === 0 ? "0" : `${never.length} (${never.join("; ")})`,
      must: "told the truth",
    },
    { what: "crash points: runs in which anything did not hold", measured: `${failures}`, must: "0", ok: failures === 0 },
    { what: "crash points: from the first life to the end of the last", measured: `${seconds(medianMs)} (median), ${seconds(slowestMs)} (longest)`, must: "–" },
    { what: "crash points: in all", measured: seconds(performance.now() - started), must: "–" },
  ];
}

async function deliveryPart(): Promise<Line[]> {
  const started = performance.now();
  const [runs, seed] = [whole("runs"), whole("seed")];
  // each batch is a process with a seed of its own, so that a batch can be played again by itself
  const batches = Array.from({ length: Math.max(1, Math.ceil(runs / BATCH)) }, (_, index) => ({
    seed: seed + index,
    runs: Math.min(BATCH, runs - index * BATCH),
  }));
  const tally = emptyTally();
  const found: Counterexample[] = [];
  const next = batches[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (const batch of next) {
      const result = await playBatch(batch.seed, batch.runs);
      add(tally, result.tally);
      if (result.counterexample !== undefined) {
        found.push(result.counterexample);
        tell(result.counterexample);
      }
      if (tally.runs % (4 * BATCH) < BATCH) say(`delivery faults: ${tally.runs} of ${runs}, ${found.length} counterexamples`);
    }
  };
  await Promise.all([worker(), worker()]);
  const { fixed, idle, requests, taken, faults, states } = tally;
  const ends = Object.entries(states).sort(([, a], [, b]) => b - a);
  return [
    { what: `delivery faults: random runs, from seed ${seed}`, measured: `${tally.runs}`, must: `${runs}`, ok: tally.runs >= runs || found.length > 0 },
    { what: "delivery faults: a fix ran on the node, or none", measured: `${fixed} and ${idle}`, must: "both often" },
    { what: "delivery faults: requests that arrived, those that were taken; faults that struck", measured: `${requests}, ${taken}; ${faults}`, must: "–" },
    { what: "delivery faults: how incidents ended", measured: ends.map(([state, count]) => `${count} ${state}`).join(", "), must: "–" },
    { what: "delivery faults: runs that broke an invariant", measured: `${found.length}`, must: "0", ok: found.length === 0 },
    { what: "delivery faults: in all", measured: seconds(performance.now() - started), must: "–" },
  ];
}

async function soakPart(): Promise<Line[]> {
  const report = await soak({ triages: whole("triages"), say });
  const { triages, fixes, memory, before, after, problems } = report;
  for (const problem of problems) say(`✗ soak: ${problem}`);
  const of = (name: "rss" | "heap"): string => memory.map((one) => mb(one[name])).join(", ");
  return [
    { what: "soak: triages in a row, of them with a fix on the live node", measured: `${triages}, ${fixes}`, must: "all told", ok: problems.length === 0 },
    { what: "soak: memory of the process (RSS) before the first and after each tenth", measured: of("rss"), must: "flat once warm" },
    { what: "soak: of it held by JavaScript", measured: of("heap"), must: "flat once warm" },
    { what: "soak: open files", measured: memory.map(({ files }) => files).join(", "), must: "no more once warm" },
    {
      what: "soak: network namespaces; files of jobs; entries of netcheck's folder; of the live node's /tmp",
      measured: `${before.namespaces}; ${before.jobs}; ${before.folder}; ${before.onNode} → ${after.namespaces}; ${after.jobs}; ${after.folder}; ${after.onNode}`,
      must: "back to the start, but for the trace of each fix",
    },
    { what: "soak: in all", measured: seconds(report.seconds * 1000), must: "–" },
  ];
}

interface Batch {
  readonly tally: DeliveryTally;
  readonly counterexample?: Counterexample;
}

function playBatch(seed: number, runs: number): Promise<Batch> {
  return new Promise((resolve, reject) => {
    const program = fileURLToPath(new URL("delivery-child.ts", import.meta.url));
    // stderr is what the app logs of the faults that we made
    const child = spawn(process.execPath, [program, String(seed), String(runs), values.path], { stdio: ["ignore", "pipe", "pipe"] });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString("utf8")));
    child.stderr.on("data", (chunk: Buffer) => (stderr = `${stderr}${chunk.toString("utf8")}`.slice(-4000)));
    child.once("error", reject).once("close", (code) => {
      if (code === 0) resolve(JSON.parse(stdout) as Batch);
      else reject(new Error(`chaos: the batch of seed ${seed} ended with ${code}: ${stderr}`));
    });
  });
}

function add(tally: DeliveryTally, more: DeliveryTally): void {
  for (const name of ["runs", "fixed", "idle", "requests", "taken", "faults"] as const) tally[name] += more[name];
  for (const [state, count] of Object.entries(more.states)) tally.states[state] = (tally.states[state] ?? 0) + count;
}

function tell({ seed, path, problems, scenario }: Counterexample): void {
  say(`✗ ${problems.join("\n  ")}`);
  say(`  the smallest run that shows it: ${JSON.stringify(scenario)}`);
  say(`  again: npm run chaos -- --only delivery --seed ${seed} --runs 1 --path "${path}"`);
}
