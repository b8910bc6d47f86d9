import { z } from "zod";
import type { AgentLog } from "./agent-log.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { TUNNEL_OF_FLANNEL } from "./former-cni.ts";
import { overlap, rangeOf } from "./ip-range.ts";
import type { Link } from "./link.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";
import type { Route } from "./route.ts";
import type { RouteAnswer } from "./route-answer.ts";

/**
 * VXLAN devices that the CNI's agent misses and that are not there: somebody deleted them, or they could not be made.
 *
 *     felix/vxlan_mgr.go 712: Failed to configure VXLAN tunnel device, retrying... error=can't locate created vxlan device vxlan.calico
 *     network.go:226] Failed to add vxlanRoute: no such device
 */
const Lost = z.object({
  /** Of the agent's message, of the MTU that it noted, of what its log says of its backend, or of the tool's answer that the device is not there. */
  line: z.int(),
  interface: z.string(),
  /** "" where the agent does not miss it, and only the size that it noted for pods, or the backend that its log names, tells that they go through a tunnel. */
  message: z.string(),
  /** Seconds before the collection, where known. */
  age: z.number().optional(),
  /** "asked": a tool was asked for the device and did not find it. "listed": a list of all devices does not have it. */
  seen: z.enum(["asked", "listed"]),
});
/**
 * flannel's device is switched off and in use: flannel complains of it; or the programs were not listed, and among all devices no other CNI has one, which would
 * have left flannel's behind.
 */
const Off = z.object({ line: z.int(), interface: z.string() });
/** Of flannel, about a device of `off`: `failed to add vxlanRoute (10.244.1.0/24 -> 10.244.1.0): network is down`. */
const Complaint = z.object({ line: z.int(), message: z.string() });
/** `ip route get` for a pod of another node, which leaves by the way of everything else: flannel's device is off, and nothing took over. */
const Astray = z.object({ line: z.int(), interface: z.string(), destination: z.string() });
/** A bridge of pods without a device of flannel's or another CNI's: whether flannel needs one was not seen. */
const Open = z.object({ line: z.int(), interface: z.string() });
/** A bridge of pods that reach those of other nodes without a tunnel (host-gw): a device of flannel's is left from an earlier setting. */
const Direct = z.object({ line: z.int(), interface: z.string() });
const LostOverlays = z.object({
  rows: z.array(Lost),
  off: z.array(Off),
  complaints: z.array(Complaint),
  astray: z.array(Astray),
  open: z.array(Open),
  direct: z.array(Direct),
});
type Lost = z.infer<typeof Lost>;
type Off = z.infer<typeof Off>;

interface Sources {
  readonly link?: { rows: readonly (Link & Row)[] };
  readonly "agent-log"?: Placed<AgentLog>;
  readonly "absent-device"?: { rows: readonly (Row & { interface: string })[] };
  readonly route?: { rows: readonly Route[] };
  readonly "flannel-env"?: { rows: readonly (Row & { network?: string; subnet?: string; mtu?: number })[] };
  readonly process?: { rows: readonly { command: string; defunct: boolean }[] };
  readonly "route-answer"?: { rows: readonly RouteAnswer[] };
}

/** What agents say while they want the device. Felix says the milder "Link not found" too where no node needs the tunnel. */
const MISSED: readonly (readonly [RegExp, RegExp, string])[] = [
  [/Failed (?:to )?configure VXLAN tunnel device/, /^vxlan\.calico$/, "vxlan.calico"],
  [/(?:vxlanRoute|vxlan_network\.go|Failed to add route).{0,160}(?:no such device|network is down)/i, /^flannel\.\d{1,8}$/, "flannel.1"],
];
const FELIX = /Failed to get interface; it's down\/gone\..{0,60}ifaceName="?vxlan\.calico/;

export const lostOverlay = defineDerivedFact<z.infer<typeof LostOverlays>>({
  id: "lost-overlay",
  title: "VXLAN devices that the CNI's agent misses",
  from: ["link", "agent-log", "absent-device", "route", "flannel-env", "process", "route-answer"],
  optional: ["agent-log", "absent-device", "route", "flannel-env", "process", "route-answer"],
  schema: LostOverlays,
  derive(values: Sources, whole) {
    const links = values.link?.rows ?? [];
    const rows: Lost[] = [];
    const complaints: z.infer<typeof Complaint>[] = [];
    const refused: Off[] = [];
    for (const entry of values["agent-log"]?.rows ?? []) {
      const felix = FELIX.test(entry.message) && whole.has("route") && needsTunnel(values.route?.rows ?? []);
      const known = felix ? MISSED[0] : MISSED.find(([pattern]) => pattern.test(entry.message));
      if (known === undefined) continue;
      const [, name, usual] = known;
      const asked = (values["absent-device"]?.rows ?? []).find((row) => name.test(row.interface))?.interface;
      const device = links.find((row) => name.test(row.interface));
      if (device !== undefined && !device.up && /network is down/i.test(entry.message)) {
        if (refused.length === 0) refused.push({ ...placed(device), interface: device.interface });
        complaints.push({ ...placed(entry), message: entry.message.slice(0, 1000) });
      }
      if (device !== undefined || (asked === undefined && !(whole.has("link") && links.length > 0))) continue;
      const { message, age } = entry;
      rows.push({
        ...placed(entry),
        interface: asked ?? usual,
        message: message.slice(0, 1000),
        ...present({ age }),
        seen: asked === undefined ? "listed" : "asked",
      });
    }
    const others = links.some((row) => OTHERS.test(row.interface));
    const down = values.process !== undefined || others ? [] : links.filter((row) => !row.up && TUNNEL_OF_FLANNEL.test(row.interface) && isOfPods(row, values));
    const astray = refused.length > 0 ? [] : down.flatMap((row) => astrayOf(row, values));
    const direct = directOf(values, whole);
    const off = direct.length === 0 && (whole.has("link") || astray.length > 0) ? down : [];
    return {
      rows: rows.length > 0 ? rows : [...unnoticed(values, whole), ...notFound(values, whole)].slice(0, 1),
      off: refused.length > 0 ? refused : off.map((row) => ({ ...placed(row), interface: row.interface })),
      complaints,
      astray,
      open: openOf(values, whole),
      direct,
    };
  },
});

