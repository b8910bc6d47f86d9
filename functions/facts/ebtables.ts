import { z } from "zod";
import { commandLine, isPromptLine, operands, optionValue, withoutPrompt, words } from "./command.ts";
import { savedOfNft } from "./ebtables-nft.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { isShown } from "./parts.ts";
import { present } from "./present.ts";

/**
 * ebtables: the rules that frames meet on bridges.
 *
 *     -A PREROUTING -p ARP --arp-op Request --arp-ip-dst 10.240.0.32 -j arpreply --arpreply-mac a2:96:88:20:cb:c6
 *     -p IPv4 -i eth0 --ip-dst 10.240.0.32 -j dnat --to-dst a2:96:88:20:cb:c6 --dnat-target ACCEPT , pcnt = 5 -- bcnt = 348
 */
const Chain = z.object({
  line: z.int(),
  table: z.string(),
  name: z.string(),
  policy: z.string().optional(),
  /** False if only some of its rules were seen. */
  complete: z.boolean(),
});
const Rule = z.object({
  line: z.int(),
  table: z.string(),
  chain: z.string(),
  /** 1-based in its chain. */
  position: z.int(),
  /** As printed: ARP, IPv4, 802_1Q… */
  protocol: z.string().optional(),
  inInterface: z.string().optional(),
  outInterface: z.string().optional(),
  /** True if any of its matches is negated: then the fields say what it does not match. */
  negated: z.boolean(),
  /** MACs, lower case with leading zeros, or a name (Multicast); a mask is kept. */
  source: z.string().optional(),
  destination: z.string().optional(),
  arpOpcode: z.string().optional(),
  arpSourceAddress: z.string().optional(),
  arpDestinationAddress: z.string().optional(),
  sourceAddress: z.string().optional(),
  destinationAddress: z.string().optional(),
  target: z.string().optional(),
  /** What arpreply answers with, or dnat, snat and redirect rewrite to. */
  mac: z.string().optional(),
  /** ACCEPT, DROP, CONTINUE, RETURN: what happens after dnat, snat, arpreply. */
  targetVerdict: z.string().optional(),
  packets: z.int().optional(),
  bytes: z.int().optional(),
  /** The rule as text, without chain and counters. */
  spec: z.string(),
});
const Ebtables = z.object({ chains: z.array(Chain), rows: z.array(Rule) });
type Chain = z.infer<typeof Chain>;
type Rule = z.infer<typeof Rule>;

type TextField =
  | "protocol"
  | "inInterface"
  | "outInterface"
  | "arpOpcode"
  | "arpSourceAddress"
  | "arpDestinationAddress"
  | "sourceAddress"
  | "destinationAddress"
  | "target"
  | "targetVerdict";
const TEXT: Record<string, TextField> = {
  "-p": "protocol",
  "--protocol": "protocol",
  "-i": "inInterface",
  "--in-interface": "inInterface",
  "-o": "outInterface",
  "--out-interface": "outInterface",
  "--arp-op": "arpOpcode",
  "--arp-opcode": "arpOpcode",
  "--arp-ip-src": "arpSourceAddress",
  "--arp-ip-dst": "arpDestinationAddress",
  "--ip-src": "sourceAddress",
  "--ip-source": "sourceAddress",
  "--ip-dst": "destinationAddress",
  "--ip-destination": "destinationAddress",
  "--ip6-src": "sourceAddress",
  "--ip6-dst": "destinationAddress",
  "-j": "target",
  "--jump": "target",
  "--dnat-target": "targetVerdict",
  "--snat-target": "targetVerdict",
  "--arpreply-target": "targetVerdict",
  "--redirect-target": "targetVerdict",
};
type MacField = "source" | "destination" | "mac";
const MACS: Record<string, MacField> = {
  "-s": "source",
  "--source": "source",
  "-d": "destination",
  "--destination": "destination",
  "--arpreply-mac": "mac",
  "--to-dst": "mac",
  "--to-destination": "mac",
  "--to-src": "mac",
  "--to-source": "mac",
};
/** Options that say nothing the rules ask for; each takes one value unless it is a flag. */
const FLAGS = new Set(["--log", "--log-ip", "--log-ip6", "--log-arp", "--arp-gratuitous", "--snat-arp"]);
const OTHER =
  /^--(?:log-level|log-prefix|limit|limit-burst|mark|mark-set|mark-or|mark-and|mark-xor|mark-target|set-mark|vlan-id|vlan-prio|vlan-encap|arp-htype|arp-ptype|arp-mac-src|arp-mac-dst|ip6?-proto|ip6?-protocol|ip6?-sport|ip6?-dport|ip6?-source-port|ip6?-destination-port|ip-tos|ip6-tclass|ip6?-icmp6?-type|ip-igmp-type|pkttype-type|802_3-sap|802_3-type|stp-[a-z-]{2,20}|among-src|among-dst|among-src-file|among-dst-file|nflog|nflog-group|nflog-prefix|nflog-range|nflog-threshold|ulog-[a-z]{2,10}|logical-in|logical-out|concurrent)$/;

