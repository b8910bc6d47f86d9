import { z } from "zod";
import type { Address } from "./address.ts";
import type { AgentLog } from "./agent-log.ts";
import type { Pods } from "./cluster-pod.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { prefixBits, within } from "./ip-bits.ts";
import type { Link } from "./link.ts";
import { placed } from "./placed.ts";
import type { Route } from "./route.ts";

/**
 * Devices of a CNI that does not run on the node any more, and what of the running CNI's traffic they take.
 *
 *     10.42.4.0/24 dev kube-bridge proto kernel scope link src 10.42.4.1 linkdown       beside Cilium's 10.42.4.0/22 dev cilium_host
 */
const Device = z.object({ line: z.int(), interface: z.string(), cni: z.string() });
const Way = z.object({ line: z.int(), interface: z.string(), prefix: z.string() });
const Bridge = z.object({ line: z.int(), interface: z.string(), address: z.string() });
const FormerCni = z.object({
  /** Main devices that are up, of CNIs whose agent does not run while another one's does. */
  devices: z.array(Device),
  /** Routes by a gateway through them. */
  routes: z.array(Way),
  /** Bridges for pods without a port, with an address whose prefix holds pods of the running CNI, or lies in their range. */
  bridges: z.array(
    Bridge.extend({
      /** Its route is more specific than the running CNI's: it takes the packets. */
      takes: z.boolean(),
    }),
  ),
  /** Routes of the running CNI that those bridges stand in the way of. */
  pods: z.array(Way),
  /** A bridge without a port that has the same prefix as another one, which has the pods. */
  twins: z.array(Bridge),
  /** The one that has them. */
  used: z.array(Bridge),
  /** A cni0 without pods whose address is not of the range that flannel has now. */
  outside: z.array(Bridge),
  /** Where that range stands: flannel's device. */
  range: z.array(Bridge),
  /** flannel's device with addresses of several ranges, of which only one is the node's now. flannel does not start so. */
  leases: z.array(Bridge),
  /** Routes through the tunnel of flannel's former backend that are more specific than the `wide` one through the device of its present one, which was made later. */
  overtaking: z.array(Way),
  wide: z.array(Way),
  /** Bridges without a pod whose subnet is what a route of BIRD sends to another node: theirs comes first. With those routes. */
  covering: z.array(Bridge),
  covered: z.array(Way),
  /** Devices that hold the port of the tunnel which another CNI's agent could not switch on, as its log says. */
  holding: z.array(z.object({ line: z.int(), interface: z.string() })),
  /** What the agent's log says of it, and the device that is down for it. */
  refused: z.array(z.object({ line: z.int() })),
  waiting: z.array(z.object({ line: z.int(), interface: z.string() })),
  /** Why a refusal is not of a former CNI's device, or not of today: a program has the usual port, or the pod of an agent runs. */
  otherwise: z.array(z.object({ line: z.int() })),
});
type FormerCni = z.infer<typeof FormerCni>;

interface Sources {
  readonly cni?: {
    agents: readonly { cni: string; command: string }[];
    absent: readonly { cni: string }[];
    devices: readonly (Row & { interface: string; cni: string; main: boolean; up: boolean })[];
    configs: readonly { cni: string; order: number }[];
  };
  readonly route?: { rows: readonly (Route & Row)[] };
  readonly address?: { rows: readonly (Address & Row)[] };
  readonly bridge?: { ports: readonly { bridge: string }[] };
  readonly link?: { rows: readonly (Link & Row)[]; vxlans: readonly (Row & { interface: string; external: boolean; port?: number })[] };
  readonly "agent-log"?: Placed<AgentLog>;
  readonly socket?: { rows: readonly (Row & { protocol: string; state: string; port?: number; process?: string })[] };
  readonly "cluster-pod"?: Placed<Pods>;
}

