import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { diagnose } from "../../functions/rules/diagnose.ts";
import type { Diagnosis } from "../../functions/rules/diagnosis.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { localTransport } from "../../functions/transports/local.ts";
import { scripts } from "../../functions/transports/script.ts";
import { collectionPlan, fixPlan, scriptParameters } from "../../functions/triage/plan.ts";
import type { FixRun, Job, Target } from "../../functions/triage/ports.ts";
import { skipLab } from "./requirements.ts";

/**
 * Fixes of sysctl, netfilter, connection tracking and IPVS, live. Each case is a machine of its own (network and mount namespaces): the fault is made there,
 * collected by the real script, diagnosed by the real rules, fixed by the fix's real script, and looked at again; then the way back.
 * Settings that no namespace has of its own (nf_conntrack_max and gc_thresh belong to the machine, net.ipv4.vs.* to a module that this kernel lacks) are kept
 * in a file by a small `sysctl` that comes first in PATH; everything else of these cases is real.
 */
interface Case {
  readonly rule: string;
  /** Tells cases of one rule apart. */
  readonly name: string;
  /** Makes the fault: sh -e, in the machine. */
  readonly fault: string;
  /** What goes into the fix. */
  readonly parameters: Readonly<Record<string, string | readonly string[]>>;
  /** Prints the state that the rollback must bring back. */
  readonly state: string;
  /** Exits with 0 where the fault is felt no more; run before (must fail) and after the fix. */
  readonly works?: string;
  /** Takes the precondition away: then the fix refuses. */
  readonly gone: string;
  /** There is no way back. */
  readonly forGood?: true;
  /** Settings that are kept in a file: "key = value" lines. */
  readonly settings?: string;
}

const iptablesState = "iptables-save | grep -v '^#' | sed 's/\\[[0-9:]*\\]//'";
const forwarding = "sysctl -a -r 'net.ipv4.(ip_forward|conf.*.(forwarding|accept_redirects))'";
const reversePath = "sysctl -a -r 'net.ipv4.conf.*.rp_filter'";

/** cni0 with one pod behind it (10.244.3.7, in a namespace of its own) and eth0 to the outside (192.0.2.1). Both answer. */
const node = `
ip netns add pod && ip netns add outside
ip link add cni0 type bridge && ip addr add 10.244.3.1/24 dev cni0 && ip link set cni0 up
ip link add veth1a2b3c4d type veth peer name eth0 netns pod && ip link set veth1a2b3c4d master cni0 up
ip -n pod addr add 10.244.3.7/24 dev eth0 && ip -n pod link set eth0 up && ip -n pod route add default via 10.244.3.1
ip link add eth0 type veth peer name eth0 netns outside && ip addr add 192.0.2.10/24 dev eth0 && ip link set eth0 up
ip -n outside addr add 192.0.2.1/24 dev eth0 && ip -n outside link set eth0 up && ip -n outside route add default via 192.0.2.10
ip route add default via 192.0.2.1
sysctl -qw net.ipv4.ip_forward=1
`;
const podToOutside = "ip netns exec pod ping -q -n -c 1 -W 1 192.0.2.1 >/dev/null";

