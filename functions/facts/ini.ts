import { z } from "zod";
import { isPromptLine, operands } from "./command.ts";
import { answeredByDefault, type Input, lines, type UnparsedLines } from "./fact.ts";

/** One `Key=value` of an ini file (systemd, NetworkManager), with the file and section it stands in. */
export const IniSetting = z.object({
  line: z.int(),
  /** "" if the output does not tell. */
  file: z.string(),
  section: z.string(),
  key: z.string(),
  value: z.string(),
});
export type IniSetting = z.infer<typeof IniSetting>;

// grep -H puts the file before each line, and -n its number; no path of ours has a colon or a blank.
const PREFIX = /^((?:\/[\w.@+-]{1,80}){1,12}):(?:\d{1,6}:)?/;
const SECTION = /^\[([^\]]{1,80})\]$/;
const SETTING = /^([A-Za-z][A-Za-z0-9_.-]{0,79}[+-]?)\s{0,8}=\s{0,8}(.*)$/;
// systemd-analyze cat-config writes the path of each file in front of it.
const CAT_CONFIG = /^# (\/[\w./@+-]{1,200}\.(?:conf|link|network))$/;

/**
 * Settings of ini files as `grep -rsH ^ …` (file before each line), `cat FILE` (`file` says which) or `systemd-analyze cat-config` print them.
 * Comments and blank lines are skipped; other lines go to `unparsed`.
 */
export function iniSettings(text: string, file: string, unparsed: UnparsedLines): { settings: IniSetting[]; files: { line: number; file: string }[] } {
  const settings: IniSetting[] = [];
  const files = new Map<string, { line: number; file: string }>();
  let section = "";
  let current = file;
  for (const { line, text: raw } of lines(text)) {
    const prefix = PREFIX.exec(raw);
    const content = (prefix === null ? raw : raw.slice(prefix[0].length)).trim();
    const named = prefix?.[1] ?? CAT_CONFIG.exec(content)?.[1];
    if (named !== undefined && named !== current) {
      current = named;
      section = "";
    }
    if (current !== "" && !files.has(current)) files.set(current, { line, file: current });
    if (content === "" || content.startsWith("#") || content.startsWith(";")) continue;
    const heading = SECTION.exec(content);
    const setting = heading === null ? SETTING.exec(content) : null;
    if (heading !== null) section = heading[1] as string;
    else if (setting !== null) settings.push({ line, file: current, section, key: setting[1] as string, value: (setting[2] as string).trim() });
    else if (!isPromptLine(raw)) unparsed.add(line, raw);
  }
  return { settings, files: [...files.values()] };
}

/** True for `grep -rs… ^ FOLDER…` (with or without --include) over these folders (or parts of them), without a pattern that leaves lines out. */
export function grepsWholeFiles(argv: readonly string[], folder: RegExp): boolean {
  const words = operands(argv);
  return (
    argv[0] === "grep" && (words[0] === "" || words[0] === "^" || words[0] === ".") && words.length > 1 && words.slice(1).every((word) => folder.test(word))
  );
}

/** The files that `cat` reads if all of them are of these; undefined otherwise. */
export function catsFiles(argv: readonly string[], folder: RegExp): string[] | undefined {
  const words = operands(argv);
  return argv[0] === "cat" && words.length > 0 && words.every((word) => folder.test(word)) ? words : undefined;
}

/** grep says 1 for "no line" and 2 for "a folder is not there"; both are answers if it complains of nothing else (-s keeps it quiet about missing files). */
export const grepAnswered = (output: Pick<Input, "exitCode" | "text" | "stderr">): boolean =>
  answeredByDefault(output) || ((output.exitCode ?? 0) <= 2 && output.stderr.trim() === "");
