import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { V1Pod } from "@kubernetes/client-node";
import { accessOf } from "../transports/pod-access.ts";
import { ApiError, type KubernetesApi, kubernetesApi } from "../transports/pod-api.ts";
import { podCluster } from "../transports/pod-clusters.ts";
import { bindingSpec, entryPolicy, POLICY, type PolicySpec, PREVIOUS, podPolicy, policyParameters } from "../transports/pod-policy.ts";
import { type PodSettings, podOf } from "../transports/pod-spec.ts";
import { explain } from "../transports/pod-words.ts";
import { scripts as allOfThem } from "../transports/script.ts";
import type { Config } from "../triage/config.ts";
import { type Script, TransportError } from "../triage/ports.ts";
import { addressesOf } from "./doctor-addresses.ts";
import { clockFinding, type Finding, type Findings, ok, problem, some, unknown } from "./doctor-findings.ts";

/** First minor version of Kubernetes 1 with ValidatingAdmissionPolicy. */
const POLICY_MINOR = 30;
/** Nodes that are looked at; more are not. */
const MOST_NODES = 50;
const INSTALL = "Install infra/k8s of this version: node infra/k8s/generate.ts --image … | kubectl apply --server-side -f - (docs/kubernetes.md)";
const RULES = "/apis/admissionregistration.k8s.io/v1";

interface Right {
  readonly verb: string;
  readonly resource: string;
  /** Kubernetes' own ("") unless told. */
  readonly group?: string;
  readonly subresource?: string;
  readonly namespace?: string;
}

/** What the transport does (infra/k8s, Role and ClusterRole). */
const needed = (namespace: string): Right[] => [
  ...["create", "get", "list", "watch", "patch", "delete"].map((verb) => ({ verb, resource: "pods", namespace })),
  { verb: "get", resource: "pods", subresource: "log", namespace },
  { verb: "list", resource: "events", namespace },
  { verb: "get", resource: "nodes" },
  { verb: "list", resource: "nodes" },
];
/** What `/netcheck pod` and `/netcheck svc` ask (infra/k8s/workloads.yaml); all other commands do without. */
const WORKLOADS: readonly Right[] = [
  { verb: "get", resource: "pods" },
  { verb: "get", resource: "services" },
  { verb: "list", resource: "endpointslices", group: "discovery.k8s.io" },
];
/** What somebody with stolen credentials would like to do. */
const dangerous = (namespace: string): Right[] => [
  { verb: "create", resource: "pods", subresource: "exec", namespace },
  { verb: "update", resource: "pods", subresource: "ephemeralcontainers", namespace },
  { verb: "update", resource: "configmaps", namespace },
  { verb: "create", resource: "pods", namespace: "kube-system" },
  { verb: "get", resource: "secrets", namespace: "kube-system" },
];
const rightWords = ({ verb, resource, subresource, namespace }: Right): string =>
  `${verb} ${resource}${subresource === undefined ? "" : `/${subresource}`}${namespace === undefined ? "" : ` in ${namespace}`}`;

/**
 * Looks at each cluster that is reached by debug pods. Changes nothing: what is created is a dry run, which the API server judges in full and does not keep.
 * @param secret reads a secret by the name in netcheck.yaml
 * @param pauseMs between two tries of a call
 */
