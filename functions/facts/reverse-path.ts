import { z } from "zod";
import type { Address } from "./address.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { addressFamily } from "./ip-address.ts";
import { within } from "./ip-bits.ts";
import { fromLongIpv6 } from "./ipv6.ts";
import type { KernelLog } from "./kernel-log.ts";
import type { Link } from "./link.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";
import { isPrivate } from "./private-address.ts";
import type { Route } from "./route.ts";
import { routeTables } from "./route-lookup-evaluator.ts";
import type { Rule } from "./rule.ts";
import type { Sysctl } from "./sysctl.ts";

/**
 * Packets that the kernel logged as martian, beside the way back to their sender: the reverse path filter (rp_filter) drops a packet whose sender would be
 * answered through another interface (1, strict) or through none (2, loose). For IPv6 the kernel has no such filter: rules of a firewall do the same, and may
 * log it (firewalld's IPv6_rpfilter, NixOS).
 *
 *     IPv4: martian source 10.42.3.7 from 10.9.8.4, on dev eth1
 *     rpfilter_DROP: IN=eth1 OUT= MAC=… SRC=2001:0db8:0007:0000:0000:0000:0000:0009 DST=2001:0db8:0020:0000:0000:0000:0000:0023 LEN=104 …
 */
const Martian = z.object({
  /** Of the newest such message. */
  line: z.int(),
  interface: z.string(),
  source: z.string(),
  destination: z.string(),
  /** Messages with this interface and source. */
  count: z.int(),
  /** Seconds between the newest one and the collection, where known. */
  age: z.number().optional(),
  /** Effective filter of the interface: the larger of its own value and that of "all"; -1 if that is not known. */
  filter: z.int(),
  /** Interface of the way back to the source; left out if the node has no route to it, or routes were not collected. */
  back: z.string().optional(),
  backLine: z.int().optional(),
  /** True if the way back is known and is another interface, or if there is surely none. */
  asymmetric: z.boolean(),
  /** What the packet was, by the `ll header` line behind the message. An ARP packet is logged and harms nothing. */
  packet: z.enum(["ip", "arp", "unknown"]),
  /** The sender is the node itself, no host address (0.0.0.0, loopback, multicast), or the destination is broadcast or multicast: dropped whatever the filter. */
  always: z.boolean(),
  /** The sender has a private address, and the interface has public ones only: nobody answers such a packet, and to drop it is what the filter is there for. */
  forged: z.boolean(),
  /** True if a rule of a firewall dropped it, whatever rp_filter is. */
  firewall: z.boolean().optional(),
});
const Filter = z.object({
  /** Of the interface's own value, or of "all" if that is larger. */
  line: z.int(),
  interface: z.string(),
  /** The larger of the interface's own value and that of "all". */
  filter: z.int(),
});
/**
 * Packets that tcpdump saw come in by an interface, and whose sender the routes answer through another one: `-i any` tells the direction, and in a trace of one
 * interface what another host sends again and again to an address of the node came in.
 */
const Arrival = z.object({
  line: z.int(),
  interface: z.string(),
  source: z.string(),
  destination: z.string(),
  /** As in a martian. */
  filter: z.int(),
  back: z.string(),
  backLine: z.int(),
  /** It was sent again, nobody answered, and all rules that choose the way back were read, with their tables. */
  silent: z.boolean(),
});
/**
 * `ip route get` with `iif` said that the packet may not come in there: the reverse path check drops it.
 *
 *     RTNETLINK answers: Invalid cross-device link          (newer kernels: Invalid argument; seen on 6.18)
 */
const Refusal = z.object({
  line: z.int(),
  interface: z.string(),
  source: z.string(),
  destination: z.string(),
  /** tcpdump saw a packet of the source come in there. */
  arrived: z.boolean(),
});
const ReversePath = z.object({
  martians: z.array(Martian),
  arrivals: z.array(Arrival),
  refusals: z.array(Refusal),
  /** Every interface whose own value is known, and that of "all" or its own is not 0: without the value of "all" the own one is the least it can be. */
  filters: z.array(Filter),
});
type Martian = z.infer<typeof Martian>;
type Filter = z.infer<typeof Filter>;

