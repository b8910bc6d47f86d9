import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Expected, type Head, type Manipulation, Trail, type TrailOptions } from "../../functions/store/verify.ts";
import { canonical, chain, sha256 } from "../../functions/triage/audit.ts";
import type { AuditEvent } from "../../functions/triage/ports.ts";
import { draft } from "./drafts.ts";

/** A chain over the incidents that are named, one event each. */
function chainOf(incidents: readonly string[], word = "event"): AuditEvent[] {
  const events: AuditEvent[] = [];
  for (const [n, incident] of incidents.entries()) events.push(next(events, incident, `${word}/${n}`));
  return events;
}
const next = (events: readonly AuditEvent[], incident: string, key: string): AuditEvent =>
  chain(
    incident,
    draft(key),
    events.findLast((event) => event.incident === incident),
    events.at(-1),
  );
function headsOf(events: readonly AuditEvent[]): Head[] {
  const heads = new Map<string | undefined, Head>();
  for (const { incident, sequence, globalSequence, hash } of events) {
    heads.set(undefined, { incident: undefined, sequence: globalSequence, hash });
    heads.set(incident, { incident, sequence, hash });
  }
  return [...heads.values()];
}
function read(events: readonly unknown[], options: TrailOptions = {}): Trail {
  const trail = new Trail(options);
  for (const event of events) trail.add(event);
  return trail;
}
const check = (events: readonly unknown[], expected: Expected = {}, options: TrailOptions = {}) => read(events, options).end(expected);
const kinds = (events: readonly unknown[], expected: Expected = {}, options: TrailOptions = {}): Manipulation[] => [
  ...new Set(check(events, expected, options).map(({ kind }) => kind)),
];
const texts = (events: readonly unknown[], expected: Expected = {}, options: TrailOptions = {}): string =>
  check(events, expected, options)
    .map(({ kind, text }) => `${kind}: ${text}`)
    .join("\n");
const seal = (event: AuditEvent): AuditEvent => {
  const { hash: _, ...unsealed } = event;
  return { ...unsealed, hash: sha256(canonical(unsealed)) };
};
/** What somebody with all rights can do: every number, link and hash computed anew. */
function anew(events: readonly AuditEvent[]): AuditEvent[] {
  const made: AuditEvent[] = [];
  for (const { key, at, actor, type, data, incident } of events) {
    const last = made.findLast((event) => event.incident === incident);
    made.push(chain(incident, { key, at, actor, type, data }, last, made.at(-1)));
  }
  return made;
}

const events = chainOf(["a", "b", "a", "c", "b", "a", "c", "a", "b", "a"]);
const heads = headsOf(events);
const at = (number: number) => events[number - 1] as AuditEvent;

