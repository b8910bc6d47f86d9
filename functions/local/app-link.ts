import { createHmac } from "node:crypto";
import type { Clock } from "./clock.ts";

/** What became of one request to the app. `unreachable`: no connection, or it broke. */
export type Delivery =
  | { readonly kind: "answered"; readonly status: number; readonly body: string }
  | { readonly kind: "timeout" }
  | { readonly kind: "unreachable" };

export interface AppLinkOptions {
  readonly clock: Pick<Clock, "now" | "after">;
  readonly signingSecret: string;
  /** Commands, clicks and submissions that time out are sent a second time. */
  readonly retryInteractions: boolean;
  /** How long the app is waited for. */
  readonly patienceMs: number;
}

/** Slack sends an event up to three times more: at once, after a minute, after five. */
const eventRetriesMs = [0, 60_000, 300_000];

/** Carries what happens in the workspace to the app: signed, with Slack's patience, and with Slack's retries. */
export class AppLink {
  /** Where the app listens, e.g. "http://127.0.0.1:3000/slack/events". */
  url: string | undefined;
  readonly #options: AppLinkOptions;
  readonly #running = new Set<Promise<unknown>>();
  readonly #timers = new Set<() => void>();

  constructor(options: AppLinkOptions) {
    this.#options = options;
  }

  /**
   * Sends a command, click or submission, form-encoded. Slack itself does not retry these; middle boxes do, and so does this link (unless switched off),
   * because an app has to stand it. The answer is that of the first attempt.
   */
  async interaction(form: Record<string, string>): Promise<Delivery> {
    const body = new URLSearchParams(form).toString();
    const type = "application/x-www-form-urlencoded";
    const first = await this.#send(body, type);
    if (first.kind === "timeout" && this.#options.retryInteractions) void this.#send(body, type, { number: 1, reason: "http_timeout" });
    return first;
  }

  /** Sends an event (JSON). Resolves with the first attempt's outcome; retries go on behind it until one is answered with 2xx. */
  async event(payload: unknown): Promise<Delivery> {
    const body = JSON.stringify(payload);
    const first = await this.#send(body, "application/json");
    this.#retryEvent(body, first, 1);
    return first;
  }

  /** Resolves when no request is under way. Retries that wait for their time do not count. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  /** Gives up all waiting retries. */
  close(): void {
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
  }

  #retryEvent(body: string, before: Delivery, number: number): void {
    const delay = eventRetriesMs[number - 1];
    if (delay === undefined || (before.kind === "answered" && before.status < 300)) return;
    const reason = before.kind === "timeout" ? "http_timeout" : before.kind === "unreachable" ? "connection_failed" : "http_error";
    const again = async () => this.#retryEvent(body, await this.#send(body, "application/json", { number, reason }), number + 1);
    const cancel = this.#options.clock.after(delay, () => {
      this.#timers.delete(cancel);
      void again();
    });
    this.#timers.add(cancel);
  }

  #send(body: string, contentType: string, retry?: { number: number; reason: string }): Promise<Delivery> {
    const sending = this.#request(body, contentType, retry);
    this.#running.add(sending);
    void sending.finally(() => this.#running.delete(sending));
    return sending;
  }

  async #request(body: string, contentType: string, retry: { number: number; reason: string } | undefined): Promise<Delivery> {
    if (this.url === undefined) return { kind: "unreachable" };
    const timestamp = Math.floor(this.#options.clock.now() / 1000);
    const abort = new AbortController();
    const cancel = this.#options.clock.after(this.#options.patienceMs, () => abort.abort());
    try {
      const response = await fetch(this.url, {
        method: "POST",
        headers: {
          "content-type": contentType,
          "user-agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
          "x-slack-request-timestamp": String(timestamp),
          "x-slack-signature": sign(this.#options.signingSecret, timestamp, body),
          ...(retry === undefined ? {} : { "x-slack-retry-num": String(retry.number), "x-slack-retry-reason": retry.reason }),
        },
        body,
        redirect: "error",
        signal: abort.signal,
      });
      return { kind: "answered", status: response.status, body: await response.text() };
    } catch {
      return { kind: abort.signal.aborted ? "timeout" : "unreachable" };
    } finally {
      cancel();
    }
  }
}

/** Slack's request signature, version 0: HMAC-SHA256 over `v0:<timestamp>:<body>`, timestamp in seconds. */
export function sign(secret: string, timestamp: number, body: string): string {
  return `v0=${createHmac("sha256", secret).update(`v0:${timestamp}:${body}`).digest("hex")}`;
}
