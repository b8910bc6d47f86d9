import { z } from "zod";
import type { Address } from "./address.ts";
import { defineDerivedFact, type Row } from "./fact.ts";
import type { Fdb } from "./fdb.ts";
import type { Link } from "./link.ts";
import type { Neighbor } from "./neighbor.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";
import type { Route } from "./route.ts";

/**
 * The other ends of the node's VXLAN devices, as a packet finds them: a route names a gateway on the device, the neighbour table the gateway's MAC, the
 * forwarding database the node behind that MAC, the neighbour table again that node. A row per gateway and device.
 *
 *     10.244.2.0/24 via 10.244.2.0 dev flannel.1 onlink
 *     10.244.2.0 dev flannel.1 lladdr 5a:5d:19:d8:3b:27 PERMANENT
 *     5a:5d:19:d8:3b:27 dev flannel.1 dst 192.0.2.12 self permanent
 */
const Vtep = z.object({
  /** Of the route; where no route was read, of the neighbour. */
  line: z.int(),
  interface: z.string(),
  gateway: z.string(),
  /** Destination of the first route through the gateway; absent where no route was read. */
  prefix: z.string().optional(),
  /** Of the gateway, by the neighbour table. */
  mac: z.string().optional(),
  /** Of the gateway's neighbour entry: "PERMANENT", "FAILED", …; absent without an entry. */
  state: z.string().optional(),
  /** Address of the node to which the forwarding database sends that MAC. */
  destination: z.string().optional(),
  /** The forwarding database was read for this device, and has no unicast entry for that MAC (nor a default one). */
  unforwarded: z.boolean(),
  /** The MAC is the device's own. */
  ownMac: z.boolean(),
  /** The destination is an address of this node. */
  ownDestination: z.boolean(),
  /** State of the destination's neighbour entry on the network below, where it is a neighbour. */
  destinationState: z.string().optional(),
  /** What the cluster says of the node with that address: "Ready", "NotReady", …; "unlisted" where all nodes were listed with their addresses, and none has it. */
  destinationStatus: z.string().optional(),
  /** The MAC is also that of another gateway of this device and family. */
  shared: z.boolean(),
  /**
   * The gateway's own device was shown, too, and this is its MAC: a text of two nodes, for no node has a neighbour entry for an address of its own. Absent where
   * all addresses were listed, which people do of one node.
   */
  deviceMac: z.string().optional(),
});
/** A VXLAN device; the lines that lead to its gateways, to be quoted. */
const Device = z.object({ line: z.int(), interface: z.string(), mac: z.string().optional() });
const Step = z.object({
  line: z.int(),
  interface: z.string(),
  /** Of the gateway. */
  gateway: z.string(),
  kind: z.enum(["neighbor", "fdb", "underlay", "node"]),
});
const Vteps = z.object({ rows: z.array(Vtep), devices: z.array(Device), steps: z.array(Step) });
type Vteps = z.infer<typeof Vteps>;
type Vtep = z.infer<typeof Vtep>;
type Step = z.infer<typeof Step>;

interface Sources {
  readonly link?: { rows: readonly (Link & Row)[]; vxlans: readonly { interface: string; external: boolean; local?: string }[] };
  readonly route?: { rows: readonly (Route & Row)[] };
  readonly neighbor?: { rows: readonly (Neighbor & Row)[] };
  readonly fdb?: Fdb;
  readonly address?: { rows: readonly (Address & Row)[] };
  readonly "cluster-node"?: { rows: readonly (Row & { status: string; internalAddress?: string })[] };
  readonly ping?: { rows: readonly (Row & { target: string; received: number; unreachable?: number })[] };
}

/** Names that CNIs give to VXLAN devices whose entries they keep themselves: without `ip -d link` the name tells the kind. */
const NAME = /^(?:flannel(?:-v6)?\.\d{1,8}|vxlan(?:-v6)?\.(?:calico|cali))$/;
const ANY = "00:00:00:00:00:00";
const UNRESOLVED = new Set(["FAILED", "INCOMPLETE"]);

