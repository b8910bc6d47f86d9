import { z } from "zod";
import { hasLetter } from "./command.ts";
import { defineFact, type Part, UnparsedLines, type View } from "./fact.ts";
import { present } from "./present.ts";
import { counterOf, growth, withinOneText } from "./sampled.ts";

/** As nstat names them. */
const Name = z.enum(["TcpExtListenOverflows", "TcpExtListenDrops", "UdpRcvbufErrors"]);
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
  /** Since the first time that it stands in the same output; above 0. */
  valueDelta: z.int(),
});
/** Every such number, for a second sample of the same command. */
const Seen = z.object({ line: z.int(), name: Name, value: z.int() });
const ListenQueue = z.object({ full: z.array(Full), risen: z.array(Risen), seen: z.array(Seen) });
export type ListenQueue = z.infer<typeof ListenQueue>;

// ss spreads its columns over the width of the terminal
const LISTENER = /^[ \t]{0,8}(?:tcp[ \t]{1,8})?LISTEN[ \t]{1,100}(\d{1,9})[ \t]{1,100}(\d{1,9})[ \t]{1,100}(\S{1,64}):(\d{1,5})[ \t](.{0,400})$/gm;
const NETSTAT =
  /^[ \t]{0,8}tcp6?[ \t]{1,40}(\d{1,9})[ \t]{1,40}\d{1,9}[ \t]{1,40}(\S{1,64}):(\d{1,5})[ \t]{1,60}\S{1,70}[ \t]{1,40}LISTEN(?:[ \t].{0,400})?$/gm;
const PROCESS = /users:\(\("([^"]{1,64})",/;
const COUNTER =
  /^[ \t]{0,8}(?:(TcpExtListenOverflows|TcpExtListenDrops|UdpRcvbufErrors)[ \t]{1,40}(\d{1,20})[ \t]|(\d{1,20}) (?:times the listen queue of a socket (overflowed)|SYNs to LISTEN sockets (?:dropped|ignored)|receive (buffer) errors))/gm;
/** A line of names, then a line of values. */
const SECTION = /^[ \t]{0,8}(TcpExt|Udp):((?:[ \t]{1,8}[A-Z]\w{1,79}){1,400})[ \t]{0,8}\r?\n[ \t]{0,8}\1:((?:[ \t]{1,8}-?\d{1,20}){1,400})[ \t]{0,8}$/gm;
const FILE = /^\/proc\/(?:\d{1,10}\/|self\/)?net\/(?:netstat|snmp)$/;
/** Rows of each kind. */
const MAX_ROWS = 100;

export const listenQueue = defineFact({
  id: "listen-queue",
  title: "Full accept queues, refused connections and UDP packets without room, of pods (pasted only)",
  commands: [],
  elsewhere: true,
  recognize(argv): View | undefined {
    const files = argv.slice(1).filter((word) => !word.startsWith("-"));
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
    } else if (argv[0] === "cat" || argv[0] === "grep") {
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
    return new UnparsedLines().with({ full, risen, seen: counters.map(({ line, name, value }) => ({ line, name, value })) });
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
      const old = before.value.seen.filter((other) => other.name === row.name);
      const valueDelta = old.length === 1 ? growth(old[0]?.value, row.value) : undefined;
      return valueDelta === undefined || valueDelta === 0 ? [] : [{ ...row, valueDelta }];
    });
  });
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
