import { z } from "zod";
import type { Address } from "./address.ts";
import type { AgentLog } from "./agent-log.ts";
import { CARD } from "./card-name.ts";
import type { ConntrackEntry } from "./conntrack.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { type Family, unbracketed } from "./ip-address.ts";
import { within } from "./ip-bits.ts";
import type { Iptables, IptablesRow } from "./iptables-row.ts";
import type { Link } from "./link.ts";
import { placed } from "./placed.ts";
import { isPodInterface } from "./pod-interface.ts";
import { present } from "./present.ts";
import type { Route } from "./route.ts";
import type { Sysctl } from "./sysctl.ts";

/**
 * Whether frames between ports of a bridge pass iptables (br_netfilter), and whether services of this node need it: the bridges of its pods, and services
 * whose traffic is sent to pods on them. Every row stands where the row stands that it was made from.
 *
 *     net.bridge.bridge-nf-call-iptables = 0                           switch off, by its key
 *     bridge                421888  0                                  switch absent: br_netfilter would stand among the users of the module
 */
const Switch = z.object({
  line: z.int(),
  state: z.enum(["on", "off", "absent"]),
  /** key: the setting itself. module: the list of the loaded modules. log: an agent says that it found no such setting. */
  by: z.enum(["key", "module", "log"]),
  /** Of the key of one family; the module is of both. */
  family: z.enum(["ipv4", "ipv6"]).optional(),
  /** flannel ends when it does not find it; kubeadm does not begin where it is missing or off. */
  fatal: z.boolean(),
  /** Seconds; of logs, where known. */
  age: z.number().optional(),
});
const PodBridge = z.object({
  line: z.int(),
  interface: z.string(),
  family: z.enum(["ipv4", "ipv6"]),
  /** Of its own subnet. */
  address: z.string(),
  prefixLength: z.int(),
  /** Ports of pods and virtual machines that were seen. Where no port of any bridge was listed: the interfaces of pods. */
  ports: z.int(),
  /** Other machines are on it, too: it has an uplink or a tunnel as port, or the default route leads over it. */
  flat: z.boolean(),
  /** It has a name that only CNIs give. */
  cni: z.boolean(),
});
/** A bridge with a name that only CNIs give, whose address was not seen. */
const Shown = z.object({
  line: z.int(),
  interface: z.string(),
  /** Ports of pods that were seen. */
  ports: z.int(),
  /** It is up and has a port that is. */
  carrier: z.boolean(),
});
const Endpoint = z.object({
  line: z.int(),
  bridge: z.string(),
  family: z.enum(["ipv4", "ipv6"]),
  address: z.string(),
  /**
   * rule: of kube-proxy's DNAT, in iptables or in its own table of nft. comment: kube-proxy's own remark beside the jump to it. server: of IPVS. connection: one that another address on the same
   * bridge opened to a service, and that nothing came back of. answer: a program was answered from there, and had asked a service.
   */
  by: z.enum(["rule", "comment", "server", "connection", "answer"]),
});
const BridgeNetfilter = z.object({
  switches: z.array(Switch),
  /** Without those that have it switched on for themselves while the key is off. */
  bridges: z.array(PodBridge),
  shown: z.array(Shown),
  endpoints: z.array(Endpoint),
  /** Rules of kube-proxy that lead to services, where no list of their endpoints was seen. */
  services: z.array(z.object({ line: z.int() })),
  /** A row where all that matters was seen, and nothing of this node needs it: what proves that. */
  unneeded: z.array(z.object({ line: z.int() })),
});
type BridgeNetfilter = z.infer<typeof BridgeNetfilter>;
type PodBridge = BridgeNetfilter["bridges"][number] & Row;
type Endpoint = BridgeNetfilter["endpoints"][number] & Row;