export const vtep = defineDerivedFact<Vteps>({
  id: "vtep",
  title: "Other ends of VXLAN devices: gateway, MAC, node",
  from: ["link", "route", "neighbor", "fdb", "address", "cluster-node", "flannel-annotation", "ping"],
  // nobody asks the cluster on a node; what the nodes told each other through it a rule reads itself
  optional: ["cluster-node", "flannel-annotation", "ping"],
  inPart: ["cluster-node", "flannel-annotation", "ping"],
  schema: Vteps,
  derive(values, whole, machineOf) {
    const sources: Sources = values;
    const { route, neighbor } = sources;
    const names = devicesOf(sources);
    const tables = tablesOf(sources, names, whole, machineOf);
    const result: Vteps = { rows: [], devices: [], steps: [] };
    for (const name of names) {
      const device = tables.links.get(name);
      if (device !== undefined) result.devices.push({ ...placed(device), interface: name, ...present({ mac: device.mac }) });
    }
    const done = new Set<string>();
    const add = (place: Row, name: string, gateway: string, prefix: string | undefined) => {
      const key = `${name} ${gateway}`;
      if (done.has(key)) return;
      done.add(key);
      const { row, steps } = endOf(tables, name, gateway);
      result.rows.push({ ...placed(place), interface: name, gateway, ...present({ prefix }), ...row, shared: false });
      result.steps.push(...steps);
    };
    for (const row of route?.rows ?? []) {
      const { interface: name, gateway } = row;
      if (name !== undefined && gateway !== undefined && names.has(name) && row.type === "unicast") add(row, name, gateway, row.prefix);
    }
    // an agent's own entries are permanent; others may be hosts of a network that is bridged, which are no gateways
    for (const row of neighbor?.rows ?? []) {
      const unknown = route === undefined && NAME.test(row.interface) && UNRESOLVED.has(row.state);
      // whoever is behind the tunnel, the device's own address belongs to nobody else
      const double = row.mac !== undefined && row.mac === tables.links.get(row.interface)?.mac;
      if (names.has(row.interface) && (row.state === "PERMANENT" || unknown || double) && !row.proxy) add(row, row.interface, row.address, undefined);
    }
    markShared(result.rows, whole.has("route"));
    return result;
  },
  // of the forwarding database only the entries of these devices are asked for: `bridge fdb show dev flannel.1` is all of it
  enough(values, whole) {
    const seen = new Set(((values as Sources).fdb?.listings ?? []).map((row) => row.interface));
    const others = ["link", "route", "neighbor", "address"].every((id) => whole.has(id));
    return others && [...devicesOf(values as Sources)].every((name) => seen.has(name));
  },
});

/** What the node's tables say, by what a packet is looked up with. */
interface Tables {
  readonly links: ReadonlyMap<string, Link & Row>;
  /** Where the tunnel of a device begins. */
  readonly locals: ReadonlyMap<string, string | undefined>;
  /** Entries of the forwarding database by device and MAC, and whether it was listed for a device, on the machine that a neighbour entry is of. */
  readonly forwards: ReadonlyMap<string, Fdb["rows"][number]>;
  readonly isListed: (name: string, entry: Row) => boolean;
  /** Neighbours on the devices, by device and address; and those on the network below, by address. */
  readonly neighbors: ReadonlyMap<string, Neighbor & Row>;
  readonly below: ReadonlyMap<string, Row & { readonly state: string }>;
  /** Addresses of this node; undefined where none were read. */
  readonly addresses: readonly (Address & Row)[] | undefined;
  readonly own: ReadonlyMap<string, Address & Row>;
  readonly allAddresses: boolean;
  /** Listings that have `lo`: they were of all addresses, even if their end is missing. */
  readonly listings: ReadonlySet<number | undefined>;
  readonly nodes: NonNullable<Sources["cluster-node"]>["rows"];
  readonly allNodes: boolean;
  /** Whether two rows are of one machine, as far as the text tells. */
  readonly isOne: (one: Row | undefined, other: Row | undefined) => boolean;
}

function tablesOf(sources: Sources, names: ReadonlySet<string>, whole: ReadonlySet<string>, machineOf: (row: Row) => string | undefined): Tables {
  const { link, neighbor, fdb, address, ping } = sources;
  const forwards = new Map<string, Fdb["rows"][number]>();
  for (const row of fdb?.rows ?? []) if (row.destination !== undefined && row.bridge === undefined) forwards.set(`${row.interface} ${row.mac}`, row);
  const neighbors = new Map<string, Neighbor & Row>();
  const below = new Map<string, Row & { state: string }>();
  for (const row of neighbor?.rows ?? []) {
    if (row.proxy) continue;
    if (names.has(row.interface)) neighbors.set(`${row.interface} ${row.address}`, row);
    else if (below.get(row.address) === undefined || !UNRESOLVED.has(row.state)) below.set(row.address, row);
  }
  // somebody pinged the node behind the tunnel, and whoever is next to it said that it does not answer ARP
  const refused = new Map(ping?.rows.filter((row) => row.received === 0 && (row.unreachable ?? 0) > 0).map((row) => [row.target, row]));
  for (const [target, row] of refused) if (!below.has(target)) below.set(target, { ...placed(row), state: "FAILED" });
  const nodes = sources["cluster-node"]?.rows ?? [];
  // of all devices: "*"
  const listed = new Set((fdb?.listings ?? []).map((row) => row.interface));
  const listedOn = new Set((fdb?.rows ?? []).map((row) => `${row.interface} ${machineOf(row)}`));
  return {
    links: new Map((link?.rows ?? []).map((row) => [row.interface, row])),
    locals: new Map((link?.vxlans ?? []).map((row) => [row.interface, row.local])),
    forwards,
    isListed: (name, entry) => (listed.has(name) || listed.has("*")) && (machineOf(entry) === undefined || listedOn.has(`${name} ${machineOf(entry)}`)),
    neighbors,
    below,
    addresses: address?.rows,
    own: new Map((address?.rows ?? []).map((row) => [row.address, row])),
    allAddresses: whole.has("address"),
    listings: new Set((address?.rows ?? []).flatMap((row) => (row.interface === "lo" ? [row.output] : []))),
    nodes,
    allNodes: whole.has("cluster-node") && nodes.length > 0 && nodes.every((row) => row.internalAddress !== undefined),
    isOne: (one, other) => one === undefined || other === undefined || machineOf(one) === machineOf(other),
  };
}

