import { RemovalPolicy } from "aws-cdk-lib";
import { PolicyStatement, type Role } from "aws-cdk-lib/aws-iam";
import { Secret } from "aws-cdk-lib/aws-secretsmanager";
import { Construct } from "constructs";
import { accept } from "./accept.ts";
import type { EncryptionKey } from "./encryption-key.ts";

export interface SigningSecretProps {
  readonly key: EncryptionKey;
  readonly description: string;
  /** Fields besides `signingSecret`, empty until somebody fills them in. */
  readonly empty: readonly string[];
  /** Why nothing rotates it by itself. */
  readonly byHand: string;
}

/**
 * What requests are signed with, as JSON: `{"signingSecret": …}` and more. The deployment makes a random signing secret, so that every request is refused
 * until the sender and we have the same one. Later deployments leave the value alone.
 */
export class SigningSecret extends Construct {
  readonly secret: Secret;

  constructor(scope: Construct, id: string, { key, description, empty, byHand }: SigningSecretProps) {
    super(scope, id);
    this.secret = new Secret(this, "Secret", {
      description,
      encryptionKey: key.key,
      generateSecretString: {
        secretStringTemplate: JSON.stringify(Object.fromEntries(empty.map((field) => [field, ""]))),
        generateStringKey: "signingSecret",
        passwordLength: 64,
        excludePunctuation: true,
      },
      removalPolicy: RemovalPolicy.DESTROY,
    });
    accept(this.secret, { "AwsSolutions-SMG4": byHand });
  }

  /** Lets a role read it, and nothing else of Secrets Manager. */
  grantRead(role: Role): void {
    role.addToPolicy(new PolicyStatement({ actions: ["secretsmanager:GetSecretValue"], resources: [this.secret.secretArn] }));
  }
}
