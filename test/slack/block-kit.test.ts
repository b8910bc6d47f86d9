import { describe, expect, test } from "vitest";
import { limits, validateBlocks, validateView } from "../../functions/slack/block-kit.ts";

const plain = (length: number) => ({ type: "plain_text", text: "x".repeat(length) });
const mrkdwn = (length: number) => ({ type: "mrkdwn", text: "x".repeat(length) });
const button = (fields: object = {}) => ({ type: "button", text: plain(1), ...fields });
const actions = (...elements: object[]) => ({ type: "actions", elements });
const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index));

/** At the limit it is fine; one more is one problem, at that place. */
const cases: readonly [name: string, at: (size: number) => unknown[], limit: number, pointer: string][] = [
  ["blocks of a message", (size) => many(size, () => ({ type: "divider" })), limits.messageBlocks, "/blocks"],
  ["section text", (size) => [{ type: "section", text: mrkdwn(size) }], limits.sectionText, "/blocks/0/text/text"],
  ["fields", (size) => [{ type: "section", fields: many(size, () => mrkdwn(1)) }], limits.fields, "/blocks/0/fields"],
  ["field text", (size) => [{ type: "section", fields: [mrkdwn(size)] }], limits.fieldText, "/blocks/0/fields/0/text"],
  ["header", (size) => [{ type: "header", text: plain(size) }], limits.headerText, "/blocks/0/text/text"],
  ["elements of actions", (size) => [actions(...many(size, () => button()))], limits.actions, "/blocks/0/elements"],
  ["elements of context", (size) => [{ type: "context", elements: many(size, () => mrkdwn(1)) }], limits.contextElements, "/blocks/0/elements"],
  ["button text", (size) => [actions(button({ text: plain(size) }))], limits.buttonText, "/blocks/0/elements/0/text/text"],
  ["button value", (size) => [actions(button({ value: "x".repeat(size) }))], limits.buttonValue, "/blocks/0/elements/0/value"],
  ["action_id", (size) => [actions(button({ action_id: "x".repeat(size) }))], limits.id, "/blocks/0/elements/0/action_id"],
  ["block_id", (size) => [{ type: "divider", block_id: "x".repeat(size) }], limits.id, "/blocks/0/block_id"],
];

describe("limits", () => {
  test.each(cases)("%s", (_name, at, limit, pointer) => {
    expect(validateBlocks(at(limit), "message")).toEqual([]);
    expect(validateBlocks(at(limit + 1), "message")).toEqual([expect.stringContaining(`[json-pointer:${pointer}]`)]);
  });

  test("a modal may have 100 blocks", () => {
    const view = (count: number) => ({ type: "modal", title: plain(24), blocks: many(count, () => ({ type: "divider" })) });
    expect(validateView(view(100))).toEqual([]);
    expect(validateView(view(101))).toEqual(["[ERROR] no more than 100 items allowed [json-pointer:/view/blocks]"]);
  });
});

test.each([
  ["an unknown block type", [{ type: "nonsense" }], "unsupported type", "/blocks/0/type"],
  ["an unknown element type", [actions({ type: "nonsense" })], "unsupported type", "/blocks/0/elements/0/type"],
  ["a property that does not exist", [{ type: "divider", colour: "red" }], "additional property: colour", "/blocks/0"],
  ["an empty text", [{ type: "section", text: mrkdwn(0) }], "must be more than 0 characters", "/blocks/0/text/text"],
  ["a section without text", [{ type: "section" }], "missing required field: text or fields", "/blocks/0"],
  ["a header in mrkdwn", [{ type: "header", text: mrkdwn(1) }], "plain_text", "/blocks/0/text/type"],
  ["a link that runs a script", [actions(button({ url: "javascript:alert(1)" }))], "invalid url", "/blocks/0/elements/0/url"],
  [
    "the same block_id twice",
    [
      { type: "divider", block_id: "a" },
      { type: "divider", block_id: "a" },
    ],
    'block_id "a" already exists',
    "/blocks/1/block_id",
  ],
  ["the same action_id twice", [actions(button({ action_id: "a" })), actions(button({ action_id: "a" }))], 'action_id "a" already exists', "/blocks/1"],
  ["no array", { type: "divider" }, "must be array", "/blocks"],
])("refuses %s", (_name, blocks, what, pointer) => {
  const problems = validateBlocks(blocks, "message");
  expect(problems).toHaveLength(1);
  expect(problems[0]).toContain(what);
  expect(problems[0]).toContain(`[json-pointer:${pointer}]`);
});

test("a modal needs a title, and a submit button if it asks for something", () => {
  const input = { type: "input", label: plain(1), element: { type: "plain_text_input" } };
  expect(validateView({ type: "modal", blocks: [input] })).toEqual([
    "[ERROR] missing required field: title [json-pointer:/view]",
    "[ERROR] missing required field: submit [json-pointer:/view]",
  ]);
  expect(validateView({ type: "modal", title: plain(24), submit: plain(24), blocks: [input] })).toEqual([]);
  expect(validateView({ type: "modal", title: plain(25), blocks: [] })).toEqual(["[ERROR] must be less than 25 characters [json-pointer:/view/title/text]"]);
  expect(validateView({ type: "home", blocks: [] })).toEqual([]);
});
