import { Duration } from "aws-cdk-lib";
import { Rule, Schedule } from "aws-cdk-lib/aws-events";
import { LambdaFunction } from "aws-cdk-lib/aws-events-targets";
import { Construct } from "constructs";
import { type ClusterAccess, grantClusters } from "./cluster-access.ts";
import type { Configuration } from "./configuration.ts";
import type { DataBucket } from "./data-bucket.ts";
import { DeadLetters } from "./dead-letters.ts";
import { type FunctionBasics, NetcheckFunction } from "./netcheck-function.ts";
import type { Store } from "./store.ts";

/** How often it looks. Alarms count on it. */
export const EVERY = Duration.minutes(5);

export interface ReaperFunctionProps extends FunctionBasics, ClusterAccess {
  readonly store: Store;
  readonly data: DataBucket;
  readonly configuration: Configuration;
}

/** Looks for what was left behind: debug pods past their time, approvals that nobody answered. One at a time, every five minutes. */
export class ReaperFunction extends Construct {
  readonly function: NetcheckFunction;
  readonly failed: DeadLetters;

  constructor(scope: Construct, id: string, props: ReaperFunctionProps) {
    super(scope, id);
    const { store, data, configuration } = props;
    this.failed = new DeadLetters(this, "Failed", props.key);
    this.function = new NetcheckFunction(this, "Reaper", {
      ...props,
      name: "reaper",
      description: "netcheck: clears away what was left behind",
      memoryMb: 1024,
      timeout: Duration.minutes(4),
      concurrency: 1,
      keyServices: ["dynamodb", "secretsmanager"],
      keyAccess: "read-write",
      environment: {
        TABLE: store.table.tableName,
        BUCKET: data.bucket.bucketName,
        CONFIG_PARAMETER: configuration.parameter.parameterName,
      },
      more: { deadLetterQueue: this.failed.queue },
    });
    const { lambda, role } = this.function;
    this.failed.grantSend(role);
    store.grantLook(role);
    configuration.grantRead(role);
    grantClusters(role, props);
    const target = new LambdaFunction(lambda, { deadLetterQueue: this.failed.queue, retryAttempts: 2, maxEventAge: EVERY });
    new Rule(this, "Schedule", { description: "netcheck: reaper", schedule: Schedule.rate(EVERY), targets: [target] });
  }
}
