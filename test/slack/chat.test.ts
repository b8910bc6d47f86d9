import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type LocalServer, startServer } from "../../functions/local/server.ts";
import { Workspace } from "../../functions/local/workspace.ts";
import { slackChat } from "../../functions/slack/chat.ts";
import { slackClient } from "../../functions/slack/client.ts";
import { loadPicture } from "../../functions/slack/diagram.ts";
import { loadTemplates } from "../../functions/slack/render.ts";
import { SqliteStore } from "../../functions/store/sqlite.ts";
import type { Actor, Chat, Message, Place } from "../../functions/triage/ports.ts";
import { MESSAGES } from "./messages.ts";

/** The Chat port with the real Web API client, over HTTP, against the simulated workspace. */

const render = loadTemplates(fileURLToPath(new URL("../../templates/slack/", import.meta.url)));
const ALICE: Actor = { id: "U_ALICE", team: "T_LOCAL" };
const incidents: Place = { channel: "C_INCIDENTS" };
const note = (text: string): Message => ({ template: "note", data: { icon: "warning", text, incident: "" } });

let workspace: Workspace;
let server: LocalServer;
let store: SqliteStore;
let logged: string[];
beforeEach(async () => {
  workspace = new Workspace({ retryInteractions: false });
  server = await startServer({ workspace });
  store = new SqliteStore(":memory:");
  logged = [];
});
afterEach(async () => {
  await server.close();
  store.close();
});

const draw = loadPicture(fileURLToPath(new URL("../../templates/diagram.svg.hbs", import.meta.url)));

/** A process: what it knows from before is in the store. */
const chat = (memory: Pick<SqliteStore, "remember" | "recall"> = store): Chat =>
  slackChat({ client: slackClient(workspace.botToken, `${server.url}/api/`), store: memory, render, draw, log: (_level, message) => logged.push(message) });
const messages = (channel = "C_INCIDENTS") => [...workspace.chat.messages(channel)];
const textsOf = (channel?: string): string[] => messages(channel).map((message) => message.text);

describe("a token that was replaced", () => {
  const replaced = (tokens: string[]) => {
    const asked: boolean[] = [];
    let held = tokens.shift() ?? "";
    const current = async (refused: boolean) => {
      asked.push(refused);
      if (refused) held = tokens.shift() ?? held;
      return held;
    };
    const log = (_level: string, message: string) => logged.push(message);
    const chatWith = slackChat({ client: slackClient("xoxb-at-the-start", `${server.url}/api/`, current), store, render, draw, log });
    return { asked, post: () => chatWith.post("inc-1/root", incidents, note("one")) };
  };

  test("the call is sent once more with the new one; the next ones know it", async () => {
    const { asked, post } = replaced(["xoxb-old", workspace.botToken]);
    await post();
    expect([textsOf(), asked.filter(Boolean)]).toEqual([["one"], [true]]);
  });

  test("no other one is there: Slack's refusal is told, and nothing is sent for ever", async () => {
    const { asked, post } = replaced(["xoxb-old"]);
    await expect(post()).rejects.toThrow("invalid_auth");
    expect([textsOf(), asked.filter(Boolean).length < 4]).toEqual([[], true]);
  });
});

