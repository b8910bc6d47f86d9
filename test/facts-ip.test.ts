import { describe, expect, test } from "vitest";
import { captureOf } from "../functions/facts/capture.ts";
import { commandLine } from "../functions/facts/command.ts";
import { facts } from "../functions/facts/index.ts";
import { readFacts } from "../functions/facts/read.ts";

/** How outputs of `ip` and its elders compete with and complement each other: what fixtures of single outputs do not show. */

interface Given {
  command: string;
  text: string;
  sample?: number;
  truncated?: boolean;
}

function read(id: string, outputs: readonly Given[]) {
  const index = outputs.map(({ command, sample, truncated }, i) => ({
    command,
    file: `${i}`,
    ...(sample ? { sample } : {}),
    ...(truncated ? { truncated } : {}),
  }));
  const capture = captureOf({ schema: "netcheck.capture/1", target: { name: "node1" }, outputs: index }, (file) => ({
    text: outputs[Number(file)]?.text ?? "",
    truncated: false,
  }));
  const reading = readFacts(capture, new Set([id])).readings.get(id);
  if (reading === undefined) throw new Error(`no fact ${id}`);
  return { ...reading, value: reading.value as Record<string, Record<string, string | number>[]> };
}

/** The named fields of each row, with a blank between them; "-" for one that is left out. */
const table = (rows: Record<string, string | number>[] | undefined, ...fields: readonly string[]) =>
  rows?.map((row) => fields.map((field) => row[field] ?? "-").join(" "));

const view = (id: string, command: string) => facts.find((fact) => fact.id === id)?.recognize(commandLine(command).argv);

const MAIN = "default via 10.0.0.1 dev eth0 \n10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.5 \n";
const MAIN_JSON = '[{"dst":"default","gateway":"10.0.0.1","dev":"eth0","flags":[]},{"type":"local","dst":"10.0.0.5","dev":"eth0","table":"local","flags":[]}]';

describe("route", () => {
  const prefixes = (outputs: readonly Given[]) => table(read("route", outputs).value["rows"], "table", "prefix", "output");

  test("every table beats table main, whatever the order", () => {
    const all = { command: "ip -j -4 route show table all", text: MAIN_JSON };
    const main = { command: "ip route", text: MAIN };
    expect(prefixes([main, all])).toEqual(["main 0.0.0.0/0 1", "local 10.0.0.5/32 1"]);
    expect(prefixes([all, main])).toEqual(["main 0.0.0.0/0 0", "local 10.0.0.5/32 0"]);
  });

  test("what NetworkManager and the kernel's list of IPv6 tell beside it adds routes, and leaves no more open", () => {
    const main = { command: "ip route", text: MAIN };
    const device = {
      command: "nmcli device show eth0",
      text: "GENERAL.DEVICE:  eth0\nIP4.ROUTE[1]:  dst = 10.0.0.0/24, nh = 0.0.0.0, mt = 100\nIP6.ROUTE[1]:  dst = fe80::/64, nh = ::, mt = 1024\n",
    };
    const zero = "0".repeat(32);
    const list = { command: "cat /proc/net/ipv6_route", text: `fe80${"0".repeat(28)} 40 ${zero} 00 ${zero} 00000100 00000001 00000000 00000001     eth0\n` };
    for (const beside of [device, list]) {
      expect(read("route", [main, beside])).toMatchObject({ status: "read", complete: true, reason: "" });
      expect(prefixes([beside, main])).toEqual(["main 0.0.0.0/0 1", "main 10.0.0.0/24 1", "main fe80::/64 0"]);
    }
    // alone it is not all of the routes
    expect(read("route", [device])).toMatchObject({ complete: false });
    expect(read("address", [{ command: "ip addr", text: "" }, device])).toMatchObject({ complete: true });
  });

  test("another table complements table main, a device of the same table adds nothing", () => {
    const outputs = [
      { command: "ip route show table 2", text: "default via 10.0.0.1 dev eth1 \n" },
      { command: "ip route", text: MAIN },
      { command: "ip route show dev eth0", text: "default via 10.0.0.1 \n" },
    ];
    expect(prefixes(outputs)).toEqual(["main 0.0.0.0/0 1", "main 10.0.0.0/24 1", "2 0.0.0.0/0 0"]);
    expect(read("route", outputs).complete).toBe(true);
  });

  test("families complement each other", () => {
    const outputs = [
      { command: "ip -j -4 route show table all", text: MAIN_JSON },
      { command: "ip -j -6 route show table all", text: '[{"dst":"default","gateway":"fe80::1","dev":"eth0","metric":1024,"flags":[],"pref":"medium"}]' },
    ];
    expect(prefixes(outputs)).toEqual(["main 0.0.0.0/0 0", "local 10.0.0.5/32 0", "main ::/0 1"]);
    expect(read("route", outputs).complete).toBe(true);
  });

  test("a part does not make the whole", () => {
    const device = { command: "ip route show dev eth0", text: "default via 10.0.0.1 \n" };
    expect(read("route", [device])).toMatchObject({ complete: false, value: { rows: [{ interface: "eth0", prefix: "0.0.0.0/0" }] } });
    expect(read("route", [{ command: "ip route", text: MAIN, truncated: true }]).complete).toBe(false);
    expect(read("route", [{ command: "ip route | grep default", text: MAIN }]).complete).toBe(false);
    expect(
      read("route", [
        { command: "ip route", text: MAIN },
        { ...device, command: "ip -6 route show dev eth0" },
      ]).complete,
    ).toBe(false);
  });

  test("a truncated listing is completed by a filtered one, nothing twice", () => {
    const outputs = [
      { command: "ip route", text: "default via 10.0.0.1 dev eth0 \n", truncated: true },
      { command: "ip route show dev eth0", text: "default via 10.0.0.1 \n10.0.0.0/24 proto kernel scope link src 10.0.0.5 \n" },
    ];
    expect(prefixes(outputs)).toEqual(["main 0.0.0.0/0 0", "main 10.0.0.0/24 1"]);
  });

  test.each([
    "ip route get 10.0.0.1",
    "ip -n pod1 route",
    "ip netns exec",
    "ip route add default via 10.0.0.1",
    "route add default gw 10.0.0.1",
    "route -C",
    "netstat -tlnp",
  ])("does not take %s for a listing", (command) => expect(view("route", command)).toBeUndefined());

  test.each(["ip r", "ip ro ls", "/sbin/ip -4 -j -p route list", "sudo ip -family inet r s", "ip route show table main", "busybox ip route", "netstat -r -n"])(
    "%s is the whole table main",
    (command) => expect(view("route", command)).toMatchObject({ scope: "ipv4", complete: true }),
  );
});

