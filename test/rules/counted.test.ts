import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";

/** What a summary counts is what happened, not the lines that tell of it. */
const runbooks = fileURLToPath(new URL("../../runbooks/", import.meta.url));
const catalogue = loadCatalogue(runbooks, { tolerant: true });

test.each([
  ["xtables-lock-contention", "pasted-two-lines-for-each-refusal", "at least 4 times"],
  ["neighbor-table-overflow", "pasted-with-limits", "at least 3 times"],
])("%s: %s", async (rule, name, said) => {
  const capture = await readCaptureFiles(`${runbooks}rules/${rule}/fixtures/${name}`);
  expect(diagnose(capture, catalogue, "", () => 0).causes.find((cause) => cause.rule === rule)?.summary).toContain(said);
});
