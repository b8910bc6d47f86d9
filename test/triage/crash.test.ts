import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SqliteStore } from "../../functions/store/sqlite.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { root } from "../../infra/bundling.ts";
import { bundleProgram } from "../chaos/bundle.ts";
import { live, remains } from "./crash-flow.ts";
import { holderOf } from "./node-place.ts";

/**
 * "Killing the process at any moment and starting it again continues. A fix that may have run is never run again."
 *
 * What `kill -9` leaves behind is what is in the files at that moment. So one life is watched, and at every point its files are copied (where they
 * changed since the point before); then a second life begins on each copy. That the copies are what a kill leaves is checked by real kills. Both at a
 * sample of the points and around the run of the fix, or with CRASH_POINTS=all in the environment at each of them (`npm run chaos` kills at each).
 */

let folder: string;
let copies: { point: number; name: string; directory: string }[];
let points: string[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "netcheck-crash-"));
  copies = [];
  points = [];
  const directory = join(folder, "first");
  let before = "";
  await live(directory, (name) => {
    points.push(name);
    const now = fingerprint(directory);
    if (now === before) return;
    before = now;
    const copy = join(folder, `copy-${points.length}`);
    cpSync(directory, copy, { recursive: true, filter: (path) => !path.endsWith("-shm") });
    copies.push({ point: points.length, name, directory: copy });
  });
  await expectTruth(directory);
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The files of a life as they are now. SQLite's shared memory is no part of it: it is built again from the log. */
function fingerprint(directory: string): string {
  const hash = createHash("sha1");
  for (const file of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (file.isFile() && !file.name.endsWith("-shm")) hash.update(file.name).update(readFileSync(join(file.parentPath, file.name)));
  }
  return hash.digest("hex");
}

/** What must hold on a folder after the last life, wherever the one before it was cut off. Returns how often the fix ran. */
async function expectTruth(directory: string): Promise<number> {
  const { node, slack } = remains(directory);
  const store = new SqliteStore(join(directory, "store.sqlite"));
  try {
    const runs = node.fixRuns.length;
    expect(runs, "the fix ran at most once").toBeLessThanOrEqual(1);
    const state = (await store.proposal("inc-1-fix"))?.state;
    const incident = await store.incident("inc-1");
    // resolved if and only if the fix ran: then the second collection saw the cure
    expect([incident?.state, state]).toEqual(runs === 1 ? ["resolved", "succeeded"] : ["unresolved", "unknown"]);
    const keys = slack.keys;
    expect([...new Set(keys)], "nothing was posted twice").toEqual(keys);
    const told = ["inc-1/root", "inc-1/diagnosis", "netcheck-node2-inc-1.png", "netcheck-node2-inc-1.md", "inc-1-fix/proposal", "inc-1/outcome"];
    expect(keys).toEqual(runs === 1 ? told : [...told, "inc-1/by-hand"]);
    const types = (await store.audit("inc-1")).map((event) => event.type);
    for (const once of ["incident-opened", "diagnosed", "fix-proposed", "approved", "fix-started", "fix-finished", "verified"])
      expect(
        types.filter((type) => type === once),
        once,
      ).toHaveLength(1);
    expect(await verifyStore(store)).toEqual([]);
    expect(await holderOf(store, "lab/node2"), "the node is free for others").toBeUndefined();
    return runs;
  } finally {
    store.close();
  }
}

test("every kind of point is on the way", () => {
  expect(points.length).toBeGreaterThan(200);
  const names = new Set(points);
  for (const name of ["before checkpoint", "after checkpoint", "node took inc-1-fix", "node ran the fix", "before store.transition", "before work.answer"])
    expect(names).toContain(name);
});

