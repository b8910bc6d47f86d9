import { canonical, sha256 } from "../triage/audit.ts";
import type { AuditEvent, Store } from "../triage/ports.ts";
import { type Base, ChainCheck, type Finding, type Link, type Manipulation } from "./chain-check.ts";

export type { Finding, Manipulation } from "./chain-check.ts";

/** The last event of a chain, remembered apart from it. `incident` is undefined for the chain over all incidents. */
export interface Head {
  readonly incident: string | undefined;
  readonly sequence: number;
  readonly hash: string;
}

/** A store that knows where its chains should end. */
export interface AuditedStore extends Store {
  heads(): Promise<readonly Head[]>;
}

/** What a trail is held against. */
export interface Expected {
  /** The ends of all chains, kept beside the events: they show what was cut off or added at the end. Absent if nobody recorded them. */
  readonly heads?: readonly Head[] | undefined;
  /** Of an export of the later events: the ends before its first event. */
  readonly after?: readonly Head[] | undefined;
}

export interface TrailOptions {
  /** The events are those of one incident alone: its chain is checked, and the one over all incidents cannot be. */
  readonly incident?: string | undefined;
  /** Earlier heads, kept where nobody can change them: they show a trail that was rewritten as a whole. */
  readonly anchors?: readonly Head[];
}

/** The chain of one incident beside the one over all: what is needed to say which of its events are missing. */
interface Side {
  readonly base: Base;
  last: number;
  hash: string;
  readonly missing: { readonly from: number; readonly to: number }[];
  broken: number | undefined;
}

/** What to look at next, by what was found. */
export const LOOK: Readonly<Record<Manipulation, string>> = {
  removed: "look for these events in the archive or in an earlier export, and at who could delete from this store between the events before and after them",
  reordered: "each event says its number: put them back in that order, and look at what copied or merged this trail",
  edited: "hold the event against the archive or an earlier export, which have it as it was written, and look at who could write to this store since",
  inserted: "no step of netcheck wrote this event: look at who could write to this store, and do not rely on what it says",
  truncated: "look for the events behind the last one in the archive or in a later export; a restored backup looks the same",
  forked: "two stores went on from the same event (a restored copy, two tables): find out which one netcheck writes to, and keep both",
};

/** Reads a whole audit trail, event by event in the order in which it is kept. Memory: 32 bytes for each event, and some 200 for each incident. */
export class Trail {
  readonly #main: ChainCheck;
  readonly #sides = new Map<string, Side>();
  readonly #only: string | undefined;
  readonly #anchors: ReadonlyMap<string, Head>;
  readonly #met = new Set<string>();
  #count = 0;

  constructor({ incident, anchors = [] }: TrailOptions = {}) {
    this.#only = incident;
    this.#main = new ChainCheck(nameOf(incident));
    this.#anchors = new Map(anchors.map((head) => [anchorKey(head.incident, head.sequence), head]));
  }

  /** Events so far. */
  get count(): number {
    return this.#count;
  }

