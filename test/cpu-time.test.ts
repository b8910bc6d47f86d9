import { expect, test } from "vitest";
import { expectLinear } from "./cpu-time.ts";

const words = (size: number): string => "a ".repeat(size);

test("what is linear passes", () => {
  expectLinear(words, (text) => text.split(" ").map((word) => word.toUpperCase()), 20_000);
});

test("what grows with the square does not", () => {
  const quadratic = (text: string): number => {
    let found = 0;
    for (let at = 0; at < text.length; at += 2) for (let end = at; end < text.length; end += 2) found += text.charCodeAt(end) === 97 ? 1 : 0;
    return found;
  };
  expect(() => expectLinear(words, quadratic, 5000, "quadratic")).toThrow(/quadratic: 5000 parts take/);
});
