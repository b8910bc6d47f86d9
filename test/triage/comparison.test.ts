import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Capture } from "../../functions/facts/capture.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { loadComparison } from "../../functions/triage/comparison.ts";
import { Config } from "../../functions/triage/config.ts";
import { type Job, type JobState, type Target, type Transport, TransportError } from "../../functions/triage/ports.ts";
import { poolOf } from "../../functions/triage/targets.ts";
import { ALICE, Bench, BOB, CHANNEL } from "./harness.ts";
import { fault, healthy } from "./runbooks.ts";
import { printed } from "./scripted-node.ts";

/** A node held against its peers, asked for or because no rule found a cause. */

/** A fault that no rule of the bench's catalogue knows. */
const odd: Capture = { ...healthy, outputs: healthy.outputs.map((output) => ({ ...output, text: output.text.replace("ip_forward = 1", "ip_forward = 0") })) };

/** Nodes that are looked at only; each has its own capture. */
class Fleet implements Transport {
  readonly name = "fleet";
  captures: Readonly<Record<string, Capture>> = {};
  /** How often each job is seen running before it is done. */
  slow = 0;
  readonly unreachable = new Set<string>();
  readonly jobs = new Map<string, { readonly target: string; polls: number }>();

  async start(target: Target, job: Job): Promise<string> {
    if (this.unreachable.has(target.name)) throw new TransportError("fleet: the agent does not answer", { retryable: false });
    if (this.jobs.has(job.id)) throw new Error(`${job.id} was started twice`);
    this.jobs.set(job.id, { target: target.name, polls: 0 });
    return job.id;
  }

  async poll(target: Target, handle: string): Promise<JobState> {
    const job = this.jobs.get(handle);
    const capture = this.captures[target.name] ?? healthy;
    if (job === undefined || job.target !== target.name) throw new Error(`${target.name} has no job ${handle}`);
    if (job.polls++ < this.slow) return { state: "running", detail: "" };
    return { ...printed(""), capture: { ...capture, target: target.name } };
  }

  async find(_target: Target, jobId: string): Promise<string | undefined> {
    return this.jobs.has(jobId) ? jobId : undefined;
  }

  /** Targets that were looked at, in order of name. */
  get seen(): string[] {
    return [...this.jobs.values()].map(({ target }) => target).sort();
  }
}

const POOL = { pool: "workers" };
const config = (targets: Record<string, { address?: string; pool?: string }>): Config =>
  Config.parse({
    clusters: { lab: { transport: "replay", targets } },
    policy: [{ id: "sre", effect: "allow", approvers: ["S_SRE", ALICE.id], expires: "60m" }],
  });

let bench: Bench;
let fleet: Fleet;
beforeEach(() => {
  fleet = new Fleet();
  bench = new Bench(() => ({ transport: () => fleet }));
  bench.config = config({ node2: { address: "i-2" }, node3: {}, node4: {} });
});
afterEach(async () => {
  expect(await verifyStore(bench.store)).toEqual([]);
  await bench.close();
});

async function ask(target: string, against: readonly string[], id = "inc-1"): Promise<void> {
  bench.engine.execute(id, { kind: "triage", request: { incident: id, target, requester: ALICE, place: { channel: CHANNEL }, against } });
  await bench.pass(120);
}

