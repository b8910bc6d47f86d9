import type { Output } from "./capture.ts";
import { commandLine, words } from "./command.ts";
import { commandsOf, EXPANDED } from "./command-list.ts";
import { isTimeLine } from "./sampled.ts";

/** A command that is asked again and again on one line: its first and its last answer are two samples. */

/** `while sleep 5; do ss -ltn; done`, `for i in 1 2 3; do date; netstat -ltn; sleep 1; done` */
const AGAIN = /^\s{0,8}(?:while|until|for)\s((?:[^$`]|\$\(seq(?: \d{1,4}){1,2}\)){1,200}?)[;\n]\s{0,8}do\s{1,8}([^$`]{1,500}?)\s{0,8}[;\n]\s{0,8}done\s{0,8}$/s;

const WAITS: ReadonlySet<string | undefined> = new Set(["sleep", "date", "echo", "clear", "true", ":"]);

/** The first line of a table of sockets: a table has one. */
const TABLE = /^(?:(?:Netid +)?State +Recv-Q +Send-Q |Active Internet connections )/;

/** What lists rules, with their counters. */
const RULES = /^(?:ip6?tables(?:-nft|-legacy)?(?:-save)?|nft)$/;

/** The one command of a loop that asks for the sockets, or for rules, again and again, or of a line that asks for the same rules more than once. */
export function listedAgain(line: string): string | undefined {
  const typed = askedAgain(line);
  if (typed.length > 1) return typed[0];
  const [command, ...others] = commandsOf(AGAIN.exec(line)?.[2] ?? "").filter((one) => !WAITS.has(words(one)[0]));
  if (command === undefined || others.length > 0) return undefined;
  return /^(?:sudo )?(?:ss|netstat) [^|]*$/.test(command) || RULES.test(commandLine(command).argv[0] ?? "") ? command : undefined;
}

/** `iptables -nvxL FORWARD 1; sleep 15; iptables -nvxL FORWARD 1`: the command, as often as it was typed. Empty of a line that asks for something else, too, or once. */
function askedAgain(line: string): readonly string[] {
  if (!/[;&]/.test(line)) return [];
  const typed = commandsOf(line).filter((one) => !WAITS.has(words(one)[0]));
  const same = typed.length > 1 && typed.every((one) => one === typed[0]);
  return same && RULES.test(commandLine(typed[0] as string).argv[0] ?? "") ? typed : [];
}

/** What such a loop printed: the first answer and the last, as two samples. Undefined if there is one, or if nobody can tell where each begins. */
export function tablesOf(output: Output): readonly Output[] | undefined {
  const command = listedAgain(output.command);
  if (command === undefined) return undefined;
  const lines = output.text.split("\n");
  const tables = lines.flatMap((line, at) => (TABLE.test(line) ? [at] : []));
  const isAnswer = tables.length > 0 ? isRow : isRuleLine;
  const starts = tables.length > 0 ? tables : answersOf(lines, output.command);
  const [first, second] = starts;
  const last = starts.at(-1);
  if (first === undefined || second === undefined || last === undefined) return undefined;
  // what stands between two answers is the time, or what an `echo` printed
  const part = (from: number, to: number) => `${"\n".repeat(from)}${lines.slice(from, to).filter(isAnswer).join("\n")}\n`;
  // it is left with Ctrl-C, which may cut the last one
  const cut = output.truncated || lines.slice(last).filter(isAnswer).length < lines.slice(first, second).filter(isAnswer).length;
  return [
    { ...output, command, text: part(first, second), truncated: false, sample: 1 },
    { ...output, command, text: part(last, lines.length), truncated: cut, sample: 2 },
  ];
}

/** Where the answers of a loop over rules begin: each with the same line, but for its counters, and all are as long. What a search left may begin so twice, so that the number of turns must be known. */
function answersOf(lines: readonly string[], loop: string): readonly number[] {
  const rows = lines.flatMap((line, at) => (isRuleLine(line) ? [{ at, shape: line.trim().replace(/\d+[KMGT]?/g, "#") }] : []));
  const begins = rows.flatMap(({ shape }, i) => (shape === rows[0]?.shape ? [i] : []));
  const lengths = begins.map((from, i) => (begins[i + 1] ?? rows.length) - from);
  const turns = askedAgain(loop).length || turnsAsked(AGAIN.exec(loop)?.[1] ?? "");
  const known = turns === begins.length || (turns === undefined && !/\|\s*\w/.test(loop));
  const alike = lengths.every((length, i) => length === lengths[0] || (i === lengths.length - 1 && turns === undefined && length < (lengths[0] as number)));
  return known && alike ? begins.map((i) => (rows[i] as { at: number }).at) : [];
}

/** How often a loop runs: `i in 1 2 3`, `i in {1..3}`, `i in $(seq 3)`, `i in $(seq 1 3)`. */
function turnsAsked(head: string): number | undefined {
  const among = /^\s{0,8}\w{1,40}\s{1,8}in\s{1,8}(\S.*)$/.exec(head)?.[1]?.trim();
  if (among === undefined) return undefined;
  const range = /^(?:\{(\d{1,4})\.\.(\d{1,4})\}|\$\(seq (?:(\d{1,4}) )?(\d{1,4})\))$/.exec(among);
  if (range !== null) return Number(range[2] ?? range[4]) - Number(range[1] ?? range[3] ?? 1) + 1;
  return EXPANDED.test(among) ? undefined : words(among).length;
}

const isRow = (line: string): boolean => TABLE.test(line) || /:(?:\d{1,5}|\*|[a-z][\w-]{1,30})\s/.test(line) || /^(?:Proto|\s)/.test(line);

/** Not the time, an empty line, a line drawn between two answers or the end of the loop. */
const isRuleLine = (line: string): boolean => !isTimeLine(line) && !/^\s{0,40}(?:[-=*#_+~]{0,200}|\^C)\s{0,40}$/.test(line);
