import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { agentLog } from "../../functions/facts/agent-log.ts";
import type { Capture } from "../../functions/facts/capture.ts";
import { commandLine } from "../../functions/facts/command.ts";
import { kernelLog } from "../../functions/facts/kernel-log.ts";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";

/** Of a healthy node a log that was read must not leave more open than no log at all, however little of it was kept. */
const folder = fileURLToPath(new URL("./healthy/", import.meta.url));
const catalogue = loadCatalogue(fileURLToPath(new URL("../../runbooks/", import.meta.url)), { tolerant: true });
const cases = readdirSync(folder).filter((name) => name.endsWith("-r7"));

const openOf = (capture: Capture): Set<string> => new Set(diagnose(capture, catalogue, "", () => 0).unchecked.map(({ rule }) => rule));
const isLog = (command: string | readonly string[]): boolean => {
  const { argv } = commandLine(command);
  return argv.length > 0 && [agentLog, kernelLog].some((fact) => fact.recognize(argv) !== undefined);
};

describe("logs of healthy nodes", () => {
  let logs = 0;
  test.each(cases)("%s: none leaves a rule open that would be decided without it", async (name) => {
    const capture = await readCaptureFiles(`${folder}${name}`);
    const open = openOf(capture);
    for (const [i, output] of capture.outputs.entries()) {
      if (!isLog(output.argv ?? output.command)) continue;
      logs++;
      const without = openOf({ ...capture, outputs: capture.outputs.filter((_, other) => other !== i) });
      expect(
        [...open].filter((rule) => !without.has(rule)),
        `with ${output.command}`,
      ).toEqual([]);
    }
  });
  test("there are logs among the outputs", () => expect(logs).toBeGreaterThan(40));
});
