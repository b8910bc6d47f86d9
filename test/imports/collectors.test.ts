import { fileURLToPath } from "node:url";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { type Capture, missingFiles, type Output } from "../../functions/facts/capture.ts";
import { readFacts } from "../../functions/facts/read.ts";
import { readCaptures } from "../../functions/imports/index.ts";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { CaptureError, readCaptureFiles } from "../../functions/transports/capture-files.ts";
import { folders, tarOf } from "./folders.ts";

/** Bundles of the collectors that name files and not commands, in the layout that their scripts have: a known fault must be found in each, and the node and time told. */

const runbooks = fileURLToPath(new URL("../../runbooks/", import.meta.url));
const catalogue = loadCatalogue(runbooks, { tolerant: true });
const s2 = await readCaptureFiles(`${runbooks}rules/kube-forward-before-cilium/fixtures/capture-s2-fault`);
const s4 = await readCaptureFiles(`${runbooks}rules/bridge-netfilter-off/fixtures/capture-s4-fault`);
const textOf = (capture: Capture, command: string): string => (capture.outputs.find((output) => output.command === command) as Output).text;

const { directory, archive } = folders();

const causesOf = (capture: Capture | undefined) => diagnose(capture as Capture, catalogue, "x", () => 0).causes.map(({ rule }) => rule);
const commandsOf = (capture: Capture | undefined) => capture?.outputs.map(({ command }) => command);

const save = textOf(s2, "iptables-save -c");
const bridge = `${textOf(s4, "sysctl net.bridge")}net.ipv4.ip_forward = 1\nnet.netfilter.nf_conntrack_count = 5\nnet.netfilter.nf_conntrack_max = 262144\n`;
const nowAndBefore = "[Sat Nov 21 03:50:01 2026] nf_conntrack: nf_conntrack: table full, dropping packet\n";

test("Rancher: names without an ending, the time of `date`; a log before the last start is left out", async () => {
  const top = "node5-2026-11-21_03_52_11";
  const [capture, ...others] = await readCaptures(
    await archive(
      `${top}.tar.gz`,
      {
        [`${top}/systeminfo/hostname`]: "node5\n",
        [`${top}/systeminfo/date`]: "Sat Nov 21 03:52:11 UTC 2026\n",
        [`${top}/systeminfo/dmesg`]: nowAndBefore,
        [`${top}/systeminfo/sysctla`]: bridge,
        [`${top}/networking/iptablessave`]: save,
        [`${top}/networking/ip6tablessave`]: "",
        [`${top}/networking/iptablesnat`]: textOf(s4, "iptables -t nat -nvL"),
        [`${top}/networking/ipaddrshow`]: textOf(s2, "ip addr"),
        [`${top}/networking/cni/10-canal.conflist`]: "{}",
        [`${top}/rke2/podlogs/kube-system-kube-proxy-node5`]: "I1121 03:51:00.000000 1 server.go:1] x\n",
        [`${top}/rke2/kubectl/nodesdescribe`]: "Name:               node5\nRoles:              <none>\n",
        [`${top}/rke2/podlogs/kube-system-kube-proxy-node5-previous`]: "E1120 03:51:00.000000 1 proxier.go:1] x\n",
      },
      gzipSync,
    ),
  );
  expect(others).toEqual([]);
  expect(capture).toMatchObject({ target: "node5", transport: "rancher-log-collector", startedAt: "2026-11-21T03:52:11.000Z" });
  expect(commandsOf(capture)?.sort()).toEqual([
    "cat /etc/cni/net.d/10-canal.conflist",
    "dmesg -T",
    "ip addr show",
    "ip6tables-save",
    "iptables --numeric --verbose --list --table nat",
    "iptables-save",
    "kubectl describe nodes",
    "kubectl logs --all-containers kube-proxy-node5",
    "sysctl -a",
  ]);
  // 130 seconds before
  expect(causesOf(capture).sort()).toEqual(["conntrack-table-full", "kube-forward-before-cilium"]);
});

test("AKS: JSON of ip, two outputs in one file, copies of the node's files; what a wrong command said is no output", async () => {
  const listing = `${textOf(s2, "conntrack -L")}cpu=0\tfound=1 invalid=5 insert=0 insert_failed=0 drop=0 early_drop=0 error=0 search_restart=0\n`;
  const [capture] = await readCaptures(
    directory({
      "collect/ip_4_addr.json": "[]",
      "collect/ip_6_addr.json": 'Error: either "dev" is duplicate, or "all" is a garbage.\n',
      "collect/conntrack.txt": listing,
      "collect/ss.txt": "Netid State Recv-Q Send-Q Local Address:Port Peer Address:Port\nTotal: 2\nTCP:   9 (estab 0, closed 9, orphaned 4, timewait 0)\n",
      "collect/iptables.txt": textOf(s2, "iptables -t filter -nvL FORWARD"),
      "collect/sysctl.txt": bridge,
      "collect/proc/net/softnet_stat": "00000001 00000000\n",
      "etc/hostname": "aks-pool1-000002\n",
      "var/log/syslog": "Nov 21 03:50:01 aks-pool1-000002 kernel: x\n",
    }),
  );
  expect(capture).toMatchObject({ target: "aks-pool1-000002", transport: "aks-log-collector" });
  const outputs = new Map(capture?.outputs.map((output) => [output.command, output.text]));
  expect([...outputs.keys()]).not.toContain("ip -6 -d -j addr show");
  expect([...outputs.keys()]).toEqual(expect.arrayContaining(["ip -4 -d -j addr show", "cat /proc/net/softnet_stat", "cat /var/log/syslog", "ss -s"]));
  expect(outputs.get("conntrack -L")).not.toContain("cpu=0");
  // at its place in the file
  expect(
    outputs
      .get("conntrack -S")
      ?.split("\n")
      .findIndex((line) => line.startsWith("cpu=0")),
  ).toBe(listing.split("\n").findIndex((line) => line.startsWith("cpu=0")));
});

