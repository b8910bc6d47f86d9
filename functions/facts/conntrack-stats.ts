import { z } from "zod";
import { isPromptLine } from "./command.ts";
import { defineFact, lines, type Part, type Row, UnparsedLines, type View } from "./fact.ts";
import { type Metric, metricsAs, metricsView } from "./node-metrics.ts";
import { isShown } from "./parts.ts";
import { procNet } from "./proc-net.ts";
import { deltas, samples } from "./sampled.ts";

/**
 * Counters of connection tracking since boot, per CPU.
 *
 *     cpu=0   	found=0 invalid=8 insert=0 insert_failed=0 drop=0 early_drop=0 error=0 search_restart=0 clash_resolve=0 chaintoolong=0
 *     cpu=1   	found=0 invalid=6 insert=0 insert_failed=0 drop=0 early_drop=0 error=0 search_restart=0 clash_resolve=0 chaintoolong=0
 */
const counters = {
  /** Lookups that found an entry. Newer kernels no longer count it. */
  found: z.int().optional(),
  /** Packets that belong to no connection and cannot begin one. */
  invalid: z.int().optional(),
  insert: z.int().optional(),
  /** Entries that lost a race against one with the same tuple. */
  insertFailed: z.int().optional(),
  /** Packets dropped because no entry could be made: table full, no memory, lost race. */
  drop: z.int().optional(),
  /** Entries thrown out to make room. */
  earlyDrop: z.int().optional(),
  error: z.int().optional(),
  searchRestart: z.int().optional(),
  clashResolve: z.int().optional(),
  chainTooLong: z.int().optional(),
};
const Cpu = z.object({ line: z.int(), cpu: z.int(), ...counters });
const Totals = z.object({
  line: z.int(),
  /** True if there were two samples, so that the deltas mean something. */
  sampled: z.boolean(),
  /** Between the samples, where known. */
  seconds: z.number().optional(),
  ...counters,
  invalid: z.int(),
  insertFailed: z.int(),
  drop: z.int(),
  earlyDrop: z.int(),
  /** Growth between the samples; left out without a second sample, or if the counters were reset between. */
  invalidDelta: z.int().optional(),
  insertFailedDelta: z.int().optional(),
  dropDelta: z.int().optional(),
  earlyDropDelta: z.int().optional(),
  searchRestartDelta: z.int().optional(),
});
const ConntrackStats = z.object({
  /** None for the form without CPUs. */
  rows: z.array(Cpu),
  /** One row, over all CPUs. None if the table of counters was not there. */
  totals: z.array(Totals),
  /** Entries in the table (`conntrack -C`; the kernel's file and the form without CPUs say so, too). */
  counts: z.array(z.object({ line: z.int(), count: z.int() })),
});
type Cpu = z.infer<typeof Cpu>;
type Totals = z.infer<typeof Totals>;
type ConntrackStats = z.infer<typeof ConntrackStats>;
type Counter = keyof typeof counters;
type Counts = Omit<Cpu, "line" | "cpu">;

/** Names of all versions, in `conntrack -S` and in /proc. */
const NAMES: Readonly<Record<string, Counter>> = {
  found: "found",
  invalid: "invalid",
  insert: "insert",
  insert_failed: "insertFailed",
  drop: "drop",
  early_drop: "earlyDrop",
  error: "error",
  icmp_error: "error",
  search_restart: "searchRestart",
  clash_resolve: "clashResolve",
  clashres: "clashResolve",
  chaintoolong: "chainTooLong",
  chainlength: "chainTooLong",
};
/** Counted once, or not counted any more. `(null)`: an older tool has no name for what a newer kernel counts. */
const IGNORED = new Set("entries searched new ignore delete delete_list expect_new expect_create expect_delete (null)".split(" "));
/** Those that every version has. */
const FOUR = ["invalid", "insertFailed", "drop", "earlyDrop"] as const;
const COUNTERS = Object.keys(counters) as Counter[];
const CPU_LINE = /^cpu=(\d{1,5})\s+(\S.*)$/;
const WORD = /^([a-z_]{2,20}|\(null\))=(\d{1,15})$/;
const VERTICAL = /^([a-z_]{2,20}|\(null\))\s+(\d{1,15})$/;
// `| column -t` widens the gaps
const HEX_ROW = /^[0-9a-f]{8}(?:\s{1,16}[0-9a-f]{8}){10,24}$/;
const FILES = procNet("stat/(?:nf|ip)_conntrack");

