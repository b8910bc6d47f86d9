import { z } from "zod";
import { bpftoolAnswered, bpftoolCall, isJson, type NestedElement, nestedElements, withoutPromptLines } from "./bpftool.ts";
import { isPromptLine } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { asInteger, asString, jsonElements } from "./json.ts";
import { present } from "./present.ts";

/**
 * BPF programs attached to network devices.
 *
 *     eth0(2) clsact/ingress cil_from_netdev:[*fsobj] id 108
 *     cilium_vxlan(10) tcx/ingress cil_from_overlay prog_id 309 link_id 3
 */
const BpfNet = z.object({
  line: z.int(),
  interface: z.string(),
  index: z.int().optional(),
  /** "xdp", "clsact/ingress", "clsact/egress", "tcx/ingress", "tcx/egress", "netkit/peer", or the kind of a qdisc or class. */
  hook: z.string(),
  /** Of xdp: where it runs. */
  mode: z.enum(["driver", "generic", "offload"]).optional(),
  /** Without the object file or `:[*fsobj]` as printed. */
  name: z.string().optional(),
  programId: z.int(),
  /** Of tcx, netkit and newer xdp attachments. */
  linkId: z.int().optional(),
  /** How many programs of this name stand at this hook of this interface; 1 for one without a name. */
  namesakes: z.int(),
  /** 1 for the one of them that was loaded last (program ids grow), 2 for the one before it, … */
  generation: z.int(),
});
const BpfHook = z.object({
  line: z.int(),
  hook: z.enum(["flow_dissector", "netfilter"]),
  programId: z.int(),
});
const BpfNets = z.object({
  rows: z.array(BpfNet),
  /** Attachments that belong to no interface. */
  others: z.array(BpfHook),
});
type BpfNet = z.infer<typeof BpfNet>;
type Attachment = Omit<BpfNet, "namesakes" | "generation">;
type BpfHook = z.infer<typeof BpfHook>;
type Mode = NonNullable<BpfNet["mode"]>;

const SECTION = /^(xdp|tc|flow_dissector|netfilter):$/;
const DEVICE = "([^\\s()/]{1,15})\\((\\d{1,10})\\)";
const XDP = new RegExp(`^${DEVICE} ((?:driver|generic|offload) id \\d{1,10}(?: (?:driver|generic|offload) id \\d{1,10}){0,2})$`);
const TC = new RegExp(
  `^${DEVICE} ([a-z_]{2,16}(?:/(?:ingress|egress|primary|peer))?)(?: name)?(?: (?!(?:prog_)?id )(\\S{1,140}))? (?:prog_)?id (\\d{1,10})(?: prog_flags:? [a-z_ ]{1,80})?(?: {1,2}link_id (\\d{1,10}))?(?: link_flags:? [a-z_ ]{1,80})?(?: act \\[[^\\]]{0,400}\\])?(?:\\s+(?:←|<-|#).*)?$`,
);
const FLOW_DISSECTOR = /^(?:id )?(\d{1,10})$/;
const NETFILTER =
  /^\s*(?:inet|ip|arp|netdev|bridge|ip6|pf: \d+,?)(?: (?:prerouting|input|forward|output|postrouting)|,? hook \d+,?) prio -?\d+(?: flags 0x[0-9a-f]+)?\s+prog_id (\d{1,10})$/;

export const bpfNet = defineFact({
  id: "bpf-net",
  title: "BPF programs attached to network devices (XDP, tc, tcx)",
  commands: [{ argv: ["bpftool", "-j", "net", "show"] }],
  recognize(argv): View | undefined {
    const call = bpftoolCall(argv);
    if (call?.object !== "net" || call.command !== "show") return undefined;
    return { format: call.json ? "json" : "text", complete: call.rest.length === 0, scope: "", rank: call.json ? 2 : 1 };
  },
  schema: BpfNets,
  answered: bpftoolAnswered,
  parse({ text: given }) {
    const unparsed = new UnparsedLines();
    const text = withoutPromptLines(given);
    const { rows, others } = isJson(text) ? fromJson(text, unparsed) : fromText(text, unparsed);
    return unparsed.with({ rows: withGenerations(rows), others });
  },
});

