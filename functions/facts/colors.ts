const ESCAPE = String.fromCharCode(27);
const BELL = String.fromCharCode(7);
/** Colours and cursor movements, and the window's title that a prompt sets. */
const SEQUENCES = new RegExp(`${ESCAPE}(?:\\[[0-9;?]{0,16}[A-Za-z]|\\][^${ESCAPE}${BELL}\\n]{0,300}(?:${BELL}|${ESCAPE}\\\\))`, "g");
/** What is left of a colour where the escape character was lost, as in most issues: `[36mINFO[0m[0000] …`. */
const REMAINS = /\[(?:\d{1,2}(?:;\d{1,3}){0,4})?m/g;

/** The text without what a terminal does with colours: a recorded session, `dmesg --color=always`, `ip -c addr`. Pure, linear. */
export function withoutColors(text: string): string {
  const shown = text.includes(ESCAPE) ? text.replace(SEQUENCES, "") : text;
  if (!shown.includes("[0m")) return shown;
  // a line that sets no colour back sets none: `rate(x[5m])`
  return shown
    .split("\n")
    .map((line) => (line.includes("[0m") ? line.replace(REMAINS, "") : line))
    .join("\n");
}
