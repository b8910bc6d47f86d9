import { z } from "zod";
import { hasLetter, hasOption } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { type Metric, metricsAs, metricsView } from "./node-metrics.ts";
import { isShown, ranked } from "./parts.ts";
import { isPrompt } from "./paste.ts";
import { procNet } from "./proc-net.ts";

/**
 * How many sockets there are, and how much memory they hold.
 *
 *     TCP:   2 (estab 0, closed 1, orphaned 0, timewait 1)                      (ss -s)
 *     TCP: inuse 66 orphan 0 tw 9 alloc 77 mem 6                                (/proc/net/sockstat)
 *     TCP       2208     66       6   no     304   yes  kernel      y  y …      (/proc/net/protocols: sockets, pages, whether the kernel saves memory)
 */
const Summary = z.object({
  line: z.int(),
  /** "tcp", "tcp6", "udp", "udp6", "raw", "frag", …; "all" for the sockets of every kind. */
  protocol: z.string(),
  /** Sockets in use; of TCP those with a connection or listening, in this network namespace (/proc only, IPv4 and IPv6 apart). */
  inUse: z.int().optional(),
  /** ss only. */
  established: z.int().optional(),
  /** Sockets of TCP that a program holds and that carry no connection, without those in TIME-WAIT (ss only). */
  closed: z.int().optional(),
  /** Sockets of TCP that no program holds any more. */
  orphaned: z.int().optional(),
  timeWait: z.int().optional(),
  /** Sockets of TCP that were made and not yet given back, of IPv4 and IPv6 and of all network namespaces. */
  allocated: z.int().optional(),
  /** Pages (4 KiB on most machines) of buffers, of all network namespaces. Of "frag" and "frag6" bytes. */
  memory: z.int().optional(),
});
const SocketSummary = z.object({ rows: z.array(Summary) });
type Summary = z.infer<typeof Summary>;

const FILE = procNet("sockstat(6?)");
const PROTOCOLS = procNet("protocols");
const PROTOCOLS_HEADER = /^protocol\s+size\s+sockets\s+memory\s+press\b/;
// the memory of a kind that has no limit is -1, and its pressure "NI"
const PROTOCOL = /^([A-Za-z][\w-]{0,31})\s+\d{1,9}\s+(\d{1,12})\s+(-?\d{1,15})\s+(yes|no|NI)\s+\d{1,9}\s+(?:yes|no)\s+\S{1,64}(?:\s+[yn]){1,40}$/;
const SOCKSTAT = /^([A-Z]{3,8}6?):((?:\s+[a-z]{2,8}\s+-?\d{1,15}){1,6})$/;
const SOCKETS = /^sockets:\s+used\s+(\d{1,12})$/;
const TOTAL = /^Total:\s+(\d{1,12})(?:\s+\(kernel\s+\d{1,12}\))?$/;
// ss: "TCP:   2 (estab 0, closed 1, orphaned 0, timewait 1)"; older: "(estab 4, closed 0, orphaned 0, synrecv 0, timewait 0/0), ports 0"
const TCP = /^TCP:\s+(\d{1,12})\s+\(((?:[a-z]{3,12}\s+\d{1,12}(?:\/\d{1,12})?(?:,\s*)?){1,8})\)(?:,\s*ports\s+\d{1,9})?$/;
const TABLE_HEADER = /^Transport\s+Total\s+IP\s+IPv6$/;
const TABLE = /^([A-Z]{2,8}|\*)\s+(\d{1,12}|-)\s+(\d{1,12}|-)\s+(\d{1,12}|-)$/;
const FIELDS: Readonly<Record<string, keyof Summary>> = {
  inuse: "inUse",
  orphan: "orphaned",
  tw: "timeWait",
  alloc: "allocated",
  mem: "memory",
  memory: "memory",
  estab: "established",
  closed: "closed",
  orphaned: "orphaned",
  timewait: "timeWait",
};

