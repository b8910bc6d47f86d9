import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { listen } from "./http.ts";
import type { Container, Kubelet } from "./kubelet.ts";
import { expand, type PodStatus, recordedAnswer, recordedPhase, type StoredPod } from "./kubernetes-pod.ts";

/** A node of the stand-in cluster. */
export interface EmulatedNode {
  /** Runs its containers; without one, no pod is ever taken (the kubelet is dead). */
  kubelet?: Kubelet;
  /** Its Ready condition. Default True. */
  ready?: "True" | "False" | "Unknown";
  /** Every pod of it ends up in this recorded phase (kubernetes/phases.json) instead of running. */
  phase?: string;
  /** How its logs go wrong: a recorded answer; or after a container has written so many bytes, what came before is gone (rotation). */
  log?: { answer: string } | { rotateAfter: number };
  /** What a list of nodes shows of it. */
  labels?: Record<string, string>;
  providerID?: string;
  addresses?: { type: string; address: string }[];
}

/** The next `times` requests that match ("POST pods", "GET log", "GET nodes", …) go wrong. */
export interface KubernetesFault {
  match: string;
  /**
   * An answer by the name of its recording (kubernetes/answers.json), or a Status of the test's own; "drop": the connection is cut before anything
   * happened; "drop-after": it is done, and then cut; "hang": nothing is ever said.
   */
  answer: { recorded: string } | { status: number; reason?: string; message: string } | "drop" | "drop-after" | "hang";
  times: number;
}

