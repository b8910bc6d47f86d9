import { textOf } from "./compare-rows.ts";

/**
 * How much a kind of difference matters to traffic, from 0 (never) to 1 (a packet goes another way or is lost). By fact, list and field: never by
 * incident or rule. What no line here names gets {@link UNKNOWN}: a new fact is compared without any code of its own.
 */

/** What kind of difference it is. */
export type Change = "order" | "changed" | "only-here" | "missing-here";

/** A difference before it is weighed. */
export interface Weighed {
  readonly fact: string;
  readonly list: string;
  readonly change: Change;
  /** The field that differs, of a changed row. */
  readonly field: string;
  /** The row here; there, if it is missing here. Values are raw. */
  readonly row: Readonly<Record<string, unknown>>;
  /** True if the row is about one pod or endpoint: a name or chain made for it. */
  readonly private: boolean;
  /** Of a field that differs. */
  readonly values?: { readonly here: string; readonly there: string };
}

/** A fact, list or field without a weight of its own. Low: it may be noise. */
export const UNKNOWN = 0.2;
/** A route of a further card's own table. */
export const OWN_TABLE = 0.2;
/** Rows about one pod or endpoint come and go. */
const PRIVATE = 0.2;
/** That all interfaces of pods are set in another way is more. */
const PRIVATE_CHANGED = 0.6;

/**
 * Facts that are not compared, and why. They describe the moment, not the node: two healthy nodes never agree on them.
 */
export const MOMENTARY: Readonly<Record<string, string>> = {
  "absent-device": "what somebody asked for and was not there",
  "agent-log": "log lines differ on every node",
  attempt: "requests that somebody made",
  "bpf-map-dump": "map entries follow services and endpoints",
  "carrier-count": "counters",
  "cilium-map": "fill levels change from second to second",
  "cilium-service": "entries follow services and endpoints",
  conntrack: "entries come and go with each connection",
  "conntrack-stats": "counters",
  "empty-table": "which tables somebody asked for",
  "ethtool-statistics": "counters",
  fdb: "entries are learned and age",
  "flannel-env": "each node has a range of its own",
  "instance-metadata": "it names this one machine",
  ipamd: "addresses are handed out per node",
  "file-lock": "locks of a moment",
  "firewall-trace": "packets of a moment",
  "ipvs-connection": "connections come and go",
  "kernel-log": "log lines differ on every node",
  "line-count": "numbers of entries change from second to second",
  "listen-queue": "connections that wait at this moment",
  lsof: "connections come and go",
  "manual-restart": "what somebody restarted by hand",
  neighbor: "entries are learned and age",
  "neighbor-removal": "what somebody deleted by hand",
  "neighbor-stats": "counters",
  "no-route-message": "requests that somebody made",
  nstat: "counters",
  "offload-change": "what somebody switched by hand",
  "packet-trace": "packets of a moment",
  ping: "pings that somebody sent",
  "pod-address": "pods come and go",
  process: "process ids and arguments differ on every node",
  sar: "rates of one moment",
  socket: "sockets come and go",
  "socket-summary": "counters",
  "stuck-socket": "sockets come and go",
  "rule-removal": "what somebody watched",
  "rule-search": "what somebody looked for",
  "absent-rule": "what somebody looked for",
  softnet: "counters",
  "workload-endpoint": "pods come and go",
};

/** The weight of a difference, 0…1. */
export function weightOf(difference: Weighed): number {
  const weight = KINDS[difference.fact]?.(difference) ?? UNKNOWN;
  if (!difference.private) return weight;
  return weight * (difference.change === "changed" ? PRIVATE_CHANGED : PRIVATE);
}

/** Why a difference matters to traffic, in words; empty where the table below says nothing. */
export function meaningOf({ fact, change, row }: Weighed): string {
  if (fact === "sysctl") return SYSCTLS.find(([pattern]) => pattern.test(textOf(row, "key")))?.[2] ?? "";
  // main is asked at 32766; what is asked before it decides
  if (fact === "rule" && typeof row["priority"] === "number" && row["priority"] < 32_766)
    return "it is asked before the main table, so packets can go another way than that table says";
  if (change === "order" && BASE.test(textOf(row, "chain").toUpperCase())) return "the first rule that fits decides about a packet";
  return "";
}

