import { describe, expect, test } from "vitest";
import { readTranscript } from "../../functions/imports/transcript.ts";

/** One long text of a script: how it tells which command printed what. */

const OUTPUTS: readonly (readonly [string, string])[] = [
  ["date", "Fri Nov 20 14:12:31 UTC 2026"],
  ["ip rule", "0:\tfrom all lookup local"],
  ["ip route show table 2", "default via 10.0.0.1 dev eth1"],
  ["hostname", "node-a1"],
  ["ip route", "default via 10.0.0.1 dev eth0"],
  ["cat /proc/net/softnet_stat", "00000001 00000000 00000000"],
  ["sleep 10", ""],
  ["cat /proc/net/softnet_stat", "00000002 00000001 00000000"],
  ['journalctl -u kubelet --since "1 hour ago"', "Nov 20 14:11:09 node-a1 kubelet[1811]: E1120 14:11:09.112331    1811 x.go:1] x"],
];
const KNOWN = OUTPUTS.filter(([command]) => !/^(?:hostname|sleep|date)/.test(command));
const read = (heading: (command: string, i: number) => string): unknown[] =>
  readTranscript(OUTPUTS.map(([command, text], i) => `${heading(command, i)}\n${text}\n`).join("\n"), "collect.txt")
    .outputs.filter(({ command }) => !/^(?:hostname|sleep|date)/.test(command))
    .map(({ command, text }) => [command, text.trim()]);

describe("headings of a collection script", () => {
  test.each<[string, (command: string, i: number) => string]>([
    ["ip route:", (command) => `${command}:`],
    [">>> ip route", (command) => `>>> ${command}`],
    ["=== 07. ip route ===", (command, i) => `=== ${String(i).padStart(2, "0")}. ${command} ===`],
    ["=== [7/9] ip route ===", (command, i) => `=== [${i}/9] ${command} ===`],
    ["=== ip route (2026-11-20T14:12:31Z) ===", (command) => `=== ${command} (2026-11-20T14:12:31Z) ===`],
    ["### ip route [rc=0]", (command) => `### ${command} [rc=0]`],
    ["Executing command: ip route", (command) => `Executing command: ${command}`],
    ["==> ip_route.txt <==", (command) => `==> ${command.replace(/[ /]/g, "_")}.txt <==`],
  ])("%s", (_, heading) => expect(read(heading)).toEqual(KNOWN));

  test("tell when the script ran", () =>
    expect(readTranscript(OUTPUTS.map(([command, text]) => `=== ${command} ===\n${text}\n`).join("\n"), "collect.txt").outputs[0]?.command).toBe("date"));

  test("a mail's quotes are none, and neither are lines of an output that end with a colon", () => {
    const quoted = ">> ip route\n>> default via 10.0.0.1 dev eth0\n>> ip rule\n>> 0:\tfrom all lookup local\n";
    expect(readTranscript(quoted, "mail.txt").outputs.every(({ command }) => !command.startsWith(">"))).toBe(true);
    const yaml = "$ cat /var/lib/kubelet/config.yaml\nkind: KubeletConfiguration\nauthentication:\nauthorization:\nlogging:\nresolvConf: /etc/resolv.conf\n";
    expect(readTranscript(yaml, "x.txt").outputs).toHaveLength(1);
  });
});
