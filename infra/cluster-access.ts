import { PolicyStatement, type Role } from "aws-cdk-lib/aws-iam";

/** What reaches clusters that are not simply nodes of this account and region. */
export interface ClusterAccess {
  /** ARNs of roles: member stacks, and EKS clusters in other accounts. */
  readonly memberRoles: readonly string[];
  /** ARNs of secrets with tokens of Kubernetes clusters. */
  readonly tokenSecrets: readonly string[];
}

/** Lets a role assume just these roles and read just these secrets. */
export function grantClusters(role: Role, { memberRoles, tokenSecrets }: ClusterAccess): void {
  if (memberRoles.length > 0) role.addToPolicy(new PolicyStatement({ actions: ["sts:AssumeRole"], resources: [...memberRoles] }));
  if (tokenSecrets.length > 0) role.addToPolicy(new PolicyStatement({ actions: ["secretsmanager:GetSecretValue"], resources: [...tokenSecrets] }));
}
