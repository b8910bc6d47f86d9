import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { iamPage } from "../../infra/iam-page.ts";
import { iamSurface, type Statement } from "../../infra/iam-surface.ts";
import { ACCEPTED, wildcards } from "../../infra/iam-wildcards.ts";
import { sampleMain, sampleMember, type Template } from "../../infra/sample.ts";
import { evaluate, type Touched } from "./iam-evaluator.ts";

const PLACE = { partition: "aws", region: "eu-central-1", account: "111122223333" };
const main = sampleMain();
const member = sampleMember();
const surface = [...iamSurface(main), ...iamSurface(member)];
const may = (template: Template, owner: string): Statement[] => iamSurface(template, PLACE).filter((one) => one.kind === "identity" && one.owner === owner);

describe("least privilege", () => {
  test("docs/generated/iam.md is the surface as it is", () => {
    const page = readFileSync(fileURLToPath(new URL("../../docs/generated/iam.md", import.meta.url)), "utf8");
    const now = iamPage(
      new Map([
        ["Main stack", iamSurface(main)],
        ["Member stack", iamSurface(member)],
      ]),
    );
    expect(page, "the IAM surface has changed: run `npm run docs:iam`, and look at what it changed as a security reviewer would").toBe(now);
  });

  test("no wildcard without a reason, and no reason without a wildcard", () => {
    const found = wildcards(surface);
    const known = (owner: string, wildcard: string) => ACCEPTED.filter((one) => one.wildcard === wildcard && one.owner.test(owner));
    expect(
      found.filter(({ owner, wildcard }) => known(owner, wildcard).length === 0),
      "new wildcards: narrow them, or write the reason into infra/iam-wildcards.ts",
    ).toEqual([]);
    const used = new Set(found.flatMap(({ owner, wildcard }) => known(owner, wildcard)));
    expect(
      ACCEPTED.filter((one) => !used.has(one)),
      "not needed any more: take them out of infra/iam-wildcards.ts",
    ).toEqual([]);
  });

  test("a new wildcard is found, in an action, in a resource, and as everything but something", () => {
    const one = { owner: "x", kind: "identity", sid: "", effect: "Allow", principals: [], notResources: [], conditions: {} } as const;
    const found = wildcards([
      { ...one, actions: ["s3:Get*"], resources: ["arn:aws:s3:::b"] },
      { ...one, actions: ["s3:GetObject"], resources: ["arn:aws:s3:::b/*", "arn:aws:s3:::c"] },
      { ...one, actions: ["s3:GetObject"], resources: [], notResources: ["arn:aws:s3:::b"] },
      { ...one, effect: "Deny", actions: ["*"], resources: ["*"] },
    ]);
    expect(found.map(({ wildcard }) => wildcard)).toEqual([
      "s3:Get* on arn:aws:s3:::b",
      "s3:GetObject on arn:aws:s3:::b/*",
      "s3:GetObject on everything but arn:aws:s3:::b",
    ]);
  });

  test("no role has a managed policy of AWS, and only Lambda, or the main stack with its word, becomes one", () => {
    const trust = surface.filter(({ kind }) => kind === "trust");
    expect(trust.length).toBe(6);
    for (const { principals, conditions } of trust)
      if (principals[0] !== "lambda.amazonaws.com") {
        expect(principals).toEqual(["arn:aws:iam::111122223333:role/netcheck-triage"]);
        expect(conditions).toEqual({ StringEquals: { "sts:ExternalId": ["netcheck-prod"] } });
      }
  });

  test("nobody outside the account is allowed anything by a policy on a resource", () => {
    const strangers = surface.filter(
      ({ kind, effect, principals }) =>
        kind === "resource" && effect === "Allow" && !principals.every((who) => who.endsWith(".amazonaws.com") || who === "arn:aws:iam::ACCOUNT:root"),
    );
    expect(strangers).toEqual([]);
    // a service acts for whoever asks it: it must say for whom
    const deputies = surface.filter(
      ({ kind, effect, principals, conditions }) =>
        kind === "resource" &&
        effect === "Allow" &&
        principals.some((who) => who.endsWith(".amazonaws.com")) &&
        !/aws:Source(?:Arn|Account)|EncryptionContext/.test(JSON.stringify(conditions)),
    );
    expect(deputies).toEqual([]);
  });
});

