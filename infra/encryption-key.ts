import { ArnFormat, RemovalPolicy, Stack } from "aws-cdk-lib";
import { PolicyStatement, type Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import { Construct } from "constructs";

/**
 * The one key that everything at rest is encrypted with. Rotated each year by KMS. It stays when the stack is destroyed: without it the retained
 * table and archive could not be read any more.
 */
export class EncryptionKey extends Construct {
  readonly key: Key;

  /** @param forFunctions whether logs, alarms, schedules and durable executions use it, too, which act by themselves and not in the name of one of our roles */
  constructor(scope: Construct, id: string, { forFunctions }: { readonly forFunctions: boolean }) {
    super(scope, id);
    const { account, stackName } = Stack.of(this);
    this.key = new Key(this, "Key", {
      alias: `alias/${stackName}`,
      description: `${stackName}: all data at rest`,
      enableKeyRotation: true,
      removalPolicy: RemovalPolicy.RETAIN,
    });
    if (!forFunctions) return;
    // the construct of the alarms adds CloudWatch by itself
    const services = ["events.amazonaws.com", "sns.amazonaws.com"];
    this.key.addToResourcePolicy(
      new PolicyStatement({
        sid: "AlarmsAndSchedule",
        principals: services.map((name) => new ServicePrincipal(name)),
        actions: ["kms:Decrypt", "kms:GenerateDataKey"],
        resources: ["*"],
        conditions: { StringEquals: { "aws:SourceAccount": account } },
      }),
    );
    this.key.addToResourcePolicy(
      new PolicyStatement({
        sid: "Logs",
        principals: [new ServicePrincipal("logs.amazonaws.com")],
        actions: ["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo", "kms:DescribeKey"],
        resources: ["*"],
        conditions: { ArnLike: { "kms:EncryptionContext:aws:logs:arn": this.#ours("logs", "log-group", `${stackName}-*`) } },
      }),
    );
    this.key.addToResourcePolicy(
      new PolicyStatement({
        sid: "DurableExecutions",
        principals: [new ServicePrincipal("lambda.amazonaws.com")],
        actions: ["kms:Decrypt", "kms:GenerateDataKey"],
        resources: ["*"],
        conditions: {
          StringEquals: { "aws:SourceAccount": account },
          ArnLike: { "kms:EncryptionContext:aws:lambda:FunctionArn": this.#ours("lambda", "function", `${stackName}-*`) },
        },
      }),
    );
  }

  /**
   * Lets a role use the key, but only through the named services: the role can never decrypt something by itself.
   * @param services such as "dynamodb"
   */
  use(role: Role, services: readonly string[], access: "read" | "read-write"): void {
    role.addToPolicy(this.through(services, access));
  }

  /** The statement of {@link use}, for a policy of its own. */
  through(services: readonly string[], access: "read" | "read-write"): PolicyStatement {
    const { region, urlSuffix } = Stack.of(this);
    return new PolicyStatement({
      actions: ["kms:Decrypt", ...(access === "read" ? [] : ["kms:GenerateDataKey"])],
      resources: [this.key.keyArn],
      conditions: { StringEquals: { "kms:ViaService": services.map((service) => `${service}.${region}.${urlSuffix}`) } },
    });
  }

  #ours(service: string, resource: string, resourceName: string): string {
    return Stack.of(this).formatArn({ service, resource, resourceName, arnFormat: ArnFormat.COLON_RESOURCE_NAME });
  }
}
