import { Stack, Validations } from "aws-cdk-lib";
import type { IConstruct } from "constructs";

/**
 * Acknowledges findings of cdk-nag on one construct (and what is in it), each with the reason that a reviewer reads.
 * @param reasons id of the finding, such as "AwsSolutions-S1" or "AwsSolutions-IAM5[Resource::*]" → reason
 */
export function accept(construct: IConstruct, reasons: Readonly<Record<string, string>>): void {
  for (const [id, reason] of Object.entries(reasons)) Validations.of(construct).acknowledge({ id, reason });
}

/** The same for one resource with a wildcard in a policy of the construct; another wildcard is still a finding. @param resource as given to the statement */
export function acceptWildcard(construct: IConstruct, resource: string, reason: string): void {
  accept(construct, { [`AwsSolutions-IAM5[Resource::${written(Stack.of(construct).resolve(resource))}]`]: reason });
}

/** A resource as cdk-nag writes it: `<LogicalId.Arn>/prefix/*`. */
function written(value: unknown): string {
  if (typeof value === "string") return value;
  const [[kind, of]] = Object.entries(value as Record<string, unknown>) as [[string, unknown]];
  if (kind === "Ref") return `<${of as string}>`;
  if (kind === "Fn::GetAtt") return `<${(of as string[]).join(".")}>`;
  if (kind === "Fn::Join") return (of as [string, unknown[]])[1].map(written).join((of as [string, unknown[]])[0]);
  throw new Error(`a resource of a policy is ${JSON.stringify(value)}: infra/accept.ts does not know how cdk-nag writes it`);
}
