import { z } from "zod";
import type { Address } from "./address.ts";
import { byWord } from "./by-word.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { addressFamily } from "./ip-address.ts";
import { prefixBits } from "./ip-bits.ts";
import type { KernelLog } from "./kernel-log.ts";
import type { Link } from "./link.ts";
import { placed } from "./placed.ts";
import { isPodInterface } from "./pod-interface.ts";
import { present } from "./present.ts";
import { isPrivate } from "./private-address.ts";
import type { Route } from "./route.ts";
import { routeTables } from "./route-lookup-evaluator.ts";
import type { Rule } from "./rule.ts";

/**
 * Packet sizes that do not fit: tunnels whose MTU is more than what the interface below carries with the outer headers, pods that may send more than the
 * uplink takes, and packets that the kernel dropped for their size.
 *
 *     tapb9a1: dropped over-mtu packet: 8950 > 1450
 */
const Dropped = z.object({
  line: z.int(),
  interface: z.string(),
  /** Of the packet, bytes. */
  size: z.int(),
  mtu: z.int(),
  age: z.number().optional(),
});
const Tunnel = z.object({
  /** The tunnel's own line. */
  line: z.int(),
  interface: z.string(),
  /** "vxlan", "ipip", "wireguard". */
  kind: z.string(),
  mtu: z.int(),
  underlay: z.string(),
  underlayMtu: z.int(),
  /** Bytes of outer headers: VXLAN 50 (IPv6 70), IP in IP 20, WireGuard 60 (IPv6 80). */
  overhead: z.int(),
  /** The largest MTU that fits: underlayMtu - overhead. */
  limit: z.int(),
  fits: z.boolean(),
  /** Routes in use that leave through it. */
  routes: z.int(),
});
const Pods = z.object({
  /** Of the pod's interface. */
  line: z.int(),
  interface: z.string(),
  mtu: z.int(),
  /** Interface on which packets of pods leave the node: the uplink, or a tunnel. */
  towards: z.string(),
  towardsMtu: z.int(),
  /** True if `towards` is a tunnel. */
  tunnel: z.boolean(),
});
/** Pings of one target: what was too large to arrive, and nobody said so. Only of addresses that are not of the internet, where somebody may refuse large pings. */
const Ladder = z.object({
  /** Of the ping that was lost. */
  line: z.int(),
  target: z.string(),
  /** Of the smallest packet that was lost, with its headers; bytes. */
  lost: z.int(),
  /** Of the largest one that was answered. */
  passed: z.int(),
  /** True if of the pings only the answers were counted: somebody may have said what is too large, and whoever listens sends less. */
  unheard: z.boolean().optional(),
});
const MtuConflict = z.object({
  drops: z.array(Dropped),
  ladders: z.array(Ladder),
  tunnels: z.array(Tunnel),
  /** Pods' interfaces whose MTU is larger than that of the interface they send to. One row per pair of sizes, not per pod. */
  pods: z.array(Pods),
});
type Tunnel = z.infer<typeof Tunnel> & Row;
type Pods = z.infer<typeof Pods> & Row;

interface Sources {
  readonly link?: { rows: readonly (Link & Row)[]; vxlans: readonly ({ interface: string; underlay?: string; local?: string; external: boolean } & Row)[] };
  readonly route?: { rows: readonly (Route & Row)[] };
  readonly rule?: { rows: readonly (Rule & Row)[] };
  readonly address?: { rows: readonly (Address & Row)[] };
  readonly "kernel-log"?: Placed<KernelLog>;
  readonly ping?: { rows: readonly PingRun[] };
}
type PingRun = Row & { target: string; size: number; whole: boolean; sent: number; received: number; tooLarge: number; errors?: number; counted?: true };

const OVER_MTU = /(?:^|\s)(\S{1,15}): dropped over-mtu packet: (\d{1,6}) > (\d{1,6})/;
/** Tunnels that CNIs name alike everywhere, for listings without -d. Cilium's and OVS's take the size from each route. */
const NAMED: readonly (readonly [RegExp, string])[] = [
  [/^(?:flannel\.\d{1,8}|vxlan\.calico)$/, "vxlan"],
  [/^(?:vxlan-v6\.calico|flannel-v6\.\d{1,8})$/, "vxlan6"],
  [/^tunl0$/, "ipip"],
  [/^(?:wireguard\.cali|flannel-wg|kilo0|cilium_wg0)$/, "wireguard"],
];
const OVERHEAD = byWord<number>({ vxlan: 50, vxlan6: 70, ipip: 20, wireguard: 60 });
const MAX_DROPS = 200;

