import type { Capture, Output } from "./capture.ts";
import { commandLine, fallbackOf, isHushed, searchOf } from "./command.ts";
import { containerNames } from "./container-name.ts";
import { cutInside } from "./cut-output.ts";
import { toldByDate, zoneTold } from "./date-output.ts";
import { derivedFacts } from "./derived.ts";
import type { AnyFact, DerivedFact, Input, Parsed, Part, Row, UnparsedLine, View } from "./fact.ts";
import { answeredByDefault, mergeParts } from "./fact.ts";
import { farApart } from "./far-apart.ts";
import { bareText } from "./frame.ts";
import { facts } from "./index.ts";
import { hasMasked, noteMasked, withoutMasked } from "./mask.ts";
import { nodeNames, ofNeighbours } from "./node-name.ts";
import { ofOtherPods, withoutOtherPods } from "./other-pod.ts";
import { isShown } from "./parts.ts";
import { countedNone, cutsNothing, isLineCount, keepsNewest, pipeOf } from "./pipe.ts";
import { present } from "./present.ts";
import { eachCommand } from "./several-commands.ts";
import { unwrapped } from "./unwrap.ts";

/** What became of one fact in one capture. */
export interface FactReading {
  readonly id: string;
  /** `absent`: no output of any of its commands is in the capture, or the tool is not on the node. `failed`: it was tried and gave nothing. */
  readonly status: "read" | "absent" | "failed";
  /** Why it is absent or failed, or what is partial about it; empty if all is well. */
  readonly reason: string;
  readonly value: unknown;
  /** False if anything may be missing from it: truncated, filtered, a partial command, unparsed lines. */
  readonly complete: boolean;
  readonly unparsed: readonly (UnparsedLine & { output: number })[];
  /** The end of an output is missing. */
  readonly truncated?: boolean;
  /** All that was read of it are hints: where it is optional, that is as good as nothing. */
  readonly hinted?: boolean;
  /** Some of its rows have text that a person painted over (`10.x.x.x`); `masked` of a row names the fields. */
  readonly masked?: boolean;
}

export interface FactSet {
  readonly readings: ReadonlyMap<string, FactReading>;
  /** Outputs that no fact recognised: kept and listed, harmless. */
  readonly unknown: readonly number[];
  /** Outputs with lines that could not be read. */
  readonly unparsed: readonly { output: number; lines: number }[];
  readonly bytes: number;
  readonly lines: number;
}

interface Candidate {
  readonly output: number;
  readonly part: Part<unknown> | undefined;
  readonly problem: string;
  readonly missingTool: boolean;
  readonly unparsed: readonly UnparsedLine[];
  readonly unparsedCount: number;
  readonly masked?: boolean;
}

/**
 * Reads every fact out of a capture. One broken output or fact costs only itself. Never throws.
 * `only` limits the work to these facts (and what they are derived from).
 */
