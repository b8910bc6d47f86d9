import { z } from "zod";
import type { ArpAnswer } from "./arping.ts";
import type { Pods } from "./cluster-pod.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import type { Fdb } from "./fdb.ts";
import { networkBits, prefixBits } from "./ip-bits.ts";
import type { Link } from "./link.ts";
import type { Neighbor } from "./neighbor.ts";
import { placed } from "./placed.ts";
import type { PodAddress } from "./pod-address.ts";
import { present } from "./present.ts";
import type { Route } from "./route.ts";
import type { RouteAnswer } from "./route-answer.ts";
import type { WorkloadEndpoint } from "./workload-endpoint.ts";

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
  /** Nobody answers for the address on the route's device, and somebody does on this pod's device; or Calico, or the pod itself by the number of its other end, says that the pod is on this one. */
  livesOn: z.string().optional(),
  /** The route's device is dead, and this one of the same CNI lives and is the only one to which no route leads. */
  heir: z.string().optional(),
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
/** What is behind `livesOn` and `rival`: neighbour entries, answers to arping, whose state is "ANSWERED", and what Calico says in the cluster, or the pod shows of its interface: "ENDPOINT". */
const PodNeighbor = z.object({ line: z.int(), address: z.string(), interface: z.string(), state: z.string() });
/** An event of a pod: its plugin could not connect it because its route is there already. */
const Refusal = z.object({
  line: z.int(),
  message: z.string(),
  /** Seconds before the collection, where known. */
  age: z.number().optional(),
});
/** Who says that an address to which a route leads on a pod's device is another node's. */
const Claim = z.object({
  line: z.int(),
  address: z.string(),
  interface: z.string(),
  /** By the list of pods the node that has the pod; by the routes the address over which its range is reached. */
  holder: z.string(),
  /** list: `kubectl get pods -o wide`. range: Calico routes the range to another node, and the device has a pod of the node's own range. */
  by: z.enum(["list", "range"]),
});
const PodPath = z.object({
  routes: z.array(PodRoute),
  interfaces: z.array(PodInterface),
  neighbors: z.array(PodNeighbor),
  refusals: z.array(Refusal),
  claims: z.array(Claim),
  /** Routes on one device to several addresses of the node's own range: Calico gives a pod one, and no list of pods says whose the others are. */
  crowded: z.array(z.object({ line: z.int(), address: z.string(), interface: z.string() })),
  /** Pods of this node that were made seconds ago, or that end: their devices may have no carrier yet, or any more. */
  starting: z.array(z.object({ line: z.int(), name: z.string() })),
});
type PodPath = z.infer<typeof PodPath>;

/** Names that CNIs give to the host's side of a pod's link. Docker's veths have seven digits, and are not a CNI's. */
const POD_DEVICE = /^(?:cali[0-9a-f]{11}|lxc(?:_health|[0-9a-f]{12,14})|eni[0-9a-f]{11}|azv[0-9a-f]{11}|veth[0-9a-f]{8})$/;
/** Bridges of LXD, Incus, LXC and libvirt: what is a port of them has a container or a guest behind it, never a pod. */
const BRIDGE_OF_OTHERS = /^(?:lxdbr|incusbr|lxcbr|virbr)\d/;
/** Of CNIs that route to each pod. */
const ROUTED_DEVICE = /^(cali|eni|azv)[0-9a-f]{11}$/;
const ANSWERS = new Set(["REACHABLE", "STALE", "DELAY", "PROBE", "PERMANENT"]);
/** `arp` does not tell the state; it shows the MAC of those alone that answered. Multicast is nobody's, and always has one. */
const answered = ({ state, mac, address }: Neighbor): boolean =>
  ANSWERS.has(state) || (state === "UNKNOWN" && mac !== undefined && !/^(?:ff|22[4-9]\.|23\d\.)/i.test(address));
const SILENT = new Set(["FAILED", "INCOMPLETE"]);

/** Calico: `route (Ifindex: 12, Dst: 10.1.2.3/32, Scope: link) already exists for an interface other than 'cali…'`, in old versions `failed to add route file exists` */
const REFUSAL = /already exists for an interface other than|failed to add (?:host )?route.{0,200}file exists/;

