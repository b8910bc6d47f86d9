import { z } from "zod";
import { byWord } from "./by-word.ts";
import { isPromptLine } from "./command.ts";
import { defineFact, lines, mergeParts, type Part, rankOf, UnparsedLines, type View } from "./fact.ts";
import { fromLongIpv6 } from "./ipv6.ts";
import { readFamily } from "./mask.ts";
import { procNet } from "./proc-net.ts";

/**
 * Tracked connections.
 *
 *     tcp      6 115 SYN_SENT src=100.96.54.240 dst=100.67.30.133 sport=42216 dport=80 [UNREPLIED] src=100.96.54.247 dst=100.96.54.240 sport=80 dport=42216 mark=0 use=1
 *     ipv4     2 udp      17 29 src=10.77.0.1 dst=10.77.0.2 sport=34364 dport=53 [UNREPLIED] src=10.77.0.2 dst=10.77.0.1 sport=53 dport=34364 mark=0 zone=0 use=2
 */
const ConntrackEntry = z.object({
  line: z.int(),
  /** "tcp", "udp", "icmp", …; "unknown" where the tool has no name. */
  protocol: z.string(),
  protocolNumber: z.int(),
  /** Of tcp, sctp and dccp. */
  state: z.string().optional(),
  /** Seconds until the entry is dropped; left out of entries that hardware or a flow table has taken over. */
  timeout: z.int().optional(),
  /** Of udp, where the table was listed twice: the seconds that were left the second time; 0 if the entry was gone. Each packet sets them back to what they were at first. */
  timeoutLater: z.int().optional(),
  source: z.string(),
  destination: z.string(),
  sourcePort: z.int().optional(),
  destinationPort: z.int().optional(),
  /** What a reply looks like: its source is where the connection really goes (behind DNAT), its destination who it seems to come from (behind SNAT). */
  replySource: z.string(),
  replyDestination: z.string(),
  replySourcePort: z.int().optional(),
  replyDestinationPort: z.int().optional(),
  /** Nothing has come back yet. */
  unreplied: z.boolean(),
  /** Not dropped early when the table is full. */
  assured: z.boolean(),
  /** Handed over to a flow table or to hardware. */
  offloaded: z.boolean(),
  mark: z.string().optional(),
  /** Left out of zone 0, where nearly all are. */
  zone: z.int().optional(),
  /** Of the original direction; only with nf_conntrack_acct. */
  packets: z.int().optional(),
  bytes: z.int().optional(),
  replyPackets: z.int().optional(),
  replyBytes: z.int().optional(),
});
const Conntrack = z.object({ rows: z.array(ConntrackEntry) });
export type ConntrackEntry = z.infer<typeof ConntrackEntry>;

/** More entries than this are counted as unread, not kept. */
const MAX_ENTRIES = 200_000;
const FOOTER = /conntrack v[\d.]{1,12} \(conntrack-tools\): \d{1,10} flow entries have been shown\.$/;
const STATE = new Set(
  "NONE SYN_SENT SYN_RECV ESTABLISHED FIN_WAIT CLOSE_WAIT LAST_ACK TIME_WAIT CLOSE LISTEN SYN_SENT2 CLOSED COOKIE_WAIT COOKIE_ECHOED SHUTDOWN_SENT SHUTDOWN_RECD SHUTDOWN_ACK_SENT HEARTBEAT_SENT HEARTBEAT_ACKED REQUEST RESPOND PARTOPEN OPEN CLOSEREQ CLOSING TIMEWAIT IGNORE INVALID".split(
    " ",
  ),
);
/** Words of a line that say nothing about the flow itself. */
const IGNORED = new Set([
  "type",
  "code",
  "id",
  "use",
  "srckey",
  "dstkey",
  "secctx",
  "secmark",
  "delta-time",
  "helper",
  "labels",
  "role",
  "timeout",
  "stream_timeout",
]);
const FIELDS = { sport: "sourcePort", dport: "destinationPort", packets: "packets", bytes: "bytes" } as const;
const REPLY_FIELDS = { sport: "replySourcePort", dport: "replyDestinationPort", packets: "replyPackets", bytes: "replyBytes" } as const;
/** The file with the connections themselves. */
export const CONNTRACK_TABLE = procNet("(?:nf|ip)_conntrack");

