import { createRetryStrategy, type DurableContext, DurableOperationError, JitterStrategy, retryPresets, StepSemantics } from "@aws/durable-execution-sdk-js";
import { type Answer, type Durable, INTERRUPTED, type Progress, type Settled } from "../triage/ports.ts";

/** The port of the workflow on the SDK's context; its docstrings say what each function does. */
export function durable(context: DurableContext): Durable {
  return {
    async step<T>(name: string, run: () => Promise<T>): Promise<T> {
      return await context.step(name, () => remembered(name, run), { retryStrategy: retryWhatMayPass }).catch(passOn);
    },

    async once<T>(name: string, run: () => Promise<T>): Promise<T> {
      const options = { semantics: StepSemantics.AtMostOncePerRetry, retryStrategy: retryPresets.noRetry };
      return await context
        .step(name, () => remembered(name, run), options)
        .catch((error: unknown) => {
          if (original(error).name === "StepInterruptedError") throw named(INTERRUPTED, `${name}: an earlier run was cut off, so its outcome is unknown`);
          throw original(error);
        });
    },

    async wait(name: string, seconds: number): Promise<void> {
      await context.wait(name, { seconds: whole(seconds) });
    },

    async poll<T>(name: string, maxChecks: number, check: () => Promise<Progress<T>>): Promise<T> {
      const last = await context
        .waitForCondition<Look<T>>(name, () => remembered<Look<T>>(name, check).catch(notNow), {
          initialState: { done: false, afterSeconds: 1 },
          waitStrategy: (progress, checks) =>
            progress.done || checks >= maxChecks ? { shouldContinue: false } : { shouldContinue: true, delay: { seconds: whole(progress.afterSeconds) } },
        })
        .catch(passOn);
      if (last.done) return last.value;
      throw named("TimeoutError", `${name}: not done after ${maxChecks} checks${last.problem ? `; the last one failed: ${last.problem}` : ""}`);
    },

    async callback<T>(name: string, timeoutSeconds: number, submit: (callbackId: string) => Promise<void>): Promise<Answer<T>> {
      const options = { timeout: { seconds: whole(timeoutSeconds) }, retryStrategy: retryWhatMayPass };
      try {
        const text = await context.waitForCallback<string | undefined>(name, (callbackId) => remembered(name, () => submit(callbackId)), options);
        return { kind: "answered", value: (text === undefined ? undefined : JSON.parse(text)) as T };
      } catch (error) {
        if (error instanceof Error && error.name === "CallbackTimeoutError") return { kind: "expired" };
        throw original(error);
      }
    },

    async all<T>(
      name: string,
      branches: readonly { name: string; run: (durable: Durable) => Promise<T> }[],
      concurrency: number,
    ): Promise<readonly Settled<T>[]> {
      const functions = branches.map((branch) => ({ name: branch.name, func: (child: DurableContext) => branch.run(durable(child)) }));
      const batch = await context.parallel<T>(name, functions, { maxConcurrency: concurrency, completionConfig: { toleratedFailurePercentage: 100 } });
      return batch.all.map((item): Settled<T> => {
        if (item.error === undefined) return { ok: true, value: item.result as T };
        const error = original(item.error);
        return { ok: false, error: { name: error.name, message: error.message } };
      });
    },
  };
}

/** What a check found, or why it could not look. */
type Look<T> = Progress<T> & { readonly problem?: string };

/** Results are small by contract: large data goes to the store, and only its key is remembered. */
const MAX_RESULT_BYTES = 256 * 1024;
const MAX_MESSAGE_LENGTH = 10_000;
/** How long to wait after a check that could not look. */
const RECHECK_SECONDS = 5;

const backOff = createRetryStrategy({
  maxAttempts: 5,
  initialDelay: { seconds: 1 },
  maxDelay: { seconds: 30 },
  backoffRate: 3,
  jitter: JitterStrategy.HALF,
});

/** The SDK by default repeats every error for minutes, programming errors too. Only who throws knows whether it may pass: `retryable: true`. */
function retryWhatMayPass(error: Error, attempt: number) {
  return isRetryable(error) ? backOff(error, attempt) : { shouldRetry: false };
}

function isRetryable(error: unknown): boolean {
  return error instanceof Error && "retryable" in error && error.retryable === true;
}

/**
 * Runs `run` so that what comes out can be stored. A result that cannot would not fail the step but the whole invocation, again and again; and an
 * error too long to store would fail the execution.
 */
async function remembered<T>(name: string, run: () => Promise<T>): Promise<T> {
  try {
    const result = await run();
    // Of undefined there is no JSON, whatever the types say.
    const bytes = Buffer.byteLength((JSON.stringify(result) as string | undefined) ?? "");
    if (bytes >= MAX_RESULT_BYTES) throw new RangeError(`${name}: could not remember the result: ${bytes} bytes are too many`);
    return result;
  } catch (error) {
    if (!(error instanceof Error)) throw new Error(String(error).slice(0, MAX_MESSAGE_LENGTH));
    if (error.message.length <= MAX_MESSAGE_LENGTH) throw error;
    throw Object.assign(named(error.name, `${error.message.slice(0, MAX_MESSAGE_LENGTH)}…`), { retryable: isRetryable(error) });
  }
}

/** A check that failed for a reason that may pass counts as one that found nothing yet; any other error ends the poll. */
function notNow(error: unknown): { done: false; afterSeconds: number; problem: string } {
  if (error instanceof Error && isRetryable(error)) return { done: false, afterSeconds: RECHECK_SECONDS, problem: error.message };
  throw error;
}

function passOn(error: unknown): never {
  throw original(error);
}

/** What the SDK wrapped: the error that was thrown, as far as it survives a replay, which is its name and message. */
function original(error: unknown): Error {
  let inner = error;
  while (inner instanceof DurableOperationError && inner.cause instanceof Error) inner = inner.cause;
  return inner instanceof Error ? named(inner.name, inner.message) : new Error(String(inner));
}

function named(name: string, message: string): Error {
  const error = new Error(message);
  error.name = name;
  return error;
}

/** The service counts whole seconds, from 1. */
function whole(seconds: number): number {
  return Math.max(1, Math.ceil(seconds));
}
