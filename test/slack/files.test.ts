import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { slackClient } from "../../functions/slack/client.ts";
import { slackFiles } from "../../functions/slack/files.ts";

/** Files fetched over real HTTP from a server that stands for Slack; of Slack's own hosts, only what would be sent to them. */

let folder: string;
let path: string;
const servers: Server[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "netcheck-files-"));
  path = join(folder, "file");
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
  rmSync(folder, { recursive: true });
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const content = Buffer.from("default via 10.0.0.1 dev eth0\n");
const one = (url: string, more: object = {}) => ({ id: "F0001", name: "route.txt", url, ...more });

test("a file is written as it is, for its owner only, with length and hash; the token is sent", async () => {
  const seen: (string | undefined)[] = [];
  const url = await serve((request, response) => {
    seen.push(request.headers.authorization);
    response.setHeader("content-type", "text/plain").end(content);
  });
  const fetched = await slackFiles(slackClient("xoxb-1", `${url}/api/`))(one(`${url}/files/F0001/route.txt`), path);
  expect(fetched).toEqual({ bytes: content.length, sha256: createHash("sha256").update(content).digest("hex") });
  expect(readFileSync(path)).toEqual(content);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(seen).toEqual(["Bearer xoxb-1"]);
});

test("a file that is only named is asked for", async () => {
  const url = await serve((request, response) => {
    if (request.url === "/api/files.info") response.end(JSON.stringify({ ok: true, file: { id: "F0001", url_private: `${url}/files/F0001` } }));
    else response.end(content);
  });
  await slackFiles(slackClient("xoxb-1", `${url}/api/`))({ id: "F0001", name: "route.txt" }, path);
  expect(readFileSync(path)).toEqual(content);
});

test("what Slack does not show is said with the scope that may be missing", async () => {
  const url = await serve((_request, response) => response.end(JSON.stringify({ ok: false, error: "missing_scope" })));
  await expect(slackFiles(slackClient("xoxb-1", `${url}/api/`))({ id: "F0001", name: "x" }, path)).rejects.toThrow(/does not show it to netcheck .*files:read/);
});

describe("the token goes nowhere else", () => {
  test.each([
    "http://files.slack.com/files-pri/T1-F1/x",
    "https://files.slack.com:8443/x",
    "https://files.slack.com.evil.example/x",
    "https://evil.example/files.slack.com",
    "https://files.slack.com@evil.example/x",
    "https://user:password@files.slack.com/x",
    "https://docs.google.com/document/d/1",
    "http://169.254.169.254/latest/meta-data/",
    "http://127.0.0.1:1/x",
    "http://localhost/x",
    "file:///etc/passwd",
    "data:text/plain,x",
    "//evil.example/x",
    "",
  ])("%s is refused, and nothing is sent", async (url) => {
    const sent = vi.spyOn(globalThis, "fetch");
    await expect(slackFiles(slackClient("xoxb-1"))(one(url), path)).rejects.toThrow("it is not kept by Slack itself");
    expect(sent).not.toHaveBeenCalled();
    expect(existsSync(path)).toBe(false);
  });

  test("Slack's own host is asked, without following redirects", async () => {
    const sent = vi.spyOn(globalThis, "fetch").mockResolvedValue(new Response("x"));
    await slackFiles(slackClient("xoxb-1"))(one("https://files.slack.com/files-pri/T1-F1/x"), path);
    expect(sent.mock.calls[0]?.[1]).toMatchObject({ redirect: "manual", headers: { authorization: "Bearer xoxb-1" } });
  });

  test("a redirect is not followed", async () => {
    let followed = 0;
    const elsewhere = await serve((_request, response) => {
      followed += 1;
      response.end(content);
    });
    const url = await serve((_request, response) => response.writeHead(302, { location: elsewhere }).end());
    await expect(slackFiles(slackClient("xoxb-1", `${url}/api/`))(one(`${url}/x`), path)).rejects.toThrow(
      /does not let netcheck fetch it \(HTTP 302\).*files:read/,
    );
    expect(followed).toBe(0);
  });

  test("another port of the machine that stands for Slack is elsewhere", async () => {
    const [url, other] = [await serve((_request, response) => response.end()), await serve((_request, response) => response.end())];
    await expect(slackFiles(slackClient("xoxb-1", `${url}/api/`))(one(`${other}/x`), path)).rejects.toThrow("not kept by Slack itself");
  });
});

describe("what does not come as a file", () => {
  const problem = async (listener: RequestListener, more: object = {}, most?: number): Promise<Error & { retryable?: boolean }> => {
    const url = await serve(listener);
    return await slackFiles(
      slackClient("xoxb-1", `${url}/api/`),
      undefined,
      most,
    )(one(`${url}/x`, more), path).then(
      () => expect.unreachable("it was fetched"),
      (error: unknown) => error as Error,
    );
  };

  test("a page to log in, with status 200", async () => {
    const error = await problem((_request, response) => response.setHeader("content-type", "text/html; charset=utf-8").end("<html>Sign in"));
    expect(error.message).toContain("files:read");
    expect(error.retryable).toBeUndefined();
  });

  test.each([
    [401, false, "files:read"],
    [403, false, "files:read"],
    [404, false, "does not have it any more"],
    [418, false, "HTTP 418"],
    [429, true, "could not deliver it (HTTP 429)"],
    [503, true, "could not deliver it (HTTP 503)"],
  ])("HTTP %i, later worth another try: %s", async (status, retryable, words) => {
    const error = await problem((_request, response) => response.writeHead(status).end());
    expect([error.message, error.retryable ?? false]).toEqual([expect.stringContaining(words), retryable]);
  });

  test("a connection that breaks in the middle is worth another try", async () => {
    const error = await problem((_request, response) => {
      response.writeHead(200, { "content-length": "1000" });
      response.write("half", () => response.destroy());
    });
    expect(error).toMatchObject({ retryable: true, message: expect.stringContaining("connection to Slack broke") as string });
  });

  test("nobody there", async () => {
    const url = await serve((_request, response) => response.end());
    const [server] = servers.splice(0);
    await new Promise((resolve) => server?.close(resolve));
    await expect(slackFiles(slackClient("xoxb-1", `${url}/api/`))(one(`${url}/x`), path)).rejects.toMatchObject({ retryable: true });
  });

  test("too large as announced by the event, by the answer, or only in fact", async () => {
    const most = 1024 * 1024;
    let asked = 0;
    const count: RequestListener = (_request, response) => {
      asked += 1;
      response.end();
    };
    expect((await problem(count, { size: most + 1 }, most)).message).toMatch(/^it is larger than 1 MB \(2 MB\); .*netcheck diagnose/);
    expect(asked).toBe(0);
    const announced: RequestListener = (_request, response) => response.writeHead(200, { "content-length": String(most + 1) }).end(Buffer.alloc(most + 1));
    expect((await problem(announced, {}, most)).message).toContain("larger than 1 MB (2 MB)");
    const silent: RequestListener = (_request, response) => {
      for (let part = 0; part < 20; part += 1) response.write(Buffer.alloc(64 * 1024));
      response.end();
    };
    const error = await problem(silent, {}, most);
    expect(error.message).toContain("larger than 1 MB");
    expect(error.retryable).toBeUndefined();
  });
});