export const conntrackStats = defineFact({
  id: "conntrack-stats",
  title: "Counters of connection tracking (two samples)",
  commands: [
    { argv: ["conntrack", "-S"], samples: 2, modules: ["nf_conntrack", "nf_conntrack_netlink"] },
    // where the tool is not installed
    { argv: ["cat", "/proc/net/stat/nf_conntrack"], samples: 2 },
  ],
  recognize(argv): View | undefined {
    if (argv[0] === "cat" && argv.length === 2 && FILES.test(argv[1] as string)) return { format: "proc", complete: true, scope: "", rank: 1 };
    if (argv[0] === "conntrack" && argv.length === 2 && (argv[1] === "-C" || argv[1] === "--count")) {
      return { format: "count", complete: true, scope: "count", rank: 1 };
    }
    const metrics = metricsView(argv, "metrics");
    if (metrics !== undefined) return metrics;
    if (argv[0] !== "conntrack" || !argv.some((word) => word === "-S" || word === "--stats")) return undefined;
    return { format: "conntrack", complete: argv.length === 2, scope: "", rank: 2 };
  },
  schema: ConntrackStats,
  parse({ text, view }) {
    const unparsed = new UnparsedLines();
    let rows: Cpu[] = [];
    // people paste two samples into one text: the CPUs, the names, or the file's header, begin again
    let earlier: Totals | undefined;
    let cpus: number | undefined;
    let counts: ConntrackStats["counts"] = [];
    let vertical: (Counts & Row) | undefined;
    let seen = new Set<string>();
    let header: (Counter | undefined)[] | undefined;
    // `| grep -o 'insert_failed=[0-9]*'`: CPUs without a number; what else is printed (the time, a prompt) parts the samples
    const bare: Cpu[][] = [];
    let open = false;
    for (const { line, text: content } of lines(view.format === "metrics" ? metricsAs(text, counterLine) : text)) {
      const first = content.trimStart();
      const single = WORD.test(first) ? cpuRow(`cpu=0 ${first}`, line) : undefined;
      if (single !== undefined) {
        if (!open) bare.push([]);
        bare.at(-1)?.push(single);
        open = true;
        continue;
      }
      open = false;
      if (view.format === "count" && /^\d{1,10}$/.test(first)) counts.push({ line, count: Number(first) });
      else if (view.format === "proc" && first.startsWith("entries")) {
        header = headerOf(first);
        if (rows.length > 0) {
          earlier ??= totalsOf(rows);
          cpus ??= rows.length;
          rows = [];
        }
      } else if (header !== undefined && HEX_ROW.test(first)) {
        // the same for every CPU
        if (rows.length === 0) counts = [{ line, count: Number.parseInt(first, 16) }];
        rows.push(hexRow(first, header, line, rows.length));
      } else if (CPU_LINE.test(first)) {
        const row = cpuRow(first, line);
        if (row === undefined) unparsed.add(line, content);
        else {
          if (rows.some((other) => other.cpu === row.cpu)) {
            earlier ??= totalsOf(rows);
            rows = [];
          }
          rows.push(row);
        }
      } else {
        const pair = VERTICAL.exec(first);
        const name = pair?.[1] ?? "";
        if (pair !== null && (Object.hasOwn(NAMES, name) || IGNORED.has(name))) {
          if (seen.has(name) && name !== "(null)") {
            earlier ??= vertical === undefined ? undefined : totalsOf([vertical]);
            vertical = undefined;
            seen = new Set();
          }
          seen.add(name);
          vertical ??= { line };
          if (name === "entries") counts = [{ line, count: Number(pair[2]) }];
          // of the lines of one sample, the one that tells the most
          if (name === "insert_failed") vertical.line = line;
          const counter = Object.hasOwn(NAMES, name) ? NAMES[name] : undefined;
          if (counter !== undefined) vertical[counter] = Number(pair[2]);
        } else if (!isPromptLine(content.slice(0, 400))) unparsed.add(line, content);
      }
    }
    const [before, after] = [bare[0], bare.at(-1)];
    if (rows.length === 0 && before !== undefined && after !== undefined) {
      // a filter may show another number of lines each time
      const alike = before !== after && before.length === after.length;
      const now = totalsOf(after);
      const totals = alike ? grown(totalsOf(before), now) : now;
      // what was not shown did not stand still
      for (const counter of FOUR) if (after[0]?.[counter] === undefined) delete totals[`${counter}Delta`];
      return unparsed.with({ rows: after.map((row, cpu) => ({ ...row, cpu })), totals: [totals], counts });
    }
    const [last] = rows.length > 0 ? [totalsOf(rows)] : vertical === undefined ? [] : [totalsOf([vertical])];
    // a file that is cut, the second time, has other CPUs
    const unlike = cpus !== undefined && cpus !== rows.length;
    const totals = last === undefined ? [] : [earlier === undefined || unlike ? last : grown(earlier, last)];
    // a search may show some of them only: the row says which
    if (view.format === "metrics" && vertical !== undefined) rows = [{ ...vertical, cpu: 0 }];
    return unparsed.with({ rows, totals, counts });
  },
  merge: mergeStats,
  whole: (parts) => isShown(parts),
});