export interface KubernetesEmulator {
  url: string;
  /** By name; may be changed at any time. */
  nodes: Map<string, EmulatedNode>;
  pods: Map<string, StoredPod>;
  /** Tokens that are let in. */
  tokens: Set<string>;
  /** What else is in the cluster, by where it is read: "pods/shop/web-1", "services/shop/web", "endpointslices/shop/web-abc12". */
  objects: Map<string, { metadata: { name: string; labels?: Record<string, string> } }>;
  /** Resources ("pods", "services", "endpointslices", "nodes") that RBAC keeps from us outside of the namespace for debug pods. */
  denied: Set<string>;
  /** Every request: "GET /api/v1/… ?query". */
  requests: { method: string; path: string; query: URLSearchParams; authorization: string; body: unknown }[];
  fail(fault: KubernetesFault): void;
  /** Watches that start at an older version are told 410 from now on. */
  compact(): void;
  /** Ends all watches as a stopping server does: without a last chunk. */
  cutWatches(): void;
  /** Resolves when the next watch begins. */
  watched(): Promise<void>;
  /** The next reads of a log lose this much of its end. */
  loseEnd(bytes: number, times: number): void;
  /** How long the log of each pod is. */
  logBytes(): number[];
  /** The kubelet finds that a pod's deadline has passed. */
  expire(name: string): void;
  /** Moves the server's clock. */
  advance(seconds: number): void;
  /** Resolves when no container runs. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

interface Reply {
  status: number;
  type: string;
  text: string | Buffer;
  retryAfter?: string;
}

interface Watch {
  response: ServerResponse;
  wants: (pod: StoredPod) => boolean;
}

const DNS = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LABEL_VALUE = /^(?:[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

class Refusal extends Error {
  readonly status: number;
  readonly reason: string;
  constructor(status: number, reason: string, message: string) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

/**
 * A Kubernetes API server with its kubelets, over real HTTP: the few resources that a debug pod needs. Pods really run, by the node's {@link Kubelet}. How it
 * answers, also when things go wrong, is what a real server did when it was recorded.
 */
export async function startKubernetes(options: { nodes?: Record<string, EmulatedNode>; namespace?: string; token?: string } = {}): Promise<KubernetesEmulator> {
  const namespace = options.namespace ?? "netcheck";
  const nodes = new Map(Object.entries(options.nodes ?? {}));
  const pods = new Map<string, StoredPod>();
  const events = new Map<string, { type: string; reason: string; message: string }[]>();
  const logs = new Map<string, Buffer>();
  const phaseOf = new Map<string, string>();
  const containers = new Map<string, Container>();
  const running = new Set<Promise<void>>();
  const tokens = new Set([options.token ?? "token"]);
  const objects: KubernetesEmulator["objects"] = new Map();
  const denied = new Set<string>();
  const requests: KubernetesEmulator["requests"] = [];
  const faults: KubernetesFault[] = [];
  const watches = new Set<Watch>();
  const expecting: (() => void)[] = [];
  const history: { version: number; type: string; pod: StoredPod }[] = [];
  let version = 1000;
  let oldest = 0;
  let offset = 0;
  let lost = { bytes: 0, times: 0 };
  const now = (): Date => new Date(Date.now() + offset);
  const stamp = (): string =>
    now()
      .toISOString()
      .replace(/\.\d{3}/, "");

  /** Records a change and tells it to whoever watches. */
  function changed(type: "ADDED" | "MODIFIED" | "DELETED", pod: StoredPod): void {
    version += 1;
    pod.metadata.resourceVersion = String(version);
    const copy = structuredClone(pod);
    history.push({ version, type, pod: copy });
    for (const watch of watches) if (watch.wants(copy)) watch.response.write(`${JSON.stringify({ type, object: copy })}\n`);
  }
  function setStatus(pod: StoredPod, status: PodStatus): void {
    pod.status = structuredClone(status);
    if (pods.get(pod.metadata.name) === pod) changed("MODIFIED", pod);
  }
  const state = (pod: StoredPod, containerState: Record<string, unknown>) => [{ name: pod.spec.containers[0]?.name ?? "", state: containerState }];
  function gone(pod: StoredPod): void {
    if (pods.get(pod.metadata.name) !== pod) return;
    pods.delete(pod.metadata.name);
    changed("DELETED", pod);
  }

  /** What a node does with a pod that names it. */
  function take(pod: StoredPod): void {
    const node = nodes.get(pod.spec.nodeName ?? "");
    if (node === undefined || node.ready === "Unknown") return;
    if (node.phase !== undefined) {
      const recorded = recordedPhase(node.phase);
      if (recorded.status.startTime !== undefined) recorded.status.startTime = stamp();
      phaseOf.set(pod.metadata.uid, node.phase);
      events.set(pod.metadata.uid, recorded.events);
      setStatus(pod, recorded.status);
      return;
    }
    if (node.kubelet === undefined) return;
    const startTime = stamp();
    setStatus(pod, {
      phase: "Pending",
      startTime,
      conditions: [{ type: "PodScheduled", status: "True" }],
      containerStatuses: state(pod, { waiting: { reason: "ContainerCreating" } }),
    });
    const [container] = pod.spec.containers;
    if (container === undefined) return;
    // in order: a variable may name one before it
    const env: Record<string, string> = {};
    for (const { name, value = "" } of container.env ?? []) env[name] = expand(value, env);
    const host = container.volumeMounts?.find(({ mountPath }) => mountPath === "/host");
    const started = node.kubelet({
      command: (container.command ?? []).map((word) => expand(word, env)),
      args: (container.args ?? []).map((word) => expand(word, env)),
      env,
      hostReadOnly: host?.readOnly === true,
    });
    containers.set(pod.metadata.uid, started);
    const startedAt = stamp();
    let past = false;
    // seen on a real cluster: 1 of 20 short pods showed Running, so it comes only to those that last
    const shows = setTimeout(() => setStatus(pod, { phase: "Running", startTime, containerStatuses: state(pod, { running: { startedAt } }) }), 100);
    const deadline = setTimeout(
      () => {
        past = true;
        const { status } = recordedPhase("failed-deadlineexceeded");
        setStatus(pod, { ...status, startTime, containerStatuses: state(pod, { running: { startedAt } }) });
        started.stop();
      },
      (pod.spec.activeDeadlineSeconds ?? 86_400) * 1000,
    );
    const over = started.ended.then(({ exitCode, log }) => {
      clearTimeout(shows);
      clearTimeout(deadline);
      containers.delete(pod.metadata.uid);
      const cut = node.log !== undefined && "rotateAfter" in node.log && log.length > node.log.rotateAfter;
      logs.set(pod.metadata.uid, cut ? log.subarray(log.length - (log.length % (node.log as { rotateAfter: number }).rotateAfter)) : log);
      const terminated = { exitCode, reason: exitCode === 0 ? "Completed" : "Error", startedAt, finishedAt: stamp() };
      const failed = past ? { reason: "DeadlineExceeded", message: "Pod was active on the node longer than the specified deadline" } : {};
      setStatus(pod, { phase: exitCode === 0 && !past ? "Succeeded" : "Failed", startTime, ...failed, containerStatuses: state(pod, { terminated }) });
      if (pod.metadata.deletionTimestamp !== undefined) gone(pod);
    });
    const tracked: Promise<void> = over.finally(() => running.delete(tracked));
    running.add(tracked);
  }

  function create(body: StoredPod): StoredPod {
    const { name } = body.metadata;
    if (body.metadata.namespace !== undefined && body.metadata.namespace !== namespace)
      throw new Refusal(400, "BadRequest", "the namespace of the provided object does not match the namespace sent on the request");
    if (!DNS.test(name) || name.length > 253) throw new Refusal(422, "Invalid", `Pod "${name}" is invalid: metadata.name: Invalid value: "${name}"`);
    for (const [key, value] of Object.entries(body.metadata.labels ?? {}))
      if (!LABEL_VALUE.test(value)) throw new Refusal(422, "Invalid", `Pod "${name}" is invalid: metadata.labels: Invalid value: "${value}" of ${key}`);
    const existing = pods.get(name);
    if (existing !== undefined)
      throw new Refusal(
        409,
        "AlreadyExists",
        `${existing.metadata.deletionTimestamp === undefined ? "" : "object is being deleted: "}pods "${name}" already exists`,
      );
    const pod: StoredPod = {
      ...structuredClone(body),
      metadata: { ...body.metadata, namespace, uid: randomUUID(), resourceVersion: "", creationTimestamp: stamp() },
      status: { phase: "Pending" },
    };
    pods.set(name, pod);
    changed("ADDED", pod);
    setImmediate(() => take(pod));
    return structuredClone(pod);
  }

  function patch(
    pod: StoredPod,
    body: { metadata?: { uid?: string; annotations?: Record<string, string> }; spec?: { activeDeadlineSeconds?: number } },
  ): StoredPod {
    if (body.metadata?.uid !== undefined && body.metadata.uid !== pod.metadata.uid)
      throw new Refusal(409, "Conflict", `Operation cannot be fulfilled on pods "${pod.metadata.name}": Precondition failed: UID in precondition`);
    const seconds = body.spec?.activeDeadlineSeconds;
    if (seconds !== undefined && seconds > (pod.spec.activeDeadlineSeconds ?? Number.POSITIVE_INFINITY))
      throw new Refusal(422, "Invalid", `Pod "${pod.metadata.name}" is invalid: spec.activeDeadlineSeconds: must be less than or equal to previous value`);
    pod.metadata.annotations = { ...pod.metadata.annotations, ...body.metadata?.annotations };
    if (seconds !== undefined) pod.spec.activeDeadlineSeconds = seconds;
    changed("MODIFIED", pod);
    if (seconds !== undefined) expire(pod);
    return structuredClone(pod);
  }

  /** The kubelet ends a pod that has had its time, also one that never started. */
  function expire(pod: StoredPod | undefined): void {
    if (pod?.status.phase === "Pending" && pod.status.startTime !== undefined)
      setStatus(pod, { ...pod.status, phase: "Failed", reason: "DeadlineExceeded", message: "Pod was active on the node longer than the specified deadline" });
  }

  function remove(pod: StoredPod, body: { preconditions?: { uid?: string } } | undefined): StoredPod {
    const { metadata, spec, status } = pod;
    const wanted = body?.preconditions?.uid;
    if (wanted !== undefined && wanted !== metadata.uid)
      throw new Refusal(
        409,
        "Conflict",
        `Operation cannot be fulfilled on Pod "${metadata.name}": the UID in the precondition (${wanted}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
      );
    const finished = status.phase === "Succeeded" || status.phase === "Failed";
    metadata.deletionTimestamp = stamp();
    metadata.deletionGracePeriodSeconds = finished ? 0 : (spec.terminationGracePeriodSeconds ?? 30);
    changed("MODIFIED", pod);
    const answer = structuredClone(pod);
    const container = containers.get(metadata.uid);
    // what nobody runs ends at once, unless its node is dead: then it hangs
    if (container !== undefined) container.stop();
    else if (finished || (nodes.get(spec.nodeName ?? "")?.ready ?? "Unknown") !== "Unknown") gone(pod);
    return answer;
  }

  function log(pod: StoredPod, query: URLSearchParams): Reply {
    const node = nodes.get(pod.spec.nodeName ?? "");
    if (node === undefined) throw new Refusal(404, "NotFound", `pods "${pod.spec.nodeName ?? ""}" not found`);
    if (node.log !== undefined && "answer" in node.log) return recordedAnswer(node.log.answer);
    const phase = phaseOf.get(pod.metadata.uid);
    const recorded = phase === undefined ? undefined : recordedPhase(phase).log;
    if (recorded !== undefined) return { status: recorded.status, type: recorded.status >= 400 ? "application/json" : "text/plain", text: recorded.text };
    const container = query.get("container") ?? "";
    if (!pod.spec.containers.some(({ name }) => name === container))
      throw new Refusal(400, "BadRequest", `container ${container} is not valid for pod ${pod.metadata.name}`);
    const whole = logs.get(pod.metadata.uid);
    if (whole === undefined && !containers.has(pod.metadata.uid))
      throw new Refusal(400, "BadRequest", `container "${container}" in pod "${pod.metadata.name}" is waiting to start: ContainerCreating`);
    let text = whole ?? Buffer.alloc(0);
    const limit = query.get("limitBytes");
    if (limit !== null) text = text.subarray(0, Number(limit));
    if (lost.times > 0) {
      text = text.subarray(0, Math.max(0, text.length - lost.bytes));
      lost = { ...lost, times: lost.times - 1 };
    }
    return { status: 200, type: "text/plain", text };
  }

  function selector(query: URLSearchParams): (pod: StoredPod) => boolean {
    const name = /^metadata\.name=(.*)$/.exec(query.get("fieldSelector") ?? "")?.[1];
    const labels = (query.get("labelSelector") ?? "").split(",").filter(Boolean);
    return ({ metadata }) =>
      (name === undefined || metadata.name === name) &&
      labels.every((want) => {
        const [key = "", value] = want.split("=");
        return value === undefined ? metadata.labels?.[key] !== undefined : metadata.labels?.[key] === value;
      });
  }

  function watch(query: URLSearchParams, response: ServerResponse): void {
    const from = Number(query.get("resourceVersion") ?? version);
    response.writeHead(200, { "Content-Type": "application/json", Date: now().toUTCString() });
    if (from < oldest) {
      response.end(recordedAnswer("watch/error-410-old-rv").text);
      return;
    }
    response.flushHeaders();
    const wants = selector(query);
    const mine: Watch = { response, wants };
    for (const event of history) if (event.version > from && wants(event.pod)) response.write(`${JSON.stringify({ type: event.type, object: event.pod })}\n`);
    watches.add(mine);
    for (const tell of expecting.splice(0)) tell();
    const timer = setTimeout(() => response.end(), Number(query.get("timeoutSeconds") ?? 60) * 1000);
    response.once("close", () => {
      clearTimeout(timer);
      watches.delete(mine);
    });
  }

  const json = (status: number, value: unknown): Reply => ({ status, type: "application/json", text: JSON.stringify(value) });
  const refusal = ({ status, reason, message }: { status: number; reason?: string; message: string }): Reply =>
    json(status, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, ...(reason === "" ? {} : { reason }), code: status });

  /** Pods of other namespaces, services and their slices, and the list of nodes; undefined if it is about something else. */
  function lookUp(path: string, query: URLSearchParams): Reply | undefined {
    const group = path.startsWith("/apis/discovery.k8s.io/v1/") ? "discovery.k8s.io" : "";
    const [, space = "", kind = "", name] =
      /^\/(?:api\/v1|apis\/discovery\.k8s\.io\/v1)(?:\/namespaces\/([^/]+))?\/(pods|services|endpointslices|nodes)(?:\/([^/]+))?$/.exec(path) ?? [];
    const mine = kind === "pods" && space === namespace;
    if (kind === "" || mine || (kind === "nodes" && name !== undefined) || (kind === "endpointslices") !== (group !== "")) return undefined;
    if (denied.has(kind)) {
      const where = space === "" ? "at the cluster scope" : `in the namespace "${space}"`;
      const what = name === undefined ? "" : ` "${name}"`;
      const who = `User "system:serviceaccount:${namespace}:netcheck" cannot ${name === undefined ? "list" : "get"} resource "${kind}"`;
      throw new Refusal(403, "Forbidden", `${kind}${group === "" ? "" : `.${group}`}${what} is forbidden: ${who} in API group "${group}" ${where}`);
    }
    if (name !== undefined) {
      const found = objects.get(`${kind}/${space}/${name}`);
      if (found === undefined) throw new Refusal(404, "NotFound", `${kind} "${name}" not found`);
      return json(200, found);
    }
    const selected = (query.get("labelSelector") ?? "").split(",").map((pair) => pair.split("="));
    const all =
      kind === "nodes"
        ? [...nodes].map(([node, { ready = "True", labels = {}, providerID, addresses = [] }]) => ({
            metadata: { name: node, labels },
            spec: { providerID },
            status: { addresses, conditions: [{ type: "Ready", status: ready }] },
          }))
        : [...objects].filter(([place]) => place.startsWith(`${kind}/${space}/`)).map(([, object]) => object);
    const items = all
      .filter(({ metadata }) => selected.every(([key = "", value]) => key === "" || (metadata as { labels?: Record<string, string> }).labels?.[key] === value))
      .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
      .filter(({ metadata }) => metadata.name > (query.get("continue") ?? ""));
    const page = items.slice(0, Number(query.get("limit") ?? items.length));
    const more = page.length < items.length ? { continue: page.at(-1)?.metadata.name } : {};
    return json(200, { kind: "List", apiVersion: "v1", metadata: { resourceVersion: String(version), ...more }, items: page });
  }

  /** The answer to a request; undefined if it is a watch, which answers by itself. */
  function route(method: string, path: string, query: URLSearchParams, body: unknown, response: ServerResponse): Reply | undefined {
    const looked = method === "GET" ? lookUp(path, query) : undefined;
    if (looked !== undefined) return looked;
    const node = /^\/api\/v1\/nodes\/([^/]+)$/.exec(path)?.[1];
    if (node !== undefined && method === "GET") {
      const found = nodes.get(decodeURIComponent(node));
      if (found === undefined) throw new Refusal(404, "NotFound", `nodes "${node}" not found`);
      const ready = found.ready ?? "True";
      const silent = { reason: "NodeStatusUnknown", message: "Kubelet stopped posting node status.", lastTransitionTime: stamp() };
      const conditions = [{ type: "Ready", status: ready, ...(ready === "Unknown" ? silent : { reason: "KubeletReady", message: "" }) }];
      return json(200, { kind: "Node", apiVersion: "v1", metadata: { name: node }, status: { conditions } });
    }
    const [, inNamespace, kind, name, sub] = /^\/api\/v1\/namespaces\/([^/]+)\/(pods|events)(?:\/([^/]+))?(?:\/(log))?$/.exec(path) ?? [];
    if (inNamespace === undefined) throw new Refusal(404, "NotFound", "the server could not find the requested resource");
    if (kind === "events") {
      const uid = /^involvedObject\.uid=(.*)$/.exec(query.get("fieldSelector") ?? "")?.[1] ?? "";
      return json(200, { kind: "EventList", apiVersion: "v1", metadata: {}, items: events.get(uid) ?? [] });
    }
    if (inNamespace !== namespace && method === "POST") throw new Refusal(404, "NotFound", `namespaces "${inNamespace}" not found`);
    if (name === undefined) {
      if (method === "POST") return json(201, create(body as StoredPod));
      if (query.get("watch") === "true") {
        watch(query, response);
        return undefined;
      }
      // by name, as etcd has them: what is deleted between two pages moves nothing
      const after = query.get("continue") ?? "";
      const all = [...pods.values()]
        .filter((pod) => inNamespace === namespace && selector(query)(pod) && pod.metadata.name > after)
        .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
      const items = all.slice(0, Number(query.get("limit") ?? all.length));
      const more = items.length < all.length ? { continue: items.at(-1)?.metadata.name } : {};
      return json(200, { kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: String(version), ...more }, items });
    }
    const pod = inNamespace === namespace ? pods.get(name) : undefined;
    if (pod === undefined) throw new Refusal(404, "NotFound", `pods "${name}" not found`);
    if (sub === "log") return log(pod, query);
    if (method === "GET") return json(200, pod);
    if (method === "PATCH") return json(200, patch(pod, body as Parameters<typeof patch>[1]));
    if (method === "DELETE") return json(200, remove(pod, body as Parameters<typeof remove>[1]));
    throw new Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
  }

  /** The answer to a request that goes wrong before it is looked at; "cut" and "hang" are none. */
  function fate(match: readonly string[]): Reply | "drop" | "drop-after" | "hang" | undefined {
    const fault = faults.find((item) => match.includes(item.match));
    if (fault === undefined) return undefined;
    fault.times -= 1;
    if (fault.times <= 0) faults.splice(faults.indexOf(fault), 1);
    if (typeof fault.answer === "string") return fault.answer;
    return "recorded" in fault.answer ? recordedAnswer(fault.answer.recorded) : refusal(fault.answer);
  }

  const server = await listen((request: IncomingMessage, raw: Buffer, response: ServerResponse) => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    const query = url.searchParams;
    const method = request.method ?? "GET";
    const authorization = request.headers.authorization ?? "";
    const body: unknown = raw.length === 0 ? undefined : JSON.parse(raw.toString("utf8"));
    requests.push({ method, path: url.pathname, query, authorization, body });
    const resource =
      /\/(log|events)$/.exec(url.pathname)?.[1] ?? (/\/nodes(?:\/|$)/.test(url.pathname) ? "nodes" : query.get("watch") === "true" ? "watch" : "pods");
    const wrong = fate([`${method} ${resource}`, "*"]);
    if (wrong === "hang") return;
    if (wrong === "drop") {
      request.socket.destroy();
      return;
    }
    let reply: Reply | undefined;
    if (wrong !== undefined && wrong !== "drop-after") reply = wrong;
    else if (authorization === "") reply = recordedAnswer("auth/403-anonymous");
    else if (!tokens.has(authorization.replace(/^Bearer /, ""))) reply = recordedAnswer("auth/401-invalid-token");
    else {
      try {
        reply = route(method, url.pathname, query, body, response);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        reply = refusal(error);
      }
    }
    if (wrong === "drop-after") request.socket.destroy();
    else if (reply !== undefined) {
      const type = reply.type === "" ? {} : { "Content-Type": reply.type };
      const patience = reply.retryAfter === undefined ? {} : { "Retry-After": reply.retryAfter };
      response.writeHead(reply.status, { "Cache-Control": "no-cache, private", Date: now().toUTCString(), ...type, ...patience });
      response.end(reply.text);
    }
  });

  return {
    url: server.url,
    nodes,
    pods,
    tokens,
    objects,
    denied,
    requests,
    fail: (fault) => {
      faults.push({ ...fault });
    },
    compact: () => {
      version += 1;
      oldest = version;
    },
    cutWatches: () => {
      for (const { response } of watches) response.socket?.destroy();
      watches.clear();
    },
    watched: () => new Promise((resolve) => expecting.push(resolve)),
    loseEnd: (bytes, times) => {
      lost = { bytes, times };
    },
    logBytes: () => [...logs.values()].map(({ length }) => length),
    expire: (name) => expire(pods.get(name)),
    advance: (seconds) => {
      offset += seconds * 1000;
    },
    settled: async () => {
      await Promise.all(running);
    },
    close: async () => {
      for (const container of containers.values()) container.stop();
      await Promise.all(running);
      await server.close();
    },
  };
}