  /** The end of the chain, as it was read. */
  get head(): Head {
    return { incident: this.#only, sequence: this.#main.last, hash: this.#main.hashOf(this.#main.last) ?? "" };
  }

  /** @param event what was read; anything */
  add(event: unknown): void {
    this.#count++;
    const read = linkOf(event);
    const { own, whole, incident } = read;
    if (this.#only !== undefined) {
      this.#main.add(incident === this.#only ? own : { ...own, sealed: false, number: Number.NaN });
    } else {
      this.#main.add(whole);
      if (own.sealed) this.#side(incident, own);
    }
    for (const key of [anchorKey(undefined, whole.number), anchorKey(incident, own.number)])
      if (this.#anchors.get(key)?.hash === own.hash && own.sealed) this.#met.add(key);
  }

  /** Sealed events only: what is wrong with the others the main chain says. */
  #side(incident: string, { number, previous, hash }: Link): void {
    const side = this.#sides.get(incident);
    if (side === undefined) this.#sides.set(incident, { base: { number: number - 1, hash: previous }, last: number, hash, missing: [], broken: undefined });
    else if (number > side.last) {
      if (number > side.last + 1) side.missing.push({ from: side.last + 1, to: number - 1 });
      else if (previous !== side.hash) side.broken ??= number;
      side.last = number;
      side.hash = hash;
    }
  }

  /** What is wrong: empty if nothing is. */
  end({ heads, after = [] }: Expected): Finding[] {
    const baseOf = (incident: string | undefined): Base => {
      const head = after.find((one) => one.incident === incident);
      return head === undefined ? { number: 0, hash: "" } : { number: head.sequence, hash: head.hash };
    };
    const found = this.#main.end(baseOf(this.#only));
    const ends = this.#ends(heads, found);
    const gaps = [...found, ...ends].some(({ kind }) => kind === "removed" || kind === "truncated");
    const findings = [...found, ...ends, ...this.#rewritten()];
    // what the chain over all incidents shows already is not said twice; but which incidents lost events is worth saying
    if (findings.length === 0 || gaps) {
      const bases = new Map(after.flatMap((head) => (head.incident === undefined ? [] : [[head.incident, head] as const])));
      for (const [incident, side] of this.#sides) {
        const base = bases.get(incident);
        const before: Base = base === undefined ? { number: 0, hash: "" } : { number: base.sequence, hash: base.hash };
        const missing = side.base.number > before.number ? [{ from: before.number + 1, to: side.base.number }, ...side.missing] : side.missing;
        for (const { from, to } of missing)
          findings.push({ kind: "removed", text: `of ${incident}, ${from === to ? `event ${from} is` : `events ${from} to ${to} are`} missing` });
        if (findings.length === 0 && (side.broken !== undefined || (side.base.number === before.number && side.base.hash !== before.hash))) {
          const number = side.broken ?? side.base.number + 1;
          findings.push({ kind: "edited", text: `event ${number} of ${incident} does not name the event before it: the trail of ${incident} was rewritten` });
        }
      }
    }
    return findings;
  }

  #ends(heads: readonly Head[] | undefined, found: readonly Finding[]): Finding[] {
    if (heads === undefined) return [];
    const main = heads.find(({ incident }) => incident === this.#only);
    const whole = this.#end(main, this.#only, this.head);
    if (this.#only !== undefined) return whole;
    const cut = whole.some(({ kind }) => kind === "truncated");
    const clean = found.length + whole.length === 0;
    const lossy = cut || found.some(({ kind }) => kind === "removed");
    const known = new Map(heads.map((head) => [head.incident, head]));
    const none = { sequence: 0, hash: "" };
    const findings: Finding[] = [];
    for (const incident of new Set([...known.keys(), ...this.#sides.keys()])) {
      if (incident === undefined) continue;
      const side = this.#sides.get(incident);
      for (const { kind, text } of this.#end(known.get(incident), incident, side === undefined ? none : { sequence: side.last, hash: side.hash })) {
        // the chain over all incidents is whole at its end, so what is missing here was taken out of it
        if (kind === "truncated" ? clean || lossy : clean) findings.push({ kind: kind === "truncated" && !cut ? "removed" : kind, text });
      }
    }
    return [...whole, ...findings];
  }

  /** Whether a chain ends where it should. */
  #end(head: Head | undefined, incident: string | undefined, end: { readonly sequence: number; readonly hash: string }): Finding[] {
    const name = nameOf(incident);
    const last = end.sequence;
    if (head === undefined) return last === 0 ? [] : [{ kind: "inserted", text: `${name} has no recorded end` }];
    const written = `${name} ends with event ${last}, but ${head.sequence} were written`;
    if (last < head.sequence) {
      const lost = last + 1 === head.sequence ? `event ${head.sequence} was` : `events ${last + 1} to ${head.sequence} were`;
      return [{ kind: "truncated", text: `${written}: ${lost} cut off` }];
    }
    if (last > head.sequence) return [{ kind: "inserted", text: `${written}: ${last - head.sequence} were added at the end` }];
    if (end.hash === head.hash) return [];
    return [{ kind: "edited", text: `${name} does not end with the event that was written last: event ${last}, or events before it, were rewritten` }];
  }

  /** Anchors that were not met. Of the chain over all incidents the nearest two say where it was rewritten. */
  #rewritten(): Finding[] {
    const lost = [...this.#anchors].filter(([key, { incident }]) => !this.#met.has(key) && (this.#only === undefined || incident === this.#only));
    const inReach = lost.filter(([, { incident, sequence }]) => incident !== this.#only || sequence >= this.#main.first);
    const findings: Finding[] = [];
    for (const [, { incident, sequence }] of inReach) {
      if (incident !== this.#only) {
        const side = this.#sides.get(incident ?? "");
        if (this.#main.first > 1 && side === undefined) continue;
        const kind = (side?.last ?? 0) < sequence ? "truncated" : "edited";
        findings.push({ kind, text: `${nameOf(incident)} does not contain event ${sequence} as it was exported: it was rewritten or cut off` });
      } else if (this.#main.last < sequence) {
        const text = `${nameOf(incident)} ends with event ${this.#main.last}, and does not contain event ${sequence} as it was exported: it was cut off`;
        findings.push({ kind: "truncated", text });
      } else {
        const met = [...this.#anchors].filter(([key, one]) => this.#met.has(key) && one.incident === incident && one.sequence < sequence);
        const from = Math.max(this.#main.first - 1, ...met.map(([, one]) => one.sequence));
        const text = `${nameOf(incident)} does not contain event ${sequence} as it was exported: an event from ${from + 1} to ${sequence} was edited, removed, put in or moved, and all hashes behind it computed anew`;
        findings.push({ kind: "edited", text });
      }
    }
    // the first one says enough, of each chain over all incidents; of an incident the line above it does
    const main = findings.filter(({ text }) => text.startsWith(`${nameOf(this.#only)} `));
    return main.length > 0 ? main.slice(0, 1) : findings;
  }

  /**
   * Where two trails part: from which event on they are not the same; and which of them ends first, which alone is no fault. Both must have been read to
   * their ends, and be of the same scope.
   */
  against(other: Trail, [name, otherName]: readonly [string, string]): { readonly findings: readonly Finding[]; readonly common: number } {
    const from = Math.max(this.#main.first, other.#main.first);
    const to = Math.min(this.#main.last, other.#main.last);
    let common = 0;
    for (let number = from; number <= to; number++) {
      const [here, there] = [this.#main.hashOf(number), other.#main.hashOf(number)];
      if (here === undefined || there === undefined) continue;
      if (here !== there) {
        const text = `${name} and ${otherName} disagree from event ${number} of ${nameOf(this.#only)} on: ${number === from ? "they have no event in common" : `event ${number - 1} is the last that both have`}`;
        return { findings: [{ kind: "forked", text }], common };
      }
      common++;
    }
    return { findings: [], common };
  }
}

const nameOf = (incident: string | undefined): string => (incident === undefined ? "the audit trail" : `the audit trail of ${incident}`);
const anchorKey = (incident: string | undefined, sequence: number): string => `${incident ?? "*"}#${sequence}`;

/** An event as a link of its two chains. What is no event is a link that fits nowhere. */
function linkOf(event: unknown): { own: Link; whole: Link; incident: string } {
  const fields = typeof event === "object" && event !== null && !Array.isArray(event) ? (event as Partial<Record<keyof AuditEvent, unknown>>) : {};
  const { hash, ...unsealed } = fields;
  const text = (value: unknown): string => (typeof value === "string" ? value : "");
  const number = (value: unknown): number => (typeof value === "number" ? value : Number.NaN);
  const incident = text(fields.incident);
  const sealed = typeof hash === "string" && sha256(canonical(unsealed)) === hash;
  const what = `${text(fields.type) || "no type"} of ${incident || "no incident"}`;
  const common = { hash: text(hash), sealed, what };
  return {
    own: { number: number(fields.sequence), previous: text(fields.previous), ...common },
    whole: { number: number(fields.globalSequence), previous: text(fields.globalPrevious), ...common },
    incident,
  };
}

/** A finding as one line: what was done, and to which event. */
export const sentence = ({ kind, text }: Finding): string => `${kind}: ${text}`;

/**
 * Checks all events of a store (`store.audit()`, in global order): each chain, and that it ends where it should. Returns what is wrong, as
 * sentences; empty if nothing is.
 * @param heads the ends of all chains, from the same store: they show what was cut off or added at the end
 * @param anchors earlier heads, kept where nobody can change them (an export under Object Lock): they show a store that was rewritten as a whole
 */
export function verifyAudit(events: Iterable<AuditEvent>, heads: readonly Head[], anchors: readonly Head[] = []): string[] {
  const trail = new Trail({ anchors });
  for (const event of events) trail.add(event);
  return trail.end({ heads }).map(sentence);
}

/** Checks the audit trail of a store, as `verifyAudit` does. */
export async function verifyStore(store: AuditedStore, anchors: readonly Head[] = []): Promise<string[]> {
  return verifyAudit(await store.audit(), await store.heads(), anchors);
}
