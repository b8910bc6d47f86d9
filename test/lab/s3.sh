#!/bin/bash
# S3: a stale socket-LB program, with its own stale map, is attached to the cgroup before the current one.
# fault           attached as Cilium < 1.14 does (bpf_prog_attach); its pins are gone
# fault --link    attached through a bpf_link, as newer Cilium does
# fault --orphan  Cilium has gone, and Calico with kube-proxy is in its place; the old program is still attached, alone
. "$(dirname "$0")/lib.sh"
POD=$(namespace pod) BACKEND=$(namespace backend)
SERVICE=172.17.93.4 BACKEND_IP=172.16.109.127
GLOBALS=/sys/fs/bpf/tc/globals OLD=/sys/fs/bpf/cilium/old NEW=/sys/fs/bpf/cilium/new

up() {
  create pod backend
  ip -n "$N" link add lxcpod type veth peer name eth0 netns "$POD"
  ip -n "$N" link set lxcpod up
  ip -n "$N" addr add 172.16.168.1/32 dev lxcpod
  ip -n "$N" route add 172.16.168.150/32 dev lxcpod
  ip -n "$POD" addr add 172.16.168.150/32 dev eth0
  ip -n "$POD" link set eth0 up
  ip -n "$POD" route add 172.16.168.1 dev eth0
  ip -n "$POD" route add default via 172.16.168.1
  ip -n "$N" link add eth0 type veth peer name eth0 netns "$BACKEND"
  ip -n "$N" addr add 10.10.0.1/24 dev eth0
  ip -n "$N" link set eth0 up
  ip -n "$BACKEND" addr add 10.10.0.2/24 dev eth0
  ip -n "$BACKEND" link set eth0 up
  ip -n "$BACKEND" addr add $BACKEND_IP/32 dev lo
  ip -n "$BACKEND" route add default via 10.10.0.1
  ip -n "$N" route add 172.16.109.0/24 via 10.10.0.2
  ip -n "$N" route add 172.16.149.0/24 via 10.10.0.2
  in_ns "$N" sysctl -qw net.ipv4.ip_forward=1
  mkdir "$(node_cgroup)/kubepods-pod1"
  on_node mkdir -p $GLOBALS $OLD $NEW
  on_node sh -c 'cat >/run/sock.o' <"$HERE/bpf/s3_sock.bpf.o" # the node's own /tmp may hide the repository
  # The old generation is loaded first, so its ids are lower. Healthy: only the new one is attached.
  load $OLD $OLD d2 01 ac 10 95 dc     # backend 172.16.149.220, gone
  load $NEW $GLOBALS e4 03 ac 10 6d 7f # backend 172.16.109.127
  attach $NEW
  serve "$BACKEND" $BACKEND_IP 8080 "hello from the right backend"
}

# load PROGRAM_DIRECTORY MAP_DIRECTORY ID_LOW ID_HIGH A B C D: one generation of the program, its maps holding the service's
# one backend A.B.C.D. The maps are made without BTF, as Cilium's are, so that dumps are raw hex.
load() {
  local programs=$1 low=$3 high=$4 services=$2/cilium_lb4_services_v2 backends=$2/cilium_lb4_backends_v3
  shift 4
  on_node bpftool map create "$services" type hash key 12 value 12 entries 65536 name cilium_lb4_serv flags 1
  on_node bpftool map create "$backends" type hash key 4 value 12 entries 65536 name cilium_lb4_back flags 1
  on_node bpftool prog load /run/sock.o "$programs/cil_sock4_connect" \
    map name cilium_lb4_services_v2 pinned "$services" map name cilium_lb4_backends_v3 pinned "$backends"
  on_node bpftool map update pinned "$services" key hex ac 11 5d 04 1f 90 00 00 06 00 00 00 value hex 00 00 00 01 01 00 01 98 00 00 00 00
  on_node bpftool map update pinned "$services" key hex ac 11 5d 04 1f 90 01 00 06 00 00 00 value hex "$low" "$high" 00 00 00 00 01 98 00 00 00 00
  on_node bpftool map update pinned "$backends" key hex "$low" "$high" 00 00 value hex "$@" 1f 90 06 00 00 00 00 00
}

attach() { on_node bpftool cgroup attach /sys/fs/cgroup connect4 pinned "$1/cil_sock4_connect" multi; }
detach() { on_node bpftool cgroup detach /sys/fs/cgroup connect4 pinned "$1/cil_sock4_connect"; }

# From the pod: its network namespace and its cgroup.
probe() {
  (
    echo 0 >"$(node_cgroup)/kubepods-pod1/cgroup.procs"
    in_ns "$POD" curl -sS -o /dev/null -m 2 http://$SERVICE:8080/
  )
}

# First attached runs first. The agent was restarted and the pins were cleaned, but the attachment lives on.
fault() {
  detach $NEW
  if [ "${1-}" = --link ]; then
    on_node perl - $OLD/cil_sock4_connect /sys/fs/cgroup $OLD/link <"$HERE/bpf/link.pl"
  else
    attach $OLD
  fi
  if [ "${1-}" = --orphan ]; then
    replace_cilium
  else
    attach $NEW
  fi
  on_node rm $OLD/cilium_lb4_services_v2 $OLD/cilium_lb4_backends_v3 $OLD/cil_sock4_connect
}

# The pod is on an interface of Calico's, and kube-proxy translates the service. The pins of the last agent are gone.
replace_cilium() {
  on_node rm -r $NEW $GLOBALS
  ip -n "$N" link set lxcpod down
  ip -n "$N" link set lxcpod name cali5f3a1c20d7e
  ip -n "$N" link set cali5f3a1c20d7e up
  ip -n "$N" route add 172.16.168.150/32 dev cali5f3a1c20d7e
  on_node iptables -t nat -N KUBE-SERVICES
  on_node iptables -t nat -A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
  on_node iptables -t nat -A KUBE-SERVICES -d $SERVICE/32 -p tcp -m comment --comment "shop/backend cluster IP" -m tcp --dport 8080 \
    -j DNAT --to-destination $BACKEND_IP:8080
}

main "$@"
