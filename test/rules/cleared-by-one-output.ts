/** Where less is seen, a rule may still match, less surely, because people paste just that little, and want the fault found. */
interface Cleared {
  /** The commands any of whose outputs clears the rest. */
  readonly lost: readonly string[];
  /** What is found without it. */
  readonly cause: string;
  readonly confidence: number;
  readonly reason: string;
}

/** Rules' cases that one output alone clears, or keeps from another cause, by "<rule>/<case>". */
export const CLEARED_BY_ONE_OUTPUT: Readonly<Record<string, Cleared>> = {
  "bridge-netfilter-off/near-miss-bridge-switched-on": {
    lost: ["ip -d link"],
    cause: "bridge-netfilter-off",
    confidence: 0.85,
    reason: "a bridge that has it on for itself is rare, and only `ip -d link` tells; the write-up does without it",
  },
  "calico-bgp-down/inconclusive-one-of-many-does-not-answer-arp": {
    lost: ["calicoctl node status"],
    cause: "calico-bgp-down",
    confidence: 0.85,
    reason: "of a list that was cut the sessions that are up may be the ones that are missing",
  },
  "calico-bgp-down/near-miss-the-node-of-the-peer-is-away": {
    lost: ["kubectl get nodes"],
    cause: "calico-bgp-down",
    confidence: 0.62,
    reason: "that the peer's node is away, the list of nodes tells alone",
  },
  "calico-bgp-down/near-miss-the-node-of-the-peer-is-away-addresses-apart": {
    lost: ["kubectl get nodes", "kubectl get nodes -o wide | awk '{print $1,$6}'"],
    cause: "calico-bgp-down",
    confidence: 0.62,
    reason: "that the peer's node is away, the list of nodes tells alone",
  },
  "clock-unsynchronized/inconclusive-chronyd-follows-a-server-and-the-kernel-does-not-know": {
    lost: ["journalctl --no-pager -u chronyd"],
    cause: "clock-unsynchronized",
    confidence: 0.65,
    reason: "a person typed `timedatectl`, and nothing tells of chrony, which need not tell the kernel",
  },
  "clock-unsynchronized/near-miss-asked-again-in-step": {
    lost: ["timedatectl"],
    cause: "clock-unsynchronized",
    confidence: 0.65,
    reason: "of a command that was run twice the last answer counts, and without it the first one is the last",
  },
  "cni-config-missing/near-miss-described-pod-that-started-since": {
    lost: ["kubectl describe pod api-7c9f-xk2 -n prod"],
    cause: "cni-config-missing",
    confidence: 0.9,
    reason: "that its container has started since, the last lines tell alone",
  },
  "cni-config-missing/near-miss-ready-when-the-log-was-read-again": {
    lost: ["journalctl -u kubelet --no-pager -n 3"],
    cause: "cni-config-missing",
    confidence: 0.8,
    reason: "that the kubelet has become ready since, the second look at its log tells alone",
  },
  "default-route-missing/near-miss-asked-again-and-it-is-there": {
    lost: ["ip route get 9.9.9.9"],
    cause: "default-route-missing",
    confidence: 0.75,
    reason: "that there is a default route by now, the kernel's answer tells alone",
  },
  "default-route-missing/near-miss-goes-out-by-ipv6-and-an-address-of-ipv6-is-not-reached": {
    lost: ["ip -6 route"],
    cause: "default-route-missing",
    confidence: 0.95,
    reason: "nothing else tells that the node goes out by IPv6, and an IPv4 node without the route has this fault",
  },
  "default-route-missing/near-miss-ipv6-goes-out-and-an-old-pull-failed": {
    lost: ["ip -6 route"],
    cause: "default-route-missing",
    confidence: 0.75,
    reason: "nothing else tells that the node goes out by IPv6",
  },
  "duplicate-address/near-miss-ipv6-tested-again-and-in-use": {
    lost: ["ip -6 addr show eth0"],
    cause: "duplicate-address",
    confidence: 0.94,
    reason: "only the address itself tells that it passed the test since",
  },
  "duplicate-vtep-mac/near-miss-range-that-the-node-had-before": {
    lost: ["ip route | grep flannel"],
    cause: "duplicate-vtep-mac",
    confidence: 0.95,
    reason: "only the routes tell that one of the two ranges is no node's any more",
  },
  "ipvs-leftovers/near-miss-the-mode-was-changed-in-between": {
    lost: ["curl 127.0.0.1:10249/proxyMode"],
    cause: "ipvs-leftovers",
    confidence: 0.78,
    reason: "that the mode was changed in between, the two answers tell together",
  },
  "leftover-cni-interface/near-miss-pod-described-again-has-started": {
    lost: ["kubectl describe pod nginx-7c"],
    cause: "leftover-cni-interface",
    confidence: 0.95,
    reason: "that the pod has started since, the second look at it tells alone",
  },
  "link-flapping/near-miss-lost-while-the-machine-started-by-uptime-p": {
    lost: ["uptime -p"],
    cause: "link-flapping",
    confidence: 0.93,
    reason: "nothing else tells that the machine was starting",
  },
  "mac-address-policy-persistent/near-miss-pod-of-the-vpc-cni-answers": {
    lost: ["ip r", "ping -c 3 10.0.44.90"],
    cause: "mac-address-policy-persistent",
    confidence: 0.72,
    reason: "the setting alone is what the plugin's issue shows, and only a pod that answers tells that it does no harm",
  },
  "mtu-mismatch/near-miss-counted-pings-larger-than-the-pods-own": {
    lost: ["ip link"],
    cause: "mtu-mismatch",
    confidence: 0.8,
    reason: "only the pods' own size tells that the lost pings were larger than theirs",
  },
  "overlay-interface-down/inconclusive-cilium-off-beside-calico-without-routes": {
    lost: ["ip -br link"],
    cause: "overlay-interface-down",
    confidence: 0.85,
    reason: "of a list that was cut the other CNI's device may be missing",
  },
  "overlay-interface-down/near-miss-cilium-off-and-calico-leads-to-other-nodes": {
    lost: ["ip route"],
    cause: "overlay-interface-down",
    confidence: 0.85,
    reason: "only the routes tell that another CNI's device leads to the other nodes",
  },
  "overlay-interface-down/near-miss-flannel-off-and-pods-too-large-for-a-tunnel": {
    lost: ["cat /run/flannel/subnet.env"],
    cause: "overlay-interface-down",
    confidence: 0.85,
    reason: "only flannel's own MTU tells that nothing is to go through its device",
  },
  "overlay-interface-down/near-miss-flannel-off-and-routes-to-hosts": {
    lost: ["ip route", "ip link"],
    cause: "overlay-interface-down",
    confidence: 0.94,
    reason: "only the routes, and the size of the links, tell that pods need no tunnel",
  },
  "overlay-interface-down/near-miss-flannel-went-over-to-wireguard": {
    lost: ["ip link", "ip route"],
    cause: "overlay-interface-down",
    confidence: 0.94,
    reason: "that flannel has another tunnel by now, the end of the list of links and the routes tell alone",
  },
  "overlay-port-blocked/near-miss-log-lines-of-before-firewalld-let-it-in": {
    lost: ["nft list ruleset"],
    cause: "overlay-port-blocked",
    confidence: 0.72,
    reason: "that the port is let in by now, the ruleset tells alone; the log of a firewall is often all that is shown",
  },
  "resolv-conf-loop/inconclusive-loop-before-the-last-restart-long-ago": {
    lost: ["kubectl -n kube-system get pods -l k8s-app=kube-dns"],
    cause: "resolv-conf-loop",
    confidence: 0.9,
    reason: "only the list of pods tells that they run without a restart since",
  },
  "rp-filter-drops/near-miss-forged-senders-on-a-public-card": {
    lost: ["dmesg"],
    cause: "rp-filter-drops",
    confidence: 0.68,
    reason: "only the kernel's log tells who sent what the counter counts",
  },
  "socket-leak/near-miss-orphans-far-below-the-limit": {
    lost: ["sysctl -a"],
    cause: "socket-leak",
    confidence: 0.75,
    reason: "how many orphans the kernel allows, the setting tells alone",
  },
  "stale-ebtables-nat/near-miss-calico-with-the-mac-of-the-rule": {
    lost: ["ip -4 r get 10.12.7.88; ip n"],
    cause: "stale-ebtables-nat",
    confidence: 0.75,
    reason: "only the neighbour table tells that the pod has the address of the rule",
  },
  "stale-neighbor-entry/near-miss-request-to-another-port-is-answered": {
    lost: ["nc -zv 192.0.2.60 22"],
    cause: "stale-neighbor-entry",
    confidence: 0.8,
    reason: "that the host answers, this request tells alone",
  },
  "stale-pod-route/dead-device-while-another-one-has-no-route": {
    lost: ["ip route"],
    cause: "stale-pod-veth",
    confidence: 0.7,
    reason: "without the routes, all that is left is a dead device of a pod",
  },
  "stale-pod-veth/near-miss-pair-of-which-both-ends-are-here": {
    lost: ["ip -d link show"],
    cause: "stale-pod-veth",
    confidence: 0.75,
    reason: "the other end of the pair stands behind the cut",
  },
  "veth-not-on-bridge/near-miss-the-ports-of-one-of-two-bridges-alone": {
    lost: ["ip -br link show type bridge"],
    cause: "veth-not-on-bridge",
    confidence: 0.85,
    reason: "only the list of bridges tells that there is another one",
  },
  "vpc-cni-ip-exhausted/near-miss-burst-of-pods-that-started-since": {
    lost: ["journalctl -u kubelet"],
    cause: "vpc-cni-ip-exhausted",
    confidence: 0.78,
    reason: "that the pods have started since, the last lines tell alone",
  },
  "vpc-cni-ip-exhausted/near-miss-described-pod-that-started-since": {
    lost: ["kubectl describe pod api-7c9f-xk2 -n prod"],
    cause: "vpc-cni-ip-exhausted",
    confidence: 0.78,
    reason: "that its container has started since, the last lines tell alone",
  },
  "vtep-mac-mismatch/near-miss-another-node-has-the-right-entry-beside-an-old-one": {
    lost: ["ssh wk-1 bridge fdb show dev flannel.1"],
    cause: "vtep-mac-mismatch",
    confidence: 0.94,
    reason: "the right entry is the last line of that list",
  },
  "vtep-mac-mismatch/near-miss-flannel-s-log-has-the-new-address-by-now": {
    lost: ["kubectl logs -n kube-flannel kube-flannel-ds-node1 | grep -E '(calling|adding)'"],
    cause: "vtep-mac-mismatch",
    confidence: 0.94,
    reason: "the right address is in the last lines of that log",
  },
  "vtep-mac-mismatch/near-miss-the-node-at-the-other-end-was-shown-too": {
    lost: ["ip addr"],
    cause: "vtep-mac-mismatch",
    confidence: 0.93,
    reason: "that the addresses are those of the node at the other end, the device's own address tells alone",
  },
};
