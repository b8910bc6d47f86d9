import { Duration, RemovalPolicy } from "aws-cdk-lib";
import { Policy, PolicyStatement, type Role } from "aws-cdk-lib/aws-iam";
import { Alias, type CfnFunction, type IVersion } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import { acceptWildcard } from "./accept.ts";
import { type ClusterAccess, grantClusters } from "./cluster-access.ts";
import type { Configuration } from "./configuration.ts";
import type { DataBucket } from "./data-bucket.ts";
import { DeadLetters } from "./dead-letters.ts";
import { type FunctionBasics, NetcheckFunction } from "./netcheck-function.ts";
import type { SigningSecret } from "./signing-secret.ts";
import type { Store } from "./store.ts";

/** The alias that everybody starts work through. An execution stays on the version that it began with. */
export const LIVE = "live";
/** As long as an incident may stay open: an approval may wait for 7 days, twice, and a fix takes its time. */
const EXECUTION_DAYS = 30;
/** Days for which the history of a finished execution can be read. */
const HISTORY_DAYS = 30;

export interface TriageFunctionProps extends FunctionBasics, ClusterAccess {
  readonly store: Store;
  readonly data: DataBucket;
  readonly configuration: Configuration;
  readonly secret: SigningSecret;
}

/** The durable function that does the work, with the alias it is started through and a queue for starts that failed. */
export class TriageFunction extends Construct {
  readonly function: NetcheckFunction;
  readonly alias: Alias;
  readonly failed: DeadLetters;

  constructor(scope: Construct, id: string, props: TriageFunctionProps) {
    super(scope, id);
    const { store, data, configuration, secret, key } = props;
    this.failed = new DeadLetters(this, "Failed", key);
    this.function = new NetcheckFunction(this, "Triage", {
      ...props,
      name: "triage",
      description: "netcheck: examines nodes, asks for approval, fixes and verifies",
      // one vCPU; a capture of 15 MB is read in memory
      memoryMb: 1769,
      timeout: Duration.minutes(15),
      concurrency: 50,
      keyServices: ["dynamodb", "s3", "secretsmanager"],
      keyAccess: "read-write",
      environment: {
        TABLE: store.table.tableName,
        BUCKET: data.bucket.bucketName,
        CONFIG_PARAMETER: configuration.parameter.parameterName,
        SLACK_SECRET_ARN: secret.secret.secretArn,
        TRIAGE_QUALIFIER: LIVE,
        NODE_OPTIONS: "--max-semi-space-size=4",
      },
      more: {
        durableConfig: { executionTimeout: Duration.days(EXECUTION_DAYS), retentionPeriod: Duration.days(HISTORY_DAYS) },
        // running executions finish on their version: it must not go when the next one comes
        currentVersionOptions: { removalPolicy: RemovalPolicy.RETAIN },
        deadLetterQueue: this.failed.queue,
      },
    });
    const { lambda, role } = this.function;
    // the construct has no setting for the key of executions
    (lambda.node.defaultChild as CfnFunction).addPropertyOverride("DurableConfig.KMSKeyArn", key.key.keyArn);
    this.alias = new Alias(this, "Live", { aliasName: LIVE, version: lambda.currentVersion as IVersion });
    this.failed.grantSend(role);
    store.grantUse(role);
    data.grantUse(role);
    configuration.grantRead(role);
    secret.grantRead(role);
    grantClusters(role, props);
    const executions = `${lambda.functionArn}:*`;
    // beside the role, not in it: the function waits for its role, and this names the function
    const own = new Policy(this, "OwnExecutions", {
      roles: [role],
      statements: [
        new PolicyStatement({
          actions: ["lambda:CheckpointDurableExecution", "lambda:GetDurableExecutionState", "lambda:SendDurableExecutionCallbackSuccess"],
          resources: [executions],
        }),
        new PolicyStatement({ actions: ["lambda:InvokeFunction"], resources: [this.alias.functionArn] }),
      ],
    });
    acceptWildcard(own, executions, "Executions are named below the versions of this function, and each deployment makes a new version.");
  }

  /** Lets a role start work, through the alias alone. */
  grantStart(role: Role): void {
    role.addToPolicy(new PolicyStatement({ actions: ["lambda:InvokeFunction"], resources: [this.alias.functionArn] }));
  }
}
