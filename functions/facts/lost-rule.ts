import { z } from "zod";
import { defineDerivedFact, type Row } from "./fact.ts";
import type { Link } from "./link.ts";
import { placed } from "./placed.ts";
import type { Route } from "./route.ts";
import type { Rule } from "./rule.ts";

/**
 * Routing rules that a node needs and `ip rule` does not show: those that the kernel makes, those of agents whose tables are there, and the one for VRFs.
 *
 *     0:  from all lookup local       and nothing else: the rule for table main is gone
 */
const Family = z.enum(["ipv4", "ipv6"]);
const LostRule = z.object({
  /** Tables of every node that no rule for all packets looks up. `line` is that of the first rule there is. */
  general: z.array(z.object({ line: z.int(), family: Family, table: z.enum(["main", "local"]) })),
  /** Tables that only one agent fills, and no rule looks up. */
  tables: z.array(
    z.object({
      line: z.int(),
      family: Family,
      table: z.string(),
      interfaces: z.array(z.string()),
      /** "unknown" where no device of an agent was seen. */
      agent: z.enum(["cilium", "tailscale", "calico", "unknown"]),
    }),
  ),
  /** VRFs in use to which no rule leads. */
  vrfs: z.array(z.object({ line: z.int(), interface: z.string() })),
  /**
   * Pods of the VPC CNI (IPv4) to whose interface no rule leads; where not all rules were listed, of those whose address was looked for among them. `line` is that
   * of the pod's route.
   */
  pods: z.array(z.object({ line: z.int(), prefix: z.string(), interface: z.string() })),
  /** Families of which there are rules, and none but those that the kernel makes. */
  kernels: z.array(z.object({ line: z.int(), family: Family })),
  /**
   * Rules that send packets of some senders to a table of their own before table local is looked up (Cilium puts that at 100): what they send to the node's own
   * addresses leaves it.
   */
  early: z.array(z.object({ line: z.int(), family: Family, priority: z.int(), from: z.string(), table: z.string(), host: z.boolean() })),
  /** The rules for table local behind those. */
  late: z.array(z.object({ line: z.int(), family: Family, priority: z.int() })),
  /** The first rule, where all of them were listed: one that is not among them is not there. */
  listings: z.array(z.object({ line: z.int() })),
});
type LostRule = z.infer<typeof LostRule>;

interface Sources {
  readonly rule?: { rows: readonly (Rule & Row)[]; latest?: readonly (Rule & Row)[] };
  readonly route?: { rows: readonly (Route & Row)[] };
  readonly link?: { rows: readonly (Link & Row)[] };
  readonly "rule-search"?: { rows: readonly { address: string }[] };
  readonly "route-lookup"?: { tables: readonly (Row & { family: "ipv4" | "ipv6"; table: string; interfaces: readonly string[]; lookedUp: boolean })[] };
}

/** True of a rule that holds for every packet: nothing is asked of it. */
const isGeneral = (row: Rule): boolean =>
  row.action === "lookup" &&
  !row.not &&
  row.from === "all" &&
  (row.to === undefined || row.to === "all") &&
  [row.fwmark, row.inputInterface, row.outputInterface, row.ipProtocol, row.uidRange, row.suppressPrefixLength].every((asked) => asked === undefined);

/** Nothing but these: no one else made a rule. */
export const onlyKernels = (rules: readonly Rule[]): boolean =>
  rules.every((row) => isGeneral(row) && (row.table === "local" || row.table === "main" || row.table === "default"));

export const lostRule = defineDerivedFact<LostRule>({
  id: "lost-rule",
  title: "Routing rules that the node needs and `ip rule` does not show",
  from: ["rule", "route", "link", "route-lookup", "rule-search"],
  optional: ["link", "rule-search"],
  // of it only the tables are wanted, which the routes tell
  inPart: ["route-lookup"],
  schema: LostRule,
  derive(values: Sources, whole) {
    const searched = new Set((values["rule-search"]?.rows ?? []).map((row) => `${row.address}/32`));
    const [rules, links] = [values.rule?.rows ?? [], values.link?.rows ?? []];
    const families = (["ipv4", "ipv6"] as const).flatMap((family) => {
      const own = rules.filter((row) => row.family === family);
      return own[0] === undefined ? [] : [{ family, own, first: own[0] }];
    });
    const ipv4 = families.find(({ family }) => family === "ipv4")?.own ?? [];
    const leadsTo = (name: string): boolean => ipv4.some((row) => row.table === "l3mdev" || row.outputInterface === name || row.inputInterface === name);
    const inUse = (vrf: Link): boolean => vrf.kind === "vrf" && vrf.up && links.some((row) => row.master === vrf.interface);
    return {
      general: families.flatMap(({ family, own, first }) =>
        (["main", "local"] as const)
          .filter((table) => !own.some((row) => isGeneral(row) && row.table === table))
          .map((table) => ({ ...placed(first), family, table })),
      ),
      tables: lostTables(values),
      // the kernel adds one rule for the tables of all VRFs, with the first VRF; kernels before 4.8 had two for each instead
      vrfs: links.filter((row) => ipv4.length > 0 && inUse(row) && !leadsTo(row.interface)).map((row) => ({ ...placed(row), interface: row.interface })),
      pods: (values.route?.rows ?? [])
        .filter((row) => isVpcPod(row) && (whole.has("rule") ? ipv4.length > 0 : searched.has(row.prefix)) && !ipv4.some((rule) => rule.to === row.prefix))
        .map((row) => ({ ...placed(row), prefix: row.prefix, interface: row.interface ?? "" })),
      listings: whole.has("rule") ? rules.slice(0, 1).map(placed) : [],
      ...beforeLocal(values),
      kernels: families.filter(({ own }) => onlyKernels(own)).map(({ family, first }) => ({ ...placed(first), family })),
    };
  },
});

