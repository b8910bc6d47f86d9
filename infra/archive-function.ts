import { Duration } from "aws-cdk-lib";
import { EventSourceMapping, type IEventSourceDlq, StartingPosition } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import { accept } from "./accept.ts";
import type { ArchiveBucket } from "./archive-bucket.ts";
import { DeadLetters } from "./dead-letters.ts";
import { type FunctionBasics, NetcheckFunction } from "./netcheck-function.ts";
import type { Store } from "./store.ts";

/** The stream forgets after 24 hours; before that what still fails goes to the queue. */
const GIVE_UP = Duration.hours(20);

export interface ArchiveFunctionProps extends FunctionBasics {
  readonly store: Store;
  readonly archive: ArchiveBucket;
}

/** Copies audit events from the table's stream into the locked bucket. */
export class ArchiveFunction extends Construct {
  readonly function: NetcheckFunction;
  readonly failed: DeadLetters;

  constructor(scope: Construct, id: string, props: ArchiveFunctionProps) {
    super(scope, id);
    const { store, archive } = props;
    this.failed = new DeadLetters(this, "Failed", props.key);
    this.function = new NetcheckFunction(this, "Archive", {
      ...props,
      name: "archive",
      description: "netcheck: copies audit events into the locked bucket",
      memoryMb: 512,
      timeout: Duration.minutes(1),
      concurrency: 5,
      keyServices: ["dynamodb", "s3"],
      keyAccess: "read-write",
      environment: { ARCHIVE_BUCKET: archive.bucket.bucketName },
    });
    const { lambda, role } = this.function;
    this.failed.grantSend(role);
    store.grantFollow(role);
    archive.grantAdd(role);
    // as an object of our own: the library's would also allow the role to encrypt with wildcards
    const onFailure: IEventSourceDlq = { bind: () => ({ destination: this.failed.queue.queueArn }) };
    const mapping = new EventSourceMapping(this, "Stream", {
      target: lambda,
      eventSourceArn: store.streamArn,
      startingPosition: StartingPosition.TRIM_HORIZON,
      batchSize: 100,
      maxBatchingWindow: Duration.seconds(5),
      bisectBatchOnError: true,
      reportBatchItemFailures: true,
      maxRecordAge: GIVE_UP,
      onFailure,
    });
    // the mapping is refused while the role may not read the stream
    mapping.node.addDependency(role);
    accept(lambda, { "Serverless-LambdaDLQ": "It is called by the stream alone; what fails there goes to the mapping's own queue." });
  }
}
