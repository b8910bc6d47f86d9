import { afterEach, beforeEach, expect, test } from "vitest";
import { verifyStore } from "../../functions/store/verify.ts";
import { ALICE, Bench, BOB, configOf } from "./harness.ts";

/** Found by `npm run chaos -- --only delivery`: a click that closes a proposal, cut off between its decision and its words, and repeated. */

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
});
afterEach(async () => {
  expect(await verifyStore(bench.store)).toEqual([]);
  await bench.close();
});

const buttons = (): boolean => bench.chat.drawn("inc-1-fix/proposal").includes('"action_id":"approve"');

test("the answer to whoever clicked is refused for the moment: the buttons go all the same, and the triage ends at once", async () => {
  await bench.ask();
  // the policy's statements about it change: nothing of before can be approved
  bench.config = configOf([{ id: "sre", effect: "allow", approvers: ["S_SRE", ALICE.id], approvalsNeeded: 2 }]);
  let refusals = 0;
  bench.chat.trouble = (call) => {
    if (call === "whisper" && ++refusals === 1) throw Object.assign(new Error("slack: could not whisper: ratelimited"), { retryable: true });
  };
  expect(await bench.click("approve", BOB)).toBe("refused");
  expect(refusals).toBeGreaterThan(0);
  expect([(await bench.proposal()).state, bench.outcome(), buttons(), bench.node.fixRuns]).toEqual(["refused", "refused", false, 0]);
  expect(await bench.events("refused")).toHaveLength(1);
});

test("the click fails for good after its decision: the triage shows it when its time is up", async () => {
  await bench.close();
  bench = new Bench((usual) => ({
    work: {
      ...usual.work,
      answer: async () => {
        throw new Error("lambda: access denied");
      },
    },
  }));
  await bench.ask();
  bench.config = configOf([{ id: "sre", effect: "allow", approvers: ["S_SRE", ALICE.id], approvalsNeeded: 2 }]);
  expect(await bench.click("approve", BOB)).toBe("failed");
  await bench.pass(3700);
  expect([(await bench.proposal()).state, bench.outcome(), buttons(), bench.node.fixRuns]).toEqual(["refused", "refused", false, 0]);
});
