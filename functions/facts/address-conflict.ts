import { z } from "zod";
import type { Address } from "./address.ts";
import type { AgentLog } from "./agent-log.ts";
import type { ArpAnswer } from "./arping.ts";
import type { Pods } from "./cluster-pod.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import type { KernelLog } from "./kernel-log.ts";
import type { Link } from "./link.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";
import { MARTIAN } from "./reverse-path.ts";
import type { Route } from "./route.ts";
import type { RouteAnswer } from "./route-answer.ts";

/**
 * Addresses that are in use twice, as far as the node itself tells: found by the kernel (IPv6 duplicate address detection), moved between hardware
 * addresses, or set on two interfaces.
 *
 *     IPv6: eth0: IPv6 duplicate address 2001:db8:5::17 used by 52:54:00:aa:bb:cc detected!
 */
const Conflict = z.object({
  line: z.int(),
  /**
   * dad: the kernel found it and does not use the address (message, or flag dadfailed). moved: two hardware addresses answer for it. port: set on a
   * bridge or bond and on one of its ports. twice: set on two interfaces that are no such pair. heard: a packet that came in has the node's own address as
   * its source, and a hardware address that is not the node's. answered: somebody asked with arping for the node's own address, and another host answered.
   * rivals: two hosts answered for one address, or spoke for it by turns.
   */
  kind: z.enum(["dad", "moved", "port", "twice", "heard", "answered", "rivals"]),
  address: z.string(),
  interface: z.string(),
  /** The other interface, or the other hardware address where it is known. */
  other: z.string(),
  /** Seconds before the collection, of messages whose age is known. */
  age: z.number().optional(),
  /** How many messages say so; 1 for an address. */
  count: z.int(),
});
const AddressConflict = z.object({
  rows: z.array(Conflict),
  /** Running pods that one list shows with one address, which is not that of their node; those of an address behind each other. */
  pods: z.array(z.object({ line: z.int(), address: z.string(), name: z.string(), node: z.string() })),
});
type AddressConflict = z.infer<typeof AddressConflict>;
type Conflict = z.infer<typeof Conflict> & Row;

interface Sources {
  readonly address?: { rows: readonly (Address & Row)[] };
  readonly link?: { rows: readonly (Link & Row)[] };
  readonly "kernel-log"?: Placed<KernelLog>;
  readonly "agent-log"?: Placed<AgentLog>;
  readonly arping?: { rows: readonly (ArpAnswer & Row)[] };
  readonly route?: { rows: readonly (Route & Row)[] };
  readonly "route-answer"?: { rows: readonly (RouteAnswer & Row)[] };
  readonly neighbor?: { turns?: readonly (Row & { address: string; interface: string; mac?: string })[] };
  readonly "cluster-pod"?: Placed<Pods>;
}

const DAD = /(?:^|\s)(\S{1,15}): (?:IPv6 )?duplicate address ([0-9a-f:.]{3,45})(?: used by ([0-9a-f:]{17}))? detected/i;
// FreeBSD's words; Linux daemons use them too
const MOVED = /arp: (\d{1,3}(?:\.\d{1,3}){3}) moved from ([0-9a-f:]{11,17}) to ([0-9a-f:]{11,17}) on (\S{1,15})/i;
// arpwatch, which hears of all hosts: only what it says of the node's own addresses counts
const FLIP_FLOP = /^flip flop (\d{1,3}(?:\.\d{1,3}){3}) ([0-9a-f:]{11,17}) \(([0-9a-f:]{11,17})\)/i;
// behind a MARTIAN: "ll header: 00000000: 00 50 56 9c 2a 41 00 50 56 9c 7d 0e 08 00" (old: with colons)
const HEADER = /^ll header: (?:[0-9a-f]{8}: )?((?:[0-9a-f]{2}[ :]){13}[0-9a-f]{2})/;
/** Interfaces whose addresses are copies on purpose: virtual addresses of services, loopback. */
const COPIES = /^(?:lo|dummy\d*|kube-ipvs0|nodelocaldns|vip\d*|cilium_host|cilium_net|kube-dummy-if|tunl0|wg.*|tun\d*|ppp\d*|tailscale\d+)$/;
/** Each other host is a row of its own. */
const ASKED: ReadonlySet<string> = new Set(["answered", "rivals"]);
const MAX_ROWS = 500;

