import { createHash } from "node:crypto";

/** What somebody did to a chain of events. */
export type Manipulation = "removed" | "reordered" | "edited" | "inserted" | "truncated" | "forked";

/** Something wrong with a chain. */
export interface Finding {
  readonly kind: Manipulation;
  /** A sentence without a full stop: which event, and what shows it. */
  readonly text: string;
}

/** An event as a link of one chain. What is read from it may be forged; `sealed` says whether its hash fits its content. */
export interface Link {
  /** NaN if it has none. */
  readonly number: number;
  readonly previous: string;
  readonly hash: string;
  readonly sealed: boolean;
  /** "approved of inc-1". */
  readonly what: string;
}

/** The place behind which a chain begins. */
export interface Base {
  readonly number: number;
  readonly hash: string;
}

/** Events that follow an event which already has a successor. */
interface Branch {
  readonly from: number;
  readonly links: Link[];
}

/**
 * Reads one chain, event by event in the order in which it was kept, and names what was done to it. Takes 32 bytes for each event (its hash), and more only
 * for what is wrong. Numbers are those of the chain: of an incident, or over all incidents.
 */
export class ChainCheck {
  readonly #called: string;
  readonly #hashes = new Hashes();
  /** Runs of numbers whose hashes stand side by side. */
  readonly #runs: { readonly from: number; readonly at: number; count: number }[] = [];
  /** Events that stand elsewhere than in order of their numbers: number → place of the hash. */
  readonly #strays = new Map<number, number>();
  #base: Base | undefined;
  #last = 0;
  #lastHash = "";
  /** Numbers that were passed over so far. */
  #gaps: { from: number; to: number }[] = [];
  /** Hashes that events name as the one before them, of numbers that were not seen yet. */
  readonly #awaited = new Map<number, string>();
  readonly #unsealed = new Map<number, string>();
  /** Number of an event → what it is; it does not name the event before it. */
  readonly #broken = new Map<number, string>();
  readonly #stray: { readonly number: number; readonly what: string; readonly behind: number }[] = [];
  readonly #extra: string[] = [];
  #branches: Branch[] = [];
  #odd: Link | undefined;

  /** @param called the chain, in sentences: "the audit trail of inc-1" */
  constructor(called: string) {
    this.#called = called;
  }

  /** Number of the last event; 0 if there is none. */
  get last(): number {
    return this.#last;
  }