test("Bottlerocket: logdog's archive, alone and within that of the EKS log collector; what has no clock is left out", async () => {
  const journal = `Nov 21 03:40:01 localhost systemd[1]: x
Nov 21 03:50:01 ip-10-31-0-4.ec2.internal kernel: nf_conntrack: nf_conntrack: table full, dropping packet
Nov 21 03:51:31 ip-10-31-0-4.ec2.internal kernel: nf_conntrack: nf_conntrack: table full, dropping packet
Nov 21 03:51:32 ip-10-31-0-4.ec2.internal kubelet[1311]: x
`;
  const logs = {
    "bottlerocket-logs/journalctl.log": journal,
    "bottlerocket-logs/dmesg": "[862421.123000] nf_conntrack: nf_conntrack: table full, dropping packet\n",
    "bottlerocket-logs/iptables-filter": textOf(s2, "iptables -t filter -nvL FORWARD"),
    "bottlerocket-logs/kube-status": "● kubelet.service - Kubelet\n     Loaded: loaded\n     Active: active (running)\n",
    "bottlerocket-logs/os-release": "NAME=Bottlerocket\nID=bottlerocket\n",
    "bottlerocket-logs/settings.json": "{}",
  };
  const commands = ["cat /etc/os-release", "iptables -nvL -t filter", "journalctl -a --no-pager", "systemctl status kube* -l --no-pager"];
  for (const path of [await archive("bottlerocket-logs.tar.gz", logs, gzipSync), directory(logs)]) {
    const [capture, ...others] = await readCaptures(path);
    expect(others).toEqual([]);
    expect([capture?.target, capture?.transport, capture?.startedAt, commandsOf(capture)?.sort()]).toEqual([
      "ip-10-31-0-4.ec2.internal",
      "bottlerocket",
      undefined,
      commands,
    ]);
  }
  const folder = ".bottlerocket/rootfs/tmp/ekslogs";
  const files = {
    [`${folder}/ipamd.log`]: '{"level":"info","ts":"2026-11-21T03:51:59.000Z","caller":"x.go:1","msg":"x"}\n',
    [`${folder}/bottlerocket-logs.tar.gz`]: gzipSync(await tarOf(logs)),
  };
  const [capture] = await readCaptures(await archive("eks_i-0123456789abcdef0_2026-11-21_0352-UTC_0.6.2.tar.gz", files, gzipSync));
  expect([capture?.target, capture?.startedAt, commandsOf(capture)?.sort()]).toEqual([
    "i-0123456789abcdef0",
    "2026-11-21T03:52:00Z",
    ["cat /etc/os-release", "cat /var/log/aws-routed-eni/ipamd.log", ...commands.slice(1)],
  ]);
  expect(causesOf(capture)).toContain("conntrack-table-full");
});

test("AKS Periscope: a zip's worth of one node, and a folder for each; the pod's own resolv.conf is no output of the node", async () => {
  const node = (folder: string) => ({
    [`${folder}iptables/iptables`]: "Chain PREROUTING (policy ACCEPT)\ntarget     prot opt source               destination\n",
    [`${folder}dns/virtualmachine`]: "nameserver 168.63.129.16\n",
    [`${folder}dns/kubernetes`]: "nameserver 10.0.0.10\n",
    [`${folder}systemlogs/kubelet`]: "Nov 21 03:50:01 aks-pool1-1-vmss000002 kubelet[812]: x\n",
    [`${folder}kubeobjects/kube-system_pod`]: "x\n",
  });
  const commands = ["cat /run/systemd/resolve/resolv.conf", "iptables -t nat -L", "journalctl -u kubelet"];
  const [one, ...none] = await readCaptures(await archive("aks-pool1-1-vmss000002.tar.gz", node(""), gzipSync));
  expect(none).toEqual([]);
  expect([one?.transport, commandsOf(one)?.sort()]).toEqual(["aks-periscope", commands]);
  const several = await readCaptures(
    directory({ ...node("2026-11-21T03-52-11Z/aks-pool1-1-vmss000002/"), ...node("2026-11-21T03-52-11Z/aks-pool1-1-vmss000003/collector/") }),
  );
  expect(several.map((capture) => [capture.target, commandsOf(capture)?.sort()])).toEqual([
    ["aks-pool1-1-vmss000002", commands],
    ["aks-pool1-1-vmss000003", commands],
  ]);
});

