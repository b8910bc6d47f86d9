import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { debugPodTransport } from "../../functions/transports/debug-pod.ts";
import { ssmTransport } from "../../functions/transports/ssm.ts";
import { Config } from "../../functions/triage/config.ts";
import type { Discovered } from "../../functions/triage/ports.ts";
import { configuredTargets } from "../../functions/triage/targets.ts";
import { startKubernetes } from "../emulators/kubernetes.ts";
import { startSsm } from "../emulators/ssm.ts";
import { clusterAt } from "../transports/pods.ts";
import { Bench } from "../triage/harness.ts";

/** Nodes that call themselves what they like, as Systems Manager and Kubernetes list them, and what becomes of it. */

const EVIL = [
  "<!channel>",
  "<https://evil.example|web-1>",
  "web-1\u202e",
  "web\u200b-1",
  "$(reboot)",
  "`reboot`",
  "; rm -rf /",
  "../../../etc/passwd",
  "..",
  "/etc/passwd",
  "__proto__",
  "-rf",
  "{{incident.id}}",
  "*bold*",
  "a\nb",
  "\u001b[31mred",
  "",
  "x".repeat(10_000),
];
const PLAIN = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,252}$/;

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
  for (const name of ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]) vi.stubEnv(name, "AKIAEXAMPLEEXAMPLE00");
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await bench.close();
});

/** Names that people are offered when they mistype, and the targets behind all names that a person can type. */
async function offered(
  config: Config,
  discover: (cluster: string, nameTag?: string) => Promise<readonly Discovered[]>,
): Promise<{ suggestions: readonly string[]; targets: readonly string[] }> {
  const targets = configuredTargets(
    async () => config,
    (_transport, cluster, nameTag) => discover(cluster, nameTag),
  );
  const unknown = await targets.resolve("web-9");
  const names = [...(await discover("prod"))].flatMap((node) => [node.address, ...node.names]);
  const resolved = await Promise.all(names.map((name) => targets.resolve(name)));
  return {
    suggestions: unknown.kind === "unknown" ? unknown.suggestions : [],
    targets: resolved
      .flatMap((one) => (one.kind === "found" ? [one.target] : one.kind === "ambiguous" ? one.candidates : []))
      .flatMap(({ name, address }) => [name, address]),
  };
}

test("names that nodes give themselves in Systems Manager: none becomes a target's name, a suggestion, or part of a key", async () => {
  const agents = Object.fromEntries(
    EVIL.map((name, i) => [`i-${String(i).padStart(17, "0")}`, { name, registered: name, enter: [], tags: { netcheck: "yes" } }]),
  );
  const emulator = await startSsm({ agents });
  try {
    vi.stubEnv("AWS_ENDPOINT_URL_SSM", emulator.url);
    const cluster = { region: "eu-central-1", targetsByTag: { netcheck: "yes" } };
    const transport = ssmTransport({ cluster: () => cluster, pollMs: 5 });
    const config = Config.parse({ clusters: { prod: { transport: "ssm", ...cluster } } });
    const { suggestions, targets } = await offered(config, async (...asked) => (await transport.discover?.(...asked)) ?? []);
    expect(targets.length).toBeGreaterThan(EVIL.length);
    for (const name of [...suggestions, ...targets]) expect(name).toMatch(PLAIN);
  } finally {
    await emulator.close();
  }
});

test("names of nodes that a cluster's API makes up: what is no name is no node", async () => {
  const labels = { pool: "web" };
  const nodes = Object.fromEntries(
    [...EVIL.filter((name) => name !== "" && name !== "__proto__"), "web-1"].map((name) => [
      name,
      { labels, addresses: [{ type: "InternalIP", address: name }] },
    ]),
  );
  const emulator = await startKubernetes({ nodes });
  try {
    const transport = debugPodTransport({ cluster: () => clusterAt(emulator, { targetsByLabel: labels }), pauseMs: 5 });
    const image = `images.example/x@sha256:${"0".repeat(64)}`;
    const access = { by: "bearer", endpoint: "https://10.0.0.1", tokenSecret: "TOKEN" };
    const config = Config.parse({ clusters: { prod: { transport: "debug-pod", debugPods: { access, image, targetsByLabel: labels } } } });
    const { suggestions, targets } = await offered(config, async (...asked) => (await transport.discover?.(...asked)) ?? []);
    expect(suggestions).toEqual(["web-1"]);
    expect(new Set(targets)).toEqual(new Set(["web-1"]));
  } finally {
    await emulator.close();
  }
});

test.each(EVIL.filter((name) => name !== ""))("asked for by the name %j: said back harmlessly, nothing kept under it", async (name) => {
  await bench.ask(name);
  expect(bench.node.jobs.size).toBe(0);
  for (const { message } of bench.chat.whispers) {
    const drawn = JSON.stringify(message.data);
    expect(drawn.length).toBeLessThan(30_000);
  }
  for (const words of bench.chat.whispered({ id: "U_ALICE", team: "T_LOCAL" })) expect(words).not.toMatch(/<!channel>|<https|\p{Cf}/u);
  expect(bench.chat.whispers).toHaveLength(1);
});
