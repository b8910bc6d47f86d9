import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { stringify } from "yaml";
import { allScripts } from "../functions/cli/all-scripts.ts";
import { type Check, Findings } from "../functions/cli/doctor-findings.ts";
import { type DoctorOptions, examine } from "../functions/cli/doctor-run.ts";
import { manifestScopes } from "../functions/cli/doctor-slack.ts";
import { older } from "../functions/cli/doctor-ssm.ts";
import { loadCatalogue } from "../functions/rules/load.ts";
import { ssmDocument } from "../functions/transports/ssm-document.ts";
import { DEFAULTS, manifest } from "../infra/k8s/manifest.ts";
import { type DoctorAws, goodTable, startDoctorAws } from "./emulators/doctor-aws.ts";
import { listen } from "./emulators/http.ts";
import { type AdmissionEmulator, AUTHORITY, startAdmission } from "./emulators/kubernetes-admission.ts";
import { type SlackApp, startSlackApp } from "./emulators/slack-app.ts";
import { type SsmEmulator, startSsm } from "./emulators/ssm.ts";
import { runCli } from "./run-cli.ts";

const root = fileURLToPath(new URL("../", import.meta.url));
const catalogue = loadCatalogue(`${root}runbooks`);
const scripts = allScripts(catalogue);
const slackManifest = `${root}infra/slack/manifest.yaml`;
const image = `example/debug@sha256:${"a".repeat(64)}`;
const TOKEN = "sa-token";
const SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:netcheck-slack-AbCdEf";
const NODES = { "i-0123456789abcdef0": "node1", "i-0123456789abcdef1": "node2" };

let folder: string;
let slack: SlackApp;
let aws: DoctorAws;
let ssm: SsmEmulator;
let cluster: AdmissionEmulator;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "netcheck-doctor-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** A deployment where everything is as it should be. */
beforeEach(async () => {
  slack = await startSlackApp(manifestScopes(slackManifest));
  slack.channels.add("C0PAGES");
  aws = await startDoctorAws();
  for (const [operation, answer] of Object.entries(goodTable("netcheck-table"))) aws.answers.set(operation, answer);
  aws.answers.set("GetSecretValue", { SecretString: JSON.stringify({ botToken: slack.botToken, signingSecret: "0123456789abcdef".repeat(2) }) });
  for (const bucket of ["outputs", "data", "archive"]) aws.buckets.set(bucket, 200);
  ssm = await startSsm({
    agents: Object.fromEntries(Object.entries(NODES).map(([id, name]) => [id, { name, enter: [], tags: { netcheck: "enabled" } }])),
  });
  for (const script of scripts) {
    const { name, content } = ssmDocument(script);
    ssm.register(name, content);
  }
  const node = { kind: "Node", metadata: { name: "worker-1" }, status: { conditions: [{ type: "Ready", status: "True" }] } };
  cluster = await startAdmission([...manifest(scripts, { ...DEFAULTS, image }).map(({ object }) => object), node], TOKEN);
  cluster.may = (right) => !/exec|ephemeral|kube-system|configmaps/.test(right);
  vi.stubEnv("AWS_ENDPOINT_URL_SSM", ssm.url);
  for (const service of ["DYNAMODB", "S3", "SECRETS_MANAGER"]) vi.stubEnv(`AWS_ENDPOINT_URL_${service}`, aws.url);
  vi.stubEnv("AWS_REGION", "eu-central-1");
  vi.stubEnv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all([slack.close(), aws.close(), ssm.close(), cluster.close()]);
});

const configuration = () => ({
  clusters: {
    prod: {
      transport: "ssm",
      region: "eu-central-1",
      outputBucket: "outputs",
      targets: Object.fromEntries(Object.entries(NODES).map(([address, name]) => [name, { address }])),
    },
    k8s: {
      transport: "debug-pod",
      targets: { "worker-1": {} },
      debugPods: { image, access: { by: "kubeconfig", file: join(folder, "kubeconfig") } },
    },
  },
  pages: { channel: "C0PAGES" },
  policy: [{ id: "sre", effect: "allow", approvers: ["S0SRE"] }],
});

