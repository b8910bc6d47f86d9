import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SqliteStore } from "../../functions/store/sqlite.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { Config } from "../../functions/triage/config.ts";
import { type Discovered, type Target, type Transport, TransportError } from "../../functions/triage/ports.ts";
import { image } from "../transports/pods.ts";
import { live, remains } from "./crash-flow.ts";
import { Bench, BOB, CAROL } from "./harness.ts";
import { healthy } from "./runbooks.ts";
import type { ScriptedNode } from "./scripted-node.ts";

/** Where the first transport could not look at a node, the cluster's other one is tried; never for a fix. */

const debugPods = { image, access: { by: "in-cluster" } };
const policy = [{ id: "sre", effect: "allow", approvers: ["S_SRE", "U_BOB"] }];
const configOf = (cluster: object = {}): Config =>
  Config.parse({
    clusters: {
      prod: {
        transport: "ssm",
        fallback: "debug-pod",
        debugPods,
        targets: { node2: { address: "i-00000000000000002", fallbackAddress: "worker-2" } },
        ...cluster,
      },
    },
    policy,
  });

/** One node behind two transports: what is done through either is done to it. */
class Door implements Transport {
  readonly name: string;
  readonly node: ScriptedNode;
  /** What came this way, in order. */
  readonly started: string[] = [];
  readonly released: string[] = [];
  /** Why it cannot look. */
  refuses: ((jobId: string) => string | undefined) | undefined;
  nodes: readonly Discovered[] = [];
  constructor(name: string, node: ScriptedNode) {
    this.name = name;
    this.node = node;
  }
  async start(target: Target, job: Parameters<Transport["start"]>[1]): Promise<string> {
    this.started.push(`${job.id} at ${target.address}`);
    const reason = this.refuses?.(job.id);
    if (reason !== undefined) throw new TransportError(`${this.name}: ${reason}`, { retryable: false });
    return this.node.start(target, job);
  }
  poll = (target: Target, handle: string) => this.node.poll(target, handle);
  find = (target: Target, jobId: string) => this.node.find(target, jobId);
  release = async (_target: Target, handle: string): Promise<void> => void this.released.push(handle);
  discover = async (): Promise<readonly Discovered[]> => this.nodes;
}

let bench: Bench;
let ssm: Door;
let pods: Door;
beforeEach(() => {
  const doors = (name: string): Transport => {
    if (name === "ssm") return ssm;
    if (name === "debug-pod") return pods;
    throw new Error(`the transport "${name}" is not available here`);
  };
  bench = new Bench(() => ({ transport: doors }));
  bench.config = configOf();
  ssm = new Door("ssm", bench.node);
  pods = new Door("debug-pod", bench.node);
});
afterEach(async () => {
  expect(await verifyStore(bench.store)).toEqual([]);
  await bench.close();
});

const AGENT = "could not start collect-netcheck on node2: its agent does not answer";
const dead = (): string => AGENT;

