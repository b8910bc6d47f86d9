import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { agentLog } from "../../functions/facts/agent-log.ts";
import { type Capture, indexOf, type Output } from "../../functions/facts/capture.ts";
import { commandLine } from "../../functions/facts/command.ts";
import { derivedFacts } from "../../functions/facts/derived.ts";
import type { AnyFact } from "../../functions/facts/fact.ts";
import { kernelLog } from "../../functions/facts/kernel-log.ts";
import { podEvent } from "../../functions/facts/pod-event.ts";
import { readFacts } from "../../functions/facts/read.ts";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { fixtureNames, mustBeQuiet, readCase } from "../../functions/rules/fixtures.ts";
import type { Catalogue } from "../../functions/rules/load.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";
import { blindCaptures } from "../blind/run.ts";
import { clears } from "./cleared-by.ts";
import { type Mutation, mutated, mutation } from "./mutation.ts";

/** A capture in which nothing is wrong, by "<rule>/<case>" or "healthy/<case>". */
export interface Quiet {
  readonly name: string;
  readonly capture: Capture;
}

const blind = fileURLToPath(new URL("../blind/healthy/", import.meta.url));

/** The captures of healthy nodes that are `chosen`, or all: rules' cases whose name says healthy, fixed or near-miss, and the blind ones. Sorted by name within both. */
export async function quietCaptures(runbooks: string, rules: Iterable<string>, chosen: (name: string) => boolean = () => true): Promise<Quiet[]> {
  const all: Quiet[] = [];
  for (const rule of rules) {
    for (const name of fixtureNames(runbooks, rule)) {
      if (!chosen(`${rule}/${name}`)) continue;
      const fixture = readCase(runbooks, rule, name);
      if (mustBeQuiet(fixture)) all.push({ name: `${rule}/${name}`, capture: await readCaptureFiles(fixture.capture) });
    }
  }
  for (const name of readdirSync(blind).sort()) {
    if (!chosen(`healthy/${name}`)) continue;
    const { cause } = JSON.parse(readFileSync(join(blind, name, "expect.json"), "utf8")) as { cause: string | null };
    if (cause === null) all.push({ name: `healthy/${name}`, capture: (await blindCaptures(join(blind, name)))[0] });
  }
  return all;
}

/** What is left of a capture. */
interface Partial {
  readonly from: Quiet;
  readonly capture: Capture;
}

/** How a capture was cut down; shrinks to fewer outputs, fewer cuts, and times left in. */
interface Cutting {
  readonly kept: readonly number[];
  readonly cuts: readonly { readonly which: number; readonly at: number; readonly marked: boolean }[];
  readonly timeless: boolean;
  readonly pasted: boolean;
}

const cutting = (outputs: number): fc.Arbitrary<Cutting> =>
  fc.record({
    kept: fc.oneof(
      fc.subarray([...Array(outputs).keys()], { minLength: 1, maxLength: Math.min(outputs, 4) }),
      fc.subarray([...Array(outputs).keys()], { minLength: 1 }),
    ),
    cuts: fc.array(fc.record({ which: fc.nat({ max: 10_000 }), at: fc.nat({ max: 1_000_000 }), marked: fc.boolean() }), { maxLength: 3 }),
    timeless: fc.boolean(),
    pasted: fc.boolean(),
  });

/** Facts whose lines count only while they are fresh. */
const LOGS: readonly AnyFact[] = [kernelLog, agentLog, podEvent];

/** True for a log, or for the clock that dates the kernel's. */
function isLog({ argv, command }: Output): boolean {
  const words = commandLine(argv ?? command).argv;
  return LOGS.some((fact) => fact.recognize(words) !== undefined);
}

