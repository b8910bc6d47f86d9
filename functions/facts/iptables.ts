import { z } from "zod";
import { commandLine, isPromptLine } from "./command.ts";
import { defineFact, type Input, type Parsed, type Part, UnparsedLines, type View } from "./fact.ts";
import { COUNTER, type Columns, columnsOf, counter, Names, readColumns, readOptions } from "./iptables-rule.ts";

/**
 * A chain.
 *
 *     :FORWARD ACCEPT [10:600]
 *     Chain FORWARD (policy ACCEPT 10 packets, 600 bytes)
 */
const IptablesChain = z.object({
  line: z.int(),
  family: z.enum(["ipv4", "ipv6"]),
  /** From the program's name or the banner; "unknown" where neither tells. */
  backend: z.enum(["nft", "legacy", "unknown"]),
  /** "unknown" where a filter took the `*table` line and the chain's name does not tell. */
  table: z.string(),
  name: z.string(),
  /** Built-in chains only. */
  policy: z.string().optional(),
  /** What the policy took; built-in chains only. */
  packets: z.int().optional(),
  bytes: z.int().optional(),
  /** All rules of the chain were seen. */
  complete: z.boolean(),
  /** How many rules of it were seen. */
  rules: z.int(),
});

/**
 * A rule of iptables or ip6tables, whichever way it was printed.
 *
 *     [9:972] -A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
 *         9   972 DROP       all  --  *      *       0.0.0.0/0            0.0.0.0/0            ctstate INVALID
 */
const IptablesRow = z.object({
  line: z.int(),
  family: z.enum(["ipv4", "ipv6"]),
  backend: z.enum(["nft", "legacy", "unknown"]),
  table: z.string(),
  chain: z.string(),
  /** 1-based, among the rules of the chain that were seen: the true position if the chain is complete. */
  position: z.int(),
  /** Where `-j` or `-g` leads; absent if the rule only counts. */
  target: z.string().optional(),
  /** `-g`: does not come back. */
  goto: z.boolean(),
  /** Lower-case name, "all" if any; numbers without a name stay numbers. */
  protocol: z.string(),
  protocolNegated: z.boolean(),
  /** Prefix with length (a name where `-L` without `-n` printed one); absent if any. */
  source: z.string().optional(),
  sourceNegated: z.boolean(),
  destination: z.string().optional(),
  destinationNegated: z.boolean(),
  /** A `+` at the end stands for any rest; absent if any. */
  inInterface: z.string().optional(),
  inInterfaceNegated: z.boolean(),
  outInterface: z.string().optional(),
  outInterfaceNegated: z.boolean(),
  /** `--ctstate` or `--state`; empty if the rule does not ask. */
  states: z.array(z.string()),
  statesNegated: z.boolean(),
  /** The packet mark that is matched: `0x4000/0x4000`. */
  mark: z.string().optional(),
  markNegated: z.boolean(),
  /** What the target MARK does to the packet mark, as `--set-xmark` says it: value/mask. */
  setMark: z.string().optional(),
  /** Of DNAT: `10.0.0.1:80`. */
  toDestination: z.string().optional(),
  /** Of SNAT. */
  toSource: z.string().optional(),
  /** `80`, `30000:32767`, `53,5353`; a service name where `-L` without `-n` printed one. */
  sourcePort: z.string().optional(),
  sourcePortNegated: z.boolean(),
  destinationPort: z.string().optional(),
  destinationPortNegated: z.boolean(),
  comment: z.string().optional(),
  rejectWith: z.string().optional(),
  /** Since the rule was made. `-L` without `-x` rounds to thousands. */
  packets: z.int().optional(),
  bytes: z.int().optional(),
  /** Packets between the two samples. */
  packetsDelta: z.int().optional(),
  /** The rule as text, behind the name of its chain (in a listing: behind the counters). */
  spec: z.string(),
});

/** What the tool itself remarks: `# Warning: iptables-legacy tables present, use iptables-legacy-save to see them`. */
const IptablesWarning = z.object({ line: z.int(), text: z.string() });

const Iptables = z.object({ chains: z.array(IptablesChain), rows: z.array(IptablesRow), warnings: z.array(IptablesWarning) });
export type Iptables = z.infer<typeof Iptables>;
export type IptablesChain = z.infer<typeof IptablesChain>;
export type IptablesRow = z.infer<typeof IptablesRow>;
type Family = IptablesChain["family"];
type Backend = IptablesChain["backend"];

