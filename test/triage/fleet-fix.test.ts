import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseNodes } from "../../functions/slack/listeners/nodes-command.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { replayFix } from "../../functions/transports/script.ts";
import { sha256 } from "../../functions/triage/audit.ts";
import { Config } from "../../functions/triage/config.ts";
import type { Actor, FixRun } from "../../functions/triage/ports.ts";
import { FleetBench, pool } from "./fleet-bench.ts";
import { ALICE, BOB, CAROL, CHANNEL, MALLORY } from "./harness.ts";
import { holderOf } from "./node-place.ts";
import { fault, fixed, healthy, otherFault, RULE } from "./runbooks.ts";
import { printed } from "./scripted-node.ts";

/** One cause on several nodes: one first, then the others in batches, until one does not end well. */

const CANARY = `inc-${sha256(`inc-1\n${RULE}\nfix`).slice(0, 12)}`;
const incidentOf = (name: string): string => `inc-${sha256(`inc-1\n${RULE}\nlab/${name}`).slice(0, 12)}`;
const place = { channel: CHANNEL, thread: "1.000" };

let bench: FleetBench;
/** How the fix goes on a node; a node that is named here is not healed by it. */
let outcomes: Map<string, FixRun["outcome"]>;
let sick: Set<string>;
let clicks = 0;

/** So many nodes with the fault, and one without. */
function nodes(faulty: number): void {
  bench = new FleetBench(pool(faulty + 1, ""));
  outcomes = new Map();
  sick = new Set();
  for (let node = 1; node <= faulty; node++) bench.nodes.captures.set(`node${node}`, fault);
  bench.nodes.captures.set(`node${faulty + 1}`, healthy);
  bench.nodes.fixed = ({ name }, job) => {
    if (job.script.name === "fix-status") throw new Error("the fix is known");
    const outcome = outcomes.get(name) ?? "succeeded";
    if (outcome === "succeeded" && !sick.has(name)) bench.nodes.captures.set(name, fixed);
    return printed(
      replayFix({ outcome, repeated: false, steps: [{ command: "iptables-restore", exitCode: outcome === "succeeded" ? 0 : 4, output: "" }] }, job.nonce),
    );
  };
}
beforeEach(() => nodes(4));
afterEach(() => bench.close());

async function say(words: string, actor: Actor = ALICE): Promise<unknown> {
  const parsed = parseNodes(words);
  if (parsed?.kind !== "nodes") throw new Error(`not understood: ${words}`);
  return bench.fleet(parsed.ask, {
    incident: words.includes("node*") ? "inc-1" : `click-fleet-${++clicks}`,
    requester: actor,
    place: words.includes("node*") ? { channel: CHANNEL } : place,
  });
}
const others = () =>
  bench.chat.data(`${CANARY}/others`) as {
    approve: { command: string };
    dismiss: { command: string };
    count: number;
    words: string;
    open: boolean;
    names: string;
    size: number;
    failed: { node: string; reason: string }[];
    left: string;
    approved: string[];
  };
/** Examined, and the first node's fix approved by Bob. */
async function afterFirst(): Promise<void> {
  expect(await say("nodes node*")).toBe("diagnosed");
  expect(await say(`nodes fix inc-1 ${RULE}`)).toBe("started");
  await bench.click("confirm", BOB, { incident: CANARY, proposal: `${CANARY}-fix` });
}
/** Which nodes were changed, in order. */
const changed = () => bench.nodes.started.filter(({ id }) => id.endsWith("-fix")).map(({ target }) => target);
const states = (names: readonly string[]) => Promise.all(names.map(async (name) => (await bench.store.incident(incidentOf(name)))?.state));

