import { z } from "zod";
import { operands } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { asInteger, asString, jsonElements } from "./json.ts";
import { combine, ranked } from "./parts.ts";
import { isPrompt } from "./paste.ts";
import { present } from "./present.ts";

/**
 * A set of ipset.
 *
 *     create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536
 *     Name: KUBE-CLUSTER-IP
 */
const IpsetSet = z.object({
  line: z.int(),
  name: z.string(),
  /** "hash:ip", "hash:net", "bitmap:port", "list:set", … Absent in `ipset list -n`. */
  type: z.string().optional(),
  family: z.enum(["ipv4", "ipv6"]).optional(),
  /** The number of members: counted where they are listed, else as `ipset list -t` tells. Absent if neither tells. */
  members: z.int().optional(),
  /** Most members that it can have. */
  maxMembers: z.int().optional(),
  /** How many rules refer to it; only `ipset list` tells. */
  references: z.int().optional(),
  /** All its members are in `members` of the fact. */
  complete: z.boolean(),
});

/** A member: `add KUBE-CLUSTER-IP 10.96.0.1,tcp:443`. At most {@link MAX_MEMBERS} are kept. */
const IpsetMember = z.object({
  line: z.int(),
  set: z.string(),
  /** As printed, without options: `10.0.0.0/8`, `10.96.0.1,tcp:443`, `10.1.2.3,tcp:80,10.1.2.3`. */
  entry: z.string(),
  /** The member is an exception from wider ones. */
  nomatch: z.boolean(),
});

const Ipset = z.object({ sets: z.array(IpsetSet), members: z.array(IpsetMember) });
export type Ipset = z.infer<typeof Ipset>;
type IpsetSet = z.infer<typeof IpsetSet>;

/** Sets of IPVS and of network policies grow with the cluster; more members than this are counted, not kept. */
const MAX_MEMBERS = 50_000;

const NAME = /^[!-~]{1,31}$/;
const CREATE = /^create ([!-~]{1,31}) ((?:hash|bitmap|list):[a-z,]{1,32})(?: (.{0,400}))?$/;
const ADD = /^add ([!-~]{1,31}) (\S{1,200})(?: (.{0,400}))?$/;
const FIELD = /^(Name|Type|Revision|Header|Size in memory|References|Number of entries|Members):(?: (.{0,400}))?$/;
/** A member under `Members:`: `10.96.0.1,tcp:443 timeout 30`. */
const MEMBER = /^(\S{1,200})(?: (.{0,400}))?$/;

