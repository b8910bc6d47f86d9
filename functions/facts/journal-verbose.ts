import type { JsonElement } from "./json.ts";

// Sun 2026-11-22 14:48:02.114312 UTC [s=2f1d…;i=1a2b;b=9c0d…;m=12e9f7b;t=64437c1d2a9c8;x=bf0c…]
const ENTRY = /^\S{1,12} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})? \S{1,10} \[(s=[^\]]{0,400})\]$/;
const FIELD = /^ {4}([A-Z_][A-Z0-9_]{0,127})=(.{0,16000})$/;

/**
 * The entries of `journalctl -o verbose`, as `-o json` has them: the field that is quoted is the message's. The time is the one in the cursor (`t=`, microseconds since
 * 1970 in hexadecimal), which has no zone to be guessed. What goes on in further lines is set in by the width of its field's name, and left out.
 */
export function verboseEntries(text: string): JsonElement[] {
  const entries: { value: Record<string, unknown>; line: number; text: string }[] = [];
  let line = 0;
  for (const raw of text.split("\n")) {
    line++;
    const content = raw.trimEnd();
    const cursor = ENTRY.exec(content)?.[1];
    if (cursor !== undefined) {
      const at = (key: string): string | undefined => new RegExp(`;${key}=([0-9a-f]{1,14})(?:;|$)`).exec(cursor)?.[1];
      const [since, time] = [at("m"), at("t")];
      const value = {
        ...(time === undefined ? {} : { __REALTIME_TIMESTAMP: String(Number.parseInt(time, 16)) }),
        ...(since === undefined ? {} : { __MONOTONIC_TIMESTAMP: Number.parseInt(since, 16) }),
      };
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
