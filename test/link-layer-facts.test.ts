import { describe, expect, test } from "vitest";
import { captureOf } from "../functions/facts/capture.ts";
import { readFacts } from "../functions/facts/read.ts";

/** The derived facts about links, neighbours and the way back, which rules build on: what their fixtures do not show one by one. */

type Values = Record<string, Record<string, unknown>[]>;

function derive(id: string, outputs: Record<string, string>): Values {
  const entries = Object.entries(outputs);
  const capture = captureOf(
    { schema: "netcheck.capture/1", target: { name: "node1" }, outputs: entries.map(([command], i) => ({ command, file: `${i}` })) },
    (file) => ({ text: entries[Number(file)]?.[1] ?? "", truncated: false }),
  );
  const reading = readFacts(capture, new Set([id])).readings.get(id);
  if (reading?.status !== "read") throw new Error(`${id}: ${reading?.reason}`);
  return reading.value as Values;
}

describe("link-event", () => {
  test.each([
    ["e1000e 0000:00:1f.6 eno1: NIC Link is Down", "eno1", "down"],
    ["igb 0000:01:00.0 enp1s0f0: igb: enp1s0f0 NIC Link is Up 1000 Mbps Full Duplex", "enp1s0f0", "up"],
    ["r8169 0000:02:00.0 eth0: Link is Up - 1Gbps/Full - flow control off", "eth0", "up"],
    ["mlx5_core 0000:3b:00.0 ens1f0np0: Link down", "ens1f0np0", "down"],
    ["bonding: bond0: link status definitely down for interface eth1, disabling it", "eth1", "down"],
    ["bond0: (slave ens1f0): link status definitely up, 25000 Mbps full duplex", "ens1f0", "up"],
    ["tg3 0000:04:00.0: eth2: Link is down", "eth2", "down"],
    ["vmxnet3 0000:0b:00.0 ens192: NIC Link is Up 10000 Mbps", "ens192", "up"],
  ])("%s", (message, name, event) => {
    expect(derive("link-event", { dmesg: `[  100.000000] ${message}\n` })["rows"]).toMatchObject([{ interface: name, event }]);
  });

  test.each(["IPv6: ADDRCONF(NETDEV_CHANGE): veth1: link becomes ready", "cni0: port 2(veth1) entered disabled state", "usb 1-1: new high-speed device"])(
    "not: %s",
    (message) => expect(derive("link-event", { dmesg: `[  100.000000] ${message}\n` })["rows"]).toEqual([]),
  );

  test("a driver and a bond that tell of the same change count once", () => {
    const log = "[  100.0] tg3 0000:04:00.0 eth1: Link is Down\n[  100.2] bond0: (slave eth1): link status definitely down, disabling slave\n";
    expect(derive("link-event", { dmesg: log, "cat /proc/uptime": "200.00 100.00\n" })["interfaces"]).toMatchObject([{ interface: "eth1", downs: 1 }]);
  });
});

describe("reverse-path", () => {
  const route =
    "default via 10.9.0.1 dev eth0 \n10.9.0.0/24 dev eth0 proto kernel scope link src 10.9.0.31 \n10.20.7.0/24 dev eth1 proto kernel scope link src 10.20.7.31 \n";
  const log = (source: string, type: string) =>
    `[  100.0] IPv4: martian source 10.20.7.31 from ${source}, on dev eth1\n[  100.0] ll header: 00000000: 52 54 00 11 20 31 52 54 00 77 10 01 08 ${type}\n`;

  test("the way back is another interface, of an IP packet", () => {
    const { martians } = derive("reverse-path", { dmesg: log("10.50.3.12", "00"), "ip route": route });
    expect(martians).toMatchObject([{ back: "eth0", asymmetric: true, packet: "ip", always: false, filter: -1 }]);
  });

  test("a neighbour on the interface itself is answered there", () => {
    expect(derive("reverse-path", { dmesg: log("10.20.7.44", "06"), "ip route": route })["martians"]).toMatchObject([{ asymmetric: false, packet: "arp" }]);
  });

  test("loopback as a sender is dropped whatever the filter", () => {
    expect(derive("reverse-path", { dmesg: log("127.0.0.1", "00"), "ip route": route })["martians"]).toMatchObject([{ always: true }]);
  });

  test("the larger value counts, and alone an interface's own value is the least", () => {
    const both = derive("reverse-path", { "sysctl -a | grep rp_filter": "net.ipv4.conf.all.rp_filter = 2\nnet.ipv4.conf.eth0.rp_filter = 1\n" });
    expect(both["filters"]).toMatchObject([{ interface: "eth0", filter: 2, line: 1 }]);
    const one = derive("reverse-path", { "sysctl net.ipv4.conf.eth0/100.rp_filter": "net.ipv4.conf.eth0/100.rp_filter = 1\n" });
    expect(one["filters"]).toMatchObject([{ interface: "eth0.100", filter: 1 }]);
  });
});

