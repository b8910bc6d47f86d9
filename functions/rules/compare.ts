import type { Capture } from "../facts/capture.ts";
import { facts } from "../facts/index.ts";
import { type FactReading, readFacts } from "../facts/read.ts";
import { moves } from "./compare-order.ts";
import { ABSENT, type Entry, IN_PART, labelOf, placeOf, type Reading, readingOf, sourcesOf, textOf, thingOf, type View, viewOf } from "./compare-rows.ts";
import { inPrefix } from "./compare-text.ts";
import { type Change, isHost, MOMENTARY, meaningOf, OWN_TABLE, weightOf } from "./compare-weights.ts";
import type { Evidence } from "./diagnosis.ts";
import { Facts } from "./evaluate.ts";

/** A capture under the name that the reader knows it by. */
export interface Named {
  readonly name: string;
  readonly capture: Capture;
}

/** A line of a peer. */
export interface PeerEvidence extends Evidence {
  readonly peer: string;
}

/** Something that is so on the node and otherwise on most of its peers. */
export interface Difference {
  readonly fact: string;
  readonly change: Change;
  /** One sentence. */
  readonly what: string;
  /** Why it matters to traffic; empty where nothing is known. */
  readonly why: string;
  /** 0…1: how much this kind of difference matters, times how sure it is that healthy nodes are otherwise. */
  readonly score: number;
  /** `peers` of the `of` peers that could be compared are otherwise, and agree. */
  readonly usualIn: { readonly peers: number; readonly of: number };
  readonly here: readonly Evidence[];
  readonly there: readonly PeerEvidence[];
  /** Of something that is on one side only: the command of the other side that does not show it. */
  readonly notIn?: string;
}

/** When the facts of one side were collected. */
export interface Collection {
  readonly name: string;
  /** "ssm", "local", …; "replay" for a recorded capture. */
  readonly transport: string;
  /** ISO 8601 in UTC; absent if the capture does not tell. */
  readonly at?: string;
}

export interface Comparison {
  readonly schema: "netcheck.comparison/1";
  readonly target: string;
  readonly peers: readonly string[];
  /** How old each side's facts are: the node's, then the peers'. */
  readonly collected: readonly Collection[];
  /** How many facts were compared, some of them perhaps in part. */
  readonly facts: number;
  /** The most unusual and most weighty first. */
  readonly differences: readonly Difference[];
  /** What was left out, by reason. */
  readonly suppressed: {
    /** Differences that hardly matter to traffic. */
    readonly minor: number;
    /** The peers do not agree among themselves. */
    readonly noMajority: number;
    /** More than the limit. */
    readonly overLimit: number;
    /** Facts that describe the moment (connections, counters, log lines) and are never compared. */
    readonly momentary: readonly string[];
  };
  /** Facts that could not be compared, or only in part. Never a difference. */
  readonly notCompared: readonly { readonly fact: string; readonly reason: string }[];
}

/** From this score on a difference is worth a look; below, it is kept for the full list. */
export const WORTH_A_LOOK = 0.25;
/** More differences worth a look than this: the nodes are not built alike, and the comparison says little. Nodes of one pool have none or a few. */
export const UNLIKE = 8;
/** Below this a difference is only counted. */
const MINOR = 0.05;
/** Evidence lines on each side. */
const SHOWN = 3;
/** Settings that are asked for by name: what was not asked for is not missing, and what is not there is told. */
const ASKED_BY_NAME: ReadonlySet<string> = new Set(["sysctl"]);
/** Things named in one sentence. */
const NAMED = 3;

/**
 * Holds the facts of a node against those of its peers. What most peers agree on and the node does not is a difference; how much it matters times how
 * usual the peers' way is gives its rank. What is missing, cut or partial on a side is not compared, with the reason. Deterministic.
 * @param peers at least one, at most some: time and memory grow with their number
 * @param limit at most so many differences
 */
