import { Readable } from "node:stream";
import { GetObjectCommand, HeadObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import {
  CancelCommandCommand,
  CreateDocumentCommand,
  DescribeDocumentCommand,
  DescribeInstanceInformationCommand,
  GetCommandInvocationCommand,
  type GetCommandInvocationCommandOutput,
  GetDocumentCommand,
  ListCommandInvocationsCommand,
  ListCommandsCommand,
  paginateListCommands,
  SendCommandCommand,
  type SendCommandCommandInput,
  SSMClient,
  type SSMServiceException,
  UpdateDocumentCommand,
} from "@aws-sdk/client-ssm";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type SsmEmulator, startSsm } from "./ssm.ts";

const id1 = "i-00000000000000001";
const id2 = "i-00000000000000002";
const hybrid = "mi-00000000000000003";
const credentials = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "secret" };

/** A document whose one step runs a shell script with parameters as environment variables and as text. */
const document = (script: string[], parameters: Record<string, unknown> = {}, timeoutSeconds = "20") => ({
  schemaVersion: "2.2",
  description: "test",
  parameters,
  mainSteps: [{ action: "aws:runShellScript", name: "run", inputs: { timeoutSeconds, runCommand: script } }],
});

let emulator: SsmEmulator;
let ssm: SSMClient;
let s3: S3Client;

beforeEach(async () => {
  emulator = await startSsm({
    agents: { [id1]: { name: "node1", enter: [], ip: "10.0.0.11" }, [id2]: { name: "node2", enter: [] }, [hybrid]: { name: "edge3", enter: [] } },
  });
  const common = { region: "us-east-1", credentials, maxAttempts: 1 };
  ssm = new SSMClient({ ...common, endpoint: emulator.url });
  s3 = new S3Client({ ...common, endpoint: emulator.s3url });
});
afterEach(async () => {
  ssm.destroy();
  s3.destroy();
  await emulator.close();
});

const sendRaw = (input: Partial<SendCommandCommandInput>) => ssm.send(new SendCommandCommand({ DocumentName: "test", InstanceIds: [id1], ...input }));

async function send(input: Partial<SendCommandCommandInput> = {}): Promise<string> {
  return (await sendRaw(input)).Command?.CommandId ?? "";
}

const get = (CommandId: string, InstanceId = id1) => ssm.send(new GetCommandInvocationCommand({ CommandId, InstanceId }));

/** The invocation once the node is done, past the first moment in which it does not exist. */
async function ended(CommandId: string, InstanceId = id1): Promise<GetCommandInvocationCommandOutput> {
  await emulator.settled();
  await get(CommandId, InstanceId).catch(() => undefined);
  return get(CommandId, InstanceId);
}

async function error(promise: Promise<unknown>): Promise<string> {
  const caught = await promise.then(
    () => undefined,
    (reason: SSMServiceException) => reason,
  );
  return `${caught?.name}: ${caught?.message}`;
}

