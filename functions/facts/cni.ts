import { z } from "zod";
import { byWord } from "./by-word.ts";
import type { Pods } from "./cluster-pod.ts";
import type { CniConfig } from "./cni-config.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import type { Link } from "./link.ts";
import { placed } from "./placed.ts";
import type { Process } from "./process.ts";

/**
 * Which CNIs (the programs that connect pods) run on the node, which are configured, and which have left devices. `cni` is one of: aws, antrea, azure, calico, cilium, flannel, kindnet, kube-ovn, kube-router, multus, ovn, weave; of
 * configurations also bridge and ptp (reference plugins, which need no agent), loopback, unknown.
 */
const Agent = z.object({ line: z.int(), cni: z.string(), command: z.string() });
const Device = z.object({
  line: z.int(),
  interface: z.string(),
  cni: z.string(),
  /** The one device of the node that its agent makes first (flannel.1, cilium_host); false for those of single pods. */
  main: z.boolean(),
  up: z.boolean(),
});
const Config = z.object({
  line: z.int(),
  directory: z.string(),
  file: z.string(),
  /** 1 is what a container runtime uses. */
  order: z.int(),
  /** Of its first plugin. */
  cni: z.string(),
  /** Of all its plugins. Without the file's text it is told from its name, and holds one. */
  chain: z.array(z.string()),
});
/** A CNI whose agent does not run: every process was listed, or all whose line holds the agent's name. */
const Absent = z.object({
  line: z.int(),
  cni: z.string(),
  /** True if the cluster has no pod or DaemonSet of it for this node either: it does not merely wait to be started again. */
  removed: z.boolean(),
});
const Cni = z.object({ agents: z.array(Agent), absent: z.array(Absent), devices: z.array(Device), configs: z.array(Config) });
type Cni = z.infer<typeof Cni>;

