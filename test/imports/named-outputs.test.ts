import { describe, expect, test } from "vitest";
import { readTranscript } from "../../functions/imports/transcript.ts";

const RULES = "0: from all lookup local\n32766: from all lookup main\n32767: from all lookup default";
const commandsOf = (text: string): string[] => readTranscript(text, "paste.txt").outputs.map(({ command }) => command);

describe("a line that says in words which command printed what follows", () => {
  test.each([
    ["ip rule output:", "ip rule"],
    ["ip rule shows only:", "ip rule"],
    ["Result of ip rule on wk-1:", "ip rule"],
    ["The output of ip rule is:", "ip rule"],
    ["**ip rule**", "ip rule"],
  ])("%s", (line, command) => {
    expect(commandsOf(`It fails since the upgrade.\n\n${line}\n${RULES}\n`)).toEqual([command]);
  });

  test.each(["The node that fails shows:", "Result of the upgrade:", "Nobody gives:"])("%s", (line) => {
    expect(commandsOf(`It fails since the upgrade.\n\n${line}\nall pods are gone\n`)).toEqual([]);
  });
});