test("Troubleshoot: the command of each file stands beside it, of one machine and of every node; what was stopped is cut", async () => {
  const info = (command: string, exitCode = "0", error = "") => JSON.stringify({ command, exitCode, error, outputDir: "", input: "", env: ["HOME=/root"] });
  const [capture, ...others] = await readCaptures(
    await archive(
      "support-bundle-2026-11-21T03_52_11.tar.gz",
      {
        "b/host-collectors/run-host/save.txt": save,
        "b/host-collectors/run-host/save-info.json": info("/usr/sbin/iptables-save"),
        "b/host-collectors/run-host/ipvsadm.txt": "",
        "b/host-collectors/run-host/ipvsadm-info.json": info("/usr/bin/sh -c ipvsadm -l -n", "127", "sh: 1: ipvsadm: not found\n"),
        "b/host-collectors/run-host/sysctl-all.txt": bridge,
        "b/host-collectors/run-host/sysctl-all-info.json": info("sysctl -a", "0", "command timed out after 10s"),
        "b/host-collectors/run-host/odd.txt": "x\n",
        "b/host-collectors/run-host/odd-info.json": "[",
        "b/host-collectors/run-host/date.txt": "Sat Nov 21 03:52:11 UTC 2026\n",
        "b/host-collectors/run-host/date-info.json": info("/usr/bin/date"),
        "b/host-collectors/journald/kernel.txt": "Nov 21 03:50:01 n1 kernel: nf_conntrack: nf_conntrack: table full, dropping packet\n",
        "b/host-collectors/journald/kernel-info.json": info("/usr/bin/journalctl --dmesg --since 7 days ago --no-pager"),
        "b/host-collectors/system/hostos_info.json": '{"name": "n1", "kernelVersion": "6.8.0"}',
        "b/cluster-resources/pods/kube-system.json": '{"kind": "PodList", "items": []}',
        "b/cluster-resources/pods/logs/kube-system/kube-proxy-x/kube-proxy.log": "I1121 03:51:00.000000 1 server.go:1] x\n",
      },
      gzipSync,
    ),
  );
  expect(others).toEqual([]);
  expect(capture).toMatchObject({ target: "n1", transport: "troubleshoot", startedAt: "2026-11-21T03:52:11.000Z" });
  const outputs = new Map(capture?.outputs.map((output) => [output.command, output]));
  expect([...outputs.keys()].sort()).toEqual(
    ["ipvsadm -l -n", "iptables-save", "journalctl --dmesg --since 7 days ago --no-pager", "kubectl get pods -n kube-system -o json", "sysctl -a"].sort(),
  );
  expect(outputs.get("ipvsadm -l -n")).toMatchObject({ exitCode: 127, stderr: "sh: 1: ipvsadm: not found\n" });
  expect(outputs.get("sysctl -a")).toMatchObject({ exitCode: undefined, truncated: true });
  expect(causesOf(capture).sort()).toEqual(["conntrack-table-full", "kube-forward-before-cilium"]);

  const nodes = await readCaptures(
    directory({
      "host-collectors/n1/run-host/rule.txt": "0:\tfrom all lookup local\n",
      "host-collectors/n1/run-host/rule-info.json": info("/usr/sbin/ip rule"),
      "host-collectors/n2/run-host/rule.txt": "0:\tfrom all lookup local\n",
      "host-collectors/n2/run-host/rule-info.json": info("/usr/sbin/ip rule"),
      "host-collectors/system/node_list.json": '{"nodes": ["n1", "n2"]}',
    }),
  );
  expect(nodes.map((one) => [one.target, commandsOf(one)])).toEqual([
    ["n1", ["ip rule"]],
    ["n2", ["ip rule"]],
  ]);
});

test("Troubleshoot: the logs of the pods that run on the machine, as their list tells; of other nodes' pods none", async () => {
  const pod = (name: string, node: string) => ({ metadata: { name, namespace: "kube-system" }, spec: { nodeName: node } });
  const logs = "b/cluster-resources/pods/logs/kube-system";
  const [capture] = await readCaptures(
    directory({
      "b/host-collectors/run-host/resolv.txt": "nameserver 127.0.0.53\n",
      "b/host-collectors/run-host/resolv-info.json": JSON.stringify({ command: "/usr/bin/cat /etc/resolv.conf", exitCode: "0", error: "" }),
      "b/host-collectors/system/hostos_info.json": '{"name": "n1"}',
      "b/cluster-resources/pods/kube-system.json": JSON.stringify({ items: [pod("coredns-76f75df574-4wq7l", "n1"), pod("kube-proxy-7xk2p", "n2")] }),
      [`${logs}/coredns-76f75df574-4wq7l/coredns.log`]: ".:53\n[INFO] plugin/reload: Running configuration SHA512 = 59\n",
      [`${logs}/coredns-76f75df574-4wq7l/coredns-previous.log`]:
        '[FATAL] plugin/loop: Loop (127.0.0.1:44371 -> :53) detected for zone ".", see https://coredns.io/plugins/loop#troubleshooting. Query: "HINFO 5811.6022."\n',
      [`${logs}/kube-proxy-7xk2p/kube-proxy.log`]: "I1121 03:51:00.000000 1 server.go:1] x\n",
    }),
  );
  expect(commandsOf(capture)?.sort()).toEqual([
    "cat /etc/resolv.conf",
    "kubectl get pods -n kube-system -o json",
    "kubectl logs -n kube-system coredns-76f75df574-4wq7l -c coredns",
    "kubectl logs -n kube-system coredns-76f75df574-4wq7l -c coredns --previous",
  ]);
  expect(causesOf(capture)).toEqual(["resolv-conf-loop"]);
});

test("MicroK8s: an inspection report; the node's name is in its journal", async () => {
  const [capture, ...others] = await readCaptures(
    await archive(
      "inspection-report-20261121_035211.tar.gz",
      {
        "inspection-report/sys/snap-version": "snap    2.61\n",
        "inspection-report/sys/ps": "UID PID PPID C STIME TTY TIME CMD\n",
        "inspection-report/network/iptables": textOf(s4, "iptables -t nat -nvL"),
        "inspection-report/network/iptables-S":
          "-P INPUT ACCEPT\n-P FORWARD DROP\n-P OUTPUT ACCEPT\n-N DOCKER-USER\n-A FORWARD -j DOCKER-USER\n-A DOCKER-USER -j RETURN\n",
        "inspection-report/network/netstat": "Active Internet connections (only servers)\n",
        "inspection-report/snap.microk8s.daemon-kubelite/journal.log":
          "Nov 21 03:50:01 mk-1 microk8s.daemon-kubelite[1499]: I1121 03:50:01.000000 1499 server.go:1] x\n",
        "inspection-report/args/kubelet": "--cluster-domain=cluster.local\n",
      },
      gzipSync,
    ),
  );
  expect(others).toEqual([]);
  expect(capture).toMatchObject({ target: "mk-1", transport: "inspection-report" });
  expect(commandsOf(capture)).toEqual(
    expect.arrayContaining(["iptables -S", "iptables -t nat -L -n -v", "journalctl -n 100000 -u snap.microk8s.daemon-kubelite", "ps -ef"]),
  );
  expect(causesOf(capture)).toEqual(["forward-policy-drop"]);
});

