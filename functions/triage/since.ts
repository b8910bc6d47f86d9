import type { Capture, Output } from "../facts/capture.ts";
import { readFacts } from "../facts/read.ts";

/** The facts whose rows are lines of logs, with their ages. */
const LOGS: ReadonlySet<string> = new Set(["kernel-log", "agent-log"]);

/** What a log fact says of one message. */
interface Message {
  readonly line: number;
  readonly output?: number;
  readonly age?: number;
  readonly time?: string;
  readonly seconds?: number;
}

/**
 * A capture as if its logs began when the fix was done: what a log said before that is no word on the node as it is now. Lines are emptied, not taken out, so
 * that the numbers of all others stay. A line is older than the fix if a collection from right before the fix has it already, word for word, or if its time
 * says so. The first holds whatever the node's clock says; the second is for the seconds in between, and goes by that clock.
 * @param fixed when the fix was done, in milliseconds since 1970
 * @param settle seconds between fix and collection at least: for captures that are older than the fix (recordings)
 * @param before a collection from right before the fix
 */
export function sinceFix(capture: Capture, fixed: number, settle: number, before: Capture | undefined): Capture {
  const known = new Map<string, Set<string>>();
  for (const { command, text } of before?.outputs ?? []) {
    const lines = known.get(command) ?? new Set();
    for (const line of text.split("\n")) lines.add(line);
    known.set(command, lines);
  }
  const old = new Map<number, Set<number>>();
  for (const [index, messages] of messagesOf(capture)) {
    const output = capture.outputs[index];
    if (output === undefined) continue;
    const lines = output.text.split("\n");
    const since = secondsSince(capture, output, fixed, settle);
    messages.forEach(({ line, age, time, seconds }, at) => {
      // without a time in it, the same words may have been said again
      const timed = age !== undefined || time !== undefined || seconds !== undefined;
      const seen = timed && known.get(output.command)?.has(lines[line - 1] ?? "") === true;
      if (!seen && (age === undefined || age <= since)) return;
      // with the lines that it goes on over
      const end = messages[at + 1]?.line ?? lines.length + 1;
      const gone = old.get(index) ?? new Set();
      for (let number = line; number < end; number += 1) gone.add(number);
      old.set(index, gone);
    });
  }
  if (old.size === 0) return capture;
  return { ...capture, outputs: capture.outputs.map((output, index) => ({ ...output, text: without(output.text, old.get(index)) })) };
}

/** The messages of each output that is a log, in the order of its lines. */
function messagesOf(capture: Capture): ReadonlyMap<number, readonly Message[]> {
  const found = new Map<number, Message[]>();
  for (const { value } of readFacts(capture, LOGS).readings.values()) {
    for (const row of (value as { rows?: readonly Message[] } | undefined)?.rows ?? []) {
      if (row.output === undefined) continue;
      const messages = found.get(row.output) ?? [];
      messages.push(row);
      found.set(row.output, messages);
    }
  }
  for (const messages of found.values()) messages.sort((a, b) => a.line - b.line);
  return found;
}

/** Seconds between the fix and the moment that the ages of an output's lines count back from. */
function secondsSince({ startedAt }: Capture, { startMs = 0 }: Output, fixed: number, settle: number): number {
  const started = startedAt === undefined ? Number.NaN : Date.parse(startedAt) + startMs;
  return Number.isNaN(started) ? settle : Math.max(settle, (started - fixed) / 1000);
}

const without = (text: string, gone: ReadonlySet<number> | undefined): string =>
  gone === undefined
    ? text
    : text
        .split("\n")
        .map((line, at) => (gone.has(at + 1) ? "" : line))
        .join("\n");
