import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Capture, Output } from "../../functions/facts/capture.ts";
import { facts } from "../../functions/facts/index.ts";
import { compare, WORTH_A_LOOK } from "../../functions/rules/compare.ts";
import { moves } from "../../functions/rules/compare-order.ts";
import { abstracted } from "../../functions/rules/compare-text.ts";
import { MOMENTARY, UNKNOWN, WEIGHED, weightOf } from "../../functions/rules/compare-weights.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";
import { captureOf, output } from "./captures.ts";
import { taken } from "./taken.ts";

/** A node against healthy peers: the decisive difference comes first, noise does not come at all, and what was not seen is never a difference. */

const rules = fileURLToPath(new URL("../../runbooks/rules/", import.meta.url));
const read = (path: string): Promise<Capture> => readCaptureFiles(`${rules}${path}`);
const against = (here: Capture, ...there: Capture[]) =>
  compare(
    { name: "node", capture: here },
    there.map((capture, index) => ({ name: `peer${index + 1}`, capture })),
  );
const weighty = (here: Capture, ...there: Capture[]) => against(here, ...there).differences.filter(({ score }) => score >= WORTH_A_LOOK);

/** Another node of the same pool: the same in everything but what belongs to one machine. */
function sibling(capture: Capture, number: number): Capture {
  const hex = (text: string): string => text.replace(/[0-9a-f]/g, (digit) => ((Number.parseInt(digit, 16) + number * 3) % 16).toString(16));
  const own = (text: string): string =>
    text
      .replace(/(?<![0-9a-f:])(?!00:00:00|ff:ff:ff)[0-9a-f]{2}((?::[0-9a-f]{2}){5})(?![0-9a-f:])/g, (_, rest: string) => `02${hex(rest)}`)
      .replace(/fe80::[0-9a-f:]{4,}/g, (address) => `fe80::${hex(address.slice(6))}`)
      .replace(
        /\b(?!169\.254\.|127\.|0\.|255\.|224\.)(\d{1,3}\.\d{1,3}\.)(\d{1,3})(\.\d{1,3})\b/g,
        (_, net: string, third: string, host: string) => `${net}${(Number(third) + number) % 250}${host}`,
      )
      .replace(/\b(veth|lxc)([0-9a-f]{6,})\b/g, (_, kind: string, id: string) => `${kind}${hex(id)}`)
      .replace(/\b(KUBE-(?:SEP|SVC)-)([A-Z0-9]{16})\b/g, (_, kind: string, id: string) => `${kind}${id.slice(number)}${id.slice(0, number)}`)
      .replace(/"(ifindex|id|prog_id|map_ids?|loaded_at|bytes|packets)":(\d+)/g, (_, key: string, value: string) => `"${key}":${Number(value) + number * 1000}`)
      .replace(/\[(\d+):(\d+)\]/g, (_, packets: string, bytes: string) => `[${Number(packets) + number * 17}:${Number(bytes) + number * 1700}]`)
      .replace(/(nf_conntrack_count = )\d+/, `$1${number * 111}`);
  return { ...capture, outputs: capture.outputs.map((item) => ({ ...item, text: own(item.text) })) };
}

/** The five incidents: what an expert would point at. */
const INCIDENTS: readonly [rule: string, decisive: RegExp, line: RegExp][] = [
  [
    "linklocal-route-on-bond-member",
    /^Only here \(route table main\): unicast 169\.254\.0\.0\/16 interface eth[01]/,
    /"dst":"169\.254\.0\.0\/16","dev":"eth[01]"/,
  ],
  [
    "kube-forward-before-cilium",
    /^Order in filter FORWARD: CILIUM_FORWARD is number 11 of 11 here, behind .*; on .* it is number 1, before them$/,
    /-j CILIUM_FORWARD$/,
  ],
  ["stale-socket-lb-program", /^Once more here \(bpf-cgroup \/sys\/fs\/cgroup cgroup_inet4_connect\): cil_sock4_connect/, /"name":"cil_sock4_connect"/],
  ["bridge-netfilter-off", /^net\.bridge\.bridge-nf-call-iptables: 0 here, 1 on /, /^net\.bridge\.bridge-nf-call-iptables = 0$/],
  ["stale-ebtables-nat", /^Only here \(ebtables nat PREROUTING\): .*-j arpreply/, /-j arpreply --arpreply-mac/],
];