export function compare(target: Named, peers: readonly Named[], limit = 50): Comparison {
  if (peers.length === 0) throw new RangeError("there is no peer to compare with");
  const here = sideOf(target);
  const there = peers.map(sideOf);
  const notCompared: { fact: string; reason: string }[] = [];
  const momentary: string[] = [];
  const found: Found[] = [];
  let noMajority = 0;
  let compared = 0;
  for (const { id } of facts) {
    const mine = here.readings.get(id);
    const theirs = there.filter((side) => side.readings.get(id)?.status === "read");
    if (mine === undefined || (mine.status !== "read" && theirs.length === 0)) continue;
    if (Object.hasOwn(MOMENTARY, id)) {
      if (mine.status === "read" || theirs.length > 0) momentary.push(id);
      continue;
    }
    const problem = mine.status !== "read" ? `${target.name}: ${mine.reason}` : theirs.length > 0 ? "" : reasonsOf(id, there);
    if (problem !== "") {
      notCompared.push({ fact: id, reason: problem });
      continue;
    }
    const lacking = there.filter((side) => side.readings.get(id)?.status !== "read");
    if (lacking.length > 0) notCompared.push({ fact: id, reason: `compared without ${reasonsOf(id, lacking)}` });
    const partial = ASKED_BY_NAME.has(id) || nothingToCompare(id, [here, ...theirs]) ? "" : partlyKnown(id, [here, ...theirs]);
    if (partial !== "") notCompared.push({ fact: id, reason: `only what both sides show is compared: ${partial}` });
    compared++;
    const result = compareFact(id, here, theirs);
    found.push(...result.found);
    noMajority += result.noMajority;
  }
  const scored = merged(found).map((item) => differenceOf(item, here));
  const kept = scored.filter((difference) => difference.score >= MINOR);
  kept.sort((a, b) => b.score - a.score || b.usualIn.peers - a.usualIn.peers || compareText(a.fact, b.fact) || compareText(a.what, b.what));
  return {
    schema: "netcheck.comparison/1",
    target: target.name,
    peers: peers.map(({ name }) => name),
    collected: [target, ...peers].map(collectionOf),
    facts: compared,
    differences: kept.slice(0, limit),
    suppressed: { minor: scored.length - kept.length, noMajority, overLimit: Math.max(0, kept.length - limit), momentary },
    notCompared,
  };
}

/** One node's facts. */
interface Side {
  readonly name: string;
  readonly facts: Facts;
  readonly readings: ReadonlyMap<string, FactReading>;
  readonly sources: ReturnType<typeof sourcesOf>;
}

function sideOf({ name, capture }: Named): Side {
  // what is painted over may be anything, on both nodes
  const facts = new Facts(capture, readFacts(capture)).known();
  return { name, facts, readings: facts.set.readings, sources: sourcesOf(capture) };
}

const reasonsOf = (id: string, sides: readonly Side[]): string => sides.map((side) => `${side.name}: ${side.readings.get(id)?.reason ?? ""}`).join("; ");

function collectionOf({ name, capture: { transport, startedAt } }: Named): Collection {
  const at = Date.parse(startedAt ?? "");
  return { name, transport, ...(Number.isNaN(at) ? {} : { at: new Date(at).toISOString() }) };
}

/** The same commands were answered on every side, each in full, and told of nothing: what else the fact could have asked is installed on none of them. */
function nothingToCompare(id: string, sides: readonly Side[]): boolean {
  const [key, ...others] = sides.map((side) => side.sources.get(id)?.key ?? "");
  if (key === undefined || key.includes(IN_PART) || others.some((other) => other !== key)) return false;
  return sides.every((side) =>
    Object.values(side.readings.get(id)?.value as Record<string, unknown>).every((list) => Array.isArray(list) && list.length === 0),
  );
}

/** Why absence cannot be concluded from every side; empty if it can. */
function partlyKnown(id: string, sides: readonly Side[]): string {
  const cut = sides.find((side) => side.readings.get(id)?.complete !== true);
  if (cut !== undefined) return `${cut.name}: ${cut.readings.get(id)?.reason ?? ""}`;
  const [here, ...there] = sides;
  const other = there.find((side) => side.sources.get(id)?.key !== here?.sources.get(id)?.key);
  return other === undefined ? "" : `other commands were run on ${other.name} than on ${here?.name ?? ""}`;
}

