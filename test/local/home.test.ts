import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Local, startLocal } from "../../functions/local/main.ts";

/** The Home tab, votes, mutes, the menu of a message and the question for a node in local mode: through the signed door, the real engine, replayed nodes. */

const CHANNEL = "C_INCIDENTS";
let folder: string;
let local: Local;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "netcheck-home-"));
  local = await startLocal({ directory: join(folder, "data") });
});
afterAll(async () => {
  await local.close();
  rmSync(folder, { recursive: true, force: true });
});

const messages = (channel = CHANNEL) => local.workspace.chat.messages(channel);
const last = () => JSON.stringify(messages().at(-1)?.blocks);
const homeOf = (user: string) => local.workspace.state(user).home;
const modalOf = (user: string) => local.workspace.state(user).modals.at(-1);
async function does(gesture: Promise<{ readonly ok: boolean; readonly error?: string }>): Promise<void> {
  expect(await gesture).toEqual({ ok: true });
  await local.engine.idle();
}
const says = (user: string, text: string) => does(local.workspace.command({ user, channel: CHANNEL, command: "/netcheck", text }));

test("from the Home tab: a fix is approved in its window, and the tab shows what became of it", async () => {
  await says("U_ALICE", "node2");
  await does(local.workspace.openHome("U_BOB"));
  const before = JSON.stringify(homeOf("U_BOB")?.blocks);
  expect(before).toContain("waiting for approval");
  expect(before).toContain("sre-approves");
  await does(local.workspace.click({ user: "U_BOB", viewId: homeOf("U_BOB")?.id, actionId: "approve-0" }));
  const modal = modalOf("U_BOB");
  await does(local.workspace.submit({ user: "U_BOB", viewId: modal?.id ?? "", values: { typed: { typed: "node2" } } }));
  expect(JSON.stringify(homeOf("U_BOB")?.blocks)).toContain("Nothing waits for an approval");
  expect(messages().map(({ text }) => text)).toEqual(expect.arrayContaining([expect.stringContaining("The fix ran.")]));
  // it settles for two seconds of real time; what comes then must not come between the messages of the next tests
  await expect.poll(async () => (await local.store.incidents(10)).map(({ state }) => state), { timeout: 20_000 }).toEqual(["resolved"]);
  await local.engine.idle();
});

test("a node is run again from there, and the person is told directly", async () => {
  await does(local.workspace.openHome("U_BOB"));
  await does(local.workspace.click({ user: "U_BOB", viewId: homeOf("U_BOB")?.id, actionId: "choice-0" }));
  const direct = local.workspace.chat.directChannel("U_BOB").id;
  expect(messages(direct)[0]?.text).toMatch(/^netcheck node2: /);
});

test("a vote below the diagnosis counts for the rule", async () => {
  await says("U_ALICE", "node4");
  const diagnosis = messages().findLast(({ blocks }) => JSON.stringify(blocks ?? []).includes('"right"'));
  await does(local.workspace.click({ user: "U_BOB", channel: CHANNEL, ts: diagnosis?.ts, actionId: "right" }));
  expect(last()).toContain("1 of 1 votes");
  await says("U_BOB", "rules");
  expect(last()).toContain("right 1/1 (100 %)");
});

test("a mute is on record, and hides a finding in sight of everybody", async () => {
  const rule = /`([a-z0-9-]+)` right 1\/1/.exec(last())?.[1] ?? "";
  await says("U_BOB", `mute ${rule} on node4 for 7d because it is known`);
  expect(last()).toContain("is muted on node4");
  await says("U_ALICE", "node4");
  expect(JSON.stringify(messages().map(({ blocks }) => blocks))).toContain("1 finding muted by <@U_BOB>");
  await says("U_ALICE", "history node4");
  expect(last()).toContain("muted by <@U_BOB>");
});

test("the window that asks for a node, and the menu of a message", async () => {
  await says("U_ALICE", "");
  const modal = modalOf("U_ALICE");
  expect(JSON.stringify(modal)).toContain("demo/healthy1");
  await does(local.workspace.submit({ user: "U_ALICE", viewId: modal?.id ?? "", values: { node: { node: "demo/healthy1" } } }));
  expect(messages().map(({ text }) => text)).toEqual(expect.arrayContaining([expect.stringMatching(/^netcheck healthy1: no cause found/)]));
  const said = local.workspace.chat.post({
    channel: CHANNEL,
    user: "U_BOB",
    text: "FIRING: packets are dropped on healthy1.",
    blocks: undefined,
    threadTs: undefined,
    metadata: undefined,
  } as never);
  await does(local.workspace.shortcut({ user: "U_ALICE", channel: CHANNEL, ts: said.ts, callbackId: "triage-message" }));
  expect(messages().filter(({ threadTs }) => threadTs === said.ts)[0]?.text).toMatch(/^netcheck healthy1: /);
});
