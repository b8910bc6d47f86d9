import { describe, expect, test } from "vitest";
import { commandLine } from "../../functions/facts/command.ts";
import { toldByDate } from "../../functions/facts/date-output.ts";
import { withoutHostPrefix } from "../../functions/imports/host-prefix.ts";
import { pastedCaptures } from "../../functions/imports/index.ts";
import { readTranscript } from "../../functions/imports/transcript.ts";

/** Commands that run on a machine from elsewhere. */

describe("the command behind", () => {
  test.each([
    "ansible node1 -b -m shell -a 'ip rule'",
    "aws ssm start-session --target i-0abc --document-name AWS-StartInteractiveCommand --parameters command='ip rule'",
    "aws ssm send-command --document-name AWS-RunShellScript --parameters 'commands=[\"ip rule\"]'",
    "gcloud compute ssh node1 --zone europe-west1-b --command 'ip rule'",
    "gcloud compute ssh node1 --command='ip rule'",
    "vagrant ssh node1 -c 'sudo ip rule'",
    "multipass exec node1 -- sudo ip rule",
    "lxc exec node1 -- ip rule",
    "kubectl node-shell node1 -- ip rule",
    "kubectl exec -n default node-debugger-node1-x7k2p -- chroot /host ip rule",
    "time ip rule",
  ])("%s", (line) => expect(commandLine(line)).toMatchObject({ argv: ["ip", "rule"], foreign: false, filtered: false }));

  test.each(["(tcpdump in the background)", "ansible node1 -m ping", "gcloud compute ssh node1", "vagrant status", "lxc list", "aws ssm describe-sessions"])(
    "%s runs none",
    (line) => expect(commandLine(line).argv[0]).toBe(line.split(" ")[0]),
  );

  test("a pod that nobody knows to be in the node's network is none of its", () =>
    expect(commandLine("kubectl exec my-debugger-x7k2p -- ip rule").foreign).toBe(true));

  test.each([
    // namespaces of other kinds
    ["nsenter -t $(pgrep -xo cilium-agent) -m -- ip rule", false],
    ["nsenter -t 4471 -m -p ip rule", false],
    // a program that has the node's network
    ["nsenter -t $(pgrep -xo kubelet) -n -- ip rule", false],
    ["nsenter -t $(pgrep -f sleep) -n -- ip rule", true],
    ["nsenter -t 4471 -mn ip rule", true],
    ["nsenter --target 4471 --net ip rule", true],
  ] as const)("nsenter stays in the node's network, or leaves it: %s", (line, foreign) =>
    expect(commandLine(line)).toMatchObject({ argv: ["ip", "rule"], foreign }),
  );

  test("the files of another program's namespace are not the node's", () => expect(commandLine("nsenter -t 4471 -m cat /etc/resolv.conf").foreign).toBe(true));

  test.each([
    ["kubectl exec -it debug -- nsenter -t 1 -n ip rule", false],
    ["kubectl exec debug -- nsenter --target=1 --net -- ip rule", false],
    ["crictl exec 3fa1 nsenter -t1 -n ip rule", false],
    ["kubectl exec debug -- nsenter -t 4711 -n ip rule", true],
    ["kubectl exec debug -- nsenter -t 17 -n ip rule", true],
  ])("a pod that enters the first process is in the node's: %s", (line, foreign) => expect(commandLine(line)).toMatchObject({ argv: ["ip", "rule"], foreign }));
});

test("Ansible's first line is none of the command's, and where two machines answered the text stays", () => {
  const one = "node1 | CHANGED | rc=0 >>\n0:\tfrom all lookup local\n";
  expect(withoutHostPrefix("ansible node1 -m shell -a 'ip rule'", one)).toBe("\n0:\tfrom all lookup local\n");
  const two = `${one}node2 | CHANGED | rc=0 >>\n0:\tfrom all lookup local\n`;
  expect(withoutHostPrefix("ansible all -m shell -a 'ip rule'", two)).toBe(two);
});

test("what several machines answered to Ansible is one capture of each", () => {
  const answer = (host: string, value: number): string => `${host} | CHANGED | rc=0 >>\nnet.ipv4.ip_forward = ${value}\n`;
  const text = `$ ansible workers -b -a "sysctl net.ipv4.ip_forward"\n${answer("w1", 1)}${answer("w2", 0)}`;
  const captures = pastedCaptures(text, "paste.txt", "paste.txt");
  expect(captures.map(({ outputs }) => outputs.map((output) => output.text.trim()))).toEqual([["net.ipv4.ip_forward = 1"], ["net.ipv4.ip_forward = 0"]]);
});

