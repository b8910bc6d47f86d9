import { randomUUID } from "node:crypto";
import {
  type CheckpointDurableExecutionRequest,
  type CheckpointDurableExecutionResponse,
  type DurableExecutionClient,
  DurableExecutionClientError,
  DurableExecutionInvocationInputWithClient,
  type DurableExecutionInvocationOutput,
  type DurableLambdaHandler,
  type ErrorObject,
  type GetDurableExecutionStateRequest,
  type GetDurableExecutionStateResponse,
  InvocationStatus,
  OperationAction,
  OperationStatus,
  OperationType,
  type OperationUpdate,
  type WireOperation,
} from "@aws/durable-execution-sdk-js";
import type { Context } from "aws-lambda";
import { type Clock, systemClock } from "./clock.ts";
import { type Execution, History } from "./history.ts";
import { answer, apply, beat, closed, elapse, errorBytes, MAX_PAYLOAD_BYTES, type Operation, visible } from "./operation.ts";

/**
 * Runs durable Lambda handlers in this process: what the durable execution service does in AWS, on one SQLite file, for local mode and tests.
 * The handler is the very one that is deployed. Whatever was acknowledged survives `kill -9` and a power cut; unfinished executions go on at `start`.
 */
export class Engine implements DurableExecutionClient {
  readonly #history: History;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #executionTimeoutMs: number;
  #handler: DurableLambdaHandler | undefined;
  /** Running invocations, at most one per execution. */
  readonly #running = new Map<string, Invocation>();
  readonly #finished = new Map<string, Waiter[]>();
  #idle: (() => void)[] = [];
  #cancelTimer: () => void = () => undefined;
  #closing: Promise<void> | undefined;

  /**
   * Opens (and makes, if need be) the file and locks it.
   * @throws {EngineLockedError} if another engine has the file open, in this process or another.
   */
  constructor(options: EngineOptions) {
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? (() => undefined);
    this.#executionTimeoutMs = (options.executionTimeoutSeconds ?? 366 * 86_400) * 1000;
    this.#history = new History(options.file);
    // As Lambda does, executions that ended are kept for two weeks; their names are free again after that.
    this.#history.purge(this.#clock.now() - RETENTION_MS);
  }

