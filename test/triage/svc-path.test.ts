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
    expect(whole.next).toBeUndefined();
    expect(stale.next).toBe(
      `Next: what ${by === "Cilium" ? "the Cilium agent" : "kube-proxy"} on node-c logs. It holds its entries against the cluster and writes them anew when it is restarted.`,
    );
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

describe("endpoints that are ending", () => {
  const ending = { ...web1, ready: false, terminating: true, serving: true };
  const one = iptables({ sep2: "" });

  test("where nothing is ready, proxies send to those that still answer: nobody says that nothing can", () => {
    const { wrong, table } = clientPath({ ...place, endpoints: [ending] }, node({ "iptables-save": one }));
    expect(wrong).toEqual([]);
    expect(table).toContain("port 80/TCP (http): no endpoint is ready; what is ending still answers");
    expect(whats(clientPath({ ...place, endpoints: [{ ...ending, serving: false }] }, node({ "iptables-save": one })))).toEqual([
      "No endpoint of web:80/TCP (http) is ready, of 1. Nothing can answer there.",
    ]);
  });

  test("beside one that is ready they get nothing new, and no entry for them is missing", () => {
    const { wrong } = clientPath({ ...place, endpoints: [web1, { ...web2, ready: false, terminating: true, serving: true }] }, node({ "iptables-save": one }));
    expect(wrong).toEqual([]);
  });

  test("the proxy has no entry for the one that still answers", () => {
    const filter = `-A KUBE-SERVICES -d 10.96.7.20/32 -p tcp -m comment --comment "shop/web:http has no endpoints" -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable\n`;
    expect(whats(clientPath({ ...place, endpoints: [ending] }, node({ "iptables-save": iptables({ front: "", filter }) })))).toEqual([
      "kube-proxy (iptables) on node-c refuses packets to 10.96.7.20:80/TCP, as if nothing were ready; 1 endpoint is ending and still answers.",
    ]);
  });

  test("Cilium keeps one for its connections while another is active, and the cluster has forgotten it", () => {
    const text = CILIUM.replace("10.244.2.9:8080/TCP (active)", "10.244.2.9:8080/TCP (terminating)");
    expect(clientPath({ ...place, endpoints: [web1] }, node({ "cilium-dbg service list": text })).wrong).toEqual([]);
  });
});

