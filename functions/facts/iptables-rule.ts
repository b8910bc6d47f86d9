import type { IptablesRow } from "./iptables.ts";

/**
 * Readers of one iptables rule: as an option line (`-S`, `-save`) and as a row of columns (`-L`). Both work on a range of the whole text and
 * slice only what they keep: a node with many services prints 100,000 rules.
 */

const SPACE = 32;
const BANG = 33;
const QUOTE = 34;
const DASH = 45;
const BACKSLASH = 92;

/** Strings and lists that many rows share: each is kept once. */
export class Names {
  readonly #names = new Map<string, string>();
  readonly #lists = new Map<string, string[]>();

  /** The one copy of `name`. */
  of(name: string): string {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    this.#names.set(name, name);
    return name;
  }

  /** The members of a comma-separated list; equal lists are one array. */
  list(text: string): string[] {
    let list = this.#lists.get(text);
    if (list === undefined) {
      list = text.split(",");
      this.#lists.set(text, list);
    }
    return list;
  }
}

/** Protocol names as iptables-save prints them, by number and by their other names. */
const PROTOCOLS = new Map(
  Object.entries({
    "0": "all",
    "1": "icmp",
    "2": "igmp",
    "4": "ipencap",
    "6": "tcp",
    "17": "udp",
    "33": "dccp",
    "41": "ipv6",
    "47": "gre",
    "50": "esp",
    "51": "ah",
    "58": "ipv6-icmp",
    "89": "ospf",
    "94": "ipip",
    "103": "pim",
    "112": "vrrp",
    "132": "sctp",
    "135": "ipv6-mh",
    "136": "udplite",
    icmpv6: "ipv6-icmp",
    icmp6: "ipv6-icmp",
    mh: "ipv6-mh",
    all: "all",
    icmp: "icmp",
    tcp: "tcp",
    udp: "udp",
  }),
);

/** The lower-case name of a protocol given as a name or a number; numbers without a name stay numbers. */
function protocolName(text: string): string {
  const lower = text.toLowerCase();
  return PROTOCOLS.get(lower) ?? lower;
}

/** A prefix with its length (`10.0.0.0/255.0.0.0` → `10.0.0.0/8`, `10.0.0.1` → `10.0.0.1/32`), undefined for any address; names stay as they are. */
function prefixOf(text: string): string | undefined {
  const slash = text.indexOf("/");
  if (slash === -1) {
    if (text === "anywhere") return undefined;
    if (/^\d{1,3}(?:\.\d{1,3}){3}$/.test(text)) return `${text}/32`;
    return /^[\da-fA-F:.]{2,45}$/.test(text) && text.includes(":") ? `${text}/128` : text;
  }
  if (text.length - slash === 2 && text.endsWith("/0")) return undefined;
  if (text.length - slash <= 4) return text;
  const length = maskLength(text.slice(slash + 1));
  if (length === undefined) return text;
  return length === 0 ? undefined : `${text.slice(0, slash)}/${length}`;
}

/** The length of a contiguous dotted mask. */
function maskLength(mask: string): number | undefined {
  if (!/^\d{1,3}(?:\.\d{1,3}){3}$/.test(mask)) return undefined;
  let bits = "";
  for (const octet of mask.split(".")) bits += Number(octet).toString(2).padStart(8, "0");
  return /^1*0*$/.test(bits) && bits.length === 32 ? bits.lastIndexOf("1") + 1 : undefined;
}

/** `--set-xmark` as value/mask of the packet mark: the one spelling for set, or, and, xor. */
function xmark(operation: string, text: string): string {
  const [value = "", mask] = text.split("/");
  if (mask !== undefined) return text;
  const number = Number(value);
  if (!Number.isInteger(number)) return text;
  const hex = `0x${number.toString(16)}`;
  if (operation === "or") return `${hex}/${hex}`;
  if (operation === "xor") return `${hex}/0x0`;
  if (operation === "and") return `0x0/0x${((~number >>> 0) & 0xffffffff).toString(16)}`;
  return `${hex}/0xffffffff`;
}