describe("post", () => {
  test("once per key, for ever; another key is another message", async () => {
    const ref = await chat().post("inc-1/root", incidents, note("one"));
    expect(await chat().post("inc-1/root", incidents, note("one"))).toEqual(ref);
    expect(await chat().post("inc-2/root", incidents, note("two"))).not.toEqual(ref);
    expect(textsOf()).toEqual(["one", "two"]);
    expect(messages()[0]).toMatchObject({ ts: ref.ts, user: "U_NETCHECK" });
  });

  test("in a thread", async () => {
    const root = await chat().post("inc-1/root", incidents, note("root"));
    const reply = await chat().post("inc-1/reply", { ...incidents, thread: root.ts }, note("reply"));
    expect(messages().find(({ ts }) => ts === reply.ts)).toMatchObject({ threadTs: root.ts, text: "reply" });
  });

  test.each(["a channel", "a thread"])("the answer is lost in %s: an error that may pass, and the next attempt finds the message", async (where) => {
    const root = await chat().post("inc-1/root", incidents, note("root"));
    const place = where === "a thread" ? { ...incidents, thread: root.ts } : incidents;
    workspace.fail("chat.postMessage", { with: "lost" });
    await expect(chat().post("inc-1/next", place, note("next"))).rejects.toMatchObject({ retryable: true });
    expect(textsOf()).toEqual(["root", "next"]);
    const ref = await chat().post("inc-1/next", place, note("next"));
    expect(textsOf()).toEqual(["root", "next"]);
    expect(messages()[1]?.ts).toBe(ref.ts);
  });

  test("the answer is lost in a thread of many replies, which Slack tells page by page, the oldest first: the message is found", async () => {
    const root = await chat().post("inc-1/root", incidents, note("root"));
    const place = { ...incidents, thread: root.ts };
    for (let n = 0; n < 450; n++) workspace.chat.post({ channel: "C_INCIDENTS", user: "U_BOB", text: `reply ${n}`, threadTs: root.ts });
    workspace.fail("chat.postMessage", { with: "lost" });
    await expect(chat().post("inc-1/next", place, note("next"))).rejects.toMatchObject({ retryable: true });
    const ref = await chat().post("inc-1/next", place, note("next"));
    expect(messages().filter(({ text }) => text === "next")).toEqual([expect.objectContaining({ ts: ref.ts }) as object]);
  });

  test("killed between posting and remembering: the next process finds the message", async () => {
    const dying = {
      recall: (key: string) => store.recall(key),
      remember: async (key: string, ref: { channel: string; ts: string }) => {
        if (ref.ts !== "") throw new Error("killed");
        await store.remember(key, ref);
      },
    };
    await expect(chat(dying).post("inc-1/root", incidents, note("one"))).rejects.toThrow("killed");
    await workspace.message({ user: "U_BOB", channel: "C_INCIDENTS", text: "what is going on?" });
    const ref = await chat().post("inc-1/root", incidents, note("one"));
    expect(textsOf()).toEqual(["one", "what is going on?"]);
    expect(messages()[0]?.ts).toBe(ref.ts);
  });

  test("killed before posting: the next process posts", async () => {
    workspace.fail("chat.postMessage", { with: 500 });
    await expect(chat().post("inc-1/root", incidents, note("one"))).rejects.toMatchObject({ retryable: true });
    expect(textsOf()).toEqual([]);
    await chat().post("inc-1/root", incidents, note("one"));
    expect(textsOf()).toEqual(["one"]);
  });

  test("while it cannot look for the message, nothing is posted again", async () => {
    workspace.fail("chat.postMessage", { with: "lost" });
    await expect(chat().post("inc-1/root", incidents, note("one"))).rejects.toThrow();
    workspace.fail("conversations.history", { with: 500 });
    await expect(chat().post("inc-1/root", incidents, note("one"))).rejects.toMatchObject({ retryable: true });
    expect(textsOf()).toEqual(["one"]);
  });

  test("a person who writes our words does not pass for our message", async () => {
    workspace.fail("chat.postMessage", { with: 500 });
    await expect(chat().post("inc-1/root", incidents, note("one"))).rejects.toThrow();
    await workspace.message({ user: "U_BOB", channel: "C_INCIDENTS", text: "one" });
    const ref = await chat().post("inc-1/root", incidents, note("one"));
    expect(messages().map(({ user, ts }) => [user, ts === ref.ts])).toEqual([
      ["U_BOB", false],
      ["U_NETCHECK", true],
    ]);
  });

  test("429 is waited out as long as Slack says, then posted once", async () => {
    workspace.fail("chat.postMessage", { with: 429, retryAfter: 0, times: 3 });
    await chat().post("inc-1/root", incidents, note("one"));
    expect(textsOf()).toEqual(["one"]);
  });

  test("a 429 for longer than a minute is an error that may pass", async () => {
    workspace.fail("chat.postMessage", { with: 429, retryAfter: 61 });
    await expect(chat().post("inc-1/root", incidents, note("one"))).rejects.toMatchObject({ retryable: true });
    expect(textsOf()).toEqual([]);
  });

  test.each([
    ["not_in_channel", "invite it with /invite @netcheck"],
    ["channel_not_found", "invite it with /invite @netcheck"],
    ["is_archived", "the channel is archived"],
    ["invalid_auth", "invalid_auth"],
  ])("%s cannot pass, and says what to do", async (error, words) => {
    workspace.fail("chat.postMessage", { error });
    await expect(chat().post("inc-1/root", incidents, note("one"))).rejects.toMatchObject({ retryable: false, message: expect.stringContaining(words) });
  });

  test.each(["internal_error", "fatal_error", "service_unavailable", "team_added_to_org"])("%s is Slack's own trouble: it may pass", async (error) => {
    workspace.fail("chat.postMessage", { error });
    await expect(chat().post("inc-1/root", incidents, note("one"))).rejects.toMatchObject({ retryable: true });
    await chat().post("inc-1/root", incidents, note("one"));
    expect(textsOf()).toEqual(["one"]);
  });

  test("what cannot be drawn is said plainly", async () => {
    await chat().post("inc-1/root", incidents, { template: "note", data: {} });
    expect(textsOf()).toEqual([expect.stringContaining('could not draw the message "note"')]);
    expect(logged).toEqual(["a message could not be rendered"]);
  });

  test.each(Object.keys(MESSAGES).filter((name) => !name.startsWith("review/")))("%s is taken by the workspace", async (name) => {
    const message = { template: name.split("/")[0] as string, data: MESSAGES[name] as Message["data"] };
    const ref = await chat().post(`inc-1/${name}`, incidents, message);
    await chat().update(ref, message);
    expect(messages()).toHaveLength(1);
    expect(logged).toEqual([]);
  });
});

