import { describe, expect, test } from "vitest";
import { captureOf } from "../../functions/facts/capture.ts";
import { readFacts } from "../../functions/facts/read.ts";
import { Facts } from "../../functions/rules/evaluate.ts";
import type { ServiceEndpoint, ServicePlace } from "../../functions/triage/ports.ts";
import { clientPath, type NodeFacts, serverPath } from "../../functions/triage/svc-path.ts";

/** The way to a service, on the node that calls it and on the one that serves it. */

interface Printed {
  readonly text: string;
  readonly truncated?: boolean;
}
function node(outputs: Readonly<Record<string, string | Printed>>): NodeFacts {
  const all = Object.entries(outputs).map(([command, said]) => ({ command, ...(typeof said === "string" ? { text: said } : said) }));
  const capture = captureOf(
    {
      schema: "netcheck.capture/1",
      target: { name: "node-c" },
      outputs: all.map(({ command }, index) => ({ command, file: `outputs/${index}.txt` })),
    },
    (file) => {
      const { text = "", truncated = false } = all[Number(/\d+/.exec(file)?.[0])] ?? {};
      return { text, truncated };
    },
  );
  return { name: "node-c", facts: new Facts(capture, readFacts(capture)) };
}

const base = { portName: "http", protocol: "TCP", port: 8080, ready: true, terminating: false };
const web1: ServiceEndpoint = { ...base, address: "10.244.1.7", node: "node-a", pod: "web-1" };
const web2: ServiceEndpoint = { ...base, address: "10.244.2.9", node: "node-b", pod: "web-2" };
const place: ServicePlace = {
  kind: "service",
  cluster: "prod",
  namespace: "shop",
  name: "web",
  type: "ClusterIP",
  addresses: ["10.96.7.20"],
  ports: [{ name: "http", protocol: "TCP", port: 80 }],
  endpoints: [web1, web2],
  more: 0,
  nodes: [],
  prefersNear: false,
  onlyLocal: false,
  problems: [],
};

const SEP1 = `-A KUBE-SEP-AAAAAAAAAAAAAAAA -p tcp -m comment --comment "shop/web:http" -m tcp -j DNAT --to-destination 10.244.1.7:8080
`;
const SEP2 = `-A KUBE-SEP-BBBBBBBBBBBBBBBB -p tcp -m comment --comment "shop/web:http" -m tcp -j DNAT --to-destination 10.244.2.9:8080
`;
const FRONT = `-A KUBE-SERVICES -d 10.96.7.20/32 -p tcp -m comment --comment "shop/web:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-WEBWEBWEBWEBWEBW
`;
const iptables = ({ front = FRONT, sep1 = SEP1, sep2 = SEP2, filter = "" } = {}): string => `*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
${filter}COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-WEBWEBWEBWEBWEBW - [0:0]
:KUBE-SEP-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-SEP-BBBBBBBBBBBBBBBB - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.7.20/32 -p udp -m udp --dport 80 -j KUBE-SVC-OTHEROTHEROTHERO
${front}-A KUBE-SVC-WEBWEBWEBWEBWEBW -m comment --comment "shop/web:http" -m statistic --mode random --probability 0.5 -j KUBE-SEP-AAAAAAAAAAAAAAAA
-A KUBE-SVC-WEBWEBWEBWEBWEBW -m comment --comment "shop/web:http" -j KUBE-SEP-BBBBBBBBBBBBBBBB
${sep1}${sep2}COMMIT
`;
const IPVS = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn
TCP  10.96.7.20:80 rr
  -> 10.244.1.7:8080              Masq    1      0          0
  -> 10.244.2.9:8080              Masq    1      0          0
