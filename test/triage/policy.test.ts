import { describe, expect, test } from "vitest";
import { Config } from "../../functions/triage/config.ts";
import { enough, explain, limits, mayApprove, mayReview, type Subject, terms } from "../../functions/triage/policy.ts";
import type { Decision } from "../../functions/triage/ports.ts";
import { ALICE, BOB, CAROL, MALLORY } from "./harness.ts";

const SUBJECT: Subject = { cluster: "prod-eu", target: "node2", fix: "move-cilium-forward-first", requester: ALICE, risk: "low" };
const GROUPS: Record<string, string[]> = { S_SRE: [BOB.id], S_DEV: [ALICE.id], S_EMPTY: [] };
const members = async (group: string): Promise<string[]> => {
  const found = GROUPS[group];
  if (found === undefined) throw new Error("no_such_subteam");
  return found;
};
const NOON = new Date("2026-12-02T12:00:00Z");
/** Wednesday 2 December 2026, 12:00 UTC lies in it. */
const FREEZE = [{ days: ["wed"], from: "08:00", to: "18:00", timeZone: "Europe/Berlin" }];

const nodes = { node1: {}, node2: {} };
const configOf = (policy: unknown[]): Config =>
  Config.parse({ clusters: { "prod-eu": { transport: "ssm", targets: nodes }, lab: { transport: "replay", targets: nodes } }, policy });
const rule = (id: string, more: Record<string, unknown> = {}) => ({ id, effect: "allow", approvers: ["*"], ...more });
const ask = (policy: unknown[], actor = BOB, subject = SUBJECT, at = NOON) => mayApprove(configOf(policy), subject, actor, members, at);
const may = async (policy: unknown[], actor = BOB, subject = SUBJECT): Promise<string> => {
  const ruling = await ask(policy, actor, subject);
  return `${ruling.ok ? (ruling.breakGlass ? "glass" : "yes") : "no"}: ${ruling.statement}`;
};
const reason = async (policy: unknown[], actor = BOB): Promise<string> => {
  const ruling = await ask(policy, actor);
  return ruling.ok ? "" : ruling.reason;
};
const termsOf = (policy: unknown[], subject = SUBJECT, at = NOON) => terms(configOf(policy), subject, members, at);

describe("may this person approve", () => {
  test.each<[string, Record<string, unknown>, string]>([
    ["everything matches by default", {}, "yes: a"],
    ["a person", { approvers: [BOB.id] }, "yes: a"],
    ["a member of a group", { approvers: ["S_SRE"] }, "yes: a"],
    ["a group without the person", { approvers: ["S_DEV"] }, "no: default"],
    ["somebody else", { approvers: [CAROL.id] }, "no: default"],
    ["a cluster by pattern", { clusters: ["prod-*"] }, "yes: a"],
    ["another cluster", { clusters: ["lab", "dev-*"] }, "no: default"],
    ["a target by pattern", { targets: ["node[0-9]"] }, "yes: a"],
    ["another target", { targets: ["node1"] }, "no: default"],
    ["a pattern matches whole names only", { targets: ["ode2", "node1"] }, "no: default"],
    ["a fix by pattern", { fixes: ["move-*"] }, "yes: a"],
    ["another fix", { fixes: ["detach-*"] }, "no: default"],
    ["fixes of this risk", { risks: ["low"] }, "yes: a"],
    ["fixes of another risk", { risks: ["disruptive"] }, "no: default"],
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
    expect(await termsOf(policy)).toMatchObject({ ok: false, statement: "not-for-dev" });
  });

  test("a deny about something else does not count", async () => {
    expect(await may([rule("all"), rule("frozen", { effect: "deny", clusters: ["lab"] })])).toBe("yes: all");
  });

  test("the requester needs a statement with selfApproval", async () => {
    expect(await may([rule("a")], ALICE)).toBe("no: a");
    expect(await reason([rule("a")], ALICE)).toBe('you asked for this triage, and the policy statement "a" wants a second person to approve');
    expect(await may([rule("a"), rule("b", { selfApproval: true })], ALICE)).toBe("yes: b");
    expect(await may([rule("a", { selfApproval: true }), rule("b", { effect: "deny", approvers: [ALICE.id] })], ALICE)).toBe("no: b");
  });

  test("the strictest statement says how many are needed, for everybody", async () => {
    const policy = [rule("a", { approvers: ["S_SRE"] }), rule("b", { approvalsNeeded: 3 })];
    expect(await ask(policy)).toEqual({ ok: true, statement: "b", approvalsNeeded: 3, breakGlass: false });
    const apart = [rule("a", { approvers: [BOB.id] }), rule("b", { approvers: ["S_DEV"], approvalsNeeded: 2, freezeWindows: FREEZE })];
    expect(await ask(apart)).toMatchObject({ statement: "a", approvalsNeeded: 2 });
  });
});

