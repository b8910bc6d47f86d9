import { describe, expect, test } from "vitest";
import { blocksOf } from "../../functions/imports/code-blocks.ts";
import { pastedCaptures } from "../../functions/imports/index.ts";
import { machinesLikePods, ofLabel, ofPrompt, ofRemote } from "../../functions/imports/machines.ts";
import { pairedLabels } from "../../functions/imports/paired-labels.ts";
import { readTranscript } from "../../functions/imports/transcript.ts";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { expectLinear } from "../cpu-time.ts";
import { catalogueOf } from "../triage/runbooks.ts";

const catalogue = catalogueOf(undefined, ["conntrack-insert-failed", "unreplied-service-connection"]);
const read = (lines: readonly string[]) => pastedCaptures(lines.join("\n"), "paste.txt", "the paste");
const commandsOf = (lines: readonly string[]) => read(lines).map(({ target, outputs }) => [target, ...outputs.map(({ command }) => command)]);

const ROUTES = ["default via 10.9.0.1 dev ens5", "10.9.0.0/24 dev ens5 proto kernel scope link src 10.9.0.17"];
const NEIGHBOURS = ["10.9.0.1 dev ens5 lladdr 0a:1b:2c:3d:4e:5f REACHABLE"];
/** Lost races for conntrack entries since the node booted, which is no fault. */
const lost = (count: number) => `cpu=0 found=10 invalid=7 insert=0 insert_failed=${count} drop=${count} early_drop=0 error=0 search_restart=0`;

