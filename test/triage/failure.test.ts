import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { verifyStore } from "../../functions/store/verify.ts";
import { ALICE, Bench, BOB } from "./harness.ts";
import { intercept } from "./intercept.ts";
import { holderOf } from "./node-place.ts";

/** A failed run always tells the user, with the run id, and leaves no button that does nothing. */

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
});
afterEach(async () => {
  expect(bench.node.count("fix")).toBeLessThanOrEqual(1);
  expect(await verifyStore(bench.store)).toEqual([]);
  await bench.close();
});

const notInChannel = (): never => {
  throw new Error("slack: could not post in C_INCIDENTS: netcheck is not in this channel: invite it with /invite @netcheck");
};

describe("the chat fails", () => {
  test("netcheck cannot post in the channel at all: the person is reached all the same", async () => {
    bench.chat.trouble = (call) => (call === "post" ? notInChannel() : undefined);
    await bench.ask();
    expect(bench.outcome()).toBe("failed");
    expect(bench.chat.whispered(ALICE)).toHaveLength(1);
    expect(bench.chat.whispered(ALICE)[0]).toMatch(/invite it with .*Nothing was changed on the node\. Run id: inc-1/);
    expect(bench.chat.whispers[0]?.place.responseUrl).toBe("https://hooks/1");
    expect(await bench.incident()).toMatchObject({ state: "failed", problem: expect.stringContaining("not in this channel") });
  });

  test("nobody can be told: the execution itself fails, for operations to see", async () => {
    bench.chat.trouble = notInChannel;
    await bench.ask();
    expect(bench.execution()).toMatchObject({ status: "FAILED", error: { ErrorMessage: expect.stringContaining("not in this channel") } });
    expect((await bench.incident()).state).toBe("failed");
    expect(bench.logged.join("\n")).toContain("triage failed");
  });

  test.each(["inc-1/diagnosis", "inc-1-fix/proposal"])("%s cannot be posted: told in the thread, no button works any more", async (key) => {
    bench.chat.trouble = (_, what) => (what === key ? notInChannel() : undefined);
    await bench.ask();
    expect(bench.outcome()).toBe("failed");
    expect(bench.chat.drawn("inc-1/failure")).toMatch(/not in this channel.*Run id: inc-1/);
    expect(bench.chat.drawn("inc-1/root")).toContain("the triage failed");
    if (key !== "inc-1-fix/proposal") return;
    expect((await bench.proposal()).state).toBe("refused");
    expect(await bench.click("confirm", BOB)).toBe("closed");
    expect(bench.node.count("fix")).toBe(0);
  });

  test("trouble that passes is no trouble", async () => {
    const seen = new Set<string>();
    bench.chat.trouble = (call, what) => {
      if (seen.has(call + what)) return;
      seen.add(call + what);
      throw Object.assign(new Error("slack: ratelimited"), { retryable: true });
    };
    await bench.ask();
    await bench.click("confirm", BOB);
    await bench.pass(300);
    expect([bench.outcome(), bench.node.fixRuns]).toEqual(["resolved", 1]);
    expect([...bench.chat.posts.keys()].filter((key) => !key.includes("follow-up"))).toHaveLength(4);
  });

  test("the buttons were posted, the rest of the step failed: the failure takes them away", async () => {
    let broken = false;
    bench.chat.trouble = (call, what) => {
      if (call === "update" && what === "root" && bench.chat.posts.has("inc-1-fix/proposal") && !broken) {
        broken = true;
        notInChannel();
      }
    };
    await bench.ask();
    expect([bench.outcome(), (await bench.proposal()).state]).toEqual(["failed", "refused"]);
    expect(bench.chat.drawn("inc-1-fix/proposal")).not.toContain('"action_id":"approve"');
    expect(bench.chat.drawn("inc-1-fix/proposal")).toContain("Nothing was changed on the node");
  });

  test("the outcome cannot be posted: the failure says that the fix had run", async () => {
    bench.chat.trouble = (_, what) => (what === "inc-1/outcome" ? notInChannel() : undefined);
    await bench.ask();
    await bench.click("confirm", BOB);
    expect([bench.outcome(), bench.node.fixRuns, (await bench.proposal()).state]).toEqual(["failed", 1, "succeeded"]);
    expect(bench.chat.drawn("inc-1/failure")).toMatch(/The fix had run before that\. Run id: inc-1/);
    expect(await holderOf(bench.store, "lab/node2")).toBeUndefined();
  });

  test("an approval whose confirmation cannot be shown runs no fix twice", async () => {
    bench.chat.trouble = (call, what) => (call === "update" && what === "proposal-closed" ? notInChannel() : undefined);
    await bench.ask();
    await bench.click("confirm", BOB);
    expect([bench.outcome(), bench.node.fixRuns, (await bench.proposal()).state]).toEqual(["failed", 0, "refused"]);
    expect(bench.chat.drawn("inc-1/failure")).toContain("Nothing was changed on the node");
  });

  test("a click whose answer cannot be whispered fails its execution, not the triage", async () => {
    await bench.ask();
    bench.chat.trouble = (call) => (call === "whisper" ? notInChannel() : undefined);
    expect(await bench.click("confirm", ALICE)).toBe("FAILED");
    expect((await bench.events("refused")).length).toBe(1);
    expect((await bench.proposal()).state).toBe("pending");
    bench.chat.trouble = () => undefined;
    expect(await bench.click("confirm", BOB)).toBe("approve");
    expect(bench.outcome()).toBe("resolved");
  });
});