interface Sources {
  readonly sysctl?: Placed<Sysctl>;
  readonly module?: {
    rows: readonly (Row & { name: string; size?: number; usedBy: readonly string[]; builtin: boolean })[];
    missing: readonly (Row & { name: string })[];
    sought?: readonly (Row & { name: string })[];
  };
  readonly os?: { kernels: readonly { release: string }[] };
  readonly iptables?: Iptables;
  readonly nft?: { rows: readonly (Row & { family: string; table: string; chain: string; spec: string })[] };
  readonly ipvs?: { servers: readonly (Row & { address: string; forward?: string })[] };
  readonly conntrack?: { rows: readonly (ConntrackEntry & Row)[] };
  readonly address?: { rows: readonly (Address & Row)[] };
  readonly neighbor?: { rows: readonly (Row & { address: string; interface: string; mac?: string })[] };
  readonly fdb?: { rows: readonly (Row & { mac: string; interface: string })[] };
  readonly route?: { rows: readonly (Route & Row)[] };
  readonly link?: { rows: readonly (Link & Row)[]; bridges: readonly { interface: string; nfCallIptables?: boolean; nfCallIp6tables?: boolean }[] };
  readonly bridge?: { ports: readonly (Row & { bridge: string; interface: string })[] };
  readonly "agent-log"?: Placed<AgentLog>;
  readonly "service-answer"?: { rows: readonly (Row & { from: string; expected: string })[] };
}

const KEY = "net.bridge.bridge-nf-call-iptables";
const KEY6 = "net.bridge.bridge-nf-call-ip6tables";
/** What CNIs call the bridge that they make. */
const CNI_BRIDGE = /^(?:cni\d{1,3}|cnio\d{1,3}|cbr\d{1,3}|kube-bridge|cni-podman\d{1,3})$/;
/** flannel: Failed to check br_netfilter: stat /proc/…: no such file or directory */
const FLANNEL = /Failed to check br_netfilter\b/;
/** k3s, rke2: Failed to set sysctl: open /proc/…: no such file or directory; kube-proxy: Missing br-netfilter module or unset sysctl br-nf-call-iptables */
const NOT_FOUND = /bridge-nf-call-iptables.{0,40}: no such file or directory|missing br-netfilter module or unset sysctl/i;
/** Ubuntu, Debian, RHEL and its kin, Amazon Linux, Fedora, SUSE, as `uname -r` tells: "5.15.0-105-generic", "6.1.0-28-cloud-amd64", "5.14.0-427.42.1.el9_4.x86_64". */
const MODULAR =
  /^\d[\d.]{2,20}-\d{1,4}-(?:generic|aws|azure|gcp|gke|oracle|lowlatency)$|-\d{1,4}-(?:rt-|cloud-)?(?:amd64|arm64)$|\.(?:el[7-9]|el10|fc\d{2})[\w.]{0,30}$|\.amzn2(?:023)?\.|^\d[\d.]{2,20}-[\d.]{1,30}-default$/;
/** kubeadm, of what it does behind its checks. */
const WENT_ON = /initialized successfully|has joined the cluster|^\[(?:certs|kubelet-start|control-plane|addons)\]/;
/** kube-proxy in nftables mode: "meta l4proto udp dnat to 10.244.1.5:53" in its tables "kube-proxy"; "dnat to [fd00:1::5]:53" in that of IPv6. */
const NFT_TARGET = /\bdnat to (\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[[0-9a-f:]{2,39}\]):\d{1,5}\b/;
const ENDPOINT = / -> (\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[[0-9a-f:]{2,39}\]):\d{1,5}$/;
/** More rows of a kind than this prove nothing more. */
const MAX_ROWS = 200;

export const bridgeNetfilter = defineDerivedFact<BridgeNetfilter>({
  id: "bridge-netfilter",
  title: "Whether frames between ports of a bridge pass iptables, and services that need it",
  from: [
    "sysctl",
    "iptables",
    "address",
    "nft",
    "module",
    "os",
    "ipvs",
    "conntrack",
    "route",
    "neighbor",
    "fdb",
    "link",
    "bridge",
    "agent-log",
    "service-answer",
  ],
  optional: ["nft", "module", "os", "ipvs", "conntrack", "route", "neighbor", "fdb", "link", "bridge", "agent-log", "service-answer"],
  // rows of these only ever add a proof
  inPart: ["nft", "module", "os", "ipvs", "conntrack", "neighbor", "fdb", "agent-log"],
  schema: BridgeNetfilter,
  derive: (values, whole) => derive(values as Sources, whole),
});

function derive(sources: Sources, whole: ReadonlySet<string>): BridgeNetfilter {
  const switches = switchesOf(sources);
  const bridges = bridgesOf(sources, switches);
  const endpoints = endpointsOf(sources, bridges);
  const services = servicesOf(sources);
  return {
    switches,
    bridges,
    shown: shownOf(sources, bridges),
    endpoints: endpoints.slice(0, MAX_ROWS),
    services: services.slice(0, MAX_ROWS),
    unneeded: unneededOf(sources, whole, bridges, endpoints, services),
  };
}

