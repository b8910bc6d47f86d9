import { writeFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { facts } from "../functions/facts/index.ts";
import { caseFiles, checkParsed, goldenOf, parseCase, readFactCase } from "./fact-cases.ts";

/**
 * Walks test/facts/<fact-id>/<case>.txt (what the command printed) beside <case>.json (command in, value out).
 * A new case is two files: the text, and a JSON file that holds just {"command": "…"}; `npm run golden` fills in the rest, and you read it.
 */
describe.each(facts.map((fact) => [fact.id, fact] as const))("fact %s", (id, fact) => {
  const cases = caseFiles(id);

  test("has at least one fixture in test/facts", () => expect(cases.length).toBeGreaterThan(0));

  test.each(cases)("%s", (file) => {
    const { text, given } = readFactCase(id, file);
    const parsed = parseCase(fact, text, given);
    checkParsed(fact, text, parsed, given.stderr);
    const actual = JSON.parse(JSON.stringify({ ...given, value: parsed.value, unparsed: parsed.unparsed }));
    if (process.env["GOLDEN"] === "1") writeFileSync(goldenOf(id, file), `${JSON.stringify(actual, null, 1)}\n`);
    expect(actual).toEqual(given.value === undefined && process.env["GOLDEN"] === "1" ? actual : given);
  });

  test("recognises its own commands and nothing silly", () => {
    for (const command of fact.commands) expect(fact.recognize(command.argv), command.argv.join(" ")).toBeDefined();
    if (fact.byHand !== undefined) expect(fact.recognize(fact.byHand.split(" ")), fact.byHand).toMatchObject({ complete: true });
    for (const silly of [["rm", "-rf", "/"], [`${id}-of`], ["cat", "/etc/passwd"], []]) expect(fact.recognize(silly)).toBeUndefined();
  });

  test("never throws, accounts for every line, and stays inside its schema on hostile text", () => {
    const samples = cases.map((file) => readFactCase(id, file));
    const mutated = fc.tuple(fc.nat(), fc.nat(), fc.string({ unit: "binary", maxLength: 40 }), fc.boolean()).map(([which, at, noise, cut]) => {
      const { text } = samples[which % samples.length] as (typeof samples)[number];
      const position = at % (text.length + 1);
      return cut ? text.slice(0, position) : text.slice(0, position) + noise + text.slice(position + (at % 7));
    });
    fc.assert(
      fc.property(fc.oneof(mutated, fc.string({ unit: "binary", maxLength: 300 })), fc.nat(), (text, which) => {
        const { command } = (samples[which % samples.length] as (typeof samples)[number]).given;
        checkParsed(fact, text, parseCase(fact, text, { command }));
      }),
      { numRuns: 150, seed: 42 },
    );
  });
});
