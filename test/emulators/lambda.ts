import { isSigned, listen } from "./http.ts";

/** An execution that was started. */
export interface StartedExecution {
  readonly name: string;
  readonly functionName: string;
  readonly qualifier: string | undefined;
  /** The request body, parsed. */
  readonly payload: unknown;
}

/** An error of the service; or "drop": what was asked is done, and the connection is cut before the answer; or "hang": nothing is ever answered. */
export type LambdaFault = { readonly type: string; readonly status: number } | "drop" | "hang";

export interface LambdaEmulator {
  /** For `AWS_ENDPOINT_URL_LAMBDA`. */
  readonly url: string;
  readonly executions: readonly StartedExecution[];
  /** Open callbacks; taken out when answered. */
  readonly callbacks: Set<string>;
  /** Callback id and result text, in order. */
  readonly answers: readonly { readonly callbackId: string; readonly result: string }[];
  /** Number of requests, refused ones included. */
  readonly requests: number;
  /** The next `times` requests go wrong. */
  fail(fault: LambdaFault, times?: number): void;
  close(): Promise<void>;
}

const INVOKE = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/;
const SUCCEED = /^\/2025-12-01\/durable-execution-callbacks\/([^/]+)\/succeed$/;

/** Lambda's Invoke (asynchronous, durable) and SendDurableExecutionCallbackSuccess over the service's own REST wire format; runs no function. */
export async function startLambda(functionName: string): Promise<LambdaEmulator> {
  const executions: (StartedExecution & { text: string })[] = [];
  const callbacks = new Set<string>();
  const closed = new Set<string>();
  const answers: { callbackId: string; result: string }[] = [];
  const faults: LambdaFault[] = [];
  let requests = 0;

  /** What the service answers, having done it. */
  function serve(method: string, url: URL, headers: Record<string, string | string[] | undefined>, body: string): Answer {
    const invoked = INVOKE.exec(url.pathname)?.[1];
    if (method === "POST" && invoked !== undefined) {
      const asked = decodeURIComponent(invoked);
      if (asked !== functionName) return refusal(404, "ResourceNotFoundException", `Function not found: ${asked}`);
      if (headers["x-amz-invocation-type"] !== "Event") return refusal(400, "InvalidParameterValueException", "this emulator takes asynchronous invocations");
      const name = String(headers["x-amz-durable-execution-name"]);
      if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) return refusal(400, "InvalidParameterValueException", `bad execution name: ${name}`);
      const old = executions.find((one) => one.name === name);
      if (old !== undefined && old.text !== body) return refusal(409, "DurableExecutionAlreadyStartedException", `already started: ${name}`);
      if (old === undefined)
        executions.push({ name, functionName: asked, qualifier: url.searchParams.get("Qualifier") ?? undefined, payload: JSON.parse(body), text: body });
      return {
        status: 202,
        headers: { "x-amz-durable-execution-arn": `arn:aws:lambda:eu-central-1:123456789012:function:${asked}/durable-execution/${name}` },
      };
    }
    const answered = SUCCEED.exec(url.pathname)?.[1];
    if (method === "POST" && answered !== undefined) {
      const callbackId = decodeURIComponent(answered);
      if (closed.has(callbackId)) return refusal(400, "CallbackTimeoutException", "the callback has already been closed");
      if (!callbacks.delete(callbackId)) return refusal(404, "ResourceNotFoundException", "no such callback");
      closed.add(callbackId);
      answers.push({ callbackId, result: body });
      return { status: 200, body: "{}" };
    }
    throw new Error(`${method} ${url.pathname} is not emulated`);
  }

  const server = await listen((request, body, response) => {
    requests += 1;
    const fault = faults.shift();
    if (fault === "hang") return;
    const url = new URL(request.url ?? "/", "http://localhost");
    const failed = typeof fault === "object" ? refusal(fault.status, fault.type, "on purpose") : undefined;
    const unsigned = isSigned(request, "lambda") ? undefined : refusal(403, "MissingAuthenticationTokenException", "the request is not signed");
    const answer = unsigned ?? failed ?? serve(request.method ?? "", url, request.headers, body.toString("utf8"));
    if (fault === "drop") request.socket.destroy();
    else response.writeHead(answer.status, { "content-type": "application/json", ...answer.headers }).end(answer.body ?? "");
  });
  return {
    url: server.url,
    executions,
    callbacks,
    answers,
    get requests() {
      return requests;
    },
    fail: (fault, times = 1) => void faults.push(...Array.from({ length: times }, () => fault)),
    close: server.close,
  };
}

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

function refusal(status: number, type: string, message: string): Answer {
  return { status, headers: { "x-amzn-errortype": type }, body: JSON.stringify({ Type: status < 500 ? "User" : "Service", Message: message, message }) };
}
