import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { scripts } from "../../functions/transports/script.ts";
import { ssmTransport } from "../../functions/transports/ssm.ts";
import { ssmDocument } from "../../functions/transports/ssm-document.ts";
import type { Batches, BatchJob, JobState, Plan, Script, Started, Target } from "../../functions/triage/ports.ts";
import { framed } from "../emulators/collector.ts";
import { type SsmAgent, type SsmEmulator, startSsm } from "../emulators/ssm.ts";
import { job, result, script } from "./contract.ts";

/** Many nodes with one command; nodes found by tag; answers of tens of megabytes. */

const idOf = (number: number, hybrid = false): string => `${hybrid ? "mi" : "i"}-${String(number).padStart(17, "0")}`;
const targetOf = (number: number, address = idOf(number)): Target => ({ name: `node${number}`, cluster: "prod", transport: "ssm", address });
const quick = script("quick", "echo done");
const nonce = "0123456789abcdef0123456789abcdef";

let emulator: SsmEmulator;
beforeEach(async () => {
  emulator = await startSsm();
  vi.stubEnv("AWS_ENDPOINT_URL_SSM", emulator.url);
  vi.stubEnv("AWS_ENDPOINT_URL_S3", emulator.s3url);
  vi.stubEnv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
  register(quick);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await emulator.close();
});

function register(what: Script): void {
  const { name, content } = ssmDocument(what);
  emulator.register(name, content);
}

/** Nodes 1…count that answer with their id. */
function nodes(count: number, more: Partial<SsmAgent> = {}): Target[] {
  const targets = Array.from({ length: count }, (_, at) => targetOf(at + 1));
  for (const { name, address } of targets)
    emulator.agents.set(address, { name, enter: [], answer: (environment) => ({ stdout: `${address} ${environment["SSM_job"]}` }), ...more });
  return targets;
}

const transport = (more: object = {}) => ssmTransport({ cluster: () => ({ region: "eu-central-1", outputBucket: "outputs", ...more }), pollMs: 20 });
const batches = (): Batches => {
  const { batches: found } = transport();
  if (found === undefined) throw new Error("no batches");
  return found;
};
const jobsOf = (targets: readonly Target[], started: readonly Started[]): BatchJob[] =>
  started.flatMap((one, at) => (one.ok ? [{ target: targets[at] as Target, handle: one.handle }] : []));
/** How the first `count` of the jobs end, in the order of the jobs: which of two that end together is seen first is not promised. */
async function ends(jobs: readonly BatchJob[], count = jobs.length): Promise<Map<string, JobState>> {
  const found = new Map<string, JobState>();
  for await (const { job: ended, state } of batches().poll(jobs, 60_000)) if (found.set(ended.target.name, state).size === count) break;
  return new Map(jobs.flatMap(({ target: { name } }) => (found.has(name) ? [[name, found.get(name) as JobState]] : [])));
}
const count = (operation: string): number => emulator.requests.filter((request) => request.operation === operation).length;

