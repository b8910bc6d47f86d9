import fc from "fast-check";
import { z } from "zod";
import { commandLine, searchOf } from "../../functions/facts/command.ts";
import type { AnyFact, Parsed, Part } from "../../functions/facts/fact.ts";
import { pipeOf } from "../../functions/facts/pipe.ts";
import { cpuMs } from "../cpu-time.ts";
import { caseFiles, checkParsed, type FactCase, readFactCase } from "../fact-cases.ts";
import { fed, food, mutated, mutation } from "./mutation.ts";

/** What a batch of runs found wrong: a sentence, and a text that shows it. */
export interface Failure {
  readonly of: string;
  readonly problem: string;
  readonly seed: number;
  /** The command that printed it, where one did. */
  readonly command: string;
  readonly text: string;
}

/** What the runs of one fact came to. */
export interface FactTally {
  readonly runs: number;
  /** The slowest text of those of 8 KB or more: microseconds per KB, the best of three, and what it was. */
  readonly slowest: { readonly perKb: number; readonly what: string };
  readonly failures: readonly Failure[];
}

interface Sample {
  readonly text: string;
  readonly given: FactCase;
  readonly file: string;
}

/** Texts of every fact's cases, for the lines that get mixed up. */
export const donorsOf = (facts: readonly AnyFact[]): string[] => facts.flatMap(({ id }) => caseFiles(id).map((file) => readFactCase(id, file).text));

/** A text twice as long may take this many times as long, measured where the longer takes {@link NOTICEABLE} or more. */
const GROWTH = 3.2;
const NOTICEABLE = 100_000;
/** What takes less of the processor is measured by the clock: microseconds. */
const FINE = 10_000;
/** Microseconds per KB (1024 characters), generous because machines are shared: 4 s for a megabyte. Megabytes of broken JSON take the most, a second. */
const SLOW = 4_000;
/** Characters of the shorter text. Twice the first still is below the 64 K at which most facts cut lines; the other shows what it takes many lines to show. */
const SIZES = [30_000, 250_000] as const;

