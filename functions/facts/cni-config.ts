import { z } from "zod";
import { baseName, isPromptLine } from "./command.ts";
import { answeredByDefault, defineFact, type Input, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { asInteger, asObject, asString, parsedJson } from "./json.ts";
import { combine, ranked } from "./parts.ts";
import { isPrompt } from "./paste.ts";
import { present } from "./present.ts";

/**
 * CNI network configuration: which files are there, in the order in which a container runtime looks at them, and what they say.
 *
 *     -rw-r--r-- 1 root root  292 Mar  2 10:14 10-flannel.conflist
 *     /etc/cni/net.d/10-flannel.conflist:  "name": "cbr0",
 */
const Directory = z.object({
  line: z.int(),
  /** Without a slash at the end. */
  directory: z.string(),
  /** False: it is not there. Absent where only a shell's failed `*` tells that nothing was found. */
  exists: z.boolean().optional(),
  /** Files with an ending that container runtimes read: .conf, .conflist, .json. */
  configs: z.int(),
});
const File = z.object({
  line: z.int(),
  directory: z.string(),
  /** Base name. */
  file: z.string(),
  /** True if its ending is .conf, .conflist or .json: container runtimes read no others. */
  config: z.boolean(),
  /** Place among the configurations of its directory by name, as far as they were seen; runtimes use 1. 0 for other files. */
  order: z.int(),
  /** Bytes, where the listing tells. */
  size: z.int().optional(),
  /** Whether the text is JSON; absent where the text, or its end, was not seen. */
  valid: z.boolean().optional(),
  /** Of the network. */
  name: z.string().optional(),
  version: z.string().optional(),
  /** Types of its plugins in order, then those of delegates inside them (multus); empty where the text was not seen. */
  types: z.array(z.string()),
});
const Plugin = z.object({
  line: z.int(),
  directory: z.string(),
  file: z.string(),
  /** Name of the binary that is run. */
  type: z.string(),
  /** 1-based, in the chain. */
  position: z.int(),
  bridge: z.string().optional(),
  /** The network interface below it (macvlan, ipvlan). */
  master: z.string().optional(),
  isGateway: z.boolean().optional(),
  hairpinMode: z.boolean().optional(),
  promiscMode: z.boolean().optional(),
  ipMasq: z.boolean().optional(),
  /** Bytes. */
  mtu: z.int().optional(),
  ipamType: z.string().optional(),
  /** Of its IPAM; the first if there are several. */
  subnet: z.string().optional(),
});
const Binary = z.object({ line: z.int(), name: z.string() });
const CniConfig = z.object({ directories: z.array(Directory), files: z.array(File), plugins: z.array(Plugin), binaries: z.array(Binary) });
export type CniConfig = z.infer<typeof CniConfig>;
type File = z.infer<typeof File>;

const CONFIG = /\.(?:conf|conflist|json)$/;
/** Where container runtimes look; k3s, microk8s and OpenShift have their own places. */
const NET_D = /^(?:\/\S{0,200})?\/(?:cni\/net\.d|cni-network|cni\/multus\/net\.d)$/;
/** What lies above it: `ls -alhZR /etc/cni`. */
const ABOVE_NET_D = /^(?:\/\S{0,200})?\/cni$/;
const BIN = /^(?:\/\S{0,200})?\/(?:cni\/bin|libexec\/cni|rancher\/k3s\/data\/\S{1,100}\/bin)$/;
const DEFAULT = "/etc/cni/net.d";
const K3S = "/var/lib/rancher/k3s/agent/etc/cni/net.d";
/** At most so many characters of one file are read as JSON: real ones have a few thousand. */
const MAX_FILE = 200_000;

export const cniConfig = defineFact({
  id: "cni-config",
  title: "CNI network configuration and plugins on disk",
  commands: [
    { argv: ["ls", "-la", DEFAULT, K3S] },
    { argv: ["grep", "-rs", "", "--include=*.conf", "--include=*.conflist", "--include=*.json", DEFAULT, K3S] },
    { argv: ["ls", "/opt/cni/bin"] },
  ],
  recognize(argv): View | undefined {
    const [program, ...rest] = argv;
    const paths = pathsOf(argv);
    if (paths.length === 0) return undefined;
    const scope = paths.join(" ");
    if (program === "ls" || program === "dir" || program === "ll" || (program === "tree" && paths.length === 1)) {
      // one file's line, or what a shell's `*` leaves out, is no listing of a directory
      const recursive = rest.some((word) => /^(?:-[a-zA-Z]*R|--recursive$)/.test(word));
      // beside other directories each has its name above its entries
      const beside = paths.length > 1 && paths.some((path) => NET_D.test(path)) && !paths.some((path) => /[*?]/.test(path) || NET_D.test(directoryOf(path)));
      const whole = beside || paths.every((path) => NET_D.test(path) || BIN.test(path) || (recursive && ABOVE_NET_D.test(path)));
      if (!whole && !paths.some((path) => NET_D.test(directoryOf(path)) || BIN.test(directoryOf(path)))) return undefined;
      return { format: "ls", complete: whole, scope: `ls ${scope}`, rank: 2 };
    }
    if (program === "find" && paths.every((path) => NET_D.test(path)) && rest.includes("-exec"))
      return rest[rest.indexOf("-exec") + 1] === "cat" && rest.includes("-print")
        ? { format: "text", complete: true, scope: `text ${scope}`, rank: 1 }
        : undefined;
    if (program === "find" && paths.every((path) => NET_D.test(path))) {
      return { format: "find", complete: !rest.some((word) => /^-i?name$|^-newer/.test(word)), scope: `ls ${scope}`, rank: 1 };
    }
    if (program === "grep" && rest.some((word) => /^-[a-zA-Z]*[rR]/.test(word)) && paths.every((path) => NET_D.test(path))) {
      const all = rest.some((word) => word === "" || word === "." || word === "^");
      return { format: "prefixed", complete: all, scope: `text ${scope}`, rank: 3 };
    }
    // each line of several files has its name in front
    if (
      /^e?grep$/.test(program ?? "") &&
      /^[.^]?$/.test(rest.find((word) => !/^-[hHsE]{1,4}$/.test(word)) ?? "-") &&
      paths.every((path) => NET_D.test(directoryOf(path)))
    )
      return { format: rest.some((word) => /^-\w{0,3}h/.test(word)) ? "text" : "prefixed", complete: true, scope: `text ${scope}`, rank: 2 };
    if (SHOWS.test(program ?? "") || (program === "sed" && rest[0] === "-n" && rest[1] === "p")) {
      if (!paths.every((path) => NET_D.test(directoryOf(path)))) return undefined;
      const cut = program === "head" || (program === "tail" && !rest.some((word) => /^-?\+[01]$|^-n\+1$/.test(word)));
      return { format: "text", complete: !cut, scope: `text ${scope}`, rank: cut ? 1 : 2 };
    }
    return undefined;
  },
  schema: CniConfig,
  // that a directory is not there, or that a pattern finds no file in it, is an answer
  answered: (output) => answeredByDefault(output) || MISSING_TEXT.test(output.stderr),
  parse(input) {
    const unparsed = new UnparsedLines();
    const found: CniConfig = { directories: [], files: [], plugins: [], binaries: [] };
    if (input.view.format === "ls") readListing(found, input, unparsed);
    else if (input.view.format === "find") readFind(found, input, unparsed);
    else readTexts(found, input, unparsed);
    return unparsed.with({ ...found, files: ordered(found.files) });
  },
  merge(parts) {
    const best = ranked(named(parts));
    const key = (row: { directory: string; file: string }) => `${row.directory}/${row.file}`;
    // the size of a file that is not text, or a name alone, says less than its text
    const texts = best.toSorted((a, b) => Number(b.view.scope.startsWith("text")) - Number(a.view.scope.startsWith("text")));
    const seen = new Set<string>();
    return {
      // a listing of which something is missing cannot say how many there are
      directories: best.filter((part) => part.complete).flatMap((part) => part.value.directories),
      files: ordered(
        combine(
          texts.flatMap((part) => (part.complete ? part.value.files : part.value.files.map(uncut))),
          key,
        ),
      ),
      plugins: texts.flatMap((part) => {
        const rows = part.value.plugins.filter((row) => !seen.has(key(row)));
        for (const row of rows) seen.add(key(row));
        return rows;
      }),
      binaries: combine(
        best.flatMap((part) => part.value.binaries),
        (row) => row.name,
      ),
    };
  },
  // which files there are is what counts: of the text of one, its name alone is known then
  whole: (parts) => parts.some((part) => part.complete && part.value.directories.length > 0),
});

/** Text that is no JSON may just be cut off. */
function uncut(row: File): File {
  const { valid, ...rest } = row;
  return valid === true ? row : rest;
}

/** What `cat *` shows without names gets them from a listing of the directory that has as many configurations; else its texts are files too many. */
function named(parts: readonly Part<CniConfig>[]): Part<CniConfig>[] {
  const listing = parts.find((part) => part.complete && part.view.scope.startsWith("ls") && part.value.files.some((row) => row.config));
  if (listing === undefined) return [...parts];
  const names = (directory: string) =>
    listing.value.files
      .filter((row) => row.config && row.directory === directory)
      .sort((a, b) => a.order - b.order)
      .map((row) => row.file);
  return parts.map((part) => {
    const nameless = part.value.files.filter((row) => NAMELESS.test(row.file)).length;
    if (nameless === 0) return part;
    const rename = <R extends { directory: string; file: string }>(rows: readonly R[]): R[] =>
      rows.flatMap((row) => {
        const number = NAMELESS.exec(row.file)?.[1];
        if (number === undefined) return [row];
        const known = names(row.directory);
        const file = known.length === nameless ? known[Number(number) - 1] : undefined;
        return file === undefined ? [] : [{ ...row, file }];
      });
    return { ...part, value: { ...part.value, files: rename(part.value.files), plugins: rename(part.value.plugins) } };
  });
}
/** Stands for a name that is not known, in the order of the output. */
const NAMELESS = /^file-(\d{1,6})\.conf$/;

/** Print whole files. */
const SHOWS = /^(?:cat|head|tail|more|less|bat|batcat|jq|yq)$/;

/** The paths that a command names; a container that was made to look at the node has its files below /host. */
const pathsOf = (argv: readonly string[]): string[] =>
  argv
    .slice(1)
    .filter((word) => word.startsWith("/"))
    .map((path) => onNode(path).replace(/\/+$/, "") || "/");
const onNode = (path: string): string => path.replace(/^\/host(?=\/)/, "");

const directoryOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf("/")));

