import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { diagnose } from "../../functions/rules/diagnose.ts";
import type { Diagnosis } from "../../functions/rules/diagnosis.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { localTransport } from "../../functions/transports/local.ts";
import { scripts } from "../../functions/transports/script.ts";
import { collectionPlan, fixPlan, scriptParameters } from "../../functions/triage/plan.ts";
import type { FixRun, Script, Target } from "../../functions/triage/ports.ts";
import { skipLab } from "./requirements.ts";

/**
 * Fixes of routes, links, rules and services, each on a machine of its own: the fault is made, found by the real rules in what the real script collected, the
 * fix runs, the fault is gone, and the way back leads to where it was.
 */
const catalogue = loadCatalogue(join(import.meta.dirname, "../../runbooks"));
const skip = skipLab();
let scratch = "";
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "netcheck-fixes-b-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A machine: network, mount, process and host name spaces of its own, gone with the process that holds them. */
class Node {
  readonly #holder: ChildProcess;
  readonly #enter: readonly string[];
  readonly #target: Target;
  readonly #directory: string;

  private constructor(name: string, holder: ChildProcess, pid: string) {
    this.#holder = holder;
    this.#enter = ["nsenter", `--target=${pid}`, "--net", "--mount", "--pid", "--uts", "--"];
    this.#target = { name, cluster: "lab", transport: "local", address: name };
    this.#directory = mkdtempSync(join(scratch, "jobs-"));
  }