/** Index behind the word at `at`, or -1 if its quote is not closed. */
function endOfWord(text: string, at: number, end: number): number {
  let i = at;
  while (i < end) {
    const code = text.charCodeAt(i);
    if (code <= SPACE) return i;
    if (code === QUOTE) {
      for (i++; i < end; i++) {
        const inner = text.charCodeAt(i);
        if (inner === BACKSLASH) i++;
        else if (inner === QUOTE) break;
      }
      if (i >= end) return -1;
    }
    i++;
  }
  return end;
}

/** What stands in `text[at, stop)`, quotes and backslashes taken off. */
function unquoted(text: string, at: number, stop: number): string {
  if (text.charCodeAt(at) !== QUOTE) return text.slice(at, stop);
  const inner = text.slice(at + 1, stop - 1);
  return inner.includes("\\") ? inner.replace(/\\(.)/g, "$1") : inner;
}

/** Options may have this many words behind them (`--tcp-flags SYN,RST SYN`); more is not a rule. */
const MAX_VALUES = 2;

/**
 * Reads the options of a rule in `text[at, end)` (what stands behind `-A CHAIN `) into `row`. False if it is no rule: a quote that is not closed,
 * words that belong to no option.
 */
export function readOptions(text: string, from: number, end: number, row: IptablesRow, names: Names): boolean {
  let at = from;
  let negated = false;
  let values = MAX_VALUES;
  let markMatch = false;
  while (true) {
    while (at < end && text.charCodeAt(at) <= SPACE) at++;
    if (at >= end) return !negated;
    const first = text.charCodeAt(at);
    let stop = endOfWord(text, at, end);
    if (stop === -1) return false;
    if (first === BANG && stop === at + 1) {
      negated = true;
      at = stop;
      continue;
    }
    if (first !== DASH) {
      if (++values > MAX_VALUES) return false;
      negated = false;
      at = stop;
      continue;
    }
    values = 0;
    const letter = stop - at === 2 ? text.charCodeAt(at + 1) : 0;
    const option = letter === 0 ? text.slice(at, stop) : "";
    if (letter !== 102 /* f */ && letter !== 52 && letter !== 54 && (letter !== 0 || takesValue(option))) {
      // The value, with an old-style `!` before it: `-p ! tcp`.
      at = stop;
      while (at < end && text.charCodeAt(at) <= SPACE) at++;
      if (text.charCodeAt(at) === BANG && text.charCodeAt(at + 1) <= SPACE) {
        negated = true;
        at++;
        while (at < end && text.charCodeAt(at) <= SPACE) at++;
      }
      if (at >= end) return false;
      stop = endOfWord(text, at, end);
      if (stop === -1) return false;
      values = MAX_VALUES;
    }
    switch (letter) {
      case 0:
        if (values === MAX_VALUES) readLong(option, unquoted(text, at, stop), negated, markMatch, row, names);
        break;
      case 106: // j
      case 103: // g
        row.target = names.of(text.slice(at, stop));
        row.goto = letter === 103;
        break;
      case 109: // m
        markMatch = stop - at === 4 && text.startsWith("mark", at);
        break;
      case 112: // p
        row.protocol = names.of(protocolName(text.slice(at, stop)));
        row.protocolNegated = negated;
        break;
      case 115: // s
        setSource(row, text.slice(at, stop), negated);
        break;
      case 100: // d
        setDestination(row, text.slice(at, stop), negated);
        break;
      case 105: // i
        row.inInterface = names.of(text.slice(at, stop));
        row.inInterfaceNegated = negated;
        break;
      case 111: // o
        row.outInterface = names.of(text.slice(at, stop));
        row.outInterfaceNegated = negated;
        break;
      case 99: {
        // c PACKETS BYTES
        const packets = text.slice(at, stop);
        at = stop;
        while (at < end && text.charCodeAt(at) <= SPACE) at++;
        stop = endOfWord(text, at, end);
        const bytes = stop === -1 ? "" : text.slice(at, stop);
        if (!COUNTER.test(packets) || !COUNTER.test(bytes)) return false;
        row.packets = counter(packets);
        row.bytes = counter(bytes);
        break;
      }
      case 102: // f: fragments
      case 52: // 4
      case 54: // 6
        break;
      default:
        return false;
    }
    negated = false;
    at = stop;
  }
}

