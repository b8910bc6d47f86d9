import { type Part, rankOf } from "./fact.ts";
import type { Family } from "./ip-address.ts";

/** A listing command of iproute2 or BusyBox (`ip -4 -j addr show dev eth0`), taken apart. */
export interface IpCommand {
  readonly object: "address" | "link" | "route" | "rule" | "neighbor";
  readonly family: Family | undefined;
  readonly json: boolean;
  readonly brief: boolean;
  readonly details: boolean;
  /** What stands behind `show`: the listing is filtered if there is anything. */
  readonly filters: readonly string[];
}

// iproute2 takes any beginning of a word; of several the first in this order.
const OBJECTS = ["address", "route", "rule", "neighbor", "neighbour", "link"] as const;
const APPLETS = new Map(Object.entries({ ipaddr: "address", iplink: "link", iproute: "route", iprule: "rule", ipneigh: "neighbor" }));
const VERBS = ["show", "list", "lst"];

/** Undefined if it is no `ip` command, changes something, asks for one address (`route get`), or looks into another network namespace (`-n pod1`). */
export function ipCommand(argv: readonly string[]): IpCommand | undefined {
  const applet = APPLETS.get(argv[0] ?? "");
  if (argv[0] !== "ip" && applet === undefined) return undefined;
  let family: Family | undefined;
  const given = { json: false, brief: false, details: false };
  let i = 1;
  for (; argv[i]?.startsWith("-"); i++) {
    const name = (argv[i] as string).replace(/^--?/, "");
    const is = (full: string, atLeast: number) => name.length >= atLeast && full.startsWith(name);
    if (name === "4" || name === "6") family = name === "4" ? "ipv4" : "ipv6";
    else if (is("family", 1)) {
      const value = argv[++i];
      if (value !== "inet" && value !== "inet6") return undefined;
      family = value === "inet" ? "ipv4" : "ipv6";
    } else if (is("json", 1)) given.json = true;
    else if (is("brief", 2)) given.brief = true;
    else if (is("details", 1)) given.details = true;
    else if (is("loops", 1) || is("rcvbuf", 2)) i++;
    else if (name === "0" || name === "M" || name === "B" || is("netns", 1) || is("batch", 1)) return undefined;
  }
  const word = applet ?? argv[i++];
  const object = word === undefined || word === "" ? undefined : OBJECTS.find((name) => name.startsWith(word));
  if (object === undefined) return undefined;
  const verb = argv[i];
  if (verb !== undefined && !VERBS.some((name) => name.startsWith(verb))) return undefined;
  const filters = argv.slice(i + 1);
  return { object: object === "neighbour" ? "neighbor" : object, family, ...given, filters: object === "route" ? filters.map(spelledOut) : filters };
}

/** `ip r s t all`: `table` is the one filter of routes that people shorten. A name behind `dev` stays as it is. */
function spelledOut(word: string, at: number, words: readonly string[]): string {
  return /^t(?:a|ab|abl)?$/.test(word) && !/^(?:dev|oif|iif|vrf)$/.test(words[at - 1] ?? "") ? "table" : word;
}

/** The value behind one of these words among the filters (`dev eth0`): what a filtered listing no longer prints on its lines. */
export function filterValue(filters: readonly string[], ...names: readonly string[]): string | undefined {
  const at = filters.findIndex((word) => names.includes(word));
  return at === -1 ? undefined : filters[at + 1];
}

/**
 * The scope of a listing by family: "" for both families, "ipv4", "ipv6"; behind it, after a blank, the filters.
 * {@link mergeFamilies} and {@link wholeFamilies} read it.
 */
export function familyScope(family: Family | undefined, filters: readonly string[]): string {
  return [family ?? "", ...filters].join(" ");
}

const FAMILIES: readonly Family[] = ["ipv4", "ipv6"];
const covers = (part: Part<unknown>, family: Family): boolean => part.view.scope === "" || part.view.scope === family;

interface FamilyRow {
  family: Family;
  line: number;
}

/**
 * Merge of facts whose rows have a family: for each, the best listing that is not filtered. Filtered ones add to it what it lacks if it is not
 * complete, and rows of other groups (routing tables) in any case.
 */
export function mergeFamilies<R extends FamilyRow>(parts: readonly Part<{ rows: R[] }>[], groupOf?: (row: R) => string): { rows: R[] } {
  const first = parts.filter((part) => part.sample === 1).sort((a, b) => rankOf(b) - rankOf(a));
  const rows = FAMILIES.flatMap((family) => {
    const best = first.find((part) => covers(part, family));
    const own = best?.value.rows.filter((row) => row.family === family) ?? [];
    const others = first.filter((part) => part.view.scope.includes(" ") || (part !== best && !part.complete));
    if (others.length === 0) return own;
    const seen = new Set(own.map(identity));
    const groups = new Set(own.map((row) => groupOf?.(row)));
    const added: R[] = [];
    for (const part of others) {
      for (const row of part.value.rows) {
        const wanted = row.family === family && (best === undefined || !best.complete || !groups.has(groupOf?.(row)));
        const key = wanted ? identity(row) : "";
        if (!wanted || seen.has(key)) continue;
        seen.add(key);
        added.push(row);
      }
    }
    return own.concat(added);
  });
  return { rows };
}

/** What the first of several equal listings has and the last has not; nothing where there is one. A listing that was cut is compared with none. */
export function goneOf<R extends FamilyRow>(parts: readonly Part<{ rows: R[] }>[]): { gone?: R[] } {
  const groups = Map.groupBy(
    parts.filter((part) => part.complete && part.value.rows.length > 0),
    (part) => `${part.view.format} ${part.view.scope}`,
  );
  const gone = [...groups.values()].flatMap((group) => {
    const [first, last] = [group[0], group.at(-1)];
    if (first === undefined || last === undefined || first === last) return [];
    const kept = new Set(last.value.rows.map(identity));
    return first.value.rows.filter((row) => !kept.has(identity(row)));
  });
  return gone.length === 0 ? {} : { gone };
}

/** What a row says, wherever it was read. */
function identity(row: FamilyRow): string {
  return JSON.stringify({ ...row, line: 0, output: 0, text: "" });
}

/** True if IPv4, which everyone looks at, was seen completely, and IPv6 too if it was looked at. */
export function wholeFamilies(parts: readonly Part<unknown>[]): boolean {
  const seen = FAMILIES.filter(
    (family) => family === "ipv4" || parts.some((part) => part.view.scope.startsWith(family) || covers(part, family) || part.view.scope.startsWith(" ")),
  );
  return seen.every((family) => parts.some((part) => part.complete && covers(part, family)));
}

/** Who made a route or a rule, by the numbers that `ip -N` prints and versions that do not know the name. */
export const ROUTE_PROTOCOLS = new Map(
  Object.entries({
    "0": "unspec",
    "1": "redirect",
    "2": "kernel",
    "3": "boot",
    "4": "static",
    "8": "gated",
    "9": "ra",
    "11": "zebra",
    "12": "bird",
    "16": "dhcp",
    "18": "keepalived",
    "42": "babel",
    "186": "bgp",
    "188": "ospf",
  }),
);

/** The routing tables that have a name everywhere, by the number that `ip -N` prints. */
export const ROUTE_TABLES = new Map(Object.entries({ "253": "default", "254": "main", "255": "local" }));
