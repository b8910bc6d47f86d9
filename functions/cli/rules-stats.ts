import { createReadStream, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ARCHIVED } from "../store/archive-layout.ts";
import { type Precision, precisionsIn } from "../triage/votes.ts";
import { HEADS, openStore } from "./audit-source.ts";
import { CommandError } from "./errors.ts";

/**
 * How often people said that a rule named the right cause, from the audit trail: local mode's folder, an export (`netcheck audit export`), or an archive that
 * was downloaded into a folder. Whether the trail is whole is another question (`netcheck audit verify`).
 * @throws CommandError if there is no trail
 */
export async function ruleStats(path: string): Promise<readonly Precision[]> {
  if (!existsSync(path)) throw new CommandError(`${path}: there is no such file or folder. Name local mode's data, or a file of netcheck audit export`);
  if (!statSync(path).isDirectory()) return precisionsIn(await linesOf(path));
  const archived = existsSync(join(path, "store.sqlite")) ? [] : archivedIn(path);
  if (archived.length > 0) return precisionsIn(archived);
  const store = openStore(path);
  try {
    return precisionsIn(store.events());
  } finally {
    store.close();
  }
}

/** Only lines about votes are kept: a trail may be long. @throws CommandError if no line is of a trail */
async function linesOf(file: string): Promise<readonly unknown[]> {
  const events: unknown[] = [];
  let ours = false;
  for await (const line of createInterface({ input: createReadStream(file, "utf8"), crlfDelay: Number.POSITIVE_INFINITY })) {
    ours ||= line.includes('"globalSequence"') || line.includes(HEADS);
    if (line.includes('"feedback"')) events.push(parsed(line));
  }
  if (!ours) throw new CommandError(`${file}: it is no file of netcheck audit export: no line of it is an event. Name one, or local mode's data`);
  return events;
}

/** Events of an archive, in the order of their numbers. */
function archivedIn(folder: string): readonly unknown[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && ARCHIVED.test(entry.name))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((entry) => parsed(readFileSync(join(entry.parentPath, entry.name), "utf8")));
}

/** What is no JSON is no vote. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A line for people. */
export const statsText = ({ rule, right, votes }: Precision): string =>
  `${rule.padEnd(34)} right ${String(right).padStart(4)} of ${String(votes).padEnd(5)} ${String(Math.round((100 * right) / votes)).padStart(3)} %`;
