import { HOST } from "../facts/log-unit.ts";

/**
 * Lines of logs and events that stand in a text without the command that printed them: people copy what matters out of a terminal, and leave the prompt behind.
 */

/** A stretch of such lines: what would have printed them, and the 1-based numbers of the first and the last line. */
export interface LogRun {
  readonly command: string;
  readonly from: number;
  readonly to: number;
}

/** `grep -n` and `grep -H` put the place in front. */
const PLACE = String.raw`^[ \t]{0,8}(?:[\w./-]{1,200}\.(?:log|txt)(?:\.\d)?:)?(?:\d{1,9}[:-])?`;
// "kubectl logs --timestamps", and the container runtime's own files
const STAMP = String.raw`${PLACE}(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d[.,\d]{0,12}(?:Z|[+-]\d\d:?\d\d)? (?:std(?:out|err) [FP] )?)?`;
const AGE = String.raw`(?:<invalid>|<unknown>|\d{1,6}[dhms](?:\d{1,4}[hms]){0,3})(?: \(x\d{1,9} over [\w<>]{1,16}\))?`;
/** A container's log, whoever wrote it. */
const CONTAINER = "kubectl logs";
const DESCRIBED = "kubectl describe pod";
const KUBELET = "journalctl -u kubelet";

/** How the lines begin, and what prints such lines. */
const SIGNS: readonly (readonly [RegExp, string])[] = [
  [/^[ \t]{0,8}\[ {0,12}\d{1,10}\.\d{6}\] \S/, "dmesg"],
  [/^[ \t]{0,8}\[[A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \d{4}\] \S/, "dmesg -T"],
  // syslog and the journal: time, host (where it was not taken out), program
  [
    new RegExp(
      String.raw`${PLACE}(?:(?:[A-Z][a-z]{2}|\p{L}{3,5}\.?|\d{1,2}[月월]) {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,6})?|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]{0,8}(?:Z|[+-]\d\d:?\d\d)) (?:${HOST} [\w./@()-]{1,64}(?:\[\d{1,10}\])?|[\w./@()-]{1,64}\[\d{1,10}\]|kernel): `,
      "u",
    ),
    "journalctl",
  ],
  // klog, logfmt, Calico's and CoreDNS's own
  [new RegExp(String.raw`${STAMP}[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{1,18} {1,8}(?:\d{1,10} )?[\w.-]{1,100}:\d{1,6}\]`), CONTAINER],
  [new RegExp(String.raw`${STAMP}(?:(?:time|ts|t)=(?:"[^"]{1,60}"|[^\s"]{1,60}) )?level=[a-zA-Z]{4,7} (?:[\w.]{1,40}=\S{1,200} ){0,3}msg=`), CONTAINER],
  [new RegExp(String.raw`${STAMP}\[(?:DEBUG|INFO|WARNING|ERROR|FATAL|PANIC)\]\[\d{1,10}\] \S`), CONTAINER],
  [new RegExp(String.raw`${STAMP}\[(?:DEBUG|INFO|WARNING|ERROR|FATAL)\] (?:plugin/\w|Added back nodelocaldns |iptables rule \{)`), CONTAINER],
  // klog without its head, the container runtime's files, JSON
  [new RegExp(String.raw`${PLACE}(?:\d{1,10} )?[a-z][\w-]{1,60}\.go:\d{1,6}\] \S`), CONTAINER],
  [/^[ \t]{0,8}\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+-]\d\d:\d\d) std(?:out|err) [FP] \S/, CONTAINER],
  [/^[ \t]{0,8}\{"(?:level|severity|ts|time|timestamp|caller|msg|log)":/, CONTAINER],
  [/^[ \t]{0,8}k8s\.io\/client-go\/[\w./-]{1,100}\.go:\d{1,6}: \S/, CONTAINER],
  [/\*\*\* uWSGI listen queue of socket "/, CONTAINER],
  // kernel messages that people know by their words
  [
    /^[ \t]{0,8}(?:kernel: )?(?:nf_conntrack: |ip_conntrack: |(?:neighbour: )?(?:\w{1,20}: )?[Nn]eighbou?r table overflow|TCP: (?:out of memory|too many|request_sock_TCP)|IPv4: martian source|ll header: |IPv6: \S{1,20}: IPv6 duplicate address|NETDEV WATCHDOG: |unregister_netdevice: waiting |net_ratelimit: \d|[\w.@-]{1,20}: (?:received packet on \S{1,20} with +own address|dropped over-mtu packet|NIC Link is (?:Up|Down)))/,
    "dmesg",
  ],
  // what the kubelet says, without anything in front: people copy the message alone
  [
    /^[ \t]{0,8}(?:Unable to update cni config: |"?(?:[Cc]ontainer )?[Rr]untime network not ready(?:: |" network)|(?:Readiness|Liveness|Startup) probe failed: |(?:Failed to create|Failed create) pod sandbox|Back-off restarting failed container |(?:rpc error: code = \w{1,20} desc = )?(?:[Nn]etworkPlugin cni failed |plugin type="|"[a-z-]{2,20}" failed \(add\): |add cmd: |failed to (?:set ?up (?:network|pod|sandbox)|assign an IP)|failed to "(?:Create|Kill)PodSandbox"))/,
    KUBELET,
  ],
  [new RegExp(String.raw`^[ \t]{0,8}(?:Normal|Warning)[ \t]{1,40}[A-Z]\w{1,60}[ \t]{1,60}${AGE}[ \t]{1,40}\S`), DESCRIBED],
  [
    new RegExp(String.raw`^[ \t]{0,8}(?:[a-z0-9-]{1,63}[ \t]{1,80})?${AGE}[ \t]{1,40}(?:Normal|Warning)[ \t]{1,40}[A-Z]\w{1,60}[ \t]{1,60}\S`),
    "kubectl get events",
  ],
];

/** Whose log it is, by what only this program says. */
const PROGRAMS: readonly (readonly [RegExp, string])[] = [
  [/\] "?(?:Failed to delete (?:stale service|endpoint|nodeport)|[Cc]an't open "nodePort)|\bproxier\.go:\d/, "kubectl logs kube-proxy"],
  // its list and watch ask for services that are its own to serve
  [/service-proxy-name/, "kubectl logs kube-proxy"],
  [/\b(?:kubelet|kubelet_node_status|pod_workers|cni|docker_sandbox|remote_runtime|kuberuntime_(?:manager|sandbox))\.go:\d/, KUBELET],
  [/ subsys=(?:daemon|endpoint|policy|k8s-watcher|datapath-loader|endpoint-manager|ipam|bpf|k8s)\b| endpointID=\d/, "kubectl logs cilium"],
  [/\]\[\d{1,10}\] (?:felix|confd|monitor-addresses|startup|tunnel-ip-allocator|status-reporter)\//, "kubectl logs calico-node"],
  [/\[(?:INFO|WARNING|ERROR|FATAL)\] plugin\//, "kubectl logs coredns"],
  [/nodelocaldns/, "kubectl logs node-local-dns"],
  [/"caller":"(?:ipamd|datastore|awsutils|networkutils|rpc|cni|eniconfig|cniutils)\//, "tail /var/log/aws-routed-eni/ipamd.log"],
];

/** The agent's own probe says whose pod is described. */
const CALICO = /calico\/node is not ready|\bBIRD(?:v6)? is not (?:ready|live)/;

/** The command that prints a log of which this is a line. */
export const logSignOf = (line: string): string | undefined => (line.length > 8000 ? undefined : SIGNS.find(([sign]) => sign.test(line))?.[1]);

/**
 * The stretches of log lines among those that nothing else claims. A stretch goes on over lines that no sign begins (the rest of a message over several lines), up
 * to a blank line, `stop`, or a log of another kind. Pure, linear.
 * @param free whether the line at this index may be looked at
 * @param stop whether a stretch ends in front of the line at this index
 * @param fenced whether the line at this index stands in a block of code: there a blank line is part of a message
 */
export function logRuns(
  lines: readonly string[],
  free: (index: number) => boolean,
  stop: (index: number) => boolean,
  fenced: (index: number) => boolean = () => false,
): LogRun[] {
  const runs: LogRun[] = [];
  for (let i = 0; i < lines.length; i++) {
    const kind = free(i) ? logSignOf(lines[i] ?? "") : undefined;
    if (kind === undefined) continue;
    let end = i + 1;
    for (let next = end; next < lines.length && free(next) && !stop(next); next++) {
      const line = lines[next] ?? "";
      const blank = line.trim() === "";
      // people leave blank lines between the messages, and prose behind them
      if (blank ? !fenced(next) && logSignOf(lines[next + 1] ?? "") !== kind : (logSignOf(line) ?? kind) !== kind) break;
      if (!blank) end = next + 1;
    }
    runs.push({ command: programOf(kind, lines.slice(i, end)), from: i + 1, to: end });
    i = end - 1;
  }
  return runs;
}

function programOf(kind: string, run: readonly string[]): string {
  if (kind === DESCRIBED || kind === KUBELET) return run.some((line) => CALICO.test(line)) ? "kubectl describe pod calico-node" : kind;
  if (kind !== CONTAINER) return kind;
  const tells = run.flatMap((line) => PROGRAMS.find(([sign]) => sign.test(line))?.[1] ?? []);
  return tells[0] ?? CONTAINER;
}