export const addressConflict = defineDerivedFact({
  id: "address-conflict",
  title: "Addresses that are in use twice, as far as the node tells",
  // the rule reads the agents' log itself, too: named here, so that it alone is enough to be judged
  from: ["address", "link", "kernel-log", "agent-log", "arping", "route", "route-answer", "cluster-pod", "neighbor"],
  optional: ["agent-log", "arping", "route", "route-answer", "cluster-pod", "neighbor"],
  // they tell only which addresses are the node's own; of pods two that were shown are enough
  inPart: ["route", "route-answer", "cluster-pod", "neighbor"],
  schema: AddressConflict,
  derive(values: Sources, whole) {
    const rows = new Map<string, Conflict>();
    const add = (row: Conflict) => {
      const key = `${row.kind} ${row.address} ${row.interface} ${ASKED.has(row.kind) ? row.other : ""}`;
      const known = rows.get(key);
      // a message that names the other host tells more than the flag of the address
      const better = known !== undefined && known.other !== "" && row.other === "" ? known : row;
      if (known !== undefined || rows.size < MAX_ROWS) rows.set(key, { ...better, count: (known?.count ?? 0) + 1 });
    };
    for (const row of values["kernel-log"]?.rows ?? []) {
      const dad = DAD.exec(row.message);
      const moved = dad === null ? MOVED.exec(row.message) : null;
      const age = present({ age: row.age });
      if (dad !== null) add({ ...placed(row), kind: "dad", address: dad[2] as string, interface: dad[1] as string, other: dad[3] ?? "", ...age, count: 1 });
      else if (moved !== null)
        add({ ...placed(row), kind: "moved", address: moved[1] as string, interface: moved[4] as string, other: moved[3] as string, ...age, count: 1 });
    }
    const addresses = values.address?.rows ?? [];
    const macs = new Set((values.link?.rows ?? []).flatMap((row) => row.mac ?? []));
    let martian: { address: string; interface: string } | undefined;
    for (const row of values["kernel-log"]?.rows ?? []) {
      const source = MARTIAN.exec(row.message);
      const sender =
        martian === undefined
          ? undefined
          : HEADER.exec(row.message)?.[1]?.replaceAll(" ", ":").slice("00:00:00:00:00:00:".length, "00:00:00:00:00:00:00:00:00:00:00:00".length);
      if (martian !== undefined && sender !== undefined && macs.size > 0 && !macs.has(sender))
        add({ ...placed(row), kind: "heard", ...martian, other: sender, ...present({ age: row.age }), count: 1 });
      const own = source !== null && source[1] === source[2] && addresses.some((known) => known.address === source[2] && known.interface === source[3]);
      martian = own ? { address: source[2] as string, interface: source[3] as string } : undefined;
    }
    for (const row of values["agent-log"]?.rows ?? []) {
      const flip = row.unit === "arpwatch" ? FLIP_FLOP.exec(row.message) : null;
      const own = flip === null ? undefined : addresses.find((known) => known.address === flip[1]);
      const age = present({ age: row.age });
      if (flip !== null && own !== undefined)
        add({ ...placed(row), kind: "moved", address: own.address, interface: own.interface, other: flip[2] as string, ...age, count: 1 });
    }
    for (const row of addresses) {
      if (row.flags.includes("dadfailed")) add({ ...placed(row), kind: "dad", address: row.address, interface: row.interface, other: "", count: 1 });
    }
    for (const row of onTwo(addresses, values.link?.rows ?? [])) add(row);
    for (const row of askedFor(values, macs, whole.has("link"))) add(row);
    for (const row of values.neighbor?.turns ?? [])
      add({ ...placed(row), kind: "rivals", address: row.address, interface: row.interface, other: row.mac ?? "", count: 1 });
    return { rows: [...rows.values()], pods: twins(values["cluster-pod"]?.rows ?? []) };
  },
});

/** Pods that have the address of their node, whatever it is. */
const OF_THE_HOST =
  /^(?:kube-(?:proxy|apiserver|controller-manager|scheduler|flannel|router|vip)|etcd|calico-(?:node|typha)|canal|cilium|aws-node|weave-net|(?:.{0,60}-)?node-exporter|csi-)/;

/** Those of them that always have it: `csi-attacher-0` and others have addresses of their own. */
const SURELY_OF_THE_HOST =
  /^(?:kube-(?:proxy|apiserver|controller-manager|scheduler|flannel|router)|etcd|calico-node|canal|rke2-canal|cilium|aws-node|weave-net)-/;

/** Addresses that every node has for itself: loopback, and link-local. */
const OF_EACH_NODE = /^(?:127\.|169\.254\.|::1$|fe[89ab][0-9a-f]:)/i;

/**
 * Pairs of pods that cannot have the same address: both run, each on a node of its own, and the one list shows nothing twice, as `--watch` does. On one node
 * pods share the node's address: there the list must show which that is.
 */
