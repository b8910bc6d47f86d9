import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { LogLevel, WebClient } from "@slack/web-api";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Workspace, type WorkspaceState } from "../../functions/local/workspace.ts";
import { cpuMs } from "../cpu-time.ts";
import { VirtualClock } from "./virtual-clock.ts";

const channel = "C_INCIDENTS";
const plain = (text: string) => ({ type: "plain_text" as const, text });
const section = (text: string) => ({ type: "section" as const, text: { type: "mrkdwn" as const, text } });
const button = { type: "actions" as const, elements: [{ type: "button" as const, action_id: "approve", text: plain("Approve") }] };
const modal = { type: "modal" as const, title: plain("Preview"), blocks: [section("iptables -I FORWARD")] };

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "workspace-"));
  file = join(folder, "deep", "workspace.sqlite");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("a workspace in a file", () => {
  test("is the same when it is opened again: people, places, messages, files, views, secrets", () => {
    const clock = new VirtualClock(Date.parse("2026-11-21T09:00:00Z"));
    const users = [{ id: "U_DAN", name: "dan", realName: "Dan Okoye", title: "visitor" }];
    const places = [{ id: "C_WAR", name: "war-room", topic: "", kind: "channel" as const, members: ["U_DAN", "U_NETCHECK"] }];
    const before = new Workspace({ file, clock, users, channels: places, groups: [{ id: "S_WAR", handle: "war", users: ["U_DAN"] }] });
    const token = before.botToken;
    const call = (workspace: Workspace, method: string, args: Record<string, unknown>) => workspace.api(method, args, token).body as Record<string, never>;
    const first = call(before, "chat.postMessage", { channel: "C_WAR", blocks: JSON.stringify([section("one"), button]) });
    call(before, "chat.postMessage", { channel: "C_WAR", text: "two" });
    call(before, "chat.postMessage", { channel: "U_DAN", text: "direct" });
    const third = call(before, "chat.postMessage", { channel: "C_WAR", text: "three" });
    // A changed message stays in its place, a deleted one is gone.
    call(before, "chat.update", { channel: "C_WAR", ts: first["ts"], text: "one, changed" });
    call(before, "chat.delete", { channel: "C_WAR", ts: third["ts"] });
    call(before, "views.publish", { user_id: "U_DAN", view: JSON.stringify({ type: "home", blocks: [section("home")] }) });
    before.read("U_DAN", "C_WAR");
    const state = before.state("U_DAN");
    expect(state.channels.map((one) => [one.id, one.messages.map((message) => message.text)])).toEqual([
      ["C_WAR", ["one, changed", "two"]],
      ["D_U_DAN", ["direct"]],
    ]);
    before.close();

    expect(statSync(file).mode & 0o777).toBe(0o600);
    const after = new Workspace({ file, clock, users, channels: places });
    expect(after.state("U_DAN")).toEqual(state);
    expect(after.botToken).toBe(token);
    expect(after.signingSecret).toBe(before.signingSecret);
    expect(call(after, "usergroups.users.list", { usergroup: "S_WAR" })["users"]).toEqual(["U_DAN"]);
    // The clock has not moved, and yet it is a new time.
    const next = call(after, "chat.postMessage", { channel: "C_WAR", text: "four" });
    expect(Number(next["ts"])).toBeGreaterThan(Number(third["ts"]));
    after.close();
  });

  test("is not opened twice", () => {
    const one = new Workspace({ file });
    expect(() => new Workspace({ file })).toThrow(/another process runs on it/);
    one.close();
    new Workspace({ file }).close();
  });

  test("2,000 messages with an edit each are written and read in seconds", () => {
    const one = new Workspace({ file });
    const started = cpuMs();
    for (let index = 0; index < 2000; index++) {
      const blocks = JSON.stringify([section(`message ${index} ${"x".repeat(1000)}`), button]);
      const { ts } = one.api("chat.postMessage", { channel, blocks }, one.botToken).body;
      one.api("chat.update", { channel, ts, text: `edited ${index}` }, one.botToken);
    }
    const written = cpuMs();
    one.close();
    const again = new Workspace({ file });
    const read = cpuMs() - written;
    expect(again.chat.messages(channel)).toHaveLength(2000);
    expect(again.chat.messages(channel).at(-1)?.text).toBe("edited 1999");
    again.close();
    // On two busy cores it takes about a second; a snapshot of everything per change would take minutes.
    expect(written - started).toBeLessThan(20_000);
    expect(read).toBeLessThan(5000);
  });
});

