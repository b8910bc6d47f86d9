import { z } from "zod";
import { byWord } from "./by-word.ts";
import { hasLetter, isPromptLine, operands } from "./command.ts";
import { answeredByDefault, defineFact, lines, type Parsed, type Part, UnparsedLines, type View } from "./fact.ts";
import { namesFound } from "./iptables-search.ts";
import { jsonElements } from "./json.ts";
import { type NodeEvent, nodeEvents, nodeEventsView } from "./node-event.ts";
import { type Metric, metricsAs, metricsView } from "./node-metrics.ts";
import { isShown, ranked } from "./parts.ts";
import { withoutPrompts } from "./paste.ts";
import { squeezed } from "./words.ts";

/**
 * Kernel settings under /proc/sys, and those that were asked for and do not exist.
 *
 *     net.bridge.bridge-nf-call-iptables = 0
 *     sysctl: cannot stat /proc/sys/net/netfilter/nf_conntrack_max: No such file or directory
 */
const Setting = z.object({
  line: z.int(),
  /** Dotted, as sysctl prints it; a dot inside an interface name is a slash: "net.ipv4.conf.eth0/100.rp_filter". */
  key: z.string(),
  /** Runs of blanks and tabs are one blank ("32768 60999"); "" where the kernel's value is empty. */
  value: z.string(),
});
const Absent = z.object({
  line: z.int(),
  /** A key of which the node said that it does not exist, or that a complete `sysctl -a` does not list. */
  key: z.string(),
});
/** Of the keys that begin with it every one was listed: a search behind `sysctl -a` asked for them. (Who pasted it may have left some away: none counts as absent.) */
const Prefix = z.object({ line: z.int(), prefix: z.string() });
/** A program that does not go on, or says that its containers are cut off, because of how a setting is; a watcher on the node (node-problem-detector, EKS's) that saw a limit reached. */
const Refusal = z.object({
  line: z.int(),
  key: z.string(),
  program: z.enum(["docker", "kubeadm", "watcher"]),
  /** True if it ended there. */
  ended: z.boolean().optional(),
});
const Sysctl = z.object({ rows: z.array(Setting), absent: z.array(Absent), prefixes: z.array(Prefix), refusals: z.array(Refusal).optional() });
export type Sysctl = z.infer<typeof Sysctl>;
type Setting = z.infer<typeof Setting>;
type Absent = z.infer<typeof Absent>;
type Refusal = z.infer<typeof Refusal>;

const KEYS = [
  "net.bridge.bridge-nf-call-iptables",
  "net.bridge.bridge-nf-call-ip6tables",
  "net.bridge.bridge-nf-call-arptables",
  "net.ipv4.ip_forward",
  "net.ipv6.conf.all.forwarding",
  "net.ipv4.conf.all.rp_filter",
  "net.ipv4.conf.default.rp_filter",
  "net.netfilter.nf_conntrack_count",
  "net.netfilter.nf_conntrack_max",
  "net.netfilter.nf_conntrack_tcp_be_liberal",
  "net.netfilter.nf_conntrack_log_invalid",
  "net.netfilter.nf_conntrack_buckets",
  "net.ipv4.neigh.default.gc_thresh1",
  "net.ipv4.neigh.default.gc_thresh2",
  "net.ipv4.neigh.default.gc_thresh3",
  "net.ipv6.neigh.default.gc_thresh3",
  "net.ipv4.ip_local_port_range",
  "net.ipv4.ip_local_reserved_ports",
  "net.core.somaxconn",
  "net.core.netdev_max_backlog",
  "net.ipv4.tcp_mem",
  "net.ipv4.vs.conn_reuse_mode",
  "net.ipv4.vs.conntrack",
];
const INTERFACES = "net.ipv4.conf.";
const INTERFACE_KEYS = "net\\.ipv4\\.conf\\..*\\.(rp_filter|forwarding|arp_announce|arp_ignore)$";

