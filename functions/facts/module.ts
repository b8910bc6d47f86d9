import { z } from "zod";
import { hasOption, isPromptLine, operands } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { combine, isShown, ranked } from "./parts.ts";
import { withoutPrompts } from "./paste.ts";

/**
 * Kernel modules that are loaded, and built-in ones where an output shows them. A name that is not here can still be built in: a built-in module
 * without parameters is in `modules.builtin` only.
 *
 *     br_netfilter           32768  0
 *     bridge                421888  1 br_netfilter
 */
const Module = z.object({
  line: z.int(),
  /** With underscores, as the kernel has it. */
  name: z.string(),
  /** Bytes. */
  size: z.int().optional(),
  /** Modules that use it; empty where an output does not tell. */
  usedBy: z.array(z.string()),
  /** True where an output proves that it is part of the kernel image. */
  builtin: z.boolean(),
});
/** The kernel has no such module, not even as a file: modprobe was asked for it. One that is built in would be found. */
const Missing = z.object({ line: z.int(), name: z.string() });
/** It was looked for among the modules that are loaded, and is not there: it is not loaded, or it is built in. */
const Sought = z.object({ line: z.int(), name: z.string() });
const Modules = z.object({ rows: z.array(Module), missing: z.array(Missing), sought: z.array(Sought).optional() });
type Module = z.infer<typeof Module>;

const LSMOD_HEADER = /^Module\s+Size\s+Used by/;
// lsmod: "name size count a,b"; /proc/modules: "name size count a,b, Live 0x0 (OE)" with "-" for no users
const LOADED =
  /^([\w-]{1,64})\s+(\d{1,12})\s+(?:-?\d{1,9}|-)(?:\s+([\w,[\]-]{1,4000}))?(?:\s+(?:Live|Loading|Unloading)\s+0x[0-9a-f]{1,16}(?:\s+\([A-Z+-]{1,16}\))?)?$/;
