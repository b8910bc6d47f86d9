import { byWord } from "./by-word.ts";
import { protocolName } from "./iptables-row.ts";
import type { Nft, NftRow, NftSet } from "./nft-row.ts";
import { bare } from "./nft-text.ts";
import {
  type Answer,
  all,
  any,
  type Doubt,
  type Flow,
  hasMark,
  inPorts,
  inRange,
  inSourcePorts,
  inStates,
  isInterface,
  type Marks,
  negatedIf,
  type Packet,
  u32,
  withMark,
} from "./packet-path-packet.ts";
import { type Action, type BaseChain, type PathChain, type PathRule, type Step, stepsOf } from "./packet-path-walk.ts";

type Condition = (flow: Flow, marks: Marks) => Answer;
/** Looks one key of a rule up in the packet: does it have this value? */
type Test = (value: string, flow: Flow, marks: Marks) => Answer;
type Sets = ReadonlyMap<string, NftSet>;

/** The tables that iptables-nft keeps. Where iptables was asked too, its fact has their rules, and reads them better. */
const IPTABLES_TABLES = new Set(["raw", "mangle", "nat", "filter", "security"]);
const STAGES = byWord<BaseChain["stage"]>({
  prerouting: "prerouting",
  input: "input",
  forward: "forward",
  output: "output",
  postrouting: "postrouting",
});
const PRIORITIES = byWord<number>({ raw: -300, mangle: -150, dstnat: -100, filter: 0, security: 50, srcnat: 100 });

/**
 * The base chains of nft tables, each table an owner of its own ("inet firewalld"). Chains of type nat are left out: they do not drop.
 * `withIptables`: leave the tables of iptables-nft out.
 */
export function nftBases(value: Nft, family: Packet["family"], withIptables: boolean): BaseChain[] {
  const own = family === "ipv4" ? "ip" : "ip6";
  const bases: BaseChain[] = [];
  const hooked = value.chains.filter(({ family: one, table, hook, type }) => {
    const mine = one === "inet" || (one === own && !(withIptables && IPTABLES_TABLES.has(table)));
    return mine && hook !== undefined && hook in STAGES && type !== "nat";
  });
  if (hooked.length === 0) return bases;
  const rows = new Map<string, NftRow[]>();
  for (const row of value.rows) {
    const key = `${row.family} ${row.table} ${row.chain}`;
    const list = rows.get(key);
    if (list === undefined) rows.set(key, [row]);
    else list.push(row);
  }
  const chains = new Map(value.chains.map((chain) => [`${chain.family} ${chain.table} ${chain.name}`, chain]));
  const compiled = new Map<string, PathChain | undefined>();
  for (const base of hooked) {
    const sets: Sets = new Map(value.sets.filter((set) => set.family === base.family && set.table === base.table).map((set) => [set.name, set]));
    const chain = (name: string): PathChain | undefined => {
      const key = `${base.family} ${base.table} ${name}`;
      if (compiled.has(key)) return compiled.get(key);
      const known = chains.get(key);
      const result = known === undefined ? undefined : { name, rules: (rows.get(key) ?? []).map((row) => compileNft(row, sets)), complete: known.complete };
      compiled.set(key, result);
      return result;
    };
    bases.push({
      // without iptables' own output these tables are all that is known of it
      owner: base.family !== "inet" && IPTABLES_TABLES.has(base.table) ? "iptables-nft" : `${base.family} ${base.table}`,
      stage: STAGES[base.hook ?? ""] ?? "forward",
      priority: priorityOf(base.priority ?? "0"),
      table: base.table,
      name: base.name,
      policy: base.policy === "drop" ? "drop" : base.policy === undefined || base.policy === "accept" ? "accept" : "unknown",
      row: { ...base, line: base.hookLine ?? base.line },
      chain,
    });
  }
  return bases;
}

/** `filter + 10`, `dstnat`, `-5` as a number. */
function priorityOf(text: string): number {
  const match = /^(?:([a-z]+)(?: ?([+-]) ?(\d{1,9}))?|(-?\d{1,9}))$/.exec(text.trim());
  if (match === null) return 0;
  if (match[4] !== undefined) return Number(match[4]);
  return (PRIORITIES[match[1] ?? ""] ?? 0) + (match[2] === "-" ? -1 : 1) * Number(match[3] ?? 0);
}

