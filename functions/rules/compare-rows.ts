import type { Capture } from "../facts/capture.ts";
import { commandLine } from "../facts/command.ts";
import { facts } from "../facts/index.ts";
import type { FactReading } from "../facts/read.ts";
import { abstracted } from "./compare-text.ts";

/** Turns the rows of any fact into entries that can be held against those of another node. Knows fields by name and type, not facts. */

export type RawRow = Readonly<Record<string, unknown>>;

/** One row, without what differs from node to node anyway. */
export interface Entry {
  readonly list: string;
  /** Where it stands: table and chain, cgroup and hook, file. Entries with a position are in order within their group. */
  readonly group: string;
  /** Which thing of the group it is about, and the fields that say so. */
  readonly identity: string;
  readonly names: readonly string[];
  /** Everything else that is compared: field → value. */
  readonly fields: ReadonlyMap<string, string>;
  /** Identity and fields as one text. */
  readonly token: string;
  readonly ordered: boolean;
  /** It is about one pod or endpoint. */
  readonly private: boolean;
  /** There are more of the same before it. */
  readonly again: boolean;
  readonly row: RawRow;
}

/** What one capture says of one fact. */
export interface View {
  readonly entries: readonly Entry[];
  /** Everything of the fact was seen. */
  readonly complete: boolean;
  /** Groups (chains) whose completeness the fact itself knows. */
  readonly groups: ReadonlyMap<string, boolean>;
}

/** How the rows of a fact have to be read so that they can be compared between these captures. */
export interface Reading {
  /** Rules are given as specifications on every side; otherwise only their fields can be compared. */
  readonly specs: boolean;
  /** A backend is named on every side. */
  readonly backends: boolean;
  /** Tables of nftables that iptables and ebtables show as well are left to those. */
  readonly skipNftOf: readonly ("iptables" | "ebtables")[];
}

/** Fields that say where a row stands. */
const GROUP = ["family", "backend", "table", "chain", "cgroup", "attachType", "directory", "file"];
/** Fields that say which thing a row is about, where {@link IDENTITIES} says nothing else. */
const IDENTITY = ["interface", "key", "name", "unit", "section", "hook", "prefix", "address"];
const IDENTITIES: Readonly<Record<string, readonly string[]>> = {
  "address.rows": ["interface"],
  "bpf-link.rows": ["type", "interface"],
  "bpf-map.rows": ["name", "type"],
  "clock.rows": ["source"],
  "ipvs.services": ["protocol", "address", "port"],
  "link.rows": ["interface"],
  // one per node
  "os.kernels": [],
  "os.releases": [],
  "route.rows": ["type", "prefix", "interface"],
  "rule.rows": ["priority", "from", "to", "fwmark", "inputInterface", "action", "table"],
  "tc.qdiscs": ["interface", "parent"],
};

/** Where and how a row was read, and words for people. */
const PLACE: ReadonlySet<string> = new Set(["line", "output", "text", "comment", "message", "alias", "label", "info", "complete", "whole", "position", "spec"]);
/** Numbers that belong to this boot, this moment or this machine. */
const PASSING =
  /(?:Delta|Count|Packets|Bytes|Errors|Dropped|Overrun|Missed|Total|Rate|Seconds|Ms|Age|At|Time|Id|Ids|Uuid|Uuids|Index|Mac|Peer)$|^(?:packets|bytes|time|at|since|last.*|id|ids|uid|uuid|index|pid|inode|handle|mac|peer|peerNamespace|broadcast|memlock|usedBy|rules|references|members|elements|pinned|tag|loadedAt|size|path|goto|activeMember|active_?[mM]ac)$/;
/** Whole numbers are counters unless their name says that somebody set them. */
const SET_NUMBER =
  /^(?:mtu|metric|priority|prefixLength|port|vni|vlan|weight|suppressPrefixLength|scheduler)$|(?:Limit|Max|Min|Threshold|Size|Mtu|Port|Timeout|Interval|Burst|Entries|Members)$|^(?:max|min)[A-Z]/;
