import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isDue, localTime } from "../../functions/triage/digest.ts";
import { ALICE, Bench, configOf } from "./harness.ts";
import { fixed } from "./runbooks.ts";

/** What is open, once a day and channel. */

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
  bench.config = {
    ...configOf([{ id: "sre", effect: "allow", approvers: ["S_SRE", ALICE.id], expires: "2d" }]),
    digest: { hour: 9, timeZone: "Europe/Berlin" },
  };
});
afterEach(async () => bench.close());

let ticks = 0;
/** The schedule asks, as EventBridge does: without a name of its own. Returns what came of it, and the day's. */
async function tick(): Promise<[unknown, unknown]> {
  ticks += 1;
  bench.engine.execute(`tick-${ticks}`, { kind: "digest", digest: {} });
  await bench.pass(5);
  return [bench.outcome(`tick-${ticks}`), bench.outcome(`digest-${localTime(new Date(bench.clock.now()), "Europe/Berlin").day}`)];
}
/** Moves to the next time that it is this hour in Berlin. */
async function until(hour: number): Promise<void> {
  await bench.pass(60);
  while (localTime(new Date(bench.clock.now()), "Europe/Berlin").hour !== hour) await bench.pass(600);
}
const digests = (): string[] => [...bench.chat.posts.keys()].filter((key) => key.startsWith("digest/"));
const drawn = (): string => bench.chat.drawn(digests().at(-1) ?? "");

describe("the daily digest", () => {
  test("comes at its hour in its time zone, once a day, however often it is asked", async () => {
    await bench.ask();
    await until(8);
    expect((await tick())[0]).toBe("not-now");
    await until(9);
    expect(await tick()).toEqual(["started", "told"]);
    expect(await tick()).toEqual(["started", "told"]);
    expect(digests()).toHaveLength(1);
    await until(10);
    await until(9);
    expect(await tick()).toEqual(["started", "told"]);
    expect(digests()).toHaveLength(2);
  });

  test("lists what waits for approval with its thread and when that expires; what is done is not there", async () => {
    await bench.ask();
    bench.node.capture = () => fixed;
    await bench.ask("node3", "inc-2");
    await until(9);
    await tick();
    expect(drawn()).toContain("Open in this channel: 1 incident");
    expect(drawn()).toMatch(/`node2` a fix is waiting for approval: \*.+\*/);
    expect(drawn()).toMatch(/the approval expires <!date\^\d+\^/);
    expect(drawn()).toMatch(/<https:\/\/[^|]+\|thread>/);
    expect(drawn()).not.toContain("node3");
    expect(bench.chat.posts.get(digests()[0] ?? "")?.place).toEqual({ channel: bench.chat.posts.get("inc-1/root")?.place.channel });
  });

  test("an approval by break-glass that nobody reviewed is there, though the incident is resolved", async () => {
    bench.node.capture = () => fixed;
    await bench.ask();
    await bench.store.update("inc-1", { state: "resolved", review: "pending" }, []);
    await until(9);
    await tick();
    expect(drawn()).toContain("approved by breaking the glass, not reviewed yet");
  });

  test("nothing open, and no digest wanted: nobody is told anything", async () => {
    bench.node.capture = () => fixed;
    await bench.ask();
    await until(9);
    expect(await tick()).toEqual(["started", "nothing-open"]);
    bench.config = configOf();
    expect((await tick())[0]).toBe("off");
    expect(digests()).toEqual([]);
  });

  test("of many only some are listed, those that wait first; a channel that takes no message keeps no other from its own", async () => {
    const at = new Date(bench.clock.now()).toISOString();
    for (let number = 1; number <= 20; number++) {
      const id = `inc-many-${number}`;
      const about = { id, target: `n${number}`, cluster: "lab", requester: ALICE, createdAt: at, state: "unresolved" } as const;
      await bench.store.open(
        { ...about, thread: { channel: number <= 18 ? "C_MANY" : "C_GONE", ts: `${number}.1` } },
        { key: "incident-opened", at, actor: ALICE, type: "incident-opened", data: {} },
      );
      await bench.store.change("open", `${at}/${id}`, () => ({ ...about, incident: id }));
    }
    await bench.store.update("inc-many-18", { state: "awaiting-approval" }, []);
    bench.chat.trouble = (_, what) => {
      if (what.endsWith("/C_GONE")) throw new Error("slack: could not post in C_GONE: is_archived");
    };
    await until(9);
    expect(await tick()).toEqual(["started", "told"]);
    expect(digests().map((key) => key.split("/").at(-1))).toEqual(["C_MANY"]);
    expect(drawn()).toContain("Open in this channel: 18 incidents");
    expect(drawn()).toContain("3 more are not listed here");
    const shown = [...drawn().matchAll(/`(n\d+)`/g)].map(([, name]) => name);
    expect([shown[0], new Set(shown).size]).toEqual(["n18", 15]);
    expect(bench.logged.join("\n")).toContain("C_GONE");
  });
});

test("an hour that a change of the clocks leaves out is the one after it; no other day", () => {
  const wanted = { hour: 2, timeZone: "Europe/Berlin" };
  expect(isDue(new Date("2026-03-29T01:00:00Z"), wanted)).toBe(true);
  expect(isDue(new Date("2026-03-29T00:00:00Z"), wanted)).toBe(false);
  expect(isDue(new Date("2026-03-30T01:00:00Z"), wanted)).toBe(false);
  expect(isDue(new Date("2026-03-30T00:00:00Z"), wanted)).toBe(true);
});

test("the local time of a moment, across a change of the clocks and at midnight", () => {
  expect(localTime(new Date("2026-03-29T00:30:00Z"), "Europe/Berlin")).toEqual({ day: "2026-03-29", hour: 1 });
  expect(localTime(new Date("2026-03-29T01:30:00Z"), "Europe/Berlin")).toEqual({ day: "2026-03-29", hour: 3 });
  expect(localTime(new Date("2026-11-20T23:00:00Z"), "Europe/Berlin")).toEqual({ day: "2026-11-21", hour: 0 });
});
