import { afterEach, beforeEach, expect, test } from "vitest";
import { SecretReader, SLACK_SECRET } from "../../functions/aws/secret.ts";
import { renewingHandler } from "../../functions/slack/renewing.ts";
import { type SecretsEmulator, startSecrets } from "../emulators/secrets.ts";

const ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:netcheck/slack-AbCdEf";
const value = (signingSecret: string) => JSON.stringify({ signingSecret, botToken: "xoxb-1" });
let secrets: SecretsEmulator;
let clock: number;
beforeEach(async () => {
  secrets = await startSecrets();
  secrets.put(ARN, value("one"));
  clock = 0;
});
afterEach(async () => secrets.close());
const reader = (arn = ARN) =>
  new SecretReader({
    fields: SLACK_SECRET,
    arn,
    credentials: () => ({ accessKeyId: "AKIDEXAMPLE", secretAccessKey: "k", sessionToken: "t" }),
    endpoint: secrets.url,
    now: () => clock,
  });

test("is read once, and again after five minutes", async () => {
  const one = reader();
  expect(await one.read()).toEqual({ signingSecret: "one", botToken: "xoxb-1" });
  secrets.put(ARN, value("two"));
  clock = 299_000;
  expect((await one.read()).signingSecret).toBe("one");
  expect(secrets.requests).toBe(1);
  clock = 300_000;
  expect((await one.read()).signingSecret).toBe("two");
});

test("a rotated secret counts with the first request that needs it; bad signatures do not make us ask at will", async () => {
  const one = reader();
  const handle = renewingHandler(
    async (doubtful) => (await one.read(doubtful)).signingSecret,
    (secret) =>
      async ({ body }) => ({ statusCode: body === secret ? 200 : 401, body: "" }),
  );
  const ask = async (signedWith: string) => (await handle({ headers: {}, body: signedWith, isBase64Encoded: false })).statusCode;
  expect(await ask("one")).toBe(200);
  clock = 31_000;
  secrets.put(ARN, value("two"));
  expect(await ask("two")).toBe(200);
  expect(await ask("one")).toBe(401);
  const before = secrets.requests;
  for (let n = 0; n < 20; n++) expect(await ask("forged")).toBe(401);
  expect(secrets.requests).toBe(before);
});

test.each([
  ["it may not be read", { type: "AccessDeniedException", status: 400 }, /AccessDeniedException.*May the function's role read it/, false],
  ["the service is down", { type: "InternalServiceError", status: 500 }, /InternalServiceError/, true],
  ["it is asked too often", { type: "ThrottlingException", status: 400 }, /ThrottlingException/, true],
] as const)("%s", async (_, fault, message, retryable) => {
  secrets.fail(fault);
  await expect(reader().read()).rejects.toMatchObject({ message: expect.stringMatching(message) as string, retryable });
});

test("no answer is not waited for, and may come another time", async () => {
  secrets.fail("hang");
  await expect(reader().read()).rejects.toMatchObject({ message: expect.stringContaining("no answer in 1500 ms") as string, retryable: true });
});

test("what was never filled in says how, and shows nothing of it", async () => {
  secrets.put(ARN, JSON.stringify({ signingSecret: "", botToken: "xoxb-very-secret" }));
  await expect(reader().read()).rejects.toThrow(/must be JSON with "signingSecret" and "botToken".*put-secret-value$/);
  secrets.put(ARN, "xoxb-very-secret");
  await expect(reader().read()).rejects.not.toThrow("very-secret");
  expect(() => reader("netcheck/slack")).toThrow("no ARN of a secret");
});
