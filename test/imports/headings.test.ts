import { describe, expect, test } from "vitest";
import { readTranscript } from "../../functions/imports/transcript.ts";

/** One long text of a script: how it tells which command printed what. */

const OUTPUTS: readonly (readonly [string, string])[] = [
  ["date", "Fri Nov 20 14:12:31 UTC 2026"],
  ["ip rule", "0:\tfrom all lookup local"],
  ["ip route show table 2", "default via 10.0.0.1 dev eth1"],
  ["hostname", "node-a1"],
  ["ip route", "default via 10.0.0.1 dev eth0"],
  ["cat /proc/net/softnet_stat", "00000001 00000000 00000000"],
  ["sleep 10", ""],
  ["cat /proc/net/softnet_stat", "00000002 00000001 00000000"],
  ['journalctl -u kubelet --since "1 hour ago"', "Nov 20 14:11:09 node-a1 kubelet[1811]: E1120 14:11:09.112331    1811 x.go:1] x"],
];
const KNOWN = OUTPUTS.filter(([command]) => !/^(?:hostname|sleep|date)/.test(command));
const read = (heading: (command: string, i: number) => string): unknown[] =>
  readTranscript(OUTPUTS.map(([command, text], i) => `${heading(command, i)}\n${text}\n`).join("\n"), "collect.txt")
    .outputs.filter(({ command }) => !/^(?:hostname|sleep|date)/.test(command))
    .map(({ command, text }) => [command, text.trim()]);

