import { expect, test, vi } from "vitest";
import { deliver, emptyTally } from "./delivery.ts";

/** A short piece of what `npm run chaos -- --only delivery` does ten thousand times, so that the harness goes on working. */
test("delivery faults: 80 random runs break nothing, and a good part of them run a fix", async () => {
  // the app writes down the faults that we make
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  const tally = emptyTally();
  expect(await deliver(20_260_101, 80, tally)).toBeUndefined();
  expect(tally.runs).toBe(80);
  expect(tally.fixed).toBeGreaterThan(15);
  expect(tally.faults).toBeGreaterThan(15);
  expect(tally.taken).toBeLessThan(tally.requests);
  // six seconds on a core of its own
}, 120_000);
