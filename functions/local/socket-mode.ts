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

/** Slack did not let us in, or did not answer. The library may go on trying: who gives up ends the process. */
export class SocketModeError extends Error {
  override readonly name = "SocketModeError";
}

/** The library by itself tries in silence, for half an hour and longer. */
const PATIENCE_MS = 30_000;

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
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no connection after ${PATIENCE_MS / 1000} s`)), PATIENCE_MS);
  });
  try {
    await Promise.race([app.start(), patience]);
  } catch (cause) {
    await assembly.close();
    throw new SocketModeError(
      `could not connect to Slack: ${(cause as Error).message}. Does this machine reach slack.com, is Socket Mode on, and is SLACK_APP_TOKEN an app-level token with connections:write?`,
      { cause },
    );
  } finally {
    clearTimeout(timer);
  }
  return {
    ...assembly,
    async close() {
      await app.stop();
      await assembly.close();
    },
  };
}
