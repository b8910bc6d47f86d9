import { z } from "zod";
import type { Pods } from "./cluster-pod.ts";
import type { ConntrackEntry } from "./conntrack.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { rulesOf } from "./iptables-chains.ts";
import type { Iptables } from "./iptables-row.ts";
import type { Nft } from "./nft-row.ts";
import { hasNftProxy, nftNodePorts } from "./nft-service.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";
import type { Sysctl } from "./sysctl.ts";

/**
 * NodePorts of services that outgoing connections of the node may take: they lie in the range of these, nothing keeps them free, and kube-proxy does not hold
 * them with a socket of its own, as it did before 1.24. And the connections that sit on one. Every row stands where the row stands that it was made from.
 */
const Port = z.object({
  line: z.int(),
  port: z.int(),
  /** "tcp", "udp" or "sctp". */
  protocol: z.string(),
  /** rule: of kube-proxy, or its virtual server in IPVS. list: somebody asked the cluster. */
  by: z.enum(["rule", "list"]),
  /** It was seen that kube-proxy does not hold it: it is too new for that (it jumps to KUBE-EXT-, or so are the nodes), or all that listens was listed. */
  sure: z.boolean(),
});
const User = z.object({
  line: z.int(),
  port: z.int(),
  /** Of the port. */
  sure: z.boolean(),
  process: z.string().optional(),
});
const NodePorts = z.object({
  rows: z.array(Port),
  users: z.array(User),
  /** Connections that wait for an answer, and to which SNAT gave a NodePort of the node, whatever ports it keeps free: at least half of those that got another port. */
  translated: z.array(z.object({ line: z.int(), port: z.int() })),
});
type NodePorts = z.infer<typeof NodePorts>;
type Port = z.infer<typeof Port> & Row;

interface Socket {
  readonly protocol: string;
  readonly state: string;
  readonly port?: number;
  readonly peerPort?: number;
  readonly process?: string;
}
interface Sources {
  readonly sysctl?: Placed<Sysctl>;
  readonly iptables?: Iptables;
  readonly nft?: Nft;
  readonly socket?: { rows: readonly (Socket & Row)[]; shown: readonly { protocol: string; listening: boolean; port?: number }[] };
  readonly lsof?: { connections: readonly (Row & { program: string; state: string; port: number; peerPort: number })[] };
  readonly conntrack?: { rows: readonly (ConntrackEntry & Row)[] };
  readonly address?: { rows: readonly { address: string; interface?: string }[] };
  readonly ipvs?: { services: readonly (Row & { protocol: string; address: string; port?: number })[] };
  readonly process?: { rows: readonly { command: string }[] };
  readonly "cluster-node"?: { rows: readonly { version: string }[] };
  readonly "cluster-pod"?: Placed<Pods>;
  readonly "cluster-service"?: { nodePorts: readonly (Row & { protocol: string; port: number })[] };
}

/** Virtual servers with lower ports on the node's own addresses are external IPs, or somebody else's. */
const USUAL_NODE_PORTS = 30_000;
/** More rows of a kind than this prove nothing more. */
const MAX_ROWS = 500;
const isKubeProxy = (process: string | undefined): boolean => process !== undefined && /^(?:kube-proxy|k3s)/.test(process);

export const nodePort = defineDerivedFact<NodePorts>({
  id: "node-port",
  title: "NodePorts that outgoing connections of the node may take, and connections that sit on one",
  from: ["sysctl", "iptables", "nft", "socket", "lsof", "conntrack", "address", "cluster-service", "ipvs", "process", "cluster-node", "cluster-pod"],
  optional: ["nft", "socket", "lsof", "conntrack", "address", "cluster-service", "ipvs", "process", "cluster-node", "cluster-pod"],
  // rows of these only ever add a connection, or show that a port is held
  inPart: ["socket", "lsof", "conntrack", "address", "cluster-service", "ipvs", "process", "cluster-node", "cluster-pod"],
  schema: NodePorts,
  // in its nftables mode kube-proxy needs no iptables
  enough: (values, whole) => ["sysctl", "nft"].every((id) => whole.has(id)) && hasNftProxy((values as Sources).nft),
  derive(values) {
    const sources = values as Sources;
    const rows = portsOf(sources);
    return { rows: rows.slice(0, MAX_ROWS), users: usersOf(sources, rows).slice(0, MAX_ROWS), translated: translatedOf(sources).slice(0, MAX_ROWS) };
  },
});

