import { describe, expect, test } from "vitest";
import { parseCommand } from "../../functions/slack/listeners/netcheck-command.ts";

/** `/netcheck node1 vs node2`: how the words are read. */

describe("a comparison", () => {
  test.each<[string, string[]]>([
    ["node1 vs node2", ["node2"]],
    ["  node1   VS.  node2 ", ["node2"]],
    ["node1 versus node2, node3 node4", ["node2", "node3", "node4"]],
    ["node1", []],
  ])("%s", (text, against) => {
    expect(parseCommand(text)).toEqual({ kind: "triage", target: "node1", against });
  });

  test.each<[string, string]>([
    ["node1 vs", 'Compare node1 with which node? "vs" needs a second name.'],
    ["node1 vs node1", '"node1" is there twice; a node cannot be compared with itself.'],
    ["node1 vs NODE1", '"NODE1" is there twice; a node cannot be compared with itself.'],
    ["node1 vs node2 node3 node4 node5", 'At most 3 nodes can stand behind "vs"; these are 4.'],
    ["node1 vs $(reboot)", '"$(reboot)" cannot be the name of a target.'],
    ["node1 node2", '"node1 node2" has more than one word; one target at a time, please, or two with "vs" between them.'],
  ])("%s: %s", (text, problem) => {
    expect(parseCommand(text)).toEqual({ kind: "help", problem });
  });
});
