import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { App, Stack } from "aws-cdk-lib";
import { Bucket } from "aws-cdk-lib/aws-s3";
import { describe, expect, test } from "vitest";
import { checkedApp } from "../../infra/checked-app.ts";
import { type Resource, sampleMain, sampleMember, type Template } from "../../infra/sample.ts";
import { SETTINGS } from "../../infra/settings.ts";

const main = sampleMain({ alarmEmail: "oncall@example.com" });
const member = sampleMember();
/** With other settings. */
const other = sampleMain({ archiveDays: "30", reserve: "no" });
const all = (template: Template, type: string): [string, Resource][] => Object.entries(template.Resources).filter(([, { Type }]) => Type === type);
const one = (template: Template, type: string, name: RegExp = /./): Resource => {
  const found = all(template, type).filter(([id]) => name.test(id));
  expect(
    found.map(([id]) => id),
    `${type} ${String(name)}`,
  ).toHaveLength(1);
  return (found[0] as [string, Resource])[1];
};
/** The key, as a property names it. */
const KEY = { "Fn::GetAtt": [expect.stringMatching(/^EncryptionKey/), "Arn"] };

describe("synth", () => {
  test("a finding that nobody acknowledged stops it", () => {
    const app = checkedApp();
    new Bucket(new Stack(app, "x"), "Open");
    expect(() => app.synth()).toThrow(/AwsSolutions-S1/);
    // and without the checks it would pass: the test would notice if they were not plugged in
    const unchecked = new App();
    new Bucket(new Stack(unchecked, "x"), "Open");
    expect(() => unchecked.synth()).not.toThrow();
  });

  test("it is far below CloudFormation's limits: 500 resources, 1 MB", () => {
    for (const { Nested = [], ...template } of [main, member]) {
      expect(Nested.length).toBeGreaterThan(1);
      for (const one of [template, ...Nested]) {
        expect(Object.keys(one.Resources).length).toBeLessThan(250);
        expect(JSON.stringify(one, undefined, 1).length).toBeLessThan(500_000);
      }
    }
  });

  test("no resource waits for itself: CloudFormation would refuse the stack", () => {
    for (const template of [main, member]) expect(circle(template)).toEqual([]);
    // as a function that is told its own name would
    const itself = { Type: "AWS::Lambda::Function", Properties: { Environment: { Variables: { TRIAGE_FUNCTION: { Ref: "A" } } } } };
    expect(circle({ Resources: { A: itself }, Outputs: {} })).toEqual(["A", "A"]);
  });

  test("the same sources give the same template, byte for byte", () => {
    expect(JSON.stringify(sampleMain({ alarmEmail: "oncall@example.com" }))).toBe(JSON.stringify(main));
  });
});

/** Logical ids that wait for each other, from one back to itself; empty if there are none. */
function circle({ Resources }: Template): string[] {
  const names = (value: unknown): string[] => {
    if (Array.isArray(value)) return value.flatMap(names);
    if (typeof value !== "object" || value === null) return [];
    const { Ref, DependsOn, "Fn::GetAtt": attribute } = value as Record<string, unknown>;
    const here = [Ref, ...[DependsOn].flat(), ...(Array.isArray(attribute) ? [attribute[0]] : [])].filter((name) => typeof name === "string");
    return [...here, ...Object.values(value).flatMap(names)].filter((name) => name in Resources);
  };
  const done = new Set<string>();
  const visit = (id: string, path: readonly string[]): string[] => {
    if (path.includes(id)) return [...path.slice(path.indexOf(id)), id];
    if (done.has(id)) return [];
    for (const next of new Set(names(Resources[id]))) {
      const found = visit(next, [...path, id]);
      if (found.length > 0) return found;
    }
    done.add(id);
    return [];
  };
  for (const id of Object.keys(Resources)) {
    const found = visit(id, []);
    if (found.length > 0) return found;
  }
  return [];
}

