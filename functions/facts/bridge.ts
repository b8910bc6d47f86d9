import { z } from "zod";
import { isPromptLine, operands } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { ipCommand } from "./ip-command.ts";
import { asString, jsonElements } from "./json.ts";
import { combine, ranked } from "./parts.ts";
import { present } from "./present.ts";

/**
 * Linux bridges and their ports.
 *
 *     3: veth05420679@cni0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 master cni0 state forwarding priority 32 cost 2
 *     cni0    8000.0a5864603601  no  veth05420679
 *     veth05420679  veth1e6a7f31                              (ls /sys/class/net/cni0/brif)
 */
const Port = z.object({
  line: z.int(),
  bridge: z.string(),
  interface: z.string(),
  /** STP state of the port: "disabled", "listening", "learning", "forwarding" or "blocking"; brctl does not tell. */
  state: z.string().optional(),
  /** The flags are told by `bridge -d` only. */
  hairpin: z.boolean().optional(),
  isolated: z.boolean().optional(),
  learning: z.boolean().optional(),
});
const Bridge = z.object({
  line: z.int(),
  bridge: z.string(),
  /** Bridge id (priority.mac without colons) and STP: brctl only. `bridge link` knows of a bridge only through its ports. */
  id: z.string().optional(),
  stp: z.boolean().optional(),
});
/** The ports of all bridges were listed: an interface that is not in `ports` is no port. */
const Listing = z.object({
  line: z.int(),
  /** Of this bridge alone. */
  bridge: z.string().optional(),
});
const Bridges = z.object({ ports: z.array(Port), bridges: z.array(Bridge), listings: z.array(Listing) });
type Port = z.infer<typeof Port>;
type Bridge = z.infer<typeof Bridge>;

const STATES = ["disabled", "listening", "learning", "forwarding", "blocking"];
// "3: veth0@eth0: <…> …"; before iproute2 4.20 "3: veth0 state UP @eth0: <…> …"
const LINK = /^\d{1,9}: ([^\s:@]{1,31})(?: state [A-Z]{1,16})?(?: ?@[^\s:]{1,31}| )?: <[A-Z0-9_,-]{0,300}>((?: .*)?)$/;
const FLAGS = ["hairpin", "guard", "root_block", "fastleave", "learning", "flood", "mcast_flood", "bcast_flood", "mcast_to_unicast", "neigh_suppress"];
FLAGS.push("neigh_vlan_suppress", "vlan_tunnel", "isolated", "locked", "mab", "learning_sync");
const NUMBERS = ["mtu", "priority", "cost", "mcast_router", "mcast_n_groups", "mcast_max_groups", "group_fwd_mask", "backup_nhid"];
const NAMES = ["master", "state", "backup_port", "hwmode", "group_fwd_mask_str"];
const ATTRIBUTES = new Map([
  ...FLAGS.map((name) => [name, /^(?:on|off)$/] as const),
  ...NUMBERS.map((name) => [name, /^(?:0x)?[0-9a-f]{1,16}$/] as const),
  ...NAMES.map((name) => [name, /^[!-~]{1,64}$/] as const),
]);

const BRCTL_HEADER = /^bridge name\s+bridge id\s+STP enabled\s+interfaces$/;
const BRCTL = /^([^\s:]{1,15})\s+([0-9a-f]{4}\.[0-9a-fxX*]{12}|<redacted>|\[REDACTED\])\s+(yes|no)(?:\s+([^\s:]{1,31}))?$/;
const BRCTL_MORE = /^([A-Za-z0-9_][^\s:]{0,30})$/;

/** The kernel's own list of the ports of one bridge. */
const BRIF = /^\/sys\/(?:class|devices\/virtual)\/net\/([\w.-]{1,15})\/brif\/?$/;
/** `ip link show master cni0`: "5: veth05420679@if2: <…", with `-br` "veth05420679@if2  UP  …". */
const OF_MASTER = /^(?:\d{1,9}: ([^\s:@]{1,31})(?:@[^\s:]{1,31})?: <|([^\s:@]{1,31})(?:@[^\s:]{1,31})?\s{1,20}[A-Z]{2,20}\s)/;
const BRIF_LINK = /\s([\w.-]{1,15}) -> \S{1,300}$/;