export const conntrack = defineFact({
  id: "conntrack",
  title: "Tracked connections (conntrack table)",
  commands: [
    { argv: ["conntrack", "-L"], modules: ["nf_conntrack", "nf_conntrack_netlink"] },
    { argv: ["cat", "/proc/net/nf_conntrack"], instead: true },
  ],
  recognize(argv): View | undefined {
    const file = argv.findIndex((word, i) => i > 0 && CONNTRACK_TABLE.test(word));
    if (file !== -1 && ["cat", "head", "tail", "grep", "egrep", "less", "more"].includes(argv[0] as string)) {
      const complete = argv[0] === "cat" && argv.length === 2;
      return { format: "proc", complete, scope: complete ? "" : "part of the file", rank: 1 };
    }
    if (argv[0] !== "conntrack") return undefined;
    const list = argv.findIndex((word) => word === "-L" || word === "--dump");
    if (list === -1) return undefined;
    const rest = argv.filter((_, i) => i !== 0 && i !== list);
    const table = list + 1 < argv.length && !(argv[list + 1] as string).startsWith("-") ? argv[list + 1] : undefined;
    if (table !== undefined && table !== "conntrack") return undefined;
    const output = rest.findIndex((word) => word === "-o" || word === "--output");
    const layout = output === -1 ? "" : (rest[output + 1] ?? "");
    const filters = rest.filter((word, i) => word !== "conntrack" && (output === -1 || (i !== output && i !== output + 1)));
    // each filter shows another part
    const format = /\b(?:xml|save)\b/.exec(layout)?.[0] ?? "list";
    return { format, complete: filters.length === 0, scope: filters.join(" ").slice(0, 200), rank: 2 };
  },
  schema: Conntrack,
  parse({ text, view: { format } }) {
    const unparsed = new UnparsedLines();
    const rows: ConntrackEntry[] = [];
    // of an entry that the footer cut in two, as it does where both streams went one way
    let head: { line: number; text: string } | undefined;
    for (const { line: at, text: rest } of lines(text)) {
      const { line, text: content } = head === undefined ? { line: at, text: rest } : { line: head.line, text: head.text + rest };
      const footer = head === undefined && rest.endsWith(" been shown.") ? content.search(FOOTER) : -1;
      head = footer > 0 ? { line, text: content.slice(0, footer) } : undefined;
      if (footer !== -1) continue;
      const plain = format === "xml" ? fromXml(content) : format === "save" ? fromSave(content) : content;
      const row = rows.length < MAX_ENTRIES ? entry(plain, line) : undefined;
      if (row !== undefined) rows.push(row);
      else if (!(format === "xml" && FRAME.test(content)) && !isPromptLine(content.slice(0, 400))) unparsed.add(line, content);
    }
    if (head !== undefined) unparsed.add(head.line, head.text);
    return unparsed.with({ rows });
  },
  merge(parts) {
    const first = parts.filter((part) => part.sample === 1);
    if (first.length === 0) return mergeParts(parts);
    const scopes = new Map<string, ConntrackPart>();
    for (const part of first) {
      const rival = scopes.get(part.view.scope);
      if (rival === undefined || rankOf(part) > rankOf(rival)) scopes.set(part.view.scope, part);
    }
    const [whole] = [...scopes.values()].filter((part) => part.complete && part.view.scope === "");
    // without -f old tools list IPv4 alone
    const used = whole === undefined ? [...scopes.values()] : [whole, ...[...scopes.values()].filter(({ view }) => FAMILY.test(view.scope) && !hasIpv6(whole))];
    const rows = used.map((part) => withLater(part, parts));
    return { rows: rows.length === 1 ? (rows[0] ?? []) : distinct(rows.flat()) };
  },
});

/** What stands around the entries of `-o xml`. */
const FRAME = /^(?:<\?xml .{1,100}\?>|<\/?conntrack>)$/;
const NUMBERS = byWord<number>({ icmp: 1, tcp: 6, udp: 17, dccp: 33, gre: 47, icmpv6: 58, sctp: 132, udplite: 136 });

