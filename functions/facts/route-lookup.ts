import { z } from "zod";
import type { Address } from "./address.ts";
import type { Pods } from "./cluster-pod.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import type { Family } from "./ip-address.ts";
import { addressText, prefixBits, widthOf, within } from "./ip-bits.ts";
import type { Link } from "./link.ts";
import { placed } from "./placed.ts";
import { isPodInterface } from "./pod-interface.ts";
import { present } from "./present.ts";
import type { Route } from "./route.ts";
import { type Answer, outcomes, type Packet, routeTables, type Tables } from "./route-lookup-evaluator.ts";
import type { Rule } from "./rule.ts";

/**
 * Which route packets of this node take: representative destinations, looked up as the kernel would. A row's line is that of the deciding route (of the
 * deciding rule, or of what was asked for, where there is none).
 *
 *     pod-reply: 198.51.100.1 from 10.1.1.88, in by eni0a: unicast via 10.1.1.1 on eth1, table 2, by rule 1536
 *
 * Packets carry no mark: `ip route get` asks the same.
 */
const probes = ["outside", "local-address", "subnet", "pod", "pod-reply", "node-to-pod", "peer", "node-to-peer", "link-local", "service"] as const;
type Probe = (typeof probes)[number];
const Lookup = z.object({
  line: z.int(),
  family: z.enum(["ipv4", "ipv6"]),
  /**
   * outside: an address that only the default route can serve. local-address: an address of the node. subnet: a neighbour in one of
   * its subnets. pod: the address or prefix of a local pod.
   * pod-reply: from that pod to the outside. peer: a prefix behind a gateway. node-to-pod, node-to-peer: the same from
   * the node's own address on its uplink, which answers of the node carry.  link-local: 169.254.169.254. service: an address of the usual service ranges,
   * if a route other than the default holds it.
   */
  probe: z.enum(probes),
  destination: z.string(),
  /** The packet's source; left out where the kernel would choose it. */
  packetSource: z.string().optional(),
  inputInterface: z.string().optional(),
  outcome: z.enum(outcomes),
  /** Why it is undetermined; else "". */
  reason: z.string(),
  /** Of the deciding route; left out if none decides. */
  prefix: z.string().optional(),
  table: z.string().optional(),
  interface: z.string().optional(),
  gateway: z.string().optional(),
  metric: z.int().optional(),
  /** Interfaces of all next hops. */
  interfaces: z.array(z.string()),
  /** True if the kernel says of every next hop that its line is down. */
  linkDown: z.boolean(),
  preferredSource: z.string().optional(),
  /** Interfaces on which the destination is known to live (pod, local-address, peer); empty if nothing is expected. */
  expected: z.array(z.string()),
  /** False if the destination is expected somewhere and the packet goes elsewhere or nowhere. True where nothing is expected or it is undetermined. */
  asExpected: z.boolean(),
  /** Where a route says that the destination is expected: its line. */
  expectedLine: z.int().optional(),
  /** Priority of the deciding rule, and its line; left out if the rules are assumed. */
  rulePriority: z.int().optional(),
  ruleLine: z.int().optional(),
  /** True if the capture has no rules of this family and the kernel's own (local, main, default) were taken. */
  assumedRules: z.boolean(),
});
const Table = z.object({
  /** Line of its first route. */
  line: z.int(),
  family: z.enum(["ipv4", "ipv6"]),
  table: z.string(),
  routes: z.int(),
  /** True if it holds a default route. */
  hasDefault: z.boolean(),
  interfaces: z.array(z.string()),
  /** True if a rule looks it up, or (VRF) may do so. */
  lookedUp: z.boolean(),
});
const RouteLookup = z.object({ rows: z.array(Lookup), tables: z.array(Table) });
type Lookup = z.infer<typeof Lookup> & Row;
type Table = z.infer<typeof Table> & Row;
type RouteLookup = z.infer<typeof RouteLookup>;

interface Sources {
  readonly route?: { rows: readonly (Route & Row)[] };
  readonly rule?: { rows: readonly (Rule & Row)[] };
  readonly address?: { rows: readonly (Address & Row)[] };
  readonly link?: { rows: readonly (Link & Row)[] };
  readonly "cluster-pod"?: Placed<Pods>;
}

