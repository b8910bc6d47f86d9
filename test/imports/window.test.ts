import { expect, test } from "vitest";
import { lastLine } from "../../functions/imports/tail.ts";
import { withoutWindow } from "../../functions/imports/window.ts";

const cut = (lines: readonly string[], width = 80): string[] => lines.flatMap((line) => line.match(new RegExp(`.{1,${width}}`, "g")) ?? [""]);
const LOG = [
  `Jun 18 08:38:55 node1 kubelet[1544]: ${"a long message ".repeat(4)}ends`,
  `Jun 18 08:38:56 node1 kubelet[1544]: ${"another one ".repeat(14)}ends`,
  "Jun 18 08:38:57 node1 kubelet[1544]: short",
];

test("lines that a window cut are put together, each at the place of its beginning", () => {
  const shown = withoutWindow(cut(LOG));
  expect(shown).toHaveLength(cut(LOG).length);
  expect(shown.filter((line) => line !== "")).toEqual(LOG);
  expect(shown[0]).toBe(LOG[0]);
});

const row = (name: string, last: string): string => `${name.padEnd(30)}  ${"Running".padEnd(20)}  ${"10.0.0.7".padEnd(20)}${last}`;

test.each([
  ["no line fills a window", cut(LOG, 83)],
  ["one line alone, which may end there", ["x".repeat(80), "y"]],
  ["rows of a table that are as wide", [row("web-a", "node-001"), row("db-b", "node-002"), row("cache", "node-003"), "end"]],
  ["lines that begin alike", [`-A FORWARD ${"x".repeat(69)}`, `-A FORWARD ${"y".repeat(69)}`, "-A FORWARD -j z"]],
  ["what is set in below them", [`5: ${"x".repeat(77)}`, "    link/ether 0", `6: ${"y".repeat(77)}`, "    link/ether 1"]],
  ["what a pager cut off", [`${"a".repeat(79)}>`, "b", `${"c".repeat(79)}>`, "d"]],
  ["commands behind a prompt", [`root@n:~# ${"ip route ".repeat(8).slice(0, 70)}`, "default", `root@n:~# ${"ip addr  ".repeat(8).slice(0, 70)}`, "lo"]],
])("left as they are: %s", (_, lines) => expect(withoutWindow(lines)).toEqual(lines));

test.each([
  ["lines of signs", ["default via 10.0.0.1", "", "----------"], "", 1],
  ["a pager's end", ["default via 10.0.0.1", "(END)"], "", 1],
  ["an empty field", ["default via 10.0.0.1", "stderr:", ""], "", 1],
  ["what a command took", ["default via 10.0.0.1", "", "real\t0m0.012s", "user\t0m0.004s", "sys\t0m0.008s"], "time ip route", 1],
  ["the time that was asked for", ["real\t1m3.140s"], "time curl -s http://10.0.0.1/", 1],
  ["a bond's own signs", ["---- bond0 ----", "members: 2"], "", 2],
])("behind an output: %s", (_, lines, command, last) => expect(lastLine(lines, 1, lines.length, command)).toBe(last));
