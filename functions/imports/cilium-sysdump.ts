import { posix } from "node:path";
import { archiveKind, decodeText, type Head } from "../transports/archive.ts";
import { type Draft, type Importer, isKnown, nestedReader } from "./bundle.ts";

/**
 * A `cilium sysdump`, or one `cilium-bugtool` archive: for each agent a folder (or a tar of it) with `cmd/<command with - for blanks and />.md`. Since Cilium 1.5
 * the file is the output alone; with `--enable-markdown`, and before, the command stands in the first line:
 *
 *     # ip -4 route show table all
 *
 *     ```
 *     default via 10.0.0.1 dev eth0
 *     ```
 */

const PAGE = /^(.*?)(?:^|\/)cmd\/[^/]{1,255}\.md$/;
const NESTED = /(?:^|\/)(?:cilium-bugtool|bugtool)[^/]{0,200}\.(?:tar|tgz|tar\.gz)$/;
/** `Cluster health:  3/3 reachable (2026-11-21T03:51:44Z)`: probed every minute, so not long before. */
const PROBED = /^Cluster health: .{0,80}\((\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?Z)\)/m;
/** With the frame behind it: `iptables-save` begins with a line of its own that looks so. */
const HEADER = /^# ([^\r\n]{1,4000})\r?\n(?=\r?\n```)/;

export const ciliumSysdump: Importer = {
  id: "cilium-sysdump",
  title: "a cilium sysdump or bugtool archive",
  recognize(names) {
    const bugtool = names.some((name) => NESTED.test(name)) || names.some((name) => PAGE.test(name) && /(?:^|\/)cmd\/(?:cilium|bpftool|ip-)/.test(name));
    return bugtool ? (name) => PAGE.test(name) || NESTED.test(name) || OF_AGENT.test(name) || OF_CLUSTER.test(name) : undefined;
  },
  async read(files, _names, bundle) {
    const folders = new Map<string, Map<string, Head>>();
    const nested = nestedReader();
    const add = (name: string, head: Head, prefix: string): void => {
      const folder = prefix + (PAGE.exec(name)?.[1] ?? "");
      const pages = folders.get(folder) ?? new Map<string, Head>();
      pages.set(prefix + name, head);
      folders.set(folder, pages);
    };
    const ofAgents = new Map([...files].filter(([name]) => OF_AGENT.test(name)));
    const ofCluster = clusterOf(files);
    for (const [name, head] of files) {
      if (ofAgents.has(name) || OF_CLUSTER.test(name)) continue;
      if (archiveKind(name) === undefined) add(name, head, "");
      else {
        for (const [path, page] of await nested({ name, bytes: head.bytes }, (path) => PAGE.test(path))) add(path, page, `${name}!`);
      }
    }
    return [...folders].map(([folder, pages]) => {
      const pod = podIn(folder);
      const draft = draftOf(folder, pages, bundle);
      return { ...draft, target: draft.target ?? nodeOf(pod, ofCluster) ?? pod, outputs: [...draft.outputs, ...filesOf(pod, ofAgents), ...ofCluster] };
    });
  },
};

/** `cilium-bugtool-cilium-x7k2p-20261121-035200` or `bugtool-cilium-x7k2p`: the agent's pod, where nothing names the node. */
function draftOf(folder: string, pages: ReadonlyMap<string, Head>, bundle: string): Draft {
  const outputs: Draft["outputs"][number][] = [];
  let target: string | undefined;
  let host: string | undefined;
  let startedAt: string | undefined;
  for (const [name, head] of pages) {
    const text = decodeText(head.bytes);
    const framed = HEADER.exec(text)?.[1];
    const command = framed ?? commandNamed(posix.basename(name, ".md"));
    // Linux node1 6.1.0-28-amd64 …
    if (command.startsWith("uname")) target ??= /^Linux ([\w.-]{1,253}) \d/m.exec(text)?.[1];
    if (command === "hostname") host ??= /^[\w.-]{1,253}$/.exec(withoutFrame(text).trim())?.[0];
    if (command.endsWith("status --verbose")) startedAt ??= PROBED.exec(text)?.[1];
    if (isKnown(command)) outputs.push({ command, file: name, text: withoutFrame(text), truncated: head.truncated, ...failureOf(text) });
  }
  return {
    target: target ?? host,
    startedAt: timeIn(folder) ?? timeIn(bundle) ?? startedAt,
    outputs,
  };
}

/** Of the whole cluster: the table of its pods, and its nodes. Each node's capture gets them, so those of a cluster of hundreds are left out. */
const OF_CLUSTER = /(?:^|\/)k8s-(?:pods-\d{8}-\d{6}\.txt|nodes-\d{8}-\d{6}\.yaml)$/;
const MAX_OF_CLUSTER = 2 * 1024 * 1024;

