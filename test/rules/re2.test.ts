import fc from "fast-check";
import { expect, test } from "vitest";
import { groupOf, patternProblem, re2 } from "../../functions/rules/re2.ts";
import { cpuMs } from "../cpu-time.ts";

test.each([
  ["node ([a-z0-9-]+)", "disk of node web-1 is full", "web-1"],
  ["^(.+):\\d+$", "10.0.3.4:9100", "10.0.3.4"],
  ["(?i)HOST=(\\S+)", "x host=Node2 y", "Node2"],
  ["\\b(i-[0-9a-f]{17})\\b", "(i-0123456789abcdef0)", "i-0123456789abcdef0"],
  ["(?:a|ab)(c|bcd)", "abcd", "bcd"],
  ["(a*)", "bbb", ""],
  ["x(y)?z", "xz", undefined],
  ["(é😀.)", "aé😀bc", "é😀b"],
  ["(node\\d+)", "no such thing", undefined],
])("%s in %s", (pattern, text, group) => {
  expect(groupOf(pattern, text)).toBe(group);
});

/** Patterns that both engines understand in the same way. */
const pattern = fc.letrec<{ node: string }>((tie) => ({
  node: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom("a", "b", "ab", "[ab]", ".", "a*", "b+?", "a?", "\\b", "^", "$", "(?:ab|a)", "[^a]"),
    fc.tuple(tie("node"), tie("node")).map(([one, two]) => one + two),
    fc.tuple(tie("node"), tie("node")).map(([one, two]) => `(?:${one}|${two})`),
  ),
})).node;

test("it chooses the text that JavaScript's own engine chooses", () => {
  fc.assert(
    fc.property(pattern, pattern, pattern, fc.string({ unit: fc.constantFrom("a", "b", " "), maxLength: 12 }), (before, group, after, text) => {
      const whole = `${before}(${group})${after}`;
      expect(groupOf(whole, text), whole).toBe(new RegExp(whole).exec(text)?.[1]);
    }),
    { numRuns: 2000, seed: 6 },
  );
});

test("a pattern that would take a backtracking engine for ever does not", () => {
  const started = cpuMs();
  expect(groupOf("^(?:(?:a+)+)+(b)$", `${"a".repeat(1000)}c`)).toBeUndefined();
  expect(cpuMs() - started).toBeLessThan(2000);
});

test("what is no pattern says why", () => {
  expect(() => re2("(")).toThrow(/missing|unexpected|parenthesis/i);
});

test.each(["^flannel\\.[0-9]{1,8}$", "(?i)failed to (?:list|watch)", "a|b?c*", "^[^/]+/[\\w.-]{1,60}$", "\\{x\\}", "(?P<name>x)", "(?:ab){3}"])(
  "a pattern that RE2 takes: %s",
  (pattern) => {
    expect(patternProblem(pattern)).toBeUndefined();
    expect(() => re2(pattern)).not.toThrow();
  },
);

const refused = (pattern: string): boolean => {
  try {
    re2(pattern);
    return false;
  } catch {
    return true;
  }
};

test.each(["(?=x)", "(?!x)y", "(?<=x)y", "(a)\\1", "a{1001}", "(?:a{100}){100}", "(", "[z-a]", "\\u0041", "x{2", "a**"])("as RE2 says: %s", (text) => {
  expect(patternProblem(text) !== undefined).toBe(refused(text));
});

test("whatever the pattern is, as RE2 says", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...Array.from("ab()[]{}|?*+.^$-19,:=!<\\dBQ ")), maxLength: 8 }), (text) => {
      expect(patternProblem(text) !== undefined, text).toBe(refused(text));
    }),
    { numRuns: 20_000, seed: 7 },
  );
});
