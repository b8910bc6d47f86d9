import { afterEach, beforeEach, expect, test } from "vitest";
import { auditArchive, type StreamEvent } from "../../functions/aws/audit-archive.ts";
import { archiveKey } from "../../functions/store/archive-layout.ts";
import { canonical, chain, verifyChain } from "../../functions/triage/audit.ts";
import type { AuditEvent } from "../../functions/triage/ports.ts";
import { type S3Emulator, startS3 } from "../emulators/s3.ts";
import { draft } from "../store/drafts.ts";

let s3: S3Emulator;
beforeEach(async () => {
  s3 = await startS3();
  Object.assign(process.env, { AWS_ENDPOINT_URL_S3: s3.url, AWS_REGION: "eu-central-1", AWS_ACCESS_KEY_ID: "AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY: "secret" });
});
afterEach(async () => s3.close());

function events(count: number): AuditEvent[] {
  const made: AuditEvent[] = [];
  for (let n = 0; n < count; n++) made.push(chain("inc-1", draft(`k${n}`), made.at(-1), made.at(-1)));
  return made;
}

/** As the stream delivers what the store writes for an event: the event, its copy in global order, its key, the head of its chain. */
function records(event: AuditEvent): StreamEvent["Records"] {
  const number = String(event.sequence).padStart(12, "0");
  const image = (pk: string, sk: string, json?: string) => ({ pk: { S: pk }, sk: { S: sk }, ...(json === undefined ? {} : { json: { S: json } }) });
  return [
    image(`I#${event.incident}`, `A#${number}`, canonical(event)),
    image("G#000000000", `A#${number}`, canonical(event)),
    image(`I#${event.incident}`, `K#${event.key}`),
    image(`I#${event.incident}`, "head", canonical(event)),
  ].map((NewImage, n) => ({ eventName: n === 3 ? "MODIFY" : "INSERT", dynamodb: { SequenceNumber: `${event.sequence}-${n}`, NewImage } }));
}

const kept = () => s3.keys("archive").map((key) => JSON.parse(s3.get("archive", key)?.toString("utf8") ?? "") as AuditEvent);

test("each event is one object, in order, and what is there is whole", async () => {
  const all = events(12);
  const archive = auditArchive({ bucket: "archive", log: () => undefined });
  expect(await archive({ Records: all.slice(0, 5).flatMap(records) })).toEqual({ batchItemFailures: [] });
  // delivered again, with more behind it
  expect(await archive({ Records: all.slice(3).flatMap(records) })).toEqual({ batchItemFailures: [] });
  expect(kept()).toEqual(all);
  expect(verifyChain(kept(), "global")).toEqual([]);
});

test("an object that is there is not written again, whatever is delivered under its name", async () => {
  const [event] = events(1) as [AuditEvent];
  const archive = auditArchive({ bucket: "archive", log: () => undefined });
  await archive({ Records: records(event) });
  await archive({ Records: records({ ...event, data: { forged: true } }) });
  expect(kept()).toEqual([event]);
});

test("where the archive cannot be written, the stream is asked for the same again, from there on", async () => {
  const all = events(3);
  await s3.close();
  const log: string[] = [];
  const archive = auditArchive({ bucket: "archive", log: (level, message) => log.push(`${level}: ${message}`) });
  expect(await archive({ Records: all.flatMap(records) })).toEqual({ batchItemFailures: [{ itemIdentifier: "1-0" }] });
  expect(log).toEqual(["error: an audit event could not be archived; the stream delivers it again"]);
  expect(archiveKey(all[2] as AuditEvent)).toBe("audit/2026-01-01/000000000003-inc-1-3.json");
  s3 = await startS3();
});
