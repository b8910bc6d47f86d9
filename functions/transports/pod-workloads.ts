import {
  type PodPlace,
  type ServiceEndpoint,
  type ServicePlace,
  TransportError,
  type WorkloadName,
  type WorkloadResolution,
  type Workloads,
} from "../triage/ports.ts";
import type { PodCluster } from "./debug-pod.ts";
import { accessOf } from "./pod-access.ts";
import { ApiError, type KubernetesApi, kubernetesApi, UNTRUSTED } from "./pod-api.ts";
import { oneLine } from "./pod-state.ts";
import { explain } from "./pod-words.ts";

/** Looks pods and services up through the API servers of the configured clusters. Only names go out, and only GET requests. */

/** RFC 1123 and 1035: what Kubernetes itself takes. A pod's name may hold dots (static pods carry their node's name). */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const SUBDOMAIN = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/;
/** What the kubelet names a pod's cgroups by. */
const UID = /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$/;
/** More than this is counted, not kept: the answer must fit a step's result. */
const MAX_ENDPOINTS = 200;
const MAX_NODES = 200;
const MAX_CONTAINERS = 20;
const PAGE = 500;
/** Pages of a list that are read: 5,000 nodes, which is what Kubernetes supports. */
const MAX_PAGES = 10;

/** Labels of services that kube-proxy passes over, whatever they say. */
const NOT_FOR_KUBE_PROXY = ["service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"] as const;

const EXTRA_RIGHTS = "Pods and services need rights that the debug pods do not: apply infra/k8s/workloads.yaml";

export interface WorkloadOptions {
  /** Names of the clusters whose API is configured. Read afresh. */
  readonly clusters: () => Promise<readonly string[]>;
  readonly cluster: (name: string) => PodCluster | Promise<PodCluster>;
  /** Milliseconds between two tries of a call. Default 1000. */
  readonly pauseMs?: number;
}

interface PodObject {
  readonly metadata: { readonly uid: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: { readonly nodeName?: string; readonly hostNetwork?: boolean; readonly runtimeClassName?: string };
  readonly status: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly podIPs?: readonly { readonly ip: string }[];
    readonly containerStatuses?: readonly {
      readonly name: string;
      readonly ready?: boolean;
      readonly restartCount?: number;
      readonly state?: Readonly<Record<string, { readonly reason?: string } | undefined>>;
    }[];
  };
}
interface ServiceObject {
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>>; readonly labels?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly internalTrafficPolicy?: string;
    readonly trafficDistribution?: string;
    readonly type?: string;
    readonly clusterIP?: string;
    readonly clusterIPs?: readonly string[];
    readonly externalName?: string;
    readonly ports?: readonly { readonly name?: string; readonly protocol?: string; readonly port: number }[];
  };
}
interface SliceObject {
  readonly addressType?: string;
  readonly ports?: readonly { readonly name?: string; readonly protocol?: string; readonly port?: number }[] | null;
  readonly endpoints?:
    | readonly {
        readonly addresses: readonly string[];
        readonly conditions?: { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean };
        readonly hints?: object;
        readonly nodeName?: string;
        readonly targetRef?: { readonly kind?: string; readonly name?: string };
      }[]
    | null;
}
interface NodeObject {
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}
interface List<T> {
  readonly metadata: { readonly continue?: string };
  readonly items: readonly T[];
}

/** Pods and services of the clusters that the configuration gives access to. */
export function clusterWorkloads({ clusters, cluster, pauseMs = 1000 }: WorkloadOptions): Workloads {
  return {
    async find(asked: WorkloadName): Promise<WorkloadResolution> {
      const fits = LABEL.test(asked.namespace) && (asked.kind === "pod" ? SUBDOMAIN : LABEL).test(asked.name);
      if (!fits) return { kind: "unknown", reason: "that is not a name that Kubernetes takes" };
      const all = await clusters();
      const names = asked.cluster === undefined ? all : all.filter((name) => name.toLowerCase() === asked.cluster?.toLowerCase());
      if (names.length === 0) {
        const known = all.length === 0 ? "netcheck.yaml gives access to no cluster's API (debugPods)" : `clusters are ${all.slice(0, 20).join(", ")}`;
        return { kind: "unknown", reason: asked.cluster === undefined ? known : `netcheck.yaml has no such cluster; ${known}` };
      }
      const settled = await Promise.allSettled(
        names.map(async (name) => {
          const api = kubernetesApi(accessOf((await cluster(name)).access), pauseMs);
          return asked.kind === "pod" ? pod(api, name, asked) : service(api, name, asked);
        }),
      );
      const places = settled.flatMap((item) => (item.status === "fulfilled" && item.value !== undefined ? [item.value] : []));
      const [only] = places;
      if (places.length > 1) return { kind: "ambiguous", clusters: places.map((place) => place.cluster) };
      if (only !== undefined) return { kind: "found", place: only };
      // "unknown" would be wrong where we could not look
      const refused = settled.find((item) => item.status === "rejected");
      if (refused !== undefined) throw refused.reason;
      return { kind: "unknown", reason: `no ${asked.kind} ${asked.namespace}/${asked.name} in ${names.slice(0, 5).join(", ")}` };
    },
  };
}

