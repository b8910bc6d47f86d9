import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { type CelFunc, CelScalar, celEnv, celMethod, isCelError, isCelList, isCelMap, parse, plan } from "@bufbuild/cel";
import { strings } from "@bufbuild/cel/ext";
import { RE2JS } from "@bufbuild/re2";
import ipaddr from "ipaddr.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readFacts } from "../../functions/facts/read.ts";
import { variableOf } from "../../functions/rules/cel.ts";
import type { Program, Rule } from "../../functions/rules/compile.ts";
import { attempt, Facts } from "../../functions/rules/evaluate.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { fieldsOf } from "../../functions/rules/view.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";
import { taken } from "./taken.ts";

/**
 * The CEL oracle: every expression of every rule over its fixtures and some of the others' (over all of them with CASES=all), by our CEL library and by an
 * unrelated one (@bufbuild/cel, tests only). They must say the same, value by value; where one fails, so must the other. Our own functions are written a second time here.
 */
const runbooks = fileURLToPath(new URL("../../runbooks/", import.meta.url));
const catalogue = loadCatalogue(runbooks);
const fixtures = [...catalogue.rules.keys()].flatMap((id) => {
  const folder = `${runbooks}rules/${id}/fixtures`;
  return readdirSync(folder)
    .map((name) => `${folder}/${name}`)
    .filter((path) => existsSync(`${path}/capture.json`));
});

const patterns = new Map<string, RE2JS>();
/** Compiled once: the rules have some hundred patterns, and each is asked for a thousand times. */
function compiledPattern(pattern: string): RE2JS {
  let known = patterns.get(pattern);
  if (known === undefined) {
    known = RE2JS.compile(`[\\s\\S]*(?:${pattern})[\\s\\S]*`);
    patterns.set(pattern, known);
  }
  return known;
}

const { BOOL, INT, STRING } = CelScalar;
const own: CelFunc[] = [
  celMethod("re2", STRING, [STRING], BOOL, function (pattern) {
    return compiledPattern(pattern).matches(this);
  }),
  celMethod("hasPrefixLength", STRING, [INT], BOOL, function (length) {
    return this.split("/")[1] === String(length);
  }),
  celMethod("inPrefix", STRING, [STRING], BOOL, function (prefix) {
    const [address = ""] = this.split("/");
    if (!ipaddr.isValid(address) || !ipaddr.isValidCIDR(prefix)) return false;
    const [base, length] = ipaddr.parseCIDR(prefix);
    const parsed = ipaddr.parse(address);
    const bits = (of: ipaddr.IPv4 | ipaddr.IPv6): string =>
      of
        .toByteArray()
        .map((byte) => byte.toString(2).padStart(8, "0"))
        .join("");
    return parsed.kind() === base.kind() && bits(parsed).slice(0, length) === bits(base).slice(0, length);
  }),
];
const environment = celEnv({ funcs: [...strings, ...own] });

/** What the oracle cannot run, and why. */
const SKIPPED: readonly { readonly pattern: RegExp; readonly reason: string }[] = [
  { pattern: /\.\?|optional\.|orValue/, reason: "@bufbuild/cel has no optionals" },
];

interface Compared {
  readonly key: string;
  readonly program: Program;
  /** Why the oracle cannot run it. */
  readonly skipped: boolean;
  /** Variables of the facts that it reads, through lets, too. */
  readonly reads: readonly string[];
}

function programsOf(rule: Rule): Compared[] {
  const some = (key: string, programs: readonly unknown[]) =>
    programs.flatMap((program, i) => (typeof program === "object" && program !== null ? [{ key: `${key}.${i}`, program: program as Program }] : []));
  const through = new Map<string, readonly string[]>();
  const all = [
    ...some("applies", [rule.applies]),
    ...rule.lets.map(({ name, program }) => ({ key: `let.${name}`, program })),
    // of a rule with one form it is that form's
    ...some("when", rule.forms.length > 1 ? [rule.when] : []),
    ...some("settled", [rule.settled]),
    ...some("undecided", [rule.undecided]),
    ...some("evidence", rule.evidence),
    ...rule.forms.flatMap(({ name, when, summary, confidence, evidence }) => [
      ...some(`form.${name}.when`, [when]),
      ...some(`form.${name}.evidence`, evidence),
      ...some(`form.${name}.summary`, summary),
      ...some(`form.${name}.confidence`, [confidence]),
    ]),
    ...rule.parameters.map(({ name, program }) => ({ key: `fix.${name}`, program })),
  ];
  return all.map(({ key, program }) => {
    const reads = [...new Set([...[...program.facts].map(variableOf), ...[...program.names].flatMap((name) => through.get(name) ?? [])])].sort();
    if (key.startsWith("let.")) through.set(key.slice("let.".length), reads);
    return { key, program, skipped: SKIPPED.some(({ pattern }) => pattern.test(program.source)), reads };
  });
}
const programs = new Map([...catalogue.rules.values()].map((rule) => [rule, programsOf(rule)]));