/** `node_nf_conntrack_stat_insert_failed 7` of node_exporter, as older kernels say it. */
const counterLine = ({ name, value }: Metric): string | undefined =>
  name.startsWith("nf_conntrack_stat_") ? `${name.slice("nf_conntrack_stat_".length)} ${value}` : undefined;

/** `cpu=0 found=0 …`; undefined if a word is not a counter we know. */
function cpuRow(content: string, line: number): Cpu | undefined {
  const [, cpu, rest] = CPU_LINE.exec(content) as unknown as [string, string, string];
  const row: Cpu = { line, cpu: Number(cpu) };
  for (const word of rest.split(/\s+/, 64)) {
    const [, name, value] = WORD.exec(word) ?? [];
    if (name === undefined || !(Object.hasOwn(NAMES, name) || IGNORED.has(name))) return undefined;
    const counter = Object.hasOwn(NAMES, name) ? NAMES[name] : undefined;
    if (counter !== undefined) row[counter] = Number(value);
  }
  return row;
}

/** The counters of the columns, or undefined if a column has a name that no kernel uses. */
function headerOf(content: string): (Counter | undefined)[] | undefined {
  const names = content.split(/\s+/, 64);
  if (!names.every((name) => Object.hasOwn(NAMES, name) || IGNORED.has(name))) return undefined;
  return names.map((name) => (Object.hasOwn(NAMES, name) ? NAMES[name] : undefined));
}

function hexRow(content: string, header: readonly (Counter | undefined)[], line: number, cpu: number): Cpu {
  const row: Cpu = { line, cpu };
  content.split(/\s+/, 64).forEach((word, column) => {
    const counter = header[column];
    if (counter !== undefined) row[counter] = Number.parseInt(word, 16);
  });
  return row;
}

/** Sums over CPUs. A counter that no CPU shows stays out, except the four that every version has. */
function totalsOf(rows: readonly (Counts & Row)[]): Totals {
  const first = rows[0] as Row;
  const totals: Totals & { output?: number } = { line: first.line, sampled: false, invalid: 0, insertFailed: 0, drop: 0, earlyDrop: 0 };
  if (first.output !== undefined) totals.output = first.output;
  for (const counter of COUNTERS) {
    for (const row of rows) {
      const count = row[counter];
      if (count !== undefined) totals[counter] = (totals[counter] ?? 0) + count;
    }
  }
  return totals;
}

/** The newest sample of the best format, with what grew since the one before. */
function mergeStats(parts: readonly Part<ConntrackStats>[]): ConntrackStats {
  const counts = parts.flatMap((part) => part.value.counts);
  const [pair] = samples(
    parts.filter((part) => part.view.format !== "count"),
    true,
  );
  if (pair === undefined) return { rows: [], totals: [], counts };
  const { before, after } = pair;
  const [old] = before?.value.totals ?? [];
  const [now] = after.value.totals;
  // what one of them lacks would look like growth of the sum
  const unlike =
    before !== undefined && (before.complete === after.complete ? before.value.rows.length !== after.value.rows.length : shapeOf(before) !== shapeOf(after));
  if (before === undefined || old === undefined || now === undefined || unlike) return { ...after.value, counts };
  const totals = grown(old, now);
  const shown = (part: Part<ConntrackStats>, counter: Counter): boolean =>
    part.value.rows.length === 0 || part.value.rows.some((row) => row[counter] !== undefined);
  for (const counter of FOUR) if (!shown(before, counter) || !shown(after, counter)) delete totals[`${counter}Delta`];
  const seconds = after.at === undefined || before.at === undefined ? undefined : Math.round((after.at - before.at) * 1000) / 1000;
  if (seconds !== undefined && seconds > 0) totals.seconds = seconds;
  return { rows: after.value.rows, totals: [totals], counts };
}

/** Which counters were read of each CPU; of counters without a CPU nothing that two samples have in common. */
const shapeOf = (part: Part<ConntrackStats>): string =>
  part.value.rows.length === 0 ? `sample ${part.sample}` : part.value.rows.map((row) => Object.keys(row).toSorted().join(" ")).join("\n");

/** `now` with what it has more than `old`; a counter that went down was reset between. */
const grown = (old: Totals, now: Totals): Totals => ({
  ...now,
  sampled: true,
  // left out of the first sample, it was zero
  ...deltas([...FOUR, "searchRestart"], { searchRestart: 0, ...old }, now),
});
