import { expect, test } from "vitest";
import type { Output } from "../functions/facts/capture.ts";
import { readFacts } from "../functions/facts/read.ts";
import { captureOf, output } from "./rules/captures.ts";

/** Derived facts about packets that come another way than their answers leave, and about those that connection tracking does not know. */

// biome-ignore lint/suspicious/noExplicitAny: each test knows the fact that it reads
const read = (fact: string, ...outputs: Output[]): any => readFacts(captureOf(...outputs), new Set([fact])).readings.get(fact)?.value;

const seen = (...names: string[]): Output =>
  output(
    "tcpdump -ni any host 10.99.4.20",
    names.map((name, i) => `11:02:10.11823${i} ${name}  In  IP 10.99.4.20.51022 > 10.70.3.9.443: Flags [S], seq 99120331, win 64240, length 0\n`).join(""),
  );
const routes = output("ip route", "default via 10.70.3.1 dev bond0 proto static\n10.70.3.0/24 dev bond0 proto kernel scope link src 10.70.3.9\n");

test("a packet that came in by another interface than the way back is told, once it is seen on no device of the way back", () => {
  expect(read("reverse-path", routes, seen("eno3", "eno3")).arrivals).toMatchObject([{ interface: "eno3", source: "10.99.4.20", back: "bond0", line: 1 }]);
  expect(read("reverse-path", routes, seen("eno2", "bond0")).arrivals).toEqual([]);
  expect(read("reverse-path", routes, seen("bond0")).arrivals).toEqual([]);
  expect(read("reverse-path", seen("eno3")).arrivals).toEqual([]);
});

test("a refused way in says whether somebody saw the packet come in there", () => {
  const refused = output("ip route get 10.70.3.9 from 10.99.4.20 iif eno3", "RTNETLINK answers: Invalid cross-device link\n");
  expect(read("reverse-path", refused, seen("eno3")).refusals).toMatchObject([{ interface: "eno3", source: "10.99.4.20", arrived: true }]);
  expect(read("reverse-path", refused, seen("eno2")).refusals).toMatchObject([{ arrived: false }]);
  const unreachable = output("ip route get 10.70.3.9 from 10.99.4.20 iif eno3", "RTNETLINK answers: Network is unreachable\n");
  expect(read("reverse-path", unreachable, seen("eno3")).refusals).toEqual([]);
});

const ruleset = (hook: string, rule: string): Output =>
  output("nft list ruleset", `table inet fw {\n\tchain one {\n\t\ttype filter hook ${hook} priority filter; policy accept;\n\t\t${rule}\n\t}\n}\n`);

test.each([
  ["forward", "ct state invalid drop", 1],
  ["forward", "ct state invalid counter packets 3 bytes 180 drop", 1],
  ["forward", "ct state { invalid, untracked } drop", 1],
  ["forward", "ct state vmap { established : accept, related : accept, invalid : drop }", 1],
  ["forward", "ct state invalid accept", 0],
  ["forward", "ct state established,related accept", 0],
  ["input", "ct state invalid drop", 0],
])("nft at the hook %s: %s", (hook, rule, count) => {
  expect(read("invalid-packet", ruleset(hook, rule)).drops).toHaveLength(count);
});

const log = (to: number): string =>
  `[88120.4100] nf_ct_proto_6: SEQ is over the upper bound (over the window of the receiver) IN= OUT= SRC=203.0.113.80 DST=10.18.7.31 LEN=1500 PROTO=TCP SPT=443 DPT=${to} SEQ=1 \n`;
const reset = (text: string): Output => output("tcpdump -ni ens192", `11:40:02.118230 IP ${text}\n`);

test("a reset belongs to the connection of a message by its addresses and ports, as far as tcpdump prints numbers", () => {
  const told = (trace: Output): boolean[] =>
    read("invalid-packet", output("dmesg", log(50922)), trace).overruns.map((overrun: { reset: boolean }) => overrun.reset);
  expect(told(reset("10.18.7.31.50922 > 203.0.113.80.443: Flags [R], seq 9, win 0, length 0"))).toEqual([true]);
  expect(told(reset("10.18.7.31.50922 > 203.0.113.80.https: Flags [R], seq 9, win 0, length 0"))).toEqual([true]);
  expect(told(reset("10.18.7.31.50922 > 203.0.113.80.443: R 9:9(0) win 0"))).toEqual([true]);
  expect(told(reset("10.18.7.31.50923 > 203.0.113.80.443: Flags [R], seq 9, win 0, length 0"))).toEqual([false]);
  expect(told(reset("203.0.113.80.443 > 10.18.7.31.50922: Flags [R], seq 9, win 0, length 0"))).toEqual([false]);
  expect(told(reset("10.18.7.31.50922 > 203.0.113.80.443: Flags [.], ack 9, win 0, length 0"))).toEqual([false]);
});

test("messages about one connection are one row, with the newest line and their number", () => {
  expect(read("invalid-packet", output("dmesg", log(50922) + log(50922) + log(50923))).overruns).toMatchObject([
    { destinationPort: 50922, count: 2, line: 2 },
    { destinationPort: 50923, count: 1, line: 3 },
  ]);
});