describe("a process that is killed", () => {
  const children: ChildProcess[] = [];
  let app: Server;
  /** The bodies of what the app was sent. */
  let told: URLSearchParams[];
  beforeEach(async () => {
    told = [];
    app = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => {
        body += chunk.toString();
      });
      request.on("end", () => {
        told.push(new URLSearchParams(body));
        response.end();
      });
    }).listen(0, "127.0.0.1");
    await once(app, "listening");
  });
  afterEach(async () => {
    for (const child of children.splice(0)) await kill(child);
    app.closeAllConnections();
    app.close();
  });

  interface Child {
    readonly process: ChildProcess;
    readonly url: string;
    readonly client: WebClient;
  }

  async function launch(dieAt = ""): Promise<Child> {
    const script = fileURLToPath(new URL("workspace-crash-child.ts", import.meta.url));
    const child = spawn(process.execPath, [script, file, `http://127.0.0.1:${(app.address() as AddressInfo).port}/slack/events`, dieAt], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    children.push(child);
    for await (const line of createInterface({ input: child.stdout })) {
      const [url = "", token = ""] = line.split(" ");
      return { process: child, url, client: new WebClient(token, { slackApiUrl: `${url}/api/`, retryConfig: { retries: 0 }, logLevel: LogLevel.ERROR }) };
    }
    throw new Error("the child ended before it was ready");
  }
  async function kill(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  const gesture = async (child: Child, name: string, body: Record<string, unknown>) => {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    return (await fetch(`${child.url}/workspace/${name}`, init)).json();
  };
  const seen = async (child: Child, user: string) => (await (await fetch(`${child.url}/workspace/state?user=${user}`)).json()) as WorkspaceState;
  const code = (call: Promise<unknown>) =>
    call.then(
      () => "ok",
      (error: { data?: { error?: string } }) => error.data?.error,
    );

  test("all that the Web API acknowledged is there again, and goes on", async () => {
    const one = await launch();
    const root = await one.client.chat.postMessage({ channel, text: "collecting", metadata: { event_type: "netcheck", event_payload: { key: "i1/root" } } });
    await one.client.chat.postMessage({ channel, thread_ts: root.ts ?? "", text: "proposal", blocks: [section("proposal"), button] });
    await one.client.chat.postEphemeral({ channel, user: "U_ALICE", text: "only for Alice" });
    await one.client.filesUploadV2({ channel_id: channel, thread_ts: root.ts ?? "", filename: "report.md", title: "Full report", content: "# report ✓\n" });
    await one.client.chat.update({ channel, ts: root.ts ?? "", text: "diagnosed" });
    await one.client.reactions.add({ channel, timestamp: root.ts ?? "", name: "eyes" });
    await gesture(one, "command", { user: "U_ALICE", channel, command: "/netcheck", text: "node1" });
    const [trigger, unspent] = [told[0]?.get("trigger_id") ?? "", told[0]?.get("response_url") ?? ""];
    const opened = await one.client.views.open({ trigger_id: trigger, view: modal });
    const responsePath = new URL(unspent).pathname;
    const respond = async (child: Child) =>
      (await fetch(child.url + responsePath, { method: "POST", body: JSON.stringify({ text: "by response url" }) })).status;
    for (let use = 0; use < 4; use++) expect(await respond(one)).toBe(200);
    await gesture(one, "read", { user: "U_ALICE", channel });
    const before = { alice: await seen(one, "U_ALICE"), bob: await seen(one, "U_BOB") };
    expect(before.alice.modals).toHaveLength(1);
    await kill(one.process);

    const two = await launch();
    expect({ alice: await seen(two, "U_ALICE"), bob: await seen(two, "U_BOB") }).toEqual(before);
    // The app finds its message by the key in its metadata.
    const history = await two.client.conversations.history({ channel, include_all_metadata: true });
    expect(history.messages?.map((message) => [message.text, message.metadata?.event_payload])).toEqual([["diagnosed", { key: "i1/root" }]]);
    const file = before.bob.channels[0]?.messages.flatMap((message) => message.files)[0];
    expect(await (await fetch(two.url + file?.url, { headers: { authorization: `Bearer ${two.client.token}` } })).text()).toBe("# report ✓\n");
    // What was used up stays used up.
    expect(await code(two.client.views.open({ trigger_id: trigger, view: modal }))).toBe("exchanged_trigger_id");
    expect(await respond(two)).toBe(200);
    expect(await respond(two)).toBe(404);
    // Nothing new has the time or id of something old.
    const next = await two.client.chat.postMessage({ channel, thread_ts: root.ts ?? "", blocks: [section("goes on")] });
    const ts = before.alice.channels[0]?.messages.map((message) => message.ts) ?? [];
    expect(ts.every((old) => old < (next.ts ?? ""))).toBe(true);
    const blockIds = before.alice.channels[0]?.messages.flatMap((message) => message.blocks ?? []).map((block) => block.block_id);
    expect(blockIds).not.toContain(next.message?.blocks?.[0]?.block_id);
    // The modal that was open is still the one that can be closed.
    expect(await gesture(two, "close-modal", { user: "U_ALICE", viewId: opened.view?.id })).toEqual({ ok: true });
  }, 60_000);

  test.each([1, 2, 7, 20])(
    "killed in the middle of message %i: those before it are there, it is not",
    async (at) => {
      const one = await launch(`message ${at}`);
      const acknowledged: string[] = [];
      for (let index = 1; index <= 30; index++) {
        const text = `message ${index}`;
        const lost = await one.client.chat.postMessage({ channel, text }).then(
          () => false,
          () => true,
        );
        if (lost) break;
        acknowledged.push(text);
      }
      const [, signal] = one.process.signalCode === null ? await once(one.process, "exit") : [null, one.process.signalCode];
      expect(signal).toBe("SIGKILL");
      expect(acknowledged).toHaveLength(at - 1);
      const two = await launch();
      const texts = (await seen(two, "U_BOB")).channels[0]?.messages.map((message) => message.text);
      expect(texts).toEqual(acknowledged);
      // The retry of what was not acknowledged is the only one.
      await two.client.chat.postMessage({ channel, text: `message ${at}` });
      expect((await seen(two, "U_BOB")).channels[0]?.messages).toHaveLength(at);
    },
    60_000,
  );
});
