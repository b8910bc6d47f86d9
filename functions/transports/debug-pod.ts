import { type Job, type JobState, type Target, type Transport, TransportError } from "../triage/ports.ts";
import { accessOf, type ClusterAccess } from "./pod-access.ts";
import { ApiError, delay, type KubernetesApi, kubernetesApi, NOT_CONNECTED, UNTRUSTED } from "./pod-api.ts";
import { type PodLog, readPodLog } from "./pod-log.ts";
import { ClusterNodes } from "./pod-nodes.ts";
import { ANNOTATION, byDigest, CONTAINER, LABEL, LOG_BYTES, MANAGER, type PodSettings, podName, podOf } from "./pod-spec.ts";
import { type Condition, judge, oneLine, type Pod, type PodEvent, whyNotStarted } from "./pod-state.ts";
import { explain } from "./pod-words.ts";

/** A cluster as the configuration describes it. */
export interface PodCluster extends Partial<Omit<PodSettings, "image">> {
  readonly access: ClusterAccess;
  readonly image: string;
  /** Nodes with all these labels are its targets. */
  readonly targetsByLabel?: Readonly<Record<string, string>> | undefined;
}

export interface DebugPodOptions {
  /** Its part of netcheck.yaml, read afresh. */
  readonly cluster: (name: string) => PodCluster;
  /** Milliseconds between two tries of a call. Default 1000. */
  readonly pauseMs?: number;
  /** Milliseconds without a byte after which the API server counts as gone. Default 10,000. */
  readonly silenceMs?: number;
  /** Milliseconds since 1970. Ages of pods are told by the server's clock instead. */
  readonly now?: () => number;
}

/** What a deployment that says nothing gets. 120 s: an image of a hundred megabytes over a slow line. */
const DEFAULTS = { namespace: "netcheck", startSeconds: 120 } as const;
/** Seconds that a kubelet gets to stop a pod that has had its time, or to come back. */
const STOP_SECONDS = 30;
/** A log is read so often before its end counts as lost. */
const LOG_READS = 3;
/** Deleting a running pod took up to 18 s on a real cluster; what takes so long (ms) will not end by itself. */
const STUCK_MS = 300_000;
/** Pods per page of a list. */
const PAGE = 100;

interface Way {
  readonly api: KubernetesApi;
  readonly settings: PodSettings;
  readonly pods: string;
  readonly host: string;
}

/**
 * Runs scripts on the nodes of a Kubernetes cluster: one privileged pod per job, in a namespace of its own, with the host's root below /host. A target's
 * address is its node's name; a handle is "<pod>/<uid>". Pods are removed by `release`, by their own deadline, and at last by {@link reapPods}.
 */