/** By the name of the program (or container); names of 15 characters may be cut. */
const AGENTS: readonly (readonly [RegExp, string])[] = [
  // k3s has flannel in itself
  [/^(?:flanneld|kube-flannel|k3s|k3s-server|k3s-agent|kubelite)$/, "flannel"],
  [/^(?:calico-node|calico-felix|felix)$/, "calico"],
  [/^cilium-agent$/, "cilium"],
  [/^(?:weaver|weave)$/, "weave"],
  [/^(?:aws-k8s-agent|aws-node)$/, "aws"],
  [/^antrea-agent$/, "antrea"],
  [/^kube-router$/, "kube-router"],
  [/^(?:azure-cns|azure-vnet)$/, "azure"],
  [/^kindnetd$/, "kindnet"],
  [/^(?:kube-ovn-daemon|kube-ovn-cni)$/, "kube-ovn"],
  [/^(?:ovnkube|ovnkube-node|ovnkube-control)$/, "ovn"],
  [/^(?:multus|multus-daemon)$/, "multus"],
];
/** The programs that a search must have named, as they stand in a list of processes. k3s, which has flannel in itself, brings its own configuration. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  flannel: ["flanneld"],
  calico: ["calico-node"],
  cilium: ["cilium-agent"],
  weave: ["weaver"],
  aws: ["aws-k8s-agent"],
  antrea: ["antrea-agent"],
  "kube-router": ["kube-router"],
  azure: ["azure-cns"],
  kindnet: ["kindnetd"],
  "kube-ovn": ["kube-ovn-daemon"],
  ovn: ["ovnkube"],
};
/** Docker names containers k8s_<container>_<pod>_… */
const KUBERNETES_NAME = /^k8s_([a-z0-9-]{1,63})_/;
const DEVICES: readonly (readonly [RegExp, string, boolean])[] = [
  [/^flannel(?:\.\d{1,8}|-v6\.\d{1,8}|-wg|-wg-v6|0)$/, "flannel", true],
  [/^(?:vxlan|vxlan-v6|wireguard|wg-v6)\.(?:calico|cali)$/, "calico", true],
  [/^cali[0-9a-f]{11}$/, "calico", false],
  [/^cilium_(?:host|net|vxlan|geneve|wg0)$/, "cilium", true],
  [/^lxc(?:_health|[0-9a-f]{12,14})$/, "cilium", false],
  [/^(?:weave|datapath|vxlan-6784)$/, "weave", true],
  [/^vethwe(?:pl)?[\w-]{1,10}$/, "weave", false],
  [/^eni[0-9a-f]{11}$/, "aws", false],
  [/^antrea-(?:gw|tun)0$/, "antrea", true],
  [/^kube-bridge$/, "kube-router", true],
  [/^azv[0-9a-f]{11}$/, "azure", false],
  [/^ovn0$/, "kube-ovn", true],
  [/^ovn-k8s-mp0$/, "ovn", true],
];
const TYPES = byWord<string>({
  flannel: "flannel",
  calico: "calico",
  "cilium-cni": "cilium",
  "weave-net": "weave",
  "aws-cni": "aws",
  antrea: "antrea",
  "azure-vnet": "azure",
  "kube-ovn": "kube-ovn",
  "ovn-k8s-cni-overlay": "ovn",
  multus: "multus",
  "multus-shim": "multus",
  bridge: "bridge",
  ptp: "ptp",
  loopback: "loopback",
});
/** By the name of a file, where its text is not known, and by that of its network for types that several CNIs use. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/flannel/, "flannel"],
  [/calico|canal/, "calico"],
  [/cilium/, "cilium"],
  [/weave/, "weave"],
  [/\baws\b/, "aws"],
  [/antrea/, "antrea"],
  [/azure/, "azure"],
  [/kube-?router/, "kube-router"],
  [/kindnet/, "kindnet"],
  [/kube-ovn/, "kube-ovn"],
  [/ovn/, "ovn"],
  [/multus/, "multus"],
  [/loopback/, "loopback"],
  [/bridge|containerd-net|kubenet/, "bridge"],
];

interface Sources {
  readonly process?: {
    rows: readonly (Process & Row)[];
    containers: readonly (Row & { name: string; state: string; pod?: string })[];
    listings: readonly Row[];
    searches: readonly (Row & { text: string })[];
    containerListings: readonly Row[];
  };
  readonly "cni-config"?: CniConfig;
  readonly link?: { rows: readonly (Link & Row)[] };
  readonly "cluster-pod"?: Placed<Pods>;
  readonly "daemon-set"?: {
    rows: readonly (Row & { name: string; desired: number; ready: number; selector: string })[];
    listings: readonly Row[];
    system: readonly Row[];
  };
}

export const cni = defineDerivedFact<Cni>({
  id: "cni",
  title: "CNIs that run, are configured, or have left devices",
  // a plugin's complaint alone is enough for some rules that ask about CNIs: then nothing else of them is known
  from: ["process", "cni-config", "link", "pod-event", "agent-log", "cluster-pod", "daemon-set"],
  optional: ["pod-event", "agent-log", "cluster-pod", "daemon-set"],
  inPart: ["cluster-pod", "daemon-set"],
  schema: Cni,
  derive(values) {
    const sources = values as Sources;
    const agents = [
      ...(sources.process?.rows ?? []).filter((row) => !row.defunct).flatMap((row) => agentOf(row, row.command)),
      ...(sources.process?.containers ?? [])
        .filter((row) => row.state === "running")
        .flatMap((row) => agentOf(row, KUBERNETES_NAME.exec(row.name)?.[1] ?? row.name)),
    ];
    // the cluster's list of this node's pods, where the node's own lists were not shown
    const listed = listedOf(sources["cluster-pod"]);
    if (agents.length === 0) agents.push(...listed.agents);
    const everywhere = everywhereOf(sources["daemon-set"]);
    if (agents.length === 0) agents.push(...everywhere.agents);
    return {
      agents,
      absent: absentOf(sources.process, [listed, everywhere], new Set(agents.map((row) => row.cni))),
      devices: (sources.link?.rows ?? []).flatMap((row) => {
        const known = DEVICES.find(([pattern]) => pattern.test(row.interface));
        return known === undefined ? [] : [{ ...placed(row), interface: row.interface, cni: known[1], main: known[2], up: row.up }];
      }),
      configs: configsOf(sources["cni-config"]),
    };
  },
});

function agentOf(row: Row, command: string): Cni["agents"] {
  const known = AGENTS.find(([pattern]) => pattern.test(command));
  return known === undefined ? [] : [{ ...placed(row), cni: known[1], command }];
}

/** Pods of agents, by their names: what a DaemonSet makes ends with five letters. */
const PODS: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^kube-flannel(?:-ds)?(?:-[a-z0-9]{3,8})?-[a-z0-9]{5}$/, ["flannel"]],
  [/^(?:rke2-)?canal-[a-z0-9]{5}$/, ["flannel", "calico"]],
  [/^calico-node-[a-z0-9]{5}$/, ["calico"]],
  [/^cilium-[a-z0-9]{5}$/, ["cilium"]],
  [/^weave-net-[a-z0-9]{5}$/, ["weave"]],
  [/^aws-node-[a-z0-9]{5}$/, ["aws"]],
  [/^antrea-agent-[a-z0-9]{5}$/, ["antrea"]],
  [/^kube-router-[a-z0-9]{5}$/, ["kube-router"]],
  [/^kindnet-[a-z0-9]{5}$/, ["kindnet"]],
  [/^kube-ovn-cni-[a-z0-9]{5}$/, ["kube-ovn"]],
];
function podAgents(row: Row & { name: string }): Cni["agents"] {
  const names = PODS.find(([pattern]) => pattern.test(row.name))?.[1] ?? [];
  return names.map((cni) => ({ ...placed(row), cni, command: row.name }));
}