describe("the same command on two machines", () => {
  test("is not asked twice of one: what differs between two nodes has not grown", () => {
    const [good, bad, ...more] = read(["root@good1:~# conntrack -S", lost(5), "root@bad2:~# conntrack -S", lost(8000)]);
    expect(more).toEqual([]);
    expect([good.target, bad?.target]).toEqual(["good1", "bad2"]);
    for (const capture of [good, bad]) expect(diagnose(capture as never, catalogue, "x", () => 0).causes).toEqual([]);
    // of one node it has
    const [twice] = read(["root@bad2:~# conntrack -S", lost(5), "root@bad2:~# conntrack -S", lost(8000)]);
    expect(diagnose(twice, catalogue, "x", () => 0).causes.map(({ rule }) => rule)).toEqual(["conntrack-insert-failed"]);
  });

  test("is not what asks something else about the same device: each explains the other", () => {
    const device = ["6: flannel.1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450", "    link/ether d6:02:71:df:ea:3c brd ff:ff:ff:ff:ff:ff"];
    const entry = ["10.244.1.0 lladdr 5e:89:b0:49:1c:a4 PERMANENT"];
    expect(commandsOf(["root@n2:~# ip addr show flannel.1", ...device, "root@n1:~# ip neigh show dev flannel.1", ...entry])).toEqual([
      ["n2", "ip addr show flannel.1", "ip neigh show dev flannel.1"],
    ]);
  });

  const own = ["6: flannel.1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450", "    link/ether d6:02:71:df:ea:3c brd ff:ff:ff:ff:ff:ff"];
  const known = ["10.244.1.0 lladdr d6:02:71:df:ea:3c PERMANENT"];
  test.each([
    ["root@n2:~# ip link show flannel.1", "root@n1:~# ip neigh show dev flannel.1", []],
    ["# ip link show flannel.1", "# ssh n1 ip neigh show dev flannel.1", []],
    ["root@n2:~# ip link show flannel.1", "root@n2:~# ip neigh show dev flannel.1", ["duplicate-vtep-mac"]],
  ])("what one knows of the other's device is no second device with that address: %s, %s", (first, second, causes) => {
    const [capture] = pastedCaptures([first, ...own, second, ...known, ""].join("\n"), "paste.txt", "x");
    expect(diagnose(capture, catalogueOf(undefined, ["duplicate-vtep-mac", "vtep-mac-mismatch"]), "x", () => 0).causes.map(({ rule }) => rule)).toEqual(causes);
  });

  test("is of a firewall: the devices of the other one pass nothing through it", () => {
    const policy = (target: string): string[] => [`-P FORWARD ${target}`];
    const device = ["cni0             UP             46:0a:9e:51:77:b2 <BROADCAST,MULTICAST,UP,LOWER_UP>"];
    expect(
      commandsOf([
        "root@fw:~# iptables -S FORWARD",
        ...policy("DROP"),
        "root@w1:~# iptables -S FORWARD",
        ...policy("ACCEPT"),
        "root@w1:~# ip -br link",
        ...device,
      ]),
    ).toEqual([
      ["fw", "iptables -S FORWARD"],
      ["w1", "iptables -S FORWARD", "ip -br link"],
    ]);
  });

  test("whose names somebody masked", () => {
    expect(commandsOf(["user@k8s-***-0:~$ ip route", ...ROUTES, "user@k8s-***-1:~$ ip route", ...ROUTES]).map(([name]) => name)).toEqual([
      "k8s-***-0",
      "k8s-***-1",
    ]);
  });

  test("told by labels above the blocks", () => {
    expect(commandsOf(["On the working node:", "```", ...ROUTES, "```", "**Bad node**", "```", ...ROUTES, "```"])).toEqual([
      ["pasted", "ip route"],
      ["bad-node", "ip route"],
    ]);
  });

  test("told by a host's name above the blocks, and not by what only looks like one", () => {
    const blocks = (...labels: string[]) => labels.flatMap((label) => [label, "", "```", "# ip route", ...ROUTES, "```", ""]);
    expect(commandsOf(blocks("On k8s-w1:", "### k8s-w2")).map(([name]) => name)).toEqual(["pasted", "k8s-w2"]);
    expect(commandsOf(blocks("On 10.0.3.17:", "On 10.0.3.18:")).map(([name]) => name)).toEqual(["pasted", "10.0.3.18"]);
    expect(commandsOf(blocks("### sample-1", "### sample-2"))).toEqual([["pasted", "ip route", "ip route"]]);
    expect(commandsOf(blocks("### cilium-1-14", "### kube-proxy-2"))).toEqual([["pasted", "ip route", "ip route"]]);
  });

  test.each([
    ["alone", "alpha", "beta"],
    ["framed", "--- gw1 ---", "--- gw2 ---"],
    ["bold", "**db**", "**web**"],
    ["with a colon", "Good:", "Bad:"],
    ["without a colon", "node A", "node B"],
    ["in brackets", "[n1]", "[n2]"],
  ])("told by names above the prompts, %s, because the same is asked below each", (_, one, other) => {
    const lines = [one, "$ ip route", ...ROUTES, "", other, "$ ip route", ...ROUTES];
    const second = other
      .replaceAll(/[^A-Za-z0-9 ]/g, "")
      .trim()
      .replace(" ", "-")
      .toLowerCase();
    const found = [
      ["pasted", "ip route"],
      [second, "ip route"],
    ];
    expect(commandsOf(lines)).toEqual(found);
    expect(commandsOf(["What we see:", "```", ...lines, "```"])).toEqual(found);
  });

  test.each([
    ["a word that is the end of an output", ["$ systemctl is-active kubelet", "active", "$ ip route", ...ROUTES, "$ uname", "Linux", "$ ip route", ...ROUTES]],
    ["two moments", ["before:", "$ ip route", ...ROUTES, "", "after:", "$ ip route", ...ROUTES]],
    ["two looks", ["[1]", "$ ip route", ...ROUTES, "", "[2]", "$ ip route", ...ROUTES]],
    ["once more", ["first:", "$ ip route", ...ROUTES, "", "second:", "$ ip route", ...ROUTES]],
  ])("and not by %s", (_, lines) => {
    expect(commandsOf(lines).map((one) => one.filter((word) => word === "pasted" || word === "ip route"))).toEqual([["pasted", "ip route", "ip route"]]);
  });

  test.each([
    ["Here is what the first node has:", "And here the second node:", "second-node"],
    ["On the node where it works I see:", "On the node where it does not work, I see the following:", "where-it-does-not-work"],
    ["First the node that runs the client pod:", "Now the node that runs the server pod:", "that-runs-the-server-pod"],
    ["The control plane shows", "The worker shows", "worker"],
    ["Let us look at rack-a-1 first", "Then on rack-a-2:", "rack-a-2"],
    ["Site A", "Site B", "site-b"],
    ["## On the gateway", "## On the client", "client"],
    ["节点1：", "节点2：", "节点2"],
    ["在node1上执行", "在node2上执行", "node2"],
  ])("told by words that tell the two apart: %s … %s", (one, other, name) => {
    const lines = [one, "", "```", "$ ip route", ...ROUTES, "```", "", other, "", "```", "$ ip route", ...ROUTES, "```"];
    expect(commandsOf(lines)).toEqual([
      ["pasted", "ip route"],
      [name, "ip route"],
    ]);
  });

  test.each([
    ["`ip route` on node1:", "`ip route` on node2:", "node2"],
    ["Output of `ip route` on the working node", "And `ip route` from the broken node:", "broken-node"],
    ["Master `ip route`:", "Worker `ip route`:", "worker"],
    ["### ip route (node 1)", "### ip route (node 2)", "node-2"],
    ["<summary>ip route (master)</summary>", "<summary>ip route (worker)</summary>", "worker"],
    ["2.1 Master node: ip route", "2.2 Worker node: ip route", "worker-node"],
  ])("told by the words that announce an output: %s … %s", (one, other, name) => {
    expect(commandsOf([one, "```", ...ROUTES, "```", other, "```", ...ROUTES, "```"]).map(([machine]) => machine)).toEqual(["pasted", name]);
  });

  test.each([
    ["$ ssh core@10.0.3.17", "$ ssh core@10.0.3.18", "10.0.3.18"],
    ["$ vagrant ssh n1", "$ exit\n$ vagrant ssh n2", "n2"],
    ["$ docker exec -it kind-worker bash", "# exit\n$ docker exec -it kind-worker2 bash", "kind-worker2"],
    ["$ kubectl debug node/w-1 -it --image=busybox", "$ exit\n$ kubectl debug node/w-2 -it --image=busybox", "w-2"],
  ])("told by the shell that was opened there: %s … %s", (one, other, name) => {
    const found = commandsOf([one, "$ ip route", ...ROUTES, ...other.split("\n"), "$ ip route", ...ROUTES]);
    expect(found.map(([machine]) => machine)).toEqual([one.includes("debug") ? "w-1" : "pasted", name]);
  });

  test.each([
    ["<details><summary>node1</summary>", "<details><summary>node2</summary>"],
    ["<p>master</p>", "<p>worker</p>"],
  ])("told by what can be unfolded: %s … %s", (one, other) => {
    const below = (label: string): string[] => [label, "", "```", "$ ip route", ...ROUTES, "```", "</details>", ""];
    expect(commandsOf([...below(one), ...below(other)])).toHaveLength(2);
  });

  test.each([
    ["what the first node has", "what the first node has after the restart"],
    ["On the server before the reboot:", "On the client, rebooted:"],
  ])("and not by words about one machine at two times: %s … %s", (one, other) => {
    const lines = [one, "", "```", "$ ip route", ...ROUTES, "```", "", other, "", "```", "$ ip route", ...ROUTES, "```"];
    expect(commandsOf(lines).map((found) => found.length)).toEqual([3]);
  });

  test("what a pod on a node shows is not the node's", () => {
    const lines = (where: string): string[] => [`${where}:`, "", "```", "$ ip route", ...ROUTES, "```", ""];
    const paste = [...lines("On the node"), ...lines("In the client pod on node1"), ...lines("In the server pod on node2")];
    expect(commandsOf(paste)).toEqual([["pasted", "ip route", "nsenter -t 0 -n ip route", "nsenter -t 0 -n ip route"]]);
  });

  test("told by `hostname`, where no prompt does", () => {
    const on = (host: string) => ["$ hostname", host, "$ ip route", ...ROUTES];
    expect(commandsOf([...on("n1.dc1.example"), ...on("n2.dc1.example")]).map(([name]) => name)).toEqual(["pasted", "n2"]);
    expect(commandsOf([...on("n1"), ...on("n1")])).toHaveLength(1);
    expect(commandsOf(["root@n1:~# hostname", "n1.dc1.example", "root@n1:~# ip route", ...ROUTES])).toHaveLength(1);
  });

  test("however many kinds of labels a text has, each of its commands is looked at once", () => {
    const signs = (n: number): string => n.toString(3).replaceAll(/./g, (digit) => "#=*".charAt(Number(digit)));
    const output = Array.from({ length: 80 }, (_, i) => `10.0.${i}.0/24 dev ens5 proto kernel scope link src 10.0.${i}.7`);
    const made = (count: number) =>
      blocksOf(
        Array.from({ length: count }, (_, i) => ["a", "b"].flatMap((name) => [`${signs(i + 27)} ${name}`, `$ ip route get 10.0.0.${i}`, ...output])).flat(),
      );
    expect(pairedLabels(made(10)).size).toBe(20);
    expectLinear(made, pairedLabels, 400);
  });

  test("two interfaces of one machine are no machines", () => {
    const paste = [
      "eth0:",
      "$ ethtool eth0",
      "Settings for eth0:",
      "\tSpeed: 10000Mb/s",
      "",
      "eth1:",
      "$ ethtool eth1",
      "Settings for eth1:",
      "\tSpeed: 1000Mb/s",
    ];
    expect(read([...paste, "$ ip route", ...ROUTES])).toHaveLength(1);
  });

  test("of which one was looked at like the other, neither is read with what only the other shows", () => {
    const asked = ["$ ip route", ...ROUTES, "$ ip neigh", ...NEIGHBOURS, "$ conntrack -S", lost(5)];
    expect(commandsOf(["n1:", ...asked, "n2:", ...asked, "$ ip rule", "0: from all lookup local"])).toEqual([
      ["pasted", "ip route", "ip neigh", "conntrack -S"],
      ["n2", "ip route", "ip neigh", "conntrack -S", "ip rule"],
    ]);
  });

  test("other commands of the other machine are read together with the first one's, and its own is read by itself, too", () => {
    const lines = ["root@n1:~# ip route", ...ROUTES, "root@n2.dc1.example:~# ip neigh", ...NEIGHBOURS, "[root@n2 ~]# ip route", ...ROUTES];
    expect(commandsOf(lines)).toEqual([
      ["n1", "ip route", "ip neigh"],
      ["n2", "ip neigh", "ip route"],
    ]);
    expect(commandsOf(lines.slice(0, 5))).toEqual([["n1", "ip route", "ip neigh"]]);
  });

  test("the same question in other words is none of this machine's", () => {
    const lines = ["root@n1:~# ip route", ...ROUTES, "root@n2:~# ip neigh", ...NEIGHBOURS, "root@n2:~# ip route show table all", ...ROUTES];
    expect(commandsOf(lines)).toEqual([
      ["n1", "ip route", "ip neigh"],
      ["n2", "ip neigh", "ip route show table all"],
    ]);
  });
});

