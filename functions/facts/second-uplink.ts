import { z } from "zod";
import type { Address } from "./address.ts";
import { CARD } from "./card-name.ts";
import { defineDerivedFact, type Row } from "./fact.ts";
import type { Family } from "./ip-address.ts";
import { prefixBits, within } from "./ip-bits.ts";
import type { Link } from "./link.ts";
import { onlyKernels } from "./lost-rule.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";
import type { Route } from "./route.ts";
import type { Rule } from "./rule.ts";

const FAMILY = z.enum(["ipv4", "ipv6"]);

/**
 * Uplinks with a default route in a table of their own to which no rule leads: answers from their address leave by the first uplink. Left out are
 * tables of the uplink that packets take anyway, those whose address another table serves, of VRFs, and those that an agent looks up only while it needs them.
 *
 *     default via 198.51.100.9 dev eth1 table 101
 */
const Idle = z.object({
  /** Of the table's default route. */
  line: z.int(),
  family: FAMILY,
  table: z.string(),
  interface: z.string(),
  /** An address of the node on this interface; left out if none is known. */
  address: z.string().optional(),
  /** There are no rules but the kernel's, and this interface has no default route in main while another one has. Of IPv4 alone. */
  alone: z.boolean(),
  /** Other uplinks of the node have what this one lacks: see `siblings`. */
  oneOfSeveral: z.boolean(),
});
const SecondUplink = z.object({
  idle: z.array(Idle),
  /** Where the addresses on their interfaces were told. */
  homes: z.array(z.object({ line: z.int(), interface: z.string(), address: z.string() })),
  /** Rules that lead from other addresses of the node to tables with a default route of their own, or to tables that were not listed: this is how the node has its uplinks. */
  siblings: z.array(z.object({ line: z.int(), family: FAMILY, from: z.string(), table: z.string() })),
  /** Rules that a configuration asks for, from an address of the node, and `ip rule` does not show. */
  unmet: z.array(z.object({ line: z.int(), family: FAMILY, from: z.string(), table: z.string() })),
  /** Packets from the address of one uplink (`home`) that leave by another interface: somebody asked the kernel. */
  strays: z.array(z.object({ line: z.int(), family: FAMILY, from: z.string(), interface: z.string(), home: z.string() })),
  /** Interfaces with an address that may have a table of their own, where not every table was listed. */
  unseen: z.array(z.object({ line: z.int(), interface: z.string() })),
});
type SecondUplink = z.infer<typeof SecondUplink>;
type Idle = SecondUplink["idle"][number];

interface Sources {
  readonly route?: { rows: readonly (Route & Row)[] };
  readonly rule?: { rows: readonly (Rule & Row)[] };
  readonly address?: { rows: readonly (Address & Row)[] };
  readonly link?: { rows: readonly (Link & Row)[] };
  readonly "route-answer"?: { rows: readonly (Row & { family: string; from?: string; interface: string; inputInterface?: string })[] };
  readonly "wanted-rule"?: { rows: readonly (Row & { from?: string; table: string })[] };
}

/** Interfaces to the outside: no bridges, pods, VPNs, networks for management. */
const UPLINK = new RegExp(`^(?:${CARD}|bond|team|ib|wan|wwan|ppp)`);
const USUAL = /^(?:main|local|default)$/;
const NUMBER = /^\d{1,10}$/;

