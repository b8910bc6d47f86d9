import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LocalServer, startServer } from "../../functions/local/server.ts";
import { Workspace } from "../../functions/local/workspace.ts";

const workspace = new Workspace({ botToken: "xoxb-test", signingSecret: "test-secret", targets: [{ name: "node1", description: "a node" }] });
let server: LocalServer;
beforeAll(async () => {
  server = await startServer({ workspace, appHandler: async () => ({ status: 200, body: "" }) });
});
afterAll(() => server.close());

/** Like fetch, but every header can be set, Host included. */
function send(
  path: string,
  options: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<{ status: number; body: string; headers: Record<string, unknown> }> {
  return new Promise((resolve, reject) => {
    const { port } = new URL(server.url);
    const sent = request({ host: "127.0.0.1", port, path, method: options.method ?? "GET", headers: options.headers ?? {} }, (response) => {
      let body = "";
      response.on("data", (chunk: Buffer) => (body += chunk.toString()));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body, headers: response.headers }));
    });
    sent.on("error", reject);
    sent.end(options.body);
  });
}
const json = { "content-type": "application/json" };
const message = JSON.stringify({ user: "U_BOB", channel: "C_PLATFORM", text: "hello" });
const posted = () => workspace.chat.messages("C_PLATFORM").length;

