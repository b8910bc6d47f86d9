import { basename } from "node:path";
import { tellsTime } from "../facts/date-output.ts";
import { isKnown } from "./bundle.ts";
import { withoutMark } from "./sample-names.ts";

/** Files that are named after the command whose output they hold. */

/** Whoever names files after commands has their signs in the names: `kubectl_logs_kube-proxy-x7k2p_--tail=50.txt`, `sysctl_-a_|_grep_rp_filter.txt`. */
const TEXT = /(?:^|\/)[^\p{Cc}/]{1,200}\.(?:txt|log|out|md)(?:\.(?:gz|xz|zst))?$/u;
const END = /(?:\.(?:txt|log|out|md|json|stdout|cmd))?(?:\.(?:gz|xz|zst))?$/;
/** The end of a name of a text that was packed by itself. */
const COMPRESSED = /(?<=\.(?:txt|log|out|md|json))\.(?:xz|zst)$/;
/** Scripts number what they write, and say what it is: `07_ip_route.txt`, `cmd-7-ip_route.txt`, `output_of_ip_route.txt`. */
const NUMBER = /^(?:(?:cmd|command|output|result)(?:[\s_-]of)?[\s._-]{1,2})?(?:\d{1,3}[\s._-]{1,3})?(?=[a-z])/;
/** When it was written: `ip_route_20261119-0914.txt`, `dmesg.2026-11-19T09:14:20Z.log`. Behind `--since` it is part of the command. */
const STAMP = /(?<!since|until)[\s._-]{1,2}20\d\d(-?)(?:0\d|1[0-2])\1[0-3]\d(?:[T_-]?[0-2]\d[:_-]?[0-5]\d(?:[:_-]?[0-5]\d)?(?:Z|UTC)?)?$/;

/** The programs that such commands begin with, as alternatives of an expression. */
export const PROGRAMS =
  "ip6?|ipvsadm|ipset|ipsec|ifconfig|route|arp|arping|bridge|brctl|tc|ip6?tables|ebtables|nft|firewall-cmd|ufw|ss|netstat|nstat|sar|lsof|conntrack|ethtool|sysctl|lsmod|dmesg|journalctl|systemctl|networkctl|nmcli|resolvectl|timedatectl|chronyc|date|ps|cat|ls|grep|tail|head|ovs|bpftool|cilium|calicoctl|birdc?|vtysh|kubectl|crictl|docker|podman|nsenter|curl|ping|tracepath|tcpdump|wg|uname|uptime|hostname|sudo|timeout|sleep|k3s|oc|talosctl|adjtimex|awk|aws|bpftrace|chroot|command|dig|dropwatch|find|for|kubeadm|logread|lslocks|nc|ndisc6|nerdctl|nslookup|ntp(?:q|stat|date|time|ctl)|readlink|ssh|stern|systemd|time|udevadm|vmware|wc|wget|which|while|xtables|proc|sys|etc|run|var";

/** What the names of such files begin with: of a folder with very many files only these are looked at more closely. */
const PROGRAM = new RegExp(
  String.raw`(?:^|\/)(?:(?:cmd|command|output|result)(?:[\s_-]of)?[\s._-]{1,2})?(?:\d{1,3}[\s._-]{1,3})?(?:${PROGRAMS})[^\p{Ll}/][^\p{Cc}/]{0,119}$|(?:^|\/)(?:(?:ip6?|eb)tables(?:-nft|-legacy)?-save|dmesg|lsmod|nstat|date|uptime|timedatectl|ifconfig)$`,
  "u",
);

const PACKED = /\.(?:xz|bz2|zst|lz4|zip|tgz|tar|7z|pcapng?|cap|png|jpe?g|svg|pdf|html?|sh|py|go|ts|rs|swp|bak|sum|sha256)$/;

/** True for a file that people save outputs in; of other names only those that are commands: `ip_-s_link`, `ip_-j_route.json`. */
export const isText = (name: string): boolean =>
  !PACKED.test(name.replace(COMPRESSED, "")) &&
  (TEXT.test(name) ||
    (PROGRAM.test(plain(name)) && [...commandNamed(name), ...commandNamed(withoutMark(name))].some((command) => isKnown(command) || tellsTime(command))));

const OPTION = /[\s_]-{1,2}[A-Za-z]/;
/** `host-1_dmesg.txt`, `docker-2-ip_route.txt`: machines that are called like programs, and the command behind them. */
const MACHINE_FIRST = /^(?:host|docker|wrk)[_-]\d{1,4}[\s_-]{1,2}[a-z]/;

