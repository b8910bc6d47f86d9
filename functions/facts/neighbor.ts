import { z } from "zod";
import { hasLetter, hasOption } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { asString, asStrings, jsonElements } from "./json.ts";

/**
 * Neighbours (ARP and NDP entries) of every interface.
 *
 *     10.240.0.57 dev lxc_health lladdr 3a:d3:5d:06:09:0f REACHABLE
 *     10.240.0.57 dev azure0 FAILED
 */
const Neighbor = z.object({
  line: z.int(),
  /** Without prefix length. */
  address: z.string(),
  interface: z.string(),
  /** Lower case, colons; absent while unresolved. */
  mac: z.string().optional(),
  /** One of the kernel's NUD states in upper case; "UNKNOWN" where a format does not tell (`arp` of a complete entry). */
  state: z.string(),
  router: z.boolean(),
  proxy: z.boolean(),
});
const Neighbors = z.object({ rows: z.array(Neighbor) });
type Neighbor = z.infer<typeof Neighbor>;

const STATE = "(?:PERMANENT|NOARP|REACHABLE|STALE|NONE|INCOMPLETE|DELAY|PROBE|FAILED)";
const IP_NEIGH = new RegExp(
  `^([0-9a-fA-F.:]+) dev (\\S+)(?: (?:lladdr) ([0-9a-f:]{2,59}))?((?: (?:router|proxy|extern_learn|extern_valid|managed|offload))*)(?: (?:ref \\d+))?(?: used [\\d/]+)?(?: probes \\d+)?( ${STATE})?(?: proto \\S+)?$`,
);
// Address HWtype HWaddress Flags Mask Iface
const ARP_N = /^([0-9.]{7,15})\s+(?:(\w+)\s+([0-9a-fA-F:]{11,59})\s+([CMP!]+)\s*(?:\*|[0-9.]{7,15})?|\(incomplete\))\s+(\S+)$/;
// ? (10.240.0.1) at 16:21:b4:47:93:4a [ether] PERM on azure0
const ARP_AN = /^(?:\S+) \(([0-9.]{7,15})\) at (?:([0-9a-fA-F:]{11,59})(?: \[\w+\])?|<?\(?incomplete\)?>?)( PERM)?(?: PUB)?\s+on (\S+)$/;
const ARP_HEADER = /^(?:Address\s+HWtype\s+HWaddress|Entries: \d+)/;

export const neighbor = defineFact({
  id: "neighbor",
  title: "Neighbours (ARP, NDP) of every interface",
  commands: [{ argv: ["ip", "-j", "neigh", "show"] }],
  recognize(argv): View | undefined {
    if (argv[0] === "arp" && !hasOption(argv, "-d", "-s", "-f")) {
      return { format: hasLetter(argv, "a") ? "arp-an" : "arp-n", complete: false, scope: "", rank: 1 };
    }
    if (argv[0] !== "ip") return undefined;
    const words = argv.slice(1).filter((word) => !word.startsWith("-"));
    if (!/^n(?:e|ei|eig|eigh|eighbor|eighbour)?$/.test(words[0] ?? "")) return undefined;
    if (words[1] !== undefined && !/^(?:s|sh|show|l|ls|list)$/.test(words[1])) return undefined;
    const json = argv.some((word) => /^--?j(?:son)?$/.test(word));
    return { format: json ? "json" : "text", complete: words.length <= 2, scope: "", rank: json ? 3 : 2 };
  },
  schema: Neighbors,
  parse({ text, view }) {
    const unparsed = new UnparsedLines();
    const rows: Neighbor[] = [];
    if (view.format === "json") {
      for (const { value, line, text: quote } of jsonElements(text, unparsed)) {
        const address = asString(value["dst"]);
        const dev = asString(value["dev"]);
        if (address === undefined || dev === undefined) {
          if (Object.keys(value).length > 0) unparsed.add(line, quote);
          continue;
        }
        const mac = asString(value["lladdr"]);
        const row = { line, address, interface: dev, ...(mac === undefined ? {} : { mac }), state: asStrings(value["state"])[0] ?? "NONE" };
        rows.push(Object.assign(row, { router: "router" in value, proxy: "proxy" in value, text: quote }));
      }
      return unparsed.with({ rows });
    }
    for (const { line, text: content } of lines(text)) {
      const row = view.format === "text" ? ipNeigh(content) : arp(content);
      if (row !== undefined) rows.push({ line, ...row });
      else if (!ARP_HEADER.test(content)) unparsed.add(line, content);
    }
    return unparsed.with({ rows });
  },
});

function ipNeigh(content: string): Omit<Neighbor, "line"> | undefined {
  const match = IP_NEIGH.exec(content);
  if (match === null) return undefined;
  const [, address, dev, mac, flags, state] = match as unknown as [string, string, string, string | undefined, string, string | undefined];
  return {
    address,
    interface: dev,
    ...(mac === undefined ? {} : { mac }),
    state: state?.trim() ?? "NONE",
    router: flags.includes("router"),
    proxy: flags.includes("proxy"),
  };
}

function arp(content: string): Omit<Neighbor, "line"> | undefined {
  const flags = { router: false, proxy: false };
  const table = ARP_N.exec(content);
  if (table !== null) {
    const [, address, , mac, letters, dev] = table as unknown as [string, string, string?, string?, string?, string?];
    if (mac === undefined) return { address, interface: dev ?? "", state: "INCOMPLETE", ...flags };
    return { address, interface: dev ?? "", mac: mac.toLowerCase(), state: letters?.includes("M") ? "PERMANENT" : "UNKNOWN", ...flags };
  }
  const bsd = ARP_AN.exec(content);
  if (bsd === null) return undefined;
  const [, address, mac, permanent, dev] = bsd as unknown as [string, string, string | undefined, string | undefined, string];
  if (mac === undefined) return { address, interface: dev, state: "INCOMPLETE", ...flags };
  return { address, interface: dev, mac: mac.toLowerCase(), state: permanent === undefined ? "UNKNOWN" : "PERMANENT", ...flags };
}