const clusterOf = (files: ReadonlyMap<string, Head>): Draft["outputs"] =>
  [...files].flatMap(([name, { bytes, truncated }]) => {
    if (!OF_CLUSTER.test(name) || truncated || bytes.length > MAX_OF_CLUSTER) return [];
    return [{ command: name.endsWith(".txt") ? "kubectl get pods -A -o wide" : "kubectl get nodes -o yaml", file: name, text: decodeText(bytes), truncated }];
  });

/** The node that the table of pods has beside an agent. */
function nodeOf(pod: string | undefined, outputs: Draft["outputs"]): string | undefined {
  const row = new RegExp(`^\\S+ {2,}${pod} {2,}.{1,200}? {2,}(?=\\S*[.:])[0-9a-f.:]{3,45} {2,}(\\S{1,253}) {2,}`, "m");
  return pod === undefined ? undefined : outputs.map(({ text }) => row.exec(text)?.[1]).find((node) => node !== undefined);
}

/** `cilium-bugtool-20261121-035200.312+0000-UTC-1234567`: in the agent's pod, by UTC. A sysdump's own name has the time of whoever called it, and no zone. */
function timeIn(name: string): string | undefined {
  const [, year, month, day, hour, minute, second] =
    /cilium-bugtool-(\d{4})(\d{2})(\d{2})-(\d{2})(\d{2})(\d{2})(?:\.\d{1,3})?[-+]0000-(?:UTC|GMT)/.exec(name) ?? [];
  return year === undefined ? undefined : `${year}-${month}-${day}T${hour}:${minute}:${second}Z`;
}

/** Beside the folders: the agent's log since its last start, and the files in its node's /etc/cni/net.d. */
const OF_AGENT = /(?:^|\/)(?:logs-(cilium-[a-z0-9]{4,6})-cilium-agent-\d{8}-\d{6}\.log|cniconf-(cilium-[a-z0-9]{4,6})-([\w.-]{1,100})-\d{8}-\d{6}\.txt)$/;

const podIn = (folder: string): string | undefined => /(?:^|[-/])(cilium-(?!bugtool)[a-z0-9]{4,6})(?:[-/!.]|$)/.exec(folder)?.[1];

function filesOf(pod: string | undefined, files: ReadonlyMap<string, Head>): Draft["outputs"] {
  return [...files].flatMap(([name, head]) => {
    const [, logged, configured, file] = OF_AGENT.exec(name) ?? [];
    if (pod === undefined || (logged ?? configured) !== pod) return [];
    const command = logged === undefined ? `cat /etc/cni/net.d/${posix.basename(file ?? "")}` : `kubectl logs ${pod} -c cilium-agent`;
    return isKnown(command) ? [{ command, file: name, text: decodeText(head.bytes), truncated: head.truncated }] : [];
  });
}

/** Programs whose names have a `-`; any other ends at the first. */
const PROGRAM = /^(?:ip6?tables(?:-(?:nft|legacy))?(?:-save)?|cilium-(?:dbg|health|agent|bugtool)|[A-Za-z0-9_.]+)(?=-|$)/;
/** Commands whose last word is a path: `cat`, `bpftool map dump pinned`. */
const WITH_PATH = /^(?:cat|bpftool (?:cgroup (?:tree|show)|map dump pinned)|ls -la)$/;

/**
 * The command that a page's name stands for: both blanks and `/` became `-`. `iptables-save--c` → `iptables-save -c`; `cilium-dbg-status---verbose` →
 * `cilium-dbg status --verbose`; `cat--etc-resolv.conf` → `cat /etc/resolv.conf`. In a path a `-` of its own is lost.
 */
function commandNamed(name: string): string {
  const program = PROGRAM.exec(name)?.[0] ?? "";
  const rest = name.slice(program.length);
  const [before = "", ...path] = rest.split("--");
  const start = `${program}${before.replaceAll("-", " ")}`;
  if (path.length === 1 && WITH_PATH.test(start)) return `${start} /${path[0]?.replaceAll("-", "/")}`;
  return `${program}${rest
    // --time-format=iso: a `-` within the name of an option
    .replaceAll(/---([a-z]+(?:-[a-z]+)*=)/g, (_, option: string) => ` \0\0${option.replaceAll("-", "\0")}`)
    .replaceAll("---", " \0\0")
    .replaceAll("--", " \0")
    .replaceAll("-", " ")
    .replaceAll("\0", "-")}`;
}

const FAILED = /^> Error while running '.{1,4000}': {1,2}(?:exit status (\d{1,3}))?.{0,500}$/m;

/** What bugtool noted below an output that failed. */
function failureOf(text: string): { exitCode?: number } {
  const match = FAILED.exec(text);
  return match === null ? {} : { exitCode: Number(match[1] ?? 1) };
}

/** Takes the page's own lines off; the others keep their numbers. */
function withoutFrame(text: string): string {
  return text
    .replace(HEADER, "\n")
    .replace(/^```\r?$/gm, "")
    .replace(/^> Error while running '.{1,4000}$/gm, "");
}