describe.each([
  ["the triage function", may(main, "TriageWorkerTriageRole")],
  ["the member role", may(member, "Role")],
])("commands on nodes: %s", (_, role) => {
  const { region, account } = PLACE;
  const document = (name: string, owner = account): Touched => ({ resource: `arn:aws:ssm:${region}:${owner}:document/${name}` });
  const instance = (tags: Record<string, string>, at = region): Touched => ({
    resource: `arn:aws:ec2:${at}:${account}:instance/i-0123456789abcdef0`,
    context: Object.fromEntries(Object.entries(tags).map(([key, value]) => [`ssm:resourceTag/${key}`, value])),
  });
  const hybrid = (tags: Record<string, string>): Touched => ({
    ...instance(tags),
    resource: `arn:aws:ssm:${region}:${account}:managed-instance/mi-0123456789abcdef0`,
  });
  const send = (...touched: Touched[]) => evaluate(role, "ssm:SendCommand", touched);
  const tagged = { netcheck: "enabled" };
  const everything: Statement = {
    owner: "",
    kind: "identity",
    sid: "",
    effect: "Allow",
    principals: [],
    actions: ["*"],
    resources: ["*"],
    notResources: [],
    conditions: {},
  };

  test("our documents run on nodes that carry the tag", () => {
    for (const name of [
      "netcheck-collect-netcheck",
      "netcheck-fix-enable-bridge-netfilter",
      "netcheck-rollback-enable-bridge-netfilter",
      "netcheck-fix-status",
    ]) {
      expect(send(document(name), instance(tagged)), name).toBe("allow");
      expect(send(document(name), hybrid(tagged)), name).toBe("allow");
    }
  });

  test("AWS-RunShellScript never runs, not even if somebody allows everything later", () => {
    for (const owner of ["", "aws", account])
      for (const name of ["AWS-RunShellScript", "AWS-RunRemoteScript", "AWS-RunDocument", "AWSFleetManager-RunShellScript"]) {
        expect(send(document(name, owner), instance(tagged))).toBe("explicit deny");
        expect(evaluate([...role, everything], "ssm:SendCommand", [document(name, owner), instance(tagged)])).toBe("explicit deny");
      }
  });

  test("a node without the tag, or with another value, is out of reach, not even if somebody allows everything later", () => {
    for (const tags of [{}, { netcheck: "disabled" }, { netcheck: "" }, { Netcheck: "enabled" }, { other: "enabled" }]) {
      const ours = document("netcheck-collect-netcheck");
      for (const node of [instance(tags), hybrid(tags)]) {
        expect(send(ours, node)).toBe("explicit deny");
        expect(evaluate([...role, everything], "ssm:SendCommand", [ours, node])).toBe("explicit deny");
      }
    }
  });

  test("a document that somebody else names like ours, and ours in another account or region, are not allowed", () => {
    expect(send(document("netcheck-fix-everything"), instance(tagged))).toBe("implicit deny");
    expect(send(document("netcheck-collect-netcheck", "999988887777"), instance(tagged))).toBe("explicit deny");
    expect(send(document("netcheck-collect-netcheck"), instance(tagged, "us-east-1"))).toBe("explicit deny");
  });

  test("no other name of a document is allowed", () => {
    const ours = new Set(role.flatMap(({ sid, resources }) => (sid.startsWith("OurDocuments") ? resources.map((arn) => arn.split("/")[1]) : [])));
    expect(ours.size).toBeGreaterThan(5);
    const name = fc.oneof(
      fc.stringMatching(/^[A-Za-z0-9_.-]{3,128}$/),
      fc.constantFrom(...[...ours].map((one) => `${one}x`), ...[...ours].map((one) => one?.slice(0, -1) ?? "")),
    );
    fc.assert(fc.property(name, (word) => ours.has(word) || send(document(word), instance(tagged)) !== "allow"));
  });

  test("there is no way around: sessions, automations, associations, other scripts", () => {
    for (const action of [
      "StartSession",
      "StartAutomationExecution",
      "CreateAssociation",
      "CreateDocument",
      "UpdateDocument",
      "UpdateDocumentDefaultVersion",
      "DeleteDocument",
    ])
      expect(evaluate([...role, everything], `ssm:${action}`, [{ resource: "*" }, document("netcheck-collect-netcheck"), instance(tagged)]), action).toBe(
        "explicit deny",
      );
    for (const action of ["iam:PassRole", "sts:AssumeRole", "ec2:RunInstances", "ssm:PutParameter", "kms:ScheduleKeyDeletion", "lambda:UpdateFunctionCode"])
      expect(evaluate(role, action, [{ resource: "arn:aws:iam::111122223333:role/admin" }]), action).toBe("implicit deny");
  });
});

