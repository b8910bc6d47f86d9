import { expect, test } from "vitest";
import { commandLine } from "../functions/facts/command.ts";
import { facts } from "../functions/facts/index.ts";
import { read } from "./readings.ts";

/** /proc/net has many names: a debug pod of a node has it below /host, and each process has its own. */
const FILES: readonly (readonly [fact: string, file: string])[] = [
  ["address", "if_inet6"],
  ["conntrack", "nf_conntrack"],
  ["conntrack-stats", "stat/nf_conntrack"],
  ["ipvs", "ip_vs"],
  ["link", "dev"],
  ["listen-queue", "udp"],
  ["neighbor", "arp"],
  ["neighbor-stats", "stat/arp_cache"],
  ["nstat", "snmp6"],
  ["route", "route"],
  ["route", "ipv6_route"],
  ["socket", "tcp"],
  ["socket-summary", "sockstat"],
  ["softnet", "softnet_stat"],
];

test.each(FILES)("%s reads %s by each of its names", (id, file) => {
  const fact = facts.find((one) => one.id === id);
  const usual = fact?.recognize(["cat", `/proc/net/${file}`]);
  expect(usual).toBeDefined();
  for (const folder of ["/proc/self", "/proc/thread-self", "/proc/1", "/host/proc", "/host/proc/1"])
    expect(fact?.recognize(["cat", `${folder}/net/${file}`]), folder).toMatchObject({ format: usual?.format, complete: usual?.complete });
});

test.each([
  ["cat /proc/net/route", false],
  ["cat /proc/1/net/route", false],
  ["cat /host/proc/1/net/route", false],
  ["sudo cat /proc/4711/net/route", true],
  ["cat /host/proc/12/net/tcp /host/proc/12/net/tcp6", true],
  ["cat /proc/4711/environ", false],
])("%s: whose network it is about (foreign %s)", (command, foreign) => expect(commandLine(command).foreign).toBe(foreign));

test("the network of another process, as a pod is, is not the node's", () => {
  const text =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\neth0\t00000000\t0104A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n";
  expect(read("route", { command: "cat /proc/1/net/route", text }).value.rows).toHaveLength(1);
  expect(read("route", { command: "cat /proc/4711/net/route", text }).status).toBe("absent");
});