const bridgeOf = ({ link }: Sources): (Link & Row) | undefined => link?.rows.find((row) => row.interface === "cni0" && row.up);

function directOf(values: Sources, whole: ReadonlySet<string>): z.infer<typeof Direct>[] {
  const bridge = bridgeOf(values);
  return bridge === undefined || !(whole.has("route") && whole.has("link")) || !needsNoTunnel(bridge, values)
    ? []
    : [{ ...placed(bridge), interface: bridge.interface }];
}

/** flannel's device for IPv6 is missed only where pods have such addresses: left from an earlier setting, it may be off. */
const isOfPods = ({ interface: name }: Link, { route }: Sources): boolean =>
  !name.startsWith("flannel-v6") || (route?.rows ?? []).some((row) => row.interface === "cni0" && row.prefix.includes(":") && !/^f(?:e80|f)/.test(row.prefix));

function openOf(values: Sources, whole: ReadonlySet<string>): { line: number; interface: string }[] {
  const links = values.link?.rows ?? [];
  const bridge = bridgeOf(values);
  const env = values["flannel-env"];
  const seen = env !== undefined && (env.rows.length === 0 || (values.process !== undefined && whole.has("route") && whole.has("link")));
  const devices = links.some((row) => row.interface.startsWith("flannel") || OTHERS.test(row.interface));
  return bridge === undefined || seen || devices || directOf(values, whole).length > 0 ? [] : [{ ...placed(bridge), interface: bridge.interface }];
}

/** flannel as a gateway among neighbours: every range like the bridge's own is led to a host of an interface on which packets are no larger than on the bridge. */
function needsNoTunnel(bridge: Link, { link, route }: Sources): boolean {
  const routes = (route?.rows ?? []).filter((row) => row.table === "main" && row.type === "unicast" && row.interface !== undefined);
  const own = routes.find((row) => row.interface === bridge.interface && row.gateway === undefined);
  const [address, length] = own?.prefix.split("/") ?? [];
  // ranges of nodes are cut from one that has room for 256 of them
  const pods = own === undefined ? undefined : rangeOf(`${address}/${Math.max(0, Number(length) - 8)}`);
  const peers = routes.filter((row) => {
    const range = row.gateway === undefined || !row.prefix.endsWith(`/${length}`) ? undefined : rangeOf(row.prefix);
    return range !== undefined && pods !== undefined && overlap(range, pods) === "inside";
  });
  // flannel's own device is as large as the bridge; of two families one may have lost its
  const direct = (name: string | undefined): boolean =>
    (link?.rows ?? []).some((row) => row.interface === name && row.up && row.mtu === bridge.mtu && !row.interface.startsWith("flannel"));
  return peers.length > 0 && peers.every((row) => direct(row.interface));
}

/** Devices of the other CNIs. */
const OTHERS = /^(?:cali[0-9a-f]{11}|vxlan\.calico|tunl0|cilium_|lxc|weave|datapath|kube-bridge|antrea-|ovn|eni[0-9a-f]{11}|azv)/;

/** Bytes of VXLAN's headers. */
const VXLAN = 50;

/**
 * flannel does not look after its device: without it, only what it noted or logged is left. The size for pods is that of an interface without VXLAN's headers, its
 * program runs, and neither a device of flannel's nor a route to other nodes' pods is there. All devices and routes must have been listed.
 */