describe("what the code calls", () => {
  const CALLS: Record<string, string> = {
    Get: "dynamodb:GetItem",
    Put: "dynamodb:PutItem",
    BatchGet: "dynamodb:BatchGetItem",
    // its parts need their own permissions
    TransactWrite: "dynamodb:PutItem",
    Query: "dynamodb:Query",
    GetObject: "s3:GetObject",
    PutObject: "s3:PutObject",
    GetParameter: "ssm:GetParameter",
    Invoke: "lambda:InvokeFunction",
    SendDurableExecutionCallbackSuccess: "lambda:SendDurableExecutionCallbackSuccess",
    SendCommand: "ssm:SendCommand",
    CancelCommand: "ssm:CancelCommand",
    ListCommands: "ssm:ListCommands",
    ListCommandInvocations: "ssm:ListCommandInvocations",
    GetCommandInvocation: "ssm:GetCommandInvocation",
    DescribeInstanceInformation: "ssm:DescribeInstanceInformation",
  };
  /** Only people with their own rights do it: `netcheck audit verify`. */
  const NOT_IN_LAMBDA = new Set(["Scan"]);
  const functions = fileURLToPath(new URL("../../functions/", import.meta.url));
  const sources = ["store/dynamodb.ts", "durable/lambda-work.ts", "aws", "transports"].flatMap((place) =>
    place.endsWith(".ts") ? [place] : readdirSync(functions + place, { encoding: "utf8" }).map((name) => `${place}/${name}`),
  );
  const calls = new Set(
    sources.flatMap((file) =>
      [...readFileSync(functions + file, "utf8").matchAll(/new (?:sdk\.)?(\w+?)Command\(|\bpaginate(\w+)\(/g)].map((match) => (match[1] ?? match[2]) as string),
    ),
  );

  test("the triage may do it", () => {
    expect(
      [...calls].filter((call) => CALLS[call] === undefined && !NOT_IN_LAMBDA.has(call)),
      "new calls of AWS: give the role the permission and add them here",
    ).toEqual([]);
    const actions = new Set(may(main, "TriageWorkerTriageRole").flatMap((one) => (one.effect === "Allow" ? one.actions : [])));
    for (const call of Object.keys(CALLS)) {
      expect(actions, call).toContain(CALLS[call]);
      expect([...calls], "not called any more: take the permission away").toContain(call);
    }
  });
});

describe("what a role cannot do to the record", () => {
  const table = "<StoreTable.Arn>";
  const keys = (key: string) => ({ resource: table, context: { "dynamodb:LeadingKeys": [key] } });

  test("the triage deletes nothing of the table", () => {
    const role = may(main, "TriageWorkerTriageRole");
    for (const key of ["I#inc-1", "G#000000000", "P#p-1", "GLOBAL"]) expect(evaluate(role, "dynamodb:DeleteItem", [keys(key)])).toBe("implicit deny");
    for (const action of ["DeleteTable", "UpdateTable", "Scan", "UpdateContinuousBackups", "DeleteBackup"])
      expect(evaluate(role, `dynamodb:${action}`, [{ resource: table }])).toBe("implicit deny");
  });

  test("the reaper only looks", () => {
    const actions = may(main, "ReaperWorkerReaperRole").flatMap((one) => one.actions.filter((action) => action.startsWith("dynamodb:")));
    expect(actions.sort()).toEqual(["dynamodb:GetItem", "dynamodb:Query"]);
  });

  test("no role can read, change or delete what is archived", () => {
    const owners = new Set(surface.filter(({ kind }) => kind === "identity").map(({ owner }) => owner));
    for (const owner of owners)
      for (const action of [
        "s3:GetObject",
        "s3:DeleteObject",
        "s3:DeleteObjectVersion",
        "s3:PutObjectRetention",
        "s3:BypassGovernanceRetention",
        "s3:PutBucketObjectLockConfiguration",
      ])
        expect(evaluate(may(main, owner), action, [{ resource: "<AuditArchiveBucket.Arn>/audit/1.json" }]), `${owner} ${action}`).toBe("implicit deny");
  });

  test("the functions behind the public address reach their own secret and the alias, nothing else", () => {
    for (const owner of ["SlackDoorAckRole", "PagerDoorAckRole"]) {
      const actions = new Set(may(main, owner).flatMap(({ actions }) => actions));
      expect([...actions].sort()).toEqual([
        "kms:Decrypt",
        "lambda:InvokeFunction",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "secretsmanager:GetSecretValue",
        "xray:PutTelemetryRecords",
        "xray:PutTraceSegments",
      ]);
      expect(evaluate(may(main, owner), "lambda:InvokeFunction", [{ resource: "<TriageWorkerTriageFunction.Arn>" }])).toBe("implicit deny");
    }
    expect(evaluate(may(main, "PagerDoorAckRole"), "secretsmanager:GetSecretValue", [{ resource: "<SlackSecret>" }])).toBe("implicit deny");
  });
});
