import { z } from "zod";
import { isPromptLine } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { present } from "./present.ts";

/**
 * What ufw and firewalld are told to let in, as people paste it. The rules that they made of it are in the facts `iptables` and `nft`, which netcheck itself reads.
 *
 *     Default: deny (incoming), allow (outgoing), deny (routed)        (ufw status verbose)
 *     8472/udp                   ALLOW IN    10.0.0.0/24
 *     public (active) … interfaces: ens192 … ports: 6443/tcp 10250/tcp (firewall-cmd --list-all)
 */
const Policy = z.object({
  line: z.int(),
  tool: z.enum(["ufw", "firewalld"]),
  /** Of firewalld. */
  zone: z.string().optional(),
  /** What is not opened is refused, and all that is opened was listed. */
  closed: z.boolean(),
  /** Everything is let in. */
  open: z.boolean(),
  /** Every zone in use was listed beside it; always of ufw, which has none. */
  all: z.boolean(),
  /** Of a zone; empty for ufw, which is about all. */
  interfaces: z.array(z.string()),
  sources: z.array(z.string()),
});
const Opening = z.object({
  line: z.int(),
  tool: z.enum(["ufw", "firewalld"]),
  zone: z.string().optional(),
  /** "tcp", "udp", "any", or as printed ("ipencap", "gre"). */
  protocol: z.string(),
  /** Ports; 0 to 65535 where all are opened. */
  first: z.int(),
  last: z.int(),
  /** In through this interface alone. */
  interface: z.string().optional(),
  /** From this prefix alone; an address has /32 or /128. */
  source: z.string().optional(),
  /** A service or a rule whose ports are not told here. */
  named: z.string().optional(),
});
const HostFirewall = z.object({ policies: z.array(Policy), openings: z.array(Opening) });
type Policy = z.infer<typeof Policy>;
type Opening = z.infer<typeof Opening>;

const DEFAULT = /^Default: (allow|deny|reject) \(incoming\)/;
/** "[ 3] 8472/udp (v6) on eth1   ALLOW IN    10.0.0.0/24", without IN in `ufw status`; of `ufw status numbered` the number stands before. */
const UFW_RULE = /^(?:\[ ?\d{1,4}\] )?(\S.{0,60}?) {2,}(ALLOW|LIMIT|DENY|REJECT)(?: (IN|OUT|FWD))? {2,}(\S.{0,100})$/;
const UFW_TO = /^(?:[\da-f.:/]{3,45} )?(\S{1,60}?)(?: \(v6\))?(?: on (\S{1,15}))?$/i;
const PORTS = /^([\d,:]{1,100})(?:\/(\w{1,12}))?$/;
const ZONE = /^([A-Za-z][\w-]{0,30}) ?(?:\((?:default|active|default, active)\))?$/;
const SETTING = /^\s{1,8}(target|interfaces|sources|services|ports|protocols|rich rules):\s?(.{0,2000})$/;
const RICH = /^\s{1,16}rule .{0,1000}\baccept\b/;
/** `source NOT address=` is another matter. */
const RICH_SOURCE = / source address="([^"]{2,60})"(?! invert)/;
/** "10.42.0.0/16", "10.20.30.0/24/ipencap", "10.20.30.5 53/udp"; not "Anywhere". */
const SOURCE = /^([\d.]{7,15}|[\da-f:]{2,39})(\/\d{1,3})?(?=[\s/]|$)/i;

export const hostFirewall = defineFact({
  id: "host-firewall",
  title: "What ufw and firewalld are told to let in (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    if (argv[0] === "ufw" && argv[1] === "status") return { format: "ufw", complete: true, scope: "ufw", rank: argv.includes("verbose") ? 1 : 0 };
    if (argv[0] !== "firewall-cmd" || !argv.some((word) => /^--(?:list-all|list-all-zones|get-active-zones)$/.test(word))) return undefined;
    return { format: "firewalld", complete: argv.includes("--list-all-zones"), scope: argv.slice(1).join(" ").slice(0, 200), rank: 0 };
  },
  schema: HostFirewall,
  parse({ text, view, argv, truncated }) {
    const all = argv.some((word) => word === "--list-all-zones" || word === "--get-active-zones");
    const found = view.format === "ufw" ? readUfw(text) : readFirewalld(text, all);
    // what was cut may have opened anything
    if (truncated === true) for (const policy of found.value.policies) Object.assign(policy, { closed: false, all: false });
    return found;
  },
});

