import { type ASTNode, Environment } from "@marcbachmann/cel-js";
import ipaddr from "ipaddr.js";
import type { z } from "zod";
import { derivedFacts } from "../facts/derived.ts";
import { facts } from "../facts/index.ts";
import { type FieldKinds, NARROW, narrow, visit } from "./narrow.ts";
import { patternProblem, re2 } from "./re2.ts";
import { type Converter, identity, type View, viewClass } from "./view.ts";

/**
 * CEL over the facts: the environment that rules are checked against and evaluated in.
 * The type of every fact is derived from its zod schema; whole numbers are CEL ints (BigInt), so rows are converted once per capture.
 */

/** Name of a fact as a CEL variable. */
export const variableOf = (factId: string): string => factId.replaceAll("-", "_");

const schemas = new Map([...facts, ...derivedFacts].map((fact) => [fact.id, () => fact.schema as z.ZodType]));

/** An object's type, as an environment is told of it. */
interface ObjectType {
  readonly name: string;
  readonly ctor: new (source: Record<string, unknown>) => object;
  readonly fields: readonly Field[];
}

interface CelType {
  readonly name: string;
  readonly convert: Converter;
  /** Of a list of objects: what shows one of them. */
  readonly element?: Converter;
  /** Those that it is made of, each behind its own parts. */
  readonly objects: readonly ObjectType[];
}

type Field = Omit<CelType, "objects"> & { readonly key: string };

/** What knows no fact yet. */
const base = new Environment({
  enableOptionalTypes: true,
  limits: { maxAstNodes: 500, maxDepth: 40, maxListElements: 100, maxMapEntries: 20, maxCallArguments: 8 },
});
base.registerFunction("string.re2(string): bool", (text: string, pattern: string) => re2(pattern).test(text));
base.registerFunction("string.inPrefix(string): bool", inPrefix);
base.registerFunction("string.hasPrefixLength(int): bool", (prefix: string, length: bigint) => prefix.endsWith(`/${length}`));

/**
 * A new environment with the functions and these facts. A rule reads a few of them, and its environment knows no others: to make one of all takes longer than
 * all that most commands do.
 * @param factIds those that are no facts are left out
 */
export function environmentOf(factIds: Iterable<string>): Environment {
  const env = base.clone();
  for (const id of new Set(factIds)) {
    const type = typeOf(id);
    if (type === undefined) continue;
    for (const { name, ctor, fields } of type.objects) {
      env.registerType(name, { ctor, fields: Object.fromEntries(fields.map((field) => [field.key, field.name])) });
      for (const { key, name: list, element } of fields)
        if (element !== undefined)
          env.registerFunction(`${name}.${NARROW}${key}(list<list<string>>): ${list}`, (fact: View, conditions: string[][]) =>
            narrow(fact, key, conditions, element),
          );
    }
    env.registerVariable(variableOf(id), type.name);
  }
  return env;
}

const types = new Map<string, CelType>();
/** The type of a fact; undefined where there is no such fact. */
function typeOf(factId: string): CelType | undefined {
  const schema = schemas.get(factId);
  if (schema !== undefined && !types.has(factId)) types.set(factId, celType(schema(), pascal(factId)));
  return types.get(factId);
}

/** The value of a fact as CEL sees it. */
export function toCel(factId: string, value: unknown): unknown {
  return typeOf(factId)?.convert(value);
}

const empty = new Map<string, unknown>();
/** The value of a fact of which nothing was read: its lists are empty. Stands for the facts that a rule merely uses. */
export function emptyFact(factId: string): unknown {
  if (!empty.has(factId)) empty.set(factId, nothingOf(factId));
  return empty.get(factId);
}

function nothingOf(factId: string): unknown {
  const { shape = {} } = definition(schemas.get(factId)?.());
  return toCel(factId, Object.fromEntries(Object.keys(shape).map((key) => [key, []])));
}

function celType(schema: z.ZodType, name: string): CelType {
  const def = definition(schema);
  switch (def.type) {
    case "optional":
      return celType(def.innerType as z.ZodType, name);
    case "string":
    case "enum":
    case "literal":
      return { name: "string", convert: identity, objects: [] };
    case "boolean":
      return { name: "bool", convert: identity, objects: [] };
    case "number":
      return {
        ...(def.format === "safeint" ? { name: "int", convert: (value) => BigInt(value as number) } : { name: "double", convert: identity }),
        objects: [],
      };
    case "array": {
      const { name: row, convert: show, objects } = celType(def.element as z.ZodType, `${name}Row`);
      const convert: Converter = show === identity ? identity : (value) => (value as unknown[]).map(show);
      return { name: `list<${row}>`, convert, objects, ...(/^[A-Z]/.test(row) ? { element: show } : {}) };
    }
    case "object": {
      const shape = Object.entries(def.shape as Record<string, z.ZodType>).map(([key, field]) => ({ key, ...celType(field, name + pascal(key)) }));
      const ctor = viewClass(name, shape);
      return {
        name,
        convert: (value) => new ctor(value as Record<string, unknown>),
        objects: [...shape.flatMap(({ objects }) => objects), { name, ctor, fields: shape }],
      };
    }
    default:
      throw new Error(`rules/cel: could not derive a CEL type for ${name}: zod type "${def.type}" is not among those facts may use`);
  }
}