export const bridge = defineFact({
  id: "bridge",
  title: "Linux bridges and their ports",
  commands: [{ argv: ["bridge", "-d", "-j", "link", "show"] }],
  recognize(argv): View | undefined {
    if (argv[0] === "brctl") {
      if (argv[1] !== "show") return undefined;
      return { format: "brctl", complete: argv.length === 2, scope: argv.length === 3 ? (argv[2] as string) : "brctl", rank: 1 };
    }
    if (argv[0] === "ls") {
      const folders = operands(argv);
      const name = BRIF.exec(folders[0] ?? "")?.[1];
      return name === undefined || folders.length > 1 ? undefined : { format: "brif", complete: false, scope: name, rank: 0 };
    }
    const ip = ipCommand(argv);
    if (ip?.object === "link" && !ip.json && ip.filters.length === 2 && ip.filters[0] === "master")
      return { format: "master", complete: false, scope: ip.filters[1] as string, rank: 0 };
    // -n looks into another network namespace
    if (argv[0] !== "bridge" || argv.some((word) => /^--?n(?:etns)?$/.test(word))) return undefined;
    const words = operands(argv);
    if (!/^l(?:i|in|ink)?$/.test(words[0] ?? "") || !/^(?:s|sh|sho|show|l|ls|li|lis|list)?$/.test(words[1] ?? "")) return undefined;
    const json = argv.some((word) => /^--?j(?:son)?$/.test(word));
    const details = argv.some((word) => /^--?d(?:etails)?$/.test(word));
    return { format: json ? "json" : "text", complete: words.length <= 2, scope: "", rank: (json ? 3 : 2) + (details ? 2 : 0) };
  },
  schema: Bridges,
  parse({ text, view, truncated, pipe = "" }) {
    const unparsed = new UnparsedLines();
    const of = view.complete || view.scope === "brctl" || view.scope === "" ? undefined : view.scope;
    const whole = (): z.infer<typeof Listing>[] =>
      (view.complete || (of !== undefined && pipe === "")) && truncated !== true && unparsed.count === 0 && text.trim() !== ""
        ? [{ line: 1, ...present({ bridge: of }) }]
        : [];
    if (view.format === "brif") return unparsed.with({ ...readBrif(text, view.scope, unparsed), listings: whole() });
    if (view.format === "master") return unparsed.with({ ...readMaster(text, view.scope, unparsed), listings: whole() });
    const ports: Port[] = view.format === "json" ? readJson(text, unparsed) : view.format === "text" ? readText(text, unparsed) : [];
    if (view.format === "brctl") return unparsed.with({ ...readBrctl(text, unparsed), listings: whole() });
    const bridges = ports.map((port) => Object.assign({ line: port.line, bridge: port.bridge }, "text" in port ? { text: port.text } : {}));
    return unparsed.with({ ports, bridges: combine<Bridge>(bridges, (row) => row.bridge), listings: whole() });
  },
  merge(parts) {
    const best = ranked(parts);
    return {
      ports: combine(
        best.flatMap((part) => part.value.ports),
        (row) => row.interface,
      ),
      bridges: combine(
        best.flatMap((part) => part.value.bridges),
        (row) => row.bridge,
      ),
      listings: best.flatMap((part) => part.value.listings),
    };
  },
});

/** The names in the folder, some in a line; with `-l` each in front of what it points at. */
function readBrif(text: string, name: string, unparsed: UnparsedLines): { ports: Port[]; bridges: Bridge[] } {
  const ports: Port[] = [];
  for (const { line, text: content } of lines(text)) {
    const found = content.startsWith("l") && content.includes(" -> ") ? [BRIF_LINK.exec(content)?.[1] ?? ""] : content.trim().split(/\s{1,80}/);
    if (/^total \d/.test(content) || isPromptLine(content)) continue;
    if (found.every((word) => BRCTL_MORE.test(word))) ports.push(...found.map((word) => ({ line, bridge: name, interface: word })));
    else unparsed.add(line, content);
  }
  return { ports, bridges: ports.slice(0, 1).map(({ line }) => ({ line, bridge: name })) };
}

