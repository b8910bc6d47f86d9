import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { debugPodTransport } from "../../functions/transports/debug-pod.ts";
import { Config } from "../../functions/triage/config.ts";
import type { Transport } from "../../functions/triage/ports.ts";
import { configuredTargets } from "../../functions/triage/targets.ts";
import { type KubernetesEmulator, startKubernetes } from "../emulators/kubernetes.ts";
import { clusterAt, image } from "./pods.ts";

/** Nodes of a cluster that netcheck.yaml names only by a label. */

const linux = { "kubernetes.io/os": "linux", pool: "web" };
const ec2 = "ip-10-2-0-17.eu-north-1.compute.internal";
let emulator: KubernetesEmulator;
let transport: Transport;
let clock: number;
beforeEach(async () => {
  clock = 0;
  emulator = await startKubernetes({
    nodes: {
      [ec2]: {
        labels: linux,
        providerID: "aws:///eu-north-1b/i-0a1b2c3d4e5f60718",
        addresses: [
          { type: "InternalIP", address: "10.2.0.17" },
          { type: "Hostname", address: ec2 },
        ],
      },
      "till-9": { labels: linux, providerID: "k3s://till-9", addresses: [{ type: "InternalIP", address: "192.168.7.9" }] },
      "other-pool": { labels: { "kubernetes.io/os": "linux" } },
      win: { labels: { "kubernetes.io/os": "windows", pool: "web" } },
    },
  });
  transport = debugPodTransport({ cluster: () => clusterAt(emulator, { targetsByLabel: linux }), pauseMs: 5, now: () => clock });
});
afterEach(() => emulator.close());

const lists = () => emulator.requests.filter(({ path }) => path === "/api/v1/nodes").length;

describe("nodes found by label", () => {
  test("with all labels, by name, short name, address and machine", async () => {
    expect(await transport.discover?.("prod")).toEqual([
      { address: ec2, names: [ec2, "ip-10-2-0-17", "10.2.0.17", "i-0a1b2c3d4e5f60718"], machine: "i-0a1b2c3d4e5f60718" },
      { address: "till-9", names: ["till-9", "192.168.7.9"] },
    ]);
  });

  test("asked once a minute", async () => {
    await Promise.all([transport.discover?.("prod"), transport.discover?.("prod")]);
    clock = 59_999;
    await transport.discover?.("prod");
    expect(lists()).toBe(1);
    clock = 60_000;
    await transport.discover?.("prod");
    expect(lists()).toBe(2);
  });

  test("more than one page", async () => {
    for (let n = 0; n < 1200; n += 1) emulator.nodes.set(`n${n}`, { labels: linux });
    expect(await transport.discover?.("prod")).toHaveLength(1202);
    expect(lists()).toBe(3);
  });

  test("nobody is asked for a Name tag, or without labels", async () => {
    expect(await transport.discover?.("prod", "web")).toEqual([]);
    const plain = debugPodTransport({ cluster: () => clusterAt(emulator), pauseMs: 5 });
    expect(await plain.discover?.("prod")).toEqual([]);
    expect(lists()).toBe(0);
  });

  test("without the right to list nodes: which right is missing; a refusal is not kept", async () => {
    emulator.denied.add("nodes");
    await expect(transport.discover?.("prod")).rejects.toMatchObject({
      name: "TransportError",
      retryable: false,
      message: expect.stringMatching(/^debug-pod: could not list the nodes of prod: .*cannot list resource "nodes".*Give netcheck's account the rights/),
    });
    emulator.denied.clear();
    expect(await transport.discover?.("prod")).toHaveLength(2);
  });

  test("what somebody types becomes a target", async () => {
    const config = Config.parse({
      clusters: {
        prod: { transport: "debug-pod", debugPods: { image, access: { by: "in-cluster" }, targetsByLabel: linux }, targets: { edge: { address: "till-9" } } },
      },
    });
    const targets = configuredTargets(
      async () => config,
      async (_, cluster, nameTag) => (await transport.discover?.(cluster, nameTag)) ?? [],
    );
    for (const name of [ec2, "ip-10-2-0-17", "IP-10-2-0-17", "10.2.0.17", "i-0a1b2c3d4e5f60718", "prod/ip-10-2-0-17"])
      expect(await targets.resolve(name), name).toEqual({ kind: "found", target: { name: ec2, cluster: "prod", transport: "debug-pod", address: ec2 } });
    expect(await targets.resolve("192.168.7.9")).toMatchObject({ kind: "found", target: { name: "edge", address: "till-9" } });
    expect(await targets.resolve("ip-10-2-0-18")).toMatchObject({ kind: "unknown", suggestions: [ec2] });
    expect(await targets.resolve("other-pool")).toMatchObject({ kind: "unknown" });
  });
});

test("Kubernetes nodes that Systems Manager reaches: both lists count, a node in both is one, one whose agent is dead is found by its machine", async () => {
  const config = Config.parse({
    clusters: {
      prod: {
        transport: "ssm",
        fallback: "debug-pod",
        targetsByTag: { netcheck: "yes" },
        debugPods: { image, access: { by: "in-cluster" }, targetsByLabel: linux },
      },
    },
  });
  const other = "i-0ffffffffffffff01";
  emulator.nodes.set("ip-10-2-0-18", { labels: linux, providerID: `aws:///eu-north-1a/${other}` });
  const targets = configuredTargets(
    async () => config,
    async (by, cluster, nameTag) => {
      if (by === "debug-pod") return (await transport.discover?.(cluster, nameTag)) ?? [];
      return nameTag === undefined || nameTag === "Web" ? [{ address: other, names: ["ip-10-2-0-18", "10.2.0.18"] }] : [];
    },
  );
  for (const name of ["ip-10-2-0-18", other, "Web"])
    expect(await targets.resolve(name)).toEqual({ kind: "found", target: { name: "ip-10-2-0-18", cluster: "prod", transport: "ssm", address: other } });
  expect(await targets.resolve("ip-10-2-0-17")).toEqual({
    kind: "found",
    target: { name: ec2, cluster: "prod", transport: "ssm", address: "i-0a1b2c3d4e5f60718" },
  });
  // no machine of EC2: Systems Manager cannot reach it
  expect(await targets.resolve("till-9")).toMatchObject({ kind: "unknown" });
  emulator.denied.add("nodes");
  await expect(
    configuredTargets(
      async () => config,
      async (by, cluster) =>
        by === "ssm"
          ? []
          : ((await debugPodTransport({ cluster: () => clusterAt(emulator, { targetsByLabel: linux }), pauseMs: 5 }).discover?.(cluster)) ?? []),
    ).resolve("ip-10-2-0-17"),
  ).rejects.toThrow("could not list the nodes of prod");
});

test("labels are of their kind", () => {
  const cluster = (targetsByLabel: object) => () =>
    Config.parse({ clusters: { a: { transport: "debug-pod", debugPods: { image, access: { by: "in-cluster" }, targetsByLabel } } } });
  expect(cluster({ "node-role.kubernetes.io/worker": "", "eks.amazonaws.com/nodegroup": "web_1.a" })).not.toThrow();
  expect(cluster({})).toThrow("one to five labels");
  expect(cluster({ "a b": "c" })).toThrow("a label's name");
  expect(cluster({ pool: "web,other=1" })).toThrow("a label's value");
});
