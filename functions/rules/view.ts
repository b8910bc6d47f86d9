/** Turns a value of a fact into what CEL works with. */
export type Converter = (value: unknown) => unknown;
export const identity: Converter = (value) => value;

// true while fields that a person painted over (Row.masked) may not be read
let refused = false;

/** Runs something to which painted-over fields are unknown: reading one throws. CEL takes that for "neither true nor false" (`true || unknown` is true). */
export const refusingMasked = <T>(run: () => T): T => whileRefused(true, run);

/** Runs something that shows painted-over fields as they stand, and does not judge by them. */
export const showingMasked = <T>(run: () => T): T => whileRefused(false, run);

function whileRefused<T>(refuses: boolean, run: () => T): T {
  const before = refused;
  refused = refuses;
  try {
    return run();
  } finally {
    refused = before;
  }
}

export const masksRefused = (): boolean => refused;

function refuse(source: Record<string, unknown>, key: string): void {
  const masked = source["masked"];
  if (Array.isArray(masked) && masked.includes(key)) throw new Error(`${key} in line ${String(source["line"])} is masked (${String(source[key])})`);
}

/** No fact has a field of this name. */
export const SOURCE = Symbol("source");
const KEYS = Symbol("keys");

/** A fact's object as CEL sees it. */
export interface View {
  readonly [SOURCE]: Readonly<Record<string, unknown>>;
}

/** The fields of a fact's object as CEL sees it, those that are there; undefined for any other value. */
export function fieldsOf(value: object): [string, unknown][] | undefined {
  const keys = (value as { [KEYS]?: readonly string[] })[KEYS];
  return keys?.map((key): [string, unknown] => [key, (value as Record<string, unknown>)[key]]).filter(([, field]) => field !== undefined);
}

/**
 * A class whose instances show a fact's object as CEL wants it: whole numbers as BigInt, lists of views. Views, not copies: a node may have a
 * 100,000 rows of which the rules look at two fields.
 */
export function viewClass(
  name: string,
  shape: readonly { readonly key: string; readonly convert: Converter }[],
): new (
  source: Record<string, unknown>,
) => object {
  class View {
    readonly [SOURCE]: Record<string, unknown>;
    constructor(source: Record<string, unknown>) {
      this[SOURCE] = source;
    }
    /** The fact's own object, for whoever prints a row. */
    toJSON(): unknown {
      return this[SOURCE];
    }
  }
  Object.defineProperty(View, "name", { value: name });
  Object.defineProperty(View.prototype, KEYS, { value: shape.map(({ key }) => key) });
  for (const { key, convert } of shape) {
    Object.defineProperty(View.prototype, key, {
      get(this: View): unknown {
        const item = this[SOURCE][key];
        if (refused) refuse(this[SOURCE], key);
        if (item === undefined || convert === identity) return item;
        const converted = convert(item);
        // a list is converted once
        if (Array.isArray(converted)) Object.defineProperty(this, key, { value: converted });
        return converted;
      },
    });
  }
  // not fields of the type, so rules cannot see them: what evidence is made of
  for (const key of ["output", "text"])
    if (!shape.some((field) => field.key === key))
      Object.defineProperty(View.prototype, key, {
        get(this: View): unknown {
          return this[SOURCE][key];
        },
      });
  return View;
}
