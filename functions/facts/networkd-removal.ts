import { z } from "zod";
import type { AgentLog } from "./agent-log.ts";
import type { Pods } from "./cluster-pod.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";
import type { Route } from "./route.ts";
import type { Rule } from "./rule.ts";

/**
 * Routing rules and routes of others that systemd-networkd says it removed (it does at log level debug), where there is none of that kind any more.
 *
 *     Removing routing policy rule (foreign): priority: 512, n/a -> 10.11.84.17/32, iif: n/a, oif: n/a, table: main(254)
 *     eni3fc10b7d92e: Removing route (foreign): dst: 10.11.84.17/32, src: n/a, gw: n/a, prefsrc: n/a, scope: link, table: main(254), …
 */
const Removal = z.object({
  line: z.int(),
  kind: z.enum(["rule", "route"]),
  /** Of a rule. */
  priority: z.int().optional(),
  /** Where the rule or the route leads to; left out for a rule about any destination. */
  prefix: z.string().optional(),
  /** Of a route. */
  interface: z.string().optional(),
  age: z.number().optional(),
});
/** A rule that somebody saw go, whoever took it away, where no rule has its place now. */
const Watched = z.object({
  line: z.int(),
  priority: z.int(),
  /** It was about one address, as those of pods are: such a rule goes with the pod. */
  ofOneAddress: z.boolean(),
  /** The one address that it was about is still that of a pod here: a rule or a route leads to it, or the cluster lists it. */
  stillUsed: z.boolean(),
});
/** A route by another gateway than the default one, or to a pod, that stood in a listing and does not in a later one. */
const Way = z.object({ line: z.int(), prefix: z.string() });
const NetworkdRemoval = z.object({
  rows: z.array(Removal),
  watched: z.array(Watched),
  ways: z.array(Way),
  /** Somebody restarted it, or told it to read its settings again, between the outputs. */
  restarts: z.array(z.object({ line: z.int() })),
});
type Removal = z.infer<typeof Removal> & Row;

interface Sources {
  readonly rule?: { rows: readonly Rule[]; gone?: readonly (Rule & Row)[]; latest?: readonly Rule[] };
  readonly route?: { rows: readonly Route[]; gone?: readonly (Route & Row)[] };
  readonly "manual-restart"?: { rows: readonly (Row & { unit: string })[] };
  readonly "rule-removal"?: { rows: readonly (Row & { priority: number; spec: string })[] };
  readonly "agent-log"?: Placed<AgentLog>;
  readonly "cluster-pod"?: Placed<Pods>;
}

// 247 and 248 wrote neither source nor state, and for "from anywhere" 0.0.0.0/0; 249 wrote the source in brackets, later ones before the noun, and there the state
const RULE = /^(?:\S{1,15}: )?Removing (foreign )?routing policy rule(?: \(([\w,/-]{1,40})\))?: priority: (\d{1,10}), \S{1,64} -> (\S{1,64}), iif: /;
const ROUTE = /^(\S{1,15}): Removing (foreign )?route(?: \(([\w,/-]{1,40})\))?: dst: (\S{1,64}), src: /;
/** Its own: what it takes away with a file or a lease. */
const OWN = /configur|requested|dhcp|static|ndisc|ra\b/i;
/**
 * A route by a gateway that neither networkd (static, dhcp, ra) nor the kernel (kernel, redirect) made; boot is what `ip route add` and most agents make. By the
 * gateway of the default route packets go as they did before.
 */
const MADE = /, gw: ([\d.:a-f]{2,39}), .{1,200}, proto: (?!static|dhcp|ra,|kernel|redirect|unspec)\w{1,16}, type: unicast,/;
/** Priorities that agents use: Cilium (9, 10, 20, 100, 110, 111), Calico's WireGuard (99), the VPC CNI (512 to 1536), Tailscale (5210 to 5270), the kernel (32766). */
const PRIORITIES = /^(?:9|10|20|99|100|110|111|512|1024|1536|52[1-7]0|32766)$/;
/** Interfaces that agents make. */
const DEVICES = /^(?:eni[0-9a-f]{11}|cali[0-9a-f]{11}|lxc|cilium_|flannel|cni0|kube-bridge|tunl0|tun-|vxlan\.calico|wireguard\.cali|azv|tailscale|vlan\.eth)/;

/** `ip` leaves the length out of a prefix that is one address. */
const ONE_ADDRESS = /\b(?:from|to) ([\d.:a-f]{2,39})(?:\/(?:32|128))?(?!\S)/;

