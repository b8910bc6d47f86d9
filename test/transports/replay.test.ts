import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Capture } from "../../functions/facts/capture.ts";
import { writeCaptureDirectory } from "../../functions/transports/capture-files.ts";
import { replayTransport } from "../../functions/transports/replay.ts";
import { scripts } from "../../functions/transports/script.ts";
import type { FixPlan, FixRun, Job, Script, Target, Transport } from "../../functions/triage/ports.ts";
import { jobContract } from "./contract.ts";

const nonce = "0123456789abcdef0123456789abcdef";
const node = (name: string, cluster = "demo"): Target => ({ name, cluster, transport: "replay", address: name });
const [node1, node2] = [node("node1"), node("node2")];

const collection = scripts.collect({ runbook: "netcheck", commands: [], timeoutSeconds: 1, maxBytes: 1, intervalSeconds: 0, budgetSeconds: 1 });
const plan = (name: string): FixPlan => ({ name, parameters: {}, check: "true", steps: [{ run: ["true"] }] });
const fix = scripts.fix(plan("fix-something"));
const rollback = scripts.fix(plan("rollback-something"));
const job = (id: string, script: Script, parameters: Record<string, string> = {}): Job => ({ id, script, parameters, nonce });

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "netcheck-replay-"));
  for (const [name, text] of [
    ["before", "broken\n"],
    ["after", "well\n"],
    ["other", "other\n"],
  ] as const) {
    const output = {
      command: "probe",
      argv: undefined,
      file: "outputs/probe.txt",
      text,
      exitCode: 0,
      durationMs: 1,
      startMs: 0,
      stderr: "",
      truncated: false,
      sample: 1,
    };
    const capture: Capture = {
      target: "recorded",
      transport: "local",
      runbook: "netcheck",
      startedAt: undefined,
      redacted: 0,
      notCollected: [],
      outputs: [output],
    };
    writeCaptureDirectory(capture, join(directory, name));
  }
});
afterEach(() => rmSync(directory, { recursive: true }));

/** A transport as a newly started netcheck has it; what it keeps is in one folder. */
function replay(): Transport {
  return replayTransport({
    directory: join(directory, "kept"),
    captures: ({ name }) => {
      if (name === "node1" || name === "c" || name === "b-c") return { before: join(directory, "before"), after: join(directory, "after") };
      return name === "node2" ? { before: join(directory, "other") } : undefined;
    },
  });
}

let count = 0;
/** What a collection brings back now. */
async function probe(target: Target, transport = replay()): Promise<string | undefined> {
  count += 1;
  const state = await transport.poll(target, await transport.start(target, job(`probe-${count}`, collection)), 0);
  return state.state === "done" ? state.capture?.outputs[0]?.text : state.state;
}

async function outcome(target: Target, what: Job, transport = replay()): Promise<FixRun> {
  const state = await transport.poll(target, await transport.start(target, what), 0);
  if (state.state !== "done") throw new Error(state.state);
  return scripts.readFix(state.stdout, nonce);
}

async function status(run: string): Promise<string> {
  count += 1;
  const transport = replay();
  const state = await transport.poll(node1, await transport.start(node1, job(`status-${count}`, scripts.fixStatus, { run })), 0);
  if (state.state !== "done") throw new Error(state.state);
  return scripts.readFixStatus(state.stdout, nonce);
}

