import { tablesOf } from "./asked-again.ts";
import type { Output } from "./capture.ts";
import { commandLine, words } from "./command.ts";
import { commandsOf } from "./command-list.ts";
import { toldApart, turnsOf } from "./command-loop.ts";
import { isTimeLine } from "./sampled.ts";
import { readersOf, sharesOf } from "./shared-text.ts";

/** `ip rule; ip route; ip -br link` on one line: people save themselves the Enter, and what was printed stands in one piece. */

/** What stands in front of a command that a pod's network namespace answered, where nothing else says so (imports/named-outputs.ts). */
const IN_POD = "nsenter -t 0 -n ";

/**
 * What a person's line of several commands printed, as an output of each of them; lines keep their numbers. The output itself if there is one command, or nobody
 * can tell which printed what.
 */
export function eachCommand(output: Output): readonly Output[] {
  if (output.argv !== undefined) {
    const line = scriptOf(output.argv);
    const parts = line === undefined ? [] : eachCommand({ ...output, argv: undefined, command: line });
    return parts.length > 1 ? parts : [output];
  }
  // a loop that was typed in a pod: so is each of its turns
  if (output.command.startsWith(`${IN_POD}for `)) {
    const inside = eachCommand({ ...output, command: output.command.slice(IN_POD.length) });
    return inside.length === 1 ? [output] : inside.map((turn) => (commandLine(turn.command).foreign ? turn : { ...turn, command: `${IN_POD}${turn.command}` }));
  }
  const turns = turnsOf(output);
  if (turns !== undefined) return turns.flatMap(eachCommand);
  const tables = tablesOf(output);
  if (tables !== undefined) return tables.flatMap(eachCommand);
  const told = toldApart(output.command);
  if (told !== undefined) return [{ ...output, command: told }];
  const commands = commandsOf(output.command);
  const silent = commands.length > 1 ? commands.filter(printsNothing) : [];
  if (silent.length > 0) {
    const rest = commands.filter((command) => !silent.includes(command));
    const done = FAILED.test(output.text) ? [] : silent.map((command) => ({ ...output, command, text: "" }));
    return rest.length === 0 ? done : [...done, ...eachCommand({ ...output, command: rest.join("; ") })];
  }
  const [command = output.command, ...others] = commands;
  if (others.length === 0) return command === output.command ? [output] : [{ ...output, command }];
  const lines = withoutTime(commands, withoutEchoes(output.command, output.text.split("\n")));
  const shares = sharesOf(output.command, lines) ?? [{ command: output.command, from: 0, to: lines.length }];
  return shares.map(({ from, to, ...share }, i) => ({
    ...output,
    ...share,
    text: `${"\n".repeat(from)}${lines.slice(from, to).join("\n")}${to < lines.length ? "\n" : ""}`,
    truncated: output.truncated && i === shares.length - 1,
  }));
}

/** The line that a person would type for the words of a command which hands several ones to a shell (`["nsenter", "-t", "1", "-n", "sh", "-c", "ip rule; ip route"]`). */
function scriptOf(argv: readonly string[]): string | undefined {
  const [program = "", option = "", script = ""] = argv.slice(-3);
  const before = argv.slice(0, -1);
  if (!/^(?:\S{0,40}\/)?(?:ba|da|a|z|k)?sh$/.test(program) || !/^-[a-z]{0,3}c$/.test(option) || !/[;&]/.test(script)) return undefined;
  const quote = script.includes("'") ? '"' : "'";
  return script.includes(quote) || !before.every((word) => /^[\w@%+=:,./-]{1,200}$/.test(word)) ? undefined : `${before.join(" ")} ${quote}${script}${quote}`;
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

/** The lines without what `date` printed in front of the others or behind them (`date; ip rule`): blank, too. */
function withoutTime(commands: readonly string[], lines: readonly string[]): readonly string[] {
  const filled = (line: string): boolean => line.trim() !== "";
  const ends = [DATE.test(commands[0] ?? "") ? lines.findIndex(filled) : -1, DATE.test(commands.at(-1) ?? "") ? lines.findLastIndex(filled) : -1];
  const times = ends.filter((at) => isTimeLine(lines[at] ?? ""));
  return times.length === 0 ? lines : lines.map((line, at) => (times.includes(at) ? "" : line));
}

const DATE = /^date(?:\s|$)/;
