import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { facts } from "../../functions/facts/index.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { type Alarm, quietCaptures, writeCapture } from "./capture.ts";
import type { Failure } from "./fact.ts";
import { fuzz, type Report } from "./run.ts";

/**
 * `npm run fuzz [-- --seconds N] [-- --seed S] [-- --only <fact-id>|rules]`: garbles what the facts read, and takes healthy captures apart; prints a table. Each
 * failure comes with its seed and with the smallest text or capture that still shows it. Exit code 1 if there is one. 60 seconds unless told.
 */
const { values } = parseArgs({
  options: { seconds: { type: "string", default: "60" }, seed: { type: "string", default: "1" }, only: { type: "string", default: "" } },
});
const whole = (name: "seconds" | "seed"): number => {
  const number = Number(values[name]);
  if (!Number.isInteger(number) || number < 0) throw new Error(`fuzz: --${name} takes a whole number, not "${values[name]}"`);
  return number;
};
const [seconds, seed] = [whole("seconds"), whole("seed")];
const chosen = values.only === "rules" ? [] : facts.filter(({ id }) => values.only === "" || id === values.only);
if (chosen.length === 0 && values.only !== "rules") throw new Error(`fuzz: there is no fact "${values.only}"; or say --only rules`);

const runbooks = fileURLToPath(new URL("../../runbooks/", import.meta.url));
const catalogue = loadCatalogue(runbooks, { tolerant: true });
const withRules = values.only === "" || values.only === "rules";
const captures = withRules ? { quiet: await quietCaptures(runbooks, catalogue.rules.keys()), catalogue } : undefined;

let folder: string | undefined;
const end = performance.now() + seconds * 1000;
const report = fuzz({ seed, facts: chosen, captures, goOn: () => performance.now() < end, onFailure: tell });
process.stdout.write(`${tableOf(report)}\n`);
if (report.failures > 0) process.exitCode = 1;

function tell(failure: Failure | Alarm): void {
  folder ??= mkdtempSync(join(tmpdir(), "netcheck-fuzz-"));
  const path = join(folder, `${failure.of}-${failure.seed}`);
  if ("capture" in failure) {
    writeCapture(path, failure.capture);
    const outputs = failure.capture.outputs.map(
      ({ command, text, truncated }) => `${command.slice(0, 80)} (${text.length} characters${truncated ? ", cut" : ""})`,
    );
    process.stdout.write(`✗ ${failure.from}: ${failure.problem}\n  left of it: ${outputs.join("; ")}\n`);
    process.stdout.write(`  again: npm run fuzz -- --only rules --seconds 0 --seed ${failure.seed}\n  look:  npx netcheck diagnose ${path}\n`);
    return;
  }
  writeFileSync(`${path}.txt`, failure.text);
  process.stdout.write(`✗ ${failure.of}: ${failure.problem}\n  again: npm run fuzz -- --only ${failure.of} --seconds 0 --seed ${failure.seed}\n`);
  process.stdout.write(`  look:  npx netcheck facts parse ${path}.txt --command '${failure.command.replaceAll("'", String.raw`'\''`)}'\n`);
}

function tableOf({ rounds, facts: rows, partial, garbled, failures }: Report): string {
  const slowestFirst = [...rows].sort((a, b) => b.perKb - a.perKb);
  const texts = rows.reduce((sum, row) => sum + row.runs, 0);
  return [
    ...(rows.length === 0 ? [] : ["fact                     texts  µs/KB  slowest text"]),
    ...slowestFirst.map(
      ({ id, runs, perKb, what, failed }) => `${id.padEnd(22)} ${String(runs).padStart(7)} ${perKb.toFixed(0).padStart(6)}  ${failed ? "FAILED " : ""}${what}`,
    ),
    `${rounds} rounds from seed ${seed}: ${texts} garbled texts, ${partial} parts of healthy captures, ${garbled} garbled captures; ${failures} failures`,
  ].join("\n");
}
