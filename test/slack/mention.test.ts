import { describe, expect, test, vi } from "vitest";
import type { WorkEvent } from "../../functions/triage/ports.ts";
import { app } from "./door.ts";
import { file, mention, now, signedEvent } from "./requests.ts";

/** Mentions as Slack sends them, through the app's door; only the work behind it is a list. */

const taken = { statusCode: 200 };
const asker = { requester: { id: "U0001", team: "T0001" }, place: { channel: "C0001", thread: "1700000000.000100", fresh: true } };

/** What one event starts. */
async function start(payload: object): Promise<WorkEvent[]> {
  const { send, started } = app();
  expect(await send(signedEvent(payload))).toMatchObject(taken);
  for (const { name, event } of started) expect(event).toMatchObject({ request: { incident: name } });
  return started.map(({ event }) => event);
}

describe("a mention", () => {
  test("with a file: one run, in the thread of that message, with the address that needs the token", async () => {
    const { send, started } = app();
    expect(await send(signedEvent(mention("<@U0BOT>", { files: [file("sosreport-node4.tar.xz")], upload: false })))).toMatchObject(taken);
    const incident = started[0]?.name ?? "";
    expect(incident).toMatch(/^inc-[0-9a-f]{12}$/);
    const url = "https://files.slack.com/files-pri/T0001-F0001/download/sosreport-node4.tar.xz";
    expect(started).toEqual([
      {
        name: incident,
        event: {
          kind: "paste",
          request: { incident, ...asker, files: [{ id: "F0001", name: "sosreport-node4.tar.xz", size: 3808, url }], text: "", problem: "" },
        },
      },
    ]);
  });

  test("in a thread: the answer goes there", async () => {
    const events = await start(mention("<@U0BOT>", { files: [file("x.tgz")], thread_ts: "1690000000.000100" }));
    expect(events.map((event) => event.kind === "paste" && event.request.place)).toEqual([{ channel: "C0001", thread: "1690000000.000100" }]);
  });

  test("a file that Slack only names (Slack Connect), and one without a name", async () => {
    const files = [
      { id: "F0002", mode: "file_access", file_access: "check_file_info" },
      { id: "F0003", name: null, url_private: "https://files.slack.com/x" },
    ];
    expect(await start(mention("<@U0BOT>", { files }))).toMatchObject([
      {
        request: {
          files: [
            { id: "F0002", name: "a file without a name" },
            { id: "F0003", url: "https://files.slack.com/x" },
          ],
        },
      },
    ]);
  });

  test("pasted outputs come as they were typed: fences, entities, links, hard blanks", async () => {
    const text =
      "<@U0BOT> look:\n```root@node1:~# ip route\ndefault via 10.0.0.1 dev eth0\n-A X -m comment --comment &quot;a &amp;amp; b&quot; &lt;x&gt;\nsee <http://node1.example.com|node1.example.com> <https://10.0.0.1/x>\u00a0end```\nthanks";
    const [event] = await start(mention(text));
    expect(event).toMatchObject({ kind: "paste", request: { files: [], problem: "" } });
    expect(event?.kind === "paste" && event.request.text).toBe(
      "look:\n```\nroot@node1:~# ip route\ndefault via 10.0.0.1 dev eth0\n-A X -m comment --comment &quot;a &amp; b&quot; <x>\nsee node1.example.com https://10.0.0.1/x end\n```\nthanks",
    );
  });

  test.each(["<@U0BOT> node1", "<@U0BOT|netcheck>: node1 ", "node1 <@U0BOT>", "<@U0BOT> <http://node1|node1>"])(
    "%s examines a target in the thread",
    async (text) => {
      expect(await start(mention(text))).toMatchObject([{ kind: "triage", request: { target: "node1", ...asker } }]);
    },
  );

  test("a comparison, too", async () => {
    expect(await start(mention("<@U0BOT> node1 vs node2,node3"))).toMatchObject([
      { kind: "triage", request: { target: "node1", against: ["node2", "node3"] } },
    ]);
  });

  test.each([
    ["<@U0BOT>", ""],
    ["<@U0BOT> help", ""],
    ["<@U0BOT> what is wrong?", "has more than one word"],
    ["<@U0BOT> $(reboot)", "cannot be the name of a target"],
  ])("%s is answered with help, unless it is an output", async (text, problem) => {
    const [event] = await start(mention(text));
    const said = problem === "" ? "" : text.replace("<@U0BOT> ", "");
    expect(event).toMatchObject({ kind: "paste", request: { files: [], text: said, problem: expect.stringContaining(problem) as string } });
    if (problem === "") expect(event).toMatchObject({ request: { problem: "" } });
  });

  test("at most ten files", async () => {
    const [event] = await start(mention("<@U0BOT>", { files: Array.from({ length: 50 }, (_, index) => file(`${index}.txt`)) }));
    expect(event?.kind === "paste" && event.request.files.length).toBe(10);
  });
});