describe("data at rest", () => {
  test("one key, rotated, that stays", () => {
    const key = one(main, "AWS::KMS::Key");
    expect(key.Properties["EnableKeyRotation"]).toBe(true);
    expect(key.DeletionPolicy).toBe("Retain");
  });

  test("everything that can be is encrypted with it", () => {
    const table = one(main, "AWS::DynamoDB::Table").Properties;
    expect(table["SSESpecification"]).toEqual({ KMSMasterKeyId: KEY, SSEEnabled: true, SSEType: "KMS" });
    for (const [id, { Properties }] of all(main, "AWS::S3::Bucket").filter(([name]) => !name.startsWith("AccessLogs")))
      expect(Properties["BucketEncryption"].ServerSideEncryptionConfiguration[0].ServerSideEncryptionByDefault, id).toEqual({
        SSEAlgorithm: "aws:kms",
        KMSMasterKeyID: KEY,
      });
    const keyOf: Record<string, string> = {
      "AWS::SQS::Queue": "KmsMasterKeyId",
      "AWS::SecretsManager::Secret": "KmsKeyId",
      "AWS::SNS::Topic": "KmsMasterKeyId",
      "AWS::Logs::LogGroup": "KmsKeyId",
      "AWS::Lambda::Function": "KmsKeyArn",
    };
    for (const [type, property] of Object.entries(keyOf)) {
      const found = all(main, type);
      expect(found.length, type).toBeGreaterThan(0);
      for (const [id, { Properties }] of found) expect(Properties[property], id).toEqual(KEY);
    }
  });

  test("buckets are private, take TLS alone, and stay", () => {
    for (const [id, bucket] of [...all(main, "AWS::S3::Bucket"), ...all(member, "AWS::S3::Bucket")]) {
      expect(bucket.Properties["PublicAccessBlockConfiguration"], id).toEqual({
        BlockPublicAcls: true,
        BlockPublicPolicy: true,
        IgnorePublicAcls: true,
        RestrictPublicBuckets: true,
      });
      expect(bucket.DeletionPolicy, id).toBe("Retain");
    }
  });
});

describe("the record", () => {
  const table = one(main, "AWS::DynamoDB::Table");

  test("the table can be restored to any second, is not deleted by accident, forgets by `expires`, and tells its changes", () => {
    expect(table.Properties).toMatchObject({
      BillingMode: "PAY_PER_REQUEST",
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
      DeletionProtectionEnabled: true,
      TimeToLiveSpecification: { AttributeName: "expires", Enabled: true },
      StreamSpecification: { StreamViewType: "NEW_IMAGE" },
      KeySchema: [
        { AttributeName: "pk", KeyType: "HASH" },
        { AttributeName: "sk", KeyType: "RANGE" },
      ],
      GlobalSecondaryIndexes: [{ IndexName: "list", Projection: { ProjectionType: "ALL" } }],
    });
    expect([table.DeletionPolicy, table.UpdateReplacePolicy]).toEqual(["Retain", "Retain"]);
  });

  test("the archive is locked in compliance mode", () => {
    const { Properties } = one(main, "AWS::S3::Bucket", /^AuditArchive/);
    expect(Properties["ObjectLockEnabled"]).toBe(true);
    expect(Properties["ObjectLockConfiguration"]).toEqual({ ObjectLockEnabled: "Enabled", Rule: { DefaultRetention: { Mode: "COMPLIANCE", Days: 400 } } });
    expect(Properties["VersioningConfiguration"]).toEqual({ Status: "Enabled" });
    const shorter = one(other, "AWS::S3::Bucket", /^AuditArchive/);
    expect(shorter.Properties["ObjectLockConfiguration"].Rule.DefaultRetention.Days).toBe(30);
  });

  test("the stream loses nothing: a failing batch is halved, what fails for good goes to a queue before the stream forgets it", () => {
    const { Properties } = one(main, "AWS::Lambda::EventSourceMapping");
    expect(Properties).toMatchObject({
      BisectBatchOnFunctionError: true,
      FunctionResponseTypes: ["ReportBatchItemFailures"],
      StartingPosition: "TRIM_HORIZON",
    });
    expect(Properties["MaximumRecordAgeInSeconds"]).toBeLessThan(24 * 3600);
    expect(Properties["MaximumRetryAttempts"]).toBeUndefined();
    expect(Properties["DestinationConfig"].OnFailure.Destination).toEqual({ "Fn::GetAtt": [expect.stringMatching(/^ArchiveWorkerFailedQueue/), "Arn"] });
  });

  test("what nodes send goes after 7 days, captures after 400", () => {
    const rules = one(main, "AWS::S3::Bucket", /^Data/).Properties["LifecycleConfiguration"].Rules as { Prefix: string; ExpirationInDays: number }[];
    expect(rules.map(({ Prefix, ExpirationInDays }) => [Prefix, ExpirationInDays])).toEqual([
      ["netcheck/", 7],
      ["blobs/", 400],
    ]);
  });
});

