import type { ASTNode } from "@marcbachmann/cel-js";
import { type Converter, masksRefused, SOURCE, type View } from "./view.ts";

/**
 * Lets a rule look only at the rows that can matter. `iptables.rows.filter(r, r.chain == "FORWARD" && …)` walks 100,000 rows for the three of one chain,
 * and fifty rules do. Before it runs, the list is replaced by those of its rows that have the value, which are looked for once for all rules that ask for them.
 *
 * The rest of the condition is still evaluated on what is left, so what comes out is what the expression as it is written gives (test/rules/oracle.test.ts
 * compares both). Fields that a row may lack are used only behind a `has()`, as in the expression.
 */

/** A condition that a row must meet: the field, how, and with which texts. */
interface Condition {
  readonly field: string;
  readonly how: "==" | "startsWith";
  readonly values: readonly string[];
}

/** Which fields with a text a list's rows have: "required" (of them those with "few" values) or "optional". */
export type FieldKinds = (fact: string, list: string) => Readonly<Record<string, "required" | "few" | "optional">> | undefined;

/** What the names of the functions begin with that the rewritten expression calls, `iptables.narrow__rows(…)`; no rule may. */
export const NARROW = "narrow__";

const LOOPS = new Set(["exists", "filter"]);

/** The expression with its lists narrowed; the same text if there is nothing to narrow. `ast` is the text's. */
export function narrowed(source: string, ast: ASTNode, kinds: FieldKinds): string {
  const edits: { readonly start: number; readonly end: number; readonly text: string }[] = [];
  visit(ast, (node) => {
    if (node.op !== "rcall") return;
    const [method, list, args] = node.args as [string, ASTNode, readonly ASTNode[]];
    const [variable, predicate] = args;
    if (!LOOPS.has(method) || args.length !== 2 || variable?.op !== "id" || predicate === undefined) return;
    if (list.op !== ".") return;
    const [fact, field] = list.args as [ASTNode, string];
    const fields = fact.op === "id" ? kinds(fact.args as string, field) : undefined;
    if (fields === undefined) return;
    const conditions = conditionsOf(predicate, variable.args as string, fields);
    if (conditions.length === 0) return;
    const { start, end } = list as unknown as { start: number; end: number };
    const { end: behindFact } = fact as unknown as { end: number };
    const words = conditions.map(({ field: name, how, values }) => [name, how, ...values].map((word) => JSON.stringify(word)).join(", "));
    edits.push({ start, end, text: `${source.slice(start, behindFact)}.${NARROW}${field}([${words.map((word) => `[${word}]`).join(", ")}])` });
  });
  let result = source;
  // lists do not overlap: a loop's own list stands before its body
  for (const { start, end, text } of edits.sort((a, b) => b.start - a.start)) result = result.slice(0, start) + text + result.slice(end);
  return result;
}

function conditionsOf(predicate: ASTNode, variable: string, fields: Readonly<Record<string, string>>): Condition[] {
  const parts = conjunction(predicate);
  const guarded = new Set(parts.flatMap((part) => guardOf(part, variable) ?? []));
  const found: Condition[] = [];
  for (const part of parts) {
    const condition = conditionOf(part, variable);
    if (condition === undefined) continue;
    const kind = fields[condition.field];
    if (kind === "required" || kind === "few" || (kind === "optional" && guarded.has(condition.field))) found.push(condition);
  }
  // what has few values parts the rows least, and is looked at last
  const last = ({ field }: Condition): number => (fields[field] === "few" || field === "table" ? 1 : 0);
  return found.sort((a, b) => last(a) - last(b));
}

function conjunction(node: ASTNode): ASTNode[] {
  if (node.op !== "&&") return [node];
  return (node.args as readonly ASTNode[]).flatMap(conjunction);
}

/** `has(r.field)` → field */
function guardOf(node: ASTNode, variable: string): string | undefined {
  if (node.op !== "call") return undefined;
  const [name, args] = node.args as [string, readonly ASTNode[]];
  return name === "has" ? fieldOf(args[0], variable) : undefined;
}

function conditionOf(node: ASTNode, variable: string): Condition | undefined {
  if (node.op === "==") {
    const [left, right] = node.args as [ASTNode, ASTNode];
    const field = fieldOf(left, variable) ?? fieldOf(right, variable);
    const value = textOf(left) ?? textOf(right);
    return field === undefined || value === undefined ? undefined : { field, how: "==", values: [value] };
  }
  if (node.op === "in") {
    // r.target in ["DROP", "REJECT"]
    const [left, right] = node.args as [ASTNode, ASTNode];
    const field = fieldOf(left, variable);
    const values = right.op === "list" ? (right.args as readonly ASTNode[]).map(textOf) : [];
    if (field === undefined || values.length === 0 || !values.every((value) => value !== undefined)) return undefined;
    return { field, how: "==", values };
  }
  if (node.op === "rcall") {
    const [method, receiver, args] = node.args as [string, ASTNode, readonly ASTNode[]];
    const field = fieldOf(receiver, variable);
    const value = textOf(args[0]);
    if (method === "startsWith" && field !== undefined && value !== undefined) return { field, how: "startsWith", values: [value] };
  }
  return undefined;
}

