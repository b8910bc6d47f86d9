import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Document, isMap, isNode, LineCounter, parseDocument } from "yaml";
import type { z } from "zod";
import { firstIssue } from "../facts/issue.ts";
import { CompileError, compileRule, factIds, type Rule } from "./compile.ts";
import { fixProblems } from "./fix.ts";
import { type Known, keyOf, known as knownHere } from "./known.ts";
import { FixFile, RuleFile, RunbookFile } from "./schema.ts";

/** A fix with the version that approvals are bound to. */
export interface Fix {
  readonly file: FixFile;
  /** sha256 of fix.yaml, 12 hex digits: another text is another fix. */
  readonly version: string;
}

/** All rules, fixes and collection runbooks, each by id. */
export interface Catalogue {
  readonly rules: ReadonlyMap<string, Rule>;
  readonly fixes: ReadonlyMap<string, Fix>;
  readonly runbooks: ReadonlyMap<string, RunbookFile>;
  /** What each rule's README says, by heading. */
  readonly guides: ReadonlyMap<string, Guide>;
  /** Rules and fixes that could not be loaded, and why: they cost only themselves, and a diagnosis lists them as unchecked. Empty if loaded strictly. */
  readonly broken: { readonly rules: ReadonlyMap<string, string>; readonly fixes: ReadonlyMap<string, string> };
}

/** The four sections of a rule's README. */
export interface Guide {
  readonly meaning: string;
  readonly impact: string;
  readonly diagnosis: string;
  readonly mitigation: string;
}

/** A file of the catalogue is not as it must be. The message names file, line, key and reason. */
export class LoadError extends Error {
  override readonly name = "LoadError";
}

/** What the collection runbooks say is a secret besides the usual. */
export const ownSecrets = ({ runbooks }: Pick<Catalogue, "runbooks">): string[] => [...new Set([...runbooks.values()].flatMap(({ redact }) => redact))];

/**
 * Loads a `runbooks/` folder. Rules and fixes are found by walking it; nothing is registered anywhere else.
 * `tolerant`: a rule or fix that is wrong is left out and listed in `broken`, so that one bad file does not keep an engineer from the other rules.
 * `known`: what was read before, and is not read again; what is read now is added.
 * @throws {LoadError} at the first file that is wrong; tolerant, only where a folder or a collection runbook cannot be read.
 */
export function loadCatalogue(root: string, options: { tolerant?: boolean; known?: Known } = {}): Catalogue {
  const known = options.known ?? knownHere;
  const broken = { rules: new Map<string, string>(), fixes: new Map<string, string>() };
  const attempt = (kind: keyof typeof broken, id: string, load: () => void): void => {
    try {
      load();
    } catch (error) {
      if (options.tolerant !== true || !(error instanceof LoadError)) throw error;
      broken[kind].set(id, error.message);
    }
  };
  const fixes = new Map<string, Fix>();
  const fixKeys = new Map<string, string>();
  for (const id of folders(join(root, "fixes"))) {
    attempt("fixes", id, () => {
      const { value, key, fail, text } = readOnce(known, "fix", join(root, "fixes", id, "fix.yaml"), FixFile);
      sameName(value.id, id, fail);
      for (const { path, message } of fixProblems(value)) fail(path, message);
      fixKeys.set(id, key);
      fixes.set(id, { file: value, version: createHash("sha256").update(text).digest("hex").slice(0, 12) });
    });
  }
  const rules = new Map<string, Rule>();
  const guides = new Map<string, Guide>();
  const failures = new Map<string, Fail>();
  for (const id of folders(join(root, "rules"))) {
    attempt("rules", id, () => {
      const { value, key, fail } = readOnce(known, "rule", join(root, "rules", id, "rule.yaml"), RuleFile);
      sameName(value.id, id, fail);
      const fix = value.fix === undefined ? undefined : fixes.get(value.fix);
      if (value.fix !== undefined && fix === undefined && !broken.fixes.has(value.fix))
        fail(["fix"], `there is no fix "${value.fix}"; fixes are ${[...fixes.keys()].join(", ")}`);
      const rule = compiled(known, value, fix, `${key} ${fixKeys.get(value.fix ?? "") ?? ""}`, fail);
      guides.set(id, loadGuide(join(root, "rules", id, "README.md")));
      rules.set(id, rule);
      failures.set(id, fail);
    });
  }
  for (const [id, rule] of rules) {
    attempt("rules", id, () =>
      rule.file.explains.forEach((other, i) => {
        if (!rules.has(other) && !broken.rules.has(other)) failures.get(id)?.(["explains", i], `there is no rule "${other}"`);
        if (reaches(other, id, rules))
          failures.get(id)?.(["explains", i], other === id ? "a rule does not explain itself" : `"${other}" explains "${id}" in turn`);
      }),
    );
  }
  for (const id of broken.rules.keys()) rules.delete(id);
  const runbooks = new Map<string, RunbookFile>();
  for (const id of folders(root).filter((name) => name !== "rules" && name !== "fixes")) {
    const { value, fail } = readOnce(known, "runbook", join(root, id, "runbook.yaml"), RunbookFile);
    sameName(value.id, id, fail);
    const named = value.rules === "all" ? [] : value.rules;
    named.forEach((rule, i) => {
      if (!rules.has(rule) && !broken.rules.has(rule)) fail(["rules", i], `there is no rule "${rule}"`);
    });
    value.facts.forEach((fact, i) => {
      if (!factIds.has(fact)) fail(["facts", i], `there is no fact "${fact}"; facts are ${[...factIds].join(", ")}`);
    });
    runbooks.set(id, value);
  }
  return { rules, fixes, runbooks, guides, broken };
}

