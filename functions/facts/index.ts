import { absentDevice } from "./absent-device.ts";
import { address } from "./address.ts";
import { addressConflict } from "./address-conflict.ts";
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
import { bridgeNetfilter } from "./bridge-netfilter.ts";
import { calicoNode } from "./calico-node.ts";
import { cardDrops } from "./card-drops.ts";
import { carrierCount } from "./carrier-count.ts";
import { chainGroup } from "./chain-group.ts";
import { checksumError } from "./checksum-error.ts";
import { ciliumAgent } from "./cilium-agent.ts";
import { ciliumMap } from "./cilium-map.ts";
import { ciliumPresence } from "./cilium-presence.ts";
import { ciliumService } from "./cilium-service.ts";
import { ciliumStatus } from "./cilium-status.ts";
import { clock } from "./clock.ts";
import { clusterNode } from "./cluster-node.ts";
import { clusterPod } from "./cluster-pod.ts";
import { clusterService } from "./cluster-service.ts";
import { cni } from "./cni.ts";
import { cniConfig } from "./cni-config.ts";
import { cniMessage } from "./cni-message.ts";
import { conntrack } from "./conntrack.ts";
import { conntrackStats } from "./conntrack-stats.ts";
import { conntrackUsage } from "./conntrack-usage.ts";
import { defaultRoute } from "./default-route.ts";
import { dockerPod } from "./docker-pod.ts";
import { duplicateRule } from "./duplicate-rule.ts";
import { ebtables } from "./ebtables.ts";
import { emptyTable } from "./empty-table.ts";
import { ethtoolFeatures } from "./ethtool-features.ts";
import { ethtoolStatistics } from "./ethtool-statistics.ts";
import type { AnyFact, DerivedFact } from "./fact.ts";
import { fdb } from "./fdb.ts";
import { flannelAnnotation } from "./flannel-annotation.ts";
import { flannelAnnouncement } from "./flannel-announcement.ts";
import { flannelEnv } from "./flannel-env.ts";
import { formerCni } from "./former-cni.ts";
import { fullQueue } from "./full-queue.ts";
import { hostFirewall } from "./host-firewall.ts";
import { instanceMetadata } from "./instance-metadata.ts";
import { invalidPacket } from "./invalid-packet.ts";
import { ipamd } from "./ipamd.ts";
import { ipset } from "./ipset.ts";
import { iptables } from "./iptables.ts";
import { ipvs } from "./ipvs.ts";
import { ipvsConnection } from "./ipvs-connection.ts";
import { kernelLog } from "./kernel-log.ts";
import { kubeProxy } from "./kube-proxy.ts";
import { lineCount } from "./line-count.ts";
import { link } from "./link.ts";
import { linkEvent } from "./link-event.ts";
import { linkLocalRoute } from "./link-local-route.ts";
import { listenQueue } from "./listen-queue.ts";
import { localDns } from "./local-dns.ts";
import { lostOverlay } from "./lost-overlay.ts";
import { lostPeerRoute } from "./lost-peer-route.ts";
import { lostRule } from "./lost-rule.ts";
import { lsof } from "./lsof.ts";
import { manualRestart } from "./manual-restart.ts";
import { module } from "./module.ts";
import { mtuConflict } from "./mtu-conflict.ts";
import { neighbor } from "./neighbor.ts";
import { neighborDetour } from "./neighbor-detour.ts";
import { neighborStats } from "./neighbor-stats.ts";
import { neighborTable } from "./neighbor-table.ts";
import { networkManager } from "./network-manager.ts";
import { networkd } from "./networkd.ts";
import { networkdRemoval } from "./networkd-removal.ts";
import { nft } from "./nft.ts";
import { noRouteMessage } from "./no-route-message.ts";
import { nodePort } from "./node-port.ts";
import { nstat } from "./nstat.ts";
import { offloadChange } from "./offload-change.ts";
import { os } from "./os.ts";
import { ovs } from "./ovs.ts";
import { packetPath } from "./packet-path.ts";
import { packetTrace } from "./packet-trace.ts";
import { ping } from "./ping.ts";
import { podDns } from "./pod-dns.ts";
import { podEvent } from "./pod-event.ts";
import { podPath } from "./pod-path.ts";
import { process } from "./process.ts";
import { resolvConf } from "./resolv-conf.ts";
import { reversePath } from "./reverse-path.ts";
import { route } from "./route.ts";
import { routeAnswer } from "./route-answer.ts";
import { routeLookup } from "./route-lookup.ts";
import { routeSearch } from "./route-search.ts";
import { rule } from "./rule.ts";
import { ruleRemoval } from "./rule-removal.ts";
import { ruleSearch } from "./rule-search.ts";
import { sar } from "./sar.ts";
import { secondUplink } from "./second-uplink.ts";
import { serviceAnswer } from "./service-answer.ts";
import { serviceProxy } from "./service-proxy.ts";
import { socket } from "./socket.ts";
import { socketCount } from "./socket-count.ts";
import { socketLb } from "./socket-lb.ts";
import { socketSummary } from "./socket-summary.ts";
import { softnet } from "./softnet.ts";
import { staleServiceFlow } from "./stale-service-flow.ts";
import { stuckSocket } from "./stuck-socket.ts";
import { sysctl } from "./sysctl.ts";
import { tc } from "./tc.ts";
import { tcpMemory } from "./tcp-memory.ts";
import { tool } from "./tool.ts";
import { unit } from "./unit.ts";
import { unreachableMessage } from "./unreachable-message.ts";
import { vtep } from "./vtep.ts";
import { wantedRule } from "./wanted-rule.ts";
import { workloadEndpoint } from "./workload-endpoint.ts";

/** Every fact, one line each: the list that runbooks, rules, the CLI and the docs share. */
export const facts: readonly AnyFact[] = [
  absentDevice,
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
  ebtables,
  emptyTable,
  ethtoolFeatures,
  ethtoolStatistics,
  fdb,
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
  ping,
  podEvent,
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

/** Facts computed from others. A derived fact stands behind the ones that it is derived from. */
export const derivedFacts: readonly DerivedFact[] = [
  ciliumAgent,
  ciliumPresence,
  socketLb,
  routeLookup,
  addressConflict,
  neighborTable,
  mtuConflict,
  linkEvent,
  reversePath,
  packetPath,
  invalidPacket,
  duplicateRule,
  chainGroup,
  cardDrops,
  conntrackUsage,
  flannelAnnouncement,
  fullQueue,
  socketCount,
  staleServiceFlow,
  tcpMemory,
  podDns,
  localDns,
  serviceProxy,
  cni,
  cniMessage,
  vtep,
  podPath,
  checksumError,
  bridgeNetfilter,
  nodePort,
  linkLocalRoute,
  lostOverlay,
  dockerPod,
  defaultRoute,
  lostRule,
  secondUplink,
  neighborDetour,
  lostPeerRoute,
  networkdRemoval,
  formerCni,
];
