/** Milliseconds; and characters: a certificate has 2,000. */
const [PATIENCE, MAX_ANSWER] = [3000, 100_000];

/** Visits a web address: no redirects, nothing long. Throws an Error whose `retryable` is true where the address could not be reached. */
export async function visit(url: string): Promise<string> {
  const response = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(PATIENCE) }).catch((cause: Error) => {
    throw Object.assign(new Error(`could not visit ${new URL(url).host}: ${cause.message}`, { cause }), { retryable: true });
  });
  const text = (await response.text()).slice(0, MAX_ANSWER);
  if (response.status === 200) return text;
  throw Object.assign(new Error(`${new URL(url).host} answered with status ${response.status}`), {
    retryable: response.status >= 500 || response.status === 429,
  });
}
