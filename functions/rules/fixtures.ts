import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Capture } from "../facts/capture.ts";
import type { Rule } from "./compile.ts";
import { diagnose } from "./diagnose.ts";
import type { Evidence, RuleVerdict } from "./diagnosis.ts";
import { judgeRule } from "./judge.ts";
import { type Catalogue, loadFile } from "./load.ts";

/**
 * The fixtures of a rule: `runbooks/rules/<rule-id>/fixtures/<case>/{capture.json, outputs/…, expect.yaml}`. A new case is one folder; its name says why
 * it exists. `netcheck rules test` and `test/rules.test.ts` check them with the same code.
 */

/** `expect.yaml`: what a rule must say of a case. */
export const Expect = z.strictObject({
  /** Another rule's fixture to judge, so that a capture is kept once: "<rule>/<case>". */
  capture: z
    .string()
    .regex(/^[a-z0-9-]+\/[\w.-]+$/, 'it names a fixture as "<rule>/<case>"')
    .optional(),
  verdict: z.enum(["match", "no-match", "not-applicable", "inconclusive"]),
  /** Every one of these must stand in a quoted line. */
  evidence: z.array(z.string().min(1)).optional(),
  /** The rule must be the first cause of the whole diagnosis. */
  first: z.boolean().optional(),
  /** The verdict of the whole diagnosis. */
  diagnosis: z.enum(["cause-found", "symptoms-only", "healthy", "inconclusive"]).optional(),
  /** Must stand in the reason of a verdict that is not a match. */
  reason: z.string().optional(),
  /** The parameters of the fix that is proposed. */
  fix: z.record(z.string(), z.unknown()).optional(),
  /** What this cause explains, exactly. */
  explains: z.array(z.string()).optional(),
  /** Known gap: written down, not failing. */
  todo: z.string().min(1).optional(),
});
export type Expect = z.infer<typeof Expect>;

/** One fixture of a rule. */
export interface FixtureCase {
  readonly rule: string;
  readonly name: string;
  readonly expect: Expect;
  /** Folder of the capture: the case's own, or that of the fixture which it borrows. */
  readonly capture: string;
  /** True if the capture is this case's own. */
  readonly own: boolean;
}

/** One thing that is not as expected. */
export interface Problem {
  /** What was looked at: a key of expect.yaml, "false alarm", "capture", … */
  readonly check: string;
  readonly expected: string;
  readonly actual: string;
}

/** How a case went. */
export interface CaseResult {
  readonly rule: string;
  readonly case: string;
  /** What expect.yaml asks for. */
  readonly expected: RuleVerdict;
  /** What the rule said; undefined if it could not be asked. */
  readonly verdict: RuleVerdict | undefined;
  readonly reason: string;
  /** Of a match: the form that speaks; empty where the rule has just one. */
  readonly form: string | undefined;
  /** 0…1, of a match. */
  readonly confidence: number | undefined;
  readonly evidence: readonly Evidence[];
  /** Causes that the whole ruleset found on a capture that must have none; empty for other captures. */
  readonly falseAlarms: readonly { readonly rule: string; readonly confidence: number }[];
  /** Where the whole diagnosis of a faulty node was made: the causes found beside this rule's. Undefined where it was not. */
  readonly companions: readonly { readonly rule: string; readonly confidence: number }[] | undefined;
  /** Empty if the case is as expected, or is a known gap. */
  readonly problems: readonly Problem[];
  /** The known gap, in words: the case is evaluated and does not fail. */
  readonly todo: string | undefined;
}

/** Reads a capture from a folder; the transports know how. */
export type ReadCapture = (path: string) => Promise<Capture>;

/** Names of a rule's cases, sorted; none if it has no fixtures folder. */
export function fixtureNames(runbooks: string, rule: string): string[] {
  const folder = join(runbooks, "rules", rule, "fixtures");
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
}