test("Canonical Kubernetes: an inspection report; a program that is not there said nothing", async () => {
  const [capture] = await readCaptures(
    directory({
      "inspection-report/snap-list-k8s.log": "Name  Version  Rev\n",
      "inspection-report/iptables.log": save,
      "inspection-report/iptables-legacy.log": "inspect.sh: line 91: iptables-legacy-save: command not found\n",
      "inspection-report/ip-a.log": textOf(s2, "ip addr"),
      "inspection-report/k8s.kubelet/journal.log": "Nov 21 03:50:01 ck-1 k8s.kubelet[1499]: x\n",
    }),
  );
  expect(capture).toMatchObject({ target: "ck-1", transport: "inspection-report" });
  expect(commandsOf(capture)?.sort()).toEqual(["ip a", "iptables-save", "journalctl -n 100000 -u snap.k8s.kubelet"]);
  expect(causesOf(capture)).toEqual(["kube-forward-before-cilium"]);
});

test("kops, kind, Talos: a folder for each node; of a container's logs the last", async () => {
  const dump = {
    "iptables-filter.log": "-P FORWARD ACCEPT\n",
    "iptables-nat.log": "-P PREROUTING ACCEPT\n",
    sysctls: bridge,
    "kern.log": "",
    "kubelet.log": "x\n",
  };
  const inFolder = (folder: string, files: Record<string, string>) =>
    Object.fromEntries(Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text]));
  const kops = await readCaptures(
    directory({
      ...inFolder("i-0aa11bb22cc33dd44", dump),
      ...inFolder("i-0aa11bb22cc33dd45", dump),
      "cluster-info/kube-system/pods.json": "{}",
      "toolbox-dump.yaml": "x\n",
    }),
  );
  expect(kops.map(({ target, transport }) => [target, transport])).toEqual([
    ["i-0aa11bb22cc33dd44", "node-logs"],
    ["i-0aa11bb22cc33dd45", "node-logs"],
  ]);
  expect(commandsOf(kops[0])?.sort()).toEqual([
    "iptables -t filter --list-rules",
    "iptables -t nat --list-rules",
    "journalctl --no-pager -u kubelet.service",
    "journalctl --output=short-precise -k",
    "sysctl -a",
  ]);
  const locked =
    'E1121 03:50:01.000000       1 proxier.go:1] "Failed to execute iptables-restore" err="exit status 4: Another app is currently holding the xtables lock"';
  const kind = {
    "kubernetes-version.txt": "v1.31.0\n",
    "kubelet.log": "x\n",
    "pods/kube-system_kube-proxy-x2l5q_0f3c/kube-proxy/0.log": "2026-11-21T03:40:01.000000001Z stderr F I1121 03:40:01.000000 1 server.go:1] x\n",
    "pods/kube-system_kube-proxy-x2l5q_0f3c/kube-proxy/1.log": `2026-11-21T03:50:01.000000001Z stderr F ${locked}\n`,
  };
  const [first, second] = await readCaptures(
    directory({ ...inFolder("logs/kind-control-plane", { ...kind, "kubelet.log": "y\n" }), ...inFolder("logs/kind-worker", kind) }),
  );
  expect([first?.target, second?.target]).toEqual(["kind-control-plane", "kind-worker"]);
  expect(commandsOf(second)?.sort()).toEqual([
    "cat /var/log/pods/kube-system_kube-proxy-x2l5q_0f3c/kube-proxy/1.log",
    "journalctl --no-pager -u kubelet.service",
  ]);
  expect(causesOf(second)).toEqual(["xtables-lock-contention"]);
  const talos = {
    "dmesg.log":
      "kern:  notice: [2026-11-21T03:40:00.000000000Z]: Linux version 6.6.30-talos\nkern: warning: [2026-11-21T03:50:01.000000000Z]: nf_conntrack: nf_conntrack: table full, dropping packet\n",
    "controller-runtime.log": "x\n",
    "service-logs/kubelet.log": "{}\n",
  };
  const linkStatus = (id: string, flags: string): string =>
    `metadata:\n    namespace: network\n    type: LinkStatuses.net.talos.dev\n    id: ${id}\nspec:\n    flags: ${flags}\n    operationalState: down\n    linkState: false\n`;
  const flannelOff = `${linkStatus("cni0", "UP,BROADCAST,RUNNING,MULTICAST,LOWER_UP")}---\n${linkStatus("flannel.1", "BROADCAST,MULTICAST")}`;
  // the kubelet's own words, without the node in front that `talosctl logs` prints
  const unready = `{"ts":1763697001000.1,"caller":"kubelet/kubelet.go:3068","msg":"Container runtime network not ready","networkReady":"NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized","err":null}\n`;
  const machines = await readCaptures(
    directory({
      ...inFolder("cp-a", talos),
      ...inFolder("cp-b", { ...talos, "dmesg.log": "", "service-logs/kubelet.log": unready }),
      ...inFolder("cp-c", { ...talos, "dmesg.log": "", "talosResources/linkstatuses.net.talos.dev.yaml": flannelOff }),
      "cluster/nodes.yaml": "x\n",
    }),
  );
  expect(machines.map((one) => [one.target, commandsOf(one), causesOf(one)])).toEqual([
    ["cp-a", ["talosctl dmesg", "talosctl logs kubelet"], ["conntrack-table-full"]],
    ["cp-b", ["talosctl dmesg", "talosctl logs kubelet"], ["cni-config-missing"]],
    ["cp-c", ["talosctl dmesg", "talosctl logs kubelet", "talosctl get linkstatuses -o yaml"], ["overlay-interface-down"]],
  ]);
});

