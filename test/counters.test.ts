import { expect, test } from "vitest";
import type { Output } from "../functions/facts/capture.ts";
import { readFacts } from "../functions/facts/read.ts";
import { captureOf, output } from "./rules/captures.ts";

/** Facts that are made of counters: two samples of one command, and what derived facts make of them. Their texts alone are in test/facts. */

// biome-ignore lint/suspicious/noExplicitAny: each test knows the fact that it reads
const read = (fact: string, ...outputs: Output[]): any => readFacts(captureOf(...outputs), new Set([fact])).readings.get(fact)?.value;
const twice = (command: string, first: string, second: string, more: Partial<Output> = {}): Output[] => [
  output(command, first),
  output(command, second, { sample: 2, file: "outputs/second.txt", ...more }),
];
const counter = (value: number): string =>
  `#kernel\nTcpExtListenOverflows           ${value}                0.0\nUdpRcvbufErrors                 5                  0.0\n`;

test("two samples give growth, and the newer line to quote", () => {
  expect(read("nstat", ...twice("nstat -asz", counter(129), counter(140))).rows).toMatchObject([
    { name: "TcpExtListenOverflows", value: 140, valueDelta: 11, output: 1, line: 2 },
    { name: "UdpRcvbufErrors", value: 5, valueDelta: 0 },
  ]);
});

test("a counter that went down was reset, and one sample has no growth", () => {
  expect(read("nstat", ...twice("nstat -asz", counter(129), counter(3))).rows[0]).not.toHaveProperty("valueDelta");
  expect(read("nstat", output("nstat -asz", counter(129))).rows[0]).not.toHaveProperty("valueDelta");
});

test("a sample that was cut is not compared with one that was not", () => {
  const [first = output("", ""), second = output("", "")] = twice("nstat -asz", counter(129), counter(140));
  for (const pair of [
    [{ ...first, truncated: true }, second],
    [first, { ...second, truncated: true }],
  ]) {
    const { rows } = read("nstat", ...pair);
    expect(rows.length).toBeGreaterThan(0);
    for (const row of rows) expect(row).not.toHaveProperty("valueDelta");
  }
});

test("numbers of different commands are not compared", () => {
  const proc = "TcpExt: SyncookiesSent ListenOverflows\nTcpExt: 0 900\n";
  const { rows } = read("nstat", output("nstat -asz", counter(129)), output("cat /proc/net/netstat /proc/net/snmp", proc, { sample: 2 }));
  expect(rows.find((row: { name: string }) => row.name === "TcpExtListenOverflows")).toEqual({ line: 2, name: "TcpExtListenOverflows", value: 129, output: 0 });
});

test("a counter that a listing without zeros leaves out began at zero", () => {
  const rows = read("nstat", ...twice("nstat -as", "#kernel\nIpInReceives 4 0.0\n", "#kernel\nIpInReceives 6 0.0\nTcpExtListenDrops 3 0.0\n")).rows;
  expect(rows).toMatchObject([{ valueDelta: 2 }, { name: "TcpExtListenDrops", valueDelta: 3 }]);
});

test("CPUs are matched by their number, not by their line", () => {
  const cpu = (number: number, dropped: number) =>
    `00000010 ${dropped.toString(16).padStart(8, "0")}${" 00000000".repeat(10)} ${number.toString(16).padStart(8, "0")} 00000000 00000000\n`;
  const { rows } = read("softnet", ...twice("cat /proc/net/softnet_stat", cpu(0, 1) + cpu(2, 7), cpu(0, 1) + cpu(1, 90) + cpu(2, 9)));
  expect(rows.map((row: { cpu: number; droppedDelta?: number }) => [row.cpu, row.droppedDelta])).toEqual([
    [0, 0],
    [1, undefined],
    [2, 2],
  ]);
});

test("a socket is one row, with what each listing tells of it", () => {
  const udp = (drops: number) =>
    `State  Recv-Q Send-Q Local Address:Port Peer Address:Port\nUNCONN 0      0      0.0.0.0:8125  0.0.0.0:*\n\t skmem:(r0,rb212992,t0,tb212992,f0,w0,o0,bl0,d${drops})\n`;
  const all = 'udp UNCONN 0 0 0.0.0.0:8125 0.0.0.0:* users:(("statsd",pid=4,fd=5))\ntcp LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:(("sshd",pid=7,fd=3))\n';
  const { rows, shown } = read("socket", output("ss -lntup", all), ...twice("ss -lnum", udp(4), udp(9)));
  expect(rows).toMatchObject([
    { port: 8125, process: "statsd", drops: 9, dropsDelta: 5 },
    { port: 22, process: "sshd", backlog: 128 },
  ]);
  expect(shown.filter((row: { listening: boolean }) => row.listening).map((row: { protocol: string }) => row.protocol)).toEqual(["tcp", "udp", "udp"]);
});

