import { substitutionEnd } from "./command.ts";
import { folderAfter, inFolder } from "./working-folder.ts";

/** What a line runs, one command after the other, as a person types it. */

/** Words that a shell does not run as they stand. */
const COMPOUND = /(?:^|[;&]\s{0,40})(?:(?:for|while|until|if|case|select|function)\s|[{(])/;

/** What hands a line in quotes behind it to a shell. */
const SHELL = /sh\s{1,8}-[a-z]{0,4}c\s{1,8}$|(?:^|\s)(?:ssh|watch|pdsh|clush)\s/;

/**
 * The commands of a line that runs one after the other (`a; b && c`, also inside of `sh -c '…'` and `ssh node '…'`), each as it would be typed alone. The
 * line itself if there is one, or if it is a loop or a condition.
 */
export function commandsOf(line: string): readonly string[] {
  if (!/[;&]/.test(line)) return [line];
  const quoted = inQuotes(line);
  if (quoted !== undefined) return commandsOf(quoted.inner).map((command) => `${quoted.before}${quoted.quote}${command}${quoted.quote}`);
  return COMPOUND.test(line) ? [line] : joined(whereTyped(parted(line)));
}

/** The parts of a line between the signs that end a command. */
export function parted(line: string): readonly string[] {
  const commands: string[] = [];
  let quote = "";
  let start = 0;
  for (let i = 0; i < line.length; i++) {
    const char = line[i] as string;
    if (quote !== "") {
      if (char === quote) quote = "";
    } else if (char === "'" || char === '"') quote = char;
    else if (char === "\\") i++;
    else if (char === "$" && line[i + 1] === "(") i = substitutionEnd(line, i) - 1;
    else if (char === ";" || (char === "&" && line[i + 1] === "&")) {
      commands.push(line.slice(start, i));
      if (char === "&") i++;
      start = i + 1;
    }
  }
  commands.push(line.slice(start));
  return commands.map((command) => command.trim()).filter((command) => command !== "");
}

/** Behind `cd /etc/cni/net.d` the files of that folder are meant. */
function whereTyped(commands: readonly string[]): readonly string[] {
  let folder: string | undefined;
  const all = commands.map((command) => {
    folder = folderAfter(command, folder);
    return folder === undefined ? command : inFolder(command, folder);
  });
  return all.every((command, i) => command === commands[i]) ? commands : all.filter((command) => !/^cd\s/.test(command));
}

/** `ssh node1 'a; b'`: what stands before the quotes, and in them. */
export function inQuotes(line: string): { readonly before: string; readonly quote: string; readonly inner: string } | undefined {
  const end = line.trimEnd().length - 1;
  const quote = line[end] ?? "";
  const start = quote === "'" || quote === '"' ? line.indexOf(quote) : end;
  const before = line.slice(0, start);
  const inner = line.slice(start + 1, end);
  return start === end || inner.includes(quote) || !SHELL.test(before) ? undefined : { before, quote, inner };
}

/** One value each: `cat /proc/sys/a; cat /proc/sys/b` prints what `cat /proc/sys/a /proc/sys/b` prints. */
function joined(commands: readonly string[]): readonly string[] {
  const all: string[] = [];
  for (const command of commands) {
    const [, values] = VALUES.exec(command) ?? [];
    const last = values === undefined ? undefined : all.at(-1);
    if (last !== undefined && VALUES.test(last)) all[all.length - 1] = `${last} ${values}`;
    else all.push(command);
  }
  return all;
}

const VALUES = /^(?:sudo )?cat ((?:\/(?:proc\/sys|sys)\/[\w.*{},/-]{1,200} ?){1,20})$/;

/** The words of a loop that are a pattern or another command's output: which they were is told by the headings alone. */
export const EXPANDED = /[$`*?[{]/;