/** Programs that have flannel in themselves. */
const EMBEDDED = /^(?:k3s|k3s-server|k3s-agent|kubelite)$/;
/** Seconds for which a log line speaks of the present. */
const RECENT = 3600;
const BRIDGE = /^(?:cni0|cbr0|kube-bridge|weave)$/;
const TUNNEL = /^(?:cilium_vxlan|flannel\.\d{1,8}|vxlan\.calico|antrea-tun0)$/;
/** flannel's tunnel of VXLAN. */
export const TUNNEL_OF_FLANNEL = /^flannel(?:-v6)?\.\d{1,8}$/;
/** flannel's WireGuard and its old udp backend have one route for all nodes. */
const WIDE = /^flannel(?:-wg|-wg-v6|0)$/;
const CLASH =
  /RTNETLINK answers: Address already in use|(?:set interface|setting up device) (\S{1,15}?)(?:\s.{0,30}(?:to UP state|up))?: [Aa]ddress already in use/;
const OWN_PORT = /VXLAN config: .{0,40}Port=([1-9]\d{0,4}) /;
/** Where the kernel has no other: flannel's and Cilium's own. */
const USUAL_PORT = 8472;

export const formerCni = defineDerivedFact<FormerCni>({
  id: "former-cni",
  title: "Devices that a former CNI left, and what they take of the running one's traffic",
  from: ["cni", "route", "address", "bridge", "link", "agent-log", "socket", "cluster-pod"],
  optional: ["route", "address", "bridge", "link", "agent-log", "socket", "cluster-pod"],
  inPart: ["socket", "cluster-pod"],
  schema: FormerCni,
  derive(values: Sources, read) {
    const { agents = [], absent = [], devices = [] } = values.cni ?? {};
    // k3s may have been told to leave flannel out, for another CNI, which may be down just now
    const inUse = devices.some((row) => row.cni === "flannel") || (values.link?.rows ?? []).some((row) => row.interface === "cni0");
    const running = new Set(agents.flatMap(({ cni, command }) => (cni === "multus" || (EMBEDDED.test(command) && !inUse) ? [] : [cni])));
    const isGone = (name: string): boolean => running.size > 0 && absent.some((row) => row.cni === name);
    const gone = devices.filter((row) => row.main && row.up && isGone(row.cni));
    const main = (values.route?.rows ?? []).filter((row) => row.table === "main" && row.type === "unicast");
    // tunl0 is on every node with the module ipip: only Calico's routes make it one of Calico's devices
    // (`route -n`, with the flag U, does not tell who made them)
    const byBird = (row: Route): boolean => row.protocol === "bird" || (row.protocol === undefined && row.flags.includes("U"));
    const tunl = (row: Route): boolean => row.interface === "tunl0" && byBird(row) && isGone("calico") && !running.has("kube-router");
    const isRouted = (row: Route): boolean =>
      row.gateway !== undefined &&
      !row.flags.includes("linkdown") &&
      !row.prefix.endsWith("/0") &&
      (tunl(row) || gone.some((d) => d.interface === row.interface));
    const live = main.filter((row) => devices.some((d) => d.interface === row.interface && running.has(d.cni)));
    const bridges = idleBridges(values, isGone, read.has("link"))
      .flatMap(({ row, prefix }) => {
        const met = live.filter((way) => touches(way.prefix, prefix));
        return met.length === 0 ? [] : [{ row: { ...row, takes: met.some((way) => longer(prefix, way.prefix)) }, met }];
      })
      .toSorted((one, other) => Number(other.row.takes) - Number(one.row.takes));
    return {
      devices: gone.map((row) => ({ ...placed(row), interface: row.interface, cni: row.cni })),
      routes: main.filter(isRouted).map(wayOf),
      bridges: bridges.map(({ row }) => row),
      pods: [...new Set(bridges.flatMap(({ met }) => met))].slice(0, 3).map(wayOf),
      ...twinsOf(values),
      ...outsideOf(values, running, absent.length > 0),
      leases: leasesOf(values),
      ...overtakingOf(main, values.link?.rows ?? []),
      ...coveringOf(main, values),
      ...holdersOf(values),
      otherwise: otherwiseOf(values),
    };
  },
});

