import { z } from "zod";
import { isPromptLine } from "./command.ts";
import { answeredByDefault, defineFact, lines, UnparsedLines, type View } from "./fact.ts";

/**
 * Programs that are on the node, and those that were looked for and are not.
 *
 *     /usr/sbin/ip
 *     ip is /usr/sbin/ip
 */
const Tool = z.object({ line: z.int(), name: z.string(), path: z.string() });
/** Nothing is printed for a tool that is not there, so `line` is 1: the output as a whole proves it. */
const Missing = z.object({ line: z.int(), name: z.string() });
const Tools = z.object({ rows: z.array(Tool), missing: z.array(Missing) });

const PATH = /^(\/(?:[^\s/:]{1,255}\/){0,32}([^\s/:]{1,255}))$/;
const TYPE = /^([\w.+-]{1,64}) is (?:hashed \()?(\/[^\s()]{1,1000})\)?$/;
// What the shell finds before it looks for a file; the name says nothing of a program on the node.
const SHELL = /^(?:alias )?([\w.+-]{1,64})(?:=.{1,400}| is (?:a shell (?:builtin|keyword|function)|a function|aliased to .{1,400}))?$/;
// /usr/bin/which: no nft in (/usr/bin:/bin)   bash: type: nft: not found   nft not found
const NOT_FOUND = /^(?:(?:\/[\w/]{1,60}\/)?which: no [\w.+-]{1,64} in \(.{0,4000}\)|.{0,60}?[\w.+-]{1,64}: not found|[\w.+-]{1,64} not found)$/;

// The tools that facts and fixes use.
const NAMES = ["ip", "iptables", "iptables-save", "iptables-legacy-save", "ip6tables-save", "nft", "ebtables-save", "conntrack", "bpftool"];
NAMES.push("ovs-vsctl", "ovs-appctl", "bridge", "sysctl", "modprobe", "arping", "ethtool", "ss");
/** What else people look for on a node. */
const KNOWN = new Set([
  ...NAMES,
  ..."iptables-legacy iptables-nft iptables-restore ip6tables ip6tables-legacy ip6tables-nft ebtables arptables".split(" "),
  ..."ipset ipvsadm tc tcpdump netstat ifconfig route arp brctl ping curl wget nc dig nslookup socat nsenter crictl".split(" "),
  ..."ctr docker podman containerd kubectl kubelet kube-proxy calicoctl cilium cilium-dbg hubble flanneld bird".split(" "),
  ..."birdcl wg firewall-cmd ufw nmcli networkctl resolvectl systemctl journalctl lsmod busybox".split(" "),
]);

export const tool = defineFact({
  id: "tool",
  title: "Programs on the node",
  commands: [{ argv: ["command", "-v", ...NAMES] }],
  recognize(argv): View | undefined {
    const names = namesOf(argv);
    return names.length === 0 ? undefined : { format: "text", complete: true, scope: [...new Set(names)].sort().join(" "), rank: 1 };
  },
  schema: Tools,
  // These exit with 1 if a single one of them is missing.
  answered: (output) => answeredByDefault(output) || output.exitCode === 1,
  parse({ text, argv }) {
    const unparsed = new UnparsedLines();
    const rows: z.infer<typeof Tool>[] = [];
    const asked = new Set(namesOf(argv));
    const seen = new Set<string>();
    for (const { line, text: raw } of lines(text)) {
      const content = raw.trimStart();
      const path = PATH.exec(content);
      const type = path === null ? TYPE.exec(content) : null;
      const shell = path === null && type === null ? SHELL.exec(content) : null;
      if (path !== null) rows.push({ line, name: path[2] as string, path: path[1] as string });
      else if (type !== null) rows.push({ line, name: type[1] as string, path: type[2] as string });
      else if (shell !== null && asked.has(shell[1] as string)) seen.add(shell[1] as string);
      else if (!NOT_FOUND.test(content) && !isPromptLine(content)) unparsed.add(line, raw);
    }
    for (const row of rows) seen.add(row.name);
    // A line that could not be read may be the one that tells of the tool.
    const missing = unparsed.count > 0 ? [] : [...asked].filter((name) => !seen.has(name)).map((name) => ({ line: 1, name }));
    return unparsed.with({ rows, missing });
  },
  merge(parts) {
    const found = new Set(parts.flatMap((part) => part.value.rows.map((row) => row.name)));
    return {
      rows: parts.flatMap((part) => part.value.rows),
      missing: parts.filter((part) => part.complete).flatMap((part) => part.value.missing.filter((row) => !found.has(row.name))),
    };
  },
});

function namesOf(argv: readonly string[]): string[] {
  const [program, first] = argv;
  if (program === "command" && first !== "-v" && first !== "-V") return [];
  if (program !== "command" && program !== "which" && program !== "type") return [];
  const names = argv.slice(1).flatMap((word) => (word.startsWith("-") ? [] : [word.slice(word.lastIndexOf("/") + 1)]));
  // "type filter hook forward …" stands in every listing of nft, "type bridge" in those of ip, and sentences begin with "which"
  const asks = program === "command" || (names.every((name) => KNOWN.has(name)) && argv.slice(0, 2).join(" ") !== "type bridge");
  return asks ? names : [];
}
