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
  readonly link?: { rows: readonly (Link & Row)[]; vxlans: readonly { interface: string; external: boolean }[] };
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
  // nobody asks the cluster on a node
  // what the nodes told each other through it a rule reads itself
  optional: ["cluster-node", "flannel-annotation", "ping"],
  inPart: ["cluster-node", "flannel-annotation", "ping"],
  schema: Vteps,
  derive(values, whole) {
    const { link, route, neighbor, fdb, address } = values as Sources;
    const links = new Map((link?.rows ?? []).map((row) => [row.interface, row]));
    const names = devicesOf(values as Sources);
    const own = new Set((address?.rows ?? []).map((row) => row.address));
    // a listing that has `lo` was one of all addresses, even if its end is missing
    const listed = new Set((address?.rows ?? []).flatMap((row) => (row.interface === "lo" ? [row.output] : [])));
    const seen = new Set((fdb?.listings ?? []).map((row) => row.interface));
    const entries = new Map<string, Fdb["rows"][number]>();
    for (const row of fdb?.rows ?? []) if (row.destination !== undefined && row.bridge === undefined) entries.set(`${row.interface} ${row.mac}`, row);
    const neighbors = new Map<string, Neighbor & Row>();
    const below = new Map<string, Neighbor & Row>();
    for (const row of neighbor?.rows ?? []) {
      if (row.proxy) continue;
      if (names.has(row.interface)) neighbors.set(`${row.interface} ${row.address}`, row);
      else if (below.get(row.address) === undefined || !UNRESOLVED.has(row.state)) below.set(row.address, row);
    }
    // somebody pinged the node behind the tunnel, and whoever is next to it said that it does not answer ARP
    const refused = new Map((values as Sources).ping?.rows.filter((row) => row.received === 0 && (row.unreachable ?? 0) > 0).map((row) => [row.target, row]));
    const nodes = (values as Sources)["cluster-node"]?.rows ?? [];
    const allNodes = whole.has("cluster-node") && nodes.length > 0 && nodes.every((row) => row.internalAddress !== undefined);
    const result: Vteps = { rows: [], devices: [], steps: [] };
    for (const name of names) {
      const device = links.get(name);
      if (device !== undefined) result.devices.push({ ...placed(device), interface: name, ...present({ mac: device.mac }) });
    }
    const done = new Set<string>();
    const add = (place: Row, name: string, gateway: string, prefix: string | undefined) => {
      const key = `${name} ${gateway}`;
      if (done.has(key)) return;
      done.add(key);
      const entry = neighbors.get(key);
      const mac = entry?.mac;
      const forward = mac === undefined ? undefined : (entries.get(`${name} ${mac}`) ?? entries.get(`${name} ${ANY}`));
      const destination = forward?.destination;
      const asked = destination === undefined ? undefined : refused.get(destination);
      const under =
        destination === undefined ? undefined : (below.get(destination) ?? (asked === undefined ? undefined : { ...placed(asked), state: "FAILED" }));
      const node = nodes.find((row) => destination !== undefined && row.internalAddress === destination);
      const unlisted = destination !== undefined && allNodes && node === undefined;
      const known = seen.has(name) || seen.has("*");
      const shown = !whole.has("address") && (address?.rows ?? []).some((row) => row.interface === name && row.address === gateway && !listed.has(row.output));
      // the listing was cut before the device's address, which may be the gateway's
      const hidden = address !== undefined && !whole.has("address") && !address.rows.some((row) => row.interface === name);
      result.rows.push({
        ...placed(place),
        interface: name,
        gateway,
        ...present({ prefix, mac, state: entry?.state, destination, destinationState: under?.state, destinationStatus: unlisted ? "unlisted" : node?.status }),
        unforwarded: mac !== undefined && forward === undefined && known,
        // what another node has for this device agrees with it
        ownMac: mac !== undefined && links.get(name)?.mac === mac && !shown && !hidden,
        ownDestination: destination !== undefined && own.has(destination),
        shared: false,
        ...present({ deviceMac: shown && mac !== undefined ? links.get(name)?.mac : undefined }),
      });
      if (entry !== undefined) result.steps.push(step(entry, name, gateway, "neighbor"));
      if (forward !== undefined) result.steps.push(step(forward, name, gateway, "fdb"));
      if (under !== undefined) result.steps.push(step(under, name, gateway, "underlay"));
      if (unlisted) for (const row of nodes.slice(0, 4)) result.steps.push(step(row, name, gateway, "node"));
    };
    for (const row of route?.rows ?? []) {
      const { interface: name, gateway } = row;
      if (name !== undefined && gateway !== undefined && names.has(name) && row.type === "unicast") add(row, name, gateway, row.prefix);
    }
    // an agent's own entries are permanent; others may be hosts of a network that is bridged, which are no gateways
    for (const row of neighbor?.rows ?? []) {
      const unknown = route === undefined && NAME.test(row.interface) && UNRESOLVED.has(row.state);
      // whoever is behind the tunnel, the device's own address belongs to nobody else
      const double = row.mac !== undefined && row.mac === links.get(row.interface)?.mac;
      if (names.has(row.interface) && (row.state === "PERMANENT" || unknown || double) && !row.proxy) add(row, row.interface, row.address, undefined);
    }
    markShared(result.rows);
    return result;
  },
  // of the forwarding database only the entries of these devices are asked for: `bridge fdb show dev flannel.1` is all of it
  enough(values, whole) {
    const seen = new Set(((values as Sources).fdb?.listings ?? []).map((row) => row.interface));
    const others = ["link", "route", "neighbor", "address"].every((id) => whole.has(id));
    return others && [...devicesOf(values as Sources)].every((name) => seen.has(name));
  },
});

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

/** Two gateways of one device and family with one MAC: the forwarding database holds one node per MAC. */
function markShared(rows: Vtep[]): void {
  const first = new Map<string, Vtep>();
  for (const row of rows) {
    if (row.mac === undefined || row.state !== "PERMANENT") continue;
    const key = `${row.interface} ${row.mac} ${row.gateway.includes(":")}`;
    const other = first.get(key);
    if (other === undefined) first.set(key, row);
    else {
      other.shared = true;
      row.shared = true;
    }
  }
}

function step(row: Row, name: string, gateway: string, kind: Step["kind"]): Step {
  return { ...placed(row), interface: name, gateway, kind };
}