describe("entries that are none of the service's, and services without an entry", () => {
  const stale = { ...place, endpoints: [web1] };
  const REPLACED = {
    "curl -sS --max-time 3 --unix-socket /var/run/cilium/cilium.sock http://localhost/v1/healthz": `{"cilium":{"state":"Ok"},"kube-proxy-replacement":{"mode":"True"}}`,
    "cilium-dbg service list": CILIUM.split("\n").slice(0, 2).join("\n"),
    "ipvsadm -Ln": IPVS,
    "iptables-save": iptables(),
    "nft list ruleset": NFT,
  };

  test("what kube-proxy has left gets no packet once Cilium does its work; as long as kube-proxy runs it does", () => {
    const agent = "    PID COMMAND\n      1 /sbin/init\n   3011 cilium-agent --config-dir=/tmp/cilium/config-map\n";
    const { wrong, table } = clientPath(stale, node({ ...REPLACED, "ps -e -o pid,args": agent }));
    expect(wrong).toEqual([]);
    expect(table).toEqual(["10.96.7.20:80/TCP  Cilium", "  10.244.1.7:8080         ready      node-a  web-1  entry found"]);
    const both = node({ ...REPLACED, "ps -e -o pid,args": `${agent}   2101 /usr/local/bin/kube-proxy --config=/var/lib/kube-proxy/config.conf\n` });
    expect(whats(clientPath(stale, both)).map((what) => what.split(" on ")[0])).toEqual([
      "kube-proxy (iptables)",
      "kube-proxy (IPVS)",
      "kube-proxy (nftables)",
    ]);
  });

  test("a policy of Cilium's sends the packets to a pod on the node instead", () => {
    const text = CILIUM.replace("ClusterIP      1 => 10.244.1.7", "LocalRedirect  1 => 10.244.3.9").replace(/ +2 =>.*\n/, "");
    const { wrong, unchecked } = clientPath(place, node({ "cilium-dbg service list": text }));
    expect(wrong).toEqual([]);
    expect(unchecked).toEqual([
      "10.96.7.20:80/TCP: a LocalRedirect policy of Cilium's sends it to pods on node-c instead; whether those answer was not looked at",
    ]);
  });

  test("a global service has endpoints that this cluster does not list; one that it does list may still be missing", () => {
    const global = { ...place, acrossClusters: true };
    const facts = node({ "cilium-dbg service list": `${CILIUM}                                           3 => 10.8.1.14:8080/TCP (active)\n` });
    expect(clientPath(global, facts)).toMatchObject({ wrong: [], unchecked: [] });
    expect(clientPath({ ...global, endpoints: [] }, facts).wrong).toEqual([]);
    const far = node({ "cilium-dbg service list": CILIUM.replace("10.244.2.9", "10.8.1.14") });
    expect(clientPath(global, far).unchecked).toEqual([
      "10.244.2.9:8080: not used from node-c. Other clusters serve it, too (global service), and may be preferred",
    ]);
  });

  test("a service that a label keeps from kube-proxy has no entry, and none is missing", () => {
    const { wrong, unchecked } = clientPath(
      { ...place, leftOut: "service.kubernetes.io/service-proxy-name" },
      node({ "iptables-save": iptables({ front: "" }) }),
    );
    expect(wrong).toEqual([]);
    expect(unchecked.join()).toContain("the label service.kubernetes.io/service-proxy-name of the service keeps kube-proxy from writing an entry");
  });

  test("whether Cilium does kube-proxy's work is not told: a kube-proxy that is not seen to run blames nobody", () => {
    const cilium = CILIUM.split("\n").slice(0, 2).join("\n");
    const outputs = { "cilium-dbg service list": cilium, "iptables-save": iptables() };
    const unknown = clientPath(stale, node(outputs));
    expect(unknown.wrong).toEqual([]);
    expect(unknown.unchecked.join()).toContain("Whether a kube-proxy works on node-c beside Cilium");
    const none = clientPath(stale, node({ ...outputs, "ps -e -o pid,args": "    PID COMMAND\n      1 /sbin/init\n   3011 cilium-agent\n" }));
    expect(none).toMatchObject({ wrong: [], unchecked: [] });
    expect(whats(clientPath(stale, node({ ...outputs, "curl -s -m 2 http://127.0.0.1:10249/proxyMode": "iptables" })))).toHaveLength(1);
  });

  test("no kube-proxy runs: then that is what to look at first, or its entries are what it left", () => {
    const ps = (...programs: readonly string[]) => ["    PID COMMAND", ...programs.map((program, index) => `  ${index + 1} ${program}`)].join("\n");
    const next = (...programs: readonly string[]) => clientPath(stale, node({ "iptables-save": iptables(), "ps -e -o pid,args": ps(...programs) })).next;
    expect(next("/sbin/init", "/usr/bin/kubelet", "/usr/bin/ovnkube --init-node node-c")).toMatch(
      /^Next: no kube-proxy runs on node-c\. Find out why it has ended/,
    );
    expect(next("/sbin/init", "/usr/local/bin/k3s agent")).toMatch(/^Next: what kube-proxy on node-c logs/);
  });

  test("IPVS has an entry, and kube-ipvs0 has the addresses of other services alone", () => {
    const bound = (...addresses: readonly string[]) =>
      `5: kube-ipvs0: <BROADCAST,NOARP> mtu 1500 qdisc noop state DOWN group default\n${addresses.map((address) => `    inet ${address}/32 scope global kube-ipvs0\n       valid_lft forever preferred_lft forever\n`).join("")}`;
    const at = (...addresses: readonly string[]) => whats(clientPath(place, node({ "ipvsadm -Ln": IPVS, "ip addr show": bound(...addresses) })));
    expect(at("10.96.0.1", "10.96.7.20")).toEqual([]);
    expect(at()).toEqual([]);
    expect(at("10.96.0.1", "10.96.0.10")).toEqual([
      "10.96.7.20 is not on kube-ipvs0 of node-c: without it packets for 10.96.7.20:80/TCP do not come to IPVS, although it has an entry.",
    ]);
  });

  test("packets of pods do not come to the entries: PREROUTING has lost its call", () => {
    const flushed = iptables().replace(/-A PREROUTING.*\n/, "");
    expect(whats(clientPath(place, node({ "iptables-save": flushed })))).toEqual([
      "PREROUTING of the table nat on node-c does not call KUBE-SERVICES: packets of pods pass by every entry of kube-proxy (iptables). Something has flushed that chain, and kube-proxy has not written it again.",
    ]);
    // it may stand where the listing was cut
    expect(clientPath(place, node({ "iptables-save": { text: flushed, truncated: true } })).wrong).toEqual([]);
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
    const cut = { text: "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACC", truncated: true };
    expect(clientPath(both, node({ "iptables-save": iptables(), "ip6tables-save": cut, "ip6tables-legacy-save": "" })).wrong).toEqual([]);
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

  test("the way into a pod with security groups of its own is in the table of its interface", () => {
    const text = "default via 10.0.0.1 dev eth0\ndefault via 10.0.1.1 dev vlan.eth.1 table 101\n10.0.1.77 dev vlan0123456789a table 101 scope link\n";
    const { wrong, table } = serverPath([{ ...web1, address: "10.0.1.77" }], node({ "ip route show table all": text }));
    expect(wrong).toEqual([]);
    expect(table).toEqual(["node-c  10.0.1.77  dev vlan0123456789a"]);
    expect(whats(serverPath([{ ...web1, address: "10.0.1.78" }], node({ "ip route show table all": text })))).toHaveLength(1);
  });

  test("of a pod that has ended the route is gone; of one that is ending and still answers it is not", () => {
    const facts = node({ "ip route": ROUTES.replace(/10\.244.*\n/, ""), "ip link show": LINKS(UP) });
    expect(serverPath([{ ...web1, ready: false, terminating: true, serving: false }], facts).wrong).toEqual([]);
    expect(serverPath([{ ...web1, ready: false, terminating: true, serving: true }], facts).wrong).toHaveLength(1);
  });

  test("a pod in the node's own network (macvlan) need not answer its own node; one behind a bridge with that route must", () => {
    const text = (out: string) => `default via 10.0.0.1 dev ${out}\n10.0.0.0/24 dev ${out} proto kernel scope link src 10.0.0.7\n`;
    const pod = [{ ...web1, address: "10.0.0.150" }];
    const macvlan = serverPath(pod, node({ "ip route": text("eth0"), "ip -d link show": LINKS(UP), "ip neigh": "10.0.0.150 dev eth0 FAILED\n" }));
    expect(macvlan.wrong).toEqual([]);
    expect(macvlan.unchecked.join()).toContain("need not answer its own node");
    const bridge = "4: azure0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 state UP\n    bridge forward_delay 1500\n";
    const bridged = serverPath(pod, node({ "ip route": text("azure0"), "ip -d link show": bridge, "ip neigh": "10.0.0.150 dev azure0 FAILED\n" }));
    expect(whats(bridged)).toEqual(["node-c asked for 10.0.0.150 on azure0 and got no answer (FAILED)."]);
  });

  test("routes that were not collected are not missing", () => {
    const { wrong, unchecked } = serverPath([web1], node({}));
    expect(wrong).toEqual([]);
    expect(unchecked).toHaveLength(1);
  });
});
