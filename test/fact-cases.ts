import { existsSync, readdirSync, readFileSync } from "node:fs";
import { commandLine, searchOf } from "../functions/facts/command.ts";
import { type AnyFact, MAX_UNPARSED, type Parsed } from "../functions/facts/fact.ts";
import { pipeOf } from "../functions/facts/pipe.ts";

/**
 * The fixtures of facts: test/facts/<fact-id>/<case>.txt (what the command printed) beside <case>.json (command in, value out), and what must hold of
 * whatever a fact reads. Shared by test/facts.test.ts and test/fuzz/.
 */
export interface FactCase {
  command: string;
  exitCode?: number;
  stderr?: string;
  value?: unknown;
  unparsed?: unknown;
}

/** Folder of a fact's cases; it may be missing. */
export const factFolder = (id: string): URL => new URL(`facts/${id}/`, import.meta.url);

/** Names of a fact's cases ("<case>.txt"), sorted. */
export function caseFiles(id: string): string[] {
  const folder = factFolder(id);
  return existsSync(folder)
    ? readdirSync(folder)
        .filter((file) => file.endsWith(".txt"))
        .sort()
    : [];
}

/** Where the JSON half of a case is. */
export const goldenOf = (id: string, file: string): URL => new URL(file.replace(/\.txt$/, ".json"), factFolder(id));

/** One case: the text and what stands beside it. */
export function readFactCase(id: string, file: string): { text: string; given: FactCase } {
  return { text: readFileSync(new URL(file, factFolder(id)), "utf8"), given: JSON.parse(readFileSync(goldenOf(id, file), "utf8")) as FactCase };
}

/** What the fact makes of a text that the case's command printed. @throws {Error} if the fact does not know the command. */
export function parseCase(fact: AnyFact, text: string, given: Pick<FactCase, "command" | "exitCode" | "stderr">): Parsed<unknown> {
  const line = commandLine(given.command);
  const pipe = pipeOf(given.command);
  const view = fact.recognize(line.argv, searchOf(given.command), pipe);
  if (view === undefined) throw new Error(`${fact.id} does not recognise "${given.command}"`);
  return fact.parse({ text, argv: line.argv, view, sample: 1, exitCode: given.exitCode ?? 0, stderr: given.stderr ?? "", sorted: line.sorted, pipe });
}

/**
 * Checks what a fact read from any text, however garbled: the value is inside its schema, every row and every line that was not read names a line of the text
 * (or of stderr), and what was not read is kept up to the limit and counted. @throws {Error} that says what is wrong.
 */
export function checkParsed(fact: AnyFact, text: string, parsed: Parsed<unknown>, stderr = ""): void {
  fact.schema.parse(parsed.value);
  const last = Math.max(countLines(text), countLines(stderr));
  const named = (line: unknown): boolean => Number.isInteger(line) && (line as number) >= 1 && (line as number) <= last;
  const { unparsed, unparsedCount } = parsed;
  if (unparsed.length !== Math.min(unparsedCount, MAX_UNPARSED)) throw new Error(`${unparsed.length} unread lines are kept, ${unparsedCount} are counted`);
  for (const { line } of unparsed) if (!named(line)) throw new Error(`an unread line is said to be line ${line} of ${last}`);
  for (const [list, rows] of Object.entries(parsed.value as Record<string, unknown>)) {
    if (!Array.isArray(rows)) continue;
    for (const row of rows) if (!named(row.line)) throw new Error(`a row of ${list} is said to be on line ${row.line} of ${last}`);
  }
}

const countLines = (text: string): number => text.split("\n").length;
