import { z } from "zod";
import { bpftoolAnswered, bpftoolCall, isJson, withoutPromptLines } from "./bpftool.ts";
import { isPromptLine } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { asInteger, asString, jsonElements } from "./json.ts";

/**
 * Contents of BPF maps: raw bytes, or typed JSON of maps that have type information (BTF).
 *
 *     key: ac 11 5d 04 1f 90 01 00  06 00 00 00  value: e4 03 00 00 00 00 01 98  00 00 00 00
 *     Found 1 element
 */
const BpfMapElement = z.object({
  line: z.int(),
  /** How the command named the map: "id 41", "pinned /sys/fs/bpf/tc/globals/cilium_lb4_services_v2". */
  map: z.string(),
  mapId: z.int().optional(),
  pinned: z.string().optional(),
  /** Bytes in memory order, as hexadecimal digits without blanks; left out of typed output whose layout is not known. */
  key: z.string().optional(),
  value: z.string().optional(),
  /** JSON text of a typed key and value. */
  keyFields: z.string().optional(),
  valueFields: z.string().optional(),
});
const BpfMapDump = z.object({
  rows: z.array(BpfMapElement),
  /** The maps that were dumped, empty ones too. */
  maps: z.array(z.object({ line: z.int(), map: z.string(), mapId: z.int().optional(), pinned: z.string().optional(), elements: z.int() })),
});
export type BpfMapElement = z.infer<typeof BpfMapElement>;
export type BpfMapDump = z.infer<typeof BpfMapDump>;
type DumpedMap = BpfMapDump["maps"][number];