const link = (
  name: string,
  packets: number,
  dropped: number,
  missed: number,
): string => `2: ${name}: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000
    link/ether 02:1a:4b:00:00:11 brd ff:ff:ff:ff:ff:ff
    RX: bytes  packets  errors  dropped missed  mcast
    5120 ${packets} 0 ${dropped} ${missed} 0
    TX: bytes  packets  errors  dropped carrier collsns
    4800 8123 0 0 0 0
`;

test.each([
  ["eth0", ["rxMissed", "rxDropped"]],
  ["enp3s0f1", ["rxMissed", "rxDropped"]],
  ["eni3f1c2a7b9d0", []],
  ["veth1a2b3c4d", []],
  ["cali0a1b2c3d4e5", []],
])("%s: drops count where it is a network card", (name, counters) => {
  const { rows } = read("card-drops", ...twice("ip -s link", link(name, 10, 1, 1), link(name, 20, 3, 2)));
  expect(rows.map((row: { counter: string }) => row.counter)).toEqual(counters);
});

const NAT = (chains: string) => `*nat
:KUBE-SERVICES - [0:0]
:KUBE-SVC-A - [0:0]
:KUBE-EXT-A - [0:0]
:KUBE-SEP-A - [0:0]
:KUBE-SEP-B - [0:0]
-A KUBE-SERVICES -d 10.96.0.10/32 -p udp -m udp --dport 53 -j KUBE-SVC-A
-A KUBE-SERVICES -d 203.0.113.9/32 -p udp -m udp --dport 53 -j KUBE-EXT-A
-A KUBE-EXT-A -j KUBE-MARK-MASQ
-A KUBE-EXT-A -j KUBE-SVC-A
-A KUBE-SVC-A -m statistic --mode random --probability 0.5 -j KUBE-SEP-A
-A KUBE-SVC-A -j KUBE-SEP-B
-A KUBE-SEP-A -p udp -m udp -j DNAT --to-destination 10.244.0.2:53
-A KUBE-SEP-B -p udp -m udp -j DNAT --to-destination 10.244.1.2:53
${chains}`;
const flow = (service: string, endpoint: string, protocol = "udp      17"): string =>
  `${protocol} 29 src=10.244.1.7 dst=${service} sport=4314 dport=53 [UNREPLIED] src=${endpoint} dst=10.244.1.7 sport=53 dport=4314 mark=0 use=1\n`;

test.each([
  ["an endpoint of today", flow("10.96.0.10", "10.244.1.2"), NAT("COMMIT\n"), []],
  ["an endpoint that is gone", flow("10.96.0.10", "10.244.9.9"), NAT("COMMIT\n"), ["10.244.9.9"]],
  ["through an external address", flow("203.0.113.9", "10.244.9.9"), NAT("COMMIT\n"), ["10.244.9.9"]],
  ["TCP", flow("10.96.0.10", "10.244.9.9", "tcp      6"), NAT("COMMIT\n"), []],
  ["no service", flow("10.96.0.77", "10.244.9.9"), NAT("COMMIT\n"), []],
  ["rules that were cut", flow("10.96.0.10", "10.244.9.9"), NAT(""), []],
  ["never translated", flow("10.96.0.10", "10.96.0.10"), NAT("COMMIT\n"), ["10.96.0.10"]],
])("a UDP flow to a service: %s", (_, table, rules, stale) => {
  const { rows } = read("stale-service-flow", output("conntrack -L", table), output("iptables-save", rules, { truncated: !rules.includes("COMMIT") }));
  expect(rows.map((row: { endpoint: string }) => row.endpoint)).toEqual(stale);
});

const timed = (left: number, address = "10.244.9.9"): string => flow("10.96.0.10", address).replace(/^(udp +17) \d+/, `$1 ${left}`);
/** A flow that nothing uses tells how long it was until the second listing. */
const idle = (left: number): string =>
  `udp      17 ${left} src=10.0.0.1 dst=10.0.0.9 sport=40000 dport=123 src=10.0.0.9 dst=10.0.0.1 sport=123 dport=40000 mark=0 use=1\n`;

test.each([
  ["used in between", timed(21) + idle(28), timed(27) + idle(18), false],
  ["used in between, a second after the first listing", timed(21) + idle(28), timed(20) + idle(18), false],
  ["running out", timed(21) + idle(28), timed(11) + idle(18), true],
  ["gone", timed(4) + idle(28), idle(18), true],
  ["listed again at once", timed(21) + idle(28), timed(20) + idle(27), false],
  ["listed once", timed(3) + idle(28), undefined, false],
])("a UDP flow to a service, listed twice: %s", (_, before, after, resting) => {
  const tables = [before, ...(after === undefined ? [] : [after])].map((text, i) => output("conntrack -L", text, { sample: i + 1 }));
  expect(read("stale-service-flow", ...tables, output("iptables-save", NAT("COMMIT\n"))).rows).toMatchObject([{ endpoint: "10.244.9.9", resting }]);
});

