import { commandLine } from "../facts/command.ts";
import { asksAnywhere } from "../facts/node-name.ts";
import { readersOf } from "../facts/shared-text.ts";
import { isKnown } from "./bundle.ts";

/**
 * Which machine an output is of, where a text shows several: the good node beside the bad one, and a pod's view beside its node's. Prompts tell it, and labels
 * above the blocks (`On the working node:`).
 */

/** Names of machines in a text. */
export type Machine =
  /** As a prompt or a label has it. */
  | { readonly name: string; readonly pod?: undefined }
  /** The inside of a pod or a container: nothing in it is the node's. */
  | { readonly pod: true; readonly name?: undefined };

/** A pod of a Deployment or a DaemonSet; a container of Docker. The last letters of a generated name are no vowels. */
const POD = /-[a-z0-9]{8,10}-[bcdfghjklmnpqrstvwxz2456789]{5}$|-[bcdfghjklmnpqrstvwxz2456789]{5}$|^[0-9a-f]{12}$/;

/** A machine that is known to be none of the pods. */
export const ofHost = (host: string): Machine => ({ name: shortName(host) });

/** The machine that a prompt names. `nodes`: those of which the text tells that they are no pods (machinesLikePods). */
export const ofPrompt = (host: string, nodes: ReadonlySet<string> = new Set()): Machine => (POD.test(host) && !nodes.has(host) ? { pod: true } : ofHost(host));

/** What a machine is asked and no pod: it has no units, no runtime of containers, and no virtual switch. */
const ASKS_MACHINE = /^(?:sudo )?(?:systemctl|journalctl|networkctl|nmcli|crictl|ctr|nerdctl|virsh|kubeadm|ovs-(?:vs|of|app|dp)ctl)(?: |$)/;
/** Users that images of machines bring along. */
const OF_IMAGE = /^(?:core|ec2-user|cloud-user|azureuser|opc|ubuntu|debian|fedora|centos|rocky|almalinux|capv|rancher|vagrant)$/;
/** Devices that no pod has, in lists of them and in routes; chains of kube-proxy. */
const OF_MACHINE =
  /(?:^|[ \t])(?:cni0|cbr0|kube-bridge|docker0|kube-ipvs0|nodelocaldns|cilium_(?:host|net|vxlan)|vxlan\.calico|flannel[.-]\w{1,12}|ovs-system|br-(?:int|ex)|ovn-k8s-mp0|cali[\da-f]{11}|lxc[\da-f]{12,14}|eni[\da-f]{11}|azv[\da-f]{11}|gke[\da-f]{11})(?=[@:\s]|$)|^(?:-A |:)?KUBE-(?:SERVICES|POSTROUTING|FORWARD)\b/;
/** What is answered elsewhere than where it was typed, and shells that go on there. */
const ELSEWHERE = /^(?:sudo )?(?:chroot|nsenter|ssh|kubectl|k|oc|docker|podman|talosctl|multipass|lxc|incus|ansible|ip (?:-\S{1,10} )?netns exec)(?: |$)/;
const STAYS_ELSEWHERE = /^(?:sudo )?(?:chroot \S+|nsenter .{0,200}?(?:ba|da|z)?sh)$/;

/**
 * Machines that have names as pods have them: Cluster API, OpenShift, Gardener and the pools of clouds make such ones. What is typed behind their prompts, and shown
 * there, and who typed it, tells. `promptOf`: the host that a prompt names ("" for one that names none), its user, and what was typed; undefined for other lines.
 */
export function machinesLikePods(
  lines: readonly string[],
  promptOf: (line: string) => { readonly host: string; readonly user?: string | undefined; readonly typed: string } | undefined,
): ReadonlySet<string> {
  const nodes = new Set<string>();
  // who went on in another namespace from a pod sees the node's devices there
  const left = new Set<string>();
  let here: string | undefined;
  for (const line of lines) {
    const prompt = line.length > 4000 ? undefined : promptOf(line);
    if (prompt !== undefined) {
      const { host, user = "", typed } = prompt;
      here = (host === "" || POD.test(host)) && !ELSEWHERE.test(typed) ? host : undefined;
      if (STAYS_ELSEWHERE.test(typed)) left.add(host);
      else if (here !== undefined && (ASKS_MACHINE.test(typed) || OF_IMAGE.test(user))) nodes.add(host);
    } else if (here !== undefined && line.length < 1000 && OF_MACHINE.test(line)) nodes.add(here);
  }
  return new Set([...nodes].filter((host) => !left.has(host)));
}

