import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { canonical, chain } from "../triage/audit.ts";
import type { AuditDraft, AuditEvent, Incident, MessageRef, Proposal, ProposalState, Reserved, Store } from "../triage/ports.ts";
import { checkDocument } from "./document.ts";
import { take } from "./places.ts";
import { Statements } from "./sqlite-statements.ts";
import type { Head } from "./verify.ts";

/**
 * The store on one SQLite file, for local mode and tests. Several processes may use it at once. What was acknowledged survives `kill -9` and a power
 * cut; a change and the audit events that record it are one transaction.
 */
export class SqliteStore implements Store {
  readonly #db: DatabaseSync;
  readonly #sql: Statements;

  /** @param file made with its folder if need be and readable by its owner only (captures are in it); or ":memory:" */
  constructor(file: string) {
    this.#db = open(file);
    this.#sql = new Statements(this.#db);
  }

  close(): void {
    this.#db.close();
  }

  // ---- incidents ----

  async open(incident: Incident, event: AuditDraft): Promise<Incident> {
    return this.#sql.transaction(() => {
      const old = this.#incident(incident.id);
      if (old) return old;
      const json = JSON.stringify(incident);
      this.#sql.run("INSERT INTO incident(id, created, json) VALUES(?, ?, ?)", incident.id, incident.createdAt, json);
      this.#append(incident.id, [event]);
      return JSON.parse(json) as Incident;
    });
  }

  async incident(id: string): Promise<Incident | undefined> {
    return this.#incident(id);
  }

  async incidents(limit: number): Promise<readonly Incident[]> {
    return this.#sql
      .rows<{ json: string }>("SELECT json FROM incident ORDER BY created DESC, rowid DESC LIMIT ?", limit)
      .map(({ json }) => JSON.parse(json) as Incident);
  }

  async update(id: string, change: Partial<Omit<Incident, "id">>, events: readonly AuditDraft[]): Promise<Incident> {
    return this.#sql.transaction(() => {
      const old = this.#incident(id);
      if (!old) throw new Error(`store: could not update incident ${id}: there is none`);
      const json = JSON.stringify({ ...old, ...change, id });
      this.#sql.run("UPDATE incident SET json = ? WHERE id = ?", json, id);
      this.#append(id, events);
      return JSON.parse(json) as Incident;
    });
  }

  // ---- proposals ----

  async propose(proposal: Proposal, event: AuditDraft): Promise<Proposal> {
    return this.#sql.transaction(() => {
      const old = this.#proposal(proposal.id);
      if (old) return old;
      const json = JSON.stringify(proposal);
      this.#sql.run("INSERT INTO proposal(id, json) VALUES(?, ?)", proposal.id, json);
      this.#append(proposal.incident, [event]);
      return JSON.parse(json) as Proposal;
    });
  }

  async proposal(id: string): Promise<Proposal | undefined> {
    return this.#proposal(id);
  }

  /**
   * As the port says. A list of decisions that does not begin with the stored one is refused as well (`applied: false`): its author had not seen a
   * decision that somebody made meanwhile, and would have deleted it.
   */
  async transition(
    id: string,
    from: readonly ProposalState[],
    change: Partial<Omit<Proposal, "id" | "incident" | "hash">>,
    event: AuditDraft,
  ): Promise<{ readonly applied: boolean; readonly proposal: Proposal }> {
    return this.#sql.transaction(() => {
      const old = this.#proposal(id);
      if (!old) throw new Error(`store: could not change proposal ${id}: there is none`);
      const stale = change.decisions !== undefined && canonical(change.decisions.slice(0, old.decisions.length)) !== canonical(old.decisions);
      if (stale || !from.includes(old.state)) return { applied: false, proposal: old };
      const json = JSON.stringify({ ...old, ...change, id, incident: old.incident, hash: old.hash });
      this.#sql.run("UPDATE proposal SET json = ? WHERE id = ?", json, id);
      this.#append(old.incident, [event]);
      return { applied: true, proposal: JSON.parse(json) as Proposal };
    });
  }

  // ---- audit ----

  async record(incident: string, events: readonly AuditDraft[]): Promise<void> {
    this.#sql.transaction(() => this.#append(incident, events));
  }

  async audit(incident?: string): Promise<readonly AuditEvent[]> {
    const rows =
      incident === undefined
        ? this.#sql.rows<{ json: string }>("SELECT json FROM audit ORDER BY global")
        : this.#sql.rows<{ json: string }>("SELECT json FROM audit WHERE incident = ? ORDER BY sequence", incident);
    return rows.map(({ json }) => JSON.parse(json) as AuditEvent);
  }

  /** Where the chains should end: kept apart from the events, so that a chain that was cut off shows. */
  async heads(): Promise<readonly Head[]> {
    const rows = this.#sql.rows<{ incident: string; sequence: number; hash: string }>("SELECT incident, sequence, hash FROM head ORDER BY incident");
    return rows.map(({ incident, sequence, hash }) => ({ incident: incident === WHOLE ? undefined : incident, sequence, hash }));
  }

  /** Links the events behind what is there, within the transaction of the change that they record. Keys that are there already are skipped. */
  #append(incident: string, drafts: readonly AuditDraft[]): void {
    for (const draft of drafts) {
      if (this.#sql.row("SELECT 1 FROM audit WHERE incident = ? AND key = ?", incident, draft.key)) continue;
      const last = this.#sql.row<{ json: string }>("SELECT json FROM audit WHERE incident = ? ORDER BY sequence DESC LIMIT 1", incident);
      const globalLast = this.#sql.row<{ json: string }>("SELECT json FROM audit ORDER BY global DESC LIMIT 1");
      // What is hashed is what a reader will get back: plain JSON.
      const plain = JSON.parse(JSON.stringify(draft)) as AuditDraft;
      const event = chain(incident, plain, sealed(last), sealed(globalLast));
      const json = canonical(event);
      this.#sql.run(
        "INSERT INTO audit(global, incident, sequence, key, json) VALUES(?, ?, ?, ?, ?)",
        event.globalSequence,
        incident,
        event.sequence,
        event.key,
        json,
      );
      this.#head(incident, event.sequence, event.hash);
      this.#head(WHOLE, event.globalSequence, event.hash);
    }
  }

  #head(incident: string, sequence: number, hash: string): void {
    this.#sql.run(
      "INSERT INTO head(incident, sequence, hash) VALUES(?, ?, ?) ON CONFLICT DO UPDATE SET sequence = excluded.sequence, hash = excluded.hash",
      incident,
      sequence,
      hash,
    );
  }

  // ---- data, messages, places ----

  async put(key: string, data: Uint8Array): Promise<void> {
    if (!/^[A-Za-z0-9_/.-]{1,200}$/.test(key)) throw new RangeError(`store: could not put ${JSON.stringify(key)}: a key has 1 to 200 of A-Z a-z 0-9 _ / . -`);
    this.#sql.run("INSERT INTO blob(key, data) VALUES(?, ?) ON CONFLICT DO UPDATE SET data = excluded.data", key, data);
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    return this.#sql.row<{ data: Uint8Array }>("SELECT data FROM blob WHERE key = ?", key)?.data;
  }

  async change<T>(kind: string, key: string, update: (stored: T | undefined) => T | undefined): Promise<T | undefined> {
    checkDocument(kind, key);
    return this.#sql.transaction(() => {
      const old = this.#sql.row<{ json: string }>("SELECT json FROM document WHERE kind = ? AND key = ?", kind, key);
      const made = update(old && (JSON.parse(old.json) as T));
      if (made === undefined) {
        this.#sql.run("DELETE FROM document WHERE kind = ? AND key = ?", kind, key);
        return undefined;
      }
      const json = JSON.stringify(made);
      this.#sql.run("INSERT INTO document(kind, key, json) VALUES(?, ?, ?) ON CONFLICT DO UPDATE SET json = excluded.json", kind, key, json);
      return JSON.parse(json) as T;
    });
  }

  async kept<T>(kind: string, key: string): Promise<T | undefined> {
    checkDocument(kind, key);
    const row = this.#sql.row<{ json: string }>("SELECT json FROM document WHERE kind = ? AND key = ?", kind, key);
    return row && (JSON.parse(row.json) as T);
  }

  async list<T>(
    kind: string,
    { prefix = "", limit, newestFirst = false }: { readonly prefix?: string; readonly limit: number; readonly newestFirst?: boolean },
  ): Promise<readonly { readonly key: string; readonly value: T }[]> {
    const rows = this.#sql.rows<{ key: string; json: string }>(
      `SELECT key, json FROM document WHERE kind = ? AND substr(key, 1, ?) = ? ORDER BY key ${newestFirst ? "DESC" : "ASC"} LIMIT ?`,
      kind,
      prefix.length,
      prefix,
      limit,
    );
    return rows.map(({ key, json }) => ({ key, value: JSON.parse(json) as T }));
  }

  async remember(key: string, message: MessageRef): Promise<void> {
    this.#sql.run("INSERT INTO message(key, json) VALUES(?, ?) ON CONFLICT DO UPDATE SET json = excluded.json", key, JSON.stringify(message));
  }

  async recall(key: string): Promise<MessageRef | undefined> {
    const row = this.#sql.row<{ json: string }>("SELECT json FROM message WHERE key = ?", key);
    return row && (JSON.parse(row.json) as MessageRef);
  }

  async reserve(scope: string, holder: string, most: number, keepMs: number | undefined, at: Date): Promise<Reserved> {
    return this.#sql.transaction(() => {
      const held = this.#sql.rows<{ holder: string; at: number }>("SELECT holder, at FROM place WHERE scope = ? ORDER BY at, holder", scope);
      const { ok, holders, places } = take(held, { holder, most, keepMs, at: at.getTime() });
      if (places !== undefined) {
        this.#sql.run("DELETE FROM place WHERE scope = ?", scope);
        for (const place of places) this.#sql.run("INSERT INTO place(scope, holder, at) VALUES(?, ?, ?)", scope, place.holder, place.at);
      }
      return { ok, holders };
    });
  }

  async release(scope: string, holder: string): Promise<void> {
    this.#sql.run("DELETE FROM place WHERE scope = ? AND holder = ?", scope, holder);
  }

  // ---- the file ----

  #incident(id: string): Incident | undefined {
    const row = this.#sql.row<{ json: string }>("SELECT json FROM incident WHERE id = ?", id);
    return row && (JSON.parse(row.json) as Incident);
  }

  #proposal(id: string): Proposal | undefined {
    const row = this.#sql.row<{ json: string }>("SELECT json FROM proposal WHERE id = ?", id);
    return row && (JSON.parse(row.json) as Proposal);
  }
}