/** What is behind a gateway of a device, and the entries that say so. */
function endOf(tables: Tables, name: string, gateway: string): { row: Omit<Vtep, "line" | "interface" | "gateway" | "shared">; steps: Step[] } {
  const { addresses, allAddresses, forwards, nodes } = tables;
  const entry = tables.neighbors.get(`${name} ${gateway}`);
  const mac = entry?.mac;
  const forward = mac === undefined ? undefined : (forwards.get(`${name} ${mac}`) ?? forwards.get(`${name} ${ANY}`));
  const destination = forward?.destination;
  const under = destination === undefined ? undefined : tables.below.get(destination);
  const node = destination === undefined ? undefined : nodes.find((row) => row.internalAddress === destination);
  const unlisted = destination !== undefined && tables.allNodes && node === undefined;
  const device = tables.links.get(name)?.mac;
  // where the gateway itself was shown, its node was, too: no route leads over an address of the node's own
  const ends = (addresses ?? []).filter((row) => row.interface === name && row.address === gateway);
  const shown = !allAddresses && ends.some((row) => !tables.listings.has(row.output));
  // the listing was cut before the device's address, which may be the gateway's
  const hidden = addresses !== undefined && !allAddresses && !addresses.some((row) => row.interface === name);
  // one of the two was asked of another node; the tunnel of the one at the other end begins there
  const theirs = (destination !== undefined && tables.locals.get(name) === destination) || !tables.isOne(entry, tables.links.get(name));
  const home = destination === undefined ? undefined : tables.own.get(destination);
  const step = (row: Row, kind: Step["kind"]): Step => ({ ...placed(row), interface: name, gateway, kind });
  return {
    row: {
      ...present({ mac, state: entry?.state, destination, destinationState: under?.state, destinationStatus: unlisted ? "unlisted" : node?.status }),
      unforwarded: entry !== undefined && mac !== undefined && forward === undefined && tables.isListed(name, entry),
      // what another node has for this device agrees with it
      ownMac: mac !== undefined && device === mac && ends.length === 0 && !hidden && !theirs,
      ownDestination: home !== undefined && ends.length === 0 && tables.isOne(forward, home),
      ...present({ deviceMac: shown && mac !== undefined ? device : undefined }),
    },
    steps: [
      ...(entry === undefined ? [] : [step(entry, "neighbor")]),
      ...(forward === undefined ? [] : [step(forward, "fdb")]),
      ...(under === undefined ? [] : [step(under, "underlay")]),
      ...(unlisted ? nodes.slice(0, 4).map((row) => step(row, "node")) : []),
    ],
  };
}

/** The VXLAN devices whose tables lead somewhere: not one that takes its peers from each packet (Cilium, Antrea), and not a port of a bridge. */
function devicesOf({ link, route, neighbor, fdb }: Sources): Set<string> {
  const external = new Set((link?.vxlans ?? []).filter((row) => row.external).map((row) => row.interface));
  const names = new Set<string>();
  for (const row of [...(link?.rows ?? []), ...(route?.rows ?? []), ...(neighbor?.rows ?? []), ...(fdb?.rows ?? [])]) {
    const name = row.interface;
    if (name !== undefined && NAME.test(name) && !external.has(name)) names.add(name);
  }
  for (const row of link?.rows ?? []) if (row.kind === "vxlan" && row.master === undefined && !external.has(row.interface)) names.add(row.interface);
  return names;
}

/**
 * Two gateways of one device and family with one MAC: the forwarding database holds one node per MAC. Where the routes of the device were listed, one to which none leads
 * is what was left of a range that the node had before.
 */
function markShared(rows: Vtep[], allRoutes: boolean): void {
  const first = new Map<string, Vtep>();
  const routed = Map.groupBy(
    rows.filter((row) => row.prefix !== undefined),
    (row) => row.interface,
  );
  for (const row of rows) {
    if (row.mac === undefined || row.state !== "PERMANENT") continue;
    const routes = routed.get(row.interface)?.length ?? 0;
    if (row.prefix === undefined && (routes >= 2 || (routes === 1 && allRoutes))) continue;
    const key = `${row.interface} ${row.mac} ${row.gateway.includes(":")}`;
    const other = first.get(key);
    if (other === undefined) first.set(key, row);
    else {
      other.shared = true;
      row.shared = true;
    }
  }
}