describe("the first transport could not look", () => {
  test("the other one does, the thread says so, it is on record, and the fix goes the same way", async () => {
    ssm.refuses = dead;
    await bench.ask();
    expect(bench.chat.data("inc-1/instead")).toMatchObject({
      text: "Could not look at node2 through SSM: could not start collect-netcheck on node2: its agent does not answer; looked through a debug pod instead.",
    });
    expect((await bench.events("fell-back")).map(({ data }) => data)).toEqual([
      { target: "node2", from: "ssm", problem: `ssm: ${AGENT}`, to: "debug-pod", address: "worker-2" },
    ]);
    expect((await bench.events("collected")).map(({ key, data }) => [key, data["transport"]])).toEqual([["collected/collect-other", "debug-pod"]]);
    await bench.click("confirm", BOB);
    expect([(await bench.incident()).state, bench.node.fixRuns]).toEqual(["resolved", 1]);
    expect(ssm.started).toEqual(["inc-1-collect at i-00000000000000002"]);
    expect(pods.started).toEqual(["inc-1-collect-other", "inc-1-recheck", "inc-1-fix", "inc-1-verify"].map((job) => `${job} at worker-2`));
    expect(pods.released).toEqual(["inc-1-collect-other", "inc-1-recheck", "inc-1-fix", "inc-1-verify"]);
  });

  test.each([
    ["never ran", "not-run"],
    ["was lost", "lost"],
  ] as const)("its job %s: the same", async (_what, state) => {
    bench.node.state = (_, polls) => (ssm.started.length === 1 && pods.started.length === 0 && polls > 0 ? { state, reason: "the agent stopped" } : undefined);
    await bench.ask();
    expect(bench.chat.data("inc-1/instead")["text"]).toBe("Could not look at node2 through SSM: the agent stopped; looked through a debug pod instead.");
    expect((await bench.incident()).state).toBe("awaiting-approval");
  });

  test("neither can: inconclusive, with both reasons", async () => {
    ssm.refuses = dead;
    pods.refuses = () => "could not start collect-netcheck on node2: the cluster has no node worker-2";
    await bench.ask();
    expect(bench.outcome()).toBe("not-collected");
    expect(bench.chat.data("inc-1/not-collected")["text"]).toContain(
      "could not look at node2: through SSM: could not start collect-netcheck on node2: its agent does not answer; through a debug pod: could not start collect-netcheck on node2: the cluster has no node worker-2",
    );
    expect(bench.chat.posts.has("inc-1/instead")).toBe(false);
    expect(await bench.events("fell-back")).toHaveLength(1);
  });

  test("no other one is configured: as ever", async () => {
    bench.config = configOf({ fallback: undefined });
    ssm.refuses = dead;
    await bench.ask();
    expect([bench.outcome(), pods.started]).toEqual(["not-collected", []]);
    expect(bench.chat.data("inc-1/not-collected")["text"]).toContain(`could not look at node2: ssm: ${AGENT}. That says nothing`);
    expect(await bench.events("fell-back")).toEqual([]);
  });

  test("it works: the other one is not touched, and nothing is said", async () => {
    await bench.ask();
    expect([pods.started, await bench.events("fell-back")]).toEqual([[], []]);
    expect(bench.chat.posts.has("inc-1/instead")).toBe(false);
  });
});

describe("never for a fix", () => {
  test.each(["recheck", "fix", "verify"] as const)("the first transport fails at %s: the other one is not tried", async (phase) => {
    await bench.ask();
    ssm.refuses = (id) => (id.endsWith(`-${phase}`) ? "could not start it: its agent does not answer" : undefined);
    await bench.click("confirm", BOB);
    expect(pods.started).toEqual([]);
    expect([(await bench.incident()).state, (await bench.proposal()).state, bench.node.fixRuns]).toEqual(
      { recheck: ["unresolved", "refused", 0], fix: ["unresolved", "failed", 0], verify: ["unresolved", "succeeded", 1] }[phase],
    );
  });

  test("the transport that looked fails: back to the first one it never goes", async () => {
    ssm.refuses = dead;
    await bench.ask();
    ssm.refuses = undefined;
    pods.refuses = (id) => (id.endsWith("-fix") ? "could not start it" : undefined);
    await bench.click("confirm", CAROL);
    expect(ssm.started).toHaveLength(1);
    expect([(await bench.proposal()).state, bench.node.fixRuns]).toEqual(["failed", 0]);
  });
});