export function debugPodTransport({ cluster, pauseMs = 1000, silenceMs, now = Date.now }: DebugPodOptions): Transport {
  const lists = new ClusterNodes(now);
  const ways = new Map<string, { readonly by: string; readonly way: Way }>();
  /** As netcheck.yaml has it now: a process may outlive it. Kept for the tokens that are made on the way; those that are only read are read each time. */
  const wayTo = (name: string): Way => {
    const settings = cluster(name);
    const by = JSON.stringify(settings);
    const known = ways.get(name);
    if (known?.by === by && settings.access.by !== "bearer") return known.way;
    const way = open(settings, pauseMs, silenceMs);
    ways.set(name, { by, way });
    return way;
  };

  async function pod(way: Way, name: string): Promise<{ pod: Pod; serverTime: number } | undefined> {
    try {
      const { body, serverTime } = await way.api.call<Pod>({ method: "GET", path: `${way.pods}/${name}` });
      return { pod: body, serverTime };
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  }

  /** The pod of that name, if it is of that job. Throws TransportError for a stranger. */
  async function ownPod(way: Way, target: Target, jobId: string): Promise<Pod | undefined> {
    const found = (await pod(way, podName(jobId, target.address)))?.pod;
    if (found === undefined || (found.metadata.labels?.[LABEL.manager] === MANAGER && found.metadata.annotations?.[ANNOTATION.job] === jobId)) return found;
    throw new TransportError(`debug-pod: could not use the pod ${found.metadata.name} in ${way.settings.namespace}: it is not of the job ${jobId}`, {
      retryable: false,
    });
  }

  /** Where the node is no place for a pod, why. Without the right to look at nodes it counts as fine: the pod will tell. Throws TransportError. */
  async function nodeTrouble(way: Way, name: string): Promise<{ kind: "missing" | "silent"; words: string } | undefined> {
    const node = await translated(`look at the node ${name}`, way, "read", async () => {
      try {
        return (await way.api.call<{ status?: { conditions?: readonly Condition[] } }>({ method: "GET", path: `/api/v1/nodes/${encodeURIComponent(name)}` }))
          .body;
      } catch (error) {
        if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return error.status;
        throw error;
      }
    });
    if (node === 404) return { kind: "missing", words: `the cluster has no node ${name}` };
    const ready = node === 403 ? undefined : node.status?.conditions?.find(({ type }) => type === "Ready");
    if (ready?.status !== "Unknown") return undefined;
    const since = ready.lastTransitionTime === undefined ? "" : ` since ${ready.lastTransitionTime}`;
    return { kind: "silent", words: `the node ${name} has not answered to the cluster${since}: ${oneLine(ready.message ?? "its kubelet is silent")}` };
  }

  async function create(way: Way, target: Target, job: Job): Promise<Pod> {
    const body = podOf(way.settings, target, job, Date.now());
    for (let tries = 1; ; tries += 1) {
      try {
        return (await way.api.call<Pod>({ method: "POST", path: way.pods, body })).body;
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        const deleting = error.status === 409 && error.message.includes("being deleted");
        const unknown = error.status === 0 ? !NOT_CONNECTED.has(error.reason) : error.status >= 500 && !error.message.includes("failed calling webhook");
        if (deleting || (!unknown && error.status !== 409)) throw error;
        // it may be there: the name says so, whether it came from this try or an earlier one. Nothing starts twice under one name
        const found = await ownPod(way, target, job.id);
        if (found !== undefined) return found;
        if (tries === 3) throw error;
        await delay(pauseMs);
      }
    }
  }

  /** The log of a pod whose program has ended. The end of one was seen to be lost for a slow reader, so what is not whole is read again. */
  async function logOf(way: Way, name: string, nonce: string): Promise<PodLog> {
    let best: PodLog = { kind: "none", said: "" };
    for (let reads = 1; reads <= LOG_READS; reads += 1) {
      if (reads > 1) await delay(pauseMs);
      // twice the cap: the frame, and what a container runtime may add
      const { text } = await way.api.text(`${way.pods}/${name}/log`, { container: CONTAINER }, 2 * LOG_BYTES);
      const log = readPodLog(text, nonce);
      if (log.kind === "whole") return log;
      if (best.kind !== "cut" || (log.kind === "cut" && log.output.stdout.length > best.output.stdout.length)) best = log;
    }
    return best;
  }

  async function result(way: Way, found: Pod, suspect: string | undefined): Promise<JobState> {
    const nonce = found.spec.containers[0]?.env?.find(({ name }) => name === "NETCHECK_nonce")?.value ?? "";
    let log: PodLog;
    try {
      log = await logOf(way, found.metadata.name, nonce);
    } catch (error) {
      // 400: the log is not there and never will be; 404: the pod or its node is gone
      if (!(error instanceof ApiError) || (error.status !== 400 && error.status !== 404)) throw error;
      return { state: "lost", reason: `${suspect ?? "the pod has ended"}; its log is not available: ${oneLine(error.message)}` };
    }
    switch (log.kind) {
      case "beheaded":
        return {
          state: "lost",
          reason: "the node's kubelet threw the beginning of the pod's log away (log rotation): raise containerLogMaxSize to 10Mi or more",
        };
      case "none":
        return { state: "lost", reason: `${suspect ?? "the pod ended without a result"}${log.said === "" ? "" : `; it said: ${oneLine(log.said)}`}` };
      default: {
        const { tools, exitCode, stdout, stderr, truncated } = log.output;
        const cut = truncated || log.kind === "cut";
        return {
          state: "done",
          exitCode,
          stdout,
          stderr,
          truncated: cut,
          ...(tools === "image" ? { note: "image's tools: the node has no shell" } : {}),
        };
      }
    }
  }

  /** What a pod says about its job now. */
  async function look(way: Way, target: Target, found: Pod, serverTime: number): Promise<JobState> {
    const verdict = judge(found);
    if (verdict.kind === "never") return { state: "not-run", reason: verdict.reason };
    if (verdict.kind === "ended") return result(way, found, verdict.suspect);
    const age = (serverTime - Date.parse(found.metadata.creationTimestamp)) / 1000;
    if (verdict.kind === "running") {
      const end = Date.parse(found.status.startTime ?? found.metadata.creationTimestamp) / 1000 + (found.spec.activeDeadlineSeconds ?? 0) + STOP_SECONDS;
      const trouble = age < STOP_SECONDS ? undefined : await nodeTrouble(way, target.address);
      // its phase stays Running for ever when its node is gone
      if (trouble?.kind === "missing" || serverTime / 1000 > end)
        return { state: "lost", reason: trouble?.words ?? `the pod should have ended by itself ${Math.round(serverTime / 1000 - end)} s ago and did not` };
      return { state: "running", detail: trouble?.words ?? "the script is running in the debug pod" };
    }
    const { startSeconds } = way.settings;
    if (age < Math.min(startSeconds, 10)) return { state: "running", detail: verdict.detail };
    const trouble = verdict.acknowledged ? undefined : await nodeTrouble(way, target.address);
    if (trouble?.kind === "missing") return { state: "not-run", reason: trouble.words };
    if (age < startSeconds) return { state: "running", detail: trouble?.words ?? verdict.detail };
    const gaveUp = found.metadata.annotations?.[ANNOTATION.gaveUp];
    if (gaveUp === undefined) {
      const why = trouble?.words ?? whyNotStarted(found, await eventsOf(way, found));
      const reason = `the debug pod did not start within ${startSeconds} s: ${why}`;
      const stopping = await giveUp(way, found, reason);
      return stopping ? { state: "running", detail: "the pod has had its time and is being stopped" } : { state: "lost", reason };
    }
    if (age < startSeconds + STOP_SECONDS) return { state: "running", detail: "the pod has had its time and is being stopped" };
    // nobody confirms that it was stopped: a node that comes back may still find it
    return { state: "lost", reason: gaveUp };
  }

  /**
   * Lets the kubelet end a pod that has not started: its deadline is set to now, so its last status says for sure whether it ever ran, and stays readable.
   * Deleting it would leave us guessing. False without the right to do so.
   */
  async function giveUp(way: Way, found: Pod, reason: string): Promise<boolean> {
    const { name, uid } = found.metadata;
    const body = { metadata: { uid, annotations: { [ANNOTATION.gaveUp]: reason } }, spec: { activeDeadlineSeconds: 1 } };
    try {
      await way.api.call({ method: "PATCH", path: `${way.pods}/${name}`, body });
      return true;
    } catch (error) {
      if (!(error instanceof ApiError) || ![403, 404, 409].includes(error.status)) throw error;
      return error.status !== 403;
    }
  }

  async function eventsOf(way: Way, { metadata }: Pod): Promise<readonly PodEvent[]> {
    try {
      const query = { fieldSelector: `involvedObject.uid=${metadata.uid}`, limit: "50" };
      return (await way.api.call<{ items: readonly PodEvent[] }>({ method: "GET", path: way.pods.replace(/pods$/, "events"), query })).body.items;
    } catch {
      // they only add words
      return [];
    }
  }

  return {
    name: "debug-pod",

    async start(target: Target, job: Job): Promise<string> {
      const what = `start ${job.script.name} on ${target.name}`;
      for (const [name, value] of Object.entries(job.parameters))
        if (!new RegExp(job.script.parameters[name]?.pattern ?? "(?!)").test(value))
          throw new TransportError(`debug-pod: could not ${what}: the value of ${name} is not of its type`, { retryable: false });
      const way = wayTo(target.cluster);
      return translated(what, way, "start", async () => {
        const trouble = await nodeTrouble(way, target.address);
        if (trouble !== undefined) throw new TransportError(`debug-pod: could not ${what}: ${trouble.words}`, { retryable: false });
        const { name, uid } = (await create(way, target, job)).metadata;
        return `${name}/${uid}`;
      });
    },

    async poll(target: Target, handle: string, waitMs: number): Promise<JobState> {
      const way = wayTo(target.cluster);
      const [name = "", uid] = handle.split("/");
      return translated(`look at the pod ${name} of ${target.name}`, way, "read", async () => {
        const until = Date.now() + waitMs;
        for (;;) {
          const found = await pod(way, name);
          if (found === undefined || found.pod.metadata.uid !== uid)
            return { state: "lost", reason: "the pod is gone before its result was read: somebody deleted it, or its node was removed" };
          const state = await look(way, target, found.pod, found.serverTime);
          const left = until - Date.now();
          if (state.state !== "running" || left <= 0) return state;
          const query = { fieldSelector: `metadata.name=${name}`, resourceVersion: found.pod.metadata.resourceVersion };
          // a change that matters ends the watch; whatever else ends it, the pod is looked at again
          const before = mark(found.pod);
          const began = Date.now();
          const ended = await way.api.watch<Pod>(way.pods, query, left, ({ type, object }) => type === "DELETED" || mark(object) !== before);
          if (ended !== "seen" && Date.now() < until) await delay(Math.min(pauseMs - Math.min(pauseMs, Date.now() - began), until - Date.now()));
        }
      });
    },

    async find(target: Target, jobId: string): Promise<string | undefined> {
      const way = wayTo(target.cluster);
      return translated(`look for a pod of ${target.name}`, way, "read", async () => {
        const found = await ownPod(way, target, jobId);
        return found === undefined ? undefined : `${found.metadata.name}/${found.metadata.uid}`;
      });
    },

    // also what stops a collection that nobody waits for: deleting a pod ends its programs
    async release(target: Target, handle: string): Promise<void> {
      const way = wayTo(target.cluster);
      const [name = "", uid = ""] = handle.split("/");
      await translated(`delete the pod ${name} of ${target.name}`, way, "read", () => remove(way, name, uid));
    },

    async discover(name: string, nameTag?: string, labels?: Readonly<Record<string, string>>) {
      // nodes of a cluster have no Name tag
      if (nameTag !== undefined) return [];
      const { targetsByLabel } = cluster(name);
      if (targetsByLabel === undefined) return [];
      const way = wayTo(name);
      return translated(`list the nodes of ${name}`, way, "read", () => lists.of(name, way.api, targetsByLabel, labels));
    },
  };
}

/** What the reaper did. `failed`: pods that could not be deleted, with the reason, for people. `stuck`: deleted over 5 minutes ago and still there: their nodes are gone. */
export interface Reaped {
  readonly found: number;
  readonly deleted: readonly string[];
  readonly stuck: readonly string[];
  readonly failed: readonly { readonly pod: string; readonly reason: string }[];
}

/**
 * Deletes netcheck's pods of a cluster whose expiry is over, whatever became of whoever made them. Throws TransportError if they cannot be listed. A pod
 * of ours without a readable expiry counts as expired.
 */
export async function reapPods(cluster: PodCluster, now: Date, pauseMs = 1000): Promise<Reaped> {
  const way = open(cluster, pauseMs);
  const deleted: string[] = [];
  const stuck: string[] = [];
  const failed: { pod: string; reason: string }[] = [];
  let found = 0;
  let next: string | undefined;
  do {
    const query: Record<string, string> = {
      labelSelector: `${LABEL.manager}=${MANAGER},${LABEL.job}`,
      limit: String(PAGE),
      ...(next === undefined ? {} : { continue: next }),
    };
    const { body } = await translated("list netcheck's pods", way, "read", () =>
      way.api.call<{ metadata: { continue?: string }; items: readonly Pod[] }>({ method: "GET", path: way.pods, query }),
    );
    for (const { metadata } of body.items) {
      found += 1;
      if (metadata.deletionTimestamp !== undefined) {
        if (now.getTime() - Date.parse(metadata.deletionTimestamp) > STUCK_MS) stuck.push(metadata.name);
        continue;
      }
      if (Number(metadata.labels?.[LABEL.expires] ?? 0) * 1000 > now.getTime()) continue;
      try {
        await translated(`delete the pod ${metadata.name}`, way, "read", () => remove(way, metadata.name, metadata.uid));
        deleted.push(metadata.name);
      } catch (error) {
        failed.push({ pod: metadata.name, reason: (error as Error).message });
      }
    }
    next = body.metadata.continue || undefined;
  } while (next !== undefined);
  return { found, deleted, stuck, failed };
}

function open(
  { access, image, namespace = DEFAULTS.namespace, startSeconds = DEFAULTS.startSeconds, pullSecret, priorityClass }: PodCluster,
  pauseMs: number,
  silenceMs?: number,
): Way {
  if (!byDigest(image)) throw new TransportError(`debug-pod: could not use the image ${image}: name it by its digest (name@sha256:…)`, { retryable: false });
  const host =
    "endpoint" in access && URL.canParse(access.endpoint)
      ? new URL(access.endpoint).host
      : access.by === "kubeconfig"
        ? `of ${access.file}`
        : "of this cluster";
  return {
    api: kubernetesApi(accessOf(access), pauseMs, silenceMs),
    settings: { namespace, image, startSeconds, pullSecret, priorityClass },
    pods: `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`,
    host,
  };
}

/** Deletes that very pod; one that is gone, or another of its name, is fine. */
async function remove(way: Way, name: string, uid: string): Promise<void> {
  try {
    await way.api.call({ method: "DELETE", path: `${way.pods}/${name}`, body: { kind: "DeleteOptions", apiVersion: "v1", preconditions: { uid } } });
  } catch (error) {
    if (!(error instanceof ApiError) || (error.status !== 404 && error.status !== 409)) throw error;
  }
}

/** What of a pod decides about its job; other changes wake nobody. */
function mark({ status, metadata }: Pod): string {
  const state = status.containerStatuses?.[0]?.state ?? {};
  return JSON.stringify([status.phase, status.reason, Object.keys(state), metadata.deletionTimestamp !== undefined]);
}

/**
 * Runs something against the API and says errors for people. "start": what surely had no effect is a TransportError, anything else is passed on as
 * unknown. "read": repeating does no harm, so everything but a refusal is retryable.
 */
async function translated<T>(what: string, way: Way, kind: "start" | "read", run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const message = `debug-pod: could not ${what}: ${explain(error, way.host)}`;
    const { status, reason } = error;
    const passing = (status === 0 && !UNTRUSTED.has(reason)) || status === 409 || status === 429;
    if (kind === "read") throw new TransportError(message, { retryable: passing || status >= 500, cause: error });
    const refused = (status >= 400 && status < 500) || error.message.includes("failed calling webhook") || NOT_CONNECTED.has(reason);
    if (refused) throw new TransportError(message, { retryable: passing, cause: error });
    throw new Error(message, { cause: error });
  }
}
