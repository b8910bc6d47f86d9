import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { commandsOf } from "../functions/facts/command-list.ts";
import { readFacts } from "../functions/facts/read.ts";
import { eachCommand } from "../functions/facts/several-commands.ts";
import { pastedCaptures } from "../functions/imports/index.ts";
import { diagnose } from "../functions/rules/diagnose.ts";
import { loadCatalogue } from "../functions/rules/load.ts";
import { output } from "./rules/captures.ts";

describe("commands of a line", () => {
  test.each([
    ["ip rule; ip route", ["ip rule", "ip route"]],
    ["cd /tmp && ip rule ;; ip -br link;", ["cd /tmp", "ip rule", "ip -br link"]],
    [`grep -E "a;b && c" /x; awk '{print $1; print $2}' /y`, [`grep -E "a;b && c" /x`, "awk '{print $1; print $2}' /y"]],
    ["find / -exec true \\; ; ip rule", ["find / -exec true \\;", "ip rule"]],
    ["ip rule | grep -v local || true; ip route 2>&1 | head &", ["ip rule | grep -v local || true", "ip route 2>&1 | head &"]],
    ["sudo bash -c 'ip rule; ip route'", ["sudo bash -c 'ip rule'", "sudo bash -c 'ip route'"]],
    [`ssh -i key root@10.0.0.9 "ip rule && ip route"`, [`ssh -i key root@10.0.0.9 "ip rule"`, `ssh -i key root@10.0.0.9 "ip route"`]],
    ["for i in eth0 eth1; do ethtool -S $i; done", ["for i in eth0 eth1; do ethtool -S $i; done"]],
    ["date; while true; do nstat; sleep 1; done", ["date; while true; do nstat; sleep 1; done"]],
    ["(ip rule; ip route) > /tmp/x", ["(ip rule; ip route) > /tmp/x"]],
    ["cat /proc/sys/net/a; sudo cat /proc/sys/net/b && cat /etc/resolv.conf", ["cat /proc/sys/net/a /proc/sys/net/b", "cat /etc/resolv.conf"]],
    ["nsenter -t $(crictl inspect x; true) -n ip rule; ip route", ["nsenter -t $(crictl inspect x; true) -n ip rule", "ip route"]],
    ["", [""]],
  ])("%s", (line, commands) => {
    expect(commandsOf(line)).toEqual(commands);
  });
});

/** Of each output its command and its lines with their numbers in the paste. */
const outputsOf = (paste: string) =>
  pastedCaptures(paste, "paste.txt", "the paste")[0]
    .outputs.flatMap(eachCommand)
    .map(({ command, text }) => [command, ...text.split("\n").flatMap((line, i) => (line.trim() === "" ? [] : [`${i + 1}: ${line.trim()}`]))]);

const RULES = ["0:\tfrom all lookup local", "32766:\tfrom all lookup main", "32767:\tfrom all lookup default"];
const ROUTES = ["default via 10.0.0.1 dev ens5 proto dhcp", "10.0.0.0/24 dev ens5 proto kernel scope link src 10.0.0.21"];