/**
 * What is left is always something that a healthy node alone can show:
 * - A log goes without its clock only if a collector wrote it (with `anyLog`, always). Of a line that a person pasted nobody knows when it was written, so it counts
 *   as fresh; an old one is the same text.
 * - A cut that is not marked lies inside a line, and other outputs are there that end as they should. An output that ends behind any of its lines looks whole, and
 *   what it lacks looks missing on the node; so does half a number that is all there is.
 * - What alone clears the node (see cleared-by.ts) stays.
 */
function partial(from: Quiet, { kept, cuts, timeless, pasted }: Cutting, anyLog: boolean): Partial {
  const byHand = timeless || pasted || from.capture.startedAt === undefined;
  const isClearing = ({ command }: Output): boolean => clears(command, from.name);
  const outputs = from.capture.outputs.filter(
    (output, i) => isClearing(output) || (kept.includes(i) && (anyLog || !isLog(output) || (!byHand && output.startMs !== undefined))),
  );
  const untouched = outputs.filter(({ text }) => text.endsWith("\n")).length;
  for (const { which, at, marked } of outputs.length === 0 ? [] : cuts) {
    const i = which % outputs.length;
    const output = outputs[i] as Output;
    const end = at % (output.text.length + 1);
    if (isClearing(output)) continue;
    if (marked || (untouched >= 5 && output.text.trim().includes("\n") && isInside(output.text, end)))
      outputs[i] = { ...output, text: output.text.slice(0, end), truncated: output.truncated || marked };
  }
  const bare = outputs.map((output): Output => {
    const untimed = timeless || pasted ? { ...output, startMs: undefined, durationMs: undefined } : output;
    // who pastes an output shows neither its exit code nor what became of stderr
    return pasted ? { ...untimed, exitCode: undefined } : untimed;
  });
  return { from, capture: { ...from.capture, startedAt: timeless ? undefined : from.capture.startedAt, notCollected: [], outputs: bare } };
}

/** True if a line goes on at both sides of a place. */
const isInside = (text: string, at: number): boolean => at > 0 && at < text.length && !/\s/.test(text.charAt(at - 1) + text.charAt(at));

const anyPartial = (from: Quiet, anyLog: boolean): fc.Arbitrary<Partial> => cutting(from.capture.outputs.length).map((how) => partial(from, how, anyLog));

/**
 * The captures of a batch, each with a seed of its own; both come from the batch's seed and the capture's name alone, so that a capture which is added or renamed
 * changes nothing for the others, and whoever adds one does not meet what another would have shown. Where there are fewer than `runs`, each comes several times.
 */
function batchOf(quiet: readonly Quiet[], { seed, runs }: { seed: number; runs: number }): { from: Quiet; seed: number }[] {
  const usable = quiet.filter(({ capture }) => capture.outputs.length > 0);
  const turns = usable.flatMap((from) =>
    [...Array(Math.max(1, Math.ceil(runs / usable.length))).keys()].map((turn) => ({
      from,
      seed: createHash("sha256").update(`${seed} ${turn} ${from.name}`).digest().readInt32BE(0),
    })),
  );
  return turns.sort((a, b) => a.seed - b.seed).slice(0, runs);
}

/** A cause that was found where nothing is wrong, or something that broke. */
export interface Alarm {
  /** The rule, or "broken". */
  readonly of: string;
  readonly problem: string;
  readonly seed: number;
  readonly from: string;
  readonly capture: Capture;
}

export interface AlarmTally {
  readonly runs: number;
  /** Captures that were diagnosed, those of shrinking included. */
  readonly diagnosed: number;
  readonly alarms: readonly Alarm[];
}

class Found extends Error {
  readonly rules: readonly string[];
  constructor(rules: readonly string[], message: string) {
    super(message);
    this.rules = rules;
  }
}

