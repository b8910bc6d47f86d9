import { isPromptLine } from "../facts/command.ts";
import { withoutEmphasis } from "../facts/paste.ts";
import { isKnown } from "./bundle.ts";
import { logSignOf, TIMED, wrappedLog } from "./log-lines.ts";
import { signOf } from "./unnamed-outputs.ts";

/**
 * Blocks of code in a text as people write it: fences on lines of their own, with the first line behind the opening one (```` ```ip route ````) or the end behind
 * the last one, never closed because the message was cut; `<pre>`; quotations; one line between backticks, or a line of a log between those of a sentence.
 */

/** The lines of a text without that markup, by their old places. */
export interface Blocks {
  readonly lines: readonly string[];
  /** By line the number of its block, from 1; 0: outside of all. */
  readonly block: readonly number[];
  /** The lines that are nothing but a fence. */
  readonly edges: ReadonlySet<number>;
  /** The block that is never closed; 0: none. Its end may be missing. */
  readonly unclosed: number;
}

/** In a chat the block begins behind the words: "can someone look at this? ```ip route". */
const BEHIND_WORDS = /^[ \t]{0,8}[^\s\x60][^\x60]{0,400}[\s:?.](\x60{3})(?!\x60)([^\x60]{0,2000})$/;
const OPENING = /^([ \t]{0,8})(`{3,8}|~{3,8}|`(?=[ \t]{0,4}$))(.*)$/;
/** Markdown's other way: a paragraph of which each line is indented. */
const INDENT = /^(?: {4,16}|\t{1,4})(?=\S)/;
export const PRE = /^[ \t]{0,8}(?:<(?:div|figure|td)(?: [^<>]{0,100})?>){0,3}<pre(?: [^<>]{0,100})?>(?:<code(?: [^<>]{0,100})?>)?(.*)$/i;
/** What stands behind the fence and is no output: the language. */
const LANGUAGE = /^[ \t]{0,4}[\w+-]{0,20}[ \t\r]{0,4}$/;
const QUOTED = /^[ \t]{0,4}>(?: ?>){0,3} ?(?=[^>]|$)/;
const BREAK = /[ \t]{0,4}<br ?\/?>[ \t]{0,4}$/i;
/** A prompt outside of a block, so that Markdown makes no heading of it. */
const ESCAPED = /^[ \t]{0,4}\\(?=[#$>] {1,4}\S)/;
/** A line that is all code, also in a list. */
const INLINE = /^[ \t]{0,8}(?:[-*] {1,4})?`([^`]{1,4000})`[.:,]?[ \t]{0,4}$/;

/** A line of an output that the person made bold; not a command, which is a heading then. */
const BOLD = /^\*\*([^*\s](?=[^*]{0,300}\d)[^*]{0,300}[^*\s:])\*\*[ \t]{0,4}$/;
/** The same without a number in it: a field that tells whether something is so. */
const BOLD_FIELD =
  /^\*\*([A-Za-z][\w ./()-]{1,60}(?:: {1,4}| {0,4}= {0,4})(?:yes|no|true|false|on|off|up|down|(?:in)?active|(?:en|dis)abled|n\/a|none|failed|not synchroni[sz]ed))\*\*[ \t]{0,4}$/i;

/** `>>> ip route`: a script's headings, not what a mail quotes. */
const CHEVRONS = /^>{2,4} {1,2}([a-z/].{0,400})$/;

/** True if several commands stand so, and what they printed is not quoted. */
function hasChevrons(lines: readonly string[]): boolean {
  let count = 0;
  for (const [i, line] of lines.entries()) {
    if (!line.startsWith(">>") || (lines[i + 1] ?? "").startsWith(">")) continue;
    const [, command] = CHEVRONS.exec(line) ?? [];
    if (command !== undefined && isKnown(command) && ++count >= 3) return true;
  }
  return false;
}

/** The lines without the blanks that all of them begin with: a whole text that somebody indented. Not where they belong to what a command printed. */
function dedented(lines: readonly string[]): readonly string[] {
  const filled = lines.filter((line) => line.trim() !== "");
  const width = filled.reduce((least, line) => Math.min(least, line.length > 4000 ? 0 : line.search(/[^ ]/)), 16);
  const known = (line: string): boolean => isPromptLine(line) || signOf(line) !== undefined || logSignOf(line) !== undefined;
  if (filled.length === 0 || width < 1 || filled.slice(0, 500).some((line) => known(line) && !known(line.slice(width)))) return lines;
  return lines.map((line) => line.slice(Math.min(width, line.length)));
}

/** Takes the text's markup apart. Pure, total, linear. */
export function blocksOf(given: readonly string[]): Blocks {
  const kept = hasChevrons(given) ? CHEVRONS : undefined;
  const lines = dedented(given).map((line) =>
    line.length > 4000 || kept?.test(line) === true ? line : line.replace(QUOTED, "").replace(BREAK, "").replace("</code></pre>", "</pre>"),
  );
  const block: number[] = [];
  const edges = new Set<number>();
  let count = 0;
  let fence = "";
  // blanks in front of the opening fence, as in a list: the lines of the block have them, too
  let margin = "";
  // the end of the indented block
  let until = 0;
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? "";
    const looked = i >= until && fence === "" && line.length <= 4000;
    const indent = looked && (lines[i - 1] ?? "").trim() === "" ? (INDENT.exec(line)?.[0] ?? "") : "";
    if (indent !== "" && isOutput(line.slice(indent.length))) {
      const end = endOf(lines, i, indent);
      // timedatectl and hostnamectl set their words flush right: the lines below are indented less, or not at all
      if (isPromptLine(line.slice(indent.length)) || (lines[end] ?? "").trim() === "") {
        count++;
        margin = indent;
        until = end;
      }
    }
    if (i < until) {
      block[i] = count;
      lines[i] = line.slice(margin.length);
      continue;
    }
    const pre = looked ? PRE.exec(line) : null;
    const words = looked && pre === null && line.includes("\x60\x60\x60") ? BEHIND_WORDS.exec(line) : null;
    const [, before = "", mark = "", behind = ""] =
      pre !== null ? ["", "", "</pre>", pre[1]] : words !== null ? ["", "", words[1], words[2]] : looked ? (OPENING.exec(line) ?? []) : [];
    block[i] = fence === "" && mark === "" ? 0 : count;
    if (mark !== "") {
      count++;
      block[i] = count;
      const end = behind.indexOf(mark);
      // a page names no language there: `<pre>262144`
      const bare = pre === null ? LANGUAGE.test(behind) : behind.trim() === "";
      if (bare) edges.add(i);
      lines[i] = bare ? "" : end === -1 ? behind : behind.slice(0, end);
      fence = end === -1 ? mark : "";
      margin = before;
    } else if (fence !== "") {
      const end = line.indexOf(fence);
      lines[i] = withoutEmphasis((end === -1 ? line : line.slice(0, end)).slice(line.startsWith(margin) ? margin.length : 0));
      if (end === -1) continue;
      if (lines[i]?.trim() === "") edges.add(i);
      fence = "";
    } else if (line.startsWith("**")) lines[i] = opensBlock(lines, i + 1) ? line : unbold(line);
    else if (line.includes("`")) lines[i] = INLINE.exec(line)?.[1] ?? quotedLog(line) ?? cutLog(line) ?? line;
    else if (looked) lines[i] = line.replace(ESCAPED, "");
  }
  return { lines: lines.map((line) => wrappedLog(line) ?? line), block, edges, unclosed: fence === "" ? 0 : count };
}

