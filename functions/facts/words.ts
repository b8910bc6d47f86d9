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

/** What stands behind the first `count` words of a text, blanks in front of it taken off. */
export function behindWords(text: string, count: number): string {
  let at = 0;
  for (let word = 0; ; word++) {
    while (at < text.length && text.charCodeAt(at) <= SPACE) at++;
    if (word === count) return text.slice(at);
    while (at < text.length && text.charCodeAt(at) > SPACE) at++;
    if (at === text.length) return "";
  }
}
