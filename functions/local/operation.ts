import {
  OperationAction as Action,
  type ErrorObject,
  type OperationUpdate,
  OperationStatus as Status,
  OperationType as Type,
  type WireOperation,
} from "@aws/durable-execution-sdk-js";

/**
 * One operation of an execution (a step, a wait, a callback, a child context) and what may happen to it. Pure: who stores it and whose clock
 * it is does not matter here. Times are milliseconds since 1970.
 */
export interface Operation {
  readonly wire: WireOperation;
  /** When the engine has to act next: a wait is over, a retry is due, a callback times out. */
  readonly due?: number | undefined;
  /** When a callback times out however many heartbeats it gets. */
  readonly expires?: number | undefined;
  /** Longest silence of a callback, in milliseconds. */
  readonly heartbeat?: number | undefined;
}

/** Largest payload, and largest sum of all error fields, of one update: 1 MB, as in Lambda. The result of an execution (6 MB there) is not limited here. */
export const MAX_PAYLOAD_BYTES = 1_048_576;

const CLOSED: ReadonlySet<string | undefined> = new Set([Status.SUCCEEDED, Status.FAILED, Status.TIMED_OUT, Status.STOPPED, Status.CANCELLED]);

/** Says whether an operation has ended: nothing changes it any more. */
export function closed(operation: Operation): boolean {
  return CLOSED.has(operation.wire.Status);
}

/** Bytes of an error on the wire. */
export function errorBytes(error: ErrorObject): number {
  return Buffer.byteLength(JSON.stringify(error));
}

/**
 * Applies a checkpoint update of the SDK. `callbackId` is used if the update opens a callback.
 * Throws an Error if Lambda would refuse the update: too large, unknown kind, or about an operation that has ended.
 */
export function apply(before: Operation | undefined, update: OperationUpdate, now: number, callbackId: string): Operation {
  const label = `${update.Type}-${update.Action} of operation ${update.Name ?? update.Id}`;
  if (Buffer.byteLength(update.Payload ?? "") > MAX_PAYLOAD_BYTES) throw new Error(`${label}: the payload is larger than 1 MB`);
  if (update.Error && errorBytes(update.Error) > MAX_PAYLOAD_BYTES) throw new Error(`${label}: the error is larger than 1 MB`);
  if (before && closed(before)) throw new Error(`${label}: it has ended already (${before.wire.Status})`);
  if (before && before.wire.Type !== update.Type) throw new Error(`${label}: it is a ${before.wire.Type}`);

  const after = (seconds: number | undefined) => now + (seconds ?? 0) * 1000;
  const wire: WireOperation = before?.wire ?? {
    Id: update.Id,
    ParentId: update.ParentId,
    Name: update.Name,
    Type: update.Type,
    SubType: update.SubType,
    Status: Status.STARTED,
    StartTimestamp: timestamp(now),
  };
  const started: WireOperation = { ...wire, Status: Status.STARTED };
  const ended: WireOperation = { ...wire, Status: update.Action === Action.FAIL ? Status.FAILED : Status.SUCCEEDED, EndTimestamp: timestamp(now) };
  const outcome = { Result: update.Payload, Error: update.Error };
  // How many attempts have ended. The SDK adds one to know which attempt it is in.
  const attempt = (wire.StepDetails?.Attempt ?? 0) + 1;

  switch (`${update.Type}-${update.Action}`) {
    case `${Type.CONTEXT}-${Action.START}`:
      return { wire: started };
    case `${Type.STEP}-${Action.START}`: {
      // What the last attempt left behind stays: it is the state that waitForCondition goes on with.
      const { NextAttemptTimestamp: _, ...details } = wire.StepDetails ?? {};
      return { wire: { ...started, StepDetails: details } };
    }
    case `${Type.STEP}-${Action.RETRY}`: {
      const due = after(update.StepOptions?.NextAttemptDelaySeconds);
      return { wire: { ...wire, Status: Status.PENDING, StepDetails: { ...outcome, Attempt: attempt, NextAttemptTimestamp: timestamp(due) } }, due };
    }
    case `${Type.STEP}-${Action.SUCCEED}`:
    case `${Type.STEP}-${Action.FAIL}`:
      return { wire: { ...ended, StepDetails: { ...outcome, Attempt: attempt } } };
    case `${Type.CONTEXT}-${Action.SUCCEED}`:
    case `${Type.CONTEXT}-${Action.FAIL}`:
      return { wire: { ...ended, ContextDetails: { ...outcome, ReplayChildren: update.ContextOptions?.ReplayChildren } } };
    case `${Type.WAIT}-${Action.START}`: {
      const due = after(update.WaitOptions?.WaitSeconds);
      return { wire: { ...started, WaitDetails: { ScheduledEndTimestamp: timestamp(due) } }, due };
    }
    case `${Type.CALLBACK}-${Action.START}`: {
      const { TimeoutSeconds, HeartbeatTimeoutSeconds } = update.CallbackOptions ?? {};
      const opened: Operation = {
        wire: { ...started, CallbackDetails: { CallbackId: callbackId } },
        expires: TimeoutSeconds ? after(TimeoutSeconds) : undefined,
        heartbeat: HeartbeatTimeoutSeconds ? HeartbeatTimeoutSeconds * 1000 : undefined,
      };
      return beat(opened, now);
    }
    default:
      throw new Error(`${label}: this engine cannot do that`);
  }
}

