import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { durableHandler } from "../../functions/durable/handler.ts";
import { Engine, type Execution } from "../../functions/local/engine.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { scripts } from "../../functions/transports/script.ts";
import { ssmTransport } from "../../functions/transports/ssm.ts";
import { ssmDocument } from "../../functions/transports/ssm-document.ts";
import { type Collected, loadDiagnosis } from "../../functions/triage/collect.ts";
import { collectMany } from "../../functions/triage/collect-many.ts";
import type { Context } from "../../functions/triage/context.ts";
import { examineMany, type FleetBatch, loadFleetBatch } from "../../functions/triage/fleet.ts";
import { collectionPlan } from "../../functions/triage/plan.ts";
import {
  type Batches,
  type BatchJob,
  type Job,
  type JobState,
  type Started,
  type Target,
  type Transport,
  TransportError,
} from "../../functions/triage/ports.ts";
import { collectorAnswer } from "../emulators/collector.ts";
import { startSsm } from "../emulators/ssm.ts";
import { pass, VirtualClock } from "../local/virtual-clock.ts";
import { ALICE, Bench, report } from "./harness.ts";
import { fault, healthy } from "./runbooks.ts";
import { printed } from "./scripted-node.ts";

/** Many nodes in few operations. */

/** Nodes behind a transport that takes them in batches. */
class BatchFleet implements Transport {
  readonly name = "fleet";
  readonly started: { readonly id: string; readonly targets: readonly string[] }[] = [];
  readonly fetched: string[] = [];
  readonly cancelled: string[] = [];
  readonly faulty = new Set<string>();
  /** Called at each start: throws what goes wrong. */
  beforeStart: (call: number) => void = () => undefined;
  /** Called at each look, with its number: throws what goes wrong. */
  beforeLook: (look: number) => void = () => undefined;
  /** How a node is doing, where it is not simply done. */
  state: (target: string, look: number) => JobState | undefined = () => undefined;
  refused: (target: string) => string | undefined = () => undefined;
  #starts = 0;
  looks = 0;

  readonly batches: Batches = {
    size: 50,
    start: async (targets: readonly Target[], job: Job): Promise<readonly Started[]> => {
      this.beforeStart(++this.#starts);
      this.started.push({ id: job.id, targets: targets.map(({ name }) => name) });
      return targets.map(({ name }) => {
        const reason = this.refused(name);
        return reason === undefined ? { ok: true, handle: `${job.id}/command` } : { ok: false, reason };
      });
    },
    poll: (jobs: readonly BatchJob[]) => this.#poll(jobs),
    cancel: async (jobs: readonly BatchJob[]) => {
      this.cancelled.push(...jobs.map(({ target }) => target.name));
    },
  };

  async *#poll(jobs: readonly BatchJob[]): AsyncGenerator<{ job: BatchJob; state: JobState }> {
    const look = ++this.looks;
    for (const job of jobs) {
      this.beforeLook(look);
      const { name } = job.target;
      const state = this.state(name, look) ?? { ...printed(""), capture: { ...(this.faulty.has(name) ? fault : healthy), target: name } };
      if (state.state === "running") continue;
      this.fetched.push(name);
      yield { job, state };
    }
  }

  start = (): Promise<string> => Promise.reject(new Error("one by one"));
  poll = (): Promise<JobState> => Promise.reject(new Error("one by one"));
  find = (): Promise<undefined> => Promise.resolve(undefined);
}

/** The same nodes behind a transport that takes one at a time. */
class SingleFleet implements Transport {
  readonly name = "single";
  readonly jobs = new Map<string, string>();
  readonly released: string[] = [];
  readonly cancelled: string[] = [];
  most = 0;
  looks = 0;
  #now = 0;
  beforeStart: (target: string) => void = () => undefined;
  state: (target: string) => JobState | undefined = () => undefined;