describe("a group that cannot be resolved", () => {
  test("lets nobody in, and the refusal says what is not known", async () => {
    expect(await may([rule("a", { approvers: ["S_NONE"] })])).toBe("no: a");
    expect(await reason([rule("a", { approvers: ["S_NONE"] })])).toBe(
      'it is not known whether you may approve by the policy statement "a": the members of the user group S_NONE could not be looked up (no_such_subteam). Try again later',
    );
    expect(await reason([rule("a", { requesters: ["S_NONE"] })])).toContain("not known whether it is about requests of U_ALICE");
    expect(await reason([rule("a", { approvers: ["S_EMPTY"] })])).toContain("names you");
    expect(await termsOf([rule("a", { requesters: ["S_NONE"] })])).toMatchObject({
      ok: false,
      reason: expect.stringContaining("S_NONE could not be looked up"),
    });
  });

  test("does not matter where another name decides", async () => {
    expect(await may([rule("a", { approvers: ["S_NONE", BOB.id] })])).toBe("yes: a");
    expect(await may([rule("a", { approvers: ["S_NONE"] }), rule("b")])).toBe("yes: b");
    expect(await may([rule("a", { approvers: ["S_NONE", "S_SRE"] })])).toBe("yes: a");
  });

  test("lets nobody out of a deny that may be meant for them", async () => {
    const denied = [rule("all"), rule("contractors", { effect: "deny", approvers: ["S_NONE"] })];
    expect(await may(denied)).toBe("no: contractors");
    expect(await reason(denied)).toBe(
      'the policy statement "contractors" may deny it to you, and that cannot be ruled out: the members of the user group S_NONE could not be looked up (no_such_subteam)',
    );
    const asked = [rule("all"), rule("interns", { effect: "deny", requesters: ["S_NONE"] })];
    expect(await may(asked)).toBe("no: interns");
    expect(await termsOf(asked)).toMatchObject({ ok: false, reason: expect.stringContaining("cannot be ruled out") });
    expect(await may([rule("all"), rule("elsewhere", { effect: "deny", clusters: ["lab"], requesters: ["S_NONE"] })])).toBe("yes: all");
  });

  test("makes nothing easier: the terms and limits of a statement that may be about the request count", async () => {
    const strict = { approvalsNeeded: 2, expires: "10m", maxNodes: { most: 1 } };
    const policy = [rule("all"), rule("of-trainees", { requesters: ["S_NONE"], ...strict })];
    expect(await ask(policy)).toMatchObject({ ok: true, statement: "all", approvalsNeeded: 2 });
    expect(await termsOf(policy)).toMatchObject({ ok: true, approvalsNeeded: 2, expiresMinutes: 10 });
    expect((await limits(configOf(policy), SUBJECT, members, NOON)).map(({ scope }) => scope)).toEqual(["nodes/of-trainees/prod-eu"]);
    const others = [
      rule("all"),
      rule("of-others", { requesters: ["S_SRE"], ...strict }),
      rule("elsewhere", { clusters: ["lab"], requesters: ["S_NONE"], ...strict }),
    ];
    expect(await ask(others)).toMatchObject({ ok: true, statement: "all", approvalsNeeded: 1 });
    expect(await termsOf(others)).toMatchObject({ ok: true, approvalsNeeded: 1, expiresMinutes: 60 });
    expect(await limits(configOf(others), SUBJECT, members, NOON)).toEqual([]);
  });

  test("is asked for once for one question, and again for the next", async () => {
    const asked: string[] = [];
    const counting = async (group: string) => {
      asked.push(group);
      return members(group);
    };
    const config = configOf([rule("a", { approvers: ["S_EMPTY", "S_SRE"] }), rule("b", { approvers: ["S_SRE"] })]);
    await mayApprove(config, SUBJECT, BOB, counting, NOON);
    expect(asked).toEqual(["S_EMPTY", "S_SRE"]);
    await mayApprove(config, SUBJECT, BOB, counting, NOON);
    expect(asked).toHaveLength(4);
  });
});

