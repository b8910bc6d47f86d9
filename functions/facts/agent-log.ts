import { z } from "zod";
import { baseName, isPromptLine, optionValue } from "./command.ts";
import { answeredByDefault, defineFact, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { entryTime, JOURNAL_REMARK, journalEntries, STRUCTURED, structured } from "./journal.ts";
import { asInteger, asString, type JsonElement } from "./json.ts";
import { isLogStore, storedLines } from "./log-export.ts";
import { readMessage } from "./log-message.ts";
import { NODE_PREFIX, NUMBER_PREFIX, PATH_PREFIX } from "./log-prefix.ts";
import { newestFirst, ofEarlierBoot, withAges } from "./log-time.ts";
import { unitOf, unitOfPath, unitOfPod } from "./log-unit.ts";
import { laterReadings, ranked } from "./parts.ts";
import { present } from "./present.ts";
import { isWindowWidth } from "./unwrap.ts";

/**
 * The newest messages of node agents: kubelet, kube-proxy, the CNI's agent, systemd-networkd, NetworkManager, firewalld, containerd and others.
 *
 *     2026-11-21T03:51:28+0000 node1 kubelet[712]: E1121 03:51:28.612345     712 kubelet.go:2855] "Container runtime network not ready"
 *     E1121 03:51:28.612345       1 reflector.go:138] k8s.io/client-go/informers/factory.go:134: Failed to watch *v1.Service: …
 *     level=warning msg="Unable to …" subsys=daemon
 */
const Message = z.object({
  /** Of a message over several lines, the first. */
  line: z.int(),
  /** The program: "kubelet", "kube-proxy", "cilium-agent", "coredns", "systemd-networkd", "ipamd", "k3s" (kubelet and kube-proxy in one), …; "" if neither the command nor the line tells. */
  unit: z.string(),
  /** As printed, the one with the most: "2026-11-21T03:51:28+0000", "Nov 21 03:51:28", klog "1121 03:51:28.612345". */
  time: z.string().optional(),
  /**
   * Seconds between the message and the collection, where known. A time without a zone is taken as UTC; a result below zero counts as 0. Where the capture does
   * not tell when it was made, a message after which the log goes on for an hour or more has the time that it goes on: it is at least that old.
   */
  age: z.number().optional(),
  /** "debug", "info", "warning", "error" or "fatal". */
  level: z.string().optional(),
  /** File and line of the program: "proxier.go:1520". */
  source: z.string().optional(),
  /** Without the prefixes that the other fields hold. The lines of a message over several lines are joined with blanks. */
  message: z.string(),
});
/** A log that was looked at, whether or not it holds a message: one row per unit. */
const Log = z.object({
  line: z.int(),
  unit: z.string(),
  /** The output was cut, so its newest messages may be missing. */
  cut: z.boolean(),
});
const AgentLog = z.object({ rows: z.array(Message), logs: z.array(Log) });
type Message = z.infer<typeof Message> & { text?: string };
export type AgentLog = z.infer<typeof AgentLog>;

// What makes a line binary: control characters other than tab, and bytes that are no UTF-8.
const BINARY = /[^\P{Cc}\t]|\ufffd/u;
const COMPLAINT = /^(?:journalctl|tail|cat|head|grep|find|dmesg|kubectl|crictl|docker): |^Error from server|^error: |^FATA\[\d{4}\]/;
const HEADER = /^==> (\/?[^\s<>]{1,400}) <==$/;
// what stern prints when a pod comes or goes
const STERN_REMARK = /^[+-] [\w.-]{1,253}(?: [\w.-]{1,253})? › [\w.-]{1,63}$/;
// the pod and container in front of each line, and the namespace in front of those where it was asked for all
const STERN_PREFIX = /^(?:[a-z0-9-]{1,63} )?([a-z0-9][a-z0-9.-]{0,251}[a-z0-9])[ :]([a-z0-9][a-z0-9-]{0,62}) /;
/** A message joined out of several lines is cut here. */
const MAX_MESSAGE = 4000;

const NUMBER = "200";
const UNITS = ["kubelet", "kube-proxy", "k3s", "k3s-agent", "rke2-server", "rke2-agent", "snap.microk8s.daemon-kubelite", "snap.microk8s.daemon-kubelet"];
UNITS.push("systemd-networkd", "NetworkManager", "firewalld", "containerd", "crio", "docker", "iptables", "nftables", "nm-cloud-setup");
const FILES = ["/var/log/k3s.log", "/var/log/k3s-agent.log", "/var/log/kubelet.log", "/var/log/kube-proxy.log", "/var/log/aws-routed-eni/ipamd.log"];
FILES.push("/var/log/aws-routed-eni/plugin.log", "/var/log/aws-routed-eni/network-policy-agent.log", "/var/log/firewalld");
/** POD_NAMESPACE_CONTAINER-ID.log: the kubelet links the log of every container here. */
const CONTAINERS = ["*_kube-proxy-*", "*_cilium-agent-*", "*_calico-node-*", "*_aws-node-*", "*_kube-flannel-*", "*_coredns-*", "*_node-cache-*"];
CONTAINERS.push("*_kube-router-*");

export const agentLog = defineFact<AgentLog>({
  id: "agent-log",
  title: "Newest messages of kubelet, kube-proxy, CNI agents and network daemons",
  commands: [
    { argv: ["journalctl", ...UNITS.flatMap((unit) => ["-u", unit]), "-n", "400", "--no-pager", "-o", "short-iso"] },
    { argv: ["tail", "-v", "-n", NUMBER, ...FILES] },
    // the newest lines of the agents' containers: find runs tail itself, no shell in between
    {
      argv: ["find", "/var/log/containers", "("]
        .concat(CONTAINERS.flatMap((name, i) => (i === 0 ? ["-name", name] : ["-o", "-name", name])))
        .concat([")", "-exec", "tail", "-v", "-n", NUMBER, "{}", "+"]),
    },
  ],
  byHand: "journalctl -u kubelet -u kube-proxy --since -1h",
  recognize,
  schema: AgentLog,
  log: "newest",
  // exit code 1 only says that some file is not there
  answered: (output) => answeredByDefault(output) || onlyMissing(output.stderr) || KUBEADM_ERROR.test(output.stderr),
  parse({ text, stderr, argv, view, startedAt, zone, live, timed, truncated }) {
    const unparsed = new UnparsedLines();
    const entries = journalEntries(view.format, text, unparsed);
    const printed =
      view.format === "store"
        ? readStored(storedLines(text, unparsed))
        : entries !== undefined
          ? readEntries(entries, unparsed)
          : readText(text, argv, view.format, unparsed);
    const complained = view.format === "kubeadm" || (printed.messages.length === 0 && view.format === "container" && ENGINES.has(argv[0] ?? ""));
    const apart = !complained ? "" : view.format === "kubeadm" ? stderr : ofProgram(stderr);
    const other = apart === "" ? undefined : readText(apart, argv, view.format, unparsed);
    // the output has no such lines: they quote themselves
    const said = apart.split("\n");
    for (const row of other?.messages ?? []) row.text ??= said[row.line - 1] ?? "";
    const rows = other === undefined ? printed : { headers: other.headers, messages: [...printed.messages, ...other.messages] };
    const seen = new Map<string, z.infer<typeof Log>>();
    const cut = truncated === true;
    for (const { line, unit } of [...rows.headers, ...rows.messages]) if (unit !== "" && !seen.has(unit)) seen.set(unit, { line, unit, cut });
    // containers mostly have clocks of their own, in UTC
    const own = /^(?:journal|status)/.test(view.format) || argv.some((word) => unitOfPath(word) === "" && !/\/(?:pods|containers)/.test(word));
    const turned = view.format === "store" || argv[0] === "tac";
    const first = turned && startedAt === undefined ? newestFirst(rows.messages) : undefined;
    const known = first !== undefined || live === true || timed === true;
    return unparsed.with({ rows: [...withAges(rows.messages, startedAt ?? first, known, own ? zone : 0)], logs: [...seen.values()] });
  },
  merge(parts: readonly Part<AgentLog>[]) {
    const withAge = (part: Part<AgentLog>): AgentLog => (PREVIOUS.test(part.view.scope) ? ofBefore(part.value, parts) : part.value);
    const best = ranked(parts).map(withAge);
    const later = laterReadings(parts).map(withAge);
    const logs = new Map([...best, ...later].flatMap((value) => value.logs.map((log) => [log.unit, log] as const)).toReversed());
    const rows = best.flatMap((value) => value.rows);
    return { rows: later.length === 0 ? distinct(rows) : continued(rows, later), logs: [...logs.values()] };
  },
});

/** Print what a container's program wrote on its standard error there; klog writes nowhere else. kubectl puts both in one. */
const ENGINES: ReadonlySet<string> = new Set(["crictl", "docker", "podman", "nerdctl"]);
/** What the engine itself says: `time="…" level=warning msg="runtime connect using default endpoints"`, `WARN[0000] …`. Lines keep their numbers. */
const OF_ENGINE =
  /^(?:(?:WARN|INFO|ERRO|FATA|DEBU)\[\d{4}\] |time="\S{1,40}" level=\w{1,8} msg=|Error(?: response from daemon)?: |[EW]\d{4} \S{1,20} +\d{1,10} (?:remote_|util_unix))/;
function ofProgram(stderr: string): string {
  const kept = stderr.split("\n").map((line) => (OF_ENGINE.test(line) ? "" : line));
  return kept.some((line) => line.trim() !== "") ? kept.join("\n") : "";
}

/** kubeadm writes why it does not go on to its standard error. */
const KUBEADM_ERROR = /^\s{0,8}\[(?:ERROR|WARNING) [A-Za-z-]{1,60}\]: /m;

/** True if files or folders that are not there are all that went wrong. */
function onlyMissing(stderr: string): boolean {
  const messages = stderr.split("\n", 100).filter((line) => line.trim() !== "");
  return messages.length > 0 && messages.every((line) => line.trimEnd().endsWith("No such file or directory"));
}

/** `kubectl logs --previous`: what the container said that was there before. */
const PREVIOUS = /(?:^| )(?:-p|--previous(?:=true)?)(?: |$)/;
/** Where nobody knows when it was read, what the present container says tells how old it is at least. */
function ofBefore(value: AgentLog, parts: readonly Part<AgentLog>[]): AgentLog {
  const later = parts.flatMap((part) => (PREVIOUS.test(part.view.scope) ? [] : part.value.rows));
  return { ...value, rows: withAges([...value.rows, ...later], undefined, false).slice(0, value.rows.length) };
}

/** Read again, a log shows what is new behind what it showed before, which by then is older. */
function continued(rows: readonly Message[], later: readonly AgentLog[]): Message[] {
  const sayingOf = ({ unit, message }: Message): string => `${unit} ${message}`;
  const said = new Set(rows.filter(({ time }) => time === undefined).map(sayingOf));
  const added = later.flatMap((value) => value.rows.filter((row) => row.time !== undefined || !said.has(sayingOf(row))));
  return [...withAges(distinct([...rows, ...added]), undefined, false)];
}

/** Several outputs may hold the same message. */
function distinct(rows: readonly Message[]): Message[] {
  const seen = new Map<string, Message>();
  rows.forEach((row, i) => {
    const key = row.time === undefined ? `${i}` : `${row.time} ${row.unit} ${row.message}`;
    if (!seen.has(key)) seen.set(key, row);
  });
  return [...seen.values()];
}

/** `ifup eth0`, `service network restart` */
const IFUP = /^(?:\S{0,40}\/)?(?:ifup \S|(?:service )?network(?:ing)? (?:re)?start$)/;

/** The journal without the kernel's part, container logs, and log files, in every spelling. */
function recognize(argv: readonly string[]): View | undefined {
  const [program] = argv;
  const view = (format: string, complete: boolean, what: string): View => ({ format, complete, scope: what, rank: /^journal-[jve]/.test(format) ? 2 : 1 });
  if (program === "journalctl") {
    if (
      argv.some((word) =>
        /^-[a-z]*k$|^--(?:dmesg|list-|disk-usage|vacuum|verify|rotate|flush|header|version|help|fields)|^-[FN]$|^_TRANSPORT=kernel$/.test(word),
      )
    )
      return undefined;
    if (ofEarlierBoot(argv)) return undefined;
    const output = optionValue(argv, "-o", "--output") ?? argv.find((word) => /^-o\w/.test(word))?.slice(2) ?? "short";
    const fields = STRUCTURED.test(output);
    if (!fields && !/^(?:short(?:-[a-z-]{1,20})?|with-unit|cat)$/.test(output)) return undefined;
    // the newest lines are what this fact is about: a number of lines or a time to begin with is no cut
    const part = argv.some((word) => /^(?:-[pgUr]|-[a-z]*r|--(?:until|priority|grep|reverse|case-sensitive)|-b\d)/.test(word));
    const format = fields ? structured(output) : output === "cat" ? "cat" : "journal";
    return view(format, !part, `journal ${journalUnits(argv).join(" ")}`.trim());
  }
  if (isLogStore(argv)) return view("store", false, argv.slice(0, 40).join(" ").slice(0, 200));
  if (program === "stern" || program === "kubectl-stern") return view("stern", true, argv.slice(1).join(" "));
  if (program === "kubectl" || program === "oc" || program === "k3s") {
    const verb = argv.indexOf("logs");
    if (verb === -1) return undefined;
    return view("container", !argv.some((word) => /^(?:-p|--previous|--limit-bytes\S*)$/.test(word)), argv.slice(1).join(" "));
  }
  if (program === "crictl" || program === "docker" || program === "podman" || program === "nerdctl") {
    return argv[1] === "logs" && argv.length > 2 ? view("container", !argv.includes("--until"), argv.slice(1).join(" ")) : undefined;
  }
  if (program === "systemctl" && argv.includes("status")) {
    const unit = argv.slice(argv.indexOf("status") + 1).find((word) => !word.startsWith("-"));
    return unit === undefined ? undefined : view("status", false, `status ${unit}`);
  }
  // what it complains of before it does anything; the rest of what it prints is about other things
  if (program === "kubeadm" && argv.some((word) => word === "init" || word === "join")) return view("kubeadm", false, argv.slice(1).join(" ").slice(0, 200));
  // what the scripts that set interfaces up say where they were typed
  if (IFUP.test(argv.slice(0, 3).join(" "))) return view("files", false, argv.slice(0, 3).join(" ").slice(0, 200));
  // BusyBox: the newest lines of all programs
  if (program === "logread") return view("files", true, "logread");
  if (program === "find") {
    const exec = argv.indexOf("-exec");
    const inner = argv[exec + 1];
    if (exec === -1 || !/^\/(?:host\/)?var\/log\//.test(argv[1] ?? "") || (inner !== "tail" && inner !== "cat" && inner !== "grep")) return undefined;
    return view("files", inner !== "grep", "find");
  }
  if (!["cat", "tail", "head", "grep", "egrep", "zgrep", "zcat", "less", "more", "tac"].includes(program ?? "")) return undefined;
  const files = argv.slice(1).filter((word) => unitOfPath(word) !== undefined);
  if (files.length === 0) return undefined;
  return view("files", program === "tail" || program === "cat", files.join(" "));
}

/** Units that a journalctl command asks for: `-u kubelet`, `-xeu kubelet`, `--unit=kubelet`, `-t kubelet`, `_SYSTEMD_UNIT=kubelet.service`. */
function journalUnits(argv: readonly string[]): string[] {
  const units: string[] = [];
  argv.forEach((word, i) => {
    const next = argv[i + 1];
    const value =
      /^(?:--(?:unit|identifier|user-unit)|_SYSTEMD_UNIT|SYSLOG_IDENTIFIER|_COMM)=(.{1,255})$/.exec(word)?.[1] ?? /^-[ut](\w.{0,255})$/.exec(word)?.[1];
    if (value !== undefined) units.push(unitOf(value));
    else if (/^(?:-[a-z]{0,8}[ut]|--unit|--identifier)$/.test(word) && next !== undefined) units.push(unitOf(next));
  });
  return [...new Set(units)].sort();
}

/** The unit that the command line names, or "" if it names none or several. */
function askedUnit(argv: readonly string[], format: string): string {
  if (format === "journal" || format === "cat") {
    const units = journalUnits(argv);
    return units.length === 1 ? (units[0] as string) : "";
  }
  if (format === "container") return unitOfPod(argv);
  if (format === "kubeadm") return format;
  if (format === "status") return "";
  const units = new Set(argv.slice(1).flatMap((word) => unitOfPath(word) ?? []));
  return units.size === 1 ? ([...units][0] as string) : "";
}

interface Rows {
  readonly messages: Message[];
  /** Logs that the output names itself. */
  readonly headers: { line: number; unit: string }[];
}

function readText(text: string, argv: readonly string[], format: string, unparsed: UnparsedLines): Rows {
  const messages: Message[] = [];
  const asked = askedUnit(argv, format);
  const headers = asked === "" ? [] : [{ line: 1, unit: asked }];
  let unit = asked;
  // the message that the next line may go on with, its first line, and the number of its last
  let open: { row: Message; first: string; last: number; width: number } | undefined;
  const window = windowOf(text);
  const pager = format === "journal" ? pagerOf(text) : undefined;
  for (const { line, text: content } of lines(text)) {
    const header = HEADER.exec(content);
    if (header !== null) {
      unit = unitOfPath(header[1] as string) ?? unitOf(baseName(header[1] as string).replace(/\.(?:log|txt)$/, ""));
      headers.push({ line, unit });
      open = undefined;
      continue;
    }
    if (JOURNAL_REMARK.test(content) || isPromptLine(content) || (format === "stern" && STERN_REMARK.test(content))) continue;
    if (BINARY.test(content) || COMPLAINT.test(content)) {
      unparsed.add(line, content);
      continue;
    }
    // wrapped right behind what klog begins with
    const torn = open !== undefined && open.last === line - 1 && HEAD_ALONE.test(open.row.message) && SOURCE.test(content) ? open : undefined;
    const whole = torn === undefined ? undefined : readMessage(`${torn.first} ${content}`, format);
    if (torn !== undefined && whole !== undefined && whole !== "kernel") {
      const { prefixed: _, joins: __, ...fields } = whole;
      Object.assign(torn.row, fields, { unit: fields.unit || torn.row.unit, text: `${torn.first}\n${content}` });
      open = { ...torn, last: line, width: content.length };
      continue;
    }
    const pod = format === "stern" ? STERN_PREFIX.exec(content) : null;
    const path = pod ?? PATH_PREFIX.exec(content) ?? NUMBER_PREFIX.exec(content) ?? (format === "cat" ? NODE_PREFIX.exec(content) : null);
    const pathUnit = pod !== null ? unitOf(pod[2] as string) : path === null ? undefined : path[1] === undefined ? "" : unitOfPath(path[1]);
    const read = readMessage(path === null || pathUnit === undefined ? content : content.slice(path[0].length), format === "stern" ? "container" : format);
    if (read === "kernel") {
      open = undefined;
      continue;
    }
    const { prefixed, joins, ...fields } = read;
    // its end was not seen: it is a message, and it rules nothing out
    if (content.length === pager && content.endsWith(">")) unparsed.add(line, content);
    if (!prefixed && format === "status") continue; // the head of `systemctl status`
    // what grep found is a line of its own
    const rest = open === undefined ? false : prefixed ? goesOn(open.row, fields) : joins;
    if (rest && pathUnit === undefined && open !== undefined && open.last === line - 1 && open.row.message.length + content.length < MAX_MESSAGE) {
      // what a window cut goes on in the middle of a word
      const wrapped = !prefixed && open.width === window;
      open.row.message = wrapped ? open.row.message + content : `${open.row.message} ${prefixed ? fields.message.trim() : content.trim()}`;
      open.row.text = `${open.row.text ?? open.first}\n${content}`;
      open.last = line;
      open.width = content.length;
      continue;
    }
    const row: Message = { line, ...fields, unit: fields.unit || pathUnit || unit };
    messages.push(row);
    open = prefixed ? { row, first: content, last: line, width: content.length } : undefined;
  }
  return { messages, headers };
}

/** Level, time and thread of klog, and what must follow: file and line of the program. */
const HEAD_ALONE = /^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{1,9}(?: {1,8}\d{1,10})?$/;
const SOURCE = /^ {0,8}(?:\d{1,10} {1,4})?[\w.-]{1,100}\.go:\d{1,6}\] /;

/** The columns of the window in which all of a text was shown, if it fills the window and has no longer line. */
function windowOf(text: string): number | undefined {
  const widest = [...lines(text)].reduce((most, { text: content }) => Math.max(most, content.length), 0);
  return isWindowWidth(widest) ? widest : undefined;
}

/** The columns at which journalctl's pager cut the lines: it puts `>` in the last one. */
function pagerOf(text: string): number | undefined {
  const widest = [...lines(text)].reduce((most, { text: content }) => Math.max(most, content.length), 0);
  const cut = [...lines(text)].filter(({ text: content }) => content.length === widest && content.endsWith(">")).length;
  return cut >= (isWindowWidth(widest) ? 1 : 2) ? widest : undefined;
}

/**
 * The journal and the container runtime put their prefix in front of each line of a message over several lines. The rest of klog's has no prefix of its own, and was
 * written in the same second.
 */
function goesOn(row: Message, next: Omit<Message, "line">): boolean {
  const second = (time: string | undefined): string | undefined => /\d\d:\d\d:\d\d/.exec(time ?? "")?.[0];
  return (
    row.source !== undefined &&
    next.source === undefined &&
    next.level === undefined &&
    (next.unit === "" || next.unit === row.unit) &&
    second(row.time) === second(next.time)
  );
}

/** What a store of logs gave out: `gcloud logging read`, `aws logs tail`, … */
function readStored(entries: readonly JsonElement[]): Rows {
  const messages = entries.flatMap(({ value, line, text }): Message[] => {
    const read = readMessage(JSON.stringify(value), "cat");
    if (read === "kernel") return [];
    const { prefixed: _, joins: __, ...fields } = read;
    return [Object.assign({ line, ...fields }, { text })];
  });
  return { messages, headers: [] };
}

const PRIORITIES = ["fatal", "fatal", "fatal", "error", "warning", "info", "info", "debug"];

/** `journalctl -o json` and `-o verbose`: one object a message. */
function readEntries(entries: readonly JsonElement[], unparsed: UnparsedLines): Rows {
  const messages: Message[] = [];
  for (const { value, line, text: quote } of entries) {
    const message = asString(value["MESSAGE"]);
    const name = asString(value["SYSLOG_IDENTIFIER"]) ?? asString(value["_SYSTEMD_UNIT"]) ?? asString(value["_COMM"]) ?? "";
    if (message === undefined) unparsed.add(line, quote);
    else if (name !== "kernel" && value["_TRANSPORT"] !== "kernel") {
      const read = readMessage(message, "cat");
      const { prefixed: _, joins: __, ...fields } = read === "kernel" ? { message, unit: "", prefixed: true, joins: false } : read;
      const level = PRIORITIES[asInteger(value["PRIORITY"]) ?? -1];
      const row: Message = { line, ...present({ level }), ...fields, unit: unitOf(name), ...present({ time: entryTime(value) }) };
      messages.push(Object.assign(row, { text: quote }));
    }
  }
  return { messages, headers: [] };
}
