import { z } from "zod";
import type { Address } from "./address.ts";
import type { AgentLog } from "./agent-log.ts";
import { CARD } from "./card-name.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { prefixBits } from "./ip-bits.ts";
import type { Link } from "./link.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";
import type { Process } from "./process.ts";
import type { Route } from "./route.ts";
import type { Rule } from "./rule.ts";

/**
 * What tells that a node was meant to have a default route (IPv4, or IPv6 where that is all) in table main, and what speaks against it. Whether it has one is in the fact `route`.
 *
 *     default via 192.0.2.1 dev eth1 table 2
 *     E1120 06:22:10.331544  1 main.go:204] Failed to find any valid interface to use: failed to get default interface: Unable to find default route
 */
const DefaultRoute = z.object({
  /** Whether all routes of IPv4 were listed: only then one that is not among them is not there. */
  listed: z.boolean(),
  /** Whether the default routes of IPv4 alone were asked for (`ip route show default`), and there is none in table main. Of wide routes in its place that tells nothing. */
  soughtInVain: z.boolean(),
  /** Agents that say that there is none. */
  complaints: z.array(z.object({ line: z.int(), unit: z.string(), age: z.number().optional() })),
  /** Those of agents of the CNI and the kubelet that looked for one of IPv4, did not find it, and did not find it later either. */
  sought: z.array(z.object({ line: z.int(), unit: z.string(), age: z.number().optional() })),
  /** Default routes of other tables; none where there are VRFs, whose tables have their own. */
  elsewhere: z.array(z.object({ line: z.int(), table: z.string() })),
  agents: z.array(z.object({ line: z.int(), command: z.string() })),
  /** Routes of a CNI, on a node that has a subnet on an interface of its own. */
  cluster: z.array(z.object({ line: z.int(), interface: z.string() })),
  /** The same of IPv6, on a node that has no IPv4 address. */
  cluster6: z.array(z.object({ line: z.int(), interface: z.string() })),
  /** Addresses and routes that a DHCP client installed: somebody meant this node to reach more than its subnets. */
  leases: z.array(z.object({ line: z.int() })),
  /** Wide routes by a gateway (up to /16), in place of a default one: somebody's decision. */
  wide: z.array(z.object({ line: z.int(), prefix: z.string() })),
});
type DefaultRoute = z.infer<typeof DefaultRoute>;

interface Sources {
  readonly route?: { rows: readonly (Route & Row)[] };
  readonly "empty-table"?: { noDefault: readonly { family: string }[] };
  readonly rule?: { rows: readonly (Rule & Row)[] };
  readonly address?: { rows: readonly (Address & Row)[] };
  readonly link?: { rows: readonly (Link & Row)[] };
  readonly process?: { rows: readonly (Process & Row)[] };
  readonly "agent-log"?: Placed<AgentLog>;
}

