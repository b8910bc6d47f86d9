import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonical, chain, sha256, verifyChain } from "../../functions/triage/audit.ts";
import type { AuditEvent } from "../../functions/triage/ports.ts";
import { draft } from "../store/drafts.ts";

/** A chain over incidents "a" and "b" in turn. */
function chainOf(length: number): AuditEvent[] {
  const events: AuditEvent[] = [];
  for (let n = 0; n < length; n++) {
    const incident = n % 2 === 0 ? "a" : "b";
    events.push(
      chain(
        incident,
        draft(`event/${n}`, { n }),
        events.findLast((event) => event.incident === incident),
        events.at(-1),
      ),
    );
  }
  return events;
}
const ofA = (events: readonly AuditEvent[]) => events.filter(({ incident }) => incident === "a");

describe("canonical JSON", () => {
  test("sorted keys, no blanks, nothing undefined", () => {
    expect(canonical({ b: [1, { d: null, c: "x\n" }], a: undefined, A: true })).toBe('{"A":true,"b":[1,{"c":"x\\n","d":null}]}');
    expect(canonical(undefined)).toBe("null");
    expect(canonical([undefined])).toBe("[null]");
  });

  test("says what JSON says, whatever the order of the keys", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(canonical(value))).toEqual(JSON.parse(JSON.stringify(value)));
        const reversed = JSON.parse(JSON.stringify(value), (_, item: unknown) =>
          typeof item === "object" && item !== null && !Array.isArray(item) ? Object.fromEntries(Object.entries(item).reverse()) : item,
        ) as unknown;
        expect(canonical(reversed)).toBe(canonical(value));
      }),
      { seed: 1 },
    );
  });
});

test("sha256 of text and bytes, hex", () => {
  expect(sha256("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  expect(sha256(new TextEncoder().encode("abc"))).toBe(sha256("abc"));
});

describe("the chain", () => {
  const events = chainOf(6);

  test("numbers and links events per incident and over all", () => {
    expect(events.map(({ incident, sequence, globalSequence }) => [incident, sequence, globalSequence])).toEqual([
      ["a", 1, 1],
      ["b", 1, 2],
      ["a", 2, 3],
      ["b", 2, 4],
      ["a", 3, 5],
      ["b", 3, 6],
    ]);
    expect([events[0]?.previous, events[0]?.globalPrevious]).toEqual(["", ""]);
    expect([events[2]?.previous, events[2]?.globalPrevious]).toEqual([events[0]?.hash, events[1]?.hash]);
    expect(verifyChain(events, "global")).toEqual([]);
    expect(verifyChain(ofA(events), "incident")).toEqual([]);
    expect(verifyChain([], "global")).toEqual([]);
  });

  test("a change, a gap, a swap, a copy and a foreign event show", () => {
    const change = (n: number, more: Partial<AuditEvent>) => events.map((event, i) => (i === n ? { ...event, ...more } : event));
    expect(verifyChain(change(2, { type: "approved" }), "global").join()).toContain("event 3 (approved of a) was changed");
    expect(verifyChain(events.toSpliced(2, 1), "global").join()).toContain("event 4 (event of b) does not follow number 2");
    expect(verifyChain(events.slice(1), "global").join()).toContain("does not follow number 0");
    expect(verifyChain(events.toSpliced(1, 2, events[2] as AuditEvent, events[1] as AuditEvent), "global")).not.toEqual([]);
    expect(verifyChain([...events, events[5] as AuditEvent], "global")).not.toEqual([]);
    expect(verifyChain(ofA(events).toSpliced(1, 1), "incident")).not.toEqual([]);
  });

  test("an event that was changed and sealed anew does not fit the one behind it", () => {
    const { hash: _, ...unsealed } = events[2] as AuditEvent;
    const forged = { ...unsealed, data: { n: 99 } };
    const sealed = { ...forged, hash: sha256(canonical(forged)) };
    expect(verifyChain(events.with(2, sealed), "global")).toEqual(["event 4 (event of b) is not linked to the event before it"]);
    expect(verifyChain(ofA(events.with(2, sealed)), "incident")).toEqual(["event 3 (event of a) is not linked to the event before it"]);
  });

  test("any change of any field of any event shows", () => {
    const fields = ["key", "at", "actor", "type", "data", "incident", "sequence", "previous", "globalSequence", "globalPrevious", "hash"] as const;
    fc.assert(
      fc.property(fc.nat({ max: events.length - 1 }), fc.constantFrom(...fields), fc.jsonValue(), (n, field, value) => {
        const event = events[n] as AuditEvent;
        fc.pre(canonical(value) !== canonical(event[field]));
        expect(verifyChain(events.with(n, { ...event, [field]: value } as AuditEvent), "global")).not.toEqual([]);
      }),
      { seed: 1 },
    );
  });
});
