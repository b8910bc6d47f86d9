import { z } from "zod";
import { hasLetter, operands } from "./command.ts";
import { defineFact, type Part, UnparsedLines, type View } from "./fact.ts";
import { present } from "./present.ts";
import { procNet } from "./proc-net.ts";
import { counterOf, growth, withinOneText } from "./sampled.ts";

/** As nstat names them; UdpSocketDrops is what one socket had no room for (`d` of `ss -m`, the last column of /proc/net/udp). */
const Name = z.enum(["TcpExtListenOverflows", "TcpExtListenDrops", "UdpRcvbufErrors", "Udp6RcvbufErrors", "UdpSocketDrops"]);
type Name = z.infer<typeof Name>;

/**
 * Full accept queues of a pod, and its counters of refused connections and of UDP packets without room that rose: a pod has sockets and counters of its own, which the node
 * does not show. netcheck itself looks into no pod.
 *
 *     LISTEN  65      64             0.0.0.0:8000         0.0.0.0:*
 *     tcp       65      0 0.0.0.0:8000            0.0.0.0:*               LISTEN      (netstat -tln: no limit)
 */
const Full = z.object({
  line: z.int(),
  address: z.string(),
  port: z.int(),
  process: z.string().optional(),
  /** Connections. */
  waiting: z.int(),
  /** How many may wait. With one more than that nothing is taken any more. netstat does not tell it. */
  limit: z.int().optional(),
});
const Risen = z.object({
  line: z.int(),
  name: Name,
  value: z.int(),
  /** Of UdpSocketDrops, the socket, as it is written there. */
  socket: z.string().optional(),
  /** Since the first time that it stands in the same output; above 0. */
  valueDelta: z.int(),
});
/** Every such number, for a second sample of the same command. */
const Seen = z.object({ line: z.int(), name: Name, value: z.int(), socket: z.string().optional() });
const ListenQueue = z.object({ full: z.array(Full), risen: z.array(Risen), seen: z.array(Seen) });
export type ListenQueue = z.infer<typeof ListenQueue>;

// ss spreads its columns over the width of the terminal
const LISTENER = /^[ \t]{0,8}(?:tcp[ \t]{1,8})?LISTEN[ \t]{1,100}(\d{1,9})[ \t]{1,100}(\d{1,9})[ \t]{1,100}(\S{1,64}):(\d{1,5})[ \t](.{0,400})$/gm;
const NETSTAT =
  /^[ \t]{0,8}tcp6?[ \t]{1,40}(\d{1,9})[ \t]{1,40}\d{1,9}[ \t]{1,40}(\S{1,64}):(\d{1,5})[ \t]{1,60}\S{1,70}[ \t]{1,40}LISTEN(?:[ \t].{0,400})?$/gm;
const PROCESS = /users:\(\("([^"]{1,64})",/;
const COUNTER =
  /^[ \t]{0,8}(?:(TcpExtListenOverflows|TcpExtListenDrops|Udp6?RcvbufErrors)[ \t]{1,40}(\d{1,20})(?=\s|$)|(\d{1,20}) (?:times the listen queue of a socket (overflowed)|SYNs to LISTEN sockets (?:dropped|ignored)|receive (buffer) errors))/gm;
/** A line of names, then a line of values. */
const SECTION = /^[ \t]{0,8}(TcpExt|Udp):((?:[ \t]{1,8}[A-Z]\w{1,79}){1,400})[ \t]{0,8}\r?\n[ \t]{0,8}\1:((?:[ \t]{1,8}-?\d{1,20}){1,400})[ \t]{0,8}$/gm;
/** /proc/net/udp, udp6: `1021: 00000000:1FBD 00000000:0000 07 00000000:00034000 00:00000000 00000000  1000        0 81221 2 0000000000000000 91021` */
const UDP =
  /^[ \t]{0,8}\d{1,9}: (?<address>[0-9A-F]{8,32}:[0-9A-F]{4}) [0-9A-F]{8,32}:[0-9A-F]{4} 07 (?:[0-9A-F]{2,8}[: ]){3}[0-9A-F]{8}[ ]{1,8}[0-9A-F]{8}[ ]{1,12}\d{1,10}[ ]{1,12}\d{1,10}[ ]{1,4}(?<inode>\d{1,20}) \d{1,9} [0-9a-fK]{1,20} (?<drops>\d{1,20})[ \t]{0,8}$/gm;
/** A socket of `ss -lunm`, and below it its memory. */
const UNCONN =
  /^[ \t]{0,8}(?:udp[ \t]{1,8})?UNCONN[ \t]{1,100}\d{1,12}[ \t]{1,100}\d{1,12}[ \t]{1,100}(?<address>\S{1,64}:\d{1,5})[ \t][^\n]{0,400}(?:\n[ \t]{1,40})?skmem:\([^)\n]{0,200},d(?<drops>\d{1,20})\)/gm;
const FILE = procNet("(?:netstat|snmp6?|udp6?)");
/** Rows of each kind. */
const MAX_ROWS = 100;