describe("what a line of several commands printed", () => {
  test("falls to the command that reads it, and keeps its place in the paste", () => {
    expect(outputsOf(["root@n1:~# ip rule; ip route;", ...RULES, ...ROUTES, "root@n1:~# exit"].join("\n"))).toEqual([
      ["ip rule", `2: ${RULES[0]}`, `3: ${RULES[1]}`, `4: ${RULES[2]}`],
      ["ip route", `5: ${ROUTES[0]}`, `6: ${ROUTES[1]}`],
    ]);
  });

  test("falls to it also where another fact leaves all lines aside in silence (devices that are not there)", () => {
    const [neighbor, entry] = ["10.42.7.0 lladdr 22:9f:b4:31:70:02 PERMANENT", "22:9f:b4:31:70:02 dst 10.66.4.15 self permanent"];
    expect(outputsOf(["# ip neigh show dev flannel.1; bridge fdb show dev flannel.1", neighbor, entry].join("\n"))).toEqual([
      ["ip neigh show dev flannel.1", `2: ${neighbor}`],
      ["bridge fdb show dev flannel.1", `3: ${entry}`],
    ]);
  });

  test("values of one line each", () => {
    const paste = "# cat /proc/sys/net/netfilter/nf_conntrack_count; cat /proc/sys/net/netfilter/nf_conntrack_max\n262140\n262144\n";
    const reading = readFacts(pastedCaptures(paste, "paste.txt", "the paste")[0], new Set(["sysctl"])).readings.get("sysctl");
    expect(reading?.value).toMatchObject({
      rows: [
        { key: "net.netfilter.nf_conntrack_count", value: "262140", line: 2 },
        { key: "net.netfilter.nf_conntrack_max", value: "262144", line: 3 },
      ],
    });
  });

  test.each(["cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding", "sysctl -n net.ipv4.ip_forward net.ipv6.conf.all.forwarding"])(
    "values in front of another command's lines: %s",
    (command) => {
      expect(outputsOf([`# ${command}; ip rule`, "0", "1", ...RULES].join("\n"))).toEqual([
        [command, "2: 0", "3: 1"],
        ["ip rule", `4: ${RULES[0]}`, `5: ${RULES[1]}`, `6: ${RULES[2]}`],
      ]);
    },
  );

  test("one answer of `ip route get`, and neighbours", () => {
    const [answer, neighbor] = ["10.12.7.88 dev calid19b0e7f3a5 src 10.12.7.64 uid 0", "10.12.7.88 dev calid19b0e7f3a5 lladdr 9e:77:40:0b:c3:5a STALE"];
    expect(outputsOf(["# ip r get 10.12.7.88; ip n | grep 10.12.7.88", answer, "    cache", neighbor].join("\n"))).toEqual([
      ["ip r get 10.12.7.88", `2: ${answer}`, "3: cache"],
      ["ip n | grep 10.12.7.88", `4: ${neighbor}`],
    ]);
  });

  test("of a template of kubectl as many lines as it ends", () => {
    const [node, pods] = [`kubectl get node n1 -o jsonpath='{.spec.podCIDR}{"\\n"}'`, "kubectl get po -A -o wide"];
    const table = [
      "NAMESPACE   NAME   READY   STATUS    RESTARTS   AGE   IP   NODE",
      "default     web    1/1     Running   0          5m12s   10.85.0.14   n1",
    ];
    expect(
      eachCommand(output(`${node}; ${pods}`, ["10.244.6.0/24", ...table].join("\n"))).map(({ command, text }) => [command, text.trim().split("\n").length]),
    ).toEqual([
      [node, 1],
      [pods, 2],
    ]);
  });

  test("what its echoes printed is nobody's", () => {
    expect(outputsOf(["# echo --rules--; ip rule; echo; echo --routes--; ip route", "--rules--", ...RULES, "", "--routes--", ...ROUTES].join("\n"))).toEqual([
      ["ip rule", `3: ${RULES[0]}`, `4: ${RULES[1]}`, `5: ${RULES[2]}`],
      ["ip route", `8: ${ROUTES[0]}`, `9: ${ROUTES[1]}`],
    ]);
  });

  test("the time that date printed in front of them or behind them is nobody's", () => {
    const time = "Wed Nov 18 21:03:10 UTC 2026";
    const rules = RULES.map((line, i) => `${i + 3}: ${line}`);
    expect(outputsOf(["# date; ip rule; date", time, ...RULES, time].join("\n"))).toEqual([["date; ip rule; date", ...rules]]);
  });

  test("a command of the line that netcheck does not know leaves lines that nobody can read, and the others theirs", () => {
    const paste = ["# ip rule; free -m; ip route", ...RULES, "       total used", "Mem:   24105 289", ...ROUTES].join("\n");
    const outputs = outputsOf(paste);
    expect(outputs.map(([command]) => command)).toEqual(["ip rule", "ip route"]);
    expect(outputs[0]?.slice(1, 4)).toEqual(RULES.map((line, i) => `${i + 2}: ${line}`));
    expect(outputs[1]?.slice(-2)).toEqual([`7: ${ROUTES[0]}`, `8: ${ROUTES[1]}`]);
  });

  test("a command that printed nothing is not taken for one that found nothing", () => {
    expect(outputsOf(["# ip rule; ip route", ...RULES].join("\n")).map(([command]) => command)).toEqual(["ip rule; ip route"]);
    expect(outputsOf(["# iptables -S KUBE-FORWARD; ip rule", ...RULES].join("\n")).map(([command]) => command)).toEqual(["ip rule"]);
  });

  test("a restart on the line prints nothing, and counts where it did not fail", () => {
    const line = "# sudo systemctl restart systemd-networkd; sleep 2; ip rule";
    expect(outputsOf([line, ...RULES].join("\n")).map(([command, ...lines]) => [command, lines.length > 0])).toEqual([
      ["sudo systemctl restart systemd-networkd", false],
      ["sleep 2; ip rule", true],
    ]);
    const failed = [line, "Failed to restart systemd-networkd.service: Access denied", ...RULES].join("\n");
    expect(outputsOf(failed).map(([command]) => command)).toEqual(["sleep 2; ip rule"]);
  });

  test("where the first one can read all of it, nothing is divided", () => {
    const twice = ["# iptables -S FORWARD; iptables -S INPUT", "-P FORWARD DROP", "-P INPUT ACCEPT"].join("\n");
    expect(outputsOf(twice).map(([command]) => command)).toEqual(["iptables -S FORWARD; iptables -S INPUT"]);
  });

  test("of a list of words that ends in a shell's line, too", () => {
    const text = [...RULES, ...ROUTES].join("\n");
    const [output] = pastedCaptures(`# ip rule\n${text}`, "paste.txt", "the paste")[0].outputs;
    const commands = (...argv: string[]) =>
      (output === undefined ? [] : eachCommand({ ...output, argv, command: argv.join(" "), text })).map(({ command }) => command);
    expect(commands("nsenter", "-t", "1", "-n", "sh", "-c", "ip rule; ip route")).toEqual([
      "nsenter -t 1 -n sh -c 'ip rule'",
      "nsenter -t 1 -n sh -c 'ip route'",
    ]);
    // nobody can tell how a word with a blank was meant; and one command is one
    expect(commands("ssh", "a b", "sh", "-c", "ip rule; ip route")).toHaveLength(1);
    expect(commands("sh", "-c", "ip rule")).toEqual(["sh -c ip rule"]);
  });

  test("is diagnosed", () => {
    const catalogue = loadCatalogue(fileURLToPath(new URL("../runbooks/", import.meta.url)), { tolerant: true });
    const paste = [
      "root@n1:~# uname -r; sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max && dmesg -T | tail -2",
      "6.1.0-18-amd64",
      "net.netfilter.nf_conntrack_count = 262144",
      "net.netfilter.nf_conntrack_max = 262144",
      "[Tue Nov 17 10:02:11 2026] nf_conntrack: nf_conntrack: table full, dropping packet",
      "[Tue Nov 17 10:02:12 2026] nf_conntrack: nf_conntrack: table full, dropping packet",
    ].join("\n");
    const { causes } = diagnose(pastedCaptures(paste, "paste.txt", "the paste")[0], catalogue, "x", () => 0);
    expect(causes.map(({ rule }) => rule)).toEqual(["conntrack-table-full"]);
    for (const { line, text } of causes[0]?.evidence ?? []) expect(paste.split("\n")[line - 1]).toBe(text);
  });
});

