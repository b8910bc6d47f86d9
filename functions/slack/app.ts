import {
  App,
  AwsLambdaReceiver,
  type BlockAction,
  type ButtonAction,
  isValidSlackRequest,
  LogLevel,
  type MessageShortcut,
  type ViewSubmitAction,
} from "@slack/bolt";
import type { Work } from "../triage/ports.ts";
import { APPROVAL, approvalView } from "./listeners/approval-view.ts";
import { ASK, askModal } from "./listeners/ask-modal.ts";
import { BUTTONS, button } from "./listeners/button.ts";
import { choice } from "./listeners/choice.ts";
import { feedback, VOTES } from "./listeners/feedback.ts";
import { FLEET_BUTTON, fleetButton } from "./listeners/fleet-button.ts";
import { askButton, homeOpened } from "./listeners/home.ts";
import { mention } from "./listeners/mention.ts";
import { netcheckCommand } from "./listeners/netcheck-command.ts";
import { MESSAGE_TRIAGE, messageTriage } from "./listeners/shortcut.ts";
import type { Renderer } from "./render.ts";

export interface AppOptions {
  readonly signingSecret: string;
  /** The bot's token. The listeners call no API, so the acknowledging Lambda has none. */
  readonly botToken?: string;
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

/** Slack's window: an older request is stale. Bolt checks it; here it says how long signatures are kept. */
const WINDOW_SECONDS = 5 * 60;
/** Exactly this: Bolt would also take `v0=<hash>=anything`, which makes a replay look like another request. */
const SIGNATURE = /^v0=[0-9a-f]{64}$/;

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
    authorize: async () => ({ botId: "netcheck", botUserId: "netcheck", ...(botToken === undefined ? {} : { botToken }) }),
  });
  register(app, work, render);
  const handle = receiver.toHandler();
  const seen = new Seen();
  return async (event) => {
    const headers = Object.fromEntries(Object.entries(event.headers).map(([name, value]) => [name.toLowerCase(), value]));
    const signature = headers["x-slack-signature"] ?? "";
    const timestamp = Number(headers["x-slack-request-timestamp"]);
    // not by Bolt, which decodes base64 as ASCII
    const body = event.isBase64Encoded ? Buffer.from(event.body ?? "", "base64").toString("utf8") : (event.body ?? "");
    // before Bolt, which parses the body first, and answers some requests (ssl_check) without a signature
    const signed =
      SIGNATURE.test(signature) &&
      isValidSlackRequest({ signingSecret, body, headers: { "x-slack-signature": signature, "x-slack-request-timestamp": timestamp } });
    if (!signed || !seen.add(signature, timestamp)) return { statusCode: 401, body: "" };
    let done = false;
    try {
      // biome-ignore lint/suspicious/noExplicitAny: Bolt reads only headers, body and isBase64Encoded of the event
      const response = await handle({ headers, body, isBase64Encoded: false } as any, {});
      done = response.statusCode < 500;
      return { statusCode: response.statusCode, ...(response.headers === undefined ? {} : { headers: response.headers }), body: response.body };
    } finally {
      // what was not taken may come again
      if (!done) seen.forget(signature);
    }
  };
}

/** Plugs every listener in: the one list of what the app answers to. */
export function register(app: App, work: Work, render: Renderer): void {
  app.command("/netcheck", netcheckCommand(work, render));
  app.event("app_mention", mention(work));
  app.event("message", mention(work));
  app.event("app_home_opened", homeOpened(work));
  app.shortcut<MessageShortcut>({ callback_id: MESSAGE_TRIAGE, type: "message_action" }, messageTriage(work));
  app.action<BlockAction<ButtonAction>>({ action_id: /^choice-\d{1,2}$/, type: "block_actions" }, choice(work));
  app.action<BlockAction<ButtonAction>>({ action_id: FLEET_BUTTON, type: "block_actions" }, fleetButton(work));
  // the Home tab shows several proposals, and an action id counts once: there a number stands behind it
  for (const action of BUTTONS)
    app.action<BlockAction<ButtonAction>>({ action_id: new RegExp(`^${action}(?:-\\d{1,2})?$`), type: "block_actions" }, button(work, action));
  for (const vote of VOTES) app.action<BlockAction<ButtonAction>>({ action_id: vote, type: "block_actions" }, feedback(work, vote));
  app.action<BlockAction<ButtonAction>>({ action_id: ASK, type: "block_actions" }, askButton(work));
  app.view<ViewSubmitAction>({ callback_id: APPROVAL, type: "view_submission" }, approvalView(work));
  app.view<ViewSubmitAction>({ callback_id: ASK, type: "view_submission" }, askModal(work));
}

/** Signatures of the last minutes, of requests that Slack signed: a second one is a replay. Across machines the execution's name does the same. */
class Seen {
  private readonly signatures = new Map<string, number>();

  /** False: it was here before. `timestamp` in seconds. */
  add(signature: string, timestamp: number): boolean {
    if (this.signatures.has(signature)) return false;
    for (const [old, at] of this.signatures) if (at < timestamp - 2 * WINDOW_SECONDS) this.signatures.delete(old);
    this.signatures.set(signature, timestamp);
    return true;
  }

  forget(signature: string): void {
    this.signatures.delete(signature);
  }
}
