import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineFact, lines, UnparsedLines } from "../../functions/facts/fact.ts";
import { facts } from "../../functions/facts/index.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { cpuMs } from "../cpu-time.ts";
import { taken } from "../rules/taken.ts";
import { fuzzPartial, quietCaptures } from "./capture.ts";
import { donorsOf, type Failure, fuzzFact } from "./fact.ts";
import { mutated } from "./mutation.ts";
import { fuzz } from "./run.ts";

/** A short run of what `npm run fuzz` does for a minute, and a proof that it finds what it looks for. */
const runbooks = fileURLToPath(new URL("../../runbooks/", import.meta.url));
const catalogue = loadCatalogue(runbooks, { tolerant: true });

describe("fuzz", () => {
  test("one round finds nothing", async () => {
    const found: string[] = [];
    const report = fuzz({
      seed: 42,
      facts,
      captures: { quiet: await quietCaptures(runbooks, catalogue.rules.keys(), (name) => taken(8, name)), catalogue },
      goOn: () => false,
      onFailure: ({ of, problem }) => found.push(`${of}: ${problem}`),
    });
    expect(found).toEqual([]);
    expect(report.rounds).toBe(1);
    expect(report.facts.length).toBe(facts.length);
    expect(report.partial).toBeGreaterThanOrEqual(100);
    // three seconds on a machine of its own
  }, 120_000);

  test("the same seed gives the same texts", () => {
    const text = "a 1\nb 2\nc 3\n";
    for (const kind of ["flip", "drop line", "swap lines", "splice", "repeat", "number"] as const) {
      expect(mutated(text, { kind, at: 5, to: 7 }, ["x\ny\n"])).toBe(mutated(text, { kind, at: 5, to: 7 }, ["x\ny\n"]));
    }
  });

  /** The fact "clock", whose fixtures it borrows, with another parser. */
  const broken = (parse: (text: string) => string[]) =>
    defineFact({
      id: "clock",
      title: "",
      commands: [],
      recognize: () => ({ format: "", complete: true, scope: "", rank: 1 }),
      schema: z.object({ rows: z.array(z.object({ line: z.int(), word: z.string() })) }),
      parse({ text }) {
        return new UnparsedLines().with({ rows: parse(text).map((word, i) => ({ line: i + 1, word })) });
      },
    });
  const failuresOf = (fact: ReturnType<typeof broken>, runs: number, feeds: number): readonly Failure[] =>
    fuzzFact(fact, donorsOf(facts.slice(0, 3)), { seed: 1, runs, feeds }).failures;

  test("a parser that throws is found, with a text that makes it throw", () => {
    const fact = broken((text) => {
      if (text.includes("\0")) throw new Error("a zero");
      return [];
    });
    const [failure] = failuresOf(fact, 300, 0);
    expect(failure?.problem).toContain("a zero");
    expect(failure?.text).toContain("\0");
  });

  test("a row on a line that is not there is found", () => {
    const fact = broken((text) => [...[...lines(text)].map((line) => line.text), ...Array<string>(60).fill("x")]);
    expect(failuresOf(fact, 20, 0)[0]?.problem).toMatch(/is said to be on line/);
  });

  test("a parser that goes over the text again and again is found", () => {
    const fact = broken((text) => {
      // what it costs grows with the square, and is the same on every machine; a few longer texts would take the whole time of the test
      const cost = text.length > 70_000 ? 0 : 150 * (text.length / 60_000) ** 2;
      const end = cpuMs() + cost;
      let rounds = 0;
      while (cpuMs() < end) rounds++;
      return rounds < 0 ? ["x"] : [];
    });
    expect(failuresOf(fact, 0, 6)[0]?.problem).toMatch(/not linear|slow/);
  });

  test("a healthy capture that a rule blames is found, and cut down to what it needs", async () => {
    const all = await quietCaptures(runbooks, ["ip-forward-off"]);
    const blamed = all.map(({ name, capture }) => ({
      name,
      // a fault among the rest
      capture: { ...capture, outputs: [...capture.outputs, { ...(capture.outputs[0] as (typeof capture.outputs)[number]), ...pasted }] },
    }));
    const { alarms } = fuzzPartial(blamed, catalogue, new Set(), { seed: 1, runs: 60 });
    expect(alarms[0]?.of).toBe("clock-unsynchronized");
    expect(alarms[0]?.capture.outputs.length).toBeLessThanOrEqual(2);
  });
  const pasted = {
    command: "timedatectl",
    argv: undefined,
    text: "      Local time: Sat 2026-11-21 03:51:28 UTC\nSystem clock synchronized: no\n              NTP service: inactive\n",
    exitCode: undefined,
    stderr: "",
  };
});
