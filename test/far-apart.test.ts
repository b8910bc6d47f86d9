import { expect, it } from "vitest";
import { captureOf } from "../functions/facts/capture.ts";
import { farApart } from "../functions/facts/far-apart.ts";

/** The second samples among these outputs that were printed long after the first. */
function farOf(...outputs: readonly (readonly [command: string, text: string])[]): number[] {
  const index = { schema: "netcheck.capture/1" as const, target: { name: "node1" }, outputs: outputs.map(([command], i) => ({ command, file: String(i) })) };
  return [...farApart(captureOf(index, (file) => ({ text: outputs[Number(file)]?.[1] ?? "", truncated: false })).outputs)];
}

it("takes what date tells to be of another day for no second sample", () => {
  expect(farOf(["date", "Sun Nov 22 05:40:01 UTC 2026"], ["nstat -az", "a"], ["date", "Mon Nov 23 05:40:01 UTC 2026"], ["nstat -az", "b"])).toEqual([2, 3]);
});

it("knows the time since boot", () => {
  const up = (time: string): [string, string] => ["uptime", ` 01:00:02 up 40 days,  ${time},  1 user,  load average: 0.10, 0.11, 0.09`];
  expect(farOf(up("2:10"), ["nstat -az", "a"], up("6:51"), ["nstat -az", "b"])).toEqual([2, 3]);
  expect(farOf(up("2:10"), ["nstat -az", "a"], up("2:11"), ["nstat -az", "b"])).toEqual([]);
});

it("compares samples of one collection, and such of which nobody knows when they were taken", () => {
  expect(farOf(["date", "Mon Nov 23 05:40:01 UTC 2026"], ["nstat -az", "a"], ["date", "Mon Nov 23 05:40:11 UTC 2026"], ["nstat -az", "b"])).toEqual([]);
  expect(farOf(["nstat -az", "a"], ["date", "Mon Nov 23 05:40:11 UTC 2026"], ["nstat -az", "b"])).toEqual([]);
});
