import { COUNTER, counter, type IptablesRow, type Names, protocolName, setDestination, setMark, setSource, xmark } from "./iptables-row.ts";
import { numbered } from "./service-name.ts";

const SPACE = 32;

/** The columns of a listing: which of the optional ones are there. */
export interface Columns {
  readonly number: boolean;
  readonly counters: boolean;
  readonly interfaces: boolean;
}

const HEADER = /^\s*(num\s+)?(pkts\s+bytes\s+)?target\s+prot(?:\s+opt)?(\s+in\s+out)?\s+source\s+destination$/;

/** The columns that a header line names; undefined if it is none. */
export function columnsOf(text: string): Columns | undefined {
  const match = HEADER.exec(text);
  return match === null ? undefined : { number: match[1] !== undefined, counters: match[2] !== undefined, interfaces: match[3] !== undefined };
}

/** Where nothing else tells the protocol from the target. */
const PROTOCOL =
  /^!?(?:\d{1,3}|all|tcp|udp|udplite|icmp|icmpv6|ipv6-icmp|ipv6-mh|esp|ah|sctp|dccp|gre|igmp|ipencap|ipip|ospf|ospfigp|pim|vrrp|ipv6|mh|mobility-header)$/i;
/** Where the `opt` column tells which word it is: a number, or any name of /etc/protocols. */
const ANY_PROTOCOL = /^!?[a-z0-9][\w.+-]{0,31}$/i;
const INTERFACE = /^!?[^\s/!]{1,16}$/;
const ADDRESS = /^!?[^\s!]{1,200}$/;
const ANY_ADDRESS = /^!?(?:anywhere|[\da-fA-FxX*]*:[\da-fA-FxX*:./]*)$/;
/** The columns, with one word of what stands behind them. */
const MAX_WORDS = 12;

/** Where the words of a row stand. One list of places is used for all rows, because a list of texts for each of 100,000 takes longer. */
class Words {
  readonly #from = new Int32Array(MAX_WORDS);
  readonly #end = new Int32Array(MAX_WORDS);
  #text = "";
  count = 0;

  /** Finds the words of `text`. */
  read(text: string): void {
    this.#text = text;
    this.count = 0;
    for (let at = 0; this.count < MAX_WORDS; this.count++) {
      while (at < text.length && text.charCodeAt(at) <= SPACE) at++;
      if (at === text.length) break;
      this.#from[this.count] = at;
      while (at < text.length && text.charCodeAt(at) > SPACE) at++;
      this.#end[this.count] = at;
    }
  }

  /** The word at `i`, "" behind the last one. */
  of(i: number): string {
    return i < this.count ? this.#text.slice(this.#from[i], this.#end[i]) : "";
  }

