import { expect, test } from "vitest";
import { read } from "./readings.ts";

const SAVE = `-A KUBE-SEP-AAAAAAAAAAAAAAAA -s 10.0.1.5/32 -m comment --comment "kube-system/kube-dns:dns" -j KUBE-MARK-MASQ
-A KUBE-SEP-AAAAAAAAAAAAAAAA -p udp -m comment --comment "kube-system/kube-dns:dns" -m udp -j DNAT --to-destination 10.0.1.5:53
-A KUBE-SERVICES -d 10.96.0.10/32 -p udp -m comment --comment "kube-system/kube-dns:dns cluster IP" -m udp --dport 53 -j KUBE-SVC-TCOU7JCQXEZGVUNU
-A KUBE-SVC-TCOU7JCQXEZGVUNU -m comment --comment "kube-system/kube-dns:dns -> 10.0.1.5:53" -j KUBE-SEP-AAAAAAAAAAAAAAAA
`;
const whole = (command: string, text = SAVE, truncated = false): string[] =>
  read("iptables", { command, text, truncated })
    .value.chains.filter((chain: { complete: boolean }) => chain.complete)
    .map((chain: { name: string }) => chain.name);

test.each(["grep kube-dns:dns", "grep -w 'kube-system/kube-dns:dns'", "egrep -i kube-dns", "grep -n -F kube-system/", "grep kube-dns:dns | grep -v tcp"])(
  "a search for the service leaves out no rule of its chains: %s",
  (filter) => {
    expect(whole(`iptables-save -t nat | ${filter}`)).toEqual(["KUBE-SEP-AAAAAAAAAAAAAAAA", "KUBE-SVC-TCOU7JCQXEZGVUNU"]);
  },
);

test.each([
  "grep 10.0.1.5",
  "grep -E '10.96.0.10|10.0.1.5'",
  "grep kube-dns:dns | head -20",
  "grep -m 3 kube-dns:dns",
  "grep -v kube-dns:dns",
  "grep kube-dns:dns | grep -v random",
])("any other search may leave out some: %s", (filter) => {
  expect(whole(`iptables-save -t nat | ${filter}`)).toEqual([]);
});

test.each([
  ["grep KUBE-SVC-TCOU", ["KUBE-SVC-TCOU7JCQXEZGVUNU"]],
  ["grep -E 'KUBE-SVC-TCOU7JCQXEZGVUNU|KUBE-SEP'", ["KUBE-SEP-AAAAAAAAAAAAAAAA", "KUBE-SVC-TCOU7JCQXEZGVUNU"]],
])("a search for the name of a service's chain leaves out no rule of it: %s", (filter, chains) => {
  expect(whole(`iptables-save -t nat | ${filter}`)).toEqual(chains);
});

test("nothing is told of an output that was cut, or that holds another command", () => {
  expect(whole("iptables-save -t nat | grep kube-dns:dns", SAVE, true)).toEqual([]);
  expect(whole("iptables-save -t nat | grep kube-dns:dns", `${SAVE}root@node1:~# iptables-save -t nat | grep 10.0.1.5\n`)).toEqual([]);
});

test("a chain whose last rule is missing, or that two services share, is not whole", () => {
  const withoutEnd = SAVE.replace('10.0.1.5:53" -j KUBE-SEP', '10.0.1.5:53" -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP');
  expect(whole("iptables-save -t nat | grep kube-dns", withoutEnd)).toEqual(["KUBE-SEP-AAAAAAAAAAAAAAAA"]);
  expect(whole("iptables-save -t nat | grep kube-dns", SAVE.replace('"kube-system/kube-dns:dns" -j', '"kube-system/kube-dns:tcp" -j'))).toEqual([
    "KUBE-SVC-TCOU7JCQXEZGVUNU",
  ]);
});

const FORWARD = `-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A FORWARD -m comment --comment "cilium-feeder: CILIUM_FORWARD" -j CILIUM_FORWARD
-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
`;

test.each([
  ["grep -E -- '-A (FORWARD|CILIUM_FORWARD) '", ["FORWARD"]],
  ["grep -i -- '-a forward'", ["FORWARD"]],
  ["egrep 'A KUBE-FORWARD|A FORWARD'", ["FORWARD", "KUBE-FORWARD"]],
  ["grep 'INVALID\\|A FORWARD'", ["FORWARD"]],
])("a search for the names of chains leaves out no rule of them: %s", (filter, chains) => {
  expect(whole(`iptables-save | ${filter}`, FORWARD)).toEqual(chains);
});

test.each([
  "grep FORWARD",
  "grep 'j KUBE-FORWARD'",
  "grep -E 'INVALID|CILIUM'",
  "grep 'KUBE-FORWARD|A FORWARD'",
  "grep FORWARD | head -3",
  "grep -v FORWARD",
  "grep -m 2 FORWARD",
  "grep -E 'FORW.*'",
])("a search for anything else may leave out some: %s", (filter) => {
  expect(whole(`iptables-save | ${filter}`, FORWARD)).toEqual([]);
});

test("a search that finds the chain's own line shows it, and one of the same name begins the next table", () => {
  const text = `:FORWARD ACCEPT [0:0]\n:FORWARD DROP [5:300]\n:KUBE-FORWARD - [0:0]\n${FORWARD}`;
  const { chains, rows } = read("iptables", { command: "iptables-save | grep FORWARD", text }).value;
  expect(chains).toMatchObject([
    { name: "FORWARD", table: "unknown", policy: "ACCEPT", rules: 0, complete: true },
    { name: "FORWARD", table: "filter", policy: "DROP", rules: 2, complete: true },
    { name: "KUBE-FORWARD", table: "filter", complete: true },
  ]);
  expect(rows.map((row: { table: string; chain: string }) => `${row.table} ${row.chain}`)).toEqual(["filter FORWARD", "filter FORWARD", "filter KUBE-FORWARD"]);
});

test("a list does not name the chain in front of each rule", () => {
  const list = "Chain FORWARD (policy ACCEPT)\ntarget     prot opt source               destination\nKUBE-FORWARD  all  --  anywhere             anywhere\n";
  expect(whole("iptables -L | grep FORWARD", list)).toEqual([]);
});