export const listenQueue = defineFact({
  id: "listen-queue",
  title: "Full accept queues, refused connections and UDP packets without room, of pods (pasted only)",
  commands: [],
  elsewhere: true,
  recognize(argv): View | undefined {
    const files = operands(argv);
    const isFile = (argv[0] === "cat" || argv[0] === "grep") && files.some((file) => FILE.test(file));
    const known = argv[0] === "ss" || argv[0] === "nstat" || (argv[0] === "netstat" && !hasLetter(argv, "r") && !hasLetter(argv, "i")) || isFile;
    return known ? { format: "text", complete: true, scope: argv.join(" ").slice(0, 200), rank: 1 } : undefined;
  },
  schema: ListenQueue,
  answered: () => true,
  parse({ text, argv }) {
    const lineAt = counterOfLines(text);
    const full: ListenQueue["full"] = [];
    const counters: { line: number; name: Name; value: number; valueDelta?: number }[] = [];
    if (argv[0] === "ss") {
      for (const { index, 1: waiting, 2: limit, 3: address = "", 4: port, 5: rest = "" } of text.matchAll(LISTENER)) {
        if (Number(waiting) <= Number(limit) || full.length >= MAX_ROWS) continue;
        const about = { address, port: Number(port), ...present({ process: PROCESS.exec(rest)?.[1] }) };
        full.push({ line: lineAt(index), ...about, waiting: Number(waiting), limit: Number(limit) });
      }
    } else if (argv[0] === "netstat" && !hasLetter(argv, "s")) {
      for (const { index, 1: waiting, 2: address = "", 3: port } of text.matchAll(NETSTAT)) {
        if (Number(waiting) === 0 || full.length >= MAX_ROWS) continue;
        full.push({ line: lineAt(index), address, port: Number(port), waiting: Number(waiting) });
      }
    } else if ((argv[0] === "cat" || argv[0] === "grep") && !argv.some((word) => word.endsWith("snmp6"))) {
      for (const { index, 0: both, 1: protocol = "", 2: names = "", 3: values = "" } of text.matchAll(SECTION)) {
        const line = lineAt(index + both.lastIndexOf("\n"));
        const numbers = values.trim().split(/[ \t]+/);
        names
          .trim()
          .split(/[ \t]+/)
          .forEach((word, i) => {
            const name = Name.safeParse(`${protocol}${word}`);
            if (name.success && numbers[i] !== undefined && counters.length < MAX_ROWS)
              counters.push({ line: line + 1, name: name.data, value: counterOf(numbers[i]) });
          });
      }
    } else {
      for (const { index, 1: name, 2: value, 3: count, 4: overflowed, 5: buffer } of text.matchAll(COUNTER)) {
        if (counters.length >= MAX_ROWS) break;
        const sentence: Name = overflowed !== undefined ? "TcpExtListenOverflows" : buffer !== undefined ? "UdpRcvbufErrors" : "TcpExtListenDrops";
        counters.push({ line: lineAt(index), name: (name as Name | undefined) ?? sentence, value: counterOf(value ?? count ?? "0") });
      }
    }
    const risen = withinOneText(counters).flatMap(({ valueDelta, ...row }) => (valueDelta === undefined || valueDelta <= 0 ? [] : [{ ...row, valueDelta }]));
    const seen: ListenQueue["seen"] = counters.map(({ line, name, value }) => ({ line, name, value }));
    return new UnparsedLines().with({ full, risen, seen: [...seen, ...dropsOf(argv, text)] });
  },
  merge: (parts) => ({
    full: parts.flatMap((part) => part.value.full),
    risen: [...parts.flatMap((part) => part.value.risen), ...sampledTwice(parts)],
    seen: parts.flatMap((part) => part.value.seen),
  }),
  whole: () => true,
});

/** What rose between the two samples of a command. Of one that was run in several pods it is not known which answers belong together. */
function sampledTwice(parts: readonly Part<ListenQueue>[]): ListenQueue["risen"] {
  return [...new Set(parts.map((part) => part.view.scope))].flatMap((scope) => {
    const [before, after, ...more] = parts.filter((part) => part.view.scope === scope).toSorted((one, other) => one.sample - other.sample);
    if (before?.sample !== 1 || after?.sample !== 2 || more.length > 0) return [];
    return after.value.seen.flatMap((row) => {
      const old = before.value.seen.filter((other) => other.name === row.name && other.socket === row.socket);
      const valueDelta = old.length === 1 ? growth(old[0]?.value, row.value) : undefined;
      return valueDelta === undefined || valueDelta === 0 ? [] : [{ ...row, valueDelta }];
    });
  });
}

/** What each UDP socket had no room for. A list names a socket once; in two lists it is told by its address and the number of its file. */
function dropsOf(argv: readonly string[], text: string): ListenQueue["seen"] {
  const pattern = argv[0] === "ss" ? UNCONN : argv.some((word) => /\/udp6?$/.test(word)) ? UDP : undefined;
  if (pattern === undefined) return [];
  const lineAt = counterOfLines(text);
  const rows = [...text.matchAll(pattern)].map(({ index, 0: all, groups = {} }) => ({
    line: lineAt(index + all.length),
    name: "UdpSocketDrops" as const,
    value: counterOf(groups["drops"] ?? "0"),
    socket: `${groups["address"] ?? ""} ${groups["inode"] ?? ""}`.trim(),
  }));
  const named = new Map<string, number>();
  for (const { socket } of rows) named.set(socket, (named.get(socket) ?? 0) + 1);
  return rows.filter(({ socket }) => named.get(socket) === 1).slice(0, MAX_ROWS);
}

/** Numbers of the lines of a text at growing offsets; the text is gone through once. */
function counterOfLines(text: string): (offset: number) => number {
  let [line, seen] = [1, 0];
  return (offset) => {
    for (let at = text.indexOf("\n", seen); at !== -1 && at < offset; at = text.indexOf("\n", at + 1)) {
      line++;
      seen = at + 1;
    }
    return line;
  };
}
