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
export const signed = (form: Readonly<Record<string, string>>, envelope: Envelope = {}): HttpEvent =>
  envelop(new URLSearchParams(form).toString(), "application/x-www-form-urlencoded", envelope);

/** A signed event of the Events API as a Lambda event. */
export const signedEvent = (payload: unknown, envelope: Envelope = {}): HttpEvent => envelop(JSON.stringify(payload), "application/json", envelope);

function envelop(body: string, contentType: string, { timestamp = now(), secret = SECRET, headers = {}, base64 = false }: Envelope): HttpEvent {
  return {
    headers: {
      "content-type": contentType,
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

/** A mention of the bot (`<@U0BOT>` in the text) outside of threads. `fields` replaces parts of the event. */
export function mention(text: string, fields: Readonly<Record<string, unknown>> = {}, envelope: Readonly<Record<string, unknown>> = {}): object {
  return {
    token: "deprecated",
    team_id: "T0001",
    context_team_id: "T0001",
    context_enterprise_id: null,
    api_app_id: "A0001",
    event: {
      type: "app_mention",
      user: "U0001",
      text,
      ts: "1700000000.000100",
      channel: "C0001",
      event_ts: "1700000000.000100",
      team: "T0001",
      client_msg_id: "5d7c0000-0000-4000-8000-000000000001",
      blocks: [],
      ...fields,
    },
    type: "event_callback",
    event_id: "Ev0001",
    event_time: 1_700_000_000,
    authorizations: [{ enterprise_id: null, team_id: "T0001", user_id: "U0BOT", is_bot: true, is_enterprise_install: false }],
    is_ext_shared_channel: false,
    ...envelope,
  };
}

/** A file as Slack puts it into an event. */
export const file = (name: string, fields: Readonly<Record<string, unknown>> = {}): object => ({
  id: "F0001",
  created: 1_700_000_000,
  name,
  title: name,
  mimetype: "application/octet-stream",
  filetype: "binary",
  user: "U0001",
  size: 3808,
  mode: "hosted",
  is_external: false,
  url_private: `https://files.slack.com/files-pri/T0001-F0001/${name}`,
  url_private_download: `https://files.slack.com/files-pri/T0001-F0001/download/${name}`,
  ...fields,
});

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

/** The form of a modal that was sent off. `values`: what was entered, by the id of its block; `view` and `fields` replace parts of the view and the payload. */
export function submission(
  metadata: string,
  values: Readonly<Record<string, string | null>> = {},
  view: Readonly<Record<string, unknown>> = {},
  fields: Readonly<Record<string, unknown>> = {},
): Record<string, string> {
  const payload = {
    type: "view_submission",
    team: { id: "T0001", domain: "example" },
    user: { id: "U0002", username: "bob", name: "bob", team_id: "T0001" },
    api_app_id: "A0001",
    token: "deprecated",
    trigger_id: "13345224609.738474920.submit",
    view: {
      id: "V0001",
      team_id: "T0001",
      type: "modal",
      blocks: [],
      private_metadata: metadata,
      callback_id: "approval",
      state: { values: Object.fromEntries(Object.entries(values).map(([id, value]) => [id, { [id]: { type: "plain_text_input", value } }])) },
      hash: "1700000003.abcdef",
      title: { type: "plain_text", text: "Review and approve" },
      clear_on_close: false,
      notify_on_close: false,
      close: null,
      submit: { type: "plain_text", text: "Approve & run" },
      previous_view_id: null,
      root_view_id: "V0001",
      app_id: "A0001",
      external_id: "",
      app_installed_team_id: "T0001",
      bot_id: "B0001",
      ...view,
    },
    response_urls: [],
    is_enterprise_install: false,
    enterprise: null,
    ...fields,
  };
  return { payload: JSON.stringify(payload) };
}
