import { describe, expect, test } from "vitest";
import { readTranscript } from "../../functions/imports/transcript.ts";

const RULES = "0: from all lookup local\n32766: from all lookup main\n32767: from all lookup default";
const commandsOf = (text: string): string[] => readTranscript(text, "paste.txt").outputs.map(({ command }) => command);

describe("a line that says in words which command printed what follows", () => {
  test.each([
    ["ip rule output:", "ip rule"],
    ["ip rule shows only:", "ip rule"],
    ["Result of ip rule on wk-1:", "ip rule"],
    ["The output of ip rule is:", "ip rule"],
    ["**ip rule**", "ip rule"],
  ])("%s", (line, command) => {
    expect(commandsOf(`It fails since the upgrade.\n\n${line}\n${RULES}\n`)).toEqual([command]);
  });

  test.each(["The node that fails shows:", "Result of the upgrade:", "Nobody gives:"])("%s", (line) => {
    expect(commandsOf(`It fails since the upgrade.\n\n${line}\nall pods are gone\n`)).toEqual([]);
  });
});

describe("a sentence between the block of a command and that of its output", () => {
  const COUNTERS = "bw_in_allowance_exceeded: 0\nbw_out_allowance_exceeded: 14368";
  const block = (text: string): string => `\`\`\`\n${text}\n\`\`\``;
  const shownOf = (sentence: string, shown: string) =>
    readTranscript([block("ethtool -S ens5 | grep allowance"), sentence, block(shown)].join("\n\n"), "paste.txt").outputs.map(
      ({ command, text }) => `${command}: ${text.trim()}`,
    );
  const said = `ethtool -S ens5 | grep allowance: ${COUNTERS}`;

  test.each(["I get this:", "The output shows that packets were dropped here:", "On that node we saw:", "Output:"])("%s", (sentence) => {
    expect(shownOf(sentence, COUNTERS)).toEqual([said]);
  });

  test.each(["A healthy node should show:", "If it is throttled, you'll see:", "Then I changed the config, which gives:", "The event shows:", "It was slow."])(
    "%s tells nothing of the output",
    (sentence) => {
      expect(shownOf(sentence, COUNTERS)).not.toContain(said);
    },
  );

  test("the block of another command's output", () => {
    expect(shownOf("I get this:", RULES)).toContain(`ip rule: ${RULES}`);
  });
});

describe("a host's name and a sign before a command", () => {
  test.each(["lb1 # ip rule", "lb1# ip rule", "lb1> ip rule", "lb1 $ ip rule"])("%s", (prompt) => {
    expect(commandsOf(`${prompt}\n${RULES}\n\n${prompt.replace("lb1", "lb2")}\n${RULES}\n`)).toEqual(["ip rule"]);
    expect(readTranscript(`${prompt}\n${RULES}\n`, "paste.txt").target).toBe("lb1");
  });

  test.each(["it worked # ip rule was fine", "lb1 > ip rule", "lb1 # reboot"])("%s is none", (line) => {
    expect(commandsOf(`${line}\nand so on\n`)).toEqual([]);
  });
});

describe("a bare sign before a command that netcheck does not read", () => {
  const commandsBehind = (...lines: string[]) => commandsOf(lines.join("\n"));

  test("is a prompt where it is one elsewhere in the text", () => {
    const paste = ["$ ip rule", RULES, "$ kubelet-probe --all", "10.0.0.9 is reachable", "$ ip -br link", "eth0 UP 02:00:00:00:00:01 <UP>"];
    expect(commandsBehind(...paste)).toEqual(["ip rule", "kubelet-probe --all", "ip -br link"]);
  });

  test.each([
    ["once", ["$ ip rule", RULES, "$ kubelet-probe --all", "10.0.0.9 is reachable"], ["ip rule"]],
    ["a price", ["$ ip rule", RULES, "$ ip -br link", "eth0 UP 02:00:00:00:00:01 <UP>", "$ 5 a month"], ["ip rule", "ip -br link"]],
    ["with options, even once", ["$ ip rule", RULES, "$ ethtool -g eth0", "Ring parameters for eth0:"], ["ip rule", "ethtool -g eth0"]],
    [
      "in a container, even once",
      ["$ ip rule", RULES, "$ nerdctl exec web sysctl net.ipv4.ip_forward", "net.ipv4.ip_forward = 0"],
      ["ip rule", "nerdctl exec web sysctl net.ipv4.ip_forward"],
    ],
    ["date with options", ["$ ip rule", RULES, "$ date -u", "Sun Nov 22 08:13:10 UTC 2026"], ["ip rule", "date -u"]],
    ["a comment on a date", ["# ip rule", RULES, "# date of the upgrade: Friday"], ["ip rule"]],
  ])("%s", (_, paste, commands) => {
    expect(commandsBehind(...(paste as string[]))).toEqual(commands);
  });
});

