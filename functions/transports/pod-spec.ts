import { createHash } from "node:crypto";
import type { V1Pod } from "@kubernetes/client-node";
import type { Job, Script, Target } from "../triage/ports.ts";

/** The debug pod as it is sent to the API server. infra/k8s pins what is constant here: the program, the image, the scripts, the host's root. */

/** What is set per cluster. */
export interface PodSettings {
  readonly namespace: string;
  /** By digest: `name@sha256:…`. It holds sh, chroot, timeout, mount, gzip, base64, sha256sum, head, wc, tr; and, for nodes without a shell, the network tools. */
  readonly image: string;
  readonly pullSecret?: string | undefined;
  readonly priorityClass?: string | undefined;
  /** Seconds that a pod may need until its script runs: an image of a hundred megabytes on a slow node. */
  readonly startSeconds: number;
}

/** Where netcheck marks its pods. A label can be searched for and holds 63 characters; the annotation holds the whole job id. */
export const LABEL = {
  manager: "app.kubernetes.io/managed-by",
  job: "netcheck/job",
  /** Seconds since 1970 after which the reaper deletes the pod, whatever became of us. */
  expires: "netcheck/expires",
} as const;
export const MANAGER = "netcheck";
export const ANNOTATION = { job: "netcheck/job-id", target: "netcheck/target", script: "netcheck/script", gaveUp: "netcheck/gave-up" } as const;
export const CONTAINER = "debug";

/** Bytes of encoded output that a pod prints at most: kubelets rotate a log at 10 MiB, and then its beginning is lost without a sign. */
export const LOG_BYTES = 6 * 1024 * 1024;
/** The kernel takes no argument of 128 KiB or more. */
const ARGUMENT_BYTES = 128 * 1024 - 1;
/** Seconds between the end of a script's time and the end of its pod's: to print, and to be read. */
const SPARE_SECONDS = 30;
/** Seconds that a pod is kept when nobody fetches its result: longer than any workflow waits for it. */
const KEPT_SECONDS = 900;

/**
 * The program of the container: runs the script (its first argument) for at most so many seconds (its second) and prints one frame:
 *
 *     NETCHECK-POD/1 <nonce> begin <host|image> <exit code> <bytes of encoded stdout> <bytes printed of it> <bytes of encoded stderr> <sha256 of what follows>
 *     <stdout, gzip, base64>
 *     <stderr, gzip, base64>
 *     NETCHECK-POD/1 <nonce> end
 *
 * The log holds stdout and stderr in one, so they are kept apart here, and printed only at the end: the log of a pod that was stopped holds nothing, not half.
 * /tmp is memory of this pod alone, mounted in the image and over the node's own: nothing is ever left on the node.
 *
 * A node without a shell (Talos, Bottlerocket) is looked at with the image's tools. Its own files must stand where the scripts look for them, so its /etc,
 * /var and /run are mounted over the image's, in this container only; without that the image's files would pass for the node's, so then nothing runs. The
 * image's tools must therefore work with a foreign /etc.
 */
export const PROGRAM = `PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
umask 077
nonce=\${NETCHECK_nonce:?}
cd /tmp || exit 70
tools=host
unfit=
if ! chroot /host /bin/sh -c : </dev/null >/dev/null 2>&1; then
  tools=image
  for place in etc var run; do
    mount -o rbind "/host/$place" "/$place" 2>.netcheck.err || unfit="$unfit /$place"
  done
fi
if [ -n "$unfit" ]; then
  echo "netcheck: this node has no /bin/sh, and its$unfit could not be mounted in the debug pod" >>.netcheck.err
  : >.netcheck.out
  code=69
elif [ "$tools" = host ]; then
  printf '%s\\n' "$1" | timeout -k 5 "$2" chroot /host /bin/sh -s >.netcheck.out 2>.netcheck.err
  code=$?
else
  printf '%s\\n' "$1" | timeout -k 5 "$2" /bin/sh -s >.netcheck.out 2>.netcheck.err
  code=$?
fi
encode() { gzip -c | base64 | tr -d '\\n'; }
size() { bytes=$(wc -c <"$1"); bytes=$((bytes)); }
encode <.netcheck.out >.netcheck.all
size .netcheck.all
all=$bytes
head -c ${LOG_BYTES} .netcheck.all >.netcheck.stdout
size .netcheck.stdout
out=$bytes
head -c 65536 .netcheck.err | encode >.netcheck.stderr
size .netcheck.stderr
sum=$(cat .netcheck.stdout .netcheck.stderr | sha256sum)
printf '\\nNETCHECK-POD/1 %s begin %s %s %s %s %s %s\\n' "$nonce" "$tools" "$code" "$all" "$out" "$bytes" "\${sum%% *}"
cat .netcheck.stdout
echo
cat .netcheck.stderr
printf '\\nNETCHECK-POD/1 %s end\\n' "$nonce"
`;

