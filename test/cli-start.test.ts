import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, inject, test, vi } from "vitest";
import { start } from "../functions/cli/start.ts";
import { EngineLockedError } from "../functions/local/engine.ts";
import type { startLocal } from "../functions/local/main.ts";
import { SocketModeError } from "../functions/local/socket-mode.ts";

/** What `netcheck start` says and leaves behind where it cannot start. */

const serve = vi.fn<typeof startLocal>();
let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "netcheck-start-"));
  serve.mockImplementation((options) => {
    mkdirSync(options.directory, { recursive: true });
    writeFileSync(join(options.directory, "store.sqlite"), "");
    return Promise.reject(Object.assign(new Error("listen EADDRINUSE"), { code: "EADDRINUSE" }));
  });
});
afterEach(() => rmSync(directory, { recursive: true }));

test("--once takes any free port: where there is none, no port is blamed, and nothing is left behind", async () => {
  await expect(start({ once: "/netcheck node1", port: 3000, directory }, serve)).rejects.toThrow(/^this machine has no free local port/);
  expect(readdirSync(directory)).toEqual([]);
});

test.each(["stdout", "stderr"] as const)(
  "--once, and nobody reads its %s (any more: | head): it ends well, and nothing is left behind",
  async (stream) => {
    const child = spawn(process.execPath, [inject("cli"), "start", "--once", "/netcheck node2", "--directory", directory], { stdio: "pipe" });
    child[stream].destroy();
    child.stdout.resume();
    child.stderr.resume();
    const [code] = (await once(child, "close")) as [number];
    expect([code, readdirSync(directory)]).toEqual([0, []]);
  },
  60_000,
);

test("--once, and somebody stops it: nothing is left behind", async () => {
  const child = spawn(process.execPath, [inject("cli"), "start", "--once", "/netcheck nodes all confirm=45", "--directory", directory], { stdio: "ignore" });
  await vi.waitFor(() => expect(readdirSync(directory)).toHaveLength(1), { timeout: 30_000 });
  child.kill("SIGINT");
  expect(await once(child, "close")).toEqual([130, null]);
  expect(readdirSync(directory)).toEqual([]);
}, 60_000);

test.each(["", "hello", "node1", "/other node1"])("--once %j: what it takes is said, and nothing is started", async (once) => {
  serve.mockClear();
  await expect(start({ once, port: 3000, directory }, serve)).rejects.toThrow('--once takes a command as it is typed in the chat, such as "/netcheck node1"');
  expect(serve).not.toHaveBeenCalled();
});

test.each([
  [{ code: "EEXIST", syscall: "mkdir" }, /^\S+: local mode cannot keep its data there: no way\. Name another --directory$/],
  [{ code: "EACCES", syscall: "mkdir" }, /^\S+: local mode cannot keep its data there: no way\. Name another --directory$/],
  [{ code: "EACCES", syscall: "listen" }, /^port 80 may not be listened on; say --port$/],
])("%j is a sentence that says what to change", async (error, sentence) => {
  serve.mockImplementation(() => Promise.reject(Object.assign(new Error("no way"), error)));
  await expect(start({ port: 80, directory }, serve)).rejects.toMatchObject({ name: "CommandError", message: expect.stringMatching(sentence) as string });
});

test("a port that is taken is named; the data stays", async () => {
  await expect(start({ port: 3000, directory }, serve)).rejects.toThrow("port 3000 is taken; stop what listens there, or say --port");
  expect(existsSync(join(directory, "store.sqlite"))).toBe(true);
});

test.each([
  [new SocketModeError("could not connect to Slack: no connection after 30 s. Does …?"), /^could not connect to Slack: no connection after 30 s/],
  [
    new EngineLockedError("engine: could not open x: another process runs on it"),
    /another process runs on it\. Stop the other netcheck, or name another --directory$/,
  ],
  [Object.assign(new Error("no way"), { code: "ENOTDIR" }), /^\S+: local mode cannot keep its data there: no way\. Name another --directory$/],
])("with a real Slack: %s is a sentence, too", async (error, sentence) => {
  vi.useFakeTimers();
  vi.stubEnv("SLACK_BOT_TOKEN", "xoxb-1");
  vi.stubEnv("SLACK_APP_TOKEN", "xapp-1");
  try {
    await expect(start({ port: 3000, directory }, serve, () => Promise.reject(error))).rejects.toMatchObject({
      name: "CommandError",
      message: expect.stringMatching(sentence) as string,
    });
  } finally {
    vi.unstubAllEnvs();
    vi.useRealTimers();
  }
});
