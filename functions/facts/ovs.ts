import { z } from "zod";
import { isPromptLine, operands, optionValue } from "./command.ts";
import { defineFact, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { cells, csvRecords, type DatabaseRecord, jsonRecords, listRecords, tableRecords, unquoted } from "./ovs-database.ts";
import { combine, ranked } from "./parts.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";

/**
 * Open vSwitch: bridges, their ports and interfaces, bonds and their members.
 *
 *     Port bond1 / Interface eth0 / Interface eth1             ovs-vsctl show
 *     active slave mac: 10:51:72:29:1b:50(eth1)                ovs-appctl bond/show, "member" since 2.17
 */
const Bridge = z.object({
  line: z.int(),
  name: z.string(),
  datapathType: z.string().optional(),
  failMode: z.string().optional(),
  /** Identifiers in the switch's database: only `ovs-vsctl list` tells them; they tie Bridge, Port and Interface together. */
  uuid: z.string().optional(),
  portUuids: z.array(z.string()).optional(),
});
const Port = z.object({
  line: z.int(),
  name: z.string(),
  bridge: z.string().optional(),
  /** VLAN of an access port. */
  tag: z.int().optional(),
  /** It has more than one interface, or one of the system's by another name, or a bond mode. */
  bond: z.boolean(),
  uuid: z.string().optional(),
  interfaceUuids: z.array(z.string()).optional(),
});
const Interface = z.object({
  line: z.int(),
  interface: z.string(),
  port: z.string().optional(),
  bridge: z.string().optional(),
  /** "internal", "vxlan", "patch", …; absent for a device of the system. */
  type: z.string().optional(),
  mac: z.string().optional(),
  /** "remote_ip=10.0.0.2", one setting each. */
  options: z.array(z.string()).optional(),
  /** Why OVS cannot use it. */
  error: z.string().optional(),
  uuid: z.string().optional(),
});
const Bond = z.object({
  line: z.int(),
  /** "(unnamed)" where the listing lost its heading and no other output tells. */
  name: z.string(),
  /** "balance-slb", "balance-tcp", "active-backup" or "stable". */
  mode: z.string().optional(),
  activeMember: z.string().optional(),
  activeMac: z.string().optional(),
  /** "off", "negotiated", "configured", "disabled" (bond/show); "off", "active", "passive" (list Port). */
  lacp: z.string().optional(),
});
const Member = z.object({
  line: z.int(),
  bond: z.string(),
  interface: z.string(),
  /** Told by bond/show only. */
  enabled: z.boolean().optional(),
  active: z.boolean().optional(),
});
const Ovs = z.object({ bridges: z.array(Bridge), ports: z.array(Port), interfaces: z.array(Interface), bonds: z.array(Bond), members: z.array(Member) });
type Ovs = z.infer<typeof Ovs>;
type Port = z.infer<typeof Port>;
type Interface = z.infer<typeof Interface>;

const UNNAMED = "(unnamed)";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const MAC = /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/i;
const MODE = "(balance-slb|balance-tcp|active-backup|stable)";
const ENTITY = /^(Bridge|Port|Interface|Manager|Controller) ("(?:[^"\\]|\\.){1,1000}"|[^\s"]{1,255})$/;
const ATTRIBUTE =
  /^(type|options|error|tag|trunks|vlan_mode|fail_mode|datapath_type|datapath_version|ovs_version|is_connected|role|status|state|db_version|system_type|system_version): (.*)$/;
const BOND_HEADING = /^-{4} (\S{1,255}) -{4}$/;
const BOND_MODE = new RegExp(`^bond_mode: ${MODE}$`);
const BOND_ACTIVE = /^active (?:slave|member) mac: ([0-9a-f:]{17})\((\S{1,255})\)$/;
const BOND_LACP = /^lacp_status: ([a-z]{1,20})$/;
const BOND_MEMBER = /^(?:slave|member) (\S{1,255}): (enabled|disabled)$/;
// Settings and loads of a bond that nothing is concluded from.
const BOND_REST =
  /^(?:bond may use recirculation|bond-hash-basis|bond-hash-algorithm|bond_hash|lacp_negotiated|lb_output action|all (?:slaves|members) active|updelay|downdelay|(?:up|down)delay expires in|next rebalance|lacp_fallback_ab|active-backup primary|may_enable|bond-detect-mode|bond-miimon-interval|bond-miimon|hash -?\d{1,5}):?\s.{1,200}$/;