export const mtuConflict = defineDerivedFact({
  id: "mtu-conflict",
  title: "Tunnels and pods whose packets are too large for the way they take",
  from: ["link", "route", "rule", "address", "kernel-log", "ping"],
  optional: ["ping"],
  schema: MtuConflict,
  derive(values: Sources, whole) {
    const drops: (z.infer<typeof Dropped> & Row)[] = [];
    for (const entry of values["kernel-log"]?.rows ?? []) {
      const match = drops.length < MAX_DROPS ? OVER_MTU.exec(entry.message) : null;
      if (match === null) continue;
      const { age } = entry;
      const row = { interface: match[1] as string, size: Number(match[2]), mtu: Number(match[3]) };
      drops.push({ ...placed(entry), ...row, ...present({ age }) });
    }
    const links = new Map((values.link?.rows ?? []).map((row) => [row.interface, row]));
    const routes = values.route?.rows ?? [];
    const sources = { routes, rules: values.rule?.rows ?? [], addresses: values.address?.rows ?? [], links: values.link?.rows ?? [] };
    const wayTo = (destination: string): (Link & Row) | undefined => {
      const family = addressFamily(destination);
      const answer = routes.length === 0 || family === undefined ? undefined : lookup({ family, destination, fwmark: 0 });
      return links.get(answer?.route?.interface ?? "");
    };
    const { lookup } = routeTables(sources);
    // of a few routes that somebody picked (`ip route | grep vxlan`) the default one may be missing
    const unrouted = routes.length === 0 || !whole.has("route");
    const uplink = wayTo("198.51.100.1") ?? (unrouted && (whole.has("link") || links.has("lo")) ? widest([...links.values()]) : undefined);
    const tunnels: Tunnel[] = [];
    for (const row of links.values()) {
      const tunnel = tunnelOf(row, values, uplink, links, wayTo);
      if (tunnel !== undefined) tunnels.push(tunnel);
    }
    return {
      drops,
      ladders: laddersOf(values.ping?.rows ?? [], values.link?.rows ?? [], whole.has("link"), networksOf(values)),
      tunnels,
      pods: podsOf([...links.values()], tunnels, uplink, whole.has("route")),
    };
  },
});

/** Larger packets are of jumbo frames, of which a network may have none. */
const ETHERNET = 1500;

/** The first half of an IPv6 prefix: what a provider or a cloud gives is a part of one such network. "" of anything else, and of what is no global address. */
const networkOf = (address: string): string => /^(2[0-9a-f]{3}:[0-9a-f]{1,4}):/i.exec(address)?.[1]?.toLowerCase() ?? "";

/** The networks that the node is in: clusters of IPv6 often have global addresses, which do not tell what is far away. */
function networksOf({ address, route }: Sources): ReadonlySet<string> {
  const own = (address?.rows ?? []).map((row) => networkOf(row.address));
  const near = (route?.rows ?? []).flatMap((row) => (row.gateway === undefined && row.type === "unicast" ? networkOf(row.prefix) : []));
  return new Set([...own, ...near].filter((network) => network !== ""));
}

/** A row per target that answers small packets and none of a larger size, although an interface of the node could send that size. */
function laddersOf(runs: readonly PingRun[], links: readonly Link[], allLinks: boolean, networks: ReadonlySet<string>): (z.infer<typeof Ladder> & Row)[] {
  const found: (z.infer<typeof Ladder> & Row)[] = [];
  for (const target of new Set(runs.map((run) => run.target))) {
    const headers = target.includes(":") ? 48 : 28;
    const here = runs.filter((run) => run.target === target);
    const passed = here.filter((run) => run.received > 0).reduce((most, run) => Math.max(most, run.size), -1);
    // Linux lets nobody cut what its interface can send, with -M do or without; where the interfaces are not known, only the option tells
    const silent = here.filter(
      (run) =>
        (run.whole || links.some((row) => row.mtu !== undefined)) && run.received === 0 && run.tooLarge === 0 && run.errors === undefined && run.size > passed,
    );
    const lost = silent.toSorted((one, other) => one.size - other.size)[0];
    // one packet may get lost anywhere
    if (silent.reduce((sum, run) => sum + run.sent, 0) < 2) continue;
    if (passed < 0 || lost === undefined || !(isPrivate(target) || networks.has(networkOf(target)))) continue;
    const size = lost.size + headers;
    // a brief listing (`ip -br link`) tells no sizes
    const sized = links.some((row) => row.interface !== "lo" && row.mtu !== undefined);
    // what nobody may cut left the node, by an interface that was not shown
    const left = !allLinks && lost.whole && size <= ETHERNET;
    const sendable = left || !sized ? size <= ETHERNET : links.some((row) => row.interface !== "lo" && (row.mtu ?? 0) >= size);
    const counted = silent.some((run) => run.counted === true);
    // then it must be seen that the pods may send as much: what is larger than their own MTU never left them
    if (counted && (!sized || links.some((row) => isPodInterface(row.interface, links) && (row.mtu ?? 0) < size))) continue;
    const unheard = counted ? { unheard: true as const } : {};
    if (sendable && size > 600) found.push({ ...placed(lost), target, lost: size, passed: passed + headers, ...unheard });
  }
  return found;
}