/** Of some lists only these fields (besides the identity) say something that lasts. */
const KEPT: Readonly<Record<string, readonly string[]>> = {
  "address.rows": ["prefixLength", "scope"],
  "bpf-program.rows": ["type"],
  "link.vxlans": ["id", "port", "udpChecksum", "learning", "external", "underlay"],
  "module.rows": [],
  "ovs.ports": ["bridge", "tag", "bond"],
  "ovs.bonds": ["mode", "lacp"],
  "ovs.members": ["enabled"],
  "tool.rows": [],
};
/** States of a link that its fields `up` and `carrier` tell already. */
const SAID: ReadonlySet<string> = new Set(["UP", "LOWER_UP", "NO-CARRIER", "RUNNING", "M-DOWN"]);
/** One more of the same is a difference: what hangs on a hook runs once for each. */
const COUNTED: ReadonlySet<string> = new Set(["bpf-net.rows", "tc.filters"]);
const BASE = /^(?:PREROUTING|INPUT|FORWARD|OUTPUT|POSTROUTING|BROUTING)$/i;
const XTABLES: ReadonlySet<string> = new Set(["filter", "nat", "mangle", "raw", "security"]);

/** What a capture says of a fact. `reading.status` must be "read". */
export function viewOf(fact: string, reading: FactReading, capture: Capture, how: Reading): View {
  const entries: Entry[] = [];
  const groups = new Map<string, boolean>();
  const seen = new Map<string, number>();
  const ends = new Map(capture.outputs.flatMap(({ truncated, text }, index) => (truncated ? [[index, text.trimEnd().split("\n").length]] : [])));
  const hooked = hookedIn(reading.value as Record<string, unknown>);
  for (const [name, list] of Object.entries(reading.value as Record<string, unknown>)) {
    if (!Array.isArray(list)) continue;
    for (const item of list) {
      if (typeof item !== "object" || item === null) continue;
      const row = item as RawRow;
      // the last line of an output that was cut may be a part of a line
      if (row["line"] === ends.get(Number(row["output"]))) continue;
      // that a program is not there is only known because somebody tried to run it: nobody looked for it elsewhere
      if (fact === "tool" && name === "missing" && capture.outputs[Number(row["output"])]?.exitCode === 127) continue;
      if (fact === "nft" && leftToXtables(row, how.skipNftOf)) continue;
      if (name === "chains" && typeof row["complete"] === "boolean") groups.set(groupOf({ ...row, chain: row["name"] }, how), row["complete"]);
      const entry = entryOf(fact, name, row, how, seen, hooked);
      if (entry !== undefined) entries.push(entry);
    }
  }
  return { entries, complete: reading.complete, groups };
}

function entryOf(fact: string, name: string, row: RawRow, how: Reading, seen: Map<string, number>, hooked: ReadonlySet<string>): Entry | undefined {
  // what is told to be absent is an answer about the thing itself
  const gone = name === "absent" || name === "missing";
  const list = gone ? "rows" : name;
  const key = `${fact}.${list}`;
  const ordered = typeof row["position"] === "number";
  const group = groupOf(row, how);
  const names = ordered ? [] : (IDENTITIES[key] ?? IDENTITY);
  const identity = names.flatMap((field) => (row[field] === undefined ? [] : [comparable(row[field])])).join(" ");
  const fields = new Map<string, string>();
  if (gone) fields.set("value", ABSENT);
  else if (ordered && how.specs && typeof row["spec"] === "string") fields.set("spec", specOf(row["spec"]));
  else {
    const kept = KEPT[key];
    for (const [field, value] of Object.entries(row)) {
      if (names.includes(field) || GROUP.includes(field) || PLACE.has(field) || value === undefined || value === false || value === "") continue;
      if (kept === undefined ? PASSING.test(field) || (typeof value === "number" && !SET_NUMBER.test(field)) : !kept.includes(field)) continue;
      const text = comparable(value);
      if (text !== "") fields.set(field, text);
    }
  }
  if (identity === "" && fields.size === 0) return undefined;
  const own = [...GROUP, "interface", "name", "key"].some((field) => typeof row[field] === "string" && abstracted(row[field]) !== row[field]);
  let token = [identity, ...[...fields].map(([field, value]) => `${field}=${value}`)].join("\t");
  const literal = !/[<*]/.test(token);
  const isPrivate = own || ofService(row) || (ordered && !literal && !BASE.test(textOf(row, "chain") || "PREROUTING") && !hooked.has(chainOf(row, "chain")));
  let again = false;
  if (!own && literal && (ordered || COUNTED.has(key))) {
    const place = `${list}\n${group}\n${token}`;
    const count = (seen.get(place) ?? 0) + 1;
    seen.set(place, count);
    again = count > 1;
    if (again) token += `\t#${count}`;
  }
  return { again, list, group, identity, names, fields, token, ordered: ordered && !own, private: isPrivate, row };
}