const shortName = (host: string): string => (/^\d/.test(host) ? host : (host.split(".")[0] ?? host)).toLowerCase();

/** `ssh -i key root@node1 'ip route'`: the machine, and what runs there. A prompt that stands before it is another machine's. */
const REMOTE =
  /^(?:sudo |time ){0,2}ssh(?: -[1246AaCfgKkMNnqsTtVvXxYy]{1,8}| -[BbcDEeFIiJLlmOopQRSWw] ?\S{1,200}){0,12} (?:[\w.-]{1,64}@)?([A-Za-z0-9][\w.-]{0,252}) (?!-)(\S.*)$/;

/** Other ways onto a machine: `kubectl debug node/node1 … -- chroot /host ip route`, `multipass exec node1 -- ip route`, `vagrant ssh node1 -c 'ip route'`. */
const REACHED =
  /^(?:sudo |time ){0,2}(?:(?:multipass|lxc|incus) exec |vagrant ssh |gcloud (?:beta )?compute ssh |(?:(?:microk8s |k3s |k0s )?kubectl|oc) (?:node-shell |(?:-\S{1,80} ){0,6}debug (?:-\S{1,80} ){0,6}nodes?\/)|ansible )(?:[\w.-]{1,64}@)?([A-Za-z0-9][\w.-]{0,252}) (?=\S)/;

/** The machine that a command asks from elsewhere; undefined if it asks none. */
export function ofRemote(command: string): Machine | undefined {
  const host = command.length > 4000 ? undefined : (REMOTE.exec(command)?.[1] ?? REACHED.exec(command)?.[1]);
  return host === undefined ? undefined : { name: shortName(host) };
}

/** `ssh core@node1`, `vagrant ssh n1`, `docker exec -it kind-worker bash`, `kubectl debug node/n1 -it --image=busybox`: who types on is there. */
const LOGIN: readonly RegExp[] = [
  /^(?:sudo )?ssh(?: -[1246AaCfgKkMNnqsTtVvXxYy]{1,8}| -[BbcDEeFIiJLlmOopQRSWw] ?\S{1,200}){0,12} (?:[\w.-]{1,64}@)?([A-Za-z0-9][\w.-]{0,252})(?: -[ip] \S{1,200})?$/,
  /^(?:sudo )?(?:vagrant ssh|(?:multipass|lxc|incus) shell|minikube ssh (?:-n|--node)) ([A-Za-z0-9][\w.-]{0,62})$/,
  /^(?:sudo )?(?:docker|podman|nerdctl) exec (?:-\w{1,6} ){0,4}([\w.-]{1,60}-(?:control-plane|worker)\d{0,3}|k3d-[\w.-]{1,60}-(?:server|agent)-\d{1,3}|minikube-m\d{2}) (?:\/bin\/)?(?:ba)?sh$/,
  /^(?:sudo )?(?:(?:microk8s |k3s |k0s )?kubectl|oc) (?:-\S{1,80} ){0,6}debug (?:-\S{1,80} ){0,6}nodes?\/([\w.-]{1,252})(?: (?!--(?: |$))-\S{1,200}(?: [a-z]\S{0,200})?){0,8}(?: -- (?:chroot \/host )?(?:\/bin\/)?(?:ba)?sh)?$/,
];

/** The machine on which a command opens a shell; undefined if it opens none. */
export function ofLogin(command: string): Machine | undefined {
  const host = command.length > 1000 ? undefined : LOGIN.map((form) => form.exec(command)?.[1]).find((name) => name !== undefined);
  return host === undefined ? undefined : { name: shortName(host) };
}