/** `<flow><meta direction="original"><layer3 …><src>10.0.0.7</src>…`, one entry a line, as the plain listing has it; "" for anything else. */
function fromXml(content: string): string {
  const parts = new Map(
    [...content.slice(0, 4000).matchAll(/<meta direction="(\w{1,20})">(.{0,2000}?)<\/meta>/g)].map(([, name, inner]) => [name, inner ?? ""]),
  );
  const [original = "", reply = "", rest = ""] = ["original", "reply", "independent"].map((name) => parts.get(name));
  const [, number = "", name = "unknown"] = /<layer4 protonum="(\d{1,3})"(?: protoname="(\w{1,16})")?/.exec(original) ?? [];
  const value = (tag: string, from: string): string | undefined => new RegExp(`<${tag}>([^<]{1,64})</${tag}>`).exec(from)?.[1];
  const words = (from: string, ...tags: string[]): string[] => tags.flatMap((tag) => (value(tag, from) === undefined ? [] : [`${tag}=${value(tag, from)}`]));
  const flow = (from: string): string[] => words(from, "src", "dst", "sport", "dport", "packets", "bytes");
  return [name, number, value("timeout", rest) ?? "", value("state", rest) ?? ""]
    .concat(flow(original), rest.includes("<unreplied/>") ? "[UNREPLIED]" : "", flow(reply), rest.includes("<assured/>") ? "[ASSURED]" : "")
    .concat(words(rest, "mark", "zone"))
    .filter((word) => word !== "")
    .join(" ");
}

/** `-A -t 24 -u SEEN_REPLY,ASSURED -s 10.0.0.7 -d 10.96.0.10 -r 10.0.2.9 -q 10.0.0.7 -p udp --sport …` as the plain listing has it; "" for anything else. */
function fromSave(content: string): string {
  const words = content.trim().split(/[ \t]+/, 64);
  const value = (option: string): string => (words.indexOf(option) === -1 ? "" : (words[words.indexOf(option) + 1] ?? ""));
  const protocol = value("-p");
  const status = value("-u");
  if (words[0] !== "-A" || status === "" || NUMBERS[protocol] === undefined) return "";
  const named = (...pairs: readonly (readonly [string, string])[]): string[] =>
    pairs.flatMap(([name, option]) => (value(option) === "" ? [] : [`${name}=${value(option)}`]));
  return [protocol, String(NUMBERS[protocol]), value("-t"), value("--state")]
    .concat(named(["src", "-s"], ["dst", "-d"], ["sport", "--sport"], ["dport", "--dport"]), status.includes("SEEN_REPLY") ? "" : "[UNREPLIED]")
    .concat(named(["src", "-r"], ["dst", "-q"], ["sport", "--reply-port-src"], ["dport", "--reply-port-dst"]), status.includes("ASSURED") ? "[ASSURED]" : "")
    .concat(named(["mark", "-m"], ["zone", "-w"]))
    .filter((word) => word !== "")
    .join(" ");
}

type ConntrackPart = Part<z.infer<typeof Conntrack>>;
const FAMILY = /(?:^|\s)(?:-f|--family)[ =]?ipv6\b/;
const hasIpv6 = (part: ConntrackPart): boolean => part.value.rows.some((row) => row.source.includes(":"));

/** UDP entries with what a second listing by the same command says of their timers. */
function withLater(part: ConntrackPart, parts: readonly ConntrackPart[]): ConntrackEntry[] {
  const again = parts.find((other) => other.sample === 2 && other.view.scope === part.view.scope && other.view.format === part.view.format);
  if (again === undefined) return part.value.rows;
  const timers = new Map(again.value.rows.flatMap((row) => (row.protocol === "udp" && row.timeout !== undefined ? [[flowOf(row), row.timeout]] : [])));
  const isGone = again.truncated !== true;
  return part.value.rows.map((row) => {
    const later = row.protocol === "udp" && row.timeout !== undefined ? (timers.get(flowOf(row)) ?? (isGone ? 0 : undefined)) : undefined;
    return later === undefined ? row : { ...row, timeoutLater: later };
  });
}

