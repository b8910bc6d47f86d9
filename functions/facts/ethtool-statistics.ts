import { z } from "zod";
import { hasOption, operands } from "./command.ts";
import { answeredByDefault, defineFact, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { type NodeEvent, nodeEvents, nodeEventsView } from "./node-event.ts";
import { type Metric, metricsAs, metricsView } from "./node-metrics.ts";
import { isPrompt } from "./paste.ts";
import { present } from "./present.ts";
import { counterOf, growth, isTimeLine, withinOneText } from "./sampled.ts";

/**
 * Counters that the drivers of the network cards keep. Each driver has names of its own.
 *
 *     NIC statistics:
 *          bw_in_allowance_exceeded: 1865
 *          rx_missed_errors: 0
 */
const Counter = z.object({
  line: z.int(),
  interface: z.string(),
  /** As the driver names it; blanks inside stay: "rx_missed_errors", "rx-0.rx_packets", "[0]: rx_discards". */
  name: z.string(),
  /** Since the driver was loaded; beyond 2^53 cut to that. */
  value: z.int(),
  /** Growth between the samples; left out without a second sample, or if the counter was reset between. */
  valueDelta: z.int().optional(),
});
const EthtoolStatistics = z.object({ rows: z.array(Counter) });
type Counter = z.infer<typeof Counter>;
type EthtoolStatistics = z.infer<typeof EthtoolStatistics>;

const VALUE = /^\s{0,40}(\S(?:.{0,78}\S)?)\s{0,20}:\s{1,20}(-?\d{1,20})$/;
const FRAME = /^(?:NIC statistics:|(?:Standard )?[Ss]tatistics for \S{1,15}:)$/;
const NONE = /^(?:no stats available|Cannot get stats strings information: .{1,60}|netlink error: .{1,60})$/;
const NAME = /^[^\s/-][^\s/]{0,14}$/;

// the kernel's own counters, which the driver fills; grep puts the path in front
const SYSFS = /^\/sys\/class\/net\/([\w.@-]{1,15})\/statistics\/(\w{1,40})$/;
const SYSFS_LINE = /^\/sys\/class\/net\/([\w.@-]{1,15})\/statistics\/(\w{1,40}):(\d{1,20})$/;
const SYSFS_WORD = /^\/sys\/class\/net\/\S{1,60}\/statistics\/\S{1,60}$/;

/** The files that cat or grep read, if they are statistics of interfaces. */
function filesOf(argv: readonly string[]): string[] | undefined {
  const files = argv.slice(1).filter((word) => SYSFS_WORD.test(word));
  const others = argv.slice(1).filter((word) => !word.startsWith("-") && !SYSFS_WORD.test(word));
  const isGrep = argv[0] === "grep" || argv[0] === "egrep";
  return files.length > 0 && (isGrep || argv[0] === "cat") && others.length <= (isGrep ? 1 : 0) ? files : undefined;
}

/** Prints the names of the interfaces that are hardware (or a virtual machine's idea of it). */
export const PHYSICAL = "ls -d /sys/class/net/*/device | sed 's|/device$||; s|.*/||'";

export const ethtoolStatistics = defineFact({
  id: "ethtool-statistics",
  title: "Counters of the network cards' drivers, and the kernel's own of them (two samples)",
  commands: [{ argv: ["ethtool", "-S", "{}"], each: PHYSICAL, eachOf: "interface", samples: 2 }],
  byHand: "ethtool -S INTERFACE",
  recognize(argv): View | undefined {
    const files = filesOf(argv);
    if (files !== undefined) return { format: "sysfs", complete: false, scope: files.join(" "), rank: 0 };
    const metrics = metricsView(argv, "metrics");
    if (metrics !== undefined) return metrics;
    const events = nodeEventsView(argv, "events");
    if (events !== undefined) return events;
    if (argv[0] !== "ethtool" || !hasOption(argv, "-S", "--statistics")) return undefined;
    const names = operands(argv);
    const [name] = names;
    // `{}` stands for a name in the command that we run ourselves
    if (name === undefined || names.length > 1 || !(NAME.test(name) || name === "{}")) return undefined;
    return { format: "text", complete: !hasOption(argv, "--groups"), scope: name, rank: 1 };
  },
  schema: EthtoolStatistics,
  // A driver without counters answers that it has none.
  answered: (output) => answeredByDefault(output) || /no stats available|Operation not supported/.test(output.stderr.slice(0, 400)),
  parse({ text, argv, view, names }) {
    const unparsed = new UnparsedLines();
    if (view.format === "events") return unparsed.with({ rows: toldGrowth(nodeEvents({ text, argv, ...present({ names }) })) });
    const rows: Counter[] = [];
    const [only] = view.format === "sysfs" && !/[ *?[]/.test(view.scope) ? [SYSFS.exec(view.scope)] : [];
    const metrics = view.format === "metrics";
    for (const { line, text: content } of lines(metrics ? metricsAs(text, counterLine) : text)) {
      const file = view.format === "sysfs" || metrics ? SYSFS_LINE.exec(content.trim()) : null;
      const [, name, counter] = file ?? only ?? [];
      const number = /^\d{1,20}$/.exec(file?.[3] ?? content.trim())?.[0];
      if (name !== undefined && counter !== undefined && number !== undefined) {
        rows.push({ line, interface: name, name: counter, value: counterOf(number) });
        continue;
      }
      const match = VALUE.exec(content);
      if (match !== null) rows.push({ line, interface: view.scope, name: match[1] as string, value: counterOf(match[2] as string) });
      else if (!FRAME.test(content.trim()) && !NONE.test(content.trim()) && !isTimeLine(content) && !isPrompt(content)) unparsed.add(line, content);
    }
    // of several interfaces the names are not one's own
    return unparsed.with({ rows: (view.format === "sysfs" || metrics) && new Set(rows.map((row) => row.interface)).size > 1 ? rows : withinOneText(rows) });
  },
  merge: mergeCounters,
  // events only add to what the cards themselves told
  whole(parts) {
    const own = parts.filter(({ view }) => view.format !== "events");
    return own.length > 0 && own.every((part) => own.some(({ complete, view }) => complete && (view.scope === part.view.scope || view.scope === "")));
  },
});

/** What EKS's node monitoring agent saw grow: `pps_allowance_exceeded increased on interface "ens5" from 82011 to 94210`. */
const GREW = /^(\w{1,60}_exceeded) increased on interface \\?"([^\s"\\]{1,15})\\?" from (\d{1,20}) to (\d{1,20})$/;

