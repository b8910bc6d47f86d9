#!/bin/bash
# S2: KUBE-FORWARD (drops ctstate INVALID) before CILIUM_FORWARD while BPF masquerading shows netfilter half of each flow.
. "$(dirname "$0")/lib.sh"
POD=$(namespace pod) OUTSIDE=$(namespace outside)
OUTSIDE_IP=104.17.32.82 POD_DEVICE=lxc3055a222b7f1
PINS=/sys/fs/bpf/tc/globals PROGRAMS=/sys/fs/bpf/cilium

up() {
  create pod outside
  ip -n "$N" link add eth0 address 08:00:27:9f:1b:01 type veth peer name eth0 netns "$OUTSIDE"
  ip -n "$N" addr add 10.0.2.15/24 dev eth0
  ip -n "$N" link set eth0 up
  ip -n "$OUTSIDE" addr add 10.0.2.2/24 dev eth0
  ip -n "$OUTSIDE" link set eth0 up
  ip -n "$OUTSIDE" addr add $OUTSIDE_IP/32 dev lo
  ip -n "$N" route add default via 10.0.2.2
  ip -n "$N" link add cilium_net type veth peer name cilium_host
  ip -n "$N" addr add 172.16.0.10/32 dev cilium_host
  ip -n "$N" link set cilium_net up
  ip -n "$N" link set cilium_host up
  ip -n "$N" link add $POD_DEVICE address de:64:e2:10:7c:01 type veth peer name eth0 address 4a:13:77:0c:55:30 netns "$POD"
  ip -n "$N" link set $POD_DEVICE up
  ip -n "$N" route add 172.16.0.30/32 dev $POD_DEVICE src 172.16.0.10
  ip -n "$POD" addr add 172.16.0.30/32 dev eth0
  ip -n "$POD" link set eth0 up
  ip -n "$POD" route add 172.16.0.10 dev eth0
  ip -n "$POD" route add default via 172.16.0.10 dev eth0
  in_ns "$N" sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0
  masquerade
  forward_rules
  serve "$OUTSIDE" $OUTSIDE_IP 80 "hello from outside"
}

# bpf.masquerade: source NAT on the way out, and back straight to the pod's device, past netfilter.
masquerade() {
  local index
  index=$(ip -n "$N" -o link show $POD_DEVICE | cut -d: -f1)
  on_node mkdir -p $PINS
  on_node sh -c 'cat >/run/masquerade.o' <"$HERE/bpf/s2_masq.bpf.o" # the node's own /tmp may hide the repository
  on_node bpftool prog loadall /run/masquerade.o $PROGRAMS pinmaps $PINS
  on_node bpftool map update pinned $PINS/cilium_lxc key 172 16 0 30 value $((index & 255)) $((index >> 8 & 255)) 0 0 \
    0x4a 0x13 0x77 0x0c 0x55 0x30 0xde 0x64 0xe2 0x10 0x7c 0x01
  on_node tc qdisc add dev eth0 clsact
  on_node tc filter add dev eth0 egress prio 1 handle 1 bpf da pinned $PROGRAMS/cil_to_netdev
  on_node tc filter add dev eth0 ingress prio 1 handle 1 bpf da pinned $PROGRAMS/cil_from_netdev
}

forward_rules() {
  on_node iptables-restore <<'R'
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-EXTERNAL-SERVICES - [0:0]
:DOCKER-USER - [0:0]
:DOCKER-ISOLATION-STAGE-1 - [0:0]
:DOCKER - [0:0]
:CILIUM_FORWARD - [0:0]
-A FORWARD -m comment --comment "cilium-feeder: CILIUM_FORWARD" -j CILIUM_FORWARD
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-A FORWARD -j DOCKER-USER
-A FORWARD -j DOCKER-ISOLATION-STAGE-1
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -o docker0 -j DOCKER
-A FORWARD -i docker0 ! -o docker0 -j ACCEPT
-A FORWARD -i docker0 -o docker0 -j ACCEPT
-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A CILIUM_FORWARD -o cilium_host -m comment --comment "cilium: any->cluster on cilium_host forward accept" -j ACCEPT
-A CILIUM_FORWARD -i cilium_host -m comment --comment "cilium: cluster->any on cilium_host forward accept (nodeport)" -j ACCEPT
-A CILIUM_FORWARD -i lxc+ -m comment --comment "cilium: cluster->any on lxc+ forward accept" -j ACCEPT
-A CILIUM_FORWARD -i cilium_net -m comment --comment "cilium: cluster->any on cilium_net forward accept (nodeport)" -j ACCEPT
COMMIT
R
}

probe() { in_ns "$POD" curl -sS -o /dev/null -m 3 http://$OUTSIDE_IP/; }

# kube-proxy started after Cilium: its jumps were prepended, CILIUM_FORWARD ended up last. One request feeds the DROP counter.
fault() {
  local rule=(FORWARD -m comment --comment "cilium-feeder: CILIUM_FORWARD" -j CILIUM_FORWARD)
  on_node iptables -D "${rule[@]}"
  on_node iptables -A "${rule[@]}"
  in_ns "$POD" curl -s -o /dev/null -m 1 http://$OUTSIDE_IP/ || true
}

main "$@"
