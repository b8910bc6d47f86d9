import type { UnparsedLines } from "./fact.ts";
import { parsedJson } from "./json.ts";

/** One member of a JSON object, with the place it stands at. */
export interface JsonMember {
  readonly name: string;
  readonly value: unknown;
  /** 1-based line on which its name stands. */
  readonly line: number;
  /** The member verbatim (`"name": value`), cut at 400 characters: what evidence quotes. */
  readonly text: string;
  /** The text of the value, for a closer look at an object inside (see `startLine`). */
  readonly source: string;
  /** Line on which `source` begins. */
  readonly sourceLine: number;
}

/** Where a member stands: its line, and its text where the line is not a good quote (everything on one line). */
export function placeOf(member: Pick<JsonMember, "line" | "text">): { line: number; text?: string } {
  return member.text.includes("\n") ? { line: member.line } : { line: member.line, text: member.text };
}

/**
 * Reads the members of the first JSON object of a text, one by one, so that each knows its line and its text, and an object that was cut still yields
 * what came before the cut. `startLine`: the line number of the first line of `text`. What is not JSON goes to `unparsed`. Linear in the text.
 */
export function jsonMembers(text: string, unparsed: UnparsedLines, startLine = 1): JsonMember[] {
  const members: JsonMember[] = [];
  let line = startLine;
  let i = 0;
  // blank lines and what is printed before the object
  while (i < text.length && text[i] !== "{") {
    let end = text.indexOf("\n", i);
    if (end === -1) end = text.length;
    const open = text.indexOf("{", i);
    const before = text.slice(i, open === -1 ? end : Math.min(end, open)).trim();
    if (before !== "") unparsed.add(line, before);
    if (open !== -1 && open < end) {
      i = open;
      break;
    }
    line++;
    i = end + 1;
  }
  if (i >= text.length) return members;
  i++;
  while (i < text.length) {
    const char = text[i] as string;
    if (char === "\n") line++;
    if (char === "}") return rest(text, i + 1, line, members, unparsed);
    if (char === "," || char.charCodeAt(0) <= 32) {
      i++;
      continue;
    }
    const nameEnd = char === '"' ? endOfString(text, i) : -1;
    const colon = nameEnd === -1 ? -1 : text.indexOf(":", nameEnd);
    if (colon === -1 || text.slice(nameEnd, colon).trim() !== "") {
      unparsed.add(line, text.slice(i, i + 200));
      return members;
    }
    let start = colon + 1;
    let valueLine = line + newlines(text, nameEnd, colon);
    while (start < text.length && text.charCodeAt(start) <= 32) {
      if (text[start] === "\n") valueLine++;
      start++;
    }
    const end = endOfValue(text, start);
    const value = end === -1 ? undefined : parsedJson(text.slice(start, end));
    const name = parsedJson(text.slice(i, nameEnd));
    if (end === -1 || value === undefined || typeof name !== "string") {
      unparsed.add(line, `cut off: ${text.slice(i, i + 200)}`);
      // an object that was cut still shows what it began with
      if (end === -1 && typeof name === "string" && text[start] === "{") {
        members.push({ name, value: {}, line, text: text.slice(i, i + 400).trimEnd(), source: text.slice(start), sourceLine: valueLine });
      }
      return members;
    }
    members.push({ name, value, line, text: text.slice(i, Math.min(end, i + 400)), source: text.slice(start, end), sourceLine: valueLine });
    line = valueLine + newlines(text, start, end);
    i = end;
  }
  unparsed.add(line, "the JSON object is not closed: the output was cut");
  return members;
}

/** What stands behind the object belongs to nothing. */
function rest(text: string, from: number, startLine: number, members: JsonMember[], unparsed: UnparsedLines): JsonMember[] {
  let line = startLine;
  for (let start = from; start < text.length; ) {
    let end = text.indexOf("\n", start);
    if (end === -1) end = text.length;
    const left = text.slice(start, Math.min(end, start + 400)).trim();
    if (left !== "") unparsed.add(line, left);
    line++;
    start = end + 1;
  }
  return members;
}

function newlines(text: string, from: number, to: number): number {
  let count = 0;
  // a search for the next one could run to the end of the text each time
  for (let at = from; at < to; at++) if (text.charCodeAt(at) === 10) count++;
  return count;
}

/** Index behind the string that begins at `start`, or -1. */
function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 92 /* \ */) i++;
    else if (code === 34) return i + 1;
  }
  return -1;
}

/** Index behind the value that begins at `start`, or -1 if the text ends before it does. */
function endOfValue(text: string, start: number): number {
  const first = text[start];
  if (first === undefined) return -1;
  if (first === '"') return endOfString(text, start);
  if (first !== "{" && first !== "[") {
    let i = start;
    while (i < text.length && !",}] \t\r\n".includes(text[i] as string)) i++;
    return i < text.length ? i : -1;
  }
  let depth = 0;
  for (let i = start; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 34) {
      const end = endOfString(text, i);
      if (end === -1) return -1;
      i = end - 1;
    } else if (code === 123 || code === 91) depth++;
    else if ((code === 125 || code === 93) && --depth === 0) return i + 1;
  }
  return -1;
}