export function readFacts(capture: Capture, only?: ReadonlySet<string>): FactSet {
  const candidates = new Map<string, Candidate[]>();
  const unknown: number[] = [];
  const unparsed = new Map<number, number>();
  const tried: Tried[] = [];
  let bytes = 0;
  let lineCount = 0;
  const wanted = only === undefined ? undefined : withSources(only);
  const unmarked = cutInside(capture);
  const around = surroundingsOf(capture);
  const neighbours = new Set([...ofNeighbours(capture), ...ofOtherPods(capture)]);
  const withName = containerNames(capture);
  const ownLines = withoutOtherPods(capture);
  const far = farApart(capture.outputs);
  const read = (printed: Output, index: number): boolean => {
    const output = failedInstead(printed);
    const line = commandLine(output.argv ?? output.command);
    const search = searchOf(output.argv ?? output.command);
    const argv = withName(line.argv);
    if (!line.foreign && !neighbours.has(index) && line.argv[0] !== undefined)
      tried.push({ name: line.argv[0], output: index, missing: output.exitCode === 127 });
    const pipe = output.argv === undefined ? pipeOf(output.command) : "";
    let bare: string | undefined;
    const text = (): string => (bare ??= bareText(output, pipe, argv));
    let recognized = false;
    for (const fact of facts) {
      if (line.foreign ? fact.anywhere !== true && fact.elsewhere !== true : fact.elsewhere === true) continue;
      if (neighbours.has(index) !== (fact.ofNeighbours === true)) continue;
      const view = recognize(fact, argv, search, pipe);
      if (view === undefined) continue;
      recognized = true;
      if (wanted !== undefined && !wanted.has(fact.id)) continue;
      if (far.has(index) && (fact.counters === true || fact.commands.some(({ samples }) => samples === 2))) continue;
      const silent = output.text.trim() === "" && isHushed(output.command);
      const whole = view.complete && !silent && (!line.filtered || cutsNothing(pipe, output.text) || (fact.log === "newest" && keepsNewest(pipe)));
      const candidate = readOutput(fact, { ...view, complete: whole }, { output, index, argv, pipe, sorted: line.sorted, text }, around);
      const list = candidates.get(fact.id);
      if (list === undefined) candidates.set(fact.id, [candidate]);
      else list.push(candidate);
      if (candidate.unparsedCount > 0) unparsed.set(index, Math.max(unparsed.get(index) ?? 0, candidate.unparsedCount));
    }
    return recognized;
  };
  capture.outputs.forEach((given, index) => {
    bytes += Buffer.byteLength(given.text);
    lineCount += countLines(given.text);
    const text = ownLines(given.text);
    const runs = divide(unmarked.has(index) ? { ...given, text, truncated: true } : text === given.text ? given : { ...given, text });
    if (runs.filter((run) => read(run, index)).length === 0) unknown.push(index);
  });
  const readings = new Map<string, FactReading>();
  for (const fact of facts) {
    if (wanted !== undefined && !wanted.has(fact.id)) continue;
    readings.set(fact.id, settle(fact, candidates.get(fact.id) ?? [], capture));
  }
  const tools = readings.get("tool");
  if (tools !== undefined) readings.set("tool", withMissing(tools, tried));
  // what no tool listed, and the kernel has no place for
  for (const fact of facts) {
    if (readings.get(fact.id)?.status === "absent" && withoutModule(fact, readings.get("module"))) readings.set(fact.id, emptyReading(fact));
  }
  for (const fact of facts) {
    const reading = readings.get(fact.id);
    if (reading !== undefined && isProven(fact, reading, readings))
      readings.set(fact.id, reading.status === "read" ? { ...reading, complete: true, reason: "" } : emptyReading(fact));
  }
  for (const fact of derivedFacts) {
    if (wanted !== undefined && !wanted.has(fact.id)) continue;
    readings.set(
      fact.id,
      deriveReading(fact, readings, ({ output }) => machineOf(capture.outputs[output ?? -1])),
    );
  }
  return { readings, unknown, unparsed: [...unparsed].map(([output, lines]) => ({ output, lines })), bytes, lines: lineCount };
}

/** What each command of the line printed; a fact that breaks over it costs only that. */
function divide(output: Output): readonly Output[] {
  try {
    return eachCommand(output);
  } catch {
    return [output];
  }
}

function withSources(only: ReadonlySet<string>): Set<string> {
  const wanted = new Set(only);
  wanted.add("module");
  for (const fact of [...derivedFacts].reverse()) if (wanted.has(fact.id)) for (const source of fact.from) wanted.add(source);
  for (const fact of facts) if (wanted.has(fact.id)) for (const source of fact.provenBy?.from ?? []) wanted.add(source);
  return wanted;
}

function recognize(fact: AnyFact, argv: readonly string[], search: string | undefined, pipe: string) {
  try {
    return argv.length === 0 ? undefined : fact.recognize(argv, search, pipe);
  } catch {
    return undefined;
  }
}

const NOT_FOUND = /(?:command not found|: not found|executable file not found in \$PATH)\s*$/;

/** A shell says so with 127; a pasted output only in words. */
function isMissingTool(output: Output, program: string): boolean {
  if (output.exitCode === 127) return true;
  if (output.exitCode !== undefined || output.text.length > 400) return false;
  // a log may say so of another program
  const complaint = output.text.split("\n").find((line) => NOT_FOUND.test(line));
  return complaint?.includes(program) || output.text.trimEnd().endsWith(`${program}: No such file or directory`);
}

/** What is known of everything in a capture. */
interface Surroundings {
  readonly startedAt: string | undefined;
  readonly zone: number;
  readonly timed: boolean;
  readonly names: readonly string[] | undefined;
}

