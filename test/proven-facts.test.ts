import { describe, expect, test } from "vitest";
import { captureOf } from "../functions/facts/capture.ts";
import { type FactReading, readFacts } from "../functions/facts/read.ts";

/** What other facts prove of one that was read in part, or not at all. */
type Shown = readonly [command: string, text: string];

function reading(fact: string, ...shown: readonly Shown[]): FactReading {
  const outputs = shown.map(([command], i) => ({ command, file: `outputs/${i}.txt` }));
  const index = { schema: "netcheck.capture/1" as const, target: { name: "node1" }, outputs };
  const capture = captureOf(index, (file) => ({ text: shown[Number(/\d+/.exec(file)?.[0])]?.[1] ?? "", truncated: false }));
  return readFacts(capture).readings.get(fact) as FactReading;
}

const HEADER = "Module                  Size  Used by\n";
const MODULES = `${HEADER}nft_reject_inet        16384  5\nnf_tables             290816  84 nft_reject_inet\nnfnetlink              20480  2 nf_tables\n`;
const FIREWALLD =
  "table inet firewalld {\n\tchain filter_FORWARD {\n\t\ttype filter hook forward priority filter + 10; policy accept;\n\t\treject with icmpx admin-prohibited\n\t}\n}\n";
const FILTER =
  "table ip filter {\n\tchain FORWARD {\n\t\ttype filter hook forward priority filter; policy drop;\n\t\tcounter packets 5 bytes 300 jump DOCKER-USER\n\t}\n\n\tchain DOCKER-USER {\n\t\tcounter packets 5 bytes 300 return\n\t}\n}\n";
const FOREIGN = "table ip filter {\n\tchain input {\n\t\ttype filter hook input priority 0; policy drop;\n\t\tip saddr 192.0.2.1 drop\n\t}\n}\n";
const json = (table: string, chain: string, more = ""): string =>
  `{"nftables": [{"metainfo": {"version": "1.0.9", "json_schema_version": 1}}, {"table": {"family": "ip", "name": "${table}", "handle": 1}}, {"chain": {"family": "ip", "table": "${table}", "name": "${chain}", "handle": 1${more}}}]}`;

describe("iptables, of which nobody asked", () => {
  const iptables = (...shown: Shown[]) => {
    const { status, complete, value } = reading("iptables", ...shown);
    return { known: status === "read" && complete, rules: (value as { rows: unknown[] } | undefined)?.rows.length ?? 0 };
  };
  test.each<[string, string, number]>([
    ["firewalld alone", FIREWALLD, 0],
    ["nothing at all", "", 0],
    ["one table of iptables-nft", FIREWALLD + FILTER, 2],
    ["a table of that name that a person made", FOREIGN, 0],
  ])("is all known: %s", (_, ruleset, rules) => {
    expect(iptables(["nft list ruleset", ruleset], ["lsmod", MODULES])).toEqual({ known: true, rules });
  });

  test("is known from JSON where no table is one of iptables", () => {
    const firewall = json("mine", "input", ', "type": "filter", "hook": "input", "prio": 0, "policy": "accept"');
    expect(iptables(["nft -j list ruleset", firewall], ["lsmod", MODULES])).toEqual({ known: true, rules: 0 });
    const filter = json("filter", "FORWARD", ', "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"');
    expect(iptables(["nft -j list ruleset", filter], ["lsmod", MODULES]).known).toBe(false);
  });

  test.each<[string, Shown[]]>([
    ["legacy tables are loaded", [["lsmod", `${MODULES}iptable_filter         16384  0\nip_tables              32768  1 iptable_filter\n`]]],
    ["only some of the modules were seen", [["lsmod | head -4", MODULES]]],
    ["nftables may be part of the kernel's image, and so may ip_tables", [["lsmod", `${HEADER}nfnetlink              20480  2\n`]]],
    ["names alone do not tell what is part of the image", [["ls /sys/module", "nf_tables\nnfnetlink\n"]]],
    ["no modules were seen", []],
  ])("is not known: %s", (_, shown) => {
    expect(iptables(["nft list ruleset", FIREWALLD], ...shown).known).toBe(false);
  });

  test("is not known from a part of the ruleset, or a rule that could not be read", () => {
    expect(iptables(["nft list ruleset | grep -v docker", FIREWALLD], ["lsmod", MODULES]).known).toBe(false);
    expect(iptables(["nft list tables", "table inet firewalld\n"], ["lsmod", MODULES]).known).toBe(false);
    const broken = FILTER.replace("counter packets 5 bytes 300 return", "ip saddr { 192.0.2.1 drop");
    expect(iptables(["nft list ruleset", broken], ["lsmod", MODULES]).known).toBe(false);
  });
});

