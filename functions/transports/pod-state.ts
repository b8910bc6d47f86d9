import { ANNOTATION, CONTAINER } from "./pod-spec.ts";

/** What is read of a pod's JSON. The client library's types have dates where the wire has text. */
export interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly creationTimestamp: string;
    readonly deletionTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly nodeName?: string;
    readonly activeDeadlineSeconds?: number;
    readonly containers: readonly { readonly env?: readonly { readonly name: string; readonly value?: string }[] }[];
  };
  readonly status: {
    readonly phase?: string;
    readonly reason?: string;
    readonly message?: string;
    readonly startTime?: string;
    readonly conditions?: readonly Condition[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}
export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
}
interface ContainerStatus {
  readonly name: string;
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly running?: { readonly startedAt?: string };
    readonly terminated?: { readonly exitCode: number; readonly reason?: string; readonly message?: string };
  };
}
export interface PodEvent {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
}

/** What a pod's status means for its job. */
export type Verdict =
  /** Not started. `acknowledged`: the node's kubelet has it. */
  | { readonly kind: "waiting"; readonly detail: string; readonly acknowledged: boolean }
  | { readonly kind: "running" }
  /** Its program has ended: the log tells the rest. `suspect`: why the log may hold nothing. */
  | { readonly kind: "ended"; readonly suspect: string | undefined }
  /** Surely no program of it ever ran. */
  | { readonly kind: "never"; readonly reason: string };

/** Reasons for which a container that "terminated" never began. */
const NOT_BEGUN = new Set(["StartError", "ContainerCannotRun", "CreateContainerError", "RunContainerError"]);

/** Judges a pod by its status alone: short pods never show Running, a deleted one says Failed before it is gone, and most failures leave the phase at Pending. */
export function judge(pod: Pod): Verdict {
  const { phase = "Pending", reason = "", message = "" } = pod.status;
  const state = pod.status.containerStatuses?.find(({ name }) => name === CONTAINER)?.state ?? {};
  const over = phase === "Failed" || phase === "Succeeded";
  const deleted = pod.metadata.deletionTimestamp === undefined ? undefined : "somebody deleted the pod while it ran";
  const ended = state.terminated;
  if (ended !== undefined && NOT_BEGUN.has(ended.reason ?? ""))
    return { kind: "never", reason: `its container could not be started: ${oneLine(ended.message ?? "")}` };
  if (ended !== undefined) return { kind: "ended", suspect: endOf(reason, message, ended, pod) ?? deleted };
  if (state.running !== undefined) return over ? { kind: "ended", suspect: endOf(reason, message, undefined, pod) ?? deleted } : { kind: "running" };
  if (phase === "Succeeded" || phase === "Running") return phase === "Running" ? { kind: "running" } : { kind: "ended", suspect: undefined };
  if (!over) return { kind: "waiting", detail: waitingFor(pod), acknowledged: pod.status.startTime !== undefined };
  const gaveUp = pod.metadata.annotations?.[ANNOTATION.gaveUp];
  if (gaveUp !== undefined) return { kind: "never", reason: gaveUp };
  if (reason === "DeadlineExceeded" && state.waiting !== undefined) return { kind: "never", reason: `its time was over before it started: ${waitingFor(pod)}` };
  // an evicted pod has lost the status of its container: it may have run
  if (reason === "Evicted" || reason === "DeadlineExceeded" || reason === "")
    return { kind: "ended", suspect: endOf(reason, message, undefined, pod) ?? deleted ?? "the pod failed, and its node did not say why" };
  return { kind: "never", reason: `the node refused the pod: ${refusal(reason, message)}` };
}

/** Why a program ended that was not left to end by itself. */
function endOf(reason: string, message: string, ended: { exitCode: number; reason?: string } | undefined, pod: Pod): string | undefined {
  if (ended?.reason === "OOMKilled") return "its program was killed because it used more memory than the pod may (512 MiB)";
  if (reason === "DeadlineExceeded") return `the pod was stopped after ${pod.spec.activeDeadlineSeconds ?? "?"} s, its limit`;
  if (reason === "Evicted") return `the node evicted the pod: ${oneLine(message)}`;
  return ended === undefined || ended.exitCode === 0 ? undefined : `its program ended with exit code ${ended.exitCode} (${ended.reason ?? "no reason given"})`;
}

