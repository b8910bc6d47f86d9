import { z } from "zod";
import { byWord } from "./by-word.ts";
import { hasLetter, hasOption, operands, optionValue } from "./command.ts";
import { defineFact, lines, type Part, type Row, rankOf, UnparsedLines, type View } from "./fact.ts";
import { asInteger, asString, jsonElements } from "./json.ts";
import { isPrompt } from "./paste.ts";
import { present } from "./present.ts";
import { isWindowWidth } from "./unwrap.ts";

/**
 * Processes of the node, and containers where a container tool was asked.
 *
 *        1432 /usr/bin/kubelet --config=/var/lib/kubelet/config.yaml
 *     root        1432  2.1  1.0 2045644 85312 ?       Ssl  Jan02 210:11 /usr/bin/kubelet --config=/var/lib/kubelet/config.yaml
 */
const Process = z.object({
  line: z.int(),
  pid: z.int().optional(),
  /** Base name of the program. Listings that show the kernel's name of it (`ps -e`, `comm`) cut it at 15 characters. */
  command: z.string(),
  /** Everything behind the program, cut at 2,000 characters; absent where there is nothing, or the listing does not show it. */
  arguments: z.string().optional(),
  /** Ended, and not yet collected by its parent: it does no work any more. */
  defunct: z.boolean(),
});

/**
 * Containers, as docker and crictl name them: Kubernetes names of docker are `k8s_<container>_<pod>_<namespace>_<uid>_<attempt>`.
 *
 *     d4f2a0b1c3e5  8d147537fb7d1  2 hours ago  Running  coredns  0  6a1b2c3d4e5f6  coredns-7db6d8ff4d-abcde
 */
const Container = z.object({
  line: z.int(),
  name: z.string(),
  /** A name, or an id where the tool shows only that. */
  image: z.string(),
  /** "running", "exited", "created", "restarting", "paused", "unknown", … */
  state: z.string(),
  /** Name of the pod, where the tool tells. */
  pod: z.string().optional(),
  /** How many containers of this name the pod had before (crictl). */
  attempt: z.int().optional(),
});
/** A listing that shows every process: who is not in `rows` does not run. */
const Listing = z.object({ line: z.int() });
/** A text that somebody searched for in such a listing: whose line holds it and is not in `rows` does not run. One row per alternative. */
const Search = z.object({ line: z.int(), text: z.string() });
const Processes = z.object({
  rows: z.array(Process),
  containers: z.array(Container),
  listings: z.array(Listing),
  searches: z.array(Search),
  /** Listings of crictl that show every container that runs: what the kubelet started and is not in `containers` does not run. */
  containerListings: z.array(Listing),
});
export type Process = z.infer<typeof Process>;
type Container = z.infer<typeof Container>;
type Processes = z.infer<typeof Processes>;

