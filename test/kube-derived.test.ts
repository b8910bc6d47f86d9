import { describe, expect, test } from "vitest";
import { captureOf } from "../functions/facts/capture.ts";
import { readFacts } from "../functions/facts/read.ts";

/** Command and what it printed; `cut` if the end is missing. */
type Shown = readonly [command: string, text: string, cut?: boolean];

function factOf<T>(fact: string, shown: readonly Shown[]): T {
  const outputs = shown.map(([command], i) => ({ command, file: `outputs/${i}.txt` }));
  const index = { schema: "netcheck.capture/1" as const, target: { name: "node1" }, outputs };
  const capture = captureOf(index, (file) => {
    const [, text, truncated = false] = shown[Number(/\d+/.exec(file)?.[0])] as Shown;
    return { text, truncated };
  });
  return readFacts(capture).readings.get(fact)?.value as T;
}

const UPLINK = "2: eth0: <BROADCAST,UP,LOWER_UP> mtu 1500 state UP\n    inet 10.20.0.11/24 scope global eth0\n";
const CACHE = "7: nodelocaldns: <BROADCAST,NOARP> mtu 1500 state DOWN\n    inet 169.254.20.10/32 scope global nodelocaldns\n";
const RULES = "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -d 169.254.20.10/32 -p udp -m udp --dport 53 -j NOTRACK\nCOMMIT\n";
const HEADER = "State  Recv-Q Send-Q Local Address:Port  Peer Address:Port Process\n";

describe("local-dns", () => {
  const row = (...shown: Shown[]) => factOf<{ rows: { present: string; listening: string }[] }>("local-dns", shown).rows[0];
  test.each([
    [
      "all is there",
      [
        ["ip addr", UPLINK + CACHE],
        ["ss -lunp", `${HEADER}UNCONN 0 0 169.254.20.10:53 0.0.0.0:*\n`],
      ],
      "yes",
      "yes",
    ],
    [
      "the interface is gone",
      [
        ["ip addr", UPLINK],
        ["ss -lunp", HEADER],
      ],
      "no",
      "no",
    ],
    ["the list of addresses was cut", [["ip addr", UPLINK, true]], "unknown", "unknown"],
    [
      "who listens on an address has it",
      [
        ["ip addr", UPLINK, true],
        ["ss -lunp", `${HEADER}UNCONN 0 0 169.254.20.10:53 0.0.0.0:*\n`],
      ],
      "yes",
      "yes",
    ],
    ["somebody listens everywhere", [["ss -lunp", `${HEADER}UNCONN 0 0 0.0.0.0:53 0.0.0.0:*\n`]], "unknown", "yes"],
    [
      "the listeners were cut",
      [
        ["ip addr", UPLINK + CACHE],
        ["ss -lunp", HEADER, true],
      ],
      "yes",
      "unknown",
    ],
  ] as const)("%s", (_, shown, present, listening) => expect(row(["iptables-save", RULES], ...shown)).toMatchObject({ present, listening }));
});

describe("pod-dns", () => {
  const KUBELET = "    PID COMMAND\n    712 /usr/bin/kubelet --config=/var/lib/kubelet/config.yaml\n";
  const CONFIG = "kind: KubeletConfiguration\n";
  const source = (...shown: Shown[]) => factOf<{ sources: { file: string; by: string }[] }>("pod-dns", shown).sources[0];
  test.each([
    ["the settings name a file", [["cat /var/lib/kubelet/config.yaml", `${CONFIG}resolvConf: /a\n`]], { file: "/a", by: "setting" }],
    [
      "arguments beat settings",
      [
        ["ps -e -o pid,args", `${KUBELET.trimEnd()} --resolv-conf=/b\n`],
        ["cat /var/lib/kubelet/config.yaml", `${CONFIG}resolvConf: /a\n`],
      ],
      { file: "/b", by: "argument" },
    ],
    [
      "nothing names a file",
      [
        ["ps -e -o pid,args", KUBELET],
        ["cat /var/lib/kubelet/config.yaml", CONFIG],
      ],
      { file: "/etc/resolv.conf", by: "default" },
    ],
    [
      "the settings were cut",
      [
        ["ps -e -o pid,args", KUBELET],
        ["cat /var/lib/kubelet/config.yaml", CONFIG, true],
      ],
      undefined,
    ],
    [
      "the settings are in another file",
      [
        ["ps -e -o pid,args", KUBELET.replace("/var/lib/kubelet/config.yaml", "/x.yaml")],
        ["cat /var/lib/kubelet/config.yaml", CONFIG],
      ],
      undefined,
    ],
  ] as const)("%s", (_, shown, expected) =>
    expected === undefined ? expect(source(...shown)).toBeUndefined() : expect(source(...shown)).toMatchObject(expected),
  );
});