/** Chains and hooks that packets enter by themselves. Of others a packet may never see a rule. */
const BASE = /^(?:PREROUTING|INPUT|FORWARD|OUTPUT|POSTROUTING|BROUTING)$/;

/** Sysctl keys that decide what becomes of a packet, by the end of the key, and why. The first that fits counts. */
const SYSCTLS: readonly (readonly [pattern: RegExp, weight: number, why: string])[] = [
  [/(?:_count|_failures|-nr|inode-state|dentry-state)$/, 0, "a counter"],
  [
    /bridge-nf-call-(?:ip|ip6|arp)tables$/,
    0.95,
    "it decides whether packets between ports of a bridge pass iptables, as services with a backend on the same node need",
  ],
  // of one interface after the one for all: setting that sets these
  [/\.conf\.(?!all\.)\S{1,64}\.forwarding$/, 0.9, "it decides whether the node passes on packets that came in by this interface"],
  [/(?:\.forwarding|ip_forward)$/, 0.95, "it decides whether the node passes on packets of others, such as its pods"],
  [/\.rp_filter$/, 0.85, "it drops packets that came in by another way than the answer would leave"],
  [/\.(?:disable_ipv6|accept_ra)$/, 0.7, "it decides whether there is IPv6, and its default route"],
  [/\.(?:arp_announce|arp_ignore|arp_filter|proxy_arp|proxy_arp_pvlan)$/, 0.7, "it decides which MAC other hosts learn for an address"],
  [/nf_conntrack_tcp_be_liberal$/, 0.7, "it decides whether packets outside the TCP window count as INVALID"],
  [/\.(?:accept_local|route_localnet|src_valid_mark)$/, 0.65, "it decides which packets are dropped as impossible (martians)"],
  [/(?:conn_reuse_mode|conntrack|expire_nodest_conn)$/, 0.6, "it decides what IPVS does with connections whose backend went away"],
  [/(?:nf_conntrack_max|nf_conntrack_buckets|gc_thresh[123])$/, 0.5, "it limits how many connections or neighbours there can be"],
  [/(?:ip_local_port_range|ip_local_reserved_ports)$/, 0.5, "outgoing connections take these ports, perhaps those of services"],
  [
    /(?:ip_nonlocal_bind|fib_multipath_hash_policy|tcp_mtu_probing|ip_no_pmtu_disc|tcp_timestamps|tcp_tw_reuse|tcp_fin_timeout)$/,
    0.45,
    "it changes how connections are made or ended",
  ],
  [
    /(?:nf_conntrack_.*_timeout.*|somaxconn|tcp_max_syn_backlog|netdev_max_backlog|netdev_budget.*|tcp_mem|udp_mem|[rw]mem_(?:max|default)|tcp_[rw]mem)$/,
    0.3,
    "limits",
  ],
];

/** Kernel modules that touch packets. Others are drivers of the machine. */
const MODULES =
  /^(?:br_netfilter|nf_|nft_|xt_|ip_set|ip_vs|ip6?_tables|ip6?table_|iptable_|ebtable|arptable|vxlan|geneve|wireguard|ipip|tunnel4|openvswitch|bonding|8021q|sch_|cls_|act_)/;

/** Loaded as soon as a rule or queue uses them: on the node where one does, sooner than on others. */
const ON_DEMAND = /^(?:xt_|nft_|ip_set|sch_|cls_|act_|nf_log|nf_reject|nf_conntrack_netlink)/;
/** The CNI's chains for ports of the host: written when the first pod that has one comes to the node. */
const HOST_PORTS = /^CNI-HOSTPORT-/;

const FIREWALL_TARGETS: readonly (readonly [pattern: RegExp, weight: number])[] = [
  [/^(?:DROP|REJECT|drop|reject|arpreply|queue|NFQUEUE|QUEUE)$/, 0.9],
  [/^(?:DNAT|SNAT|MASQUERADE|REDIRECT|TPROXY|NETMAP|NOTRACK|CT|dnat|snat|masquerade|redirect|notrack|tproxy)$/, 0.85],
];