/** Rules for certain senders alone in front of the one for table local, whose table is not known to hold the node's own addresses or to pass on. */
function beforeLocal({ rule, route }: Sources): Pick<LostRule, "early" | "late"> {
  const rules = rule?.latest ?? rule?.rows ?? [];
  const early: LostRule["early"] = [];
  const late: LostRule["late"] = [];
  for (const family of ["ipv4", "ipv6"] as const) {
    const own = rules.filter((row) => row.family === family);
    const local = own.findIndex((row) => isGeneral(row) && row.table === "local");
    const behind = own[local];
    if (behind === undefined || behind.priority === 0) continue;
    const usual = new Set(["local", "main", "default", "l3mdev"]);
    const passesOn = new Set(
      (route?.rows ?? []).flatMap((row) => (row.family === family && (row.type === "local" || row.type === "throw") ? [row.table] : [])),
    );
    // a VRF puts table local behind the tables of VRFs, and these may be named by their numbers
    const vrfs = own.some(({ table }) => table === "l3mdev");
    const shown = new Set((route?.rows ?? []).flatMap((row) => (row.family === family ? [row.table] : [])));
    const leading = new Set(
      (route?.rows ?? []).flatMap((row) =>
        row.family === family && row.type === "unicast" && (row.prefix === "0.0.0.0/0" || row.prefix === "::/0") ? [row.table] : [],
      ),
    );
    const found = own.slice(0, local).filter((row) => {
      const { from, table = "main", sourcePort, destinationPort, tos } = row;
      const ofSenders = from !== "all" && isGeneral({ ...row, from: "all" }) && [sourcePort, destinationPort, tos].every((asked) => asked === undefined);
      // table default is empty on most nodes; whoever fills it (SONiC, for its management port) means the packets to leave
      const known = table === "default" ? leading.has(table) : !usual.has(table);
      return ofSenders && known && !passesOn.has(table) && (!vrfs || shown.has(table));
    });
    if (found.length === 0) continue;
    for (const row of found)
      early.push({
        ...placed(row),
        family,
        priority: row.priority,
        from: row.from,
        table: row.table as string,
        host: /\/(?:32|128)$/.test(row.from) || !row.from.includes("/"),
      });
    late.push({ ...placed(behind), family, priority: behind.priority });
  }
  return { early, late };
}

/** A pod of the VPC CNI has one route to its own interface in main, and a rule that leads to it. */
const isVpcPod = (row: Route): boolean =>
  row.family === "ipv4" && row.table === "main" && row.prefix.endsWith("/32") && /^eni[0-9a-f]{8,12}$/.test(row.interface ?? "") && !row.flags.includes("dead");

function lostTables({ rule, link, "route-lookup": lookup }: Sources): LostRule["tables"] {
  const rules = rule?.rows ?? [];
  const tables = lookup?.tables ?? [];
  const cilium = (link?.rows ?? []).some((row) => row.interface === "cilium_host") || tables.some((row) => row.interfaces.includes("cilium_host"));
  return tables.flatMap((row) => {
    const own = rules.filter(({ family }) => family === row.family);
    if (row.lookedUp || own.length === 0) return [];
    // with a route for each endpoint Cilium removes its rule for 2005 and leaves the routes: while its rule for 2004 is there, nobody flushed anything
    const ciliums = row.table === "2004" || (row.table === "2005" && !own.some(({ table }) => table === "2004"));
    const calicos = row.interfaces.includes("wireguard.cali");
    if (!ciliums && !calicos && row.table !== "52") return [];
    const tailscales = row.table === "52" && row.interfaces.includes("tailscale0");
    const agent = calicos ? "calico" : ciliums && cilium ? "cilium" : tailscales ? "tailscale" : "unknown";
    return [{ ...placed(row), family: row.family, table: row.table, interfaces: [...row.interfaces], agent } as const];
  });
}
