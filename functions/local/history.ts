import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { ErrorObject, WireOperation } from "@aws/durable-execution-sdk-js";
import { Statements } from "../store/sqlite-statements.ts";
import type { Operation } from "./operation.ts";
import { FileLockedError, openExclusive } from "./sqlite-file.ts";

/** One run of a workflow. */
export interface Execution {
  readonly arn: string;
  readonly name: string;
  readonly status: "RUNNING" | "SUCCEEDED" | "FAILED" | "TIMED_OUT";
  /** What the workflow returned, parsed; undefined unless it succeeded. */
  readonly result: unknown;
  /** Why it failed. */
  readonly error: ErrorObject | undefined;
  /** Operations that count towards the limit of 3,000. */
  readonly operations: number;
}

/** The file belongs to an engine that runs. */
export class EngineLockedError extends Error {
  override readonly name = "EngineLockedError";
}

/** The SQLite file of the engine: executions and their operations. Knows how to store them, not what they mean. Times are milliseconds since 1970. */
export class History {
  readonly #db: DatabaseSync;
  readonly #sql: Statements;

  /**
   * @param file made with its folder if need be, readable by its owner only; or ":memory:"
   * @throws {EngineLockedError} if it is open elsewhere
   */
  constructor(file: string) {
    this.#db = open(file);
    this.#sql = new Statements(this.#db);
  }

  close(): void {
    this.#db.close();
  }

  /** All or nothing: an error takes back what `work` has written. */
  transaction<T>(work: () => T): T {
    return this.#sql.transaction(work);
  }

  // ---- executions ----

  add(arn: string, name: string, input: string, now: number, expires: number): void {
    this.#sql.run("INSERT INTO execution(arn, name, input, status, started, expires) VALUES(?, ?, ?, 'RUNNING', ?, ?)", arn, name, input, now, expires);
  }

  execution(arnOrName: string): (Execution & { readonly input: string; readonly failures: number }) | undefined {
    const row = this.#sql.row<ExecutionRow>("SELECT * FROM execution WHERE arn = ?1 OR name = ?1", arnOrName);
    if (!row) return undefined;
    const { arn, name, status, operations, input, failures } = row;
    const error = row.error === null ? undefined : (JSON.parse(row.error) as ErrorObject);
    return { arn, name, status, operations, input, failures, result: row.result ? JSON.parse(row.result) : undefined, error };
  }

  running(arn: string): boolean {
    return this.#sql.row("SELECT 1 FROM execution WHERE arn = ? AND status = 'RUNNING'", arn) !== undefined;
  }

  unfinished(): string[] {
    return this.#arns("SELECT arn FROM execution WHERE status = 'RUNNING' ORDER BY rowid");
  }