const compiled = new Map<string, (context: Record<string, never>) => unknown>();
function oracle(source: string, context: Record<string, unknown>): unknown {
  let program = compiled.get(source);
  if (program === undefined) {
    program = plan(environment, parse(source)) as (context: Record<string, never>) => unknown;
    compiled.set(source, program);
  }
  const result = program(context as Record<string, never>);
  return isCelError(result) ? FAILED : plain(result);
}
const FAILED = "(fails)";
const entries = (value: object): [string, unknown][] => fieldsOf(value) ?? Object.entries(value);

/** Values of both libraries as plain ones: rows as objects, numbers with their type. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") return `int ${value}`;
  if (typeof value === "number") return `double ${value}`;
  if (Array.isArray(value) || isCelList(value)) return [...value].map(plain);
  if (value instanceof Map || isCelMap(value)) return Object.fromEntries([...value.entries()].map(([key, item]) => [String(key), plain(item)]));
  if (typeof value === "object" && value !== null) return Object.fromEntries(entries(value).map(([key, item]) => [key, plain(item)]));
  return value;
}

const inputs = new WeakMap<object, unknown>();

/** A value of our library as the other one takes it. Made once: a fact is the same value for every rule. */
function input(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  let made = inputs.get(value);
  if (made === undefined) {
    made = Array.isArray(value) ? value.map(input) : new Map(entries(value).map(([key, item]) => [key, input(item)]));
    inputs.set(value, made);
  }
  return made;
}

// a rule without its facts fails, a million times here: where in the libraries it did is the dearest part of it
const { stackTraceLimit } = Error;
beforeAll(() => {
  Error.stackTraceLimit = 0;
});
afterAll(() => {
  Error.stackTraceLimit = stackTraceLimit;
});

/** A fact of which nothing was read. */
const isBlank = (value: unknown): boolean =>
  typeof value === "object" && value !== null && entries(value).every(([, field]) => Array.isArray(field) && field.length === 0);
/** What expressions that saw nothing came to, by the facts that were there all the same. */
const seenBlank = new Map<Program, Map<string, ReturnType<typeof attempt>>>();

/** Comparisons in which both libraries came to a value. */
let comparisons = 0;

describe("our CEL says what an unrelated CEL says", () => {
  test("there are fixtures and expressions to compare", () => {
    expect(fixtures.length).toBeGreaterThan(30);
    expect([...programs.values()].flat().length).toBeGreaterThan(80);
  });

  test.each(fixtures.map((path) => [path.slice(`${runbooks}rules/`.length), path]))("%s", async (name, path) => {
    const capture = await readCaptureFiles(path);
    const facts = new Facts(capture, readFacts(capture));
    for (const [rule, compared] of programs) {
      if (!name.startsWith(`${rule.file.id}/`) && !taken(64, name, rule.file.id)) continue;
      const context = facts.context(rule);
      const seen = new Set(Object.keys(context).filter((name) => !isBlank(context[name])));
      const there = Object.keys(context).sort().join(" ");
      const theirs = Object.fromEntries(Object.entries(context).map(([key, value]) => [key, input(value)]));
      for (const { key, program, skipped, reads } of compared) {
        // of an expression that sees nothing one fixture says what every other says
        const blank = !reads.some((name) => seen.has(name));
        let result = blank ? seenBlank.get(program)?.get(there) : undefined;
        if (result === undefined) {
          result = attempt(program, context);
          if (blank) seenBlank.set(program, (seenBlank.get(program) ?? new Map()).set(there, result));
          if (!skipped) {
            const ours = "value" in result ? plain(result.value) : FAILED;
            if (ours !== FAILED) comparisons++;
            const said = oracle(program.source, theirs);
            if (!isDeepStrictEqual(said, ours)) expect(said, `${rule.file.id}: ${key}: ${program.source}`).toEqual(ours);
          }
        }
        if (key.startsWith("let.") && "value" in result) {
          const name = key.slice("let.".length);
          context[name] = result.value;
          theirs[name] = input(result.value);
        }
      }
    }
  });

  test("most of it came to a value, so that the comparison means something", () => {
    expect(comparisons).toBeGreaterThan(1000);
  });

  test("nothing is skipped for a reason that is gone", () => {
    const sources = [...programs.values()].flat().map(({ program }) => program.source);
    for (const { pattern, reason } of SKIPPED) {
      expect(
        sources.some((source) => pattern.test(source)),
        `no rule needs the exception "${reason}"`,
      ).toBe(true);
    }
  });
});