/** `r.field` → field */
function fieldOf(node: ASTNode | undefined, variable: string): string | undefined {
  if (node?.op !== ".") return undefined;
  const [object, field] = node.args as [ASTNode, string];
  return object.op === "id" && object.args === variable ? field : undefined;
}

function textOf(node: ASTNode | undefined): string | undefined {
  const value = node?.op === "value" ? (node.args as unknown) : undefined;
  return typeof value === "string" ? value : undefined;
}

/** Calls `see` with every node of an expression. */
export function visit(node: unknown, see: (node: ASTNode) => void): void {
  if (Array.isArray(node)) for (const item of node) visit(item, see);
  else if (typeof node === "object" && node !== null && "op" in node) {
    see(node as ASTNode);
    visit((node as ASTNode).args, see);
  }
}

// ---- at run time -----------------------------------------------------------------------------------------------------------------------------

type Row = Readonly<Record<string, unknown>>;

/**
 * Where the texts of a field stand in a list: of each text the last place, and of each place the one before it with the same text (-1: none). No list for each
 * text, since of ten thousands of texts a few are asked for.
 */
interface Places {
  readonly last: ReadonlyMap<string, number>;
  readonly before: Int32Array;
}

/** Shorter lists are walked as fast by the expression itself. */
const MIN_ROWS = 200;
interface Known {
  readonly fields: Map<string, Places>;
  /** Rows as CEL sees them, by place: of a long list few are ever asked for. */
  readonly views: unknown[];
}
/** By list. Lists live as long as the facts of one capture. */
const known = new WeakMap<readonly Row[], Known>();

/**
 * Of a fact's list the rows that meet the most selective of the conditions, in their order.
 * @param conditions each: field, "==" or "startsWith", texts
 * @param show a row as CEL sees it
 */
export function narrow(fact: View, list: string, conditions: readonly (readonly string[])[], show: Converter): unknown {
  const rows = fact[SOURCE][list] as readonly Row[];
  // a value that is not known may be the one that is asked for
  if (rows.length < MIN_ROWS || masksRefused()) return (fact as unknown as Row)[list];
  const { fields, views } = known.get(rows) ?? { fields: new Map<string, Places>(), views: Array.from<unknown>({ length: rows.length }) };
  known.set(rows, { fields, views });
  let best: readonly number[] | undefined;
  for (const condition of conditions) {
    // what leaves most of the rows is not worth a list of its own: nearly every chain of a node is kube-proxy's
    best = meeting(rows, fields, condition, best?.length ?? rows.length / 2) ?? best;
    if (best !== undefined && best.length <= rows.length / 50) break;
  }
  return best === undefined ? (fact as unknown as Row)[list] : best.map((place) => (views[place] ??= show(rows[place])));
}

/** The places of the rows that meet a condition, in order; undefined if they are not fewer than `limit`. */
function meeting(
  rows: readonly Row[],
  fields: Map<string, Places>,
  [field = "", how, ...values]: readonly string[],
  limit: number,
): readonly number[] | undefined {
  const { last, before } = fields.get(field) ?? indexed(rows, field);
  fields.set(field, { last, before });
  const [prefix = ""] = values;
  const found: number[] = [];
  for (const text of how === "startsWith" ? last.keys() : new Set(values)) {
    if (how === "startsWith" && !text.startsWith(prefix)) continue;
    for (let place = last.get(text) ?? -1; place !== -1; place = before[place] as number) {
      found.push(place);
      if (found.length >= limit) return undefined;
    }
  }
  return found.sort((a, b) => a - b);
}

function indexed(rows: readonly Row[], field: string): Places {
  const last = new Map<string, number>();
  const before = new Int32Array(rows.length).fill(-1);
  // rows that stand together are often alike: a text is looked up where it begins and noted where it ends
  let [run, end] = ["", -1];
  for (let place = 0; place < rows.length; place++) {
    const value = (rows[place] as Row)[field];
    if (typeof value !== "string") continue;
    if (end !== -1 && value === run) before[place] = end;
    else {
      if (end !== -1) last.set(run, end);
      before[place] = last.get(value) ?? -1;
      run = value;
    }
    end = place;
  }
  if (end !== -1) last.set(run, end);
  return { last, before };
}
