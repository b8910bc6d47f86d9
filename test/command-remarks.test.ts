import { expect, test } from "vitest";
import { commandLine } from "../functions/facts/command.ts";

test.each([
  ["date; ethtool -S eth0 | grep exceeded", ["ethtool", "-S", "eth0"], true],
  ["hostname && ip a", ["ip", "a"], false],
  ["root@n1:~# echo before; date; conntrack -S", ["conntrack", "-S"], false],
  ["ip a; date", ["ip", "a"], false],
  ["date | cat", ["date"], false],
  ["date;", ["date"], false],
])("what stands before a command on its line is looked past: %s", (text, argv, filtered) => {
  expect(commandLine(text)).toMatchObject({ argv, filtered });
});