/** What may lie below a tunnel is neither inside of the node nor a tunnel. */
const INNER =
  /^(?:lo|flannel|vxlan|vtep|tunl|cni0|cbr0|kube-|docker|br-[0-9a-f]{12}|virbr|veth|cali|lxc|cilium_|wireguard|kilo|dummy|nodelocaldns|ifb|tailscale|wg|tun|tap|vnet|weave|antrea|geneve)/;

/**
 * Where no routes were listed it is not known which interface a tunnel is on; what is too large for the one that takes the most is so for all. Its MTU must
 * be an uplink's: the list has to name all interfaces. One that names the loopback device does (`netstat -i`, `ip a | grep mtu`): nobody asks for that one.
 */
const widest = (links: readonly (Link & Row)[]): (Link & Row) | undefined =>
  links
    .filter((row) => row.up && row.mtu !== undefined && !INNER.test(row.interface) && !isVpn(row))
    .toSorted((one, other) => (other.mtu ?? 0) - (one.mtu ?? 0))[0];

/** The devices that Open vSwitch sends through (vxlan_sys_4789 65000, Weave's vxlan-6784 65470) take everything: what fits is seen to before them. */
const SIZELESS = 64_000;

function tunnelOf(
  row: Link & Row,
  values: Sources,
  uplink: (Link & Row) | undefined,
  links: ReadonlyMap<string, Link & Row>,
  wayTo: (destination: string) => (Link & Row) | undefined,
): Tunnel | undefined {
  const routes = values.route?.rows ?? [];
  const vxlan = values.link?.vxlans.find((other) => other.interface === row.interface);
  const kind = vxlan?.local?.includes(":") ? "vxlan6" : (NAMED.find(([name]) => name.test(row.interface))?.[1] ?? (vxlan === undefined ? row.kind : "vxlan"));
  const overhead = OVERHEAD[kind ?? ""];
  if (overhead === undefined || kind === undefined || vxlan?.external === true || !row.up || row.mtu === undefined || row.mtu > SIZELESS) return undefined;
  const local = values.address?.rows.find((address) => address.address === vxlan?.local)?.interface;
  // the kernel's own fe80::/64 is on every device; BusyBox and `route` do not tell who made it
  const used = routes.filter(
    (route) => route.interface === row.interface && route.type === "unicast" && route.protocol !== "kernel" && !/^f[ef]/.test(route.prefix),
  );
  // the next hop of an IP in IP tunnel is the other node itself
  const peer = kind === "ipip" ? used.find((route) => route.gateway !== undefined)?.gateway : undefined;
  const below = links.get(vxlan?.underlay ?? local ?? "");
  // a VPN that takes the default route may leave out other tunnels by marks: what it carries is not known
  const guess = uplink !== undefined && isVpn(uplink) ? undefined : uplink;
  const underlay = below ?? (peer === undefined ? guess : wayTo(peer));
  if (underlay?.mtu === undefined || underlay.interface === row.interface) return undefined;
  const limit = underlay.mtu - overhead;
  return {
    ...placed(row),
    interface: row.interface,
    kind,
    mtu: row.mtu,
    underlay: underlay.interface,
    underlayMtu: underlay.mtu,
    overhead,
    limit,
    // a route may hold its own, smaller size
    fits: row.mtu <= limit || (used.length > 0 && used.every((route) => route.mtu !== undefined && route.mtu <= limit)),
    routes: used.filter((route) => (prefixBits(route.prefix)?.length ?? 0) > 0).length,
  };
}

