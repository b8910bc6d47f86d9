import { z } from "zod";
import { isPromptLine } from "./command.ts";
import { defineFact, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { ipCommand } from "./ip-command.ts";
import { jsonElements } from "./json.ts";
import { type Metric, metricsAs, metricsView } from "./node-metrics.ts";
import { counterOf, growth, isTimeLine, samples } from "./sampled.ts";

/**
 * How often interfaces lost their line, as the kernel counts it for each interface and bonding for each member. People look at these twice; netcheck itself reads
 * the kernel's log, which tells when.
 *
 *     /sys/class/net/eno1/carrier_changes:9120                        (both ways: 4560 times down)
 *     /sys/class/net/eno1/carrier_down_count:4560
 *     Slave Interface: eno2 … Link Failure Count: 318                 (/proc/net/bonding/bond0)
 *     TX errors: aborted  fifo window heartbt transns                 (`ip -s -s link`: the last column, both ways too)
 *     node_network_carrier_changes_total{device="eno1"} 9120          (node_exporter)
 *     2: eno1: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 …         (`ip monitor link`: each change since it was started)
 */
const Count = z.object({
  line: z.int(),
  interface: z.string(),
  /** Since the interface was made, or joined the bond. */
  downs: z.int(),
  /** Growth between the samples; left out without a second sample, or if the counter was reset between. */
  downsDelta: z.int().optional(),
});
const CarrierCount = z.object({ rows: z.array(Count) });
type Count = z.infer<typeof Count>;
type CarrierCount = z.infer<typeof CarrierCount>;

const SYSFS = /^(?:\/host)?\/sys\/class\/net\/([\w.@*-]{1,15})\/carrier_(changes|down_count|up_count)$/;
const BOND = /^(?:\/host)?\/proc\/net\/bonding\/[\w.@*-]{1,15}$/;
const READERS = new Set(["cat", "grep", "egrep", "head", "tail"]);
// grep puts the path in front, head and tail above
const NAMED = /^(?:==> )?((?:\/host)?\/sys\/class\/net\/[\w.@-]{1,15}\/carrier_\w{2,10})(?: <==|:(\d{1,15}))$/;
const CHANGED = /^(?:\[[^\]]{1,40}\] ?){0,2}\d{1,9}: ([^\s:@]{1,15})(?:@[^\s:]{1,31})?: <([A-Z0-9_,-]{0,300})>/;
const MEMBER = /^Slave Interface: (\S{1,15})$/;
const FAILURES = /^Link Failure Count: (\d{1,15})$/;

export const carrierCount = defineFact({
  id: "carrier-count",
  title: "How often interfaces lost their line, counted by the kernel and by bonding (pasted only)",
  commands: [],
  counters: true,
  recognize(argv): View | undefined {
    const words = argv.slice(1).filter((word) => !/^--?[a-z]{1,9}$/.test(word));
    if (argv[0] === "ip" && /^mon(?:i|it|ito|itor)?$/.test(words[0] ?? "") && words.slice(1).every((word) => word === "link" || word === "all"))
      return { format: "monitor", complete: false, scope: words.join(" "), rank: 0 };
    const ip = ipCommand(argv);
    if (ip !== undefined)
      return (ip.object === "link" || ip.object === "address") && !ip.brief && asksForErrors(argv)
        ? { format: ip.json ? "ip-json" : "ip", complete: false, scope: ip.filters.join(" "), rank: 0 }
        : undefined;
    const metrics = metricsView(argv, "metrics");
    if (metrics !== undefined) return metrics;
    if (!READERS.has(argv[0] ?? "")) return undefined;
    const files = argv.slice(1).filter((word) => SYSFS.test(word));
    const bonds = argv.slice(1).filter((word) => BOND.test(word));
    if (files.length > 0 && bonds.length === 0) return { format: "sysfs", complete: false, scope: files.join(" "), rank: 1 };
    return bonds.length > 0 && files.length === 0 ? { format: "bond", complete: false, scope: bonds.join(" "), rank: 0 } : undefined;
  },
  schema: CarrierCount,
  parse({ text, view }) {
    const unparsed = new UnparsedLines();
    if (view.format === "monitor") return unparsed.with({ rows: readChanges(text) });
    if (view.format === "metrics") return unparsed.with({ rows: withinText(readMetrics(text)) });
    if (view.format === "ip") return unparsed.with({ rows: withinText(readErrors(text)) });
    if (view.format === "ip-json") {
      const rows = [...jsonElements(text, unparsed)].flatMap(({ value, line }) => {
        const { ifname, stats64 } = LinkJson.safeParse(value).data ?? {};
        const changes = stats64?.tx.carrier_changes;
        return ifname === undefined || changes === undefined ? [] : [{ line, interface: ifname, downs: Math.floor(changes / 2) }];
      });
      return unparsed.with({ rows: withinText(rows) });
    }
    if (view.format === "bond") return unparsed.with({ rows: withinText(readBonds(text)) });
    const rows: Count[] = [];
    const files = view.scope.split(" ");
    let file = files.length === 1 && !view.scope.includes("*") ? view.scope : undefined;
    for (const { line, text: raw } of lines(text)) {
      const content = raw.trim();
      const named = NAMED.exec(content);
      if (named !== null) file = named[1];
      const [, name, kind] = SYSFS.exec(file ?? "") ?? [];
      const digits = named === null ? /^\d{1,15}$/.exec(content)?.[0] : named[2];
      if (name !== undefined && digits !== undefined) {
        if (kind !== "up_count") rows.push({ line, interface: name, downs: kind === "changes" ? Math.floor(counterOf(digits) / 2) : counterOf(digits) });
      } else if (named === null && !isTimeLine(raw) && !isPromptLine(raw)) unparsed.add(line, raw);
    }
    return unparsed.with({ rows: withinText(rows, files.length) });
  },
  merge: mergeCounts,
});

