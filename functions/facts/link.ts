import { z } from "zod";
import { hasLetter, hasOption } from "./command.ts";
import { defineFact, lines, type Part, type Row, rankOf, UnparsedLines, type View } from "./fact.ts";
import { readIfconfig } from "./ifconfig.ts";
import { ipCommand } from "./ip-command.ts";
import { type LinkText, readLinkText, split } from "./ip-link-text.ts";
import { asInteger, asObject, asString, asStrings, type JsonElement, jsonElements } from "./json.ts";
import { readMac } from "./mask.ts";
import { type Metric, metricsAs, metricsView } from "./node-metrics.ts";
import { isPrompt, withoutPrompts } from "./paste.ts";
import { present } from "./present.ts";
import { procNet } from "./proc-net.ts";
import { deltas } from "./sampled.ts";
import { talosResources, talosView } from "./talos.ts";

/**
 * Network interfaces.
 *
 *     3: eth0@if2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1400 qdisc noqueue master br0 state UP mode DEFAULT group default qlen 1000
 *         link/ether fa:24:fc:e6:d1:45 brd ff:ff:ff:ff:ff:ff link-netns pod1
 */
const Link = z.object({
  line: z.int(),
  /** Without `@peer`. */
  interface: z.string(),
  index: z.int().optional(),
  /** The other end or the lower interface: a name, or `if3` for index 3 of another network namespace. */
  peer: z.string().optional(),
  flags: z.array(z.string()),
  /** Flag UP: switched on by the administrator. */
  up: z.boolean(),
  /** Flag LOWER_UP: the line is up. ifconfig shows RUNNING instead, which is nearly the same. */
  carrier: z.boolean(),
  /** Bytes. */
  mtu: z.int().optional(),
  qdisc: z.string().optional(),
  /** Bridge, bond, VRF or OVS datapath that it is a member of. */
  master: z.string().optional(),
  /** "UP", "DOWN", "UNKNOWN", "LOWERLAYERDOWN", … */
  state: z.string().optional(),
  /** Lower case, colons. Absent for interfaces without a hardware address. */
  mac: z.string().optional(),
  /** Only `-d` tells: "veth", "bridge", "vxlan", … Absent for physical interfaces. */
  kind: z.string().optional(),
  /** Only `-d` tells: kind of the master, "bridge", "bond", "openvswitch". */
  memberKind: z.string().optional(),
  /** Network namespace of the peer: a name where `ip` knows one, else its number. */
  peerNamespace: z.string().optional(),
  alias: z.string().optional(),
  hairpin: z.boolean().optional(),
});

/**
 * VXLAN devices (only `-d` tells).
 *
 *     vxlan id 43 local 10.9.0.1 dev br0 srcport 0 0 dstport 8472 nolearning ttl auto ageing 300 udpcsum noudp6zerocsumtx noudp6zerocsumrx
 */
const Vxlan = z.object({
  line: z.int(),
  interface: z.string(),
  /** Network identifier (VNI); 0 for a device that takes it from each packet. */
  id: z.int(),
  local: z.string().optional(),
  /** Unicast or multicast address. */
  remote: z.string().optional(),
  underlay: z.string().optional(),
  /** UDP. */
  port: z.int().optional(),
  learning: z.boolean().optional(),
  udpChecksum: z.boolean().optional(),
  external: z.boolean(),
});

/** Bridges (only `-d` tells): `bridge forward_delay 1500 … stp_state 0 … vlan_filtering 0 … nf_call_iptables 0 nf_call_ip6tables 0`. */
const Bridge = z.object({
  line: z.int(),
  interface: z.string(),
  vlanFiltering: z.boolean().optional(),
  stp: z.boolean().optional(),
  nfCallIptables: z.boolean().optional(),
  nfCallIp6tables: z.boolean().optional(),
});

/**
 * Counters since the interface was made (only `-s` and ifconfig tell). `…Delta`: what a second sample has more.
 *
 *     RX:  bytes packets errors dropped  missed   mcast
 *           4140      50      0       0       0       0
 */