/** Of one service, in kube-proxy's chains for all of them and in nftables in one of its own: whether an endpoint of it is on the node differs from node to node. */
const ofService = (row: RawRow): boolean =>
  (textOf(row, "table") === "kube-proxy" && /^(?:service|external|local|endpoint|firewall)-[A-Z0-9]{8}-/.test(textOf(row, "chain") || textOf(row, "name"))) ||
  (/^KUBE-(?:SERVICES|EXTERNAL-SERVICES|NODEPORTS|PROXY-FIREWALL)$/.test(textOf(row, "chain")) && textOf(row, "destinationPort") !== "");

/** Chains of nftables that packets enter by themselves, whatever they are called. */
function hookedIn(value: Readonly<Record<string, unknown>>): ReadonlySet<string> {
  const chains = Array.isArray(value["chains"]) ? (value["chains"] as RawRow[]) : [];
  return new Set(chains.filter((row) => textOf(row, "hook") !== "").map((row) => chainOf(row, "name")));
}

const chainOf = (row: RawRow, name: string): string => `${textOf(row, "family")} ${textOf(row, "table")} ${textOf(row, name)}`;

/** The value of something that a tool says is not there. */
export const ABSENT = "(absent)";

function groupOf(row: RawRow, how: Reading): string {
  return GROUP.flatMap((field) => {
    const value = row[field];
    if (typeof value !== "string" || (field === "backend" && !how.backends)) return [];
    return [abstracted(value)];
  }).join(" ");
}

function comparable(value: unknown): string {
  if (Array.isArray(value))
    return value
      .filter((item) => !SAID.has(String(item)))
      .map((item) => abstracted(String(item)))
      .sort()
      .join(",");
  return value === true ? "yes" : abstracted(String(value));
}

/** A rule's specification without comments, counters and handles. */
function specOf(spec: string): string {
  const bare = spec
    .replace(/-m comment --comment (?:"(?:[^"\\]|\\.)*"|\S+) ?/g, "")
    .replace(/ ?comment "(?:[^"\\]|\\.)*"/g, "")
    .replace(/counter packets \d+ bytes \d+/g, "counter")
    .replace(/ ?# handle \d+/g, "")
    .replace(/\s+/g, " ")
    .trim();
  return abstracted(bare);
}

function leftToXtables(row: RawRow, skip: Reading["skipNftOf"]): boolean {
  const table = textOf(row, "table") || textOf(row, "name");
  const family = textOf(row, "family");
  if (family === "bridge") return skip.includes("ebtables") && XTABLES.has(table);
  return (family === "ip" || family === "ip6") && skip.includes("iptables") && XTABLES.has(table);
}