/** What a command line asks for. */
interface Request {
  readonly family: Family;
  readonly backend: Backend;
  readonly format: "save" | "rules" | "list";
  /** Undefined: all tables. */
  readonly table: string | undefined;
  readonly chain: string | undefined;
  /** The one rule that is shown. */
  readonly rule: number | undefined;
  readonly verbose: boolean;
  readonly numeric: boolean;
  readonly numbered: boolean;
}

const PROGRAM = /^(ip6?tables|xtables)(-nft|-legacy)?(-save)?$/;
const MULTI = /^xtables-(?:(nft|legacy)-)?multi$/;

/** Reads the command line; undefined if it does not list rules. */
function requestOf(argv: readonly string[]): Request | undefined {
  const multi = MULTI.exec(argv[0] ?? "");
  const args = multi === null ? argv : argv.slice(1);
  const program = PROGRAM.exec(args[0] ?? "");
  if (program === null) return undefined;
  const save = program[3] !== undefined;
  if (program[1] === "xtables" && !save) return undefined;
  const flavour = program[2]?.slice(1) ?? (multi === null ? undefined : (multi[1] ?? "legacy"));
  const backend: Backend = flavour === "nft" || flavour === "legacy" ? flavour : program[1] === "xtables" ? "nft" : "unknown";
  let mode: Request["format"] | undefined = save ? "save" : undefined;
  let table: string | undefined;
  let [verbose, numeric, numbered] = [false, false, false];
  const positional: string[] = [];
  for (let i = 1; i < args.length; i++) {
    const arg = args[i] as string;
    if (arg.startsWith("--")) {
      const [name = "", value] = arg.split("=", 2);
      if (name === "--table") table = value ?? args[++i];
      else if (name === "--list") mode = "list";
      else if (name === "--list-rules") mode = "rules";
      else if (name === "--verbose" || name === "--counters") verbose = true;
      else if (name === "--numeric") numeric = true;
      else if (name.startsWith("--line")) numbered = true;
      else if (name === "--modprobe" || name === "--wait-interval") i += value === undefined ? 1 : 0;
      else if (name === "--wait") i += value === undefined && /^\d+$/.test(args[i + 1] ?? "") ? 1 : 0;
      else if (name !== "--exact" && name !== "--zero" && name !== "--ipv4" && name !== "--ipv6") return undefined;
      continue;
    }
    if (!arg.startsWith("-")) {
      positional.push(arg);
      continue;
    }
    for (let k = 1; k < arg.length; k++) {
      const letter = arg[k] as string;
      if ("tMW".includes(letter)) {
        const value = k + 1 < arg.length ? arg.slice(k + 1) : args[++i];
        if (letter === "t") table = value;
        break;
      }
      if (letter === "w") {
        if (k + 1 === arg.length && /^\d+$/.test(args[i + 1] ?? "")) i++;
        if (/^\d+$/.test(arg.slice(k + 1))) break;
      } else if (letter === "L" && !save) mode = "list";
      else if (letter === "S" && !save) mode = "rules";
      else if (letter === "v" || (letter === "c" && save)) verbose = true;
      else if (letter === "n") numeric = true;
      else if (!"xZ46".includes(letter)) return undefined;
    }
  }
  if (mode === undefined || positional.length > (save ? 0 : 2)) return undefined;
  const rule = /^\d{1,9}$/.test(positional[1] ?? "") ? Number(positional[1]) : undefined;
  if (positional[1] !== undefined && rule === undefined) return undefined;
  const family = program[1] === "ip6tables" ? "ipv6" : "ipv4";
  return { family, backend, format: mode, table: table ?? (save ? undefined : "filter"), chain: positional[0], rule, verbose, numeric, numbered };
}

/** One chain while its rules come in. */
interface OpenChain {
  readonly row: IptablesChain;
  /** The number of the last rule. */
  position: number;
  declared: boolean;
}

/** The lines that belong to one table (`*nat` … `COMMIT`; for `-S` and `-L` the whole text). */
interface Section {
  readonly table: string | undefined;
  readonly chains: Map<string, OpenChain>;
  /** A line in it could not be read, so that no chain of it is known to be complete. */
  broken: boolean;
}