describe("what a loop over names printed", () => {
  const turns = (command: string, ...lines: string[]) =>
    eachCommand(output(command, lines.join("\n"))).map((one) => [
      one.command,
      ...one.text.split("\n").flatMap((line, i) => (line.trim() === "" ? [] : [`${i + 1}: ${line.trim()}`])),
    ]);

  test.each([
    ["for i in eth0 eth1; do echo == $i; ethtool -S $i | grep allowance; done", "== "],
    [`for i in $(ls /sys/class/net); do echo "== \${i}"; ethtool -S \${i} | grep allowance; done`, "== "],
    ["for i in eth*; do echo $i:; ethtool -S $i | grep allowance; done", "", ":"],
    ["for i in eth0 eth1\ndo\n  echo $i\n  ethtool -S $i | grep allowance\ndone", ""],
    [`for i in eth0 eth1; do echo -e "\\n=== $i ==="; ethtool -S $i | grep allowance; done 2>/dev/null | tee /tmp/x`, "=== ", " ==="],
  ])("is told apart by what echo says: %s", (command, before, behind = "") => {
    const lines = [`${before}eth0${behind}`, "     pps_allowance_exceeded: 1", `${before}eth1${behind}`, "     pps_allowance_exceeded: 2"];
    expect(turns(command, ...lines)).toEqual([
      ["ethtool -S eth0 | grep allowance", "2: pps_allowance_exceeded: 1"],
      ["ethtool -S eth1 | grep allowance", "4: pps_allowance_exceeded: 2"],
    ]);
  });

  test.each([
    [`for i in all eth0; do echo -n "$i: "; cat /proc/sys/net/ipv4/conf/$i/rp_filter; done`, ": "],
    [`for i in all eth0; do printf '%s = ' $i; cat /proc/sys/net/ipv4/conf/$i/rp_filter; done`, " = "],
    [`for i in all eth0; do echo "$i $(cat /proc/sys/net/ipv4/conf/$i/rp_filter)"; done`, " "],
    [`for i in all eth0; do printf "$i "; cat /proc/sys/net/ipv4/conf/$i/rp_filter; done`, " "],
  ])("is told apart by what stands before each answer: %s", (command, between) => {
    expect(turns(command, `all${between}0`, `eth0${between}1`)).toEqual([
      ["cat /proc/sys/net/ipv4/conf/all/rp_filter", "1: 0"],
      ["cat /proc/sys/net/ipv4/conf/eth0/rp_filter", "2: 1"],
    ]);
  });

  test("is not where nothing parts the name from the answer", () => {
    const loop = `for i in eth1 eth11; do echo -n "$i"; cat /sys/class/net/$i/mtu; done`;
    expect(outputsOf([`$ ${loop}`, "eth11500", "eth111500"].join("\n"))?.map(([command]) => command)).toEqual([loop]);
  });

  test("is told apart behind what hands it to a shell", () => {
    const lines = ["# eth0", "     pps_allowance_exceeded: 1", "# eth1", "     pps_allowance_exceeded: 2"];
    expect(turns("sudo sh -c 'for i in eth0 eth1; do echo \"# $i\"; ethtool -S $i | grep allowance; done'", ...lines)).toEqual([
      ["sudo sh -c 'ethtool -S eth0 | grep allowance'", "2: pps_allowance_exceeded: 1"],
      ["sudo sh -c 'ethtool -S eth1 | grep allowance'", "4: pps_allowance_exceeded: 2"],
    ]);
  });

  test("is found in a paste", () => {
    const loop = "for i in eth0 eth1; do echo == $i; ethtool -S $i | grep allowance; done";
    const lines = ["== eth0", "     pps_allowance_exceeded: 1", "== eth1", "     pps_allowance_exceeded: 2"];
    for (const prompt of ["root@n1:~# ", "$ "])
      expect(outputsOf([`${prompt}${loop}`, ...lines].join("\n"))).toEqual([
        ["ethtool -S eth0 | grep allowance", `3: ${(lines[1] as string).trim()}`],
        ["ethtool -S eth1 | grep allowance", `5: ${(lines[3] as string).trim()}`],
      ]);
  });

  test.each([
    [
      "for c in $(docker ps -q); do sudo docker inspect -f '{{.Name}} {{.NetworkSettings.IPAddress}}' $c; done",
      "sudo docker inspect -f '{{.Name}} {{.NetworkSettings.IPAddress}}' $c",
    ],
    ["docker ps -q | xargs -n 1 docker inspect -f '{{ .Name }} x'", "docker inspect -f '{{ .Name }} x'"],
    ["for i in $(ls /sys/class/net); do ip -br addr show $i; done", "ip -br addr show $i"],
  ])("is one command's where each answer tells whose it is: %s", (loop, command) => {
    expect(turns(loop, "/web 10.0.0.5", "/db 10.0.0.6")).toEqual([[command, "1: /web 10.0.0.5", "2: /db 10.0.0.6"]]);
  });

  test("is not where the answers do not tell it", () => {
    const loop = "for i in 100 200; do ip route show table $i; done";
    expect(turns(loop, "default via 10.0.0.1 dev eth0", "default via 10.1.0.1 dev eth1").map(([command]) => command)).toEqual([loop]);
  });

  test("is told apart from what else stands on the line", () => {
    const loop = `uname -r; for i in 100 200; do echo "table $i"; ip route show table $i; done; ip rule`;
    const lines = ["6.8.0-79-generic", "table 100", "default via 10.0.0.1 dev eth0", "table 200", "default via 10.1.0.1 dev eth1", "0:\tfrom all lookup local"];
    expect(turns(loop, ...lines)).toEqual([
      ["uname -r", "1: 6.8.0-79-generic"],
      ["ip route show table 100", "3: default via 10.0.0.1 dev eth0"],
      ["ip route show table 200", "5: default via 10.1.0.1 dev eth1"],
      ["ip rule", "6: 0:\tfrom all lookup local"],
    ]);
    // of two loops nobody knows
    const two = "for i in 100; do echo $i; ip route show table $i; done; for i in eth0; do echo $i; ethtool -S $i; done";
    expect(turns(two, ...lines).map(([command]) => command)).toEqual([two]);
  });

  test("is two samples where a line asks for the same rules twice", () => {
    const row = (packets: number): string => `     ${packets} 48720 DROP  all  --  *  *  0.0.0.0/0  0.0.0.0/0  ctstate INVALID`;
    const asked = "iptables -nvxL KUBE-FORWARD 1";
    const samples = eachCommand(output(`${asked}; sleep 15; date; ${asked}`, [row(812), "Fri Nov 20 18:04:36 UTC 2026", row(871)].join("\n")));
    expect(samples.map(({ command, sample, text }) => [command, sample, text.trim()])).toEqual([
      [asked, 1, row(812).trim()],
      [asked, 2, row(871).trim()],
    ]);
    // of two chains nobody knows here which row is whose
    const other = `${asked}; sleep 15; iptables -nvxL FORWARD 1`;
    expect(eachCommand(output(other, [row(812), row(871)].join("\n"))).some(({ sample }) => sample === 2)).toBe(false);
  });

  test("is two samples where the same is asked again", () => {
    const loop = "for i in 1 2 3; do echo run $i; ethtool -S eth0 | grep pps; sleep 5; done";
    const samples = eachCommand(
      output(
        loop,
        ["run 1", "     pps_allowance_exceeded: 1", "run 2", "     pps_allowance_exceeded: 2", "run 3", "     pps_allowance_exceeded: 9"].join("\n"),
      ),
    );
    expect(samples.map(({ command, sample, text }) => [command, sample, text.trim()])).toEqual([
      ["ethtool -S eth0 | grep pps; sleep 5", 1, "pps_allowance_exceeded: 1"],
      ["ethtool -S eth0 | grep pps; sleep 5", 2, "pps_allowance_exceeded: 9"],
    ]);
  });

  test.each([
    ["without a heading", "for i in eth0 eth1; do ethtool -S $i; done", ["eth0", "     a: 1", "eth1", "     a: 2"]],
    ["of which no heading is there", "for i in eth0 eth1; do echo == $i; ethtool -S $i; done", ["     a: 1", "     a: 2"]],
    ["of machines", "for n in node1 node2; do echo == $n; ssh $n ip route; done", ["== node1", ROUTES[0], "== node2", ROUTES[1]]],
    ["of clusters", "for c in east west; do echo == $c; kubectl --context $c get nodes; done", ["== east", "a", "== west", "b"]],
    [
      "of pods that may have the node's network",
      "for p in cilium-a cilium-b; do echo == $p; kubectl exec $p -- ip route; done",
      ["== cilium-a", "x", "== cilium-b", "y"],
    ],
    ["with a name twice", "for i in eth0 eth0; do echo $i; ethtool -S $i; done", ["eth0", "     a: 1", "eth0", "     a: 2"]],
  ])("stays one where nobody knows which is whose: %s", (_, command, lines) => {
    expect(turns(command, ...(lines as string[])).map(([one]) => one)).toEqual([command]);
  });
});