describe("the address there", () => {
  const machine = "i-00000000000000002";
  const addresses = (): string[] => pods.started.map((line) => line.replace(/^.* at /, ""));
  const without = { targets: { node2: { address: machine } } };

  test.each([
    ["the node that the cluster knows as the same machine", without, [{ address: "ip-10-2-0-2", names: [machine], machine }], ["ip-10-2-0-2"]],
    ["not what a node calls itself", without, [{ address: "evil", names: [machine] }], ["node2"]],
    ["what is configured, whatever the cluster says", {}, [{ address: "evil", names: [machine], machine }], ["worker-2"]],
    ["else the name", without, [], ["node2"]],
  ])("%s", async (_what, cluster, nodes, expected) => {
    bench.config = configOf(cluster);
    ssm.refuses = dead;
    pods.nodes = nodes;
    await bench.ask();
    expect(addresses()).toEqual(expected);
  });

  test("two nodes claim the machine: neither is taken", async () => {
    bench.config = configOf(without);
    ssm.refuses = dead;
    pods.nodes = ["a", "b"].map((address) => ({ address, names: [], machine }));
    await bench.ask();
    expect(addresses()).toEqual([]);
    expect(bench.chat.data("inc-1/not-collected")["text"]).toContain("a debug pod could not be tried: several nodes claim to be this machine: a, b");
  });

  test("the cluster cannot be asked: said so", async () => {
    bench.config = configOf(without);
    ssm.refuses = dead;
    pods.discover = () => Promise.reject(new TransportError("debug-pod: could not list the nodes of prod: denied", { retryable: false }));
    await bench.ask();
    expect(bench.chat.data("inc-1/not-collected")["text"]).toContain("a debug pod could not be tried: could not list the nodes of prod: denied");
  });

  test("a node found by its tag has none but what the cluster knows", async () => {
    bench.config = configOf({ targets: {}, targetsByTag: { netcheck: "yes" } });
    const tagged = {
      ...bench.ports,
      targets: { resolve: async () => ({ kind: "found" as const, target: { name: "web-1", cluster: "prod", transport: "ssm", address: machine } }) },
    };
    Object.assign(bench.ports, tagged);
    ssm.refuses = dead;
    await bench.ask("web-1");
    expect(bench.chat.data("inc-1/not-collected")["text"]).toContain("netcheck.yaml does not say by which address it finds web-1 (fallbackAddress)");
    pods.nodes = [{ address: "ip-10-2-0-2", names: [], machine }];
    await bench.ask("web-1", "inc-2");
    expect(pods.started).toEqual(["inc-2-collect-other at ip-10-2-0-2"]);
  });

  test("from pods to SSM: the machine of that node; a name only if it is an instance id", async () => {
    const back = (targets: object) => configOf({ transport: "debug-pod", fallback: "ssm", targets });
    pods.refuses = () => "could not start collect-netcheck on node2: its image cannot be pulled";
    bench.config = back({ node2: { address: "ip-10-2-0-2" }, [machine]: {} });
    await bench.ask();
    expect(bench.chat.data("inc-1/not-collected")["text"]).toContain("; SSM could not be tried: netcheck.yaml does not say by which address it finds node2");
    pods.nodes = [{ address: "ip-10-2-0-2", names: [], machine }];
    await bench.ask("node2", "inc-2");
    expect(ssm.started).toEqual([`inc-2-collect-other at ${machine}`]);
    pods.nodes = [];
    await bench.ask(machine, "inc-3");
    expect(ssm.started.at(-1)).toBe(`inc-3-collect-other at ${machine}`);
  });

  test("a transport that is not there is told as such", async () => {
    bench.config = configOf({ transport: "debug-pod", fallback: "ssm" });
    Object.assign(bench.ports, {
      transport: (name: string) => {
        if (name === "debug-pod") return pods;
        throw new Error(`the transport "${name}" is not available in local mode`);
      },
    });
    pods.refuses = dead;
    await bench.ask();
    expect(bench.chat.data("inc-1/not-collected")["text"]).toContain('SSM could not be tried: the transport "ssm" is not available in local mode');
  });
});

test("the fallback must be another transport, and have what it needs", () => {
  expect(() => configOf({ fallback: "ssm" })).toThrow("the fallback is another transport than the first");
  expect(() => configOf({ debugPods: undefined })).toThrow("the transport debug-pod needs debugPods");
});

