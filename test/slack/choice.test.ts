import { describe, expect, test } from "vitest";
import { app } from "./door.ts";
import { click, signed } from "./requests.ts";

/** The buttons under "which one do you mean?", through the signed door. */

/** As Slack sends a click on a message that only one person sees: the message itself is not told. */
const EPHEMERAL = { container: { type: "message", message_ts: "1700000001.000200", channel_id: "C0001", is_ephemeral: true }, message: undefined };

describe("a choice", () => {
  test.each<[string, object]>([
    ["prod/node1", { target: "prod/node1" }],
    ["node1 vs other/node2 node3", { target: "node1", against: ["other/node2", "node3"] }],
    ["pod edge/shop/web-1", { target: "pod edge/shop/web-1", workload: { kind: "pod", cluster: "edge", namespace: "shop", name: "web-1" } }],
  ])("%s starts the triage that its words ask for, in the name of who clicked", async (words, asked) => {
    const { send, started } = app();
    expect((await send(signed(click("choice-0", words, EPHEMERAL)))).statusCode).toBe(200);
    expect(started.map(({ event }) => event)).toEqual([
      {
        kind: "triage",
        request: {
          incident: started[0]?.name,
          requester: { id: "U0002", team: "T0001" },
          place: { channel: "C0001", responseUrl: "https://hooks.slack.com/actions/T0001/2/y" },
          ...asked,
        },
      },
    ]);
  });

  test("in a thread it stays there", async () => {
    const { send, started } = app();
    const container = { ...EPHEMERAL.container, thread_ts: "1700000000.000100" };
    await send(signed(click("choice-1", "node1", { ...EPHEMERAL, container })));
    expect(started[0]?.event).toMatchObject({ request: { place: { thread: "1700000000.000100" } } });
  });

  test("clicked twice it is one triage, and another button of the message is another", async () => {
    const { send, started } = app();
    await send(signed(click("choice-0", "a/node1", { ...EPHEMERAL, trigger_id: "1" })));
    await send(signed(click("choice-0", "a/node1", { ...EPHEMERAL, trigger_id: "2" })));
    await send(signed(click("choice-1", "b/node1", { ...EPHEMERAL, trigger_id: "3" })));
    const [first, second, third] = started.map(({ name }) => name);
    expect([first === second, first === third]).toEqual([true, false]);
  });

  test.each(["", "help", "$(reboot)", "a/b/node1", "node1; reboot", "pod ../../x"])("%j was not written by us: nothing starts", async (words) => {
    const { send, started } = app();
    expect((await send(signed(click("choice-0", words, EPHEMERAL)))).statusCode).toBe(200);
    expect(started).toEqual([]);
  });
});