describe("SendCommand", () => {
  test("runs the document's script on the node and reports output and exit code", async () => {
    emulator.register("test", document(["#!/bin/sh", "echo out; echo err >&2", 'echo "$AWS_SSM_INSTANCE_ID"', "exit 3"]));
    const invocation = await ended(await send({ Comment: "netcheck job" }));
    expect(invocation).toMatchObject({
      Status: "Failed",
      StatusDetails: "Failed",
      ResponseCode: 3,
      StandardOutputContent: `out\n${id1}\n`,
      StandardErrorContent: "err\n",
      PluginName: "run",
      Comment: "netcheck job",
    });
    expect(invocation.ExecutionEndDateTime).toMatch(/^\d{4}-/);
  });

  test("the script sees an agent's bare environment and no standard input", async () => {
    emulator.register("test", document(["env | cut -d= -f1 | sort | tr '\\n' ' '; wc -c; pwd | grep -c '^/tmp/'"]));
    const { StandardOutputContent: out } = await ended(await send());
    expect(out).toBe("AWS_SSM_INSTANCE_ID AWS_SSM_REGION_NAME LANG OLDPWD PATH PWD 0\n1\n");
  });

  test.each([
    ["an unknown document", { DocumentName: "nobody" }, "InvalidDocument: Document with name nobody does not exist."],
    ["an unknown version", { DocumentVersion: "7" }, "InvalidDocumentVersion"],
    ["an unknown node", { InstanceIds: ["i-0000000000000000f"] }, "InvalidInstanceId: Instances [[i-0000000000000000f]] not in a valid state for account"],
    ["a name that is no id", { InstanceIds: ["node1"] }, "ValidationException"],
    ["no node", { InstanceIds: [] }, "InvalidInstanceId"],
    ["a node twice", { InstanceIds: [id1, id1] }, "DuplicateInstanceId"],
    ["51 nodes", { InstanceIds: Array.from({ length: 51 }, (_, i) => `i-${String(i).padStart(17, "0")}`) }, "ValidationException"],
    ["a comment of 101 characters", { Comment: "x".repeat(101) }, "ValidationException"],
    ["29 s", { TimeoutSeconds: 29 }, "ValidationException"],
    ["more than 30 days", { TimeoutSeconds: 2_592_001 }, "ValidationException"],
    ["an unknown parameter", { Parameters: { other: ["1"] } }, "InvalidParameters: Parameter other is not defined"],
    ["a missing parameter", { Parameters: {} }, "InvalidParameters: Parameter word is required"],
    ["two values for one", { Parameters: { word: ["a", "b"] } }, "InvalidParameters: Parameter word takes one value"],
    ["a value against the pattern", { Parameters: { word: ["a;b"] } }, "InvalidParameters: Parameter word: value does not match ^[a-z]+$"],
    ["a value that is too long", { Parameters: { word: ["abcdef"] } }, "InvalidParameters: Parameter word: value is longer than 5"],
    ["a value not allowed", { Parameters: { word: ["a"], color: ["blue"] } }, "InvalidParameters: Parameter color: value is not one of allowedValues"],
    ["no integer", { Parameters: { word: ["a"], count: ["x"] } }, "InvalidParameters: Parameter count: value is not an integer"],
  ])("refuses %s", async (_what, input, message) => {
    const parameters = {
      word: { type: "String", allowedPattern: "^[a-z]+$", maxChars: 5 },
      color: { type: "String", allowedValues: ["red", "green"], default: "red" },
      count: { type: "Integer", default: 1 },
    };
    emulator.register("test", document(["true"], parameters));
    expect(await error(sendRaw({ Parameters: { word: ["a"] }, ...input }))).toContain(message);
  });

  test("refuses a node that is offline, takes one that only looks online", async () => {
    emulator.register("test", document(["echo never"]));
    emulator.agents.set(id1, { name: "node1", enter: [], ping: "ConnectionLost" });
    emulator.agents.set(id2, { name: "node2", enter: [], ping: "Online", delivery: "undeliverable" });
    expect(await error(sendRaw({}))).toContain("InvalidInstanceId");
    const command = await send({ InstanceIds: [id2] });
    expect(await ended(command, id2)).toMatchObject({ Status: "Pending", StatusDetails: "Delayed" });
    expect(await get(command, id2)).toMatchObject({ Status: "Failed", StatusDetails: "Undeliverable", ResponseCode: -1, StandardOutputContent: "" });
  });
});

describe("parameters", () => {
  const parameters = {
    plain: { type: "String" },
    safe: { type: "String", interpolationType: "ENV_VAR" },
    lines: { type: "StringList", default: ["echo 1", "echo 2"] },
  };

  test("plain ones are substituted as text, injection included; ENV_VAR ones arrive as variables", async () => {
    const hostile = `x"; echo INJECTED; "`;
    emulator.register("test", document(['echo "{{ plain }}"', 'printf "%s\\n" "$SSM_safe"', "{{ lines }}"], parameters));
    const { StandardOutputContent: out } = await ended(await send({ Parameters: { plain: [hostile], safe: [hostile] } }));
    expect(out).toBe(`x\nINJECTED\n${hostile}\n1\n2\n`);
  });

  test("an agent from before interpolationType sets no variable and substitutes text", async () => {
    emulator.agents.set(id1, { name: "node1", enter: [], environment: false });
    emulator.register("test", document(['echo "[$SSM_safe] [{{safe}}]"'], parameters));
    const { StandardOutputContent: out } = await ended(await send({ Parameters: { plain: [""], safe: ["value"] } }));
    expect(out).toBe("[] [value]\n");
  });
});