describe("a batch", () => {
  test("50 nodes: one SendCommand, one list per look, one fetch per node, each answer its own", async () => {
    const targets = nodes(50);
    const started = await batches().start(targets, job("job-1", quick));
    expect(new Set(started.map((one) => one.ok && one.handle)).size).toBe(1);
    const found = await ends(jobsOf(targets, started));
    expect([...found].map(([name, state]) => [name, state.state === "done" && state.stdout])).toEqual(
      targets.map(({ name, address }) => [name, `${address} job-1`]),
    );
    expect(emulator.requests.find(({ operation }) => operation === "SendCommand")?.input).toMatchObject({
      Comment: "netcheck job job-1",
      MaxConcurrency: "50",
      MaxErrors: "50",
    });
    expect([count("SendCommand"), count("ListCommands")]).toEqual([1, 1]);
    expect(count("ListCommandInvocations")).toBeLessThanOrEqual(3);
    // one more at most where the service is behind itself
    expect(count("GetCommandInvocation")).toBeLessThanOrEqual(100);
  });

  test("started again under the same id: found, not sent twice; another id is another batch", async () => {
    const targets = nodes(3);
    const first = await batches().start(targets, job("job-1", quick));
    expect(await batches().start(targets, job("job-1", quick))).toEqual(first);
    expect(count("SendCommand")).toBe(1);
    expect(await batches().start(targets, job("job-10", quick))).not.toEqual(first);
  });

  test("a lost answer: not a TransportError, and the next start finds the command", async () => {
    const targets = nodes(3);
    emulator.fail({ operation: "SendCommand", error: "drop", times: 1 });
    await expect(batches().start(targets, job("job-1", quick))).rejects.toMatchObject({ name: "Error" });
    expect((await ends(jobsOf(targets, await batches().start(targets, job("job-1", quick))))).size).toBe(3);
    expect(count("SendCommand")).toBe(1);
  });

  test.each([false, true])("nodes that the service refuses cost only themselves (it does not name them: %s)", async (terse) => {
    const targets = [...nodes(6), targetOf(99)];
    emulator.terse = terse;
    emulator.agents.set(idOf(2), { name: "node2", enter: [], ping: "ConnectionLost", lastPing: new Date(Date.now() - 3 * 3_600_000) });
    emulator.agents.set(idOf(5), { name: "node5", enter: [], ping: "Inactive", lastPing: new Date(Date.now() - 72 * 3_600_000) });
    const started = await batches().start(targets, job("job-1", quick));
    expect(started.map(({ ok }) => ok)).toEqual([true, false, true, true, false, true, false]);
    expect(started[1]).toMatchObject({ reason: expect.stringContaining("its agent last answered 3 h ago (ConnectionLost)") });
    expect(started[4]).toMatchObject({ reason: expect.stringContaining("3 days ago (Inactive)") });
    expect(started[6]).toMatchObject({ reason: expect.stringContaining("does not know the node") });
    expect((await ends(jobsOf(targets, started))).size).toBe(4);
    // refused ones are known again after a crash
    expect((await batches().start(targets, job("job-1", quick))).map(({ ok }) => ok)).toEqual(started.map(({ ok }) => ok));
  });

  test("nodes without the opt-in tag: the policy refuses the whole batch for one of them; they cost only themselves", async () => {
    const targets = [...nodes(4), targetOf(5, idOf(5, true))];
    for (const { name, address } of [targets[1], targets[4]] as Target[]) emulator.agents.set(address, { name, enter: [], forbidden: true });
    const started = await batches().start(targets, job("job-1", quick));
    expect(started.map(({ ok }) => ok)).toEqual([true, false, true, true, false]);
    expect(started[1]).toMatchObject({ reason: expect.stringMatching(/may not do ssm:SendCommand on arn:.*:instance\/i-0+2: allow it in that role's policy/) });
    expect(started[4]).toMatchObject({ reason: expect.stringContaining(":managed-instance/mi-") });
    await expect(transport().start(targets[1] as Target, job("job-2", quick))).rejects.toMatchObject({ name: "TransportError", retryable: false });
  });

  test("nobody is there: nothing is sent twice, everybody has a reason", async () => {
    const targets = [targetOf(1), targetOf(2)];
    expect((await batches().start(targets, job("job-1", quick))).map(({ ok }) => ok)).toEqual([false, false]);
    expect(count("SendCommand")).toBe(1);
  });

  test("each way to end is told apart", async () => {
    const targets = nodes(7);
    const deliveries = ["undeliverable", "delivery-timeout", "access-denied", "invalid-platform", "delayed", "hang"] as const;
    for (const [at, delivery] of deliveries.entries()) emulator.agents.set(idOf(at + 1), { name: `node${at + 1}`, enter: [], delivery });
    const found = await ends(jobsOf(targets, await batches().start(targets, job("job-1", quick))), 5);
    expect(Object.fromEntries([...found].map(([name, { state }]) => [name, state]))).toEqual({
      node1: "lost",
      node2: "lost",
      node3: "not-run",
      node4: "not-run",
      node7: "done",
    });
  });

  test("a list in pages, and one that is behind", async () => {
    const targets = nodes(50);
    emulator.lag.list = 3;
    emulator.lag.invocation = 2;
    const started = await batches().start(targets, job("job-1", quick));
    expect((await ends(jobsOf(targets, started))).size).toBe(50);
  });

  test("throttled looks are repeated; when that does not help the error is retryable", async () => {
    const targets = nodes(3);
    const jobs = jobsOf(targets, await batches().start(targets, job("job-1", quick)));
    emulator.throttle(2, "ListCommandInvocations");
    expect((await ends(jobs)).size).toBe(3);
    emulator.throttle(9, "ListCommandInvocations");
    await expect(ends(jobs)).rejects.toMatchObject({ name: "TransportError", retryable: true });
  });

  test("cancel stops what runs on these nodes, and leaves the others alone", async () => {
    const slow = script("slow", "sleep 60");
    register(slow);
    const targets = nodes(3);
    for (const { name, address } of targets) emulator.agents.set(address, { name, enter: [] });
    const jobs = jobsOf(targets, await batches().start(targets, job("job-1", slow)));
    await batches().cancel(jobs.slice(0, 2));
    const found = await ends(jobs, 2);
    expect([...found].map(([name, { state }]) => [name, state])).toEqual([
      ["node1", "lost"],
      ["node2", "lost"],
    ]);
    await batches().cancel(jobs);
  });
});

describe("nodes found by tag", () => {
  const tags = { targetsByTag: { netcheck: "yes" } };

  test("those with all tags, over several pages, hybrid ones too; asked once a minute", async () => {
    nodes(60, { tags: { netcheck: "yes", Name: "web" }, ip: "10.0.0.5" });
    emulator.agents.set(idOf(61, true), { name: "shop1.example", registered: "till", enter: [], tags: { netcheck: "yes" }, ip: "192.168.0.2" });
    emulator.agents.set(idOf(62), { name: "other", enter: [], tags: { netcheck: "no" } });
    let time = Date.now();
    const one = ssmTransport({ cluster: () => ({ region: "eu-central-1", ...tags }), now: () => time });
    const found = (await one.discover?.("prod")) ?? [];
    expect(found).toHaveLength(61);
    expect(found[0]).toEqual({ address: idOf(1), names: ["node1", "10.0.0.5"] });
    expect(found[60]).toEqual({ address: idOf(61, true), names: ["shop1.example", "shop1", "till", "192.168.0.2"] });
    expect(count("DescribeInstanceInformation")).toBe(2);
    await one.discover?.("prod");
    expect(count("DescribeInstanceInformation")).toBe(2);
    time += 61_000;
    await one.discover?.("prod");
    expect(count("DescribeInstanceInformation")).toBe(4);
    expect(await one.discover?.("prod", "web")).toHaveLength(60);
    expect(await one.discover?.("prod", "nobody")).toEqual([]);
  });

  test("no tags: nobody is asked", async () => {
    expect(await transport().discover?.("prod")).toEqual([]);
    expect(emulator.requests).toEqual([]);
  });

  test("a refusal is told, and not remembered", async () => {
    nodes(1, { tags: { netcheck: "yes" } });
    const one = transport(tags);
    const message = "User: arn:aws:iam::123456789012:role/netcheck is not authorized to perform: ssm:DescribeInstanceInformation on resource: *";
    emulator.fail({ operation: "DescribeInstanceInformation", error: { type: "AccessDeniedException", message }, times: 1 });
    await expect(one.discover?.("prod")).rejects.toThrow(
      "ssm: could not list the nodes of prod: arn:aws:iam::123456789012:role/netcheck may not do ssm:Describe",
    );
    expect(await one.discover?.("prod")).toHaveLength(1);
  });

  test("a hybrid node runs scripts like any other", async () => {
    emulator.agents.set(idOf(3, true), { name: "shop3", enter: [] });
    const target = targetOf(3, idOf(3, true));
    const one = transport();
    expect(await result(one, target, await one.start(target, job("job-1", quick)))).toMatchObject({ state: "done", stdout: "done\n" });
  });
});

describe("large answers", () => {
  const plan: Plan = { runbook: "large", commands: [{ argv: ["big"] }], timeoutSeconds: 5, maxBytes: 1 << 26, intervalSeconds: 1, budgetSeconds: 20 };
  const about = { nonce, plan, target: "node1", transport: "ssm", startedAt: "", truncated: false };
  const target = targetOf(1);
  /** An answer of so many bytes, as a node without gzip sends it. */
  const answer = (bytes: number): Buffer => {
    const text = Buffer.alloc(bytes, "0123456789abcde\n");
    return framed(Buffer.concat([Buffer.from(`#${nonce} 0 - 1 0 0 1 ${text.length} 0 0\n`), text]), nonce, "collect", "raw");
  };
  async function done(stdout: Buffer, cluster: object = {}): Promise<Extract<JobState, { state: "done" }>> {
    emulator.agents.set(target.address, { name: "node1", enter: [], answer: () => ({ stdout }) });
    const one = transport(cluster);
    const state = await result(one, target, await one.start(target, job("job-1", quick)));
    if (state.state !== "done") throw new Error(JSON.stringify(state));
    return state;
  }

  test("50 MB: only the beginning as a string, all of it as a stream, whole and checked", async () => {
    const state = await done(answer(50 << 20));
    expect([state.stdout.length, state.truncated]).toEqual([1 << 20, true]);
    let pieces = 0;
    async function* counted(): AsyncGenerator<Uint8Array> {
      for await (const piece of state.whole?.() ?? []) {
        pieces += 1;
        yield piece;
      }
    }
    const { outputs, notCollected } = await scripts.readLongCapture(counted(), about);
    expect([outputs[0]?.text.length, outputs[0]?.truncated, notCollected]).toEqual([50 << 20, false, []]);
    expect(pieces).toBeGreaterThan(50);
  });

  test("what was changed in the bucket is noticed", async () => {
    const state = await done(answer(2 << 20));
    const [key = ""] = emulator.s3.keys("outputs");
    const stored = Buffer.from(emulator.s3.get("outputs", key) ?? "");
    stored[1_500_000] = 0;
    emulator.s3.put("outputs", key, stored);
    await expect(scripts.readLongCapture(state.whole?.() ?? (async function* () {})(), about)).rejects.toThrow("its checksum does not match");
  });

  test("an upload that has expired between two reads, and one that never came", async () => {
    const state = await done(answer(2 << 20));
    const [key = ""] = emulator.s3.keys("outputs");
    emulator.s3.put("outputs", key, "", 1000);
    await expect(scripts.readLongCapture(state.whole?.() ?? (async function* () {})(), about)).rejects.toMatchObject({
      name: "TransportError",
      retryable: false,
      message: expect.stringContaining("may the node write to the bucket?), or it has expired"),
    });
    emulator.lag.object = 1000;
    const inline = await done(answer(2 << 20));
    expect(inline).toMatchObject({ truncated: true, stderr: expect.stringContaining(`could not read s3://outputs/netcheck/`) });
    expect(scripts.readCapture(inline.stdout, { ...about, truncated: true }).outputs[0]).toMatchObject({ truncated: true });
  });
});