test("Antrea: a node's part of a support bundle; IPv6's rules are none of IPv4's", async () => {
  const [capture, ...others] = await readCaptures(
    await archive(
      "agent_wk-3.tar.gz",
      {
        agentinfo: 'typemeta: {}\nversion: v2.1.0\nnoderef:\n  kind: Node\n  namespace: ""\n  name: wk-3\n  uid: ""\n',
        link: textOf(s2, "ip -d link"),
        address: textOf(s2, "ip addr"),
        route: "default via 10.0.0.1 dev eth0 \n",
        rule: "0:\tfrom all lookup local\n",
        iptables: `${save}# Generated by ip6tables-save v1.8.7 on Sat Nov 21 03:52:00 2026\n*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n`,
        ovsports: "1(antrea-tun0): addr:ce:2f:1a:b5:0c:11\n",
        flows: "",
        "logs/agent/antrea-agent.log": "x\n",
      },
      gzipSync,
    ),
  );
  expect(others).toEqual([]);
  expect(capture).toMatchObject({ target: "wk-3", transport: "antrea-agent" });
  expect(commandsOf(capture)?.sort()).toEqual(["ip address", "ip link", "ip route show table all", "ip rule show", "ip6tables-save", "iptables-save"]);
  expect(capture?.outputs.find(({ command }) => command === "iptables-save")?.text).not.toContain("ip6tables");
  expect(causesOf(capture)).toContain("kube-forward-before-cilium");
});

describe("calicoctl", () => {
  test("node diags", async () => {
    const [capture] = await readCaptures(
      await archive(
        "diags-20261121_035200.tar.gz",
        {
          "diagnostics/date": "Sat Nov 21 03:52:00 UTC 2026\n",
          "diagnostics/hostname": "node6\n",
          "diagnostics/ipv4_tables": save,
          "diagnostics/ipv4_route": "default via 10.0.0.1 dev eth0\n",
        },
        gzipSync,
      ),
    );
    expect(capture).toMatchObject({ target: "node6", transport: "calico-diags", startedAt: "2026-11-21T03:52:00.000Z" });
    expect(causesOf(capture)).toEqual(["kube-forward-before-cilium"]);
  });

  test("cluster diags: each node is a capture of its own", async () => {
    const top = "calico-diagnostics-20261121_035200";
    const captures = await readCaptures(
      directory({
        [`${top}/nodes/worker-a/iptables-nft-save.txt`]: save,
        [`${top}/nodes/worker-a/ip-addr.txt`]: textOf(s2, "ip addr"),
        [`${top}/nodes/worker-b/ip-route.txt`]: "default via 10.0.0.1 dev eth0\n",
        [`${top}/cluster/kubernetes/nodes.txt`]: "NAME STATUS\n",
      }),
    );
    expect(captures.map(({ target }) => target)).toEqual(["worker-a", "worker-b"]);
    expect(captures.map(causesOf)).toEqual([["kube-forward-before-cilium"], []]);
  });
});

test("supportconfig: sections with their headers, other namespaces apart, missing programs, the time", async () => {
  const header = (kind: string, subject: string, text: string) => `#==[ ${kind} ]${"=".repeat(30)}#\n# ${subject}\n${text}\n\n`;
  const network = [
    "=====\n  Support Utilities - Supportconfig\n=====\n\n",
    header("Command", "/sbin/ip addr", textOf(s2, "ip addr")),
    header("Command", "/usr/sbin/iptables-save -t filter", save),
    header("Command", "ipvsadm -Ln", "ERROR: Command not found or not executable"),
    header("Configuration File", "/etc/resolv.conf", "nameserver 10.0.0.2"),
    header("Configuration File", "/etc/host.conf - File not found", ""),
  ].join("");
  const files = {
    "scc_node8_261121_0352/basic-environment.txt":
      header("Command", "/bin/date", "Sat Nov 21 03:52:00 UTC 2026") +
      header("Command", "/bin/uname -a", "Linux node8 6.4.0-150600.23-default #1 SMP x86_64 GNU/Linux"),
    "scc_node8_261121_0352/network.txt": network,
    "scc_node8_261121_0352/network-web.txt": header("Command", "/sbin/ip netns exec web /sbin/ip route", "default via 10.9.9.9 dev eth0"),
    "scc_node8_261121_0352/boot.txt": header("Command", "/bin/dmesg -T", nowAndBefore),
  };
  const [capture] = await readCaptures(directory(files));
  expect(capture).toMatchObject({ target: "node8", transport: "supportconfig", startedAt: "2026-11-21T03:52:00.000Z" });
  const outputs = new Map(capture?.outputs.map((output) => [output.command, output]));
  expect([...outputs.keys()]).toEqual(expect.arrayContaining(["ip addr", "iptables-save -t filter", "cat /etc/resolv.conf", "dmesg -T"]));
  expect([...outputs.keys()]).not.toContain("ip route");
  expect(outputs.get("ipvsadm -Ln")).toMatchObject({ exitCode: 127, text: "" });
  expect(outputs.get("cat /etc/resolv.conf")?.text.trim()).toBe("nameserver 10.0.0.2");
  const causes = diagnose(capture as Capture, catalogue, "x", () => 0).causes;
  expect(causes.map(({ rule }) => rule).sort()).toEqual(["conntrack-table-full", "kube-forward-before-cilium"]);
  for (const { file, line, text } of causes.flatMap(({ evidence }) => evidence)) {
    expect(
      files[file as keyof typeof files]
        .split("\n")
        .slice(line - 1)
        .join("\n"),
    ).toContain(text.trim());
  }
});

