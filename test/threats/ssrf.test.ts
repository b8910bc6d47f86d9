import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import { slackChat } from "../../functions/slack/chat.ts";
import { slackClient } from "../../functions/slack/client.ts";
import { loadTemplates } from "../../functions/slack/render.ts";
import { SqliteStore } from "../../functions/store/sqlite.ts";
import { debugPodTransport } from "../../functions/transports/debug-pod.ts";
import type { Place } from "../../functions/triage/ports.ts";
import { image, quick, target } from "../transports/pods.ts";

/** Addresses that come from outside, or from a configuration: what is sent where. Real clients over real HTTP. */

const servers: Server[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** A server, and the requests that it got. */
async function serve(listener: RequestListener): Promise<{ url: string; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    listener(request, response);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}
const internal = () => serve((_request, response) => response.end("secrets of the machine"));

const render = loadTemplates(fileURLToPath(new URL("../../templates/slack/", import.meta.url)));
/** Whispers in a channel that the bot is not in: the answer then goes to the address that came with the request. */
async function answerTo(responseUrl: string | ((api: string) => string)): Promise<{ outcome: string; answered: readonly string[] }> {
  const slack = await serve((request, response) =>
    response.setHeader("content-type", "application/json").end(request.url?.startsWith("/api/") === true ? '{"ok":false,"error":"not_in_channel"}' : "{}"),
  );
  const store = new SqliteStore(":memory:");
  const chat = slackChat({ client: slackClient("xoxb-1", `${slack.url}/api/`), store, render, draw: async () => new Uint8Array(), log: () => undefined });
  const place: Place = { channel: "C0001", responseUrl: typeof responseUrl === "string" ? responseUrl : responseUrl(slack.url) };
  const outcome = await chat.whisper(place, { id: "U0001", team: "T0001" }, { template: "note", data: { icon: "warning", text: "hello", incident: "" } }).then(
    () => "told",
    (error: unknown) => (error as Error).message,
  );
  store.close();
  return { outcome, answered: slack.requests.map(({ url }) => url ?? "").filter((url) => !url.startsWith("/api/")) };
}

test("the address for an answer: Slack's own", async () => {
  expect(await answerTo((api) => `${api}/response/1`)).toEqual({ outcome: "told", answered: ["/response/1"] });
  const sent: string[] = [];
  const real = globalThis.fetch;
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const url = input instanceof Request ? input.url : input.toString();
    if (url.startsWith("http://127.0.0.1")) return real(input, init);
    sent.push(`${url} ${init?.redirect}`);
    return new Response("ok");
  });
  expect((await answerTo("https://hooks.slack.com/actions/T0001/2/y")).outcome).toBe("told");
  expect(sent).toEqual(["https://hooks.slack.com/actions/T0001/2/y manual"]);
});

test.each([
  "http://169.254.169.254/latest/meta-data/iam/security-credentials/",
  "http://[fd00:ec2::254]/latest/meta-data/",
  "https://hooks.slack.com.evil.example/x",
  "https://hooks.slack.com@evil.example/x",
  "https://user:password@hooks.slack.com/x",
  "https://hooks.slack.com:8443/x",
  "http://hooks.slack.com/x",
  "file:///etc/passwd",
  "not an address",
])("the address for an answer: %s is not asked", async (url) => {
  const elsewhere = vi.spyOn(globalThis, "fetch");
  const { outcome, answered } = await answerTo(url);
  expect(outcome).toContain("leads elsewhere than to Slack");
  expect(answered).toEqual([]);
  expect(
    elsewhere.mock.calls.map(([input]) => (input instanceof Request ? input.url : input.toString())).filter((one) => !one.startsWith("http://127.0.0.1")),
  ).toEqual([]);
});

test("another port of this machine that is not Slack's is not asked", async () => {
  const secret = await internal();
  expect((await answerTo(`${secret.url}/x`)).outcome).toContain("leads elsewhere");
  expect(secret.requests).toEqual([]);
});

test("an answer's address that redirects is not followed", async () => {
  const secret = await internal();
  const slack = await serve((request, response) =>
    request.url?.startsWith("/api/") === true
      ? response.setHeader("content-type", "application/json").end('{"ok":false,"error":"not_in_channel"}')
      : response.writeHead(307, { location: secret.url }).end(),
  );
  const store = new SqliteStore(":memory:");
  const chat = slackChat({ client: slackClient("xoxb-1", `${slack.url}/api/`), store, render, draw: async () => new Uint8Array(), log: () => undefined });
  const place: Place = { channel: "C0001", responseUrl: `${slack.url}/response/1` };
  await expect(chat.whisper(place, { id: "U0001", team: "T0001" }, { template: "note", data: { icon: "warning", text: "x", incident: "" } })).rejects.toThrow(
    "HTTP 307",
  );
  store.close();
  expect(secret.requests).toEqual([]);
});

/** What comes of a job on a cluster with this API endpoint. */
const startAt = (endpoint: string): Promise<string> =>
  debugPodTransport({ cluster: () => ({ access: { by: "bearer", endpoint, token: async () => "the-token" }, image }), pauseMs: 1 })
    .start(target, quick)
    .then(
      () => "started",
      (error: unknown) => (error as Error).message,
    );

test.each([
  "https://169.254.169.254/",
  "https://169.254.170.2/v2/credentials",
  "https://2852039166/",
  "https://0xa9fea9fe/",
  "https://[::ffff:169.254.169.254]/",
  "https://[fe80::1]/",
  "https://[fd00:ec2::254]/",
  "http://169.254.169.254/",
  "file:///var/run/secrets/token",
  "https://:password@10.0.0.1/",
])("a cluster's endpoint: %s is no API server, no token is sent", async (endpoint) => {
  expect(await startAt(endpoint)).toMatch(/could not use the API endpoint .*: it (?:is an address of the machine's own metadata|must be an https address)/);
});

test.each([301, 302, 307, 308])("a cluster that redirects (%i): the token is not carried elsewhere", async (status) => {
  const secret = await internal();
  const cluster = await serve((_request, response) => response.writeHead(status, { location: `${secret.url}/latest/meta-data/` }).end());
  expect(await startAt(cluster.url)).not.toBe("started");
  expect(cluster.requests.length).toBeGreaterThan(0);
  expect(secret.requests).toEqual([]);
});