describe("headings of a collection script", () => {
  test.each<[string, (command: string, i: number) => string]>([
    ["ip route:", (command) => `${command}:`],
    [">>> ip route", (command) => `>>> ${command}`],
    ["=== 07. ip route ===", (command, i) => `=== ${String(i).padStart(2, "0")}. ${command} ===`],
    ["=== [7/9] ip route ===", (command, i) => `=== [${i}/9] ${command} ===`],
    ["=== ip route (2026-11-20T14:12:31Z) ===", (command) => `=== ${command} (2026-11-20T14:12:31Z) ===`],
    ["==> 09:30:07 ip route", (command, i) => `==> 09:30:0${i} ${command}`],
    ["### [2026-11-20T09:30:07Z] ip route", (command, i) => `### [2026-11-20T09:30:0${i}Z] ${command}`],
    ["### ip route [rc=0]", (command) => `### ${command} [rc=0]`],
    ["Executing command: ip route", (command) => `Executing command: ${command}`],
    ["[INFO] Running: ip route", (command) => `[INFO] Running: ${command}`],
    ["• ip route", (command) => `• ${command}`],
    ["'ip route':", (command) => `'${command}':`],
    ["[ ip route ]", (command) => `[ ${command} ]`],
    ["<ip route>", (command) => `<${command}>`],
    ["── ip route ──", (command) => `── ${command} ──────`],
    ["(7/9) ip route", (command, i) => `(${i}/9) ${command}`],
    ["2026-11-20T09:30:07Z + ip route", (command, i) => `2026-11-20T09:30:0${i}Z + ${command}`],
    ["a box", (command) => `┌──────────────┐\n│ ${command} │\n└──────────────┘`],
    ["more", (command) => `::::::::::::::\n${command.replace(/[ /]/g, "_")}.txt\n::::::::::::::`],
    ["BEGIN ip route", (command) => `===== BEGIN ${command} =====`],
    ["Command: ip route, and Output: below it", (command) => `Command: ${command}\nOutput:`],
    ["# Command: ip route, and how it ended", (command) => `# Command: ${command}\n# Exit code: 0\n# -----`.replace("\n# -----", "")],
    ["==> ip_route.txt <==", (command) => `==> ${command.replace(/[ /]/g, "_")}.txt <==`],
  ])("%s", (_, heading) => expect(read(heading)).toEqual(KNOWN));

  test("### names two commands, and what stands below another one is no part of theirs", () => {
    const text =
      "### ethtool -S eth0\nNIC statistics:\n     rx_errors: 0\n\n### ethtool -i eth0\ndriver: ena\n\n### cat /etc/resolv.conf\nnameserver 10.0.0.2\n";
    const [first] = readTranscript(text, "paste.txt").outputs;
    expect(first?.text).not.toContain("driver");
  });

  test("of minikube logs name whose log it is, and what they do not name is no part of it", () => {
    const log = "E1006 21:29:03.925076       1 reflector.go:125] x: Failed to list *v1.Service: Unauthorized";
    const text = `==> Audit <==\n| start | x |\n\n==> kube-proxy [c85e3fad2f8e] <==\n${log}\n\n==> kernel <==\n 21:31:03 up 10 min\n\n* ==> kubelet <==\n${OUTPUTS.at(-1)?.[1]}\n`;
    expect(readTranscript(text, "issue.md").outputs.map(({ command, text: printed }) => [command, printed.trim()])).toEqual([
      ["kubectl -n kube-system logs kube-proxy", log],
      ["journalctl -u kubelet", OUTPUTS.at(-1)?.[1]],
    ]);
  });

  test("in bold, above fences, are taken without the signs", () => {
    const text = KNOWN.map(([command, printed]) => `**${command}**\n\`\`\`\n${printed}\n\`\`\`\n`).join("\n");
    expect(readTranscript(text, "issue.md").outputs.map(({ command, text: printed }) => [command, printed.trim()])).toEqual(KNOWN);
  });

  test("in bold, of another shell: what stands below is not the node's", () => {
    const text = [
      "**sysctl net.ipv4.ip_forward**\n```\nnet.ipv4.ip_forward = 1\n```",
      "**nsenter -t 48213 -n sysctl net.ipv4.ip_forward**\n\n```\nnet.ipv4.ip_forward = 0\n```",
    ].join("\n\n");
    const own = readTranscript(text, "issue.md").outputs.filter(({ command }) => String(command).startsWith("sysctl"));
    expect(own.map(({ text: printed }) => printed.trim())).toEqual(["net.ipv4.ip_forward = 1"]);
  });

  test("commands without any sign, each behind a blank line", () => {
    const outputs = KNOWN.filter(([command]) => !command.startsWith("journalctl"));
    expect(
      readTranscript(outputs.map(([command, text]) => `${command}\n${text}\n`).join("\n"), "x").outputs.map((output) => [output.command, output.text.trim()]),
    ).toEqual(outputs);
    const processes = "$ ps -e -o args\nCOMMAND\n\nip monitor\nkubelet\n\ntcpdump -ni eth0\nsshd\n";
    expect(readTranscript(processes, "x").outputs.map((output) => output.command)).toEqual(["ps -e -o args"]);
  });

  test("commands without any sign and without blank lines, where what stands below is what they print", () => {
    const outputs = [
      ["cat /proc/sys/net/ipv4/ip_forward", "1"],
      ["sudo cat /proc/sys/net/ipv4/tcp_mem", "770046\t1026729\t1540092"],
      ["cat /proc/net/sockstat", "sockets: used 14565\nTCP: inuse 35938 orphan 31564 tw 70529 alloc 35942 mem 1894"],
      ["ip -4 route show", "default via 10.0.0.1 dev eth0 proto dhcp"],
    ];
    expect(readTranscript(`${outputs.flat().join("\n")}\n`, "x").outputs.map((output) => [output.command, output.text.trim()])).toEqual(outputs);
    const processes = "$ ps -e -o args\nCOMMAND\nip monitor\nip route\ntcpdump -ni eth0\n/usr/bin/sysctl -w net.ipv4.ip_forward=1\n";
    expect(readTranscript(processes, "x").outputs.map((output) => output.command)).toEqual(["ps -e -o args"]);
  });

  test("one between signs on both sides is enough, and then the next ones are headings, too", () => {
    const text = "===== ip rule =====\n0:\tfrom all lookup local\n===== ethtool -g eth0 =====\nRing parameters for eth0:\n";
    expect(readTranscript(text, "x").outputs.map((output) => [output.command, output.text.trim()])).toEqual([["ip rule", "0:\tfrom all lookup local"]]);
  });

  test("a heading and below it the prompt with the same command are one output", () => {
    const text = "== ip rule ==\n\nroot@node1:~# ip rule\n0:\tfrom all lookup local\n";
    expect(readTranscript(text, "x").outputs.map((output) => [output.command, output.text.trim()])).toEqual([["ip rule", "0:\tfrom all lookup local"]]);
  });

  test("a block with the command alone, and the next one with its output, are one output", () => {
    const text = "```sh\nip rule\n```\n\nOutput:\n\n```\n0:\tfrom all lookup local\n```\n\n```sh\nip route\n```\n\nAnd nothing works.\n";
    expect(readTranscript(text, "x").outputs.map((output) => [output.command, output.text.trim()])).toEqual([
      ["ip rule", "0:\tfrom all lookup local"],
      ["ip route", ""],
    ]);
  });

  test("a log of another boot is not read by its lines", () => {
    const line = "Nov 20 09:31:02 w1 kernel: nf_conntrack: nf_conntrack: table full, dropping packet";
    for (const heading of ["$ ", "# ", "== ", "root@w1:~# sudo "]) {
      const text = `${heading}journalctl -k -b -1${heading === "== " ? " ==" : ""}\n${line}\n`;
      expect(readTranscript(text, "x").outputs.map((output) => output.command.replace("sudo ", ""))).toEqual(["journalctl -k -b -1"]);
    }
  });

  test.each(["on the node", "from worker 2", "(w1)", "of this machine"])("a command in backticks, and behind it where it ran: %s", (place) => {
    const text = KNOWN.map(([command, printed]) => `\`${command}\` ${place}:\n\n${printed}\n`).join("\n");
    expect(readTranscript(text, "x").outputs.map(({ command }) => command)).toEqual(KNOWN.map(([command]) => command));
  });

  test("tell when the script ran", () =>
    expect(readTranscript(OUTPUTS.map(([command, text]) => `=== ${command} ===\n${text}\n`).join("\n"), "collect.txt").outputs[0]?.command).toBe("date"));

  test("a mail's quotes are none, and neither are lines of an output that end with a colon", () => {
    const quoted = ">> ip route\n>> default via 10.0.0.1 dev eth0\n>> ip rule\n>> 0:\tfrom all lookup local\n";
    expect(readTranscript(quoted, "mail.txt").outputs.every(({ command }) => !command.startsWith(">"))).toBe(true);
    const yaml = "$ cat /var/lib/kubelet/config.yaml\nkind: KubeletConfiguration\nauthentication:\nauthorization:\nlogging:\nresolvConf: /etc/resolv.conf\n";
    expect(readTranscript(yaml, "x.txt").outputs).toHaveLength(1);
  });
});

test("two files that `head` or `tail` named are two outputs, and those of one folder of logs are one", () => {
  const commands = (text: string): string[] => readTranscript(text, "paste.txt").outputs.map(({ command }) => command);
  const saved = "==> iptables-legacy-save.txt <==\n*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n\n==> ip_rule.txt <==\n0:\tfrom all lookup local\n";
  expect(commands(saved)).toEqual(["iptables-legacy-save", "ip rule"]);
  const logs =
    "# tail -n 1 /var/log/a/dmesg.log /var/log/a/uptime.log\n==> /var/log/a/dmesg.log <==\n[    1.0] x\n\n==> /var/log/a/uptime.log <==\n 03:11:02 up 1 day\n";
  expect(commands(logs)).toHaveLength(1);
});
