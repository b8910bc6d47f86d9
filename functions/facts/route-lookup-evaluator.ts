import type { Address } from "./address.ts";
import type { Row } from "./fact.ts";
import type { Family } from "./ip-address.ts";
import { addressBits, networkBits, prefixBits, widthOf, within } from "./ip-bits.ts";
import type { Link } from "./link.ts";
import { placed } from "./placed.ts";
import type { Route } from "./route.ts";
import { FWMARK, type Rule } from "./rule.ts";

/**
 * Answers "which route would this packet take" as the kernel does: rules in the order of their priorities, in each table the longest prefix, then the
 * lowest metric. Pure. Three-valued: where a rule asks for something that is not known of the packet, both answers are followed, and if they differ
 * the outcome is "undetermined".
 */

/** What is known of a packet. A field that is left out is not known, unless it says otherwise. */
export interface Packet {
  readonly family: Family;
  readonly destination: string;
  /** Left out: not chosen yet (a packet that the node itself is about to send). */
  readonly source?: string;
  /** Left out: the node itself sends the packet (the kernel calls that "lo"). */
  readonly inputInterface?: string;
  /** Left out: the sender is not bound to an interface. */
  readonly outputInterface?: string;
  readonly fwmark?: number;
  readonly ipProtocol?: string;
  readonly sourcePort?: number;
  readonly destinationPort?: number;
  readonly uid?: number;
}

export const outcomes = ["unicast", "local", "broadcast", "anycast", "multicast", "blackhole", "unreachable", "prohibit", "none", "undetermined"] as const;
export type Outcome = (typeof outcomes)[number];

type RouteRow = Route & Row;
type RuleRow = Rule & Row;

export interface Answer {
  /** "none": no table has a route. */
  readonly outcome: Outcome;
  /** The route that decides; of several next hops the first that is not dead. Left out if none decides. */
  readonly route?: RouteRow;
  /** Every next hop that the packet may take; more than one for multipath routes. */
  readonly hops: readonly RouteRow[];
  /** The rule that decides; left out if none does, or if the rules are assumed. */
  readonly rule?: RuleRow;
  /** Source address that the kernel would choose for a packet of the node itself, where it is known. */
  readonly preferredSource?: string;
  /** Why it is undetermined. */
  readonly reason: string;
}

export interface Tables {
  /** The answer for one packet. Linear in the number of rules, whatever the number of routes. */
  readonly lookup: (packet: Packet) => Answer;
  /** True if there were no rules of this family and the kernel's own three were taken. */
  readonly assumedRules: (family: Family) => boolean;
  /** The rules that are asked, in their order. */
  readonly rules: (family: Family) => readonly RuleRow[];
}

export interface Sources {
  readonly routes: readonly RouteRow[];
  readonly rules: readonly RuleRow[];
  readonly addresses: readonly (Address & Row)[];
  readonly links: readonly (Link & Row)[];
}

/** What the kernel starts with. IPv6 has no table "default". */
const DEFAULT_RULES: readonly [number, string][] = [
  [0, "local"],
  [32766, "main"],
  [32767, "default"],
];

/** Puts the facts in order, once, for many packets. */
export function routeTables({ routes, rules, addresses, links }: Sources): Tables {
  const families = new Map<Family, FamilyTables>();
  for (const family of ["ipv4", "ipv6"] as const) {
    const own = rules.filter((rule) => rule.family === family).sort((a, b) => a.priority - b.priority);
    const assumed = own.length === 0;
    const asked = assumed ? DEFAULT_RULES.map(([priority, table]) => assumedRule(family, priority, table)) : own;
    families.set(family, {
      assumed,
      rules: asked,
      tables: indexed(family, routes, addresses),
      everyTable: routes.some((r) => r.family === family && r.table === "local"),
    });
  }
  const masters = new Map(links.map((link) => [link.interface, link.master]));
  const vrfs = new Set(links.filter((link) => link.kind === "vrf").map((link) => link.interface));
  const inVrf = (name: string | undefined): boolean => name !== undefined && (vrfs.has(name) || vrfs.has(masters.get(name) ?? ""));
  return {
    lookup: (packet) => {
      const answer = walk(families.get(packet.family) as FamilyTables, packet, inVrf);
      const source = answer.outcome === "unicast" && answer.route !== undefined ? sourceOf(answer.route, addresses) : answer.route?.source;
      return source === undefined ? answer : { ...answer, preferredSource: source };
    },
    assumedRules: (family) => families.get(family)?.assumed ?? true,
    rules: (family) => families.get(family)?.rules ?? [],
  };
}

interface FamilyTables {
  readonly assumed: boolean;
  readonly rules: readonly RuleRow[];
  readonly tables: ReadonlyMap<string, Table>;
  /** Every table was listed, so that one without routes is empty. Told by the local table, which no node is without. */
  readonly everyTable: boolean;
}

