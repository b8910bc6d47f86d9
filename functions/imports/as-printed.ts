import { withoutColors } from "../facts/colors.ts";
import { isPromptLine, withoutPrompt } from "../facts/command.ts";
import { actionSteps } from "./action-steps.ts";
import { isCommand } from "./bundle.ts";
import { blocksOf, PRE } from "./code-blocks.ts";
import { namedOutputs } from "./named-outputs.ts";
import { plainPrompts } from "./prompts.ts";
import { withoutWindow } from "./window.ts";
import { outOfYaml } from "./yaml-outputs.ts";

/**
 * A text as its programs printed it, without what recorded, carried or showed it: the keys that somebody pressed in a recorded session (`script`), the signs that
 * editors and chats put in the place of plain ones, the names of signs in HTML, and what a log collector, a CI job or an editor set in front of every line. Lines
 * keep their numbers.
 */
export function asPrinted(text: string): readonly string[] {
  const session = CARET.test(text)
    ? text.replaceAll(CARETS, (_, bracket?: string, letter?: string) => String.fromCharCode((bracket ?? letter ?? "").charCodeAt(0) - 64))
    : text;
  // of old Macs, and of some exports, the carriage return ends the line
  const ends = session.includes("\n") ? /\r{1,8}\n/g : /\r/g;
  const lines = session.replaceAll(ends, "\n").split("\n");
  const shown = withoutColors(lines.map((line) => (OVERWRITTEN.test(line) && line.length < LONGEST ? overwritten(line) : line)).join("\n"));
  return fenced(outOfYaml(actionSteps(withoutWindow(withoutMargin(unpadded(typewritten(shown.replaceAll(PASTING, "")).split("\n")))))));
}

/** How Jira, forums and Org begin and end a block. */
const MARKER =
  /\{(?:code|noformat)(?::(?:title=([^{}|\n]{1,200})|[^{}\n]{0,80}))?(?:\|[^{}\n]{0,200})?\}|\[\/?(?:code|CODE|pre)(?:=[\w-]{1,20})?\]|^[ \t]{0,4}#\+(?:begin|end|BEGIN|END)_(?:src|example|SRC|EXAMPLE)(?: \w{1,20})?$/g;
const MARKED = /\{(?:code|noformat)[:}]|\[\/(?:code|CODE|pre)\]|^[ \t]{0,4}#\+(?:end|END)_(?:src|SRC|example|EXAMPLE)/;
/** A paragraph or a heading of a page that is nothing but its text. */
const ELEMENT = /^[ \t]{0,8}<(?:p|h\d|li|dt|b|strong|summary)(?: [^<>]{0,80})?>(?:<(?:code|b|strong|tt)>)?([^<>]{1,400})(?:<\/\w{1,7}>){1,2}[ \t]{0,4}$/;

/** AsciiDoc's heads of a block, and what stands above an indented one in reStructuredText. */
const MARKUP =
  /^(?:\[(?:source|listing|literal|subs)\b.{0,100}\]|\.(?!\.)[\w/].{0,300}|::|\.\. (?:code(?:-block)?|sourcecode|parsed-literal)::.{0,60})[ \t]{0,4}$/;

