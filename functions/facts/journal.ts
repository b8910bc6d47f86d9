import type { UnparsedLines } from "./fact.ts";
import { type JsonElement, jsonElements } from "./json.ts";
import { present } from "./present.ts";

/** What `-o` may ask of journalctl that gives each entry with its fields. */
export const STRUCTURED = /^(?:json(?:-pretty)?|verbose|export)$/;

/** The format that such an output has: "journal-json", "journal-verbose", "journal-export". */
export const structured = (output: string): string => `journal-${output.replace(/-.*/, "")}`;

/** The entries of an output of one of these formats, as `-o json` has them; undefined if it is of another. */
export function journalEntries(format: string, text: string, unparsed: UnparsedLines): JsonElement[] | undefined {
  if (format.startsWith("journal-json")) return jsonElements(text, unparsed);
  if (format.startsWith("journal-verbose")) return verboseEntries(text);
  return format.startsWith("journal-export") ? exportedEntries(text) : undefined;
}

/** What journalctl and its pager print between the entries: -- Logs begin at …, -- Boot …, -- No entries --, Hint: …, lines 1-40/412 (END) */
export const JOURNAL_REMARK = /^(?:-- .{1,300}|Hint: .{1,300}|No journal files were found\.|lines \d{1,9}-\d{1,9}.{0,40}|\(END\))$/;

/** When an entry was written (ISO): it tells microseconds since 1970, 16 digits. Undefined if it does not. */
export function entryTime(value: Readonly<Record<string, unknown>>): string | undefined {
  const micros = Number(value["__REALTIME_TIMESTAMP"] ?? Number.NaN);
  return micros >= 0 && micros < 8.64e18 ? new Date(Math.floor(micros / 1000)).toISOString() : undefined;
}

// Sun 2026-11-22 14:48:02.114312 UTC [s=2f1d…;i=1a2b;b=9c0d…;m=12e9f7b;t=64437c1d2a9c8;x=bf0c…]
const ENTRY = /^\S{1,12} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})? \S{1,10} \[(s=[^\]]{0,400})\]$/;
const FIELD = /^ {4}([A-Z_][A-Z0-9_]{0,127})=(.{0,16000})$/;

/**
 * The entries of `journalctl -o verbose`, as `-o json` has them: the field that is quoted is the message's. The time is the one in the cursor (`t=`, microseconds since
 * 1970 in hexadecimal), which has no zone to be guessed. What goes on in further lines is set in by the width of its field's name, and left out.
 */
function verboseEntries(text: string): JsonElement[] {
  const entries: { value: Record<string, unknown>; line: number; text: string }[] = [];
  let line = 0;
  for (const raw of text.split("\n")) {
    line++;
    const content = raw.trimEnd();
    const cursor = ENTRY.exec(content)?.[1];
    if (cursor !== undefined) {
      const at = (key: string): string | undefined => new RegExp(`;${key}=([0-9a-f]{1,14})(?:;|$)`).exec(cursor)?.[1];
      const [since, time] = [at("m"), at("t")];
      const value = present({
        __REALTIME_TIMESTAMP: time === undefined ? undefined : String(Number.parseInt(time, 16)),
        __MONOTONIC_TIMESTAMP: since === undefined ? undefined : Number.parseInt(since, 16),
      });
      entries.push({ value, line, text: content });
      continue;
    }
    const [, key, said] = FIELD.exec(content) ?? [];
    const entry = entries.at(-1);
    if (entry === undefined || key === undefined || said === undefined) continue;
    entry.value[key] = said;
    if (key === "MESSAGE") Object.assign(entry, { line, text: content.trim() });
  }
  return entries;
}

const EXPORTED = /^([A-Z_][A-Z0-9_]{0,127})=(.{0,16000})$/;

/**
 * The entries of `journalctl -o export`, as `-o json` has them: fields, and a blank line behind each entry. A field with bytes of its own (its name alone on a line) is left
 * out.
 */
function exportedEntries(text: string): JsonElement[] {
  const entries: { value: Record<string, unknown>; line: number; text: string }[] = [];
  let fresh = true;
  for (const [i, raw] of text.split("\n").entries()) {
    const content = raw.trimEnd();
    const [, key, said] = EXPORTED.exec(content) ?? [];
    // a message over several lines may have blank ones
    if (key === "__CURSOR" || (fresh && key !== undefined)) entries.push({ value: {}, line: i + 1, text: content });
    fresh = content === "";
    const entry = entries.at(-1);
    if (entry === undefined || key === undefined) continue;
    entry.value[key] ??= said;
    if (key === "MESSAGE") Object.assign(entry, { line: i + 1, text: content });
  }
  return entries;
}
