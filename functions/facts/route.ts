import { z } from "zod";
import { hasLetter, hasOption } from "./command.ts";
import { defineFact, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { type Family, maskLength } from "./ip-address.ts";
import { familyScope, filterValue, goneOf, ipCommand, mergeFamilies, ROUTE_PROTOCOLS, ROUTE_TABLES, wholeFamilies } from "./ip-command.ts";
import { fromHexIpv6 } from "./ipv6.ts";
import { asInteger, asString, asStrings, jsonElements } from "./json.ts";
import { readFamily, readPrefix } from "./mask.ts";
import { type NmcliField, nmcliDevices, nmcliFields } from "./nmcli.ts";
import { isPrompt, withoutPrompts } from "./paste.ts";
import { withoutLineCount } from "./pipe.ts";
import { laidOut, present } from "./present.ts";
import { procNet } from "./proc-net.ts";
import { type TalosResource, talosResources, talosView } from "./talos.ts";
import { wordsOf } from "./words.ts";

const TYPES = ["unicast", "local", "broadcast", "anycast", "multicast", "blackhole", "unreachable", "prohibit", "throw"] as const;
type Type = (typeof TYPES)[number];

/**
 * Routes of every table, one row per next hop.
 *
 *     default via 10.5.0.1 dev mgnt proto dhcp src 10.5.0.10 metric 100
 *     169.254.0.0/16 dev eth1 scope link metric 1002
 */
const Route = z.object({
  line: z.int(),
  family: z.enum(["ipv4", "ipv6"]),
  /** `route -n` tells rejecting types apart only as far as "unreachable" (`!`) and "blackhole" (interface `*`). */
  type: z.enum(TYPES),
  /** With length; "0.0.0.0/0" and "::/0" for default. */
  prefix: z.string(),
  /** An address (of either family), or a name where `route` without -n resolved it. */
  gateway: z.string().optional(),
  interface: z.string().optional(),
  /** Preferred source address. */
  source: z.string().optional(),
  /** 0 where `ip route` prints none; absent where the format has no such column. */
  metric: z.int().optional(),
  /** "kernel", "static", "dhcp", "bird", …, or a number that has no name. */
  protocol: z.string().optional(),
  /** "global", "link", "host", …; absent where `ip route` leaves the usual one out. */
  scope: z.string().optional(),
  /** "main", "local", "default", or a number. */
  table: z.string(),
  /** Words of `ip route` (linkdown, onlink, dead, …), or the letters of `route` (U, G, H, !, …). */
  flags: z.array(z.string()),
  mtu: z.int().optional(),
  /** Of a next hop among several. */
  weight: z.int().optional(),
  /** IPv6 only: the route is for packets from here. */
  from: z.string().optional(),
});
const Routes = z.object({
  rows: z.array(Route),
  /** Those of the first listing that the last one does not have any more, where somebody listed them more than once. */
  gone: z.array(Route).optional(),
});
export type Route = z.infer<typeof Route>;

/** Numbers that `ip -N` prints. */
const SCOPES = new Map<string, string>(Object.entries({ "0": "global", "200": "site", "253": "link", "254": "host", "255": "nowhere" }));
const NUMBERED = new Map<string, Type>(
  Object.entries({
    "1": "unicast",
    "2": "local",
    "3": "broadcast",
    "4": "anycast",
    "5": "multicast",
    "6": "blackhole",
    "7": "unreachable",
    "8": "prohibit",
    "9": "throw",
  }),
);
const TYPE_NAMES = new Map<string, Type>(TYPES.map((name) => [name, name]));
const FLAG_WORDS = new Set("dead onlink pervasive offload trap notify linkdown unresolved rt_offload rt_trap rt_offload_failed cloned".split(" "));
/** Words with a value that no field holds. */
const OTHER_PAIRS = new Set(
  (
    "tos dsfield nhid advmss window rtt rttvar ssthresh cwnd reordering hoplimit initcwnd initrwnd features rto_min quickack congctl fastopen_no_cookie realm realms " +
    "expires error pref ttl-propagate users used age iif"
  ).split(" "),
);
const NAME = /^[^\s/]{1,127}$/;

export const route = defineFact({
  id: "route",
  title: "Routes of every table",
  commands: [{ argv: ["ip", "-j", "-4", "route", "show", "table", "all"] }, { argv: ["ip", "-j", "-6", "route", "show", "table", "all"] }],
  recognize(argv): View | undefined {
    if (argv[0] === "route" || argv[0] === "netstat") return netTools(argv);
    if (argv[0] === "talosctl") return talosView(argv, /^routes?(?:status(?:es)?(?:\.net\.talos\.dev)?)?$/i, 5);
    if (argv.length === 2 && argv[0] === "cat" && PROC.test(argv[1] as string)) return { format: "proc", complete: true, scope: "ipv4", rank: 1 };
    if (argv.length === 2 && argv[0] === "cat" && PROC6.test(argv[1] as string)) return { format: "proc6", complete: false, scope: "ipv6", rank: 0 };
    const devices = nmcliDevices(argv);
    if (devices !== undefined) return { format: "nmcli", complete: false, scope: ` ${devices}`, rank: 0, hint: true };
    const command = ipCommand(argv);
    if (command?.object !== "route") return undefined;
    const format = command.json ? "json" : "text";
    const rank = 2 + (command.json ? 2 : 0);
    const { family, filters } = command;
    const [word, value] = filters;
    // Every table, of both families unless one is named.
    if (word === "table" && (value === "all" || value === "0") && filters.length === 2) return { format, complete: true, scope: family ?? "", rank: rank + 4 };
    // Nothing filtered: table main, which is what decides unless a rule says otherwise. It ranks below all tables.
    const main = filters.length === 0 || (word === "table" && (value === "main" || value === "254") && filters.length === 2);
    return { format, complete: main, scope: familyScope(family ?? "ipv4", main ? [] : filters), rank };
  },
  schema: Routes,
  parse({ text: printed, argv, view, pipe }) {
    const text = withoutLineCount(printed, pipe ?? "");
    const unparsed = new UnparsedLines();
    const rows: Route[] = [];
    if (view.format === "net-tools") readNetTools(rows, text, argv, unparsed);
    else if (view.format === "proc") readProc(rows, text, unparsed);
    else if (view.format === "proc6") readProc6(rows, text, unparsed);
    else if (view.format === "nmcli") for (const field of nmcliFields(text, argv, unparsed)) rows.push(...nmcliRoute(field));
    else if (view.format.startsWith("talos")) for (const resource of talosResources(text, view, "RouteStatus", unparsed)) rows.push(...talosRoute(resource));
    else if (view.format === "json") fromJson(rows, text, defaults(argv), unparsed);
    else readText(rows, text, defaults(argv), unparsed);
    return unparsed.with({ rows });
  },
  merge: (parts) => ({ ...mergeFamilies(parts, (row) => row.table), ...goneOf(parts) }),
  // no node that anybody can ask is without a single route: an empty answer is one that got lost
  whole: (parts) => wholeFamilies(parts.filter(isListing)) && parts.some(({ value }) => value.rows.length > 0),
});

/** What NetworkManager knows of a device, and the kernel's list without its tables, add routes; beside `ip route` they leave nothing open that was not open before. */
const isListing = ({ view }: Part<unknown>): boolean => view.format !== "nmcli" && view.format !== "proc6";

/** What the command line says about every route it lists: `ip` does not repeat it on the lines. */
interface Defaults {
  readonly family: Family | undefined;
  readonly table: string;
  readonly interface?: string;
  readonly protocol?: string;
  readonly scope?: string;
  readonly gateway?: string;
}

function defaults(argv: readonly string[]): Defaults {
  const command = ipCommand(argv);
  const filters = command?.filters ?? [];
  const vrf = filterValue(filters, "vrf");
  const table = filterValue(filters, "table") ?? (vrf === undefined ? "main" : `vrf ${vrf}`);
  const everything = table === "all" || table === "0" || table === "cache";
  const values = {
    interface: filterValue(filters, "dev", "oif"),
    protocol: named(ROUTE_PROTOCOLS, filterValue(filters, "proto", "protocol")),
    scope: named(SCOPES, filterValue(filters, "scope")),
    gateway: filterValue(filters, "via"),
  };
  // Only `table all` lists both families.
  const family = command?.family ?? (everything ? undefined : "ipv4");
  return { family, table: everything ? "main" : (ROUTE_TABLES.get(table) ?? table), ...present(values) };
}

const named = (names: ReadonlyMap<string, string>, value: string | undefined): string | undefined =>
  value === undefined ? undefined : (names.get(value) ?? value);

/** Says of which family the routes of a mixed listing are: IPv4 comes first, and only the destination tells for sure. */
class FamilyGuess {
  #latest: Family = "ipv4";
  readonly #known: Family | undefined;

  constructor(known: Family | undefined) {
    this.#known = known;
  }

  /** `ipv6Hint`: the route shows something that only IPv6 routes have. Undefined if the destination is no prefix. */
  prefix(destination: string, ipv6Hint: boolean): { family: Family; prefix: string } | undefined {
    if (destination === "default") {
      const family = this.#known ?? (ipv6Hint ? "ipv6" : this.#latest);
      return { family, prefix: family === "ipv4" ? "0.0.0.0/0" : "::/0" };
    }
    const parsed = readPrefix(destination, this.#known ?? (ipv6Hint ? "ipv6" : this.#latest));
    if (parsed === undefined || (this.#known !== undefined && parsed.family !== this.#known)) return undefined;
    this.#latest = parsed.family;
    return parsed;
  }
}

/** One line of `ip route`, or one next hop: its words by name. */
interface Words {
  type: Type | undefined;
  destination: string;
  gateway?: string;
  /** `via inet6 …`: the gateway is of another family than the route. */
  foreignGateway?: boolean;
  interface?: string;
  source?: string;
  metric?: number;
  protocol?: string;
  scope?: string;
  table?: string;
  mtu?: number;
  weight?: number;
  from?: string;
  ipv6: boolean;
  flags: string[];
}

/** The kernel's answer for a table in which no route was ever put. */
export const NO_TABLE = /^(?:Error: ipv[46]: FIB table does not exist\.?|Dump terminated)$/;

function readText(rows: Route[], text: string, given: Defaults, unparsed: UnparsedLines): void {
  const guess = new FamilyGuess(given.family);
  let route: { line: number; words: Words; text: string } | undefined;
  let hops: { line: number; words: Words }[] = [];
  const finish = () => {
    if (route === undefined) return;
    const { line, words, text: content } = route;
    const found = guess.prefix(words.destination, words.ipv6 || hasIpv6Gateway(words) || hops.some((hop) => hasIpv6Gateway(hop.words)));
    if (found === undefined) unparsed.add(line, content);
    else if (hops.length === 0) rows.push(toRow(line, found, words, words, given));
    else for (const hop of hops) rows.push(toRow(hop.line, found, words, hop.words, given));
    route = undefined;
    hops = [];
  };
  for (const { line, text: content } of lines(text)) {
    if (NO_TABLE.test(content.trim())) continue;
    for (const segment of content.includes("\\") ? content.split(/\\(?=[ \t])/) : [content]) {
      const words = wordsOf(segment);
      const first = words[0];
      if (first === undefined) continue;
      if (first === "nexthop") {
        const hop = readWords(words, 1);
        if (hop === undefined || route === undefined) unparsed.add(line, segment);
        else hops.push({ line, words: hop });
      } else if (first === "nh_info" || first === "cache") {
        // -d repeats what the next hop object holds; `cache` begins the second line of cached routes.
        if (route === undefined) unparsed.add(line, segment);
      } else if (!isPrompt(segment)) {
        finish();
        const type = TYPE_NAMES.get(first) ?? (words.length > 1 ? NUMBERED.get(first) : undefined);
        const at = type === undefined ? 0 : 1;
        const read = readWords(words, at + 1);
        if (read === undefined || words[at] === undefined) unparsed.add(line, segment);
        else {
          read.type = type;
          read.destination = destinationOf(words[at] as string, read);
          route = { line, words: read, text: segment };
        }
      }
    }
  }
  finish();
}

const hasIpv6Gateway = ({ gateway, foreignGateway }: Words): boolean => gateway?.includes(":") === true && foreignGateway !== true;

/** No route leads to the address 0.0.0.0 itself: people who type an answer again, and some small programs, write the default route so. */
const destinationOf = (word: string, { gateway }: Words): string => (word === "0.0.0.0" && gateway !== undefined ? "default" : word);

/** The words behind the destination (or behind `nexthop`), undefined if there is one that `ip route` does not print. */
function readWords(words: readonly string[], from: number): Words | undefined {
  const read: Words = { type: undefined, destination: "", ipv6: false, flags: [] };
  for (let i = from; i < words.length; i++) {
    const word = words[i] as string;
    if (FLAG_WORDS.has(word)) {
      read.flags.push(word);
      continue;
    }
    if (word === "encap") {
      // How the packet is wrapped: everything up to the next hop.
      while (i + 1 < words.length && words[i + 1] !== "via" && words[i + 1] !== "dev") i++;
      continue;
    }
    let value = words[++i];
    if (value === "lock") value = words[++i];
    if (value === undefined) return undefined;
    if (word === "via") {
      if (value === "inet" || value === "inet6") {
        read.foreignGateway = true;
        value = words[++i] ?? "";
      }
      if (readFamily(value, "ipv4") === undefined) return undefined;
      read.gateway = value;
    } else if (word === "dev" && NAME.test(value)) read.interface = value;
    else if (word === "table") read.table = ROUTE_TABLES.get(value) ?? value;
    else if (word === "proto") read.protocol = ROUTE_PROTOCOLS.get(value) ?? value;
    else if (word === "scope") read.scope = SCOPES.get(value) ?? value;
    else if (word === "src" && readFamily(value, "ipv4") !== undefined) read.source = value;
    else if (word === "from" && readPrefix(value, "ipv6") !== undefined) {
      read.from = readPrefix(value, "ipv6")?.prefix as string;
      read.ipv6 = true;
    } else if (word === "metric" || word === "mtu" || word === "weight") {
      const number = asInteger(value);
      if (number === undefined) return undefined;
      read[word] = number;
    } else if (!OTHER_PAIRS.has(word)) return undefined;
    if (word === "pref") read.ipv6 = true;
    if (word === "features") while (words[i + 1] === "tcp_usec_ts" || words[i + 1] === "ecn") i++;
  }
  return read;
}

function toRow(line: number, { family, prefix }: { family: Family; prefix: string }, route: Words, hop: Words, given: Defaults): Route {
  return laidOut<Route>({
    line,
    family,
    type: route.type ?? "unicast",
    prefix,
    gateway: hop.gateway ?? given.gateway,
    interface: hop.interface ?? given.interface,
    source: route.source,
    metric: route.metric ?? (family === "ipv4" ? 0 : undefined),
    protocol: route.protocol ?? given.protocol,
    scope: route.scope ?? given.scope,
    mtu: route.mtu,
    weight: hop.weight,
    from: route.from,
    table: route.table ?? given.table,
    flags: hop === route ? route.flags : [...route.flags, ...hop.flags],
  });
}

type Json = Record<string, unknown>;

function fromJson(rows: Route[], text: string, given: Defaults, unparsed: UnparsedLines): void {
  const guess = new FamilyGuess(given.family);
  for (const { value, line, text: quote } of jsonElements(withoutPrompts(text), unparsed)) {
    if (Object.keys(value).length === 0) continue;
    const words = jsonWords(value, quote);
    const hops = Array.isArray(value["nexthops"]) ? value["nexthops"].map((hop: unknown) => jsonWords((hop ?? {}) as Json, "")) : [words];
    const found = words === undefined ? undefined : guess.prefix(words.destination, words.ipv6 || hops.some((hop) => hop !== undefined && hasIpv6Gateway(hop)));
    if (words === undefined || found === undefined || hops.includes(undefined)) unparsed.add(line, quote);
    else for (const hop of hops) rows.push(Object.assign(toRow(line, found, words, hop as Words, given), { text: quote }));
  }
}

const FIRST_DESTINATION = /"dst":\s{0,8}"([^"]{1,60})"/;

function jsonWords(value: Json, quote: string): Words | undefined {
  const typeName = asString(value["type"]) ?? "unicast";
  const type = TYPES.find((name) => name === typeName) ?? NUMBERED.get(typeName);
  const via = typeof value["via"] === "object" && value["via"] !== null ? (value["via"] as Json) : {};
  const metrics = Array.isArray(value["metrics"]) && typeof value["metrics"][0] === "object" ? ((value["metrics"][0] ?? {}) as Json) : {};
  // `ip route add … encap ip dst …` makes iproute2 print the key twice, and the first is the route's.
  const destination = "encap" in value ? FIRST_DESTINATION.exec(quote)?.[1] : asString(value["dst"]);
  if (type === undefined) return undefined;
  const values = {
    gateway: asString(value["gateway"]) ?? asString(via["host"]),
    foreignGateway: "host" in via ? true : undefined,
    interface: asString(value["dev"]),
    source: asString(value["prefsrc"]),
    metric: asInteger(value["metric"]),
    protocol: named(ROUTE_PROTOCOLS, asText(value["protocol"])),
    scope: named(SCOPES, asText(value["scope"])),
    table: named(ROUTE_TABLES, asText(value["table"])),
    mtu: asInteger(metrics["mtu"]),
    weight: asInteger(value["weight"]),
    from: readPrefix(asString(value["from"]) ?? "", "ipv6")?.prefix,
  };
  return { type, destination: destination ?? "", ...present(values), ipv6: "pref" in value, flags: asStrings(value["flags"]) };
}

const asText = (value: unknown): string | undefined => (typeof value === "number" ? String(value) : asString(value));

/** `route`, `netstat -r` (net-tools and BusyBox). */
function netTools(argv: readonly string[]): View | undefined {
  if (argv[0] === "netstat" && !hasLetter(argv, "r") && !hasOption(argv, "--route")) return undefined;
  const words = argv.slice(1).filter((word) => !word.startsWith("-") && word !== "inet" && word !== "inet6");
  if (words.length > 0 || hasLetter(argv, "C") || hasOption(argv, "--cache")) return undefined;
  // Like /proc/net/route, which it prints, it shows table main.
  return { format: "net-tools", complete: true, scope: isInet6(argv) ? "ipv6" : "ipv4", rank: 1 };
}

const isInet6 = (argv: readonly string[]): boolean => hasOption(argv, "inet6", "--inet6") || hasLetter(argv, "6");

const TITLE = /^Kernel (?:IP|IPv6) routing (?:table|cache)$/;
/** Destinations that `route` without -n names, after /etc/networks. */
const NETWORKS = new Map<string, string>(Object.entries({ default: "0.0.0.0", loopback: "127.0.0.0", "link-local": "169.254.0.0" }));
const HOST_NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,252}$/;

function readNetTools(rows: Route[], text: string, argv: readonly string[], unparsed: UnparsedLines): void {
  // `-ee` has a metric again, behind which the columns of `-e` stand.
  const extended =
    argv
      .filter((word) => /^-[a-z]*e/.test(word))
      .join("")
      .split("e").length - 1;
  let hasMetric = argv[0] === "route" && extended !== 1;
  const inet6 = isInet6(argv);
  for (const { line, text: content } of lines(text)) {
    const words = wordsOf(content);
    if (words[0] === "Kernel" && TITLE.test(content.trim())) continue;
    if (words[0] === "Destination" && (words[1] === "Gateway" || words[1] === "Next")) hasMetric = words.includes("Metric") || words.includes("Met");
    else {
      const row = inet6 ? inet6Route(line, words) : inetRoute(line, words, hasMetric);
      if (row !== undefined) rows.push(row);
      else if (!isPrompt(content)) unparsed.add(line, content);
    }
  }
}

/** `169.254.0.0     0.0.0.0         255.255.0.0     U     1002   0        0 eth1` */
function inetRoute(line: number, words: readonly string[], hasMetric: boolean): Route | undefined {
  if (words.length !== 8 && words.length !== 11) return undefined;
  const [destination, gateway, mask, letters, first, , , name] = words as [string, string, string, string, string, string, string, string];
  const length = maskLength(mask);
  const address = NETWORKS.get(destination) ?? destination;
  const flags = lettersOf(letters);
  if (length === undefined || readFamily(address, "ipv4") !== "ipv4" || flags === undefined || !NAME.test(name)) return undefined;
  for (let i = 4; i < words.length; i++) if (i !== 7 && !NUMBER.test(words[i] as string)) return undefined;
  const none = gateway === "0.0.0.0" || gateway === "*" || gateway === "-" || gateway === "default";
  if (!none && readFamily(gateway, "ipv4") !== "ipv4" && !HOST_NAME.test(gateway)) return undefined;
  return laidOut<Route>({
    line,
    family: "ipv4",
    type: flags.includes("!") ? "unreachable" : name === "*" ? "blackhole" : "unicast",
    prefix: `${address}/${length}`,
    gateway: none ? undefined : gateway,
    interface: name === "*" || name === "-" ? undefined : name,
    source: undefined,
    metric: hasMetric ? asInteger(first) : undefined,
    protocol: undefined,
    scope: undefined,
    mtu: words.length === 11 ? positive(words[8]) : hasMetric ? undefined : positive(first),
    weight: undefined,
    from: undefined,
    table: "main",
    flags,
  });
}
const NUMBER = /^(?:-|-?\d{1,10})$/;

const PROC = procNet("route");
const PROC_TITLE = /^Iface\s+Destination\s+Gateway\s+Flags\s+RefCnt\s+Use\s+Metric\s+Mask\s/;
const PROC_ROW =
  /^(\S{1,40})\s+([0-9A-F]{8})\s+([0-9A-F]{8})\s+([0-9A-F]{4})\s+-?\d{1,10}\s+-?\d{1,10}\s+(\d{1,10})\s+([0-9A-F]{8})\s+(\d{1,6})\s+\d{1,10}\s+\d{1,10}\s*$/;
/** linux/route.h, in the letters of `route`: RTF_UP, RTF_GATEWAY, RTF_HOST, RTF_DYNAMIC, RTF_MODIFIED, RTF_REJECT. */
const PROC_FLAGS: readonly (readonly [number, string])[] = [
  [0x1, "U"],
  [0x2, "G"],
  [0x4, "H"],
  [0x10, "D"],
  [0x20, "M"],
  [0x200, "!"],
];

/**
 * The kernel's own list of table main. Addresses are numbers in the byte order of the machine: read as little-endian, the mask of a big-endian one is none,
 * and its lines stay unread.
 */
function readProc(rows: Route[], text: string, unparsed: UnparsedLines): void {
  const dotted = (hex: string): string => [6, 4, 2, 0].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)).join(".");
  for (const { line, text: content } of lines(text)) {
    const match = PROC_ROW.exec(content.trim());
    const [, name, destination, gateway, bits, metric, mask, mtu] = match ?? [];
    const length = match === null ? undefined : maskLength(dotted(mask as string));
    if (length === undefined) {
      if (!PROC_TITLE.test(content.trim()) && !isPrompt(content)) unparsed.add(line, content);
      continue;
    }
    const set = Number.parseInt(bits as string, 16);
    const flags = PROC_FLAGS.flatMap(([bit, letter]) => ((set & bit) === 0 ? [] : [letter]));
    rows.push(
      laidOut<Route>({
        line,
        family: "ipv4",
        type: flags.includes("!") ? "unreachable" : name === "*" ? "blackhole" : "unicast",
        prefix: `${dotted(destination as string)}/${length}`,
        gateway: flags.includes("G") ? dotted(gateway as string) : undefined,
        interface: name === "*" ? undefined : name,
        source: undefined,
        metric: Number(metric),
        protocol: undefined,
        scope: undefined,
        mtu: positive(mtu),
        weight: undefined,
        from: undefined,
        table: "main",
        flags,
      }),
    );
  }
}

