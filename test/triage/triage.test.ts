import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { verifyStore } from "../../functions/store/verify.ts";
import { TransportError } from "../../functions/triage/ports.ts";
import { ALICE, Bench, CHANNEL, configOf } from "./harness.ts";
import { FIX, fault, healthy, RULE, truncated } from "./runbooks.ts";
import { printed } from "./scripted-node.ts";

/** From the request to the diagnosis. */

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
});
afterEach(async () => {
  expect(await verifyStore(bench.store)).toEqual([]);
  await bench.close();
});

describe("what is found", () => {
  test("healthy: said so, nothing proposed, the report is there", async () => {
    bench.node.capture = () => healthy;
    await bench.ask();
    expect(bench.outcome()).toBe("diagnosed");
    expect(bench.chat.drawn("inc-1/diagnosis")).toContain("everything that was checked is in order");
    expect(bench.chat.drawn("inc-1/root")).toContain("everything that was checked is in order");
    expect([...bench.chat.posts.keys()]).toEqual(["inc-1/root", "inc-1/diagnosis"]);
    expect(bench.chat.uploads.get("inc-1/report")).toContain("node2");
    expect(await bench.incident()).toMatchObject({ state: "diagnosed", target: "node2", cluster: "lab", requester: ALICE });
    expect(await bench.store.proposal("inc-1-fix")).toBeUndefined();
    expect((await bench.store.audit("inc-1")).map((event) => event.type)).toEqual(["incident-opened", "collected", "diagnosed"]);
  });

  test("a cause: named with its evidence, and its fix proposed with the exact command and buttons", async () => {
    await bench.ask();
    expect(bench.execution()?.status).toBe("RUNNING");
    expect(bench.chat.data("inc-1/diagnosis")["cause"]).toMatchObject({ rule: RULE, explains: "conntrack-invalid-drops" });
    expect(bench.chat.drawn("inc-1/diagnosis")).toContain("KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP");
    const proposal = bench.chat.drawn("inc-1-fix/proposal");
    expect(proposal).toContain("iptables-restore --noflush -w 5");
    expect(proposal).toContain('"action_id":"approve"');
    expect(bench.chat.posts.get("inc-1-fix/proposal")?.place).toEqual({ channel: CHANNEL, thread: bench.chat.posts.get("inc-1/root")?.ref.ts });
    expect(await bench.incident()).toMatchObject({ state: "awaiting-approval", proposal: "inc-1-fix" });
    expect(await bench.proposal()).toMatchObject({
      state: "pending",
      rule: RULE,
      fix: FIX,
      parameters: { restore: ["iptables-restore"] },
      expiresAt: new Date(Date.parse((await bench.proposal()).createdAt) + 3_600_000).toISOString(),
      message: bench.chat.posts.get("inc-1-fix/proposal")?.ref,
    });
    expect(bench.node.fixRuns).toBe(0);
  });

  test("a collection whose start got lost on the way is started again: it only reads", async () => {
    const start = bench.node.start.bind(bench.node);
    let tries = 0;
    bench.node.start = async (target, job) => {
      if (++tries === 1) throw new Error("read ECONNRESET");
      return start(target, job);
    };
    bench.node.capture = () => healthy;
    await bench.ask();
    expect(tries).toBe(2);
    expect(bench.outcome()).toBe("diagnosed");
  });

  test("a firewall listing that ends in the middle is inconclusive, never healthy", async () => {
    bench.node.capture = () => truncated;
    await bench.ask();
    expect(bench.chat.drawn("inc-1/root")).toContain("inconclusive");
    expect(bench.chat.drawn("inc-1/diagnosis")).toContain("the output was truncated");
    expect(bench.chat.drawn("inc-1/diagnosis")).not.toContain("in order");
    expect(await bench.store.proposal("inc-1-fix")).toBeUndefined();
  });

  test("the same request delivered twice is one triage", async () => {
    await bench.ask();
    await bench.ask();
    expect(bench.node.count("collect")).toBe(1);
    expect(await bench.events("incident-opened")).toHaveLength(1);
  });

  test("a slow collection is waited for", async () => {
    bench.node.state = (_, polls) => (polls < 4 ? { state: "running", detail: "still at it" } : undefined);
    bench.node.capture = () => healthy;
    await bench.ask();
    expect(bench.outcome()).toBe("diagnosed");
  });
});

