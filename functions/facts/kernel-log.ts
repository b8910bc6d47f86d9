import { z } from "zod";
import { isPromptLine, optionValue } from "./command.ts";
import { defineFact, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { entryTime, JOURNAL_REMARK, journalEntries, STRUCTURED, structured } from "./journal.ts";
import { asInteger, asString, jsonElements } from "./json.ts";
import { asSyslog, NUMBER_PREFIX, PATH_PREFIX } from "./log-prefix.ts";
import { leastAge, ofEarlierBoot, withAges } from "./log-time.ts";
import { HOST } from "./log-unit.ts";
import { isShown, laterReadings, ranked } from "./parts.ts";
import { present } from "./present.ts";
import { isWindowWidth } from "./unwrap.ts";

/**
 * Messages of the kernel.
 *
 *     [12345.678901] nf_conntrack: nf_conntrack: table full, dropping packet
 *     Feb 21 03:51:28 node1 kernel: neighbour: arp_cache: neighbor table overflow!
 */
const Message = z.object({
  line: z.int(),
  /** Since boot. */
  seconds: z.number().optional(),
  /**
   * Seconds between the message and the collection: known if /proc/uptime was collected and the message has `seconds`, or if the message has a `time` and
   * the capture tells when it was made. A time without a zone is taken as UTC; a result below zero counts as 0. Where neither is known, a message after which
   * the log goes on for an hour or more has the time that it goes on: it is at least that old. Other messages of an unknown age are kept only where a person picked
   * the lines: not in a collector's log, nor in one that was cut.
   */
  age: z.number().optional(),
  /** As printed: ISO, "Sat Nov 21 03:51:28 2026" (dmesg -T), "Nov21 03:51" (dmesg -H, for the whole minute) or "Nov 21 03:51:28" (syslog). */
  time: z.string().optional(),
  /** Without the prefix; a line without a prefix (the rest of a wrapped message, `dmesg -t`) is a message of its own. */
  message: z.string(),
  /** "emerg" … "debug". */
  level: z.string().optional(),
  facility: z.string().optional(),
});
const Clock = z.object({
  line: z.int(),
  /** Seconds since boot at the time of the collection. */
  uptime: z.number(),
});
const KernelLog = z.object({
  rows: z.array(Message),
  clocks: z.array(Clock),
  /** Seconds that the machine is up at least, by the newest `seconds` and the greatest age in a whole log of this boot; absent where there is none with either. */
  up: z.number().optional(),
});
export type KernelLog = z.infer<typeof KernelLog>;
type Message = z.infer<typeof Message>;
type Draft = Omit<Message, "line">;

const LEVELS = ["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"];
const FACILITIES = ["kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp"];

// dmesg, by what the line begins with. -x: "kern  :info  : "   -r: "<6>"   then "[  12.345678] ", -d "[ 1.2 <    0.000000>] " (`journalctl -o short-delta`: "[ 1.2 <    0.000000 >] "), -H "[  +0.000012] "
const DECODED = /^([a-z0-9]{2,8}) {0,6}:(emerg|alert|crit|err|warn|notice|info|debug) {0,4}: /;
const RAW = /^<(\d{1,3})>/;
const SINCE_BOOT = /^\[ {0,12}(\d{1,10}\.\d{1,9})(?: <[ +]{0,12}\d{1,10}\.\d{1,9} ?>| {4,24})?\] ?/;
// the thread or processor that spoke, where the kernel notes it: "[    1.234567][  T412] ", "[    1.234567] [     C3] "
const CALLER = /^\[ {0,10}[TC]\d{1,10}\] ?/;
const DELTA = /^\[ {0,12}[+<] {0,12}\d{1,10}\.\d{1,9}>?\] ?/;
// in the language of the node: "[Di Mär  4 09:20:11 2025] ", "[三 9月  6 14:15:54 2017] "
const BRACKETED = /^\[((?:\p{L}{1,4}\.? )?(?:\p{L}{3,5}\.?|\d{1,2}[月월]) {0,2}\d{1,2} \d\d:\d\d(?::\d\d)?(?: \d{4})?)(?: <[ +]{0,12}\d{1,10}\.\d{1,9}>)?\] ?/u;
const ISO = /^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?) /;
// short-full: "Sat 2026-11-21 03:51:28 UTC node1 kernel: "
const FULL =
  /^([A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})? (?:[A-Z]{1,5}|[+-]\d\d(?:\d\d)?)|(?:[A-Z][a-z]{2}|\p{L}{3,5}\.?|\d{1,2}[月월]) {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,6})?) /u;
