import type { Environment, ParseResult } from "@marcbachmann/cel-js";
import { derivedFacts } from "../facts/derived.ts";
import { facts } from "../facts/index.ts";
import { complaint, environmentOf, factsAmong, fieldKinds, namesIn } from "./cel.ts";
import { narrowed } from "./narrow.ts";
import type { FixFile, RuleFile } from "./schema.ts";

/** A CEL expression, checked against the facts' types. */
export interface Program {
  readonly source: string;
  /** Evaluates it. Throws EvaluationError. */
  readonly run: (context: Record<string, unknown>) => unknown;
  readonly type: string;
  /** What it refers to: facts, lets, and the rows of its loops. */
  readonly names: ReadonlySet<string>;
  /** Ids of the facts among them. */
  readonly facts: ReadonlySet<string>;
}

/** Literal text and expressions in turn. */
export type Template = readonly (string | Program)[];

/** One way in which the fault shows itself. */
export interface Form {
  /** Empty where the rule has just one. */
  readonly name: string;
  readonly when: Program;
  readonly summary: Template;
  readonly confidence: number | Program;
  readonly evidence: readonly Program[];
}

/** A rule ready to run. */
export interface Rule {
  readonly file: RuleFile;
  /** Needed facts, and whether the rule concludes from absence in them. */
  readonly needs: readonly { readonly fact: string; readonly whole: boolean }[];
  /** Those that it needs or uses: no expression of it reads another one. */
  readonly facts: ReadonlySet<string>;
  readonly applies: Program | undefined;
  readonly lets: readonly { readonly name: string; readonly program: Program }[];
  /** True if one of the forms holds. */
  readonly when: Program;
  /** The most telling first. */
  readonly forms: readonly Form[];
  readonly settled: Program | undefined;
  readonly undecided: Program | undefined;
  /** Facts that the condition reads, by itself or through lets. */
  readonly decidedBy: ReadonlySet<string>;
  /** Quoted whichever form holds. */
  readonly evidence: readonly Program[];
  readonly diagram: { readonly path: readonly Template[]; readonly breakAt: number; readonly note: Template } | undefined;
  /** The fix's parameters, where the rule has a fix. */
  readonly parameters: readonly { readonly name: string; readonly program: Program }[];
  /** All facts that have to be collected for it, derived ones replaced by their sources. */
  readonly collects: ReadonlySet<string>;
}

/** Something in a file is wrong; `path` names the key. */
export class CompileError extends Error {
  override readonly name = "CompileError";
  readonly path: readonly (string | number)[];
  constructor(path: readonly (string | number)[], message: string) {
    super(message);
    this.path = path;
  }
}

/** What a rule or a runbook may name as a fact. */
export const factIds: ReadonlySet<string> = new Set([...facts, ...derivedFacts].map((fact) => fact.id));

/**
 * A rule ready to run, with its fix's parameters. Every expression is compiled when first asked for: most are of rules whose gate is closed, or that do not match.
 * @param checked true if these very texts were compiled before. Otherwise all is compiled at once, and every expression checked.
 * @throws {CompileError} naming the key.
 */
export function compileRule(file: RuleFile, fix: FixFile | undefined, checked = false): Rule {
  const needs = file.needs.map((need) => (typeof need === "string" ? { fact: need, whole: false } : { fact: need.fact, whole: true }));
  const known = new Set([...needs.map((need) => need.fact), ...file.uses]);
  const used = new Set<string>();
  const env = later(() => environmentOf(known));
  const compile: Compile = (path, source, accept) => {
    const program = compileExpression(env(), path, source, known, checked);
    const wrong = accept(program.type);
    if (wrong !== undefined) throw new CompileError(path, `${wrong}, but \`${source}\` is of type ${program.type}`);
    for (const fact of program.facts) used.add(fact);
    return program;
  };
  const lets = later(() =>
    Object.entries(file.let).map(([name, source]) => {
      const program = compile(["let", name], source, () => undefined);
      env().registerVariable(name, program.type);
      return { name, program };
    }),
  );
  /** What follows the lets, which it may name. */
  const behindLets: Compile = (...expression) => {
    lets();
    return compile(...expression);
  };
  const rule: Rule = eachLater({
    file: () => file,
    needs: () => needs,
    facts: () => known,
    applies: () => (file.applies === undefined ? undefined : compile(["applies"], file.applies, bool)),
    lets,
    forms: () => compileForms(file, behindLets),
    when: () => {
      const [only, ...others] = rule.forms;
      return only !== undefined && others.length === 0 ? only.when : behindLets(["forms"], anyOf(file), bool);
    },
    settled: () => (file.settled === undefined ? undefined : behindLets(["settled"], file.settled, bool)),
    undecided: () => (file.undecided === undefined ? undefined : behindLets(["undecided", "when"], file.undecided.when, bool)),
    decidedBy: () => factsBehind(rule.when, rule.lets),
    evidence: () => compileEvidence(["evidence"], file.evidence, behindLets),
    diagram: () => compileDiagram(file, behindLets),
    parameters: () => compileParameters(fix, behindLets),
    collects: () => sourcesOf(known),
  });
  if (!checked) {
    checkNames(file);
    // the gate first, which stands before the lets; a form's own complaint before that of all forms together
    for (const part of [[rule.applies], ...rule.forms, rule]) Object.values(part);
    checkUse(file, used);
  }
  return rule;
}

