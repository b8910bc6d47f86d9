import type { Capture } from "../facts/capture.ts";
import type { Command } from "../facts/fact.ts";
import { facts as allFacts } from "../facts/index.ts";
import type { Program, Rule } from "../rules/compile.ts";
import { sourcesOf } from "../rules/compile.ts";
import type { Evidence, Finding, RuleVerdict } from "../rules/diagnosis.ts";
import { attempt, type Facts } from "../rules/evaluate.ts";
import { judgeRule } from "../rules/judge.ts";
import { cut } from "../triage/plain-text.ts";
import { type Clause, Clauses, type Search } from "./clauses.ts";
import { commandText, withShortCommands } from "./command-text.ts";

/** Why a rule said what it said of a capture: every fact, let and condition with its value and the lines behind it. Plain JSON. */
export interface Explanation {
  readonly rule: string;
  readonly verdict: RuleVerdict;
  /** Why it is inconclusive or not applicable. */
  readonly reason: string;
  readonly finding: Finding | undefined;
  /** What the verdict means here, and what would settle it if it is open. */
  readonly because: readonly string[];
  readonly facts: readonly ExplainedFact[];
  /** `applies`, the lets, `when`, `settled`, `undecided`, in the order of evaluation. */
  readonly expressions: readonly ExplainedExpression[];
}

export interface ExplainedFact {
  readonly fact: string;
  /** needs: without it nothing can be said; uses: taken for empty where it was not read. */
  readonly role: "needs" | "needs all of" | "uses";
  readonly state: "complete" | "partial" | "absent" | "failed";
  /** What is missing, and why; empty if all is well. */
  readonly reason: string;
  /** Rows that were read, by list. */
  readonly rows: Readonly<Record<string, number>>;
  /** The outputs it was read from: the commands as the capture names them. */
  readonly from: readonly string[];
  /** Commands that would show it in full; empty if it is complete. */
  readonly run: readonly string[];
}

export interface ExplainedExpression {
  readonly key: string;
  readonly clause: ExplainedClause;
}

/** A condition with its value, its parts and the lines that made it so. */
export interface ExplainedClause {
  readonly source: string;
  /** "true", "3 rows", "…", or undefined if it could not be worked out. */
  readonly value: string | undefined;
  readonly error: string | undefined;
  readonly joint: "&&" | "||" | undefined;
  readonly parts: readonly ExplainedClause[];
  readonly search: (Omit<Search, "closest"> & { readonly closest: readonly ExplainedRow[] }) | undefined;
  /** The lines of the value, where it is rows. */
  readonly lines: readonly ExplainedRow[];
}

