import { absentDevice } from "./absent-device.ts";
import { absentRule } from "./absent-rule.ts";
import { address } from "./address.ts";
import { agentLog } from "./agent-log.ts";
import { arping } from "./arping.ts";
import { attempt } from "./attempt.ts";
import { bgpRoute } from "./bgp-route.ts";
import { bpfCgroup } from "./bpf-cgroup.ts";
import { bpfLink } from "./bpf-link.ts";
import { bpfMap } from "./bpf-map.ts";
import { bpfMapDump } from "./bpf-map-dump.ts";
import { bpfNet } from "./bpf-net.ts";
import { bpfProgram } from "./bpf-program.ts";
import { bridge } from "./bridge.ts";
import { calicoNode } from "./calico-node.ts";
import { carrierCount } from "./carrier-count.ts";
import { ciliumMap } from "./cilium-map.ts";
import { ciliumService } from "./cilium-service.ts";
import { ciliumStatus } from "./cilium-status.ts";
import { clock } from "./clock.ts";
import { clusterNode } from "./cluster-node.ts";
import { clusterPod } from "./cluster-pod.ts";
import { clusterService } from "./cluster-service.ts";
import { cniConfig } from "./cni-config.ts";
import { conntrack } from "./conntrack.ts";
import { conntrackStats } from "./conntrack-stats.ts";
import { corefile } from "./corefile.ts";
import { daemonSet } from "./daemon-set.ts";
import { ebtables } from "./ebtables.ts";
import { emptyTable } from "./empty-table.ts";
import { ethtoolFeatures } from "./ethtool-features.ts";
import { ethtoolStatistics } from "./ethtool-statistics.ts";
import type { AnyFact } from "./fact.ts";
import { fdb } from "./fdb.ts";
import { fileLock } from "./file-lock.ts";
import { firewallTrace } from "./firewall-trace.ts";
import { flannelAnnotation } from "./flannel-annotation.ts";
import { flannelEnv } from "./flannel-env.ts";
import { hostFirewall } from "./host-firewall.ts";
import { instanceMetadata } from "./instance-metadata.ts";
import { ipamd } from "./ipamd.ts";
import { ipset } from "./ipset.ts";
import { iptables } from "./iptables.ts";
import { ipvs } from "./ipvs.ts";
import { ipvsConnection } from "./ipvs-connection.ts";
import { kernelLog } from "./kernel-log.ts";
import { kubeProxy } from "./kube-proxy.ts";
import { lineCount } from "./line-count.ts";
import { link } from "./link.ts";
import { listenQueue } from "./listen-queue.ts";
import { lsof } from "./lsof.ts";
import { manualRestart } from "./manual-restart.ts";
import { module } from "./module.ts";
import { neighbor } from "./neighbor.ts";
import { neighborRemoval } from "./neighbor-removal.ts";
import { neighborStats } from "./neighbor-stats.ts";
import { networkManager } from "./network-manager.ts";
import { networkd } from "./networkd.ts";
import { nft } from "./nft.ts";
import { noRouteMessage } from "./no-route-message.ts";
import { nstat } from "./nstat.ts";
import { offloadChange } from "./offload-change.ts";
import { os } from "./os.ts";
import { ovs } from "./ovs.ts";
import { packetTrace } from "./packet-trace.ts";
import { peerEntry } from "./peer-entry.ts";
import { ping } from "./ping.ts";
import { podAddress } from "./pod-address.ts";
import { podEvent } from "./pod-event.ts";
import { podTrace } from "./pod-trace.ts";
import { process } from "./process.ts";
import { resolvConf } from "./resolv-conf.ts";
import { route } from "./route.ts";
import { routeAnswer } from "./route-answer.ts";
import { routeSearch } from "./route-search.ts";
import { rule } from "./rule.ts";
import { ruleRemoval } from "./rule-removal.ts";
import { ruleSearch } from "./rule-search.ts";
import { sar } from "./sar.ts";
import { serviceAnswer } from "./service-answer.ts";
import { socket } from "./socket.ts";
import { socketSummary } from "./socket-summary.ts";
import { softnet } from "./softnet.ts";
import { stuckSocket } from "./stuck-socket.ts";
import { sysctl } from "./sysctl.ts";
import { tc } from "./tc.ts";
import { tool } from "./tool.ts";
import { unit } from "./unit.ts";
import { unreachableMessage } from "./unreachable-message.ts";
import { wantedRule } from "./wanted-rule.ts";
import { workloadEndpoint } from "./workload-endpoint.ts";

/** Every fact, one line each: the list that runbooks, rules, the CLI and the docs share. */
export const facts: readonly AnyFact[] = [
  absentDevice,
  absentRule,
  address,
  agentLog,
  arping,
  attempt,
  bpfCgroup,
  bpfLink,
  bpfMap,
  bpfMapDump,
  bpfNet,
  bpfProgram,
  bridge,
  calicoNode,
  carrierCount,
  ciliumMap,
  ciliumService,
  ciliumStatus,
  clock,
  clusterNode,
  clusterPod,
  clusterService,
  cniConfig,
  conntrack,
  conntrackStats,
  corefile,
  daemonSet,
  ebtables,
  emptyTable,
  ethtoolFeatures,
  ethtoolStatistics,
  fdb,
  fileLock,
  firewallTrace,
  flannelAnnotation,
  flannelEnv,
  hostFirewall,
  instanceMetadata,
  ipamd,
  ipset,
  iptables,
  ipvs,
  ipvsConnection,
  kernelLog,
  kubeProxy,
  lineCount,
  listenQueue,
  link,
  lsof,
  manualRestart,
  module,
  neighbor,
  neighborRemoval,
  neighborStats,
  networkd,
  networkManager,
  nft,
  noRouteMessage,
  nstat,
  offloadChange,
  os,
  ovs,
  packetTrace,
  peerEntry,
  ping,
  podAddress,
  podEvent,
  podTrace,
  process,
  resolvConf,
  route,
  routeSearch,
  routeAnswer,
  rule,
  ruleRemoval,
  ruleSearch,
  sar,
  serviceAnswer,
  socket,
  socketSummary,
  softnet,
  stuckSocket,
  sysctl,
  tc,
  tool,
  unit,
  unreachableMessage,
  wantedRule,
  bgpRoute,
  workloadEndpoint,
];
