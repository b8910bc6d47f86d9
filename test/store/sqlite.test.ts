import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SqliteStore } from "../../functions/store/sqlite.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { storeContract } from "./contract.ts";
import { draft, incident, proposal } from "./drafts.ts";

const CHILD = join(import.meta.dirname, "store-child.ts");
const temporary = () => mkdtempSync(join(tmpdir(), "netcheck-store-"));

storeContract("sqlite", async () => {
  const folder = temporary();
  const file = join(folder, "store.db");
  const store = new SqliteStore(file);
  const other = new SqliteStore(file);
  return {
    store,
    other,
    remove: async () => {
      store.close();
      other.close();
      rmSync(folder, { recursive: true });
    },
  };
});

describe("sqlite store and other processes", () => {
  let folder: string;
  let file: string;
  let store: SqliteStore;
  beforeEach(() => {
    folder = temporary();
    file = join(folder, "deep/er/store.db");
    store = new SqliteStore(file);
  });
  afterEach(() => {
    store.close();
    rmSync(folder, { recursive: true });
  });

  test("its file is for its owner alone: captures are in it", () => {
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(`${file}-wal`).mode & 0o777).toBe(0o600);
  });

  test("two processes decide the same proposals in the same moment: each is decided once", async () => {
    await store.open(incident("i1"), draft("incident-opened"));
    for (let n = 0; n < 30; n++) await store.propose(proposal(`p${n}`, "i1"), draft(`fix-proposed/${n}`));
    const children = ["a", "b"].map((name) => spawn(process.execPath, [CHILD, file, "decide", name], { stdio: ["pipe", "pipe", "inherit"] }));
    const outputs = children.map(() => "");
    for (const [i, child] of children.entries()) child.stdout.setEncoding("utf8").on("data", (text: string) => (outputs[i] += text));
    await expect.poll(() => outputs, { timeout: 20_000 }).toEqual(["ready\n", "ready\n"]);
    const ends = children.map((child) => once(child, "close"));
    for (const child of children) child.stdin.write("go\n");
    expect(await Promise.all(ends)).toEqual([
      [0, null],
      [0, null],
    ]);
    const decided = outputs.flatMap((output) => output.trim().split("\n").slice(1));
    expect(decided.sort()).toEqual(Array.from({ length: 30 }, (_, n) => `p${n}`).sort());
    expect((await store.audit("i1")).filter(({ type }) => type === "approved")).toHaveLength(30);
    expect(await verifyStore(store)).toEqual([]);
  });

  test("killed in the middle of a transaction: neither the change nor its events are there", { timeout: 20_000 }, async () => {
    await store.open(incident("i1"), draft("incident-opened"));
    expect(spawnSync(process.execPath, [CHILD, file, "die"]).signal).toBe("SIGKILL");
    expect(await store.incident("i1")).toEqual(incident("i1"));
    expect((await store.audit()).map(({ key }) => key)).toEqual(["incident-opened"]);
    await store.update("i1", { state: "collecting" }, [draft("collecting")]);
    expect(await verifyStore(store)).toEqual([]);
  });

  test("killed at any moment: what was acknowledged is there, and the chain is whole", async () => {
    await store.open(incident("i1"), draft("incident-opened"));
    const journal = join(folder, "journal");
    const child = spawn(process.execPath, [CHILD, file, "write", journal], { stdio: "inherit" });
    const lines = () => (existsSync(journal) ? readFileSync(journal, "utf8").split("\n").slice(0, -1) : []);
    await expect.poll(() => lines().length, { timeout: 20_000, interval: 5 }).toBeGreaterThan(50);
    child.kill("SIGKILL");
    await once(child, "close");
    store.close();
    store = new SqliteStore(file);
    const acknowledged = lines();
    const written = (await store.audit("i1")).filter(({ type }) => type === "written").map(({ key }) => key.split("/")[1]);
    expect(written.slice(0, acknowledged.length)).toEqual(acknowledged);
    // The last one may have been stored without having been acknowledged; the incident agrees with the trail in any case.
    expect(written.length - acknowledged.length).toBeLessThanOrEqual(1);
    expect((await store.incident("i1"))?.problem).toBe(written.at(-1));
    expect(await verifyStore(store)).toEqual([]);
  });

  test("tampering with the file shows; by mistake the trail cannot be changed at all", async () => {
    await store.open(incident("i1"), draft("incident-opened"));
    await store.record("i1", [draft("approved", { by: "U_BOB" }), draft("fixed")]);
    const db = new DatabaseSync(file);
    expect(() => db.exec("UPDATE audit SET json = replace(json, 'U_BOB', 'U_EVE')")).toThrow("append-only");
    expect(() => db.exec("DELETE FROM audit")).toThrow("append-only");
    db.exec("DROP TRIGGER audit_update; DROP TRIGGER audit_delete; UPDATE audit SET json = replace(json, 'U_BOB', 'U_EVE')");
    expect(await verifyStore(store)).toContainEqual(expect.stringContaining("event 2 (approved of i1) was changed"));
    db.exec("UPDATE audit SET json = replace(json, 'U_EVE', 'U_BOB')");
    expect(await verifyStore(store)).toEqual([]);
    db.exec("DELETE FROM audit WHERE global = 3");
    expect(await verifyStore(store)).toContainEqual(expect.stringContaining("event 3 was cut off"));
    db.close();
  });

  test("a file of another version is refused", () => {
    const db = new DatabaseSync(file);
    db.exec("PRAGMA user_version = 7");
    db.close();
    expect(() => new SqliteStore(file)).toThrow("another version (7)");
  });
});
