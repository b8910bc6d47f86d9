import { readFileSync } from "node:fs";

/** Shapes of the API that the stand-in server keeps, and what it has from recordings of a real one (Kubernetes 1.21, see ../shared/kubernetes). */

export interface StoredPod {
  kind: "Pod";
  apiVersion: "v1";
  metadata: {
    name: string;
    namespace: string;
    uid: string;
    resourceVersion: string;
    creationTimestamp: string;
    deletionTimestamp?: string;
    deletionGracePeriodSeconds?: number;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  spec: {
    nodeName?: string;
    activeDeadlineSeconds?: number;
    terminationGracePeriodSeconds?: number;
    containers: {
      name: string;
      image: string;
      command?: string[];
      args?: string[];
      env?: { name: string; value?: string }[];
      volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[];
    }[];
  };
  status: PodStatus;
}
export interface PodStatus {
  phase: string;
  reason?: string;
  message?: string;
  startTime?: string;
  conditions?: { type: string; status: string; reason?: string; message?: string }[];
  containerStatuses?: { name: string; state: Record<string, unknown> }[];
}

interface RecordedAnswer {
  status: number;
  type: string;
  text: string;
  retryAfter?: string;
}
interface RecordedPhase {
  status: PodStatus;
  events: { type: string; reason: string; message: string; count?: number }[];
  /** What GET log said in that phase, where that was an error; text "" with 200 or 204. */
  log?: { status: number; text: string };
}

const read = <T>(name: string): Record<string, T> => JSON.parse(readFileSync(new URL(`kubernetes/${name}.json`, import.meta.url), "utf8")) as Record<string, T>;
const answers = read<RecordedAnswer>("answers");
const phases = read<RecordedPhase>("phases");

/** An answer that a real API server gave, by the name of its recording. */
export function recordedAnswer(name: string): RecordedAnswer {
  const found = answers[name];
  if (found === undefined) throw new Error(`no recording ${name} in kubernetes/answers.json`);
  return found;
}

/** The status of a pod as a real kubelet left it, its events, and what its log said. */
export function recordedPhase(name: string): RecordedPhase {
  const found = phases[name];
  if (found === undefined) throw new Error(`no recording ${name} in kubernetes/phases.json`);
  return structuredClone(found);
}

/**
 * What Kubernetes makes of a text in command, args or env: `$$` becomes `$`, `$(NAME)` the value of a variable that the container has; everything else stays.
 */
export function expand(text: string, env: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\$|\$\(([^)]*)\)/g, (whole, name: string | undefined) =>
    whole === "$$" ? "$" : ((name === undefined ? undefined : env[name]) ?? whole),
  );
}
