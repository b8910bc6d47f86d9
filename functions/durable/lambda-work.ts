import type { LambdaClient } from "@aws-sdk/client-lambda";
import type { Work, WorkEvent } from "../triage/ports.ts";

export interface LambdaWorkOptions {
  /** Name or ARN of the durable function. */
  readonly functionName: string;
  /** Version or alias: durable functions are invoked by one, and an execution stays on its version. */
  readonly qualifier: string;
  /** Milliseconds for one call with all its attempts. Default 10,000. */
  readonly patienceMs?: number;
}

/** Not our request's fault: asking again later may help. */
const MAY_PASS = new Set(["TooManyRequestsException", "ThrottlingException", "ServiceException", "TimeoutError", "AbortError"]);

/**
 * The Work port on Lambda's durable executions; region and credentials come from the SDK's environment. The SDK is loaded at the first call: a cold
 * start that only answers with help, or refuses, does without.
 * Errors read `lambda: could not … : <name>: <message>`; `retryable` says whether waiting may help.
 */
export function lambdaWork({ functionName, qualifier, patienceMs = 10_000 }: LambdaWorkOptions): Work {
  let loaded: Promise<{ sdk: typeof import("./lambda-sdk.ts"); client: LambdaClient }> | undefined;
  const load = async () => {
    const sdk = await import("./lambda-sdk.ts");
    // without the last one the timeout is only logged
    const requestHandler = { connectionTimeout: 1000, requestTimeout: Math.ceil(patienceMs / 2), throwOnRequestTimeout: true };
    return { sdk, client: new sdk.LambdaClient({ requestHandler }) };
  };
  const lambda = () => {
    loaded ??= load();
    return loaded;
  };

  return {
    async start(name: string, event: WorkEvent): Promise<void> {
      const { sdk, client } = await lambda();
      const request = new sdk.InvokeCommand({
        FunctionName: functionName,
        Qualifier: qualifier,
        InvocationType: "Event",
        DurableExecutionName: name,
        Payload: JSON.stringify(event),
      });
      try {
        await client.send(request, { abortSignal: AbortSignal.timeout(patienceMs) });
      } catch (error) {
        // the service says so only of another payload: the same request, delivered again with another response URL
        if ((error as Error).name === "DurableExecutionAlreadyStartedException") return;
        throw explain(`start ${name} on ${functionName}:${qualifier}`, error);
      }
    },

    /** False also if an earlier attempt of the same call closed it and its answer was lost. */
    async answer(callbackId: string, value: unknown): Promise<boolean> {
      const { sdk, client } = await lambda();
      const request = new sdk.SendDurableExecutionCallbackSuccessCommand({ CallbackId: callbackId, Result: JSON.stringify(value) });
      try {
        await client.send(request, { abortSignal: AbortSignal.timeout(patienceMs) });
        return true;
      } catch (error) {
        if ((error as Error).name === "CallbackTimeoutException") return false;
        throw explain("answer a callback", error);
      }
    },
  };
}

function explain(what: string, error: unknown): Error {
  const { name, message, $metadata } = error as Error & { $metadata?: { httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode;
  const retryable = MAY_PASS.has(name) || status === undefined || status >= 500;
  return Object.assign(new Error(`lambda: could not ${what}: ${name}: ${message}`, { cause: error }), { retryable });
}