export const ipset = defineFact<Ipset>({
  id: "ipset",
  title: "Sets that iptables rules refer to, and their members",
  commands: [{ argv: ["ipset", "list", "-o", "save"], modules: ["ip_set"] }],
  // IP_SET selects NETFILTER_NETLINK
  heldBy: { module: "ip_set", needs: "nfnetlink" },
  recognize(argv): View | undefined {
    if (argv[0] !== "ipset") return undefined;
    const words = operands(argv, OUTPUT);
    const options = argv.slice(1).filter((word) => word.startsWith("-"));
    const command = words[0] ?? options.find((word) => word === "-L" || word === "--list" || word === "-S" || word === "--save");
    if (!/^(?:list|save|-L|--list|-S|--save)$/.test(command ?? "")) return undefined;
    if (options.some((word) => !/^-(?:[osftnrqLS]|-output|-sorted|-terse|-name|-resolve|-quiet|-list|-save|-file)$/.test(word))) return undefined;
    const set = words[0] === command ? words[1] : words[0];
    const named = options.includes("-n") || options.includes("-name");
    const terse = options.includes("-t") || options.includes("-terse");
    const xml = argv.some((word, i) => word === "xml" && OUTPUT.has(argv[i - 1] ?? ""));
    if (xml) return undefined;
    const saved = /save|-S/.test(command ?? "") || argv.some((word, i) => word === "save" && OUTPUT.has(argv[i - 1] ?? ""));
    const format = named ? "names" : saved ? "save" : "list";
    return { format, complete: set === undefined && !named && !terse, scope: set ?? "", rank: named ? 0 : terse ? 1 : saved ? 4 : 3 };
  },
  schema: Ipset,
  parse({ text, view }) {
    const unparsed = new UnparsedLines();
    const result: Ipset = { sets: [], members: [] };
    const sets = new Map<string, { row: IpsetSet; count: number; listed: boolean }>();
    let current: string | undefined;
    let members = false;
    const add = (line: number, set: string, entry: string, options: string): void => {
      const known = sets.get(set);
      if (known !== undefined) known.count++;
      if (result.members.length < MAX_MEMBERS) result.members.push({ line, set, entry, nomatch: /(?:^| )nomatch(?: |$)/.test(options) });
      else if (known !== undefined) known.listed = false;
    };
    const open = (line: number, name: string, listed: boolean): IpsetSet => {
      const row: IpsetSet = { line, name, complete: false };
      sets.set(name, { row, count: 0, listed });
      result.sets.push(row);
      return row;
    };
    const json = /^\s{0,40}\[\s{0,40}(?:\{|\])/.test(text);
    if (json) {
      for (const { name, line, ...said } of setsOf(text, unparsed)) {
        Object.assign(open(line, name, said.listed), said.header);
        for (const member of said.members) add(member.line, name, member.entry, member.nomatch ? "nomatch" : "");
      }
    }
    for (const { line, text: content } of json ? [] : lines(text)) {
      const created = CREATE.exec(content);
      const added = created === null ? ADD.exec(content) : null;
      const field = FIELD.exec(content);
      if (created !== null) Object.assign(open(line, created[1] as string, true), { type: created[2] as string }, headerOf(created[3] ?? ""));
      else if (added !== null && sets.has(added[1] as string)) add(line, added[1] as string, added[2] as string, added[3] ?? "");
      else if (field !== null) {
        const [, key, value = ""] = field as unknown as [string, string, string?];
        members = key === "Members";
        if (key === "Name" && NAME.test(value)) {
          current = value;
          open(line, value, false);
          continue;
        }
        const set = sets.get(current ?? "");
        if (set === undefined) unparsed.add(line, content);
        else if (key === "Type") set.row.type = value;
        else if (key === "Header") Object.assign(set.row, headerOf(value));
        else if (key === "References") Object.assign(set.row, present({ references: number(value) }));
        else if (key === "Number of entries") Object.assign(set.row, present({ members: number(value) }));
        else if (members) set.listed = true;
      } else if (isPrompt(content)) members = false;
      else if (members && current !== undefined && MEMBER.test(content)) {
        const [, entry = "", options = ""] = MEMBER.exec(content) ?? [];
        add(line, current, entry, options);
      } else if (view.format === "names" && NAME.test(content)) open(line, content, false);
      else unparsed.add(line, content);
    }
    // a filter behind a listing of everything may have taken members of any set
    const filtered = view.scope === "" && !view.complete && view.rank >= 3;
    for (const { row, count, listed } of sets.values()) {
      // a count that is printed and does not fit says that the text was cut
      row.complete = listed && !filtered && (row.members === undefined || row.members === count);
      if (listed) row.members ??= count;
    }
    return unparsed.with(result);
  },
  merge(parts) {
    const best = ranked(parts);
    const taken = new Map<string, unknown>();
    for (const part of best) for (const { set } of part.value.members) if (!taken.has(set)) taken.set(set, part);
    return {
      sets: combine(
        best.flatMap((part) =>
          part.complete ? part.value.sets : part.value.sets.map((set, i, all) => (i === all.length - 1 ? { ...set, complete: false } : set)),
        ),
        (set) => set.name,
      ),
      members: best.flatMap((part) => part.value.members.filter(({ set }) => taken.get(set) === part)),
    };
  },
});

/** A set of `ipset list -o json`. */
interface JsonSet {
  readonly name: string;
  readonly line: number;
  readonly header: Partial<IpsetSet>;
  readonly members: readonly { readonly line: number; readonly entry: string; readonly nomatch: boolean }[];
  readonly listed: boolean;
}

/** `[{"name": "KUBE-CLUSTER-IP", "type": "hash:ip,port", "header": {"family": "inet", …}, "members": [{"elem": "10.96.0.1,tcp:443"}, …]}, …]` */
function setsOf(text: string, unparsed: UnparsedLines): JsonSet[] {
  return jsonElements(text, unparsed).flatMap(({ value, line, text: quote }): JsonSet[] => {
    const [name, type, members] = [asString(value["name"]), asString(value["type"]), value["members"]];
    if (name === undefined || !NAME.test(name)) {
      unparsed.add(line, quote);
      return [];
    }
    const header = (value["header"] ?? {}) as Record<string, unknown>;
    const known = present({
      type,
      ...headerOf(`family ${asString(header["family"]) ?? ""} maxelem ${asInteger(header["maxelem"]) ?? ""}`),
      references: asInteger(header["references"]),
      members: asInteger(header["numentries"]),
    });
    let from = 0;
    const places = (Array.isArray(members) ? (members as unknown[]) : []).flatMap((member) => {
      const entry = typeof member === "object" && member !== null ? asString((member as Record<string, unknown>)["elem"]) : undefined;
      if (entry === undefined) return [];
      const at = quote.indexOf(`"${entry}"`, from);
      const before = at === -1 ? 0 : quote.slice(0, at).split("\n").length - 1;
      if (at !== -1) from = at + entry.length;
      return [{ line: line + before, entry, nomatch: (member as Record<string, unknown>)["nomatch"] === true }];
    });
    return [{ name, line, header: known, members: places, listed: Array.isArray(members) }];
  });
}

/** Options with a value that is none of the words that say what is listed. */
const OUTPUT = new Set(["-o", "-output", "--output", "-f", "-file"]);

const number = (text: string | undefined): number | undefined => (/^\d{1,9}$/.test(text ?? "") ? Number(text) : undefined);

/** `family inet hashsize 1024 maxelem 65536 comment` */
function headerOf(text: string): Partial<IpsetSet> {
  const family = /(?:^| )family (inet6?)(?: |$)/.exec(text)?.[1];
  return present({
    family: family === "inet" ? ("ipv4" as const) : family === "inet6" ? ("ipv6" as const) : undefined,
    maxMembers: number(/(?:^| )maxelem (\d{1,9})(?: |$)/.exec(text)?.[1]),
  });
}