describe("a question for some routes, or a search in a file, between two prompts", () => {
  const ask = (command: string, ...more: string[]) =>
    commandsOf([`$ date -u`, "Mon Nov 23 07:20:01 UTC 2026", `$ ${command}`, ...more, "$ ip rule", RULES].join("\n"));

  test.each([
    "grep resolvConf /var/lib/kubelet/config.yaml",
    "ip -4 route show default",
    "ip route show table 110",
    "sudo ip r show default",
    "bpftool cgroup show /sys/fs/cgroup effective",
  ])("%s printed nothing", (command) => {
    expect(ask(command)).toContain(command);
  });

  test("of several in a row nobody tells", () => {
    expect(ask("ip route show default", "$ ip -6 route show default", "$ ip neigh")).not.toContain("ip -6 route show default");
  });

  test("all routes are never none", () => {
    expect(ask("ip route")).not.toContain("ip route");
  });
});

describe("a shell in a container", () => {
  const inside = (shell: string, command = "ip rule"): string[] =>
    commandsOf([`$ ${shell}`, `/ # ${command}`, RULES, "/ # exit", "$ ip neigh", "10.0.0.1 dev eth0 FAILED"].join("\n"));

  test.each(["kubectl exec -it web-1 -- sh", "docker exec -it web bash", "kubectl exec web-1 -it -- chroot /data sh"])("%s is the pod's", (shell) => {
    expect(inside(shell)).toEqual(["nsenter -t 0 -n ip rule", "ip neigh"]);
  });

  test("each command of a line is the pod's", () => {
    expect(inside("kubectl exec -it web-1 -- sh", "ip rule; ip route && ip neigh")).toEqual([
      "nsenter -t 0 -n ip rule; nsenter -t 0 -n ip route; nsenter -t 0 -n ip neigh",
      "ip neigh",
    ]);
  });

  test.each([
    "kubectl -n kube-system exec -it cilium-4tq7h -- bash",
    "kubectl exec -it dbg -- chroot /host bash",
    "kubectl exec -it dbg -- nsenter -t 1 -m -u -n -i bash",
  ])("%s is the node's", (shell) => {
    expect(inside(shell)).toEqual(["ip rule", "ip neigh"]);
  });

  test("of a pod of the host network only the network is the node's", () => {
    expect(inside("kubectl -n kube-system exec -it cilium-4tq7h -- bash", "ps aux; ip rule")).toEqual(["nsenter -t 0 -n ps aux; ip rule", "ip neigh"]);
  });

  test("`chroot /host` in it leads to the node", () => {
    const paste = ["$ kubectl exec -it dbg -- sh", "/ # ip rule", RULES, "/ # chroot /host", "sh-5.1# ip rule", RULES, "sh-5.1# exit", "/ # ip rule", RULES];
    expect(commandsOf(paste.join("\n"))).toEqual(["nsenter -t 0 -n ip rule", "ip rule", "nsenter -t 0 -n ip rule"]);
  });
});

describe("a page of HTML", () => {
  const read = (text: string): string[][] => readTranscript(text, "paste.txt").outputs.map(({ command, text: printed }) => [command, printed.trim()]);

  test("a single word in a block is no language", () =>
    expect(
      read(
        "<h3>cat /proc/sys/net/netfilter/nf_conntrack_max</h3>\n<pre><code>262144\n</code></pre>\n<h3>ip rule</h3>\n<pre><code>0: from all lookup local\n</code></pre>\n",
      ),
    ).toEqual([
      ["cat /proc/sys/net/netfilter/nf_conntrack_max", "262144"],
      ["ip rule", "0: from all lookup local"],
    ]));

  test("tags with attributes around the block hide no command", () =>
    expect(
      read(
        `<div class="highlight"><pre class="x"><code>root@n1:~# date -u\nMon Nov 23 03:45:44 UTC 2026\nroot@n1:~# ip rule\n0: from all lookup local\n</code></pre></div>\n`,
      ),
    ).toEqual([
      ["date -u", "Mon Nov 23 03:45:44 UTC 2026"],
      ["ip rule", "0: from all lookup local"],
    ]));

  test("a command with quotes in a heading", () =>
    expect(read(`<h3>sysctl -a | grep 'rp_filter'</h3>\n<pre><code>net.ipv4.conf.all.rp_filter = 0\n</code></pre>\n<p>That is all.</p>\n`)).toEqual([
      ["sysctl -a | grep 'rp_filter'", "net.ipv4.conf.all.rp_filter = 0"],
    ]));
});

