import type { UnparsedLines } from "./fact.ts";

/** One element of a top-level JSON array, with the place it stands at. */
export interface JsonElement {
  readonly value: Record<string, unknown>;
  /** 1-based line on which the element begins. */
  readonly line: number;
  /** The element verbatim, cut at 4,000 characters: what evidence quotes. */
  readonly text: string;
}

/**
 * Reads the objects of a top-level JSON array (or one top-level object), element by element, so that each knows its line and its text, and a
 * truncated array still yields what came before the cut. What is not JSON goes to `unparsed`. Linear in the text.
 */
export function jsonElements(text: string, unparsed: UnparsedLines): JsonElement[] {
  const elements: JsonElement[] = [];
  let line = 1;
  let position = 0;
  let brackets = 0;
  while (position < text.length) {
    const code = text.charCodeAt(position);
    if (code === 10) {
      line++;
      position++;
    } else if (code === 123 /* { */) {
      const end = endOfObject(text, position);
      const slice = text.slice(position, end);
      const value = end === -1 ? undefined : (parsedJson(slice) as JsonElement["value"] | undefined);
      if (value === undefined) {
        unparsed.add(line, end === -1 ? `cut off: ${text.slice(position, position + 200)}` : slice);
        if (end === -1) return elements;
      } else elements.push({ value, line, text: slice.length > 4000 ? `${slice.slice(0, 4000)}…` : slice });
      for (let i = position; i < end; i++) if (text.charCodeAt(i) === 10) line++;
      position = end;
    } else if (code === 91 || code === 93 || code === 44 || code <= 32) {
      brackets += code === 91 ? 1 : code === 93 ? -1 : 0;
      position++;
    } else {
      let end = text.indexOf("\n", position);
      if (end === -1) end = text.length;
      unparsed.add(line, text.slice(position, Math.min(end, position + 400)));
      position = end;
    }
  }
  if (brackets > 0) unparsed.add(line, "the JSON array is not closed: the output was cut");
  return elements;
}

/** The value of a text that is JSON; undefined if it is none, because it was cut, perhaps. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Index behind the `}` that closes the `{` at `start`, or -1. */
function endOfObject(text: string, start: number): number {
  let depth = 0;
  for (let i = start; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 34 /* " */) {
      for (i++; i < text.length && text.charCodeAt(i) !== 34; i++) if (text.charCodeAt(i) === 92 /* \ */) i++;
    } else if (code === 123) depth++;
    else if (code === 125 && --depth === 0) return i + 1;
  }
  return -1;
}

/** `value` as a string, or undefined. */
export const asString = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
/** `value` as an object; an empty one for anything else. */
export const asObject = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
/** `value` as a safe integer (decimal strings too), or undefined. */
export function asInteger(value: unknown): number | undefined {
  const number = typeof value === "string" && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(number) ? number : undefined;
}
/** The strings of an array; anything else is left out. */
export const asStrings = (value: unknown): string[] => (Array.isArray(value) ? value.filter((item) => typeof item === "string") : []);