describe("mtu-conflict", () => {
  const link = (name: string, mtu: number, more = "") =>
    `9: ${name}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu ${mtu} qdisc noqueue state UP group default ${more}\n`;

  test("an IP in IP tunnel lies on the interface that leads to the other node", () => {
    const outputs = {
      "ip link": link("eth0", 1500) + link("wg0", 1420) + link("tunl0", 1440),
      "ip route": "default via 198.18.0.1 dev eth0 \n10.99.0.0/24 dev wg0 scope link \n192.168.4.0/26 via 10.99.0.7 dev tunl0 proto bird onlink \n",
    };
    expect(derive("mtu-conflict", outputs)["tunnels"]).toMatchObject([{ interface: "tunl0", underlay: "wg0", limit: 1400, fits: false, routes: 1 }]);
  });

  test("a smaller size on every route through the tunnel makes up for the device's", () => {
    const outputs = {
      "ip link": link("eth0", 1500) + link("flannel.1", 1500),
      "ip route": "default via 198.18.0.1 dev eth0 \n10.42.1.0/24 via 10.42.1.0 dev flannel.1 onlink mtu 1450 \n",
    };
    expect(derive("mtu-conflict", outputs)["tunnels"]).toMatchObject([{ interface: "flannel.1", limit: 1450, fits: true }]);
  });

  test("containers of Docker do not leave through the CNI's tunnel, and a node's own eth0 is no pod", () => {
    const outputs = {
      "ip -d link":
        link("eth0", 1500, "link-netnsid 0") +
        link("flannel.1", 1450) +
        link("veth12ab", 1500).replace(" state", " master docker0 state") +
        link("docker0", 1500),
      "ip route": "default via 198.18.0.1 dev eth0 \n10.42.1.0/24 via 10.42.1.0 dev flannel.1 onlink \n",
    };
    expect(derive("mtu-conflict", outputs)["pods"]).toEqual([]);
  });
});

describe("address-conflict", () => {
  const address = (name: string, more = "") => `5: ${name}    inet 10.88.0.17/24 brd 10.88.0.255 scope global ${name}${more}\n`;
  const link = (name: string, more = "") => `5: ${name}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq ${more}state UP\n`;

  test.each([
    ["a bridge and its port", link("eno1", "master br0 ") + link("br0"), "eno1", "br0", "port"],
    ["two cards", link("eth0") + link("eth1"), "eth0", "eth1", "twice"],
  ])("%s", (_, links, first, second, kind) => {
    const { rows } = derive("address-conflict", { "ip -o addr": address(first) + address(second), "ip link": links });
    expect(rows).toMatchObject([{ kind, address: "10.88.0.17", interface: second, other: first }]);
  });

  test.each([
    ["a VRF's member", link("eth0") + link("eth1", "master vrf-blue "), "eth0", "eth1"],
    ["a virtual address on kube-ipvs0", link("eth0") + link("kube-ipvs0"), "eth0", "kube-ipvs0"],
    ["interfaces that were not listed", link("eth0"), "eth0", "eth1"],
  ])("not: %s", (_, links, first, second) => {
    expect(derive("address-conflict", { "ip -o addr": address(first) + address(second), "ip link": links })["rows"]).toEqual([]);
  });
});

describe("neighbor-table", () => {
  test("permanent entries do not count towards the limit", () => {
    const neighbors =
      "10.0.0.2 dev eth0 lladdr 02:00:00:00:00:02 REACHABLE\n10.0.0.3 dev flannel.1 lladdr 02:00:00:00:00:03 PERMANENT\nfe80::1 dev eth0 lladdr 02:00:00:00:00:04 STALE\n";
    const { levels } = derive("neighbor-table", {
      "ip neigh": neighbors,
      "sysctl net.ipv4.neigh.default.gc_thresh3": "net.ipv4.neigh.default.gc_thresh3 = 4\n",
    });
    expect(levels).toMatchObject([{ family: "ipv4", entries: 1, limit: 4, percent: 25 }]);
  });
});