const wayOf = (row: Route & Row): Row & z.infer<typeof Way> => ({ ...placed(row), interface: row.interface ?? "", prefix: row.prefix });
/** What of an address tells whose range it is. */
type Bridged = Pick<Address, "interface" | "address" | "prefixLength">;
const bridgeOf = (row: Bridged & Row): Row & z.infer<typeof Bridge> => ({ ...placed(row), interface: row.interface, address: row.address });
const prefixOf = (row: Bridged): string => `${row.address}/${row.prefixLength ?? 32}`;
/** Default routes touch everything and say nothing. */
const touches = (one: string, other: string): boolean => !one.endsWith("/0") && (within(one, other) || within(other, one));
const longer = (one: string, other: string): boolean => (prefixBits(one)?.length ?? 0) > (prefixBits(other)?.length ?? 0);

const hasPort = (name: string, { bridge, link }: Sources): boolean =>
  (bridge?.ports ?? []).some((row) => row.bridge === name) || (link?.rows ?? []).some((row) => row.master === name);

const bridgeAddresses = (values: Sources): (Address & Row)[] =>
  (values.address?.rows ?? []).filter((row) => row.family === "ipv4" && row.prefixLength !== undefined && row.prefixLength < 32);

/** Bridges that a CNI made which does not run, or that no CNI which runs has a use for. cni0 is that of many plugins: the configuration must name none of them. */
function idleBridges(values: Sources, isGone: (cni: string) => boolean, allLinks: boolean): { row: Row & z.infer<typeof Bridge>; prefix: string }[] {
  const { agents = [], configs = [] } = values.cni ?? {};
  const plain =
    !agents.some((row) => /^(?:flannel|kindnet|kube-router)$/.test(row.cni)) && !configs.some((row) => row.order === 1 && /^(?:bridge|flannel)$/.test(row.cni));
  const isIdle = (name: string): boolean =>
    (name === "cni0" && plain && isGone("flannel")) || (name === "kube-bridge" && isGone("kube-router")) || (name === "weave" && isGone("weave"));
  // the list of links told whose ports there are; where nobody listed the addresses, the kernel's routes tell them
  const addresses: readonly (Bridged & Row)[] = values.address === undefined && allLinks ? bridgeRoutes(values) : bridgeAddresses(values);
  return addresses.filter((row) => isIdle(row.interface) && !hasPort(row.interface, values)).map((row) => ({ row: bridgeOf(row), prefix: prefixOf(row) }));
}

/** Where nobody listed the addresses: the routes that the kernel makes of them, `10.244.3.0/24 dev cni0 proto kernel scope link src 10.244.3.1`. */
const bridgeRoutes = (values: Sources): (Bridged & Row)[] =>
  (values.route?.rows ?? []).flatMap((row) =>
    row.protocol === "kernel" && row.table === "main" && row.family === "ipv4" && row.interface !== undefined && row.source !== undefined
      ? [{ ...placed(row), interface: row.interface, address: row.source, prefixLength: prefixBits(row.prefix)?.length ?? 32 }]
      : [],
  );

/** Two bridges for pods with one prefix: one has the pods, and the other is left over and may still take their packets. */
function twinsOf(values: Sources): Pick<FormerCni, "twins" | "used"> {
  const links = values.link?.rows ?? [];
  const ported = (name: string): boolean => hasPort(name, values);
  const addresses: readonly (Bridged & Row)[] = values.address === undefined ? bridgeRoutes(values) : bridgeAddresses(values);
  const used = addresses.filter((row) => BRIDGE.test(row.interface) && ported(row.interface));
  const silent = (name: string): boolean => links.some((row) => row.interface === name && row.up && row.carrier === false) && !ported(name);
  const isTwin = (row: Bridged): boolean =>
    used.some((other) => other.interface !== row.interface && other.prefixLength === row.prefixLength && within(other.address, prefixOf(row)));
  const twins = addresses.filter((row) => (BRIDGE.test(row.interface) || row.interface === "docker0") && isTwin(row) && silent(row.interface));
  return { twins: twins.map(bridgeOf), used: twins.length === 0 ? [] : used.map(bridgeOf) };
}

