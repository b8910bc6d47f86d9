import { type Duration, RemovalPolicy, Stack } from "aws-cdk-lib";
import { PolicyStatement, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Architecture, type Code, type FunctionProps, Function as LambdaFunction, LoggingFormat, Runtime, Tracing } from "aws-cdk-lib/aws-lambda";
import { LogGroup, type RetentionDays } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import { accept } from "./accept.ts";
import type { EncryptionKey } from "./encryption-key.ts";

/** The entry points: functions/<name>.ts each. */
export const FUNCTIONS = ["slack", "pager", "triage", "reaper", "archive"] as const;
export type FunctionName = (typeof FUNCTIONS)[number];

/** What all functions have in common. */
export interface FunctionBasics {
  readonly key: EncryptionKey;
  /** The bundle of an entry point. */
  readonly code: (name: FunctionName) => Code;
  readonly logDays: number;
  /** False: no function reserves concurrency. */
  readonly reserve: boolean;
}

export interface NetcheckFunctionProps extends FunctionBasics {
  readonly name: FunctionName;
  readonly description: string;
  readonly memoryMb: number;
  readonly timeout: Duration;
  /** Invocations that may run at the same time; also kept free for this function. */
  readonly concurrency: number;
  readonly environment: Readonly<Record<string, string>>;
  /** Services through which the function uses the key, besides Lambda itself. */
  readonly keyServices: readonly string[];
  readonly keyAccess: "read" | "read-write";
  readonly more?: Partial<FunctionProps>;
}

/** A function with a role of its own that may nothing but what is granted to it, an encrypted log that ends, and tracing. */
export class NetcheckFunction extends Construct {
  readonly role: Role;
  readonly lambda: LambdaFunction;
  readonly log: LogGroup;

  constructor(scope: Construct, id: string, props: NetcheckFunctionProps) {
    super(scope, id);
    const { name, key } = props;
    // not the managed policy of AWS: it may write into every log of the account
    this.role = new Role(this, "Role", {
      assumedBy: new ServicePrincipal("lambda.amazonaws.com"),
      description: `${Stack.of(this).stackName}: ${props.description}`,
    });
    this.log = new LogGroup(this, "Log", { retention: props.logDays as RetentionDays, encryptionKey: key.key, removalPolicy: RemovalPolicy.DESTROY });
    this.role.addToPolicy(new PolicyStatement({ actions: ["logs:CreateLogStream", "logs:PutLogEvents"], resources: [this.log.logGroupArn] }));
    key.use(this.role, ["lambda", ...props.keyServices], props.keyAccess);
    this.lambda = new LambdaFunction(this, "Function", {
      description: props.description,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      handler: `${name}.handler`,
      code: props.code(name),
      role: this.role,
      memorySize: props.memoryMb,
      timeout: props.timeout,
      ...(props.reserve ? { reservedConcurrentExecutions: props.concurrency } : {}),
      logGroup: this.log,
      loggingFormat: LoggingFormat.JSON,
      tracing: Tracing.ACTIVE,
      environment: props.environment,
      environmentEncryption: key.key,
      ...props.more,
    });
    accept(this.role, { "AwsSolutions-IAM5[Resource::*]": "xray:PutTraceSegments and xray:PutTelemetryRecords know no resources." });
  }
}
