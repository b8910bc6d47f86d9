import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { verifyStore } from "../../functions/store/verify.ts";
import type { Proposal } from "../../functions/triage/ports.ts";
import { ALICE, Bench, BOB, CAROL, configOf, MALLORY } from "./harness.ts";
import { intercept } from "./intercept.ts";
import { holderOf } from "./node-place.ts";

/** Who may decide, when, and how often it counts. */

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
});
afterEach(async () => {
  expect(await verifyStore(bench.store)).toEqual([]);
  await bench.close();
});

const buttons = () => bench.chat.drawn("inc-1-fix/proposal").includes('"action_id":"approve"');

test("approved by a second person: checked again, run once, settled, verified, resolved", async () => {
  await bench.ask();
  expect(await bench.click("confirm", BOB)).toBe("approve");
  expect(bench.outcome()).toBe("resolved");
  expect(bench.node.fixRuns).toBe(1);
  expect([...bench.node.jobs.keys()]).toEqual(["inc-1-collect", "inc-1-recheck", "inc-1-fix", "inc-1-verify"]);
  expect(await bench.incident()).toMatchObject({ state: "resolved" });
  expect(await bench.proposal()).toMatchObject({ state: "succeeded", decisions: [{ actor: BOB, decision: "approve" }] });
  expect(bench.chat.drawn("inc-1/root")).toContain("resolved and verified");
  expect(bench.chat.drawn("inc-1/outcome")).toContain("the cause is gone");
  expect(bench.chat.drawn("inc-1/outcome")).toContain("prependIptablesChains");
  expect(buttons()).toBe(false);
  expect(bench.chat.drawn("inc-1-fix/proposal")).toContain("U_BOB");
  expect((await bench.store.audit("inc-1")).map((event) => [event.type, event.actor.id])).toEqual([
    ["incident-opened", "U_ALICE"],
    ["collected", "netcheck"],
    ["diagnosed", "netcheck"],
    ["fix-proposed", "netcheck"],
    ["approval-requested", "netcheck"],
    ["approval-posted", "netcheck"],
    ["approved", "U_BOB"],
    ["collected", "netcheck"],
    ["fix-started", "netcheck"],
    ["fix-finished", "netcheck"],
    ["collected", "netcheck"],
    ["verified", "netcheck"],
  ]);
  // the node is free for others
  expect(await holderOf(bench.store, "lab/node2")).toBeUndefined();
});

test("the fix gets time to settle before it is verified", async () => {
  await bench.ask();
  const at: Record<string, number> = {};
  bench.node.beforeStart = (phase) => {
    at[phase] = bench.clock.now();
  };
  await bench.click("confirm", BOB);
  expect((at["verify"] ?? 0) - (at["fix"] ?? 0)).toBeGreaterThanOrEqual(2000);
});

describe("who", () => {
  test("the requester may not approve: told why, on record, nothing run", async () => {
    await bench.ask();
    expect(await bench.click("confirm", ALICE)).toBe("refused");
    expect(bench.chat.whispered(ALICE).join()).toContain("wants a second person to approve");
    expect((await bench.events("refused"))[0]).toMatchObject({ actor: ALICE, data: { decision: "approve", statement: "sre" } });
    expect([(await bench.proposal()).state, bench.node.fixRuns, buttons()]).toEqual(["pending", 0, true]);
    expect(await bench.click("confirm", BOB)).toBe("approve");
  });

  test("the requester may where a statement says so", async () => {
    bench.config = configOf([{ id: "own", effect: "allow", approvers: [ALICE.id], selfApproval: true }]);
    await bench.ask();
    await bench.click("confirm", ALICE);
    expect(bench.outcome()).toBe("resolved");
  });

  test("the requester may call it off: nothing run, the buttons go", async () => {
    await bench.ask();
    expect(await bench.click("dismiss", ALICE)).toBe("dismiss");
    expect([bench.outcome(), bench.node.fixRuns, buttons()]).toEqual(["dismissed", 0, false]);
    expect(bench.chat.drawn("inc-1-fix/proposal")).toMatch(/Dismissed.*U_ALICE/);
    expect((await bench.incident()).state).toBe("dismissed");
  });

  test("a stranger may neither approve nor dismiss", async () => {
    await bench.ask();
    expect(await bench.click("confirm", MALLORY)).toBe("refused");
    expect(await bench.click("dismiss", MALLORY)).toBe("refused");
    expect(bench.chat.whispered(MALLORY)).toHaveLength(2);
    expect((await bench.events("refused")).map((event) => event.data["decision"])).toEqual(["approve", "dismiss"]);
    expect((await bench.proposal()).state).toBe("pending");
  });

  test("members of the group are looked up at the click", async () => {
    await bench.ask();
    bench.groups["S_SRE"] = [MALLORY.id];
    expect(await bench.click("confirm", BOB)).toBe("refused");
    expect(await bench.click("confirm", MALLORY)).toBe("approve");
    expect(bench.node.fixRuns).toBe(1);
  });

  test("a deny that names the person wins over the group that allows", async () => {
    bench.config = configOf([
      { id: "sre", effect: "allow", approvers: ["S_SRE"] },
      { id: "not-bob", effect: "deny", approvers: [BOB.id] },
    ]);
    await bench.ask();
    expect(await bench.click("confirm", BOB)).toBe("refused");
    expect(bench.chat.whispered(BOB).join()).toContain("not-bob");
    expect(await bench.click("confirm", CAROL)).toBe("approve");
  });

  test("members that cannot be looked up: nothing is decided, the person is told", async () => {
    await bench.close();
    bench = new Bench(() => ({
      members: async () => {
        throw new Error("slack: usergroups.users.list: missing_scope");
      },
    }));
    await bench.ask();
    expect(await bench.click("confirm", BOB)).toBe("refused");
    expect(bench.chat.whispered(BOB).join()).toMatch(/it is not known whether you may approve .*missing_scope.*Try again later/);
    expect([(await bench.proposal()).state, bench.node.fixRuns]).toEqual(["pending", 0]);
  });
});