test("peers of a comparison, each by itself", async () => {
  const targets = Object.fromEntries([1, 2, 3, 4].map((n) => [`node${n}`, { address: `i-0000000000000000${n}`, pool: "web" }]));
  bench.config = configOf({ targets });
  bench.node.capture = () => healthy;
  ssm.refuses = (id) => (id === "inc-1-peers-1-2" ? "could not start it: its agent does not answer" : undefined);
  await bench.ask("node1");
  expect(pods.started).toEqual(["inc-1-peers-1-other-1-1 at node3"]);
  expect(bench.chat.data("inc-1/instead-peers")["text"]).toBe(
    "Could not look at node3 through SSM: could not start it: its agent does not answer; looked through a debug pod instead.",
  );
  expect(bench.chat.data("inc-1/comparison")).toMatchObject({ peers: "node2, node3, node4" });
  expect((await bench.events("fell-back"))[0]?.data).toMatchObject({ nodes: [{ target: "node3", from: "ssm", to: "debug-pod", address: "node3" }] });
  expect((await bench.events("collected")).map(({ key, data }) => [key, data["transport"]])).toContainEqual(["collected/peers-1-other-1", "debug-pod"]);
});

describe("cut off in between", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "netcheck-fallback-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** The first transport takes the job and never reports; through which one a job went is in files. */
  const ways = (directory: string) => ({
    config: configOf(),
    transport: (name: string, node: Transport): Transport => ({
      name,
      start: (target, job) => {
        const file = join(directory, `way-of-${job.id}`);
        writeFileSync(file, existsSync(file) ? `${readFileSync(file, "utf8")} ${name}` : name);
        return node.start(target, job);
      },
      poll: async (target, handle, waitMs) => (name === "ssm" ? { state: "lost", reason: "the agent stopped" } : node.poll(target, handle, waitMs)),
      find: (target, jobId) => node.find(target, jobId),
    }),
  });

  test("whenever the process is killed between the first try and the proposal, every step is remembered, and the fix goes the way that looked", async () => {
    const directory = join(folder, "first");
    const copies: { name: string; copy: string }[] = [];
    let open = false;
    let seen = "";
    await live(
      directory,
      (name) => {
        if (name === "node took inc-1-collect") open = true;
        if (name === "before store.propose") open = false;
        // a checkpoint or a call that changed something: what a kill leaves behind are the files as they are now
        if (!open || !name.startsWith("after")) return;
        const now = `${name} ${readFileSync(join(directory, "slack.jsonl"), { encoding: "utf8", flag: "a+" }).length} ${readFileSync(join(directory, "store.sqlite-wal")).length} ${readFileSync(join(directory, "engine.sqlite-wal")).length}`;
        if (now === seen) return;
        seen = now;
        const copy = join(folder, `copy-${copies.length}`);
        cpSync(directory, copy, { recursive: true, filter: (path) => !path.endsWith("-shm") });
        copies.push({ name, copy });
      },
      ways(directory),
    );
    expect(copies.length).toBeGreaterThan(20);
    for (const [at, { name, copy }] of [...copies, { name: "never", copy: directory }].entries()) {
      const label = `point ${at}, ${name}`;
      if (name !== "never") await live(copy, () => undefined, ways(copy));
      const { node, slack } = remains(copy);
      const store = new SqliteStore(join(copy, "store.sqlite"));
      const events = (await store.audit("inc-1")).map(({ type }) => type);
      const went = Object.fromEntries(
        ["collect", "collect-other", "recheck", "fix", "verify"].map((job) => [job, readFileSync(join(copy, `way-of-inc-1-${job}`), "utf8")]),
      );
      store.close();
      expect(went, label).toEqual({ collect: "ssm", "collect-other": "debug-pod", recheck: "debug-pod", fix: "debug-pod", verify: "debug-pod" });
      expect(node.fixRuns, label).toEqual(["inc-1-fix"]);
      expect([...slack.keys].sort(), label).toEqual([...new Set(slack.keys)].sort());
      expect(slack.keys, label).toContain("inc-1/instead");
      for (const once of ["fell-back", "collected", "fix-started", "verified"])
        expect(events.filter((type) => type === once).length, `${label}: ${once}`).toBe(once === "collected" ? 3 : 1);
      rmSync(copy, { recursive: true });
    }
  }, 120_000);
});