const BANNER = /^# Generated by (ip6?tables|xtables)(?:-(nft|legacy))?-save v[\w.-]{1,32}(?: \((nf_tables|legacy)\))? on /;
const REMARK = /^#(?: Completed on | Warning: table \S{1,64} \S{1,64} is managed by |$)/;
const WARNING = /^(?:# Warning: ip6?tables-legacy tables present|(?:# |ip6?tables.{0,60}: )[Tt]able [`'"]?([\w-]{1,64})['"]? is incompatible, use 'nft' tool)/;
const SAVED_CHAIN = /^:(\S{1,64}) (-|[A-Z]{1,32})(?: \[(\d{1,20}):(\d{1,20})\])?$/;
const DECLARED_CHAIN = /^-(?:P (\S{1,64}) ([A-Z]{1,32})|N (\S{1,64}))(?: -c (\d{1,20}) (\d{1,20}))?$/;
const LISTED_CHAIN = /^Chain (\S{1,64}) \((?:policy ([A-Z-]{1,32})(?: (\S{1,24}) packets, (\S{1,24}) bytes)?|\d{1,9} references?|ERROR obtaining refs)\)$/;
const ESCAPE = String.fromCharCode(27);
const COLOURS = new RegExp(`${ESCAPE}\\[[0-9;?]{0,16}[A-Za-z]`, "g");

/**
 * Chains that live in just one table, for listings that lost their `*table` line. What kube-proxy, Cilium, Docker, flannel, the CNI plugins and
 * the AWS CNI create; names that occur in several tables (PREROUTING, KUBE-SERVICES, DOCKER) are left out on purpose.
 */
const NAT_CHAIN =
  /^(?:KUBE-(?:SVC|SEP|FW|XLB|EXT|SVL)-\w+|KUBE-(?:POSTROUTING|MARK-MASQ|MARK-DROP)|CILIUM_\w+_nat|FLANNEL-POSTRTG|CNI-(?:HOSTPORT-(?:DNAT|SNAT|SETMARK|MASQ)|DN-\w+|SN-\w+|[0-9a-f]{24})|AWS-(?:SNAT|CONNMARK)-CHAIN-\d+|IP-MASQ-AGENT)$/;
const FILTER_CHAIN =
  /^(?:KUBE-(?:FORWARD|FIREWALL|EXTERNAL-SERVICES|PROXY-FIREWALL)|CILIUM_(?:FORWARD|INPUT|OUTPUT)|DOCKER-(?:USER|FORWARD|ISOLATION-STAGE-[12])|FLANNEL-FWD|CNI-(?:FORWARD|ADMIN))$/;

function tableOf(chain: string): string {
  if (NAT_CHAIN.test(chain)) return "nat";
  if (FILTER_CHAIN.test(chain)) return "filter";
  return "unknown";
}

/** Reads one text, whatever mixture of formats it holds: each line tells by its first character what it is. */
class Reader {
  readonly chains: IptablesChain[] = [];
  readonly rows: IptablesRow[] = [];
  readonly warnings: { line: number; text: string }[] = [];
  readonly #unparsed = new UnparsedLines();
  readonly #names = new Names();
  readonly #input: Input;
  readonly #request: Request;
  /** A filter stood behind the command: no chain is known to be complete. */
  readonly #filtered: boolean;
  #family: Family;
  #backend: Backend;
  #section: Section;
  /** The chain of the last rule. */
  #chain: OpenChain | undefined;
  #columns: Columns | undefined;

  constructor(input: Input, request: Request) {
    this.#input = input;
    this.#request = request;
    this.#filtered = !input.view.complete && request.chain === undefined;
    this.#family = request.family;
    this.#backend = request.backend;
    this.#section = { table: request.table, chains: new Map(), broken: false };
    for (const message of input.stderr.split("\n", 50)) if (WARNING.test(message)) this.#warn(1, message);
  }

  read(): Parsed<Iptables> {
    const { text } = this.#input;
    if (this.#request.format === "list" && this.#request.chain !== undefined) {
      // A single rule, or a filter behind a listing of one chain, comes without the header.
      this.#columns = { number: this.#request.numbered, counters: this.#request.verbose, interfaces: this.#request.verbose };
    }
    const coloured = text.includes(ESCAPE);
    let line = 0;
    for (let start = 0; start < text.length; ) {
      const newline = text.indexOf("\n", start);
      const next = newline === -1 ? text.length : newline;
      let [from, end] = [start, next];
      while (end > from && text.charCodeAt(end - 1) <= 32) end--;
      while (from < end && text.charCodeAt(from) <= 32) from++;
      line++;
      if (from < end) {
        if (coloured) {
          const plain = text.slice(start, end).replace(COLOURS, "").trim();
          if (plain !== "") this.#line(line, plain, 0, plain.length, newline === -1);
        } else this.#line(line, text, from, end, newline === -1);
      }
      start = next + 1;
    }
    if (this.#request.format === "rules") this.#close();
    else if (this.#request.format === "list") this.#closeListed();
    return this.#unparsed.with({ chains: this.chains, rows: this.rows, warnings: this.warnings });
  }

  /** One line, `text[from, end)`, not blank. `last`: the text ends in it, without a newline. */
  #line(line: number, text: string, from: number, end: number, last: boolean): void {
    const first = text.charCodeAt(from);
    if (first === 45 /* - */) {
      if (text.charCodeAt(from + 1) === 65 /* A */ && text.charCodeAt(from + 2) === 32) this.#rule(line, text, from + 3, end, undefined, undefined, last);
      else this.#declaration(line, text.slice(from, end));
    } else if (first === 91 /* [ */) this.#counted(line, text, from, end, last);
    else if (first === 58 /* : */) this.#saved(line, text.slice(from, end));
    else if (first === 42 /* * */) this.#open(line, text.slice(from, end));
    else this.#other(line, text.slice(from, end));
  }

  /** `[9:972] -A …` */
  #counted(line: number, text: string, from: number, end: number, last: boolean): void {
    const colon = text.indexOf(":", from);
    const close = text.indexOf("]", from);
    const packets = text.slice(from + 1, colon);
    const bytes = text.slice(colon + 1, close);
    const rule = close + 2;
    if (colon === -1 || close < colon || close - from > 48 || !text.startsWith(" -A ", close + 1) || !COUNTER.test(packets) || !COUNTER.test(bytes)) {
      this.#fail(line, text.slice(from, end));
    } else this.#rule(line, text, rule + 3, end, counter(packets), counter(bytes), last);
  }

  /** The rule behind `-A `. */
  #rule(line: number, text: string, from: number, end: number, packets: number | undefined, bytes: number | undefined, last: boolean): void {
    const name = this.#chain?.row.name;
    let behind = name === undefined || !text.startsWith(name, from) ? -1 : from + name.length;
    if (behind === -1 || (behind < end && text.charCodeAt(behind) !== 32)) {
      behind = from;
      while (behind < end && text.charCodeAt(behind) > 32) behind++;
      if (behind === from) return this.#fail(line, text.slice(from, end));
      this.#chain = this.#chainNamed(line, text.slice(from, behind));
    }
    const chain = this.#chain as OpenChain;
    const row = this.#row(line, chain);
    if (packets !== undefined && bytes !== undefined) {
      row.packets = packets;
      row.bytes = bytes;
    }
    const spec = text.slice(Math.min(behind + 1, end), end);
    // A table without its COMMIT whose last line has no end was cut in the middle of that line.
    const cut = last && this.#request.format === "save" && this.#section.table !== this.#request.table;
    if (cut || !readOptions(text, behind, end, row, this.#names)) return this.#fail(line, text.slice(from - 3, end));
    row.spec = packets === undefined && row.packets !== undefined ? spec.replace(/(?:^| )-c \d{1,20} \d{1,20}(?= |$)/, "").trimStart() : spec;
    this.#add(row, chain);
  }

  #add(row: IptablesRow, chain: OpenChain): void {
    chain.row.rules++;
    this.rows.push(row);
  }

  /** A rule of the chain with nothing in it yet. It takes the next position even if it turns out to be unreadable. */
  #row(line: number, chain: OpenChain): IptablesRow {
    return {
      line,
      family: this.#family,
      backend: this.#backend,
      table: chain.row.table,
      chain: chain.row.name,
      position: ++chain.position,
      goto: false,
      protocol: "all",
      protocolNegated: false,
      sourceNegated: false,
      destinationNegated: false,
      inInterfaceNegated: false,
      outInterfaceNegated: false,
      states: NO_STATES,
      statesNegated: false,
      markNegated: false,
      sourcePortNegated: false,
      destinationPortNegated: false,
      spec: "",
    };
  }

  #chainNamed(line: number, name: string): OpenChain {
    const known = this.#section.chains.get(name);
    if (known !== undefined) return known;
    const shared = this.#names.of(name);
    const table = this.#section.table ?? tableOf(name);
    const row: IptablesChain = { line, family: this.#family, backend: this.#backend, table, name: shared, complete: false, rules: 0 };
    const chain = { row, position: this.#request.rule !== undefined && name === this.#request.chain ? this.#request.rule - 1 : 0, declared: false };
    this.#section.chains.set(shared, chain);
    this.chains.push(row);
    return chain;
  }

  #declare(line: number, name: string, policy: string | undefined, packets: string | undefined, bytes: string | undefined): OpenChain {
    const chain = this.#chainNamed(line, name);
    chain.declared = true;
    if (policy === undefined) return chain;
    chain.row.policy = this.#names.of(policy);
    if (packets === undefined || bytes === undefined) return chain;
    chain.row.packets = counter(packets);
    chain.row.bytes = counter(bytes);
    return chain;
  }

  /** `:FORWARD ACCEPT [0:0]` */
  #saved(line: number, text: string): void {
    const match = SAVED_CHAIN.exec(text);
    if (match === null) return this.#fail(line, text);
    const [, name, policy, packets, bytes] = match as unknown as [string, string, string, string?, string?];
    this.#declare(line, name, policy === "-" ? undefined : policy, packets, bytes);
  }

  /** `-P FORWARD ACCEPT`, `-N KUBE-FORWARD` */
  #declaration(line: number, text: string): void {
    const match = DECLARED_CHAIN.exec(text);
    if (match === null) return this.#fail(line, text);
    const [, builtIn, policy, own, packets, bytes] = match as unknown as [string, string?, string?, string?, string?, string?];
    this.#declare(line, builtIn ?? own ?? "", policy, packets, bytes);
  }

  /** `*nat` */
  #open(line: number, text: string): void {
    const table = /^\*([\w-]{1,64})$/.exec(text)?.[1];
    if (table === undefined) this.#fail(line, text);
    else this.#begin(table);
  }

  #begin(table: string | undefined): void {
    this.#section = { table, chains: new Map(), broken: false };
    this.#chain = undefined;
    this.#columns = undefined;
  }

  /** All chains of the section were seen to their end. */
  #close(): void {
    if (this.#filtered || this.#section.broken || this.#request.rule !== undefined) return;
    for (const chain of this.#section.chains.values()) if (chain.declared) chain.row.complete = true;
  }

  #closeListed(): void {
    if (this.#chain?.declared && this.#columns !== undefined) this.#close();
  }

  #other(line: number, text: string): void {
    if (text === "COMMIT") {
      this.#close();
      this.#begin(undefined);
      return;
    }
    if (text.startsWith("Chain ")) return this.#listed(line, text);
    if (WARNING.test(text)) return this.#warn(line, text);
    if (text.startsWith("# Generated by ")) {
      const banner = BANNER.exec(text);
      if (banner === null) return this.#fail(line, text);
      this.#family = banner[1] === "ip6tables" ? "ipv6" : banner[1] === "iptables" ? "ipv4" : this.#family;
      this.#backend = banner[3] === "nf_tables" || banner[2] === "nft" || banner[1] === "xtables" ? "nft" : "legacy";
      this.#begin(this.#request.table);
      return;
    }
    if (REMARK.test(text)) return;
    if (this.#columns !== undefined || text.includes("target")) {
      const columns = columnsOf(text);
      if (columns !== undefined) {
        this.#columns = columns;
        return;
      }
    }
    if (isPromptLine(text)) return this.#prompt(text);
    this.#listedRule(line, text);
  }

  /** `Chain FORWARD (policy ACCEPT 0 packets, 0 bytes)` */
  #listed(line: number, text: string): void {
    const match = LISTED_CHAIN.exec(text);
    if (match === null) return this.#fail(line, text);
    this.#closeListed();
    // Each chain of a listing stands for itself: a line that cannot be read spoils only its own.
    this.#begin(this.#section.table);
    const [, name, policy, packets, bytes] = match as unknown as [string, string, string?, string?, string?];
    const counted = packets !== undefined && bytes !== undefined && COUNTER.test(packets) && COUNTER.test(bytes);
    this.#chain = this.#declare(line, name, policy, counted ? packets : undefined, counted ? bytes : undefined);
  }

  #listedRule(line: number, text: string): void {
    if (this.#request.format !== "list" && this.#chain === undefined) return this.#fail(line, text);
    if (this.#columns === undefined) return this.#fail(line, text);
    if (this.#chain === undefined && this.#request.chain !== undefined) this.#chain = this.#chainNamed(line, this.#request.chain);
    const chain = this.#chain;
    if (chain === undefined) return this.#fail(line, text);
    const row = this.#row(line, chain);
    const position = readColumns(text, this.#columns, row, this.#names);
    if (position === -1) return this.#fail(line, text);
    if (position > 0) {
      row.position = position;
      chain.position = position;
    }
    this.#add(row, chain);
  }

  /** A prompt with another command of ours behind it: what follows is of that family and table. */
  #prompt(text: string): void {
    const request = requestOf(commandLine(text).argv);
    if (request === undefined) return;
    if (this.#section.chains.size > 0 && this.#request.format !== "save") this.#close();
    this.#family = request.family;
    if (request.backend !== "unknown") this.#backend = request.backend;
    this.#begin(request.table);
  }

  #warn(line: number, text: string): void {
    this.warnings.push({ line, text });
    // Only the nft variant looks for legacy tables.
    if (this.#backend === "unknown") {
      this.#backend = "nft";
      for (const row of this.chains) row.backend = "nft";
      for (const row of this.rows) row.backend = "nft";
    }
  }

  #fail(line: number, text: string): void {
    this.#unparsed.add(line, text);
    this.#section.broken = true;
  }
}

