import { createHmac } from "node:crypto";
import { App, AwsLambdaReceiver } from "@slack/bolt";
import { LogLevel, WebClient } from "@slack/web-api";
import { afterEach, describe, expect, test } from "vitest";
import { type AppHandler, type AppRequest, type AppResponse, type LocalServer, startServer } from "../../functions/local/server.ts";
import { Workspace, type WorkspaceOptions } from "../../functions/local/workspace.ts";
import { VirtualClock } from "./virtual-clock.ts";

interface Bench {
  readonly clock: VirtualClock;
  readonly workspace: Workspace;
  readonly server: LocalServer;
  readonly client: WebClient;
  /** What the app was sent, in order. */
  readonly requests: AppRequest[];
  /** Resolves when the app has been sent `count` requests. */
  readonly arrived: (count: number) => Promise<void>;
  /** The payload of a click or submission. */
  readonly payload: (index: number) => Record<string, never>;
}

const open: LocalServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

const empty: AppResponse = { status: 200, body: "" };

async function bench(answer: AppHandler = async () => empty, options: WorkspaceOptions = {}): Promise<Bench> {
  const clock = new VirtualClock(Date.parse("2026-11-21T09:00:00Z"));
  const workspace = new Workspace({ clock, botToken: "xoxb-test", signingSecret: "test-secret", ...options });
  const requests: AppRequest[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  const server = await startServer({
    workspace,
    log: (message) => expect.unreachable(message),
    appHandler: (request) => {
      requests.push(request);
      for (const one of waiting) if (requests.length >= one.count) one.resolve();
      return answer(request);
    },
  });
  open.push(server);
  const client = new WebClient("xoxb-test", { slackApiUrl: `${server.url}/api/`, retryConfig: { retries: 0 }, logLevel: LogLevel.ERROR });
  return {
    clock,
    workspace,
    server,
    client,
    requests,
    arrived: (count) => new Promise((resolve) => (requests.length >= count ? resolve() : waiting.push({ count, resolve }))),
    payload: (index) => JSON.parse(new URLSearchParams(requests[index]?.body).get("payload") ?? "") as Record<string, never>,
  };
}

const plain = (text: string) => ({ type: "plain_text" as const, text });
const section = (text: string) => ({ type: "section" as const, text: { type: "mrkdwn" as const, text } });
const buttons = {
  type: "actions" as const,
  block_id: "fix",
  elements: [
    { type: "button" as const, action_id: "approve", text: plain("Approve & run"), value: "proposal-1" },
    {
      type: "static_select" as const,
      action_id: "explain",
      options: [
        { text: plain("one"), value: "1" },
        { text: plain("two"), value: "2" },
      ],
    },
  ],
};
const modal = {
  type: "modal" as const,
  callback_id: "reason",
  private_metadata: "p1",
  notify_on_close: true,
  title: plain("Why?"),
  submit: plain("Send"),
  blocks: [{ type: "input" as const, block_id: "why", label: plain("Reason"), element: { type: "plain_text_input" as const, action_id: "text" } }],
};
const channel = "C_INCIDENTS";

describe("Web API, called by the real WebClient", () => {
  test("posts, threads, updates and reads back, with metadata only where asked for", async () => {
    const { client } = await bench();
    const metadata = { event_type: "netcheck_incident", event_payload: { id: "i1" } };
    const root = await client.chat.postMessage({ channel, text: "root", blocks: [section("root")], metadata });
    expect(root.message?.bot_id).toBe("B_NETCHECK");
    const ts = root.ts ?? "";
    expect(ts).toMatch(/^\d{10}\.\d{6}$/);
    const answer = await client.chat.postMessage({ channel: "#incidents", text: "answer", thread_ts: ts });
    // An answer to an answer stays in the thread.
    await client.chat.postMessage({ channel, text: "more", thread_ts: answer.ts ?? "" });
    await client.chat.update({ channel, ts, text: "changed" });
    const history = await client.conversations.history({ channel });
    expect(history.messages).toHaveLength(1);
    expect(history.messages?.[0]).toMatchObject({ text: "changed", reply_count: 2, edited: { user: "U_NETCHECK" }, blocks: [{ type: "section" }] });
    expect(history.messages?.[0]?.metadata).toBeUndefined();
    const replies = await client.conversations.replies({ channel, ts, include_all_metadata: true });
    expect(replies.messages?.map((one) => one.text)).toEqual(["changed", "answer", "more"]);
    expect(replies.messages?.[0]?.metadata).toMatchObject(metadata);
    expect(replies.messages?.[2]?.thread_ts).toBe(ts);
  });

  test("pages by cursor until the end", async () => {
    const { client } = await bench();
    for (let index = 0; index < 5; index++) await client.chat.postMessage({ channel, text: `m${index}` });
    const texts: string[] = [];
    let pages = 0;
    for await (const page of client.paginate("conversations.history", { channel, limit: 2 })) {
      pages += 1;
      texts.push(...(page as unknown as { messages: { text: string }[] }).messages.map((one) => one.text));
    }
    expect(pages).toBe(3);
    expect(texts).toEqual(["m4", "m3", "m2", "m1", "m0"]);
  });

  test("timestamps are unique and grow even if the clock stands still", async () => {
    const { client } = await bench();
    const all = await Promise.all(Array.from({ length: 20 }, (_, index) => client.chat.postMessage({ channel, text: `${index}` })));
    const ts = all.map((one) => one.ts ?? "");
    expect(new Set(ts).size).toBe(20);
  });

  test("refuses what Slack refuses, with Slack's codes", async () => {
    const { client, server, workspace } = await bench();
    const code = (call: Promise<unknown>) =>
      call.then(
        () => "ok",
        (error: { data?: { error?: string } }) => error.data?.error,
      );
    const stranger = new WebClient("xoxb-other", { slackApiUrl: `${server.url}/api/`, retryConfig: { retries: 0 } });
    expect(await code(stranger.auth.test())).toBe("invalid_auth");
    expect(await code(new WebClient(undefined, { slackApiUrl: `${server.url}/api/` }).auth.test())).toBe("not_authed");
    expect(await code(client.apiCall("chat.nothing"))).toBe("unknown_method");
    expect(await code(client.chat.postMessage({ channel: "C_NONE", text: "x" }))).toBe("channel_not_found");
    expect(await code(client.chat.postMessage({ channel, text: "" }))).toBe("no_text");
    expect(await code(client.chat.postMessage({ channel, text: "x".repeat(40_001) }))).toBe("msg_too_long");
    expect(await code(client.chat.postMessage({ channel, text: "x", thread_ts: "1.000001" }))).toBe("thread_not_found");
    expect(await code(client.chat.update({ channel, ts: "1.000001", text: "x" }))).toBe("message_not_found");
    expect(await code(client.chat.delete({ channel, ts: "1.000001" }))).toBe("message_not_found");
    expect(await code(client.conversations.replies({ channel, ts: "1.000001" }))).toBe("thread_not_found");
    expect(await code(client.users.info({ user: "U_NONE" }))).toBe("user_not_found");
    expect(await code(client.usergroups.users.list({ usergroup: "S_NONE" }))).toBe("no_such_subteam");
    expect(await code(client.apiCall("chat.postMessage", { channel, text: "x", blocks: "{oops" }))).toBe("invalid_blocks_format");
    expect(await code(client.apiCall("chat.postMessage", { channel, text: "x", metadata: "{}" }))).toBe("invalid_metadata_format");
    await workspace.message({ user: "U_BOB", channel, text: "mine" });
    const his = workspace.chat.messages(channel)[0]?.ts ?? "";
    expect(await code(client.chat.update({ channel, ts: his, text: "x" }))).toBe("cant_update_message");
    const mine = (await client.chat.postMessage({ channel, text: "x" })).ts ?? "";
    expect(await code(client.chat.update({ channel, ts: mine, text: "x".repeat(4001) }))).toBe("msg_too_long");
    await client.reactions.add({ channel, timestamp: mine, name: "eyes" });
    expect(await code(client.reactions.add({ channel, timestamp: mine, name: "eyes" }))).toBe("already_reacted");
  });

  test("tells what is wrong with blocks, as Slack does", async () => {
    const { client, workspace } = await bench();
    const call = client.chat.postMessage({ channel, text: "x", blocks: [section("x".repeat(3001))] });
    await expect(call).rejects.toMatchObject({
      data: { error: "invalid_blocks", response_metadata: { messages: ["[ERROR] must be less than 3001 characters [json-pointer:/blocks/0/text/text]"] } },
    });
    expect(workspace.chat.messages(channel)).toHaveLength(0);
  });

  test("takes JSON bodies and the token as an argument too", async () => {
    const { server } = await bench();
    const response = await fetch(`${server.url}/api/chat.postMessage`, {
      method: "POST",
      headers: { "content-type": "application/json; charset=utf-8", authorization: "Bearer xoxb-test" },
      body: JSON.stringify({ channel, text: "json", blocks: [section("json")] }),
    });
    expect(await response.json()).toMatchObject({ ok: true, message: { blocks: [{ type: "section" }] } });
    const form = await fetch(`${server.url}/api/auth.test`, { method: "POST", body: new URLSearchParams({ token: "xoxb-test" }) });
    expect(await form.json()).toMatchObject({ ok: true, user_id: "U_NETCHECK", team_id: "T_LOCAL" });
  });

  test("ephemeral messages are seen by one person and by no history", async () => {
    const { client, workspace } = await bench();
    await client.chat.postEphemeral({ channel, user: "U_ALICE", text: "psst" });
    expect((await client.conversations.history({ channel })).messages).toEqual([]);
    const seen = (user: string) => workspace.state(user).channels[0]?.messages.map((one) => one.text);
    expect(seen("U_ALICE")).toEqual(["psst"]);
    expect(seen("U_BOB")).toEqual([]);
  });

  test("an ephemeral message in a thread that nobody has begun is shown to nobody, as in Slack", async () => {
    const { client, workspace } = await bench();
    const { ts = "" } = await client.chat.postMessage({ channel, text: "root" });
    const whisper = (text: string) => client.chat.postEphemeral({ channel, user: "U_ALICE", text, thread_ts: ts });
    expect((await whisper("too early")).ok).toBe(true);
    await client.chat.postMessage({ channel, text: "answer", thread_ts: ts });
    await whisper("in time");
    expect(workspace.state("U_ALICE").channels[0]?.messages.map((one) => one.text)).toEqual(["root", "answer", "in time"]);
  });

  test("a deleted message that was answered leaves a tombstone", async () => {
    const { client } = await bench();
    const ts = (await client.chat.postMessage({ channel, text: "root" })).ts ?? "";
    await client.chat.postMessage({ channel, text: "answer", thread_ts: ts });
    await client.chat.delete({ channel, ts });
    const { messages } = await client.conversations.replies({ channel, ts });
    expect(messages?.map((one) => one.text)).toEqual(["This message was deleted.", "answer"]);
  });

  test("people, groups, channels, direct conversations, permalinks", async () => {
    const { client, server } = await bench();
    expect((await client.users.info({ user: "U_BOB" })).user).toMatchObject({ real_name: "Bob Tanaka", profile: { title: "SRE lead" } });
    expect((await client.users.list({})).members).toHaveLength(5);
    expect((await client.usergroups.users.list({ usergroup: "S_SRE" })).users).toEqual(["U_BOB", "U_CAROL"]);
    expect((await client.conversations.list()).channels?.map((one) => one.name)).toEqual(["incidents", "platform", "payments"]);
    expect((await client.conversations.info({ channel })).channel).toMatchObject({ name: "incidents", is_member: true });
    expect((await client.bots.info({ bot: "B_NETCHECK" })).bot?.user_id).toBe("U_NETCHECK");
    const direct = (await client.conversations.open({ users: "U_CAROL" })).channel?.id ?? "";
    // A user's id works as a channel, too.
    expect((await client.chat.postMessage({ channel: "U_CAROL", text: "hello" })).channel).toBe(direct);
    const ts = (await client.chat.postMessage({ channel, text: "x" })).ts ?? "";
    const { permalink } = await client.chat.getPermalink({ channel, message_ts: ts });
    expect(permalink).toBe(`${server.url}/archives/C_INCIDENTS/p${ts.replace(".", "")}`);
    expect((await fetch(permalink ?? "")).headers.get("content-type")).toContain("text/html");
  });

  test("uploads a file into a thread, and hands it out only with the token", async () => {
    const { client, server, workspace } = await bench();
    const ts = (await client.chat.postMessage({ channel, text: "root" })).ts ?? "";
    const content = "*filter\n:FORWARD ACCEPT [0:0]\n";
    await client.filesUploadV2({ channel_id: channel, thread_ts: ts, filename: "iptables-save.txt", title: "rules", content });
    const [file] = workspace.state("U_ALICE").channels[0]?.messages[1]?.files ?? [];
    expect(file).toMatchObject({ name: "iptables-save.txt", title: "rules", size: content.length, text: true });
    const { file: info } = await client.files.info({ file: file?.id ?? "" });
    const url = info?.url_private ?? "";
    expect((await fetch(url)).status).toBe(403);
    const download = await fetch(url, { headers: { authorization: "Bearer xoxb-test" } });
    expect(await download.text()).toBe(content);
    expect(download.headers.get("content-disposition")).toContain("attachment");
    const { upload_url } = await client.files.getUploadURLExternal({ filename: "a.txt", length: 5 });
    expect((await fetch(upload_url ?? "", { method: "POST", body: "four" })).status).toBe(400);
    expect(server.url).toContain("127.0.0.1");
  });

  test("limits the rate per channel when asked to", async () => {
    const { server, clock } = await bench(undefined, { rateLimits: true });
    const post = (to: string) =>
      fetch(`${server.url}/api/chat.postMessage`, {
        method: "POST",
        headers: { authorization: "Bearer xoxb-test" },
        body: new URLSearchParams({ channel: to, text: "x" }),
      });
    const statuses = [];
    for (let index = 0; index < 7; index++) statuses.push((await post(channel)).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429]);
    const limited = await post(channel);
    expect(limited.headers.get("retry-after")).toBe("1");
    expect(await limited.json()).toEqual({ ok: false, error: "ratelimited" });
    expect((await post("C_PLATFORM")).status).toBe(200);
    clock.moveTo(clock.now() + 1000);
    expect((await post(channel)).status).toBe(200);
    expect((await post(channel)).status).toBe(429);
  });

  test("fails on demand: errors, rate limits, silence, and answers that are lost after the deed", async () => {
    const { client, workspace, server } = await bench();
    workspace.fail("chat.postMessage", { times: 2, with: 500 });
    workspace.fail("chat.postMessage", { error: "fatal_error" });
    const post = () => client.chat.postMessage({ channel, text: "x" });
    await expect(post()).rejects.toMatchObject({ statusCode: 500 });
    await expect(post()).rejects.toMatchObject({ statusCode: 500 });
    await expect(post()).rejects.toMatchObject({ data: { error: "fatal_error" } });
    expect(workspace.chat.messages(channel)).toHaveLength(0);
    workspace.fail("chat.postMessage", { with: 429, retryAfter: 7 });
    const limited = await fetch(`${server.url}/api/chat.postMessage`, { method: "POST" });
    expect([limited.status, limited.headers.get("retry-after")]).toEqual([429, "7"]);
    workspace.fail("chat.postMessage", { with: "lost" });
    await expect(post()).rejects.toThrow();
    expect(workspace.chat.messages(channel)).toHaveLength(1);
    workspace.fail("chat.postMessage", { with: "hang" });
    const impatient = new WebClient("xoxb-test", { slackApiUrl: `${server.url}/api/`, timeout: 50, retryConfig: { retries: 0 } });
    await expect(impatient.chat.postMessage({ channel, text: "x" })).rejects.toThrow(/timeout|aborted/i);
    await expect(post()).resolves.toMatchObject({ ok: true });
  });
});

