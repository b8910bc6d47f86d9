import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { verifyStore } from "../../functions/store/verify.ts";
import { type ProposalState, TransportError } from "../../functions/triage/ports.ts";
import { ALICE, Bench, BOB, CAROL, configOf, MALLORY } from "./harness.ts";
import { holderOf, occupy } from "./node-place.ts";
import { catalogueOf, fault, fixed, legacyFault, otherFault, truncated } from "./runbooks.ts";
import { type Marker, printed } from "./scripted-node.ts";

/** From the approval to the verified fix: what is checked again, what is told of a run that went wrong, and that nothing ever runs twice. */

let bench: Bench;
beforeEach(async () => {
  bench = new Bench();
  await bench.ask();
});
afterEach(async () => {
  expect(bench.node.count("fix"), "a fix is started at most once").toBeLessThanOrEqual(1);
  expect(await verifyStore(bench.store)).toEqual([]);
  await bench.close();
});

const outcome = () => bench.chat.drawn("inc-1/outcome");

const unanswered = (): Error => Object.assign(new Error("slack: could not look up the members of S_SRE: no answer in time"), { retryable: true });

/** Nothing was run, and everybody can see why. */
async function expectRefused(reason: string): Promise<void> {
  expect([bench.node.fixRuns, bench.node.count("fix")]).toEqual([0, 0]);
  expect([bench.outcome(), (await bench.incident()).state, (await bench.proposal()).state]).toEqual(["unresolved", "unresolved", "refused"]);
  expect(outcome()).toContain(reason);
  expect(outcome()).toContain("Nothing was changed on the node");
  expect(bench.chat.drawn("inc-1-fix/proposal")).toContain("The fix was not run");
  expect(await bench.events("fix-started")).toEqual([]);
  expect((await bench.events("fix-finished"))[0]?.data).toMatchObject({ outcome: "refused", steps: [] });
}

/** Something changes while the node is looked at once more, and netcheck sees it when it goes on after a pause. */
function duringRecheck(change: () => void): void {
  bench.node.state = (phase, polls) => {
    if (phase !== "recheck" || polls > 1) return undefined;
    change();
    return { state: "running", detail: "" };
  };
}