const Statistics = z.object({
  line: z.int(),
  interface: z.string(),
  /** Left out by netstat, which counts packets alone. */
  rxBytes: z.int().optional(),
  rxPackets: z.int(),
  rxErrors: z.int(),
  rxDropped: z.int(),
  rxOverrun: z.int().optional(),
  rxMissed: z.int().optional(),
  txBytes: z.int().optional(),
  txPackets: z.int(),
  txErrors: z.int(),
  txDropped: z.int(),
  rxBytesDelta: z.int().optional(),
  rxPacketsDelta: z.int().optional(),
  rxErrorsDelta: z.int().optional(),
  rxDroppedDelta: z.int().optional(),
  rxOverrunDelta: z.int().optional(),
  rxMissedDelta: z.int().optional(),
  txBytesDelta: z.int().optional(),
  txPacketsDelta: z.int().optional(),
  txErrorsDelta: z.int().optional(),
  txDroppedDelta: z.int().optional(),
});
const Links = z.object({ rows: z.array(Link), vxlans: z.array(Vxlan), bridges: z.array(Bridge), statistics: z.array(Statistics) });
export type Link = z.infer<typeof Link>;
type Links = z.infer<typeof Links>;
type Statistics = z.infer<typeof Statistics>;

// grep and head put the path in front; networkctl: IDX LINK TYPE OPERATIONAL SETUP
const SYSFS = /^(?:\/host)?\/sys\/class\/net\/([\w.@*-]{1,15})\/(flags|operstate)$/;
const SYSFS_LINE = /^(?:\/host)?\/sys\/class\/net\/([\w.@-]{1,15})\/(flags|operstate):(\w{1,16})$/;
const NETWORKCTL = /^(?:[●*] )?\d{1,6} ([^\s…]{1,15}) [a-z-]{1,20} ([a-z-]{2,20}) [a-z-]{4,20}$/u;
const PROC_NET_DEV = procNet("dev");

export const link = defineFact({
  id: "link",
  title: "Network interfaces, their kinds, bridges, VXLANs and counters",
  commands: [{ argv: ["ip", "-d", "-s", "-j", "link", "show"], samples: 2 }],
  recognize(argv): View | undefined {
    if (argv[0] === "ifconfig") {
      const others = argv.slice(1).filter((word) => !/^-[av]+$/.test(word));
      if (hasOption(argv, "-s") && argv.slice(1).every((word) => /^-[asv]+$/.test(word))) return { format: "netstat", complete: false, scope: "", rank: 0 };
      // More words than a name set something.
      if (others.length > 1 || hasOption(others, "-s")) return undefined;
      return { format: "ifconfig", complete: others.length === 0 && argv.some((word) => /^-v?a/.test(word)), scope: others.join(" "), rank: 1 };
    }
    if (argv[0] === "networkctl") return isList(argv) ? { format: "networkctl", complete: false, scope: argv.join(" "), rank: 0, hint: true } : undefined;
    const files = stateFiles(argv);
    if (files !== undefined) return { format: "sysfs", complete: false, scope: files.join(" "), rank: 0, hint: true };
    if (argv[0] === "talosctl") {
      const asked = talosView(argv, /^links?(?:status(?:es)?(?:\.net\.talos\.dev)?)?$/i, 6);
      // a table tells neither flags nor sizes
      return asked?.format === "talos" ? { ...asked, complete: false, rank: 0 } : asked;
    }
    const metrics = metricsView(argv, "metrics");
    if (metrics !== undefined) return { ...metrics, hint: true };
    if (argv[0] === "netstat") return isInterfaceTable(argv) ? { format: "netstat", complete: false, scope: "", rank: 0 } : undefined;
    // The file has the counters alone.
    const shows = (argv[0] === "cat" && argv.length === 2) || (argv[0] === "grep" && argv.length >= 3 && !/^-\w*[cln]/.test(argv[1] ?? ""));
    if (shows && PROC_NET_DEV.test(argv.at(-1) ?? "")) return { format: "proc", complete: false, scope: "", rank: 0 };
    const command = ipCommand(argv);
    if (command === undefined || (command.object !== "link" && command.object !== "address")) return undefined;
    // `ip addr` of one family leaves out interfaces and hardware addresses, `-br` and `-o` leave out the flags.
    const address = command.object === "address";
    if (address && (argv.some((word) => /^--?o/.test(word)) || (command.brief && command.json))) return undefined;
    if (address && command.brief) return { format: "states", complete: false, scope: command.filters.join(" "), rank: 0, hint: true };
    if (address && command.family !== undefined) return { format: command.json ? "json" : "text", complete: false, scope: command.filters.join(" "), rank: 1 };
    // a brief list says less than `ip addr`: neither the MTU nor what an interface is a port of
    const rank = command.brief ? 0 : (command.details ? 8 : 0) + (command.json ? 4 : 0) + (address ? 1 : 3);
    const format = command.json ? "json" : command.brief ? "brief" : "text";
    return { format, complete: command.filters.length === 0, scope: command.filters.join(" "), rank: 2 + rank };
  },
  schema: Links,
  parse({ text, view }) {
    const unparsed = new UnparsedLines();
    const links: Links = { rows: [], vxlans: [], bridges: [], statistics: [] };
    if (view.format === "json") for (const element of jsonElements(withoutPrompts(text), unparsed)) fromJson(links, element, unparsed);
    else if (view.format === "brief") readBrief(links, text, unparsed);
    else if (view.format === "states") readStates(links, text);
    else if (view.format === "networkctl") readNetworkctl(links, text);
    else if (view.format === "sysfs") readStateFiles(links, text, view.scope);
    else if (view.format === "metrics") readStateFiles(links, metricsAs(text, stateLine), "");
    else if (view.format === "proc") readProcNetDev(links, text, unparsed);
    else if (view.format === "ifconfig") fromIfconfig(links, text, unparsed);
    else if (view.format.startsWith("talos")) fromTalos(links, text, view, unparsed);
    else if (view.format === "netstat") fromNetstat(links, text, unparsed);
    else {
      const asked = /^(?:dev )?(?!up$)([^\s/]{1,15})$/.exec(view.scope)?.[1];
      const shownLinks = readLinkText(text, unparsed, asked);
      for (const row of shownLinks.links) fromText(links, row, unparsed);
      for (const { interface: name, details } of shownLinks.headless) fromDetails(links, name, details);
    }
    // only its ports were asked for, and a brief list does not repeat whose they are
    const master = /(?:^| )master ([^\s/]{1,15})(?: |$)/.exec(view.scope)?.[1];
    if (master !== undefined) for (const row of links.rows) row.master ??= master;
    return unparsed.with({ ...links, statistics: withinPaste(links.statistics) });
  },
  merge(parts) {
    return {
      rows: withSingles(
        mergeList(parts, (value) => value.rows),
        parts,
      ),
      vxlans: mergeList(parts, (value) => value.vxlans),
      bridges: mergeList(parts, (value) => value.bridges),
      statistics: withDeltas(parts),
    };
  },
});

