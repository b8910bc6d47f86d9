import type { DatabaseSync, StatementSync } from "node:sqlite";
import { openExclusive } from "./sqlite-file.ts";

const SCHEMA_VERSION = 1;

/**
 * Maps that are still there after the process was killed: the memory is what is worked with, a SQLite file follows it. All that changes in one go of the
 * event loop, or up to a `flush`, is written in one transaction.
 */
export class Kept {
  readonly #db: DatabaseSync;
  readonly #put: StatementSync;
  readonly #drop: StatementSync;
  readonly #all: StatementSync;
  /** What is not written yet: keys by map. */
  readonly #changed = new Map<KeptMap<unknown>, Set<string>>();
  #closed = false;
  #waiting = false;

  /**
   * @param file made with its folder if need be, readable by its owner only; or ":memory:"
   * @throws if another process uses the file, or another version wrote it
   */
  constructor(file: string) {
    this.#db = open(file);
    // Not REPLACE: a changed row stays where it was, as in a Map.
    this.#put = this.#db.prepare(
      "INSERT INTO kept(kind, id, json, data) VALUES(?, ?, ?, ?) ON CONFLICT DO UPDATE SET json = excluded.json, data = excluded.data",
    );
    this.#drop = this.#db.prepare("DELETE FROM kept WHERE kind = ? AND id = ?");
    this.#all = this.#db.prepare("SELECT id, json, data FROM kept WHERE kind = ? ORDER BY rowid");
  }

  /** The map of that name, with what was in it. To be asked for once per name. */
  map<V>(name: string): KeptMap<V> {
    const map = new KeptMap<V>(name, (key) => this.#note(map as KeptMap<unknown>, key));
    for (const { id, json, data } of this.#all.all(name) as unknown as { id: string; json: string; data: Uint8Array | null }[]) {
      const value = JSON.parse(json) as V;
      map.restore(id, data === null ? value : { ...value, data: Buffer.from(data) });
    }
    return map;
  }

  /** Writes what has changed, now: for what is about to be told to others. @throws if it cannot be written; then it is tried again with the next change */
  flush(): void {
    if (this.#closed || this.#changed.size === 0) return;
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      for (const [map, keys] of this.#changed) for (const key of keys) this.#write(map, key);
      this.#db.exec("COMMIT");
    } catch (error) {
      // After some errors (disk full) SQLite has rolled back by itself.
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      throw new Error(`local workspace: could not write its file: ${(error as Error).message}`, { cause: error });
    }
    this.#changed.clear();
  }

  /** Writes the last changes and lets the file go. Later changes are in memory only. */
  close(): void {
    if (this.#closed) return;
    this.flush();
    this.#closed = true;
    this.#db.close();
  }

  #note(map: KeptMap<unknown>, key: string): void {
    const keys = this.#changed.get(map);
    if (keys === undefined) this.#changed.set(map, new Set([key]));
    else keys.add(key);
    if (this.#waiting) return;
    this.#waiting = true;
    // Before anything else happens, so before anybody hears of the change.
    queueMicrotask(() => {
      this.#waiting = false;
      this.flush();
    });
  }

  #write(map: KeptMap<unknown>, key: string): void {
    const value = map.get(key);
    if (value === undefined) {
      this.#drop.run(map.name, key);
      return;
    }
    const { data } = value as { data?: unknown };
    const bytes = data instanceof Uint8Array ? data : undefined;
    this.#put.run(map.name, key, JSON.stringify(bytes === undefined ? value : { ...(value as object), data: undefined }), bytes ?? null);
  }
}

/** A Map whose values are plain JSON (and may have bytes under `data`). A value that was changed in place has to be set again. */
export class KeptMap<V> extends Map<string, V> {
  readonly name: string;
  readonly #changed: (key: string) => void;

  constructor(name: string, changed: (key: string) => void) {
    super();
    this.name = name;
    this.#changed = changed;
  }

  override set(key: string, value: V): this {
    super.set(key, value);
    this.#changed(key);
    return this;
  }

  override delete(key: string): boolean {
    this.#changed(key);
    return super.delete(key);
  }

  override clear(): void {
    for (const key of this.keys()) this.delete(key);
  }

  /** Puts in what the file says. */
  restore(key: string, value: V): void {
    super.set(key, value);
  }
}

// Two processes would overwrite each other, and the engine must never remember having posted what a power cut took back here.
function open(file: string): DatabaseSync {
  try {
    return openExclusive(file, SCHEMA_VERSION, SCHEMA);
  } catch (error) {
    throw new Error(`local workspace: ${(error as Error).message}`, { cause: error });
  }
}

const SCHEMA = `
      CREATE TABLE IF NOT EXISTS kept(kind TEXT NOT NULL, id TEXT NOT NULL, json TEXT NOT NULL, data BLOB, UNIQUE(kind, id)) STRICT`;