/** A sign of life of whoever holds a callback: its heartbeat timeout starts again. */
export function beat(callback: Operation, now: number): Operation {
  const due = Math.min(callback.expires ?? Infinity, callback.heartbeat === undefined ? Infinity : now + callback.heartbeat);
  return { ...callback, due: Number.isFinite(due) ? due : undefined };
}

/** Ends an open callback with what its holder said. */
export function answer(callback: Operation, outcome: { result: string | undefined } | { error: ErrorObject }, now: number): Operation {
  const details = callback.wire.CallbackDetails;
  return "error" in outcome
    ? { wire: { ...callback.wire, Status: Status.FAILED, EndTimestamp: timestamp(now), CallbackDetails: { ...details, Error: outcome.error } } }
    : { wire: { ...callback.wire, Status: Status.SUCCEEDED, EndTimestamp: timestamp(now), CallbackDetails: { ...details, Result: outcome.result } } };
}

/** What happens to an operation when its `due` time has come. */
export function elapse(operation: Operation, now: number): Operation {
  const { wire } = operation;
  if (wire.Type === Type.STEP) return { wire: { ...wire, Status: Status.READY } };
  if (wire.Type === Type.WAIT) return { wire: { ...wire, Status: Status.SUCCEEDED, EndTimestamp: timestamp(now) } };
  const silent = operation.expires === undefined || operation.expires > now;
  const error = { ErrorType: "CallbackTimeoutError", ErrorMessage: silent ? "Callback timed out on heartbeat" : "Callback timed out" };
  return { wire: { ...wire, Status: Status.TIMED_OUT, EndTimestamp: timestamp(now), CallbackDetails: { ...wire.CallbackDetails, Error: error } } };
}

/**
 * The operations that a new invocation gets to see, in order: those inside a context that has ended are dropped, unless it asked to keep its
 * children (its result was too large to store, so the SDK builds it again from theirs).
 */
export function visible(operations: readonly WireOperation[]): WireOperation[] {
  const shut = new Set<string | undefined>();
  return operations.filter((operation) => {
    const hidden = operation.ParentId !== undefined && shut.has(operation.ParentId);
    if (hidden || (operation.Type === Type.CONTEXT && CLOSED.has(operation.Status) && !operation.ContextDetails?.ReplayChildren)) shut.add(operation.Id);
    return !hidden;
  });
}

function timestamp(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