/** `ip-route-show.txt`, `iptables_-t_nat_-S.log`, `proc_net_softnet_stat.txt` → what the command may be, the most likely first. */
export function commandNamed(name: string): readonly string[] {
  const bare = plain(basename(name)).replace(END, "").replace(NUMBER, "").replace(STAMP, "");
  if (MACHINE_FIRST.test(bare)) return [];
  // `conntrack--S`: the second sign is the option's
  const optioned = bare
    .split("--")
    .map((part) => part.replaceAll("-", " "))
    .join(" -");
  // a name with options of its own is not to lose them: `journalctl_-k_-b_-1` is of another boot
  const others = OPTION.test(bare) ? [] : [bare.replaceAll("-", " "), bare.replaceAll(/[_-]/g, " ")];
  return [...withOptions(bare), bare, ...filesNamed(bare), bare.replaceAll("_", " "), hyphened(optioned), ...others.map(hyphened)];
}

/** Words that have the sign themselves. */
const HYPHENS: readonly RegExp[] = [
  /\b(?:ip6?|eb)tables(?: (?:legacy|nft))? save\b/g,
  /\bovs (?:vsctl|appctl|ofctl)\b|\bcilium dbg\b|\bsystemd analyze\b|\bfirewall cmd\b/g,
  /\bkube (?:system|proxy|dns)\b|\bcalico (?:node|system)\b|\bkube-system\b|\bnode local dns\b/g,
  /\b(?:list (?:units|unit files)|is (?:active|enabled)|timesync status|cat config|list all|get active zones)\b/g,
  /\b(?:KUBE|DOCKER|CILIUM|FLANNEL|CNI|OLD CILIUM)(?: [A-Z\d]{2,20}){1,3}(?= |$)/g,
];
/** A folder of the system's, and what is in it. */
const FOLDERS = /(?:^| )[ -]?((?:proc|sys|etc|run|var|opt)(?: [\w.]{1,40}){1,8})$/;

/** A command of which every sign between words was a hyphen, with those that were hyphens or slashes. */
function hyphened(command: string): string {
  let whole = command;
  for (const pattern of HYPHENS) whole = whole.replaceAll(pattern, (words) => words.replaceAll(" ", "-"));
  return whole.replace(FOLDERS, (_, path: string) => ` /${path.replaceAll(" ", "/")}`);
}