describe("what people do, told to the app", () => {
  const command = { user: "U_ALICE", channel, command: "/netcheck", text: "node1 --json" };

  test("a slash command is a signed form", async () => {
    const { workspace, requests, clock } = await bench();
    expect(await workspace.command(command)).toEqual({ ok: true });
    const [request] = requests;
    const timestamp = request?.headers["x-slack-request-timestamp"] ?? "";
    expect(Number(timestamp)).toBe(Math.floor(clock.now() / 1000));
    const expected = createHmac("sha256", "test-secret").update(`v0:${timestamp}:${request?.body}`).digest("hex");
    expect(request?.headers["x-slack-signature"]).toBe(`v0=${expected}`);
    expect(request?.headers["content-type"]).toBe("application/x-www-form-urlencoded");
    expect(request?.headers["x-slack-retry-num"]).toBeUndefined();
    expect(Object.fromEntries(new URLSearchParams(request?.body))).toMatchObject({
      command: "/netcheck",
      text: "node1 --json",
      user_id: "U_ALICE",
      channel_id: channel,
      team_id: "T_LOCAL",
      api_app_id: "A_NETCHECK",
      trigger_id: expect.stringMatching(/^\d+\.\d+\.\w+$/) as string,
      response_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/response\//) as string,
    });
  });

  test("the answer of a command is shown to its user, or to all", async () => {
    const { workspace } = await bench(async (request) => {
      const text = new URLSearchParams(request.body).get("text");
      if (text === "plain") return { status: 200, body: "just text" };
      return { status: 200, body: JSON.stringify({ response_type: text === "all" ? "in_channel" : "ephemeral", text: `for ${text}` }) };
    });
    for (const text of ["me", "all", "plain"]) await workspace.command({ ...command, text });
    const seen = (user: string) => workspace.state(user).channels[0]?.messages.map((one) => one.text);
    expect(seen("U_ALICE")).toEqual(["for me", "for all", "just text"]);
    expect(seen("U_BOB")).toEqual(["for all"]);
  });

  test("an app that is silent for three seconds: operation_timeout, and the command comes again", async () => {
    let release: (response: AppResponse) => void = () => {};
    const { workspace, clock, requests, arrived } = await bench(() => new Promise((resolve) => (release = resolve)));
    const running = workspace.command(command);
    await arrived(1);
    clock.moveTo(clock.now() + 2999);
    expect(workspace.chat.messages(channel)).toHaveLength(0);
    clock.moveTo(clock.now() + 1);
    expect(await running).toEqual({ ok: false, error: '/netcheck failed with the error "operation_timeout"' });
    expect(workspace.transcript(channel, undefined, "U_ALICE")).toContain('/netcheck failed with the error "operation_timeout"');
    await arrived(2);
    expect(requests[1]?.headers).toMatchObject({ "x-slack-retry-num": "1", "x-slack-retry-reason": "http_timeout" });
    expect(requests[1]?.body).toBe(requests[0]?.body);
    release(empty);
    await workspace.idle();
    expect(requests).toHaveLength(2);
  });

  test("an app that fails: dispatch_failed for a command, Slack's sentence at a button", async () => {
    const { workspace, client } = await bench(async () => ({ status: 503 }));
    expect(await workspace.command(command)).toMatchObject({ ok: false, error: '/netcheck failed with the error "dispatch_failed"' });
    const { ts = "" } = await client.chat.postMessage({ channel, text: "x", blocks: [buttons] });
    expect(await workspace.click({ user: "U_BOB", channel, ts, actionId: "approve" })).toEqual({
      ok: false,
      error: "This app responded with Status Code 503.",
    });
    const lost = new Workspace();
    lost.connect("http://127.0.0.1:1/slack/events");
    expect(await lost.command(command)).toMatchObject({ ok: false, error: '/netcheck failed with the error "dispatch_failed"' });
  });

  test("a shortcut in the menu of a message carries the message, and can open a window", async () => {
    const { workspace, client, payload } = await bench();
    await workspace.message({ user: "U_ALICE", channel, text: "node4 is slow" });
    const ts = workspace.chat.messages(channel)[0]?.ts ?? "";
    expect(await workspace.shortcut({ user: "U_BOB", channel, ts, callbackId: "triage-message" })).toEqual({ ok: true });
    expect(payload(0)).toMatchObject({
      type: "message_action",
      callback_id: "triage-message",
      user: { id: "U_BOB", team_id: "T_LOCAL" },
      channel: { id: channel, name: "incidents" },
      message_ts: ts,
      message: { type: "message", user: "U_ALICE", ts, text: "node4 is slow" },
      response_url: expect.stringMatching(/\/response\/R/) as string,
    });
    const view = { type: "modal", title: { type: "plain_text", text: "Which?" }, blocks: [section("*x*")] };
    await client.views.open({ trigger_id: payload(0)["trigger_id"] ?? "", view: view as never });
    expect(workspace.chat.modals("U_BOB")).toHaveLength(1);
    // what one person sees alone has no menu
    const { message_ts: alone = "" } = await client.chat.postEphemeral({ channel, user: "U_BOB", text: "psst" });
    expect(await workspace.shortcut({ user: "U_BOB", channel, ts: alone, callbackId: "triage-message" })).toMatchObject({ ok: false });
  });

  test("a click carries the message, the element and its state", async () => {
    const { workspace, client, payload } = await bench();
    const { ts = "" } = await client.chat.postMessage({ channel, text: "x", blocks: [section("*x*"), buttons] });
    expect(await workspace.click({ user: "U_BOB", channel, ts, actionId: "approve" })).toEqual({ ok: true });
    expect(payload(0)).toMatchObject({
      type: "block_actions",
      user: { id: "U_BOB", team_id: "T_LOCAL" },
      team: { id: "T_LOCAL" },
      channel: { id: channel, name: "incidents" },
      container: { type: "message", message_ts: ts, channel_id: channel, is_ephemeral: false },
      message: { ts, blocks: [{ type: "section" }, { block_id: "fix" }] },
      actions: [{ type: "button", action_id: "approve", block_id: "fix", value: "proposal-1" }],
      state: { values: { fix: { explain: { type: "static_select", selected_option: null } } } },
    });
    await workspace.click({ user: "U_BOB", channel, ts, blockId: "fix", actionId: "explain", value: "2" });
    expect(payload(1)["actions"]).toMatchObject([{ type: "static_select", selected_option: { value: "2" } }]);
    // Only what the app offered can be chosen, and only what is there can be pressed.
    await workspace.click({ user: "U_BOB", channel, ts, actionId: "explain", value: "made up" });
    expect(payload(2)["actions"]).toMatchObject([{ selected_option: null }]);
    expect(await workspace.click({ user: "U_BOB", channel, ts, actionId: "none" })).toEqual({ ok: false, error: "This is no longer there." });
  });

  test("nobody presses buttons in another person's ephemeral message", async () => {
    const { workspace, client, payload } = await bench();
    const { message_ts: ts = "" } = await client.chat.postEphemeral({ channel, user: "U_ALICE", text: "x", blocks: [buttons] });
    expect(await workspace.click({ user: "U_BOB", channel, ts, actionId: "approve" })).toMatchObject({ ok: false });
    expect(await workspace.click({ user: "U_ALICE", channel, ts, actionId: "approve" })).toEqual({ ok: true });
    expect(payload(0)["message"]).toBeUndefined();
    expect(payload(0)["container"]).toMatchObject({ is_ephemeral: true });
  });

  test("a trigger opens one modal, within three seconds", async () => {
    const { workspace, client, clock, payload } = await bench();
    const { ts = "" } = await client.chat.postMessage({ channel, text: "x", blocks: [buttons] });
    const trigger = async () => {
      await workspace.click({ user: "U_BOB", channel, ts, actionId: "approve" });
      count += 1;
      return payload(count - 1)["trigger_id"] as unknown as string;
    };
    let count = 0;
    const first = await trigger();
    clock.moveTo(clock.now() + 3000);
    await client.views.open({ trigger_id: first, view: modal });
    await expect(client.views.open({ trigger_id: first, view: modal })).rejects.toMatchObject({ data: { error: "exchanged_trigger_id" } });
    const second = await trigger();
    clock.moveTo(clock.now() + 3001);
    await expect(client.views.open({ trigger_id: second, view: modal })).rejects.toMatchObject({ data: { error: "expired_trigger_id" } });
    await expect(client.views.open({ trigger_id: "1.2.3", view: modal })).rejects.toMatchObject({ data: { error: "invalid_trigger_id" } });
    expect(workspace.state("U_BOB").modals).toHaveLength(1);
    expect(workspace.state("U_ALICE").modals).toHaveLength(0);
  });

  test("a modal: Slack's own checks, the app's errors, then it closes", async () => {
    let reply: unknown = { response_action: "errors", errors: { why: "Say more." } };
    const app: AppHandler = async (request) => ({ status: 200, body: request.body.includes("view_submission") ? JSON.stringify(reply) : "" });
    const { workspace, client, payload, requests } = await bench(app);
    await workspace.command(command);
    const trigger = new URLSearchParams(requests[0]?.body).get("trigger_id") ?? "";
    const { view } = await client.views.open({ trigger_id: trigger, view: modal });
    const viewId = view?.id ?? "";
    const submit = (text: string) => workspace.submit({ user: "U_ALICE", viewId, values: { why: { text } } });
    expect(await submit("")).toEqual({ ok: false, errors: { why: "Please complete this required field." } });
    expect(requests).toHaveLength(1);
    expect(await submit("because")).toEqual({ ok: false, errors: { why: "Say more." } });
    expect(payload(1)).toMatchObject({
      type: "view_submission",
      view: { id: viewId, callback_id: "reason", private_metadata: "p1", state: { values: { why: { text: { type: "plain_text_input", value: "because" } } } } },
    });
    reply = { response_action: "update", view: { ...modal, title: plain("Sure?") } };
    expect(await submit("because")).toEqual({ ok: true });
    expect(workspace.state("U_ALICE").modals[0]?.payload["title"]).toEqual(plain("Sure?"));
    reply = {};
    expect(await submit("because")).toEqual({ ok: true });
    expect(workspace.state("U_ALICE").modals).toEqual([]);
    expect(await submit("again")).toMatchObject({ ok: false });
  });

  test("closing a modal is told to an app that asked for it; a stale hash is refused", async () => {
    const { workspace, client, payload, requests } = await bench();
    await workspace.command(command);
    const trigger = new URLSearchParams(requests[0]?.body).get("trigger_id") ?? "";
    const { view } = await client.views.open({ trigger_id: trigger, view: modal });
    await client.views.update({ view_id: view?.id ?? "", hash: view?.hash ?? "", view: modal });
    await expect(client.views.update({ view_id: view?.id ?? "", hash: "old", view: modal })).rejects.toMatchObject({ data: { error: "hash_conflict" } });
    await workspace.closeView("U_ALICE", view?.id ?? "");
    expect(payload(1)).toMatchObject({ type: "view_closed", view: { id: view?.id }, is_cleared: false });
    expect(workspace.state("U_ALICE").modals).toEqual([]);
  });

  test("a mention is an event, retried at once, after one minute and after five", async () => {
    const { workspace, requests, clock, arrived } = await bench(async () => ({ status: 500 }));
    const outcome = await workspace.message({ user: "U_CAROL", channel, text: "@netcheck node1 <b> & @bob" });
    expect(outcome).toMatchObject({ ok: false });
    expect(JSON.parse(requests[0]?.body ?? "")).toMatchObject({
      type: "event_callback",
      event: { type: "app_mention", user: "U_CAROL", channel, text: "<@U_NETCHECK> node1 &lt;b&gt; &amp; <@U_BOB>" },
    });
    for (const [index, wait] of [0, 60_000, 300_000].entries()) {
      clock.moveTo(clock.now() + wait);
      await arrived(index + 2);
      await workspace.idle();
      expect(requests[index + 1]?.headers).toMatchObject({ "x-slack-retry-num": String(index + 1), "x-slack-retry-reason": "http_error" });
      expect(requests[index + 1]?.body).toBe(requests[0]?.body);
    }
    clock.moveTo(clock.now() + 3_600_000);
    await workspace.idle();
    expect(requests).toHaveLength(4);
  });

  test("a mention with files carries them as Slack does; their address wants the bot's token", async () => {
    const { workspace, server, requests } = await bench();
    const channel = "C_INCIDENTS";
    const data = Buffer.from("default via 10.0.0.1 dev eth0\n");
    const id = workspace.attach("U_CAROL", "ip route.txt", data);
    expect(await workspace.message({ user: "U_CAROL", channel, text: "@netcheck", files: [id] })).toEqual({ ok: true });
    const { event } = JSON.parse(requests[0]?.body ?? "") as { event: { ts: string; files: Record<string, string>[] } };
    const url = `${server.url}/files/${id}/ip%20route.txt`;
    expect(event).toMatchObject({
      type: "app_mention",
      text: "<@U_NETCHECK>",
      files: [{ id, name: "ip route.txt", user: "U_CAROL", size: data.length, mode: "hosted", url_private: url, url_private_download: url }],
    });
    expect((await fetch(url)).status).toBe(403);
    expect((await fetch(url, { headers: { authorization: "Bearer xoxb-other" } })).status).toBe(403);
    const fetched = await fetch(url, { headers: { authorization: "Bearer xoxb-test" } });
    expect(Buffer.from(await fetched.arrayBuffer())).toEqual(data);
    expect(workspace.state("U_BOB").channels[0]?.messages[0]?.files).toMatchObject([{ name: "ip route.txt", text: true, picture: false }]);
    // in a thread, and directly
    const again = workspace.attach("U_CAROL", "x.tgz", data);
    await workspace.message({ user: "U_CAROL", channel, text: "@netcheck", threadTs: event.ts, files: [again] });
    expect(JSON.parse(requests[1]?.body ?? "")).toMatchObject({ event: { thread_ts: event.ts, files: [{ name: "x.tgz" }] } });
    const direct = workspace.chat.directChannel("U_CAROL").id;
    await workspace.message({ user: "U_CAROL", channel: direct, text: "", files: [workspace.attach("U_CAROL", "y.tgz", data)] });
    expect(JSON.parse(requests[2]?.body ?? "")).toMatchObject({ event: { type: "message", subtype: "file_share", files: [{ name: "y.tgz" }] } });
  });

  test("nobody shares another person's file, or one twice; and what is called a picture is shown as one only if it is", async () => {
    const { workspace, requests } = await bench();
    const id = workspace.attach("U_CAROL", "holiday.png", Buffer.from("no picture"));
    const share = (user: string) => workspace.message({ user, channel: "C_INCIDENTS", text: "@netcheck", files: [id] });
    expect(await share("U_BOB")).toMatchObject({ ok: false });
    expect(await share("U_CAROL")).toEqual({ ok: true });
    expect(await share("U_CAROL")).toMatchObject({ ok: false });
    expect(requests).toHaveLength(1);
    expect(workspace.state("U_BOB").channels[0]?.messages.at(-1)?.files).toMatchObject([{ picture: false, text: false }]);
  });

  test("a message without a mention is nobody's business; a direct one is", async () => {
    const { workspace, client, requests } = await bench();
    await workspace.message({ user: "U_BOB", channel, text: "hello all" });
    expect(requests).toHaveLength(0);
    const direct = (await client.conversations.open({ users: "U_BOB" })).channel?.id ?? "";
    await workspace.message({ user: "U_BOB", channel: direct, text: "hello" });
    expect(JSON.parse(requests[0]?.body ?? "")).toMatchObject({ event: { type: "message", channel_type: "im", channel: direct } });
  });

  test("the Home tab", async () => {
    const { workspace, client, requests } = await bench();
    await workspace.openHome("U_BOB");
    expect(JSON.parse(requests[0]?.body ?? "")).toMatchObject({ event: { type: "app_home_opened", user: "U_BOB", tab: "home" } });
    await client.views.publish({ user_id: "U_BOB", view: { type: "home", blocks: [section("all is well")] } });
    expect(workspace.state("U_BOB").home?.blocks).toHaveLength(1);
    expect(workspace.state("U_ALICE").home).toBeUndefined();
  });

  test("a response_url works five times", async () => {
    const { workspace, requests } = await bench();
    await workspace.command(command);
    const url = new URLSearchParams(requests[0]?.body).get("response_url") ?? "";
    const respond = (body: unknown) => fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    expect(await (await respond({ text: "only me" })).json()).toEqual({ ok: true });
    expect(await (await respond({ text: "all", response_type: "in_channel" })).json()).toEqual({ ok: true });
    const bad = await respond({ blocks: [{ type: "nonsense" }] });
    expect([bad.status, await bad.json()]).toMatchObject([400, { error: "invalid_blocks" }]);
    await respond({ text: "4" });
    await respond({ text: "5" });
    const used = await respond({ text: "6" });
    expect([used.status, await used.json()]).toEqual([404, { ok: false, error: "used_url" }]);
    expect(workspace.state("U_BOB").channels[0]?.messages.map((one) => one.text)).toEqual(["all"]);
    expect(workspace.state("U_ALICE").channels[0]?.messages).toHaveLength(4);
  });

  test("a response_url ends after 30 minutes, and can replace or delete what was clicked", async () => {
    const { workspace, client, clock, payload } = await bench();
    const { ts = "" } = await client.chat.postMessage({ channel, text: "x", blocks: [buttons] });
    await workspace.click({ user: "U_BOB", channel, ts, actionId: "approve" });
    const url = payload(0)["response_url"] as unknown as string;
    const respond = async (body: unknown) => (await fetch(url, { method: "POST", body: JSON.stringify(body) })).json();
    await respond({ replace_original: true, text: "done", blocks: [section("done")] });
    expect(workspace.chat.message(channel, ts)).toMatchObject({ text: "done", blocks: [{ type: "section" }] });
    clock.moveTo(clock.now() + 30 * 60_000);
    await respond({ delete_original: true });
    expect(workspace.chat.messages(channel)).toHaveLength(0);
    clock.moveTo(clock.now() + 1);
    expect(await respond({ text: "late" })).toEqual({ ok: false, error: "expired_url" });
    const guess = await fetch(url.replace(/-.*/, "-0123"), { method: "POST", body: "{}" });
    expect(guess.status).toBe(404);
  });
});