describe("cilium bugtool without the frame of Markdown, as it is by default", () => {
  const top = "cilium-bugtool-20261121-035200.312+0000-UTC-1234567";
  const page = (command: string) => `${top}/cmd/${command.replaceAll(/[/ ]/g, "-")}.md`;

  test("the names of the pages tell the commands", async () => {
    const commands = [
      "ip -4 route show table 254",
      "cilium-dbg status --verbose",
      "dmesg --time-format=iso",
      "bpftool map dump pinned /sys/fs/bpf/tc/globals/cilium_lb4_services_v2",
      "bpftool cgroup tree /run/cilium/cgroupv2",
      "cat /etc/resolv.conf",
      "iptables-nft-save -c",
      "ip6tables-legacy-save -c",
      "ss -t -p -a -i -s",
      "tc filter show dev lxc_health",
      "sysctl -a",
      "ip a",
    ];
    const [capture] = await readCaptures(directory(Object.fromEntries([...commands.map((command) => [page(command), "x\n"]), [page("hostname"), "node2\n"]])));
    expect(commandsOf(capture)?.sort()).toEqual(commands.sort());
    expect(capture).toMatchObject({ target: "node2", transport: "cilium-sysdump", startedAt: "2026-11-21T03:52:00Z" });
  });

  test("in a sysdump, the agent's log and its CNI files go with its pod", async () => {
    const log = 'time="2026-11-21T03:51:00Z" level=warning msg="x" subsys=daemon\n';
    const captures = await readCaptures(
      directory({
        "cilium-sysdump-1/cilium-bugtool-cilium-abcde-20261121-035200/cmd/ip-a.md": textOf(s2, "ip addr"),
        "cilium-sysdump-1/cilium-bugtool-cilium-fghij-20261121-035200/cmd/ip-a.md": textOf(s2, "ip addr"),
        "cilium-sysdump-1/logs-cilium-abcde-cilium-agent-20261121-035200.log": log,
        "cilium-sysdump-1/logs-cilium-abcde-cilium-agent-20261121-035200-prev.log": log,
        "cilium-sysdump-1/cniconf-cilium-fghij-05-cilium.conflist-20261121-035200.txt": "{}",
      }),
    );
    expect(captures.map(({ target, outputs }) => [target, outputs.map(({ command }) => command)])).toEqual([
      ["cilium-abcde", ["ip a", "kubectl logs cilium-abcde -c cilium-agent"]],
      ["cilium-fghij", ["ip a", "cat /etc/cni/net.d/05-cilium.conflist"]],
    ]);
  });

  test("in a sysdump, what the cluster knows goes with each node, and the table of pods names the node that nothing else does", async () => {
    const table = `NAMESPACE     NAME           READY   STATUS             RESTARTS        AGE   IP            NODE     NOMINATED NODE   READINESS GATES
kube-system   cilium-abcde   1/1     Running            2 (18h ago)     30d   10.31.0.4     node-a   <none>           <none>
kube-system   cilium-fghij   0/1     CrashLoopBackOff   214 (3m ago)    18h   10.31.0.5     node-b   <none>           <none>
kube-system   coredns-x      1/1     Running            0               18h   10.244.1.7    node-b   <none>           <none>
`;
    const captures = await readCaptures(
      directory({
        "cilium-sysdump-1/cilium-bugtool-cilium-abcde-20261121-035200/cmd/ip-a.md": textOf(s2, "ip addr"),
        "cilium-sysdump-1/cilium-bugtool-cilium-fghij-20261121-035200/cmd/ip-a.md": textOf(s2, "ip addr"),
        "cilium-sysdump-1/k8s-pods-20261121-035200.txt": table,
        "cilium-sysdump-1/k8s-pods-20261121-035200.yaml": "items: []\n",
        "cilium-sysdump-1/k8s-nodes-20261121-035200.yaml": "items: []\n",
      }),
    );
    expect(captures.map(({ target, outputs }) => [target, outputs.map(({ command }) => command)])).toEqual(
      ["node-a", "node-b"].map((node) => [node, ["ip a", "kubectl get nodes -o yaml", "kubectl get pods -A -o wide"]]),
    );
    const pods = readFacts(captures[1] as Capture).readings.get("cluster-pod")?.value as { rows: { name: string; own?: boolean }[] };
    expect(pods.rows.map(({ name, own }) => [name, own])).toEqual([
      ["cilium-abcde", false],
      ["cilium-fghij", true],
      ["coredns-x", true],
    ]);
  });

  test("a first line that begins with # is the output's own; a note of a failure is none of its lines", async () => {
    const [capture] = await readCaptures(
      directory({
        [page("iptables-save -c")]: save,
        [page("ip a")]: textOf(s2, "ip addr"),
        [page("ip6tables-save -c")]: "bash: line 1: ip6tables-save: command not found\n> Error while running 'ip6tables-save -c':  exit status 127\n\n",
      }),
    );
    expect(causesOf(capture)).toEqual(["kube-forward-before-cilium"]);
    expect(capture?.outputs.find(({ command }) => command === "ip6tables-save -c")).toMatchObject({ exitCode: 127 });
    expect(capture?.outputs.some(({ text }) => text.includes("Error while running"))).toBe(false);
  });
});

describe("EKS log collector", () => {
  const files = {
    "./networking/iptables-save.txt": textOf(s4, "iptables-save"),
    "./networking/ethtool.txt": "Interface lo\nno stats available\n\n\nInterface eth0\nNIC statistics:\n     conntrack_allowance_exceeded: 0\n\n\n",
    "./networking/ipvsadm.txt":
      "add:service/server \tprotocol \tvirtual-server\n-A -t ip-10-100-0-1.ec2.internal:https -s rr\nIP Virtual Server version 1.2.1 (size=4096)\nProt LocalAddress:Port CPS\n  -> RemoteAddress:Port\nTCP  10.100.0.1:443 0\n\nIP Virtual Server version 1.2.1 (size=4096)\nTCP  10.100.0.1:443 4\n",
    "./networking/ipset.txt": "Name: KUBE-CLUSTER-IP\nType: hash:ip,port\nMembers:\n\ncreate KUBE-CLUSTER-IP hash:ip,port family inet\n",
    "./sysctls/sysctl_all.txt": "net.netfilter.nf_conntrack_count = 5\nnet.netfilter.nf_conntrack_max = 262144\n",
    "./kernel/dmesg.current": "[862421.123000] nf_conntrack: nf_conntrack: table full, dropping packet\n",
    "./kernel/dmesg.human.current": nowAndBefore,
    "./system/instance-id.txt": "i-0123456789abcdef0\n",
  };

  test("the archive's name tells the time, and the statistics of each card are its own", async () => {
    const [capture] = await readCaptures(await archive("eks_i-0123456789abcdef0_2026-11-21_0352-UTC_0.7.8.tar.gz", files, gzipSync));
    expect(capture?.startedAt).toBe("2026-11-21T03:52:00Z");
    expect(commandsOf(capture)?.sort()).toEqual([
      "dmesg -T",
      "ethtool -S eth0",
      "ethtool -S lo",
      "ipset --list",
      "ipset --save",
      "iptables-save",
      "ipvsadm --list --numeric --rate",
      "sysctl -a",
    ]);
    expect(causesOf(capture)).toContain("conntrack-table-full");
  });

  test("unpacked, with no time told, an old message is no cause; the collector's last call of the API server tells one", async () => {
    expect(causesOf((await readCaptures(directory(files)))[0])).not.toContain("conntrack-table-full");
    const curled = "curling https://x (4 of 5) 2026-11-21T03:51:59.123UTC\n\n\nok\ncurling https://x (5 of 5) 2026-11-21T03:52:07.123UTC\n";
    const [capture] = await readCaptures(directory({ ...files, "./networking/curl_api_server.txt": curled }));
    expect(capture?.startedAt).toBe("2026-11-21T03:52:07Z");
  });
});