function write(config: object = configuration()): string {
  writeFileSync(
    join(folder, "kubeconfig"),
    stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "c",
      clusters: [{ name: "c", cluster: { server: cluster.url, "certificate-authority-data": Buffer.from(AUTHORITY).toString("base64") } }],
      users: [{ name: "u", user: { token: TOKEN } }],
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    }),
  );
  writeFileSync(
    join(folder, "outputs.json"),
    JSON.stringify({ netcheck: { TableName: "netcheck-table", DataBucketName: "data", ArchiveBucketName: "archive", SlackSecretArn: SECRET } }),
  );
  writeFileSync(join(folder, "netcheck.yaml"), stringify(config));
  return join(folder, "netcheck.yaml");
}

/** Everything that was found. */
async function doctor(options: Partial<DoctorOptions> = {}, environment: Record<string, string> = {}): Promise<Check[]> {
  const config = options.config ?? write();
  const findings = new Findings();
  const given = { config, outputs: join(folder, "outputs.json"), url: slack.requestUrl, tag: "netcheck=enabled", ...options };
  await examine(findings, given, { environment: { SLACK_API_URL: slack.url, ...environment }, catalogue, slackManifest, pauseMs: 1 });
  return findings.checks;
}
const lines = (checks: readonly Check[], state?: Check["state"]): string[] =>
  checks.filter((check) => state === undefined || check.state === state).map((check) => `${check.area} / ${check.check}: ${check.detail}`);
/** The one finding whose check begins so. */
function found(checks: readonly Check[], check: string): Check {
  const some = checks.filter((one) => one.check.startsWith(check));
  expect(some, `${check} in ${checks.map((one) => one.check).join(", ")}`).toHaveLength(1);
  return some[0] as Check;
}

test("a deployment that is well: every look is ok", async () => {
  const checks = await doctor();
  expect(lines(checks.filter(({ state }) => state !== "ok"))).toEqual([]);
  expect(checks.length).toBeGreaterThan(28);
  expect(new Set(checks.map(({ area }) => area))).toEqual(
    new Set(["Configuration", "Slack", "AWS", "Systems Manager, cluster prod", "Kubernetes, cluster k8s"]),
  );
});

test("it only looks: nothing is sent to a node, written or created", async () => {
  await doctor();
  expect([...new Set(ssm.requests.map(({ operation }) => operation))].toSorted((a, b) => a.localeCompare(b))).toEqual([
    "DescribeInstanceInformation",
    "GetDocument",
  ]);
  // the emulators answer any other request with an error of their own, which would have been a finding
});

test("every problem says what to do, and no finding holds a secret", async () => {
  slack.scopes = "commands";
  ssm.agents.clear();
  aws.buckets.clear();
  cluster.objects.clear();
  const checks = await doctor();
  expect(lines(checks, "problem").length).toBeGreaterThan(10);
  expect(checks.filter(({ state, todo }) => state === "problem" && (todo ?? "") === "")).toEqual([]);
  for (const secret of [slack.botToken, TOKEN, "0123456789abcdef".repeat(2), "AKIDEXAMPLE"]) expect(JSON.stringify(checks)).not.toContain(secret);
});

