import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { clearUp } from "../../functions/aws/reaper.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { ALICE, Bench, BOB, CAROL, configOf, MALLORY } from "./harness.ts";
import { holderOf, occupy } from "./node-place.ts";
import { catalogueOf, fault, fixed, otherFault, truncated } from "./runbooks.ts";

/** The way back from a fix that did not help: offered as a proposal of its own, approved by people, run at most once, verified. */

const BACK = { proposal: "inc-1-rollback" };
let bench: Bench;
beforeEach(async () => {
  bench = new Bench();
  // the fix brings another fault
  bench.node.capture = (phase) => (bench.node.fixRuns > bench.node.rollbackRuns && phase === "verify" ? otherFault : fault);
  await bench.ask();
});
afterEach(async () => {
  expect(bench.node.count("fix"), "a fix is started at most once").toBeLessThanOrEqual(1);
  expect(bench.node.count("rollback"), "so is a rollback").toBeLessThanOrEqual(1);
  expect(await verifyStore(bench.store)).toEqual([]);
  await bench.close();
});

const offered = () => bench.chat.posts.has("inc-1-rollback/proposal");
const states = async () => [(await bench.incident()).state, (await bench.proposal()).state, (await bench.store.proposal(BACK.proposal))?.state];

test("offered, approved, run once, verified to be as before, on record", async () => {
  await bench.click("confirm", BOB);
  expect(await states()).toEqual(["awaiting-approval", "succeeded", "pending"]);
  expect(await bench.proposal(BACK.proposal)).toMatchObject({ kind: "rollback", of: "inc-1-fix", parameters: { restore: ["iptables-restore"] } });
  expect(bench.chat.drawn("inc-1-rollback/proposal")).toContain("-A FORWARD");
  expect(bench.chat.drawn("inc-1-rollback/proposal")).not.toContain("-I FORWARD 1");
  expect(bench.chat.drawn("inc-1/root")).toContain("undoing it waits for approval");

  expect(await bench.click("confirm", CAROL, BACK)).toBe("approve");
  expect([bench.outcome(), bench.node.rollbackRuns, ...(await states())]).toEqual(["unresolved", 1, "unresolved", "succeeded", "succeeded"]);
  expect(bench.chat.drawn("inc-1/rollback-outcome")).toContain("the node is as before the fix: the cause that the fix was for is there again, as expected");
  expect(bench.chat.drawn("inc-1-rollback/proposal")).toContain("The fix was undone");
  expect(bench.chat.drawn("inc-1/root")).toContain("the fix was undone");
  const job = bench.node.jobs.get("inc-1-rollback");
  expect([job?.script.name, job?.parameters]).toEqual(["rollback-move-cilium-forward-first", { restore: "iptables-restore" }]);
  const events = (await bench.store.audit("inc-1")).map(({ type, data }) => [type, data["proposal"]]);
  expect(events.slice(events.findIndex(([type]) => type === "fix-finished"))).toEqual(
    [
      ["fix-finished", "inc-1-fix"],
      ["collected", undefined],
      ["verified", "inc-1-fix"],
      ["rollback-proposed", "inc-1-rollback"],
      ["approval-requested", "inc-1-rollback"],
      ["approval-posted", "inc-1-rollback"],
      ["approved", undefined],
      ["rollback-started", "inc-1-rollback"],
      ["rollback-finished", "inc-1-rollback"],
      ["collected", undefined],
      ["verified", "inc-1-rollback"],
    ].map(([type, proposal]) => [type, type === "approved" ? "inc-1-rollback" : proposal]),
  );
  expect(await holderOf(bench.store, "lab/node2"), "the node is free for others").toBeUndefined();
});

