import type { WebClient } from "@slack/web-api";
import { mayPass, slackError } from "./slack-error.ts";

/** Who is in a user group now. Throws a sentence for people; `retryable` says whether waiting may help. */
export const membersOf =
  (client: WebClient) =>
  async (group: string): Promise<readonly string[]> => {
    try {
      return (await client.usergroups.users.list({ usergroup: group })).users ?? [];
    } catch (error) {
      const code = slackError(error);
      const message = `slack: could not look up the members of ${group}: ${code ?? (error as Error).message}`;
      throw Object.assign(new Error(message, { cause: error }), { retryable: mayPass(code) });
    }
  };