`;
const NFT = `table ip kube-proxy {
	map no-endpoint-services {
		type ipv4_addr . inet_proto . inet_service : verdict
	}
	map service-ips {
		type ipv4_addr . inet_proto . inet_service : verdict
		elements = { 10.96.7.20 . tcp . 80 : goto service-WEBWEBWE-shop/web/tcp/http }
	}
	chain services {
		ip daddr . meta l4proto . th dport vmap @service-ips
	}
	chain service-WEBWEBWE-shop/web/tcp/http {
		ip daddr 10.96.7.20 tcp dport 80 ip saddr != 10.244.0.0/16 jump mark-for-masquerade
		numgen random mod 2 vmap { 0 : goto endpoint-7BJE66LL-shop/web/tcp/http__10.244.1.7/8080, 1 : goto endpoint-K3JE66LL-shop/web/tcp/http__10.244.2.9/8080 }
	}
	chain endpoint-7BJE66LL-shop/web/tcp/http__10.244.1.7/8080 {
		meta l4proto tcp dnat to 10.244.1.7:8080
	}
	chain endpoint-K3JE66LL-shop/web/tcp/http__10.244.2.9/8080 {
		meta l4proto tcp dnat to 10.244.2.9:8080
	}
	chain mark-for-masquerade {
		meta mark set meta mark | 0x00004000
	}
}
`;
const CILIUM = `ID   Frontend               Service Type   Backend
1    10.96.7.20:80/TCP      ClusterIP      1 => 10.244.1.7:8080/TCP (active)
                                           2 => 10.244.2.9:8080/TCP (active)
`;

const whats = ({ wrong }: { wrong: readonly { what: string }[] }): string[] => wrong.map(({ what }) => what);

describe("the calling node", () => {
  test.each<[string, string, string, string]>([
    ["kube-proxy (iptables)", "iptables-save", iptables(), SEP1],
    ["kube-proxy (IPVS)", "ipvsadm -Ln", IPVS, "  -> 10.244.1.7:8080              Masq    1      0          0\n"],
    ["kube-proxy (nftables)", "nft list ruleset", NFT, "0 : goto endpoint-7BJE66LL-shop/web/tcp/http__10.244.1.7/8080, "],
    ["Cilium", "cilium-dbg service list", CILIUM, "1 => 10.244.1.7:8080/TCP (active)\n                                           "],
  ])("%s: every ready endpoint has its entry; one that lost it, and one that is none any more, are named with the line", (by, command, text, first) => {
    const whole = clientPath(place, node({ [command]: text }));
    expect(whole.wrong).toEqual([]);
    expect(whole.unchecked).toEqual([]);
    expect(whole.table).toEqual([
      `10.96.7.20:80/TCP  ${by}`,
      "  10.244.1.7:8080         ready      node-a  web-1  entry found",
      "  10.244.2.9:8080         ready      node-b  web-2  entry found",
    ]);
    const lost = clientPath(place, node({ [command]: text.replace(first, "") }));
    expect(whats(lost)).toEqual([`${by} on node-c does not lead to 10.244.1.7:8080, which is ready.`]);
    expect(lost.wrong[0]?.evidence).toHaveLength(1);
    expect(lost.table).toContain("  10.244.1.7:8080         ready      node-a  web-1  no entry");
    const stale = clientPath({ ...place, endpoints: [web1] }, node({ [command]: text }));
    expect(whats(stale)).toEqual([`${by} on node-c sends packets for 10.96.7.20:80/TCP to 10.244.2.9:8080, which is no endpoint of the service (any more).`]);
    expect(stale.wrong[0]?.evidence[0]?.text).toContain("10.244.2.9");
  });

  test("the address of the service itself has no entry", () => {
    expect(whats(clientPath(place, node({ "iptables-save": iptables({ front: "" }) })))).toEqual([
      "node-c has no entry for 10.96.7.20:80/TCP: kube-proxy (iptables) did not write one there.",
    ]);
  });

  test("what kube-proxy writes into iptables in the mode IPVS are no entries of services", () => {
    const masquerade = `*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-MARK-MASQ - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-SERVICES ! -s 10.244.0.0/16 -m comment --comment "Kubernetes service cluster ip + port for masquerade purpose" -m set --match-set KUBE-CLUSTER-IP dst,dst -j KUBE-MARK-MASQ
