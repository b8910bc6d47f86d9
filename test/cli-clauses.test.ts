import { expect, test } from "vitest";
import { Clauses } from "../functions/cli/clauses.ts";

/** Parts of a condition are shown and evaluated as they stand in the rule: parentheses and all. */
test.each([
  ["(1 == 2) == (3 == 4)", ["(1 == 2) == (3 == 4)"]],
  ["true && (1 - (2 - 3)) == 2", ["true", "(1 - (2 - 3)) == 2"]],
  ['")(" == ")(" && !(false || false)', ['")(" == ")("', "!(false || false)"]],
  ["(true || false) && ((1 + 2) * 3 == 9)", ["true || false", "(1 + 2) * 3 == 9"]],
])("%s", (source, parts) => {
  const clause = new Clauses({ lets: [], facts: new Set() }, {}).of({ source });
  expect(clause.value).toBe(true);
  const shown = clause.parts.length === 0 ? [clause] : clause.parts;
  expect(shown.map((part) => [part.source, part.value])).toEqual(parts.map((text) => [text, true]));
});
