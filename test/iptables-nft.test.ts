import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { asSaved } from "../functions/facts/iptables-nft.ts";
import { read } from "./readings.ts";

/** The tables of iptables-nft, read from nft's own listing of them. */
const fixture = (name: string): string => readFileSync(new URL(`facts/iptables/${name}.txt`, import.meta.url), "utf8");
const inChain = (rule: string): string =>
  asSaved(`table ip filter {\n\tchain FORWARD {\n\t\ttype filter hook forward priority filter; policy drop;\n\t\t${rule}\n\t}\n}\n`, "ipv4").split("\n")[3] ??
  "";

test.each([
  ["ct state invalid counter packets 5 bytes 300 drop", "[5:300] -A FORWARD -m conntrack --ctstate INVALID -j DROP"],
  ["meta mark & 0x00004000 == 0x00004000 counter packets 0 bytes 0 accept", "[0:0] -A FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT"],
  ["mark and 0x4000 != 0x4000 return", "-A FORWARD -m mark ! --mark 0x4000/0x4000 -j RETURN"],
  ['iifname != "docker0" oifname "lxc*" accept # handle 7', "-A FORWARD ! -i docker0 -o lxc+ -j ACCEPT"],
  [
    "ip saddr != 127.0.0.0/8 ct state != established,related ct status != dnat drop",
    "-A FORWARD ! -s 127.0.0.0/8 -m conntrack ! --ctstate ESTABLISHED,RELATED,DNAT -j DROP",
  ],
  ["tcp dport { 80, 443 } jump KUBE-X", "-A FORWARD -p tcp -m multiport --dports 80,443 -j KUBE-X"],
  ["reject with icmp type host-prohibited", "-A FORWARD -j REJECT --reject-with icmp-host-prohibited"],
  ["# xt_comment # xt_mark counter packets 1 bytes 60 drop", "[1:60] -A FORWARD -m mark -j DROP"],
  ['xt match "comment" xt target "MASQUERADE"', "-A FORWARD -j MASQUERADE"],
  ["meta mark set ct mark", "-A FORWARD -j CONNMARK --restore-mark"],
  ["meta mark 0x80 counter packets 1 bytes 60 ct mark set meta mark & 0x00000080", "[1:60] -A FORWARD -m mark --mark 0x80 -j CONNMARK --save-mark"],
  ["pkttype broadcast drop", '-A FORWARD -m nft --nft "pkttype broadcast" -j DROP'],
  ["ip saddr { 192.0.2.1 drop", "nft: ip saddr { 192.0.2.1 drop"],
])("%s", (rule, saved) => {
  expect(inChain(rule)).toBe(saved);
});

test("each line stands where nft printed it, and policies are those of the hooks", () => {
  const text = fixture("nft-ruleset");
  const saved = asSaved(text, "ipv6").split("\n");
  expect(saved).toHaveLength(text.split("\n").length);
  expect(saved.filter((line) => line.startsWith(":FORWARD"))).toEqual([":FORWARD DROP"]);
});

test("a table with hooks that iptables does not have is not its table", () => {
  const text = "table ip filter {\n\tchain input {\n\t\ttype filter hook input priority 0; policy drop;\n\t\tip saddr 192.0.2.1 drop\n\t}\n}\n";
  expect(asSaved(text, "ipv4").trim()).toBe("");
});

test("beside iptables' own output nft's listing adds nothing for the tables that it shows", () => {
  const save = "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A FORWARD -m mark --mark 0x1 -j DROP\nCOMMIT\n";
  const listing =
    "table ip filter {\n\tchain FORWARD {\n\t\ttype filter hook forward priority filter; policy accept;\n\t\tcounter packets 9 bytes 9 drop\n\t}\n}\n";
  const { value } = read("iptables", { command: "iptables-save", text: save }, { command: "nft list ruleset", text: listing });
  expect(value.rows).toHaveLength(1);
  expect(value.rows[0]).toMatchObject({ mark: "0x1", output: 0 });
  expect(value.chains.some((chain: { translated?: boolean }) => chain.translated)).toBe(false);
});

test("a chain that iptables showed does not hide the others of its table in nft's listing", () => {
  const { value } = read(
    "iptables",
    {
      command: "iptables -nvL FORWARD",
      text: "Chain FORWARD (policy ACCEPT 0 packets, 0 bytes)\n pkts bytes target     prot opt in     out     source               destination\n    9   540 KUBE-FORWARD  all  --  *      *       0.0.0.0/0            0.0.0.0/0\n",
    },
    {
      command: "nft list ruleset",
      text: "table ip filter {\n\tchain FORWARD {\n\t\ttype filter hook forward priority filter; policy accept;\n\t\tcounter packets 9 bytes 540 jump KUBE-FORWARD\n\t}\n\n\tchain KUBE-FORWARD {\n\t\tct state invalid counter packets 3 bytes 180 drop\n\t}\n}\n",
    },
  );
  expect(value.chains.map(({ name, complete }: { name: string; complete: boolean }) => [name, complete])).toEqual([
    ["FORWARD", true],
    ["KUBE-FORWARD", true],
  ]);
  expect(value.rows.map(({ chain, output }: { chain: string; output: number }) => [chain, output])).toEqual([
    ["FORWARD", 0],
    ["KUBE-FORWARD", 1],
  ]);
});

test.each(['xt match "conntrack"', "# xt_conntrack", 'meta l4proto tcp xt match "tcp"'])("what %s asks is not known: its chain is not complete", (words) => {
  const text = `table ip filter {\n\tchain FORWARD {\n\t\ttype filter hook forward priority filter; policy accept;\n\t\t${words} counter packets 9 bytes 540 drop\n\t}\n}\n`;
  const { value, complete } = read("iptables", { command: "nft list ruleset", text });
  expect(value.rows).toHaveLength(1);
  expect(value.chains[0]).toMatchObject({ name: "FORWARD", complete: false });
  expect(complete).toBe(false);
});

test("a listing whose end is missing holds no complete table", () => {
  const text = fixture("nft-ruleset");
  const { value } = read("iptables", { command: "nft list ruleset", text: text.slice(0, text.indexOf("chain KUBE-SERVICES")) });
  expect(value.chains.filter((chain: { table: string; complete: boolean }) => chain.table === "filter" && chain.complete)).toEqual([]);
});
