import { decodeText, type Head } from "../transports/archive.ts";
import { type Draft, type DraftOutput, type Importer, isKnown, onlyLines, withoutRawDmesg } from "./bundle.ts";
import { commandIn, type FileTable, inTwo } from "./file-table.ts";

/** A bundle of the EKS log collector: `eks_i-0123456789abcdef0_2026-11-21_0352-UTC_0.7.8.tar.gz`. It names files, not commands. */

/** Which command wrote a file, as its script has it. */
const COMMANDS: FileTable = [
  [/(?:^|\/)networking\/iptables-save\.txt$/, "iptables-save"],
  [/(?:^|\/)networking\/ip6tables-save\.txt$/, "ip6tables-save"],
  [/(?:^|\/)networking\/iptables-legacy-save\.txt$/, "iptables-legacy-save"],
  [/(?:^|\/)networking\/iptables-(filter|nat|mangle)\.txt$/, "iptables --numeric --verbose --list --table $1"],
  [/(?:^|\/)networking\/ip6tables-(filter|nat|mangle)\.txt$/, "ip6tables --numeric --verbose --list --table $1"],
  [/(?:^|\/)networking\/iprule\.txt$/, "ip rule show"],
  [/(?:^|\/)networking\/ip6rule\.txt$/, "ip -6 rule show"],
  [/(?:^|\/)networking\/iproute\.txt$/, "ip route show table all"],
  [/(?:^|\/)networking\/ip6route\.txt$/, "ip -6 route show table all"],
  [/(?:^|\/)networking\/ifconfig\.txt$/, "ifconfig"],
  [/(?:^|\/)networking\/nftables\.txt$/, "nft list ruleset"],
  [/(?:^|\/)networking\/resolv\.conf$/, "cat /etc/resolv.conf"],
  [/(?:^|\/)kernel\/dmesg\.current$/, "dmesg"],
  [/(?:^|\/)kernel\/dmesg\.human\.current$/, "dmesg -T"],
  [/(?:^|\/)kernel\/uname\.txt$/, "uname -a"],
  [/(?:^|\/)sysctls\/sysctl_all\.txt$/, "sysctl -a"],
  [/(?:^|\/)kubelet\/kubelet\.log$/, "journalctl -u kubelet"],
  [/(?:^|\/)containerd\/containerd-log\.txt$/, "journalctl -u containerd"],
  [/(?:^|\/)docker\/docker\.log$/, "journalctl -u docker"],
  [/(?:^|\/)ipamd\/(enis|pods|eni-configs|networkutils-env-settings|ipamd-env-settings)\.json$/, "curl -s http://localhost:61679/v1/$1"],
  [/(?:^|\/)ipamd\/metrics\.json$/, "curl -s http://localhost:61678/metrics"],
  [/(?:^|\/)cni\/([\w.-]+\.(?:conf|conflist|json))$/, "cat /etc/cni/net.d/$1"],
  [/(?:^|\/)system\/services\.txt$/, "systemctl list-units"],
  [/(?:^|\/)system\/ps\.txt$/, "ps aux"],
  [/(?:^|\/)system\/netstat\.txt$/, "netstat -plant"],
  [/(?:^|\/)var_log\/(aws-routed-eni\/[\w.-]+\.log)$/, "cat /var/log/$1"],
  [/(?:^|\/)var_log\/(messages|syslog)$/, "cat /var/log/$1"],
  [/(?:^|\/)var_log\/((?:kube-system_)?(?:aws-node|kube-proxy|coredns)[\w.-]*(?:\/[\w.-]+){0,2}(?:\.log)?)$/, "cat /var/log/pods/$1"],
];
const CONNTRACK = /(?:^|\/)networking\/conntrack6?\.txt$/;
const ETHTOOL = /(?:^|\/)networking\/ethtool\.txt$/;
const INSTANCE = /(?:^|_)(i-[0-9a-f]{8,17})(?:_|$)/;

/** When it was made, as the archive's name has it, or the folder's. */
const MADE = /(?:^|\/)eks_i-[0-9a-f]{8,17}_(\d{4}-\d{2}-\d{2})_(\d{2})(\d{2})-UTC_/;
const CURL = /(?:^|\/)networking\/curl_api_server\.txt$/;
/** `curling https://… (5 of 5) 2026-11-21T03:52:07.000UTC`: the collector's own note of the time. */
const CURLED = /^curling .{1,300} \(\d of \d\) (\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.\d{1,9})?UTC$/gm;