/** A difference before like ones are put together. */
interface Found {
  readonly fact: string;
  readonly list: string;
  readonly change: Change;
  /** Differences with the same key are told in one sentence. */
  readonly key: string;
  readonly weight: number;
  readonly why: string;
  readonly field: string;
  readonly values: { readonly here: string; readonly there: string };
  /** The entry here, or the one of the first peer that is otherwise. */
  readonly entry: Entry;
  readonly here: readonly Entry[];
  readonly there: readonly Entry[];
  /** The first peer that is otherwise. */
  readonly peer: Side;
  readonly peers: number;
  readonly of: number;
  /** Instead of the usual sentence. */
  readonly sentence?: string;
}

interface Compared {
  readonly side: Side;
  readonly view: View;
  /** Both were asked the same and answered in full: what one does not show is not there. */
  readonly exhaustive: boolean;
  /** Both were asked the same, answered, and could be read: of what one shows, the other shows as much as there is. */
  readonly alike: boolean;
}

function compareFact(id: string, here: Side, there: readonly Side[]): { found: Found[]; noMajority: number } {
  const sides = [here, ...there];
  const tables = (["iptables", "ebtables"] as const).filter((name) => sides.every((side) => side.readings.get(name)?.status === "read"));
  const how: Reading = readingOf(
    sides.map((side) => side.readings.get(id) as FactReading),
    tables,
  );
  const mine = viewOf(id, here.readings.get(id) as FactReading, here.facts.capture, how);
  const source = here.sources.get(id)?.key;
  const peers = there.map((side): Compared => {
    const view = viewOf(id, side.readings.get(id) as FactReading, side.facts.capture, how);
    const same = side.sources.get(id)?.key === source;
    const alike = same && source?.includes(IN_PART) === false && [here, side].every((one) => one.readings.get(id)?.unparsed.length === 0);
    return { side, view, exhaustive: mine.complete && view.complete && same, alike };
  });
  const found: Found[] = [];
  const comparer = new FactComparer(id, here, mine, peers, found);
  const places = new Set([mine, ...peers.map(({ view }) => view)].flatMap((view) => view.entries.map(({ list, group }) => `${list}\n${group}`)));
  for (const place of places) comparer.place(place);
  return { found: withoutEchoes(found), noMajority: comparer.noMajority };
}

/** Holds one fact of a node against that of its peers, place by place. */
class FactComparer {
  noMajority = 0;
  readonly #id: string;
  readonly #here: Side;
  readonly #mine: Index;
  readonly #peers: readonly (Compared & { readonly index: Index })[];
  readonly #found: Found[];

  constructor(id: string, here: Side, mine: View, peers: readonly Compared[], found: Found[]) {
    this.#id = id;
    this.#here = here;
    this.#mine = indexOf(mine);
    this.#peers = peers.map((peer) => ({ ...peer, index: indexOf(peer.view) }));
    this.#found = found;
  }