describe("how many", () => {
  beforeEach(() => {
    bench.config = configOf([{ id: "two", effect: "allow", approvers: ["S_SRE"], approvalsNeeded: 2 }]);
  });

  test("two distinct people: the first is told that one is missing", async () => {
    await bench.ask();
    expect(await bench.click("confirm", BOB)).toBe("counted");
    expect(bench.chat.whispered(BOB).join()).toContain("1 more needed");
    expect(await bench.click("confirm", BOB)).toBe("counted");
    expect([(await bench.proposal()).state, (await bench.proposal()).decisions.length, bench.node.fixRuns]).toEqual(["pending", 1, 0]);
    expect(await bench.click("confirm", CAROL)).toBe("approve");
    expect([bench.outcome(), bench.node.fixRuns]).toEqual(["resolved", 1]);
  });

  test("who approved may still call it off, and is named", async () => {
    bench.config = configOf([{ id: "three", effect: "allow", approvers: ["S_SRE"], approvalsNeeded: 3 }]);
    await bench.ask();
    await bench.click("confirm", CAROL);
    await bench.click("confirm", BOB);
    expect(await bench.click("dismiss", CAROL)).toBe("dismiss");
    expect([bench.outcome(), bench.node.fixRuns]).toEqual(["dismissed", 0]);
    expect(bench.chat.drawn("inc-1-fix/proposal")).toMatch(/Dismissed.*U_CAROL/);
  });
});

describe("when", () => {
  test("unanswered, it expires: the buttons go, nothing is run", async () => {
    await bench.ask();
    await bench.pass(3600);
    expect([bench.outcome(), bench.node.fixRuns, buttons()]).toEqual(["expired", 0, false]);
    expect([(await bench.proposal()).state, (await bench.incident()).state]).toEqual(["expired", "expired"]);
    expect(await bench.events("expired")).toHaveLength(1);
  });

  test("a click after that is answered and does nothing", async () => {
    await bench.ask();
    await bench.pass(3600);
    expect(await bench.click("confirm", BOB)).toBe("closed");
    expect(bench.chat.whispered(BOB).join()).toContain("closed already (expired)");
    expect(bench.node.fixRuns).toBe(0);
    expect(await bench.events("approved")).toEqual([]);
  });

  test("a click after the time on the message, before anybody has closed it, is too late", async () => {
    await bench.ask();
    const { createdAt } = await bench.proposal();
    await bench.store.transition("inc-1-fix", ["pending"], { expiresAt: createdAt }, { key: "clock", at: createdAt, actor: BOB, type: "clock", data: {} });
    expect(await bench.click("confirm", BOB)).toBe("expired");
    expect(bench.node.fixRuns).toBe(0);
  });

  test("an approval on record counts, even if the one who was to hand it on died and the time is up", async () => {
    await bench.ask();
    const { hash, createdAt } = await bench.proposal();
    const decisions = [{ actor: BOB, decision: "approve" as const, at: createdAt, hash }];
    const event = { key: "approved/x", at: createdAt, actor: BOB, type: "approved", data: {} };
    await bench.store.transition("inc-1-fix", ["pending"], { state: "approved", decisions }, event);
    await bench.pass(3700);
    expect([bench.outcome(), bench.node.fixRuns]).toEqual(["resolved", 1]);
  });

  test("an answer without a decision on record is no decision", async () => {
    await bench.ask();
    const { callback } = await bench.proposal();
    bench.engine.succeed(callback ?? "", JSON.stringify({ decision: "approve" }));
    await bench.pass(300);
    expect([bench.outcome(), bench.node.fixRuns, (await bench.proposal()).state, buttons()]).toEqual(["failed", 0, "refused", false]);
    expect(bench.chat.drawn("inc-1/failure")).toMatch(/no decision is on record\. Nothing was changed on the node\. Run id: inc-1/);
  });
});