test("a Bolt app for Lambda behind the door: it takes our signature, opens a modal and sees the submission", async () => {
  const receiver = new AwsLambdaReceiver({ signingSecret: "test-secret" });
  const handler = receiver.toHandler();
  const door: AppHandler = async (request) => {
    const response = await handler({ body: request.body, headers: request.headers, isBase64Encoded: false } as never, {} as never);
    return { status: response.statusCode, body: response.body };
  };
  // Bolt refuses what was signed five minutes ago, by the real clock
  const { workspace, server } = await bench(door, { clock: new VirtualClock(Date.now()) });
  const app = new App({
    receiver,
    authorize: async () => ({ botToken: "xoxb-test", botId: "B_NETCHECK", botUserId: "U_NETCHECK" }),
    clientOptions: { slackApiUrl: `${server.url}/api/` },
  });
  const submitted: unknown[] = [];
  app.command("/netcheck", async ({ ack, say, command }) => {
    await ack();
    await say({ text: command.text, blocks: [section(command.text), buttons] });
  });
  app.action("approve", async ({ ack, body, client }) => {
    await ack();
    await client.views.open({ trigger_id: "trigger_id" in body ? body.trigger_id : "", view: modal });
  });
  app.view("reason", async ({ ack, view }) => {
    submitted.push(view.state.values["why"]?.["text"]?.value);
    await ack({ response_action: "clear" });
  });
  expect(await workspace.command({ user: "U_ALICE", channel, command: "/netcheck", text: "node1" })).toEqual({ ok: true });
  const ts = workspace.chat.messages(channel)[0]?.ts ?? "";
  expect(await workspace.click({ user: "U_BOB", channel, ts, actionId: "approve" })).toEqual({ ok: true });
  const viewId = workspace.state("U_BOB").modals[0]?.id ?? "";
  expect(await workspace.submit({ user: "U_BOB", viewId, values: { why: { text: "because" } } })).toEqual({ ok: true });
  expect(submitted).toEqual(["because"]);
  expect(workspace.state("U_BOB").modals).toEqual([]);
});

