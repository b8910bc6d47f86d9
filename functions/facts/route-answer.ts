import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { ROUTE_TABLES } from "./ip-command.ts";
import { asString, jsonElements } from "./json.ts";
import { readFamily } from "./mask.ts";
import { eachOnItsOwn } from "./parts.ts";
import { isPrompt } from "./paste.ts";
import { present } from "./present.ts";
import { wordsOf } from "./words.ts";

/**
 * What the kernel answered to `ip route get`: the route of one packet. netcheck asks nothing, it looks routes up itself (route-lookup).
 *
 *     198.51.100.9 from 172.31.8.21 via 10.60.4.1 dev ens160 table 52 src 10.60.4.21 uid 0
 *         cache
 */
const Answer = z.object({
  line: z.int(),
  family: z.enum(["ipv4", "ipv6"]),
  destination: z.string(),
  /** The source that was asked for; left out if none was. */
  from: z.string().optional(),
  gateway: z.string().optional(),
  interface: z.string(),
  /** "main" where none is named, except for local answers of old kernels. */
  table: z.string(),
  /** Where the packet was said to come in. */
  inputInterface: z.string().optional(),
  preferredSource: z.string().optional(),
});
/**
 * An answer without a route. The packet is the one of the command.
 *
 *     RTNETLINK answers: Invalid cross-device link
 */
const Refusal = z.object({
  line: z.int(),
  /** As printed: "Invalid cross-device link" (the reverse path check of the interface drops it), "Network is unreachable", "No route to host", "Invalid argument". */
  reason: z.string(),
  destination: z.string(),
  from: z.string().optional(),
  inputInterface: z.string().optional(),
});
const Answers = z.object({ rows: z.array(Answer), refusals: z.array(Refusal) });
type Refusal = z.infer<typeof Refusal>;
type Answer = z.infer<typeof Answer>;
export type RouteAnswer = Answer;

const FRAME = /^(?:cache\b.{0,200}|RTNETLINK answers: .{1,80}|Error: .{1,120}|expires .{1,80})$/;
const REFUSED = /^\s{0,8}(?:RTNETLINK answers|Error): (.{1,80}?)\.?\s{0,8}$/;
/** Where the packet came in stands on the second line. */
const INPUT = /^\s{1,8}cache\b.{0,60}? iif (\S{1,15})/;
const TYPES = new Set(["local", "broadcast", "unicast", "multicast", "anycast"]);

export const routeAnswer = defineFact({
  id: "route-answer",
  title: "What the kernel answered to `ip route get` (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    if (argv[0] !== "ip") return undefined;
    const words = argv.slice(1).filter((word) => !/^-(?:[46odjp]{1,4}|family|details|oneline|json|pretty)$/.test(word));
    if (!/^r(?:o(?:u(?:t(?:e)?)?)?)?$/.test(words[0] ?? "") || !/^g(?:et?)?$/.test(words[1] ?? "")) return undefined;
    return { format: "text", complete: true, scope: argv.join(" ").slice(0, 200), rank: 1 };
  },
  schema: Answers,
  // "RTNETLINK answers: Network is unreachable" is an answer without a route
  answered: () => true,
  parse({ text, stderr, argv }) {
    const unparsed = new UnparsedLines();
    const rows: Answer[] = [];
    const refusals: Refusal[] = [];
    const asked = questionOf(argv);
    if (/^\s{0,200}\[\s{0,8}[{\]]/.test(text)) {
      for (const { value, line } of jsonElements(text, unparsed)) {
        const row = answerOf(line, wordsOfJson(value));
        if (row !== undefined) rows.push(row);
        else if (Object.keys(value).length > 0) unparsed.add(line, JSON.stringify(value).slice(0, 200));
      }
      return unparsed.with({ rows, refusals });
    }
    for (const { line, text: content } of lines(text)) {
      const row = answerOf(line, wordsOf(content));
      const previous = rows.at(-1);
      const input = INPUT.exec(content)?.[1];
      if (row !== undefined) rows.push(row);
      else if (input !== undefined && previous?.line === line - 1) previous.inputInterface = input;
      else if (asked !== undefined && REFUSED.test(content)) refusals.push({ line, reason: REFUSED.exec(content)?.[1] ?? "", ...asked });
      else if (content.trim() !== "" && !FRAME.test(content.trim()) && !isPrompt(content)) unparsed.add(line, content);
    }
    // on standard error, where the two were kept apart
    for (const { line, text: content } of lines(rows.length + refusals.length > 0 ? "" : stderr.slice(0, 2000))) {
      const reason = REFUSED.exec(content)?.[1];
      if (reason !== undefined && asked !== undefined) refusals.push(Object.assign({ line, reason, ...asked }, { text: content.trim().slice(0, 400) }));
    }
    return unparsed.with({ rows, refusals });
  },
  ...eachOnItsOwn,
});

/** The packet that was asked for: `ip route get 10.0.0.5 from 192.0.2.7 iif eth1`. */
function questionOf(argv: readonly string[]): Omit<Refusal, "line" | "reason"> | undefined {
  const words = argv.filter((word) => word !== "to");
  const at = words.findIndex((word, i) => i > 0 && words[i - 1] !== "from" && readFamily(word, "ipv4") !== undefined);
  const destination = words[at];
  if (at === -1 || destination === undefined) return undefined;
  const after = (name: string): string | undefined => (words.includes(name) ? words[words.indexOf(name) + 1] : undefined);
  return { destination, ...present({ from: after("from"), inputInterface: after("iif") }) };
}

/** What `ip -j route get` tells, as the words of the text form. */
const wordsOfJson = (value: Readonly<Record<string, unknown>>): string[] =>
  [asString(value["type"]) ?? "", asString(value["dst"]) ?? ""]
    .filter((word) => word !== "")
    .concat(Object.entries(NAMES).flatMap(([key, name]) => (typeof value[key] === "string" ? [name, value[key] as string] : [])));
const NAMES = { from: "from", gateway: "via", dev: "dev", table: "table", prefsrc: "src", iif: "iif" };

function answerOf(line: number, words: readonly string[]): Answer | undefined {
  let at = TYPES.has(words[0] ?? "") ? 1 : 0;
  const destination = words[at++] ?? "";
  const family = readFamily(destination, "ipv4");
  if (family === undefined) return undefined;
  const values = new Map<string, string>();
  while (at + 1 < words.length && words[at] !== "cache") {
    const word = words[at] as string;
    // "via inet6 fe80::1": a gateway of the other family
    if (word === "via" && /^inet6?$/.test(words[at + 1] as string)) at++;
    values.set(word, words[at + 1] ?? "");
    at += 2;
  }
  const name = values.get("dev");
  if (name === undefined) return undefined;
  const table = values.get("table");
  const shown = { gateway: values.get("via"), from: values.get("from"), inputInterface: values.get("iif"), preferredSource: values.get("src") };
  return { line, family, destination, interface: name, table: table === undefined ? "main" : (ROUTE_TABLES.get(table) ?? table), ...present(shown) };
}
