import { expect, test } from "vitest";
import { captureOf } from "../functions/facts/capture.ts";
import { unadorned, withoutEmphasis } from "../functions/facts/paste.ts";
import { readFacts } from "../functions/facts/read.ts";
import { unwrapped } from "../functions/facts/unwrap.ts";

test.each([
  ["Chain FORWARD (**policy DROP 22 packets, 1848 bytes**)", "Chain FORWARD (policy DROP 22 packets, 1848 bytes)"],
  ["169.254.1.1 dev eth0  _**FAILED**_", "169.254.1.1 dev eth0  FAILED"],
  ["IPAM: IPv4: 5/254 allocated from ****", "IPAM: IPv4: 5/254 allocated from ****"],
  [" ** 123 printk messages dropped **", " ** 123 printk messages dropped **"],
  ["rsync /a/**/b /c/**/d", "rsync /a/**/b /c/**/d"],
])("emphasis that Markdown left in an output: %s", (line, bare) => expect(withoutEmphasis(line)).toBe(bare));

test("what a terminal or a web page added to an output goes, and lines keep their numbers", () => {
  expect(unadorned("```console\n\u001b[32mdefault\u001b[0m via 10.0.0.1 dev eth0\n```\n")).toBe("\ndefault via 10.0.0.1 dev eth0\n\n");
  expect(unadorned("1\n[root@node-1 ~]# \n")).toBe("1\n");
  expect(unadorned("1\nops@node-1:~$")).toBe("1\n");
});

test("a comment on the last line is no waiting prompt", () => {
  for (const text of ["COMMIT\n# Completed on Fri Nov 20 09:14:07 2026\n", "# ip rule\n0:\tfrom all lookup local\n", ""]) expect(unadorned(text)).toBe(text);
});

test("what a web page or a message put in front of all lines goes, and what only some have stays", () => {
  expect(unadorned("    1: lo:\n        link/loopback\n\n    2: eth0:\n")).toBe("1: lo:\n    link/loopback\n\n2: eth0:\n");
  expect(unadorned("\t1: lo:\n\t\tlink/loopback\n")).toBe("1: lo:\n\tlink/loopback\n");
  expect(unadorned("1: lo:\n    link/loopback\n")).toBe("1: lo:\n    link/loopback\n");
  expect(unadorned("  1\n 2\n")).toBe(" 1\n2\n");
  expect(unadorned("a\u00a0\u00a0b\n")).toBe("a  b\n");
});

test("the frame of a window goes where it is around all lines, and the headline of watch", () => {
  expect(unadorned("┌─ Logs ─┐\n│ level=info msg=a   │\n│ level=fatal msg=b  │\n└────┘\n")).toBe("\nlevel=info msg=a\nlevel=fatal msg=b\n\n");
  const tree = "├─1 a\n│ └─2 b\nx\n";
  expect(unadorned(tree)).toBe(tree);
  expect(unadorned("Every 1.0s: conntrack -C     n1: Sat Nov 21\n\n12\n")).toBe("\n\n12\n");
});

test("the sign of a quotation goes where it is in front of all lines, and HTML's names of signs are those signs", () => {
  expect(unadorned("> 0:\tfrom all lookup local\n>\n> 32766:\tfrom all lookup main\n")).toBe("0:\tfrom all lookup local\n\n32766:\tfrom all lookup main\n");
  expect(unadorned("> ip rule\n0:\tfrom all lookup local\n")).toBe("> ip rule\n0:\tfrom all lookup local\n");
  expect(unadorned("2: eth0: &lt;UP,LOWER_UP&gt; mtu 1500\n  -&gt; 10.0.0.1:80 &amp;&quot;\n")).toBe('2: eth0: <UP,LOWER_UP> mtu 1500\n  -> 10.0.0.1:80 &"\n');
});

test("what an arrow says of a line goes, and short arrows are the output's own", () => {
  expect(unadorned("10.4.3.0/24 via 10.0.0.4 dev eth0 #<--- not ours\n10.0.0.0/24 dev eth0   <-- right\ndefault via 10.0.0.1 dev eth0 ← this one\n")).toBe(
    "10.4.3.0/24 via 10.0.0.4 dev eth0\n10.0.0.0/24 dev eth0\ndefault via 10.0.0.1 dev eth0\n",
  );
  for (const text of ["10.4.1.2:4951 (host) <- kube-system/coredns:8181 to-stack FORWARDED\n", "<-- the next lines\n"]) expect(unadorned(text)).toBe(text);
});