const PROC6 = procNet("ipv6_route");
const PROC6_ROW = /^([0-9a-f]{32}) ([0-9a-f]{2}) ([0-9a-f]{32}) ([0-9a-f]{2}) ([0-9a-f]{32}) ([0-9a-f]{8}) [0-9a-f]{8} [0-9a-f]{8} ([0-9a-f]{8}) +(\S{1,15})$/;

/**
 * The kernel's own list of IPv6 routes, of all tables, and of which table it does not say: destination, source, next hop, metric, references, uses, flags, interface.
 * `fd000031000000000000000000000000 40 000…000 00 000…000 00000100 00000004 00000000 00000001     eth0`
 */
function readProc6(rows: Route[], text: string, unparsed: UnparsedLines): void {
  for (const { line, text: content } of lines(text)) {
    const [, hex, length, from, fromLength, next, metric, bits, name] = PROC6_ROW.exec(content.trim()) ?? [];
    const destination = hex === undefined ? undefined : readPrefix(`${fromHexIpv6(hex)}/${Number.parseInt(length as string, 16)}`, "ipv6");
    if (destination === undefined) {
      if (!isPrompt(content)) unparsed.add(line, content);
      continue;
    }
    const set = Number.parseInt(bits as string, 16);
    const number = Number.parseInt(metric as string, 16);
    // RTF_LOCAL; RTF_REJECT; what the kernel keeps for addresses to which no route leads has the largest metric, and is in no table
    const type: Type = (set & 0x200) !== 0 ? "unreachable" : set >= 0x8000_0000 ? "local" : destination.prefix === "ff00::/8" ? "multicast" : "unicast";
    const table = number === 2 ** 32 - 1 ? "unspec" : type === "local" || type === "multicast" ? "local" : "main";
    const gateway = /^0+$/.test(next as string) ? undefined : fromHexIpv6(next as string);
    const source = fromLength === "00" ? undefined : `${fromHexIpv6(from as string)}/${Number.parseInt(fromLength as string, 16)}`;
    const flags = PROC_FLAGS.flatMap(([bit, letter]) => ((set & bit) === 0 ? [] : [letter]));
    const values = present({ gateway, interface: name, metric: number, from: source });
    rows.push({ line, family: "ipv6", type, prefix: destination.prefix, ...values, table, flags });
  }
}

