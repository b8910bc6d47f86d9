import type { Capture } from "./capture.ts";
import { commandLine, isPromptLine, withoutPrompt } from "./command.ts";
import { asKubectl } from "./kubectl-command.ts";

const NAME = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/i;
const STATIC = /^\s{0,20}(?:Static|Transient) hostname: (\S{1,253})$/gm;
/** `root@wk-1:~# `, `[root@wk-1 ~]# `. */
const PROMPT = /^\s{0,8}\[?[\w.-]{1,64}@([\w.-]{1,64})[\s:\]]/;
/** What a machine is called that was never given a name. */
const NOBODY = new Set(["localhost", "localhost.localdomain", "(none)", "linux"]);

/**
 * What the node of a capture is called: the capture's target, what `hostname`, `hostnamectl` and `uname` printed, and the prompts that people copied along with
 * commands. Lower case, each once. A prompt before kubectl or ssh is left out: those ask about other nodes, too, often from another machine. Of pasted texts
 * that name no node the target is "pasted", or what somebody called the folder: a name only where the texts have it, too.
 */
export function nodeNames(capture: Capture): string[] {
  const unnamed = capture.unnamed === true || (capture.transport === "paste" && capture.target === "pasted");
  const names = new Set<string>(unnamed && !isTold(capture) ? [] : [capture.target.toLowerCase()]);
  for (const output of capture.outputs) {
    const { argv, foreign } = commandLine(output.argv ?? output.command);
    if (foreign) continue;
    const text = output.text.slice(0, 2000);
    const prompts = remote(argv) ? [] : [output.command, text.trimStart().split("\n", 1)[0] ?? ""].map(promptHost);
    for (const name of [...printed(argv, text), ...prompts]) {
      if (name !== undefined && NAME.test(name) && !NOBODY.has(name.toLowerCase())) names.add(name.toLowerCase());
    }
  }
  return [...names];
}

function isTold({ target, outputs }: Capture): boolean {
  if (target === "pasted") return false;
  const label = target.split(".", 1)[0] as string;
  const word = new RegExp(`(?<![\\w.-])${(/[a-z]/i.test(label) ? label : target).replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&")}(?![\\w-])`, "i");
  return outputs.some(({ command, text }) => word.test(command) || word.test(text));
}

/**
 * True if a node is called so: the same name, or one is the other without its domain ("wk-1" and "wk-1.example.org"). Addresses, which some clusters use as names, only as a whole.
 */
export function isCalled(names: readonly string[], name: string): boolean {
  const wanted = name.toLowerCase();
  return names.some((own) => own === wanted || (/[a-z]/.test(`${own}${wanted}`) && (own.startsWith(`${wanted}.`) || wanted.startsWith(`${own}.`))));
}

/** {@link isCalled} of the node of the capture; undefined where nothing names it, or `name` is not told. */
export const isOwn = (names: readonly string[] | undefined, name: string | undefined): boolean | undefined =>
  names === undefined || name === undefined ? undefined : isCalled(names, name);

/** A number, or a letter that counts as one does: "wk-a", "rack2b". */
const COUNTED = /\d{1,20}|(?<=[-_\d])[a-z](?=[-_.]|$)/g;
/** True if a name follows the pattern of one of these, which differ from it in what counts alone: "ip-10-0-1-7.ec2.internal" and "ip-10-0-2-19.ec2.internal". */
export function isNamedAlike(names: readonly string[], name: string): boolean {
  const pattern = (text: string): string => text.toLowerCase().replaceAll(COUNTED, "0");
  return names.some((own) => own !== name.toLowerCase() && pattern(own) === pattern(name));
}