/** The head of the chain over all incidents: no incident has this id. */
const WHOLE = "*";
const SCHEMA_VERSION = 1;
/** How long to wait for another process that writes, in milliseconds. */
const BUSY_MS = 5000;

function sealed(row: { json: string } | undefined): AuditEvent | undefined {
  return row && (JSON.parse(row.json) as AuditEvent);
}

function open(file: string): DatabaseSync {
  if (file !== ":memory:" && !existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, "", { mode: 0o600, flag: "a" });
  }
  const db = new DatabaseSync(file, { timeout: BUSY_MS });
  try {
    // FULL: a decision that was acknowledged is still there after a power cut.
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; BEGIN IMMEDIATE");
    const { user_version: version } = db.prepare("PRAGMA user_version").get() as { user_version: number };
    if (version !== 0 && version !== SCHEMA_VERSION) throw new Error(`it was written by another version (${version})`);
    // The triggers keep the audit trail append-only against mistakes; against malice there is the hash chain.
    db.exec(`
      CREATE TABLE IF NOT EXISTS incident(id TEXT PRIMARY KEY, created TEXT NOT NULL, json TEXT NOT NULL) STRICT;
      CREATE INDEX IF NOT EXISTS incident_created ON incident(created);
      CREATE TABLE IF NOT EXISTS proposal(id TEXT PRIMARY KEY, json TEXT NOT NULL) STRICT;
      CREATE TABLE IF NOT EXISTS audit(global INTEGER PRIMARY KEY, incident TEXT NOT NULL, sequence INTEGER NOT NULL, key TEXT NOT NULL,
        json TEXT NOT NULL, UNIQUE(incident, sequence), UNIQUE(incident, key)) STRICT;
      CREATE TRIGGER IF NOT EXISTS audit_update BEFORE UPDATE ON audit BEGIN SELECT raise(ABORT, 'the audit trail is append-only'); END;
      CREATE TRIGGER IF NOT EXISTS audit_delete BEFORE DELETE ON audit BEGIN SELECT raise(ABORT, 'the audit trail is append-only'); END;
      CREATE TABLE IF NOT EXISTS head(incident TEXT PRIMARY KEY, sequence INTEGER NOT NULL, hash TEXT NOT NULL) STRICT;
      CREATE TABLE IF NOT EXISTS blob(key TEXT PRIMARY KEY, data BLOB NOT NULL) STRICT;
      CREATE TABLE IF NOT EXISTS document(kind TEXT NOT NULL, key TEXT NOT NULL, json TEXT NOT NULL, PRIMARY KEY(kind, key)) STRICT;
      CREATE TABLE IF NOT EXISTS message(key TEXT PRIMARY KEY, json TEXT NOT NULL) STRICT;
      CREATE TABLE IF NOT EXISTS place(scope TEXT NOT NULL, holder TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY(scope, holder)) STRICT;
      PRAGMA user_version = ${SCHEMA_VERSION};
      COMMIT`);
    return db;
  } catch (cause) {
    db.close();
    throw new Error(`store: could not open ${file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