const NONE = /\bno default (?:route|gateway)/i;
/** flannel, kube-router: "Unable to find default route". */
const NOT_FOUND = /(?:unable to|could not|cannot|can't|failed to) (?:find|get|determine|detect) (?:an? |any |the )?default (?:route|gateway|interface)/i;
/** "dial tcp 203.0.113.5:6443: connect: network is unreachable"; kubeadm's and the API server's "unable to select an IP from default routes". */
const UNREACHABLE = /connect: network is unreachable|unable to select an IP from default routes/i;
/** flanneld, kube-router, k3s and the kubelet, when they look for the node's own interface or address. */
const SOUGHT =
  /(?:get|find) (?:the )?default interface: (?:unable|could not|failed) to find (?:the )?default (?:v4 |ipv4 )?route|no default routes (?:found in|in file) [\\"]{0,4}\/proc\/net\/route|^unable to find default (?:v4 |ipv4 )?route$/i;
/** What flanneld and the kubelet say once they have it. */
const GOT = /\bUsing interface with name |Defaulting external address to interface|\bSuccessfully registered node\b|as it just became ready/;
const AGENT = /^(?:kubelet|k3s|k3s-server|k3s-agent|rke2)$/;
const CNI = /^(?:cni0|cbr0|flannel\.\d{1,8}|cali[0-9a-f]{6,11}|cilium_host|lxc[0-9a-f]{8,14}|vxlan\.calico|kube-bridge)$/;
const UPLINK = new RegExp(`^(?:${CARD}|bond|br0|br-ex|ib|team|wl)`);
/** Bridges, pods and VPNs, which may lease addresses without a way out. */
const INNER = /^(?:docker|virbr|br-|veth|tun|tap|wg|lxc|lxd|tailscale)/;

export const defaultRoute = defineDerivedFact<DefaultRoute>({
  id: "default-route",
  title: "What tells that a node was meant to have a default route",
  from: ["route", "rule", "address", "link", "process", "agent-log", "empty-table"],
  optional: ["route", "rule", "address", "link", "process", "agent-log", "empty-table"],
  inPart: ["empty-table"],
  // a default route is one whatever its gateway is
  masked: ["route"],
  schema: DefaultRoute,
  derive(values: Sources, whole) {
    const routes = (values.route?.rows ?? []).filter((row) => row.family === "ipv4");
    const main = routes.filter((row) => row.table === "main");
    const vrfs = (values.rule?.rows ?? []).some((row) => row.table === "l3mdev") || (values.link?.rows ?? []).some((row) => row.kind === "vrf");
    const length = (row: Route): number => prefixBits(row.prefix)?.length ?? 32;
    const connected = (row: Route): boolean => (row.scope ?? "link") === "link" && row.gateway === undefined && length(row) < 32;
    const inCluster = main.some((row) => connected(row) && UPLINK.test(row.interface ?? ""));
    const isElsewhere = (row: Route): boolean => row.table !== "main" && row.type === "unicast" && length(row) === 0 && row.gateway !== undefined;
    const isWide = (row: Route): boolean => row.type === "unicast" && row.gateway !== undefined && length(row) >= 1 && length(row) <= 16;
    const isLeased = (row: Address): boolean =>
      row.family === "ipv4" && row.flags.includes("dynamic") && !row.address.startsWith("169.254.") && !INNER.test(row.interface);
    return {
      listed: whole.has("route"),
      soughtInVain: (values["empty-table"]?.noDefault ?? []).some((row) => row.family === "ipv4"),
      // the end of a log tells whether it was found after all
      sought: values["agent-log"]?.logs?.some((log) => log.cut) === true ? [] : soughtIn(values["agent-log"]?.rows ?? []),
      complaints: (values["agent-log"]?.rows ?? [])
        .filter(({ message }) => NONE.test(message) || NOT_FOUND.test(message) || UNREACHABLE.test(message))
        .map((row) => ({ ...placed(row), unit: row.unit, ...present({ age: row.age }) })),
      elsewhere: routes.filter((row) => !vrfs && isElsewhere(row) && !row.table.startsWith("vrf ")).map((row) => ({ ...placed(row), table: row.table })),
      agents: (values.process?.rows ?? []).filter((row) => AGENT.test(row.command) && !row.defunct).map((row) => ({ ...placed(row), command: row.command })),
      cluster: routes.flatMap((row) => (inCluster && CNI.test(row.interface ?? "") ? [{ ...placed(row), interface: row.interface as string }] : [])),
      cluster6: cluster6Of(values),
      leases: [...(values.address?.rows ?? []).filter(isLeased), ...main.filter((row) => row.type === "unicast" && row.protocol === "dhcp")].map((row) =>
        placed(row),
      ),
      wide: main.filter(isWide).map((row) => ({ ...placed(row), prefix: row.prefix })),
    };
  },
});

/** The agents' messages that they found no default route, unless one of them found its interface afterwards. */
function soughtIn(messages: NonNullable<Sources["agent-log"]>["rows"]): DefaultRoute["sought"] {
  const found = messages.filter((row) => GOT.test(row.message));
  const isLater = (one: (typeof messages)[number], other: (typeof messages)[number]): boolean =>
    one.age !== undefined && other.age !== undefined && one.age !== other.age
      ? one.age < other.age
      : placed(one).output !== placed(other).output || one.line > other.line;
  return messages
    .filter((row) => SOUGHT.test(row.message) && !found.some((later) => isLater(later, row)))
    .map((row) => ({ ...placed(row), unit: row.unit, ...present({ age: row.age }) }));
}

/** Routes of a CNI on a node with IPv6 alone: lo's IPv4 address shows that IPv4 was listed, and no other interface has one. */
function cluster6Of({ route, address }: Sources): DefaultRoute["cluster6"] {
  const ipv4 = (address?.rows ?? []).filter((row) => row.family === "ipv4");
  if (!ipv4.some((row) => row.interface === "lo") || ipv4.some((row) => row.interface !== "lo" && !row.address.startsWith("169.254."))) return [];
  const main = (route?.rows ?? []).filter((row) => row.family === "ipv6" && row.table === "main" && row.type === "unicast" && !row.prefix.startsWith("fe80"));
  // a default route of another table, or most of the Internet, is somebody's decision
  if (
    (route?.rows ?? []).some((row) => row.family === "ipv6" && row.table !== "local" && row.type === "unicast" && (prefixBits(row.prefix)?.length ?? 128) <= 16)
  )
    return [];
  const hasUplink = main.some((row) => row.gateway === undefined && UPLINK.test(row.interface ?? ""));
  return hasUplink ? main.flatMap((row) => (CNI.test(row.interface ?? "") ? [{ ...placed(row), interface: row.interface as string }] : [])) : [];
}
