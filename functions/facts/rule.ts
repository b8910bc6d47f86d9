import { z } from "zod";
import { defineFact, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import type { Family } from "./ip-address.ts";
import { familyScope, goneOf, ipCommand, mergeFamilies, ROUTE_PROTOCOLS, ROUTE_TABLES, wholeFamilies } from "./ip-command.ts";
import { asInteger, asString, jsonElements } from "./json.ts";
import { readPrefix } from "./mask.ts";
import { isPrompt, withoutPrompts } from "./paste.ts";
import { withoutLineCount } from "./pipe.ts";
import { present } from "./present.ts";

const ACTIONS = ["lookup", "goto", "nop", "blackhole", "unreachable", "prohibit"] as const;
type Action = (typeof ACTIONS)[number];

/**
 * Policy routing rules, in the order in which the kernel asks them.
 *
 *     512:    from all fwmark 0x80/0x80 lookup main
 *     1536:   from 10.0.3.4 lookup 2
 */
const Rule = z.object({
  line: z.int(),
  family: z.enum(["ipv4", "ipv6"]),
  priority: z.int(),
  /** The rule holds for packets that do not match. */
  not: z.boolean(),
  /** Prefix with length, or "all". */
  from: z.string(),
  to: z.string().optional(),
  /** As printed: "0x80/0x80", "0xca6c". */
  fwmark: z.string().optional(),
  tos: z.string().optional(),
  inputInterface: z.string().optional(),
  outputInterface: z.string().optional(),
  /** Who made it: "kernel", "static", …, or a number. */
  protocol: z.string().optional(),
  /** "main", "local", "default", a number, or "l3mdev" for the table of the packet's VRF. */
  table: z.string().optional(),
  action: z.enum(ACTIONS),
  /** Priority of the rule to go on with. */
  goto: z.int().optional(),
  /** Routes this short or shorter in the table do not count: 0 leaves out default routes. */
  suppressPrefixLength: z.int().optional(),
  /** "1000-2000" */
  uidRange: z.string().optional(),
  ipProtocol: z.string().optional(),
  sourcePort: z.string().optional(),
  destinationPort: z.string().optional(),
});
const Rules = z.object({
  rows: z.array(Rule),
  /** Those of the first listing that the last one does not have any more, where somebody listed them more than once. */
  gone: z.array(Rule).optional(),
  /** Those of the last listing, where somebody listed them more than once. */
  latest: z.array(Rule).optional(),
});
export type Rule = z.infer<typeof Rule>;

/** Actions without a value; `ip -N` prints their numbers. */
const PLAIN_ACTIONS = new Map<string, Action>(
  Object.entries({
    nop: "nop",
    blackhole: "blackhole",
    unreachable: "unreachable",
    prohibit: "prohibit",
    "6": "blackhole",
    "7": "unreachable",
    "8": "prohibit",
  }),
);
/** BusyBox prints `lookup unspec` and the number of the action by the name it has among route types. */
const BUSYBOX_ACTIONS = new Map<string, Action>(Object.entries({ local: "goto", broadcast: "nop" }));
/** Words with a value that no field holds. */
const OTHER_PAIRS = new Set(["suppress_ifgroup", "realms", "tun_id", "masquerade", "map-to"]);
const NAME = /^[^\s/]{1,127}$/;
/** A mark, with or without its mask: `0x200/0xf00`. */
export const FWMARK = /^(?:0x[0-9a-fA-F]{1,8}|\d{1,10})(?:\/(?:0x[0-9a-fA-F]{1,8}|\d{1,10}))?$/;

export const rule = defineFact({
  id: "rule",
  title: "Policy routing rules",
  commands: [{ argv: ["ip", "-j", "-4", "rule", "show"] }, { argv: ["ip", "-j", "-6", "rule", "show"] }],
  recognize(argv): View | undefined {
    const command = ipCommand(argv);
    if (command?.object !== "rule") return undefined;
    const scope = familyScope(command.family ?? "ipv4", command.filters);
    return { format: command.json ? "json" : "text", complete: command.filters.length === 0, scope, rank: command.json ? 2 : 1 };
  },
  schema: Rules,
  parse({ text: printed, argv, view, pipe }) {
    const text = withoutLineCount(printed, pipe ?? "");
    const unparsed = new UnparsedLines();
    const rows: Rule[] = [];
    const family = ipCommand(argv)?.family ?? "ipv4";
    if (view.format === "json") {
      for (const { value, line, text: quote } of jsonElements(withoutPrompts(text), unparsed)) {
        if (Object.keys(value).length === 0) continue;
        const row = fromJson(line, family, value);
        if (row === undefined) unparsed.add(line, quote);
        else rows.push(Object.assign(row, { text: quote }));
      }
    } else {
      let last = "";
      for (const { line, text: content } of lines(text)) {
        const row = fromText(line, family, content.trim().split(/\s+/));
        if (row !== undefined) {
          rows.push(row);
          last = content;
        } else if (!isPrompt(content)) unparsed.add(line, content);
      }
      const cut = rows.at(-1);
      if (cut !== undefined && isCut(cut)) {
        rows.pop();
        unparsed.add(cut.line, last);
      }
    }
    return unparsed.with({ rows });
  },
  merge: (parts) => ({ ...mergeFamilies(parts), ...goneOf(parts), ...latestOf(parts) }),
  whole: wholeFamilies,
});

/** Of several whole listings of the same rules the last one. */
function latestOf(parts: readonly Part<z.infer<typeof Rules>>[]): { latest?: Rule[] } {
  const listings = parts.filter((part) => part.complete && part.value.rows.length > 0);
  const [first, last] = [listings[0], listings.at(-1)];
  return first === undefined || last === undefined || first === last || first.view.scope !== last.view.scope ? {} : { latest: last.value.rows };
}

/** True of a last rule that leads to half of a table's name, `lookup mai`: the listing was cut there, and what came behind it is not known. */
const isCut = ({ table = "" }: Rule): boolean => table !== "" && ["main", "local", "default"].some((name) => name !== table && name.startsWith(table));

/** "all", or the prefix with its length. */
function selector(text: string, family: Family): string | undefined {
  if (text === "all") return "all";
  const parsed = readPrefix(text, family);
  return parsed?.family === family ? parsed.prefix : undefined;
}

function fromText(line: number, family: Family, words: readonly string[]): Rule | undefined {
  const priority = /^(\d{1,10}):$/.exec(words[0] ?? "")?.[1];
  if (priority === undefined) return undefined;
  const row: Partial<Rule> = {};
  const not = words[1] === "not";
  for (let i = not ? 2 : 1; i < words.length; i++) {
    const word = words[i] as string;
    const action = PLAIN_ACTIONS.get(word) ?? (row.table === "unspec" ? BUSYBOX_ACTIONS.get(word) : undefined);
    if (action !== undefined) row.action = action;
    else if (word !== "[detached]" && word !== "[unresolved]") {
      const value = words[++i];
      if (value === undefined || !pair(row, word, value, family)) return undefined;
    }
  }
  const { table, from, action, ...rest } = row;
  const lookup = table !== undefined && table !== "unspec";
  if (from === undefined || (action === undefined && !lookup)) return undefined;
  return { line, family, priority: Number(priority), not, from, action: action ?? "lookup", ...present({ table: lookup ? table : undefined }), ...rest };
}

/** Takes one word and its value in; false if `ip rule` does not print such. */
function pair(row: Partial<Rule>, word: string, value: string, family: Family): boolean {
  if (word === "from" || word === "to") {
    const prefix = selector(value, family);
    if (prefix === undefined) return false;
    row[word] = prefix;
  } else if (word === "fwmark") {
    if (!FWMARK.test(value)) return false;
    row.fwmark = value;
  } else if (word === "iif" || word === "oif") {
    if (!NAME.test(value)) return false;
    row[word === "iif" ? "inputInterface" : "outputInterface"] = value;
  } else if (word === "lookup" || word === "table") row.table = value === "[l3mdev-table]" ? "l3mdev" : (ROUTE_TABLES.get(value) ?? value);
  else if (word === "tos" || word === "dsfield") row.tos = value;
  else if (word === "proto") row.protocol = ROUTE_PROTOCOLS.get(value) ?? value;
  else if (word === "uidrange" && /^\d{1,10}-\d{1,10}$/.test(value)) row.uidRange = value;
  else if (word === "ipproto") row.ipProtocol = value.replace(/^ipproto-/, "");
  else if (word === "sport" || word === "dport") {
    if (!/^\d{1,5}(?:-\d{1,5})?$/.test(value)) return false;
    row[word === "sport" ? "sourcePort" : "destinationPort"] = value;
  } else if (word === "goto" || word === "suppress_prefixlength") {
    const number = asInteger(value);
    if (number === undefined) return false;
    if (word === "goto") row.action = "goto";
    row[word === "goto" ? "goto" : "suppressPrefixLength"] = number;
  } else return OTHER_PAIRS.has(word);
  return true;
}

type Json = Record<string, unknown>;

function fromJson(line: number, family: Family, value: Json): Rule | undefined {
  const priority = asInteger(value["priority"]);
  const from = jsonSelector(value, "src", family);
  const to = jsonSelector(value, "dst", family);
  const fwmark = asString(value["fwmark"]);
  const table = "l3mdev" in value ? "l3mdev" : asString(value["table"]);
  const goto = asInteger(value["goto"]);
  const printed = asString(value["action"]);
  const action = goto !== undefined ? "goto" : "nop" in value ? "nop" : printed !== undefined ? PLAIN_ACTIONS.get(printed) : "lookup";
  if (priority === undefined || from === undefined || action === undefined || (action === "lookup" && table === undefined)) return undefined;
  const [first, last] = [asInteger(value["uid_start"]), asInteger(value["uid_end"])];
  const protocol = asString(value["protocol"]);
  const optional = {
    to,
    fwmark: fwmark === undefined ? undefined : "fwmask" in value ? `${fwmark}/${asString(value["fwmask"]) ?? ""}` : fwmark,
    tos: asString(value["tos"]),
    inputInterface: asString(value["iif"]),
    outputInterface: asString(value["oif"]),
    protocol: protocol === undefined ? undefined : (ROUTE_PROTOCOLS.get(protocol) ?? protocol),
    table: table === undefined ? undefined : (ROUTE_TABLES.get(table) ?? table),
    goto,
    suppressPrefixLength: asInteger(value["suppress_prefixlen"]),
    uidRange: first === undefined || last === undefined ? undefined : `${first}-${last}`,
    ipProtocol: asString(value["ipproto"]),
    sourcePort: ports(value, "sport"),
    destinationPort: ports(value, "dport"),
  };
  return { line, family, priority, not: "not" in value, from, action, ...present(optional) };
}

function jsonSelector(value: Json, key: "src" | "dst", family: Family): string | undefined {
  const address = asString(value[key]);
  const length = asInteger(value[`${key}len`]);
  return address === undefined ? undefined : selector(length === undefined ? address : `${address}/${length}`, family);
}

/** One port, or "100-200". */
function ports(value: Json, key: "sport" | "dport"): string | undefined {
  const [one, first, last] = [asInteger(value[key]), asInteger(value[`${key}_start`]), asInteger(value[`${key}_end`])];
  if (one !== undefined) return String(one);
  return first === undefined || last === undefined ? undefined : `${first}-${last}`;
}