describe("just after sending", () => {
  test("the invocation does not exist, then runs, then ends", async () => {
    emulator.register("test", document(["read -r _ </proc/uptime; sleep 0.2"]));
    emulator.lag.invocation = 2;
    const command = await send();
    expect(await error(get(command))).toContain("InvocationDoesNotExist");
    expect(await error(get(command))).toContain("InvocationDoesNotExist");
    expect(await get(command)).toMatchObject({ Status: "InProgress", StatusDetails: "InProgress", ResponseCode: -1, StandardOutputContent: "" });
    await emulator.settled();
    expect(await get(command)).toMatchObject({ Status: "Success", ResponseCode: 0 });
  });

  test("ListCommandInvocations is empty at first; Details hold 2,500 characters", async () => {
    emulator.register("test", document(["head -c 3000 /dev/zero | tr '\\0' x; echo oops >&2"]));
    const CommandId = await send();
    await emulator.settled();
    const list = () => ssm.send(new ListCommandInvocationsCommand({ CommandId, Details: true }));
    expect((await list()).CommandInvocations).toEqual([]);
    const output = (await list()).CommandInvocations?.[0]?.CommandPlugins?.[0]?.Output ?? "";
    expect(output.length).toBe(2500);
    expect(output).toMatch(/x\n---Output truncated---\n----------ERROR-------\noops\n$/);
  });
});

describe("output", () => {
  test("is cut at 24,000 and 8,000 characters, and whole in S3, where it may be late", async () => {
    emulator.register("test", document(["head -c 30000 /dev/zero | tr '\\0' a; head -c 9000 /dev/zero | tr '\\0' b >&2"]));
    emulator.lag.object = 1;
    const command = await send({ OutputS3BucketName: "outputs", OutputS3KeyPrefix: "runs" });
    const { StandardOutputContent: out = "", StandardErrorContent: err = "", StandardOutputUrl: address } = await ended(command);
    expect([out.length, err.length]).toEqual([24_000, 8000]);
    expect(out).toMatch(/a--output truncated--$/);
    expect(err).toMatch(/b--output truncated--$/);
    const Key = `runs/${command}/${id1}/awsrunShellScript/run/stdout`;
    expect(address).toContain(Key);
    const fetch = () => s3.send(new GetObjectCommand({ Bucket: "outputs", Key }));
    expect(await error(fetch())).toContain("NoSuchKey");
    expect((await (await fetch()).Body?.transformToString())?.length).toBe(30_000);
  });

  test("exactly 24,000 characters are not cut; an empty stream is not uploaded", async () => {
    emulator.register("test", document(["head -c 24000 /dev/zero | tr '\\0' a"]));
    const { StandardOutputContent: out = "" } = await ended(await send({ OutputS3BucketName: "outputs" }));
    expect(out).toBe("a".repeat(24_000));
    expect(emulator.s3.keys("outputs").map((key) => key.split("/").at(-1))).toEqual(["stdout"]);
  });
});

describe("commands that do not end well", () => {
  test("a script past its time limit is killed with its children", async () => {
    emulator.register("test", document(["echo before; sleep 60 & sleep 60"], {}, "1"));
    expect(await ended(await send())).toMatchObject({
      Status: "TimedOut",
      StatusDetails: "ExecutionTimedOut",
      ResponseCode: 137,
      StandardOutputContent: "before\n",
    });
  });

  test.each([
    ["delayed", "Pending", "Delayed"],
    ["delivery-timeout", "TimedOut", "DeliveryTimedOut"],
    ["terminated", "Failed", "Terminated"],
    ["access-denied", "Failed", "AccessDenied"],
    ["hang", "InProgress", "InProgress"],
    ["mute", "InProgress", "InProgress"],
  ] as const)("delivery %s: %s, %s", async (delivery, Status, StatusDetails) => {
    emulator.agents.set(id1, { name: "node1", enter: [], delivery });
    emulator.register("test", document(["true"]));
    const command = await send();
    await ended(command);
    expect(await get(command)).toMatchObject({ Status, StatusDetails, ResponseCode: -1 });
  });

  test("CancelCommand stops what runs and nothing that has ended", async () => {
    emulator.register("test", document(["sleep 60"]));
    emulator.register("quick", document(["true"]));
    const [slow, quick] = [await send(), await send({ DocumentName: "quick", InstanceIds: [id2] })];
    for (const CommandId of [slow, quick]) {
      await get(CommandId, CommandId === slow ? id1 : id2).catch(() => undefined);
    }
    while ((await get(quick, id2)).Status === "InProgress");
    for (const CommandId of [slow, quick]) await ssm.send(new CancelCommandCommand({ CommandId }));
    await emulator.settled();
    expect(await get(slow)).toMatchObject({ Status: "Cancelled", StatusDetails: "Cancelled" });
    expect(await get(quick, id2)).toMatchObject({ Status: "Success" });
    expect(await error(ssm.send(new CancelCommandCommand({ CommandId: "0".repeat(36) })))).toContain("InvalidCommandId");
  });
});

