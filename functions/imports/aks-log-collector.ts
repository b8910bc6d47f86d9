import type { Importer } from "./bundle.ts";
import { commandIn, type FileTable, firstLine, inTwo, outputsIn, rootAbove } from "./file-table.ts";

/** A bundle of the AKS node's log collector (`aks-log-collector.sh`): `collect/…` holds outputs, the rest are copies of the node's files under their own paths. */

const COMMANDS: FileTable = [
  [/^collect\/conntrack\.txt$/, "conntrack -L"],
  [/^collect\/ip_4_(addr|neighbor|route)\.json$/, "ip -4 -d -j $1 show"],
  [/^collect\/ip_6_route\.json$/, "ip -6 -d -j route show table all"],
  [/^collect\/ip_6_(addr|neighbor)\.json$/, "ip -6 -d -j $1 show"],
  [/^collect\/ip_(link|rule)\.json$/, "ip -d -j $1 show"],
  [/^collect\/(ip6?)tables\.txt$/, "$1tables -L -vn --line-numbers"],
  [/^collect\/nftables\.json$/, "nft -jn list ruleset"],
  [/^collect\/ss\.txt$/, "ss -anoempiO --cgroup"],
  [/^collect\/sysctl\.txt$/, "sysctl -a"],
  [/^collect\/(proc\/(?:modules|uptime|net\/[\w/.-]{1,60}))$/, "cat /$1"],
  [/^((?:etc|run|var)\/[\w/.@+-]{1,250})$/, "cat /$1"],
];

export const aksLogCollector: Importer = {
  id: "aks-log-collector",
  title: "a bundle of the AKS log collector",
  recognize(names) {
    const root = rootAbove(names, "collect/ip_4_addr.json");
    return root === undefined
      ? undefined
      : (name) => name.startsWith(root) && (commandIn(COMMANDS, name.slice(root.length)) !== undefined || name === `${root}etc/hostname`);
  },
  read(files, names) {
    const root = rootAbove(names, "collect/ip_4_addr.json") ?? "";
    const outputs = outputsIn(COMMANDS, files, root).flatMap((output) => {
      // `ip -6 addr show table all` is no command of ip's: what it says of that is no output of a node
      if (output.text.startsWith("Error: ")) return [];
      // each has the output of a second command behind it
      if (output.command === "conntrack -L") return inTwo(output, "conntrack -S", /^cpu=\d/);
      if (output.command.startsWith("ss ")) return inTwo(output, "ss -s", /^Total: \d/);
      return [output];
    });
    return [{ target: firstLine(files.get(`${root}etc/hostname`)), outputs }];
  },
};