/** `IP4.ROUTE[3]: dst = 169.254.0.0/16, nh = 0.0.0.0, mt = 1002, table=254`; a table other than main is named. */
function nmcliRoute({ line, interface: name, key, value }: NmcliField): Route[] {
  const family = key.startsWith("IP4.ROUTE") ? "ipv4" : key.startsWith("IP6.ROUTE") ? "ipv6" : undefined;
  const [, to = "", next = "", metric, table = "main"] = /^dst = (\S{1,60}), nh = (\S{1,60}), mt = (\d{1,10})(?:, table ?= ?(\d{1,10}))?$/.exec(value) ?? [];
  const destination = family === undefined ? undefined : readPrefix(to, family);
  if (family === undefined || destination?.family !== family) return [];
  const gateway = /^(?:0\.0\.0\.0|::)$/.test(next) ? undefined : next;
  const values = present({ gateway, interface: name, metric: asInteger(metric) });
  const place = ROUTE_TABLES.get(table) ?? table;
  // the types are not told; in the table of the node's own addresses there is no other
  const type: Type = place !== "local" ? "unicast" : destination.prefix === "ff00::/8" ? "multicast" : "local";
  return [{ line, family, type, prefix: destination.prefix, ...values, table: place, flags: [] }];
}

/** `inet4/10.5.0.1//1024`, `local/inet4//10.5.0.2/32/0`: table, family, gateway, destination, metric. */
const TALOS_ID = /^(?:([^/]{1,20})\/)?(?:[^/]{1,15}\/)?inet([46])\/([^/]{0,45})\/(?:([^/]{1,45}\/\d{1,3}))?\/(\d{1,10})$/;

