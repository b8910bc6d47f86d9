import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ssmTransport } from "../../functions/transports/ssm.ts";
import { ssmDocument } from "../../functions/transports/ssm-document.ts";
import type { Script, Target, Transport } from "../../functions/triage/ports.ts";
import { type SsmAgent, type SsmEmulator, startSsm } from "../emulators/ssm.ts";
import { type StsEmulator, startSts } from "../emulators/sts.ts";
import { job, result, script } from "./contract.ts";

/** What goes wrong between netcheck and a node, and what people are told of it. */

const id = "i-00000000000000001";
const target: Target = { name: "node1", cluster: "prod", transport: "ssm", address: id };
const quick = script("quick", "echo done");
const ROLE = "arn:aws:iam::210987654321:role/netcheck-nodes";
const HOUR = 3_600_000;

let emulator: SsmEmulator;
let sts: StsEmulator;
beforeEach(async () => {
  emulator = await startSsm({ agents: { [id]: { name: "node1", enter: [] } } });
  sts = await startSts({ [ROLE]: { externalId: "ours" } });
  vi.stubEnv("AWS_ENDPOINT_URL_SSM", emulator.url);
  vi.stubEnv("AWS_ENDPOINT_URL_S3", emulator.s3url);
  vi.stubEnv("AWS_ENDPOINT_URL_STS", sts.url);
  vi.stubEnv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
  register(quick);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await emulator.close();
  await sts.close();
});

function register(what: Script): void {
  const { name, content } = ssmDocument(what);
  emulator.register(name, content);
}

const create = (cluster: object = {}): Transport =>
  ssmTransport({ cluster: () => ({ region: "eu-central-1", outputBucket: "outputs", ...cluster }), pollMs: 20 });
const agent = (more: Partial<SsmAgent>) => emulator.agents.set(id, { name: "node1", enter: [], ...more });
const begin = (transport = create(), what = quick) => transport.start(target, job("job-1", what));
const ask = async (transport = create(), what = quick) => result(transport, target, await begin(transport, what));
const count = (operation: string): number => emulator.requests.filter((request) => request.operation === operation).length;

