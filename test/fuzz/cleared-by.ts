import { CLEARED_BY_ONE_OUTPUT } from "../rules/cleared-by-one-output.ts";

/**
 * Further healthy captures that one output alone clears, by "<rule>/<case>" or "healthy/<case>": without it the rest is what the faulty node shows, and a person who pastes
 * just that wants the fault found. That output is never left out, nor cut.
 */
const CLEARED_BY: Readonly<Record<string, RegExp>> = {
  // the value was set after the packets had been recorded
  "healthy/trace-from-before-the-repair-r17": /^sysctl net.bridge/,
  // the peer's node is switched off
  "healthy/bgp-peer-notready-r13": /^kubectl get nodes/,
  "healthy/bgp-peer-of-a-node-that-is-away-r19": /^kubectl get nodes/,
  // the agent that fails is another node's, and only the list of pods tells whose
  "healthy/status-of-another-nodes-cilium-r13": /^kubectl -n kube-system get pods/,
  // what keeps the clock is told by its own program or by the list of programs
  "healthy/open-vm-tools-enabled-r13": /vmware-toolbox-cmd timesync status/,
  "healthy/clock-ptp-phc2sys-r12": /^ps /,
  "healthy/thread-chronyd-follows-and-the-kernel-does-not-know-r11": /^(?:chronyc|journalctl) /,
  // the kernel's complaint is about a pod's table; the node's own numbers show that it is not the node's
  "conntrack-table-full/near-miss-a-namespace-is-full": /^sysctl .*nf_conntrack_count/,
  // it was full within the last hour; the numbers show that the limit was raised since
  "conntrack-table-full/fixed-limit-raised": /^sysctl .*nf_conntrack_count/,
  // the way out is in another table
  "healthy/default-route-in-a-table-behind-main-r15": /^ip (?:rule|route show table all)/,
  // the address is answered by a card of the node's own
  "healthy/dup-own-second-card-r13": /^ip link/,
  // nothing is sent to a virtual server
  "ipvs-conn-reuse/near-miss-module-that-serves-nothing": /^ipvsadm /,
  // the order is the fault's; Cilium's status tells that netfilter sees both directions
  "healthy/kube-forward-first-iptables-masq-some-invalid-r5e": /^cilium-dbg status/,
  "healthy/kfc-iptables-masquerade-late-packets-r13": /^cilium-dbg status/,
  // the rules are another node's, and only the list of nodes tells that this one has another address
  "healthy/ssh-to-the-address-of-another-node-r13b": /^(?:hostname|ip -br addr|kubectl get nodes)/,
  // the counts are of two days
  "link-flapping/near-miss-counts-of-two-days": /^date/,
  // the cache listens
  "node-local-dns-orphan/near-miss-the-cache-is-back": /^ss /,
  // CoreDNS has upstream servers of its own
  "healthy/corefile-custom-forward-in-describe-r13": /^kubectl describe cm/,
  // the second look: they are gone
  "healthy/close-wait-burst-gone-r13": /^ss /,
  // the second look: nothing was dropped meanwhile
  "healthy/udp-buffer-full-and-nothing-dropped-r15": /^nstat /,
  // the pod is being made, or deleted, at this moment
  "healthy/live-pod-being-made-r12": /^(?:kubectl get pods|ip -d link)/,
  "healthy/pod-is-being-deleted-r15": /^kubectl get pods/,
  // Cilium does without the socket load balancer by now
  "stale-socket-lb-program/near-miss-settings-changed-since-the-start": /cilium-dbg status/,
  // the service has an endpoint that the table does not name
  "stale-udp-conntrack/near-miss-table-leaves-an-address-out": /^kubectl get/,
};

/** True for a command whose output alone clears this capture. */
export const clears = (command: string, capture: string): boolean =>
  CLEARED_BY[capture]?.test(command) === true || CLEARED_BY_ONE_OUTPUT[capture]?.lost.includes(command) === true;
