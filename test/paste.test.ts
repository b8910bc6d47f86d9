import { expect, test } from "vitest";
import { unadorned } from "../functions/facts/paste.ts";
import { unwrapped } from "../functions/facts/unwrap.ts";

test("what a terminal or a web page added to an output goes, and lines keep their numbers", () => {
  expect(unadorned("```console\n\u001b[32mdefault\u001b[0m via 10.0.0.1 dev eth0\n```\n")).toBe("\ndefault via 10.0.0.1 dev eth0\n\n");
  expect(unadorned("1\n[root@node-1 ~]# \n")).toBe("1\n");
  expect(unadorned("1\nops@node-1:~$")).toBe("1\n");
});

test("a comment on the last line is no waiting prompt", () => {
  for (const text of ["COMMIT\n# Completed on Fri Nov 20 09:14:07 2026\n", "# ip rule\n0:\tfrom all lookup local\n", ""]) expect(unadorned(text)).toBe(text);
});

test("what a web page or a message put in front of all lines goes, and what only some have stays", () => {
  expect(unadorned("    1: lo:\n        link/loopback\n\n    2: eth0:\n")).toBe("1: lo:\n    link/loopback\n\n2: eth0:\n");
  expect(unadorned("\t1: lo:\n\t\tlink/loopback\n")).toBe("1: lo:\n\tlink/loopback\n");
  expect(unadorned("1: lo:\n    link/loopback\n")).toBe("1: lo:\n    link/loopback\n");
  expect(unadorned("  1\n 2\n")).toBe(" 1\n2\n");
  expect(unadorned("a\u00a0\u00a0b\n")).toBe("a  b\n");
});

test("a prompt goes from JSON, and stays where it may be a comment", () => {
  expect(unadorned('root@node-1:~# ip -j route\n[{"dst":"default"}]\nroot@node-1:~#\n')).toBe('\n[{"dst":"default"}]');
  expect(unadorned("$ ip -j route\n[]\n")).toBe("\n[]");
  for (const text of ["# Warning: iptables-legacy tables present\n[0:0] -A FORWARD -j ACCEPT\n", "$ dmesg\n[    0.000000] Linux\n"])
    expect(unadorned(text)).toBe(text);
});

test("an answer without a line break is not taken for a prompt", () => {
  expect(unadorned("ipvsroot@node1:~# ")).toBe("ipvsroot@node1:~# ");
});

const gone = (text: string, ...numbers: number[]): string[] =>
  unwrapped(
    text,
    numbers.map((line) => ({ line, text: "" })),
  );

test("lines that a window cut are put together, and keep their numbers", () => {
  const first = `default via 10.0.0.1 dev eth0 proto dhcp src 10.0.0.5 metric 100 mtu 1400 advmss 1`;
  const cut = `${first.slice(0, 80)}\n${first.slice(80)}360\n10.0.0.0/24 dev eth0\n`;
  expect(gone(cut, 2)).toContain(`${first}360\n\n10.0.0.0/24 dev eth0\n`);
  const soft = `${first.slice(0, 64)}\n${first.slice(65)}360\n10.0.0.0/24 dev eth0\n`;
  expect(gone(soft, 2)).toContain(`${first}360\n\n10.0.0.0/24 dev eth0\n`);
});

test("nothing is put together where all was read, or where no line is long", () => {
  expect(gone(`${"x".repeat(80)}\nrest\n`)).toEqual([]);
  expect(gone("short\nrest\n", 2)).toEqual([]);
});
