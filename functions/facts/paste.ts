import { withoutColors } from "./colors.ts";
import { isPromptLine } from "./command.ts";

/** True for a line that a terminal added to an output: a shell prompt, with a command behind it or without (the last line of many pastes). */
export function isPrompt(line: string): boolean {
  return isPromptLine(`${line} x`);
}

/** `text` with the prompts in front of it and behind it blanked out, line numbers kept. For formats that are not read line by line (JSON). */
export function withoutPrompts(text: string): string {
  let start = 0;
  let newlines = 0;
  for (;;) {
    const end = text.indexOf("\n", start);
    const first = text.slice(start, end === -1 ? Math.min(text.length, start + 400) : Math.min(end, start + 400));
    if (end === -1 || !(first.trim() === "" || isPrompt(first))) break;
    newlines++;
    start = end + 1;
  }
  let end = text.trimEnd().length;
  const last = text.lastIndexOf("\n", end - 1);
  if (last >= start && end - last < 400 && isPrompt(text.slice(last + 1, end))) end = last;
  return "\n".repeat(newlines) + text.slice(start, end);
}

/** What curl shows of a transfer: its meter, and with -i the head of the answer. */
const METER =
  /^(?:\s{0,4}% Total\s{1,8}% Received.{0,100}|\s{1,80}Dload\s{1,8}Upload.{0,100}|.{0,400}[\d-]{1,3}:[\d-]{2}:[\d-]{2}\s{1,8}[\d-]{1,3}:[\d-]{2}:[\d-]{2}\s{1,8}[\d.]{1,10}[kMG]?)$/;
const HEAD = /^(?:HTTP\/[\d.]{1,3} \d{3}\b.{0,100}|[A-Za-z][A-Za-z-]{1,60}: .{0,1000})$/;

/** The answer of a program that was asked over HTTP, without prompts and what curl shows of the transfer; lines keep their numbers. */
export function answerOf(text: string): string {
  const given = withoutPrompts(text).split("\n");
  let start = 0;
  while (start < given.length - 1 && /^\s*$/.test(given[start] ?? "")) start++;
  const first = start;
  while (start < given.length - 1 && (METER.test((given[start] ?? "").trimEnd()) || (given[start] ?? "").trim() === "")) start++;
  if (given[start]?.startsWith("HTTP/") === true) while (start < given.length - 1 && HEAD.test((given[start] ?? "").trimEnd())) start++;
  return start === first ? given.join("\n") : `${"\n".repeat(start)}${given.slice(start).join("\n")}`;
}

const FENCE = /^[ \t]{0,8}(?:`{3,8}|~{3,8})[A-Za-z-]{0,20}[ \t]{0,8}$/gm;

const NO_BREAK = "\u00a0";
const BEGINS_JSON = /^\s{0,4096}(?:\{\s{0,200}["}]|\[\s{0,200}[[{"\]])/;

/**
 * `text` without what a terminal or a web page added and no command prints: colours, no-break spaces, Markdown's fences around a block of code, the frame of
 * a window (k9s) around all lines, the sign of a quotation in front of all lines, HTML's names of signs, the headline of `watch`, what an arrow behind a line says of it, the emphasis of Markdown, an indent of all lines, a prompt in front of JSON, a prompt that waits on the last line. Lines keep their numbers. The text itself if there is nothing of it.
 */
export function unadorned(text: string): string {
  let bare = withoutColors(text);
  if (bare.includes(NO_BREAK)) bare = bare.replaceAll(NO_BREAK, " ");
  if (bare.includes("```") || bare.includes("~~~")) bare = bare.replace(FENCE, "");
  if (bare.includes("&lt;") || bare.includes("&gt;")) bare = withoutEntities(bare);
  if (/^\s{0,200}>/.test(bare)) bare = unquoted(bare);
  if (bare.includes(BAR)) bare = unframed(bare);
  if (bare.startsWith("Every ")) bare = bare.replace(WATCH, "");
  if (ARROWS.some((arrow) => bare.includes(arrow))) bare = bare.replace(POINTED_AT, "");
  bare = withoutEmphasis(bare);
  bare = unindented(bare);
  // only JSON cannot be read beside prompts; elsewhere a line that looks like one may be a comment that tells something
  const answer = withoutPrompts(bare);
  if (answer.length !== bare.length && BEGINS_JSON.test(answer)) bare = answer;
  const end = bare.trimEnd().length;
  const last = bare.slice(bare.lastIndexOf("\n", end - 1) + 1, end);
  // "# Completed on …" looks like a prompt with a command behind it; a waiting one has none
  const waits = last.length < 400 && last !== "" && !isPromptLine(last) && isPrompt(last);
  // alone it may be an answer without a line break and the prompt behind it
  return waits && bare.slice(0, end - last.length).trim() !== "" ? bare.slice(0, end - last.length) : bare;
}

