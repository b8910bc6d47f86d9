import type { Capture } from "../facts/capture.ts";
import { commandLine } from "../facts/command.ts";
import { derivedFacts } from "../facts/derived.ts";
import { facts as allFacts } from "../facts/index.ts";
import { type FactReading, type FactSet, isLog, knownOf } from "../facts/read.ts";
import { emptyFact, toCel, variableOf } from "./cel.ts";
import type { Form, Program, Rule, Template } from "./compile.ts";
import type { Evidence, Finding, RuleVerdict } from "./diagnosis.ts";
import { masksRefused, refusingMasked, SOURCE, showingMasked, type View } from "./view.ts";

/** What a rule said of a capture, with everything needed to explain it. */
export interface Outcome {
  readonly rule: Rule;
  readonly verdict: RuleVerdict;
  /** Why it is inconclusive or not applicable. */
  readonly reason: string;
  readonly finding?: Finding;
  /** Of a match: the form that speaks; empty where the rule has just one. */
  readonly form?: string;
  /** Values of the fix's parameters as the rule gave them, unchecked; absent if they could not be worked out. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

/** The facts of one capture as CEL variables, converted when first used and shared by all rules. */
export class Facts {
  readonly capture: Capture;
  readonly set: FactSet;
  private readonly values = new Map<string, unknown>();
  private readonly splitOutputs = new Map<number, string[]>();
  private knownFacts: Facts | undefined;
  /** The commands of which all is in the capture. */
  private whole: ReadonlySet<string> | undefined;

  constructor(capture: Capture, set: FactSet) {
    this.capture = capture;
    this.set = set;
  }

  reading(id: string): FactReading | undefined {
    return this.set.readings.get(id);
  }

  /** True if all that this command prints is in the capture. */
  ran(command: string): boolean {
    this.whole ??= new Set(
      this.capture.outputs.flatMap((output) => {
        const { argv, filtered, foreign } = commandLine(output.argv ?? output.command);
        return filtered || foreign || output.truncated ? [] : [argv.join(" ")];
      }),
    );
    return this.whole.has(command);
  }

  /** True if a fact of the rule has text that a person painted over. */
  hasMasked(rule: Pick<Rule, "facts">): boolean {
    return [...rule.facts].some((id) => this.set.readings.get(id)?.masked === true);
  }

  /** The same facts without what is painted over; those that lack something for it are partial. */
  known(): Facts {
    const readings = (): FactSet => ({ ...this.set, readings: new Map([...this.set.readings].map(([id, reading]) => [id, knownOf(reading)])) });
    this.knownFacts ??= new Facts(this.capture, readings());
    return this.knownFacts;
  }

  /**
   * Variables for a rule's facts. Needed ones that were not read are left out, so that expressions that touch them fail; of merely used ones the lists
   * are empty then.
   */
  context(rule: Pick<Rule, "facts" | "file">): Record<string, unknown> {
    const context: Record<string, unknown> = Object.fromEntries(rule.file.uses.map((id) => [variableOf(id), emptyFact(id)]));
    for (const id of rule.facts) {
      const reading = this.set.readings.get(id);
      if (reading?.status !== "read") continue;
      let value = this.values.get(id);
      if (value === undefined) {
        value = toCel(id, reading.value);
        this.values.set(id, value);
      }
      context[variableOf(id)] = value;
    }
    return context;
  }

