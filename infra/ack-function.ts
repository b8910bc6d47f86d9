import { Duration } from "aws-cdk-lib";
import { Construct } from "constructs";
import { accept } from "./accept.ts";
import { type FunctionBasics, NetcheckFunction } from "./netcheck-function.ts";
import type { SigningSecret } from "./signing-secret.ts";
import { LIVE, type TriageFunction } from "./triage-function.ts";

export interface AckFunctionProps extends FunctionBasics {
  readonly name: "slack" | "pager";
  readonly description: string;
  /** Holds what requests are signed with. */
  readonly secret: SigningSecret;
  readonly triage: TriageFunction;
}

/** A function behind the public address: checks the signature, starts the work, answers. It can reach no node, no table and no bucket. */
export class AckFunction extends Construct {
  readonly function: NetcheckFunction;

  constructor(scope: Construct, id: string, props: AckFunctionProps) {
    super(scope, id);
    this.function = new NetcheckFunction(this, "Ack", {
      ...props,
      // one vCPU: a cold start is what Slack's 3 seconds are needed for
      memoryMb: 1769,
      timeout: Duration.seconds(5),
      concurrency: 20,
      keyServices: ["secretsmanager"],
      keyAccess: "read",
      environment: {
        [props.name === "slack" ? "SLACK_SECRET_ARN" : "PAGER_SECRET_ARN"]: props.secret.secret.secretArn,
        TRIAGE_FUNCTION: props.triage.function.lambda.functionName,
        TRIAGE_QUALIFIER: LIVE,
      },
    });
    props.secret.grantRead(this.function.role);
    props.triage.grantStart(this.function.role);
    accept(this.function.lambda, {
      "Serverless-LambdaDLQ": "It is called and answered while the caller waits; who gets no answer sends again. Nothing is queued that could be lost.",
    });
  }
}
