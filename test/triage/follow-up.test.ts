import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sha256 } from "../../functions/triage/audit.ts";
import { Config } from "../../functions/triage/config.ts";
import { ALICE, Bench, BOB, configOf } from "./harness.ts";
import { fault, fixed, otherFault, truncated } from "./runbooks.ts";

/** A node is looked at again after its incident ended. All on virtual time. */

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
});
afterEach(async () => bench.close());

/** What a follow-up said; "" if it said nothing. */
function line(number: number): string {
  const words = bench.chat.posts.get(`inc-1/follow-up-${number}`)?.message.data["text"];
  return typeof words === "string" ? words : "";
}
const NAME = `follow-${sha256("inc-1").slice(0, 16)}`;
const follow = () => bench.execution(NAME);
const outcome = (): unknown => bench.outcome(NAME);
/** Nodes of the test's pool, besides the one that is asked about. */
const POOL = ["node3", "node4", "node5"];
const pooled = (followUps: object): Config =>
  Config.parse({
    clusters: { lab: { transport: "replay", targets: Object.fromEntries(["node2", ...POOL].map((name) => [name, { pool: "blue" }])) } },
    policy: [{ id: "sre", effect: "allow", approvers: ["S_SRE", ALICE.id] }],
    followUps,
  });

describe("after a fix", () => {
  async function fixIt(): Promise<void> {
    await bench.ask();
    bench.press("confirm", BOB);
    await bench.pass(120);
    expect(bench.outcome()).toBe("resolved");
  }

  test("5 and 30 minutes later: still healthy, one line each, in the thread; nothing but collections was run", async () => {
    await fixIt();
    const jobs = bench.node.jobs.size;
    await bench.pass(2 * 60);
    expect(bench.node.jobs.size).toBe(jobs);
    await bench.pass(60 * 60);
    expect(line(1)).toBe("node2, 5 min after the fix: still healthy, the cause has not come back.");
    expect(line(2)).toContain("30 min after the fix: still healthy");
    expect(bench.chat.posts.get("inc-1/follow-up-1")?.place.thread).toBe(bench.chat.posts.get("inc-1/root")?.ref.ts);
    expect([...bench.node.jobs.keys()].slice(jobs)).toEqual(["inc-1-follow-1", "inc-1-follow-2"]);
    expect([outcome(), (await bench.events("followed-up")).map(({ data }) => data["seen"])]).toEqual(["followed-up", ["gone", "gone"]]);
    expect((await bench.incident()).state).toBe("resolved");
  });

  test("came back, and then it healed by itself", async () => {
    await fixIt();
    bench.node.capture = (_, job) => (job.endsWith("follow-1") ? fault : fixed);
    await bench.pass(60 * 60);
    expect(line(1)).toMatch(/5 min after the fix: the cause came back \(.+\)\.$/);
    expect(line(2)).toMatch(/30 min after the fix: the cause \(.+\) is gone again\.$/);
  });

  test("gone, but something new: the line says to run again", async () => {
    await fixIt();
    bench.node.capture = () => otherFault;
    await bench.pass(6 * 60);
    expect(line(1)).toMatch(/still healthy, .* But something new was found: .+ Run the triage again\.$/);
    expect(bench.chat.drawn("inc-1/follow-up-1")).toContain(":warning:");
  });

  test("could not look, and could not be checked, are neither fine nor broken", async () => {
    await fixIt();
    bench.node.beforeStart = () => {
      throw Object.assign(new Error("ssm: the node is offline"), { name: "TransportError" });
    };
    await bench.pass(10 * 60);
    expect(line(1)).toMatch(/5 min after the fix: netcheck could not look again: .*offline\. That says nothing about its network\.$/);
    bench.node.beforeStart = () => undefined;
    bench.node.capture = () => truncated;
    await bench.pass(60 * 60);
    expect(line(2)).toMatch(/whether the cause is still gone could not be checked: /);
    expect((await bench.events("followed-up")).map(({ data }) => data["seen"])).toEqual(["not-looked", "unsure"]);
  });

  test("it ends when the node is examined anew", async () => {
    await fixIt();
    await bench.pass(6 * 60);
    await bench.ask("node2", "inc-2");
    await bench.pass(60 * 60);
    expect([line(1) === "", line(2), outcome()]).toEqual([false, "", "run-again"]);
  });

  test("what the configuration names: when, or never", async () => {
    bench.config = { ...configOf(), followUps: { after: ["2h", "1h"], spread: 0 } };
    await fixIt();
    await bench.pass(50 * 60);
    expect(line(1)).toBe("");
    await bench.pass(2 * 60 * 60);
    expect(line(2)).toContain("120 min after the fix");
  });

  test("none are wanted: nothing is started", async () => {
    bench.config = { ...configOf(), followUps: { after: [], spread: 0 } };
    await fixIt();
    expect(follow()).toBeUndefined();
  });
});