/** Of each counter the newest event. */
function toldGrowth(events: readonly NodeEvent[]): Counter[] {
  const rows = new Map<string, Counter>();
  for (const { line, message } of events) {
    const [, name, card, before, after] = GREW.exec(message.trim()) ?? [];
    if (name === undefined || card === undefined || rows.has(`${card} ${name}`)) continue;
    const value = counterOf(after ?? "0");
    rows.set(`${card} ${name}`, { line, interface: card, name, value, ...present({ valueDelta: growth(counterOf(before ?? "0"), value) }) });
  }
  return [...rows.values()];
}

/** `node_ethtool_received_missed_errors{device="eth0"} 7` and `node_network_receive_fifo_total{device="eth0"} 7` of node_exporter, as grep of the kernel's files says it. */
function counterLine({ name, labels, value }: Metric): string | undefined {
  const driver = /^ethtool_(\w+)$/
    .exec(name)?.[1]
    ?.replace(/(^|_)received(?=_|$)/, "$1rx")
    .replace(/(^|_)transmitted(?=_|$)/, "$1tx");
  const counter = driver ?? (name === "network_receive_fifo_total" ? "rx_fifo_errors" : undefined);
  return counter === undefined || labels["device"] === undefined ? undefined : `/sys/class/net/${labels["device"]}/statistics/${counter}:${value}`;
}

/** The newest sample of each interface, with what grew since the one before. What an event says of a counter that was read twice is older than that. */
function mergeCounters(parts: readonly Part<EthtoolStatistics>[]): EthtoolStatistics {
  const isEvent = ({ view }: Part<EthtoolStatistics>): boolean => view.format === "events";
  const read = Map.groupBy(
    parts.filter((part) => !isEvent(part)),
    ({ view }) => `${view.format} ${view.scope}`,
  );
  const rows = [...read.values()].flatMap(grown);
  const compared = new Set(rows.filter((row) => row.valueDelta !== undefined).map(keyOf));
  return { rows: [...rows, ...parts.filter(isEvent).flatMap(({ value }) => value.rows.filter((row) => !compared.has(keyOf(row))))] };
}

const keyOf = (row: Counter): string => `${row.interface} ${row.name}`;

/** The counters of one interface: each sample may have been asked for in several searches. A number at the end of what was cut is none. */
function grown(parts: readonly Part<EthtoolStatistics>[]): Counter[] {
  const [before, after] = [1, 2].map((sample) => parts.filter((part) => part.sample === sample)) as [Part<EthtoolStatistics>[], Part<EthtoolStatistics>[]];
  const old = new Map(before.filter((part) => part.truncated !== true).flatMap(({ value }) => value.rows.map((row) => [keyOf(row), row.value] as const)));
  const again = new Map<string, Counter>();
  for (const { value, truncated } of after)
    for (const row of value.rows) {
      const valueDelta = truncated === true ? undefined : growth(old.get(keyOf(row)), row.value);
      again.set(keyOf(row), valueDelta === undefined ? row : { ...row, valueDelta });
    }
  return [...before.flatMap(({ value }) => value.rows.filter((row) => !again.has(keyOf(row)))), ...again.values()];
}
