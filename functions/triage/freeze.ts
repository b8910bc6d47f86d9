/**
 * Freeze windows: times at which nothing is changed, as people write them on a wall clock. Around a change of the clocks a window lasts from the first
 * moment that may be its beginning to the last that may be its end: a doubtful hour is frozen.
 */
export interface FreezeWindow {
  /** Weekly on these days; otherwise once, and `from` and `to` are dates. */
  readonly days?: readonly Day[] | undefined;
  /** "18:00", or of a dated window "2026-12-20" (its beginning) or "2026-12-20T18:00". Belongs to the window. */
  readonly from: string;
  /** "08:00", on the next day if it is not after `from`; "24:00"; or of a dated window "2027-01-03" (its end) or "2027-01-03T08:00". No longer belongs to it. */
  readonly to: string;
  /** By its name in the IANA data base: "Europe/Berlin". */
  readonly timeZone: string;
}
export const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type Day = (typeof DAYS)[number];

/** The freeze at a moment: the window that it lies in, and when the windows have let go. */
export interface Freeze {
  readonly window: FreezeWindow;
  /** Windows that follow without a gap are counted in, 50 of them at most. */
  readonly until: Date;
}

/** The freeze at `at`, if there is one. */
export function freezeAt(windows: readonly FreezeWindow[], at: Date): Freeze | undefined {
  const first = windows.map((window) => ({ window, end: endOf(window, at.getTime()) })).find(({ end }) => end !== undefined);
  if (first?.end === undefined) return undefined;
  let until = first.end;
  for (let follower = 0; follower < MAX_FOLLOWERS; follower++) {
    const later = windows.map((window) => endOf(window, until)).find((end) => end !== undefined);
    if (later === undefined) break;
    until = later;
  }
  return { window: first.window, until: new Date(until) };
}

/** What is wrong with a window, and the key where; undefined if it is right. The time zone comes first: nothing can be said of the others without it. */
export function windowProblem({ days, from, to, timeZone }: FreezeWindow): { readonly key: keyof FreezeWindow; readonly message: string } | undefined {
  if (!isTimeZone(timeZone)) return { key: "timeZone", message: `there is no time zone "${timeZone}"; names are like "Europe/Berlin" or "UTC"` };
  if (days !== undefined) {
    if (!TIME.test(from)) return { key: "from", message: 'a weekly window has times: "18:00"' };
    if (!TIME.test(to) && to !== "24:00") return { key: "to", message: 'a weekly window has times: "08:00", or "24:00" for the end of the day' };
    if (from === to) return { key: "to", message: 'the window is empty; a whole day is from "00:00" to "24:00"' };
    return undefined;
  }
  for (const [key, text] of [
    ["from", from],
    ["to", to],
  ] as const) {
    if (TIME.test(text) || text === "24:00") return { key, message: "a time alone needs `days`; a window without days has dates" };
    if (wallOf(text, key) === undefined) return { key, message: 'a date is "2026-12-20" or "2026-12-20T18:00", and one that there is' };
  }
  if ((wallOf(from, "from") as number) >= (wallOf(to, "to") as number)) return { key: "to", message: "the window ends before it begins" };
  return undefined;
}

/** True if the weekly windows of one time zone leave no minute of the week. */
export function neverEnds(windows: readonly FreezeWindow[]): boolean {
  return [...new Set(windows.map(({ timeZone }) => timeZone))].some((zone) => {
    const frozen = new Uint8Array(7 * DAY_MINUTES);
    for (const { days = [], from, to, timeZone } of windows) {
      if (timeZone !== zone) continue;
      for (const day of days) {
        const start = DAYS.indexOf(day) * DAY_MINUTES + minutesOf(from);
        const length = minutesOf(to) - minutesOf(from) + (minutesOf(to) <= minutesOf(from) ? DAY_MINUTES : 0);
        for (let minute = start; minute < start + length; minute++) frozen[minute % frozen.length] = 1;
      }
    }
    return frozen.every((minute) => minute === 1);
  });
}

/** For people: "on fri and sat from 18:00 to 24:00, Europe/Berlin". */
export function windowWords({ days, from, to, timeZone }: FreezeWindow): string {
  const clock = `from ${from.replace("T", " ")} to ${to.replace("T", " ")}`;
  if (days === undefined) return `${clock}, ${timeZone}`;
  const on = DAYS.filter((day) => days.includes(day));
  const when = on.length === DAYS.length ? "every day" : `on ${on.join(", ").replace(/, (?=[a-z]+$)/, " and ")}`;
  return `${when} ${clock}${minutesOf(to) <= minutesOf(from) ? " of the next day" : ""}, ${timeZone}`;
}

