import { Duration } from "aws-cdk-lib";
import { PolicyStatement, type Role } from "aws-cdk-lib/aws-iam";
import { type Bucket, ObjectLockRetention } from "aws-cdk-lib/aws-s3";
import { Construct } from "constructs";
import { acceptWildcard } from "./accept.ts";
import type { EncryptionKey } from "./encryption-key.ts";
import { type AccessLogs, privateBucket } from "./private-bucket.ts";

/**
 * The audit trail, out of reach: each object is locked in compliance mode, so that for so many days nobody can change or delete it, not even the account's
 * root user. The bucket itself stays when the stack is destroyed.
 */
export class ArchiveBucket extends Construct {
  readonly bucket: Bucket;

  constructor(scope: Construct, id: string, days: number, key: EncryptionKey, logs: AccessLogs) {
    super(scope, id);
    this.bucket = privateBucket(this, "Bucket", {
      key,
      logs,
      versioned: true,
      objectLockEnabled: true,
      objectLockDefaultRetention: ObjectLockRetention.compliance(Duration.days(days)),
    });
  }

  /** Lets a role add objects; it can neither read nor delete any. */
  grantAdd(role: Role): void {
    const events = this.bucket.arnForObjects("audit/*");
    role.addToPolicy(new PolicyStatement({ actions: ["s3:PutObject"], resources: [events] }));
    acceptWildcard(role, events, "Audit events are objects below one prefix, named by their place in the chain. The role can read and delete none.");
  }
}
