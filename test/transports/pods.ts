import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { debugPodTransport, type PodCluster } from "../../functions/transports/debug-pod.ts";
import type { Job, JobState, Target, Transport } from "../../functions/triage/ports.ts";
import { type Kubelet, namespaceKubelet } from "../emulators/kubelet.ts";
import { type EmulatedNode, type KubernetesEmulator, startKubernetes } from "../emulators/kubernetes.ts";
import { job, script } from "./contract.ts";

/** What the tests of the debug-pod transport share. */

export const image = `images.example/netcheck-debug@sha256:${"0123456789abcdef".repeat(4)}`;
export const target: Target = { name: "node1", cluster: "prod", transport: "debug-pod", address: "ip-10-0-0-7.internal" };
export const quick: Job = job("job-1", script("quick", "echo done"));

/** Containers can really run here: mounts in a namespace of our own, and busybox for the image. In CI they must. */
export const runsContainers = spawnSync("unshare", [process.getuid?.() === 0 ? "-m" : "-Urm", "busybox", "true"]).status === 0;
if (!runsContainers && process.env["CI"] === "true") throw new Error("the debug-pod tests need root (or user namespaces) and busybox: pods really run");

export const clusterAt = (emulator: KubernetesEmulator, more: Partial<PodCluster> = {}): PodCluster => ({
  access: { by: "bearer", endpoint: emulator.url, token: async () => "token" },
  image,
  ...more,
});

export const create = (emulator: KubernetesEmulator, more: Partial<PodCluster> = {}): Transport =>
  debugPodTransport({ cluster: () => clusterAt(emulator, more), pauseMs: 5 });

/** A cluster with one node; without a word its containers really run. */
export const startCluster = (node: EmulatedNode = { kubelet: namespaceKubelet() }): Promise<KubernetesEmulator> =>
  startKubernetes({ nodes: { [target.address]: node } });

/** A kubelet whose containers print a text at once and end. */
export const printing =
  (text: string, exitCode = 0): Kubelet =>
  () => ({ ended: Promise.resolve({ exitCode, log: Buffer.from(text) }), stop: () => undefined });

/** What the program of a debug pod prints for such an output. `raw`: without compression, so that a cut leaves something. */
export function frame(stdout: string, { nonce = quick.nonce, raw = false, exitCode = 0 }: { nonce?: string; raw?: boolean; exitCode?: number } = {}): string {
  const out = gzipSync(stdout, raw ? { level: 0 } : {}).toString("base64");
  const errors = gzipSync("").toString("base64");
  const sum = createHash("sha256").update(out).update(errors).digest("hex");
  return `\nNETCHECK-POD/1 ${nonce} begin host ${exitCode} ${out.length} ${out.length} ${errors.length} ${sum}\n${out}\n${errors}\nNETCHECK-POD/1 ${nonce} end\n`;
}

/** A kubelet whose containers go on until they are stopped; `finish` lets them print something and end. */
export function holding(): { kubelet: Kubelet; finish: (text: string) => void } {
  const waiting: ((end: { exitCode: number; log: Buffer }) => void)[] = [];
  return {
    kubelet: () => {
      let stop = (): void => undefined;
      const ended = new Promise<{ exitCode: number; log: Buffer }>((resolve) => {
        waiting.push(resolve);
        stop = () => resolve({ exitCode: 143, log: Buffer.alloc(0) });
      });
      return { ended, stop: () => stop() };
    },
    finish: (text) => {
      for (const resolve of waiting.splice(0)) resolve({ exitCode: 0, log: Buffer.from(text) });
    },
  };
}

/** Polls until the job is over, for so many looks at most. */
export async function finalState(transport: Transport, handle: string, waitMs = 200, looks = 50): Promise<JobState> {
  for (let look = 1; ; look += 1) {
    const state = await transport.poll(target, handle, waitMs);
    if (state.state !== "running" || look === looks) return state;
  }
}
