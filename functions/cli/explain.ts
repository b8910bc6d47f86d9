import type { Capture } from "../facts/capture.ts";
import { readFacts } from "../facts/read.ts";
import type { Program } from "../rules/compile.ts";
import { attempt, evaluateRule, Facts } from "../rules/evaluate.ts";
import type { Catalogue } from "../rules/load.ts";

/** Why a rule did or did not match: each need, gate, let and condition with its value and the rows behind it. */
export function explain(id: string, capture: Capture, catalogue: Pick<Catalogue, "rules">): string {
  const rule = catalogue.rules.get(id);
  if (rule === undefined) throw new Error(`there is no rule "${id}"`);
  const facts = new Facts(capture, readFacts(capture, new Set([...rule.needs.map((need) => need.fact), ...rule.file.uses])));
  const outcome = evaluateRule(rule, facts);
  const out = [`${id}: ${outcome.verdict}${outcome.reason === "" ? "" : ` (${outcome.reason})`}`, ""];
  const context = facts.context(rule);
  for (const fact of [...rule.needs.map((need) => need.fact), ...rule.file.uses]) {
    const reading = facts.reading(fact);
    const state = reading?.status === "read" ? (reading.complete ? "complete" : `partial: ${reading.reason}`) : `${reading?.status}: ${reading?.reason}`;
    out.push(`fact     ${fact}: ${state}`);
  }
  const show = (label: string, program: Program): unknown => {
    const result = attempt(program, context);
    if (!("value" in result)) {
      out.push(`${label} = could not be worked out: ${result.error}`, `           ${program.source.replaceAll(/\s+/g, " ")}`);
      return undefined;
    }
    out.push(`${label} = ${brief(result.value)}`, `           ${program.source.replaceAll(/\s+/g, " ")}`);
    for (const row of Array.isArray(result.value) ? result.value.slice(0, 5) : [result.value]) {
      if (typeof row !== "object" || row === null || !("line" in row)) continue;
      const quote = facts.quote(row as { line: unknown });
      if (quote !== undefined) out.push(`           → ${quote.command}:${quote.line}: ${quote.text.trim().slice(0, 160)}`);
    }
    return result.value;
  };
  if (rule.applies !== undefined) show("applies ", rule.applies);
  for (const { name, program } of rule.lets) {
    const value = show(`let      ${name}`, program);
    if (value !== undefined) context[name] = value;
  }
  for (const clause of clauses(rule.when.source)) out.push(`clause   ${clause}`);
  show("when    ", rule.when);
  return `${out.join("\n")}\n`;
}

/** The parts of a conjunction, for reading; not evaluated on their own. */
const clauses = (source: string): string[] => (source.includes("&&") ? source.split("&&").map((part) => part.trim().replaceAll(/\s+/g, " ")) : []);

function brief(value: unknown): string {
  if (Array.isArray(value)) return `${value.length} item(s)`;
  if (typeof value === "object" && value !== null) return "a row";
  return String(value);
}
