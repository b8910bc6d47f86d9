import { describe, expect, test } from "vitest";
import { logRuns } from "../../functions/imports/log-lines.ts";

const runs = (text: string) =>
  logRuns(
    text.split("\n"),
    () => true,
    () => false,
    () => false,
  ).map(({ command, from, to }) => [command, from, to]);

test.each([
  ["[12345.678901] TCP: out of memory -- consider tuning tcp_mem", "dmesg"],
  ["kernel: [12345.678901] TCP: out of memory -- consider tuning tcp_mem", "dmesg"],
  ["node1 kernel: TCP: out of memory -- consider tuning tcp_mem", "dmesg"],
  ["fw-dropped: IN=cni0 OUT= PHYSIN=veth0a1b2c3d MAC=02:00 SRC=10.9.1.14 DST=192.0.2.9 LEN=60 TTL=64 PROTO=TCP SPT=49720 DPT=10250", "dmesg"],
  ["[UFW BLOCK] IN=ens5 OUT=ens5 SRC=10.9.1.14 DST=192.0.2.9 LEN=60 TTL=64 PROTO=TCP SPT=49720 DPT=10250", "dmesg"],
  ["[Sat Nov 21 03:51:28 2026] nf_conntrack: table full, dropping packet", "dmesg -T"],
  ["kern  :warn  : [12345.678901] nf_conntrack: table full, dropping packet", "dmesg"],
  ["<4>[12345.678901] nf_conntrack: table full, dropping packet", "dmesg"],
  ["[Nov21 03:51] nf_conntrack: table full, dropping packet", "dmesg -H"],
  ["[  +4.912310] nf_conntrack: table full, dropping packet", "dmesg -H"],
  ["2026-11-21T03:51:28,678901+00:00 nf_conntrack: table full, dropping packet", "dmesg --time-format iso"],
  ['{"__REALTIME_TIMESTAMP":"1795233088000000","_TRANSPORT":"kernel","MESSAGE":"…"}', "journalctl -o json"],
  ["[pod/kube-proxy-x7k2p/kube-proxy] E1121 03:51:28.612345       1 x.go:1] …", "kubectl logs"],
  ["Another app is currently holding the xtables lock; still 4s 0us time ahead to have a chance to grab the lock...", "kubectl logs"],
  ["Failed to delete stale service IP 10.96.0.10 connections, error: …", "kubectl logs kube-proxy"],
  ["Failed to execute iptables-restore for nat: exit status 1 (iptables-restore: line 7 failed)", "kubectl logs kube-proxy"],
  ["E1121 03:51:28.612345     712 kuberuntime.go:9] cannot add hostport: Failed to execute iptables-restore: exit status 4", "kubectl logs"],
  ["  Ready            False   Sat, 21 Nov 2026 03:51:28 +0000   Sat, 21 Nov 2026 03:40:02 +0000   KubeletNotReady   …", "kubectl describe node"],
  ['    "lastCNILoadStatus": "cni config load failed: no network config found in /etc/cni/net.d",', "crictl info"],
  ["nf_conntrack: nf_conntrack: table full, dropping packet", "dmesg"],
  ["neighbour: arp_cache: neighbor table overflow!", "dmesg"],
  ["Nov 21 03:51:28 node1 kernel: neighbour: arp_cache: neighbor table overflow!", "journalctl"],
  ["févr. 06 03:51:28 node1 kubelet[712]: E0206 …", "journalctl"],
  ["2026-11-21T03:51:28+0000 node1 systemd-networkd[611]: eth0: Lost carrier", "journalctl"],
  ["412:Nov 21 03:51:28 node1 kubelet[712]: E1121 …", "journalctl"],
  ["Sat Nov 21 03:51:28 2026 kern.info kernel: [12345.678901] neighbour: arp_cache: neighbor table overflow!", "logread"],
  ["E1121 03:51:28.612345       1 reflector.go:138] Failed to watch *v1.Service: unauthorized", "kubectl logs"],
  ["E1121 03:51:28.612345       1 proxier.go:1520] Failed to execute iptables-restore", "kubectl logs kube-proxy"],
  [
    "E1121 03:51:28.612345       1 reflector.go:205] k8s.io/kubernetes/pkg/client/informers/informers_generated/internalversion/factory.go:86: Failed to list *core.Endpoints: Get …",
    "kubectl logs kube-proxy",
  ],
  ["E1121 03:51:28.612345       1 reflector.go:203] pkg/proxy/config/api.go:30: Failed to list *api.Service: Get …", "kubectl logs kube-proxy"],
  ["E1121 03:51:28.612345       1 reflector.go:205] k8s.io/client-go/informers/factory.go:86: Failed to list *v1.Endpoints: Get …", "kubectl logs"],
  ['level=fatal msg="Error while creating daemon" error="…"', "kubectl logs cilium"],
  ['level=error msg="Failed to start hive" subsys=cilium-operator-generic error="…"', "kubectl logs cilium-operator"],
  ['level=fatal msg="Failed to start hive" subsys=clustermesh-apiserver error="…"', "kubectl logs clustermesh-apiserver"],
  ["node1 etcd[712]: the clock difference against peer 9f5c1d6bb38e207a is too high [4.2s > 1s]", "journalctl"],
  ['plugin/loop: Loop (127.0.0.1:41180 -> :53) detected for zone "."', "kubectl logs coredns"],
  ['ugin type=\\"bridge\\" failed (add): failed to set bridge addr: \\"cni0\\" already has an IP address different from 10.9.4.1/24', "journalctl -u kubelet"],
  ['failed to set bridge addr: "cni0" already has an IP address different from 10.9.4.1/24', "journalctl -u kubelet"],
  ["2026-11-21 03:51:28.612345 W | rafthttp: the clock difference against peer 9f5c1d6bb38e207a is too high [4.2s > 1s]", "kubectl logs etcd"],
  ["True    Sat, 21 Nov 2026 03:40:02 +0000   KubeletNotReady     runtime network not ready: …", "kubectl describe node"],
  ["W1121 03:51:28.612345   30417 cni.go:213] Unable to update cni config: No networks found", "journalctl -u kubelet"],
  ['{"log":"bird: Mesh_10_20_4_12: State changed to down\\n","stream":"stdout","time":"2026-11-20T09:26:56.69Z"}', "kubectl logs calico-node"],
  ["30417 cni.go:213] Unable to update cni config: No networks found", "journalctl -u kubelet"],
  ["2026-11-21T03:51:28.6Z stderr F E1121 03:51:28.612345       1 main.go:204] Failed to find any valid interface", "kubectl logs"],
  ['time="2026-11-21T03:51:28Z" level=error msg="failed to load cni during init"', "kubectl logs"],
  ['Error: no default routes found in "/proc/net/route" or "/proc/net/ipv6_route"', "kubectl logs"],
  ['level=warning msg="Update of l4 policy map failed" subsys=endpoint', "kubectl logs cilium"],
  ["2026-11-21 03:51:28.123 [WARNING][61] felix/health.go 211: Report timed out", "kubectl logs calico-node"],
  ["[FATAL] plugin/loop: Loop (127.0.0.1:55953 -> :53) detected for zone", "kubectl logs coredns"],
  ['{"level":"error","ts":"2026-11-21T03:51:28.612Z","caller":"ipamd/ipamd.go:512","msg":"…"}', "tail /var/log/aws-routed-eni/ipamd.log"],
  ["2026-11-21T03:51:28Z [DEBUG] AssignIPv4Address: IP address pool stats: total:42, assigned 42", "tail /var/log/aws-routed-eni/ipamd.log"],
  ["Container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady", "journalctl -u kubelet"],
  ["Readiness probe failed: calico/node is not ready: BIRD is not ready: BGP not established with 10.0.0.2", "kubectl describe pod calico-node"],
  ["  Warning  BackOff  28s (x27 over 5m6s)  kubelet  Back-off restarting failed container", "kubectl describe pod"],
  ["  Warning  Unhealthy  31m  kubelet  Readiness probe failed: BIRD is not ready: BGP not established with 10.0.0.2", "kubectl describe pod calico-node"],
  ["cart   4m18s (x912 over 3h)  Warning  FailedCreatePodSandBox  pod/cart-0  Failed to create pod sandbox", "kubectl get events"],
])("%s", (line, command) => {
  expect(runs(line)).toEqual([[command, 1, 1]]);
});

