import { byWord } from "./by-word.ts";
import { asSyslog } from "./log-prefix.ts";
import { AGENT, HOST, unitOf } from "./log-unit.ts";

/** One line of a log, its prefixes taken apart. */
export interface LogMessage {
  unit: string;
  time?: string;
  level?: string;
  source?: string;
  message: string;
  /** False for a line that no known prefix begins: a message of its own, or the rest of the one before. */
  prefixed: boolean;
  /** True if it is likely the rest of the one before. */
  joins: boolean;
}

const POD = /^\[pod\/[^\s/\]]{1,255}\/([^\s\]]{1,255})\] /;
const ISO = /^(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)(?=[ ,:]|$)[,:]? ?/;
// short-full: "Sat 2026-11-21 03:51:28 UTC node1 kubelet[712]: "
const FULL = /^([A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})? (?:[A-Z]{1,5}|[+-]\d\d(?:\d\d)?)) /;
// months have the names of the reader's language: "9月 06", "Okt 06", "févr. 06", "сен 06"
const SYSLOG = /^((?:[A-Z][a-z]{2}|\p{L}{3,5}\.?|\d{1,2}[月월]) {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,6})?) /u;
const UNIX = /^(\d{9,10}\.\d{6}) (?=[\w.-]{1,255} \S{1,64}: )/;
// short-delta: "[   29.824507 <   10.000000 >] node1 …"
const MONOTONIC = /^\[ {0,12}\d{1,10}\.\d{6}(?: < {0,12}\d{1,10}\.\d{6} >| {4,24})?\] (?=[\w.-]{1,255} (?:kernel|[^\s:[\]]{1,64}\[\d{1,10}\]): )/;
// the time of day alone, as somebody cut it: the date is gone
const CLOCK = new RegExp(String.raw`^\d\d:\d\d:\d\d(?:[.,]\d{1,9})? {1,3}(?=(?:${HOST} )?(?:${AGENT}|[\w.@-]{1,64}\[\d{1,10}\]): )`);
// the host and program behind the time of syslog and journalctl
const PROGRAM = new RegExp(String.raw`^(${HOST}) (\(?[^\s:[\]()]{1,128}\)?)(?:\[\d{1,10}\])?: ?`);
// `--no-hostname`, or a person took the host out
const NO_HOST = new RegExp(String.raw`^(?:(kernel): |(\(?[^\s:[\]()]{1,128}\)?)\[\d{1,10}\]: ?|(${AGENT}): )`);
// the container runtime's own prefix, and docker's json-file
const CRI = /^(?:stdout|stderr) [FP] ?/;
const DOCKER = /^\{"log":"/;

// the thread id may be glued to the time
const KLOG = /^([IWEF])(\d{4} \d\d:\d\d:\d\d(?:\.\d{1,6})?)\d{0,12} {1,8}(?:\d{1,10} )?([\w.-]{1,100}:\d{1,6})\] ?/;
/** The same, of which somebody copied only the end: `14086 cni.go:213] Unable to …`. */
const CUT_KLOG = /^(?:\d{1,10} )?([a-z][\w-]{1,60}\.go:\d{1,6})\] /;
const KLOG_LEVELS: Readonly<Record<string, string>> = { I: "info", W: "warning", E: "error", F: "fatal" };
const LOGFMT = /^(?:time|ts|t|level|lvl)=(?:"|\S)/;
// calico: [INFO][61] felix/int_dataplane.go 1234: …
const CALICO = /^\[(DEBUG|INFO|WARNING|ERROR|FATAL|PANIC)\]\[\d{1,10}\] (?:[\w./-]{1,80}\/)?([\w.-]{1,80}\.go) (\d{1,6}): ?/;
// coredns and many others: [INFO] plugin/reload: …
const BRACKETED = /^\[(DEBUG|INFO|WARN|WARNING|ERROR|FATAL|PANIC)\] ?/;
// firewalld: WARNING: COMMAND_FAILED: …
const WORD = /^(DEBUG\d?|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL): /;
// NetworkManager: <info>  [1763697088.1234] device (eth0): …
const NETWORK_MANAGER = /^<(trace|debug|info|warn|error)> {1,2}\[(\d{9,10}\.\d{1,9})\] /;

// BusyBox syslogd and OpenWrt's logd: "Fri Apr 18 06:02:11 2025 daemon.err dnsmasq[811]: ", "Apr 18 06:02:11 router daemon.err dnsmasq[811]: "
const LOGREAD =
  /^((?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d(?: \d{4})?) (?:[\w.-]{1,255} )?[a-z]{3,8}\d?\.(emerg|alert|crit|err|warn|notice|info|debug) (\(?[^\s:[\]()]{1,128}\)?)(?:\[\d{1,10}\])?: ?/;

// Open vSwitch: "2025-08-19T09:31:02.118Z|00412|bond|INFO|", through syslog "ovs|00412|bond|INFO|"
const OVS = /^(?:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)|ovs)\|\d{1,8}\|([\w.()-]{1,40})\|(DBG|INFO|WARN|ERR|EMER)\|/;

/** One level's many names. */
const LEVELS = byWord<string>({
  trace: "debug",
  debug: "debug",
  debug1: "debug",
  dbg: "debug",
  info: "info",
  information: "info",
  notice: "info",
  warn: "warning",
  warning: "warning",
  error: "error",
  err: "error",
  fatal: "fatal",
  panic: "fatal",
  dpanic: "fatal",
  critical: "fatal",
  emer: "fatal",
});
const levelOf = (name: string): string | undefined => LEVELS[name.toLowerCase()];

/**
 * Takes the prefixes of one line apart: `kubectl logs --prefix` and `--timestamps`, the container runtime, syslog and the journal, then the program's own
 * (klog with or without a thread id, logfmt, JSON, calico, coredns, NetworkManager). "kernel" for a line of the kernel, which is the fact kernel-log's.
 * `format`: "cat" if the journal's own prefix was left out, so that a line without any is a message of its own.
 */
export function readMessage(content: string, format: string): LogMessage | "kernel" {
  const indented = /^[\t ]/.test(content);
  const row: LogMessage = { unit: "", message: "", prefixed: false, joins: indented || format !== "cat" };
  let rest = asSyslog(content.trimStart());
  const pod = POD.exec(rest);
  if (pod !== null) {
    row.unit = unitOf(pod[1] as string);
    row.prefixed = true;
    rest = rest.slice(pod[0].length);
  }
  if (DOCKER.test(rest)) rest = ofDocker(rest, row);
  const logread = LOGREAD.exec(rest);
  if (logread !== null) {
    if (logread[3] === "kernel") return "kernel";
    row.unit = unitOf((logread[3] as string).replace(/[()]/g, ""));
    rest = taken(row, { level: levelOf(logread[2] as string), time: logread[1] }, rest.slice(logread[0].length));
  }
  const syslog = FULL.exec(rest) ?? SYSLOG.exec(rest) ?? UNIX.exec(rest) ?? MONOTONIC.exec(rest) ?? CLOCK.exec(rest);
  const iso = syslog === null ? ISO.exec(rest) : null;
  const stamp = syslog ?? iso;
  if (stamp !== null) {
    row.prefixed = true;
    if (stamp[1] !== undefined) row.time = stamp[1];
    rest = rest.slice(stamp[0].length);
    const runtime = CRI.exec(rest);
    const named = runtime === null && (syslog !== null || format !== "container");
    const program = named ? PROGRAM.exec(rest) : null;
    if (runtime !== null) rest = rest.slice(runtime[0].length);
    else if (program !== null && !(iso !== null && LEVELS[(program[1] as string).toLowerCase()] !== undefined)) {
      if (program[2] === "kernel") return "kernel";
      row.unit = unitOf((program[2] as string).replace(/[()]/g, ""));
      rest = rest.slice(program[0].length);
    } else if (program === null && named) {
      const hostless = NO_HOST.exec(rest);
      if (hostless?.[1] !== undefined) return "kernel";
      if (hostless !== null) row.unit = unitOf((hostless[2] ?? hostless[3] ?? "").replace(/[()]/g, ""));
      rest = rest.slice(hostless?.[0].length ?? 0);
    }
  }
  row.message = ofProgram(rest.trimStart(), row);
  // a line that is nothing but a continuation keeps its indent: err=< of klog
  if (!row.prefixed) row.message = content.trim();
  return row;
}

/** What the program itself puts in front. */
function ofProgram(rest: string, row: LogMessage): string {
  const klog = KLOG.exec(rest);
  if (klog !== null) return taken(row, { level: KLOG_LEVELS[klog[1] as string], time: klog[2], source: klog[3] }, rest.slice(klog[0].length));
  const cut = CUT_KLOG.exec(rest);
  if (cut !== null) return taken(row, { source: cut[1] }, rest.slice(cut[0].length));
  const ovs = OVS.exec(rest);
  if (ovs !== null) return taken(row, { level: levelOf(ovs[3] as string), time: ovs[1], source: ovs[2] }, rest.slice(ovs[0].length));
  const code = rest.charCodeAt(0);
  if (code === 123 /* { */) return ofJson(rest, row);
  if (LOGFMT.test(rest)) return ofLogfmt(rest, row);
  const stamp = ISO.exec(rest); // inside a container's log the program's own time follows the runtime's
  const inner = stamp === null ? rest : rest.slice(stamp[0].length);
  if (stamp !== null) taken(row, { time: stamp[1] }, inner);
  const calico = CALICO.exec(inner);
  if (calico !== null) return taken(row, { level: levelOf(calico[1] as string), source: `${calico[2]}:${calico[3]}` }, inner.slice(calico[0].length));
  const bracketed = BRACKETED.exec(inner) ?? WORD.exec(inner);
  if (bracketed !== null) return taken(row, { level: levelOf(bracketed[1] as string) }, inner.slice(bracketed[0].length));
  const manager = NETWORK_MANAGER.exec(inner);
  if (manager !== null) return taken(row, { level: levelOf(manager[1] as string), time: manager[2] }, inner.slice(manager[0].length));
  return inner;
}

/** Notes the fields of a prefix. The first time that has a year is kept: what stands outermost knows best. */
function taken(row: LogMessage, fields: { level?: string | undefined; time?: string | undefined; source?: string | undefined }, message: string): string {
  row.prefixed = true;
  const { level, time, source } = fields;
  if (level !== undefined) row.level = level;
  if (source !== undefined) row.source = source;
  if (time !== undefined && (row.time === undefined || (!hasYear(row.time) && hasYear(time)))) row.time = time;
  return message;
}

const hasYear = (time: string): boolean => /^(?:[A-Z][a-z]{2} )?\d{4}[-/]|^\d{9,10}\.|^\d{13}(?:\.|$)/.test(time);

/** logfmt: `time="…" level=warning msg="…" error="…" subsys=daemon`; the message is everything behind time and level, as printed. */
function ofLogfmt(rest: string, row: LogMessage): string {
  let message = rest;
  const fields: { level?: string | undefined; time?: string | undefined; source?: string | undefined } = {};
  for (;;) {
    const pair = /^(time|ts|t|level|lvl|caller|source)=(?:"([^"]{0,200})"|([^\s"]{0,200}))(?: |$)/.exec(message);
    if (pair === null) break;
    const [all, name, quoted, bare] = pair as unknown as [string, string, string | undefined, string | undefined];
    const value = quoted ?? bare ?? "";
    if (name === "level" || name === "lvl") fields.level = levelOf(value);
    else if (name === "caller" || name === "source") fields.source = fileAndLine(value);
    else fields.time = value;
    message = message.slice(all.length);
  }
  return taken(row, fields, message);
}

