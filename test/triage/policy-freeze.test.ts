import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DAYS, type Day, type FreezeWindow, freezeAt, neverEnds, wallClock, windowProblem, windowWords } from "../../functions/triage/freeze.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const until = (windows: readonly FreezeWindow[], at: string): string | undefined => freezeAt(windows, new Date(at))?.until.toISOString().slice(0, 16);
const weekly = (days: readonly Day[], from: string, to: string, timeZone: string): FreezeWindow => ({ days, from, to, timeZone });

describe("is it frozen at a moment, and until when", () => {
  const friday = weekly(["fri"], "18:00", "08:00", "Europe/Berlin");
  test.each<[string, readonly FreezeWindow[], string, string | undefined]>([
    ["before it", [friday], "2026-12-04T16:59:59Z", undefined],
    ["its first moment belongs to it", [friday], "2026-12-04T17:00:00Z", "2026-12-05T07:00"],
    ["after midnight", [friday], "2026-12-05T06:59:59Z", "2026-12-05T07:00"],
    ["its last moment does not", [friday], "2026-12-05T07:00:00Z", undefined],
    ["the night to another day", [friday], "2026-12-04T05:00:00Z", undefined],
    ["an hour earlier in UTC in summer", [friday], "2026-07-03T16:00:00Z", "2026-07-04T06:00"],
    ["the other zone counts", [weekly(["fri"], "18:00", "20:00", "America/New_York")], "2026-12-04T17:00:00Z", undefined],
    ["a date from its beginning", [{ from: "2026-12-20", to: "2027-01-03", timeZone: "Europe/Berlin" }], "2026-12-19T23:00:00Z", "2027-01-03T23:00"],
    ["… to its end", [{ from: "2026-12-20", to: "2027-01-03", timeZone: "Europe/Berlin" }], "2027-01-03T23:00:00Z", undefined],
    ["a date with a time", [{ from: "2026-12-20T12:00", to: "2026-12-20T12:30", timeZone: "Asia/Kolkata" }], "2026-12-20T06:45:00Z", "2026-12-20T07:00"],
    // Sunday 29 March 2026, 02:00 → 03:00 in Berlin: 01:00Z
    ["from a time that does not come", [weekly(["sun"], "02:30", "05:00", "Europe/Berlin")], "2026-03-29T01:00:00Z", "2026-03-29T03:00"],
    ["… not before the clocks change", [weekly(["sun"], "02:30", "05:00", "Europe/Berlin")], "2026-03-29T00:59:59Z", undefined],
    ["within an hour that does not come", [weekly(["sun"], "02:10", "02:50", "Europe/Berlin")], "2026-03-29T01:00:00Z", undefined],
    // Sunday 25 October 2026, 03:00 → 02:00 in Berlin: 01:00Z; 02:30 is 00:30Z and 01:30Z
    ["from the first of two 02:30", [weekly(["sun"], "02:30", "05:00", "Europe/Berlin")], "2026-10-25T00:30:00Z", "2026-10-25T04:00"],
    ["to the second of two 02:30", [weekly(["sun"], "01:00", "02:30", "Europe/Berlin")], "2026-10-25T00:45:00Z", "2026-10-25T01:30"],
    ["half an hour of summer time", [weekly(["sun"], "01:45", "02:15", "Australia/Lord_Howe")], "2026-04-04T14:59:00Z", "2026-04-04T15:45"],
    ["a date that a country left out", [{ from: "2011-12-30T09:00", to: "2011-12-30T17:00", timeZone: "Pacific/Apia" }], "2011-12-30T10:00:00Z", undefined],
    [
      "windows without a gap are one freeze",
      [weekly(["fri"], "18:00", "24:00", "UTC"), weekly(["sat", "sun"], "00:00", "24:00", "UTC"), weekly(["mon"], "00:00", "08:00", "UTC")],
      "2026-12-04T19:00:00Z",
      "2026-12-07T08:00",
    ],
    [
      "… also where a day follows itself",
      [weekly(["mon", "tue", "wed"], "12:00", "12:00", "UTC")].map((one) => ({ ...one, from: "12:00", to: "11:59" })),
      "2026-12-07T12:00:00Z",
      "2026-12-08T11:59",
    ],
    [
      "windows of two time zones",
      [weekly(["fri"], "10:00", "11:00", "Europe/Berlin"), weekly(["fri"], "10:00", "12:00", "UTC")],
      "2026-12-04T09:30:00Z",
      "2026-12-04T12:00",
    ],
  ])("%s", (_, windows, at, expected) => {
    for (const window of windows) expect(windowProblem(window)).toBeUndefined();
    expect(until(windows, at)).toBe(expected);
  });

  test("no windows, no freeze; a freeze that is as good as endless ends the search", () => {
    expect(freezeAt([], new Date(0))).toBeUndefined();
    const all = weekly(DAYS, "00:00", "24:00", "UTC");
    expect(neverEnds([all])).toBe(true);
    expect(freezeAt([all], new Date(0))?.until.toISOString()).toBe("1970-02-21T00:00:00.000Z");
  });

  test("in words", () => {
    expect(windowWords(weekly(["sat", "fri"], "18:00", "08:00", "Europe/Berlin"))).toBe("on fri and sat from 18:00 to 08:00 of the next day, Europe/Berlin");
    expect(windowWords(weekly(DAYS, "01:00", "02:00", "UTC"))).toBe("every day from 01:00 to 02:00, UTC");
    expect(windowWords({ from: "2026-12-20T18:00", to: "2027-01-03", timeZone: "UTC" })).toBe("from 2026-12-20 18:00 to 2027-01-03, UTC");
    expect(wallClock(new Date("2026-12-24T17:00:00Z"), "Asia/Kolkata")).toBe("2026-12-24 22:30");
  });
});

