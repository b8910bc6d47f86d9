import { Stack } from "aws-cdk-lib";
import { Effect, PolicyStatement, type Role } from "aws-cdk-lib/aws-iam";
import type { Construct } from "constructs";
import { accept, acceptWildcard } from "./accept.ts";
import type { ScriptDocuments } from "./script-documents.ts";
import type { Tag } from "./settings.ts";

/** Ways to a node, or to another script, that would go around the documents. Nothing allows them; this also holds if somebody adds a permission later. */
const DETOURS = [
  "ssm:CreateAssociation",
  "ssm:CreateAssociationBatch",
  "ssm:CreateDocument",
  "ssm:DeleteDocument",
  "ssm:ModifyDocumentPermission",
  "ssm:RegisterTaskWithMaintenanceWindow",
  "ssm:ResumeSession",
  "ssm:StartAutomationExecution",
  "ssm:StartSession",
  "ssm:UpdateAssociation",
  "ssm:UpdateDocument",
  "ssm:UpdateDocumentDefaultVersion",
];

/** How names of documents begin (functions/transports/ssm-document.ts). */
const DOCUMENT_PREFIX = "netcheck-";
/** Statements of a policy are moved to another one as wholes when a role's policy gets too long: none may be long by itself. */
const ARNS_PER_STATEMENT = 20;

export interface NodeAccess {
  readonly documents: ScriptDocuments;
  /** Nodes that carry it, and only these. */
  readonly tag: Tag;
  /** ARN of the bucket that long answers are sent to. */
  readonly outputBucketArn: string;
}

/** Lets a role run our documents on nodes that opted in by a tag, and nothing else, whatever other permissions it may get. */
export function grantNodeAccess(scope: Construct, role: Role, { documents, tag, outputBucketArn }: NodeAccess): void {
  const stack = Stack.of(scope);
  const nodes = [
    stack.formatArn({ service: "ec2", resource: "instance", resourceName: "*" }),
    // machines that are no instances of EC2: hybrid activations
    stack.formatArn({ service: "ssm", resource: "managed-instance", resourceName: "*" }),
  ];
  // in the refusal all names of ours may stand: what is allowed is in the list
  const ours = stack.formatArn({ service: "ssm", resource: "document", resourceName: `${DOCUMENT_PREFIX}*` });
  const optedIn = { [`ssm:resourceTag/${tag.key}`]: tag.value };
  const statements = [
    // the bucket is a resource of SendCommand, too, where a command names one
    ...chunks([...documents.arns, outputBucketArn], ARNS_PER_STATEMENT).map(
      (resources, index) => new PolicyStatement({ sid: `OurDocuments${index + 1}`, actions: ["ssm:SendCommand"], resources }),
    ),
    new PolicyStatement({ sid: "OptedInNodes", actions: ["ssm:SendCommand"], resources: nodes, conditions: { StringEquals: optedIn } }),
    new PolicyStatement({ sid: "NoOtherDocument", effect: Effect.DENY, actions: ["ssm:SendCommand"], notResources: [ours, outputBucketArn, ...nodes] }),
    new PolicyStatement({ sid: "NoOtherNode", effect: Effect.DENY, actions: ["ssm:SendCommand"], resources: nodes, conditions: { StringNotEquals: optedIn } }),
    new PolicyStatement({ sid: "NoDetour", effect: Effect.DENY, actions: DETOURS, resources: ["*"] }),
    // these know no resources: "*" is the only value that AWS accepts
    new PolicyStatement({
      sid: "Watch",
      actions: ["ssm:CancelCommand", "ssm:DescribeInstanceInformation", "ssm:GetCommandInvocation", "ssm:ListCommandInvocations", "ssm:ListCommands"],
      resources: ["*"],
    }),
  ];
  for (const statement of statements) role.addToPolicy(statement);
  for (const node of nodes)
    acceptWildcard(role, node, `Which nodes may be reached is said by their tag ${tag.key}=${tag.value}: a condition of the same statement.`);
  accept(role, {
    "AwsSolutions-IAM5[Resource::*]": "Reading the state of commands, and cancelling one, know no resources: AWS accepts only *. So does tracing.",
  });
}

function chunks<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, index) => all.slice(index * size, (index + 1) * size));
}