const NFT_TRANSLATION = /(?:^| )(dnat|snat|masquerade|redirect|notrack|tproxy)(?: |$)/;

function firewallRow({ change, row }: Weighed): number {
  const base = BASE.test(textOf(row, "chain").toUpperCase());
  if (change === "order") return base ? 1 : 0.6;
  if (change === "only-here" && [textOf(row, "chain"), textOf(row, "target")].some((name) => HOST_PORTS.test(name))) return 0.25;
  // nftables says what ends a rule, and translations stand in its text
  const verdict = textOf(row, "verdict");
  const translates = NFT_TRANSLATION.exec(textOf(row, "verdict") === "" && textOf(row, "target") === "" ? textOf(row, "spec") : "")?.[1];
  const target = translates ?? (/^(?:jump|goto|)$/.test(verdict) ? textOf(row, "target") : verdict);
  const known = FIREWALL_TARGETS.find(([pattern]) => pattern.test(target));
  if (known !== undefined) return known[1];
  if (/^(?:LOG|NFLOG|ULOG|)$/.test(target)) return 0.3;
  return base ? 0.8 : 0.55;
}

function firewallChain({ change, field, row }: Weighed): number {
  // a chain that is there and empty, or not there, is one thing; the jump to it is weighed by itself
  if (change !== "changed") return 0.3;
  if (field === "policy") return BASE.test(textOf(row, "name").toUpperCase()) ? 0.95 : 0.6;
  return field === "hook" || field === "priority" || field === "device" || field === "type" ? 0.85 : UNKNOWN;
}

const firewall = (difference: Weighed): number =>
  difference.list === "rows" ? firewallRow(difference) : difference.list === "chains" ? firewallChain(difference) : 0.3;

/** Kernels of one series are patched in turn: in a pool that is being updated they differ for days. */
const SERIES = /^\d{1,3}\.\d{1,3}/;

/** Services that write firewall rules, or remove routes and rules of others. */
const NETWORK_UNIT =
  /^(?:firewalld|ufw|nftables|iptables|ip6tables|ebtables|shorewall6?|csf|fail2ban|docker|NetworkManager|nm-cloud-setup|systemd-networkd)\.(?:service|timer)$/;

/** Queues that slow, drop or delay on purpose. */
const SHAPER = /^(?:tbf|netem|htb|hfsc|cbq|police|red|sfb|drr|ets)$/;

/** Weights by field, of rows that are there on both sides; `presence` if the row is there on one side only. */
const fields = (weights: Readonly<Record<string, number>>, presence: number) => (difference: Weighed) =>
  difference.change === "changed" ? (weights[difference.field] ?? UNKNOWN) : presence;

/** A network card of the machine: one more than others have changes nothing by itself, its routes and rules do. */
const CARD = /^(?:eth|ens|eno|enp|enx)\d/;
const LINK_FIELDS = { mtu: 0.75, up: 0.8, carrier: 0.7, master: 0.7, kind: 0.5, memberKind: 0.4, state: 0.2, flags: 0.35, qdisc: 0.3, hairpin: 0.6 };

function route(difference: Weighed): number {
  const { row, change, field } = difference;
  // a table of the kernel itself: follows the addresses
  if (row["table"] === "local") return 0.05;
  if (row["family"] === "ipv6" && textOf(row, "prefix").startsWith("fe80::")) return 0.1;
  if (change === "changed")
    return { number: 0.9, gateway: 0.8, metric: 0.7, mtu: 0.65, type: 0.85, flags: 0.5, source: 0.35, scope: 0.3, protocol: 0.15 }[field] ?? 0.3;
  if (/^(?:default|0\.0\.0\.0\/0|::\/0)$/.test(textOf(row, "prefix"))) return 0.95;
  if (/^(?:blackhole|unreachable|prohibit|throw)$/.test(textOf(row, "type"))) return 0.85;
  return row["type"] === "unicast" ? 0.7 : 0.1;
}

/** A single address in a policy rule. */
export const isHost = (end: unknown): boolean => typeof end === "string" && /^[\d.]+(?:\/32)?$|:[0-9a-f:]*(?:\/128)?$/.test(end);