describe("what is asked by ssh is the other machine's", () => {
  test("and the same command there is no second look at this one", () => {
    const lines = [
      "me@jump:~$ ssh node-a 'ip route'",
      ...ROUTES,
      "me@jump:~$ ssh -i key root@node-b.dc1.example ip route",
      ...ROUTES,
      "me@jump:~$ ssh node-b 'ip neigh'",
      ...NEIGHBOURS,
    ];
    expect(commandsOf(lines)).toEqual([
      ["jump", "ssh node-a 'ip route'", "ssh node-b 'ip neigh'"],
      ["node-b", "ssh -i key root@node-b.dc1.example ip route", "ssh node-b 'ip neigh'"],
    ]);
  });

  test("counters that differ between two nodes have not grown", () => {
    const captures = read(["$ ssh good1 conntrack -S", lost(5), "$ ssh bad2 conntrack -S", lost(8000)]);
    expect(captures).toHaveLength(2);
    for (const capture of captures) expect(diagnose(capture, catalogue, "x", () => 0).causes).toEqual([]);
  });

  test.each([
    ["ssh node1", undefined],
    ["ssh -t core@10.0.0.7 sudo ip route", { name: "10.0.0.7" }],
    ["ssh -o StrictHostKeyChecking=no -p 2222 node1.example 'ip a; ip r'", { name: "node1" }],
    ["ssh-keygen -R node1 x", undefined],
    ["sshd -T | grep x", undefined],
  ])("%s", (command, machine) => {
    expect(ofRemote(command)).toEqual(machine);
  });
});