  /** Takes the handler and resumes all executions that have not ended. Call it once. */
  start(handler: DurableLambdaHandler): void {
    if (this.#handler) throw new Error("engine: could not start: it runs already");
    this.#handler = handler;
    for (const arn of this.#history.unfinished()) this.#kick(arn);
    this.#arm();
  }

  /**
   * Starts an execution and returns its ARN. The name is its idempotency key: the same name and payload are the same execution.
   * @param name 1 to 64 of A-Z a-z 0-9 _ -
   * @param payload JSON, at most 1 MB
   * @throws {DurableExecutionAlreadyStartedError} if the name was used with another payload.
   */
  execute(name: string, payload: unknown): string {
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) throw new RangeError(`engine: could not start ${JSON.stringify(name)}: a name has 1 to 64 of A-Z a-z 0-9 _ -`);
    const input = JSON.stringify(payload ?? {});
    if (Buffer.byteLength(input) > MAX_PAYLOAD_BYTES) throw new RangeError(`engine: could not start ${name}: the payload is larger than 1 MB`);
    const old = this.#history.execution(name);
    if (old && old.input !== input) throw new DurableExecutionAlreadyStartedError(name);
    if (old) return old.arn;

    const now = this.#clock.now();
    const id = randomUUID();
    const arn = `${FUNCTION_ARN}/durable-execution/${name}/${id}`;
    this.#history.transaction(() => {
      this.#history.add(arn, name, input, now, now + this.#executionTimeoutMs);
      const StartTimestamp = new Date(now).toISOString();
      this.#history.save(
        arn,
        { wire: { Id: id, Type: OperationType.EXECUTION, Status: OperationStatus.STARTED, StartTimestamp, ExecutionDetails: { InputPayload: input } } },
        false,
      );
    });
    this.#kick(arn);
    this.#arm();
    return arn;
  }

  /** What is known of an execution, by ARN or name; undefined if there is none. */
  execution(arnOrName: string): Execution | undefined {
    const found = this.#history.execution(arnOrName);
    if (!found) return undefined;
    const { input: _, failures: __, ...execution } = found;
    return execution;
  }

  /** Waits for the end of an execution, whatever its outcome. Rejects if there is no such execution, or if the engine is closed before. */
  finished(arnOrName: string): Promise<Execution> {
    const found = this.execution(arnOrName);
    if (!found) return Promise.reject(new Error(`engine: could not wait for ${arnOrName}: there is no such execution`));
    if (found.status !== "RUNNING") return Promise.resolve(found);
    return new Promise((resolve, reject) => {
      const waiters = this.#finished.get(found.arn) ?? [];
      this.#finished.set(found.arn, [...waiters, { resolve, reject }]);
    });
  }

  /** Waits until nothing runs and nothing is due: every execution has ended or is suspended on a callback or a future time. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve);
      this.#settleIdle();
    });
  }

  /** The operations of an execution in order of their start, also those that replays no longer see. */
  operations(arnOrName: string): WireOperation[] {
    return this.#history.operations(this.execution(arnOrName)?.arn ?? arnOrName);
  }

  /**
   * Answers a callback. `result` is handed to the workflow as text, as `SendDurableExecutionCallbackSuccess` does: JSON if the workflow parses JSON.
   * @throws {UnknownCallbackError} @throws {ClosedCallbackError} if it was answered, or has timed out, or its execution has ended.
   */
  succeed(callbackId: string, result?: string): void {
    if (Buffer.byteLength(result ?? "") > MAX_PAYLOAD_BYTES) throw new RangeError("engine: could not answer a callback: the result is larger than 1 MB");
    this.#callback(callbackId, (callback, now) => answer(callback, { result }, now));
  }

  /** Makes a callback fail. @throws as `succeed` does. */
  fail(callbackId: string, error: ErrorObject): void {
    if (errorBytes(error) > MAX_PAYLOAD_BYTES) throw new RangeError("engine: could not answer a callback: the error is larger than 1 MB");
    this.#callback(callbackId, (callback, now) => answer(callback, { error }, now));
  }

  /** A sign of life: starts the heartbeat timeout of a callback again. @throws as `succeed` does. */
  heartbeat(callbackId: string): void {
    this.#callback(callbackId, beat);
  }

  /**
   * Stops. Invocations that run get `graceMs` (wall clock) to finish what they are at: results are still stored, but nothing new starts; then they
   * are abandoned, as by a crash. All that is unfinished goes on when the file is opened again. Pending `finished` promises reject.
   */
  close(graceMs = 1000): Promise<void> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  // ---- what the SDK calls ----

  async getExecutionState(request: GetDurableExecutionStateRequest): Promise<GetDurableExecutionStateResponse> {
    const arn = this.#fence(request);
    return { Operations: visible(this.#history.operations(arn)) };
  }

  async checkpoint(request: CheckpointDurableExecutionRequest): Promise<CheckpointDurableExecutionResponse> {
    const arn = this.#fence(request);
    const updates = request.Updates ?? [];
    const accepted = this.#closing ? updates.filter((update) => update.Action !== OperationAction.START) : updates;
    const changed = this.#history.transaction(() => {
      for (const update of accepted) this.#apply(arn, update);
      return this.#history.takeChanged(arn);
    });
    this.#arm();
    if (accepted.length < updates.length) throw new DurableExecutionClientError("the engine is closing", { scope: "INVOCATION" });
    return { CheckpointToken: request.CheckpointToken ?? "", NewExecutionState: { Operations: changed } };
  }

  /** The execution that a request of the SDK is about. Refuses invocations that were given up: their successor may be running. */
  #fence(request: { DurableExecutionArn: string | undefined; CheckpointToken: string | undefined }): string {
    const arn = request.DurableExecutionArn ?? "";
    const current = this.#running.get(arn);
    if (!current || current.token !== request.CheckpointToken || !this.#history.running(arn))
      throw new DurableExecutionClientError("Invalid Checkpoint Token", { scope: "INVOCATION" });
    return arn;
  }

  #apply(arn: string, update: OperationUpdate): void {
    if (update.Type === OperationType.EXECUTION) {
      this.#end(arn, update.Action === OperationAction.SUCCEED ? "SUCCEEDED" : "FAILED", update.Payload, update.Error);
      return;
    }
    const before = this.#history.operation(arn, update.Id ?? "");
    try {
      // Lambda meters what starts: an operation, and each further attempt of a step or a poll.
      if (!before || update.Action === OperationAction.RETRY) {
        if (this.#history.count(arn) > MAX_OPERATIONS) throw new Error(`an execution has at most ${MAX_OPERATIONS} operations`);
      }
      this.#history.save(arn, apply(before, update, this.#clock.now(), randomUUID()), true);
    } catch (cause) {
      throw new DurableExecutionClientError(cause instanceof Error ? cause.message : String(cause), { scope: "EXECUTION", cause });
    }
  }

  // ---- invocations ----

  /** Makes sure that an execution is invoked; what has changed meanwhile for a running invocation is looked at when it returns. */
  #kick(arn: string): void {
    if (!this.#handler || this.#closing || this.#running.has(arn)) return;
    const invocation: Invocation = { token: randomUUID(), returned: Promise.resolve() };
    this.#running.set(arn, invocation);
    invocation.returned = this.#invoke(arn, invocation, this.#handler);
  }

  async #invoke(arn: string, invocation: Invocation, handler: DurableLambdaHandler): Promise<void> {
    // The caller of execute() gets the ARN before any code of the workflow runs.
    await new Promise(setImmediate);
    if (this.#running.get(arn) !== invocation || this.#closing) return;
    const deadline = this.#clock.now() + INVOCATION_MS;
    const cancel = this.#clock.after(INVOCATION_MS, () => this.#returned(arn, invocation, new Error("the invocation timed out")));
    let result: DurableExecutionInvocationOutput | Error;
    try {
      const { operations, changed } = this.#history.transaction(() => {
        this.#history.invoked(arn);
        return { changed: this.#history.takeChanged(arn), operations: visible(this.#history.operations(arn)) };
      });
      const input = { DurableExecutionArn: arn, CheckpointToken: invocation.token, InitialExecutionState: { Operations: operations } };
      const event = Object.assign(new DurableExecutionInvocationInputWithClient(input, this), { UpdatedOperationIds: changed.map(({ Id }) => Id ?? "") });
      // On a clock moved by hand the SDK has no time left to wait for anything itself: it suspends, and the engine wakes it.
      result = await handler(
        event,
        lambdaContext(() => (this.#clock.real ? deadline - this.#clock.now() : 0)),
      );
    } catch (error) {
      result = error instanceof Error ? error : new Error(String(error));
    }
    cancel();
    this.#returned(arn, invocation, result);
  }

  /** Takes note of how an invocation ended. One that was given up before (timed out, closed, execution timed out) is not heard any more. */
  #returned(arn: string, invocation: Invocation, result: DurableExecutionInvocationOutput | Error): void {
    if (this.#running.get(arn) !== invocation) return;
    this.#running.delete(arn);
    try {
      if (this.#history.transaction(() => this.#settle(arn, result))) this.#kick(arn);
      this.#arm();
    } catch (error) {
      // The file could not be written (disk full?). Nothing is lost: the execution goes on from its last checkpoint.
      this.#log("error", "could not store the end of an invocation", { arn, error: String(error) });
      this.#clock.after(MIN_BACKOFF_MS, () => this.#kick(arn));
    }
    this.#settleIdle();
  }

  /** Stores the outcome of an invocation; says whether the execution is to be invoked again at once. */
  #settle(arn: string, result: DurableExecutionInvocationOutput | Error): boolean {
    const execution = this.#history.execution(arn);
    if (execution?.status !== "RUNNING") return false;
    if (result instanceof Error) {
      const wait = Math.min(MIN_BACKOFF_MS * 2 ** execution.failures, MAX_BACKOFF_MS);
      this.#log("warn", "an invocation failed and will be repeated", { arn, error: result.message, inMs: wait });
      this.#history.failed(arn, this.#clock.now() + wait);
      return false;
    }
    if (result.Status === InvocationStatus.SUCCEEDED) this.#end(arn, "SUCCEEDED", result.Result, undefined);
    else if (result.Status === InvocationStatus.FAILED) this.#end(arn, "FAILED", undefined, result.Error);
    else {
      this.#history.progressed(arn);
      if (this.#wants(arn)) return true;
      if (!this.#history.suspended(arn)) {
        const error = { ErrorType: "NothingPendingError", ErrorMessage: "The workflow suspended, but no operation is pending that could wake it." };
        this.#end(arn, "FAILED", undefined, error);
      }
    }
    return false;
  }

  /** True if something has happened that the last invocation did not hear of, or if a step is ready that it did not run. */
  #wants(arn: string): boolean {
    if (this.#history.changed(arn)) return true;
    if (!this.#history.ready(arn)) return false;
    return visible(this.#history.operations(arn)).some(({ Status }) => Status === OperationStatus.READY);
  }

  #end(arn: string, status: Execution["status"], result: string | undefined, error: ErrorObject | undefined): void {
    this.#history.end(arn, status, result, error, this.#clock.now());
    // After the commit: whoever waits may look at the file at once.
    queueMicrotask(() => this.#tell(arn));
  }

  #tell(arn: string): void {
    const waiters = this.#finished.get(arn);
    if (!waiters) return;
    const ended = this.execution(arn);
    if (!ended || ended.status === "RUNNING") return;
    this.#finished.delete(arn);
    for (const { resolve } of waiters) resolve(ended);
  }

  // ---- time ----

  /** One timer serves all: it is set to the earliest due time in the file. */
  #arm(): void {
    this.#cancelTimer();
    if (!this.#handler || this.#closing) return;
    const due = this.#history.nextDue();
    if (due === undefined) return;
    const delay = due - this.#clock.now();
    if (delay > 0) {
      // A timer cannot be set further ahead than 2^31 − 1 ms (24.8 days): it wakes up early, finds nothing due, and is set again.
      this.#cancelTimer = this.#clock.after(Math.min(delay, 2 ** 31 - 1), () => this.#tick());
    } else {
      const immediate = setImmediate(() => this.#tick());
      this.#cancelTimer = () => clearImmediate(immediate);
    }
  }

  #tick(): void {
    const now = this.#clock.now();
    try {
      const woken = this.#history.transaction(() => {
        for (const arn of this.#history.expired(now)) {
          this.#running.delete(arn);
          this.#end(arn, "TIMED_OUT", undefined, { ErrorType: "ExecutionTimedOut", ErrorMessage: "The execution took longer than it may." });
        }
        const due = this.#history.due(now);
        for (const { arn, operation } of due) this.#history.save(arn, elapse(operation, now), true);
        return new Set([...due.map(({ arn }) => arn), ...this.#history.takeDue(now)]);
      });
      for (const arn of woken) this.#kick(arn);
      this.#arm();
    } catch (error) {
      this.#log("error", "could not store what is due", { error: String(error) });
      this.#cancelTimer = this.#clock.after(MIN_BACKOFF_MS, () => this.#tick());
    }
    this.#settleIdle();
  }

  #settleIdle(): void {
    if (this.#idle.length === 0) return;
    const due = this.#handler && !this.#closing ? this.#history.nextDue() : undefined;
    if (this.#running.size > 0 || (due !== undefined && due <= this.#clock.now())) return;
    const idle = this.#idle;
    this.#idle = [];
    for (const resolve of idle) resolve();
  }

  async #close(graceMs: number): Promise<void> {
    this.#cancelTimer();
    let timer: NodeJS.Timeout | undefined;
    const grace = new Promise((resolve) => {
      timer = setTimeout(resolve, graceMs);
    });
    await Promise.race([Promise.all([...this.#running.values()].map(({ returned }) => returned)), grace]);
    clearTimeout(timer);
    this.#running.clear();
    this.#settleIdle();
    for (const { reject } of [...this.#finished.values()].flat()) reject(new Error("engine: could not wait for an execution: the engine is closed"));
    this.#finished.clear();
    this.#history.close();
  }

  // ---- callbacks ----

  #callback(callbackId: string, change: (callback: Operation, now: number) => Operation): void {
    const arn = this.#history.transaction(() => {
      const found = this.#history.callback(callbackId);
      if (!found) throw new UnknownCallbackError(callbackId);
      const { arn, callback } = found;
      const now = this.#clock.now();
      // The answer comes too late also if the timer has not fired yet.
      const late = callback.due !== undefined && callback.due <= now;
      if (closed(callback) || late || !this.#history.running(arn)) throw new ClosedCallbackError(callbackId);
      const after = change(callback, now);
      this.#history.save(arn, after, closed(after));
      return arn;
    });
    if (this.#wants(arn)) this.#kick(arn);
    this.#arm();
  }
}

export { EngineLockedError, type Execution } from "./history.ts";

export interface EngineOptions {
  /** SQLite file, made with its folder if need be and readable by its owner only; or ":memory:". */
  readonly file: string;
  readonly clock?: Clock;
  readonly log?: Log;
  /** An execution that takes longer ends as TIMED_OUT. 366 days (the most that Lambda allows) unless given. */
  readonly executionTimeoutSeconds?: number;
}
type Log = (level: "info" | "warn" | "error", message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** The name was used for an execution with another payload. Named as in Lambda. */
export class DurableExecutionAlreadyStartedError extends Error {
  override readonly name = "DurableExecutionAlreadyStartedException";
  constructor(name: string) {
    super(`engine: could not start ${name}: an execution of this name was started with another payload`);
  }
}

/** No callback has this id. */
export class UnknownCallbackError extends Error {
  override readonly name = "UnknownCallbackError";
  constructor(callbackId: string) {
    super(`engine: could not answer callback ${callbackId}: there is none`);
  }
}

/** The callback was answered or timed out before. */
export class ClosedCallbackError extends Error {
  override readonly name = "ClosedCallbackError";
  constructor(callbackId: string) {
    super(`engine: could not answer callback ${callbackId}: it is closed`);
  }
}

interface Invocation {
  /** Shown by the SDK with every request: tells the invocation of today from one that was given up. */
  readonly token: string;
  returned: Promise<void>;
}
interface Waiter {
  readonly resolve: (execution: Execution) => void;
  readonly reject: (error: Error) => void;
}

const FUNCTION_ARN = "arn:aws:lambda:local:000000000000:function:netcheck:1";
/** (docs) Lambda quota. */
const MAX_OPERATIONS = 3000;
/** An invocation of a Lambda function ends after 15 minutes at the latest. */
const INVOCATION_MS = 900_000;
const MIN_BACKOFF_MS = 1000;
const MAX_BACKOFF_MS = 60_000;
const RETENTION_MS = 14 * 86_400_000;

function lambdaContext(getRemainingTimeInMillis: () => number): Context {
  return {
    awsRequestId: randomUUID(),
    callbackWaitsForEmptyEventLoop: false,
    functionName: "netcheck",
    functionVersion: "1",
    invokedFunctionArn: FUNCTION_ARN,
    logGroupName: "netcheck",
    logStreamName: "local",
    memoryLimitInMB: "0",
    getRemainingTimeInMillis,
    done: () => undefined,
    fail: () => undefined,
    succeed: () => undefined,
  };
}