// talosctl: "10.5.0.2: kern: warning: [2026-11-19T09:11:02.123456789Z]: "
const TALOS =
  /^(?:[\w.:-]{1,64}: )?([a-z]{3,8}\d?): {1,9}(emerg|alert|crit|err|warning|notice|info|debug): \[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)\]: /;
// the host and program behind the time of syslog and journalctl
const PROGRAM = new RegExp(String.raw`^(${HOST}) ([^\s:[\]]{1,64})(?:\[\d{1,10}\])?: ?`);
const WITH_PID = /\[\d{1,10}\]: ?$/;
// short-unix: "1795358882.114312 node1 kernel: "
const UNIX = /^(\d{10}\.\d{6}) (?=[\w.-]{1,255} \S{1,64}: )/;
// `--no-hostname`, or a person took the host out
const NO_HOST = /^(?:(kernel)|[^\s:[\]]{1,64}\[\d{1,10}\]): ?/;
// a line of the journal whose time was not copied
const TIMELESS = /^(?:[a-z0-9][a-z0-9.-]{0,252} )?kernel: (?=\S)/;
// BusyBox syslogd and OpenWrt's logd: "Fri Apr 18 06:02:11 2025 kern.info kernel: ", "Apr 18 06:02:11 router kern.info kernel: "
const LOGREAD =
  /^((?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d(?: \d{4})?) (?:[\w.-]{1,255} )?([a-z]{3,8}\d?)\.(emerg|alert|crit|err|warn|notice|info|debug) (\S{1,64}?)(?:\[\d{1,10}\])?: ?/;
/** A time somewhere in the head of a line. */
const STAMP = /^.{1,80}?\b(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d)(?![\w:])/;
// " 10:00:01 up 212 days,  3:41,  1 user,  load average: …", "up 5 min", "up 1 day, 12 min", "up  2:11"
const UP = /^\d{1,2}:\d\d(?::\d\d)?(?: [AP]M)?\s+up\s+(?:(\d{1,6}) days?,\s*)?(?:(\d{1,2}):(\d\d)|(\d{1,2}) min)?(?:,|\s)/;
// "up 12 minutes", "up 41 weeks, 3 days, 2 hours, 14 minutes" (`uptime -p`)
const PRETTY = /^up (?:\d{1,4} (?:decade|year|week|day|hour|minute)s?(?:, |$)){1,6}$/;
const SECONDS_OF: Readonly<Record<string, number>> = { decade: 315_360_000, year: 31_536_000, week: 604_800, day: 86_400, hour: 3600, minute: 60 };
const UPTIME = /^(\d{1,12}(?:\.\d{1,6})?) \d{1,15}(?:\.\d{1,6})?$/;
// What makes a line binary: control characters other than tab, and bytes that are no UTF-8.
const BINARY = /[^\P{Cc}\t]|\ufffd/u;

const FILES = /^\/(?:host\/)?var\/log\/(?:kern\.log|messages|syslog|dmesg|ufw\.log)(?:[.-]\d{1,8})?(?:\.gz)?$/;
/** What somebody kept of the kernel's messages elsewhere: of a serial console, of a bug report. */
const KEPT = /^(?:\S{0,200}\/)?[\w.-]{0,40}(?:serial|console|dmesg|kern(?:el)?|messages|syslog)[\w-]{0,40}(?:\.(?:log|txt|out|\d))?$/;
/** What the cloud keeps of a machine's serial console. */
const CONSOLE = /^(?:gcloud(?: beta)? compute instances get-serial-port-output|aws ec2 get-console-output|az vm boot-diagnostics get-boot-log) /;

export const kernelLog = defineFact({
  id: "kernel-log",
  title: "Messages of the kernel",
  commands: [{ argv: ["dmesg"] }, { argv: ["cat", "/proc/uptime"] }],
  recognize(argv): View | undefined {
    const [program, ...rest] = argv;
    if (program === "cat" && rest.length === 1 && rest[0] === "/proc/uptime") return { format: "uptime", complete: true, scope: "uptime", rank: 1 };
    // to the minute
    if (program === "uptime" && rest.every((word) => word === "-p" || word === "--pretty"))
      return { format: "uptime", complete: true, scope: "uptime", rank: 0 };
    if (program === "dmesg") {
      if (rest.some((word) => /^(?:-[cCDEnV]|--(?:clear|read-clear|console-|version))/.test(word))) return undefined;
      if (rest.some((word) => /^(?:-[a-zA-Z]{0,8}J[a-zA-Z]{0,8}|--json)$/.test(word))) return { format: "json", complete: true, scope: "", rank: 4 };
      const part = rest.some((word) => /^(?:-[lfu]|--(?:level|facility|since|until|userspace)|-[a-zA-Z]*[lf]$)/.test(word));
      const absolute = rest.some((word) => /^(?:-[a-zA-Z]*[THet]|--(?:ctime|human|reltime|notime|time-format.*))$/.test(word));
      return { format: "text", complete: !part, scope: "", rank: absolute ? 2 : 3 };
    }
    if (program === "journalctl") return journalView(argv);
    // BusyBox: the newest lines of all programs
    if (program === "logread") return rest.includes("-f") && rest.length === 1 ? undefined : { format: "text", complete: false, scope: "", rank: 1 };
    if (CONSOLE.test(argv.join(" "))) return { format: "text", complete: false, scope: "", rank: 1 };
    const files = rest.filter((word) => FILES.test(word) || (/[./]/.test(word) && KEPT.test(word)));
    if (files.length === 0 || !["cat", "tail", "head", "grep", "egrep", "zgrep", "zcat", "less", "more"].includes(program ?? "")) return undefined;
    return { format: "text", complete: false, scope: "", rank: 1 };
  },
  log: "all",
  schema: KernelLog,
  parse({ text, argv, view, startedAt, zone, live, timed }) {
    const unparsed = new UnparsedLines();
    const withAge = (messages: readonly Message[]): Message[] => [...withAges(messages, startedAt, live === true || timed === true, zone)];
    if (view.format === "json") return unparsed.with({ rows: readJson(text, unparsed), clocks: [] });
    const rows: Message[] = [];
    const entries = journalEntries(view.format, text, unparsed);
    if (entries !== undefined) {
      for (const { value, line, text: quote } of entries) {
        if (view.format.endsWith("-whole") && !isOfKernel(value)) continue;
        const row = fromJournal(value);
        if (row === undefined) unparsed.add(line, quote);
        else rows.push(Object.assign({ line, ...row }, { text: quote }));
      }
      return unparsed.with({ rows: withAge(rows), clocks: [] });
    }
    if (view.format === "uptime") {
      const clocks: z.infer<typeof Clock>[] = [];
      for (const { line, text: content } of lines(text)) {
        const uptime = UPTIME.exec(content.trim())?.[1] ?? upFor(content.trim());
        if (uptime !== undefined) clocks.push({ line, uptime: Number(uptime) });
        else if (!isPromptLine(content)) unparsed.add(line, content);
      }
      return unparsed.with({ rows, clocks });
    }
    let minute: string | undefined;
    let before = { line: 0, width: 0 };
    /** The latest line of another program's message, which may go on in the next. */
    let other = -1;
    for (const { line, text: content } of lines(text)) {
      // the tools' own complaints, and what is no text
      if (BINARY.test(content) || /^(?:dmesg|journalctl): /.test(content)) {
        unparsed.add(line, content);
        continue;
      }
      const row = fromLine(content, minute, argv[0] === "journalctl");
      // other programs' lines in the same file (undefined), and what people and pagers put between
      if (row === undefined) other = line;
      if (row === undefined || JOURNAL_REMARK.test(content) || isPromptLine(content)) continue;
      if (other === line - 1 && isBare(row)) {
        other = line;
        continue;
      }
      if (content.trimStart().startsWith("[") && row.time !== undefined) minute = row.time;
      const previous = rows.at(-1);
      const wrapped = isBare(row) && !/^\s/.test(content) && before.line === line - 1 && before.width >= NARROWEST;
      if (wrapped && previous !== undefined && !isBare(previous)) previous.message += (isWindowWidth(before.width) ? "" : " ") + content;
      else rows.push({ line, ...row });
      before = { line, width: content.length };
    }
    return unparsed.with({ rows: withAge(rows), clocks: [] });
  },
  merge(parts) {
    const best = ranked(parts);
    const clocks = best.flatMap((part) => part.value.clocks).slice(0, 1);
    const logs = best.filter((part) => part.view.scope === "");
    const later = laterReadings(parts).filter((part) => part.view.scope === "");
    const chosen = logs.find((part) => part.complete);
    const uptime = clocks[0]?.uptime;
    const newest = newestOf([...logs, ...later]);
    const up = chosen === undefined ? 0 : chosen.value.rows.reduce((most, row) => Math.max(most, row.seconds ?? 0, row.age ?? 0), 0);
    const least = up === 0 ? {} : { up };
    const rowsOf = (part: LogPart): readonly Message[] => {
      if (uptime !== undefined) return part.value.rows.map((row) => aged(row, uptime));
      const rows = part.value.rows.map((row) => leastAged(row, newest));
      return isUnchosen(part) ? rows.filter((row) => !isUndated(row, part)) : rows;
    };
    const rows = chosen === undefined ? distinct(logs.flatMap(rowsOf)) : [...rowsOf(chosen)];
    return { rows: later.length === 0 ? rows : continued(rows, later.flatMap(rowsOf)), clocks, ...least };
  },
  whole(parts) {
    const newest = newestOf(parts);
    const left = parts.some((part) => isUnchosen(part) && part.value.rows.some((row) => isUndated(leastAged(row, newest), part)));
    const dated = !left || parts.some((part) => part.value.clocks.length > 0);
    return dated && isShown(parts);
  },
});

type LogPart = Part<KernelLog>;

/**
 * A message without an age is taken for fresh where a person picked the lines. A collector prints the whole log whatever is in it, and a log that was cut has
 * lost its newest lines: there such a message may be of any age, and it is left out.
 */
const isUnchosen = (part: LogPart): boolean => part.at !== undefined || part.truncated === true;
/** A date is a clock only with the time of the collection beside it, or newer lines behind it. Without an age, and with the end of the log cut off, it says no more than the seconds since boot. */
const isUndated = (row: Message, part: LogPart): boolean =>
  row.age === undefined && (row.seconds !== undefined || (part.truncated === true && row.time !== undefined));

const newestOf = (parts: readonly LogPart[]): number =>
  parts.reduce((most, part) => part.value.rows.reduce((newest, row) => Math.max(newest, row.seconds ?? 0), most), 0);

/** The kernel's part of the journal, in the layouts that show one message a line. */
function journalView(argv: readonly string[]): View | undefined {
  const kernelOnly = argv.some((word) => /^-[a-z]*k$|^--dmesg$|^_TRANSPORT=kernel$/.test(word));
  if (ofEarlierBoot(argv)) return undefined;
  // the whole journal has the kernel's lines too; that of a unit or program has not, and other options print no log
  if (!kernelOnly && argv.slice(1).some((word) => OF_OTHERS.test(word))) return undefined;
  const output = optionValue(argv, "-o", "--output") ?? argv.find((word) => /^-o\w/.test(word))?.slice(2) ?? "short";
  const fields = STRUCTURED.test(output);
  if (!fields && !/^(?:short(?:-[a-z-]{1,20})?|with-unit|cat)$/.test(output)) return undefined;
  const format = fields ? structured(output) : "text";
  // a number of lines, a span of time, an earlier boot, a level or a pattern
  const part = argv.some(
    (word, i) =>
      /^(?:-[nSUpgubf]|--(?:lines|since|until|priority|grep|unit|boot|follow))/.test(word) && !(word === "-b" && /^(?:-[a-z]|$)/.test(argv[i + 1] ?? "")),
  );
  if (!kernelOnly) return output === "cat" ? undefined : { format: format === "text" ? format : `${format}-whole`, complete: false, scope: "", rank: 1 };
  return { format, complete: !part, scope: "", rank: 2 };
}
const OF_OTHERS =
  /^(?:-[a-zA-Z]*[utDFM]|--(?:unit|user|identifier|directory|file|root|machine|list|disk|verify|version|help|field|header|vacuum|rotate|flush|sync)|_|\/)/;

/** No time, no level: nothing that a log prints in front of a message. */
const isBare = (row: Draft): boolean => row.time === undefined && row.seconds === undefined && row.level === undefined;
/** A message goes on in the next line only where a window of this many columns may have wrapped it. */
const NARROWEST = 70;

/** Seconds since boot as `uptime` tells them, to the minute; undefined if the line is no such answer. */
export function upFor(content: string): number | undefined {
  if (PRETTY.test(content))
    return [...content.matchAll(/(\d+) ([a-z]+?)s?(?:,|$)/g)].reduce((sum, [, count, unit = ""]) => sum + Number(count) * (SECONDS_OF[unit] ?? 0), 0);
  const up = UP.exec(content);
  if (up === null || (up[1] === undefined && up[2] === undefined && up[4] === undefined)) return undefined;
  const [days, hours, minutes] = [up[1], up[2], up[3] ?? up[4]].map((part) => Number(part ?? 0)) as [number, number, number];
  return (days * 24 + hours) * 3600 + minutes * 60;
}

function aged(row: Message, uptime: number): Message {
  if (row.seconds === undefined) return row;
  const age = Math.max(0, Math.round((uptime - row.seconds) * 1000) / 1000);
  // files and the journal hold earlier boots, whose seconds are of another clock; a time without a zone is hours off at most
  return row.age !== undefined && row.age > age + FARTHEST_ZONE ? row : { ...row, age };
}
const FARTHEST_ZONE = 15 * 3600;

/** Without the clock only what the log itself tells: a message after which it goes on for an hour or more is at least that old. */
function leastAged(row: Message, newest: number): Message {
  const age = row.seconds === undefined || row.age !== undefined ? undefined : leastAge(row.seconds, newest);
  return age === undefined ? row : { ...row, age };
}

/** Read again, the log shows what is new behind what it showed before. */
function continued(rows: readonly Message[], later: readonly Message[]): Message[] {
  const isPlain = ({ time, seconds }: Message): boolean => time === undefined && seconds === undefined;
  const said = new Set(rows.filter(isPlain).map(({ message }) => message));
  return distinct([...rows, ...later.filter((row) => !isPlain(row) || !said.has(row.message))]);
}

/** Several filtered listings may hold the same message. */
function distinct(rows: readonly Message[]): Message[] {
  const seen = new Map<string, Message>();
  for (const row of rows) {
    const key = row.time === undefined && row.seconds === undefined ? `${row.line} ${row.message}` : `${row.seconds} ${row.time} ${row.message}`;
    if (!seen.has(key)) seen.set(key, row);
  }
  return [...seen.values()];
}

/** One line of any text layout; undefined for a line of another program than the kernel. */
function fromLine(content: string, minute: string | undefined, journal: boolean): Draft | undefined {
  const trimmed = content.trimStart();
  let rest = asSyslog(trimmed.slice((PATH_PREFIX.exec(trimmed) ?? NUMBER_PREFIX.exec(trimmed))?.[0].length ?? 0));
  const talos = TALOS.exec(rest);
  if (talos !== null) {
    const [prefix, facility, level, time] = talos as unknown as [string, string, string, string];
    return { facility, level: level === "warning" ? "warn" : level, time, message: rest.slice(prefix.length) };
  }
  const row: Draft = { message: "" };
  let named = false;
  const code = rest.charCodeAt(0);
  if (code === 60 /* < */) {
    const raw = RAW.exec(rest);
    if (raw !== null) {
      Object.assign(row, priority(Number(raw[1])));
      rest = rest.slice(raw[0].length);
    }
  } else if (code >= 97 && code <= 122 /* a-z */) {
    const decoded = DECODED.exec(rest);
    if (decoded !== null) {
      row.facility = decoded[1] as string;
      row.level = decoded[2] as string;
      rest = rest.slice(decoded[0].length);
    } else {
      const timeless = TIMELESS.exec(rest)?.[0].length ?? 0;
      rest = rest.slice(timeless);
      named = timeless > 0;
    }
  }
  // `dmesg -x --time-format iso` has the level in front
  const leveled = row.level !== undefined;
  if (rest.charCodeAt(0) !== 91 /* [ */ && (leveled || (!named && (code < 97 || code > 122)))) {
    const logread = LOGREAD.exec(rest);
    const stamp = logread === null ? (ISO.exec(rest) ?? FULL.exec(rest) ?? UNIX.exec(rest)) : null;
    if (logread !== null) {
      if (logread[4] !== "kernel") return undefined;
      row.time = logread[1] as string;
      Object.assign(row, { facility: logread[2], level: logread[3] });
      rest = rest.slice(logread[0].length);
    } else if (stamp !== null) {
      row.time = stamp[1] as string;
      rest = rest.slice(stamp[0].length);
      rest = rest.replace(CALLER, "");
      const program = PROGRAM.exec(rest);
      const hostless = program === null ? NO_HOST.exec(rest) : null;
      if ((program?.[2] ?? hostless?.[1]) === "kernel") rest = rest.slice((program ?? hostless)?.[0].length);
      else if ((program ?? hostless) !== null && !row.time.includes(",")) return undefined; // only `dmesg --time-format iso` has a comma, and no program
    }
  }
  if (rest.charCodeAt(0) === 91) {
    const since = SINCE_BOOT.exec(rest);
    const delta = since === null ? DELTA.exec(rest) : null;
    const bracketed = since === null && delta === null ? BRACKETED.exec(rest) : null;
    if (since !== null) row.seconds = Number(since[1]);
    else if (delta !== null && minute !== undefined) row.time = minute;
    else if (bracketed !== null) row.time = bracketed[1] as string;
    rest = rest.slice((since ?? delta ?? bracketed)?.[0].length ?? 0).replace(CALLER, "");
    if (since !== null && row.time === undefined) {
      const program = PROGRAM.exec(rest); // short-monotonic: "[   12.345678] node1 kernel: "
      if (program !== null && program[2] === "kernel") rest = rest.slice(program[0].length);
      // of the journal only: the kernel itself may begin a message with two words and a colon
      else if (journal && WITH_PID.test(program?.[0] ?? "")) return undefined;
    }
  }
  const bare = row.time === undefined && row.seconds === undefined && row.level === undefined && !named;
  // behind a prefix that is not known here: a line that says when is not one of any age
  const stamp = bare ? STAMP.exec(content) : null;
  if (stamp !== null) {
    const said = content.indexOf("kernel: ", stamp[0].length);
    return { time: stamp[1] as string, message: said === -1 ? content : content.slice(said + "kernel: ".length) };
  }
  // without any prefix it is the rest of a wrapped message, indented or not
  row.message = bare ? content : rest;
  return row;
}

function priority(number: number): { level: string; facility: string } {
  return { level: LEVELS[number & 7] as string, facility: FACILITIES[number >> 3] ?? `local${Math.max(0, (number >> 3) - 16)}` };
}

/** `dmesg -J`: {"dmesg":[{"pri":6,"time":0.000000,"msg":"…"},…]}. The outer object is taken off, so that a cut listing gives what came before the cut. */
function readJson(text: string, unparsed: UnparsedLines): Message[] {
  const start = text.indexOf("[");
  const opening = start === -1 ? null : /^\s*\{\s*"dmesg"\s*:\s*$/.exec(text.slice(0, Math.min(start, 200)));
  const newlines = opening === null ? "" : "\n".repeat(text.slice(0, start).split("\n").length - 1);
  let end = text.trimEnd().length;
  if (opening !== null && text[end - 1] === "}" && /\]\s{0,100}\}$/.test(text.slice(Math.max(0, end - 102), end))) end--;
  const rows: Message[] = [];
  for (const { value, line, text: quote } of jsonElements(opening === null ? text : newlines + text.slice(start, end), unparsed)) {
    const message = asString(value["msg"]);
    if (message === undefined) {
      unparsed.add(line, quote);
      continue;
    }
    const [number, name, seconds] = [asInteger(value["pri"]), asString(value["pri"]), value["time"]];
    const row: Message = {
      line,
      message,
      ...(typeof seconds === "number" ? { seconds } : {}),
      ...(number === undefined || number < 0 ? {} : priority(number)),
      // `dmesg -J -x`: {"fac":"kern","pri":"warn", …}
      ...(name !== undefined && LEVELS.includes(name) ? { level: name } : {}),
    };
    rows.push(Object.assign(row, { text: quote }));
  }
  return rows;
}

/** Among those of other programs. */
const isOfKernel = (value: Record<string, unknown>): boolean => asString(value["_TRANSPORT"]) === "kernel" || asString(value["SYSLOG_IDENTIFIER"]) === "kernel";

/** An entry of the journal; its time since boot is in microseconds. */
function fromJournal(value: Record<string, unknown>): Draft | undefined {
  const message = asString(value["MESSAGE"]);
  if (message === undefined) return undefined;
  const since = asInteger(value["_SOURCE_MONOTONIC_TIMESTAMP"]) ?? asInteger(value["__MONOTONIC_TIMESTAMP"]);
  const seconds = since === undefined ? undefined : since / 1e6;
  return { message, ...present({ seconds, time: entryTime(value), level: LEVELS[asInteger(value["PRIORITY"]) ?? -1] }) };
}
