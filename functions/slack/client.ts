import { setTimeout as delay } from "node:timers/promises";
import { type FetchFunction, LogLevel, WebClient } from "@slack/web-api";

/** Milliseconds for one request. */
const REQUEST_MS = 10_000;
/** Seconds that one call waits in all when Slack says "later". */
const PATIENCE_SECONDS = 60;

/**
 * Slack's Web API as chat.ts needs it. Where Slack refuses a call for now (429, nothing was done), it is sent again after the time that Slack names.
 * Nothing else is repeated here, as the library would: a call whose answer was lost may have been done, and who repeats it must look first.
 * @param slackApiUrl ends with "/"; Slack's own unless given
 * @param current where tokens rotate: the one that is valid now; asked with `refused` after Slack took the last one no more, which has then done nothing
 */
export function slackClient(token: string, slackApiUrl?: string, current?: CurrentToken): WebClient {
  return new WebClient(token, {
    ...(slackApiUrl === undefined ? {} : { slackApiUrl }),
    retryConfig: { retries: 0 },
    rejectRateLimitedCalls: true,
    // failures reach the caller
    logLevel: LogLevel.ERROR,
    fetch: current === undefined ? patientFetch : renewingFetch(current),
  });
}

/** Bounded by who reads: it is asked before every call. */
export type CurrentToken = (refused: boolean) => Promise<string>;
/** Slack's words for a token that was replaced or taken back. */
const REFUSED: readonly unknown[] = ["invalid_auth", "token_revoked", "token_expired", "not_authed", "account_inactive"];

function renewingFetch(current: CurrentToken): FetchFunction {
  return async (url, init) => {
    const call = (token: string) => {
      const headers = new Headers((init as RequestInit | undefined)?.headers);
      // uploads go to an address that wants no token
      if (headers.has("authorization")) headers.set("authorization", `Bearer ${token}`);
      return patientFetch(url, { ...init, headers: Object.fromEntries(headers) });
    };
    const first = await current(false);
    const response = await call(first);
    const answer = (await response
      .clone()
      .json()
      .catch(() => ({}))) as { readonly error?: unknown };
    if (!REFUSED.includes(answer.error)) return response;
    const renewed = await current(true);
    return renewed === first ? response : call(renewed);
  };
}

async function patientFetch(...[url, init]: Parameters<FetchFunction>): Promise<Response> {
  for (let left = PATIENCE_SECONDS; ; ) {
    const response = await fetch(url, { ...(init as RequestInit), signal: AbortSignal.timeout(REQUEST_MS) });
    const seconds = response.status === 429 ? Number(response.headers.get("retry-after") ?? Number.NaN) : Number.NaN;
    if (!(seconds <= left)) return response;
    left -= Math.max(1, seconds);
    await response.body?.cancel();
    await delay(seconds * 1000);
  }
}