const cases: Case[] = [
  {
    rule: "ip-forward-off",
    name: "after hardening",
    fault: `${node}sysctl -qw net.ipv4.ip_forward=0`,
    parameters: { setting: "net.ipv4.ip_forward=1" },
    state: forwarding,
    works: podToOutside,
    gone: "sysctl -qw net.ipv4.conf.eth0.forwarding=1",
  },
  {
    rule: "ip-forward-off-on-interface",
    name: "the pods' bridge",
    fault: `${node}sysctl -qw net.ipv4.conf.cni0.forwarding=0`,
    parameters: { settings: ["net.ipv4.conf.cni0.forwarding=1"], before: ["net.ipv4.conf.cni0.forwarding=0"] },
    state: forwarding,
    works: podToOutside,
    gone: "sysctl -qw net.ipv4.conf.cni0.forwarding=1",
  },
  {
    rule: "rp-filter-drops",
    name: "a second card whose answers leave by the first",
    // the sender is reached through eth0 and comes in on ncfa1; the kernel writes it down
    fault: `${node}
ip netns add second && ip link add ncfa1 type veth peer name eth0 netns second && ip addr add 198.51.100.10/24 dev ncfa1 && ip link set ncfa1 up
ip -n second link set eth0 up && ip -n second addr add 203.0.113.77/32 dev eth0 && ip -n second route add 198.51.100.10 dev eth0
ip -n second neigh add 198.51.100.10 dev eth0 lladdr "$(cat /sys/class/net/ncfa1/address)"
sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.ncfa1.rp_filter=1 net.ipv4.conf.all.log_martians=1
for try in 1 2 3 4 5 6 7 8 9 10; do
  ip netns exec second ping -q -n -c 3 -i 0.2 -W 1 198.51.100.10 >/dev/null && exit 1
  if dmesg | tail -n 200 | grep -q 'from 203.0.113.77, on dev ncfa1'; then exit 0; fi
done
exit 1`,
    parameters: { settings: ["net.ipv4.conf.ncfa1.rp_filter=2"], before: ["net.ipv4.conf.ncfa1.rp_filter=1"] },
    state: reversePath,
    gone: "sysctl -qw net.ipv4.conf.ncfa1.rp_filter=0",
  },
  {
    rule: "rp-filter-drops",
    name: "Cilium's interfaces",
    fault: `
ip link add lxc4d36398ebb25 type veth peer name peer0 && ip link set lxc4d36398ebb25 up
sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.lxc4d36398ebb25.rp_filter=1`,
    parameters: { settings: ["net.ipv4.conf.lxc4d36398ebb25.rp_filter=0"], before: ["net.ipv4.conf.lxc4d36398ebb25.rp_filter=1"] },
    state: reversePath,
    gone: "sysctl -qw net.ipv4.conf.all.rp_filter=1",
  },
  {
    rule: "bridge-netfilter-on-unwanted",
    name: "Docker on a host of virtual machines",
    fault: `
ip netns add guest && ip netns add lan
ip link add br0 type bridge && ip link set br0 up && ip addr add 10.77.0.5/24 dev br0
ip link add vnet0 type veth peer name eth0 netns guest && ip link set vnet0 master br0 up
ip link add eno1 type veth peer name eth0 netns lan && ip link set eno1 master br0 up
ip -n guest addr add 10.77.0.7/24 dev eth0 && ip -n guest link set eth0 up
ip -n lan addr add 10.77.0.9/24 dev eth0 && ip -n lan link set eth0 up
sysctl -qw net.bridge.bridge-nf-call-iptables=1
iptables -N DOCKER-USER && iptables -A DOCKER-USER -j RETURN && iptables -A FORWARD -j DOCKER-USER && iptables -P FORWARD DROP`,
    parameters: { program: "iptables", bridge: "br0", chain: "DOCKER-USER" },
    state: iptablesState,
    works: "ip netns exec guest ping -q -n -c 1 -W 1 10.77.0.9 >/dev/null",
    gone: "iptables -F FORWARD",
  },
  {
    rule: "forward-policy-drop",
    name: "Docker's policy",
    fault: `${node}
iptables -N KUBE-FORWARD && iptables -A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
iptables -A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD && iptables -P FORWARD DROP`,
    parameters: { program: "iptables", bridge: "cni0" },
    state: iptablesState,
    works: podToOutside,
    gone: "iptables -P FORWARD ACCEPT",
  },
  {
    rule: "ephemeral-port-overlap",
    name: "nothing is reserved",
    fault: `
sysctl -qw 'net.ipv4.ip_local_port_range=1024 65000'
iptables -t nat -N KUBE-NODEPORTS && iptables -t nat -N KUBE-EXT-ABCDEFGHIJKLMNOP
iptables -t nat -A KUBE-NODEPORTS -p tcp -m comment --comment default/web -m tcp --dport 30080 -j KUBE-EXT-ABCDEFGHIJKLMNOP`,
    parameters: { setting: "net.ipv4.ip_local_reserved_ports=30000-32767" },
    state: "sysctl net.ipv4.ip_local_reserved_ports net.ipv4.ip_local_port_range",
    gone: "sysctl -qw net.ipv4.ip_local_reserved_ports=10250",
  },
  {
    rule: "ephemeral-port-overlap",
    name: "other ports are reserved already",
    fault: `
sysctl -qw 'net.ipv4.ip_local_port_range=1024 65000' net.ipv4.ip_local_reserved_ports=8080,9100-9109
iptables -t nat -N KUBE-NODEPORTS && iptables -t nat -N KUBE-EXT-ABCDEFGHIJKLMNOP
iptables -t nat -A KUBE-NODEPORTS -p tcp -m comment --comment default/web -m tcp --dport 30080 -j KUBE-EXT-ABCDEFGHIJKLMNOP`,
    parameters: {
      setting: "net.ipv4.ip_local_reserved_ports=8080,9100-9109,30000-32767",
      before: "net.ipv4.ip_local_reserved_ports=8080,9100-9109",
    },
    state: "sysctl net.ipv4.ip_local_reserved_ports net.ipv4.ip_local_port_range",
    gone: "sysctl -qw net.ipv4.ip_local_reserved_ports=10250",
  },
  {
    rule: "stale-hostport-dnat",
    name: "two pods for one port",
    fault: `${node}
ip neigh add 10.244.3.12 dev cni0 nud failed && ip neigh replace 10.244.3.7 dev cni0 lladdr "$(ip netns exec pod cat /sys/class/net/eth0/address)" nud reachable
iptables-restore <<'RULES'
*nat
:CNI-HOSTPORT-DNAT - [0:0]
:CNI-HOSTPORT-SETMARK - [0:0]
:CNI-DN-1f0c2b7a9d3e5f6a7b8c9 - [0:0]
:CNI-DN-b7d4e2f1a09c8b7a6d5e4 - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A CNI-HOSTPORT-SETMARK -m comment --comment "CNI portfwd masquerade mark" -j MARK --set-xmark 0x2000/0x2000
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"cbr0\\" id: \\"8e0a31c5f2a7\\"" -m multiport --dports 80 -j CNI-DN-1f0c2b7a9d3e5f6a7b8c9
-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"cbr0\\" id: \\"c4419be07d12\\"" -m multiport --dports 80 -j CNI-DN-b7d4e2f1a09c8b7a6d5e4
-A CNI-DN-1f0c2b7a9d3e5f6a7b8c9 -s 10.244.3.0/24 -p tcp -m tcp --dport 80 -j CNI-HOSTPORT-SETMARK
-A CNI-DN-1f0c2b7a9d3e5f6a7b8c9 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.244.3.12:80
-A CNI-DN-b7d4e2f1a09c8b7a6d5e4 -s 10.244.3.0/24 -p tcp -m tcp --dport 80 -j CNI-HOSTPORT-SETMARK
-A CNI-DN-b7d4e2f1a09c8b7a6d5e4 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.244.3.7:80
COMMIT
RULES`,
    parameters: { chains: ["CNI-DN-1f0c2b7a9d3e5f6a7b8c9"], protocols: ["tcp"], ports: ["80"], destinations: ["10.244.3.12:80"], program: "iptables" },
    state: iptablesState,
    // a server in the pod of today, asked from outside by the node's port
    works: `ip netns exec pod timeout 20 nc -l 80 </dev/null >/dev/null & server=$!
until ip netns exec pod ss -Hltn | grep -q ':80 '; do kill -0 $server; done
answer=0; ip netns exec outside nc -z -w 2 192.0.2.10 80 || answer=1
kill $server 2>/dev/null || true; wait; exit $answer`,
    gone: "ip neigh replace 10.244.3.12 dev cni0 lladdr 02:00:00:00:00:12 nud reachable",
  },
  {
    rule: "stale-udp-conntrack",
    name: "two flows of one client",
    fault: `
iptables-restore <<'RULES'
*nat
:KUBE-SERVICES - [0:0]
:KUBE-SVC-ZV4C5OYTMTR5LZZV - [0:0]
:KUBE-SEP-6E7XQMQ4RAYOWTTM - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.44.120/32 -p udp -m comment --comment "monitoring/statsd cluster IP" -m udp --dport 8125 -j KUBE-SVC-ZV4C5OYTMTR5LZZV
-A KUBE-SVC-ZV4C5OYTMTR5LZZV -m comment --comment "monitoring/statsd -> 10.244.2.31:8125" -j KUBE-SEP-6E7XQMQ4RAYOWTTM
-A KUBE-SEP-6E7XQMQ4RAYOWTTM -p udp -m comment --comment "monitoring/statsd" -m udp -j DNAT --to-destination 10.244.2.31:8125
COMMIT
RULES
for port in 40001 40002; do
  conntrack -I -p udp -s 10.244.1.7 -d 10.96.44.120 --sport $port --dport 8125 -r 10.244.2.19 -q 10.244.1.7 --reply-port-src 8125 --reply-port-dst $port -t 600
done
conntrack -I -p udp -s 10.244.1.8 -d 10.96.44.120 --sport 40003 --dport 8125 -r 10.244.2.31 -q 10.244.1.8 --reply-port-src 8125 --reply-port-dst 40003 -t 600`,
    parameters: { clients: ["10.244.1.7"], services: ["10.96.44.120"], ports: ["8125"], endpoints: ["10.244.2.19"] },
    state: `${iptablesState}; conntrack -L -p udp 2>/dev/null | grep -c 'src=10.244.1.8 '`,
    works: "! conntrack -L -p udp 2>/dev/null | grep 'src=10.244.2.19 '",
    gone: "true",
    forGood: true,
  },
  {
    rule: "node-local-dns-orphan",
    name: "rules of both spellings",
    fault: `
mkdir -p /var/lib/kubelet && printf 'kind: KubeletConfiguration\\nclusterDNS:\\n- 10.96.0.10\\n' >/var/lib/kubelet/config.yaml
ip link add cni0 type bridge && ip addr add 10.244.3.1/24 dev cni0 && ip link set cni0 up
for chain in PREROUTING OUTPUT; do for address in 169.254.20.10 10.96.0.10; do
  iptables -t raw -A $chain -d $address -p udp --dport 53 -m comment --comment "NodeLocal DNS Cache: skip conntrack" -j NOTRACK
  iptables -t raw -A $chain -d $address -p tcp --dport 53 -j NOTRACK
done; done
iptables -t raw -A OUTPUT -s 169.254.20.10 -p udp --sport 53 -j NOTRACK`,
    parameters: {
      programs: ["iptables", "iptables", "iptables", "iptables"],
      chains: ["PREROUTING", "PREROUTING", "OUTPUT", "OUTPUT"],
      addresses: ["169.254.20.10/32", "10.96.0.10/32", "169.254.20.10/32", "10.96.0.10/32"],
      protocols: ["tcp", "tcp", "tcp", "tcp"],
      markedPrograms: ["iptables", "iptables", "iptables", "iptables"],
      markedChains: ["PREROUTING", "PREROUTING", "OUTPUT", "OUTPUT"],
      markedAddresses: ["169.254.20.10/32", "10.96.0.10/32", "169.254.20.10/32", "10.96.0.10/32"],
      markedProtocols: ["udp", "udp", "udp", "udp"],
      cache: "169.254.20.10",
    },
    // they come back behind each other, in another order: no packet fits two of them
    state: `${iptablesState} | sort`,
    works: "! iptables-save -t raw | grep -e '-d 10.96.0.10'",
    // the cache is back when somebody listens
    gone: `ip addr add 169.254.20.10/32 dev cni0
timeout 30 nc -lu 169.254.20.10 53 </dev/null >/dev/null 2>&1 &
until ss -lun | grep -qF ' 169.254.20.10:53 '; do sleep 0.1; done`,
  },
  {
    rule: "conntrack-table-full",
    name: "at the limit",
    settings: "net.netfilter.nf_conntrack_max = 65536\nnet.netfilter.nf_conntrack_count = 65530",
    fault: "true",
    parameters: { setting: "net.netfilter.nf_conntrack_max=131072", before: "net.netfilter.nf_conntrack_max=65536" },
    state: "sysctl net.netfilter.nf_conntrack_max",
    gone: "sysctl -w net.netfilter.nf_conntrack_max=100000",
  },
  {
    rule: "neighbor-table-overflow",
    name: "as many as gc_thresh3 allows",
    settings: "net.ipv4.neigh.default.gc_thresh2 = 12\nnet.ipv4.neigh.default.gc_thresh3 = 16",
    fault: `ip link add cni0 type bridge && ip addr add 10.244.3.1/24 dev cni0 && ip link set cni0 up
for host in 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do ip neigh add 10.244.3.$host dev cni0 lladdr 02:00:00:00:00:$host nud stale; done`,
    parameters: {
      settings: ["net.ipv4.neigh.default.gc_thresh2=24", "net.ipv4.neigh.default.gc_thresh3=32"],
      before: ["net.ipv4.neigh.default.gc_thresh2=12", "net.ipv4.neigh.default.gc_thresh3=16"],
    },
    state: "sysctl net.ipv4.neigh.default.gc_thresh2 net.ipv4.neigh.default.gc_thresh3 | sort",
    gone: "sysctl -w net.ipv4.neigh.default.gc_thresh3=4096",
  },
  {
    rule: "ipvs-conn-reuse",
    name: "an old kernel",
    settings: "net.ipv4.vs.conn_reuse_mode = 1\nnet.ipv4.vs.conntrack = 1",
    // this kernel has no IPVS: its list of virtual servers is a text. All servers take connections, so that with 0 none goes to one that is gone
    fault: `ip link add kube-ipvs0 type bridge
printf '#!/bin/sh\\necho "Linux node1 4.19.0-25-amd64 #1 SMP Debian 4.19.289-2 (2023-08-08) x86_64 GNU/Linux"\\n' >/usr/local/sbin/uname && chmod +x /usr/local/sbin/uname
cat >/usr/local/sbin/ipvsadm <<'PROGRAM'
#!/bin/sh
echo "IP Virtual Server version 1.2.1 (size=4096)"
echo "Prot LocalAddress:Port Scheduler Flags"
echo "  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn"
echo "TCP  10.96.201.44:80 rr"
echo "  -> 10.244.3.5:8080              Masq    1      3          412"
PROGRAM
chmod +x /usr/local/sbin/ipvsadm`,
    parameters: {},
    state: "sysctl net.ipv4.vs.conn_reuse_mode",
    gone: "sysctl -w net.ipv4.vs.conn_reuse_mode=0",
  },
  {
    rule: "ipvs-leftovers",
    name: "from IPVS to iptables",
    // an interface of another kind bears the name, for this kernel has no dummy; and no IPVS, so its list of virtual servers is a file
    fault: `
ip link add kube-ipvs0 type bridge && ip addr add 10.96.0.10/32 dev kube-ipvs0 && ip addr add 10.96.201.44/32 dev kube-ipvs0
iptables-restore <<'RULES'
*nat
:KUBE-SERVICES - [0:0]
:KUBE-SVC-TCOU7JCQXEZGVUNU - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.0.10/32 -p udp -m comment --comment "kube-system/kube-dns:dns cluster IP" -m udp --dport 53 -j KUBE-SVC-TCOU7JCQXEZGVUNU
COMMIT
RULES
printf 'TCP  10.96.201.44:80 rr\nUDP  10.96.0.10:53 rr\n' >/run/virtual-servers
cat >/usr/local/sbin/ipvsadm <<'PROGRAM'
#!/bin/sh
case $1 in
  -Ln) echo "IP Virtual Server version 1.2.1 (size=4096)"; echo "Prot LocalAddress:Port Scheduler Flags"; exec cat /run/virtual-servers ;;
  -Sn) exec sed 's/^TCP  /-A -t /; s/^UDP  /-A -u /; s/ rr$/ -s rr/' /run/virtual-servers ;;
  -D) if ! grep -q "^[TU][CD]P  $3 " /run/virtual-servers; then exit 1; fi; exec sed -i "/^[TU][CD]P  $3 /d" /run/virtual-servers ;;
esac
PROGRAM
chmod +x /usr/local/sbin/ipvsadm`,
    parameters: { tcp: ["10.96.201.44:80"], udp: ["10.96.0.10:53"], addresses: ["10.96.201.44/32", "10.96.0.10/32"] },
    state: "ip -4 -o addr; cat /run/virtual-servers",
    works: "! ip -4 route get 10.96.201.44 | grep '^local '",
    gone: "true",
    forGood: true,
  },
];