/** A port that SNAT chooses by chance is a NodePort now and then: of connections that wait for a server that is gone, few have one. */
function translatedOf(sources: Sources): NodePorts["translated"] {
  const own = ownAddresses(sources);
  // where IPVS serves such a port the node has the address
  const served = (sources.ipvs?.services ?? []).filter((row) => (row.port ?? 0) >= USUAL_NODE_PORTS);
  const isServed = (row: ConntrackEntry): boolean => served.some(({ address, port }) => address === row.replyDestination && port === row.replyDestinationPort);
  const nodePorts = new Set([
    ...rulesOf(sources.iptables?.rows ?? [], "KUBE-NODEPORTS").map((row) => Number(row.destinationPort)),
    ...(sources.nft === undefined ? [] : nftNodePorts(sources.nft)).map(({ port }) => port),
    ...(sources.ipvs?.services ?? []).filter((row) => own.has(row.address) && (row.port ?? 0) >= USUAL_NODE_PORTS).map((row) => row.port),
    ...(sources["cluster-service"]?.nodePorts ?? []).map((row) => row.port),
  ]);
  const moved = (sources.conntrack?.rows ?? []).filter(
    (row) =>
      row.protocol === "tcp" &&
      row.state === "SYN_SENT" &&
      row.unreplied &&
      // who keeps its address and gets another port is the node itself
      (own.has(row.replyDestination) || row.source === row.replyDestination || served.some(({ address }) => address === row.replyDestination)) &&
      row.sourcePort !== undefined &&
      row.replyDestinationPort !== row.sourcePort,
  );
  const found = moved.filter((row) => nodePorts.has(row.replyDestinationPort) || isServed(row));
  return found.length * 2 < moved.length || found.length * 200 < nodePorts.size
    ? []
    : found.map((row) => ({ ...placed(row), port: row.replyDestinationPort as number }));
}

/** Cluster IPs, and those of load balancers, are on kube-ipvs0. */
const ownAddresses = (sources: Sources): Set<string> =>
  new Set((sources.address?.rows ?? []).flatMap((row) => (row.interface === undefined || row.interface === "kube-ipvs0" ? [] : [row.address])));

/** Each port once: that of a rule, else that of a list. */
function portsOf(sources: Sources): Port[] {
  const settings = sources.sysctl?.rows ?? [];
  const within = (ranges: readonly string[], port: number): boolean =>
    ranges.some((range) => {
      const [low, high = low] = range.split(/[ -]/, 2).map(Number);
      return port >= (low ?? Number.NaN) && port <= (high ?? Number.NaN);
    });
  const used = settings.filter((row) => row.key === "net.ipv4.ip_local_port_range" && /^\d{1,5} \d{1,5}$/.test(row.value)).map((row) => row.value);
  const reserved = settings.find((row) => row.key === "net.ipv4.ip_local_reserved_ports")?.value.split(",") ?? [];
  const kept = reserved.filter((range) => /^\d{1,5}(?:-\d{1,5})?$/.test(range));
  const sockets = sources.socket?.rows ?? [];
  const held = new Set(sockets.filter((row) => row.state === "LISTEN" && (row.process === undefined || isKubeProxy(row.process))).map((row) => row.port));
  const listed = (sources.socket?.shown ?? []).some((row) => row.protocol === "tcp" && row.listening && row.port === undefined);
  const ports = new Map<string, Port>();
  const add = (row: Row, port: number, protocol: string, by: Port["by"], sure: boolean): void => {
    const key = `${protocol} ${port}`;
    if (within(used, port) && !within(kept, port) && !held.has(port) && !ports.has(key)) ports.set(key, { ...placed(row), port, protocol, by, sure });
  };
  for (const row of rulesOf(sources.iptables?.rows ?? [], "KUBE-NODEPORTS")) {
    if (row.table !== "nat" || !/^\d{1,5}$/.test(row.destinationPort ?? "")) continue;
    if (row.target?.startsWith("KUBE-") !== true || row.target === "KUBE-MARK-MASQ") continue;
    add(row, Number(row.destinationPort), row.protocol === "all" ? "tcp" : row.protocol, "rule", listed || row.target.startsWith("KUBE-EXT-"));
  }
  // in its nftables mode it never held them
  for (const { port, protocol, row } of sources.nft === undefined ? [] : nftNodePorts(sources.nft)) add(row, port, protocol, "rule", true);
  const own = ownAddresses(sources);
  const isNodePort = (address: string, port: number | undefined): port is number => port !== undefined && port >= USUAL_NODE_PORTS && own.has(address);
  for (const row of sources.ipvs?.services ?? []) if (isNodePort(row.address, row.port)) add(row, row.port, row.protocol, "rule", listed);
  // who serves a port of the cluster's list is known where kube-proxy was seen to listen on its own ports
  const served = listed && sockets.some((row) => row.state === "LISTEN" && row.process?.startsWith("kube-proxy") === true);
  const recent = runsKubeProxy(sources) && isRecent(sources["cluster-node"]?.rows ?? []);
  for (const row of sources["cluster-service"]?.nodePorts ?? []) add(row, row.port, row.protocol, "list", recent || (served && row.protocol === "tcp"));
  return [...ports.values()];
}