function readUfw(text: string) {
  const unparsed = new UnparsedLines();
  const policies: Policy[] = [];
  const openings: Opening[] = [];
  for (const { line, text: raw } of lines(text)) {
    const content = raw.trimEnd();
    const incoming = DEFAULT.exec(content)?.[1];
    if (incoming !== undefined)
      policies.push({ line, tool: "ufw", closed: incoming !== "allow", open: incoming === "allow", all: true, interfaces: [], sources: [] });
    const [, to = "", action, direction = "IN", from = ""] = UFW_RULE.exec(content) ?? [];
    if ((action !== "ALLOW" && action !== "LIMIT") || direction !== "IN") continue;
    const [, what = "", name] = UFW_TO.exec(to) ?? [];
    const base = { line, tool: "ufw" as const, ...present({ interface: name, source: prefixOf(from) }) };
    const ports = PORTS.exec(what);
    if (ports !== null) openings.push(...portsOf(ports[1] as string).map((range) => ({ ...base, protocol: ports[2] ?? "any", ...range })));
    else if (/^Anywhere(?:\/\w{1,12})?$/.test(what)) openings.push({ ...base, protocol: what.split("/")[1] ?? "any", ...ALL });
    // "Anywhere/ipv6" and names of profiles
    else openings.push({ ...base, protocol: "any", ...ALL, named: what === "" ? to : what });
  }
  return unparsed.with({ policies, openings });
}

function readFirewalld(text: string, all: boolean) {
  const unparsed = new UnparsedLines();
  const policies: Policy[] = [];
  const openings: Opening[] = [];
  let zone: Policy | undefined;
  for (const { line, text: raw } of lines(text)) {
    const content = raw.trimEnd();
    const [, key, value = ""] = SETTING.exec(content) ?? [];
    const name = key === undefined ? ZONE.exec(content)?.[1] : undefined;
    if (name !== undefined && !isPromptLine(raw)) {
      // `--get-active-zones` does not tell the target: of the zones that come with it, one lets everything in
      zone = { line, tool: "firewalld", zone: name, closed: false, open: name === "trusted", all, interfaces: [], sources: [] };
      policies.push(zone);
    }
    if (zone === undefined) continue;
    const base = { line, tool: "firewalld" as const, ...present({ zone: zone.zone }) };
    const words = value.split(/\s+/).filter((word) => word !== "");
    if (key === "target") zone.open = value.trim() === "ACCEPT";
    // the last line of a zone: services and ports stand before it
    else if (key === "rich rules") zone.closed = !zone.open;
    else if (key === "interfaces") zone.interfaces = words;
    else if (key === "sources") zone.sources = words;
    else if (key === "services") openings.push(...words.map((word) => ({ ...base, protocol: "any", ...ALL, named: word })));
    else if (key === "protocols") openings.push(...words.map((word) => ({ ...base, protocol: word, ...ALL })));
    else if (key === "ports")
      for (const word of words) {
        const ports = PORTS.exec(word.replace("-", ":"));
        if (ports !== null) openings.push(...portsOf(ports[1] as string).map((range) => ({ ...base, protocol: ports[2] ?? "any", ...range })));
      }
    else if (RICH.test(content)) {
      const source = prefixOf(RICH_SOURCE.exec(content)?.[1] ?? "");
      openings.push({ ...base, ...present({ source }), protocol: "any", ...ALL, named: content.trim().slice(0, 200) });
    }
  }
  return unparsed.with({ policies, openings });
}

const ALL = { first: 0, last: 65_535 };

/** Where a rule lets in from, if not from anywhere. */
function prefixOf(from: string): string | undefined {
  const [, address, length] = SOURCE.exec(from) ?? [];
  return address === undefined ? undefined : `${address}${length ?? (address.includes(":") ? "/128" : "/32")}`;
}

/** "80,443,30000:32767" */
function portsOf(text: string): { first: number; last: number }[] {
  return text.split(",").flatMap((word) => {
    const [first = "", last = first] = word.split(":");
    return first === "" ? [] : [{ first: Math.min(Number(first), 65_535), last: Math.min(Number(last), 65_535) }];
  });
}