/** At most so many rows of one probe and family: a node has no more pods, and a full table of an internet router proves no more. */
const MAX_PROBES = 300;
/** Documentation addresses: no real route but the default serves them. */
const OUTSIDE: Readonly<Record<Family, readonly string[]>> = {
  ipv4: ["198.51.100.1", "203.0.113.1", "192.0.2.1"],
  ipv6: ["2001:db8:ffff:ffff::1", "3fff:ffff:ffff::1"],
};
/** In the default service ranges of kubeadm, k3s, EKS, GKE and AKS. */
const SERVICES = ["10.96.0.1", "10.43.0.1", "10.100.0.1", "172.20.0.1", "34.118.224.1", "10.0.0.1"];

/** What is asked, and what is known of the answer. */
interface Question {
  readonly probe: Probe;
  readonly packet: Packet;
  readonly expected: readonly string[];
  /** What the question comes from: quoted if nothing decides. */
  readonly because: Row;
  /** The node's own address on a bridge of containers that is in use: theirs follow it. */
  readonly containersFrom?: string;
}

export const routeLookup = defineDerivedFact({
  id: "route-lookup",
  title: "Which route packets of this node take, looked up as the kernel does",
  from: ["route", "rule", "address", "link", "cluster-pod"],
  optional: ["cluster-pod"],
  inPart: ["cluster-pod"],
  schema: RouteLookup,
  derive(values: Sources): RouteLookup {
    const [routes, rules] = [values.route?.rows ?? [], values.rule?.rows ?? []];
    const [addresses, links] = [values.address?.rows ?? [], values.link?.rows ?? []];
    if (routes.length === 0) return { rows: [], tables: [] };
    const tables = routeTables({ routes, rules, addresses, links });
    const rows: Lookup[] = [];
    const counts = new Map<string, number>();
    // those of other nodes live elsewhere
    const listed = (values["cluster-pod"]?.rows ?? []).filter((pod) => pod.own === true && pod.status !== "Completed");
    for (const question of questions(routes, addresses, links, tables, listed)) {
      const key = `${question.probe} ${question.packet.family}`;
      const count = (counts.get(key) ?? 0) + 1;
      counts.set(key, count);
      if (count <= MAX_PROBES) rows.push(answered(question, tables));
    }
    return { rows, tables: tableRows(routes, tables) };
  },
});

