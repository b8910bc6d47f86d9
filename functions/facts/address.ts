import { z } from "zod";
import { hasOption } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { readIfconfig } from "./ifconfig.ts";
import type { Family } from "./ip-address.ts";
import { familyScope, filterValue, ipCommand, mergeFamilies, wholeFamilies } from "./ip-command.ts";
import { type AddressText, readLinkText, split } from "./ip-link-text.ts";
import { fromHexIpv6 } from "./ipv6.ts";
import { asInteger, asString, type JsonElement, jsonElements } from "./json.ts";
import { readPrefix } from "./mask.ts";
import { type NmcliField, nmcliDevices, nmcliFields } from "./nmcli.ts";
import { isPrompt, withoutPrompts } from "./paste.ts";
import { takesParts } from "./pipe.ts";
import { present } from "./present.ts";
import { procNet } from "./proc-net.ts";
import { type TalosResource, talosResources, talosView } from "./talos.ts";

/**
 * IP addresses of the interfaces.
 *
 *     2: br0    inet 10.9.1.1/24 brd 10.9.1.255 scope global br0:1
 *     2: br0    inet6 fe80::e48d:bfff:fe71:d4c0/64 scope link tentative
 */
const Address = z.object({
  line: z.int(),
  interface: z.string(),
  family: z.enum(["ipv4", "ipv6"]),
  /** Without prefix length. */
  address: z.string(),
  /** With a peer it is the peer's. */
  prefixLength: z.int().optional(),
  /** "global", "link", "host", "site", or a number. */
  scope: z.string().optional(),
  /** The other end of a point-to-point address. */
  peer: z.string().optional(),
  broadcast: z.string().optional(),
  /** IPv4 only. */
  label: z.string().optional(),
  /** Who set it, where `ip` tells: "kernel_ll", "kernel_ra", … */
  protocol: z.string().optional(),
  /** "dynamic", "secondary", "deprecated", "tentative", "dadfailed", "noprefixroute", … */
  flags: z.array(z.string()),
});
const Addresses = z.object({
  rows: z.array(Address),
  /** Families of which all addresses were listed, alone (`ip -4 addr`) or as JSON: of `ip addr` as text people keep the interfaces they like. Absent where there is none. */
  listed: z.array(z.enum(["ipv4", "ipv6"])).optional(),
});
export type Address = z.infer<typeof Address>;

const FLAGS = new Set(
  "secondary temporary nodad optimistic dadfailed home deprecated tentative permanent mngtmpaddr noprefixroute autojoin stable-privacy dynamic".split(" "),
);
/** What tools print as a number, because they are older than the flag, or BusyBox: `flags 02`. */
const FLAG_BITS: readonly (readonly [number, string])[] = [
  [0x02, "nodad"],
  [0x04, "optimistic"],
  [0x08, "dadfailed"],
  [0x10, "home"],
  [0x100, "mngtmpaddr"],
  [0x200, "noprefixroute"],
  [0x400, "autojoin"],
  [0x800, "stable-privacy"],
];
const LINK_NAME = /^[^\s/]{1,127}$/;
const SCOPE = /^(?:global|site|link|host|nowhere|\d{1,3})$/;