// `map dump name` of several maps puts each under its own header, `map dump id` none.
const HEADER = /^\s*(\d{1,10}):\s+[a-z][a-z0-9_]{1,40}(?:\s+name [\w.]{1,64})?(?:\s+flags 0x[0-9a-f]{1,16})?$/;
const FOUND = /^Found (\d{1,10}) elements?$/;
const NUMBER_ALONE = /^\s{0,40}(?:Found \d{1,10} elements?|\d{1,10})\s{0,40}$/;
const GONE =
  /^(?:Error: )?(?:bpf obj get \(.{1,4096}\)|get (?:map )?by id \(\d{1,10}\)|can't get (?:map )?info by id \(\d{1,10}\)): No such file or directory$/;

// Cilium's service and backend maps, cut at 15 characters as the kernel keeps names. At most 16: a node has a handful.
const SERVICE_MAP_IDS = "bpftool map show | sed -n 's/^\\([0-9][0-9]*\\): .* name cilium_lb[46]_[sb][ea][rc][vk].*/\\1/p' | head -n 16";
const GLOBALS = "/sys/fs/bpf/tc/globals";

export const bpfMapDump = defineFact({
  id: "bpf-map-dump",
  title: "Contents of Cilium's service and backend maps",
  commands: [
    { argv: ["bpftool", "-j", "map", "dump", "id", "{}"], each: SERVICE_MAP_IDS },
    { argv: ["bpftool", "-j", "map", "dump", "pinned", `${GLOBALS}/cilium_lb4_services_v2`] },
    { argv: ["bpftool", "-j", "map", "dump", "pinned", `${GLOBALS}/cilium_lb4_backends_v3`] },
    { argv: ["bpftool", "-j", "map", "dump", "pinned", `${GLOBALS}/cilium_lb4_backends_v2`] },
  ],
  recognize(argv): View | undefined {
    const call = bpftoolCall(argv);
    if (call?.object !== "map" || call.command !== "dump" || call.rest.length < 2) return undefined;
    return { format: call.json ? "json" : "text", complete: true, scope: call.rest.join(" "), rank: call.json ? 2 : 1 };
  },
  schema: BpfMapDump,
  // A pin or an id that does not exist is an answer: there is no such map.
  answered: (input) => bpftoolAnswered(input) || /: No such file or directory/.test(`${input.text.slice(0, 2000)} ${input.stderr.slice(0, 2000)}`),
  parse({ text: given, argv, pipe = "" }) {
    const unparsed = new UnparsedLines();
    const text = withoutPromptLines(given);
    // that alone is read by the fact line-count
    if (pipe !== "" && NUMBER_ALONE.test(text)) return unparsed.with({ rows: [], maps: [] });
    const [by, which] = bpftoolCall(argv)?.rest ?? [];
    const named = { map: `${by ?? ""} ${which ?? ""}`.trim(), ...(by === "id" && asInteger(which) !== undefined ? { mapId: Number(which) } : {}) };
    const map = { ...named, ...(by === "pinned" && which !== undefined ? { pinned: which } : {}) };
    return unparsed.with(isJson(text) ? fromJson(text, map, unparsed) : fromText(text, map, unparsed));
  },
});

type MapName = Pick<DumpedMap, "map" | "mapId" | "pinned">;

function fromJson(text: string, map: MapName, unparsed: UnparsedLines): BpfMapDump {
  const rows: BpfMapElement[] = [];
  const maps: DumpedMap[] = [];
  let failed = false;
  let here = { line: 1, ...map, elements: 0 };
  for (const { value, line, text: quote } of jsonElements(text, unparsed)) {
    const error = asString(value["error"]);
    const id = asInteger(value["id"]);
    if (error !== undefined) {
      failed = true;
      if (!GONE.test(error)) unparsed.add(line, quote);
    } else if (id !== undefined && Array.isArray(value["elements"])) {
      // `map dump name` that fits several maps.
      const several = { line, map: `id ${id}`, mapId: id, elements: value["elements"].length };
      maps.push(several);
      const { elements: _, line: __, ...name } = several;
      for (const element of value["elements"] as Record<string, unknown>[]) {
        const row = elementOf(element, line, JSON.stringify(element).slice(0, 4000), name);
        if (row === undefined) unparsed.add(line, JSON.stringify(element).slice(0, 400));
        else rows.push(row);
      }
    } else {
      const row = elementOf(value, line, quote, map);
      if (here.elements === 0) here = { ...here, line };
      here.elements++;
      if (row === undefined) unparsed.add(line, quote);
      else rows.push(row);
    }
  }
  if (maps.length === 0 && !failed) maps.push(here);
  return { rows, maps };
}

/** One element of a JSON dump; undefined if it is none (or per CPU, which no rule needs). */
function elementOf(value: Record<string, unknown>, line: number, text: string, map: MapName): BpfMapElement | undefined {
  if (typeof value !== "object" || value === null || value["key"] === undefined || value["value"] === undefined) return undefined;
  const formatted = value["formatted"] as Record<string, unknown> | undefined;
  const key = hexOfArray(value["key"]);
  const bytes = hexOfArray(value["value"]);
  const row: BpfMapElement & { text: string } = { line, ...map, text };
  if (key !== undefined && bytes !== undefined) {
    Object.assign(row, { key, value: bytes });
    if (typeof formatted !== "object" || formatted === null) return row;
  }
  const typedKey = key === undefined ? value["key"] : formatted?.["key"];
  const typedValue = bytes === undefined ? value["value"] : formatted?.["value"];
  if (typedKey !== undefined) row.keyFields = JSON.stringify(typedKey);
  if (typedValue !== undefined) row.valueFields = JSON.stringify(typedValue);
  row.key ??= typeof typedKey === "number" ? littleEndian(typedKey, 4) : bytesOfFields(typedKey);
  row.value ??= bytesOfFields(typedValue);
  if (row.key === undefined) delete row.key;
  if (row.value === undefined) delete row.value;
  return row;
}

/** `["0xac","0x11"]` → `ac11`; undefined if it is anything else. */
function hexOfArray(value: unknown): string | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  let hex = "";
  for (const byte of value) {
    if (typeof byte !== "string" || !/^0x[0-9a-f]{2}$/.test(byte)) return undefined;
    hex += byte.slice(2);
  }
  return hex;
}

/** Sizes in bytes of the fields of Cilium's lb4/lb6 keys, services and backends; the nameless union in a service begins with backend_id. */
const FIELD_BYTES: Readonly<Record<string, number>> = {
  address: 4,
  dport: 2,
  port: 2,
  backend_slot: 2,
  proto: 1,
  scope: 1,
  backend_id: 4,
  count: 2,
  rev_nat_index: 2,
  flags: 1,
  flags2: 1,
  qcount: 2,
  cluster_id: 2,
  zone: 1,
  pad: 1,
};

