import type { Output } from "./capture.ts";
import { isPromptLine } from "./command.ts";
import { unadorned } from "./paste.ts";
import { withoutLineNumbers, withoutSeparators } from "./pipe.ts";

/** What a command printed, without what people, scripts and terminals put around it and into it. A prompt with the command above it stays. Pure, linear. */
export function bareText({ text, command, truncated }: Output, pipe: string, argv: readonly string[]): string {
  const given = withEcho(truncated ? withoutCutLine(text) : text, command);
  return withoutFrame(withoutLineNumbers(withoutSeparators(unadorned(given), pipe, argv), pipe, argv), argv);
}

/** `text` whose first line is the command itself, behind a prompt of any form or none, with a prompt that every fact knows: people copy the line along. */
function withEcho(text: string, command: string): string {
  const start = text.search(/\S/);
  const end = text.indexOf("\n", start);
  if (start === -1 || start > 200 || end === -1 || end - start > command.length + 200) return text;
  const first = text.slice(start, end).trimEnd();
  const at = first.lastIndexOf(command);
  if (at === -1 || isPromptLine(first)) return text;
  const [before, behind] = [first.slice(0, at), first.slice(at + command.length)];
  // scripts write it over what it printed, and `set -x` with a plus
  const echo = (behind === "" && /^(?:.{0,200}[#$%>❯➜]\s{0,8})?$/.test(before)) || (BEFORE_TITLE.test(before) && BEHIND_TITLE.test(behind));
  return echo ? `${text.slice(0, start)}$ ${command}${text.slice(end)}` : text;
}

/** `text` without what a script wrote around it: the time at which it ran the command on the first line, the code with which that ended on the last. */
function withoutFrame(text: string, argv: readonly string[]): string {
  const end = argv[0] === "date" || argv[0] === "timedatectl" ? -1 : text.indexOf("\n");
  const bare = end > 0 && end < 60 && DATE.test(text.slice(0, end)) ? text.slice(end) : text;
  const last = bare.trimEnd().lastIndexOf("\n");
  return last > 0 && bare.length - last < 60 && EXIT_CODE.test(bare.slice(last + 1).trim()) ? bare.slice(0, last + 1) : bare;
}
/** kubectl's and scripts': `command terminated with exit code 1`, `[exit 0]`, `exit code: 0`, `rc=0`. */
const EXIT_CODE = /^[[(]?(?:command terminated with exit code|exit(?:ed)?(?:[ _-]?(?:code|status))?|rc|return code)[:= ]{1,2}\d{1,3}[\])]?$/i;
/** `Tue Nov 26 14:21:40 UTC 2024`, `Tue 26 Nov 2024 02:21:40 PM CET`, `2024-11-26T14:21:40+00:00`, alone on its line. */
const DATE =
  /^(?:[A-Z][a-z]{2},? (?:[A-Z][a-z]{2} {1,2}\d{1,2}|\d{1,2} [A-Z][a-z]{2} \d{4}) \d{2}:\d{2}:\d{2}(?: [AP]M)?(?: [A-Z]{3,5}| [+-]\d{2,4})?(?: \d{4})?|\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[+-]\d{2}:?\d{2}|Z| UTC)?)\r?$/;

/** `### ip route ###`, `==== ip route ====`, `+ ip route`, `Command: ip route`. */
const BEFORE_TITLE = /^[=#*+~-]{0,80}[ \t]{0,8}(?:(?:command|cmd|output of|running|executing):?[ \t]{1,4})?["'`]?$/i;
const BEHIND_TITLE = /^["'`]?:?[ \t]{0,8}[=#*+~-]{0,80}$/;

/** Of a truncated output the last line may be half of one: a number in it is then another number. JSON, of which one line may be all, knows by itself. */
function withoutCutLine(text: string): string {
  return JSON_START.test(text) ? text : text.slice(0, text.lastIndexOf("\n") + 1);
}
/** Not `[  12.3] eth0: …` of the kernel's log, nor `[3:180] -A …` of iptables-save -c. */
const JSON_START = /^\s{0,40}(?:\{\s{0,40}(?:["}]|$)|\[\s{0,40}(?:["{[\]]|$))/;
