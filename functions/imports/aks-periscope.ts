import { basename } from "node:path";
import type { Importer } from "./bundle.ts";
import { commandIn, type FileTable, outputsIn } from "./file-table.ts";

/**
 * What `az aks kollect` (AKS Periscope) leaves of each node: a zip that is named after it, or a folder in the storage account. Few outputs, each in the folder of
 * its collector.
 *
 *     aks-pool1-12345678-vmss000002.zip: iptables/iptables, dns/virtualmachine, dns/kubernetes, systemlogs/kubelet, nodelogs/…, kubeobjects/…
 */

const COMMANDS: FileTable = [
  [/^iptables\/iptables$/, "iptables -t nat -L"],
  // the node's own; dns/kubernetes is the collector's pod's
  [/^dns\/virtualmachine$/, "cat /run/systemd/resolve/resolv.conf"],
  [/^systemlogs\/(docker|kubelet)$/, "journalctl -u $1"],
];
const MARK = /^((?:[^/]{1,255}\/){0,4})dns\/virtualmachine$/;

export const aksPeriscope: Importer = {
  id: "aks-periscope",
  title: "a node's part of AKS Periscope (`az aks kollect`)",
  recognize(names) {
    const roots = rootsIn(names);
    return roots.length === 0 ? undefined : (name) => roots.some((root) => name.startsWith(root) && commandIn(COMMANDS, name.slice(root.length)) !== undefined);
  },
  read: (files, names, bundle) =>
    rootsIn(names).map((root) => ({
      target: root === "" ? /^([\w.-]{1,253}?)(?:\.zip)?$/.exec(bundle)?.[1] : basename(root.replace(/\/(?:collector\/)?$/, "")),
      outputs: outputsIn(COMMANDS, new Map([...files].filter(([name]) => name.startsWith(root))), root),
    })),
};

/** The folders of the nodes, each "" or with `/` at its end. */
const rootsIn = (names: readonly string[]): readonly string[] =>
  names.flatMap((name) => {
    const root = MARK.exec(name)?.[1];
    return root !== undefined && names.some((other) => other.startsWith(`${root}systemlogs/`) || other === `${root}iptables/iptables`) ? [root] : [];
  });
