import type { UnparsedLine } from "./fact.ts";

/** No window is narrower, and nobody wraps shorter lines. */
export const NARROWEST = 60;
/** Wrapping is a person's doing, who does not paste more than this. */
const LONGEST = 300_000;

/** As many columns as windows have: the line was cut there, in the middle of a word perhaps. Else it was wrapped at a blank. */
export const isWindowWidth = (columns: number): boolean => columns === 132 || (columns >= 80 && columns % 10 === 0);

/**
 * Ways to put lines together again that a window or a mail program wrapped, given the lines that could not be read: what stands there may belong to the line
 * before, or to the one behind. Lines keep their numbers (what was the second half is left blank). Nothing if no line is long enough to have been wrapped.
 *
 * Several ways, because it does not show whether a line that fills the window ends there, or whether half a line was readable. At most four, each linear.
 */
export function unwrapped(text: string, unparsed: readonly UnparsedLine[]): string[] {
  if (unparsed.length === 0 || text.length > LONGEST) return [];
  const lines = text.replaceAll("\r", "").split("\n");
  const width = lines.reduce((most, line) => Math.max(most, line.length), 0);
  if (width < NARROWEST) return [];
  // what wraps at blanks leaves a word alone that is longer than a line
  const hasBlank = (line: string): boolean => /\S[ \t]{1,200}\S/.test(line);
  const atBlanks = lines.reduce((most, line) => (hasBlank(line) ? Math.max(most, line.length) : most), 0);
  const unread = new Set(unparsed.map(({ line }) => line - 1));
  const before = (at: number): number => (lines[at - 1] as string).length;
  const full = (at: number): boolean => before(at) === width;
  // at a blank: the next word had no room
  const noRoom = (at: number, least = NARROWEST): boolean =>
    before(at) >= least && !/^\s{0,40}[{}]\s{0,40}$/.test(lines[at] as string) && before(at) + 1 + firstWord(lines[at] as string) > atBlanks;
  // what was cut ends with the rest of a line; where all lines are of one length, they are those of a table
  const isRest = (line: string): boolean => line.length < atBlanks || !hasBlank(line);
  const cut = (goesOn: (at: number) => boolean, ended = (line: string): boolean => line.length < width): ((at: number) => boolean) => {
    const ends: boolean[] = [];
    for (let at = lines.length - 1; at > 0; at--) {
      ends[at] = (lines[at + 1] ?? "").trim() !== "" && goesOn(at + 1) ? (ends[at + 1] as boolean) : ended(lines[at] as string);
    }
    return (at) => goesOn(at) && ends[at] === true;
  };
  const texts = [
    joined(lines, "", cut(full)),
    joined(
      lines,
      "",
      cut((at) => full(at) && unread.has(at)),
    ),
    joined(lines, " ", cut(noRoom, isRest)),
    joined(
      lines,
      " ",
      // a long word leaves much room
      cut((at) => noRoom(at, unread.has(at) ? 1 : NARROWEST) && (unread.has(at) || unread.has(at - 1)), isRest),
    ),
  ];
  return [...new Set(texts.filter((way) => way !== undefined))];
}

const firstWord = (line: string): number => /^\s*(\S*)/.exec(line)?.[1]?.length ?? 0;

/** The lines with each of which `goesOn` says that it is the rest of the one before put behind that. Undefined if there are none. */
function joined(lines: readonly string[], glue: "" | " ", goesOn: (at: number) => boolean): string | undefined {
  const result: string[] = [];
  let head = 0;
  let changed = false;
  for (const [at, line] of lines.entries()) {
    if (at === 0 || line.trim() === "" || lines[at - 1] === "" || !goesOn(at)) {
      head = at;
      result.push(line);
    } else {
      result[head] += glue === "" ? line : ` ${line.trimStart()}`;
      result.push("");
      changed = true;
    }
  }
  return changed ? result.join("\n") : undefined;
}