/** What runs, on whichever machine. */
const bareOf = (command: string): string => {
  if (command.length <= 4000 && REACHED.test(command)) return commandLine(command).argv.join(" ");
  const remote = (command.length > 4000 ? undefined : REMOTE.exec(command)?.[2]) ?? command;
  return remote
    .trim()
    .replace(/^(["'])(.*)\1$/, "$2")
    .replace(/^sudo /, "");
};

/** A line that only says whose the next outputs are: a heading, bold, or with a colon behind it. */
const LABEL = /^[ \t]{0,4}(?:#{1,6} |[-*+] )?(\*{0,2})((?:[\w.()'-]{1,40} ){0,5}[\w.()'-]{1,60})(:?)\1(:?)[ \t]{0,4}$/;
const NODE_WORD = /\b(?:nodes?|hosts?|machine|server|workers?|masters?|vm|instance|peer)[-_]?\d{0,4}\b/i;
/** What is told of pods from outside. */
const ABOUT = /\b(?:logs?|events?|descri\w+|yaml|json|spec|manifest|status|list|definition|config\w*|cidrs?|address(?:es)?|ips?)\b/i;
/** What is told of the inside of a pod. */
export const POD_WORD = /\b(?:pods?|containers?|busybox|netshoot|netns)\b/i;

/** "In the client pod on node1", "Pod on the second node": the inside of a pod, wherever that runs. */
const POD_ON_NODE =
  /^(?:(?:from )?(?:in|inside|within|from|on) )?(?:(?:the|a|an|my|our) )?(?:[\w-]{1,30} ){0,2}(?:pod|container) \(?(?:(?:running|that runs|scheduled) )?(?:on|at|in) /i;

/** What a report says of its pods, where a label only names them: "# Pods don't have internet access", "Pods lose network:". */
const TOLD =
  /\b(?:\w+n't|cannot|can|not|no|never|los(?:e|es|t|ing)|without|unable|unreachable|stuck|broken|wrong|slow|missing|fail\w*|crash\w*|hang\w*|drop\w*|restart\w*|time[sd]? ?outs?|problems?|issues?|errors?|bugs?)\b/i;
/** In a heading these tell something, too; "the pod has:" is a label. */
const SAID = /\b(?:is|are|was|were|has|have|had|gets?)\b/i;
const HEADING = /^[ \t]{0,4}#/;

/** The machine that a label names; undefined if the line is none. */
export function ofLabel(line: string): Machine | undefined {
  const [whole, bold = "", words = "", ...colons] = line.length > 120 ? [] : (LABEL.exec(line) ?? []);
  if (whole === undefined || !(bold === "**" || colons.includes(":") || HEADING.test(whole))) return undefined;
  if (POD_ON_NODE.test(words)) return { pod: true };
  if (NODE_WORD.test(words)) return { name: words.toLowerCase().replaceAll(/[^a-z0-9.-]+/g, "-") };
  const host = HOST.exec(words)?.[1];
  if (host !== undefined && !NO_HOST.test(host) && !POD.test(host)) return { name: shortName(host) };
  const told = TOLD.test(words) || (HEADING.test(whole) && !colons.includes(":") && SAID.test(words));
  const named = POD_WORD.test(words) && !ABOUT.test(words) && !told;
  return named ? { pod: true } : undefined;
}

/** A name as hosts have it, ending with a number, or an address: "On k8s-w1:", "**ip-10-0-3-17**", "### 10.0.3.17". */
const HOST = /^(?:(?:on|from|at|in) )?((?:\d{1,3}\.){3}\d{1,3}|[a-z][a-z0-9]{0,20}(?:-[a-z0-9]{1,20}){0,5}-[a-z]{0,8}\d{1,4})$/i;
/** What has such a name, too: programs with their versions, pods, and looks at one and the same machine. */
export const NO_HOST =
  /^(?:after|attempt|before|calico|case|cilium|container|coredns|debian|el|etcd|fix|flannel|iptables|kernel|kube|kubernetes|linux|log|option|part|pass|phase|problem|rhel|round|run|sample|scenario|solution|stage|step|take|test|time|try|ubuntu|v|version|workaround)\d{0,4}-/i;

interface Output {
  readonly command: string;
  readonly machine?: Machine | undefined;
}

/** Of so many questions that were asked of the first machine, too, somebody looked at both of them alike, and neither explains the other. */
const ALONGSIDE = 3;

/** What a firewall lets pass is told by the devices of its own machine alone. */
const isFirewall = (command: string): boolean => readersOf(bareOf(command)).some(({ fact: { id } }) => id === "iptables" || id === "nft");

/** Which way a packet goes on a machine is told by all of its own routes and rules together, and by no other's. */
const isWay = (command: string): boolean => readersOf(bareOf(command)).some(({ fact: { id } }) => id === "route" || id === "rule");

/** What the cluster says of each of its nodes, wherever it is asked. */
const ofCluster = (command: string): boolean => {
  const { argv, foreign } = commandLine(command);
  return !foreign && argv[0] === "kubectl" && argv[1] === "get";
};

/** What is read from answers to different questions: that a device is not there, that nothing answers. */
const ANY_QUESTION = new Set(["absent-device", "peer-entry", "line-count", "unreachable-message", "no-route-message"]);

/** Whether an output answers one of the questions that these answer; in other words (`nstat -az` and `netstat -s`) it is the same question, too. */
function asking(outputs: readonly Output[]): (output: Output) => boolean {
  // what is fetched names its machine itself, and a page of metrics answers many questions
  const idsOf = (command: string): string[] => (/^(?:curl|wget) /.test(command) ? [] : readersOf(command).map(({ fact }) => fact.id));
  const keys = (command: string): string[] => [command, ...idsOf(command).flatMap((id) => (ANY_QUESTION.has(id) ? [] : ` ${id}`))];
  const seen = new Set(outputs.flatMap(({ command }) => keys(bareOf(command))));
  return ({ command }) => keys(bareOf(command)).some((key) => seen.has(key));
}

/**
 * The outputs of a text by machine. What several machines show is read together, because one often explains the other (an address here, the neighbour entry for it
 * there); but the same command again on another machine is no second look at the first one. Each machine of which there is such an output is read by itself, too,
 * and by itself alone where there are several, or where its routes or its firewall are shown. The first list is the one that is read together.
 */
export function byMachine<T extends Output>(outputs: readonly T[]): readonly { readonly name?: string; readonly outputs: readonly T[] }[] {
  const known = outputs.filter(({ command, machine }) => machine?.name !== undefined && isKnown(command));
  const unnamed = outputs.filter(({ machine }) => machine?.name === undefined);
  // what was asked of other machines from one without a name, and of that one as well
  const asked = asking(unnamed);
  const here =
    known.every(({ command }) => ofRemote(command) !== undefined) &&
    (known.some(asked) || (known.some(({ command }) => isWay(command)) && unnamed.some(({ command }) => isWay(command))));
  // kubectl may run on a machine of which nothing else is told
  const main = here ? undefined : (known.find(({ command }) => !asksAnywhere(command)) ?? known[0])?.machine?.name;
  const seen = asking([...unnamed, ...known.filter(({ machine }) => machine?.name === main)]);
  const repeated = (output: T): boolean => output.machine?.name !== undefined && output.machine.name !== main && seen(output);
  const again = known.filter(repeated);
  const apart = new Set(
    known
      .filter((output) => output.machine?.name !== main && (isWay(output.command) || isFirewall(output.command)) && !repeated(output))
      .map(({ machine }) => machine?.name),
  );
  const others = new Set([...again.map(({ machine }) => machine?.name), ...apart]);
  const guarded = new Set(outputs.filter(({ command }) => isFirewall(command)).map(({ machine }) => machine?.name));
  const alongside = new Set(
    [...others].filter(
      (name) => apart.has(name) || again.filter(({ machine }) => machine?.name === name).length >= ALONGSIDE || guarded.has(main) || guarded.has(name),
    ),
  );
  const together = outputs.filter((output) => !repeated(output) && !alongside.has(output.machine?.name));
  const isOf =
    (name: string | undefined) =>
    (output: T): boolean =>
      output.machine?.name === name || (apart.has(name) && output.machine?.pod !== true && ofCluster(output.command));
  return [{ outputs: together }, ...[...others].map((name) => ({ name: name ?? "", outputs: outputs.filter(isOf(name)) }))];
}
