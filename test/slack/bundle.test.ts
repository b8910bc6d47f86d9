import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { HttpEvent } from "../../functions/slack/app.ts";
import { incidentId } from "../../functions/slack/listeners/netcheck-command.ts";
import { type Bundle, bundleAck } from "../../infra/bundle.ts";
import { run } from "../bench/measure.ts";
import { type LambdaEmulator, startLambda } from "../emulators/lambda.ts";
import { type SecretsEmulator, startSecrets } from "../emulators/secrets.ts";
import { click, command, SECRET, signed } from "./requests.ts";

/** The acknowledging Lambda as it is deployed: bundled, in a process of its own, with Lambda's API behind it. */

const FUNCTION = "netcheck-triage";
const SECRET_ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:netcheck/slack-AbCdEf";
let folder: string;
let bundle: Bundle;
let lambda: LambdaEmulator;
let secrets: SecretsEmulator;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "netcheck-ack-"));
  [bundle, lambda, secrets] = await Promise.all([bundleAck(folder), startLambda(FUNCTION), startSecrets()]);
  secrets.put(SECRET_ARN, JSON.stringify({ signingSecret: SECRET, botToken: "xoxb-1" }));
});
afterAll(async () => {
  await Promise.all([lambda.close(), secrets.close()]);
  rmSync(folder, { recursive: true });
});

const environment = () => ({
  PATH: process.env["PATH"],
  SLACK_SECRET_ARN: SECRET_ARN,
  TRIAGE_FUNCTION: FUNCTION,
  TRIAGE_QUALIFIER: "live",
  AWS_REGION: "eu-central-1",
  AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
  AWS_SECRET_ACCESS_KEY: "secret",
  AWS_ENDPOINT_URL_LAMBDA: lambda.url,
  AWS_ENDPOINT_URL_SECRETS_MANAGER: secrets.url,
});

async function first(event: HttpEvent, env: Record<string, string | undefined> = environment()): Promise<{ statusCode: number; body: string }> {
  const { stdout } = await run([process.execPath, join(import.meta.dirname, "../bench/first-request.mjs"), bundle.entry, JSON.stringify(event)], { env });
  // the metric is a line before it
  return (JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as { response: { statusCode: number; body: string } }).response;
}

test("a cold start reads little, and no template engine, schema library or SDK", () => {
  expect(bundle.startBytes).toBeLessThanOrEqual(160_000);
  const packages = bundle.packages.map(([name]) => name);
  expect(packages).toContain("@slack/bolt");
  expect(packages.filter((name) => /^(?:zod|handlebars|express|undici|@aws-sdk\/.*|@smithy\/.*)$/.test(name))).toEqual([]);
});

test("help", async () => {
  const { statusCode, body } = await first(signed(command("node1 node2")));
  expect(statusCode).toBe(200);
  expect(JSON.parse(body)).toMatchObject({ response_type: "ephemeral", text: expect.stringContaining("/netcheck TARGET") });
  expect(body).toContain("has more than one word");
});

test("a target, and a click, start the durable function under their own names", async () => {
  const before = lambda.executions.length;
  expect(await first(signed(command("node1", { trigger_id: "t.1" }), { base64: true }))).toEqual({ statusCode: 200, body: "" });
  expect(await first(signed(click("approve", "inc-1 inc-1-fix")))).toEqual({ statusCode: 200, body: "" });
  expect(lambda.executions.slice(before)).toMatchObject([
    {
      name: incidentId("t.1"),
      functionName: FUNCTION,
      qualifier: "live",
      payload: { kind: "triage", request: { target: "node1", incident: incidentId("t.1") } },
    },
    { name: expect.stringMatching(/^click-/), payload: { kind: "click", click: { action: "approve", incident: "inc-1", proposal: "inc-1-fix" } } },
  ]);
});

test("on another machine a replay is one execution too", async () => {
  const event = signed(command("node1", { trigger_id: "t.2" }));
  await first(event);
  const before = lambda.executions.length;
  expect(await first(event)).toMatchObject({ statusCode: 200 });
  expect(lambda.executions).toHaveLength(before);
});

test("a wrong signature is refused and asks nothing of Lambda", async () => {
  const before = lambda.requests;
  expect(await first(signed(command("node1"), { secret: "0".repeat(32) }))).toEqual({ statusCode: 401, body: "" });
  expect(lambda.requests).toBe(before);
});

test("each answer leaves its time in the log, as the alarm reads it", async () => {
  const { stdout } = await run(
    [process.execPath, join(import.meta.dirname, "../bench/first-request.mjs"), bundle.entry, JSON.stringify(signed(command("help")))],
    {
      env: environment(),
    },
  );
  const metric = JSON.parse(stdout.split("\n")[0] ?? "") as { AckMs: number };
  expect(metric).toMatchObject({
    service: "slack",
    _aws: { CloudWatchMetrics: [{ Namespace: "netcheck", Metrics: [{ Name: "AckMs", Unit: "Milliseconds" }] }] },
  });
  expect(metric.AckMs).toBeGreaterThan(0);
});

test("what cannot be started is a failure that Slack shows", async () => {
  expect(await first(signed(command("node1")), { ...environment(), TRIAGE_FUNCTION: "gone" })).toMatchObject({ statusCode: 500 });
});

test("an environment that lacks something is named at the start", async () => {
  const broken = first(signed(command("help")), { ...environment(), SLACK_SECRET_ARN: "", TRIAGE_QUALIFIER: undefined });
  await expect(broken).rejects.toThrow("slack: the environment lacks SLACK_SECRET_ARN, TRIAGE_QUALIFIER");
});

test("the entry has a handler of two parameters: Node 24 on Lambda refuses a third", async () => {
  const script = `import { handler } from ${JSON.stringify(bundle.entry)}; process.stdout.write(String(handler.length)); process.exit(0);`;
  expect((await run([process.execPath, "--input-type=module", "-e", script], { env: environment() })).stdout).toBe("2");
});