/** `ovs-vsctl show; ovs-appctl bond/show` on one line: where the answer of the second begins. */
const BONDS_BEHIND = /^[ \t]{0,8}(?:-{4} \S{1,255} -{4}|bond\s{1,8}type\s{1,8}(?:recircID\s{1,8})?(?:slaves|members))[ \t]{0,80}$/im;
const LIST_HEADING = /^bond\s+type\s+(?:recircID\s+)?(?:slaves|members)$/i;
const LIST_ROW = new RegExp(`^(\\S{1,255})\\s+${MODE}\\s+(?:-?\\d{1,10}\\s+)?(\\S{1,255}(?:, \\S{1,255}){0,15})$`);

/** `ovs-vsctl add-br b1 -- list Port` holds several commands; in `ovs-vsctl -- --columns=name,type list Interface` the one command has options of its own. */
function holdsSeveral(argv: readonly string[]): boolean {
  const at = argv.indexOf("--");
  return at !== -1 && (argv.lastIndexOf("--") !== at || argv.slice(1, at).some((word) => !word.startsWith("-")));
}

export const ovs = defineFact({
  id: "ovs",
  title: "Open vSwitch: bridges, ports, interfaces, bonds",
  commands: [{ argv: ["ovs-vsctl", "show"] }, { argv: ["ovs-appctl", "bond/show"] }],
  recognize(argv): View | undefined {
    const words = operands(argv, VALUED);
    const complete = (count: number): boolean => words.length === count;
    if (argv[0] === "ovs-appctl" && words[0] === "bond/show") return { format: "bond/show", complete: complete(1), scope: words.join(" "), rank: 3 };
    if (argv[0] === "ovs-appctl" && words[0] === "bond/list") return { format: "bond/list", complete: complete(1), scope: "bond/list", rank: 2 };
    if (argv[0] === "ovs-appctl" && words[0] === "lacp/show") return { format: "lacp/show", complete: false, scope: words.join(" "), rank: 2 };
    if (argv[0] !== "ovs-vsctl" || holdsSeveral(argv) || argv.includes("--oneline")) return undefined;
    if (words[0] === "show") return { format: "show", complete: complete(1), scope: "show", rank: 4 };
    // of one bridge: the names of its ports, or of the interfaces in them
    if ((words[0] === "list-ports" || words[0] === "list-ifaces") && words.length === 2)
      return { format: words[0], complete: false, scope: `${words[0]} ${words[1]}`, rank: 1 };
    const table = tableOf(words[1]);
    if ((words[0] !== "list" && words[0] !== "find") || table === undefined || argv.includes("--no-headings")) return undefined;
    const format = optionValue(argv, "-f", "--format") ?? argv.find((word) => /^-f\w/.test(word))?.slice(2) ?? "list";
    // json cells inside a list are another layout
    if (format !== "json" && (!Object.hasOwn(READERS, format) || argv.some((word) => /^-d|^--data/.test(word)))) return undefined;
    const columns = argv.some((word) => word.startsWith("--columns"));
    return { format, complete: complete(2) && words[0] === "list" && !columns, scope: words.slice(1).join(" "), rank: 1 };
  },
  schema: Ovs,
  parse({ text, argv, view }) {
    const unparsed = new UnparsedLines();
    const value: Ovs = { bridges: [], ports: [], interfaces: [], bonds: [], members: [] };
    const end = /^(?:bond|lacp)\//.test(view.format) ? -1 : text.search(BONDS_BEHIND);
    const own = end === -1 ? text : text.slice(0, end);
    if (view.format === "show") readShow(own, value, unparsed);
    else if (view.format === "bond/show") readBondShow(own, argv, value, unparsed);
    else if (view.format === "bond/list") readBondList(own, value, unparsed);
    else if (view.format === "lacp/show") readLacpShow(own, value);
    else if (view.format === "list-ports" || view.format === "list-ifaces") readNames(own, view, value, unparsed);
    else {
      const table = tableOf(view.scope.split(" ")[0]) ?? "Port";
      const records = (READERS[view.format] ?? listRecords)(own, unparsed);
      for (const record of records) addRecord(table, record, value);
    }
    if (end !== -1) {
      const bonds = "\n".repeat(own.split("\n").length - 1) + text.slice(end); // lines keep their numbers
      if (text.slice(end).trimStart().startsWith("-")) readBondShow(bonds, argv, value, unparsed);
      else readBondList(bonds, value, unparsed);
    }
    return unparsed.with(value);
  },
  merge(parts) {
    const best = ranked(parts).map((part) => structuredClone(part.value)); // rows are tied together below
    const all: Ovs = {
      bridges: combine(
        best.flatMap((value) => value.bridges),
        (row) => row.name,
      ),
      ports: combine(
        best.flatMap((value) => value.ports),
        (row) => row.name,
      ),
      interfaces: combine(
        best.flatMap((value) => value.interfaces),
        (row) => row.interface,
      ),
      bonds: combine(
        best.flatMap((value) => value.bonds),
        (row) => row.name,
      ),
      members: best.flatMap((value) => value.members),
    };
    resolve(all);
    memberOfListed(all);
    nameUnnamed(all);
    all.bonds = combine(all.bonds, (row) => row.name);
    all.members = combine(all.members, (row) => `${row.bond} ${row.interface}`);
    return all;
  },
  whole: isWhole,
});