export const address = defineFact({
  id: "address",
  title: "IP addresses of the interfaces",
  commands: [{ argv: ["ip", "-j", "addr", "show"] }],
  recognize(argv, _, pipe = ""): View | undefined {
    if (argv[0] === "ifconfig") {
      const others = argv.slice(1).filter((word) => !/^-[av]+$/.test(word));
      if (others.length > 1 || hasOption(others, "-s")) return undefined;
      // ifconfig shows one IPv4 address per label: others may exist.
      return { format: "ifconfig", complete: false, scope: others.length === 0 ? "" : ` ${others[0]}`, rank: 1 };
    }
    if (argv[0] === "talosctl") return talosView(argv, /^address(?:es|status(?:es)?(?:\.net\.talos\.dev)?)?$/i, 5);
    if (argv.length === 2 && argv[0] === "cat" && IF_INET6.test(argv[1] as string)) return { format: "proc", complete: true, scope: "ipv6", rank: 1 };
    const devices = nmcliDevices(argv);
    if (devices !== undefined) return { format: "nmcli", complete: false, scope: ` ${devices}`, rank: 0, hint: true };
    const command = ipCommand(argv);
    if (command?.object !== "address") return undefined;
    const format = command.json ? "json" : command.brief ? "brief" : "text";
    const rank = (command.json ? 4 : 2) + (command.brief ? 0 : 1);
    if (!command.json && takesParts(pipe)) return { format: "chosen", complete: false, scope: familyScope(command.family, command.filters), rank: 1 };
    return { format, complete: command.filters.length === 0, scope: familyScope(command.family, command.filters), rank };
  },
  schema: Addresses,
  parse({ text, argv, view }) {
    const unparsed = new UnparsedLines();
    const rows: Address[] = [];
    if (view.format === "json") fromJson(rows, text, unparsed);
    else if (view.format === "brief") readBrief(rows, text, unparsed);
    else if (view.format === "chosen") readChosen(rows, text, namedDevice(ipCommand(argv)?.filters ?? []), unparsed);
    else if (view.format === "proc") readProc(rows, text, unparsed);
    else if (view.format.startsWith("talos"))
      for (const resource of talosResources(text, view, "AddressStatus", unparsed)) rows.push(...talosAddress(resource));
    else if (view.format === "nmcli") for (const field of nmcliFields(text, argv, unparsed)) rows.push(...nmcliAddress(field));
    else if (view.format === "ifconfig") {
      for (const block of readIfconfig(text, unparsed)) {
        for (const shown of block.addresses) rows.push({ ...shown, interface: block.interface, ...present({ label: block.label }), flags: [] });
      }
    } else {
      // `ip addr show scope global` does not print the scope again.
      const scope = filterValue(ipCommand(argv)?.filters ?? [], "scope");
      for (const shown of readLinkText(text, unparsed).addresses) {
        if (shown.words[0] === "valid_lft") continue;
        const row = inet(shown);
        if (row === undefined) unparsed.add(shown.line, shown.words.join(" "));
        else rows.push(row.scope === undefined && scope !== undefined ? { ...row, scope } : row);
      }
    }
    return unparsed.with({ rows });
  },
  merge(parts) {
    const listed = (["ipv4", "ipv6"] as const).filter((family) =>
      parts.some(({ complete, view }) => complete && (view.scope === family || (view.scope === "" && view.format === "json"))),
    );
    return { ...mergeFamilies(parts), ...(listed.length === 0 ? {} : { listed }) };
  },
  // what NetworkManager knows of a device only adds to it
  whole: (parts) => wholeFamilies(parts.filter(({ view }) => view.format !== "nmcli")),
});

/** `eth0/10.5.0.2/24`: interface, address, length. */
function talosAddress({ line, id, spec }: TalosResource): Address[] {
  const slash = id.indexOf("/");
  const own = readPrefix(id.slice(slash + 1));
  if (slash < 1 || own === undefined) return [];
  const { family, address, length: prefixLength } = own;
  const flags = (spec?.get("flags") ?? "").split(",").filter((flag) => flag !== "" && flag !== "permanent");
  // a table does not tell
  const usual = /^fe[89ab]/.test(address) ? "link" : /^(?:127\.|::1$)/.test(address) ? "host" : "global";
  const scope = spec?.get("scope") || usual;
  return [{ line, interface: id.slice(0, slash), family, address, ...present({ prefixLength, scope, broadcast: spec?.get("broadcast") || undefined }), flags }];
}

/** `inet 192.0.2.1 peer 192.0.2.2/32 brd 192.0.2.255 scope global secondary eth0:1` */
function inet({ line, interface: name, words }: AddressText): Address | undefined {
  const family = words[0] === "inet" ? "ipv4" : "ipv6";
  const own = readPrefix(words[1] ?? "", family);
  if (own?.family !== family) return undefined;
  const row: Address = { line, interface: name, family: own.family, address: own.address, flags: [] };
  let prefixLength = own.length;
  for (let i = 2; i < words.length; i++) {
    const word = words[i] as string;
    const value = words[i + 1];
    if (FLAGS.has(word)) row.flags.push(word);
    else if (word === "flags" && /^[0-9a-f]{2,8}$/.test(value ?? "")) {
      const bits = Number.parseInt(words[++i] as string, 16);
      row.flags.push(...FLAG_BITS.filter(([bit]) => (bits & bit) !== 0).map(([, name]) => name));
    } else if (word === "scope" && value !== undefined && SCOPE.test(value)) row.scope = words[++i] as string;
    else if (word === "brd" && readPrefix(value ?? "", family) !== undefined) row.broadcast = words[++i] as string;
    else if (word === "peer" && readPrefix(value ?? "", family) !== undefined) {
      const peer = readPrefix(words[++i] as string, family);
      row.peer = peer?.address as string;
      prefixLength = peer?.length ?? prefixLength;
    } else if (word === "any" && readPrefix(value ?? "", family) !== undefined) i++;
    else if (word === "metric" && /^\d{1,10}$/.test(value ?? "")) i++;
    else if (word === "proto" && value !== undefined) row.protocol = words[++i] as string;
    // -o: what was on the next line
    else if ((word === "valid_lft" || word === "preferred_lft") && value !== undefined) i++;
    // The label ends the line.
    else if (i === words.length - 1 && own.family === "ipv4" && LINK_NAME.test(word)) row.label = word;
    else return undefined;
  }
  return { ...row, ...present({ prefixLength }) };
}