describe("link", () => {
  const header =
    "2: eth0: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000\n    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff";
  const counters = (bytes: number, dropped: number) =>
    `${header}\n    RX:  bytes packets errors dropped  missed   mcast\n  ${bytes} 5 0 ${dropped} 0 0\n    TX:  bytes packets errors dropped carrier collsns\n  7 1 0 0 0 0\n`;
  const details = `${header} promiscuity 0 \n3: vx0: <UP> mtu 1450 qdisc noqueue state UNKNOWN mode DEFAULT\n    link/ether 02:00:00:00:00:02 brd ff:ff:ff:ff:ff:ff promiscuity 0 \n    vxlan id 1 local 10.0.0.5 dev eth0 srcport 0 0 dstport 8472 nolearning udpcsum \n`;

  test("details and counters complement each other", () => {
    const { value, complete } = read("link", [
      { command: "ip -s link", text: counters(100, 3) },
      { command: "ip -d link", text: details },
      { command: "ip addr", text: `${header}\n    inet 10.0.0.5/24 scope global eth0\n` },
    ]);
    expect(complete).toBe(true);
    expect(table(value["rows"], "interface", "kind", "output")).toEqual(["eth0 - 1", "vx0 vxlan 1"]);
    expect(value["vxlans"]).toMatchObject([{ interface: "vx0", id: 1, learning: false, output: 1 }]);
    expect(value["statistics"]).toMatchObject([{ interface: "eth0", rxDropped: 3, output: 0 }]);
    expect(value["statistics"]?.[0]).not.toHaveProperty("rxDroppedDelta");
  });

  test("a second sample gives deltas, but none where a counter started anew", () => {
    const command = "ip -s link";
    const deltasTo = (bytes: number, dropped: number) => {
      const { value } = read("link", [
        { command, text: counters(100, 3) },
        { command, text: counters(bytes, dropped), sample: 2 },
      ]);
      expect(value["rows"]).toHaveLength(1);
      return Object.fromEntries(Object.entries(value["statistics"]?.[0] ?? {}).filter(([key]) => key.endsWith("Delta")));
    };
    expect(deltasTo(140, 10)).toMatchObject({ rxBytesDelta: 40, rxDroppedDelta: 7, rxPacketsDelta: 0, txBytesDelta: 0 });
    // with it all others of the interface did, or it is another machine's
    expect(deltasTo(40, 10)).toEqual({});
  });

  test("single interfaces add up, and are not everything", () => {
    const { value, complete } = read("link", [
      { command: "ip link show eth0", text: `${header}\n` },
      { command: "ip link show eth1", text: `${header.replace("eth0", "eth1")}\n` },
    ]);
    expect(value["rows"]?.map((row) => row["interface"])).toEqual(["eth0", "eth1"]);
    expect(complete).toBe(false);
  });

  test.each(["ip -br -j addr", "ip -o addr", "ip link set eth0 up", "ifconfig eth0 down", "ip -n pod1 link"])(
    "does not take %s for a list of links",
    (command) => expect(view("link", command)).toBeUndefined(),
  );

  test("ip -br addr tells by the way what is up, and no more: where links are optional it is as if they were not listed", () => {
    const { value, complete, hinted } = read("link", [
      {
        command: "ip -br addr",
        text: "lo               UNKNOWN        127.0.0.1/8\neth0@if7         UP             10.0.0.5/24\ncni0             DOWN           10.244.1.1/24\nlost             UP             half of an addr\n",
      },
    ]);
    expect(value["rows"]).toMatchObject([
      { line: 1, interface: "lo", up: true, carrier: true },
      { line: 2, interface: "eth0", peer: "if7", up: true },
    ]);
    expect({ complete, hinted }).toEqual({ complete: false, hinted: true });
  });

  test("ip -d link show NAME | grep vxlan tells of that VXLAN, whose name the command has; a list of several tells no name", () => {
    const text = "    vxlan id 1 local 10.0.0.13 dev eth0 srcport 0 0 dstport 4789 nolearning ttl auto ageing 300 udpcsum \n";
    const { value, complete } = read("link", [{ command: "ip -d link show flannel.1 | grep vxlan", text }]);
    expect(value).toMatchObject({ rows: [], vxlans: [{ interface: "flannel.1", port: 4789, local: "10.0.0.13" }] });
    expect(complete).toBe(false);
    for (const command of ["ip -d link show up | grep vxlan", "ip -d link show type vxlan | grep vxlan", "ip -d link | grep vxlan"])
      expect(read("link", [{ command, text }]).value).toMatchObject({ vxlans: [] });
  });

  test("ip -6 addr shows only links that have such addresses", () => expect(view("link", "ip -6 addr")).toMatchObject({ complete: false }));
});