/** The bytes of a typed struct, if it has only fields of Cilium's load-balancing structs: these have no holes. Little endian, as every node we know. */
function bytesOfFields(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  let hex = "";
  for (const [name, field] of Object.entries(value)) {
    const union = name === "" && typeof field === "object" && field !== null ? asInteger((field as Record<string, unknown>)["backend_id"]) : undefined;
    const size = union !== undefined ? 4 : Object.hasOwn(FIELD_BYTES, name) ? FIELD_BYTES[name] : undefined;
    const content = union ?? (name === "address" && typeof field === "object" ? (field as Record<string, unknown> | null)?.["addr"] : field);
    if (size === undefined) return undefined;
    if (Array.isArray(content) && content.length <= 16) {
      for (const byte of content) hex += littleEndian(asInteger(byte) ?? 0, 1);
    } else {
      const number = asInteger(content);
      if (number === undefined) return undefined;
      hex += littleEndian(number, size);
    }
  }
  return hex === "" ? undefined : hex;
}

function littleEndian(number: number, size: number): string {
  let hex = "";
  let rest = number;
  for (let i = 0; i < size; i++) {
    hex += (rest & 255).toString(16).padStart(2, "0");
    rest = Math.floor(rest / 256);
  }
  return hex;
}

/**
 * The plain form. Short elements stand on one line; longer ones put `key:` and `value:` on lines of their own with 16 bytes a line below.
 */
function fromText(text: string, map: MapName, unparsed: UnparsedLines): BpfMapDump {
  const rows: BpfMapElement[] = [];
  const maps: DumpedMap[] = [];
  let name = map;
  let elements = 0;
  let first = 0;
  let last = 1;
  let open: { line: number; key: string; value: string | undefined; bad: boolean } | undefined;
  const close = () => {
    if (open === undefined) return;
    if (open.bad || open.value === undefined || open.value === "" || open.key === "")
      unparsed.add(open.line, `an element of ${name.map} that could not be read`);
    else rows.push({ line: open.line, ...name, key: open.key, value: open.value });
    elements++;
    open = undefined;
  };
  const end = () => {
    close();
    if (first !== 0) maps.push({ line: first, ...name, elements });
    elements = 0;
    first = 0;
  };
  for (const { line, text: content } of lines(text)) {
    last = line;
    const at = content.charCodeAt(0) <= 32 ? content.trimStart() : content;
    if (at.startsWith("key:")) {
      close();
      if (first === 0) first = line;
      const split = at.indexOf("value:");
      const key = hexOf(at, 4, split === -1 ? at.length : split);
      const value = split === -1 ? undefined : hexOf(at, split + 6, at.length);
      open = { line, key: key ?? "", value, bad: key === undefined || (split !== -1 && value === undefined) };
    } else if (open !== undefined && at.startsWith("value:")) {
      const value = hexOf(at, 6, at.length);
      open.bad ||= value === undefined || open.value !== undefined;
      open.value = value ?? "";
    } else if (open !== undefined && /^value \(CPU \d{1,4}\):/.test(at)) {
      // Per CPU: no rule needs them.
      open.bad = true;
      open.value ??= "";
    } else if (open !== undefined && hexOf(at, 0, at.length) !== undefined) {
      const more = hexOf(at, 0, at.length) as string;
      if (open.value === undefined) open.key += more;
      else open.value += more;
    } else if (FOUND.test(at)) {
      close();
      const found = Number(FOUND.exec(at)?.[1]);
      if (found !== elements) unparsed.add(line, content);
      if (first === 0) first = line;
      end();
      name = map;
    } else if (at === "(empty)") {
      if (first === 0) first = line;
      end();
    } else if (HEADER.test(at)) {
      end();
      const mapId = Number(HEADER.exec(at)?.[1]);
      name = { map: `id ${mapId}`, mapId };
      first = line;
    } else if (!GONE.test(at) && !isPromptLine(content.slice(0, 400))) unparsed.add(line, content);
  }
  if (open !== undefined || elements > 0) unparsed.add(last, "the dump does not end with `Found N elements`: it was cut");
  end();
  return { rows, maps };
}

/** The bytes between two positions, `ac 11  5d` → `ac115d`; undefined if anything else stands there. */
function hexOf(text: string, from: number, to: number): string | undefined {
  let hex = "";
  let digits = 0;
  for (let i = from; i < to; i++) {
    const code = text.charCodeAt(i);
    const isDigit = (code >= 48 && code <= 57) || (code >= 97 && code <= 102) || (code >= 65 && code <= 70);
    if (isDigit) {
      if (++digits > 2) return undefined;
      hex += text[i];
    } else if (code === 32 || code === 9) {
      if (digits === 1) return undefined;
      digits = 0;
    } else return undefined;
  }
  return digits === 1 ? undefined : hex.toLowerCase();
}