/** `kernel-log` → `KernelLog`. */
export const pascal = (id: string): string => id.replace(/(?:^|-)([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

const prefixes = new Map<string, [ipaddr.IPv4 | ipaddr.IPv6, number] | undefined>();
/** True if an address (or a prefix, by its first address) lies in a prefix. False for text that is neither. */
function inPrefix(address: string, prefix: string): boolean {
  let range = prefixes.get(prefix);
  if (range === undefined && !prefixes.has(prefix)) {
    range = ipaddr.isValidCIDR(prefix) ? ipaddr.parseCIDR(prefix) : undefined;
    if (prefixes.size > 10_000) prefixes.clear();
    prefixes.set(prefix, range);
  }
  const slash = address.indexOf("/");
  const bare = slash === -1 ? address : address.slice(0, slash);
  if (range === undefined || !ipaddr.isValid(bare)) return false;
  const parsed = ipaddr.parse(bare);
  return parsed.kind() === range[0].kind() && parsed.match(range as [ipaddr.IPv4, number]);
}

/** Names that an expression refers to. */
export function namesIn(node: ASTNode): Set<string> {
  const found = new Set<string>();
  visit(node, (inner) => {
    if (inner.op === "id") found.add(inner.args);
  });
  return found;
}

/** Ids of the facts among names. */
export const factsAmong = (names: Iterable<string>): Set<string> => new Set([...names].flatMap((name) => byVariable.get(name) ?? []));
const byVariable = new Map([...schemas.keys()].map((id) => [variableOf(id), id]));

/** Comprehensions (`all`, `exists`, `map`, `filter`) may nest this deep: there is no cost budget in the library, and three loops over rows are enough. */
const MAX_NESTING = 3;
const LOOPS = new Set(["all", "exists", "exists_one", "map", "filter"]);

/** Refuses what would make an expression unsafe or unbounded. Returns the complaint, or undefined. */
export function complaint(node: ASTNode): string | undefined {
  let problem: string | undefined;
  visit(node, (inner) => {
    if (inner.op !== "rcall") return;
    const [method, , args] = inner.args;
    if (method.startsWith(NARROW)) problem = `${method}() is not for rules`;
    if (method === "matches") problem = 'matches() is banned (it backtracks): use text.re2("pattern")';
    if (method === "re2" && args[0]?.op !== "value") problem = "re2() takes a literal pattern";
    if (method === "re2" && args[0]?.op === "value") {
      const wrong = patternProblem(String(args[0].args));
      if (wrong !== undefined) problem = `re2(): ${wrong}`;
    }
  });
  if (problem === undefined && nesting(node) > MAX_NESTING) problem = `loops are nested deeper than ${MAX_NESTING}`;
  return problem;
}

function nesting(node: unknown): number {
  if (Array.isArray(node)) return Math.max(0, ...node.map(nesting));
  if (typeof node !== "object" || node === null || !("op" in node)) return 0;
  const { op, args } = node as ASTNode;
  if (op === "rcall" && LOOPS.has(args[0])) return Math.max(nesting(args[1]), 1 + nesting(args[2]));
  return nesting(args);
}

// biome-ignore lint/suspicious/noExplicitAny: zod's definition objects are not typed by kind
const definition = (schema: any): { type: string; shape?: Record<string, z.ZodType>; element?: z.ZodType; innerType?: z.ZodType; format?: string } =>
  schema?.def ?? { type: "" };

/** Which fields the rows of a fact's list have, by the fact's variable. */
export const fieldKinds: FieldKinds = (variable, list) => {
  const name = `${variable}.${list}`;
  if (!kindsOf.has(name)) kindsOf.set(name, kindsIn(variable, list));
  return kindsOf.get(name);
};
const kindsOf = new Map<string, ReturnType<FieldKinds>>();

function kindsIn(variable: string, list: string): ReturnType<FieldKinds> {
  const rows = definition(definition(schemas.get(byVariable.get(variable) ?? "")?.()).shape?.[list]);
  const shape = definition(rows.element).shape;
  if (rows.type !== "array" || shape === undefined) return undefined;
  const kinds: Record<string, "required" | "few" | "optional"> = {};
  for (const [name, schema] of Object.entries(shape)) {
    const { type, innerType } = definition(schema);
    const text = (one: string): boolean => one === "string" || one === "enum";
    if (text(type)) kinds[name] = type === "enum" ? "few" : "required";
    else if (type === "optional" && text(definition(innerType).type)) kinds[name] = "optional";
  }
  return kinds;
}
