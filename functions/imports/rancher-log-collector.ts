import { toldByDate } from "../facts/date-output.ts";
import { decodeText } from "../transports/archive.ts";
import type { Importer } from "./bundle.ts";
import { commandIn, type FileTable, firstLine, outputsIn, rootAbove } from "./file-table.ts";

/** A bundle of Rancher's log collector (`rancher2_logs_collector.sh`; RKE, RKE2, K3s, kubeadm): `node1-2026-11-21_03_52_11.tar.gz`. Its files have no ending. */

const COMMANDS: FileTable = [
  [/^networking\/(ip6?)tablessave$/, "$1tables-save"],
  [/^networking\/(ip6?)tables$/, "$1tables --numeric --verbose --list"],
  [/^networking\/iptables(nat|mangle)$/, "iptables --numeric --verbose --list --table $1"],
  [/^networking\/ip6tables(nat|mangle)$/, "ip6tables --numeric --verbose --list --table $1"],
  [/^networking\/nft_ruleset$/, "nft list ruleset"],
  [/^networking\/netstat$/, "netstat --programs --all --numeric --tcp --udp"],
  [/^networking\/netstatistics$/, "netstat --statistics"],
  [/^networking\/ipvsadm$/, "ipvsadm -ln"],
  [/^networking\/ipaddrshow$/, "ip addr show"],
  [/^networking\/iproute$/, "ip route show table all"],
  [/^networking\/ipneighbour$/, "ip neighbour"],
  [/^networking\/iprule$/, "ip rule show"],
  [/^networking\/iplinkshow$/, "ip -s link show"],
  [/^networking\/ipv6neighbour$/, "ip -6 neighbour"],
  [/^networking\/ipv6rule$/, "ip -6 rule show"],
  [/^networking\/ipv6route$/, "ip -6 route show"],
  [/^networking\/ipv6addrshow$/, "ip -6 addr show"],
  [/^networking\/ifconfiga$/, "ifconfig -a"],
  [/^networking\/ss(anp|itan|tunlp4|tunlp6)$/, "ss -$1"],
  [/^networking\/cni\/([\w.-]{1,200})$/, "cat /etc/cni/net.d/$1"],
  [/^systeminfo\/dmesg$/, "dmesg -T"],
  [/^systeminfo\/sysctla$/, "sysctl -a"],
  [/^systeminfo\/lsmod$/, "lsmod"],
  [/^systeminfo\/ps$/, "ps auxfww"],
  [/^systeminfo\/uname$/, "uname -a"],
  [/^systeminfo\/osrelease$/, "cat /etc/os-release"],
  [/^systeminfo\/etcresolvconf$/, "cat /etc/resolv.conf"],
  [/^systeminfo\/systemd-resolved$/, "cat /run/systemd/resolve/resolv.conf"],
  [/^systeminfo\/systemd-units$/, "systemctl list-units"],
  [/^systeminfo\/ubuntu-ufw$/, "ufw status"],
  [/^systeminfo\/rhel-statusfirewalld$/, "systemctl status firewalld"],
  [/^systeminfo\/rhel-statusnetworkmanager$/, "systemctl status NetworkManager"],
  [/^systemlogs\/((?:messages|syslog|kern\.log))$/, "cat /var/log/$1"],
  [/^journald\/([\w-]{1,60})$/, "journalctl --unit=$1"],
  [/^k8s\/containerlogs\/(kube-proxy|kubelet)$/, "docker logs -t $1"],
  [
    /^(?:k3s|rke2|kubeadm)\/podlogs\/(?:kube-system|calico-system|tigera-operator)-((?:kube-proxy|canal|calico|cilium|flannel|rke2-canal|rke2-cilium|coredns)[\w.-]{1,200})$/,
    "kubectl logs --all-containers $1",
  ],
  [/^(?:k8s|k3s|rke2|kubeadm)\/kubectl\/(nodes|pods|services|endpoints)$/, "kubectl get $1 -o wide --all-namespaces"],
  // annotations and conditions, which the list lacks
  [/^(?:k8s|k3s|rke2|kubeadm)\/kubectl\/nodesdescribe$/, "kubectl describe nodes"],
];

export const rancherLogCollector: Importer = {
  id: "rancher-log-collector",
  title: "a bundle of Rancher's log collector",
  recognize(names) {
    const root = rootAbove(names, "systeminfo/hostname");
    if (root === undefined || !names.some((name) => name.startsWith(`${root}networking/`))) return undefined;
    return (name) => {
      const path = name.startsWith(root) ? name.slice(root.length) : "";
      // the log before the last start of a container is of another time
      return !path.endsWith("-previous") && (commandIn(COMMANDS, path) !== undefined || /^systeminfo\/(?:hostname|date)$/.test(path));
    };
  },
  read(files, names) {
    const root = rootAbove(names, "systeminfo/hostname") ?? "";
    const date = files.get(`${root}systeminfo/date`);
    return [
      {
        target: firstLine(files.get(`${root}systeminfo/hostname`)),
        startedAt: date === undefined ? undefined : toldByDate([{ command: "date", text: decodeText(date.bytes) }]),
        outputs: outputsIn(COMMANDS, files, root),
      },
    ];
  },
};