/** How rows must be read so that all these readings of one fact can be compared. */
export function readingOf(readings: readonly FactReading[], tablesRead: Reading["skipNftOf"]): Reading {
  const rows = readings.flatMap((reading) =>
    Object.values(reading.value as Record<string, unknown>).flatMap((list) => (Array.isArray(list) ? (list as RawRow[]) : [])),
  );
  const forms = new Set(
    rows.flatMap((row) => (typeof row["spec"] === "string" ? [/^(?:-|!|$)/.test(row["spec"]) ? "options" : /^[[{]/.test(row["spec"]) ? "json" : "words"] : [])),
  );
  // columns are cut to the width of the longest name: as text they never compare
  const columns = rows.some((row) => typeof row["spec"] === "string" && /^\S* +\S+ +(?:--|-f|!f) /.test(row["spec"]));
  return { specs: forms.size <= 1 && !columns, backends: !rows.some((row) => row["backend"] === "unknown"), skipNftOf: tablesRead };
}

/** Marks a command whose answer was cut or came with an error, in the key of {@link sourcesOf}. */
export const IN_PART = " (in part)";

/**
 * What was asked of the node about a fact: each command that was answered. From two captures that asked the same, what is in one and not in
 * the other is a difference; otherwise it may only not have been asked.
 */
export function sourcesOf(capture: Capture): ReadonlyMap<string, { readonly key: string; readonly commands: readonly string[] }> {
  const found = new Map<string, Map<string, string>>();
  for (const output of capture.outputs) {
    const failed = output.exitCode !== undefined && output.exitCode !== 0;
    if (output.sample !== 1 || (failed && output.text.trim() === "")) continue;
    const { argv, foreign } = commandLine(output.argv ?? output.command);
    if (foreign || argv.length === 0) continue;
    for (const fact of facts) {
      const view = recognized(() => fact.recognize(argv));
      if (view === undefined) continue;
      const known = found.get(fact.id) ?? new Map<string, string>();
      found.set(fact.id, known.set(`${argv.join(" ")}${failed || output.truncated ? IN_PART : ""}`, output.command));
    }
  }
  return new Map([...found].map(([id, sources]) => [id, { key: [...sources.keys()].sort().join("\n"), commands: [...sources.values()] }]));
}

function recognized<T>(look: () => T | undefined): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}

/** Fields whose value says by itself what it is. */
const PLAIN: ReadonlySet<string> = new Set(["action", "address", "key", "name", "prefix", "section", "source", "table", "type", "unit"]);

/** A row in a few words, with its real values: what it is about first. */
export function labelOf({ row, names, fields }: Entry): string {
  if (typeof row["spec"] === "string") return cut(row["spec"].replace(/\s+/g, " ").trim());
  // what it is about in the order of its names: a policy rule reads like `ip rule` then
  const order = [...names.filter((field) => Object.hasOwn(row, field)), ...Object.keys(row).filter((field) => !names.includes(field))];
  const words = order.flatMap((field) => {
    const own = names.includes(field) || field === "name";
    const value = row[field];
    if (PLACE.has(field) || (GROUP.includes(field) && !names.includes(field)) || value === undefined || value === false || value === "") return [];
    // an address is never compared, but says which one it is
    if (!own && !fields.has(field) && field !== "address") return [];
    const shown = Array.isArray(value) ? value.join(",") : value === true ? "" : textOf(row, field);
    if (shown === "" && value !== true) return [];
    return [{ own, words: PLAIN.has(field) && (own || field === "address") ? shown : `${field} ${shown}`.trim() }];
  });
  return cut([...words.filter(({ own }) => own), ...words.filter(({ own }) => !own)].map((item) => item.words).join(" "));
}

/** What a row is about, by its real name. */
export function thingOf({ row, names, list }: Entry): string {
  return names.flatMap((field) => (GROUP.includes(field) ? [] : textOf(row, field) || [])).join(" ") || list;
}

/** A field of a row as text; empty if it has none. */
export function textOf(row: RawRow, field: string): string {
  const value = row[field];
  return typeof value === "string" ? value : typeof value === "number" || typeof value === "boolean" ? `${value}` : "";
}

/** Where an entry stands, in words. */
export function placeOf({ row }: Entry): string {
  const text = (field: string): string => textOf(row, field);
  const ipv6 = text("family") === "ipv6" || text("family") === "ip6" ? " (IPv6)" : "";
  if (text("chain") !== "") return `${text("table")} ${text("chain")}${ipv6}`.trim();
  if (text("cgroup") !== "") return `${text("cgroup")} ${text("attachType")}`.trim();
  if (text("table") !== "") return `table ${text("table")}${ipv6}`;
  return [text("directory"), text("file")].filter(Boolean).join("/");
}

const cut = (text: string): string => (text.length > 160 ? `${text.slice(0, 159)}…` : text);