  /** One group of one list: what stands in it, and in which order. */
  place(place: string): void {
    const mine = this.#mine.get(place);
    const identities = new Set([mine, ...this.#peers.map(({ index }) => index.get(place))].flatMap((group) => [...(group?.identities.keys() ?? [])]));
    for (const identity of identities) this.#thing(place, identity);
    if (mine?.entries.some((entry) => entry.ordered) === true) this.#order(place, mine.entries);
  }

  #thing(place: string, identity: string): void {
    const mine = this.#mine.get(place)?.identities.get(identity) ?? [];
    const known = this.#peers.filter((peer) => peer.index.get(place)?.identities.has(identity) === true || this.#seesAll(place, peer));
    const theirs = known.map((peer) => peer.index.get(place)?.identities.get(identity) ?? []);
    if (this.#id === "route") for (const { token } of mine) this.#number(place, token, this.#mine.get(place)?.tokens.get(token) ?? []);
    if (this.#id === "route" && mine.length === 1) this.#gateway(place, identity, mine[0] as Entry);
    // one thing that is on every side: field by field
    const single = mine.length === 1 && theirs.filter((entries) => entries.length === 1).length * 2 > known.length;
    if (single && !(mine[0] as Entry).ordered) {
      this.#fields(place, mine[0] as Entry, identity);
      return;
    }
    const tokens = new Set([...mine, ...theirs.flat()].map((entry) => entry.token));
    for (const token of tokens) this.#token(place, token);
  }

  #fields(place: string, mine: Entry, identity: string): void {
    const peers = this.#peers.flatMap((peer) => {
      const entries = peer.index.get(place)?.identities.get(identity) ?? [];
      return entries.length === 1 ? [{ peer, entry: entries[0] as Entry }] : [];
    });
    for (const field of new Set([mine, ...peers.map(({ entry }) => entry)].flatMap((entry) => [...entry.fields.keys()]))) {
      const value = shown(mine, field);
      const others = new Map<string, typeof peers>();
      for (const item of peers) {
        // old tools print no policy
        if (field === "policy" && mine.fields.has(field) !== item.entry.fields.has(field)) continue;
        // another command may simply not print this field
        if (!item.peer.exhaustive && (!mine.fields.has(field) || !item.entry.fields.has(field)) && shown(item.entry, field) !== ABSENT && value !== ABSENT)
          continue;
        const other = shown(item.entry, field);
        others.set(other, [...(others.get(other) ?? []), item]);
      }
      const of = [...others.values()].reduce((sum, items) => sum + items.length, 0);
      const [usual, items] = [...others].sort((a, b) => b[1].length - a[1].length)[0] ?? ["", []];
      if (items.length === 0 || usual === value) continue;
      if (items.length * 2 <= of) {
        if (!others.has(value)) this.noMajority++;
        continue;
      }
      const [first] = items;
      if (first === undefined) continue;
      // one setting of many interfaces is told once
      const key = mine.row["key"] === undefined ? field : (textOf(mine.row, "key").split(".").at(-1) ?? "");
      this.#add("changed", key, mine, [mine], items, of, field, { here: value, there: usual });
    }
  }

