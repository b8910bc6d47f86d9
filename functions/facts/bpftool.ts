import { isPromptLine } from "./command.ts";
import { type Input, lines, type Part, UnparsedLines } from "./fact.ts";
import { asInteger, asString, asStrings, type JsonElement, jsonElements, parsedJson } from "./json.ts";
import { combine, ranked } from "./parts.ts";

/** What the facts about BPF share: how `bpftool` is called and how its JSON is laid out. */

/** A `bpftool` command line: `bpftool -j map dump id 5` is object "map", command "dump", rest ["id", "5"]. */
export interface BpftoolCall {
  readonly object: string;
  readonly command: string;
  readonly rest: readonly string[];
  readonly json: boolean;
  /** `-f`: pins are looked up. */
  readonly pins: boolean;
}

// Abbreviations are taken in bpftool's own order: the first one that begins so.
const OBJECTS = ["help", "batch", "prog", "map", "link", "cgroup", "perf", "net", "feature", "btf", "gen", "struct_ops", "iter", "version"];
const COMMANDS = ["show", "list", "help", "dump", "tree"];

/** Takes a `bpftool` command line apart; undefined if it is none or does something else than show. Abbreviations (`bpftool m s`) are understood. */
export function bpftoolCall(argv: readonly string[]): BpftoolCall | undefined {
  if (argv[0] !== "bpftool") return undefined;
  const words: string[] = [];
  let json = false;
  let pins = false;
  for (let i = 1; i < argv.length; i++) {
    const word = argv[i] as string;
    if (word === "-B" || word === "--base-btf") i++;
    else if (word === "--json" || word === "--pretty") json = true;
    else if (word === "--bpffs") pins = true;
    else if (/^-[A-Za-z]+$/.test(word)) {
      json ||= word.includes("j") || word.includes("p");
      pins ||= word.includes("f");
    } else if (!word.startsWith("--")) words.push(word);
  }
  const [first, second, ...rest] = words;
  if (first === undefined || first === "") return undefined;
  const object = OBJECTS.find((name) => name.startsWith(first));
  const command = second === undefined ? "show" : COMMANDS.find((name) => second !== "" && name.startsWith(second));
  if (object === undefined || command === undefined) return undefined;
  return { object, command: command === "list" ? "show" : command, rest, json, pins };
}

/** A failed bpftool prints `{"error":"…"}` with -j: that is no answer, although there is text. */
export function bpftoolAnswered({ exitCode, text }: Pick<Input, "exitCode" | "text" | "stderr">): boolean {
  if (exitCode === undefined || exitCode === 0) return true;
  const start = text.slice(0, 400).trimStart();
  return start !== "" && !/^\{\s{0,40}"error"/.test(start) && !start.startsWith("Error:");
}

/** Listings put together by id: a listing that shows everything stands alone, several that show a part (`| grep`, one id each) complement each other. */
export function mergeById<R extends { id: number }, T extends { rows: R[] }>(parts: readonly Part<T>[]): T {
  const best = ranked(parts);
  const [first] = best as [Part<T>, ...Part<T>[]];
  if (first.complete) return first.value;
  // where pins were looked up, rows without one say more than rows of a listing that does not tell
  const pins = (part: Part<T>): boolean => part.view.format === "pins";
  const rows = combine(
    best.filter((part) => part.view.scope !== first.view.scope || pins(part) === pins(first)).flatMap((part) => part.value.rows),
    (row) => String(row.id),
  );
  return { ...first.value, rows };
}

/** Blanks out the prompt lines that were pasted before an output; line numbers stay. */
export function withoutPromptLines(text: string): string {
  let start = 0;
  let blank = "";
  while (start < text.length) {
    let end = text.indexOf("\n", start);
    if (end === -1) end = text.length;
    const line = text.slice(start, Math.min(end, start + 400));
    if (!isPromptLine(line) && (line.trim() !== "" || end - start > 400)) break;
    if (end < text.length) blank += "\n";
    start = end + 1;
  }
  return start === 0 ? text : blank + text.slice(start);
}

/** True if the text is JSON, whatever the command line said: bpftool prints maps with BTF as JSON unasked. */
export const isJson = (text: string): boolean => /^\s{0,400}[[{]/.test(text);

/** An object of a named array somewhere inside a JSON text. */
export interface NestedElement extends JsonElement {
  /** The name of the array it stands in. */
  readonly list: string;
  /** The last string named `label` before the array. */
  readonly label: string;
}

/**
 * The objects inside arrays of the given names, at whatever depth, each with its line and text: `bpftool -j cgroup tree` and `net show` wrap
 * everything into one element. `label` names a string field to remember ("cgroup"). A cut text yields what came before the cut. Linear in the text.
 */
export function nestedElements(text: string, lists: readonly string[], label: string, unparsed: UnparsedLines): NestedElement[] {
  const elements: NestedElement[] = [];
  let line = 1;
  let depth = 0;
  let name: string | undefined;
  let labelled = "";
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 10) line++;
    else if (code === 34 /* " */) {
      const end = endOfString(text, i);
      const word = unquote(text.slice(i, end));
      let next = end;
      while (next < text.length && text.charCodeAt(next) <= 32 && text.charCodeAt(next) !== 10) next++;
      if (text[next] === ":") name = word;
      else {
        if (name === label) labelled = word;
        if (name === "error") unparsed.add(line, word);
        name = undefined;
      }
      i = end - 1;
    } else if (code === 91 /* [ */ && name !== undefined && lists.includes(name)) {
      const end = endOfArray(text, i);
      const slice = text.slice(i, end);
      const inner = new UnparsedLines();
      for (const element of jsonElements(slice, inner)) elements.push({ ...element, line: element.line + line - 1, list: name, label: labelled });
      for (const left of inner.kept) unparsed.add(left.line + line - 1, left.text);
      unparsed.count += inner.count - inner.kept.length;
      for (let at = slice.indexOf("\n"); at !== -1; at = slice.indexOf("\n", at + 1)) line++;
      i = end - 1;
      name = undefined;
    } else if (code === 91 || code === 123) {
      depth++;
      name = undefined;
    } else if (code === 93 || code === 125) depth--;
    else if (depth <= 0 && code > 32 && code !== 44) {
      let end = text.indexOf("\n", i);
      if (end === -1) end = text.length;
      unparsed.add(line, text.slice(i, Math.min(end, i + 400)));
      i = end - 1;
    }
  }
  if (depth > 0) unparsed.add(line, "the JSON is not closed: the output was cut");
  return elements;
}

/** Index behind the string that begins at `start`, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 92 /* \ */) i++;
    else if (code === 34) return i + 1;
  }
  return text.length;
}

