import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type AuditedStore, verifyAudit, verifyStore } from "../../functions/store/verify.ts";
import type { Actor, AuditEvent } from "../../functions/triage/ports.ts";
import { ALICE, BOB, draft, incident, proposal } from "./drafts.ts";

/** A store under test: two connections to the same data, and what takes it away again. */
export interface Subject {
  readonly store: AuditedStore;
  readonly other: AuditedStore;
  readonly remove: () => Promise<void>;
}

const keys = (events: readonly AuditEvent[]) => events.map(({ key }) => key);

/** What every store does, whatever it is made of. */
export function storeContract(name: string, make: () => Promise<Subject>): void {
  describe(`store contract: ${name}`, () => {
    let subject: Subject;
    let store: AuditedStore;
    beforeEach(async () => {
      subject = await make();
      store = subject.store;
    });
    afterEach(async () => {
      // Whatever a test did, the trail it left is whole.
      expect(await verifyStore(store)).toEqual([]);
      await subject.remove();
    });

    describe("documents", () => {
      test("changed by what is stored; taken away; kinds are apart", async () => {
        expect(await store.kept("mute", "a/b")).toBeUndefined();
        expect(await store.change<number[]>("mute", "a/b", (old = []) => [...old, 1])).toEqual([1]);
        expect(await subject.other.change<number[]>("mute", "a/b", (old = []) => [...old, 2])).toEqual([1, 2]);
        expect(await store.kept("mute", "a/b")).toEqual([1, 2]);
        expect(await store.kept("feedback", "a/b")).toBeUndefined();
        expect(await store.change("mute", "a/b", () => undefined)).toBeUndefined();
        expect([await store.kept("mute", "a/b"), await store.list("mute", { limit: 5 })]).toEqual([undefined, []]);
        expect(await store.change("mute", "a/b", (old) => ({ was: old ?? null }))).toEqual({ was: null });
      });

      test("changed twenty times at the same moment, no change is lost", async () => {
        const add = (to: AuditedStore) => to.change<number>("count", "x", (old = 0) => old + 1);
        await Promise.all(Array.from({ length: 20 }, (_, i) => add(i % 2 === 0 ? store : subject.other)));
        expect(await store.kept("count", "x")).toBe(20);
      });

      test("listed by prefix, in order or against it, up to the limit, without what was taken away", async () => {
        for (const key of ["b/2", "a/%", "b/1", "b/3", "B/4", "b", "c/1"]) await store.change("seen", key, () => ({ key }));
        await store.change("seen", "b/2", () => undefined);
        const keysOf = async (options: Parameters<typeof store.list>[1]) => (await store.list<{ key: string }>("seen", options)).map(({ key }) => key);
        expect(await keysOf({ prefix: "b/", limit: 10 })).toEqual(["b/1", "b/3"]);
        expect(await keysOf({ prefix: "b/", limit: 1, newestFirst: true })).toEqual(["b/3"]);
        expect(await keysOf({ limit: 10 })).toEqual(["B/4", "a/%", "b", "b/1", "b/3", "c/1"]);
        expect(await keysOf({ prefix: "a/_", limit: 10 })).toEqual([]);
      });

      test.each([
        ["Mute", "x"],
        ["mute", ""],
        ["mute", "x".repeat(501)],
      ])("%j %.10s is refused", async (kind, key) => {
        await expect(store.change(kind, key, () => 1)).rejects.toThrow(RangeError);
        await expect(store.kept(kind, key)).rejects.toThrow(RangeError);
      });
    });

    describe("incidents", () => {
      test("the first to open one makes it, with its event; later ones get what is stored", async () => {
        expect(await store.incident("i1")).toBeUndefined();
        expect(await store.open(incident("i1"), draft("incident-opened"))).toEqual(incident("i1"));
        expect(await store.open(incident("i1", { target: "node9" }), draft("incident-opened/again"))).toEqual(incident("i1"));
        expect(await subject.other.incident("i1")).toEqual(incident("i1"));
        expect(keys(await store.audit("i1"))).toEqual(["incident-opened"]);
      });

      test("opened twice at the same moment, there is one", async () => {
        const made = await Promise.all([
          store.open(incident("i1", { target: "node1" }), draft("incident-opened")),
          subject.other.open(incident("i1", { target: "node2" }), draft("incident-opened")),
        ]);
        expect(made[0]).toEqual(made[1]);
        expect(await store.audit("i1")).toHaveLength(1);
      });

      test("newest first, up to the limit", async () => {
        for (const [id, minute] of [
          ["i1", "01"],
          ["i3", "03"],
          ["i2", "02"],
        ] as const)
          await store.open(incident(id, { createdAt: `2026-01-01T00:${minute}:00.000Z` }), draft("incident-opened"));
        expect((await store.incidents(2)).map(({ id }) => id)).toEqual(["i3", "i2"]);
        expect(await store.incidents(10)).toHaveLength(3);
      });

      test("a change keeps the other fields and is recorded; without an incident there is no change", async () => {
        await store.open(incident("i1"), draft("incident-opened"));
        const thread = { channel: "C_INCIDENTS", ts: "1.000100" };
        const changed = await store.update("i1", { state: "diagnosed", thread }, [draft("diagnosed"), draft("collected")]);
        expect(changed).toEqual(incident("i1", { state: "diagnosed", thread }));
        expect(await subject.other.incident("i1")).toEqual(changed);
        expect(keys(await store.audit("i1"))).toEqual(["incident-opened", "diagnosed", "collected"]);
        await expect(store.update("i2", { state: "failed" }, [draft("failed")])).rejects.toThrow("i2");
        expect(await store.audit("i2")).toEqual([]);
      });
    });

    describe("proposals", () => {
      beforeEach(() => store.open(incident("i1"), draft("incident-opened")));

      test("made once, with its event", async () => {
        expect(await store.proposal("p1")).toBeUndefined();
        expect(await store.propose(proposal("p1", "i1"), draft("fix-proposed/p1"))).toEqual(proposal("p1", "i1"));
        expect(await store.propose(proposal("p1", "i1", { fix: "other" }), draft("fix-proposed/p1/again"))).toEqual(proposal("p1", "i1"));
        expect(await subject.other.proposal("p1")).toEqual(proposal("p1", "i1"));
        expect(keys(await store.audit("i1"))).toEqual(["incident-opened", "fix-proposed/p1"]);
      });

      test("changes only from the states that were expected; incident and hash are never changed", async () => {
        await store.propose(proposal("p1", "i1"), draft("fix-proposed/p1"));
        const decisions = [{ actor: BOB, decision: "approve" as const, at: "2026-01-01T00:01:00.000Z", hash: "a".repeat(64) }];
        const sneaky = { state: "approved" as const, decisions, hash: "b", incident: "i2", id: "p2" };
        const approved = await store.transition("p1", ["pending"], sneaky, draft("approved/p1"));
        expect(approved).toEqual({ applied: true, proposal: proposal("p1", "i1", { state: "approved", decisions }) });
        const late = await store.transition("p1", ["pending", "expired"], { state: "dismissed" }, draft("dismissed/p1"));
        expect(late).toEqual({ applied: false, proposal: approved.proposal });
        expect(await subject.other.proposal("p1")).toEqual(approved.proposal);
        expect(keys(await store.audit("i1"))).toEqual(["incident-opened", "fix-proposed/p1", "approved/p1"]);
        await expect(store.transition("p2", ["pending"], { state: "approved" }, draft("approved/p2"))).rejects.toThrow("p2");
      });

      test("of two that decide at the same moment, one wins", async () => {
        for (let round = 0; round < 10; round++) {
          await store.propose(proposal(`p${round}`, "i1"), draft(`fix-proposed/${round}`));
          const results = await Promise.all([
            store.transition(`p${round}`, ["pending"], { state: "approved" }, draft(`approved/${round}`)),
            subject.other.transition(`p${round}`, ["pending"], { state: "dismissed" }, draft(`dismissed/${round}`)),
          ]);
          expect(results.filter(({ applied }) => applied)).toHaveLength(1);
          expect(results[0].proposal).toEqual(results[1].proposal);
        }
        expect(await store.audit("i1")).toHaveLength(1 + 10 * 2);
      });

      test("two approvals at the same moment: none is lost", async () => {
        await store.propose(proposal("p1", "i1"), draft("fix-proposed/p1"));
        const decision = (actor: Actor) => ({ actor, decision: "approve" as const, at: "2026-01-01T00:01:00.000Z", hash: "a".repeat(64) });
        // Both have read the proposal while nobody had approved; both leave it pending, for more are needed.
        const first = await store.transition("p1", ["pending"], { decisions: [decision(ALICE)] }, draft("approved/alice"));
        const second = await subject.other.transition("p1", ["pending"], { decisions: [decision(BOB)] }, draft("approved/bob"));
        expect([first.applied, second.applied]).toEqual([true, false]);
        expect(second.proposal.decisions).toEqual([decision(ALICE)]);
        const third = await subject.other.transition("p1", ["pending"], { decisions: [...second.proposal.decisions, decision(BOB)] }, draft("approved/bob"));
        expect(third.proposal.decisions).toEqual([decision(ALICE), decision(BOB)]);
      });
    });

    describe("audit", () => {
      test("events are numbered and linked, in their incident and over all", async () => {
        await store.open(incident("i1"), draft("incident-opened"));
        await store.open(incident("i2"), draft("incident-opened"));
        await store.record("i1", [draft("collected"), draft("diagnosed", { verdict: "healthy", causes: [] })]);
        const all = await store.audit();
        expect(all.map((event) => [event.globalSequence, event.incident, event.sequence, event.key])).toEqual([
          [1, "i1", 1, "incident-opened"],
          [2, "i2", 1, "incident-opened"],
          [3, "i1", 2, "collected"],
          [4, "i1", 3, "diagnosed"],
        ]);
        expect(all.map(({ globalPrevious }) => globalPrevious)).toEqual(["", ...all.slice(0, 3).map(({ hash }) => hash)]);
        expect(all.map(({ previous }) => previous)).toEqual(["", "", all[0]?.hash, all[2]?.hash]);
        expect(all[3]?.data).toEqual({ verdict: "healthy", causes: [] });
        expect(await store.audit("i1")).toEqual(all.filter((event) => event.incident === "i1"));
        expect(await store.heads()).toEqual(
          expect.arrayContaining([
            { incident: undefined, sequence: 4, hash: all[3]?.hash },
            { incident: "i1", sequence: 3, hash: all[3]?.hash },
            { incident: "i2", sequence: 1, hash: all[1]?.hash },
          ]),
        );
      });

      test("a key counts once in its incident", async () => {
        await store.record("i1", [draft("collected", { run: 1 }), draft("collected", { run: 2 })]);
        await store.record("i1", [draft("collected", { run: 3 })]);
        await store.record("i2", [draft("collected", { run: 4 })]);
        expect((await store.audit()).map(({ incident: of, data }) => [of, data["run"]])).toEqual([
          ["i1", 1],
          ["i2", 4],
        ]);
      });

      test("what is read back hashes as what was written: odd values too", async () => {
        await store.record("i1", [
          draft("odd", { "": null, z: [1.5, -0, 1e21], a: "ümläut \u2028 \ud800 \u0000", gone: undefined, nested: { b: 1, a: [undefined] } }),
        ]);
        expect(await verifyStore(store)).toEqual([]);
      });

      test("many writers at once leave one unbroken chain", async () => {
        const writers = Array.from({ length: 20 }, (_, n) => (n % 2 ? store : subject.other).record(`i${n % 3}`, [draft(`k${n}`)]));
        await Promise.all(writers);
        expect((await store.audit()).map(({ globalSequence }) => globalSequence)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1));
      });
    });

    describe("tampering shows", () => {
      let events: AuditEvent[];
      beforeEach(async () => {
        for (const id of ["i1", "i2"]) {
          await store.open(incident(id), draft("incident-opened"));
          await store.record(id, [draft("collected"), draft("approved", { by: "U_BOB" }), draft("fixed")]);
        }
        events = [...(await store.audit())];
      });
      const at = (index: number) => events[index] as AuditEvent;

      test.each<[string, () => AuditEvent[], RegExp]>([
        ["an edited event", () => events.with(2, { ...at(2), data: { by: "U_CAROL" } }), /was changed/],
        ["an edited actor", () => events.with(2, { ...at(2), actor: BOB }), /was changed/],
        ["a removed event", () => events.toSpliced(2, 1), /^removed: event 3 of the audit trail is missing[\s\S]*^removed: of i1, event 3 is missing/m],
        ["a removed first event", () => events.slice(1), /^removed: event 1 of the audit trail is missing, before event 2/m],
        ["two events in the other order", () => events.with(1, at(2)).with(2, at(1)), /^reordered: event 2 \(collected of i1\) stands behind event 3$/],
        ["an event put in between", () => events.toSpliced(3, 0, { ...at(2), key: "forged" }), /^inserted: event 3 \(approved of i1\)[\s\S]*was put in$/],
        [
          "an event added at the end",
          () => [...events, { ...at(7), key: "forged", sequence: 5, globalSequence: 9, previous: at(7).hash, globalPrevious: at(7).hash }],
          /were added/,
        ],
        ["the last event cut off", () => events.slice(0, -1), /^truncated: [\s\S]*event 8 was cut off/],
        ["an incident cut off", () => events.slice(0, 4), /the audit trail of i2 ends with event 0, but 4 were written/],
        ["everything cut off", () => [], /the audit trail ends with event 0, but 8 were written/],
      ])("%s", async (_, tamper, problem) => {
        const heads = await store.heads();
        expect(verifyAudit(events, heads)).toEqual([]);
        expect(verifyAudit(tamper(), heads).join("\n")).toMatch(problem);
      });

      test("a store rewritten as a whole does not fit what was exported", async () => {
        const anchors = [{ incident: undefined, sequence: 6, hash: at(5).hash }];
        expect(verifyAudit(events, await store.heads(), anchors)).toEqual([]);
        const shorter = events.slice(0, 4);
        const heads = [
          { incident: undefined, sequence: 4, hash: at(3).hash },
          { incident: "i1", sequence: 4, hash: at(3).hash },
        ];
        expect(verifyAudit(shorter, heads)).toEqual([]);
        expect(verifyAudit(shorter, heads, anchors)).toEqual([expect.stringContaining("does not contain event 6 as it was exported")]);
      });
    });

    describe("data, messages", () => {
      test("data comes back byte for byte, and is replaced by the next put", async () => {
        const bytes = Uint8Array.from({ length: 1_500_000 }, (_, i) => i % 256);
        expect(await store.get("captures/i1/collect.tgz")).toBeUndefined();
        await store.put("captures/i1/collect.tgz", bytes);
        expect(Buffer.compare((await subject.other.get("captures/i1/collect.tgz")) ?? new Uint8Array(), bytes)).toBe(0);
        await store.put("captures/i1/collect.tgz", new Uint8Array());
        expect(await store.get("captures/i1/collect.tgz")).toHaveLength(0);
        await expect(store.put("no blanks", bytes)).rejects.toThrow(RangeError);
        await expect(store.put("x".repeat(201), bytes)).rejects.toThrow(RangeError);
      });

      test("messages are remembered by key", async () => {
        expect(await store.recall("i1/root")).toBeUndefined();
        await store.remember("i1/root", { channel: "C1", ts: "1.1" });
        await store.remember("i1/root", { channel: "C1", ts: "2.2" });
        expect(await subject.other.recall("i1/root")).toEqual({ channel: "C1", ts: "2.2" });
      });
    });

    describe("places of a limit, and a node, which is one", () => {
      const at = (minute: number): Date => new Date(Date.UTC(2026, 0, 1, 10, minute));
      const hour = 3_600_000;

      test("never more holders than places; who holds one keeps it; a place that is given back is free", async () => {
        expect(await store.reserve("running/eu", "p1", 2, undefined, at(0))).toEqual({ ok: true, holders: [] });
        expect(await subject.other.reserve("running/eu", "p2", 2, undefined, at(0))).toEqual({ ok: true, holders: ["p1"] });
        expect(await store.reserve("running/eu", "p3", 2, undefined, at(1))).toEqual({ ok: false, holders: ["p1", "p2"] });
        expect(await store.reserve("running/eu", "p2", 2, undefined, at(1))).toEqual({ ok: true, holders: expect.arrayContaining(["p1", "p2"]) });
        expect((await store.reserve("running/us", "p3", 1, undefined, at(1))).ok).toBe(true);
        await store.release("running/eu", "p3");
        await subject.other.release("running/eu", "p1");
        await store.release("running/none", "p1");
        expect(await store.reserve("running/eu", "p3", 2, undefined, at(2))).toEqual({ ok: true, holders: ["p2"] });
        expect((await store.reserve("running/eu", "p1", 2, undefined, at(100_000))).ok).toBe(false);
      });

      test("a place is free when its time is over, and not a moment earlier", async () => {
        expect((await store.reserve("nodes/a/eu", "node1", 1, hour, at(0))).ok).toBe(true);
        expect(await subject.other.reserve("nodes/a/eu", "node2", 1, hour, new Date(at(60).getTime() - 1))).toEqual({ ok: false, holders: ["node1"] });
        expect(await subject.other.reserve("nodes/a/eu", "node2", 1, hour, at(60))).toEqual({ ok: true, holders: [] });
        expect(await store.reserve("nodes/a/eu", "node1", 1, hour, at(61))).toEqual({ ok: false, holders: ["node2"] });
      });

      test("taken again, a place counts from then on; a late call with an earlier time does not shorten it", async () => {
        await store.reserve("nodes/a/eu", "node1", 1, hour, at(0));
        expect(await store.reserve("nodes/a/eu", "node1", 1, hour, at(50))).toEqual({ ok: true, holders: ["node1"] });
        expect((await store.reserve("nodes/a/eu", "node1", 1, hour, at(10))).ok).toBe(true);
        expect((await store.reserve("nodes/a/eu", "node2", 1, hour, at(109))).ok).toBe(false);
        expect((await store.reserve("nodes/a/eu", "node2", 1, hour, at(110))).ok).toBe(true);
      });

      test("many at the same moment: as many as there are places, and those are the holders", async () => {
        const names = Array.from({ length: 12 }, (_, n) => `p${10 + n}`);
        const answers = await Promise.all(names.map((name, n) => (n % 2 ? store : subject.other).reserve("running/eu", name, 3, undefined, at(0))));
        const winners = names.filter((_, n) => answers[n]?.ok === true);
        expect(winners).toHaveLength(3);
        const { ok, holders } = await store.reserve("running/eu", "late", 3, undefined, at(1));
        expect(ok).toBe(false);
        expect(holders.toSorted()).toEqual(winners);
        await Promise.all(winners.map((name, n) => (n % 2 ? store : subject.other).release("running/eu", name)));
        expect(await store.reserve("running/eu", "late", 3, undefined, at(2))).toEqual({ ok: true, holders: [] });
      });
    });
  });
}
