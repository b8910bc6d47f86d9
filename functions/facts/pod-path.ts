import { z } from "zod";
import { defineDerivedFact, type Row } from "./fact.ts";
import type { Link } from "./link.ts";
import type { Neighbor } from "./neighbor.ts";
import { present } from "./present.ts";
import type { Route } from "./route.ts";

/**
 * How the node reaches its own pods where each has a host-side device of its own (Calico cali…, Cilium lxc…, VPC CNI eni…, reference plugins veth…): the
 * host routes and the devices, with what contradicts them.
 *
 *     192.168.171.70 dev cali7c0ab41d5f2 scope link
 *     8: cali7c0ab41d5f2@if3: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 …
 */
const PodRoute = z.object({
  line: z.int(),
  address: z.string(),
  interface: z.string(),
  table: z.string(),
  /** Absent for a route straight to a device. */
  gateway: z.string().optional(),
  /** The route leads to a pod's device. */
  local: z.boolean(),
  /** The kernel marks it linkdown or dead, or its device is up without a carrier. */
  linkDown: z.boolean(),
  /** The device of another route for the same address in the same table; at least one of the two leads to a pod's device. */
  rival: z.string().optional(),
  /** Nobody answers for the address on the route's device, and somebody does on this pod's device. */
  livesOn: z.string().optional(),
});
const PodInterface = z.object({
  line: z.int(),
  interface: z.string(),
  up: z.boolean(),
  carrier: z.boolean(),
  state: z.string().optional(),
  /** The bridge that it is a port of. */
  master: z.string().optional(),
  /** An IPv4 address for which somebody answers here and on this other pod's device too. */
  rival: z.string().optional(),
  rivalAddress: z.string().optional(),
});
/** The neighbour entries behind `livesOn` and `rival`. */
const PodNeighbor = z.object({ line: z.int(), address: z.string(), interface: z.string(), state: z.string() });
/** An event of a pod: its plugin could not connect it because its route is there already. */
const Refusal = z.object({
  line: z.int(),
  message: z.string(),
  /** Seconds before the collection, where known. */
  age: z.number().optional(),
});
const PodPath = z.object({ routes: z.array(PodRoute), interfaces: z.array(PodInterface), neighbors: z.array(PodNeighbor), refusals: z.array(Refusal) });
type PodPath = z.infer<typeof PodPath>;

/** Names that CNIs give to the host's side of a pod's link. Docker's veths have seven digits, and are not a CNI's. */
const POD_DEVICE = /^(?:cali[0-9a-f]{11}|lxc(?:_health|[0-9a-f]{12,14})|eni[0-9a-f]{11}|azv[0-9a-f]{11}|veth[0-9a-f]{8})$/;
const ANSWERS = new Set(["REACHABLE", "STALE", "DELAY", "PROBE", "PERMANENT"]);
const SILENT = new Set(["FAILED", "INCOMPLETE"]);

/** Calico: `route (Ifindex: 12, Dst: 10.1.2.3/32, Scope: link) already exists for an interface other than 'cali…'`, in old versions `failed to add route file exists` */
const REFUSAL = /already exists for an interface other than|failed to add (?:host )?route.{0,20}file exists/;

interface Said {
  readonly message: string;
  readonly age?: number | undefined;
}
interface Sources {
  readonly "pod-event"?: { rows: readonly (Row & Said)[] };
  readonly route?: { rows: readonly (Route & Row)[] };
  readonly link?: { rows: readonly (Link & Row)[] };
  readonly neighbor?: { rows: readonly (Neighbor & Row)[] };
}