const SAVED_CHAIN = /^:(\S{1,64}) (ACCEPT|DROP|RETURN|CONTINUE|-)(?: \[\d+:\d+\])?$/;
const LISTED_TABLE = /^Bridge table: (\w{1,20})$/;
const LISTED_CHAIN = /^Bridge chain: (\S{1,64}), entries: (\d{1,9}), policy: (\w{1,10})$/;
const COUNTERS = /(?: , |, )pcnt = (\d{1,15}) -- bcnt = (\d{1,18})$/;
const COMMENT = /^#|^COMMIT$/;

export const ebtables = defineFact({
  id: "ebtables",
  title: "ebtables rules and chains",
  commands: [{ argv: ["ebtables-save"], modules: ["nf_tables", "nft_compat"] }],
  recognize(argv): View | undefined {
    const program = argv[0] ?? "";
    // its own text only: as JSON netcheck asks for it besides ebtables-save
    if (program === "nft" && isListOfBridges(argv)) return { format: "nft", complete: false, scope: "nft", rank: 0 };
    if (/^ebtables(?:-nft|-legacy)?-save$/.test(program)) return { format: "save", complete: !argv.includes("-t"), scope: "", rank: 3 };
    if (!/^ebtables(?:-nft|-legacy)?$/.test(program)) return undefined;
    const list = argv.findIndex((word) => word === "-L" || word === "--list");
    if (list === -1) return undefined;
    const chain = argv[list + 1];
    const table = optionValue(argv, "-t", "--table") ?? "filter";
    const whole = chain === undefined || chain.startsWith("-");
    return { format: "list", complete: whole, scope: whole ? table : `${table}/${chain}`, rank: argv.includes("--Lc") ? 2 : 1 };
  },
  schema: Ebtables,
  whole: (parts) => isShown(parts) || ["nat", "filter"].every((table) => isShown(parts, table)),
  merge(parts) {
    const saved = parts.filter((part) => part.view.scope === "").sort((a, b) => Number(b.complete) - Number(a.complete))[0];
    // a listing adds counters, which nobody asks for, and tables that a cut save lacks
    const rest = parts
      .filter((part) => part.view.scope !== "" && saved?.complete !== true)
      .sort((a, b) => Number(b.complete) - Number(a.complete) || b.view.rank - a.view.rank);
    const chains: Chain[] = [];
    const rows: Rule[] = [];
    const seen = new Set<string>();
    for (const { value, view, complete } of saved === undefined ? rest : [saved, ...rest]) {
      const fresh = value.chains
        .filter((chain) => !seen.has(`${chain.table}/${chain.name}`))
        // a save does not say where a chain ends: cut anywhere, none of its chains is known to be whole
        .map((chain) => (view.format === "save" && !complete ? { ...chain, complete: false } : chain));
      const names = new Set(fresh.map((chain) => `${chain.table}/${chain.name}`));
      chains.push(...fresh);
      rows.push(...value.rows.filter((row) => names.has(`${row.table}/${row.chain}`)));
      for (const name of names) seen.add(name);
    }
    return { chains, rows };
  },
  parse({ text, argv, view }) {
    const unparsed = new UnparsedLines();
    const chains = new Map<string, Chain>();
    const rows: Rule[] = [];
    const positions = new Map<string, number>();
    const announced = new Map<string, number>();
    let table = optionValue(argv, "-t", "--table") ?? (view.format === "list" ? "filter" : "unknown");
    let current: string | undefined;
    const chainOf = (line: number, name: string): Chain => {
      // a pasted piece without its heading: built-in chains with this name are in one table only
      if (table === "unknown" && (name === "PREROUTING" || name === "POSTROUTING")) table = "nat";
      const key = `${table}/${name}`;
      let chain = chains.get(key);
      if (chain === undefined) {
        // rules of a chain that was never declared: a filtered listing
        chain = { line, table, name, complete: false };
        chains.set(key, chain);
      }
      return chain;
    };
    const add = (line: number, chain: Chain, spec: string, counters: Counters | undefined): void => {
      const rule = readRule(spec);
      const key = `${chain.table}/${chain.name}`;
      const position = (positions.get(key) ?? 0) + 1;
      positions.set(key, position);
      if (rule === undefined) {
        chain.complete = false;
        unparsed.add(line, spec);
        return;
      }
      rows.push({ line, table: chain.table, chain: chain.name, position, ...rule, ...counters, spec });
    };
    for (const { line, text: content } of lines(view.format === "nft" ? savedOfNft(text) : text)) {
      // --Lx prints the commands that would make the rules
      const command = AS_COMMAND.exec(content.trimStart());
      if (command?.[1] !== undefined) table = command[1];
      const trimmed = command === null ? content.trimStart() : asSaved(command[2] as string);
      if (COMMENT.test(trimmed)) continue;
      if (isPromptLine(trimmed)) {
        const asked = commandLine(withoutPrompt(trimmed)).argv;
        table = optionValue(asked, "-t", "--table") ?? table;
        continue;
      }
      const saved = /^\*(\w{1,20})$/.exec(trimmed) ?? LISTED_TABLE.exec(trimmed);
      if (saved !== null) {
        table = saved[1] as string;
        current = undefined;
        continue;
      }
      const declared = declarationOf(trimmed);
      if (declared !== undefined) {
        const { name, policy, entries } = declared;
        const key = `${table}/${name}`;
        chains.set(key, { line, table, name, ...present({ policy }), complete: entries !== undefined || view.complete });
        if (entries !== undefined) announced.set(key, entries);
        current = name;
        continue;
      }
      const rule = savedRule(trimmed) ?? listedRule(trimmed);
      const name = rule?.chain ?? current ?? headless(trimmed);
      if (rule === undefined || name === undefined) unparsed.add(line, content);
      else {
        if (rule.chain === undefined && current === undefined) table = "nat";
        add(line, chainOf(line, name), rule.spec, rule.counters);
      }
    }
    // a listing says how many rules a chain has: fewer of them were filtered or cut
    for (const [key, entries] of announced) {
      const chain = chains.get(key);
      if (chain !== undefined && positions.get(key) !== entries && entries > 0) chain.complete = false;
    }
    return unparsed.with({ chains: [...chains.values()], rows });
  },
});