/** Devices that have no line of their own: such a one is down only if it was switched off. */
const LINELESS = /^(?:vxlan|geneve|wireguard)$/;

/**
 * Resources of Talos. In a table (`ether vxlan 62:1c:3e:d5:72:11 unknown true`, the second word being absent from real cards) a bridge without ports, or a card without a
 * cable, looks like one that is switched off: those are left out.
 */
function fromTalos(links: Links, text: string, view: View, unparsed: UnparsedLines): void {
  const resources = talosResources(text, view, "LinkStatus", unparsed);
  const names = new Map(resources.map(({ id, spec }) => [spec?.get("index"), id]));
  for (const { line, id, words, spec } of resources) {
    const [state = "", carrier] = spec === undefined ? words.slice(-2) : [spec.get("operationalState") ?? "", spec.get("linkState")];
    const kind = (spec === undefined ? words.find((word) => LINELESS.test(word)) : spec.get("kind")) || undefined;
    const flags = (spec?.get("flags") ?? "").split(",").filter((flag) => flag !== "");
    if (!/^(?:true|false)$/.test(carrier ?? "") || (spec === undefined && state === "down" && kind === undefined)) continue;
    const mac = readMac(spec?.get("hardwareAddr") ?? words.find((word) => /^(?:[0-9a-f]{2}:){5}[0-9a-f]{2}$/.test(word)) ?? "");
    const master = spec?.get("masterIndex") === undefined ? undefined : names.get(spec.get("masterIndex"));
    const values = present({ index: asInteger(spec?.get("index")), mtu: asInteger(spec?.get("mtu")), kind, mac, master });
    const up = spec === undefined ? state !== "down" : flags.includes("UP");
    links.rows.push({ line, interface: id, flags, up, carrier: carrier === "true", ...values, state: state.toUpperCase() });
  }
}

/**
 * Listings complement each other list by list (`-d` has the kinds, `-s` the counters): of each list the best listing that has one, and from
 * listings of single interfaces what is missing if that is not complete.
 */