test("a loop over machines whose headings are there is one question to each", () => {
  const answer = (host: string, value: number): string => `== ${host}\nnet.ipv4.ip_forward = ${value}\n`;
  const ask = (loop: string): string[] =>
    pastedCaptures(`$ ${loop}\n${answer("w1", 1)}${answer("w2", 0)}`, "paste.txt", "paste.txt").flatMap(({ outputs }) =>
      outputs.map((output) => `${output.command}: ${output.text.trim()}`),
    );
  expect(ask('for n in w1 w2; do echo "== $n"; ssh root@$n "sysctl net.ipv4.ip_forward; ip rule"; done')).toEqual([
    'ssh root@w1 "sysctl net.ipv4.ip_forward; ip rule": net.ipv4.ip_forward = 1',
    'ssh root@w2 "sysctl net.ipv4.ip_forward; ip rule": net.ipv4.ip_forward = 0',
  ]);
  const plain = "for n in w1 w2; do ssh root@$n sysctl net.ipv4.ip_forward; done";
  expect(ask(plain)).toHaveLength(1);
});

test("the same command on two machines, asked from a third, is not asked twice of one", () => {
  const ask = (line: string, address: string): string => `me@laptop:~$ ${line}\ndefault via ${address} dev eth0\n`;
  const text = [
    ask("kubectl debug node/w1 -it --image=busybox -- chroot /host ip route", "10.0.1.1"),
    ask("kubectl debug node/w2 -it --image=busybox -- chroot /host ip route", "10.0.2.1"),
    ask("multipass exec w3 -- ip route", "10.0.3.1"),
  ].join("");
  expect(pastedCaptures(text, "paste.txt", "paste.txt").map(({ outputs }) => outputs.map(({ sample }) => sample))).toEqual([[1], [1], [1]]);
});

test("`date` tells the time from wherever it is asked, but not a pod's", () => {
  const at = (command: string): string | undefined => toldByDate([{ command, text: "Fri Nov 20 14:12:31 UTC 2026\n" }]);
  expect(at("ssh node1 sudo date -u")).toBe("2026-11-20T14:12:31.000Z");
  expect(at("LANG=C date")).toBe("2026-11-20T14:12:31.000Z");
  expect(at("kubectl exec web-0 -- date")).toBeUndefined();
});

describe("what was asked of another machine from one that no prompt names", () => {
  const OWN = "10.244.3.0 dev flannel.1 lladdr 22:8d:0f:66:31:e9 PERMANENT";
  const THEIRS = "10.244.1.0 dev flannel.1 lladdr 5e:11:90:7a:c2:04 PERMANENT";
  const read = (text: string): string[][] => pastedCaptures(text, "paste.txt", "x").map(({ outputs }) => outputs.map(({ text: printed }) => printed.trim()));

  test("is that one's alone", () => expect(read(`+ uname -r\n6.8.0\n+ ip neigh\n${OWN}\n+ ssh w2 ip neigh\n${THEIRS}\n`)).toEqual([["6.8.0", OWN], [THEIRS]]));

  test("is read with the rest where only they were asked", () =>
    expect(read(`+ uname -r\n6.8.0\n+ ssh w2 ip neigh\n${THEIRS}\n+ ssh w2 ip rule\n0:\tfrom all lookup local\n`)).toEqual([
      ["6.8.0", THEIRS, "0:\tfrom all lookup local"],
    ]));

  test("in a heading of code, above a block", () =>
    expect(
      readTranscript(`\`ip neigh\`\n\`\`\`\n${OWN}\n\`\`\`\n\`ssh w2 'ip neigh'\`\n\`\`\`\n${THEIRS}\n\`\`\`\n`, "paste.txt").others.map(
        ({ target }) => target,
      ),
    ).toEqual(["w2"]));
});

describe("a paste of the node and of where kubectl was typed", () => {
  const PODS = "NAME   READY   STATUS    RESTARTS   AGE   IP           NODE\nweb    1/1     Running   0          1h    172.17.0.2   node1\n";
  const route = (address: string): string => `10.0.0.0/24 dev eth0 proto kernel scope link src ${address} \n`;
  const read = (text: string): string[] =>
    pastedCaptures(text, "paste.txt", "x").map(({ target, outputs }) => `${target}: ${outputs.map(({ command }) => command).join("; ")}`);
  const master = `root@master:~# kubectl get pods -o wide\n${PODS}`;

  test("is of the node", () => expect(read(`${master}root@node1:~# ip route\n${route("10.0.0.11")}`)).toEqual(["node1: kubectl get pods -o wide; ip route"]));

  test("is of where kubectl was typed if nothing else was asked", () => expect(read(master)).toEqual(["master: kubectl get pods -o wide"]));

  test("keeps two nodes apart", () =>
    expect(read(`${master}root@node1:~# ip route\n${route("10.0.0.11")}root@node2:~# ip route\n${route("10.0.0.12")}`)).toEqual([
      "node1: kubectl get pods -o wide; ip route",
      "node2: ip route",
    ]));
});