  /** Number before the first event. */
  get first(): number {
    return (this.#base?.number ?? 0) + 1;
  }

  add(link: Link): void {
    const odd = this.#odd;
    this.#odd = undefined;
    if (odd !== undefined) this.#placeOdd(odd, link);
    this.#add(link);
  }

  #add(link: Link): void {
    const { number, previous, sealed } = link;
    // an event without a number, or a changed one whose number does not fit: what comes next tells what it was
    const fits = Number.isSafeInteger(number) && number > 0;
    if (this.#base === undefined) {
      if (!fits) {
        this.#odd = link;
        return;
      }
      this.#base = { number: number - 1, hash: previous };
      this.#last = number - 1;
      this.#lastHash = previous;
    }
    const next = number === this.#last + 1;
    const branch = this.#branches.find(({ from, links }) => links.at(-1)?.hash === previous && from + links.length === number);
    if (next && previous === this.#lastHash) this.#accept(link);
    else if (branch !== undefined) this.#grow(branch, link);
    else if (!fits || (!sealed && !next && !this.#inGap(number))) this.#odd = link;
    else if (next) {
      if (sealed && !this.#unsealed.has(this.#last)) this.#broken.set(number, link.what);
      this.#accept(link);
    } else if (number > this.#last) {
      this.#gaps.push({ from: this.#last + 1, to: number - 1 });
      this.#awaited.set(number - 1, previous);
      this.#accept(link);
    } else if (number <= this.#base.number) {
      // it belongs before what was taken for the beginning
      this.#gaps.unshift({ from: number, to: this.#base.number });
      this.#awaited.set(this.#base.number, this.#base.hash);
      this.#base = { number: number - 1, hash: previous };
      this.#fill(link);
    } else if (this.#inGap(number)) this.#fill(link);
    else this.#double(link);
  }

  /** Behind the last one. */
  #accept({ number, hash, sealed, what }: Link): void {
    const at = this.#hashes.push(hash);
    const run = this.#runs.at(-1);
    if (run !== undefined && run.from + run.count === number && run.at + run.count === at) run.count++;
    else this.#runs.push({ from: number, at, count: 1 });
    if (!sealed) this.#unsealed.set(number, what);
    this.#last = number;
    this.#lastHash = hash;
  }

  #placeOdd(odd: Link, next: Link): void {
    if (this.#base === undefined) {
      // the first of all: it stands for the number before the next one
      if (Number.isSafeInteger(next.number) && next.number > 1) this.#add({ ...odd, number: next.number - 1, sealed: false });
      else this.#extra.push(nameOf(odd));
    } else if (next.number === odd.number + 1 && next.previous === odd.hash && odd.number > this.#last) {
      this.#gaps.push({ from: this.#last + 1, to: odd.number - 1 });
      this.#accept(odd);
    } else if (next.number === this.#last + 2) {
      // it stands where a number is missing: that was its number
      this.#accept({ ...odd, number: this.#last + 1, sealed: false });
    } else {
      this.#extra.push(`${nameOf(odd)}, which stands behind event ${this.#last}`);
    }
  }

  #inGap(number: number): boolean {
    return this.#gaps.some(({ from, to }) => from <= number && number <= to);
  }

  /** An event of a number that was passed over. */
  #fill(link: Link): void {
    const { number, previous, hash, sealed, what } = link;
    this.#gaps = this.#gaps.flatMap((gap) =>
      gap.from <= number && number <= gap.to
        ? [
            { from: gap.from, to: number - 1 },
            { from: number + 1, to: gap.to },
          ].filter(({ from, to }) => from <= to)
        : [gap],
    );
    this.#strays.set(number, this.#hashes.push(hash));
    this.#stray.push({ number, what, behind: this.#last });
    if (!sealed) this.#unsealed.set(number, what);
    const before = this.hashOf(number - 1);
    if (before === undefined) this.#awaited.set(number - 1, previous);
    else if (sealed && before !== previous && !this.#unsealed.has(number - 1)) this.#broken.set(number, what);
    const awaited = this.#awaited.get(number);
    if (sealed && awaited !== undefined && awaited !== hash && !this.#unsealed.has(number + 1)) this.#broken.set(number + 1, "");
  }

  /** A second event with a number. */
  #double(link: Link): void {
    const { number, previous, hash, sealed, what } = link;
    if (this.hashOf(number) === hash) this.#extra.push(`${nameOf(link)}, which is there twice`);
    else if (!sealed || previous !== this.hashOf(number - 1)) this.#extra.push(`${nameOf(link)}, a second event of that number, which belongs to no chain`);
    else if (this.#unsealed.has(number) || this.#broken.has(number)) {
      // this one belongs here, so the other one does not
      const other = this.#unsealed.get(number) ?? this.#broken.get(number) ?? "";
      this.#unsealed.delete(number);
      this.#broken.delete(number);
      this.#extra.push(`event ${number} (${other}), a second event of that number, which belongs to no chain`);
      this.#replace(number, hash);
    } else this.#branches.push({ from: number, links: [{ number, previous, hash, sealed, what }] });
  }

  #replace(number: number, hash: string): void {
    const at = this.#placeOf(number);
    if (at !== undefined) this.#hashes.set(at, hash);
    if (number === this.#last) this.#lastHash = hash;
  }

  /** The longer branch is the chain. */
  #grow(branch: Branch, link: Link): void {
    branch.links.push(link);
    if (link.number <= this.#last) return;
    const shorter: Link[] = [];
    for (const one of branch.links.slice(0, -1)) {
      shorter.push({ ...one, hash: this.hashOf(one.number) ?? "", what: "" });
      this.#replace(one.number, one.hash);
    }
    this.#branches = [...this.#branches.filter((one) => one !== branch), { from: branch.from, links: shorter }];
    this.#accept(link);
  }

  #placeOf(number: number): number | undefined {
    const stray = this.#strays.get(number);
    if (stray !== undefined) return stray;
    const run = this.#runs.findLast(({ from }) => from <= number);
    return run === undefined || number >= run.from + run.count ? undefined : run.at + number - run.from;
  }

