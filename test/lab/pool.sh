#!/bin/bash
# One node of the pool "blue" (POOL_NUMBER=1…4): a bridge CNI with host routes to the other nodes, kube-proxy, and a database outside of the cluster.
# Each number has addresses, MACs, interfaces, pods and endpoints of its own. Usage: POOL_NUMBER=3 LAB_SUFFIX=<text> pool.sh up | probe | fault | down
# fault: what a removed VPN client left behind: a policy rule and its table, which send the database's network to a gateway that is gone.
. "$(dirname "$0")/lib.sh"
NUMBER=${POOL_NUMBER:?set POOL_NUMBER}
INCIDENT=blue$NUMBER NODE_NAME=blue-$NUMBER
STATE=/run/netcheck-lab/$LAB_SUFFIX/$INCIDENT
# shellcheck disable=SC2034 # lib.sh reads it
KEEPER=$STATE/keeper
N=$(namespace node) OUTSIDE=$(namespace outside)
ADDRESS=10.20.0.1$NUMBER PODS=10.244.$((NUMBER + 4)) DATABASE=10.40.7.20
HEX=$(printf '%02x' $((NUMBER * 37 + 11)))

up() {
  local index other
  # blue-1 has two pods, blue-2 three, and so on
  local parts=()
  for index in $(seq $((NUMBER + 1))); do parts+=("pod$index"); done
  create outside "${parts[@]}"
  ip -n "$N" link add eth0 address "52:54:00:$HEX:0a:1$NUMBER" type veth peer name eth0 netns "$OUTSIDE"
  ip -n "$N" addr add "$ADDRESS/24" dev eth0
  ip -n "$N" link set eth0 up
  ip -n "$OUTSIDE" addr add 10.20.0.1/24 dev eth0
  ip -n "$OUTSIDE" link set eth0 up
  ip -n "$OUTSIDE" addr add $DATABASE/32 dev lo
  ip -n "$N" route add default via 10.20.0.1
  ip -n "$N" link add cni0 address "0a:58:$HEX:f4:0$NUMBER:01" type bridge
  ip -n "$N" addr add "$PODS.1/24" dev cni0
  ip -n "$N" link set cni0 up
  for index in $(seq $((NUMBER + 1))); do pod "$index"; done
  for other in 1 2 3 4; do
    [ "$other" = "$NUMBER" ] || ip -n "$N" route add "10.244.$((other + 4)).0/24" via "10.20.0.1$other" dev eth0
  done
  in_ns "$N" sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1
  rules | on_node iptables-restore
  serve "$OUTSIDE" $DATABASE 80 "hello from the database"
  # so that counters, connections and neighbours are those of a node with traffic, and differ from node to node
  for index in $(seq $((NUMBER * 3 + 4))); do probe; done
}

# pod INDEX: a pod on the bridge.
pod() {
  local name part
  name=veth$(printf '%s' "$NODE_NAME/$1" | sha256sum | cut -c1-8)
  part=$(namespace "pod$1")
  ip -n "$N" link add "$name" type veth peer name eth0 address "0a:58:$HEX:f4:0$NUMBER:1$1" netns "$part"
  ip -n "$N" link set "$name" master cni0 up
  ip -n "$part" addr add "$PODS.$((NUMBER * 10 + $1))/24" dev eth0
  ip -n "$part" link set eth0 up
  ip -n "$part" route add default via "$PODS.1"
}

# The same services on every node. Only the host port below belongs to a pod of this node.
rules() {
  cat <<R
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-FORWARD - [0:0]
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-SVC-PZ7KAXWQ2M5TYB3D - [0:0]
:KUBE-SEP-G4RUVN6LQO2HSCEX - [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A POSTROUTING -s 10.244.0.0/16 ! -d 10.244.0.0/16 -m comment --comment "pods to outside" -j MASQUERADE
-A KUBE-SERVICES -d 10.96.14.9/32 -p tcp -m comment --comment "shop/cart: cluster IP" -m tcp --dport 80 -j KUBE-SVC-PZ7KAXWQ2M5TYB3D
-A KUBE-SVC-PZ7KAXWQ2M5TYB3D -m comment --comment "shop/cart:" -j KUBE-SEP-G4RUVN6LQO2HSCEX
-A KUBE-SEP-G4RUVN6LQO2HSCEX -s 10.244.6.21/32 -m comment --comment "shop/cart:" -j KUBE-MARK-MASQ
-A KUBE-SEP-G4RUVN6LQO2HSCEX -p tcp -m comment --comment "shop/cart:" -m tcp -j DNAT --to-destination 10.244.6.21:8080
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -m mark --mark 0x4000/0x4000 -j MASQUERADE
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "metrics" -m tcp --dport 9100 -j DNAT --to-destination $PODS.$((NUMBER * 10 + 1)):9100
COMMIT
R
}

probe() { in_ns "$(namespace pod1)" curl -sS -o /dev/null -m 2 http://$DATABASE/; }

fault() {
  ip -n "$N" route add 10.40.0.0/16 via 10.20.0.77 dev eth0 table 100
  ip -n "$N" rule add from all lookup 100 priority 1000
  probe 2>/dev/null || true # a connection that gets no answer, and a neighbour that does not either
}

main "$@"