describe("names", () => {
  test("an unknown target: the requester alone is told, with near names; nothing is opened", async () => {
    await bench.ask("node22");
    expect(bench.outcome()).toBe("unknown");
    expect(bench.chat.whispered(ALICE).join()).toContain("node2");
    expect(bench.chat.posts.size).toBe(0);
    expect(await bench.store.incidents(1)).toEqual([]);
  });

  test("a name of two targets: asked which, with a button for each", async () => {
    const { clusters, policy } = configOf();
    bench.config = { ...configOf(), policy, clusters: { ...clusters, other: { transport: "replay", targets: { node2: {} } } } };
    await bench.ask();
    expect(bench.outcome()).toBe("ambiguous");
    expect(bench.node.jobs.size).toBe(0);
    const asked = bench.chat.whispered(ALICE).join();
    const words = [...asked.matchAll(/"value":"([^"]*)"/g)].map(([, word]) => word);
    expect([
      asked.includes("Several targets are called") || asked.includes('"ambiguous":true'),
      words.toSorted((a = "", b = "") => a.localeCompare(b)),
    ]).toEqual([true, ["lab/node2", "other/node2"]]);
    await bench.ask("other/node2", "inc-2");
    expect((await bench.incident("inc-2")).cluster).toBe("other");
  });
});

describe("a node that cannot be looked at is inconclusive, never healthy", () => {
  const DENIED = new TransportError("ssm: could not start: access denied", { retryable: false });

  test.each<[string, (bench: Bench) => void, string]>([
    ["the start is refused", ({ node }) => Object.assign(node, { beforeStart: () => raise(DENIED) }), "access denied"],
    [
      "it never ran",
      ({ node }) => Object.assign(node, { state: () => ({ state: "not-run", reason: "the agent does not answer" }) }),
      "the agent does not answer",
    ],
    [
      "nothing more is heard of it",
      ({ node }) => Object.assign(node, { state: () => ({ state: "lost", reason: "timed out while running" }) }),
      "timed out while running",
    ],
    ["it cannot be seen", ({ node }) => Object.assign(node, { state: () => raise(DENIED) }), "access denied"],
    ["it never ends", ({ node }) => Object.assign(node, { state: () => ({ state: "running", detail: "" }) }), "not done after 60 checks"],
    [
      "what it printed is nothing of ours",
      ({ node }) => Object.assign(node, { state: () => ({ ...printed("hello"), exitCode: 127, stderr: "sh: not found" }) }),
      "sh: not found",
    ],
    ["there is no such runbook", (on) => Object.assign(on, { config: { ...on.config, runbook: "nothing" } }), 'there is no runbook \\"nothing\\"'],
  ])("%s", async (_, misbehave, reason) => {
    misbehave(bench);
    await bench.ask();
    await bench.pass(600);
    expect(bench.outcome()).toBe(reason.includes("runbook") ? "failed" : "not-collected");
    const told = bench.chat.drawn("inc-1/not-collected") + bench.chat.drawn("inc-1/failure");
    expect(told).toContain(reason);
    expect(told).toContain("Run id: inc-1");
    expect(bench.chat.drawn("inc-1/root")).not.toMatch(/in order|healthy/);
    expect((await bench.incident()).state).toBe("failed");
    expect(bench.chat.posts.has("inc-1/diagnosis")).toBe(false);
  });

  test("throttling passes by itself", async () => {
    let calls = 0;
    bench.node.beforeStart = () => {
      if (++calls < 3) throw new TransportError("ssm: throttled", { retryable: true });
    };
    bench.node.capture = () => healthy;
    await bench.ask();
    expect([bench.outcome(), calls]).toEqual(["diagnosed", 3]);
  });

  test("a start whose answer got lost is found again, not repeated", async () => {
    bench.node.capture = () => healthy;
    let lost = 0;
    bench.node.afterStart = () => {
      if (++lost === 1) throw Object.assign(new Error("socket hang up"), { retryable: true });
    };
    await bench.ask();
    expect([bench.outcome(), bench.node.count("collect")]).toEqual(["diagnosed", 1]);
  });
});

describe("no buttons where nobody may approve", () => {
  test.each([
    ["no statement allows it", [], "no policy statement allows anyone"],
    ["a statement about other nodes", [{ id: "x", effect: "allow", targets: ["node3"], approvers: ["*"] }], "no policy statement allows anyone"],
    [
      "an explicit deny wins",
      [
        { id: "all", effect: "allow", approvers: ["*"] },
        { id: "frozen", effect: "deny", clusters: ["lab"], approvers: ["*"] },
      ],
      "forbids this fix here",
    ],
  ])("%s", async (_, policy, reason) => {
    bench.config = configOf(policy);
    await bench.ask();
    expect(bench.outcome()).toBe("no-approver");
    expect(bench.chat.drawn("inc-1/forbidden")).toContain(reason);
    expect(bench.chat.posts.has("inc-1-fix/proposal")).toBe(false);
    expect(await bench.events("proposal-refused")).toHaveLength(1);
    expect(await bench.store.proposal("inc-1-fix")).toBeUndefined();
  });
});

test("the report holds every line of evidence", async () => {
  await bench.ask();
  const text = bench.chat.uploads.get("inc-1/report") ?? "";
  const line =
    fault.outputs
      .find(({ command }) => command === "iptables-save -c")
      ?.text.split("\n")
      .find((one) => one.includes("--ctstate INVALID -j DROP")) ?? "?";
  expect(text).toContain(line.replace(/^\[[^\]]*\] /, ""));
});

function raise(error: Error): never {
  throw error;
}