interface Compiled {
  readonly conditions: Condition[];
  readonly marks: ((marks: Marks) => Marks) | undefined;
  /** Decides by a verdict map. */
  readonly map: VerdictMap | undefined;
  readonly action: Action;
}
interface VerdictMap {
  readonly tests: readonly Test[];
  readonly entries: readonly { readonly keys: readonly string[]; readonly action: Action }[];
  /** Why there may be more entries. */
  readonly doubt: Doubt | undefined;
}

/** A rule of nft as conditions and an action, compiled when its chain is entered first. What is not understood is in doubt. */
function compileNft(row: NftRow, sets: Sets): PathRule {
  let ready: Compiled | undefined;
  return {
    row,
    steps(flow, marks): readonly Step[] {
      ready ??= new Parser(row, sets).parse();
      let doubt: Doubt | undefined;
      for (const condition of ready.conditions) {
        const answer = condition(flow, marks);
        if (answer === false) return [];
        if (answer !== true) doubt ??= answer;
      }
      const change = ready.marks === undefined ? {} : { marks: ready.marks };
      if (ready.map === undefined) return stepsOf(doubt ?? true, { ...ready.action, ...change });
      const found = lookUp(ready.map, flow, marks, doubt);
      return found.map(({ answer, action }) => ({ answer, action: { ...action, ...change } }));
    },
  };
}

function lookUp({ tests, entries, doubt: open }: VerdictMap, flow: Flow, marks: Marks, doubt: Doubt | undefined): Step[] {
  const steps: Step[] = [];
  for (const { keys, action } of entries) {
    const answer =
      keys.length === 1 && keys[0] === "*"
        ? steps.length === 0 || "an entry before it may match"
        : all(tests.map((test, i) => test(keys[i] ?? "", flow, marks)));
    if (answer === false) continue;
    steps.push({ answer: answer === true ? (doubt ?? true) : answer, action });
    // of the keys of a map at most one fits
    if (answer === true) return [{ answer: doubt ?? true, action }];
  }
  if (open !== undefined) steps.push({ answer: open, action: { kind: "unknown", doubt: open } });
  return steps;
}

const OPERATORS = new Set(["==", "!=", "<", ">", "<=", ">="]);
/** Protocols whose header fields only packets of that protocol have. */
const TRANSPORTS = new Set(["tcp", "udp", "sctp", "dccp", "udplite"]);
const OTHER_PROTOCOLS = new Set(["icmp", "icmpv6", "igmp", "esp", "ah", "gre", "comp"]);

class Parser {
  readonly #words: readonly string[];
  readonly #row: NftRow;
  readonly #sets: Sets;
  readonly #conditions: Condition[] = [];
  #marks: ((marks: Marks) => Marks) | undefined;
  #map: VerdictMap | undefined;
  #action: Action;
  #at = 0;

  constructor(row: NftRow, sets: Sets) {
    this.#row = row;
    this.#sets = sets;
    this.#words = row.spec.match(/"[^"]*"|[{},]|[^\s{},"]+/g) ?? [];
    this.#action = verdictOf(row.verdict, row.target);
  }

  parse(): Compiled {
    while (this.#at < this.#words.length && this.#statement());
    return { conditions: this.#conditions, marks: this.#marks, map: this.#map, action: this.#action };
  }

  #next(): string {
    return this.#words[this.#at++] ?? "";
  }

  #peek(ahead = 0): string {
    return this.#words[this.#at + ahead] ?? "";
  }

  #doubt(what: string): false {
    const doubt = `the rule asks for ${what}`;
    this.#conditions.push(() => doubt);
    // a verdict map in what was not understood may do anything
    if (this.#row.verdict === undefined && this.#words.slice(this.#at).includes("vmap")) this.#action = { kind: "unknown", doubt };
    return false;
  }

