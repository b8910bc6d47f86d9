import { spawn, spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { readFacts } from "../../functions/facts/read.ts";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { scripts } from "../../functions/transports/script.ts";
import { whyUnreadable } from "../../functions/triage/node-trouble.ts";
import { collectionPlan } from "../../functions/triage/plan.ts";
import { findingsOf } from "../../functions/triage/pod.ts";
import type { Capture, PodPlace } from "../../functions/triage/ports.ts";
import { namespaceKubelet } from "../emulators/kubelet.ts";
import { type KubernetesEmulator, startKubernetes } from "../emulators/kubernetes.ts";
import { Cgroup, makesPods, SANDBOX, startWorkloadPod, type WorkloadPod } from "../emulators/workload-pod.ts";
import { create, finalState, target } from "./pods.ts";

/**
 * The script for a pod's network, run against a "pod" that is made as a kubelet and a container runtime make it: a process in a network namespace of its own,
 * in a cgroup that is named by the pod's uid, with a resolv.conf that is mounted from the runtime's folder.
 */

const root = join(import.meta.dirname, "../..");
const catalogue = loadCatalogue(join(root, "runbooks"));
const plan = collectionPlan(catalogue, "pod");
const script = scripts.collect(plan);
const nonce = "0123456789abcdef0123456789abcdef";
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let directory: string;
const pods: WorkloadPod[] = [];
const CGROUPFS = "3f0c1a52-7d1e-4c5b-9a44-0b1d2f3e4a51";
const SYSTEMD = "8a6f2d10-52c7-4f0e-8c1b-6c2e9d7b1f02";
const HOST = "77777777-52c7-4f0e-8c1b-6c2e9d7b1f02";
const NOWHERE = "00000000-52c7-4f0e-8c1b-6c2e9d7b1f02";

/** Runs it as on a node whose container runtime keeps the sandbox where containerd does. */
function run(uid: string, shell: readonly string[] = ["/bin/sh"]) {
  const place = "/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes";
  const setUp = `mount -t tmpfs tmpfs /var/lib && mkdir -p "${place}" && cp -r "${join(directory, SANDBOX)}" "${place}/" && exec "$@"`;
  return spawnSync("unshare", ["-m", "/bin/sh", "-c", setUp, "node", ...shell], {
    input: script.text,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    env: { PATH: process.env["PATH"], TMPDIR: directory, NETCHECK_nonce: nonce, NETCHECK_job: "job-1", NETCHECK_uid: uid },
  });
}

describe.skipIf(!makesPods)("a pod's network", () => {
  beforeAll(async () => {
    pods.push(await startWorkloadPod([`kubepods-t${process.pid}`, "burstable", `pod${CGROUPFS}`, SANDBOX]));
    const slices = [`kubepods-t${process.pid}.slice`, `kubepods-t${process.pid}-pod${SYSTEMD.replaceAll("-", "_")}.slice`];
    pods.push(await startWorkloadPod([...slices, `cri-containerd-${SANDBOX}.scope`]));
    directory = pods[0]?.directory ?? "";
  });
  afterAll(async () => {
    for (const pod of pods) await pod.stop();
  });

  const about = { nonce, plan, target: "pod shop/web-1", transport: "test", startedAt: "2026-01-01T00:00:00.000Z", truncated: false };
  const capture = (stdout: string) => scripts.readCapture(stdout, about);

  test.each([
    ["cgroupfs", CGROUPFS, ["/bin/sh"]],
    ["systemd", SYSTEMD, ["/bin/sh"]],
    ["cgroupfs, busybox", CGROUPFS, ["busybox", "sh"]],
  ])("%s: addresses, routes, MTU, gateway and resolv.conf are the pod's, not the node's", (_, uid, shell) => {
    const ran = run(uid, shell);
    expect(ran.stderr).toBe("");
    const seen = capture(ran.stdout);
    expect(seen.runbook).toBe("pod");
    const { readings } = readFacts(seen);
    const rows = (fact: string) => (readings.get(fact)?.value as { rows: Record<string, unknown>[] } | undefined)?.rows ?? [];
    expect(rows("address").filter(({ family }) => family === "ipv4")).toMatchObject([{ interface: "lo" }, { interface: "eth0", address: "10.244.1.7" }]);
    expect(rows("link").map((row) => row["interface"])).toEqual(expect.arrayContaining(["lo", "eth0", "host0"]));
    expect(rows("link").find((row) => row["interface"] === "eth0")).toMatchObject({ mtu: 1410 });
    expect(rows("route").find(({ prefix }) => prefix === "0.0.0.0/0")).toMatchObject({ gateway: "10.244.1.1", interface: "eth0" });
    expect(rows("neighbor")).toMatchObject([{ address: "10.244.1.1", mac: "02:00:00:00:00:01" }]);
    expect(readings.get("resolv-conf")).toMatchObject({ status: "read", value: { nameservers: [{ address: "10.96.0.10" }] } });
    // a listing that sees the node's sockets would show what the tests themselves listen on
    expect(rows("socket").filter(({ state }) => state === "LISTEN")).toEqual([]);
    // only what holds for any network judges it
    const diagnosis = diagnose(seen, catalogue, "pod", () => 0);
    expect(diagnosis.unchecked).toEqual([]);
    expect(diagnosis).toMatchObject({ verdict: "healthy", target: "pod shop/web-1", stats: { rules: 4 } });
  });

  describe("what the thread says of it", () => {
    const place: PodPlace = {
      kind: "pod",
      cluster: "prod",
      node: "node-a",
      uid: CGROUPFS,
      hostNetwork: false,
      phase: "Running",
      addresses: ["10.244.1.7"],
      containers: [{ name: "web", ready: false, restarts: 4, state: "CrashLoopBackOff" }],
    };
    const told = (seen: Capture, changed: Partial<PodPlace> = {}) =>
      findingsOf(
        seen,
        diagnose(seen, catalogue, "pod", () => 0),
        { ...place, ...changed },
      );
    const inside = (...argv: string[]): void => {
      expect(spawnSync("nsenter", [`--net=/proc/${String(pods[0]?.pid)}/ns/net`, ...argv]).status).toBe(0);
    };

    test("of a pod that is as it should be", () => {
      const { table, wrong, unchecked } = told(capture(run(CGROUPFS).stdout));
      expect(wrong).toEqual([]);
      expect(unchecked).toEqual([]);
      expect(table).toEqual(
        expect.arrayContaining([
          "container  web  CrashLoopBackOff, not ready, 4 restarts",
          "interface  eth0@host0  10.244.1.7/24  mtu 1410  up",
          "route      0.0.0.0/0 via 10.244.1.1 dev eth0",
          "gateway    10.244.1.1  PERMANENT  02:00:00:00:00:01",
          "dns        10.96.0.10",
          "search     shop.svc.cluster.local",
          "options    ndots:5",
          "listens    on nothing",
        ]),
      );
    });

    test("of one without a default route, with another address, and with the other end of its interface gone down", () => {
      inside("ip", "link", "set", "host0", "down");
      inside("ip", "route", "replace", "192.0.2.0/24", "dev", "eth0");
      inside("ip", "route", "del", "default");
      const { wrong } = told(capture(run(CGROUPFS).stdout), { addresses: ["10.244.1.99"] });
      inside("ip", "link", "set", "host0", "up");
      inside("ip", "route", "replace", "default", "via", "10.244.1.1", "dev", "eth0");
      expect(wrong.map(({ what }) => what)).toEqual(
        expect.arrayContaining([
          "eth0 in the pod has no carrier: its other end on the node is down or gone.",
          "The cluster says that the pod has 10.244.1.99, and no interface in it has that address.",
          "The pod has no default route: it reaches nothing outside of its own subnet.",
        ]),
      );
      for (const { what, evidence } of wrong) expect(evidence, what).not.toEqual([]);
    });
  });

  test("nothing is left behind, on the node or in the pod", () => {
    const before = readdirSync(directory);
    run(CGROUPFS);
    expect(readdirSync(directory)).toEqual(before);
  });

  test("a pod that does not run there, one in the node's own network, a uid that is none: each is a sentence", async () => {
    const why = (uid: string) => {
      const { stdout, stderr, status } = run(uid);
      expect(stdout).toBe("");
      return whyUnreadable("no frame", { exitCode: status ?? -1, stderr });
    };
    expect(why(NOWHERE)).toContain("no process of the pod runs on this node");
    expect(why("../../1")).toContain("that is not the uid of a pod");
    const cgroup = new Cgroup(`kubepods-t${process.pid}h`, `pod${HOST}`);
    const child = spawn("/bin/sh", ["-c", 'echo $$ >"$1/cgroup.procs"; echo there; exec sleep 600', "pod", cgroup.path], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await new Promise((resolve) => child.stdout.once("data", resolve));
    expect(why(HOST)).toContain("the pod has no network of its own here");
    child.kill("SIGKILL");
    await cgroup.remove();
  });

  test("a process that another pod put into a cgroup of this name below its own is not the pod's", async () => {
    const cgroup = new Cgroup(`kubepods-t${process.pid}n`, `pod${SYSTEMD}`, `pod${NOWHERE}`);
    const argv = ["unshare", "-n", "/bin/sh", "-c", 'echo $$ >"$1/cgroup.procs"; echo there; exec sleep 600', "pod", cgroup.path];
    const child = spawn(argv[0] ?? "", argv.slice(1), { stdio: ["ignore", "pipe", "inherit"] });
    await new Promise((resolve) => child.stdout.once("data", resolve));
    const { stdout, stderr } = run(NOWHERE);
    child.kill("SIGKILL");
    await cgroup.remove();
    expect(stdout).toBe("");
    expect(stderr).toContain("no process of the pod runs on this node");
  });

  describe("through a debug pod", () => {
    let cluster: KubernetesEmulator;
    beforeAll(async () => {
      cluster = await startKubernetes({ nodes: { [target.address]: { kubelet: namespaceKubelet() } } });
    });
    afterAll(() => cluster.close());

    test("the uid reaches the script as a variable, and what comes back is the pod's", async () => {
      const transport = create(cluster);
      const handle = await transport.start(target, { id: "job-pod", script, parameters: { uid: SYSTEMD }, nonce });
      const state = await finalState(transport, handle, 2000);
      expect(state).toMatchObject({ state: "done", exitCode: 0 });
      const seen = capture(state.state === "done" ? state.stdout : "");
      const { value } = readFacts(seen).readings.get("address") as { value: { rows: { interface: string; address: string }[] } };
      expect(value.rows.filter((row) => row.interface === "eth0").map(({ address }) => address)).toContain("10.244.1.7");
      await transport.release?.(target, handle);
      await cluster.settled();
      expect(cluster.pods.size).toBe(0);
    });

    test("a uid that is none never reaches the cluster", async () => {
      const before = cluster.requests.length;
      await expect(create(cluster).start(target, { id: "job-bad", script, parameters: { uid: "$(reboot)" }, nonce })).rejects.toThrow(
        "the value of uid is not of its type",
      );
      expect(cluster.requests).toHaveLength(before);
    });
  });
});