function* questions(
  routes: readonly (Route & Row)[],
  addresses: readonly (Address & Row)[],
  links: readonly (Link & Row)[],
  tables: Tables,
  listed: Placed<Pods>["rows"],
): Generator<Question> {
  const first = routes[0] as Route & Row;
  for (const family of ["ipv4", "ipv6"] as const) {
    const own = routes.filter((row) => row.family === family);
    const ownAddresses = addresses.filter((row) => row.family === family);
    const usesFamily = family === "ipv4" || ownAddresses.some((row) => row.scope === "global") || own.some((row) => prefixBits(row.prefix)?.length === 0);
    if (!usesFamily) continue;
    const outside = outsideAddress(family, own);
    const packet = (destination: string): Packet => ({ family, destination, fwmark: 0 });
    yield { probe: "outside", packet: packet(outside), expected: [], because: own[0] ?? first };
    const sharing = byPrefix(own);
    const taken = new Set([...ownAddresses.map((row) => row.address), ...own.flatMap((row) => row.source ?? [])]);
    let asked = 0;
    for (const row of own) {
      if (asked > MAX_PROBES) break;
      // zeroconf: every interface may have this prefix, and whichever answers is right
      if (!isConnected(row, ownAddresses) || isEnslaved(row.interface, links) || row.prefix === "169.254.0.0/16") continue;
      const names = (sharing.get(row.prefix) ?? []).filter((other) => isConnected(other, ownAddresses)).flatMap((other) => other.interface ?? []);
      // where a network of containers has the subnet of a real one, its neighbours are not among the containers
      const real = names.filter((name) => !CONTAINER_BRIDGE.test(name));
      const interfaces = real.length > 0 ? real : names;
      asked++;
      // containers have the first addresses of their bridge's subnet, behind its own
      const used = CONTAINER_BRIDGE.test(row.interface ?? "") && links.some((link) => link.interface === row.interface && link.carrier);
      const first = used && row.source !== undefined ? { containersFrom: row.source } : {};
      yield { probe: "subnet", packet: packet(inside(row.prefix, taken)), expected: interfaces, because: row, ...first };
    }
    // table main was not shown, and holds a route for each address's prefix: what a rule before it decides is known all the same
    const unshown = own.some((row) => row.table === "main") ? [] : ownAddresses.filter((row) => isSubnet(row) && !isEnslaved(row.interface, links));
    const main = tables.rules(family).find((rule) => rule.table === "main" && rule.fwmark === undefined)?.priority ?? 0;
    for (const row of unshown.slice(0, MAX_PROBES)) {
      const prefix = `${row.address}/${row.prefixLength}`;
      const expected = unshown.filter((other) => within(other.address, prefix)).map((other) => other.interface);
      const question: Question = { probe: "subnet", packet: packet(inside(prefix, taken)), expected, because: row };
      const { rule } = tables.lookup(question.packet);
      if (rule !== undefined && rule.priority < main) yield question;
    }
    for (const row of ownAddresses) yield { probe: "local-address", packet: packet(row.address), expected: [row.interface], because: row };
    const nodeAddress = uplinkAddress(ownAddresses, own, tables.lookup(packet(outside)));
    for (const pod of podsOf(own, ownAddresses, links, taken, listed)) {
      yield { probe: "pod", packet: packet(pod.address), expected: pod.interfaces, because: pod.because };
      const [inputInterface] = pod.interfaces;
      if (inputInterface !== undefined) {
        yield { probe: "pod-reply", packet: { ...packet(outside), source: pod.address, inputInterface }, expected: [], because: pod.because };
      }
      if (nodeAddress !== undefined) {
        yield { probe: "node-to-pod", packet: { ...packet(pod.address), source: nodeAddress }, expected: pod.interfaces, because: pod.because };
      }
    }
    asked = 0;
    for (const row of own) {
      if (asked > MAX_PROBES) break;
      const length = prefixBits(row.prefix)?.length ?? 0;
      const remote = row.type === "unicast" && row.gateway !== undefined && row.interface !== undefined && length > 3 && row.table === "main";
      if (!remote || row.weight !== undefined || row.flags.includes("linkdown") || row.flags.includes("dead")) continue;
      const interfaces = (sharing.get(row.prefix) ?? []).flatMap((other) => other.interface ?? []);
      asked++;
      yield { probe: "peer", packet: packet(inside(row.prefix)), expected: interfaces, because: row };
      if (nodeAddress !== undefined) {
        yield { probe: "node-to-peer", packet: { ...packet(inside(row.prefix)), source: nodeAddress }, expected: interfaces, because: row };
      }
    }
    if (family !== "ipv4") continue;
    yield { probe: "link-local", packet: packet("169.254.169.254"), expected: [], because: own[0] ?? first };
    for (const service of SERVICES) {
      const answer = tables.lookup(packet(service));
      const length = answer.route === undefined ? 0 : (prefixBits(answer.route.prefix)?.length ?? 0);
      if (answer.route !== undefined && length >= 8 && answer.route.protocol !== "kernel") {
        yield { probe: "service", packet: packet(service), expected: [], because: answer.route };
      }
    }
  }
}

/** Bridges that a container engine or libvirt makes with a subnet of its own choice. */
const CONTAINER_BRIDGE = /^(?:docker\d{1,3}|br-[0-9a-f]{12}|virbr\d{1,3}|podman\d{1,3}|lxcbr\d{1,3}|lxdbr\d{1,3})$/;

/** Routes of table main by their prefix. */
function byPrefix(routes: readonly (Route & Row)[]): Map<string, (Route & Row)[]> {
  const result = new Map<string, (Route & Row)[]>();
  for (const row of routes) {
    if (row.table !== "main") continue;
    const list = result.get(row.prefix);
    if (list === undefined) result.set(row.prefix, [row]);
    else list.push(row);
  }
  return result;
}

/** A documentation address that no route but a default one holds, if there is any. */
function outsideAddress(family: Family, routes: readonly Route[]): string {
  const candidates = OUTSIDE[family];
  const held = (address: string) => routes.some((row) => (prefixBits(row.prefix)?.length ?? 0) > 3 && within(address, row.prefix));
  return candidates.find((address) => !held(address)) ?? (candidates[0] as string);
}

