import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Capture } from "../../functions/facts/capture.ts";
import { asked } from "../../functions/facts/command.ts";
import { pastedCaptures } from "../../functions/imports/index.ts";
import { readTranscript } from "../../functions/imports/transcript.ts";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";

/** Two answers to one command in one text, and what people write between them, behind the command, in front of it and below. */

const catalogue = loadCatalogue(fileURLToPath(new URL("../../runbooks/", import.meta.url)), { tolerant: true });
const causesOf = (text: string): string[] =>
  pastedCaptures(text, "paste.txt", "paste.txt").flatMap((capture) => diagnose(capture as Capture, catalogue, "x", () => 0).causes.map(({ rule }) => rule));
const COMMAND = "cat /proc/net/softnet_stat";
const [FIRST, SECOND] = ["004a1f90 000008a2", "007156a0 00002603"].map((counts) => `${counts} 00000011${" 00000000".repeat(8)}`);

describe("what tells how much time went by between two answers", () => {
  test.each(["10 s later", "after 10 seconds:", "and then, a minute later:", "(10 seconds later)", "=== second sample", "-- 10s --", "nach 10 Sekunden:"])(
    "%s",
    (pause) => {
      const text = `$ ${COMMAND}\n${FIRST}\n${pause}\n$ ${COMMAND}\n${SECOND}\n`;
      expect(readTranscript(text, "paste.txt").outputs.map((output) => output.text.trim())).toEqual([FIRST, SECOND]);
      expect(causesOf(text)).toEqual(["softnet-drops"]);
    },
  );

  test("an elision is none: what is behind it was not shown", () =>
    expect(causesOf(`$ conntrack -S\ncpu=0 drop=1\n...\n$ conntrack -S\ncpu=0 drop=900\n`)).toEqual([]));

  test("before another command it stays where it is", () =>
    expect(readTranscript(`$ ${COMMAND}\n${FIRST}\n10 s later\n$ ip rule\n0: from all lookup local\n`, "paste.txt").outputs[0]?.text).toContain("later"));
});

describe("which of two answers it is, told beside the command", () => {
  test.each([
    (command: string, n: number) => `$ ${command}   # ${n === 1 ? "first sample" : "10 s later"}`,
    (command: string, n: number) => `### ${command} (${n === 1 ? "1st" : "2nd, +10s"})`,
    (command: string, n: number) => `## ${command} -- sample ${n}`,
    (command: string, n: number) => `--- ${command} (03:01:0${n}) ---`,
    (command: string, n: number) => `==> 03:01:0${n} ${command}`,
  ])("%s", (heading) => expect(causesOf(`${heading(COMMAND, 1)}\n${FIRST}\n${heading(COMMAND, 2)}\n${SECOND}\n`)).toEqual(["softnet-drops"]));

  test.each(["ip route # node2", "ip route (node 2)", "ip route (before)", "kubectl exec web -- ip route", "ip rule -- all of them"])("not %s", (command) =>
    expect(asked(command)).not.toBe(asked(command.replace(/ (?:#|\(|--).*$/, ""))),
  );
});

test.each(["so it drops packets", "^ rising", "=> cpu 0 drops 750 a second"])("a remark below the second answer: %s", (remark) =>
  expect(causesOf(`$ ${COMMAND}\n${FIRST}\n$ ${COMMAND}\n${SECOND}\n${remark}\n`)).toEqual(["softnet-drops"]),
);

describe("counters of all CPUs together", () => {
  const stats = (failed: number, rest = "early_drop=0 error=0 search_restart=0"): string =>
    [0, 1].map((cpu) => `cpu=${cpu}   \tfound=0 invalid=8 insert=0 insert_failed=${failed + cpu} drop=${failed} ${rest}`).join("\n");
  const twice = (first: string, second: string): string => `$ conntrack -S\n${first}\n$ conntrack -S\n${second}\n`;

  test("a remark below does no harm", () => expect(causesOf(twice(stats(100), `${stats(700)}\nstill rising`))).toEqual(["conntrack-insert-failed"]));

  test("a line that was lost is no growth", () =>
    expect(causesOf(twice(`${stats(700).split("\n")[0]}\ncpu=1   \tfo`, `${stats(700)}\nno change`))).toEqual([]));
});

test("two answers of a loop over the statistics of a card", () => {
  const link = (missed: number): string =>
    [
      "2: eno1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000",
      "    link/ether 3c:ec:ef:10:20:30 brd ff:ff:ff:ff:ff:ff",
      "    RX:  bytes packets errors dropped  missed   mcast",
      `    8128337 ${812240 + missed} 0 0 ${missed} 1229`,
      "    TX:  bytes packets errors dropped carrier collsns",
      "    411002 391002 0 0 0 0",
    ].join("\n");
  expect(causesOf(`$ for i in 1 2; do ip -s link show eno1; sleep 10; done\n${link(318_822)}\n${link(328_822)}\n`)).toEqual(["nic-drops"]);
});