function switchesOf(sources: Sources): BridgeNetfilter["switches"] {
  return [...keysOf(sources, KEY6, "ipv6"), ...switchesOfModule(sources)].slice(0, MAX_ROWS);
}

/** What the setting of one family says. */
function keysOf(sources: Sources, key: string, family: Family): BridgeNetfilter["switches"] {
  const { sysctl } = sources;
  const row = { by: "key", family } as const;
  const fatal = (each: Row): boolean => key === KEY && hasEnded(sources, each);
  return [
    ...(sysctl?.rows ?? [])
      .filter((each) => each.key === key)
      .map((each) => ({ ...placed(each), state: each.value === "0" ? "off" : "on", fatal: fatal(each), ...row }) as const),
    ...(sysctl?.absent ?? []).filter((each) => each.key === key).map((each) => ({ ...placed(each), state: "absent", fatal: fatal(each), ...row }) as const),
  ];
}

/** Whether kubeadm says so where this setting was read, and did not go on later. */
const hasEnded = ({ sysctl, "agent-log": log }: Sources, row: Row): boolean =>
  (sysctl?.refusals ?? []).some((each) => each.ended === true && each.line === row.line && each.output === row.output) &&
  !(log?.rows ?? []).some((each) => WENT_ON.test(each.message));

/** The setting of IPv4, and where nothing says that it is on: what tells that the module is missing. */
function switchesOfModule(sources: Sources): BridgeNetfilter["switches"] {
  const own = { fatal: false };
  const switches = keysOf(sources, KEY, "ipv4");
  if (switches.some((row) => row.state === "on")) return switches; // the setting itself beats what is said of it
  // where bridges are a module, what needs them is one too, and stands among its users; before Linux 3.18 it was part of that module
  const module = sources.module?.rows.find((row) => row.name === "bridge" && row.size !== undefined && !row.builtin);
  const loaded = sources.module?.rows.find((row) => row.name === "br_netfilter" || (row.name === "bridge" && row.usedBy.includes("br_netfilter")));
  // it is loaded with the setting switched on
  if (switches.length === 0 && loaded !== undefined) return [{ ...placed(loaded), state: "on", by: "module", ...own }];
  const missing = sources.module?.missing.find((row) => row.name === "br_netfilter");
  if (switches.length === 0 && missing !== undefined && !isOld(sources.os?.kernels[0]?.release))
    switches.push({ ...placed(missing), state: "absent", by: "module", ...own });
  if (switches.length === 0 && module !== undefined && !isOld(sources.os?.kernels[0]?.release))
    switches.push({ ...placed(module), state: "absent", by: "module", ...own });
  // somebody looked for it alone: in the kernels of these distributions it is never built in. Where nobody knows the kernel, a pod that answers under its own address tells
  const sought = sources.module?.sought?.find((row) => row.name === "br_netfilter");
  const release = sources.os?.kernels[0]?.release;
  const answered = release === undefined && (sources["service-answer"]?.rows ?? []).some((row) => row.from !== row.expected);
  if (switches.length === 0 && sought !== undefined && !isOld(release) && (answered || MODULAR.test(release ?? "")))
    switches.push({ ...placed(sought), state: "absent", by: "module", ...own });
  for (const row of sources["agent-log"]?.rows ?? []) {
    const fatal = FLANNEL.test(row.message);
    if (fatal || NOT_FOUND.test(row.message)) switches.push({ ...placed(row), state: "absent", by: "log", fatal, ...present({ age: row.age }) });
  }
  return switches;
}

/** True for Linux before 3.18. */
function isOld(release: string | undefined): boolean {
  const [, major, minor] = /^(\d{1,3})\.(\d{1,5})/.exec(release ?? "") ?? [];
  return major !== undefined && (Number(major) < 3 || (Number(major) === 3 && Number(minor) < 18));
}

/** Names that cards have, also where they are one end of a veth: on a node that is a container itself. */
const UPLINK = new RegExp(String.raw`^(?:${CARD}|bond\d|team\d)`);

/** A port that a pod or a virtual machine may be behind. */
function isPodPort(name: string, links: readonly Link[]): boolean {
  if (UPLINK.test(name)) return false;
  const link = links.find((row) => row.interface === name);
  return /^(?:tap|vnet)/.test(name) || isPodInterface(name, links) || link?.kind === "veth" || link?.kind === "tun" || /^if\d/.test(link?.peer ?? "");
}