test("must-gather: of each node the kubelet's log and the offloads of its cards, and when it ended", async () => {
  const image = "must-gather.local.1/quay-io-openshift-sha256-0";
  const log = (host: string) =>
    gzipSync(`Nov 21 03:50:41.123456 ${host} kubelet[812]: E1121 03:50:41.123456     812 pod_workers.go:1298] "Error syncing pod, skipping"\n`);
  const captures = await readCaptures(
    directory({
      "must-gather.local.1/timestamp": "2026-11-21 03:44:11.123456789 +0000 UTC m=+0.217\n2026-11-21 04:52:07.5 +0100 CET m=+480.1\n",
      [`${image}/nodes/worker-0/worker-0_logs_kubelet.gz`]: log("worker-0"),
      [`${image}/nodes/worker-0/ethtool_features`]:
        "> ethtool -k ens3\nFeatures for ens3:\nrx-checksumming: on\n\n> ethtool -k ens4\nFeatures for ens4:\nrx-checksumming: off\n\n",
      [`${image}/nodes/worker-0/dmesg`]: nowAndBefore,
      [`${image}/nodes/worker-1/worker-1_logs_kubelet.gz`]: log("worker-1"),
      [`${image}/cluster-scoped-resources/core/nodes/worker-0.yaml`]: "kind: Node\n",
    }),
  );
  expect(captures.map((capture) => [capture.target, capture.startedAt, commandsOf(capture)])).toEqual([
    ["worker-0", "2026-11-21T03:52:07.000Z", ["ethtool -k ens3", "ethtool -k ens4", "journalctl -u kubelet"]],
    ["worker-1", "2026-11-21T03:52:07.000Z", ["journalctl -u kubelet"]],
  ]);
  const { readings } = readFacts(captures[0] as Capture);
  expect(readings.get("agent-log")?.value).toMatchObject({ rows: [{ unit: "kubelet", level: "error", age: expect.closeTo(86, 0) as number }] });
  expect(readings.get("ethtool-features")?.value).toMatchObject({
    rows: [
      { line: 3, interface: "ens3" },
      { line: 7, interface: "ens4" },
    ],
  });
});

test.each([
  ["cannot be unpacked nothing", Buffer.from("no gzip"), ""],
  ["was cut its beginning", gzipSync("x\n").subarray(0, 12), "x"],
])("must-gather: of a kubelet's log that %s was seen, which is told", async (_, log, text) => {
  const [capture] = await readCaptures(directory({ "must-gather.local.1/x/nodes/worker-0/worker-0_logs_kubelet.gz": log }));
  expect(capture?.outputs).toMatchObject([{ command: "journalctl -u kubelet", text, truncated: true }]);
});

test("kubectl cluster-info dump: the agents' logs, by the node that each ran on", async () => {
  const pods = { items: [{ metadata: { name: "kube-proxy-abcde" }, spec: { nodeName: "worker-a" } }, { metadata: {} }, null] };
  const log =
    "==== START logs for container kube-proxy of pod kube-system/kube-proxy-abcde ====\nI1121 03:51:00.000000 1 server.go:1] x\n==== END logs for container kube-proxy of pod kube-system/kube-proxy-abcde ====\n";
  const captures = await readCaptures(
    directory({
      "nodes.json": "{}",
      "kube-system/pods.json": JSON.stringify(pods),
      "kube-system/kube-proxy-abcde/logs.txt": log,
      // which node it ran on is not told
      "kube-system/kube-proxy-zzzzz/logs.txt": log,
      "default/pods.json": "{",
    }),
  );
  expect(captures.map(({ target, outputs }) => [target, outputs.map(({ command, text }) => [command, text.trim()])])).toEqual([
    ["worker-a", [["kubectl logs -n kube-system kube-proxy-abcde", "I1121 03:51:00.000000 1 server.go:1] x"]]],
  ]);
});

describe("archives", () => {
  const files = {
    "sos/sos_commands/networking/ip_route": "default via 10.0.0.1 dev eth0\n",
    "sos/hostname": "sos_commands/host/hostname",
    "sos/sos_commands/host/hostname": "node9\n",
  };

  test("zstd; a name without an end; a link that a zip holds as a text", async () => {
    for (const path of [
      await archive("sos.tar.zst", files, zstdCompressSync),
      await archive("download", files, gzipSync),
      await archive("download2", files, (tar) => tar),
    ]) {
      expect((await readCaptures(path))[0]).toMatchObject({ target: "node9", transport: "sosreport" });
    }
  });

  test("what cannot be read is told in plain words", async () => {
    await expect(readCaptures(await archive("x.tar.bz2", files, (tar) => tar))).rejects.toThrow(/compressed with bzip2.*unpack it first/);
    await expect(readCaptures(await archive("x.tgz", files, (tar) => gzipSync(tar).subarray(0, 150)))).rejects.toThrow(
      /it is damaged, or was cut when it was copied/,
    );
    await expect(readCaptures(await archive("x.tar.xz.gpg", files, () => Buffer.from("\x85\x02")))).rejects.toThrow(/it is encrypted.*decrypt it first/);
    await expect(readCaptures(directory({ "x/namespaces/openshift-sdn/pods/a.yaml": "{}" }))).rejects.toThrow(
      /must-gather of OpenShift.*A sosreport of the node does/,
    );
  });
});

