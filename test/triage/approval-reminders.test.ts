import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { verifyStore } from "../../functions/store/verify.ts";
import { ALICE, Bench, BOB, CAROL, configOf } from "./harness.ts";
import { fault, otherFault } from "./runbooks.ts";

/** Who may approve and has not is reminded, each time after twice as long, until there is a decision; and the limits of the policy, taken before a run and given back. */

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
});
afterEach(async () => {
  expect(await verifyStore(bench.store)).toEqual([]);
  await bench.close();
});

const reminders = (proposal = "inc-1-fix") => [...bench.chat.posts.keys()].filter((key) => key.startsWith(`${proposal}/reminder-`)).length;

describe("reminders", () => {
  const remindAfter = (more: object = {}) =>
    configOf([{ id: "sre", effect: "allow", approvers: ["S_SRE"], approvalsNeeded: 2, expires: "3h", remind: "15m", ...more }]);
  beforeEach(async () => {
    bench.config = remindAfter();
    await bench.ask();
  });

  test("after 15, 45 and 105 minutes; then it expires", async () => {
    const at: number[] = [];
    for (let minute = 0; minute < 190; minute += 1) {
      const before = reminders();
      await bench.pass(60);
      // one minute passed while it was asked, one just now
      if (reminders() > before) at.push(minute + 2);
    }
    expect(at).toEqual([15, 45, 105]);
    expect([bench.outcome(), (await bench.proposal()).state, (await bench.proposal()).reminders]).toEqual(["expired", "expired", 3]);
    expect((await bench.events("reminded")).map(({ data }) => data["number"])).toEqual([1, 2, 3]);
  });

  test("who has approved is not called again", async () => {
    await bench.pass(900);
    expect(bench.chat.data("inc-1-fix/reminder-1")).toMatchObject({ people: [BOB.id, CAROL.id], approvals: 0, needed: 2 });
    expect(bench.chat.posts.get("inc-1-fix/reminder-1")?.place).toMatchObject({ thread: "1.000" });
    await bench.click("confirm", BOB);
    await bench.pass(1800);
    expect(bench.chat.data("inc-1-fix/reminder-2")).toMatchObject({ people: [CAROL.id], approvals: 1 });
    expect(bench.chat.drawn("inc-1-fix/reminder-2")).toContain("1 of 2 so far");
  });

  test.each([
    ["an approval", async () => [await bench.click("confirm", BOB), await bench.click("confirm", CAROL)]],
    ["a dismissal", async () => bench.click("dismiss", ALICE)],
  ])("none after %s", async (_, decide) => {
    await bench.pass(900);
    await decide();
    await bench.pass(4 * 3600);
    expect(reminders()).toBe(1);
    expect((await bench.events("reminded")).length).toBe(1);
  });

  test("a group that cannot be looked up is called as a group; a freeze lets nobody be called", async () => {
    bench.groups["S_SRE"] = Array.from({ length: 11 }, (_, index) => `U_MEMBER${index}`);
    await bench.pass(900);
    expect(bench.chat.data("inc-1-fix/reminder-1")).toMatchObject({ people: ["S_SRE"] });
    bench.config = remindAfter({ freezeWindows: [{ from: "2026-01-01", to: "2026-01-02", timeZone: "UTC" }] });
    await bench.pass(1800);
    expect(bench.chat.data("inc-1-fix/reminder-2")).toMatchObject({ people: [], nobody: true });
    expect(bench.chat.drawn("inc-1-fix/reminder-2")).toContain("lets nobody approve it");
  });

  test("one that cannot be posted keeps neither the next nor the approval from working", async () => {
    bench.chat.trouble = (_, what) => {
      if (what === "inc-1-fix/reminder-1") throw new Error("slack: ratelimited");
    };
    await bench.pass(2700);
    expect(bench.chat.posts.has("inc-1-fix/reminder-1")).toBe(false);
    expect(bench.chat.posts.has("inc-1-fix/reminder-2")).toBe(true);
    await bench.click("confirm", BOB);
    await bench.click("confirm", CAROL);
    expect(bench.outcome()).toBe("resolved");
  });

  test("one that Slack did not take for a moment is posted a moment later", async () => {
    let refusals = 2;
    bench.chat.trouble = (_, what) => {
      if (what.endsWith("/reminder-1") && refusals-- > 0) throw Object.assign(new Error("slack: could not post: service_unavailable"), { retryable: true });
    };
    await bench.ask();
    await bench.pass(16 * 60);
    expect([...bench.chat.posts.keys()].filter((key) => key.includes("/reminder-"))).toEqual(["inc-1-fix/reminder-1"]);
  });

  test("of a rollback, too", async () => {
    bench.node.capture = (phase) => (phase === "verify" ? otherFault : fault);
    await bench.click("confirm", BOB);
    await bench.click("confirm", CAROL);
    await bench.pass(900);
    expect(reminders("inc-1-rollback")).toBe(1);
    expect(bench.chat.drawn("inc-1-rollback/reminder-1")).toContain("rollback");
  });
});

