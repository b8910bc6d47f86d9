import fc from "fast-check";
import { expect, test } from "vitest";
import { complaint, environmentOf, fieldKinds } from "../../functions/rules/cel.ts";
import { narrow, narrowed } from "../../functions/rules/narrow.ts";
import { refusingMasked, SOURCE, type View } from "../../functions/rules/view.ts";

/** What a loop of a rule looks at: only the rows that can matter, and never fewer. */

const environment = environmentOf(["iptables"]);
const rewritten = (source: string): string => narrowed(source, environment.parse(source).ast, fieldKinds);

test.each([
  ['iptables.rows.exists(r, r.chain == "FORWARD")', 'iptables.narrow__rows([["chain", "==", "FORWARD"]]).exists(r, r.chain == "FORWARD")'],
  [
    'iptables.rows.filter(r, r.table == "nat" && r.chain.startsWith("KUBE-"))',
    'iptables.narrow__rows([["chain", "startsWith", "KUBE-"], ["table", "==", "nat"]]).filter(r, r.table == "nat" && r.chain.startsWith("KUBE-"))',
  ],
  [
    'iptables.rows.exists(r, has(r.target) && r.target in ["DROP", "REJECT"])',
    'iptables.narrow__rows([["target", "==", "DROP", "REJECT"]]).exists(r, has(r.target) && r.target in ["DROP", "REJECT"])',
  ],
])("%s", (source, quick) => {
  expect(rewritten(source)).toBe(quick);
  expect(environment.parse(quick).check().valid).toBe(true);
});

test.each([
  // a field that a row may lack, a condition that is one of two, one that is not of the row, a loop that looks at all rows
  'iptables.rows.exists(r, r.target == "DROP")',
  'iptables.rows.exists(r, r.chain == "FORWARD" || r.goto)',
  'iptables.rows.exists(r, "a" == "b")',
  'iptables.rows.all(r, r.chain == "FORWARD")',
])("as it is: %s", (source) => {
  expect(rewritten(source)).toBe(source);
});

test("a rule cannot call it", () => {
  expect(complaint(environment.parse('iptables.narrow__rows([["chain", "==", "FORWARD"]]).size() > 0').ast)).toBe("narrow__rows() is not for rules");
});

const word = fc.constantFrom("a", "b", "ab", "abc", "");
const row = fc.record({ one: word, two: word, other: fc.integer() }, { requiredKeys: ["other"] });
const condition = fc.oneof(
  fc.tuple(fc.constantFrom("one", "two"), fc.constant("=="), word).map((words) => words as string[]),
  fc.tuple(fc.constantFrom("one", "two"), fc.constant("=="), word, word).map((words) => words as string[]),
  fc.tuple(fc.constantFrom("one", "two"), fc.constant("startsWith"), word).map((words) => words as string[]),
);
const meets = (value: Record<string, unknown>, [field = "", how, ...values]: readonly string[]): boolean => {
  const text = value[field];
  return typeof text === "string" && (how === "==" ? values.includes(text) : text.startsWith(values[0] ?? ""));
};

test("no row that meets all conditions is lost, in order, and what is left meets one of them", () => {
  fc.assert(
    fc.property(fc.array(row, { minLength: 250, maxLength: 300 }), fc.array(condition, { minLength: 1, maxLength: 3 }), (rows, conditions) => {
      const fact: View & { rows: unknown } = { [SOURCE]: { rows }, rows };
      const found = narrow(fact, "rows", conditions, (one) => one) as Record<string, unknown>[];
      const places = found.map((one) => rows.indexOf(one as (typeof rows)[number]));
      expect(places).toEqual([...new Set(places)].sort((a, b) => a - b));
      const wanted = rows.filter((one) => conditions.every((each) => meets(one, each)));
      expect(wanted.every((one) => found.includes(one))).toBe(true);
      if (found.length < rows.length) expect(conditions.some((each) => found.every((one) => meets(one, each)))).toBe(true);
    }),
    { numRuns: 300, seed: 9 },
  );
});

test("a row is shown once, the rest is not; what may be masked is looked at whole", () => {
  const rows = Array.from({ length: 1000 }, (_, n) => ({ chain: n % 100 === 7 ? "FORWARD" : `OTHER-${n}` }));
  const all = Symbol("all");
  const shown: unknown[] = [];
  const fact: View & { rows: unknown } = { [SOURCE]: { rows }, rows: all };
  const ask = (): unknown => narrow(fact, "rows", [["chain", "==", "FORWARD"]], (one) => shown.push(one) && { view: one });
  const first = ask() as unknown[];
  expect(first).toHaveLength(10);
  expect(ask()).toEqual(first);
  expect((ask() as unknown[])[3]).toBe(first[3]);
  expect(shown).toHaveLength(10);
  expect(refusingMasked(ask)).toBe(all);
});
