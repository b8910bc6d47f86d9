import { describe, expect, test } from "vitest";
import { asPrinted } from "../../functions/imports/as-printed.ts";
import { readTranscript } from "../../functions/imports/transcript.ts";
import { decodeText } from "../../functions/transports/archive.ts";

const ESCAPE = String.fromCharCode(27);
const SESSION = [
  "root@node1:~# ip rule",
  "0:\tfrom all lookup local",
  "32766:\tfrom all lookup main",
  "",
  "root@node1:~# ip -s link show dev eth0",
  '2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000 alias "uplink"',
  "root@node1:~# ",
];
const EXPECTED = [
  ["ip rule", "\n0:\tfrom all lookup local\n32766:\tfrom all lookup main\n"],
  ["ip -s link show dev eth0", `\n\n\n\n\n${SESSION[5]}\n`],
];
const read = (text: string): unknown[] => readTranscript(text, "x.txt").outputs.map((output) => [output.command, output.text]);
const all = (margin: (i: number) => string): string => SESSION.map((line, i) => `${margin(i)}${line}`).join("\n");

describe("what stands in front of every line", () => {
  test.each<[string, string]>([
    ["numbers", all((i) => `${String(i + 1).padStart(6)}\t`)],
    ["numbers and a blank", all((i) => `${i + 1} `)],
    ["numbers and nothing between", all((i) => `${i + 9}`)],
    ["an editor's numbers", all((i) => `${String(i + 1).padStart(3)} | `)],
    ["numbers of grep", all((i) => `${i + 1}:`)],
    ["a job of GitHub", all((i) => `2026-11-20T09:30:00.${1230000 + i}Z `)],
    ["a job of GitHub with its step", all((i) => `collect\tRun it\t2026-11-20T09:30:0${i}.1230000Z `)],
    ["Jenkins", all(() => "[2026-11-20T09:30:00.123Z] ")],
    ["GitLab", all((i) => `2026-11-20T09:30:0${i}.123456Z 01O `)],
    ["a clock", all((i) => `09:30:0${i}  `)],
    ["ts", all((i) => `Nov 20 09:30:0${i} `)],
    ["a service", all((i) => `Nov 20 09:30:0${i} node1 collect.sh[4711]: `)],
    ["a container", all((i) => `2026-11-20T09:30:0${i}.123456789Z stdout F `)],
    ["docker compose", all(() => "collector-1  | ")],
    ["kubectl logs --prefix", all(() => "[pod/debug-x7k2p/debug] ")],
    ["stern", all(() => "debug-x7k2p debug ")],
    [
      "a quotation in HTML",
      all(() => "&gt; ")
        .replaceAll("<", "&lt;")
        .replaceAll("UP>", "UP&gt;"),
    ],
  ])("%s", (_, text) => expect(read(text)).toEqual(EXPECTED));

  test("the times of a log are its own, also where its messages name commands", () => {
    const log = [
      "2026-11-20T09:30:00.1Z I1120 09:30:00.100000       1 server.go:1] starting ip route watcher",
      "2026-11-20T09:30:01.1Z W1120 09:30:01.100000       1 x.go:2] x",
    ];
    expect(asPrinted(log.join("\n"))).toEqual(log);
    const journal = ["Nov 20 09:30:00 n1 sh[7]: + x", "Nov 20 09:30:01 n1 kernel: nf_conntrack: table full, dropping packet"];
    expect(asPrinted(journal.join("\n"))).toEqual(journal);
    const numbers = ["1 ip route", "2 a", "4 b"];
    expect(asPrinted(numbers.join("\n"))).toEqual(numbers);
  });
});