describe("right before the run", () => {
  test("the cause has gone by itself", async () => {
    bench.node.capture = () => fixed;
    await bench.click("confirm", BOB);
    await expectRefused("is no longer found on the node");
  });

  test("the fix would need other parameters", async () => {
    bench.node.capture = () => legacyFault;
    await bench.click("confirm", BOB);
    await expectRefused("the fix would now need other parameters");
  });

  test("the node can no longer be looked at", async () => {
    bench.node.state = () => ({ state: "not-run", reason: "the agent does not answer" });
    await bench.click("confirm", BOB);
    await expectRefused("the agent does not answer");
  });

  test("what would show the cause is cut off: that it has gone is not said", async () => {
    bench.node.capture = () => truncated;
    await bench.click("confirm", BOB);
    await expectRefused("whether the cause (kube-forward-before-cilium) is still there could not be checked: ");
    expect(outcome()).not.toContain("no longer found");
  });

  test("the policy no longer allows it", async () => {
    bench.node.beforeStart = () => {
      bench.config = configOf([{ id: "carol", effect: "allow", approvers: [CAROL.id] }]);
    };
    await bench.click("confirm", BOB);
    await expectRefused("statements about this fix on this node have changed since it was proposed");
  });

  test("the approver has left the group", async () => {
    bench.node.beforeStart = () => {
      bench.groups["S_SRE"] = [CAROL.id];
    };
    await bench.click("confirm", BOB);
    await expectRefused("an approval does not count any more");
  });

  test("Slack does not say for a moment who is in the group: it is asked again", async () => {
    await bench.close();
    let refusals = 0;
    bench = new Bench((ports) => ({ members: (group) => (refusals-- > 0 ? Promise.reject(unanswered()) : ports.members(group)) }));
    await bench.ask();
    bench.node.beforeStart = (phase) => {
      if (phase === "recheck") refusals = 2;
    };
    await bench.click("confirm", BOB);
    expect([bench.outcome(), bench.node.fixRuns]).toEqual(["resolved", 1]);
  });

  test("Slack does not say at all who is in the group: nothing is run, and that the policy forbids it is not said", async () => {
    await bench.close();
    let silent = false;
    bench = new Bench((ports) => ({ members: (group) => (silent ? Promise.reject(unanswered()) : ports.members(group)) }));
    await bench.ask();
    bench.node.beforeStart = () => {
      silent = true;
    };
    await bench.click("confirm", BOB);
    expect([bench.outcome(), bench.node.count("fix"), (await bench.proposal()).state]).toEqual(["failed", 0, "refused"]);
    expect(bench.chat.drawn("inc-1/failure")).toMatch(/no answer in time\. Nothing was changed on the node\. Run id: inc-1/);
  });

  test("Slack refuses to say who is in the group: so it is told", async () => {
    await bench.close();
    let refuses = false;
    bench = new Bench((ports) => ({ members: (group) => (refuses ? Promise.reject(new Error("slack: missing_scope")) : ports.members(group)) }));
    await bench.ask();
    bench.node.beforeStart = () => {
      refuses = true;
    };
    await bench.click("confirm", BOB);
    await expectRefused("whether the policy still allows it is not known: ");
    expect(outcome()).toContain("missing_scope");
    expect(outcome()).not.toContain("no longer allows");
  });

  test("two are needed by now", async () => {
    bench.node.beforeStart = () => {
      bench.config = configOf([{ id: "sre", effect: "allow", approvers: ["S_SRE"], approvalsNeeded: 2 }]);
    };
    await bench.click("confirm", BOB);
    await expectRefused("statements about this fix on this node have changed since it was proposed");
  });

  test("a freeze has begun: who approved may do so in an emergency only", async () => {
    const window = { from: "2026-01-01T00:10", to: "2026-01-02", timeZone: "UTC" };
    bench.config = configOf([{ id: "sre", effect: "allow", approvers: ["S_SRE"], freezeWindows: [window], breakGlass: { who: [BOB.id] } }]);
    await bench.ask("node2", "inc-2");
    bench.node.beforeStart = (phase) => {
      if (phase === "recheck") bench.clock.moveTo(Date.parse("2026-01-01T00:10:30Z"));
    };
    await bench.click("confirm", BOB, { incident: "inc-2", proposal: "inc-2-fix" });
    expect([bench.outcome("inc-2"), bench.node.fixRuns, (await bench.proposal("inc-2-fix")).state]).toEqual(["unresolved", 0, "refused"]);
    expect(bench.chat.drawn("inc-2/outcome")).toMatch(/an approval does not count any more.*only in an emergency/);
  });

  test("the fix is another one by now, though of the same name", async () => {
    duringRecheck(() => {
      bench.catalogue = catalogueOf((text) => text.replace('-w, "5"]', '-w, "6"]'));
    });
    await bench.click("confirm", BOB);
    await expectRefused("this is not what was approved: the fix");
  });

  test("the fix has left the catalogue: the failure is told, with the run id", async () => {
    duringRecheck(() => {
      bench.catalogue = { ...bench.catalogue, fixes: new Map() };
    });
    await bench.click("confirm", BOB);
    expect([bench.outcome(), bench.node.count("fix"), (await bench.proposal()).state]).toEqual(["failed", 0, "refused"]);
    expect(bench.chat.drawn("inc-1/failure")).toMatch(/is not in the catalogue any more\. Nothing was changed on the node\. Run id: inc-1/);
    expect(await holderOf(bench.store, "lab/node2"), "the node is free for others").toBeUndefined();
  });

  test("the evidence is not what was approved", async () => {
    const { diagnosis = "" } = await bench.incident();
    const text = new TextDecoder().decode(await bench.store.get(diagnosis));
    bench.node.afterStart = async () =>
      bench.store.put(diagnosis, new TextEncoder().encode(text.replaceAll("--ctstate INVALID -j DROP", "--ctstate INVALID -j LOG")));
    await bench.click("confirm", BOB);
    await expectRefused("its evidence are not the ones that were proposed");
  });

  test("a decision on another hash does not count", async () => {
    const { createdAt } = await bench.proposal();
    const decisions = [{ actor: BOB, decision: "approve" as const, at: createdAt, hash: "0".repeat(64) }];
    const event = { key: "forged", at: createdAt, actor: MALLORY, type: "forged", data: {} };
    await bench.store.transition("inc-1-fix", ["pending"], { state: "approved", decisions }, event);
    await bench.click("confirm", BOB);
    await expectRefused("an approval does not count any more");
  });

  test("a decision by somebody whom no statement names does not count", async () => {
    const { createdAt, hash } = await bench.proposal();
    const decisions = [{ actor: MALLORY, decision: "approve" as const, at: createdAt, hash }];
    const event = { key: "forged", at: createdAt, actor: MALLORY, type: "forged", data: {} };
    await bench.store.transition("inc-1-fix", ["pending"], { state: "approved", decisions }, event);
    await bench.click("confirm", MALLORY);
    await expectRefused("an approval does not count any more");
  });

  test("another fix is running on the node; its lock stays", async () => {
    await occupy(bench.store, "lab/node2", "inc-0-fix", new Date(bench.clock.now()));
    await bench.click("confirm", BOB);
    await expectRefused("another fix is running on this node: inc-0-fix");
    expect(bench.node.count("recheck")).toBe(0);
    expect(await holderOf(bench.store, "lab/node2")).toBe("inc-0-fix");
  });

  test("a run whose execution died for good keeps the node for a day, and no longer", async () => {
    await occupy(bench.store, "lab/node2", "inc-0-fix", new Date(bench.clock.now() - 24 * 3_600_000));
    await bench.click("confirm", BOB);
    expect([bench.outcome(), bench.node.fixRuns]).toEqual(["resolved", 1]);
    expect(await holderOf(bench.store, "lab/node2")).toBeUndefined();
  });

  test("of two incidents on one node, approved at the same moment, one fix runs", async () => {
    await bench.ask("node2", "inc-2");
    bench.press("confirm", BOB);
    bench.press("confirm", CAROL, { incident: "inc-2", proposal: "inc-2-fix" });
    await bench.pass(300);
    expect(bench.node.fixRuns).toBe(1);
    const states = [(await bench.proposal()).state, (await bench.proposal("inc-2-fix")).state];
    expect(states).toEqual(expect.arrayContaining(["refused", "succeeded"]));
  });
});

