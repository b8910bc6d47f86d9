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
 */
export function slackClient(token: string, slackApiUrl?: string): WebClient {
  return new WebClient(token, {
    ...(slackApiUrl === undefined ? {} : { slackApiUrl }),
    retryConfig: { retries: 0 },
    rejectRateLimitedCalls: true,
    // failures reach the caller
    logLevel: LogLevel.ERROR,
    fetch: patientFetch,
  });
}

const patientFetch: FetchFunction = async (url, init) => {
  for (let left = PATIENCE_SECONDS; ; ) {
    const response = await fetch(url, { ...(init as RequestInit), signal: AbortSignal.timeout(REQUEST_MS) });
    const seconds = response.status === 429 ? Number(response.headers.get("retry-after") ?? Number.NaN) : Number.NaN;
    if (!(seconds <= left)) return response;
    left -= Math.max(1, seconds);
    await response.body?.cancel();
    await delay(seconds * 1000);
  }
};
