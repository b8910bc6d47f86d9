import type { Environment, ParseResult } from "@marcbachmann/cel-js";
import { derivedFacts } from "../facts/derived.ts";
import { facts } from "../facts/index.ts";
import { complaint, environment, factsAmong, fieldKinds, namesIn } from "./cel.ts";
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

/** Checks every expression of a rule (and of its fix's parameters) and returns it ready to run. @throws {CompileError} naming the key. */
export function compileRule(file: RuleFile, fix: FixFile | undefined): Rule {
  const needs = file.needs.map((need) => (typeof need === "string" ? { fact: need, whole: false } : { fact: need.fact, whole: true }));
  const known = new Set([...needs.map((need) => need.fact), ...file.uses]);
  [...needs.map((need) => need.fact), ...file.uses].forEach((id, i) => {
    const path = i < needs.length ? ["needs", i] : ["uses", i - needs.length];
    if (!factIds.has(id)) throw new CompileError(path, `there is no fact "${id}"; facts are ${[...factIds].join(", ")}`);
  });
  file.instead.forEach((id, i) => {
    if (!file.uses.includes(id)) throw new CompileError(["instead", i], `"${id}" does not stand in uses`);
  });
  const used = new Set<string>();
  const env = environment.clone();
  const compile: Compile = (path, source, accept) => {
    const program = compileExpression(env, path, source);
    const wrong = accept(program.type);
    if (wrong !== undefined) throw new CompileError(path, `${wrong}, but \`${source}\` is of type ${program.type}`);
    for (const fact of program.facts) {
      used.add(fact);
      if (!known.has(fact)) throw new CompileError(path, `it reads the fact "${fact}", which is neither in needs nor in uses`);
    }
    return program;
  };
  const applies = file.applies === undefined ? undefined : compile(["applies"], file.applies, bool);
  const lets: Rule["lets"][number][] = [];
  for (const [name, source] of Object.entries(file.let)) {
    if (factIds.has(name)) throw new CompileError(["let", name], `"${name}" is the name of a fact`);
    if (reserved(name)) throw new CompileError(["let", name], `"${name}" is a word of CEL`);
    const program = compile(["let", name], source, () => undefined);
    lets.push({ name, program });
    env.registerVariable(name, program.type);
  }
  const forms = compileForms(file, compile);
  const [only] = forms;
  const condition =
    file.when ??
    Object.values(file.forms ?? {})
      .map(({ when }) => `(${when.trim()})`)
      .join(" || ");
  const when = forms.length === 1 && only !== undefined ? only.when : compile(["forms"], condition, bool);
  const settled = file.settled === undefined ? undefined : compile(["settled"], file.settled, bool);
  const undecided = file.undecided === undefined ? undefined : compile(["undecided", "when"], file.undecided.when, bool);
  const evidence = compileEvidence(["evidence"], file.evidence, compile);
  const diagram =
    file.diagram === undefined
      ? undefined
      : {
          path: file.diagram.path.map((text, i) => compileTemplate(["diagram", "path", i], text, compile)),
          breakAt: file.diagram.breakAt,
          note: compileTemplate(["diagram", "note"], file.diagram.note, compile),
        };
  const parameters = Object.entries(fix?.parameters ?? {}).map(([name, parameter]) => ({
    name,
    program: compile(["fix"], parameter.from, (type) => {
      const wanted = parameter.list ? ["list<string>", "list<int>"] : ["string", "int"];
      return wanted.includes(type) ? undefined : `parameter "${name}" of ${fix?.id} must be ${wanted.join(" or ")}`;
    }),
  }));
  for (const id of known) {
    const need = needs.findIndex(({ fact }) => fact === id);
    if (!used.has(id)) throw new CompileError(need === -1 ? ["uses", file.uses.indexOf(id)] : ["needs", need], `"${id}" is listed and never read`);
  }
  const decidedBy = factsBehind(when, lets);
  return { file, needs, applies, lets, when, forms, settled, undecided, decidedBy, evidence, diagram, parameters, collects: sourcesOf(known) };
}

type Path = (string | number)[];
/** Checks an expression of a rule. `accept`: what is wrong with a type, if anything. */
type Compile = (path: Path, source: string, accept: (type: string) => string | undefined) => Program;

const bool = (type: string) => (type === "bool" ? undefined : "it must be true or false");

/** The forms of a rule in their order; of a rule without any the one that it is itself, which has no name. */
function compileForms(file: RuleFile, compile: Compile): Form[] {
  const { when = "", summary = "", confidence = 0 } = file;
  return Object.entries(file.forms ?? { "": { when, summary, confidence, evidence: [] } }).map(([name, form]) => {
    const path = (key: string): Path => (name === "" ? [key] : ["forms", name, key]);
    return {
      name,
      when: compile(path("when"), form.when, bool),
      summary: compileTemplate(path("summary"), form.summary, compile),
      confidence:
        typeof form.confidence === "number"
          ? form.confidence
          : compile(path("confidence"), form.confidence, (type) => (type === "double" ? undefined : "it must be a number with a decimal point")),
      evidence: compileEvidence(path("evidence"), form.evidence, compile),
    };
  });
}

const compileEvidence = (path: Path, sources: readonly string[], compile: Compile): Program[] =>
  sources.map((source, i) =>
    compile([...path, i], source, (type) => (/^(?:list<)?[A-Z]\w*>?$/.test(type) ? undefined : "it must give a row of a fact, or a list of rows")),
  );

const compileTemplate = (path: Path, text: string, compile: Compile): Template =>
  templateParts(text).map((part) =>
    typeof part === "string"
      ? literal(path, part)
      : compile(path, part.source, (type) => (type === "string" || type === "int" ? undefined : "{{ }} must hold a text or a whole number")),
  );

function compileExpression(env: Environment, path: Path, source: string): Program {
  let parsed: ParseResult;
  try {
    parsed = env.parse(source);
  } catch (error) {
    throw new CompileError(path, (error as Error).message);
  }
  const unsafe = complaint(parsed.ast);
  if (unsafe !== undefined) throw new CompileError(path, unsafe);
  const check = parsed.check();
  if (!check.valid) throw new CompileError(path, check.error?.message ?? "it does not type-check");
  const names = namesIn(parsed.ast);
  return { source, run: whenRun(() => quickly(env, source, parsed)), type: check.type ?? "dyn", names, facts: factsAmong(names) };
}

/** Most expressions are of rules whose gate is closed, and never run: what makes them quick is made for the first run. */
function whenRun(make: () => ParseResult): Program["run"] {
  let made: ParseResult | undefined;
  return (context) => {
    made ??= make();
    return made(context);
  };
}

/** The expression as it runs: see narrow.ts. */
function quickly(env: Environment, source: string, parsed: ParseResult): ParseResult {
  const quick = narrowed(source, parsed.ast, fieldKinds);
  if (quick === source) return parsed;
  try {
    const program = env.parse(quick);
    return program.check().valid ? program : parsed;
  } catch {
    return parsed; // rewritten, it has more nodes than an expression may have
  }
}

function reserved(name: string): boolean {
  try {
    return environment.parse(name).ast.op !== "id";
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