/** True for a bridge that is down or has no port that is up, or never had any ("UNKNOWN"): a leftover, the pods of today are elsewhere. */
const isIdle = (link: Link | undefined): boolean => link !== undefined && link.flags.length > 0 && (!link.carrier || link.state === "UNKNOWN");

/** Bridges that have an address and ports of pods, or the name that a CNI gives. */
function bridgesOf(sources: Sources, switches: BridgeNetfilter["switches"]): PodBridge[] {
  const ports = new Map<string, Set<string>>();
  const add = (bridge: string, port: string): void => void ports.set(bridge, (ports.get(bridge) ?? new Set()).add(port));
  for (const { bridge, interface: port } of sources.bridge?.ports ?? []) add(bridge, port);
  for (const { master, interface: port } of sources.link?.rows ?? []) if (master !== undefined) add(master, port);
  // listings such as `ip -br a` do not tell whose port an interface is
  const interfaces = [...(sources.link?.rows ?? []).filter((row) => row.up), ...(sources.address?.rows ?? [])];
  const loose = ports.size > 0 ? 0 : new Set(interfaces.map((row) => row.interface).filter((name) => name.startsWith("veth"))).size;
  const isOff = (family: Family): boolean => switches.some((row) => row.state === "off" && row.family === family);
  const ownOn = (name: string, family: Family): boolean =>
    (sources.link?.bridges ?? []).some((row) => row.interface === name && (family === "ipv4" ? row.nfCallIptables : row.nfCallIp6tables) === true);
  const found = new Map<string, PodBridge>();
  const take = (row: Row, name: string, family: Family, address: string, prefixLength: number): void => {
    const cni = CNI_BRIDGE.test(name);
    const all = [...(ports.get(name) ?? [])];
    const own = all.filter((port) => isPodPort(port, sources.link?.rows ?? [])).length;
    if (
      (own === 0 && (!cni || isIdle(sources.link?.rows.find((link) => link.interface === name)))) ||
      (isOff(family) && ownOn(name, family)) ||
      found.has(`${name} ${address}`)
    )
      return;
    const everywhere = family === "ipv4" ? "0.0.0.0/0" : "::/0";
    const flat = own < all.length || (sources.route?.rows ?? []).some((route) => route.interface === name && route.prefix === everywhere);
    found.set(`${name} ${address}`, { ...placed(row), interface: name, family, address, prefixLength, ports: own > 0 ? own : loose, flat, cni });
  };
  for (const row of sources.address?.rows ?? [])
    if (row.prefixLength !== undefined && !within(row.address, "fe80::/10")) take(row, row.interface, row.family, row.address, row.prefixLength);
  const known = new Set([...found.values()].filter((row) => row.family === "ipv4").map((row) => row.interface));
  for (const row of sources.route?.rows ?? []) {
    const [address, length] = row.prefix.split("/");
    if (row.family !== "ipv4" || row.type !== "unicast" || row.gateway !== undefined || row.interface === undefined || known.has(row.interface)) continue;
    // a subnet that is linked to it; a route to one pod is none
    if (address !== undefined && Number(length) >= 8 && Number(length) < 32) take(row, row.interface, "ipv4", row.source ?? address, Number(length));
  }
  return [...found.values()];
}

function shownOf({ link, address, bridge }: Sources, bridges: readonly PodBridge[]): BridgeNetfilter["shown"] {
  const links = link?.rows ?? [];
  const known = new Set([...bridges, ...(address?.rows ?? [])].map((row) => row.interface));
  const listed = bridge?.ports ?? [];
  const names = new Set(
    [...links.flatMap(({ interface: name, master }) => [name, ...(master === undefined ? [] : [master])]), ...listed.map((row) => row.bridge)].filter((name) =>
      CNI_BRIDGE.test(name),
    ),
  );
  return [...names].flatMap((name) => {
    const mastered = links.filter((row) => row.master === name);
    const ports = (mastered.length > 0 ? mastered : listed.filter((row) => row.bridge === name)).filter((row) => isPodPort(row.interface, links));
    const own = links.find((row) => row.interface === name);
    const row = own ?? ports[0];
    const isOn = (link?.bridges ?? []).some((each) => each.interface === name && each.nfCallIptables === true);
    if (row === undefined || known.has(name) || isOn) return [];
    return [{ ...placed(row), interface: name, ports: ports.length, carrier: own?.flags.includes("LOWER_UP") === true }];
  });
}

