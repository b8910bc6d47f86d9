import { createReadStream, createWriteStream, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { ARCHIVED, archiveKey } from "../store/archive-layout.ts";
import { SqliteTrail } from "../store/sqlite-trail.ts";
import { type Finding, type Head, Trail } from "../store/verify.ts";
import type { AuditEvent } from "../triage/ports.ts";
import { CommandError, UsageError } from "./errors.ts";

/** The last line of an export: where the chains in it end, and where they begin. */
export interface HeadsLine {
  readonly schema: typeof HEADS;
  readonly exportedAt: string;
  /** Of an export of one incident. */
  readonly incident?: string;
  /** Of an export of the later events: the ends of the chains before the first of them. */
  readonly after: readonly Head[];
  readonly heads: readonly Head[];
}
export const HEADS = "netcheck.audit-heads/1";

/** A trail that was read to its end, and what it says of itself. */
export interface ReadTrail {
  readonly name: string;
  readonly trail: Trail;
  readonly findings: readonly Finding[];
  /** What could not be checked, and what to do about it. */
  readonly notes: readonly string[];
  readonly incident: string | undefined;
  /** When it was as it is, as it says; undefined if it does not. */
  readonly asOf: number | undefined;
}

/**
 * Reads and checks a trail: a folder with local mode's data, an archive that was downloaded into a folder, or a file of JSON lines.
 * @throws CommandError if there is none
 */
export async function readTrail(path: string, anchors: readonly Head[]): Promise<ReadTrail> {
  if (!existsSync(path)) throw new CommandError(`${path}: there is no such file or folder`);
  if (!statSync(path).isDirectory()) return readExport(path, anchors);
  return existsSync(join(path, "store.sqlite")) ? readStore(path, anchors) : readArchive(path, anchors);
}

/** The store of local mode. @throws CommandError if there is none in the folder, or it cannot be read */
export function openStore(directory: string): SqliteTrail {
  const file = join(directory, "store.sqlite");
  if (!existsSync(file)) throw new CommandError(`there is no audit trail in ${directory}: start local mode first, or name another --directory`);
  try {
    return new SqliteTrail(file);
  } catch (error) {
    throw new CommandError((error as Error).message, { cause: error });
  }
}

function readStore(directory: string, anchors: readonly Head[]): ReadTrail {
  const store = openStore(directory);
  try {
    const trail = new Trail({ anchors });
    for (const event of store.events()) trail.add(event);
    return { name: directory, trail, findings: trail.end({ heads: store.heads() }), notes: [], incident: undefined, asOf: Date.now() };
  } finally {
    store.close();
  }
}

/** Objects of the archive, as `aws s3 sync` writes them: in any folders, one event each, in order of the numbers in their names. */
async function readArchive(directory: string, anchors: readonly Head[]): Promise<ReadTrail> {
  const objects: { readonly number: number; readonly file: string }[] = [];
  let others = 0;
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const number = Number(ARCHIVED.exec(entry.name)?.[1]);
    if (Number.isSafeInteger(number)) objects.push({ number, file: join(entry.parentPath, entry.name) });
    else others++;
  }
  if (objects.length === 0)
    throw new CommandError(
      `${directory}: there is neither a store.sqlite nor an archived event in it. Archived events are files like "000000000001-inc-0123456789ab-1.json"`,
    );
  objects.sort((a, b) => a.number - b.number || (a.file < b.file ? -1 : 1));
  const trail = new Trail({ anchors });
  const findings: Finding[] = [];
  for (const { file } of objects) {
    const event = parsed(readFileSync(file, "utf8"));
    trail.add(event);
    const name = basename(file);
    if (event !== undefined && !fitsName(event as AuditEvent, name))
      findings.push({ kind: "edited", text: `${name} holds another event than its name says: it was written over or renamed` });
  }
  const notes = [
    ...(others === 0 ? [] : [`${others} other files in ${directory} were not read`]),
    ...(anchors.length > 0
      ? []
      : ["an archive does not say where it ends: events that are missing at its end show only against --anchors, or against the table (npm run audit)"]),
  ];
  return { name: directory, trail, findings: [...findings, ...trail.end({})], notes, incident: undefined, asOf: undefined };
}

