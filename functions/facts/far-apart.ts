import type { Output } from "./capture.ts";
import { sampled } from "./command.ts";
import { toldByDate } from "./date-output.ts";
import { upFor } from "./kernel-log.ts";

/** Seconds. What a counter grows by in a longer time is no sign of trouble: a rule that judges growth asks for what a healthy node does not count within seconds. */
const LONGEST = 900;

/** Times that outputs told last: by the clock, and since boot. */
interface Moment {
  readonly clock?: number;
  readonly up?: number;
}

/** Indices of outputs that are not to be taken for a second sample: by `date` or `uptime` between them they were printed long after the first (`nstat` of yesterday and of today). */
export function farApart(outputs: readonly Output[]): ReadonlySet<number> {
  const first = new Map<string, Moment>();
  const far = new Set<number>();
  let now: Moment = {};
  for (const [index, output] of outputs.entries()) {
    now = { ...now, ...toldBy(output) };
    if (output.sample === 1) first.set(sampled(output.command), now);
    else if (distance(first.get(sampled(output.command)) ?? {}, now) > LONGEST) far.add(index);
  }
  return far;
}

function toldBy(output: Output): Moment {
  const date = output.command.includes("date") ? toldByDate([output]) : undefined;
  const up = /\buptime\b/.test(output.command)
    ? output.text
        .slice(0, 2000)
        .split("\n")
        .map((line) => upFor(line.trim()))
        .find((seconds) => seconds !== undefined)
    : undefined;
  return { ...(date === undefined ? {} : { clock: Date.parse(date) / 1000 }), ...(up === undefined ? {} : { up }) };
}

/** Seconds between two moments, as far as is known. */
const distance = (one: Moment, other: Moment): number => Math.max(between(one.clock, other.clock), between(one.up, other.up));
const between = (one: number | undefined, other: number | undefined): number => (one === undefined || other === undefined ? 0 : Math.abs(other - one));