export async function examineKubernetes(
  findings: Findings,
  clusters: Config["clusters"],
  scripts: readonly Script[],
  secret: (name: string) => Promise<string>,
  pauseMs = 1000,
): Promise<void> {
  for (const [name, cluster] of Object.entries(clusters)) {
    const { debugPods } = cluster;
    if (debugPods === undefined) continue;
    const area = `Kubernetes, cluster ${name}`;
    const access = accessOf(podCluster(name, debugPods, secret).access);
    const api = kubernetesApi(access, pauseMs);
    let host = "of this cluster";
    const look = (check: string, run: () => Promise<Finding>): Promise<boolean> =>
      findings.look(area, check, async () => {
        try {
          return await run();
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          return unknown(explain(error, host));
        }
      });
    let time: { server: number; at: number } | undefined;
    const reachable = await look("API server", async () => {
      const todo = "Check access, endpoint and certificateAuthority of the cluster in netcheck.yaml, and the network between";
      try {
        host = (await access.connect()).endpoint.host;
        const { body, serverTime } = await api.call<{ major: string; minor: string; gitVersion: string }>({ method: "GET", path: "/version" });
        time = { server: serverTime, at: Date.now() };
        const minor = Number.parseInt(body.minor, 10);
        if (Number(body.major) === 1 && minor < POLICY_MINOR)
          return problem(
            `${host} is ${body.gitVersion}, which has no ValidatingAdmissionPolicy`,
            "Upgrade the cluster to 1.30; until then nothing in it pins what netcheck's credentials can run",
          );
        return ok(`${host} is ${body.gitVersion}`);
      } catch (error) {
        if (error instanceof TransportError) return problem(error.message, todo);
        if (error instanceof ApiError) return problem(explain(error, host), todo);
        throw error;
      }
    });
    // an old cluster can still be looked at
    if (!reachable && time === undefined) continue;
    if (time !== undefined) {
      const { server, at } = time;
      await look("clock", async () => clockFinding("the API server", new Date(server).toUTCString(), at));
    }
    await rights(look, api, debugPods.namespace);
    await installation(look, api, debugPods, scripts);
    const addresses = [...addressesOf(cluster, "debug-pod").keys()];
    await look("nodes", async () => {
      const labelled = await labelledNodes(api, debugPods.targetsByLabel);
      return nodes(api, [...addresses, ...labelled.filter((address) => !addresses.includes(address))]);
    });
    await admission(look, api, debugPods, addresses[0] ?? "netcheck-doctor");
  }
}

type Look = (check: string, run: () => Promise<Finding>) => Promise<boolean>;

async function allowed(api: KubernetesApi, { group = "", subresource, namespace, ...right }: Right): Promise<boolean> {
  const resourceAttributes = { ...right, group, ...(subresource === undefined ? {} : { subresource }), ...(namespace === undefined ? {} : { namespace }) };
  const body = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec: { resourceAttributes } };
  const answer = await api.call<{ status: { allowed: boolean } }>({ method: "POST", path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body });
  return answer.body.status.allowed;
}

async function rights(look: Look, api: KubernetesApi, namespace: string): Promise<void> {
  const which = async (list: readonly Right[], may: boolean): Promise<string[]> => {
    const found: string[] = [];
    for (const right of list) if ((await allowed(api, right)) === may) found.push(rightWords(right));
    return found;
  };
  await look("rights", async () => {
    const missing = await which(needed(namespace), false);
    return missing.length === 0 ? ok("all that it needs") : problem(`netcheck's account may not ${missing.join(", ")}`, INSTALL);
  });
  await look("pods and services", async () => {
    const missing = await which(WORKLOADS, false);
    if (missing.length === 0) return ok("/netcheck pod and /netcheck svc can look them up");
    if (missing.length === WORKLOADS.length)
      return ok("not set up: /netcheck pod and /netcheck svc answer that they may not look. To have them: kubectl apply -f infra/k8s/workloads.yaml");
    return problem(
      `netcheck's account may not ${missing.join(", ")}, but may the rest of infra/k8s/workloads.yaml`,
      "kubectl apply -f infra/k8s/workloads.yaml",
    );
  });
  await look("no further rights", async () => {
    const more = await which(dangerous(namespace), true);
    if (more.length === 0) return ok("none of those that were asked for");
    return problem(`netcheck's account may also ${more.join(", ")}`, "Give it the rights of infra/k8s alone, and do not run it as an administrator");
  });
}

/** An object of the cluster; a problem if it is not there. */
async function judged<T>(api: KubernetesApi, path: string, what: string, judge: (object: T) => Finding): Promise<Finding> {
  try {
    return judge((await api.call<T>({ method: "GET", path })).body);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return problem(`there is no ${what}`, INSTALL);
    throw error;
  }
}

