import { z } from "zod";
import type { Address } from "./address.ts";
import type { AgentLog } from "./agent-log.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { unbracketed } from "./ip-address.ts";
import { within } from "./ip-bits.ts";
import { rulesOf } from "./iptables-chains.ts";
import type { Iptables, IptablesRow } from "./iptables-row.ts";
import type { Neighbor } from "./neighbor.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";
import type { Route } from "./route.ts";

/**
 * The service proxy of the node seen as a whole: its mode, the addresses that IPVS holds on kube-ipvs0, rules of a mode that is no longer in use, and what
 * proves that an address on kube-ipvs0 belongs to another machine. Every row stands where the row stands that it was made from.
 */
const Mode = z.object({
  line: z.int(),
  /** "iptables", "ipvs", "nftables" or "userspace"; "cilium" where no kube-proxy runs and Cilium does its work. */
  mode: z.string(),
  /**
   * Who says so, the most reliable first: the running program, its arguments, its log, its settings, Cilium's status, the rules it wrote (only where those of one
   * mode are there).
   */
  source: z.enum(["endpoint", "process", "log", "config", "status", "rules"]),
});
const Bound = z.object({
  line: z.int(),
  /** On kube-ipvs0. */
  address: z.string(),
  /** Another interface of the node has it too. */
  own: z.boolean(),
});
const Leftover = z.object({
  line: z.int(),
  /** The mode that left it. */
  of: z.enum(["ipvs", "iptables"]),
  kind: z.enum(["address", "virtual-server", "rule", "reject"]),
  /** Of the service, where it has one. */
  address: z.string().optional(),
  port: z.string().optional(),
  /**
   * It takes traffic that the present mode would serve otherwise: an address on kube-ipvs0 or a virtual server that no rule serves any more, or a REJECT or
   * jump for a service that IPVS serves.
   */
  harmful: z.boolean(),
});
const Proof = z.object({
  line: z.int(),
  address: z.string(),
  /**
   * node: it is listed as a node's. gateway: a route leads over it. vtep: a tunnel ends there. server: a service sends its traffic there. log: an agent's calls to it fail.
   * endpoint: the API server is there, and the node's own address is another one of that subnet. neighbor: it was seen with a MAC. virtual: IPVS serves it on this
   * node, where kube-ipvs0 was not listed.
   */
  by: z.enum(["node", "gateway", "vtep", "server", "log", "endpoint", "neighbor", "virtual"]),
});
/** kube-proxy's log says that it wrote its rules; only where all that it said lately was read. `age` in seconds. */
const Written = z.object({ line: z.int(), age: z.number() });
/** An external address that somebody wrote into a service although it is a node's: kube-proxy in IPVS mode takes it on every other node. Where kube-ipvs0 was not seen. */
const Claimed = z.object({ line: z.int(), address: z.string(), service: z.string(), node: z.string() });
/** `ip route get` of another node's address, which this node keeps for itself, and that IPVS took as far as the mode or a service with that external address tells. */
const Looped = z.object({ line: z.int(), address: z.string(), node: z.string() });
/** A rule that sends a service to an endpoint, where none of all endpoints that its rules know is among those that the cluster lists for it. */
const Outdated = z.object({ line: z.int(), service: z.string(), address: z.string(), listed: z.array(z.string()) });
const ServiceProxy = z.object({
  /** The best source first. */
  modes: z.array(Mode),
  /** Answers of the running kube-proxy, where it named one mode and then another: what was shown may be from before the change as well as from after it. */
  changed: z.array(Mode),
  bound: z.array(Bound),
  leftovers: z.array(Leftover),
  /** Of addresses that are bound and not the node's own. */
  foreign: z.array(Proof),
  claimed: z.array(Claimed),
  looped: z.array(Looped),
  outdated: z.array(Outdated),
  written: z.array(Written),
});
type ServiceProxy = z.infer<typeof ServiceProxy>;
type Mode = z.infer<typeof Mode> & Row;
type Bound = z.infer<typeof Bound> & Row;
type Leftover = z.infer<typeof Leftover> & Row;
type Proof = z.infer<typeof Proof> & Row;

