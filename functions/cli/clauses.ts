import type { ASTNode, Environment } from "@marcbachmann/cel-js";
import { environmentOf } from "../rules/cel.ts";
import type { Program, Rule } from "../rules/compile.ts";

/** Takes CEL expressions apart, so that `rules explain` can show each clause with its own value. */

/** A step of a search: so many rows were left behind this condition. */
export interface Step {
  readonly condition: string;
  readonly left: number;
}

/** Why a list has the rows it has: where it searched, and how many rows each condition left over. */
export interface Search {
  readonly source: string;
  readonly rows: number;
  /** filter, exists, all: of `all` the rows that break the condition are followed. */
  readonly method: string;
  readonly steps: readonly Step[];
  /** The rows that came furthest, where none passed everything; else the ones that passed. */
  readonly closest: readonly unknown[];
}

/** A part of a condition with its value. */
export interface Clause {
  readonly source: string;
  /** Undefined if it could not be worked out. */
  readonly value: unknown;
  readonly error: string | undefined;
  /** "&&" or "||", where it has parts. */
  readonly joint: "&&" | "||" | undefined;
  readonly parts: readonly Clause[];
  /** How its loop went, where the clause is one. */
  readonly search: Search | undefined;
}

type Context = Record<string, unknown>;

/** Evaluates expressions of a rule and their parts in its context. */
export class Clauses {
  private readonly env: Environment;
  private readonly context: Context;

  /** @param context facts and lets by name; `define` adds to it */
  constructor(rule: Pick<Rule, "lets" | "facts">, context: Context) {
    this.env = environmentOf(rule.facts);
    for (const { name, program } of rule.lets) this.env.registerVariable(name, program.type);
    this.context = context;
  }

  define(name: string, value: unknown): void {
    this.context[name] = value;
  }

  /** The expression with its value, split at `&&` and `||` down to the single conditions. */
  of(program: Pick<Program, "source">): Clause {
    return this.clause(this.env.parse(program.source).ast, program.source);
  }

  private clause(node: ASTNode, all: string): Clause {
    const source = textOf(node, all);
    const own = this.value(source);
    const base = { source, value: "value" in own ? own.value : undefined, error: "error" in own ? own.error : undefined };
    if (node.op === "&&" || node.op === "||") {
      const parts = flat(node, node.op).map((part) => this.clause(part, all));
      return { ...base, joint: node.op, parts, search: undefined };
    }
    return { ...base, joint: undefined, parts: [], search: this.search(node, all) };
  }

  /** Follows a `filter`, `exists` or `all` over rows condition by condition. Undefined for anything else. */
  private search(node: ASTNode, all: string): Search | undefined {
    const loop = loopOf(node);
    if (loop === undefined) return undefined;
    const [method, list, variable, predicate] = loop;
    const from = textOf(list, all);
    const rows = this.value(from);
    if (!("value" in rows) || !Array.isArray(rows.value)) return undefined;
    // of `all` the rows that break it are what explains the value
    const conditions = method === "all" ? [`!(${textOf(predicate, all)})`] : flat(predicate, "&&").map((part) => textOf(part, all));
    const steps: Step[] = [];
    let left: readonly unknown[] = rows.value;
    let closest = left;
    for (let i = 0; i < conditions.length && left.length > 0; i++) {
      const passed = this.value(
        `${from}.filter(${variable}, ${conditions
          .slice(0, i + 1)
          .map((one) => `(${one})`)
          .join(" && ")})`,
      );
      if (!("value" in passed) || !Array.isArray(passed.value)) break;
      closest = left;
      left = passed.value;
      steps.push({ condition: conditions[i] as string, left: left.length });
    }
    // a long list of which no row passed any condition: nothing to learn from its rows
    const telling = left.length > 0 || steps.length > 1 || rows.value.length <= FEW;
    return { source: from, method, rows: rows.value.length, steps, closest: left.length > 0 ? left : telling && method !== "all" ? closest : [] };
  }

  private value(source: string): { readonly value: unknown } | { readonly error: string } {
    try {
      return { value: this.env.parse(source)(this.context) as unknown };
    } catch (error) {
      return { error: String((error as Error).message).split("\n")[0] ?? "" };
    }
  }
}

/** So many rows may be shown although none of them passed anything. */
const FEW = 3;

const LOOPS = new Set(["filter", "exists", "all", "exists_one"]);

function loopOf(node: ASTNode): [method: string, list: ASTNode, variable: string, predicate: ASTNode] | undefined {
  if (node.op !== "rcall") return undefined;
  const [method, list, [variable, predicate, ...more]] = node.args;
  if (!LOOPS.has(method) || variable?.op !== "id" || predicate === undefined || more.length > 0) return undefined;
  return [method, list, variable.args, predicate];
}

const TEXT = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g;

/** An expression's part as it stands there. Not by the library's `serialize`, which loses parentheses (`(a == b) == c`); its ranges leave out the outer ones. */
function textOf(node: ASTNode, all: string): string {
  const signs = all.replaceAll(TEXT, (text) => "_".repeat(text.length));
  let { start, end } = node as unknown as { start: number; end: number };
  let [opened, closed] = [0, 0];
  for (const sign of signs.slice(start, end)) {
    if (sign === "(") opened++;
    else if (sign === ")" && opened > 0) opened--;
    else if (sign === ")") closed++;
  }
  for (; closed > 0 && start > 0; start--) if (signs[start - 1] === "(") closed--;
  for (; opened > 0 && end < signs.length; end++) if (signs[end] === ")") opened--;
  return all.slice(start, end).trim();
}

/** The operands of a chain of the same operator, in order. */
function flat(node: ASTNode, joint: "&&" | "||"): ASTNode[] {
  return node.op === joint ? (node.args as [ASTNode, ASTNode]).flatMap((part) => flat(part, joint)) : [node];
}