  /** Where the word at `i` begins; behind the last one the end of the text. */
  from(i: number): number {
    return i < this.count ? (this.#from[i] as number) : this.#text.length;
  }

  is(i: number, word: string): boolean {
    return i < this.count && (this.#end[i] as number) - (this.#from[i] as number) === word.length && this.#text.startsWith(word, this.#from[i]);
  }
}
const words = new Words();
const isOpt = (i: number): boolean => words.is(i, "--") || words.is(i, "-f") || words.is(i, "!f");

/**
 * Reads one row of `iptables -L` into `row`. A rule without a target has an empty column, so the words shift: the `opt` column (`--`) tells where
 * the protocol stands; old ip6tables leave that one blank too. Returns the row's number where printed (0 if not), or -1 if it is no row.
 */
export function readColumns(text: string, columns: Columns, row: IptablesRow, names: Names): number {
  words.read(text);
  let i = 0;
  let position = 0;
  if (columns.number) {
    const number = words.of(i++);
    if (!/^\d{1,9}$/.test(number)) return -1;
    position = Number(number);
  }
  if (columns.counters) {
    const [packets, bytes] = [words.of(i), words.of(i + 1)];
    if (!COUNTER.test(packets) || !COUNTER.test(bytes)) return -1;
    row.packets = counter(packets);
    row.bytes = counter(bytes);
    i += 2;
  }
  const specFrom = words.from(i);
  const width = columns.interfaces ? 4 : 2;
  if (!isOpt(i + 1)) {
    const targeted = isOpt(i + 2) || (PROTOCOL.test(words.of(i + 1)) && startsAddresses(i + 1, width));
    if (targeted) row.target = names.of(words.of(i++));
    else if (!PROTOCOL.test(words.of(i)) || !startsAddresses(i, width)) return -1;
  }
  const protocol = words.of(i++);
  if (!ANY_PROTOCOL.test(protocol)) return -1;
  if (protocol.startsWith("!")) row.protocolNegated = true;
  row.protocol = names.of(protocolName(bare(protocol)));
  if (isOpt(i)) i++;
  if (columns.interfaces) {
    if (!words.is(i, "*")) {
      const inward = words.of(i);
      if (!INTERFACE.test(inward)) return -1;
      if (inward !== "any") row.inInterface = names.of(bare(inward));
      if (inward.startsWith("!")) row.inInterfaceNegated = true;
    }
    if (!words.is(i + 1, "*")) {
      const outward = words.of(i + 1);
      if (!INTERFACE.test(outward)) return -1;
      if (outward !== "any") row.outInterface = names.of(bare(outward));
      if (outward.startsWith("!")) row.outInterfaceNegated = true;
    }
    i += 2;
  }
  const [source, destination] = [words.of(i), words.of(i + 1)];
  if (!ADDRESS.test(source) || !ADDRESS.test(destination)) return -1;
  setSource(row, bare(source), source.startsWith("!"));
  setDestination(row, bare(destination), destination.startsWith("!"));
  row.spec = text.slice(specFrom);
  readDetails(text, words.from(i + 2), row, names);
  return position;
}

/** True if the word at `i` can be the protocol of a row without `opt` column: the addresses stand where they should. */
const startsAddresses = (i: number, width: number): boolean =>
  words.count >= i + width + 1 && ANY_ADDRESS.test(words.of(i + width - 1)) && ANY_ADDRESS.test(words.of(i + width));

const bare = (word: string): string => (word.startsWith("!") ? word.slice(1) : word);

/** What -L prints behind the columns, from `start` on: matches in words (`ctstate NEW`, `tcp dpt:80`), the comment between slashes, the target's options. */
function readDetails(text: string, start: number, row: IptablesRow, names: Names): void {
  let at = start;
  let negated = false;
  let previous = "";
  const next = (): string => {
    while (at < text.length && text.charCodeAt(at) <= SPACE) at++;
    const from = at;
    while (at < text.length && text.charCodeAt(at) > SPACE) at++;
    return text.slice(from, at);
  };
  /** The value of a match, with a `!` before it or in front of it. */
  const value = (): string => {
    let word = next();
    if (word === "!") {
      negated = true;
      word = next();
    }
    if (!word.startsWith("!")) return word;
    negated = true;
    return word.slice(1);
  };
  for (let word = next(); word !== ""; word = next()) {
    if (word === "/*") {
      const close = text.indexOf("*/", at);
      const comment = text.slice(at, close === -1 ? text.length : close).trim();
      if (comment !== "") row.comment ??= comment;
      at = close === -1 ? text.length : close + 2;
    } else if (word === "!") {
      negated = true;
      continue;
    } else if (word === "[goto]") row.goto = true;
    else if (word === "ctstate" || word === "state") {
      row.states = names.list(value());
      if (negated) row.statesNegated = true;
    } else if (word === "match" && /^mark$/i.test(previous)) {
      const mark = value();
      setMark(row, names.of(mark), negated);
    } else if (word === "MARK" && row.target === "MARK") {
      const operation = next();
      if (/^(?:set|xset|or|and|xor)$/.test(operation)) row.setMark = names.of(xmark(operation, next()));
      else if (operation === "match") setMark(row, names.of(value()), negated);
    } else if (word === "dports" || word === "sports") {
      const ports = value();
      setPort(row, word, ports, negated);
    } else if (word === "reject-with") row.rejectWith = names.of(next());
    else if (word.startsWith("to:")) {
      if (row.target === "SNAT") row.toSource ??= word.slice(3);
      else if (row.target === "DNAT") row.toDestination ??= word.slice(3);
    } else {
      const port = /^([ds]pts?):(!?)([\w.+-]{1,64}(?::[\w.+-]{1,64})?)$/.exec(word);
      if (port !== null) setPort(row, port[1] as string, port[3] as string, port[2] === "!");
    }
    negated = false;
    previous = word;
  }
}

function setPort(row: IptablesRow, side: string, printed: string, negated: boolean): void {
  const ports = numbered(printed);
  if (side.startsWith("d")) {
    row.destinationPort = ports;
    if (negated) row.destinationPortNegated = true;
  } else {
    row.sourcePort = ports;
    if (negated) row.sourcePortNegated = true;
  }
}
