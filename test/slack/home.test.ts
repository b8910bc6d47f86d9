import { describe, expect, test } from "vitest";
import { app } from "./door.ts";
import { click, command, mention, signed, signedEvent, submission } from "./requests.ts";

/** The Home tab, the menu of a message, the modal that asks for a node, votes and small commands: what the door hands over. */

const OK = { statusCode: 200, body: "" };

describe("the Home tab", () => {
  const opened = (fields: Readonly<Record<string, unknown>> = {}, envelope: Readonly<Record<string, unknown>> = {}) =>
    mention("", { type: "app_home_opened", user: "U0001", channel: "D0001", tab: "home", text: undefined, ts: undefined, ...fields }, envelope);

  test("is drawn for whoever opens it, once for each event", async () => {
    const { send, started } = app();
    expect(await send(signedEvent(opened()))).toMatchObject({ statusCode: 200 });
    expect(started).toMatchObject([{ event: { kind: "home", request: { requester: { id: "U0001", team: "T0001" }, place: { channel: "U0001" } } } }]);
    expect(started[0]?.name).toMatch(/^home-[0-9a-f]{20}$/);
    await send(signedEvent(opened({}, { event_id: "Ev0002" })));
    expect(started[1]?.name).not.toBe(started[0]?.name);
  });

  test("the messages of the app are not the Home tab", async () => {
    const { send, started } = app();
    await send(signedEvent(opened({ tab: "messages" })));
    expect(started).toEqual([]);
  });

  /** A click in the Home tab: there is no channel, and no message. */
  const inHome = (actionId: string, value: string) =>
    click(actionId, value, {
      container: { type: "view", view_id: "V1" },
      channel: undefined,
      message: undefined,
      response_url: undefined,
      view: { id: "V1", type: "home" },
    });

  test.each([
    ["approve-0", "approve"],
    ["preview-7", "preview"],
    ["dismiss-12", "dismiss"],
  ])("%s is the decision that it is in the thread, answered to the person", async (actionId, action) => {
    const { send, started } = app();
    expect(await send(signed(inHome(actionId, "inc-1 inc-1-fix")))).toEqual(OK);
    expect(started).toMatchObject([
      {
        event: {
          kind: "click",
          click: { action, incident: "inc-1", proposal: "inc-1-fix", place: { channel: "U0002" }, triggerId: "13345224609.738474920.click" },
        },
      },
    ]);
  });

  test("the modal that follows from there is taken", async () => {
    const { send, started } = app();
    const metadata = `inc-1 inc-1-fix ${"a".repeat(64)} U0002 - none node1`;
    expect(await send(signed(submission(metadata)))).toEqual(OK);
    expect(started).toMatchObject([{ event: { click: { action: "confirm", place: { channel: "U0002" } } } }]);
  });

  test("a node is run again for the person; a second click later is another triage", async () => {
    const { send, started } = app();
    await send(signed(inHome("choice-0", "demo/node1")));
    const later = JSON.parse(inHome("choice-0", "demo/node1")["payload"] as string) as { actions: { action_ts: string }[] };
    (later.actions[0] as { action_ts: string }).action_ts = "1700000099.000300";
    await send(signed({ payload: JSON.stringify(later) }));
    expect(started).toMatchObject([
      { event: { kind: "triage", request: { target: "demo/node1", place: { channel: "U0002" } } } },
      { event: { kind: "triage" } },
    ]);
    expect(started[0]?.name).not.toBe(started[1]?.name);
  });

  test("its first button asks for a node", async () => {
    const { send, started } = app();
    expect(await send(signed(inHome("ask", "ask")))).toEqual(OK);
    expect(started).toMatchObject([{ event: { kind: "ask", request: { place: { channel: "U0002" }, triggerId: "13345224609.738474920.click" } } }]);
  });
});

describe("the menu of a message", () => {
  const shortcut = (message: Readonly<Record<string, unknown>>) => ({
    payload: JSON.stringify({
      type: "message_action",
      callback_id: "triage-message",
      token: "deprecated",
      trigger_id: "1.2.shortcut",
      response_url: "https://hooks.slack.com/app/T0001/1/x",
      action_ts: "1700000005.000100",
      message_ts: "1700000000.000100",
      team: { id: "T0001", domain: "example" },
      enterprise: null,
      user: { id: "U0001", name: "alice", team_id: "T0001" },
      channel: { id: "C0001", name: "incidents" },
      message: { type: "message", ts: "1700000000.000100", user: "U0003", text: "", ...message },
    }),
  });

  test("hands over what the message shows, also in attachments and blocks, and where it is", async () => {
    const { send, started } = app();
    const blocks = [
      {
        type: "rich_text",
        elements: [
          {
            type: "rich_text_section",
            elements: [
              { type: "text", text: "on node4" },
              { type: "user", user_id: "U9" },
            ],
          },
        ],
      },
    ];
    const attachments = [{ fallback: "f", fields: [{ title: "instance", value: "10.0.0.7:9100" }], color: "danger" }];
    expect(await send(signed(shortcut({ text: "see <https://x.example/d|node1>", blocks, attachments })))).toEqual(OK);
    const [{ event } = { event: undefined }] = started;
    expect(event).toMatchObject({
      kind: "message-triage",
      request: {
        place: { channel: "C0001", thread: "1700000000.000100", fresh: true, responseUrl: "https://hooks.slack.com/app/T0001/1/x" },
        triggerId: "1.2.shortcut",
      },
    });
    const text = event?.kind === "message-triage" ? event.request.text : "";
    for (const word of ["node1", "node4", "10.0.0.7:9100"]) expect(text).toContain(word);
    for (const word of ["rich_text_section", "danger", "U9", "x.example"]) expect(text).not.toContain(word);
  });

  test("in a thread it is answered there; a long message is cut; another app's menu is not ours", async () => {
    const { send, started } = app();
    await send(signed(shortcut({ text: "x".repeat(50_000), thread_ts: "1690000000.000100" })));
    const [{ event } = { event: undefined }] = started;
    expect(event?.kind === "message-triage" ? [event.request.text.length, event.request.place.thread, event.request.place.fresh] : []).toEqual([
      8000,
      "1690000000.000100",
      undefined,
    ]);
    const other = JSON.parse(shortcut({})["payload"]) as Record<string, unknown>;
    await send(signed({ payload: JSON.stringify({ ...other, callback_id: "other" }) }));
    expect(started).toHaveLength(1);
  });

  test("a button below several names keeps the thread of the message", async () => {
    const { send, started } = app();
    const container = { type: "message", message_ts: "1700000001.000200", channel_id: "C0001", is_ephemeral: true };
    await send(signed(click("choice-1", "demo/node2 @1700000000.000100", { container, message: undefined })));
    expect(started).toMatchObject([{ event: { request: { target: "demo/node2", place: { channel: "C0001", thread: "1700000000.000100" } } } }]);
  });
});