describe("bundles of several nodes in one folder", () => {
  const route = (gateway: string) => `default via ${gateway} dev eth0\n`;

  test("each is a node of its own, of whatever kind; notes beside them are passed over", async () => {
    const captures = await readCaptures(
      directory({
        "case/eks_i-0123456789abcdef0_2026-11-21_0352-UTC_0.7.8/networking/iproute.txt": route("10.0.0.1"),
        "case/eks_i-0123456789abcdef0_2026-11-21_0352-UTC_0.7.8/sysctls/sysctl_all.txt": bridge,
        "case/eks_i-0fedcba9876543210_2026-11-21_0355-UTC_0.7.8/networking/iproute.txt": route("10.0.1.1"),
        "case/eks_i-0fedcba9876543210_2026-11-21_0355-UTC_0.7.8/sysctls/sysctl_all.txt": bridge,
        "case/sosreport-n3/sos_commands/networking/ip_route": route("10.0.2.1"),
        "case/sosreport-n3/sos_commands/host/hostname": "n3\n",
        "case/README.txt": "three nodes\n",
      }),
    );
    expect(captures.map(({ target, startedAt, outputs }) => [target, startedAt, outputs.length])).toEqual([
      ["i-0123456789abcdef0", "2026-11-21T03:52:00Z", 2],
      ["i-0fedcba9876543210", "2026-11-21T03:55:00Z", 2],
      ["n3", undefined, 1],
    ]);
  });

  test("names that begin with a slash", async () => {
    await expect(readCaptures(await archive("x.tgz", { "/etc/a": "x", "b/c": "x" }, gzipSync))).rejects.toThrow(/it is not a capture/);
  });

  const sos = (name: string, gateway: string) => ({
    [`sosreport-${name}/sos_commands/networking/ip_route`]: route(gateway),
    [`sosreport-${name}/sos_commands/host/hostname`]: `${name}\n`,
  });

  test("`sos collect`: the nodes' archives in an archive, and in a folder; one that is broken costs only itself, and is told", async () => {
    const [n1, n2] = [gzipSync(await tarOf(sos("n1", "10.0.0.1"))), gzipSync(await tarOf(sos("n2", "10.0.1.1")))];
    const files = {
      "sos-collector-case-2026/sosreport-n1-2026-11-21-abcdefg.tar.gz": n1,
      "sos-collector-case-2026/sosreport-n1-2026-11-21-abcdefg.tar.gz.sha256": "0\n",
      "sos-collector-case-2026/sosreport-n2-2026-11-21-hijklmn.tar.gz": n2,
      "sos-collector-case-2026/sos_logs/sos.log": "x\n",
      "sos-collector-case-2026/sos_reports/manifest.json": "{}",
    };
    const broken = { ...files, "sos-collector-case-2026/sosreport-n0-2026-11-21-opqrstu.tar.xz": "x" };
    for (const path of [await archive("sos-collector-case-2026.tar.gz", files, gzipSync), await archive("all.tgz", broken, gzipSync), directory(broken)]) {
      const captures = await readCaptures(path);
      expect(captures.map(({ target, outputs }) => [target, outputs.map(({ command }) => command)])).toEqual([
        ["n1", ["ip route"]],
        ["n2", ["ip route"]],
      ]);
      const told = captures.flatMap(missingFiles);
      if (path.endsWith("sos-collector-case-2026.tar.gz")) expect(told).toEqual([]);
      else expect(told).toEqual([expect.stringMatching(/^could not unpack it: it is damaged.{1,200}: sosreport-n0-2026-11-21-opqrstu\.tar\.xz was left out$/)]);
    }
  });

  test("an archive in an archive in an archive is not opened, and said to be none that can be read; what lies beside it is read", async () => {
    const inner = gzipSync(await tarOf(sos("n1", "10.0.0.1")));
    const packed = (more: Record<string, string>) => tarOf({ "case/sosreport-n1-2026.tar.gz": inner, ...more });
    const deep = await archive("all.tgz", { "x/sosreport-n0-2026.tar.gz": gzipSync(await packed({})) }, gzipSync);
    await expect(readCaptures(deep)).rejects.toThrow(CaptureError);
    await expect(readCaptures(deep)).rejects.toThrow(/sosreport-n0-2026\.tar\.gz: it is not a capture/);
    const beside = await archive("beside.tgz", { "x/sosreport-n2-2026.tar.gz": gzipSync(await packed(sos("n2", "10.0.1.1"))) }, gzipSync);
    expect((await readCaptures(beside)).map(({ target }) => target)).toEqual(["n2"]);
  });

  test("archives of which none can be read, and one that lies unpacked beside itself", async () => {
    await expect(readCaptures(directory({ "sos-collector/sosreport-n1-2026.tar.xz": "x", "sos-collector/sosreport-n2-2026.tar.xz": "x" }))).rejects.toThrow(
      /sosreport-n1-2026\.tar\.xz: could not unpack it: it is damaged/,
    );
    const beside = await readCaptures(
      directory({ ...sos("n1", "10.0.0.1"), "sosreport-n1.tar.xz": "x", "sosreport-n2.tar.gz": gzipSync(await tarOf(sos("n2", "10.0.1.1"))) }),
    );
    expect(beside.map(({ target }) => target)).toEqual(["n1", "n2"]);
  });
});
