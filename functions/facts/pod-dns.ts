import { z } from "zod";
import type { AgentLog } from "./agent-log.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";

/**
 * What names are resolved with in pods of this node that inherit the node's resolver (CoreDNS itself among them): the file that the kubelet takes, its
 * nameservers, and CoreDNS's own complaint that it asks itself. Every row stands where the row stands that it was made from.
 */
const Source = z.object({
  line: z.int(),
  /** "/etc/resolv.conf". */
  file: z.string(),
  /** argument: the kubelet was started with it. setting: it stands in its settings. default: its settings do not name a file. searched: the same, of one file alone. */
  by: z.enum(["argument", "setting", "default", "searched"]),
});
const Nameserver = z.object({
  line: z.int(),
  address: z.string(),
  /** 127.0.0.0/8 or ::1: in a pod that is the pod itself. */
  loopback: z.boolean(),
});
const Loop = z.object({
  line: z.int(),
  /** Seconds, where known. */
  age: z.number().optional(),
  message: z.string(),
});
const PodDns = z.object({
  /** At most one: what the kubelet hands to pods; none where its settings were not read. */
  sources: z.array(Source),
  /** Of that file, as far as it was read. */
  nameservers: z.array(Nameserver),
  /** CoreDNS found a forwarding loop and stopped. */
  loops: z.array(Loop),
});
type PodDns = z.infer<typeof PodDns>;

interface Sources {
  readonly "resolv-conf"?: {
    nameservers: readonly (Row & { file: string; address: string })[];
    kubelet: readonly (Row & { file: string; resolvConf?: string; whole: boolean; searched?: boolean })[];
    targets: readonly (Row & { file: string; target: string })[];
  };
  readonly "agent-log"?: Placed<AgentLog>;
  readonly process?: { rows: readonly (Row & { command: string; arguments?: string })[] };
}

const ARGUMENT = /(?:^|\s)--resolv-conf[= ]["']?([^\s"']{1,200})/;
// plugin/loop: Loop (127.0.0.1:… -> :53) detected for zone "."   plugin/loop: Seen "HINFO IN …" more than twice, loop detected
const LOOP = /plugin\/loop: (?:Loop \(.{0,200}\) detected|(?:Forwarding loop|Seen) .{0,300}(?:loop detected|detected))/;

const STUB = /^(?:stub|.*\/stub-resolv\.conf)$/;

export const podDns = defineDerivedFact<PodDns>({
  id: "pod-dns",
  title: "Nameservers that the kubelet hands to pods, and CoreDNS's complaints about loops",
  from: ["resolv-conf", "agent-log", "process"],
  schema: PodDns,
  enough: (values, whole) => enough(values as Sources, whole),
  derive: (values, whole) => derive(values as Sources, whole),
});

function derive(values: Sources, whole: ReadonlySet<string>): PodDns {
  const source = sourceOf(values, whole);
  const read = (values["resolv-conf"]?.nameservers ?? []).filter((row) => source !== undefined && row.file === source.file);
  // systemd-resolved's own file always names its stub
  const stubs = (values["resolv-conf"]?.targets ?? []).filter((row) => row.file === source?.file && STUB.test(row.target));
  const nameservers = read.length > 0 ? read : stubs.map((row) => ({ ...row, address: "127.0.0.53" }));
  const loops = (values["agent-log"]?.rows ?? []).filter((row) => LOOP.test(row.message));
  return {
    sources: source === undefined ? [] : [source],
    nameservers: nameservers.map((row) => ({ ...placed(row), address: row.address, loopback: isLoopback(row.address) })),
    loops: loops.map((row) => ({ ...placed(row), ...present({ age: row.age }), message: row.message })),
  };
}

/**
 * True if no name server can be missing that is the pod itself: the file that pods get was read; or nothing is known of one, and the node's own file
 * names none of the kind. Of a CoreDNS that does not run on the node there is no log.
 */
function enough(values: Sources, whole: ReadonlySet<string>): boolean {
  const coredns = (values.process?.rows ?? []).some((row) => row.command === "coredns");
  if (!whole.has("process") || (coredns && !whole.has("agent-log"))) return false;
  const file = sourceOf(values, whole)?.file;
  const servers = (values["resolv-conf"]?.nameservers ?? []).filter((row) => row.file === (file ?? "/etc/resolv.conf"));
  return servers.length > 0 && (file !== undefined || !servers.some(({ address }) => isLoopback(address)));
}

const FLAGS = /\.env$|^\/etc\/(?:default|sysconfig)\/kubelet$|\/kubelet\.service(?:$|\.d\/)/;
const isLoopback = (address: string): boolean => /^(?:127\.|::1$)/.test(address);

/** Arguments beat settings; the default holds only where both were read and name no file. */
function sourceOf(values: Sources, whole: ReadonlySet<string>): (PodDns["sources"][number] & Row) | undefined {
  const kubelet = (values.process?.rows ?? []).find((row) => row.command === "kubelet");
  const argument = ARGUMENT.exec(kubelet?.arguments ?? "")?.[1];
  if (kubelet !== undefined && argument !== undefined) return { ...placed(kubelet), file: argument, by: "argument" };
  const settings = values["resolv-conf"]?.kubelet ?? [];
  // flags in a file of the environment, or of systemd, become arguments
  const named = settings.find((row) => row.resolvConf !== undefined && FLAGS.test(row.file)) ?? settings.find((row) => row.resolvConf !== undefined);
  if (named?.resolvConf !== undefined) return { ...placed(named), file: named.resolvConf, by: "setting" };
  // nothing names a file: sure only where all of the settings were seen, and of the processes all or none at all
  const [first] = settings;
  const config = /(?:^|\s)--config[= ]["']?([^\s"']{1,200})/.exec(kubelet?.arguments ?? "")?.[1];
  if (first?.whole !== true || (values.process !== undefined && !whole.has("process"))) return undefined;
  if (config !== undefined && !settings.some((row) => row.file === config)) return undefined;
  return { ...placed(first), file: "/etc/resolv.conf", by: first.searched === true ? "searched" : "default" };
}