interface Said {
  readonly message: string;
  readonly age?: number | undefined;
}
interface Sources {
  readonly "pod-event"?: { rows: readonly (Row & Said)[] };
  readonly route?: { rows: readonly (Route & Row)[] };
  readonly link?: { rows: readonly (Link & Row)[] };
  readonly neighbor?: { rows: readonly (Neighbor & Row)[] };
  readonly arping?: { rows: readonly (ArpAnswer & Row)[] };
  readonly fdb?: { rows: readonly (Fdb["rows"][number] & Row)[] };
  readonly "workload-endpoint"?: { rows: readonly (WorkloadEndpoint & Row)[] };
  readonly "pod-address"?: { rows: readonly (PodAddress & Row)[] };
  readonly "route-answer"?: { rows: readonly (RouteAnswer & Row)[] };
  readonly "cluster-pod"?: Placed<Pods>;
}

export const podPath = defineDerivedFact<PodPath>({
  id: "pod-path",
  title: "Host routes and host-side devices of the node's pods",
  from: ["route", "link", "neighbor", "pod-event", "cluster-pod", "arping", "fdb", "workload-endpoint", "pod-address", "route-answer"],
  // what is wrong stands in the tables; these only tell more of it
  optional: ["pod-event", "cluster-pod", "arping", "fdb", "workload-endpoint", "pod-address", "route-answer"],
  inPart: ["arping", "fdb", "workload-endpoint", "pod-address", "route-answer"],
  schema: PodPath,
  // all pods of this node were listed: what is missing are those of others
  enough(values, whole) {
    const { "cluster-pod": pods, "pod-event": events } = values as Sources;
    return ["route", "link", "neighbor"].every((id) => whole.has(id)) && (events === undefined || whole.has("pod-event")) && (pods?.listings.length ?? 0) > 0;
  },
  derive(values) {
    const sources = values as Sources;
    const links = sources.link?.rows ?? [];
    const entries = Map.groupBy(
      (sources.neighbor?.rows ?? []).filter((row) => !row.proxy && !row.address.startsWith("fe80:")),
      (row) => row.address,
    );
    const result: PodPath = { routes: [], interfaces: [], neighbors: [], refusals: [], claims: [], crowded: [], starting: [] };
    for (const row of sources["pod-event"]?.rows ?? []) {
      if (REFUSAL.test(row.message)) result.refusals.push({ ...placed(row), message: row.message.slice(0, 1000), ...present({ age: row.age }) });
    }
    addRoutes(sources, entries, result);
    Object.assign(result, claimsOf(sources, result.routes));
    // where nobody knows what the node is called, any of them may be its own
    const unnamed = (sources["cluster-pod"]?.rows ?? []).every((row) => row.own === undefined);
    for (const row of sources["cluster-pod"]?.rows ?? []) {
      if (!(row.own ?? unnamed)) continue;
      if (row.status === "Terminating" || (STARTS.test(row.status) && (row.age ?? START) < START)) result.starting.push({ ...placed(row), name: row.name });
    }
    nameHeir(links, result.routes);
    const rivals = rivalsOf(entries);
    const byName = new Map(links.map((row) => [row.interface, row]));
    for (const row of links) {
      if (!POD_DEVICE.test(row.interface) || isOfOthers(row, byName)) continue;
      const { interface: name, up, carrier, state, master } = row;
      const rival = rivals.get(name);
      result.interfaces.push({
        ...placed(row),
        interface: name,
        up,
        carrier,
        ...present({ state, master, rival: rival?.other, rivalAddress: rival?.address }),
      });
      if (rival !== undefined) result.neighbors.push(...(entries.get(rival.address) ?? []).map(neighborOf));
    }
    addAnswering(sources, result);
    return result;
  },
});

/** A veth on the bridge of another manager of containers, or one of a pair of which both ends are on this node: no pod has the other end. */
function isOfOthers({ interface: name, peer, master }: Link, links: ReadonlyMap<string, Link>): boolean {
  if (!name.startsWith("veth")) return false;
  const other = peer === undefined ? undefined : links.get(peer);
  return [master, other?.master].some((bridge) => BRIDGE_OF_OTHERS.test(bridge ?? "")) || other?.peer === name;
}