export const socketSummary = defineFact({
  id: "socket-summary",
  title: "Sockets by kind, and their memory",
  commands: [{ argv: ["cat", "/proc/net/sockstat"] }, { argv: ["ss", "-s"] }],
  recognize(argv): View | undefined {
    const [program, ...rest] = argv;
    // with -s, ss prints the sockets too if it is asked for some
    if (program === "ss") return hasLetter(argv, "s") || hasOption(argv, "--summary") ? { format: "ss", complete: true, scope: "ss", rank: 1 } : undefined;
    const metrics = metricsView(argv, "metrics");
    if (metrics !== undefined) return metrics;
    if (["cat", "head", "grep", "egrep"].includes(program ?? "") && PROTOCOLS.test(rest.at(-1) ?? ""))
      return { format: "protocols", complete: false, scope: "protocols", rank: 0 };
    const files = rest.filter((word) => FILE.test(word));
    if (files.length === 0 || !["cat", "head", "tail", "grep"].includes(program ?? "")) return undefined;
    const scope = files.every((file) => file.endsWith("6")) ? "ipv6" : "";
    return { format: "sockstat", complete: program === "cat" && files.length === rest.length, scope, rank: 2 };
  },
  schema: SocketSummary,
  parse({ text, argv, view }) {
    const unparsed = new UnparsedLines();
    const rows: Summary[] = [];
    // `cat /proc/sys/net/ipv4/tcp_mem /proc/net/sockstat`: lines of the other files are not this fact's
    const mixed = argv[0] === "cat" && argv.slice(1).some((word) => !word.startsWith("-") && !FILE.test(word));
    const metrics = view.format === "metrics";
    for (const { line, text: raw } of lines(metrics ? metricsAs(text, fieldLine) : text)) {
      const content = raw.trim().replace(/^\/[\w/]{1,60}:/, "");
      const total = (view.format === "ss" ? TOTAL : SOCKETS).exec(content)?.[1];
      const stat = view.format === "sockstat" || metrics ? SOCKSTAT.exec(content) : null;
      const tcp = view.format === "ss" ? TCP.exec(content) : null;
      const protocol = view.format === "protocols" ? PROTOCOL.exec(content) : null;
      // one number for IPv4 and IPv6, which the line of each repeats; the sockets are counted in other ways than /proc/net/sockstat does
      if (protocol !== null) {
        const memory = Number(protocol[3]);
        if (/^(?:TCP|UDP)$/.test(protocol[1] as string) && memory >= 0) rows.push({ line, protocol: (protocol[1] as string).toLowerCase(), memory });
      } else if (view.format === "protocols" && PROTOCOLS_HEADER.test(content)) continue;
      else if (total !== undefined) rows.push({ line, protocol: "all", inUse: Number(total) });
      else if (stat !== null) rows.push({ line, protocol: (stat[1] as string).toLowerCase(), ...fields((stat[2] as string).trim()) });
      else if (tcp !== null) {
        const row: Summary = {
          line,
          protocol: "tcp",
          ...fields(
            (tcp[2] as string)
              .replaceAll(",", " ")
              .replace(/(\d)\/\d+/g, "$1")
              .trim(),
          ),
        };
        // ss counts what waits in TIME-WAIT among all and among the closed
        const waiting = row.timeWait ?? 0;
        row.allocated = Math.max(0, Number(tcp[1]) - waiting);
        if (row.closed !== undefined) row.closed = Math.max(0, row.closed - waiting);
        rows.push(row);
      } else if (!(view.format === "ss" && (TABLE_HEADER.test(content) || TABLE.test(content))) && !mixed && !isPrompt(raw)) unparsed.add(line, raw);
    }
    return unparsed.with({ rows });
  },
  // /proc first: it has the memory; a kind that it lacks comes from ss, and what only ss tells is a row of its own
  merge(parts) {
    return { rows: ranked(parts).flatMap((part) => part.value.rows) };
  },
  whole: (parts) => isShown(parts),
});

/** `node_sockstat_TCP_mem 7` of node_exporter, as /proc/net/sockstat says it. */
function fieldLine({ name, value }: Metric): string | undefined {
  const [, protocol, field] = /^sockstat_([A-Z]{3,8}6?)_([a-z]{2,8})$/.exec(name) ?? [];
  return protocol === undefined ? undefined : `${protocol}: ${field} ${value}`;
}

/** `inuse 66 orphan 0` as fields. */
function fields(text: string): Partial<Omit<Summary, "line" | "protocol">> {
  const words = text.split(/\s+/);
  const result: Record<string, number> = {};
  for (let i = 0; i + 1 < words.length; i += 2) {
    const name = words[i] as string;
    const field = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined;
    const value = Number(words[i + 1]);
    if (field !== undefined && Number.isSafeInteger(value)) result[field] = Math.max(0, value);
  }
  return result;
}
