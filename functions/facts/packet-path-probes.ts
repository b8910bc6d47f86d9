import { CARD } from "./card-name.ts";
import type { Row } from "./fact.ts";
import { addressFamily, type Family } from "./ip-address.ts";
import { overlap, rangeOf } from "./ip-range.ts";
import { type Packet, SOME_POD, SOME_UPLINK, someUplink } from "./packet-path-packet.ts";

/** What probes are made of: rows of link, address, route and fdb, as far as they are needed. */
export interface NodeView {
  readonly links: readonly (Row & {
    readonly interface: string;
    readonly up: boolean;
    readonly carrier?: boolean;
    readonly master?: string;
    readonly kind?: string;
  })[];
  readonly vxlans: readonly (Row & { readonly interface: string; readonly local?: string; readonly underlay?: string; readonly port?: number })[];
  readonly addresses: readonly (Row & {
    readonly interface: string;
    readonly family: Family;
    readonly address: string;
    readonly prefixLength?: number;
    readonly scope?: string;
  })[];
  readonly routes: readonly (Row & {
    readonly family: Family;
    readonly type: string;
    readonly prefix: string;
    readonly gateway?: string;
    readonly interface?: string;
    readonly metric?: number;
    readonly protocol?: string;
    readonly table: string;
  })[];
  readonly fdb: readonly (Row & { readonly interface: string; readonly destination?: string })[];
}

export type Network = "kubernetes" | "docker" | "libvirt" | "lxd" | "bridge";

/** An interface behind which pods, containers or virtual machines are. */
export interface PodInterface {
  readonly row: Row;
  readonly interface: string;
  readonly network: Network;
  /** "bridge": several are behind it; "port": one is. */
  readonly kind: "bridge" | "port";
}

export type ProbeName = "pod-to-outside" | "outside-to-pod" | "pod-to-remote-pod" | "remote-pod-to-pod" | "bridged" | "overlay-in" | "overlay-out";

export interface Probe {
  readonly name: ProbeName;
  readonly network: Network;
  /** Of overlay probes: the tunnel's interface. */
  readonly overlay?: string;
  readonly packet: Packet;
}

/** Stands for any address outside of the cluster (RFC 5737, RFC 3849): nobody has it. */
const OUTSIDE: Readonly<Record<Family, string>> = { ipv4: "198.51.100.10", ipv6: "2001:db8:ffff::10" };
/** A rule that names it, or a set, is about some addresses outside, not about all. */
export const SOME_OUTSIDE = /198\.51\.100\.|2001:db8:|match-set|(?:saddr|daddr)(?: !=)? @/;

/** At most this many interfaces of a kind: the others of it are treated alike. */
const MAX_ALIKE = 2;

const KUBERNETES_PORT = /^(?:lxc[0-9a-f]{8,13}|cali[0-9a-f]{8,11}|eni[0-9a-f]{8,12}|azv[0-9a-f]{8,12}|gke[0-9a-f]{8,12})$/;
const KUBERNETES_BRIDGE = /^(?:cni0|cbr0|kube-bridge|weave|azure0)$/;
const DOCKER_BRIDGE = /^(?:docker0|br-[0-9a-f]{12}|docker_gwbridge|(?:cni-)?podman\d{1,3}|nerdctl\d{1,3})$/;
const LIBVIRT_BRIDGE = /^virbr\d{1,4}$/;
const LXD_BRIDGE = /^(?:lxdbr|incusbr|lxcbr)\d{1,4}$/;
/** Tunnels between nodes whose packets go through FORWARD. Cilium's do not: eBPF takes them. */
const POD_OVERLAY = /^(?:flannel(?:-v6)?\.\d{1,8}|flannel\d|flannel-wg(?:-v6)?|vxlan(?:-v6)?\.calico|tunl0|wireguard\.cali)$/;
/** Network cards, and bonds of them; and tunnels that may be the way out instead. */
const UPLINK = new RegExp(String.raw`^(?:${CARD}|bond\d|team\d|br-ex$)`);
const VPN = /^(?:wg|tun|tap|tailscale|zt|ppp|nebula|wt)\d/;
/** Ports that belong to virtual machines or containers. */
const GUEST_PORT = /^(?:vnet\d|tap|veth|fwpr|macvtap|vif\d)/;