describe("freeze windows", () => {
  const EVENING = new Date("2026-12-02T17:00:00Z");
  const words = "on wed from 08:00 to 18:00, Europe/Berlin; it is frozen until 2026-12-02 18:00 (Europe/Berlin)";

  test("an allow does not allow in them, and says until when", async () => {
    const policy = [rule("prod", { freezeWindows: FREEZE })];
    expect(await reason(policy)).toBe(`the policy statement "prod" does not allow it in its freeze window ${words}`);
    expect(await termsOf(policy)).toEqual({ ok: false, statement: "prod", reason: await reason(policy) });
    expect(await ask(policy, BOB, SUBJECT, EVENING)).toMatchObject({ ok: true, statement: "prod" });
    expect(await termsOf(policy, SUBJECT, EVENING)).toMatchObject({ ok: true });
    expect(await may([...policy, rule("always")])).toBe("yes: always");
  });

  test("a deny denies in them, and only in them", async () => {
    const policy = [rule("all"), rule("release", { effect: "deny", freezeWindows: FREEZE })];
    expect(await reason(policy)).toBe(`the policy statement "release" denies it to you in its freeze window ${words}`);
    expect(await termsOf(policy)).toMatchObject({ ok: false, reason: `the policy statement "release" forbids this fix here in its freeze window ${words}` });
    expect(await ask(policy, BOB, SUBJECT, EVENING)).toMatchObject({ ok: true });
    expect(await termsOf(policy, SUBJECT, EVENING)).toMatchObject({ ok: true });
  });

  test("a freeze does not make it easier: the frozen statement's number counts", async () => {
    const policy = [rule("strict", { approvalsNeeded: 2, freezeWindows: FREEZE }), rule("always")];
    expect(await ask(policy)).toMatchObject({ statement: "always", approvalsNeeded: 2 });
    expect(await termsOf(policy)).toMatchObject({ approvalsNeeded: 2, breakGlass: false });
  });
});

