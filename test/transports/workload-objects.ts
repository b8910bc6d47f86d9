import type { KubernetesEmulator } from "../emulators/kubernetes.ts";

/** A shop in a cluster: pods and a service in the shapes of the API (core/v1, discovery.k8s.io/v1). */

export const UIDS = { web1: "3f0c1a52-7d1e-4c5b-9a44-0b1d2f3e4a51", web2: "8a6f2d10-52c7-4f0e-8c1b-6c2e9d7b1f02" } as const;
export const STATIC_HASH = "9b1f6c0d2e3a4b5c6d7e8f9012345678";

export function pod(
  name: string,
  node: string | undefined,
  uid: string,
  more: { ip?: string; hostNetwork?: true; annotations?: Record<string, string>; phase?: string } = {},
) {
  const { ip = "10.244.1.7", hostNetwork, annotations, phase = "Running" } = more;
  return {
    kind: "Pod",
    apiVersion: "v1",
    metadata: { name, namespace: "shop", uid, ...(annotations === undefined ? {} : { annotations }) },
    spec: { ...(node === undefined ? {} : { nodeName: node }), ...(hostNetwork === undefined ? {} : { hostNetwork }), containers: [{ name: "web" }] },
    status: {
      phase,
      podIP: ip,
      podIPs: [{ ip }],
      containerStatuses: [
        {
          name: "web",
          ready: false,
          restartCount: 4,
          state: { waiting: { reason: "CrashLoopBackOff", message: "back-off 1m20s restarting failed container" } },
        },
        { name: "proxy", ready: true, restartCount: 0, state: { running: { startedAt: "2026-11-02T08:00:00Z" } } },
      ],
    },
  };
}

export interface Endpoint {
  readonly address: string;
  readonly node?: string;
  readonly pod?: string;
  readonly ready?: boolean;
  readonly terminating?: boolean;
}

export function service(name = "web", more: object = {}) {
  return {
    kind: "Service",
    apiVersion: "v1",
    metadata: { name, namespace: "shop" },
    spec: {
      type: "ClusterIP",
      clusterIP: "10.96.7.20",
      clusterIPs: ["10.96.7.20"],
      ports: [{ name: "http", protocol: "TCP", port: 80, targetPort: 8080 }],
      ...more,
    },
  };
}

export function slice(name: string, of: string, endpoints: readonly Endpoint[], ports: readonly object[] = [{ name: "http", protocol: "TCP", port: 8080 }]) {
  return {
    kind: "EndpointSlice",
    apiVersion: "discovery.k8s.io/v1",
    metadata: { name, namespace: "shop", labels: { "kubernetes.io/service-name": of } },
    addressType: "IPv4",
    endpoints: endpoints.map(({ address, node, pod: podName, ready, terminating }) => ({
      addresses: [address],
      conditions: { ...(ready === undefined ? {} : { ready }), ...(terminating === undefined ? {} : { terminating }) },
      ...(node === undefined ? {} : { nodeName: node }),
      ...(podName === undefined ? {} : { targetRef: { kind: "Pod", namespace: "shop", name: podName } }),
    })),
    ports,
  };
}

/** Puts objects into the cluster. */
export function put(emulator: KubernetesEmulator, kind: "pods" | "services" | "endpointslices", object: { metadata: { name: string } }): void {
  emulator.objects.set(`${kind}/shop/${object.metadata.name}`, object);
}