export const secondUplink = defineDerivedFact<SecondUplink>({
  id: "second-uplink",
  title: "Uplinks with a routing table of their own to which no rule leads",
  from: ["route", "rule", "address", "link", "route-answer", "wanted-rule"],
  optional: ["address", "link", "route-answer", "wanted-rule"],
  schema: SecondUplink,
  derive(values: Sources, whole) {
    const [four, six] = [ofFamily("ipv4", values, whole), ofFamily("ipv6", values, whole)];
    // of IPv6 routers tell hosts much that nobody configured: there only a node that has its other uplinks by rules, or a configuration, tells
    const idle = [...four.idle, ...six.idle.filter((row) => row.oneOfSeveral).map((row) => ({ ...row, alone: false }))];
    return {
      idle,
      homes: [...four.homes, ...six.homes.filter((home) => six.idle.some((row) => row.oneOfSeveral && row.interface === home.interface))],
      siblings: [...four.siblings, ...six.siblings],
      unmet: [...four.unmet, ...six.unmet],
      strays: [...four.strays, ...six.strays],
      // where not every address was listed, whose table it is was not seen
      unseen: [
        ...four.unseen,
        ...six.idle
          .filter((row) => row.address === undefined && !whole.has("address"))
          .map(({ interface: name, ...row }) => ({ ...placed(row), interface: name })),
      ],
    };
  },
});

function ofFamily(family: Family, values: Sources, whole: ReadonlySet<string>): SecondUplink {
  const routes = (values.route?.rows ?? []).filter((row) => row.family === family);
  const rules = (values.rule?.rows ?? []).filter((row) => row.family === family);
  const own = ownAddresses(family, values.address?.rows ?? [], routes);
  const defaults = routes.filter((row) => row.type === "unicast" && row.interface !== undefined && prefixBits(row.prefix)?.length === 0);
  const main = defaults.filter((row) => row.table === "main");
  const tables = defaults.filter((row) => !USUAL.test(row.table) && !row.table.startsWith("vrf "));
  const usual = onlyKernels(rules) && !(values.link?.rows ?? []).some((row) => row.kind === "vrf" && row.up);
  const byMain = (name: string): boolean => main.some((row) => row.interface === name);
  const others = own.filter(({ name }) => main.length > 0 && UPLINK.test(name) && !byMain(name));
  const addressOf = (name: string): string | undefined => own.find((row) => row.name === name)?.address;
  const everyTable = routes.some((row) => row.table === "local");
  // a table that was listed by its number may have a name in the rules
  const sameKind = (table: string): boolean => tables.every((row) => NUMBER.test(row.table) === NUMBER.test(table));
  const isUnlisted = (table = "main"): boolean =>
    !everyTable && !USUAL.test(table) && table !== "l3mdev" && sameKind(table) && !routes.some((row) => row.table === table);
  const siblings = rules
    .filter(
      (row) =>
        (tables.some(({ table }) => table === row.table) || isUnlisted(row.table)) &&
        own.some(({ name, address }) => UPLINK.test(name) && isFrom(row, address)),
    )
    .map((row) => ({ ...placed(row), family, from: row.from, table: row.table ?? "" }));
  const idle = tables
    .filter((row, i) => tables.findIndex((other) => other.table === row.table) === i && rules.length > 0 && !isLookedUp(row.table, rules))
    .filter(({ interface: name = "" }) => !firstOf(main).includes(name) && !own.some((row) => row.name === name && isServed(row.address, rules)))
    .filter(() => !isManaged(rules, values.link?.rows ?? []))
    .map((row): Idle & Row => {
      const name = row.interface as string;
      const address = addressOf(name);
      const alone = usual && others.some((other) => other.name === name);
      const oneOfSeveral = siblings.length > 0 && address !== undefined && UPLINK.test(name);
      return { ...placed(row), family, table: row.table, interface: name, alone, oneOfSeveral, ...present({ address }) };
    });
  const strays = straysOf(family, values, own);
  // where all tables are known, nothing was overlooked
  const overlooked = (row: Own): boolean => {
    if (!row.listed || everyTable || rules.length === 0) return false;
    const second = UPLINK.test(row.name) && !firstOf(main).includes(row.name) && !isServed(row.address, rules);
    // the other uplinks have tables of their own: so may this one, in what is missing of the routes
    return (
      (siblings.length > 0 && second && !whole.has("route")) ||
      (usual && idle.length === 0 && others.includes(row)) ||
      (routes.length === 0 && isServed(row.address, rules))
    );
  };
  return {
    idle,
    homes: own.filter(({ name }) => idle.some((row) => row.interface === name)).map((row) => ({ ...homeOf(row), address: row.address })),
    siblings,
    unmet: unmetOf(family, values, own, rules),
    strays: strays.filter(({ home }) => tables.some((row) => row.interface === home && !isLookedUp(row.table, rules))),
    unseen: [
      ...own.filter(overlooked).map(homeOf),
      ...strays.filter(() => usual && idle.length === 0 && !everyTable).map((row) => ({ ...placed(row), interface: row.home })),
    ],
  };
}