describe("other messages", () => {
  const direct = { type: "message", channel_type: "im", channel: "D0001" };

  test("a direct one is asked of the bot without a mention; with a file as well", async () => {
    expect(await start(mention("node1", direct))).toMatchObject([{ kind: "triage", request: { target: "node1", place: { channel: "D0001" } } }]);
    const events = await start(mention("", { ...direct, subtype: "file_share", files: [file("x.tgz")] }));
    expect(events).toMatchObject([{ kind: "paste", request: { files: [{ name: "x.tgz" }] } }]);
  });

  test("a shared file with a mention may come as a message, as a mention, or as both: one run", async () => {
    const { send, started } = app();
    const files = [file("x.tgz")];
    await send(signedEvent(mention("<@U0BOT>", { files })));
    await send(signedEvent(mention("<@U0BOT>", { type: "message", subtype: "file_share", channel_type: "channel", files }, { event_id: "Ev0002" })));
    expect(started).toHaveLength(2);
    expect(started[1]).toEqual(started[0]);
  });

  test.each<[string, object]>([
    ["of our own", mention("<@U0BOT> node1", { bot_id: "B0001" })],
    ["of another app", mention("<@U0BOT> node1", { bot_id: "B0002", subtype: "bot_message" })],
    ["our own direct one", mention("node1", { ...direct, bot_id: "B0001" })],
    ["without a person", mention("<@U0BOT> node1", { user: undefined })],
    ["in a channel, without a mention", mention("node1", { type: "message", channel_type: "channel" })],
    ["in a channel, with a mention but no file: it comes as app_mention", mention("<@U0BOT> node1", { type: "message", channel_type: "channel" })],
    ["with a file, for somebody else", mention("<@U0002>", { type: "message", subtype: "file_share", channel_type: "channel", files: [file("x.tgz")] })],
    ["that was changed", mention("node1", { ...direct, subtype: "message_changed" })],
    ["that says who joined", mention("<@U0BOT> has joined", { type: "message", subtype: "channel_join", channel_type: "channel" })],
  ])("%s: taken, and nothing is started", async (_what, payload) => {
    expect(await start(payload)).toEqual([]);
  });
});

describe("delivery", () => {
  test("Slack's retry is the same run with the same payload; the same words in another message are another", async () => {
    const { send, started } = app();
    const payload = mention("<@U0BOT>", { files: [file("x.tgz")] });
    await send(signedEvent(payload, { timestamp: now() - 1, headers: { "x-slack-retry-num": "1", "x-slack-retry-reason": "http_timeout" } }));
    await send(signedEvent(payload));
    expect(started[1]).toEqual(started[0]);
    await send(signedEvent(mention("<@U0BOT>", { ts: "1700000001.000100" })));
    await send(signedEvent(mention("<@U0BOT>", { channel: "C0002" })));
    await send(signedEvent(mention("<@U0BOT>", {}, { team_id: "T0002" })));
    expect(new Set(started.map(({ name }) => name)).size).toBe(4);
  });

  test("the very same request is a replay; a wrong signature starts nothing", async () => {
    const { send, started } = app();
    const event = signedEvent(mention("<@U0BOT> node1"));
    expect((await Promise.all([send(event), send(event)])).map(({ statusCode }) => statusCode)).toEqual([200, 401]);
    expect(await send(signedEvent(mention("<@U0BOT> node2"), { secret: "0".repeat(32) }))).toEqual({ statusCode: 401, body: "" });
    expect(started).toHaveLength(1);
  });

  test("work that could not be handed over is a failure, so Slack sends the event again", async () => {
    const { send, started } = app(1);
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const event = signedEvent(mention("<@U0BOT> node1"));
    expect(await send(event)).toMatchObject({ statusCode: 500 });
    log.mockRestore();
    expect(await send(event)).toMatchObject(taken);
    expect(started).toHaveLength(1);
  });

  test("the address is verified", async () => {
    const { send } = app();
    const answer = await send(signedEvent({ token: "deprecated", challenge: "3eZbrw1a", type: "url_verification" }));
    expect(answer).toMatchObject({ statusCode: 200, body: '{"challenge":"3eZbrw1a"}' });
  });
});