/**
 * A text as it must stand in `command`, `args` or `env`, so that it arrives as it is: Kubernetes makes `$$` to `$` and replaces `$(NAME)`. Only the doubling is
 * needed; compressing would make the same script differ between processors (zlib's output is not fixed), and an admission policy could not pin it.
 */
export const literal = (text: string): string => text.replaceAll("$", "$$$$");

/** What a pod of this script has as `command` and `args`: the same for every run, so that an admission policy can pin it. Throws if the script is too long. */
export function podProgram(script: Script): { command: string[]; args: string[] } {
  const bytes = Buffer.byteLength(script.text);
  if (bytes > ARGUMENT_BYTES) throw new Error(`the script ${script.name} has ${bytes} bytes; a debug pod takes ${ARGUMENT_BYTES}`);
  return { command: ["/bin/sh", "-c", literal(PROGRAM), "netcheck"], args: [literal(script.text), String(script.timeoutSeconds)] };
}

/** The one name that a job on a target can have: 41 characters, DNS-safe. The same job is the same pod, so it cannot be started twice. */
export function podName(jobId: string, address: string): string {
  return `netcheck-${createHash("sha256").update(`${jobId}\n${address}`).digest("hex").slice(0, 32)}`;
}

/** @param now ms since 1970; the pod expires so long after it that nobody can still want it */
export function podOf(settings: PodSettings, target: Target, job: Job, now: number): V1Pod {
  const name = podName(job.id, target.address);
  const lifetime = settings.startSeconds + job.script.timeoutSeconds + SPARE_SECONDS;
  const environment = { ...job.parameters, nonce: job.nonce, job: job.id };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace: settings.namespace,
      labels: {
        [LABEL.manager]: MANAGER,
        [LABEL.job]: name.slice("netcheck-".length),
        [LABEL.expires]: String(Math.ceil(now / 1000) + lifetime + KEPT_SECONDS),
      },
      annotations: {
        [ANNOTATION.job]: job.id,
        [ANNOTATION.target]: target.name,
        [ANNOTATION.script]: job.script.name,
        // what a node says is nothing for the cluster's log store
        "fluentbit.io/exclude": "true",
      },
    },
    spec: {
      // no scheduler: a cordoned or tainted node is just the one to look at
      nodeName: target.address,
      tolerations: [{ operator: "Exists" }],
      restartPolicy: "Never",
      // counts from the moment the kubelet takes the pod, so the pull is in it
      activeDeadlineSeconds: lifetime,
      terminationGracePeriodSeconds: 5,
      hostNetwork: true,
      hostPID: true,
      hostIPC: true,
      // the node's own resolver: the cluster's may be what is broken
      dnsPolicy: "Default",
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      // for whoever reads the pod, and for policies: the runtime gives a privileged container no seccomp profile
      securityContext: { seccompProfile: { type: "RuntimeDefault" } },
      ...(settings.priorityClass === undefined ? {} : { priorityClassName: settings.priorityClass }),
      ...(settings.pullSecret === undefined ? {} : { imagePullSecrets: [{ name: settings.pullSecret }] }),
      containers: [
        {
          name: CONTAINER,
          image: settings.image,
          imagePullPolicy: "IfNotPresent",
          ...podProgram(job.script),
          env: Object.entries(environment).map(([key, value]) => ({ name: `NETCHECK_${key}`, value: literal(value) })),
          // small requests: a full node must take the pod, too. Memory holds the outputs until they are printed
          resources: {
            requests: { cpu: "10m", memory: "32Mi", "ephemeral-storage": "16Mi" },
            limits: { cpu: "1", memory: "512Mi", "ephemeral-storage": "64Mi" },
          },
          securityContext: { privileged: true, readOnlyRootFilesystem: true, runAsUser: 0 },
          terminationMessagePolicy: "File",
          volumeMounts: [
            { name: "host", mountPath: "/host", readOnly: job.script.changes !== true, mountPropagation: "HostToContainer" },
            { name: "memory", mountPath: "/tmp" },
            { name: "memory", mountPath: "/host/tmp" },
          ],
        },
      ],
      volumes: [
        { name: "host", hostPath: { path: "/", type: "Directory" } },
        { name: "memory", emptyDir: { medium: "Memory", sizeLimit: "448Mi" } },
      ],
    },
  };
}

/** Whether an image is named by its digest, so that what runs on every node as root is what was reviewed. */
export const byDigest = (image: string): boolean => /^[a-z0-9][\w./:-]*@sha256:[0-9a-f]{64}$/i.test(image);
