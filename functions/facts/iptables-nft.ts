import type { Family } from "./iptables-row.ts";

/** The tables of iptables-nft; its base chains have these names, those of hand-written tables do not. */
export const TABLES: ReadonlySet<string> = new Set(["raw", "mangle", "nat", "filter", "security"]);
export const BASES: ReadonlySet<string> = new Set(["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"]);
const TABLE = /^table (ip6?) (\S{1,64}) \{(?: # handle \d{1,15})?$/;
/** Chains that only one table has, so that its line is not missed where a search left them alone (`grep -A5 'chain KUBE-FIREWALL'`, `grep 'dport 8443' -B7`). */
const LONE: readonly (readonly [RegExp, string])[] = [
  [/^(?:KUBE-FIREWALL|KUBE-FORWARD|CILIUM_FORWARD)$/, "filter"],
  [/^CNI-(?:HOSTPORT-[A-Z]{1,16}|DN-[0-9a-f]{1,40})$/, "nat"],
];
/** What grep prints between two places. */
const BREAK = "--";
const CHAIN = /^chain (\S{1,64}) \{(?: # handle \d{1,15})?$/;
const HOOK = /^type (?:filter|nat|route) hook [a-z]{1,16} priority [^;]{1,64};(?: policy ([a-z]{1,16});)?$/;
/** What people write between the rules; an `nft` that does not know an extension of iptables prints it as `# xt_comment`, and the rule goes on behind it. */
const COMMENT = /^#(?! xt_)/;
/** A word, a text in quotes, or an anonymous set. */
const TOKEN = /"[^"]{0,8192}"|\{[^{}]{0,8192}\}|[^\s{]{1,8192}/g;
/** What is longer than this is no rule of iptables. */
const MAX_RULE = 8192;
const NUMBER = /^\d{1,20}$/;

/**
 * What `iptables-save -c` would print for the tables of iptables-nft in the text of `nft list …`: line by line, so that line numbers stay. Tables of other
 * families, sets, and tables that iptables did not make give blank lines. An expression that iptables has no option for becomes `-m nft --nft "…"`.
 */
export function asSaved(text: string, family: Family): string {
  const lines = text.split("\n");
  const saved = lines.map(() => "");
  const wanted = family === "ipv4" ? "ip" : "ip6";
  let table: { readonly line: number; own: boolean; readonly alone?: boolean } | undefined;
  let chain: string | undefined;
  let skipped = 0;
  /** Some line names a table: then the chains of other tables stand in these. */
  let inTable = false;
  let setIn = false;
  for (const [index, raw] of lines.entries()) {
    const line = raw.trim();
    if (line === "") continue;
    if (table?.alone === true && line === BREAK) {
      saved[index] = "COMMIT";
      [table, chain] = [undefined, undefined];
    } else if (table === undefined) {
      const [, found, name = ""] = TABLE.exec(line) ?? [];
      const [, lone = ""] = wanted === "ip" && !inTable ? (CHAIN.exec(line) ?? []) : [];
      inTable ||= line.startsWith("table ");
      const [, of] = LONE.find(([pattern]) => pattern.test(lone)) ?? [];
      if (of !== undefined) {
        table = { line: index, own: true, alone: true };
        chain = lone;
        saved[index] = `*${of}`;
      }
      if (found !== wanted || !TABLES.has(name)) continue;
      table = { line: index, own: true };
      saved[index] = `*${name}`;
    } else if (skipped > 0 || (chain === undefined && line !== "}" && !CHAIN.test(line))) {
      // a set, or an object: over when its braces are
      skipped += (line.match(/\{/g)?.length ?? 0) - (line.match(/\}/g)?.length ?? 0);
    } else if (chain === undefined && line === "}") {
      if (table.own) saved[index] = "COMMIT";
      else saved.fill("", table.line, index);
      table = undefined;
    } else if (chain === undefined) {
      chain = CHAIN.exec(line)?.[1] ?? "";
      if (!BASES.has(chain)) saved[index] = `:${chain} - [0:0]`;
    } else if (line === "}") {
      chain = undefined;
      if (table.alone !== true) continue;
      saved[index] = "COMMIT";
      table = undefined;
    } else if (!COMMENT.test(line)) {
      const hook = HOOK.exec(line);
      // nft sets rules in: what stands at the margin is the rest of one that was wrapped
      const rest = setIn && !/^\s/.test(raw);
      setIn ||= /^\s/.test(raw);
      if (rest) saved[index] = `nft: ${line.slice(0, 400)}`;
      else if (hook === null) saved[index] = rule(chain, line);
      else if (BASES.has(chain)) saved[index] = `:${chain} ${(hook[1] ?? "accept").toUpperCase()}`;
      else table.own = false;
    }
  }
  return saved.join("\n");
}

const VERDICTS = new Set(["accept", "drop", "return", "queue"]);
const PROTOCOLS = new Set(["tcp", "udp", "udplite", "sctp", "dccp"]);

/** Words of a mark that goes from the packet to its connection, or back: `ct mark set meta mark and 0xffff`. */
const CONNECTION_MARK = /^(?:ct|meta|mark|set|and|or|xor|[&|^]|0x[0-9a-f]{1,8}|\d{1,10})$/;
/** Of the value that a packet's mark is set to. */
const MARK_VALUE = /^(?:meta|mark|and|or|xor|[&|^]|0x[0-9a-f]{1,8}|\d{1,10})$/;

/** One rule as `[packets:bytes] -A CHAIN …`. */
function rule(chain: string, line: string): string {
  const closed = line.split("{").length === line.split("}").length && line.split('"').length % 2 === 1;
  // not a line that iptables-save prints, so that the chain is not taken for complete
  return line.length > MAX_RULE || !closed ? `nft: ${line.slice(0, 400)}` : new Translation(line.match(TOKEN) ?? []).saved(chain);
}

/** The words of one rule of nft, and the options of iptables that say the same. Words that no option says are kept in a match of their own. */
class Translation {
  readonly #words: readonly string[];
  #at = 0;
  readonly #options: string[] = [];
  readonly #opaque: string[] = [];
  #action = "";
  #counters = "";
  #comment: string | undefined;
  #protocol: string | undefined;
  #states: { readonly negated: boolean; list: string } | undefined;

  constructor(words: readonly string[]) {
    this.#words = words;
  }

  saved(chain: string): string {
    while (this.#at < this.#words.length) {
      const word = this.#next();
      if (word === "xt" || (word === "#" && (this.#words[this.#at] ?? "").startsWith("xt_"))) this.#extension(word);
      // the handle
      else if (word === "#") break;
      else if (!(this.#statement(word) || this.#ofPacket(word) || this.#ofConnection(word))) this.#opaque.push(word);
    }
    if (this.#states !== undefined) this.#option("-m conntrack", `${this.#states.negated ? "! " : ""}--ctstate ${this.#states.list}`);
    if (this.#opaque.length > 0) this.#options.push(`-m nft --nft "${this.#opaque.join(" ").replaceAll(/["\\]/g, "")}"`);
    if (this.#comment !== undefined && this.#comment !== "") this.#options.push(`-m comment --comment "${this.#comment.replaceAll(/["\\]/g, "")}"`);
    return `${this.#counters}-A ${chain} ${[...this.#options, this.#action].filter((part) => part !== "").join(" ")}`.trimEnd();
  }

  #next(): string {
    return this.#words[this.#at++] ?? "";
  }

  /** True if the next word is this one of a pattern. */
  #isNext(pattern: RegExp): boolean {
    return pattern.test(this.#words[this.#at] ?? "");
  }

  #skip(pattern: RegExp): void {
    while (this.#isNext(pattern)) this.#at++;
  }

  /** Takes `!=` or `==`, if one of them is next. */
  #negation(): boolean {
    const word = this.#words[this.#at];
    if (word === "!=" || word === "==") this.#at++;
    return word === "!=";
  }

  #option(name: string, value: string, negated = false): void {
    this.#options.push(`${negated ? "! " : ""}${name} ${value}`);
  }

  #setProtocol(value: string, negated = false): void {
    if (this.#protocol === undefined) this.#option("-p", value, negated);
    this.#protocol ??= value;
  }

  /** Addresses, protocol, interfaces, ports, the kind of an address, a rate. */
  #ofPacket(word: string): boolean {
    if ((word === "ip" || word === "ip6") && this.#isNext(/^[sd]addr$/)) {
      const name = this.#next() === "saddr" ? "-s" : "-d";
      const negated = this.#negation();
      const value = this.#next();
      if (/^[{@]/.test(value)) this.#opaque.push(word, name, value);
      else this.#option(name, value, negated);
    } else if (
      (word === "ip" && this.#isNext(/^protocol$/)) ||
      (word === "ip6" && this.#isNext(/^nexthdr$/)) ||
      (word === "meta" && this.#isNext(/^l4proto$/))
    ) {
      this.#at++;
      const negated = this.#negation();
      this.#setProtocol(this.#next(), negated);
    } else if (/^[io]if(?:name)?$/.test(word)) {
      const negated = this.#negation();
      const value = this.#next();
      if (value.startsWith("{")) this.#opaque.push(word, value);
      else this.#option(word.startsWith("i") ? "-i" : "-o", unquoted(value).replace(/\*$/, "+"), negated);
    } else if (PROTOCOLS.has(word) && this.#isNext(/^[sd]port$/)) {
      this.#setProtocol(word);
      this.#port(word);
    } else if (word === "th" && this.#isNext(/^[sd]port$/)) this.#port(this.#protocol ?? "tcp");
    else if (word === "fib" && this.#isNext(/^[sd]addr$/) && this.#words[this.#at + 1] === "type") {
      const side = this.#next() === "daddr" ? "dst" : "src";
      this.#at++;
      const negated = this.#negation();
      this.#option("-m addrtype", `${negated ? "! " : ""}--${side}-type ${this.#next().toUpperCase()}`);
    } else if (word === "limit" && this.#isNext(/^rate$/)) {
      this.#at++;
      this.#option("-m limit", `--limit ${this.#next()}`);
      if (this.#isNext(/^burst$/)) this.#at += this.#words[this.#at + 2] === "packets" ? 3 : 2;
      // the word alone says nothing: "meta mark", "meta iifname"
    } else return word === "meta" && this.#isNext(/^(?:mark|[io]ifname|[io]if)$/);
    return true;
  }

  #port(module: string): void {
    const side = this.#next() === "dport" ? "dport" : "sport";
    const not = this.#negation() ? "! " : "";
    const value = this.#next();
    if (value.startsWith("{")) this.#option("-m multiport", `${not}--${side}s ${members(value).replaceAll("-", ":")}`);
    else this.#option(`-m ${module}`, `${not}--${side} ${value.replace("-", ":")}`);
  }

  /** The mark of the packet, the state of its connection. */
  #ofConnection(word: string): boolean {
    if (word === "mark") {
      let mask: string | undefined;
      if (this.#isNext(/^(?:and|&)$/)) {
        this.#at++;
        mask = this.#next();
      }
      const negated = this.#negation();
      const value = hex(this.#next());
      this.#option("-m mark", `${negated ? "! " : ""}--mark ${value}${mask === undefined ? "" : `/${hex(mask)}`}`);
    } else if (word === "ct" && this.#isNext(/^stat(?:e|us)$/)) {
      this.#at++;
      const negated = this.#negation();
      const list = members(this.#next()).toUpperCase();
      if (this.#states === undefined) this.#states = { negated, list };
      else if (this.#states.negated === negated) this.#states.list += `,${list}`;
      else this.#opaque.push("ct", list);
    } else return false;
    return true;
  }

  /** What is done with the packet, or said of the rule. */
  #statement(word: string): boolean {
    const second = this.#words[this.#at + 1];
    if (word === "counter") {
      if (!this.#isNext(/^packets$/)) return true;
      const [packets = "", bytes = ""] = [second, this.#words[this.#at + 3]];
      if (NUMBER.test(packets) && NUMBER.test(bytes)) this.#counters = `[${packets}:${bytes}] `;
      this.#at += 4;
    } else if ((word === "ct" && this.#isNext(/^mark$/) && second === "set") || (word === "mark" && this.#isNext(/^set$/) && second === "ct")) {
      this.#skip(CONNECTION_MARK);
      this.#action = `-j CONNMARK --${word === "ct" ? "save" : "restore"}-mark`;
    } else if (word === "mark" && this.#isNext(/^set$/)) {
      const from = ++this.#at;
      this.#skip(MARK_VALUE);
      this.#action = setMark(this.#words.slice(from, this.#at));
    } else if (word === "comment") this.#comment = unquoted(this.#next());
    else if (word === "/*") {
      const from = this.#at;
      while (this.#at < this.#words.length && this.#words[this.#at] !== "*/") this.#at++;
      this.#comment = this.#words.slice(from, this.#at++).join(" ");
    } else if (VERDICTS.has(word) || word === "notrack") this.#action = `-j ${word.toUpperCase()}`;
    else if (word === "jump" || word === "goto") this.#action = `${word === "jump" ? "-j" : "-g"} ${this.#next()}`;
    else if (word === "reject") {
      const how = this.#words.slice(this.#at, this.#at + 4);
      this.#at += how[0] !== "with" ? 0 : how[2] === "type" ? 4 : 3;
      this.#action = `-j REJECT${how[0] === "with" ? ` --reject-with ${rejection(how)}` : ""}`;
    } else if (word === "masquerade" || word === "redirect") {
      this.#action = `-j ${word.toUpperCase()}`;
      this.#skip(/^(?:to|random|fully-random|persistent|:\S{1,16})$/);
    } else if (word === "dnat" || word === "snat") {
      this.#skip(/^(?:to|ip6?)$/);
      this.#action = `-j ${word.toUpperCase()} --to-${word === "dnat" ? "destination" : "source"} ${this.#next()}`;
      this.#skip(/^(?:random|fully-random|persistent)$/);
    } else if (word === "log") this.#log();
    else return false;
    return true;
  }

  #log(): void {
    this.#action = "-j LOG";
    while (this.#isNext(/^(?:prefix|level|flags|group|snaplen|queue-threshold)$/)) {
      const name = this.#next();
      const value = this.#next();
      if (name === "prefix") this.#action += ` --log-prefix ${value}`;
      if (name === "group") this.#action = this.#action.replace("-j LOG", "-j NFLOG");
    }
  }

  /** `xt match "tcp"`, `xt target MASQUERADE`, `# xt_comment`: what nft cannot show of iptables' own matches and targets. */
  #extension(word: string): void {
    const kind = word === "xt" ? this.#next() : "";
    const name = unquoted(this.#next()).replace(/^xt_/, "");
    if (kind === "target" || /^[A-Z]/.test(name)) this.#action = `-j ${name}`;
    else if (name === "tcp" || name === "udp") this.#opaque.push(`xt_${name}`);
    else if (name !== "comment") this.#option("-m", name);
  }
}

const unquoted = (word: string): string => word.replace(/^"|"$/g, "");

/** `{ 80, 443 }` and `established,related`: separated by commas alone. */
const members = (value: string): string => value.replaceAll(/[{}\s]/g, "");

/** As iptables prints it: no leading zeros. */
const hex = (value: string): string => (/^(?:0x[0-9a-f]{1,8}|\d{1,10})$/.test(value) ? `0x${Number(value).toString(16)}` : value);

/** `mark or 0x4000`, `meta mark | 0x4000`, `mark xor 0x4000`, `0x200`. */
function setMark(words: readonly string[]): string {
  const operator = words.findIndex((word) => /^(?:or|and|xor|[&|^])$/.test(word));
  if (operator === -1) return `-j MARK --set-xmark ${hex(words.at(-1) ?? "0x0")}/0xffffffff`;
  if (words.length > operator + 2) return "-j MARK";
  const name = { or: "or", "|": "or", and: "and", "&": "and", xor: "xor", "^": "xor" }[words[operator] ?? ""] ?? "or";
  return `-j MARK --${name}-mark ${hex(words.at(-1) ?? "0x0")}`;
}

/** `with icmp type host-prohibited`, `with icmp host-prohibited`, `with tcp reset`. */
function rejection([, family = "", ...rest]: readonly string[]): string {
  const reason = rest[0] === "type" ? rest[1] : rest[0];
  if (family === "tcp") return "tcp-reset";
  return `${family === "icmpv6" ? "icmp6" : "icmp"}-${reason ?? "port-unreachable"}`;
}
