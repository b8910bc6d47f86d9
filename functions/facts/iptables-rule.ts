import { COUNTER, counter, type IptablesRow, type Names, protocolName, setDestination, setMark, setSource, xmark } from "./iptables-row.ts";

const SPACE = 32;
const BANG = 33;
const QUOTE = 34;
const DASH = 45;
const BACKSLASH = 92;

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
 * Works on a range of the whole text and slices only what it keeps: a node with many services prints 100,000 rules.
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
        if (letter === 103) row.goto = true;
        break;
      case 109: // m
        markMatch = stop - at === 4 && text.startsWith("mark", at);
        break;
      case 112: // p
        row.protocol = names.of(protocolName(text.slice(at, stop)));
        if (negated) row.protocolNegated = true;
        break;
      case 115: // s
        setSource(row, text.slice(at, stop), negated);
        break;
      case 100: // d
        setDestination(row, text.slice(at, stop), negated);
        break;
      case 105: // i
        row.inInterface = names.of(text.slice(at, stop));
        if (negated) row.inInterfaceNegated = true;
        break;
      case 111: // o
        row.outInterface = names.of(text.slice(at, stop));
        if (negated) row.outInterfaceNegated = true;
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
      if (negated) row.statesNegated = true;
      break;
    case "--dport":
    case "--dports":
    case "--destination-ports":
      row.destinationPort = value;
      if (negated) row.destinationPortNegated = true;
      break;
    case "--sport":
    case "--sports":
    case "--source-ports":
      row.sourcePort = value;
      if (negated) row.sourcePortNegated = true;
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
