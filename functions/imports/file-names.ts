import { basename } from "node:path";
import { tellsTime } from "../facts/date-output.ts";
import { isKnown } from "./bundle.ts";
import { withoutMark } from "./sample-names.ts";

/** Files that are named after the command whose output they hold. */

/** Whoever names files after commands has their signs in the names: `kubectl_logs_kube-proxy-x7k2p_--tail=50.txt`, `sysctl_-a_|_grep_rp_filter.txt`. */
const TEXT = /(?:^|\/)[^\p{Cc}/]{1,200}\.(?:txt|log|out|md)(?:\.gz)?$/u;
const END = /(?:\.(?:txt|log|out|md|json|stdout|cmd))?(?:\.gz)?$/;
/** Scripts number what they write: `07_ip_route.txt`. */
const NUMBER = /^\d{1,3}[\s._-]{1,3}(?=[a-z])/;
/** When it was written: `ip_route_20261119-0914.txt`, `dmesg.2026-11-19T09:14:20Z.log`. Behind `--since` it is part of the command. */
const STAMP = /(?<!since|until)[\s._-]{1,2}20\d\d(-?)(?:0\d|1[0-2])\1[0-3]\d(?:[T_-]?[0-2]\d[:_-]?[0-5]\d(?:[:_-]?[0-5]\d)?(?:Z|UTC)?)?$/;

/** What the names of such files begin with: of a folder with very many files only these are looked at more closely. */
const PROGRAM =
  /(?:^|\/)(?:\d{1,3}[\s._-]{1,3})?(?:ip6?|ipvsadm|ipset|ipsec|ifconfig|route|arp|arping|bridge|brctl|tc|ip6?tables|ebtables|nft|firewall-cmd|ufw|ss|netstat|nstat|sar|lsof|conntrack|ethtool|sysctl|lsmod|dmesg|journalctl|systemctl|networkctl|nmcli|resolvectl|timedatectl|chronyc|date|ps|cat|ls|grep|tail|head|ovs|bpftool|cilium|calicoctl|birdc?|vtysh|kubectl|crictl|docker|podman|nsenter|curl|ping|tracepath|tcpdump|wg|uname|uptime|hostname|sudo|timeout|sleep|k3s|oc|talosctl|proc|sys|etc|run|var)[^\p{Ll}/][^\p{Cc}/]{0,119}$|(?:^|\/)(?:(?:ip6?|eb)tables(?:-nft|-legacy)?-save|dmesg|lsmod|nstat|date|uptime|timedatectl|ifconfig)$/u;

const PACKED = /\.(?:xz|bz2|zst|lz4|zip|tgz|tar|7z|pcapng?|cap|png|jpe?g|svg|pdf|html?|sh|py|go|ts|rs|swp|bak|sum|sha256)$/;

/** True for a file that people save outputs in; of other names only those that are commands: `ip_-s_link`, `ip_-j_route.json`. */
export const isText = (name: string): boolean =>
  !PACKED.test(name) &&
  (TEXT.test(name) ||
    (PROGRAM.test(name) && [...commandNamed(name), ...commandNamed(withoutMark(name))].some((command) => isKnown(command) || tellsTime(command))));

/** `ip-route-show.txt`, `iptables_-t_nat_-S.log`, `proc_net_softnet_stat.txt` → what the command may be, the most likely first. */
export function commandNamed(name: string): readonly string[] {
  const bare = basename(name).replace(END, "").replace(NUMBER, "").replace(STAMP, "");
  // `conntrack--S`: the second sign is the option's
  const optioned = bare
    .split("--")
    .map((part) => part.replaceAll("-", " "))
    .join(" -");
  return [bare, ...filesNamed(bare), bare.replaceAll("_", " "), optioned, bare.replaceAll("-", " "), bare.replaceAll(/[_-]/g, " ")];
}

/**
 * `cat__proc_sys_net_ipv4_ip_forward`, `etc-resolv.conf`, `ls -la _etc_cni_net.d` → `cat /proc/sys/net/ipv4/ip_forward`, `cat /etc/resolv.conf`,
 * `ls -la /etc/cni/net.d`: which of the signs were slashes, the last parts of a path do not tell.
 */
function filesNamed(bare: string): string[] {
  const [, client, host, port, page] = URL.exec(bare) ?? [];
  if (client !== undefined) return [`${client.replaceAll("_", " ")} http://${host ?? ""}:${port ?? ""}${(page ?? "").replaceAll("_", "/")}`];
  const [, program = "cat", path] = /^(?:([a-z].{0,200}?)[ _](?=_))?(?:cat[ _-]{1,2})?[_-]?((?:proc|sys|etc|run|var|usr)[_-][\w.-]{1,200})$/.exec(bare) ?? [];
  if (path === undefined) return [];
  const sign = path.includes("_") && /^(?:proc|sys|etc|run|var|usr)_/.test(path) ? "_" : "-";
  const parts = path.split(sign);
  const command = program.includes(" ") ? program : program.replaceAll("_", " ");
  const depth = PROC_FOLDERS.exec(parts.join("/"))?.[0].split("/").length;
  if (depth !== undefined) return [`${command} /${[...parts.slice(0, depth - 1), parts.slice(depth - 1).join(sign)].join("/")}`];
  return [1, 2, 3].flatMap((last) => (parts.length > last ? [`${command} /${parts.slice(0, -last).join("/")}/${parts.slice(-last).join(sign)}`] : []));
}

/** `curl_-s_http:__localhost:61679_v1_enis`. */
const URL = /^(curl[\s_].{0,80}?)[\s_]?https?:?_{2,3}([\w.-]{1,63}?)[:_](\d{2,5})((?:_[\w.-]{1,60}){1,6})$/;

/** The kernel's own files have such signs in their names, in folders of a depth that is known. */
const PROC_FOLDERS =
  /^proc\/(?:sys\/(?:net\/(?:ipv[46]\/(?:(?:conf|neigh)\/[^/]{1,15}\/|(?:route|vs|xfrm)\/)?|(?:core|netfilter|bridge|unix|mptcp)\/)?|(?:kernel|vm|fs)\/)|net\/(?:(?:stat|bonding|vlan)\/)?)/;
