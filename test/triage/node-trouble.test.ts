import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { scripts } from "../../functions/transports/script.ts";
import { keepAnswer } from "../../functions/triage/keep.ts";
import type { JobState, Plan, Store } from "../../functions/triage/ports.ts";
import { Bench } from "./harness.ts";
import { printed } from "./scripted-node.ts";

/** Nodes that cannot do what a collection asks of them: what people are told, and that nothing stays behind. */

type Done = Extract<JobState, { state: "done" }>;
const nonce = "0123456789abcdef0123456789abcdef";
const plan: Plan = {
  runbook: "trouble",
  commands: [{ argv: ["uname", "-s"] }, { argv: ["head", "-c", "300000", "/dev/urandom"] }, { argv: ["echo", "last"] }],
  timeoutSeconds: 5,
  maxBytes: 1 << 20,
  intervalSeconds: 1,
  budgetSeconds: 20,
};
const about = { nonce, plan, target: "node1", transport: "ssm", startedAt: "" };
const root = process.getuid?.() === 0 && spawnSync("unshare", ["-m", "true"]).status === 0;

describe("what a node says, in words", () => {
  const cases: readonly [what: string, state: Partial<Done>, reason: string][] = [
    ["nothing at all", { exitCode: 1 }, "the node sent no result frame (nothing at all) (exit code 1)"],
    ["a missing tool", { exitCode: 69, stderr: "netcheck: this node has no sed\n" }, "this node has no sed (exit code 69)"],
    [
      "a full disk, before the script",
      { exitCode: 1, stderr: "mkdir /var/lib/amazon/ssm/i-1/document: no space left on device" },
      "the node's disk is full: free some space below /tmp and /var; stderr: mkdir /var/lib/amazon/ssm/i-1/document: no space left on device (exit code 1)",
    ],
    [
      "a read-only root",
      { exitCode: 70, stderr: "mktemp: failed to create directory via template '/tmp/x': Read-only file system" },
      "/tmp is read-only. Give it a tmpfs on /tmp",
    ],
    ["a quota", { exitCode: 2, stderr: "sh: write error: Disk quota exceeded" }, "the node's disk quota is used up"],
    [
      "noexec, SELinux",
      { exitCode: 126, stderr: "sh: 1: /var/lib/amazon/ssm/_script.sh: Permission denied" },
      "mounted noexec, or SELinux or AppArmor denies it",
    ],
    ["a memory limit", { exitCode: 137, stderr: "" }, "a memory limit (cgroup) was reached (exit code 137)"],
    ["no processes left", { exitCode: 2, stderr: "sh: 0: Cannot fork: Cannot allocate memory" }, "no memory or no processes left"],
    ["no shell", { exitCode: 127, stderr: 'sh: not found: exec: "sh"' }, "the node lacks what runs the script (sh)"],
  ];
  test.each(cases)("%s", async (_what, state, reason) => {
    const store: Pick<Store, "put"> = { put: () => Promise.reject(new Error("nothing is to be kept")) };
    const kept = await keepAnswer({ scripts, store: store as Store }, "captures/x", { ...printed(""), ...state }, about);
    expect(kept).toEqual({ collected: { ok: false, reason: expect.stringContaining(reason) } });
  });

  test("is told in the thread as inconclusive, with an audit event; no fix is proposed", async () => {
    const bench = new Bench();
    bench.node.state = () => ({ ...printed(""), exitCode: 70, stderr: "mktemp: cannot create: No space left on device\n" });
    await bench.ask();
    expect(bench.outcome()).toBe("not-collected");
    expect(bench.chat.drawn("inc-1/not-collected")).toMatch(/Inconclusive: netcheck could not look at node2: the node's disk is full: free some space/);
    expect((await bench.events("collect-failed"))[0]?.data["reason"]).toContain("the node's disk is full");
    expect([...bench.chat.posts.keys()]).not.toContain("inc-1-fix/proposal");
    await bench.close();
  });
});

describe.skipIf(!root)(`the real script on a real file system${root ? "" : " (skipped: needs root for a mount namespace)"}`, () => {
  let folder: string;
  let kept: Map<string, Uint8Array>;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "netcheck-trouble-"));
    kept = new Map();
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Runs the script in a mount namespace of its own that `setup` prepares; what is left in its folders afterwards is printed last on stderr. */
  function run(setup: string, environment: Record<string, string> = { TMPDIR: folder }): { state: Done; left: string } {
    const script = `mount --make-rprivate /\n${setup}\nsh -s; code=$?\necho "left: $(ls -A ${folder} /run /dev/shm | grep netcheck[.])" >&2\nexit $code`;
    const ran = spawnSync("unshare", ["-m", "sh", "-c", script], {
      input: scripts.collect(plan).text,
      env: { PATH: process.env["PATH"] ?? "", NETCHECK_nonce: nonce, NETCHECK_job: "job-1", ...environment },
      encoding: "latin1",
    });
    const [stderr = "", left = ""] = ran.stderr.split("left: ");
    return { state: { ...printed(ran.stdout), exitCode: ran.status ?? -1, stderr }, left: left.trim() };
  }
  const keep = async (state: Done) => {
    const store = { put: async (key: string, data: Uint8Array) => void kept.set(key, data) };
    return (await keepAnswer({ scripts, store: store as unknown as Store }, "captures/x", state, about)).collected;
  };

  test.each([
    ["full", (at: string) => `mount -t tmpfs -o size=64k tmpfs ${at}; head -c 200000 /dev/zero >${at}/fill 2>/dev/null`, "the node's disk is full"],
    ["without inodes", (at: string) => `mount -t tmpfs -o nr_inodes=1 tmpfs ${at}`, "the node's disk is full"],
    ["read-only", (at: string) => `mount -t tmpfs tmpfs ${at}; mount -o remount,ro ${at}`, "/tmp is read-only"],
  ])("a temporary folder that is %s: said so, nothing is left", async (_what, setup, words) => {
    const { state, left } = run(setup(folder));
    expect(await keep(state)).toEqual({ ok: false, reason: expect.stringContaining(words) });
    expect([left, kept.size]).toEqual(["", 0]);
  });

  test("a disk that gets full in the middle: what did not fit is marked, the rest is there", async () => {
    const { state, left } = run(`mount -t tmpfs -o size=200k tmpfs ${folder}`);
    const capture = scripts.readCapture(state.stdout, { ...about, truncated: false });
    expect(capture.outputs.map(({ truncated, text }) => [truncated, text === ""])).toEqual([
      [false, false],
      [true, true],
      [false, false],
    ]);
    expect(left).toBe("");
  });

  test.each([
    ["full", (at: string) => `mount -t tmpfs -o size=64k tmpfs ${at}; head -c 200000 /dev/zero >${at}/fill 2>/dev/null`],
    ["read-only", (at: string) => `mount -t tmpfs tmpfs ${at}; mount -o remount,ro ${at}`],
  ])("/tmp is %s: the collection is held in memory instead, and is whole", async (_what, setup) => {
    mkdirSync(join(folder, "spare"));
    const { state, left } = run(`mount -t tmpfs tmpfs /run\n${setup("/tmp")}`, {});
    expect(await keep(state)).toMatchObject({ ok: true, outputs: 3 });
    expect(left).toBe("");
  });

  test("nothing of it stays on this machine", () => {
    run(`mount -t tmpfs tmpfs ${folder}`);
    expect(readdirSync(folder)).toEqual([]);
  });
});
