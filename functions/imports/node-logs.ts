import type { Importer } from "./bundle.ts";
import { commandIn, type FileTable, outputsIn } from "./file-table.ts";

/**
 * A folder for each node, as `kops toolbox dump`, `kind export logs` and `talosctl support` write them: few outputs, most of it logs.
 *
 *     i-0aa11bb22cc33dd44/{iptables-filter.log,iptables-nat.log,kern.log,kubelet.log,sysctls}
 *     kind-worker/{journal.log,kubelet.log,kubernetes-version.txt,pods/kube-system_kube-proxy-…/kube-proxy/0.log}
 *     10.5.0.2/{dmesg.log,controller-runtime.log,service-logs/kubelet.log,talosResources/routestatuses.net.talos.dev.yaml,kubernetes-logs/kube-system/kube-proxy-….log}
 */

const COMMANDS: FileTable = [
  [/^iptables-(nat|filter)\.log$/, "iptables -t $1 --list-rules"],
  [/^sysctls$/, "sysctl -a"],
  [/^dmesg\.log$/, "talosctl dmesg"],
  [/^service-logs\/(kubelet|cri|containerd)\.log$/, "talosctl logs $1"],
  [/^talosResources\/((?:route|address|link)statuses)\.net\.talos\.dev\.yaml$/, "talosctl get $1 -o yaml"],
  [/^kubernetes-logs\/(?:kube-system[/_-])?((?:kube-proxy|kube-flannel|calico|cilium|coredns)[\w.:-]{0,250})\.log$/, "kubectl logs $1"],
  [/^kern\.log$/, "journalctl --output=short-precise -k"],
  [/^journal\.log$/, "journalctl --no-pager"],
  [/^(kubelet|containerd|docker|node-problem-detector)\.log$/, "journalctl --no-pager -u $1.service"],
  [/^(kube-proxy)\.log$/, "cat /var/log/$1.log"],
  [/^aws-routed-eni_(ipamd|plugin)\.log$/, "cat /var/log/aws-routed-eni/$1.log"],
  [
    /^pods\/(kube-system_(?:kube-proxy|kindnet|calico|canal|cilium|flannel|coredns|aws-node|kube-router|antrea|ovn)[\w.-]{1,250}\/[\w.-]{1,63}\/\d{1,4}\.log)$/,
    "cat /var/log/pods/$1",
  ],
];
/** The files that only these tools write. */
const MARK = /^((?:[^/]{1,255}\/){0,3}([\w.-]{1,253})\/)(iptables-filter\.log|kubernetes-version\.txt|controller-runtime\.log)$/;
const BESIDE: Readonly<Record<string, string>> = {
  "iptables-filter.log": "sysctls",
  "kubernetes-version.txt": "kubelet.log",
  "controller-runtime.log": "dmesg.log",
};

export const nodeLogs: Importer = {
  id: "node-logs",
  title: "the nodes' logs of kops, kind or Talos",
  recognize(names) {
    const nodes = nodesIn(names);
    if (nodes.size === 0) return undefined;
    const last = lastLogs(names);
    return (name) => {
      const folder = folderOf(name, nodes);
      return folder !== undefined && commandIn(COMMANDS, name.slice(folder.length)) !== undefined && (last.get(dirname(name)) ?? name) === name;
    };
  },
  read: (files, names) => [...nodesIn(names)].map(([folder, target]) => ({ target, outputs: outputsIn(COMMANDS, inFolder(files, folder), folder) })),
};

/** By folder the node's name. */
function nodesIn(names: readonly string[]): Map<string, string> {
  const present = new Set(names);
  return new Map(
    names.flatMap((name): [string, string][] => {
      const [, folder, node = "", mark = ""] = MARK.exec(name) ?? [];
      return folder !== undefined && present.has(folder + (BESIDE[mark] ?? "")) ? [[folder, node]] : [];
    }),
  );
}

/** The folder of a node that a file lies in. */
function folderOf(name: string, nodes: ReadonlyMap<string, string>): string | undefined {
  for (let end = name.indexOf("/"); end !== -1; end = name.indexOf("/", end + 1)) {
    const folder = name.slice(0, end + 1);
    if (nodes.has(folder)) return folder;
  }
  return undefined;
}

const inFolder = <T>(files: ReadonlyMap<string, T>, folder: string): Map<string, T> => new Map([...files].filter(([name]) => name.startsWith(folder)));

const dirname = (name: string): string => name.slice(0, name.lastIndexOf("/"));

/** By a container's folder its last log: those before it are of an earlier start. */
function lastLogs(names: readonly string[]): Map<string, string> {
  const last = new Map<string, { readonly name: string; readonly number: number }>();
  for (const name of names) {
    const [, folder = "", number = ""] = /^(.*\/pods\/[^/]+\/[^/]+)\/(\d{1,4})\.log$/.exec(name) ?? [];
    if (number !== "" && Number(number) >= (last.get(folder)?.number ?? 0)) last.set(folder, { name, number: Number(number) });
  }
  return new Map([...last].map(([folder, { name }]) => [folder, name]));
}