const isKubeProxy = (row: IptablesRow): boolean => row.chain.startsWith("KUBE-SEP-") || row.target?.startsWith("KUBE-SEP-") === true;

function endpointsOf(sources: Sources, bridges: readonly PodBridge[]): Endpoint[] {
  const subnetOf = (address: string): PodBridge | undefined => bridges.find((row) => within(address, `${row.address}/${row.prefixLength}`));
  const isBehind = behind(sources, bridges);
  // of a subnet that other machines share, only what was seen behind a port of a pod is on this node
  const bridgeOf = (address: string): PodBridge | undefined => {
    const bridge = subnetOf(address);
    return bridge?.flat === true && !isBehind(address, bridge.interface) ? undefined : bridge;
  };
  const endpoints: Endpoint[] = [];
  const masked = bridges.length === 0 ? new Set<Family>() : masqueraded(sources);
  const add = (row: Row, address: string, by: Endpoint["by"]): void => {
    const bridge = by === "answer" ? subnetOf(address) : bridgeOf(address);
    if (bridge === undefined || (masked.has(bridge.family) && by !== "connection" && by !== "answer")) return;
    endpoints.push({ ...placed(row), bridge: bridge.interface, family: bridge.family, address, by });
  };
  const rows = sources.iptables?.rows ?? [];
  // on a node without such a bridge there is nothing to look for among 100,000 rules
  const targets = bridges.length === 0 ? [] : rows.filter((row) => row.toDestination !== undefined && row.chain.startsWith("KUBE-SEP-"));
  for (const row of targets) add(row, hostOf(row.toDestination as string), "rule");
  if (targets.length === 0 && bridges.length > 0)
    for (const row of rows) {
      const address = row.chain.startsWith("KUBE-SVC-") && isKubeProxy(row) ? ENDPOINT.exec(row.comment ?? "")?.[1] : undefined;
      if (address !== undefined) add(row, unbracketed(address), "comment");
    }
  for (const row of bridges.length === 0 ? [] : (sources.nft?.rows ?? [])) {
    const address = row.table === "kube-proxy" ? NFT_TARGET.exec(row.spec)?.[1] : undefined;
    if (address !== undefined) add(row, unbracketed(address), "rule");
  }
  for (const row of sources.ipvs?.servers ?? []) if (row.forward === undefined || row.forward === "masq") add(row, row.address, "server");
  // only kube-proxy and the bridges of CNIs: what Docker does between its containers is another matter
  const kube = rows.some((row) => row.chain.startsWith("KUBE-")) || sources.nft?.rows.some((row) => row.table === "kube-proxy") === true;
  const serves = (address: string): boolean => kube || subnetOf(address)?.cni === true;
  // where no subnet was seen: both are neighbours on the bridge of a CNI
  const neighbors = new Map((sources.neighbor?.rows ?? []).filter((row) => CNI_BRIDGE.test(row.interface)).map((row) => [row.address, row.interface]));
  for (const row of sources.conntrack?.rows ?? []) {
    if (!row.unreplied || row.replySource === row.destination || row.replyDestination !== row.source) continue;
    const [client, server] = [bridgeOf(row.source), bridgeOf(row.replySource)];
    const shared = neighbors.get(row.source);
    if (client !== undefined && client === server && serves(row.replySource)) add(row, row.replySource, "connection");
    else if (shared !== undefined && shared === neighbors.get(row.replySource) && row.source !== row.replySource)
      endpoints.push({ ...placed(row), bridge: shared, family: row.source.includes(":") ? "ipv6" : "ipv4", address: row.replySource, by: "connection" });
  }
  for (const row of sources["service-answer"]?.rows ?? [])
    if (row.from !== row.expected && serves(row.from) && subnetOf(row.expected) === undefined) add(row, row.from, "answer");
  return endpoints;
}

/**
 * Families of which kube-proxy masquerades whatever is sent to a service (`--masquerade-all`): a pod's reply goes to the node itself, which translates it back, whether the bridge asks iptables or not.
 *
 *     -A KUBE-SVC-67NZLRHBNDSAWJRO -d 10.96.44.17/32 -p tcp -m comment --comment "shop/web:http cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ
 */
