import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { pageId, pagerHandler } from "../../functions/pager/app.ts";
import type { WorkEvent } from "../../functions/triage/ports.ts";

const SECRET = "pager-secret";
const NOW = 1_790_000_000_000;
const page = { id: "alert:42", title: "NodeNotReady <!channel>", targets: ["node1", "ip-10-0-3-4.eu-central-1.compute.internal", "node1"], extra: 1 };

function setUp() {
  const started: { name: string; event: WorkEvent }[] = [];
  const work = { start: async (name: string, event: WorkEvent) => void started.push({ name, event }), answer: async () => false };
  return { started, handle: pagerHandler({ signingSecret: async () => SECRET, work, now: () => NOW }) };
}

function signed(body: string, { secret = SECRET, at = NOW / 1000, base64 = false } = {}) {
  const signature = `v1=${createHmac("sha256", secret).update(`${at}.${body}`).digest("hex")}`;
  const headers = { "X-Netcheck-Timestamp": String(at), "X-Netcheck-Signature": signature };
  return { headers, body: base64 ? Buffer.from(body).toString("base64") : body, isBase64Encoded: base64 };
}

test.each([false, true])("a signed page starts its execution under its own name (base64: %s)", async (base64) => {
  const { started, handle } = setUp();
  expect(await handle(signed(JSON.stringify(page), { base64 }))).toMatchObject({ statusCode: 202 });
  await handle(signed(JSON.stringify(page)));
  const targets = ["node1", "ip-10-0-3-4.eu-central-1.compute.internal"];
  const event = { kind: "page", page: { source: "generic", id: "alert:42", title: page.title, targets } };
  expect(started).toEqual([
    { name: pageId({ source: "generic", id: "alert:42" }), event },
    { name: pageId({ source: "generic", id: "alert:42" }), event },
  ]);
  expect(pageId({ source: "generic", id: "alert:42" })).toMatch(/^page-[0-9a-f]{16}$/);
});

test.each([
  ["another secret", signed("{}", { secret: "other" })],
  ["an old request", signed("{}", { at: NOW / 1000 - 301 })],
  ["one from the future", signed("{}", { at: NOW / 1000 + 301 })],
  ["another body", { ...signed("{}"), body: "{ }" }],
  ["no signature", { headers: {}, body: "{}", isBase64Encoded: false }],
  ["a shortened signature", { ...signed("{}"), headers: { "x-netcheck-timestamp": String(NOW / 1000), "x-netcheck-signature": "v1=ab" } }],
  ["a time that is none", { ...signed("{}"), headers: { ...signed("{}").headers, "X-Netcheck-Timestamp": "1e9" } }],
])("refused: %s", async (_, request) => {
  const { started, handle } = setUp();
  expect((await handle(request)).statusCode).toBe(401);
  expect(started).toEqual([]);
});

test.each([
  ["no JSON", "{", /not JSON/],
  ["a list", "[]", /./],
  ["no targets", JSON.stringify({ ...page, targets: [] }), /targets/],
  ["a target that is no name", JSON.stringify({ ...page, targets: ["$(reboot)"] }), /targets/],
  ["an id of another kind", JSON.stringify({ ...page, id: 7 }), /id/],
  ["a prototype", '{"__proto__":{"id":"x","title":"x","targets":["node1"]}}', /id/],
])("not taken, and why: %s", async (_, body, message) => {
  const { started, handle } = setUp();
  const response = await handle(signed(body));
  expect(response.statusCode).toBe(400);
  expect((JSON.parse(response.body) as { message: string }).message).toMatch(message);
  expect(started).toEqual([]);
});

test("a body that no page has is not read", async () => {
  const { handle } = setUp();
  expect((await handle(signed("x".repeat(300_000)))).statusCode).toBe(413);
});
