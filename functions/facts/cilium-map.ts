import { z } from "zod";
import { byWord } from "./by-word.ts";
import { hasOption, isPromptLine, optionValue } from "./command.ts";
import { defineFact, type Input, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { asString, jsonElements } from "./json.ts";
import { EXEC_REMARK } from "./kubectl-command.ts";
import { answerOf } from "./paste.ts";
import { present } from "./present.ts";
import { counterOf, growth, isTimeLine, samplesByScope } from "./sampled.ts";

/**
 * How full Cilium's BPF maps are, and what its datapath drops.
 *
 *     cilium_bpf_map_pressure{map_name="ct4_global"} 0.9713
 *     cilium_drop_count_total{direction="INGRESS",reason="CT: Map insertion failed"} 18211
 *     xx drop (CT: Map insertion failed) flow 0x9a2c46f0 to endpoint 0, ifindex 31, … : 10.0.3.7:41352 -> 10.0.9.9:443 tcp SYN
 */
const Pressure = z.object({
  line: z.int(),
  /** As Cilium's metrics name it: "ct4_global", "snat_v4_external", "policy_00912". */
  map: z.string(),
  /** 0 … 1: entries by capacity. Maps below some threshold may not be listed at all. */
  pressure: z.number(),
});
const Count = z.object({
  line: z.int(),
  /** "ct4_global", "ct_any4_global", "snat_v4_external", or what was listed: "ct global", "nat". */
  map: z.string(),
  entries: z.int(),
});
const Drop = z.object({
  line: z.int(),
  /** "CT: Map insertion failed", "No mapping for NAT masquerade", … */
  reason: z.string(),
  /** "ingress" or "egress", of counters. */
  direction: z.string().optional(),
  /** Packets since the agent's maps were made; left out of single drops that a monitor showed. */
  packets: z.int().optional(),
  /** Growth between the two samples. */
  packetsDelta: z.int().optional(),
});
const MapRow = z.object({
  line: z.int(),
  name: z.string(),
  entries: z.int().optional(),
  /** Errors that the agent had in writing this map. */
  errors: z.int().optional(),
  cache: z.boolean().optional(),
});
const CiliumMap = z.object({
  pressures: z.array(Pressure),
  /** Entries that somebody counted. */
  counts: z.array(Count),
  /** One row per reason and direction of a counter, one per packet that a monitor showed. */
  drops: z.array(Drop),
  /** Of `cilium map list`. */
  maps: z.array(MapRow),
});
type CiliumMap = z.infer<typeof CiliumMap>;

const SAMPLE = /^(cilium_[a-z0-9_]{1,100})(?:\{([^}]{0,1000})\})?\s{1,40}(\S{1,40})(?:\s\d{10,13})?$/;
// `cilium metrics list`: the labels stand in a column of their own, and the value at the end
const LISTED = /^(cilium_[a-z0-9_]{1,100})\s{1,200}(?:(\S.{0,1000}?)\s{2,200})?([-+0-9.eE]{1,40}(?:\s?\/\s?\S{1,40}){0,2})$/;
// in columns newer versions have no quotes
const LABEL = /([a-z_]{1,40})=(?:"([^"]{0,200})"|([^"]{0,200}?)(?=\s[a-z_]{1,40}=|$))/g;
// "xx drop (CT: Map insertion failed) flow 0x0 to endpoint 0, ifindex 3, …"; before 1.12 without ifindex
const MONITOR_DROP = /^(?:\d\d:\d\d:\d\d\.\d{1,9} )?xx drop \(([^)]{1,100})\)/;
// hubble: "Nov 21 05:13:11.128: shop/cart:41352 (ID:21873) <> 10.0.9.9:443 (world) CT: Map insertion failed DROPPED (TCP Flags: SYN)"
const HUBBLE_DROP = /\) ([A-Z][A-Za-z: ]{3,80}?) DROPPED(?: \(|$)/;
// hubble observe -o json: one flow a line
const HUBBLE_JSON = /^\{.{0,4000}"drop_reason_desc":\s?"([A-Z_]{3,80})"/;
const REASONS = byWord<string>({
  CT_MAP_INSERTION_FAILED: "CT: Map insertion failed",
  NO_MAPPING_FOR_NAT_MASQUERADE: "No mapping for NAT masquerade",
});
const MONITOR_FRAME =
  /^(?:Listening for events on \d{1,5} CPUs .{0,200}|Press Ctrl-C to quit|(?:time=\S{1,60} )?level=\w+ .{0,1000}|CPU \d{1,5}: .{0,400}|Lost .{0,200}|\^C.{0,100}|(?:[-~]>|<-|>>) .{0,1000}|Policy verdict log: .{0,1000}|Ethernet\s.{0,400}|IPv[46]\s.{0,400}|(?:TCP|UDP|ICMP)\S{0,4}\s.{0,400})$/;
// Name                       Num entries   Num errors   Cache enabled
const LIST_ROW = /^(cilium_\S{1,100})\s{1,80}(\d{1,10})\s{1,40}(\d{1,10})\s{1,40}(true|false)$/;
const LIST_HEADER = /^(?:Name\s+Num entries\s+.*|Metric\s+Labels\s+Value|# (?:HELP|TYPE) .{0,2000})$/;
const NUMBER = /^\s{0,40}(\d{1,10})(?:\s+\S{1,200})?$/;
/** What the agent's metrics and `cilium bpf` listings are about: the rest of a scrape is left out. */
const WANTED = /^cilium_(?:bpf_map_pressure|drop_count_total)$/;
const LISTINGS = ["ct", "nat", "lb", "policy", "ipcache"];

export const ciliumMap = defineFact({
  id: "cilium-map",
  title: "How full Cilium's BPF maps are, and what its datapath drops",
  // the agent's own API answers where its metrics are not exported
  commands: [{ argv: ["curl", "-sS", "--max-time", "3", "--unix-socket", "/var/run/cilium/cilium.sock", "http://localhost/v1/metrics/"], samples: 2 }],
  byHand: "cilium-dbg metrics list",
  recognize(argv): View | undefined {
    if (argv[0] === "curl" || argv[0] === "wget") {
      const last = argv.findLast((word) => /\/metrics\/?$/.test(word) || /:(?:9962|9090|9090\/metrics)$/.test(word)) ?? "";
      const socket = optionValue(argv, "--unix-socket") ?? "";
      if (/cilium\.sock/.test(socket) && /\/v1\/metrics\/?$/.test(last)) return { format: "json", complete: true, scope: "metrics", rank: 4 };
      return /:(?:9962|9090)\/metrics\/?$/.test(last) ? { format: "metrics", complete: true, scope: "metrics", rank: 3 } : undefined;
    }
    if (argv[0] === "hubble") return argv[1] === "observe" ? { format: "hubble", complete: false, scope: "hubble", rank: 1 } : undefined;
    if (argv[0] !== "cilium" && argv[0] !== "cilium-dbg") return undefined;
    if (argv.includes("--help") || argv.includes("-h")) return undefined;
    const json = optionValue(argv, "-o", "--output") === "json" || argv.includes("-ojson");
    if (argv[1] === "metrics" && argv[2] === "list") {
      const all = !hasOption(argv, "-p", "--match-pattern", "-s", "--show-history");
      return { format: json ? "json" : "metrics", complete: all, scope: "metrics", rank: json ? 4 : 3 };
    }
    if (argv[1] === "bpf" && argv[2] === "metrics" && argv[3] === "list" && !json) return { format: "datapath", complete: true, scope: "datapath", rank: 2 };
    if (argv[1] === "monitor") return { format: "monitor", complete: false, scope: "monitor", rank: 1 };
    if (argv[1] === "map" && argv[2] === "list") return { format: "list", complete: true, scope: "list", rank: 1 };
    // a listing of thousands of entries: only a count of it (`| wc -l`) is read
    if (argv[1] === "bpf" && LISTINGS.includes(argv[2] ?? "") && argv[3] === "list") {
      const what = argv.slice(2).filter((word) => word !== "list" && !word.startsWith("-"));
      return { format: "count", complete: false, scope: `count ${what.join(" ")}`, rank: 1 };
    }
    return undefined;
  },
  schema: CiliumMap,
  parse: (input) => (input.view.format === "json" ? fromJson(input) : input.view.format === "datapath" ? fromDatapath(input) : fromText(input)),
  merge: mergeSamples,
});

function fromText({ text, view }: Input) {
  const unparsed = new UnparsedLines();
  const value: CiliumMap = { pressures: [], counts: [], drops: [], maps: [] };
  for (const { line, text: raw } of lines(text)) {
    const content = raw.trim();
    const sample = SAMPLE.exec(content) ?? (view.format === "metrics" ? LISTED.exec(content) : null);
    const drop = MONITOR_DROP.exec(content) ?? (view.format === "hubble" ? (HUBBLE_DROP.exec(content) ?? HUBBLE_JSON.exec(content)) : null);
    const row = LIST_ROW.exec(content);
    const count = view.format === "count" ? NUMBER.exec(content) : null;
    if (sample !== null) addSample(value, line, sample[1] as string, labelsOf(sample[2] ?? ""), Number(sample[3]));
    else if (drop !== null) value.drops.push({ line, reason: REASONS[drop[1] as string] ?? (drop[1] as string) });
    else if (row !== null) {
      value.maps.push({ line, name: row[1] as string, entries: Number(row[2]), errors: Number(row[3]), cache: row[4] === "true" });
    } else if (count !== null) value.counts.push({ line, map: view.scope.slice("count ".length), entries: Number(count[1]) });
    else if (
      view.format === "count" ||
      view.format === "hubble" ||
      isPromptLine(raw) ||
      LIST_HEADER.test(content) ||
      EXEC_REMARK.test(content) ||
      MONITOR_FRAME.test(content)
    ) {
      // entries of a listing that was not counted: there may be hundreds of thousands, and none is kept
    } else if (view.format === "metrics" && /^[a-z][a-z0-9_]{1,100}[\s{]/.test(content)) {
      // a metric of something else
    } else unparsed.add(line, raw);
  }
  return unparsed.with(value);
}

/** `cilium bpf metrics list`: CT: Map insertion failed  EGRESS  88122  6622110  1042  bpf_lxc.c (the place in the source since 1.16) */
const COUNTED = /^(\S.{0,80}?)\s{2,80}(INGRESS|EGRESS|SERVICE|UNKNOWN)\s{1,40}(\d{1,20})\s{1,40}\d{1,20}(?:\s{1,40}(\S.{0,120}))?$/i;
/** What is counted there and was not dropped. */
const PASSED = /^(?:Success|Interface(?: Decrypted)?|Plaintext|Encrypted traffic)$/i;

/** One row for each reason and direction; where a person printed the list twice, with what the second one has more. */
function fromDatapath({ text }: Input) {
  const unparsed = new UnparsedLines();
  const places = new Map<string, { reason: string; direction: string; line: number; first: number; last: number; again: boolean }>();
  for (const { line, text: raw } of lines(text)) {
    const [, reason, direction = "", packets, place = ""] = COUNTED.exec(raw.trim()) ?? [];
    if (reason === undefined) {
      if (!/^REASON\s+DIRECTION\s/i.test(raw.trim()) && !isTimeLine(raw) && !isPromptLine(raw) && !EXEC_REMARK.test(raw.trim())) unparsed.add(line, raw);
      continue;
    }
    if (PASSED.test(reason)) continue;
    const key = `${reason} ${direction} ${place.trim()}`;
    const known = places.get(key);
    const last = counterOf(packets ?? "0");
    places.set(key, { reason, direction: direction.toLowerCase(), line, first: known?.first ?? last, last, again: known !== undefined });
  }
  const drops = new Map<string, CiliumMap["drops"][number]>();
  for (const { reason, direction, line, first, last, again } of places.values()) {
    const sum = drops.get(`${reason} ${direction}`);
    const grew = again ? growth(first, last) : undefined;
    const packetsDelta = grew === undefined ? sum?.packetsDelta : (sum?.packetsDelta ?? 0) + grew;
    drops.set(`${reason} ${direction}`, { line: sum?.line ?? line, reason, direction, packets: (sum?.packets ?? 0) + last, ...present({ packetsDelta }) });
  }
  return unparsed.with({ pressures: [], counts: [], drops: [...drops.values()], maps: [] });
}

function labelsOf(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [, name, quoted, bare = ""] of text.matchAll(LABEL)) labels[name as string] = quoted ?? bare;
  return labels;
}

function addSample(value: CiliumMap, line: number, name: string, labels: Readonly<Record<string, string>>, number: number, quote?: string): void {
  if (!WANTED.test(name) || !Number.isFinite(number) || number < 0) return;
  const place = quote === undefined ? { line } : { line, text: quote };
  if (name === "cilium_bpf_map_pressure") value.pressures.push({ ...place, map: (labels["map_name"] ?? "").replace(/^cilium_/, ""), pressure: number });
  else if (Number.isSafeInteger(Math.round(number))) {
    const reason = labels["reason"] ?? "";
    value.drops.push({ ...place, reason, ...present({ direction: labels["direction"]?.toLowerCase() }), packets: Math.round(number) });
  }
}

/** `{"labels":{"map_name":"ct4_global"},"name":"cilium_bpf_map_pressure","value":0.97}` */
function fromJson({ text }: Input) {
  const unparsed = new UnparsedLines();
  const value: CiliumMap = { pressures: [], counts: [], drops: [], maps: [] };
  for (const { value: metric, line, text: quote } of jsonElements(answerOf(text), unparsed)) {
    const name = asString(metric["name"]);
    const labels = (metric["labels"] ?? {}) as Record<string, unknown>;
    if (name === undefined) unparsed.add(line, quote);
    else {
      const strings = Object.fromEntries(Object.entries(labels).filter((entry): entry is [string, string] => typeof entry[1] === "string"));
      addSample(value, line, name, strings, Number(metric["value"]), quote);
    }
  }
  return unparsed.with(value);
}

type MapPart = Part<CiliumMap>;

/** The best part of each scope; counters of the second sample carry their growth. */
function mergeSamples(parts: readonly MapPart[]): CiliumMap {
  const merged: CiliumMap = { pressures: [], counts: [], drops: [], maps: [] };
  for (const { before, after, newest } of samplesByScope(parts)) {
    merged.pressures.push(...newest.pressures);
    merged.counts.push(...newest.counts);
    merged.maps.push(...newest.maps);
    merged.drops.push(...(after === undefined || before === undefined ? newest.drops : newest.drops.map((drop) => grown(drop, before))));
    // of a second sample that was searched or cut, what is missing has not stood still: it was read once
    if (after !== undefined && before !== undefined && !after.complete) {
      merged.pressures.push(...before.value.pressures.filter((row) => !after.value.pressures.some(({ map }) => map === row.map)));
      merged.drops.push(...before.value.drops.filter((row) => !after.value.drops.some((drop) => isSame(drop, row))));
    }
  }
  return merged;
}

const isSame = (a: CiliumMap["drops"][number], b: CiliumMap["drops"][number]): boolean => a.reason === b.reason && a.direction === b.direction;

function grown(now: CiliumMap["drops"][number], before: MapPart): CiliumMap["drops"][number] {
  if (now.packets === undefined) return now;
  const known = before.value.drops.find((drop) => isSame(drop, now))?.packets;
  // a reason that all of the first sample did not hold has begun between the two
  const old = known ?? (before.complete ? 0 : undefined);
  return old !== undefined && now.packets >= old ? { ...now, packetsDelta: now.packets - old } : now;
}