type Seen = { interface: string; source: string; destination: string } & Row;
interface Sources {
  readonly "kernel-log"?: Placed<KernelLog>;
  readonly route?: { rows: readonly (Route & Row)[] };
  readonly rule?: { rows: readonly (Rule & Row)[] };
  readonly address?: { rows: readonly (Address & Row)[] };
  readonly link?: { rows: readonly (Link & Row)[] };
  readonly sysctl?: Placed<Sysctl>;
  readonly "packet-trace"?: { arrivals: readonly Seen[]; silent: readonly (Omit<Seen, "interface"> & { interface?: string })[] };
  readonly "route-answer"?: { refusals: readonly ({ reason: string; destination: string; from?: string; inputInterface?: string } & Row)[] };
}

/** "IPv4: martian source 10.0.0.5 from 10.0.0.5, on dev eth0" of the kernel's log: destination, source, interface. */
export const MARTIAN = /martian source (\d{1,3}(?:\.\d{1,3}){3}) from (\d{1,3}(?:\.\d{1,3}){3}), on dev (\S{1,15})/;
/** Of a packet that goes from one port of a bridge to another the node need not know the way back. */
const DROPPED = /^.{0,60}?\brpfilter[ _]drop\b.{0,20}?\bIN=(\S{1,15}) OUT=(?!.{0,20}\bPHYS).{0,200}?\bSRC=([\d.a-f:]{2,45}) DST=([\d.a-f:]{2,45})(?: |$)/i;
const KEY = /^net\.ipv4\.conf\.(.{1,60})\.rp_filter$/;
/** Tables of the rules that every node has. */
const USUAL: ReadonlySet<string> = new Set(["local", "main", "default"]);
const NO_HOST = ["0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3", "::/127", "ff00::/8", "fe80::/10"];
const MULTICAST = ["224.0.0.0/3", "ff00::/8"];
const MAX_ROWS = 500;

export const reversePath = defineDerivedFact({
  id: "reverse-path",
  title: "Martian packets and the reverse path filter of every interface",
  from: ["kernel-log", "route", "rule", "address", "link", "sysctl", "packet-trace", "route-answer"],
  optional: ["packet-trace", "route-answer"],
  inPart: ["packet-trace", "route-answer"],
  schema: ReversePath,
  derive(values: Sources, whole) {
    const filters = filtersOf(values.sysctl?.rows ?? []);
    const node = viewOf(values, filters);
    const unanswered = values["packet-trace"]?.silent ?? [];
    const seen: Seen[] = [...(values["packet-trace"]?.arrivals ?? []), ...cameIn(unanswered, node.routes, node.addresses)];
    return {
      martians: martiansOf(values["kernel-log"]?.rows ?? [], node),
      arrivals: arrivalsOf(values, whole, node, seen),
      refusals: refusalsOf(values["route-answer"]?.refusals ?? [], node, seen),
      filters,
    };
  },
});

/** What is asked of the node for each packet. */
interface NodeView {
  readonly routes: readonly (Route & Row)[];
  readonly addresses: readonly (Address & Row)[];
  /** The filter of an interface; -1 where it was not seen. */
  filterOf(name: string): number;
  isOwn(address: string): boolean;
  /** The interface has IPv4 addresses, and none of them is private. */
  isPublic(name: string): boolean;
  /** The way of an answer to `source`; undefined where no routes were seen. */
  wayBack(source: string, destination: string): ReturnType<ReturnType<typeof routeTables>["lookup"]> | undefined;
}

