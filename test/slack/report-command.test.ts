import { describe, expect, test } from "vitest";
import { readMention } from "../../functions/slack/listeners/mention.ts";
import { parseReport } from "../../functions/slack/listeners/netcheck-command.ts";

describe("/netcheck report", () => {
  test.each<[string, object | undefined]>([
    ["report inc-0123456789ab", { kind: "report", about: "inc-0123456789ab" }],
    ["  REPORT   inc-1 ", { kind: "report", about: "inc-1" }],
    ["report", { kind: "help", problem: expect.stringContaining("A report on which incident?") as string }],
    ["report inc-1 inc-2", { kind: "help", problem: expect.stringContaining('"inc-1 inc-2" is no id of an incident') as string }],
    ["report ../../etc", { kind: "help", problem: expect.stringContaining("is no id of an incident") as string }],
    [`report ${"a".repeat(65)}`, { kind: "help", problem: expect.stringContaining("is no id of an incident") as string }],
    ["node1", undefined],
    ["reporter", undefined],
    ["", undefined],
  ])("%j", (text, asked) => {
    expect(parseReport(text)).toEqual(asked);
  });

  test("in a mention, too: an execution of its own, not the incident's", () => {
    const event = { type: "app_mention", user: "U_ALICE", text: "<@U_BOT> report inc-1", ts: "1.0", channel: "C_INCIDENTS" };
    const asked = readMention(event, { team_id: "T", authorizations: [{ user_id: "U_BOT" }] });
    expect(asked).toMatchObject({
      kind: "report",
      request: { about: "inc-1", requester: { id: "U_ALICE" }, place: { channel: "C_INCIDENTS", thread: "1.0" } },
    });
    expect((asked as { request: { incident: string } }).request.incident).toMatch(/^inc-[0-9a-f]{12}$/);
  });
});
