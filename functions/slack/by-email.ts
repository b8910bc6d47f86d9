import type { WebClient } from "@slack/web-api";
import type { Actor } from "../triage/ports.ts";
import { mayPass, slackError } from "./slack-error.ts";

/**
 * Who has an e-mail address in Slack; undefined if nobody has, or the app may not ask (it needs `users:read.email`, which netcheck's manifest does not have: the
 * configuration can name people instead).
 */
export const personByEmail =
  (client: WebClient) =>
  async (email: string): Promise<Actor | undefined> => {
    try {
      const { user } = await client.users.lookupByEmail({ email });
      return user?.id === undefined ? undefined : { id: user.id, team: user.team_id ?? "" };
    } catch (error) {
      const code = slackError(error);
      if (code === "users_not_found" || code === "missing_scope" || code === "user_not_visible") return undefined;
      const message = `slack: could not look up who is on call: ${code ?? (error as Error).message}`;
      throw Object.assign(new Error(message, { cause: error }), { retryable: mayPass(code) });
    }
  };
