import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { commandLine } from "../functions/facts/command.ts";
import type { AnyFact } from "../functions/facts/fact.ts";
import { facts } from "../functions/facts/index.ts";

/**
 * Walks test/facts/<fact-id>/<case>.txt (what the command printed) beside <case>.json (command in, value out).
 * A new case is two files: the text, and a JSON file that holds just {"command": "…"}; `npm run golden` fills in the rest, and you read it.
 */
interface Case {
  command: string;
  exitCode?: number;
  stderr?: string;
  value?: unknown;
  unparsed?: unknown;
}
const root = new URL("facts/", import.meta.url);

function parseCase(fact: AnyFact, text: string, given: Case) {
  const line = commandLine(given.command);
  const view = fact.recognize(line.argv);
  if (view === undefined) throw new Error(`${fact.id} does not recognise "${given.command}"`);
  return fact.parse({ text, argv: line.argv, view, sample: 1, exitCode: given.exitCode ?? 0, stderr: given.stderr ?? "", sorted: line.sorted });
}

describe.each(facts.map((fact) => [fact.id, fact] as const))("fact %s", (id, fact) => {
  const folder = new URL(`${id}/`, root);
  const cases = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith(".txt")) : [];

  test("has at least one fixture in test/facts", () => expect(cases.length).toBeGreaterThan(0));

  test.each(cases)("%s", (file) => {
    const golden = new URL(file.replace(/\.txt$/, ".json"), folder);
    const given = JSON.parse(readFileSync(golden, "utf8")) as Case;
    const parsed = parseCase(fact, readFileSync(new URL(file, folder), "utf8"), given);
    fact.schema.parse(parsed.value);
    const actual = JSON.parse(JSON.stringify({ ...given, value: parsed.value, unparsed: parsed.unparsed }));
    if (process.env["GOLDEN"] === "1") writeFileSync(golden, `${JSON.stringify(actual, null, 1)}\n`);
    expect(actual).toEqual(given.value === undefined && process.env["GOLDEN"] === "1" ? actual : given);
  });

  test("recognises its own commands and nothing silly", () => {
    for (const command of fact.commands) expect(fact.recognize(command.argv), command.argv.join(" ")).toBeDefined();
    for (const silly of [["rm", "-rf", "/"], [id], ["cat", "/etc/passwd"], []]) expect(fact.recognize(silly)).toBeUndefined();
  });

  test("never throws, accounts for every line, and stays inside its schema on hostile text", () => {
    const samples = cases.map((file) => readFileSync(new URL(file, folder), "utf8"));
    const commands = cases.map((file) => (JSON.parse(readFileSync(new URL(file.replace(/\.txt$/, ".json"), folder), "utf8")) as Case).command);
    const mutated = fc.tuple(fc.nat(), fc.nat(), fc.string({ unit: "binary", maxLength: 40 }), fc.boolean()).map(([which, at, noise, cut]) => {
      const text = samples[which % samples.length] as string;
      const position = at % (text.length + 1);
      return cut ? text.slice(0, position) : text.slice(0, position) + noise + text.slice(position + (at % 7));
    });
    fc.assert(
      fc.property(fc.oneof(mutated, fc.string({ unit: "binary", maxLength: 300 })), fc.nat(), (text, which) => {
        const parsed = parseCase(fact, text, { command: commands[which % commands.length] as string });
        fact.schema.parse(parsed.value);
        for (const { line } of parsed.unparsed) expect(line).toBeGreaterThan(0);
      }),
      { numRuns: 150, seed: 42 },
    );
  });
});