function surroundingsOf(capture: Capture): Surroundings {
  const { outputs, startedAt } = capture;
  const names = nodeNames(capture);
  return {
    startedAt,
    zone: zoneTold(outputs, startedAt) ?? zoneOf(startedAt),
    // what is pasted from a thread is an output or two
    timed: startedAt !== undefined && (outputs.length >= COLLECTED || saysWhen(outputs, startedAt)),
    // a pasted text that names no node: of the nodes in it nobody knows which this is
    names: names.length === 0 ? undefined : names,
  };
}

/** True if an output of `date` beside the logs bears out when they were taken. */
function saysWhen(outputs: readonly Output[], startedAt: string): boolean {
  const told = toldByDate(outputs);
  return told !== undefined && Math.abs(Date.parse(told) - Date.parse(startedAt)) < 86_400_000;
}

/** As many outputs, with the time at which they were taken, are a collection: what a log of it says of months ago is months old. */
const COLLECTED = 3;

/** When a command began, in seconds since 1970; undefined if the capture does not tell. */
function startOf(output: Output, startedAt: string | undefined): number | undefined {
  const seconds = startedAt === undefined ? Number.NaN : Date.parse(startedAt) / 1000;
  return Number.isNaN(seconds) ? undefined : seconds + (output.startMs ?? 0) / 1000;
}

/** The output of a search that only counted and found nothing (`ip rule | grep -c ADDRESS`), and of a command that failed, where all that was printed is what its line says for that case (`lsmod | grep br_netfilter || echo absent`). */
function failedInstead(output: Output): Output {
  const searched = output.argv === undefined ? countedNone(output.command, output.text) : undefined;
  if (searched !== undefined) return { ...output, command: searched, text: "" };
  const said = output.argv === undefined ? fallbackOf(output.command) : "";
  return said === "" || output.text.trim() !== said ? output : { ...output, text: "", stderr: said, exitCode: 1 };
}

/** `journalctl --utc`, `TZ=UTC dmesg -T`: whatever the zone of the node is. */
const inUtc = (command: string): boolean => /(?:^|\s)(?:--utc(?=\s|$)|TZ=(?:UTC|GMT)\b)/.test(command);

/** Seconds east of UTC that the time of the capture names: who notes it so noted what the node's clock showed, unless the node says otherwise. */
function zoneOf(startedAt: string | undefined): number {
  const [, sign, hours, minutes] = /T.*([+-])(\d\d):?(\d\d)$/.exec(startedAt ?? "") ?? [];
  return sign === undefined ? 0 : (sign === "-" ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60);
}

/** One run of a command, as every fact sees it that recognises it. */
interface Run {
  readonly output: Output;
  /** Of the output among those of the capture. */
  readonly index: number;
  readonly argv: readonly string[];
  readonly pipe: string;
  readonly sorted: boolean;
  readonly text: () => string;
}

function readOutput(fact: AnyFact, view: View, { output, index, argv, pipe, sorted, text }: Run, around: Surroundings): Candidate {
  const nothing = { output: index, part: undefined, unparsed: [], unparsedCount: 0 };
  const missingTool = isMissingTool(output, argv[0] ?? "");
  if (missingTool) return { ...nothing, problem: `${argv[0]} is not installed on the node`, missingTool };
  if (!(fact.answered ?? answeredByDefault)(output)) return { ...nothing, problem: failure(output), missingTool: false };
  if (output.text.trim() === "" && fact.neverEmpty?.(view) === true && pipe === "")
    return { ...nothing, problem: "nothing of what it printed is there", missingTool: false };
  try {
    const { sample, exitCode, stderr, truncated } = output;
    const input = {
      text: text(),
      argv,
      view,
      sample,
      exitCode,
      stderr,
      startedAt: startOf(output, around.startedAt),
      zone: inUtc(output.command) ? 0 : around.zone,
      // a person who pastes writes down neither when a command began nor how long it took
      live: output.startMs !== undefined || output.durationMs !== undefined,
      timed: around.timed,
      truncated,
      sorted,
      pipe,
      ...present({ names: around.names }),
    };
    const parsed = parseWrapped(fact, input);
    stamp(parsed.value, index);
    const masked = noteMasked(parsed.value, input.text);
    const cut = output.truncated ? "the output was truncated" : output.exitCode === 124 || output.exitCode === 137 ? "the command ran into its time limit" : "";
    // a number in the place of the lines is no line of what was counted
    const counted = isLineCount(pipe) && parsed.unparsed.length > 0 && parsed.unparsed.every((one) => Number.isSafeInteger(Number(one.text.trim())));
    const [unparsed, unparsedCount] = counted ? [[], 0] : [parsed.unparsed, parsed.unparsedCount];
    const shown = counted ? "its lines were counted and not shown" : view.complete ? "" : "it shows only a part";
    const partial = cut !== "" ? cut : unparsedCount > 0 ? `${unparsedCount} lines could not be read` : shown;
    const part: Part<unknown> = {
      value: parsed.value,
      view,
      sample: output.sample,
      complete: partial === "",
      at: output.startMs === undefined ? undefined : output.startMs / 1000,
      truncated: output.truncated,
    };
    return { output: index, part, problem: partial, missingTool: false, unparsed, unparsedCount, masked };
  } catch (error) {
    return { ...nothing, problem: `netcheck could not read it: ${String(error)}`, missingTool: false };
  }
}