/** It is among the programs of the node, or its pods are among those of the cluster. */
function runsKubeProxy(sources: Sources): boolean {
  const pods = sources["cluster-pod"]?.rows ?? [];
  return (
    (sources.process?.rows ?? []).some((row) => row.command === "kube-proxy") ||
    pods.some((row) => row.name.startsWith("kube-proxy-") && row.status === "Running")
  );
}

/** By Kubernetes' policy kube-proxy is at most two minor versions older than kubelets of 1.27 and three than later ones: 1.25 or newer, which holds no NodePort. */
function isRecent(nodes: readonly { version: string }[]): boolean {
  return nodes.length > 0 && nodes.every(({ version }) => Number(/^v1\.(\d{1,3})\./.exec(version)?.[1] ?? 0) >= 27);
}

/** Connections of the node that sit on one of the ports. Where kube-proxy may hold it, a connection that the node itself opened shows that it does not. */
function usersOf(sources: Sources, ports: readonly Port[]): NodePorts["users"] {
  const open = new Map(ports.map((row) => [`${row.protocol} ${row.port}`, row]));
  const users: NodePorts["users"] = [];
  const sockets = sources.socket?.rows ?? [];
  const served = new Set(sockets.filter((row) => row.state === "LISTEN").map((row) => row.port));
  const add = (row: Socket & Row): void => {
    const port = open.get(`${row.protocol} ${row.port}`);
    if (port === undefined || row.state === "UNCONN") return;
    // servers listen on low ports
    const opened = row.state !== "LISTEN" && !served.has(port.port) && !isKubeProxy(row.process) && (row.peerPort ?? port.port) < port.port;
    const sits = port.sure && (row.state !== "LISTEN" || row.process !== undefined);
    if (opened || sits) users.push({ ...placed(row), port: port.port, sure: port.sure, ...present({ process: row.process }) });
  };
  for (const row of sockets) add(row);
  for (const row of sources.lsof?.connections ?? []) add({ ...row, protocol: "tcp", process: row.program });
  const own = new Set((sources.address?.rows ?? []).map((row) => row.address));
  for (const row of sources.conntrack?.rows ?? []) {
    const port = row.protocol === "tcp" ? [row.sourcePort, row.replyDestinationPort].flatMap((number) => open.get(`tcp ${number}`) ?? [])[0] : undefined;
    if (port?.sure !== true) continue;
    const isOwn = (row.sourcePort === port.port && own.has(row.source)) || (row.replyDestinationPort === port.port && own.has(row.replyDestination));
    if (isOwn) users.push({ ...placed(row), port: port.port, sure: true });
  }
  return users;
}