  /** The verbatim line behind a row. */
  quote(row: { line: unknown; output?: unknown; text?: unknown }): Evidence | undefined {
    const index = Number(row.output);
    const output = this.capture.outputs[index];
    const line = Number(row.line);
    if (output === undefined || !(line >= 1)) return undefined;
    let text = typeof row.text === "string" ? row.text : undefined;
    if (text === undefined) {
      let split = this.splitOutputs.get(index);
      if (split === undefined) {
        split = output.text.split("\n");
        this.splitOutputs.set(index, split);
      }
      // a key that is absent is told on stderr
      text = (split[line - 1] || output.stderr.split("\n")[line - 1]) ?? "";
    }
    // a blank line proves nothing
    if (text.trim() === "") return undefined;
    return { command: output.command, file: output.file, line, text: text.trimEnd().slice(0, 4000) };
  }
}

/**
 * Evaluates one rule. Never throws: a rule that breaks is inconclusive and says so.
 *
 * What a person painted over (`10.x.x.x`) is neither equal to anything nor different from it: a rule whose condition turns on it is inconclusive, unless
 * what is left without it is a match, and is one beside it, too.
 */
export function evaluateRule(rule: Rule, facts: Facts): Outcome {
  if (!facts.hasMasked(rule)) return evaluateKnown(rule, facts);
  const strict = refusingMasked(() => evaluateKnown(rule, facts));
  if (strict.verdict !== "inconclusive") return strict;
  const known = evaluateKnown(rule, facts.known());
  // what is concluded from a row that is not there has to hold beside the painted-over rows, too
  return known.verdict === "match" && evaluateKnown(rule, facts).verdict === "match" ? known : strict;
}

function evaluateKnown(rule: Rule, facts: Facts): Outcome {
  const context = facts.context(rule);
  if (rule.applies !== undefined && excluded(rule.applies, context, facts)) {
    return { rule, verdict: "not-applicable", reason: `not here: ${rule.applies.source}` };
  }
  const other = rule.file.instead.some((id) => facts.reading(id)?.status === "read");
  for (const need of rule.needs) {
    const reading = facts.reading(need.fact);
    if (reading?.status !== "read") {
      // what was seen elsewhere may settle it without this fact
      if (holds(rule.settled, context) && !holds(rule.undecided, context)) return { rule, verdict: "no-match", reason: "" };
      if (other && !need.whole) {
        context[variableOf(need.fact)] = emptyFact(need.fact);
        continue;
      }
      return { rule, verdict: "inconclusive", reason: `needs ${need.fact}: ${reading?.reason ?? "it was not collected"}` };
    }
    if (need.whole && !reading.complete) return open(rule, `needs all of ${need.fact}: ${reading.reason}`, need.fact, facts);
  }
  const letErrors: string[] = [];
  for (const { name, program } of rule.lets) {
    const result = attempt(program, context);
    if ("value" in result) context[name] = result.value;
    else letErrors.push(`${name}: ${result.error}`);
  }
  const when = attempt(rule.when, context);
  if (!("value" in when)) {
    // the first let that failed is why those after it, and the condition, are unknown
    const root = when.error.startsWith("Unknown variable") ? (letErrors[0] ?? when.error) : when.error;
    return { rule, verdict: "inconclusive", reason: `the condition could not be worked out: ${root}` };
  }
  if (when.value !== true) {
    if (holds(rule.undecided, context) || (masksRefused() && isUnknown(rule.undecided, context)))
      return { rule, verdict: "inconclusive", reason: rule.file.undecided?.because ?? "" };
    const needed = rule.needs.map((need) => facts.reading(need.fact)).find((reading) => reading?.complete !== true);
    // a used fact that was not there at all is taken for empty; one that was cut may hold what decides
    const used = [...rule.decidedBy].map((id) => facts.reading(id)).find(isPartial);
    const partial = needed ?? used;
    if (partial !== undefined && !holds(rule.settled, context)) {
      return open(rule, `${partial.id} is only partly known: ${partial.reason}`, partial.id, facts);
    }
    return { rule, verdict: "no-match", reason: "" };
  }
  // of a condition that holds, one form does
  const held = rule.forms.filter(({ when: condition }) => holds(condition, context));
  const form = (held[0] ?? rule.forms[0]) as Form;
  const programs = [...held.flatMap(({ evidence }) => evidence), ...rule.evidence];
  const proof = evidenceOf(programs, context, facts);
  const evidence = proof.length > 0 ? proof : showingMasked(() => evidenceOf(programs, context, facts));
  if (evidence.length === 0) return { rule, verdict: "inconclusive", reason: "it matched, but no line proves it" };
  const finding: Finding = {
    rule: rule.file.id,
    title: rule.file.title,
    severity: rule.file.severity,
    confidence: confidenceOf(form, context),
    summary: filled(form.summary, context),
    evidence,
    ...(rule.diagram === undefined
      ? {}
      : {
          diagram: {
            path: rule.diagram.path.map((label) => filled(label, context)),
            breakAt: rule.diagram.breakAt,
            note: filled(rule.diagram.note, context),
          },
        }),
  };
  const parameters = parametersOf(rule, context);
  return { rule, verdict: "match", reason: "", finding, form: form.name, ...(parameters === undefined ? {} : { parameters }) };
}

/** True if something is missing that may matter. Nobody sees a log from its beginning; one whose end is missing lacks what matters most. */
const isPartial = (reading: FactReading | undefined): boolean =>
  reading?.status === "read" && !reading.complete && reading.hinted !== true && (!isLog(reading.id) || reading.truncated === true);

/** Inconclusive, because only a part of a fact is known; with the one command that would settle it. */
function open(rule: Rule, why: string, fact: string, facts: Facts): Outcome {
  const command = commandOf(fact, facts);
  // the same command behind which a person searched for something is another one; where a tool is missing no other command settles it
  const named =
    command === undefined || why.endsWith(" is not installed on the node") || why.includes(command.length > 40 ? command.slice(0, 40) : `\`${command}\``);
  return { rule, verdict: "inconclusive", reason: named ? why : `${why}; to settle it: \`${command}\`` };
}

const derivedById = new Map(derivedFacts.map((fact) => [fact.id, fact]));
const factById = new Map(allFacts.map((fact) => [fact.id, fact]));

/** The command that prints a fact; of a derived one, that of its first source which is not completely known and was not asked already. */
function commandOf(id: string, facts: Facts): string | undefined {
  const derived = derivedById.get(id);
  if (derived === undefined) {
    const fact = factById.get(id);
    return fact?.byHand ?? fact?.commands.find(({ each }) => each === undefined)?.argv.join(" ");
  }
  const missing = derived.from.filter((source) => facts.reading(source)?.complete !== true).flatMap((source) => commandOf(source, facts) ?? []);
  const unseen = missing.filter((command) => !facts.ran(command));
  // of the logs there is one command for all
  return unseen.find((command) => !command.startsWith("journalctl ")) ?? unseen[0];
}

type Result = { readonly value: unknown } | { readonly error: string };

/** Runs a program; a missing variable or key is an answer too. */
export function attempt(program: Program, context: Record<string, unknown>): Result {
  try {
    return { value: program.run(context) };
  } catch (error) {
    return { error: String((error as Error).message).split("\n")[0] ?? "" };
  }
}

function holds(program: Program | undefined, context: Record<string, unknown>): boolean {
  if (program === undefined) return false;
  // where nothing is known that it asks for, the answer is an error, and dear
  if (program.names.size > 0 && ![...program.names].some((name) => name in context)) return false;
  const result = attempt(program, context);
  return "value" in result && result.value === true;
}

/** True if it cannot be told whether the condition holds. */
const isUnknown = (program: Program | undefined, context: Record<string, unknown>): boolean => program !== undefined && "error" in attempt(program, context);

/** True only if the gate is surely closed: everything it looked at is completely known. An unknown gate is open. */
function excluded(gate: Program, context: Record<string, unknown>, facts: Facts): boolean {
  for (const id of gate.facts) if (facts.reading(id)?.complete !== true) return false;
  const result = attempt(gate, context);
  return "value" in result && result.value === false;
}

function evidenceOf(programs: readonly Program[], context: Record<string, unknown>, facts: Facts): Evidence[] {
  const evidence: Evidence[] = [];
  const seen = new Set<string>();
  for (const program of programs) {
    const result = attempt(program, context);
    if (!("value" in result)) continue;
    for (const row of Array.isArray(result.value) ? result.value : [result.value]) {
      if (typeof row !== "object" || row === null) continue;
      const quoted = facts.quote(row as { line: unknown });
      const key = quoted === undefined ? "" : `${quoted.file}:${quoted.line}:${quoted.text}`;
      if (quoted === undefined || seen.has(key)) continue;
      seen.add(key);
      const grew = growthOf(row);
      evidence.push(grew === "" ? quoted : { ...quoted, grew });
      if (evidence.length === MAX_EVIDENCE) return evidence;
    }
  }
  return evidence;
}
/** More lines than this prove nothing more. */
const MAX_EVIDENCE = 20;

/** What rose between the two samples in a row of counters: the line itself has only the total of one of them. */
function growthOf(row: object): string {
  const source = (row as Partial<View>)[SOURCE] ?? {};
  const counters = Object.entries(source).filter(([field, value]) => field.endsWith("Delta") && typeof value === "number");
  const grown = counters.filter(([, value]) => (value as number) > 0);
  // what a row of one counter tells besides is about its neighbours
  const own = grown.find(([field]) => field === "valueDelta" || field === "packetsDelta");
  if (own !== undefined) return `+${String(own[1])}`;
  const nameOf = (field: string): string => field.slice(0, -"Delta".length).replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const list = grown.map(([field, value]) => (counters.length === 1 ? `+${String(value)}` : `${nameOf(field)} +${String(value)}`)).join(", ");
  // of many counters and no one CPU or interface: the lines of `conntrack -S` or /proc/net/stat together, of which the first is quoted
  const summedUp = counters.length > 2 && !("cpu" in source) && !("interface" in source);
  return list !== "" && summedUp ? `all lines: ${list}` : list;
}

function confidenceOf({ confidence }: Form, context: Record<string, unknown>): number {
  if (typeof confidence === "number") return confidence;
  const result = attempt(confidence, context);
  return "value" in result && typeof result.value === "number" ? Math.min(1, Math.max(0, result.value)) : 0.5;
}

function parametersOf(rule: Rule, context: Record<string, unknown>): Record<string, unknown> | undefined {
  if (rule.file.fix === undefined) return undefined;
  const parameters: Record<string, unknown> = {};
  for (const { name, program } of rule.parameters) {
    const result = attempt(program, context);
    if ("value" in result) parameters[name] = result.value;
  }
  return parameters;
}

const filled = (template: Template, context: Record<string, unknown>): string =>
  counted(template.map((part) => (typeof part === "string" ? part : text(showingMasked(() => attempt(part, context))))).join(""));

/** "1 message(s) were", "3 pod(s), the first is a, lie": as many as the number says, and the verb that goes with them. Of one there is no first. */
const counted = (sentence: string): string =>
  sentence.replaceAll(
    /\b(\d{1,15})((?: [A-Za-z][\w-]{0,40}){1,4})\((e?s)\)((?: [\w.:@-]{1,40}){0,5}, the first is [^,]{1,120}?[,:](?= )| such as (?=\S{0,80}\d)[^\s,;]{1,80}(?: → [^\s,;]{1,80})?| of the node)?(?: (were|are|have|leave|divert|lie|belong|sit)\b)?/g,
    (_, number: string, what: string, plural: string, aside = "", verb: string | undefined) =>
      number === "1"
        ? `1${what}${aside.replace(", the first is ", ", ").replace(/^ such as /, " ")}${verb === undefined ? "" : ` ${SINGULAR[verb]}`}`
        : `${number}${what}${plural}${aside}${verb === undefined ? "" : ` ${verb}`}`,
  );
const SINGULAR: Readonly<Record<string, string>> = {
  were: "was",
  are: "is",
  have: "has",
  leave: "leaves",
  divert: "diverts",
  lie: "lies",
  belong: "belongs",
  sit: "sits",
};

const text = (result: Result): string => ("value" in result ? shortened(String(result.value)) : "?");

/** A sentence is no place for a whole line of a log: its beginning says who speaks, its end why; the evidence has all of it. */
const shortened = (value: string): string => (value.length <= LONG ? value : `${value.slice(0, LONG / 2)} … ${value.slice(-LONG / 2)}`);
const LONG = 300;
