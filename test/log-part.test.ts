import { expect, test } from "vitest";
import { captureOf } from "../functions/facts/capture.ts";
import { type FactReading, readFacts } from "../functions/facts/read.ts";

/** What a part of a log is worth: it is about the newest lines, and none of it leaves more open than nothing of it. */
const LOG = 'I1121 09:02:07.398120       1 proxier.go:822] "SyncProxyRules complete" elapsed="87.7ms"\n';
const KERNEL = "[   12.345678] eth0: Link is Up\n";

function read(fact: string, outputs: Readonly<Record<string, string>>, truncated = ""): FactReading {
  const commands = Object.keys(outputs);
  const index = { schema: "netcheck.capture/1" as const, target: { name: "n" }, outputs: commands.map((command, i) => ({ command, file: String(i) })) };
  const text = (file: string) => ({ text: outputs[commands[Number(file)] ?? ""] ?? "", truncated: commands[Number(file)] === truncated });
  const reading = readFacts(captureOf(index, text), new Set([fact])).readings.get(fact);
  if (reading === undefined) throw new Error("not read");
  return reading;
}

test.each([
  ["kubectl logs kube-proxy-x7k2p | tail -20", true],
  ["kubectl logs kube-proxy-x7k2p | tail -n 20 | tee proxy.log", true],
  ["kubectl logs kube-proxy-x7k2p | tail --lines=20", true],
  ["kubectl logs kube-proxy-x7k2p | tail -r", false],
  ["kubectl logs kube-proxy-x7k2p | head -1", false],
  // it had more lines to show than there are
  ["kubectl logs kube-proxy-x7k2p | head -20", true],
  ["kubectl logs kube-proxy-x7k2p | tail -20 | grep error", false],
  ["kubectl logs kube-proxy-x7k2p | grep error | tail -20", false],
])("the log of an agent: %s, all of it: %s", (command, complete) => {
  expect(read("agent-log", { [command]: LOG }).complete).toBe(complete);
});

test("of the kernel's log the last lines are a part", () => {
  expect(read("kernel-log", { "dmesg | tail -1": KERNEL }).complete).toBe(false);
  expect(read("kernel-log", { "dmesg | tail -3": KERNEL }).complete).toBe(true);
});

test("what is derived from more than a log is no less complete for a part of the log", () => {
  const part = { "kubectl logs kube-proxy-x7k2p | grep complete": LOG };
  expect(read("link-event", { dmesg: KERNEL }).complete).toBe(true);
  expect(read("link-event", { dmesg: KERNEL, ...part }).complete).toBe(true);
  expect(read("link-event", part).complete).toBe(false);
});

test("a log whose end is missing says so", () => {
  const command = "kubectl logs kube-proxy-x7k2p";
  expect(read("agent-log", { [command]: LOG }, command)).toMatchObject({ complete: false, truncated: true });
  expect(read("agent-log", { [`${command} | grep x`]: LOG }).truncated).toBeUndefined();
});