test("cut off at any point, the next life goes on to the truth", async () => {
  const notRun: string[] = [];
  const run = copies.findIndex(({ name }) => name === "node took inc-1-fix");
  const wanted = copies.filter((_, at) => process.env["CRASH_POINTS"] === "all" || at % 6 === 0 || Math.abs(at - run) <= 6);
  for (const { point, name, directory } of wanted) {
    const label = `point ${point}, ${name}`;
    const { triage, click } = await live(directory, () => undefined);
    expect([triage?.status, click?.status], label).toEqual(["SUCCEEDED", "SUCCEEDED"]);
    const runs = await expectTruth(directory).catch((cause: unknown) => {
      throw new Error(`${label}: ${(cause as Error).message}`, { cause });
    });
    if (runs === 0) notRun.push(name);
    rmSync(directory, { recursive: true });
  }
  // the start of the fix was on record and the node had not run it: these moments alone leave the question open
  expect(notRun).toEqual(["after checkpoint", "node took inc-1-fix"]);
}, 120_000);

describe("cut off twice", () => {
  // the second life dies as well, at a point of its own, and the third must get there
  test.each([1, 2, 3, 4, 5, 6, 7, 8])("%d", async (n) => {
    const directory = join(folder, `twice-${n}`);
    const first = Math.floor((points.length * n) / 9);
    await dieAt(directory, first);
    await dieAt(directory, 20 * n);
    await live(directory, () => undefined);
    await expectTruth(directory);
  });
});

/** A life in this process that ends as by a kill: the files are taken away from under it. */
async function dieAt(directory: string, n: number): Promise<void> {
  let count = 0;
  const copy = `${directory}.copy`;
  await live(directory, () => {
    count += 1;
    if (count === n) cpSync(directory, copy, { recursive: true, filter: (path) => !path.endsWith("-shm") });
  });
  if (count < n) return;
  rmSync(directory, { recursive: true });
  cpSync(copy, directory, { recursive: true });
  rmSync(copy, { recursive: true });
}

describe("real kills", () => {
  const built = `crash-${process.pid}`;
  let program: string;
  beforeAll(async () => {
    program = await bundleProgram("test/triage/crash-child.ts", built);
  });
  afterAll(() => rmSync(join(root, "dist", built), { recursive: true, force: true }));

  /** One life in a process of its own; what it died of, or what it printed. */
  async function child(directory: string, n: number): Promise<{ signal: string | null; code: number | null; stdout: string; stderr: string }> {
    const run = spawn(process.execPath, [program, directory, String(n)], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, NODE_COMPILE_CACHE: join(folder, "compiled") },
    });
    let stdout = "";
    let stderr = "";
    run.stdout.on("data", (data: Buffer) => (stdout += data.toString()));
    run.stderr.on("data", (data: Buffer) => (stderr += data.toString()));
    return new Promise((resolve, reject) => {
      run.once("error", reject).once("close", (code, signal) => resolve({ signal, code, stdout, stderr }));
    });
  }

  test("SIGKILL, and a new process gets there", async () => {
    const all = points.map((_, index) => index + 1);
    const fix = points.indexOf("node took inc-1-fix") + 1;
    const sample = [fix - 1, fix, fix + 1, ...all.filter((n) => n % Math.ceil(all.length / 6) === 5)];
    const wanted = process.env["CRASH_POINTS"] === "all" ? all : sample;
    const next = wanted[Symbol.iterator]();
    const worker = async (): Promise<void> => {
      for (const n of next) {
        const directory = join(folder, `killed-${n}`);
        const label = `point ${n}, ${points[n - 1]}`;
        expect(await child(directory, n), label).toMatchObject({ signal: "SIGKILL" });
        const second = await child(directory, 0);
        expect(second, label).toMatchObject({ code: 0, stdout: JSON.stringify({ triage: "SUCCEEDED", click: "SUCCEEDED" }) });
        await expectTruth(directory).catch((cause: unknown) => {
          throw new Error(`${label}: ${(cause as Error).message}`, { cause });
        });
        rmSync(directory, { recursive: true });
      }
    };
    await Promise.all([worker(), worker()]);
  }, 1_800_000);
});