/**
 * flannel has another range than the bridge: the bridge is from before, and gets no pod any more (those that it has would show as veths). A plain plugin that
 * comes first would be a conflict of configurations.
 */
function outsideOf(values: Sources, running: ReadonlySet<string>, known: boolean): Pick<FormerCni, "outside" | "range"> {
  const none = { outside: [], range: [] };
  const addresses = values.address?.rows ?? [];
  const names = [...addresses, ...(values.link?.rows ?? [])].map((row) => row.interface);
  const foreign = (values.cni?.configs ?? []).some((row) => row.order === 1 && /^(?:bridge|ptp|unknown)$/.test(row.cni));
  if (foreign || names.some((name) => name.startsWith("veth")) || (known && !running.has("flannel"))) return none;
  const bridges = bridgeAddresses(values).filter((row) => row.interface === "cni0");
  const ranges = addresses.filter(
    (row) => row.family === "ipv4" && /^flannel\.\d{1,8}$/.test(row.interface) && bridges.every((own) => !within(row.address, prefixOf(own))),
  );
  return bridges.length === 0 || ranges.length === 0 ? none : { outside: bridges.map(bridgeOf), range: ranges.map(bridgeOf) };
}

/** flannel gives its device the first address of the node's range, as the only one: what a DHCP client or somebody sets there looks otherwise. */
function leasesOf(values: Sources): (Row & z.infer<typeof Bridge>)[] {
  const first = (values.address?.rows ?? []).filter(
    (row) => /^flannel\.\d{1,8}$/.test(row.interface) && row.family === "ipv4" && row.prefixLength === 32 && row.address.endsWith(".0"),
  );
  // of one node: under the same line of the device, with the line of its lifetimes between them
  const isUnder = (row: Address & Row): boolean =>
    (values.link?.rows ?? []).some(
      (link) => link.interface === row.interface && placed(link).output === placed(row).output && row.line > link.line && row.line <= link.line + 4,
    );
  const isOther = (row: Address & Row, own: Address & Row): boolean =>
    row.interface === own.interface && row.address !== own.address && Math.abs(row.line - own.line) === 2 && isUnder(row) && isUnder(own);
  return first.filter((own) => first.some((row) => isOther(row, own))).map(bridgeOf);
}

/**
 * flannel leaves the tunnel of its former backend, and its routes to single nodes, which are more specific than the one route of WireGuard. Of the two devices
 * the one with the higher index was made later: it is the one in use.
 *
 *     10.42.0.0/16 dev flannel-wg scope link
 *     10.42.3.0/24 via 10.42.3.0 dev flannel.1 onlink
 */
function overtakingOf(main: readonly (Route & Row)[], links: readonly Link[]): Pick<FormerCni, "overtaking" | "wide"> {
  const made = new Map(links.flatMap((row) => (row.up && row.index !== undefined ? [[row.interface, row.index] as const] : [])));
  const through = (pattern: RegExp): { row: Route & Row; index: number }[] =>
    main.flatMap((row) => {
      const index = pattern.test(row.interface ?? "") && !row.flags.includes("linkdown") ? made.get(row.interface ?? "") : undefined;
      return index === undefined ? [] : [{ row, index }];
    });
  const present = through(WIDE);
  const former = through(TUNNEL_OF_FLANNEL).filter(({ row }) => row.gateway !== undefined);
  const overtakes = (one: { row: Route; index: number }, other: { row: Route; index: number }): boolean =>
    one.index < other.index && longer(one.row.prefix, other.row.prefix) && within(one.row.prefix, other.row.prefix);
  return {
    overtaking: former.filter((one) => present.some((other) => overtakes(one, other))).map(({ row }) => wayOf(row)),
    wide: present.filter((other) => former.some((one) => overtakes(one, other))).map(({ row }) => wayOf(row)),
  };
}

