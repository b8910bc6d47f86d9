import { sign } from "../../functions/local/app-link.ts";
import type { HttpEvent } from "../../functions/slack/app.ts";

/** Requests as Slack sends them, for the app's door. */

export const SECRET = "8f742231b10e8888abcd99yyyzzz85a5";
export const now = (): number => Math.floor(Date.now() / 1000);

export interface Envelope {
  /** Seconds since 1970; now unless given. */
  readonly timestamp?: number;
  readonly secret?: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly base64?: boolean;
}

/** A signed form as a Lambda event. */
export function signed(form: Readonly<Record<string, string>>, { timestamp = now(), secret = SECRET, headers = {}, base64 = false }: Envelope = {}): HttpEvent {
  const body = new URLSearchParams(form).toString();
  return {
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      "user-agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
      "x-slack-request-timestamp": String(timestamp),
      "x-slack-signature": sign(secret, timestamp, body),
      ...headers,
    },
    body: base64 ? Buffer.from(body).toString("base64") : body,
    isBase64Encoded: base64,
  };
}

/** The form of `/netcheck <text>`. */
export function command(text: string, fields: Readonly<Record<string, string>> = {}): Record<string, string> {
  return {
    token: "deprecated",
    team_id: "T0001",
    team_domain: "example",
    channel_id: "C0001",
    channel_name: "incidents",
    user_id: "U0001",
    user_name: "alice",
    command: "/netcheck",
    text,
    api_app_id: "A0001",
    is_enterprise_install: "false",
    response_url: "https://hooks.slack.com/commands/T0001/1/x",
    trigger_id: "13345224609.738474920.8088930838d88f008e0",
    ...fields,
  };
}

/** The form of a click on a button of a message in a thread. `fields` replaces parts of the payload. */
export function click(actionId: string, value: string | undefined, fields: Readonly<Record<string, unknown>> = {}): Record<string, string> {
  const payload = {
    type: "block_actions",
    user: { id: "U0002", username: "bob", name: "bob", team_id: "T0001" },
    api_app_id: "A0001",
    token: "deprecated",
    container: { type: "message", message_ts: "1700000001.000200", channel_id: "C0001", is_ephemeral: false, thread_ts: "1700000000.000100" },
    trigger_id: "13345224609.738474920.click",
    team: { id: "T0001", domain: "example" },
    enterprise: null,
    is_enterprise_install: false,
    channel: { id: "C0001", name: "incidents" },
    message: { type: "message", ts: "1700000001.000200", thread_ts: "1700000000.000100", text: "…", user: "U_NETCHECK", bot_id: "B1" },
    state: { values: {} },
    response_url: "https://hooks.slack.com/actions/T0001/2/y",
    actions: [
      {
        type: "button",
        action_id: actionId,
        block_id: "proposal",
        text: { type: "plain_text", text: "…" },
        ...(value === undefined ? {} : { value }),
        action_ts: "1700000002.000300",
      },
    ],
    ...fields,
  };
  return { payload: JSON.stringify(payload) };
}