describe("the five incidents, live captures", () => {
  test.each(INCIDENTS)("%s: the decisive difference comes first, with its lines", async (rule, decisive, line) => {
    const [fault, healthy, fixed] = await Promise.all(["fault", "healthy", "fixed"].map((state) => read(`${rule}/fixtures/lab-${state}`)));
    for (const peers of [[healthy], [healthy, fixed]]) {
      const { differences } = against(fault as Capture, ...(peers as Capture[]));
      expect(differences[0]?.what).toMatch(decisive);
      expect(differences[0]?.here.some(({ text }) => line.test(text))).toBe(true);
      expect(differences[0]?.usualIn).toEqual({ peers: peers.length, of: peers.length });
      // and it stands alone: nothing else is worth a look
      expect(differences.filter(({ score }) => score >= WORTH_A_LOOK)).toHaveLength(1);
    }
  });

  test.each(INCIDENTS)("%s: healthy and fixed do not differ in anything that matters", async (rule) => {
    const [healthy, fixed] = await Promise.all(["healthy", "fixed"].map((state) => read(`${rule}/fixtures/lab-${state}`)));
    expect(weighty(healthy as Capture, fixed as Capture)).toEqual([]);
    expect(weighty(fixed as Capture, healthy as Capture)).toEqual([]);
  });

  test.each(INCIDENTS)("%s: the same among peers with addresses, MACs, ids, endpoints and pods of their own", async (rule, decisive) => {
    const [fault, healthy, fixed] = await Promise.all(["fault", "healthy", "fixed"].map((state) => read(`${rule}/fixtures/lab-${state}`)));
    const peers = [1, 2, 3].map((number) => sibling(healthy as Capture, number));
    // they do differ as texts
    expect(peers[0]?.outputs.filter(({ text }, index) => text !== healthy?.outputs[index]?.text).length).toBeGreaterThan(5);
    const found = weighty(fault as Capture, ...peers);
    expect(found.map(({ usualIn }) => usualIn)).toEqual([{ peers: 3, of: 3 }]);
    expect(found[0]?.what).toMatch(decisive);
    expect(weighty(healthy as Capture, ...peers)).toEqual([]);
    expect(weighty(fixed as Capture, ...peers)).toEqual([]);
  });

  test.each(INCIDENTS)("%s: a healthy node among two healthy and a faulty peer is like most", async (rule) => {
    const [fault, healthy, fixed] = await Promise.all(["fault", "healthy", "fixed"].map((state) => read(`${rule}/fixtures/lab-${state}`)));
    expect(weighty(healthy as Capture, fault as Capture, fixed as Capture, healthy as Capture)).toEqual([]);
  });
});

test("the write-up of S2 alone, as pasted: the order of the chains is the first difference, and the only one", async () => {
  const [bad, good] = await Promise.all(["bad-host", "healthy"].map((name) => read(`kube-forward-before-cilium/fixtures/writeup-${name}`)));
  const { differences, notCompared } = against(bad as Capture, good as Capture);
  expect(differences).toHaveLength(1);
  expect(differences[0]).toMatchObject({ fact: "iptables", change: "order", usualIn: { peers: 1, of: 1 } });
  expect(differences[0]?.what).toBe(
    "Order in filter FORWARD: CILIUM_FORWARD is number 11 of 11 here, behind KUBE-PROXY-FIREWALL, KUBE-FORWARD, KUBE-SERVICES and 7 more; on the peer it is number 1, before them",
  );
  expect(differences[0]?.here.map(({ line }) => line)).toEqual([3, 4, 13]);
  expect(differences[0]?.there.map(({ line, peer }) => [line, peer])).toEqual([3, 4, 5].map((line) => [line, "peer1"]));
  // chains of which only a part was pasted say nothing
  expect(notCompared).toEqual([{ fact: "iptables", reason: expect.stringContaining("it shows only a part") }]);
});