describe("how often", () => {
  test("a double click is one run, and the second click is answered", async () => {
    await bench.ask();
    const names = [bench.press("confirm", BOB), bench.press("confirm", BOB)];
    await bench.pass(300);
    expect(names.map((name) => bench.outcome(name))).toEqual(expect.arrayContaining(["approve", "closed"]));
    expect(bench.chat.whispered(BOB)).toHaveLength(1);
    expect([bench.node.fixRuns, bench.node.count("fix"), bench.outcome()]).toEqual([1, 1, "resolved"]);
    expect(await bench.events("approved")).toHaveLength(1);
  });

  test("the same click delivered twice is one click", async () => {
    await bench.ask();
    const id = bench.press("confirm", BOB);
    bench.press("confirm", BOB, { id });
    await bench.pass(300);
    expect([bench.node.fixRuns, bench.chat.whispers.length]).toEqual([1, 0]);
  });

  test("two approvers at the same moment are one run", async () => {
    await bench.ask();
    const names = [bench.press("confirm", BOB), bench.press("confirm", CAROL)];
    await bench.pass(300);
    expect(names.map((name) => bench.outcome(name))).toEqual(expect.arrayContaining(["approve", "closed"]));
    expect([bench.node.fixRuns, (await bench.proposal()).decisions.length]).toEqual([1, 1]);
    expect(bench.chat.whispers).toHaveLength(1);
  });

  test("approve and dismiss at the same moment: one of them counts, the other is told", async () => {
    await bench.ask();
    const names = [bench.press("dismiss", ALICE), bench.press("confirm", BOB)];
    await bench.pass(300);
    const outcomes = names.map((name) => bench.outcome(name));
    expect(outcomes.filter((outcome) => outcome === "closed")).toHaveLength(1);
    expect(bench.node.fixRuns).toBe(outcomes[1] === "approve" ? 1 : 0);
    expect(bench.outcome()).toBe(outcomes[1] === "approve" ? "resolved" : "dismissed");
    expect(bench.chat.whispers).toHaveLength(1);
  });

  test("a late click on a proposal that has run is told so", async () => {
    await bench.ask();
    await bench.click("confirm", BOB);
    expect(await bench.click("confirm", CAROL)).toBe("closed");
    expect(await bench.click("dismiss", BOB)).toBe("closed");
    expect(bench.chat.whispered(CAROL).join()).toContain("closed already (succeeded)");
    expect(bench.node.fixRuns).toBe(1);
  });
});

describe("other buttons", () => {
  test("preview shows the exact command, the check and the way back, and is on record", async () => {
    await bench.ask();
    expect(await bench.click("preview", MALLORY)).toBe("previewed");
    const data = bench.chat.modals[0]?.message.data;
    expect(data).toMatchObject({
      target: "node2",
      commands: [expect.stringContaining("-I FORWARD 1")],
      check: expect.stringContaining("CILIUM_FORWARD"),
      back: [expect.stringContaining("-A FORWARD")],
    });
    expect(await bench.events("previewed")).toHaveLength(1);
    expect((await bench.proposal()).state).toBe("pending");
  });

  test("again: another incident about the same target, asked by who clicked", async () => {
    await bench.ask();
    expect(await bench.click("again", BOB)).toBe("started");
    const [newest] = await bench.store.incidents(1);
    expect(newest).toMatchObject({ target: "node2", requester: BOB, state: "awaiting-approval" });
    expect(newest?.id).toMatch(/^inc-[0-9a-f]{12}$/);
    expect(bench.node.count("collect")).toBe(2);
  });

  test("a button of no proposal: answered with the run id, nothing done", async () => {
    await bench.ask();
    expect(await bench.click("confirm", BOB, { proposal: "inc-2-fix" })).toBe("failed");
    expect(await bench.click("confirm", BOB, { incident: "inc-2" })).toBe("failed");
    expect(bench.chat.whispered(BOB).join()).toContain("Run id: click-1");
    expect((await bench.proposal()).decisions).toEqual([]);
  });
});

test("who decides before netcheck has noted where it posted the buttons: they still go", async () => {
  await bench.close();
  bench = new Bench((usual) => ({
    store: intercept("store", usual.store, async (method, args, go) => {
      const [id, , change] = args as [string, unknown, { message?: unknown }];
      if (method === "store.transition" && change.message !== undefined) {
        const { hash, createdAt } = (await usual.store.proposal(id)) as Proposal;
        const decisions = [{ actor: BOB, decision: "approve" as const, at: createdAt, hash }];
        const event = { key: "approved/first", at: createdAt, actor: BOB, type: "approved", data: {} };
        await usual.store.transition(id, ["pending"], { state: "approved", decisions }, event);
      }
      return go();
    }),
  }));
  await bench.ask();
  // the decision was stored; now the click that made it wakes the triage
  expect(await bench.click("confirm", BOB)).toBe("approve");
  expect([bench.outcome(), bench.node.fixRuns, buttons()]).toEqual(["resolved", 1, false]);
});
