import { readFileSync } from "node:fs";
import { GetSecretValueCommand, SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { ConfigUnread, configSource, readConfig } from "../aws/config-source.ts";
import type { Catalogue } from "../rules/load.ts";
import type { Config } from "../triage/config.ts";
import { allScripts } from "./all-scripts.ts";
import { type Finding, type Findings, ok, problem } from "./doctor-findings.ts";
import type { OptInTag } from "./doctor-ssm.ts";
import { UsageError } from "./errors.ts";

/** The command's options. */
export interface DoctorOptions {
  readonly config?: string;
  readonly outputs?: string;
  readonly stack?: string;
  readonly parameter?: string;
  readonly table?: string;
  readonly slackSecret?: string;
  readonly url?: string;
  readonly tag: string;
}

export interface DoctorSurroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly catalogue: Catalogue;
  /** infra/slack/manifest.yaml */
  readonly slackManifest: string;
  /** Milliseconds between two tries of a call to an API server. */
  readonly pauseMs?: number;
}

/** What of a deployment is known. */
interface Deployment {
  readonly table: string | undefined;
  readonly parameter: string | undefined;
  readonly slackSecret: string | undefined;
  readonly requestUrl: string | undefined;
  readonly buckets: ReadonlyMap<string, string>;
}

/**
 * Looks at a deployment, all of it: configuration, Slack, AWS, Systems Manager, Kubernetes. Only looks. What cannot be looked at is a finding, too.
 * Throws UsageError for options that are wrong.
 */
export async function examine(findings: Findings, options: DoctorOptions, surroundings: DoctorSurroundings): Promise<void> {
  const { environment, catalogue, slackManifest, pauseMs } = surroundings;
  const tag = tagOf(options.tag);
  const deployment = deploymentOf(options, environment);
  const scripts = allScripts(catalogue);
  const config = await configuration(findings, options.config, deployment.parameter, catalogue);
  await findings.look("Configuration", "rules and fixes", () => whatLoads(catalogue));
  const slack = await slackSecret(findings, deployment.slackSecret, environment);
  const { examineSlack, manifestScopes } = await import("./doctor-slack.ts");
  const access = {
    botToken: slack.botToken,
    signingSecret: slack.signingSecret,
    appToken: environment["SLACK_APP_TOKEN"] || undefined,
    apiUrl: environment["SLACK_API_URL"] || "https://slack.com/api/",
    requestUrl: deployment.requestUrl,
  };
  await examineSlack(findings, access, config?.pages === undefined ? [] : [config.pages.channel], () => manifestScopes(slackManifest));
  const outputBuckets = Object.entries(config?.clusters ?? {}).flatMap(([name, { outputBucket }]) =>
    outputBucket === undefined ? [] : [[outputBucket, `outputBucket of ${name}`] as const],
  );
  const clusters = Object.values(config?.clusters ?? {});
  const onAws = deployment.table !== undefined || deployment.parameter !== undefined || clusters.some(({ transport }) => transport === "ssm");
  if (onAws) {
    const { examineAwsStore } = await import("./doctor-aws.ts");
    await examineAwsStore(findings, { table: deployment.table, buckets: new Map([...outputBuckets, ...deployment.buckets]) });
  }
  if (config === undefined) return;
  if (clusters.some(({ transport, fallback }) => transport === "ssm" || fallback === "ssm")) {
    const { examineSsm } = await import("./doctor-ssm.ts");
    await examineSsm(findings, config.clusters, scripts, tag);
  }
  if (clusters.some(({ debugPods }) => debugPods !== undefined)) {
    const { examineKubernetes } = await import("./doctor-kubernetes.ts");
    await examineKubernetes(findings, config.clusters, scripts, clusterToken(environment), pauseMs);
  }
}

function tagOf(text: string): OptInTag {
  const [, key, value] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (key === undefined || value === undefined) throw new UsageError(`--tag takes key=value, not ${text}`);
  return { key, value };
}

/** From the options, then what the deployment wrote down, then the environment of the functions. */
function deploymentOf(options: DoctorOptions, environment: DoctorSurroundings["environment"]): Deployment {
  const outputs = options.outputs === undefined ? {} : outputsOf(options.outputs, options.stack ?? "netcheck");
  const buckets = [
    [outputs["DataBucketName"] ?? environment["BUCKET"], "captures and reports"],
    [outputs["ArchiveBucketName"], "archive of the audit events"],
  ].flatMap(([name, purpose]) => (name === undefined || name === "" ? [] : [[name, purpose as string] as const]));
  return {
    table: options.table ?? outputs["TableName"] ?? environment["TABLE"],
    parameter: options.parameter ?? outputs["ConfigParameter"] ?? environment["CONFIG_PARAMETER"],
    slackSecret: options.slackSecret ?? outputs["SlackSecretArn"] ?? environment["SLACK_SECRET_ARN"],
    requestUrl: options.url ?? outputs["SlackUrl"],
    buckets: new Map(buckets),
  };
}