/** What a person pasted may be wrapped: where putting lines together leaves fewer that cannot be read, that is what was printed. */
function parseWrapped(fact: AnyFact, input: Input): Parsed<unknown> {
  const asPasted = fact.parse(input);
  if (asPasted.unparsedCount === 0 || asPasted.unparsedCount > asPasted.unparsed.length || input.live === true) return asPasted;
  return unwrapped(input.text, asPasted.unparsed)
    .map((text) => fact.parse({ ...input, text }) as Parsed<unknown>)
    .filter((other) => rowCount(other.value) >= rowCount(asPasted.value)) // else whole lines became part of one that says nothing
    .reduce((best, other) => (other.unparsedCount < best.unparsedCount ? other : best), asPasted as Parsed<unknown>);
}

/** How many rows the lists of a fact have. */
const rowCount = (value: unknown): number =>
  Object.values(value as Readonly<Record<string, unknown>>).reduce((sum: number, list) => sum + (Array.isArray(list) ? list.length : 0), 0);

function failure(output: Output): string {
  const message = output.stderr.trim().split("\n")[0] ?? "";
  // grep ends with 1 where no line passes it, and the whole pipe with it
  if (output.exitCode === 1 && message === "" && output.argv === undefined && /(?:^|\| )[ef]?grep [^|]{1,400}$/.test(pipeOf(output.command)))
    return "found nothing";
  const code = output.exitCode === 124 || output.exitCode === 137 ? "ran into its time limit" : `failed with exit code ${output.exitCode}`;
  return message === "" ? code : `${code}: ${message.slice(0, 200)}`;
}

/** Rows learn which output they came from. */
function stamp(value: unknown, output: number): void {
  if (typeof value !== "object" || value === null) return;
  for (const list of Object.values(value)) {
    if (!Array.isArray(list)) continue;
    for (const row of list) if (typeof row === "object" && row !== null && "line" in row) (row as Row).output = output;
  }
}

const rankOf = ({ part }: Candidate): number => part?.view.rank ?? 0;

function settle(fact: AnyFact, candidates: readonly Candidate[], capture: Capture): FactReading {
  const none = { id: fact.id, value: undefined, complete: false, unparsed: [] };
  const parts = firstSamples(candidates.flatMap((candidate) => (candidate.part === undefined ? [] : [candidate.part])));
  const command = brief(fact.byHand ?? fact.commands[0]?.argv.join(" ") ?? fact.id);
  if (parts.length === 0) {
    const failed = candidates.find((candidate) => !candidate.missingTool);
    if (failed !== undefined)
      return { ...none, status: "failed", reason: `\`${brief(capture.outputs[failed.output]?.command ?? command)}\` ${failed.problem}` };
    const reason = skippedOf(fact, capture) ?? candidates[0]?.problem ?? `the capture holds no output of \`${command}\``;
    return { ...none, status: "absent", reason };
  }
  try {
    const value = (fact.merge ?? mergeParts)(parts);
    // a second sample only adds differences: what the first one lacks stays unknown
    const whole = (fact.whole ?? isWhole)(parts.filter((part) => part.sample === 1));
    // the best of those that show only a part: an output that tells of it by the way never was to show all
    const partial = candidates
      .filter((candidate) => candidate.part !== undefined && !candidate.part.complete)
      .reduce<Candidate | undefined>((best, next) => (best === undefined || rankOf(next) > rankOf(best) ? next : best), undefined);
    return {
      id: fact.id,
      status: "read",
      reason: whole
        ? ""
        : partial === undefined
          ? (skippedOf(fact, capture) ?? unrun(fact, parts))
          : `\`${brief(capture.outputs[partial.output]?.command ?? command)}\`: ${partial.problem}`,
      value,
      complete: whole,
      ...(parts.some(({ truncated }) => truncated === true) ? { truncated: true } : {}),
      ...(parts.every(({ view }) => view.hint === true) ? { hinted: true } : {}),
      ...(candidates.some(({ masked }) => masked) && hasMasked(value) ? { masked: true } : {}),
      unparsed: candidates.flatMap((candidate) => candidate.unparsed.map((line) => ({ ...line, output: candidate.output }))),
    };
  } catch (error) {
    return { ...none, status: "failed", reason: `netcheck could not put its outputs together: ${String(error)}` };
  }
}