function unnoticed(values: Sources, whole: ReadonlySet<string>): Lost[] {
  const env = values["flannel-env"]?.rows[0] ?? toldByLog(values);
  const { link, route, process } = values;
  const runs = (process?.rows ?? []).some((row) => !row.defunct && /^(?:flanneld|k3s|k3s-agent|k3s-server)$/.test(row.command));
  const links = link?.rows ?? [];
  const { network, subnet, mtu } = env ?? {};
  if (env === undefined || network === undefined || subnet === undefined || mtu === undefined || !runs || !whole.has("link") || !whole.has("route")) return [];
  const tunnelled = links.some((row) => row.up && row.mtu === mtu + VXLAN && !/^(?:lo|cni0|docker0|veth.*|br-.*|cali.*)$/.test(row.interface));
  const pods = rangeOf(network);
  const led = (route?.rows ?? []).some((row) => {
    const range = row.gateway === undefined || row.prefix.endsWith("/0") ? undefined : rangeOf(row.prefix);
    return pods !== undefined && range !== undefined && overlap(range, pods) !== "apart";
  });
  // the bridge has this range: pods are connected by flannel's plugin
  const own = rangeOf(subnet.split("/")[0] ?? "");
  const bridged = (route?.rows ?? []).some((row) => {
    const range = row.gateway === undefined && row.interface === "cni0" ? rangeOf(row.prefix) : undefined;
    return range !== undefined && own !== undefined && overlap(own, range) === "inside";
  });
  if (!tunnelled || led || !bridged || links.some((row) => row.interface.startsWith("flannel"))) return [];
  return [{ ...placed(env), interface: "flannel.1", message: "", seen: "listed" }];
}

/** flannel, when it starts and while it runs with VXLAN: `Found network config - Backend type: vxlan`, `vxlan_network.go:65] watching for new subnet leases`. */
const isOfVxlan = ({ message, source = "" }: AgentLog["rows"][number]): boolean =>
  /^(?:Found network config - Backend type: vxlan\b|VXLAN config: VNI=)/.test(message) || source.startsWith("vxlan_network.go:");

/** Where that file was not read: its log names the backend, and the bridge has the range and the size. */
function toldByLog(values: Sources): (Row & { line: number; network: string; subnet: string; mtu: number }) | undefined {
  const told = values["agent-log"]?.rows.findLast(isOfVxlan);
  const bridge = bridgeOf(values);
  const own = values.route?.rows.find((row) => row.interface === "cni0" && row.gateway === undefined && row.table === "main" && row.prefix.includes("."));
  const [address, length] = own?.prefix.split("/") ?? [];
  if (told === undefined || bridge?.mtu === undefined || own === undefined || values.link?.rows.some((row) => OTHERS.test(row.interface)) === true)
    return undefined;
  return { ...placed(told), network: `${address}/${Math.max(0, Number(length) - 8)}`, subnet: own.prefix, mtu: bridge.mtu };
}

/** Sizes for pods under usual cards, without VXLAN's headers: 1500, 9000, 9001, and Google's 1460 bytes. */
const TUNNELLED: ReadonlySet<number> = new Set([1450, 8950, 8951, 1410]);

/** The same where no list of devices was seen, but somebody asked for flannel's and it was not found. No other device leads to pods of other nodes. */
function notFound({ route, "flannel-env": envs, "absent-device": absent }: Sources, whole: ReadonlySet<string>): Lost[] {
  const [env] = envs?.rows ?? [];
  const asked = absent?.rows.find((row) => TUNNEL_OF_FLANNEL.test(row.interface));
  if (env?.network === undefined || asked === undefined || !TUNNELLED.has(env.mtu ?? 0) || !whole.has("route")) return [];
  const pods = rangeOf(env.network);
  const inside = (route?.rows ?? []).filter((row) => {
    const range = row.table === "local" || row.prefix.endsWith("/0") ? undefined : rangeOf(row.prefix);
    return pods !== undefined && range !== undefined && overlap(range, pods) !== "apart";
  });
  const bridged = inside.length > 0 && inside.every((row) => row.interface === "cni0" && row.gateway === undefined);
  return bridged ? [{ ...placed(asked), interface: asked.interface, message: "", seen: "asked" }] : [];
}

/** flannel noted the size of its device for pods, and the kernel sends what is for a pod of another node to a gateway on a card. */
function astrayOf(device: Link, { "flannel-env": envs, "route-answer": answers }: Sources): z.infer<typeof Astray>[] {
  const { network, subnet, mtu } = envs?.rows[0] ?? {};
  const pods = rangeOf(network ?? "");
  const own = rangeOf(subnet ?? "");
  if (pods === undefined || own === undefined || mtu === undefined || device.mtu !== mtu || !TUNNELLED.has(mtu)) return [];
  const answer = (answers?.rows ?? []).find((row) => {
    const to = row.from === undefined && row.gateway !== undefined ? rangeOf(row.destination) : undefined;
    return (
      to !== undefined && overlap(to, pods) === "inside" && overlap(to, own) === "apart" && !OTHERS.test(row.interface) && !row.interface.startsWith("flannel")
    );
  });
  return answer === undefined ? [] : [{ ...placed(answer), interface: answer.interface, destination: answer.destination }];
}

/** The node has pods of Calico's, and no way at all to those of other nodes: with routes over the network below nothing is missing. */
const needsTunnel = (routes: readonly Route[]): boolean =>
  routes.some((row) => row.type === "blackhole" && /^(?:80|bird)$/.test(row.protocol ?? "")) &&
  !routes.some((row) => row.gateway !== undefined && /^(?:80|bird)$/.test(row.protocol ?? ""));