/** A sysctl whose settings in /run/settings come before the kernel's. */
const SYSCTL = `#!/bin/sh
store=/run/settings
case $1 in
  -w) if grep -q "^\${2%%=*} = " $store; then exec sed -i "s|^\${2%%=*} = .*|\${2%%=*} = \${2#*=}|" $store; fi ;;
  -n) if grep -q "^$2 = " $store; then exec sed -n "s|^$2 = ||p" $store; fi ;;
  [!-]*) for key; do shift; if ! grep "^$key = " $store; then set -- "$@" "$key"; fi; done; if [ $# = 0 ]; then exit; fi ;;
esac
exec /usr/sbin/sysctl "$@"
`;

const whole = loadCatalogue(join(import.meta.dirname, "../../runbooks"));
const directory = mkdtempSync(join(tmpdir(), "netcheck-fixes-a-"));
const holders: ChildProcess[] = [];
const run = promisify(execFile);

/** A machine for one case. */
class Machine {
  readonly #enter: readonly string[];
  readonly #target: Target;
  readonly #rule: string;
  #jobs = 0;

  private constructor(pid: number, rule: string) {
    this.#enter = ["nsenter", `--mount=/proc/${pid}/ns/mnt`, `--net=/proc/${pid}/ns/net`, "--"];
    this.#target = { name: `fixa-${pid}`, cluster: "lab", transport: "local", address: "lab" };
    this.#rule = rule;
  }

