import fc from "fast-check";
import { expect, test } from "vitest";
import { compactJson } from "../functions/cli/json.ts";

const textOf = (value: Record<string, unknown>): string => [...compactJson(value)].join("");

/** What is left out of a row. */
const left = (field: unknown): boolean => field === undefined || field === false || field === "" || (Array.isArray(field) && field.length === 0);

test("the JSON of a fact's value is its rows without what is false or empty, whatever the texts hold", () => {
  const field = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.integer(),
    fc.double(),
    fc.boolean(),
    fc.constant(undefined),
    fc.array(fc.string({ unit: "binary" }), { maxLength: 3 }),
  );
  const row = fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), field);
  const value = fc.record({ rows: fc.array(row), names: fc.array(fc.string()), count: fc.integer() });
  fc.assert(
    fc.property(value, ({ rows, names, count }) => {
      const kept = rows.map((one) => Object.fromEntries(Object.entries(one).filter(([, content]) => !left(content))));
      const read: unknown = JSON.parse(textOf({ rows, names, count }));
      expect(textOf({ rows, names, count })).toMatch(/^[ -~]*$/);
      expect(read).toEqual(JSON.parse(JSON.stringify({ rows: kept, names, count })));
    }),
  );
});

test("a long list comes in pieces", () => {
  const rows = Array.from({ length: 20_000 }, (_, line) => ({ line, text: "x".repeat(40), negated: false }));
  const pieces = [...compactJson({ rows })];
  expect(pieces.length).toBeGreaterThan(2);
  expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(300_000);
  expect((JSON.parse(pieces.join("")) as { rows: unknown[] }).rows).toHaveLength(20_000);
});