/** `eth0@if2         UP             10.9.0.1/24 metric 100 192.0.2.1 peer 192.0.2.2/32 fe80::1/64` */
function readBrief(rows: Address[], text: string, unparsed: UnparsedLines): void {
  for (const { line, text: content } of lines(text)) {
    const words = content.trim().split(/\s+/);
    const [name, state] = words as [string, string?];
    const found: Address[] = [];
    let strange = !LINK_NAME.test(name) || !/^(?:UNKNOWN|NOTPRESENT|DOWN|LOWERLAYERDOWN|TESTING|DORMANT|UP)$/.test(state ?? "");
    for (let i = 2; i < words.length && !strange; i++) {
      // where the text does not tell the family: IPv4 stands first
      const last: Family = found.at(-1)?.family ?? "ipv4";
      const own = readPrefix(words[i] as string, last);
      const peer = words[i + 1] === "peer" ? readPrefix(words[i + 2] ?? "", last) : undefined;
      if (own === undefined || (words[i + 1] === "peer" && peer === undefined)) {
        strange = true;
        break;
      }
      if (peer !== undefined) i += 2;
      if (words[i + 1] === "metric") i += 2;
      const { family, address: ownAddress } = own;
      const length = { prefixLength: (peer ?? own).length, peer: peer?.address };
      found.push({ line, interface: split(name).interface, family, address: ownAddress, ...present(length), flags: [] });
    }
    if (!strange) rows.push(...found);
    else if (!isPrompt(content)) unparsed.add(line, content);
  }
}

/** The one device that a command asks for: `ip addr show dev eth0`, `ip a s eth0`. */
function namedDevice(filters: readonly string[]): string | undefined {
  const [first, ...others] = filters;
  return filterValue(filters, "dev") ?? (others.length === 0 && first !== "up" ? first : undefined);
}

/**
 * Columns that somebody picked: addresses, behind the device's name or of the one that the command asks for. Whose a lone address is, nothing else tells.
 *
 *     10.96.0.1/32                    (`ip -4 -o a s kube-ipvs0 | awk '{print $4}'`)
 *     eth0 10.20.0.12/24              (`ip -o -4 addr | awk '{print $2, $4}'`)
 *     inet 10.96.0.1/32               (`ip a s kube-ipvs0 | grep -o 'inet [0-9./]*'`)
 */
function readChosen(rows: Address[], text: string, asked: string | undefined, unparsed: UnparsedLines): void {
  for (const { line, text: content } of lines(text)) {
    const words = content
      .trim()
      .split(/\s+/)
      .filter((word) => word !== "inet" && word !== "inet6");
    const first = words[0] ?? "";
    const headed = readPrefix(first) === undefined && LINK_NAME.test(first);
    const name = headed ? split(first.replace(/:$/, "")).interface : asked;
    const found = (headed ? words.slice(1) : words).map((word) => readPrefix(word));
    if (name !== undefined && found.length > 0 && found.every((own) => own !== undefined))
      for (const own of found)
        rows.push({ line, interface: name, family: own.family, address: own.address, ...present({ prefixLength: own.length }), flags: [] });
    else if (!isPrompt(content) && content.trim() !== "") unparsed.add(line, content);
  }
}

const IF_INET6 = procNet("if_inet6");
/** `fd000031000000000000000000000004 02 40 00 82     eth0`: address, number of the interface, prefix length, scope, flags, name. */
const PROC_ROW = /^([0-9a-f]{32}) [0-9a-f]{2,8} ([0-9a-f]{2}) ([0-9a-f]{2}) ([0-9a-f]{2,8}) +(\S{1,15})$/;
const PROC_SCOPES: Readonly<Record<string, string>> = { "00": "global", "10": "host", "20": "link", "40": "site" };
/** linux/if_addr.h, those that fit into what the file shows. */
const PROC_FLAGS: readonly (readonly [number, string])[] = [
  [0x01, "temporary"],
  [0x02, "nodad"],
  [0x04, "optimistic"],
  [0x08, "dadfailed"],
  [0x10, "home"],
  [0x20, "deprecated"],
  [0x40, "tentative"],
];

