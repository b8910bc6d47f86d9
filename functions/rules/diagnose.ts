import type { Capture } from "../facts/capture.ts";
import { tellsTime } from "../facts/date-output.ts";
import type { Cause, Diagnosis, Finding, Verdict } from "./diagnosis.ts";
import { severities } from "./diagnosis.ts";
import type { Outcome } from "./evaluate.ts";
import { bind } from "./fix.ts";
import { judge } from "./judge.ts";
import type { Catalogue } from "./load.ts";

/**
 * Diagnoses a capture: one list of ranked causes with what they explain, what else was found, what could not be checked.
 * `name`: the capture as the caller knows it. `elapsed` gives milliseconds since some fixed point.
 */
export function diagnose(
  capture: Capture,
  catalogue: Pick<Catalogue, "rules" | "fixes"> & Partial<Pick<Catalogue, "broken" | "runbooks">>,
  name: string,
  elapsed: () => number,
): Diagnosis {
  const started = elapsed();
  const { facts, outcomes, gone } = judge(capture, catalogue);
  const matched = outcomes.filter((outcome) => outcome.finding !== undefined);
  const ids = new Set(matched.map((outcome) => outcome.rule.file.id));
  // a cause that a better cause explains is listed under that one, not beside it
  const explained = new Set(matched.filter((outcome) => outcome.rule.file.role === "cause").flatMap((outcome) => outcome.rule.file.explains));
  const causes = matched
    .filter((outcome) => outcome.rule.file.role === "cause" && !explained.has(outcome.rule.file.id))
    .map((outcome) => causeOf(outcome, ids, catalogue))
    .map((cause) => (gone.has(cause.rule) ? { ...cause, summary: `${cause.summary} ${GONE}` } : cause))
    .sort((a, b) => b.confidence - a.confidence || b.explains.length - a.explains.length || rank(b) - rank(a) || (a.rule < b.rule ? -1 : 1));
  const ofRole = (role: string) => matched.filter((outcome) => outcome.rule.file.role === role).map((outcome) => outcome.finding as Finding);
  const minor = matched.filter((outcome) => outcome.rule.file.role === "cause" && explained.has(outcome.rule.file.id));
  const symptoms = [...minor.map((outcome) => outcome.finding as Finding), ...ofRole("symptom")];
  const broken = [...(catalogue.broken?.rules ?? [])].map(([rule, problem]) => ({ rule, reason: `it could not be loaded: ${problem}` }));
  const undecided = outcomes.filter((outcome) => outcome.verdict === "inconclusive");
  return {
    schema: "netcheck.diagnosis/1",
    capture: name,
    target: capture.target,
    verdict: verdictOf(causes, symptoms, undecided.some((outcome) => outcome.rule.file.role === "cause") || broken.length > 0),
    causes,
    symptoms,
    risks: ofRole("risk"),
    unchecked: [...undecided.map(({ rule, reason }) => ({ rule: rule.file.id, reason })), ...broken],
    unparsed: facts.set.unparsed.map(({ output, lines }) => ({ command: facts.capture.outputs[output]?.command ?? "", lines })),
    unknown: facts.set.unknown.map((output) => facts.capture.outputs[output]?.command ?? "").filter((command) => !tellsTime(command)),
    stats: { bytes: facts.set.bytes, lines: facts.set.lines, rules: outcomes.length + broken.length, ms: Math.round((elapsed() - started) * 10) / 10 },
  };
}

const GONE = "A later answer to the same question does not show it any more.";

function causeOf(outcome: Outcome, matched: ReadonlySet<string>, catalogue: Pick<Catalogue, "fixes"> & Partial<Pick<Catalogue, "broken">>): Cause {
  const finding = outcome.finding as Finding;
  const explains = outcome.rule.file.explains.filter((id) => matched.has(id));
  const fix = outcome.rule.file.fix === undefined ? undefined : catalogue.fixes.get(outcome.rule.file.fix);
  const problem = catalogue.broken?.fixes.get(outcome.rule.file.fix ?? "");
  if (fix === undefined) return { ...finding, explains, ...(problem === undefined ? {} : { fixProblem: `its fix could not be loaded: ${problem}` }) };
  const binding = bind(fix.file, outcome.parameters ?? {});
  return binding.ok
    ? { ...finding, explains, fix: { id: fix.file.id, parameters: binding.parameters } }
    : { ...finding, explains, fixProblem: binding.problem };
}

/** Healthy only if every cause could be ruled out. */
function verdictOf(causes: readonly Cause[], symptoms: readonly Finding[], undecided: boolean): Verdict {
  if (causes.length > 0) return "cause-found";
  if (symptoms.length > 0) return "symptoms-only";
  return undecided ? "inconclusive" : "healthy";
}

const rank = (finding: Finding): number => severities.indexOf(finding.severity);
