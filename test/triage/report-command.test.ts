import { afterEach, beforeEach, expect, test } from "vitest";
import { verifyStore } from "../../functions/store/verify.ts";
import { draft, incident } from "../store/drafts.ts";
import { ALICE, Bench, BOB, CHANNEL } from "./harness.ts";

/** `/netcheck report INC`, on the embedded engine. */

let bench: Bench;
beforeEach(async () => {
  bench = new Bench();
  const thread = { channel: CHANNEL, ts: "1.000" };
  await bench.store.open(incident("inc-0123456789ab", { target: "node2", thread }), draft("incident-opened"));
  await bench.store.record("inc-0123456789ab", [draft("collected/collect"), draft("diagnosed")]);
  await bench.store.open(incident("inc-0123456789ff", { thread: { channel: "C_SECRET", ts: "9.000" } }), draft("incident-opened"));
});
afterEach(async () => {
  expect(await verifyStore(bench.store)).toEqual([]);
  await bench.close();
});

async function report(about: string, channel = CHANNEL, run = "inc-run1"): Promise<unknown> {
  bench.engine.execute(run, { kind: "report", request: { incident: run, about, requester: BOB, place: { channel } } });
  await bench.pass(60);
  return bench.outcome(run);
}

test("both files go into the incident's thread, and who asked is on record", async () => {
  expect(await report("inc-0123456789ab")).toBe("reported");
  expect([...bench.chat.uploads.keys()]).toEqual(["inc-run1/report.md", "inc-run1/report.html"]);
  expect(bench.chat.uploads.get("inc-run1/report.md")).toContain("3 events, chain whole");
  expect(bench.chat.uploads.get("inc-run1/report.html")).toContain("<h2>Timeline</h2>");
  expect((await bench.events("reported")).map(({ incident: of, actor, data }) => [of, actor.id, data["events"], data["whole"]])).toEqual([
    ["inc-0123456789ab", BOB.id, 3, true],
  ]);
  expect(bench.chat.whispered(BOB)[0]).toContain("is in its thread");
  // another request is another file, with the first one in it
  expect(await report("inc-0123456789ab", CHANNEL, "inc-run2")).toBe("reported");
  expect(bench.chat.uploads.get("inc-run2/report.md")).toContain("asked for this report");
});

test("cut off in the middle and repeated, the files come once", async () => {
  let failures = 2;
  bench.chat.trouble = (call, what) => {
    if (call === "upload" && what.endsWith(".html") && failures-- > 0) throw Object.assign(new Error("slack: HTTP 500"), { retryable: true });
  };
  expect(await report("inc-0123456789ab")).toBe("reported");
  expect(bench.chat.uploads.size).toBe(2);
  expect(await bench.events("reported")).toHaveLength(1);
});

test("from another channel, an incident that is there and one that is not get the same answer: nobody learns of a private channel", async () => {
  expect(await report("inc-0123456789ab", "C_OTHER", "inc-run1")).toBe("unknown");
  expect(await report("inc-ffffffffffff", "C_OTHER", "inc-run2")).toBe("unknown");
  const [there, not] = bench.chat.whispered(BOB).map((text) => text.replaceAll(/inc-\w+/g, "INC"));
  expect(there).toBe(not);
  expect(there).toContain("There is no incident INC in this channel. A report is given only in the channel of its incident");
  expect(bench.chat.uploads.size).toBe(0);
  expect(await bench.events("reported")).toEqual([]);
});

test("a mistyped id: the nearest of this channel, never of another", async () => {
  await report("inc-0123456789aa");
  expect(bench.chat.whispered(BOB)[0]).toContain("Did you mean inc-0123456789ab?");
  expect(bench.chat.whispered(BOB)[0]).not.toContain("ff");
  expect(bench.chat.whispered(ALICE)).toEqual([]);
});

test("where it cannot be made, who asked is told why", async () => {
  bench.chat.trouble = (call) => {
    if (call === "upload") throw new Error("slack: could not upload a file: no_permission");
  };
  expect(await report("inc-0123456789ab")).toBe("failed");
  expect(bench.chat.whispered(BOB)[0]).toContain("The report on inc-0123456789ab could not be made: slack: could not upload a file: no");
});