  /** One statement; false if nothing behind it needs to be read. */
  #statement(): boolean {
    const word = this.#peek();
    switch (word) {
      case "counter":
        this.#at++;
        if (this.#peek() === "name") this.#at += 2;
        else if (this.#peek() === "packets") this.#at += 4;
        return true;
      case "accept":
      case "drop":
      case "reject":
      case "return":
      case "jump":
      case "goto":
      case "continue":
      case "comment":
      case "log":
      case "masquerade":
      case "dnat":
      case "snat":
      case "redirect":
        // the reader has found the verdict, whatever stands before it
        return false;
      case "notrack":
        this.#at++;
        this.#change((marks) => ({ ...marks, untracked: true }));
        return true;
      case "flow":
        return false;
      case "queue":
      case "tproxy":
      case "synproxy":
        this.#action = { kind: "unknown", doubt: `${word} hands the packet to a program` };
        return false;
      case "xt":
        this.#at += 2;
        return this.#extension(this.#peek(-1), this.#next());
      case "#":
        return this.#remark();
      default:
        return this.#match();
    }
  }

  /** `xt match conntrack`, `xt target REJECT`: what nft cannot show of iptables-nft's rules. */
  #extension(kind: string, name: string): boolean {
    if (kind === "match") {
      if (name !== "comment") this.#conditions.push(() => `the rule asks for ${name}`);
    } else if (name === "REJECT") this.#action = { kind: "reject" };
    else if (name === "MARK" || name === "CONNMARK") this.#change((marks) => ({ ...marks, mark: 0, unknown: 0xffffffff }));
    else if (name === "CT") this.#change((marks) => ({ ...marks, untracked: "maybe" }));
    else if (/^(?:NFQUEUE|TPROXY|SYNPROXY)$/.test(name)) this.#action = { kind: "unknown", doubt: `${name} hands the packet to a program` };
    return true;
  }