describe("what was done to a trail, by name", () => {
  test("nothing", () => {
    expect(check(events, { heads })).toEqual([]);
    expect(check(events)).toEqual([]);
    expect(check([], { heads: [] })).toEqual([]);
  });

  test.each<[string, () => unknown[], string]>([
    [
      "one removed",
      () => events.toSpliced(3, 1),
      "removed: event 4 of the audit trail is missing, between event 3 and event 5\nremoved: of c, event 1 is missing",
    ],
    [
      "some removed",
      () => events.toSpliced(3, 3),
      "removed: events 4 to 6 of the audit trail are missing, between event 3 and event 7\nremoved: of a, event 3 is missing\nremoved: of b, event 2 is missing\nremoved: of c, event 1 is missing",
    ],
    ["the beginning removed", () => events.slice(2), "removed: events 1 to 2 of the audit trail are missing, before event 3"],
    ["two exchanged", () => events.with(3, at(5)).with(4, at(4)), "reordered: event 4 (event of c) stands behind event 5"],
    ["the first two exchanged", () => events.with(0, at(2)).with(1, at(1)), "reordered: event 1 (event of a) stands behind event 2"],
    ["one moved to the end", () => [...events.toSpliced(1, 1), at(2)], "reordered: event 2 (event of b) stands behind event 10"],
    ["one moved to the front", () => [at(9), ...events.toSpliced(8, 1)], "reordered: events 1 to 8 stand behind event 9"],
    [
      "edited",
      () => events.with(3, { ...at(4), actor: { id: "U_EVE", team: "" } }),
      "edited: event 4 (event of c) was changed: its hash does not fit its content",
    ],
    ["edited in its number", () => events.with(3, { ...at(4), globalSequence: 9 }), "edited: event 4 (event of c) was changed"],
    ["edited in its hash", () => events.with(3, { ...at(4), hash: "0".repeat(64) }), "edited: event 4 (event of c) was changed"],
    ["edited to something else", () => events.with(3, "nonsense" as never), "edited: event 4 (no type of no incident) was changed"],
    ["the first edited to something else", () => [{}, ...events.slice(1)], "edited: event 1 (no type of no incident) was changed"],
    [
      "edited and sealed again",
      () => events.with(3, seal({ ...at(4), type: "approved" })),
      "edited: event 4 was changed, or another one put in its place, and its hash",
    ],
    ["a copy put in", () => events.toSpliced(6, 0, at(4)), "inserted: event 4 (event of c), which is there twice, was put in"],
    ["put in with a number of its own", () => events.toSpliced(3, 0, { ...at(3), key: "x" }), "inserted: event 3 (event of a)"],
    [
      "put in without a number",
      () => events.toSpliced(3, 0, { note: "x" } as never),
      "inserted: something that is no event (no type of no incident), which stands behind event 3, was put in",
    ],
    [
      "put in and sealed, before the one whose number it has",
      () => events.toSpliced(3, 0, next(events.slice(0, 3), "b", "forged")),
      "inserted: one of the two events 4 was put in beside the chain",
    ],
    [
      "put in and sealed, behind it",
      () => events.toSpliced(4, 0, next(events.slice(0, 3), "b", "forged")),
      "inserted: event 4 (forged of b) was put in beside the chain",
    ],
    ["put in, sealed, linked to nothing", () => events.toSpliced(3, 0, seal({ ...at(4), globalPrevious: "f".repeat(64) })), "inserted: event 4 ("],
    [
      "added at the end",
      () => [...events, next(events, "a", "forged")],
      "inserted: the audit trail ends with event 11, but 10 were written: 1 were added at the end",
    ],
    ["the end cut off", () => events.slice(0, 7), "truncated: the audit trail ends with event 7, but 10 were written: events 8 to 10 were cut off"],
    ["everything cut off", () => [], "truncated: the audit trail ends with event 0, but 10 were written"],
    [
      "the last one rewritten",
      () => events.with(9, seal({ ...at(10), type: "approved" })),
      "edited: the audit trail does not end with the event that was written last",
    ],
    [
      "forked, one chain behind the other",
      () => [...events, ...anew([...events.slice(0, 6), ...chainOf(["c", "c", "c"], "else")]).slice(6)],
      "forked: two events follow event 6 of the audit trail: from event 7 on there are two chains, of 4 and of 3 events",
    ],
    [
      "forked, in order of the numbers",
      () => [...events, ...anew([...events.slice(0, 6), ...chainOf(["c", "c", "c"], "else")]).slice(6)].sort((a, b) => a.globalSequence - b.globalSequence),
      "forked: two events follow event 6 of the audit trail: from event 7 on there are two chains, of 4 and of 3 events",
    ],
    ["forked at the last event", () => [...events, next(events.slice(0, 9), "c", "else")], "forked: two events follow event 9 of the audit trail"],
  ])("%s", (_, manipulate, expected) => {
    expect(texts(manipulate(), { heads })).toContain(expected);
    expect(kinds(manipulate(), { heads })).toEqual([expected.split(":")[0]]);
  });

  test("an incident whose last events are gone, in a trail that was computed anew without them", () => {
    const rest = anew(events.filter((event) => event.incident !== "b" || event.sequence < 3));
    expect(texts(rest, { heads: headsOf(rest) })).toBe("");
    expect(
      texts(rest, {
        heads: headsOf(rest)
          .filter(({ incident }) => incident !== "b")
          .concat(heads.filter(({ incident }) => incident === "b")),
      }),
    ).toBe("removed: the audit trail of b ends with event 2, but 3 were written: event 3 was cut off");
  });

  test("the chain over all incidents computed anew, the one of the incident not", () => {
    const left = events.toSpliced(2, 1);
    const linked: AuditEvent[] = [];
    for (const event of left) linked.push(seal({ ...event, globalSequence: linked.length + 1, globalPrevious: linked.at(-1)?.hash ?? "" }));
    expect(texts(linked)).toContain("removed: of a, event 2 is missing");
  });

  test("an export of the later events: what it leaves out is no fault, if it says so", () => {
    const later = events.slice(4);
    const after = headsOf(events.slice(0, 4));
    const ends = heads.filter(({ incident }) => incident === undefined || later.some((event) => event.incident === incident));
    expect(check(later, { heads: ends, after })).toEqual([]);
    expect(texts(later.slice(1), { heads: ends, after })).toContain("removed: event 5 of the audit trail is missing, between event 4 and event 6");
    expect(texts(later, { heads: ends })).toContain("removed: events 1 to 4");
    expect(
      texts(
        anew(later).map((event) => event),
        { heads: ends, after },
      ),
    ).not.toBe("");
  });

  test("of one incident alone", () => {
    const own = events.filter(({ incident }) => incident === "a");
    const options = { incident: "a" };
    const end = { heads: headsOf(own).filter(({ incident }) => incident === "a") };
    expect(check(own, end, options)).toEqual([]);
    expect(texts(own.toSpliced(2, 1), end, options)).toBe("removed: event 3 of the audit trail of a is missing, between event 2 and event 4");
    expect(texts(own.toSpliced(2, 0, at(2)), end, options)).toContain("inserted: something that is no event (event of b)");
    expect(texts(own.slice(0, 3), end, options)).toContain("truncated: the audit trail of a ends with event 3, but 5 were written");
  });

  test("very large and odd numbers take no memory and no time", () => {
    for (const globalSequence of [1e15, -3, 0.5, Number.MAX_SAFE_INTEGER])
      expect(kinds([...events, seal({ ...next(events, "a", "odd"), globalSequence })], { heads })).not.toEqual([]);
    for (const hostile of [null, 7, [], { hash: {} }, JSON.parse('{"__proto__":{"hash":"x"}}')])
      expect(kinds([...events, hostile], { heads })).toEqual(["inserted"]);
  });
});