/** Which tool made an interface, as its name tells; undefined for the node's own. */
function networkOf(name: string): Pick<PodInterface, "network" | "kind"> | undefined {
  if (KUBERNETES_PORT.test(name)) return { network: "kubernetes", kind: "port" };
  if (KUBERNETES_BRIDGE.test(name)) return { network: "kubernetes", kind: "bridge" };
  if (DOCKER_BRIDGE.test(name)) return { network: "docker", kind: "bridge" };
  if (LIBVIRT_BRIDGE.test(name)) return { network: "libvirt", kind: "bridge" };
  return LXD_BRIDGE.test(name) ? { network: "lxd", kind: "bridge" } : undefined;
}

/** Whose traffic comes and goes by an interface of this name, tunnels between nodes included; undefined for the node's own. */
export const trafficOf = (name: string): Network | undefined => (POD_OVERLAY.test(name) ? "kubernetes" : networkOf(name)?.network);

/** What tells of a bridge whose name says nothing that it is the pods'. */
export interface BridgeHints {
  /** Bridges that CNI files name. */
  readonly named: ReadonlySet<string>;
  /** FORWARD has the rules of kube-proxy: what containers are on, and no other program claims, is the pods'. */
  readonly kubeProxy: boolean;
  /** Whether a program for containers or machines has rules for the interface: Docker, Podman, libvirt, LXD. */
  readonly claimed: (name: string) => boolean;
  /** Prefixes of pods that flannel noted. */
  readonly ranges: readonly string[];
}

const KUBERNETES = { port: { network: "kubernetes", kind: "port" }, bridge: { network: "kubernetes", kind: "bridge" } } as const;

/** The interfaces behind which pods, containers and machines are. A veth with a route to one address is a pod's too (ptp, kindnet). Those that are down are left out. */
export function podInterfaces(view: NodeView, hints: BridgeHints): PodInterface[] {
  const rows = new Map<string, Row>();
  const down = new Set<string>();
  for (const link of view.links) {
    rows.set(link.interface, link);
    if (!link.up) down.add(link.interface);
  }
  for (const address of view.addresses) if (!rows.has(address.interface)) rows.set(address.interface, address);
  const known = new Map<string, Pick<PodInterface, "network" | "kind">>();
  for (const route of view.routes) {
    if (route.interface === undefined) continue;
    if (!rows.has(route.interface)) rows.set(route.interface, route);
    if (route.table === "main" && route.type === "unicast" && isHost(route.prefix) && route.interface.startsWith("veth"))
      known.set(route.interface, KUBERNETES.port);
  }
  for (const name of rows.keys()) {
    const named = networkOf(name);
    if (named !== undefined) known.set(name, named);
  }
  // a node has one network of pods; of a list that was cut, none may have been seen
  if (![...known.values()].some(({ network }) => network === "kubernetes"))
    for (const name of bridgesOfPods(view, hints, rows)) known.set(name, KUBERNETES.bridge);
  const found: PodInterface[] = [];
  const counts = new Map<string, number>();
  for (const [name, row] of [...rows].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const own = known.get(name);
    if (own === undefined || down.has(name)) continue;
    const group = own.kind === "port" ? name.replace(/[0-9a-f]{6,}$/, "") : name;
    const count = (counts.get(group) ?? 0) + 1;
    counts.set(group, count);
    if (count <= MAX_ALIKE) found.push({ row, interface: name, ...own });
  }
  return found;
}

