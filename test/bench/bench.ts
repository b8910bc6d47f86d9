import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { benchAck } from "./ack.ts";
import { benchDiagnose } from "./diagnose.ts";
import { benchFleet } from "./fleet.ts";
import { benchFleetNodes } from "./fleet-nodes.ts";
import { benchImport } from "./import.ts";
import { benchJc } from "./jc.ts";
import type { Figure } from "./measure.ts";
import { benchScale } from "./scale.ts";
import { benchStart } from "./start.ts";
import { benchTriage } from "./triage.ts";

/**
 * `npm run bench [-- --write] [-- --only ack,import,start,triage,diagnose,scale,jc,fleet,nodes]`: prints a table; with --write puts it into docs/performance.md. Each figure stands beside
 * a baseline measured in turn with it, so that a busy machine tells in both. Exit code 1 if a target is missed.
 */

const BENCHES = {
  ack: benchAck,
  import: benchImport,
  start: benchStart,
  triage: benchTriage,
  diagnose: benchDiagnose,
  scale: benchScale,
  jc: benchJc,
  fleet: benchFleet,
  nodes: (folder: string) => benchFleetNodes(folder),
};
const PAGE = new URL("../../docs/performance.md", import.meta.url);
const MARKS = /(<!-- bench -->\n)[\s\S]*(<!-- \/bench -->)/;

const { values } = parseArgs({ options: { write: { type: "boolean", default: false }, only: { type: "string", default: Object.keys(BENCHES).join(",") } } });
const chosen = values.only.split(",").map((name) => {
  if (!Object.hasOwn(BENCHES, name)) throw new Error(`bench: there is no "${name}"; there are ${Object.keys(BENCHES).join(", ")}`);
  return BENCHES[name as keyof typeof BENCHES];
});
if (values.write && chosen.length < Object.keys(BENCHES).length) throw new Error("bench: --write takes all figures: leave --only out");

const folder = mkdtempSync(join(tmpdir(), "netcheck-bench-"));
try {
  const figures: Figure[] = [];
  for (const bench of chosen) figures.push(...(await bench(folder)));
  const table = tableOf(figures);
  process.stdout.write(`${table}\n`);
  if (values.write) {
    const page = readFileSync(PAGE, "utf8");
    if (!MARKS.test(page)) throw new Error("bench: docs/performance.md has no place for the table");
    writeFileSync(
      PAGE,
      page.replace(MARKS, (_all, before: string, after: string) => `${before}\n${table}\n${after}`),
    );
  }
  if (figures.some(({ ok }) => ok === false)) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function tableOf(figures: readonly Figure[]): string {
  const verdict = ({ ok }: Figure): string => (ok === undefined ? "" : ok ? " ✓" : " ✗ missed");
  const rows = figures.map((figure) => `| ${figure.what} | ${figure.measured} | ${figure.baseline} | ${figure.ratio} | ${figure.target}${verdict(figure)} |`);
  const cores = cpus();
  const machine = `Node ${process.version} on ${cores.length} × ${cores[0]?.model.trim() || "unknown CPU"}, ${process.platform} ${process.arch}.`;
  return `| What | Measured (median) | Baseline, in turn | Ratio | Target |\n| --- | --- | --- | --- | --- |\n${rows.join("\n")}\n\n${machine}\n`;
}