interface Table {
  /** Lengths of the prefixes there are, longest first. */
  readonly lengths: readonly number[];
  /** Routes by length and network, best first. */
  readonly routes: ReadonlyMap<string, RouteRow[]>;
}

const assumedRule = (family: Family, priority: number, table: string): RuleRow => ({
  line: 0,
  family,
  priority,
  not: false,
  from: "all",
  table,
  action: "lookup",
});

function indexed(family: Family, routes: readonly RouteRow[], addresses: readonly (Address & Row)[]): Map<string, Table> {
  const byTable = new Map<string, Map<string, RouteRow[]>>();
  const lengths = new Map<string, Set<number>>();
  const add = (row: RouteRow) => {
    const bits = prefixBits(row.prefix);
    if (bits === undefined) return;
    const table = byTable.get(row.table) ?? new Map<string, RouteRow[]>();
    byTable.set(row.table, table);
    const known = lengths.get(row.table) ?? new Set<number>();
    lengths.set(row.table, known.add(bits.length));
    const key = `${bits.length} ${bits.network}`;
    const list = table.get(key);
    if (list === undefined) table.set(key, [row]);
    else list.push(row);
  };
  const own = routes.filter((row) => row.family === family);
  for (const row of own) add(row);
  // `ip route` alone does not list table local: what it would hold follows from the addresses.
  if (!own.some((row) => row.table === "local")) {
    for (const row of addresses) {
      if (row.family !== family) continue;
      const { interface: name, address } = row;
      add({
        ...placed(row),
        family,
        type: "local",
        prefix: `${address}/${widthOf(family)}`,
        interface: name,
        source: address,
        metric: 0,
        table: "local",
        flags: [],
      });
    }
  }
  // A metric that the format does not print is taken for the best there is: the order of the lines stands.
  for (const table of byTable.values()) for (const list of table.values()) list.sort((a, b) => (a.metric ?? 0) - (b.metric ?? 0));
  return new Map([...byTable].map(([name, table]) => [name, { routes: table, lengths: [...(lengths.get(name) ?? [])].sort((a, b) => b - a) }]));
}

/** Asks the rules from the last to the first, so that what stands behind a rule is known when it is asked: linear although an unknown rule has two answers. */
function walk(family: FamilyTables, packet: Packet, inVrf: (name: string | undefined) => boolean): Answer {
  const { rules } = family;
  const nothing: Answer = { outcome: "none", hops: [], reason: "" };
  const behind: Answer[] = Array<Answer>(rules.length + 1).fill(nothing);
  for (let i = rules.length - 1; i >= 0; i--) {
    const rule = rules[i] as RuleRow;
    const skipped = behind[i + 1] as Answer;
    const matches = ruleMatches(rule, packet, inVrf);
    if (matches === false) {
      behind[i] = skipped;
      continue;
    }
    const taken = take(rule, i, family, packet, skipped, behind);
    if (matches === true) behind[i] = taken;
    else behind[i] = same(taken, skipped) ? skipped : undetermined(`rule ${rule.priority} asks for ${matches}, which is not known`, rule);
  }
  return behind[0] as Answer;
}

const undetermined = (reason: string, rule: RuleRow): Answer => ({ outcome: "undetermined", hops: [], reason, ...decider(rule) });
const decider = (rule: RuleRow): { rule?: RuleRow } => (rule.line === 0 ? {} : { rule });

const same = (a: Answer, b: Answer): boolean =>
  a.outcome !== "undetermined" && a.outcome === b.outcome && a.route?.interface === b.route?.interface && a.route?.gateway === b.route?.gateway;

/** What a rule that matches leads to. */
function take(rule: RuleRow, index: number, family: FamilyTables, packet: Packet, skipped: Answer, behind: readonly Answer[]): Answer {
  if (rule.action === "nop") return skipped;
  if (rule.action === "goto") {
    const target = family.rules.findIndex((other, i) => i > index && other.priority === rule.goto);
    return target === -1 ? skipped : (behind[target] as Answer);
  }
  if (rule.action !== "lookup") return { outcome: rule.action, hops: [], reason: "", ...decider(rule) };
  if (rule.table === "l3mdev") return undetermined(`rule ${rule.priority} looks up the table of a VRF`, rule);
  const table = family.tables.get(rule.table ?? "");
  const usual = rule.table === "main" || rule.table === "local" || rule.table === "default";
  if (table === undefined && !usual && !family.everyTable) return undetermined(`table ${rule.table} was not collected`, rule);
  const hops = table === undefined ? [] : bestRoutes(table, packet);
  const [route] = hops;
  if (route === undefined || route.type === "throw") return skipped;
  const length = prefixBits(route.prefix)?.length ?? 0;
  if (rule.suppressPrefixLength !== undefined && length <= rule.suppressPrefixLength) return skipped;
  return { outcome: route.type, route, hops, reason: "", ...decider(rule) };
}