const NO_STATES: string[] = [];

export const iptables = defineFact<Iptables>({
  id: "iptables",
  title: "Rules and chains of iptables and ip6tables, of both backends",
  commands: [
    { argv: ["iptables-save", "-c"], samples: 2 },
    { argv: ["ip6tables-save", "-c"] },
    { argv: ["iptables-legacy-save", "-c"] },
    { argv: ["ip6tables-legacy-save", "-c"] },
  ],
  recognize(argv): View | undefined {
    const request = requestOf(argv);
    if (request === undefined) return undefined;
    const { family, backend, format, table, chain, verbose, numeric } = request;
    const rank = (format === "save" ? 7 : format === "rules" ? 5 : numeric ? 3 : 1) + (verbose ? 1 : 0);
    const scope = [backend === "unknown" ? family : `${family}/${backend}`, table, chain].filter((part) => part !== undefined).join(" ");
    return { format, complete: chain === undefined, scope, rank };
  },
  schema: Iptables,
  parse(input) {
    const request = requestOf(input.argv) ?? requestOf(["iptables-save"]);
    return new Reader(input, request as Request).read();
  },
  merge,
  whole: (parts) => tableKnown(parts, "filter") && tableKnown(parts, "nat"),
});

/** True if a complete part shows the whole IPv4 table. A view of one backend that shows nothing says nothing about the other backend. */
function tableKnown(parts: readonly Part<Iptables>[], table: string): boolean {
  return parts.some(({ complete, view, value }) => {
    const [family = "", shown] = view.scope.split(" ");
    if (!complete || !family.startsWith("ipv4") || (shown !== undefined && shown !== table) || view.scope.split(" ").length > 2) return false;
    if (value.warnings.some((warning) => WARNING.exec(warning.text)?.[1] === table)) return false;
    return family === "ipv4" || value.chains.length > 0;
  });
}

