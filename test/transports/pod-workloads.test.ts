import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { clusterWorkloads } from "../../functions/transports/pod-workloads.ts";
import type { ServicePlace, WorkloadName, Workloads } from "../../functions/triage/ports.ts";
import { type KubernetesEmulator, startKubernetes } from "../emulators/kubernetes.ts";
import { clusterAt } from "./pods.ts";
import { pod, put, STATIC_HASH, service, slice, UIDS } from "./workload-objects.ts";

/** Pods and services as the API server tells them. */

let prod: KubernetesEmulator;
let edge: KubernetesEmulator;
let workloads: Workloads;
beforeEach(async () => {
  const closed = {
    akswin000000: { labels: { "kubernetes.io/os": "windows" } },
    "virtual-node-aci-linux": { labels: { "kubernetes.io/os": "linux", type: "virtual-kubelet" } },
    "fargate-ip-10-0-9-9": { labels: { "eks.amazonaws.com/compute-type": "fargate" } },
  };
  prod = await startKubernetes({ nodes: { "node-c": {}, "node-a": { labels: { "kubernetes.io/os": "linux" } }, "node-b": { ready: "False" }, ...closed } });
  edge = await startKubernetes();
  const all: Record<string, KubernetesEmulator> = { prod, edge };
  workloads = clusterWorkloads({
    clusters: async () => Object.keys(all),
    cluster: (name) => clusterAt(all[name] ?? prod),
    pauseMs: 1,
  });
});
afterEach(async () => {
  await prod.close();
  await edge.close();
});

const podName: WorkloadName = { kind: "pod", namespace: "shop", name: "web-1" };
const serviceName: WorkloadName = { kind: "service", namespace: "shop", name: "web" };

describe("a pod", () => {
  test("its node, its uid, its addresses, and how its containers are", async () => {
    put(prod, "pods", pod("web-1", "node-a", UIDS.web1));
    expect(await workloads.find(podName)).toEqual({
      kind: "found",
      place: {
        kind: "pod",
        cluster: "prod",
        node: "node-a",
        uid: UIDS.web1,
        hostNetwork: false,
        phase: "Running",
        addresses: ["10.244.1.7"],
        containers: [
          { name: "web", ready: false, restarts: 4, state: "CrashLoopBackOff" },
          { name: "proxy", ready: true, restarts: 0, state: "running" },
        ],
      },
    });
    expect(prod.requests.map(({ method }) => method)).toEqual(["GET"]);
  });

  test("a static pod goes by the hash of its file: that names its cgroups", async () => {
    const annotations = { "kubernetes.io/config.source": "file", "kubernetes.io/config.hash": STATIC_HASH };
    put(prod, "pods", pod("web-1", "node-a", UIDS.web1, { annotations, hostNetwork: true }));
    expect(await workloads.find(podName)).toMatchObject({ place: { uid: STATIC_HASH, hostNetwork: true } });
  });

  test("its runtime class, if it has one", async () => {
    const plain = pod("web-1", "node-a", UIDS.web1);
    put(prod, "pods", { ...plain, spec: { ...plain.spec, runtimeClassName: "gvisor" } } as typeof plain);
    expect(await workloads.find(podName)).toMatchObject({ place: { runtimeClass: "gvisor" } });
  });

  test("in two clusters: which one is asked; the cluster's name before it settles that", async () => {
    for (const cluster of [prod, edge]) put(cluster, "pods", pod("web-1", "node-a", UIDS.web1));
    expect(await workloads.find(podName)).toEqual({ kind: "ambiguous", clusters: ["prod", "edge"] });
    expect(await workloads.find({ ...podName, cluster: "EDGE" })).toMatchObject({ kind: "found", place: { cluster: "edge" } });
    expect(await workloads.find({ ...podName, cluster: "moon" })).toMatchObject({ kind: "unknown", reason: expect.stringContaining("prod, edge") as string });
  });

  test("that is nowhere", async () => {
    expect(await workloads.find(podName)).toEqual({ kind: "unknown", reason: "no pod shop/web-1 in prod, edge" });
  });

  test("that has no node yet", async () => {
    put(prod, "pods", pod("web-1", undefined, UIDS.web1, { phase: "Pending" }));
    await expect(workloads.find(podName)).rejects.toThrow("it is on no node (phase Pending)");
  });

  test("that may not be looked up: said so, with what to apply; never 'unknown'", async () => {
    prod.denied.add("pods");
    await expect(workloads.find(podName)).rejects.toThrow(/cannot get resource "pods".*infra\/k8s\/workloads\.yaml/);
    put(edge, "pods", pod("web-1", "node-a", UIDS.web1));
    expect(await workloads.find(podName)).toMatchObject({ kind: "found", place: { cluster: "edge" } });
  });

  test("whose uid is none goes no further", async () => {
    put(prod, "pods", pod("web-1", "node-a", "x; reboot"));
    await expect(workloads.find(podName)).rejects.toThrow("its uid is none");
  });

  test.each(["../nodes", "web 1", "Web", ""])("a name that is none is asked nobody: %j", async (name) => {
    expect(await workloads.find({ ...podName, name })).toMatchObject({ kind: "unknown" });
    expect(prod.requests).toEqual([]);
  });
});

