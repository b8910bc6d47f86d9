import { decodeText, type Head } from "../transports/archive.ts";
import type { Importer } from "./bundle.ts";
import { commandIn, type FileTable, outputsIn, rootAbove } from "./file-table.ts";

/** What `microk8s inspect` and `k8s inspect` (Canonical Kubernetes) leave behind: `inspection-report-20261121_035211.tar.gz`. */

const COMMANDS: FileTable = [
  [/^network\/netstat$/, "netstat -pln"],
  [/^network\/ifconfig$/, "ifconfig"],
  [/^network\/iptables$/, "iptables -t nat -L -n -v"],
  [/^network\/iptables-S$/, "iptables -S"],
  [/^apparmor\/dmesg$/, "dmesg"],
  [/^sys\/ps$/, "ps -ef"],
  [/^sys\/uptime$/, "uptime"],
  [/^args\/cni-network\/([\w.-]{1,200})$/, "cat /var/snap/microk8s/current/args/cni-network/$1"],
  [/^(snap\.microk8s\.daemon-[\w-]{1,60})\/journal\.log$/, "journalctl -n 100000 -u $1"],
  [/^(snap\.microk8s\.daemon-[\w-]{1,60})\/systemctl\.log$/, "systemctl status $1"],
  [/^ip-a\.log$/, "ip a"],
  [/^ip-r\.log$/, "ip r"],
  [/^iptables(-legacy)?\.log$/, "iptables$1-save"],
  [/^iptables6(-legacy)?\.log$/, "ip6tables$1-save"],
  [/^nft-ruleset\.log$/, "nft list ruleset"],
  [/^conntrack-table\.log$/, "conntrack -L"],
  [/^conntrack-stats\.log$/, "conntrack -S"],
  [/^ss-(plntu?)\.log$/, "ss -$1"],
  [/^sys\/dmesg$/, "dmesg -H"],
  [/^sys\/loaded_kernel_modules$/, "lsmod"],
  [/^uname\.log$/, "uname -a"],
  [/^(k8s\.[\w-]{1,60})\/journal\.log$/, "journalctl -n 100000 -u snap.$1"],
  [/^(k8s\.[\w-]{1,60})\/systemctl\.log$/, "systemctl status snap.$1"],
];
const MARKS = ["sys/snap-version", "snap-list-k8s.log"];

export const inspectionReport: Importer = {
  id: "inspection-report",
  title: "an inspection report of MicroK8s or Canonical Kubernetes",
  recognize(names) {
    const root = rootOf(names);
    if (root === undefined || !names.some((name) => name.startsWith(root) && name.endsWith("/journal.log"))) return undefined;
    return (name) => name.startsWith(root) && commandIn(COMMANDS, name.slice(root.length)) !== undefined;
  },
  read(files, names) {
    const root = rootOf(names) ?? "";
    // `ip6tables-legacy-save: not found`: what a shell said is no output
    const outputs = outputsIn(COMMANDS, files, root).filter(({ text }) => !NOT_FOUND.test(text));
    return [{ target: hostOf(files), outputs }];
  },
};

const NOT_FOUND = /^[^\n]{0,200}: (?:command )?not found\n?$/;

const rootOf = (names: readonly string[]): string | undefined => MARKS.map((mark) => rootAbove(names, mark)).find((root) => root !== undefined);

/** The node's name, as the lines of its journal have it. */
function hostOf(files: ReadonlyMap<string, Head>): string | undefined {
  for (const [name, { bytes }] of files) {
    const host = name.endsWith("/journal.log") ? HOST.exec(decodeText(bytes.subarray(0, 4096)))?.[1] : undefined;
    if (host !== undefined) return host;
  }
  return undefined;
}

const HOST = /^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ([\w.-]{1,253}) \S{1,100}(?:\[\d+\])?: /m;
