/** Programs that keep chains of their own in iptables or nft, by the beginnings of their names. Only what a chain is named after is told, not who wrote a rule into it. */
const CHAINS: readonly (readonly [RegExp, string])[] = [
  [/^KUBE[-_]/, "kubernetes"],
  [/^cali-/, "calico"],
  [/^(?:CILIUM_|OLD_CILIUM)/, "cilium"],
  [/^AWS-/, "aws-vpc-cni"],
  [/^AZURE/, "azure-vnet"],
  [/^FLANNEL/, "flannel"],
  [/^WEAVE/, "weave"],
  [/^ANTREA/, "antrea"],
  [/^CNI-/, "cni-plugins"],
  [/^ISTIO/, "istio"],
  [/^DOCKER/, "docker"],
  [/^NETAVARK/, "podman"],
  [/^LIBVIRT_/, "libvirt"],
  [/^(?:LXD|INCUS)/, "lxd"],
  [/^ts-/, "tailscale"],
  [/^f2b-/, "fail2ban"],
];

/** The same of whole tables of nft: `inet calico`. */
const TABLES: readonly (readonly [RegExp, string])[] = [
  [/^kube-proxy$/, "kubernetes"],
  [/^calico$/, "calico"],
  [/^cilium$/, "cilium"],
  [/^kindnet/, "kindnet"],
  [/^flannel/, "flannel"],
  [/^antrea$/, "antrea"],
  [/^ovn/, "ovn-kubernetes"],
  [/^hostport/, "cni-plugins"],
  [/^docker/, "docker"],
  [/^netavark$/, "podman"],
  [/^libvirt_network$/, "libvirt"],
  [/^(?:lxd|incus)$/, "lxd"],
];

/**
 * Which program keeps the chain or the table, as their names tell: what stands there is meant by Kubernetes, its network plugin, or the tool of the containers or machines. Undefined
 * for what is the host's own.
 * @param owner as in a row of packet-path: "iptables-nft", "inet firewalld"
 */
export function keeperOf(owner: string, chain: string): string | undefined {
  const table = /^(?:inet|ip6?) (.+)$/.exec(owner)?.[1];
  const tableKeeper = table === undefined ? undefined : TABLES.find(([name]) => name.test(table))?.[1];
  return tableKeeper ?? CHAINS.find(([name]) => name.test(chain))?.[1];
}
