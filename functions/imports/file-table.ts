import { decodeText, type Head } from "../transports/archive.ts";
import { type DraftOutput, isKnown, onlyLines } from "./bundle.ts";

/** Collectors whose bundles name files, not commands: a table of theirs says which command wrote which file. */

/** The path of a file, and the command; `$1` is what the first group holds. */
export type FileTable = readonly (readonly [RegExp, string])[];

/** The command that wrote a file, as the first row that fits has it. */
export function commandIn(table: FileTable, path: string): string | undefined {
  for (const [pattern, command] of table) {
    const match = pattern.exec(path);
    if (match !== null) return command.replace("$1", match[1] ?? "");
  }
  return undefined;
}

/** The outputs among some files. `root`: the folder that the table's paths begin in, "" or with `/` at its end. */
export function outputsIn(table: FileTable, files: ReadonlyMap<string, Head>, root: string): DraftOutput[] {
  return [...files].flatMap(([name, head]) => {
    const command = name.startsWith(root) ? commandIn(table, name.slice(root.length)) : undefined;
    return command === undefined || !isKnown(command) ? [] : [{ command, file: name, text: decodeText(head.bytes), truncated: head.truncated }];
  });
}

/**
 * Two commands that wrote one file, one after the other: the second begins with the first line that fits. Each keeps the lines that it printed, at their place.
 */
export function inTwo(output: DraftOutput, second: string, begins: RegExp): DraftOutput[] {
  const lines = output.text.split("\n");
  const from = lines.findIndex((line) => begins.test(line));
  if (from === -1) return [output];
  return [
    { ...output, text: onlyLines(lines, 1, from), truncated: false },
    { ...output, command: second, text: onlyLines(lines, from + 1, lines.length) },
  ];
}

/** The folder that holds the file, "" or with `/` at its end: of the first name that ends with it, at most three folders deep. */
export function rootAbove(names: readonly string[], file: string): string | undefined {
  return names.find((name) => (name === file || name.endsWith(`/${file}`)) && name.split("/").length - file.split("/").length <= 3)?.slice(0, -file.length);
}

/** The first line of a file, if it holds one. */
export function firstLine(head: Head | undefined): string | undefined {
  return head === undefined ? undefined : decodeText(head.bytes).trim().split("\n", 1)[0]?.trim().slice(0, 253) || undefined;
}