  static async start({ rule, settings }: Case): Promise<Machine> {
    const setUp = `mount --make-rprivate / && mount -t sysfs sysfs /sys && for place in /run /var/lib /usr/local/sbin; do mount -t tmpfs tmpfs $place; done
mkdir -p /run/netns && ip link set lo up && echo ready && exec cat`;
    const holder = spawn("unshare", ["--mount", "--net", "sh", "-ec", setUp], { stdio: ["pipe", "pipe", "inherit"] });
    holders.push(holder);
    const [ready] = (await once(holder.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
    expect(String(ready)).toBe("ready\n");
    const machine = new Machine(holder.pid as number, rule);
    if (settings !== undefined)
      await machine.sh(`printf %s "$1" >/usr/local/sbin/sysctl; chmod +x /usr/local/sbin/sysctl; printf '%s\\n' "$2" >/run/settings`, SYSCTL, settings);
    return machine;
  }

  /** Runs a script on the machine; what it printed. Throws if it fails. */
  async sh(text: string, ...words: readonly string[]): Promise<string> {
    const env = { ...process.env, PATH: "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin" };
    const [program = "", ...enter] = this.#enter;
    return (await run(program, [...enter, "sh", "-ec", text, "sh", ...words], { env })).stdout;
  }

  async #job(id: string, job: Omit<Job, "id" | "nonce">): Promise<{ stdout: string; nonce: string; truncated: boolean }> {
    this.#jobs += 1;
    const nonce = randomBytes(16).toString("hex");
    // each in a folder of its own: only the marker on the machine knows that a job was run before
    const transport = localTransport({ directory: join(directory, this.#target.name, String(this.#jobs)), enter: () => this.#enter });
    const handle = await transport.start(this.#target, { id, nonce, ...job });
    const state = await transport.poll(this.#target, handle, 60_000);
    if (state.state !== "done") throw new Error(`${id}: ${JSON.stringify(state)}`);
    return { stdout: state.stdout, nonce, truncated: state.truncated };
  }

  /** Collects what the rule needs and asks all rules. */
  async diagnose(): Promise<Diagnosis> {
    const runbook = whole.runbooks.get("netcheck");
    if (runbook === undefined) throw new Error("there is no runbook netcheck");
    const plan = collectionPlan(
      { ...whole, runbooks: new Map([["netcheck", { ...runbook, rules: [this.#rule], facts: [], intervalSeconds: 1 }]]) },
      "netcheck",
    );
    const { stdout, nonce, truncated } = await this.#job(`collect-${this.#jobs}`, { script: scripts.collect(plan), parameters: {} });
    const about = { nonce, plan, target: this.#target.name, transport: "local", startedAt: new Date().toISOString(), truncated };
    return diagnose(scripts.readCapture(stdout, about), whole, this.#target.name, () => 0);
  }

  async fix(id: string, direction: "fix" | "rollback", parameters: Readonly<Record<string, string | readonly string[]>>): Promise<FixRun> {
    const fix = whole.fixes.get(whole.rules.get(this.#rule)?.file.fix ?? "");
    if (fix === undefined) throw new Error(`${this.#rule} has no fix`);
    const { stdout, nonce } = await this.#job(id, { script: scripts.fix(fixPlan(fix, direction)), parameters: scriptParameters(fix, parameters) });
    return scripts.readFix(stdout, nonce);
  }
}

const works = (machine: Machine, text: string): Promise<boolean> =>
  machine.sh(text).then(
    () => true,
    () => false,
  );

describe.skipIf(skipLab())("fixes of settings, netfilter and connection tracking", () => {
  beforeAll(() => {
    const named = new Set(cases.map(({ rule }) => whole.rules.get(rule)?.file.fix));
    expect([...named]).not.toContain(undefined);
  });
  afterAll(async () => {
    await Promise.all(
      holders.map(async (holder) => {
        const closed = once(holder, "close");
        holder.stdin?.end();
        await closed;
      }),
    );
    rmSync(directory, { recursive: true, force: true });
  });

  test.concurrent.each(cases)("$rule: $name", async (of) => {
    const machine = await Machine.start(of);
    await machine.sh(of.fault);
    const before = await machine.sh(of.state);
    if (of.works !== undefined) expect(await works(machine, of.works), "broken").toBe(false);

    const faulty = await machine.diagnose();
    const cause = faulty.causes.find((item) => item.rule === of.rule);
    expect(cause?.fix ?? { causes: faulty.causes, unchecked: faulty.unchecked.filter((item) => item.rule === of.rule) }).toEqual({
      id: whole.rules.get(of.rule)?.file.fix,
      parameters: of.parameters,
    });

    const first = await machine.fix("fix-1", "fix", of.parameters);
    expect({ ...first, failed: first.steps.filter(({ exitCode }) => exitCode !== 0) }).toMatchObject({ outcome: "succeeded", repeated: false, failed: [] });
    const after = await machine.sh(of.state);
    if (of.works !== undefined) expect(await works(machine, of.works), "repaired").toBe(true);
    expect(await machine.fix("fix-1", "fix", of.parameters)).toEqual({ outcome: "succeeded", repeated: true, steps: [] });
    expect(await machine.sh(of.state), "the second run changed nothing").toBe(after);
    const repaired = await machine.diagnose();
    expect(repaired.causes.filter((item) => item.rule === of.rule)).toEqual([]);
    expect(repaired.unchecked.filter((item) => item.rule === of.rule)).toEqual([]);

    if (of.forGood === undefined) {
      expect(after).not.toBe(before);
      expect(await machine.fix("rollback-1", "rollback", of.parameters)).toMatchObject({ outcome: "succeeded", repeated: false });
      expect(await machine.sh(of.state), "as before").toBe(before);
      if (of.works !== undefined) expect(await works(machine, of.works), "broken again").toBe(false);
    }

    // the precondition is looked at on the machine
    await machine.sh(of.gone);
    const changed = await machine.sh(of.state);
    expect(await machine.fix("fix-2", "fix", of.parameters)).toMatchObject({ outcome: "refused", repeated: false });
    expect(await machine.sh(of.state)).toBe(changed);
  });
});
