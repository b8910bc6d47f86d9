import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** Another process has the file open. */
export class FileLockedError extends Error {
  override readonly name = "FileLockedError";
}

/**
 * Opens a SQLite file for this process alone, making it (readable by its owner only) and its folder if need be. What is committed survives `kill -9` and a
 * power cut.
 * @param schema statements that make what is not there yet
 * @throws {FileLockedError} if another process uses it; an Error if another version wrote it or it cannot be opened
 */
export function openExclusive(file: string, version: number, schema: string): DatabaseSync {
  if (file !== ":memory:" && !existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, "", { mode: 0o600 });
  }
  const db = new DatabaseSync(file);
  try {
    // EXCLUSIVE: SQLite holds the file lock until the file is closed or the process dies (the kernel sees to that, also on kill -9). WAL: one fsync per
    // commit. FULL: with NORMAL a power cut could take back the last commits.
    db.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    const { user_version: found } = db.prepare("PRAGMA user_version").get() as { user_version: number };
    if (found !== 0 && found !== version) throw new Error(`it was written by another version (${found})`);
    db.exec(`BEGIN IMMEDIATE; ${schema}; PRAGMA user_version = ${version}; COMMIT`);
    return db;
  } catch (cause) {
    db.close();
    const busy = cause instanceof Error && "errcode" in cause && cause.errcode === 5;
    if (busy) throw new FileLockedError(`could not open ${file}: another process runs on it`, { cause });
    throw new Error(`could not open ${file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