describe("asked for: /netcheck node2 vs node3", () => {
  test("both are looked at, the node is diagnosed, and the thread shows cause, comparison and fix", async () => {
    fleet.captures = { node2: fault };
    await ask("node2", ["node3"]);
    expect(fleet.seen).toEqual(["node2", "node3"]);
    expect([...bench.chat.posts.keys()]).toEqual(["inc-1/root", "inc-1/diagnosis", "inc-1/comparison", "inc-1-fix/proposal"]);
    const message = bench.chat.data("inc-1/comparison");
    expect(message).toMatchObject({ target: "node2", peers: "node3", headline: "1 difference worth a look", problems: [], hint: "" });
    const [first] = message["differences"] as Record<string, string>[];
    expect(first?.["what"]).toContain("CILIUM_FORWARD is number 11 of 11 here");
    expect(first?.["here"]).toContain("$ iptables-save -c\n");
    expect(first?.["peer"]).toBe("node3");
    expect(bench.chat.posts.get("inc-1/comparison")?.place).toEqual({ channel: CHANNEL, thread: bench.chat.posts.get("inc-1/root")?.ref.ts });
    const incident = await bench.incident();
    expect(incident).toMatchObject({ state: "awaiting-approval", against: ["node3"] });
    expect((await loadComparison(bench.ports, incident.comparison ?? "")).differences[0]?.change).toBe("order");
    expect((await bench.store.audit("inc-1")).map((event) => event.type).slice(0, 5)).toEqual([
      "incident-opened",
      "collected",
      "collected",
      "diagnosed",
      "compared",
    ]);
    expect((await bench.events("compared"))[0]?.data).toMatchObject({ peers: ["node3"], automatic: false });
  });

  test("slow nodes: the workflow sleeps and is replayed; each is asked once", async () => {
    fleet.captures = { node2: fault };
    fleet.slow = 4;
    await ask("node2", ["node3", "node4"]);
    expect(fleet.seen).toEqual(["node2", "node3", "node4"]);
    expect(bench.chat.data("inc-1/comparison")).toMatchObject({ peers: "node3, node4", headline: "1 difference worth a look" });
  });

  test("nothing that matters differs: said so", async () => {
    await ask("node2", ["node3"]);
    expect(bench.outcome()).toBe("diagnosed");
    expect(bench.chat.drawn("inc-1/comparison")).toContain("node2 compared with node3*: no difference that matters to traffic");
  });

  test("a peer that cannot be looked at costs only itself", async () => {
    fleet.captures = { node2: fault };
    fleet.unreachable.add("node3");
    await ask("node2", ["node3", "node4"]);
    expect(bench.chat.data("inc-1/comparison")).toMatchObject({ peers: "node4", headline: "1 difference worth a look", problems: [{ peer: "node3" }] });
    expect(bench.chat.drawn("inc-1/comparison")).toContain("the agent does not answer");
  });

  test("no peer could be looked at: the diagnosis stands, and the reason is told", async () => {
    fleet.captures = { node2: fault };
    fleet.unreachable.add("node3");
    await ask("node2", ["node3"]);
    expect(bench.chat.drawn("inc-1/comparison")).toContain("could not be compared");
    expect(bench.chat.posts.has("inc-1-fix/proposal")).toBe(true);
    expect(await bench.events("compared")).toEqual([]);
  });

  test("the node itself cannot be looked at: inconclusive, nothing is compared", async () => {
    fleet.unreachable.add("node2");
    await ask("node2", ["node3"]);
    expect(bench.outcome()).toBe("not-collected");
    expect(bench.chat.posts.has("inc-1/comparison")).toBe(false);
  });

  test("an unknown peer: the requester alone is told, with near names; nothing is opened", async () => {
    await ask("node2", ["node33"]);
    expect(bench.outcome()).toBe("unknown");
    expect(bench.chat.whispered(ALICE).join()).toMatch(/node33.*node3/s);
    expect([bench.chat.posts.size, fleet.jobs.size]).toEqual([0, 0]);
  });

  test("one node under two names: told, nothing is opened", async () => {
    await ask("node2", ["i-2"]);
    expect(bench.outcome()).toBe("same");
    expect(bench.chat.whispered(ALICE).join()).toContain("node2 and i-2 name the same node twice (node2)");
    expect([bench.chat.posts.size, fleet.jobs.size]).toEqual([0, 0]);
  });

  test("run again compares again", async () => {
    await ask("node2", ["node3"]);
    await bench.click("again", BOB);
    const [newest] = await bench.store.incidents(1);
    expect(newest).toMatchObject({ target: "node2", against: ["node3"], requester: BOB });
    expect(bench.chat.posts.has(`${newest?.id}/comparison`)).toBe(true);
  });

  test("a step that fails in the middle and is repeated posts and records once", async () => {
    fleet.captures = { node2: fault };
    const trouble = new Set(["post inc-1/comparison", "update root"]);
    bench.chat.trouble = (call, what) => {
      if (trouble.delete(`${call} ${what}`)) throw Object.assign(new Error("slack: try again"), { retryable: true });
    };
    await ask("node2", ["node3"]);
    expect(trouble.size).toBe(0);
    expect(fleet.seen).toEqual(["node2", "node3"]);
    expect(await bench.events("compared")).toHaveLength(1);
    expect([...bench.chat.posts.keys()]).toEqual(["inc-1/root", "inc-1/diagnosis", "inc-1/comparison", "inc-1-fix/proposal"]);
  });

  test("many differences: all of them are attached", async () => {
    const other: Capture = {
      ...healthy,
      outputs: fault.outputs
        .filter(({ command }) => !command.startsWith("sysctl"))
        .map((output) => ({ ...output, text: output.text.replaceAll(/lxc|eth0/g, "ens7") })),
    };
    fleet.captures = { node2: other };
    await ask("node2", ["node3"]);
    const { differences, more } = bench.chat.data("inc-1/comparison") as { differences: unknown[]; more: number };
    expect(differences).toHaveLength(4);
    expect(more).toBeGreaterThan(0);
    expect(bench.chat.uploads.get("inc-1/comparison-list")).toMatch(/^node2 compared with node3: \d+ worth a look\nFacts .*\n5\. /s);
  });

  test("what hardly matters is no difference in the message: two healthy nodes are alike, and the list is attached", async () => {
    const outputs = healthy.outputs.map((output) =>
      output.command.startsWith("command -v") ? { ...output, text: output.text.replace(/.*\/conntrack\n/, "") } : output,
    );
    fleet.captures = { node2: { ...healthy, outputs } };
    await ask("node2", ["node3"]);
    expect(bench.chat.data("inc-1/comparison")).toMatchObject({
      icon: "white_check_mark",
      headline: "no difference that matters to traffic",
      differences: [],
      more: 1,
    });
    expect(bench.chat.uploads.get("inc-1/comparison-list")).toContain("Hardly matters");
  });

  test("a peer whose answer holds nothing that can be compared: no tick", async () => {
    fleet.captures = { node3: { ...healthy, outputs: healthy.outputs.filter(({ command }) => command === "uptime") } };
    await ask("node2", ["node3"]);
    expect(bench.chat.data("inc-1/comparison")).toMatchObject({ icon: "grey_question", headline: "nothing of them could be compared" });
  });
});

