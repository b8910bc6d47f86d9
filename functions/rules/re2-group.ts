import { RE2JS } from "@bufbuild/re2";

/** RE2 with the text of a group: the library itself says only whether a text fits, not where. Time grows with pattern times text, whatever they are. */

/** Instructions of the library's program (Inst of @bufbuild/re2, whose version is exact; test/pager/re2-group.test.ts would notice others). */
const [ALT, ALT_MATCH, CAPTURE, EMPTY_WIDTH, FAIL, MATCH, NOP] = [1, 2, 3, 4, 5, 6, 7];
/** Assertions of EMPTY_WIDTH, as bits. */
const [BEGIN_LINE, END_LINE, BEGIN_TEXT, END_TEXT, WORD_BOUNDARY, NO_WORD_BOUNDARY] = [1, 2, 4, 8, 16, 32];

/** Where a way through the program is, and where its first group began and ended; -1: not yet. */
interface Way {
  readonly pc: number;
  readonly from: number;
  readonly to: number;
}

const compiled = new Map<string, RE2JS>();
/** A pattern, compiled once. Throws an Error with the reason if it is none. */
export function re2(pattern: string): RE2JS {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  const made = RE2JS.compile(pattern);
  // patterns come from one configuration; it may be edited for months
  if (compiled.size >= 1000) compiled.clear();
  compiled.set(pattern, made);
  return made;
}

/** The text of the pattern's first group where the pattern first fits, as a backtracking engine would choose it; undefined if it does not fit, or without that group. */
export function groupOf(pattern: string, text: string): string | undefined {
  const program = re2(pattern).re2().prog;
  const characters = Array.from(text);
  const rune = (at: number): number => characters[at]?.codePointAt(0) ?? -1;
  // the ways in order: the first ones are preferred
  let ways: Way[] = [];
  let found: Way | undefined;
  for (let at = 0; at <= characters.length; at++) {
    const assertions = between(rune(at - 1), rune(at));
    const ready: Way[] = [];
    const seen = new Set<number>();
    const open = found === undefined ? [...ways, { pc: program.start, from: -1, to: -1 }] : ways;
    for (const way of open) {
      const stack = [way];
      for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
        if (seen.has(next.pc)) continue;
        seen.add(next.pc);
        const { op, out, arg } = program.getInst(next.pc);
        // the preferred one on top
        if (op === ALT || op === ALT_MATCH) stack.push({ ...next, pc: arg }, { ...next, pc: out });
        else if (op === NOP) stack.push({ ...next, pc: out });
        else if (op === CAPTURE) stack.push({ pc: out, from: arg === 2 ? at : next.from, to: arg === 3 ? at : next.to });
        else if (op === EMPTY_WIDTH) {
          if ((arg & ~assertions) === 0) stack.push({ ...next, pc: out });
        } else if (op !== FAIL) ready.push(next);
      }
    }
    ways = [];
    for (const way of ready) {
      const instruction = program.getInst(way.pc);
      if (instruction.op === MATCH) {
        found = way;
        break;
      }
      if (at < characters.length && instruction.matchRune(rune(at))) ways.push({ ...way, pc: instruction.out });
    }
    if (found !== undefined && ways.length === 0) break;
  }
  return found === undefined || found.from < 0 || found.to < 0 ? undefined : characters.slice(found.from, found.to).join("");
}

/** What holds between two characters; -1: the text's beginning or end. */
function between(before: number, after: number): number {
  const begin = before < 0 ? BEGIN_TEXT | BEGIN_LINE : before === 10 ? BEGIN_LINE : 0;
  const end = after < 0 ? END_TEXT | END_LINE : after === 10 ? END_LINE : 0;
  return begin | end | (isWord(before) === isWord(after) ? NO_WORD_BOUNDARY : WORD_BOUNDARY);
}

const isWord = (rune: number): boolean => rune >= 0 && /^\w$/.test(String.fromCodePoint(rune));
