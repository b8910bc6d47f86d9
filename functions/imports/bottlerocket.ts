import type { Head } from "../transports/archive.ts";
import { type DraftOutput, type Importer, nestedReader } from "./bundle.ts";
import { commandIn, type FileTable, outputsIn } from "./file-table.ts";

/**
 * What `logdog` of Bottlerocket packs (`bottlerocket-logs.tar.gz`), alone or within the archive of the EKS log collector for Bottlerocket, which has the logs of the VPC
 * CNI beside it:
 *
 *     .bottlerocket/rootfs/tmp/ekslogs/{ipamd.log,plugin.log,bottlerocket-logs.tar.gz: bottlerocket-logs/{iptables-nat,journalctl.log,kube-status,…}}
 *
 * Its `dmesg` has no clock, and the journal has the same messages with their times.
 */

const OF_LOGDOG: FileTable = [
  [/^iptables-(filter|nat)$/, "iptables -nvL -t $1"],
  [/^journalctl\.log$/, "journalctl -a --no-pager"],
  [/^kube-status$/, "systemctl status kube* -l --no-pager"],
  [/^os-release$/, "cat /etc/os-release"],
];
const FOLDER = /^((?:[^/]{1,255}\/){0,6}bottlerocket-logs\/)([\w.-]{1,100})$/;
const PACKED = /^((?:[^/]{1,255}\/){0,6})bottlerocket-logs\.tar\.gz$/;
const BESIDE: FileTable = [[/^((?:ipamd|plugin|network-policy-agent|ebpf-sdk)\.log)$/, "cat /var/log/aws-routed-eni/$1"]];
const INSTANCE = /(?:^|_)(i-[0-9a-f]{8,17})_(\d{4}-\d{2}-\d{2})_(\d{2})(\d{2})-UTC_/;
/** "Nov 21 03:51:28 ip-10-31-0-4.ec2.internal kubelet[812]: …" */
const HOST = /^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ([\w.-]{1,253}) \S{1,100}: /gm;

const ofLogdog = (name: string): boolean => commandIn(OF_LOGDOG, FOLDER.exec(name)?.[2] ?? "") !== undefined;

export const bottlerocket: Importer = {
  id: "bottlerocket",
  title: "the logs of a Bottlerocket node (`logdog`)",
  recognize(names) {
    const packed = names.map((name) => PACKED.exec(name)?.[1]).find((folder) => folder !== undefined);
    if (packed !== undefined) return (name) => PACKED.test(name) || (name.startsWith(packed) && commandIn(BESIDE, name.slice(packed.length)) !== undefined);
    return names.some((name) => FOLDER.exec(name)?.[2] === "journalctl.log") ? ofLogdog : undefined;
  },
  async read(files, names, bundle) {
    const outputs: DraftOutput[] = [];
    const take = (given: ReadonlyMap<string, Head>): void => {
      const root = [...given.keys()].map((name) => FOLDER.exec(name)?.[1]).find((folder) => folder !== undefined);
      if (root !== undefined) outputs.push(...outputsIn(OF_LOGDOG, given, root));
    };
    const nested = nestedReader();
    let problem: Error | undefined;
    for (const [name, { bytes }] of files) {
      const folder = PACKED.exec(name)?.[1];
      if (folder === undefined) continue;
      // where it is damaged, what lies beside it is there all the same
      const inside = await nested({ name, bytes }, ofLogdog).catch((error: Error) => {
        problem = error;
        return new Map<string, Head>();
      });
      take(inside);
      outputs.push(...outputsIn(BESIDE, files, folder));
    }
    if (outputs.length === 0) take(files);
    if (outputs.length === 0 && problem !== undefined) throw problem;
    const [, instance, day, hour, minute] = INSTANCE.exec(bundle) ?? INSTANCE.exec(names[0] ?? "") ?? [];
    return [{ target: instance ?? hostIn(outputs), startedAt: day === undefined ? undefined : `${day}T${hour}:${minute}:00Z`, outputs }];
  },
};

/** The node's name, as the newest lines of its journal have it: the first ones of a boot say "localhost". */
function hostIn(outputs: readonly DraftOutput[]): string | undefined {
  const journal = outputs.find(({ command }) => command.startsWith("journalctl"))?.text ?? "";
  return [...journal.slice(-20_000).matchAll(HOST)].map(([, host]) => host).findLast((host) => host !== "localhost");
}