describe("functions", () => {
  const lambda = (name: string): Resource => {
    const found = all(main, "AWS::Lambda::Function").filter(([, { Properties }]) => Properties["Handler"] === `${name}.handler`);
    expect(found, name).toHaveLength(1);
    return (found[0] as [string, Resource])[1];
  };

  test("each runs on Node 24 on arm64, traced, with a log that ends and its own concurrency", () => {
    const reserved = Object.fromEntries(
      all(main, "AWS::Lambda::Function").map(([id, { Properties }]) => {
        expect(Properties, id).toMatchObject({
          Runtime: "nodejs24.x",
          Architectures: ["arm64"],
          TracingConfig: { Mode: "Active" },
          LoggingConfig: { LogFormat: "JSON" },
        });
        return [Properties["Handler"], Properties["ReservedConcurrentExecutions"]];
      }),
    );
    expect(reserved).toEqual({ "slack.handler": 20, "pager.handler": 20, "triage.handler": 50, "reaper.handler": 1, "archive.handler": 5 });
    const logs = all(main, "AWS::Logs::LogGroup");
    expect(logs).toHaveLength(6);
    for (const [, { Properties }] of logs) expect(Properties["RetentionInDays"]).toBe(90);
  });

  test("an account that can reserve no concurrency can do without", () => {
    for (const [, { Properties }] of all(other, "AWS::Lambda::Function")) expect(Properties["ReservedConcurrentExecutions"]).toBeUndefined();
  });

  test("the environment is what the entry points read", () => {
    const variables = (name: string): string[] => Object.keys(lambda(name).Properties["Environment"].Variables).sort();
    expect(variables("slack")).toEqual(["SLACK_SECRET_ARN", "TRIAGE_FUNCTION", "TRIAGE_QUALIFIER"]);
    expect(variables("pager")).toEqual(["PAGER_SECRET_ARN", "TRIAGE_FUNCTION", "TRIAGE_QUALIFIER"]);
    // TRIAGE_FUNCTION comes from Lambda itself: infra/bundle-function.ts
    expect(variables("triage")).toEqual(["BUCKET", "CONFIG_PARAMETER", "NODE_OPTIONS", "SLACK_SECRET_ARN", "TABLE", "TRIAGE_QUALIFIER"]);
    expect(variables("reaper")).toEqual(["BUCKET", "CONFIG_PARAMETER", "TABLE"]);
    expect(variables("archive")).toEqual(["ARCHIVE_BUCKET"]);
  });

  test("the triage is durable; its executions are encrypted and stay on their version, which stays", () => {
    const { Properties } = lambda("triage");
    expect(Properties["DurableConfig"]).toEqual({ ExecutionTimeout: 30 * 24 * 3600, RetentionPeriodInDays: 30, KMSKeyArn: KEY });
    // a name would keep CloudFormation from replacing it, which a changed durable configuration needs
    expect(Properties["FunctionName"]).toBeUndefined();
    expect(Properties["DeadLetterConfig"].TargetArn).toEqual({ "Fn::GetAtt": [expect.stringMatching(/^TriageWorkerFailedQueue/), "Arn"] });
    const [version] = all(main, "AWS::Lambda::Version");
    expect(version?.[1].DeletionPolicy).toBe("Retain");
    const alias = one(main, "AWS::Lambda::Alias").Properties;
    expect(alias["Name"]).toBe("live");
    expect(alias["FunctionVersion"]).toEqual({ "Fn::GetAtt": [version?.[0], "Version"] });
    expect(lambda("slack").Properties["Environment"].Variables["TRIAGE_QUALIFIER"]).toBe("live");
  });

  test("an acknowledgement cannot take longer than Slack waits by much", () => {
    for (const name of ["slack", "pager"]) expect(lambda(name).Properties["Timeout"]).toBeLessThanOrEqual(5);
  });

  test("the reaper runs every five minutes, and what it cannot start with is kept", () => {
    const { Properties } = one(main, "AWS::Events::Rule", /^Reaper/);
    expect(Properties["ScheduleExpression"]).toBe("rate(5 minutes)");
    expect(Properties["Targets"][0].DeadLetterConfig.Arn).toEqual({ "Fn::GetAtt": [expect.stringMatching(/^ReaperWorkerFailedQueue/), "Arn"] });
  });

  test("the digest is asked for every full hour, through the alias, as the triage takes it; and the triage alone reads the keys of monitoring systems", () => {
    const { Properties } = one(main, "AWS::Events::Rule", /^Digest/);
    expect(Properties["ScheduleExpression"]).toBe("cron(0 * * * ? *)");
    const [target] = Properties["Targets"];
    expect(target.Arn).toEqual({ Ref: expect.stringMatching(/^TriageWorkerLive/) });
    expect(JSON.parse(target.Input as string)).toEqual({ kind: "digest", digest: {} });
    expect(target.DeadLetterConfig.Arn).toEqual({ "Fn::GetAtt": [expect.stringMatching(/^TriageWorkerFailedQueue/), "Arn"] });
    const key = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:pagerduty-AbCdEf";
    const paged = sampleMain({ pagerSecrets: key });
    const readers = all(paged, "AWS::IAM::Policy").filter(([, policy]) => JSON.stringify(policy.Properties["PolicyDocument"]).includes(key));
    expect(readers.map(([id]) => id)).toEqual([expect.stringMatching(/^TriageWorkerTriageRole/)]);
  });
});