describe("nothing is concluded from what was not seen", () => {
  test.each(INCIDENTS)("%s: a node does not differ from itself, whatever output is lost, fails or is cut", async (rule) => {
    const whole = await read(`${rule}/fixtures/lab-fault`);
    expect(against(whole, whole).differences).toEqual([]);
    for (const [index, lost] of whole.outputs.entries()) {
      if (!taken(16, rule, lost.command, lost.sample)) continue;
      // a quarter of the outputs, each in one of four ways
      const ways = [
        () => against(lose(whole, lost), whole),
        () => against(fail(whole, lost), whole),
        () => against(cut(whole, lost), whole),
        () => against(whole, cut(whole, lost)),
      ];
      const way = (index + INCIDENTS.findIndex(([name]) => name === rule)) % ways.length;
      expect([lost.command, way, ways[way]?.().differences]).toEqual([lost.command, way, []]);
    }
  });

  const lose = (capture: Capture, lost: Output): Capture => ({ ...capture, outputs: capture.outputs.filter((item) => item !== lost) });
  const change = (capture: Capture, lost: Output, more: Partial<Output>): Capture => ({
    ...capture,
    outputs: capture.outputs.map((item) => (item === lost ? { ...item, ...more } : item)),
  });
  const fail = (capture: Capture, lost: Output): Capture => change(capture, lost, { text: "", stderr: "Permission denied", exitCode: 126 });
  const cut = (capture: Capture, lost: Output): Capture =>
    change(capture, lost, { text: lost.text.slice(0, Math.floor(lost.text.length / 2)), truncated: true });

  test("a fact that one side lacks is named, with the reason", () => {
    const here = captureOf(output("ip route", "default via 10.0.0.1 dev eth0\n"));
    const there = captureOf(output("lsmod", "Module                  Size  Used by\nbr_netfilter           32768  0\n"));
    const { differences, notCompared } = against(here, there);
    expect(differences).toEqual([]);
    expect(notCompared.map(({ fact }) => fact)).toEqual(["module", "route"]);
    expect(notCompared[0]?.reason).toContain("node: the capture holds no output of `lsmod`");
  });

  test("other commands: what one of them does not show is not missing", () => {
    const here = captureOf(output("ip route", "default via 10.0.0.1 dev eth0\n"));
    const there = captureOf(output("ip route show table all", "default via 10.0.9.1 dev eth0\nblackhole 192.168.0.0/16 table 100\n"));
    const { differences, notCompared } = against(here, there);
    expect(differences).toEqual([]);
    expect(notCompared).toEqual([{ fact: "route", reason: expect.stringContaining("only what both sides show") }]);
  });

  test("without a peer there is nothing to compare with", () => {
    expect(() => compare({ name: "node", capture: captureOf() }, [])).toThrow("no peer");
  });
});

