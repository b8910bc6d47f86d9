import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { archiveKey } from "../../functions/store/archive-layout.ts";
import { SqliteStore } from "../../functions/store/sqlite.ts";
import { canonical } from "../../functions/triage/audit.ts";
import type { AuditEvent } from "../../functions/triage/ports.ts";
import { archivedEvents, archiveMissing, auditDeployment } from "../../infra/audit.ts";
import { type S3Emulator, startS3 } from "../emulators/s3.ts";
import { draft, incident } from "../store/drafts.ts";

let s3: S3Emulator;
let folder: string;
let store: SqliteStore;
beforeEach(async () => {
  s3 = await startS3();
  Object.assign(process.env, { AWS_ENDPOINT_URL_S3: s3.url, AWS_REGION: "eu-central-1", AWS_ACCESS_KEY_ID: "AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY: "secret" });
  folder = mkdtempSync(join(tmpdir(), "netcheck-audit-"));
  store = new SqliteStore(join(folder, "store.sqlite"));
  for (const id of ["inc-1", "inc-2"]) {
    await store.open(incident(id), draft("incident-opened"));
    await store.record(id, [draft("collected"), draft("diagnosed")]);
  }
});
afterEach(async () => {
  store.close();
  rmSync(folder, { recursive: true, force: true });
  await s3.close();
});

const archive = (events: readonly AuditEvent[]): void => {
  for (const event of events) s3.put("archive", archiveKey(event), `${canonical(event)}\n`);
};
const audit = () => auditDeployment(store, archivedEvents("archive"));
/** Changes the table behind the store's back. */
function tamper(sql: string): void {
  const database = new DatabaseSync(join(folder, "store.sqlite"));
  database.exec(sql);
  database.close();
}

describe("the audit of a deployment", () => {
  test("a table that the archive holds completely is whole", async () => {
    archive(await store.audit());
    expect(await audit()).toEqual({ events: 6, archived: 6, problems: [], missing: [] });
  });

  test("what is not archived yet is no problem, and can be archived; what is there is not written again", async () => {
    const all = await store.audit();
    archive(all.slice(0, 4));
    const before = await audit();
    expect([before.problems, before.missing.map(({ globalSequence }) => globalSequence)]).toEqual([[], [5, 6]]);
    await archiveMissing("archive", all);
    expect(await audit()).toMatchObject({ archived: 6, problems: [], missing: [] });
    expect(s3.keys("archive")).toEqual(all.map(archiveKey));
  });

  test("an event that somebody changed in the table is named, even if its chain was", async () => {
    archive(await store.audit());
    const [first] = await store.audit();
    s3.put("archive", archiveKey(first as AuditEvent), canonical({ ...(first as AuditEvent), actor: { id: "U_MALLORY", team: "T" } }));
    expect((await audit()).problems).toEqual(["edited: event 1 (incident-opened of inc-1) is in the table, but not as it was archived: it was changed"]);
  });

  test("an event that somebody removed from the table is named", async () => {
    archive(await store.audit());
    store.close();
    tamper("DROP TRIGGER audit_delete; DELETE FROM audit WHERE incident = 'inc-2' AND sequence = 3");
    store = new SqliteStore(join(folder, "store.sqlite"));
    expect((await audit()).problems.join("\n")).toContain("truncated: event 6 (diagnosed of inc-2) is archived, but not in the table: it was removed");
  });

  test("a table that was rewritten as a whole disagrees with the archive: from which event on is said", async () => {
    archive(await store.audit());
    const rewritten = new SqliteStore(join(folder, "rewritten.sqlite"));
    for (const { incident: of, key, at, actor, type, data, globalSequence } of await store.audit())
      await rewritten.record(of, [{ key, at, actor, type, data: globalSequence === 3 ? { forged: true } : data }]);
    const { problems } = await auditDeployment(rewritten, archivedEvents("archive"));
    rewritten.close();
    expect(problems).toEqual(["forked: table and archive disagree from event 3 (diagnosed of inc-1) on: event 2 is the last that both have"]);
  });

  test("an object that is no event stops the audit with its name", async () => {
    s3.put("archive", "audit/000000000001-x-1.json", "nonsense");
    await expect(audit()).rejects.toThrow(/s3:\/\/archive\/audit\/000000000001-x-1\.json is no audit event/);
  });
});