test("update changes the message in its place; a message that is gone cannot pass", async () => {
  const ref = await chat().post("inc-1/root", incidents, note("before"));
  await chat().update(ref, note("after"));
  expect(textsOf()).toEqual(["after"]);
  await expect(chat().update({ ...ref, ts: "1.000001" }, note("x"))).rejects.toMatchObject({ retryable: false });
  workspace.fail("chat.update", { with: "lost" });
  await expect(chat().update(ref, note("again"))).rejects.toMatchObject({ retryable: true });
});

describe("whisper", () => {
  const seenBy = (user: string): string[] => {
    const channels = workspace.state(user).channels;
    return channels.find(({ id }) => id === "C_INCIDENTS")?.messages.map((message) => message.text) ?? [];
  };
  /** A command that nobody answers leaves a response URL behind. */
  async function place(): Promise<Place> {
    let responseUrl = "";
    const app = await startServer({
      workspace: new Workspace(),
      appHandler: async ({ body }) => {
        responseUrl = new URLSearchParams(body).get("response_url") ?? "";
        return { status: 200, body: "" };
      },
    });
    workspace.connect(`${app.url}/slack/events`);
    await workspace.command({ user: "U_ALICE", channel: "C_INCIDENTS", command: "/netcheck", text: "node1" });
    await app.close();
    expect(responseUrl).toContain(server.url);
    return { channel: "C_INCIDENTS", responseUrl };
  }

  test("is for one person", async () => {
    await chat().whisper(incidents, ALICE, note("psst"));
    expect(seenBy("U_ALICE")).toEqual(["psst"]);
    expect(seenBy("U_BOB")).toEqual([]);
  });

  test("to somebody whose message nobody has answered yet: beside it, where it is seen; in the thread once there is one", async () => {
    const { ts } = await chat().post("k", incidents, note("question"));
    await chat().whisper({ ...incidents, thread: ts, fresh: true }, ALICE, note("psst"));
    await chat().post("k2", { ...incidents, thread: ts }, note("answer"));
    await chat().whisper({ ...incidents, thread: ts }, ALICE, note("psst again"));
    expect(messages().map((message) => [message.text, message.threadTs])).toEqual([
      ["question", undefined],
      ["psst", undefined],
      ["answer", ts],
      ["psst again", ts],
    ]);
  });

  test.each(["not_in_channel", "channel_not_found", "is_archived"])("%s: through the response URL", async (error) => {
    const where = await place();
    workspace.fail("chat.postEphemeral", { error });
    await chat().whisper(where, ALICE, note("psst"));
    expect(seenBy("U_ALICE")).toEqual(["psst"]);
    expect(seenBy("U_BOB")).toEqual([]);
  });

  test("without a response URL the person is written to directly, as from the Home tab, where there is no channel", async () => {
    workspace.fail("chat.postEphemeral", { error: "not_in_channel" });
    await chat().whisper(incidents, ALICE, note("psst"));
    await chat().whisper({ channel: "U_ALICE" }, ALICE, note("also"));
    const direct = workspace.chat.directChannel("U_ALICE").id;
    expect([textsOf(), textsOf(direct)]).toEqual([[], ["psst", "also"]]);
    // a thread of its own, too
    const root = await chat().post("inc-1/root", { channel: "U_ALICE" }, note("one"));
    await chat().post("inc-1/next", { channel: root.channel, thread: root.ts }, note("two"));
    expect([root.channel, messages(direct).at(-1)?.threadTs]).toEqual([direct, root.ts]);
  });

  test("a message to a person that was cut off before it was remembered is posted, not looked for in vain", async () => {
    await store.remember("inc-1/root/intent", { channel: "U_ALICE", ts: "" });
    expect((await chat().post("inc-1/root", { channel: "U_ALICE" }, note("one"))).channel).toBe(workspace.chat.directChannel("U_ALICE").id);
  });

  test.each(["not_in_channel", "channel_not_found", "is_archived", "restricted_action", "user_not_in_channel"])("%s: a post says what to do", async (error) => {
    workspace.fail("chat.postMessage", { error });
    await expect(chat().post("inc-1/root", incidents, note("one"))).rejects.toThrow(/\/invite @netcheck|ask in another one/);
  });

  test("with a used up response URL it is an error", async () => {
    workspace.fail("chat.postEphemeral", { error: "not_in_channel" });
    await expect(chat().whisper({ ...incidents, responseUrl: `${server.url}/response/none` }, ALICE, note("psst"))).rejects.toThrow("response url");
  });

  test("any other error is not answered elsewhere", async () => {
    const where = await place();
    workspace.fail("chat.postEphemeral", { with: 500 });
    await expect(chat().whisper(where, ALICE, note("psst"))).rejects.toMatchObject({ retryable: true });
    expect(seenBy("U_ALICE")).toEqual([]);
  });
});

