import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { Capture, Output } from "../../functions/facts/capture.ts";
import { pastedCaptures, readCaptures } from "../../functions/imports/index.ts";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";
import { type Files, folders, tarOf } from "./folders.ts";

/** What people already have: each bundle is made, in the layout of its tool, from the outputs of a node with a known fault, which must be found in it. */

const runbooks = fileURLToPath(new URL("../../runbooks/", import.meta.url));
const catalogue = loadCatalogue(runbooks, { tolerant: true });
const fixture = (rule: string, name: string) => readCaptureFiles(`${runbooks}rules/${rule}/fixtures/${name}`);
const s2 = await fixture("kube-forward-before-cilium", "capture-s2-fault");
const s3 = await fixture("stale-socket-lb-program", "capture-s3-fault");
const s4 = await fixture("bridge-netfilter-off", "capture-s4-fault");

const { scratch, directory, archive } = folders();
const tgz = (name: string, files: Files) => archive(name, files, gzipSync);

const causesOf = (capture: Capture | undefined) => diagnose(capture as Capture, catalogue, "x", () => 0).causes.map((cause) => cause.rule);
const textOf = (capture: Capture, command: string): string => (capture.outputs.find((output) => output.command === command) as Output).text;

/** Every quoted line stands where it says in the file as it is. */
function expectVerbatim(capture: Capture | undefined, files: Files): void {
  const evidence = diagnose(capture as Capture, catalogue, "x", () => 0).causes.flatMap((cause) => cause.evidence);
  expect(evidence.length).toBeGreaterThan(0);
  for (const { file, line, text } of evidence) {
    const lines = String(files[file] ?? files[file.split("!")[1] ?? ""]).split("\n");
    expect(lines.slice(line - 1).join("\n"), `${file}:${line}`).toContain(text.trim());
  }
}