describe("replay", () => {
  test("plays the capture of the target, under its name", async () => {
    const transport = replay();
    expect(transport.name).toBe("replay");
    const handle = await transport.start(node1, job("job-1", collection));
    const state = await transport.poll(node1, handle, 0);
    expect(state).toMatchObject({ state: "done", exitCode: 0, truncated: false, capture: { target: "node1", transport: "replay" } });
    expect(await transport.poll(node1, handle, 0)).toEqual(state);
    expect(await probe(node2)).toBe("other\n");
  });

  test("a target without a capture: the job surely did not start", async () => {
    const transport = replay();
    await expect(transport.start(node("nowhere"), job("job-1", collection))).rejects.toMatchObject({
      name: "TransportError",
      retryable: false,
      message: "replay: could not start job-1: there is no capture of nowhere",
    });
    expect(await transport.find(node("nowhere"), "job-1")).toBeUndefined();
    expect(readdirSync(join(directory, "kept"))).toEqual([]);
  });

  test("finds a job after a restart, and no other", async () => {
    const handle = await replay().start(node1, job("job-1", collection));
    const restarted = replay();
    expect(await restarted.find(node1, "job-1")).toBe(handle);
    expect(await restarted.find(node1, "job")).toBeUndefined();
    expect(await restarted.find(node1, "../before/capture.json")).toBeUndefined();
    expect(await restarted.poll(node1, handle, 0)).toMatchObject({ state: "done", capture: { target: "node1" } });
    for (const unknown of ["job-2", "../before/capture.json", ""])
      await expect(restarted.poll(node1, unknown, 0)).rejects.toMatchObject({ name: "TransportError", retryable: false });
  });

  test("a fix changes what is played, for this target alone, and a restart keeps it", async () => {
    expect(await probe(node1)).toBe("broken\n");
    expect(await outcome(node1, job("fix-1", fix))).toEqual({
      outcome: "succeeded",
      repeated: false,
      steps: [{ command: "(replayed) fix-something", exitCode: 0, output: "" }],
    });
    expect(await probe(node1)).toBe("well\n");
    expect(await probe(node2)).toBe("other\n");
    expect(await probe(node("b-c", "a"))).toBe("broken\n");
  });

  test("a fix is run when it is started, asked for or not", async () => {
    await replay().start(node1, job("fix-1", fix));
    expect(await probe(node1)).toBe("well\n");
    expect(await status("fix-1")).toBe("succeeded");
  });

  test("the same job is not started twice; asked again it says the same", async () => {
    const transport = replay();
    const handle = await transport.start(node1, job("fix-1", fix));
    const first = await transport.poll(node1, handle, 0);
    await expect(replay().start(node1, job("fix-1", fix))).rejects.toThrow("replay: could not start fix-1: a job of that name exists");
    expect(await replay().poll(node1, handle, 0)).toEqual(first);
  });

  test("a second job finds nothing to fix any more", async () => {
    expect(await outcome(node1, job("fix-1", fix))).toMatchObject({ outcome: "succeeded" });
    expect(await outcome(node1, job("fix-2", fix))).toMatchObject({ outcome: "refused", steps: [{ exitCode: 1 }] });
    expect(await probe(node1)).toBe("well\n");
    expect([await status("fix-1"), await status("fix-2"), await status("fix-3")]).toEqual(["succeeded", "refused", "none"]);
  });

  test("a target without a capture of its repaired state refuses", async () => {
    expect(await outcome(node2, job("fix-1", fix))).toMatchObject({ outcome: "refused" });
    expect(await probe(node2)).toBe("other\n");
  });

  test("asking for the status of a fix is not a fix", async () => {
    expect(await status("fix-1")).toBe("none");
    expect(await probe(node1)).toBe("broken\n");
  });

  test("a rollback brings the fault back, and there must be something to roll back", async () => {
    expect(await outcome(node1, job("back-1", rollback))).toMatchObject({ outcome: "refused" });
    expect(await probe(node1)).toBe("broken\n");
    await outcome(node1, job("fix-1", fix));
    expect(await outcome(node1, job("back-2", rollback))).toMatchObject({ outcome: "succeeded" });
    expect(await probe(node1)).toBe("broken\n");
    expect(await outcome(node1, job("fix-2", fix))).toMatchObject({ outcome: "succeeded" });
    expect(await probe(node1)).toBe("well\n");
  });

  test("targets of different clusters are not mixed up", async () => {
    await outcome(node("c", "a-b"), job("fix-1", fix));
    expect(await probe(node("c", "a-b"))).toBe("well\n");
    expect(await probe(node("b-c", "a"))).toBe("broken\n");
    await outcome(node("node1", "../x/"), job("fix-2", fix));
    expect(await probe(node("node1", "../x/"))).toBe("well\n");
    expect(await probe(node1)).toBe("broken\n");
  });
});

jobContract("replay", async () => {
  const folder = mkdtempSync(join(tmpdir(), "netcheck-replay-"));
  const output = { argv: undefined, durationMs: 1, startMs: 0, stderr: "", truncated: false, sample: 1 };
  writeCaptureDirectory(
    {
      target: "recorded",
      transport: "local",
      runbook: "contract",
      startedAt: undefined,
      redacted: 0,
      notCollected: [],
      outputs: [
        { ...output, command: "uname -s", file: "outputs/uname.txt", text: "Linux\n", exitCode: 0 },
        { ...output, command: "no-such-tool", file: "outputs/no-such-tool.txt", text: "", exitCode: 127 },
      ],
    },
    join(folder, "capture"),
  );
  return {
    transport: () =>
      replayTransport({ directory: join(folder, "kept"), captures: ({ name }) => (name === "nowhere" ? undefined : { before: join(folder, "capture") }) }),
    target: node("here"),
    nowhere: node("nowhere"),
    register: () => {},
    close: async () => rmSync(folder, { recursive: true }),
  };
});

test("a collection that is released is forgotten; what a fix came to is not", async () => {
  const transport = replay();
  for (const [id, script] of [
    ["inc-1-collect", collection],
    ["inc-1-fix", fix],
  ] as const) {
    const handle = await transport.start(node1, job(id, script));
    await transport.poll(node1, handle, 0);
    await transport.release?.(node1, handle);
    await transport.release?.(node1, handle);
  }
  expect(await transport.find(node1, "inc-1-collect")).toBeUndefined();
  expect(await transport.find(node1, "inc-1-fix")).toBe("inc-1-fix");
});