test.each([
  ["/home/weave # ", "root@web-6f9d8:/# "],
  ["# ", "/ # "],
  ["sh-4.2# ", "root@6b1f0c2d9e3a:/# "],
])("who goes on behind the prompt %j from before has left the pod", (node, pod) => {
  const stats = (failed: number): string => `cpu=0   \tfound=1 invalid=0 insert=0 insert_failed=${failed} drop=0 early_drop=0 error=0 search_restart=0 \n`;
  const [capture] = pastedCaptures(
    `${node}conntrack -S\n${stats(1)}\nIn the pod:\n\n${pod}ip route\ndefault via 10.1.0.1 dev eth0 \n\n${node}conntrack -S\n${stats(9)}`,
    "paste.txt",
    "x",
  );
  expect(capture.outputs.map(({ command }) => commandLine(command).foreign)).toEqual([false, true, false]);
});

describe("the tables of a node are read with another one that was asked the same", () => {
  const node = (prompt: string, address: string, entry: string): string =>
    `${prompt} ip -d link show flannel.1\n7: flannel.1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 qdisc noqueue state UNKNOWN\n    vxlan id 1 local ${address} dev eth0\n${prompt} bridge fdb show dev flannel.1\n${entry}\n`;
  const read = (...nodes: string[]): string[][] => pastedCaptures(nodes.join(""), "paste.txt", "x").map(({ outputs }) => outputs.map(({ command }) => command));
  const asked = ["ip -d link show flannel.1", "bridge fdb show dev flannel.1"];
  const first = node("[root@wk-1 ~]#", "10.20.0.11", "6e:b9:d5:e1:19:85 dst 10.20.0.12 self permanent");

  test("as if it had been asked from there, where they send to its address", () =>
    expect(read(first, node("[root@wk-2 ~]#", "10.20.0.12", "46:c8:a4:0f:37:91 dst 10.20.0.11 self permanent"))).toEqual([
      [...asked, "ssh wk-2 bridge fdb show dev flannel.1"],
      [...asked, "ssh wk-1 bridge fdb show dev flannel.1"],
    ]));

  test("not where they do not know it: they may be of another cluster", () =>
    expect(read(first, node("[root@wk-2 ~]#", "10.99.0.12", "46:c8:a4:0f:37:91 dst 10.99.0.11 self permanent"))).toEqual([asked, asked]));

  test("not where the nodes are named otherwise", () =>
    expect(read(first, node("[root@db ~]#", "10.20.0.12", "46:c8:a4:0f:37:91 dst 10.20.0.11 self permanent"))).toEqual([asked, asked]));
});

describe("which way packets go on a machine is told by its own routes and rules", () => {
  const ROUTE = "default via 10.0.0.1 dev eth0 \n";
  const RULE = "0:\tfrom all lookup local\n";
  const PODS = "NAME   READY   STATUS    RESTARTS   AGE   IP           NODE\nweb    1/1     Running   0          1h    172.17.0.2   w2\n";
  const read = (text: string): string[] =>
    pastedCaptures(text, "paste.txt", "x").map(({ target, outputs }) => `${target}: ${outputs.map(({ command }) => command).join("; ")}`);

  test("not by the routes of one and the rules of another", () =>
    expect(read(`root@w1:~# ip route\n${ROUTE}root@w2:~# ip rule\n${RULE}`)).toEqual(["w1: ip route", "w2: ip rule"]));

  test("with what the cluster told from elsewhere", () =>
    expect(
      read(`root@w1:~# sysctl net.ipv4.ip_forward\nnet.ipv4.ip_forward = 1\nroot@w1:~# kubectl get pods -o wide\n${PODS}root@w2:~# ip route\n${ROUTE}`),
    ).toEqual(["w1: sysctl net.ipv4.ip_forward; kubectl get pods -o wide", "w2: kubectl get pods -o wide; ip route"]));

  test("also where one of them was asked from the other", () =>
    expect(read(`+ ip route\n${ROUTE}+ ssh w2 ip rule\n${RULE}`)).toEqual(["pasted: ip route", "w2: ssh w2 ip rule"]));
});