test("ListCommands finds a command by its comment, over several pages, newest first", async () => {
  emulator.register("test", document(["true"]));
  for (let i = 0; i < 7; i += 1) await send({ Comment: `netcheck job${i}`, InstanceIds: i === 3 ? [id1, id2] : [id1] });
  const comments: (string | undefined)[] = [];
  for await (const page of paginateListCommands({ client: ssm, pageSize: 3 }, {})) for (const command of page.Commands ?? []) comments.push(command.Comment);
  expect(comments).toEqual([6, 5, 4, 3, 2, 1, 0].map((i) => `netcheck job${i}`));
  await emulator.settled();
  const { Commands } = await ssm.send(new ListCommandsCommand({ InstanceId: id2 }));
  expect(Commands).toMatchObject([{ Comment: "netcheck job3", TargetCount: 2, CompletedCount: 2, Status: "Success" }]);
  expect(Commands?.[0]?.RequestedDateTime).toBeInstanceOf(Date);
});

test("DescribeInstanceInformation: filters, pages, hybrid nodes, stale status", async () => {
  emulator.agents.set(id2, { name: "node2", enter: [], ping: "ConnectionLost" });
  const describeAll = (input: object) => ssm.send(new DescribeInstanceInformationCommand(input));
  const lost = await describeAll({ Filters: [{ Key: "PingStatus", Values: ["ConnectionLost", "Inactive"] }] });
  expect(lost.InstanceInformationList?.map(({ ComputerName }) => ComputerName)).toEqual(["node2"]);
  const edge = await describeAll({ Filters: [{ Key: "InstanceIds", Values: [hybrid] }] });
  expect(edge.InstanceInformationList).toMatchObject([{ InstanceId: hybrid, ResourceType: "ManagedInstance", PingStatus: "Online" }]);
  const first = await describeAll({ MaxResults: 2 });
  const second = await describeAll({ MaxResults: 2, NextToken: first.NextToken });
  expect([...(first.InstanceInformationList ?? []), ...(second.InstanceInformationList ?? [])].map(({ InstanceId }) => InstanceId)).toEqual([id1, id2, hybrid]);
  expect(second.NextToken).toBeUndefined();
});

test("DescribeInstanceInformation: by tags, all of them; never mixed with other filters", async () => {
  emulator.agents.set(id1, { name: "node1", enter: [], tags: { team: "net", Name: "web" } });
  emulator.agents.set(hybrid, { name: "edge3", enter: [], tags: { team: "net" }, registered: "till", platform: "Windows", lastPing: new Date(1_000_000) });
  const describeBy = (...Filters: { Key: string; Values: string[] }[]) => ssm.send(new DescribeInstanceInformationCommand({ Filters }));
  const team = { Key: "tag:team", Values: ["net", "sre"] };
  expect((await describeBy(team)).InstanceInformationList?.map(({ InstanceId }) => InstanceId)).toEqual([id1, hybrid]);
  expect((await describeBy(team, { Key: "tag:Name", Values: ["web"] })).InstanceInformationList?.map(({ InstanceId }) => InstanceId)).toEqual([id1]);
  expect((await describeBy({ Key: "PlatformType", Values: ["Windows"] })).InstanceInformationList).toMatchObject([
    { InstanceId: hybrid, Name: "till", PlatformType: "Windows", LastPingDateTime: new Date(1_000_000) },
  ]);
  expect(await error(describeBy(team, { Key: "PingStatus", Values: ["Online"] }))).toContain("Tag filters can't be combined");
  expect(await error(describeBy({ Key: "InstanceIds", Values: Array(101).fill(id1) }))).toContain("ValidationException");
});

