/** T with each field that may be undefined made optional. */
type Present<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** A copy of `row` without the fields that are undefined: in a fact, what is absent is left out. */
export function present<T extends object>(row: T): Present<T> {
  const result: Record<string, unknown> = {};
  for (const key in row) if (row[key] !== undefined) result[key] = row[key];
  return result as Present<T>;
}

/**
 * A row given with all its fields, those that are not there as undefined, so that all rows of a large list have one layout. Rules and JSON leave the undefined
 * ones out (functions/rules/view.ts).
 */
export function laidOut<T extends object>(row: { [Key in keyof T]-?: T[Key] | undefined }): T {
  return row as T;
}