describe("offered", () => {
  test("after a fix that failed half-way, for what of it ran alone", async () => {
    bench.node.outcome = "failed";
    bench.node.capture = () => fault;
    bench.node.steps = () => [
      { command: "iptables-restore --noflush -w 5", exitCode: 0, output: "" },
      { command: "ip6tables-restore --noflush -w 5", exitCode: 4, output: "busy" },
    ];
    await bench.click("confirm", BOB);
    expect(offered()).toBe(true);
    expect((await bench.proposal(BACK.proposal)).parameters).toEqual({ restore: ["iptables-restore"] });
  });

  test.each([
    ["its first command failed, so nothing was changed", () => (bench.node.outcome = "failed"), "unresolved"],
    ["whether it helped could not be checked", () => (bench.node.capture = (phase) => (phase === "verify" ? truncated : fault)), "unresolved"],
    ["it was refused on the node", () => (bench.node.outcome = "refused"), "unresolved"],
    ["it helped", () => (bench.node.capture = (phase) => (phase === "verify" ? fixed : fault)), "resolved"],
  ])("not where %s", async (_, arrange, outcome) => {
    arrange();
    await bench.click("confirm", BOB);
    expect([bench.outcome(), offered()]).toEqual([outcome, false]);
  });

  test("not where it is not known whether the fix ran: told what to look at by hand, and which commands it is about", async () => {
    bench.node.marker = "unfinished";
    bench.node.state = (phase) => (phase === "fix" ? { state: "lost", reason: "timed out while running" } : undefined);
    await bench.click("confirm", BOB);
    expect([bench.outcome(), offered(), (await bench.proposal()).state]).toEqual(["unresolved", false, "unknown"]);
    const text = String(bench.chat.data("inc-1/by-hand")["text"]);
    expect(text).toContain("/var/lib/netcheck/runs/inc-1-fix/outcome");
    expect(text).toMatch(/may have run:[\s\S]*-I FORWARD 1[\s\S]*would undo them:[\s\S]*-A FORWARD/);
  });

  test("not where the fix in the catalogue is another one by now", async () => {
    bench.node.state = (phase, polls) => {
      if (phase !== "verify" || polls > 1) return undefined;
      bench.catalogue = catalogueOf((text) => text.replaceAll('-w, "5"]', '-w, "6"]'));
      return { state: "running", detail: "" };
    };
    await bench.click("confirm", BOB);
    expect([bench.outcome(), offered()]).toEqual(["unresolved", false]);
    expect(bench.chat.drawn("inc-1/no-rollback")).toContain("another one by now");
  });

  test("not where the policy lets nobody approve it any more: said so", async () => {
    bench.node.beforeStart = (phase) => {
      if (phase === "verify") bench.config = configOf([]);
    };
    await bench.click("confirm", BOB);
    expect([bench.outcome(), offered()]).toEqual(["unresolved", false]);
    expect(bench.chat.drawn("inc-1/rollback-forbidden")).toContain("no policy statement allows anyone");
  });
});

describe("decided", () => {
  beforeEach(async () => {
    await bench.click("confirm", BOB);
  });

  test("by the same policy: a stranger may not", async () => {
    expect(await bench.click("confirm", MALLORY, BACK)).toBe("refused");
    expect(await bench.click("confirm", ALICE, BACK)).toBe("refused");
    expect((await bench.proposal(BACK.proposal)).state).toBe("pending");
  });

  test("dismissed: nothing undone, the incident stays unresolved", async () => {
    expect(await bench.click("dismiss", ALICE, BACK)).toBe("dismiss");
    expect([bench.outcome(), bench.node.rollbackRuns, ...(await states())]).toEqual(["unresolved", 0, "unresolved", "succeeded", "dismissed"]);
    expect(bench.chat.drawn("inc-1-rollback/proposal")).toContain("Nothing was undone");
  });

  test("nobody decides: it expires", async () => {
    await bench.pass(3600);
    expect([bench.outcome(), bench.node.rollbackRuns, ...(await states())]).toEqual(["unresolved", 0, "unresolved", "succeeded", "expired"]);
  });

  test("twice at the same moment: it runs once", async () => {
    bench.press("confirm", BOB, BACK);
    bench.press("confirm", CAROL, BACK);
    await bench.pass(300);
    expect([bench.node.rollbackRuns, (await bench.proposal(BACK.proposal)).decisions.length]).toEqual([1, 1]);
  });

  test("of a fix that is another one by now: refused, and closed", async () => {
    bench.catalogue = catalogueOf((text) => text.replaceAll('-w, "5"]', '-w, "6"]'));
    expect(await bench.click("confirm", BOB, BACK)).toBe("refused");
    expect([bench.outcome(), bench.node.rollbackRuns, ...(await states())]).toEqual(["unresolved", 0, "unresolved", "succeeded", "refused"]);
  });

  test("an approval on record counts if the one who was to hand it on died", async () => {
    const { hash, createdAt } = await bench.proposal(BACK.proposal);
    const decisions = [{ actor: BOB, decision: "approve" as const, at: createdAt, hash }];
    const event = { key: "approved/x", at: createdAt, actor: BOB, type: "approved", data: {} };
    await bench.store.transition(BACK.proposal, ["pending"], { state: "approved", decisions }, event);
    await bench.pass(3700);
    expect([bench.outcome(), bench.node.rollbackRuns]).toEqual(["unresolved", 1]);
  });

  test("an approval that is over is counted by the reaper, and one that waits is not", async () => {
    const overdue = async (minutes: number): Promise<number> => {
      let found = -1;
      await clearUp({
        config: async () => bench.config,
        store: bench.store,
        meter: {
          gauge: (name, value) => {
            if (name === "StuckApprovals") found = value;
          },
        },
        log: () => undefined,
        reap: async () => ({ found: 0, deleted: [], stuck: [], failed: [] }),
        now: () => new Date(bench.clock.now() + minutes * 60_000),
      });
      return found;
    };
    // the fix's own time would be over by now
    expect([await overdue(65), await overdue(75)]).toEqual([0, 1]);
  });
});

