import { isPromptLine } from "../facts/command.ts";
import { isWindowWidth } from "../facts/unwrap.ts";
import { signOf } from "./unnamed-outputs.ts";

/** Lines that a window cut at its edge, as what is copied out of a multiplexer or a recording has them: each goes on at the beginning of the next line. */

/** No window is wider. */
const WIDEST = 500;
/** So many lines must fill the window. */
const FEWEST = 2;
/** No line of an output goes on for longer; a table of which every row was cut does. */
const MOST_ROWS = 60;

/**
 * The lines of a text in one piece, each at the place of its beginning, where a window cut them; what was the rest is left blank. A line that fills the window may
 * end there all the same: then the next one begins as other lines do. Pure, linear.
 */
export function withoutWindow(lines: readonly string[]): readonly string[] {
  const width = lines.reduce((most, line) => Math.max(most, line.length), 0);
  if (!isWindowWidth(width) || width > WIDEST) return lines;
  const isFull = (i: number): boolean => lines[i]?.length === width;
  // prompts.ts puts commands together
  const full = lines.flatMap((line, i) => (isFull(i) && !isPromptLine(line) ? [i] : []));
  // a pager marks what it cut off
  if (full.length < FEWEST || full.filter((i) => /[>…+$]$/.test(lines[i] ?? "")).length > full.length / 2) return lines;
  const starts = new Set(lines.flatMap((line, i) => (isFull(i - 1) ? [] : [beginning(line)])));
  const goesOn = (i: number): boolean => isFull(i - 1) && !isNew(lines[i] ?? "", lines[i - 1] ?? "", starts);
  const rest = full.filter((i) => goesOn(i + 1));
  if (rest.length < FEWEST || rest.length < full.length * 0.9 || longest(rest) > MOST_ROWS) return lines;
  const whole: string[] = [];
  let head = 0;
  for (const [i, line] of lines.entries()) {
    if (i > 0 && goesOn(i)) {
      whole[head] += line;
      whole.push("");
    } else {
      head = i;
      whole.push(line);
    }
  }
  return whole;
}

/**
 * True for a prompt, for what stands behind one, for how an output begins, and for a line that begins as others do, as the
 * one above it does, set in, or in the same columns: the one above fills the window and ends there.
 */
const isNew = (line: string, above: string, starts: ReadonlySet<string>): boolean =>
  /^(?:\s{2}|\s*$)/.test(line) ||
  isPromptLine(line) ||
  isPromptLine(above) ||
  signOf(line) !== undefined ||
  starts.has(beginning(line)) ||
  beginning(line) === beginning(above) ||
  inColumns(line, above);

/** The blanks and the word that a line begins with, without what changes from one to the next: numbers, addresses. */
const beginning = (line: string): string =>
  (/^\s*\S*/.exec(line.slice(0, 80))?.[0] ?? "").replaceAll(/[\da-f]{2}(?::[\da-f]{2}){5}/g, "0").replaceAll(/\d+/g, "0");

/** True for two rows of a table: where two blanks stand in the one, blanks stand in the other as well. */
function inColumns(line: string, above: string): boolean {
  const gaps = [...line.matchAll(/ {2,200}(?=\S)/g)].map(({ index, 0: blanks }) => index + blanks.length);
  return gaps.length >= 2 && gaps.filter((column) => /^ \S$/.test(above.slice(column - 1, column + 1))).length > gaps.length / 2;
}

/** The length of the longest run of numbers that follow on one another. */
function longest(numbers: readonly number[]): number {
  let [most, run] = [0, 0];
  for (const [i, number] of numbers.entries()) {
    run = numbers[i - 1] === number - 1 ? run + 1 : 1;
    most = Math.max(most, run);
  }
  return most;
}
