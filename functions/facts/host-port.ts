import { z } from "zod";
import type { Pods } from "./cluster-pod.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { within } from "./ip-bits.ts";
import { rulesOf } from "./iptables-chains.ts";
import type { Iptables } from "./iptables-row.ts";
import type { Nft } from "./nft-row.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";
import type { Route } from "./route.ts";

/**
 * A port of the host that leads to a pod, as writers other than portmap's chains CNI-HOSTPORT-DNAT and CNI-DN-… have it: portmap's backend for nftables (the
 * table cni_hostport), CRI-O and the old kubenet (KUBE-HOSTPORTS), and beside the cluster podman (netavark) and Docker.
 *
 *     tcp dport 8443 dnat to 10.244.3.61:443 comment "cba06b57…"
 *     -A KUBE-HOSTPORTS -p tcp -m comment --comment "web-1_shop hostport 8443" -m tcp --dport 8443 -j KUBE-HP-IJHALPHTORMHHPPK
 *     -A KUBE-HP-IJHALPHTORMHHPPK -p tcp -m comment --comment "web-1_shop hostport 8443" -m tcp -j DNAT --to-destination 10.85.0.9:443
 *     -A NETAVARK-DN-1D8721804F16F -p tcp -m tcp --dport 3001 -j DNAT --to-destination 10.88.0.20:3001
 *     -A DOCKER ! -i docker0 -p tcp -m tcp --dport 18968 -j DNAT --to-destination 172.17.0.17:18968
 */
const HostPort = z.object({
  /** Of the rule that translates. */
  line: z.int(),
  writer: z.enum(["portmap", "kubenet", "netavark", "docker"]),
  family: z.enum(["ipv4", "ipv6"]),
  /** Where it stands: "cni_hostport" or "netavark" of nftables, or the chain. */
  place: z.string(),
  protocol: z.string(),
  port: z.int(),
  /** Only packets to this address of the host. */
  hostAddress: z.string().optional(),
  /** The pod's. */
  address: z.string(),
  /** The pod's port, as a text with the address: "10.244.3.61:443". */
  to: z.string(),
  /** Among those of its writer and family: the first of two for one port takes every packet. */
  position: z.int(),
  packetsDelta: z.int().optional(),
});
/**
 * Calico's route for a range whose addresses this node gives to its pods, of which each has a route of its own, and an address of a mapping that has none: that pod is gone.
 *
 *     blackhole 10.42.9.0/26 proto 80
 */
const Unrouted = z.object({ line: z.int(), address: z.string(), prefix: z.string() });
/** An address of a mapping that none of the pods has, of a list of all of them: of the list's pod that is on this node, in the same /24. */
const Unlisted = z.object({ line: z.int(), address: z.string() });
const HostPorts = z.object({ rows: z.array(HostPort), unrouted: z.array(Unrouted), unlisted: z.array(Unlisted) });
type HostPorts = z.infer<typeof HostPorts>;

interface Sources {
  readonly iptables?: Iptables;
  readonly nft?: Nft;
  readonly route?: { readonly rows: readonly (Route & Row)[] };
  readonly "cluster-pod"?: Placed<Pods>;
}

/** A node has a port once for each protocol and address. */
const MAX_ROWS = 1000;
const MAPPED = /^(?:(?:ip6?|inet) daddr ([\da-fA-F.:]{2,45}) )?(tcp|udp|sctp) dport (\d{1,5}) dnat (?:ip6? )?to ([\da-fA-F.:[\]]{2,53})(?: |$)/;
const ENDPOINT = /^\[?([\da-fA-F.:]{2,45}?)\]?:(\d{1,5})$/;

export const hostPort = defineDerivedFact<HostPorts>({
  id: "host-port",
  title: "Ports of the host that lead to pods",
  from: ["iptables", "nft", "route", "cluster-pod"],
  optional: ["nft", "route", "cluster-pod"],
  inPart: ["route", "cluster-pod"],
  schema: HostPorts,
  derive({ iptables, nft, route, "cluster-pod": pods }: Sources, whole) {
    const rows = [...ofKubenet(iptables), ...ofEngines(iptables), ...ofNftables(nft), ...ofStrays(nft)].slice(0, MAX_ROWS);
    const plugins = (iptables?.rows ?? []).filter((row) => row.chain.startsWith("CNI-DN-") && row.target === "DNAT");
    const addresses = [...rows.map((row) => row.address), ...plugins.flatMap((row) => ENDPOINT.exec(row.toDestination ?? "")?.[1] ?? [])];
    const mapped = new Set(addresses.slice(0, MAX_ROWS));
    return { rows, unrouted: whole.has("route") ? unroutedOf(mapped, route?.rows ?? []) : [], unlisted: unlistedOf(mapped, pods) };
  },
});

/** Containers beside the cluster (podman, nerdctl) have ports of the host, too: only addresses of a /24 in which this node has a pod. IPv4 alone, as a list shows one address. */
function unlistedOf(addresses: ReadonlySet<string>, pods: Sources["cluster-pod"]): HostPorts["unlisted"] {
  const { rows = [], listings = [] } = pods ?? {};
  // where nobody knows what the node is called, any of them may be its own
  const named = rows.some((row) => row.own !== undefined);
  const own = rows.filter((row) => row.own ?? !named);
  // one that has no address yet may get this one
  const unknown =
    rows.some((row) => row.cut === true) || own.some((row) => row.address === undefined && !/^(?:Completed|Succeeded|Failed|Error|Evicted)$/.test(row.status));
  if (unknown || !listings.some((row) => row.node === undefined || row.own === true)) return [];
  const given = new Set(rows.map((row) => row.address));
  return [...addresses].flatMap((address) => {
    const beside = given.has(address)
      ? undefined
      : own.find((row) => row.status === "Running" && within(row.address ?? "", `${address.replace(/\.\d{1,3}$/, ".0")}/24`));
    return beside === undefined || !/^\d{1,3}(?:\.\d{1,3}){3}$/.test(address) ? [] : [{ ...placed(beside), address }];
  });
}

