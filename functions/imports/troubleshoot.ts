import { commandLine } from "../facts/command.ts";
import { commandsOf } from "../facts/command-list.ts";
import { tellsTime, toldByDate } from "../facts/date-output.ts";
import { parsedJson } from "../facts/json.ts";
import { decodeText, type Head } from "../transports/archive.ts";
import { type Draft, type DraftOutput, type Importer, isKnown } from "./bundle.ts";
import { AGENT_POD, placesIn } from "./pod-logs.ts";

/**
 * A support bundle of Replicated's Troubleshoot with host collectors, of the machine it ran on or of every node (`host-collectors/NODE/…`):
 *
 *     host-collectors/run-host/ip-rule.txt          what the command printed
 *     host-collectors/run-host/ip-rule-info.json    {"command": "/usr/sbin/ip rule", "exitCode": "0", "error": "", …}
 *     host-collectors/journald/kubelet.txt          the same of journalctl
 *     host-collectors/system/hostos_info.json       {"name": "n1", …}
 *     cluster-resources/pods/kube-system.json       what kubectl get pods -o json prints
 *     cluster-resources/pods/logs/kube-system/kube-proxy-7xk2p/kube-proxy.log    of the agents of a node; …-previous.log of the container that was there before
 */

const HOST = /^((?:[^/]{1,255}\/){0,3})host-collectors\/(?:([\w.-]{1,253})\/)?(run-host|journald|system)\/([^/]{1,200}?)(\.txt|-info\.json|_info\.json)$/;
const CLUSTER = /^(?:[^/]{1,255}\/){0,3}cluster-resources\/(?:nodes|(pods|services)\/([a-z\d.-]{1,63}))\.json$/;
const LOG = new RegExp(`^(?:[^/]{1,255}/){0,3}cluster-resources/pods/logs/([a-z\\d.-]{1,63})/(${AGENT_POD})/([a-z\\d-]{1,63}?)(-previous)?\\.log$`);

export const troubleshoot: Importer = {
  id: "troubleshoot",
  title: "a support bundle of Troubleshoot with host collectors",
  recognize: (names) =>
    names.some((name) => HOST.exec(name)?.[5] === "-info.json") ? (name) => HOST.test(name) || CLUSTER.test(name) || LOG.test(name) : undefined,
  read(files) {
    const byNode = new Map<string, DraftOutput[]>();
    for (const [name, head] of files) {
      const folder = folderOf(name);
      if (folder !== undefined) byNode.set(folder, [...(byNode.get(folder) ?? []), ...ofHost(name, head, files)]);
    }
    const cluster = [...files].flatMap(([name, head]) => ofCluster(name, head));
    const places = new Map(
      [...files].flatMap(([name, head]) => {
        const [, kind, namespace] = CLUSTER.exec(name) ?? [];
        return kind === "pods" ? placesIn(head).map(([pod, node]) => [`${namespace}/${pod}`, node] as const) : [];
      }),
    );
    const logs = [...files].flatMap(([name, head]) => ofPod(name, head, places));
    return [...byNode].flatMap(([folder, outputs]): Draft[] => {
      const read = outputs.filter(({ command }) => isRead(command));
      const target = nodeOf(folder, files);
      const own = logs.filter(({ node }) => node === target).map(({ output }) => output);
      return read.length === 0 ? [] : [{ target, startedAt: toldByDate(outputs), outputs: [...read, ...cluster, ...own] }];
    });
  },
};

/** What was asked in a pod's namespace, or again and again, is read, too: `nsenter -t 4411 -n nstat -az`, `for i in 1 2; do conntrack -S; sleep 5; done`. */
const isRead = (command: string): boolean =>
  isKnown(command) || /^(?:for|while|watch) /.test(command) || commandsOf(command).some((one) => commandLine(one).foreign);

/** The folder of a machine, with `/` at its end. */
function folderOf(name: string): string | undefined {
  const [, above = "", node] = HOST.exec(name) ?? [];
  return HOST.test(name) ? `${above}host-collectors/${node === undefined ? "" : `${node}/`}` : undefined;
}

/** The name of the machine: that of its folder, or what its own system says. */
function nodeOf(folder: string, files: ReadonlyMap<string, Head>): string | undefined {
  const named = /host-collectors\/([^/]+)\/$/.exec(folder)?.[1];
  return named ?? memberOf(files.get(`${folder}system/hostos_info.json`), "name");
}

function ofHost(name: string, { bytes, truncated }: Head, files: ReadonlyMap<string, Head>): DraftOutput[] {
  if (!name.endsWith(".txt")) return [];
  const info = files.get(name.replace(/\.txt$/, "-info.json"));
  const command = commandOf(memberOf(info, "command") ?? "");
  if (command === "" || !(isRead(command) || tellsTime(command))) return [];
  const exitCode = Number.parseInt(memberOf(info, "exitCode") ?? "", 10);
  const error = memberOf(info, "error") ?? "";
  // a command that ran for too long was stopped, and "ended well"
  const stopped = error.startsWith("command timed out") || exitCode === 124;
  return [
    {
      command,
      file: name,
      text: decodeText(bytes),
      truncated: truncated || stopped,
      exitCode: Number.isNaN(exitCode) || stopped ? undefined : exitCode,
      stderr: error,
    },
  ];
}

/** `/usr/sbin/ip rule`, `/usr/bin/sh -c ipvsadm -l -n`: the arguments stand there as they are, with no quotes. */
const commandOf = (line: string): string =>
  line
    .trim()
    .replace(/^(?:\/[\w.-]{1,40}){0,4}\/?(?:ba|da|a)?sh -c /, "")
    .replace(/^(?:\/[\w.-]{1,40}){1,4}\/(?=[\w.-]+(?: |$))/, "");

function ofCluster(name: string, { bytes, truncated }: Head): DraftOutput[] {
  const match = CLUSTER.exec(name);
  if (match === null) return [];
  const [, kind, namespace] = match;
  const command = kind === undefined ? "kubectl get nodes -o json" : `kubectl get ${kind} -n ${namespace} -o json`;
  return isKnown(command) ? [{ command, file: name, text: decodeText(bytes), truncated }] : [];
}

/** The log of a pod, and the node that it runs on; nothing where no list of pods tells which. */
function ofPod(name: string, { bytes, truncated }: Head, places: ReadonlyMap<string, string>): { readonly node: string; readonly output: DraftOutput }[] {
  const [, namespace = "", pod = "", container = "", previous] = LOG.exec(name) ?? [];
  const node = places.get(`${namespace}/${pod}`);
  const command = `kubectl logs -n ${namespace} ${pod} -c ${container}${previous === undefined ? "" : " --previous"}`;
  return node === undefined || !isKnown(command) ? [] : [{ node, output: { command, file: name, text: decodeText(bytes), truncated } }];
}

/** A member of a small file of JSON that is a text. */
function memberOf(head: Head | undefined, member: string): string | undefined {
  if (head === undefined || head.bytes.length > 64 * 1024) return undefined;
  const value = (parsedJson(decodeText(head.bytes)) as Record<string, unknown> | null | undefined)?.[member];
  return typeof value === "string" && value !== "" ? value.slice(0, 4000) : undefined;
}
