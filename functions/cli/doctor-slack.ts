import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";
import { clockFinding, type Findings, ok, problem, unknown } from "./doctor-findings.ts";

/** How the deployment talks to Slack. */
export interface SlackAccess {
  readonly botToken: string | undefined;
  readonly signingSecret: string | undefined;
  /** With it: Socket Mode, as local mode has it. */
  readonly appToken: string | undefined;
  /** Slack's Web API; ends with "/". */
  readonly apiUrl: string;
  /** Where Slack sends its requests (output SlackUrl of the stack); unknown if undefined. */
  readonly requestUrl: string | undefined;
}

const AREA = "Slack";
/** Milliseconds for one request. */
const REQUEST_MS = 10_000;
const Manifest = z.object({ oauth_config: z.object({ scopes: z.object({ bot: z.array(z.string()) }) }) });

/** The bot's scopes as the app's manifest (infra/slack/manifest.yaml) asks for them. Throws if it cannot be read. */
export function manifestScopes(file: string): string[] {
  return Manifest.parse(parse(readFileSync(file, "utf8"))).oauth_config.scopes.bot;
}

interface Answer {
  readonly body: { readonly ok?: boolean; readonly error?: string; readonly team?: string; readonly user?: string };
  readonly headers: Headers;
  readonly at: number;
}

/**
 * Looks at the Slack app: token, scopes, channels, clock, the way that requests come. Posts nothing.
 * @param channels ids of the channels that netcheck.yaml names
 */
export async function examineSlack(findings: Findings, access: SlackAccess, channels: readonly string[], scopes: () => string[]): Promise<void> {
  const { botToken, signingSecret, appToken, requestUrl } = access;
  await findings.look(AREA, "signing secret", () => {
    if (signingSecret === undefined) return unknown("no signing secret is known", "Name the secret with --slack-secret, or set SLACK_SIGNING_SECRET");
    return /^[0-9a-f]{32}$/.test(signingSecret)
      ? ok("it has the form of a signing secret")
      : problem("it does not look like a signing secret (32 hex digits)", "Copy it anew from the app's Basic Information page; it is not the client secret");
  });
  let identity: Answer | undefined;
  const valid = await findings.look(AREA, "bot token", async () => {
    if (botToken === undefined) return unknown("no bot token is known", "Name the secret with --slack-secret, or set SLACK_BOT_TOKEN");
    if (!botToken.startsWith("xoxb-"))
      return problem("it is not a bot token: it does not begin with xoxb-", "Copy the Bot User OAuth Token from the app's page");
    identity = await ask(access.apiUrl, botToken, "auth.test", {});
    const { body } = identity;
    if (body.ok === true) return ok(`it is ${body.user} in ${body.team}`);
    return problem(`Slack refuses it: ${body.error}`, "Install the app to the workspace again, and put the new token into the secret");
  });
  if (identity !== undefined) {
    const { headers, at } = identity;
    await findings.look(AREA, "clock", () => clockFinding("Slack", headers.get("date"), at));
    if (valid)
      await findings.look(AREA, "scopes", () => {
        const granted = headers.get("x-oauth-scopes");
        if (granted === null) return unknown("Slack did not say which scopes the token has");
        const has = new Set(granted.split(",").map((scope) => scope.trim()));
        const wanted = scopes();
        const missing = wanted.filter((scope) => !has.has(scope));
        const more = [...has].filter((scope) => !wanted.includes(scope));
        if (missing.length > 0)
          return problem(
            `the token lacks ${missing.join(", ")}`,
            "Compare the app with infra/slack/manifest.yaml, add the scopes under OAuth & Permissions, install the app again",
          );
        if (more.length > 0) return problem(`the token may do more than netcheck needs: ${more.join(", ")}`, "Remove those scopes and install the app again");
        return ok(`the ${wanted.length} scopes of the manifest, and no other`);
      });
  }
  for (const channel of channels)
    await findings.look(AREA, `channel ${channel}`, async () => {
      if (botToken === undefined || !valid) return unknown("without a valid bot token nobody can tell");
      // needs no scope beyond the manifest's; one message is asked for and not read
      const { body } = await ask(access.apiUrl, botToken, "conversations.history", { channel, limit: "1" });
      if (body.ok === true) return ok("the bot is in it");
      if (body.error === "not_in_channel" || body.error === "channel_not_found")
        return problem(
          `the bot is not in it, or it does not exist (${body.error})`,
          "Invite the bot: /invite @netcheck in that channel; or correct the id in netcheck.yaml",
        );
      return unknown(`Slack said: ${body.error}`);
    });
  await findings.look(AREA, "how requests come", async () => {
    if (appToken !== undefined) {
      const { body } = await ask(access.apiUrl, appToken, "apps.connections.open", {});
      if (body.ok === true) return ok("Socket Mode is on and the app token is accepted");
      return problem(`Socket Mode does not work: ${body.error}`, "Turn Socket Mode on in the app's settings; the app token needs the scope connections:write");
    }
    if (requestUrl === undefined) return unknown("the address for Slack's requests is not known", "Give it with --url (output SlackUrl of the stack)");
    // a request without a signature: whoever takes it checks no signatures
    const response = await fetch(requestUrl, { method: "POST", body: "", redirect: "manual", signal: AbortSignal.timeout(REQUEST_MS) });
    await response.body?.cancel();
    if (response.status === 401) return ok("the address answers, and refuses a request without a signature");
    if (response.status < 300)
      return problem(`${requestUrl} accepted a request without a signature (${response.status})`, "This is not netcheck, or not this version: deploy again");
    return problem(
      `${requestUrl} answered ${response.status} instead of 401`,
      "Look at the log of the function slack; is the URL right, and is the secret filled in?",
    );
  });
}

async function ask(apiUrl: string, token: string, method: string, parameters: Readonly<Record<string, string>>): Promise<Answer> {
  const response = await fetch(new URL(method, apiUrl), {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: new URLSearchParams(parameters),
    signal: AbortSignal.timeout(REQUEST_MS),
  });
  const at = Date.now();
  if (response.status === 429) throw new Error(`Slack is throttling: try again in ${response.headers.get("retry-after") ?? "some"} s`);
  const text = await response.text();
  try {
    return { body: JSON.parse(text) as Answer["body"], headers: response.headers, at };
  } catch (cause) {
    throw new Error(`${apiUrl} answered ${response.status} and no JSON: is a proxy in the way?`, { cause });
  }
}