test.each([
  "the log says [12] and then nothing",
  "Warning: nothing works",
  "Normal people restart it",
  "On Nov 21 03:51 node1 went away: nobody knows why",
  "level=high priority, please",
  "I think the neighbor table overflows",
  "the kernel: it says nothing",
  "IN=1 and OUT=2 are counters, SRC= is missing",
])("prose: %s", (line) => {
  expect(runs(line)).toEqual([]);
});

test("a run goes on over the rest of a message and over blank lines between messages, and ends at prose and at a log of another kind", () => {
  const text = [
    "Nov 21 03:51:28 jobs-2 kernel: [2219481.1] nf_conntrack: table full,",
    "dropping packet",
    "",
    "Nov 21 03:51:29 jobs-2 kernel: [2219482.1] nf_conntrack: table full, dropping packet",
    "",
    "and the kernel itself:",
    "[2219483.121790] nf_conntrack: table full, dropping packet",
    "E1121 03:51:28.612345       1 reflector.go:138] Failed to watch *v1.Service",
  ].join("\n");
  expect(runs(text)).toEqual([
    ["journalctl", 1, 4],
    ["dmesg", 7, 7],
    ["kubectl logs", 8, 8],
  ]);
});

test("only what nothing else claims is looked at, and a stop ends a run", () => {
  const lines = ["[1.000000] a", "[2.000000] b", "[3.000000] c"];
  expect(
    logRuns(
      lines,
      (i) => i !== 0,
      (i) => i === 2,
      () => false,
    ),
  ).toEqual([
    { command: "dmesg", from: 2, to: 2 },
    { command: "dmesg", from: 3, to: 3 },
  ]);
});

describe("whose log it is, the line above may tell", () => {
  const LINE = "E1121 03:51:28.612345       1 reflector.go:138] k8s.io/client-go/informers/factory.go:134: Failed to watch *v1.Service: Unauthorized";
  test.each([
    ["kube-proxy logs:", "kubectl logs kube-proxy"],
    ["**kube-proxy pod log**", "kubectl logs kube-proxy"],
    ["Here are the logs of kube-proxy on the broken node", "kubectl logs kube-proxy"],
    ["Here is the error message of kube-proxy :", "kubectl logs kube-proxy"],
    ["kube-proxy.ERROR logs", "kubectl logs kube-proxy"],
    ["### Logs from the flanneld", "kubectl logs flanneld"],
    ["I restarted kube-proxy, and the ingress controller says:", "kubectl logs"],
    ["logs of kube-proxy-exporter", "kubectl logs"],
    ["My cluster:", "kubectl logs"],
  ])("%s", (above, command) => {
    expect(runs(`${above}\n\n${LINE}`)).toEqual([[command, 3, 3]]);
  });
});