/** Counts the programs of one name at one place, the newest first. */
function withGenerations(rows: readonly Attachment[]): BpfNet[] {
  const places = new Map<string, number[]>();
  const placeOf = (row: Attachment): string => `${row.interface}(${row.index ?? ""}) ${row.hook} ${row.name ?? ""}`;
  for (const row of rows) {
    if (row.name === undefined) continue;
    const ids = places.get(placeOf(row)) ?? [];
    places.set(placeOf(row), ids);
    if (!ids.includes(row.programId)) ids.push(row.programId);
  }
  for (const ids of places.values()) ids.sort((a, b) => b - a);
  return rows.map((row) => {
    const ids = row.name === undefined ? [row.programId] : (places.get(placeOf(row)) ?? []);
    return { ...row, namesakes: ids.length, generation: ids.indexOf(row.programId) + 1 };
  });
}

/** `| jq '.[0].tc'` and `| jq -c '.[].tc[]'` leave the elements without the lists around them. */
const BARE = /^[\s[]{0,400}\{\s{0,400}"devname"/;

/** The attachments with the list they stand in: without one, those of xdp are the ones that tell of no kind. */
function attachmentsOf(text: string, unparsed: UnparsedLines): Pick<NestedElement, "value" | "line" | "text" | "list">[] {
  if (!BARE.test(text)) return nestedElements(text, ["xdp", "tc", "netfilter"], "", unparsed);
  return jsonElements(text, unparsed).map((element) => ({ ...element, list: element.value["kind"] === undefined ? "xdp" : "tc" }));
}

function fromJson(text: string, unparsed: UnparsedLines): { rows: Attachment[]; others: BpfHook[] } {
  const rows: Attachment[] = [];
  const others: BpfHook[] = [];
  for (const { value, line, text: quote, list } of attachmentsOf(text, unparsed)) {
    const before = rows.length + others.length;
    const programId = asInteger(value["prog_id"]) ?? asInteger(value["id"]);
    const device = asString(value["devname"]);
    if (list === "netfilter") {
      if (programId !== undefined) others.push(Object.assign({ line, hook: "netfilter" as const, programId }, { text: quote }));
    } else if (device !== undefined) {
      const index = asInteger(value["ifindex"]);
      const base = { line, interface: device, ...present({ index }), hook: list === "xdp" ? "xdp" : (asString(value["kind"]) ?? "tc") };
      const several = Array.isArray(value["multi_attachments"]) ? value["multi_attachments"] : [value];
      for (const attachment of several as Record<string, unknown>[]) {
        const id = attachment === value ? programId : asInteger(attachment?.["id"]);
        if (id === undefined) continue;
        const row: Attachment & { text: string } = { ...base, programId: id, text: quote };
        const mode = asString(attachment["mode"]);
        if (mode === "driver" || mode === "generic" || mode === "offload") row.mode = mode;
        const name = asString(value["name"]);
        if (name !== undefined && name !== "") row.name = name;
        const linkId = asInteger(value["link_id"]);
        if (linkId !== undefined && linkId !== 0) row.linkId = linkId;
        rows.push(row);
      }
    }
    if (rows.length + others.length === before) unparsed.add(line, quote);
  }
  return { rows, others };
}

function fromText(text: string, unparsed: UnparsedLines): { rows: Attachment[]; others: BpfHook[] } {
  const rows: Attachment[] = [];
  const others: BpfHook[] = [];
  let section = "";
  for (const { line, text: content } of lines(text)) {
    const heading = SECTION.exec(content);
    if (heading !== null) {
      section = heading[1] as string;
      continue;
    }
    const xdp = XDP.exec(content);
    const tc = xdp === null ? TC.exec(content) : null;
    const hook = section === "flow_dissector" ? FLOW_DISSECTOR.exec(content) : section === "netfilter" ? NETFILTER.exec(content) : null;
    if (xdp !== null) {
      const [, device, index, attachments] = xdp as unknown as [string, string, string, string];
      const words = attachments.split(" ");
      for (let i = 0; i + 2 < words.length; i += 3) {
        rows.push({ line, interface: device, index: Number(index), hook: "xdp", mode: words[i] as Mode, programId: Number(words[i + 2]) });
      }
    } else if (tc !== null) {
      const [, device, index, kind, name, programId, linkId] = tc as unknown as [
        string,
        string,
        string,
        string,
        string | undefined,
        string,
        string | undefined,
      ];
      const row: Attachment = { line, interface: device, index: Number(index), hook: kind, programId: Number(programId) };
      if (name !== undefined) row.name = name;
      if (linkId !== undefined && linkId !== "0") row.linkId = Number(linkId);
      rows.push(row);
    } else if (hook !== null) others.push({ line, hook: section as BpfHook["hook"], programId: Number(hook[1]) });
    else if (!isPromptLine(content.slice(0, 400))) unparsed.add(line, content);
  }
  return { rows, others };
}