/** The node's first address on the interface of its default route; where no addresses were collected, what the routes there name as the source. */
function uplinkAddress(addresses: readonly Address[], routes: readonly Route[], outside: Answer): string | undefined {
  const name = outside.route?.interface;
  const own = addresses.filter((row) => row.interface === name && row.scope !== "link" && row.scope !== "host");
  const first = own.find((row) => !row.flags.includes("secondary") && !row.flags.includes("temporary")) ?? own[0];
  return first?.address ?? routes.find((row) => row.interface === name && isConnected(row, own))?.source;
}

/** The route of a subnet that the node has an address in. `route -n` shows no source: there the addresses tell. */
const isConnected = (row: Route, addresses: readonly Address[]): boolean =>
  row.type === "unicast" &&
  row.table === "main" &&
  row.gateway === undefined &&
  row.interface !== undefined &&
  (row.source !== undefined ||
    // nobody listed addresses: what `route` shows without a gateway is a subnet
    (addresses.length === 0 && row.family === "ipv4" && row.flags.length === 1 && row.flags[0] === "U") ||
    addresses.some((own) => own.interface === row.interface && isSubnet(own) && spans(row.prefix, own))) &&
  !row.flags.includes("linkdown") &&
  !row.flags.includes("dead") &&
  (prefixBits(row.prefix)?.length ?? 0) < widthOf(row.family) - 2;

const spans = (prefix: string, { address, prefixLength }: Address): boolean => prefixBits(prefix)?.length === prefixLength && within(address, prefix);

/** An address with neighbours: not one of a tunnel's end, not a link-local one, and not one of lo, whose whole range is the node itself. */
const isSubnet = (row: Address): boolean =>
  row.interface !== "lo" &&
  row.scope !== "link" &&
  row.scope !== "host" &&
  row.peer === undefined &&
  row.prefixLength !== undefined &&
  row.prefixLength < widthOf(row.family) - 2;

const isEnslaved = (name: string | undefined, links: readonly Link[]): boolean => links.some((link) => link.interface === name && link.master !== undefined);

interface Pod {
  readonly address: string;
  readonly interfaces: readonly string[];
  readonly because: Row;
}

/** Local pods: a route to one address on a pod's interface, a prefix behind cilium_host, the subnet of a bridge with pods; and what kubectl lists within these. */
function podsOf(
  routes: readonly (Route & Row)[],
  addresses: readonly (Address & Row)[],
  links: readonly (Link & Row)[],
  taken: ReadonlySet<string>,
  listed: Placed<Pods>["rows"],
): Pod[] {
  const pods = new Map<string, { address: string; interfaces: string[]; because: Row }>();
  const add = (address: string, name: string, because: Row) => {
    const known = pods.get(address);
    if (known === undefined) pods.set(address, { address, interfaces: [name], because });
    else if (!known.interfaces.includes(name)) known.interfaces.push(name);
  };
  const width = widthOf(routes[0]?.family ?? "ipv4");
  for (const row of routes) {
    const length = prefixBits(row.prefix)?.length;
    if (row.type !== "unicast" || row.interface === undefined || row.table !== "main" || length === undefined) continue;
    if (length === width && row.gateway === undefined && isPodInterface(row.interface, links)) add(row.prefix.split("/")[0] as string, row.interface, row);
    // The node's own part of Cilium's range names the node's own address there as the gateway and source.
    const own = row.interface === "cilium_host" && row.source !== undefined && length > 0 && length < width && within(row.source, row.prefix);
    // a bridge that nobody but a CNI makes has pods, also where its ports were not listed
    const ported = links.some((link) => link.master === row.interface && isPodInterface(link.interface, links));
    const bridged =
      isConnected(row, addresses) && (ported || (/^(?:cni0|cbr0|kube-bridge)$/.test(row.interface) && !links.some((link) => link.master !== undefined)));
    if (!own && !bridged) continue;
    add(inside(row.prefix, taken), row.interface, row);
    for (const pod of listed) if (pod.address !== undefined && within(pod.address, row.prefix)) add(pod.address, row.interface, row);
    // other tables may lead a part of them elsewhere
    for (const part of partsOf(row, routes, links)) add(inside(part.prefix, taken), row.interface, row);
  }
  return [...pods.values()];
}