/** Reads the expect.yaml of a case. @throws {LoadError} that names file, position, key and reason. */
export function readCase(runbooks: string, rule: string, name: string): FixtureCase {
  const folder = join(runbooks, "rules", rule, "fixtures", name);
  const { value, fail } = loadFile(join(folder, "expect.yaml"), Expect);
  if (value.capture === undefined) return { rule, name, expect: value, capture: folder, own: true };
  const [otherRule = "", otherCase = ""] = value.capture.split("/");
  const capture = join(runbooks, "rules", otherRule, "fixtures", otherCase);
  if (!existsSync(join(capture, "capture.json"))) fail(["capture"], `there is no fixture "${value.capture}"`);
  return { rule, name, expect: value, capture, own: false };
}

/** Names of cases whose node is well: no rule may find a cause on it. */
const WELL = /healthy|fixed|near-miss/;

/** True if no rule may find a cause on this case's capture: the name says so, and the capture is kept here. */
export function mustBeQuiet(fixture: Pick<FixtureCase, "name" | "own">): boolean {
  return fixture.own && WELL.test(fixture.name);
}

/** What is missing from the set of cases as a whole: a rule needs one that matches and one that does not. */
export function coverageProblems(cases: readonly Pick<FixtureCase, "expect">[]): Problem[] {
  const verdicts = new Set(cases.map(({ expect }) => expect.verdict));
  const actual = verdicts.size === 0 ? "none" : [...verdicts].join(", ");
  return [
    ...(verdicts.has("match") ? [] : [{ check: "cases", expected: "a case with verdict: match", actual }]),
    ...(verdicts.has("no-match") || verdicts.has("not-applicable")
      ? []
      : [{ check: "cases", expected: "a case with verdict: no-match or not-applicable", actual }]),
  ];
}

/** The forms of a rule that speak in none of its cases: what they say was never read by anybody. */
export function formProblems({ forms }: Pick<Rule, "forms">, results: readonly Pick<CaseResult, "form">[]): Problem[] {
  const spoken = new Set(results.map(({ form }) => form));
  return forms
    .filter(({ name }) => name !== "" && !spoken.has(name))
    .map(({ name }) => ({ check: "cases", expected: `a case in which the form ${name} speaks`, actual: "in none it is the first that holds" }));
}

