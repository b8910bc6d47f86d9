import { z } from "zod";
import type { Row } from "./fact.ts";
import { rulesOf } from "./iptables-chains.ts";
import type { Iptables, IptablesRow } from "./iptables-row.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";

/** A rule of a chain FORWARD that refuses every packet, whatever it is. */
export const Wall = z.object({ line: z.int() });

/**
 * A rule that accepts packets in FORWARD, may be there for pods or containers, and stands behind a wall, while nothing before the wall may accept them.
 *
 *     -A FORWARD -j REJECT --reject-with icmp-host-prohibited
 *     -A FORWARD -s 10.244.0.0/16 -j ACCEPT
 */
export const Shadowed = z.object({
  line: z.int(),
  /** Its target, its interface or its remark says that it is for them; else only the ranges may. */
  marked: z.boolean(),
  source: z.string().optional(),
  destination: z.string().optional(),
});
type Shadowed = z.infer<typeof Shadowed>;

interface Links {
  readonly rows: readonly { readonly interface: string; readonly carrier?: boolean }[];
}

/** `iptables -L` without -v shows no interfaces: the rule with which Red Hat's and Oracle's images end the chain has none. */
const TAKES_ALL =
  /^(?:-j (?:REJECT(?: --reject-with [a-z0-9-]{3,40})?|DROP)|(?:REJECT|DROP) {1,12}(?:all|0) {1,4}(?:-- {1,4}| {4})(?:\*|any) {1,8}(?:\*|any) {1,8}(?:0\.0\.0\.0\/0|::\/0|anywhere) {1,20}(?:0\.0\.0\.0\/0|::\/0|anywhere) {0,20}(?:reject-with [a-z0-9-]{3,40})? {0,8}|REJECT {1,12}(?:all|0) {1,4}(?:-- {1,4}| {4})(?:0\.0\.0\.0\/0|::\/0|anywhere) {1,20}(?:0\.0\.0\.0\/0|::\/0|anywhere) {1,20}reject-with icmp6?-(?:host|adm)-prohibited {0,8})$/;
/** Without -n the range of the node's own pods has the node's name: flannel.1 has the range's first address. */
const NAMED_RANGE = /^ACCEPT {1,12}(?:all|0) {1,4}-- {1,4}(?:[a-zA-Z][\w.-]{0,60}\/1[0-9] {1,20}anywhere|anywhere {1,20}[a-zA-Z][\w.-]{0,60}\/1[0-9]) {0,20}$/;
/** What Calico remarks. */
const POLICY = "Policy explicitly accepted packet";
const POD_BRIDGE = /^(?:docker0|br-[0-9a-f]{12}|cni0|cbr0|lbr0|kube-bridge|weave)$/;
/** Interfaces of the host and of others than pods. */
const OTHERS = /^(?:lo$|docker[0-9]|docker_gwbridge|br-[0-9a-f]{12}|virbr[0-9]|(?:lxd|incus)br[0-9])/;

/** The walls in the chains FORWARD, and what they leave without effect. */
export function shadowedRules(iptables: Iptables | undefined, links: Links | undefined): { walls: z.infer<typeof Wall>[]; shadowed: Shadowed[] } {
  const rows = rulesOf(iptables?.rows ?? [], "FORWARD");
  const walls = rows.filter((row) => (row.table === "filter" || row.table === "unknown") && TAKES_ALL.test(row.spec));
  if (walls.length === 0) return { walls: [], shadowed: [] };
  const bare = new Set(walls.filter((wall) => takesBridged(wall, rows)).map(chainOf));
  const idle = new Set((links?.rows ?? []).filter((row) => row.carrier === false).map((row) => row.interface));
  const last = Math.max(...walls.map((wall) => wall.position));
  const before = rows.filter((row) => row.position < last);
  const repeated = new Set(before.map((row) => `${chainOf(row)} ${row.spec}`));
  const admitted = new Set(before.filter(mayAdmit).map(chainOf));
  const found = rows.flatMap((row) => {
    const chain = chainOf(row);
    if (admitted.has(chain) || repeated.has(`${chain} ${row.spec}`) || !walls.some((wall) => chainOf(wall) === chain && wall.position < row.position))
      return [];
    const plain = row.target === "ACCEPT" && row.states.length === 0;
    const bridge = plain && bare.has(chain) && !row.inInterfaceNegated && POD_BRIDGE.test(row.inInterface ?? "") && !idle.has(row.inInterface ?? "");
    const marked = bridge || row.target === "FLANNEL-FWD" || NAMED_RANGE.test(row.spec) || (row.target === "ACCEPT" && row.spec.includes(POLICY));
    const source = plain && !row.sourceNegated ? row.source : undefined;
    const destination = plain && !row.destinationNegated ? row.destination : undefined;
    if (!marked && source === undefined && destination === undefined) return [];
    const { masked } = row as IptablesRow & Row;
    return [{ ...placed(row), marked, ...present({ source, destination, masked }) }];
  });
  return { walls: walls.map(placed), shadowed: found };
}

const chainOf = (row: IptablesRow): string => `${row.family} ${row.backend}`;

/** True of a wall that takes packets, and before which only answers, the node's own, ICMP and what kube-proxy marked is accepted: what a bridge sends is among them. */
const takesBridged = (wall: IptablesRow, rows: readonly IptablesRow[]): boolean =>
  (wall.packets ?? 0) > 0 &&
  rows.every(
    (row) =>
      chainOf(row) !== chainOf(wall) ||
      row.position >= wall.position ||
      row.states.length > 0 ||
      row.inInterface === "lo" ||
      row.protocol.includes("icmp") ||
      row.target?.startsWith("KUBE-") === true,
  );

/** True of what accepts new connections of a range, a bridge or of all: it may be there for the pods. -v shows of which interfaces. */
const mayAdmit = (row: IptablesRow): boolean =>
  row.target === "ACCEPT" &&
  (row.states.length === 0 || row.statesNegated || row.states.includes("NEW")) &&
  row.protocol === "all" &&
  row.mark === undefined &&
  row.destinationPort === undefined &&
  !OTHERS.test(row.inInterface ?? "") &&
  !OTHERS.test(row.outInterface ?? "") &&
  (row.spec.startsWith("-") || row.packets !== undefined);