/** In one file: `ipvsadm --save`, whose addresses are names; then `--list --numeric` with --rate, and with --stats, which shows the same again. */
const IPVS = /(?:^|\/)networking\/ipvsadm\.txt$/;
/** `ipset --list`, then `ipset --save`. */
const IPSET = /(?:^|\/)networking\/ipset\.txt$/;

export const eksLogCollector: Importer = {
  id: "eks-log-collector",
  title: "a bundle of the EKS log collector",
  recognize(names) {
    const has = (pattern: RegExp): boolean => names.some((name) => pattern.test(name));
    if (!has(/(?:^|\/)networking\/(?:iprule|iproute|conntrack|iptables-save)\.txt$/) || !has(/(?:^|\/)(?:ipamd|sysctls|kubelet|var_log)\//)) return undefined;
    return (name) =>
      commandIn(COMMANDS, name) !== undefined ||
      CONNTRACK.test(name) ||
      ETHTOOL.test(name) ||
      IPVS.test(name) ||
      IPSET.test(name) ||
      CURL.test(name) ||
      /(?:^|\/)system\/instance-id\.txt$/.test(name);
  },
  read(files, names, bundle) {
    const outputs: Draft["outputs"][number][] = [];
    let target = INSTANCE.exec(bundle)?.[1];
    let startedAt = timeIn(names, bundle);
    for (const [name, head] of files) {
      target ??= INSTANCE.exec(name.split("/")[0] ?? "")?.[1];
      if (CONNTRACK.test(name)) outputs.push(...partsOf(name, head, /^\*{3} Output of (conntrack -[SL](?: -f ipv6)?) ?\*{3} ?\r?$/, ""));
      if (ETHTOOL.test(name)) outputs.push(...partsOf(name, head, /^Interface ([^\s/]{1,15})\r?$/, "ethtool -S "));
      if (IPVS.test(name))
        outputs.push(
          ...partsOf(name, head, /^(IP Virtual Server) version /, "")
            .slice(0, 1)
            .map((part) => ({ ...part, command: "ipvsadm --list --numeric --rate" })),
        );
      if (IPSET.test(name))
        outputs.push(...inTwo({ command: "ipset --list", file: name, text: decodeText(head.bytes), truncated: head.truncated }, "ipset --save", /^create /));
      if (CURL.test(name)) startedAt = [...decodeText(head.bytes).matchAll(CURLED)].map(([, time]) => `${time}Z`).at(-1) ?? startedAt;
      const command = commandIn(COMMANDS, name);
      if (command === undefined || !isKnown(command)) continue;
      outputs.push({ command, file: name, text: withoutTotals(decodeText(head.bytes)), truncated: head.truncated });
    }
    const id = [...files].find(([name]) => name.endsWith("system/instance-id.txt"));
    if (id !== undefined) target ??= decodeText(id[1].bytes).trim().slice(0, 64) || undefined;
    return [{ target, startedAt, outputs: withoutRawDmesg(outputs) }];
  },
};

function timeIn(names: readonly string[], bundle: string): string | undefined {
  const [, day, hour, minute] = MADE.exec(bundle) ?? MADE.exec(names[0] ?? "") ?? [];
  return day === undefined ? undefined : `${day}T${hour}:${minute}:00Z`;
}

/** Several outputs in one file: `*** Output of conntrack -S ***`, its lines, then the same for -L; `Interface eth0` and what `ethtool -S eth0` printed. */
function partsOf(name: string, head: Head, header: RegExp, program: string): DraftOutput[] {
  const lines = decodeText(head.bytes).split("\n");
  const starts = lines.flatMap((line, i) => {
    const command = header.exec(line)?.[1];
    return command === undefined ? [] : [{ command: program + command, from: i + 2 }];
  });
  return starts.map(({ command, from }, i) => {
    const to = (starts[i + 1]?.from ?? lines.length + 2) - 2;
    return { command, file: name, text: onlyLines(lines, from, to), truncated: head.truncated && i === starts.length - 1 };
  });
}

/** The collector counts the rules below each listing: `=======`, `Total Number of Rules: 41`. */
const withoutTotals = (text: string): string => text.replace(/^=======\r?\nTotal Number of Rules: \d+\r?$/m, "\n");
