import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ssmTransport } from "../../functions/transports/ssm.ts";
import { ssmDocument } from "../../functions/transports/ssm-document.ts";
import type { JobState, Script, Target } from "../../functions/triage/ports.ts";
import { type SsmAgent, type SsmEmulator, startSsm } from "../emulators/ssm.ts";
import { job, result, script, transportContract } from "./contract.ts";

const id = "i-00000000000000001";
const target: Target = { name: "node1", cluster: "prod", transport: "ssm", address: id };

async function start(agent: Partial<SsmAgent> = {}): Promise<SsmEmulator> {
  const emulator = await startSsm({ agents: { [id]: { name: "node1", enter: [], ...agent } } });
  vi.stubEnv("AWS_ENDPOINT_URL_SSM", emulator.url);
  vi.stubEnv("AWS_ENDPOINT_URL_S3", emulator.s3url);
  vi.stubEnv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
  return emulator;
}

const create = (buckets: { outputBucket?: string } = { outputBucket: "outputs" }) =>
  ssmTransport({ cluster: () => ({ region: "eu-central-1", ...buckets }), pollMs: 20 });

function register(emulator: SsmEmulator, what: Script): void {
  const { name, content } = ssmDocument(what);
  emulator.register(name, content);
}

transportContract("ssm", async () => {
  const emulator = await start();
  return {
    transport: () => create(),
    target,
    nowhere: { ...target, name: "nowhere", address: "i-0000000000000000f" },
    register: (what) => register(emulator, what),
    close: () => {
      vi.unstubAllEnvs();
      return emulator.close();
    },
  };
});

