import { z } from "zod";

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
  /** What the policy took between the two samples. */
  packetsDelta: z.int().optional(),
  /** All rules of the chain were seen. */
  complete: z.boolean(),
  /** Where a search left rules out: targets of which it shows every rule. */
  targets: z.array(z.string()).optional(),
  /** How many rules of it were seen. */
  rules: z.int(),
  /** Read from nft's listing of the table, whose expressions iptables has no options for are kept as text only. */
  translated: z.boolean().optional(),
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
  /** 1-based, among the rules of the chain that were seen: the true position if the chain is complete. 0 of sorted lines, whose order is lost. */
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
  /** A `+` at the end stands for any rest; absent if any (and in `-L` without `-v`, which does not show interfaces). */
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
  /** `80`, `30000:32767`, `53,5353`; where `-L` without `-n` printed a name that few know, that name. */
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
  /** How many such lines there were, of `sort | uniq -c`. */
  copies: z.int().optional(),
  /** A terminal or a pager cut the end of the line (of a listing): what else the rule asks for was not seen. */
  cut: z.boolean().optional(),
  /** The rule as text, behind the name of its chain (in a listing: behind the counters). */
  spec: z.string(),
});

/** What the tool itself remarks: `# Warning: iptables-legacy tables present, use iptables-legacy-save to see them`. */
const IptablesWarning = z.object({ line: z.int(), text: z.string() });

/** A program whose whole output was read (its tables as far as the command asked for them). A backend without rules has no chains here, and still a program. */
const IptablesProgram = z.object({
  line: z.int(),
  family: z.enum(["ipv4", "ipv6"]),
  /** "unknown" where neither the program's name nor its banner tells. */
  backend: z.enum(["nft", "legacy", "unknown"]),
});

/** A remark of the tool that says that it does not show everything. Group 1: the table that only nft can show. */
export const WARNING =
  /^(?:(?:# )?Warning: ip6?tables-legacy tables present|(?:# |ip6?tables.{0,60}: )[Tt]able [`'"]?([\w-]{1,64})['"]? is incompatible, use 'nft' tool)/;

export const Iptables = z.object({
  chains: z.array(IptablesChain),
  rows: z.array(IptablesRow),
  warnings: z.array(IptablesWarning),
  programs: z.array(IptablesProgram),
  /** What `iptables --version` says of the program that does not name its backend. It lists nothing: no rules were seen by it. */
  variants: z.array(IptablesProgram).optional(),
});
export type Iptables = z.infer<typeof Iptables>;
export type IptablesChain = z.infer<typeof IptablesChain>;
export type IptablesRow = z.infer<typeof IptablesRow>;
export type Family = IptablesChain["family"];
export type Backend = IptablesChain["backend"];

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
export function protocolName(text: string): string {
  const lower = text.toLowerCase();
  return PROTOCOLS.get(lower) ?? lower;
}

/** Networks that `iptables -L` prints by their names: those of /etc/networks, and the name that the DNS knows. */
const NETWORKS: ReadonlyMap<string, string> = new Map([
  ["loopback/8", "127.0.0.0/8"],
  ["link-local/16", "169.254.0.0/16"],
  ["base-address.mcast.net/4", "224.0.0.0/4"],
]);

/** A prefix with its length (`10.0.0.0/255.0.0.0` → `10.0.0.0/8`, `10.0.0.1` → `10.0.0.1/32`), undefined for any address; other names stay as they are. */
function prefixOf(text: string): string | undefined {
  // to look up each of 100,000 addresses takes longer than all else that is done with them
  if (text.charCodeAt(0) > NINE) text = NETWORKS.get(text) ?? text;
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
export function xmark(operation: string, text: string): string {
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

/** A counter as -L prints it: digits, or thousands with K, M, G, T. */
export const COUNTER = /^\d{1,20}[KMGT]?$/;

/** The number behind a counter: 148K is 148,000. Beyond 2^53 it is cut to that. */
export function counter(text: string): number {
  const unit = text.charCodeAt(text.length - 1) > NINE ? UNITS[text.at(-1) as "K"] : undefined;
  return Math.min(unit === undefined ? Number(text) : Number(text.slice(0, -1)) * unit, Number.MAX_SAFE_INTEGER);
}
const NINE = 57;
const UNITS = { K: 1e3, M: 1e6, G: 1e9, T: 1e12 } as const;

/** Of a chain what its rules have, too. */
type Place = Pick<IptablesChain, "family" | "backend" | "table" | "name">;

/** What few rules have, and what it is in all the others. */
const SELDOM = {
  goto: false,
  protocolNegated: false,
  sourceNegated: false,
  destinationNegated: false,
  inInterfaceNegated: false,
  outInterfaceNegated: false,
  statesNegated: false,
  mark: undefined,
  markNegated: false,
  setMark: undefined,
  toSource: undefined,
  sourcePort: undefined,
  sourcePortNegated: false,
  destinationPortNegated: false,
  rejectWith: undefined,
  copies: undefined,
};

/**
 * A rule. Fields that many rules have are there from the start, so that a hundred thousand of them have one layout; the others stand once, on the prototype,
 * until a rule differs. Rows are half as large so, and read in four fifths of the time. Hence no `{ ...row }`: see {@link changed}.
 */
class Rule {
  line: number;
  family: Family;
  backend: Backend;
  table: string;
  chain: string;
  position: number;
  target: string | undefined = undefined;
  protocol = "all";
  source: string | undefined = undefined;
  destination: string | undefined = undefined;
  inInterface: string | undefined = undefined;
  outInterface: string | undefined = undefined;
  states: string[];
  toDestination: string | undefined = undefined;
  destinationPort: string | undefined = undefined;
  comment: string | undefined = undefined;
  packets: number | undefined = undefined;
  bytes: number | undefined = undefined;
  packetsDelta: number | undefined = undefined;
  spec = "";
  output: number | undefined = undefined;

  constructor(line: number, chain: Place, position: number, states: string[]) {
    this.line = line;
    this.family = chain.family;
    this.backend = chain.backend;
    this.table = chain.table;
    this.chain = chain.name;
    this.position = position;
    this.states = states;
  }

  /** All fields. */
  toJSON(): object {
    const seldom = Object.keys(SELDOM).map((field) => [field, this[field as keyof this]]);
    return Object.assign(Object.fromEntries(seldom), this);
  }
}
for (const [field, value] of Object.entries(SELDOM)) Object.defineProperty(Rule.prototype, field, { value, writable: true });

/** A rule with nothing in it yet. */
export const blankRow = (line: number, chain: Place, position: number, states: string[]): IptablesRow =>
  new Rule(line, chain, position, states) as unknown as IptablesRow;

/** The rule with some fields changed. */
export function changed(row: IptablesRow, fields: Partial<IptablesRow>): IptablesRow {
  const { line, family, backend, table, chain: name, position, states } = row;
  return Object.assign(blankRow(line, { family, backend, table, name }, position, states), row, fields);
}

export function setSource(row: IptablesRow, text: string, negated: boolean): void {
  const prefix = prefixOf(text);
  if (prefix !== undefined) row.source = prefix;
  if (negated) row.sourceNegated = true;
}

export function setDestination(row: IptablesRow, text: string, negated: boolean): void {
  const prefix = prefixOf(text);
  if (prefix !== undefined) row.destination = prefix;
  if (negated) row.destinationNegated = true;
}

export function setMark(row: IptablesRow, value: string, negated: boolean): void {
  row.mark = value;
  if (negated) row.markNegated = true;
}
