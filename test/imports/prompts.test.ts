import { describe, expect, test } from "vitest";
import { plainPrompts } from "../../functions/imports/prompts.ts";
import { readTranscript } from "../../functions/imports/transcript.ts";

const SESSION: readonly (readonly [string, string])[] = [
  ["ip rule", "0:\tfrom all lookup local"],
  ["sleep 5", ""],
  ["hostname", "node1"],
  ["ip route show table 2", "default via 10.0.0.1 dev eth1"],
  ["cat /proc/net/softnet_stat", "00000001 00000000 00000000"],
];
const KNOWN = SESSION.filter(([command]) => !/^(?:sleep|hostname)/.test(command));

describe("prompts that people adorn", () => {
  test.each<[string, (i: number) => string]>([
    ["[14:12:31] root@node1:~# ", () => "[14:12:31] root@node1:~# "],
    ["[2026-11-20 14:12:31] root@node1:~# ", () => "[2026-11-20 14:12:31] root@node1:~# "],
    ["14:12:31 [root@node1 ~]# ", () => "14:12:31 [root@node1 ~]# "],
    ["root@node1 [7] ~ # ", (i) => `root@node1 [${i}] ~ # `],
    ["Kali", () => "┌──(root㉿node1)-[~]\n└─# "],
    ["two lines, rounded", () => "╭─ me@node1 ~\n╰─❯ "],
    ["zsh", () => "node1% "],
    ["netshoot's image", () => " node1  ~  "],
    ["starship", () => "me in node1 in ~\n❯ "],
    ["oh-my-zsh with a branch", (i) => `➜  infra git:(main)${i % 2 === 0 ? " ✗" : ""} `],
    ["an environment of Python", () => "(base) root@node1:~# "],
    ["a context of kubectl", () => "(⎈|prod:kube-system) $ "],
    ["how the last one ended", (i) => `root@node1:~ [${i}]# `],
    ["a branch in front of the sign", () => "me@node1:~/infra (main)$ "],
    ["fish", () => "me@node1 ~> "],
    ["BusyBox", () => "~ # "],
    ["PowerShell", () => "PS /root> "],
    ["without a blank", () => "root@node1:~#"],
    ["a sign that mails quote with", () => "> "],
    ["masked", () => "root@<redacted>:~# "],
    ["fino", () => "╭─me at node1 in ~\n╰─○ "],
  ])("%s", (_, prompt) =>
    expect(
      readTranscript(SESSION.map(([command, text], i) => `${prompt(i)}${command}\n${text}\n`).join("\n"), "session.txt")
        .outputs.filter(({ command }) => !/^(?:sleep|hostname)/.test(command))
        .map(({ command, text }) => [command, text.trim()]),
    ).toEqual(KNOWN),
  );

  test.each([
    "**root@node1:~# ip rule**",
    "**node1 ~ # ip rule:**",
    "__[root@node1 ~]# ip rule__",
    "*$ ip rule*",
    "- `root@node1:~# ip rule`",
    "### **[root@node1 ~]# ip rule**",
  ])("with the command made bold or code, above a block of what it printed: %s", (line) => {
    const { outputs } = readTranscript(`Here it is.\n\n${line}\n\`\`\`\n0:\tfrom all lookup local\n\`\`\`\n`, "paste.txt");
    expect(outputs.map(({ command, text }) => [command, text.trim()])).toEqual([["ip rule", "0:\tfrom all lookup local"]]);
  });

  test("one is enough where it names the user, and what waits at the end is no output", () => {
    const text = "(base) root@node1:~# ip rule\n0:\tfrom all lookup local\n(base) root@node1:~# ";
    expect(readTranscript(text, "x").outputs.map((output) => [output.command, output.text.trim()])).toEqual([["ip rule", "0:\tfrom all lookup local"]]);
    expect(readTranscript(text, "x").target).toBe("node1");
  });

  test("beside one known command the others that people type tell a prompt, too", () => {
    const text = "⎈ prod ~ ❯ for n in a b; do ssh $n hostname; done\na\nb\n⎈ prod ~ ❯ ip rule\n0:\tfrom all lookup local";
    expect(readTranscript(text, "x").outputs.map(({ command }) => command)).toContain("ip rule");
  });

  test.each(["~ ❯ ", "~/infra ❯ ", "~ $ ", "~ » "])("of a folder in front of the sign one is enough: %s", (prompt) => {
    expect(readTranscript(`${prompt}ip rule\n0:\tfrom all lookup local`, "x").outputs.map(({ command }) => command)).toEqual(["ip rule"]);
  });

  test("a variable in a command is no sign", () => {
    const loop = 'root@node1:~> for t in 100; do echo "table $t"; ip route show table $t; done; ip rule';
    expect(plainPrompts([loop, "table 100", "0:\tfrom all lookup local"])[0]).toBe(loop.replace("> ", "# "));
  });

  test("other lines stay as they are", () => {
    const lines = [
      "<summary>ip route</summary>",
      "<summary>ip rule</summary>",
      "> ip route",
      "> default via 10.0.0.1 dev eth0",
      "> ip rule",
      "> 0: from all lookup local",
      "a <- b # ip route",
      "100% packet loss",
      "w1% unknown-program",
      "[14:12:31] kernel: eth0: link down",
      "└─ a tree of something",
      "├── nodes",
      "**the default is via 10.0.0.1 > see above**",
      "**a `#` in bold**",
      "14:12:31.112331 IP 10.0.0.1 > 10.0.0.2: ICMP",
      "[2026-11-20 14:12:31] something #7 happened",
    ];
    expect(plainPrompts(lines)).toEqual(lines);
  });
});

describe("quotes in a command", () => {
  test.each([
    ["of the other kind between quotes", `curl -s localhost:9100/metrics | grep -E '^node_network_up\\{device="(eno1|eno2)'`],
    ["escaped", `journalctl -k --no-pager -n 200 -o cat | grep "said \\"link is down"`],
  ])("%s: what follows is no part of it", (_, command) => {
    const { outputs } = readTranscript(`root@node1:~# ${command}\nnode_network_up 1\nroot@node1:~# ip rule\n0:\tfrom all lookup local`, "paste.txt");
    expect(outputs.map((output) => output.command)).toEqual([command, "ip rule"]);
  });

  test("one that is not closed goes on", () => {
    const { outputs } = readTranscript(
      "root@node1:~# curl -s localhost:9100/metrics | grep -E '^node_network_up|\n^node_network_carrier'\nnode_network_up 1",
      "paste.txt",
    );
    expect(outputs.map((output) => output.command)).toEqual(["curl -s localhost:9100/metrics | grep -E '^node_network_up| ^node_network_carrier'"]);
  });
});
