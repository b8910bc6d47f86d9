import { z } from "zod";
import type { Address } from "./address.ts";
import type { AgentLog } from "./agent-log.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { within } from "./ip-bits.ts";
import type { Link } from "./link.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";
import type { Route } from "./route.ts";

/**
 * Routes to the pods of other nodes that an agent which routes without a tunnel (kube-router, flannel's host-gw) needs, and the kernel does not have.
 *
 *     100.96.3.0/24 dev kube-bridge        and no route to 100.96.0.0/24, which BGP learned from 10.77.20.10
 *     Inject route: '100.96.0.0/24 via 10.77.20.10' from peer to routing table        as kube-router's log has it
 */
const Lost = z.object({
  /** Of what tells that there should be one: the route that BGP learned, kube-router's word that it made it, or the bridge's. */
  line: z.int(),
  agent: z.enum(["kube-router", "flannel"]),
  /** Of the other node's pods, where it is known. */
  prefix: z.string().optional(),
});
const LostPeerRoute = z.object({
  rows: z.array(Lost),
  /** Bridges whose agent would have such routes if there were other nodes: whether there are any was not seen. */
  open: z.array(z.object({ line: z.int(), interface: z.string() })),
});
type LostPeerRoute = z.infer<typeof LostPeerRoute>;

interface Sources {
  readonly route?: { rows: readonly (Route & Row)[] };
  readonly link?: { rows: readonly (Link & Row)[] };
  readonly cni?: { agents: readonly { cni: string }[] };
  readonly address?: { rows: readonly Address[] };
  readonly "bgp-route"?: { rows: readonly (Row & { prefix: string; nextHop: string; best: boolean })[] };
  readonly "cluster-node"?: { rows: readonly { name: string }[] };
  readonly "flannel-env"?: { rows: readonly { network?: string; mtu?: number }[] };
  readonly "agent-log"?: Placed<AgentLog>;
}

/** What kube-router says when it makes a route, and when its peer takes one back. */
const INJECTED = /^(Inject|Removing) route: '(\d[\d./]{6,17}) via (\d[\d.]{6,14})'/;

export const lostPeerRoute = defineDerivedFact<LostPeerRoute>({
  id: "lost-peer-route",
  title: "Routes to other nodes' pods that an agent needs and the kernel does not have",
  from: ["route", "link", "cni", "address", "bgp-route", "cluster-node", "flannel-env", "agent-log"],
  optional: ["link", "cni", "address", "bgp-route", "cluster-node", "flannel-env", "agent-log"],
  inPart: ["link", "cni", "address", "bgp-route", "cluster-node", "flannel-env", "agent-log"],
  schema: LostPeerRoute,
  derive(values: Sources, whole): LostPeerRoute {
    const main = (values.route?.rows ?? []).filter((row) => row.table === "main" && row.family === "ipv4");
    // only from all of them it can be told that one is not there
    if (main.length === 0 || !whole.has("route")) return { rows: [], open: [] };
    const rows = [...unlearned(main, values), ...withoutPeers(main, values, whole.has("link"))];
    const alone = whole.has("cluster-node") && nodesOf(values) === 1;
    const bridge = rows.length > 0 || alone || led(main) ? undefined : main.find((row) => mayRoute(row, values, whole.has("bgp-route")));
    return { rows, open: bridge === undefined ? [] : [{ ...placed(bridge), interface: bridge.interface ?? "" }] };
  },
});

const nodesOf = (values: Sources): number => new Set((values["cluster-node"]?.rows ?? []).map((row) => row.name)).size;
/** Some route leads to pods elsewhere. */
const led = (main: readonly Route[]): boolean =>
  main.some((row) => (row.gateway !== undefined || row.protocol === "17") && !row.prefix.endsWith("/0") && !row.prefix.endsWith("/32"));
const runs = (values: Sources, cni: string): boolean => (values.cni?.agents ?? []).some((row) => row.cni === cni);
const speaks = (values: Sources, unit: string): boolean => (values["agent-log"]?.logs ?? []).some((log) => log.unit === unit);
const hasDevice = (values: Sources): boolean => (values.link?.rows ?? []).some((row) => row.interface.startsWith("flannel"));

/** A bridge of an agent that may route without a tunnel. Of kube-router BGP tells all there is. */
const mayRoute = (row: Route, values: Sources, allOfBgp: boolean): boolean =>
  (isBridge(row, "kube-bridge") && !allOfBgp) ||
  (isBridge(row, "cni0") && !hasDevice(values) && (runs(values, "flannel") || (values["flannel-env"]?.rows ?? []).length > 0));

const isBridge = (row: Route, name: string): boolean => row.interface === name && row.gateway === undefined && row.type === "unicast";

/** What BGP learned from others or kube-router put in, and neither the route nor a wider one with a gateway is there. */
function unlearned(main: readonly (Route & Row)[], values: Sources): (Row & z.infer<typeof Lost>)[] {
  const own = new Set(["0.0.0.0", ...(values.address?.rows ?? []).map((row) => row.address), ...main.flatMap((row) => row.source ?? [])]);
  const known = (prefix: string): boolean => main.some((row) => !row.prefix.endsWith("/0") && within(prefix, row.prefix));
  if (!main.some((row) => isBridge(row, "kube-bridge"))) return [];
  return [...(values["bgp-route"]?.rows ?? []), ...injectedOf(values)]
    .filter((row) => row.best && row.prefix.includes(".") && !own.has(row.nextHop) && !known(row.prefix))
    .map((row) => ({ ...placed(row), agent: "kube-router", prefix: row.prefix }));
}

/** The routes that kube-router says it made, and did not take back later. */
function injectedOf(values: Sources): (Row & { prefix: string; nextHop: string; best: boolean })[] {
  const { rows = [], logs = [] } = values["agent-log"] ?? {};
  if (logs.some((log) => log.unit === "kube-router" && log.cut)) return [];
  const made = new Map<string, Row & { prefix: string; nextHop: string; best: boolean }>();
  for (const row of rows) {
    const [, verb, prefix = "", nextHop = ""] = row.unit === "kube-router" ? (INJECTED.exec(row.message) ?? []) : [];
    if (verb === "Inject") made.set(prefix, { ...placed(row), prefix, nextHop, best: true });
    else if (verb === "Removing") made.delete(prefix);
  }
  return [...made.values()];
}

/** The agent runs and has connected pods here, the cluster has other nodes, and no route at all leads to pods elsewhere. */
function withoutPeers(main: readonly (Route & Row)[], values: Sources, allLinks: boolean): (Row & z.infer<typeof Lost>)[] {
  const [env] = values["flannel-env"]?.rows ?? [];
  const links = values.link?.rows ?? [];
  // with host-gw there are no outer headers: pods have the size of the uplink
  const direct = allLinks && !hasDevice(values) && links.some((row) => /^(?:eth|en|bond)/.test(row.interface) && row.mtu === env?.mtu);
  const agent = runs(values, "kube-router") || speaks(values, "kube-router") ? "kube-router" : runs(values, "flannel") && direct ? "flannel" : undefined;
  const bridge = main.find((row) => isBridge(row, agent === "flannel" ? "cni0" : "kube-bridge"));
  if (agent === undefined || bridge === undefined || nodesOf(values) < 2 || led(main)) return [];
  return [{ ...placed(bridge), agent, ...present({ prefix: agent === "flannel" ? env?.network : undefined }) }];
}