/** WireGuard, OpenVPN, Tailscale; without -d the names that people and programs give them. */
const isVpn = (row: Link): boolean => /^(?:wireguard|tun)$/.test(row.kind ?? "") || /^(?:wg|tun|tailscale|utun)[\w-]{0,12}$/.test(row.interface);

/** Bridges of a CNI that gives every pod a port. */
const POD_BRIDGE = /^(?:cni0|cbr0|kube-bridge)$/;
const CALICO_POD = /^cali[0-9a-f]{11}$/;
/** Bridges of container engines beside the CNI: what is on them leaves by the uplink, never by the CNI's tunnel. */
const ENGINE_BRIDGE = /^(?:docker\d|br-|virbr|lxdbr|podman|cni-podman|nerdctl)/;

const isNamed = (name: string): boolean => NAMED.some(([pattern]) => pattern.test(name));

/** Pods send to other nodes through the tunnel if there is one in use, else through the uplink. */
function podsOf(links: readonly (Link & Row)[], tunnels: readonly Tunnel[], uplink: (Link & Row) | undefined, allRoutes: boolean): Pods[] {
  // Cilium's routes inside the pod hold the size; its interfaces do not tell.
  if (links.some((row) => row.interface === "cilium_host")) return [];
  const named = tunnels.filter((row) => isNamed(row.interface));
  const used = named.filter((row) => row.routes > 0);
  // IPv4 and IPv6 have a tunnel each, and which of them a pod uses is not known: what is too large for the one that takes most is so for all. Of a list of routes
  // whose end is missing, one without a route may be in use, too
  const tunnel = used.length === 0 ? undefined : (allRoutes ? used : named).toSorted((one, other) => other.mtu - one.mtu)[0];
  // nor of one of which it is not known what lies below it, because addresses are painted over
  const unplaced = (row: Link): boolean => row.up && isNamed(row.interface) && tunnels.every((other) => other.interface !== row.interface);
  const wider = !allRoutes && links.some((row) => unplaced(row) && (row.mtu ?? 0) > (tunnel?.mtu ?? 0));
  const bridged = links.some((row) => POD_BRIDGE.test(row.master ?? ""));
  // where Calico makes the pods' devices, these have its names
  const byCalico = links.some((row) => CALICO_POD.test(row.interface));
  // ifconfig names no bridge: a veth may be that of an engine's container, or no pod's if it has another size than the bridge of the pods
  const noMasters = links.every((row) => row.master === undefined);
  const unbridged = noMasters && links.some((row) => ENGINE_BRIDGE.test(row.interface) && row.up && row.carrier);
  const bridge = noMasters ? links.find((row) => POD_BRIDGE.test(row.interface) && row.up && row.carrier) : undefined;
  const pods = new Map<string, Pods>();
  for (const row of links) {
    // what has no other end sends nothing
    if (row.mtu === undefined || !row.up || !row.carrier || !isPodInterface(row.interface, links)) continue;
    // where a CNI gives every pod a port of its bridge, a port of another bridge (Open vSwitch, LXD, a network of Multus) is something else's
    if (bridged && row.master !== undefined && !POD_BRIDGE.test(row.master) && !ENGINE_BRIDGE.test(row.master)) continue;
    // a link that somebody made beside a CNI which gives every pod a port of its bridge, or a device of a name of its own
    const unlike = row.interface.startsWith("veth") && (unbridged || (bridge?.mtu !== undefined && bridge.mtu !== row.mtu));
    const beside = row.master === undefined && (bridged || (byCalico && !CALICO_POD.test(row.interface)) || unlike);
    const byTunnel = tunnel !== undefined && !ENGINE_BRIDGE.test(row.master ?? "") && !beside;
    const towards = byTunnel ? tunnel : uplink;
    const key = `${row.mtu} ${towards?.interface}`;
    if (towards?.mtu === undefined || row.mtu <= towards.mtu || pods.has(key) || (byTunnel && wider)) continue;
    const way = { towards: towards.interface, towardsMtu: towards.mtu, tunnel: byTunnel };
    pods.set(key, { ...placed(row), interface: row.interface, mtu: row.mtu, ...way });
  }
  return [...pods.values()];
}