/** What is made when first asked for, and kept. */
function later<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** An object each of whose properties is made when first asked for, and is a plain one from then on. */
function eachLater<T extends object>(makers: { readonly [Key in keyof T]: () => T[Key] }): T {
  const object = {} as T;
  for (const [name, make] of Object.entries(makers) as [string, () => unknown][])
    Object.defineProperty(object, name, {
      enumerable: true,
      configurable: true,
      get() {
        const value = make();
        Object.defineProperty(object, name, { enumerable: true, value });
        return value;
      },
    });
  return object;
}

/** Names of facts and lets. @throws {CompileError} at the first that is wrong */
function checkNames(file: RuleFile): void {
  for (const { id, path } of named(file)) if (!factIds.has(id)) throw new CompileError(path, `there is no fact "${id}"; facts are ${[...factIds].join(", ")}`);
  file.instead.forEach((id, i) => {
    if (!file.uses.includes(id)) throw new CompileError(["instead", i], `"${id}" does not stand in uses`);
  });
  for (const name of Object.keys(file.let)) {
    if (factIds.has(name)) throw new CompileError(["let", name], `"${name}" is the name of a fact`);
    if (reserved(name)) throw new CompileError(["let", name], `"${name}" is a word of CEL`);
  }
}

/** @throws {CompileError} if a fact is listed that no expression reads */
function checkUse(file: RuleFile, used: ReadonlySet<string>): void {
  for (const { id, path } of named(file)) if (!used.has(id)) throw new CompileError(path, `"${id}" is listed and never read`);
}

/** The facts of a rule, and where they stand. */
const named = ({ needs, uses }: RuleFile): { id: string; path: Path }[] => [
  ...needs.map((need, i) => ({ id: typeof need === "string" ? need : need.fact, path: ["needs", i] })),
  ...uses.map((id, i) => ({ id, path: ["uses", i] })),
];

type Path = (string | number)[];
/** Checks an expression of a rule. `accept`: what is wrong with a type, if anything. */
type Compile = (path: Path, source: string, accept: (type: string) => string | undefined) => Program;

const bool = (type: string) => (type === "bool" ? undefined : "it must be true or false");

/** True if one of the forms holds. */
const anyOf = (file: RuleFile): string =>
  file.when ??
  Object.values(file.forms ?? {})
    .map(({ when }) => `(${when.trim()})`)
    .join(" || ");

/** The forms of a rule in their order; of a rule without any the one that it is itself, which has no name. */
function compileForms(file: RuleFile, compile: Compile): Form[] {
  const { when = "", summary = "", confidence = 0 } = file;
  return Object.entries(file.forms ?? { "": { when, summary, confidence, evidence: [] } }).map(([name, form]) => {
    const path = (key: string): Path => (name === "" ? [key] : ["forms", name, key]);
    return eachLater({
      name: () => name,
      when: () => compile(path("when"), form.when, bool),
      summary: () => compileTemplate(path("summary"), form.summary, compile),
      confidence: () =>
        typeof form.confidence === "number"
          ? form.confidence
          : compile(path("confidence"), form.confidence, (type) => (type === "double" ? undefined : "it must be a number with a decimal point")),
      evidence: () => compileEvidence(path("evidence"), form.evidence, compile),
    });
  });
}

const compileEvidence = (path: Path, sources: readonly string[], compile: Compile): Program[] =>
  sources.map((source, i) =>
    compile([...path, i], source, (type) => (/^(?:list<)?[A-Z]\w*>?$/.test(type) ? undefined : "it must give a row of a fact, or a list of rows")),
  );