function mergeList<R extends { interface: string }>(parts: readonly Part<Links>[], list: (value: Links) => R[], sample = 1): R[] {
  const first = parts.filter((part) => part.sample === sample && list(part.value).length > 0).sort((a, b) => rankOf(b) - rankOf(a));
  const best = first.find((part) => part.view.scope === "");
  const rows = best === undefined ? [] : [...list(best.value)];
  if (best?.complete) return rows;
  const seen = new Set(rows.map((row) => row.interface));
  for (const part of first) {
    const added = list(part.value).filter((row) => !seen.has(row.interface));
    rows.push(...added);
    for (const row of added) seen.add(row.interface);
  }
  return rows;
}

/** The rows with what better listings of single interfaces tell: `ip link show flannel.1` has the hardware address that `ip -br addr` leaves out. */
function withSingles(rows: readonly (Link & Row)[], parts: readonly Part<Links>[]): Link[] {
  const first = parts.filter((part) => part.sample === 1 && part.value.rows.length > 0);
  const whole = Math.max(...first.filter(({ view }) => view.scope === "").map(({ view }) => view.rank));
  const singles = first.filter(({ view }) => view.scope !== "" && view.rank > whole).sort((a, b) => a.view.rank - b.view.rank);
  const told = new Map(singles.flatMap((part) => part.value.rows.map((row: Link & Row) => [row.interface, row] as const)));
  return rows.map((row) => {
    const one = told.get(row.interface);
    if (one === undefined) return row;
    // somebody switched it in between: the later listing is right
    return one.up !== row.up && (one.output ?? 0) < (row.output ?? 0) ? { ...one, ...row } : { ...row, ...one };
  });
}

const COUNTERS = ["rxBytes", "rxPackets", "rxErrors", "rxDropped", "rxOverrun", "rxMissed", "txBytes", "txPackets", "txErrors", "txDropped"] as const;

/** One row for each interface; of one that a paste shows twice, what it has more the second time (`cat /proc/net/dev; sleep 5; cat /proc/net/dev`). */
function withinPaste(rows: readonly Statistics[]): Statistics[] {
  const last = new Map(rows.map((row) => [row.interface, row]));
  const first = new Map(rows.toReversed().map((row) => [row.interface, row]));
  return rows
    .filter((row) => first.get(row.interface) === row)
    .map((row) => {
      const later = last.get(row.interface) as Statistics;
      // a counter that went down: two nodes have an interface of this name
      const same = COUNTERS.every((counter) => (later[counter] ?? 0) >= (row[counter] ?? 0));
      return later === row || !same ? row : { ...row, ...deltas(COUNTERS, row, later) };
    });
}

function withDeltas(parts: readonly Part<Links>[]): Statistics[] {
  const statisticsOf = (value: Links): Statistics[] => value.statistics;
  const grown = new Map<string, Statistics>();
  // each tool has its own idea of what "dropped" is: its numbers are compared with its own alone
  const formats = new Set(parts.toSorted((a, b) => rankOf(b) - rankOf(a)).map((part) => part.view.format));
  for (const format of formats) {
    const ofFormat = parts.filter((part) => part.view.format === format);
    const second = new Map(mergeList(ofFormat, statisticsOf, 2).map((row) => [row.interface, row]));
    for (const row of mergeList(ofFormat, statisticsOf)) {
      const later = second.get(row.interface);
      if (later === undefined || grown.has(row.interface)) continue;
      grown.set(row.interface, { ...row, ...deltas(COUNTERS, row, later) });
    }
  }
  return mergeList(parts, statisticsOf).map((row) => grown.get(row.interface) ?? row);
}

const shown = (flags: readonly string[]) => ({ up: flags.includes("UP"), carrier: flags.includes("LOWER_UP") });

/** Bridge options are numbers or, in newer versions, booleans. */
const asFlag = (value: unknown): boolean | undefined => (typeof value === "boolean" ? value : typeof value === "number" ? value !== 0 : undefined);