const fileAndLine = (path: string): string => path.slice(path.lastIndexOf("/") + 1).slice(0, 100);

/** One JSON object: {"level":"error","ts":"…","caller":"ipamd.go:512","msg":"…","error":"…"}. What is no JSON stays as it is. */
function ofJson(rest: string, row: LogMessage): string {
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(rest) as Record<string, unknown>;
  } catch {
    row.joins = false; // cut JSON is no rest of the line before
    return rest;
  }
  const text = (...names: string[]): string | undefined => {
    for (const name of names) {
      const field = value[name];
      if (typeof field === "string" || typeof field === "number") return String(field);
    }
    return undefined;
  };
  const message = text("msg", "message", "MESSAGE");
  const time = text("ts", "time", "timestamp", "@timestamp", "TimeGenerated");
  const line = message === undefined ? text(...COLLECTED) : undefined;
  if (line !== undefined) {
    const name = containerOf(value);
    if (row.unit === "" && name !== undefined) row.unit = unitOf(name);
    taken(row, { time }, "");
    return ofProgram(line.trim(), row);
  }
  if (message === undefined) return rest;
  const caller = text("caller", "source", "logger");
  // klog's own has no level: what it says for information has a verbosity
  const klog = typeof value["ts"] === "number" && typeof value["caller"] === "string" && ("v" in value || "err" in value);
  taken(row, { level: levelOf(text("level", "severity", "lvl") ?? (!klog ? "" : "v" in value ? "info" : "error")), time }, "");
  if (caller !== undefined) row.source = fileAndLine(caller);
  const known = new Set("msg message MESSAGE caller source logger level severity lvl ts time timestamp @timestamp stacktrace v".split(" "));
  const others = Object.entries(value).flatMap(([name, field]) => {
    const said = known.has(name) ? undefined : typeof field === "string" || typeof field === "number" ? String(field) : objectName(field);
    return said === undefined ? [] : `${name}="${said}"`;
  });
  return [message, ...others].join(" ").slice(0, 4000);
}

