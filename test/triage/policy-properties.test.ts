import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Config, type Statement } from "../../functions/triage/config.ts";
import { enough, limits, type Members, mayApprove, type Ruling, type Subject, terms } from "../../functions/triage/policy.ts";
import type { Actor, Decision } from "../../functions/triage/ports.ts";

/** What must hold of any policy, any person and any moment. */

const person = (id: string): Actor => ({ id, team: "T_LOCAL" });
const PEOPLE = ["U_ALICE", "U_BOB", "U_CAROL", "U_DAVE"].map(person);
const [ALICE] = PEOPLE as [Actor];
const FRIDAY = "2026-12-04";
const parse = (policy: unknown[]) =>
  Config.safeParse({ clusters: { eu: { transport: "ssm", targets: { n1: {}, n2: {} } }, us: { transport: "ssm", targets: { n1: {} } } }, policy });

const someone = fc.constantFrom("*", "U_ALICE", "U_BOB", "U_CAROL", "S_ONE", "S_TWO");
const people = fc.uniqueArray(someone, { minLength: 1, maxLength: 3 });
const named = fc.uniqueArray(
  someone.filter((id) => id !== "*"),
  { minLength: 1, maxLength: 2 },
);
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 });
const windows = fc.constantFrom(
  [{ days: ["fri"], from: "18:00", to: "08:00", timeZone: "Europe/Berlin" }],
  [{ from: "2026-12-01", to: "2026-12-04", timeZone: "UTC" }],
  [{ from: "2026-11-01", to: "2026-11-02", timeZone: "UTC" }],
);
const about = {
  clusters: fc.constantFrom(["*"], ["eu"], ["*"], ["us"], ["e*", "us"]),
  targets: fc.constantFrom(["*"], ["*"], ["n1"]),
  fixes: fc.constantFrom(["*"], ["*"], ["*"], ["move-*"], ["other"]),
  risks: fc.constantFrom(["low", "disruptive"], ["low"]),
  requesters: fc.oneof({ arbitrary: fc.constant(["*"]), weight: 3 }, { arbitrary: people, weight: 1 }),
  approvers: people,
  freezeWindows: optional(windows),
};
const deny = fc.record({ effect: fc.constant("deny"), ...about });
const allow = fc.record({
  effect: fc.constant("allow"),
  ...about,
  selfApproval: fc.boolean(),
  approvalsNeeded: fc.integer({ min: 1, max: 3 }),
  breakGlass: optional(fc.record({ who: named, reviewers: optional(named) })),
  maxNodes: optional(fc.constant({ most: 2, per: "1h" })),
  oneAtATime: fc.constantFrom("node", "cluster"),
});
type Drafts = readonly Record<string, unknown>[];
/** Without those that say nothing that could ever count: they do not load. */
const policies: fc.Arbitrary<readonly Statement[]> = fc
  .array(fc.oneof({ arbitrary: allow, weight: 3 }, { arbitrary: deny, weight: 1 }), { maxLength: 5 })
  .map((drafts: Drafts) => drafts.flatMap((draft, n) => parse([{ ...draft, id: `s${n}` }]).data?.policy ?? []));
const denies: fc.Arbitrary<Statement> = deny.map((draft) => parse([{ ...draft, id: "added" }]).data?.policy[0] as Statement);
/** Who is in which group; a group that nobody has a list for cannot be resolved. */
const groups: fc.Arbitrary<Record<string, readonly string[]>> = fc.record(
  { S_ONE: fc.subarray(PEOPLE.map(({ id }) => id)), S_TWO: fc.subarray(PEOPLE.map(({ id }) => id)) },
  { requiredKeys: [] },
);
const membersOf =
  (known: Record<string, readonly string[]>): Members =>
  async (group) => {
    const found = known[group];
    if (found === undefined) throw new Error("ratelimited");
    return found;
  };
const moments = fc.constantFrom(`${FRIDAY}T12:00Z`, `${FRIDAY}T20:00Z`, "2026-12-09T12:00Z").map((text) => new Date(text));
const cases = fc.record({ actor: fc.constantFrom(...PEOPLE), known: groups, at: moments, target: fc.constantFrom("n1", "n2") });