/** Bridges of pods that are not called like one. */
function bridgesOfPods(view: NodeView, hints: BridgeHints, rows: ReadonlyMap<string, Row>): string[] {
  // Podman and nerdctl write CNI files, too
  const found = [...rows.keys()].filter((name) => hints.named.has(name) && (name === "docker0" || networkOf(name) === undefined));
  if (found.length === 0 && rows.has("docker0") && isOfFlannel(view, hints, [...rows.keys()])) found.push("docker0");
  if (found.length > 0 || !hints.kubeProxy) return found;
  const uplinks = new Set(view.routes.filter((route) => route.prefix.endsWith("/0")).map((route) => route.interface));
  const ports = new Map<string, string[]>();
  for (const { interface: name, master } of view.links) {
    if (master === undefined) continue;
    const list = ports.get(master);
    if (list === undefined) ports.set(master, [name]);
    else list.push(name);
  }
  return [...ports].flatMap(([bridge, names]) => {
    const kind = view.links.find((link) => link.interface === bridge)?.kind;
    const isBridge = kind === "bridge" || (kind === undefined && rows.has(bridge) && bridge !== "ovs-system");
    // a bridge with a card on it is the host's own network
    const ofContainers = names.every((name) => name.startsWith("veth")) && !uplinks.has(bridge);
    return isBridge && ofContainers && networkOf(bridge) === undefined && !hints.claimed(bridge) ? [bridge] : [];
  });
}

/**
 * Of old, Docker's own bridge was the pods': flannel gave it its prefix, one beside those of the other nodes. Where no prefix is known, flannel's device beside it
 * says so. Without a carrier nothing runs behind it.
 */
function isOfFlannel(view: NodeView, { ranges }: BridgeHints, names: readonly string[]): boolean {
  if (view.links.some((link) => link.interface === "docker0" && link.carrier === false)) return false;
  const tunnels = new Set(names.filter((name) => name.startsWith("flannel") && POD_OVERLAY.test(name)));
  const own = rangeOf(addressesBehind(view, "ipv4", "docker0") ?? "");
  const prefixes = [
    ...ranges,
    ...view.addresses.flatMap(({ interface: name, address, prefixLength = 32 }) => (tunnels.has(name) ? [`${address}/${prefixLength}`] : [])),
    ...view.routes.flatMap(({ interface: name = "", prefix }) => (tunnels.has(name) ? [prefix] : [])),
  ].flatMap((prefix) => rangeOf(prefix) ?? []);
  if (own === undefined || prefixes.length === 0) return tunnels.size > 0;
  return prefixes.some((range) => overlap(own, range) !== "apart" || (range.family === "ipv4" && own.low >> 16n === range.low >> 16n));
}

const isHost = (prefix: string): boolean => prefix.endsWith("/32") || prefix.endsWith("/128");

/** Stands for the pods of a node of which only the firewall is known. `row`: what says that there are pods. */
export const somePod = (row: Row): PodInterface => ({ row, interface: SOME_POD, network: "kubernetes", kind: "port" });

/** The packets that stand for what the pods, containers and machines of this node do, and what its tunnels carry. */
export function probesOf(view: NodeView, pods: readonly PodInterface[]): Probe[] {
  const probes: Probe[] = [];
  for (const family of ["ipv4", "ipv6"] as const) {
    const uplink = uplinkOf(view, family);
    for (const pod of pods) {
      const source = addressesBehind(view, family, pod.interface);
      if (family === "ipv6" && source === undefined) continue;
      // a node that shows its routes and has no default one does not reach the outside
      const way = uplink ?? (view.routes.length === 0 ? someUplink(onlyCard(view, family)) : undefined);
      if (way !== undefined && way !== pod.interface) probes.push(...toOutside(family, pod, wayBack(view, family, pod.interface), source, way));
      if (pod.network === "kubernetes" && !pod.interface.startsWith("lxc")) probes.push(...betweenNodes(view, family, pod, source, uplink));
    }
    probes.push(...overlays(view, family, uplink));
  }
  probes.push(...bridged(view));
  return probes;
}

