import { z } from "zod";
import { defineDerivedFact, type Row } from "./fact.ts";
import type { Ipset } from "./ipset.ts";
import { rulesOf } from "./iptables-chains.ts";
import type { Iptables } from "./iptables-row.ts";
import type { Nft } from "./nft-row.ts";
import { ForwardChain, forwardChains } from "./packet-path-forward.ts";
import { iptablesBases } from "./packet-path-iptables.ts";
import { keeperOf } from "./packet-path-keeper.ts";
import { nftBases } from "./packet-path-nft.ts";
import type { Packet } from "./packet-path-packet.ts";
import { type BridgeHints, type NodeView, type ProbeName, podInterfaces, probesOf, SOME_OUTSIDE, somePod, trafficOf } from "./packet-path-probes.ts";
import { Shadowed, shadowedRules, Wall } from "./packet-path-shadowed.ts";
import { type BaseChain, type Decision, type PathRule, walkPacket } from "./packet-path-walk.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";

/**
 * What the firewall does with packets that stand for the node's traffic (probes): the rules of iptables and nft walked as the kernel walks them. One row per
 * probe and owner; a packet must be accepted by every owner. No packet is sent. A condition that cannot be worked out (limit, owner, unknown set, …) makes
 * both ways possible: if they disagree the verdict is "undetermined", never a guess. Not walked: nat (it does not drop), ebtables, eBPF.
 */
const PathRow = z.object({
  /** Of the rule that decided, or of the chain whose policy did. */
  line: z.int(),
  family: z.enum(["ipv4", "ipv6"]),
  /** "iptables-nft", "iptables-legacy", "iptables" where the backend is not known, or the nft table: "inet firewalld". */
  owner: z.string(),
  /**
   * "pod-to-outside" and "outside-to-pod" (over the default route), "pod-to-remote-pod" and "remote-pod-to-pod" (between nodes), "bridged" (from port to port
   * of one bridge: walked only if bridge-nf-call-iptables is 1), "overlay-in" and "overlay-out" (the packets that carry a tunnel).
   */
  probe: z.string(),
  /** Whose pods, containers or machines: "kubernetes", "docker", "libvirt", "lxd", "bridge". */
  network: z.string(),
  /** Of overlay probes: the tunnel. */
  overlay: z.string().optional(),
  inInterface: z.string().optional(),
  outInterface: z.string().optional(),
  /** Address or prefix, where known. */
  source: z.string().optional(),
  destination: z.string().optional(),
  protocol: z.string(),
  destinationPort: z.int().optional(),
  /** "NEW" or "ESTABLISHED". */
  state: z.string(),
  verdict: z.enum(["accept", "drop", "reject", "undetermined"]),
  /** Why it is undetermined; empty otherwise. */
  reason: z.string(),
  table: z.string(),
  /** Of the rule that decided. */
  chain: z.string(),
  /** No rule decided, but the policy of the chain. */
  byPolicy: z.boolean(),
  /** Which program keeps the chain or table that decided, where its name tells ("kubernetes", "calico", "docker", …); absent for the host's own. */
  keeper: z.string().optional(),
  /** The chains on the way to it. */
  via: z.array(z.string()),
  /** Of "drop", "reject" and "undetermined": the chains in which it is or may be dropped, "FORWARD policy", "?" for what is not known. */
  blockers: z.array(z.string()),
  /** Those of the blockers that no program keeps. */
  foreignBlockers: z.array(z.string()),
  /** The rule as text; empty for a policy. */
  rule: z.string(),
  /** Of "drop" and "reject" by a rule: without this rule the packet would get through this owner. */
  acceptedOtherwise: z.boolean(),
  /** Packets that the rule or the policy has counted, and those between the two samples. */
  packets: z.int().optional(),
  packetsDelta: z.int().optional(),
});

/** Interfaces behind which pods, containers or machines are; at most two that are alike. "?pod" where only the firewall is known, and it knows of pods. */
const PathInterface = z.object({ line: z.int(), interface: z.string(), network: z.string(), kind: z.enum(["bridge", "port"]) });