/** Where the clocks change, with a moment near it: spring and autumn, an hour, half an hour, at midnight, and a whole day. */
const CHANGES: readonly (readonly [zone: string, near: string])[] = [
  ["Europe/Berlin", "2026-03-29T01:00Z"],
  ["Europe/Berlin", "2026-10-25T01:00Z"],
  ["America/New_York", "2026-03-08T07:00Z"],
  ["America/New_York", "2026-11-01T06:00Z"],
  ["Australia/Lord_Howe", "2026-04-04T15:00Z"],
  ["Australia/Lord_Howe", "2026-10-03T15:30Z"],
  ["America/Santiago", "2026-09-06T04:00Z"],
  ["America/Santiago", "2026-04-05T03:00Z"],
  ["Pacific/Apia", "2011-12-30T10:00Z"],
  ["Asia/Kolkata", "2026-06-01T00:00Z"],
];

/** What the clocks show in every minute of eight days, by another way than the code's: the locale's own text. */
function minutesAround(zone: string, near: string): { readonly first: number; readonly shown: readonly string[] } {
  const first = Date.parse(near) - 96 * HOUR;
  const clock = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "short" });
  return { first, shown: Array.from({ length: 192 * 60 }, (_, n) => clock.format(first + n * MINUTE)) };
}
const timelines = CHANGES.map(([zone, near]) => ({ zone, ...minutesAround(zone, near) }));

/** First minute that shows `wall` or later, and the minute after the last that shows earlier. */
function span(shown: readonly string[], from: string, to: string): [start: number, end: number] {
  const start = shown.findIndex((text) => text >= from);
  return [start === -1 ? shown.length : start, shown.findLastIndex((text) => text < to) + 1];
}
const dateAfter = (date: string, days: number): string => new Date(Date.parse(`${date}T00:00Z`) + days * 24 * HOUR).toISOString().slice(0, 10);
const atTime = (date: string, time: string): string => (time === "24:00" ? `${dateAfter(date, 1)} 00:00` : `${date} ${time}`);

function frozenMinutes({ first, shown, zone }: (typeof timelines)[number], windows: readonly FreezeWindow[]): Uint8Array {
  const frozen = new Uint8Array(shown.length);
  const firstDate = new Date(first).toISOString().slice(0, 10);
  for (const { days, from, to, timeZone } of windows) {
    expect(timeZone).toBe(zone);
    if (days === undefined) frozen.fill(1, ...span(shown, from.replace("T", " "), to.replace("T", " ")));
    else
      for (let day = -2; day < 10; day++) {
        const date = dateAfter(firstDate, day);
        if (!days.includes(DAYS[(new Date(`${date}T12:00Z`).getUTCDay() + 6) % 7] as Day)) continue;
        const [start, end] = span(shown, atTime(date, from), atTime(to <= from ? dateAfter(date, 1) : date, to));
        if (start < end) frozen.fill(1, start, end);
      }
  }
  return frozen;
}

test("minute by minute over changes of the clocks, as a reading of the clocks says", () => {
  const time = fc.integer({ min: 0, max: 24 * 60 - 1 }).map((n) => `${String(Math.floor(n / 60)).padStart(2, "0")}:${String(n % 60).padStart(2, "0")}`);
  // most windows begin or end in the night: there the clocks change
  const night = fc.constantFrom("00:00", "00:30", "01:30", "01:45", "02:00", "02:15", "02:30", "03:00", "23:30");
  const often = fc.oneof({ arbitrary: night, weight: 3 }, { arbitrary: time, weight: 1 });
  const window = fc.record({ days: fc.uniqueArray(fc.constantFrom(...DAYS), { minLength: 1 }), from: often, to: fc.oneof(often, fc.constant("24:00")) });
  fc.assert(
    fc.property(fc.nat(), fc.array(window, { minLength: 1, maxLength: 3 }), fc.nat(), fc.nat(), (which, drawn, shift, length) => {
      const timeline = timelines[which % timelines.length] as (typeof timelines)[number];
      const { zone, first, shown } = timeline;
      const windows: FreezeWindow[] = drawn.filter(({ from, to }) => from !== to).map((one) => ({ ...one, timeZone: zone }));
      // and a dated one across the middle of the time line
      const [from, to] = [shown[3600 + (shift % 2160)] ?? "", shown[5761 + (length % 2160)] ?? ""];
      const dated = { from: from.replace(" ", "T"), to: to.replace(" ", "T"), timeZone: zone };
      if (windows.length === 0 || shift % 4 === 0) windows.push(dated);
      for (const one of windows) expect(windowProblem(one)).toBeUndefined();
      const frozen = frozenMinutes(timeline, windows);
      // two days at each end are left out: windows from beyond the time line reach into it. Every 211th minute, and each where something changes
      for (let n = 48 * 60; n < frozen.length - 48 * 60; n++) {
        if (n % 211 !== 0 && frozen[n] === frozen[n - 1] && frozen[n] === frozen[n + 1]) continue;
        const freeze = freezeAt(windows, new Date(first + n * MINUTE));
        expect(freeze !== undefined, `${zone} ${shown[n]} ${JSON.stringify(windows)}`).toBe(frozen[n] === 1);
        const thaw = frozen.indexOf(0, n);
        if (freeze !== undefined && thaw !== -1) expect(freeze.until.getTime(), `${zone} ${shown[n]} ${JSON.stringify(windows)}`).toBe(first + thaw * MINUTE);
      }
    }),
    { seed: 1, numRuns: 40 },
  );
});
