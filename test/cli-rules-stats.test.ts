import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { ruleStats } from "../functions/cli/rules-stats.ts";
import { archiveKey } from "../functions/store/archive-layout.ts";
import { SqliteStore } from "../functions/store/sqlite.ts";
import type { AuditEvent } from "../functions/triage/ports.ts";
import { runCli } from "./run-cli.ts";

/** `netcheck rules stats`: the same numbers from local mode's data, from an export of it, and from an archive. */

const scratch = mkdtempSync(join(tmpdir(), "netcheck-stats-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const AT = "2026-11-21T08:00:00.000Z";
/** Four people on two incidents; one changes their mind. */
const VOTES = [
  ["inc-1", "U_A", "nic-drops", "right"],
  ["inc-1", "U_B", "nic-drops", "wrong"],
  ["inc-1", "U_B", "nic-drops", "right"],
  ["inc-2", "U_A", "nic-drops", "wrong"],
  ["inc-2", "U_C", "arp-flux", "right"],
] as const;
const EXPECTED = [
  { rule: "nic-drops", right: 2, votes: 3 },
  { rule: "arp-flux", right: 1, votes: 1 },
];

async function directory(votes: readonly (readonly [string, string, string, string])[]): Promise<{ folder: string; events: readonly AuditEvent[] }> {
  const folder = mkdtempSync(join(scratch, "store-"));
  const store = new SqliteStore(join(folder, "store.sqlite"));
  await store.record("inc-1", [{ key: "incident-opened", at: AT, actor: { id: "U_A", team: "T" }, type: "incident-opened", data: {} }]);
  for (const [at, [incident, user, rule, vote]] of votes.entries())
    await store.record(incident, [{ key: `feedback/${at}`, at: AT, actor: { id: user, team: "T" }, type: "feedback", data: { rule, vote } }]);
  const events = await store.audit();
  store.close();
  return { folder, events };
}

test("local mode's data, as a table and as JSON", async () => {
  const { folder } = await directory(VOTES);
  const plain = await runCli(["rules", "stats", folder], scratch);
  expect([
    plain.code,
    plain.stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.replaceAll(/\s+/g, " ")),
  ]).toEqual([0, ["nic-drops right 2 of 3 67 %", "arp-flux right 1 of 1 100 %"]]);
  const json = await runCli(["rules", "stats", folder, "--json"], scratch);
  expect(JSON.parse(json.stdout)).toEqual(EXPECTED);
}, 60_000);

test("nobody voted: said so; no trail: an error with what to do", async () => {
  const { folder } = await directory([]);
  expect((await runCli(["rules", "stats", folder], scratch)).stdout).toContain("nobody has voted yet");
  const none = await runCli(["rules", "stats", join(scratch, "none")], scratch);
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining("there is no such file or folder. Name local mode's data")]);
  mkdirSync(join(scratch, "empty"));
  await expect(ruleStats(join(scratch, "empty"))).rejects.toThrow("there is no audit trail");
  for (const text of ["", "Dear colleagues,\n", '{"type":"feedback"}\n']) {
    writeFileSync(join(scratch, "letter.txt"), text);
    await expect(ruleStats(join(scratch, "letter.txt")), text).rejects.toThrow(/letter\.txt: it is no file of netcheck audit export/);
  }
}, 60_000);

describe("other forms of the same trail", () => {
  test("an export, also with lines that are none of ours", async () => {
    const { events } = await directory(VOTES);
    const file = join(scratch, "export.jsonl");
    writeFileSync(
      file,
      [...events.map((event) => JSON.stringify(event)), '{"type":"feedback"', "null", '{"type":"feedback","data":{"rule":1,"vote":"right"}}'].join("\n"),
    );
    expect(await ruleStats(file)).toEqual(EXPECTED);
  });

  test("an archive that was downloaded into a folder", async () => {
    const { events } = await directory(VOTES);
    const folder = join(scratch, "archive");
    for (const event of events) {
      const path = join(folder, archiveKey(event));
      mkdirSync(join(path, ".."), { recursive: true });
      writeFileSync(path, JSON.stringify(event));
    }
    expect(await ruleStats(folder)).toEqual(EXPECTED);
  });
});
