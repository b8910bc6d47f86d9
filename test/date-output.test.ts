import { describe, expect, it } from "vitest";
import { captureOf } from "../functions/facts/capture.ts";
import { toldByDate, zoneTold } from "../functions/facts/date-output.ts";

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
    [
      "curl -s localhost:10256/healthz",
      '{"lastUpdated": "2026-11-22 02:18:40.1 +0000 UTC m=+81.1","currentTime": "2026-11-22 02:18:41.330122 +0000 UTC m=+82.3"}',
      "2026-11-22T02:18:41.000Z",
    ],
    ["sudo timedatectl status", "      Local time: Sun 2026-11-22 02:18:41 UTC\n", "2026-11-22T02:18:41.000Z"],
    ["date; dmesg -T | tail -1", "\nSun Nov 22 02:18:41 UTC 2026\n[Sun Nov 22 02:18:02 2026] eth0: NIC Link is Down\n", "2026-11-22T02:18:41.000Z"],
    [
      "journalctl -u kubelet -n 1 | grep cni; date; uptime",
      "Nov 22 01:10:11 w1 kubelet[8]: cni plugin not initialized\nSun Nov 22 02:18:41 UTC 2026\n 02:18 up 1 day\n",
      "2026-11-22T02:18:41.000Z",
    ],
    // a zone whose name is that of one alone, or that is told as a number
    ["date", "Sat Nov 21 19:40:50 CET 2026", "2026-11-21T18:40:50.000Z"],
    ["date", "Fri 25 Sep 2020 04:11:09 PM EDT", "2020-09-25T20:11:09.000Z"],
    ["date", "Mon 23 Nov 2026 02:11:10 AM +0530", "2026-11-22T20:41:10.000Z"],
    ["date -R", "Sat, 21 Nov 2026 19:40:50 +0100", "2026-11-21T18:40:50.000Z"],
    ["date --iso-8601=seconds", "2026-11-22T12:41:07-08:00", "2026-11-22T20:41:07.000Z"],
    ["date; cat /var/log/when", "Sat Nov 21 19:40:50 CET 2026\nSun Nov 22 02:18:41 UTC 2026", "2026-11-21T18:40:50.000Z"],
    ["journalctl -n 1; date", "Nov 22 01:10:11 w1 when[8]: Sun Nov 22 02:18:41 UTC 2026\nSun Nov 22 03:18:41 CET 2026", "2026-11-22T02:18:41.000Z"],
    [
      "timedatectl",
      "               Local time: Sun 2026-11-22 03:18:41 CET\n           Universal time: Sun 2026-11-22 02:18:41 UTC\n",
      "2026-11-22T02:18:41.000Z",
    ],
    ["date -u && journalctl -n 1", "root@node1:~# date -u && journalctl -n 1\nSun Nov 22 02:18:41 UTC 2026\n", "2026-11-22T02:18:41.000Z"],
  ])("%s: %s", (command, text, time) =>
    expect(
      toldByDate([
        { command: "uptime", text: "up 3 days" },
        { command, text },
      ]),
    ).toBe(time),
  );

  it.each([
    // three countries have a CST of their own
    ["date", "Mon Nov 23 04:41:09 CST 2026"],
    ["date", "Fri 25 Sep 2020 04:11:09 PM"],
    ["date", "-bash: date: command not found"],
    ["date -d yesterday", "Sat Nov 21 02:18:41 UTC 2026"],
    ["timedatectl", "Sun Nov 22 02:18:41 UTC 2026"],
    ["date +%T; cat /var/log/when", "02:18:41\nSun Nov 22 02:18:41 UTC 2026"],
    ["cat /var/log/when; date", "Sun Nov 22 02:18:41 UTC 2026"],
  ])("tells nothing: %s: %s", (command, text) => expect(toldByDate([{ command, text }])).toBeUndefined());

  it("gives way to the time that the capture itself tells", () => {
    const index = { schema: "netcheck.capture/1" as const, target: { name: "node1" }, outputs: [{ command: "date -u", file: "date.txt" }] };
    const texts = () => ({ text: "Sun Nov 22 02:18:41 UTC 2026\n", truncated: false });
    expect(captureOf(index, texts).startedAt).toBe("2026-11-22T02:18:41.000Z");
    expect(captureOf({ ...index, startedAt: "2026-11-20T00:00:00Z" }, texts).startedAt).toBe("2026-11-20T00:00:00Z");
  });
});

describe("the zone of the node's clock", () => {
  const startedAt = "2026-11-22T20:41:07Z";
  it.each([
    ["timedatectl", "               Local time: Sun 2026-11-22 21:41:08 CET\n                Time zone: Europe/Berlin (CET, +0100)\n", 3600],
    ["timedatectl status", "                Time zone: America/Sao_Paulo (-03, -0300)\n", -10_800],
    ["date", "Mon Nov 23 04:41:09 CST 2026\n", 28_800],
    ["date", "Sun Nov 22 14:41:07 CST 2026\n", -21_600],
    ["date", "Sun Nov 22 03:41:30 PM EST 2026\n", -18_000],
    ["date", "Mon 23 Nov 2026 02:11:10 AM +0530\n", 19_800],
    ["date -R", "Sun, 22 Nov 2026 21:41:07 +0100\n", 3600],
    ["date --iso-8601=seconds", "2026-11-22T12:41:07-08:00\n", -28_800],
    ["date", "Sun Nov 22 20:41:07 UTC 2026\n", 0],
  ])("%s: %s", (command, text, east) => expect(zoneTold([{ command, text }], startedAt)).toBe(east));
  it.each([
    ["date -u", "Sun Nov 22 20:41:07 UTC 2026\n"],
    ["date", "Sun Nov 22 21:55:07 CET 2026\n"],
    ["date", "Fri Nov 20 21:41:07 CET 2026\n"],
    ["kubectl exec web-0 -- date", "Sun Nov 22 21:41:07 CET 2026\n"],
  ])("is not told: %s: %s", (command, text) => expect(zoneTold([{ command, text }], startedAt)).toBeUndefined());
});