-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT
COMMIT
`;
    const unread = clientPath(place, node({ "iptables-save": masquerade }));
    expect(unread.wrong).toEqual([]);
    expect(unread.unchecked.join()).toMatch(/^No service proxy was seen on node-c \(ipvs: /);
    expect(whats(clientPath(place, node({ "iptables-save": masquerade, "ipvsadm -Ln": IPVS.replaceAll("10.96.7.20", "10.96.7.21") })))).toEqual([
      "node-c has no entry for 10.96.7.20:80/TCP: kube-proxy (IPVS) did not write one there.",
    ]);
  });

  test("a listing that was cut proves no absence", () => {
    const text = iptables().slice(0, iptables().indexOf("-A KUBE-SVC-WEB"));
    const cut = clientPath(place, node({ "iptables-save": { text, truncated: true } }));
    expect(cut.wrong).toEqual([]);
    expect(cut.unchecked.join()).toContain("Whether kube-proxy (iptables) on node-c leads to 10.244.1.7:8080, 10.244.2.9:8080");
    const earlier = iptables().slice(0, iptables().indexOf(FRONT));
    const none = clientPath(place, node({ "iptables-save": { text: earlier, truncated: true } }));
    expect(none.wrong).toEqual([]);
    expect(none.unchecked.join()).toContain("Whether node-c has an entry for 10.96.7.20:80/TCP");
  });

  test("no endpoint is ready, and the proxy refuses the packets: that is one thing, not two", () => {
    const filter = `-A KUBE-SERVICES -d 10.96.7.20/32 -p tcp -m comment --comment "shop/web:http has no endpoints" -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable\n`;
    const facts = node({ "iptables-save": iptables({ front: "", filter }) });
    const none = { ...place, endpoints: [{ ...web1, ready: false }] };
    expect(whats(clientPath(none, facts))).toEqual(["No endpoint of web:80/TCP (http) is ready, of 1. Nothing can answer there."]);
    expect(clientPath(none, facts).table[0]).toBe("10.96.7.20:80/TCP  kube-proxy (iptables): refused");
    // the rule is old
    const late = clientPath(place, facts);
    expect(whats(late)).toEqual(["kube-proxy (iptables) on node-c refuses packets to 10.96.7.20:80/TCP, as if nothing were ready; 2 endpoints are."]);
    expect(late.wrong[0]?.evidence[0]?.text).toContain("has no endpoints");
  });

  test("a service that prefers endpoints nearby may leave out the others", () => {
    const facts = node({ "iptables-save": iptables({ sep2: "" }) });
    const near = clientPath({ ...place, prefersNear: true }, facts);
    expect(near.wrong).toEqual([]);
    expect(near.unchecked).toEqual(["10.244.2.9:8080: not used from node-c. The service prefers endpoints nearby, so this may be meant"]);
  });

  test("no proxy was seen, no endpoints are known, or the service has no address: what is not known is said", () => {
    expect(clientPath(place, node({})).unchecked.join()).toMatch(/^No service proxy was seen on node-c \(iptables: /);
    const denied = { ...place, endpoints: [], problems: ["its endpoints are not known: denied"] };
    const blind = clientPath(denied, node({ "iptables-save": iptables() }));
    expect(blind.wrong).toEqual([]);
    expect(blind.unchecked).toEqual(["its endpoints are not known: denied"]);
    const headless = clientPath({ ...place, addresses: [] }, node({ "iptables-save": iptables() }));
    expect(headless.wrong).toEqual([]);
    expect(headless.table[0]).toContain("headless");
  });

  test("of more endpoints than were kept, no backend is called a stranger, and nobody says that none is ready", () => {
    const facts = node({ "iptables-save": iptables() });
    expect(clientPath({ ...place, endpoints: [web1], more: 800 }, facts).wrong).toEqual([]);
    expect(clientPath({ ...place, endpoints: [{ ...web1, ready: false }], more: 800 }, facts).wrong).toEqual([]);
  });
});

describe("a service that takes only endpoints on the calling node", () => {
  const local = { ...place, prefersNear: true, onlyLocal: true };
  const DROP = `-A KUBE-SERVICES -d 10.96.7.20/32 -p tcp -m comment --comment "shop/web:http has no local endpoints" -m tcp --dport 80 -j DROP\n`;
  const EMPTY = IPVS.split("\n").slice(0, 4).join("\n");
  const service = "elements = { 10.96.7.20 . tcp . 80 : goto service-WEBWEBWE-shop/web/tcp/http }";
  const dropped = NFT.replace(service, "").replace("verdict\n", 'verdict\n\t\telements = { 10.96.7.20 . tcp . 80 comment "shop/web:http" : drop }\n');

  test.each<[string, string, string]>([
    ["kube-proxy (iptables)", "iptables-save", iptables({ front: "", filter: DROP })],
    ["kube-proxy (IPVS)", "ipvsadm -Ln", EMPTY],
    ["kube-proxy (nftables)", "nft list ruleset", dropped],
  ])("%s drops what is sent to it where there is none: that is what the service asks for, and no rule is missing", (by, command, text) => {
    const { wrong, table } = clientPath(local, node({ [command]: text }));
    expect(whats({ wrong })).toEqual([
      `${by} on node-c drops packets to 10.96.7.20:80/TCP: the service takes only endpoints on the calling node (internalTrafficPolicy Local), and ${by} knows none there.`,
    ]);
    expect(wrong[0]?.evidence).toHaveLength(1);
    expect(table[0]).toBe(`10.96.7.20:80/TCP  ${by}${by.includes("IPVS") ? "" : ": dropped"}`);
  });

  test("there is one, by the name or the address of the node, and its packets are dropped all the same", () => {
    const facts = node({ "iptables-save": iptables({ front: "", filter: DROP }) });
    for (const at of ["node-c", "i-0123"])
      expect(whats(clientPath({ ...local, endpoints: [web1, { ...web2, node: at }] }, { ...facts, address: "i-0123" }))).toEqual([
        "kube-proxy (iptables) on node-c drops packets to 10.96.7.20:80/TCP, as if nothing on it were ready; 1 endpoint is.",
      ]);
    const own = NFT.replaceAll("service-WEBWEBWE", "local-WEBWEBWE")
      .replace("mod 2", "mod 1")
      .replace(/, 1 : goto \S+/, "");
    expect(clientPath({ ...local, endpoints: [{ ...web1, node: "node-c" }, web2] }, node({ "nft list ruleset": own })).wrong).toEqual([]);
    const ipvs = clientPath(
      { ...local, endpoints: [web1, { ...web2, node: "node-c" }] },
      node({ "ipvsadm -Ln": `${EMPTY}\n  -> 10.244.1.7:8080              Masq    1      0          0\n` }),
    );
    expect(ipvs.unchecked).toEqual(["10.244.2.9:8080: not used from node-c. The service prefers endpoints nearby, so this may be meant"]);
  });
});

describe("IPv6", () => {
  const six = { ...web1, address: "fd00:10:244::7" };
  const both: ServicePlace = { ...place, addresses: ["10.96.7.20", "fd00:10:96::20"], endpoints: [web1, web2, six] };

  test("kube-proxy writes the colons of an endpoint as dots into the names of nftables' chains", () => {
    const ip6 = NFT.replace("table ip ", "table ip6 ")
      .replaceAll("ipv4_addr", "ipv6_addr")
      .replaceAll("ip daddr", "ip6 daddr")
      .replaceAll("ip saddr", "ip6 saddr")
      .replaceAll("10.96.7.20", "fd00:10:96::20")
      .replaceAll("__10.244.1.7/8080", "__fd00.10.244..7/8080")
      .replaceAll("10.244.1.7:8080", "[fd00:10:244::7]:8080")
      .replace("numgen random mod 2", "numgen random mod 1")
      .replace(", 1 : goto endpoint-K3JE66LL-shop/web/tcp/http__10.244.2.9/8080", "");
    const { wrong, table } = clientPath(both, node({ "nft list ruleset": NFT + ip6 }));
    expect(wrong).toEqual([]);
    expect(table.at(-1)).toBe("  [fd00:10:244::7]:8080   ready      node-a  web-1  entry found");
  });

  test("without ip6tables-save nobody knows what is not in it", () => {
    const { wrong, unchecked } = clientPath(both, node({ "iptables-save": iptables() }));
    expect(wrong).toEqual([]);
    expect(unchecked).toEqual([
      "Whether node-c has an entry for [fd00:10:96::20]:80/TCP: kube-proxy (iptables) is only partly known (its rules for IPv6 were not seen)",
    ]);
    const seen = node({ "iptables-save": iptables(), "ip6tables-save": "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n" });
    expect(whats(clientPath(both, seen))).toEqual(["node-c has no entry for [fd00:10:96::20]:80/TCP: kube-proxy (iptables) did not write one there."]);
  });
});

describe("the serving node", () => {
  const ROUTES = `default via 10.0.0.1 dev eth0