test("the transcript reads like the thread", async () => {
  const { workspace, client } = await bench();
  const { ts = "" } = await client.chat.postMessage({ channel, text: "Triage", blocks: [section(":mag: *Triage* of `node2` for <@U_ALICE>")] });
  const evidence = section("*Evidence* from `iptables-save -c`\n```*filter\n-A FORWARD -m comment --comment &lt;x&gt; *y*```");
  await client.chat.postMessage({ channel, thread_ts: ts, text: "Cause", blocks: [{ type: "header", text: plain("Cause") }, evidence, buttons] });
  await client.chat.postEphemeral({ channel, thread_ts: ts, user: "U_ALICE", text: "> not for \u001b[31mothers" });
  await client.filesUploadV2({ channel_id: channel, thread_ts: ts, filename: "a.txt", content: "12345" });
  expect(workspace.transcript(channel, ts, "U_ALICE")).toBe(`netcheck  09:00:00
  🔍 Triage of \`node2\` for @alice

netcheck  09:00:00
  Cause
  Evidence from \`iptables-save -c\`
      *filter
      -A FORWARD -m comment --comment <x> *y*
  [ Approve & run ]  [ one | two ]

netcheck  09:00:00  (only visible to Alice Moreau)
  > not for [31mothers

netcheck  09:00:00
  [file] a.txt (5 B)
`);
  expect(workspace.transcript(channel, ts, "U_BOB")).not.toContain("only visible");
});

test("threads are unread until they are looked at", async () => {
  const { workspace, client } = await bench();
  const { ts = "" } = await client.chat.postMessage({ channel, text: "root" });
  await client.chat.postMessage({ channel, text: "one", thread_ts: ts });
  await client.chat.postMessage({ channel, text: "two", thread_ts: ts });
  const seen = () => {
    const [incidents] = workspace.state("U_ALICE").channels;
    return [incidents?.unread, incidents?.messages[0]?.unread];
  };
  expect(seen()).toEqual([1, 2]);
  workspace.read("U_ALICE", channel);
  expect(seen()).toEqual([0, 2]);
  workspace.read("U_ALICE", channel, ts);
  expect(seen()).toEqual([0, 0]);
  await workspace.message({ user: "U_ALICE", channel, text: "mine", threadTs: ts });
  expect(seen()).toEqual([0, 0]);
});