describe("on the node", () => {
  test("a step fails: told with what it said and the way back, verified all the same", async () => {
    bench.node.outcome = "failed";
    await bench.click("confirm", BOB);
    expect([bench.outcome(), (await bench.proposal()).state, bench.node.fixRuns]).toEqual(["unresolved", "failed", 0]);
    expect(outcome()).toContain("exit code 4");
    expect(outcome()).toContain("holding the xtables lock");
    expect(outcome()).toContain("the cause is still there");
    expect(outcome()).toContain("-A FORWARD");
    expect(bench.node.count("verify")).toBe(1);
  });

  test.each([
    ["refused", "the precondition no longer held on the node"],
    ["unmarked", "no run marker could be written"],
  ] as const)("it is %s there: nothing was changed, nothing to verify", async (answer, reason) => {
    bench.node.outcome = answer;
    await bench.click("confirm", BOB);
    expect([bench.outcome(), (await bench.proposal()).state, bench.node.count("verify")]).toEqual(["unresolved", "refused", 0]);
    expect(outcome()).toContain(reason);
    expect(outcome()).toContain("Nothing was changed on the node");
  });

  test("its check says why: told, and no way back is", async () => {
    bench.node.outcome = "refused";
    bench.node.steps = () => [{ command: "check", exitCode: 1, output: "arping is not installed" }];
    await bench.click("confirm", BOB);
    expect(outcome()).toContain("arping is not installed");
    expect(outcome()).not.toContain("-A FORWARD");
  });

  test("it surely did not start: failed, and not tried again, even where that may help", async () => {
    let starts = 0;
    bench.node.beforeStart = (phase) => {
      if (phase === "fix" && ++starts) throw new TransportError("ssm: could not start: throttled", { retryable: true });
    };
    await bench.click("confirm", BOB);
    expect([starts, (await bench.proposal()).state, bench.outcome()]).toEqual([1, "failed", "unresolved"]);
    expect(outcome()).toContain("it was not started: ssm: could not start: throttled");
  });

  test("it never ran, surely", async () => {
    bench.node.state = (phase) => (phase === "fix" ? { state: "not-run", reason: "delivery denied" } : undefined);
    await bench.click("confirm", BOB);
    expect((await bench.proposal()).state).toBe("failed");
    expect(outcome()).toContain("it never ran: delivery denied");
    expect(bench.node.count("status")).toBe(0);
  });

  test("a slow fix is waited for", async () => {
    bench.node.state = (phase, polls) => (phase === "fix" && polls < 5 ? { state: "running", detail: "" } : undefined);
    await bench.click("confirm", BOB);
    expect(bench.outcome()).toBe("resolved");
  });

  test("the start ran, its answer got lost: found by its id, and its outcome is told", async () => {
    bench.node.afterStart = (phase) => {
      if (phase === "fix") throw new Error("socket hang up");
    };
    await bench.click("confirm", BOB);
    expect([bench.outcome(), (await bench.proposal()).state, bench.node.fixRuns]).toEqual(["resolved", "succeeded", 1]);
  });

  test("the start may have run and nothing of it is found: unknown, and what the node looks like now", async () => {
    bench.node.forgets = true;
    bench.node.afterStart = (phase) => {
      if (phase === "fix") throw new Error("socket hang up");
    };
    await bench.click("confirm", BOB);
    expect((await bench.proposal()).state).toBe("unknown");
    expect(outcome()).toMatch(/socket hang up; no trace of a run was found. It is not run again/);
    expect(bench.chat.drawn("inc-1-fix/proposal")).toContain("It is not known whether the fix ran");
    expect(outcome()).toContain("the cause is gone");
  });

  test("the run cannot be looked up: the node's marker is asked", async () => {
    bench.node.afterStart = (phase) => {
      if (phase === "fix") throw new Error("socket hang up");
    };
    bench.node.beforeFind = (phase) => {
      if (phase === "fix") throw new TransportError("ssm: could not look: access denied", { retryable: false });
    };
    await bench.click("confirm", BOB);
    expect([bench.outcome(), (await bench.proposal()).state, bench.node.fixRuns]).toEqual(["resolved", "succeeded", 1]);
    expect(outcome()).toMatch(/could not be looked up .*access denied.*run marker says it succeeded/);
  });

  test("netcheck is cut off while the fix starts: looked up, not started again", async () => {
    let cutOff = false;
    bench.node.afterStart = async (phase) => {
      if (phase !== "fix") return;
      cutOff = true;
      await new Promise(() => undefined);
    };
    bench.press("confirm", BOB);
    await expect.poll(() => cutOff).toBe(true);
    // the invocation is given up, as when Lambda stops it
    bench.clock.moveTo(bench.clock.now() + 900_000);
    await bench.pass(300);
    expect([bench.outcome(), (await bench.proposal()).state, bench.node.fixRuns]).toEqual(["resolved", "succeeded", 1]);
  });
});

