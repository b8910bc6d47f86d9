import { z } from "zod";
import { agentLog } from "./agent-log.ts";
import { isPromptLine, optionValue } from "./command.ts";
import { defineFact, type Input, lines, mergeParts, UnparsedLines, type View } from "./fact.ts";
import { kubeObjects } from "./kube-list.ts";
import { isCalled } from "./node-name.ts";
import { laterReadings } from "./parts.ts";
import { present } from "./present.ts";

/**
 * Events of pods and nodes, as people paste them from `kubectl describe` and `kubectl get events`, and what the logs of the node say of pods that get no
 * network: the same messages, told by kubelet, plugin and address daemon. netcheck itself runs on nodes and asks no API, so it collects the logs.
 *
 *     Warning  FailedCreatePodSandBox  4m18s (x912 over 3h)  kubelet  Failed to create pod sandbox: rpc error: …
 */
const Event = z.object({
  line: z.int(),
  /** "event", or "log" for a line of a log. */
  source: z.enum(["event", "log"]),
  /** Of events: "Warning" or "Normal". */
  type: z.string().optional(),
  /** Of events: "FailedCreatePodSandBox", "Unhealthy", … */
  reason: z.string().optional(),
  /** Seconds since it was last seen, when it was collected or pasted. */
  age: z.number().optional(),
  /** How often it was seen. */
  count: z.int(),
  /** "pod/cart-0"; of `get events` only. */
  object: z.string().optional(),
  message: z.string(),
  /** Of warnings: a container of the same pod was started after this was last seen, so the pod has got over it. */
  startedSince: z.boolean().optional(),
});
const PodEvents = z.object({ rows: z.array(Event) });
type Event = z.infer<typeof Event>;