/** One batch: `runs` garbled texts, then `feeds` texts that grow. Deterministic but for the times. Never throws. */
export function fuzzFact(fact: AnyFact, donors: readonly string[], { seed: told, runs, feeds }: { seed: number; runs: number; feeds: number }): FactTally {
  // else every fact would meet the same changes
  const seed = Buffer.from(fact.id).reduce((sum, byte) => (sum * 31 + byte) | 0, told);
  const samples = caseFiles(fact.id).map((file): Sample => ({ ...readFactCase(fact.id, file), file }));
  const failures: Failure[] = [];
  let slowest = { perKb: 0, what: "" };
  const once = (sample: Sample, text: string): { parsed: Parsed<unknown>; micros: number } => {
    const [before, cpuBefore] = [performance.now(), cpuMs()];
    const parsed = parse(fact, sample.given, text);
    const [micros, cpu] = [(performance.now() - before) * 1000, (cpuMs() - cpuBefore) * 1000];
    // the clock is finer, but goes on while the machine is busy with something else
    return { parsed, micros: cpu < FINE ? micros : Math.min(micros, cpu) };
  };
  const timed = (sample: Sample, text: string, what: string): { parsed: Parsed<unknown>; micros: number } => {
    const { parsed, micros: first } = once(sample, text);
    const perKb = (micros: number): number => micros / (text.length / 1024);
    if (text.length < 8192 || perKb(first) <= slowest.perKb) return { parsed, micros: first };
    // once more: the machine may have been busy with something else
    const micros = Math.min(first, once(sample, text).micros, once(sample, text).micros);
    if (perKb(micros) > slowest.perKb) slowest = { perKb: perKb(micros), what: `${sample.file}, ${what}` };
    return { parsed, micros };
  };
  const sample = fc.nat({ max: 10_000 }).map((n) => samples[n % samples.length] as Sample);

  const garbled = fc.property(sample, fc.array(mutation, { minLength: 1, maxLength: 4 }), (from, mutations) => {
    const text = mutations.reduce((whole, change) => mutated(whole, change, donors), from.text);
    const { parsed, micros } = timed(from, text, mutations.map(({ kind }) => kind).join(" + "));
    if (text.length > SIZES[0] && micros / (text.length / 1024) > SLOW) throw new Error(`slow: ${Math.round(micros)} µs for ${text.length} characters`);
    checkParsed(fact, text, parsed, from.given.stderr);
    checkMerged(fact, from, parsed, structuredClone(parsed));
  });
  const garble = fc.check(garbled, { seed, numRuns: runs });
  const [from, mutations] = garble.counterexample ?? [];
  if (garble.failed && from !== undefined && mutations !== undefined) {
    const text = mutations.reduce((whole, change) => mutated(whole, change, donors), from.text);
    failures.push({ of: fact.id, problem: `${from.file}: ${firstLine(garble.errorInstance)}`, seed: told, command: from.given.command, text });
  }

  const growing = fc.property(sample, food, fc.constantFrom(...SIZES), (from, what, size) => {
    const measure = (length: number): number => timed(from, fed(from.text, what, length), what.kind).micros;
    let [short, long] = [measure(size), measure(2 * size)];
    const kilobytes = size / 512;
    // a busy machine, a compiler that is at work: only what stays slow is slow
    for (let tries = 0; tries < 3 && (suspicious(short, long) || long > SLOW * kilobytes); tries++) {
      short = Math.min(short, measure(size));
      long = Math.min(long, measure(2 * size));
    }
    const times = `${size} characters took ${Math.round(short)} µs, twice as many ${Math.round(long)} µs (${what.kind})`;
    if (suspicious(short, long)) throw new Error(`not linear: ${times}`);
    if (long > SLOW * kilobytes) throw new Error(`slow: ${times}, at most ${SLOW} per KB are allowed`);
  });
  const growth = fc.check(growing, { seed, numRuns: feeds, endOnFailure: true });
  const [grown, what, size] = growth.counterexample ?? [];
  if (growth.failed && grown !== undefined && what !== undefined && size !== undefined) {
    const text = fed(grown.text, what, 2 * size);
    failures.push({ of: fact.id, problem: `${grown.file}: ${firstLine(growth.errorInstance)}`, seed: told, command: grown.given.command, text });
  }
  return { runs: garble.numRuns + garble.numShrinks + growth.numRuns, slowest, failures };
}

/** Below {@link NOTICEABLE} microseconds the garbage collector makes more of a difference; what is quadratic takes seconds. */
const suspicious = (short: number, long: number): boolean => long >= NOTICEABLE && long > short * GROWTH;

function parse(fact: AnyFact, given: FactCase, text: string): Parsed<unknown> {
  const { argv, sorted } = commandLine(given.command);
  const view = fact.recognize(argv, searchOf(given.command), pipeOf(given.command));
  if (view === undefined) throw new Error(`it does not recognise "${given.command}"`);
  const { exitCode = 0, stderr = "" } = given;
  return fact.parse({
    text,
    argv,
    view,
    sample: 1,
    exitCode,
    stderr,
    sorted,
    pipe: pipeOf(given.command),
    startedAt: text.length % 2 === 0 ? 1_795_233_088 : undefined,
  });
}

/** Two samples of the same must fit together, whatever is in them. */
function checkMerged(fact: AnyFact, { given }: Sample, first: Parsed<unknown>, second: Parsed<unknown>): void {
  const view = fact.recognize(commandLine(given.command).argv, searchOf(given.command), pipeOf(given.command));
  if (view === undefined) return;
  const part = (parsed: Parsed<unknown>, sample: number): Part<unknown> => {
    return { value: parsed.value, view, sample, complete: view.complete && parsed.unparsedCount === 0, at: sample };
  };
  const parts = [part(first, 1), part(second, 2)];
  if (fact.merge !== undefined) fact.schema.parse(fact.merge(parts));
  fact.whole?.(parts.slice(0, 1));
}

/** The first thing that a schema complains of; else the first line of the message. */
function firstLine(error: unknown): string {
  if (error instanceof z.ZodError) return `${error.issues[0]?.path.join(".")}: ${error.issues[0]?.message}`;
  return (
    String(error instanceof Error ? error.message : error)
      .slice(0, 300)
      .split("\n")[0] ?? ""
  );
}