/** Of each interface how often it lost its line while somebody watched. What else changes is about other things. */
function readChanges(text: string): Count[] {
  const rows = new Map<string, Count>();
  const isDown = new Map<string, boolean>();
  for (const { line, text: raw } of lines(text)) {
    const [, name, flags = ""] = (raw.length > 1000 ? null : CHANGED.exec(raw.trim())) ?? [];
    if (name === undefined) continue;
    const down = flags.split(",").includes("NO-CARRIER");
    if (down && isDown.get(name) !== true) {
      const downs = (rows.get(name)?.downs ?? 0) + 1;
      rows.set(name, { line, interface: name, downs, downsDelta: downs });
    }
    isDown.set(name, down);
  }
  return [...rows.values()];
}

/** What node_exporter tells of the files in /sys/class/net: since Linux 4.16 changes to "down" alone, before changes both ways. */
function readMetrics(text: string): Count[] {
  const ofName = (metric: string, share: number): Count[] => {
    const counted = ({ name, labels, value }: Metric): string | undefined =>
      name === metric && labels["device"] !== undefined ? `${labels["device"]} ${Math.floor(value / share)}` : undefined;
    return metricsAs(text, counted)
      .split("\n")
      .flatMap((content, i) => {
        const [name, downs] = content.split(" ");
        return name === undefined || downs === undefined ? [] : [{ line: i + 1, interface: name, downs: Number(downs) }];
      });
  };
  const downs = ofName("network_carrier_down_changes_total", 1);
  return downs.length > 0 ? downs : ofName("network_carrier_changes_total", 2);
}

/** `-s -s`, `-ss` or `-stats -stats`: once tells of packets alone. */
function asksForErrors(argv: readonly string[]): boolean {
  const flags = argv.filter((word) => /^--?s(?:tat(?:s|istics)?)?$/.test(word));
  return flags.length >= 2 || argv.includes("-ss");
}
const LinkJson = z.object({ ifname: z.string(), stats64: z.object({ tx: z.object({ carrier_changes: z.int().optional() }) }) });
const LINK = /^\d{1,9}: ([^\s:@]{1,15})(?:@[^\s:]{1,31})?: </;

/** The last column of the errors of sending. What else `ip` says is about other things. */
function readErrors(text: string): Count[] {
  const rows: Count[] = [];
  let name: string | undefined;
  let isNext = false;
  for (const { line, text: raw } of lines(text)) {
    if (raw.length > 1000) continue;
    const changes = isNext && name !== undefined ? /^\s{1,40}\d[\d\s]{1,200}?\s(\d{1,15})$/.exec(raw)?.[1] : undefined;
    if (changes !== undefined && name !== undefined) rows.push({ line, interface: name, downs: Math.floor(counterOf(changes) / 2) });
    isNext = /^\s{1,20}TX errors:.{1,80}\stransns$/.test(raw);
    name = LINK.exec(raw)?.[1] ?? name;
  }
  return rows;
}

/** What else stands in the file is about other things. */
function readBonds(text: string): Count[] {
  const rows: Count[] = [];
  let member: string | undefined;
  for (const { line, text: raw } of lines(text)) {
    const content = raw.trim().replace(/^\/proc\/net\/bonding\/[\w.@-]{1,15}[:-]/, "");
    member = MEMBER.exec(content)?.[1] ?? member;
    const failures = FAILURES.exec(content)?.[1];
    if (failures === undefined || member === undefined) continue;
    rows.push({ line, interface: member, downs: counterOf(failures) });
    member = undefined;
  }
  return rows;
}

/** One row of each interface: people paste two samples into one text. Several files of an interface tell the same, each in its way. */
function withinText(rows: readonly Count[], files = 1): Count[] {
  return [...Map.groupBy(rows, (row) => row.interface).values()].flatMap((all) => {
    const [first, last] = [all[0], all.at(-1)];
    if (first === undefined || last === undefined) return [];
    const downsDelta = all.length > files ? growth(first.downs, last.downs) : undefined;
    return [downsDelta === undefined ? last : { ...last, downsDelta }];
  });
}

/** Interface by interface the best output, with what grew between the samples of one command. */
function mergeCounts(parts: readonly Part<CarrierCount>[]): CarrierCount {
  const rows = new Map<string, Count>();
  for (const { before, after } of samples(parts, true)) {
    const old = new Map(before?.value.rows.map((row) => [row.interface, row.downs]));
    for (const row of after.value.rows) {
      if (rows.get(row.interface)?.downsDelta !== undefined) continue;
      const downsDelta = before === undefined ? row.downsDelta : growth(old.get(row.interface), row.downs);
      rows.set(row.interface, downsDelta === undefined ? row : { ...row, downsDelta });
    }
  }
  return { rows: [...rows.values()] };
}