describe("sosreport", () => {
  const mangled = (command: string): string => command.replaceAll(/[^\w./-]+/g, "_").replaceAll("/", ".");
  const files = Object.fromEntries(
    s4.outputs.filter(({ command }) => !command.startsWith("cat ")).map(({ command, text }) => [`sosreport-node4/sos_commands/any/${mangled(command)}`, text]),
  );
  const extra = { "sosreport-node4/hostname": "node4.example\n", "sosreport-node4/date": "Sat Nov 21 03:51:28 UTC 2026\n" };

  test("a directory", async () => {
    const [capture, ...others] = await readCaptures(directory({ ...files, ...extra, "sosreport-node4/version.txt": "sosreport: 4.8.0\n" }));
    expect(others).toEqual([]);
    expect(capture).toMatchObject({ target: "node4.example", transport: "sosreport", startedAt: "2026-11-21T03:51:28.000Z" });
    expect(causesOf(capture)[0]).toBe("bridge-netfilter-off");
    expectVerbatim(capture, { ...files, ...extra });
  });

  test("an archive, whose manifest tells the commands that file names cannot", async () => {
    const commands = [{ filepath: "sos_commands/kernel/sysctl_all", exec: "sysctl -a" }, { filepath: 7 }, null];
    const manifest = JSON.stringify({ components: { report: { plugins: { kernel: { commands }, other: {}, odd: 3 } } } });
    const named = { "sos/sos_commands/kernel/sysctl_all": "net.ipv4.ip_forward = 1\n", "sos/sos_reports/manifest.json": manifest };
    const [capture] = await readCaptures(await tgz("sosreport.tar.gz", named));
    expect(capture?.outputs.map(({ command, file }) => [command, file])).toEqual([["sysctl -a", "sos/sos_commands/kernel/sysctl_all"]]);
  });

  test("a slash is a dot in the names of Open vSwitch's answers and of listings, and a device's name keeps its number", async () => {
    const [capture] = await readCaptures(
      directory({
        "sos_commands/openvswitch/ovs-appctl_bond.show_bond1": "---- bond1 ----\nbond_mode: balance-slb\n",
        "sos_commands/openvswitch/ovs-appctl_-t_ovs-vswitchd_bond.list": "no such bond\n",
        "sos_commands/crio/ls_-alhZR_.etc.cni": "/etc/cni/net.d:\ntotal 0\n",
        "sos_commands/networking/ls_-la_.etc.cni.net.d": "total 0\n",
        "sos_commands/networking/ethtool_-k_flannel.1": "Features for flannel.1:\n",
        "sos_commands/networking/ethtool_-S_bond0": "NIC statistics:\n     rx_missed_errors: 4\n",
        "sos_commands/networking/ethtool_-S_bond0.5": "NIC statistics:\n     rx_missed_errors: 90210\n",
        "sos_commands/networking/tc_-s_filter_show_dev_bond0.5": "",
        "sos_commands/ebpf/bpftool_cgroup_tree_.sys.fs.cgroup": "CgroupPath\n",
        "sos_commands/kubernetes/tail_-n_12_.var.log.kube-proxy.log": "I0114 09:12:44.120931 1 proxier.go:884] x\n",
        "sos_commands/networking/ip_route.1": "default via 10.0.0.1 dev eth0\n",
      }),
    );
    expect(capture?.outputs.map(({ command }) => command)).toEqual([
      "ls -alhZR /etc/cni",
      "bpftool cgroup tree /sys/fs/cgroup",
      "tail -n 12 /var/log/kube-proxy.log",
      "ethtool -S bond0",
      "ethtool -S bond0.5",
      "ethtool -k flannel.1",
      "ip route",
      "ls -la /etc/cni/net.d",
      "tc -s filter show dev bond0.5",
      "ovs-appctl -t ovs-vswitchd bond/list",
      "ovs-appctl bond/show bond1",
    ]);
  });

  test("a manifest that is none is passed over", async () => {
    const [capture] = await readCaptures(
      directory({ "sos_commands/networking/ip_route": "default via 10.0.0.1 dev eth0\n", "sos_reports/manifest.json": "{" }),
    );
    expect(capture?.outputs.map(({ command }) => command)).toEqual(["ip route"]);
  });

  test("what a plugin sorts into folders, with a kubeconfig whose name has a `_`", async () => {
    const kubectl = "kubectl_--kubeconfig_.root.cdk.cdk_addons_kubectl_config";
    const [capture] = await readCaptures(
      directory({
        [`sos_commands/kubernetes/${kubectl}_get_nodes`]: "NAME STATUS ROLES AGE VERSION\nn1 Ready <none> 1d v1.29.3\n",
        [`sos_commands/kubernetes/pods/${kubectl}_--namespace_kube-system_logs_kube-proxy-x2k4d`]: "I0114 09:12:44.120931 1 proxier.go:884] x\n",
        "sos_commands/kubernetes/pods/kubectl_--kubeconfig_.etc.kubernetes.admin.conf_describe_pods": "Name: x\n",
        "sos_commands/kubernetes/a/b/c/ip_route": "default via 10.0.0.1 dev eth0\n",
      }),
    );
    expect(capture?.outputs.map(({ command }) => command).sort()).toEqual([
      "kubectl --namespace kube-system logs kube-proxy-x2k4d",
      "kubectl describe pods",
      "kubectl get nodes",
    ]);
  });

  test("a .tar.xz, as sos makes them", async () => {
    // made by `tar -cJf`: Node has no xz of its own
    const [capture] = await readCaptures(fileURLToPath(new URL("sosreport-node4.tar.xz", import.meta.url)));
    expect(capture).toMatchObject({ target: "node4", transport: "sosreport" });
    expect(causesOf(capture)[0]).toBe("bridge-netfilter-off");
  });
});