/** A command, and below it a line of signs that is as long. */
const isTitle = (title = "", below = ""): boolean => title.length === below.length && /^([-=~^"'#*+])\1{2,400}$/.test(below) && isCommand(title);

/** The lines of AsciiDoc and reStructuredText with Markdown's fences, and their titles as code. */
function withFences(lines: readonly string[]): readonly string[] {
  const edges = lines.flatMap((line, i) => (/^(?:-{4}|\.{4})$/.test(line.trimEnd()) ? [i] : []));
  const begins = edges.some((edge, i) => i % 2 === 0 && MARKUP.test(lines[edge - 1] ?? ""));
  const fences = new Set(begins && edges.length % 2 === 0 ? edges : []);
  const titled = fences.size > 0;
  // what is set in below such a sign ends with the blank line behind it
  for (let i = 0; i < lines.length; i++) {
    if (!/^(?:::|\.\. )/.test(lines[i] ?? "") || !MARKUP.test(lines[i] ?? "")) continue;
    let [end, next] = [i, i + 1];
    for (; next < lines.length && /^\s|^$/.test(lines[next] ?? ""); next++) if ((lines[next] ?? "").trim() !== "") end = next;
    if (end === i || end + 1 === next) continue;
    fences.add(i).add(end + 1);
    i = next - 1;
  }
  return lines.map((line, i) => {
    if (fences.has(i)) return "```";
    const title = titled && MARKUP.test(line) ? (/^\.(.*)$/.exec(line)?.[1] ?? "") : isTitle(line, lines[i + 1]) ? line : undefined;
    if (title === undefined) return isTitle(lines[i - 1], line) ? "" : line;
    return title === "" ? "" : `\`${title.trim()}\``;
  });
}

/** The lines with Markdown's signs in the place of those of other pages. */
function fenced(given: readonly string[]): readonly string[] {
  const lines = given.some((line) => MARKUP.test(line)) ? withFences(given) : given;
  const wiki = lines.some((line) => line.length < 500 && MARKED.test(line));
  const page = lines.some((line) => line.length < 4000 && PRE.test(line));
  if (!wiki && !page) return lines;
  return lines.map((line) => {
    if (line.length > 4000) return line;
    const plain = page ? line.replace(ELEMENT, "`$1`") : line;
    if (!wiki) return plain;
    return plain
      .replace(/^h[1-6]\. /, "### ")
      .replace(/^\*([^*\n]{1,200})\*$/, "**$1**")
      .replaceAll(/\{\{([^{}\n]{1,200})\}\}/g, "`$1`")
      .replaceAll(MARKER, (_, title?: string) => `\`\`\`${title ?? ""}`);
  });
}

/** What `cat -v` makes of control characters: those of a prompt, or of all ends of lines. In an expression (`^[[:space:]]`) no terminal is meant. */
const CARET = /\^\[(?:\[(?:\?\d{1,5}[hl]|\d{0,3}(?:;\d{1,3}){0,4}m|\d?[KJ])|\]\d;)|^[^\n]*\^M\n[^\n]*\^M\n/;
const CARETS = /\^(?:(\[)(?=\[(?:\?\d{1,5}[hl]|\d{0,3}(?:;\d{1,3}){0,4}m|\d{0,3}[KJPCD@])|\]\d;)|([GHM]))/g;
const ESCAPE = String.fromCharCode(27);
const BELL = String.fromCharCode(7);
/** A terminal told to mark what is pasted; what is left of it where the escape character was lost. */
const PASTING = /\[\?2004[hl]/g;
/** No line of a terminal is longer, whatever the keys say. */
const LONGEST = 20_000;
/** The cursor went back. */
const OVERWRITTEN = /[\b\r]/;
const KEYS = new RegExp(`${ESCAPE}\\[([\\d;?]{0,16})([@-~])|${ESCAPE}\\][^${ESCAPE}${BELL}]{0,300}(?:${BELL}|${ESCAPE}\\\\)|${ESCAPE}.|[^]`, "gu");
/** The shell's own end of a line at the edge of the window. */
const WRAP = /(?<=[^\r]{60}\S) \r(?=\S)/g;

/** What stands on the line once all keys were pressed: characters taken back, words inserted, a command fetched from the history. */
function overwritten(line: string): string {
  const cells: string[] = [];
  let at = 0;
  for (const [key, numbers = "", control] of line.replaceAll(WRAP, "").matchAll(KEYS)) {
    const count = Math.min(Number(numbers) || 1, 1000);
    if (key === "\b" || control === "D") at = Math.max(0, at - (control === undefined ? 1 : count));
    else if (key === "\r") at = 0;
    else if (control === "C") at = Math.min(at + count, LONGEST);
    else if (control === "P") cells.splice(at, count);
    else if (control === "@" && cells.length < LONGEST) cells.splice(at, 0, ...Array.from({ length: count }, () => " "));
    else if ((control === "K" || control === "J") && numbers !== "1") cells.length = Math.min(cells.length, numbers === "2" ? 0 : at);
    else if (control === undefined && !key.startsWith(ESCAPE) && (key >= " " || key === "\t")) cells[at++] = key;
  }
  return Array.from(cells, (cell) => cell ?? " ").join("");
}

/** The lines without the blanks that fill a window or a pane to its right edge, or that an editor sets behind each line to keep it one. */
function unpadded(lines: readonly string[]): readonly string[] {
  const padded = lines.length > 2 && lines.every((line) => line === "" || line.length >= 80 || /[ \t]$/.test(line));
  return padded ? lines.map((line) => line.trimEnd()) : lines;
}

const NO_BREAK = /[\u00a0\u202f\u2007]/g;
const INVISIBLE = /[\u200b-\u200d\u2060\ufeff]/g;
const TAG = /<\/?[a-z][^<>]{0,200}>/gi;
const ENTITY = /&(?:lt|gt|amp|quot|apos|nbsp|#\d{2,4}|#x[\da-f]{2,4});/gi;
const NAMED: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'", nbsp: " " };

/** The text with the signs of a keyboard in the place of those that editors, chats and web pages make of them. */
function typewritten(text: string): string {
  let plain = text.replaceAll(NO_BREAK, " ").replaceAll(INVISIBLE, "");
  // where signs have names, no other `<` and `>` stand than those of tags
  // `&amp;gt;`: written down by one program, and by another one once more
  for (let time = 0; time < 2 && /&(?:lt|gt|quot|nbsp|#\d\d|amp;(?:lt|gt|quot));/.test(plain) && !/[<>]/.test(plain.replaceAll(TAG, "")); time++)
    plain = plain.replaceAll(ENTITY, (entity) => {
      const name = entity.slice(1, -1).toLowerCase();
      return NAMED[name] ?? String.fromCodePoint(name.startsWith("#x") ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1)));
    });
  if (!plain.includes('"')) plain = plain.replaceAll(/[“”„]/g, '"');
  if (!plain.includes("'")) plain = plain.replaceAll(/[‘’‚]/g, "'");
  // `ip –s link`, `iptables -t nat —list`
  return /[ \t][–—][A-Za-z]/.test(plain)
    ? plain.replaceAll(/(?<=[ \t]|^)(?:—(?=[a-z]{2})|–(?=[a-z]{3}))/gm, "--").replaceAll(/(?<=[ \t]|^)[–—](?=[A-Za-z])/gm, "-")
    : plain;
}

/** What stands in front of every line, whoever put it there: when it was printed, its number, where it came from. */
const MARGINS: readonly RegExp[] = [
  /^\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?(?: (?:std(?:out|err) [FP]|\d\d[OE]\+?))?(?: |$)/,
  /^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: [\w.-]{1,64} [\w./@-]{1,64}(?:\[\d{1,10}\])?:)?(?: |$)/,
  /^\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?(?: {1,2}|$)/,
  // a step of a build
  /^#\d{1,3} \d{1,5}\.\d{1,3}(?: |$)/,
];
/** Its number, and what stands behind it: the same on all lines, as a sign that follows may be the text's own (`12 :INPUT ACCEPT`). */
const NUMBERS: readonly RegExp[] = [
  /^[ \t]{0,8}(\d{1,6})(?:\t|$)/,
  /^[ \t]{0,8}(\d{1,6})(?: {0,2}[:|)] ?|$)/,
  /^[ \t]{0,8}(\d{1,6})(?: (?! )|$)|^[ \t]{0,8}(\d{1,6}) (?= )/,
  /^[ \t]{0,8}(\d{1,6})(?: {2}|$)/,
];
/** Where the words end that all lines have in front. */
const EDGE = /^.{0,200}(?:[\t|>\])] {0,2}|\S:? {1,2}|\t)/;
/** A log collector's line is in a CI job's, and that in an editor's. */
const LAYERS = 3;

/** The lines without a margin, if there is one and commands of ours stand behind it: the times of a log are its own. */
function withoutMargin(lines: readonly string[]): readonly string[] {
  // whoever copies by hand may copy blank lines around it
  const [first, last] = [lines.findIndex((line) => line !== ""), lines.findLastIndex((line) => line !== "")];
  const shown = lines.slice(Math.max(0, first), last + 1);
  let rest: readonly string[] = shown;
  for (let layer = 0; layer < LAYERS; layer++) rest = numbered(rest) ?? timed(rest) ?? labelled(rest) ?? counted(rest) ?? rest;
  return rest !== shown && namesCommand(actionSteps(rest)) ? [...lines.slice(0, first), ...rest, ...lines.slice(last + 1)] : lines;
}

/** A session or a job's log shows its first command soon; a log of the node may be very long. */
const BEGINNING = 5000;

/** True if commands stand behind a prompt, or in headings: several, or one in the first line. */
function namesCommand(lines: readonly string[]): boolean {
  const plain = plainPrompts(lines.slice(0, BEGINNING));
  if (plain.some((line) => line.length < 500 && isPromptLine(line) && isCommand(withoutPrompt(line)))) return true;
  const { outputs, commands } = namedOutputs(blocksOf(plain), undefined);
  return outputs.length > 1 || (outputs.length === 1 && commands.has(plain.findIndex((line) => line.trim() !== "")));
}

function numbered(lines: readonly string[]): readonly string[] | undefined {
  for (const pattern of lines.length > 1 ? NUMBERS : []) {
    const cut: string[] = [];
    let last: number | undefined;
    for (const line of lines) {
      const [margin = "", one, other] = pattern.exec(line) ?? [];
      const number = one ?? other;
      if (number === undefined || (last !== undefined && Number(number) !== last + 1)) break;
      else {
        last = Number(number);
        cut.push(line.slice(margin.length));
      }
    }
    if (cut.length === lines.length) return cut;
  }
  return undefined;
}

/** The same where nothing stands between, as what is copied out of a page with a column of numbers: the text begins right behind, or on the next line. */
function counted(lines: readonly string[]): readonly string[] | undefined {
  const start = Number(/^\d{1,6}/.exec(lines[0] ?? "")?.[0] ?? Number.NaN);
  const end = lines.at(-1) === "" ? lines.length - 1 : lines.length;
  if (Number.isNaN(start) || end < FEWEST) return undefined;
  const first = [start, ...(start > 9 ? [Number(String(start)[0])] : [])].find((number) =>
    lines.slice(0, end).every((line, i) => line.startsWith(`${number + i}`)),
  );
  if (first !== undefined) return lines.map((line, i) => line.slice(i < end ? `${first + i}`.length : 0));
  return lines.slice(0, end).every((line, i) => i % 2 === 1 || line.trim() === `${start + i / 2}`)
    ? lines.map((line, i) => (i % 2 === 0 ? "" : line))
    : undefined;
}
/** Fewer lines may begin so by chance. */
const FEWEST = 3;

function timed(lines: readonly string[]): readonly string[] | undefined {
  const margin = MARGINS.find((one) => lines.some((line) => one.test(line)) && lines.every((line) => line === "" || one.test(line)));
  return margin === undefined ? undefined : lines.map((line) => line.replace(margin, ""));
}

function labelled(lines: readonly string[]): readonly string[] | undefined {
  const filled = lines.filter((line) => line !== "");
  const [first = ""] = filled;
  let same = Math.min(first.length, 220);
  for (const line of filled) while (same > 0 && !`${line} `.startsWith(first.slice(0, same))) same--;
  const label = EDGE.exec(first.slice(0, same))?.[0] ?? "";
  return filled.length < 3 || label.trim() === "" ? undefined : lines.map((line) => line.slice(label.length));
}