describe("service-proxy", () => {
  const modes = (...shown: Shown[]) =>
    factOf<{ modes: { mode: string; source: string }[] }>("service-proxy", shown).modes.map(({ mode, source }) => `${source} ${mode}`);
  const NAT = "*nat\n:KUBE-SERVICES - [0:0]\n-A KUBE-SERVICES -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT\nCOMMIT\n";

  test("the running program is believed before its log, its settings and its rules", () => {
    const log = 'I1121 03:00:01.1 1 a.go:1] "Using iptables Proxier"\nI1121 03:10:01.1 1 a.go:1] "Using ipvs Proxier"\n';
    const all = modes(
      ["iptables-save", NAT],
      ["kubectl -n kube-system get cm kube-proxy -o yaml", 'mode: ""\n'],
      ["kubectl logs kube-proxy-x", log],
      ["curl localhost:10249/proxyMode", "nftables"],
    );
    expect(all).toEqual(["endpoint nftables", "log ipvs", "config iptables", "rules ipvs"]);
  });

  test("a line of a log of which nobody knows the age does not count against one that has it", () => {
    const former = 'I1001 03:00:01.1 1 a.go:1] "Using iptables proxy"\n';
    const now = 'I1121 03:10:01.1 1 a.go:1] "Using ipvs Proxier"\n';
    const told = modes(["date", "Sun Nov 22 09:14:07 UTC 2026\n"], ["kubectl logs kube-proxy-x", now], ["kubectl logs kube-proxy-x --previous", former]);
    expect(told).toEqual(["log ipvs"]);
  });

  test("who looked for kube-proxy among the processes and found none has none, whatever else runs", () => {
    const status = "KubeProxyReplacement:    True   [eth0  10.20.4.11 (Direct Routing)]\n";
    const found = (search: string) =>
      modes(
        ["cilium-dbg status", status],
        [`ps -ef | grep ${search}`, `root 2211 2190 1 Nov20 ? 00:31:10 cilium-agent\nroot 9012 9000 0 09:14 pts/0 00:00:00 grep ${search}\n`],
      );
    expect(found("-E 'kube-proxy|cilium'")).toEqual(["status cilium"]);
    expect(found("cilium")).toEqual([]);
  });

  test("an address that a neighbour announces beside its own proves nothing", () => {
    const addresses = "2: eth0    inet 10.20.4.11/24 scope global eth0\n7: kube-ipvs0    inet 10.20.4.200/32 scope global kube-ipvs0\n";
    const foreign = (neighbors: string) =>
      factOf<{ foreign: unknown[] }>("service-proxy", [
        ["ip -o -4 addr", addresses],
        ["ip neigh", neighbors],
      ]).foreign;
    const vip = "10.20.4.200 dev eth0 lladdr 52:54:00:aa:00:12 STALE\n";
    expect(foreign(vip)).toMatchObject([{ address: "10.20.4.200", by: "neighbor" }]);
    expect(foreign(`${vip}10.20.4.12 dev eth0 lladdr 52:54:00:aa:00:12 REACHABLE\n`)).toEqual([]);
  });

  test("rules of two modes tell nothing of the mode", () => {
    const both = NAT.replace("COMMIT", "-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m tcp --dport 443 -j KUBE-SVC-NPX46M4PTMTKRN6Y\nCOMMIT");
    expect(modes(["iptables-save", both])).toEqual([]);
  });
});

describe("host-port", () => {
  const ports = (...shown: Shown[]) => factOf<{ rows: Record<string, unknown>[]; unrouted: Record<string, unknown>[] }>("host-port", shown);

  test("portmap with nftables, also for one address of the host and for IPv6", () => {
    const table = (family: string, rule: string) => `table ${family} cni_hostport {\n\tchain hostports {\n\t\t${rule}\n\t}\n}\n`;
    const { rows } = ports([
      "nft list ruleset",
      table("ip", 'tcp dport 8443 dnat to 10.244.3.61:443 comment "cba06b57"') + table("ip6", 'udp dport 53 dnat to [fd00::9]:5353 comment "cba06b57"'),
    ]);
    expect(rows).toMatchObject([
      { family: "ipv4", place: "cni_hostport", protocol: "tcp", port: 8443, address: "10.244.3.61", to: "10.244.3.61:443", position: 1 },
      { family: "ipv6", protocol: "udp", port: 53, address: "fd00::9" },
    ]);
    const own = table("ip", "ip daddr 10.20.4.11 tcp dport 80 dnat to 10.244.3.7:80").replace("hostports", "hostip_hostports");
    expect(ports(["nft list ruleset", own]).rows).toMatchObject([{ hostAddress: "10.20.4.11", port: 80 }]);
  });

  test("CRI-O has the port in the jump", () => {
    const rules = [
      "*nat",
      '-A KUBE-HOSTPORTS -p tcp -m comment --comment "web_shop hostport 8443" -m tcp --dport 8443 -j KUBE-HP-IJHALPHTORMHHPPK',
      '-A KUBE-HP-IJHALPHTORMHHPPK -p tcp -m comment --comment "web_shop hostport 8443" -m tcp -j DNAT --to-destination 10.85.0.9:443',
      "COMMIT\n",
    ];
    expect(ports(["iptables-save", rules.join("\n")]).rows).toMatchObject([
      { place: "KUBE-HP-IJHALPHTORMHHPPK", port: 8443, address: "10.85.0.9", position: 1 },
    ]);
  });

  test("a pod of Calico without a route is gone, if all routes were seen and others of the range have one", () => {
    const nat = "*nat\n-A CNI-DN-1 -p tcp -m tcp --dport 443 -j DNAT --to-destination 10.42.9.43:8443\nCOMMIT\n";
    const routes = "default via 10.20.4.1 dev eth0\nblackhole 10.42.9.0/26 proto 80\n10.42.9.5 dev cali1 scope link\n";
    const unrouted = (text: string, cut = false) => ports(["iptables-save", nat], ["ip route", text, cut]).unrouted;
    expect(unrouted(routes)).toMatchObject([{ address: "10.42.9.43", prefix: "10.42.9.0/26" }]);
    expect(unrouted(routes, true)).toEqual([]);
    expect(unrouted(`${routes}10.42.9.43 dev cali2 scope link\n`)).toEqual([]);
    expect(unrouted(routes.replace("10.42.9.5 dev cali1 scope link\n", ""))).toEqual([]);
  });
});