describe("after a cause that was left as it was", () => {
  async function leave(): Promise<void> {
    await bench.ask();
    bench.press("dismiss", ALICE);
    await bench.pass(60);
    expect(bench.outcome()).toBe("dismissed");
  }

  test("still there; then it healed by itself", async () => {
    await leave();
    bench.node.capture = (_, job) => (job.endsWith("follow-1") ? fault : fixed);
    await bench.pass(60 * 60);
    expect(line(1)).toMatch(/^node2, 5 min later: the cause is still there \(.+\)\.$/);
    expect(line(2)).toMatch(/^node2, 30 min later: the cause \(.+\) is gone, without a fix of netcheck: it healed by itself, or somebody repaired it\.$/);
    expect([bench.node.fixRuns, (await bench.incident()).state]).toEqual([0, "dismissed"]);
  });

  test("spread: the pool is looked at, and what a later look finds more", async () => {
    bench.config = pooled({ after: ["5m", "30m"], spread: 2 });
    await leave();
    let second = false;
    const sick = new Set(["node3"]);
    const captureOf = (job: string) => {
      const node = /spread-\d-1-(\d)$/.exec(job)?.[1] === "1" ? "node3" : "node4";
      if (!job.includes("spread")) return fault;
      return sick.has(node) || second ? fault : fixed;
    };
    bench.node.capture = (_, job) => captureOf(job);
    await bench.pass(10 * 60);
    expect(line(1)).toMatch(/still there \(.+\)\. It is on 1 more node, too: node3 \(2 of the 3 other nodes of pool blue were looked at\)\.$/);
    second = true;
    await bench.pass(60 * 60);
    expect(line(2)).toMatch(/It has spread to 1 more node since the last look: node4 \(2 of the 3/);
  });

  test("the same cause on a node that somebody asked about meanwhile counts, without a look at it", async () => {
    bench.config = { ...configOf(), followUps: { after: ["5m"], spread: 0 } };
    await leave();
    await bench.ask("node3", "inc-2", BOB);
    const jobs = bench.node.jobs.size;
    await bench.pass(10 * 60);
    expect(line(1)).toMatch(/still there \(.+\)\. It is on 1 more node, too: node3\.$/);
    expect(bench.node.jobs.size).toBe(jobs + 1);
  });

  test("a line that cannot be posted ends it with the reason in the log of its execution; the incident is as it was", async () => {
    await leave();
    bench.chat.trouble = (_, what) => {
      if (what === "inc-1/follow-up-1") throw new Error("slack: could not post in C_INCIDENTS: is_archived");
    };
    await bench.pass(60 * 60);
    expect([follow()?.status, (await bench.incident()).state]).toEqual(["FAILED", "dismissed"]);
  });
});

test("it goes on after a crash, and says nothing twice", async () => {
  await bench.ask();
  bench.press("dismiss", ALICE);
  await bench.pass(60);
  let cut = true;
  bench.chat.trouble = (call, what) => {
    if (cut && call === "post" && what === "inc-1/follow-up-1") {
      cut = false;
      throw Object.assign(new Error("slack: no answer"), { retryable: true });
    }
  };
  await bench.pass(60 * 60);
  expect([line(1) === "", line(2) === "", outcome()]).toEqual([false, false, "followed-up"]);
  expect((await bench.events("followed-up")).length).toBe(2);
});