describe("all goes well", () => {
  test("one node on its own approval, then seven in batches of five on one more; each with its own proposal, marker, lock and audit", async () => {
    await bench.close();
    nodes(8);
    expect(await say("nodes node*")).toBe("diagnosed");
    expect(await say(`nodes fix inc-1 ${RULE}`)).toBe("started");
    // the usual proposal of one node, in the fleet's thread; nothing of the others yet
    expect(bench.chat.posts.get(`${CANARY}-fix/proposal`)?.place.thread).toBe("1.000");
    expect([changed(), bench.chat.posts.has(`${CANARY}/others`)]).toEqual([[], false]);
    await bench.click("confirm", BOB, { incident: CANARY, proposal: `${CANARY}-fix` });
    expect(changed()).toEqual(["node1"]);
    expect(others()).toMatchObject({ count: 7, open: true, size: 5, names: "node2, node3, node4, node5, node6, node7, node8", left: "" });
    expect(bench.chat.uploads.get(`${CANARY}/others-commands`)?.match(/^## lab\/node/gm)).toHaveLength(7);

    const before = bench.chat.posts.size;
    expect(await say(others().approve.command, BOB)).toBe("approve");
    expect(changed().toSorted()).toEqual(["node1", "node2", "node3", "node4", "node5", "node6", "node7", "node8"]);
    expect(new Set(changed().slice(1, 6))).toEqual(new Set(["node2", "node3", "node4", "node5", "node6"]));
    expect(others()).toMatchObject({ words: "All 7 are fixed and verified", open: false, failed: [], approved: [BOB.id] });
    expect(bench.outcome(CANARY)).toBe("resolved");
    expect(await states(["node2", "node8"])).toEqual(["resolved", "resolved"]);
    // seven nodes, and not one message of any of them: the edits are of the one
    const after = [...bench.chat.posts.keys()].slice(before);
    expect(after.filter((key) => !key.startsWith(CANARY))).toEqual([]);
    const proposal = await bench.proposal(`${incidentOf("node5")}-fix`);
    expect(proposal).toMatchObject({ target: "node5", state: "succeeded", decisions: [{ actor: BOB, decision: "approve", hash: proposal.hash }] });
    expect((await bench.events("fix-started")).length).toBe(8);
    expect(await holderOf(bench.store, "lab/node5")).toBeUndefined();
    expect(await verifyStore(bench.store)).toEqual([]);
  });

  test("clicked twice, by anybody, it is begun once", async () => {
    await afterFirst();
    expect(await say(`nodes fix inc-1 ${RULE}`, CAROL)).toBe("begun-before");
    expect(await say(others().approve.command, BOB)).toBe("approve");
    expect(await say(others().approve.command, CAROL)).toBe("closed");
    expect(changed()).toHaveLength(4);
  });
});

describe("the first does not end well", () => {
  test("it is not healed: nothing else is touched or proposed", async () => {
    sick.add("node1");
    await afterFirst();
    await bench.pass(7200);
    expect([changed(), bench.chat.posts.has(`${CANARY}/others`)]).toEqual([["node1"], false]);
    expect(bench.chat.drawn(`${CANARY}/stopped`)).toContain("3 nodes with this cause were not touched");
  });

  test("nobody may approve it, or it is dismissed", async () => {
    expect(await say("nodes node*")).toBe("diagnosed");
    await say(`nodes fix inc-1 ${RULE}`);
    await bench.click("dismiss", ALICE, { incident: CANARY, proposal: `${CANARY}-fix` });
    expect(changed()).toEqual([]);
    expect(bench.chat.drawn(`${CANARY}/stopped`)).toContain("(dismissed)");
  });
});

describe("the first is fixed, and yet the others are not begun", () => {
  test("it had another cause by now, and was healed of that", async () => {
    expect(await say("nodes node*")).toBe("diagnosed");
    bench.nodes.captures.set("node1", otherFault);
    await say(`nodes fix inc-1 ${RULE}`);
    await bench.click("confirm", BOB, { incident: CANARY, proposal: `${CANARY}-fix` });
    expect([changed(), (await bench.incident(CANARY)).state]).toEqual([["node1"], "resolved"]);
    expect(bench.chat.posts.has(`${CANARY}/others`)).toBe(false);
    expect(bench.chat.drawn(`${CANARY}/stopped`)).toContain("was not the fix of this cause");
  });

  test("the store fails while they are proposed: told in the thread, and nothing is left to approve", async () => {
    expect(await say("nodes node*")).toBe("diagnosed");
    await say(`nodes fix inc-1 ${RULE}`);
    const put = bench.store.put.bind(bench.store);
    bench.store.put = async (key, value) => {
      if (key.includes("/fix-")) throw new Error("the disk is full");
      return put(key, value);
    };
    await bench.click("confirm", BOB, { incident: CANARY, proposal: `${CANARY}-fix` });
    expect(bench.chat.drawn(`${CANARY}/others-failed`)).toContain("the disk is full. lab/node1 is fixed and verified");
    expect([changed(), bench.outcome(CANARY), bench.chat.posts.has(`${CANARY}/others`)]).toEqual([["node1"], "failed", false]);
  });
});

describe("one of the others does not end well", () => {
  test("its batch ends, no other begins, and the rest is closed and said", async () => {
    await bench.close();
    nodes(8);
    outcomes.set("node3", "failed");
    await afterFirst();
    expect(await say(others().approve.command, BOB)).toBe("approve");
    await bench.pass(600);
    expect(changed().toSorted()).toEqual(["node1", "node2", "node3", "node4", "node5", "node6"]);
    expect(others()).toMatchObject({
      words: "Stopped: 4 fixed and verified, 1 not, 2 not touched",
      failed: [{ node: "lab/node3", reason: expect.stringContaining("the fix: failed") }],
    });
    expect(await states(["node2", "node3", "node7"])).toEqual(["resolved", "unresolved", "unresolved"]);
    expect((await bench.proposal(`${incidentOf("node7")}-fix`)).state).toBe("refused");
    expect(bench.outcome(CANARY)).toBe("unresolved");
  });

  test("the way back of a fix that did not help is offered in the thread", async () => {
    sick.add("node4");
    await afterFirst();
    await say(others().approve.command, BOB);
    await bench.pass(600);
    expect(others().words).toContain("Stopped: 2 fixed and verified, 1 not");
    expect(bench.chat.posts.get(`${incidentOf("node4")}-rollback/proposal`)?.place.thread).toBe("1.000");
  });

  test("the execution of one fails as a whole: the batch does not wait for it for ever, and says so", async () => {
    await afterFirst();
    const reserve = bench.store.reserve.bind(bench.store);
    bench.store.reserve = async (scope, ...rest) => {
      if (scope === "node/lab/node3") throw new Error("the table is gone");
      return reserve(scope, ...rest);
    };
    await say(others().approve.command, BOB);
    await bench.pass(600);
    expect(others().failed).toMatchObject([{ node: "lab/node3", reason: expect.stringContaining("the table is gone") }]);
    expect([await states(["node3"]), (await bench.proposal(`${incidentOf("node3")}-fix`)).state]).toEqual([["failed"], "refused"]);
  });

  test("a node whose cause is gone meanwhile is not touched, and the batches stop there", async () => {
    await afterFirst();
    bench.nodes.captures.set("node2", fixed);
    await say(others().approve.command, BOB);
    await bench.pass(600);
    expect(changed()).not.toContain("node2");
    expect(others().failed[0]).toMatchObject({ node: "lab/node2", reason: expect.stringContaining("no longer found on the node") });
  });
});

describe("who may decide about the others", () => {
  beforeEach(afterFirst);

  test("nobody whom the policy does not name; on record, and nothing runs", async () => {
    expect(await say(others().approve.command, MALLORY)).toBe("refused");
    expect(bench.chat.whispered(MALLORY)[0]).toContain("You cannot approve this");
    expect((await bench.events("refused")).at(-1)).toMatchObject({ actor: MALLORY, incident: "inc-1" });
    // who asked must not approve alone
    expect(await say(others().approve.command, ALICE)).toBe("refused");
    expect(changed()).toEqual(["node1"]);
  });

  test("dismissed by who asked: closed, and not open to approval any more", async () => {
    const { approve, dismiss } = others();
    expect(await say(dismiss.command, ALICE)).toBe("dismiss");
    expect(others().words).toContain("Dismissed");
    expect(await say(approve.command, BOB)).toBe("closed");
    expect(await states(["node2"])).toEqual(["dismissed"]);
  });

  test("nobody decides in time", async () => {
    const { approve } = others();
    await bench.pass(2 * 3600);
    expect(others().words).toContain("Nobody decided in time");
    expect(await say(approve.command, BOB)).toBe("closed");
    expect(changed()).toEqual(["node1"]);
  });

  test("what is approved is what was shown", async () => {
    expect(await say(others().approve.command.replace(/[0-9a-f]{16}$/, "0123456789abcdef"), BOB)).toBe("refused");
    bench.config = { ...bench.config, policy: [{ ...(bench.config.policy[0] as object), id: "another" } as never] };
    expect(await say(others().approve.command, BOB)).toBe("refused");
    expect(bench.chat.whispered(BOB).at(-1)).toContain("have changed since it was proposed");
    expect(changed()).toEqual(["node1"]);
  });

  test("from another channel there is nothing to decide", async () => {
    const parsed = parseNodes(others().approve.command);
    expect(
      await bench.fleet(parsed?.kind === "nodes" ? parsed.ask : ({} as never), { incident: "click-x", requester: BOB, place: { channel: "C_ELSEWHERE" } }),
    ).toBe("unknown");
  });
});

describe("the policy's limits hold", () => {
  const allow = { id: "sre", effect: "allow", approvers: ["S_SRE"], expires: "60m" };
  const withPolicy = (more: object) => {
    bench.config = Config.parse({ ...bench.config, policy: [{ ...allow, ...more }] });
  };

  test("three nodes an hour: two after the first, then it stops and says why", async () => {
    await bench.close();
    nodes(5);
    withPolicy({ maxNodes: { most: 3, per: "1h" } });
    await afterFirst();
    expect(others().size).toBe(3);
    await say(others().approve.command, BOB);
    expect(new Set(changed())).toHaveLength(3);
    expect(others().words).toContain("Stopped: 2 fixed and verified, 1 not, 1 not touched");
    expect(others().failed[0]?.reason).toContain("at most 3 nodes of lab within 1h");
  });

  test("one at a time in the cluster", async () => {
    withPolicy({ oneAtATime: "cluster" });
    await afterFirst();
    expect(others().size).toBe(1);
    await say(others().approve.command, BOB);
    await bench.pass(900);
    expect(changed()).toEqual(["node1", "node2", "node3", "node4"]);
  });

  test("two people: the first counts, the second begins it", async () => {
    withPolicy({ approvalsNeeded: 2 });
    expect(await say("nodes node*")).toBe("diagnosed");
    await say(`nodes fix inc-1 ${RULE}`);
    for (const actor of [BOB, CAROL]) await bench.click("confirm", actor, { incident: CANARY, proposal: `${CANARY}-fix` });
    expect(await say(others().approve.command, BOB)).toBe("counted");
    expect(await say(others().approve.command, BOB)).toBe("counted");
    expect(changed()).toEqual(["node1"]);
    expect(await say(others().approve.command, CAROL)).toBe("approve");
    expect(changed()).toHaveLength(4);
  });
});

test("a cause that no node has, or that only one of another run has, is told", async () => {
  expect(await say("nodes node*")).toBe("diagnosed");
  expect(await say("nodes fix inc-1 bridge-netfilter-off")).toBe("no-fix");
  expect(await say(`nodes fix inc-9 ${RULE}`)).toBe("unknown");
});
