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

  test("rules of two modes tell nothing of the mode", () => {
    const both = NAT.replace("COMMIT", "-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m tcp --dport 443 -j KUBE-SVC-NPX46M4PTMTKRN6Y\nCOMMIT");
    expect(modes(["iptables-save", both])).toEqual([]);
  });
});