/** Links that were asked for by their bridge; what else is told of each stands on lines of its own, indented. */
function readMaster(text: string, name: string, unparsed: UnparsedLines): { ports: Port[]; bridges: Bridge[] } {
  const ports: Port[] = [];
  for (const { line, text: content } of lines(text)) {
    const found = OF_MASTER.exec(content);
    if (found !== null) ports.push({ line, bridge: name, interface: (found[1] ?? found[2]) as string });
    else if (!/^\s/.test(content) && !isPromptLine(content)) unparsed.add(line, content);
  }
  return { ports, bridges: ports.slice(0, 1).map(({ line }) => ({ line, bridge: name })) };
}

function readJson(text: string, unparsed: UnparsedLines): Port[] {
  const ports: Port[] = [];
  for (const { value, line, text: quote } of jsonElements(text, unparsed)) {
    const name = asString(value["ifname"]);
    const master = asString(value["master"]);
    if (name === undefined) {
      if (Object.keys(value).length > 0) unparsed.add(line, quote);
      continue;
    }
    if (master === undefined || master === name) continue; // a device with a bridge in its hardware, or a bridge itself: no port of one
    const row: Port = { line, bridge: master, interface: name };
    const state = asString(value["state"]);
    if (state !== undefined && STATES.includes(state)) row.state = state;
    for (const flag of ["hairpin", "isolated", "learning"] as const) if (typeof value[flag] === "boolean") row[flag] = value[flag];
    ports.push(Object.assign(row, { text: quote }));
  }
  return ports;
}

function readText(text: string, unparsed: UnparsedLines): Port[] {
  const ports: Port[] = [];
  let row: Port | undefined;
  for (const { line, text: raw } of lines(text)) {
    const content = raw.trimStart(); // pasted text may be indented as a whole
    const link = LINK.exec(content);
    if (link !== null) {
      const name = link[1] as string;
      const attributes = attributesOf(link[2] as string, name);
      const master = attributes?.get("master");
      row = { line, bridge: master ?? "", interface: name };
      if (attributes === undefined) unparsed.add(line, raw);
      else if (master !== undefined && master !== name) ports.push(withAttributes(row, attributes)); // without a master it is no port of a bridge
    } else if (raw !== content && row !== undefined) {
      const attributes = attributesOf(content, row.interface);
      if (attributes === undefined) unparsed.add(line, raw);
      else withAttributes(row, attributes);
    } else if (!isPromptLine(content)) unparsed.add(line, raw);
  }
  return ports;
}

/**
 * "mtu 1500 master cni0 state forwarding …": names and values by turns, all of them known, or nothing. `-o` joins lines with a backslash. `-d` of iproute2 5.0
 * and about ends with the name of the interface, and says of a bridge that it is its own master.
 */
function attributesOf(text: string, name: string): Map<string, string> | undefined {
  const words = text.split(/[\s\\]+/).filter((word) => word !== "");
  if (words.length % 2 === 1 && words.at(-1) === name) words.pop();
  const attributes = new Map<string, string>();
  for (let i = 0; i < words.length; i += 2) {
    const [name, value] = [words[i] as string, words[i + 1]];
    if (value === undefined || ATTRIBUTES.get(name)?.test(value) !== true) return undefined;
    attributes.set(name, value);
  }
  return attributes;
}

function withAttributes(row: Port, attributes: ReadonlyMap<string, string>): Port {
  const state = attributes.get("state");
  if (state !== undefined && STATES.includes(state)) row.state = state;
  for (const flag of ["hairpin", "isolated", "learning"] as const) {
    const value = attributes.get(flag);
    if (value !== undefined) row[flag] = value === "on";
  }
  return row;
}

function readBrctl(text: string, unparsed: UnparsedLines): { ports: Port[]; bridges: Bridge[] } {
  const ports: Port[] = [];
  const bridges: Bridge[] = [];
  let current: string | undefined;
  for (const { line, text: raw } of lines(text)) {
    const content = raw.trimStart();
    const row = BRCTL.exec(content);
    const more = row === null && current !== undefined ? BRCTL_MORE.exec(content) : null;
    if (row !== null) {
      const [, name, id, stp, first] = row as unknown as [string, string, string, string, string | undefined];
      current = name;
      bridges.push({ line, bridge: name, id, stp: stp === "yes" });
      if (first !== undefined) ports.push({ line, bridge: name, interface: first });
    } else if (more !== null && current !== undefined) ports.push({ line, bridge: current, interface: more[1] as string });
    else if (!BRCTL_HEADER.test(content) && !isPromptLine(content)) unparsed.add(line, raw);
  }
  return { ports, bridges };
}
