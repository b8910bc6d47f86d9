import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Local, startLocal } from "../../functions/local/main.ts";
import { debugPodTransport } from "../../functions/transports/debug-pod.ts";
import { clusterWorkloads } from "../../functions/transports/pod-workloads.ts";
import { namespaceKubelet } from "../emulators/kubelet.ts";
import { type KubernetesEmulator, startKubernetes } from "../emulators/kubernetes.ts";
import { Cgroup } from "../emulators/workload-pod.ts";
import { clusterAt, image } from "../transports/pods.ts";
import { UNHURRIED } from "../unhurried.ts";
import { type Lab, startLab } from "./lab.ts";
import { skipLab } from "./requirements.ts";
import { rested } from "./rested.ts";

/**
 * `/netcheck pod …` and `/netcheck svc …` from the slash command to the thread, on live kernel state: a lab node with a bridge and a service, one of its pods in
 * a cgroup as a kubelet makes it, looked up in a stand-in API server and looked at through a debug pod that really runs.
 */

const CHANNEL = "C_INCIDENTS";
const UID = "3f0c1a52-7d1e-4c5b-9a44-0b1d2f3e4a51";
const suffix = `w${process.pid}`;
/** In s4.sh: the pod that serves, and the service in front of it. */
const POD = "100.96.54.247";
const SERVICE = "100.67.30.133";

let lab: Lab;
let cluster: KubernetesEmulator;
let app: Local;
let directory: string;
let cgroup: Cgroup;
let stop: () => void;

describe.skipIf(skipLab())("a pod and a service of a lab node", () => {
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "netcheck-workload-"));
    lab = await startLab(["s4"], { suffix });
    const node = lab.node("s4");
    cgroup = new Cgroup(`kubepods-${suffix}`, "besteffort", `pod${UID}`, "web");
    const inPod = [
      "nsenter",
      `--net=/run/netns/nc-s4-podb-${suffix}`,
      "/bin/sh",
      "-c",
      'echo $$ >"$1/cgroup.procs"; echo there; exec sleep 600',
      "pod",
      cgroup.path,
    ];
    const child = spawn(inPod[0] ?? "", inPod.slice(1), { stdio: ["ignore", "pipe", "inherit"] });
    stop = () => child.kill("SIGKILL");
    await new Promise((resolve) => child.stdout.once("data", resolve));

    cluster = await startKubernetes({ nodes: { [node.name]: { kubelet: namespaceKubelet({ enter: node.enter }) } } });
    cluster.objects.set("pods/prod/export-1", {
      metadata: { name: "export-1", uid: UID },
      spec: { nodeName: node.name },
      status: { phase: "Running", podIP: POD, containerStatuses: [{ name: "web", ready: true, restartCount: 0, state: { running: {} } }] },
    } as { metadata: { name: string } });
    cluster.objects.set("services/prod/export", {
      metadata: { name: "export" },
      spec: { type: "ClusterIP", clusterIP: SERVICE, ports: [{ port: 80, protocol: "TCP" }] },
    } as { metadata: { name: string } });
    cluster.objects.set("endpointslices/prod/export-1", {
      metadata: { name: "export-1", labels: { "kubernetes.io/service-name": "export" } },
      endpoints: [{ addresses: [POD], conditions: { ready: true }, nodeName: node.name, targetRef: { kind: "Pod", name: "export-1" } }],
      ports: [{ name: "", port: 80, protocol: "TCP" }],
    } as { metadata: { name: string } });
    const config = { clusters: { lab: { transport: "debug-pod", debugPods: { image, access: { by: "in-cluster" } } } } };
    writeFileSync(join(directory, "netcheck.yaml"), JSON.stringify(config));
    app = await startLocal({
      directory: join(directory, "data"),
      config: join(directory, "netcheck.yaml"),
      workspace: UNHURRIED,
      workloads: clusterWorkloads({ clusters: async () => ["lab"], cluster: () => clusterAt(cluster), pauseMs: 50 }),
      transports: { "debug-pod": debugPodTransport({ cluster: () => clusterAt(cluster), pauseMs: 50 }) },
    });
  });
  afterAll(async () => {
    await app.close();
    await cluster.close();
    stop();
    await cgroup.remove();
    await lab.down();
    rmSync(directory, { recursive: true, force: true });
  });

  let asked = 0;
  async function slash(text: string): Promise<string> {
    expect(await app.workspace.command({ user: "U_ALICE", channel: CHANNEL, command: "/netcheck", text })).toEqual({ ok: true });
    asked += 1;
    await rested(app.engine, async () => {
      const incidents = await app.store.incidents(10);
      return incidents.length === asked ? incidents[0] : undefined;
    });
    const [incident] = await app.store.incidents(1);
    expect(incident).toMatchObject({ target: "node4", cluster: "lab" });
    expect([...cluster.pods.keys()], "debug pods that were left behind").toEqual([]);
    return app.workspace.transcript(CHANNEL, incident?.thread?.ts, "U_ALICE");
  }

  test("the pod: its node is triaged, and its own addresses, routes and sockets are in the thread", async () => {
    const thread = await slash("pod prod/export-1");
    expect(thread).toContain("pod prod/export-1 on node4");
    expect(thread).toContain("everything that was checked is in order");
    expect(thread).toContain("Inside the pod prod/export-1");
    expect(thread).toContain(`${POD}/24`);
    expect(thread).toContain("0.0.0.0/0 via 100.96.54.1 dev eth0");
    expect(thread).toContain(`listens    tcp ${POD}:80`);
    expect(thread).not.toContain("was not looked at");
  });

  test("the service: its entry leads to the ready endpoint; when the entry leads elsewhere, the thread shows the line", async () => {
    const fine = await slash("svc prod/export");
    expect(fine).toContain(`${SERVICE}:80/TCP  kube-proxy (iptables)`);
    expect(fine).toMatch(/100\.96\.54\.247:80 +ready +node4 +export-1 +entry found/);
    expect(fine).toMatch(/node4 +100\.96\.54\.247 +dev cni0 +up/);
    expect(fine).not.toContain("does not lead to");

    const chain = "KUBE-SEP-OAQPXBQCZ2RBB4R7";
    const rule = ["-p", "tcp", "-m", "comment", "--comment", "prod/export:", "-m", "tcp", "-j", "DNAT", "--to-destination"];
    const nat = (what: string, to: string) => lab.node("s4").run(["iptables", "-t", "nat", what, chain, ...rule, to]);
    expect((await nat("-D", `${POD}:80`)).code).toBe(0);
    expect((await nat("-A", "100.96.54.99:80")).code).toBe(0);
    const broken = await slash("svc prod/export from node4");
    expect(broken).toContain("sends packets for 100.67.30.133:80/TCP to 100.96.54.99:80, which is no endpoint of the service (any more).");
    expect(broken).toContain("--to-destination 100.96.54.99:80");
    expect(broken).toContain("does not lead to 100.96.54.247:80, which is ready.");
  });
});
