import { describe, expect, test } from "vitest";
import { collectedText } from "../../functions/rules/compare-report.ts";

/** How old the compared facts are, in words. */
const side = (name: string, at?: string, transport = "ssm") => ({ name, transport, ...(at === undefined ? {} : { at }) });

describe("how old the facts are", () => {
  test.each([
    [
      "one day",
      [side("blue-3", "2026-03-04T09:14:05.120Z"), side("blue-1", "2026-03-04T09:14:07.900Z")],
      "Facts collected on 2026-03-04: blue-3 09:14:05, blue-1 09:14:07 (UTC).",
    ],
    [
      "over midnight: each with its day",
      [side("blue-3", "2026-03-04T23:59:58.000Z"), side("blue-1", "2026-03-05T00:00:01.000Z")],
      "Facts collected: blue-3 2026-03-04 23:59:58, blue-1 2026-03-05 00:00:01 (UTC).",
    ],
    [
      "replayed nodes",
      [side("blue-3", "2026-03-04T09:14:05.000Z", "replay"), side("blue-1", "2026-03-04T09:14:07.000Z", "replay")],
      "Facts as recorded (replayed nodes) on 2026-03-04: blue-3 09:14:05, blue-1 09:14:07 (UTC).",
    ],
    [
      "far apart: said, and what it means",
      [side("blue-3", "2026-03-04T09:00:00.000Z"), side("blue-1", "2026-03-04T12:30:00.000Z")],
      "Facts collected on 2026-03-04: blue-3 09:00:00, blue-1 12:30:00 (UTC). The oldest and the newest are 3 h apart: what changed in between is a difference, too.",
    ],
    [
      "one that does not tell",
      [side("blue-3", "2026-03-04T09:14:05.000Z"), side("paste")],
      "Facts collected on 2026-03-04: blue-3 09:14:05, paste at an unknown time (UTC).",
    ],
    ["none tells", [side("a"), side("b")], ""],
  ])("%s", (_, collected, words) => {
    expect(collectedText(collected)).toBe(words);
  });
});
