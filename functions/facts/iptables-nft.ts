import type { Family } from "./iptables-row.ts";

/** The tables of iptables-nft; its base chains have these names, those of hand-written tables do not. */
export const TABLES: ReadonlySet<string> = new Set(["raw", "mangle", "nat", "filter", "security"]);
export const BASES: ReadonlySet<string> = new Set(["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"]);
const TABLE = /^table (ip6?) (\S{1,64}) \{(?: # handle \d{1,15})?$/;
/** Chains that only table filter has, so that the line of the table is not missed where a search left them alone (`grep -A5 'chain KUBE-FIREWALL'`). */
const OF_FILTER: ReadonlySet<string> = new Set(["KUBE-FIREWALL", "KUBE-FORWARD", "CILIUM_FORWARD"]);
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
    if (table === undefined) {
      const [, found, name = ""] = TABLE.exec(line) ?? [];
      const [, lone = ""] = wanted === "ip" && !inTable ? (CHAIN.exec(line) ?? []) : [];
      inTable ||= line.startsWith("table ");
      if (OF_FILTER.has(lone)) {
        table = { line: index, own: true, alone: true };
        chain = lone;
        saved[index] = "*filter";
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

/** One rule as `[packets:bytes] -A CHAIN …`. */
function rule(chain: string, line: string): string {
  const closed = line.split("{").length === line.split("}").length && line.split('"').length % 2 === 1;
  // not a line that iptables-save prints, so that the chain is not taken for complete
  if (line.length > MAX_RULE || !closed) return `nft: ${line.slice(0, 400)}`;
  const words: readonly string[] = line.match(TOKEN) ?? [];
  let at = 0;
  const next = (): string => words[at++] ?? "";
  const bare = (word: string): string => word.replace(/^"|"$/g, "");
  const options: string[] = [];
  const opaque: string[] = [];
  let action = "";
  let counters = "";
  let comment: string | undefined;
  let protocol: string | undefined;
  let states: { readonly negated: boolean; list: string } | undefined;
  const negation = (): boolean => {
    const word = words[at];
    if (word === "!=" || word === "==") at++;
    return word === "!=";
  };
  const option = (name: string, value: string, negated: boolean): void => {
    options.push(`${negated ? "! " : ""}${name} ${value}`);
  };
  const setProtocol = (value: string, negated = false): void => {
    if (protocol === undefined) option("-p", value, negated);
    protocol ??= value;
  };
  const port = (module: string): void => {
    const side = next() === "dport" ? "dport" : "sport";
    const negated = negation();
    const value = next();
    if (value.startsWith("{")) option(`-m multiport`, `${negated ? "! " : ""}--${side}s ${members(value).replaceAll("-", ":")}`, false);
    else option(`-m ${module}`, `${negated ? "! " : ""}--${side} ${value.replace("-", ":")}`, false);
  };
  while (at < words.length) {
    const word = next();
    if (word === "counter") {
      if (words[at] !== "packets") continue;
      const [packets = "", bytes = ""] = [words[at + 1], words[at + 3]];
      if (NUMBER.test(packets) && NUMBER.test(bytes)) counters = `[${packets}:${bytes}] `;
      at += 4;
    } else if ((word === "ip" || word === "ip6") && /^[sd]addr$/.test(words[at] ?? "")) {
      const name = next() === "saddr" ? "-s" : "-d";
      const negated = negation();
      const value = next();
      if (/^[{@]/.test(value)) opaque.push(word, name, value);
      else option(name, value, negated);
    } else if ((word === "ip" && words[at] === "protocol") || (word === "ip6" && words[at] === "nexthdr") || (word === "meta" && words[at] === "l4proto")) {
      at++;
      const negated = negation();
      setProtocol(next(), negated);
    } else if (word === "meta" && /^(?:mark|[io]ifname|[io]if)$/.test(words[at] ?? "")) continue;
    else if (/^[io]if(?:name)?$/.test(word)) {
      const negated = negation();
      const value = next();
      if (value.startsWith("{")) opaque.push(word, value);
      else option(word.startsWith("i") ? "-i" : "-o", bare(value).replace(/\*$/, "+"), negated);
    } else if ((word === "ct" && words[at] === "mark" && words[at + 1] === "set") || (word === "mark" && words[at] === "set" && words[at + 1] === "ct")) {
      while (CONNECTION_MARK.test(words[at] ?? "")) at++;
      action = `-j CONNMARK --${word === "ct" ? "save" : "restore"}-mark`;
    } else if (word === "mark" && words[at] === "set") {
      const from = ++at;
      while (/^(?:meta|mark|and|or|xor|[&|^]|0x[0-9a-f]{1,8}|\d{1,10})$/.test(words[at] ?? "")) at++;
      action = setMark(words.slice(from, at));
    } else if (word === "mark") {
      let mask: string | undefined;
      if (words[at] === "and" || words[at] === "&") {
        at++;
        mask = next();
      }
      const negated = negation();
      const value = hex(next());
      option("-m mark", `${negated ? "! " : ""}--mark ${value}${mask === undefined ? "" : `/${hex(mask)}`}`, false);
    } else if (word === "ct" && (words[at] === "state" || words[at] === "status")) {
      at++;
      const negated = negation();
      const list = members(next()).toUpperCase();
      if (states === undefined) states = { negated, list };
      else if (states.negated === negated) states.list += `,${list}`;
      else opaque.push("ct", list);
    } else if (PROTOCOLS.has(word) && /^[sd]port$/.test(words[at] ?? "")) {
      setProtocol(word);
      port(word);
    } else if (word === "th" && /^[sd]port$/.test(words[at] ?? "")) port(protocol ?? "tcp");
    else if (word === "fib" && /^[sd]addr$/.test(words[at] ?? "") && words[at + 1] === "type") {
      const side = next() === "daddr" ? "dst" : "src";
      at++;
      const negated = negation();
      option("-m addrtype", `${negated ? "! " : ""}--${side}-type ${next().toUpperCase()}`, false);
    } else if (word === "limit" && words[at] === "rate") {
      at++;
      option("-m limit", `--limit ${next()}`, false);
      if (words[at] === "burst") at += words[at + 2] === "packets" ? 3 : 2;
    } else if (word === "xt" || (word === "#" && (words[at] ?? "").startsWith("xt_"))) {
      const kind = word === "xt" ? next() : "";
      const name = bare(next()).replace(/^xt_/, "");
      if (kind === "target" || /^[A-Z]/.test(name)) action = `-j ${name}`;
      else if (name === "tcp" || name === "udp") opaque.push(`xt_${name}`);
      else if (name !== "comment") option("-m", name, false);
    } else if (word === "#") break;
    else if (word === "comment") comment = bare(next());
    else if (word === "/*") {
      const from = at;
      while (at < words.length && words[at] !== "*/") at++;
      comment = words.slice(from, at++).join(" ");
    } else if (VERDICTS.has(word)) action = `-j ${word.toUpperCase()}`;
    else if (word === "jump" || word === "goto") action = `${word === "jump" ? "-j" : "-g"} ${next()}`;
    else if (word === "reject") {
      const how = words.slice(at, at + 4);
      at += how[0] !== "with" ? 0 : how[2] === "type" ? 4 : 3;
      action = `-j REJECT${how[0] === "with" ? ` --reject-with ${rejection(how)}` : ""}`;
    } else if (word === "masquerade" || word === "redirect") {
      action = `-j ${word.toUpperCase()}`;
      while (/^(?:to|random|fully-random|persistent|:\S{1,16})$/.test(words[at] ?? "")) at++;
    } else if (word === "dnat" || word === "snat") {
      while (/^(?:to|ip6?)$/.test(words[at] ?? "")) at++;
      action = `-j ${word.toUpperCase()} --to-${word === "dnat" ? "destination" : "source"} ${next()}`;
      while (/^(?:random|fully-random|persistent)$/.test(words[at] ?? "")) at++;
    } else if (word === "notrack") action = "-j NOTRACK";
    else if (word === "log") {
      action = "-j LOG";
      while (/^(?:prefix|level|flags|group|snaplen|queue-threshold)$/.test(words[at] ?? "")) {
        const name = next();
        const value = next();
        if (name === "prefix") action += ` --log-prefix ${value}`;
        if (name === "group") action = action.replace("-j LOG", "-j NFLOG");
      }
    } else opaque.push(word);
  }
  if (states !== undefined) option("-m conntrack", `${states.negated ? "! " : ""}--ctstate ${states.list}`, false);
  if (opaque.length > 0) options.push(`-m nft --nft "${opaque.join(" ").replaceAll(/["\\]/g, "")}"`);
  if (comment !== undefined && comment !== "") options.push(`-m comment --comment "${comment.replaceAll(/["\\]/g, "")}"`);
  return `${counters}-A ${chain} ${[...options, action].filter((part) => part !== "").join(" ")}`.trimEnd();
}

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
