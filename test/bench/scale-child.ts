import { fileURLToPath } from "node:url";
import { readFacts } from "../../functions/facts/read.ts";
import { judge } from "../../functions/rules/diagnose.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";

/**
 * One measurement in a process of its own: <capture> <how many times the ruleset; 0: the facts alone> <cold | warm>. Prints milliseconds for facts and
 * rules (the capture is in memory), the peak memory of the process, the number of rules. warm: the best of 20, as in a process that has done it before.
 */
const [folder = "", times = "1", mode = "cold"] = process.argv.slice(2);
const capture = await readCaptureFiles(folder);
const shipped = loadCatalogue(fileURLToPath(new URL("../../runbooks/", import.meta.url)), { tolerant: true }).rules;
const rules = new Map(Array.from({ length: Number(times) }, (_, i) => [...shipped].map(([id, rule]) => [`${id}-${i}`, rule] as const)).flat());

const elapsed: number[] = [];
for (let round = 0; round < (mode === "warm" ? 20 : 1); round += 1) {
  const started = performance.now();
  if (rules.size === 0) readFacts(capture);
  else judge(capture, { rules });
  elapsed.push(performance.now() - started);
}
process.stdout.write(JSON.stringify({ ms: Math.min(...elapsed), peakMb: process.resourceUsage().maxRSS / 1000, rules: rules.size }));