describe("a random trail, manipulated at a random place", () => {
  const length = { minLength: 4, maxLength: 40 };
  const incidents = fc.array(fc.constantFrom("a", "b", "c", "d"), length);
  /** The place of an event that is not the last: nothing but the recorded end would show that one. */
  const scene = fc.tuple(incidents, fc.nat(), fc.nat()).map(([ids, n, m]) => {
    const whole = chainOf(ids);
    const place = n % (whole.length - 1);
    return { whole, place, other: m % (whole.length - 1), heads: headsOf(whole) };
  });
  const holds = (property: (scene: { whole: AuditEvent[]; place: number; other: number; heads: Head[] }) => void) =>
    fc.assert(fc.property(scene, property), { seed: 5, numRuns: 150 });

  test("as it is: nothing", () =>
    holds(({ whole, heads: ends }) => {
      expect(check(whole, { heads: ends }, { anchors: ends })).toEqual([]);
    }));
  test("removed", () =>
    holds(({ whole, place, heads: ends }) => {
      expect(kinds(whole.toSpliced(place, 1), { heads: ends })).toEqual(["removed"]);
    }));
  test("reordered", () =>
    holds(({ whole, place, other, heads: ends }) => {
      fc.pre(place !== other);
      const moved = whole.toSpliced(place, 1).toSpliced(other, 0, whole[place] as AuditEvent);
      expect(kinds(moved, { heads: ends })).toEqual(["reordered"]);
    }));
  test("edited", () =>
    holds(({ whole, place, other, heads: ends }) => {
      const forged: Partial<AuditEvent>[] = [
        { type: "x" },
        { incident: "z" },
        { sequence: 99 },
        { globalSequence: 99 },
        { globalPrevious: "x" },
        { hash: "x" },
      ];
      expect(kinds(whole.with(place, { ...(whole[place] as AuditEvent), ...forged[other % forged.length] }), { heads: ends })).toEqual(["edited"]);
      const sealed = seal({ ...(whole[place] as AuditEvent), data: { forged: true } });
      expect(kinds(whole.with(place, sealed), { heads: ends })).toEqual(["edited"]);
    }));
  test("inserted", () =>
    holds(({ whole, place, heads: ends }) => {
      const copy = whole[place] as AuditEvent;
      expect(kinds(whole.toSpliced(place + 1, 0, { ...copy, key: "forged" }), { heads: ends })).toEqual(["inserted"]);
      const sealed = next(whole.slice(0, place), "a", "forged");
      expect(kinds(whole.toSpliced(place, 0, sealed), { heads: ends })).toEqual(["inserted"]);
    }));
  test("truncated: by the recorded end, or by an anchor", () =>
    holds(({ whole, place, heads: ends }) => {
      const cut = whole.slice(0, place + 1);
      expect(kinds(cut, { heads: ends })).toEqual(["truncated"]);
      expect(check(cut)).toEqual([]);
      expect(kinds(cut, { heads: headsOf(cut) }, { anchors: ends })).toContain("truncated");
    }));
  test("forked: within one trail, and between two", () =>
    holds(({ whole, place, heads: ends }) => {
      const shared = whole.slice(0, place);
      const twin = anew([...shared, ...chainOf(["d", "a"], "else")]);
      fc.pre(whole.length - place >= 2);
      expect(kinds([...whole, ...twin.slice(place)], { heads: ends })).toEqual(["forked"]);
      const [here, there] = [read(whole), read(twin)];
      expect([here.end({}), there.end({})]).toEqual([[], []]);
      const { findings, common } = here.against(there, ["A", "B"]);
      expect([findings[0]?.kind, common]).toEqual(["forked", place]);
      expect(findings[0]?.text).toContain(`disagree from event ${place + 1} of the audit trail on`);
      expect(here.against(read(shared), ["A", "B"]).findings).toEqual([]);
    }));

  test("all hashes computed anew: the chain is whole; recorded ends, anchors and another copy show it", () =>
    holds(({ whole, place, other, heads: ends }) => {
      fc.pre(place !== other);
      const event = whole[place] as AuditEvent;
      const changes: [string, AuditEvent[]][] = [
        ["edited", whole.with(place, { ...event, data: { forged: true } })],
        ["removed", whole.toSpliced(place, 1)],
        ["inserted", whole.toSpliced(place, 0, { ...event, key: "forged" })],
        ["reordered", whole.toSpliced(place, 1).toSpliced(other, 0, event)],
      ];
      for (const [name, changed] of changes) {
        const forged = anew(changed);
        expect(check(forged), name).toEqual([]);
        expect(kinds(forged, { heads: ends }), name).not.toEqual([]);
        // the attacker wrote the ends anew, too
        expect(check(forged, { heads: headsOf(forged) }), name).toEqual([]);
        expect(kinds(forged, { heads: headsOf(forged) }, { anchors: ends }), name).not.toEqual([]);
        expect(read(forged).against(read(whole), ["store", "archive"]).findings, name).not.toEqual([]);
      }
    }));

  test("anchors say between which events it was rewritten", () => {
    const forged = anew(events.with(5, { ...at(6), type: "approved" }));
    const anchors = [3, 5, 8, 10].map((sequence) => ({ incident: undefined, sequence, hash: at(sequence).hash }));
    expect(texts(forged, { heads: headsOf(forged) }, { anchors })).toBe(
      "edited: the audit trail does not contain event 8 as it was exported: an event from 6 to 8 was edited, removed, put in or moved, and all hashes behind it computed anew",
    );
  });
});