describe("automatic: no rule found a cause, and the node is in a pool", () => {
  beforeEach(() => {
    bench.config = config({ node1: POOL, node2: POOL, node3: POOL, node4: POOL, node5: POOL, other: { pool: "gateways" }, alone: {} });
  });

  test("up to three peers of the pool are looked at, and what differs is told", async () => {
    fleet.captures = { node2: odd };
    await bench.ask();
    expect(fleet.seen).toEqual(["node1", "node2", "node3", "node4"]);
    expect([...bench.chat.posts.keys()]).toEqual(["inc-1/root", "inc-1/diagnosis", "inc-1/comparison"]);
    const message = bench.chat.data("inc-1/comparison");
    expect(message).toMatchObject({ peers: "node1, node3, node4", problems: [] });
    expect(message["hint"]).toMatch(
      /^No rule found a cause, so netcheck compared this node with 3 of the other 4 nodes of the pool workers\. A difference is a hint/,
    );
    expect(message["footing"]).toMatch(/ facts were compared/);
    expect((message["differences"] as { what: string }[])[0]?.what).toBe("net.ipv4.ip_forward: 0 here, 1 on all 3 peers");
    expect((await bench.events("compared"))[0]?.data).toMatchObject({ automatic: true });
    expect(bench.outcome()).toBe("diagnosed");
  });

  test("the first message says that it differs, instead of a tick", async () => {
    fleet.captures = { node2: odd };
    await bench.ask();
    expect(bench.chat.data("inc-1/root")).toMatchObject({ icon: "mag", state: "no cause that netcheck knows, but 1 difference from its pool" });
  });

  test("alike: the tick stays, nothing is attached", async () => {
    await bench.ask();
    expect(bench.chat.data("inc-1/root")).toMatchObject({ icon: "white_check_mark", state: expect.stringMatching(/^no cause found/) });
    expect(bench.chat.data("inc-1/comparison")).toMatchObject({
      icon: "white_check_mark",
      headline: "no difference that matters to traffic",
      hint: "No rule found a cause, so netcheck compared this node with 3 of the other 4 nodes of the pool workers.",
      more: 0,
    });
    expect(bench.chat.uploads.has("inc-1/comparison-list")).toBe(false);
  });

  test("what hardly matters is in a file, not in the message", async () => {
    const outputs = odd.outputs.map((output) =>
      output.command.startsWith("command -v") ? { ...output, text: output.text.replace(/.*\/conntrack\n/, "") } : output,
    );
    fleet.captures = { node2: { ...odd, outputs } };
    await bench.ask();
    expect(bench.chat.data("inc-1/comparison")).toMatchObject({ differences: [{ number: 1 }], more: 1 });
    expect(bench.chat.uploads.get("inc-1/comparison-list")).toMatch(/\nHardly matters:\n\n2\. conntrack: \(absent\) here, \(present\) on all 3 peers\n/);
  });

  test("no peer can be looked at: the first message keeps its verdict, and the reasons are told", async () => {
    fleet.captures = { node2: odd };
    for (const peer of ["node1", "node3", "node4"]) fleet.unreachable.add(peer);
    await bench.ask();
    expect(bench.chat.data("inc-1/comparison")).toMatchObject({
      headline: "could not be compared",
      hint: expect.stringContaining("no other node of the pool"),
      footing: "",
    });
    expect(bench.chat.data("inc-1/root")["state"]).toMatch(/^no cause found/);
  });

  test("with a cause no other node is bothered", async () => {
    fleet.captures = { node2: fault };
    await bench.ask();
    expect(fleet.seen).toEqual(["node2"]);
    expect(bench.chat.posts.has("inc-1/comparison")).toBe(false);
  });

  test.each(["alone", "other"])("%s has no peers: nothing is compared", async (target) => {
    await bench.ask(target);
    expect(fleet.seen).toEqual([target]);
    expect(bench.chat.posts.has("inc-1/comparison")).toBe(false);
  });

  test("a name that an object has by itself is no pool", () => {
    expect(poolOf(bench.config, { name: "constructor", cluster: "lab" })).toEqual([]);
    expect(poolOf(bench.config, { name: "node1", cluster: "nowhere" })).toEqual([]);
  });
});