interface Sources {
  readonly address?: { rows: readonly (Address & Row)[] };
  readonly route?: { rows: readonly (Route & Row)[] };
  readonly "route-answer"?: { rows: readonly (Row & { destination: string; interface: string })[] };
  readonly iptables?: Iptables;
  readonly ipvs?: {
    services: readonly (Row & { protocol: string; address: string; port?: number; servers: number })[];
    servers: readonly (Row & { address: string; forward?: string; serviceAddress: string; servicePort?: number })[];
  };
  readonly "kube-proxy"?: { modes: readonly (Row & { mode: string; source: "endpoint" | "config" })[] };
  readonly process?: { rows: readonly (Row & { command: string; arguments?: string })[]; searches: readonly { text: string }[] };
  readonly "agent-log"?: Placed<AgentLog>;
  readonly neighbor?: { rows: readonly (Neighbor & Row)[] };
  readonly "cluster-node"?: { rows: readonly (Row & { name: string; internalAddress?: string; own?: true })[] };
  readonly "cluster-service"?: {
    addresses: readonly (Row & { name: string; address: string; external?: boolean })[];
    endpoints: readonly (Row & { name: string; namespace?: string; address: string; more?: boolean })[];
  };
  readonly "cilium-status"?: { components: readonly (Row & { name: string; value: string })[] };
  readonly fdb?: { rows: readonly (Row & { mac?: string; destination?: string })[] };
}