/** What `show` tells is all that there is: a few columns of a table beside it leave nothing open. */
function isWhole(parts: readonly Part<Ovs>[]): boolean {
  const shown = parts.some(({ complete, view }) => complete && view.format === "show");
  const counted = shown ? parts.filter(({ view }) => !Object.hasOwn(READERS, view.format)) : parts;
  return counted.every(({ view }) => counted.some((part) => part.complete && part.view.scope === view.scope));
}

/** The layouts of `ovs-vsctl list`. */
const READERS: Readonly<Record<string, (text: string, unparsed: UnparsedLines) => DatabaseRecord[]>> = {
  list: listRecords,
  table: tableRecords,
  csv: csvRecords,
  json: jsonRecords,
};

/** Options with a value in the next word. */
const VALUED: ReadonlySet<string> = new Set(["-f", "--format", "-d", "--data", "-t", "--timeout", "--target", "--db", "--columns", "-T"]);

/** ovs-vsctl takes any unique beginning of a table's name, in any case. */
function tableOf(word: string | undefined): "Bridge" | "Port" | "Interface" | undefined {
  if (word === undefined) return undefined;
  if (/^br(?:i|id|idg|idge)?$/i.test(word)) return "Bridge";
  if (/^p(?:o|or|ort)?$/i.test(word)) return "Port";
  return /^(?:int(?:e|er|erf|erfa|erfac|erface)?|iface)$/i.test(word) ? "Interface" : undefined;
}

/** Nesting is read from the words, not from the indentation, which pasting loses. */
function readShow(text: string, value: Ovs, unparsed: UnparsedLines): void {
  let bridge: Ovs["bridges"][number] | undefined;
  let port: Port | undefined;
  let last: Interface | undefined;
  const members = new Map<Port, Interface[]>();
  for (const { line, text: raw } of lines(text)) {
    const content = raw.trimStart();
    const entity = ENTITY.exec(content);
    const attribute = entity === null ? ATTRIBUTE.exec(content) : null;
    if (entity !== null) {
      const name = unquoted(entity[2] as string);
      if (entity[1] === "Bridge") {
        bridge = { line, name };
        value.bridges.push(bridge);
        port = last = undefined;
      } else if (entity[1] === "Port") {
        port = { line, name, ...(bridge === undefined ? {} : { bridge: bridge.name }), bond: false };
        value.ports.push(port);
        members.set(port, []);
        last = undefined;
      } else if (entity[1] === "Interface") {
        last = { line, interface: name };
        if (port !== undefined) {
          last.port = port.name;
          if (port.bridge !== undefined) last.bridge = port.bridge;
          members.get(port)?.push(last);
        }
        value.interfaces.push(last);
      } else port = last = undefined; // a manager or controller: its attributes are not a port's
    } else if (attribute !== null) {
      const [, name, cell] = attribute as unknown as [string, string, string];
      if (name === "type" && last !== undefined) last.type = unquoted(cell);
      else if (name === "options" && last !== undefined) last.options = cells(cell);
      else if (name === "error" && last !== undefined) last.error = unquoted(cell);
      else if (name === "tag" && port !== undefined && /^\d{1,4}$/.test(cell)) port.tag = Number(cell);
      else if (name === "fail_mode" && bridge !== undefined) bridge.failMode = unquoted(cell);
      else if (name === "datapath_type" && bridge !== undefined) bridge.datapathType = unquoted(cell);
    } else if (!UUID.test(content) && !isPromptLine(content)) unparsed.add(line, raw);
  }
  for (const [bond, interfaces] of members) {
    // a bond that has lost all members but one still goes by its own name
    const last = interfaces.length === 1 && interfaces[0]?.interface !== bond.name && (interfaces[0]?.type ?? "system") === "system";
    if (interfaces.length < 2 && !last) continue;
    bond.bond = true;
    value.bonds.push({ line: bond.line, name: bond.name });
    for (const row of interfaces) value.members.push({ line: row.line, bond: bond.name, interface: row.interface });
  }
}