const configOf = (policy: readonly Statement[]): Config => ({ ...(parse([]).data as Config), policy: [...policy] });
interface Case {
  readonly actor: Actor;
  readonly known: Record<string, readonly string[]>;
  readonly at: Date;
  readonly target: string;
}
const subjectOf = ({ target }: Case): Subject => ({ cluster: "eu", target, fix: "move-it", requester: ALICE, risk: "low" });
const ask = (policy: readonly Statement[], one: Case): Promise<Ruling> => mayApprove(configOf(policy), subjectOf(one), one.actor, membersOf(one.known), one.at);
const termsOf = (policy: readonly Statement[], one: Case) => terms(configOf(policy), subjectOf(one), membersOf(one.known), one.at);
const without = <T extends Statement>(statement: T, key: string): T => Object.fromEntries(Object.entries(statement).filter(([name]) => name !== key)) as T;
const holds = <Ts extends [unknown, ...unknown[]]>(property: fc.IAsyncProperty<Ts>) => fc.assert(property, { seed: 1, numRuns: 400 });

describe("of any policy", () => {
  test("the cases are worth it: often allowed, often refused, in each way", async () => {
    const seen: Record<string, number> = {};
    await holds(
      fc.asyncProperty(policies, cases, async (policy, one) => {
        const ruling = await ask(policy, one);
        const way = ruling.ok
          ? ruling.breakGlass
            ? "glass"
            : "allowed"
          : /denies|ruled out|frozen|second person|not known|names you/.exec(ruling.reason)?.[0];
        seen[String(way)] = (seen[String(way)] ?? 0) + 1;
      }),
    );
    expect(Object.keys(seen).toSorted()).toEqual(["allowed", "denies", "frozen", "glass", "names you", "not known", "ruled out", "second person"]);
    expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).toBeGreaterThan(2);
  });

  test("a deny that is added never allows more, nor makes anything easier", async () => {
    await holds(
      fc.asyncProperty(policies, denies, cases, async (policy, added, one) => {
        const [before, after] = [await ask(policy, one), await ask([...policy, added], one)];
        if (after.ok) expect(after).toEqual(before);
        const [open, closed] = [await termsOf(policy, one), await termsOf([...policy, added], one)];
        if (closed.ok) expect({ ...closed, policy: "" }).toEqual({ ...open, policy: "" });
      }),
    );
  });

  test("what nothing allows is denied: without an allow, and for whom nobody names", async () => {
    await holds(
      fc.asyncProperty(policies, cases, async (policy, one) => {
        const denying = policy.filter(({ effect }) => effect === "deny");
        expect((await ask(denying, one)).ok).toBe(false);
        expect((await termsOf(denying, one)).ok).toBe(false);
        const stranger = { ...one, actor: person("U_STRANGER") };
        const everybody = policy.some(({ effect, approvers }) => effect === "allow" && approvers.includes("*"));
        if (!everybody) expect((await ask(policy, stranger)).ok).toBe(false);
      }),
    );
  });

  test("where nobody can approve, nobody may", async () => {
    await holds(
      fc.asyncProperty(policies, cases, async (policy, one) => {
        const possible = await termsOf(policy, one);
        for (const actor of PEOPLE) {
          const ruling = await ask(policy, { ...one, actor });
          if (!possible.ok) expect(ruling.ok).toBe(false);
          // and the number is the same for everybody who may
          else if (ruling.ok) expect(ruling.approvalsNeeded).toBe(ruling.breakGlass ? 1 : possible.approvalsNeeded);
        }
      }),
    );
  });

  test("the order of the statements does not matter, not even to the words", async () => {
    await holds(
      fc.asyncProperty(policies, fc.infiniteStream(fc.nat()), cases, async (policy, dice, one) => {
        const shuffled = policy.map((statement) => ({ statement, at: dice.next().value as number })).toSorted((a, b) => a.at - b.at);
        const other = shuffled.map(({ statement }) => statement);
        expect(await ask(other, one)).toEqual(await ask(policy, one));
        expect(await termsOf(other, one)).toEqual(await termsOf(policy, one));
        const limitsOf = (statements: readonly Statement[]) => limits(configOf(statements), subjectOf(one), membersOf(one.known), one.at);
        expect(await limitsOf(other)).toEqual(await limitsOf(policy));
      }),
    );
  });

  test("nobody approves the own request without the flag, but by breaking the glass", async () => {
    await holds(
      fc.asyncProperty(policies, cases, async (policy, one) => {
        const own = { ...one, actor: ALICE };
        const ruling = await ask(policy, own);
        if (!ruling.ok || ruling.breakGlass) return;
        const flagged = policy.filter((statement) => statement.effect === "allow" && statement.selfApproval);
        expect(flagged.map(({ id }) => id)).toContain(ruling.statement);
        expect((await ask(flagged, own)).ok).toBe(true);
      }),
    );
  });

  test("the glass is never broken silently: what is not flagged is allowed without it, too", async () => {
    await holds(
      fc.asyncProperty(policies, cases, async (policy, one) => {
        const solid = policy.map((statement) => without(statement, "breakGlass"));
        const [ruling, unbroken] = [await ask(policy, one), await ask(solid, one)];
        expect(unbroken.ok).toBe(ruling.ok && !ruling.breakGlass);
        if (unbroken.ok) expect(unbroken).toEqual(ruling);
      }),
    );
  });

  test("a freeze never allows more", async () => {
    await holds(
      fc.asyncProperty(policies, cases, async (policy, one) => {
        const thawed = policy.map((statement) => (statement.effect === "allow" ? without(statement, "freezeWindows") : statement));
        const [ruling, free] = [await ask(policy, one), await ask(thawed, one)];
        if (ruling.ok) expect(free.ok).toBe(true);
        if (ruling.ok && !ruling.breakGlass) expect(free.ok && free.approvalsNeeded).toBe(ruling.approvalsNeeded);
      }),
    );
  });

  test("what is allowed while a group cannot be resolved is allowed whoever is in it", async () => {
    await holds(
      fc.asyncProperty(policies, cases, groups, async (policy, one, more) => {
        const [before, after] = [await ask(policy, one), await ask(policy, { ...one, known: { ...more, ...one.known } })];
        if (before.ok) expect(after.ok).toBe(true);
        // and by no fewer people, and within no fewer limits
        if (before.ok && after.ok && before.breakGlass === after.breakGlass) expect(before.approvalsNeeded).toBeGreaterThanOrEqual(after.approvalsNeeded);
        const scopes = async (known: Case["known"]) => (await limits(configOf(policy), subjectOf(one), membersOf(known), one.at)).map(({ scope }) => scope);
        expect(await scopes(one.known)).toEqual(expect.arrayContaining(await scopes({ ...more, ...one.known })));
      }),
    );
  });

  test("approvals count by person, however often and from wherever they come", () => {
    const decision: fc.Arbitrary<Decision> = fc.record({
      actor: fc.record({ id: fc.constantFrom("U_ALICE", "U_BOB", "U_CAROL"), team: fc.constantFrom("T_ONE", "T_TWO") }),
      decision: fc.constantFrom("approve", "dismiss"),
      at: fc.constantFrom("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"),
      hash: fc.constant("h"),
    });
    fc.assert(
      fc.property(fc.array(decision, { maxLength: 8 }), fc.integer({ min: 1, max: 4 }), (decisions, needed) => {
        let distinct = 0;
        for (const id of ["U_ALICE", "U_BOB", "U_CAROL"]) if (decisions.some((one) => one.actor.id === id && one.decision === "approve")) distinct++;
        expect(enough(decisions, needed)).toBe(distinct >= needed);
        expect(enough([...decisions, ...decisions], needed)).toBe(enough(decisions, needed));
      }),
      { seed: 1, numRuns: 500 },
    );
  });
});
