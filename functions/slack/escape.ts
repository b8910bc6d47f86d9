/** Nothing a node, a page or a person wrote reaches a message unescaped. */

const ESCAPE = String.fromCharCode(27);
const ANSI = new RegExp(`${ESCAPE}\\[[0-9;?]{0,16}[A-Za-z]`, "g");
// \p{Cc}: control characters; \p{Cf}: direction overrides and isolates, which make text read differently from what it is, and zero-width marks;
// \p{Zl} and \p{Zp}: line ends in disguise
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Takes out what cannot be seen: terminal escapes, control characters, direction overrides. For leaves that Slack shows literally. */
export function plain(text: string): string {
  return text.replace(ANSI, "").replace(HIDDEN, "");
}

/** For Slack's mrkdwn: no mention, link, code span or emphasis can be opened from inside. */
export function mrkdwn(text: string): string {
  return plain(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll("`", "\u02cb")
    .replaceAll(/[*_~]/g, (mark) => LOOKALIKE[mark] as string);
}

// a code span inside mrkdwn shows these as they are, and emphasis cannot start with them
const LOOKALIKE: Record<string, string> = { "*": "\u2217", _: "_", "~": "\u223c" };

/** A mention of a person, or just the id where it is not one. */
export function user(id: string): string {
  return /^[UW][A-Z0-9_]{2,20}$/.test(id) ? `<@${id}>` : /^S[A-Z0-9_]{2,20}$/.test(id) ? `<!subteam^${id}>` : mrkdwn(id);
}

/** Cuts a text to at most `limit` UTF-16 units, on a character, with an ellipsis. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const end = limit - 1;
  const whole = (text.charCodeAt(end - 1) & 0xfc00) === 0xd800 ? end - 1 : end;
  return `${text.slice(0, whole)}…`;
}