describe("the majority of the peers is the measure", () => {
  const node = (forward: string, mtu = 1500): Capture =>
    captureOf(
      output("sysctl net.ipv4.ip_forward", `net.ipv4.ip_forward = ${forward}\n`),
      output(
        "ip -j link show",
        `[{"ifindex":2,"ifname":"eth0","flags":["UP","LOWER_UP"],"mtu":${mtu},"operstate":"UP","address":"02:00:00:00:00:0${mtu % 7}"}]`,
      ),
    );

  test("the more of the peers agree, the higher the score", () => {
    const all = against(node("0"), node("1"), node("1"), node("1")).differences;
    const most = against(node("0"), node("1"), node("1"), node("0")).differences;
    expect(all[0]).toMatchObject({ fact: "sysctl", what: "net.ipv4.ip_forward: 0 here, 1 on all 3 peers", usualIn: { peers: 3, of: 3 } });
    expect(most[0]).toMatchObject({ what: "net.ipv4.ip_forward: 0 here, 1 on 2 of 3 peers", usualIn: { peers: 2, of: 3 } });
    expect(all[0]?.why).toContain("passes on");
    expect(all[0]?.score).toBeGreaterThan(most[0]?.score ?? 1);
    expect(against(node("0"), node("1"), node("0"), node("0")).differences).toEqual([]);
  });

  test("a peer that lacks a fact is left out of the count, and named", () => {
    const { differences, notCompared } = against(node("0"), node("1"), captureOf(output("ip -j link show", "[]")), node("1"));
    expect(differences[0]).toMatchObject({ what: "net.ipv4.ip_forward: 0 here, 1 on all 2 peers", usualIn: { peers: 2, of: 2 } });
    expect(notCompared).toEqual([{ fact: "sysctl", reason: expect.stringMatching(/^compared without peer2: the capture holds no output of `sysctl/) }]);
  });

  test("peers that do not agree among themselves are no measure: counted, not shown", () => {
    const { differences, suppressed } = against(node("1", 1500), node("1", 9001), node("1", 1450));
    expect(differences).toEqual([]);
    expect(suppressed.noMajority).toBe(1);
  });

  test("what matters more comes first", () => {
    expect(against(node("0", 1400), node("1"), node("1")).differences.map(({ fact }) => fact)).toEqual(["sysctl", "link"]);
  });
});

describe("noise", () => {
  const save = (pods: readonly [chain: string, address: string][]): string =>
    [
      "*nat",
      ":PREROUTING ACCEPT [0:0]",
      ...pods.map(([chain]) => `:${chain} - [0:0]`),
      ...pods.map(
        ([chain, address], index) =>
          `[${index}:${index * 60}] -A ${chain} -p tcp -m comment --comment "prod/${index}:" -m tcp -j DNAT --to-destination ${address}:8080`,
      ),
      "COMMIT",
      "",
    ].join("\n");

  test("endpoints, counters, MACs, pods' interfaces and addresses of the node do not differ", () => {
    const here = captureOf(
      output("iptables-save -c", save([["KUBE-SEP-AAAAAAAAAAAAAAA2", "10.1.0.7"]])),
      output("ip -j link show", '[{"ifindex":7,"ifname":"veth0a1b2c3d","flags":["UP"],"mtu":1450,"operstate":"UP","address":"02:00:00:00:00:01"}]'),
      output("ip route", "default via 10.0.0.1 dev eth0 proto dhcp src 10.0.0.5 metric 100\n10.1.0.7 dev veth0a1b2c3d scope link\n"),
      output("ip neigh", "10.0.0.1 dev eth0 lladdr 02:00:00:00:00:09 REACHABLE\n"),
    );
    const there = captureOf(
      output(
        "iptables-save -c",
        save([
          ["KUBE-SEP-BBBBBBBBBBBBBBB2", "10.1.4.9"],
          ["KUBE-SEP-CCCCCCCCCCCCCCC2", "10.1.4.10"],
        ]),
      ),
      output("ip -j link show", '[{"ifindex":19,"ifname":"veth99887766","flags":["UP"],"mtu":1450,"operstate":"UP","address":"02:00:00:00:00:02"}]'),
      output("ip route", "default via 10.0.4.1 dev eth0 proto dhcp src 10.0.4.5 metric 100\n10.1.4.9 dev veth99887766 scope link\n"),
      output("ip neigh", "10.0.4.1 dev eth0 lladdr 02:00:00:00:00:08 STALE\n"),
    );
    const { differences, suppressed } = against(here, there);
    expect(differences).toEqual([]);
    expect(suppressed.momentary).toEqual(["neighbor"]);
  });

  test.each([
    ["-A KUBE-SEP-OAQPXBQCZ2RBB4R7 -j DNAT --to-destination 100.96.54.247:80", "-A KUBE-SEP-* -j DNAT --to-destination <ipv4>:80"],
    ["-A cali-tw-cali1234567890a -m comment --comment cali:0i8pjzKKPyA34aQD -j ACCEPT", "-A cali-tw-* -m comment --comment <id> -j ACCEPT"],
    ["CNI-DN-0123456789abcdef01234", "CNI-DN-*"],
    ["net.ipv4.conf.lxc1f00d32aa.rp_filter", "net.ipv4.conf.lxc*.rp_filter"],
    ["fe80::2cce:c1ff:febb:f4d9/64 2001:db8::5/128 10.1.2.0/24", "<fe80>/64 <ipv6> <ipv4>/24"],
    ["/kubepods.slice/pod0a1b2c3d_0000_1111_2222_333344445555.slice/cri-containerd-0123456789abcdef", "/kubepods.slice/pod*.slice/cri-containerd-<id>"],
    ["a:96:8:1:cb:c6", "<mac>"],
  ])("%s is taken for %s", (text, same) => {
    expect(abstracted(text)).toBe(same);
  });

  test.each([
    "0.0.0.0/0",
    "169.254.0.0/16",
    "127.0.0.1",
    "fe80::/64",
    "::/0",
    "lxc+",
    "lxc_health",
    "cali-FORWARD",
    "KUBE-FORWARD",
    "br-int",
    "eth0",
    "0x4000/0x4000",
    "prod/export:",
    "default",
  ])("%s is the same on every node", (text) => {
    expect(abstracted(text)).toBe(text);
  });
});

describe("what can be seen", () => {
  const RULES = ["-A INPUT -i lo -j ACCEPT", "-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT"];
  const saved = (rules: readonly string[], policy = "ACCEPT"): Capture =>
    captureOf(output("iptables-save", ["*filter", `:INPUT ${policy} [0:0]`, ":FORWARD ACCEPT [0:0]", ...rules, "COMMIT", ""].join("\n")));

  test("a rule too many, one too few, another policy: each with the lines of its side", () => {
    const drop = "-A INPUT -p tcp -m tcp --dport 443 -j DROP";
    const [extra] = against(saved([...RULES, drop]), saved(RULES)).differences;
    expect(extra).toMatchObject({ change: "only-here", here: [{ text: drop, line: 6 }], there: [], notIn: "iptables-save" });
    const [missing] = against(saved(RULES), saved([...RULES, drop])).differences;
    expect(missing).toMatchObject({ change: "missing-here", here: [], there: [{ text: drop, line: 6, peer: "peer1" }], notIn: "iptables-save" });
    const [policy] = against(saved(RULES, "DROP"), saved(RULES)).differences;
    expect(policy).toMatchObject({ change: "changed", what: "INPUT (iptables chains table filter): policy DROP here, ACCEPT on the peer" });
    expect(policy?.here[0]?.text).toBe(":INPUT DROP [0:0]");
    expect(policy?.there[0]?.text).toBe(":INPUT ACCEPT [0:0]");
  });

  test("a rule that is there twice, once on the peers", () => {
    const [again] = against(saved([...RULES, ...RULES.slice(1)]), saved(RULES)).differences;
    expect(again).toMatchObject({ what: expect.stringMatching(/^Once more here \(iptables filter INPUT\)/), here: [{ line: 5 }, { line: 6 }] });
  });

  test("a whole backend that only here holds a policy of DROP", () => {
    const empty = captureOf(output("iptables-save", ""));
    expect(against(saved([], "DROP"), empty).differences[0]?.what).toBe(
      "Only here (iptables chains table filter): INPUT policy DROP; the peer does not have it",
    );
    expect(against(saved([]), empty).differences).toEqual([]);
  });

  test("a key that the kernel does not know on one side", () => {
    const key = "net.bridge.bridge-nf-call-iptables";
    const gone = captureOf(
      output(`sysctl ${key}`, "", { exitCode: 255, stderr: `sysctl: cannot stat /proc/sys/${key.replaceAll(".", "/")}: No such file or directory` }),
    );
    const [difference] = against(gone, captureOf(output(`sysctl ${key}`, `${key} = 1\n`))).differences;
    expect(difference).toMatchObject({ what: `${key}: (absent) here, 1 on the peer`, here: [{ text: expect.stringContaining("cannot stat") }] });
  });

  test("a module, a link's MTU, a lost default route, a policy rule", () => {
    const lsmod = (names: readonly string[]) =>
      output("lsmod", ["Module                  Size  Used by", ...names.map((name) => `${name}           32768  0`), ""].join("\n"));
    expect(against(captureOf(lsmod(["overlay"])), captureOf(lsmod(["overlay", "br_netfilter"]))).differences[0]?.what).toBe(
      "Missing here (module): br_netfilter; the peer has it",
    );
    const link = (mtu: number) =>
      output(
        "ip link",
        `2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu ${mtu} qdisc mq state UP mode DEFAULT group default qlen 1000\n    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n`,
      );
    expect(against(captureOf(link(1500)), captureOf(link(9001))).differences[0]?.what).toBe("eth0: mtu 1500 here, 9001 on the peer");
    const route = (lines: string) => output("ip route", lines);
    expect(weighty(captureOf(route("10.0.0.0/24 dev eth0\n")), captureOf(route("default via 10.0.1.1 dev eth0\n10.0.1.0/24 dev eth0\n")))[0]?.what).toMatch(
      /^Missing here \(route table main\): unicast (?:default|0\.0\.0\.0\/0) interface eth0/,
    );
    const rule = (lines: string) => output("ip rule", `0:\tfrom all lookup local\n${lines}32766:\tfrom all lookup main\n`);
    expect(against(captureOf(rule("")), captureOf(rule("100:\tfrom all fwmark 0x200/0xf00 lookup 2004\n"))).differences[0]).toMatchObject({
      fact: "rule",
      change: "missing-here",
    });
  });

  test("routes to the pods of other nodes: one fewer than every peer has, and which", () => {
    const node = (own: number, others: readonly number[], more = "") =>
      captureOf(
        output(
          "ip route",
          `default via 10.1.2.1 dev eth0\n10.244.${own}.0/24 dev cni0 proto kernel scope link src 10.244.${own}.1\n${others.map((other) => `10.244.${other}.0/24 via 10.1.2.${other} dev eth0${more}\n`).join("")}`,
        ),
      );
    const peers = [node(1, [2, 3, 4]), node(2, [1, 3, 4])];
    expect(weighty(node(3, [1, 4]), ...peers)).toMatchObject([
      { what: expect.stringMatching(/^Routes like unicast 10\.244\.1\.0\/24 .* \(route table main\): 2 here, 3 on all 2 peers; not here: 10\.244\.2\.0\/24$/) },
    ]);
    expect(weighty(node(3, [1, 2, 4]), ...peers)).toEqual([]);
    // the peers do not agree; BIRD's blocks are not one per node
    expect(weighty(node(3, [1, 4]), node(1, [2, 3, 4]), node(2, [1, 3, 4, 5]))).toEqual([]);
    expect(weighty(node(3, [1, 4], " proto bird"), node(1, [2, 3, 4], " proto bird"))).toEqual([]);
  });

  test("a block of addresses that every peer knows by BIRD, its owner as its own", () => {
    const node = (own: readonly string[], others: readonly string[]) =>
      captureOf(
        output(
          "ip route",
          `default via 10.1.2.1 dev eth0\n${own.map((block) => `blackhole 10.244.${block}/26 proto bird\n`).join("")}${others.map((block) => `10.244.${block}/26 via 10.1.2.${block.split(".")[0]} dev tunl0 proto bird onlink\n`).join("")}`,
        ),
      );
    // 2 has two blocks, and so has 3
    const peers = [node(["1.0"], ["2.0", "2.64", "3.0", "3.64", "4.0"]), node(["2.0", "2.64"], ["1.0", "3.0", "3.64", "4.0"])];
    expect(weighty(node(["3.0", "3.64"], ["1.0", "2.0", "4.0"]), ...peers)).toMatchObject([
      { what: expect.stringMatching(/^Routes like unicast 10\.244\.1\.0\/26 .*: not here: 10\.244\.2\.64\/26; all 2 peers know it$/) },
    ]);
    expect(weighty(node(["3.0", "3.64"], ["1.0", "2.0", "2.64", "4.0"]), ...peers)).toEqual([]);
    // one peer alone, or one that does not know the block either
    expect(weighty(node(["3.0", "3.64"], ["1.0", "2.0", "4.0"]), peers[0] as Capture)).toEqual([]);
    expect(weighty(node(["3.0", "3.64"], ["1.0", "2.0", "4.0"]), peers[0] as Capture, node(["4.0"], ["1.0", "2.0", "3.0", "3.64"]))).toEqual([]);
  });

  test("a firewall's service that runs only here; a patch of the kernel is noise, another series is none; kube-proxy's mode", () => {
    const units = (...names: readonly string[]) =>
      captureOf(
        output(
          "systemctl list-units --all --type=service,timer --plain --no-legend --no-pager",
          names.map((name) => `${name} loaded active running x\n`).join(""),
        ),
      );
    const usual = ["kubelet.service", "ssh.service"];
    expect(weighty(units(...usual, "firewalld.service"), units(...usual), units(...usual)).map(({ what }) => what)).toEqual([
      "Only here (unit): firewalld.service load loaded active active sub running; none of the 2 peers has it",
    ]);
    expect(weighty(units(...usual, "cups.service"), units(...usual), units(...usual))).toEqual([]);
    const uname = (release: string) => captureOf(output("uname -a", `Linux node1 ${release} #1 SMP PREEMPT_DYNAMIC x86_64 GNU/Linux\n`));
    expect(weighty(uname("6.8.0-45-generic"), uname("6.8.0-47-generic"), uname("6.8.0-47-generic"))).toEqual([]);
    expect(weighty(uname("5.15.0-119-generic"), uname("6.8.0-47-generic"), uname("6.8.0-47-generic"))).toHaveLength(1);
    const mode = (text: string) => captureOf(output("curl -s -m 2 http://127.0.0.1:10249/proxyMode", text));
    expect(weighty(mode("ipvs"), mode("iptables"), mode("iptables"))).toHaveLength(1);
  });

  test("what follows the node's own pods: ports of services without an endpoint here, ports of the host, modules for them, rules from one address", () => {
    const save = (more: string) =>
      captureOf(
        output(
          "iptables-save",
          `*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:KUBE-EXTERNAL-SERVICES - [0:0]\n-A INPUT -j KUBE-EXTERNAL-SERVICES\n${more}COMMIT\n*nat\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:CNI-HOSTPORT-DNAT - [0:0]\nCOMMIT\n`,
        ),
      );
    const none = `-A KUBE-EXTERNAL-SERVICES -p tcp -m comment --comment "shop/lb:http has no local endpoints" -m addrtype --dst-type LOCAL -m tcp --dport 31080 -j DROP\n`;
    expect(weighty(save(none), save(""), save(""))).toEqual([]);
    expect(weighty(save(""), save(none), save(none))).toEqual([]);
    // a port that is dropped elsewhere
    expect(weighty(save("-A INPUT -p tcp -m tcp --dport 31080 -j DROP\n"), save(""), save(""))).toHaveLength(1);
    const ports = (text: string) => text.replace(/COMMIT\n$/, "-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT\nCOMMIT\n");
    const host = captureOf(output("iptables-save", ports(save("").outputs[0]?.text ?? "")));
    expect(weighty(host, save(""), save(""))).toEqual([]);
    expect(weighty(save(""), host, host)).toHaveLength(1);
    // in nftables
    const nft = (more: string) =>
      captureOf(
        output(
          "nft list ruleset",
          `table ip kube-proxy {\n\tchain nat-prerouting {\n\t\ttype nat hook prerouting priority dstnat; policy accept;\n\t\tjump services\n\t}\n\tchain services {\n\t}\n\tchain external-TZEQCN3K-shop/lb/tcp/http {\n\t\tfib saddr type local jump mark-for-masquerade\n${more}\t}\n}\n`,
        ),
      );
    expect(weighty(nft("\t\tgoto local-TZEQCN3K-shop/lb/tcp/http\n"), nft(""), nft(""))).toEqual([]);
    expect(weighty(captureOf(output("nft list ruleset", nft("").outputs[0]?.text.replace("\t\tjump services\n", "") ?? "")), nft(""), nft(""))).toHaveLength(1);
    const modules = (...names: readonly string[]) => captureOf(output("lsmod", `Module Size Used by\n${names.map((name) => `${name} 16384 0\n`).join("")}`));
    expect(weighty(modules("overlay", "xt_set", "ip_set"), modules("overlay"), modules("overlay"))).toEqual([]);
    expect(weighty(modules("overlay"), modules("overlay", "br_netfilter"), modules("overlay", "br_netfilter"))).toHaveLength(1);
    const rules = (more: string) => captureOf(output("ip rule", `0:\tfrom all lookup local\n${more}32766:\tfrom all lookup main\n`));
    expect(weighty(rules("1536:\tfrom 10.0.1.60 lookup 3\n"), rules(""), rules(""))).toEqual([]);
    expect(weighty(rules(""), rules("512:\tfrom all to 10.0.1.60 lookup main\n"), rules("512:\tfrom all to 10.0.2.9 lookup main\n"))).toHaveLength(1);
  });

  test("one more card than the peers have, with a table for its own addresses; a table that other packets are sent to", () => {
    const node = (rule: string, more: string) =>
      captureOf(
        output("ip rule", `0:\tfrom all lookup local\n${rule}32766:\tfrom all lookup main\n`),
        output("ip route show table all", `default via 10.0.0.1 dev eth0\n${more}`),
      );
    const table = "default via 10.0.0.1 dev eth2 table 3\n";
    const [card, plain] = [node("1536:\tfrom 10.0.1.60 lookup 3\n", table), node("", "")];
    expect(weighty(card, plain, plain)).toEqual([]);
    expect(weighty(plain, card, card)).toEqual([]);
    expect(weighty(node("5209:\tfrom all lookup 3\n", table), plain, plain).map(({ fact }) => fact)).toEqual(["route", "rule"]);
    // its rules are there, and the table is empty
    expect(weighty(node("1536:\tfrom 10.0.1.61 lookup 3\n", ""), card, card).map(({ fact }) => fact)).toEqual(["route"]);
  });

  test("forwarding of the whole node is named before that of one interface", () => {
    const keys = (value: number) =>
      captureOf(output("sysctl -a", `net.ipv4.conf.eth0.forwarding = ${value}\nnet.ipv4.conf.lo.forwarding = ${value}\nnet.ipv4.ip_forward = ${value}\n`));
    expect(weighty(keys(0), keys(1))[0]?.what).toBe("net.ipv4.ip_forward: 0 here, 1 on the peer");
  });

  test("a table of nftables that only this node has, hooked in by a name of its own, with an address in its rule", () => {
    const ruleset = (more: string) =>
      captureOf(output("nft list ruleset", `table inet base {\n\tchain in {\n\t\ttype filter hook input priority filter; policy accept;\n\t}\n}\n${more}`));
    const old =
      "table ip old {\n\tchain post {\n\t\ttype nat hook postrouting priority srcnat; policy accept;\n\t\tip saddr 10.244.0.0/16 counter packets 5 bytes 300 masquerade\n\t}\n}\n";
    expect(weighty(ruleset(old), ruleset(""), ruleset(""))[0]?.what).toMatch(
      /^Only here \(nft old post\): ip saddr 10\.244\.0\.0\/16 counter.* masquerade; none of the 2 peers has it$/,
    );
  });

  test("another default gateway than every peer in the same network has", () => {
    const node = (network: number, own: number, gateway: number) =>
      captureOf(
        output(
          "ip route",
          `default via 10.1.${network}.${gateway} dev eth0\n10.1.${network}.0/24 dev eth0 proto kernel scope link src 10.1.${network}.${own}\n`,
        ),
      );
    expect(weighty(node(2, 7, 254), node(2, 8, 1), node(2, 9, 1)).map(({ what }) => what)).toEqual([
      "unicast 0.0.0.0/0 eth0 (route table main): gateway 10.1.2.254 here, 10.1.2.1 on all 2 peers",
    ]);
    // in another network, or beside one peer alone, it says nothing
    expect(weighty(node(3, 7, 254), node(2, 8, 1), node(2, 9, 1))).toEqual([]);
    expect(weighty(node(2, 7, 254), node(2, 8, 1))).toEqual([]);
  });

  test("a rule of nftables that drops or translates, a queue that slows down, all pods' interfaces set in another way", () => {
    const weigh = (fact: string, list: string, row: Readonly<Record<string, unknown>>, more: Partial<Parameters<typeof weightOf>[0]> = {}) =>
      weightOf({ fact, list, change: "only-here", field: "", row, private: false, ...more });
    expect(weigh("nft", "rows", { chain: "pre", verdict: "drop", spec: "udp dport 53 counter drop" })).toBe(0.9);
    expect(weigh("nft", "rows", { chain: "post", spec: "oifname eth0 masquerade" })).toBe(0.85);
    expect(weigh("nft", "rows", { chain: "pre", spec: "counter" })).toBe(0.3);
    expect(weigh("nft", "rows", { chain: "pre", verdict: "jump", target: "x", spec: "jump x" })).toBe(0.55);
    expect(weigh("link", "rows", { qdisc: "tbf" }, { change: "changed", field: "qdisc" })).toBe(0.7);
    expect(weigh("link", "rows", { qdisc: "mq" }, { change: "changed", field: "qdisc" })).toBe(0.3);
    expect(weigh("tc", "qdiscs", { kind: "netem" })).toBe(0.7);
    expect(weigh("tc", "qdiscs", { kind: "fq_codel" })).toBe(0.35);
    expect(weigh("bridge", "ports", {}, { change: "changed", field: "hairpin", private: true })).toBeGreaterThan(
      weigh("bridge", "ports", {}, { change: "only-here", private: true }),
    );
  });

  test("another kernel: field by field", () => {
    const uname = (release: string) => captureOf(output("uname -a", `Linux node1 ${release} #1 SMP PREEMPT_DYNAMIC x86_64 GNU/Linux\n`));
    expect(against(uname("6.1.0-18-amd64"), uname("6.1.0-30-amd64")).differences[0]).toMatchObject({
      fact: "os",
      what: "kernels: release 6.1.0-18-amd64 here, 6.1.0-30-amd64 on the peer",
    });
  });

  test("at most as many as asked for; the rest is counted", () => {
    const node = (value: number) => captureOf(output("sysctl -a", Array.from({ length: 30 }, (_, index) => `net.core.key_${index} = ${value}\n`).join("")));
    const { differences, suppressed } = compare({ name: "a", capture: node(1) }, [{ name: "b", capture: node(2) }], 10);
    expect([differences.length, suppressed.overLimit]).toEqual([10, 20]);
  });
});

test("every fact that has weights, or is never compared, is a fact", () => {
  const ids = facts.map(({ id }) => id);
  expect([...WEIGHED, ...Object.keys(MOMENTARY)].filter((id) => !ids.includes(id))).toEqual([]);
  expect(WEIGHED.filter((id) => Object.hasOwn(MOMENTARY, id))).toEqual([]);
});

test("a fact without weights of its own is compared all the same, with little weight", () => {
  const unknown = facts.map(({ id }) => id).filter((id) => !WEIGHED.includes(id) && !Object.hasOwn(MOMENTARY, id));
  const row = { name: "thing", state: "off" };
  for (const fact of [...unknown, "a-new-fact"]) {
    const weight = weightOf({ fact, list: "rows", change: "changed", field: "state", row, private: false });
    expect(weight).toBe(UNKNOWN);
    expect(weightOf({ fact, list: "rows", change: "changed", field: "state", row, private: true })).toBeLessThan(weight);
  }
});

describe("order", () => {
  test.each<[string, string, [string, string][]]>([
    ["abc", "abc", []],
    ["bca", "abc", [["a", "bc"]]],
    ["cab", "abc", [["c", "ab"]]],
    ["ab", "ba", [["a", "b"]]],
    ["axb", "ayb", []],
    ["aab", "baa", []],
    ["", "abc", []],
  ])("%s against %s", (here, there, moved) => {
    const letters = (text: string): string[] => text.split("");
    expect(moves(letters(here), letters(there))).toEqual(moved.map(([token, passed]) => ({ token, passed: letters(passed) })));
  });
});