/** A table of Talos does not tell types: those of the node's own addresses and of broadcast are one there, and left out; a route without an interface rejects. */
function talosRoute({ line, id, words, spec }: TalosResource): Route[] {
  const [, place = "main", digit = "", next = "", to, priority] = TALOS_ID.exec(id) ?? [];
  const family = digit === "4" ? "ipv4" : "ipv6";
  const table = spec?.get("table") ?? (/^(?:local|default|unspec|\d{1,10})$/.test(place) ? place : "main");
  const destination = readPrefix(to ?? (family === "ipv4" ? "0.0.0.0/0" : "::/0"), family);
  if (digit === "" || destination === undefined || (spec === undefined && table === "local")) return [];
  const last = words.at(-2) ?? "";
  const named = spec?.get("outLinkName") ?? (/^\d{1,10}$/.test(words.at(-1) ?? "") && NAME.test(last) && !last.includes(":") && last !== next ? last : "");
  const type = spec === undefined ? (named === "" ? "blackhole" : "unicast") : TYPE_NAMES.get(spec.get("type") ?? "");
  if (type === undefined) return [];
  const some = (value: string | undefined): string | undefined => (value === "" ? undefined : value);
  const values = present({
    gateway: some(next),
    interface: some(named),
    source: some(spec?.get("src")),
    metric: asInteger(priority),
    protocol: some(spec?.get("protocol")),
    scope: some(spec?.get("scope")),
  });
  return [{ line, family, type, prefix: destination.prefix, ...values, table, flags: [] }];
}