describe("words between a command and the block with its output", () => {
  const read = (...parts: string[]): string[][] => readTranscript(parts.join("\n"), "paste.txt").outputs.map(({ command, text }) => [command, text.trim()]);
  const MESSAGE = "[2833841.216211] nf_conntrack: nf_conntrack: table full, dropping packet";

  test("do not part the two", () => {
    expect(read("`dmesg | tail`", "", "During load testing seeing lots of drops", "```", MESSAGE, "```")).toEqual([["dmesg | tail", MESSAGE]]);
  });

  test("what another program printed is not taken for it", () => {
    expect(read("`dmesg | tail`", "", "shows nothing of interest", "```", RULES, "```")).toContainEqual(["ip rule", RULES]);
  });
});

test("a command that is by chance as long as the widest lines of a narrow text goes on nowhere", () => {
  const once =
    "[root@n1 ~]# date; ethtool -S p1p1\nTue Nov 17 10:20:00 UTC 2026\nNIC statistics:\n     [0]: rx_ucast_packets: 888122\n     rx_discards: 511203\n";
  expect(readTranscript(once + once, "paste.txt").outputs.map(({ command }) => command)).toEqual(["date; ethtool -S p1p1", "date; ethtool -S p1p1"]);
});

test("a neighbour entry that somebody deleted is kept, although that prints nothing", () => {
  const text =
    "root@n1:~# ip neigh show dev eth0\n10.0.0.7 lladdr 02:00:00:00:00:07 STALE\nroot@n1:~# ip neigh del 10.0.0.7 dev eth0\nroot@n1:~# ip rule\n0: from all lookup local\n";
  expect(readTranscript(text, "paste.txt").outputs.map(({ command }) => command)).toContain("ip neigh del 10.0.0.7 dev eth0");
});

test.each([
  ["a file that it reads", "the second column of /proc/net/softnet_stat grows", "cat /proc/net/softnet_stat", "# Column 2: packets that found the queue full"],
  ["a command in signs", "so I ran `conntrack -S` twice", "sudo conntrack -S", "# one line per CPU"],
])("the words above a block name %s, and remarks in the block stand above the prompt with the same: no output of its own", (_, words, command, remark) => {
  const text = `${words}:\n\n\`\`\`\n${remark}\n$ ${command}\nfirst\n$ ${command}\nsecond\n\`\`\`\n`;
  expect(readTranscript(text, "paste.txt").outputs.map(({ text: shown }) => shown.trim())).toEqual(["first", "second"]);
});

describe("a shell in a container", () => {
  const read = (...parts: string[]): string[][] => readTranscript(parts.join("\n"), "paste.txt").outputs.map(({ command, text }) => [command, text.trim()]);
  const OWN = "default via 10.4.0.1 dev eth0";
  const NODES = "default via 192.0.2.1 dev ens3";

  test("was left where the node's prompt from before comes again", () => {
    expect(
      read("[core@w-1 ~]$ sudo docker exec -it app-7 /bin/sh", "# ip route", OWN, "[core@w-1 ~]$ ip route", NODES, "[core@w-1 ~]$ ip rule", RULES).slice(-2),
    ).toEqual([
      ["ip route", NODES],
      ["ip rule", RULES],
    ]);
  });

  test("a shell in another namespace of the node has the node's prompt, too", () => {
    expect(read("root@w-1:~# ip netns exec blue bash", "root@w-1:~# ip route", OWN)).toEqual([["nsenter -t 0 -n ip route", OWN]]);
  });
});

test("`iptables-legacy-save` above a block is what it shows, although both backends sign alike", () => {
  const text = "`iptables-legacy-save`\n\n```\n# Generated by iptables-save v1.8.7 on Mon Nov 23 10:00:00 2026\n*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n```\n";
  expect(readTranscript(text, "paste.txt").outputs.map(({ command }) => command)).toEqual(["iptables-legacy-save"]);
});
