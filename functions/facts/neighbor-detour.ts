import { z } from "zod";
import type { Address } from "./address.ts";
import { CARD } from "./card-name.ts";
import { defineDerivedFact, type Row } from "./fact.ts";
import { addressBits, prefixBits, within } from "./ip-bits.ts";
import { placed } from "./placed.ts";
import type { Route } from "./route.ts";
import type { RouteAnswer } from "./route-answer.ts";

/**
 * Hosts in a subnet (IPv4) of the node, and pods of the node, to which `ip route get` says that packets leave by another interface, because a rule sends them to a table of its own.
 *
 *     192.168.1.10 dev tailscale0 table 52 src 100.64.0.20 uid 0
 *     192.168.1.0/24 dev eth0 proto kernel scope link src 192.168.1.20
 */
const Detour = z.object({ line: z.int(), destination: z.string(), interface: z.string(), table: z.string() });
/** The subnets of these hosts, as the address or the route tells that the node is in them, and the routes of these pods. */
const Subnet = z.object({ line: z.int(), interface: z.string(), prefix: z.string() });
const NeighborDetour = z.object({
  rows: z.array(Detour),
  subnets: z.array(Subnet),
  /** Packets to an address of the node itself, of either family, that leave it all the same. */
  own: z.array(Detour),
});
type NeighborDetour = z.infer<typeof NeighborDetour>;

interface Sources {
  readonly address?: { rows: readonly (Address & Row)[] };
  readonly route?: { rows: readonly (Route & Row)[] };
  readonly "route-answer"?: { rows: readonly (RouteAnswer & Row)[] };
}

/** Interfaces with neighbours; a tunnel has none. */
const NEAR = new RegExp(`^(?:${CARD}|bond|br|wl|cni0|docker0|team|vmbr)`);
const USUAL = new Set(["main", "local", "default"]);

export const neighborDetour = defineDerivedFact<NeighborDetour>({
  id: "neighbor-detour",
  title: "Hosts in a subnet of the node to which packets leave by another interface, by `ip route get`",
  from: ["address", "route", "route-answer"],
  optional: ["route-answer"],
  schema: NeighborDetour,
  derive(values: Sources) {
    const subnets = [
      ...(values.address?.rows ?? []).flatMap(fromAddress),
      ...(values.route?.rows ?? []).flatMap((row) => [...fromRoute(row), ...fromBroadcast(row), ...toPod(row)]),
    ];
    const rows: (NeighborDetour["rows"][number] & Row)[] = [];
    const left = new Set<(typeof subnets)[number]>();
    for (const answer of values["route-answer"]?.rows ?? []) {
      const { family, destination, interface: name, table, from, preferredSource } = answer;
      if (family !== "ipv4" || from !== undefined || USUAL.has(table)) continue;
      const around = subnets.filter(({ prefix }) => within(destination, prefix));
      // a second card in the same subnet
      const inside = around.some((subnet) => subnet.interface === name || (preferredSource !== undefined && within(preferredSource, subnet.prefix)));
      if (around.length === 0 || inside) continue;
      rows.push(detourOf(answer));
      for (const subnet of around) left.add(subnet);
    }
    return { rows, subnets: [...left], own: (values["route-answer"]?.rows ?? []).filter(leavesItself).map(detourOf) };
  },
});

/**
 * The kernel lets only the node's own addresses be the source, asked for or chosen: one that is the destination as well lives here. Without a gateway it may be
 * the table of a VRF, which has local routes of its own.
 */
const leavesItself = ({ destination, from, gateway, preferredSource, inputInterface, table }: RouteAnswer): boolean =>
  gateway !== undefined && inputInterface === undefined && (from === destination || preferredSource === destination) && !USUAL.has(table);

const detourOf = (row: RouteAnswer & Row): NeighborDetour["rows"][number] & Row => ({
  ...placed(row),
  destination: row.destination,
  interface: row.interface,
  table: row.table,
});

const fromAddress = (row: Address & Row): (NeighborDetour["subnets"][number] & Row)[] =>
  row.family === "ipv4" && row.prefixLength !== undefined ? subnetOf(row, row.interface, `${row.address}/${row.prefixLength}`) : [];

/** A connected route names the node's own address as the source. */
const fromRoute = (row: Route & Row): (NeighborDetour["subnets"][number] & Row)[] =>
  row.family === "ipv4" &&
  row.type === "unicast" &&
  row.table === "main" &&
  row.gateway === undefined &&
  row.interface !== undefined &&
  row.source !== undefined &&
  within(row.source, row.prefix) &&
  !row.flags.includes("linkdown") &&
  !row.flags.includes("dead")
    ? subnetOf(row, row.interface, row.prefix)
    : [];

/** Table local has the last address of each subnet, with the node's own as the source: the subnet is at least so large that it holds both. */
function fromBroadcast(row: Route & Row): (NeighborDetour["subnets"][number] & Row)[] {
  if (row.family !== "ipv4" || row.type !== "broadcast" || row.table !== "local" || row.interface === undefined || row.source === undefined) return [];
  const [own, last] = [addressBits(row.source), prefixBits(row.prefix)?.network];
  if (own === undefined || last === undefined) return [];
  const hostBits = (own ^ last).toString(2).length;
  const hosts = (1n << BigInt(hostBits)) - 1n;
  // kernels before 5.14 list the first address of the subnet as well
  return (last & hosts) === hosts ? subnetOf(row, row.interface, `${row.source}/${32 - hostBits}`) : [];
}

/** The route to a pod of this node, in table main. */
const toPod = (row: Route & Row): (NeighborDetour["subnets"][number] & Row)[] =>
  row.type === "unicast" &&
  row.table === "main" &&
  row.gateway === undefined &&
  /\/(?:32|128)$/.test(row.prefix) &&
  ROUTED_POD.test(row.interface ?? "") &&
  !row.flags.includes("linkdown") &&
  !row.flags.includes("dead")
    ? [{ ...placed(row), interface: row.interface as string, prefix: row.prefix }]
    : [];
/** Devices of CNIs that route to each pod. */
const ROUTED_POD = /^(?:cali|eni|azv)[0-9a-f]{11}$/;

function subnetOf(row: Row, name: string, prefix: string): (NeighborDetour["subnets"][number] & Row)[] {
  const length = prefixBits(prefix)?.length ?? 0;
  return NEAR.test(name) && length > 7 && length < 31 ? [{ ...placed(row), interface: name, prefix }] : [];
}
