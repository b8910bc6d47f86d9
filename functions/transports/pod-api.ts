import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Access } from "./pod-access.ts";

/** An answer of the API server that is no success, or none at all. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** HTTP status; 0: no answer came. */
  readonly status: number;
  /** The reason of the Status object ("Forbidden"), or the code of the network error ("ECONNREFUSED"). */
  readonly reason: string;
  readonly retryAfterMs: number | undefined;
  constructor(status: number, reason: string, message: string, options: { retryAfterMs?: number | undefined; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.status = status;
    this.reason = reason;
    this.retryAfterMs = options.retryAfterMs;
  }
}

export interface Call {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** A JSON answer, and when it was given by the server's clock (ms; ours may be wrong, and ages of pods are told by theirs). */
export interface Answered<T> {
  readonly body: T;
  readonly serverTime: number;
}

export interface WatchEvent<T> {
  readonly type: string;
  readonly object: T;
}

/** The few calls that a debug pod needs, over `node:https`: 3 KB where the client library has 2 MB. */
export interface KubernetesApi {
  /** Throttling, a starting server and lost connections are tried again (4 times in all) where the call is idempotent. Throws {@link ApiError}. */
  call<T>(call: Call): Promise<Answered<T>>;
  /** A text, at most `maxBytes` of it; `whole` is false if the connection broke. Throws {@link ApiError}. */
  text(path: string, query: Readonly<Record<string, string>>, maxBytes: number): Promise<{ readonly text: string; readonly whole: boolean }>;
  /**
   * Follows a list from a resourceVersion for at most `ms`. `see` says whether it has seen enough. "ended": the time is over, or the server ended the
   * stream (it does so without a word when it stops). "expired": the version is too old, look at the object again. Throws {@link ApiError}.
   */
  watch<T>(path: string, query: Readonly<Record<string, string>>, ms: number, see: (event: WatchEvent<T>) => boolean): Promise<"seen" | "ended" | "expired">;
}

/** The server is not who it should be: the request was not sent, and trying again does not help. */
export const UNTRUSTED: ReadonlySet<string> = new Set([
  "CERT_HAS_EXPIRED",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "ERR_TLS_CERT_ALTNAME_INVALID",
]);
/** The connection was not made: the request surely did not reach the server. */
export const NOT_CONNECTED: ReadonlySet<string> = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", ...UNTRUSTED]);
/** A server that works says something within a second; a recorded kubelet that could not be reached took 3. */
const SILENCE_MS = 10_000;
/** More of a JSON answer is never read: a page of pods has at most 2 MB. */
const MAX_JSON = 16 * 1024 * 1024;
/** A server that asks for more patience than this is answered with an error that says so. */
const MAX_PATIENCE_MS = 5000;

/**
 * @param pauseMs between two tries, where the server does not say how long
 * @param silence without a byte for so long (ms), the server, or the way to it, is gone
 */
export function kubernetesApi(access: Access, pauseMs = 1000, silence = SILENCE_MS): KubernetesApi {
  /** One request; the headers of its answer. Other credentials are tried once where the server does not accept these: tokens end. */
  async function open({ method, path, query = {}, body }: Call, signal: AbortSignal | undefined, silenceMs = silence): Promise<IncomingMessage> {
    for (let renewed = false; ; renewed = true) {
      const { endpoint, options } = await access.connect();
      const url = new URL(endpoint.pathname.replace(/\/$/, "") + path, endpoint);
      url.search = new URLSearchParams(query).toString();
      const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
      const headers: Record<string, string | number> = { ...(options.headers as Record<string, string>), Accept: "application/json", "User-Agent": "netcheck" };
      if (payload !== undefined) {
        headers["Content-Type"] = method === "PATCH" ? "application/merge-patch+json" : "application/json";
        headers["Content-Length"] = payload.length;
      }
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        const send = url.protocol === "https:" ? httpsRequest : httpRequest;
        const outgoing = send(url, { ...options, method, headers, ...(signal === undefined ? {} : { signal }) }, resolve);
        outgoing.setTimeout(silenceMs, () =>
          outgoing.destroy(Object.assign(new Error(`no answer for ${Math.round(silenceMs / 1000)} s`), { code: "ETIMEDOUT" })),
        );
        outgoing.on("error", (error: NodeJS.ErrnoException) =>
          reject(new ApiError(0, error.code ?? error.name, error.message || error.name, { cause: error })),
        );
        outgoing.end(payload);
      });
      const status = response.statusCode ?? 0;
      if (status >= 200 && status < 300) return response;
      const error = failure(status, response, (await readAll(response, 1024 * 1024)).text);
      if (status !== 401 || renewed) throw error;
      access.renew();
    }
  }

  async function patiently<T>(call: Pick<Call, "method">, run: () => Promise<T>): Promise<T> {
    let refused = false;
    for (let tries = 1; ; tries += 1) {
      try {
        return await run();
      } catch (error) {
        if (!(error instanceof ApiError) || tries === 4) throw error;
        // while it starts, a server denies for a moment what is granted
        const starting: boolean = error.status === 403 && !refused && / cannot \w+ resource /.test(error.message);
        refused ||= starting;
        const again =
          starting ||
          error.status === 429 ||
          (call.method !== "POST" && ((error.status === 0 && !UNTRUSTED.has(error.reason)) || error.status === 503 || error.status === 504));
        const patience = error.retryAfterMs === undefined ? pauseMs * tries : Math.min(error.retryAfterMs, pauseMs * 60);
        if (!again || patience > MAX_PATIENCE_MS) throw error;
        await delay(patience);
      }
    }
  }

  return {
    call: <T>(call: Call) =>
      patiently(call, async () => {
        const response = await open(call, undefined);
        const { text, whole } = await readAll(response, MAX_JSON);
        try {
          if (!whole) throw new Error("the connection broke");
          return { body: JSON.parse(text) as T, serverTime: Date.parse(response.headers.date ?? "") || Date.now() };
        } catch (cause) {
          throw new ApiError(0, "BadAnswer", `the answer cannot be read: ${(cause as Error).message}`, { cause });
        }
      }),

    text: (path, query, maxBytes) => patiently({ method: "GET" }, async () => readAll(await open({ method: "GET", path, query }, undefined), maxBytes)),

    async watch<T>(path: string, query: Readonly<Record<string, string>>, ms: number, see: (event: WatchEvent<T>) => boolean) {
      const aborter = new AbortController();
      const timer = setTimeout(() => aborter.abort(), ms);
      const timeoutSeconds = String(Math.ceil(ms / 1000));
      try {
        const call: Call = { method: "GET", path, query: { ...query, watch: "true", allowWatchBookmarks: "true", timeoutSeconds } };
        const response = await open(call, aborter.signal, ms + silence);
        let rest = "";
        response.setEncoding("utf8");
        for await (const chunk of response) {
          const lines = (rest + (chunk as string)).split("\n");
          rest = lines.pop() ?? "";
          if (rest.length > MAX_JSON) throw new ApiError(0, "BadAnswer", "an event of the watch is too long");
          for (const line of lines) {
            if (line === "") continue;
            const event = JSON.parse(line) as WatchEvent<T & { code?: number; reason?: string; message?: string }>;
            if (event.type === "ERROR") {
              if (event.object.code === 410) return "expired";
              throw new ApiError(event.object.code ?? 500, event.object.reason ?? "", event.object.message ?? "the watch failed");
            }
            if (event.type !== "BOOKMARK" && see(event)) return "seen";
          }
        }
        return "ended";
      } catch (error) {
        if (error instanceof ApiError && error.status === 410) return "expired";
        // our own time limit, a broken connection, or half a line before one: the caller looks again anyway
        if (aborter.signal.aborted || !(error instanceof ApiError)) return "ended";
        throw error;
      } finally {
        clearTimeout(timer);
        aborter.abort();
      }
    },
  };
}

/** What came, at most `maxBytes`; a broken connection is no error: what came before is kept. */
async function readAll(response: IncomingMessage, maxBytes: number): Promise<{ text: string; whole: boolean }> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxBytes) return { text: Buffer.concat(chunks).toString("utf8", 0, maxBytes), whole: false };
    }
    return { text: Buffer.concat(chunks).toString("utf8"), whole: true };
  } catch {
    return { text: Buffer.concat(chunks).toString("utf8"), whole: false };
  }
}

/** An answer that is no success: a Status object, or plain text (429, a starting server). */
function failure(status: number, response: IncomingMessage, text: string): ApiError {
  const retryAfter = Number(response.headers["retry-after"]);
  const options = { retryAfterMs: Number.isFinite(retryAfter) && response.headers["retry-after"] !== undefined ? retryAfter * 1000 : undefined };
  try {
    const { message, reason } = JSON.parse(text) as { message?: string; reason?: string };
    return new ApiError(status, reason ?? "", message ?? (response.statusMessage || `HTTP ${status}`), options);
  } catch {
    return new ApiError(status, "", text.trim().slice(0, 300) || response.statusMessage || `HTTP ${status}`, options);
  }
}

export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