/** One batch of parts of healthy captures. `known`: rules that were told of already; they are not told of again. Deterministic. */
export function fuzzPartial(quiet: readonly Quiet[], catalogue: Catalogue, known: ReadonlySet<string>, batch: { seed: number; runs: number }): AlarmTally {
  const told = new Set(known);
  return tally(quiet, batch, (from) => [
    anyPartial(from, false),
    ({ capture }) => {
      const causes = diagnose(capture, catalogue, "fuzz", () => 0).causes.filter((cause) => !told.has(cause.rule));
      if (causes.length === 0) return;
      throw new Found(
        causes.map(({ rule }) => rule),
        causes.map(({ rule, confidence, summary }) => `${rule} at ${confidence}: ${summary}`).join("; "),
      );
    },
    ({ of }) => told.add(of),
  ]);
}

/** One batch of garbled parts: whatever they hold, nothing may break, and derived facts stay in their schema. Deterministic. */
export function fuzzGarbled(quiet: readonly Quiet[], catalogue: Catalogue, batch: { seed: number; runs: number }): AlarmTally {
  const donors = quiet.slice(0, 40).flatMap(({ capture }) => capture.outputs.slice(0, 5).map(({ text }) => text));
  const changes = fc.array(fc.tuple(fc.nat({ max: 10_000 }), mutation), { minLength: 1, maxLength: 6 });
  return tally(quiet, batch, (from) => [
    fc.tuple(anyPartial(from, true), changes).map(([{ capture }, list]) => ({ from, capture: garble(capture, list, donors) })),
    ({ capture }) => {
      const { readings } = readFacts(capture);
      for (const { id, reason } of readings.values()) if (reason.includes("netcheck could not")) throw new Found(["broken"], `${id}: ${reason}`);
      for (const fact of derivedFacts) {
        const reading = readings.get(fact.id);
        if (reading?.status !== "read") continue;
        const checked = fact.schema.safeParse(reading.value);
        if (!checked.success) throw new Found(["broken"], `${fact.id}: ${JSON.stringify(checked.error.issues[0])}`);
      }
      diagnose(capture, catalogue, "fuzz", () => 0);
    },
  ]);
}

function garble(capture: Capture, changes: readonly (readonly [number, Mutation])[], donors: readonly string[]): Capture {
  const outputs = [...capture.outputs];
  for (const [which, change] of changes) {
    const i = which % outputs.length;
    const output = outputs[i] as Output;
    outputs[i] = { ...output, text: mutated(output.text, change, donors) };
  }
  return { ...capture, outputs };
}

/** What is tried with a capture: what is made of it, what must hold, and who hears of what does not. */
type Trial = readonly [made: fc.Arbitrary<Partial>, holds: (made: Partial) => void, onAlarm?: (alarm: Alarm) => void];

function tally(quiet: readonly Quiet[], batch: { seed: number; runs: number }, trialOf: (from: Quiet) => Trial): AlarmTally {
  const alarms: Alarm[] = [];
  let diagnosed = 0;
  const runs = batchOf(quiet, batch);
  for (const { from, seed } of runs) {
    const [made, holds, onAlarm] = trialOf(from);
    const property = fc.property(made, (partial) => {
      diagnosed++;
      holds(partial);
    });
    const { failed, counterexample, errorInstance: error } = fc.check(property, { seed, numRuns: 1 });
    if (!failed || counterexample === null) continue;
    const rules = error instanceof Found ? error.rules : ["broken"];
    const problem = error instanceof Error ? error.message : String(error);
    const alarm = { of: rules[0] ?? "broken", problem: problem.slice(0, 400), seed: batch.seed, from: from.name, capture: counterexample[0].capture };
    alarms.push(alarm);
    onAlarm?.(alarm);
  }
  return { runs: runs.length, diagnosed, alarms };
}

/** Writes a capture as a folder that `netcheck diagnose` takes. */
export function writeCapture(folder: string, capture: Capture): void {
  for (const [i, { file, text }] of capture.outputs.entries()) {
    if (capture.outputs.findIndex((output) => output.file === file) !== i) continue;
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "capture.json"), `${JSON.stringify(indexOf(capture), null, 1)}\n`);
}