/** The long options that fill fields. The others pass with the words behind them: every module of iptables has its own. */
function takesValue(option: string): boolean {
  switch (option) {
    case "--comment":
    case "--ctstate":
    case "--state":
    case "--dport":
    case "--sport":
    case "--dports":
    case "--sports":
    case "--destination-ports":
    case "--source-ports":
    case "--mark":
    case "--set-xmark":
    case "--set-mark":
    case "--or-mark":
    case "--and-mark":
    case "--xor-mark":
    case "--to-destination":
    case "--to-source":
    case "--reject-with":
      return true;
    default:
      return false;
  }
}

function readLong(option: string, value: string, negated: boolean, markMatch: boolean, row: IptablesRow, names: Names): void {
  switch (option) {
    case "--comment":
      if (value !== "") row.comment ??= value;
      break;
    case "--ctstate":
    case "--state":
      row.states = names.list(value);
      row.statesNegated = negated;
      break;
    case "--dport":
    case "--dports":
    case "--destination-ports":
      row.destinationPort = names.of(value);
      row.destinationPortNegated = negated;
      break;
    case "--sport":
    case "--sports":
    case "--source-ports":
      row.sourcePort = names.of(value);
      row.sourcePortNegated = negated;
      break;
    case "--mark":
      if (markMatch) setMark(row, names.of(value), negated);
      break;
    case "--to-destination":
      row.toDestination ??= value;
      break;
    case "--to-source":
      row.toSource ??= value;
      break;
    case "--reject-with":
      row.rejectWith = names.of(value);
      break;
    default:
      // --set-xmark, --set-mark, --or-mark, --and-mark, --xor-mark: of the packet, unless it is CONNMARK
      if (row.target === "MARK") row.setMark = names.of(xmark(option.slice(2, option.indexOf("-", 2)), value));
  }
}

function setSource(row: IptablesRow, text: string, negated: boolean): void {
  const prefix = prefixOf(text);
  if (prefix !== undefined) row.source = prefix;
  row.sourceNegated = negated;
}

function setDestination(row: IptablesRow, text: string, negated: boolean): void {
  const prefix = prefixOf(text);
  if (prefix !== undefined) row.destination = prefix;
  row.destinationNegated = negated;
}

function setMark(row: IptablesRow, value: string, negated: boolean): void {
  row.mark = value;
  row.markNegated = negated;
}

/** A counter as -L prints it: digits, or thousands with K, M, G, T. */
export const COUNTER = /^\d{1,20}[KMGT]?$/;

/** The number behind a counter: 148K is 148,000. Beyond 2^53 it is cut to that. */
export function counter(text: string): number {
  const unit = { K: 1e3, M: 1e6, G: 1e9, T: 1e12 }[text.at(-1) as "K"];
  return Math.min(unit === undefined ? Number(text) : Number(text.slice(0, -1)) * unit, Number.MAX_SAFE_INTEGER);
}

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

const PROTOCOL =
  /^!?(?:\d{1,3}|all|tcp|udp|udplite|icmp|icmpv6|ipv6-icmp|ipv6-mh|esp|ah|sctp|dccp|gre|igmp|ipencap|ipip|ospf|ospfigp|pim|vrrp|ipv6|mh|mobility-header)$/i;
const INTERFACE = /^!?[^\s/!]{1,16}$/;
const ADDRESS = /^!?[^\s!]{1,200}$/;
const isOpt = (word: string | undefined): boolean => word === "--" || word === "-f" || word === "!f";

/**
 * Reads one row of `iptables -L` into `row`. A rule without a target has an empty column, so the words shift: the `opt` column (`--`) tells where
 * the protocol stands; old ip6tables leave that one blank too. Returns the row's number where printed (0 if not), or -1 if it is no row.
 */
