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

interface CelType {
  readonly name: string;
  readonly convert: Converter;
  /** Of a list of objects: what shows one of them. */
  readonly element?: Converter;
}

const converters = new Map<string, Converter>();

function buildEnvironment(): Environment {
  const env = new Environment({
    enableOptionalTypes: true,
    limits: { maxAstNodes: 500, maxDepth: 40, maxListElements: 100, maxMapEntries: 20, maxCallArguments: 8 },
  });
  env.registerFunction("string.re2(string): bool", (text: string, pattern: string) => re2(pattern).test(text));
  env.registerFunction("string.inPrefix(string): bool", inPrefix);
  env.registerFunction("string.hasPrefixLength(int): bool", (prefix: string, length: bigint) => prefix.endsWith(`/${length}`));
  for (const fact of [...facts, ...derivedFacts]) {
    const type = celType(env, fact.schema, pascal(fact.id));
    converters.set(fact.id, type.convert);
    env.registerVariable(variableOf(fact.id), type.name);
  }
  return env;
}

/** The value of a fact as CEL sees it. */
export function toCel(factId: string, value: unknown): unknown {
  return converters.get(factId)?.(value);
}

const empty = new Map<string, unknown>();
/** The value of a fact of which nothing was read: its lists are empty. Stands for the facts that a rule merely uses. */
export function emptyFact(factId: string): unknown {
  if (!empty.has(factId)) empty.set(factId, nothingOf(factId));
  return empty.get(factId);
}

function nothingOf(factId: string): unknown {
  const schema = [...facts, ...derivedFacts].find((fact) => fact.id === factId)?.schema;
  // biome-ignore lint/suspicious/noExplicitAny: zod's definition objects are not typed by kind
  const shape = ((schema as any)?.def.shape ?? {}) as Record<string, z.ZodType>;
  return toCel(factId, Object.fromEntries(Object.keys(shape).map((key) => [key, []])));
}

function celType(env: Environment, schema: z.ZodType, name: string): CelType {
  // biome-ignore lint/suspicious/noExplicitAny: zod's definition objects are not typed by kind
  const def = (schema as any).def as { type: string; shape?: Record<string, z.ZodType>; element?: z.ZodType; innerType?: z.ZodType; format?: string };
  switch (def.type) {
    case "optional":
      return celType(env, def.innerType as z.ZodType, name);
    case "string":
    case "enum":
    case "literal":
      return { name: "string", convert: identity };
    case "boolean":
      return { name: "bool", convert: identity };
    case "number":
      return def.format === "safeint" ? { name: "int", convert: (value) => BigInt(value as number) } : { name: "double", convert: identity };
    case "array": {
      const element = celType(env, def.element as z.ZodType, `${name}Row`);
      const convert: Converter = element.convert === identity ? identity : (value) => (value as unknown[]).map(element.convert);
      return { name: `list<${element.name}>`, convert, ...(/^[A-Z]/.test(element.name) ? { element: element.convert } : {}) };
    }
    case "object": {
      const shape = Object.entries(def.shape as Record<string, z.ZodType>).map(([key, field]) => ({ key, ...celType(env, field, name + pascal(key)) }));
      const CelObject = viewClass(name, shape);
      env.registerType(name, { ctor: CelObject, fields: Object.fromEntries(shape.map(({ key, name: type }) => [key, type])) });
      for (const { key, name: type, element } of shape)
        if (element !== undefined)
          env.registerFunction(`${name}.${NARROW}${key}(list<list<string>>): ${type}`, (fact: View, conditions: string[][]) =>
            narrow(fact, key, conditions, element),
          );
      const convert: Converter = (value) => new CelObject(value as Record<string, unknown>);
      return { name, convert };
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
const byVariable = new Map([...facts, ...derivedFacts].map((fact) => [variableOf(fact.id), fact.id]));

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
const definition = (schema: any): { type: string; shape?: Record<string, z.ZodType>; element?: z.ZodType; innerType?: z.ZodType } =>
  schema?.def ?? { type: "" };

/** Which fields the rows of a fact's list have, by the fact's variable. */
export const fieldKinds: FieldKinds = (variable, list) => {
  const name = `${variable}.${list}`;
  if (!kindsOf.has(name)) kindsOf.set(name, kindsIn(variable, list));
  return kindsOf.get(name);
};
const kindsOf = new Map<string, ReturnType<FieldKinds>>();

function kindsIn(variable: string, list: string): ReturnType<FieldKinds> {
  const fact = [...facts, ...derivedFacts].find(({ id }) => variableOf(id) === variable);
  const rows = definition(definition(fact?.schema).shape?.[list]);
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

/** The environment with every fact and function. Cloned for each rule, which adds its lets. */
export const environment: Environment = buildEnvironment();