/** Why a command of the fact was not run, or what it printed is not there; undefined if nothing was left out. Any spelling of the command counts, as of one that ran. */
function skippedOf(fact: AnyFact, { notCollected }: Capture): string | undefined {
  return notCollected.find(({ command }) => {
    if (fact.commands.some(({ argv }) => command === argv.join(" "))) return true;
    const line = commandLine(command.endsWith("(second sample)") ? "" : command);
    return (!line.foreign || fact.anywhere === true) && recognize(fact, line.argv, searchOf(command), pipeOf(command)) !== undefined;
  })?.reason;
}

/** Why a fact is not whole although each of its outputs is: the first of its commands of whose kind (the first word of the scope) there is none. */
function unrun(fact: AnyFact, parts: readonly Part<unknown>[]): string {
  const kind = (view: View | undefined): string | undefined => view?.scope.split(" ", 1)[0];
  const missing = fact.commands.find(({ argv }) => {
    const wanted = kind(fact.recognize(argv));
    return wanted !== undefined && wanted !== "" && !parts.some(({ view }) => kind(view) === wanted);
  });
  return missing === undefined ? "only some of its commands were run" : `the capture holds no output of \`${brief(missing.byHand ?? missing.argv.join(" "))}\``;
}

/** A program that was run on the node, or was not there to be run. */
interface Tried {
  readonly name: string;
  readonly output: number;
  readonly missing: boolean;
}

/** The programs of the node with those that the shell did not find (exit code 127) when one of their commands was run, and that were found at no time. */
function withMissing(tools: FactReading, tried: readonly Tried[]): FactReading {
  const value =
    tools.status === "read" ? (tools.value as { rows: readonly { name: string }[]; missing: readonly { name: string }[] }) : { rows: [], missing: [] };
  const known = new Set([...value.rows, ...value.missing, ...tried.filter(({ missing }) => !missing)].map(({ name }) => name));
  const missing = tried.filter((one) => one.missing && !known.has(one.name)).map(({ name, output }) => ({ line: 1, name, output }));
  if (missing.length === 0) return tools;
  return { ...tools, status: "read", value: { ...value, missing: [...value.missing, ...missing] } };
}

/** True if a complete list of the loaded modules proves that the one which holds the fact is neither loaded nor part of the kernel image. */
function withoutModule({ heldBy }: AnyFact, modules: FactReading | undefined): boolean {
  if (heldBy === undefined || modules?.status !== "read" || !modules.complete) return false;
  const { rows } = modules.value as { rows: readonly { name: string; size?: number; builtin: boolean }[] };
  // only lsmod tells sizes: what it lists is no part of the image
  return rows.some((row) => row.name === heldBy.needs && row.size !== undefined && !row.builtin) && !rows.some((row) => row.name === heldBy.module);
}

/** True if other facts, each of them completely known, prove that nothing is missing from what was read of this one. */
function isProven({ provenBy }: AnyFact, reading: FactReading, readings: ReadonlyMap<string, FactReading>): boolean {
  if (provenBy === undefined || reading.complete || reading.masked === true || reading.status === "failed") return false;
  const sources = provenBy.from.map((id) => readings.get(id));
  if (!sources.every((source) => source?.status === "read" && source.complete && source.masked !== true)) return false;
  return provenBy.proves(reading.status === "read" ? reading.value : undefined, Object.fromEntries(sources.map((source) => [source?.id, source?.value])));
}

/** A fact of which there is nothing on the node: as its command would have printed nothing. */
function emptyReading(fact: AnyFact): FactReading {
  const argv = fact.commands[0]?.argv ?? [];
  const view = fact.recognize(argv) ?? { format: "", complete: true, scope: "", rank: 0 };
  const { value } = fact.parse({ text: "", argv, view, sample: 1, exitCode: undefined, stderr: "" });
  return { id: fact.id, status: "read", reason: "", value, complete: true, unparsed: [] };
}

