#!/bin/bash
# S1: 169.254.0.0/16 routes on OVS bond members; one link-local lookup poisons the switch and the peer. Real userspace OVS.
. "$(dirname "$0")/lib.sh"
TOR=$(namespace tor) PEER=$(namespace peer)
HOST_IP=10.5.0.10 PEER_IP=10.5.0.1

up() {
  create tor peer
  ip -n "$TOR" link add br0 type bridge
  ip -n "$TOR" link set br0 up
  ip -n "$N" link add eth0 address 10:51:72:29:1b:51 type veth peer name sw0 netns "$TOR"
  ip -n "$N" link add eth1 address 10:51:72:29:1b:50 type veth peer name sw1 netns "$TOR"
  ip -n "$PEER" link add eth0 address 04:40:a9:dc:61:a4 type veth peer name sw2 netns "$TOR"
  local port
  for port in sw0 sw1 sw2; do ip -n "$TOR" link set $port master br0 up; done
  # The BGP peer is a router: it takes every ARP it hears (a Linux host ignores a second one within a second)
  # and does not probe an entry again after 5 s. With a Linux host's timers the lab would only be slower.
  in_ns "$PEER" sysctl -qw net.ipv4.neigh.eth0.locktime=0 net.ipv4.neigh.eth0.delay_first_probe_time=120 net.ipv4.neigh.eth0.base_reachable_time_ms=600000
  ip -n "$PEER" addr add $PEER_IP/24 dev eth0
  ip -n "$PEER" link set eth0 up
  # The NICs belong to OVS: its AF_PACKET socket sees the frames, the kernel's own stack must not.
  # The kernel datapath takes them with an rx_handler; a netdev drop stands in for that.
  for port in eth0 eth1; do
    in_ns "$N" nft -f - <<R
table netdev ovs_$port {
 chain in {
  type filter hook ingress device $port priority 0; policy drop;
 }
}
R
    ip -n "$N" link set $port up
  done
  on_node mkdir -p /run/openvswitch
  on_node ovsdb-tool create /run/openvswitch/conf.db /usr/share/openvswitch/vswitch.ovsschema
  on_node ovsdb-server /run/openvswitch/conf.db --remote=punix:/run/openvswitch/db.sock --pidfile --detach --log-file=/run/openvswitch/ovsdb-server.log 2>/dev/null
  on_node ovs-vsctl --no-wait init
  on_node ovs-vswitchd unix:/run/openvswitch/db.sock --pidfile --detach --log-file=/run/openvswitch/ovs-vswitchd.log 2>/dev/null
  on_node ovs-vsctl add-br br-bond -- set bridge br-bond datapath_type=netdev \
    -- add-port br-bond mgnt -- set interface mgnt type=internal 'mac="2e:ce:c1:bb:f4:d9"' \
    -- add-bond br-bond bond1 eth0 eth1 bond_mode=balance-slb other_config:bond-rebalance-interval=0
  on_node ovs-appctl bond/set-active-member bond1 eth1 >/dev/null || on_node ovs-appctl bond/set-active-slave bond1 eth1 >/dev/null
  ip -n "$N" addr add $HOST_IP/24 dev mgnt
  ip -n "$N" link set mgnt up
  ip -n "$N" route add default via $PEER_IP
  ip -n "$N" route add 169.254.0.0/16 dev mgnt scope link metric 1007 # the one right zeroconf route
  wait_for 100 reachable
}

# The last of three pings counts: the first may still race with the ARP that is to be judged.
reachable() { in_ns "$PEER" ping -n -i 0.2 -c 3 -W 1 $HOST_IP | grep 'icmp_seq=3 ttl' >/dev/null; }

# What a starting sidecar does: look a link-local address up. The ARP request leaves before the write returns.
# Forgotten at once, before (so that there is a request) and after: the kernel would repeat the request for 2 s more, through the
# same interface even when the route is gone by then, and so undo a repair that announced the host only once.
look_up() {
  forget
  in_ns "$N" bash -c 'echo >/dev/udp/169.254.169.254/80'
  forget
}

forget() {
  local interface
  for interface in eth0 eth1 mgnt; do ip -n "$N" neigh del 169.254.169.254 dev $interface 2>/dev/null || true; done
}

# Reachable before the lookup as well: a peer that was not told after a repair is still poisoned.
probe() { reachable && look_up && reachable; }

fault() {
  ip -n "$N" route add 169.254.0.0/16 dev eth1 scope link metric 1002
  ip -n "$N" route add 169.254.0.0/16 dev eth0 scope link metric 1003
  look_up # the sidecar starts: from now on the host is unreachable
}

main "$@"