describe("address, rule, neighbor", () => {
  test("machine output beats text, text beats ifconfig", () => {
    const json = '[{"ifname":"eth0","addr_info":[{"family":"inet","local":"10.0.0.5","prefixlen":24,"scope":"global"}]}]';
    const ifconfig = "eth0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500\n        inet 10.0.0.5  netmask 255.255.255.0  broadcast 10.0.0.255\n";
    const outputs = [
      { command: "ifconfig -a", text: ifconfig },
      { command: "ip -j addr", text: json },
      { command: "ip -o -4 addr", text: "2: eth0    inet 10.0.0.5/24 scope global eth0\\       valid_lft forever preferred_lft forever\n" },
    ];
    expect(read("address", outputs)).toMatchObject({ complete: true, value: { rows: [{ address: "10.0.0.5", output: 1 }] } });
    expect(read("address", outputs.slice(0, 1))).toMatchObject({ complete: false, value: { rows: [{ address: "10.0.0.5", prefixLength: 24 }] } });
  });

  test("JSON rows quote their own address and its line", () => {
    const text = '[{\n"ifname": "eth0",\n"addr_info": [{\n"family": "inet", "local": "10.0.0.5"\n},{\n"family": "inet", "local": "10.0.0.6"\n}]\n}]\n';
    expect(read("address", [{ command: "ip -j -p addr", text }]).value["rows"]).toMatchObject([
      { address: "10.0.0.5", line: 3, text: '{\n"family": "inet", "local": "10.0.0.5"\n}' },
      { address: "10.0.0.6", line: 5 },
    ]);
  });

  test("`ip rule` is IPv4 alone", () => {
    const outputs = [
      { command: "ip rule", text: "0:\tfrom all lookup local\n" },
      { command: "ip -6 rule", text: "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n" },
    ];
    expect(read("rule", outputs).value["rows"]?.map((row) => row["family"])).toEqual(["ipv4", "ipv6", "ipv6"]);
  });

  test("`ip neigh` beats arp; arp is all of IPv4 and nothing of IPv6", () => {
    const arp = { command: "arp -n", text: "10.0.0.1  ether  02:00:00:00:00:01  C  eth0\n" };
    const neigh = { command: "ip neigh", text: "10.0.0.1 dev eth0 lladdr 02:00:00:00:00:01 STALE\nfe80::1 dev eth0 FAILED\n" };
    expect(read("neighbor", [arp, neigh]).value["rows"]).toMatchObject([{ state: "STALE" }, { family: "ipv6", state: "FAILED" }]);
    expect(read("neighbor", [arp, { ...neigh, truncated: true }]).value["rows"]).toMatchObject([{ state: "UNKNOWN" }, { state: "FAILED" }]);
    expect(read("neighbor", [arp, { ...neigh, truncated: true }]).complete).toBe(false);
    expect(view("neighbor", "arp -i eth0")).toMatchObject({ complete: false });
    expect(view("neighbor", "arp -s 10.0.0.1 02:00:00:00:00:01")).toBeUndefined();
  });
});
