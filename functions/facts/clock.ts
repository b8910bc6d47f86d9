import { z } from "zod";
import { hasOption, operands } from "./command.ts";
import { defineFact, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { epochOf } from "./log-time.ts";
import { type Metric, metricsAs, metricsView } from "./node-metrics.ts";
import { isShown, ranked } from "./parts.ts";
import { isPrompt } from "./paste.ts";
import { present } from "./present.ts";

/**
 * Whether the clock follows a time source, as each tool tells it.
 *
 *     NTPSynchronized=no                                  (timedatectl show)
 *     System clock synchronized: no                       (timedatectl)
 *     Leap status     : Not synchronised                  (chronyc tracking)
 */
const Source = z.object({
  /** The line that says whether it is in step. */
  line: z.int(),
  /** "kernel" (timedatectl and adjtimex read the kernel's flag), "chrony", "ntpd", "timesyncd", "talos", "vmware" (its tools in the guest; false where they leave the clock alone); "query" where a program only asked a server for the time. */
  source: z.string(),
  synchronized: z.boolean(),
  /** Seconds that the clock is away from the source's time, without a sign. */
  offset: z.number().optional(),
  /** True of `timedatectl show`, which collectors run, at any moment of a node's life; people who wonder about a clock type `timedatectl`. */
  collected: z.boolean().optional(),
  /** Seconds since chrony heard from its source last, where the time of the collection is known: without one it goes on saying that all is normal. */
  unheard: z.number().optional(),
  /** Distance from a reference clock; 16 and 0 mean that there is none. */
  stratum: z.int().optional(),
  /** True of a chrony that follows the machine's own clock (`local stratum 10`), for want of a server or on purpose: it says "Normal" all the same. */
  local: z.boolean().optional(),
});
/** A service that sets the clock. */
const Service = z.object({
  line: z.int(),
  /** True if it is switched on (timedatectl tells of systemd-timesyncd, or of whatever it was told to use). */
  active: z.boolean(),
});
/** A server that was asked for the time. */
const Server = z.object({
  line: z.int(),
  name: z.string(),
  /** The one that is followed. */
  selected: z.boolean(),
  /** False if none of the last eight questions was answered. */
  reachable: z.boolean(),
  /** Seconds between the clock and what this server of chrony's said last, without a sign, where they are one or more. */
  offset: z.number().optional(),
  /** Seconds between two questions to a server that does not answer. ntpd and chrony begin with 64, and ask less often after ten minutes. */
  poll: z.int().optional(),
});
const Clock = z.object({
  rows: z.array(Source),
  services: z.array(Service),
  servers: z.array(Server),
  /** Where these outputs are from inside a container: its clock is the host's, and a service in it may not set it. */
  container: z.object({ line: z.int(), kind: z.string() }).optional(),
});
type Clock = z.infer<typeof Clock>;
type Source = z.infer<typeof Source>;

const FIELD = /^([A-Za-z][\w ()/.-]{0,40}?)\s{0,16}[:=]\s?(.{0,200})$/;
const SECONDS = /^(-?[\d.]{1,20}) seconds?\b/;
// chronyc sources: "^* ntp1.example.net   2   6   377    34    -12us[ -30us] +/-  8ms"
const CHRONY_SERVER = /^[\^=#]([*+\-?x~ ])\s{0,2}(\S{1,80})\s+(\d{1,2})\s+(-?\d{1,3})\s+([0-7]{1,3})\s+(\S{1,10})\s+\S.*$/;
// what was measured last stands in brackets, what is left of it before them
const CHRONY_SAMPLE = /\[\s{0,8}([+-]?[\d.]{1,12})([mun]?s)\]/;
// with -v a legend of lines and dots stands above the table
const CHRONY_FRAME = /^(?:MS Name\/IP address\s.*|=+|(?:\d{3} )?Number of sources = \d{1,4}|(?:\.-|\/ |\| |\|\|).{0,120})$/;
// ntpq -p, of ntpsec with a plus before the offset; a name and its address are cut to 15 places, "+10.0.0.123 (ti": "*ntp1.example.n .GPS.  1 u   34   64  377    1.234   -0.012   0.008"
const NTPQ_SERVER =
  /^([ *+\-#ox.])(\S{1,60}(?: \(\S{0,20})?)\s+(\S{1,40})\s+(\d{1,2})\s+[ublsmpMSBA-]\s+(-|\d{1,6}[mhd]?)\s+(\d{1,6})\s+([0-7]{1,3})\s+(-?[\d.]{1,16})(?:[nuµm]?s)?\s+([+-]?[\d.]{1,16})([nuµm]?s)?\s+(-?[\d.]{1,16})(?:[nuµm]?s)?$/;
/** Milliseconds; ntpsec shows units if it is asked to. */
const UNITS: Readonly<Record<string, number>> = { s: 1000, ms: 1, us: 1e-3, µs: 1e-3, ns: 1e-6 };
const NTPQ_FRAME = /^(?:No association ID's returned|\s+remote\s+refid\s.*|=+)$/;
const ADJTIMEX = /^(?:-[a-z]\s{1,4})?[a-z][\w. ]{2,20}:\s.{1,80}$/;
// "unsynchronised", "synchronised to NTP server (10.0.0.4) at stratum 3", then remarks
const NTPSTAT = /^(?:((?:un)?synchroni[sz]ed)\b.{0,120}|time (?:correct|server) .{1,80}|polling server every .{1,40}|\s*(?:re)?starting.{0,40})$/;
// OpenNTPD, `ntpctl -s status`: "4/4 peers valid, constraint offset 0s, clock synced, stratum 3", "0/4 peers valid, clock unsynced"
const NTPCTL = /^\d{1,3}\/\d{1,3} peers valid,.{0,80} clock ((?:un)?synced)\b/;
// ntpsec: "2025-10-29 16:02:11.120331 (+0100) -0.000412 +/- 0.000912 10.1.0.4 s2 no-leap"
// "14 Mar 09:40:11 ntpdate[22110]: step time server 10.1.0.4 offset 312.442163 sec", "2021-03-14T09:40:11Z System clock wrong by 312.442163 seconds (ignored)"
const QUERY =
  /(?:(?:step|adjust) time server \S{1,80} offset ([+-]?[\d.]{1,20}) sec|^\S{10,40}(?: \S{8,20})? \([+-]\d{4}\) ([+-]?[\d.]{1,20}) \+\/- |System clock wrong by ([+-]?[\d.]{1,20}) seconds)/;
const QUERY_FRAME =
  /^(?:server \S{1,80}, stratum \d{1,2}, offset .{1,60}|.{1,60} chronyd (?:version|exiting).{0,200}|.{1,40} Initial frequency .{1,40}|.{1,40} Selected source .{1,80})$/;
/** Seconds. What ntpdate and ntpd step, and do not slew. */
const STEP = 0.128;
/** `systemd-detect-virt` alone on its line; the environment of the first process; `hostnamectl`: "Virtualization: lxc", "Chassis: container"; `systemctl status systemd-timesyncd`: what kept it from starting. */
const CONTAINER =
  /^(?:(?:Virtualization: {1,8})?(lxc(?:-libvirt)?|openvz|systemd-nspawn|docker|podman|rkt|wsl|proot|pouch|container-other)|Chassis: {1,8}(container)\b.{0,20}|.{0,10}ConditionVirtualization=!(container) was not met)$|(?:^|\0)container=(lxc|openvz|systemd-nspawn|docker|podman)/;
const TIME_UNIT = /^(?:systemd-timesyncd|chronyd?|ntpd?|ntpsec|openntpd)(?:\.service)?$/;
/** Of `vmware-toolbox-cmd timesync status`: the host keeps the guest's clock, or leaves that to the guest. */
const GUEST_TOOLS = /^(?:Enabled|Disabled)$/;
const NO_DAEMON = /^(?:506 Cannot talk to daemon|ntpq: read: Connection refused|.*: timed out, nothing received|\*{3}Request timed out|Failed to .{1,200})$/;
/** Chrony's reference for the machine's own clock. */
const LOCAL = /^7F7F0101\b|^127\.127\.1\.1\b/;
// talosctl get timestatus: "10.5.0.2   runtime     TimeStatus   node   4         true"
const TALOS_STATUS = /^(?:\S{1,253}\s{1,40})?\S{1,40}\s{1,40}TimeStatus\s{1,40}node\s{1,40}\d{1,9}\s{1,40}(true|false)$/;
// talosctl time: "10.5.0.2   time.cloudflare.com   2026-09-15 21:52:02.110433981 +0000 UTC   2026-09-15 21:52:02.120077 +0000 UTC"
const MOMENT = String.raw`(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,3})?)\d{0,9} \+0000 UTC`;
const TALOS_TIME = new RegExp(String.raw`^(?:(\S{1,253})\s{1,40})?\S{1,253}\s{1,40}${MOMENT}\s{1,40}${MOMENT}$`);
const TALOS_NODE = /^(\S{1,253})\s{1,40}(?=\S{1,253}\s{1,40}(?:\d{4}-\d\d-\d\d |TimeStatus\s))/gm;
/** STA_UNSYNC of the kernel's clock. */
const UNSYNCHRONIZED = 64;
/** Seconds: the error that the kernel assumes grows up to this where nobody sets the clock. */
const MAX_ERROR = 16;

/** `node_timex_sync_status 0` of node_exporter, which asks adjtimex; shortly after the last setting the flag alone says little. */
function statusLine({ name, value }: Metric, all: readonly Metric[], cut: boolean): string | undefined {
  if (name !== "timex_sync_status") return undefined;
  if (value === 1) return "status: 0";
  const error = all.find((other) => other.name === "timex_maxerror_seconds")?.value;
  return value === 0 && (error === undefined ? !cut : error >= MAX_ERROR) ? `status: ${UNSYNCHRONIZED}` : undefined;
}

export const clock = defineFact({
  id: "clock",
  title: "Whether the clock follows a time source",
  commands: [{ argv: ["timedatectl", "show"] }, { argv: ["chronyc", "-n", "tracking"] }, { argv: ["ntpq", "-pn"] }, { argv: ["adjtimex"] }],
  recognize(argv): View | undefined {
    const [program, ...rest] = argv;
    const words = operands(argv);
    if (program === "timedatectl") {
      const [command = "status"] = words;
      if (command === "show") {
        const one = hasOption(argv, "-p", "--property", "-P") || argv.some((word) => word.startsWith("--property="));
        return hasOption(argv, "--value", "-P") ? undefined : { format: "show", complete: !one, scope: "kernel", rank: 2 };
      }
      // bare, it is what people type
      if (command === "timesync-status") return { format: "timesync", complete: true, scope: "timesyncd", rank: 1 };
      return command === "status" ? { format: "timedatectl", complete: true, scope: "kernel", rank: 1 } : undefined;
    }
    if (program === "chronyc") {
      // -c: values with commas between them, and no names
      const csv = rest.some((word) => /^-[a-zA-Z46]*c$/.test(word)) ? "-csv" : "";
      if (words[0] === "tracking") return { format: `tracking${csv}`, complete: true, scope: "chrony", rank: 1 };
      return words[0] === "sources" ? { format: `sources${csv}`, complete: true, scope: "servers", rank: 1 } : undefined;
    }
    if (program === "ntpq")
      return rest.some((word) => /^-[a-z]*p|^--peers$/.test(word)) ? { format: "ntpq", complete: true, scope: "ntpd", rank: 1 } : undefined;
    // they only ask
    if ((program === "ntpdate" && rest.some((word) => /^-[a-zA-Z]*q/.test(word))) || (program === "chronyd" && rest.some((word) => /^-[a-zA-Z]*Q/.test(word))))
      return { format: "query", complete: false, scope: "query", rank: 0 };
    if (/^(?:\/usr\/bin\/)?vmware-toolbox-cmd$/.test(program ?? "") && rest.join(" ") === "timesync status")
      return { format: "vmware", complete: true, scope: "vmware", rank: 0 };
    if (program === "ntpctl")
      return /^-s ?(?:s(?:tatus)?|a(?:ll)?)$/.test(rest.join(" ")) ? { format: "ntpctl", complete: true, scope: "ntpctl", rank: 0 } : undefined;
    if (program === "ntpstat" && rest.length === 0) return { format: "ntpstat", complete: true, scope: "ntpstat", rank: 0 };
    const asked = program === "systemctl" && words[0] === "status" && words.length === 2 && TIME_UNIT.test(words[1] ?? "");
    const environment = words.length === 1 && /^\/proc\/1\/environ$|^\/run\/systemd\/container$/.test(words[0] ?? "");
    if (
      asked ||
      environment ||
      (program === "systemd-detect-virt" && words.length === 0) ||
      (program === "hostnamectl" && /^(?:status)?$/.test(rest.join(" ")))
    )
      return { format: "container", complete: false, scope: "container", rank: 0 };
    const metrics = metricsView(argv, "metrics");
    if (metrics !== undefined) return metrics;
    // BusyBox's prints without options; with others they set
    if (program === "adjtimex" && rest.every((word) => word === "-p" || word === "--print")) {
      return { format: "adjtimex", complete: true, scope: "adjtimex", rank: 1 };
    }
    if (program === "talosctl" && (/^timestatus(?:es)?$/.test(afterGet(rest)) || rest.includes("time")))
      return rest.includes("get")
        ? { format: "talos", complete: true, scope: "talos", rank: 1 }
        : { format: "talos", complete: false, scope: "query", rank: 0 };
    // it asks the kernel the same
    if (program === "ntptime" && words.length === 0) return { format: "ntptime", complete: true, scope: "ntptime", rank: 1 };
    return undefined;
  },
  schema: Clock,
  // no daemon to ask: that is no answer about the clock
  answered: ({ exitCode, text }) => exitCode === undefined || exitCode === 0 || (text.trim() !== "" && !NO_DAEMON.test(text.trim().split("\n")[0] ?? "")),
  parse({ text, view: { format }, truncated, startedAt, live, timed }) {
    const unparsed = new UnparsedLines();
    const readAt = live === true || timed === true ? startedAt : undefined;
    const value: Clock = { rows: [], services: [], servers: [] };
    // which of several machines it is about, nobody can tell
    if (format === "talos" && new Set([...text.matchAll(TALOS_NODE)].map(([, node]) => node)).size > 1) return unparsed.with(value);
    const fields = new Map<string, { line: number; value: string }>();
    const takes = READERS[format];
    for (const { line, text: raw } of lines(format === "metrics" ? metricsAs(text, (metric, all) => statusLine(metric, all, truncated === true)) : text)) {
      if (takes?.(line, raw, value) === true) continue;
      const content = raw.trim();
      const [, name, said = ""] = (format === "sources" || format === "ntpq" ? null : FIELD.exec(content)) ?? [];
      if (name !== undefined) {
        if (!fields.has(name)) fields.set(name, { line, value: said.trim() });
      } else if (!CHRONY_FRAME.test(content) && !(format === "adjtimex" && ADJTIMEX.test(content)) && !NO_DAEMON.test(content) && !isPrompt(raw)) {
        unparsed.add(line, raw);
      }
    }
    (FROM_FIELDS[format] ?? fromTimedatectl)(fields, value, readAt);
    // servers, all of them read, and none is followed
    const [first] = value.servers;
    if (format === "ntpq" && value.rows.length === 0 && first !== undefined && unparsed.count === 0)
      value.rows.push({ line: first.line, source: "ntpd", synchronized: false });
    return unparsed.with(value);
  },
  merge(parts) {
    const best = ranked(newest(parts));
    const rows = best.flatMap((part) => part.value.rows);
    return {
      rows: rows.filter((row, i) => rows.findIndex((other) => other.source === row.source) === i),
      services: best.flatMap((part) => part.value.services).slice(0, 1),
      servers: best.flatMap((part) => part.value.servers),
      ...present({ container: best.find((part) => part.value.container !== undefined)?.value.container }),
    };
  },
  // whether a chrony that follows its own clock has servers, only their list tells
  whole: (parts) =>
    parts.some((part) => part.value.rows.some((row) => row.source !== "vmware" || row.synchronized)) &&
    (isShown(parts, "servers") || !parts.some((part) => part.value.rows.some(({ local }) => local === true))),
});

/** Somebody asked again, minutes later: the last answer counts, as it is about now. A collector asks once. */
function newest(parts: readonly Part<Clock>[]): Part<Clock>[] {
  const keyOf = (part: Part<Clock>): string => `${part.view.format} ${part.view.scope}`;
  const last = new Map(parts.filter((part) => part.value.rows.length > 0).map((part) => [keyOf(part), part]));
  return parts.filter((part) => (last.get(keyOf(part)) ?? part) === part).map((part) => ({ ...part, sample: 1 }));
}

/** What takes a line of a layout that is read line by line; false for a line that it does not know. */
type LineReader = (line: number, raw: string, value: Clock) => boolean;
const READERS: Readonly<Record<string, LineReader>> = {
  ntptime: fromNtptime,
  container: fromContainer,
  ntpstat: fromNtpstat,
  ntpctl: fromNtpctl,
  vmware: fromGuestTools,
  query: fromQuery,
  sources: fromSources,
  ntpq: fromNtpq,
  "tracking-csv": fromCsv,
  "sources-csv": fromCsv,
  talos: fromTalos,
};

/** What `get` is asked for. */
const afterGet = (words: readonly string[]): string => (words.includes("get") ? (words[words.indexOf("get") + 1] ?? "") : "");

/** The other lines of Talos' tables are heads, or errors, which tell nothing of the clock. */
function fromTalos(line: number, raw: string, value: Clock): boolean {
  const synced = TALOS_STATUS.exec(raw.trim())?.[1];
  if (synced !== undefined) value.rows.push({ line, source: "talos", synchronized: synced === "true" });
  const [, , own, asked] = TALOS_TIME.exec(raw.trim()) ?? [];
  const offset = own === undefined || asked === undefined ? Number.NaN : Math.abs(Date.parse(`${own}Z`) - Date.parse(`${asked}Z`)) / 1000;
  // the way to the server and back is in it
  if (!Number.isNaN(offset)) value.rows.push({ line, source: "query", synchronized: offset < 1, offset });
  return true;
}

/** What else ntptime tells is of no use here. */
function fromNtptime(line: number, raw: string, value: Clock): boolean {
  const flags = /^ {1,8}status 0x([0-9a-f]{1,5}) \(/.exec(raw)?.[1];
  if (flags !== undefined) value.rows.push({ line, source: "kernel", synchronized: (Number.parseInt(flags, 16) & UNSYNCHRONIZED) === 0 });
  return true;
}

/** The other lines of such outputs are about other things. */
function fromContainer(line: number, raw: string, value: Clock): boolean {
  const kind = CONTAINER.exec(raw.trim())
    ?.slice(1)
    .find((name) => name !== undefined);
  if (kind !== undefined) value.container ??= { line, kind };
  return true;
}

function fromNtpstat(line: number, raw: string, value: Clock): boolean {
  const stat = NTPSTAT.exec(raw.trim());
  if (stat?.[1] !== undefined) value.rows.push({ line, source: "ntpd", synchronized: stat[1].startsWith("sync") });
  return stat !== null;
}

/** The other lines are about each of its peers. */
function fromNtpctl(line: number, raw: string, value: Clock): boolean {
  const said = NTPCTL.exec(raw.trim())?.[1];
  if (said !== undefined) value.rows.push({ line, source: "ntpd", synchronized: said === "synced" });
  return true;
}

function fromGuestTools(line: number, raw: string, value: Clock): boolean {
  const content = raw.trim();
  if (!GUEST_TOOLS.test(content)) return false;
  value.rows.push({ line, source: "vmware", synchronized: content === "Enabled" });
  return true;
}

function fromQuery(line: number, raw: string, value: Clock): boolean {
  const query = QUERY.exec(raw.trim());
  if (query === null) return QUERY_FRAME.test(raw.trim());
  const offset = Math.abs(Number(query[1] ?? query[2] ?? query[3]));
  value.rows.push({ line, source: "query", synchronized: offset < STEP, offset });
  return true;
}

function fromSources(line: number, raw: string, value: Clock): boolean {
  const server = CHRONY_SERVER.exec(raw.trim());
  if (server === null) return false;
  const [, number, unit = ""] = CHRONY_SAMPLE.exec(raw) ?? [];
  const away = number === undefined ? 0 : (Math.abs(Number(number)) * (UNITS[unit] ?? 1)) / 1000;
  const offset = away >= 1 ? away : undefined;
  const [, mark, name, , , answers] = server as unknown as string[];
  value.servers.push({ line, name: name as string, selected: mark === "*", reachable: answers !== "0", ...present({ offset, poll: rarely(server) }) });
  return true;
}

function fromNtpq(line: number, raw: string, value: Clock): boolean {
  const server = NTPQ_SERVER.exec(raw);
  if (server === null) return NTPQ_FRAME.test(raw);
  const selected = server[1] === "*" || server[1] === "o";
  const reachable = server[7] !== "0";
  value.servers.push({ line, name: server[2] as string, selected, reachable, ...(reachable ? {} : { poll: Number(server[6]) }) });
  const offset = (Math.abs(Number(server[9])) * (UNITS[server[10] ?? "ms"] ?? 1)) / 1000;
  if (selected) value.rows.push({ line, source: "ntpd", synchronized: true, stratum: Number(server[4]) + 1, offset });
  return true;
}

type Fields = ReadonlyMap<string, { line: number; value: string }>;
/** What reads the fields of a layout; of all others it is {@link fromTimedatectl}. */
const FROM_FIELDS: Readonly<Record<string, (fields: Fields, value: Clock, readAt?: number) => void>> = {
  tracking: fromTracking,
  adjtimex: fromAdjtimex,
  metrics: fromAdjtimex,
  timesync: fromTimesyncd,
};

/** `NTPSynchronized=no`, `System clock synchronized: no`, and before systemd 239 `NTP synchronized: no`. */
function fromTimedatectl(fields: Fields, value: Clock): void {
  const synchronized = fields.get("NTPSynchronized") ?? fields.get("System clock synchronized") ?? fields.get("NTP synchronized");
  if (synchronized !== undefined && /^(?:yes|no)$/.test(synchronized.value)) {
    const shown = fields.has("NTPSynchronized") ? { collected: true } : {};
    value.rows.push({ line: synchronized.line, source: "kernel", synchronized: synchronized.value === "yes", ...shown });
  }
  const service =
    fields.get("NTP") ??
    fields.get("NTP service") ??
    fields.get("systemd-timesyncd.service active") ??
    fields.get("Network time on") ??
    fields.get("NTP enabled");
  if (service !== undefined && /^(?:yes|no|active|inactive|n\/a)$/.test(service.value)) {
    value.services.push({ line: service.line, active: service.value === "yes" || service.value === "active" });
  }
}

function fromTracking(fields: Fields, value: Clock, readAt: number | undefined): void {
  const leap = fields.get("Leap status");
  if (leap === undefined) return;
  const unheard = readAt === undefined ? undefined : unheardFor(fields, readAt);
  const stratum = fields.get("Stratum");
  const offset = SECONDS.exec(fields.get("System time")?.value ?? "")?.[1];
  value.rows.push(
    present({
      line: leap.line,
      source: "chrony",
      synchronized: !/^not synchroni[sz]ed$/i.test(leap.value),
      offset: offset === undefined ? undefined : Math.abs(Number(offset)),
      local: LOCAL.test(fields.get("Reference ID")?.value ?? "") || undefined,
      unheard,
      stratum: stratum !== undefined && /^\d{1,2}$/.test(stratum.value) ? Number(stratum.value) : undefined,
    }) satisfies Source,
  );
}

/** Seconds since the last answer; undefined where the error that chrony reckons with, which grows by a millionth of that at least, does not bear it out: then the outputs are of two days. */
function unheardFor(fields: Fields, readAt: number): number | undefined {
  // "Tue Mar 03 04:11:02 2026"
  const heard = epochOf(fields.get("Ref time (UTC)")?.value ?? "", undefined) ?? 0;
  const error = Number(SECONDS.exec(fields.get("Root dispersion")?.value ?? "")?.[1] ?? 0);
  const unheard = Math.round(readAt - heard);
  return heard > 0 && unheard >= 0 && error >= unheard * 0.9e-6 ? unheard : undefined;
}

/**
 * `chronyc -c tracking`: reference, its name (not before 2.4), stratum, time of the reference, offset of the clock, …, leap status; `chronyc -c sources`: mode, state, name, stratum,
 * poll, reach, …, offset that was measured last, error. False if it is neither.
 */
function fromCsv(line: number, raw: string, value: Clock): boolean {
  const fields = raw.trim().split(",");
  if (/^[\^=#]$/.test(fields[0] ?? "") && fields.length === 10) {
    const away = Math.abs(Number(fields[8]));
    value.servers.push({
      line,
      name: fields[2] as string,
      selected: fields[1] === "*",
      reachable: fields[5] !== "0",
      ...present({ offset: away >= 1 ? away : undefined, poll: rarely(fields) }),
    });
    return true;
  }
  const leap = fields.at(-1) ?? "";
  const [stratum, , offset] = fields.slice(fields.length - 12);
  if (!/^[\dA-F]{8}$/.test(fields[0] ?? "") || fields.length < 13 || fields.length > 14 || !/^[A-Z][A-Za-z ]{3,20}$/.test(leap)) return false;
  value.rows.push(
    present({
      line,
      source: "chrony",
      synchronized: !/^not synchroni[sz]ed$/i.test(leap),
      offset: Math.abs(Number(offset)) || 0,
      local: LOCAL.test(fields[0] as string) || undefined,
      stratum: /^\d{1,2}$/.test(stratum ?? "") ? Number(stratum) : undefined,
    }) satisfies Source,
  );
  return true;
}

/** How often chrony asks a server that does not answer, in seconds: behind the stratum stands the power of two, and behind that what was answered lately. */
function rarely({ 4: poll, 5: reach }: readonly string[]): number | undefined {
  return reach === "0" && /^\d{1,2}$/.test(poll ?? "") ? 2 ** Number(poll) : undefined;
}

/** `Server: 192.0.2.7 (ntp.example.net)`, `Packet count: 0`: what systemd-timesyncd has heard from the server that it asks. */
function fromTimesyncd(fields: Fields, value: Clock): void {
  const [server, packets] = [fields.get("Server"), fields.get("Packet count")];
  if (packets === undefined || !/^\d{1,10}$/.test(packets.value)) return;
  const heard = packets.value !== "0";
  // a leap status stands there as soon as it has heard one
  const leap = fields.get("Leap")?.value;
  value.rows.push({ line: packets.line, source: "timesyncd", synchronized: heard && leap !== undefined && !/^not synchroni[sz]ed$/i.test(leap) });
  const name = /(\S{1,80}?)\)?$/.exec((server?.value ?? "").replace("(", ""))?.[1];
  if (server !== undefined && name !== undefined) value.servers.push({ line: server.line, name, selected: heard, reachable: heard });
}

function fromAdjtimex(fields: Fields, value: Clock): void {
  const status = fields.get("status");
  const number = /^(\d{1,6})\b/.exec(status?.value ?? "")?.[1];
  if (status !== undefined && number !== undefined)
    value.rows.push({ line: status.line, source: "kernel", synchronized: (Number(number) & UNSYNCHRONIZED) === 0 });
}
