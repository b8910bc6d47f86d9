import { mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { assembly } from "../assembly.ts";
import { lambdaWork } from "../durable/lambda-work.ts";
import { sharedImporter } from "../imports/shared.ts";
import { loadCatalogue, ownSecrets } from "../rules/load.ts";
import { slackClient } from "../slack/client.ts";
import { loadPicture } from "../slack/diagram.ts";
import { slackFiles } from "../slack/files.ts";
import { pace } from "../slack/pace.ts";
import { loadTemplates } from "../slack/render.ts";
import { loadReport } from "../slack/report.ts";
import { DynamoDbStore } from "../store/dynamodb.ts";
import { debugPodTransport } from "../transports/debug-pod.ts";
import { podCluster } from "../transports/pod-clusters.ts";
import { clusterWorkloads } from "../transports/pod-workloads.ts";
import { scripts } from "../transports/script.ts";
import { ssmTransport } from "../transports/ssm.ts";
import type { Config } from "../triage/config.ts";
import type { Context } from "../triage/context.ts";
import type { Ports, Transport } from "../triage/ports.ts";
import { clusterSecrets } from "./cluster-secrets.ts";
import { configSource } from "./config-source.ts";
import { credentialsIn, environmentOf } from "./environment.ts";
import { structuredLog } from "./logger.ts";
import { emfMeter, meteredStore } from "./metrics.ts";
import { SecretReader, SLACK_SECRET } from "./secret.ts";

/** Also from where the bundle is: runbooks/ and templates/ lie beside the code. */
const root = fileURLToPath(new URL("../../", import.meta.url));

const TRIAGE_VARIABLES = ["TABLE", "BUCKET", "CONFIG_PARAMETER", "SLACK_SECRET_ARN", "TRIAGE_FUNCTION", "TRIAGE_QUALIFIER"];

/**
 * Everything the triage runs with on AWS: the real Slack, DynamoDB and S3, Systems Manager, Lambda's own durable executions.
 * @throws if a variable, the secret, the configuration or the catalogue is missing or wrong: the function does not start, and its alarm says so
 */
export async function assembleAws(variables: Readonly<Record<string, string | undefined>>): Promise<Omit<Context, "durable">> {
  // CloudFormation cannot tell a function its own name, because it would wait for itself; Lambda does
  const own = { TRIAGE_FUNCTION: variables["AWS_LAMBDA_FUNCTION_NAME"], ...variables };
  const { required, optional } = environmentOf(own, "triage", TRIAGE_VARIABLES);
  const now = () => Date.now();
  const log = structuredLog("triage");
  const source = configSource(required("CONFIG_PARAMETER"), now);
  let clusters: Config["clusters"] = {};
  // every triage asks for it before it asks a transport for anything
  const config = async () => {
    const current = await source();
    clusters = current.clusters;
    return current;
  };
  const endpoint = optional("AWS_ENDPOINT_URL_SECRETS_MANAGER");
  const secret = new SecretReader({ fields: SLACK_SECRET, arn: required("SLACK_SECRET_ARN"), credentials: credentialsIn(variables), endpoint, now });
  const [{ botToken }] = await Promise.all([secret.read(), config()]);
  const token = async (refused: boolean) => (await secret.read(refused)).botToken;
  const client = slackClient(botToken, optional("SLACK_API_URL"), token);
  const render = loadTemplates(join(root, "templates/slack"));
  const draw = loadPicture(join(root, "templates/diagram.svg.hbs"));
  const store = meteredStore(new DynamoDbStore({ table: required("TABLE"), bucket: required("BUCKET") }), emfMeter("triage"));
  const tokenOf = clusterSecrets(variables);
  const transports = transportsOf(() => clusters, tokenOf);
  const parts = { client, store, render, draw, log, pace: pace(), config, transports, secret: tokenOf };
  const catalogue = loadCatalogue(join(root, "runbooks"), { tolerant: true });
  const ports: Ports = {
    ...assembly({ ...parts, unavailable: 'on AWS: use "ssm" or "debug-pod"' }),
    work: lambdaWork({ functionName: required("TRIAGE_FUNCTION"), qualifier: required("TRIAGE_QUALIFIER") }),
    workloads: clusterWorkloads({
      clusters: async () => Object.entries((await config()).clusters).flatMap(([name, { debugPods }]) => (debugPods === undefined ? [] : [name])),
      cluster: async (name) => podCluster(name, (await config()).clusters[name]?.debugPods, tokenOf),
    }),
    scripts,
    importer: sharedImporter({ fetch: slackFiles(client, () => token(false)), directory: emptyFolder("netcheck-incoming"), secrets: ownSecrets(catalogue) }),
    store,
  };
  return { ports, catalogue, report: loadReport(join(root, "templates/report.md.hbs")) };
}

function transportsOf(clusters: () => Config["clusters"], secret: (name: string) => Promise<string>): Readonly<Record<string, Transport>> {
  return {
    ssm: ssmTransport({ cluster: (name) => clusters()[name] }),
    "debug-pod": debugPodTransport({ cluster: (name) => podCluster(name, clusters()[name]?.debugPods, secret) }),
  };
}

/** A private folder in the function's temporary disk. What an invocation that was cut off left there goes. */
function emptyFolder(name: string): string {
  const folder = join(tmpdir(), name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}
