import type { CaseResult } from "../rules/fixtures.ts";
import { table } from "./markdown.ts";

/** A finding on a fixture whose truth is known. */
interface Claim {
  /** 0…1, as the rule stated it. */
  readonly confidence: number;
  readonly right: boolean;
}

/** Lower ends of the ranges of stated confidence; each ends where the next begins. */
const RANGES = [0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95];

/** Every finding that the fixtures can prove right or wrong: the rule's own, and causes on captures that must have none. Known gaps count. */
function claimsOf(results: readonly CaseResult[]): Claim[] {
  return results.flatMap((result) => [
    ...(result.verdict === "match" ? [{ confidence: result.confidence ?? 0.5, right: result.expected === "match" }] : []),
    // the rule's own false alarm is counted above
    ...result.falseAlarms
      .filter((alarm) => alarm.rule !== result.rule || result.verdict !== "match")
      .map((alarm) => ({ confidence: alarm.confidence, right: false })),
  ]);
}

/** Lower end of the 95 % Wilson interval of a share: what few cases can prove. */
function atLeast(right: number, all: number): number {
  const z = 1.96;
  const share = right / all;
  return (share + z ** 2 / (2 * all) - z * Math.sqrt((share * (1 - share)) / all + z ** 2 / (4 * all ** 2))) / (1 + z ** 2 / all);
}

const percent = (share: number): string => `${Math.floor(share * 100)} %`;

/** Other causes on faulty nodes. No test asks for their absence: some nodes have two faults, so each pair is for a person to judge. */
function companionLines(results: readonly CaseResult[]): string[] {
  const whole = results.filter((result) => result.companions !== undefined);
  const accompanied = whole.filter((result) => result.companions?.length !== 0);
  const pairs = new Map<string, { rule: string; other: string; cases: number; best: number }>();
  for (const { rule, companions } of accompanied) {
    for (const { rule: other, confidence } of companions ?? []) {
      const pair = pairs.get(`${rule} ${other}`) ?? { rule, other, cases: 0, best: 0 };
      pairs.set(`${rule} ${other}`, { ...pair, cases: pair.cases + 1, best: Math.max(pair.best, confidence) });
    }
  }
  const rows = [...pairs.values()].sort((a, b) => b.cases - a.cases || (`${a.rule} ${a.other}` < `${b.rule} ${b.other}` ? -1 : 1));
  return [
    `Of ${whole.length} faulty nodes all rules were asked; on ${accompanied.length} of them they found other causes, too. No test forbids that: a node can have two faults, and whether a pair is`,
    "one fault told twice is for a person to judge.",
    ...(rows.length === 0
      ? []
      : [
          "",
          ...table(
            ["case of", "other cause", "cases", "highest confidence"],
            rows.map(({ rule, other, cases, best }) => [`\`${rule}\``, `\`${other}\``, cases, percent(best)]),
          ),
        ]),
  ];
}

/** How often the rules were right, by the confidence they stated, and rule by rule. */
export function reliabilityPage(results: readonly CaseResult[]): string {
  const claims = claimsOf(results);
  const ranges = RANGES.map((from, i) => {
    const to = RANGES[i + 1];
    const within = claims.filter(({ confidence }) => confidence >= from && (to === undefined || confidence < to));
    return {
      name: to === undefined ? `${from.toFixed(2)} – 1.00` : `${from.toFixed(2)} – ${(to - 0.01).toFixed(2)}`,
      all: within.length,
      right: within.filter((claim) => claim.right).length,
    };
  }).filter(({ all }) => all > 0);
  const rules = [...new Set(results.map((result) => result.rule))].sort().map((rule) => {
    const cases = results.filter((result) => result.rule === rule);
    const faulty = cases.filter((one) => one.expected === "match");
    const count = (verdict: string): number => faulty.filter((one) => one.verdict === verdict).length;
    // a false alarm is an innocent node, or one that nothing can be said of, on which this rule matched; whichever rule's case it is
    const own = cases.filter((one) => one.expected !== "match" && one.verdict === "match").length;
    const elsewhere = results.filter((one) => one.rule !== rule && one.falseAlarms.some((alarm) => alarm.rule === rule)).length;
    return [
      `\`${rule}\``,
      cases.length,
      faulty.length,
      count("match"),
      count("inconclusive"),
      faulty.length - count("match") - count("inconclusive"),
      cases.filter((one) => one.case.includes("near-miss")).length,
      own + elsewhere,
      cases.filter((one) => one.todo !== undefined).length,
    ];
  });
  const quiet = results.filter((result) => result.expected !== "match").length;
  return [
    "# Reliability",
    "",
    "Measured on the fixtures under `runbooks/rules/*/fixtures/`, whose truth is written in `expect.yaml`. They are our own: recorded in the lab, taken over from",
    "write-ups and issue threads, or made by hand to look like a fault and be none. The tests keep every rule right on them, so a share below 100 % can only come from",
    "a known gap (`todo` in `expect.yaml`). What the tables tell is therefore not how often netcheck errs in the field, but how many cases stand behind a stated",
    "confidence: 3 of 3 proves little. The last column of the first table says what so few cases do prove (lower end of the 95 % Wilson interval).",
    "",
    `${results.length} cases: ${results.length - quiet} of a fault that must be found, ${quiet} on which the rule must not match.`,
    "",
    "## By stated confidence",
    "",
    "A finding counts as right if the case is one of its fault. Causes found by any rule on a node that is well count as wrong.",
    "",
    ...table(
      ["stated confidence", "findings", "right", "hit rate", "at least"],
      ranges.map(({ name, all, right }) => [name, all, right, percent(right / all), percent(atLeast(right, all))]),
    ),
    "",
    "## Beside the right cause",
    "",
    ...companionLines(results),
    "",
    "## By rule",
    "",
    "Open: the fault was neither found nor ruled out. Missed: it was ruled out. False alarms: matches on nodes that do not have the fault.",
    "",
    ...table(["rule", "cases", "faulty", "found", "open", "missed", "near misses", "false alarms", "known gaps"], rules),
    "",
  ].join("\n");
}
