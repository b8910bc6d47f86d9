import { listen } from "./http.ts";

/** A Slack app as its Web API tells of it, and the address that requests for it go to. */
export interface SlackApp {
  /** For `SLACK_API_URL`. */
  readonly url: string;
  /** The address for Slack's requests: answers {@link SlackApp.door}. */
  readonly requestUrl: string;
  readonly botToken: string;
  readonly appToken: string;
  scopes: string;
  /** Channels that the bot is in. */
  readonly channels: Set<string>;
  socketMode: boolean;
  /** What a request without a signature is answered with. */
  door: number;
  /** Slack's clock is ahead of ours by so many milliseconds. */
  clockOffset: number;
  close(): Promise<void>;
}

export async function startSlackApp(scopes: readonly string[]): Promise<SlackApp> {
  const state = {
    botToken: "xoxb-1-2-abc",
    appToken: "xapp-1-abc",
    scopes: scopes.join(","),
    channels: new Set<string>(),
    socketMode: true,
    door: 401,
    clockOffset: 0,
  };
  const { url, close } = await listen((request, raw, response) => {
    if (request.url === "/slack") {
      response.writeHead(state.door).end();
      return;
    }
    const method = (request.url ?? "").replace("/api/", "");
    const token = String(request.headers.authorization).replace("Bearer ", "");
    const body = new URLSearchParams(raw.toString("utf8"));
    const say = (answer: object) =>
      void response
        .writeHead(200, {
          "content-type": "application/json; charset=utf-8",
          date: new Date(Date.now() + state.clockOffset).toUTCString(),
          ...(token === state.botToken ? { "x-oauth-scopes": state.scopes } : {}),
        })
        .end(JSON.stringify(answer));
    if (method === "apps.connections.open") {
      if (token !== state.appToken) return say({ ok: false, error: "invalid_auth" });
      return say(state.socketMode ? { ok: true, url: "wss://example.invalid/" } : { ok: false, error: "socket_mode_not_enabled" });
    }
    if (token !== state.botToken) return say({ ok: false, error: "invalid_auth" });
    if (method === "auth.test") return say({ ok: true, team: "Example", user: "netcheck", team_id: "T1", user_id: "U1", bot_id: "B1" });
    if (method === "conversations.history")
      return say(state.channels.has(body.get("channel") ?? "") ? { ok: true, messages: [] } : { ok: false, error: "not_in_channel" });
    throw new Error(`doctor called ${method}`);
  });
  return Object.assign(state, { url: `${url}/api/`, requestUrl: `${url}/slack`, close });
}
