import type { Row } from "./fact.ts";

/** Where a row was read: what a derived fact's row takes over from the row that it is made of. */
export function placed({ line, output, text }: Row): Row {
  return { line, ...(output === undefined ? {} : { output }), ...(text === undefined ? {} : { text }) };
}