const homeOf = ({ row, name }: Own): Row & { interface: string } => ({ ...placed(row), interface: name });

function straysOf(family: Family, values: Sources, own: readonly Own[]): (Row & SecondUplink["strays"][number])[] {
  return (values["route-answer"]?.rows ?? []).flatMap((row) => {
    const home = own.find(({ address, name }) => address === row.from && name !== row.interface && name !== "lo");
    if (row.family !== family || row.inputInterface !== undefined || home === undefined) return [];
    return [{ ...placed(row), family, from: home.address, interface: row.interface, home: home.name }];
  });
}

/** A table may have a name in `ip rule` and a number in the configuration: any rule from the address to a table other than main will do. */
function unmetOf(family: Family, values: Sources, own: readonly Own[], rules: readonly Rule[]): (Row & SecondUplink["unmet"][number])[] {
  return (values["wanted-rule"]?.rows ?? []).flatMap((row) => {
    const { from, table } = row;
    if (from === undefined || rules.length === 0 || USUAL.test(table) || table === "254" || !own.some(({ address }) => within(address, from))) return [];
    return own.some(({ address }) => within(address, from) && isServed(address, rules)) ? [] : [{ ...placed(row), family, from, table }];
  });
}

interface Own {
  readonly row: Row;
  readonly name: string;
  readonly address: string;
  /** From a list of addresses, not told by a route. */
  readonly listed: boolean;
}

/** The node's addresses with their interfaces. The kernel's own routes tell addresses as well. */
function ownAddresses(family: Family, addresses: readonly (Address & Row)[], routes: readonly (Route & Row)[]): Own[] {
  const listed = addresses
    .filter((row) => row.family === family && row.interface !== "lo" && !(family === "ipv6" && (row.scope === "link" || /^fe[89ab]/.test(row.address))))
    .map((row) => ({ row, name: row.interface, address: row.address, listed: true }));
  const told = routes.flatMap((row) => {
    const usable = row.table === "main" && row.type === "unicast" && row.protocol === "kernel" && !row.flags.includes("linkdown");
    if (!usable || row.source === undefined || row.interface === undefined || listed.some(({ address }) => address === row.source)) return [];
    return [{ row, name: row.interface, address: row.source, listed: false }];
  });
  return [...listed, ...told];
}

/** The interfaces by which packets leave that no rule sends elsewhere. */
function firstOf(defaults: readonly Route[]): (string | undefined)[] {
  const best = Math.min(...defaults.map((row) => row.metric ?? 0));
  return defaults.filter((row) => (row.metric ?? 0) === best).map((row) => row.interface);
}

const isLookedUp = (table: string, rules: readonly Rule[]): boolean => rules.some((row) => row.table === table || row.table === "l3mdev");

const isFrom = (row: Rule, address: string): boolean => row.from !== "all" && !row.not && within(address, row.from);

/** A rule leads from this address to some other table. */
const isServed = (address: string, rules: readonly Rule[]): boolean => rules.some((row) => isFrom(row, address) && !USUAL.test(row.table ?? "main"));

/** The VPC CNI and Cilium look up the tables of further interfaces only while pods use them. */
const isManaged = (rules: readonly Rule[], links: readonly Link[]): boolean =>
  rules.some((row) => row.fwmark === "0x80/0x80" || row.table === "2004" || row.table === "2005") || links.some((row) => row.interface === "cilium_host");
