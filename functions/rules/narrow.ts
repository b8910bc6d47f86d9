import type { ASTNode } from "@marcbachmann/cel-js";
import { masksRefused, SOURCE } from "./view.ts";

/**
 * Lets a rule look only at the rows that can matter. `iptables.rows.filter(r, r.chain == "FORWARD" && …)` walks 100,000 rows for the three of one chain,
 * and fifty rules do. Before it runs, the list is replaced by those of its rows that have the value, which an index over the field knows.
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

/** Which fields a list's rows have: "required" (of them those with "few" values), "optional", or "list" for a list of texts. */
export type FieldKinds = (fact: string, list: string) => Readonly<Record<string, "required" | "few" | "optional" | "list">> | undefined;

/** The name of the function that the rewritten expression calls. A rule cannot call it: it takes lists that no rule can write. */
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
    const words = conditions.map(({ field: name, how, values }) => [name, how, ...values].map((word) => JSON.stringify(word)).join(", "));
    edits.push({ start, end, text: `${NARROW}(${source.slice(start, end)}, [${words.map((word) => `[${word}]`).join(", ")}])` });
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
    if (kind === "required" || kind === "few" || kind === "list" || (kind === "optional" && guarded.has(condition.field))) found.push(condition);
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
    const [left, right] = node.args as [ASTNode, ASTNode];
    // "INVALID" in r.states
    const member = textOf(left);
    const list = fieldOf(right, variable);
    if (member !== undefined && list !== undefined) return { field: list, how: "==", values: [member] };
    // r.target in ["DROP", "REJECT"]
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

function visit(node: unknown, see: (node: ASTNode) => void): void {
  if (Array.isArray(node)) for (const item of node) visit(item, see);
  else if (typeof node === "object" && node !== null && "op" in node) {
    see(node as ASTNode);
    visit((node as ASTNode).args, see);
  }
}

// ---- at run time -----------------------------------------------------------------------------------------------------------------------------

/** A row as CEL sees it. */
type Row = { readonly [SOURCE]: Readonly<Record<string, unknown>> };
/** Places in the list by value, in order. */
type Index = ReadonlyMap<string, readonly number[]>;

/** Shorter lists are walked faster than indexed. */
const MIN_ROWS = 200;
/** By list, then by field. Lists live as long as the facts of one capture. */
const indexes = new WeakMap<readonly Row[], Map<string, Index>>();

/** Of a fact's list the rows that meet the most selective of the conditions, in their order. Each condition: field, "==" or "startsWith", texts. */
export function narrow(rows: readonly Row[], conditions: readonly (readonly string[])[]): readonly Row[] {
  // a value that is not known may be the one that is asked for
  if (rows.length < MIN_ROWS || masksRefused()) return rows;
  let best: (readonly number[])[] | undefined;
  let least = rows.length;
  for (const [field = "", how, ...values] of conditions) {
    const places = placesOf(indexOf(rows, field), how, values);
    const size = places.reduce((sum, group) => sum + group.length, 0);
    if (size >= least) continue;
    best = places;
    least = size;
    if (least <= rows.length / 50) break;
  }
  if (best === undefined) return rows;
  const order = best.length === 1 ? (best[0] as readonly number[]) : [...new Set(best.flat())].sort((a, b) => a - b);
  return order.map((place) => rows[place] as Row);
}

function placesOf(index: Index, how: string | undefined, values: readonly string[]): (readonly number[])[] {
  if (how === "==") return values.flatMap((value) => (index.has(value) ? [index.get(value) as readonly number[]] : []));
  const [prefix = ""] = values;
  return [...index].filter(([value]) => value.startsWith(prefix)).map(([, places]) => places);
}

function indexOf(rows: readonly Row[], field: string): Index {
  let fields = indexes.get(rows);
  if (fields === undefined) {
    fields = new Map();
    indexes.set(rows, fields);
  }
  let index = fields.get(field);
  if (index === undefined) {
    const places = new Map<string, number[]>();
    const groupOf = (value: unknown): number[] | undefined => {
      if (typeof value !== "string") return undefined;
      let group = places.get(value);
      if (group === undefined) {
        group = [];
        places.set(value, group);
      }
      return group;
    };
    // rows that stand together are often alike
    let [last, group]: [unknown, number[] | undefined] = [undefined, undefined];
    rows.forEach((row, place) => {
      // past the view: texts are the same in the row behind it
      const value = row[SOURCE][field];
      if (Array.isArray(value)) for (const member of value.length > 1 ? new Set(value) : value) groupOf(member)?.push(place);
      else {
        if (value !== last) [last, group] = [value, groupOf(value)];
        group?.push(place);
      }
    });
    index = places;
    fields.set(field, index);
  }
  return index;
}
