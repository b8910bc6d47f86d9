import type { Template } from "./sample.ts";

/** One statement of one policy, with every reference written as a name. */
export interface Statement {
  /** Whose policy it is: the role (or the resource, for a policy that is attached to one). */
  readonly owner: string;
  /** identity: what a role may do. resource: who may use a resource. trust: who may become a role. */
  readonly kind: "identity" | "resource" | "trust";
  readonly sid: string;
  readonly effect: "Allow" | "Deny";
  /** Empty in an identity policy. */
  readonly principals: readonly string[];
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  /** All resources but these. */
  readonly notResources: readonly string[];
  /** Operator → key → values. */
  readonly conditions: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
}

/** What stands for the place of a deployment in names. */
export interface Place {
  readonly partition: string;
  readonly region: string;
  readonly account: string;
}
const ANYWHERE: Place = { partition: "aws", region: "REGION", account: "ACCOUNT" };

/** Every statement of every policy in a template and its nested ones: inline, managed, attached to resources, trust. @throws at a policy of a kind that it does not know */
export function iamSurface({ Resources, Nested = [] }: Template, place: Place = ANYWHERE): Statement[] {
  const name = (value: unknown): string => named(value, place);
  const statements = (owner: string, kind: Statement["kind"], document: unknown): Statement[] =>
    (document as { Statement: Record<string, unknown>[] }).Statement.map((one) => {
      const known = new Set(["Sid", "Effect", "Principal", "Action", "Resource", "NotResource", "Condition"]);
      const strange = Object.keys(one).find((key) => !known.has(key));
      if (strange !== undefined) throw new Error(`${owner}: a statement has ${strange}`);
      const list = (key: string): string[] => (one[key] === undefined ? [] : [one[key]].flat().map(name)).sort();
      return {
        owner,
        kind,
        sid: (one["Sid"] as string | undefined) ?? "",
        effect: one["Effect"] as Statement["effect"],
        principals: principals(one["Principal"], name),
        actions: list("Action"),
        resources: list("Resource"),
        notResources: list("NotResource"),
        conditions: Object.fromEntries(
          Object.entries((one["Condition"] ?? {}) as Record<string, Record<string, unknown>>).map(([operator, keys]) => [
            operator,
            Object.fromEntries(Object.entries(keys).map(([key, value]) => [key, [value].flat().map(name)])),
          ]),
        ),
      };
    });
  const nested = Nested.flatMap((template) => iamSurface(template, place));
  const here = Object.entries(Resources).flatMap(([id, { Type, Properties }]): Statement[] => {
    const own = short(id);
    switch (Type) {
      case "AWS::IAM::Role": {
        if (Properties["ManagedPolicyArns"] !== undefined) throw new Error(`${own}: has a managed policy of AWS, which the surface cannot show`);
        const inline = ((Properties["Policies"] ?? []) as { PolicyDocument: unknown }[]).flatMap(({ PolicyDocument }) =>
          statements(own, "identity", PolicyDocument),
        );
        return [...statements(own, "trust", Properties["AssumeRolePolicyDocument"]), ...inline];
      }
      case "AWS::IAM::Policy":
      case "AWS::IAM::ManagedPolicy": {
        const holders = ((Properties["Roles"] ?? []) as unknown[]).map((role) => name(role).replace(/^<|>$/g, ""));
        return (holders.length === 0 ? [own] : holders).flatMap((holder) => statements(holder, "identity", Properties["PolicyDocument"]));
      }
      case "AWS::KMS::Key":
        return statements(own, "resource", Properties["KeyPolicy"]);
      case "AWS::S3::BucketPolicy":
        return statements(name(Properties["Bucket"]).replace(/^<|>$/g, ""), "resource", Properties["PolicyDocument"]);
      case "AWS::SQS::QueuePolicy":
      case "AWS::SNS::TopicPolicy":
        return statements(own.replace(/Policy$/, ""), "resource", Properties["PolicyDocument"]);
      case "AWS::Lambda::Permission": {
        const { Action, FunctionName, Principal, SourceArn } = Properties;
        const conditions = { ArnLike: { "aws:SourceArn": [name(SourceArn)] } };
        const resources = [name(FunctionName)];
        return [
          {
            owner: resources[0] as string,
            kind: "resource",
            sid: "",
            effect: "Allow",
            principals: [name(Principal)],
            actions: [name(Action)],
            resources,
            notResources: [],
            conditions,
          },
        ];
      }
      default: {
        const policy = Object.keys(Properties ?? {}).find(
          (key) => /Policy(Document)?$/.test(key) && typeof Properties[key] === "object" && "Statement" in Properties[key],
        );
        if (policy !== undefined) throw new Error(`${own}: ${Type} has a ${policy} that the surface does not show: teach infra/iam-surface.ts`);
        return [];
      }
    }
  });
  return [...here, ...nested];
}

function principals(value: unknown, name: (value: unknown) => string): string[] {
  if (value === undefined) return [];
  if (typeof value === "string") return [value];
  return Object.values(value as Record<string, unknown>)
    .flat()
    .map(name)
    .sort();
}

/** A name as CloudFormation would write it, with `<Thing.Arn>` for what is known only after the deployment. */
function named(value: unknown, place: Place): string {
  if (typeof value !== "object" || value === null) return String(value);
  const [[kind, of]] = Object.entries(value as Record<string, unknown>) as [[string, unknown]];
  if (kind === "Fn::Join") return (of as [string, unknown[]])[1].map((part) => named(part, place)).join((of as [string, unknown[]])[0]);
  if (kind === "Fn::GetAtt") return `<${short((of as string[])[0] as string)}.${(of as string[])[1] as string}>`;
  if (kind !== "Ref") throw new Error(`a policy holds ${JSON.stringify(value)}, which infra/iam-surface.ts cannot name`);
  const pseudo: Record<string, string> = {
    "AWS::Partition": place.partition,
    "AWS::Region": place.region,
    "AWS::AccountId": place.account,
    "AWS::URLSuffix": "amazonaws.com",
  };
  return pseudo[of as string] ?? `<${short(of as string)}>`;
}

/** The name without the hash that the CDK puts behind it. */
const short = (id: string): string => id.replace(/[0-9A-F]{8}$/, "");
