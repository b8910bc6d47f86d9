import { Arn, ArnFormat, Stack } from "aws-cdk-lib";
import { PolicyStatement, type Role } from "aws-cdk-lib/aws-iam";
import { ParameterTier, StringParameter } from "aws-cdk-lib/aws-ssm";
import { Construct } from "constructs";
import type { Settings } from "./settings.ts";

/** netcheck.yaml in Parameter Store. It was checked when the settings were read; functions check it again each time. Holds no secrets. */
export class Configuration extends Construct {
  readonly parameter: StringParameter;
  readonly #config: Settings["config"];

  constructor(scope: Construct, id: string, config: Settings["config"]) {
    super(scope, id);
    this.#config = config;
    this.parameter = new StringParameter(this, "Parameter", {
      description: "netcheck.yaml, or s3://bucket/key where it is",
      stringValue: "text" in config ? config.text : `s3://${config.bucket}/${config.key}`,
      tier: ParameterTier.ADVANCED,
    });
  }

  /** Lets a role read it, wherever it is. */
  grantRead(role: Role): void {
    role.addToPolicy(new PolicyStatement({ actions: ["ssm:GetParameter"], resources: [this.parameter.parameterArn] }));
    if ("text" in this.#config) return;
    const { bucket, key } = this.#config;
    const object = Arn.format(
      { service: "s3", region: "", account: "", resource: bucket, resourceName: key, arnFormat: ArnFormat.SLASH_RESOURCE_NAME },
      Stack.of(this),
    );
    role.addToPolicy(new PolicyStatement({ actions: ["s3:GetObject"], resources: [object] }));
  }
}