/**
 * Packets that a rule with the target LOG (or nft's `log`) wrote to the kernel log, the last {@link MAX_LOGGED}.
 *
 *     [UFW BLOCK] IN=cni0 OUT=eth0 MAC=… SRC=10.244.1.5 DST=192.0.2.9 LEN=60 … PROTO=TCP SPT=41522 DPT=443 …
 */
const Logged = z.object({
  line: z.int(),
  /** What the rule writes before the packet; the firewall's own name, often: "[UFW BLOCK]", "filter_FWD_public_REJECT:". */
  prefix: z.string(),
  inInterface: z.string().optional(),
  /** Absent for packets to the node itself. */
  outInterface: z.string().optional(),
  /** Whose interfaces they are, as in a probe; absent for the node's own. */
  inNetwork: z.string().optional(),
  outNetwork: z.string().optional(),
  /** Ports of a bridge between which the frame was passed: iptables saw it because of br_netfilter. */
  inPort: z.string().optional(),
  outPort: z.string().optional(),
  source: z.string(),
  destination: z.string(),
  /** As printed: "TCP", "UDP", "ICMP", a number. Absent where a pager cut the line before. */
  protocol: z.string().optional(),
  destinationPort: z.int().optional(),
  /** Seconds, where known. */
  age: z.number().optional(),
});

/** Somebody saw with tcpdump that a firewall refused a packet of a tunnel between nodes, here or on the other node. */
const Refused = z.object({
  line: z.int(),
  /** Whose packet it was. */
  source: z.string(),
  /** Who refused it. */
  destination: z.string(),
  destinationPort: z.int(),
});

const PacketPath = z.object({
  rows: z.array(PathRow),
  interfaces: z.array(PathInterface),
  forwards: z.array(ForwardChain),
  walls: z.array(Wall),
  shadowed: z.array(Shadowed),
  logged: z.array(Logged),
  refused: z.array(Refused),
});
type PacketPath = z.infer<typeof PacketPath>;
type PathRow = z.infer<typeof PathRow>;
type Logged = z.infer<typeof Logged>;

/** A firewall that logs each packet fills the log with what is the same again and again. */
const MAX_LOGGED = 200;

interface Trace {
  readonly carriers: readonly { readonly source: string; readonly destination: string; readonly port: number }[];
  readonly refusals: readonly (Row & { readonly source: string; readonly destination: string; readonly reason: string })[];
}

/** The facts that it is derived from; each may be missing. */
interface Sources {
  readonly iptables?: Iptables;
  readonly nft?: Nft;
  readonly ipset?: Ipset;
  readonly link?: { readonly rows: NodeView["links"]; readonly vxlans: NodeView["vxlans"] };
  readonly address?: { readonly rows: NodeView["addresses"] };
  readonly route?: { readonly rows: NodeView["routes"] };
  readonly fdb?: { readonly rows: NodeView["fdb"] };
  readonly "kernel-log"?: { readonly rows: readonly (Row & { readonly message: string; readonly age?: number })[] };
  readonly "packet-trace"?: Trace;
  readonly "cni-config"?: { readonly plugins: readonly { readonly bridge?: string }[] };
  readonly "flannel-env"?: { readonly rows: readonly { readonly network?: string; readonly subnet?: string }[] };
}