describe("the Home tab, and links", () => {
  test.each(Object.keys(MESSAGES).filter((name) => name.startsWith("home")))("%s is taken by the workspace", async (name) => {
    await chat().home(ALICE, { template: name.split("/")[0] as string, data: MESSAGES[name] as Message["data"] });
    expect(workspace.state("U_ALICE").home).toMatchObject({ blocks: expect.arrayContaining([expect.objectContaining({ type: "header" })]) });
    expect(workspace.state("U_BOB").home).toBeUndefined();
  });

  test("what Slack says against it is told", async () => {
    workspace.fail("views.publish", { error: "not_enabled" });
    await expect(chat().home(ALICE, { template: "home-failed", data: { problem: "x" } })).rejects.toThrow(
      "could not show the Home tab in U_ALICE: not_enabled",
    );
  });

  test("a message has an address", async () => {
    const ref = await chat().post("inc-1/root", incidents, note("one"));
    expect(await chat().link?.(ref)).toContain(`/archives/C_INCIDENTS/p${ref.ts.replace(".", "")}`);
    await expect(chat().link?.({ ...ref, ts: "1.000" })).rejects.toThrow("could not link a message");
  });

  test("the modal that asks for a node, with its list", async () => {
    await chat().modal(workspace.chat.trigger("U_ALICE"), incidents, ALICE, { template: "ask", data: MESSAGES["ask/nodes"] as Message["data"] });
    expect(workspace.state("U_ALICE").modals).toMatchObject([{ type: "modal" }]);
  });
});