describe("local-dns", () => {
  const SAVE = "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n";
  const ps = (command: string): Shown => [
    "ps -ef",
    `UID          PID    PPID  C STIME TTY          TIME CMD\nroot         702       1  0 Nov02 ?        00:00:04 ${command}\n`,
  ];
  const local = (...shown: Shown[]) => reading("local-dns", ["iptables-save -c", SAVE], ...shown);
  test("needs no settings of a kubelet where none runs, or where it was started with the addresses", () => {
    expect(local(ps("/usr/sbin/nginx")).complete).toBe(true);
    expect(local(ps("/usr/bin/kubelet --cluster-dns=10.96.0.10 --v=2")).complete).toBe(true);
    expect(local(["cat /etc/resolv.conf", "nameserver 10.20.0.2\n"], ["cat /var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\n"]).complete).toBe(true);
  });
  test("is partial where a kubelet may have been told anything", () => {
    expect(local(ps("/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml")).complete).toBe(false);
    expect(local(ps("/usr/local/bin/k3s server")).complete).toBe(false);
    expect(local(["ps -ef | grep nginx", "root 702 1 0 Nov02 ? 00:00:04 /usr/sbin/nginx\n"]).complete).toBe(false);
    expect(local().complete).toBe(false);
    expect(reading("local-dns", ps("/usr/sbin/nginx")).complete).toBe(false);
  });
  test("has the addresses that a kubelet was started with, before those of its settings", () => {
    const told = local(ps("/usr/bin/kubelet --cluster-dns=169.254.20.10,10.96.0.10 --v=2"), [
      "cat /var/lib/kubelet/config.yaml",
      "kind: KubeletConfiguration\nclusterDNS:\n- 169.254.25.10\n",
    ]).value as { rows: { address: string; by: string; present: string }[] };
    expect(told.rows).toMatchObject([{ address: "169.254.20.10", by: "kubelet", present: "unknown" }]);
  });
});

describe("vtep", () => {
  const device = (n: number, name: string, id: number): string =>
    `${n}: ${name}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 qdisc noqueue state UNKNOWN mode DEFAULT group default\n    link/ether 5a:5d:19:d8:3b:0${n} brd ff:ff:ff:ff:ff:ff promiscuity 0\n    vxlan id ${id} local 10.20.0.11 dev eth0 srcport 0 0 dstport 8472 nolearning ttl auto ageing 300\n`;
  const node = (links: string): Shown[] => [
    ["ip -d link", links],
    ["ip addr", "2: eth0: <BROADCAST,UP,LOWER_UP> mtu 1500 state UP\n    inet 10.20.0.11/24 scope global eth0\n"],
    ["ip route show table all", "default via 10.20.0.1 dev eth0\n10.244.2.0/24 via 10.244.2.0 dev flannel.1 onlink\n"],
    ["ip neigh", "10.244.2.0 dev flannel.1 lladdr 5a:5d:19:d8:3b:27 PERMANENT\n"],
  ];
  const entries: Shown = ["bridge fdb show dev flannel.1", "5a:5d:19:d8:3b:27 dst 10.20.0.12 self permanent\n"];
  test("is all known with the entries of each of its devices", () => {
    expect(reading("vtep", ...node(device(3, "flannel.1", 1)), entries).complete).toBe(true);
    expect(reading("vtep", ...node(device(3, "flannel.1", 1))).complete).toBe(false);
    expect(reading("vtep", ...node(device(3, "flannel.1", 1) + device(4, "vxlan.calico", 4096)), entries).complete).toBe(false);
  });
  test("is not, where some of these entries were left out", () => {
    expect(reading("vtep", ...node(device(3, "flannel.1", 1)), ["bridge fdb show dev flannel.1 | head -1", entries[1]]).complete).toBe(false);
  });
  test("what flannel announced needs no tables where it announced nothing, else the entries of its device", () => {
    expect(reading("flannel-announcement", ...node(device(3, "flannel.1", 1)), entries).complete).toBe(true);
    const told: Shown = ["kubectl get node node1 -o yaml", `    flannel.alpha.coreos.com/backend-data: '{"VNI":1,"VtepMAC":"5a:5d:19:d8:3b:03"}'\n`];
    expect(reading("flannel-announcement", ...node(device(3, "flannel.1", 1)), entries, told).complete).toBe(true);
    expect(reading("flannel-announcement", ...node(device(3, "flannel.1", 1)), ["bridge fdb show dev flannel.1 | head -1", entries[1]], told).complete).toBe(
      false,
    );
  });
});

describe("a program that the shell did not find", () => {
  const tools = (...outputs: { command: string; exitCode: number; stderr?: string; text?: string }[]) => {
    const index = {
      schema: "netcheck.capture/1" as const,
      target: { name: "node1" },
      outputs: outputs.map(({ command, exitCode, stderr = "" }, i) => ({ command, file: `outputs/${i}.txt`, exitCode, stderr })),
    };
    const capture = captureOf(index, (file) => ({ text: outputs[Number(/\d+/.exec(file)?.[0])]?.text ?? "", truncated: false }));
    return (readFacts(capture).readings.get("tool")?.value as { missing: unknown[] } | undefined)?.missing ?? [];
  };
  const lost = { command: "timeout 5 nft -j list ruleset", exitCode: 127, stderr: "sh: nft: not found" };
  test("is not on the node", () => {
    expect(tools(lost)).toEqual([{ line: 1, name: "nft", output: 0 }]);
    expect(tools({ command: "command -v ip nft", exitCode: 1, text: "/usr/sbin/ip\n" }, lost)).toEqual([{ line: 1, name: "nft", output: 0 }]);
  });
  test("is there, if it was found another time, failed otherwise, or was missed in a pod", () => {
    expect(tools(lost, { command: "sudo nft list tables", exitCode: 0 })).toEqual([]);
    expect(tools(lost, { command: "which nft", exitCode: 0, text: "/usr/sbin/nft\n" })).toEqual([]);
    expect(tools({ ...lost, exitCode: 1, stderr: "Operation not permitted" })).toEqual([]);
    expect(tools({ ...lost, command: "kubectl exec web-0 -- nft list ruleset" })).toEqual([]);
  });
});
