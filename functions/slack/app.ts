import { App, AwsLambdaReceiver, type BlockAction, type ButtonAction, LogLevel } from "@slack/bolt";
import type { Work } from "../triage/ports.ts";
import { BUTTONS, button } from "./listeners/button.ts";
import { netcheckCommand } from "./listeners/netcheck-command.ts";
import type { Renderer } from "./render.ts";

export interface AppOptions {
  readonly signingSecret: string;
  /** The bot's token; unused by the listeners, which call no API. */
  readonly botToken: string;
  readonly work: Work;
  readonly render: Renderer;
}

/** An HTTP request as Lambda gives it (function URL or HTTP API, payload 2.0). */
export interface HttpEvent {
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body?: string;
  readonly isBase64Encoded: boolean;
}
export interface HttpResponse {
  readonly statusCode: number;
  readonly headers?: Readonly<Record<string, string | number | boolean>>;
  readonly body: string;
}

/** Slack's window: an older request is stale. */
const WINDOW_SECONDS = 5 * 60;

/**
 * The Slack surface as one function from request to response: signature and 5-minute window checked, replays refused, listeners only hand work over.
 * Answers within 3 seconds if `work.start` does.
 */
export function slackHandler({ signingSecret, botToken, work, render }: AppOptions): (event: HttpEvent) => Promise<HttpResponse> {
  const receiver = new AwsLambdaReceiver({ signingSecret, logLevel: LogLevel.ERROR });
  const app = new App({
    receiver,
    logLevel: LogLevel.ERROR,
    // the answer goes out when the listener is done: on Lambda nothing runs after it
    processBeforeResponse: true,
    // a function, because a token would cost an auth.test call on every cold start
    authorize: async () => ({ botToken, botId: "netcheck", botUserId: "netcheck" }),
  });
  app.command("/netcheck", netcheckCommand(work, render));
  for (const action of BUTTONS) app.action<BlockAction<ButtonAction>>({ action_id: action, type: "block_actions" }, button(work, action));
  const handle = receiver.toHandler();
  const seen = new Seen();
  return async (event) => {
    const headers = Object.fromEntries(Object.entries(event.headers).map(([name, value]) => [name.toLowerCase(), value]));
    const signature = headers["x-slack-signature"];
    const timestamp = Number(headers["x-slack-request-timestamp"]);
    const refused = { statusCode: 401, body: "" };
    if (signature === undefined || !Number.isFinite(timestamp)) return refused;
    // biome-ignore lint/suspicious/noExplicitAny: Bolt reads only headers, body and isBase64Encoded of the event
    const response = await handle({ ...event, headers } as any, {});
    if (response.statusCode === 401) return refused;
    // a request that Bolt took and that was here before is a replay; its work was started under the same name, so even across machines it is one run
    if (seen.add(signature, timestamp) === "again") return refused;
    return { statusCode: response.statusCode, ...(response.headers === undefined ? {} : { headers: response.headers }), body: response.body };
  };
}

/** Signatures of the last five minutes. */
class Seen {
  private readonly signatures = new Map<string, number>();

  add(signature: string, timestamp: number): "first" | "again" {
    if (this.signatures.has(signature)) return "again";
    for (const [old, at] of this.signatures) if (at < timestamp - 2 * WINDOW_SECONDS) this.signatures.delete(old);
    this.signatures.set(signature, timestamp);
    return "first";
  }
}
