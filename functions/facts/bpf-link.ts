import { z } from "zod";
import { attachTypeOf, bpftoolAnswered, bpftoolCall, mergeById, readObjects } from "./bpftool.ts";
import { defineFact, UnparsedLines, type View } from "./fact.ts";
import { asInteger, asString } from "./json.ts";

/**
 * BPF links: attachments that live as long as their link does, and that `bpftool cgroup detach` cannot undo.
 *
 *     91: cgroup  prog 171
 *     	cgroup_id 101  attach_type cgroup_inet4_connect
 */
const BpfLink = z.object({
  line: z.int(),
  id: z.int(),
  type: z.string(),
  /** Left out of struct_ops links, which have a map instead. */
  programId: z.int().optional(),
  /** Inode number of the cgroup's directory; a string because it may exceed 2^53. */
  cgroupId: z.string().optional(),
  /** New names: cgroup_inet4_connect, tcx_ingress, … */
  attachType: z.string().optional(),
  /** Of xdp, tcx and netkit links; left out when the device is gone. */
  interface: z.string().optional(),
  index: z.int().optional(),
  /** Paths in bpffs; only `bpftool -f` shows them. */
  pinned: z.array(z.string()),
});
const BpfLinks = z.object({ rows: z.array(BpfLink) });
export type BpfLink = z.infer<typeof BpfLink>;

const HEADER = /^\s*(\d{1,10}):\s+(type \d{1,5}|[a-z][a-z0-9_]{1,40})\s+(?:prog (\d{1,10})|map \d{1,10})(?:\s+target_name \S{1,64}.{0,100})?$/;
const CGROUP = /^\s*cgroup_id (\d{1,20})\s+attach_type ([a-z0-9_]{1,64})$/;
const DEVICE = /^\s*ifindex (?:([^\s()]{1,15})\((\d{1,10})\)|\((?:detached|unknown)\))(?:\s+attach_type ([a-z0-9_]{1,64}))?$/;
const ATTACH = /^\s*(?:netns_ino \d{1,10}|prog_type \w{1,40})\s+attach_type ([a-z0-9_]{1,64})$/;
// Tracing, netfilter and perf links: nothing about them is kept but that they are there.
const OTHER = [
  /^\s*target_obj_id \d+\s+target_btf_id \d+(?:\s+cookie \d+)?$/,
  /^\s*(?:inet|ip|arp|netdev|bridge|ip6|pf: \d+,?)(?: (?:prerouting|input|forward|output|postrouting)|,? hook \d+,?) prio -?\d+(?: flags 0x[0-9a-f]+)?$/,
  /^\s*(?:tp|tracepoint|event|kprobe|kretprobe|uprobe|uretprobe|kprobe\.multi|kretprobe\.multi|uprobe\.multi|uretprobe\.multi|path|pid|bpf_cookie|cookie) \S.*$/,
  /^\s*(?:kprobe|kretprobe|uprobe|uretprobe)\.multi\s+func_cnt .*$/,
  /^\s*(?:addr|offset)\s+(?:cookie\s+)?(?:func|ref_ctr_offset).*$/,
  /^\s*[0-9a-f]{16} \S.*$/,
];

export const bpfLink = defineFact({
  id: "bpf-link",
  title: "BPF links: attachments that are objects of their own",
  commands: [{ argv: ["bpftool", "-j", "-f", "link", "show"] }],
  recognize(argv): View | undefined {
    const call = bpftoolCall(argv);
    if (call?.object !== "link" || call.command !== "show") return undefined;
    const json = call.json;
    return { format: json ? "json" : "text", complete: call.rest.length === 0, scope: "", rank: (call.pins ? 3 : 1) + (json ? 1 : 0) };
  },
  schema: BpfLinks,
  answered: bpftoolAnswered,
  parse({ text }) {
    const unparsed = new UnparsedLines();
    return unparsed.with({ rows: readObjects(text, unparsed, { element, header, detail }) });
  },
  merge: mergeById,
});

function element(common: BpfLink & { text: string }, value: Record<string, unknown>): BpfLink {
  const row = { ...common };
  const programId = asInteger(value["prog_id"]);
  // A struct_ops link has no program: newer versions print 0 for it.
  if (programId !== undefined && programId !== 0) row.programId = programId;
  // JSON.parse has rounded what exceeds 2^53: then the digits are read from the text.
  const cgroupId = value["cgroup_id"] === undefined ? undefined : /"cgroup_id"\s{0,8}:\s{0,8}(\d{1,20})/.exec(row.text)?.[1];
  if (cgroupId !== undefined) row.cgroupId = cgroupId;
  const attachType = asString(value["attach_type"]);
  if (attachType !== undefined) row.attachType = attachTypeOf(attachType);
  const device = asString(value["devname"]);
  if (device !== undefined && !device.startsWith("(")) row.interface = device;
  const index = asInteger(value["ifindex"]);
  if (index !== undefined && index !== 0) row.index = index;
  return row;
}

function header(line: number, content: string): BpfLink | undefined {
  const [, id, type, programId] = HEADER.exec(content) ?? [];
  if (id === undefined || type === undefined) return undefined;
  return { line, id: Number(id), type, pinned: [], ...(programId === undefined || programId === "0" ? {} : { programId: Number(programId) }) };
}

/** Reads a line below the header of a link into its row; false if it is none. */
function detail(row: BpfLink, content: string): boolean {
  const cgroup = CGROUP.exec(content);
  if (cgroup !== null) {
    row.cgroupId = cgroup[1] as string;
    row.attachType = attachTypeOf(cgroup[2] as string);
    return true;
  }
  const device = DEVICE.exec(content);
  if (device !== null) {
    if (device[1] !== undefined) row.interface = device[1];
    if (device[2] !== undefined) row.index = Number(device[2]);
    if (device[3] !== undefined) row.attachType = device[3];
    return true;
  }
  const attach = ATTACH.exec(content);
  if (attach !== null) {
    row.attachType = attach[1] as string;
    return true;
  }
  return OTHER.some((pattern) => pattern.test(content));
}
