import { z } from "zod";
import { isPromptLine, operands } from "./command.ts";
import { defineFact, type Input, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { asInteger, asString, jsonElements } from "./json.ts";
import { withoutPrompts } from "./paste.ts";
import { present } from "./present.ts";
import { samplesByScope } from "./sampled.ts";

/**
 * Queueing disciplines and filters (BPF programs among them) of the interfaces.
 *
 *     qdisc clsact ffff: dev eth0 parent ffff:fff1
 *     filter protocol all pref 1 bpf chain 0 handle 0x1 cil_from_netdev-eth0 direct-action not_in_hw id 108 tag 3f2e… jited
 */
const Qdisc = z.object({
  line: z.int(),
  interface: z.string(),
  /** "noqueue", "fq_codel", "mq", "clsact", "tbf", … */
  kind: z.string(),
  handle: z.string(),
  /** "root" or a handle. */
  parent: z.string().optional(),
  /** Since the qdisc was made; only `-s` tells. */
  packets: z.int().optional(),
  drops: z.int().optional(),
  overlimits: z.int().optional(),
  /** Packets that wait now. */
  backlogPackets: z.int().optional(),
  /** Growth between the two samples. */
  dropsDelta: z.int().optional(),
});
const Filter = z.object({
  line: z.int(),
  /** Left out where the command line does not name it. */
  interface: z.string().optional(),
  /** "ingress", "egress", or a handle. */
  parent: z.string().optional(),
  protocol: z.string().optional(),
  priority: z.int().optional(),
  /** "bpf", "u32", "flower", "matchall", … */
  kind: z.string(),
  handle: z.string().optional(),
  /** Of bpf: the object or section it came from. */
  name: z.string().optional(),
  directAction: z.boolean(),
  programId: z.int().optional(),
});
const Tc = z.object({ qdiscs: z.array(Qdisc), filters: z.array(Filter) });
type Tc = z.infer<typeof Tc>;
type Qdisc = z.infer<typeof Qdisc>;
type Filter = z.infer<typeof Filter>;

// "dev eth0" is left out where the command line names it
const QDISC =
  /^qdisc ([a-z][a-z0-9_]{1,20}) ([0-9a-f]{1,4}:)(?: \[[^\]]{1,40}\])?(?: dev (\S{1,15}))?(?: (root)| parent (\S{1,12})| ingress_block \S{1,12})?(?:\s.{0,2000})?$/;
const SENT = /^\s{1,8}Sent (\d{1,19}) bytes (\d{1,15}) pkt \(dropped (\d{1,15}), overlimits (\d{1,15}) requeues \d{1,15}\)/;
const BACKLOG = /^\s{1,8}backlog \S{1,20} (\d{1,10})p requeues \d{1,15}/;
const FILTER =
  /^filter(?: parent ([0-9a-f]{1,4}:[0-9a-f]{0,4}))?(?: (?:dev (\S{1,15}) )?(ingress|egress))?(?: block \d{1,10})?\s{0,2}protocol (\S{1,12}) pref (\d{1,6}) ([a-z][a-z0-9_]{1,20})(?:\s(.{0,2000}))?$/;
const BPF_NAME = /(?:^|\s)handle (0x[0-9a-f]{1,8})(?: flowid \S{1,12})? (\S{1,140})/;

export const tc = defineFact({
  id: "tc",
  title: "Queueing disciplines and filters (tc)",
  commands: [{ argv: ["tc", "-s", "-j", "qdisc", "show"], samples: 2 }],
  recognize(argv): View | undefined {
    if (argv[0] !== "tc") return undefined;
    const words = operands(argv);
    const options = argv.slice(1).filter((word) => word.startsWith("-"));
    const [object = "", command = "show"] = words;
    const json = options.some((word) => /^-(?:j|json|p|pretty|s?j|js)$/.test(word));
    if (!/^(?:show|list|ls|s|sh|l)$/.test(command)) return undefined;
    const rest = words.slice(2).join(" ");
    if (object !== "" && "qdisc".startsWith(object)) {
      return { format: json ? "json" : "text", complete: rest === "", scope: `qdisc${rest === "" ? "" : ` ${rest}`}`, rank: json ? 2 : 1 };
    }
    // filters are listed one device and direction at a time
    if (object !== "" && "filter".startsWith(object)) return { format: json ? "json" : "text", complete: false, scope: `filter ${rest}`, rank: json ? 2 : 1 };
    return undefined;
  },
  schema: Tc,
  parse: (input) => (input.view.format === "json" ? fromJson(input) : fromText(input)),
  merge: mergeSamples,
});

/** What `tc filter show dev eth0 ingress` says once, on the command line. */
function named({ argv }: Input): Pick<Filter, "interface" | "parent"> {
  const dev = argv[argv.indexOf("dev") + 1];
  const parent = argv.find((word) => word === "ingress" || word === "egress") ?? (argv.includes("parent") ? argv[argv.indexOf("parent") + 1] : undefined);
  return present({ interface: argv.includes("dev") ? dev : undefined, parent });
}

