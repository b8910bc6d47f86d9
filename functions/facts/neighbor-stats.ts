import { z } from "zod";
import { optionValue } from "./command.ts";
import { defineFact, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { isPrompt } from "./paste.ts";
import { procNet } from "./proc-net.ts";
import { counterOf, deltas, isTimeLine, samples } from "./sampled.ts";

/**
 * Counters of the neighbour tables (ARP, NDP), summed over CPUs. The tables' limits and these numbers are the machine's: all network namespaces share them.
 *
 *     entries  allocs   destroys hash_grows lookups  hits     res_failed rcv_probes_mcast rcv_probes_ucast periodic_gc_runs forced_gc_runs unresolved_discards table_fulls
 *     00000402 00000531 0000051d 00000001   000011d1 00000477 00000109   00000000         00000000         00000000         000002f6       00000000            00000012
 */
const counters = {
  /** Entries in the table now: a level, the same on every CPU's line. */
  entries: z.int(),
  /** Entries that could not be resolved. */
  failed: z.int(),
  /** How often the table was cleaned because it had more than gc_thresh3 (or, for 5 s, gc_thresh2) entries. */
  forcedCollections: z.int(),
  /** Packets thrown away while their neighbour was not resolved. Newer kernels only. */
  unresolvedDiscards: z.int().optional(),
  /** New entries refused because the table was full. Newer kernels only (Linux 4.3 and later). */
  tableFulls: z.int().optional(),
};
const Table = z.object({
  /** The first line of values. */
  line: z.int(),
  family: z.enum(["ipv4", "ipv6"]),
  ...counters,
  failedDelta: z.int().optional(),
  forcedCollectionsDelta: z.int().optional(),
  unresolvedDiscardsDelta: z.int().optional(),
  tableFullsDelta: z.int().optional(),
});
const NeighborStats = z.object({ rows: z.array(Table) });
type Table = z.infer<typeof Table>;
type NeighborStats = z.infer<typeof NeighborStats>;
type Name = keyof typeof counters;

const COLUMNS: Readonly<Record<string, Name>> = {
  entries: "entries",
  res_failed: "failed",
  forced_gc_runs: "forcedCollections",
  forced_gc_goal_miss: "forcedCollections",
  unresolved_discards: "unresolvedDiscards",
  unresolved_disca: "unresolvedDiscards",
  table_fulls: "tableFulls",
};
const FILE = procNet("stat/(arp|ndisc)_cache");
const HEADER = /^entries\s+allocs\s+destroys(?:\s+[a-z_]{3,24}){3,16}$/;
const ROW = /^[0-9a-f]{8}(?:\s+[0-9a-f]{8}){5,16}$/;
// lnstat: names cut into columns of bars
const BARS = /^(?:[a-z_ ]{1,24}\|){1,40}$/;
const BAR_VALUES = /^(?: {0,24}\d{1,20} {0,8}\|){1,40}$/;
/** All but `-j` (JSON) and `-d` (which files there are). */
const OPTION = /^(?:-[fciskw]\S{0,200}|--(?:file|count|interval|subject|width|keys)(?:=\S{1,200})?)$/;

export const neighborStats = defineFact({
  id: "neighbor-stats",
  title: "Counters of the neighbour tables (two samples)",
  commands: [
    { argv: ["cat", "/proc/net/stat/arp_cache"], samples: 2 },
    { argv: ["cat", "/proc/net/stat/ndisc_cache"], samples: 2 },
  ],
  recognize(argv): View | undefined {
    const [program, ...rest] = argv;
    if (program === "lnstat") {
      const file = optionValue(argv, "-f", "--file");
      const family = file === "arp_cache" ? "ipv4" : file === "ndisc_cache" ? "ipv6" : undefined;
      const known = rest.every((word, i) => OPTION.test(word) || /^-[fcisw]$|^-k$|^--(?:file|count|interval|subject|width|keys)$/.test(rest[i - 1] ?? ""));
      if (family === undefined || !known) return undefined;
      return { format: "lnstat", complete: !rest.some((word) => /^(?:-k|--keys)/.test(word)), scope: family, rank: 1 };
    }
    const files = rest.filter((word) => FILE.test(word));
    if (files.length === 0 || !["cat", "head", "tail", "grep"].includes(program ?? "")) return undefined;
    const families = [...new Set(files.map((file) => (FILE.exec(file)?.[1] === "arp" ? "ipv4" : "ipv6")))];
    return { format: "proc", complete: program === "cat" && files.length === rest.length, scope: families.join(" "), rank: 2 };
  },
  schema: NeighborStats,
  parse({ text, argv, view }) {
    const unparsed = new UnparsedLines();
    const rows: Table[] = [];
    const seconds = Number(optionValue(argv, "-i", "--interval") ?? INTERVAL) || INTERVAL;
    const once = (optionValue(argv, "-c", "--count") ?? "1") === "1";
    const families = view.scope.split(" ") as Table["family"][];
    let header: string[] = [];
    let bars: string[] = [];
    /** lnstat prints the names again after every 20 lines of values. */
    let named = false;
    let table: Table | undefined;
    for (const { line, text: raw } of lines(text)) {
      const content = raw.trim();
      const barValues = view.format === "lnstat" && BAR_VALUES.test(raw);
      if (view.format === "proc" && HEADER.test(content)) {
        header = content.split(/\s+/);
        table = undefined;
      } else if (view.format === "proc" && header.length > 0 && ROW.test(content)) {
        const family = families[Math.min(rows.length, families.length - 1)] ?? "ipv4";
        const values = content.split(/\s+/).map((word) => Number.parseInt(word, 16));
        if (table === undefined) {
          table = { line, family, entries: 0, failed: 0, forcedCollections: 0 };
          rows.push(table);
        }
        add(table, header, values);
      } else if (barValues) {
        const values = raw
          .split("|")
          .slice(0, -1)
          .map((word) => counterOf(word.trim()));
        const sample: Table = { line, family: families[0] ?? "ipv4", entries: 0, failed: 0, forcedCollections: 0 };
        add(sample, bars.map(nameOfBar), values);
        // the first line tells of all time, each further one of a second of the interval before it
        if (once || table === undefined) {
          table = sample;
          rows.push(table);
        } else grow(table, sample, seconds);
        named = true;
      } else if (view.format === "lnstat" && BARS.test(raw)) {
        const cells = raw
          .split("|")
          .slice(0, -1)
          .map((cell) => cell.trim());
        // the names are written over several lines
        bars = !named && bars.length === cells.length ? bars.map((name, i) => name + (cells[i] ?? "")) : cells;
        named = false;
      } else if (!isPrompt(raw) && !isTimeLine(raw)) unparsed.add(line, raw);
    }
    // `cat FILE; sleep 10; cat FILE`: one file, and its table several times
    const [first, ...later] = families.length === 1 && view.format === "proc" ? rows : [];
    const last = later.at(-1);
    return unparsed.with({ rows: last === undefined ? rows : [since(first, last)] });
  },
  merge: mergeTables,
});

/** lnstat writes names into columns of 8 characters and 3 lines: 8 of the file's name, then 16 of the counter's. */
const nameOfBar = (name: string): string => name.slice("arp_cach".length);

function add(table: Table, header: readonly string[], values: readonly number[]): void {
  values.forEach((value, column) => {
    const title = header[column] ?? "";
    const name = Object.hasOwn(COLUMNS, title) ? COLUMNS[title] : undefined;
    if (name === "entries") table.entries = value;
    else if (name !== undefined) table[name] = (table[name] ?? 0) + value;
  });
}

/** Seconds between two lines of lnstat where the command does not say. */
const INTERVAL = 2;

/** Adds to `table` what one further line of lnstat tells. */
function grow(table: Table, sample: Table, seconds: number): void {
  table.line = sample.line;
  table.entries = sample.entries;
  for (const counter of GROWING) {
    const more = sample[counter];
    if (more !== undefined) table[`${counter}Delta`] = (table[`${counter}Delta`] ?? 0) + more * seconds;
  }
}

const GROWING = ["failed", "forcedCollections", "unresolvedDiscards", "tableFulls"] as const;

/** Of each family the newest sample of the best listing, with what it has more than the one before. */
function mergeTables(parts: readonly Part<NeighborStats>[]): NeighborStats {
  const rows = new Map<string, Table>();
  for (const { before, after } of samples(parts)) {
    for (const row of after.value.rows) {
      if (rows.has(row.family)) continue;
      rows.set(
        row.family,
        since(
          before?.value.rows.find((other) => other.family === row.family),
          row,
        ),
      );
    }
  }
  return { rows: [...rows.values()] };
}

/** The newer of two samples, with what it has more than the older one. */
const since = (old: Table | undefined, row: Table): Table => ({ ...row, ...deltas(GROWING, old, row) });