export const packetPath = defineDerivedFact<PacketPath>({
  id: "packet-path",
  title: "What the firewall does with the traffic of pods, containers, machines and tunnels",
  from: ["iptables", "nft", "link", "address", "route", "ipset", "fdb", "kernel-log", "packet-trace", "cni-config", "flannel-env"],
  // without them a verdict is undetermined at worst
  optional: ["ipset", "fdb", "kernel-log", "packet-trace", "cni-config", "flannel-env"],
  // one file that names the bridge is enough
  inPart: ["cni-config", "flannel-env"],
  masked: ["iptables", "nft"],
  schema: PacketPath,
  derive(values: Sources) {
    const view: NodeView = {
      links: values.link?.rows ?? [],
      vxlans: values.link?.vxlans ?? [],
      addresses: values.address?.rows ?? [],
      routes: values.route?.rows ?? [],
      fdb: values.fdb?.rows ?? [],
    };
    // of a node that shows nothing but its firewall, the chains of kube-proxy say that it has pods
    const proxy = values.iptables?.chains.find((chain) => chain.name.startsWith("KUBE-"));
    const blind = values.link === undefined && values.address === undefined && values.route === undefined;
    const pods = blind && proxy !== undefined ? [somePod(proxy)] : podInterfaces(view, hintsOf(values));
    const interfaces = pods.map(({ row, interface: name, network, kind }) => ({ ...placed(row), interface: name, network, kind }));
    const rows: PathRow[] = [];
    const bases = new Map<string, BaseChain[]>();
    for (const probe of probesOf(view, pods)) {
      const { packet } = probe;
      let chains = bases.get(packet.family);
      if (chains === undefined) {
        chains = firewall(values, packet.family);
        bases.set(packet.family, chains);
      }
      for (const decision of decide(chains, packet, probe.name)) rows.push(toRow(probe, decision, chains));
    }
    return {
      rows,
      interfaces,
      forwards: forwardChains(values.iptables),
      ...shadowedRules(values.iptables, values.link),
      logged: loggedPackets(values["kernel-log"]?.rows ?? []),
      refused: refusedPackets(values["packet-trace"]),
    };
  },
});

/** What tells which bridge is the pods', whatever it is called. */
function hintsOf({ iptables, nft, "cni-config": cni, "flannel-env": flannel }: Sources): BridgeHints {
  const others = (owner: string, chain: string): boolean => /^(?:docker|podman|libvirt|lxd)$/.test(keeperOf(owner, chain) ?? "");
  return {
    named: new Set(cni?.plugins.flatMap(({ bridge }) => bridge ?? [])),
    kubeProxy: rulesOf(iptables?.rows ?? [], "FORWARD").some((row) => row.target === "KUBE-FORWARD"),
    claimed: (name) =>
      (iptables?.rows.some(
        (row) =>
          (row.inInterface === name || row.outInterface === name) &&
          (others("", row.chain) || others("", row.target ?? "") || /^generated for (?:LXD|Incus) /.test(row.comment ?? "")),
      ) ??
        false) ||
      (nft?.rows.some((row) => others(`${row.family} ${row.table}`, row.chain) && row.spec.includes(`"${name}"`)) ?? false),
    ranges: (flannel?.rows ?? []).flatMap(({ network, subnet }) => [network, subnet].filter((prefix) => prefix !== undefined)),
  };
}

/** All base chains that packets of a family pass. */
export function firewall({ iptables, nft, ipset }: Pick<Sources, "iptables" | "nft" | "ipset">, family: Packet["family"]): BaseChain[] {
  // what was read from nft's listing, the fact nft has too, and as nft means it
  const own = iptables?.chains.some((chain) => chain.translated) ? { ...iptables, chains: iptables.chains.filter((chain) => !chain.translated) } : iptables;
  const first = own === undefined ? [] : iptablesBases(own, family, ipset);
  const shown = first.some((base) => base.owner !== "iptables-legacy");
  return nft === undefined ? first : [...first, ...nftBases(nft, family, shown)];
}

/** Refusals by a firewall of what the two ends are seen to send in a tunnel. One row per pair. */
function refusedPackets(trace: Trace | undefined): PacketPath["refused"] {
  const found = new Map<string, PacketPath["refused"][number]>();
  for (const row of trace?.refusals ?? []) {
    const carrier = trace?.carriers.find((other) => other.source === row.destination && other.destination === row.source);
    const key = `${row.source} ${row.destination}`;
    if (row.reason !== "admin-prohibited" || carrier === undefined || found.has(key)) continue;
    found.set(key, { ...placed(row), source: carrier.source, destination: carrier.destination, destinationPort: carrier.port });
  }
  return [...found.values()];
}

const LOGGED =
  /^(.{0,120}?)\bIN=(\S{0,16}) OUT=(\S{0,16}) .{0,200}?\bSRC=([\da-fA-F.:]{2,45}) DST=([\da-fA-F.:]{2,45}) .{0,200}?(?:\bPROTO=(\w{1,12})(?:.{0,40}?\bDPT=(\d{1,5}))?|>$)/;