/** The routes to single addresses that lead to pods, or away from one that answers here, with the neighbours that tell so. */
function addRoutes(sources: Sources, entries: ReadonlyMap<string, readonly (Neighbor & Row)[]>, result: PodPath): void {
  const { route, link, "workload-endpoint": workloads, "pod-address": pods, "route-answer": answers } = sources;
  const links = new Map((link?.rows ?? []).map((row) => [row.interface, row]));
  const listed = (route?.rows ?? []).filter(isHostRoute);
  const known = new Set(listed.map(({ prefix }) => prefix));
  const asked = (answers?.rows ?? []).filter(isToPod).map(asHostRoute);
  const hosts = Map.groupBy([...listed, ...asked.filter(({ prefix }) => !known.has(prefix))], (row) => `${row.table} ${row.prefix}`);
  const endpoints = Map.groupBy([...(workloads?.rows ?? []), ...endpointsOf(pods?.rows ?? [], link?.rows ?? [])], (row) => row.address);
  for (const rows of hosts.values()) {
    const anyLocal = rows.some((row) => POD_DEVICE.test(row.interface));
    for (const row of rows) {
      const name = row.interface;
      const local = POD_DEVICE.test(name);
      const address = row.prefix.slice(0, row.prefix.lastIndexOf("/"));
      const here = entries.get(address) ?? [];
      // on the way through a gateway the address itself is nobody's neighbour
      const silent = row.gateway !== undefined || here.some((entry) => entry.interface === name && SILENT.has(entry.state));
      const living = here.find((entry) => entry.interface !== name && POD_DEVICE.test(entry.interface) && answered(entry));
      // one pod alone has the address, and its device is here and lives
      const [endpoint, ...more] = endpoints.get(address) ?? [];
      const agreed = more.every((other) => other.interface === endpoint?.interface);
      const told = agreed && local && row.gateway === undefined && endpoint?.own !== false && endpoint?.interface !== name ? endpoint : undefined;
      const toldOn = told !== undefined && links.get(told.interface)?.carrier === true ? told : undefined;
      const answersOn = silent && living !== undefined && links.get(living.interface)?.carrier !== false ? living.interface : undefined;
      const livesOn = answersOn ?? toldOn?.interface;
      if (!local && livesOn === undefined && !anyLocal) continue;
      const device = links.get(name);
      const rival = rows.find((other) => other.interface !== name);
      result.routes.push({
        ...placed(row),
        address,
        interface: name,
        table: row.table,
        ...present({ gateway: row.gateway }),
        local,
        linkDown: row.flags.includes("linkdown") || row.flags.includes("dead") || (device?.up === true && !device.carrier),
        ...present({ rival: rival?.interface, livesOn }),
      });
      if (answersOn !== undefined) result.neighbors.push(...here.map(neighborOf));
      else if (toldOn !== undefined) result.neighbors.push({ ...placed(toldOn), address, interface: toldOn.interface, state: "ENDPOINT" });
    }
  }
}

/** `ip route get ADDRESS` that ends at a pod's device was answered by the route to that pod: CNIs have no other ones there. */
const isToPod = (row: RouteAnswer): boolean =>
  POD_DEVICE.test(row.interface) && row.gateway === undefined && row.from === undefined && row.inputInterface === undefined && row.table === "main";
const asHostRoute = (row: RouteAnswer & Row): Row & Pick<Route, "prefix" | "table" | "flags" | "gateway"> & { interface: string } => ({
  ...placed(row),
  prefix: `${row.destination}/${row.family === "ipv4" ? 32 : 128}`,
  interface: row.interface,
  table: row.table,
  flags: [],
});