describe("breaking the glass", () => {
  const glass = { breakGlass: { who: [CAROL.id, ALICE.id] } };

  test.each<[string, unknown[], typeof BOB, string]>([
    ["not an approver", [rule("a", { approvers: [BOB.id], ...glass })], CAROL, "glass: a"],
    ["without a second person", [rule("a", { approvers: ["*"], ...glass })], ALICE, "glass: a"],
    ["in a freeze window", [rule("a", { approvers: [CAROL.id], freezeWindows: FREEZE, ...glass })], CAROL, "glass: a"],
    ["not needed", [rule("a", { approvers: [CAROL.id, BOB.id], approvalsNeeded: 2, ...glass })], CAROL, "yes: a"],
    ["not named", [rule("a", { approvers: [CAROL.id], freezeWindows: FREEZE, ...glass })], BOB, "no: default"],
    ["over a deny: never", [rule("a", glass), rule("b", { effect: "deny", approvers: [CAROL.id] })], CAROL, "no: b"],
    ["of a statement about something else", [rule("a", { clusters: ["lab"], ...glass })], CAROL, "no: default"],
    ["another statement allows it as usual", [rule("a", { approvers: [BOB.id], ...glass }), rule("b", { approvers: [CAROL.id] })], CAROL, "yes: b"],
  ])("%s", async (_, policy, actor, expected) => {
    expect(await may(policy, actor)).toBe(expected);
  });

  test("one person is enough", async () => {
    expect(await ask([rule("a", { approvers: ["S_SRE"], approvalsNeeded: 2, ...glass })], CAROL)).toEqual({
      ok: true,
      statement: "a",
      approvalsNeeded: 1,
      breakGlass: true,
    });
  });

  test("where nobody else may approve now, the terms say who may break it", async () => {
    const policy = [rule("a", { approvers: ["S_SRE"], approvalsNeeded: 2, freezeWindows: FREEZE, ...glass })];
    expect(await termsOf(policy)).toMatchObject({ ok: true, breakGlass: true, approvalsNeeded: 1, approvers: [CAROL.id, ALICE.id] });
  });

  const review = (policy: unknown[], actor = BOB, broke = [CAROL.id]) => mayReview(configOf(policy), SUBJECT, broke, actor, members);
  test("the approvers review it, or those who are named; never who broke it", async () => {
    expect(await review([rule("a", { approvers: ["S_SRE"], ...glass })])).toEqual({ ok: true, statement: "a" });
    expect(await review([rule("a", { approvers: ["S_SRE"], ...glass })], CAROL)).toMatchObject({ ok: false, reason: expect.stringContaining("yourself") });
    expect(await review([rule("a", { approvers: ["S_SRE"], ...glass })], MALLORY)).toMatchObject({ ok: false });
    const named = [rule("a", { approvers: ["S_SRE"], breakGlass: { who: [CAROL.id], reviewers: [MALLORY.id, CAROL.id] } })];
    expect(await review(named)).toMatchObject({ ok: false, reason: "no policy statement names you as a reviewer of this fix here" });
    expect(await review(named, MALLORY)).toMatchObject({ ok: true });
    expect(await review(named, CAROL)).toMatchObject({ ok: false });
  });

  test("a review stays possible when the policy no longer has a glass to break; an unknown group is told", async () => {
    expect(await review([rule("a", { approvers: ["S_SRE"] })])).toMatchObject({ ok: true });
    expect(await review([rule("a", { approvers: ["S_SRE"] }), rule("b", { approvers: [MALLORY.id], ...glass })])).toMatchObject({ ok: false });
    expect(await review([rule("a", { approvers: ["S_NONE"], ...glass })])).toMatchObject({ ok: false, reason: expect.stringContaining("S_NONE") });
  });
});

describe("can anybody approve it", () => {
  test("the strictest of the statements that allow it sets the terms", async () => {
    const policy = [
      rule("a", { approvers: [BOB.id, "S_SRE"], approvalsNeeded: 2, expires: "60m", remind: "20m" }),
      rule("b", { approvers: [BOB.id], expires: "30m", remind: "10m" }),
      rule("elsewhere", { clusters: ["lab"], approvalsNeeded: 5, expires: "1m" }),
    ];
    expect(await termsOf(policy)).toEqual({
      ok: true,
      approvalsNeeded: 2,
      expiresMinutes: 30,
      remindMinutes: 10,
      approvers: [BOB.id, "S_SRE"],
      policy: expect.stringMatching(/^[0-9a-f]{64}$/),
      breakGlass: false,
    });
    expect(await termsOf([rule("a")])).not.toHaveProperty("remindMinutes");
  });

  test("a deny of some people leaves the others", async () => {
    expect(await termsOf([rule("a"), rule("b", { effect: "deny", approvers: [BOB.id] })])).toMatchObject({ ok: true });
  });

  test("no statement", async () => {
    expect(await termsOf([])).toMatchObject({ ok: false, statement: "default" });
  });

  test("nobody is left but the person who asked", async () => {
    expect(await termsOf([rule("a", { approvers: [ALICE.id] })])).toMatchObject({
      ok: false,
      statement: "a",
      reason: expect.stringContaining("second person"),
    });
    expect(await termsOf([rule("a", { approvers: [ALICE.id], selfApproval: true })])).toMatchObject({ ok: true, approvers: [ALICE.id] });
  });

  test("the policy's hash: another with any change of a statement about it, the same with others, in any order, whoever asks", async () => {
    const hash = async (policy: unknown[], subject = SUBJECT): Promise<string> => {
      const found = await termsOf(policy, subject);
      return found.ok ? found.policy : "";
    };
    const [a, b] = [rule("a"), rule("b", { effect: "deny", approvers: [MALLORY.id] })];
    const usual = await hash([a, b]);
    expect(await hash([b, a])).toBe(usual);
    expect(await hash([a, b], { ...SUBJECT, requester: BOB })).toBe(usual);
    expect(await hash([a, b, rule("c", { clusters: ["lab"] })])).toBe(usual);
    const others = [[a], [a, b, rule("c")], [{ ...a, expires: "59m" }, b], [a, { ...b, freezeWindows: FREEZE }], [{ ...a, breakGlass: { who: [BOB.id] } }, b]];
    const hashes = await Promise.all(others.map((policy) => hash(policy)));
    expect(new Set([usual, ...hashes]).size).toBe(1 + others.length);
  });
});

