import { App, LogLevel, SocketModeReceiver } from "@slack/bolt";
import { register } from "../slack/app.ts";
import { slackClient } from "../slack/client.ts";
import { pace } from "../slack/pace.ts";
import { type Assembly, type AssemblyOptions, assemble } from "./assembly.ts";

export interface SocketModeOptions extends AssemblyOptions {
  /**
   * xoxb-…, with the scopes commands, chat:write, app_mentions:read, files:read, files:write, usergroups:read, channels:history, groups:history and
   * im:history; the app subscribes to the events app_mention and message.im, and to message.channels and message.groups
   * for files whose share Slack does not tell as a mention.
   */
  readonly botToken: string;
  /** xapp-…, with the scope connections:write. */
  readonly appToken: string;
}

/** Local mode with a real Slack workspace: the same listeners over Slack's Socket Mode, so that no public address is needed. */
export async function startSocketMode(options: SocketModeOptions): Promise<Assembly> {
  const assembly = await assemble(options);
  const receiver = new SocketModeReceiver({ appToken: options.appToken, logLevel: LogLevel.ERROR });
  const app = new App({
    receiver,
    logLevel: LogLevel.ERROR,
    authorize: async () => ({ botToken: options.botToken, botId: "netcheck", botUserId: "netcheck" }),
  });
  register(app, assembly.work, assembly.render);
  assembly.start(slackClient(options.botToken), pace());
  try {
    await app.start();
  } catch (cause) {
    await assembly.close();
    throw new Error(
      `could not connect to Slack: ${(cause as Error).message}. Is Socket Mode on, and is SLACK_APP_TOKEN an app-level token with connections:write?`,
      { cause },
    );
  }
  return {
    ...assembly,
    async close() {
      await app.stop();
      await assembly.close();
    },
  };
}