/** The answer about a port that is no bond, of which collectors ask all the same. */
const NO_BOND = /^no such bond$|^ovs-appctl: \S{1,300}: server returned an error$/;

function readBondShow(text: string, argv: readonly string[], value: Ovs, unparsed: UnparsedLines): void {
  let bond: Ovs["bonds"][number] | undefined;
  let member: Ovs["members"][number] | undefined;
  const at = argv.indexOf("bond/show");
  for (const { line, text: raw } of lines(text)) {
    const content = raw.trimStart();
    const heading = BOND_HEADING.exec(content);
    if (heading !== null) {
      bond = { line, name: heading[1] as string };
      value.bonds.push(bond);
      member = undefined;
      continue;
    }
    const mode = BOND_MODE.exec(content)?.[1];
    if (mode !== undefined && (bond === undefined || bond.mode !== undefined)) {
      bond = { line, name: argv[at + 1] ?? UNNAMED };
      value.bonds.push(bond);
      member = undefined;
    }
    const active = BOND_ACTIVE.exec(content);
    const lacp = BOND_LACP.exec(content)?.[1];
    const row = BOND_MEMBER.exec(content);
    // `| grep slave` takes the heading away
    if (bond === undefined && row !== null) {
      bond = { line, name: argv[at + 1] ?? UNNAMED };
      value.bonds.push(bond);
    }
    if (bond === undefined) {
      if (!NO_BOND.test(content) && !isPromptLine(content)) unparsed.add(line, raw);
    } else if (mode !== undefined) bond.mode = mode;
    else if (lacp !== undefined) bond.lacp = lacp;
    else if (active !== null) {
      if (active[2] === "none") continue;
      bond.activeMac = (active[1] as string).toLowerCase();
      bond.activeMember = active[2] as string;
    } else if (row !== null) {
      member = { line, bond: bond.name, interface: row[1] as string, enabled: row[2] === "enabled", active: false };
      value.members.push(member);
    } else if (/^active (?:slave|member)$/.test(content) && member !== undefined) member.active = true;
    else if (!BOND_REST.test(content) && !isPromptLine(content)) unparsed.add(line, raw);
  }
}

function readBondList(text: string, value: Ovs, unparsed: UnparsedLines): void {
  for (const { line, text: content } of lines(text)) {
    const row = LIST_ROW.exec(content);
    if (row !== null) {
      const [, name, mode, members] = row as unknown as [string, string, string, string];
      value.bonds.push({ line, name, mode });
      for (const member of members.split(", ")) value.members.push({ line, bond: name, interface: member });
    } else if (!LIST_HEADING.test(content) && !isPromptLine(content)) unparsed.add(line, content);
  }
}

/** `ovs-appctl lacp/show`: the bonds that negotiate, with their members. All else is about the partner. */
function readLacpShow(text: string, value: Ovs): void {
  let bond: string | undefined;
  for (const { line, text: content } of lines(text)) {
    const heading = BOND_HEADING.exec(content.trim())?.[1];
    const member = LACP_MEMBER.exec(content.trim())?.[1];
    if (heading !== undefined) {
      bond = heading;
      value.bonds.push({ line, name: heading });
    } else if (member !== undefined && bond !== undefined) value.members.push({ line, bond, interface: member });
  }
}
const LACP_MEMBER = /^(?:slave|member): (\S{1,255}): \w{4,12}(?: \w{1,20}){0,2}$/;

/** `ovs-vsctl list-ports BRIDGE`, `ovs-vsctl list-ifaces BRIDGE`: a name a line. */
function readNames(text: string, { format, scope }: View, value: Ovs, unparsed: UnparsedLines): void {
  const bridge = scope.slice(format.length + 1);
  for (const { line, text: raw } of lines(text)) {
    const name = raw.trim();
    if (isPromptLine(raw)) continue;
    if (!NAME.test(name)) unparsed.add(line, raw);
    else if (format === "list-ports") value.ports.push({ line, name, bridge, bond: false });
    else value.interfaces.push({ line, interface: name, bridge });
  }
}
const NAME = /^[\w.@:-]{1,64}$/;

