import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { enough, mayApprove, type Subject, terms } from "../../functions/triage/policy.ts";
import type { Decision } from "../../functions/triage/ports.ts";
import { ALICE, BOB, CAROL, configOf, MALLORY } from "./harness.ts";

const SUBJECT: Subject = { cluster: "prod-eu", target: "node2", fix: "move-cilium-forward-first", requester: ALICE };
const GROUPS: Record<string, string[]> = { S_SRE: [BOB.id], S_DEV: [ALICE.id] };
const members = async (group: string): Promise<string[]> => GROUPS[group] ?? [];

const rule = (id: string, more: Record<string, unknown> = {}) => ({ id, effect: "allow", approvers: ["*"], ...more });
const ask = (policy: unknown[], actor = BOB, subject = SUBJECT) => mayApprove(configOf(policy), subject, actor, members);
const may = async (policy: unknown[], actor = BOB, subject = SUBJECT): Promise<string> => {
  const ruling = await ask(policy, actor, subject);
  return `${ruling.ok ? "yes" : "no"}: ${ruling.statement}`;
};

describe("may this person approve", () => {
  test.each<[string, Record<string, unknown>, string]>([
    ["everything matches by default", {}, "yes: a"],
    ["a person", { approvers: [BOB.id] }, "yes: a"],
    ["a member of a group", { approvers: ["S_SRE"] }, "yes: a"],
    ["a group without the person", { approvers: ["S_DEV"] }, "no: default"],
    ["a group that cannot be resolved", { approvers: ["S_NONE"] }, "no: default"],
    ["somebody else", { approvers: [CAROL.id] }, "no: default"],
    ["a cluster by pattern", { clusters: ["prod-*"] }, "yes: a"],
    ["another cluster", { clusters: ["lab", "dev-*"] }, "no: default"],
    ["a target by pattern", { targets: ["node[0-9]"] }, "yes: a"],
    ["another target", { targets: ["node1"] }, "no: default"],
    ["a pattern matches whole names only", { targets: ["node"] }, "no: default"],
    ["a fix by pattern", { fixes: ["move-*"] }, "yes: a"],
    ["another fix", { fixes: ["detach-*"] }, "no: default"],
    ["the requester", { requesters: [ALICE.id] }, "yes: a"],
    ["a group of the requester", { requesters: ["S_DEV"] }, "yes: a"],
    ["another requester", { requesters: [CAROL.id, "S_SRE"] }, "no: default"],
  ])("%s", async (_, more, expected) => {
    expect(await may([rule("a", more)])).toBe(expected);
  });

  test("nothing allows, nobody may", async () => {
    expect(await ask([])).toEqual({ ok: false, statement: "default", reason: "no policy statement names you as an approver of this fix here" });
  });

  test.each([
    ["before", 0],
    ["after", 1],
  ])("a deny %s the allow wins", async (_, at) => {
    const policy = [rule("all")] as unknown[];
    policy.splice(at, 0, rule("no-bob", { effect: "deny", approvers: [BOB.id] }));
    expect(await may(policy)).toBe("no: no-bob");
    expect(await may(policy, CAROL)).toBe("yes: all");
  });

  test("a deny for what a group asks for holds", async () => {
    const policy = [rule("all"), rule("not-for-dev", { effect: "deny", requesters: ["S_DEV"] })];
    expect(await may(policy)).toBe("no: not-for-dev");
    expect(await may(policy, CAROL, { ...SUBJECT, requester: BOB })).toBe("yes: all");
    expect(await terms(configOf(policy), SUBJECT, members)).toMatchObject({ ok: false, statement: "not-for-dev" });
  });

  test("a deny about something else does not count", async () => {
    expect(await may([rule("all"), rule("frozen", { effect: "deny", clusters: ["lab"] })])).toBe("yes: all");
  });

  test("the requester needs a statement with selfApproval", async () => {
    expect(await may([rule("a")], ALICE)).toBe("no: a");
    expect(await may([rule("a"), rule("b", { selfApproval: true })], ALICE)).toBe("yes: b");
    expect(await may([rule("a", { selfApproval: true }), rule("b", { effect: "deny", approvers: [ALICE.id] })], ALICE)).toBe("no: b");
  });

  test("the statement that allows says how many are needed", async () => {
    expect(await ask([rule("a", { approvers: [CAROL.id] }), rule("b", { approvalsNeeded: 3 })])).toMatchObject({ statement: "b", approvalsNeeded: 3 });
  });

  test("whatever else a policy says: a deny for everybody denies everybody", async () => {
    const statement = fc.record({
      id: fc.constant("some"),
      effect: fc.constantFrom("allow", "deny"),
      approvers: fc.array(fc.constantFrom("*", "S_SRE", BOB.id, MALLORY.id), { minLength: 1 }),
      selfApproval: fc.boolean(),
      targets: fc.array(fc.constantFrom("*", "node2", "node1"), { minLength: 1 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(statement), fc.nat(), fc.constantFrom(ALICE, BOB, MALLORY), async (policy, at, actor) => {
        const banned = [...policy] as unknown[];
        banned.splice(at % (policy.length + 1), 0, rule("ban", { effect: "deny" }));
        expect((await ask(banned, actor)).ok).toBe(false);
        expect((await terms(configOf(banned), SUBJECT, members)).ok).toBe(false);
        // and nobody may who is named nowhere
        const named = policy.some(({ effect, approvers }) => effect === "allow" && approvers.some((one) => one === "*"));
        if (!named) expect((await ask(policy, CAROL)).ok).toBe(false);
      }),
      { seed: 1, numRuns: 200 },
    );
  });
});

describe("can anybody approve it", () => {
  test("the strictest of the statements that allow it sets the terms", async () => {
    const policy = [
      rule("a", { approvers: [BOB.id, "S_SRE"], approvalsNeeded: 2, expiresMinutes: 60 }),
      rule("b", { approvers: [BOB.id], expiresMinutes: 30 }),
      rule("elsewhere", { clusters: ["lab"], approvalsNeeded: 5, expiresMinutes: 1 }),
    ];
    expect(await terms(configOf(policy), SUBJECT, members)).toEqual({ ok: true, approvalsNeeded: 2, expiresMinutes: 30, approvers: [BOB.id, "S_SRE"] });
  });

  test("a deny of some people leaves the others", async () => {
    expect(await terms(configOf([rule("a"), rule("b", { effect: "deny", approvers: [BOB.id] })]), SUBJECT, members)).toMatchObject({ ok: true });
  });

  test("no statement", async () => {
    expect(await terms(configOf([]), SUBJECT, members)).toMatchObject({ ok: false, statement: "default" });
  });
});

describe("are there enough approvals", () => {
  const by = (actor: typeof BOB, decision: Decision["decision"] = "approve"): Decision => ({ actor, decision, at: "2026-01-01T00:00:00Z", hash: "h" });

  test.each<[Decision[], number, boolean]>([
    [[], 1, false],
    [[by(BOB)], 1, true],
    [[by(BOB), by(BOB)], 2, false],
    [[by(BOB), by({ ...BOB, team: "T_OTHER" })], 2, false],
    [[by(BOB), by(CAROL)], 2, true],
    [[by(BOB), by(CAROL, "dismiss")], 2, false],
  ])("%j of %d: %s", (decisions, needed, expected) => {
    expect(enough(decisions, needed)).toBe(expected);
  });
});