interface Counters {
  readonly packets: number;
  readonly bytes: number;
}
/** A line that is a rule. `chain`: where it says so itself. */
interface RuleLine {
  readonly chain?: string;
  readonly spec: string;
  readonly counters: Counters | undefined;
}

/** `:OUTPUT ACCEPT`, `Bridge chain: OUTPUT, entries: 2, policy: ACCEPT` */
function declarationOf(line: string): { name: string; policy: string | undefined; entries?: number } | undefined {
  const [, name, policy] = SAVED_CHAIN.exec(line) ?? [];
  if (name !== undefined) return { name, policy: policy === "-" ? undefined : policy };
  const [, listed, entries, its] = LISTED_CHAIN.exec(line) ?? [];
  return listed === undefined ? undefined : { name: listed, policy: its, entries: Number(entries) };
}

/** `[3:180] -A PREROUTING -i eth0 -j arpreply …`, `-A PREROUTING … -c 3 180` */
function savedRule(line: string): RuleLine | undefined {
  const [, before, bytesBefore, chain, rest = ""] = /^(?:\[(\d{1,15}):(\d{1,18})\] )?-A (\S{1,64})(?: (.*))?$/.exec(line) ?? [];
  if (chain === undefined) return undefined;
  const tail = / -c (\d{1,15}) (\d{1,18})$/.exec(rest);
  const [packets, bytes] = [tail?.[1] ?? before, tail?.[2] ?? bytesBefore];
  const counters = packets === undefined ? undefined : { packets: Number(packets), bytes: Number(bytes) };
  return { chain, spec: tail === null ? rest : rest.slice(0, tail.index), counters };
}