const fitsName = (event: AuditEvent, name: string): boolean => {
  const { at, globalSequence, incident, sequence } = event;
  return typeof at === "string" && basename(archiveKey({ at, globalSequence, incident, sequence })) === name;
};

async function readExport(file: string, anchors: readonly Head[]): Promise<ReadTrail> {
  let trail: Trail | undefined;
  let ends: HeadsLine | undefined;
  const findings: Finding[] = [];
  // a file that somebody named by mistake was not tampered with
  let foreign = 0;
  let own = 0;
  const start = await scopeOf(file);
  for await (const line of linesOf(file)) {
    if (line.trim() === "") continue;
    const read = parsed(line);
    trail ??= new Trail({ incident: start, anchors });
    if (ends !== undefined) {
      if (trail.count > 0 && isHeads(read)) findings.push({ kind: "inserted", text: "there are two lines with ends: the file was put together from several" });
      else findings.push({ kind: "inserted", text: "there are events behind the line with the ends: they were put in after the export" });
    }
    if (typeof read === "object" && read !== null) own++;
    else foreign++;
    if (isHeads(read)) ends = read;
    else trail.add(read);
  }
  if (foreign > 0 && own === 0) throw new CommandError(`${file}: none of its lines is JSON, so it is no file of netcheck audit export`);
  if (own === 0)
    throw new CommandError(`${file}: it is empty, and an export ends with a line of ends at least: export once more, and look whether it ends well`);
  trail ??= new Trail({ anchors });
  findings.push(...trail.end({ heads: ends?.heads.map(plainHead), after: ends?.after.map(plainHead) ?? [] }));
  const whole = ends === undefined && anchors.length === 0;
  const notes = [
    ...(whole ? ["the file does not end with a line of ends, as an export does: events that are missing at its end do not show. Give --anchors"] : []),
    ...(ends !== undefined && ends.after.length > 0
      ? [`it begins behind event ${ends.after.find(({ incident }) => incident === ends?.incident)?.sequence ?? 0}: what is before is not in the file`]
      : []),
    ...(ends?.incident === undefined ? [] : [`it holds incident ${ends.incident} alone: the chain over all incidents cannot be checked with it`]),
  ];
  const asOf = Date.parse(ends?.exportedAt ?? "");
  return { name: file, trail, findings, notes, incident: ends?.incident, asOf: Number.isNaN(asOf) ? undefined : asOf };
}

/** The incident that an export is of, which its last line says; undefined if it is of all. */
async function scopeOf(file: string): Promise<string | undefined> {
  const [last] = await headsLines(file, true);
  return last?.incident;
}

/** Lines with ends in a file: of an export its last line, of a file of anchors all. @param tail only within the last 64 KB … or all of it */
async function headsLines(file: string, tail: boolean): Promise<HeadsLine[]> {
  const found: HeadsLine[] = [];
  for await (const line of linesOf(file, tail ? Math.max(0, statSync(file).size - TAIL) : 0)) {
    if (!line.includes(HEADS)) continue;
    const read = parsed(line);
    if (isHeads(read)) found.push(read);
  }
  return found.reverse();
}
/** An export of one incident ends with a short line: only that one must be found from behind. */
const TAIL = 65_536;

/**
 * Earlier ends that somebody kept: the last lines of exports, or whole exports.
 * @throws CommandError if the file holds none
 */
export async function readAnchors(file: string): Promise<readonly Head[]> {
  if (!existsSync(file)) throw new CommandError(`${file}: there is no such file`);
  const lines = await headsLines(file, false);
  if (lines.length === 0)
    throw new CommandError(`${file}: it holds no ends of chains. Keep the last line of an export: netcheck audit export | tail -n 1 >> anchors.jsonl`);
  return lines.flatMap(({ heads }) => heads.map(plainHead));
}

