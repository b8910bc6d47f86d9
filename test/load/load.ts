import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Line, seconds, tableOf, writeTable } from "../chaos/page.ts";
import { mb } from "../chaos/soak.ts";
import { loadAck } from "./ack.ts";
import { loadTriages, type TriagesReport } from "./triages.ts";

/**
 * `npm run load [-- --only ack,triages,limited] [--seconds 60] [--rate 200] [--write]`: prints a table, with --write into docs/reliability.md. Exit code 1 if something does
 * not hold.
 */
const { values } = parseArgs({
  options: {
    only: { type: "string", default: "ack,triages,limited" },
    seconds: { type: "string", default: "60" },
    rate: { type: "string", default: "200" },
    write: { type: "boolean", default: false },
  },
});
const PARTS: Record<string, () => Promise<Line[]>> = { ack, triages, limited };
const chosen = values.only.split(",").map((name) => {
  if (!Object.hasOwn(PARTS, name)) throw new Error(`load: there is no "${name}"; there are ${Object.keys(PARTS).join(", ")}`);
  return PARTS[name] as () => Promise<Line[]>;
});
if (values.write && chosen.length < Object.keys(PARTS).length) throw new Error("load: --write takes all figures: leave --only out");

const folder = mkdtempSync(join(tmpdir(), "netcheck-load-"));
try {
  const lines: Line[] = [];
  for (const part of chosen) lines.push(...(await part()));
  process.stdout.write(`${tableOf(lines)}\n`);
  if (values.write) writeTable("load", tableOf(lines));
  if (lines.some(({ ok }) => ok === false)) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function ack(): Promise<Line[]> {
  const [rate, duration] = [Number(values.rate), Number(values.seconds)];
  const { sent, refused, answers, lost, p50, p99, max } = await loadAck(folder, rate, duration);
  if (refused > 0) process.stdout.write(`✗ answered otherwise than with 200: ${JSON.stringify(answers)}\n`);
  return [
    {
      what: `load: ${rate} slash commands per second for ${duration} s: sent, not taken, taken and lost`,
      measured: `${sent}, ${refused}, ${lost}`,
      must: "none lost",
      ok: refused === 0 && lost === 0,
    },
    {
      what: "load: from the moment a command was due to its answer",
      measured: `${p50.toFixed(0)} ms (p50), ${p99.toFixed(0)} ms (p99), ${max.toFixed(0)} ms (longest)`,
      must: "p99 < 500 ms",
      ok: p99 < 500,
    },
  ];
}

async function triages(): Promise<Line[]> {
  const report = await loadTriages(folder, { count: 200, channels: 20, limited: false });
  return [
    told("load: triages asked for at once, on the embedded engine: told", report),
    {
      what: "load: of their commands acknowledged after more than 3 s, by the process that does the work",
      measured: `${report.late}`,
      must: "– (in production another Lambda does it)",
    },
    {
      what: "load: from the command to the last message",
      measured: `${report.p50.toFixed(1)} s (p50), ${report.max.toFixed(1)} s (longest); all in ${seconds(report.seconds * 1000)}, ${mb(report.rss)}`,
      must: "–",
    },
  ];
}

async function limited(): Promise<Line[]> {
  const report = await loadTriages(folder, { count: 60, channels: 3, limited: true });
  return [
    told("load: triages at once in 3 channels of a workspace that takes 1 message per second in each: told, in order", report),
    {
      what: "load: posts there, refused ones, shortest time between two in a channel; edits that had to wait",
      measured: `${report.posts}, ${report.refused}, ${report.shortestMs.toFixed(0)} ms; ${report.editsRefused}`,
      must: "none refused, ≥ 1,000 ms",
      ok: report.refused === 0 && report.shortestMs >= 1000,
    },
    { what: "load: all of that", measured: seconds(report.seconds * 1000), must: "–" },
  ];
}

function told(what: string, { triages: count, told: done, problems }: TriagesReport): Line {
  for (const problem of problems) process.stdout.write(`✗ ${problem}\n`);
  return { what, measured: `${done} of ${count}`, must: "all", ok: done === count && problems.length === 0 };
}
