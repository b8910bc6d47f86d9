import { z } from "zod";
import { defineFact, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { type Metric, metricsAs, metricsView } from "./node-metrics.ts";
import { isPrompt } from "./paste.ts";
import { present } from "./present.ts";
import { procNet } from "./proc-net.ts";
import { deltas, isTimeLine, samples } from "./sampled.ts";

/**
 * What each CPU took from the network cards, since the machine was started; where sar tells, in a second. All network namespaces of the machine share these numbers.
 *
 *     00017fb4 00000000 0000001a 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
 */
const Cpu = z.object({
  line: z.int(),
  /** As the kernel numbers it where it tells (Linux 5.10 and later), else the number of the line: CPUs that are offline have none. */
  cpu: z.int(),
  /** Packets. The counters have 32 bits and start again at 0. */
  processed: z.int(),
  /** Packets dropped because the backlog (net.core.netdev_max_backlog) was full. */
  dropped: z.int(),
  /** How often the work was broken off with packets left, because the budget or the time was used up. */
  timeSqueeze: z.int(),
  /** Packets dropped because one flow took more than its share of the backlog. */
  flowLimit: z.int().optional(),
  processedDelta: z.int().optional(),
  droppedDelta: z.int().optional(),
  timeSqueezeDelta: z.int().optional(),
  flowLimitDelta: z.int().optional(),
});
const Softnet = z.object({ rows: z.array(Cpu) });
type Cpu = z.infer<typeof Cpu>;
type Softnet = z.infer<typeof Softnet>;

const FILE = procNet("softnet_stat");
// 9 columns before Linux 2.6.35, 15 since 5.10 (the 13th is the CPU), 13 from 5.14 of some vendors
const ROW = /^(?:[0-9a-f]{8} {1,4}){8,19}[0-9a-f]{8}$/;
const DECIMAL_ROW = /^(?:\d{1,10} ){8,19}\d{1,10}$/;
/** `awk '{for (i=1; i<=NF; i++) printf strtonum("0x" $i) …}'`: all columns, as decimal numbers. */
const TO_DECIMAL = /strtonum\( ?["']?0x["']? ?\$i ?\)/;

/** A script in wide use, which prints a table with a heading. */
const SCRIPT = /^(?:.{0,400}\/)?softnet(?:_?stat)?\.sh$/;
/** Its columns; others who print the file as a table name some of them otherwise: "cpu processed dropped time_squeeze". */
const COLUMNS = "cpu total dropped squeezed collision rps flow_limit".split(" ");
const NAMES = {
  processed: /^(?:total|processed|packets)$/,
  dropped: /^drop(?:s|ped)?$/,
  timeSqueeze: /^(?:time_?)?squeezed?$/,
  flowLimit: /^flow_?limit(?:_count)?$/,
};
const TABLE_ROW = /^\d{1,5}(?: \d{1,10}){2,11}$/;

export const softnet = defineFact({
  id: "softnet",
  title: "Packets that each CPU took, dropped and put off (two samples)",
  commands: [{ argv: ["cat", "/proc/net/softnet_stat"], samples: 2 }],
  recognize(argv): View | undefined {
    const [program, ...rest] = argv;
    // without an interval it tells of the whole day, with a file of another one
    if (
      program === "sar" &&
      rest.some((word) => /^(?:[A-Z,]{0,40},)?(?:SOFT|ALL)(?:,[A-Z,]{0,40})?$/.test(word)) &&
      rest.some((word) => /^\d{1,5}$/.test(word))
    )
      return rest.some((word) => /^-[fo]/.test(word)) ? undefined : { format: "sar", complete: false, scope: "", rank: 0 };
    if (/^[gm]?awk$/.test(program ?? "") && rest.some((word) => FILE.test(word)))
      return rest.some((word) => TO_DECIMAL.test(word))
        ? // a condition before the braces leaves lines out
          { format: "decimal", complete: rest.some((word) => word.startsWith("{")), scope: "", rank: 0 }
        : printed(rest.join(" ")) === undefined
          ? undefined
          : { format: "columns", complete: false, scope: "", rank: 0 };
    const metrics = metricsView(argv, "metrics");
    if (metrics !== undefined) return metrics;
    const script = /^(?:ba|da)?sh$/.test(program ?? "") ? rest[0] : program;
    if (SCRIPT.test(script ?? "")) return { format: "table", complete: false, scope: "", rank: 0 };
    if (!["cat", "head", "tail", "grep"].includes(program ?? "") || !rest.some((word) => FILE.test(word))) return undefined;
    return { format: "proc", complete: program === "cat" && rest.length === 1, scope: "", rank: 1 };
  },
  schema: Softnet,
  parse({ text, argv, view, pipe = "" }) {
    const decimal = view.format === "decimal" || TO_DECIMAL.test(pipe);
    const unparsed = new UnparsedLines();
    if (view.format === "sar") return unparsed.with({ rows: readSar(text) });
    const picked = view.format === "columns" ? printed(argv.join(" ")) : /^[gm]?awk /.test(pipe) && !decimal ? printed(pipe) : undefined;
    if (picked !== undefined) return unparsed.with({ rows: readPicked(text, picked, unparsed) });
    const metrics = view.format === "metrics";
    const columns = view.format === "table" || metrics;
    // a loop prints the file again and again, often with the time in between
    const tables: Cpu[][] = [];
    let rows: Cpu[] = [];
    let labelled = false;
    let names: readonly string[] = COLUMNS;
    for (const { line, text: content } of lines(metrics ? metricsAs(text, cpuLine) : text)) {
      const words = content.trim().split(/\s+/, 24);
      const heading = columns ? headingOf(words) : undefined;
      names = heading ?? names;
      if ((columns ? TABLE_ROW : decimal ? DECIMAL_ROW : ROW).test(words.join(" "))) {
        const all = words.map((word) => Number.parseInt(word, columns || decimal ? 10 : 16));
        const of = (counter: keyof typeof NAMES, at: number): number | undefined => all[columns ? names.findIndex((name) => NAMES[counter].test(name)) : at];
        const [processed = 0, dropped = 0, timeSqueeze = 0] = [of("processed", 0), of("dropped", 1), of("timeSqueeze", 2)];
        const flowLimit = of("flowLimit", 10);
        const told = all[columns ? 0 : 12];
        if (rows.length === 0 || (told !== undefined && told <= (rows.at(-1) as Cpu).cpu)) {
          rows = [];
          tables.push(rows);
        }
        rows.push({ line, cpu: told ?? rows.length, processed, dropped, timeSqueeze, ...present({ flowLimit }) });
      } else {
        if (!metrics) rows = [];
        if (!isTimeLine(content) && !isPrompt(content) && heading === undefined) {
          if (tables.length === 1 && LABEL.test(content)) labelled = true;
          unparsed.add(line, content);
        }
      }
    }
    return unparsed.with({ rows: lastOf(tables, labelled) });
  },
  merge: mergeCpus,
});

/** The names of a table's columns, if this is a heading. */
function headingOf(words: readonly string[]): string[] | undefined {
  const names = words.map((word) => word.toLowerCase());
  return names[0] === "cpu" && names.some((name) => NAMES.dropped.test(name)) ? names : undefined;
}

/** Between two tables: whose the next one is, `### node-b`; what tells of time names nobody. */
const LABEL = /^(?!.*(?:\d:\d\d|\d ?(?:s|secs?|seconds?|m|mins?|minutes?)\b|\b(?:later|after|again|sample|second|run|sleep|now|then)\b)).*[A-Za-z]{2}/i;

/** `node_softnet_dropped_total{cpu="3"} 7` of node_exporter with the CPU's other numbers, as the script says it. */
function cpuLine({ name, labels, value }: Metric, all: readonly Metric[]): string | undefined {
  const of = (counter: string): number => all.find((other) => other.name === counter && other.labels["cpu"] === labels["cpu"])?.value ?? 0;
  return name === "softnet_dropped_total" ? `${labels["cpu"]} ${of("softnet_processed_total")} ${value} ${of("softnet_times_squeezed_total")} 0` : undefined;
}

/** A column of the file, and how it was printed. */
interface Picked {
  readonly column: number;
  readonly decimal: boolean;
}
const PICKED = /strtonum\( ?["']?0x["']? ?\$(\d{1,2}) ?\)|\$(\d{1,2})/g;

/** The columns that an awk program prints of every line, if the second one, of dropped packets, is among them: `{print $1, $2}`, `{print strtonum("0x"$2)}`. */
function printed(program: string): Picked[] | undefined {
  const [, list] = /\{ ?printf? ?([^{}]{1,400})\}/.exec(program) ?? [];
  const found = [...(list ?? "").matchAll(PICKED)].map(([, decimal, plain]) => ({ column: Number(decimal ?? plain), decimal: decimal !== undefined }));
  return found.some(({ column }) => column === 2) ? found : undefined;
}

/**
 * A line for each CPU, and of a loop one for each turn. What else the program prints, such as the CPU's name and those of the columns, stands in front or between:
 * `cpu0 dropped=12 squeezed=3`.
 */
function readPicked(text: string, picked: readonly Picked[], unparsed: UnparsedLines): Cpu[] {
  const tables: Cpu[][] = [];
  const names = new Set<string>();
  let labelled = false;
  let open = false;
  for (const { line, text: content } of lines(text)) {
    const between = isTimeLine(content) || isPrompt(content) || content.trim() === "";
    const words = between ? [] : content.trim().replaceAll(NAMED, " ").split(/\s+/, 40);
    const numbers = words.slice(-picked.length);
    const fits = numbers.length === picked.length && picked.every(({ decimal }, i) => (decimal ? /^\d{1,10}$/ : /^[0-9a-f]{8}$/).test(numbers[i] as string));
    if (!fits) {
      open = false;
      if (tables.length > 0 && LABEL.test(content) && !between) labelled = true;
      if (!between) unparsed.add(line, content);
      continue;
    }
    // a name that was there before is the first one's of the next turn
    const name = words.slice(0, -picked.length).join(" ");
    if (!open || (/\d/.test(name) && names.has(name))) {
      tables.push([]);
      names.clear();
    }
    open = true;
    names.add(name);
    const of = (column: number): number => {
      const at = picked.findIndex((other) => other.column === column);
      return at === -1 ? 0 : Number.parseInt(numbers[at] as string, picked[at]?.decimal === true ? 10 : 16);
    };
    const rows = tables.at(-1) as Cpu[];
    rows.push({ line, cpu: rows.length, processed: of(1), dropped: of(2), timeSqueeze: of(3) });
  }
  return lastOf(tables, labelled);
}
/** The name of a column beside its number. */
const NAMED = /(?<=^|\s)[A-Za-z_]{2,30}[=:]\s?(?=[\da-f]+(?:[\s,]|$))|,(?=\s|$)/g;

/** Of the tables of one text the first one, or the last one with what it has more. The last one may be cut off. */
function lastOf(tables: readonly Cpu[][], labelled: boolean): Cpu[] {
  const [first = []] = tables;
  const last = tables.findLast((table) => table.length === first.length) ?? first;
  return last === first || labelled ? first : grown(first, last);
}

const SAR = /^(?:Average:|\d\d:\d\d:\d\d(?: [AP]M)?)\s+(?:(CPU\s.{1,160})|(\d{1,5}(?:\s+\d{1,12}[.,]\d\d){3,8}.{0,20}))$/;
const SAR_COLUMNS = { "total/s": "processed", "dropd/s": "dropped", "squeezd/s": "timeSqueeze", "flw_lim/s": "flowLimit" } as const;

/** `sar -n SOFT 1 3`: what each CPU counted in a second, of the last interval or on average. All else that sar prints is about other things. */
function readSar(text: string): Cpu[] {
  const rows = new Map<number, Cpu>();
  let names: readonly string[] = [];
  for (const { line, text: content } of lines(text)) {
    const [, header, values] = SAR.exec(content.trim()) ?? [];
    if (header !== undefined) names = header.split(/\s+/, 24);
    const words = (values ?? "").split(/\s+/, 24);
    if (values === undefined || words.length !== names.length || !names.includes("dropd/s")) continue;
    const row: Cpu = { line, cpu: Number(words[0]), processed: 0, dropped: 0, timeSqueeze: 0 };
    for (const [name, counter] of Object.entries(SAR_COLUMNS)) {
      const at = names.indexOf(name);
      const value = at === -1 ? Number.NaN : Math.round(Number((words[at] as string).replace(",", ".")));
      if (!Number.isNaN(value)) row[counter] = value;
    }
    if (rows.size < 4096) rows.set(row.cpu, row);
  }
  // they were counted from nothing on
  const zero = { line: 1, processed: 0, dropped: 0, timeSqueeze: 0, flowLimit: 0 };
  return grown(
    [...rows.keys()].map((cpu) => ({ ...zero, cpu })),
    [...rows.values()],
  );
}

const COUNTERS = ["processed", "dropped", "timeSqueeze", "flowLimit"] as const;

/** The newest sample, with what each CPU counted since the one before. */
function mergeCpus(parts: readonly Part<Softnet>[]): Softnet {
  const pairs = samples(parts, true);
  // what tells of a span of time, by itself or with an earlier one, tells more
  const pair = pairs.find(({ before, after }) => before !== undefined || after.value.rows.some((row) => row.droppedDelta !== undefined)) ?? pairs[0];
  if (pair === undefined) return { rows: [] };
  return { rows: grown(pair.before?.value.rows ?? [], pair.after.value.rows) };
}

/** The later rows, with what each CPU counted since the earlier ones. */
function grown(earlier: readonly Cpu[], later: readonly Cpu[]): Cpu[] {
  // lines without the CPU's number move up when one goes offline
  const moved = earlier.length !== later.length && [earlier, later].every((rows) => rows.every((row, i) => row.cpu === i));
  const old = new Map((moved ? [] : earlier).map((row) => [row.cpu, row]));
  return later.map((row) => ({ ...row, ...deltas(COUNTERS, old.get(row.cpu), row) }));
}