describe("a recorded session", () => {
  const typed = (keys: string): string =>
    `Script started on 2026-11-20 09:30:00+00:00 [TERM="xterm"]\n${ESCAPE}[?2004h${ESCAPE}]0;root@node1: ~\u0007root@node1:~# ${keys}\r\n${ESCAPE}[?2004l\r0:\tfrom all lookup local\r\n`;
  test.each([
    ["a letter taken back", `ip rulx\b${ESCAPE}[Ke`],
    ["a command fetched from the history", `ls -la\b\b\b\b\b\b${ESCAPE}[Kip rule`],
    ["a letter put in", `ip rle\b\b${ESCAPE}[1@u`],
    ["the beginning of the line", "xp rule\rroot@node1:~# i"],
  ])("%s", (_, keys) => expect(read(typed(keys)).map((output) => (output as string[])[0])).toEqual(["ip rule"]));

  test("shown by cat -v, and without the escape character", () => {
    const text = typed("ip rule");
    const seen = text.replaceAll("\r", "^M").replaceAll(ESCAPE, "^[").replaceAll("\u0007", "^G");
    expect(read(seen)).toEqual(read(text));
    expect(read(`[?2004hroot@node1:~# ip rule\n[?2004l0:\tfrom all lookup local\n`)).toEqual(
      EXPECTED.slice(0, 1).map(([command]) => [command, "\n0:\tfrom all lookup local\n"]),
    );
  });

  test("an expression is no control character", () => {
    const line = `root@node1:~# grep -HsE '^[[:space:]]*(nameserver|search)' /etc/resolv.conf`;
    expect(asPrinted(line)).toEqual([line]);
  });
});

