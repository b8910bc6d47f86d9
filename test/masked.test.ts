import { describe, expect, test } from "vitest";
import { isMasked, readFamily, readMac, readPrefix } from "../functions/facts/mask.ts";
import { readFacts } from "../functions/facts/read.ts";
import { compileRule, type Rule } from "../functions/rules/compile.ts";
import { evaluateRule, Facts, type Outcome } from "../functions/rules/evaluate.ts";
import { RuleFile } from "../functions/rules/schema.ts";
import { capture, read } from "./readings.ts";

/** Addresses that a person painted over: the rows stay, and nothing takes the text for an address. */

describe("a masked text", () => {
  test.each(
    (
      "x.x.x.x 10.x.x.x 10.0.xx.xx XX.XX.XX.XX XX.XX.XX.XX/24 10.0.0.<redacted> 192.168.*.* a.b.c.d A.B.C.D/16 w.x.y.z 10.1xx.0.1 NNN.NNN.NNN.NNN <redacted> <ip> " +
      "<node-ip> <NODE_IP>/24 <IP_1> [ip] [REDACTED] REDACTED *** xxx <mac> aa:bb:cc:xx:xx:xx XX:XX:XX:XX:XX:XX **:**:**:**:**:** 2001:db8:xxxx::1 " +
      "fe80::xxxx:xxxx:xxxx:xxxx/64 xxxx::/64 <public-ip>:6443 10.0.x.x:8443"
    ).split(" "),
  )("%s", (text) => expect(isMasked(text)).toBe(true));

  test.each(
    (
      "* - 10.0.0.1 10.0.0.1/24 ::1 fe80::1 00:11:22:33:44:55 0.0.0.0:* [::]:22 [::ffff:10.0.0.1]:10250 eth0 br-ex foo.bar.baz.com <none> <unknown> <nil> <pending> " +
      "<from_interface> <incomplete> (incomplete) <BROADCAST,UP> [kworker/0:1] [ip_vs] private hidden masked removed secret host 1.2.3.4.5 v1.2.3 x86 x.x 10-250-1-1"
    ).split(" "),
  )("not %s", (text) => expect(isMasked(text)).toBe(false));

  test("stands where an address stands, with the family that it shows or that is expected", () => {
    expect(readPrefix("10.0.x.x/16")).toEqual({ family: "ipv4", address: "10.0.x.x", length: 16, prefix: "10.0.x.x/16" });
    expect(readPrefix("2001:db8:xxxx::/48")).toMatchObject({ family: "ipv6", length: 48 });
    expect(readPrefix("<redacted>/64", "ipv6")).toMatchObject({ family: "ipv6", address: "<redacted>", length: 64 });
    expect(readPrefix("x.x.x.x/xx")).toMatchObject({ family: "ipv4", address: "x.x.x.x", length: undefined });
    expect([readPrefix("<redacted>"), readPrefix("10.0.x.x/33")?.length, readPrefix("eth0", "ipv4")]).toEqual([undefined, undefined, undefined]);
    expect([readFamily("x.x.x.x"), readFamily("x.x.x.x/8"), readFamily("[REDACTED]", "ipv6")]).toEqual(["ipv4", undefined, "ipv6"]);
    expect([readMac("02:42:AC:XX:XX:XX"), readMac("<redacted>"), readMac("eth0")]).toEqual(["02:42:ac:xx:xx:xx", "<redacted>", undefined]);
  });
});

const BASE = {
  id: "some-rule",
  title: "A neighbour",
  role: "cause",
  severity: "warning",
  status: "experimental",
  detects: "Detects a neighbour.",
  needs: ["neighbor"],
  let: {},
  evidence: ["neighbor.rows"],
  summary: "{{ neighbor.rows[0].address }} is there.",
  confidence: 0.5,
  falsePositives: ["None."],
  references: ["ip-neighbour(8)"],
};
const rule = (when: string, more: object = {}): Rule => compileRule(RuleFile.parse({ ...BASE, when, ...more }), undefined);
const judged = (text: string, asked: Rule, command = "ip neigh"): Outcome => {
  const given = capture([{ command, text }]);
  return evaluateRule(asked, new Facts(given, readFacts(given)));
};
const MASKED = "x.x.x.x dev eth0 lladdr aa:bb:cc:xx:xx:xx STALE\n";
const PLAIN = "10.0.0.9 dev eth1 lladdr 02:00:00:00:00:09 REACHABLE\n";