describe("EKS log collector", () => {
  const top = "eks_i-0123456789abcdef0_2026-11-21_0352-UTC_0.7.8";
  const files = {
    [`${top}/networking/iptables-save.txt`]: textOf(s4, "iptables-save"),
    [`${top}/networking/iptables-nat.txt`]: `${textOf(s4, "iptables -t nat -nvL")}=======\nTotal Number of Rules: 12\n`,
    [`${top}/networking/conntrack.txt`]: `*** Output of conntrack -S *** \n${textOf(s4, "conntrack -S")}*** Output of conntrack -L ***\n${textOf(s4, "conntrack -L")}`,
    [`${top}/networking/iproute.txt`]: textOf(s4, "ip route"),
    [`${top}/sysctls/sysctl_all.txt`]: `${textOf(s4, "sysctl net.bridge")}net.ipv4.ip_forward = 1\n`,
    [`${top}/networking/ifconfig.txt`]:
      "cni0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500\n        inet 10.244.1.1  netmask 255.255.255.0  broadcast 10.244.1.255\n",
    [`${top}/var_log/unrelated.log`]: "x\n",
  };

  test("the files are known by their names, the instance by the bundle's", async () => {
    const [capture] = await readCaptures(await tgz(`${top}.tar.gz`, files));
    expect(capture).toMatchObject({ target: "i-0123456789abcdef0", transport: "eks-log-collector" });
    const outputs = new Map(capture?.outputs.map((output) => [output.command, output]));
    expect([...outputs.keys()]).toEqual(expect.arrayContaining(["conntrack -S", "conntrack -L", "iptables-save", "sysctl -a", "ip route show table all"]));
    // two commands in one file: each keeps the lines that it printed, at their place
    expect(outputs.get("conntrack -L")?.text).toContain(textOf(s4, "conntrack -L"));
    expect(outputs.get("conntrack -L")?.text).not.toContain("searched=");
    expect(outputs.get("conntrack -S")?.text.trim()).toBe(textOf(s4, "conntrack -S").trim());
    expect(outputs.get("iptables --numeric --verbose --list --table nat")?.text).not.toContain("Total Number");
    const { unparsed, unknown } = diagnose(capture as Capture, catalogue, "x", () => 0);
    expect({ unparsed, unknown }).toEqual({ unparsed: [], unknown: [] });
  });
});

describe("cilium sysdump", () => {
  const page = (command: string, text: string) => [`cmd/${command.replaceAll("/", " ").replaceAll(" ", "-")}.md`, `# ${command}\n\n\`\`\`\n${text}\n\`\`\`\n`];
  const pages = Object.fromEntries([
    ...s3.outputs.map(({ command, text }) => page(command, text)),
    page("uname -a", "Linux node3 6.1.0-28-amd64 #1 SMP x86_64 GNU/Linux"),
    page("hostname", "node3"),
  ]) as Record<string, string>;

  test("each agent's bugtool is a node of its own, nested archives and folders alike", async () => {
    const other = Object.fromEntries([page("ip -4 r", "default via 10.0.0.1 dev eth0")]) as Record<string, string>;
    const path = directory({
      "cilium-sysdump-20261121/cilium-bugtool-cilium-abcde-20261121-035128.tar.gz": gzipSync(await tarOf(pages)),
      ...Object.fromEntries(Object.entries(other).map(([name, text]) => [`cilium-sysdump-20261121/bugtool-cilium-fghij/${name}`, text])),
      "cilium-sysdump-20261121/k8s-nodes.yaml": "items: []\n",
    });
    const captures = await readCaptures(path);
    expect(captures.map(({ target, outputs }) => [target, outputs.length > 3])).toEqual([
      ["cilium-fghij", false],
      ["node3", true],
    ]);
    expect(causesOf(captures[1])[0]).toBe("stale-socket-lb-program");
    expectVerbatim(captures[1], pages);
  });

  test("a bugtool archive alone", async () => {
    const [capture] = await readCaptures(await tgz("cilium-bugtool-20261121.tar.gz", pages));
    expect(capture).toMatchObject({ target: "node3", transport: "cilium-sysdump" });
    expect(causesOf(capture)[0]).toBe("stale-socket-lb-program");
  });

  test("the sysdump as the zip that it is", async () => {
    // made by `zip -r`
    const captures = await readCaptures(fileURLToPath(new URL("cilium-sysdump.zip", import.meta.url)));
    expect(captures.map(({ target }) => target)).toEqual(["node3"]);
    expect(causesOf(captures[0])[0]).toBe("stale-socket-lb-program");
  });
});