test.each([
  ["fd00:10:244:1::2", []],
  ["fd00:10:244:9::9", ["fd00:10:244:9::9"]],
])("a UDP flow to a service with an IPv6 address, to %s", (endpoint, stale) => {
  const six = NAT("COMMIT\n")
    .replaceAll("10.96.0.10/32", "fd00:10:96::a/128")
    .replace("10.244.1.2:53", "[fd00:10:244:1::2]:53")
    .replace("10.244.0.2:53", "[fd00:10:244::2]:53");
  const { rows } = read(
    "stale-service-flow",
    output("conntrack -L -f ipv6", flow("fd00:10:96::a", endpoint)),
    output("ip6tables-save", six.replace(/^.*203\.0\.113.*\n/m, "")),
  );
  expect(rows.map((row: { endpoint: string }) => row.endpoint)).toEqual(stale);
});

test("listings of parts of the table complement each other", () => {
  const udp = output("conntrack -L -p udp", timed(20));
  const [other, six] = [output("conntrack -L -p tcp --dport 80", ""), output("conntrack -L -f ipv6", idle(9).replaceAll("10.0.0.", "fd00::"))];
  expect(read("conntrack", other, udp, six).rows).toHaveLength(2);
  expect(read("conntrack", udp, output("conntrack -L", timed(20) + idle(28))).rows).toHaveLength(2);
  expect(read("conntrack", output("conntrack -L", timed(20)), six).rows).toHaveLength(2);
});

test("a UDP flow to a service: a search for some endpoints, of which the last rules look like a whole chain", () => {
  const shown = NAT("")
    .split("\n")
    .filter((line) => /10\.96\.0\.10|SEP-B/.test(line) && line.startsWith("-A"));
  const rules = [`-A KUBE-SVC-A ! -s 10.244.0.0/16 -d 10.96.0.10/32 -p udp -m udp --dport 53 -j KUBE-MARK-MASQ`, ...shown, ""].join("\n");
  const search = output("iptables-save -t nat | grep -E '10.96.0.10|SEP-B'", rules);
  expect(read("stale-service-flow", output("conntrack -L", flow("10.96.0.10", "10.244.0.2")), search).rows).toEqual([]);
});

test.each([
  ["a module", "ena                   151552  0\n", "rx_packets: 1\n", ["module"]],
  ["a kernel that has it built in", "bridge 1 0\n", "     pps_allowance_exceeded: 7\n", ["counter"]],
  ["other cards", "bridge 1 0\n", "     rx_missed_errors: 7\n", []],
])("the driver of EC2's cards: %s", (_, modules, counters, by) => {
  const { rows } = read("ena-driver", output("lsmod", modules), output("ethtool -S eth0", counters));
  expect(rows.map((row: { by: string }) => row.by)).toEqual(by);
});

test("virtual servers of IPVS on the node's own addresses are NodePorts; those on kube-ipvs0 are not", () => {
  const settings = output("sysctl -a", "net.ipv4.ip_local_port_range = 1024\t65000\nnet.ipv4.ip_local_reserved_ports = \n");
  const servers = output("ipvsadm -Ln", "TCP  10.0.0.5:31380 rr\nTCP  10.0.0.5:8443 rr\nTCP  10.96.0.7:32000 rr\n");
  const addresses = output("ip -br addr", "eth0 UP 10.0.0.5/24\nkube-ipvs0 DOWN 10.96.0.7/32\n");
  const listeners = output("ss -lntup", "Netid State Recv-Q Send-Q Local Address:Port Peer Address:Port\ntcp LISTEN 0 128 0.0.0.0:22 0.0.0.0:*\n");
  const ports = (...more: Output[]) => read("node-port", settings, servers, addresses, output("iptables-save", "*nat\nCOMMIT\n"), ...more).rows;
  expect(ports(listeners)).toMatchObject([{ port: 31380, by: "rule", sure: true }]);
  expect(ports()).toMatchObject([{ port: 31380, sure: false }]);
});

test("a message of the kernel is at least as old as the newest one is later", () => {
  const log = "[  100.0] nf_conntrack: nf_conntrack: table full, dropping packet\n[ 9100.5] eth0: link up\n";
  expect(read("conntrack-usage", output("dmesg", log)).complaints).toMatchObject([{ later: 9000.5 }]);
  expect(read("conntrack-usage", output("dmesg", log), output("cat /proc/uptime", "9200.0 1.0\n")).complaints).toMatchObject([{ age: 9100, later: 9000.5 }]);
});

test("of sockets that were counted twice the second number tells how it is", () => {
  const { rows } = read("socket-count", ...twice("ss -tn state close-wait | wc -l", "901\n", "41\n"));
  expect(rows).toMatchObject([{ state: "CLOSE-WAIT", count: 41, output: 1 }]);
});