const BRIDGED = /\bPHYSIN=(\S{1,16}) PHYSOUT=(\S{1,16}) /;

function loggedPackets(messages: NonNullable<Sources["kernel-log"]>["rows"]): Logged[] {
  const found: Logged[] = [];
  for (let i = messages.length - 1; i >= 0 && found.length < MAX_LOGGED; i--) {
    const row = messages[i] as (typeof messages)[number];
    const whole = row.message.includes("IN=") ? wholeLine(row, messages[i + 1]) : "";
    const match = whole === "" ? null : LOGGED.exec(whole);
    if (match === null) continue;
    const [, inPort, outPort] = BRIDGED.exec(whole.slice(0, 300)) ?? [];
    const [, prefix = "", inInterface, outInterface, source = "", destination = "", protocol, port] = match;
    const interfaces = {
      inInterface: inInterface || undefined,
      outInterface: outInterface || undefined,
      inNetwork: trafficOf(inInterface ?? ""),
      outNetwork: trafficOf(outInterface ?? ""),
    };
    const destinationPort = port === undefined ? undefined : Number(port);
    found.push({
      ...placed(row),
      prefix: prefix.trim(),
      source,
      destination,
      ...present({ ...interfaces, inPort, outPort, protocol, destinationPort, age: row.age }),
    });
  }
  return found.reverse();
}

/** A terminal may have broken the line of a packet in two, wherever it ended. */
function wholeLine(row: { line: number; message: string }, next: { line: number; message: string } | undefined): string {
  const broken = next?.line === row.line + 1 && !row.message.includes("PROTO=") && !next.message.includes("IN=") && next.message.includes("PROTO=");
  return broken ? `${row.message}${next.message}` : row.message;
}

interface Decided extends Decision {
  readonly skipped: ReadonlySet<PathRule["row"]>;
}

/** What each owner does. A rule about some addresses outside is no answer for all of them: it is looked past. */
function decide(chains: readonly BaseChain[], packet: Packet, probe: ProbeName): Decided[] {
  const skipped = new Set<PathRule["row"]>();
  const outside = probe === "pod-to-outside" || probe === "outside-to-pod";
  for (let round = 0; ; round++) {
    const decisions = walkPacket(chains, packet, skipped);
    const particular = decisions.filter(({ byPolicy, verdict, row }) => outside && !byPolicy && verdict !== "accept" && SOME_OUTSIDE.test(row.spec ?? ""));
    if (particular.length === 0 || round === MAX_PARTICULAR) return decisions.map((decision) => ({ ...decision, skipped }));
    for (const { row } of particular) skipped.add(row);
  }
}
/** Rules about some addresses outside that are looked past. */
const MAX_PARTICULAR = 20;

function toRow({ name, network, overlay, packet }: ReturnType<typeof probesOf>[number], decision: Decided, chains: readonly BaseChain[]): PathRow {
  const { row, verdict, owner, reason, table, chain, byPolicy, via, blockers, skipped } = decision;
  const blocked = (verdict === "drop" || verdict === "reject") && !byPolicy;
  const otherwise = blocked ? walkPacket(chains, packet, new Set([...skipped, row])).find((other) => other.owner === owner)?.verdict : undefined;
  const { family, source, destination, protocol, destinationPort, state } = packet;
  return {
    ...placed(row),
    family,
    owner,
    probe: name,
    network,
    protocol,
    state,
    verdict,
    reason,
    table,
    chain,
    byPolicy,
    via: [...via],
    blockers: [...blockers],
    foreignBlockers: blockers.filter((blocker) => keeperOf("", blocker) === undefined),
    rule: byPolicy ? "" : (row.spec ?? ""),
    acceptedOtherwise: otherwise === "accept",
    ...present({
      keeper: keeperOf(owner, chain),
      overlay,
      inInterface: shown(packet.inInterface),
      outInterface: shown(packet.outInterface),
      source,
      destination,
      destinationPort,
      packets: row.packets,
      packetsDelta: row.packetsDelta,
    }),
  };
}

/** An interface that is not known has no name. */
const shown = (name: string | undefined): string | undefined => (name?.startsWith("?") ? undefined : name);