function fromJson(links: Links, { value, line, text }: JsonElement, unparsed: UnparsedLines): void {
  const name = asString(value["ifname"]);
  if (name === undefined || !Array.isArray(value["flags"])) {
    // Old versions print an empty object for what a filter leaves out.
    if (Object.keys(value).length > 0) unparsed.add(line, text);
    return;
  }
  const base = { line, text, interface: name };
  const info = asObject(value["linkinfo"]);
  const data = asObject(info["info_data"]);
  const kind = asString(info["info_kind"]);
  const lower = asInteger(value["link_index"]);
  const namespace = value["link_netnsid"] ?? value["link_netns"];
  const flags = asStrings(value["flags"]);
  links.rows.push(
    present({
      ...base,
      index: asInteger(value["ifindex"]),
      peer: asString(value["link"]) ?? (lower === undefined || lower === 0 ? undefined : `if${lower}`),
      flags,
      ...shown(flags),
      mtu: asInteger(value["mtu"]),
      qdisc: asString(value["qdisc"]),
      master: asString(value["master"]),
      state: asString(value["operstate"]),
      mac: readMac(asString(value["address"]) ?? ""),
      kind,
      memberKind: asString(info["info_slave_kind"]),
      peerNamespace: typeof namespace === "number" ? String(namespace) : asString(namespace),
      alias: asString(value["ifalias"]),
      hairpin: asFlag(asObject(info["info_slave_data"])["hairpin"]),
    }),
  );
  if (kind === "vxlan") {
    links.vxlans.push(
      present({
        ...base,
        id: asInteger(data["id"]) ?? 0,
        local: asString(data["local"]) ?? asString(data["local6"]),
        remote: asString(data["remote"]) ?? asString(data["remote6"]) ?? asString(data["group"]) ?? asString(data["group6"]),
        underlay: asString(data["link"]),
        port: asInteger(data["port"]),
        learning: asFlag(data["learning"]),
        udpChecksum: asFlag(data["udp_csum"]),
        external: data["external"] === true || data["collect_metadata"] === true,
      }),
    );
  }
  if (kind === "bridge") {
    const options = {
      vlanFiltering: asFlag(data["vlan_filtering"]),
      stp: asFlag(data["stp_state"]),
      nfCallIptables: asFlag(data["nf_call_iptables"]),
      nfCallIp6tables: asFlag(data["nf_call_ip6tables"]),
    };
    links.bridges.push(present({ ...base, ...options }));
  }
  const stats = asObject(value["stats64"] ?? value["stats"]);
  const [rx, tx] = [asObject(stats["rx"]), asObject(stats["tx"])];
  const numbers = statistics({
    rxBytes: asInteger(rx["bytes"]),
    rxPackets: asInteger(rx["packets"]),
    rxErrors: asInteger(rx["errors"]),
    rxDropped: asInteger(rx["dropped"]),
    rxOverrun: asInteger(rx["over_errors"]),
    rxMissed: asInteger(rx["missed_errors"]),
    txBytes: asInteger(tx["bytes"]),
    txPackets: asInteger(tx["packets"]),
    txErrors: asInteger(tx["errors"]),
    txDropped: asInteger(tx["dropped"]),
  });
  if (numbers !== undefined) links.statistics.push({ ...base, ...numbers });
}

type Numbers = { [K in (typeof COUNTERS)[number]]: number | undefined };

/** The counters, if those that every format has are there. */
function statistics(numbers: Numbers): Omit<Statistics, "line" | "interface"> | undefined {
  const { rxBytes, rxPackets, rxErrors, rxDropped, txBytes, txPackets, txErrors, txDropped } = numbers;
  if ((rxBytes === undefined) !== (txBytes === undefined) || rxPackets === undefined || rxErrors === undefined || rxDropped === undefined) return undefined;
  if (txPackets === undefined || txErrors === undefined || txDropped === undefined) return undefined;
  const { rxOverrun, rxMissed } = numbers;
  return { ...present({ rxBytes }), rxPackets, rxErrors, rxDropped, ...present({ rxOverrun, rxMissed, txBytes }), txPackets, txErrors, txDropped };
}