/** The interface of the default route. */
function uplinkOf(view: NodeView, family: Family): string | undefined {
  const defaults = view.routes.filter((route) => route.family === family && route.table === "main" && route.type === "unicast" && route.prefix.endsWith("/0"));
  return defaults.sort((a, b) => (a.metric ?? 0) - (b.metric ?? 0))[0]?.interface;
}

/** The one network card with an address, where all interfaces were listed: `lo` is among them. */
function onlyCard({ links, addresses }: NodeView, family: Family): string | undefined {
  const names = new Set([...links, ...addresses].map((row) => row.interface));
  if (!names.has("lo") || [...names].some((name) => VPN.test(name))) return undefined;
  const cards = [...names].filter((name) => {
    const link = links.find((row) => row.interface === name);
    if (!UPLINK.test(name) || link?.up === false || link?.master !== undefined) return false;
    const own = addresses.filter((row) => row.interface === name && row.family === family);
    return addresses.length === 0 || own.some((row) => row.scope !== "link" && !/^fe[89ab]/.test(row.address));
  });
  return cards.length === 1 ? cards[0] : undefined;
}

/** What is known of the addresses behind an interface: one of them, or their prefix. */
function addressesBehind(view: NodeView, family: Family, name: string): string | undefined {
  const host = view.routes.find(
    (route) => route.family === family && route.interface === name && route.table === "main" && route.type === "unicast" && isHost(route.prefix),
  );
  if (host !== undefined) return host.prefix.slice(0, host.prefix.indexOf("/"));
  const router = name.startsWith("lxc") ? "cilium_host" : name;
  // `ip -br addr` tells no scope, but every interface has such an IPv6 address, which is no pods' network
  const own = view.addresses.find((row) => row.interface === router && row.family === family && row.scope !== "link" && !/^fe[89ab]/.test(row.address));
  if (own === undefined) return view.routes.find((route) => route.family === family && route.interface === name && isOwnNetwork(route))?.prefix;
  if (own.prefixLength === undefined) return undefined;
  if (!isHost(`/${own.prefixLength}`)) return `${own.address}/${own.prefixLength}`;
  // Cilium's own address is one of its prefix, to which a route leads
  const range = rangeOf(own.address);
  const wider = view.routes.find((route) => {
    const covers = rangeOf(route.prefix);
    const mine = route.family === family && route.interface === router && !isHost(route.prefix) && !route.prefix.endsWith("/0");
    return mine && range !== undefined && covers !== undefined && overlap(range, covers) === "inside";
  });
  return wider?.prefix;
}

/** The route that the kernel makes of an interface's address. */
const isOwnNetwork = ({ table, type, gateway, prefix }: NodeView["routes"][number]): boolean =>
  table === "main" && type === "unicast" && gateway === undefined && !/\/0$|^f[ef]/.test(prefix);

/** Where packets for a pod leave: Cilium routes them to its own device, unless each pod has a route. */
function wayBack(view: NodeView, family: Family, name: string): string {
  if (!name.startsWith("lxc")) return name;
  return view.routes.some((route) => route.family === family && route.interface === name && isHost(route.prefix)) ? name : "cilium_host";
}

/** HTTPS from a pod to the world, its answer, and a connection from the world to the pod. */
function toOutside(family: Family, pod: PodInterface, back: string, source: string | undefined, uplink: string): Probe[] {
  const base = { network: pod.network };
  const there = {
    family,
    hook: "forward",
    inInterface: pod.interface,
    outInterface: uplink,
    destination: OUTSIDE[family],
    protocol: "tcp",
    destinationPort: 443,
  } as const;
  const here = { family, hook: "forward", inInterface: uplink, outInterface: back, source: OUTSIDE[family], protocol: "tcp" } as const;
  const from = source === undefined ? {} : { source };
  const to = source === undefined ? {} : { destination: source };
  return [
    { ...base, name: "pod-to-outside", packet: { ...there, ...from, state: "NEW" } },
    { ...base, name: "pod-to-outside", packet: { ...there, ...from, state: "ESTABLISHED" } },
    { ...base, name: "outside-to-pod", packet: { ...here, ...to, sourcePort: 443, state: "ESTABLISHED" } },
    { ...base, name: "outside-to-pod", packet: { ...here, ...to, state: "NEW" } },
  ];
}

