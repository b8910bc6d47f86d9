import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";

/** A counter that rose proves something, its total does not: the line has the total, and how much it rose stands beside it. */
const runbooks = fileURLToPath(new URL("../../runbooks/", import.meta.url));
const catalogue = loadCatalogue(runbooks, { tolerant: true });

test.each([
  ["ena-allowance-exceeded", "dns-over-the-link-local-limit", ["+322"]],
  ["forward-policy-drop", "docker-policy-two-samples", ["+44"]],
  // what the other rules of its chain took is not the line's
  ["conntrack-invalid-drops", "asymmetric-node", ["+120"]],
  ["softnet-drops", "one-cpu-does-it-all", ["processed +82973, dropped +1573, time_squeeze +322"]],
  // one row stands for the lines of all CPUs
  ["conntrack-insert-failed", "dns-race", ["all lines: invalid +1, insert_failed +14, drop +14", undefined, undefined]],
  // read once
  ["conntrack-table-full", "pasted-dmesg", [undefined, undefined]],
] as const)("%s: %s", async (rule, name, grew) => {
  const capture = await readCaptureFiles(`${runbooks}rules/${rule}/fixtures/${name}`);
  const cause = diagnose(capture, catalogue, "", () => 0).causes.find((found) => found.rule === rule);
  expect(cause?.evidence.map((line) => line.grew)).toEqual(grew);
});
