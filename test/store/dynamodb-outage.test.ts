import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DynamoDbStore } from "../../functions/store/dynamodb.ts";

/**
 * What is thrown when DynamoDB or S3 is away for longer than the SDK tries (`npm run chaos -- --only delivery` asked): a step is tried again only if the error says
 * that it may pass, and a node that is not given back in the end stays taken for a day.
 */
let server: Server;
let answer: { readonly status: number; readonly type: string };
beforeEach(async () => {
  server = createServer((request, response) => {
    request.resume();
    response.writeHead(answer.status, { "content-type": "application/x-amz-json-1.0" });
    response.end(JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${answer.type}`, message: "no" }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (const [name, value] of Object.entries({
    AWS_ENDPOINT_URL: url,
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
    AWS_SECRET_ACCESS_KEY: "secret",
  }))
    vi.stubEnv(name, value);
});
afterEach(() => {
  vi.unstubAllEnvs();
  server.closeAllConnections();
  server.close();
});

test.for([
  { status: 500, type: "InternalServerError", retryable: true },
  { status: 400, type: "ResourceNotFoundException", retryable: undefined },
])("$type: retryable is $retryable", async ({ status, type, retryable }) => {
  answer = { status, type };
  const store = new DynamoDbStore({ table: "netcheck", bucket: "netcheck" });
  const error = await store.release("node/lab/node1", "inc-1-fix").then(
    () => undefined,
    (thrown: unknown) => thrown as { name: string; retryable?: boolean },
  );
  store.close();
  expect([error?.name, error?.retryable]).toEqual([type, retryable]);
});

test("nobody listens: retryable", async () => {
  server.close();
  server.closeAllConnections();
  const store = new DynamoDbStore({ table: "netcheck", bucket: "netcheck" });
  await expect(store.recall("inc-1/root")).rejects.toMatchObject({ retryable: true });
  await expect(store.get("captures/inc-1/collect")).rejects.toMatchObject({ retryable: true });
  store.close();
});