// /lib/modules/6.1.0/modules.builtin:kernel/net/bridge/br_netfilter.ko
const BUILTIN = /^(?:\/[^\s:]{1,300}:)?(?:kernel|arch|drivers|fs|net|lib|crypto|extra|updates)\/(?:[^\s:]{0,300}\/)?([\w-]{1,64})\.ko$/;
const WORD = /^[\w.-]{1,64}$/;
const MODINFO = /^([a-z][\w.-]{0,40}):(?:\s+(.*))?$/;
const NO_DIRECTORY = /^ls: (?:cannot access )?['"]?\/\S{1,300}: No such file or directory$/;

export const module = defineFact({
  id: "module",
  title: "Kernel modules that are loaded or built in",
  commands: [{ argv: ["lsmod"] }, { argv: ["ls", "/sys/module"] }],
  recognize(argv): View | undefined {
    const [program, ...rest] = argv;
    const files = operands(argv);
    if (program === "modprobe") return { format: "modprobe", complete: false, scope: argv.join(" ").slice(0, 200), rank: 0 };
    if (program === "lsmod") return { format: "loaded", complete: true, scope: "loaded", rank: 2 };
    if (program === "modinfo" && files.length === 1 && !hasOption(argv, "-F", "-n")) {
      return { format: "modinfo", complete: false, scope: `modinfo ${files[0]}`, rank: 1 };
    }
    if (program === "cat" || program === "grep" || program === "head") {
      const file = files.at(-1) ?? "";
      const all = program === "cat" && files.length === 1;
      if (file === "/proc/modules") return { format: "loaded", complete: all, scope: "loaded", rank: 3 };
      if (/^\/lib\/modules\/\S{1,200}\/modules\.builtin$/.test(file)) return { format: "builtin", complete: all, scope: "builtin", rank: 1 };
    }
    if (program === "ls" && files.length === 1) {
      const path = /^\/sys\/module(?:\/([\w-]{1,64}))?\/?$/.exec(files[0] as string);
      // -l prints more than names
      if (path === null || rest.some((word) => /^-[a-zA-Z]*[lodi]/.test(word))) return undefined;
      if (path[1] === undefined) return { format: "names", complete: true, scope: "names", rank: 1 };
      return { format: "directory", complete: false, scope: `directory ${path[1]}`, rank: 1 };
    }
    return undefined;
  },
  schema: Modules,
  // A kernel without module support has no /proc/modules: that is no list of no modules. grep ends with 1 where it found nothing.
  answered: ({ exitCode, text, stderr, command = "" }) =>
    exitCode === undefined ||
    exitCode === 0 ||
    (exitCode === 1 && `${text}${stderr}`.trim() === "" && command.includes("grep ")) ||
    (text.trim() !== "" && !/could not (?:open|get)|can't open/.test(text)),
  parse({ text, argv, view, stderr, pipe, truncated }) {
    const unparsed = new UnparsedLines();
    const sought =
      view.format === "loaded" && truncated !== true && stderr.trim() === "" ? soughtInVain(argv, pipe ?? "", withoutPrompts(text).trim()) : undefined;
    if (sought !== undefined) return unparsed.with({ rows: [], missing: [], sought: [{ line: 1, name: sought }] });
    if (view.format === "directory") return unparsed.with({ rows: readDirectory(text, argv, unparsed), missing: [] });
    if (view.format === "modprobe") return unparsed.with({ rows: [], missing: readModprobe(text, stderr) });
    const rows: Module[] = [];
    let modinfo: Module | undefined;
    for (const { line, text: content } of lines(text)) {
      const row = view.format === "loaded" ? loaded(content.trimStart()) : view.format === "modinfo" ? undefined : named(content.trimStart(), view.format);
      const field = view.format === "modinfo" ? MODINFO.exec(content) : null;
      if (row !== undefined) rows.push({ line, ...row });
      else if (field !== null) {
        // only a built-in module is surely in the kernel: a file can be there without being loaded
        if (field[1] === "filename" && field[2] === "(builtin)") modinfo = { line, name: underscored(argv.at(-1) ?? ""), usedBy: [], builtin: true };
      } else if (!LSMOD_HEADER.test(content.trimStart()) && !isPromptLine(content)) unparsed.add(line, content);
    }
    if (modinfo !== undefined) rows.push(modinfo);
    return unparsed.with({ rows, missing: [] });
  },
  merge(parts) {
    const best = ranked(parts);
    const isLoaded = new Set(best.filter((part) => part.view.scope === "loaded").flatMap((part) => part.value.rows.map((row) => row.name)));
    const allLoaded = best.some((part) => part.view.scope === "loaded" && part.complete);
    const rows = best.flatMap((part) => {
      // what the kernel has and lsmod does not list is built in
      if (part.view.scope !== "names" || !allLoaded) return part.value.rows;
      return part.value.rows.map((row) => (isLoaded.has(row.name) ? row : { ...row, builtin: true }));
    });
    const all = combine(rows, (row) => row.name);
    const known = new Set(all.map((row) => row.name));
    const sought = best.flatMap((part) => part.value.sought ?? []).filter((row) => !known.has(row.name));
    return {
      rows: all,
      missing: best.flatMap((part) => part.value.missing).filter((row) => !known.has(row.name)),
      ...(sought.length === 0 ? {} : { sought }),
    };
  },
  whole: (parts) => isShown(parts, "loaded") || isShown(parts, "names"),
});

const SEARCH = /^[ef]?grep(?: -[iwEFn]{1,4})?( -[iwEFn]{0,3}c[iwEFn]{0,3})? ["']?\^?([\w-]{3,64})["']?( \| wc -l)?$/;

/** The module that `lsmod | grep NAME`, `grep NAME /proc/modules` or one of these with `-c` or `| wc -l` did not find. */
function soughtInVain(argv: readonly string[], pipe: string, text: string): string | undefined {
  const asked = argv[0] === "grep" ? argv.filter((word) => !word.startsWith("/")).join(" ") : pipe;
  const [, counted, name, lines] = SEARCH.exec(asked + (argv[0] === "grep" && pipe !== "" ? ` | ${pipe}` : "")) ?? [];
  if (name === undefined) return undefined;
  return text === (counted === undefined && lines === undefined ? "" : "0") ? underscored(name) : undefined;
}

// kmod: "modprobe: FATAL: Module br_netfilter not found in directory /lib/modules/6.8.0"; BusyBox: "modprobe: module br_netfilter not found in modules.dep"
const NOT_A_MODULE = /^modprobe: (?:FATAL: )?[Mm]odule ['"]?([\w-]{1,64})['"]? not found(?: in .{1,200}|\.)?$/;

/** What else modprobe prints is about what it does. */
function readModprobe(text: string, stderr: string): z.infer<typeof Missing>[] {
  const missing: z.infer<typeof Missing>[] = [];
  for (const { line, text: content } of lines(text)) {
    const name = NOT_A_MODULE.exec(content)?.[1];
    if (name !== undefined) missing.push({ line, name: underscored(name) });
  }
  for (const message of text.trim() === "" ? stderr.split("\n", 20) : []) {
    const name = NOT_A_MODULE.exec(message.trimEnd())?.[1];
    if (name !== undefined) missing.push(Object.assign({ line: 1, name: underscored(name) }, { text: message.slice(0, 400) }));
  }
  return missing;
}

const underscored = (name: string): string => name.replaceAll("-", "_");

function loaded(content: string): Omit<Module, "line"> | undefined {
  const match = LOADED.exec(content);
  if (match === null) return undefined;
  const users = (match[3] ?? "").split(",").filter((name) => name !== "" && name !== "-" && !name.startsWith("["));
  return { name: underscored(match[1] as string), size: Number(match[2]), usedBy: users.map(underscored), builtin: false };
}

function named(content: string, format: string): Omit<Module, "line"> | undefined {
  if (format === "builtin") {
    const name = BUILTIN.exec(content)?.[1];
    return name === undefined ? undefined : { name: underscored(name), usedBy: [], builtin: true };
  }
  return WORD.test(content) ? { name: underscored(content), usedBy: [], builtin: false } : undefined;
}

/** `ls /sys/module/NAME`: it exists, and only what can be unloaded has an initstate. */
function readDirectory(text: string, argv: readonly string[], unparsed: UnparsedLines): Module[] {
  const path = argv.find((word) => word.startsWith("/sys/module/")) ?? "";
  let first: number | undefined;
  let builtin = true;
  for (const { line, text: content } of lines(text)) {
    if (
      content
        .trim()
        .split(/\s+/)
        .every((word) => WORD.test(word))
    ) {
      first ??= line;
      if (/\binitstate\b/.test(content)) builtin = false;
    } else if (!NO_DIRECTORY.test(content) && !isPromptLine(content)) unparsed.add(line, content);
  }
  return first === undefined ? [] : [{ line: first, name: underscored(path.split("/")[3] ?? ""), usedBy: [], builtin }];
}
