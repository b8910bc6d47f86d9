import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Local, root, startLocal } from "../../functions/local/main.ts";

/** Local mode as a whole, without a browser: what people drop is fetched over HTTP with the bot's token, read and answered. */

let folder: string;
let local: Local;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "netcheck-local-"));
  local = await startLocal({ directory: join(folder, "state") });
});
afterEach(async () => {
  await local.close();
  rmSync(folder, { recursive: true });
});

const channel = "C_INCIDENTS";
const said = (user = "U_ALICE") => local.workspace.transcript(channel, undefined, user);
async function settle(): Promise<void> {
  await local.workspace.idle();
  await local.engine.idle();
  await local.workspace.idle();
}

test("a file with a mention is diagnosed in the thread of its message; nothing of it stays on the disk", async () => {
  const { workspace } = local;
  const id = workspace.attach("U_BOB", "sosreport-node4.tar.xz", readFileSync(join(root, "test/imports/sosreport-node4.tar.xz")));
  expect(await workspace.message({ user: "U_BOB", channel, text: "@netcheck", files: [id] })).toEqual({ ok: true });
  await settle();
  const [message, ...answers] = workspace.chat.messages(channel);
  expect(answers.length).toBeGreaterThanOrEqual(4);
  expect(answers.every(({ threadTs }) => threadTs === message?.ts)).toBe(true);
  expect(said()).toContain("node4: Bridged traffic bypasses iptables");
  expect(said()).toContain("net.bridge.bridge-nf-call-iptables = 0");
  expect(said()).toMatch(/\[file\] netcheck-node4-inc-[0-9a-f]{12}-1\.png/);
  expect(said()).not.toMatch(/Approve|Proposed fix/);
  expect(readdirSync(join(folder, "state", "incoming"))).toEqual([]);
  expect((await local.store.incidents(5)).map(({ state, requester }) => [state, requester.id])).toEqual([["diagnosed", "U_BOB"]]);
});

test("the same event, delivered again, is answered once", async () => {
  const { workspace } = local;
  let requests = 0;
  const handler = local.url;
  // the first answer of the app is lost on its way: the workspace sends the event again, as Slack does
  const flaky = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      requests += 1;
      const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => /^(?:content-type|x-slack)/.test(name))) as Record<string, string>;
      void fetch(`${handler}/slack/events`, { method: "POST", headers, body: Buffer.concat(chunks) }).then(async (answer) => {
        if (requests === 1) response.destroy();
        else response.writeHead(answer.status).end(await answer.text());
      });
    });
  });
  await new Promise<void>((resolve) => flaky.listen(0, "127.0.0.1", resolve));
  try {
    workspace.connect(`http://127.0.0.1:${(flaky.address() as { port: number }).port}/slack/events`);
    const id = workspace.attach("U_BOB", "sosreport-node4.tar.xz", readFileSync(join(root, "test/imports/sosreport-node4.tar.xz")));
    await workspace.message({ user: "U_BOB", channel, text: "@netcheck", files: [id] });
    await expect.poll(() => requests).toBe(2);
    await settle();
  } finally {
    flaky.closeAllConnections();
    await new Promise((resolve) => flaky.close(resolve));
  }
  expect(await local.store.incidents(5)).toHaveLength(1);
  expect(said().match(/Likely cause/g)).toHaveLength(1);
});

test("a direct message, pasted text, and nothing at all", async () => {
  const { workspace } = local;
  const direct = workspace.chat.directChannel("U_ALICE").id;
  await workspace.message({ user: "U_ALICE", channel: direct, text: "```\nroot@node9:~# ip route\n10.0.0.0/24 dev eth0 scope link\n```" });
  await settle();
  expect(workspace.transcript(direct, undefined, "U_ALICE")).toContain("node9");
  await workspace.message({ user: "U_ALICE", channel, text: "@netcheck what is wrong with you?" });
  await settle();
  expect(said("U_ALICE")).toContain("has more than one word");
  expect(said("U_BOB")).not.toContain("has more than one word");
});
