import type { Statement } from "./iam-surface.ts";

/** A wildcard that may stand in what a role is allowed, and why. */
interface Accepted {
  /** Whose; all if it is said of every one. */
  readonly owner: RegExp;
  readonly wildcard: string;
  readonly because: string;
}

/** All of them. One more fails test/infra/iam.test.ts until somebody writes down the reason here, and one that is not needed any more does, too. */
export const ACCEPTED: readonly Accepted[] = [
  {
    owner: /.*/,
    wildcard: "xray:PutTelemetryRecords xray:PutTraceSegments on *",
    because: "Tracing knows no resources: AWS accepts only *. Both actions write and read nothing.",
  },
  {
    owner: /^(?:TriageWorkerTriageRole|Role)$/,
    wildcard: "ssm:CancelCommand ssm:DescribeInstanceInformation ssm:GetCommandInvocation ssm:ListCommandInvocations ssm:ListCommands on *",
    because: "Reading the state of commands and nodes, and cancelling a command, know no resources: AWS accepts only *. None of them starts anything.",
  },
  {
    owner: /^(?:TriageWorkerTriageRole|Role)$/,
    wildcard: "ssm:SendCommand on arn:aws:ec2:REGION:ACCOUNT:instance/* if ssm:resourceTag/netcheck StringEquals enabled",
    because: "Which instances is said by their tag: a condition of the same statement. Instances come and go.",
  },
  {
    owner: /^(?:TriageWorkerTriageRole|Role)$/,
    wildcard: "ssm:SendCommand on arn:aws:ssm:REGION:ACCOUNT:managed-instance/* if ssm:resourceTag/netcheck StringEquals enabled",
    because: "The same for machines with a hybrid activation.",
  },
  {
    owner: /^TriageWorkerTriageRole$/,
    wildcard:
      "lambda:CheckpointDurableExecution lambda:GetDurableExecutionState lambda:SendDurableExecutionCallbackSuccess on <TriageWorkerTriageFunction.Arn>:*",
    because: "Executions are named below the versions of the triage function itself, and each deployment makes a new version.",
  },
  {
    owner: /^(?:TriageWorkerTriageRole|Role)$/,
    wildcard: "s3:GetObject on <DataBucket.Arn>/netcheck/*",
    because: "Long answers of nodes: objects below one prefix, named by the command's id. Read only.",
  },
  {
    owner: /^TriageWorkerTriageRole$/,
    wildcard: "s3:GetObject s3:PutObject on <DataBucket.Arn>/blobs/*",
    because: "Captures and reports: objects below one prefix, named by their incident. They cannot be deleted.",
  },
  {
    owner: /^ArchiveWorkerArchiveRole$/,
    wildcard: "s3:PutObject on <AuditArchiveBucket.Arn>/audit/*",
    because: "Audit events: objects below one prefix, named by their place in the chain. They can neither be read nor deleted.",
  },
  {
    owner: /^DataNodePolicy$/,
    wildcard: "s3:PutObject on <DataBucket.Arn>/netcheck/*",
    because: "What a node sends: objects below one prefix, named by the command's id. It cannot read any.",
  },
];

/** Wildcards in what roles are allowed: `actions on resource`, with the keys of the conditions, which must not get lost. */
export function wildcards(statements: readonly Statement[]): { readonly owner: string; readonly wildcard: string }[] {
  return statements
    .filter(({ kind, effect }) => kind === "identity" && effect === "Allow")
    .flatMap(({ owner, actions, resources, notResources, conditions }) => {
      const keys = Object.entries(conditions).flatMap(([operator, of]) =>
        Object.entries(of).map(([key, values]) => `${key} ${operator} ${values.join(" or ")}`),
      );
      const only = keys.length === 0 ? "" : ` if ${keys.join(" and ")}`;
      const wide = actions.some((action) => action.includes("*"));
      const found = [...resources.filter((resource) => wide || resource.includes("*")), ...notResources.map((resource) => `everything but ${resource}`)];
      return found.map((resource) => ({ owner, wildcard: `${actions.join(" ")} on ${resource}${only}` }));
    });
}
