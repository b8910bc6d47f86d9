import fc from "fast-check";
import { broken } from "./invariants.ts";
import { type Scenario, scenario } from "./scenario.ts";
import { ChaosWorld } from "./world.ts";

/** Counts over all runs, so that a run of nothing but refusals does not pass for a proof. */
export interface DeliveryTally {
  runs: number;
  /** Runs in which a fix ran on the node, and runs in which one was proposed and none ran. */
  fixed: number;
  idle: number;
  /** Requests that arrived, those that were taken, faults that struck. */
  requests: number;
  taken: number;
  faults: number;
  /** How incidents ended. */
  readonly states: Record<string, number>;
}

export const emptyTally = (): DeliveryTally => ({ runs: 0, fixed: 0, idle: 0, requests: 0, taken: 0, faults: 0, states: {} });

/** Plays one scenario; what is wrong at its end. */
export async function playOne(scene: Scenario, tally: DeliveryTally): Promise<string[]> {
  const world = new ChaosWorld(scene);
  try {
    await world.play();
    const problems = await broken(world);
    tally.runs++;
    tally.fixed += world.node.runs.length > 0 ? 1 : 0;
    tally.idle += world.node.runs.length === 0 ? 1 : 0;
    tally.requests += world.sent.length;
    tally.taken += world.sent.filter(({ status }) => status === 200).length;
    tally.faults += world.struck.length;
    for (const { state } of await world.store.incidents(100)) tally.states[state] = (tally.states[state] ?? 0) + 1;
    return problems;
  } finally {
    await world.close();
  }
}

export interface Counterexample {
  readonly seed: number;
  readonly path: string;
  readonly problems: readonly string[];
  readonly scenario: Scenario;
}

/** Plays `runs` random scenarios from a seed; the smallest one that breaks something, or undefined. `path`: from there on, as a counterexample names it. */
export async function deliver(seed: number, runs: number, tally: DeliveryTally, path = ""): Promise<Counterexample | undefined> {
  const details = await fc.check(
    fc.asyncProperty(scenario, async (scene) => {
      const problems = await playOne(scene, tally);
      if (problems.length > 0) throw new Error(problems.join("\n"));
    }),
    { seed, numRuns: runs, ...(path === "" ? {} : { path }) },
  );
  if (!details.failed) return undefined;
  const [scene] = details.counterexample ?? [];
  const error = details.errorInstance;
  return {
    seed,
    path: details.counterexamplePath ?? "",
    problems: (error instanceof Error ? error.message : String(error)).split("\n"),
    scenario: scene as Scenario,
  };
}
