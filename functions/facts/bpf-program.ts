import { z } from "zod";
import { bpftoolAnswered, bpftoolCall, mergeById, readObjects } from "./bpftool.ts";
import { defineFact, UnparsedLines, type View } from "./fact.ts";
import { asInteger, asString } from "./json.ts";

/**
 * Loaded BPF programs.
 *
 *     160: cgroup_sock_addr  name cil_sock4_connect  tag 4235b97c26c0c2b7  gpl
 *     	xlated 544B  jited 338B  memlock 4096B  map_ids 43,44
 */
const BpfProgram = z.object({
  line: z.int(),
  /** Grows by one with every program loaded since boot: a lower id was loaded earlier. */
  id: z.int(),
  type: z.string(),
  name: z.string().optional(),
  /** Hash of the instructions: equal code has equal tags, whichever maps it uses. */
  tag: z.string().optional(),
  /** As printed: a local time in text, seconds since 1970 in JSON. */
  loadedAt: z.string().optional(),
  /** User who loaded it. */
  uid: z.int().optional(),
  mapIds: z.array(z.int()),
  /** Paths in bpffs; only `bpftool -f` shows them. */
  pinned: z.array(z.string()),
  btf: z.boolean(),
  /** How often it ran; only if kernel.bpf_stats_enabled was on. */
  runCount: z.int().optional(),
});
const BpfPrograms = z.object({ rows: z.array(BpfProgram) });
export type BpfProgram = z.infer<typeof BpfProgram>;

const HEADER =
  /^\s*(\d{1,10}):\s+(type \d{1,5}|[a-z][a-z0-9_]{1,40})(?:\s+name ([\w.]{1,128}))?(?:\s+tag ([0-9a-f]{16}))?(?:\s+(?:offloaded_to|dev) \S{1,64}(?: ns_dev \d+ ns_inode \d+)?)?(?:\s+gpl)?(?:\s+run_time_ns \d{1,20} run_cnt (\d{1,15}))?(?:\s+recursion_misses \d{1,20})?(?:\s+orphaned)?$/;
// 2026-11-21T01:50:22+0000, before 4.16 Jan 23/16:08
const LOADED = /^\s*loaded_at (\d{4}-\d\d-\d\dT[\d:]{8}[+-]\d{4}|[A-Z][a-z]{2} \d{1,2}\/\d\d:\d\d)\s+uid (\d{1,10})$/;
const CODE = /^\s*xlated \d{1,10}B(?:\s+(?:jited \d{1,10}B|not jited))?(?:\s+memlock \d{1,15}B)?(?:\s+map_ids ([\d,]{1,4000}))?$/;
const BTF = /^\s*btf_id \d{1,10}$/;
const METADATA = /^\s*(?:metadata:|\w{1,64} = .*)$/;

export const bpfProgram = defineFact({
  id: "bpf-program",
  title: "BPF programs that are loaded, with the maps they use",
  commands: [{ argv: ["bpftool", "-j", "-f", "prog", "show"] }],
  recognize(argv): View | undefined {
    const call = bpftoolCall(argv);
    if (call?.object !== "prog" || call.command !== "show") return undefined;
    const json = call.json;
    return { format: json ? "json" : "text", complete: call.rest.length === 0, scope: call.rest.join(" "), rank: (call.pins ? 3 : 1) + (json ? 1 : 0) };
  },
  schema: BpfPrograms,
  answered: bpftoolAnswered,
  parse({ text }) {
    const unparsed = new UnparsedLines();
    return unparsed.with({ rows: readObjects(text, unparsed, { element, header, detail }) });
  },
  merge: mergeById,
});

function element(common: Pick<BpfProgram, "line" | "id" | "type" | "pinned">, value: Record<string, unknown>): BpfProgram {
  const mapIds = Array.isArray(value["map_ids"]) ? value["map_ids"].map(asInteger).filter((id) => id !== undefined) : [];
  const row: BpfProgram = { ...common, mapIds, btf: asInteger(value["btf_id"]) !== undefined };
  const name = asString(value["name"]);
  if (name !== undefined && name !== "") row.name = name;
  const tag = asString(value["tag"]);
  if (tag !== undefined) row.tag = tag;
  const loadedAt = asString(value["loaded_at"]) ?? asInteger(value["loaded_at"])?.toString();
  if (loadedAt !== undefined) row.loadedAt = loadedAt;
  const uid = asInteger(value["uid"]);
  if (uid !== undefined) row.uid = uid;
  const runCount = asInteger(value["run_cnt"]);
  if (runCount !== undefined) row.runCount = runCount;
  return row;
}

function header(line: number, content: string): BpfProgram | undefined {
  const [, id, type, name, tag, runCount] = HEADER.exec(content) ?? [];
  if (id === undefined || type === undefined) return undefined;
  const row: BpfProgram = { line, id: Number(id), type, mapIds: [], pinned: [], btf: false };
  if (name !== undefined) row.name = name;
  if (tag !== undefined) row.tag = tag;
  if (runCount !== undefined) row.runCount = Number(runCount);
  return row;
}

/** Reads a line below the header of a program into its row; false if it is none. */
function detail(row: BpfProgram, content: string): boolean {
  const code = CODE.exec(content);
  if (code !== null) {
    for (const id of (code[1] ?? "").split(",")) if (/^\d{1,10}$/.test(id)) row.mapIds.push(Number(id));
    return true;
  }
  const loaded = LOADED.exec(content);
  if (loaded !== null) {
    row.loadedAt = loaded[1] as string;
    row.uid = Number(loaded[2]);
    return true;
  }
  if (BTF.test(content)) {
    row.btf = true;
    return true;
  }
  return METADATA.test(content);
}