const AGE = "(?:<invalid>|<unknown>|\\d{1,6}[dhms](?:\\d{1,4}[hms]){0,3})";
// describe: Type Reason Age From Message; get events: LAST SEEN, TYPE, REASON, OBJECT (before kubectl 1.15 KIND alone; `kubectl events`: Pod/cart-0), MESSAGE, a namespace in front for all of them
const DESCRIBED = new RegExp(
  `^\\s{0,8}(Normal|Warning)\\s{1,40}([A-Z]\\w{1,60})\\s{1,60}(${AGE})(?: \\(x(\\d{1,9}) over ${AGE}\\))?\\s{1,40}([\\w./-]{1,120}(?:, [\\w.-]{1,253})?)\\s{1,80}(\\S.{0,4000})$`,
);
const LISTED = new RegExp(
  `^(?:[a-z0-9-]{1,63}\\s{1,80})?(${AGE})(?: \\(x(\\d{1,9}) over ${AGE}\\))?\\s{1,40}(Normal|Warning)\\s{1,40}([A-Z]\\w{1,60})\\s{1,60}([A-Za-z]{1,40}/\\S{1,253}|[A-Z][A-Za-z]{1,40})\\s{1,200}(\\S.{0,4000})$`,
);
// of `get events -o wide` behind OBJECT: SUBOBJECT (or nothing), SOURCE (of an agent with its node), MESSAGE, FIRST SEEN, COUNT, NAME
const WIDE = new RegExp(
  `^(?:(?:<none>|(?:spec|metadata|status)\\.\\S{1,200})\\s{2,200})?[\\w./-]{1,120}(?:, (\\S{1,253}))?\\s{2,200}(\\S.*?)\\s{2,2000}${AGE}\\s{2,40}(\\d{1,9})\\s{2,40}\\S{1,253}$`,
);
// the conditions of `kubectl describe node`: Type Status LastHeartbeatTime LastTransitionTime Reason Message; the node says so at its last heartbeat. Behind `| grep Ready`
// the line stands alone, and has lost what it was set in by
const NOT_READY = /^\s{0,8}Ready\s{1,40}(?:False|Unknown)\s{1,20}\w{3}, .{1,120}?\s{2,40}([A-Z]\w{1,60})\s{2,60}(\S.{0,4000})$/;
/** Any of those conditions, whatever is left of its line. */
const CONDITION = /^\s{0,8}[A-Z]\w{4,40}\s{1,40}(?:True|False|Unknown)\s{1,20}[A-Z][a-z]{2}, /;
/** The beginning of an event, of which the next line has the rest. */
const BEGUN = new RegExp(`^\\s{0,8}(?:Normal|Warning)\\s{1,40}[A-Z]\\w{1,60}\\s{1,60}${AGE}`);
/** What follows an event and is no rest of its line: another object, another section, a prompt, and what a probe printed on lines of its own. */
const OTHER = /^(?:[A-Z][\w -]{1,40}:(?:\s|$)|\s{0,8}(?:calico\/node is not (?:ready|live): |Type\s+Reason\s+Age\s|----\s))/;
/** The end of that line, which is what people copy: the reason is that of this condition alone. */
const NOT_READY_END = /^.{0,100}?\s{2,40}(KubeletNotReady)\s{2,60}(\S.{0,4000})$/;
// `crictl info`: the conditions of the runtime, and how it went to load the CNI configuration
const RUNTIME = /^\s{0,16}"(?:message|lastCNILoadStatus)": "([^"\s](?:[^"\\]|\\.){3,4000})",?\s{0,4}$/;
/** The same conditions in `kubectl get node -o yaml`, whose longer messages go on in the next line. */
const IN_YAML = /^\s{0,16}message: (?:'([^'\s].{3,4000}?)'?|([^'"\s].{3,4000}))$/;
/** The same where the whole condition is in one line, or only what it says: `-o jsonpath='{.status.conditions}'`, `| jq -c`, `-o custom-columns=…`. */
const IN_ONE_LINE = /"message":\s?"((?:[^"\\]|\\.){4,4000})"|(?<!")(container runtime network not ready: [^"]{1,1000})/g;
const OTHERS = /^(?:services|endpoints|endpointslices?(?:\.discovery\.k8s\.io)?|configmaps)(?:\/|$)/;
const UNITS: Readonly<Record<string, number>> = { d: 86_400, h: 3600, m: 60, s: 1 };

/** What a log line is kept for: a pod's sandbox or address. */
const ABOUT_PODS =
  /sandbox|(?:assign|allocate) (?:an |a private )?IP|available IP|no free (?:IP|address)|Insufficient(?:FreeAddresses|Cidr)|sufficient free IP|have enough IPs|(?:Address|Attachment|NetworkInterface)LimitExceeded/i;

export const podEvent = defineFact({
  id: "pod-event",
  title: "Events of pods and nodes, and log lines about pods that get no network",
  commands: agentLog.commands,
  byHand: "kubectl get events -A",
  recognize(argv): View | undefined {
    const log = agentLog.recognize(argv);
    if (log !== undefined) return { ...log, format: `log ${log.format}` };
    if (argv[0] === "crictl" && argv.includes("info")) return { format: "runtime", complete: true, scope: "crictl info", rank: 1 };
    const [program, verb, kind = ""] = argv;
    if (program !== "kubectl") return undefined;
    const output = optionValue(argv, "-o") ?? "";
    const scope = argv.slice(1).join(" ");
    const table = !/^(?:json|yaml|go-template|custom-columns|name)/.test(output);
    if (verb === "get" && /^nodes(?:\/|$)/.test(kind) && (!table || output.startsWith("jsonpath")))
      return { format: "runtime", complete: false, scope, rank: 1 };
    // nothing of pods is told of the others
    if (verb === "describe") return OTHERS.test(kind) ? undefined : { format: "describe", complete: true, scope, rank: 1 };
    if (verb !== "events" && !(verb === "get" && /^events?(?:\.events\.k8s\.io)?$/.test(kind))) return undefined;
    if (output === "json" || output === "yaml") return { format: "objects", complete: true, scope, rank: 1 };
    return table ? { format: "list", complete: true, scope, rank: 1 } : undefined;
  },
  schema: PodEvents,
  log: "newest",
  answered: (output) => agentLog.answered?.(output) ?? true,
  parse(input) {
    const { text, view } = input;
    if (view.format.startsWith("log ")) return fromLog(input);
    const unparsed = new UnparsedLines();
    if (view.format === "objects") return unparsed.with({ rows: fromObjects(input, unparsed) });
    const rows: Event[] = [];
    const places = new Map<Event, string>();
    // the line with an event or a condition that a window may have cut: the next one goes on with it
    let before = -1;
    const elsewhere = ofOtherNodes(input);
    for (const { line, text: raw } of lines(text)) {
      if (elsewhere.has(line)) continue;
      const described = DESCRIBED.exec(raw);
      const listed = described === null ? LISTED.exec(raw.trimStart()) : null;
      if (view.format === "runtime") {
        // what else it tells is about other things
        const yaml = IN_YAML.exec(raw);
        const message = RUNTIME.exec(raw)?.[1] ?? yaml?.[1] ?? yaml?.[2];
        const said =
          message === undefined ? [...raw.slice(0, 20_000).matchAll(IN_ONE_LINE)].map(([, quoted, plain]) => quoted ?? (plain as string)) : [message];
        for (const each of said) rows.push({ line, source: "event", type: "Condition", count: 1, message: each });
      } else if (described !== null) {
        const [, type, reason, age, count, from, message] = described as unknown as [string, string, string, string, string | undefined, string, string];
        const row: Event = { line, source: "event", type, reason, ...present({ age: secondsOf(age) }), count: Number(count ?? 1), message };
        const [, place] = from.split(", ");
        if (place !== undefined) places.set(row, place);
        rows.push(row);
      } else if (listed !== null) {
        const [, age, count, type, reason, object, told] = listed as unknown as [string, string, string | undefined, string, string, string, string];
        const [, host, message = told, times = count] = WIDE.exec(told) ?? [];
        const row: Event = {
          line,
          source: "event",
          type,
          reason,
          ...present({ age: secondsOf(age) }),
          count: Number(times ?? 1),
          object: lowered(object),
          message,
        };
        const place = host ?? nodeOf(row);
        if (place !== undefined) places.set(row, place);
        rows.push(row);
      } else if (view.format === "describe" && (NOT_READY.test(raw) || NOT_READY_END.test(raw))) {
        const [, reason, message] = (NOT_READY.exec(raw) ?? NOT_READY_END.exec(raw)) as unknown as [string, string, string];
        rows.push({ line, source: "event", type: "Condition", reason, count: 1, message });
      } else if (
        view.format === "list" &&
        !isPromptLine(raw) &&
        !/^(?:NAMESPACE\s+)?(?:LAST SEEN|AGE)\s|^No resources found|^(?:Defaulted|command)\s/.test(raw)
      ) {
        unparsed.add(line, raw);
      }
      if (view.format !== "describe") continue;
      if (described !== null || listed !== null || CONDITION.test(raw)) before = line;
      else if (BEGUN.test(raw) || (before === line - 1 && !OTHER.test(raw) && !isPromptLine(raw))) {
        unparsed.add(line, raw);
        before = line;
      }
      // the rest of a description is about other things
    }
    // it ends with the events, or says that there are none
    const printed = text.trimEnd().split("\n");
    if (view.format === "describe" && rows.length === 0 && /^Name:/m.test(text) && !/^Events:/m.test(text)) unparsed.add(printed.length, printed.at(-1) ?? "");
    return unparsed.with({ rows: withStarted(ofThisNode(rows, places, input)) });
  },
  merge(parts) {
    const merged = mergeParts(parts);
    const later = laterReadings(parts).flatMap((part) => part.value.rows);
    // what is told again is as old, and as often, as the last reading says
    const again = new Set(later.map(sayingOf));
    return later.length === 0 ? merged : { ...merged, rows: [...merged.rows.filter((row) => !again.has(sayingOf(row))), ...later] };
  },
});

const sayingOf = ({ source, object = "", reason = "", message }: Event): string => [source, object, reason, message].join(" ");

/** Without the events of other nodes, where some are of the node of the capture, or all of the cluster's were listed: nobody sought out those of one pod then. */
function ofThisNode(rows: readonly Event[], places: ReadonlyMap<Event, string>, { names = [], argv, pipe }: Input): readonly Event[] {
  const isOurs = (place: string): boolean => isCalled(names, place);
  const everywhere = names.length > 0 && pipe === "" && argv.some((word) => /^(?:-A|--all-namespaces(?:=true)?)$/.test(word));
  if (!everywhere && ![...places.values()].some(isOurs)) return rows;
  return rows.filter((row) => isOurs(places.get(row) ?? (names[0] as string)));
}

/** The node that an event is about. */
const nodeOf = ({ object }: Event): string | undefined => /^nodes?\/(\S{1,253})$/.exec(object ?? "")?.[1];

/** `kubectl describe node`: the name, and right below it what it is there for. */
const NAMED_NODE = /^Name:\s{1,40}([a-z0-9][a-z0-9.-]{0,252})$/;

/** Where `kubectl describe nodes`, or `get nodes -o yaml`, tells of the node of the capture and of others, the lines that are about the others. */
function ofOtherNodes({ text, argv, names }: Input): ReadonlySet<number> {
  if (names === undefined || names.length === 0 || !/^nodes(?:\/|$)/.test(argv[2] ?? "")) return new Set();
  const nodes: { name: string; lines: number[] }[] = [];
  if (argv[1] === "describe") {
    const printed = text.split("\n");
    printed.forEach((content, i) => {
      const name = printed[i + 1]?.startsWith("Roles:") === true ? NAMED_NODE.exec(content)?.[1] : undefined;
      if (name !== undefined) nodes.push({ name, lines: [] });
      nodes.at(-1)?.lines.push(i + 1);
    });
  } else {
    for (const { fields } of kubeObjects(text).objects) {
      const name = fields.get("metadata.name")?.value;
      const told = [...fields].flatMap(([path, { line }]) => (path.endsWith(".message") ? [line] : []));
      // JSON in one line holds all of them
      if (name !== undefined && new Set(told).size === told.length) nodes.push({ name, lines: told });
    }
  }
  const others = nodes.filter(({ name }) => !isCalled(names, name));
  return new Set(others.length < nodes.length ? others.flatMap((node) => node.lines) : []);
}

/** `kubectl get events -o json` and `-o yaml`. The line is the message's, which YAML goes on with in further lines. */
function fromObjects(input: Input, unparsed: UnparsedLines): readonly Event[] {
  const { text, startedAt } = input;
  const printed = text.split("\n");
  const { objects, whole } = kubeObjects(text);
  const end = text.trimEnd().split("\n");
  // its end is missing: behind the last line
  if (!whole && text.trim() !== "") unparsed.add(end.length, end.at(-1) as string);
  const places = new Map<Event, string>();
  const rows = objects.flatMap((object): Event[] => {
    const field = (path: string): string | undefined => object.fields.get(path)?.value;
    const told = object.fields.get("message") ?? object.fields.get("note");
    const [reason, type] = [field("reason"), field("type")];
    if (told === undefined || reason === undefined) return [];
    const seen = ["series.lastObservedTime", "lastTimestamp", "deprecatedLastTimestamp", "eventTime"].map(field).find((time) => /^\d{4}-/.test(time ?? ""));
    const ago = startedAt === undefined || seen === undefined ? undefined : startedAt - Date.parse(seen) / 1000;
    const [kind, name] = [field("involvedObject.kind") ?? field("regarding.kind"), field("involvedObject.name") ?? field("regarding.name")];
    const count = Number(field("series.count") ?? field("count") ?? field("deprecatedCount") ?? 1);
    const row: Event = {
      line: told.line,
      source: "event",
      ...present({ type }),
      reason,
      ...present({ age: ago === undefined || Number.isNaN(ago) ? undefined : Math.max(0, Math.round(ago)) }),
      count: Number.isSafeInteger(count) && count > 0 ? count : 1,
      ...present({ object: kind === undefined || name === undefined ? undefined : `${kind.toLowerCase()}/${name}` }),
      message: spoken(`${told.value}${goesOn(printed, told.line)}`).slice(0, 4000),
    };
    const place = field("source.host") ?? field("deprecatedSource.host") ?? nodeOf(row);
    if (place !== undefined) places.set(row, place);
    return [row];
  });
  return ofThisNode(rows, places, input);
}

/** `Pod/cart-0` as the other listings have it. */
const lowered = (object: string): string => object.replace(/^[A-Z]\w{0,40}(?=\/)/, (kind) => kind.toLowerCase());

/** Without the quotes of YAML, and the backslashes of JSON. */
function spoken(value: string): string {
  const quoted = /^'(.*)'$/.exec(value)?.[1];
  if (quoted !== undefined) return quoted.replaceAll("''", "'");
  return value
    .replace(/^"(.*)"$/, "$1")
    .replaceAll(/\\(["\\/])/g, "$1")
    .replaceAll(/\\[nrt]/g, " ");
}

/** What YAML set in below a field: its long text, a blank for each end of a line. */
function goesOn(printed: readonly string[], line: number): string {
  const width = (text: string): number => text.length - text.trimStart().length;
  const field = printed[line - 1] ?? "";
  let rest = "";
  if (!/^\s*(?:- )?(?:message|note):/.test(field)) return rest;
  const own = width(field) + (field.trimStart().startsWith("- ") ? 2 : 0);
  for (let i = line; i < printed.length && rest.length < 4000 && (printed[i] ?? "").trim() !== "" && width(printed[i] as string) > own; i++)
    rest += ` ${(printed[i] as string).trim()}`;
  return rest;
}

/** Lines that the events of one described pod take up, at the most. */
const TABLE = 20;

/** Marks the warnings of pods of which a container was started later. The events of a described pod do not name it: there the next start in the same table counts. */
function withStarted(rows: readonly Event[]): Event[] {
  const youngest = new Map<string, number>();
  for (const { reason, object, age } of rows)
    if (reason === "Started" && object !== undefined && age !== undefined)
      youngest.set(object, Math.min(age, youngest.get(object) ?? Number.POSITIVE_INFINITY));
  let next: Event | undefined;
  return rows
    .toReversed()
    .map((row) => {
      if (row.reason === "Started" && row.object === undefined) next = row;
      if (row.type !== "Warning" || row.age === undefined) return row;
      const started = row.object === undefined ? (next !== undefined && next.line <= row.line + TABLE ? next.age : undefined) : youngest.get(row.object);
      return started !== undefined && started < row.age ? { ...row, startedSince: true } : row;
    })
    .toReversed();
}

function fromLog(input: Input) {
  const { value, unparsed, unparsedCount } = agentLog.parse({ ...input, view: { ...input.view, format: input.view.format.slice("log ".length) } });
  const rows = value.rows
    .filter((row) => ABOUT_PODS.test(row.message))
    .map(({ line, age, message }) => ({ line, source: "log" as const, ...present({ age }), count: 1, message }));
  return { value: { rows }, unparsed, unparsedCount };
}

/** Seconds since the event of this line of `kubectl describe` or `kubectl get events` was last seen; undefined if it is no such line, or has no age. */
export function eventAge(line: string): number | undefined {
  const age = DESCRIBED.exec(line)?.[3] ?? LISTED.exec(line.trimStart())?.[1];
  return age === undefined ? undefined : secondsOf(age);
}

/** What a line of `kubectl describe` says of an event, its age in seconds; undefined if it is no such line. */
export function describedEvent(line: string): Told | undefined {
  const [, , reason, age, , , message] = DESCRIBED.exec(line) ?? [];
  return age === undefined || reason === undefined || message === undefined ? undefined : { ...present({ age: secondsOf(age) }), reason, message };
}

interface Told {
  readonly age?: number;
  readonly reason: string;
  /** "node/wk-1"; only a table has it. */
  readonly object?: string;
  readonly message: string;
}

/** The same of a line of `kubectl get events`. */
export function tableEvent(line: string): Told | undefined {
  const [, age, , , reason, object, message] = LISTED.exec(line.trimStart()) ?? [];
  if (age === undefined || reason === undefined || object === undefined || message === undefined) return undefined;
  return { ...present({ age: secondsOf(age) }), reason, object, message: WIDE.exec(message)?.[2] ?? message };
}

/** `4m18s` → 258; undefined for `<invalid>`. */
function secondsOf(age: string): number | undefined {
  if (age.startsWith("<")) return undefined;
  let seconds = 0;
  for (const [, number, unit] of age.matchAll(/(\d{1,6})([dhms])/g)) seconds += Number(number) * (UNITS[unit as string] ?? 0);
  return seconds;
}
