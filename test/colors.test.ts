import { expect, test } from "vitest";
import { withoutColors } from "../functions/facts/colors.ts";
import { readTranscript } from "../functions/imports/transcript.ts";

const ESCAPE = String.fromCharCode(27);
const BELL = String.fromCharCode(7);

test.each([
  [`${ESCAPE}[32m[12345.678901] ${ESCAPE}[0m${ESCAPE}[33mTCP: ${ESCAPE}[0mout of memory`, "[12345.678901] TCP: out of memory"],
  ["[36mINFO[0m[0000] Created network", "INFO[0000] Created network"],
  ["[1;31mE1121[m failed[0m", "E1121 failed"],
  ["rate(node_netstat_Tcp_InErrs[5m]) > 0", "rate(node_netstat_Tcp_InErrs[5m]) > 0"],
  ["no colour, a [1m] and two\nrows", "no colour, a [1m] and two\nrows"],
])("%j", (text, shown) => {
  expect(withoutColors(text)).toBe(shown);
});

test("a recorded session: the window's title and the colours of prompt and output", () => {
  const text = [
    `${ESCAPE}]0;root@n1: ~${BELL}${ESCAPE}[01;32mroot@n1${ESCAPE}[00m:${ESCAPE}[01;34m~${ESCAPE}[00m# ip -c route`,
    `default via ${ESCAPE}[35m192.0.2.1 ${ESCAPE}[0mdev ${ESCAPE}[36meth0${ESCAPE}[0m`,
  ];
  expect(readTranscript(text.join("\n"), "typescript.txt").outputs.map(({ command, text: output }) => [command, output.trim()])).toEqual([
    ["ip -c route", "default via 192.0.2.1 dev eth0"],
  ]);
});