  /** `# match recent`, `# xt_REJECT`: the same in old versions. */
  #remark(): boolean {
    this.#at++;
    const word = this.#next();
    if (word === "match") return this.#extension("match", this.#next());
    const name = /^xt_(\w+)$/.exec(word)?.[1] ?? word;
    return this.#extension(/^[A-Z]/.test(name) ? "target" : "match", name);
  }

  #change(change: (marks: Marks) => Marks): void {
    const before = this.#marks;
    this.#marks = before === undefined ? change : (marks) => change(before(marks));
  }

  #match(): boolean {
    const begin = this.#at;
    const tests: Test[] = [];
    let first = "";
    for (;;) {
      const key = this.#key();
      // `ct mark set mark`, `tcp option maxseg size set rt mtu` change what no rule here asks for
      if (key === undefined) return this.#words.slice(begin, begin + 6).includes("set") ? false : this.#doubt(this.#words.slice(begin, begin + 3).join(" "));
      if (tests.length === 0) first = key.name;
      tests.push(key.test);
      if (this.#peek() !== ".") break;
      this.#at++;
    }
    if (tests.length === 1 && this.#peek() === "set") return this.#set(first);
    if (tests.length === 1 && first === "mark" && /^(?:&|and)$/.test(this.#peek())) return this.#masked();
    if (this.#peek() === "vmap") {
      this.#at++;
      this.#map = this.#verdictMap(tests);
      return false;
    }
    let negated = false;
    if (OPERATORS.has(this.#peek())) {
      const operator = this.#next();
      if (operator !== "==" && operator !== "!=") return this.#doubt(this.#words.slice(begin, this.#at + 1).join(" "));
      negated = operator === "!=";
    }
    const values = this.#values();
    if (values === undefined) return this.#doubt(this.#words.slice(begin, this.#at + 1).join(" "));
    const { entries, doubt } = values;
    const keys = entries.map((entry) => entry.split(" . "));
    this.#conditions.push((flow, marks) => {
      const answer = any(keys.map((parts) => all(tests.map((test, i) => test(parts[i] ?? "", flow, marks)))));
      // what nothing was found in may hold it all the same, if only a part is known
      return negatedIf(negated, answer === false && doubt !== undefined ? doubt : answer);
    });
    return true;
  }

  /** A key such as `iifname`, `ip daddr`, `meta l4proto`. Undefined if it is not one that a probe can answer. */
  #key(): { name: string; test: Test } | undefined {
    let word = this.#next();
    if (word === "meta") word = this.#next();
    const second = this.#peek();
    switch (word) {
      case "iif":
      case "iifname":
        return { name: word, test: (value, { packet }) => isInterface(packet.inInterface, bare(value), "*") };
      case "oif":
      case "oifname":
        // where a packet goes is not known before it is routed
        return { name: word, test: (value, { packet, stage }) => stage !== "prerouting" && isInterface(packet.outInterface, bare(value), "*") };
      case "mark":
        return {
          name: word,
          test: (value, _, marks) => (number(value) === undefined ? `the mark ${value} could not be read` : hasMark(marks, number(value) ?? 0, 0xffffffff)),
        };
      case "l4proto":
        return { name: word, test: (value, { packet }) => protocolName(value) === packet.protocol };
      case "nfproto":
        return { name: word, test: (value, { packet }) => (value === "ipv4" || value === "2") === (packet.family === "ipv4") };
      case "protocol":
        return { name: word, test: (value, { packet }) => (value === "ip" || value === "2048") === (packet.family === "ipv4") };
      case "pkttype":
        return { name: word, test: (value) => value === "unicast" || value === "host" || value === "0" };
      case "ip":
      case "ip6":
        return this.#address(word);
      case "ct":
        return this.#conntrack();
      case "fib":
        return this.#fib();
      case "th":
        return this.#port(second);
      default:
        if (TRANSPORTS.has(word)) {
          // a header that is not there is neither equal nor unequal
          this.#conditions.push(({ packet }) => packet.protocol === word);
          return this.#port(second);
        }
        if (OTHER_PROTOCOLS.has(word)) this.#conditions.push(({ packet }) => packet.protocol === protocolName(word));
        return undefined;
    }
  }

  #port(side: string): { name: string; test: Test } | undefined {
    if (side !== "dport" && side !== "sport") return undefined;
    this.#at++;
    return {
      name: "port",
      test: (value, { packet }) => (side === "dport" ? inPorts(packet.destinationPort, value) : inSourcePorts(packet.sourcePort, value)),
    };
  }

  #address(header: string): { name: string; test: Test } | undefined {
    const field = this.#next();
    const family = header === "ip" ? "ipv4" : "ipv6";
    // a rule that asks for the other family's header never matches
    this.#conditions.push(({ packet }) => packet.family === family);
    if (field === "saddr") return { name: field, test: (value, flow) => inRange(flow.source, value) };
    if (field === "daddr") return { name: field, test: (value, flow) => inRange(flow.destination, value) };
    if (field === "protocol" || field === "nexthdr") return { name: field, test: (value, { packet }) => protocolName(value) === packet.protocol };
    return undefined;
  }

  #conntrack(): { name: string; test: Test } | undefined {
    const field = this.#next();
    if (field === "state")
      return {
        name: field,
        test: (value, { packet }, marks) => (/^[a-z]+$/.test(value) ? inStates(packet, marks, [value.toUpperCase()]) : `the state ${value} could not be read`),
      };
    if (field === "status") return { name: field, test: (value, { packet }) => packet.state !== "NEW" && `the rule asks for the status ${value}` };
    if (field === "direction")
      return { name: field, test: (value, { packet }) => (packet.state === "NEW" ? value === "original" : "the rule asks for the direction") };
    return undefined;
  }

  /** `fib daddr type local`, `fib saddr . iif oif missing`, `fib daddr . iif type local`; JSON has `fib result type flags daddr local`. */
  #fib(): { name: string; test: Test } | undefined {
    const words: string[] = [];
    while (words.length < 10 && /^(?:[sd]addr|mark|iif|oif|oifname|\.|,|type|result|flags|check)$/.test(this.#peek())) {
      const word = this.#next();
      words.push(word);
      if (words[0] !== "result" && (word === "type" || (word.startsWith("oif") && words.length > 1))) break;
      if (words[0] === "result" && /^[sd]addr$/.test(word) && this.#peek() !== ",") break;
    }
    const source = words.includes("saddr");
    if (words.includes("type")) return { name: "fib", test: (value, { packet }) => addressType(value, source, packet) };
    // whether there is a way back: probes come in by it
    if (source) return { name: "fib", test: (value) => !/^(?:missing|false|0)$/.test(value) && "the rule asks for the route back" };
    return undefined;
  }

  /** `mark and 0x4000 == 0x4000`, `meta mark & 0x8 != 0x8` */
  #masked(): boolean {
    this.#at++;
    const mask = number(this.#next());
    const operator = OPERATORS.has(this.#peek()) ? this.#next() : "==";
    const value = number(this.#next());
    if (mask === undefined || value === undefined || (operator !== "==" && operator !== "!=")) return this.#doubt("a mark");
    this.#conditions.push((_, marks) => negatedIf(operator === "!=", hasMark(marks, value, mask)));
    return true;
  }

  /** `meta mark set mark or 0x4000`; settings of other things change nothing here. */
  #set(name: string): boolean {
    this.#at++;
    if (name !== "mark") return false;
    const word = this.#next();
    const constant = number(word);
    if (constant !== undefined) {
      this.#change((marks) => withMark(marks, constant, 0xffffffff));
      return true;
    }
    if (word === "meta") this.#at++;
    const own = word === "mark" || (word === "meta" && this.#peek(-1) === "mark");
    const operations: [string, number][] = [];
    while (/^(?:or|and|xor|[|&^])$/.test(this.#peek())) {
      const operator = this.#next();
      const operand = number(this.#next());
      if (operand === undefined) break;
      operations.push([operator, operand]);
    }
    if (!own || operations.length === 0) {
      this.#change((marks) => ({ ...marks, mark: 0, unknown: 0xffffffff }));
      // `ct mark and 0xff`: whatever follows belongs to it
      return false;
    }
    for (const [operator, operand] of operations) {
      if (operator === "or" || operator === "|") this.#change((marks) => withMark(marks, operand, operand));
      else if (operator === "and" || operator === "&") this.#change((marks) => withMark(marks, 0, u32(~operand)));
      else this.#change((marks) => withMark(marks, operand, 0));
    }
    return true;
  }

  /** The right side of a comparison: one value, `a,b`, `{ a, b }` or `@set`. Ranges and prefixes are values. */
  #values(): { entries: string[]; doubt: Doubt | undefined } | undefined {
    const word = this.#peek();
    if (word.startsWith("@")) {
      this.#at++;
      return this.#setNamed(word.slice(1));
    }
    if (word === "{") {
      const entries = this.#braces();
      return entries === undefined ? undefined : { entries, doubt: undefined };
    }
    const entries: string[] = [];
    do {
      let value = this.#next();
      if (value === "") return undefined;
      while (this.#peek() === ".") value += ` ${this.#next()} ${bare(this.#next())}`;
      entries.push(bare(value));
    } while (this.#peek() === "," && this.#at++ >= 0);
    return { entries, doubt: undefined };
  }

  #setNamed(name: string): { entries: string[]; doubt: Doubt | undefined } {
    const set = this.#sets.get(name);
    const known = set?.members !== undefined && set.elements === set.members.length;
    return { entries: (set?.members ?? []).map(unquoted), doubt: known ? undefined : `the elements of the set ${name} are not known` };
  }

  /** `{ a, b }`: the texts between the commas. */
  #braces(): string[] | undefined {
    this.#at++;
    const entries: string[] = [];
    let entry: string[] = [];
    for (let word = this.#next(); word !== ""; word = this.#next()) {
      if (word === "}" || word === ",") {
        if (entry.length > 0) entries.push(entry.join(" "));
        entry = [];
        if (word === "}") return entries;
      } else entry.push(bare(word));
    }
    return undefined;
  }

  #verdictMap(tests: readonly Test[]): VerdictMap {
    const word = this.#peek();
    const named = word.startsWith("@") ? this.#setNamed(word.slice(1)) : undefined;
    const inline = named === undefined && word === "{" ? this.#braces() : undefined;
    const texts = named?.entries ?? inline ?? [];
    const doubt = named === undefined ? (inline === undefined ? "the rule asks for a map that could not be read" : undefined) : named.doubt;
    const entries = texts.map((text) => {
      const colon = text.lastIndexOf(" : ");
      const [verdict = "", target] = text.slice(colon + 3).split(" ");
      return { keys: text.slice(0, Math.max(colon, 0)).split(" . "), action: verdictOf(verdict, target) };
    });
    return { tests, entries, doubt };
  }
}

function addressType(value: string, source: boolean, packet: Packet): Answer {
  const local = source ? packet.hook === "output" : packet.hook === "input";
  if (value === "local" || value === "2") return local;
  if (value === "unicast" || value === "1") return !local;
  return /^(?:broadcast|multicast|anycast|3|4|5)$/.test(value) ? false : `the rule asks for addresses of type ${value}`;
}

function verdictOf(verdict: string | undefined, target: string | undefined): Action {
  switch (verdict) {
    case undefined:
    case "continue":
      return { kind: "none" };
    case "accept":
    case "drop":
    case "reject":
    case "return":
      return { kind: verdict };
    case "jump":
    case "goto":
      return { kind: verdict, chain: target ?? "" };
    default:
      return { kind: "unknown", doubt: `${verdict} hands the packet to a program` };
  }
}

const unquoted = (text: string): string => text.replaceAll('"', "");
const number = (text: string): number | undefined => (/^(?:0x[\da-fA-F]{1,8}|\d{1,10})$/.test(text) ? u32(Number(text)) : undefined);