describe("a service", () => {
  test("endpoints by DNS names are none for a proxy; hints about zones are followed without an annotation", async () => {
    put(prod, "services", service());
    const near = slice("web-a", "web", [{ address: "10.244.1.7" }]);
    put(prod, "endpointslices", { ...near, endpoints: near.endpoints.map((one) => ({ ...one, hints: { forZones: [{ name: "az1" }] } })) } as typeof near);
    put(prod, "endpointslices", { ...slice("web-b", "web", [{ address: "db.example.com" }]), addressType: "FQDN" } as typeof near);
    expect(await workloads.find(serviceName)).toMatchObject({ place: { prefersNear: true, endpoints: [{ address: "10.244.1.7" }] } });
  });

  test("an endpoint that is ending and still answers; a global service of Cilium's; a service that is not for kube-proxy", async () => {
    const web = service();
    const metadata = { ...web.metadata, annotations: { "service.cilium.io/global": "true" }, labels: { "service.kubernetes.io/service-proxy-name": "edge" } };
    put(prod, "services", { ...web, metadata } as typeof web);
    const [first, ...more] = slice("web-a", "web", [{ address: "10.244.1.7", ready: false, terminating: true }]).endpoints;
    const endpoints = [{ ...first, conditions: { ...first?.conditions, serving: true } }, ...more];
    put(prod, "endpointslices", { ...slice("web-a", "web", []), endpoints } as ReturnType<typeof slice>);
    expect(await workloads.find(serviceName)).toMatchObject({
      place: { acrossClusters: true, leftOut: "service.kubernetes.io/service-proxy-name", endpoints: [{ ready: false, terminating: true, serving: true }] },
    });
  });

  test("its addresses, its ports, its endpoints of all slices, and the nodes that are ready", async () => {
    put(prod, "services", service());
    put(
      prod,
      "endpointslices",
      slice("web-b", "web", [
        { address: "10.244.2.9", node: "node-c", pod: "web-2", ready: false, terminating: true },
        { address: "10.244.1.7", node: "node-a", pod: "web-1" },
      ]),
    );
    put(prod, "endpointslices", slice("web-a", "web", [{ address: "10.244.1.7", node: "node-a", pod: "web-1", ready: true }]));
    put(prod, "endpointslices", slice("other", "other", [{ address: "10.244.3.3" }]));
    const web1 = { portName: "http", protocol: "TCP", address: "10.244.1.7", port: 8080, ready: true, terminating: false, node: "node-a", pod: "web-1" };
    expect(await workloads.find(serviceName)).toEqual({
      kind: "found",
      place: {
        kind: "service",
        cluster: "prod",
        namespace: "shop",
        name: "web",
        type: "ClusterIP",
        addresses: ["10.96.7.20"],
        ports: [{ name: "http", protocol: "TCP", port: 80 }],
        endpoints: [web1, { ...web1, address: "10.244.2.9", node: "node-c", pod: "web-2", ready: false, terminating: true }],
        more: 0,
        nodes: ["node-a", "node-c"],
        prefersNear: false,
        onlyLocal: false,
        problems: [],
      },
    });
  });

  test("two of its ports lead to the same port of a pod: both have the endpoint", async () => {
    put(prod, "services", service());
    const ports = [
      { name: "http", protocol: "TCP", port: 8080 },
      { name: "alt", protocol: "TCP", port: 8080 },
    ];
    for (const name of ["web-a", "web-b"]) put(prod, "endpointslices", slice(name, "web", [{ address: "10.244.1.7", node: "node-a" }], ports));
    const { place } = (await workloads.find(serviceName)) as { place: ServicePlace };
    expect(place.endpoints.map(({ portName, address }) => `${portName} ${address}`)).toEqual(["alt 10.244.1.7", "http 10.244.1.7"]);
  });

  test.each([
    [{ internalTrafficPolicy: "Local" }, { prefersNear: true, onlyLocal: true }],
    [{ trafficDistribution: "PreferClose" }, { prefersNear: true, onlyLocal: false }],
  ])("which endpoints it takes: %j", async (spec, place) => {
    put(prod, "services", service("web", spec));
    expect(await workloads.find(serviceName)).toMatchObject({ place });
  });

  test("headless: no address", async () => {
    put(prod, "services", service("web", { clusterIP: "None", clusterIPs: ["None"] }));
    expect(await workloads.find(serviceName)).toMatchObject({ place: { addresses: [], endpoints: [] } });
  });

  test("endpoints and nodes that may not be listed are problems with a way out, not an empty service", async () => {
    put(prod, "services", service());
    prod.denied.add("endpointslices").add("nodes");
    expect(await workloads.find(serviceName)).toMatchObject({
      place: {
        problems: [
          expect.stringMatching(/^its endpoints are not known: .*cannot list resource "endpointslices".*workloads\.yaml/) as string,
          expect.stringMatching(/^the cluster's nodes are not known: .*cannot list resource "nodes"/) as string,
        ],
      },
    });
  });

  test("of a thousand endpoints two hundred are kept, and the rest is counted", async () => {
    put(prod, "services", service());
    const endpoints = Array.from({ length: 1000 }, (_, at) => ({ address: `10.244.${at >> 8}.${at & 255}`, node: "node-a" }));
    put(prod, "endpointslices", slice("web-a", "web", endpoints));
    expect(await workloads.find(serviceName)).toMatchObject({ place: { more: 800, endpoints: { length: 200 } } });
  });
});
