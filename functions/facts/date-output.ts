import { commandLine, isPromptLine } from "./command.ts";
import { ZONES } from "./log-time.ts";

/** What `date` prints, in the usual forms: `Sun Nov 22 02:18:41 UTC 2026`, `2026-11-22T02:18:41+00:00`, `Sun, 22 Nov 2026 02:18:41 +0000`. */
const COMMAND = /^(?:sudo )?date(?: (?:-[uR]|--utc|-I\w{0,7}|--iso-8601\S{0,10}|--rfc-\S{1,20}))?$/;
const STATUS = /^(?:sudo )?timedatectl(?: (?:status|--no-pager))*$/;
/** `Local time: Fri 2026-11-20 09:14:05 UTC`, `Universal time: Fri 2026-11-20 09:14:05 UTC` */
const STATUS_LINE = /^(?:Local|Universal) time: [A-Z][a-z]{2} (\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2}) UTC$/;
/** kube-proxy's health check says when it was asked: `"currentTime": "2026-11-22 20:15:10.330122 +0000 UTC m=+812201.1"`. */
const HEALTH = /"currentTime": ?"(\d{4}-\d\d-\d\d) ([01]\d:[0-5]\d:[0-5]\d|2[0-3]:[0-5]\d:[0-5]\d)(?:\.\d{1,9})? \+0000 UTC/;
const TIME = /^(?:[A-Z][a-z]{2},? .{8,40}|\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}.{0,14})$/;
/** The same, as `date` alone prints it. */
const ALONE = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [A-Z]{3,4} \d{4}$/;
/** Programs that print no such line. */
const OURS = /^(?:sudo )?(?:conntrack|dmesg|ip|journalctl|kubectl|nstat|ss|sysctl|uptime)(?:\s|$)/;
/** Behind the clock, or between it and the year: `CET`, `-03`, `+01:00`. */
const ZONE = / ?([A-Z]{3,5}|[+-]\d{2}(?::?\d{2})?|Z)(?= \d{4}$|$)/;

/** True for a command whose output tells when it ran. */
export function tellsTime(command: string): boolean {
  if (!command.includes("date")) return false;
  const { argv, foreign } = commandLine(command);
  const line = argv.join(" ");
  return !foreign && (COMMAND.test(line) || STATUS.test(line));
}

/**
 * When a capture without a `startedAt` was collected, as `date`, `timedatectl` or the health check of kube-proxy among its outputs tells: the first one whose zone is known.
 *
 * @returns a time as in ISO 8601; undefined if none tells
 */
export function toldByDate(outputs: readonly { readonly command: string; readonly text: string }[]): string | undefined {
  for (const { command, text } of outputs) {
    const asked = command.includes("healthz") ? HEALTH.exec(text.slice(0, 2000)) : null;
    if (asked !== null) return new Date(`${asked[1]}T${asked[2]}Z`).toISOString();
    const [first = "", ...further] = command.split(/\s{0,8}(?:;|&&)\s{0,8}/, 20);
    const behind = OURS.test(first) && further.some((part) => tellsTime(part) && !part.includes("timedatectl"));
    if (!behind && !tellsTime(first)) continue;
    // `dmesg -T; date`: the line that is nothing else, near the end
    const printed = behind
      ? text
          .slice(-4000)
          .split("\n")
          .filter((line) => ALONE.test(line.trim()))
      : text.slice(0, 2000).split("\n");
    // `date; dmesg -T`: what stands further down is the other command's. A pasted prompt may stand before and behind the time
    const own = behind || first === command ? printed : printed.filter((line) => line.trim() !== "" && !isPromptLine(line)).slice(0, 1);
    for (const line of own) {
      const words = line.trim().replace(/\s{1,10}/g, " ");
      const time = timeOf(words, command.includes("timedatectl"));
      if (!Number.isNaN(time)) return new Date(time).toISOString();
    }
  }
  return undefined;
}

/** Milliseconds since 1970; NaN if the line is no time, or of a zone whose name is that of several (CST, IST). */
function timeOf(words: string, status: boolean): number {
  const [, day, clock] = status ? (STATUS_LINE.exec(words) ?? []) : [];
  if (day !== undefined) return Date.parse(`${day}T${clock}Z`);
  const zone = status || !TIME.test(words) ? undefined : ZONE.exec(words)?.[1];
  const east = zone === undefined ? undefined : eastOf(zone);
  return east === undefined ? Number.NaN : clockOf(words) - east * 1000;
}

/** Milliseconds since 1970 as if the clock showed UTC. */
const clockOf = (words: string): number => Date.parse(`${words.replace(ZONE, "").replace(/^(\d{4}-\d{2}-\d{2})T/, "$1 ")} UTC`);

/** Seconds east of UTC. */
function eastOf(zone: string): number | undefined {
  const [, sign, hours, minutes = "0"] = /^([+-])(\d\d):?(\d\d)?$/.exec(zone) ?? [];
  if (sign !== undefined) return (sign === "-" ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60);
  const named = /^(?:UTC|GMT|Z)$/.test(zone) ? 0 : ZONES.get(zone);
  return named === undefined ? undefined : named * 3600;
}

/** `Time zone: Europe/Berlin (CET, +0100)` */
const ZONE_LINE = /^Time zone: \S{1,60} \([\w+-]{1,8}, ([+-])(\d\d)(\d\d)\)$/;
const IN_UTC = /\s(?:-\w{0,4}u\w{0,4}|--utc|--universal)\b/;
const HALF_HOUR = 1800;
/** Seconds that a collection may take until it comes to `date`. */
const LATER = 300;

/**
 * The zone of the node's clock, as `timedatectl` names it or as `date` shows it beside the known time of the capture. Its logs have times of that zone, whatever zone the collector noted its own in.
 *
 * @returns seconds east of UTC; undefined if no output tells
 */
export function zoneTold(outputs: readonly { readonly command: string; readonly text: string }[], startedAt: string | undefined): number | undefined {
  const near = Date.parse(startedAt ?? "") / 1000;
  for (const { command, text } of outputs) {
    if (!tellsTime(command) || IN_UTC.test(command)) continue;
    for (const line of text.slice(0, 2000).split("\n")) {
      const words = line.trim().replace(/\s{1,10}/g, " ");
      const [, sign, hours, minutes] = ZONE_LINE.exec(words) ?? [];
      if (sign !== undefined) return (sign === "-" ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60);
      if (!TIME.test(words)) continue;
      const clock = clockOf(words) / 1000;
      const east = Math.round((clock - near) / HALF_HOUR) * HALF_HOUR;
      if (Math.abs(clock - near - east) <= LATER && east >= -12 * 3600 && east <= 14 * 3600) return east;
    }
  }
  return undefined;
}