/** Rules by their key and their fix's: they are the same for every catalogue of a process. */
const compiledRules = new Map<string, Rule>();

function compiled(known: Known, file: RuleFile, fix: Fix | undefined, key: string, fail: Fail): Rule {
  try {
    const rule = compiledRules.get(key) ?? compileRule(file, fix?.file, known.checked.has(key));
    compiledRules.set(key, rule);
    known.checked.add(key);
    return rule;
  } catch (error) {
    if (error instanceof CompileError) return fail(error.path, error.message);
    throw error;
  }
}

/** True if `from` is `to`, or explains it, directly or through others: causes that explain each other would hide each other. */
function reaches(from: string, to: string, rules: ReadonlyMap<string, Rule>): boolean {
  const seen = new Set([from]);
  for (const id of seen) for (const next of rules.get(id)?.file.explains ?? []) seen.add(next);
  return seen.has(to);
}

type Fail = (path: readonly (string | number)[], message: string) => never;

/** As `loadFile`; what a known text says is not worked out again. */
function readOnce<T>(known: Known, kind: string, file: string, schema: z.ZodType<T>): { value: T; text: string; key: string; fail: Fail } {
  const text = textOf(file);
  const key = keyOf(kind, text);
  if (!known.files.has(key)) known.files.set(key, parseFile(file, text, schema).value);
  return { value: known.files.get(key) as T, text, key, fail: (path, message) => parseFile(file, text, schema).fail(path, message) };
}

/** Reads, parses and validates one YAML file. Duplicate keys, unknown keys and wrong types fail with their place. */
export function loadFile<T>(file: string, schema: z.ZodType<T>): { value: T; text: string; fail: Fail } {
  return parseFile(file, textOf(file), schema);
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new LoadError(`${file}: could not read it: ${(error as Error).message}`, { cause: error });
  }
}

/** The same for a text that is already there. */
export function parseFile<T>(file: string, text: string, schema: z.ZodType<T>): { value: T; text: string; fail: Fail } {
  const counter = new LineCounter();
  let document: Document;
  try {
    document = parseDocument(text, { lineCounter: counter, uniqueKeys: true, strict: true });
  } catch (cause) {
    // nested so deep that the parser's stack ends: one file's fault, and no other's
    throw new LoadError(`${file}: it could not be parsed: ${(cause as Error).message}`, { cause });
  }
  const fail: Fail = (path, message) => {
    const place = placeOf(document, path);
    const at = place === undefined ? "" : `:${counter.linePos(place).line}:${counter.linePos(place).col}`;
    throw new LoadError(`${file}${at}: ${path.length === 0 ? "" : `${path.join(".")}: `}${message}`);
  };
  const error = document.errors[0];
  if (error !== undefined) throw new LoadError(`${file}: ${error.message}`, { cause: error });
  let data: unknown;
  try {
    data = document.toJS({ maxAliasCount: 100 });
  } catch (cause) {
    throw new LoadError(`${file}: ${(cause as Error).message}`, { cause });
  }
  const result = schema.safeParse(data);
  if (result.success) return { value: result.data, text, fail };
  const { path, message } = firstIssue(result.error);
  return fail(path, message.replace(/^Invalid input: expected (\S+), received undefined$/, "it is missing ($1)"));
}

/** Offset of the deepest node on a path that exists. */
function placeOf(document: Document, path: readonly (string | number)[]): number | undefined {
  for (let length = path.length; length >= 0; length--) {
    const parent = length === 0 ? document.contents : document.getIn(path.slice(0, length - 1), true);
    if (length > 0 && isMap(parent)) {
      const pair = parent.items.find((item) => String((item.key as { value?: unknown })?.value ?? item.key) === String(path[length - 1]));
      if (isNode(pair?.key) && pair.key.range) return pair.key.range[0];
    }
    const node = length === 0 ? document.contents : document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return node.range[0];
  }
  return undefined;
}

function sameName(id: string, folder: string, fail: Fail): void {
  if (id !== folder) fail(["id"], `the folder is called "${folder}": one thing has one name`);
}

function folders(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
      .sort();
  } catch (error) {
    throw new LoadError(`${path}: could not list it: ${(error as Error).message}`, { cause: error });
  }
}

const HEADINGS = ["Meaning", "Impact", "Diagnosis", "Mitigation"] as const;

function loadGuide(file: string): Guide {
  // the text before the first heading, then heading and section in turn
  const parts = textOf(file).split(/^## +(.*?)[ \t\r]*$/m);
  const sections = HEADINGS.map((heading) => {
    const section = parts.find((_, i) => i % 2 === 0 && i > 0 && parts[i - 1] === heading)?.trim();
    if (section === undefined || section === "") throw new LoadError(`${file}: the section "## ${heading}" is missing or empty`);
    return section;
  });
  const [meaning, impact, diagnosis, mitigation] = sections as [string, string, string, string];
  return { meaning, impact, diagnosis, mitigation };
}
