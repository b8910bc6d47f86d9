import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Capture, Output } from "../../functions/facts/capture.ts";
import { readFacts } from "../../functions/facts/read.ts";
import { compileRule, type Rule } from "../../functions/rules/compile.ts";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { evaluateRule, Facts, type Outcome } from "../../functions/rules/evaluate.ts";
import { type Catalogue, loadCatalogue } from "../../functions/rules/load.ts";
import { FixFile, RuleFile } from "../../functions/rules/schema.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";
import { captureOf, output } from "./captures.ts";

/** What a rule may and may not say of a capture. The rules here are made for the question; the shipped ones have fixtures. */

const BASE = {
  id: "some-rule",
  title: "There is a default route",
  role: "cause",
  severity: "warning",
  status: "experimental",
  detects: "Detects a default route.",
  needs: ["route"],
  when: "found.size() > 0",
  let: { found: 'route.rows.filter(r, r.prefix == "0.0.0.0/0" || r.prefix == "default")' },
  evidence: ["found"],
  summary: "The default route stands in line {{ found[0].line }}.",
  confidence: 0.5,
  falsePositives: ["None."],
  references: ["ip-route(8)"],
};
const ruleWith = (change: object = {}, fix?: FixFile): Rule => compileRule(RuleFile.parse({ ...BASE, ...change }), fix);
const catalogueOf = (...rules: Rule[]): Pick<Catalogue, "rules" | "fixes"> => ({
  rules: new Map(rules.map((rule) => [rule.file.id, rule])),
  fixes: new Map(),
});
const verdictOf = (rule: Rule, ...outputs: Output[]): Outcome => {
  const capture = captureOf(...outputs);
  return evaluateRule(rule, new Facts(capture, readFacts(capture)));
};
const said = ({ verdict, reason }: Outcome) => ({ verdict, reason });

const DEFAULT = "default via 10.0.0.1 dev eth0 proto static metric 100\n";
const LOCAL = "10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.5\n";
/** All IPv4 and IPv6 routes: nothing is missing. */
const routes = (text: string, more: Partial<Output> = {}): Output[] => [
  output("ip -4 route show table all", text, more),
  output("ip -6 route show table all", "fe80::/64 dev eth0 proto kernel metric 256 pref medium\n"),
];