test("a prompt goes from JSON, and stays where it may be a comment", () => {
  expect(unadorned('root@node-1:~# ip -j route\n[{"dst":"default"}]\nroot@node-1:~#\n')).toBe('\n[{"dst":"default"}]');
  expect(unadorned("$ ip -j route\n[]\n")).toBe("\n[]");
  for (const text of ["# Warning: iptables-legacy tables present\n[0:0] -A FORWARD -j ACCEPT\n", "$ dmesg\n[    0.000000] Linux\n"])
    expect(unadorned(text)).toBe(text);
});

test("an answer without a line break is not taken for a prompt", () => {
  expect(unadorned("ipvsroot@node1:~# ")).toBe("ipvsroot@node1:~# ");
});

const gone = (text: string, ...numbers: number[]): string[] =>
  unwrapped(
    text,
    numbers.map((line) => ({ line, text: "" })),
  );

test("lines that a window cut are put together, and keep their numbers", () => {
  const first = `default via 10.0.0.1 dev eth0 proto dhcp src 10.0.0.5 metric 100 mtu 1400 advmss 1`;
  const cut = `${first.slice(0, 80)}\n${first.slice(80)}360\n10.0.0.0/24 dev eth0\n`;
  expect(gone(cut, 2)).toContain(`${first}360\n\n10.0.0.0/24 dev eth0\n`);
  const soft = `${first.slice(0, 64)}\n${first.slice(65)}360\n10.0.0.0/24 dev eth0\n`;
  expect(gone(soft, 2)).toContain(`${first}360\n\n10.0.0.0/24 dev eth0\n`);
});

test("a word that is longer than a line does not say how long a line is", () => {
  const lines = [
    "PROCESS ONE, which was started with many words that have no room here at",
    "--a-word-that-is-longer-than-any-line-of-the-window-in-which-it-was-shown-by-the-program",
    "all, and ends.",
  ];
  expect(gone(`${lines.join("\n")}\n`, 2, 3)).toContain(`${lines.join(" ")}\n\n\n`);
  // a brace alone closes what stands above it
  for (const text of gone(`${"x".repeat(70)} ${"y".repeat(9)}\n}\n`, 2)) expect(text).not.toContain(" }");
});

test("lines of a table that are all of one length are no cut ones", () => {
  const row = (name: string) => `${name.padEnd(72)}eth0`;
  const table = [row("Address"), row("gateway"), row("10.0.0.7")].join("\n");
  expect(gone(`${table}\n`, 2)).toEqual([]);
  // and where a shorter line stands behind them, a reading without their rows is none
  const { readings } = readFacts(captureOf(index, () => ({ text: ARP, truncated: false })));
  const neighbors = readings.get("neighbor");
  expect(neighbors?.value).toMatchObject({ rows: [{ line: 3, address: "10.0.0.7" }] });
  expect(neighbors?.complete).toBe(false);
});
const index = { schema: "netcheck.capture/1" as const, target: { name: "node1" }, outputs: [{ command: "arp -v", file: "outputs/arp.txt" }] };
const ARP = `Address                  HWtype  HWaddress           Flags Mask            Iface
gateway                  ether   02:00:0a:00:00:01   C                     ens192
10.0.0.7                 ether   02:00:0a:00:00:07   C                     ens192
Entries: 2\tSkipped: 0\tFound: 2
`;

test("the command itself in the first line is no line of its answer, behind a prompt of any form or none", () => {
  const route = "default via 10.0.0.1 dev eth0\n";
  const read = (text: string) =>
    readFacts(
      captureOf({ schema: "netcheck.capture/1", target: { name: "n" }, outputs: [{ command: "ip route", file: "outputs/x.txt" }] }, () => ({
        text,
        truncated: false,
      })),
    ).readings.get("route");
  for (const line of [
    "ip route",
    " ip route",
    "node7 net.d # ip route",
    "<root@node7>% ip route",
    "### ip route ###",
    "==== ip route ====",
    "+ ip route",
    "Command: ip route",
    "# ip route:",
  ]) {
    const reading = read(`${line}\n${route}`);
    expect(reading?.unparsed).toEqual([]);
    expect(reading?.value).toMatchObject({ rows: [{ line: 2, prefix: "0.0.0.0/0" }] });
  }
  for (const line of ["here is ip route", "ip -6 route", "### ip -6 route ###"]) expect(read(`${line}\n${route}`)?.unparsed).toHaveLength(1);
});

test("nothing is put together where all was read, or where no line is long", () => {
  expect(gone(`${"x".repeat(80)}\nrest\n`)).toEqual([]);
  expect(gone("short\nrest\n", 2)).toEqual([]);
});