function viewOf({ route, rule, address, link }: Sources, filters: readonly Filter[]): NodeView {
  const byName = new Map(filters.map((row) => [row.interface, row.filter]));
  const [routes, addresses] = [route?.rows ?? [], address?.rows ?? []];
  const tables = routeTables({ routes, rules: rule?.rows ?? [], addresses, links: link?.rows ?? [] });
  return {
    routes,
    addresses,
    filterOf: (name) => byName.get(name) ?? -1,
    isOwn: (own) => addresses.some((row) => row.address === own),
    isPublic(name) {
      const listed = addresses.filter((row) => row.interface === name && row.family === "ipv4").map((row) => row.address);
      // the kernel's route to a network of the interface tells its address, too
      const own = [
        ...listed,
        ...routes.flatMap((row) =>
          row.interface === name && row.family === "ipv4" && row.protocol === "kernel" && row.source !== undefined ? [row.source] : [],
        ),
      ];
      return own.length > 0 && !own.some(isPrivate);
    },
    wayBack: (source, destination) =>
      // IPv4 and IPv6 are listed by commands of their own
      routes.some(({ family }) => family === addressFamily(source))
        ? tables.lookup({ family: addressFamily(source) ?? "ipv4", destination: source, source: destination, fwmark: 0 })
        : undefined,
  };
}

/** The martians of the log, each sender on each interface once. */
function martiansOf(log: NonNullable<Sources["kernel-log"]>["rows"], node: NodeView): (Martian & Row)[] {
  const martians = new Map<string, Martian & Row>();
  for (const [i, entry] of log.entries()) {
    const logged = loggedIn(entry.message);
    if (logged === undefined) continue;
    const { age } = entry;
    const { destination, source, name, firewall } = logged;
    if (addressFamily(source) === undefined || addressFamily(destination) === undefined) continue;
    const key = `${name} ${source}`;
    const known = martians.get(key);
    if (known === undefined && martians.size >= MAX_ROWS) continue;
    const always =
      node.isOwn(source) ||
      NO_HOST.some((prefix) => within(source, prefix)) ||
      MULTICAST.some((prefix) => within(destination, prefix)) ||
      destination.endsWith(".255");
    const answer = node.wayBack(source, destination);
    const back = answer?.outcome === "unicast" ? answer.route : undefined;
    const surelyNone = answer !== undefined && (answer.outcome === "none" || answer.outcome === "unreachable" || answer.outcome === "blackhole");
    martians.set(key, {
      ...placed(entry),
      interface: name,
      source,
      destination,
      count: (known?.count ?? 0) + 1,
      ...present({ age }),
      filter: firewall ? 1 : node.filterOf(name),
      ...(back?.interface === undefined ? {} : { back: back.interface, backLine: back.line }),
      asymmetric: surelyNone || (back !== undefined && !(answer?.hops ?? []).some((hop) => hop.interface === name)),
      packet: packetOf(log[i + 1]?.message ?? "") ?? known?.packet ?? "unknown",
      always,
      forged: addressFamily(source) === "ipv4" && isPrivate(source) && node.isPublic(name),
      ...(firewall ? { firewall } : {}),
    });
  }
  return [...martians.values()];
}

/** The packet of a message that the reverse path check dropped. */
function loggedIn(message: string): { source: string; destination: string; name: string; firewall: boolean } | undefined {
  const martian = MARTIAN.exec(message);
  if (martian !== null) return { destination: martian[1] as string, source: martian[2] as string, name: martian[3] as string, firewall: false };
  const dropped = DROPPED.exec(message.slice(0, 600));
  return dropped === null
    ? undefined
    : { name: dropped[1] as string, source: fromLongIpv6(dropped[2] as string), destination: fromLongIpv6(dropped[3] as string), firewall: true };
}

