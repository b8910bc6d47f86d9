import { commandLine } from "./command.ts";

/** What `date` prints where the node's clock shows UTC, in the usual forms: `Sun Nov 22 02:18:41 UTC 2026`, `2026-11-22T02:18:41+00:00`, `Sun, 22 Nov 2026 02:18:41 +0000`. */
const COMMAND = /^(?:sudo )?date(?: (?:-[uR]|--utc|-I\w{0,7}|--iso-8601\S{0,10}|--rfc-\S{1,20}))?$/;
const STATUS = /^(?:sudo )?timedatectl(?: (?:status|--no-pager))*$/;
/** `Local time: Fri 2026-11-20 09:14:05 UTC` */
const LOCAL = /^Local time: [A-Z][a-z]{2} (\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2}) UTC$/;
const TIME = /^(?:[A-Z][a-z]{2},? .{8,40}|\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}.{0,14})$/;
/** Of another zone its name does not tell the offset, and the times in the logs beside it have none. */
const UTC = /\b(?:UTC|GMT)\b|\+00:?00$|Z$/;

/** True for a command whose output tells when it ran. */
export function tellsTime(command: string): boolean {
  if (!command.includes("date")) return false;
  const { argv, foreign } = commandLine(command);
  const line = argv.join(" ");
  return !foreign && (COMMAND.test(line) || STATUS.test(line));
}

/**
 * When a capture without a `startedAt` was collected, as `date` or `timedatectl` among its outputs tells: the first one that shows UTC.
 *
 * @returns a time as in ISO 8601; undefined if none tells
 */
export function toldByDate(outputs: readonly { readonly command: string; readonly text: string }[]): string | undefined {
  for (const { command, text } of outputs) {
    if (!tellsTime(command)) continue;
    // a pasted prompt may stand before and behind it
    for (const line of text.slice(0, 2000).split("\n")) {
      const words = line.trim().replace(/\s{1,10}/g, " ");
      const time = timeOf(words, command.includes("timedatectl"));
      if (!Number.isNaN(time)) return new Date(time).toISOString();
    }
  }
  return undefined;
}

/** Milliseconds since 1970; NaN if the line is no time in UTC. */
function timeOf(words: string, status: boolean): number {
  const [, day, clock] = status ? (LOCAL.exec(words) ?? []) : [];
  if (day !== undefined) return Date.parse(`${day}T${clock}Z`);
  return !status && TIME.test(words) && UTC.test(words) ? Date.parse(words) : Number.NaN;
}