export const podPath = defineDerivedFact<PodPath>({
  id: "pod-path",
  title: "Host routes and host-side devices of the node's pods",
  from: ["route", "link", "neighbor", "pod-event"],
  schema: PodPath,
  derive(values) {
    const sources = values as Sources;
    const { route, link, neighbor } = sources;
    const links = new Map((link?.rows ?? []).map((row) => [row.interface, row]));
    const entries = new Map<string, (Neighbor & Row)[]>();
    for (const row of neighbor?.rows ?? []) {
      if (row.proxy || row.family !== "ipv4") continue;
      const known = entries.get(row.address);
      if (known === undefined) entries.set(row.address, [row]);
      else known.push(row);
    }
    const hosts = new Map<string, (Route & Row)[]>();
    for (const row of route?.rows ?? []) {
      // fe80::/64 and the like are on every device
      if (row.type !== "unicast" || row.interface === undefined || !(row.prefix.endsWith("/32") || row.prefix.endsWith("/128"))) continue;
      const key = `${row.table} ${row.prefix}`;
      const known = hosts.get(key);
      if (known === undefined) hosts.set(key, [row]);
      else known.push(row);
    }
    const result: PodPath = { routes: [], interfaces: [], neighbors: [], refusals: [] };
    for (const row of sources["pod-event"]?.rows ?? []) {
      if (REFUSAL.test(row.message)) result.refusals.push({ ...placeOf(row), message: row.message.slice(0, 1000), ...present({ age: row.age }) });
    }
    for (const rows of hosts.values()) {
      const anyLocal = rows.some((row) => POD_DEVICE.test(row.interface as string));
      for (const row of rows) {
        const name = row.interface as string;
        const local = POD_DEVICE.test(name);
        const address = row.prefix.slice(0, row.prefix.lastIndexOf("/"));
        const here = entries.get(address) ?? [];
        // on the way through a gateway the address itself is nobody's neighbour
        const silent = row.gateway !== undefined || here.some((entry) => entry.interface === name && SILENT.has(entry.state));
        const living = here.find((entry) => entry.interface !== name && POD_DEVICE.test(entry.interface) && ANSWERS.has(entry.state));
        const livesOn = silent && living !== undefined && links.get(living.interface)?.carrier !== false ? living.interface : undefined;
        if (!local && livesOn === undefined && !anyLocal) continue;
        const device = links.get(name);
        const rival = rows.find((other) => other.interface !== name);
        result.routes.push({
          ...placeOf(row),
          address,
          interface: name,
          table: row.table,
          ...present({ gateway: row.gateway }),
          local,
          linkDown: row.flags.includes("linkdown") || row.flags.includes("dead") || (device?.up === true && !device.carrier),
          ...present({ rival: rival?.interface, livesOn }),
        });
        if (livesOn !== undefined) result.neighbors.push(...here.map(neighborOf));
      }
    }
    const rivals = rivalsOf(entries);
    for (const row of link?.rows ?? []) {
      if (!POD_DEVICE.test(row.interface)) continue;
      const { interface: name, up, carrier, state, master } = row;
      const rival = rivals.get(name);
      result.interfaces.push({
        ...placeOf(row),
        interface: name,
        up,
        carrier,
        ...present({ state, master, rival: rival?.other, rivalAddress: rival?.address }),
      });
      if (rival !== undefined) result.neighbors.push(...(entries.get(rival.address) ?? []).map(neighborOf));
    }
    return result;
  },
});

/** By device: an address that is answered for on two devices of pods. */
function rivalsOf(entries: ReadonlyMap<string, readonly Neighbor[]>): Map<string, { address: string; other: string }> {
  const rivals = new Map<string, { address: string; other: string }>();
  for (const [address, rows] of entries) {
    // Calico and Cilium give the pod's gateway one address on every device
    if (address.startsWith("169.254.")) continue;
    const live = rows.filter((row) => POD_DEVICE.test(row.interface) && ANSWERS.has(row.state) && row.mac !== undefined);
    const [first, second] = live;
    if (first === undefined || second === undefined || first.interface === second.interface) continue;
    rivals.set(first.interface, { address, other: second.interface });
    rivals.set(second.interface, { address, other: first.interface });
  }
  return rivals;
}

function neighborOf(row: Neighbor & Row): PodPath["neighbors"][number] {
  return { ...placeOf(row), address: row.address, interface: row.interface, state: row.state };
}

/** Where a row was read: what every derived row inherits. */
function placeOf({ line, output, text }: Row): Row {
  return { line, ...present({ output, text }) };
}
