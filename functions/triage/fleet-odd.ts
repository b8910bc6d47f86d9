import { createHash } from "node:crypto";
import { facts } from "../facts/index.ts";
import { readFacts } from "../facts/read.ts";
import { type Comparison, compare, WORTH_A_LOOK } from "../rules/compare.ts";
import { readingOf, viewOf } from "../rules/compare-rows.ts";
import { MOMENTARY } from "../rules/compare-weights.ts";
import type { Capture } from "./ports.ts";

/**
 * Which nodes of a pool are not like the others, at a cost that grows with the number of nodes and not with that of pairs: each node's facts become a set of
 * small numbers, those are counted over the pool, and only the few nodes that are furthest from the majority are compared in full.
 */

/** Nodes of a fleet that are compared in full: each costs four captures, about 50 ms. */
export const MOST_COMPARED = 10;
/** Peers of one comparison, as for a single node. */
const PEERS = 3;
/** A pool of fewer has no majority. */
const SMALLEST_POOL = 3;

/** What a node's facts say, as one number for each row; about 250. Rows are read as for a comparison, without what differs from node to node anyway. */
export type Sketch = readonly number[];

/** What lasts longer than the moment: only this is read for a sketch. */
const LASTING: ReadonlySet<string> = new Set(facts.map(({ id }) => id).filter((id) => !Object.hasOwn(MOMENTARY, id)));

/** The sketch of a capture. Takes about as long as a diagnosis, nearly all of it for reading the facts. */
export function sketchOf(capture: Capture): Sketch {
  const { readings } = readFacts(capture, LASTING);
  const found = new Set<number>();
  for (const id of LASTING) {
    const reading = readings.get(id);
    if (reading?.status !== "read") continue;
    for (const entry of viewOf(id, reading, capture, readingOf([reading], [])).entries)
      if (!entry.private) found.add(createHash("sha1").update(`${id}\n${entry.group}\n${entry.token}`).digest().readUInt32BE(0));
  }
  return [...found];
}

/** A node of a pool. */
export interface Sketched<T> {
  readonly node: T;
  readonly sketch: Sketch;
}

/**
 * How far each node is from what most of its pool are: rows that most others lack, and rows of most others that it lacks, each by how large the majority is.
 * Every node has some (counters, numbers of pods), so only the order means something, and being above the middle. Empty for fewer than three nodes.
 */
export function oddness<T>(pool: readonly Sketched<T>[]): readonly { readonly node: T; readonly score: number }[] {
  if (pool.length < SMALLEST_POOL) return [];
  const counts = new Map<number, number>();
  for (const { sketch } of pool) for (const mark of sketch) counts.set(mark, (counts.get(mark) ?? 0) + 1);
  const all = pool.length;
  // how much a node would be off that has none of the usual rows
  let bare = 0;
  for (const count of counts.values()) if (count * 2 > all) bare += (count / all) ** 2;
  return pool.map(({ node, sketch }) => {
    let score = bare;
    for (const mark of sketch) {
      const share = (counts.get(mark) ?? 0) / all;
      if (share > 0.5) score -= share ** 2;
      else score += (1 - share) ** 2;
    }
    return { node, score };
  });
}

/** Less is no row that hardly any other has, not even in a pool of three ((2/3)² = 0.44 for one row): what every node has some of. */
const NOISE = 0.4;
/** A node that differs by this much more than the middle of its pool has a row of its own that hardly any other has: worth a full comparison in any pool. */
export const CLEARLY = 1;

/** The nodes that are further from the majority than the middle of their pool, oddest first, each with the peers that are most like the majority. */
export function oddOnes<T>(pool: readonly Sketched<T>[]): readonly { readonly node: T; readonly peers: readonly T[]; readonly excess: number }[] {
  const scored = oddness(pool).toSorted((a, b) => a.score - b.score);
  const middle = scored[Math.floor((scored.length - 1) / 2)]?.score ?? 0;
  // one more than are wanted: the node itself may be among them
  const usual = scored.slice(0, PEERS + 1).map(({ node }) => node);
  return scored
    .filter(({ score }) => score - middle > NOISE)
    .toReversed()
    .map(({ node, score }) => ({ node, excess: score - middle, peers: usual.filter((one) => one !== node).slice(0, PEERS) }));
}

/** A full comparison, and how many of its differences are worth a look. */
export function compareOdd(
  name: string,
  capture: Capture,
  peers: readonly { readonly name: string; readonly capture: Capture }[],
): { readonly comparison: Comparison; readonly worth: number } {
  const comparison = compare({ name, capture }, peers);
  return { comparison, worth: comparison.differences.filter(({ score }) => score >= WORTH_A_LOOK).length };
}