/** What the `-d` lines of an interface tell: VXLANs and bridges go to their lists. */
function fromDetails(links: Links, name: string, details: LinkText["details"]): Pick<Link, "kind" | "memberKind" | "hairpin"> {
  let hairpin: boolean | undefined;
  let kind: string | undefined;
  let memberKind: string | undefined;
  for (const { line, words } of details) {
    const first = words[0] as string;
    const after = (...names: readonly string[]) => words[words.findIndex((word, i) => i > 0 && names.includes(word)) + 1 || words.length];
    const onOff = (option: string) => (after(option) === "on" || after(option) === "1" ? true : after(option) === undefined ? undefined : false);
    if (first.endsWith("_slave")) {
      memberKind = first.slice(0, -"_slave".length);
      if (memberKind === "bridge") hairpin = onOff("hairpin");
      continue;
    }
    kind = first;
    if (kind === "vxlan") {
      const udpChecksum = words.includes("udpcsum") ? true : words.includes("noudpcsum") ? false : undefined;
      const addresses = { local: after("local"), remote: after("remote", "group"), underlay: after("dev") };
      const port = asInteger(after("dstport"));
      const learning = !words.includes("nolearning");
      const external = words.includes("external");
      links.vxlans.push(present({ line, interface: name, id: asInteger(after("id")) ?? 0, ...addresses, port, learning, udpChecksum, external }));
    } else if (kind === "bridge") {
      const options = { nfCallIptables: onOff("nf_call_iptables"), nfCallIp6tables: onOff("nf_call_ip6tables") };
      links.bridges.push(present({ line, interface: name, vlanFiltering: onOff("vlan_filtering"), stp: onOff("stp_state"), ...options }));
    }
  }
  return present({ kind, memberKind, hairpin });
}

function fromText(links: Links, row: LinkText, unparsed: UnparsedLines): void {
  const { details, rx, tx, ...shownOnLine } = row;
  const name = row.interface;
  links.rows.push(present({ ...shownOnLine, ...shown(row.flags), ...fromDetails(links, name, details) }));
  const numbers = statistics({
    rxBytes: rx?.values["bytes"],
    rxPackets: rx?.values["packets"],
    rxErrors: rx?.values["errors"],
    rxDropped: rx?.values["dropped"],
    rxOverrun: rx?.values["overrun"],
    rxMissed: rx?.values["missed"],
    txBytes: tx?.values["bytes"],
    txPackets: tx?.values["packets"],
    txErrors: tx?.values["errors"],
    txDropped: tx?.values["dropped"],
  });
  const line = (rx ?? tx)?.line;
  if (numbers !== undefined && rx !== undefined) links.statistics.push({ line: rx.line, interface: name, ...numbers });
  else if (line !== undefined) unparsed.add(line, `counters of ${name} are cut off`);
}

const STATES = new Set(["UNKNOWN", "NOTPRESENT", "DOWN", "LOWERLAYERDOWN", "TESTING", "DORMANT", "UP"]);

/** `eth0@if2         UP             fa:24:fc:e6:d1:45 <BROADCAST,MULTICAST,UP,LOWER_UP>` */
function readBrief(links: Links, text: string, unparsed: UnparsedLines): void {
  for (const { line, text: content } of lines(text)) {
    const words = content.trim().split(/\s+/);
    const [name, state, address, flagsBehind] = words as [string, string?, string?, string?];
    const flagsText =
      words.length === 3
        ? address
        : words.length === 4 && (/^[0-9a-f:.]{2,64}$/.test(address ?? "") || readMac(address ?? "") !== undefined)
          ? flagsBehind
          : undefined;
    if (state !== undefined && STATES.has(state) && flagsText !== undefined && /^<[A-Z0-9_,-]{0,400}>$/.test(flagsText)) {
      const flags = flagsText.slice(1, -1).split(",").filter(Boolean);
      links.rows.push(present({ line, ...split(name), flags, ...shown(flags), state, mac: words.length === 4 ? readMac(address ?? "") : undefined }));
    } else if (!isPrompt(content)) unparsed.add(line, content);
  }
}

/**
 * `cni0             UP             10.244.1.1/24`: of the flags only the state tells, and only of what works: DOWN is what is switched off, and what has no carrier. (A
 * tunnel always has one.) The addresses are another fact's.
 */
function readStates(links: Links, text: string): void {
  for (const { line, text: content } of lines(text)) {
    const [name, state, address] = content.trim().split(/\s+/, 3) as [string, string?, string?];
    if (address !== undefined && !/^[0-9a-f.:]{2,39}(?:\/\d{1,3})?$/.test(address)) continue;
    if (state === "DOWN" && TUNNEL.test(name)) links.rows.push(shownBy(line, name, false, state));
    else if (state === "UP" || state === "UNKNOWN") links.rows.push({ line, ...split(name), flags: [], up: true, carrier: true, state });
  }
}

/** Tunnels that CNIs make: their state is UNKNOWN as long as they are switched on. */
const TUNNEL = /^(?:flannel(?:-v6)?\.\d{1,8}|vxlan(?:-v6)?\.calico|cilium_(?:vxlan|geneve))$/;
const shownBy = (line: number, name: string, up: boolean, state: string): Link => ({ line, interface: name, flags: [], up, carrier: up, state });