10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.7
10.244.1.7 dev cali0123456789a scope link
`;
  const LINKS = (state: string): string => `2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 state UP
5: cali0123456789a@if2: <${state}> mtu 1450 state UNKNOWN
`;
  const UP = "BROADCAST,MULTICAST,UP,LOWER_UP";

  test("a route into the pod, over an interface that is up", () => {
    const { table, wrong, unchecked } = serverPath([web1], node({ "ip route": ROUTES, "ip link show": LINKS(UP) }));
    expect(table).toEqual(["node-c  10.244.1.7  dev cali0123456789a  up"]);
    expect(wrong).toEqual([]);
    expect(unchecked).toEqual([]);
  });

  test("the route is gone: packets would leave the node again", () => {
    const text = ROUTES.replace(/10\.244.*\n/, "");
    const { wrong } = serverPath([web1], node({ "ip route": text, "ip link show": LINKS(UP) }));
    expect(wrong[0]?.what).toContain("node-c has no route into the pod 10.244.1.7: it sends such packets out through eth0 again.");
    expect(wrong[0]?.evidence[0]?.text).toBe("default via 10.0.0.1 dev eth0");
  });

  test("the route is gone, and the CNI plugin's route for its whole block takes the packets: they do not leave the node", () => {
    const text = ROUTES.replace(/10\.244.*\n/, "blackhole 10.244.1.0/26 proto bird\n");
    const { wrong, table } = serverPath([web1], node({ "ip route": text, "ip link show": LINKS(UP) }));
    expect(wrong[0]?.what).toContain("node-c has no route into the pod 10.244.1.7: a route of type blackhole takes such packets.");
    expect(wrong[0]?.evidence[0]?.text).toContain("blackhole 10.244.1.0/26");
    expect(table).toEqual(["node-c  10.244.1.7  no way into the pod"]);
  });

  test("the interface is down, or not there, or nobody answers on it", () => {
    const down = serverPath([web1], node({ "ip route": ROUTES, "ip link show": LINKS("BROADCAST,MULTICAST") }));
    expect(whats(down)).toEqual(["cali0123456789a on node-c, which leads to 10.244.1.7, is down."]);
    const gone = serverPath([web1], node({ "ip route": ROUTES, "ip link show": LINKS(UP).split("\n").slice(0, 1).join("\n") }));
    expect(whats(gone)).toEqual(["The route of node-c to 10.244.1.7 leads to cali0123456789a, an interface that is not there."]);
    const silent = serverPath([web1], node({ "ip route": ROUTES, "ip link show": LINKS(UP), "ip neigh": "10.244.1.7 dev cali0123456789a FAILED\n" }));
    expect(whats(silent)).toEqual(["node-c asked for 10.244.1.7 on cali0123456789a and got no answer (FAILED)."]);
    for (const { wrong } of [down, gone, silent]) expect(wrong[0]?.evidence).not.toEqual([]);
  });

  test.each([
    ["Cilium", "10.244.1.0/24 via 10.244.1.183 dev cilium_host proto kernel src 10.244.1.183"],
    ["Kube-OVN", "10.244.0.0/16 via 100.64.0.1 dev ovn0"],
  ])("%s's own device leads into pods although it looks like a gateway", (_, route) => {
    const text = `default via 10.0.0.1 dev eth0\n${route}\n`;
    expect(serverPath([web1], node({ "ip route": text })).wrong).toEqual([]);
  });

  test("a pod in the node's network has the node's address", () => {
    const text = "local 10.0.0.7 dev eth0 table local proto kernel scope host src 10.0.0.7\ndefault via 10.0.0.1 dev eth0\n";
    expect(serverPath([{ ...web1, address: "10.0.0.7" }], node({ "ip route show table all": text })).table).toEqual([
      "node-c  10.0.0.7  is the node's own address",
    ]);
  });

  test("routes that were not collected are not missing", () => {
    const { wrong, unchecked } = serverPath([web1], node({}));
    expect(wrong).toEqual([]);
    expect(unchecked).toHaveLength(1);
  });
});
