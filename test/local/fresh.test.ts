import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { assemble } from "../../functions/local/assembly.ts";
import { EngineLockedError } from "../../functions/local/engine.ts";

/** `netcheck start --fresh` forgets earlier runs, and nothing else. */

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "netcheck-fresh-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const incident = {
  id: "inc-1",
  target: "node1",
  cluster: "demo",
  requester: { id: "U_ALICE", team: "T_LOCAL" },
  createdAt: "2026-11-22T12:00:00.000Z",
  state: "collecting",
} as const;
const opened = { key: "incident-opened", type: "incident-opened", at: incident.createdAt, actor: incident.requester, data: {} };

test("what local mode kept goes; what else lies in the folder that somebody named stays", async () => {
  const first = await assemble({ directory });
  await first.store.open(incident, opened);
  await first.close();
  mkdirSync(join(directory, "once-4711"));
  mkdirSync(join(directory, "notes"));
  writeFileSync(join(directory, "notes/mine.txt"), "mine");
  writeFileSync(join(directory, "store.sqlite.bak"), "mine");
  const again = await assemble({ directory, fresh: true });
  expect(await again.store.incidents(1)).toEqual([]);
  await again.close();
  expect(existsSync(join(directory, "notes/mine.txt"))).toBe(true);
  expect(readdirSync(directory)).toContain("store.sqlite.bak");
  expect(readdirSync(directory)).not.toContain("once-4711");
});

test("nothing is taken from a netcheck that runs there", async () => {
  const running = await assemble({ directory });
  await running.store.open(incident, opened);
  await expect(assemble({ directory, fresh: true })).rejects.toThrow(EngineLockedError);
  expect(await running.store.incidents(1)).toMatchObject([{ id: "inc-1" }]);
  await running.close();
});

test("a file that is no data base of ours is forgotten, too; a folder that is not there is made", async () => {
  writeFileSync(join(directory, "engine.sqlite"), "this is no data base, and it is longer than a header of one would be: so SQLite says that it is none");
  await (await assemble({ directory, fresh: true })).close();
  await (await assemble({ directory: join(directory, "new"), fresh: true })).close();
  expect(existsSync(join(directory, "new/engine.sqlite"))).toBe(true);
});