const INTERFACE = "kube-ipvs0";
const TUNNEL = /vxlan|^flannel|geneve/;
/** More rows of a kind than this prove nothing more. */
const MAX_ROWS = 500;
const ARGUMENT = /(?:^|[\s=,])(?:--)?proxy-mode[= ]["']?(iptables|ipvs|nftables|userspace)\b/;
// Proxier; since 1.29 proxy
const LOGGED = /Using (iptables|ipvs|nftables|userspace) [Pp]rox(?:ier|y)\b/;
/** Units in whose log the kubelet speaks. */
const KUBELETS = new Set(["kubelet", "k3s", "rke2", "kubelite"]);
const REPLACES = /^(?:true|strict)\b/i;
/** Programs that are a kube-proxy or have one in them, and others that use IPVS. */
const PROXIES = /^(?:kube-proxy|hyperkube|k3s|rke2|k0s|kubelite|kube-router|keepalived)/;
/** What an agent says when its call to an address comes to nothing. */
const FAILED_CALL = /(?:connection refused|no route to host|i\/o timeout|Client\.Timeout|context deadline exceeded|certificate|connect: invalid argument)/;

export const serviceProxy = defineDerivedFact<ServiceProxy>({
  id: "service-proxy",
  title: "Mode of the service proxy, what another mode left, and addresses that IPVS took from other machines",
  from: [
    "address",
    "route",
    "iptables",
    "ipvs",
    "kube-proxy",
    "process",
    "agent-log",
    "neighbor",
    "fdb",
    "cluster-node",
    "cluster-service",
    "cilium-status",
    "route-answer",
  ],
  // nobody asks the cluster on a node, and few nodes have Cilium
  optional: ["cluster-node", "cluster-service", "cilium-status", "route-answer"],
  inPart: ["cluster-service", "route-answer"],
  schema: ServiceProxy,
  enough: (values, whole) => enough(values as Sources, whole),
  derive: (values, whole) => derive(values as Sources, whole),
});

/** Where others tell its mode, kube-proxy need not be asked; and of the tables of hosts behind tunnels those lines are enough that lead to each of them. */
function enough(sources: Sources, whole: ReadonlySet<string>): boolean {
  const tunnelled = (sources.neighbor?.rows ?? []).filter((row) => TUNNEL.test(row.interface) && row.mac !== undefined);
  const isLed = (mac: string | undefined): boolean => (sources.fdb?.rows ?? []).some((row) => row.mac === mac && row.destination !== undefined);
  return (
    ["address", "route", "iptables", "ipvs", "process", "agent-log", "neighbor"].every((id) => whole.has(id)) &&
    tunnelled.every(({ mac }) => isLed(mac)) &&
    derive(sources, whole).modes.some(({ source }) => source !== "rules")
  );
}

function derive(sources: Sources, whole: ReadonlySet<string>): ServiceProxy {
  const services = rulesOf(sources.iptables?.rows ?? [], "KUBE-SERVICES").filter((row) => row.table === "nat");
  const jumps = services.filter((row) => /^KUBE-(?:SVC|FW|EXT|XLB)-/.test(row.target ?? ""));
  const sets = services.filter((row) => row.spec.includes("--match-set KUBE-") || row.spec.includes("match-set KUBE-"));
  const replaced = replacedBy(sources, whole);
  const modes = replaced === undefined ? modesOf(sources, jumps, sets) : [replaced];
  const answers = modes.filter((row) => row.source === "endpoint");
  const changed = answers.some((row) => row.mode !== answers[0]?.mode) ? answers : [];
  const bound = boundOf(sources);
  const leftovers = changed.length > 0 ? [] : leftoversOf(sources, whole, modes[0], bound, jumps, sets).slice(0, MAX_ROWS);
  const written = (whole.has("agent-log") ? (sources["agent-log"]?.rows ?? []) : []).flatMap((row) =>
    row.age !== undefined && row.message.includes("SyncProxyRules complete") ? [{ ...placed(row), age: row.age }] : [],
  );
  return {
    modes,
    changed,
    bound,
    leftovers,
    foreign: [...foreignOf(sources, whole, bound), ...(bound.length === 0 ? virtualOf(sources) : [])].slice(0, MAX_ROWS),
    claimed: claimedOf(sources, modes[0], bound),
    looped: loopedOf(sources, modes[0]).slice(0, MAX_ROWS),
    outdated: outdatedOf(sources).slice(0, MAX_ROWS),
    written: written.slice(0, MAX_ROWS),
  };
}

/** Cilium in the place of kube-proxy: its status says so, and nothing shows a program with a kube-proxy in it: no process, log or setting. */
function replacedBy(sources: Sources, whole: ReadonlySet<string>): Mode | undefined {
  const component = sources["cilium-status"]?.components.find((row) => row.name === "KubeProxyReplacement" && REPLACES.test(row.value));
  const processes = sources.process?.rows ?? [];
  const told = (sources["kube-proxy"]?.modes ?? []).length > 0 || (sources["agent-log"]?.rows ?? []).some((row) => row.unit === "kube-proxy");
  // `ps -ef | grep kube-proxy`: it would have been shown
  const searched = sources.process?.searches.some(({ text }) => "kube-proxy".includes(text)) ?? false;
  const alone = !told && (processes.length === 0 || searched || whole.has("process")) && !processes.some((row) => PROXIES.test(row.command));
  return component === undefined || !alone ? undefined : { ...placed(component), mode: "cilium", source: "status" };
}

function modesOf(sources: Sources, jumps: readonly (IptablesRow & Row)[], sets: readonly (IptablesRow & Row)[]): Mode[] {
  const modes: Mode[] = [];
  const settings = sources["kube-proxy"]?.modes ?? [];
  // an empty setting is the default of the version, on Linux iptables
  const told = (source: "endpoint" | "config"): Mode[] =>
    settings.filter((row) => row.source === source).map((row) => ({ ...placed(row), mode: row.mode || "iptables", source }));
  // of several answers the last one counts
  modes.push(...told("endpoint").toReversed());
  for (const row of sources.process?.rows ?? []) {
    const mode = ARGUMENT.exec(row.arguments ?? "")?.[1];
    if (mode !== undefined && /^(?:kube-proxy|hyperkube|k3s|k3s-server|k3s-agent|kubelite)/.test(row.command))
      modes.push({ ...placed(row), mode, source: "process" });
  }
  // of a log the newest word counts: the youngest, else the last. A line of which nobody knows the age may be of a former container
  let newest: { row: Row; mode: string; age: number } | undefined;
  for (const row of sources["agent-log"]?.rows ?? []) {
    const mode = LOGGED.exec(row.message)?.[1];
    const age = row.age ?? Number.POSITIVE_INFINITY;
    if (mode !== undefined && (newest === undefined || age <= newest.age)) newest = { row, mode, age };
  }
  if (newest !== undefined) modes.push({ ...placed(newest.row), mode: newest.mode, source: "log" });
  modes.push(...told("config"));
  const [jump, set] = [jumps[0], sets[0]];
  if (jump !== undefined && set === undefined) modes.push({ ...placed(jump), mode: "iptables", source: "rules" });
  if (set !== undefined && jump === undefined) modes.push({ ...placed(set), mode: "ipvs", source: "rules" });
  return modes;
}

function boundOf(sources: Sources): Bound[] {
  const rows = sources.address?.rows ?? [];
  const own = new Set(rows.filter((row) => row.interface !== INTERFACE).map((row) => row.address));
  const bound = new Map<string, Bound>();
  for (const row of rows)
    if (row.interface === INTERFACE && row.scope !== "link") bound.set(row.address, { ...placed(row), address: row.address, own: own.has(row.address) });
  // the kernel's own route to each of its addresses, where the addresses themselves were not listed
  for (const row of sources.route?.rows ?? []) {
    const address = row.prefix.replace(/\/(?:32|128)$/, "");
    if (row.interface !== INTERFACE || row.type !== "local" || address.includes("/") || bound.has(address) || address.startsWith("fe80:")) continue;
    bound.set(address, { ...placed(row), address, own: own.has(address) });
  }
  return [...bound.values()];
}

function leftoversOf(
  sources: Sources,
  whole: ReadonlySet<string>,
  mode: Mode | undefined,
  bound: readonly Bound[],
  jumps: readonly (IptablesRow & Row)[],
  sets: readonly (IptablesRow & Row)[],
): Leftover[] {
  const virtual = sources.ipvs?.services ?? [];
  if (mode?.mode === "ipvs") return iptablesLeftovers(sources, jumps);
  if (mode === undefined) {
    // rules of both modes, and nobody says which one is in use: one of them was left
    return jumps.length > 0 && sets.length > 0 ? sets.map((row) => ({ ...placed(row), of: "ipvs" as const, kind: "rule" as const, harmful: false })) : [];
  }
  if (bound.length === 0 && virtual.length === 0 && sets.length === 0) return [];
  const served = new Set(
    (sources.iptables?.rows ?? [])
      .filter((row) => row.table === "nat" && row.destination !== undefined)
      .map((row) => row.destination?.replace(/\/(?:32|128)$/, "")),
  );
  const known = jumps.length > 0 && whole.has("iptables");
  const leftovers: Leftover[] = bound.map((row) => ({
    ...placed(row),
    of: "ipvs",
    kind: "address",
    address: row.address,
    harmful: known && !row.own && !served.has(row.address),
  }));
  // a director of keepalived has virtual servers too: only those on kube-ipvs0 are kube-proxy's, or, where addresses were not listed, those that look like it
  const held = new Set(bound.map((row) => row.address));
  const masked = new Set((sources.ipvs?.servers ?? []).filter((row) => row.forward === "masq").map((row) => row.serviceAddress));
  const kubes = virtual.filter((row) => (held.size > 0 ? held.has(row.address) : sources.address === undefined && masked.has(row.address)));
  if (held.size > 0 || kubes.length > 1) {
    for (const row of kubes) {
      const harmful = known && !served.has(row.address);
      leftovers.push({
        ...placed(row),
        of: "ipvs",
        kind: "virtual-server",
        address: row.address,
        ...(row.port === undefined ? {} : { port: String(row.port) }),
        harmful,
      });
    }
  }
  if (jumps.length > 0) leftovers.push(...sets.map((row) => ({ ...placed(row), of: "ipvs" as const, kind: "rule" as const, harmful: false })));
  return leftovers.toSorted((a, b) => Number(b.harmful) - Number(a.harmful));
}

/** What kube-proxy's iptables mode left behind on a node that uses IPVS: it stands in the way of what IPVS serves. */
function iptablesLeftovers(sources: Sources, jumps: readonly (IptablesRow & Row)[]): Leftover[] {
  const served = new Set((sources.ipvs?.services ?? []).filter((row) => row.servers > 0).map((row) => `${row.address} ${row.port}`));
  const rejects = (sources.iptables?.rows ?? []).filter(
    (row) =>
      row.target === "REJECT" &&
      (row.chain === "KUBE-SERVICES" || row.chain === "KUBE-EXTERNAL-SERVICES") &&
      row.comment?.includes("has no endpoints") === true,
  );
  const made = (row: IptablesRow & Row, kind: "reject" | "rule"): Leftover => {
    const address = row.destination?.replace(/\/(?:32|128)$/, "");
    const port = row.destinationPort;
    const harmful = served.has(`${address} ${port}`);
    return { ...placed(row), of: "iptables", kind, ...present({ address, port }), harmful };
  };
  return [...rejects.map((row) => made(row, "reject")), ...jumps.map((row) => made(row, "rule"))].toSorted((a, b) => Number(b.harmful) - Number(a.harmful));
}

function claimedOf(sources: Sources, mode: Mode | undefined, bound: readonly Bound[]): ServiceProxy["claimed"] {
  const nodes = sources["cluster-node"]?.rows ?? [];
  // with one node there is no other that takes it; settings may not be in use yet
  if (mode?.mode !== "ipvs" || mode.source === "config" || bound.length > 0 || nodes.length < 2) return [];
  return (sources["cluster-service"]?.addresses ?? []).flatMap((row) => {
    const node = row.external === true ? nodes.find((other) => other.internalAddress === row.address) : undefined;
    return node === undefined ? [] : [{ ...placed(row), address: row.address, service: row.name, node: node.name }];
  });
}

/** An address that another interface of the node has, too, is its own; that of this node must be among those that were seen. */
function loopedOf(sources: Sources, mode: Mode | undefined): ServiceProxy["looped"] {
  const own = new Set((sources.address?.rows ?? []).filter((row) => row.interface !== INTERFACE).map((row) => row.address));
  const nodes = sources["cluster-node"]?.rows ?? [];
  if (!nodes.some((row) => row.internalAddress !== undefined && own.has(row.internalAddress))) return [];
  const claimed = (address: string): boolean =>
    (sources["cluster-service"]?.addresses ?? []).some((row) => row.external === true && row.address === address) ||
    (mode?.mode === "ipvs" && mode.source !== "config");
  return (sources["route-answer"]?.rows ?? []).flatMap((row) => {
    const node = row.interface === "lo" && !own.has(row.destination) ? nodes.find((other) => other.internalAddress === row.destination) : undefined;
    return node === undefined || !claimed(row.destination) ? [] : [{ ...placed(row), address: row.destination, node: node.name }];
  });
}

/** "shop/cart:http", "shop/cart:http -> 10.244.1.9:8080", "shop/cart" of a service whose only port has no name. */
const COMMENT = /^([a-z0-9-]{1,63}\/[a-z0-9-]{1,63})(?::[a-z0-9-]{0,63})?(?: -> .{1,60})?$/;

/** Of rules that are listed in part the missing ones may be right: every endpoint that the service's chain jumps to must have been seen. */
function outdatedOf(sources: Sources): ServiceProxy["outdated"] {
  const listed = new Map<string, Set<string>>();
  const cut = new Set<string>();
  for (const { namespace, name, address, more } of sources["cluster-service"]?.endpoints ?? []) {
    if (namespace === undefined) continue;
    const service = `${namespace}/${name}`;
    if (more === true) cut.add(service);
    listed.set(service, (listed.get(service) ?? new Set()).add(address));
  }
  if (listed.size === 0) return [];
  const serviceOf = (row: IptablesRow): string | undefined => COMMENT.exec(row.comment ?? "")?.[1];
  const written = new Map<string, { row: IptablesRow & Row; address: string }[]>();
  const jumps = new Map<string, Set<string>>();
  for (const row of sources.iptables?.rows ?? []) {
    const service = serviceOf(row);
    if (service === undefined || !listed.has(service) || cut.has(service)) continue;
    const address = row.chain.startsWith("KUBE-SEP-") && row.target === "DNAT" ? row.toDestination?.replace(/:\d+$/, "") : undefined;
    if (address !== undefined) {
      const ends = written.get(service) ?? [];
      ends.push({ row, address: unbracketed(address) });
      written.set(service, ends);
    } else if (row.chain.startsWith("KUBE-SVC-") && row.target?.startsWith("KUBE-SEP-") === true) {
      const targets = jumps.get(service) ?? new Set();
      jumps.set(service, targets.add(row.target));
    }
  }
  return [...written].flatMap(([service, ends]) => {
    const known = listed.get(service) as ReadonlySet<string>;
    const seen = new Set(ends.map(({ row }) => row.chain));
    const targets = [...(jumps.get(service) ?? [])];
    const whole = targets.length > 0 && targets.every((target) => seen.has(target));
    const others = ends.every(({ address }) => !known.has(address) && [...known].every((one) => one.includes(":") === address.includes(":")));
    return whole && others ? ends.map(({ row, address }) => ({ ...placed(row), service, address, listed: [...known] })) : [];
  });
}

/** Virtual servers of kube-proxy on another node's address, each behind that node: which node is this one must be seen, because its own address has those of NodePorts. */
function virtualOf(sources: Sources): Proof[] {
  const own = new Set((sources.address?.rows ?? []).map((row) => row.address));
  const nodes = sources["cluster-node"]?.rows ?? [];
  if (!nodes.some((row) => row.internalAddress !== undefined && own.has(row.internalAddress))) return [];
  const masked = new Set((sources.ipvs?.servers ?? []).filter((row) => row.forward === "masq").map((row) => row.serviceAddress));
  return (sources.ipvs?.services ?? []).flatMap((row) => {
    const node = masked.has(row.address) && !own.has(row.address) ? nodes.find((other) => other.internalAddress === row.address) : undefined;
    const address = row.address;
    return node === undefined
      ? []
      : [
          { ...placed(node), address, by: "node" as const },
          { ...placed(row), address, by: "virtual" as const },
        ];
  });
}

function foreignOf(sources: Sources, whole: ReadonlySet<string>, bound: readonly Bound[]): Proof[] {
  const taken = new Set(bound.filter((row) => !row.own).map((row) => row.address));
  if (taken.size === 0) return [];
  const proofs: Proof[] = [];
  const add = (row: Row, address: string | undefined, by: Proof["by"]): void => {
    if (address !== undefined && taken.has(address)) proofs.push({ ...placed(row), address, by });
  };
  // of kube-ipvs0 alone it is not seen which addresses are the node's own, too: its name tells. Its addresses tell better, as people name another node beside
  const nodes = sources["cluster-node"]?.rows ?? [];
  const seen = new Set((sources.address?.rows ?? []).filter((row) => row.interface !== INTERFACE).map((row) => row.address));
  const found = nodes.some((row) => row.internalAddress !== undefined && seen.has(row.internalAddress));
  for (const row of nodes) if (found ? !seen.has(row.internalAddress ?? "") : row.own !== true) add(row, row.internalAddress, "node");
  for (const row of sources.route?.rows ?? []) if (row.interface !== INTERFACE) add(row, row.gateway, "gateway");
  for (const row of sources.fdb?.rows ?? []) add(row, row.destination, "vtep");
  // a pod with hostNetwork has the node's address: nothing is foreign as long as not all of the node's own addresses were seen
  const knowsOwn = whole.has("address") && (sources.address?.rows ?? []).some((row) => row.interface !== INTERFACE && row.interface !== "lo");
  const besideNode = (address: string): boolean =>
    (sources.address?.rows ?? []).some(
      (row) => row.interface !== INTERFACE && row.prefixLength !== undefined && within(address, `${row.address}/${row.prefixLength}`),
    );
  // with one address of its own in that subnet the node is another machine
  const addEndpoint = (row: Row & { address: string }): void => {
    if (knowsOwn || besideNode(row.address)) add(row, row.address, "endpoint");
  };
  for (const row of sources["cluster-service"]?.endpoints ?? []) if (row.name === "kubernetes" && (row.namespace ?? "default") === "default") addEndpoint(row);
  for (const row of sources.ipvs?.servers ?? []) {
    if (knowsOwn) add(row, row.address, "server");
    // the first address of the services' range is that of default/kubernetes
    else if (row.serviceAddress.endsWith(".1") && row.servicePort === 443) addEndpoint(row);
  }
  if (knowsOwn) for (const row of sources.iptables?.rows ?? []) add(row, row.toDestination?.replace(/:\d+$/, ""), "server");
  // a call to a service fails where its pods do: it proves something only at a port that no service has
  const virtual = sources.ipvs?.services ?? [];
  const served = new Set(virtual.map((row) => `${row.address}:${row.port}`));
  const listed = new Set(virtual.map((row) => row.address));
  for (const row of sources["agent-log"]?.rows ?? []) {
    if (!FAILED_CALL.test(row.message)) continue;
    const called = [...row.message.matchAll(/((?:\d{1,3}\.){3}\d{1,3}):(\d{1,5})/g)].find(([, address]) => taken.has(address as string));
    const [endpoint, address] = called ?? [];
    // the kubelet calls no service: it is told where the API server itself is
    if (endpoint !== undefined && address !== undefined && !served.has(endpoint) && (listed.has(address) || KUBELETS.has(row.unit) || besideNode(address)))
      add(row, address, "log");
  }
  // a machine that has another address, too, may only announce this one for a load balancer (MetalLB, kube-vip)
  const neighbors = (sources.neighbor?.rows ?? []).filter((row) => row.interface !== INTERFACE && row.mac !== undefined && row.family === "ipv4");
  const announced = (mac: string | undefined): boolean => neighbors.filter((row) => row.mac === mac).length > 1;
  if (knowsOwn)
    for (const row of sources.neighbor?.rows ?? [])
      if (row.interface !== INTERFACE && row.mac !== undefined && !announced(row.mac)) add(row, row.address, "neighbor");
  return proofs;
}