describe("pasted text", () => {
  const read = (text: string) => pastedCaptures(text, "paste.txt", "paste.txt")[0];
  const commands = (text: string) => read(text).outputs.map(({ command, text: printed }) => [command, printed.trim()]);

  test("a session with prompts, remarks, and shells in pods", () => {
    const text = `Hello, this node loses packets:

[root@node7 ~]# ip route
default via 10.5.0.1 dev mgnt
169.254.0.0/16 dev eth0 scope link metric 1002
[root@node7 ~]# ip netns exec pod1 bash
[root@node7 ~]# ip route
default via 10.244.0.1 dev eth0
[root@node7 ~]# exit
[root@node7 ~]# sysctl net.ipv4.ip_forward
net.ipv4.ip_forward = 1
[root@node7 ~]#
Thanks!
`;
    expect(read(text).target).toBe("node7");
    expect(commands(text)).toEqual([
      ["ip route", "default via 10.5.0.1 dev mgnt\n169.254.0.0/16 dev eth0 scope link metric 1002"],
      ["nsenter -t 0 -n ip route", "default via 10.244.0.1 dev eth0"],
      ["sysctl net.ipv4.ip_forward", "net.ipv4.ip_forward = 1"],
    ]);
    // the pod's default route is not the node's
    expect(diagnose(read(text), catalogue, "x", () => 0).unknown).toEqual(["nsenter -t 0 -n ip route"]);
  });

  test("a kubectl debug session", () => {
    const text = `$ kubectl debug node/ip-10-0-1-23.ec2.internal -it --image=busybox
Creating debugging pod node-debugger-ip-10-0-1-23.ec2.internal-x7k2p with container debugger on node ip-10-0-1-23.ec2.internal.
If you don't see a command prompt, try pressing enter.
/ # chroot /host
sh-4.4# iptables-save
${textOf(s4, "iptables-save").trim()}
sh-4.4# lsmod | grep br_netfilter
sh-4.4# cat /proc/sys/net/bridge/bridge-nf-call-iptables
0
sh-4.4# ip addr
${textOf(s4, "ip addr").trim()}
sh-4.4# ip -d link
${textOf(s4, "ip -d link").trim()}
sh-4.4# exit
`;
    const capture = read(text);
    expect(capture.target).toBe("ip-10-0-1-23.ec2.internal");
    expect(capture.outputs.map(({ command }) => command)).toEqual(expect.arrayContaining(["iptables-save", "ip addr", "ip -d link"]));
    expect(causesOf(capture)[0]).toBe("bridge-netfilter-off");
    expectVerbatim(capture, { "paste.txt": text });
  });

  test("an issue in Markdown, with and without commands", () => {
    const text = `### What happened
The pods cannot reach anything.

\`\`\`
${textOf(s2, "iptables-save -c").trim()}
\`\`\`

\`iptables -t filter -nvL FORWARD\`:
\`\`\`console
${textOf(s2, "iptables -t filter -nvL FORWARD").trim()}
\`\`\`
Any ideas?
`;
    expect(read(text).outputs.map(({ command }) => command)).toEqual(["iptables-save", "iptables -t filter -nvL FORWARD"]);
    expect(causesOf(read(text))[0]).toBe("kube-forward-before-cilium");
  });

  test.each([
    ["=== ip rule ===", "ip rule"],
    ["*** Output of conntrack -S ***", "conntrack -S"],
    ["## iptables-save -c", "iptables-save -c"],
    ['Output of "ip -4 neigh":', "ip -4 neigh"],
    ["+ ip route show table all", "ip route show table all"],
    ["$ sudo iptables -L -n -v", "sudo iptables -L -n -v"],
    ["user@host:/tmp$ ip route", "ip route"],
    ["node1:~ # ip route", "ip route"],
    ["/ # ip route", "ip route"],
    ["bash-5.1# ip route", "ip route"],
  ])("%s", (heading, command) => {
    expect(commands(`${heading}\nsome line\n`)).toEqual([[command, "some line"]]);
  });

  test.each([
    ["# Generated by iptables-save v1.8.9", "iptables-save"],
    ["default via 10.0.0.1 dev eth0 ", "ip route"],
    ["[12345.678901] nf_conntrack: table full, dropping packet", "dmesg"],
    ["net.ipv4.ip_forward = 0", "sysctl -a"],
    ["2: eth0: <BROADCAST,MULTICAST,UP> mtu 1500 qdisc", "ip addr"],
    ["10.0.0.7 dev eth0 lladdr 02:00:00:00:00:07 STALE", "ip neigh"],
    ["10.0.0.7 dev eth0 src 10.0.0.4 uid 0", "ip route get 10.0.0.7"],
    ["Netid State  Recv-Q Send-Q Local Address:Port", "ss -lntup"],
    ["LISTEN 0      4096   0.0.0.0:22   0.0.0.0:*", "ss -lntp"],
    ["CLOSE-WAIT 1      0   10.0.0.4:8080   10.0.0.9:41230", "ss -tnp"],
  ])("a text that names no command: %s", (line, command) => {
    expect(commands(`${line}\n`)).toEqual([[command, line.trim()]]);
  });

  test("the same command again is the second sample of its counters", () => {
    const text = "$ conntrack -S\ncpu=0 found=1 invalid=5\n$ conntrack -S\ncpu=0 found=1 invalid=9\n";
    expect(read(text).outputs.map(({ sample }) => sample)).toEqual([1, 2]);
    const waiting = "$ conntrack -S | grep 'cpu=0'\ncpu=0 insert_failed=3\n$ sleep 10; conntrack -S | grep cpu=0\ncpu=0 insert_failed=9\n";
    expect(read(waiting).outputs.map(({ sample }) => sample)).toEqual([1, 2]);
  });

  test("a search for rules that found none is no first sample", () => {
    const text =
      "$ iptables-save | grep 8905\n$ date\nMon Nov 23 09:30:12 UTC 2026\n$ iptables-save | grep 8905\n-A DOCKER ! -i docker0 -p tcp -m tcp --dport 8905 -j DNAT --to-destination 172.17.0.2:80\n";
    expect(read(text).outputs.map(({ command, sample }) => `${command} ${sample}`)).toEqual([
      "iptables-save | grep 8905 1",
      "date 1",
      "iptables-save | grep 8905 1",
    ]);
  });

  test("a search between two prompts found nothing; of several commands in a row nobody tells which printed nothing", () => {
    const found = "$ lsmod | grep br_netfilter\n$ ip rule\n0:\tfrom all lookup local\n";
    expect(read(found).outputs.map(({ command, text }) => [command, text.trim()])).toEqual([
      ["lsmod | grep br_netfilter", ""],
      ["ip rule", "0:\tfrom all lookup local"],
    ]);
    const named = "$ modprobe br_netfilter\n$ lsmod | grep br_netfilter\n$ iptables-save | grep KUBE\n$ ip rule\n0:\tfrom all lookup local\n";
    expect(read(named).outputs.map(({ command }) => command)).toEqual(["iptables-save | grep KUBE", "ip rule"]);
    expect(read("$ lsmod\n$ ip rule\n0:\tfrom all lookup local\n").outputs.map(({ command }) => command)).toEqual(["ip rule"]);
  });

  test("signs that name commands three times make every such line a heading, whatever stands between them", () => {
    const text = `===== ip rule =====
0:	from all lookup local
===== lsmod | grep -E "br_netfilter|vxlan" =====
vxlan 110592 0
===== Link settings =====
Speed: 25000Mb/s
===== ethtool eno1 =====
Link detected: yes
===== kubectl exec dns-0 -- ip route =====
default via 10.244.0.1 dev eth0
===== sysctl -a --pattern "net.ipv4.ip_forward" =====
net.ipv4.ip_forward = 1
===== cat /etc/debian_version =====
12.12
`;
    expect(commands(text)).toEqual([
      ["ip rule", "0:\tfrom all lookup local"],
      ['lsmod | grep -E "br_netfilter|vxlan"', "vxlan 110592 0"],
      ["kubectl exec dns-0 -- ip route", "default via 10.244.0.1 dev eth0"],
      ['sysctl -a --pattern "net.ipv4.ip_forward"', "net.ipv4.ip_forward = 1"],
    ]);
    // once is no habit where the text does not begin so: the line is part of what was printed
    expect(commands("as asked\n== ip rule ==\n0:\tfrom all lookup local\n== ethtool eno1 ==\nx\n")).toEqual([
      ["ip rule", "0:\tfrom all lookup local\n== ethtool eno1 ==\nx"],
    ]);
    expect(commands("== ip rule ==\n0:\tfrom all lookup local\n== Link settings ==\nx\n")).toEqual([["ip rule", "0:\tfrom all lookup local"]]);
  });

  test.each([
    ["lines of signs above and below", (command: string) => `--------\n${command}\n--------\n`],
    ["such a box with signs inside", (command: string) => `############\n# ${command}\n############\n`],
    ["a line of signs below", (command: string) => `\n${command}\n======\n`],
    ["brackets", (command: string) => `[${command}]\n`],
    ["numbers", (command: string) => `7. ${command}\n`],
    ["a folded section", (command: string) => `<details><summary><code>${command}</code></summary>\n\n\`\`\`\n`, "```\n</details>\n"],
    ["a word", (command: string) => `Command: ${command}\n`],
    ["words before it", (command: string) => `>>> Output of: ${command}\n`],
  ])("headings: %s", (_, heading, end = "") => {
    const outputs = [
      ["timedatectl", "System clock synchronized: no"],
      ["ip rule", "0:\tfrom all lookup local"],
      ["cat /etc/debian_version", "12.12"],
      ["sysctl net.ipv4.ip_forward", "net.ipv4.ip_forward = 1"],
    ] as const;
    const text = outputs.map(([command, printed]) => `${heading(command)}${printed}\n${end}`).join("");
    expect(commands(text)).toEqual(outputs.filter(([command]) => !command.startsWith("cat")));
  });

  test("outputs in JSON: a collector's own, by command, and what Ansible answers of each host", () => {
    const route = "default via 10.0.0.1 dev eth0 ";
    const rule = "0:\tfrom all lookup local\n";
    const expected = [
      ["ip route", route.trim()],
      ["ip rule", rule.trim()],
    ];
    const listed = JSON.stringify(
      {
        node: "n1",
        commands: [
          { command: "ip route", stdout: route, stderr: "", rc: 0 },
          { cmd: ["ip", "rule"], stdout_lines: [rule.trim()] },
          { cmd: "id", stdout: "x" },
        ],
      },
      null,
      1,
    );
    expect(commands(listed)).toEqual(expected);
    expect(read(listed).target).toBe("n1");
    expect(read(listed).outputs[0]).toMatchObject({ exitCode: 0, file: "paste.txt!ip route" });
    expect(commands(JSON.stringify({ "ip route": route, "ip rule": rule, version: "7" }))).toEqual(expected);
    const answer = (host: string, cmd: string, stdout: string) => `changed: [${host}] => ${JSON.stringify({ changed: true, cmd, rc: 0, stdout })}\n`;
    const play = `TASK [routes] ****\n${answer("n1", "ip route", route)}${answer("n2", "ip route", route)}\nTASK [rules] ****\n${answer("n1", "ip rule", rule)}`;
    expect(commands(play)).toEqual(expected);
    expect(pastedCaptures(play, "paste.txt", "paste.txt").map(({ target }) => target)).toEqual(["n1", "n2"]);
    // what a single command prints in JSON stays its own
    expect(commands(`$ ip -j rule\n${JSON.stringify([{ priority: 0, src: "all", table: "local" }])}\n`).map(([command]) => command)).toEqual(["ip -j rule"]);
  });

  test("steps to reproduce a fault are no headings", () => {
    const text = `How to reproduce:
1. sysctl -w net.ipv4.ip_forward=1
2. ip route show
3. iptables-save
4. conntrack -L

$ ip rule
0:	from all lookup local
`;
    expect(commands(text)).toEqual([["ip rule", "0:\tfrom all lookup local"]]);
  });

  test("a table's line of signs is no heading", () => {
    const table =
      "MS Name/IP address         Stratum Poll Reach LastRx Last sample\n===============================================================================\n^? 10.0.0.1                      0  10     0     -     +0ns[   +0ns] +/-    0ns";
    expect(commands(`$ chronyc sources\n${table}\n$ ip rule\n0:\tfrom all lookup local\n`)).toEqual([
      ["chronyc sources", table],
      ["ip rule", "0:\tfrom all lookup local"],
    ]);
  });

  test("what is printed flush right is no indented block", () => {
    const clock =
      "               Local time: Thu 2026-11-19 09:14:25 UTC\n                 RTC time: Thu 2026-11-19 09:14:25\nSystem clock synchronized: no\n              NTP service: active\n";
    expect(read(`$ timedatectl\n${clock}`).outputs[0]?.text).toContain(clock);
    expect(commands(clock)).toEqual([["timedatectl", clock.trim()]]);
  });

  test("comments and prose are no commands", () => {
    expect(commands("# iptables-save\n*filter\n# Completed on Sat Nov 21\n# this is a remark\nCOMMIT\n")).toEqual([
      ["iptables-save", "*filter\n# Completed on Sat Nov 21\n# this is a remark\nCOMMIT"],
    ]);
    expect(() => read("Hello: nothing works.\nip is bad\n")).toThrow(/paste\.txt: netcheck found no output of a command that it knows in it/);
    expect(() => read(" \n\n")).toThrow(/^paste\.txt: there is nothing in it$/);
  });
});

