import { address } from "./address.ts";
import { bpfCgroup } from "./bpf-cgroup.ts";
import { bpfLink } from "./bpf-link.ts";
import { bpfMap } from "./bpf-map.ts";
import { bpfMapDump } from "./bpf-map-dump.ts";
import { bpfNet } from "./bpf-net.ts";
import { bpfProgram } from "./bpf-program.ts";
import { bridge } from "./bridge.ts";
import { conntrack } from "./conntrack.ts";
import { conntrackStats } from "./conntrack-stats.ts";
import { ebtables } from "./ebtables.ts";
import type { AnyFact, DerivedFact } from "./fact.ts";
import { fdb } from "./fdb.ts";
import { iptables } from "./iptables.ts";
import { kernelLog } from "./kernel-log.ts";
import { link } from "./link.ts";
import { module } from "./module.ts";
import { neighbor } from "./neighbor.ts";
import { nft } from "./nft.ts";
import { os } from "./os.ts";
import { ovs } from "./ovs.ts";
import { route } from "./route.ts";
import { rule } from "./rule.ts";
import { socketLb } from "./socket-lb.ts";
import { sysctl } from "./sysctl.ts";
import { tool } from "./tool.ts";

/** Every fact, one line each: the list that runbooks, rules, the CLI and the docs share. */
export const facts: readonly AnyFact[] = [
  address,
  bpfCgroup,
  bpfLink,
  bpfMap,
  bpfMapDump,
  bpfNet,
  bpfProgram,
  bridge,
  conntrack,
  conntrackStats,
  ebtables,
  fdb,
  iptables,
  kernelLog,
  link,
  module,
  neighbor,
  nft,
  os,
  ovs,
  route,
  rule,
  sysctl,
  tool,
];

/** Facts computed from others. A derived fact stands behind the ones that it is derived from. */
export const derivedFacts: readonly DerivedFact[] = [socketLb];