const KINDS: Readonly<Record<string, (difference: Weighed) => number>> = {
  address: fields({}, 0.3),
  "bpf-cgroup": ({ row }) =>
    textOf(row, "attachType").endsWith("device") ? 0.05 : /\.(?:slice|service|scope)\b|kubepods|podruntime/.test(textOf(row, "cgroup")) ? 0.15 : 0.9,
  "bpf-link": () => 0.4,
  "bpf-map": () => 0.2,
  "bpf-net": () => 0.85,
  "bpf-program": () => 0.2,
  bridge: fields({ hairpin: 0.6, state: 0.5, isolated: 0.6, learning: 0.5, bridge: 0.7, stp: 0.4 }, 0.6),
  "calico-node": ({ list, field }) => (list === "conditions" || field === "established" ? 0.5 : 0.1),
  "cilium-status": ({ list, field }) => (list === "components" && field === "state" ? 0.5 : 0.1),
  clock: ({ field }) => (field === "synchronized" ? 0.4 : 0.1),
  "cni-config": () => 0.5,
  ebtables: firewall,
  "ethtool-features": ({ field, row }) => (field === "on" ? (/checksum|segmentation|gro|lro|vlan/.test(textOf(row, "name")) ? 0.5 : 0.3) : 0.1),
  iptables: (difference) => (difference.list === "warnings" ? 0.4 : firewall(difference)),
  // most of what it holds was made for pods, and the rules that use a set are compared by themselves
  ipset: ({ list }) => (list === "sets" ? 0.3 : 0.1),
  ipvs: ({ list }) => (list === "services" ? 0.4 : 0.1),
  "kube-proxy": ({ list, change }) => (list !== "modes" ? 0.1 : change === "changed" ? 0.6 : 0.4),
  link: ({ list, ...rest }) =>
    list === "statistics"
      ? 0
      : rest.field === "qdisc" && SHAPER.test(textOf(rest.row, "qdisc"))
        ? 0.7
        : list === "rows"
          ? fields(LINK_FIELDS, rest.change === "only-here" && CARD.test(textOf(rest.row, "interface")) ? 0.25 : 0.5)({ list, ...rest })
          : 0.7,
  module: ({ row }) => (!MODULES.test(textOf(row, "name")) ? 0.15 : ON_DEMAND.test(textOf(row, "name")) ? 0.25 : 0.65),
  networkd: ({ list }) => (list === "settings" ? 0.5 : 0.3),
  "network-manager": ({ list }) => (list === "settings" ? 0.4 : 0.3),
  nft: firewall,
  os: (difference) =>
    difference.field === "release" && difference.values !== undefined && SERIES.exec(difference.values.here)?.[0] === SERIES.exec(difference.values.there)?.[0]
      ? 0.2
      : fields({ release: 0.4, machine: 0.5, id: 0.4, versionId: 0.35, prettyName: 0.1, version: 0.1, name: 0.1 }, 0.3)(difference),
  ovs: ({ list, field }) => (list === "bonds" || list === "members" || field === "error" ? 0.7 : 0.5),
  route,
  // rules for one address are made for one pod (or one interface of an instance); that all of those to pods are missing is more
  rule: ({ row, change }) => (isHost(row["from"]) || (change !== "missing-here" && isHost(row["to"])) ? 0.2 : 0.85),
  sysctl: ({ row }) => SYSCTLS.find(([pattern]) => pattern.test(textOf(row, "key")))?.[1] ?? UNKNOWN,
  tc: ({ list, row }) => (list === "filters" ? 0.8 : SHAPER.test(textOf(row, "kind")) ? 0.7 : 0.35),
  tool: () => 0.25,
  unit: (difference) => {
    const matters = NETWORK_UNIT.test(textOf(difference.row, "unit")) && textOf(difference.row, "active") === "active";
    return fields({ active: 0.5, sub: 0.1, enabled: 0.2, load: 0.2 }, matters ? 0.5 : 0.2)(difference);
  },
};

/** Facts with weights of their own. */
export const WEIGHED: readonly string[] = Object.keys(KINDS);