/**
 * BIRD never has a route to a subnet of its own node: if a bridge has that subnet, and no pod is on it, it is left over, and its route of the kernel's comes first.
 *
 *     10.244.9.0/24 dev cni0 proto kernel scope link src 10.244.9.1
 *     10.244.9.0/24 via 10.81.0.1 dev eth0 proto bird metric 32
 */
function coveringOf(main: readonly (Route & Row)[], values: Sources): Pick<FormerCni, "covering" | "covered"> {
  const links = values.link?.rows ?? [];
  // brief lists do not tell whose port a veth is
  if (links.length === 0 || links.some((row) => row.interface.startsWith("veth"))) return { covering: [], covered: [] };
  const elsewhere = main.filter((row) => row.protocol === "bird" && row.gateway !== undefined && !row.prefix.endsWith("/0"));
  const isIdle = (name: string): boolean => BRIDGE.test(name) && links.some((row) => row.interface === name && row.up) && !hasPort(name, values);
  const covers = (bridge: Bridged, way: Route): boolean => within(prefixOf(bridge), way.prefix);
  const covering = bridgeRoutes(values).filter((row) => isIdle(row.interface) && elsewhere.some((way) => covers(row, way)));
  return {
    covering: covering.map((row) => ({ ...placed(row), interface: row.interface, address: row.address })),
    covered: elsewhere.filter((way) => covering.some((row) => covers(row, way))).map(wayOf),
  };
}

/** Ports that flannel, Cilium and Calico give their tunnels. */
const PORTS: ReadonlySet<number> = new Set([4789, USUAL_PORT]);
function otherwiseOf({ socket, "cluster-pod": pods }: Sources): Row[] {
  const taken = (socket?.rows ?? []).filter(
    ({ protocol, state, port, process }) => protocol === "udp" && state === "UNCONN" && process !== undefined && PORTS.has(port ?? 0),
  );
  const running = (pods?.rows ?? []).filter(
    ({ name, status, own }) => status === "Running" && own !== false && /^(?:kube-flannel|cilium)-(?!operator|envoy)/.test(name),
  );
  return [...taken, ...running].map(placed);
}

/** The agent cannot switch its own tunnel on, because the kernel has given the port to the tunnel of another CNI. */
function holdersOf(values: Sources): Pick<FormerCni, "holding" | "refused" | "waiting"> {
  const { rows: links = [], vxlans = [] } = values.link ?? {};
  const log = values["agent-log"]?.rows ?? [];
  const refused = log.filter((row) => (row.age === undefined || row.age < RECENT) && CLASH.test(row.message));
  // "" where the line does not name the device; Cilium has one alone
  const named = refused.map((row) => CLASH.exec(row.message)?.[1] ?? (row.unit === "cilium-agent" ? "cilium_vxlan" : ""));
  const waiting = links.filter((row) => refused.length > 0 && !row.up && TUNNEL.test(row.interface));
  // or the device that it could not switch on was not listed: then another VXLAN device with the port that the log tells, or the usual one
  const up = links.some((row) => row.up && named.includes(row.interface));
  const ports = log.flatMap((row) => OWN_PORT.exec(row.message)?.[1] ?? []);
  const samePort = vxlans.filter(
    (row) =>
      !up &&
      named.some((name) => name !== "" && name !== row.interface) &&
      (row.external || TUNNEL.test(row.interface)) &&
      (ports.length > 0 ? ports.every((port) => Number(port) === row.port) : (row.port ?? USUAL_PORT) === USUAL_PORT),
  );
  const holding = links.filter(
    (row) => row.up && ((waiting.length > 0 && TUNNEL.test(row.interface)) || samePort.some((other) => other.interface === row.interface)),
  );
  if (holding.length === 0) return { holding: [], refused: [], waiting: [] };
  const place = (row: Row & { interface: string }): Row & { interface: string } => ({ ...placed(row), interface: row.interface });
  const ends = refused.filter((_, at) => at === 0 || at === refused.length - 1);
  return { holding: [...holding, ...samePort].map(place), refused: ends.map(placed), waiting: waiting.map(place) };
}