/**
 * Chain by chain the best view: complete with counters, then complete, then what shows most rules. The second sample only adds deltas.
 * Both backends are kept apart if both hold rules; a backend that holds none is left out.
 */
function merge(parts: readonly Part<Iptables>[]): Iptables {
  const samples = parts.filter((part) => part.sample === 1);
  const views = (samples.length > 0 ? samples : parts).map(settled);
  const value = { ...choose(views), warnings: views.flatMap((view) => view.warnings) };
  const later = parts.filter((part) => part.sample === 2 && samples.length > 0);
  for (const part of later) addDeltas(value.rows, part.value.rows);
  return value;
}

interface Settled extends Iptables {
  readonly rank: number;
  /** Backend and family of the program, as the scope names them. */
  readonly scope: string;
}

/** A part whose output was cut is taken at its word only as far as its format tells where a chain ends. */
function settled(part: Part<Iptables>): Settled {
  const { value, view } = part;
  const cut = !part.complete && view.complete;
  const lastLine = value.chains.at(-1)?.line ?? 0;
  const doubtful = (chain: IptablesChain) => cut && chain.complete && (view.format === "rules" || (view.format === "list" && chain.line === lastLine));
  const chains = cut ? value.chains.map((chain) => (doubtful(chain) ? { ...chain, complete: false } : chain)) : value.chains;
  return { chains, rows: value.rows, warnings: value.warnings, rank: view.rank, scope: view.scope };
}