describe("the address", () => {
  test("POST routes alone, throttled, with an access log that holds no headers and no bodies", () => {
    expect(all(main, "AWS::ApiGatewayV2::Route").map(([, { Properties }]) => Properties["RouteKey"])).toEqual([
      "POST /slack",
      "POST /pager",
      "POST /pager/{source}",
    ]);
    const { Properties } = one(main, "AWS::ApiGatewayV2::Stage");
    expect(Properties["DefaultRouteSettings"]).toMatchObject({ ThrottlingRateLimit: 50, ThrottlingBurstLimit: 100 });
    const format = JSON.parse(Properties["AccessLogSettings"].Format as string) as Record<string, string>;
    expect(Object.values(format).join(" ")).not.toMatch(/header|body|authorizer/i);
  });
});

describe("secrets", () => {
  test("both begin unusable: the signing secret is random, so that no request is taken before somebody fills it in", () => {
    const secrets = all(main, "AWS::SecretsManager::Secret");
    expect(secrets).toHaveLength(2);
    for (const [id, { Properties }] of secrets) {
      expect(Properties["SecretString"], id).toBeUndefined();
      expect(Properties["GenerateSecretString"], id).toMatchObject({ GenerateStringKey: "signingSecret", PasswordLength: 64 });
    }
    expect(one(main, "AWS::SecretsManager::Secret", /^Slack/).Properties["GenerateSecretString"].SecretStringTemplate).toBe('{"botToken":""}');
    // a field for each source of pages that proves itself with one of its own, and none besides
    const pager = one(main, "AWS::SecretsManager::Secret", /^Pager/).Properties["GenerateSecretString"].SecretStringTemplate as string;
    expect(Object.keys(JSON.parse(pager) as object).sort()).toEqual(["alertmanager", "cloudwatch", "grafana", "opsgenie", "pagerduty"]);
  });
});