test("ListCommands by document and by time", async () => {
  for (const name of ["one", "two"]) emulator.register(name, document(["true"]));
  for (const DocumentName of ["one", "two", "one"]) await send({ DocumentName });
  const count = async (key: "DocumentName" | "InvokedAfter" | "InvokedBefore", value: string) =>
    (await ssm.send(new ListCommandsCommand({ Filters: [{ key, value }] }))).Commands?.length;
  const [past, future] = [-60_000, 60_000].map((ms) => `${new Date(Date.now() + ms).toISOString().slice(0, 19)}Z`) as [string, string];
  expect([await count("DocumentName", "one"), await count("DocumentName", "three")]).toEqual([2, 0]);
  expect([await count("InvokedAfter", past), await count("InvokedAfter", future), await count("InvokedBefore", future)]).toEqual([3, 0, 3]);
  await expect(count("InvokedAfter", "yesterday")).rejects.toThrow("isn't valid");
});

test("a node that is terminated while its script runs ends as undeliverable; a node that only answers runs nothing", async () => {
  emulator.register("test", document(["sleep 60"]));
  emulator.agents.set(id2, { name: "node2", enter: [], answer: () => ({ stdout: "canned", code: 3 }) });
  const command = await send({ InstanceIds: [id1, id2] });
  await get(command).catch(() => undefined);
  expect(await get(command)).toMatchObject({ Status: "InProgress" });
  emulator.agents.delete(id1);
  await get(command);
  expect(await get(command)).toMatchObject({ Status: "Failed", StatusDetails: "Undeliverable", ResponseCode: -1 });
  await get(command, id2).catch(() => undefined);
  expect(await get(command, id2)).toMatchObject({ StandardOutputContent: "canned", ResponseCode: 3 });
});

test("documents: created, read, updated; bad ones refused", async () => {
  const Content = JSON.stringify(document(["true"]));
  await ssm.send(new CreateDocumentCommand({ Name: "doc", Content, DocumentType: "Command" }));
  expect(await error(ssm.send(new CreateDocumentCommand({ Name: "doc", Content })))).toContain("DocumentAlreadyExists");
  expect(await error(ssm.send(new UpdateDocumentCommand({ Name: "doc", Content })))).toContain("DuplicateDocumentContent");
  await ssm.send(new UpdateDocumentCommand({ Name: "doc", Content: JSON.stringify(document(["false"])), DocumentVersion: "$LATEST" }));
  expect((await ssm.send(new DescribeDocumentCommand({ Name: "doc" }))).Document).toMatchObject({ LatestVersion: "2", SchemaVersion: "2.2" });
  expect((await ssm.send(new GetDocumentCommand({ Name: "doc", DocumentVersion: "1" }))).Content).toBe(Content);
  const create = (content: unknown) => ssm.send(new CreateDocumentCommand({ Name: "bad", Content: JSON.stringify(content) }));
  expect(await error(create({ ...document([]), schemaVersion: "9" }))).toContain("InvalidDocumentContent");
  expect(await error(create(document(["echo {{ nowhere }}"])))).toContain("InvalidDocumentContent: Parameter nowhere is used and not defined");
  expect(await error(create(document(["true"], { "with-dash": { type: "String" } })))).toContain("InvalidDocumentContent");
  expect(await error(create(document(["x".repeat(70_000)])))).toContain("MaxDocumentSizeExceeded");
});

