import { Duration, RemovalPolicy } from "aws-cdk-lib";
import { BlockPublicAccess, Bucket, BucketEncryption, type BucketProps, type IBucket, ObjectOwnership } from "aws-cdk-lib/aws-s3";
import { Construct } from "constructs";
import { accept } from "./accept.ts";
import type { EncryptionKey } from "./encryption-key.ts";

/** What every bucket of ours is: private, owned by us, over TLS only. */
const PRIVATE = {
  blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
  enforceSSL: true,
  minimumTLSVersion: 1.2,
  objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
  removalPolicy: RemovalPolicy.RETAIN,
} as const satisfies BucketProps;

/** Who looked into which bucket when: S3's own access logs. */
export class AccessLogs extends Construct {
  readonly bucket: Bucket;

  /** @param days for which they are kept */
  constructor(scope: Construct, id: string, days: number) {
    super(scope, id);
    this.bucket = new Bucket(this, "Bucket", {
      ...PRIVATE,
      // S3 delivers access logs only into buckets that it encrypts with its own key
      encryption: BucketEncryption.S3_MANAGED,
      lifecycleRules: [{ expiration: Duration.days(days), abortIncompleteMultipartUploadAfter: Duration.days(1) }],
    });
    accept(this.bucket, { "AwsSolutions-S1": "It holds the access logs of the other buckets; its own would go in a circle." });
  }
}

/** A private bucket, encrypted with our key, with access logs; it stays when the stack is destroyed. */
export function privateBucket(scope: Construct, id: string, { key, logs, ...more }: BucketProps & { key: EncryptionKey; logs: AccessLogs }): Bucket {
  return new Bucket(scope, id, {
    ...PRIVATE,
    encryption: BucketEncryption.KMS,
    encryptionKey: key.key,
    // one data key per bucket and while instead of one per object: fewer calls to KMS
    bucketKeyEnabled: true,
    serverAccessLogsBucket: logs.bucket as IBucket,
    serverAccessLogsPrefix: `${scope.node.id.toLowerCase()}/`,
    ...more,
  });
}
