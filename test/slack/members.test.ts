import { afterEach, beforeEach, expect, test } from "vitest";
import { type LocalServer, startServer } from "../../functions/local/server.ts";
import { Workspace } from "../../functions/local/workspace.ts";
import { slackClient } from "../../functions/slack/client.ts";
import { membersOf } from "../../functions/slack/members.ts";

let workspace: Workspace;
let server: LocalServer;
beforeEach(async () => {
  workspace = new Workspace({ retryInteractions: false });
  server = await startServer({ workspace });
});
afterEach(() => server.close());

const members = (group: string) => membersOf(slackClient(workspace.botToken, `${server.url}/api/`))(group);

test("who is in a user group", async () => {
  const [group] = workspace.chat.groups;
  expect(await members(group?.id ?? "")).toEqual(group?.users);
});

test("a group that there is not: waiting does not help", async () => {
  await expect(members("S_NONE")).rejects.toMatchObject({ message: "slack: could not look up the members of S_NONE: no_such_subteam", retryable: false });
});

test.each([500, "lost"] as const)("Slack gives no answer (%j): it may pass", async (fault) => {
  workspace.fail("usergroups.users.list", { with: fault });
  await expect(members(workspace.chat.groups[0]?.id ?? "")).rejects.toMatchObject({ retryable: true });
});