/** True if a block begins there, blank lines aside: what stands above it is its heading. */
function opensBlock(lines: readonly string[], start: number): boolean {
  const next = lines.slice(start, start + 3).find((line) => line.trim() !== "") ?? "";
  return OPENING.test(next) || PRE.test(next);
}

function unbold(line: string): string {
  const inner = (BOLD.exec(line) ?? BOLD_FIELD.exec(line))?.[1];
  return inner === undefined || (/^[a-z]/.test(inner) && isKnown(inner)) ? line : inner;
}

/** The same, cut before its end, or over several lines: what stands behind the sign is a line of a log. */
function cutLog(line: string): string | undefined {
  const code = /^[ \t]{0,8}`([^`]{20,8000})$/.exec(line)?.[1];
  return code !== undefined && TIMED.test(code) && logSignOf(code) !== undefined ? code : undefined;
}

/** Many things are indented; what begins as an output or as a prompt does is code. */
const isOutput = (line: string): boolean => isPromptLine(line) || signOf(line) !== undefined;

/** The index behind the last line that is indented so, blank ones between them included. */
function endOf(lines: readonly string[], start: number, indent: string): number {
  let end = start + 1;
  for (let i = end; i < lines.length; i++) {
    if ((lines[i] ?? "").startsWith(indent)) end = i + 1;
    else if ((lines[i] ?? "").trim() !== "") break;
  }
  return end;
}

/** "kube-proxy says `E0102 …` all the time". Without a time it may be what somebody looked for: "there is no `nf_conntrack: table full` in the log". */
const quotedLog = (line: string): string | undefined =>
  line.length > 4000
    ? undefined
    : [...line.matchAll(/`([^`]{20,4000})`/g)].flatMap(([, code = ""]) => (TIMED.test(code) && logSignOf(code) !== undefined ? [code] : []))[0];
