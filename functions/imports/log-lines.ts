import { AGENT, HOST } from "../facts/log-unit.ts";
import { unwrapped } from "./log-wrapper.ts";

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
const LOGS = /^(?:sudo )?(?:dmesg|journalctl|logread|stern|kubectl (?:logs|describe|get events)|tail \/var\/log\/)/;
/** True for a command that prints a log: there is always more of it, and it is quoted piece by piece. */
export const isLog = (command: string): boolean => LOGS.test(command);
/** A container's log, whoever wrote it. */
const CONTAINER = "kubectl logs";
const DESCRIBED = "kubectl describe pod";
const KUBELET = "journalctl -u kubelet";
const IPAMD = "tail /var/log/aws-routed-eni/ipamd.log";

/** How the lines begin, and what prints such lines. */
const SIGNS: readonly (readonly [RegExp, string])[] = [
  [/^[ \t]{0,8}(?:(?:[a-z0-9][a-z0-9.-]{0,62} )?kernel: )?\[ {0,12}\d{1,10}\.\d{3,9}\] \S/, "dmesg"],
  [/^[ \t]{0,8}\[[A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \d{4}\] \S/, "dmesg -T"],
  // -x and -r: facility and level in front; -H: the time since the line before; --time-format iso
  [/^[ \t]{0,8}(?:<\d{1,3}>|[a-z0-9]{2,8} {0,6}:(?:emerg|alert|crit|err|warn|notice|info|debug) {0,4}: )\[ {0,12}\d{1,10}\.\d{3,9}\] \S/, "dmesg"],
  [/^[ \t]{0,8}\[(?: {0,8}\+\d{1,6}\.\d{6}|[A-Z][a-z]{2} ?\d{1,2} \d\d:\d\d)\] \S/, "dmesg -H"],
  [/^[ \t]{0,8}\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:\d\d \S/, "dmesg --time-format iso"],
  // syslog and the journal: time, host (where it was not taken out), program
  [
    new RegExp(
      String.raw`${PLACE}(?:(?:[A-Z][a-z]{2}|\p{L}{3,5}\.?|\d{1,2}[月월]) {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,6})?|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]{0,8}(?:Z|[+-]\d\d:?\d\d)) (?:${HOST} [\w./@()-]{1,64}(?:\[\d{1,10}\])?|[\w./@()-]{1,64}\[\d{1,10}\]|kernel): `,
      "u",
    ),
    "journalctl",
  ],
  // a file of syslog: the priority in front, or the head of RFC 5424
  [
    /^[ \t]{0,8}<\d{1,3}>(?:1 \d{4}-\d\d-\d\dT\S{8,32} \S{1,255} \S{1,128} \S{1,128} \S{1,64} (?:-|\[)|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \S{1,255} \S{1,128}: )/,
    "tail /var/log/syslog",
  ],
  // the same, of which the time was not copied, or its date
  [
    new RegExp(
      String.raw`^[ \t]{0,8}(?:(?:\d\d:\d\d:\d\d(?:[.,]\d{1,9})? {1,3})?(?:${HOST} )?${AGENT}\[\d{1,10}\]: \S|\d\d:\d\d:\d\d(?:[.,]\d{1,9})? {1,3}(?:${HOST} )?${AGENT}: \S)`,
    ),
    "journalctl",
  ],
  // BusyBox syslogd and OpenWrt's logd: facility and level behind the time
  [
    /^[ \t]{0,8}(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d(?: \d{4})? (?:[\w.-]{1,255} )?[a-z]{3,8}\d?\.(?:emerg|alert|crit|err|warn|notice|info|debug) \S{1,64}?: /,
    "logread",
  ],
  [/^[ \t]{0,8}\{"(?:__[A-Z_]{4,40}|_[A-Z][A-Z_]{2,40}|SYSLOG_[A-Z]{2,20}|PRIORITY|MESSAGE)":/, "journalctl -o json"],
  [/^__CURSOR=s=[0-9a-f]{1,64};/, "journalctl -o export"],
  [/^[ \t]{0,8}\[pod\/[\w.-]{1,253}\/[\w.-]{1,63}\] \S/, CONTAINER],
  // klog, logfmt, Calico's and CoreDNS's own
  [new RegExp(String.raw`${STAMP}[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{1,18} {1,8}(?:\d{1,10} )?[\w.-]{1,100}:\d{1,6}\]`), CONTAINER],
  [new RegExp(String.raw`${STAMP}(?:(?:time|ts|t)=(?:"[^"]{1,60}"|[^\s"]{1,60}) )?level=[a-zA-Z]{4,7} (?:[\w.]{1,40}=\S{1,200} ){0,3}msg=`), CONTAINER],
  [new RegExp(String.raw`${STAMP}\[(?:DEBUG|INFO|WARNING|ERROR|FATAL|PANIC)\]\[\d{1,10}\] \S`), CONTAINER],
  [new RegExp(String.raw`${STAMP}\[(?:DEBUG|INFO|WARNING|ERROR|FATAL)\] (?:plugin/\w|Added back nodelocaldns |iptables rule \{)`), CONTAINER],
  [/^[ \t]{0,8}plugin\/loop: (?:Loop \(|Seen "?HINFO|Forwarding loop)/, CONTAINER],
  // etcd before it wrote JSON
  [/^[ \t]{0,8}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} [DINWEC] \| [a-z][\w/]{1,40}: \S/, CONTAINER],
  // the address daemon of AWS before it wrote JSON
  [
    /^[ \t]{0,8}`?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z \[(?:TRACE|DEBUG|INFO|WARN|ERROR)\][ \t]{1,12}(?:Assign(?:Pod)?IPv4Address\b|UnAssign(?:Pod)?IPv4Address\b|DataStore has no |IP pool (?:stats|is too low)|(?:Send|Received) (?:Add|Del)Network|Skipping increase IP|Start increasing IP)/,
    IPAMD,
  ],
  // stern and its like: pod and container in front
  [
    /^[ \t]{0,8}(?:[a-z0-9-]{1,63} )?[a-z0-9][a-z0-9.-]{0,252}[ :][a-z0-9-]{1,63} (?:[IWEF]\d{4} \d\d:\d\d:\d\d\.|(?:time="\S{1,60} )?level=\w{4,7} )/,
    "stern .",
  ],
  // klog without its head, the container runtime's files, JSON
  [new RegExp(String.raw`${PLACE}(?:\d{1,10} )?[a-z][\w-]{1,60}\.go:\d{1,6}\] \S`), CONTAINER],
  [/^[ \t]{0,8}\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+-]\d\d:\d\d) std(?:out|err) [FP] \S/, CONTAINER],
  [/^[ \t]{0,8}\{"(?:level|severity|ts|time|timestamp|caller|msg|log)":/, CONTAINER],
  [/^[ \t]{0,8}k8s\.io\/client-go\/[\w./-]{1,100}\.go:\d{1,6}: \S/, CONTAINER],
  [/\*\*\* uWSGI listen queue of socket "/, CONTAINER],
  // kernel messages that people know by their words
  [
    /^[ \t]{0,8}(?:(?:[a-z0-9][a-z0-9.-]{0,62} )?kernel: )?(?:nf_conntrack: |ip_conntrack: |(?:neighbour: )?(?:\w{1,20}: )?[Nn]eighbou?r table overflow|TCP: (?:out of memory|too many|request_sock_TCP)|IPv4: martian source|ll header: |IPv6: \S{1,20}: IPv6 duplicate address|NETDEV WATCHDOG: |unregister_netdevice: waiting |net_ratelimit: \d|[\w.@-]{1,20}: (?:received packet on \S{1,20} with +own address|dropped over-mtu packet|NIC Link is (?:Up|Down)))/,
    "dmesg",
  ],
  // what a firewall rule with the target LOG writes, behind words of its own
  [/^[ \t]{0,8}(?:\S.{0,60}?[ :\]-])?IN=[\w.@-]{0,15} OUT=[\w.@-]{0,15} (?:[A-Z]{2,7}=\S{0,60} ){0,4}SRC=\S{2,45} DST=\S{2,45} /, "dmesg"],
  // what the kubelet says, without anything in front: people copy the message alone
  [
    /^[ \t]{0,8}(?:\(combined from similar events\): )?(?:Unable to update cni config: |"?(?:[Cc]ontainer )?[Rr]untime network not ready(?:: |" network)|(?:Readiness|Liveness|Startup) probe failed: |(?:Failed to create|Failed create) pod sandbox|Back-off restarting failed container |(?:rpc error: code = \w{1,20} desc = )?(?:[Nn]etworkPlugin cni failed |plugin type="|"[a-z-]{2,20}" failed \(add\): |add cmd: |error adding pod \S{1,250} to CNI network|failed to delegate add: |failed to set bridge addr: |failed to (?:set ?up (?:network|pod|sandbox)|assign an IP)|failed to "(?:Create|Kill)PodSandbox"))/,
    KUBELET,
  ],
  // of a long one only its end
  [/^.{0,300}: failed to set bridge addr: \\{0,3}"[\w.-]{1,15}\\{0,3}" already has an IP address different from [\da-f]/, KUBELET],
  // what agents say, the same way
  [
    /^[ \t]{0,8}(?:"?Failed to (?:execute ip6?tables-restore|ensure (?:that |chain )|check br_netfilter|delete (?:stale service|endpoint|nodeport)\b|find any valid interface to use)|(?:\S{1,40}: )?[Ee]rror (?:deleting connection tracking state|looking for path of conntrack)|(?:\S{1,40}: )?Another app is currently holding the xtables lock|[Uu]nable to update element for \S{1,80} |failed to set ?up (?:vxlan|geneve) tunnel device: )/,
    CONTAINER,
  ],
  // the same of k3s and the API server, which look for the node's address by its default route
  [
    /^[ \t]{0,8}(?:[A-Za-z][\w -]{0,60}: ){0,3}(?:Unable to find suitable network address\.error=')?no default routes found in [\\"]{0,4}\/proc\/net\/route/,
    CONTAINER,
  ],
  // the condition of a node, and what the container runtime says of itself
  [/^[ \t]{0,8}Ready {1,40}(?:False|Unknown) {1,20}[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} /, "kubectl describe node"],
  // of which somebody copied only the end
  [/^.{0,100}?[ \t]{2,40}KubeletNotReady[ \t]{2,60}\S/, "kubectl describe node"],
  [/^[ \t]{0,16}message: '?(?:container )?runtime network not ready: /, "kubectl get node -o yaml"],
  [/^[ \t]{0,16}"lastCNILoadStatus(?:\.default)?": "\S|^[ \t]{0,16}"message": "Network plugin returns error: /, "crictl info"],
  // Calico's probe: the second line of an event, and what it prints when it is run by hand
  [/^[ \t]{0,8}calico\/node is not ready: \S/, DESCRIBED],
  [new RegExp(String.raw`^[ \t]{0,8}(?:Normal|Warning)[ \t]{1,40}[A-Z]\w{1,60}[ \t]{1,60}${AGE}[ \t]{1,40}\S`), DESCRIBED],
  [
    new RegExp(String.raw`^[ \t]{0,8}(?:[a-z0-9-]{1,63}[ \t]{1,80})?${AGE}[ \t]{1,40}(?:Normal|Warning)[ \t]{1,40}[A-Z]\w{1,60}[ \t]{1,60}\S`),
    "kubectl get events",
  ],
];

/** Whose log it is, by what only this program says. */
const PROGRAMS: readonly (readonly [RegExp, string])[] = [
  [
    /(?:\] |^\s*)"?(?:Failed to (?:delete (?:stale service|endpoint|nodeport)|execute ip6?tables-restore(?:" err="| for (?:nat|filter): |: )exit status)|[Cc]an't open "nodePort)|\bproxier\.go:\d/,
    "kubectl logs kube-proxy",
  ],
  // its list and watch ask for services that are its own to serve; of old they stood in its own package, and then in that of the internal types, with which no other program watches endpoints
  [
    /service-proxy-name|\bpkg\/proxy\/config\/api\.go:\d|\/internalversion\/factory\.go:\d{1,6}: Failed to (?:list|watch) \*core\.(?:Endpoints|Service):/,
    "kubectl logs kube-proxy",
  ],
  [/\b(?:kubelet|kubelet_node_status|pod_workers|cni|docker_sandbox|remote_runtime|kuberuntime_(?:manager|sandbox))\.go:\d/, KUBELET],
  [
    / subsys=(?:daemon|endpoint|policy|k8s-watcher|datapath-loader|endpoint-manager|ipam|bpf|k8s)\b| endpointID=\d|\/var\/run\/cilium\/state\/|level=fatal msg="Error while creating daemon"/,
    "kubectl logs cilium",
  ],
  // Calico's BIRD, whose sessions have names of Calico's
  [/\bbird6?: (?:Mesh|Node|Global)_[\d_]{7,15}: /, "kubectl logs calico-node"],
  [/\]\[\d{1,10}\] (?:felix|confd|monitor-addresses|startup|tunnel-ip-allocator|status-reporter)\//, "kubectl logs calico-node"],
  [/\[(?:INFO|WARNING|ERROR|FATAL)\] plugin\/|^[ \t]{0,8}plugin\/loop: /, "kubectl logs coredns"],
  [/nodelocaldns/, "kubectl logs node-local-dns"],
  [
    /\.\d{6} [DINWEC] \| (?:rafthttp|etcdserver|etcdmain|embed|raft|mvcc|auth|membership): |"caller":"(?:rafthttp|etcdserver|etcdmain|etcdutl|embed|membership)\//,
    "kubectl logs etcd",
  ],
  [/"caller":"(?:ipamd|datastore|awsutils|networkutils|rpc|cni|eniconfig|cniutils)\//, IPAMD],
];

/** Cilium's other programs share parts, and so words, with the agent; whose log it is they say in some lines only. */
const BESIDE_AGENT = /(?:^| )subsys=(cilium-operator|clustermesh-apiserver|kvstoremesh|hubble-relay)\b/;

/** The agent's own probe says whose pod is described. */
const CALICO = /calico\/node is not ready|\bBIRD(?:v6)? is not (?:ready|live)/;

/** The command that prints a log of which this is a line. */
export const logSignOf = (line: string): string | undefined => (line.length > 8000 ? undefined : SIGNS.find(([sign]) => sign.test(line))?.[1]);

export const TIMED = /\d\d:\d\d:\d\d|\[ {0,12}\d{1,10}\.\d{6}\]/;

/** The line of a log that stands inside of what a viewer or a list put around it. */
export function wrappedLog(line: string): string | undefined {
  const inner = line.length > 8000 || !TIMED.test(line) ? [] : unwrapped(line);
  return inner.length === 0 || logSignOf(line) !== undefined ? undefined : inner.find((one) => logSignOf(one) !== undefined);
}

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
  fenced: (index: number) => boolean,
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
      if (blank ? !fenced(next) && logSignOf(behindBlanks(lines, next)) !== kind : (logSignOf(line) ?? kind) !== kind) break;
      if (!blank) end = next + 1;
    }
    const command = programOf(kind, lines.slice(i, end));
    runs.push({ command: command === CONTAINER ? announcedBy(lines.slice(Math.max(0, i - 4), i)) : command, from: i + 1, to: end });
    i = end - 1;
  }
  return runs;
}

/** The first line behind some blank ones: those between two messages, and those that a wrapped one leaves. */
const behindBlanks = (lines: readonly string[], i: number): string => lines.slice(i, i + 12).find((line) => line.trim() !== "") ?? "";

function programOf(kind: string, run: readonly string[]): string {
  if (kind === DESCRIBED || kind === KUBELET) return run.some((line) => CALICO.test(line)) ? "kubectl describe pod calico-node" : kind;
  if (kind !== CONTAINER) return kind;
  const apart = run.flatMap((line) => BESIDE_AGENT.exec(line)?.[1] ?? [])[0];
  if (apart !== undefined) return `${CONTAINER} ${apart}`;
  const tells = run.flatMap((line) => PROGRAMS.find(([sign]) => sign.test(line))?.[1] ?? []);
  return tells[0] ?? CONTAINER;
}

const NAME = "(kube-?proxy|coredns|kube-flannel|flanneld?|calico-node|cilium(?:-agent)?|aws-node|kube-router|antrea-agent|node-local-dns|nodelocaldns)";
/** "kube-proxy logs:", "the log of the kube-proxy pod", "kube-proxy.log", "Here is the error message of kube-proxy". */
const ANNOUNCED: readonly RegExp[] = [
  new RegExp(
    String.raw`(?:^|[\s\x60*"'(])${NAME}(?:-[\w-]{2,20})?[\x60"']?(?:'s)?(?: (?:pod|container|daemonset|service))?(?:'s)?[ .](?:error )?(?:logs?|ERROR|output|says|said|reports|prints)\b`,
    "i",
  ),
  new RegExp(
    String.raw`\b(?:logs?|errors?|error messages?|messages|output) (?:of|from|for|in|by) (?:the |a |all |my |our |one )?(?:failing |broken )?[\x60"']?${NAME}(?![\w-]*[.\w])`,
    "i",
  ),
];

/** The log of a container, of which the line above tells whose it is. */
function announcedBy(above: readonly string[]): string {
  const line = above.findLast((one) => one.trim() !== "") ?? "";
  const name = line.length > 400 ? undefined : ANNOUNCED.map((sign) => sign.exec(line)?.[1]).find((one) => one !== undefined);
  return name === undefined ? CONTAINER : `${CONTAINER} ${name.toLowerCase().replace("kubeproxy", "kube-proxy")}`;
}