function addRecord(table: "Bridge" | "Port" | "Interface", record: DatabaseRecord, value: Ovs): void {
  const all = (column: string): readonly string[] => record.columns.get(column) ?? [];
  const one = (column: string): string | undefined => all(column)[0] || undefined;
  const name = one("name");
  if (name === undefined) return; // `--columns` without the name: nothing to tie it to
  const place = placed(record);
  const identity = present({ uuid: all("_uuid")[0] });
  if (table === "Bridge") {
    const kinds = present({ datapathType: one("datapath_type"), failMode: one("fail_mode") });
    value.bridges.push({ ...place, name, ...kinds, ...identity, ...(record.columns.has("ports") ? { portUuids: [...all("ports")] } : {}) });
  } else if (table === "Interface") {
    const [type, mac, options, error] = [one("type"), one("mac_in_use") ?? one("mac"), all("options"), one("error")];
    const row: Interface = { ...place, interface: name, ...identity };
    if (type !== undefined) row.type = type;
    if (mac !== undefined && MAC.test(mac)) row.mac = mac.toLowerCase();
    if (options.length > 0) row.options = [...options];
    if (error !== undefined) row.error = error;
    value.interfaces.push(row);
  } else {
    const [mode, lacp, activeMac, tag] = [one("bond_mode"), one("lacp"), one("bond_active_slave"), one("tag")];
    const bond = all("interfaces").length > 1 || mode !== undefined;
    const row: Port = { ...place, name, bond, ...identity, ...(record.columns.has("interfaces") ? { interfaceUuids: [...all("interfaces")] } : {}) };
    if (tag !== undefined && /^\d{1,4}$/.test(tag)) row.tag = Number(tag);
    value.ports.push(row);
    if (!bond) return;
    value.bonds.push({
      ...place,
      name,
      ...present({ mode, lacp }),
      ...(activeMac !== undefined && MAC.test(activeMac) ? { activeMac: activeMac.toLowerCase() } : {}),
    });
  }
}

/** Ties ports to bridges, interfaces to ports and members to bonds by the identifiers of the database. */
function resolve(all: Ovs): void {
  const ports = new Map(all.ports.map((row) => [row.uuid ?? "", row]));
  const interfaces = new Map(all.interfaces.map((row) => [row.uuid ?? "", row]));
  const bonds = new Map(all.bonds.map((row) => [row.name, row]));
  for (const bridge of all.bridges) {
    for (const uuid of bridge.portUuids ?? []) {
      const port = ports.get(uuid);
      if (port !== undefined) port.bridge ??= bridge.name;
    }
  }
  for (const port of all.ports) {
    for (const uuid of port.interfaceUuids ?? []) {
      const row = interfaces.get(uuid);
      if (row === undefined) continue;
      row.port ??= port.name;
      if (port.bridge !== undefined) row.bridge ??= port.bridge;
      if (!port.bond) continue;
      const activeMac = bonds.get(port.name)?.activeMac;
      const active = activeMac === undefined || row.mac === undefined ? undefined : row.mac === activeMac;
      all.members.push({ ...placed(port), bond: port.name, interface: row.interface, ...present({ active }) });
    }
  }
}

/**
 * Both lists of one bridge: an interface that is no port is a member of a port that is no interface, which is a bond. With one such port it is known which.
 */
function memberOfListed(all: Ovs): void {
  const interfaces = new Set(all.interfaces.map((row) => row.interface));
  const ports = new Set(all.ports.map((row) => row.name));
  for (const bridge of new Set(all.interfaces.flatMap((row) => (row.port === undefined && row.bridge !== undefined ? [row.bridge] : [])))) {
    const bonds = all.ports.filter((row) => row.bridge === bridge && !interfaces.has(row.name));
    const [bond] = bonds;
    const members = all.interfaces.filter((row) => row.bridge === bridge && row.port === undefined && !ports.has(row.interface));
    if (bond === undefined || bonds.length !== 1 || members.length < 2) continue;
    bond.bond = true;
    all.bonds.push({ ...placed(bond), name: bond.name });
    for (const row of members) all.members.push({ ...placed(row), bond: bond.name, interface: row.interface });
  }
}

/** A pasted bond/show without its heading belongs to the bond with the same members, if there is just one. */
function nameUnnamed(all: Ovs): void {
  const mine = all.members.filter((row) => row.bond === UNNAMED).map((row) => row.interface);
  if (mine.length === 0) return;
  const named = new Map<string, Set<string>>();
  for (const row of all.members) if (row.bond !== UNNAMED) named.set(row.bond, (named.get(row.bond) ?? new Set()).add(row.interface));
  const fitting = [...named].filter(([, members]) => members.size === new Set(mine).size && mine.every((name) => members.has(name)));
  const name = fitting.length === 1 ? fitting[0]?.[0] : undefined;
  if (name === undefined) return;
  for (const row of all.members) if (row.bond === UNNAMED) row.bond = name;
  for (const row of all.bonds) if (row.name === UNNAMED) row.name = name;
}