describe("the modal that asks for a node", () => {
  const sent = (values: { readonly typed?: string; readonly node?: string }, metadata = "C0001 1700000000.000100 https://hooks.slack.com/commands/1") =>
    submission(
      metadata,
      {},
      {
        callback_id: "ask",
        state: {
          values: {
            typed: { typed: { type: "plain_text_input", value: values.typed ?? null } },
            node: {
              node: {
                type: "static_select",
                selected_option: values.node === undefined ? null : { text: { type: "plain_text", text: "x" }, value: values.node },
              },
            },
          },
        },
      },
    );

  test("what was chosen is examined where it was asked for", async () => {
    const { send, started } = app();
    expect(await send(signed(sent({ node: "demo/node1" })))).toEqual(OK);
    const place = { channel: "C0001", thread: "1700000000.000100", responseUrl: "https://hooks.slack.com/commands/1" };
    expect(started).toMatchObject([{ event: { kind: "triage", request: { target: "demo/node1", requester: { id: "U0002" }, place } } }]);
  });

  test("what was typed counts before it, and may be all that a command may be", async () => {
    const { send, started } = app();
    await send(signed(sent({ node: "demo/node1", typed: " pod shop/web-1 " }, "U0002 - -")));
    expect(started).toMatchObject([{ event: { request: { target: "pod shop/web-1", workload: { kind: "pod" }, place: { channel: "U0002" } } } }]);
  });

  test.each([
    [{}, "Choose a node above"],
    [{ typed: "node1 node2" }, "more than one word"],
    [{ typed: "$(reboot)" }, "cannot be the name"],
    [{ typed: "help" }, "Type the name of a node"],
  ])("%j is said in the modal", async (values, words) => {
    const { send, started } = app();
    const { body } = await send(signed(sent(values)));
    expect(JSON.parse(body)).toMatchObject({ response_action: "errors", errors: { typed: expect.stringContaining(words) } });
    expect(started).toEqual([]);
  });

  test("hidden data that we did not write: the answer goes to the person", async () => {
    const { send, started } = app();
    await send(signed(sent({ node: "demo/node1" }, "C0001 - file:///etc/passwd")));
    expect(started).toMatchObject([{ event: { request: { place: { channel: "U0002" } } } }]);
  });
});

describe("votes", () => {
  test.each(["right", "wrong"])("%s cause", async (vote) => {
    const { send, started } = app();
    expect(await send(signed(click(vote, "inc-1")))).toEqual(OK);
    expect(started).toMatchObject([
      { event: { kind: "feedback", request: { about: "inc-1", vote, requester: { id: "U0002" }, place: { channel: "C0001", thread: "1700000000.000100" } } } },
    ]);
  });

  test.each(["", "../x", "inc-1 x", undefined])("%j is nobody's button", async (value) => {
    const { send, started } = app();
    expect(await send(signed(click("right", value)))).toEqual(OK);
    expect(started).toEqual([]);
  });
});

describe("small commands", () => {
  const said = [
    "status",
    "rules",
    "history node1",
    "mute conntrack-table-full on node1 for 7d because it is",
    "unmute conntrack-table-full on node1",
    "Status",
    "history",
  ];
  test.each(said)("/netcheck %s is handed over as it is", async (text) => {
    const { send, started } = app();
    expect(await send(signed(command(text)))).toEqual(OK);
    expect(started).toMatchObject([
      { event: { kind: "command", request: { text, requester: { id: "U0001" }, place: { channel: "C0001", responseUrl: expect.any(String) } } } },
    ]);
  });

  test.each(said)("@netcheck %s, too, in its thread", async (text) => {
    const { send, started } = app();
    await send(signedEvent(mention(`<@U0BOT> ${text}`, { thread_ts: "1690000000.000100" })));
    expect(started).toMatchObject([{ event: { kind: "command", request: { text, place: { channel: "C0001", thread: "1690000000.000100" } } } }]);
  });

  test("a node of that name is typed with its cluster", async () => {
    const { send, started } = app();
    await send(signed(command("demo/status")));
    await send(signed(command("status-node")));
    expect(started).toMatchObject([{ event: { kind: "triage", request: { target: "demo/status" } } }, { event: { kind: "triage" } }]);
  });
});