/** Between a pod here and one on another node, both ways, over each tunnel that leads to pods, or over the uplink where they are routed. */
function betweenNodes(view: NodeView, family: Family, pod: PodInterface, source: string | undefined, uplink: string | undefined): Probe[] {
  const remotes = new Map<string, string>();
  const own = source === undefined ? undefined : rangeOf(source);
  for (const route of view.routes) {
    const { interface: name, prefix } = route;
    if (route.family !== family || route.table !== "main" || route.type !== "unicast" || name === undefined || prefix.endsWith("/0") || remotes.has(name))
      continue;
    const range = rangeOf(prefix);
    const tunnel = POD_OVERLAY.test(name);
    const relation = own === undefined || range === undefined ? "apart" : overlap(own, range);
    // flannel's UDP backend and WireGuard have one route to all pods, this node's among them
    if (range === undefined || (relation !== "apart" && !(tunnel && relation === "inside"))) continue;
    const routed =
      name === uplink &&
      route.gateway !== undefined &&
      !isHost(prefix) &&
      (route.protocol === "bird" || (own !== undefined && own.low >> 16n === range.low >> 16n));
    if ((tunnel && (route.gateway !== undefined || relation === "inside")) || routed) remotes.set(name, prefix);
  }
  const tunnels = new Map<string, string | undefined>(remotes);
  // without the routes, the tunnels are known by their names, and the other nodes' prefixes are not
  if (view.routes.length === 0 && family === "ipv4") {
    const down = new Set(view.links.filter((link) => !link.up).map((link) => link.interface));
    for (const { interface: name } of [...view.links, ...view.addresses])
      if (POD_OVERLAY.test(name) && !name.includes("-v6") && !down.has(name)) tunnels.set(name, undefined);
  }
  return [...tunnels].slice(0, MAX_ALIKE).flatMap(([name, prefix]): Probe[] => {
    const base = { family, hook: "forward", protocol: "tcp", destinationPort: 8080, state: "NEW" } as const;
    const [mine, theirs] = [source === undefined ? {} : { source }, source === undefined ? {} : { destination: source }];
    const [to, from] = [prefix === undefined ? {} : { destination: prefix }, prefix === undefined ? {} : { source: prefix }];
    return [
      { name: "pod-to-remote-pod", network: pod.network, packet: { ...base, ...mine, inInterface: pod.interface, outInterface: name, ...to } },
      { name: "remote-pod-to-pod", network: pod.network, packet: { ...base, ...theirs, inInterface: name, outInterface: pod.interface, ...from } },
    ];
  });
}

/** What carries the packets of each tunnel between nodes: VXLAN and Geneve over UDP, WireGuard, IP in IP. */
function overlays(view: NodeView, family: Family, uplink: string | undefined): Probe[] {
  const probes: Probe[] = [];
  for (const { interface: overlay, kind, up } of view.links) {
    if (!up) continue;
    const vxlan = view.vxlans.find((row) => row.interface === overlay);
    const carrier = carrierOf(overlay, kind, vxlan?.port);
    // of a node whose routes or addresses nobody listed (`ip -br link`) it comes by some card to some address
    const through = vxlan?.underlay ?? uplink ?? (view.routes.length === 0 ? SOME_UPLINK : undefined);
    if (carrier === undefined || through === undefined) continue;
    const local = vxlan?.local ?? view.addresses.find((row) => row.interface === through && row.family === family && row.scope !== "link")?.address;
    const hidden = local === undefined && family === "ipv4" && (view.addresses.length === 0 || through === SOME_UPLINK);
    if (!hidden && (local === undefined || addressFamily(local) !== family)) continue;
    // a tunnel that leads nowhere is a leftover, or the device that a module makes by itself
    if (carrier.protocol === "ipencap" && !view.routes.some((route) => route.interface === overlay && route.gateway !== undefined)) continue;
    const peer = view.fdb.find((row) => row.interface === overlay && row.destination !== undefined && addressFamily(row.destination) === family)?.destination;
    const [from, to] = peer === undefined ? [{}, {}] : [{ source: peer }, { destination: peer }];
    const [atUs, byUs] = local === undefined ? [{}, {}] : [{ destination: local }, { source: local }];
    for (const state of ["NEW", "ESTABLISHED"] as const) {
      const base = { family, state, ...carrier };
      probes.push({
        name: "overlay-in",
        network: "kubernetes",
        overlay,
        packet: { ...base, hook: "input", inInterface: through, ...atUs, ...from },
      });
      probes.push({
        name: "overlay-out",
        network: "kubernetes",
        overlay,
        packet: { ...base, hook: "output", outInterface: through, ...byUs, ...to },
      });
    }
  }
  return probes;
}