/** Where collectors of logs (Fluent Bit, Cloud Logging, Azure, CloudWatch) keep the line as the program wrote it, and whose it is. */
const COLLECTED = ["log", "textPayload", "LogMessage", "LogEntry", "@message"];
function containerOf(value: Record<string, unknown>): string | undefined {
  const inside = (of: unknown, key: string): unknown => (typeof of === "object" && of !== null ? (of as Record<string, unknown>)[key] : undefined);
  const names = [inside(value["kubernetes"], "container_name"), inside(inside(value["resource"], "labels"), "container_name"), value["ContainerName"]];
  return names.find((name): name is string => typeof name === "string" && name !== "");
}

/** An object of the cluster as klog prints it in its text: `{"name": "web-0", "namespace": "shop"}` is shop/web-0. */
function objectName(field: unknown): string | undefined {
  const { name, namespace } = (field ?? {}) as { name?: unknown; namespace?: unknown };
  return typeof name !== "string" ? undefined : typeof namespace === "string" ? `${namespace}/${name}` : name;
}

/** {"log":"…\n","stream":"stderr","time":"…"}: a line of a container as docker's json-file keeps it. */
function ofDocker(rest: string, row: LogMessage): string {
  try {
    const value = JSON.parse(rest) as { log?: unknown; time?: unknown };
    if (typeof value.log !== "string") return rest;
    row.prefixed = true;
    if (typeof value.time === "string") row.time = value.time;
    return value.log.trim();
  } catch {
    return rest;
  }
}