/** Listings of parts of the table may hold the same entry. */
function distinct(rows: readonly ConntrackEntry[]): ConntrackEntry[] {
  const seen = new Map<string, ConntrackEntry>();
  for (const row of rows) if (!seen.has(flowOf(row))) seen.set(flowOf(row), row);
  return [...seen.values()];
}

const flowOf = (row: ConntrackEntry): string =>
  [row.protocol, row.source, row.sourcePort, row.destination, row.destinationPort, row.replySource, row.replySourcePort, row.replyDestination, row.zone].join(
    " ",
  );

/** One entry; undefined if a word of it is not known. Walks the words once: tables have hundreds of thousands of lines. */
function entry(content: string, line: number): ConntrackEntry | undefined {
  // The beginning of a kernel timestamp, the only thing with blanks in it.
  const start = content.indexOf(" [start=");
  const words = (start === -1 ? content : content.replace(/ \[start=[\w: ]{1,40}\]/, "").replace(/ \[stop=[\w: ]{1,40}\]/, "")).split(/[ \t]+/, 64);
  let at = words[0] === "" ? 1 : 0;
  if (words[at] === "ipv4" || words[at] === "ipv6") at += 2;
  const protocol = words[at++];
  const protocolNumber = integer(words[at++]);
  if (protocol === undefined || protocolNumber === undefined || protocolNumber > 255 || !/^[a-z][a-z0-9-]{1,15}$/.test(protocol)) return undefined;
  const row: ConntrackEntry = {
    line,
    protocol,
    protocolNumber,
    source: "",
    destination: "",
    replySource: "",
    replyDestination: "",
    unreplied: false,
    assured: false,
    offloaded: false,
  };
  const timeout = integer(words[at]);
  if (timeout !== undefined) {
    row.timeout = timeout;
    at++;
  }
  for (; at < words.length; at++) {
    const word = words[at] as string;
    if (word.charCodeAt(0) === 91 /* [ */) {
      if (word === "[UNREPLIED]") row.unreplied = true;
      else if (word === "[ASSURED]") row.assured = true;
      else if (word === "[OFFLOAD]" || word === "[HW_OFFLOAD]") row.offloaded = true;
      else return undefined;
      continue;
    }
    const equals = word.indexOf("=");
    if (equals === -1) {
      if (row.source !== "" || !STATE.has(word)) return undefined;
      row.state = word;
    } else if (!field(row, word.slice(0, equals), word.slice(equals + 1))) return undefined;
  }
  return row.source !== "" && row.destination !== "" && row.replySource !== "" && row.replyDestination !== "" ? row : undefined;
}

/** Puts `name=value` into the row; false if it does not belong there. The second src= begins the reply direction. */
function field(row: ConntrackEntry, name: string, value: string): boolean {
  const reply = row.replySource !== "";
  switch (name) {
    case "src":
      if (!isAddress(value) || reply) return false;
      if (row.source === "") row.source = fromLongIpv6(value);
      else row.replySource = fromLongIpv6(value);
      return true;
    case "dst":
      if (!isAddress(value)) return false;
      if (reply) row.replyDestination = fromLongIpv6(value);
      else row.destination = fromLongIpv6(value);
      return true;
    case "sport":
    case "dport":
    case "packets":
    case "bytes":
    case "zone": {
      const number = integer(value);
      if (number === undefined) return false;
      if (name !== "zone") row[(reply ? REPLY_FIELDS : FIELDS)[name]] = number;
      else if (number !== 0) row.zone = number;
      return true;
    }
    case "zone-orig":
    case "zone-reply":
      return integer(value) !== undefined;
    case "mark":
      row.mark = value;
      return /^(?:0x[0-9a-f]{1,8}|\d{1,10})$/.test(value);
    default:
      return IGNORED.has(name) || (name === "vtag" && value !== "") || name === "vtag_orig" || name === "vtag_reply";
  }
}

function integer(word: string | undefined): number | undefined {
  return word !== undefined && /^\d{1,15}$/.test(word) ? Number(word) : undefined;
}

const isAddress = (value: string): boolean => ADDRESS.test(value) || readFamily(value, "ipv4") !== undefined;
const ADDRESS = /^(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]{0,4}:[0-9a-fA-F:]{1,38}(?:\d{0,2}(?:\.\d{1,3}){3})?)$/;