describe("a run of which nothing more is heard: the marker on the node decides what is told", () => {
  const LOST = { state: "lost", reason: "timed out while running" } as const;

  test.each<[Marker, ProposalState, string]>([
    ["succeeded", "succeeded", "run marker says it succeeded"],
    ["failed", "failed", "run marker says it failed"],
    ["refused", "refused", "run marker says it refused"],
    ["none", "unknown", "run marker says: none. It is not run again"],
    ["unfinished", "unknown", "run marker says: unfinished. It is not run again"],
    ["unreadable", "unknown", "the run marker could not be read"],
  ])("%s → %s", async (marker, state, words) => {
    bench.node.marker = marker;
    bench.node.state = (phase) => (phase === "fix" ? LOST : undefined);
    await bench.click("confirm", BOB);
    expect((await bench.proposal()).state).toBe(state);
    expect(outcome()).toContain(`timed out while running; `);
    expect(outcome()).toContain(words);
    expect([bench.node.count("fix"), bench.node.count("status")]).toEqual([1, 1]);
    // clicking again does not run it again
    expect(await bench.click("confirm", CAROL)).toBe("closed");
    expect(bench.node.count("fix")).toBe(1);
  });

  test.each<[Marker, ProposalState, RegExp]>([
    ["none", "failed", /it never ran: .* \(exit code 2: sh: 40: Syntax error\); there is no run marker on the node/],
    ["unfinished", "unknown", /\(exit code 2: sh: 40: Syntax error\); the node's run marker says: unfinished. It is not run again/],
  ])("the script ended without an answer, marker %s → %s", async (marker, state, words) => {
    bench.node.marker = marker;
    const ended = { state: "done", exitCode: 2, stdout: "", stderr: "sh: 40: Syntax error\n", truncated: false } as const;
    bench.node.state = (phase) => (phase === "fix" ? ended : undefined);
    await bench.click("confirm", BOB);
    expect((await bench.proposal()).state).toBe(state);
    expect(outcome()).toMatch(words);
    expect(bench.node.count("fix")).toBe(1);
  });

  test("the node is gone: unknown, unverifiable, unresolved", async () => {
    bench.node.state = (phase) => (phase === "collect" || phase === "recheck" ? undefined : { state: "lost", reason: "the node is gone" });
    await bench.click("confirm", BOB);
    expect([bench.outcome(), (await bench.proposal()).state]).toEqual(["unresolved", "unknown"]);
    expect(outcome()).toContain("run marker says: unreadable");
    expect(outcome()).toContain("Could not verify");
  });

  test("its answer is no answer of ours", async () => {
    bench.node.state = (phase) => (phase === "fix" ? printed("Connection to node2 closed.\n") : undefined);
    await bench.click("confirm", BOB);
    expect([bench.outcome(), (await bench.proposal()).state]).toEqual(["resolved", "succeeded"]);
    expect(outcome()).toContain("run marker says it succeeded");
  });

  test("it does not end in time", async () => {
    bench.node.marker = "unfinished";
    bench.node.state = (phase) => (phase === "fix" ? { state: "running", detail: "" } : undefined);
    await bench.click("confirm", BOB);
    expect((await bench.proposal()).state).toBe("unknown");
    expect(outcome()).toContain("not done after 60 checks");
  });

  test("the question whose answer got lost is found again", async () => {
    let lost = 0;
    bench.node.state = (phase) => (phase === "fix" ? LOST : undefined);
    bench.node.afterStart = (phase) => {
      if (phase === "status" && ++lost === 1) throw Object.assign(new Error("socket hang up"), { retryable: true });
    };
    await bench.click("confirm", BOB);
    expect([bench.outcome(), (await bench.proposal()).state, lost]).toEqual(["resolved", "succeeded", 1]);
  });
});

describe("verification", () => {
  test("the cause is still there: not resolved, and the way back is shown", async () => {
    bench.node.capture = () => fault;
    await bench.click("confirm", BOB);
    await bench.pass(3700);
    expect([bench.outcome(), (await bench.proposal()).state]).toEqual(["unresolved", "succeeded"]);
    expect(outcome()).toContain("the cause is still there");
    expect(outcome()).not.toContain("prependIptablesChains");
    expect((await bench.events("verified"))[0]?.data).toMatchObject({ ok: false });
    expect(bench.chat.drawn("inc-1/root")).toContain("not resolved");
  });

  test("the cause could not be checked: said so, not resolved", async () => {
    bench.node.capture = (phase) => (phase === "verify" ? truncated : fault);
    await bench.click("confirm", BOB);
    expect(bench.outcome()).toBe("unresolved");
    expect(outcome()).toContain("the cause could not be checked");
    expect((await bench.events("verified"))[0]?.data).toMatchObject({ ok: null });
  });

  test("the node cannot be looked at again", async () => {
    bench.node.state = (phase) => (phase === "verify" ? { state: "not-run", reason: "the agent does not answer" } : undefined);
    await bench.click("confirm", BOB);
    expect(bench.outcome()).toBe("unresolved");
    expect(outcome()).toContain("Could not verify: the node could not be looked at again (the agent does not answer)");
  });

  test("the cause is gone and something new is there: not resolved", async () => {
    bench.node.capture = (phase) => (phase === "verify" ? otherFault : fault);
    await bench.click("confirm", BOB);
    expect((await bench.incident()).state).toBe("awaiting-approval");
    expect((await bench.events("verified"))[0]?.data).toMatchObject({ ok: false });
    expect(outcome()).toContain("something new was found: Link-local routes on OVS bond members");
  });

  test("what another cause explains by now is not gone", async () => {
    const { rules } = bench.catalogue;
    const rule = rules.get("linklocal-route-on-bond-member");
    if (rule === undefined) throw new Error("no such rule");
    bench.node.capture = (phase) =>
      phase === "verify" ? { ...fault, outputs: [...fault.outputs.filter(isOurs), ...otherFault.outputs.filter((o) => !isOurs(o))] } : fault;
    bench.node.beforeStart = (phase) => {
      // what is loaded when the workflow goes on after the pause
      if (phase === "fix")
        bench.catalogue = {
          ...bench.catalogue,
          rules: new Map(rules).set(rule.file.id, { ...rule, file: { ...rule.file, explains: ["kube-forward-before-cilium"] } }),
        };
    };
    await bench.click("confirm", BOB);
    expect((await bench.events("verified"))[0]?.data).toMatchObject({ ok: false });
    expect(outcome()).toContain("the cause is still there");
  });
});

test("the requester hears of it whoever asked: the thread names both", async () => {
  await bench.click("confirm", BOB);
  expect(bench.chat.drawn("inc-1/root")).toContain(ALICE.id);
  expect(bench.chat.drawn("inc-1-fix/proposal")).toContain(BOB.id);
});

const isOurs = ({ command }: { command: string }): boolean => command.includes("tables");
