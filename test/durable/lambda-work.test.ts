import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { lambdaWork } from "../../functions/durable/lambda-work.ts";
import type { WorkEvent } from "../../functions/triage/ports.ts";
import { type LambdaEmulator, startLambda } from "../emulators/lambda.ts";

/** The real SDK against Lambda's wire format. */

const FUNCTION = "arn:aws:lambda:eu-central-1:123456789012:function:netcheck-triage";
const event: WorkEvent = {
  kind: "triage",
  request: { incident: "inc-1", target: "nœud-1", requester: { id: "U_ALICE", team: "T1" }, place: { channel: "C1", responseUrl: "https://hooks/1" } },
};
const late: WorkEvent = { ...event, request: { ...event.request, place: { channel: "C1", responseUrl: "https://hooks/2" } } };
const throttled = { type: "TooManyRequestsException", status: 429 };

let lambda: LambdaEmulator;
beforeEach(async () => {
  lambda = await startLambda(FUNCTION);
  vi.stubEnv("AWS_ENDPOINT_URL_LAMBDA", lambda.url);
  vi.stubEnv("AWS_REGION", "eu-central-1");
  vi.stubEnv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await lambda.close();
});
const create = (functionName = FUNCTION, patienceMs = 5000) => lambdaWork({ functionName, qualifier: "live", patienceMs });

test("a start is one asynchronous invocation of the alias, named, with the event as payload", async () => {
  await create().start("inc-1", event);
  expect(lambda.executions).toMatchObject([{ name: "inc-1", functionName: FUNCTION, qualifier: "live" }]);
  expect(lambda.executions[0]?.payload).toEqual(event);
});

test("started again, with the same payload or another: one execution, no error", async () => {
  const work = create();
  await work.start("inc-1", event);
  await work.start("inc-1", event);
  await work.start("inc-1", late);
  expect(lambda.requests).toBe(3);
  expect(lambda.executions.map(({ payload }) => payload)).toEqual([event]);
});

test("an answer that is lost on the way is asked for again: still one execution", async () => {
  lambda.fail("drop");
  await create().start("inc-1", event);
  expect(lambda.requests).toBe(2);
  expect(lambda.executions).toHaveLength(1);
});

test("throttling passes", async () => {
  lambda.fail(throttled);
  await create().start("inc-1", event);
  expect(lambda.executions).toHaveLength(1);
});

test.each([
  ["throttling that does not pass", throttled, 3, true, "TooManyRequestsException"],
  ["a fault of the service", { type: "ServiceException", status: 500 }, 3, true, "ServiceException"],
  ["a refusal", { type: "AccessDeniedException", status: 403 }, 1, false, "AccessDeniedException"],
])("%s", async (_what, fault, requests, retryable, name) => {
  lambda.fail(fault, 3);
  const problem = { message: expect.stringContaining(`lambda: could not start inc-1 on ${FUNCTION}:live: ${name}`), retryable };
  await expect(create().start("inc-1", event)).rejects.toMatchObject(problem);
  expect(lambda.requests).toBe(requests);
  expect(lambda.executions).toEqual([]);
});

test("a function that is not there is named", async () => {
  const problem = { message: expect.stringMatching(/elsewhere:live: ResourceNotFoundException/), retryable: false };
  await expect(create("elsewhere").start("inc-1", event)).rejects.toMatchObject(problem);
});

test("a service that does not answer, or is not there, ends in an error that says so", async () => {
  lambda.fail("hang", 5);
  await expect(create(FUNCTION, 200).start("inc-1", event)).rejects.toMatchObject({ retryable: true });
  vi.stubEnv("AWS_ENDPOINT_URL_LAMBDA", "http://127.0.0.1:1");
  await expect(create().start("inc-1", event)).rejects.toMatchObject({ retryable: true, message: expect.stringContaining("ECONNREFUSED") });
});

test("an answer reaches the callback as JSON text, once; a closed one says false", async () => {
  const id = "Ab+/callback==";
  lambda.callbacks.add(id);
  expect(await create().answer(id, { decision: "approve", note: "жёлтый" })).toBe(true);
  expect(await create().answer(id, { decision: "dismiss" })).toBe(false);
  expect(lambda.answers.map(({ callbackId, result }) => [callbackId, JSON.parse(result)])).toEqual([[id, { decision: "approve", note: "жёлтый" }]]);
});

test("a callback that never was is an error, not an answer", async () => {
  await expect(create().answer("nobody", {})).rejects.toMatchObject({ message: expect.stringContaining("ResourceNotFoundException"), retryable: false });
});

test("throttled answers pass", async () => {
  lambda.callbacks.add("one");
  lambda.fail(throttled);
  expect(await create().answer("one", { decision: "approve" })).toBe(true);
});
