#!/bin/bash
# S5: ebtables rules left behind by azure-vnet answer and rewrite for addresses that Cilium endpoints now own.
. "$(dirname "$0")/lib.sh"
POD=$(namespace pod) HEALTH=$(namespace health) FABRIC=$(namespace fabric)
POD_IP=10.240.0.32 HEALTH_IP=10.240.0.57 STALE_MAC=a2:96:88:20:cb:c6 VM_MAC=00:0d:3a:5c:11:04

up() {
  create pod health fabric
  # azure0 with eth0 enslaved was left behind by azure-vnet; the node's address is on it.
  ip -n "$N" link add azure0 type bridge
  ip -n "$N" link add eth0 address $VM_MAC type veth peer name eth0 netns "$FABRIC"
  ip -n "$N" link set eth0 master azure0 up
  ip -n "$N" link set azure0 address $VM_MAC up
  ip -n "$N" addr add 10.240.0.4/16 dev azure0
  ip -n "$FABRIC" addr add 10.240.0.1/16 dev eth0
  ip -n "$FABRIC" link set eth0 up
  ip -n "$N" route add default via 10.240.0.1
  endpoint "$POD" $POD_IP 4e:d1:72:90:32:32 lxc1f00d32 2a:6c:0d:11:32:01
  endpoint "$HEALTH" $HEALTH_IP 3a:d3:5d:06:09:0f lxc_health 2a:6c:0d:11:57:01
  in_ns "$N" sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.azure0.proxy_arp=1 net.ipv4.neigh.azure0.proxy_delay=0
  # The Azure fabric delivers a pod IP's packets to the VM's MAC, whatever ARP says.
  ip -n "$FABRIC" neigh replace $POD_IP lladdr $VM_MAC dev eth0 nud permanent
  ip -n "$FABRIC" neigh replace $HEALTH_IP lladdr $VM_MAC dev eth0 nud permanent
  serve "$POD" $POD_IP 80 "hello from the pod"
  serve "$HEALTH" $HEALTH_IP 4240 "hello from the health endpoint"
}

# endpoint NAMESPACE ADDRESS MAC DEVICE DEVICE_MAC: a Cilium endpoint, routed and not bridged.
endpoint() {
  ip -n "$N" link add "$4" address "$5" type veth peer name eth0 address "$3" netns "$1"
  ip -n "$N" link set "$4" up
  ip -n "$1" addr add "$2/32" dev eth0
  ip -n "$1" link set eth0 up
  ip -n "$1" route add 10.240.0.4 dev eth0
  ip -n "$1" route add default via 10.240.0.4
  ip -n "$N" route add "$2" dev "$4"
}

probe() {
  in_ns "$FABRIC" curl -sS -o /dev/null -m 2 http://$POD_IP/ && in_ns "$FABRIC" curl -sS -o /dev/null -m 2 http://$HEALTH_IP:4240/
}

fault() {
  local address
  for address in $POD_IP $HEALTH_IP; do
    on_node ebtables -t nat -A PREROUTING -p ARP --arp-op Request --arp-ip-dst "$address" -j arpreply --arpreply-mac $STALE_MAC
    on_node ebtables -t nat -A PREROUTING -p IPv4 -i eth0 --ip-dst "$address" -j dnat --to-dst $STALE_MAC --dnat-target ACCEPT
  done
  ip -n "$N" neigh replace $POD_IP lladdr $STALE_MAC dev azure0 nud permanent
  in_ns "$N" ping -c 1 -W 1 -I azure0 $HEALTH_IP >/dev/null 2>&1 || true # a resolution on the bridge that really failed
}

main "$@"