describe("signs that are none of a keyboard", () => {
  test.each([
    ["no-break spaces", (text: string) => text.replaceAll(" ", "\u00a0")],
    ["invisible ones", (text: string) => text.replaceAll(/^/gm, "\u200b")],
    ["typographic quotes", (text: string) => text.replace('"uplink"', "“uplink”")],
    ["typographic dashes", (text: string) => text.replace(" -s ", " –s ")],
    ["names of signs", (text: string) => text.replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&#34;")],
    ["two carriage returns", (text: string) => text.replaceAll("\n", "\r\r\n")],
    [
      "the width of a window",
      (text: string) =>
        text
          .split("\n")
          .map((line) => line.padEnd(140))
          .join("\n"),
    ],
    ["two blanks behind each line", (text: string) => text.replaceAll(/$/gm, "  ")],
  ])("%s", (_, change) => expect(read(change(SESSION.join("\n")))).toEqual(EXPECTED));

  test("stay where plain ones stand beside them", () => {
    const lines = [`{"msg":"cannot find “eth7”"}`, "a &lt;b&gt;, 3 < 4"];
    expect(asPrinted(lines.join("\n"))).toEqual(lines);
  });
});

test.each([
  ["{code:bash}", "{code}"],
  ["{noformat}", "{noformat}"],
  ["[code]", "[/code]"],
  ["#+begin_src sh", "#+end_src"],
])("a block between %s and %s", (begin, end) =>
  expect(read(`Hello,\n\n${begin}\n$ ip rule\n0:\tfrom all lookup local\n${end}\n\nAny idea?\n`)).toEqual([["ip rule", "\n\n\n\n0:\tfrom all lookup local\n"]]),
);

test("what kubectl, oc and ssh say on the way is no output", () => {
  const text = `$ kubectl debug node/node1 -it --image=busybox -- chroot /host ip rule
Creating debugging pod node-debugger-node1-x7k2p with container debugger on node node1.
If you don't see a command prompt, try pressing enter.
0:\tfrom all lookup local
$ vagrant ssh node1 -c 'ip route'
default via 10.0.0.1 dev eth0
Connection to 127.0.0.1 closed.
`;
  expect(readTranscript(text, "x").outputs.map((output) => output.text.trim())).toEqual(["0:\tfrom all lookup local", "default via 10.0.0.1 dev eth0"]);
});

test("a text in UTF-16, whichever byte comes first, and with its mark lost", () => {
  const text = "$ ip rule\r\n0:\tfrom all lookup local\r\n";
  const little = Buffer.from(text, "utf16le");
  const big = Buffer.from(little).swap16();
  expect([Buffer.concat([Buffer.from([0xff, 0xfe]), little]), Buffer.concat([Buffer.from([0xfe, 0xff]), big]), little].map(decodeText)).toEqual([
    text,
    text,
    text,
  ]);
  expect(decodeText(Buffer.from("plain\0text with a zero"))).toBe("plain\0text with a zero");
});

describe("blocks of other pages", () => {
  const RULES = "0:\tfrom all lookup local\n32766:\tfrom all lookup main";
  const TIME =
    "MS Name/IP address         Stratum Poll Reach LastRx Last sample\n=====================================================================\n^? 10.32.0.1                     0  10     0   11d   +4211ms[+4211ms] +/-   22ms";
  const indented = (text: string): string => text.replaceAll(/^/gm, "    ");
  test.each([
    ["AsciiDoc", `.ip rule\n----\n${RULES}\n----\n\n[source,console]\n.chronyc sources\n....\n${TIME}\n....\n`],
    ["reStructuredText", `ip rule\n-------\n\n::\n\n${indented(RULES)}\n\nchronyc sources\n---------------\n\n.. code-block:: console\n\n${indented(TIME)}\n`],
  ])("%s", (_, text) => {
    expect(readTranscript(text, "x.txt").outputs.map((output) => [output.command, output.text.trim().split("\n").length])).toEqual([
      ["ip rule", 2],
      ["chronyc sources", 3],
    ]);
  });
  test("a list of files with a dot in front is none", () => {
    const text = "# ls -a\n.bashrc\n.profile\n# ip rule\n0:\tfrom all lookup local\n";
    expect(readTranscript(text, "x.txt").outputs.map(({ command, text: printed }) => [command, printed.trim()])).toEqual([
      ["ls -a", ".bashrc\n.profile"],
      ["ip rule", "0:\tfrom all lookup local"],
    ]);
  });
});

describe("a log of GitHub Actions", () => {
  const step = (command: string, ...printed: string[]): string[] => [
    `##[group]Run ${command}`,
    command,
    "shell: /usr/bin/bash -e {0}",
    "env:",
    "  A: b",
    "##[endgroup]",
    ...printed,
  ];
  const group = (title: string, ...printed: string[]): string[] => [`##[group]${title}`, ...printed, "##[endgroup]"];
  const timed = (lines: readonly string[]): string => lines.map((line, i) => `2026-11-20T09:30:00.${1230000 + i}Z ${line}\n`).join("");
  const printedBy = (text: string): string[][] => readTranscript(text, "x.txt").outputs.map((output) => [output.command, output.text.trim()]);
  const [first, second] = [
    ["ip rule", "0:\tfrom all lookup local"],
    ["cat /proc/net/softnet_stat", "00000002 00000001 00000000"],
  ] as const;
  test.each([
    ["steps of one command", timed([...step(...first), ...step("echo done", "done"), ...step(...second)])],
    ["groups of one step", timed([...step("./collect.sh"), ...group(...first), ...group(...second)])],
    ["groups without the times", [...group(...first), ...group(...second)].join("\n")],
  ])("%s", (_, text) => expect(printedBy(text).filter(([command = ""]) => !/^echo|collect/.test(command))).toEqual([first, second]));

  test("a step of several commands is none of them", () => {
    const script = [
      "##[group]Run ip rule",
      "ip rule",
      "ip route",
      "shell: /usr/bin/bash -e {0}",
      "##[endgroup]",
      "0:\tfrom all lookup local",
      "default via 10.0.0.1 dev eth0",
    ];
    expect(printedBy(timed([...script, ...step(...second)]))).not.toContainEqual(["ip rule", "0:\tfrom all lookup local\ndefault via 10.0.0.1 dev eth0"]);
  });
});