describe("a rule", () => {
  test.each([
    ["what is not masked decides", 'neighbor.rows.exists(n, n.state == "STALE")', "match"],
    ["what is not masked rules it out", 'neighbor.rows.exists(n, n.state == "FAILED")', "no-match"],
    ["a masked address equals nothing for sure", 'neighbor.rows.exists(n, n.address == "10.0.0.1")', "inconclusive"],
    ["nor differs from anything", 'neighbor.rows.exists(n, n.state == "STALE" && n.address != "10.0.0.1")', "inconclusive"],
    ["nor equals its like", "neighbor.rows.exists(n, neighbor.rows.exists(m, m.line != n.line && m.address == n.address))", "inconclusive"],
    ["nor lies in a prefix, nor outside", '!neighbor.rows.exists(n, n.address.inPrefix("10.0.0.0/8"))', "no-match"],
    ["nor starts with something", 'neighbor.rows.exists(n, n.address.startsWith("x."))', "inconclusive"],
    ["another row decides", 'neighbor.rows.exists(n, n.address == "10.0.0.9")', "match"],
    ["a filter with a row that decides", 'neighbor.rows.filter(n, n.address == "10.0.0.9").size() > 0', "match"],
    ["a filter without", 'neighbor.rows.filter(n, n.address == "10.0.0.8").size() > 0', "inconclusive"],
    ["a condition that comes first", 'neighbor.rows.exists(n, n.interface == "eth9" && n.address == "10.0.0.1")', "no-match"],
  ])("%s", (_, when, verdict) => expect(judged(MASKED + MASKED + PLAIN, rule(when)).verdict).toBe(verdict));

  test("says which line is masked", () => {
    expect(judged(PLAIN + MASKED, rule('neighbor.rows.exists(n, n.address == "10.0.0.1")')).reason).toContain("address in line 2 is masked (x.x.x.x)");
  });

  test("quotes and names masked text as it stands", () => {
    const { finding } = judged(MASKED, rule('neighbor.rows.exists(n, n.state == "STALE")'));
    expect(finding?.summary).toBe("x.x.x.x is there.");
    expect(finding?.evidence.map(({ text }) => text)).toEqual([MASKED.trim()]);
  });

  test("that needs all of a fact does not match by what is left of it", () => {
    const all = rule('neighbor.rows.all(n, n.address.inPrefix("10.0.0.0/8"))', { needs: [{ fact: "neighbor", whole: true }] });
    expect(judged(PLAIN, all).verdict).toBe("match");
    expect(judged(PLAIN + MASKED, all).verdict).toBe("inconclusive");
  });

  test("does not conclude from a row that went because it is masked", () => {
    const given = capture([{ command: "ip neigh", text: `${PLAIN}${MASKED}10.0.0.8 dev eth1 FAILED\n`, truncated: true }]);
    const none = rule('!neighbor.rows.exists(n, n.interface == "eth0")');
    expect(evaluateRule(none, new Facts(given, readFacts(given))).verdict).toBe("inconclusive");
  });

  test("a gate stays open while it cannot be told", () => {
    const gated = rule("false", { applies: 'neighbor.rows.exists(n, n.address == "10.0.0.1")' });
    expect(judged(PLAIN, gated).verdict).toBe("not-applicable");
    expect(judged(PLAIN + MASKED, gated).verdict).toBe("no-match");
  });

  test("of one sample stays undecided where that cannot be told", () => {
    const one = rule("false", { undecided: { when: 'neighbor.rows.exists(n, n.address == "10.0.0.1")', because: "one sample" } });
    expect(judged(PLAIN, one).verdict).toBe("no-match");
    expect(judged(PLAIN + MASKED, one).verdict).toBe("inconclusive");
  });

  test("among many rows the masked one is not passed over", () => {
    const many = Array.from({ length: 300 }, (_, i) => `10.0.${i >> 8}.${i & 255} dev eth0 lladdr 02:00:00:00:00:01 STALE\n`).join("");
    const asked = rule('neighbor.rows.exists(n, n.address == "10.9.9.9")');
    expect(judged(many, asked).verdict).toBe("no-match");
    expect(judged(many + MASKED, asked).verdict).toBe("inconclusive");
  });
});

describe("a derived fact", () => {
  test("does not see masked addresses, and is partial for them", () => {
    const twice = "1: eth0    inet x.x.x.x/24 scope global eth0\n2: eth1    inet x.x.x.x/24 scope global eth1\n";
    const links = (names: string[]) => names.map((name, i) => `${i + 1}: ${name}: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP\n`).join("");
    const outputs = [
      { command: "ip -o addr", text: twice },
      { command: "ip link", text: links(["eth0", "eth1"]) },
      { command: "dmesg", text: "[    1.0] ok\n" },
    ];
    expect(read("address-conflict", ...outputs)).toMatchObject({ status: "read", complete: false, value: { rows: [] } });
    const shown = [{ ...outputs[0], command: "ip -o addr", text: twice.replaceAll("x.x.x.x", "10.0.0.5") }, ...outputs.slice(1)];
    expect(read("address-conflict", ...shown).value.rows).toHaveLength(1);
  });

  test("takes no listing for whole of which a masked row went", () => {
    const device = "4: flannel.1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 qdisc noqueue state UNKNOWN\n";
    const [neighbor, route] = ["10.244.2.0 dev flannel.1 lladdr 02:00:00:00:00:02 PERMANENT\n", "10.244.2.0/24 via 10.244.2.0 dev flannel.1 onlink\n"];
    const unforwarded = (destination: string) =>
      read(
        "vtep",
        { command: "ip link", text: device },
        { command: "ip neigh", text: neighbor },
        { command: "ip route", text: route },
        { command: "bridge fdb show dev flannel.1", text: `02:00:00:00:00:0${destination.at(-1)} dst ${destination} self permanent\n` },
      ).value.rows[0].unforwarded;
    expect([unforwarded("10.0.0.2"), unforwarded("10.0.0.3"), unforwarded("x.x.x.2")]).toEqual([false, true, false]);
  });

  test("a fact of its own is whole all the same", () => {
    expect(read("neighbor", { command: "ip neigh", text: MASKED + PLAIN })).toMatchObject({ complete: true, masked: true, unparsed: [] });
    expect(read("neighbor", { command: "ip neigh", text: PLAIN }).masked).toBeUndefined();
  });
});
