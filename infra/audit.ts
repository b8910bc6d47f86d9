import { parseArgs } from "node:util";
import { GetObjectCommand, paginateListObjectsV2, S3Client } from "@aws-sdk/client-s3";
import { auditArchive } from "../functions/aws/audit-archive.ts";
import { archiveKey } from "../functions/store/archive-layout.ts";
import { DynamoDbStore } from "../functions/store/dynamodb.ts";
import { type AuditedStore, verifyStore } from "../functions/store/verify.ts";
import { canonical } from "../functions/triage/audit.ts";
import type { AuditEvent } from "../functions/triage/ports.ts";

/** Objects that are read at the same time. */
const READERS = 16;

export interface AuditResult {
  readonly events: number;
  readonly archived: number;
  /** What is wrong, as sentences. */
  readonly problems: readonly string[];
  /** Events that the archive does not hold (yet), in order. */
  readonly missing: readonly AuditEvent[];
}

/**
 * Holds the audit trail of a deployment against its locked archive: whether the table's chains are whole, and whether each archived event is still in the
 * table as it was archived. Reads both completely.
 */
export async function auditDeployment(store: AuditedStore, archive: AsyncIterable<AuditEvent>): Promise<AuditResult> {
  const problems = await verifyStore(store);
  const table = await store.audit();
  const events = new Map(table.map((event) => [archiveKey(event), event]));
  const byNumber = new Map(table.map((event) => [event.globalSequence, event]));
  const end = table.at(-1)?.globalSequence ?? 0;
  const found = new Set<string>();
  let parted: AuditEvent | undefined;
  for await (const event of archive) {
    found.add(archiveKey(event));
    const kept = byNumber.get(event.globalSequence);
    const name = `event ${event.globalSequence} (${event.type} of ${event.incident})`;
    if (kept === undefined) {
      const kind = event.globalSequence > end ? "truncated" : "removed";
      problems.push(`${kind}: ${name} is archived, but not in the table: it was removed`);
    } else if (kept.hash !== event.hash) {
      if (parted === undefined || event.globalSequence < parted.globalSequence) parted = event;
    } else if (canonical(kept) !== canonical(event)) {
      problems.push(`edited: ${name} is in the table, but not as it was archived: it was changed`);
    }
  }
  if (parted !== undefined) {
    const from = parted.globalSequence;
    problems.push(
      `forked: table and archive disagree from event ${from} (${parted.type} of ${parted.incident}) on: event ${from - 1} is the last that both have`,
    );
  }
  return { events: events.size, archived: found.size, problems, missing: [...events].filter(([key]) => !found.has(key)).map(([, event]) => event) };
}

/** The events in an archive. @throws if an object cannot be read or is no event */
export async function* archivedEvents(bucket: string): AsyncGenerator<AuditEvent> {
  const s3 = new S3Client({});
  const read = async (Key: string): Promise<AuditEvent> => {
    const { Body } = await s3.send(new GetObjectCommand({ Bucket: bucket, Key }));
    try {
      return JSON.parse((await Body?.transformToString()) ?? "") as AuditEvent;
    } catch (cause) {
      throw new Error(`s3://${bucket}/${Key} is no audit event: ${(cause as Error).message}`, { cause });
    }
  };
  for await (const { Contents = [] } of paginateListObjectsV2({ client: s3 }, { Bucket: bucket, Prefix: "audit/" })) {
    const keys = Contents.flatMap(({ Key }) => Key ?? []);
    for (let from = 0; from < keys.length; from += READERS) yield* await Promise.all(keys.slice(from, from + READERS).map(read));
  }
}

/** Archives events that the archive does not hold, as the stream would have. @throws with what could not be written */
export async function archiveMissing(bucket: string, events: readonly AuditEvent[]): Promise<void> {
  const failures: string[] = [];
  const archive = auditArchive({ bucket, log: (level, _, { problem }) => (level === "error" ? failures.push(String(problem)) : undefined) });
  const Records = events.map((event) => ({
    eventName: "INSERT",
    dynamodb: { NewImage: { pk: { S: `I#${event.incident}` }, sk: { S: `A#${event.sequence}` }, json: { S: canonical(event) } } },
  }));
  await archive({ Records });
  if (failures.length > 0) throw new Error(`could not archive all ${events.length} events: ${failures.join("; ")}`);
}

/** `npm run audit -- --table <TableName> --archive <ArchiveBucketName> [--copy]`: exit code 1 if something is wrong. */
async function main(): Promise<void> {
  const { table, archive, copy } = parseArgs({ options: { table: { type: "string" }, archive: { type: "string" }, copy: { type: "boolean" } } }).values;
  if (table === undefined || archive === undefined)
    throw new Error("which deployment? --table <TableName> --archive <ArchiveBucketName>, both outputs of the stack");
  // of the bucket only captures would be read
  const store = new DynamoDbStore({ table, bucket: archive });
  const { events, archived, problems, missing } = await auditDeployment(store, archivedEvents(archive));
  process.stdout.write(`${events} events in the table, ${archived} in the archive\n`);
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  if (missing.length > 0 && copy === true && problems.length === 0) {
    await archiveMissing(archive, missing);
    process.stdout.write(`${missing.length} events were not archived, and are now\n`);
  } else if (missing.length > 0) {
    process.stdout.write(
      `${missing.length} events are not archived (yet): the stream needs some seconds; what is in the dead-letter queue is archived with --copy\n`,
    );
  }
  process.stdout.write(problems.length === 0 ? "the audit trail is whole\n" : `${problems.length} problems: docs/operations.md, "Restore"\n`);
  if (problems.length > 0) process.exitCode = 1;
}

if (import.meta.main)
  await main().catch((error: Error) => {
    process.stderr.write(`audit: ${error.message}\n`);
    process.exitCode = 2;
  });