describe("ssm", () => {
  let emulator: SsmEmulator;
  beforeEach(async () => {
    emulator = await start();
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await emulator.close();
  });

  const quick = script("quick", "echo done");
  async function begin(what = quick, transport = create()): Promise<string> {
    register(emulator, what);
    return transport.start(target, job("job-1", what));
  }
  const long = script("long", "head -c 30000 /dev/zero | tr '\\0' x");

  test("sends what the operator will look for: the job in the comment, the script as a document", async () => {
    await begin();
    expect(emulator.requests).toMatchObject([
      {
        operation: "SendCommand",
        input: {
          DocumentName: "netcheck-quick",
          InstanceIds: [id],
          Comment: "netcheck job job-1",
          TimeoutSeconds: 60,
          OutputS3BucketName: "outputs",
          Parameters: { nonce: ["0123456789abcdef0123456789abcdef"], job: ["job-1"] },
        },
      },
    ]);
  });

  test("never sends twice: a lost answer is unknown, not a TransportError, and the job is found by its id", async () => {
    emulator.fail({ operation: "SendCommand", error: "drop", times: 1 });
    await expect(begin()).rejects.toMatchObject({ name: "Error", message: expect.stringContaining("ssm: could not start quick on node1: ") });
    expect(emulator.requests.filter(({ operation }) => operation === "SendCommand")).toHaveLength(1);
    const handle = await create().find(target, "job-1");
    expect(await result(create(), target, handle ?? "")).toMatchObject({ state: "done", stdout: "done\n" });
  });

  test.each([
    ["a refusal", { type: "AccessDeniedException", message: "no" }, { name: "TransportError", retryable: false }],
    ["a server error", { type: "InternalServerError", message: "oops", status: 500 }, { name: "Error" }],
  ])("a start that meets %s", async (_what, error, expected) => {
    emulator.fail({ operation: "SendCommand", error, times: 1 });
    await expect(begin()).rejects.toMatchObject(expected);
    expect(emulator.requests).toHaveLength(1);
  });

  test("a throttled start was surely refused: sent again with growing pauses, and given up as retryable", async () => {
    const pauses: number[] = [];
    const random = () => {
      pauses.push(pauses.length);
      return 0;
    };
    const patient = ssmTransport({ cluster: () => ({ region: "eu-central-1" }), pollMs: 20, random });
    emulator.throttle(3, "SendCommand");
    expect(await result(patient, target, await begin(quick, patient))).toMatchObject({ state: "done", stdout: "done\n" });
    expect([emulator.requests.filter(({ operation }) => operation === "SendCommand").length, pauses.length]).toEqual([4, 3]);
    emulator.throttle(5, "SendCommand");
    await expect(begin(quick, patient)).rejects.toMatchObject({ name: "TransportError", retryable: true });
    await expect(begin(quick, patient)).resolves.toBeTypeOf("string");
  });

  test("a service that cannot be connected to was surely not asked", async () => {
    vi.stubEnv("AWS_ENDPOINT_URL_SSM", "http://127.0.0.1:1");
    await expect(begin()).rejects.toMatchObject({ name: "TransportError", retryable: true });
  });

  test("an unregistered document and an unknown node are named", async () => {
    await expect(create().start(target, job("job-1", quick))).rejects.toThrow("the document is not registered");
    register(emulator, quick);
    await expect(create().start({ ...target, address: "i-0000000000000000f" }, job("job-1", quick))).rejects.toThrow(
      "Systems Manager does not know the node in this account and region",
    );
  });

  test("a document that an upgrade changed since is refused: what was approved does not run as something else", async () => {
    register(emulator, script("quick", "echo something else"));
    await expect(create().start(target, job("job-1", quick))).rejects.toThrow(
      expect.objectContaining({ name: "TransportError", retryable: false, message: expect.stringContaining("it was upgraded in the meantime") }),
    );
    expect(emulator.requests.filter(({ operation }) => operation === "SendCommand")).toHaveLength(1);
  });

  test("a value that does not match its pattern is refused by the service as well", async () => {
    const what = script("word", "true", { word: { pattern: "^[a-z]+$", description: "" } });
    register(emulator, what);
    await expect(create().start(target, job("job-1", what, { word: "a;b" }))).rejects.toMatchObject({ name: "TransportError", retryable: false });
  });

  const endings: [NonNullable<SsmAgent["delivery"]>, JobState["state"]][] = [
    ["delayed", "running"],
    ["hang", "running"],
    ["mute", "running"],
    ["terminated", "not-run"],
    ["access-denied", "not-run"],
    ["delivery-timeout", "lost"], // not "not-run": an agent may have taken it
    ["undeliverable", "lost"],
    ["invalid-platform", "not-run"],
  ];
  test.each(endings)("delivery %s: %s", async (delivery, state) => {
    emulator.agents.set(id, { name: "node1", enter: [], delivery });
    const handle = await begin();
    expect(await create().poll(target, handle, 200)).toMatchObject({ state });
  });

  test("an agent that cannot pass environment variables runs nothing", async () => {
    emulator.agents.set(id, { name: "node1", enter: [], environment: false });
    const handle = await begin(script("harm", "echo HARM"));
    expect(await result(create(), target, handle)).toEqual({ state: "not-run", reason: expect.stringContaining("older than 3.3.2746.0") });
  });

  test("throttled looks are repeated; when that does not help the error is retryable", async () => {
    const handle = await begin();
    emulator.throttle(1, "GetCommandInvocation");
    expect(await result(create(), target, handle)).toMatchObject({ state: "done" });
    emulator.throttle(10, "GetCommandInvocation");
    await expect(create().poll(target, handle, 0)).rejects.toMatchObject({ name: "TransportError", retryable: true });
  });

  test("a long answer waits for its upload; without a bucket, or without an upload, it is cut and says so", async () => {
    emulator.lag.object = 2;
    expect(await result(create(), target, await begin(long))).toMatchObject({ truncated: false, stdout: "x".repeat(30_000) });
    const cut = { truncated: true, stdout: "x".repeat(24_000 - "--output truncated--".length) };
    emulator.lag.object = 100;
    expect(await result(create(), target, await begin(long))).toMatchObject({ ...cut, stderr: expect.stringContaining("s3://outputs/netcheck/") });
    expect(await result(create({}), target, await begin(long, create({})))).toMatchObject({ ...cut, stderr: expect.stringContaining("set outputBucket") });
  });

  test("find reads every page, and looks twice because a command may be late in the list", async () => {
    await begin();
    const other = script("other", "true");
    register(emulator, other);
    for (let i = 0; i < 60; i += 1) await create().start(target, job(`other-${i}`, other));
    expect(await create().find(target, "job-1")).toBeDefined();
    emulator.lag.commands = 1;
    await create().start(target, job("late", other));
    expect(await create().find(target, "late")).toBeDefined();
  });

  test("a script that cannot be a document is refused when the document is made", () => {
    expect(() => ssmDocument(script("bad", "echo {{ x }}"))).toThrow('"{{"');
    expect(() => ssmDocument(script("bad", "true", { "with-dash": { pattern: "^$", description: "" } }))).toThrow("with-dash");
  });
});