describe("limits", () => {
  const limited = (more: object) => configOf([{ id: "sre", effect: "allow", approvers: ["S_SRE"], ...more }]);
  const second = { incident: "inc-2", proposal: "inc-2-fix" };
  const refusal = () => bench.chat.drawn("inc-2/outcome");

  /** One fix on node2, then another one on node3 of the same cluster. */
  async function two(more: object, meanwhile: () => Promise<void> = async () => undefined): Promise<void> {
    bench.config = limited(more);
    await bench.ask();
    await bench.click("confirm", BOB);
    await meanwhile();
    bench.node.fixRuns = 0;
    await bench.ask("node3", "inc-2");
    await bench.click("confirm", BOB, second);
  }

  test("nodes within a time: the third is refused with the statement and who holds the places; later it may run", async () => {
    await two({ maxNodes: { most: 1, per: "1h" } });
    expect([(await bench.proposal("inc-2-fix")).state, bench.node.jobs.has("inc-2-fix")]).toEqual(["refused", false]);
    expect(refusal()).toMatch(/at most 1 node of lab within 1h \(statement \\"sre\\"\), and these count now: node2/);
    expect((await bench.events("fix-started")).map(({ incident }) => incident)).toEqual(["inc-1"]);
    await bench.pass(3600);
    await bench.ask("node3", "inc-3");
    await bench.click("confirm", BOB, { incident: "inc-3", proposal: "inc-3-fix" });
    expect((await bench.proposal("inc-3-fix")).state).toBe("succeeded");
  });

  test("fixes within a time", async () => {
    await two({ rate: { most: 1, per: "2h" } });
    expect(refusal()).toMatch(/at most 1 fix in lab within 2h .* these count now: inc-1-fix/);
  });

  test("one at a time in the cluster: refused while another one runs, and free when it is done", async () => {
    bench.config = limited({ oneAtATime: "cluster" });
    await bench.store.reserve("running/lab", "inc-0-fix", 1, undefined, new Date(bench.clock.now()));
    await bench.ask();
    await bench.click("confirm", BOB);
    expect(bench.chat.drawn("inc-1/outcome")).toMatch(/one fix at a time in lab .* these count now: inc-0-fix/);
    await bench.store.release("running/lab", "inc-0-fix");
    await bench.ask("node3", "inc-2");
    await bench.click("confirm", BOB, second);
    expect(bench.outcome("inc-2")).toBe("resolved");
    expect(await bench.store.reserve("running/lab", "inc-9-fix", 1, undefined, new Date(bench.clock.now()))).toMatchObject({ ok: true, holders: [] });
  });

  test("a run that was refused on the node gives its places back", async () => {
    bench.node.outcome = "refused";
    await two({ maxNodes: { most: 1, per: "1h" }, rate: { most: 1, per: "1h" } }, async () => {
      bench.node.outcome = "succeeded";
    });
    expect([(await bench.proposal()).state, (await bench.proposal("inc-2-fix")).state]).toEqual(["refused", "succeeded"]);
  });

  test("a limit that is full gives back what was taken before it, and nothing that another fix holds", async () => {
    const now = new Date(bench.clock.now());
    await bench.store.reserve("rate/sre/lab", "inc-0-fix", 1, 3_600_000, now);
    await bench.store.reserve("nodes/sre/lab", "node9", 2, 3_600_000, now);
    bench.config = limited({ oneAtATime: "cluster", maxNodes: { most: 2, per: "1h" }, rate: { most: 1, per: "1h" } });
    await bench.ask();
    await bench.click("confirm", BOB);
    expect((await bench.proposal()).state).toBe("refused");
    expect((await bench.store.reserve("nodes/sre/lab", "nodeX", 9, 3_600_000, now)).holders).toEqual(["node9"]);
    expect((await bench.store.reserve("running/lab", "X", 9, undefined, now)).holders).toEqual([]);
  });

  test("the way back needs no second place", async () => {
    bench.config = limited({ maxNodes: { most: 1, per: "1h" }, rate: { most: 1, per: "1h" }, oneAtATime: "cluster" });
    bench.node.capture = (phase) => (phase === "verify" && bench.node.rollbackRuns === 0 ? otherFault : fault);
    await bench.ask();
    await bench.click("confirm", BOB);
    await bench.click("confirm", CAROL, { proposal: "inc-1-rollback" });
    expect([(await bench.proposal("inc-1-rollback")).state, bench.node.rollbackRuns]).toEqual(["succeeded", 1]);
  });
});
