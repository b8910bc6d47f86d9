import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startServer } from "../../functions/local/server.ts";
import { Workspace } from "../../functions/local/workspace.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import type { HttpEvent, HttpResponse } from "../../functions/slack/app.ts";
import { DynamoDbStore } from "../../functions/store/dynamodb.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { scripts } from "../../functions/transports/script.ts";
import { ssmDocument } from "../../functions/transports/ssm-document.ts";
import { collectionPlan, fixPlan } from "../../functions/triage/plan.ts";
import { bundleAck } from "../../infra/bundle.ts";
import { bundleFunction } from "../../infra/bundle-function.ts";
import { startDurableLambda } from "../emulators/durable-lambda.ts";
import { createTable, dynamoDbProblem, startDynamoDb } from "../emulators/dynamodb.ts";
import { startSecrets } from "../emulators/secrets.ts";
import { startSsm } from "../emulators/ssm.ts";
import { UNHURRIED } from "../unhurried.ts";
import { approve } from "./approve.ts";
import { type Lab, startLab } from "./lab.ts";
import { skipLab } from "./requirements.ts";
import { rested } from "./rested.ts";
import { RULES } from "./rules.ts";

/**
 * As deployed: both Lambdas as bundles, everything of AWS over HTTP (Lambda's durable executions, Systems Manager with agents that run the scripts, DynamoDB
 * Local, S3, Secrets Manager, Parameter Store), Slack's requests signed and its Web API over HTTP, and a live node.
 */
const FUNCTION = "netcheck-triage";
const ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:netcheck/slack-AbCdEf";
const INSTANCE = "i-0123456789abcdef0";
const root = fileURLToPath(new URL("../../", import.meta.url));
const skipped = skipLab() || (dynamoDbProblem() !== undefined && process.env["CI"] !== "true");

type Running = Awaited<ReturnType<typeof stage>>;

async function stage() {
  // below dist/, so that what is not bundled is found as beside the sources
  const folder = mkdtempSync(join(root, "dist/production-"));
  const [lambda, ssm, dynamoDb, secrets, lab] = await Promise.all([
    startDurableLambda(FUNCTION),
    startSsm(),
    startDynamoDb(),
    startSecrets(),
    startLab(["s4"], { suffix: `p${process.pid}` }),
  ]);
  const workspace = new Workspace({ targets: [], ...UNHURRIED });
  let handle: ((event: HttpEvent, context: unknown) => Promise<HttpResponse>) | undefined;
  const slack = await startServer({
    workspace,
    port: 0,
    appHandler: async ({ headers, body }) => {
      if (handle === undefined) throw new Error("not deployed yet");
      const { statusCode, headers: answer = {}, body: text } = await handle({ headers, body, isBase64Encoded: false }, {});
      return { status: statusCode, headers: Object.fromEntries(Object.entries(answer).map(([name, value]) => [name, String(value)])), body: text };
    },
  });
  const environment = {
    TABLE: "netcheck",
    BUCKET: "netcheck-data",
    CONFIG_PARAMETER: "/netcheck/netcheck.yaml",
    SLACK_SECRET_ARN: ARN,
    TRIAGE_FUNCTION: FUNCTION,
    TRIAGE_QUALIFIER: "live",
    SLACK_API_URL: `${slack.url}/api/`,
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
    AWS_SECRET_ACCESS_KEY: "secret",
    AWS_ENDPOINT_URL_LAMBDA: lambda.url,
    AWS_ENDPOINT_URL_SSM: ssm.url,
    AWS_ENDPOINT_URL_S3: ssm.s3url,
    AWS_ENDPOINT_URL_DYNAMODB: dynamoDb.url,
    AWS_ENDPOINT_URL_SECRETS_MANAGER: secrets.url,
  };
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  // what infra/ makes and what the person who deploys puts in
  await createTable(new DynamoDBClient({}), environment.TABLE);
  secrets.put(ARN, JSON.stringify({ signingSecret: workspace.signingSecret, botToken: workspace.botToken }));
  ssm.parameters.set(
    environment.CONFIG_PARAMETER,
    `clusters:\n  lab:\n    transport: ssm\n    region: eu-central-1\n    outputBucket: netcheck-data\n    targets:\n      node4: { address: ${INSTANCE} }\npolicy:\n  - { id: sre, effect: allow, approvers: [S_SRE] }\n`,
  );
  const catalogue = loadCatalogue(join(root, "runbooks"));
  const all = [
    scripts.collect(collectionPlan(catalogue, "netcheck")),
    ...[...catalogue.fixes.values()].map((fix) => scripts.fix(fixPlan(fix))),
    scripts.fixStatus,
  ];
  for (const script of all) ssm.register(ssmDocument(script).name, ssmDocument(script).content);
  const node = lab.node("s4");
  ssm.agents.set(INSTANCE, { name: node.name, enter: node.enter });

  const triage = (await import(await bundleFunction("triage", join(folder, "triage")))) as { handler: never };
  lambda.run(triage.handler);
  handle = ((await import((await bundleAck(join(folder, "slack"))).entry)) as { handler: typeof handle }).handler;
  return {
    lambda,
    ssm,
    workspace,
    lab: lab as Lab,
    node,
    store: new DynamoDbStore({ table: environment.TABLE, bucket: environment.BUCKET }),
    close: async () => {
      await lambda.close();
      await lab.down();
      await Promise.all([slack.close(), ssm.close(), dynamoDb.close(), secrets.close()]);
      vi.unstubAllEnvs();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

let on: Running;
beforeAll(async () => {
  if (!skipped) on = await stage();
}, 120_000);
afterAll(async () => on?.close());

test.skipIf(skipped)("from a signed command to a verified fix", { timeout: 120_000 }, async () => {
  const { lambda, workspace, node, store } = on;
  let asked = 0;
  const say = async (text: string) => {
    expect(await workspace.command({ user: "U_ALICE", channel: "C_INCIDENTS", command: "/netcheck", text })).toEqual({ ok: true });
    asked += 1;
    await rested(lambda.engine, async () => {
      const incidents = await store.incidents(10);
      return incidents.length < asked ? undefined : incidents[0];
    });
  };
  const thread = (ts?: string) => workspace.transcript("C_INCIDENTS", ts, "U_ALICE");

  await say("node4");
  const [healthy] = await store.incidents(1);
  expect(healthy?.state, thread(healthy?.thread?.ts)).toBe("diagnosed");
  expect(thread(healthy?.thread?.ts)).toContain("everything that was checked is in order");

  await node.fault();
  expect(await node.probe(), "the traffic fails").toBe(false);
  await say("node4");
  const broken = (await store.incidents(10)).find(({ id }) => id !== healthy?.id);
  expect(broken?.state, thread(broken?.thread?.ts)).toBe("awaiting-approval");
  const proposal = await store.proposal(broken?.proposal ?? "");
  expect(proposal?.rule).toBe(RULES.s4);

  if (proposal === undefined) throw new Error("there is no proposal");
  expect(await approve(workspace, proposal, "U_BOB", () => lambda.engine.idle())).toBe(true);
  await lambda.engine.finished(lambda.engine.execution(broken?.id ?? "")?.arn ?? "");
  expect((await store.incident(broken?.id ?? ""))?.state, thread(broken?.thread?.ts)).toBe("resolved");
  expect(await node.probe(), "the traffic works again").toBe(true);
  expect(await verifyStore(store)).toEqual([]);
});