function compileDiagram({ diagram }: RuleFile, compile: Compile): Rule["diagram"] {
  if (diagram === undefined) return undefined;
  const path = diagram.path.map((text, i) => compileTemplate(["diagram", "path", i], text, compile));
  return { path, breakAt: diagram.breakAt, note: compileTemplate(["diagram", "note"], diagram.note, compile) };
}

const compileParameters = (fix: FixFile | undefined, compile: Compile): Rule["parameters"] =>
  Object.entries(fix?.parameters ?? {}).map(([name, parameter]) => ({
    name,
    program: compile(["fix"], parameter.from, (type) => {
      const wanted = parameter.list ? ["list<string>", "list<int>"] : ["string", "int"];
      return wanted.includes(type) ? undefined : `parameter "${name}" of ${fix?.id} must be ${wanted.join(" or ")}`;
    }),
  }));

const compileTemplate = (path: Path, text: string, compile: Compile): Template =>
  templateParts(text).map((part) =>
    typeof part === "string"
      ? literal(path, part)
      : compile(path, part.source, (type) => (type === "string" || type === "int" ? undefined : "{{ }} must hold a text or a whole number")),
  );

/**
 * @param known facts that it may read
 * @param checked true if this very text was compiled before
 */
function compileExpression(env: Environment, path: Path, source: string, known: ReadonlySet<string>, checked: boolean): Program {
  let parsed: ParseResult;
  try {
    parsed = env.parse(source);
  } catch (error) {
    throw new CompileError(path, (error as Error).message);
  }
  const unsafe = checked ? undefined : complaint(parsed.ast);
  if (unsafe !== undefined) throw new CompileError(path, unsafe);
  const names = namesIn(parsed.ast);
  const read = factsAmong(names);
  for (const fact of read) if (!known.has(fact)) throw new CompileError(path, `it reads the fact "${fact}", which is neither in needs nor in uses`);
  const quick = later(() => quickly(env, source, parsed));
  // of a checked text it is enough that the form in which it runs has a type
  const type = (checked ? quick()?.type : undefined) ?? typeOf(path, parsed);
  return { source, run: (context) => (quick()?.run ?? parsed)(context), type, names, facts: read };
}

/** @throws {CompileError} if it does not type-check */
function typeOf(path: Path, parsed: ParseResult): string {
  const { valid, type, error } = parsed.check();
  if (!valid) throw new CompileError(path, error?.message ?? "it does not type-check");
  return type ?? "dyn";
}

/** The expression as it runs, if that is another than as it is written: see narrow.ts. */
function quickly(env: Environment, source: string, parsed: ParseResult): { readonly run: ParseResult; readonly type: string } | undefined {
  const quick = narrowed(source, parsed.ast, fieldKinds);
  if (quick === source) return undefined;
  try {
    const run = env.parse(quick);
    const { valid, type = "dyn" } = run.check();
    return valid ? { run, type } : undefined;
  } catch {
    return undefined; // rewritten, it has more nodes than an expression may have
  }
}

function reserved(name: string): boolean {
  try {
    return environmentOf([]).parse(name).ast.op !== "id";
  } catch {
    return true;
  }
}

/** Facts that an expression reads, by itself or through lets. Names that a loop gives to its rows may hide a let: then it is one fact too many. */
function factsBehind(expression: Program, lets: Rule["lets"]): Set<string> {
  const programs = new Set([expression]);
  for (const { names } of programs) for (const { name, program } of lets) if (names.has(name)) programs.add(program);
  return new Set([...programs].flatMap(({ facts: read }) => [...read]));
}

/** Splits `text {{ cel }} text`. */
function templateParts(template: string): (string | { source: string })[] {
  return template
    .split(/(\{\{[^{}]*\}\})/)
    .filter((part) => part !== "")
    .map((part) => (part.startsWith("{{") ? { source: part.slice(2, -2).trim() } : part));
}

/** Text that is printed as it is: no half of a `{{ }}`. */
function literal(path: Path, text: string): string {
  if (/\{\{|\}\}/.test(text)) throw new CompileError(path, `"{{" and "}}" do not pair up, or there are braces between them: ${text.trim()}`);
  return text;
}

/** Raw facts behind a set of facts. */
export function sourcesOf(ids: Iterable<string>): Set<string> {
  const sources = new Set<string>();
  const add = (id: string): void => {
    const derived = derivedFacts.find((fact) => fact.id === id);
    if (derived === undefined) sources.add(id);
    else derived.from.forEach(add);
  };
  for (const id of ids) add(id);
  return sources;
}
