import { describe, expect, test } from "vitest";
import { readTranscript } from "../../functions/imports/transcript.ts";
import { expectLinear } from "../cpu-time.ts";

const outputsOf = (text: string): string[][] => readTranscript(text, "paste.txt").outputs.map(({ command, text: shown }) => [command, shown.trim()]);
const WHOLE = "0: from all lookup local\n32766: from all lookup main\n32767: from all lookup default";
const LOST = "0: from all lookup local";

describe("how it should be is not how it is", () => {
  test.each([
    ["a section", `### Expected behavior\n\n\`\`\`\n$ ip rule\n${WHOLE}\n\`\`\`\n\n### Actual behavior\n\n\`\`\`\n$ ip rule\n${LOST}\n\`\`\`\n`],
    ["a bold heading", `**What did you expect to happen?**\n\`\`\`\n$ ip rule\n${WHOLE}\n\`\`\`\n**What happened?**\n\`\`\`\n$ ip rule\n${LOST}\n\`\`\`\n`],
    ["a sentence", `These rules should exist:\n\n\`\`\`\n$ ip rule\n${WHOLE}\n\`\`\`\n\nBut it has:\n\n\`\`\`\n$ ip rule show\n${LOST}\n\`\`\`\n`],
    [
      "lists without a command",
      `### Expected behaviour you didn't see\n\nAfter the restart, the following rules should exist:\n${WHOLE}\n\n### Unexpected behaviour you saw\n\nip rule shows only:\n${LOST}\n\nAs a consequence:\n- nothing is reached\n`,
    ],
  ])("%s", (_name, text) => {
    expect(outputsOf(text)).toEqual([[expect.stringMatching(/^ip rule/), LOST]]);
  });

  test("what is shown there alone was seen there", () => {
    expect(outputsOf(`## Expected Behavior\n\nThis should not happen:\n\n\`\`\`\n$ ip rule\n${LOST}\n\`\`\`\n\n## Current Behavior\n\nIt does.\n`)).toEqual([
      ["ip rule", LOST],
    ]);
  });

  test("what was unexpected was seen", () => {
    expect(outputsOf(`### Unexpected behaviour\n\n\`\`\`\n$ ip rule\n${LOST}\n\`\`\`\n\n### Later\n\n\`\`\`\n$ ip rule\n${WHOLE}\n\`\`\`\n`)).toHaveLength(2);
  });
});

test("the time grows with the lines", () => {
  const hostile = [`# expected ${"a ".repeat(60)}\n`, `this should be ${"be ".repeat(90)}\n`, "**".repeat(7)];
  for (const part of hostile)
    expectLinear(
      (size) => part.repeat(size),
      (text) => readTranscript(text, "paste.txt"),
      750,
      part.slice(0, 20),
    );
});
