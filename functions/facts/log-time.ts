/**
 * Times as logs print them, and how long ago that was.
 *
 * What a time does not say is filled in: without a zone it is UTC (netcheck's own commands print zones or seconds since boot; pasted lines often do not) or the zone of the node where the
 * capture tells it, without a year it is the year that makes it the latest time not later than a day after the collection.
 */

// 2026-11-21T03:51:28.123456+00:00   2026-11-21 03:51:28,123   2026/11/21 03:51:28   Sat 2026-11-21 03:51:28 UTC
const ISO =
  /^(?:[A-Z][a-z]{2} )?(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?: ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?))?(?: ([A-Z]{1,5}))?(?: m=[+-][\d.]{1,20})?$/;
// Sat Nov 21 03:51:28 2026   Sat Nov 21 03:51:28   Nov 21 03:51:28.123456   Nov21 03:51
const NAMED = /^(?:[A-Z][a-z]{2} {1,2})?([A-Z][a-z]{2}) {0,2}(\d{1,2}) (\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?: (\d{4}))?$/;
// klog: 1121 03:51:28.123456
const KLOG = /^(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?$/;
const UNIX = /^\d{9,10}(?:\.\d{1,9})?$/;
// klog's JSON, and viewers of logs: in milliseconds
const MILLIS = /^\d{13}(?:\.\d{1,6})?$/;
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const DAY = 86_400;
/** A pasted log whose newest line is older than this was pasted long after it was read: then nobody knows how old its lines were. */
const PASTED_LATER = 30 * DAY;
/** The same where the times have a year: threads are read years later, and the kernel of a quiet machine says nothing for months. */
const DATED_LATER = 200 * DAY;

/** Hours east of UTC, of the names that mean one zone only: CST and IST are each those of three countries. */
export const ZONES: ReadonlyMap<string, number> = new Map(
  "WET+0 WEST+1 BST+1 CET+1 CEST+2 EET+2 EEST+3 MSK+3 WAT+1 CAT+2 SAST+2 EAT+3 PKT+5 WIB+7 HKT+8 AWST+8 JST+9 KST+9 AEST+10 AEDT+11 NZST+12 NZDT+13 AST-4 ADT-3 EST-5 EDT-4 CDT-5 MST-7 MDT-6 PST-8 PDT-7 AKST-9 AKDT-8 HST-10"
    .split(" ")
    .map((zone) => [zone.replace(/[+-].*/, ""), Number(zone.replace(/^[A-Z]+/, ""))]),
);

/**
 * Seconds since 1970 of a time as printed; undefined if it is none, or if it has no year and `near` (seconds since 1970) is not known. Never throws.
 * @param zone seconds east of UTC of a time that names no zone
 */
export function epochOf(time: string, near: number | undefined, zone = 0): number | undefined {
  if (UNIX.test(time)) return Number(time);
  if (MILLIS.test(time)) return Number(time) / 1000;
  const iso = ISO.exec(time);
  if (iso !== null) {
    const [, year, month, day, hour, minute, second, fraction, offset, name] = iso;
    const east = offset !== undefined ? offsetOf(offset) : name === undefined ? zone : (ZONES.get(name) ?? 0) * 3600;
    return utc(Number(year), Number(month), day, hour, minute, second, fraction, east);
  }
  const named = NAMED.exec(time);
  if (named !== null) {
    const [, name, day, hour, minute, second, fraction, year] = named;
    const month = MONTHS.indexOf(name as string) + 1;
    if (month === 0) return undefined;
    return latest(year, near, (of) => utc(of, month, day, hour, minute, second, fraction, zone));
  }
  const klog = KLOG.exec(time);
  if (klog === null) return undefined;
  const [, month, day, hour, minute, second, fraction] = klog;
  return latest(undefined, near, (of) => utc(of, Number(month), day, hour, minute, second, fraction, zone));
}

function latest(year: string | undefined, near: number | undefined, at: (year: number) => number | undefined): number | undefined {
  if (year !== undefined) return at(Number(year));
  if (near === undefined) return undefined;
  const now = new Date(near * 1000).getUTCFullYear();
  const seconds = at(now);
  return seconds !== undefined && seconds > near + DAY ? at(now - 1) : seconds;
}

/** Seconds east of UTC. */
function offsetOf(zone: string): number {
  if (!/^[+-]/.test(zone)) return 0;
  const digits = zone.replace(":", "");
  return (digits.startsWith("-") ? -1 : 1) * (Number(digits.slice(1, 3)) * 3600 + Number(digits.slice(3, 5)) * 60);
}

/** Undefined for what is no time of any day (month 13, hour 25). */
function utc(year: number, month: number, ...rest: [...(string | undefined)[], number]): number | undefined {
  const offset = rest.at(-1) as number;
  const [day, hour, minute, second = "0", fraction = "0"] = rest.slice(0, -1) as (string | undefined)[];
  const inside = month >= 1 && month <= 12 && Number(day) >= 1 && Number(day) <= 31 && Number(hour) <= 23 && Number(minute) <= 59 && Number(second) <= 60;
  if (!inside || year < 1970) return undefined;
  return Date.UTC(year, month - 1, Number(day), Number(hour), Number(minute), Number(second)) / 1000 + Number(`0.${fraction}`) - offset;
}

/** Where nobody knows when a log was read, a line counts as old only if the log itself goes on this long after it. */
const AN_HOUR = 3600;
/** Times without a year that are further apart have a turn of the year between them. */
const HALF_A_YEAR = 182 * DAY;
/** Any moment will do to compare times without a year with each other (those with one are not compared with them); this year has a 29 February. */
export const SOME_YEAR_END = Date.UTC(2024, 11, 31, 23, 59, 59) / 1000;

/**
 * Gives rows that have a time and no age their age: seconds between the time and `startedAt`, to the millisecond; a result below zero counts as 0,
 * and where the newest is below zero, the others count from it.
 * Without `startedAt`, or where a person pasted (`live` is false) a log that ends more than 30 days before it (200 where the times have a year), nobody knows: then only lines after which the
 * log itself goes on for an hour or more get an age, which is how long it does (the true one is greater).
 * @param zone seconds east of UTC of the times that name no zone
 */
export function withAges<R extends { time?: string | undefined; age?: number | undefined }>(
  rows: readonly R[],
  startedAt: number | undefined,
  live: boolean,
  zone = 0,
): readonly R[] {
  if (startedAt === undefined) return withLeastAges(rows);
  let newest = Number.POSITIVE_INFINITY;
  let limit = PASTED_LATER;
  // a line of the future shows that the offset is the collector's and not the node's
  const east = zone !== 0 && rows.some(({ time }) => time !== undefined && (epochOf(time, startedAt, zone) ?? 0) > startedAt + 120) ? 0 : zone;
  const times = rows.map((row) => (row.time === undefined || row.age !== undefined ? undefined : epochOf(row.time, startedAt, east)));
  // one of a zone ahead, which nothing tells: its newest line was written at the collection, or before
  const last = times.reduce<number>((most, time) => Math.max(most, time ?? 0), 0);
  const read = last > startedAt + 120 ? last : startedAt;
  const aged = rows.map((row, i) => {
    const seconds = times[i];
    if (seconds === undefined) return row;
    const age = Math.max(0, rounded(read - seconds));
    if (age < newest) {
      newest = age;
      limit = epochOf(row.time as string, undefined) === undefined ? PASTED_LATER : DATED_LATER;
    }
    return { ...row, age };
  });
  return newest > limit && newest !== Number.POSITIVE_INFINITY && !live ? withLeastAges(rows) : aged;
}

/** The ages that follow from the log alone; times with and without a year are not compared with each other. */
function withLeastAges<R extends { time?: string | undefined; age?: number | undefined }>(rows: readonly R[]): readonly R[] {
  const newest = { dated: Number.NEGATIVE_INFINITY, undated: Number.NEGATIVE_INFINITY };
  const places = rows.map((row) => {
    if (row.time === undefined || row.age !== undefined) return undefined;
    const dated = epochOf(row.time, undefined);
    const seconds = dated ?? epochOf(row.time, SOME_YEAR_END);
    if (seconds === undefined) return undefined;
    const kind = dated === undefined ? "undated" : "dated";
    newest[kind] = Math.max(newest[kind], seconds);
    return { kind, seconds } as const;
  });
  return rows.map((row, i) => {
    const place = places[i];
    const age = place === undefined ? undefined : leastAge(place.seconds, newest[place.kind]);
    return age === undefined || (place?.kind === "undated" && age > HALF_A_YEAR) ? row : { ...row, age };
  });
}

/** How long a log goes on after one of its lines, if that is an hour or more: then the line is at least that old. */
export function leastAge(seconds: number, newest: number): number | undefined {
  const age = rounded(newest - seconds);
  return age >= AN_HOUR ? age : undefined;
}

/** To the millisecond. */
const rounded = (seconds: number): number => Math.round(seconds * 1000) / 1000;

const EARLIER_BOOT = / (?:-[a-z]{0,4}b ?|--boot[ =])-[1-9]/;
/** True for `journalctl -b -1`: what an earlier boot complained of ended with it; tables were emptied, limits were read again, agents began anew. */
export const ofEarlierBoot = (argv: readonly string[]): boolean => EARLIER_BOOT.test(argv.join(" "));

/**
 * When a log that shows its newest line first (`tac`, a store of logs) was read, by that line: only so the order of its lines can be told where nobody noted the time. Undefined for
 * a log in any other order.
 */
export function newestFirst(rows: readonly { time?: string | undefined }[]): number | undefined {
  const times = rows.flatMap(({ time }) => (time === undefined ? [] : (epochOf(time, SOME_YEAR_END) ?? [])));
  const falling = times.every((time, i) => i === 0 || time <= (times[i - 1] as number));
  return falling && times.length > 1 && (times[0] as number) > (times.at(-1) as number) ? times[0] : undefined;
}
