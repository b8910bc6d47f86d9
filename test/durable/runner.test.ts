import { LocalDurableTestRunner, OperationStatus } from "@aws/durable-execution-sdk-js-testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { durableHandler } from "../../functions/durable/handler.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { click } from "../../functions/triage/click.ts";
import type { Click, Durable, WorkEvent } from "../../functions/triage/ports.ts";
import { work } from "../../functions/triage/workflow.ts";
import { ALICE, Bench, BOB, CHANNEL, report } from "../triage/harness.ts";
import { healthy } from "../triage/runbooks.ts";

/** The main ways through a triage on AWS's own runner of durable functions: a second opinion on what the embedded engine does. */

let bench: Bench;
let runner: LocalDurableTestRunner<{ outcome: string }>;

beforeAll(() => LocalDurableTestRunner.setupTestEnvironment({ skipTime: true }));
afterAll(() => LocalDurableTestRunner.teardownTestEnvironment());
beforeEach(() => {
  const answer = async (_id: string, value: unknown) => {
    await runner.getOperation("approval").sendCallbackSuccess(JSON.stringify(value));
    return true;
  };
  // reminders and other executions are none of the runner's
  bench = new Bench(() => ({ work: { start: async () => undefined, answer } }));
  const handler = durableHandler<WorkEvent>((event, durable) => work({ durable, ports: bench.ports, catalogue: bench.catalogue, report }, event));
  runner = new LocalDurableTestRunner({ handlerFunction: handler });
});
afterEach(async () => {
  expect(await verifyStore(bench.store)).toEqual([]);
  await bench.close();
});

const event: WorkEvent = {
  kind: "triage",
  request: { incident: "inc-1", target: "node2", requester: ALICE, place: { channel: CHANNEL, responseUrl: "https://hooks/1" } },
};
/** A click is an execution of its own; here it runs at once. */
const inline = { step: (_: string, run: () => Promise<unknown>) => run() } as unknown as Durable;

/** Asks, waits until the triage waits, decides, and returns what it came to. */
async function decided(action: Click["action"]): Promise<unknown> {
  const asked = runner.getOperation("approval").waitForData();
  const running = runner.run({ payload: event });
  await asked;
  while (bench.chat.posts.get("inc-1-fix/proposal") === undefined) await new Promise(setImmediate);
  while ((await bench.proposal()).message === undefined) await new Promise(setImmediate);
  const place = { channel: CHANNEL, thread: "1.000" };
  const { hash, target } = await bench.proposal();
  const event1: Click = { id: "click-1", action, incident: "inc-1", proposal: "inc-1-fix", actor: BOB, place, triggerId: "t", hash, typed: target };
  await click({ durable: inline, ports: bench.ports, catalogue: bench.catalogue, report }, event1);
  return (await running).getResult();
}

test("healthy: diagnosed, in one invocation or more, and every step succeeded", async () => {
  bench.node.capture = () => healthy;
  const result = await runner.run({ payload: event });
  expect(result.getResult()).toEqual({ outcome: "diagnosed" });
  expect([...bench.chat.posts.keys()]).toEqual(["inc-1/root", "inc-1/diagnosis"]);
  expect(result.getOperations().filter((operation) => operation.getStatus() !== OperationStatus.SUCCEEDED)).toEqual([]);
});

test("approved: the fix ran once, verified, resolved", async () => {
  expect(await decided("confirm")).toEqual({ outcome: "resolved" });
  expect([bench.node.fixRuns, (await bench.proposal()).state]).toEqual([1, "succeeded"]);
});

test("dismissed: nothing ran", async () => {
  expect(await decided("dismiss")).toEqual({ outcome: "dismissed" });
  expect([bench.node.fixRuns, (await bench.proposal()).state]).toEqual([0, "dismissed"]);
});

test("the answer of the fix's start is lost: looked up, and run once", async () => {
  const start = bench.node.start.bind(bench.node);
  bench.node.start = async (target, job) => {
    const handle = await start(target, job);
    if (job.id === "inc-1-fix") throw new Error("read ECONNRESET");
    return handle;
  };
  expect(await decided("confirm")).toEqual({ outcome: "resolved" });
  expect(bench.node.fixRuns).toBe(1);
});