/** Undefined: the cluster has no such pod. */
async function pod(api: KubernetesApi, cluster: string, { namespace, name }: WorkloadName): Promise<PodPlace | undefined> {
  const what = `look up the pod ${namespace}/${name} in ${cluster}`;
  const found = await get<PodObject>(api, what, `/api/v1/namespaces/${namespace}/pods/${encodeURIComponent(name)}`);
  if (found === undefined) return undefined;
  const { metadata, spec, status } = found;
  // the kubelet names the cgroups of a static pod by the hash of its file; the API's uid is of its mirror
  const source = metadata.annotations?.["kubernetes.io/config.source"];
  const uid = source === undefined || source === "api" ? metadata.uid : (metadata.annotations?.["kubernetes.io/config.hash"] ?? metadata.uid);
  if (!UID.test(uid)) throw new TransportError(`debug-pod: could not ${what}: its uid is none: ${oneLine(uid).slice(0, 60)}`, { retryable: false });
  if (spec.nodeName === undefined || spec.nodeName === "")
    throw new TransportError(`debug-pod: could not ${what}: it is on no node (phase ${oneLine(status.phase ?? "unknown")}); the scheduler's events tell why`, {
      retryable: false,
    });
  const addresses = status.podIPs?.map(({ ip }) => ip) ?? (status.podIP === undefined ? [] : [status.podIP]);
  return {
    kind: "pod",
    cluster,
    node: spec.nodeName,
    uid,
    hostNetwork: spec.hostNetwork === true,
    ...(spec.runtimeClassName === undefined ? {} : { runtimeClass: oneLine(spec.runtimeClassName).slice(0, 60) }),
    phase: status.phase ?? "unknown",
    addresses: addresses.slice(0, 4),
    containers: (status.containerStatuses ?? []).slice(0, MAX_CONTAINERS).map((container) => {
      const [[kind, detail] = ["unknown", undefined]] = Object.entries(container.state ?? {});
      return {
        name: container.name,
        ready: container.ready === true,
        restarts: container.restartCount ?? 0,
        state: kind === "running" ? kind : oneLine(detail?.reason ?? kind).slice(0, 60),
      };
    }),
  };
}

/** Undefined: the cluster has no such service. What else may not be read is told in `problems`. */
async function service(api: KubernetesApi, cluster: string, { namespace, name }: WorkloadName): Promise<ServicePlace | undefined> {
  const what = `look up the service ${namespace}/${name} in ${cluster}`;
  const found = await get<ServiceObject>(api, what, `/api/v1/namespaces/${namespace}/services/${name}`);
  if (found === undefined) return undefined;
  const problems: string[] = [];
  const tolerant = async <T>(part: string, run: () => Promise<readonly T[]>): Promise<readonly T[]> => {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      problems.push(`${part}: ${error.message}`.slice(0, 600));
      return [];
    }
  };
  const slices = await tolerant("its endpoints are not known", () =>
    list<SliceObject>(api, `list the endpoints of ${namespace}/${name}`, `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`, {
      labelSelector: `kubernetes.io/service-name=${name}`,
    }),
  );
  const nodes = await tolerant("the cluster's nodes are not known", () => list<NodeObject>(api, `list the nodes of ${cluster}`, "/api/v1/nodes", {}));
  // proxies take addresses alone
  const read = slices.filter(({ addressType }) => addressType !== "FQDN");
  const hinted = read.some((slice) => slice.endpoints?.some(({ hints }) => hints !== undefined && hints !== null) ?? false);
  const endpoints = read.flatMap(endpointsOf).toSorted(order);
  // two ports of a service may lead to the same port of a pod
  const unique = endpoints.filter((item, index) => {
    const before = endpoints[index - 1];
    return before === undefined || order(before, item) !== 0;
  });
  const { type = "ClusterIP", clusterIP, clusterIPs, ports = [], internalTrafficPolicy, trafficDistribution } = found.spec;
  const { annotations = {}, labels = {} } = found.metadata ?? {};
  const topology = annotations["service.kubernetes.io/topology-mode"] ?? annotations["service.kubernetes.io/topology-aware-hints"] ?? "disabled";
  const global = annotations["service.cilium.io/global"] ?? annotations["io.cilium/global-service"] ?? "false";
  const leftOut = NOT_FOR_KUBE_PROXY.find((label) => labels[label] !== undefined);
  return {
    kind: "service",
    cluster,
    namespace,
    name,
    type,
    addresses: (clusterIPs ?? [clusterIP ?? ""]).filter((address) => address !== "" && address !== "None"),
    ports: ports.slice(0, 50).map((port) => ({ name: port.name ?? "", protocol: port.protocol ?? "TCP", port: port.port })),
    endpoints: unique.slice(0, MAX_ENDPOINTS),
    more: Math.max(0, unique.length - MAX_ENDPOINTS),
    nodes: nodes
      .filter((node) => !isClosed(node))
      .filter(({ status }) => status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True") ?? false)
      .map(({ metadata }) => metadata.name)
      .toSorted(compare)
      .slice(0, MAX_NODES),
    onlyLocal: internalTrafficPolicy === "Local",
    prefersNear: internalTrafficPolicy === "Local" || trafficDistribution !== undefined || topology.toLowerCase() !== "disabled" || hinted,
    ...(global.toLowerCase() === "true" ? { acrossClusters: true } : {}),
    ...(leftOut === undefined ? {} : { leftOut }),
    problems,
  };
}