describe("a match", () => {
  test("quotes its lines verbatim and fills in its sentence", () => {
    const outcome = verdictOf(ruleWith(), ...routes(LOCAL + DEFAULT));
    expect(said(outcome)).toEqual({ verdict: "match", reason: "" });
    expect(outcome.finding).toEqual({
      rule: "some-rule",
      title: "There is a default route",
      severity: "warning",
      confidence: 0.5,
      summary: "The default route stands in line 2.",
      evidence: [{ command: "ip -4 route show table all", file: "outputs/ip-4-route-show-table-all.txt", line: 2, text: DEFAULT.trim() }],
    });
  });

  test("needs no complete fact: what was seen was seen", () => {
    for (const more of [{ truncated: true }, { exitCode: 124 }, { exitCode: 1 }]) expect(verdictOf(ruleWith(), ...routes(DEFAULT, more)).verdict).toBe("match");
    expect(verdictOf(ruleWith(), output("ip route | grep default", DEFAULT)).verdict).toBe("match");
  });

  test("without a line that proves it is none", () => {
    expect(said(verdictOf(ruleWith({ evidence: ["route.rows.filter(r, r.line > 99)"] }), ...routes(DEFAULT)))).toEqual({
      verdict: "inconclusive",
      reason: "it matched, but no line proves it",
    });
  });

  test("quotes no line that is blank or not there; what an output lacks may stand on stderr", () => {
    const capture = captureOf(
      output("ip route", "\n  \nx\n"),
      output("sysctl a", "", { stderr: "sysctl: cannot stat /proc/sys/a: No such file or directory\n" }),
    );
    const facts = new Facts(capture, readFacts(capture));
    const quoted = (line: unknown, of: unknown) => facts.quote({ line, output: of })?.text;
    expect([1, 2, 3, 4, 0, -1, Number.NaN, undefined].map((line) => quoted(line, 0))).toEqual([undefined, undefined, "x", ...Array(5).fill(undefined)]);
    expect(quoted(1, 1)).toBe("sysctl: cannot stat /proc/sys/a: No such file or directory");
    expect([2, -1, undefined, "__proto__"].map((of) => quoted(1, of))).toEqual(Array(4).fill(undefined));
  });

  test("quotes a line once and not more than twenty", () => {
    const many = Array.from({ length: 50 }, (_, i) => `10.0.${i}.0/24 via 10.0.0.1 dev eth0\n`).join("");
    const { finding } = verdictOf(ruleWith({ evidence: ["found", "route.rows", "route.rows"] }), ...routes(DEFAULT + many));
    expect(finding?.evidence.map(({ line }) => line)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
  });

  test("what a summary counts is one, or more", () => {
    const said = (summary: string) => verdictOf(ruleWith({ summary }), ...routes(DEFAULT)).finding?.summary;
    expect(said("{{ found.size() }} default route(s), {{ found.size() + 1 }} of {{ found.size() }} BGP peer(s) and 21 message(s).")).toBe(
      "1 default route, 2 of 1 BGP peer and 21 messages.",
    );
    expect(said("{{ found.size() }} packet(s) were dropped, 2 packet(s) were, {{ found.size() }} address(es) have none of 3 address(es).")).toBe(
      "1 packet was dropped, 2 packets were, 1 address has none of 3 addresses.",
    );
    expect(said("Nothing(s) {{ found.size() }}.")).toBe("Nothing(s) 1.");
  });

  test("of a long value, such as a line of a log, a summary has the beginning and the end", () => {
    const { finding } = verdictOf(ruleWith({ summary: `The kubelet says: {{ "${"a".repeat(200)}${"b".repeat(200)}" }}.` }), ...routes(DEFAULT));
    expect(finding?.summary).toBe(`The kubelet says: ${"a".repeat(150)} … ${"b".repeat(150)}.`);
  });

  test("still stands where its sentence or its confidence cannot be worked out", () => {
    const { finding } = verdictOf(ruleWith({ summary: "Metric {{ found[7].prefix }}.", confidence: "found[7].line > 0 ? 0.1 : 0.2" }), ...routes(DEFAULT));
    expect(finding).toMatchObject({ summary: "Metric ?.", confidence: 0.5 });
  });
});

describe("a rule with forms", () => {
  const { when: _, summary: __, confidence: ___, ...rest } = BASE;
  const formed = (evidence: string[]): Rule =>
    compileRule(
      RuleFile.parse({
        ...rest,
        evidence,
        forms: {
          slow: { when: "found.exists(r, r.metric > 1000)", summary: "Metric {{ found[0].metric }}.", confidence: 0.9, evidence: ["found"] },
          local: {
            when: "route.rows.exists(r, has(r.source))",
            summary: "A local one.",
            confidence: "0.3 + 0.1",
            evidence: ["route.rows.filter(r, has(r.source))"],
          },
        },
      }),
      undefined,
    );
  const told = (...outputs: Output[]) => {
    const { verdict, finding } = verdictOf(formed([]), ...outputs);
    return [verdict, finding?.summary, finding?.confidence, finding?.evidence.map(({ line }) => line)];
  };
  const slow = DEFAULT.replace("100", "2000");

  test("the first that holds speaks, the lines of all that hold are quoted, in their order", () => {
    expect(told(...routes(LOCAL + slow))).toEqual(["match", "Metric 2000.", 0.9, [2, 1]]);
    expect(told(...routes(LOCAL + DEFAULT))).toEqual(["match", "A local one.", 0.4, [1]]);
    expect(told(...routes(slow))).toEqual(["match", "Metric 2000.", 0.9, [1]]);
  });

  test("none holds: no match, or inconclusive where something was not seen", () => {
    expect(told(...routes(DEFAULT))).toEqual(["no-match", undefined, undefined, undefined]);
    expect(told(...routes(DEFAULT, { truncated: true }))[0]).toBe("inconclusive");
  });

  test("a form that cannot be worked out is passed over, if another holds", () => {
    // not every default route has a metric
    expect(told(...routes(`${LOCAL}default via 10.0.0.1 dev eth0\n`))).toEqual(["match", "A local one.", 0.4, [1]]);
  });

  test("the rule's own lines stand behind those of its forms", () => {
    const { finding } = verdictOf(formed(["route.rows"]), ...routes(LOCAL + slow));
    expect(finding?.evidence.map(({ line }) => line)).toEqual([2, 1, 1]);
  });
});

describe("what could not be looked at is inconclusive, with the reason", () => {
  test.each<[string, Output[], string]>([
    ["nothing was collected", [], "needs route: the capture holds no output of `ip -j -4 route show table all`"],
    ["the tool is missing, by exit code", [output("ip route", "", { exitCode: 127 })], "needs route: ip is not installed on the node"],
    [
      "the tool is missing, in words",
      [output("ip route", "bash: ip: command not found\n", { exitCode: undefined })],
      "needs route: ip is not installed on the node",
    ],
    [
      "it failed",
      [output("ip route", "", { exitCode: 2, stderr: "Cannot open netlink socket\nmore\n" })],
      "needs route: `ip route` failed with exit code 2: Cannot open netlink socket",
    ],
    ["it hung", [output("ip route", "", { exitCode: 124 })], "needs route: `ip route` ran into its time limit"],
    [
      "it was cut",
      routes(LOCAL, { truncated: true }),
      "route is only partly known: `ip -4 route show table all`: the output was truncated; to settle it: `ip -j -4 route show table all`",
    ],
    [
      "it was stopped half-way",
      routes(LOCAL, { exitCode: 124 }),
      "route is only partly known: `ip -4 route show table all`: the command ran into its time limit; to settle it: `ip -j -4 route show table all`",
    ],
    [
      "a line is strange",
      routes(`${LOCAL}what is this\n`),
      "route is only partly known: `ip -4 route show table all`: 1 lines could not be read; to settle it: `ip -j -4 route show table all`",
    ],
    [
      "it was filtered",
      [output("ip route | grep eth0", LOCAL)],
      "route is only partly known: `ip route | grep eth0`: it shows only a part; to settle it: `ip -j -4 route show table all`",
    ],
    [
      "it shows one device",
      [output("ip route show dev eth0", LOCAL)],
      "route is only partly known: `ip route show dev eth0`: it shows only a part; to settle it: `ip -j -4 route show table all`",
    ],
    [
      "it is another namespace's",
      [output("ip netns exec pod ip route", DEFAULT)],
      "needs route: the capture holds no output of `ip -j -4 route show table all`",
    ],
  ])("%s", (_, outputs, reason) => expect(said(verdictOf(ruleWith(), ...outputs))).toEqual({ verdict: "inconclusive", reason }));

  test("why it was not collected is passed on", () => {
    const capture = { ...captureOf(), notCollected: [{ command: "ip -j -4 route show table all", reason: "the time for the whole collection was over" }] };
    expect(said(evaluateRule(ruleWith(), new Facts(capture, readFacts(capture))))).toEqual({
      verdict: "inconclusive",
      reason: "needs route: the time for the whole collection was over",
    });
  });

  test("what is complete and does not show it is a no-match", () => {
    expect(said(verdictOf(ruleWith(), ...routes(LOCAL)))).toEqual({ verdict: "no-match", reason: "" });
  });

  test("a condition that cannot be worked out", () => {
    const { verdict, reason } = verdictOf(ruleWith({ when: "found[7].line > 0" }), ...routes(LOCAL));
    expect({ verdict, reason }).toEqual({ verdict: "inconclusive", reason: expect.stringMatching(/^the condition could not be worked out: /) });
  });
});

describe("absence is never concluded from a part", () => {
  const absent = (needs: unknown) =>
    ruleWith({ needs, let: {}, when: 'route.rows.all(r, r.prefix != "0.0.0.0/0")', evidence: ["route.rows"], summary: "There is none." });

  test("a rule that says it needs the whole fact is inconclusive with less, even where its condition is true", () => {
    const rule = absent([{ fact: "route", whole: true }]);
    expect(verdictOf(rule, ...routes(LOCAL)).verdict).toBe("match");
    expect(verdictOf(rule, ...routes(DEFAULT)).verdict).toBe("no-match");
    for (const partial of [routes(LOCAL, { truncated: true }), [output("ip route | head -1", LOCAL)]])
      expect(said(verdictOf(rule, ...partial))).toEqual({ verdict: "inconclusive", reason: expect.stringMatching(/^needs all of route: /) });
  });

  test("a fact that is merely used, but decides, may not be cut either", () => {
    const rule = ruleWith({
      uses: ["link"],
      let: { up: "link.rows.filter(l, l.interface == 'eth0')", found: "route.rows.filter(r, up.size() > 0)" },
    });
    const eth1 =
      "3: eth1: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000\n    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n";
    expect(verdictOf(rule, ...routes(LOCAL), output("ip -d link show", eth1)).verdict).toBe("no-match");
    expect(said(verdictOf(rule, ...routes(LOCAL), output("ip -d link show", eth1, { truncated: true })))).toEqual({
      verdict: "inconclusive",
      reason: "link is only partly known: `ip -d link show`: the output was truncated; to settle it: `ip -d -s -j link show`",
    });
  });

  test("`settled` makes a no-match certain although a part is missing; `undecided` makes it none", () => {
    const cut = routes(LOCAL, { truncated: true });
    expect(verdictOf(ruleWith({ settled: 'route.rows.exists(r, r.prefix == "10.0.0.0/24")' }), ...cut).verdict).toBe("no-match");
    expect(verdictOf(ruleWith({ settled: 'route.rows.exists(r, r.prefix == "10.9.0.0/24")' }), ...cut).verdict).toBe("inconclusive");
    expect(verdictOf(ruleWith({ settled: "found[7].line > 0" }), ...cut).verdict).toBe("inconclusive");
    const undecided = { undecided: { when: "route.rows.size() > 0", because: "look again" } };
    expect(said(verdictOf(ruleWith(undecided), ...routes(LOCAL)))).toEqual({ verdict: "inconclusive", reason: "look again" });
    expect(verdictOf(ruleWith(undecided), ...routes(DEFAULT)).verdict).toBe("match");
  });
});

describe("the gate", () => {
  const gated = ruleWith({ uses: ["sysctl"], applies: 'sysctl.rows.exists(s, s.key == "net.ipv4.ip_forward" && s.value == "1")' });
  const forward = (value: string, more: Partial<Output> = {}) => output("sysctl -a", `net.ipv4.ip_forward = ${value}\n`, more);

  test("closed: the rule has nothing to say", () => {
    expect(said(verdictOf(gated, ...routes(DEFAULT), forward("0")))).toEqual({ verdict: "not-applicable", reason: expect.stringMatching(/^not here: sysctl/) });
  });

  test("closed comes before what is missing", () => {
    expect(verdictOf(gated, forward("0")).verdict).toBe("not-applicable");
  });

  test("open", () => {
    expect(verdictOf(gated, ...routes(DEFAULT), forward("1")).verdict).toBe("match");
  });

  test("unknown is open: not there, or cut before it could be seen", () => {
    expect(verdictOf(gated, ...routes(DEFAULT)).verdict).toBe("match");
    expect(verdictOf(gated, ...routes(DEFAULT), forward("0", { truncated: true })).verdict).toBe("match");
    expect(verdictOf(gated, ...routes(DEFAULT), output("sysctl -a", "", { exitCode: 1 })).verdict).toBe("match");
    expect(verdictOf(gated).verdict).toBe("inconclusive");
  });
});

describe("the diagnosis", () => {
  const outputs = [...routes(LOCAL + DEFAULT), output("frobnicate --all", "x\n"), output("ip neigh", "garbage here\n")];
  const diagnosisOf = (rules: Rule[], given: Output[] = outputs) => diagnose(captureOf(...given), catalogueOf(...rules), "here", () => 0);
  const never = { when: "false && found.size() > 0" };

  test("ranks causes by confidence, what they explain, severity, name", () => {
    const rules = [
      ruleWith({ id: "d-name" }),
      ruleWith({ id: "c-name" }),
      ruleWith({ id: "x-severe", severity: "critical" }),
      ruleWith({ id: "a-explains", severity: "info", explains: ["symptom"] }),
      ruleWith({ id: "z-sure", severity: "info", confidence: 0.9 }),
      ruleWith({ id: "symptom", role: "symptom" }),
      ruleWith({ id: "risk", role: "risk" }),
    ];
    const expected = ["z-sure", "a-explains", "x-severe", "c-name", "d-name"];
    for (const order of [rules, rules.toReversed()]) {
      const { causes, symptoms, risks, verdict } = diagnosisOf(order);
      expect(causes.map((cause) => cause.rule)).toEqual(expected);
      expect([symptoms.map((one) => one.rule), risks.map((one) => one.rule), verdict]).toEqual([["symptom"], ["risk"], "cause-found"]);
      expect(causes[1]?.explains).toEqual(["symptom"]);
    }
  });

  test("a cause that another cause explains is listed under that one; what did not match is not explained", () => {
    const { causes, symptoms } = diagnosisOf([
      ruleWith({ id: "deep", explains: ["shallow", "silent"], confidence: 0.4 }),
      ruleWith({ id: "shallow", confidence: 0.9 }),
      ruleWith({ id: "silent", role: "symptom", ...never }),
    ]);
    expect(causes.map(({ rule, explains }) => ({ rule, explains }))).toEqual([{ rule: "deep", explains: ["shallow"] }]);
    expect(symptoms.map((one) => one.rule)).toEqual(["shallow"]);
  });

  test("a symptom whose cause did not match stands for itself", () => {
    const { verdict, causes } = diagnosisOf([ruleWith({ id: "deep", explains: ["shown"], ...never }), ruleWith({ id: "shown", role: "symptom" })]);
    expect({ verdict, causes }).toEqual({ verdict: "symptoms-only", causes: [] });
  });

  test("healthy only if every cause was ruled out", () => {
    const cause = ruleWith({ id: "cause", ...never });
    const blind = { needs: ["ovs"], let: {}, when: "ovs.bridges.size() > 0", evidence: ["ovs.bridges"], summary: "OVS." };
    expect(diagnosisOf([cause]).verdict).toBe("healthy");
    expect(diagnosisOf([cause, ruleWith({ id: "risk", role: "risk" })]).verdict).toBe("healthy");
    expect(diagnosisOf([cause, ruleWith({ id: "blind", role: "symptom", ...blind })]).verdict).toBe("healthy");
    const { verdict, unchecked } = diagnosisOf([cause, ruleWith({ id: "blind", ...blind })]);
    expect(verdict).toBe("inconclusive");
    expect(unchecked).toEqual([{ rule: "blind", reason: expect.stringMatching(/^needs ovs: /) }]);
    expect(diagnosisOf([cause], []).verdict).toBe("inconclusive");
  });

  test("what could not be read, and commands that nobody knows, are named and counted", () => {
    const { unparsed, unknown, stats } = diagnosisOf([ruleWith(), ruleWith({ id: "other" })], [...outputs, output("cat motd", "ä")]);
    expect(unparsed).toEqual([{ command: "ip neigh", lines: 1 }]);
    expect(unknown).toEqual(["frobnicate --all", "cat motd"]);
    const texts = [...outputs.map((one) => one.text), "ä"];
    expect(stats).toEqual({ bytes: Buffer.byteLength(texts.join("")), lines: 6, rules: 2, ms: 0 });
  });

  test("a fix is offered only with parameters of its types; otherwise it says why not", () => {
    const fix = FixFile.parse({
      id: "some-fix",
      title: "Delete it",
      risk: "low",
      parameters: { interfaces: { type: "interface", list: true, from: "found.map(r, r.interface)" } },
      check: "true",
      apply: [{ each: ["interfaces"], run: ["ip", "route", "del", "default", "dev", "$interfaces"] }],
      rollback: [],
      rollbackNote: "Gone.",
      verify: { settle: 0, note: "Nothing." },
      sideEffects: ["Gone."],
      makeItLast: ["Nothing."],
      references: ["ip-route(8)"],
    });
    const rule = ruleWith({ fix: "some-fix" }, fix);
    const offered = (text: string) =>
      diagnose(captureOf(...routes(text)), { rules: new Map([["some-rule", rule]]), fixes: new Map([["some-fix", { file: fix, version: "1" }]]) }, "x", () => 0)
        .causes[0];
    expect(offered(DEFAULT)?.fix).toEqual({ id: "some-fix", parameters: { interfaces: ["eth0"] } });
    const hostile = offered("default via 10.0.0.1 dev $(reboot)\n");
    expect(hostile?.fix).toBeUndefined();
    expect(hostile?.fixProblem).toBe('some-fix: "$(reboot)" is not a valid interface for interfaces');
    const many = Array.from({ length: 33 }, (_, i) => `default via 10.0.0.1 dev eth${i} metric ${i}\n`).join("");
    expect(offered(many)?.fixProblem).toBe("some-fix: 33 values for interfaces; at most 32 are fixed in one go");
  });
});

describe("hostile captures", () => {
  const runbooks = fileURLToPath(new URL("../../runbooks/", import.meta.url));
  const shipped = loadCatalogue(runbooks);
  const paths = [...shipped.rules.keys()].flatMap((id) =>
    readdirSync(`${runbooks}rules/${id}/fixtures`)
      .map((name) => `${runbooks}rules/${id}/fixtures/${name}`)
      .filter((path) => existsSync(`${path}/capture.json`)),
  );

  /** What must hold of every diagnosis, whatever it was made of. */
  function check(capture: Capture): void {
    const diagnosis = diagnose(capture, shipped, "x", () => 0);
    JSON.stringify(diagnosis);
    for (const { evidence, confidence, summary, rule } of [...diagnosis.causes, ...diagnosis.symptoms, ...diagnosis.risks]) {
      expect(evidence.length, rule).toBeGreaterThan(0);
      for (const { command, file, line, text } of evidence) {
        expect(text.trim(), rule).not.toBe("");
        expect(line, rule).toBeGreaterThanOrEqual(1);
        expect(capture.outputs.some((one) => one.command === command && one.file === file)).toBe(true);
      }
      expect(confidence).toBeGreaterThanOrEqual(0);
      expect(confidence).toBeLessThanOrEqual(1);
      expect(summary).not.toBe("");
    }
    for (const { reason, rule } of diagnosis.unchecked) expect(reason, rule).not.toBe("");
    const netcheckFailed = [...readFacts(capture).readings.values()].filter(({ reason }) => /netcheck could not/.test(reason));
    expect(netcheckFailed).toEqual([]);
  }

  // names that mean something to JavaScript, and text that means something to a shell, a template or a parser
  const words = [
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "-1",
    "999999999999999999999",
    "0x10",
    "\u{0}",
    "\r",
    "\u{2028}",
    "{{ x }}",
    "$(id)",
    '"',
    "{",
    "[[",
    "\u{1b}[31m",
  ];
  const edit = fc.record({
    output: fc.nat(),
    at: fc.nat(),
    length: fc.nat({ max: 200 }),
    insert: fc.oneof(fc.constantFrom("", ...words), fc.string({ unit: "binary", maxLength: 60 })),
    what: fc.constantFrom("splice", "splice", "splice", "word", "cut", "swap", "drop", "double", "exit", "stderr", "truncated", "sample", "command"),
  });
  type Edit = typeof edit extends fc.Arbitrary<infer T> ? T : never;

  function apply(outputs: readonly Output[], { output: which, at, length, insert, what }: Edit): Output[] {
    const i = which % Math.max(1, outputs.length);
    const one = outputs[i];
    const other = outputs[at % Math.max(1, outputs.length)];
    if (one === undefined || other === undefined) return [...outputs];
    const { text } = one;
    const from = at % (text.length + 1);
    const spots = [...text.matchAll(/[A-Za-z0-9_.:/-]{2,}/g)];
    const spot = spots[at % Math.max(1, spots.length)];
    const changed: Record<Edit["what"], () => Output[]> = {
      splice: () => [{ ...one, text: text.slice(0, from) + insert + text.slice(from + length) }],
      word: () => [{ ...one, text: spot === undefined ? text : text.slice(0, spot.index) + insert + text.slice(spot.index + spot[0].length) }],
      cut: () => [{ ...one, text: text.slice(0, from) }],
      swap: () => [{ ...one, text: other.text }],
      drop: () => [],
      double: () => [one, { ...one, text: text + text }],
      exit: () => [{ ...one, exitCode: [0, 1, 2, 124, 127, 137, 255, -1, undefined][at % 9] }],
      stderr: () => [{ ...one, stderr: insert }],
      truncated: () => [{ ...one, truncated: true }],
      sample: () => [{ ...one, sample: 3 - one.sample }],
      command: () => [{ ...one, argv: undefined, command: `${insert} ${other.command} ${insert}` }],
    };
    return [...outputs.slice(0, i), ...changed[what](), ...outputs.slice(i + 1)];
  }

  test("diagnose never throws, and every finding has its evidence, however a real capture is mutilated", async () => {
    const captures = await Promise.all(paths.map((path) => readCaptureFiles(path)));
    fc.assert(
      fc.property(fc.nat(), fc.array(edit, { minLength: 1, maxLength: 8 }), (which, edits) => {
        const capture = captures[which % captures.length] as Capture;
        check({ ...capture, outputs: edits.reduce<readonly Output[]>(apply, capture.outputs) });
      }),
      { numRuns: process.env["CASES"] === "all" ? 1500 : 500, seed: 14 },
    );
    expect(Object.prototype).not.toHaveProperty("polluted");
  }, 60_000);

  test("a unit of the journal that is called like what every object has", () => {
    const text = "Nov 12 08:41:27 worker-2 toString[711]: eth0: Lost carrier\nNov 12 08:41:28 worker-2 constructor: eth0: Gained carrier\n";
    check(captureOf(output("journalctl -u toString", text)));
  });

  test("every word of a small capture replaced by names that mean something to JavaScript: no throw, and no prototype is touched", async () => {
    const before = Object.getOwnPropertyNames(Object.prototype);
    for (const path of paths.filter((one) => one.endsWith("/lab-fault"))) {
      const capture = await readCaptureFiles(path);
      for (const word of ["__proto__", "constructor", "toString"]) {
        const poisoned = (text: string) => text.replaceAll(/eth0|cni0|bond0|KUBE-[A-Z0-9-]+|FORWARD|lxc\w+|azure0|net\.bridge[\w.-]+|"key": ?"\w+"/g, word);
        check({ ...capture, outputs: capture.outputs.map((one) => ({ ...one, text: poisoned(one.text) })) });
        check({ ...capture, outputs: capture.outputs.map((one) => ({ ...one, argv: undefined, command: `${word} -n ${one.command}` })) });
      }
    }
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
    expect(({} as Record<string, unknown>)["line"]).toBeUndefined();
  });
});