function absentOf(process: Sources["process"], lists: readonly Listed[], running: ReadonlySet<string>): Cni["absent"] {
  const contained = containedProof(process);
  return Object.entries(PROGRAMS).flatMap(([name, programs]) => {
    if (running.has(name)) return [];
    const listed = lists.map(({ proof }) => proof(name)).find((row) => row !== undefined);
    const proof = process?.listings[0] ?? process?.searches.find(({ text }) => programs.some((program) => program.includes(text))) ?? contained(name) ?? listed;
    return proof === undefined ? [] : [{ ...placed(proof), cni: name, removed: listed !== undefined }];
  });
}

/** What the containers or pods of an agent are called, where it is not as the agent: kube-ovn's is `cni-server` of `kube-ovn-cni-x7k2p`, Canal's flannel is of `canal-…`. */
const TRACES = byWord<RegExp>({
  flannel: /flannel|canal/,
  calico: /calico|canal/,
  // Google's build of it
  cilium: /cilium|\banetd/,
  aws: /aws-node|aws-vpc-cni/,
  azure: /azure|\bcns/,
  ovn: /ovn/,
  "kube-ovn": /ovn/,
});

/**
 * A whole `crictl ps` with one CNI's agent in it has those of the others, too, if they run: agents are pods. k3s has flannel in itself, but then kube-proxy, too,
 * so that there is no container of it.
 */
function containedProof(process: Sources["process"]): (cni: string) => Row | undefined {
  const listing = process?.containerListings[0];
  const running = (process?.containers ?? []).filter((row) => row.state === "running");
  const names = running.map((row) => row.name);
  const isTraced = (cni: string): boolean => running.some(({ name, pod = "" }) => (TRACES[cni] ?? new RegExp(cni)).test(`${name} ${pod}`));
  const agent = names.some((name) => AGENTS.some(([pattern, cni]) => cni !== "multus" && pattern.test(name)));
  return (cni) => (agent && !isTraced(cni) && (cni !== "flannel" || names.includes("kube-proxy")) ? listing : undefined);
}

/** What the cluster's list of this node's pods tells: the agents in it, and which others are not there. */
interface Listed {
  readonly agents: Cni["agents"];
  readonly proof: (cni: string) => Row | undefined;
}
/** The same of `kubectl get pods -A`, of all nodes or of this one: a list that has this node's kube-proxy and the agent of one CNI has those of others, too. */
function listedOf(cluster: Sources["cluster-pod"]): Listed {
  const listing = cluster?.listings.find((row) => row.node === undefined || row.own === true);
  const there = (cluster?.rows ?? []).filter((row) => row.own === true && row.output === listing?.output);
  const agents = there.filter((row) => row.status === "Running").flatMap(podAgents);
  const proven = listing !== undefined && agents.length > 0 && there.some((row) => row.name.startsWith("kube-proxy"));
  const isTraced = (cni: string): boolean => there.some(({ name }) => (TRACES[cni] ?? new RegExp(cni)).test(name));
  return { agents: proven ? agents : [], proof: (cni) => (proven && !isTraced(cni) ? listing : undefined) };
}

/** The same of `kubectl get daemonsets -A`: an agent that is ready on every node is on this one, and one without a DaemonSet is nowhere. k3s has flannel in itself, and kube-proxy. */
function everywhereOf(found: Sources["daemon-set"]): Listed {
  const { rows = [], listings = [], system = [] } = found ?? {};
  // the others' may be in namespaces of their own
  const listingOf = (cni: string): Row | undefined => listings[0] ?? (cni === "weave" ? system[0] : undefined);
  const agents = rows
    .filter(({ desired, ready, selector }) => desired > 0 && ready === desired && /^(?:<none>|kubernetes\.io\/os=linux)$/.test(selector))
    .flatMap((row) => podAgents({ ...placed(row), name: `${row.name}-aaaaa` }).map((agent) => ({ ...agent, command: row.name })));
  const isTraced = (cni: string): boolean => rows.some(({ name }) => (TRACES[cni] ?? new RegExp(cni)).test(name));
  const proxied = rows.some(({ name }) => name === "kube-proxy");
  return { agents, proof: (cni) => (agents.length > 0 && !isTraced(cni) && (cni !== "flannel" || proxied) ? listingOf(cni) : undefined) };
}

function configsOf(found: CniConfig | undefined): Cni["configs"] {
  const rows: Cni["configs"] = [];
  for (const row of found?.files ?? []) {
    if (!row.config) continue;
    const { directory, file, order } = row;
    const byName = NAMES.find(([pattern]) => pattern.test(`${file} ${row.name ?? ""}`.toLowerCase()))?.[1];
    const chain = row.types.flatMap((type) => {
      const own = TYPES[type];
      // kube-router, kindnet and others bring their agent and use a reference plugin
      return own === undefined ? [] : (own === "bridge" || own === "ptp") && byName !== undefined ? [byName] : [own];
    });
    if (chain.length === 0) chain.push(byName ?? "unknown");
    rows.push({ ...placed(row), directory, file, order, cni: chain[0] as string, chain: [...new Set(chain)] });
  }
  return rows;
}
