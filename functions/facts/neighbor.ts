import { z } from "zod";
import { hasOption } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import type { Family } from "./ip-address.ts";
import { familyScope, filterValue, ipCommand, mergeFamilies, wholeFamilies } from "./ip-command.ts";
import { asString, asStrings, jsonElements } from "./json.ts";
import { readFamily, readMac } from "./mask.ts";
import { isPrompt, withoutPrompts } from "./paste.ts";
import { present } from "./present.ts";
import { procNet } from "./proc-net.ts";

/**
 * Neighbours (ARP and NDP entries) of every interface.
 *
 *     10.240.0.57 dev lxc_health lladdr 3a:d3:5d:06:09:0f REACHABLE
 *     10.240.0.57 dev azure0 FAILED
 */
const Neighbor = z.object({
  line: z.int(),
  family: z.enum(["ipv4", "ipv6"]),
  /** Without prefix length. */
  address: z.string(),
  interface: z.string(),
  /** Lower case, colons; absent while unresolved. */
  mac: z.string().optional(),
  /** One of the kernel's NUD states in upper case; "UNKNOWN" where a format does not tell (`arp` of a complete entry, `ip -br`). */
  state: z.string(),
  router: z.boolean(),
  proxy: z.boolean(),
  /** Who made it, where `ip` tells: "static", "kernel", "zebra", … */
  protocol: z.string().optional(),
});
const Neighbors = z.object({
  rows: z.array(Neighbor),
  /** Entries of addresses that went to and fro between two hardware addresses, in listings one behind the other. */
  turns: z.array(Neighbor).optional(),
  /** Entries of later listings that have another hardware address than in the first. */
  changed: z.array(Neighbor).optional(),
});
export type Neighbor = z.infer<typeof Neighbor>;
type Entry = Omit<Neighbor, "line">;
const MAX_TURNS = 100;

const ARP = procNet("arp");
const STATES = new Set(["PERMANENT", "NOARP", "REACHABLE", "STALE", "NONE", "INCOMPLETE", "DELAY", "PROBE", "FAILED"]);
const FLAGS = new Set(["router", "proxy", "extern_learn", "extern_valid", "managed", "offload"]);
const NAME = /^[^\s/]{1,127}$/;
const NUMBER = /^\d{1,10}$/;
/** The arp options that take the next word with them. */
const ARP_VALUES = ["-i", "--device", "-H", "-t", "--hw-type", "-A", "-p", "--protocol"];

export const neighbor = defineFact({
  id: "neighbor",
  title: "Neighbours (ARP, NDP) of every interface",
  commands: [{ argv: ["ip", "-j", "neigh", "show"] }],
  recognize(argv): View | undefined {
    if (argv[0] === "cat" && ARP.test(argv[1] ?? "") && argv.length === 2) return { format: "arp", complete: true, scope: "ipv4", rank: 1 };
    if (argv[0] === "arp") {
      if (hasOption(argv, "-d", "-s", "-f", "--delete", "--set", "--file", "-h", "-V")) return undefined;
      const filters = argv.filter(
        (word, i) => i > 0 && (!word.startsWith("-") || word === "-i") && !(ARP_VALUES.includes(argv[i - 1] as string) && argv[i - 1] !== "-i"),
      );
      return { format: "arp", complete: filters.length === 0, scope: familyScope("ipv4", filters), rank: 1 };
    }
    const command = ipCommand(argv);
    if (command?.object !== "neighbor") return undefined;
    // `nud all` shows more than the default, which leaves out entries that need no resolution.
    const all = command.filters.join(" ") === "nud all";
    const format = command.json ? "json" : command.brief ? "brief" : "text";
    const rank = (command.json ? 6 : 4) + (all ? 1 : 0) - (command.brief ? 2 : 0);
    return { format, complete: all || command.filters.length === 0, scope: familyScope(command.family, all ? [] : command.filters), rank };
  },
  schema: Neighbors,
  parse({ text, argv, view }) {
    const unparsed = new UnparsedLines();
    const rows: Neighbor[] = [];
    // `ip neigh show dev eth0` does not repeat the device.
    const command = ipCommand(argv);
    const shown: Shown = { device: filterValue(command?.filters ?? [], "dev"), family: command?.family ?? "ipv4" };
    if (view.format === "json") {
      for (const { value, line, text: quote } of jsonElements(withoutPrompts(text), unparsed)) {
        const entry = fromJson(value, shown);
        if (entry !== undefined) rows.push(Object.assign({ line, ...entry }, { text: quote }));
        else if (Object.keys(value).length > 0) unparsed.add(line, quote);
      }
      return unparsed.with({ rows });
    }
    const read = view.format === "text" ? ipNeigh : view.format === "brief" ? briefNeigh : arp;
    for (const { line, text: content } of lines(text)) {
      const entry = read(content.trim().split(/\s+/), shown);
      if (entry !== undefined) rows.push({ line, ...entry });
      else if (!ARP_FRAME.test(content.trim()) && !isPrompt(content)) unparsed.add(line, content);
    }
    return unparsed.with({ rows });
  },
  merge(parts) {
    const merged = mergeFamilies(parts);
    const later = parts.filter((part) => part.sample > 1).flatMap((part) => part.value.rows);
    return { ...merged, ...(parts.length > 3 ? turnsOf(parts.map((part) => part.value.rows)) : {}), ...changedOf(merged.rows, later) };
  },
  whole: wholeFamilies,
});