/** A moment as the clocks of a time zone show it: "2026-12-27 08:00". */
export function wallClock(at: Date, timeZone: string): string {
  return new Date(localOf(at.getTime(), timeZone)).toISOString().slice(0, 16).replace("T", " ");
}

const TIME = /^(?:[01]\d|2[0-3]):[0-5]\d$/;
const DATE = /^(\d{4}-\d{2}-\d{2})(?:T((?:[01]\d|2[0-3]):[0-5]\d))?$/;
const MINUTE = 60_000;
const DAY_MINUTES = 24 * 60;
const DAY = DAY_MINUTES * MINUTE;
const MAX_FOLLOWERS = 50;

/** Milliseconds since 1970 at which the window that `at` lies in ends; undefined if `at` lies in none. */
function endOf({ days, from, to, timeZone }: FreezeWindow, at: number): number | undefined {
  if (days === undefined) return within(at, wallOf(from, "from") as number, wallOf(to, "to") as number, timeZone);
  const today = Math.floor(localOf(at, timeZone) / DAY) * DAY;
  const overnight = minutesOf(to) <= minutesOf(from) ? DAY : 0;
  // since yesterday, or already since tomorrow: clocks may be set back across midnight
  const ends = [-DAY, 0, DAY].map((shift) => {
    const date = today + shift;
    if (!days.includes(DAYS[(new Date(date).getUTCDay() + 6) % 7] as Day)) return undefined;
    return within(at, date + minutesOf(from) * MINUTE, date + minutesOf(to) * MINUTE + overnight, timeZone);
  });
  return ends.reduce((latest, end) => (latest === undefined || (end !== undefined && end > latest) ? end : latest), undefined);
}

/** The end of the time between two readings of a wall clock, if `at` lies in it. */
function within(at: number, from: number, to: number, timeZone: string): number | undefined {
  if (at < firstMoment(from, timeZone)) return undefined;
  const end = lastMoment(to, timeZone);
  return at < end ? end : undefined;
}

const minutesOf = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));

/** What a wall clock shows, as if it were UTC: milliseconds. A date alone is its beginning, or for `to` its end. Undefined if there is no such date. */
function wallOf(text: string, key: "from" | "to"): number | undefined {
  const [, date, time] = DATE.exec(text) ?? [];
  if (date === undefined) return undefined;
  const midnight = Date.parse(`${date}T00:00:00Z`);
  if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== date) return undefined;
  if (time === undefined) return key === "from" ? midnight : midnight + DAY;
  return midnight + minutesOf(time) * MINUTE;
}

/** The first moment at which the clocks show `wall` or later. */
function firstMoment(wall: number, timeZone: string): number {
  const { before, after, change } = offsetsAround(wall, timeZone);
  return wall - before < change ? wall - before : Math.max(change, wall - after);
}

/** The moment from which on the clocks show `wall` or later for good. */
function lastMoment(wall: number, timeZone: string): number {
  const { before, after, change } = offsetsAround(wall, timeZone);
  return wall - after > change ? wall - after : Math.min(change, wall - before);
}

/** How far the clocks are ahead of UTC a day before and a day after (no offset is as large as a day), and when that changes. */
function offsetsAround(wall: number, timeZone: string): { before: number; after: number; change: number } {
  const offset = (at: number): number => localOf(at, timeZone) - at;
  let [low, high] = [wall - DAY, wall + DAY];
  const [before, after] = [offset(low), offset(high)];
  if (before === after) return { before, after, change: high };
  // clocks change at a full minute, and `wall` is one
  while (high - low > MINUTE) {
    const middle = low + Math.floor((high - low) / 2 / MINUTE) * MINUTE;
    if (offset(middle) === before) low = middle;
    else high = middle;
  }
  return { before, after, change: high };
}

const clocks = new Map<string, Intl.DateTimeFormat>();

/** What the clocks of a time zone show at a moment, as if it were UTC. */
function localOf(at: number, timeZone: string): number {
  let clock = clocks.get(timeZone);
  if (clock === undefined) {
    const digits = { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" } as const;
    clock = new Intl.DateTimeFormat("en-US", { timeZone, calendar: "gregory", numberingSystem: "latn", hourCycle: "h23", ...digits });
    clocks.set(timeZone, clock);
  }
  const part: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
  for (const { type, value } of clock.formatToParts(at)) part[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
  return Date.UTC(year, month - 1, day, hour, minute, second) + (((at % 1000) + 1000) % 1000);
}

/** A name of the IANA data base. Offsets ("+01:00") are refused: they do not follow the clocks. */
function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    return Intl.DateTimeFormat("en-US", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}