// The first word of a key is one of the kernel's top-level directories.
const PAIR = /^((?:abi|cachefiles|coda|crypto|debug|dev|fs|fscache|kernel|lnet|net|pstore|sunrpc|user|vm|xen)[./][!-<>-~]{1,300})[ \t]{0,4}=[ \t]{0,4}(.*)$/;
const PROC = /^(?:\/host)?\/proc\/sys(?:\/|$)/;
// sysctl: cannot stat P: …  cat: P: …  head: cannot open 'P' for reading: …  cat: can't open 'P': …
const NO_FILE = /^[^/'"]{0,80}['"]?((?:\/host)?\/proc\/sys\/[^\s'":]{1,300})['"]?(?: for reading)?: No such file or directory$/;
// BusyBox, and procps before 3.3.16
const NO_KEY = /^(?:sysctl: )?error: ['"]([^'"\s]{1,300})['"] is an unknown key/;
const HEADER = /^(?:==> )?((?:\/host)?\/proc\/sys\/[^\s:]{1,300})(?: <==)?$/;
const FILE_AND_VALUE = /^((?:\/host)?\/proc\/sys\/[^\s:]{1,300}):(.*)$/;
/** A value of numbers: nearly all files under /proc/sys hold one. */
const VALUES = /^-?\d{1,20}(?:[ \t]{1,20}-?\d{1,20}){0,7}[ \t]*$/;
/** The format of a loop or a search through files that prints each one's name beside its value. */
const EACH = "each";
const NAMED = /^((?:\/host)?\/proc\/sys\/[^\s:=]{1,300})(?:[ \t]{0,8}[:=][ \t]{0,8}|[ \t]{1,8})(\S.{0,300})$/;
// sysctl -a says that it looks at a key which can only be read once it was set
const REMARK = /^sysctl: reading key ["'][!-~]{1,300}["']$/;
/** The format of `sysctl -p` and `sysctl --system`, which names each file that it applies. */
const LOADED = "loaded";
/** The format of programs that tell among much else what they found of some settings. */
const TOLD = "told";
/** The format of `kubectl get events`: node-problem-detector tells of conntrack's table there. */
const EVENTS = "events";
/** The format of `ip netconf show`, which says `on` and `off`. */
const NETCONF = "netconf";
/** The format of `ip ntable show`: the limits of the neighbour tables, and settings of each device. */
const NTABLE = "ntable";
const APPLYING = /^\* Applying \S{1,300}(?: \.\.\.)?$/;

/** `netstat -s`, below "Ip:": "Forwarding: 2" is off; old versions "Forwarding is disabled". /proc/net/snmp has it as the first number. Of IPv6 they have no such line. */
const FORWARDING = /^(?:\s{1,8}Forwarding(?:: ([12])|\s+is (enabled|disabled))|Ip: ([12]) \d{1,3}(?: \d{1,20}){8,40})$/;
const isStatistics = (argv: readonly string[]): boolean =>
  (argv[0] === "netstat" && hasLetter(argv, "s")) || (/^(?:cat|e?grep|head)$/.test(argv[0] ?? "") && argv.at(-1) === "/proc/net/snmp" && argv.length < 4);
/** docker: "WARNING: bridge-nf-call-iptables is disabled" (`docker info`; so it says of a setting that is not there, too), "WARNING: IPv4 forwarding is disabled. …" (and `docker run`) */
const WARNED =
  /^["'`]?(?:WARNING: |(?:---> )?\[Warning\] )(?:(bridge-nf-call-ip6?tables)|(IPv4 forwarding)) is disabled(\. Networking will not work\.?)?["'`]?$/;
// kubeadm's preflight checks, as warnings where they were told to be none
const PREFLIGHT = /\[(WARNING|ERROR) FileContent--[\w-]{1,100}\]: (\/proc\/sys\/[\w/.-]{1,200}) (does not exist|contents are not set to 1)/;

export const sysctl = defineFact({
  id: "sysctl",
  title: "Kernel settings (sysctl), and the ones that do not exist",
  commands: [{ argv: ["sysctl", ...KEYS] }, { argv: ["sysctl", "-a", "-r", INTERFACE_KEYS] }],
  byHand: "sysctl -a",
  recognize(argv): View | undefined {
    if (argv[0] === "sysctl") return sysctlView(argv);
    if (argv[0] === "kubeadm" || isDocker(argv) || isStatistics(argv)) return { format: TOLD, complete: false, scope: argv[0] ?? "", rank: 0 };
    if (argv[0] === "ls") return listedFolder(argv) === undefined ? undefined : { format: "folder", complete: true, scope: argv.join(" "), rank: 0 };
    if (eachOf(argv)) return { format: EACH, complete: false, scope: argv.join(" "), rank: 1 };
    if (isNtable(argv)) return { format: NTABLE, complete: false, scope: argv.join(" ").slice(0, 200), rank: 0 };
    if (isNetconf(argv)) return { format: NETCONF, complete: false, scope: argv.join(" ").slice(0, 200), rank: 0 };
    const metrics = metricsView(argv, "metrics");
    if (metrics !== undefined) return metrics;
    const events = nodeEventsView(argv, EVENTS);
    if (events !== undefined) return events;
    const files = filesOf(argv);
    return files === undefined ? undefined : { format: "files", complete: false, scope: files.join(" "), rank: 1 };
  },
  schema: Sysctl,
  neverEmpty: (view) => view.complete && view.scope === "",
  // grep ends with 1 where it found nothing
  answered: ({ exitCode, text, stderr, command = "" }) =>
    answeredByDefault({ exitCode, text }) ||
    (exitCode === 1 && stderr.trim() === "" && command.includes("grep ")) ||
    stderr.split("\n", 1000).some((line) => absentKey(line.trimEnd(), []) !== undefined),
  parse({ text, argv, view, stderr, pipe, truncated, names = [] }) {
    if (view.format === EVENTS) return readEvents(nodeEvents({ text, argv, names }));
    if (view.format === TOLD) return readTold(text);
    if (view.format === NTABLE) return readNtable(text);
    if (view.format === NETCONF) return text.trimStart().startsWith("[{") ? readNetconfJson(text) : readNetconf(text);
    if (view.format === "folder") return readFolder(text, listedFolder(argv) ?? "", stderr, view.complete);
    const unparsed = new UnparsedLines();
    const rows: Setting[] = [];
    const absent = new Map<string, Absent>();
    const asked = view.format === "files" ? (filesOf(argv) ?? []).map(keyOfPath) : keyWords(argv).map(keyOfWord);
    const numbered = argv[0] === "grep" && hasLetter(argv, "n");
    // each line names its key
    const paired = view.format === "pairs" || view.format === "metrics" || view.format === LOADED;
    const bare: Bare[] = [];
    let file: string | undefined;
    let headed = 0;
    let others = 0;
    // head and tail name a file, and nothing but an empty line stands below
    const emptyFile = (): void => {
      if (file !== undefined && MAY_BE_EMPTY.has(keyOfPath(file))) rows.push({ line: headed, key: keyOfPath(file), value: "" });
    };
    for (const { line, text: raw } of lines(view.format === "metrics" ? metricsAs(text, pairLine) : text)) {
      const content = raw.trimStart(); // pasted text may be indented
      const missing = absentKey(content, asked);
      if (missing !== undefined) {
        others++;
        for (const key of withKnownBelow(missing)) if (!absent.has(key)) absent.set(key, { line, key });
      } else if (isPromptLine(content) || REMARK.test(content)) others++;
      else if (view.format === LOADED && APPLYING.test(content)) others++;
      else if (paired) {
        const pair = PAIR.exec(content);
        if (pair === null) unparsed.add(line, raw);
        else rows.push({ line, key: keyOfWord(pair[1] as string), value: squeezed(pair[2] as string) });
      } else {
        const header = HEADER.exec(content);
        const prefixed = header !== null ? null : view.format === EACH ? NAMED.exec(content) : FILE_AND_VALUE.exec(content);
        if (header !== null) {
          emptyFile();
          [file, headed] = [header[1], line];
        } else if (prefixed !== null) {
          const value = (prefixed[2] as string).replace(numbered ? /^\d{1,6}:/ : /^$/, "");
          rows.push({ line, key: keyOfPath(prefixed[1] as string), value: squeezed(value) });
        } else if (file !== undefined) {
          rows.push({ line, key: keyOfPath(file), value: squeezed(content) });
          file = undefined;
        } else bare.push({ line, text: numbered ? content.replace(/^\d{1,6}:/, "") : content });
      }
    }
    if (truncated !== true) emptyFile();
    // A key that does not exist is told on stderr: quoted from there.
    for (const message of stderr.split("\n", 1000)) {
      const missing = absentKey(message.trimEnd(), asked);
      if (missing !== undefined)
        for (const key of withKnownBelow(missing)) if (!absent.has(key)) absent.set(key, Object.assign({ line: 1, key }, { text: message }));
    }
    if (!paired) {
      const keys = asked.filter((key) => !absent.has(key));
      const values = withoutOthers(bare, keys.length, argv);
      const settings = settingsOf(values, keys, text, rows.length === 0, others === 0);
      if (settings !== undefined) rows.push(...settings);
      else for (const { line, text: content } of values) unparsed.add(line, content);
    }
    if (view.scope === "" && view.format === "pairs" && withoutPrompts(text).trim() === "" && stderr.trim() === "" && truncated !== true)
      for (const key of soughtInVain(pipe ?? "")) absent.set(key, { line: 1, key });
    const present = new Set(rows.map((row) => row.key));
    // of files that set the same key, the last one has its way
    const last = new Map(rows.map((row) => [row.key, row]));
    const first = rows[0]?.line;
    // behind a pipe only a search tells what it left over, and of a save of all settings alone
    const begun = view.scope === "" ? searchedPrefixes(pipe ?? "") : (pipe ?? "") === "" && view.format === "pairs" ? askedPrefixes(argv, rows) : [];
    const prefixes = first !== undefined && truncated !== true && unparsed.count === 0 ? begun : [];
    return unparsed.with({
      rows: view.format === LOADED ? [...last.values()] : rows,
      absent: [...absent.values()].filter((row) => !present.has(row.key)),
      prefixes: prefixes.map((prefix) => ({ line: first as number, prefix })),
    });
  },
  merge(parts) {
    const sources = new Map<string, number>();
    const rows: Setting[] = [];
    const absent = new Map<string, Absent>();
    ranked(parts).forEach((part, index) => {
      for (const row of part.value.rows) {
        const source = sources.get(row.key) ?? index;
        sources.set(row.key, source);
        if (source === index) rows.push(row); // the same key of the same output is a value of several lines
      }
      for (const row of part.value.absent) if (!absent.has(row.key)) absent.set(row.key, row);
      if (part.complete && part.view.scope === "") for (const row of notListed(part.value.rows)) if (!absent.has(row.key)) absent.set(row.key, row);
    });
    return {
      rows,
      absent: [...absent.values()].filter((row) => !sources.has(row.key)),
      prefixes: parts.flatMap((part) => part.value.prefixes),
      ...refusalsOf(parts),
    };
  },
  whole(parts) {
    if (isShown(parts)) return true;
    const known = new Set(parts.flatMap((part) => [...part.value.rows, ...part.value.absent].map((row) => row.key)));
    const prefixes = parts.flatMap((part) => part.value.prefixes);
    const interfaces = begins(INTERFACES, prefixes) || isShown(parts, "interfaces");
    return interfaces && KEYS.every((key) => known.has(key) || begins(key, prefixes));
  },
});

/** A line that is a value and does not name its key. */
interface Bare {
  readonly line: number;
  readonly text: string;
}

/** The lines that may be values of the files or keys that were asked for, without what other files and a person put beside them. */
function withoutOthers(bare: readonly Bare[], keys: number, argv: readonly string[]): readonly Bare[] {
  const place = argv[0] === "cat" && bare.length > keys ? ofOthers(argv) : undefined;
  const own = place === "behind" ? bare.slice(0, keys) : place === undefined ? bare : bare.slice(-keys);
  // what somebody wrote behind a blank line is no value
  const gap = own.findIndex((entry, i) => i > 0 && entry.line > (own[i - 1]?.line ?? 0) + 1);
  return gap === keys && own.every((entry, i) => i < gap === VALUES.test(entry.text)) ? own.slice(0, gap) : own;
}

/**
 * What lines without a key say of the keys that were asked for, in their order; undefined where it is not certain which is whose.
 * @param first no other setting was read
 * @param alone nor any other line
 */
function settingsOf(bare: readonly Bare[], keys: readonly string[], text: string, first: boolean, alone: boolean): Setting[] | undefined {
  if (keys.some((key) => key.includes("*"))) return undefined;
  if (bare.length === keys.length) return bare.map(({ line, text: value }, i) => ({ line, key: keys[i] as string, value: squeezed(value) }));
  const slots = text === "" ? 0 : text.split("\n", keys.length + 2).length - (text.endsWith("\n") ? 1 : 0);
  const values = new Map(bare.map((entry) => [entry.line, entry.text]));
  // in a paste the empty line before the first value stands for the command
  const shifted = bare.length === keys.filter((key) => !MAY_BE_EMPTY.has(key)).length && keys.some((key, i) => !MAY_BE_EMPTY.has(key) && !values.has(i + 1));
  if (alone && first && slots === keys.length && !shifted) {
    // As many lines as keys, some of them empty: so are those values.
    return keys.map((key, i) => ({ line: i + 1, key, value: squeezed(values.get(i + 1) ?? "") }));
  }
  // so is all there was, where the lines of a paste or the end of an output do not show it
  if (alone && first && keys.length === 1 && bare.length === 0 && MAY_BE_EMPTY.has(keys[0] as string))
    return [{ line: Math.max(1, text.split("\n").length - 1), key: keys[0] as string, value: "" }];
  if (!first || bare.length === 0 || bare.length !== keys.filter((key) => !MAY_BE_EMPTY.has(key)).length) return undefined;
  // the empty line of a list without entries is lost where somebody copies the output
  const rest = bare.map((entry) => ({ line: entry.line, value: squeezed(entry.text) }));
  const { line } = rest.at(-1) as { line: number };
  return keys.map((key) => ({ key, ...(MAY_BE_EMPTY.has(key) ? { line, value: "" } : (rest.shift() as { line: number; value: string })) }));
}

/** Of several outputs the refusals of all. */
function refusalsOf(parts: readonly Part<Sysctl>[]): { refusals?: Refusal[] } {
  const refusals = parts.flatMap((part) => part.value.refusals ?? []);
  return refusals.length === 0 ? {} : { refusals };
}

/** `node_nf_conntrack_entries 7` of node_exporter, which reads the files of these settings. */
const pairLine = ({ name, value }: Metric): string | undefined => (Object.hasOwn(MEASURED, name) ? `${MEASURED[name]} = ${value}` : undefined);
const MEASURED: Readonly<Record<string, string>> = {
  nf_conntrack_entries: "net.netfilter.nf_conntrack_count",
  nf_conntrack_entries_limit: "net.netfilter.nf_conntrack_max",
};

/** Lists that are empty where nobody set them. */
const MAY_BE_EMPTY = new Set(["net.ipv4.ip_local_reserved_ports"]);

function sysctlView(argv: readonly string[]): View | undefined {
  const words = keyWords(argv);
  // what writes or lists only names says nothing of what is set
  if (words.some((word) => word.includes("=")) || ["w", "N", "h", "V", "d"].some((letter) => hasLetter(argv, letter))) return undefined;
  if (argv.some((word) => /^--(?:write|names|help|version)/.test(word))) return undefined;
  // it prints what it sets; where the settings themselves were asked for, these say what became of it
  if (hasLetter(argv, "p") || hasLetter(argv, "f") || argv.some((word) => /^--(?:load|system)/.test(word)))
    return { format: LOADED, complete: false, scope: LOADED, rank: 0 };
  const values = hasLetter(argv, "n") || hasLetter(argv, "b") || argv.includes("--values") || argv.includes("--binary");
  if (hasLetter(argv, "a") || hasLetter(argv, "A") || hasLetter(argv, "X") || argv.includes("--all")) {
    if (values) return undefined;
    const pattern = patternOf(argv);
    if (pattern === INTERFACE_KEYS) return { format: "pairs", complete: true, scope: "interfaces", rank: 3 };
    return { format: "pairs", complete: pattern === undefined && words.length === 0, scope: pattern === undefined ? "" : `pattern ${pattern}`, rank: 2 };
  }
  if (words.length === 0) return undefined;
  const keys = new Set(words.map(keyOfWord));
  return { format: values ? "bare" : "pairs", complete: KEYS.every((key) => keys.has(key)), scope: [...keys].join(" "), rank: values ? 2 : 3 };
}

const begins = (key: string, prefixes: readonly { prefix: string }[]): boolean => prefixes.some(({ prefix }) => key.startsWith(prefix));

/** One grep, and no option of it that shows other lines or parts of lines. */
const GREP = /^(egrep|grep)(?: (-[EP]))? (\S{3,200})$/;
/** `^net\.(ipv4|ipv6)\.`, `net.core`: a beginning that a key can have, perhaps with alternatives. A dot without a backslash shows more, not less. */
const BEGINNING = /^\^?((?:net|kernel|vm|fs)\\?\.[\w\\.-]{0,80})(?:\(([\w\\.|-]{1,100})\)([\w\\.-]{0,80}))?$/;

/** The beginnings of keys that a search behind `sysctl -a` asks for; none if it asks for anything else. */
function searchedPrefixes(pipe: string): string[] {
  const [, program, option, pattern = ""] = GREP.exec(pipe) ?? [];
  return program === undefined ? [] : beginnings(pattern, program === "egrep" || option !== undefined);
}

/** `sysctl -a | grep bridge` that shows nothing: the settings of bridges, which come and go with their module, would have been found. */
function soughtInVain(pipe: string): string[] {
  const finds = namesFound(pipe);
  return KEYS.filter((key) => key.startsWith("net.bridge.") && finds?.(`${key} = `) === true);
}

/** `sysctl net`, `sysctl net.ipv4.conf`: a folder, of which it prints all keys; and `sysctl -a -r '^net[.]'`. */
function askedPrefixes(argv: readonly string[], rows: readonly Setting[]): string[] {
  const pattern = patternOf(argv);
  if (pattern !== undefined) return beginnings(pattern, true);
  return keyWords(argv)
    .map((word) => `${keyOfWord(word)}.`)
    .filter((folder) => rows.some(({ key }) => key.startsWith(folder)));
}

/** The beginnings of keys that a pattern takes; none if it takes anything else. */
function beginnings(pattern: string, extended: boolean): string[] {
  // between brackets a bar separates the group's alternatives
  const alternatives = extended ? pattern.split(/\|(?![^(]{0,100}\))/) : [pattern];
  const found = alternatives.map((alternative) => BEGINNING.exec(alternative));
  if (pattern === "" || found.some((match) => match === null || (match[2] !== undefined && !extended))) return [];
  return found.flatMap((match) => {
    const [, head = "", group, tail = ""] = match ?? [];
    return (group === undefined ? [""] : group.split("|")).map((word) => `${head}${word}${tail}`.replaceAll("\\", ""));
  });
}

const takesPattern = (word: string): boolean => word === "--pattern" || /^-[A-Za-z]{0,8}r$/.test(word);

function patternOf(argv: readonly string[]): string | undefined {
  const long = argv.find((word) => word.startsWith("--pattern="));
  if (long !== undefined) return long.slice("--pattern=".length);
  const at = argv.findIndex(takesPattern);
  return at === -1 ? undefined : (argv[at + 1] ?? "");
}

/** The words of a sysctl command line that name keys. */
const keyWords = (argv: readonly string[]): string[] =>
  argv.filter((word, i) => i > 0 && !word.startsWith("-") && !(i > 1 && takesPattern(argv[i - 1] as string)));

/** The one folder under /proc/sys of which ls prints names and nothing else. */
function listedFolder(argv: readonly string[]): string | undefined {
  const [folder, ...more] = operands(argv);
  const plain = !["l", "o", "g", "n", "R", "d", "i", "s"].some((letter) => hasLetter(argv, letter));
  return folder !== undefined && more.length === 0 && plain && PROC.test(folder) ? folder : undefined;
}

/** `ls /proc/sys/net/bridge`: a folder that is not there, or one that lacks the folders of keys netcheck knows. */
function readFolder(text: string, folder: string, stderr: string, all: boolean): Parsed<Sysctl> {
  const unparsed = new UnparsedLines();
  const absent = new Map<string, Absent>();
  const names = new Map<string, number>();
  const add = (row: Absent): void => void (absent.has(row.key) || absent.set(row.key, row));
  for (const { line, text: raw } of lines(text)) {
    const missing = absentKey(raw.trimStart(), []);
    if (missing !== undefined) for (const key of withKnownBelow(missing)) add({ line, key });
    else if (isPromptLine(raw)) continue;
    else if (/^[\w.:\s-]{1,4000}$/.test(raw)) for (const name of raw.trim().split(/\s+/)) names.set(name, line);
    else unparsed.add(line, raw);
  }
  for (const message of stderr.split("\n", 100)) {
    const missing = absentKey(message.trimEnd(), []);
    if (missing !== undefined) for (const key of withKnownBelow(missing)) add(Object.assign({ line: 1, key }, { text: message }));
  }
  // one or two names may be what a wrapped paste left over
  const [first] = names.values();
  if (first === undefined || !all || names.size < 3 || unparsed.count > 0) return unparsed.with({ rows: [], absent: [...absent.values()], prefixes: [] });
  const prefix = `${keyOfPath(folder)}.`;
  for (const key of KEYS) if (key.startsWith(prefix) && !names.has(key.slice(prefix.length).split(".")[0] as string)) add({ line: first, key });
  return unparsed.with({ rows: [], absent: [...absent.values()], prefixes: [] });
}

/** Whether docker warns of settings there: of those of bridges, and that packets are not passed on. */
const isDocker = (argv: readonly string[]): boolean =>
  argv[0] === "docker-compose" ||
  (argv[0] === "docker" && ["build", "compose", "start"].includes(argv[1] ?? "")) ||
  (argv[0] === "docker" && (["info", "run", "create"].includes(argv[1] ?? "") || (argv[1] === "system" && argv[2] === "info")));

const isNetconf = (argv: readonly string[]): boolean => {
  const [object = "", verb = "show"] = argv.slice(1).filter((word) => !/^-(?:[46jps]|stats|json|pretty|o(?:n(?:e(?:line)?)?)?)$/.test(word));
  return argv[0] === "ip" && /^netc(?:o(?:nf?)?)?$/.test(object) && /^(?:s|sh|sho|show|l|li|lis|list|dev)$/.test(verb);
};
// before iproute2 4.17: "ipv4 dev eth0 forwarding on …". `cut -c1-60` takes the end of the line away
const NETCONF_LINE =
  /^(?:inet|ipv4?(?=6? (?:dev|all|default) ))(6?) (?:dev )?(\S{1,15}) ((?:[a-z_]{2,40} (?:on|off|strict|loose)(?:\s{1,4}|$)){1,12}(?:[a-z_]{1,40}(?: [a-z]{0,5})?)?)$/;
const SWITCHES = byWord<string>({ off: "0", on: "1", strict: "1", loose: "2" });

/** `inet eth1 forwarding on rp_filter strict mc_forwarding off …`: the switches of each interface. What else it tells has other names, or is no setting. */
function readNetconf(text: string): Parsed<Sysctl> {
  const unparsed = new UnparsedLines();
  const rows: Setting[] = [];
  for (const { line, text: content } of lines(text)) {
    const [, six, name = "", rest = ""] = (content.length > 1000 ? null : NETCONF_LINE.exec(content.trim())) ?? [];
    if (six === undefined) {
      if (!isPromptLine(content)) unparsed.add(line, content);
      continue;
    }
    for (const [, key, word = ""] of rest.matchAll(/(?<![a-z_])(forwarding|rp_filter) (\w{2,6})(?=\s|$)/g)) {
      const value = SWITCHES[word];
      if (value !== undefined) rows.push({ line, key: `net.ipv${six === "" ? 4 : 6}.conf.${name.replaceAll(".", "/")}.${key}`, value });
    }
  }
  return unparsed.with({ rows, absent: [], prefixes: [] });
}

/** `[{"family":"inet","interface":"eth0","forwarding":false,"rp_filter":"off",…}]` */
function readNetconfJson(text: string): Parsed<Sysctl> {
  const unparsed = new UnparsedLines();
  const rows = jsonElements(text, unparsed).flatMap(({ value, line, text: quote }) => {
    const [family, name] = [value["family"], value["interface"]];
    if ((family !== "inet" && family !== "inet6") || typeof name !== "string") return [];
    return ["forwarding", "rp_filter"].flatMap((key) => {
      const setting = value[key] === true ? "1" : value[key] === false ? "0" : SWITCHES[String(value[key])];
      const place = `net.ipv${family === "inet" ? 4 : 6}.conf.${name.replaceAll(".", "/")}.${key}`;
      return setting === undefined ? [] : [{ line, key: place, value: setting, text: quote }];
    });
  });
  return unparsed.with({ rows, absent: [], prefixes: [] });
}

const isNtable = (argv: readonly string[]): boolean => {
  const [object = "", verb = "show"] = argv.slice(1).filter((word) => !/^-(?:[46s]|s(?:tat(?:istic)?s)?)$/.test(word));
  return argv[0] === "ip" && /^nt(?:a(?:b(?:le?)?)?)?$/.test(object) && /^(?:s|sh|sho|show|l|li|lis|list)$/.test(verb);
};

/** `inet arp_cache`, then set in `thresh1 128 thresh2 512 thresh3 1024 gc_int 30000`: the limits of the whole table. Each device has a block of its own, without them. */
function readNtable(text: string): Parsed<Sysctl> {
  const unparsed = new UnparsedLines();
  const rows: Setting[] = [];
  let family = "";
  for (const { line, text: content } of lines(text)) {
    const table = /^inet(6?) (?:arp|ndisc)_cache\b(.{0,400})$/.exec(content);
    if (table !== null) family = table[1] === "" ? "ipv4" : "ipv6";
    // -o: the block is one line
    const rest = table === null ? content : (table[2] as string);
    for (const [, number, value] of family === "" ? [] : rest.matchAll(/\bthresh([123]) (\d{1,10})\b/g))
      rows.push({ line, key: `net.${family}.neigh.default.gc_thresh${number}`, value: value as string });
    if (table === null && !/^\s{2,12}[a-z]/.test(content) && !isPromptLine(content)) unparsed.add(line, content);
  }
  return unparsed.with({ rows, absent: [], prefixes: [] });
}

/** `kubeadm init`, `kubeadm join` and docker print much else. */
function readTold(text: string): Parsed<Sysctl> {
  const rows: Setting[] = [];
  const absent: Absent[] = [];
  const refusals: Refusal[] = [];
  for (const { line, text: content } of lines(text)) {
    if (content.length > 2000) continue;
    const warned = WARNED.exec(content.trim());
    if (warned !== null) rows.push({ line, key: warned[2] === undefined ? `net.bridge.${warned[1]}` : "net.ipv4.ip_forward", value: "0" });
    // `docker info` tells the same of a host without any container
    if (warned?.[3] !== undefined) refusals.push({ line, key: "net.ipv4.ip_forward", program: "docker" });
    const forwarding = FORWARDING.exec(content.trimEnd());
    if (forwarding !== null)
      rows.push({ line, key: "net.ipv4.ip_forward", value: (forwarding[1] ?? forwarding[3]) === "1" || forwarding[2] === "enabled" ? "1" : "0" });
    const match = PREFLIGHT.exec(content);
    if (match === null) continue;
    const key = keyOfPath(match[2] as string);
    if (match[3] === "does not exist") absent.push({ line, key });
    else rows.push({ line, key, value: "0" });
    refusals.push({ line, key, program: "kubeadm", ...(match[1] === "ERROR" ? { ended: true } : {}) });
  }
  return new UnparsedLines().with({ rows, absent, prefixes: [], ...(refusals.length === 0 ? {} : { refusals }) });
}

/** node-problem-detector: "Conntrack table usage over 90%: 261902 out of 262144". */
const USAGE = /^Conntrack table .{1,40}: (\d{1,12}) out of (\d{1,12})$/;

/** The same without numbers, as older versions say it, and EKS's node monitoring agent of the kernel's message. */
const EXCEEDED = /^(?:Conntrack table full|Connection tracking exceeded the maximum for the kernel)$/;

/** The newest event that has the numbers, and those that say that the table is full. */
function readEvents(events: readonly NodeEvent[]): Parsed<Sysctl> {
  const rows: Setting[] = [];
  const refusals: Refusal[] = [];
  for (const { line, reason, message } of events) {
    if (EXCEEDED.test(message.trim())) refusals.push({ line, key: "net.netfilter.nf_conntrack_max", program: "watcher" });
    const [, count, max] = reason === "ConntrackFull" && rows.length === 0 ? (USAGE.exec(message.trim()) ?? []) : [];
    if (count === undefined || max === undefined) continue;
    rows.push({ line, key: "net.netfilter.nf_conntrack_count", value: count }, { line, key: "net.netfilter.nf_conntrack_max", value: max });
  }
  return new UnparsedLines().with({ rows, absent: [], prefixes: [], ...(refusals.length === 0 ? {} : { refusals }) });
}

/**
 * Whether a loop of the shell (`for f in /proc/sys/net/core/*mem_max; do echo $f $(cat $f); done`) or `find /proc/sys/… -exec grep -H . {} +` goes
 * through files under /proc/sys. What it prints of them is known only of lines that name the file.
 */
function eachOf(argv: readonly string[]): boolean {
  const files = argv[0] === "for" && argv[2] === "in" ? argv.slice(3) : argv[0] === "find" ? argv.slice(1, 2) : [];
  return files.length > 0 && files.every((word) => PROC.test(word));
}

/** The files under /proc/sys that cat, head, tail or grep read; undefined if they read anything else too, or print something else than lines. */
function filesOf(argv: readonly string[]): string[] | undefined {
  const program = argv[0] ?? "";
  if (!["cat", "head", "tail", "grep", "egrep"].includes(program)) return undefined;
  const files = argv.filter((word) => PROC.test(word));
  if (program === "cat" && ofOthers(argv) !== undefined) return files;
  // `grep . FILE /dev/null`, so that grep names the one file
  const rest = argv.slice(1).filter((word) => !PROC.test(word) && !word.startsWith("-") && (word !== "/dev/null" || !program.endsWith("grep")));
  const allowed = program === "cat" ? [] : program.endsWith("grep") ? rest.slice(0, 1) : rest.filter((word) => /^\+?\d{1,9}$/.test(word));
  if (files.length === 0 || rest.length > allowed.length) return undefined;
  if (program.endsWith("grep") && ["c", "l", "L", "q", "h", "o"].some((letter) => hasLetter(argv, letter))) return undefined;
  return files;
}

/**
 * `cat /proc/sys/net/ipv4/tcp_mem /proc/net/sockstat`: whether the files of other kinds stand behind the settings or in front of them, so that it can be told
 * which lines are the settings'. Each of these is one line. Undefined if there are none, or if they are mixed.
 */
function ofOthers(argv: readonly string[]): "behind" | "before" | undefined {
  const kinds = argv.slice(1).flatMap((word) => (word.startsWith("-") ? [] : [PROC.test(word)]));
  const [first, last] = [kinds[0], kinds.at(-1)];
  const turns = kinds.filter((kind, i) => i > 0 && kind !== kinds[i - 1]).length;
  return turns !== 1 ? undefined : first === true && last === false ? "behind" : "before";
}

/** "/proc/sys/net/ipv4/conf/eth0.100/rp_filter" → "net.ipv4.conf.eth0/100.rp_filter". */
function keyOfPath(path: string): string {
  return swapped(path.replace(PROC, "").replace(/\/$/, ""));
}

/** A key as people write it: the separator that comes first is the one that separates. */
function keyOfWord(word: string): string {
  const slash = word.indexOf("/");
  const dot = word.indexOf(".");
  return slash !== -1 && (dot === -1 || slash < dot) ? swapped(word) : word;
}

const swapped = (text: string): string => text.replace(/[./]/g, (separator) => (separator === "." ? "/" : "."));

/** The key that a message says does not exist. BusyBox mixes dots and slashes in its message, so the keys that were `asked` for decide. */
function absentKey(content: string, asked: readonly string[]): string | undefined {
  if (!content.includes(": No such file") && !content.includes("unknown key")) return undefined;
  const file = NO_FILE.exec(content)?.[1];
  if (file !== undefined) return keyOfPath(file);
  const word = NO_KEY.exec(content)?.[1];
  if (word === undefined) return undefined;
  return asked.find((key) => key.replaceAll("/", ".") === word.replaceAll("/", ".")) ?? keyOfWord(word);
}

/** A directory that does not exist takes the keys in it along. */
const withKnownBelow = (key: string): string[] => [key, ...KEYS.filter((known) => known.startsWith(`${key}.`))];

/**
 * The keys netcheck knows that a complete listing lacks. Their place is the line behind which they would stand: sysctl sorts. A listing that begins behind them, or
 * ends before them, was cut, whatever was said of it.
 */
function notListed(rows: readonly Setting[]): Absent[] {
  const present = new Set(rows.map((row) => row.key));
  return KEYS.filter((key) => !present.has(key)).flatMap((key) => {
    let before: Setting | undefined;
    for (const row of rows) if (row.key < key && (before === undefined || row.key > before.key)) before = row;
    if (before === undefined || rows.every((row) => row.key < key)) return [];
    return [Object.assign({ line: before.line, key }, "output" in before ? { output: before.output } : {})];
  });
}