const keyOf = ({ address, interface: name }: Neighbor): string => `${address} ${name}`;

function changedOf(rows: readonly Neighbor[], later: readonly Neighbor[]): { changed?: Neighbor[] } {
  const known = new Map(later.length === 0 ? [] : rows.map((row) => [keyOf(row), row.mac]));
  const changed = later.filter((row) => row.mac !== undefined && (known.get(keyOf(row)) ?? row.mac) !== row.mac);
  return changed.length === 0 ? {} : { changed: changed.slice(0, MAX_TURNS) };
}

/** Of routers that share an address (VRRP, HSRP): beside it they answer with their own. */
const SHARED = /^00:00:(?:5e:00:|0c:07:ac|0c:9f:f)/;

/**
 * Addresses that went to and fro between two hosts, and did so twice: what a virtual address does when its host fails and comes back is once. Ports of one bond, which
 * may answer by turns, differ in the last byte alone. A text in which an entry stands twice is of several machines.
 */
function turnsOf(listings: readonly (readonly Neighbor[])[]): { turns?: Neighbor[] } {
  const known = new Map<string, Neighbor[]>();
  for (const listing of listings)
    for (const [key, [row, ...others]] of Map.groupBy(listing, keyOf)) {
      const before = known.get(key) ?? [];
      if (row?.mac === undefined || others.length > 0 || row.proxy || SHARED.test(row.mac) || before.at(-1)?.mac === row.mac) continue;
      if (before.length < MAX_TURNS) known.set(key, [...before, row]);
    }
  const turns = [...known.values()].filter((rows) => {
    const macs = new Set(rows.map(({ mac }) => mac?.slice(0, -2)));
    return rows.length > 3 && macs.size > 1 && rows.filter(({ mac }, i) => rows.findIndex((other) => other.mac === mac) < i).length > 1;
  });
  return turns.length === 0 ? {} : { turns: turns.flat().slice(0, MAX_TURNS) };
}

/** What the lines do not repeat: the device of a filter, the family where an address that is painted over does not show its own. */
interface Shown {
  readonly device: string | undefined;
  readonly family: Family;
}

function fromJson(value: Record<string, unknown>, { device, family: usual }: Shown): Entry | undefined {
  const address = asString(value["dst"]) ?? "";
  const family = readFamily(address, usual);
  const dev = asString(value["dev"]) ?? device;
  if (family === undefined || dev === undefined) return undefined;
  const optional = { mac: readMac(asString(value["lladdr"]) ?? ""), protocol: asString(value["protocol"]) };
  const state = asStrings(value["state"])[0] ?? "NONE";
  return { family, address, interface: dev, state, router: "router" in value, proxy: "proxy" in value, ...present(optional) };
}

/** What the kernel shows of a neighbour on a device without addresses of its own, as tun and WireGuard are: `lladdr 08`. */
const NO_HARDWARE = /^[0-9a-f]{2}$/;

/** `10.0.0.3 dev eth0 lladdr 02:00:00:00:00:03 router ref 1 used 1/1/1probes 0 REACHABLE proto static` (BusyBox has a blank before `probes`) */
function ipNeigh(words: readonly string[], { device, family: usual }: Shown): Entry | undefined {
  const address = words[0] ?? "";
  const family = readFamily(address, usual);
  if (family === undefined) return undefined;
  const flags: string[] = [];
  let dev = device;
  let mac: string | undefined;
  let protocol: string | undefined;
  let state: string | undefined;
  for (let i = 1; i < words.length; i++) {
    const word = words[i] as string;
    const next = words[i + 1] ?? "";
    if (FLAGS.has(word)) flags.push(word);
    else if (STATES.has(word) && state === undefined) state = word;
    else if (word === "dev" && NAME.test(next)) dev = words[++i];
    else if (word === "proto" && NAME.test(next)) protocol = words[++i];
    else if ((word === "ref" || word === "probes") && NUMBER.test(next)) i++;
    else if (word === "used" && /^[\d/]{1,40}$/.test(next)) i++;
    else if (word === "used" && /^[\d/]{1,40}probes$/.test(next) && NUMBER.test(words[i + 2] ?? "")) i += 2;
    else if (word === "lladdr" && (readMac(next) !== undefined || readFamily(next) !== undefined || NO_HARDWARE.test(next))) {
      // Neighbours of tunnels have an IP address here.
      mac = readMac(next);
      i++;
    } else return undefined;
  }
  if (dev === undefined) return undefined;
  const proxy = flags.includes("proxy");
  return { family, address, interface: dev, ...present({ mac }), state: state ?? "NONE", router: flags.includes("router"), proxy, ...present({ protocol }) };
}