/** True if a backend was used: rules, chains of its own, or a policy that is not the default. */
function holdsRules(view: Iptables, family: Family, backend: Backend): boolean {
  return (
    view.rows.some((row) => row.family === family && row.backend === backend) ||
    view.chains.some((chain) => chain.family === family && chain.backend === backend && chain.policy !== "ACCEPT")
  );
}

function choose(views: readonly Settled[]): Pick<Iptables, "chains" | "rows"> {
  const chains: IptablesChain[] = [];
  const rows: IptablesRow[] = [];
  for (const family of ["ipv4", "ipv6"] as const) {
    const uses = (backend: Backend) => views.some((view) => holdsRules(view, family, backend));
    const both = uses("nft") && uses("legacy");
    // Empty tables of the other backend (the kernel makes them when somebody looks) must not stand for the real ones.
    const idle: Backend | undefined = both ? undefined : uses("nft") ? "legacy" : uses("legacy") ? "nft" : undefined;
    const shows = (row: { family: Family; backend: Backend }) => row.family === family && row.backend !== idle;
    const candidates = views.filter((view) => view.chains.some(shows));
    const [only] = candidates;
    if (only === undefined) continue;
    if (candidates.length === 1) {
      for (const chain of only.chains) if (shows(chain)) chains.push(chain);
      for (const row of only.rows) if (shows(row)) rows.push(row);
      continue;
    }
    // An unnamed backend is the one that the unnamed program has elsewhere, else the only one that is used.
    const plain = views
      .flatMap((view) => (/^ipv[46](?: |$)/.test(view.scope) ? view.chains : []))
      .find((chain) => chain.family === family && chain.backend !== "unknown");
    const unnamed: Backend = plain?.backend ?? (uses("legacy") && !uses("nft") ? "legacy" : "nft");
    const keyOf = (backend: Backend, table: string, chain: string) => `${both ? (backend === "unknown" ? unnamed : backend) : ""} ${table} ${chain}`;
    const best = new Map<string, { view: Settled; chain: IptablesChain; score: number }>();
    for (const view of candidates) {
      const counted = new Set<string>();
      for (const row of view.rows) if (row.packets !== undefined) counted.add(`${row.table} ${row.chain}`);
      for (const chain of view.chains) {
        if (!shows(chain)) continue;
        const key = keyOf(chain.backend, chain.table, chain.name);
        const counters = chain.rules === 0 || counted.has(`${chain.table} ${chain.name}`);
        const score = (chain.complete ? 1e12 : 0) + (chain.complete && counters ? 1e11 : 0) + (chain.complete ? 0 : chain.rules * 100) + view.rank;
        const rival = best.get(key);
        if (rival === undefined || score > rival.score) best.set(key, { view, chain, score });
      }
    }
    for (const { chain } of best.values()) chains.push(chain);
    for (const view of candidates) {
      for (const row of view.rows) if (shows(row) && best.get(keyOf(row.backend, row.table, row.chain))?.view === view) rows.push(row);
    }
  }
  return { chains, rows };
}

/** Writes `packetsDelta` into the rows of the first sample: same chain, same place and text, else the only rule of that text in the chain. */
function addDeltas(first: readonly IptablesRow[], second: readonly IptablesRow[]): void {
  const same = (a: IptablesRow, b: IptablesRow) =>
    a.chain === b.chain && a.spec === b.spec && a.table === b.table && a.family === b.family && a.backend === b.backend;
  let bySpec: Map<string, IptablesRow | null> | undefined;
  const keyOf = (row: IptablesRow) => `${row.family} ${row.backend} ${row.table} ${row.chain} ${row.spec}`;
  for (let i = 0; i < first.length; i++) {
    const row = first[i] as IptablesRow;
    if (row.packets === undefined) continue;
    let later: IptablesRow | null | undefined = second[i];
    if (later === undefined || !same(row, later) || later.position !== row.position) {
      if (bySpec === undefined) {
        bySpec = new Map();
        for (const other of second) {
          const key = keyOf(other);
          bySpec.set(key, bySpec.has(key) ? null : other);
        }
      }
      later = bySpec.get(keyOf(row));
    }
    if (later?.packets === undefined || later.packets < row.packets) continue;
    row.packetsDelta = later.packets - row.packets;
  }
}