export const networkdRemoval = defineDerivedFact({
  id: "networkd-removal",
  title: "Rules and routes of others that systemd-networkd removed",
  from: ["agent-log", "rule", "route", "rule-removal", "manual-restart", "cluster-pod"],
  optional: ["agent-log", "route", "rule-removal", "manual-restart", "cluster-pod"],
  schema: NetworkdRemoval,
  derive(values: Sources, whole) {
    const rows: Removal[] = [];
    const [rules, routes] = [values.rule?.rows ?? [], values.route?.rows ?? []];
    for (const entry of values["agent-log"]?.rows ?? []) {
      if (entry.unit !== "systemd-networkd" || entry.message.length > 1000) continue;
      const [rule, route] = [RULE.exec(entry.message), ROUTE.exec(entry.message)];
      const removed = rule === null ? (route === null ? undefined : routeOf(route, MADE.exec(entry.message)?.[1], routes)) : ruleOf(rule);
      const [foreign, state] = rule === null ? (route?.slice(2, 4) ?? []) : rule.slice(1, 3);
      if (removed === undefined || (foreign === undefined && OWN.test(state ?? ""))) continue;
      // one of its kind shows that the agent works again: the pod of this one may be gone since
      const there =
        removed.kind === "rule"
          ? rules.some((row) => row.priority === removed.priority) && !needed(removed.prefix, values)
          : routes.some((row) => (DEVICES.test(removed.interface ?? "") ? kindOf(row.interface) === kindOf(removed.interface) : row.prefix === removed.prefix));
      // that it is not there, only all of them tell
      if (!there && whole.has(removed.kind)) rows.push({ ...placed(entry), ...removed, ...present({ age: entry.age }) });
    }
    const watched = (values["rule-removal"]?.rows ?? [])
      .filter((row) => whole.has("rule") && rules.length > 0 && !rules.some((rule) => rule.priority === row.priority))
      .map((row) => {
        const [, address] = ONE_ADDRESS.exec(row.spec) ?? [];
        return { ...placed(row), priority: row.priority, ofOneAddress: address !== undefined, stillUsed: isUsed(address, values) };
      });
    // of two listings the later one shows that they are not there
    const gone = (values.rule?.gone ?? []).map((row) => {
      const address = [row.from, row.to ?? ""].find((prefix) => /\/(?:32|128)$/.test(prefix))?.replace(/\/.*/, "");
      return { ...placed(row), priority: row.priority, ofOneAddress: address !== undefined, stillUsed: isUsed(address, values) };
    });
    const ways = (values.route?.gone ?? []).filter((row) => isOfOthers(row, routes)).map((row) => ({ ...placed(row), prefix: row.prefix }));
    const restarts = (values["manual-restart"]?.rows ?? []).filter((row) => row.unit === "systemd-networkd").map(placed);
    return { rows, watched: [...watched, ...gone], ways, restarts };
  },
});

/** True of the address of a pod that is there, by its route or the cluster's list. */
function isPods(address: string, { route, "cluster-pod": pods }: Sources): boolean {
  const routed = (route?.rows ?? []).some((row) => row.prefix.startsWith(`${address}/`) && DEVICES.test(row.interface ?? ""));
  return routed || (pods?.rows ?? []).some((row) => row.address === address && row.own === true && row.status === "Running");
}

const leadsTo = (rules: readonly Rule[], address: string): boolean => rules.some((row) => row.to?.startsWith(`${address}/`) === true);

/** True of an address that is a pod's, also by the rule that leads to it in the last listing. */
const isUsed = (address: string | undefined, values: Sources): boolean =>
  address !== undefined && (leadsTo(values.rule?.latest ?? values.rule?.rows ?? [], address) || isPods(address, values));

/** True of the address of a pod that is there still, and to which no rule leads now. */
function needed(prefix = "", values: Sources): boolean {
  const address = /^([\d.]{7,15})(?:\/32)?$/.exec(prefix)?.[1];
  return address !== undefined && !leadsTo(values.rule?.rows ?? [], address) && isPods(address, values);
}

/** True of a route that networkd does not make itself, and without which packets go another way. */
function isOfOthers(row: Route, routes: readonly Route[]): boolean {
  if (row.type !== "unicast" || row.table !== "main" || row.prefix.endsWith("/0") || OWN_PROTOCOL.test(row.protocol ?? "")) return false;
  // `route -n` (flag U) does not tell who made it
  const made = row.gateway !== undefined && !row.flags.includes("U") && !routes.some((other) => other.prefix.endsWith("/0") && other.gateway === row.gateway);
  return made || DEVICES.test(row.interface ?? "");
}
const OWN_PROTOCOL = /^(?:static|dhcp|ra|kernel|redirect)$/;

/** "eni" of eni3fc10b7d92e: what an agent calls the interfaces of its pods. */
const kindOf = (name = ""): string => /^(?:eni|cali|lxc|azv)(?=[0-9a-f]{5})/.exec(name)?.[0] ?? name;

function ruleOf([, , , priority = "", to = ""]: readonly string[]): Omit<Removal, "line"> | undefined {
  if (!PRIORITIES.test(priority)) return undefined;
  return { kind: "rule", priority: Number(priority), ...present({ prefix: to === "n/a" || to.endsWith("/0") ? undefined : to }) };
}

function routeOf([, name = "", , , prefix = ""]: readonly string[], gateway: string | undefined, routes: readonly Route[]): Omit<Removal, "line"> | undefined {
  const made = gateway !== undefined && !prefix.endsWith("/0") && !routes.some((row) => row.prefix.endsWith("/0") && row.gateway === gateway);
  if (prefix === "n/a" || !(made || DEVICES.test(name))) return undefined;
  return { kind: "route", prefix, interface: name };
}