/** Where pods are that show their own interface (`2: eth0@if58:`): the device of that number, if it says the same of its other end (`58: cali…@if2:`). */
function endpointsOf(pods: readonly (PodAddress & Row)[], links: readonly (Link & Row)[]): (Row & Pick<WorkloadEndpoint, "address" | "interface" | "own">)[] {
  const byIndex = new Map(links.map((row) => [row.index, row]));
  return pods.flatMap((pod) => {
    const device = pod.peerIndex === undefined ? undefined : byIndex.get(pod.peerIndex);
    if (device === undefined || !POD_DEVICE.test(device.interface) || device.peer !== `if${pod.index}`) return [];
    return [{ ...placed(pod), address: pod.address, interface: device.interface }];
  });
}

/** Of one address, on a device; fe80::/64 and the like are on every one. */
const isHostRoute = (row: Route & Row): row is Route & Row & { interface: string } =>
  row.type === "unicast" && row.interface !== undefined && (row.prefix.endsWith("/32") || row.prefix.endsWith("/128"));

/** Where each pod has a route of its own, a living device without one belongs to the pod whose route leads into a dead one: if there is one of each. */
function nameHeir(links: readonly Link[], routes: PodPath["routes"]): void {
  const routed = new Set(routes.map((row) => row.interface));
  const dead = routes.filter((row) => row.local && row.linkDown && row.gateway === undefined && row.rival === undefined);
  const kind = ROUTED_DEVICE.exec(dead[0]?.interface ?? "")?.[1];
  const free = links.filter((row) => kind !== undefined && row.interface.startsWith(kind) && row.up && row.carrier && !routed.has(row.interface));
  const [route] = dead;
  const [heir] = free;
  // where one route was asked for, the other devices seem to have none
  const others = routes.some((row) => row.local && !row.linkDown && row.interface.startsWith(kind ?? "?"));
  if (dead.length === 1 && free.length === 1 && route !== undefined && heir !== undefined && others) route.heir = heir.interface;
}

/** Claims of other nodes to addresses that have a route to a pod's device here. */
function claimsOf(sources: Sources, routes: PodPath["routes"]): Pick<PodPath, "claims" | "crowded"> {
  const local = routes.filter((row) => row.local && row.gateway === undefined && row.table === "main" && !row.address.includes(":"));
  const pods = Map.groupBy(
    (sources["cluster-pod"]?.rows ?? []).filter((pod) => pod.address !== undefined && !ENDED.test(pod.status)),
    (pod) => pod.address,
  );
  // a list without this node's own pods may call it by another name
  const known = [...pods.values()].some((rows) => rows.some(({ own, node }) => own === true && node !== undefined));
  const ranges = new Map((sources.route?.rows ?? []).flatMap((row) => (isRange(row) ? [[keyOf(row.prefix, 0), row] as const] : [])));
  const rangeOf = ({ address }: { address: string }): (Route & Row) | undefined =>
    LENGTHS.map((length) => ranges.get(keyOf(address, length))).find((row) => row !== undefined);
  const devices = [...Map.groupBy(local, (row) => row.interface).values()];
  const isOwn = (row: { address: string }): boolean => rangeOf(row)?.type === "blackhole";
  const claims = devices.flatMap((rows) => {
    // an address that this node borrowed from another one's range stands alone on its device; a floating one lies in no node's range
    const beside = rows.length > 1 && rows.some(isOwn);
    return rows.flatMap((row): PodPath["claims"] => {
      const { address, interface: name } = row;
      const named = pods.get(address) ?? [];
      const elsewhere = named.every(({ own }) => own === false);
      // of a list that was asked for this one pod the name of its node tells, where the device here is dead as well, or nobody answers behind it
      const silent = (sources.neighbor?.rows ?? []).some((entry) => entry.address === address && entry.interface === name && SILENT.has(entry.state));
      const sure = known || ((row.linkDown || silent) && named.every(({ alike }) => alike === true));
      const pod = elsewhere && sure ? named.find(({ status }) => status === "Running") : undefined;
      if (pod?.node !== undefined) return [{ ...placed(pod), address, interface: name, holder: pod.node, by: "list" }];
      const range = beside && named.length === 0 ? rangeOf(row) : undefined;
      return range?.gateway === undefined ? [] : [{ ...placed(range), address, interface: name, holder: range.gateway, by: "range" }];
    });
  });
  const own = known ? [] : devices.map((rows) => (rows.length > 1 ? rows.filter(isOwn) : [])).filter((rows) => rows.length > 1);
  return { claims, crowded: own.flat().map((row) => ({ ...placed(row), address: row.address, interface: row.interface })) };
}

