import { fromTemporaryCredentials } from "@aws-sdk/credential-providers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type StsEmulator, startSts } from "./sts.ts";

const ROLE = "arn:aws:iam::210987654321:role/netcheck-nodes";
let sts: StsEmulator;
beforeEach(async () => {
  sts = await startSts({ [ROLE]: { externalId: "ours" } });
  vi.stubEnv("AWS_ENDPOINT_URL_STS", sts.url);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await sts.close();
});

const assume = (more: object = {}, RoleArn = ROLE) =>
  fromTemporaryCredentials({
    masterCredentials: { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "secret" },
    params: { RoleArn, RoleSessionName: "test", DurationSeconds: 900, ...more },
    clientConfig: { region: "eu-central-1", maxAttempts: 1 },
  })();

test("a session, for as long as asked for", async () => {
  const session = await assume({ ExternalId: "ours" });
  expect(session).toMatchObject({ accessKeyId: sts.assumed[0]?.accessKey, sessionToken: "token" });
  expect(Math.round(((session.expiration?.getTime() ?? 0) - Date.now()) / 1000)).toBeCloseTo(900, -1);
  expect(sts.assumed).toMatchObject([{ role: ROLE, session: "test", externalId: "ours" }]);
});

test("without the external id, for an unknown role, and when told to: refused", async () => {
  await expect(assume()).rejects.toMatchObject({
    name: "AccessDenied",
    message: expect.stringContaining(`not authorized to perform: sts:AssumeRole on resource: ${ROLE}`),
  });
  await expect(assume({ ExternalId: "ours" }, "arn:aws:iam::210987654321:role/other")).rejects.toMatchObject({ name: "AccessDenied" });
  sts.fail({ code: "Throttling", message: "Rate exceeded" });
  await expect(assume({ ExternalId: "ours" })).rejects.toMatchObject({ name: "Throttling" });
  expect(sts.assumed).toEqual([]);
});

test("unsigned requests are refused", async () => {
  const response = await fetch(sts.url, { method: "POST", body: new URLSearchParams({ Action: "AssumeRole", RoleArn: ROLE }) });
  expect([response.status, await response.text()]).toEqual([403, expect.stringContaining("MissingAuthenticationToken")]);
});
