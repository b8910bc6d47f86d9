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
import { type Mutation, mutated, mutation } from "./mutation.ts";

/** A capture in which nothing is wrong, by "<rule>/<case>" or "healthy/<case>". */
export interface Quiet {
  readonly name: string;
  readonly capture: Capture;
}

const blind = fileURLToPath(new URL("../blind/healthy/", import.meta.url));

/** All captures of healthy nodes: rules' cases whose name says healthy, fixed or near-miss, and the blind ones. Sorted by name within both. */
export async function quietCaptures(runbooks: string, rules: Iterable<string>): Promise<Quiet[]> {
  const all: Quiet[] = [];
  for (const rule of rules) {
    for (const name of fixtureNames(runbooks, rule)) {
      const fixture = readCase(runbooks, rule, name);
      if (mustBeQuiet(fixture)) all.push({ name: `${rule}/${name}`, capture: await readCaptureFiles(fixture.capture) });
    }
  }
  for (const name of readdirSync(blind).sort()) {
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
 *   what it lacks looks missing on the node.
 * - What alone clears the node (see CLEARED_BY) stays.
 */
function partial(from: Quiet, { kept, cuts, timeless, pasted }: Cutting, anyLog: boolean): Partial {
  const byHand = timeless || pasted || from.capture.startedAt === undefined;
  const clearing = CLEARED_BY[from.name];
  const isClearing = ({ command }: Output): boolean => clearing?.test(command) === true;
  const outputs = from.capture.outputs.filter(
    (output, i) => isClearing(output) || (kept.includes(i) && (anyLog || !isLog(output) || (!byHand && output.startMs !== undefined))),
  );
  const untouched = outputs.filter(({ text }) => text.endsWith("\n")).length;
  for (const { which, at, marked } of outputs.length === 0 ? [] : cuts) {
    const i = which % outputs.length;
    const output = outputs[i] as Output;
    const end = at % (output.text.length + 1);
    if (isClearing(output)) continue;
    if (marked || (untouched >= 5 && isInside(output.text, end)))
      outputs[i] = { ...output, text: output.text.slice(0, end), truncated: output.truncated || marked };
  }
  const bare = outputs.map((output): Output => {
    const untimed = timeless || pasted ? { ...output, startMs: undefined, durationMs: undefined } : output;
    // who pastes an output shows neither its exit code nor what became of stderr
    return pasted ? { ...untimed, exitCode: undefined } : untimed;
  });
  return { from, capture: { ...from.capture, startedAt: timeless ? undefined : from.capture.startedAt, notCollected: [], outputs: bare } };
}

/**
 * Near misses that one output alone clears: without it the rest is what the faulty node shows, and a person who pastes just that wants the fault found. That output
 * is never left out, nor cut.
 */
const CLEARED_BY: Readonly<Record<string, RegExp>> = {
  // the bridge's own setting, which is hardly ever used, stands in its details
  "bridge-netfilter-off/near-miss-bridge-switched-on": /^ip -d link/,
  // the kernel's complaint is about a pod's table; the node's own numbers show that it is not the node's
  "conntrack-table-full/near-miss-a-namespace-is-full": /^sysctl .*nf_conntrack_count/,
  // the order is the fault's; Cilium's status tells that netfilter sees both directions
  "healthy/kube-forward-first-iptables-masq-some-invalid-r5e": /^cilium-dbg status/,
  "healthy/kfc-iptables-masquerade-late-packets-r13": /^cilium-dbg status/,
  // it was full within the last hour; the numbers show that the limit was raised since
  "conntrack-table-full/fixed-limit-raised": /^sysctl .*nf_conntrack_count/,
  // the clock is kept by VMware's tools alone, which only they tell
  "healthy/open-vm-tools-enabled-r13": /vmware-toolbox-cmd timesync status/,
};

/** True if a line goes on at both sides of a place. */
const isInside = (text: string, at: number): boolean => at > 0 && at < text.length && !/\s/.test(text.charAt(at - 1) + text.charAt(at));

const anyPartial = (quiet: readonly Quiet[], anyLog: boolean): fc.Arbitrary<Partial> =>
  fc
    .nat({ max: 1_000_000 })
    .map((n) => quiet[n % quiet.length] as Quiet)
    .filter(({ capture }) => capture.outputs.length > 0)
    .chain((from) => cutting(from.capture.outputs.length).map((how) => partial(from, how, anyLog)));

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
export function fuzzPartial(
  quiet: readonly Quiet[],
  catalogue: Catalogue,
  known: ReadonlySet<string>,
  { seed, runs }: { seed: number; runs: number },
): AlarmTally {
  let diagnosed = 0;
  const property = fc.property(anyPartial(quiet, false), ({ capture }) => {
    diagnosed++;
    const causes = diagnose(capture, catalogue, "fuzz", () => 0).causes.filter((cause) => !known.has(cause.rule));
    if (causes.length > 0) {
      const told = causes.map(({ rule, confidence, summary }) => `${rule} at ${confidence}: ${summary}`).join("; ");
      throw new Found(
        causes.map(({ rule }) => rule),
        told,
      );
    }
  });
  return tally(fc.check(property, { seed, numRuns: runs }), seed, () => diagnosed);
}

/** One batch of garbled parts: whatever they hold, nothing may break, and derived facts stay in their schema. Deterministic. */
export function fuzzGarbled(quiet: readonly Quiet[], catalogue: Catalogue, { seed, runs }: { seed: number; runs: number }): AlarmTally {
  let diagnosed = 0;
  const donors = quiet.slice(0, 40).flatMap(({ capture }) => capture.outputs.slice(0, 5).map(({ text }) => text));
  const changes = fc.array(fc.tuple(fc.nat({ max: 10_000 }), mutation), { minLength: 1, maxLength: 6 });
  const garbled = fc.tuple(anyPartial(quiet, true), changes).map(([{ from, capture }, list]) => ({ from, capture: garble(capture, list, donors) }));
  const property = fc.property(garbled, ({ capture }) => {
    diagnosed++;
    const { readings } = readFacts(capture);
    for (const { id, reason } of readings.values()) if (reason.includes("netcheck could not")) throw new Found(["broken"], `${id}: ${reason}`);
    for (const fact of derivedFacts) {
      const reading = readings.get(fact.id);
      if (reading?.status !== "read") continue;
      const checked = fact.schema.safeParse(reading.value);
      if (!checked.success) throw new Found(["broken"], `${fact.id}: ${JSON.stringify(checked.error.issues[0])}`);
    }
    diagnose(capture, catalogue, "fuzz", () => 0);
  });
  return tally(fc.check(property, { seed, numRuns: runs }), seed, () => diagnosed);
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

function tally(details: fc.RunDetails<[Partial]>, seed: number, diagnosed: () => number): AlarmTally {
  const found = details.counterexample?.[0];
  const error = details.errorInstance;
  const alarms: Alarm[] = [];
  if (details.failed && found !== undefined) {
    const rules = error instanceof Found ? error.rules : ["broken"];
    const problem = error instanceof Error ? error.message : String(error);
    alarms.push({ of: rules[0] ?? "broken", problem: problem.slice(0, 400), seed, from: found.from.name, capture: found.capture });
  }
  return { runs: details.numRuns, diagnosed: diagnosed(), alarms };
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
