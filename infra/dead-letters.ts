import { Duration } from "aws-cdk-lib";
import type { Role } from "aws-cdk-lib/aws-iam";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import { Queue, QueueEncryption } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { accept } from "./accept.ts";
import type { EncryptionKey } from "./encryption-key.ts";

/** Days for which what failed is kept: the most that SQS allows. */
const KEPT_DAYS = 14;

/** A queue for what failed and would else be lost. An alarm watches it; docs/operations.md says what to do with what is in it. */
export class DeadLetters extends Construct {
  readonly queue: Queue;
  readonly #key: EncryptionKey;

  constructor(scope: Construct, id: string, key: EncryptionKey) {
    super(scope, id);
    this.#key = key;
    this.queue = new Queue(this, "Queue", {
      encryption: QueueEncryption.KMS,
      encryptionMasterKey: key.key,
      enforceSSL: true,
      retentionPeriod: Duration.days(KEPT_DAYS),
    });
    accept(this.queue, {
      "AwsSolutions-SQS3": "It is a dead-letter queue itself.",
      "Serverless-SQSRedrivePolicy": "It is a dead-letter queue itself.",
    });
  }

  /** Lets a function's role put what failed into the queue. */
  grantSend(role: Role): void {
    role.addToPolicy(new PolicyStatement({ actions: ["sqs:SendMessage"], resources: [this.queue.queueArn] }));
    this.#key.use(role, ["sqs"], "read-write");
  }
}