describe("the inside of a pod is not its node", () => {
  test.each([
    ["a prompt of a pod of a Deployment", "root@cart-6b7687dfdd-clrzf:/# ip route"],
    ["a prompt of a container", "[root@4c01db0b339c /]# ip route"],
  ])("%s", (_, prompt) => {
    expect(readTranscript([prompt, ...ROUTES].join("\n"), "x").outputs[0]?.command).toBe("nsenter -t 0 -n ip route");
  });

  test.each(["Inside the pod:", "**In the container**", "### from the busybox pod"])("%s", (label) => {
    expect(readTranscript([label, "```", ...ROUTES, "```"].join("\n"), "x").outputs[0]?.command).toBe("nsenter -t 0 -n ip route");
    expect(readTranscript([label, "$ ip route", ...ROUTES].join("\n"), "x").outputs[0]?.command).toBe("nsenter -t 0 -n ip route");
  });
});

test.each(["# Pods don't have internet access", "# Pod to pod traffic", "## Containers cannot reach services"])("a title is no label: %s", (title) => {
  expect(readTranscript([title, "", "```", "$ ip route", ...ROUTES, "```"].join("\n"), "x").outputs[0]?.command).toBe("ip route");
});

test("what stands above indented lines is a part of an output", () => {
  const pod = ["root@n1:~# kubectl describe pod cart", "Node:", "  n2", "Containers:", "  cart:", "    Image: cart:7", "root@n1:~# ip route", ...ROUTES];
  expect(commandsOf(pod)).toEqual([["n1", "kubectl describe pod cart", "ip route"]]);
});

test.each(["core@n1 ~ $", "root@n1 /etc #", "n1 ~ #"])("the prompt of Container Linux tells the machine: %s", (prompt) => {
  expect(commandsOf([`${prompt} ip route`, ...ROUTES])).toEqual([["n1", "ip route"]]);
});