async function installation(look: Look, api: KubernetesApi, { namespace, image }: PodSettings, scripts: readonly Script[]): Promise<void> {
  await look("namespace", () =>
    judged<{ metadata: { labels?: Record<string, string> } }>(api, `/api/v1/namespaces/${namespace}`, `namespace ${namespace}`, ({ metadata }) => {
      const level = metadata.labels?.["pod-security.kubernetes.io/enforce"];
      if (level === "privileged") return ok(`${namespace}, labelled for privileged pods`);
      return problem(
        `${namespace} is labelled pod-security.kubernetes.io/enforce=${level ?? "(nothing)"}`,
        `kubectl label namespace ${namespace} --overwrite pod-security.kubernetes.io/enforce=privileged`,
      );
    }),
  );
  for (const [name, wanted] of [
    [POLICY.pods, podPolicy(scripts)],
    [POLICY.entry, entryPolicy()],
  ] as const) {
    await look(`policy ${name}`, () =>
      judged<{ spec: PolicySpec }>(api, `${RULES}/validatingadmissionpolicies/${name}`, `policy ${name}`, ({ spec }) => {
        const differs = policyDifferences(spec, wanted);
        return differs.length === 0 ? ok("that of this version") : problem(`not that of this version: ${differs.join("; ")}`, INSTALL);
      }),
    );
    await look(`binding ${name}`, () =>
      judged<{ spec: ReturnType<typeof bindingSpec> }>(api, `${RULES}/validatingadmissionpolicybindings/${name}`, `binding ${name}`, ({ spec }) => {
        const bound = bindingSpec(name, namespace);
        const same =
          spec.policyName === bound.policyName &&
          spec.validationActions.includes("Deny") &&
          isDeepStrictEqual(spec.paramRef, bound.paramRef) &&
          isDeepStrictEqual(spec.matchResources?.namespaceSelector, bound.matchResources.namespaceSelector);
        return same ? ok(`it denies, in ${namespace}`) : problem(`it does not deny what the policy ${name} forbids in ${namespace}`, INSTALL);
      }),
    );
  }
  await look("pinned scripts and image", () =>
    judged<{ data?: Record<string, string> }>(
      api,
      `/api/v1/namespaces/${namespace}/configmaps/${POLICY.parameters}`,
      `ConfigMap ${POLICY.parameters} in ${namespace}`,
      ({ data = {} }) => {
        const wanted = policyParameters(scripts, image);
        if (data["image"] !== image) return problem(`the policy pins the image ${data["image"]}, netcheck.yaml names ${image}`, INSTALL);
        const other = Object.keys(wanted).filter((key) => data[key] !== wanted[key]);
        const before = Object.keys(data).filter((key) => key.startsWith(PREVIOUS)).length;
        const also =
          before === 0 ? "" : `; ${before} texts of the version before are allowed, too: install without --previous when nothing of it runs any more`;
        return other.length === 0 ? ok(`${scripts.length} scripts and the image${also}`) : problem(`not those of this version: ${some(other)}`, INSTALL);
      },
    ),
  );
}

/** What of a policy is not as this version has it. Defaults that an API server fills in do not count. */
function policyDifferences(found: PolicySpec, wanted: PolicySpec): string[] {
  const differs: string[] = [];
  if (found.failurePolicy !== wanted.failurePolicy) differs.push(`failurePolicy is ${String(found.failurePolicy)}`);
  if (!isDeepStrictEqual(found.paramKind, wanted.paramKind)) differs.push("paramKind");
  if (!isDeepStrictEqual(found.variables ?? [], wanted.variables ?? [])) differs.push("variables");
  if ((found as { matchConditions?: readonly unknown[] }).matchConditions?.length) differs.push("it has matchConditions, which exempt requests");
  const rules = ({ matchConstraints }: PolicySpec) =>
    matchConstraints.resourceRules.map(({ apiGroups, operations, resources }) => ({ apiGroups, operations, resources }));
  if (!isDeepStrictEqual(rules(found), rules(wanted))) differs.push("it is about other requests");
  const expressions = new Set(found.validations.map(({ expression }) => expression));
  const missing = wanted.validations.filter(({ expression }) => !expressions.has(expression));
  if (missing.length > 0) differs.push(`${missing.length} of ${wanted.validations.length} rules differ, the first: ${missing[0]?.message}`);
  return differs;
}