/** A row with the values that conditions compare. */
export interface ExplainedRow extends Evidence {
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Judges a capture by one rule and tells why. */
export function explanation(rule: Rule, capture: Capture): Explanation {
  const { facts, outcome } = judgeRule(rule, capture);
  const { verdict, reason, finding } = outcome;
  const explained = [
    ...rule.needs.map(({ fact, whole }) => explainedFact(fact, whole ? "needs all of" : "needs", facts)),
    ...rule.file.uses.map((fact) => explainedFact(fact, "uses", facts)),
  ];
  const context = facts.context(rule);
  const clauses = new Clauses(rule, context);
  const expressions: ExplainedExpression[] = [];
  const show = (key: string, program: Program | undefined): void => {
    if (program !== undefined) expressions.push({ key, clause: explainedClause(clauses.of(program), facts) });
  };
  show("applies", rule.applies);
  for (const { name, program } of rule.lets) {
    show(`let ${name}`, program);
    const result = attempt(program, context);
    if ("value" in result) context[name] = result.value;
  }
  if (rule.forms.length > 1) for (const form of rule.forms) show(`form ${form.name}`, form.when);
  show("when", rule.when);
  show("settled", rule.settled);
  show("undecided", rule.undecided);
  const because = reasons(rule, verdict, reason, explained, expressions);
  return { rule: rule.file.id, verdict, reason, finding, because, facts: explained, expressions };
}

function explainedFact(id: string, role: ExplainedFact["role"], facts: Facts): ExplainedFact {
  const reading = facts.reading(id);
  const state = reading?.status === "read" ? (reading.complete ? "complete" : "partial") : (reading?.status ?? "absent");
  const lists = Object.entries((reading?.value ?? {}) as Record<string, unknown>).filter((entry): entry is [string, unknown[]] => Array.isArray(entry[1]));
  const outputs = new Set(
    lists.flatMap(([, rows]) => rows.flatMap((row) => (typeof row === "object" && row !== null && "output" in row ? [Number(row.output)] : []))),
  );
  const sources = [...sourcesOf([id])];
  const run = state === "complete" ? [] : allFacts.filter((fact) => sources.includes(fact.id)).flatMap((fact) => fact.commands.map(commandOf));
  return {
    fact: id,
    role,
    state,
    reason: reading?.reason ?? "it was not collected",
    rows: Object.fromEntries(lists.map(([name, rows]) => [name, rows.length])),
    from: [...outputs].sort((a, b) => a - b).map((index) => facts.capture.outputs[index]?.command ?? ""),
    run,
  };
}

const commandOf = (command: Command): string => `${commandText(command)}${command.each === undefined ? "" : " (once for each id)"}`;

function explainedClause(clause: Clause, facts: Facts): ExplainedClause {
  const { search, parts, value, ...rest } = clause;
  return {
    ...rest,
    value: rest.error === undefined ? valueText(value) : undefined,
    parts: parts.map((part) => explainedClause(part, facts)),
    search: search === undefined ? undefined : { ...search, closest: quotes(search.closest, facts) },
    lines: quotes(Array.isArray(value) ? value : [value], facts),
  };
}

/** At most this many lines are quoted for one value. */
const MAX_QUOTES = 5;

function quotes(rows: readonly unknown[], facts: Facts): ExplainedRow[] {
  const found: ExplainedRow[] = [];
  const seen = new Set<string>();
  for (const row of rows) {
    if (found.length === MAX_QUOTES) break;
    if (typeof row !== "object" || row === null || !("line" in row)) continue;
    const quote = facts.quote(row as { line: unknown });
    const key = `${quote?.file}:${quote?.line}:${quote?.text}`;
    if (quote === undefined || seen.has(key)) continue;
    seen.add(key);
    // a row shows its fact's own object as JSON: plain numbers, only the fields that are there
    const { line: _, output: __, text: ___, ...fields } = JSON.parse(JSON.stringify(row, plainNumbers)) as Record<string, unknown>;
    found.push({ ...quote, fields });
  }
  return found;
}

const plainNumbers = (_key: string, value: unknown): unknown => (typeof value === "bigint" ? Number(value) : value);

function valueText(value: unknown): string {
  if (!Array.isArray(value)) return typeof value === "object" && value !== null ? "a row" : typeof value === "string" ? JSON.stringify(value) : String(value);
  if (value.length === 0) return "no rows";
  if (value.every((item) => typeof item !== "object")) return `[${value.map((item) => valueText(item)).join(", ")}]`;
  return value.length === 1 ? "1 row" : `${value.length} rows`;
}

/** The verdict in sentences: what decided it, and for an open one the commands that would settle it. */
function reasons(rule: Rule, verdict: RuleVerdict, reason: string, facts: readonly ExplainedFact[], expressions: readonly ExplainedExpression[]): string[] {
  const when = expressions.find(({ key }) => key === "when")?.clause;
  const gate = expressions.find(({ key }) => key === "applies")?.clause;
  const failing = (clause: ExplainedClause | undefined): string =>
    clause === undefined
      ? ""
      : deciding(clause)
          .map((part) => `${part.source} is ${part.value ?? "unknown"}${why(part, expressions, 0)}`)
          .join("; ");
  if (verdict === "match") return ["when is true, and there are lines that prove it"];
  if (verdict === "not-applicable") return [`the gate is closed: ${failing(gate)}; and everything it looked at is completely known`];
  if (verdict === "no-match") return [`when is false: ${failing(when)}`];
  const open = [`open: ${reason}`];
  const absent = /No such key: (\w+)$/.exec(reason)?.[1];
  if (absent !== undefined)
    open.push(`for the rule's author: not every row has ${absent}; guard it with has(r.${absent}), or read it as r.?${absent}.orValue(…)`);
  if (when?.value === "false") open.push(`as far as was seen, when is false: ${failing(when)}`);
  if (rule.undecided !== undefined && reason === rule.file.undecided?.because) {
    const counted = [...new Set(facts.filter((fact) => rule.decidedBy.has(fact.fact) && fact.from.length > 0).flatMap(secondSamples))];
    if (counted.length > 0) open.push(`what would settle it: a second sample of ${code(counted)}, some seconds later`);
    return open;
  }
  const lacking = facts.filter((fact) => fact.state !== "complete" && (fact.role !== "uses" || rule.decidedBy.has(fact.fact)));
  for (const { fact, run, reason: why } of lacking) {
    // of several commands the one that was cut or failed
    const named = run.filter((command) => why.includes(`\`${command}\``));
    const commands = (named.length > 0 ? named : run).slice(0, 4);
    if (commands.length > 0) open.push(`what would settle it: the whole output of ${code(commands)} (fact ${fact})`);
  }
  if (rule.settled === undefined && when?.value === "false" && lacking.some(({ state }) => state === "partial"))
    open.push("for the rule's author: `settled` says when what was seen is enough, such as the one key that matters (docs/contributing.md)");
  return open;
}

const code = (commands: readonly string[]): string => commands.map((command) => `\`${command}\``).join(" and ");

/** The commands of a fact that are read twice: those that the capture holds once, else the first one. */
function secondSamples({ fact, from }: ExplainedFact): string[] {
  const sources = sourcesOf([fact]);
  const twice = allFacts.filter(({ id }) => sources.has(id)).flatMap(({ commands }) => commands.filter(({ samples }) => samples === 2).map(commandOf));
  const here = twice.filter((command) => from.includes(command));
  return here.length > 0 ? here : twice.slice(0, 1);
}

/** The innermost conditions that make a condition false. */
function deciding(clause: ExplainedClause): ExplainedClause[] {
  if (clause.joint === undefined) return [clause];
  const wrong = clause.parts.filter((part) => part.value !== "true");
  return (clause.joint === "&&" ? wrong.slice(0, 1) : wrong).flatMap(deciding);
}

/** Why a search found nothing: the condition that the last rows failed; through lets down to the one that came out empty first. */
function why(clause: ExplainedClause, expressions: readonly ExplainedExpression[], depth: number): string {
  const { search } = clause;
  const last = search?.steps.at(-1);
  if (search !== undefined && search.rows > 0 && last?.left === 0) {
    const before = search.steps.at(-2)?.left ?? search.rows;
    const where = search.steps.length > 1 ? " that came so far" : ` in ${search.source}`;
    return `, because none of ${before} row(s)${where} passes ${last.condition}${emptyLets(last.condition, clause, expressions, depth)}`;
  }
  return emptyLets(clause.source, clause, expressions, depth);
}

/** Lets that an expression reads and that came out empty, each with its reason. */
function emptyLets(source: string, clause: ExplainedClause, expressions: readonly ExplainedExpression[], depth: number): string {
  if (depth === 4) return "";
  // words of texts are no names
  const words = new Set(source.replaceAll(/"[^"]*"/g, "").match(/[A-Za-z_]\w*/g));
  const own = expressions.findIndex((expression) => expression.clause === clause);
  const empty = expressions.filter(
    ({ key, clause: inner }, i) => key.startsWith("let ") && (own === -1 || i < own) && words.has(key.slice(4)) && inner.value === "no rows",
  );
  const told = empty.slice(0, 3).map(({ key, clause: inner }) => `${key.slice(4)} is empty${why(inner, expressions, depth + 1)}`);
  return told.length === 0 ? "" : `: ${told.join("; ")}`;
}

/** An explanation for a terminal. */
export function explanationText({ rule, verdict, reason, because, facts, expressions, finding }: Explanation): string {
  const told = because.map((sentence) => `  ${withShortCommands(sentence)}`);
  const out = [`${rule}: ${verdict}${reason === "" ? "" : ` (${withShortCommands(reason)})`}`, ...told, ""];
  for (const fact of facts) {
    const rows = Object.entries(fact.rows).map(([name, count]) => `${count} ${name}`);
    out.push(
      `fact     ${fact.fact}: ${fact.state}${fact.reason === "" ? "" : `: ${fact.reason}`}${rows.length === 0 ? "" : ` (${rows.join(", ")})`}  [${fact.role}]`,
    );
    if (fact.from.length > 0) out.push(`           read from ${fact.from.map((command) => cut(command, 80)).join(" and ")}`);
  }
  out.push("");
  for (const { key, clause } of expressions) out.push(...clauseLines(clause, key, 0));
  if (finding !== undefined) {
    out.push("", `finding  ${finding.severity}, ${Math.round(finding.confidence * 100)} %: ${finding.summary}`);
    for (const line of finding.evidence) out.push(`           ${quoted(line)}`);
  }
  return `${out.join("\n")}\n`;
}

function clauseLines(clause: ExplainedClause, label: string, depth: number): string[] {
  const indent = "  ".repeat(depth);
  const value = clause.value ?? `could not be worked out: ${clause.error}`;
  const out = depth === 0 ? [`${label.padEnd(8)} = ${value}`, `           ${clause.source}`] : [`${indent}         ${value.padEnd(6)} ${clause.source}`];
  const inner = `${indent}           `;
  for (const part of clause.parts) out.push(...clauseLines(part, "", depth + 1));
  const { search } = clause;
  if (search !== undefined) {
    out.push(`${inner}  ${String(search.rows).padStart(5)} row(s) in ${search.source}`);
    for (const { condition, left } of search.steps)
      out.push(`${inner}  ${String(left).padStart(5)} ${search.method === "all" ? "with" : "left by"} ${condition}`);
    const none = search.steps.at(-1)?.left === 0;
    if (clause.lines.length === 0)
      for (const row of search.closest)
        out.push(`${inner}${none ? "came closest: " : "→ "}${quoted(row)}`, ...(none ? [`${inner}  ${cut(JSON.stringify(telling(row.fields)), 240)}`] : []));
  }
  for (const line of clause.lines) out.push(`${inner}→ ${quoted(line)}`);
  return out;
}

/** The fields of a row that say something: most flags are not set. */
const telling = (fields: ExplainedRow["fields"]): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== false && !(Array.isArray(value) && value.length === 0)));

const quoted = ({ command, line, text }: Evidence): string => `${cut(command, 80)}:${line}: ${cut(text.trim(), 200)}`;