describe("something else fails", () => {
  test("the configuration cannot be read: the person is told before there is an incident", async () => {
    await bench.close();
    bench = new Bench(() => ({
      targets: {
        resolve: async () => {
          throw new Error("netcheck.yaml:3:1: clusters: it is not valid");
        },
        all: async () => ({ called: [] }),
      },
    }));
    await bench.ask();
    expect(bench.outcome()).toBe("failed");
    expect(bench.chat.drawn("inc-1/failure")).toMatch(/The triage of node2 failed: netcheck\.yaml:3:1.*Nothing was changed on the node\. Run id: inc-1/);
    expect(bench.chat.drawn("inc-1/failure")).not.toContain('"action_id":"again"');
  });

  test("the store fails for good: the person is told, and no more is claimed than is known", async () => {
    await bench.close();
    bench = new Bench((usual) => ({
      store: intercept("store", usual.store, async () => {
        throw new Error("store: database or disk is full");
      }),
    }));
    await bench.ask();
    expect(bench.outcome()).toBe("failed");
    expect(bench.chat.drawn("inc-1/failure")).toMatch(/disk is full\. What became of a fix is not known\. Run id: inc-1/);
  });

  test("after the fix was let go, before its outcome was stored: unknown, never run again, the lock is free", async () => {
    await bench.close();
    let broken = false;
    bench = new Bench((usual) => ({
      store: intercept("store", usual.store, async (method, args, go) => {
        const change = args[2] as { state?: string } | undefined;
        if (method === "store.transition" && change?.state === "succeeded" && !broken) {
          broken = true;
          throw new Error("store: database or disk is full");
        }
        return go();
      }),
    }));
    await bench.ask();
    await bench.click("confirm", BOB);
    expect([bench.outcome(), bench.node.fixRuns, (await bench.proposal()).state]).toEqual(["failed", 1, "unknown"]);
    expect(bench.chat.drawn("inc-1/failure")).toMatch(/It is not known whether the fix ran; it is not run again\. Run id: inc-1/);
    expect(bench.chat.drawn("inc-1-fix/proposal")).toContain("It is not known whether the fix ran");
    expect(await holderOf(bench.store, "lab/node2")).toBeUndefined();
    await bench.click("confirm", BOB);
    expect(bench.node.count("fix")).toBe(1);
  });
});
