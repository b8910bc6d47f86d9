import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Transport, TransportError } from "../../functions/triage/ports.ts";
import { Bench, BOB } from "./harness.ts";

/** A transport that leaves something behind on the way (a pod) is told when that may go. */

let bench: Bench;
/** What was read and released, in order. */
let log: string[];
let fails: boolean;
beforeEach(() => {
  log = [];
  fails = false;
  bench = new Bench(() => ({ transport: () => leaving }));
  const { node } = bench;
  const leaving: Transport = {
    name: "leaving",
    start: (target, job) => node.start(target, job),
    find: (target, jobId) => node.find(target, jobId),
    async poll(target, handle) {
      const state = await node.poll(target, handle);
      log.push(`read ${handle}`);
      return state;
    },
    async release(target, handle) {
      const phase = handle.replace(/^inc-1-/, "");
      const stored = (await bench.store.get(`captures/inc-1/${phase}`)) !== undefined;
      log.push(`release ${handle} of ${target.name}${stored ? ", its capture is stored" : ""}`);
      if (fails) throw new TransportError("leaving: could not delete: no", { retryable: true });
    },
  };
});
afterEach(() => bench.close());

describe("what a job left behind", () => {
  test("is cleared away once, after the result is safe: collections and the fix", async () => {
    await bench.ask();
    await bench.click("confirm", BOB);
    expect(log).toEqual([
      "read inc-1-collect",
      "release inc-1-collect of node2, its capture is stored",
      "read inc-1-recheck",
      "release inc-1-recheck of node2, its capture is stored",
      "read inc-1-fix",
      "release inc-1-fix of node2",
      "read inc-1-verify",
      "release inc-1-verify of node2, its capture is stored",
    ]);
    expect((await bench.store.incident("inc-1"))?.state).toBe("resolved");
  });

  test("also of a job that did not run, and of one that is lost; the marker's job, too", async () => {
    bench.node.state = (phase) => (phase === "fix" ? { state: "lost", reason: "gone" } : undefined);
    await bench.ask();
    await bench.click("confirm", BOB);
    expect(log.filter((line) => line.startsWith("release"))).toEqual(
      expect.arrayContaining(["release inc-1-fix of node2", "release inc-1-fix-status of node2"]),
    );
    bench.node.state = () => ({ state: "not-run", reason: "no" });
    await bench.ask("node2", "inc-2");
    expect(log.at(-1)).toBe("release inc-2-collect of node2");
  });

  test("not of a fix that could not be looked at: it may be running still", async () => {
    await bench.ask();
    bench.node.state = (phase) => {
      if (phase === "fix") throw new TransportError("leaving: access denied", { retryable: false });
      return undefined;
    };
    await bench.click("confirm", BOB);
    expect((await bench.proposal()).state).toBe("succeeded");
    expect(log.filter((line) => line.startsWith("release"))).toEqual(
      ["collect", "recheck", "fix-status", "verify"].map((job) => expect.stringContaining(`release inc-1-${job} of node2`)),
    );
  });

  test("stays where it cannot be cleared away: that is logged, and the triage goes on", async () => {
    fails = true;
    await bench.ask();
    expect((await bench.store.incident("inc-1"))?.state).toBe("awaiting-approval");
    expect(bench.logged).toContainEqual(expect.stringContaining("warn: could not clear away what a job left behind; it will expire"));
  });
});