describe("configuration", () => {
  test.each([
    ["a wrong key", { ...configurationOf(), nonsense: 1 }, "problem", "nonsense"],
    ["an unknown runbook", { ...configurationOf(), runbook: "x" }, "problem", "there is no runbook x"],
    ["nobody may approve", { ...configurationOf(), policy: [] }, "problem", "no fix can ever be approved"],
  ])("%s", async (_what, config, state, said) => {
    const check = (await doctor({ config: write(config) }))[0];
    expect(check?.state).toBe(state);
    expect(check?.detail).toContain(said);
  });

  test("a file that is not there, and none at all", async () => {
    const absent = (await doctor({ config: "/nowhere/netcheck.yaml" }))[0];
    expect(absent).toMatchObject({
      detail: expect.stringContaining("ENOENT") as string,
      todo: expect.stringContaining("infra/netcheck.example.yaml") as string,
    });
    write();
    const findings = new Findings();
    await examine(findings, { tag: "a=b" }, { environment: { SLACK_API_URL: slack.url }, catalogue, slackManifest });
    expect(findings.checks[0]?.state).toBe("problem");
  });

  test.each([
    ["ParameterNotFound", "problem", "--parameter"],
    ["AccessDeniedException", "unknown", ""],
  ])("Parameter Store says %s: only a parameter that is not there is a problem of the deployment's", async (type, state, todo) => {
    write();
    const parameters = await listen((_request, _body, response) => void response.writeHead(400).end(JSON.stringify({ __type: type, message: "no" })));
    vi.stubEnv("AWS_ENDPOINT_URL_SSM", parameters.url);
    const findings = new Findings();
    await examine(findings, { parameter: "/netcheck/config", tag: "a=b" }, { environment: { SLACK_API_URL: slack.url }, catalogue, slackManifest });
    await parameters.close();
    expect(findings.checks[0]).toMatchObject({ state, detail: expect.stringContaining(type) as string });
    expect(findings.checks[0]?.todo ?? "").toContain(todo);
  });

  test("a rule that does not load is one problem, and everything else is looked at", async () => {
    cpSync(`${root}runbooks/netcheck`, join(folder, "runbooks/netcheck"), { recursive: true });
    for (const name of ["rules/broken", "fixes"]) mkdirSync(join(folder, "runbooks", name), { recursive: true });
    writeFileSync(join(folder, "runbooks/rules/broken/rule.yaml"), "nonsense: 1\n");
    const config = write();
    const { code, stdout } = await runCli(["doctor", "--config", config, "--json"], folder, {
      NETCHECK_RUNBOOKS: join(folder, "runbooks"),
      SLACK_API_URL: slack.url,
      SLACK_BOT_TOKEN: slack.botToken,
    });
    const { checks } = JSON.parse(stdout) as { checks: Check[] };
    expect([code, found(checks, "rules and fixes").state, found(checks, "bot token").state]).toEqual([1, "problem", "ok"]);
    expect(found(checks, "rules and fixes").detail).toContain("broken/rule.yaml");
  });
});

function configurationOf() {
  return { clusters: { demo: { transport: "replay", targets: {} } }, policy: [{ id: "sre", effect: "allow", approvers: ["S0SRE"] }] };
}

