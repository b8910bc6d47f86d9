import {
  type CaseResult,
  checkCase,
  coverageProblems,
  type FixtureCase,
  fixtureNames,
  formProblems,
  type Problem,
  readCase,
  unwritten,
} from "../rules/fixtures.ts";
import type { Catalogue } from "../rules/load.ts";
import { LoadError } from "../rules/load.ts";
import { readCaptureFiles } from "../transports/capture-files.ts";
import { cut } from "../triage/plain-text.ts";
import { withShortCommands } from "./command-text.ts";
import { fixShellProblem } from "./fix-shell.ts";

/** How the fixtures of one rule went. */
export interface RuleResult {
  readonly rule: string;
  readonly ok: boolean;
  /** What is wrong with the rule as a whole: it does not load, has no case that matches, holds text that is still to be written. */
  readonly problems: readonly Problem[];
  /** Lines that `netcheck rules new` left for the author to write. */
  readonly unwritten: readonly { readonly file: string; readonly line: number; readonly text: string }[];
  readonly cases: readonly CaseResult[];
}

/**
 * Runs the fixtures of a rule. A rule that does not load fails with file, position, key and reason; other rules that do not load are no business of this
 * one. @param catalogue loaded tolerantly
 */
export async function testRule(id: string, runbooks: string, catalogue: Catalogue): Promise<RuleResult> {
  const broken = catalogue.broken.rules.get(id);
  if (broken !== undefined)
    return { rule: id, ok: false, problems: [{ check: "rule", expected: "a rule that loads", actual: broken }], unwritten: [], cases: [] };
  const problems: Problem[] = [];
  const known: FixtureCase[] = [];
  for (const name of fixtureNames(runbooks, id)) {
    try {
      known.push(readCase(runbooks, id, name));
    } catch (error) {
      if (!(error instanceof LoadError)) throw error;
      problems.push({ check: "expect.yaml", expected: "a file that loads", actual: error.message });
    }
  }
  problems.push(...coverageProblems(known));
  const fixId = catalogue.rules.get(id)?.file.fix ?? "";
  const unloaded = catalogue.broken.fixes.get(fixId);
  if (unloaded !== undefined) problems.push({ check: "fix", expected: "a fix that loads", actual: unloaded });
  const fix = catalogue.fixes.get(fixId);
  const shell = fix === undefined ? undefined : await fixShellProblem(fix);
  if (shell !== undefined) problems.push({ check: "fix", expected: "a check that the shell understands", actual: `${fixId}: ${shell}` });
  const open = unwritten(runbooks, id);
  const cases: CaseResult[] = [];
  for (const one of known) cases.push(await checkCase(one, catalogue, readCaptureFiles));
  const rule = catalogue.rules.get(id);
  if (rule !== undefined) problems.push(...formProblems(rule, cases));
  return { rule: id, ok: problems.length === 0 && open.length === 0 && cases.every((one) => one.problems.length === 0), problems, unwritten: open, cases };
}

/** The results of one rule for a terminal: a line a case, and under each failure what was expected and what came. */
export function ruleResultText({ rule, problems, unwritten: open, cases }: RuleResult): string {
  const width = Math.max(0, ...cases.map((one) => one.case.length));
  const lines = [rule];
  for (const one of cases) {
    const state = one.problems.length > 0 ? "FAIL" : one.todo === undefined ? "ok  " : "gap ";
    const sure = one.confidence === undefined ? "" : ` ${Math.round(one.confidence * 100)} %`;
    lines.push(`  ${state} ${one.case.padEnd(width)}  ${one.verdict ?? "could not be judged"}${sure}${one.reason === "" ? "" : ` (${cut(one.reason, 140)})`}`);
    if (one.todo !== undefined) lines.push(`         known gap: ${one.todo}`);
    if (one.problems.length === 0) continue;
    lines.push(...one.problems.flatMap(problemLines));
    for (const { command, line, text } of one.evidence.slice(0, 5)) lines.push(`         quoted ${command}:${line}: ${cut(text.trim(), 160)}`);
  }
  lines.push(...(problems.length === 0 ? [] : ["  FAIL the rule itself", ...problems.flatMap(problemLines)]));
  if (open.length > 0) lines.push("  FAIL still to be written", ...open.map(({ file, line, text }) => `       ${file}:${line}: ${cut(text, 120)}`));
  return lines.join("\n");
}

/** One line that sums up. */
export function summaryText(results: readonly RuleResult[]): string {
  const cases = results.flatMap((result) => result.cases);
  const failed = cases.filter((one) => one.problems.length > 0).length;
  const gaps = cases.filter((one) => one.todo !== undefined).length;
  const bad = results.filter((result) => !result.ok).map((result) => result.rule);
  const counts = `${results.length} rule(s), ${cases.length} case(s): ${cases.length - failed - gaps} as expected, ${failed} failed${gaps === 0 ? "" : `, ${gaps} known gap(s)`}`;
  if (bad.length === 0) return counts;
  const hint = failed === 0 ? "" : ": netcheck rules explain ID CAPTURE shows why";
  return `${counts}. Look at ${bad.slice(0, 10).join(", ")}${bad.length > 10 ? " …" : ""}${hint}`;
}

function problemLines({ check, expected, actual }: Problem): string[] {
  const indent = (text: string): string => cut(withShortCommands(text), 1200).replaceAll("\n", `\n${" ".repeat(20)}`);
  return [`       ${check}`, `         expected   ${indent(expected)}`, `         actual     ${indent(actual)}`];
}
