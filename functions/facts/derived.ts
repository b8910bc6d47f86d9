import { addressConflict } from "./address-conflict.ts";
import { attachedProgram } from "./attached-program.ts";
import { bridgeNetfilter } from "./bridge-netfilter.ts";
import { cardDrops } from "./card-drops.ts";
import { chainGroup } from "./chain-group.ts";
import { checksumError } from "./checksum-error.ts";
import { ciliumAgent } from "./cilium-agent.ts";
import { ciliumPresence } from "./cilium-presence.ts";
import { cni } from "./cni.ts";
import { cniMessage } from "./cni-message.ts";
import { conntrackUsage } from "./conntrack-usage.ts";
import { defaultRoute } from "./default-route.ts";
import { dockerPod } from "./docker-pod.ts";
import { duplicateRule } from "./duplicate-rule.ts";
import { enaDriver } from "./ena-driver.ts";
import type { DerivedFact } from "./fact.ts";
import { flannelAnnouncement } from "./flannel-announcement.ts";
import { formerCni } from "./former-cni.ts";
import { fullQueue } from "./full-queue.ts";
import { hostPort } from "./host-port.ts";
import { invalidPacket } from "./invalid-packet.ts";
import { linkEvent } from "./link-event.ts";
import { linkLocalRoute } from "./link-local-route.ts";
import { localDns } from "./local-dns.ts";
import { lostOverlay } from "./lost-overlay.ts";
import { lostPeerRoute } from "./lost-peer-route.ts";
import { lostRule } from "./lost-rule.ts";
import { mtuConflict } from "./mtu-conflict.ts";
import { neighborDetour } from "./neighbor-detour.ts";
import { neighborTable } from "./neighbor-table.ts";
import { networkdRemoval } from "./networkd-removal.ts";
import { nodePort } from "./node-port.ts";
import { packetPath } from "./packet-path.ts";
import { podDns } from "./pod-dns.ts";
import { podPath } from "./pod-path.ts";
import { reversePath } from "./reverse-path.ts";
import { routeLookup } from "./route-lookup.ts";
import { secondUplink } from "./second-uplink.ts";
import { serviceProxy } from "./service-proxy.ts";
import { socketCount } from "./socket-count.ts";
import { socketLb } from "./socket-lb.ts";
import { staleServiceFlow } from "./stale-service-flow.ts";
import { tcpMemory } from "./tcp-memory.ts";
import { timeService } from "./time-service.ts";
import { vtep } from "./vtep.ts";

/** Facts computed from others, one line each. A derived fact stands behind the ones that it is derived from. In a file of its own: who only reads an output needs none of them. */
export const derivedFacts: readonly DerivedFact[] = [
  ciliumAgent,
  ciliumPresence,
  routeLookup,
  addressConflict,
  attachedProgram,
  neighborTable,
  mtuConflict,
  linkEvent,
  timeService,
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
  socketLb,
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
  hostPort,
  enaDriver,
];
