import { type Part, rankOf } from "./fact.ts";

/** The samples of one and the same command: what grew is the difference. `before` is absent where there was one sample. */
export interface Samples<T> {
  readonly before: Part<T> | undefined;
  readonly after: Part<T>;
}

/**
 * The parts of a fact that is made of counters, grouped by layout and scope, best first: only numbers that were printed the same way are compared.
 * Of several parts of one sample the best-ranked counts. A sample that was cut is not compared with one that was not: what it lacks would look like growth.
 * `byName`: each row is compared with the one of its own name, so that a line that could not be read, such as what somebody wrote below, does no harm.
 */
export function samples<T>(parts: readonly Part<T>[], byName = false): Samples<T>[] {
  const isWhole = (part: Part<T>): boolean => (byName ? part.truncated !== true : part.complete);
  const groups = Map.groupBy(
    parts.toSorted((a, b) => rankOf(b) - rankOf(a)),
    (part) => `${part.view.format} ${part.view.scope}`,
  );
  return [...groups.values()].flatMap((group): Samples<T>[] => {
    const first = group.find((part) => part.sample === 1);
    const second = group.find((part) => part.sample === 2);
    if (first !== undefined && second !== undefined && isWhole(first) === isWhole(second)) return [{ before: first, after: second }];
    const [best] = group;
    return best === undefined ? [] : [{ before: undefined, after: best }];
  });
}

/** Of each scope the layout that shows the most, in its first and its second sample, and what the newer of them says. For facts of which only some rows are counters. */
export function samplesByScope<T>(parts: readonly Part<T>[]): { before: Part<T> | undefined; after: Part<T> | undefined; newest: T }[] {
  return [...Map.groupBy(parts, (part) => part.view.scope).values()].flatMap((own) => {
    const ranked = own.toSorted((a, b) => rankOf(b) - rankOf(a));
    const [before, after] = [1, 2].map((sample) => ranked.find((part) => part.view.format === ranked[0]?.view.format && part.sample === sample));
    const newest = after ?? before;
    return newest === undefined ? [] : [{ before, after, newest: newest.value }];
  });
}

/** How much a counter grew; undefined if it is not known before, or went down (it was reset between the samples). */
export function growth(before: number | undefined, after: number): number | undefined {
  return before === undefined || after < before ? undefined : after - before;
}

/**
 * True if a counter went down: it was set back, with all that are counted beside it, or it is another machine's. The kernel's smaller ones begin again at 2³².
 */
export const fell = (before: number | undefined, after: number): boolean => before !== undefined && after < before && before < 2 ** 31;

/** How much each of these counters of one row grew from `before` to `after`, as `…Delta`: where one is missing, or any was set back, nothing. */
export function deltas<C extends string>(
  counters: readonly C[],
  before: { readonly [Name in C]?: number | undefined } | undefined,
  after: { readonly [Name in C]?: number | undefined },
): { [Name in `${C}Delta`]?: number } {
  const grown: { [name: string]: number } = {};
  if (counters.some((counter) => fell(before?.[counter], after[counter] ?? Number.POSITIVE_INFINITY))) return grown as { [Name in `${C}Delta`]?: number };
  for (const counter of counters) {
    const now = after[counter];
    const delta = now === undefined ? undefined : growth(before?.[counter], now);
    if (delta !== undefined) grown[`${counter}Delta`] = delta;
  }
  return grown as { [Name in `${C}Delta`]?: number };
}

/** What `date` and `watch` print above each answer of a loop. */
export const isTimeLine = (line: string): boolean => TIME.test(line.trim());
const TIME =
  /^(?:\d{9,10}(?:\.\d{1,9})?|[A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d{1,2} [\d:]{5,8}(?: [AP]M)? [\w+-]{1,6} \d{4}|(?:\d{4}-\d\d-\d\d[T ])?\d\d?:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?[AP]M|Z|[+-]\d\d:?\d\d)?|Every [\d.,]{1,8}s: .{1,200})$/;

/** Counters have 64 bits; beyond 2^53 they are cut to that. */
export const counterOf = (digits: string): number => Math.max(-Number.MAX_SAFE_INTEGER, Math.min(Number(digits), Number.MAX_SAFE_INTEGER));

/**
 * People paste two samples into one text. Of each name that a tool prints once, the last row, with its growth since the first. Names that are not
 * counters' names (sentences) may stand for several things and stay as they are.
 */
export function withinOneText<R extends { name: string; value: number; valueDelta?: number | undefined }>(rows: readonly R[]): R[] {
  const first = new Map<string, R>();
  const last = new Map<string, R>();
  for (const row of rows) {
    if (!COUNTER.test(row.name)) continue;
    if (first.has(row.name)) last.set(row.name, row);
    else first.set(row.name, row);
  }
  if (last.size === 0) return [...rows];
  return rows.flatMap((row) => {
    const newest = last.get(row.name);
    if (newest === undefined) return [row];
    if (row !== newest) return [];
    const valueDelta = growth(first.get(row.name)?.value, row.value);
    return [valueDelta === undefined ? row : { ...row, valueDelta }];
  });
}
const COUNTER = /^\w+$/;