/** Judges a case and compares with expect.yaml. Never throws for what is wrong with the case: that is a problem of the result. */
export async function checkCase(fixture: FixtureCase, catalogue: Pick<Catalogue, "rules" | "fixes">, read: ReadCapture): Promise<CaseResult> {
  const { rule: id, name, expect } = fixture;
  const rule = catalogue.rules.get(id);
  const blank = {
    rule: id,
    case: name,
    expected: expect.verdict,
    reason: "",
    form: undefined,
    confidence: undefined,
    evidence: [],
    falseAlarms: [],
    companions: undefined,
    todo: expect.todo,
  };
  if (rule === undefined) return { ...blank, verdict: undefined, problems: [{ check: "rule", expected: `a rule "${id}"`, actual: "it could not be loaded" }] };
  let capture: Capture;
  try {
    capture = await read(fixture.capture);
  } catch (error) {
    const actual = error instanceof Error ? error.message : String(error);
    return { ...blank, verdict: undefined, problems: [{ check: "capture", expected: "a capture that can be read", actual }] };
  }
  const problems: Problem[] = [];
  const differ = (check: string, expected: unknown, actual: unknown): void => {
    problems.push({ check, expected: show(expected), actual: show(actual) });
  };
  const quiet = mustBeQuiet(fixture);
  const { outcome } = judgeRule(rule, capture);
  const evidence = outcome.finding?.evidence ?? [];
  if (outcome.verdict !== expect.verdict) differ("verdict", expect.verdict, `${outcome.verdict}${outcome.reason === "" ? "" : ` (${outcome.reason})`}`);
  const quoted = evidence.map(({ text }) => text).join("\n");
  for (const text of expect.evidence ?? [])
    if (!quoted.includes(text)) differ("evidence", `a quoted line with ${show(text)}`, quoted === "" ? "nothing is quoted" : quoted);
  if (expect.reason !== undefined && !outcome.reason.includes(expect.reason)) differ("reason", expect.reason, outcome.reason);
  for (const { command, file, line, text } of evidence) {
    const source = capture.outputs.find((output) => output.file === file && output.command === command);
    if (!`${source?.text}\n${source?.stderr}`.includes(text.trim().slice(0, 200)))
      differ("evidence", `a line of ${file}, verbatim`, `${file}:${line}: ${text}`);
  }
  const falseAlarms: { rule: string; confidence: number }[] = [];
  let companions: CaseResult["companions"];
  // the other rules are asked only where the whole diagnosis matters: that is most of the time a case takes
  if (quiet || [expect.first, expect.diagnosis, expect.fix, expect.explains].some((key) => key !== undefined)) {
    const diagnosis = diagnose(capture, catalogue, name, () => 0);
    const cause = diagnosis.causes.find((item) => item.rule === id);
    const others = diagnosis.causes.map(({ rule: found, confidence }) => ({ rule: found, confidence }));
    if (quiet) falseAlarms.push(...others);
    else if (expect.verdict === "match") companions = others.filter((other) => other.rule !== id);
    if (falseAlarms.length > 0)
      differ("false alarm", "no cause by any rule: the name says that this node is well", falseAlarms.map((alarm) => alarm.rule).join(", "));
    if (expect.first === true && diagnosis.causes[0]?.rule !== id) differ("first", id, diagnosis.causes[0]?.rule ?? "no cause");
    if (expect.diagnosis !== undefined && diagnosis.verdict !== expect.diagnosis)
      differ("diagnosis", expect.diagnosis, `${diagnosis.verdict}${diagnosis.unchecked.map(({ rule: open, reason }) => `\n  ${open}: ${reason}`).join("")}`);
    if (expect.fix !== undefined && !same(cause?.fix?.parameters, expect.fix))
      differ("fix", expect.fix, cause?.fix?.parameters ?? cause?.fixProblem ?? "no fix is proposed");
    if (expect.explains !== undefined && !same(cause?.explains, expect.explains)) differ("explains", expect.explains, cause?.explains ?? "it is no cause here");
  }
  // `netcheck rules new` makes empty files: what a rule says of nothing proves nothing, whatever was expected
  if (fixture.own && capture.outputs.every(({ text, stderr }) => text === "" && stderr === ""))
    differ("outputs", "what the commands printed", `${capture.outputs.map(({ file }) => file).join(", ")}: empty`);
  return {
    ...blank,
    verdict: outcome.verdict,
    reason: outcome.reason,
    form: outcome.form,
    confidence: outcome.finding?.confidence,
    evidence,
    falseAlarms,
    companions,
    problems: expect.todo === undefined ? problems : [],
  };
}

/** What a newcomer still has to write: lines of the rule's texts that hold the marker of `netcheck rules new`. */
export function unwritten(runbooks: string, rule: string): { file: string; line: number; text: string }[] {
  return ["rule.yaml", "README.md"].flatMap((file) => {
    const path = join(runbooks, "rules", rule, file);
    if (!existsSync(path)) return [];
    return readFileSync(path, "utf8")
      .split("\n")
      .flatMap((text, i) => (text.includes(UNWRITTEN) ? [{ file, line: i + 1, text: text.trim() }] : []));
  });
}
/** Stands in front of what `netcheck rules new` asks the author to write. */
export const UNWRITTEN = "FILL IN:";

const show = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** Equal as JSON, whatever the order of keys. */
function same(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || a === null || typeof b !== "object" || b === null) return a === b;
  const keys = Object.keys(a);
  return (
    Array.isArray(a) === Array.isArray(b) &&
    keys.length === Object.keys(b).length &&
    keys.every((key) => same((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]))
  );
}