function refusal(reason: string, message: string): string {
  const said = `${oneLine(message)} (${reason})`;
  if (reason.startsWith("OutOf")) return `${said}. The node is full: free something on it, or give the pod a priority class`;
  if (reason === "NodeAffinity" || reason === "NodeName" || reason === "TaintToleration")
    return `${said}. Look at what admission adds to pods of this namespace`;
  return said;
}

/** What a pod that has not started is waiting for, for people. */
function waitingFor(pod: Pod): string {
  const { waiting } = pod.status.containerStatuses?.find(({ name }) => name === CONTAINER)?.state ?? {};
  const scheduled = pod.status.conditions?.find(({ type }) => type === "PodScheduled");
  if (scheduled?.status === "False") return `the scheduler found no place for it: ${oneLine(scheduled.message ?? "")}`;
  if (pod.status.startTime === undefined) return "the node has not taken the pod yet";
  switch (waiting?.reason) {
    case "ErrImagePull":
    case "ImagePullBackOff":
      return `its image cannot be pulled: ${oneLine(waiting.message ?? "")}`;
    case "InvalidImageName":
    case "ErrImageNeverPull":
      return `its image cannot be used: ${oneLine(waiting.message ?? "")}`;
    case undefined:
    case "ContainerCreating":
    case "PodInitializing":
      return "the node is preparing the container";
    default:
      return `the container cannot be made: ${waiting?.reason}${waiting?.message === undefined ? "" : `: ${oneLine(waiting.message)}`}`;
  }
}

/**
 * Why a pod did not start, for people, with what to do. The registry's own words are in ErrImagePull and in the events; ImagePullBackOff, which takes turns
 * with it, has none.
 */
export function whyNotStarted(pod: Pod, events: readonly PodEvent[]): string {
  const last = (...reasons: string[]) => events.findLast(({ type, reason }) => type === "Warning" && reasons.includes(reason ?? ""))?.message;
  const pull = events.findLast(({ reason, message = "" }) => reason === "Failed" && message.startsWith("Failed to pull image"))?.message;
  const state = pod.status.containerStatuses?.find(({ name }) => name === CONTAINER)?.state?.waiting?.reason ?? "";
  if (state === "ErrImagePull" || state === "ImagePullBackOff")
    return `${pull === undefined ? waitingFor(pod) : `its image cannot be pulled: ${oneLine(pull)}`}. ${pullAdvice(pull ?? waitingFor(pod))}`;
  const mount = last("FailedMount", "FailedAttachVolume");
  if (mount !== undefined) return `a volume of it cannot be mounted: ${oneLine(mount)}`;
  const sandbox = last("FailedCreatePodSandBox");
  if (sandbox !== undefined) return `the node could not make its sandbox: ${oneLine(sandbox)}`;
  const cause = last("Failed", "InspectFailed");
  if (state !== "" && state !== "ContainerCreating")
    return cause === undefined || waitingFor(pod).length > 60 ? waitingFor(pod) : `${waitingFor(pod)}: ${oneLine(cause)}`;
  if (events.some(({ reason }) => reason === "Pulling") && !events.some(({ reason }) => reason === "Pulled"))
    return "its image was still being pulled. Pull it to the nodes beforehand, or allow more time (startSeconds)";
  return waitingFor(pod);
}

function pullAdvice(message: string): string {
  if (/not found|manifest unknown|404/i.test(message)) return "Check the image and its digest in netcheck.yaml";
  if (/401|403|unauthorized|denied|forbidden/i.test(message)) return "Give the node, or the namespace (pullSecret), the right to pull it";
  if (/429|too many requests/i.test(message)) return "The registry limits how much is pulled: use a mirror of your own";
  if (/no such host|dial tcp|timeout|timed out|connection refused|failed to do request/i.test(message))
    return "The node cannot reach the registry, which may be the fault that you are looking for: use a transport that needs no image (fallback)";
  return "Look at the registry";
}

/** A message of others on one line, at most 300 characters. What matters often stands at its end, so the middle goes. */
export function oneLine(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, " ");
  return line.length > 300 ? `${line.slice(0, 149)}…${line.slice(-150)}` : line;
}
