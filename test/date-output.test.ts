import { describe, expect, it } from "vitest";
import { captureOf } from "../functions/facts/capture.ts";
import { toldByDate } from "../functions/facts/date-output.ts";

describe("the time of a capture by its output of date", () => {
  it.each([
    ["date", "Sun Nov 22 02:18:41 UTC 2026\n", "2026-11-22T02:18:41.000Z"],
    ["date", "root@node1:~# date\nSun  8 Mar 02:43:26 GMT 2026\n", "2026-03-08T02:43:26.000Z"],
    ["date", "Fri 25 Sep 2020 04:11:09 PM UTC", "2020-09-25T16:11:09.000Z"],
    ["date -Iseconds", "2026-11-22T02:18:41+00:00", "2026-11-22T02:18:41.000Z"],
    ["date -R", "Sun, 22 Nov 2026 02:18:41 +0000", "2026-11-22T02:18:41.000Z"],
    [
      "timedatectl",
      "               Local time: Sun 2026-11-22 02:18:41 UTC\n           Universal time: Sun 2026-11-22 02:18:41 UTC\n",
      "2026-11-22T02:18:41.000Z",
    ],
    ["sudo timedatectl status", "      Local time: Sun 2026-11-22 02:18:41 UTC\n", "2026-11-22T02:18:41.000Z"],
  ])("%s: %s", (command, text, time) =>
    expect(
      toldByDate([
        { command: "uptime", text: "up 3 days" },
        { command, text },
      ]),
    ).toBe(time),
  );

  it.each([
    ["date", "Sat Nov 21 19:40:50 CET 2026"],
    ["date -R", "Sat, 21 Nov 2026 19:40:50 +0100"],
    ["date", "-bash: date: command not found"],
    ["date -d yesterday", "Sat Nov 21 02:18:41 UTC 2026"],
    ["timedatectl", "Sun Nov 22 02:18:41 UTC 2026"],
    ["timedatectl", "               Local time: Sun 2026-11-22 03:18:41 CET\n           Universal time: Sun 2026-11-22 02:18:41 UTC\n"],
  ])("tells nothing: %s: %s", (command, text) => expect(toldByDate([{ command, text }])).toBeUndefined());

  it("gives way to the time that the capture itself tells", () => {
    const index = { schema: "netcheck.capture/1" as const, target: { name: "node1" }, outputs: [{ command: "date -u", file: "date.txt" }] };
    const texts = () => ({ text: "Sun Nov 22 02:18:41 UTC 2026\n", truncated: false });
    expect(captureOf(index, texts).startedAt).toBe("2026-11-22T02:18:41.000Z");
    expect(captureOf({ ...index, startedAt: "2026-11-20T00:00:00Z" }, texts).startedAt).toBe("2026-11-20T00:00:00Z");
  });
});