/** `ssh -i key root@wk-2 'ip route'`: the machine, without its domain, and the first word of what runs there. Addresses are no names. */
const REMOTE =
  /^(?:sudo |time ){0,2}ssh(?: -[1246AaCfgKkMNnqsTtVvXxYy]{1,8}| -[BbcDEeFIiJLlmOopQRSWw] ?\S{1,200}){0,12} (?:[\w.-]{1,64}@)?((?=[\w.-]{0,252}[a-zA-Z])[A-Za-z0-9][\w.-]{0,252}) (?:-- )?["']?(?:sudo )?([\w./-]{1,64})/;
/** `ssh admin@10.0.0.12 ip route`: the address, and the first word of what runs there. */
const REMOTE_ADDRESS = new RegExp(REMOTE.source.replace("(?=[\\w.-]{0,252}[a-zA-Z])[A-Za-z0-9][\\w.-]{0,252}", "\\d{1,3}(?:\\.\\d{1,3}){3}"));
/** `kubectl debug node/wk-2 -it --image=busybox -- chroot /host ip route`, `oc debug node/wk-2 -- …`, `kubectl node-shell wk-2 -- …`: the same. */
const DEBUGGED =
  /^kubectl (?:\S{1,100} ){0,6}?(?:debug (?:\S{1,100} ){0,6}?nodes?\/|node-shell )([a-z0-9][a-z0-9.-]{0,252}) (?:\S{1,100} ){0,12}?-- (?:chroot \/host )?([\w./-]{1,64})/;
const NODES_LISTED = /^kubectl get (?:no|nodes?)(?: |$)/;
/** A row of `kubectl get nodes -o wide`: the name, and the node's own address behind its version. */
const NODE_ROW = /^([a-z0-9][a-z0-9.-]{0,252})\s{1,200}(?:Not)?Ready\S{0,40}\s.{0,200}?\sv1\.\S{1,40}\s{1,40}(\d{1,3}(?:\.\d{1,3}){3})\s/;

/** Addresses that a list of nodes has for others than this node, which is in the list, too. */
function addressesElsewhere(capture: Capture, names: readonly string[]): ReadonlySet<string> {
  const others = new Set<string>();
  let listed = false;
  for (const { argv, command, text } of capture.outputs) {
    if (!NODES_LISTED.test(commandLine(argv ?? command).argv.join(" "))) continue;
    for (const line of text.split("\n", 5000)) {
      const [, name, address] = NODE_ROW.exec(line.slice(0, 1000)) ?? [];
      if (name === undefined || address === undefined) continue;
      if (isCalled(names, name)) listed = true;
      else others.add(address);
    }
  }
  return listed ? others : new Set();
}

/** What tells of the cluster or the network, from whichever node it is asked. */
const ANYWHERE =
  /^(?:kubectl|oc|k3s|rke2|k0s|microk8s(?:\.kubectl)?|helm|calicoctl|cilium|hubble|etcdctl|aws|az|gcloud|curl|wget|ping6?|arping|arp-scan|tcpdump|traceroute|tracepath|mtr|nc|dig|nslookup|host)$/;

/** True of a command whose answer is the cluster's or the network's: the prompt before it need not be the node's. */
export const asksAnywhere = (command: string): boolean => ANYWHERE.test(commandLine(command).argv[0] ?? "");

/**
 * Which outputs of a capture, by index, are of a neighbour of its node: asked through ssh or a debug pod on a machine whose name differs from the node's in numbers
 * alone, or at an address that a list of nodes has for another one, in a capture that has the node's own outputs as well. Without these the node may go by another name there.
 */
export function ofNeighbours(capture: Capture): ReadonlySet<number> {
  const asked = capture.outputs.map(({ argv, command }) => (argv?.join(" ") ?? command).slice(0, 4000));
  const remotes = asked.map((command) => REMOTE.exec(command) ?? DEBUGGED.exec(asKubectl(withoutPrompt(command))));
  const addressed = asked.map((command) => REMOTE_ADDRESS.exec(command)?.[1]);
  if (remotes.every((match) => match === null) && addressed.every((address) => address === undefined)) return new Set();
  // what a neighbour says it is called is no name of this node
  const names = nodeNames({ ...capture, outputs: capture.outputs.filter((_, index) => remotes[index] === null) });
  // "wk-1" is "wk-01", too
  const short = (name: string): string => (name.split(".", 1)[0] as string).replace(/(^|\D)0{1,20}(?=\d)/g, "$1");
  const alike = names.filter((name) => /[a-z]/.test(name)).map(short);
  const elsewhere = addressed.some((address) => address !== undefined) ? addressesElsewhere(capture, names) : new Set<string>();
  const found = new Set<number>();
  let own = false;
  for (const [index, { argv, command }] of capture.outputs.entries()) {
    const [, host, program = commandLine(argv ?? command).argv[0] ?? "kubectl"] = remotes[index] ?? [];
    if (ANYWHERE.test(program)) continue;
    if (elsewhere.has(addressed[index] ?? "")) found.add(index);
    else if (host !== undefined && !isCalled(names, host) && isNamedAlike(alike, short(host))) found.add(index);
    else own = true;
  }
  return own ? found : new Set();
}

const promptHost = (line: string): string | undefined => (isPromptLine(line) ? PROMPT.exec(line)?.[1] : undefined);

const remote = (argv: readonly string[]): boolean => /^(?:kubectl|oc|k3s|ssh|crictl|docker)$/.test(argv[0] ?? "");

function printed(argv: readonly string[], text: string): (string | undefined)[] {
  const first = text.trim().split("\n", 1)[0]?.trim() ?? "";
  const all = argv.slice(1).join(" ");
  if (argv[0] === "hostname") return /^(?:-[fs]|--fqdn|--short|--long)?$/.test(all) ? [first] : [];
  if (argv[0] === "cat" && all === "/etc/hostname") return [first];
  if (argv[0] === "hostnamectl") return /^(?:status)?$/.test(all) ? [...text.matchAll(STATIC)].map((match) => match[1]) : [];
  if (argv[0] !== "uname") return [];
  return all === "-n" ? [first] : /^(?:-a|--all)$/.test(all) ? [/^Linux (\S{1,253}) \d/m.exec(text)?.[1]] : [];
}
