/** An HTTP call to a monitoring system, as the adapters here make it. */
export interface Call {
  /** Names the system in errors: "pagerduty". */
  readonly service: string;
  /** What is being done, for people: "leave a note on incident PXYZ". */
  readonly what: string;
  readonly method: "GET" | "POST" | "PUT";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** What to do where the system refuses our key (401, 403). */
  readonly key: string;
}

/** Milliseconds for one call with its answer. */
const PATIENCE_MS = 10_000;
/** Bytes of an answer that are read: a list of a hundred notes is far below it. */
const MAX_ANSWER = 2 * 1024 * 1024;

/**
 * Makes the call once and returns the answer's JSON ({} if it has none). An answer other than 2xx is an Error that says what was tried, why it failed and what to
 * do; `status` is its number, and `retryable` says whether waiting may help: after 408, 429 and 5xx, and where there was no answer.
 */
export async function call({ service, what, method, url, headers, body, key }: Call): Promise<unknown> {
  const failed = (why: string, more: { readonly status?: number; readonly retryable: boolean }): Error =>
    Object.assign(new Error(`${service}: could not ${what}: ${why}`), more);
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, {
      method,
      redirect: "error",
      signal: AbortSignal.timeout(PATIENCE_MS),
      headers: { accept: "application/json", ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    text = await bounded(response);
  } catch (error) {
    const { name, message, cause } = error as Error & { cause?: { message?: string } };
    throw failed(name === "TimeoutError" ? `no answer in ${PATIENCE_MS / 1000} s` : (cause?.message ?? message), { retryable: true });
  }
  const answer = parsed(text);
  const { status } = response;
  if (status >= 200 && status < 300) return answer;
  const hint = status === 401 || status === 403 ? `. ${key}` : status === 429 ? ". It takes no more requests for now" : "";
  throw failed(`HTTP ${status}${said(answer)}${hint}`, { status, retryable: status === 408 || status === 429 || status >= 500 });
}

/** True of an error that {@link call} throws for a status. */
export const hasStatus = (error: unknown, status: number): boolean => (error as { status?: number }).status === status;

async function bounded(response: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    bytes += (piece as Uint8Array).length;
    if (bytes > MAX_ANSWER) throw new Error(`the answer is longer than ${MAX_ANSWER} bytes`);
    pieces.push(piece as Uint8Array);
  }
  return Buffer.concat(pieces).toString("utf8");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** What the system says of the refusal: each has a form of its own. */
function said(answer: unknown): string {
  const { message, error, errors } = record(answer);
  const inner = record(error);
  const words = [message, typeof error === "string" ? error : inner["message"], ...texts(inner["errors"]), ...texts(errors)].filter(
    (word): word is string => typeof word === "string" && word !== "",
  );
  return words.length === 0 ? "" : `: ${[...new Set(words)].join("; ").slice(0, 300)}`;
}

/** {} of what is no object. */
export const record = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
/** The objects of a list. */
export const records = (value: unknown): readonly Readonly<Record<string, unknown>>[] => (Array.isArray(value) ? value.map(record) : []);
export const text = (value: unknown): string => (typeof value === "string" ? value : "");
const texts = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The line by which a note is found again. */
export const firstLine = (note: string): string => note.split("\n", 1)[0] ?? "";
