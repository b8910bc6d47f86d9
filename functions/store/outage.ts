/** Errors of a client that has got no answer. */
const UNANSWERED = new Set(["TimeoutError", "RequestTimeout", "NetworkingError", "ECONNRESET", "ECONNREFUSED", "EPIPE", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN"]);

/** True of an error of AWS's SDK that may pass: the service was asked too often, is in trouble itself, or did not answer. However long the SDK has tried. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { name, code, $retryable, $metadata } = error as Error & { code?: string; $retryable?: object; $metadata?: { httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode ?? 0;
  return (
    $retryable !== undefined ||
    status >= 500 ||
    status === 429 ||
    /Throttl|ThroughputExceeded|LimitExceeded|SlowDown/.test(name) ||
    UNANSWERED.has(name) ||
    UNANSWERED.has(code ?? "")
  );
}