describe("who is answered", () => {
  test("a foreign Host is not (DNS rebinding), whatever the path", async () => {
    for (const path of ["/", "/workspace/state?user=U_ALICE", "/api/auth.test"]) {
      expect((await send(path, { headers: { host: "evil.example:80" } })).status).toBe(421);
      expect((await send(path, { headers: { host: "127.0.0.1:1" } })).status).toBe(421);
    }
    expect((await send("/", { headers: { host: `localhost:${new URL(server.url).port}` } })).status).toBe(200);
  });

  test("a page of another site is not", async () => {
    const before = posted();
    const post = (headers: Record<string, string>) => send("/workspace/message", { method: "POST", headers, body: message });
    expect((await post({ ...json, origin: "http://evil.example" })).status).toBe(403);
    expect((await post({ ...json, origin: "null" })).status).toBe(403);
    expect((await post({ ...json, origin: server.url.replace("http:", "https:") })).status).toBe(403);
    expect((await post({ ...json, "sec-fetch-site": "cross-site" })).status).toBe(403);
    // What a form of another site could send without asking.
    expect((await post({ "content-type": "text/plain" })).status).toBe(415);
    expect((await post({ "content-type": "application/x-www-form-urlencoded" })).status).toBe(415);
    expect((await send("/slack/events", { method: "POST", headers: { origin: "http://evil.example" }, body: "x" })).status).toBe(403);
    expect((await send("/workspace/state?user=U_ALICE", { headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" } })).status).toBe(403);
    expect(posted()).toBe(before);
    expect((await send("/", { headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" } })).status).toBe(200);
  });

  test("our own page is", async () => {
    const before = posted();
    const answer = await send("/workspace/message", {
      method: "POST",
      headers: { ...json, origin: server.url, "sec-fetch-site": "same-origin" },
      body: message,
    });
    expect([answer.status, JSON.parse(answer.body)]).toEqual([200, { ok: true }]);
    expect(posted()).toBe(before + 1);
  });
});

test("the page and its assets are complete and strictly our own", async () => {
  const page = await send("/");
  expect(page.headers["content-security-policy"]).toMatch(/^default-src 'self';.*frame-ancestors 'none'/);
  expect(page.headers["cache-control"]).toBe("no-store");
  expect(page.body).not.toMatch(/https?:\/\//);
  for (const [, path = ""] of page.body.matchAll(/(?:src|href)="([^"]+)"/g)) {
    const asset = await send(path);
    expect([path, asset.status, asset.headers["x-content-type-options"]]).toEqual([path, 200, "nosniff"]);
    expect(asset.body.length).toBeGreaterThan(100);
  }
});

test("wrong requests are refused with a status and a reason", async () => {
  const status = async (path: string, method: string, body?: string, headers: Record<string, string> = json) =>
    (await send(path, { method, headers, ...(body === undefined ? {} : { body }) })).status;
  expect(await status("/nothing", "GET")).toBe(404);
  expect(await status("/assets/../server.ts", "GET")).toBe(404);
  expect(await status("/assets/..%2fserver.ts", "GET")).toBe(404);
  expect(await status("/files/F1/x", "GET", undefined, { "sec-fetch-site": "same-origin" })).toBe(404);
  expect(await status("/workspace/state?user=U_NONE", "GET")).toBe(404);
  expect(await status("/workspace/nothing", "POST", "{}")).toBe(404);
  expect(await status("/workspace/constructor", "POST", "{}")).toBe(404);
  expect(await status("/workspace/message", "POST", "[]")).toBe(400);
  expect(await status("/workspace/message", "POST", "{oops")).toBe(400);
  expect(await status("/workspace/message", "PUT", message)).toBe(405);
  expect(await status("/", "DELETE")).toBe(405);
  expect(await status("/response/unknown", "POST", "{}")).toBe(404);
  expect(await status("/workspace/command", "POST", JSON.stringify({ user: "U_ALICE", channel: "C_PLATFORM", command: "no slash", text: "" }))).toBe(400);
  const refused = await send("/workspace/message", {
    method: "POST",
    headers: json,
    body: JSON.stringify({ user: "U_NONE", channel: "C_PLATFORM", text: "x" }),
  });
  expect(JSON.parse(refused.body)).toMatchObject({ ok: false, error: expect.any(String) as string });
});

test("a body over 1 MB is refused", async () => {
  const body = JSON.stringify({ user: "U_BOB", channel: "C_PLATFORM", text: "x".repeat(1024 * 1024) });
  const answer = await send("/workspace/message", { method: "POST", headers: json, body }).catch(() => ({ status: 413 }));
  expect(answer.status).toBe(413);
});

describe("a person's file", () => {
  const octets = { "content-type": "application/octet-stream" };
  const upload = (query: string, headers: Record<string, string> = octets, body = "x") => send(`/workspace/upload?${query}`, { method: "POST", headers, body });

  test("is taken as it is, and shared with a message", async () => {
    const answer = await upload("user=U_BOB&name=ip%20route.txt", { ...octets, origin: server.url, "sec-fetch-site": "same-origin" });
    const { file } = JSON.parse(answer.body) as { file: string };
    expect(workspace.chat.files.get(file)).toMatchObject({ name: "ip route.txt", user: "U_BOB", data: Buffer.from("x"), shared: false });
    const said = JSON.stringify({ user: "U_BOB", channel: "C_PLATFORM", text: "", files: [file] });
    expect(JSON.parse((await send("/workspace/message", { method: "POST", headers: json, body: said })).body)).toEqual({ ok: true });
    expect(workspace.chat.files.get(file)?.shared).toBe(true);
  });

  test("is refused from a page of another site, of nobody, without a name, empty, and by other methods", async () => {
    const before = workspace.chat.files.size;
    expect((await upload("user=U_BOB&name=x", { ...octets, origin: "http://evil.example" })).status).toBe(403);
    for (const type of ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"])
      expect((await upload("user=U_BOB&name=x", { "content-type": type })).status).toBe(415);
    expect((await upload("user=U_NONE&name=x")).status).toBe(400);
    expect((await upload("user=U_BOB&name=")).status).toBe(400);
    expect((await upload(`user=U_BOB&name=${"x".repeat(256)}`)).status).toBe(400);
    expect((await upload("user=U_BOB&name=x", octets, "")).status).toBe(400);
    expect((await send("/workspace/upload?user=U_BOB&name=x", { method: "PUT", headers: octets, body: "x" })).status).toBe(405);
    expect(workspace.chat.files.size).toBe(before);
  });
});

test("changes are announced to a page that listens, and the state says all", async () => {
  const events = await fetch(`${server.url}/workspace/events`);
  const reader = (events.body as ReadableStream<Uint8Array>).getReader();
  const next = async () => new TextDecoder().decode((await reader.read()).value);
  expect(await next()).toBe(`data: ${workspace.chat.version}\n\n`);
  await workspace.message({ user: "U_BOB", channel: "C_INCIDENTS", text: "<script>alert(1)</script>" });
  expect(await next()).toBe(`data: ${workspace.chat.version}\n\n`);
  await reader.cancel();
  const state = JSON.parse((await send("/workspace/state?user=U_ALICE")).body) as ReturnType<Workspace["state"]>;
  expect(state).toMatchObject({ me: "U_ALICE", version: workspace.chat.version, targets: [{ name: "node1" }] });
  expect(state.channels[0]?.messages.at(-1)).toMatchObject({ user: "U_BOB", text: "&lt;script&gt;alert(1)&lt;/script&gt;" });
  // Secrets never reach the page.
  expect(JSON.stringify(state)).not.toMatch(/xoxb|test-secret/);
});

test("a port that is taken is an error at start", async () => {
  const port = Number(new URL(server.url).port);
  await expect(startServer({ workspace: new Workspace(), port })).rejects.toMatchObject({ code: "EADDRINUSE" });
});