  #token(place: string, token: string): void {
    const mine = this.#mine.get(place)?.tokens.get(token) ?? [];
    const known = this.#peers.filter((peer) => peer.index.get(place)?.tokens.has(token) === true || this.#seesAll(place, peer));
    const having = known.flatMap((peer) => {
      const entry = peer.index.get(place)?.tokens.get(token)?.[0];
      return entry === undefined ? [] : [{ peer, entry }];
    });
    const lacking = known.filter((peer) => !having.some((item) => item.peer === peer));
    const [entry] = mine;
    const values = { here: "", there: "" };
    if (entry !== undefined && lacking.length * 2 > known.length) {
      // of two that are the same, which one is too many is not ours to say
      const all = entry.again ? (this.#mine.get(place)?.entries ?? []).filter((item) => item.token.split("\t#")[0] === token.split("\t#")[0]) : mine;
      const items = lacking.map((peer) => ({ peer, entry: undefined }));
      this.#add("only-here", place, entry, all, items, known.length, "", values);
    } else if (entry === undefined && having.length * 2 > known.length) {
      const lacks = having.filter(({ peer }) => this.#seesAllHere(place, peer));
      if (lacks.length > 0) this.#add("missing-here", place, (lacks[0] as { entry: Entry }).entry, [], lacks, known.length, "", values);
    }
  }

  /** The default route: where all peers have the same gateway, and this node is in its network, another one is told. Elsewhere gateways differ from node to node. */
  #gateway(place: string, identity: string, mine: Entry): void {
    if (mine.row["prefix"] !== "0.0.0.0/0") return;
    const items = this.#peers.flatMap((peer) => {
      const entries = peer.index.get(place)?.identities.get(identity) ?? [];
      return entries.length === 1 ? [{ peer, entry: entries[0] as Entry }] : [];
    });
    const [here, there] = [textOf(mine.row, "gateway"), textOf(items[0]?.entry.row ?? {}, "gateway")];
    if (here === "" || there === "" || here === there || items.length < Math.max(2, this.#peers.length)) return;
    if (items.some(({ entry }) => textOf(entry.row, "gateway") !== there)) return;
    const linked = [...this.#mine.values()].flatMap(({ tokens }) => [...tokens.values()].flat()).filter(({ row }) => row["gateway"] === undefined);
    if (linked.some(({ row }) => row["interface"] === mine.row["interface"] && inPrefix(there, textOf(row, "prefix"))))
      this.#add("changed", "gateway", mine, [mine], items, items.length, "gateway", { here, there });
  }

  /**
   * Routes to the pods of other nodes, which are alike but for their addresses: every node of a pool has as many. Of BIRD's only those count that all peers have,
   * their owner as its own, because a node may have more than one block of addresses.
   */
  #number(place: string, token: string, mine: readonly Entry[]): void {
    const [entry] = mine;
    if (entry === undefined || typeof entry.row["gateway"] !== "string" || !token.includes("<")) return;
    if (entry.row["protocol"] === "bird") {
      this.#blocks(place, token, entry, mine);
      return;
    }
    const items = this.#peers.flatMap((peer) => {
      const entries = peer.index.get(place)?.tokens.get(token) ?? [];
      return peer.alike && entries.length > 0 ? [{ peer, entry: entries[0] as Entry, entries }] : [];
    });
    const number = items[0]?.entries.length;
    if (number === undefined || items.length < this.#peers.length || number === mine.length || items.some(({ entries }) => entries.length !== number)) return;
    const known = new Set([...this.#mine.values()].flatMap(({ tokens }) => [...tokens.values()].flat()).map(({ row }) => textOf(row, "prefix")));
    const missing = items.flatMap(({ entries }) => entries.filter(({ row }) => !known.has(textOf(row, "prefix"))));
    const names = [...new Set(missing.map(({ row }) => textOf(row, "prefix")))];
    const which =
      number > mine.length && names.length > 0
        ? `; not here: ${names.slice(0, NAMED).join(", ")}${names.length > NAMED ? ` and ${names.length - NAMED} more` : ""}`
        : "";
    const sentence = `Routes like ${labelOf(entry)} (route ${placeOf(entry)}): ${mine.length} here, ${number} on ${usual(items.length, items.length)}${which}`;
    const peer = items.find(({ entries }) => entries.includes(missing[0] as Entry)) ?? items[0];
    const told = { sentence, there: missing.filter((one) => peer?.entries.includes(one) === true) };
    const ordered = peer === undefined ? items : [peer, ...items.filter((item) => item !== peer)];
    this.#add("changed", `${place}\n${token}`, entry, mine, ordered, items.length, "number", { here: `${mine.length}`, there: `${number}` }, told);
  }

  /** Blocks of addresses that every peer knows, by a route or as its own, and this node does not. One peer cannot say so: a block may be its second. */
  #blocks(place: string, token: string, entry: Entry, mine: readonly Entry[]): void {
    const prefixes = (index: Index): Map<string, Entry> =>
      new Map([...index.values()].flatMap(({ tokens }) => [...tokens.values()].flat()).map((one) => [textOf(one.row, "prefix"), one]));
    const here = prefixes(this.#mine);
    const peers = this.#peers.filter(({ alike }) => alike).map((peer) => ({ peer, known: prefixes(peer.index) }));
    const [first] = peers;
    if (first === undefined || peers.length < Math.max(2, this.#peers.length)) return;
    const routes = (first.peer.index.get(place)?.tokens.get(token) ?? []).concat(peers[1]?.peer.index.get(place)?.tokens.get(token) ?? []);
    const missing = [...new Map(routes.map((one) => [textOf(one.row, "prefix"), one]))].filter(
      ([prefix]) => !here.has(prefix) && peers.every(({ known }) => known.has(prefix)),
    );
    if (missing.length === 0) return;
    const names = missing.map(([prefix]) => prefix);
    const sentence = `Routes like ${labelOf(entry)} (route ${placeOf(entry)}): not here: ${names.slice(0, NAMED).join(", ")}${names.length > NAMED ? ` and ${names.length - NAMED} more` : ""}; all ${peers.length} peers know ${names.length === 1 ? "it" : "them"}`;
    const items = peers.map(({ peer, known }) => ({ peer, entry: known.get(names[0] ?? "") ?? entry }));
    const shown = missing.map(([prefix]) => first.known.get(prefix) ?? entry);
    const values = { here: `${mine.length}`, there: `${mine.length + missing.length}` };
    this.#add("changed", `${place}\n${token}`, entry, mine, items, items.length, "number", values, { sentence, there: shown });
  }

  /** Entries of a group that are on both sides in another order. */
  #order(place: string, mine: readonly Entry[]): void {
    const peers = this.#peers.filter((peer) => this.#seesAll(place, peer) && this.#seesAllHere(place, peer) && peer.index.has(place));
    const tokens = mine.map((entry) => entry.token);
    const here = positions(mine);
    const lists = peers.map((peer) => {
      const theirs = peer.index.get(place)?.entries ?? [];
      return {
        peer,
        at: positions(theirs),
        theirs,
        moved: moves(
          tokens,
          theirs.map((entry) => entry.token),
        ),
      };
    });
    const first = lists.find(({ moved }) => moved.length > 0);
    for (const { token, passed } of first?.moved.slice(0, NAMED) ?? []) {
      const [next = ""] = passed;
      // the peers on which these two stand the other way round
      const behind = order(here, next, token);
      const others = lists.filter(({ at }) => at.has(token) && at.has(next) && order(at, next, token) !== behind);
      if (others.length * 2 <= peers.length) {
        this.noMajority++;
        continue;
      }
      const other = others[0] as (typeof lists)[number];
      const entry = mine[here.get(token) ?? 0] as Entry;
      const rows = (list: readonly Entry[], at: ReadonlyMap<string, number>, names: readonly string[]): Entry[] =>
        byLine(names.flatMap((name) => list[at.get(name) ?? list.length] ?? []));
      const overtaken = passed.slice(0, NAMED).flatMap((name) => mine[here.get(name) ?? tokens.length] ?? []);
      const rest = passed.length - overtaken.length;
      const names = `${overtaken.map(nameOf).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
      const numbers = new Set(others.map(({ at }) => at.get(token)));
      const number = numbers.size === 1 ? `number ${(other.at.get(token) ?? 0) + 1}, ` : "";
      const it = passed.length === 1 ? "it" : "them";
      const sentence =
        `Order in ${placeOf(entry)}: ${nameOf(entry)} is number ${(here.get(token) ?? 0) + 1} of ${mine.length} here, ${behind ? "behind" : "before"} ${names}; ` +
        `on ${usual(others.length, peers.length)} it is ${number}${behind ? "before" : "behind"} ${it}`;
      const shown = [token, ...passed.slice(0, SHOWN - 1)];
      const items = others.map(({ peer }) => ({ peer, entry }));
      const told = { sentence, there: rows(other.theirs, other.at, shown) };
      this.#add("order", `${place}\n${token}`, entry, rows(mine, here, shown), items, peers.length, "", { here: "", there: "" }, told);
    }
  }

  #add(
    change: Change,
    key: string,
    entry: Entry,
    here: readonly Entry[],
    items: readonly { readonly peer: Compared; readonly entry: Entry | undefined }[],
    of: number,
    field: string,
    values: Found["values"],
    told?: { readonly sentence: string; readonly there: readonly Entry[] },
  ): void {
    const [first] = items;
    if (first === undefined) return;
    const weighed = { fact: this.#id, list: entry.list, change, field, row: entry.row, private: entry.private, values };
    this.#found.push({
      fact: this.#id,
      list: entry.list,
      change,
      key: [entry.list, change, key, field, values.here, values.there, items.length, of, entry.private].join("\n"),
      weight: this.#id === "route" && this.#ofOwnTable(change, entry, first.peer.side) ? OWN_TABLE : weightOf(weighed),
      why: meaningOf(weighed),
      field,
      values,
      entry,
      here,
      there: told?.there ?? (first.entry === undefined ? [] : [first.entry]),
      peer: first.peer.side,
      peers: items.length,
      of,
      ...(told === undefined ? {} : { sentence: told.sentence }),
    });
  }

  /** A route of a table that one side alone has, and asks for packets of single addresses alone: so clouds do it for each further card of a machine. */
  #ofOwnTable(change: Change, { row }: Entry, peer: Side): boolean {
    if (change !== "only-here" && change !== "missing-here") return false;
    const [having, lacking] = change === "only-here" ? [this.#here, peer] : [peer, this.#here];
    const table = textOf(row, "table");
    const asking = rulesFor(having, table);
    return asking.length > 0 && asking.every(({ from }) => isHost(from)) && rulesFor(lacking, table).length === 0;
  }

  /** What is not in this place on the peer is surely not there. */
  #seesAll(place: string, peer: Compared): boolean {
    return seesAll(this.#id, place, peer.view, peer.exhaustive);
  }

  #seesAllHere(place: string, peer: Compared): boolean {
    return seesAll(this.#id, place, this.#mine.view, peer.exhaustive);
  }
}

/** The policy rules that lead to a table. */
function rulesFor(side: Side, table: string): readonly { readonly from?: string }[] {
  const reading = side.readings.get("rule");
  if (reading?.status !== "read") return [];
  return (reading.value as { rows: readonly { table?: string; from?: string }[] }).rows.filter((rule) => rule.table === table);
}

function seesAll(id: string, place: string, view: View, exhaustive: boolean): boolean {
  if (ASKED_BY_NAME.has(id)) return false;
  const [list = "", group = ""] = place.split("\n");
  return (list === "rows" ? view.groups.get(group) : undefined) ?? exhaustive;
}

interface Group {
  /** Equal ones once, in order. */
  readonly entries: Entry[];
  /** The same by what they are about. */
  readonly identities: Map<string, Entry[]>;
  /** All, by token. */
  readonly tokens: Map<string, Entry[]>;
}
class Index extends Map<string, Group> {
  readonly view: View;
  constructor(view: View) {
    super();
    this.view = view;
  }
}

/** Entries by place, identity and token. */
function indexOf(view: View): Index {
  const index = new Index(view);
  for (const entry of view.entries) {
    const place = `${entry.list}\n${entry.group}`;
    let group = index.get(place);
    if (group === undefined) {
      group = { entries: [], identities: new Map(), tokens: new Map() };
      index.set(place, group);
    }
    const equal = group.tokens.get(entry.token);
    if (equal !== undefined) {
      equal.push(entry);
      continue;
    }
    group.tokens.set(entry.token, [entry]);
    group.entries.push(entry);
    const same = group.identities.get(entry.identity);
    if (same === undefined) group.identities.set(entry.identity, [entry]);
    else same.push(entry);
  }
  return index;
}

/** A chain that is on one side only is told by its rules, if it has any; one that is there, empty and accepting says nothing. */
function withoutEchoes(found: readonly Found[]): Found[] {
  const told = new Set(found.filter(({ list }) => list === "rows").map(({ entry, change }) => `${change} ${entry.group}`));
  return found.flatMap((item) => {
    if (item.list !== "chains" || (item.change !== "only-here" && item.change !== "missing-here")) return [item];
    const { row, group, private: own } = item.entry;
    const policy = textOf(row, "policy").toUpperCase();
    if (policy !== "" && policy !== "ACCEPT") return [{ ...item, weight: own ? item.weight : 0.95, key: `${item.key}\n${textOf(row, "name")}` }];
    return policy === "ACCEPT" || told.has(`${item.change} ${group} ${item.entry.identity}`) ? [] : [item];
  });
}

/** Like differences as one: its evidence is theirs, the weightiest first. */
function merged(found: readonly Found[]): Found[][] {
  const groups = new Map<string, Found[]>();
  for (const item of found) {
    const key = `${item.fact}\n${item.key}`;
    const same = groups.get(key);
    if (same === undefined) groups.set(key, [item]);
    else same.push(item);
  }
  return [...groups.values()].map((items) => items.sort((a, b) => b.weight - a.weight));
}

function differenceOf(items: readonly Found[], here: Side): Difference {
  const [first] = items as [Found, ...Found[]];
  const quote = <T>(side: Side, entries: readonly Entry[], as: (evidence: Evidence) => T): T[] => {
    const lines = new Map<string, Evidence>();
    for (const { row } of entries) {
      const evidence = side.facts.quote(row as { line: unknown });
      if (evidence !== undefined) lines.set(`${evidence.file}:${evidence.line}:${evidence.text}`, evidence);
      if (lines.size === SHOWN) break;
    }
    return [...lines.values()].map(as);
  };
  const mine = quote(
    here,
    items.flatMap((item) => item.here),
    (evidence) => evidence,
  );
  const theirs = quote(
    first.peer,
    items.flatMap((item) => item.there),
    (evidence) => ({ ...evidence, peer: first.peer.name }),
  );
  // Laplace's rule of succession: how likely the next healthy node is like these
  const sure = (first.peers + 1) / (first.of + 2);
  const other = first.change === "only-here" ? first.peer : first.change === "missing-here" ? here : undefined;
  const notIn = other?.sources.get(first.fact)?.commands[0];
  return {
    fact: first.fact,
    change: first.change,
    what: sentenceOf(items),
    why: first.why,
    score: Math.round(first.weight * sure * 100) / 100,
    usualIn: { peers: first.peers, of: first.of },
    here: mine,
    there: theirs,
    ...(notIn === undefined ? {} : { notIn }),
  };
}

function sentenceOf(items: readonly Found[]): string {
  const [first] = items as [Found, ...Found[]];
  if (first.sentence !== undefined) return first.sentence;
  const there = usual(first.peers, first.of);
  const place = placeOf(first.entry);
  const things = [...new Set(items.flatMap((item) => (item.here.length === 0 ? [item.entry] : item.here)).map(labelOf))];
  const list = `${things.slice(0, NAMED).join("; ")}${things.length > NAMED ? ` and ${things.length - NAMED} more` : ""}`;
  const where = [first.fact, first.list === "rows" ? "" : first.list, place].filter(Boolean).join(" ");
  const it = things.length === 1 ? "it" : "them";
  if (first.change === "only-here") {
    const more = first.entry.again ? "Once more here" : "Only here";
    const lack =
      first.of === 1 ? `the peer does not have ${it}` : `${there.replace(/^all/, "none of the")} ${there.startsWith("all") ? "has" : "do not have"} ${it}`;
    return `${more} (${where}): ${list}; ${first.entry.again ? lack.replace(/(?:it|them)$/, "that") : lack}`;
  }
  if (first.change === "missing-here") return `Missing here (${where}): ${list}; ${there} ${first.peers === 1 ? "has" : "have"} ${it}`;
  const names = [...new Set(items.map((item) => thingOf(item.entry)))];
  const who = `${names.slice(0, NAMED).join(", ")}${names.length > NAMED ? ` and ${names.length - NAMED} more` : ""}`;
  const field = first.field === "value" ? "" : ` ${first.field}`;
  return `${who}${place === "" || first.fact === "sysctl" ? "" : ` (${where})`}:${field} ${first.values.here} here, ${first.values.there} on ${there}`;
}

const usual = (peers: number, of: number): string => (of === 1 ? "the peer" : peers === of ? `all ${of} peers` : `${peers} of ${of} peers`);

/** A rule by its target, where that is a name of its own. */
function nameOf(entry: Entry): string {
  const target = entry.row["target"] ?? entry.row["name"];
  return typeof target === "string" && !/^(?:ACCEPT|DROP|RETURN|REJECT|accept|drop|return|reject)$/.test(target) ? target : `"${labelOf(entry)}"`;
}

function shown(entry: Entry, field: string): string {
  const value = entry.fields.get(field);
  if (value !== undefined) return value === ABSENT ? ABSENT : field === "value" && value === "" ? "(empty)" : value;
  return field === "value" ? "(present)" : "no";
}

/** Where each token stands, the first of equals. */
function positions(entries: readonly Entry[]): Map<string, number> {
  const at = new Map<string, number>();
  entries.forEach(({ token }, index) => {
    if (!at.has(token)) at.set(token, index);
  });
  return at;
}

/** True if `a` stands before `b`. */
const order = (at: ReadonlyMap<string, number>, a: string, b: string): boolean => (at.get(a) ?? 0) < (at.get(b) ?? 0);

const byLine = (entries: readonly Entry[]): Entry[] => [...entries].sort((a, b) => Number(a.row["line"]) - Number(b.row["line"]));
const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