function fromText(input: Input) {
  const unparsed = new UnparsedLines();
  const value: Tc = { qdiscs: [], filters: [] };
  let qdisc: Qdisc | undefined;
  let inFilter = false;
  for (const { line, text: raw } of lines(input.text)) {
    const head = QDISC.exec(raw);
    const filter = FILTER.exec(raw);
    const sent = SENT.exec(raw);
    const backlog = BACKLOG.exec(raw);
    const device = head?.[3] ?? named(input).interface;
    if (head !== null && device !== undefined) {
      const [, kind, handle, , root, parent] = head as unknown as [string, string, string, string | undefined, string | undefined, string | undefined];
      qdisc = { line, interface: device, kind, handle, ...present({ parent: root ?? parent }) };
      value.qdiscs.push(qdisc);
      inFilter = false;
    } else if (filter !== null) {
      inFilter = true;
      // the first line of each priority names only its kind
      if (!/^(?:chain \d{1,10})?\s*$/.test(filter[7] ?? "")) value.filters.push(filterOf(line, filter, named(input)));
    } else if (sent !== null && qdisc !== undefined && !inFilter) {
      Object.assign(qdisc, { packets: Number(sent[2]), drops: Number(sent[3]), overlimits: Number(sent[4]) });
    } else if (backlog !== null && qdisc !== undefined && !inFilter) qdisc.backlogPackets = Number(backlog[1]);
    else if ((qdisc !== undefined || inFilter) && /^\s/.test(raw)) {
      // details of one kind of qdisc, classes, matches and actions of a filter
    } else if (!isPromptLine(raw)) unparsed.add(line, raw);
  }
  return unparsed.with(value);
}

function filterOf(line: number, match: RegExpExecArray, given: Pick<Filter, "interface" | "parent">): Filter {
  const [, handle, device, direction, protocol, priority, kind, rest = ""] = match as unknown as [string, ...(string | undefined)[]];
  const bpf = kind === "bpf" ? BPF_NAME.exec(rest) : null;
  const programId = /(?:^|\s)id (\d{1,10})(?:\s|$)/.exec(rest)?.[1];
  return {
    line,
    kind: kind ?? "",
    directAction: /(?:^|\s)direct-action(?:\s|$)/.test(rest),
    ...given,
    ...present({
      interface: device ?? given.interface,
      parent: direction ?? given.parent ?? handle,
      protocol,
      priority: Number(priority),
      handle: bpf?.[1],
      name: bpf?.[2],
    }),
    ...(programId === undefined || kind !== "bpf" ? {} : { programId: Number(programId) }),
  };
}

function fromJson(input: Input) {
  const unparsed = new UnparsedLines();
  const value: Tc = { qdiscs: [], filters: [] };
  for (const { value: item, line, text } of jsonElements(withoutPrompts(input.text), unparsed)) {
    const kind = asString(item["kind"]);
    const device = asString(item["dev"]) ?? named(input).interface;
    if (kind === undefined) {
      // tc prints an empty object per device without any
      if (Object.keys(item).length > 0) unparsed.add(line, text);
    } else if (input.view.scope.startsWith("qdisc") && device !== undefined) {
      const parent = item["root"] === true ? "root" : asString(item["parent"]);
      const numbers = {
        packets: asInteger(item["packets"]),
        drops: asInteger(item["drops"]),
        overlimits: asInteger(item["overlimits"]),
        backlogPackets: asInteger(item["qlen"]),
      };
      value.qdiscs.push(Object.assign({ line, interface: device, kind, handle: asString(item["handle"]) ?? "", ...present({ parent, ...numbers }) }, { text }));
    } else if (input.view.scope.startsWith("filter")) {
      const options = (item["options"] ?? {}) as Record<string, unknown>;
      // the first element of each filter names only its priority
      if (Object.keys(options).length === 0) continue;
      const program = (options["prog"] ?? {}) as Record<string, unknown>;
      const optional = {
        protocol: asString(item["protocol"]),
        priority: asInteger(item["pref"]),
        handle: asString(options["handle"]),
        name: asString(options["bpf_name"]),
      };
      const row = {
        line,
        ...named(input),
        ...present({ ...optional, programId: asInteger(program["id"]) }),
        kind,
        directAction: options["direct-action"] === true,
      };
      value.filters.push(Object.assign(row, { text }));
    }
  }
  return unparsed.with(value);
}

/** The best part of each scope; qdiscs of the second sample carry the growth of their drops. */
function mergeSamples(parts: readonly Part<Tc>[]): Tc {
  const merged: Tc = { qdiscs: [], filters: [] };
  for (const { before, after, newest } of samplesByScope(parts)) {
    const known = new Map((after === undefined ? [] : (before?.value.qdiscs ?? [])).map((row) => [keyOf(row), row.drops]));
    merged.qdiscs.push(
      ...newest.qdiscs.map((row) => {
        const old = known.get(keyOf(row));
        return old === undefined || row.drops === undefined || row.drops < old ? row : { ...row, dropsDelta: row.drops - old };
      }),
    );
    merged.filters.push(...newest.filters);
  }
  return merged;
}

const keyOf = (row: Qdisc): string => `${row.interface} ${row.kind} ${row.handle} ${row.parent ?? ""}`;