/** Nodes on which netcheck can run nothing: of Windows, and those that only stand for somebody else's machines. */
const isClosed = ({ metadata: { labels = {} } }: NodeObject): boolean =>
  labels["kubernetes.io/os"] === "windows" || labels["type"] === "virtual-kubelet" || labels["eks.amazonaws.com/compute-type"] === "fargate";

function endpointsOf({ ports, endpoints }: SliceObject): ServiceEndpoint[] {
  return (endpoints ?? []).flatMap(({ addresses, conditions, nodeName, targetRef }) =>
    (ports ?? []).flatMap(({ name, protocol, port }) =>
      // the first address alone: all addresses of one endpoint are the same thing (API reference of EndpointSlice)
      addresses.slice(0, 1).flatMap((address) =>
        port === undefined
          ? []
          : [
              {
                portName: name ?? "",
                protocol: protocol ?? "TCP",
                address,
                port,
                // nothing said means ready
                ready: conditions?.ready ?? true,
                terminating: conditions?.terminating ?? false,
                ...(conditions?.terminating === true && conditions.serving !== undefined ? { serving: conditions.serving } : {}),
                ...(nodeName === undefined ? {} : { node: nodeName }),
                ...(targetRef?.kind === "Pod" && targetRef.name !== undefined ? { pod: targetRef.name } : {}),
              },
            ],
      ),
    ),
  );
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
/** 0: the same endpoint, which may stand in two slices for a while. */
const order = (a: ServiceEndpoint, b: ServiceEndpoint): number =>
  compare(a.address, b.address) || a.port - b.port || compare(a.protocol, b.protocol) || compare(a.portName, b.portName);

async function get<T>(api: KubernetesApi, what: string, path: string): Promise<T | undefined> {
  try {
    return (await api.call<T>({ method: "GET", path })).body;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw inWords(what, error);
  }
}

async function list<T>(api: KubernetesApi, what: string, path: string, query: Readonly<Record<string, string>>): Promise<readonly T[]> {
  const items: T[] = [];
  let next: string | undefined;
  try {
    for (let page = 1; page <= MAX_PAGES; page += 1) {
      const more = next === undefined ? {} : { continue: next };
      const { body } = await api.call<List<T>>({ method: "GET", path, query: { ...query, limit: String(PAGE), ...more } });
      items.push(...body.items);
      next = body.metadata.continue || undefined;
      if (next === undefined) break;
    }
  } catch (error) {
    throw inWords(what, error);
  }
  return items;
}

function inWords(what: string, error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  const denied = error.status === 403 && / cannot \w+ resource /.test(error.message);
  const why = denied ? `it is not allowed: ${oneLine(error.message)}. ${EXTRA_RIGHTS}` : explain(error, "of this cluster");
  const retryable = (error.status === 0 && !UNTRUSTED.has(error.reason)) || error.status === 429 || error.status >= 500;
  return new TransportError(`debug-pod: could not ${what}: ${why}`, { retryable, cause: error });
}