  /** Hash of the event with a number; undefined if there is none. Of the one before the first: what the first says. */
  hashOf(number: number): string | undefined {
    if (this.#base !== undefined && number === this.#base.number) return this.#base.hash;
    const at = this.#placeOf(number);
    return at === undefined ? undefined : this.#hashes.get(at);
  }

  /**
   * What is wrong, in the order of removed, reordered, edited, inserted, forked.
   * @param after where the events should begin: behind nothing, or, of an export of the later events, behind this one
   */
  end(after: Base = { number: 0, hash: "" }): Finding[] {
    const odd = this.#odd;
    this.#odd = undefined;
    if (odd !== undefined) {
      if (odd.number > this.#last) this.#accept(odd);
      else this.#extra.push(`${nameOf(odd)}, the last one`);
    }
    const findings: Finding[] = [];
    const base = this.#base ?? after;
    if (base.number > after.number) this.#gaps.unshift({ from: after.number + 1, to: base.number });
    else if (base.number === after.number && base.hash !== after.hash)
      findings.push({ kind: "edited", text: `event ${base.number + 1} of ${this.#called} does not follow what stands before it: the beginning was rewritten` });
    for (const { from, to } of this.#gaps) {
      const where = from === 1 ? `before event ${to + 1}` : `between event ${from - 1} and event ${to + 1}`;
      findings.push({ kind: "removed", text: `${these(from, to)} of ${this.#called} ${from === to ? "is" : "are"} missing, ${where}` });
    }
    for (const { from, to, what } of runsOf(this.#stray, (one) => one.behind))
      findings.push({ kind: "reordered", text: `${these(from, to, what)} ${from === to ? "stands" : "stand"} behind event ${what.behind}` });
    const changed = [...this.#unsealed].map(([number, what]) => ({ number, what })).sort((a, b) => a.number - b.number);
    for (const { from, to, what } of runsOf(changed, () => 0)) {
      const rest = from === to ? "was changed: its hash does not fit its content" : "were changed: their hashes do not fit their content";
      findings.push({ kind: "edited", text: `${these(from, to, what)} ${rest}` });
    }
    for (const number of this.#broken.keys())
      findings.push({
        kind: "edited",
        text: `event ${number - 1} was changed, or another one put in its place, and its hash computed anew: event ${number} of ${this.#called} names another hash`,
      });
    for (const text of this.#extra) findings.push({ kind: "inserted", text: `${text}, was put in` });
    for (const { from, links } of this.#branches) {
      const rest = this.#last - from + 1;
      const [first] = links as [Link];
      if (links.length === 1 && rest > 1) {
        const which = first.what === "" ? `one of the two events ${from}` : nameOf(first);
        findings.push({ kind: "inserted", text: `${which} was put in beside the chain: two events follow event ${from - 1}, and nothing follows this one` });
      } else {
        const [here, there] = [rest, links.length].sort((a, b) => b - a);
        findings.push({
          kind: "forked",
          text: `two events follow event ${from - 1} of ${this.#called}: from event ${from} on there are two chains, of ${here} and of ${there} events`,
        });
      }
    }
    return findings;
  }
}

const nameOf = ({ number, what }: Link): string => (Number.isSafeInteger(number) ? `event ${number} (${what})` : `something that is no event (${what})`);

const these = (from: number, to: number, about?: { readonly what: string }): string =>
  from === to ? `event ${from}${about === undefined || about.what === "" ? "" : ` (${about.what})`}` : `events ${from} to ${to}`;

/** Consecutive numbers together, as long as `same` is the same. */
function runsOf<T extends { readonly number: number; readonly what: string }>(
  items: readonly T[],
  same: (item: T) => number,
): { readonly from: number; readonly to: number; readonly what: T }[] {
  const runs: { from: number; to: number; what: T }[] = [];
  for (const item of items) {
    const run = runs.at(-1);
    if (run !== undefined && run.to + 1 === item.number && same(run.what) === same(item)) run.to = item.number;
    else runs.push({ from: item.number, to: item.number, what: item });
  }
  return runs;
}

/** A list of sha256 hashes, 32 bytes each. */
class Hashes {
  #bytes = Buffer.alloc(32 * 1024);
  #length = 0;

  push(hash: string): number {
    if ((this.#length + 1) * 32 > this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes], this.#bytes.length * 2);
    this.set(this.#length, hash);
    return this.#length++;
  }

  set(at: number, hash: string): void {
    const hex = /^[0-9a-f]{64}$/.test(hash);
    // what is no hash is kept as one that nothing else has
    if (hex) this.#bytes.write(hash, at * 32, "hex");
    else
      createHash("sha256")
        .update(`no hash: ${hash}`)
        .digest()
        .copy(this.#bytes, at * 32);
  }

  get(at: number): string {
    return this.#bytes.toString("hex", at * 32, at * 32 + 32);
  }
}