  /** Ends an execution; nothing of it is due any more. */
  end(arn: string, status: Execution["status"], result: string | undefined, error: ErrorObject | undefined, now: number): void {
    const text = error === undefined ? null : JSON.stringify(error);
    this.#sql.run(
      "UPDATE execution SET status = ?, result = ?, error = ?, ended = ?, due = NULL, expires = NULL WHERE arn = ?",
      status,
      result ?? null,
      text,
      now,
      arn,
    );
    this.#sql.run("UPDATE operation SET due = NULL WHERE arn = ?", arn);
  }

  /** Forgets executions that ended before a time. */
  purge(before: number): void {
    this.#sql.run("DELETE FROM execution WHERE ended < ?", before);
  }

  /** An invocation failed; the next one is due at `due`. */
  failed(arn: string, due: number): void {
    this.#sql.run("UPDATE execution SET failures = failures + 1, due = ? WHERE arn = ?", due, arn);
  }

  /** An invocation went well. */
  progressed(arn: string): void {
    this.#sql.run("UPDATE execution SET failures = 0 WHERE arn = ?", arn);
  }

  /** Counts one operation more and returns how many there are. */
  count(arn: string): number {
    this.#sql.run("UPDATE execution SET operations = operations + 1 WHERE arn = ?", arn);
    return this.#sql.row<{ operations: number }>("SELECT operations FROM execution WHERE arn = ?", arn)?.operations ?? 0;
  }

  // ---- operations ----

  /** @param changed whether the workflow is to be told */
  save(arn: string, { wire, due, expires, heartbeat }: Operation, changed: boolean): void {
    this.#sql.run(
      `INSERT INTO operation(arn, id, status, callback, due, expires, heartbeat, changed, wire) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT(arn, id) DO UPDATE SET status = excluded.status, callback = excluded.callback, due = excluded.due,
          expires = excluded.expires, heartbeat = excluded.heartbeat, changed = excluded.changed, wire = excluded.wire`,
      arn,
      wire.Id ?? "",
      wire.Status ?? "",
      wire.CallbackDetails?.CallbackId ?? null,
      due ?? null,
      expires ?? null,
      heartbeat ?? null,
      changed ? 1 : 0,
      JSON.stringify(wire),
    );
  }

  operation(arn: string, id: string): Operation | undefined {
    const row = this.#sql.row<OperationRow>("SELECT * FROM operation WHERE arn = ? AND id = ?", arn, id);
    return row && operation(row);
  }

  callback(id: string): { readonly arn: string; readonly callback: Operation } | undefined {
    const row = this.#sql.row<OperationRow>("SELECT * FROM operation WHERE callback = ?", id);
    return row && { arn: row.arn, callback: operation(row) };
  }

  /** All operations of an execution, in order of their start. */
  operations(arn: string): WireOperation[] {
    return this.#sql.rows<OperationRow>("SELECT * FROM operation WHERE arn = ? ORDER BY rowid", arn).map((row) => operation(row).wire);
  }

  /** The operations that the workflow has not been told of yet; from now on it has. */
  takeChanged(arn: string): WireOperation[] {
    const rows = this.#sql.rows<OperationRow>("SELECT * FROM operation WHERE arn = ? AND changed = 1 ORDER BY rowid", arn);
    if (rows.length > 0) this.#sql.run("UPDATE operation SET changed = 0 WHERE arn = ? AND changed = 1", arn);
    return rows.map((row) => operation(row).wire);
  }

  changed(arn: string): boolean {
    return this.#sql.row("SELECT 1 FROM operation WHERE arn = ? AND changed = 1", arn) !== undefined;
  }

  /** True if a step waits for its next attempt to begin. */
  ready(arn: string): boolean {
    return this.#sql.row("SELECT 1 FROM operation WHERE arn = ? AND status = 'READY'", arn) !== undefined;
  }

  /** True if something will wake the execution: a due time or an open callback. */
  suspended(arn: string): boolean {
    return this.#sql.row("SELECT 1 FROM operation WHERE arn = ? AND (due IS NOT NULL OR (callback IS NOT NULL AND status = 'STARTED'))", arn) !== undefined;
  }

  // ---- time ----

  /** The earliest time at which something is due. */
  nextDue(): number | undefined {
    const row = this.#sql.row<{ due: number | null }>(
      `SELECT min(due) AS due FROM (SELECT min(due) AS due FROM operation WHERE due IS NOT NULL
        UNION ALL SELECT min(due) FROM execution UNION ALL SELECT min(expires) FROM execution)`,
    );
    return row?.due ?? undefined;
  }

  /** Executions that have taken too long. */
  expired(now: number): string[] {
    return this.#arns("SELECT arn FROM execution WHERE expires <= ? ORDER BY expires", now);
  }

  /** Operations whose time has come. */
  due(now: number): { readonly arn: string; readonly operation: Operation }[] {
    const rows = this.#sql.rows<OperationRow>("SELECT * FROM operation WHERE due <= ? ORDER BY due, rowid", now);
    return rows.map((row) => ({ arn: row.arn, operation: operation(row) }));
  }

  /** Executions whose next invocation is due; from now on it no longer is. */
  takeDue(now: number): string[] {
    const arns = this.#arns("SELECT arn FROM execution WHERE due <= ? ORDER BY due", now);
    for (const arn of arns) this.invoked(arn);
    return arns;
  }

  invoked(arn: string): void {
    this.#sql.run("UPDATE execution SET due = NULL WHERE arn = ?", arn);
  }

  #arns(sql: string, ...values: SQLInputValue[]): string[] {
    return this.#sql.rows<{ arn: string }>(sql, ...values).map(({ arn }) => arn);
  }
}

interface ExecutionRow {
  arn: string;
  name: string;
  input: string;
  status: Execution["status"];
  result: string | null;
  error: string | null;
  operations: number;
  failures: number;
}
interface OperationRow {
  arn: string;
  due: number | null;
  expires: number | null;
  heartbeat: number | null;
  wire: string;
}

const SCHEMA_VERSION = 1;

function operation(row: OperationRow): Operation {
  return { wire: JSON.parse(row.wire) as WireOperation, due: row.due ?? undefined, expires: row.expires ?? undefined, heartbeat: row.heartbeat ?? undefined };
}

// Two processes must never run the same executions, and a fix whose start was on record must not run a second time after a power cut.
function open(file: string): DatabaseSync {
  try {
    return openExclusive(file, SCHEMA_VERSION, SCHEMA);
  } catch (error) {
    const { message } = error as Error;
    if (error instanceof FileLockedError) throw new EngineLockedError(`engine: ${message}`, { cause: error });
    throw new Error(`engine: ${message}`, { cause: error });
  }
}

const SCHEMA = `
      CREATE TABLE IF NOT EXISTS execution(arn TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, input TEXT NOT NULL, status TEXT NOT NULL, result TEXT,
        error TEXT, started INTEGER NOT NULL, ended INTEGER, expires INTEGER, due INTEGER, operations INTEGER NOT NULL DEFAULT 0,
        failures INTEGER NOT NULL DEFAULT 0) STRICT;
      CREATE TABLE IF NOT EXISTS operation(arn TEXT NOT NULL REFERENCES execution ON DELETE CASCADE, id TEXT NOT NULL, status TEXT NOT NULL,
        callback TEXT UNIQUE, due INTEGER, expires INTEGER, heartbeat INTEGER, changed INTEGER NOT NULL, wire TEXT NOT NULL, UNIQUE(arn, id)) STRICT;
      CREATE INDEX IF NOT EXISTS operation_due ON operation(due) WHERE due IS NOT NULL`;