/** Index behind the `]` that closes the `[` at `start`, or the end of the text. */
function endOfArray(text: string, start: number): number {
  let depth = 0;
  for (let i = start; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 34) i = endOfString(text, i) - 1;
    else if (code === 91) depth++;
    else if (code === 93 && --depth === 0) return i + 1;
  }
  return text.length;
}

function unquote(quoted: string): string {
  const word = parsedJson(quoted);
  return word === undefined ? quoted.slice(1) : (asString(word) ?? "");
}

/** Attach names of bpftool before 6.0, which every version still accepts for attach and detach, with the names that newer ones print. */
const ATTACH_NAMES: Readonly<Record<string, string>> = {
  ingress: "cgroup_inet_ingress",
  egress: "cgroup_inet_egress",
  sock_create: "cgroup_inet_sock_create",
  sock_release: "cgroup_inet_sock_release",
  sock_ops: "cgroup_sock_ops",
  device: "cgroup_device",
  bind4: "cgroup_inet4_bind",
  bind6: "cgroup_inet6_bind",
  connect4: "cgroup_inet4_connect",
  connect6: "cgroup_inet6_connect",
  post_bind4: "cgroup_inet4_post_bind",
  post_bind6: "cgroup_inet6_post_bind",
  getpeername4: "cgroup_inet4_getpeername",
  getpeername6: "cgroup_inet6_getpeername",
  getsockname4: "cgroup_inet4_getsockname",
  getsockname6: "cgroup_inet6_getsockname",
  sendmsg4: "cgroup_udp4_sendmsg",
  sendmsg6: "cgroup_udp6_sendmsg",
  recvmsg4: "cgroup_udp4_recvmsg",
  recvmsg6: "cgroup_udp6_recvmsg",
  sysctl: "cgroup_sysctl",
  getsockopt: "cgroup_getsockopt",
  setsockopt: "cgroup_setsockopt",
};
const OLD_NAMES = new Map(Object.entries(ATTACH_NAMES).map(([old, name]) => [name, old]));

/** The name newer versions print for an attach type (`connect4` → `cgroup_inet4_connect`); others as they are. */
export const attachTypeOf = (printed: string): string => (Object.hasOwn(ATTACH_NAMES, printed) ? (ATTACH_NAMES[printed] as string) : printed);
/** The name that `bpftool cgroup detach` of any version accepts for an attach type. */
export const attachNameOf = (attachType: string): string => OLD_NAMES.get(attachType) ?? attachType;
/** True for an attach type of a cgroup, old or new name. */
export const isCgroupAttachType = (printed: string): boolean => Object.hasOwn(ATTACH_NAMES, printed) || /^(?:cgroup_[a-z0-9_]{2,40}|lsm_cgroup)$/.test(printed);

/** Lines that stand under maps, programs and links alike: who holds them, and where they are pinned. */
const PIDS = /^\s*pids \S.*$/;
const PINNED = /^\s*pinned (\/.*)$/;

/** What maps, programs and links alike have. */
interface BpfObject {
  readonly line: number;
  readonly id: number;
  readonly type: string;
  readonly pinned: string[];
}

/** How one kind of them is told besides. */
interface Kind<R> {
  /** An element of the JSON listing. */
  element(common: BpfObject & { text: string }, value: JsonElement["value"]): R;
  /** The first line of one in the text form; undefined if it is none. */
  header(line: number, content: string): R | undefined;
  /** Reads a line below the header into its row; false if it tells nothing of this kind. */
  detail(row: R, content: string): boolean;
}

/** Reads what `bpftool map show`, `prog show` or `link show` printed, as JSON or as text. */
export function readObjects<R extends BpfObject>(given: string, unparsed: UnparsedLines, kind: Kind<R>): R[] {
  const text = withoutPromptLines(given);
  const rows: R[] = [];
  if (isJson(text)) {
    for (const { value, line, text: quote } of jsonElements(text, unparsed)) {
      const id = asInteger(value["id"]);
      const type = asString(value["type"]) ?? `type ${asInteger(value["type"]) ?? "unknown"}`;
      if (id === undefined) unparsed.add(line, quote);
      else rows.push(kind.element({ line, id, type, pinned: asStrings(value["pinned"]), text: quote }, value));
    }
    return rows;
  }
  for (const { line, text: content } of lines(text)) {
    const next = kind.header(line, content);
    const row = rows.at(-1);
    const pin = PINNED.exec(content)?.[1];
    if (next !== undefined) rows.push(next);
    else if (row !== undefined && pin !== undefined) row.pinned.push(pin);
    else if ((row === undefined || !(PIDS.test(content) || kind.detail(row, content))) && !isPromptLine(content.slice(0, 400))) unparsed.add(line, content);
  }
  return rows;
}