test("a connection that was closed while nobody looked takes no command: each goes by one of its own", async () => {
  let nth = 0;
  const used = new Set<Socket>();
  const server = createServer((request, response) => {
    // as behind a load balancer that has forgotten the connection: what is sent on it again is lost
    if (used.has(request.socket)) return void request.socket.resetAndDestroy();
    used.add(request.socket);
    request.resume();
    nth += 1;
    response.writeHead(200, { "content-type": "application/x-amz-json-1.1" });
    response.end(JSON.stringify({ Command: { CommandId: `command-${nth}` } }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  vi.stubEnv("AWS_ENDPOINT_URL_SSM", `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    const transport = create();
    for (const handle of ["command-1", "command-2", "command-3"]) expect(await begin(transport)).toBe(handle);
    expect(used.size).toBe(3);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

describe("agents that are not well", () => {
  test.each([
    ["ConnectionLost", 3 * HOUR, "its agent last answered 3 h ago (ConnectionLost)"],
    ["Inactive", 50 * HOUR, "its agent last answered 2 days ago (Inactive)"],
    ["ConnectionLost", 15 * 60_000, "its agent last answered 15 min ago (ConnectionLost)"],
  ] as const)("%s: tried once all the same, and told when it last answered", async (ping, age, words) => {
    agent({ ping, lastPing: new Date(Date.now() - age) });
    await expect(begin()).rejects.toMatchObject({ name: "TransportError", retryable: false, message: expect.stringContaining(words) });
    await expect(begin()).rejects.toThrow("Check that the node runs and that amazon-ssm-agent is running on it");
    expect(count("SendCommand")).toBe(2);
  });

  test("said to be online, but silent for an hour: the command is not taken, and that is told", async () => {
    agent({ delivery: "delivery-timeout", lastPing: new Date(Date.now() - HOUR) });
    expect(await ask()).toEqual({
      state: "lost",
      reason:
        "Systems Manager says DeliveryTimedOut: the node did not take the command in time. Check that the node runs and that amazon-ssm-agent is running on it and reaches Systems Manager, then run the triage again; its agent last answered 60 min ago (Online)",
    });
  });

  test.each([
    ["undeliverable", "lost", "stopped, terminated or not answering"],
    ["access-denied", "not-run", "may not run commands on this node: allow ssm:SendCommand"],
    ["invalid-platform", "not-run", "the document is for Linux and the node is not"],
    ["terminated", "not-run", "Run the triage again"],
  ] as const)("%s says what to do", async (delivery, state, words) => {
    agent({ delivery });
    expect(await ask()).toEqual({ state, reason: expect.stringContaining(words) });
  });

  test("a node that is terminated while the script runs", async () => {
    const slow = script("slow", "sleep 30");
    register(slow);
    const transport = create();
    const handle = await begin(transport, slow);
    expect(await transport.poll(target, handle, 100)).toMatchObject({ state: "running" });
    emulator.agents.delete(id);
    expect(await result(transport, target, handle)).toEqual({
      state: "lost",
      reason: expect.stringMatching(/^Systems Manager says Undeliverable: .*; Systems Manager does not know the node in this account and region/),
    });
  });

  test("a script that takes too long: stopped, told as such", async () => {
    const stuck = script("stuck", "sleep 60", {}, 1);
    register(stuck);
    expect(await ask(create(), stuck)).toEqual({ state: "lost", reason: expect.stringContaining("did not end in time and was stopped") });
  });

  test("the agent's state is an extra: where it may not be asked, the rest is told", async () => {
    agent({ delivery: "undeliverable" });
    emulator.fail({ operation: "DescribeInstanceInformation", error: { type: "AccessDeniedException", message: "no" }, times: 1 });
    expect(await ask()).toMatchObject({ state: "lost", reason: expect.stringMatching(/^Systems Manager says Undeliverable: .*run the triage again$/) });
  });

  test("cancel stops what runs; what has ended stays", async () => {
    const slow = script("slow", "sleep 60");
    register(slow);
    const transport = create();
    const handle = await begin(transport, slow);
    await transport.cancel?.(target, handle);
    expect(await result(transport, target, handle)).toMatchObject({
      state: "lost",
      reason: "Systems Manager says Cancelled: the command was cancelled in Systems Manager",
    });
    const other = await transport.start(target, job("job-2", quick));
    await result(transport, target, other);
    await transport.cancel?.(target, other);
    expect(await transport.poll(target, other, 0)).toMatchObject({ state: "done" });
    await expect(transport.cancel?.(target, "0".repeat(36))).rejects.toMatchObject({ name: "TransportError" });
  });
});

describe("credentials and permissions", () => {
  const who = "arn:aws:sts::123456789012:assumed-role/netcheck-triage/netcheck";
  const denied = (more: string) =>
    `User: ${who} is not authorized to perform: ssm:SendCommand on resource: arn:aws:ec2:eu-central-1:123456789012:instance/${id} ${more}`;
  test.each([
    [
      "a missing permission",
      { type: "AccessDeniedException", message: denied("because no identity-based policy allows the ssm:SendCommand action") },
      `${who} may not do ssm:SendCommand on arn:aws:ec2:eu-central-1:123456789012:instance/${id}: allow it in that role's policy`,
    ],
    [
      "an explicit deny",
      { type: "AccessDeniedException", message: denied("with an explicit deny in a service control policy") },
      "a policy denies it explicitly",
    ],
    ["an expired session", { type: "ExpiredTokenException", message: "The security token included in the request is expired" }, "the AWS session has expired"],
    [
      "unknown credentials",
      { type: "UnrecognizedClientException", message: "The security token included in the request is invalid." },
      "AWS does not know these credentials",
    ],
    ["a wrong secret", { type: "InvalidSignatureException", message: "The request signature we calculated does not match" }, "the secret key does not belong"],
    ["throttling", { type: "ThrottlingException", message: "Rate exceeded" }, "AWS lets this account ask no more for the moment"],
  ])("%s", async (what, error, words) => {
    emulator.fail({ operation: "*", error, times: 20 });
    const retryable = what === "throttling";
    await expect(begin()).rejects.toMatchObject({ name: "TransportError", retryable, message: expect.stringContaining(words) });
    await expect(create().poll(target, "0".repeat(36), 0)).rejects.toMatchObject({ retryable, message: expect.stringContaining(words) });
    await expect(create().batches?.start([target], job("job-1", quick))).rejects.toMatchObject({ retryable, message: expect.stringContaining(words) });
  });

  test("no credentials at all", async () => {
    for (const name of ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]) vi.stubEnv(name, undefined);
    vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
    vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/credentials");
    vi.stubEnv("AWS_CONFIG_FILE", "/nowhere/config");
    await expect(begin()).rejects.toMatchObject({
      name: "TransportError",
      retryable: false,
      message: expect.stringContaining("netcheck has no AWS credentials"),
    });
  });

  test("a cluster without a region", async () => {
    await expect(create({ region: undefined }).start(target, job("job-1", quick))).rejects.toThrow("could not reach the cluster prod: it has no region");
  });

  test("our clock is wrong: learned from the refusal, and the command is sent once", async () => {
    emulator.clockOffset = HOUR;
    expect(await ask()).toMatchObject({ state: "done", stdout: "done\n" });
    expect(count("SendCommand")).toBe(1);
  });

  test("a clock that cannot be put right is told as such", async () => {
    const error = { type: "InvalidSignatureException", message: "Signature expired: 20260101T000000Z is now earlier than 20260101T010000Z" };
    emulator.fail({ operation: "SendCommand", error, times: 5 });
    await expect(begin()).rejects.toMatchObject({
      retryable: false,
      message: expect.stringContaining("clock of AWS differ by more than five minutes: set it (NTP)"),
    });
    expect(count("SendCommand")).toBe(2);
  });
});

describe("nodes of another account", () => {
  const other = () => create({ role: ROLE, externalId: "ours" });

  test("the role is assumed once, and all requests are signed with its session", async () => {
    const transport = other();
    const [first, second] = await Promise.all([begin(transport), transport.start(target, job("job-2", quick))]);
    for (const handle of [first, second]) await result(transport, target, handle);
    expect(sts.assumed).toEqual([{ role: ROLE, session: "netcheck", externalId: "ours", accessKey: expect.stringMatching(/^ASIA/) }]);
    expect(new Set(emulator.requests.map(({ accessKey }) => accessKey))).toEqual(new Set([sts.assumed[0]?.accessKey]));
  });

  test("a session that is about to end is renewed", async () => {
    sts.roles.set(ROLE, { externalId: "ours", seconds: 200 });
    const transport = other();
    await begin(transport);
    await transport.start(target, job("job-2", quick));
    expect(sts.assumed.length).toBeGreaterThan(1);
  });

  test("clusters of different accounts have their own sessions", async () => {
    const transport = ssmTransport({
      cluster: (name) => ({ region: "eu-central-1", ...(name === "prod" ? { role: ROLE, externalId: "ours" } : {}) }),
      pollMs: 20,
    });
    await begin(transport);
    await transport.start({ ...target, cluster: "own" }, job("job-2", quick));
    expect(emulator.requests.map(({ accessKey }) => accessKey)).toEqual([sts.assumed[0]?.accessKey, "AKIDEXAMPLE"]);
  });

  test.each([
    ["a wrong external id", { role: ROLE, externalId: "theirs" }],
    ["a role that does not trust us", { role: "arn:aws:iam::210987654321:role/other" }],
  ])("%s: surely not started, and told what to allow", async (_what, cluster) => {
    await expect(begin(create(cluster))).rejects.toMatchObject({
      name: "TransportError",
      retryable: false,
      message: expect.stringMatching(
        /^ssm: could not assume the role arn:.* may not do sts:AssumeRole on .* must also trust netcheck's role, with the external id/,
      ),
    });
    expect(emulator.requests).toEqual([]);
  });

  test("STS is busy for a moment: retryable, and the next try asks again", async () => {
    for (let i = 0; i < 3; i += 1) sts.fail({ code: "Throttling", message: "Rate exceeded" });
    const transport = other();
    await expect(begin(transport)).rejects.toMatchObject({ name: "TransportError", retryable: true });
    expect(await ask(transport)).toMatchObject({ state: "done" });
  });
});
