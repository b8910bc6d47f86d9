import { describe, expect, test } from "vitest";
import { unwrapped } from "../../functions/imports/log-wrapper.ts";
import { readTranscript } from "../../functions/imports/transcript.ts";
import { expectLinear } from "../cpu-time.ts";

const KERNEL = "Nov 21 03:51:28 node1 kernel: [12345.678901] nf_conntrack: table full, dropping packet";
const KLOG = "E1121 03:51:28.612345       1 proxier.go:1520] Failed to execute iptables-restore";
const EVENT = "Warning  FailedCreatePodSandBox  5s (x2 over 16s)  kubelet  Failed to create pod sandbox: rpc error: code = Unknown";

describe("what stands around a line of a log is taken off", () => {
  test.each([
    [`- ${KERNEL}`, KERNEL],
    [`  * ${KLOG}`, KLOG],
    [`2. ${KLOG}`, KLOG],
    [`2026-11-21T03:51:28.000Z  ${KERNEL}`, KERNEL],
    [`2026-11-21 03:51:28,120\t${KLOG}`, KLOG],
    [`2026-11-21 03:51:28.123\t{pod="kube-proxy-x7k2p", stream="stderr"} ${KLOG}`, KLOG],
    [`{pod="kube-proxy-x7k2p"} ${KLOG}`, KLOG],
    ["Nov 21, 2026 @ 03:51:28.000\tnode1\tkernel: nf_conntrack: table full, dropping packet", "kernel: nf_conntrack: table full, dropping packet"],
    [`kube-proxy_1  | ${KLOG}`, KLOG],
    [`kube-proxy ${KLOG}`, KLOG],
    [`  │   ${KLOG}`, KLOG],
    [`[12-05-2024 21:39:39.577 INF]   ${EVENT}`, EVENT],
    [`[21:39:39 INF]   ${EVENT}`, EVENT],
    [`2024-05-12 21:39:39,577 - INFO -   ${EVENT}`, EVENT],
    [`2024-05-12T21:39:39Z INFO ${EVENT}`, EVENT],
    ["node1: [12345.678901] TCP: out of memory -- consider tuning tcp_mem", "[12345.678901] TCP: out of memory -- consider tuning tcp_mem"],
  ])("%s", (line, inner) => {
    expect(readTranscript(`Look:\n\n${line}\n`, "paste.txt").outputs.map(({ text }) => text.trim())).toEqual([inner]);
  });

  test("the outermost comes first", () => {
    expect(unwrapped(`- 2026-11-21T03:51:28Z {a="b"} ${KLOG}`)).toEqual([`2026-11-21T03:51:28Z {a="b"} ${KLOG}`, KLOG]);
  });
});

test.each([
  "- we looked for nf_conntrack: table full, dropping packet, and it is not there",
  "1. TCP: out of memory -- consider tuning tcp_mem is what others have",
  "2026-11-21 03:51:28 the pods were restarted",
  "[21:39:39 INF] the pods were restarted",
  "- 10:21:00 we restarted kube-proxy",
])("no log: %s", (line) => {
  expect(readTranscript(line, "paste.txt").outputs).toEqual([]);
});

test("a line that is one of a log already keeps what stands in front", () => {
  const lines = [`2026-11-21T03:51:28.612345678Z ${KLOG}`, `[pod/kube-proxy-x7k2p/kube-proxy] ${KLOG}`];
  expect(readTranscript(lines.join("\n\n"), "paste.txt").outputs.flatMap(({ text }) => text.split("\n").filter((line) => line !== ""))).toEqual(lines);
});

test("the time grows with the lines", () => {
  const hostile = ["- ".repeat(20), `${"2026-11-21T03:51:28Z ".repeat(150)}\n`, `{a="${"b".repeat(3000)}\n`, `${"[21:39:39 INF] ".repeat(150)}\n`];
  for (const part of hostile)
    expectLinear(
      (size) => part.repeat(size),
      (text) => readTranscript(text, "paste.txt"),
      100,
      part.slice(0, 20),
    );
});