export function readColumns(text: string, columns: Columns, row: IptablesRow, names: Names): number {
  const words = /\S/.test(text) ? text.trim().split(/\s+/, 12) : [];
  let i = 0;
  let position = 0;
  if (columns.number) {
    if (!/^\d{1,9}$/.test(words[i] ?? "")) return -1;
    position = Number(words[i++]);
  }
  if (columns.counters) {
    const [packets = "", bytes = ""] = [words[i], words[i + 1]];
    if (!COUNTER.test(packets) || !COUNTER.test(bytes)) return -1;
    row.packets = counter(packets);
    row.bytes = counter(bytes);
    i += 2;
  }
  const specFrom = i;
  const width = columns.interfaces ? 4 : 2;
  if (isOpt(words[i + 1]) && PROTOCOL.test(words[i] ?? "")) {
    // no target
  } else if (isOpt(words[i + 2]) || (PROTOCOL.test(words[i + 1] ?? "") && !startsAddresses(words, i + 1, width))) row.target = names.of(words[i++] as string);
  else if (!PROTOCOL.test(words[i] ?? "") || !startsAddresses(words, i, width)) return -1;
  const protocol = words[i++];
  if (protocol === undefined || !PROTOCOL.test(protocol)) return -1;
  row.protocolNegated = protocol.startsWith("!");
  row.protocol = names.of(protocolName(bare(protocol)));
  if (isOpt(words[i])) i++;
  if (columns.interfaces) {
    const [inward = "", outward = ""] = [words[i], words[i + 1]];
    if (!INTERFACE.test(inward) || !INTERFACE.test(outward)) return -1;
    i += 2;
    if (inward !== "*" && inward !== "any") row.inInterface = names.of(bare(inward));
    row.inInterfaceNegated = inward.startsWith("!");
    if (outward !== "*" && outward !== "any") row.outInterface = names.of(bare(outward));
    row.outInterfaceNegated = outward.startsWith("!");
  }
  const [source = "", destination = ""] = [words[i], words[i + 1]];
  if (!ADDRESS.test(source) || !ADDRESS.test(destination)) return -1;
  setSource(row, bare(source), source.startsWith("!"));
  setDestination(row, bare(destination), destination.startsWith("!"));
  row.spec = behindWords(text, specFrom);
  readDetails(behindWords(text, i + 2), row, names);
  return position;
}

/** True if words[i] can be the protocol of a row without `opt` column: the addresses stand where they should. */
function startsAddresses(words: readonly string[], i: number, width: number): boolean {
  const address = /^!?(?:anywhere|[\da-fA-F]*:[\da-fA-F:./]*)$/;
  return words.length >= i + width + 1 && address.test(words[i + width - 1] ?? "") && address.test(words[i + width] ?? "");
}

const bare = (word: string): string => (word.startsWith("!") ? word.slice(1) : word);

/** What stands behind the first `count` words of a text. */
function behindWords(text: string, count: number): string {
  let at = 0;
  for (let word = 0; ; word++) {
    while (at < text.length && text.charCodeAt(at) <= SPACE) at++;
    if (word === count) return text.slice(at);
    while (at < text.length && text.charCodeAt(at) > SPACE) at++;
    if (at === text.length) return "";
  }
}

/** What -L prints behind the columns: matches in words (`ctstate NEW`, `tcp dpt:80`), the comment between slashes, the target's options. */
function readDetails(text: string, row: IptablesRow, names: Names): void {
  let at = 0;
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
      row.statesNegated = negated;
    } else if (word === "match" && /^mark$/i.test(previous)) {
      const mark = value();
      setMark(row, names.of(mark), negated);
    } else if (word === "MARK" && row.target === "MARK") {
      const operation = next();
      if (/^(?:set|xset|or|and|xor)$/.test(operation)) row.setMark = names.of(xmark(operation, next()));
      else if (operation === "match") setMark(row, names.of(value()), negated);
    } else if (word === "dports" || word === "sports") {
      const ports = names.of(value());
      setPort(row, word, ports, negated);
    } else if (word === "reject-with") row.rejectWith = names.of(next());
    else if (word.startsWith("to:")) {
      if (row.target === "SNAT") row.toSource ??= word.slice(3);
      else if (row.target === "DNAT") row.toDestination ??= word.slice(3);
    } else {
      const port = /^([ds]pts?):(!?)([\w.+-]{1,64}(?::[\w.+-]{1,64})?)$/.exec(word);
      if (port !== null) setPort(row, port[1] as string, names.of(port[3] as string), port[2] === "!");
    }
    negated = false;
    previous = word;
  }
}

function setPort(row: IptablesRow, side: string, ports: string, negated: boolean): void {
  if (side.startsWith("d")) {
    row.destinationPort = ports;
    row.destinationPortNegated = negated;
  } else {
    row.sourcePort = ports;
    row.sourcePortNegated = negated;
  }
}
