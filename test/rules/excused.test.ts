import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";

/**
 * Healthy nodes on which all looks like a fault but for one output, or for the time of the collection: a pod that was made a moment ago, a peer that is switched off,
 * a program that does not run. They are no cases of the rules and no blind ones, of which parts must be healthy too: without that output nobody could tell them from
 * a faulty node, and the rules are right to match.
 */
const folder = fileURLToPath(new URL("./excused/", import.meta.url));
const catalogue = loadCatalogue(fileURLToPath(new URL("../../runbooks/", import.meta.url)), { tolerant: true });

test.each(readdirSync(folder))("%s: no cause is told", async (name) => {
  const { causes } = diagnose(await readCaptureFiles(`${folder}${name}`), catalogue, "", () => 0);
  expect(causes.map(({ rule, summary }) => `${rule}: ${summary}`)).toEqual([]);
});
