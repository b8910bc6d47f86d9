import type { AnyFact } from "../../functions/facts/fact.ts";
import { facts } from "../../functions/facts/index.ts";
import type { Catalogue } from "../../functions/rules/load.ts";
import { type Alarm, fuzzGarbled, fuzzPartial, type Quiet } from "./capture.ts";
import { donorsOf, type Failure, fuzzFact } from "./fact.ts";

/** What to run: `facts` and `captures` (healthy ones, and the rules to judge them with), either of which may be left out. */
export interface Plan {
  readonly seed: number;
  readonly facts: readonly AnyFact[];
  readonly captures: { readonly quiet: readonly Quiet[]; readonly catalogue: Catalogue } | undefined;
  /** Says after each batch whether there is time for another; the first round is always run whole. */
  readonly goOn: () => boolean;
  /** Told of each failure when it is found. */
  readonly onFailure: (failure: Failure | Alarm) => void;
}

export interface FactRow {
  readonly id: string;
  readonly runs: number;
  /** Microseconds per KB of the slowest text. */
  readonly perKb: number;
  readonly what: string;
  readonly failed: boolean;
}

export interface Report {
  readonly rounds: number;
  readonly facts: readonly FactRow[];
  /** Parts of healthy captures that were diagnosed, and garbled ones that were read. */
  readonly partial: number;
  readonly garbled: number;
  readonly failures: number;
}

/** Runs of one batch: round N of a run with seed S is the first round of a run with seed S + N. */
const GARBLED_TEXTS = 25;
const GROWING_TEXTS = 2;
const PARTIAL_CAPTURES = 100;
const GARBLED_CAPTURES = 25;

/** Round after round with the next seed, until the time is over. A fact that failed is left out from then on, a rule that failed is not told of again. */
export function fuzz({ seed, facts: chosen, captures, goOn, onFailure }: Plan): Report {
  const donors = donorsOf(facts);
  const rows = new Map<string, FactRow>(chosen.map(({ id }) => [id, { id, runs: 0, perKb: 0, what: "", failed: false }]));
  const known = new Set<string>();
  const counts = { partial: 0, garbled: 0, failures: 0 };
  let round = 0;
  do {
    for (const fact of chosen) {
      const row = rows.get(fact.id) as FactRow;
      if (row.failed) continue;
      const tally = fuzzFact(fact, donors, { seed: seed + round, runs: GARBLED_TEXTS, feeds: GROWING_TEXTS });
      for (const failure of tally.failures) onFailure(failure);
      counts.failures += tally.failures.length;
      const slower = tally.slowest.perKb > row.perKb ? tally.slowest : row;
      rows.set(fact.id, { id: fact.id, runs: row.runs + tally.runs, perKb: slower.perKb, what: slower.what, failed: tally.failures.length > 0 });
    }
    if (captures !== undefined) {
      const { quiet, catalogue } = captures;
      const partial = fuzzPartial(quiet, catalogue, known, { seed: seed + round, runs: PARTIAL_CAPTURES });
      const garbled = known.has("broken") ? undefined : fuzzGarbled(quiet, catalogue, { seed: seed + round, runs: GARBLED_CAPTURES });
      counts.partial += partial.diagnosed;
      counts.garbled += garbled?.diagnosed ?? 0;
      for (const alarm of [...partial.alarms, ...(garbled?.alarms ?? [])]) {
        known.add(alarm.of);
        counts.failures++;
        onFailure(alarm);
      }
    }
    round++;
  } while (goOn());
  return { rounds: round, facts: [...rows.values()], ...counts };
}