function outputsOf(file: string, stack: string): Readonly<Record<string, string>> {
  let stacks: Readonly<Record<string, Readonly<Record<string, string>>>>;
  try {
    stacks = JSON.parse(readFileSync(file, "utf8")) as typeof stacks;
  } catch (cause) {
    throw new UsageError(`--outputs ${file}: could not read it: ${(cause as Error).message}`, { cause });
  }
  const found = stacks[stack];
  if (found === undefined) throw new UsageError(`--outputs ${file} has no stack ${stack}; it has ${Object.keys(stacks).join(", ")}. Name it with --stack`);
  return found;
}

/** Each file that does not load is left out by itself: the functions run without it. */
function whatLoads({ rules, fixes, broken }: Catalogue): Finding {
  const wrong = [...broken.rules.values(), ...broken.fixes.values()].map((message) => message.split("\n")[0] ?? "");
  if (wrong.length === 0) return ok(`${rules.size} rules and ${fixes.size} fixes load`);
  return problem(`left out, because they do not load: ${wrong.join("; ")}`, "Correct them and deploy again: what they are about is inconclusive on every node");
}

async function configuration(findings: Findings, file: string | undefined, parameter: string | undefined, catalogue: Catalogue): Promise<Config | undefined> {
  let config: Config | undefined;
  await findings.look("Configuration", file ?? parameter ?? "netcheck.yaml", async () => {
    if (file === undefined && parameter === undefined)
      return problem("which configuration is in use is not known", "Give --config <file>, or --outputs or --parameter of the deployment");
    try {
      config = file === undefined ? await configSource(parameter as string, Date.now)() : readConfig(readFileSync(file, "utf8"), file);
    } catch (error) {
      if (error instanceof ConfigUnread) {
        if ((error.cause as Error).name === "ParameterNotFound") return problem(error.message, "Name the deployment's parameter with --parameter, or deploy");
        throw error;
      }
      const absent = (error as NodeJS.ErrnoException).code === "ENOENT";
      return problem(
        (error as Error).message,
        absent
          ? "Name the file that there is; infra/netcheck.example.yaml is one to begin with"
          : "Correct it; docs/generated/netcheck.schema.json helps in editors that know YAML",
      );
    }
    const wrong = [
      catalogue.runbooks.has(config.runbook) ? "" : `there is no runbook ${config.runbook}`,
      Object.keys(config.clusters).length === 0 ? "it names no cluster" : "",
      config.policy.some(({ effect }) => effect === "allow") ? "" : "no statement of its policy allows anything, so no fix can ever be approved",
    ].filter((part) => part !== "");
    if (wrong.length > 0) return problem(wrong.join("; "), "Correct it and deploy again");
    const names = Object.keys(config.clusters);
    return ok(`valid: ${names.length} cluster${names.length === 1 ? "" : "s"} (${names.join(", ")}), ${config.policy.length} policy statements`);
  });
  return config;
}

async function slackSecret(
  findings: Findings,
  arn: string | undefined,
  environment: DoctorSurroundings["environment"],
): Promise<{ botToken?: string | undefined; signingSecret?: string | undefined }> {
  if (arn === undefined) return { botToken: environment["SLACK_BOT_TOKEN"] || undefined, signingSecret: environment["SLACK_SIGNING_SECRET"] || undefined };
  let found: { botToken?: string; signingSecret?: string } = {};
  await findings.look("Slack", "secret", async () => {
    const value = await secretValue(arn);
    const filled = (name: string): string | undefined => (typeof value[name] === "string" && value[name] !== "" ? value[name] : undefined);
    const [botToken, signingSecret] = [filled("botToken"), filled("signingSecret")];
    found = { ...(botToken === undefined ? {} : { botToken }), ...(signingSecret === undefined ? {} : { signingSecret }) };
    if (botToken !== undefined && signingSecret !== undefined) return ok("botToken and signingSecret are filled in");
    const missing = [botToken === undefined ? "botToken" : "", signingSecret === undefined ? "signingSecret" : ""].filter(Boolean).join(" and ");
    return problem(`${missing} not filled in`, `aws secretsmanager put-secret-value --secret-id ${arn}: JSON with "botToken" and "signingSecret"`);
  });
  return found;
}

/** The fields of a secret; {} if it is no JSON. Its value never becomes part of a message. */
async function secretValue(arn: string): Promise<Record<string, unknown>> {
  const region = /^arn:aws[a-z-]*:secretsmanager:([a-z0-9-]+):/.exec(arn)?.[1];
  if (region === undefined) throw new Error(`this is no ARN of a secret: ${arn}`);
  const client = new SecretsManagerClient({
    region,
    maxAttempts: 2,
    requestHandler: { connectionTimeout: 3000, requestTimeout: 10_000, throwOnRequestTimeout: true },
  });
  const text = (await client.send(new GetSecretValueCommand({ SecretId: arn }))).SecretString ?? "";
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** The token of a cluster by the name in netcheck.yaml: an ARN, or a variable of the environment. */
function clusterToken(environment: DoctorSurroundings["environment"]): (name: string) => Promise<string> {
  return async (name) => {
    const token = name.startsWith("arn:") ? (await secretValue(name))["token"] : environment[name];
    if (typeof token === "string" && token !== "") return token;
    throw new Error(name.startsWith("arn:") ? `the secret ${name} has no "token"` : `the environment has no ${name}`);
  };
}
