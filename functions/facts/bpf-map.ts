import { z } from "zod";
import { bpftoolAnswered, bpftoolCall, mergeById, readObjects } from "./bpftool.ts";
import { defineFact, UnparsedLines, type View } from "./fact.ts";
import { asInteger, asString } from "./json.ts";

/**
 * BPF maps of the node.
 *
 *     27: hash  name cilium_lb4_serv  flags 0x1
 *     	key 12B  value 12B  max_entries 65536  memlock 1049648B
 */
const BpfMap = z.object({
  line: z.int(),
  /** Grows by one with every map made since boot: a lower id is an older map. */
  id: z.int(),
  type: z.string(),
  /** Cut at 15 characters by the kernel, so equal names need not be the same; left out of nameless maps. */
  name: z.string().optional(),
  /** Hexadecimal, as `0x1`. */
  flags: z.string().optional(),
  keyBytes: z.int().optional(),
  valueBytes: z.int().optional(),
  maxEntries: z.int().optional(),
  /** Bytes. */
  memlock: z.int().optional(),
  /** Left out where the format does not tell. */
  frozen: z.boolean().optional(),
  /** True if the map has type information: such maps are dumped as typed JSON. */
  btf: z.boolean(),
  /** Paths in bpffs; only `bpftool -f` shows them. */
  pinned: z.array(z.string()),
});
const BpfMaps = z.object({
  rows: z.array(BpfMap),
  /** One row if pins were looked up (`-f`), else none: only then does an empty `pinned` mean unpinned. */
  pinLookups: z.array(z.object({ line: z.int() })),
});
export type BpfMap = z.infer<typeof BpfMap>;

const HEADER =
  /^\s*(\d{1,10}):\s+(type \d{1,5}|[a-z][a-z0-9_]{1,40})(?:\s+name ([\w.]{1,64}))?(?:\s+flags (0x[0-9a-f]{1,16}))?(?:\s+(?:offloaded_to|dev) \S{1,64}(?: ns_dev \d+ ns_inode \d+)?)?$/;
const SIZES = /^\s*key (\d{1,10})B\s+value (\d{1,10})B\s+max_entries (\d{1,10})(?:\s+memlock (\d{1,15})B)?$/;
const BTF_FROZEN = /^\s*(?:btf_id (\d{1,10})(?: {1,4}(frozen))?|(frozen))$/;
const OWNER = /^\s*(?:owner_prog_type (?:type )?\w{1,40}(?: {1,4}owner (?:not )?jited)?|owner (?:not )?jited)$/;

export const bpfMap = defineFact({
  id: "bpf-map",
  title: "BPF maps, with their pins",
  commands: [{ argv: ["bpftool", "-j", "-f", "map", "show"] }],
  recognize(argv): View | undefined {
    const call = bpftoolCall(argv);
    if (call?.object !== "map" || call.command !== "show") return undefined;
    return { format: call.pins ? "pins" : "no pins", complete: call.rest.length === 0, scope: "", rank: (call.pins ? 3 : 1) + (call.json ? 1 : 0) };
  },
  schema: BpfMaps,
  answered: bpftoolAnswered,
  parse({ text, view }) {
    const unparsed = new UnparsedLines();
    const rows = readObjects(text, unparsed, { element, header, detail });
    const pinLookups = view.format === "pins" && rows[0] !== undefined ? [{ line: rows[0].line }] : [];
    return unparsed.with({ rows, pinLookups });
  },
  merge: mergeById,
});

function element(common: Pick<BpfMap, "line" | "id" | "type" | "pinned">, value: Record<string, unknown>): BpfMap {
  const row: BpfMap = { ...common, btf: asInteger(value["btf_id"]) !== undefined };
  const name = asString(value["name"]);
  if (name !== undefined && name !== "") row.name = name;
  const flags = asInteger(value["flags"]);
  if (flags !== undefined) row.flags = `0x${flags.toString(16)}`;
  numbers(row, value["bytes_key"], value["bytes_value"], value["max_entries"], value["bytes_memlock"]);
  const frozen = asInteger(value["frozen"]);
  if (frozen !== undefined) row.frozen = frozen !== 0;
  return row;
}

function header(line: number, content: string): BpfMap | undefined {
  const [, id, type, name, flags] = HEADER.exec(content) ?? [];
  if (id === undefined || type === undefined) return undefined;
  const row: BpfMap = { line, id: Number(id), type, btf: false, pinned: [] };
  if (name !== undefined) row.name = name;
  if (flags !== undefined) row.flags = flags;
  return row;
}

/** Reads a line below the header of a map into its row; false if it is none. */
function detail(row: BpfMap, content: string): boolean {
  const sizes = SIZES.exec(content);
  if (sizes !== null) {
    numbers(row, sizes[1], sizes[2], sizes[3], sizes[4]);
    return true;
  }
  const flags = BTF_FROZEN.exec(content);
  if (flags !== null) {
    row.btf ||= flags[1] !== undefined;
    if ((flags[2] ?? flags[3]) !== undefined) row.frozen = true;
    return true;
  }
  return OWNER.test(content);
}

function numbers(row: BpfMap, key: unknown, value: unknown, entries: unknown, memlock: unknown): void {
  const [keyBytes, valueBytes, maxEntries, bytes] = [key, value, entries, memlock].map(asInteger);
  if (keyBytes !== undefined) row.keyBytes = keyBytes;
  if (valueBytes !== undefined) row.valueBytes = valueBytes;
  if (maxEntries !== undefined) row.maxEntries = maxEntries;
  if (bytes !== undefined) row.memlock = bytes;
}
