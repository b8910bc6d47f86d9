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