function twins(pods: NonNullable<Sources["cluster-pod"]>["rows"]): AddressConflict["pods"] {
  const lists = Map.groupBy(pods, (pod) => placed(pod).output);
  return [...lists.values()].flatMap((list) => {
    if (new Set(list.map(({ namespace, name }) => `${namespace} ${name}`)).size < list.length) return [];
    const byAddress = Map.groupBy(
      list.filter((pod) => pod.address !== undefined && pod.node !== undefined),
      (pod) => pod.address as string,
    );
    return [...byAddress.entries()].flatMap(([address, own]) => {
      // the container is started again, the pod keeps its address
      const running = own.filter((pod) => pod.status === "Running" || pod.status === "CrashLoopBackOff");
      // more of them, or an agent among them: the address of nodes that have the same
      const isPair =
        !OF_EACH_NODE.test(address) &&
        running.length === 2 &&
        (new Set(running.map(({ node }) => node)).size === 2 ||
          list.some((pod) => SURELY_OF_THE_HOST.test(pod.name) && pod.node === running[0]?.node && pod.address !== undefined && pod.address !== address)) &&
        !own.some(({ name }) => OF_THE_HOST.test(name));
      return isPair ? running.map((pod) => ({ ...placed(pod), address, name: pod.name, node: pod.node as string })) : [];
    });
  });
}

/** IPv4 addresses with a subnet that two interfaces carry, both of them up and in the same VRF. */
function* onTwo(addresses: readonly (Address & Row)[], links: readonly (Link & Row)[]): Generator<Conflict> {
  const byName = new Map(links.map((row) => [row.interface, row]));
  const seen = new Map<string, Address & Row>();
  for (const row of addresses) {
    const usual = row.family === "ipv4" && row.scope !== "host" && row.scope !== "link" && row.peer === undefined && (row.prefixLength ?? 32) < 31;
    const link = byName.get(row.interface);
    if (!usual || COPIES.test(row.interface) || link === undefined || !link.up) continue;
    const first = seen.get(row.address);
    if (first === undefined) seen.set(row.address, row);
    else if (first.interface !== row.interface) {
      const other = byName.get(first.interface);
      const isPort = link.master === first.interface || other?.master === row.interface;
      // members of VRFs may repeat addresses; of other masters only the pair itself says something
      if (!isPort && (link.master !== undefined || other?.master !== undefined)) continue;
      yield { ...placed(row), kind: isPort ? "port" : "twice", address: row.address, interface: row.interface, other: first.interface, count: 1 };
    }
  }
}

/**
 * What answers to arping say. For a neighbour's address an answer is normal, also to `arping -D`: that an address is the node's own must be seen. Copies of a
 * virtual address (on lo, kube-ipvs0) do not count, because the host that announces it answers.
 * @param all `macs` are all hardware addresses of the node
 */
function* askedFor(values: Sources, macs: ReadonlySet<string>, all: boolean): Generator<Conflict> {
  const answers = values.arping?.rows ?? [];
  if (answers.length === 0) return;
  const addresses = (values.address?.rows ?? []).filter((row) => !COPIES.test(row.interface));
  const own = new Set([
    ...addresses.map((row) => row.address),
    // a source that the kernel chooses is an address of the node
    ...(values.route?.rows ?? []).flatMap((row) => (row.interface === undefined || COPIES.test(row.interface) ? [] : (row.source ?? []))),
    ...(values["route-answer"]?.rows ?? []).flatMap((row) => (COPIES.test(row.interface) ? [] : (row.preferredSource ?? []))),
  ]);
  const asked = answers.filter((row) => row.heard !== true);
  for (const row of answers) {
    const { address, mac, interface: name = "" } = row;
    const found = (kind: Conflict["kind"]): Conflict => ({ ...placed(row), kind, address, interface: name, other: mac, count: 1 });
    // without -D the node asks with the address itself and may hear its own packet again: there its hardware addresses must be known
    const sure = row.duplicateCheck || (macs.size > 0 && addresses.some((known) => known.address === address && known.interface === name));
    if (row.heard === true) {
      // a bond (balance-alb) speaks for its address with the hardware address of each of its ports
      const mayBeOwn = macs.has(mac) || (!all && name.startsWith("bond"));
      if (row.returned === true && !mayBeOwn) yield found("rivals");
    } else if (sure && (own.has(address) || row.own === true) && !macs.has(mac)) yield found("answered");
    else if (asked.some((other) => other.address === address && other.mac !== mac && (other.interface ?? "") === name)) yield found("rivals");
  }
}