const plainHead = ({ incident, sequence, hash }: Head): Head => ({ incident, sequence, hash });

function isHeads(read: unknown): read is HeadsLine {
  if (typeof read !== "object" || read === null || (read as { schema?: unknown }).schema !== HEADS) return false;
  const { heads, after } = read as Partial<HeadsLine>;
  const isList = (list: unknown) =>
    Array.isArray(list) &&
    list.every(
      (head: unknown) => typeof head === "object" && head !== null && typeof (head as Head).sequence === "number" && typeof (head as Head).hash === "string",
    );
  return isList(heads) && isList(after);
}

const linesOf = (file: string, start = 0): AsyncIterable<string> =>
  createInterface({ input: createReadStream(file, { start, encoding: "utf8" }), crlfDelay: Number.POSITIVE_INFINITY });

/** What is no JSON is no event: the check says so, with its place. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What two trails say of each other. @throws UsageError if one is of an incident and the other is not */
export function against(one: ReadTrail, other: ReadTrail): { readonly findings: readonly Finding[]; readonly common: number } {
  if (one.incident !== other.incident)
    throw new UsageError(
      `${one.name} and ${other.name} cannot be compared: one is of ${one.incident ?? "all incidents"}, the other of ${other.incident ?? "all incidents"}`,
    );
  const { findings, common } = one.trail.against(other.trail, [one.name, other.name]);
  const [older, newer] = (one.asOf ?? 0) <= (other.asOf ?? 0) ? [one, other] : [other, one];
  const shrunk = older.asOf !== undefined && newer.asOf !== undefined && newer.trail.head.sequence < older.trail.head.sequence;
  const text = `${newer.name} is the newer one and ends with event ${newer.trail.head.sequence}, but ${older.name} has ${older.trail.head.sequence}`;
  return { findings: shrunk ? [...findings, { kind: "truncated", text }] : findings, common };
}

export interface ExportOptions {
  readonly incident: string | undefined;
  /** Milliseconds. Events from the first one on that is not older. */
  readonly since: number | undefined;
  /** A file; stdout unless given. */
  readonly output: string | undefined;
}

/** Writes a trail as JSON lines with its ends as the last line. Returns how many events it wrote. */
export async function exportTrail(store: SqliteTrail, { incident, since, output }: ExportOptions): Promise<number> {
  const from = since === undefined ? 0 : store.lastBefore(since);
  let written = 0;
  function* lines(): Generator<string> {
    const after = new Map<string | undefined, Head>();
    const there = new Set<string | undefined>([incident]);
    let batch = "";
    for (const event of store.events(incident)) {
      const { globalSequence, sequence, hash, incident: of } = event as AuditEvent;
      if (globalSequence <= from) {
        if (incident === undefined) after.set(undefined, { incident: undefined, sequence: globalSequence, hash });
        after.set(of, { incident: of, sequence, hash });
        continue;
      }
      written++;
      there.add(of);
      batch += `${JSON.stringify(event)}\n`;
      if (batch.length > 1 << 20) {
        yield batch;
        batch = "";
      }
    }
    const kept = (head: Head) => there.has(head.incident);
    const ends: HeadsLine = {
      schema: HEADS,
      exportedAt: new Date().toISOString(),
      ...(incident === undefined ? {} : { incident }),
      after: [...after.values()].filter(kept),
      heads: store.heads().filter(kept),
    };
    yield `${batch}${JSON.stringify(ends)}\n`;
  }
  if (output === undefined) await pipeline(Readable.from(lines()), process.stdout, { end: false });
  else {
    try {
      await pipeline(Readable.from(lines()), createWriteStream(output, { mode: 0o600 }));
    } catch (cause) {
      throw new CommandError(`${output}: could not write it: ${(cause as Error).message}`, { cause });
    }
  }
  return written;
}