describe("modal", () => {
  const preview: Message = { template: "review", data: MESSAGES["review/look"] as Message["data"] };
  const late = note("once more, please");

  test.each(Object.keys(MESSAGES).filter((name) => name.startsWith("review/")))("%s is taken by the workspace", async (name) => {
    await chat().modal(workspace.chat.trigger("U_ALICE"), incidents, ALICE, { template: "review", data: MESSAGES[name] as Message["data"] }, late);
    expect(workspace.state("U_ALICE").modals).toMatchObject([{ type: "modal" }]);
    expect([messages(), logged]).toEqual([[], []]);
  });

  test("opens for whoever clicked", async () => {
    await chat().modal(workspace.chat.trigger("U_ALICE"), incidents, ALICE, preview);
    expect(workspace.state("U_ALICE").modals).toMatchObject([{ type: "modal" }]);
    expect(workspace.state("U_BOB").modals).toEqual([]);
    expect(messages()).toEqual([]);
  });

  test.each<[string, () => string | undefined]>([
    ["an expired trigger", () => "expired"],
    ["no trigger", () => undefined],
    [
      "a used one",
      () => {
        const trigger = workspace.chat.trigger("U_ALICE");
        workspace.api(
          "views.open",
          { trigger_id: trigger, view: JSON.stringify({ type: "modal", title: { type: "plain_text", text: "x" }, blocks: [] }) },
          workspace.botToken,
        );
        return trigger;
      },
    ],
  ])("%s: the same content, whispered", async (_what, trigger) => {
    await chat().modal(trigger(), incidents, ALICE, preview);
    expect(messages()).toMatchObject([{ onlyFor: "U_ALICE", text: "Move CILIUM_FORWARD to the top on node2" }]);
    expect(logged).toEqual(["a modal could not be opened"]);
  });

  test.each([
    ["expired_trigger_id", []],
    ["exchanged_trigger_id", []],
    ["invalid_arguments", ["[ERROR] `trigger_id` expired [json-pointer:/trigger_id]"]],
  ])("%s where another click helps: that is whispered, and nothing else", async (error, said) => {
    workspace.fail("views.open", { error, messages: said });
    await chat().modal(workspace.chat.trigger("U_ALICE"), incidents, ALICE, preview, late);
    expect(messages()).toMatchObject([{ onlyFor: "U_ALICE", text: "once more, please" }]);
  });

  test("anything else that Slack says no to is an error: another click would not help", async () => {
    workspace.fail("views.open", { error: "view_too_large" });
    const opening = chat().modal(workspace.chat.trigger("U_ALICE"), incidents, ALICE, preview, late);
    await expect(opening).rejects.toMatchObject({ retryable: false, message: "slack: could not open a window in C_INCIDENTS: view_too_large" });
    expect(messages()).toEqual([]);
  });
});

describe("upload", () => {
  const file = { name: "inc-1.md", title: "Report", content: "# Report\n\nñ\n" };
  const files = () => [...workspace.chat.files.values()].filter(({ data }) => data !== undefined);

  test("a text file in the thread, once per key", async () => {
    const root = await chat().post("inc-1/root", incidents, note("root"));
    const place = { ...incidents, thread: root.ts };
    await chat().upload("inc-1/report", place, file);
    await chat().upload("inc-1/report", place, file);
    expect(files().map(({ name, title, data }) => [name, title, data?.toString()])).toEqual([[file.name, file.title, file.content]]);
    expect(messages().filter((message) => message.files !== undefined)).toMatchObject([{ threadTs: root.ts }]);
  });

  test("a diagram as a picture, with its words for those who do not see it", async () => {
    const diagram = { path: ["pod", "FORWARD", "eth0"], breakAt: 2, note: "drops it" };
    await chat().upload("inc-1/diagram", incidents, { name: "inc-1.png", title: "The way out", content: diagram });
    const [picture] = files();
    expect(picture).toMatchObject({
      name: "inc-1.png",
      title: "The way out",
      altText: "The way out. pod, then FORWARD, then eth0. It breaks at FORWARD: drops it.",
    });
    // width and height of the PNG: 520 px, drawn at twice the size
    expect(picture?.data?.subarray(1, 4).toString()).toBe("PNG");
    expect([picture?.data?.readUInt32BE(16), Number(picture?.data?.readUInt32BE(20)) > 200]).toEqual([1040, true]);
  });

  test("the answer is lost: found again by its name", async () => {
    const root = await chat().post("inc-1/root", incidents, note("root"));
    const place = { ...incidents, thread: root.ts };
    workspace.fail("files.completeUploadExternal", { with: "lost" });
    await expect(chat().upload("inc-1/report", place, file)).rejects.toMatchObject({ retryable: true });
    await chat().upload("inc-1/report", place, file);
    expect(messages().filter((message) => message.files !== undefined)).toHaveLength(1);
  });

  test("into a channel without netcheck it is an error that says what to do", async () => {
    workspace.fail("files.completeUploadExternal", { error: "not_in_channel" });
    await expect(chat().upload("inc-1/report", incidents, file)).rejects.toMatchObject({ retryable: false, message: expect.stringContaining("/invite") });
  });
});