describe("documents", () => {
  test("one for each script, with patterns for every parameter, which reach it as environment variables", () => {
    for (const template of [main, member]) {
      const documents = (template.Nested ?? []).flatMap((nested) => all(nested, "AWS::SSM::Document")).map(([, { Properties }]) => Properties);
      expect(documents.map((document) => document["Name"] as string)).toContain("netcheck-collect-netcheck");
      expect(documents.map((document) => document["Name"] as string)).toContain("netcheck-fix-status");
      expect(documents.filter(({ Name }) => (Name as string).startsWith("netcheck-fix-")).length).toBeGreaterThan(3);
      for (const { Name, DocumentType, UpdateMethod, Content } of documents) {
        expect([DocumentType, UpdateMethod], Name as string).toEqual(["Command", "NewVersion"]);
        for (const parameter of Object.values(Content.parameters as Record<string, Record<string, string>>))
          expect(parameter, Name as string).toMatchObject({ type: "String", allowedPattern: expect.stringMatching(/^\^.*\$$/s), interpolationType: "ENV_VAR" });
        expect(JSON.stringify(Content.mainSteps), Name as string).not.toContain("{{");
      }
    }
  });
});

describe("alarms", () => {
  test("each tells what it means, and where it goes", () => {
    const alarms = all(main, "AWS::CloudWatch::Alarm");
    for (const [id, { Properties }] of alarms) {
      expect((Properties["AlarmDescription"] as string).length, id).toBeGreaterThan(40);
      expect(Properties["AlarmActions"], id).toEqual([{ Ref: expect.stringMatching(/^AlarmsTopic/) }]);
    }
    const names = alarms.map(([id]) => id.replace(/^Alarms|[0-9A-F]{8}$/g, ""));
    for (const name of ["AckSlow", "AckErrors", "TriageFailed", "StuckApprovals", "LeakedPods", "FixOutcomeUnknown", "TriageDeadLetters", "TriageThrottled"])
      expect(names).toContain(name);
    expect(names.filter((name) => name.endsWith("DeadLetters"))).toHaveLength(3);
    expect(names.filter((name) => name.endsWith("Throttled"))).toHaveLength(6);
  });

  test("our own metrics have the names that functions/aws/metrics.ts writes", () => {
    const ours = all(main, "AWS::CloudWatch::Alarm").filter(([, { Properties }]) => Properties["Namespace"] === "netcheck");
    expect(ours.map(([, { Properties }]) => `${Properties["Dimensions"][0].Value}/${Properties["MetricName"]}`).sort()).toEqual([
      "reaper/LeakedPods",
      "reaper/StuckApprovals",
      "slack/AckMs",
      "triage/FixOutcomeUnknown",
      "triage/TriageFailed",
    ]);
  });

  test("they are mailed if told where, and mail that cannot be delivered is kept", () => {
    const { Properties } = one(main, "AWS::SNS::Subscription");
    expect(Properties).toMatchObject({ Protocol: "email", Endpoint: "oncall@example.com" });
    expect(Properties["RedrivePolicy"].deadLetterTargetArn).toBeDefined();
    expect(all(other, "AWS::SNS::Subscription")).toEqual([]);
  });
});

const root = fileURLToPath(new URL("../../", import.meta.url));
const read = (page: string): string => readFileSync(`${root}docs/${page}`, "utf8");