/** Files with their place among the configurations of their directory. Runtimes sort by bytes. */
function ordered(files: readonly File[]): File[] {
  const byDirectory = new Map<string, string[]>();
  for (const row of files) {
    const names = byDirectory.get(row.directory) ?? [];
    if (row.config) names.push(row.file);
    byDirectory.set(row.directory, names);
  }
  const places = new Map<string, Map<string, number>>();
  for (const [directory, names] of byDirectory) {
    places.set(directory, new Map([...new Set(names)].sort((a, b) => (a < b ? -1 : 1)).map((name, i) => [name, i + 1])));
  }
  return files.map((row) => ({ ...row, order: row.config ? (places.get(row.directory)?.get(row.file) ?? 0) : 0 }));
}

// ls: cannot access '/etc/cni/net.d': No such file or directory   cat: can't open '/etc/cni/net.d/*': No such file or directory
const MISSING =
  /^(?:[\w./-]{1,40}: )?(?:cannot access |can't open |cannot open )?['"`‘]?(\/[^\s'"’:]{1,300})['"’]?(?: for reading)?: No such file or directory$/;
const MISSING_TEXT = /: No such file or directory\s*$/m;

/** Takes a line that says that a path is not there. */
function missing(found: CniConfig, line: number, content: string): boolean {
  const path = onNode(MISSING.exec(content.trim())?.[1] ?? "").replace(/\/+$/, "");
  if (path === "") return false;
  if (NET_D.test(path)) found.directories.push({ line, directory: path, exists: false, configs: 0 });
  else if (path.endsWith("*") && NET_D.test(directoryOf(path))) found.directories.push({ line, directory: directoryOf(path), configs: 0 });
  return true;
}

/** What tree draws, and its last line. */
const BRANCH = /^(?:[├└│|`][─\s│├└|`-]{1,40})(?=\S)/;
const LEAVES = /^\d{1,6} director(?:y|ies), \d{1,6} files?$/;
const FRAME = /^(\/[^\s:]{1,300}):$/;
const LONG = /^[-dlbcps][rwxsStT-]{9}[.+@]?\s/;
/** Blocks on the disk, before the entries of a long listing. */
const TOTAL = /^(?:total|insgesamt|итого|total:|合計|总用量|celkem|totaal|razem|totale) [\d.,]{1,12}[KMG]?$/i;

function readListing(found: CniConfig, { text, argv, stderr, exitCode }: Input, unparsed: UnparsedLines): void {
  const paths = pathsOf(argv);
  for (const { line, text: content } of lines(stderr)) missing(found, line, content);
  let directory = paths.length === 1 ? (paths[0] as string) : "";
  let cut: string | undefined;
  const looked = new Map<string, { line: number; configs: number }>();
  const open = (path: string, line: number) => {
    if (NET_D.test(path) && !looked.has(path)) looked.set(path, { line, configs: 0 });
  };
  if (exitCode === undefined || exitCode === 0) open(directory, 1);
  for (const { line, text: raw } of lines(text)) {
    const content = raw.trim().replace(BRANCH, "");
    if (argv[0] === "tree" && (onNode(content).replace(/\/+$/, "") === directory || LEAVES.test(content))) continue;
    const frame = FRAME.exec(content)?.[1];
    if (frame !== undefined) {
      directory = onNode(frame).replace(/\/+$/, "");
      open(directory, line);
    } else if (missing(found, line, content)) looked.delete(directory);
    else if (TOTAL.test(content)) {
      // a folder without entries takes no blocks: what was listed is cut off, until an entry comes
      if (/[1-9]/.test(content)) cut = directory;
    } else if (!isPrompt(raw)) {
      cut = undefined;
      const row = content.replace(NUMBERS_IN_FRONT, "");
      const names = LONG.test(row) ? (longName(row) ?? fewerColumns(row)) : shortNames(content);
      if (names === undefined) unparsed.add(line, raw);
      for (const entry of names ?? []) {
        const path = entry.name.startsWith("/") ? onNode(entry.name) : `${directory}/${entry.name}`;
        addName(found, directoryOf(path), baseName(path), line, entry.size);
        const seen = looked.get(directoryOf(path));
        if (seen !== undefined && CONFIG.test(path)) seen.configs++;
      }
    }
  }
  if (cut !== undefined) looked.delete(cut);
  for (const [path, { line, configs }] of looked) found.directories.push({ line, directory: path, exists: true, configs });
}

interface Entry {
  readonly name: string;
  readonly size?: number;
}

/** `-rw-r--r-- 1 root root 292 Mar  2 10:14 10-flannel.conflist`, with a date of two, three or four words; directories give nothing. */
function longName(content: string): Entry[] | undefined {
  const all = content.split(/\s+/, 15);
  // of -Z, "system_u:object_r:etc_t:s0" or "?"
  const words = /^(?:\?|\w{1,40}:\w{1,40}:\S{1,100})$/.test(all[4] ?? "") ? all.toSpliced(4, 1) : all;
  const size = sizeOf(words[4] ?? "");
  const iso = /^\d{4}-\d\d-\d\d$/.test(words[5] ?? "");
  const at = iso ? (/^[+-]\d{4}$/.test(words[7] ?? "") ? 8 : 7) : 8;
  const name = words[at];
  if (name === undefined || !Number.isSafeInteger(size)) return undefined;
  const rest = words.slice(at + 1);
  if (rest.length > 0 && rest[0] !== "->") return undefined;
  return content.startsWith("d") ? [] : [{ name, ...(content.startsWith("-") ? { size } : {}) }];
}

/** Of -i and -s: the inode and the blocks. */
const NUMBERS_IN_FRONT = /^(?:\d{1,12}\s{1,12}){1,2}(?=[-dlbcps][rwxsStT-]{9})/;
/** Of -g, -o and -G: without the owner, the group or both. */
const FEWER =
  /^[-dlbcps]\S{9,10}\s{1,8}\d{1,6}\s{1,8}(?:[\w.-]{1,40}\s{1,12})?(\d{1,15}(?:[.,]\d)?[KMGT]?)\s{1,8}(?:\d{4}-\d\d-\d\d|[^\s\d]{2,8}\s{1,4}\d{1,2})\s{1,4}[\d:.]{4,20}\s(?:[+-]\d{4}\s)?(\S{1,300})(?: -> .{1,300})?$/;

function fewerColumns(content: string): Entry[] | undefined {
  const [, size = "", name] = FEWER.exec(content) ?? [];
  if (name === undefined) return undefined;
  return content.startsWith("d") ? [] : [{ name, ...(content.startsWith("-") ? { size: sizeOf(size) } : {}) }];
}

/** "292", and of -h "1.2K". */
function sizeOf(word: string): number {
  const [, number, unit = ""] = /^(\d{1,15}(?:[.,]\d{1,3})?)([KMGT]?)$/.exec(word) ?? [];
  return number === undefined ? Number.NaN : Math.round(Number(number.replace(",", ".")) * 1024 ** " KMGT".indexOf(unit || " "));
}

/** Names in columns, or one a line. */
function shortNames(content: string): Entry[] | undefined {
  const names = content.split(/\s+/);
  return names.every((name) => /^[\w./@+~,=%-]{1,300}$/.test(name)) ? names.map((name) => ({ name })) : undefined;
}

function addName(found: CniConfig, directory: string, name: string, line: number, size?: number): void {
  if (name === "" || name === "." || name === "..") return;
  if (BIN.test(directory)) found.binaries.push({ line, name });
  else if (NET_D.test(directory)) found.files.push({ line, directory, file: name, config: CONFIG.test(name), order: 0, ...present({ size }), types: [] });
}

function readFind(found: CniConfig, { text, argv, stderr }: Input, unparsed: UnparsedLines): void {
  for (const { line, text: content } of lines(stderr)) missing(found, line, content);
  let first = 0;
  for (const { line, text: raw } of lines(text)) {
    // of -ls the name stands at the end
    const content = onNode(/^\d.{20,200}\s(\/\S{1,400})$/.exec(raw.trim())?.[1] ?? raw.trim());
    if (NET_D.test(content)) first ||= line;
    else if (/^\/\S{1,400}$/.test(content) && NET_D.test(directoryOf(content))) addName(found, directoryOf(content), baseName(content), line);
    else if (!missing(found, line, content) && !isPrompt(raw)) unparsed.add(line, raw);
  }
  for (const directory of pathsOf(argv)) {
    if (found.directories.some((row) => row.directory === directory)) continue;
    const configs = found.files.filter((row) => row.directory === directory && row.config);
    // a directory itself is listed unless only files were asked for
    if (first > 0 || configs.length > 0) found.directories.push({ line: configs[0]?.line ?? first, directory, exists: true, configs: configs.length });
  }
}

/** The text of one file, with the line of the output on which each of its lines stands. */
interface Text {
  readonly directory: string;
  readonly file: string;
  readonly lines: { line: number; text: string }[];
  /** False if the end may be missing. */
  readonly ended: boolean;
}

const PREFIXED = /^(\/[^\s:]{1,300}):(.*)$/s;
const TITLE = /^==> (\/\S{1,300}) <==$/;
/** `find … -print -exec cat`, and what `more` frames with colons. */
const PATH_ALONE = /^(\/[^\s:{}"]{0,300}\/net\.d\/[\w.-]{1,100})$/;
const COLONS = /^:{10,20}$/;

/** `grep -r`, `head` and `tail` of several files, `cat`. */
function readTexts(found: CniConfig, { text, argv, view, stderr }: Input, unparsed: UnparsedLines): void {
  for (const { line, text: content } of lines(stderr)) missing(found, line, content);
  const paths = pathsOf(argv);
  const texts = new Map<string, Text>();
  const put = (shown: string, line: number, content: string) => {
    const path = onNode(shown);
    let known = texts.get(path);
    if (known === undefined) {
      known = { directory: directoryOf(path), file: baseName(path), lines: [], ended: argv[0] !== "head" };
      texts.set(path, known);
    }
    known.lines.push({ line, text: content });
  };
  let current: string | undefined = paths[0] as string;
  // a file's text, without a frame around it
  let framed = paths.length === 1 && argv[0] !== "find" && !current.includes("*");
  // cat of several files: each top-level object is the next one
  let depth = 0;
  let count = 0;
  for (const { line, text: raw } of lines(text)) {
    const title = TITLE.exec(raw) ?? (depth === 0 ? PATH_ALONE.exec(raw) : null);
    const prefixed = view.format === "prefixed" ? PREFIXED.exec(raw) : null;
    if (title !== null) {
      current = title[1] as string;
      framed = true;
      put(current, line, "");
    } else if (prefixed !== null) put(prefixed[1] as string, line, prefixed[2] as string);
    else if (view.format === "prefixed" || missing(found, line, raw)) {
      if (view.format === "prefixed" && !missing(found, line, raw) && !isPromptLine(raw)) unparsed.add(line, raw);
    } else if (isPrompt(raw) && depth === 0) continue;
    else if (COLONS.test(raw)) continue;
    else if (framed) put(current as string, line, raw);
    else {
      if (depth === 0 && !raw.trimStart().startsWith("{")) {
        // what stands between is no network configuration: a kubeconfig, most often
        if (!OTHER_FILE.test(raw)) unparsed.add(line, raw);
        continue;
      }
      if (depth === 0) {
        const known = paths.filter((path) => !path.includes("*"));
        // a shell's `*` leaves the names out, and keeps the order
        current = known.length === paths.length ? known[count] : undefined;
        current ??= `${directoryOf(paths[0] as string)}/file-${count + 1}.conf`;
        count++;
      }
      put(current as string, line, raw);
      depth = Math.max(0, depth + balance(raw));
    }
  }
  for (const given of texts.values()) if (NET_D.test(given.directory)) readText(found, given, unparsed);
  // a recursive grep shows every file that has a line
  if (view.format !== "prefixed") return;
  for (const directory of new Set(found.files.map((row) => row.directory))) {
    const configs = found.files.filter((row) => row.directory === directory && row.config);
    if (configs[0] !== undefined) found.directories.push({ line: configs[0].line, directory, exists: true, configs: configs.length });
  }
}

/** Lines of the files beside the configurations: YAML of a kubeconfig, a script, certificates. */
const OTHER_FILE = /^(?:---|#.{0,400}|[\s-]{0,20}[\w.-]{1,60}:(?:\s.{0,20000})?|[A-Za-z0-9+/=]{1,20000}|-----.{1,60}-----)$/;

/** Braces opened minus braces closed, outside of strings. */
function balance(text: string): number {
  let depth = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (quoted && char === "\\") i++;
    else if (char === '"') quoted = !quoted;
    else if (!quoted) depth += char === "{" ? 1 : char === "}" ? -1 : 0;
  }
  return depth;
}

type Json = Record<string, unknown>;
const asObjects = (value: unknown): Json[] => (Array.isArray(value) ? value.map(asObject) : []);
const asBoolean = (value: unknown): boolean | undefined => (typeof value === "boolean" ? value : undefined);

function readText(found: CniConfig, { directory, file, lines: given, ended }: Text, unparsed: UnparsedLines): void {
  const content = given.map((row) => row.text).join("\n");
  const first = (given.find((row) => row.text.trim() !== "") ?? given[0])?.line ?? 1;
  const row = { line: first, directory, file, config: CONFIG.test(file), order: 0, types: [] as string[] };
  if (!row.config) {
    found.files.push(row);
    return;
  }
  const json = content.length > MAX_FILE ? undefined : parseObject(content);
  if (json === undefined) {
    const cut = content.length > MAX_FILE || !ended || content.includes("…");
    found.files.push({ ...row, ...(cut ? {} : { valid: false }) });
    if (content.length > MAX_FILE) unparsed.add(first, `${file} is too large to be read`);
    return;
  }
  const places = new Places(given);
  const chain = Array.isArray(json["plugins"]) ? asObjects(json["plugins"]) : [json];
  const name = asString(json["name"]);
  const types: string[] = [];
  const inner: string[] = [];
  chain.slice(0, 50).forEach((plugin, i) => {
    const type = asString(plugin["type"]);
    if (type === undefined) return;
    types.push(type);
    const line = places.of("type", type) ?? first;
    const ipam = asObject(plugin["ipam"]);
    const range = asObject((Array.isArray(ipam["ranges"]) ? (ipam["ranges"] as unknown[]).flat() : [])[0]);
    const delegate = asObject(plugin["delegate"]);
    const delegates = asObjects(plugin["delegates"]).flatMap((one) => (Array.isArray(one["plugins"]) ? asObjects(one["plugins"]) : [one]));
    inner.push(...[delegate, ...delegates].flatMap((one) => asString(one["type"]) ?? []));
    found.plugins.push({
      line,
      directory,
      file,
      type,
      position: i + 1,
      ...present({
        bridge: asString(plugin["bridge"]) ?? asString(delegate["bridge"]),
        master: asString(plugin["master"]),
        isGateway:
          asBoolean(plugin["isGateway"]) ??
          asBoolean(delegate["isGateway"]) ??
          asBoolean(plugin["isDefaultGateway"]) ??
          asBoolean(delegate["isDefaultGateway"]),
        hairpinMode: asBoolean(plugin["hairpinMode"]) ?? asBoolean(delegate["hairpinMode"]),
        promiscMode: asBoolean(plugin["promiscMode"]) ?? asBoolean(delegate["promiscMode"]),
        ipMasq: asBoolean(plugin["ipMasq"]) ?? asBoolean(delegate["ipMasq"]),
        mtu: asInteger(plugin["mtu"]) ?? asInteger(delegate["mtu"]),
        ipamType: asString(ipam["type"]),
        subnet: asString(ipam["subnet"]) ?? asString(range["subnet"]),
      }),
    });
  });
  const line = (name === undefined ? undefined : places.first("name", name)) ?? first;
  found.files.push({ ...row, line, valid: true, ...present({ name, version: asString(json["cniVersion"]) }), types: [...types, ...inner] });
}

/** Finds the lines on which keys of a JSON text stand, in their order. */
class Places {
  readonly #lines: readonly { line: number; text: string }[];
  #next = 0;

  constructor(given: readonly { line: number; text: string }[]) {
    this.#lines = given;
  }

  /** The next line, from where the last search ended, that gives `key` this value. */
  of(key: string, value: string): number | undefined {
    const at = this.#find(key, value, this.#next);
    // several may stand on one line
    if (at !== -1) this.#next = at;
    return this.#lines[at]?.line;
  }

  first(key: string, value: string): number | undefined {
    return this.#lines[this.#find(key, value, 0)]?.line;
  }

  #find(key: string, value: string, from: number): number {
    const quoted = JSON.stringify(value);
    return this.#lines.findIndex(({ text }, i) => i >= from && text.includes(`"${key}"`) && text.includes(quoted));
  }
}

function parseObject(text: string): Json | undefined {
  const value = parsedJson(text);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : undefined;
}