/** The files of /sys with the flag UP and the state of interfaces, if cat, grep, head or tail reads nothing else. */
function stateFiles(argv: readonly string[]): string[] | undefined {
  const words = argv.slice(1).filter((word) => !word.startsWith("-") && !/^(?:[.^$]|'')?$/.test(word));
  return /^(?:cat|e?grep|head|tail)$/.test(argv[0] ?? "") && words.length > 0 && words.every((word) => SYSFS.test(word)) ? words : undefined;
}

/**
 * `/sys/class/net/flannel.1/flags:0x1002`: without bit 0 it is switched off. `…/operstate:up` (or `unknown`, of tunnels) tells what works; `down` may be a want of
 * carrier alone, and of what is switched on the flags do not tell that.
 */
function readStateFiles(links: Links, text: string, scope: string): void {
  const only = SYSFS.exec(scope);
  const seen = new Set<string>();
  const add = (row: Link): void => {
    if (!seen.has(row.interface)) links.rows.push(row);
    seen.add(row.interface);
  };
  for (const { line, text: content } of lines(text)) {
    const [, name, file, value = content.trim()] = SYSFS_LINE.exec(content.trim()) ?? only ?? [];
    if (name === undefined || name.includes("*")) continue;
    if (file === "operstate" && value === "down" && TUNNEL.test(name)) add(shownBy(line, name, false, "DOWN"));
    else if (file === "operstate" && (value === "up" || value === "unknown")) add(shownBy(line, name, true, value.toUpperCase()));
    else if (file === "flags" && /^0x[0-9a-f]{1,8}$/.test(value) && Number(value) % 2 === 0) add(shownBy(line, name, false, "DOWN"));
  }
}

/** `node_network_flags{device="eth0"} 4099` and `node_network_info{adminstate="up",device="eth0",operstate="up",…} 1` of node_exporter, as grep of the kernel's files says it. */
function stateLine({ name, labels, value }: Metric): string | undefined {
  const { device, adminstate, operstate } = labels;
  if (device === undefined || (name !== "network_flags" && name !== "network_info")) return undefined;
  const flags = name === "network_flags" ? value : adminstate === "down" ? 0 : undefined;
  return `/sys/class/net/${device}/${flags === undefined ? `operstate:${operstate ?? ""}` : `flags:0x${flags.toString(16)}`}`;
}

const isList = (argv: readonly string[]): boolean => argv.slice(1).every((word) => word.startsWith("-") || word === "list");

/** `  4 flannel.1 vxlan off unmanaged`: "off" is what is switched off, "no-carrier" what lacks a carrier; anything else works. */
function readNetworkctl(links: Links, text: string): void {
  for (const { line, text: content } of lines(text)) {
    const [, name, operational = ""] = NETWORKCTL.exec(content.trim().replace(/\s+/g, " ")) ?? [];
    if (name === undefined) continue;
    if (operational === "off") links.rows.push(shownBy(line, name, false, "DOWN"));
    else if (/^(?:carrier|degraded|enslaved|routable|degraded-carrier)$/.test(operational)) links.rows.push(shownBy(line, name, true, "UP"));
  }
}

function fromIfconfig(links: Links, text: string, unparsed: UnparsedLines): void {
  for (const block of readIfconfig(text, unparsed)) {
    if (block.label !== undefined) continue;
    const { flags, counters, mtu, mac } = block;
    const base = { line: block.line, interface: block.interface };
    // the line that tells the flags tells the MTU too: without it nobody knows whether the interface is up
    if (mtu === undefined) unparsed.add(block.line, `flags of ${block.interface} are cut out`);
    else links.rows.push(present({ ...base, flags, up: flags.includes("UP"), carrier: flags.includes("RUNNING"), mtu, mac }));
    const numbers = statistics({
      rxBytes: counters["rx bytes"],
      rxPackets: counters["rx packets"],
      rxErrors: counters["rx errors"],
      rxDropped: counters["rx dropped"],
      rxOverrun: counters["rx overruns"],
      rxMissed: undefined,
      txBytes: counters["tx bytes"],
      txPackets: counters["tx packets"],
      txErrors: counters["tx errors"],
      txDropped: counters["tx dropped"],
    });
    if (numbers !== undefined) links.statistics.push({ ...base, line: block.countersLine ?? block.line, ...numbers });
  }
}