/** Protocol and port of a tunnel between nodes; undefined for other interfaces. Ports that nothing shows are the tools' defaults. */
function carrierOf(name: string, kind: string | undefined, port: number | undefined): Pick<Packet, "protocol" | "sourcePort" | "destinationPort"> | undefined {
  if (/^(?:flannel(?:-v6)?\.\d{1,8}|vxlan(?:-v6)?\.calico|cilium_vxlan|vxlan_sys_\d{1,5}|weave-vxlan)$/.test(name)) {
    const usual = name.includes("calico") || name.startsWith("vxlan_sys") ? 4789 : 8472;
    return { protocol: "udp", destinationPort: port ?? usual };
  }
  if (name === "cilium_geneve" || /^genev_sys_\d{1,5}$/.test(name) || kind === "geneve") return { protocol: "udp", destinationPort: port ?? 6081 };
  // WireGuard uses one port for both ends
  if (/^(?:flannel-wg|wireguard\.cali)$/.test(name)) return { protocol: "udp", sourcePort: 51_820, destinationPort: 51_820 };
  if (name === "cilium_wg0") return { protocol: "udp", sourcePort: 51_871, destinationPort: 51_871 };
  return name === "tunl0" ? { protocol: "ipencap" } : undefined;
}

/** Frames that a bridge passes from port to port, for bridges with machines or containers on them. */
function bridged(view: NodeView): Probe[] {
  const ports = new Map<string, string[]>();
  for (const { interface: name, master, up } of view.links) {
    if (master === undefined || !up) continue;
    const list = ports.get(master);
    if (list === undefined) ports.set(master, [name]);
    else list.push(name);
  }
  return [...ports].flatMap(([bridge, names]): Probe[] => {
    const kind = view.links.find((link) => link.interface === bridge)?.kind;
    const guests = names.filter((name) => GUEST_PORT.test(name));
    const guest = guests[0];
    const other = names.find((name) => !guests.includes(name)) ?? guests[1];
    const isBridge = kind === "bridge" || (kind === undefined && guest !== undefined);
    if (!isBridge || guest === undefined || other === undefined) return [];
    const own = view.addresses.find((address) => address.interface === bridge && address.family === "ipv4");
    const prefix = own?.prefixLength === undefined ? undefined : `${own.address}/${own.prefixLength}`;
    const network = networkOf(bridge)?.network ?? "bridge";
    const base = { family: "ipv4", hook: "forward", inInterface: bridge, outInterface: bridge, protocol: "tcp", destinationPort: 443, state: "NEW" } as const;
    const [from, to] = [prefix === undefined ? {} : { source: prefix }, prefix === undefined ? {} : { destination: prefix }];
    return [
      { name: "bridged", network, packet: { ...base, ...from, bridged: { inPort: guest, outPort: other } } },
      { name: "bridged", network, packet: { ...base, ...to, bridged: { inPort: other, outPort: guest } } },
    ];
  });
}