const ENTITIES: Readonly<Record<string, string>> = { "&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&#39;": "'", "&nbsp;": " " };
/** A text that somebody copied out of the source of a web page, as the page shows it. */
export const withoutEntities = (text: string): string => text.replace(/&(?:lt|gt|amp|quot|#39|nbsp);/g, (entity) => ENTITIES[entity] as string);

/** The text without the `> ` that a mail or an answer in a forum puts in front of every line. */
function unquoted(text: string): string {
  const rows = text.split("\n");
  if (rows.some((row) => row.trim() !== "" && !row.startsWith(">"))) return text;
  return rows.map((row) => row.replace(/^> ?/, "")).join("\n");
}

const BAR = "│";
const BORDER = /^[ \t]{0,8}[┌╭└╰├].{0,400}$/;

/** The text without the bars that stand left, and perhaps right, of every line: what is copied out of a window of k9s has them. */
function unframed(text: string): string {
  const rows = text.split("\n");
  const framed = (row: string): boolean => row.trimStart().startsWith(BAR);
  if (rows.some((row) => row.trim() !== "" && !framed(row) && !BORDER.test(row))) return text;
  return rows.map((row) => (framed(row) ? row.trimStart().slice(1).trimEnd().replace(/│$/, "").trimEnd() : "")).join("\n");
}

/** The headline of `watch`. */
const WATCH = /^Every \d{1,6}[.,]\ds: .{0,400}/;
const INDENT = /^[ \t]{1,40}/;
const ARROWS = ["<--", "<===", "←"];
/** "#<--- these two": people point at what matters. `==> file <==` is a headline of `tail`, and a short arrow is part of some outputs (Hubble's and Cilium's flows). */
const POINTED_AT = /(?<=\S)[ \t]{1,40}(?:#|\/\/)?[ \t]{0,4}(?:<-{2,40}|<={3,40}|←)[^\n]{0,400}$/gm;
/** Without the signs of Markdown that make bold what matters, and that a block of code prints: "(**policy DROP 22 packets**)", "_**FAILED**_". Masks ("****") have nothing between them. */
export const withoutEmphasis = (text: string): string => (text.includes("**") ? text.replace(EMPHASIS, "$1") : text);
const EMPHASIS = /(?<![\w*/])_?\*\*(?=[^\s*])([^*\n]{1,200}?)(?<=[^\s*])\*\*_?(?![\w*/])/g;

/** The text without the blanks that every line begins with, as a block of code in Markdown or a quoted message has them. */
function unindented(text: string): string {
  const first = text.search(/\S/);
  const start = first === -1 ? 0 : text.lastIndexOf("\n", first) + 1;
  let indent = INDENT.exec(text.slice(start, start + 64))?.[0] ?? "";
  for (let at = start; indent !== "" && at < text.length; ) {
    const newline = text.indexOf("\n", at);
    const end = newline === -1 ? text.length : newline;
    while (indent !== "" && !text.startsWith(indent, at) && text.slice(at, end).trim() !== "") indent = indent.slice(0, -1);
    at = end + 1;
  }
  if (indent === "") return text;
  return text
    .split("\n")
    .map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line))
    .join("\n");
}
