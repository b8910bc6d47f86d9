import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { configSource } from "../../functions/aws/config-source.ts";
import { listen } from "../emulators/http.ts";
import { type S3Emulator, startS3 } from "../emulators/s3.ts";

/** Parameter Store's GetParameter, which says what it is told to; and S3. */
let answer: { readonly status: number; readonly body: object };
let asked: number;
let parameters: Awaited<ReturnType<typeof listen>>;
let s3: S3Emulator;
let clock: number;
beforeEach(async () => {
  [asked, clock] = [0, 0];
  parameters = await listen((_request, _body, response) => {
    asked += 1;
    response.writeHead(answer.status, { "content-type": "application/x-amz-json-1.1" }).end(JSON.stringify(answer.body));
  });
  s3 = await startS3();
  for (const [name, value] of Object.entries({
    AWS_ENDPOINT_URL_SSM: parameters.url,
    AWS_ENDPOINT_URL_S3: s3.url,
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
    AWS_SECRET_ACCESS_KEY: "secret",
    AWS_MAX_ATTEMPTS: "1",
  }))
    vi.stubEnv(name, value);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await parameters.close();
  await s3.close();
});

const holds = (Value: string): void => {
  answer = { status: 200, body: { Parameter: { Value } } };
};
const source = () => configSource("/netcheck/config", () => clock);

test("is read once, and anew after two seconds: a changed policy counts almost at once", async () => {
  const read = source();
  holds("clusters: { east: { transport: ssm, region: eu-central-1 } }");
  expect(Object.keys((await read()).clusters)).toEqual(["east"]);
  holds("clusters: { west: { transport: ssm, region: eu-west-1 } }");
  clock = 1999;
  expect(Object.keys((await read()).clusters)).toEqual(["east"]);
  clock = 2000;
  expect(Object.keys((await read()).clusters)).toEqual(["west"]);
  expect(asked).toBe(2);
});

test.each([
  ["throttled", 400, "ThrottlingException", true],
  ["down", 500, "InternalServerError", true],
  ["not there", 400, "ParameterNotFound", false],
  ["not ours to read", 400, "AccessDeniedException", false],
])("Parameter Store says %s: said so, and whether asking again may help", async (_words, status, type, retryable) => {
  answer = { status, body: { __type: type, message: "no" } };
  await expect(source()()).rejects.toMatchObject({ message: expect.stringContaining(`/netcheck/config could not be read: ${type}`) as string, retryable });
});

test("nobody answers: it may pass", async () => {
  await parameters.close();
  await expect(source()()).rejects.toMatchObject({ message: expect.stringContaining("could not be read") as string, retryable: true });
});

test("one that is wrong names its key, and does not pass", async () => {
  holds("clusters: {}\nnonsense: 1");
  const error = (await source()().catch((thrown: unknown) => thrown)) as Error & { readonly retryable?: boolean };
  expect([error.message.includes("nonsense"), error.retryable]).toEqual([true, undefined]);
});

test("a bucket that the parameter names is not there: said so", async () => {
  holds("s3://config/netcheck.yaml");
  await expect(source()()).rejects.toMatchObject({ message: expect.stringContaining("could not be read: NoSuch") as string, retryable: false });
});
