import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, vi } from "vitest";

/** Workload pods as a kubelet and a container runtime make them: their own network namespace, a cgroup named by the pod's uid, a resolv.conf of the runtime's. */

/** Of the machine's cgroups, those in which anybody with root may make more: v2, or one hierarchy of v1. */
const cgroups = existsSync("/sys/fs/cgroup/cgroup.procs") ? "/sys/fs/cgroup" : "/sys/fs/cgroup/pids";

/** Pods can be made here. In CI they must. */
export const makesPods = process.getuid?.() === 0 && existsSync(join(cgroups, "cgroup.procs")) && spawnSync("unshare", ["-nm", "ip", "link"]).status === 0;
if (!makesPods && process.env["CI"] === "true") throw new Error("tests of workload pods need root, cgroups that can be written to, and iproute2");

/** What the runtime calls the sandbox of every pod here: 64 hex digits. */
export const SANDBOX = "5d1f0c7be2a94483b6f1d0a7c9e8b3425d1f0c7be2a94483b6f1d0a7c9e8b342";

/** A cgroup below the machine's own; the names that are made on the way are ours alone and go with it. */
export class Cgroup {
  readonly #made: string[] = [];
  readonly path: string;
  constructor(...names: readonly string[]) {
    let path = cgroups;
    for (const name of names) {
      path = join(path, name);
      if (!existsSync(path)) {
        mkdirSync(path);
        this.#made.unshift(path);
      }
    }
    this.path = path;
  }
  async remove(): Promise<void> {
    await vi.waitFor(() => expect(readFileSync(join(this.path, "cgroup.procs"), "utf8")).toBe(""), { timeout: 5000, interval: 20 });
    for (const path of this.#made) rmdirSync(path);
  }
}

const NETWORK = `set -e
echo $$ >"$1/cgroup.procs"
exec unshare -n -m /bin/sh -c '
set -e
mount --bind "$1" /etc/resolv.conf
ip link set lo up
ip link add eth0 type veth peer name host0
ip link set host0 up
ip link set eth0 mtu 1410 up
ip address add 10.244.1.7/24 dev eth0
ip route add default via 10.244.1.1 dev eth0
ip neighbor replace 10.244.1.1 lladdr 02:00:00:00:00:01 dev eth0 nud permanent
echo made
exec sleep 600' pod "$2"
`;

export interface WorkloadPod {
  /** Of its first process. */
  readonly pid: number;
  /** Holds the folder of its sandbox, as the runtime's own does. */
  readonly directory: string;
  stop(): Promise<void>;
}

/**
 * Starts a pod with the address 10.244.1.7/24 on eth0 and the gateway 10.244.1.1.
 * @param names of its cgroup, from the top, as the kubelet names it
 * @param enter argv that leads into its node; default: this machine
 */
export async function startWorkloadPod(names: readonly string[], enter: readonly string[] = []): Promise<WorkloadPod> {
  const directory = mkdtempSync(join(tmpdir(), "netcheck-pod-"));
  mkdirSync(join(directory, SANDBOX));
  writeFileSync(join(directory, SANDBOX, "resolv.conf"), "search shop.svc.cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n");
  const cgroup = new Cgroup(...names);
  const argv = [...enter, "/bin/sh", "-c", NETWORK, "make", cgroup.path, join(directory, SANDBOX, "resolv.conf")];
  const child: ChildProcess = spawn(argv[0] ?? "", argv.slice(1), { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise<void>((resolve, reject) => {
    child.stdout?.once("data", () => resolve());
    child.once("exit", (code) => reject(new Error(`the pod could not be made (${code})`)));
  });
  const pid = Number(readFileSync(join(cgroup.path, "cgroup.procs"), "utf8").trim().split("\n")[0]);
  return {
    pid,
    directory,
    async stop() {
      process.kill(pid, "SIGKILL");
      await cgroup.remove();
      rmSync(directory, { recursive: true });
    },
  };
}
