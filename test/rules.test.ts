import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { reliabilityPage } from "../functions/cli/reliability.ts";
import type { Rule } from "../functions/rules/compile.ts";
import { type CaseResult, checkCase, coverageProblems, fixtureNames, formProblems, readCase, unwritten } from "../functions/rules/fixtures.ts";
import { loadCatalogue } from "../functions/rules/load.ts";
import { readCaptureFiles } from "../functions/transports/capture-files.ts";

/**
 * Walks runbooks/rules/<rule-id>/fixtures/<case>/{capture.json, outputs/…, expect.yaml}. A new case is one folder; its name says why it exists. A node whose
 * name says healthy, fixed or near-miss must give no cause by any rule. `netcheck rules test` runs the same checks.
 */
const runbooks = fileURLToPath(new URL("../runbooks/", import.meta.url));
// one rule that does not load must not hide what the others say
const catalogue = loadCatalogue(runbooks, { tolerant: true });

test("every rule and every fix loads", () => {
  expect([...catalogue.broken.rules.values(), ...catalogue.broken.fixes.values()]).toEqual([]);
});

const results: CaseResult[] = [];

describe.each([...catalogue.rules.keys()])("rule %s", (id) => {
  const names = fixtureNames(runbooks, id);

  test("has a match and a no-match case, and nothing left to fill in", () => {
    expect([...coverageProblems(names.map((name) => readCase(runbooks, id, name))), ...unwritten(runbooks, id)]).toEqual([]);
  });

  test.each(names)("%s", async (name) => {
    const result = await checkCase(readCase(runbooks, id, name), catalogue, readCaptureFiles);
    results.push(result);
    expect(result.problems).toEqual([]);
  });

  test("each of its forms speaks in a case", (context) => {
    const own = results.filter(({ rule }) => rule === id);
    // with -t only some of them were judged
    if (own.length < names.length) context.skip("not every case was run");
    expect(formProblems(catalogue.rules.get(id) as Rule, own)).toEqual([]);
  });
});

test("docs/generated/reliability.md tells how these cases went", (context) => {
  const all = [...catalogue.rules.keys()].flatMap((id) => fixtureNames(runbooks, id));
  // with -t only some of them were judged
  if (results.length < all.length) context.skip("not every case was run");
  const page = readFileSync(new URL("../docs/generated/reliability.md", import.meta.url), "utf8");
  expect(reliabilityPage(results), "run `npm run docs` and commit what it wrote").toBe(page);
});