/** `1. -p ARP -i eth0 -j arpreply … , pcnt = 3 -- bcnt = 180` below the heading of its chain */
function listedRule(line: string): RuleLine | undefined {
  if (!/^(?:\d{1,6}\.? )?-/.test(line)) return undefined;
  const counters = COUNTERS.exec(line);
  const spec = (counters === null ? line : line.slice(0, counters.index)).replace(/^\d{1,6}\.? /, "").trimEnd();
  return { spec, counters: counters === null ? undefined : { packets: Number(counters[1]), bytes: Number(counters[2]) } };
}

/** `nft list ruleset`, `nft -a list table bridge nat`. */
function isListOfBridges(argv: readonly string[]): boolean {
  const [verb, what, family] = operands(argv);
  if (argv.some((word) => /^(?:-[a-z]*j[a-z]*|--json)$/.test(word)) || verb !== "list") return false;
  return (what === "ruleset" && (family === undefined || family === "bridge")) || ((what === "table" || what === "chain") && family === "bridge");
}

const AS_COMMAND = /^(?:\/\S{1,60}\/)?ebtables(?:-nft|-legacy)?(?: -t (\w{1,20}))? (-[APN] \S.*)$/;

/** `-P CHAIN POLICY` and `-N CHAIN` as a save has them. */
function asSaved(rest: string): string {
  const policy = /^-P (\S{1,64}) (ACCEPT|DROP|RETURN|CONTINUE)$/.exec(rest);
  if (policy !== null) return `:${policy[1]} ${policy[2]}`;
  const chain = /^-N (\S{1,64})(?: -P (\w{1,10}))?$/.exec(rest);
  return chain === null ? rest : `:${chain[1]} ${chain[2] ?? "-"}`;
}

/** The chain of a rule that a filter left without its heading, where its target is known in one chain only: these are in table nat. */
function headless(rule: string): string | undefined {
  if (/ -j arpreply /.test(rule) || (/ -j dnat /.test(rule) && / -i /.test(` ${rule}`))) return "PREROUTING";
  return / -j snat /.test(rule) ? "POSTROUTING" : undefined;
}

/** The options of one rule; undefined if one of them is not known. */
function readRule(spec: string): Omit<Rule, "line" | "table" | "chain" | "position" | "packets" | "bytes" | "spec"> | undefined {
  const list = words(spec);
  const rule: Partial<Record<TextField | MacField, string>> = {};
  let negated = false;
  for (let i = 0; i < list.length; i++) {
    let option = list[i] as string;
    if (option === "!") {
      negated = true;
      option = list[++i] ?? "";
    }
    if (FLAGS.has(option)) continue;
    const text = Object.hasOwn(TEXT, option) ? TEXT[option] : undefined;
    const mac = Object.hasOwn(MACS, option) ? MACS[option] : undefined;
    if (text === undefined && mac === undefined && !OTHER.test(option)) return undefined;
    if (list[i + 1] === "!") {
      negated = true;
      i++;
    }
    const value = list[++i];
    if (value === undefined) return undefined;
    if (text !== undefined) rule[text] = value;
    else if (mac !== undefined) rule[mac] = normalMac(value);
  }
  return { ...rule, negated };
}

/** ebtables prints bytes of a MAC without leading zeros. Masks and names (Broadcast, Multicast) stay. */
function normalMac(text: string): string {
  return text
    .split("/")
    .map((part) =>
      /^[0-9a-fA-F]{1,2}(?::[0-9a-fA-F]{1,2}){5}$/.test(part)
        ? part
            .toLowerCase()
            .split(":")
            .map((byte) => byte.padStart(2, "0"))
            .join(":")
        : part,
    )
    .join("/");
}