describe("the service itself goes wrong", () => {
  test("throttling, by operation and count", async () => {
    emulator.register("test", document(["true"]));
    emulator.throttle(1, "SendCommand");
    await ssm.send(new ListCommandsCommand({}));
    expect(await error(sendRaw({}))).toBe("ThrottlingException: Rate exceeded");
    await send();
  });

  test("an answer that never arrives: the command runs all the same", async () => {
    emulator.register("test", document(["true"]));
    emulator.fail({ operation: "SendCommand", error: "drop", times: 1 });
    await expect(send({ Comment: "lost" })).rejects.toThrow();
    const { Commands } = await ssm.send(new ListCommandsCommand({}));
    expect(Commands?.map(({ Comment }) => Comment)).toEqual(["lost"]);
  });

  test("an SDK that retries sends the command twice: why netcheck must not", async () => {
    const retrying = new SSMClient({ region: "us-east-1", credentials, endpoint: emulator.url, maxAttempts: 2 });
    emulator.register("test", document(["true"]));
    emulator.fail({ operation: "SendCommand", error: "drop", times: 1 });
    await retrying.send(new SendCommandCommand({ DocumentName: "test", InstanceIds: [id1] }));
    retrying.destroy();
    expect((await ssm.send(new ListCommandsCommand({}))).Commands).toHaveLength(2);
  });

  test("a clock that is an hour off is refused, either way; an SDK that may repeat learns the time from the refusal", async () => {
    for (const [offset, words] of [
      [3_600_000, "Signature expired"],
      [-3_600_000, "Signature not yet current"],
    ] as const) {
      emulator.clockOffset = offset;
      const strict = new SSMClient({ region: "us-east-1", credentials, endpoint: emulator.url, maxAttempts: 1 });
      expect(await error(strict.send(new ListCommandsCommand({})))).toContain(`InvalidSignatureException: ${words}`);
      await strict.send(new ListCommandsCommand({}));
      strict.destroy();
    }
  });

  test("a refused node is not always named", async () => {
    emulator.register("test", document(["true"]));
    emulator.terse = true;
    expect(await error(sendRaw({ InstanceIds: [id1, "i-0000000000000000f"] }))).toMatch(/^InvalidInstanceId: (?:UnknownError)?$/);
  });

  test("unsigned requests are refused", async () => {
    const response = await fetch(emulator.url, { method: "POST", headers: { "x-amz-target": "AmazonSSM.ListCommands" }, body: "{}" });
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ __type: "MissingAuthenticationTokenException" });
  });
});

describe("S3", () => {
  test("objects: put, head, get, a range, a list in pages", async () => {
    const put = (Key: string, Body: string, extra = {}) => s3.send(new PutObjectCommand({ Bucket: "b", Key, Body, ...extra }));
    for (const key of ["a/1 &.txt", "a/2", "b/3"]) await put(key, `body of ${key}`);
    expect(await error(put("a/2", "again", { IfNoneMatch: "*" }))).toContain("PreconditionFailed");
    expect((await s3.send(new HeadObjectCommand({ Bucket: "b", Key: "a/2" }))).ContentLength).toBe(11);
    expect(await error(s3.send(new HeadObjectCommand({ Bucket: "b", Key: "none" })))).toContain("NotFound");
    const part = await s3.send(new GetObjectCommand({ Bucket: "b", Key: "a/1 &.txt", Range: "bytes=8-10" }));
    expect([await part.Body?.transformToString(), part.ContentRange]).toEqual(["a/1", "bytes 8-10/17"]);
    expect(await error(s3.send(new GetObjectCommand({ Bucket: "b", Key: "a/2", Range: "bytes=99-" })))).toContain("InvalidRange");
    const first = await s3.send(new ListObjectsV2Command({ Bucket: "b", Prefix: "a/", MaxKeys: 1 }));
    expect(first.Contents?.map(({ Key }) => Key)).toEqual(["a/1 &.txt"]);
    const second = await s3.send(new ListObjectsV2Command({ Bucket: "b", Prefix: "a/", ContinuationToken: first.NextContinuationToken }));
    expect(second.Contents?.map(({ Key, Size }) => [Key, Size])).toEqual([["a/2", 11]]);
    expect(second.IsTruncated).toBe(false);
  });

  test("a streamed body arrives without its chunk framing", async () => {
    const stream = Readable.from([Buffer.from("x".repeat(70_000))]);
    await s3.send(new PutObjectCommand({ Bucket: "b", Key: "stream", Body: stream, ContentLength: 70_000 }));
    expect(emulator.s3.get("b", "stream")?.toString()).toBe("x".repeat(70_000));
  });
});
