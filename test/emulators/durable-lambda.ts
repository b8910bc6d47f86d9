import type { DurableLambdaHandler } from "@aws/durable-execution-sdk-js";
import { ClosedCallbackError, DurableExecutionAlreadyStartedError, Engine } from "../../functions/local/engine.ts";
import { isSigned, listen } from "./http.ts";

export interface DurableLambda {
  /** For `AWS_ENDPOINT_URL_LAMBDA`. */
  readonly url: string;
  readonly engine: Engine;
  close(): Promise<void>;
}

const INVOKE = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/;
const EXECUTION = /^\/2025-12-01\/durable-executions\/(.+)\/(checkpoint|state)$/;
const SUCCEED = /^\/2025-12-01\/durable-execution-callbacks\/([^/]+)\/succeed$/;

/** The service writes times as seconds since 1970; the engine keeps them as ISO 8601. */
const epochSeconds = (name: string, value: unknown): unknown => (name.endsWith("Timestamp") && typeof value === "string" ? Date.parse(value) / 1000 : value);

/**
 * Lambda with one durable function, over the service's REST wire format: Invoke, CheckpointDurableExecution, GetDurableExecutionState and
 * SendDurableExecutionCallbackSuccess. Behind it is the embedded engine. The handler is given plain events, as on Lambda, so that the SDK in it speaks HTTP.
 */
export async function startDurableLambda(functionName: string, file = ":memory:"): Promise<DurableLambda & { run(handler: DurableLambdaHandler): void }> {
  const engine = new Engine({ file });
  const server = await listen(async (request, body, response) => {
    const url = new URL(request.url ?? "/", "http://lambda");
    const answer = (status: number, content: unknown, headers: Record<string, string> = {}) =>
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(content, epochSeconds));
    const refuse = (status: number, type: string, message: string) => answer(status, { Type: "User", Message: message }, { "x-amzn-errortype": type });
    if (!isSigned(request, "lambda")) return void refuse(403, "MissingAuthenticationTokenException", "the request is not signed");
    const text = body.toString("utf8");
    const invoked = INVOKE.exec(url.pathname)?.[1];
    const [, arn, verb] = EXECUTION.exec(url.pathname) ?? [];
    const callback = SUCCEED.exec(url.pathname)?.[1];
    try {
      if (invoked !== undefined) {
        if (decodeURIComponent(invoked) !== functionName) return void refuse(404, "ResourceNotFoundException", `Function not found: ${invoked}`);
        const started = engine.execute(String(request.headers["x-amz-durable-execution-name"]), JSON.parse(text));
        return void response.writeHead(202, { "x-amz-durable-execution-arn": started }).end();
      }
      if (arn !== undefined && verb === "checkpoint")
        return void answer(200, await engine.checkpoint({ ...(JSON.parse(text) as object), DurableExecutionArn: decodeURIComponent(arn) } as never));
      if (arn !== undefined) {
        const CheckpointToken = url.searchParams.get("CheckpointToken") ?? undefined;
        return void answer(200, await engine.getExecutionState({ DurableExecutionArn: decodeURIComponent(arn), CheckpointToken }));
      }
      if (callback !== undefined) {
        engine.succeed(decodeURIComponent(callback), text);
        return void answer(200, {});
      }
    } catch (error) {
      if (error instanceof DurableExecutionAlreadyStartedError) return void refuse(409, "DurableExecutionAlreadyStartedException", error.message);
      if (error instanceof ClosedCallbackError) return void refuse(400, "CallbackTimeoutException", error.message);
      return void refuse(400, "InvalidParameterValueException", (error as Error).message);
    }
    throw new Error(`${request.method} ${url.pathname} is not emulated`);
  });
  return {
    url: server.url,
    engine,
    run: (handler) => engine.start(async (event, context) => handler(JSON.parse(JSON.stringify(event)) as never, context)),
    close: async () => {
      await engine.close();
      await server.close();
    },
  };
}
