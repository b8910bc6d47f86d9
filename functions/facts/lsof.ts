import { z } from "zod";
import { hasLetter } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { isPrompt } from "./paste.ts";
import { countsEqual, isLineCount } from "./pipe.ts";

/**
 * Programs and how many TCP sockets they hold, as lsof lists them.
 *
 *     sslh 79085 sslh 12u sock  0,9     0t0 4982348 protocol: TCP
 *     sslh 79085 sslh 13u IPv4 5009554  0t0     TCP 10.0.0.5:443->10.0.0.9:53886 (CLOSE_WAIT)
 */
const Holder = z.object({
  /** The first of its sockets that is closed by the other side or detached; else the first of all. */
  line: z.int(),
  /** As lsof cuts it: 9 characters, if nobody asked for more. "" where somebody only counted (`lsof | grep -c CLOSE_WAIT`). */
  program: z.string(),
  pid: z.int(),
  /** Sockets with a state that lsof shows: connections, and listeners. */
  named: z.int(),
  /** Among these the connections that the other side has closed and the program has not. */
  closeWait: z.int(),
  /** Sockets that carry no connection in the network namespace of lsof: made and never used, or closed by the kernel and still held. */
  detached: z.int(),
});
/** One of them with its ports, where lsof shows these as numbers. */
const Connection = z.object({
  line: z.int(),
  program: z.string(),
  /** As ss names it: "ESTAB", "SYN-SENT", … */
  state: z.string(),
  /** Its own, and that of the other side. */
  port: z.int(),
  peerPort: z.int(),
});
const Lsof = z.object({ rows: z.array(Holder), connections: z.array(Connection) });
type Holder = z.infer<typeof Holder>;

const ROW = /^(\S{1,64})\s+(\d{1,10})\s/;
const STATE = /\sTCP\s.{1,200}\(([A-Z][A-Z\d_]{2,15})\)$/;
// "10.0.0.5:30254->10.0.0.9:2379", and names in the place of the addresses
const PORTS = /\sTCP\s\S{1,253}:(\d{1,5})->\S{1,253}:(\d{1,5})\s\(/;
const DETACHED = /\s(?:protocol: TCP(?:v6)?|can't identify protocol(?: \(.{1,60}\))?)$/;
const FRAME = /^(?:COMMAND\s+PID\s.*|lsof: (?:WARNING|status|no pwd).*|\s*Output information may be incomplete\.|\.{3,})$/;
// the descriptor: "12u" in front of the type
const DESCRIPTOR = /\s(\d{1,9})[urwW-]?\s{1,12}(?:sock|IPv[46])\s/;
/** `… | awk '{print $10}' | sort | uniq -c`: "3911 (CLOSE_WAIT)", and what else stood in that column. */
const COUNTED_STATE = /^(\d{1,9}) \(?([A-Z][A-Z\d_]{2,15})\)?$/;
const COUNTED_OTHER = /^\d{1,9}(?: \S{1,300})?$/;
/** `lsof -nPi | grep CLOSE_WAIT | awk '{print $1, $2}' | sort | uniq -c`: "3911 java 3121". */
const COUNTED_PROGRAM = /^(\d{1,9}) ([A-Za-z][^\s:>]{0,63})(?: (\d{1,10}))?$/;
const MAX_HOLDERS = 10_000;
/** More connections than this prove nothing more. */
const MAX_CONNECTIONS = 10_000;

export const lsof = defineFact({
  id: "lsof",
  title: "Programs and the TCP sockets that they hold (lsof)",
  commands: [],
  recognize(argv): View | undefined {
    if (argv[0] !== "lsof" || hasLetter(argv, "t") || argv.some((word) => /^-[FhvV?]/.test(word))) return undefined;
    return { format: "text", complete: false, scope: argv.slice(1).join(" "), rank: 1 };
  },
  schema: Lsof,
  // exit code 1: one of several names was not found
  parse({ text, argv, pipe = "" }) {
    const unparsed = new UnparsedLines();
    const holders = new Map<string, Holder>();
    const seen = new Set<string>();
    const connections: z.infer<typeof Connection>[] = [];
    // asked for all files, lsof names those of a program once for each of its threads
    const counted = isLineCount(pipe) && /CLOSE_WAIT/i.test(pipe) && argv.some((word) => /^-[nPa]{0,3}[ip]/.test(word));
    const counting = countsEqual(pipe) && argv.some((word) => /^-[nPa]{0,3}[ip]/.test(word));
    const closeWaitOnly = counting && /CLOSE_WAIT/i.test(`${pipe} ${argv.join(" ")}`);
    for (const { line, text: raw } of lines(text)) {
      const content = raw.trim();
      const [, held, holding = "", id = "0"] = (closeWaitOnly ? COUNTED_PROGRAM.exec(content) : null) ?? [];
      if (held !== undefined) {
        holders.set(`${id} ${holding}`, { line, program: holding, pid: Number(id), named: Number(held), closeWait: Number(held), detached: 0 });
        continue;
      }
      if (counting && COUNTED_OTHER.test(content)) {
        const [, count, state] = COUNTED_STATE.exec(content) ?? [];
        if (state === "CLOSE_WAIT") holders.set("", { line, program: "", pid: 0, named: Number(count), closeWait: Number(count), detached: 0 });
        continue;
      }
      if (counted && /^\d{1,9}$/.test(content)) {
        holders.set("", { line, program: "", pid: 0, named: Number(content), closeWait: Number(content), detached: 0 });
        continue;
      }
      const row = ROW.exec(content);
      if (row === null) {
        if (!FRAME.test(content) && !isPrompt(raw)) unparsed.add(line, raw);
        continue;
      }
      const state = STATE.exec(content)?.[1];
      const detached = state === undefined && DETACHED.test(content);
      // files, pipes, sockets of other kinds
      if (state === undefined && !detached) continue;
      const key = `${row[2]} ${row[1]}`;
      const descriptor = DESCRIPTOR.exec(content)?.[1];
      if (descriptor !== undefined && seen.has(`${key} ${descriptor}`)) continue;
      if (descriptor !== undefined) seen.add(`${key} ${descriptor}`);
      const ports = PORTS.exec(content);
      if (ports !== null && state !== undefined && connections.length < MAX_CONNECTIONS) {
        const named = state === "ESTABLISHED" ? "ESTAB" : state.replaceAll("_", "-");
        connections.push({ line, program: row[1] as string, state: named, port: Number(ports[1]), peerPort: Number(ports[2]) });
      }
      let holder = holders.get(key);
      if (holder === undefined) {
        if (holders.size >= MAX_HOLDERS) {
          unparsed.add(line, raw);
          continue;
        }
        holder = { line, program: row[1] as string, pid: Number(row[2]), named: 0, closeWait: 0, detached: 0 };
        holders.set(key, holder);
      }
      const stuck = detached || state === "CLOSE_WAIT";
      if (stuck && holder.closeWait + holder.detached === 0) holder.line = line;
      if (detached) holder.detached++;
      else holder.named++;
      if (state === "CLOSE_WAIT") holder.closeWait++;
    }
    return unparsed.with({ rows: [...holders.values()], connections });
  },
  merge: (parts) => {
    const first = parts.filter((part) => part.sample === 1);
    return { rows: first.flatMap((part) => part.value.rows), connections: first.flatMap((part) => part.value.connections) };
  },
  whole: () => true,
});
