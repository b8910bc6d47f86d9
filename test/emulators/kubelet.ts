import { spawn } from "node:child_process";

/** A container as the kubelet gives it to the runtime: `$$` and `$(NAME)` in its texts are replaced already. */
export interface ContainerRun {
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The host's root below /host cannot be written to. */
  readonly hostReadOnly: boolean;
}

export interface Container {
  /** stdout and stderr in one, as a container's log holds them. */
  readonly ended: Promise<{ exitCode: number; log: Buffer }>;
  /** SIGTERM to its first process, SIGKILL to all of them a moment later. */
  stop(): void;
}

/** What starts containers on a node. */
export type Kubelet = (run: ContainerRun) => Container;

/**
 * Makes what a container runtime makes for a debug pod, with the mounts of pod-spec: an image of busybox, read-only, in memory; /proc, /sys and /dev of the
 * node; the host's root below /host, with all that is mounted there; and one private memory file system as /tmp and /host/tmp. It is built on /mnt, which every
 * machine has, in a mount namespace of its own: nothing is left of it.
 */
const SET_UP = `set -e
image=/mnt host=$1 readonly=$2 tools=$3 shell=$4
shift 4
mount -t tmpfs tmpfs "$image"
for place in usr proc sys dev etc var run tmp host; do mkdir "$image/$place"; done
if [ "$tools" = machine ]; then
  for place in bin sbin lib lib64; do [ ! -e "/$place" ] || cp -P "/$place" "$image/$place"; done
  mount --rbind /usr "$image/usr"
  # Debian's links through /etc/alternatives would lead nowhere: an image for debug pods must work with a foreign /etc
  mount -t tmpfs tmpfs "$image/usr/local"
  mkdir "$image/usr/local/sbin"
  for tool in /etc/alternatives/*; do [ ! -x "$tool" ] || ln -s "$(readlink -f "$tool")" "$image/usr/local/sbin/\${tool##*/}"; done
else
  mkdir "$image/bin" "$image/sbin" "$image/usr/bin" "$image/usr/sbin"
  cp "$(command -v busybox)" "$image/bin/busybox"
  chroot "$image" /bin/busybox --install -s /bin
fi
echo image >"$image/etc/image"
for place in proc sys dev; do mount --rbind "/$place" "$image/$place"; done
mount --rbind "$host" "$image/host"
if [ "$host" != / ] && [ -d "$host/proc" ]; then mount --rbind /proc "$image/host/proc"; fi
if [ "$host" != / ] && [ -d "$host/dev" ]; then mount --rbind /dev "$image/host/dev"; fi
if [ "$shell" = no ]; then mount -t tmpfs tmpfs "$image/host/usr/bin"; fi
if [ "$readonly" = yes ]; then mount -o remount,bind,ro "$image/host"; fi
mount -t tmpfs tmpfs "$image/tmp"
mount --bind "$image/tmp" "$image/host/tmp"
mount -o remount,ro "$image"
exec chroot "$image" "$@"
`;

/** A node as its containers see it. */
export interface NodeRoot {
  /** The root of the "node"; it must hold /tmp. Default /. */
  readonly hostRoot?: string;
  /** Argv that leads into the node (a lab node's `enter`). Default: this machine. */
  readonly enter?: readonly string[];
  /** What the image holds: busybox alone, or all tools of this machine (for nodes that have none). Default busybox. */
  readonly tools?: "busybox" | "machine";
  /** False: the node's programs are hidden from its containers, as on a node that has no shell. Default true. */
  readonly shell?: boolean;
}

/** Runs the real command of a container as a child process in a mount namespace of its own. Needs root, or user namespaces, and busybox. */
export function namespaceKubelet({ hostRoot = "/", enter = [], tools = "busybox", shell = true }: NodeRoot = {}): Kubelet {
  return ({ command, args, env, hostReadOnly }) => {
    const unshare = process.getuid?.() === 0 ? ["unshare", "-m"] : ["unshare", "-Urm"];
    const argv = [
      ...enter,
      ...unshare,
      "/bin/sh",
      "-c",
      SET_UP,
      "set-up",
      hostRoot,
      hostReadOnly ? "yes" : "no",
      tools,
      shell ? "yes" : "no",
      ...command,
      ...args,
    ];
    const child = spawn(argv[0] ?? "", argv.slice(1), {
      env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOSTNAME: "node", ...env },
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const chunks: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
    const ended = new Promise<{ exitCode: number; log: Buffer }>((resolve) => {
      child.once("error", (error) => resolve({ exitCode: 128, log: Buffer.from(String(error)) }));
      child.once("close", (code, signal) => {
        resolve({ exitCode: code ?? (signal === "SIGTERM" ? 143 : 137), log: Buffer.concat(chunks) });
      });
    });
    const stop = (): void => {
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
      // the whole process group: what a runtime does through the container's cgroup
      process.kill(-child.pid, "SIGTERM");
      const { pid } = child;
      setTimeout(() => {
        try {
          process.kill(-pid, "SIGKILL");
        } catch {
          // gone by itself
        }
      }, 200).unref();
    };
    return { ended, stop };
  };
}
