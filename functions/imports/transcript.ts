import { commandLine, isPromptLine, withoutPrompt } from "../facts/command.ts";
import { type Draft, isKnown, onlyLines } from "./bundle.ts";

/**
 * What a person copied out of a terminal, an issue or a chat: prompts with commands and what they printed, `kubectl debug` sessions, blocks in Markdown,
 * headings that name the command. Where nothing names it, the text itself may: iptables-save signs its work.
 */

/** A prompt in front of a command; the first group is the host, if it names one. */
const PROMPT =
  /^[ \t]{0,8}(?:\[[\w.-]{1,64}@([\w.-]{1,64})[^\]\n]{0,80}\]|[\w.-]{1,64}@([\w.-]{1,64})(?::[^\s#$%]{0,80})?|([\w.-]{1,64}):[~/][^\s#$%>]{0,80}|(?:ba|k|z|da)?sh-[\d.]{1,8}|(?:\/[\w.-]{0,40}){1,6}|\([\w.-]{1,40}\))[ \t]{0,4}[#$%>][ \t]{1,8}(?=\S)/;
/** What stands there when the last command has ended. */
const EMPTY_PROMPT =
  /^[ \t]{0,8}(?:\[[\w.-]{1,64}@[\w.-]{1,64}[^\]\n]{0,80}\]|[\w.-]{1,64}@[\w.-]{1,64}(?::[^\s#$%]{0,80})?|(?:ba)?sh-[\d.]{1,8})[ \t]{0,4}[#$%][ \t]{0,8}$/;
/** A line that names the command: `=== ip route ===`, `*** Output of conntrack -S ***`, `## iptables -L`, `Output of "ip rule":`, `+ ip route`. */
const HEADING =
  /^[ \t]{0,4}(?:[=*#+>-]{1,12}[ \t]{0,4})?(?:[Oo]utput of:? {0,2}|[Cc]ommand:? {0,2}|[Rr]unning:? {0,2})?[`"']?([a-z][^`"'\n]{1,300}?)[`"']?:?[ \t]{0,4}(?:[=*#-]{2,40})?$/;
const FENCE = /^[ \t]{0,4}(?:```|~~~)[\w+-]{0,20}[ \t]{0,4}$/;
/** A shell inside of something else: what follows is not the node's until `exit`. */
const SHELL = /(?:^|[\s/])(?:ba|da|z|a)?sh(?:\s+-[il]+)?$/;
const NODE = /(?:\bdebug\s+(?:-\S+\s+)*nodes?\/|\bdebugging pod \S+ with container \S+ on node )([\w.-]{0,252}\w)/;

interface Section {
  readonly command: string;
  /** 1-based line of the first line that it printed. */
  readonly from: number;
  readonly to: number;
}

/**
 * The outputs in a pasted text. Empty if it names no command and shows none. Pure, total, linear.
 * `named`: commands that the file's name may mean, for a text that names none.
 */
export function readTranscript(text: string, file: string, named: readonly string[] = []): Draft {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const sections: Section[] = [];
  let target: string | undefined;
  const meant = named.find(isKnown);
  // a file that is named after a command is its output from the first line on, unless a prompt says otherwise
  let open: { command: string; from: number } | undefined = meant === undefined ? undefined : { command: meant, from: 1 };
  let block: number | undefined;
  // how deep in shells of other namespaces
  const shells: boolean[] = [];
  const close = (to: number): void => {
    if (open !== undefined && to >= open.from) sections.push({ ...open, to });
    open = undefined;
  };
  lines.forEach((line, i) => {
    if (line.length > 4000) return;
    const node = NODE.exec(line)?.[1];
    if (node !== undefined) target = node;
    if (FENCE.test(line)) {
      if (block !== undefined) {
        if (open === undefined) guess(lines, block, i, sections);
        close(i);
      }
      block = block === undefined ? i + 1 : undefined;
      return;
    }
    if (EMPTY_PROMPT.test(line)) {
      close(i);
      return;
    }
    const prompt = PROMPT.exec(line);
    const typed = prompt !== null ? line.slice(prompt[0].length).trim() : isPromptLine(line) ? plausible(withoutPrompt(line).trim()) : headingOf(line, open);
    if (typed === undefined) return;
    close(i);
    target ??= prompt?.[1] ?? prompt?.[2] ?? prompt?.[3];
    const inner = commandLine(typed);
    if (typed === "exit" || typed === "logout") shells.pop();
    else if (SHELL.test(typed) || /^(?:sudo )?chroot \S+$/.test(typed))
      shells.push(inner.foreign || /^(?:kubectl|docker|crictl|podman|nerdctl)\s+exec\b|\bnetns exec\b/.test(typed));
    else open = { command: shells.includes(true) ? `nsenter -t 0 -n ${typed}` : typed, from: i + 2 };
  });
  close(lines.length);
  if (sections.length === 0) guess(lines, 0, lines.length, sections);
  return {
    target,
    outputs: sections.map(({ command, from, to }) => ({ command, file, text: onlyLines(lines, from, withoutTail(lines, from, to)), truncated: false })),
  };
}

/** `# ` begins comments, too, and `$ ` prices: behind a bare sign only a command that netcheck reads, or that a person types all the time, counts. */
const TYPED =
  /^(?:sudo |cd |ls\b|cat |kubectl |docker |crictl |systemctl |journalctl |exit$|chroot |nsenter |ip |ping |curl |tcpdump |grep |echo |uname\b|date$|dmesg\b)/;
const plausible = (command: string): string | undefined => (isKnown(command) || TYPED.test(command) ? command : undefined);

/** Only a heading whose words are a command of ours: prose is full of colons. One word is not enough, except between signs. */
function headingOf(line: string, open: unknown): string | undefined {
  const match = HEADING.exec(line);
  const command = match?.[1]?.trim();
  if (command === undefined || !/^[a-z]/.test(command)) return undefined;
  const framed = /^[ \t]{0,4}[=*#+>`-]/.test(line) || /[Oo]utput of|[Cc]ommand|[Rr]unning/.test(line);
  if (!framed && (open !== undefined || !command.includes(" "))) return undefined;
  return isKnown(command) ? command : undefined;
}

function withoutTail(lines: readonly string[], from: number, to: number): number {
  let end = to;
  while (end > from && (lines[end - 1] ?? "").trim() === "") end--;
  return end;
}

/** How outputs begin that tell what they are. */
const SIGNS: readonly (readonly [RegExp, string])[] = [
  [/^# Generated by ip6tables-save/, "ip6tables-save"],
  [/^# Generated by iptables-save/, "iptables-save"],
  [/^# Generated by ebtables-save/, "ebtables-save"],
  [/^\*(?:filter|nat|mangle|raw|security)$/, "iptables-save"],
  [/^-[PA] (?:INPUT|FORWARD|OUTPUT|PREROUTING|POSTROUTING|KUBE-|cali-|CILIUM_)/, "iptables -S"],
  [/^Chain \S+ \((?:policy \S+|\d+ references?)/, "iptables -L -n -v"],
  [/^Bridge table: /, "ebtables -L"],
  [/^table (?:ip|ip6|inet|bridge|arp|netdev) \S+ \{/, "nft list ruleset"],
  [/^Kernel IP routing table/, "route -n"],
  [/^\d+:\t? {0,4}from /, "ip rule"],
  [/^\d+: [\w.@:-]+: <[A-Z,_0-9-]*> mtu \d+/, "ip addr"],
  [/^\S+ dev \S+ (?:lladdr \S+ )?(?:[a-z_ ]*)?(?:REACHABLE|STALE|FAILED|PERMANENT|DELAY|PROBE|INCOMPLETE|NOARP)/, "ip neigh"],
  [/^(?:default|[\d.]+(?:\/\d+)?|unreachable|blackhole|local|broadcast) .*\b(?:via|dev|scope)\b /, "ip route"],
  [/^(?:tcp|udp|icmp|icmpv6|sctp|unknown) +\d+ (?:\d+ )?.*src=\S+ dst=\S+ /, "conntrack -L"],
  [/^cpu=\d+\s+(?:found|entries|searched|insert)=/, "conntrack -S"],
  [/^\[ *\d+\.\d+\] /, "dmesg"],
  [/^\[[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [\d:]{8} \d{4}\] /, "dmesg -T"],
  [/^(?:net|kernel|fs|vm)\.[\w./-]+ = /, "sysctl -a"],
  [/^xdp:$|^tc:$/, "bpftool net show"],
  [/^CgroupPath$|^ID +AttachType/, "bpftool cgroup tree"],
  [/^\d+: (?:cgroup_sock_addr|sched_cls|cgroup_skb|kprobe|tracing)\b/, "bpftool prog show"],
  [/^bridge name\tbridge id/, "brctl show"],
  [/^---- \S+ ----$/, "ovs-appctl bond/show"],
  [/^KVStore:|^Kubernetes: +Ok|^KubeProxyReplacement:/, "cilium status"],
  [/^Calico process is running\./, "calicoctl node status"],
  [/^IP Virtual Server version/, "ipvsadm -Ln"],
  [/^Netid +State +Recv-Q/, "ss -lntup"],
  // behind a header without the protocol: the first state tells which sockets were asked for; what else is there is read as well
  [/^LISTEN +\d+ +\d+ /, "ss -lntp"],
  [/^UNCONN +\d+ +\d+ /, "ss -lnup"],
  [/^(?:ESTAB|[A-Z]+-(?:WAIT|SENT|RECV)(?:-\d)?|LAST-ACK) +\d+ +\d+ /, "ss -tnp"],
  [/^#kernel$/, "nstat -az"],
];

/** Looks at the first lines of a block that nothing names. */
function guess(lines: readonly string[], start: number, end: number, sections: Section[]): void {
  for (let i = start; i < Math.min(end, start + 20); i++) {
    const command = SIGNS.find(([sign]) => sign.test(lines[i] ?? ""))?.[1];
    if (command === undefined) continue;
    if (isKnown(command)) sections.push({ command, from: i + 1, to: end });
    return;
  }
}
