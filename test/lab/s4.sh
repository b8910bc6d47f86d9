#!/bin/bash
# S4: no br_netfilter under a bridge CNI; replies between two ports of the bridge are not un-NATed.
# fault            net.bridge.bridge-nf-call-iptables = 0
# fault --absent   the key does not exist, as when the module is not loaded. It is built into some kernels, so it is hidden on this
#                  node and `modprobe br_netfilter` brings it back, with the module's default of 1.
. "$(dirname "$0")/lib.sh"
A=$(namespace poda) B=$(namespace podb)
SERVICE=100.67.30.133 A_IP=100.96.54.240 B_IP=100.96.54.247

up() {
  create poda podb
  ip -n "$N" link add cni0 address 0a:58:64:60:36:01 type bridge
  ip -n "$N" addr add 100.96.54.1/24 dev cni0
  ip -n "$N" link set cni0 up
  pod "$A" $A_IP 0a:58:64:60:36:f0 veth05420679
  pod "$B" $B_IP 0a:58:64:60:36:f7 veth078b53a1
  in_ns "$N" sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1
  on_node iptables-restore <<'R'
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-SVC-3IL52ANAN3BQ2L74 - [0:0]
:KUBE-SEP-OAQPXBQCZ2RBB4R7 - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-SERVICES ! -s 100.96.0.0/11 -d 100.67.30.133/32 -p tcp -m comment --comment "prod/export: cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ
-A KUBE-SERVICES -d 100.67.30.133/32 -p tcp -m comment --comment "prod/export: cluster IP" -m tcp --dport 80 -j KUBE-SVC-3IL52ANAN3BQ2L74
-A KUBE-SVC-3IL52ANAN3BQ2L74 -m comment --comment "prod/export:" -j KUBE-SEP-OAQPXBQCZ2RBB4R7
-A KUBE-SEP-OAQPXBQCZ2RBB4R7 -s 100.96.54.247/32 -m comment --comment "prod/export:" -j KUBE-MARK-MASQ
-A KUBE-SEP-OAQPXBQCZ2RBB4R7 -p tcp -m comment --comment "prod/export:" -m tcp -j DNAT --to-destination 100.96.54.247:80
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -m mark --mark 0x4000/0x4000 -j MASQUERADE
COMMIT
R
  serve "$B" $B_IP 80 "hello from podB (export)"
}

# pod NAMESPACE ADDRESS MAC VETH: a pod on the bridge.
pod() {
  ip -n "$N" link add "$4" type veth peer name eth0 address "$3" netns "$1"
  ip -n "$N" link set "$4" master cni0 up
  ip -n "$1" addr add "$2/24" dev eth0
  ip -n "$1" link set eth0 up
  ip -n "$1" route add default via 100.96.54.1
}

probe() { in_ns "$A" curl -sS -o /dev/null -m 2 http://$SERVICE/; }

fault() {
  in_ns "$N" sysctl -qw net.bridge.bridge-nf-call-iptables=0
  if [ "${1-}" = --absent ]; then hide_module; fi
  in_ns "$A" curl -s -o /dev/null -m 1 http://$SERVICE/ || true # leaves the SYN_SENT [UNREPLIED] entry
}

# All module tools are one binary (kmod) that looks at its own name, so one stand-in covers every path to modprobe.
hide_module() {
  sed "s/@KEEPER@/$(cat "$KEEPER")/" <<'R' | on_node sh -e
mount -t tmpfs -o size=4k tmpfs /proc/sys/net/bridge
kmod=$(readlink -f "$(command -v modprobe)")
mkdir -p /run/kmod
cp "$kmod" /run/kmod/kmod
for tool in modprobe lsmod modinfo insmod rmmod depmod; do ln -s kmod /run/kmod/$tool; done
cat >/run/kmod/stand-in <<'S'
#!/bin/sh
case "${0##*/} $*" in
modprobe*br_netfilter*)
  # of the node itself; a container that runs this has a copy of the node's mounts, so there it is taken away, too
  nsenter --mount=/proc/@KEEPER@/ns/mnt umount /proc/sys/net/bridge 2>/dev/null || exit 0
  if mountpoint -q /proc/sys/net/bridge; then umount /proc/sys/net/bridge; fi
  exec sysctl -qw net.bridge.bridge-nf-call-iptables=1 ;;
*) exec "/run/kmod/${0##*/}" "$@" ;;
esac
S
chmod 755 /run/kmod/stand-in
mount --bind /run/kmod/stand-in "$kmod"
R
}

main "$@"
