import { PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { archiveKey } from "../store/archive-layout.ts";
import type { AuditEvent } from "../triage/ports.ts";

/** What a DynamoDB stream hands over, as far as it is read here (new images). */
export interface StreamEvent {
  readonly Records: readonly {
    readonly eventID?: string;
    readonly eventName?: string;
    readonly dynamodb?: { readonly SequenceNumber?: string; readonly NewImage?: Readonly<Record<string, { readonly S?: string } | undefined>> };
  }[];
}
/** Records that are to come again, by sequence number. */
export interface StreamResult {
  readonly batchItemFailures: readonly { readonly itemIdentifier: string }[];
}

export interface ArchiveOptions {
  /** A bucket with Object Lock: what is in it cannot be changed or deleted before its time. */
  readonly bucket: string;
  readonly log: (level: "info" | "error", message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/**
 * Copies each new audit event from the table's stream into the archive, once: an object that is there is never written again. From the first record that fails,
 * the stream delivers again, in order; so the archive has no gaps.
 */
export function auditArchive({ bucket, log }: ArchiveOptions): (event: StreamEvent) => Promise<StreamResult> {
  const s3 = new S3Client({ maxAttempts: 5, requestHandler: { connectionTimeout: 2000, requestTimeout: 10_000, throwOnRequestTimeout: true } });
  return async ({ Records }) => {
    let archived = 0;
    for (const { eventName, dynamodb } of Records) {
      const { pk, sk, json } = dynamodb?.NewImage ?? {};
      // each event is in the table twice; the one in its incident counts
      if (eventName !== "INSERT" || !pk?.S?.startsWith("I#") || !sk?.S?.startsWith("A#") || json?.S === undefined) continue;
      try {
        await put(JSON.parse(json.S) as AuditEvent, json.S);
        archived++;
      } catch (error) {
        log("error", "an audit event could not be archived; the stream delivers it again", { problem: (error as Error).message });
        return { batchItemFailures: [{ itemIdentifier: dynamodb?.SequenceNumber ?? "" }] };
      }
    }
    if (archived > 0) log("info", "audit events archived", { events: archived });
    return { batchItemFailures: [] };
  };

  async function put(event: AuditEvent, text: string): Promise<void> {
    const request = {
      Bucket: bucket,
      Key: archiveKey(event),
      Body: `${text}\n`,
      ContentType: "application/json",
      IfNoneMatch: "*",
      ChecksumAlgorithm: "SHA256" as const,
    };
    try {
      await s3.send(new PutObjectCommand(request));
    } catch (error) {
      // delivered a second time
      if ((error as Error).name !== "PreconditionFailed") throw error;
    }
  }
}
