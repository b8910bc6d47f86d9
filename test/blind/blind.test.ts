import { beforeAll, describe, expect, test } from "vitest";
import { taken } from "../rules/taken.ts";
import { type BlindTotals, runBlind, totalsOf } from "./run.ts";

/** Captures of faulty and healthy nodes that were written without a look at the rules (see run.ts): of the faulty ones a sixteenth, or all with CASES=all. `node test/blind/run.ts` tells of each. */
describe("blind cases", () => {
  let totals: BlindTotals;
  beforeAll(async () => {
    totals = totalsOf(await runBlind([], (name) => taken(16, name)));
  }, 300_000);

  test("there are cases of both kinds", () => {
    expect(totals.faulty).toBeGreaterThan(100);
    expect(totals.healthy).toBeGreaterThan(20);
  });

  test("of 100 faulty nodes, 95 have their fault among the causes", () => {
    expect(totals.found / totals.faulty, `${totals.found} of ${totals.faulty}; missed:\n${totals.missed.join("\n")}`).toBeGreaterThanOrEqual(0.95);
  });

  test("of 100 faulty nodes, 90 have their fault as the first cause", () => {
    const others = [...totals.missed, ...totals.notFirst];
    expect(totals.first / totals.faulty, `${totals.first} of ${totals.faulty}; not first:\n${others.join("\n")}`).toBeGreaterThanOrEqual(0.9);
  });

  test("no healthy node has a cause", () => {
    expect(totals.falseAlarms, `${totals.falseAlarms.length} of ${totals.healthy}`).toEqual([]);
  });
});
