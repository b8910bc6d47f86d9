import { auditArchive, type StreamEvent, type StreamResult } from "./aws/audit-archive.ts";
import { environmentOf } from "./aws/environment.ts";
import { structuredLog } from "./aws/logger.ts";

/** Lambda on the table's stream: copies audit events to S3, where Object Lock keeps them from being changed. */
const { required } = environmentOf(process.env, "archive", ["ARCHIVE_BUCKET"]);
const archive = auditArchive({ bucket: required("ARCHIVE_BUCKET"), log: structuredLog("archive") });

/** Two parameters, as Node 24 on Lambda wants it. */
export async function handler(event: StreamEvent, _context: unknown): Promise<StreamResult> {
  return archive(event);
}
