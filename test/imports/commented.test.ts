import { expect, test } from "vitest";
import { readTranscript } from "../../functions/imports/transcript.ts";

/** What is read of a block. */
const shown = (...lines: readonly string[]): readonly string[] =>
  readTranscript(["On the node:", "", "```bash", ...lines, "```"].join("\n"), "note.md").outputs.map(
    ({ command, text }) => `${command}: ${text.trim().split("\n").join(" / ")}`,
  );

test("outputs that are comments below bare commands are outputs", () => {
  expect(shown("ip rule", "# 0:\tfrom all lookup local", "# 32766:\tfrom all lookup main", "ip route", "#", "# default via 10.0.0.1 dev eth0 ")).toEqual([
    "ip rule: 0:\tfrom all lookup local / 32766:\tfrom all lookup main",
    "ip route: default via 10.0.0.1 dev eth0",
  ]);
  expect(shown("ip route get 1.1.1.1", "# => 1.1.1.1 via 10.0.0.1 dev eth0 src 10.0.0.9 uid 0 ")).toEqual([
    "ip route get 1.1.1.1: 1.1.1.1 via 10.0.0.1 dev eth0 src 10.0.0.9 uid 0",
  ]);
});

test("remarks above a line of a log are none", () => {
  expect(
    shown("sudo dmesg | grep UFW", "# there were many of these in the log", "# [11242.703481] [UFW BLOCK] IN=eth0 OUT= SRC=10.1.5.2 DST=10.1.5.3"),
  ).toEqual(["sudo dmesg | grep UFW: [11242.703481] [UFW BLOCK] IN=eth0 OUT= SRC=10.1.5.2 DST=10.1.5.3"]);
});

test("prompts of root, comments of files and of programs, and advice stay what they are", () => {
  expect(shown("# ip rule", "0:\tfrom all lookup local", "# ip route", "default via 10.0.0.1 dev eth0 ")).toHaveLength(2);
  expect(shown("cat /etc/resolv.conf", "# nameserver 127.0.0.53", "# nameserver 10.0.0.2").join()).not.toMatch(/: nameserver/);
  expect(shown("iptables-nft -S", "# Warning: iptables-legacy tables present, use iptables-legacy-save to see them").join()).not.toMatch(/: Warning/);
  expect(shown("ip route show", "# a healthy node shows a line like:", "# default via 10.0.0.1 dev eth0 ").join()).not.toMatch(/: default/);
});