/** `netstat -i`, `netstat -in`; with -e it prints as ifconfig does, with -s or -r something else. */
const isInterfaceTable = (argv: readonly string[]): boolean =>
  (hasOption(argv, "--interfaces") || hasLetter(argv, "i")) && argv.slice(1).every((word) => /^-(?:[inaW]{1,6}|-interfaces|-numeric|-all|-wide)$/.test(word));

const NETSTAT_TITLE = /^(?:Kernel Interface table|Iface\s+MTU\s+(?:Met\s+)?RX-OK\s.{1,80})$/;
/** A label of an address (`eth0:vip`), which has no counters of its own. */
const NETSTAT_LABEL = /^\S{1,40}:\S{1,40}\s+\d{1,6}\s.{0,20}no statistics available/;
const NETSTAT_ROW = /^(\S{1,40})\s+(\d{1,6})\s+((?:\d{1,20}\s+){8,9})([A-Za-z]{1,12})$/;

/**
 * `eth0  1500  12 0 1 0  9 0 0 0 BMRU`: the MTU, packets without bytes (received, errors, dropped, overrun, and the same of what was sent), and the flags
 * (U up, R running). `ifconfig -s` prints the same. Old versions print a metric behind the MTU, and cut names at 8 characters: such a name is left out, as it may not be whole.
 */
function fromNetstat(links: Links, text: string, unparsed: UnparsedLines): void {
  const rows: Link[] = [];
  const counted = new Map<string, Statistics>();
  for (const { line, text: content } of lines(text)) {
    const [, name, mtu, counters, flags] = NETSTAT_ROW.exec(content.trim()) ?? [];
    if (name !== undefined && flags !== undefined) {
      rows.push({ line, interface: name, flags: [], mtu: Number(mtu), up: flags.includes("U"), carrier: flags.includes("R") });
      const [rxPackets, rxErrors, rxDropped, rxOverrun, txPackets, txErrors, txDropped] = (counters ?? "").trim().split(/\s+/).map(Number).slice(-8);
      const numbers = statistics({
        rxBytes: undefined,
        rxPackets,
        rxErrors,
        rxDropped,
        rxOverrun,
        rxMissed: undefined,
        txBytes: undefined,
        txPackets,
        txErrors,
        txDropped,
      });
      if (numbers !== undefined && Object.values(numbers).every(Number.isSafeInteger)) counted.set(name, { line, interface: name, ...numbers });
    } else if (content.trim() !== "" && !NETSTAT_TITLE.test(content.trim()) && !NETSTAT_LABEL.test(content) && !isPrompt(content)) unparsed.add(line, content);
  }
  const cut = rows.every((row) => row.interface.length <= 8);
  for (const row of rows) {
    if (cut && row.interface.length >= 8) continue;
    links.rows.push(row);
    const numbers = counted.get(row.interface);
    if (numbers !== undefined) links.statistics.push(numbers);
  }
}

/**
 * `  eth0: 1500 12    0    1    2     0          0         0     900 9    0    0    0     0       0          0`: bytes packets errs drop fifo frame compressed
 * multicast, then bytes packets errs drop fifo colls carrier compressed. Old kernels put no blank behind the colon.
 */
function readProcNetDev(links: Links, text: string, unparsed: UnparsedLines): void {
  for (const { line, text: content } of lines(text)) {
    if (/^Inter-\||^ ?face \||^\s*$/.test(content)) continue;
    const row = /^\s{0,16}(\S{1,15}):\s*((?:\d{1,20}\s+){15}\d{1,20})\s*$/.exec(content);
    const numbers = row?.[2]?.split(/\s+/).map(Number) ?? [];
    if (row === null || numbers.length !== 16 || !numbers.every(Number.isSafeInteger)) {
      if (!isPrompt(content)) unparsed.add(line, content);
      continue;
    }
    const [rxBytes, rxPackets, rxErrors, rxDropped, rxOverrun, , , , txBytes, txPackets, txErrors, txDropped] = numbers;
    const counters = statistics({ rxBytes, rxPackets, rxErrors, rxDropped, rxOverrun, rxMissed: undefined, txBytes, txPackets, txErrors, txDropped });
    if (counters !== undefined) links.statistics.push({ line, interface: row[1] as string, ...counters });
  }
}