describe("what a loop over rules printed", () => {
  const head = "Chain KUBE-FORWARD (1 references)";
  const columns = "    pkts      bytes target     prot opt in     out     source               destination";
  const row = (packets: number) => `${packets} 11262144 DROP       all  --  *      *       0.0.0.0/0            0.0.0.0/0            ctstate INVALID`;
  const told = (command: string, ...lines: string[]) =>
    eachCommand(output(command, lines.join("\n"))).map(({ command: one, sample, text }) => [one, sample, text.trim().split("\n").at(-1)]);
  const ask = "sudo iptables -nvxL KUBE-FORWARD";

  test.each([
    [
      `for i in 1 2 3; do date +%T; ${ask}; sleep 5; done`,
      ["08:51:02", head, columns, row(1), "08:51:07", head, columns, row(2), "08:51:12", head, columns, row(9)],
    ],
    [`while :; do ${ask}; echo ---; sleep 1; done`, [head, columns, row(1), "---", head, columns, row(9), "---", "^C"]],
    [`for i in $(seq 1 2); do ${ask}; sleep 5; done`, [head, columns, row(1), head, columns, row(9)]],
  ])("is its first answer and its last: %s", (loop, lines) => {
    expect(told(loop, ...lines)).toEqual([
      [ask, 1, row(1)],
      [ask, 2, row(9)],
    ]);
  });

  test("is so of a search, if the number of turns is known", () => {
    const search = `${ask} | grep INVALID`;
    expect(told(`for i in {1..2}; do ${search}; sleep 5; done`, row(1), row(9))).toEqual([
      [search, 1, row(1)],
      [search, 2, row(9)],
    ]);
    const endless = `while true; do ${search}; sleep 5; done`;
    for (const [loop, lines] of [
      [endless, [row(1), row(9)]],
      [`for i in 1 2; do ${search}; sleep 5; done`, [row(1), row(4), row(1), row(9)]],
    ] as const)
      expect(told(loop, ...lines).map(([command]) => command)).toEqual([loop]);
  });
});

