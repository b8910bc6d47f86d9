import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { V1Pod } from "@kubernetes/client-node";
import type { bindingSpec, PolicySpec } from "../../functions/transports/pod-policy.ts";
import { admitted, denials } from "../k8s/policy.ts";

const pem = (name: string): string => readFileSync(new URL(`kubernetes/test-only-${name}.pem`, import.meta.url), "utf8");
/** The authority that this server's certificate is from. */
export const AUTHORITY = pem("cert");

/** As listen of http.ts, behind TLS: credentials go nowhere else. */
async function listen(
  handle: (request: IncomingMessage, body: Buffer, response: ServerResponse) => void,
): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createServer({ cert: AUTHORITY, key: pem("key") }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      try {
        handle(request, Buffer.concat(chunks), response);
      } catch (error) {
        response.writeHead(501).end(`emulator: ${String(error)}`);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** What was asked of SelfSubjectAccessReview, as "create pods/exec in kube-system". */
type Right = string;

export interface AdmissionEmulator {
  readonly url: string;
  /** Objects by path; what is not there is 404. May be changed at any time. */
  readonly objects: Map<string, unknown>;
  /** What the account may not read: paths. */
  readonly hidden: Set<string>;
  /** Rights of the account. */
  may: (right: Right) => boolean;
  /** Kubernetes' minor version. */
  minor: string;
  /** The server's clock is ahead of ours by so many milliseconds. */
  clockOffset: number;
  /** Instead of what admission says of a pod. */
  refusal: { readonly status: number; readonly reason: string; readonly message: string } | undefined;
  readonly requests: { readonly method: string; readonly path: string }[];
  close(): Promise<void>;
}

interface Stored {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}
const FOLDERS: Readonly<Record<string, string>> = {
  Namespace: "/api/v1/namespaces",
  ConfigMap: "configmaps",
  Node: "/api/v1/nodes",
  ValidatingAdmissionPolicy: "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
  ValidatingAdmissionPolicyBinding: "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
};

/** The path of an object of infra/k8s; undefined for kinds that nobody asks this emulator for. */
export function pathOf({ kind, metadata: { name, namespace } }: Stored): string | undefined {
  const folder = FOLDERS[kind];
  if (folder === undefined) return undefined;
  return folder.startsWith("/") ? `${folder}/${name}` : `/api/v1/namespaces/${namespace}/${folder}/${name}`;
}

/**
 * The parts of an API server that judge: access reviews, and ValidatingAdmissionPolicies, whose stored CEL it really evaluates for dry-run creates of pods.
 * A create that is no dry run is an error of the test. @param installed objects of infra/k8s
 */
export async function startAdmission(installed: readonly unknown[], token: string): Promise<AdmissionEmulator> {
  const objects = new Map<string, unknown>();
  for (const object of installed) {
    const path = pathOf(object as Stored);
    if (path !== undefined) objects.set(path, object);
  }
  const state: Omit<AdmissionEmulator, "url" | "close"> = {
    objects,
    hidden: new Set(),
    may: () => true,
    minor: "32",
    clockOffset: 0,
    refusal: undefined,
    requests: [],
  };

  /** The first denial, in the API server's words. */
  function judge(pod: V1Pod, namespace: string): string | undefined {
    for (const [path, object] of objects) {
      if (!path.startsWith(`${FOLDERS["ValidatingAdmissionPolicyBinding"]}/`)) continue;
      const { metadata, spec } = object as Stored & { readonly spec: ReturnType<typeof bindingSpec> };
      const policy = objects.get(`${FOLDERS["ValidatingAdmissionPolicy"]}/${spec.policyName}`) as (Stored & { readonly spec: PolicySpec }) | undefined;
      const here = spec.matchResources.namespaceSelector.matchLabels["kubernetes.io/metadata.name"] === namespace;
      const about = policy?.spec.matchConstraints.resourceRules.some(
        ({ operations, resources }) => operations.includes("CREATE") && resources.includes("pods"),
      );
      if (policy === undefined || !here || about !== true || !spec.validationActions.includes("Deny")) continue;
      const said = (message: string) =>
        `pods "${pod.metadata?.name}" is forbidden: ValidatingAdmissionPolicy '${spec.policyName}' with binding '${metadata.name}' denied request: ${message}`;
      const params = objects.get(`/api/v1/namespaces/${spec.paramRef?.namespace}/configmaps/${spec.paramRef?.name}`) as
        | { data: Record<string, string> }
        | undefined;
      if (params === undefined) return said("failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction");
      const [first] = denials(policy.spec, params, admitted(pod));
      if (first !== undefined) return said(first);
    }
    return undefined;
  }

  const { url, close } = await listen((request, raw, response) => {
    const { pathname: path, searchParams } = new URL(request.url ?? "/", "http://127.0.0.1");
    const method = request.method ?? "GET";
    state.requests.push({ method, path });
    const answer = (status: number, body: unknown) =>
      void response
        .writeHead(status, { "Content-Type": "application/json", Date: new Date(Date.now() + state.clockOffset).toUTCString() })
        .end(JSON.stringify(body));
    const refuse = (code: number, reason: string, message: string) =>
      answer(code, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code });
    if (request.headers.authorization !== `Bearer ${token}`) return refuse(401, "Unauthorized", "Unauthorized");
    if (path === "/version") return answer(200, { major: "1", minor: state.minor, gitVersion: `v1.${state.minor}.2` });
    const body = raw.length === 0 ? undefined : (JSON.parse(raw.toString("utf8")) as unknown);
    if (method === "POST" && path.endsWith("/selfsubjectaccessreviews")) {
      const { verb, resource, subresource, namespace } = (body as { spec: { resourceAttributes: Record<string, string> } }).spec.resourceAttributes;
      const right = `${verb} ${resource}${subresource === undefined ? "" : `/${subresource}`}${namespace === undefined ? "" : ` in ${namespace}`}`;
      return answer(201, { kind: "SelfSubjectAccessReview", status: { allowed: state.may(right) } });
    }
    const namespace = /^\/api\/v1\/namespaces\/([^/]+)\/pods$/.exec(path)?.[1];
    if (method === "POST" && namespace !== undefined) {
      if (searchParams.get("dryRun") !== "All") throw new Error("doctor made a pod that is no dry run");
      if (state.refusal !== undefined) return refuse(state.refusal.status, state.refusal.reason, state.refusal.message);
      const denied = judge(body as V1Pod, namespace);
      return denied === undefined ? answer(201, body) : refuse(403, "Forbidden", denied);
    }
    if (method !== "GET") throw new Error(`doctor changes something: ${method} ${path}`);
    const name = path.split("/").at(-1) ?? "";
    const kind = path.split("/").at(-2) ?? "";
    if (state.hidden.has(path))
      return refuse(403, "Forbidden", `${kind} "${name}" is forbidden: User "netcheck" cannot get resource "${kind}" in API group "" at the cluster scope`);
    const object = objects.get(path);
    return object === undefined ? refuse(404, "NotFound", `${kind} "${name}" not found`) : answer(200, object);
  });
  return Object.assign(state, { url, close });
}