/** `ip%20route`, and `cat ∕proc∕net∕dev` with a sign that looks like a slash: what scripts make of signs that no file's name may have. */
function plain(name: string): string {
  const slashed = name.replaceAll(/[∕⁄]/g, "_");
  if (!/%[\dA-Fa-f]{2}/.test(slashed)) return slashed;
  return slashed.replaceAll(/%(?:20|2[fF])/g, "_").replaceAll(/%([2-7][\dA-Fa-f])/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

/** Programs that people run with a few letters of options, and which these may be. */
const LETTERS: readonly (readonly [RegExp, RegExp])[] = [
  [/^(?:ip|bridge|tc)$/, /^(?:[46dsjo]|br)$/],
  [/^ss$/, /^[natuplemiosrwx]{1,5}4?$/],
  [/^netstat$/, /^[anptulsrieg]{1,6}$/],
  [/^(?:arp|route)$/, /^(?:n|an|a|en|e)$/],
  [/^nstat$/, /^[asz]{1,3}$/],
  [/^(?:sysctl|uname)$/, /^[ar]$/],
  [/^chronyc$/, /^n$/],
  [/^ntpq$/, /^(?:p|pn|np)$/],
  [/^nmcli$/, /^[tp]$/],
  [/^dmesg$/, /^[TH]$/],
  [/^(?:ip6?|eb)tables(?:-nft|-legacy)?$/, /^(?:[nvLSls]{1,4}|t)$/],
  [/^(?:ip6?|eb)tables(?:-nft|-legacy)?-save$/, /^(?:c|t)$/],
  [/^conntrack$/, /^[SLCslc]$/],
  [/^ipvsadm$/, /^[Llnc]{2,3}$/],
  [/^ethtool$/, /^[kSigcalns]$/],
  [/^(?:bpftool|nft)$/, /^[jafp]$/],
  [/^journalctl$/, /^[ukb]$/],
  [/^date$/, /^[uIR]s?$/],
];
/** Their letters are large where they list something: a name in lower case has lost that. */
const CAPITALS = /^(?:(?:ip6?|eb)tables(?:-nft|-legacy)?|conntrack)$/;
/** Programs with the sign in their own name. */
const PARTS = /^((?:ip6?|eb)tables)[ _-](?:(nft|legacy)[ _-])?(save)(?=[ _-]|$)|^(ovs)[ _-](vsctl|appctl|ofctl)(?=[ _-])/;

/** `ip-s-link`, `ss_lntup`, `iptables-save-c`, `conntrack-s`: names with one sign for all, so that the options lost theirs. None where the name has options of its own. */
function withOptions(bare: string): string[] {
  if (bare.length > 120 || /(?:^|[\s_])-|--|\//.test(bare)) return [];
  const parts = PARTS.exec(bare)?.filter((part) => part !== undefined) ?? [];
  const [first = "", ...rest] = bare.slice(parts[0]?.length ?? 0).split(/[\s_-]+/);
  const program = parts.length > 0 ? parts.slice(1).join("-") : first;
  const letters = LETTERS.find(([name]) => name.test(program))?.[1];
  const words: string[] = [];
  let open = letters !== undefined;
  for (const [i, word] of rest.entries()) {
    const value = /^[tub]$/.test(rest[i - 1] ?? "") && words.at(-1)?.startsWith("-") === true;
    if (open && !value && letters?.test(word) === true) {
      const large = program === "ethtool" ? word === "s" : CAPITALS.test(program) && word !== "t";
      words.push(`-${large ? word.replaceAll(/[lsc]/g, (letter) => letter.toUpperCase()) : word}`);
    } else {
      open = value;
      const dashed =
        program === "kubectl"
          ? word === "A" || (word === "o" && rest[i + 1] === "wide") || (word === "n" && rest[i + 1] !== undefined)
          : program === "journalctl" && rest[i - 1] === "b" && /^\d{1,2}$/.test(word);
      words.push(dashed ? `-${word}` : word);
    }
  }
  const command = hyphened([program, ...words].join(" "));
  return command.includes(" -") || parts.length > 0 ? [command] : [];
}

/**
 * `cat__proc_sys_net_ipv4_ip_forward`, `etc-resolv.conf`, `ls -la _etc_cni_net.d` → `cat /proc/sys/net/ipv4/ip_forward`, `cat /etc/resolv.conf`,
 * `ls -la /etc/cni/net.d`: which of the signs were slashes, the last parts of a path do not tell.
 */
function filesNamed(given: string): string[] {
  // `cat .proc.sys.net.ipv4.ip_forward`
  const bare = given.replace(/(?<=^|[\s_])\.?(?:proc|sys)(?:\.\w{1,40}){2,8}$/, (path) => path.replaceAll(".", "_"));
  const [, client, host, port, page] = URL.exec(bare) ?? [];
  if (client !== undefined) return [`${client.replaceAll("_", " ")} http://${host ?? ""}:${port ?? ""}${(page ?? "").replaceAll("_", "/")}`];
  const [, program = "cat", path] = /^(?:([a-z].{0,200}?)[ _](?=_))?(?:cat[ _-]{1,2})?[_-]?((?:proc|sys|etc|run|var|usr)[_-][\w.-]{1,200})$/.exec(bare) ?? [];
  if (path === undefined) return [];
  const sign = path.includes("_") && /^(?:proc|sys|etc|run|var|usr)_/.test(path) ? "_" : "-";
  const parts = path.split(sign);
  const command = program.includes(" ") ? program : program.replaceAll("_", " ");
  const depth = PROC_FOLDERS.exec(parts.join("/"))?.[0].split("/").length;
  // the kernel's names have `_` between their words, but for those of a bridge
  const own = sign === "-" && !path.includes("bridge-nf-") ? "_" : sign;
  if (depth !== undefined) return [`${command} /${[...parts.slice(0, depth - 1), parts.slice(depth - 1).join(own)].join("/")}`];
  return [1, 2, 3].flatMap((last) => (parts.length > last ? [`${command} /${parts.slice(0, -last).join("/")}/${parts.slice(-last).join(sign)}`] : []));
}

/** `curl_-s_http:__localhost:61679_v1_enis`. */
const URL = /^(curl[\s_].{0,80}?)[\s_]?https?:?_{2,3}([\w.-]{1,63}?)[:_](\d{2,5})((?:_[\w.-]{1,60}){1,6})$/;

/** The kernel's own files have such signs in their names, in folders of a depth that is known. */
const PROC_FOLDERS =
  /^proc\/(?:sys\/(?:net\/(?:ipv[46]\/(?:(?:conf|neigh)\/[^/]{1,15}\/|(?:route|vs|xfrm)\/)?|(?:core|netfilter|bridge|unix|mptcp)\/)?|(?:kernel|vm|fs)\/)|net\/(?:(?:stat|bonding|vlan)\/)?)/;