/** Where the first sample of something is missing, the second one is the first. */
function firstSamples(parts: readonly Part<unknown>[]): Part<unknown>[] {
  const seen = new Set(parts.filter((part) => part.sample === 1).map((part) => part.view.scope));
  return parts.map((part) => (seen.has(part.view.scope) ? part : { ...part, sample: 1 }));
}

/** A fact is whole if each scope that is partial somewhere is whole elsewhere, or a complete part of the empty scope (everything) is there. */
function isWhole(parts: readonly Part<unknown>[]): boolean {
  return isShown(parts) || parts.every(({ view }) => isShown(parts, view.scope));
}

/**
 * What is surely known of a fact: without what a person painted over, and partial for it. The reading itself if nothing is.
 */
export function knownOf(reading: FactReading): FactReading {
  if (reading.masked !== true) return reading;
  // biome-ignore lint/suspicious/noExplicitAny: zod's definition objects are not typed by kind
  const lists = (facts.find(({ id }) => id === reading.id)?.schema as any)?.def.shape;
  const lacksMac = (list: string): boolean => lists?.[list]?.def.element?.def.shape?.mac?.def.type === "optional";
  const { masked: _, ...rest } = reading;
  return { ...rest, value: withoutMasked(reading.value, lacksMac), complete: false, reason: reading.reason === "" ? MASKED : reading.reason };
}
const MASKED = "addresses in it are masked; show them as they are, or put the same made-up address for the same one everywhere";

/** Whose an output is, as its text or its command tells: `ssh node2 ip neigh`. */
const machineOf = (output: Output | undefined): string | undefined =>
  output?.machine ?? /^(?:sudo )?ssh (?:-\S{1,80} ){0,6}([^\s-]\S{0,252}) \S/.exec(output?.command ?? "")?.[1];

function deriveReading(fact: DerivedFact, readings: ReadonlyMap<string, FactReading>, machineOf: Parameters<DerivedFact["derive"]>[2]): FactReading {
  const sources = fact.from
    .map((id) => readings.get(id))
    .map((source) => (source === undefined || fact.masked?.includes(source.id) ? source : knownOf(source)));
  const values: Record<string, unknown> = {};
  for (const source of sources) if (source?.status === "read") values[source.id] = source.value;
  const missing = sources.find((source) => source?.status !== "read");
  const base = { id: fact.id, unparsed: [] };
  if (Object.keys(values).length === 0) {
    return { ...base, status: missing?.status === "failed" ? "failed" : "absent", reason: missing?.reason ?? "", value: undefined, complete: false };
  }
  try {
    const isNone = ({ id, status, hinted }: FactReading): boolean =>
      fact.optional?.includes(id) === true && (status !== "read" || isLog(id) || hinted === true);
    const required = sources.filter((source) => source === undefined || !isNone(source));
    const partial = required.find(
      (source) => source === undefined || source.status !== "read" || (!source.complete && fact.inPart?.includes(source.id) !== true),
    );
    const whole = new Set(sources.flatMap((source) => (source?.status === "read" && source.complete ? [source.id] : [])));
    const complete = partial === undefined || fact.enough?.(values, whole) === true;
    const value = fact.derive(values, whole, machineOf);
    const masked = fact.masked !== undefined && hasMasked(value);
    return { ...base, status: "read", reason: complete ? "" : (partial?.reason ?? ""), value, complete, ...(masked ? { masked } : {}) };
  } catch (error) {
    return { ...base, status: "failed", reason: `netcheck could not derive it: ${String(error)}`, value: undefined, complete: false };
  }
}

/** True for a fact of which a part is as good as none where it is optional. */
export const isLog = (id: string): boolean => LOGS.has(id);
const LOGS: ReadonlySet<string> = new Set(facts.filter(({ log }) => log !== undefined).map(({ id }) => id));

/** A command as a sentence names it: one that lists twenty keys is cut. */
const brief = (command: string): string => (command.length > 64 ? `${command.slice(0, 63)}…` : command);

function countLines(text: string): number {
  let count = 0;
  for (let i = text.indexOf("\n"); i !== -1; i = text.indexOf("\n", i + 1)) count++;
  return text.length > 0 && !text.endsWith("\n") ? count + 1 : count;
}
