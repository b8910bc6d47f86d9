# shellcheck shell=bash disable=SC2034,SC2016
# Sourced by s1.sh … s5.sh, which are run by lab.ts. Usage: LAB_SUFFIX=<text> sN.sh up | probe | fault | down
#
# A lab node is a network, mount and UTS namespace plus a cgroup of its own, all held by one "keeper" process:
#   /sys            of its own network namespace; /sys/fs/cgroup is the node's own subtree, /sys/fs/bpf its own bpffs
#   /run /tmp /var/lib   private and empty (so are xtables.lock, the OVS sockets and netcheck's run markers)
# BPF map, program and link lists and dmesg stay those of the whole machine: the kernel has no namespace for them.
#
# probe: exit code 0 = traffic works, 3 = it does not, anything else = the lab itself is broken.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd / # background processes must not pin the caller's directory

INCIDENT=$(basename "$0" .sh)
NODE_NAME=node${INCIDENT#s}
STATE=/run/netcheck-lab/${LAB_SUFFIX:?set LAB_SUFFIX}/$INCIDENT # pid of the keeper, files served over HTTP
KEEPER=$STATE/keeper

# The network namespace of a part of this incident: `namespace pod` is nc-s2-pod-<suffix>.
namespace() { echo "nc-$INCIDENT-$1-$LAB_SUFFIX"; }
N=$(namespace node)

# Run a command in a network namespace only. Not `ip netns exec`, which remounts /sys.
in_ns() {
  local ns=$1
  shift
  nsenter --net="/run/netns/$ns" -- "$@"
}

# Run a command "on the node": all of its namespaces.
on_node() {
  local pid
  pid=$(cat "$KEEPER")
  nsenter --mount="/proc/$pid/ns/mnt" --uts="/proc/$pid/ns/uts" --net="/run/netns/$N" -- "$@"
}

# Wait for a condition, at most $1 tries of 50 ms.
wait_for() {
  local tries=$1
  shift
  until "$@"; do
    tries=$((tries - 1))
    if [ "$tries" -le 0 ]; then
      echo "$INCIDENT.sh: gave up waiting for: $*" >&2
      return 1
    fi
    sleep 0.05
  done
}

# serve NAMESPACE ADDRESS PORT TEXT: an HTTP server that answers /index.html with the text.
serve() {
  mkdir -p "$STATE/www"
  echo "$4" >"$STATE/www/index.html"
  setsid nsenter --net="/run/netns/$1" -- busybox httpd -f -p "$2:$3" -h "$STATE/www" </dev/null >/dev/null 2>&1 &
  wait_for 100 in_ns "$1" nc -z -w1 "$2" "$3"
}

cgroup2_root() { findmnt --noheadings --first-only --types cgroup2 --output TARGET; }
node_cgroup() { echo "$(cgroup2_root)/nc-lab-$NODE_NAME-$LAB_SUFFIX"; }

# What the keeper does in its new namespaces before it says "ready" and sleeps for ever.
# /run/netns is unmounted because a copy of those mounts would keep other labs' namespaces alive after their `down`.
KEEPER_SETUP='set -e
hostname "$1"
mount -t tmpfs tmpfs /tmp
mkdir /tmp/cgroup
mount --bind "$2" /tmp/cgroup
tries=0
while mountpoint -q /run/netns; do
  # one that another lab takes down at this moment is gone before its turn comes
  umount -R -l /run/netns || [ $((tries += 1)) -lt 20 ]
done
umount -R -l /sys
mount -t sysfs sysfs /sys
mount --move /tmp/cgroup /sys/fs/cgroup
rmdir /tmp/cgroup
mount -t bpf bpf /sys/fs/bpf
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
mkdir -p /run/lock
echo ready
exec sleep infinity >/dev/null 2>&1'

# create PART…: the network namespaces of the incident (the node's first), and the node around the first.
create() {
  mkdir -p "$STATE"
  local part cgroup
  for part in node "$@"; do
    ip netns add "$(namespace "$part")"
    ip -n "$(namespace "$part")" link set lo up
  done
  cgroup=$(node_cgroup)
  mkdir "$cgroup"
  mkfifo "$STATE/ready"
  setsid nsenter --net="/run/netns/$N" -- unshare --mount --uts --propagation private \
    bash -c "$KEEPER_SETUP" keeper "$NODE_NAME" "$cgroup" </dev/null >"$STATE/ready" 2>"$STATE/keeper.log" &
  echo $! >"$KEEPER"
  local answer=
  read -r -t 10 answer <"$STATE/ready" || true
  if [ "$answer" != ready ]; then
    echo "$INCIDENT.sh: could not set up $NODE_NAME: $(cat "$STATE/keeper.log")" >&2
    return 1
  fi
}

# Everything in our namespaces was started by us. Found by namespace and not by a remembered process id, which could
# belong to a stranger after a crash. (busybox httpd forks a child per connection; a stuck one outlives its parent.)
kill_namespace() {
  local pids
  pids=$(ip netns pids "$1")
  # shellcheck disable=SC2086
  [ -z "$pids" ] || { kill -KILL $pids 2>/dev/null && false; }
}

remove_cgroup() { [ ! -d "$1" ] || find "$1" -depth -type d -exec rmdir {} + 2>/dev/null; }

# Remove all that `create` and the incident made, also after a crash half way. Attached BPF programs go with the cgroup.
down() {
  local path
  for path in /run/netns/nc-"$INCIDENT"-*-"$LAB_SUFFIX"; do
    [ -e "$path" ] || continue
    wait_for 100 kill_namespace "${path##*/}"
    ip netns delete "${path##*/}"
  done
  wait_for 100 remove_cgroup "$(node_cgroup)"
  rm -rf "$STATE"
}

# main ARGUMENTS…: called by each script after it has defined up, probe and fault.
main() {
  local verb=$1
  shift
  case $verb in
  up | fault | down) "$verb" "$@" ;;
  probe)
    [ -e "/proc/$(cat "$KEEPER")/ns/mnt" ] # fails when the node is not up
    probe || exit 3
    ;;
  *)
    echo "usage: LAB_SUFFIX=<text> $0 up | probe | fault | down" >&2
    exit 2
    ;;
  esac
}
