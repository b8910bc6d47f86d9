import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Local, startLocal } from "../../functions/local/main.ts";

/** `/netcheck nodes …` in local mode: through the signed door, the real engine, replayed nodes, the simulated workspace. */

const CHANNEL = "C_INCIDENTS";
const config = `
clusters:
  demo:
    transport: replay
    targets: { node2: { pool: mixed }, node4: { pool: mixed }, healthy1: { pool: mixed }, blue-1: { pool: blue }, blue-2: { pool: blue }, blue-3: { pool: blue }, blue-4: { pool: blue } }
runbook: netcheck
policy: [{ id: all, effect: allow, approvers: [U_ALICE, U_BOB], expires: 60m }]
`;
let folder: string;
let local: Local;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "netcheck-fleet-"));
  writeFileSync(join(folder, "netcheck.yaml"), config);
  local = await startLocal({ directory: join(folder, "data"), config: join(folder, "netcheck.yaml") });
});
afterAll(async () => {
  await local.close();
  rmSync(folder, { recursive: true, force: true });
});

const messages = () => local.workspace.chat.messages(CHANNEL);

/** Presses the button with this label on any message, and waits until nothing moves any more. */
async function press(label: string, user = "U_ALICE"): Promise<void> {
  for (const { ts, blocks } of messages()) {
    const found = (blocks as unknown as readonly { block_id?: string; elements?: { type: string; action_id: string; text: { text: string } }[] }[])
      .flatMap(({ block_id: block = "", elements = [] }) => elements.map((element) => ({ block, element })))
      .find(({ element }) => element.type === "button" && element.text.text === label);
    if (found === undefined) continue;
    const outcome = await local.workspace.click({ user, channel: CHANNEL, ts, blockId: found.block, actionId: found.element.action_id });
    if (!outcome.ok) throw new Error(outcome.error);
    return local.engine.idle();
  }
  throw new Error(`no button "${label}"`);
}

test("a command, a click on a node, and the triage of one for its fix: one thread", async () => {
  expect(await local.workspace.command({ user: "U_ALICE", channel: CHANNEL, command: "/netcheck", text: "nodes node* blue-*,healthy1" })).toEqual({
    ok: true,
  });
  await local.engine.idle();
  expect(messages().map(({ threadTs }) => threadTs)).toEqual([undefined, messages()[0]?.ts, messages()[0]?.ts]);
  expect(messages()[0]?.text).toMatch(/^netcheck 7 nodes \(node∗ blue-∗ healthy1\): 4 healthy · 1: Bridged .* · 1: kube-proxy's .* · 1 unlike its pool$/);
  const [root] = messages();
  await press("blue-3");
  const thread = messages()
    .filter(({ threadTs }) => threadTs === root?.ts)
    .slice(2);
  expect(thread.map(({ text }) => text.slice(0, 30))).toEqual([
    expect.stringMatching(/^blue-3/),
    expect.stringMatching(/blue-3/),
    expect.stringMatching(/^blue-3 compared with blue-/),
  ]);
  await press("Examine node4 for its fix");
  expect(messages().filter(({ threadTs }) => threadTs === undefined)).toHaveLength(1);
  expect(messages().map(({ text }) => text)).toContainEqual(expect.stringMatching(/: a fix is waiting for approval/));
});
