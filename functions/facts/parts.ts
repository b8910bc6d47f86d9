import type { Part } from "./fact.ts";
import { rankOf } from "./fact.ts";

/** The parts that a merge looks at (the first sample; whatever is there if there is none), best first. */
export function ranked<T>(parts: readonly Part<T>[]): Part<T>[] {
  const first = parts.filter((part) => part.sample === 1);
  return (first.length > 0 ? first : [...parts]).sort((a, b) => rankOf(b) - rankOf(a));
}

/** What {@link ranked} leaves out: the same outputs, read again. A log has gone on by then, so these tell more and replace nothing. */
export function laterReadings<T>(parts: readonly Part<T>[]): Part<T>[] {
  return parts.some((part) => part.sample === 1) ? parts.filter((part) => part.sample !== 1) : [];
}

/** True if one of the parts shows all of this scope; without one, all there is. */
export const isShown = (parts: readonly Part<unknown>[], scope = ""): boolean => parts.some((part) => part.complete && part.view.scope === scope);

/** The rows of every part, list by list. */
export function concatenated<T extends { readonly [List in keyof T]: readonly unknown[] | undefined }>(parts: readonly Part<T>[]): T {
  const lists: Record<string, unknown[]> = {};
  for (const { value } of parts)
    for (const [name, rows] of Object.entries<readonly unknown[] | undefined>(value)) {
      lists[name] ??= [];
      for (const row of rows ?? []) lists[name].push(row);
    }
  return lists as Record<string, readonly unknown[]> as T;
}

/** Of a fact whose every output tells something of its own, as the commands do that only people run: nothing stands for another, and nothing can be missing. */
export const eachOnItsOwn = { merge: concatenated, whole: (): boolean => true };

/** Where a row was read: belongs to the row as a whole, so it is never taken over from another row. */
const PLACE: ReadonlySet<string> = new Set(["line", "output", "text"]);

/**
 * One row per key, in the order of first sight: the row that tells the most (the first of equals), completed with the fields that only the others
 * have. Its line stays the place to quote. Linear.
 */
export function combine<R extends object>(rows: readonly R[], keyOf: (row: R) => string): R[] {
  const combined = new Map<string, R>();
  for (const row of rows) {
    const key = keyOf(row);
    const known = combined.get(key);
    combined.set(key, known === undefined ? row : fieldCount(row) > fieldCount(known) ? completed(row, known) : completed(known, row));
  }
  return [...combined.values()];
}

const fieldCount = (row: object): number => Object.entries(row).filter(([name, value]) => value !== undefined && !PLACE.has(name)).length;

function completed<R extends object>(row: R, other: R): R {
  const result = { ...row } as Record<string, unknown>;
  for (const [name, value] of Object.entries(other)) if (!PLACE.has(name)) result[name] ??= value;
  return result as R;
}