/** How kubectl calls a pod whose containers do not run yet, and for how many seconds that is no wonder. */
const STARTS = /^(?:Pending|ContainerCreating|PodInitializing|Init:.{1,20})$/;
const START = 60;
/** Pods that are over, whose address another one may have by now. */
const ENDED = /^(?:Completed|Succeeded|Failed|Error|Evicted)$/;
/** How long the prefixes of Calico's ranges of a node are: 26 unless somebody chose another length. */
const LENGTHS = [29, 28, 27, 26, 25, 24, 23, 22, 21, 20];
const isRange = (row: Route): boolean =>
  row.family === "ipv4" &&
  // `route -n` (flag U) does not tell who made a route
  (CALICO.test(row.protocol ?? "") || (row.protocol === undefined && row.flags.includes("U"))) &&
  (row.type === "blackhole" || row.gateway !== undefined) &&
  LENGTHS.includes(prefixBits(row.prefix)?.length ?? 0);
/** A prefix as a key; of an address, the prefix of this length that it lies in. */
function keyOf(text: string, length: number): string {
  const bits = prefixBits(text);
  return bits === undefined ? text : `${networkBits(bits.network, length || bits.length, "ipv4")}/${length || bits.length}`;
}
/** Calico's own routes: of BIRD, and 80 of its agent. */
const CALICO = /^(?:bird|80)$/;

/** By device: an address that is answered for on two devices of pods. */
function rivalsOf(entries: ReadonlyMap<string, readonly Neighbor[]>): Map<string, { address: string; other: string }> {
  const rivals = new Map<string, { address: string; other: string }>();
  for (const [address, rows] of entries) {
    // Calico and Cilium give the pod's gateway one address on every device
    if (address.startsWith("169.254.")) continue;
    const live = rows.filter((row) => POD_DEVICE.test(row.interface) && answered(row) && row.mac !== undefined);
    const [first, second] = live;
    if (first === undefined || second === undefined || first.interface === second.interface) continue;
    rivals.set(first.interface, { address, other: second.interface });
    rivals.set(second.interface, { address, other: first.interface });
  }
  return rivals;
}

/** Adds the ports of a bridge behind which different pods answer to arping for one address. */
function addAnswering(sources: Sources, result: PodPath): void {
  const ports = new Map(
    (sources.fdb?.rows ?? []).flatMap((row) => (row.bridge === undefined || row.permanent ? [] : [[`${row.bridge} ${row.mac}`, row] as const])),
  );
  const asked = (sources.arping?.rows ?? []).flatMap((row) => {
    const port = ports.get(`${row.interface} ${row.mac}`);
    return row.heard === true || port === undefined || !POD_DEVICE.test(port.interface) ? [] : [{ row, port }];
  });
  for (const answers of Map.groupBy(asked, ({ row }) => `${row.interface} ${row.address}`).values()) {
    const behind = [...new Map(answers.map((answer) => [answer.port.interface, answer])).values()];
    for (const [i, { row, port }] of behind.entries()) {
      const other = behind[i === 0 ? 1 : 0];
      if (other === undefined) continue;
      const told = { rival: other.port.interface, rivalAddress: row.address };
      const known = result.interfaces.find((entry) => entry.interface === port.interface);
      // a hardware address was learned behind it, so it carries packets
      if (known === undefined)
        result.interfaces.push({ ...placed(port), interface: port.interface, up: true, carrier: true, ...present({ master: port.bridge }), ...told });
      else Object.assign(known, told);
      result.neighbors.push({ ...placed(row), address: row.address, interface: row.interface ?? "", state: "ANSWERED" });
    }
  }
}

function neighborOf(row: Neighbor & Row): PodPath["neighbors"][number] {
  return { ...placed(row), address: row.address, interface: row.interface, state: row.state };
}