describe("what a loop over the sockets printed", () => {
  const head = "State    Recv-Q    Send-Q       Local Address:Port       Peer Address:Port";
  const row = (waiting: number) => `LISTEN   ${waiting}       128                *:9200                *:*`;
  const told = (command: string, ...lines: string[]) => eachCommand(output(command, lines.join("\n")));

  test.each([
    "while sleep 5; do ss -ltn 'sport = :9200'; done",
    "while true; do date; ss -ltn 'sport = :9200'; sleep 1; done",
    "for i in 1 2 3; do ss -ltn 'sport = :9200'; sleep 1; done",
  ])("is its first table and its last: %s", (command) => {
    const samples = told(command, head, row(1), "17:20:01", head, row(2), head, row(129));
    expect(samples.map(({ command: one, sample, truncated, text }) => [one, sample, truncated, text.trim().split("\n").slice(1)])).toEqual([
      ["ss -ltn 'sport = :9200'", 1, false, [row(1)]],
      ["ss -ltn 'sport = :9200'", 2, false, [row(129)]],
    ]);
    expect(samples[1]?.text.split("\n").indexOf(row(129))).toBe(6);
  });

  test("of which the last was cut by Ctrl-C is not whole", () => {
    expect(told("while true; do ss -ltn; sleep 1; done", head, row(1), row(2), head, row(129)).map(({ truncated }) => truncated)).toEqual([false, true]);
  });

  test.each([
    ["one table", "while true; do ss -ltn; sleep 1; done", [head, row(1)]],
    ["of machines", "while read h; do ssh $h ss -ltn; done", [head, row(1), head, row(2)]],
    ["with another command", "while true; do ip route; ss -ltn; done", [head, row(1), head, row(2)]],
    ["with what is filtered", "while true; do ss -ltn | grep 9200; done", [head, row(1), head, row(2)]],
  ])("stays as it is: %s", (_, command, lines) => {
    expect(told(command, ...(lines as string[])).map(({ command: one }) => one)).toEqual([command]);
  });

  test("is found in a paste with words around it", () => {
    const loop = "while sleep 5; do ss -ltn 'sport = :9200'; done";
    const paste = ["time-outs of the API. `ss` shows again and again", "", "```", `# ${loop}`, head, row(129), head, row(129), "```", ""].join("\n");
    expect(outputsOf(paste).map(([command]) => command)).toEqual(["ss -ltn 'sport = :9200'", "ss -ltn 'sport = :9200'"]);
  });
});