/** Packets of a trace whose answer leaves by another interface than the one they came in on. */
function arrivalsOf(
  { rule, link, "packet-trace": trace }: Sources,
  whole: ReadonlySet<string>,
  node: NodeView,
  seen: readonly Seen[],
): (z.infer<typeof Arrival> & Row)[] {
  const read = new Set(node.routes.map((row) => row.table));
  // a rule that was not seen, or whose table was not, may lead the answer back to where the packet came from
  const certain = whole.has("rule") && whole.has("route") && (rule?.rows ?? []).every((row) => USUAL.has(row.table ?? "") || read.has(row.table ?? ""));
  const members = new Set((link?.rows ?? []).filter((row) => row.master !== undefined).map((row) => row.interface));
  return seen.flatMap((arrival): (z.infer<typeof Arrival> & Row)[] => {
    const { interface: name, source, destination } = arrival;
    const answer = node.wayBack(source, destination);
    const route = answer?.outcome === "unicast" ? answer.route : undefined;
    const back = route?.interface;
    if (route === undefined || back === undefined || (answer?.hops ?? []).some((hop) => hop.interface === name)) return [];
    // a packet is seen on each device of a pile: a bond's, a bridge's or a VLAN's own and those below
    const piled = members.has(name) || seen.some((other) => other.interface === back && other.source === source && other.destination === destination);
    if (piled || node.isOwn(source)) return [];
    const silent = certain && (trace?.silent ?? []).some((row) => row.source === source && row.destination === destination);
    return [{ ...placed(arrival), interface: name, source, destination, filter: node.filterOf(name), back, backLine: route.line, silent }];
  });
}

/** What the kernel itself said that it would not let in. */
function refusalsOf(said: NonNullable<Sources["route-answer"]>["refusals"], node: NodeView, seen: readonly Seen[]): (z.infer<typeof Refusal> & Row)[] {
  // newer kernels give one answer for all that they do not let in: then the strict filter and another way back must tell
  const filtered = (source: string, destination: string, name: string): boolean => {
    const answer = node.filterOf(name) === 1 && !node.isOwn(source) ? node.wayBack(source, destination) : undefined;
    return answer?.outcome === "unicast" && !answer.hops.some((hop) => hop.interface === name);
  };
  return said.flatMap((row) =>
    row.from !== undefined &&
    row.inputInterface !== undefined &&
    (row.reason === "Invalid cross-device link" || (row.reason === "Invalid argument" && filtered(row.from, row.destination, row.inputInterface)))
      ? [
          {
            ...placed(row),
            interface: row.inputInterface,
            source: row.from,
            destination: row.destination,
            arrived: seen.some((arrival) => arrival.interface === row.inputInterface && arrival.source === row.from),
          },
        ]
      : [],
  );
}

/** Of a trace of one interface that has a route: what was sent to an address of the node. On a port of a bridge or bond it would be another device's. */
function cameIn(rows: NonNullable<Sources["packet-trace"]>["silent"], routes: readonly Route[], addresses: readonly Address[]): Seen[] {
  const own = new Set([...addresses.map((row) => row.address), ...routes.flatMap((row) => row.source ?? [])]);
  return rows.flatMap((row) => {
    const { interface: name } = row;
    const known = name !== undefined && own.has(row.destination) && !own.has(row.source) && routes.some((route) => route.interface === name);
    return known ? [{ ...row, interface: name }] : [];
  });
}

/** `ll header: 00000000: ff ff ff ff ff ff fa 87 ec eb d5 fc 08 06`: after two hardware addresses the type, 08 00 for IP, 08 06 for ARP. */
function packetOf(next: string): "ip" | "arp" | undefined {
  const type = LL_HEADER.exec(next)?.[1];
  return type === "00" ? "ip" : type === "06" ? "arp" : undefined;
}
const LL_HEADER = /ll header: (?:[0-9a-f]{8}: )?(?:[0-9a-f]{2}[ :]){12}08[ :](0[06])/;

function filtersOf(settings: readonly ({ key: string; value: string } & Row)[]): (Filter & Row)[] {
  const own = settings.flatMap((row) => {
    const name = KEY.exec(row.key)?.[1]?.replaceAll("/", ".");
    return name === undefined || !/^\d$/.test(row.value) ? [] : [{ row, interface: name, value: Number(row.value) }];
  });
  const all = own.find((entry) => entry.interface === "all");
  return own
    .filter((entry) => entry.interface !== "all" && entry.interface !== "default" && (all !== undefined || entry.value > 0))
    .map((entry) => {
      if (all === undefined) return { ...placed(entry.row), interface: entry.interface, filter: entry.value };
      return { ...placed((all.value > entry.value ? all : entry).row), interface: entry.interface, filter: Math.max(all.value, entry.value) };
    });
}