/** The flags column, letter by letter; equal ones are one list. Undefined if it is none. */
function lettersOf(text: string): string[] | undefined {
  let letters = LETTERS.get(text);
  if (letters === undefined && /^[UGHRDMAC!]{1,9}$/.test(text)) {
    letters = text.split("");
    if (LETTERS.size < 1000) LETTERS.set(text, letters);
  }
  return letters;
}
const LETTERS = new Map<string, string[]>();

/** The MSS column holds the route's MTU; 0 if it has none. */
const positive = (word: string | undefined): number | undefined => asInteger(word) || undefined;

/** `2001:db8:7::/48                2001:db8::1                UG   1024 2      0 eth0` */
function inet6Route(line: number, words: readonly string[]): Route | undefined {
  if (words.length !== 7) return undefined;
  const [destination, gateway, letters, metric, references, uses, name] = words as [string, string, string, string, string, string, string];
  const bare = (text: string) => text.replace(/^\[(.{1,50})\]/, "$1");
  const parsed = readPrefix(destination === "default" ? "::/0" : bare(destination), "ipv6");
  const next = bare(gateway);
  if (parsed?.length === undefined || parsed.family !== "ipv6" || !/^[UGHRDMACen!a]{1,9}$/.test(letters) || !NAME.test(name)) return undefined;
  if (![metric, references, uses].every((word) => /^-?\d{1,10}$/.test(word))) return undefined;
  const none = next === "::" || next === "*";
  if (!none && readFamily(next, "ipv6") !== "ipv6" && !HOST_NAME.test(next)) return undefined;
  const flags = letters.split("");
  // The kernel marks routes without a next hop of their own, local addresses above all, with n.
  const local = flags.includes("n") && flags.includes("U");
  const type: Type = flags.includes("!") ? "unreachable" : local ? "local" : parsed.prefix === "ff00::/8" ? "multicast" : "unicast";
  // The kernel's own entry for "no route" has the largest metric, which is printed as -1, and is in no table.
  const nowhere = metric.startsWith("-");
  const table = nowhere ? "unspec" : type === "local" || type === "multicast" ? "local" : "main";
  const number = nowhere ? 2 ** 32 + Number(metric) : asInteger(metric);
  const values = { gateway: none ? undefined : next, interface: name === "*" || name === "-" ? undefined : name, metric: number };
  return { line, family: "ipv6", type, prefix: parsed.prefix, ...present(values), table, flags };
}
