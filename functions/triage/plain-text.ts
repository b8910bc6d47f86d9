/** For places outside the chat, where nothing of ours escapes: without terminal escapes, control characters, and marks that turn or hide text. Line ends become blanks. */
export const oneLine = (text: string, limit: number): string => cut(text.replace(ESCAPES, "").replace(/\s+/gu, " ").replace(HIDDEN, "").trim(), limit);

const ESCAPES = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]{0,16}[A-Za-z]`, "g");
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** At most `limit` UTF-16 units, on a character, with an ellipsis. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const whole = (text.charCodeAt(limit - 2) & 0xfc00) === 0xd800 ? limit - 2 : limit - 1;
  return `${text.slice(0, whole)}…`;
}
