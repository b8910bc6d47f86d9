import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readFacts } from "../../functions/facts/read.ts";
import { judge } from "../../functions/rules/judge.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";

/**
 * One measurement in a process of its own: <runbooks> <capture> <how many times the ruleset; 0: the facts alone> <cold | warm>. Prints milliseconds for facts and
 * rules (the capture is in memory), the peak memory of the process, the number of rules. warm: the best of 20, as in a process that has done it before.
 */
const [runbooks = "", folder = "", times = "1", mode = "cold"] = process.argv.slice(2);
// the whole file: of an output in a capture only 64 MB are read
const read = await readCaptureFiles(folder);
const large = read.outputs.some(({ truncated }) => truncated);
const capture = large
  ? { ...read, outputs: read.outputs.map((output) => ({ ...output, truncated: false, text: readFileSync(join(folder, output.file), "utf8") })) }
  : read;
const shipped = loadCatalogue(runbooks, { tolerant: true }).rules;
// compiled beforehand, as it is once in a process
for (const rule of shipped.values()) for (const part of [rule, ...rule.forms]) Object.values(part);
const rules = new Map(Array.from({ length: Number(times) }, (_, i) => [...shipped].map(([id, rule]) => [`${id}-${i}`, rule] as const)).flat());

const elapsed: number[] = [];
for (let round = 0; round < (mode === "warm" ? 20 : 1); round += 1) {
  const started = performance.now();
  if (rules.size === 0) readFacts(capture);
  else judge(capture, { rules });
  elapsed.push(performance.now() - started);
}
process.stdout.write(JSON.stringify({ ms: Math.min(...elapsed), peakMb: process.resourceUsage().maxRSS / 1000, rules: rules.size }));