/** `10.0.0.3                                eth0             02:00:00:00:00:03` */
function briefNeigh(words: readonly string[], { device, family: usual }: Shown): Entry | undefined {
  const [address, second, third] = words as [string, string?, string?];
  const family = readFamily(address, usual);
  const interfaceShown = second !== undefined && readMac(second) === undefined;
  const dev = interfaceShown ? second : device;
  const hardware = interfaceShown ? third : second;
  const mac = readMac(hardware ?? "");
  if (family === undefined || dev === undefined || !NAME.test(dev) || (hardware !== undefined && mac === undefined)) return undefined;
  return { family, address, interface: dev, ...present({ mac }), state: "UNKNOWN", router: false, proxy: false };
}

const ARP_FRAME =
  /^(?:Address\s+HWtype\s+HWaddress\s+Flags\s+Mask\s+Iface|IP address\s+HW type\s+Flags\s+HW address\s+Mask\s+Device|Entries: \d+\s+Skipped: \d+\s+Found: \d+)$/;
const NO_MAC = new Set(["<from_interface>", "*"]);
const INCOMPLETE = new Set(["(incomplete)", "<incomplete>"]);

function arp(words: readonly string[]): Entry | undefined {
  return (words[1]?.startsWith("(") && words[2] === "at" ? arpSentence(words) : words[1]?.startsWith("0x") ? arpProc(words) : arpTable(words)) ?? undefined;
}

function arpEntry(address: string, dev: string, hardware: string, permanent: boolean, proxy: boolean): Entry | undefined {
  const mac = readMac(hardware);
  const incomplete = INCOMPLETE.has(hardware);
  if (readFamily(address, "ipv4") !== "ipv4" || !NAME.test(dev) || (mac === undefined && !incomplete && !NO_MAC.has(hardware))) return undefined;
  const state = incomplete ? "INCOMPLETE" : permanent ? "PERMANENT" : "UNKNOWN";
  return { family: "ipv4", address, interface: dev, ...present({ mac }), state, router: false, proxy };
}

/** `10.0.0.1   ether   02:00:00:00:00:01   CM   *   eth0`, `10.0.0.77   (incomplete)   eth0` */
function arpTable(words: readonly string[]): Entry | undefined {
  const [address, type, hardware, flags] = words as [string, string?, string?, string?];
  const dev = words.at(-1) as string;
  if (type !== undefined && INCOMPLETE.has(type)) return words.length === 3 ? arpEntry(address, dev, type, false, false) : undefined;
  if (words.length < 5 || words.length > 6 || !/^[CMP!]{1,4}$/.test(flags ?? "") || !/^(?:\*|[a-z0-9/-]{2,20})$/i.test(type ?? "")) return undefined;
  return arpEntry(address, dev, hardware ?? "", flags?.includes("M") ?? false, flags?.includes("P") ?? false);
}

/** `? (10.0.0.1) at 02:00:00:00:00:01 [ether] PERM PUB on eth0`; BusyBox says PUP. */
function arpSentence(words: readonly string[]): Entry | undefined {
  const on = words.length - 2;
  const between = words.slice(4, on);
  if (words[on] !== "on" || on < 4 || !between.every((word) => /^(?:\[[a-z0-9/-]{1,20}\]|PERM|PUB|PUP|PROXY|TRAIL)$/i.test(word))) return undefined;
  const proxy = between.includes("PUB") || between.includes("PUP");
  return arpEntry((words[1] as string).slice(1, -1), words[on + 1] as string, words[3] as string, between.includes("PERM"), proxy);
}

/** `10.0.0.77        0x1         0x0         00:00:00:00:00:00     *        eth0` */
function arpProc(words: readonly string[]): Entry | undefined {
  const [address, , flags, hardware] = words as [string, string, string?, string?];
  if (words.length !== 6 || !/^0x[0-9a-f]{1,4}$/.test(flags ?? "")) return undefined;
  const bits = Number(flags);
  const proxy = (bits & 8) !== 0;
  const shown = proxy ? "*" : (bits & 6) === 0 ? "<incomplete>" : (hardware ?? "");
  return arpEntry(address, words[5] as string, shown, (bits & 4) !== 0, proxy);
}
