import type { Output } from "./capture.ts";
import { type CommandLine, commandLine, words } from "./command.ts";
import { type AnyFact, MAX_UNPARSED, type Parsed, type View } from "./fact.ts";
import { facts } from "./index.ts";
import { unadorned } from "./paste.ts";

/** `ip rule; ip route; ip -br link` on one line: people save themselves the Enter, and what was printed stands in one piece. */

/** Words that a shell does not run as they stand. */
const COMPOUND = /(?:^|[;&]\s{0,40})(?:(?:for|while|until|if|case|select|function)\s|[{(])/;
/** What hands a line in quotes behind it to a shell. */
const SHELL = /sh\s{1,8}-[a-z]{0,4}c\s{1,8}$|(?:^|\s)(?:ssh|watch|pdsh|clush)\s/;
/** More are not told apart: each one more doubles the ways to divide the lines. */
const MAX_COMMANDS = 6;
/** Longer outputs are not divided, for the same reason; nobody pastes them. */
const MAX_LINES = 10_000;

/**
 * The commands of a line that runs one after the other (`a; b && c`, also inside of `sh -c '…'` and `ssh node '…'`), each as it would be typed alone. The
 * line itself if there is one, or if it is a loop or a condition.
 */
export function commandsOf(line: string): readonly string[] {
  if (!/[;&]/.test(line)) return [line];
  const quoted = inQuotes(line);
  if (quoted !== undefined) return commandsOf(quoted.inner).map((command) => `${quoted.before}${quoted.quote}${command}${quoted.quote}`);
  if (COMPOUND.test(line)) return [line];
  const commands: string[] = [];
  let quote = "";
  let start = 0;
  for (let i = 0; i < line.length; i++) {
    const char = line[i] as string;
    if (quote !== "") {
      if (char === quote) quote = "";
    } else if (char === "'" || char === '"') quote = char;
    else if (char === "\\") i++;
    else if (char === ";" || (char === "&" && line[i + 1] === "&")) {
      commands.push(line.slice(start, i));
      if (char === "&") i++;
      start = i + 1;
    }
  }
  commands.push(line.slice(start));
  return joined(commands.map((command) => command.trim()).filter((command) => command !== ""));
}

/** `ssh node1 'a; b'`: what stands before the quotes, and in them. */
function inQuotes(line: string): { readonly before: string; readonly quote: string; readonly inner: string } | undefined {
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

/**
 * What a person's line of several commands printed, as an output of each of them; lines keep their numbers. The output itself if there is one command, or nobody
 * can tell which printed what.
 */
export function eachCommand(output: Output): readonly Output[] {
  if (output.argv !== undefined) return [output];
  const commands = commandsOf(output.command);
  const silent = commands.length > 1 ? commands.filter(printsNothing) : [];
  if (silent.length > 0) {
    const rest = commands.filter((command) => !silent.includes(command));
    const done = FAILED.test(output.text) ? [] : silent.map((command) => ({ ...output, command, text: "" }));
    return rest.length === 0 ? done : [...done, ...eachCommand({ ...output, command: rest.join("; ") })];
  }
  const [command = output.command, ...others] = commands;
  if (others.length === 0) return command === output.command ? [output] : [{ ...output, command }];
  const lines = withoutEchoes(output.command, output.text.split("\n"));
  const shares = sharesOf(output.command, lines) ?? [{ command: output.command, from: 0, to: lines.length }];
  return shares.map(({ from, to, ...share }, i) => ({
    ...output,
    ...share,
    text: `${"\n".repeat(from)}${lines.slice(from, to).join("\n")}${to < lines.length ? "\n" : ""}`,
    truncated: output.truncated && i === shares.length - 1,
  }));
}

/** True of what only restarts something: what stands below it was printed by the others. */
export const printsNothing = (command: string): boolean => {
  const readers = readersOf(command);
  return readers.length > 0 && readers.every(({ fact }) => fact.id === "manual-restart");
};
/** Except what systemctl says of a failure. */
const FAILED = /^(?:Failed to (?:re|try-re|force-re)|Job for \S{1,200} failed|Unit \S{1,200} not (?:found|loaded))/m;

/** The lines without those that an `echo` of the command line printed (`echo; echo --- rules ---; ip rule`): blank, so that the others keep their numbers. */
function withoutEchoes(line: string, lines: readonly string[]): readonly string[] {
  const echoes = commandsOf(line)
    .map((command) => words(command))
    .filter(([program, ...rest]) => program === "echo" && rest.every((word) => !/[$`|>]/.test(word)));
  const printed = new Set(echoes.map(([, ...rest]) => rest.join(" ")));
  return printed.size === 0 ? lines : lines.map((text) => (printed.has(text.trimEnd()) ? "" : text));
}

interface Reader {
  readonly fact: AnyFact;
  readonly view: View;
  readonly line: CommandLine;
}

/** The facts that read what a command prints on the node. */
export function readersOf(command: string): Reader[] {
  const line = commandLine(command);
  if (line.argv.length === 0 || line.foreign) return [];
  return facts.flatMap((fact) => {
    const view = fact.recognize(line.argv);
    return view === undefined ? [] : [{ fact, view, line }];
  });
}

/** What one command of the line printed: the lines `from`…`to` (0-based, `to` exclusive). */
interface Share {
  readonly command: string;
  readonly from: number;
  readonly to: number;
}

/**
 * Divides what a line of several commands printed among those of them that netcheck reads, so that the fewest lines remain which nobody can read. What netcheck
 * does not know prints lines that are unreadable to all of them.
 *
 * Undefined, and the text is the first one's as before, where that cannot be told: one command, or a first one that can read every line (a log, `iptables -S;
 * iptables -t nat -S`). A command to which no line falls may have printed nothing, or another one took its lines: it gets no share.
 */
function sharesOf(line: string, lines: readonly string[]): readonly Share[] | undefined {
  const known = commandsOf(line)
    .map((command) => ({ command, readers: readersOf(command) }))
    .filter(({ readers }) => readers.length > 0);
  if (known.length < 2 || known.length > MAX_COMMANDS || lines.length > MAX_LINES) return undefined;
  const shares = divided(known, lines, 0).shares.filter(({ from, to }) => lines.slice(from, to).some((text) => text.trim() !== ""));
  return shares.length < 2 && (shares[0]?.command ?? known[0]?.command) === known[0]?.command ? undefined : shares;
}

interface Known {
  readonly command: string;
  readonly readers: readonly Reader[];
}

function divided(known: readonly Known[], lines: readonly string[], from: number): { readonly shares: readonly Share[]; readonly unread: number } {
  const [first, ...others] = known as [Known, ...Known[]];
  const all = unreadBy(first, lines, from);
  const best = { shares: [{ command: first.command, from, to: lines.length }] as readonly Share[], unread: all.count };
  if (others.length === 0) return best;
  return boundaries(all.lines, lines, from).reduce((least, to) => {
    const rest = divided(others, lines, to);
    const unread = all.lines.filter((at) => at < to).length + rest.unread;
    return unread < least.unread ? { shares: [{ command: first.command, from, to }, ...rest.shares], unread } : least;
  }, best);
}

/** Where the next command's lines may begin: behind the last line that the first one can read, or with the first that it cannot. */
function boundaries(unread: readonly number[], lines: readonly string[], from: number): number[] {
  const [firstUnread] = unread;
  if (firstUnread === undefined) return [];
  const set = new Set(unread);
  let behind = lines.length;
  while (behind > from && (set.has(behind - 1) || (lines[behind - 1] ?? "").trim() === "")) behind--;
  return unread.length >= MAX_UNPARSED || behind === firstUnread ? [firstUnread] : [behind, firstUnread];
}

/** No command prints it. A fact that leaves it aside in silence looks for one message among lines that are not its own (`absent-device`). */
const NONSENSE = "?~ ~? ~~ ??";

const parsedBy = ({ fact, view, line }: Reader, text: string): Parsed<unknown> =>
  fact.parse({ text, argv: line.argv, view, sample: 1, exitCode: undefined, stderr: "", sorted: line.sorted });

/** The lines from `from` on that no fact of the command can read, at most {@link MAX_UNPARSED} of them; of its facts the one that reads most. */
function unreadBy({ readers }: Known, lines: readonly string[], from: number): { readonly lines: readonly number[]; readonly count: number } {
  const text = unadorned(lines.slice(from).join("\n"));
  const choosy = readers.filter((reader) => parsedBy(reader, NONSENSE).unparsedCount > 0);
  const parsed = (choosy.length > 0 ? choosy : readers).map((reader) => parsedBy(reader, text));
  const best = parsed.reduce((least, one) => (one.unparsedCount < least.unparsedCount ? one : least));
  return { lines: best.unparsed.map(({ line }) => from + line - 1), count: best.unparsedCount };
}
