/** The areas under which `docs/generated/rules.md` lists the rules. A rule that is not named here is listed under "Other". */
export const areas: Readonly<Record<string, readonly string[]>> = {
  "The five incidents": [
    "linklocal-route-on-bond-member",
    "kube-forward-before-cilium",
    "stale-socket-lb-program",
    "bridge-netfilter-off",
    "stale-ebtables-nat",
    "linklocal-neighbor-failed",
    "leftover-neighbor-entry",
    "unreplied-service-connection",
  ],
  Conntrack: ["conntrack-table-full", "conntrack-insert-failed", "stale-udp-conntrack", "conntrack-invalid-drops", "conntrack-binary-missing"],
  "Kernel settings": ["rp-filter-drops", "ip-forward-off", "ip-forward-off-on-interface", "neighbor-table-overflow", "bridge-netfilter-on-unwanted"],
  Firewall: [
    "iptables-legacy-nft-mix",
    "forward-policy-drop",
    "reject-before-accept",
    "kube-firewall-drop-without-mark",
    "xtables-lock-contention",
    "duplicate-rules-growth",
  ],
  CNI: [
    "cni-config-missing",
    "cni-config-conflict",
    "leftover-cni-interface",
    "veth-not-on-bridge",
    "pods-on-docker0",
    "stale-pod-route",
    "stale-pod-veth",
    "stale-hostport-dnat",
  ],
  Overlay: [
    "vxlan-checksum-offload",
    "vtep-mac-mismatch",
    "duplicate-vtep-mac",
    "overlay-interface-down",
    "overlay-port-blocked",
    "mtu-mismatch",
    "mac-address-policy-persistent",
  ],
  Routing: ["policy-rule-missing", "default-route-missing", "local-route-shadowed", "networkd-removes-foreign-routes", "nm-cloud-setup-rules"],
  "Cilium and Calico": ["cilium-agent-unhealthy", "cilium-bpf-map-full", "stale-tcx-program", "socket-lb-not-at-root-cgroup", "calico-bgp-down"],
  AWS: ["ena-allowance-exceeded", "vpc-cni-ip-exhausted", "vpc-cni-rules-missing"],
  "kube-proxy": ["ipvs-leftovers", "ipvs-binds-foreign-ip", "ipvs-conn-reuse", "kube-proxy-not-syncing"],
  DNS: ["resolv-conf-loop", "node-local-dns-orphan"],
  Host: [
    "ephemeral-port-overlap",
    "link-flapping",
    "nic-drops",
    "softnet-drops",
    "duplicate-address",
    "stale-neighbor-entry",
    "accept-queue-overflow",
    "udp-receive-buffer-drops",
    "socket-leak",
    "clock-unsynchronized",
    "tcp-mem-exhausted",
  ],
};

/** The area of a rule. */
export function areaOf(rule: string): string {
  return Object.keys(areas).find((area) => areas[area]?.includes(rule) === true) ?? "Other";
}