function masqueraded({ iptables, nft }: Sources): Set<Family> {
  const marks = (iptables?.rows ?? []).filter((row) => row.target === "KUBE-MARK-MASQ" && isOfServices(row));
  // of IPVS without a range of pods only what a service's own address sends to itself
  const plain = (row: IptablesRow): boolean =>
    row.source === undefined && row.inInterface === undefined && row.mark === undefined && row.cut !== true && !/ src,dst(?: |$)/.test(row.spec);
  const jumps = (nft?.rows ?? []).filter(
    (row) => row.table === "kube-proxy" && row.chain.startsWith("service-") && / jump mark-for-masquerade(?: |$)/.test(row.spec),
  );
  const found = new Set<Family>();
  for (const family of ["ipv4", "ipv6"] as const) {
    const own = marks.filter((row) => row.family === family);
    const other = jumps.filter((row) => row.family === (family === "ipv4" ? "ip" : "ip6"));
    if (own.length + other.length > 0 && own.every(plain) && other.every((row) => !/ saddr |iifname /.test(row.spec))) found.add(family);
  }
  return found;
}

/** Of cluster addresses: since 1.24 in the chain of the service, before among the services, where those of external addresses are masqueraded anyway; with IPVS one rule for all. */
const isOfServices = (row: IptablesRow): boolean =>
  row.chain.startsWith("KUBE-SVC-") ||
  (row.chain === "KUBE-SERVICES" && / cluster IP$| service cluster ip \+ port for masquerade purpose$/.test(row.comment ?? ""));

/** Tells whether an address was seen behind a pod's port of a bridge: its hardware address is known, and the bridge learned that one there. */
function behind(sources: Sources, bridges: readonly PodBridge[]): (address: string, bridge: string) => boolean {
  if (!bridges.some((row) => row.flat)) return () => true;
  const links = sources.link?.rows ?? [];
  const ports = new Set((sources.fdb?.rows ?? []).filter((row) => isPodPort(row.interface, links)).map((row) => row.mac));
  const known = new Set((sources.neighbor?.rows ?? []).filter((row) => ports.has(row.mac ?? "")).map((row) => `${row.address} ${row.interface}`));
  return (address, bridge) => known.has(`${address} ${bridge}`);
}

/** "10.244.1.5:53", "10.244.1.5-10.244.1.9", "[fd00:1::5]:53" without what stands behind the address. */
const hostOf = (destination: string): string => /^\[([^\]]{2,39})\]/.exec(destination)?.[1] ?? (destination.split(":")[0] ?? "").split("-")[0] ?? "";

/** Rules that lead to services, of kube-proxy; none where endpoints were listed with them, wherever they are. */
function servicesOf(sources: Sources): BridgeNetfilter["services"] {
  const rows = sources.iptables?.rows ?? [];
  const listed = rows.some((row) => row.target === "DNAT" && row.chain.startsWith("KUBE-SEP-")) || rows.some((row) => ENDPOINT.test(row.comment ?? ""));
  if (listed || (sources.ipvs?.servers.length ?? 0) > 0) return [];
  return rows
    .filter((row) => (row.chain.startsWith("KUBE-SVC-") && isKubeProxy(row)) || (row.chain === "KUBE-SERVICES" && row.target?.startsWith("KUBE-SVC-") === true))
    .map((row) => placed(row));
}

/** All rules, addresses and ports were seen, and no service leads to a pod on a bridge. */
function unneededOf(
  sources: Sources,
  whole: ReadonlySet<string>,
  bridges: readonly PodBridge[],
  endpoints: readonly Endpoint[],
  services: BridgeNetfilter["services"],
): BridgeNetfilter["unneeded"] {
  const ports = whole.has("link") || whole.has("bridge");
  const behindPorts = !bridges.some((row) => row.flat) || (whole.has("neighbor") && whole.has("fdb"));
  // with IPVS the rules tell nothing of where services lead
  const balanced = (sources.iptables?.rows ?? []).some((row) => row.spec.includes("match-set KUBE-CLUSTER-IP "));
  const rules =
    whole.has("iptables") && (!balanced || whole.has("ipvs")) && (whole.has("nft") || !(sources.nft?.rows ?? []).some((row) => row.table === "kube-proxy"));
  const nothing = whole.has("address") && ports && behindPorts && (bridges.length === 0 || (rules && services.length === 0));
  const row = sources.address?.rows[0];
  return nothing && endpoints.length === 0 && row !== undefined ? [placed(row)] : [];
}