  static async start(name: string): Promise<Node> {
    // /usr/local/sbin comes first in the scripts' PATH: there stands what this machine cannot have for real
    const setUp = `set -e
      hostname "$0"
      for directory in /tmp /run /var/lib /usr/local/sbin; do mount -t tmpfs tmpfs "$directory"; done
      umount -R -l /sys; mount -t sysfs sysfs /sys
      echo 1 >/proc/sys/net/ipv4/ip_forward
      echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
      ip link set lo up
      echo ready; exec cat`;
    const words = [
      "--net",
      "--mount",
      "--uts",
      "--pid",
      "--fork",
      "--kill-child",
      "--mount-proc",
      "--propagation",
      "private",
      "bash",
      "--norc",
      "-c",
      setUp,
      name,
    ];
    const holder = spawn("unshare", words, { stdio: ["pipe", "pipe", "inherit"] });
    const [ready] = (await once(holder.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
    expect(String(ready)).toBe("ready\n");
    return new Node(name, holder, readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, "utf8").trim());
  }

  /** A bash script on the machine, 20 s at most; what it starts in the background goes on. @returns its exit code, and what it said on both channels */
  sh(text: string): Promise<{ code: number; output: string }> {
    const [, ...words] = [...this.#enter, "bash", "--norc", "-c", `PATH=/usr/local/sbin:$PATH\n${text}`];
    return new Promise((resolve) => {
      execFile("nsenter", words, { timeout: 20_000 }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? 255), output: `${stdout}${stderr}` }),
      );
    });
  }

  async #job<T>(script: Script, id: string, parameters: Readonly<Record<string, string>>, read: (stdout: string, nonce: string) => T): Promise<T> {
    const nonce = randomBytes(16).toString("hex");
    // a folder for each: the transport would refuse the same job twice, before the node's marker is asked
    const transport = localTransport({ directory: mkdtempSync(join(this.#directory, "job-")), enter: () => this.#enter });
    const handle = await transport.start(this.#target, { id, script, parameters, nonce });
    for (;;) {
      const state = await transport.poll(this.#target, handle, 10_000);
      if (state.state === "running") continue;
      if (state.state !== "done") throw new Error(`${script.name}: ${state.reason}`);
      return read(state.stdout, nonce);
    }
  }

  /** What the rule needs is collected with the real script and judged by all rules. */
  async diagnose(rule: string): Promise<Diagnosis> {
    const runbook = catalogue.runbooks.get("netcheck");
    if (runbook === undefined) throw new Error("there is no runbook netcheck");
    const plan = collectionPlan({ rules: catalogue.rules, runbooks: new Map([["lab", { ...runbook, rules: [rule], facts: [], intervalSeconds: 1 }]]) }, "lab");
    const about = { plan, target: this.#target.name, transport: "local", startedAt: new Date().toISOString(), truncated: false };
    return this.#job(scripts.collect(plan), "collect", {}, (stdout, nonce) =>
      diagnose(scripts.readCapture(stdout, { ...about, nonce }), catalogue, this.#target.name, () => 0),
    );
  }

  async fix(id: string, direction: "fix" | "rollback", job: string, parameters: Readonly<Record<string, string>>): Promise<FixRun> {
    const fix = catalogue.fixes.get(id);
    if (fix === undefined) throw new Error(`there is no fix ${id}`);
    return this.#job(scripts.fix(fixPlan(fix, direction)), job, parameters, (stdout, nonce) => scripts.readFix(stdout, nonce));
  }

  /** Rules, routes, addresses, and of interfaces what fixes change; in no order, as the order of equal routes is that of their making. */
  async state(more = "true"): Promise<string> {
    const links = `ip -j link show | tr '{' '\\n' | sed -n 's/.*"ifname":"\\([^"]*\\)","flags":\\(\\[[^]]*\\]\\),"mtu":\\([0-9]*\\).*/\\1 \\2 \\3/p' | sed 's/"[A-Z_]*CARRIER",*//; s/"LOWER_UP"//'`;
    const { code, output } = await this.sh(
      `set -e; ip -4 rule; ip -6 rule; ip -4 route show table all; ip -4 addr | grep -v '^[0-9]'; ${links}; bridge -d link | tr -s ' ' '\\n' | paste -s -; ${more}`,
    );
    expect(code, output).toBe(0);
    return output.split("\n").sort().join("\n");
  }

  async stop(): Promise<void> {
    const closed = once(this.#holder, "close");
    this.#holder.kill("SIGKILL");
    await closed;
  }
}

interface Case {
  readonly fix: string;
  readonly rule: string;
  /** Which form of the fault, where there are several; vitest cuts names at 40 letters. */
  readonly form?: string;
  /** bash on the machine: makes it, well. `pod`, `program` and `stub` are there (see PREAMBLE). */
  readonly build: string;
  readonly fault: string;
  /** Succeeds where the traffic works, or what stands for it. */
  readonly probe: string;
  readonly parameters: Record<string, string | readonly string[]>;
  /** Prints more of the state than rules, routes, addresses and interfaces. */
  readonly state?: string;
  /** There is no way back. */
  readonly final?: true;
}

const PREAMBLE = `set -e
# pod NAME DEVICE ADDRESS/LENGTH [GATEWAY]: a namespace at the other end of DEVICE, which is switched on
pod() {
  ip netns add "$1"
  ip -n "$1" link set lo up
  ip link add "$2" type veth peer name eth0 netns "$1"
  ip link set "$2" up
  ip -n "$1" link set eth0 up
  ip -n "$1" addr add "$3" dev eth0
  if [ -n "\${4-}" ]; then ip -n "$1" route add "$4" dev eth0 scope link; ip -n "$1" route add default via "$4" dev eth0; fi
}
# program NAME: something of that name runs
program() { cp /bin/sleep "/tmp/$1"; setsid "/tmp/$1" 600 </dev/null >/dev/null 2>&1 & }
# stub NAME: a program that this machine cannot have; its text comes from standard input
stub() { cat >"/usr/local/sbin/$1"; chmod +x "/usr/local/sbin/$1"; }
`;
/** The node's uplink, with a gateway behind it. */
const UPLINK = "pod gateway up0 10.20.0.1/24; ip addr add 10.20.0.11/24 brd + dev up0; ip route add default via 10.20.0.1\n";
/** A bridge of a CNI with two pods. */
const BRIDGE = `ip link add cni0 type bridge; ip addr add 10.244.1.1/24 brd + dev cni0; ip link set cni0 up
pod one veth0a1b2c3d 10.244.1.5/24; pod two veth4e5f6071 10.244.1.6/24
for port in veth0a1b2c3d veth4e5f6071; do ip link set "$port" master cni0; bridge link set dev "$port" hairpin on; done
`;
/** A link that was just switched on may take the kernel a second: one answer is enough. */
const ping = (from: string, to: string): string => `ip netns exec ${from} ping -qc5 -i0.3 -W1 ${to}`;
/** Two pods of the VPC CNI, each with its route and its rule. */
const VPC_PODS = `${UPLINK}ip addr add 169.254.1.1/32 dev lo
pod one eni0a7713b59cc 10.20.0.41/32 169.254.1.1; pod two eni34d8b764587 10.20.0.42/32 169.254.1.1
ip route add 10.20.0.41/32 dev eni0a7713b59cc scope link; ip route add 10.20.0.42/32 dev eni34d8b764587 scope link
for pod in 41 42; do ip rule add priority 512 to 10.20.0.$pod lookup main; done`;

const CASES: readonly Case[] = [
  {
    fix: "restore-general-rules",
    rule: "policy-rule-missing",
    build: UPLINK,
    fault: "ip -4 rule del priority 32766; ip -6 rule del priority 0",
    probe: "ping -qc1 -W1 10.20.0.1",
    parameters: { families: ["-6", "-4"], tables: ["local", "main"], priorities: ["0", "32766"] },
  },
  {
    fix: "restore-general-rules",
    rule: "networkd-removes-foreign-routes",
    form: " (networkd)",
    // no systemd here; that of the machine around this one is not asked
    build: `${UPLINK}stub systemctl <<'END'
#!/bin/sh
case "$*" in list-units*) echo 'systemd-networkd.service loaded active running Network Configuration' ;; *) exit 1 ;; esac
END`,
    fault: "ip -4 rule del priority 32766",
    probe: "ping -qc1 -W1 10.20.0.1",
    parameters: { families: ["-4"], tables: ["main"], priorities: ["32766"] },
  },
  {
    fix: "ask-main-before-cloud-tables",
    rule: "nm-cloud-setup-rules",
    build: `${UPLINK}pod one cali0123456789a 10.244.7.5/32 169.254.1.1
      ip addr add 169.254.1.1/32 dev lo; ip route add 10.244.7.5/32 dev cali0123456789a scope link`,
    fault: "ip route add default via 10.20.0.1 dev up0 table 30400; ip rule add priority 30400 from 10.20.0.11 table 30400",
    probe: ping("one", "10.20.0.11"),
    parameters: { families: ["-4"], tables: ["30400"] },
  },
  {
    fix: "switch-overlay-interface-on",
    rule: "overlay-interface-down",
    build: BRIDGE,
    fault: "ip link set cni0 down",
    probe: ping("one", "10.244.1.6"),
    parameters: { interfaces: ["cni0"] },
  },
  {
    fix: "switch-pod-links-on",
    rule: "stale-pod-veth",
    build: BRIDGE,
    fault: "ip link set veth0a1b2c3d down",
    probe: ping("one", "10.244.1.6"),
    parameters: { interfaces: ["veth0a1b2c3d"] },
  },
  {
    fix: "attach-pod-links-to-bridge",
    rule: "veth-not-on-bridge",
    build: BRIDGE,
    fault: "ip link set veth0a1b2c3d nomaster",
    probe: ping("one", "10.244.1.1"),
    parameters: { interfaces: ["veth0a1b2c3d"], bridge: "cni0", hairpins: ["veth0a1b2c3d"] },
  },
  {
    fix: "point-pod-routes-to-pods",
    rule: "stale-pod-route",
    build: `${VPC_PODS}
      echo 1 >/proc/sys/net/ipv4/neigh/eni34d8b764587/mcast_solicit; echo 100 >/proc/sys/net/ipv4/neigh/eni34d8b764587/retrans_time_ms
      ip netns exec one ping -qc1 -W1 10.20.0.11`,
    // the node asks on the wrong device, and the pod on the right one
    fault: "ip route replace 10.20.0.41/32 dev eni34d8b764587 scope link; ! ping -qc1 -W1 10.20.0.41; ! ip netns exec one ping -qc1 -W1 169.254.1.1",
    probe: "ping -qc1 -W1 10.20.0.41",
    parameters: { pods: ["10.20.0.41/32"], addresses: ["10.20.0.41"], wrong: ["eni34d8b764587"], right: ["eni0a7713b59cc"] },
  },
  {
    fix: "remove-rejecting-routes",
    rule: "local-route-shadowed",
    build: BRIDGE,
    fault: "ip route add unreachable 10.244.1.0/25",
    probe: "ping -qc1 -W1 10.244.1.5",
    parameters: { types: ["unreachable"], prefixes: ["10.244.1.0/25"], metrics: ["0"] },
  },
  {
    fix: "switch-tunnel-checksum-offload-off",
    rule: "vxlan-checksum-offload",
    // a card with a broken offload cannot be had here: the other side sends wrong checksums for as long as the offload is on
    build: `${UPLINK}ip link add flannel.1 type vxlan id 1 local 10.20.0.11 dev up0 dstport 8472 nolearning; ip link set flannel.1 up
      stub offloaded <<'END'
#!/bin/sh
ethtool -k flannel.1 | grep -q 'tx-checksum-ip-generic: on' || exit 0
ip netns exec gateway perl -MSocket -e 'socket(S, AF_INET, SOCK_RAW, 17) or die;
for (1..3) { send(S, pack("nnnn", 8472, 8472, 12, 0x1234) . "abcd", 0, sockaddr_in(0, inet_aton("10.20.0.11"))) or die }'
END
      ethtool -K flannel.1 tx-checksum-ip-generic off`,
    fault: "ethtool -K flannel.1 tx-checksum-ip-generic on; setsid bash -c 'while :; do offloaded; sleep 0.1; done' </dev/null >/dev/null 2>&1 &",
    // of what was under way when the offload went off something may still come
    probe: `count() { nstat -asz UdpInCsumErrors | tail -n 1; }
      for _ in 1 2 3; do old=$(count); offloaded; [ "$(count)" != "$old" ] || exit 0; done; exit 1`,
    parameters: { interfaces: ["flannel.1"] },
    state: "ethtool -k flannel.1",
  },
  {
    fix: "detach-stale-tcx-programs",
    rule: "stale-tcx-program",
    build: `ip link add cilium_host type veth peer name cilium_net; ip link set cilium_host up
      printf '%s\\n' 'cil_to_host 8101 55' >/tmp/attached
      # the bpftool of this machine knows no tcx: one that lists a file and strikes out of it
      stub bpftool <<'END'
#!/bin/sh
case "$*" in
"net show") echo xdp:; echo; echo tc:; while read -r name program link; do echo "cilium_host(2) tcx/ingress $name prog_id $program link_id $link "; done </tmp/attached ;;
"-j net show")
  rows=$(while read -r name program link; do printf '{"devname":"cilium_host","ifindex":2,"kind":"tcx/ingress","name":"%s","prog_id":%s,"prog_flags":[],"link_id":%s,"link_flags":[]},' "$name" "$program" "$link"; done </tmp/attached)
  printf '[{"xdp":[],"tc":[%s],"flow_dissector":[],"netfilter":[]}]\\n' "\${rows%,}" ;;
"link detach id "*) grep -q " $4\\$" /tmp/attached && sed -i "/ $4\\$/d" /tmp/attached ;;
*) exit 1 ;;
esac
END`,
    fault: "sed -i '1i cil_to_host 318 5' /tmp/attached",
    probe: '[ "$(cat /tmp/attached)" = "cil_to_host 8101 55" ]',
    parameters: { links: ["5"], stale: ["318"], current: ["8101"] },
    state: "cat /tmp/attached",
    final: true,
  },
  {
    fix: "restore-vpc-cni-rules",
    rule: "vpc-cni-rules-missing",
    build: `${VPC_PODS}
      # the CNI's own list of addresses; the second pod's is one of a secondary card
      stub curl <<'END'
#!/bin/sh
card() { printf '"%s":{"ID":"%s","IsPrimary":%s,"DeviceNumber":%s,"AvailableIPv4Cidrs":{"%s/32":{"Cidr":{"IP":"%s","Mask":"/////w=="},"IPAddresses":{"%s":{"Address":"%s","IPAMKey":{"networkName":"aws-cni","containerID":"%s","ifName":"eth0"},"IPAMMetadata":{},"AssignedTime":"2026-11-20T10:22:01.119929681Z","UnassignedTime":"0001-01-01T00:00:00Z"}},"IsPrefix":false,"AddressFamily":""}}}' "$1" "$1" "$2" "$3" "$4" "$4" "$4" "$4" "$5"; }
printf '{"TotalIPs":2,"AssignedIPs":2,"CooldownIPs":0,"ENIs":{%s,%s}}\n' "$(card eni-0a51d2c8e5b0f3c11 true 0 10.20.0.41 b0c1)" "$(card eni-0a51d2c8e5b0f3c12 false 1 10.20.0.42 b0c2)"
END
      ip link add eth1 type veth peer name switch; ip link set eth1 up; ip route add 10.20.0.1 dev eth1 scope link table 2; ip route add default via 10.20.0.1 dev eth1 table 2
      ip rule add priority 1536 from 10.20.0.42 lookup 2`,
    fault: "ip rule del priority 512 to 10.20.0.41; ip rule del priority 512 to 10.20.0.42",
    // the neighbour's packets leave by the card where the rule is gone
    probe: "ip route get 10.20.0.41 from 10.20.0.42 iif eni34d8b764587 | grep -q 'dev eni0a7713b59cc'",
    parameters: { pods: ["10.20.0.41/32", "10.20.0.42/32"] },
  },
  {
    fix: "remove-address-from-bridge-port",
    rule: "duplicate-address",
    build: `pod gateway eno1 10.20.0.1/24; ip link add br0 type bridge; ip link set eno1 master br0; ip link set br0 up
      ip addr add 10.20.0.11/24 brd + dev br0; ip route add default via 10.20.0.1 dev br0`,
    fault: `ip addr del 10.20.0.11/24 dev br0; ip addr add 10.20.0.11/24 brd + dev eno1; ip addr add 10.20.0.11/24 brd + dev br0; ip route add default via 10.20.0.1 dev br0`,
    probe: "ip neigh flush dev br0; ip neigh flush dev eno1; ping -qc1 -W1 -I 10.20.0.11 10.20.0.1",
    parameters: { address: "10.20.0.11/24", port: "eno1" },
  },
  {
    fix: "lower-tunnel-mtu",
    rule: "mtu-mismatch",
    build: `${UPLINK}ip -n gateway link set eth0 mtu 1450
      # the node's card is one that no pod could have
      ip link set up0 down; ip link set up0 name eth0; ip link set eth0 mtu 1450 up; ip route add default via 10.20.0.1
      ip link add flannel.1 type vxlan id 1 local 10.20.0.11 dstport 8472 nolearning; ip link set flannel.1 mtu 1400 up; ip addr add 10.244.1.0/32 dev flannel.1
      ip -n gateway link add flannel.1 type vxlan id 1 local 10.20.0.1 dev eth0 dstport 8472 nolearning; ip -n gateway link set flannel.1 mtu 1400 up; ip -n gateway addr add 10.244.2.0/32 dev flannel.1
      there=$(ip netns exec gateway cat /sys/class/net/flannel.1/address); here=$(cat /sys/class/net/flannel.1/address)
      ip route add 10.244.2.0/24 via 10.244.2.0 dev flannel.1 onlink; ip neigh add 10.244.2.0 lladdr "$there" dev flannel.1 nud permanent
      bridge fdb append "$there" dev flannel.1 dst 10.20.0.1
      ip -n gateway route add 10.244.1.0/24 via 10.244.1.0 dev flannel.1 onlink; ip -n gateway neigh add 10.244.1.0 lladdr "$here" dev flannel.1 nud permanent
      ip netns exec gateway bridge fdb append "$here" dev flannel.1 dst 10.20.0.11`,
    // of a tunnel that is bound to its uplink the kernel would not take more than fits
    fault: "ip link set flannel.1 mtu 1450",
    // as large as the tunnel says that it takes: the answer is one packet of the same size
    probe: "size=$(cat /sys/class/net/flannel.1/mtu); ping -qc1 -W1 -M dont -s $((size - 28)) 10.244.2.0 && [ $size = 1400 ]",
    parameters: { interfaces: ["flannel.1"], sizes: ["1400"], before: ["1450"] },
  },
  {
    fix: "switch-former-cni-devices-off",
    rule: "leftover-cni-interface",
    build: `${UPLINK}program kubelet; program cilium-agent; iptables -t nat -A POSTROUTING -s 10.0.1.0/24 ! -d 10.0.0.0/8 -j MASQUERADE
      ip link add cilium_host type veth peer name cilium_net; ip addr add 10.0.1.134/32 dev cilium_host; ip link set cilium_host up; ip route add 10.244.0.0/16 dev cilium_host`,
    fault: `ip link add flannel.1 type vxlan id 1 local 10.20.0.11 dev up0 dstport 8472 nolearning; ip link set flannel.1 up; ip addr add 10.244.1.0/32 dev flannel.1
      for other in 2 3; do ip route add 10.244.$other.0/24 via 10.244.$other.0 dev flannel.1 onlink; done`,
    probe: "ip route get 10.244.2.7 | grep -q 'dev cilium_host'",
    parameters: {
      interfaces: ["flannel.1"],
      prefixes: ["10.244.2.0/24", "10.244.3.0/24"],
      gateways: ["10.244.2.0", "10.244.3.0"],
      routeInterfaces: ["flannel.1", "flannel.1"],
    },
  },
  {
    fix: "switch-former-cni-devices-off",
    rule: "leftover-cni-interface",
    form: " (bridge)",
    build: `${UPLINK}program kubelet; program cilium-agent; iptables -t nat -A POSTROUTING -s 10.0.1.0/24 ! -d 10.0.0.0/8 -j MASQUERADE
      ip link add cilium_host type veth peer name cilium_net; ip link set cilium_net up; ip link set cilium_host up; ip route add 10.244.0.0/16 dev cilium_host
      pod one lxc4d1e02aa71b3 10.244.1.7/32; ip route add 10.244.1.7/32 dev lxc4d1e02aa71b3 scope link`,
    fault: "ip link add cni0 type bridge; ip link set cni0 up; ip addr add 10.244.1.1/24 brd + dev cni0",
    probe: "ip route get 10.244.1.9 | grep -q 'dev cilium_host'",
    parameters: { interfaces: ["cni0"], addresses: ["10.244.1.1/24"], addressInterfaces: ["cni0"] },
  },
  {
    fix: "switch-former-cni-devices-off",
    rule: "leftover-cni-interface",
    form: " (port)",
    build: `${UPLINK}program kubelet; program cilium-agent; iptables -t nat -A POSTROUTING -s 10.0.1.0/24 ! -d 10.0.0.0/8 -j MASQUERADE
      mount -t tmpfs tmpfs /var/log; mkdir /var/log/containers
      ip link add cilium_vxlan type vxlan external dstport 8472`,
    // what the agent tries again and again, and what it says of it
    fault: `ip link add flannel.1 type vxlan id 1 dstport 8472 local 10.20.0.11 nolearning; ip link set flannel.1 up
      said=$(ip link set cilium_vxlan up 2>&1) && exit 1
      echo "$(date -u +%Y-%m-%dT%H:%M:%S.000000000Z) stderr F level=warning msg="$said" subsys=daemon" >/var/log/containers/cilium-x2z9p_kube-system_cilium-agent-0123456789abcdef.log`,
    probe: "ip link set cilium_vxlan up && ip link set cilium_vxlan down",
    parameters: { interfaces: ["flannel.1"] },
  },
  {
    fix: "switch-time-service-on",
    rule: "clock-unsynchronized",
    // no systemd runs on this machine, and nobody may set its clock: a timedatectl that remembers
    build: `program kubelet; echo 90000.00 90000.00 >/tmp/uptime; mount --bind /tmp/uptime /proc/uptime; echo yes >/tmp/ntp
      stub timedatectl <<'END'
#!/bin/sh
case "$*" in
show) printf '%s\\n' Timezone=Etc/UTC LocalRTC=no CanNTP=yes "NTP=$(cat /tmp/ntp)" "NTPSynchronized=$(cat /tmp/ntp)" ;;
"set-ntp yes" | "set-ntp no") echo "$2" >/tmp/ntp ;;
*) exit 1 ;;
esac
END`,
    fault: "timedatectl set-ntp no",
    probe: "timedatectl show | grep -qx NTPSynchronized=yes",
    parameters: { on: "yes" },
    state: "timedatectl show",
  },
];

describe.skipIf(skip).concurrent("a fix on a machine", () => {
  test.each(CASES.map((one) => ({ ...one, name: `${one.fix}${one.form ?? ""}` })))(
    "$name",
    async ({ fix: id, rule, build, fault, probe, parameters, state, final }) => {
      const fix = catalogue.fixes.get(id);
      expect(fix?.file.rollback.length === 0).toBe(final === true);
      if (fix === undefined) return;
      const node = await Node.start(`fix-${id}`.slice(0, 60));
      try {
        const run = async (text: string): Promise<void> => {
          const { code, output } = await node.sh(`${PREAMBLE}${text}`);
          expect(code, output).toBe(0);
        };
        const works = async (): Promise<boolean> => (await node.sh(`${PREAMBLE}{ ${probe}\n} >/dev/null`)).code === 0;

        await run(build);
        expect(await works(), "the machine is well").toBe(true);
        await run(fault);
        expect(await works(), "the fault does harm").toBe(false);
        const broken = await node.state(state);

        const found = await node.diagnose(rule);
        expect(found.causes.find((cause) => cause.rule === rule)?.fix, JSON.stringify({ causes: found.causes, unchecked: found.unchecked })).toEqual({
          id,
          parameters,
        });
        const sent = scriptParameters(fix, parameters);
        const first = await node.fix(id, "fix", "proposal-1", sent);
        expect(first).toMatchObject({ outcome: "succeeded", repeated: false });
        expect(await works(), "the traffic works after the fix").toBe(true);
        const healed = await node.state(state);
        expect(healed).not.toBe(broken);

        // the same proposal again: the marker; another one: the check finds nothing to mend
        expect(await node.fix(id, "fix", "proposal-1", sent)).toEqual({ outcome: "succeeded", repeated: true, steps: [] });
        const again = await node.fix(id, "fix", "proposal-2", sent);
        expect(again).toMatchObject({ outcome: "refused", steps: [{ command: "check" }] });
        expect(again.steps[0]?.output, "the check says why").not.toBe("");
        expect(await node.state(state)).toBe(healed);
        const after = await node.diagnose(rule);
        // gone, and not merely out of sight
        const left = [...after.causes, ...after.symptoms, ...after.unchecked].filter((item) => item.rule === rule);
        expect(left).toEqual([]);

        if (final === true) return;
        expect(await node.fix(id, "rollback", "rollback-1", sent)).toMatchObject({ outcome: "succeeded", repeated: false });
        expect(await node.state(state)).toBe(broken);
      } finally {
        await node.stop();
      }
    },
  );
});