  async start(target: Target, job: Job): Promise<string> {
    this.most = Math.max(this.most, ++this.#now);
    await new Promise(setImmediate);
    this.#now -= 1;
    this.beforeStart(target.name);
    if (this.jobs.has(job.id)) throw new Error(`${job.id} was started twice`);
    this.jobs.set(job.id, target.name);
    return job.id;
  }
  async poll(target: Target): Promise<JobState> {
    this.looks += 1;
    return this.state(target.name) ?? { ...printed(""), capture: { ...healthy, target: target.name } };
  }
  find = async (_target: Target, jobId: string): Promise<string | undefined> => (this.jobs.has(jobId) ? jobId : undefined);
  release = async (target: Target): Promise<void> => void this.released.push(target.name);
  cancel = async (target: Target): Promise<void> => void this.cancelled.push(target.name);
}

const targetsOf = (count: number, cluster = "lab"): Target[] =>
  Array.from({ length: count }, (_, at) => ({ name: `node${at + 1}`, cluster, transport: "fleet", address: `i-${at + 1}` }));

let bench: Bench;
let transport: BatchFleet | SingleFleet;
let fleet: BatchFleet;
let engineClock: VirtualClock;
let engine: Engine;
beforeEach(async () => {
  fleet = new BatchFleet();
  transport = fleet;
  // a real look at nodes that run takes 8 s
  bench = new Bench(() => ({ transport: () => transport, now: () => new Date(engineClock.now() + transport.looks * 8000) }));
  engineClock = new VirtualClock();
  engine = new Engine({ file: ":memory:", clock: engineClock });
  const at = new Date(engineClock.now()).toISOString();
  await bench.store.open(
    { id: "inc-1", target: "lab", cluster: "lab", requester: ALICE, createdAt: at, state: "collecting" },
    { key: "incident-opened", at, actor: ALICE, type: "incident-opened", data: {} },
  );
});
afterEach(async () => {
  await engine.close(0);
  expect(await verifyStore(bench.store)).toEqual([]);
  await bench.close();
});

async function execute<T>(run: (context: Context) => Promise<T>, seconds = 1200): Promise<Execution & { readonly result: T }> {
  engine.start(durableHandler<null>(async (_event, durable) => run({ durable, ports: bench.ports, catalogue: bench.catalogue, report }) as Promise<never>));
  engine.execute("many", null);
  await pass(engine, engineClock, seconds);
  const ended = engine.execution("many");
  if (ended?.status !== "SUCCEEDED") throw new Error(JSON.stringify(ended));
  return ended as Execution & { readonly result: T };
}

const collectAll = (targets: readonly Target[]) =>
  execute<readonly Collected[]>(({ durable, ports, catalogue }) =>
    collectMany(
      durable,
      { ports, catalogue, incident: "inc-1", phase: "all" },
      targets.map((target, at) => ({ target, name: `all/${at + 1}` })),
    ),
  );
const reasons = (all: readonly Collected[]) => all.map((one) => (one.ok ? "ok" : one.reason));

describe("in batches", () => {
  test("120 nodes: three starts, results in order, captures in the store, one audit event per batch", async () => {
    const { result, operations } = await collectAll(targetsOf(120));
    expect(result.map((one) => one.ok && one.key)).toEqual(targetsOf(120).map((_, at) => `captures/inc-1/all/${at + 1}`));
    expect(fleet.started.map(({ id, targets }) => [id, targets.length])).toEqual([
      ["inc-1-all-1", 50],
      ["inc-1-all-2", 50],
      ["inc-1-all-3", 20],
    ]);
    expect(fleet.fetched).toHaveLength(120);
    expect(operations).toBeLessThanOrEqual(2 + 3 * 4);
    const events = await bench.events("collected");
    const nodesOf = (key: string) => events.find((event) => event.key === key)?.data["nodes"] as unknown[];
    expect(["collected/all-1", "collected/all-2", "collected/all-3"].map((key) => nodesOf(key).length)).toEqual([50, 50, 20]);
    expect(nodesOf("collected/all-1")[0]).toEqual({
      target: "node1",
      capture: expect.stringMatching(/^[0-9a-f]{64}$/),
      transport: "fleet",
      outputs: healthy.outputs.length,
      notCollected: 0,
    });
  });

  test("what is remembered does not grow with what nodes print", async () => {
    const { result } = await collectAll(targetsOf(50));
    expect(JSON.stringify(result).length).toBeLessThan(50 * 200);
  });

  test("clusters do not share a batch; the order stays", async () => {
    const [a, b] = [targetsOf(3), targetsOf(3, "other")];
    const mixed = a.flatMap((target, at) => [target, b[at] as Target]);
    fleet.refused = (name) => (name === "node2" ? "gone" : undefined);
    const { result } = await collectAll(mixed);
    expect(fleet.started.map(({ targets }) => targets)).toEqual([
      ["node1", "node2", "node3"],
      ["node1", "node2", "node3"],
    ]);
    expect(reasons(result)).toEqual(["ok", "ok", "gone", "gone", "ok", "ok"]);
  });

  test("nobody to look at", async () => {
    expect(await collectAll([])).toMatchObject({ result: [], operations: 0 });
  });

  test("a node that does not answer costs only itself, whatever the reason", async () => {
    fleet.refused = (name) => (name === "node2" ? "its agent last answered 3 h ago" : undefined);
    fleet.state = (name) =>
      ({
        node3: { state: "lost", reason: "it was stopped" } as const,
        node4: { state: "not-run", reason: "access denied" } as const,
        node5: { ...printed(""), exitCode: 69, stderr: "netcheck: this node has no sed\n" },
        node6: { ...printed(""), exitCode: 70, stderr: "mktemp: failed to create directory via template '/tmp/netcheck.XXXXXX': No space left on device\n" },
      })[name];
    const { result } = await collectAll(targetsOf(7));
    expect(reasons(result)).toEqual([
      "ok",
      "its agent last answered 3 h ago",
      "it was stopped",
      "access denied",
      "this node has no sed (exit code 69)",
      "the node's disk is full: free some space below /tmp and /var; stderr: mktemp: failed to create directory via template '/tmp/netcheck.XXXXXX': No space left on device (exit code 70)",
      "ok",
    ]);
    expect((await bench.events("collected"))[0]?.data["nodes"]).toMatchObject([{}, { problem: expect.stringContaining("3 h ago") }, {}, {}, {}, {}, {}]);
    expect(fleet.cancelled).toEqual([]);
  });

  test("slow nodes: looked at again, those that have answered are not fetched twice", async () => {
    fleet.state = (name, look) => (Number(name.slice(4)) > 5 * look ? { state: "running", detail: "" } : undefined);
    const { result, operations } = await collectAll(targetsOf(20));
    expect(reasons(result).every((reason) => reason === "ok")).toBe(true);
    expect(fleet.fetched).toEqual(targetsOf(20).map(({ name }) => name));
    expect(operations).toBe(1 + 1 + 1 + 3);
  });

  test("a look that fails in the middle: what was kept stays kept", async () => {
    let seen = 0;
    fleet.beforeLook = () => {
      if (++seen === 8) throw new TransportError("fleet: throttled", { retryable: true });
    };
    const { result } = await collectAll(targetsOf(12));
    expect(reasons(result).every((reason) => reason === "ok")).toBe(true);
    expect(fleet.fetched).toEqual(targetsOf(12).map(({ name }) => name));
  });

  test("looking is not allowed any more: the open ones are stopped and have the reason, the others are kept", async () => {
    let seen = 0;
    fleet.beforeLook = () => {
      if (++seen === 3) throw new TransportError("fleet: access denied", { retryable: false });
    };
    const { result } = await collectAll(targetsOf(4));
    expect(reasons(result)).toEqual(["ok", "ok", "fleet: access denied", "fleet: access denied"]);
    expect(fleet.cancelled).toEqual(["node3", "node4"]);
    expect(await bench.events("collected")).toHaveLength(1);
  });

  test("nodes that never answer are given up and stopped", async () => {
    fleet.state = (name) => (name === "node2" ? { state: "running", detail: "" } : undefined);
    const { result, operations } = await collectAll(targetsOf(3));
    expect(reasons(result)).toEqual(["ok", expect.stringMatching(/^no answer came within \d+ s, so the collection was stopped$/), "ok"]);
    expect(fleet.cancelled).toEqual(["node2"]);
    expect(operations).toBeLessThanOrEqual(30);
  });

  test.each([
    ["throttled", () => new TransportError("fleet: throttled", { retryable: true })],
    ["an answer that is lost", () => new Error("fleet: socket hang up")],
  ])("a start that is %s is repeated", async (_what, error) => {
    fleet.beforeStart = (call) => {
      if (call < 3) throw error();
    };
    const { result, operations } = await collectAll(targetsOf(3));
    expect([reasons(result), fleet.started.length, operations]).toEqual([["ok", "ok", "ok"], 1, 1 + 3 + 1]);
  });

  test("a start that is refused: all have the reason", async () => {
    fleet.beforeStart = () => {
      throw new TransportError("fleet: the document is not registered", { retryable: false });
    };
    expect(reasons((await collectAll(targetsOf(2))).result)).toEqual(Array(2).fill("fleet: the document is not registered"));
  });

  test("a batch that fails does not touch the others", async () => {
    fleet.beforeStart = (call) => {
      if (call === 2) throw new TransportError("fleet: no", { retryable: false });
    };
    const { result } = await collectAll(targetsOf(120));
    expect(reasons(result).filter((reason) => reason === "fleet: no")).toHaveLength(50);
    expect(reasons(result).filter((reason) => reason === "ok")).toHaveLength(70);
  });
});

describe("transports without batches", () => {
  let single: SingleFleet;
  beforeEach(() => {
    single = new SingleFleet();
    transport = single;
  });

  test("25 nodes: at most ten at a time in each step, a job each, all cleared away", async () => {
    const { result, operations } = await collectAll(targetsOf(25));
    expect(reasons(result).every((reason) => reason === "ok")).toBe(true);
    expect(new Set(single.jobs.values()).size).toBe(25);
    expect(single.most).toBeLessThanOrEqual(4 * 10);
    expect(single.released.sort()).toEqual(
      targetsOf(25)
        .map(({ name }) => name)
        .sort(),
    );
    expect(operations).toBeLessThanOrEqual(2 + 3 * 4);
  });

  test("one that cannot be started, and one that cannot be looked at", async () => {
    single.beforeStart = (name) => {
      if (name === "node1") throw new TransportError("single: no such node", { retryable: false });
    };
    single.state = (name) => {
      if (name === "node2") throw new TransportError("single: access denied", { retryable: false });
      return undefined;
    };
    expect(reasons((await collectAll(targetsOf(3))).result)).toEqual(["single: no such node", "single: access denied", "ok"]);
  });

  test("the way itself is down for a moment: tried again, and nothing is started twice", async () => {
    let calls = 0;
    single.beforeStart = () => {
      if (++calls <= 3) throw new TransportError("single: the API server is down", { retryable: true });
    };
    expect(reasons((await collectAll(targetsOf(3))).result)).toEqual(["ok", "ok", "ok"]);
    expect(single.jobs.size).toBe(3);
  });

  test("one that never ends is stopped", async () => {
    single.state = (name) => (name === "node1" ? { state: "running", detail: "" } : undefined);
    const { result } = await collectAll(targetsOf(2));
    expect(reasons(result)).toEqual([expect.stringContaining("no answer came"), "ok"]);
    expect([single.cancelled, single.released]).toEqual([["node1"], ["node1", "node2"]]);
  });
});

describe("collected and diagnosed", () => {
  const examine = (targets: readonly Target[]) => execute<readonly FleetBatch[]>((context) => examineMany(context, "inc-1", "fleet", targets));

  test("120 nodes: verdicts are counted, summaries are in the store, few operations", async () => {
    for (const name of ["node1", "node60", "node120"]) fleet.faulty.add(name);
    fleet.refused = (name) => (name === "node7" ? "its agent does not answer" : undefined);
    const { result, operations } = await examine(targetsOf(120));
    expect(result.map(({ nodes, verdicts }) => [nodes, verdicts["cause-found"], verdicts["not-collected"]])).toEqual([
      [50, 1, 1],
      [50, 1, undefined],
      [20, 1, undefined],
    ]);
    expect(operations).toBeLessThanOrEqual(2 + 3 * 5);
    expect(JSON.stringify(result).length).toBeLessThan(1000);
    const summaries = (await Promise.all(result.map(({ key = "" }) => loadFleetBatch(bench.ports, key)))).flat();
    expect(summaries.map(({ target }) => target)).toEqual(targetsOf(120).map(({ name }) => name));
    expect(summaries[6]).toEqual({ target: "node7", cluster: "lab", verdict: "not-collected", causes: [], reason: "its agent does not answer" });
    expect(summaries[59]).toMatchObject({ verdict: "cause-found", causes: ["kube-forward-before-cilium"], capture: "captures/inc-1/fleet/node-60" });
    expect((await loadDiagnosis(bench.ports, summaries[59]?.diagnosis ?? "")).target).toBe("node60");
    expect(await bench.events("diagnosed-many")).toHaveLength(3);
  });

  test("summaries that are gone are told as such", async () => {
    await expect(loadFleetBatch(bench.ports, "fleets/none")).rejects.toThrow("the summaries fleets/none are not in the store any more");
  });
});

test("through Systems Manager's own protocol: 60 nodes in two commands, answers from the bucket, one node silent and one forbidden", async () => {
  const emulator = await startSsm();
  vi.stubEnv("AWS_ENDPOINT_URL_SSM", emulator.url);
  vi.stubEnv("AWS_ENDPOINT_URL_S3", emulator.s3url);
  vi.stubEnv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
  const ssm = ssmTransport({ cluster: () => ({ region: "eu-central-1", outputBucket: "outputs" }), pollMs: 20 });
  const many = new Bench(() => ({ transport: () => ssm, now: () => new Date(engineClock.now()) }));
  try {
    const plan = collectionPlan(many.catalogue, many.config.runbook);
    const { name, content } = ssmDocument(scripts.collect(plan));
    emulator.register(name, content);
    const targets = targetsOf(60).map((target, at) => ({ ...target, address: `i-${String(at + 1).padStart(17, "0")}` }));
    for (const { name: node, address } of targets)
      emulator.agents.set(address, {
        name: node,
        enter: [],
        answer: ({ SSM_nonce = "" }) => ({ stdout: collectorAnswer(node === "node60" ? fault : healthy, plan, SSM_nonce) }),
        ...(node === "node2" ? { ping: "ConnectionLost" as const, lastPing: new Date(Date.now() - 3 * 3_600_000) } : {}),
        ...(node === "node55" ? { forbidden: true } : {}),
      });
    const at = new Date(engineClock.now()).toISOString();
    await many.store.open(
      { id: "inc-1", target: "lab", cluster: "lab", requester: ALICE, createdAt: at, state: "collecting" },
      { key: "incident-opened", at, actor: ALICE, type: "incident-opened", data: {} },
    );
    const { result, operations } = await execute((context) => examineMany({ ...context, ports: many.ports }, "inc-1", "fleet", targets));
    const summaries = (await Promise.all(result.map(({ key = "" }) => loadFleetBatch(many.ports, key)))).flat();
    expect(summaries.filter(({ verdict }) => verdict === "not-collected").map(({ target, reason }) => [target, reason])).toEqual([
      ["node2", expect.stringContaining("its agent last answered 3 h ago (ConnectionLost)")],
      ["node55", expect.stringContaining("may not do ssm:SendCommand on arn:")],
    ]);
    expect(summaries.filter(({ verdict }) => verdict === "cause-found").map(({ target }) => target)).toEqual(["node60"]);
    // two batches, and each was refused once because of one node
    expect(emulator.requests.filter(({ operation }) => operation === "SendCommand")).toHaveLength(4);
    expect(operations).toBeLessThanOrEqual(12);
    expect(await verifyStore(many.store)).toEqual([]);
  } finally {
    vi.unstubAllEnvs();
    await many.close();
    await emulator.close();
  }
});

test("peers of a comparison are asked in one batch", async () => {
  const single = new Bench(() => ({ transport: () => fleet }));
  single.config = { ...single.config, clusters: { lab: { transport: "replay", targets: { node1: {}, node2: {}, node3: {}, node4: {} } } } };
  // the node itself goes its own way: it must not wait for them
  Object.assign(fleet, {
    start: async (_target: Target, job: Job) => job.id,
    poll: async (target: Target) => ({ ...printed(""), capture: { ...fault, target: target.name } }),
  });
  single.engine.execute("inc-1", {
    kind: "triage",
    request: { incident: "inc-1", target: "node1", requester: ALICE, place: { channel: "C" }, against: ["node2", "node3", "node4"] },
  });
  await single.pass(120);
  expect(fleet.started).toEqual([{ id: "inc-1-peers-1", targets: ["node2", "node3", "node4"] }]);
  expect(single.chat.data("inc-1/comparison")).toMatchObject({ peers: "node2, node3, node4", headline: "1 difference worth a look" });
  await single.close();
});

test("a whole triage with its fix stays within 30 operations", async () => {
  const whole = new Bench();
  await whole.ask();
  await whole.click("confirm", { id: "U_BOB", team: "T_LOCAL" });
  expect((await whole.incident()).state).toBe("resolved");
  expect(whole.execution()?.operations).toBeLessThanOrEqual(30);
  await whole.close();
});
