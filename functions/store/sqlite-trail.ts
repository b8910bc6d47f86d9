import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import type { AuditEvent } from "../triage/ports.ts";
import type { Head } from "./verify.ts";

/**
 * The audit trail of a SQLite store, for audits: read only, event by event, and as it was at one moment, even while netcheck goes on writing.
 * The table of ends names the chain over all incidents "*" (functions/store/sqlite.ts).
 */
export class SqliteTrail {
  readonly #db: DatabaseSync;

  /** @throws if the file cannot be read or holds no audit trail */
  constructor(file: string) {
    try {
      this.#db = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
      // one view of the file until it is closed: the first read fixes it
      this.#db.exec("BEGIN; SELECT count(*) FROM head");
    } catch (cause) {
      throw new Error(`store: could not read the audit trail in ${file}: ${(cause as Error).message}`, { cause });
    }
  }

  close(): void {
    this.#db.close();
  }

  /** Events of one incident in order, or of all in global order; what is stored, which may be no event. */
  *events(incident?: string): Generator<unknown> {
    const [where, values]: [string, SQLInputValue[]] = incident === undefined ? ["ORDER BY global", []] : ["WHERE incident = ? ORDER BY sequence", [incident]];
    for (const { json } of this.#db.prepare(`SELECT json FROM audit ${where}`).iterate(...values) as Iterable<{ json: string }>) yield parsed(json);
  }

  heads(): readonly Head[] {
    const rows = this.#db.prepare("SELECT incident, sequence, hash FROM head ORDER BY incident").all() as unknown as {
      incident: string;
      sequence: number;
      hash: string;
    }[];
    return rows.map(({ incident, sequence, hash }) => ({ incident: incident === "*" ? undefined : incident, sequence, hash }));
  }

  /** The last event before a time: what an export of the later ones begins behind. Its number over all incidents; 0 if there is none. */
  lastBefore(time: number): number {
    let last = 0;
    for (const event of this.events()) {
      const { at, globalSequence } = event as AuditEvent;
      // clocks differ between machines: the order of the chain counts, up to the first event that is late enough
      if (Date.parse(at) >= time) return last;
      last = globalSequence;
    }
    return last;
  }
}

/** What is no JSON is no event: the check says so, with its place. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
