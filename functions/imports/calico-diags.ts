import { toldByDate } from "../facts/date-output.ts";
import { decodeText, type Head } from "../transports/archive.ts";
import type { Draft, Importer } from "./bundle.ts";
import { commandIn, type FileTable, firstLine, outputsIn, rootAbove } from "./file-table.ts";

/** What `calicoctl node diags` leaves (`diags-20261121_035200.tar.gz`: one node), and `calicoctl cluster diags` (`calico-diagnostics-….tar.gz`: a folder per node). */

const NODE: FileTable = [
  [/^ipv4_route$/, "ip -4 route"],
  [/^ipv6_route$/, "ip -6 route"],
  [/^ipv4_addr$/, "ip -4 addr"],
  [/^ipv6_addr$/, "ip -6 addr"],
  [/^ipv4_tables$/, "iptables-save -c"],
  [/^ipv6_tables$/, "ip6tables-save -c"],
  [/^ipsets$/, "ipset list"],
  [/^netstat$/, "netstat -a -n"],
  [/^journalctl_calico_node$/, "journalctl -u calico-node.service --no-pager"],
  [/^logs\/(?:cni\/)?([\w.-]{1,200}\.log)$/, "kubectl logs $1"],
];
/** In the folder of one node. */
const CLUSTER: FileTable = [
  [/^(iptables-(?:legacy|nft)-save)\.txt$/, "$1 -c"],
  [/^nft-ruleset\.txt$/, "nft -n -a list ruleset"],
  [/^ip-route\.txt$/, "ip route show table all"],
  [/^ip-route-v6\.txt$/, "ip -6 route show table all"],
  [/^ip-(rule|addr|link|neigh)\.txt$/, "ip $1"],
  [/^ipset-list\.txt$/, "ipset list"],
  [/^tc-qdisc\.txt$/, "tc qdisc show"],
  [/^bpf-prog\.txt$/, "bpftool prog list"],
  [/^bpf-maps\.txt$/, "bpftool map list"],
  [/^(?:calico-system|kube-system)\/(calico-node-[\w.-]{1,60})\.log$/, "kubectl logs $1 --all-containers"],
];
const NODE_FOLDER = /^(?:[^/]{1,200}\/){0,2}nodes\/([^/]{1,253})\//;

const ofCluster = (name: string): string | undefined => {
  const folder = NODE_FOLDER.exec(name)?.[0];
  return folder === undefined ? undefined : commandIn(CLUSTER, name.slice(folder.length));
};

export const calicoDiags: Importer = {
  id: "calico-diags",
  title: "diagnostics of calicoctl",
  recognize(names) {
    const root = rootAbove(names, "ipv4_tables");
    if (root !== undefined && names.includes(`${root}ipv4_route`)) {
      return (name) =>
        name.startsWith(root) && (commandIn(NODE, name.slice(root.length)) !== undefined || name === `${root}hostname` || name === `${root}date`);
    }
    const perNode = names.filter(
      (name) => /^(?:ip-route|ip-addr|iptables-(?:legacy|nft)-save)\.txt$/.test(name.replace(NODE_FOLDER, "")) && NODE_FOLDER.test(name),
    );
    return perNode.length >= 2 ? (name) => ofCluster(name) !== undefined : undefined;
  },
  read(files, names) {
    const root = rootAbove(names, "ipv4_tables");
    if (root !== undefined) {
      const date = files.get(`${root}date`);
      return [
        {
          target: firstLine(files.get(`${root}hostname`)),
          startedAt: date === undefined ? undefined : toldByDate([{ command: "date", text: decodeText(date.bytes) }]),
          outputs: outputsIn(NODE, files, root),
        },
      ];
    }
    const folders = new Map<string, Map<string, Head>>();
    for (const [name, head] of files) {
      const folder = NODE_FOLDER.exec(name)?.[0] ?? "";
      folders.set(folder, (folders.get(folder) ?? new Map<string, Head>()).set(name, head));
    }
    return [...folders].map(([folder, within]): Draft => ({ target: NODE_FOLDER.exec(folder)?.[1], outputs: outputsIn(CLUSTER, within, folder) }));
  },
};