describe("a text of which only the beginning was read", () => {
  const text =
    "root@node7:~# ip rule\n0:\tfrom all lookup local\n32766:\tfrom all lookup main\nroot@node7:~# ip route\ndefault via 10.0.0.1 dev eth0\n10.0.0.0/24 dev eth0 scope link\n";
  const cuts = (captures: readonly Capture[]) => captures.flatMap(({ outputs }) => outputs.map(({ command, truncated }) => [command, truncated]));

  test("the output at its end lacks its end, and the others are whole", () => {
    expect(cuts(pastedCaptures(text, "a.txt", "a.txt"))).toEqual([
      ["ip rule", false],
      ["ip route", false],
    ]);
    expect(cuts(pastedCaptures(text, "a.txt", "a.txt", [], true))).toEqual([
      ["ip rule", false],
      ["ip route", true],
    ]);
  });

  test("of two machines: that of the last one", () => {
    const two = `${text}\nroot@node8:~# ip rule\n0:\tfrom all lookup local\nroot@node8:~# ip route\ndefault via 10.0.0.1 dev eth0\n`;
    expect(cuts(pastedCaptures(two, "a.txt", "a.txt", [], true)).map(([, truncated]) => truncated)).toEqual([false, false, false, true]);
  });
});

describe("what is not ours", () => {
  test("a folder of saved outputs is read by the files' names", async () => {
    const [capture] = await readCaptures(
      directory({ "iptables-save.txt": textOf(s2, "iptables-save -c"), "ip_route.log": "default via 10.0.0.1 dev eth0\n", "notes.txt": "x\n" }),
    );
    expect(capture?.outputs.map(({ command }) => command).sort()).toEqual(["ip route", "iptables-save"]);
    expect(causesOf(capture)[0]).toBe("kube-forward-before-cilium");
  });

  test("names of files may tell when they were written", async () => {
    const [capture] = await readCaptures(
      directory({
        "ip_route_show_20261119-0914.txt": "default via 10.0.0.1 dev eth0\n",
        "ls_-l__etc_cni_net.d_2026-11-19.txt": "total 4\n-rw-r--r-- 1 root root 292 Nov 12 19:00 10-flannel.conflist\n",
        "dmesg.2026-11-19T09:14:20Z.log": "[    1.000000] x\n",
        "journalctl -u kubelet --since 2026-11-19.txt": "Nov 19 09:14:00 n1 kubelet[1]: x\n",
      }),
    );
    expect(capture?.outputs.map(({ command }) => command).sort()).toEqual([
      "dmesg",
      "ip route show",
      "journalctl -u kubelet --since 2026-11-19",
      "ls -l /etc/cni/net.d",
    ]);
  });

  test("names of files hold what commands do: options with =, colons, commas, and paths of which the slashes are gone", async () => {
    const clock = "               Local time: Thu 2026-11-19 09:14:25 UTC\nSystem clock synchronized: no\n              NTP service: inactive\n";
    const [capture] = await readCaptures(
      directory({
        "timedatectl.txt": clock,
        "kubectl_-n_kube-system_logs_kube-proxy-6bqlx_--tail=10.txt": "E1119 09:14:12.517702       1 reflector.go:166] x\n",
        "proc_net_softnet_stat.txt": "00000001 00000000 00000000\n",
        "cat__proc_sys_net_ipv4_ip_forward.txt": "1\n",
        "etc-resolv.conf.txt": "nameserver 10.0.0.2\n",
      }),
    );
    expect(capture?.outputs.map(({ command }) => command)).toEqual([
      "cat /proc/sys/net/ipv4/ip_forward",
      "cat /etc/resolv.conf",
      "kubectl -n kube-system logs kube-proxy-6bqlx --tail=10",
      "cat /proc/net/softnet_stat",
      "timedatectl",
    ]);
    expect(capture?.outputs.at(-1)?.text).toBe(clock);
  });

  test("a file that is named after a command is its output, whatever its lines look like; what is a pod's or a neighbour's is not the node's", async () => {
    const nft = "table ip nat {\n\tchain PREROUTING {\n\t\ttype nat hook prerouting priority dstnat; policy accept;\n\t}\n}\n";
    const [capture] = await readCaptures(
      directory({
        "nft_list_ruleset.txt": nft,
        "ip_neigh.txt": "10.0.0.7 dev eth0 lladdr 02:00:00:00:00:07 STALE\n",
        "fabric_ip_neigh.txt": "10.0.0.4 dev eth1 lladdr 02:00:00:00:00:04 STALE\n",
        "pod_ip_route.txt": "default via 10.244.0.1 dev eth0\n",
        "saved.txt": "user@host:~$ ip rule\n0:\tfrom all lookup local\n",
      }),
    );
    expect(capture?.outputs.map(({ command, text }) => [command, text.trim()])).toEqual([
      ["ip neigh", "10.0.0.7 dev eth0 lladdr 02:00:00:00:00:07 STALE"],
      ["nft list ruleset", nft.trim()],
      ["ip rule", "0:\tfrom all lookup local"],
    ]);
  });

  test("INDEX.tsv names the commands, their namespaces, exit codes and what went to standard error", async () => {
    const [capture] = await readCaptures(
      directory({
        "INDEX.tsv": [
          "file\tnetns\trc\tseconds\tcommand",
          "a.txt\tnode\t0\t0.1\tm ip route",
          "b.txt\tnode\t1\t0.1\tlsmod",
          "c.txt\tpod\t0\t0.1\tip neigh",
          "d.txt\t-\t0\t0.1\t(tcpdump in the background)",
          "e.txt\tnode\t0\t0.1\tip rule",
          "../f.txt\tnode\t0\t0.1\tip addr",
          "",
        ].join("\n"),
        "a.txt": "default via 10.0.0.1 dev eth0\n",
        "b.txt": "",
        "b.stderr": "lsmod: ERROR\n",
        "c.txt": "10.0.0.1 dev eth0 FAILED\n",
        "d.txt": "x\n",
      }),
    );
    expect(capture?.transport).toBe("recording");
    expect(capture?.outputs.map(({ command, exitCode, stderr }) => [command, exitCode, stderr])).toEqual([
      ["ip route", 0, ""],
      ["lsmod", 1, "lsmod: ERROR\n"],
      ["ip netns exec pod ip neigh", 0, ""],
    ]);
  });

  test("an empty folder, a picture, a broken archive, nothing", async () => {
    await expect(readCaptures(directory({ "x.png": "PNG" }))).rejects.toThrow(/it is not a capture .* a sosreport/);
    const broken = join(scratch, "broken.tar.xz");
    writeFileSync(broken, "not xz");
    await expect(readCaptures(broken)).rejects.toThrow(/broken\.tar\.xz: could not unpack it/);
    writeFileSync(join(scratch, "broken.zip"), "not zip");
    await expect(readCaptures(join(scratch, "broken.zip"))).rejects.toThrow(/broken\.zip: could not unpack it/);
    await expect(readCaptures(join(scratch, "nowhere"))).rejects.toThrow(/could not read it: ENOENT/);
  });

  test("links are not followed out of a bundle", async () => {
    const root = directory({ "sos_commands/networking/ip_rule": "0:\tfrom all lookup local\n" });
    const secret = join(scratch, "secret.txt");
    writeFileSync(secret, "default via 10.66.66.66 dev eth0\n");
    symlinkSync(secret, join(root, "sos_commands/networking/ip_route"));
    symlinkSync(scratch, join(root, "sos_commands/more"));
    const [capture] = await readCaptures(root);
    expect(capture?.outputs.map(({ command }) => command)).toEqual(["ip rule"]);
  });
});