/** The next hops of the best route of a table; empty if there is none. */
function bestRoutes(table: Table, packet: Packet): RouteRow[] {
  const bits = addressBits(packet.destination);
  if (bits === undefined) return [];
  for (const length of table.lengths) {
    const listed = table.routes.get(`${length} ${networkBits(bits, length, packet.family)}`);
    const usable = listed?.filter((row) => isUsable(row, packet)) ?? [];
    const first = usable[0];
    if (first === undefined) continue;
    // Next hops of one route have a weight; IPv6 makes one route of all with the same metric.
    const together = (row: RouteRow) => (row.weight !== undefined && first.weight !== undefined) || packet.family === "ipv6";
    return usable.filter((row) => row === first || (row.metric === first.metric && row.type === first.type && row.from === first.from && together(row)));
  }
  return [];
}

function isUsable(row: RouteRow, { source, outputInterface }: Packet): boolean {
  if (row.flags.includes("dead")) return false;
  if (row.from !== undefined && row.from !== "::/0" && (source === undefined || !within(source, row.from))) return false;
  // Routes that reject have no interface that could differ.
  const rejects = row.type === "blackhole" || row.type === "unreachable" || row.type === "prohibit" || row.type === "throw";
  return rejects || outputInterface === undefined || row.interface === outputInterface;
}

/** True or false, or what the rule asks for that is not known of the packet. */
function ruleMatches(rule: RuleRow, packet: Packet, inVrf: (name: string | undefined) => boolean): boolean | string {
  let unknown: string | undefined;
  let matches = true;
  const ask = (name: string, answer: boolean | undefined) => {
    if (answer === false) matches = false;
    else if (answer === undefined) unknown = name;
  };
  // A packet without a source has 0.0.0.0, which lies in no prefix but the one of length 0.
  if (rule.from !== "all") ask("the source", packet.source !== undefined ? within(packet.source, rule.from) : rule.from.endsWith("/0"));
  if (rule.to !== undefined && rule.to !== "all") ask("the destination", within(packet.destination, rule.to));
  if (rule.inputInterface !== undefined) ask("the interface it came in on", (packet.inputInterface ?? "lo") === rule.inputInterface);
  if (rule.outputInterface !== undefined) ask("the interface it is bound to", packet.outputInterface === rule.outputInterface);
  if (rule.fwmark !== undefined) ask("the mark", markMatches(rule.fwmark, packet.fwmark));
  if (rule.tos !== undefined && rule.tos !== "0" && rule.tos !== "0x00") ask("the type of service", undefined);
  if (rule.uidRange !== undefined) ask("the user", rangeHas(rule.uidRange, packet.uid));
  if (rule.ipProtocol !== undefined) ask("the protocol", packet.ipProtocol === undefined ? undefined : packet.ipProtocol === rule.ipProtocol);
  if (rule.sourcePort !== undefined) ask("the source port", rangeHas(rule.sourcePort, packet.sourcePort));
  if (rule.destinationPort !== undefined) ask("the destination port", rangeHas(rule.destinationPort, packet.destinationPort));
  if (rule.table === "l3mdev") ask("the VRF", inVrf(packet.inputInterface) || inVrf(packet.outputInterface));
  const known = matches ? unknown : undefined;
  if (known !== undefined) return known;
  return rule.not ? !matches : matches;
}

/** `0x80/0x80`, `0xca6c`. */
function markMatches(wanted: string, mark: number | undefined): boolean | undefined {
  if (!FWMARK.test(wanted)) return undefined;
  const [value = "0", mask = "0xffffffff"] = wanted.split("/");
  if (BigInt(mask) === 0n) return BigInt(value) === 0n;
  if (mark === undefined) return undefined;
  return (BigInt(mark) & BigInt(mask)) === (BigInt(value) & BigInt(mask));
}

/** "1000-2000", "53". */
function rangeHas(range: string, value: number | undefined): boolean | undefined {
  if (value === undefined) return undefined;
  const [first = "0", last = first] = range.split("-");
  return value >= Number(first) && value <= Number(last);
}

/** The source address for a packet of the node itself: the route's, else the first address of the interface, one beside the next hop first. */
function sourceOf(route: RouteRow, addresses: readonly (Address & Row)[]): string | undefined {
  if (route.source !== undefined) return route.source;
  // IPv6 chooses by scope, label and age, of which the facts do not know enough.
  if (route.family === "ipv6") return undefined;
  const usable = addresses.filter((row) => row.family === "ipv4" && row.scope !== "host");
  const own = usable.filter((row) => row.interface === route.interface && !row.flags.includes("secondary"));
  const next = route.gateway ?? route.prefix.split("/")[0] ?? "";
  const beside = own.find((row) => row.prefixLength !== undefined && within(next, `${row.address}/${row.prefixLength}`));
  return (beside ?? own[0] ?? usable.find((row) => row.scope === "global" || row.scope === undefined))?.address;
}
