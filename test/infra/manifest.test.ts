import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { App, AwsLambdaReceiver } from "@slack/bolt";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { register } from "../../functions/slack/app.ts";
import { slackManifest } from "../../infra/slack/manifest.ts";

const URL_OF_STACK = "https://abc123.execute-api.eu-central-1.amazonaws.com/slack";

interface Manifest {
  readonly features: {
    readonly app_home: { readonly home_tab_enabled: boolean; readonly messages_tab_read_only_enabled: boolean };
    readonly shortcuts: { readonly type: string; readonly callback_id: string; readonly name: string; readonly description: string }[];
    readonly slash_commands: { readonly command: string; readonly url: string }[];
  };
  readonly oauth_config: { readonly scopes: { readonly bot: string[]; readonly user?: string[] } };
  readonly settings: {
    readonly event_subscriptions: { readonly request_url: string; readonly bot_events: string[] };
    readonly interactivity: { readonly is_enabled: boolean; readonly request_url: string };
    readonly socket_mode_enabled: boolean;
  };
}
const manifest = parse(slackManifest(URL_OF_STACK)) as Manifest;

/** What the app listens to, as it registers it with Bolt. */
function listeners(): { commands: string[]; events: string[]; shortcuts: string[]; actions: number } {
  const app = new App({ receiver: new AwsLambdaReceiver({ signingSecret: "s" }), authorize: async () => ({}) });
  const heard = { commands: [] as string[], events: [] as string[], shortcuts: [] as string[], actions: 0 };
  app.command = ((command: string) => heard.commands.push(command)) as never;
  app.event = ((event: string) => heard.events.push(event)) as never;
  app.shortcut = (({ callback_id: id }: { callback_id: string }) => heard.shortcuts.push(id)) as never;
  app.action = (() => heard.actions++) as never;
  register(app, {} as never, (() => undefined) as never);
  return heard;
}

describe("the Slack app's manifest", () => {
  test("has the scopes that the docs name, and no other", () => {
    const docs = readFileSync(fileURLToPath(new URL("../../docs/architecture.md", import.meta.url)), "utf8");
    const sentence = /The app needs the scopes (.*?), and the events/s.exec(docs)?.[1] ?? "";
    const named = [...sentence.matchAll(/`([a-z_.:]+)`/g)].map((match) => match[1] as string);
    expect(named.length).toBeGreaterThan(5);
    expect([...manifest.oauth_config.scopes.bot].sort()).toEqual(named.sort());
    expect(manifest.oauth_config.scopes.user).toBeUndefined();
  });

  test("has the commands and events that the app listens to, and tells it about clicks", () => {
    const { commands, events, shortcuts, actions } = listeners();
    expect(manifest.features.shortcuts.map(({ callback_id: id }) => id)).toEqual(shortcuts);
    // Slack's limits (schemas/manifest.schema.2.0.0.json of slackapi/manifest-schema)
    for (const { type, name, description } of manifest.features.shortcuts)
      expect([type, name.length <= 24, description]).toEqual(["message", true, "Triage the node in this message"]);
    expect(manifest.features.app_home).toMatchObject({ home_tab_enabled: true, messages_tab_read_only_enabled: false });
    expect(manifest.features.slash_commands.map(({ command }) => command).sort()).toEqual(commands.sort());
    const heard = manifest.settings.event_subscriptions.bot_events.map((event) => event.split(".")[0] as string);
    expect([...new Set(heard)].sort()).toEqual(events.sort());
    expect(actions).toBeGreaterThan(0);
    expect(manifest.settings.interactivity.is_enabled).toBe(true);
  });

  test("each kind of message event has the scope that Slack asks for it", () => {
    const scopeOf: Record<string, string> = {
      "message.channels": "channels:history",
      "message.groups": "groups:history",
      "message.im": "im:history",
      app_mention: "app_mentions:read",
    };
    // the Home tab asks for none
    const needed = manifest.settings.event_subscriptions.bot_events.filter((event) => event !== "app_home_opened").map((event) => scopeOf[event] as string);
    for (const scope of needed) expect(manifest.oauth_config.scopes.bot).toContain(scope);
    const histories = manifest.oauth_config.scopes.bot.filter((scope) => /:history$|^app_mentions/.test(scope));
    expect(histories.sort()).toEqual(needed.sort());
  });

  test("everything goes to the address that was given", () => {
    const { features, settings } = manifest;
    expect([features.slash_commands[0]?.url, settings.event_subscriptions.request_url, settings.interactivity.request_url]).toEqual([
      URL_OF_STACK,
      URL_OF_STACK,
      URL_OF_STACK,
    ]);
    expect(slackManifest(URL_OF_STACK)).not.toContain("{{");
  });

  test.each(["http://example.com/slack", "example.com", "https://example.com/?a=b", "https://example.com/\nfoo: bar", 'https://example.com/"', ""])(
    "%j is no address",
    (url) => {
      expect(() => slackManifest(url)).toThrow(/https/);
    },
  );
});