describe("docs/operations.md", () => {
  const page = read("operations.md");

  test("names every setting, and none that there is not", () => {
    const table = page.split("### Settings")[1]?.split("###")[0] ?? "";
    const named = table
      .split("\n")
      .flatMap((line) => [...(/^\| (`\w+`(?:, `\w+`)*) \|/.exec(line)?.[1] ?? "").matchAll(/`(\w+)`/g)].map((match) => match[1] as string));
    expect(named.sort()).toEqual([...SETTINGS].sort());
  });

  test("names only scripts that there are, and outputs that a stack has", () => {
    const scripts = Object.keys((JSON.parse(readFileSync(`${root}package.json`, "utf8")) as { scripts: Record<string, string> }).scripts);
    for (const [, name] of page.matchAll(/npm run (?:--silent )?([\w:]+)/g)) expect(scripts).toContain(name);
    // by the names that cdk prints and writes: doctor looks for them
    const outputs = [...Object.keys(other.Outputs), ...Object.keys(member.Outputs)];
    for (const name of [
      "SlackUrl",
      "PagerUrl",
      "TableName",
      "ArchiveBucketName",
      "SlackSecretArn",
      "PagerSecretArn",
      "DataBucketName",
      "MemberRole",
      "TriageRole",
      "AlarmTopic",
    ]) {
      expect(page).toContain(name);
      expect(outputs).toContain(name);
    }
  });

  test("the sums of the cost tables are those of their lines", () => {
    const cost = page.split("## Cost")[1] ?? "";
    const [, triage = "", month = ""] = cost.split(/\*\*One triage\*\*|\*\*A month\*\*/);
    const lines = (table: string): number[] => [...table.matchAll(/^\|.*\| ([\d.]+) \|$/gm)].map((match) => Number(match[1]));
    const sum = (numbers: number[]): number => numbers.reduce((all, one) => all + one, 0);
    expect(lines(triage)).toHaveLength(7);
    expect(sum(lines(triage))).toBeCloseTo(0.001135, 8);
    expect(lines(month)).toHaveLength(11);
    expect(Math.round(sum(lines(month)))).toBe(14);
    // and each line is what its arithmetic gives
    const calculations = [...cost.matchAll(/^\|[^|]*\| ([\d.,×+\s()A-Za-z-]+?) \| ([\d.]+) \|$/gm)];
    expect(calculations).toHaveLength(18);
    for (const [, arithmetic = "", dollars = ""] of calculations) {
      const expression = arithmetic
        .replaceAll(/[A-Za-z]+(?:-[a-z]+)?/g, "")
        .replaceAll("()", "")
        .replaceAll(",", "")
        .replaceAll("×", "*");
      const decimals = dollars.split(".")[1]?.length ?? 0;
      expect(calculated(expression).toFixed(decimals), arithmetic).toBe(dollars);
    }
    const alarms = Object.values(other.Resources).filter(({ Type }) => Type === "AWS::CloudWatch::Alarm").length;
    expect(month).toContain(`| alarms | ${alarms} × 0.10 |`);
  });
});

/** Products and sums of plain numbers, with one level of brackets. */
function calculated(expression: string): number {
  const flat = expression.replaceAll(/\(([^()]*)\)/g, (_, inner: string) => String(calculated(inner)));
  return flat.split("+").reduce((sum, product) => sum + product.split("*").reduce((all, factor) => all * Number(factor), 1), 0);
}

describe("docs/security.md", () => {
  test("each threat but a named gap has a test, and the test is there", () => {
    const table = read("security.md").split("## Threats, controls, tests")[1]?.split("\n## ")[0] ?? "";
    const rows = table.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| threat") && !line.startsWith("| ---"));
    expect(rows.length).toBeGreaterThan(12);
    for (const row of rows) {
      const tests = row.split("|").at(-2)?.trim() ?? "";
      if (row.includes("**Gap:**")) continue;
      const files = tests.startsWith("[") ? [] : tests.split(", ");
      expect(tests, row).not.toBe("");
      for (const file of files) expect(existsSync(root + file), file).toBe(true);
    }
  });
});