/** Routes of other tables than main for a part of this one's range, which do not lead to a pod's interface. */
function partsOf(range: Route, routes: readonly (Route & Row)[], links: readonly (Link & Row)[]): Route[] {
  const length = prefixBits(range.prefix)?.length ?? 0;
  const isPart = (row: Route): boolean =>
    !usual(row.table) &&
    row.type !== "local" &&
    row.type !== "throw" &&
    row.interface !== range.interface &&
    (prefixBits(row.prefix)?.length ?? 0) > length &&
    within(row.prefix.split("/")[0] as string, range.prefix) &&
    !(row.interface !== undefined && isPodInterface(row.interface, links));
  return routes.filter(isPart).slice(0, MAX_PARTS);
}
const MAX_PARTS = 20;

/**
 * An address in the prefix that is none of `taken`, the node's own: the third one, which is no network, gateway or first pod by convention, or one of those
 * behind it (a gateway shared by several nodes has an address beside the node's).
 */
function inside(prefix: string, taken: ReadonlySet<string> = new Set()): string {
  const bits = prefixBits(prefix);
  if (bits === undefined) return prefix;
  const room = widthOf(bits.family) - bits.length;
  const at = (offset: bigint) => addressText(bits.network + offset, bits.family);
  if (room < 3) return at(room === 0 ? 0n : 1n);
  return [3n, 4n, 5n, 6n].map(at).find((address) => !taken.has(address)) ?? at(3n);
}

function answered(question: Question, tables: Tables): Lookup {
  const { probe, packet, expected, because } = question;
  const answer = tables.lookup(packet);
  const { route, rule, hops } = answer;
  const interfaces = [...new Set(hops.flatMap((hop) => hop.interface ?? []))];
  return {
    ...placed(route ?? rule ?? because),
    family: packet.family,
    probe,
    destination: packet.destination,
    outcome: answer.outcome,
    reason: answer.reason,
    interfaces,
    linkDown: hops.length > 0 && hops.every((hop) => hop.flags.includes("linkdown")),
    expected: [...expected],
    asExpected: meets(question, answer, interfaces),
    assumedRules: tables.assumedRules(packet.family),
    ...present({
      packetSource: packet.source,
      inputInterface: packet.inputInterface,
      prefix: route?.prefix,
      table: route?.table,
      interface: route?.interface,
      gateway: route?.gateway,
      metric: route?.metric,
      preferredSource: packet.inputInterface === undefined ? answer.preferredSource : undefined,
      expectedLine: expected.length === 0 ? undefined : because.line,
      rulePriority: rule?.priority,
      ruleLine: rule?.line,
    }),
  };
}

function meets({ probe, expected, because, containersFrom }: Question, answer: Answer, interfaces: readonly string[]): boolean {
  if (expected.length === 0 || answer.outcome === "undetermined") return true;
  if (probe === "local-address") return answer.outcome === "local";
  if (answer.outcome === "unicast" && interfaces.some((name) => expected.includes(name))) return true;
  // Somebody may send a part of a subnet elsewhere on purpose, but not where containers are.
  if (containersFrom !== undefined && answer.route !== undefined && within(containersFrom, answer.route.prefix)) return false;
  const lengthOf = (row: object | undefined) => prefixBits((row as Route | undefined)?.prefix ?? "")?.length ?? 0;
  return probe === "subnet" && answer.outcome === "unicast" && answer.route?.table === "main" && lengthOf(answer.route) > lengthOf(because);
}

function tableRows(routes: readonly (Route & Row)[], tables: Tables): Table[] {
  const rows = new Map<string, Table>();
  const lookedUp = (row: Route) =>
    tables.rules(row.family).some((rule) => rule.action === "lookup" && (rule.table === row.table || (rule.table === "l3mdev" && !usual(row.table))));
  for (const row of routes) {
    const key = `${row.family} ${row.table}`;
    let table = rows.get(key);
    if (table === undefined) {
      table = { ...placed(row), family: row.family, table: row.table, routes: 0, hasDefault: false, interfaces: [], lookedUp: lookedUp(row) };
      rows.set(key, table);
    }
    table.routes++;
    if (prefixBits(row.prefix)?.length === 0) table.hasDefault = true;
    if (row.interface !== undefined && !table.interfaces.includes(row.interface)) table.interfaces.push(row.interface);
  }
  return [...rows.values()];
}

const usual = (table: string): boolean => table === "main" || table === "local" || table === "default";