describe("Slack", () => {
  test("scopes that lack, and scopes that are too many", async () => {
    slack.scopes = manifestScopes(slackManifest).slice(1).join(",");
    expect(found(await doctor(), "scopes").detail).toBe(`the token lacks ${manifestScopes(slackManifest)[0]}`);
    slack.scopes = [...manifestScopes(slackManifest), "admin"].join(", ");
    expect(found(await doctor(), "scopes")).toMatchObject({ state: "problem", detail: expect.stringContaining("admin") as string });
  });

  test("the secret is not filled in: then nothing of it can be looked at", async () => {
    aws.answers.set("GetSecretValue", { SecretString: '{"signingSecret":"x","botToken":""}' });
    const checks = await doctor();
    expect(found(checks, "secret")).toMatchObject({ state: "problem", detail: "botToken not filled in" });
    expect(found(checks, "bot token").state).toBe("unknown");
    expect(found(checks, "channel").state).toBe("unknown");
    expect(found(checks, "signing secret").state).toBe("problem");
  });

  test("the secret may not be read", async () => {
    aws.answers.set("GetSecretValue", { __type: "AccessDeniedException", message: "User x is not authorized to perform: secretsmanager:GetSecretValue" });
    expect(found(await doctor(), "secret")).toMatchObject({ state: "unknown", detail: expect.stringContaining("AccessDeniedException") as string });
  });

  test("a token that Slack does not know; a user's token", async () => {
    aws.answers.set("GetSecretValue", { SecretString: '{"signingSecret":"0123456789abcdef0123456789abcdef","botToken":"xoxb-old"}' });
    const checks = await doctor();
    expect(found(checks, "bot token").detail).toBe("Slack refuses it: invalid_auth");
    expect(checks.some(({ check }) => check === "scopes")).toBe(false);
    aws.answers.set("GetSecretValue", { SecretString: '{"signingSecret":"0123456789abcdef0123456789abcdef","botToken":"xoxp-user"}' });
    expect(found(await doctor(), "bot token").detail).toContain("not a bot token");
  });

  test("a channel that the bot is not in", async () => {
    slack.channels.clear();
    expect(found(await doctor(), "channel C0PAGES")).toMatchObject({ state: "problem", todo: expect.stringContaining("/invite") as string });
  });

  test("a clock that is wrong", async () => {
    slack.clockOffset = 400_000;
    const check = (await doctor()).find(({ area, check: name }) => area === "Slack" && name === "clock");
    expect(check).toMatchObject({ state: "problem", detail: expect.stringMatching(/(?:399|40\d) s behind Slack's/) as string });
  });

  test("the address for requests: takes anything, fails, does not answer", async () => {
    slack.door = 200;
    expect(found(await doctor(), "how requests come").detail).toContain("without a signature (200)");
    slack.door = 502;
    expect(found(await doctor(), "how requests come")).toMatchObject({ state: "problem", detail: expect.stringContaining("502") as string });
    expect(found(await doctor({ url: "http://127.0.0.1:1/slack" }), "how requests come").state).toBe("unknown");
  });

  test("the address for requests is the one that the deployment wrote down", async () => {
    const config = write();
    const outputs = join(folder, "outputs.json");
    const { netcheck } = JSON.parse(readFileSync(outputs, "utf8")) as { netcheck: object };
    const findings = new Findings();
    writeFileSync(outputs, JSON.stringify({ netcheck: { ...netcheck, SlackUrl: slack.requestUrl } }));
    await examine(findings, { config, outputs, tag: "netcheck=enabled" }, { environment: { SLACK_API_URL: slack.url }, catalogue, slackManifest, pauseMs: 1 });
    expect(lines(findings.checks.filter(({ area, state }) => area === "Slack" && state !== "ok"))).toEqual([]);
  });

  test("Socket Mode", async () => {
    const environment = { SLACK_APP_TOKEN: slack.appToken };
    expect(found(await doctor({}, environment), "how requests come").state).toBe("ok");
    slack.socketMode = false;
    expect(found(await doctor({}, environment), "how requests come").detail).toContain("socket_mode_not_enabled");
  });
});

describe("table and buckets", () => {
  test("a table that somebody made by hand", async () => {
    aws.answers.set("DescribeTable", { Table: { TableStatus: "ACTIVE", KeySchema: [{ AttributeName: "id", KeyType: "HASH" }] } });
    aws.answers.set("DescribeContinuousBackups", { ContinuousBackupsDescription: { ContinuousBackupsStatus: "ENABLED" } });
    aws.answers.set("DescribeTimeToLive", { TimeToLiveDescription: { TimeToLiveStatus: "ENABLED", AttributeName: "ttl" } });
    const checks = await doctor();
    for (const said of ["its keys are id HASH", "no index list", "no stream", "deleted by one call"]) expect(found(checks, "table").detail).toContain(said);
    expect(found(checks, "point-in-time recovery").state).toBe("problem");
    expect(found(checks, "time to live").detail).toContain("on ttl");
  });

  test("no table; no right to look", async () => {
    aws.answers.set("DescribeTable", { __type: "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException", message: "Requested resource not found" });
    expect(found(await doctor(), "table")).toMatchObject({ state: "problem", detail: expect.stringContaining("does not exist") as string });
    aws.answers.set("DescribeTable", { __type: "com.amazon.coral.service#AccessDeniedException", message: "not authorized" });
    expect(found(await doctor(), "table").state).toBe("unknown");
  });

  test("a bucket that is gone is a problem, one that may not be looked at is not", async () => {
    aws.buckets.set("outputs", 404).set("archive", 403);
    const checks = await doctor();
    expect(found(checks, "bucket outputs")).toMatchObject({ state: "problem", detail: "it does not exist (outputBucket of prod)" });
    expect(found(checks, "bucket archive").state).toBe("unknown");
    expect(found(checks, "bucket data").state).toBe("ok");
  });
});

describe("Systems Manager", () => {
  test("documents of another version, and one that is missing", async () => {
    const [first] = scripts.map(ssmDocument);
    const changed = JSON.parse(first?.content ?? "") as { mainSteps: { inputs: { runCommand: string[] } }[] };
    changed.mainSteps[0]?.inputs.runCommand.push("true");
    ssm.register(first?.name ?? "", changed);
    expect(found(await doctor(), "documents")).toMatchObject({ state: "problem", detail: "1 are not those of this version: netcheck-collect-netcheck" });
    await ssm.close();
    ssm = await startSsm();
    vi.stubEnv("AWS_ENDPOINT_URL_SSM", ssm.url);
    expect(found(await doctor(), "documents").detail).toContain(`${scripts.length} of ${scripts.length} are missing`);
  });

  test("agents that are silent, unknown, old, on Windows, or not tagged", async () => {
    const node = (more: object) => ({ name: "n", enter: [], tags: { netcheck: "enabled" }, ...more });
    ssm.agents.set("i-0123456789abcdef0", node({ ping: "ConnectionLost" }));
    ssm.agents.delete("i-0123456789abcdef1");
    const silent = found(await doctor(), "agents");
    expect(silent.detail).toContain("node1: its agent last answered");
    expect(silent.detail).toContain("node2: Systems Manager does not know the node");
    ssm.agents.set("i-0123456789abcdef0", node({ environment: false }));
    ssm.agents.set("i-0123456789abcdef1", node({ platform: "Windows", tags: {} }));
    const checks = await doctor();
    expect(found(checks, "agent versions").detail).toContain("node1 (3.2.2303.0)");
    expect(found(checks, "platforms").detail).toBe("not Linux: node2 (Windows)");
    expect(found(checks, "tag netcheck=enabled").detail).toContain("node2");
  });

  test("a target without an instance id, and a cluster without a region", async () => {
    const config = configuration();
    (config.clusters.prod.targets as Record<string, object>)["node3"] = {};
    expect(found(await doctor({ config: write(config) }), "agents").detail).toContain("node3: its address node3 is no instance id");
    const { region: _region, ...rest } = config.clusters.prod;
    expect(found(await doctor({ config: write({ ...config, clusters: { prod: rest } }) }), "region")).toMatchObject({ state: "unknown" });
  });

  test("no right to look", async () => {
    ssm.fail({ operation: "*", error: { type: "AccessDeniedException", message: "not authorized to perform: ssm:GetDocument" }, times: 100 });
    const checks = await doctor();
    expect(found(checks, "documents")).toMatchObject({ state: "unknown", todo: expect.stringContaining("ssm:GetDocument") as string });
    expect(found(checks, "agents").state).toBe("unknown");
  });

  test.each([
    ["3.3.2745.9", true],
    ["3.3.2746.0", false],
    ["3.3.3050.0", false],
    ["3.2.9999.0", true],
    ["4.0.0.0", false],
    ["unknown", true],
  ])("agent %s is too old: %s", (version, expected) => expect(older(version, "3.3.2746.0")).toBe(expected));
});

describe("Kubernetes", () => {
  const POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

  test("rights that lack, and rights that are too many", async () => {
    cluster.may = (right) => right !== "patch pods in netcheck" && right !== "get pods/log in netcheck";
    const checks = await doctor();
    expect(found(checks, "rights").detail).toBe("netcheck's account may not patch pods in netcheck, get pods/log in netcheck");
    expect(found(checks, "no further rights").detail).toContain("create pods/exec in netcheck");
  });

  test("pods and services: set up, half set up, and not at all, which is no problem", async () => {
    cluster.may = () => true;
    expect(found(await doctor(), "pods and services")).toMatchObject({ state: "ok", detail: expect.stringContaining("can look them up") as string });
    cluster.may = (right) => right !== "list endpointslices";
    expect(found(await doctor(), "pods and services")).toMatchObject({
      state: "problem",
      detail: expect.stringContaining("may not list endpointslices") as string,
    });
    cluster.may = (right) => !["get pods", "get services", "list endpointslices"].includes(right);
    expect(found(await doctor(), "pods and services")).toMatchObject({ state: "ok", detail: expect.stringContaining("not set up") as string });
  });

  test("nothing is installed: a changed pod would be taken", async () => {
    cluster.objects.clear();
    const checks = await doctor();
    expect(found(checks, "namespace").detail).toBe("there is no namespace netcheck");
    expect(found(checks, "policy netcheck-pods").detail).toBe("there is no policy netcheck-pods");
    expect(found(checks, "a pod that somebody changed")).toMatchObject({ state: "problem", detail: expect.stringContaining("run anything as root") as string });
    expect(found(checks, "nodes").detail).toBe("there is no node worker-1");
  });

  test("another image in the cluster than in netcheck.yaml: the real policy denies our own pod", async () => {
    for (const { object } of manifest(scripts, { ...DEFAULTS, image: image.replaceAll("a", "b") }))
      if (object["kind"] === "ConfigMap") cluster.objects.set("/api/v1/namespaces/netcheck/configmaps/netcheck-policy", object);
    const checks = await doctor();
    expect(found(checks, "pinned scripts and image").detail).toContain("netcheck.yaml names");
    expect(found(checks, "a debug pod (dry run)").detail).toContain("its image must be the pinned one");
  });

  test("a policy that was weakened, and a binding that only audits", async () => {
    const policy = structuredClone(cluster.objects.get(`${POLICIES}/netcheck-pods`)) as {
      spec: { failurePolicy: string; validations: { expression: string }[] };
    };
    policy.spec.failurePolicy = "Ignore";
    (policy.spec.validations[3] as { expression: string }).expression = "true";
    cluster.objects.set(`${POLICIES}/netcheck-pods`, policy);
    const binding = structuredClone(cluster.objects.get(`${POLICIES.replace(/ies$/, "ybindings")}/netcheck-pods`)) as { spec: { validationActions: string[] } };
    binding.spec.validationActions = ["Audit"];
    cluster.objects.set(`${POLICIES.replace(/ies$/, "ybindings")}/netcheck-pods`, binding);
    const checks = await doctor();
    expect(found(checks, "policy netcheck-pods").detail).toContain("failurePolicy is Ignore; 1 of");
    expect(found(checks, "binding netcheck-pods").state).toBe("problem");
    expect(found(checks, "a pod that somebody changed").state).toBe("problem");
  });

  test("another label of the namespace; another admission webhook", async () => {
    cluster.objects.set("/api/v1/namespaces/netcheck", { metadata: { labels: { "pod-security.kubernetes.io/enforce": "restricted" } } });
    cluster.refusal = { status: 403, reason: "Forbidden", message: 'admission webhook "gate.example" denied the request: no privileged pods' };
    const checks = await doctor();
    expect(found(checks, "namespace").detail).toContain("enforce=restricted");
    expect(found(checks, "a debug pod (dry run)").detail).toContain("Allow netcheck's namespace in that policy");
    expect(found(checks, "a pod that somebody changed")).toMatchObject({
      state: "unknown",
      detail: expect.stringContaining("as it denies every pod") as string,
    });
  });

  test("a cluster that is too old, one that is slow with the time, one whose policies may not be read", async () => {
    cluster.minor = "29+";
    cluster.clockOffset = -120_000;
    cluster.hidden.add(`${POLICIES}/netcheck-pods`);
    const checks = await doctor();
    expect(found(checks, "API server").detail).toContain("has no ValidatingAdmissionPolicy");
    expect(
      found(
        checks.filter(({ area }) => area.startsWith("Kubernetes")),
        "clock",
      ).detail,
    ).toContain("ahead of the API server's");
    expect(found(checks, "policy netcheck-pods").state).toBe("unknown");
  });

  test("an API server that is down, and one that does not know us", async () => {
    const config = write();
    await cluster.close();
    const down = (await doctor({ config })).filter(({ area }) => area.startsWith("Kubernetes"));
    expect(down).toHaveLength(1);
    expect(down[0]).toMatchObject({ state: "problem", detail: expect.stringContaining("could not be reached") as string });
    cluster = await startAdmission([], "another token");
    const strange = (await doctor()).filter(({ area }) => area.startsWith("Kubernetes"));
    expect(strange[0]?.detail).toContain("did not accept netcheck's credentials");
  });

  test("nodes by label, and a cluster that debug pods are the fallback of", async () => {
    const config = configuration();
    const { k8s, prod } = config.clusters;
    cluster.objects.set("/api/v1/nodes", { items: [{ metadata: { name: "worker-1" } }, { metadata: { name: "worker-2" } }] });
    const labelled = { ...k8s, targets: {}, debugPods: { ...k8s.debugPods, targetsByLabel: { "kubernetes.io/os": "linux" } } };
    expect(found(await doctor({ config: write({ ...config, clusters: { k8s: labelled } }) }), "nodes").detail).toBe("there is no node worker-2");
    const targets = { node1: { ...prod.targets["node1"], fallbackAddress: "worker-1" }, node2: prod.targets["node2"] };
    const both = { ...prod, targets, fallback: "debug-pod", debugPods: k8s.debugPods };
    const checks = await doctor({ config: write({ ...config, clusters: { prod: both } }) });
    expect(found(checks, "nodes")).toMatchObject({ state: "ok", detail: "all 1 answer" });
    expect(found(checks, "agents")).toMatchObject({ state: "ok", detail: "all 2 answer" });
  });

  test("a token that the environment does not hold", async () => {
    const config = configuration();
    const access = { by: "bearer", endpoint: cluster.url, certificateAuthority: AUTHORITY, tokenSecret: "PROD_TOKEN" };
    const changed = { ...config, clusters: { k8s: { ...config.clusters.k8s, debugPods: { image, access } } } };
    const broken = (await doctor({ config: write(changed) })).filter(({ area }) => area.startsWith("Kubernetes"));
    expect(broken).toMatchObject([{ state: "problem", detail: expect.stringContaining("the environment has no PROD_TOKEN") as string }]);
    expect(found(await doctor({ config: write(changed) }, { PROD_TOKEN: TOKEN }), "a debug pod (dry run)").state).toBe("ok");
  });
});

describe("the command", () => {
  const environment = () => ({
    AWS_ENDPOINT_URL_SSM: ssm.url,
    AWS_ENDPOINT_URL_DYNAMODB: aws.url,
    AWS_ENDPOINT_URL_S3: aws.url,
    AWS_ENDPOINT_URL_SECRETS_MANAGER: aws.url,
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
    AWS_SECRET_ACCESS_KEY: "secret",
    SLACK_API_URL: slack.url,
  });

  test("exit code 0 and a summary where all is well; 1, the problem and what to do where it is not", async () => {
    const argv = ["doctor", "--config", write(), "--outputs", join(folder, "outputs.json"), "--url", slack.requestUrl];
    const well = await runCli(argv, folder, environment());
    expect(well.stderr).toBe("");
    expect(well.stdout).toMatch(/\n\d+ ok, 0 problems, 0 could not be looked at\n$/);
    expect(well.code).toBe(0);
    slack.channels.clear();
    const ill = await runCli(argv, folder, environment());
    expect(ill.stdout).toContain("  PROBLEM        channel C0PAGES: the bot is not in it");
    expect(ill.stdout).toContain("→ Invite the bot");
    expect(ill.code).toBe(1);
    const json = await runCli([...argv, "--json"], folder, environment());
    expect(JSON.parse(json.stdout)).toMatchObject({ schema: "netcheck.doctor/1", problems: 1, unknown: 0 });
  });

  test("without a region, and without credentials: could not look, and what to set", async () => {
    const { AWS_REGION: _region, ...regionless } = environment();
    const argv = ["doctor", "--config", write(), "--outputs", join(folder, "outputs.json"), "--url", slack.requestUrl, "--json"];
    const todos = async (surroundings: Record<string, string>): Promise<unknown[]> => {
      const { checks } = JSON.parse((await runCli(argv, folder, surroundings)).stdout) as { checks: Check[] };
      return checks.filter(({ area, check }) => area === "AWS" && check.startsWith("bucket")).map(({ state, todo }) => [state, todo]);
    };
    expect(await todos(regionless)).toContainEqual(["unknown", expect.stringContaining("AWS_REGION")]);
    const { AWS_ACCESS_KEY_ID: _id, AWS_SECRET_ACCESS_KEY: _key, ...nobody } = environment();
    expect(await todos({ ...nobody, AWS_EC2_METADATA_DISABLED: "true", HOME: folder })).toContainEqual(["unknown", expect.stringContaining("AWS_PROFILE")]);
  });

  test("wrong options: exit code 2", async () => {
    expect(await runCli(["doctor", "--tag", "x"], folder)).toMatchObject({ code: 2, stderr: "netcheck: --tag takes key=value, not x\n" });
    write();
    expect(await runCli(["doctor", "--outputs", join(folder, "outputs.json"), "--stack", "other"], folder)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("has no stack other; it has netcheck") as string,
    });
  });
});
