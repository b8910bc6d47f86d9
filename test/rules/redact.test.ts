import { expect, test } from "vitest";
import { RunbookFile } from "../../functions/rules/schema.ts";

const runbook = (redact: string[]) =>
  RunbookFile.safeParse({ id: "mine", title: "Mine", rules: "all", timeoutSeconds: 10, maxBytes: 1024, intervalSeconds: 2, budgetSeconds: 60, redact });

test("patterns of one's own", () => {
  expect(runbook(["ACME-[0-9]{4}", "/srv/(vault|keys)/[a-z]+", "it's \\$[0-9]+", '"seed":"[^"]*"']).success).toBe(true);
});

test.each([
  ["that fit an empty text", "x*"],
  ["that are none", "a("],
  ["with look-behind", "(?<=a)b"],
  ["with a back reference", "(a)\\1"],
  ["with what only some sed know", "\\d+"],
  ["of two lines", "a\nb"],
  ["with the SSM agent's syntax", "a{{2}}"],
  ["that are too long", "a".repeat(201)],
])("refused: patterns %s", (_, pattern) => {
  expect(runbook([pattern]).error?.issues[0]?.path).toEqual(["redact", 0]);
});