function unroutedOf(addresses: ReadonlySet<string>, routes: readonly (Route & Row)[]): HostPorts["unrouted"] {
  const blocks = routes.filter((row) => row.type === "blackhole" && row.table === "main" && /\/(?:2[0-9]|1(?:1[6-9]|2[0-7]))$/.test(row.prefix));
  const routed = new Set(routes.filter((row) => row.type === "unicast" || row.type === "local").map((row) => row.prefix.replace(/\/(?:32|128)$/, "")));
  return [...addresses].flatMap((address) => {
    const block = blocks.find((row) => within(address, row.prefix));
    // a block of which no pod has a route is not in use, or not Calico's
    const used =
      block !== undefined &&
      routes.some((row) => row.type === "unicast" && /\/(?:32|128)$/.test(row.prefix) && within(row.prefix.split("/")[0] ?? "", block.prefix));
    return !used || block === undefined || routed.has(address) ? [] : [{ ...placed(block), address, prefix: block.prefix }];
  });
}

function ofKubenet(iptables: Iptables | undefined): HostPorts["rows"] {
  const rows = iptables?.rows ?? [];
  const jumps = rulesOf(rows, "KUBE-HOSTPORTS").filter((row) => row.target?.startsWith("KUBE-HP-") === true);
  return jumps.flatMap((jump) => {
    const rule = rulesOf(rows, jump.target ?? "").find((row) => row.target === "DNAT" && row.family === jump.family && row.backend === jump.backend);
    const port = Number(jump.destinationPort);
    const [, address] = ENDPOINT.exec(rule?.toDestination ?? "") ?? [];
    if (rule?.toDestination === undefined || address === undefined || !Number.isInteger(port)) return [];
    const { family, protocol, position } = jump;
    const { packetsDelta } = rule;
    const hostAddress = jump.destination?.replace(/\/(?:32|128)$/, "");
    return [
      {
        ...placed(rule),
        writer: "kubenet" as const,
        family,
        place: rule.chain,
        protocol,
        port,
        address,
        to: rule.toDestination,
        position,
        ...present({ hostAddress, packetsDelta }),
      },
    ];
  });
}

/** Engines that keep all ports of a network in one chain. */
const ENGINES: readonly (readonly [RegExp, "netavark" | "docker"])[] = [
  [/^NETAVARK-DN-/, "netavark"],
  [/^DOCKER$/, "docker"],
];

function ofEngines(iptables: Iptables | undefined): HostPorts["rows"] {
  return (iptables?.rows ?? []).flatMap((rule: Iptables["rows"][number] & Row) => {
    const writer = rule.target === "DNAT" ? ENGINES.find(([chain]) => chain.test(rule.chain))?.[1] : undefined;
    const [, address] = ENDPOINT.exec(rule.toDestination ?? "") ?? [];
    const port = Number(rule.destinationPort);
    // what comes from one address or another is sent elsewhere on purpose
    if (writer === undefined || rule.toDestination === undefined || address === undefined || !Number.isInteger(port) || rule.source !== undefined) return [];
    const { family, chain: place, protocol, position, packetsDelta, toDestination: to } = rule;
    const hostAddress = rule.destination?.replace(/\/(?:32|128)$/, "");
    return [{ ...placed(rule), writer, family, place, protocol, port, address, to, position, ...present({ hostAddress, packetsDelta }) }];
  });
}

function ofNftables(nft: Nft | undefined): HostPorts["rows"] {
  return (nft?.rows ?? []).flatMap((row: Nft["rows"][number] & Row) => {
    const portmap = row.table === "cni_hostport" && row.chain.endsWith("hostports");
    if (!portmap && !(row.table === "netavark" && NETWORK.test(row.chain))) return [];
    const { packetsDelta, position } = row;
    return mappedBy(row.spec, row.family === "ip6").map((found) => ({
      ...placed(row),
      writer: portmap ? ("portmap" as const) : ("netavark" as const),
      place: row.table,
      position,
      ...found,
      ...present({ packetsDelta }),
    }));
  });
}

/** netavark's chain for the ports of a network. */
const NETWORK = /^nv_\w{1,60}_dnat$/;

/** `nft list ruleset | grep "dport 3001"` tells of netavark by the marks that it sets in front. */
function ofStrays(nft: Nft | undefined): HostPorts["rows"] {
  const strays = nft?.strays ?? [];
  if (!strays.some(({ target = "" }) => target === "NETAVARK-HOSTPORT-SETMARK" || NETWORK.test(target))) return [];
  return strays.flatMap((row: NonNullable<Nft["strays"]>[number] & Row, position) =>
    mappedBy(row.spec, false).map((found) => ({ ...placed(row), writer: "netavark" as const, place: "netavark", position, ...found })),
  );
}

function mappedBy(spec: string, ipv6: boolean): Pick<HostPorts["rows"][number], "family" | "protocol" | "port" | "address" | "to" | "hostAddress">[] {
  const [, hostAddress, protocol, port, to] = MAPPED.exec(spec) ?? [];
  const [, address] = ENDPOINT.exec(to ?? "") ?? [];
  if (protocol === undefined || to === undefined || address === undefined) return [];
  const family = ipv6 || address.includes(":") ? ("ipv6" as const) : ("ipv4" as const);
  return [{ family, protocol, port: Number(port), address, to, ...present({ hostAddress }) }];
}