const MAX_ARGUMENTS = 2000;
/** Columns before the command, where a listing has no title line (it was taken away by `grep`). */
const LAYOUTS: Readonly<Record<string, readonly string[]>> = {
  aux: ["USER", "PID", "%CPU", "%MEM", "VSZ", "RSS", "TTY", "STAT", "START", "TIME"],
  full: ["UID", "PID", "PPID", "C", "STIME", "TTY", "TIME"],
  names: ["PID", "TTY", "TIME"],
  states: ["PID", "TTY", "STAT", "TIME"],
  bare: ["PID", "USER", "TIME"],
  pid: ["PID"],
};
const TITLE_WORD = /^(?:[A-Z%][A-Za-z%]{0,11}|NLWP|\+)$/;
const COMMAND_TITLE = /^(?:COMMAND|CMD|Command|ARGS)$/;
/** The arms of the tree that `ps f` draws. */
const TREE = /^[\s|`]{0,200}\\_ /;
const FAILURE = /^(?:error|ps|pgrep|busybox|usage|Usage)(?::|\s\[)/;

export const process = defineFact({
  id: "process",
  title: "Processes and containers on the node",
  // the second one is for small builds of BusyBox, which know no -e and list everything anyway
  commands: [{ argv: ["ps", "-e", "-o", "pid,args"] }, { argv: ["ps", "w"] }],
  recognize(argv): View | undefined {
    const [program] = argv;
    if (program === "ps") return psView(argv);
    if (program === "pgrep") {
      if (!hasLetter(argv, "a") && !hasLetter(argv, "l") && !hasOption(argv, "--list-full", "--list-name")) return undefined;
      return { format: "pid", complete: false, scope: `pgrep ${argv.at(-1)}`, rank: 1 };
    }
    return containerView(argv);
  },
  schema: Processes,
  parse({ text, argv, view, pipe, truncated }) {
    const unparsed = new UnparsedLines();
    if (view.format === "docker" || view.format.startsWith("cri"))
      return unparsed.with({ rows: [], containers: readContainers(text, view.format, unparsed), listings: [], searches: [], containerListings: [] });
    const rows: Process[] = [];
    let columns = view.format === "custom" ? customColumns(argv) : LAYOUTS[view.format];
    // only the last column may hold blanks: `-o pid,comm,args` ends with the whole command
    const names = view.format === "names" || (view.format === "custom" && /(?:^|[,\s])u?comm(?:[=:][^,]{0,40})?$/.test(formatOf(argv) ?? ""));
    const window = windowOf(text);
    const cut: { line: number; text: string }[] = [];
    let rests = 0;
    for (const { line, text: content } of lines(text)) {
      const title = titleColumns(content);
      if (title !== undefined) {
        columns = title;
        continue;
      }
      // no process begins so: the rest of a line that a mail wrapped
      const last = rows.at(-1);
      if (!names && last?.arguments !== undefined && last.line + rests === line - 1 && /^ {0,3}--?[a-z]/.test(content)) {
        last.arguments += ` ${content.trim()}`;
        rests++;
        continue;
      }
      rests = 0;
      const row = columns === undefined ? undefined : processRow(content, columns, line, names);
      if (row !== undefined) {
        rows.push(row);
        if (!names && content.length === window && row.arguments === undefined && !content.endsWith("]")) cut.push({ line, text: content });
      } else if (!isPrompt(content)) unparsed.add(line, content);
    }
    // where the lines were wrapped instead, their rests stand behind them, and could not be read
    if (unparsed.count === 0) for (const { line, text: content } of cut) unparsed.add(line, content);
    // whether it shows all of them is known when the parts are put together
    const whole = argv[0] === "ps" && view.scope === "" && view.format !== "bare" && truncated !== true;
    const texts = whole && rows.length > 0 ? searched(pipe ?? "") : [];
    const searches = texts.map((found) => ({ line: (rows[0] as Process).line, text: found }));
    return unparsed.with({ rows, containers: [], listings: [], searches, containerListings: [] });
  },
  merge(parts) {
    const best = [...parts].filter((part) => part.sample === 1).sort((a, b) => Number(isAll(b)) - Number(isAll(a)) || rankOf(b) - rankOf(a));
    const [first] = best;
    const rows = first !== undefined && isAll(first) ? first.value.rows : unique(best.flatMap((part) => part.value.rows));
    const listings = best.filter(isAll).flatMap((part) => part.value.rows.slice(0, 1).map(({ line, output }: Row) => present({ line, output })));
    const searches = best.flatMap((part) => part.value.searches);
    const containerListings = best
      .filter((part) => part.complete && part.view.format.startsWith("cri"))
      .flatMap((part) => part.value.containers.slice(0, 1).map(({ line, output }: Row) => present({ line, output })));
    return { rows, containers: best.flatMap((part) => part.value.containers), listings, searches, containerListings };
  },
  whole: (parts) => parts.some(isAll),
});

/** True if a part lists every process. A bare `ps` does so only on BusyBox: elsewhere it shows one terminal, on which process 1 never is. */
function isAll(part: Part<Processes>): boolean {
  if (!part.complete || part.view.scope !== "") return false;
  return part.view.format !== "bare" || part.value.rows.some((row) => row.pid === 1);
}

/** Several partial listings may show one process. */
function unique(rows: readonly Process[]): Process[] {
  const seen = new Set<string>();
  return rows.filter((row) => {
    const key = `${row.pid ?? row.line} ${row.command}`;
    if (row.pid !== undefined && seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/** One grep that shows lines, for plain words and alternatives of them (`grep -E 'flanneld|calico'`, `grep [f]lanneld`), perhaps with another one that leaves the first grep itself out. */
const GREP = /^[ef]?grep(?: -[niwEFPe]{1,4}| --color(?:=\w{1,8})?){0,3} ([\w[\]./|\\-]{3,300})(?: \| [ef]?grep -v ["']?grep["']?)?$/;

/** The texts that a search behind `ps` cannot have left out; none if it is another kind of filter. */
function searched(pipe: string): string[] {
  const pattern = GREP.exec(pipe)?.[1];
  const texts = (pattern ?? "").split(/\\?\|/).map((text) => text.replace(/^\[(\w)\]/, "$1"));
  return texts.every((text) => /^[\w/-]{3,60}$/.test(text)) ? texts : [];
}

function psView(argv: readonly string[]): View | undefined {
  if (hasOption(argv, "--version", "-V", "--help")) return undefined;
  const bsd = argv.slice(1).find((word) => /^[a-zA-Z]{1,12}$/.test(word) && argv[argv.indexOf(word) - 1] !== "-o") ?? "";
  const letters = argv.filter((word, i) => i > 0 && /^-[A-Za-z]{1,12}$/.test(word)).join("");
  // `ps -aux` is read as `ps aux`
  const aux = bsd.includes("u") || /^-a[a-z]{0,6}u|^-u?ax/.test(letters);
  const everything = /[eA]/.test(letters.replace("-o", "")) || (/a/.test(bsd) && /x/.test(bsd)) || /a[a-z]{0,4}x/.test(letters);
  const selected = argv.some((word, i) => i > 0 && (/^-(?:C|p|q|G|g|s|t|U)$/.test(word) || /^--(?:pid|ppid|user|group|tty|sid)\b/.test(word)));
  const custom = formatOf(argv) !== undefined;
  const format = custom ? "custom" : aux ? "aux" : /[fF]/.test(letters) ? "full" : everything ? (bsd === "" ? "names" : "states") : "bare";
  return {
    format,
    complete: !selected,
    scope: selected ? argv.slice(1).join(" ") : "",
    rank: custom || aux || format === "full" ? 4 : format === "bare" ? 1 : 2,
  };
}

/** The value of `-o` (`-eo pid,args`, `-o pid -o args`, `--format=`, BSD `o`), or undefined. */
function formatOf(argv: readonly string[]): string | undefined {
  const given: string[] = [];
  argv.forEach((word, i) => {
    if (i > 0 && (/^-[A-Za-z]{0,10}o$/.test(word) || /^[a-z]{0,8}o$/.test(word))) given.push(argv[i + 1] ?? "");
    else if (/^-o./.test(word)) given.push(word.slice(2));
  });
  const long = optionValue(argv, "--format");
  if (long !== undefined) given.push(long);
  return given.length === 0 ? undefined : given.join(",");
}

function customColumns(argv: readonly string[]): readonly string[] | undefined {
  const names = (formatOf(argv) ?? "").split(/[,\s]/, 40).map((name) => name.replace(/[=:].*/, ""));
  const last = names.pop();
  return last !== undefined && /^(?:args|cmd|command|comm|ucmd|ucomm)$/.test(last) ? names.map((name) => name.toUpperCase()) : undefined;
}

/**
 * The width of the window that cut the lines of a listing, which ps does on a terminal: as many columns as windows have, or several lines, and no line has more. A program's name that reaches to it
 * may go on behind it.
 */
function windowOf(text: string): number | undefined {
  const widths = [...lines(text)].map((row) => row.text.length);
  const widest = widths.reduce((most, width) => Math.max(most, width), 0);
  const full = widths.filter((width) => width === widest).length;
  return widest >= NARROWEST && full >= (isWindowWidth(widest) ? 1 : 3) ? widest : undefined;
}
const NARROWEST = 60;

/** The columns before the command, if the line is a title line. */
function titleColumns(content: string): readonly string[] | undefined {
  const columns = content.trim().split(/\s+/, 40);
  const last = columns.pop() ?? "";
  return COMMAND_TITLE.test(last) && columns.every((word) => TITLE_WORD.test(word)) && columns.some((word) => /^PID$/i.test(word)) ? columns : undefined;
}

/** `names`: the last column is the kernel's name of the program, which may hold blanks, and nothing else. */
function processRow(content: string, columns: readonly string[], line: number, names: boolean): Process | undefined {
  let rest = content.trimStart();
  let pid: number | undefined;
  for (const column of columns) {
    const width = column === "LSTART" || column === "STARTED" ? (/^(?:[A-Z][a-z]{2} ){2} ?\d{1,2} [\d:]{8} \d{4}(?= )/.exec(rest)?.[0].length ?? 0) : 0;
    const blank = rest.slice(width).search(/\s/);
    const end = blank === -1 ? rest.length : width + blank;
    const word = rest.slice(0, end);
    if (column.toUpperCase() === "PID") {
      if (!/^\d{1,10}$/.test(word)) return undefined;
      pid = Number(word);
    } else if (/^(?:VSZ|VmSize)$/.test(column) && !/^\d{1,12}[kmg]?$/.test(word)) {
      // old BusyBox leaves this column empty for threads of the kernel
      continue;
    } else if (/^(?:PPID|C|%CPU|%MEM|RSS|LWP|NLWP|NI|PGID|SID)$/.test(column) && !/^(?:-|-?[\d.]{1,12}[a-z]?)$/i.test(word)) return undefined;
    else if (/^(?:TIME)$/.test(column) && !/^[\dh:.d-]{3,15}$/.test(word)) return undefined;
    rest = rest.slice(end).trimStart();
    if (rest === "") return undefined;
  }
  const program = programOf(rest.replace(TREE, ""), names);
  return program === undefined ? undefined : { line, ...present({ pid }), ...program };
}

function programOf(shown: string, names: boolean): Omit<Process, "line" | "pid"> | undefined {
  const defunct = shown.endsWith("<defunct>");
  const text = (defunct ? shown.slice(0, -"<defunct>".length) : shown).trim();
  // no command line is left of it: a thread of the kernel, or a process that ended
  const bracketed = /^[[{]([^\]}]{1,100})[\]}](?: (.{1,2000}))?$/s.exec(text);
  if (bracketed !== null) return { command: bracketed[1] as string, ...present({ arguments: bracketed[2] }), defunct };
  if (names) return text === "" ? undefined : { command: text.slice(0, 200), defunct };
  const end = text.search(/\s/);
  const path = end === -1 ? text : text.slice(0, end);
  // `-bash` is a login shell; `sshd: root@pts/0` and `nginx: worker process` are titles that programs give themselves
  const command = path.slice(path.lastIndexOf("/") + 1).replace(/^-(?=\w)|:$/g, "");
  if (command === "") return undefined;
  const given = end === -1 ? "" : text.slice(end).trim().slice(0, MAX_ARGUMENTS);
  return { command: command.slice(0, 200), ...present({ arguments: given === "" ? undefined : given }), defunct };
}

const CONTAINER_VALUED = new Set(["-r", "--runtime-endpoint", "-H", "--host", "-n", "--namespace", "-f", "--filter"]);

function containerView(argv: readonly string[]): View | undefined {
  const [program, ...rest] = argv;
  const docker = program === "docker" || program === "podman" || program === "nerdctl";
  if (!docker && program !== "crictl") return undefined;
  const plain = operands(argv, CONTAINER_VALUED);
  const output = docker ? "" : (optionValue(argv, "-o", "--output") ?? "table");
  const lists = docker
    ? plain[0] === "ps" || (plain[0] === "container" && (plain[1] === "ls" || plain[1] === "list"))
    : plain[0] === "ps" && /^(?:json|table)$/.test(output);
  // with these it prints ids only, or something of the asker's own making
  if (!lists || hasOption(rest, "-q", "--quiet", "--format") || rest.some((word) => word.startsWith("--format="))) return undefined;
  const filtered = hasOption(rest, "-f", "--filter", "--name", "--image", "--label", "--pod", "--last", "-l", "--latest");
  return { format: docker ? "docker" : output === "json" ? "cri-json" : "cri", complete: !filtered, scope: `containers of ${program}`, rank: 1 };
}

const CRI_TITLE = /^CONTAINER(?: ID)?\s+IMAGE\s+CREATED\s+STATE\s+NAME\s/;
const DOCKER_TITLE = /^CONTAINER ID\s+IMAGE\s+COMMAND\s+CREATED\s+STATUS\s/;
// id, image, "2 hours ago", state, name, attempt, pod id, pod, and from crictl 1.31 on its namespace
const CRI =
  /^[0-9a-f]{8,64}\s+(\S{1,400})\s+(.{1,40}?)\s+(Running|Exited|Created|Unknown)\s+(\S{1,253})\s+(\d{1,9})(?:\s+[0-9a-f]{8,64}(?:\s+(\S{1,253}))?(?:\s+\S{1,63})?)?$/i;
// id, image, "command", created, status, ports, names; old versions print fewer blanks
const DOCKER = /^[0-9a-f]{8,64}\s+(\S{1,400})\s+["“].{0,200}?["”]\s+.{1,40}?\s(Up|Exited|Created|Restarting|Paused|Dead|Removal)\b.*?\s(\S{1,300})$/;
const DOCKER_STATES = byWord<string>({ up: "running", removal: "removing" });

/** What crictl says of its own settings, mostly that it had to try several sockets. Errors are no remarks. */
const REMARK = /^(?:WARN\[\d{1,6}\] |time="[^"]{1,40}" level=(?:warning|info) msg="|W\d{4} \d\d:\d\d:\d\d\.\d{1,9} )/;

/** `crictl ps -o json`: `{"containers": [{"metadata": {"name": "kube-proxy"}, "state": "CONTAINER_RUNNING", "labels": {…}}, …]}`. What a cut left is read. */
function containersOf(text: string, unparsed: UnparsedLines): Container[] {
  const opening = /^[\s\S]{0,4000}?"containers"\s{0,8}:\s{0,8}(?=\[)/.exec(text)?.[0] ?? "";
  // lines keep their numbers
  const rest = "\n".repeat(opening.split("\n").length - 1) + text.slice(opening.length).replace(/\}\s*$/, "");
  return jsonElements(rest, unparsed).flatMap(({ value, line, text: quote }) => {
    const inside = (key: string): Record<string, unknown> => (value[key] ?? {}) as Record<string, unknown>;
    const [name, image, state] = [asString(inside("metadata")["name"]), asString(inside("image")["image"]), asString(value["state"])];
    const pod = asString(inside("labels")["io.kubernetes.pod.name"]);
    const attempt = asInteger(inside("metadata")["attempt"]);
    if (name === undefined || state === undefined) {
      unparsed.add(line, quote);
      return [];
    }
    return [{ line, text: quote, name, image: image ?? "", state: state.replace(/^CONTAINER_/, "").toLowerCase(), ...present({ pod, attempt }) }];
  });
}

function readContainers(text: string, format: string, unparsed: UnparsedLines): Container[] {
  if (format === "cri-json") return containersOf(text, unparsed);
  const containers: Container[] = [];
  for (const { line, text: raw } of lines(text)) {
    const content = raw.trim().slice(0, 4000);
    const cri = format === "cri" ? CRI.exec(content) : null;
    const docker = format === "docker" ? DOCKER.exec(content) : null;
    if (cri !== null) {
      const [, image, , state, name, attempt, pod] = cri as unknown as [string, string, string, string, string, string, string?];
      containers.push({ line, name, image, state: state.toLowerCase(), ...present({ pod }), attempt: Number(attempt) });
    } else if (docker !== null) {
      const [, image, status, name] = docker as unknown as [string, string, string, string];
      const state = status.toLowerCase();
      containers.push({ line, name, image, state: DOCKER_STATES[state] ?? state });
    } else if (!CRI_TITLE.test(content) && !DOCKER_TITLE.test(content) && !FAILURE.test(content) && !REMARK.test(content) && !isPrompt(raw))
      unparsed.add(line, raw);
  }
  return containers;
}
