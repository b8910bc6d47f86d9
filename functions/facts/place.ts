import type { Row } from "./fact.ts";

/** Where a row was read, for a row of a derived fact that is made from it. */
export function placeOf(row: { readonly line: number; readonly output?: number | undefined; readonly text?: string | undefined }): Row {
  const place: Row = { line: row.line };
  if (row.output !== undefined) place.output = row.output;
  if (row.text !== undefined) place.text = row.text;
  return place;
}