describe("run", () => {
  const undo = async () => {
    await bench.click("confirm", BOB);
    await bench.click("confirm", CAROL, BACK);
  };

  test("a step of it fails: said so, and what differs from before", async () => {
    bench.node.rollbackOutcome = "failed";
    await undo();
    expect([bench.outcome(), ...(await states())]).toEqual(["unresolved", "unresolved", "succeeded", "failed"]);
    expect(bench.chat.drawn("inc-1/rollback-outcome")).toMatch(/the node is not as before the fix: .*is not found again; new since then: Link-local routes/);
  });

  test("another fix is running on the node", async () => {
    await bench.click("confirm", BOB);
    await occupy(bench.store, "lab/node2", "inc-0-fix", new Date(bench.clock.now()));
    await bench.click("confirm", CAROL, BACK);
    expect([bench.outcome(), bench.node.count("rollback"), ...(await states())]).toEqual(["unresolved", 0, "unresolved", "succeeded", "refused"]);
    expect(bench.chat.drawn("inc-1/rollback-outcome")).toContain("another fix is running on this node");
    expect(await holderOf(bench.store, "lab/node2")).toBe("inc-0-fix");
  });

  test("it is not known whether it ran: its marker was asked, nothing is run again, told what to look at", async () => {
    bench.node.marker = "unfinished";
    bench.node.state = (phase) => (phase === "rollback" ? { state: "lost", reason: "timed out while running" } : undefined);
    await undo();
    expect([bench.node.count("rollback"), bench.node.jobs.has("inc-1-rollback-status"), ...(await states())]).toEqual([
      1,
      true,
      "unresolved",
      "succeeded",
      "unknown",
    ]);
    expect(String(bench.chat.data("inc-1/rollback-by-hand")["text"])).toContain("/var/lib/netcheck/runs/inc-1-rollback/outcome");
  });

  test("the node cannot be looked at afterwards: said so, not called fine", async () => {
    bench.node.state = (phase) => (phase === "verify" && bench.node.rollbackRuns > 0 ? { state: "not-run", reason: "the agent does not answer" } : undefined);
    await undo();
    expect(bench.chat.drawn("inc-1/rollback-outcome")).toContain("Could not verify: the node could not be looked at again (the agent does not answer)");
    expect((await bench.events("verified")).map(({ data }) => data["ok"])).toEqual([false, null]);
  });

  test("its outcome cannot be told: the failure says that the fix ran and was undone", async () => {
    bench.chat.trouble = (_, what) => {
      if (what === "inc-1/rollback-outcome") throw new Error("slack: not_in_channel");
    };
    await undo();
    expect(bench.outcome()).toBe("failed");
    expect(bench.chat.drawn("inc-1/failure")).toContain("The fix had run before that and was undone. Run id: inc-1");
    expect(await holderOf(bench.store, "lab/node2")).toBeUndefined();
  });
});
