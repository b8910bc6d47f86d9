import { RE2JS } from "re2js";

/** Regular expressions that somebody configured: RE2, whose time grows with the text's length, whatever the pattern is. */

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

/**
 * What RE2 and JavaScript do not take for the same: other escapes, flags, lookaround and names, counted groups, which RE2 limits, classes that name others or begin with "]", large numbers, other letters
 * than ASCII's.
 */
const DIFFERS = /[^\x20-\x7e]|\\(?![dDwWsS.^$*+?()[\]{}|/\\-])|\(\?(?!:)|\)\{|\[:|\[\^?\]|-\\[dDwWsS]|\d{4}/;

/**
 * What is wrong with a pattern; undefined if nothing. Compiling the patterns of all rules takes a sixth of the time in which they are loaded, and of most of them it is enough to know that
 * they could be: JavaScript tells that in a hundredth of the time.
 */
export function patternProblem(pattern: string): string | undefined {
  if (!DIFFERS.test(pattern)) {
    try {
      new RegExp(pattern);
      return undefined;
    } catch {
      // RE2 may take what JavaScript does not
    }
  }
  try {
    re2(pattern);
    return undefined;
  } catch (error) {
    return String(error);
  }
}

/** The text of the pattern's first group where the pattern first fits, as a backtracking engine would choose it; undefined if it does not fit, or without that group. */
export function groupOf(pattern: string, text: string): string | undefined {
  const matcher = re2(pattern).matcher(text);
  return matcher.find() ? (matcher.group(1) ?? undefined) : undefined;
}
