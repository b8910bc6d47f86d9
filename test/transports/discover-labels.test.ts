import { afterEach, describe, expect, test, vi } from "vitest";
import { debugPodTransport } from "../../functions/transports/debug-pod.ts";
import { ssmTransport } from "../../functions/transports/ssm.ts";
import { type KubernetesEmulator, startKubernetes } from "../emulators/kubernetes.ts";
import { type SsmEmulator, startSsm } from "../emulators/ssm.ts";
import { clusterAt } from "./pods.ts";

/** Nodes found by the tags and labels that somebody asks for: only among those that the configuration lets in. */

let open: readonly { close(): Promise<void> }[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const one of open) await one.close();
});

describe("tags of Systems Manager", () => {
  async function ssm() {
    const emulator: SsmEmulator = await startSsm();
    open = [emulator];
    vi.stubEnv("AWS_ENDPOINT_URL_SSM", emulator.url);
    vi.stubEnv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
    const agent = (name: string, tags: Readonly<Record<string, string>>) => ({ name, enter: [], tags });
    emulator.agents.set("i-00000000000000001", agent("a", { netcheck: "yes", zone: "a" }));
    emulator.agents.set("i-00000000000000002", agent("b", { netcheck: "yes", zone: "b" }));
    emulator.agents.set("i-00000000000000003", agent("c", { netcheck: "no", zone: "a" }));
    const transport = ssmTransport({ cluster: () => ({ region: "eu-central-1", targetsByTag: { netcheck: "yes" } }) });
    return {
      emulator,
      ask: async (labels: Readonly<Record<string, string>>) => (await transport.discover?.("prod", undefined, labels))?.map(({ address }) => address),
    };
  }

  test("of the cluster's nodes, those that have it, too", async () => {
    const { ask } = await ssm();
    expect([await ask({ zone: "a" }), await ask({ zone: "c" }), await ask({})]).toEqual([
      ["i-00000000000000001"],
      [],
      ["i-00000000000000001", "i-00000000000000002"],
    ]);
  });

  test("the configuration's own tag with another value opens no door, and is not even asked for", async () => {
    const { emulator, ask } = await ssm();
    expect(await ask({ netcheck: "no" })).toEqual([]);
    expect(emulator.requests).toEqual([]);
    expect(await ask({ netcheck: "yes", zone: "b" })).toEqual(["i-00000000000000002"]);
  });
});

test("labels of a cluster: the same, in one selector", async () => {
  const linux = { "kubernetes.io/os": "linux" };
  const emulator: KubernetesEmulator = await startKubernetes({
    nodes: { a: { labels: { ...linux, pool: "web" } }, b: { labels: linux }, w: { labels: { "kubernetes.io/os": "windows", pool: "web" } } },
  });
  open = [emulator];
  const transport = debugPodTransport({ cluster: () => clusterAt(emulator, { targetsByLabel: linux }), pauseMs: 5 });
  const ask = async (labels: Readonly<Record<string, string>>) => (await transport.discover?.("prod", undefined, labels))?.map(({ address }) => address);
  expect([await ask({ pool: "web" }), await ask({}), await ask({ "kubernetes.io/os": "windows" })]).toEqual([["a"], ["a", "b"], []]);
  const plain = debugPodTransport({ cluster: () => clusterAt(emulator), pauseMs: 5 });
  expect(await plain.discover?.("prod", undefined, { pool: "web" })).toEqual([]);
});