/** The kernel's own list of IPv6 addresses. What is not permanent, `ip` calls dynamic. */
function readProc(rows: Address[], text: string, unparsed: UnparsedLines): void {
  for (const { line, text: content } of lines(text)) {
    const [, hex, length, scope, bits, name] = PROC_ROW.exec(content.trim()) ?? [];
    const own = hex === undefined ? undefined : readPrefix(fromHexIpv6(hex), "ipv6");
    if (own === undefined) {
      if (!isPrompt(content)) unparsed.add(line, content);
      continue;
    }
    const set = Number.parseInt(bits as string, 16);
    const flags = PROC_FLAGS.flatMap(([bit, flag]) => ((set & bit) === 0 ? [] : [flag]));
    rows.push({
      line,
      interface: name as string,
      family: "ipv6",
      address: own.address,
      prefixLength: Number.parseInt(length as string, 16),
      ...present({ scope: PROC_SCOPES[scope as string] }),
      flags: (set & 0x80) === 0 ? ["dynamic", ...flags] : flags,
    });
  }
}

/** `IP4.ADDRESS[1]: 10.31.0.4/24` */
function nmcliAddress({ line, interface: name, key, value }: NmcliField): Address[] {
  const family = key.startsWith("IP4.ADDRESS") ? "ipv4" : key.startsWith("IP6.ADDRESS") ? "ipv6" : undefined;
  const own = family === undefined ? undefined : readPrefix(value, family);
  return own === undefined || own.family !== family
    ? []
    : [{ line, interface: name, family, address: own.address, ...present({ prefixLength: own.length }), flags: [] }];
}

type Json = Record<string, unknown>;

function fromJson(rows: Address[], text: string, unparsed: UnparsedLines): void {
  const given = withoutPrompts(text);
  const elements = jsonElements(given, unparsed);
  let start = 0;
  for (const [i, { value, line, text: quote }] of elements.entries()) {
    start = given.indexOf(beginning(quote), start);
    const next = elements[i + 1];
    const end = next === undefined ? given.length : given.indexOf(beginning(next.text), start + beginning(quote).length);
    const infos = value["addr_info"];
    const name = asString(value["ifname"]);
    if (name === undefined || !Array.isArray(infos)) {
      // Old versions print an empty object for what a filter leaves out.
      if (Object.keys(value).length > 0) unparsed.add(line, quote);
      continue;
    }
    const places = nested(given.slice(start, end), line);
    for (const [j, info] of (infos as unknown[]).entries()) {
      const place = places.length === infos.length ? (places[j] as JsonElement) : { line, text: quote };
      // Empty for what a filter leaves out, here too.
      if (typeof info !== "object" || info === null || Object.keys(info).length === 0) continue;
      const row = fromInfo(info as Json, name, place);
      if (row === undefined) unparsed.add(place.line, place.text);
      else rows.push(Object.assign(row, { text: place.text }));
    }
  }
}

/** The part of an element's quote that is surely verbatim: long quotes are cut. */
const beginning = (quote: string): string => (quote.length > 4000 ? quote.slice(0, 4000) : quote);

/** The elements of `addr_info`, each with its own line and text. `line` is the one on which the text begins. */
function nested(text: string, line: number): JsonElement[] {
  const key = text.indexOf('"addr_info"');
  const open = text.indexOf("[", key);
  const close = text.indexOf("]", open);
  if (key === -1 || open === -1 || close === -1) return [];
  const before = text.slice(0, open).split("\n").length - 1;
  const elements = jsonElements(text.slice(open, close + 1), new UnparsedLines());
  return elements.map((element) => ({ ...element, line: element.line + line + before - 1 }));
}

function fromInfo(info: Json, name: string, { line }: { line: number }): Address | undefined {
  const family = asString(info["family"]) === "inet6" ? "ipv6" : "ipv4";
  const own = readPrefix(asString(info["local"]) ?? asString(info["address"]) ?? "", family);
  if (own === undefined) return undefined;
  const other = asString(info["address"]);
  return {
    line,
    interface: name,
    family: own.family,
    address: own.address,
    ...present({
      prefixLength: asInteger(info["prefixlen"]),
      scope: asString(info["scope"]),
      peer: other === own.address || other === undefined ? undefined : readPrefix(other, family)?.address,
      broadcast: asString(info["broadcast"]),
      label: asString(info["label"]),
      protocol: asString(info["protocol"]),
    }),
    flags: [...FLAGS].filter((flag) => info[flag] === true),
  };
}
