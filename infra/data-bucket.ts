import { Duration } from "aws-cdk-lib";
import { ManagedPolicy, PolicyStatement, type Role } from "aws-cdk-lib/aws-iam";
import type { Bucket } from "aws-cdk-lib/aws-s3";
import { Construct } from "constructs";
import { acceptWildcard } from "./accept.ts";
import type { EncryptionKey } from "./encryption-key.ts";
import { type AccessLogs, privateBucket } from "./private-bucket.ts";

/** Long answers of nodes: they are read within minutes. */
const OUTPUT_DAYS = 7;
/** Captures and reports: as long as their incidents (functions/store/dynamodb.ts). */
const BLOB_DAYS = 400;

/** Captures and reports (`blobs/`), and what nodes send that is too long for Systems Manager's own answer (`netcheck/`). */
export class DataBucket extends Construct {
  readonly bucket: Bucket;

  constructor(scope: Construct, id: string, key: EncryptionKey, logs: AccessLogs) {
    super(scope, id);
    const tidy = { abortIncompleteMultipartUploadAfter: Duration.days(1) };
    this.bucket = privateBucket(this, "Bucket", {
      key,
      logs,
      versioned: true,
      lifecycleRules: [
        { id: "outputs", prefix: "netcheck/", expiration: Duration.days(OUTPUT_DAYS), noncurrentVersionExpiration: Duration.days(1), ...tidy },
        { id: "blobs", prefix: "blobs/", expiration: Duration.days(BLOB_DAYS), noncurrentVersionExpiration: Duration.days(OUTPUT_DAYS), ...tidy },
      ],
    });
    const outputs = this.bucket.arnForObjects("netcheck/*");
    // attached by hand to the roles of nodes: who runs them decides which
    const node = new ManagedPolicy(this, "NodePolicy", {
      description:
        "netcheck: lets a node send answers that are too long for Systems Manager. For the role of the instances, beside AmazonSSMManagedInstanceCore.",
      statements: [
        new PolicyStatement({ actions: ["s3:PutObject"], resources: [outputs] }),
        // the agent looks how the bucket is encrypted, and sends more than 5 MB in parts, for which S3 must also decrypt
        new PolicyStatement({ actions: ["s3:GetEncryptionConfiguration"], resources: [this.bucket.bucketArn] }),
        key.through(["s3"], "read-write"),
      ],
    });
    acceptWildcard(node, outputs, "A node writes objects below netcheck/ whose names hold the command's id. It can read none.");
  }

  /** Lets a role read what nodes sent. */
  grantOutputs(role: Role): void {
    const outputs = this.bucket.arnForObjects("netcheck/*");
    role.addToPolicy(new PolicyStatement({ actions: ["s3:GetObject"], resources: [outputs] }));
    acceptWildcard(role, outputs, "Long answers of nodes are objects below one prefix, named by the command's id. The role can only read them.");
    // without it S3 says "access denied" instead of "there is none"
    role.addToPolicy(new PolicyStatement({ actions: ["s3:ListBucket"], resources: [this.bucket.bucketArn] }));
  }

  /** Lets a role read and write captures and reports, and read what nodes sent. */
  grantUse(role: Role): void {
    this.grantOutputs(role);
    const blobs = this.bucket.arnForObjects("blobs/*");
    role.addToPolicy(new PolicyStatement({ actions: ["s3:GetObject", "s3:PutObject"], resources: [blobs] }));
    acceptWildcard(role, blobs, "Captures and reports are objects below one prefix, named by their incident. The role can delete none.");
  }
}