describe("limits", () => {
  const limitsOf = (policy: unknown[], subject = SUBJECT) => limits(configOf(policy), subject, members, NOON);

  test("of all statements that allow it, each in its scope", async () => {
    const policy = [
      rule("a", { maxNodes: { most: 3 }, rate: { most: 1, per: "1d" }, oneAtATime: "cluster" }),
      rule("b", { rate: { most: 5 }, oneAtATime: "cluster", freezeWindows: FREEZE }),
      rule("c", { clusters: ["lab"], rate: { most: 1 } }),
      rule("d", { requesters: [BOB.id], rate: { most: 1 } }),
      rule("e", { effect: "deny", approvers: [MALLORY.id] }),
    ];
    expect(await limitsOf(policy)).toEqual([
      { statement: "a", scope: "running/prod-eu", holder: "proposal", most: 1, words: 'one fix at a time in prod-eu (statement "a")' },
      { statement: "a", scope: "nodes/a/prod-eu", holder: "target", most: 3, keepMs: 3_600_000, words: 'at most 3 nodes of prod-eu within 1h (statement "a")' },
      { statement: "a", scope: "rate/a/prod-eu", holder: "proposal", most: 1, keepMs: 86_400_000, words: 'at most 1 fix in prod-eu within 1d (statement "a")' },
      {
        statement: "b",
        scope: "rate/b/prod-eu",
        holder: "proposal",
        most: 5,
        keepMs: 3_600_000,
        words: 'at most 5 fixes in prod-eu within 1h (statement "b")',
      },
    ]);
    expect(await limitsOf([rule("a")])).toEqual([]);
  });
});

describe("the explanation", () => {
  test("one judgement for each statement, in the order of the file, each with its reason", async () => {
    const policy = [
      rule("deny-mallory", { effect: "deny", approvers: [MALLORY.id] }),
      rule("lab", { clusters: ["lab"] }),
      rule("edge", { targets: ["node1"] }),
      rule("risky", { risks: ["disruptive"] }),
      rule("of-carol", { requesters: [CAROL.id] }),
      rule("weekend", { effect: "deny", freezeWindows: [{ days: ["sat"], from: "00:00", to: "24:00", timeZone: "UTC" }] }),
      rule("frozen", { freezeWindows: FREEZE }),
      rule("unknown", { approvers: ["S_NONE"] }),
      rule("glass", { approvers: ["S_EMPTY"], breakGlass: { who: [BOB.id] } }),
      rule("carol", { approvers: [CAROL.id] }),
      rule("bob", { approvers: [BOB.id] }),
    ];
    const { ruling, judgements } = await explain(configOf(policy), SUBJECT, BOB, members, NOON);
    expect(ruling).toMatchObject({ ok: true, statement: "bob" });
    expect(judgements.map(({ statement, says }) => [statement, says])).toEqual([
      ["deny-mallory", "does-not-name-you"],
      ["lab", "not-about-it"],
      ["edge", "not-about-it"],
      ["risky", "not-about-it"],
      ["of-carol", "not-about-it"],
      ["weekend", "not-in-force"],
      ["frozen", "frozen"],
      ["unknown", "group-unknown"],
      ["glass", "allows-by-break-glass"],
      ["carol", "does-not-name-you"],
      ["bob", "allows"],
    ]);
    expect(judgements[1]?.why).toBe("clusters (lab) do not include prod-eu");
    expect(judgements[4]?.why).toBe("requesters (U_CAROL) do not include U_ALICE");
    expect(judgements[8]?.why).toBe("you may break the glass; without it: approvers (S_EMPTY) do not include you");
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