test.each([
  ["node1:", { name: "node1" }],
  ["### Worker 2", { name: "worker-2" }],
  ["- the pod's node:", { name: "the-pod-s-node" }],
  ["Legolas node:", { name: "legolas-node" }],
  ["pod:", { pod: true }],
  // sentences, headings of other things, outputs
  ["The node is not ready", undefined],
  ["CoreDNS pod log:", undefined],
  ["**Pod description**", undefined],
  ["### What happened", undefined],
  ["# Pods cannot reach the internet", undefined],
  ["# Inside the pod", { pod: true }],
  ["Expected behavior:", undefined],
  ["eth0:", undefined],
  ["Pods lose network:", undefined],
  ["The pod has:", { pod: true }],
  ["Ip:", undefined],
  ["    inet 10.9.0.17/24 scope global ens5", undefined],
])("label %s", (line, machine) => expect(ofLabel(line)).toEqual(machine));

test.each([
  ["ip-10-0-1-23.ec2.internal", { name: "ip-10-0-1-23" }],
  ["192.0.2.7", { name: "192.0.2.7" }],
  ["worker-0", { name: "worker-0" }],
  ["kube-proxy-x7k2p", { pod: true }],
])("prompt of %s", (host, machine) => expect(ofPrompt(host)).toEqual(machine));

describe("a machine with a name as pods have it", () => {
  const host = "ocp4-7xk2p-worker-0-vr2j8";
  const prompt = (command: string, user = "root") => `[${user}@${host} ~]# ${command}`;
  const forwarding = [prompt("sysctl net.ipv4.ip_forward"), "net.ipv4.ip_forward = 0"];

  test.each([
    ["by what is asked of machines alone", [prompt("sudo systemctl is-active kubelet"), "active"]],
    [
      "by a device in its list",
      [prompt("ip link"), "5: ovs-system: <BROADCAST,MULTICAST> mtu 1500 qdisc noop state DOWN mode DEFAULT group default qlen 1000"],
    ],
    ["by a device in its routes", [prompt("ip route"), "10.244.3.0/24 dev cni0 proto kernel scope link src 10.244.3.1"]],
    ["by a user of its image", [prompt("uptime", "core"), " 20:41:09 up 12 days,  5:02,  1 user,  load average: 0.61, 0.72, 0.70"]],
    ["by kube-proxy's chains", [prompt("sudo iptables-save -t nat"), "*nat", ":KUBE-SERVICES - [0:0]", "COMMIT"]],
  ])("is none, %s", (_, tells) => {
    expect(commandsOf([...forwarding, ...tells])[0]?.slice(0, 2)).toEqual([host, "sysctl net.ipv4.ip_forward"]);
    expect(commandsOf([...tells, ...forwarding])[0]).toContain("sysctl net.ipv4.ip_forward");
  });

  test.each([
    ["where nothing tells", []],
    ["where the node was asked from inside of it", [prompt("nsenter -t 1 -n ip link"), "5: ovs-system: <BROADCAST,MULTICAST> mtu 1500 state DOWN"]],
    ["where its shell went on with the node's files", [prompt("chroot /host"), prompt("systemctl is-active kubelet"), "active"]],
    ["where kubectl told of a node", [prompt("kubectl debug node/n1 -- ip link"), "5: cni0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 state UP"]],
  ])("is a pod %s", (_, lines) => {
    expect(commandsOf([...forwarding, ...lines]).flat()).not.toContain("sysctl net.ipv4.ip_forward");
  });

  test("that `hostname` told", () => {
    const told = ["$ hostname", "md-0-7d9f8b6c5d-x7k2p", "$ sysctl net.ipv4.ip_forward", "net.ipv4.ip_forward = 0"];
    expect(commandsOf(told).flat()).not.toContain("sysctl net.ipv4.ip_forward");
    expect(commandsOf([...told, "$ ip route", "10.244.3.0/24 dev cni0 proto kernel scope link src 10.244.3.1"])[0]?.slice(2)).toEqual([
      "sysctl net.ipv4.ip_forward",
      "ip route",
    ]);
  });

  test("is told in time that grows with the text alone", () => {
    const text = (turns: number) => Array.from({ length: turns }, () => [prompt("ip route"), "10.9.0.0/24 dev ens5 scope link"]).flat();
    expectLinear(
      text,
      (lines) => machinesLikePods(lines, (line) => (line.startsWith("[") ? { host, typed: line.slice(line.indexOf("#") + 2) } : undefined)),
      20_000,
    );
  });
});