/** Names of the nodes with all these labels, as many as are looked at. */
async function labelledNodes(api: KubernetesApi, labels: Readonly<Record<string, string>> | undefined): Promise<string[]> {
  if (labels === undefined) return [];
  const labelSelector = Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(",");
  const query = { labelSelector, limit: String(MOST_NODES + 1) };
  const { body } = await api.call<{ items: readonly { readonly metadata: { readonly name: string } }[] }>({ method: "GET", path: "/api/v1/nodes", query });
  return body.items.map(({ metadata }) => metadata.name);
}

async function nodes(api: KubernetesApi, addresses: readonly string[]): Promise<Finding> {
  if (addresses.length === 0) return problem("the cluster has no nodes", "Name targets in netcheck.yaml, or label nodes as targetsByLabel says");
  const wrong: string[] = [];
  for (const address of addresses.slice(0, MOST_NODES)) {
    try {
      const { body } = await api.call<{ status?: { conditions?: { type: string; status: string }[] } }>({
        method: "GET",
        path: `/api/v1/nodes/${encodeURIComponent(address)}`,
      });
      const ready = body.status?.conditions?.find(({ type }) => type === "Ready")?.status;
      // a node that is not ready is just what netcheck is for, if it answers
      if (ready === "Unknown") wrong.push(`${address} does not answer to the cluster`);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
      wrong.push(`there is no node ${address}`);
    }
  }
  const more = addresses.length > MOST_NODES ? ` (the first ${MOST_NODES} of ${addresses.length} were looked at)` : "";
  return wrong.length === 0
    ? ok(`all ${Math.min(addresses.length, MOST_NODES)} answer${more}`)
    : problem(`${some(wrong, "; ")}${more}`, "Correct the targets of the cluster in netcheck.yaml, or look at these nodes");
}

/** What the API server says of a pod of ours, and of one that was changed: both as dry runs, which go through all of admission. */
async function admission(look: Look, api: KubernetesApi, settings: PodSettings, node: string): Promise<void> {
  const script = allOfThem.fixStatus;
  const nonce = randomBytes(16).toString("hex");
  const job = { id: `doctor-${nonce.slice(0, 12)}`, script, parameters: { run: "doctor" }, nonce };
  const target = { name: node, cluster: "", transport: "debug-pod", address: node };
  const pod = (): V1Pod => podOf(settings, target, job, Date.now());
  const dryRun = (body: V1Pod) => api.call({ method: "POST", path: `/api/v1/namespaces/${settings.namespace}/pods`, query: { dryRun: "All" }, body });
  const taken = await look("a debug pod (dry run)", async () => {
    try {
      await dryRun(pod());
      return ok("the API server would take it");
    } catch (error) {
      if (!(error instanceof ApiError) || error.status === 0 || error.status === 429) throw error;
      return problem(`the API server would not take it: ${explain(error, "of this cluster")}`, "Change what denies it; until then no debug pod can be made");
    }
  });
  await look("a pod that somebody changed (dry run)", async () => {
    const changed = pod();
    const container = changed.spec?.containers[0];
    if (container?.args?.[0] !== undefined) container.args[0] += "\n# one line more\n";
    try {
      await dryRun(changed);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status === 0 || error.status === 429) throw error;
      if (error.message.includes(`ValidatingAdmissionPolicy '${POLICY.pods}'`)) return ok("netcheck's policy denies it");
      return unknown(`something else denies it${taken ? "" : ", as it denies every pod of netcheck"}: ${error.message.split("\n")[0]}`);
    }
    return problem("the API server would take it: the policy is not in force, so netcheck's credentials can run anything as root on every node", INSTALL);
  });
}
