import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readTranscript } from "../../functions/imports/transcript.ts";
import { expectLinear } from "../cpu-time.ts";

/** Of each output its command, and its lines with their numbers in the paste. */
const outputsOf = (paste: readonly string[]) =>
  readTranscript(paste.join("\n"), "paste.txt").outputs.map(({ command, text }) => [
    command,
    ...text.split("\n").flatMap((line, i) => (line.trim() === "" ? [] : [`${i + 1}: ${line.trim()}`])),
  ]);

const LINK = "3: flannel.1: <BROADCAST,MULTICAST> mtu 1450 qdisc noqueue state DOWN group default";
const ROUTES = ["default via 10.9.0.1 dev ens5", "10.9.0.0/24 dev ens5 proto kernel scope link src 10.9.0.17"];
const PROSE = "Since the upgrade the pods of this node cannot be reached, and I do not know why.";

describe("outputs that no command names", () => {
  const DESCRIBED = [
    "Name:             cart-0",
    "Namespace:        shop",
    "Node:             wk-2/10.61.4.22",
    "Status:           Running",
    "IP:               10.244.1.7",
  ];
  test.each([
    ["a pod", DESCRIBED, "kubectl describe pod"],
    ["a node", ["Name:               wk-2", "Roles:              <none>", "Unschedulable:      false"], "kubectl describe node"],
    ["a journal for export", ["__CURSOR=s=2f1d0c;i=1a2b", "__REALTIME_TIMESTAMP=1763632331612345", "MESSAGE=eth0: Lost carrier"], "journalctl -o export"],
  ])("%s as it is described", (_, lines, command) => {
    expect(outputsOf([PROSE, "", ...lines])).toEqual([[command, ...lines.map((line, i) => `${i + 3}: ${line}`)]]);
  });
  test.each([
    ["a service", ["Name:              kube-dns", "Namespace:         kube-system", "Selector:          k8s-app=kube-dns", "Type:              ClusterIP"]],
    ["an answer of nslookup", ["Name:   kubernetes.default", "Address: 10.96.0.1"]],
  ])("%s is neither", (_, lines) => expect(outputsOf([PROSE, "", ...lines])).toEqual([]));

  test.each([
    "- Kernel (e.g. `uname -a`): Linux wk-2 4.18.0-147.8.1.el8_1.x86_64 #1 SMP Wed Feb 26 03:08:15 UTC 2020 x86_64 GNU/Linux",
    "* **Kernel version**: 5.4.0-42-generic",
    "- OS: RHEL 8.1, Kernel: `4.18.0-147.el8`",
  ])("the kernel among the answers to a form: %s", (line) =>
    expect(outputsOf(["- Cloud provider: none", line, "- Network plugin and version: calico v3.13.2", "- Others: none"])).toEqual([
      ["hostnamectl", `2: ${line}`],
    ]),
  );
  test.each(["- Kernel: 5.4 or newer is needed", "It works with kernel 5.4.0-42-generic, and not with 4.15.0-20-generic."])(
    "a kernel of which people talk: %s",
    (line) => expect(outputsOf([PROSE, line])).toEqual([]),
  );

  test("a rule of a chain that one table has", () => {
    const rule = "-A CNI-DN-f9fd857ff3d57680c6bc2 -p tcp -m tcp --dport 8905 -j DNAT --to-destination 10.4.0.47:80";
    expect(outputsOf(["The rule still exists", "```", rule, "```"])).toEqual([["iptables -t nat -S", `3: ${rule}`]]);
  });

  test.each([
    ["a link", [LINK], "ip addr"],
    [
      "how many sockets there are, as ss sums them up",
      ["Total: 412", "TCP:   98 (estab 31, closed 12, orphaned 0, timewait 8)", "", "Transport Total     IP        IPv6", "TCP\t  86        80        6"],
      "ss -s",
    ],
    [
      "a part of Cilium's status, its head cut",
      ["Cilium:                  Ok   1.15.6 (v1.15.6-a09e05e6)", "Controller Status:       41/41 healthy"],
      "cilium status",
    ],
    [
      "maps of Cilium",
      ["Name                     Num entries   Num errors   Cache enabled", "cilium_lb4_services_v2   214           0            true"],
      "cilium map list",
    ],
    [
      "services of Cilium",
      ["ID   Frontend           Service Type   Backend", "1    10.96.0.1:443      ClusterIP      1 => 10.9.0.17:6443 (active)"],
      "cilium service list",
    ],
    [
      "services in Cilium's map",
      ["SERVICE ADDRESS     BACKEND ADDRESS (REVNAT_ID) (SLOT)", "10.96.0.1:443       10.9.0.17:6443 (1) (1)"],
      "cilium bpf lb list",
    ],
    ["maps of BPF", ["41: lru_hash  name cilium_ct4_glob  flags 0x0", "\tkey 14B  value 56B  max_entries 524288  memlock 50331648B"], "bpftool map show"],
    ["links of BPF", ["3: tracing  prog 21  ", "\tprog_type tracing  attach_type trace_fentry  "], "bpftool link show"],
    ["a switch", ['    Bridge "br-int"', "        Port eth1", "            Interface eth1"], "ovs-vsctl show"],
    ["what flannel leaves to its plugin", ["FLANNEL_NETWORK=10.9.0.0/16", "FLANNEL_SUBNET=10.9.4.1/24", "FLANNEL_MTU=1450"], "cat /run/flannel/subnet.env"],
    ["links of systemd-networkd", ["IDX LINK TYPE     OPERATIONAL SETUP", "  1 lo   loopback carrier     unmanaged"], "networkctl list"],
    ["devices of NetworkManager", ["DEVICE  TYPE      STATE      CONNECTION", "ens5    ethernet  connected  ens5"], "nmcli device status"],
    ["the clock in properties", ["Timezone=Etc/UTC", "NTP=yes", "NTPSynchronized=no"], "timedatectl show"],
    [
      "whom systemd-timesyncd follows",
      ["       Server: 10.9.0.2 (ntp.example.net)", "Poll interval: 34min 8s (min: 32s; max 34min 8s)"],
      "timedatectl timesync-status",
    ],
    [
      "sources of chrony",
      ["MS Name/IP address         Stratum Poll Reach LastRx Last sample", "^? 10.9.0.2   0   6     0     -     +0ns[   +0ns] +/-    0ns"],
      "chronyc sources",
    ],
    [
      "peers of ntpd",
      [
        "     remote           refid      st t when poll reach   delay   offset  jitter",
        " 10.9.0.2    .INIT.          16 u    - 1024    0    0.000    0.000   0.000",
      ],
      "ntpq -p",
    ],
    [
      "processes, of which nobody knows whether they are all",
      ["UID          PID    PPID  C STIME TTY          TIME CMD", "root        1702       1  0 Jan11 ?        00:00:12 /usr/bin/kubelet"],
      "ps -ef | …",
    ],
    [
      "pods' ends as Calico has them",
      ["WORKLOAD   NODE   NETWORKS        INTERFACE", "cart-0     wk-2   10.9.1.7/32     cali5f0a1b2c3d4"],
      "calicoctl get workloadendpoints",
    ],
    [
      "settings as they are applied, file by file",
      ["* Applying /etc/sysctl.d/60-cis.conf ...", "net.ipv4.ip_forward = 0", "* Applying /etc/sysctl.d/99-k8s.conf ...", "net.ipv4.ip_forward = 1"],
      "sysctl --system",
    ],
    ["processes and their arguments", ["    PID COMMAND", "   1702 /usr/bin/kubelet --config=/x"], "ps -e -o pid,args | …"],
    [
      "CoreDNS's settings as they are described",
      ["Corefile:", "----", ".:53 {", "    forward . 1.1.1.1", "}"],
      "kubectl -n kube-system describe configmap coredns",
    ],
    [
      "CoreDNS's settings in their object",
      ["  Corefile: |", "    .:53 {", "        forward . 1.1.1.1", "    }"],
      "kubectl -n kube-system get configmap coredns -o yaml",
    ],
    ["CoreDNS's settings", [".:53 {", "    errors", "    forward . /etc/resolv.conf", "}"], "cat /etc/coredns/Corefile"],
    [
      "a firewall",
      [
        "Status: active",
        "Logging: on (low)",
        "",
        "To                         Action      From",
        "--                         ------      ----",
        "22/tcp   ALLOW IN    Anywhere",
      ],
      "ufw status verbose",
    ],
    ["a link whose index was not copied", ["flannel.1: <BROADCAST,MULTICAST> mtu 1450 qdisc noqueue state DOWN"], "ip addr"],
    ["rules, blanks for the tab", ["0:      from all lookup local", "32766:  from all lookup main", "32767:  from all lookup default"], "ip rule"],
    ["rules of IPv6, which know no table for what is left", ["0:\tfrom all lookup local", "32766:\tfrom all lookup main"], "ip -6 rule"],
    [
      "a conflict that arping found",
      ["ARPING 10.12.0.30 from 0.0.0.0 ens5", "Unicast reply from 10.12.0.30 [52:54:00:AA:AA:01]  0.7ms"],
      "arping -D -I ens5 10.12.0.30",
    ],
    ["containers", ["CONTAINER           IMAGE               CREATED             STATE               NAME                ATTEMPT"], "crictl ps -a"],
    ["a packet that was traced", ['trace id eb6ef3ab ip filter INPUT packet: iif "eth0"'], "nft monitor trace"],
    ["addresses in JSON", ['[{"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP"],"addr_info":[{"family":"inet","local":"127.0.0.1"}]}]'], "ip -j addr show"],
    ["links in JSON, on lines of their own", ["[{", '  "ifindex": 1,', '  "ifname": "lo",', '  "mtu": 65536', "}]"], "ip -j link show"],
    ["routes of IPv6 in JSON", ['[{"dst":"fe80::/64","dev":"eth0","protocol":"kernel","flags":[]}]'], "ip -j -6 route show"],
    ["routes of all tables in JSON", ['[{"type":"local","dst":"10.0.0.4","dev":"eth0","table":"local"}]'], "ip -j route show table all"],
    ["neighbours in JSON", ['[{"dst":"10.0.0.1","dev":"eth0","lladdr":"52:54:00:aa:aa:01","state":["REACHABLE"]}]'], "ip -j neigh show"],
    ["rules in JSON", ['[{"priority":0,"src":"all","table":"local"},{"priority":32767,"src":"all","table":"default"}]'], "ip -j -4 rule show"],
    [
      "pods as objects",
      ['{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}]}'],
      "kubectl get pods -A -o json",
    ],
    ["links in brief", ["flannel.1        DOWN           a6:1f:02:5c:77:0e <BROADCAST,MULTICAST>"], "ip -br link"],
    ["addresses in brief", ["ens5             UP             10.9.0.17/24 fe80::4c:1/64"], "ip -br addr"],
    ["addresses, each in one line", ["2: ens5    inet 10.9.0.17/24 scope global ens5\\       valid_lft forever preferred_lft forever"], "ip -o addr"],
    ["keys of /proc as grep shows them", ["/proc/sys/net/ipv4/conf/ens5/rp_filter:2"], "grep -r . /proc/sys/net"],
    ["what routes think of interfaces", ["inet ens5 forwarding on rp_filter loose mc_forwarding off proxy_neigh off"], "ip netconf"],
    ["sockets without a headline", ["udp   UNCONN 0      0            0.0.0.0:8472       0.0.0.0:*"], "ss -lntup"],
    ["how many sockets there are", ["sockets: used 412", "TCP: inuse 31 orphan 0 tw 8 alloc 60 mem 4"], "cat /proc/net/sockstat"],
    ["counters of IPv6", ["Ip6InReceives                   \t331"], "cat /proc/net/snmp6"],
    ["sets", ["create cali40s:abc hash:net family inet hashsize 1024 maxelem 1048576", "add cali40s:abc 10.9.4.7"], "ipset save"],
    [
      "what Cilium's monitor saw",
      ["xx drop (Policy denied) flow 0x9a2c46f0 to endpoint 77, ifindex 31, file bpf_lxc.c:2001, , identity 21873->9: 10.0.3.7:41352 -> 10.0.9.9:443 tcp SYN"],
      "cilium monitor",
    ],
    ["an answer from IPv6", ["PING fd00:9::1(fd00:9::1) 56 data bytes"], "ping node"],
    ["modules of BusyBox", ["Module                  Size  Used by    Not tainted"], "lsmod"],
    [
      "a bond, its members behind blank lines",
      [
        "Ethernet Channel Bonding Driver: v5.15.0-91-generic",
        "",
        "Bonding Mode: fault-tolerance (active-backup)",
        "",
        "Slave Interface: eno1",
        "Link Failure Count: 3",
      ],
      "cat /proc/net/bonding/bond0",
    ],
    ["routes", ROUTES, "ip route"],
    ["routes with their types", ROUTES.map((route) => `unicast ${route}`), "ip route"],
    ["the route to one address, which it names", ["10.9.4.7 via 10.9.0.1 dev ens5 src 10.9.0.17 uid 0", "    cache"], "ip route get 10.9.4.7"],
    ["counters of a card", ["NIC statistics:", "     tx_timeout: 0", "     suspend: 0"], "ethtool -S nic"],
    ["counters of a card, those that matter", ["     pps_allowance_exceeded: 4821", "     linklocal_allowance_exceeded: 0"], "ethtool -S nic"],
    ["what kubeadm checks", ["\t[ERROR FileContent--proc-sys-net-ipv4-ip_forward]: /proc/sys/net/ipv4/ip_forward contents are not set to 1"], "kubeadm init"],
    ["what timedatectl says, two lines of it", ["System clock synchronized: no", "NTP service: active"], "timedatectl"],
    ["what kubeadm lacks", ["\t[ERROR FileExisting-conntrack]: conntrack not found in system path"], "kubeadm init"],
    ["peers of BGP without what stands above them", ["|  PEER ADDRESS  |     PEER TYPE     | STATE |   SINCE    |    INFO     |"], "calicoctl node status"],
    ["what Cilium says of itself, set in", ["  KVStore:                Failure   Err: deadline exceeded"], "cilium status"],
    [
      "packets with their hardware addresses, the time left out",
      ["0a:1b:2c:3d:4e:5f > 0a:1b:2c:3d:4e:60, ethertype IPv4 (0x0800), length 74: 10.9.0.1.53 > 10.9.0.17.4: UDP"],
      "tcpdump -n",
    ],
    ["messages of ICMP first", ["IcmpMsg:", "    InType8: 2", "Udp:", "    17 packets received"], "netstat -s"],
    ["routes of net-tools without the first headline", ["Destination     Gateway         Genmask         Flags Metric Ref    Use Iface"], "route -n"],
    ["policy rules", ["512:\tfrom all to 10.9.4.7 lookup main"], "ip rule"],
    ["neighbours", ["10.9.0.1 dev ens5 lladdr 0a:1b:2c:3d:4e:5f STALE"], "ip neigh"],
    ["neighbours of net-tools", ["? (10.9.0.1) at 0a:1b:2c:3d:4e:5f [ether] on ens5"], "arp -an"],
    ["forwarding entries", ["0a:1b:2c:3d:4e:5f dev flannel.1 dst 10.9.0.18 self permanent"], "bridge fdb show"],
    ["rules", ["-A FORWARD -m conntrack --ctstate INVALID -j DROP"], "iptables -S"],
    ["sockets of net-tools", ["tcp        0      0 10.9.0.17:44751   10.9.42.24:80   CLOSE_WAIT  9038/kube-proxy"], "netstat -anp"],
    ["how full the maps of Cilium are", ['cilium_bpf_map_pressure   map_name="policy_00412"   1.000000'], "cilium-dbg metrics list -p bpf_map_pressure"],
    ["sockets of lsof", ["kube-prox 9038 root 14u IPv4 42992070 0t0 TCP 10.9.0.17:34014->10.9.0.66:http (CLOSE_WAIT)"], "lsof -nPi"],
    ["connections of IPVS", ["TCP 00:21  SYN_RECV    10.9.1.210:46740   10.9.3.9:9115   10.9.1.207:9115"], "ipvsadm -Lcn"],
    ["programs on interfaces", ["cilium_vxlan(10) tcx/ingress cil_from_overlay prog_id 309 link_id 3"], "bpftool net show"],
    [
      "a flow",
      ["udp      17 29 src=10.9.0.14 dst=10.9.240.10 sport=43145 dport=53 [UNREPLIED] src=10.9.9.9 dst=10.9.0.14 sport=53 dport=43145 mark=0 use=1"],
      "conntrack -L",
    ],
    [
      "a flow of /proc",
      ["ipv4     2 udp      17 29 src=10.9.0.14 dst=10.9.240.10 sport=43145 dport=53 [UNREPLIED] src=10.9.9.9 dst=10.9.0.14"],
      "conntrack -L",
    ],
    ["softnet_stat", ["000bb344 00000471 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000"], "cat /proc/net/softnet_stat"],
    [
      "routes of all tables",
      ["local 10.9.0.17 dev ens5 table local proto kernel scope host", "::1 dev lo proto kernel metric 256 pref medium"],
      "ip route show table all",
    ],
    ["a part of Cilium's status", ["KubeProxyReplacement Details:", "  Status:                 False", "  Socket LB:              Enabled"], "cilium status"],
    ["neighbours with their uses", ["10.9.0.1 dev ens5 lladdr 0a:1b:2c:3d:4e:5f ref 1 used 11/6/6 probes 1 REACHABLE"], "ip neigh"],
    [
      "ports of a bridge",
      [
        "2: ens3: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 master br-ens3 state forwarding priority 32 cost 100",
        "9: br-ens3: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 master br-ens3 br-ens3",
      ],
      "bridge -d link",
    ],
    ["features of a device, which they name", ["Features for bond0:", "rx-checksumming: on"], "ethtool -k bond0"],
    ["counters of the kernel in sections", ["Ip:", "    3405107 total packets received", "Tcp:", "    17 active connection openings"], "netstat -s"],
    ["interfaces of net-tools", ["ens5: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 9001"], "ifconfig"],
    ["pods", ["NAMESPACE     NAME     READY   STATUS    RESTARTS   AGE   IP   NODE"], "kubectl get pods -A -o wide"],
    ["nameservers", ["nameserver 127.0.0.53"], "cat /etc/resolv.conf"],
    ["a capture of packets", ["03:26:08.830155 IP 10.9.1.192.38530 > 10.9.175.29.7800: Flags [S], seq 1582609996, win 64860, length 0"], "tcpdump -n"],
  ])("%s", (_, lines, command) => {
    expect(outputsOf([PROSE, "```", ...lines, "```", PROSE])).toEqual([
      [command, ...lines.flatMap((line, i) => (line === "" ? [] : [`${i + 3}: ${line.trim()}`]))],
    ]);
    expect(outputsOf(lines)[0]?.[0]).toBe(command);
  });

  test("between sentences a list is an excerpt, from which nobody concludes what is not there", () => {
    expect(outputsOf([PROSE, "", ...ROUTES, "", PROSE])).toEqual([["ip route | …", `3: ${ROUTES[0]}`, `4: ${ROUTES[1]}`]]);
  });

  test("the block of another shell is not the node's: links as a pod has them", () => {
    const inside = ["1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue", "3: eth0@if12: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 qdisc noqueue"];
    expect(outputsOf(["```", ...inside, "```"])[0]?.[0]).toBe("nsenter -t 0 -n ip addr");
    // a node that is a container has the other ends beside it
    expect(outputsOf(["```", ...inside, "4: veth1a2b@if2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 qdisc noqueue", "```"])[0]?.[0]).toBe("ip addr");
  });

  test("several outputs in one block", () => {
    expect(outputsOf(["```", "0:\tfrom all lookup local", ...ROUTES, LINK, "```"]).map(([command]) => command)).toEqual(["ip rule", "ip route", "ip addr"]);
  });

  test("what a file shows may be anything; what another tool printed is not looked at", () => {
    expect(outputsOf(["$ cat routes-of-node7.txt", ...ROUTES]).map(([command]) => command)).toEqual(["cat routes-of-node7.txt", "ip route"]);
    expect(outputsOf(["$ kubectl get pods --all-nodes", ...ROUTES]).map(([command]) => command)).toEqual(["kubectl get pods --all-nodes"]);
  });

  test("saved tables belong to the program that signed above the first one, until it signs another time", () => {
    const table = (name: string) => [`*${name}`, ":FORWARD DROP [0:0]", "-A FORWARD -j ACCEPT", "COMMIT", "# Completed on Sun Nov 22 06:02:05 2026"];
    const dump = (program: string, ...names: string[]) =>
      names.flatMap((name) => [`# Generated by ${program} v1.8.9 (nf_tables) on Sun Nov 22 06:02:05 2026`, ...table(name)]);
    const commands = (...lines: string[]) => outputsOf(lines).map(([command]) => command);
    expect(commands(...dump("iptables-save", "nat", "filter"))).toEqual(["iptables-save"]);
    expect(commands(...dump("iptables-save", "filter"), ...dump("ip6tables-save", "filter", "nat"))).toEqual(["iptables-save", "ip6tables-save"]);
    expect(commands(...dump("ebtables-save", "filter"))).toEqual(["ebtables-save"]);
    expect(commands(...dump("iptables-nft-save", "filter", "nat"))).toEqual(["iptables-nft-save"]);
    // a second time: another state
    expect(commands(...dump("iptables-save", "nat", "filter"), ...dump("iptables-save", "nat", "filter"))).toEqual(["iptables-save", "iptables-save"]);
  });

  test("entries of a list of interfaces that have none in common are pieces of it; a list with one of them again is a second look", () => {
    const entry = (number: number, master = "") => [
      `${number}: veth${number}ab1cd@if${number - 1}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue ${master}state UP group default`,
      "    link/ether 9e:21:a3:54:79:5e brd ff:ff:ff:ff:ff:ff",
    ];
    const quoted = (...blocks: string[][]) => blocks.flatMap((block) => ["Here is `ip addr`:", "", "```", ...block, "```", ""]);
    const { outputs } = readTranscript(quoted(entry(133, "master docker0 "), entry(169)).join("\n"), "paste.txt");
    expect(outputs.map(({ command }) => command)).toEqual(["ip addr"]);
    expect(outputs[0]?.text).toContain("169: veth169ab1cd");
    const twice = readTranscript(quoted(entry(133, "master docker0 "), entry(133)).join("\n"), "paste.txt");
    expect(twice.outputs.map(({ command }) => command)).toEqual(["ip addr", "ip addr"]);
  });

  test("of the kubelet's settings one is looked at", () => {
    const settings = ["kind: KubeletConfiguration", "resolvConf: /run/systemd/resolve/resolv.conf", "rotateCertificates: true"];
    expect(outputsOf(["```", ...settings, "```"])).toEqual([["grep resolvConf /var/lib/kubelet/config.yaml", `3: ${settings[1]}`]]);
  });

  test("what is active need not be a firewall", () => {
    expect(outputsOf([PROSE, "```", "Status: active", "Owner: ops", "```"])).toEqual([]);
  });

  test("an answer that begins once more is a second one", () => {
    const tracking = (leap: string) => ["Reference ID    : 0A090002 (10.9.0.2)", "Stratum         : 3", `Leap status     : ${leap}`];
    expect(outputsOf([...tracking("Not synchronised"), "", ...tracking("Normal")]).map(([command, ...lines]) => [command, lines.length])).toEqual([
      ["chronyc tracking", 3],
      ["chronyc tracking", 3],
    ]);
    const sockets = ["Total: 412", "TCP:   98 (estab 31, closed 12, orphaned 0, timewait 8)", "", "Transport Total     IP        IPv6"];
    expect(outputsOf(sockets).map(([command, ...lines]) => [command, lines.length])).toEqual([["ss -s", 3]]);
  });

  test("the time alone is what date printed; within another output it is a line of that", () => {
    expect(outputsOf(["Sat Nov 22 09:12:00 UTC 2025", "", ...ROUTES]).map(([command]) => command)).toEqual(["date", "ip route"]);
    expect(outputsOf([PROSE, "Sat Nov 22, in the morning", PROSE])).toEqual([]);
    expect(outputsOf(["sockets: used 412", "Sat Nov 22 09:12:00 UTC 2025", "TCP: inuse 31 orphan 0"]).map(([command]) => command)).toEqual([
      "cat /proc/net/sockstat",
    ]);
  });

  test("single rules and flows, and the lines of a log, are pieces of one output", () => {
    const rule = (chain: string) => `-A ${chain} -j KUBE-FIREWALL`;
    expect(outputsOf(["```", rule("INPUT"), "```", "and", "```", rule("OUTPUT"), "```"])).toEqual([
      ["iptables -S", `2: ${rule("INPUT")}`, `6: ${rule("OUTPUT")}`],
    ]);
  });

  test("nothing is found in sentences", () => {
    expect(
      outputsOf(["# ping failed for only some of the pods", "", PROSE, "", "The default route is via 10.9.0.1, and it works.", "1. Restart the node"]),
    ).toEqual([]);
  });
});

describe("what names an output", () => {
  test.each([
    ["the sentence above the block", ["`ip route show` on the bad node:", "```", "blackhole 10.9.3.0/24", "```"], "ip route show"],
    ["the file above the block", ["/etc/resolv.conf of the node:", "", "```", "options ndots:5", "```"], "cat /etc/resolv.conf"],
    ["a configuration of the CNI by its name", ["`10-calico.conflist`:", "```json", "{}", "```"], "cat /etc/cni/net.d/10-calico.conflist"],
    [
      "the first line of the block",
      ["```", 'bpftool net show 2>/dev/null | grep -E "cilium_vxlan"', "", "xdp:", "```"],
      'bpftool net show 2>/dev/null | grep -E "cilium_vxlan"',
    ],
    ["the line of the fence", ["```ip route show", ...ROUTES, "```"], "ip route show"],
    [
      "a pipeline between sentences",
      [PROSE, "netstat -an | grep 443 | awk '{print $6}' | sort | uniq -c", "6038 CLOSE_WAIT", "", PROSE],
      "netstat -an | grep 443 | awk '{print $6}' | sort | uniq -c",
    ],
    ["a block between single backticks", ["`", "$ ip route show", ...ROUTES, "`"], "ip route show"],
    ["bold letters", ["**ip route show** ", "", ...ROUTES], "ip route show"],
    ["a heading above the block", ["### ip route show", "```", ...ROUTES, "```"], "ip route show"],
  ])("%s", (_, lines, command) => {
    expect(outputsOf(lines).map(([one]) => one)).toEqual([command]);
  });

  test("what the block itself says counts more than the sentence above it", () => {
    expect(outputsOf(["After `iptables -S` showed nothing, here are the routes:", "```", ...ROUTES, "```"]).map(([command]) => command)).toEqual(["ip route"]);
  });
});

describe("what is around an output", () => {
  test("a sentence behind a blank line is no part of it", () => {
    expect(outputsOf(["$ ip route", ...ROUTES, "", PROSE])).toEqual([["ip route", `2: ${ROUTES[0]}`, `3: ${ROUTES[1]}`]]);
  });

  test("quotations, line breaks of web forms, longer fences", () => {
    expect(outputsOf([PROSE, ...ROUTES.map((line) => `> ${line}<br/>`), PROSE])).toEqual([["ip route | …", `2: ${ROUTES[0]}`, `3: ${ROUTES[1]}`]]);
    expect(outputsOf(["````", ...ROUTES, "````"])).toEqual([["ip route", `2: ${ROUTES[0]}`, `3: ${ROUTES[1]}`]]);
  });

  test("a prompt that was escaped, so that Markdown makes no heading of it", () => {
    const rules = ["0:      from all lookup local", "32766:  from all lookup main"];
    expect(outputsOf(["\\# ip rule", ...rules, "", "\\$ ip route", ...ROUTES])).toEqual([
      ["ip rule", `2: ${rules[0]}`, `3: ${rules[1]}`],
      ["ip route", `6: ${ROUTES[0]}`, `7: ${ROUTES[1]}`],
    ]);
    expect(outputsOf([PROSE, "", "\\#ip rule"])).toEqual([]);
  });

  test("a line of a log behind a backtick whose other one was cut off", () => {
    const line = "E0117 18:33:58.827088       1 reflector.go:153] k8s.io/client-go/informers/factory.go:135: Failed to list *v1.Endpoints: x509: certificate";
    expect(outputsOf([PROSE, "", `\`${line}`])).toEqual([["kubectl logs", `3: ${line}`]]);
    expect(outputsOf([PROSE, "", "`E0117 is what it says, and I do not know why"])).toEqual([]);
  });

  test("a paragraph that is indented is a block, and its indent is no part of the output", () => {
    expect(outputsOf([PROSE, "", `    ${LINK}`, "        link/ether a6:1f:02:5c:77:0e brd ff:ff:ff:ff:ff:ff", "", "On the other nodes it is up."])).toEqual([
      ["ip addr", `3: ${LINK}`, "4: link/ether a6:1f:02:5c:77:0e brd ff:ff:ff:ff:ff:ff"],
    ]);
    const text = (paste: readonly string[]) => readTranscript(paste.join("\n"), "paste.txt").outputs.map((output) => output.text.trimStart());
    expect(text([PROSE, "", "\t# ip route", ...ROUTES.map((line) => `\t${line}`), "", "\t# ip rule", "\t0:\tfrom all lookup local", "", "And now?"])).toEqual([
      `${ROUTES.join("\n")}\n`,
      "0:\tfrom all lookup local\n",
    ]);
    // in a list the fence is indented, and so are the lines between
    expect(text(["1. links", "   ```", "   $ ip link", `   ${LINK}`, "       link/ether a6:1f:02:5c:77:0e brd ff:ff:ff:ff:ff:ff", "   ```"])).toEqual([
      `${LINK}\n    link/ether a6:1f:02:5c:77:0e brd ff:ff:ff:ff:ff:ff\n`,
    ]);
    // what else is indented is none
    expect(outputsOf([PROSE, "", "    It is the one in the second rack.", "    The others are well.", ""])).toEqual([]);
  });

  test("marks in front of each line are no part of the paste", () => {
    const text = ["$ ip route", ...ROUTES, "", "$ ip rule", "0:\tfrom all lookup local"];
    const read = (paste: readonly string[]) => outputsOf(paste).map(([command]) => command);
    for (const mark of ["", "  ", "    ", "\t", "> ", "> > "]) expect([mark, ...read(text.map((line) => mark + line))]).toEqual([mark, "ip route", "ip rule"]);
  });

  test("a block may open behind the last words of a sentence", () => {
    expect(outputsOf(["Could somebody look at this? ```$ ip route", ...ROUTES, "```", "It worked before."])[0]?.slice(0, 2)).toEqual([
      "ip route",
      `2: ${ROUTES[0]}`,
    ]);
    expect(outputsOf(["Here ```x``` is inline.", "", "And this is prose."])).toEqual([]);
  });

  test("a person's word for nothing", () => {
    expect(outputsOf(["$ lsmod | grep br_netfilter", "(empty)", "$ ip route", ...ROUTES])[0]).toEqual(["lsmod | grep br_netfilter"]);
  });

  test("a prompt with the host in front of the arrow", () => {
    expect(outputsOf(["worker1.dc2 ➜  ip route", ...ROUTES]).map(([command]) => command)).toEqual(["ip route"]);
  });

  test("a block that nobody closed was cut: its list may go on", () => {
    const [output] = readTranscript(["```", ...ROUTES].join("\n"), "paste.txt").outputs;
    expect(output).toMatchObject({ command: "ip route", truncated: true });
    expect(readTranscript(["```", ...ROUTES, "```"].join("\n"), "paste.txt").outputs[0]).toMatchObject({ command: "ip route", truncated: false });
  });
});

describe("around commands that are named", () => {
  const USED = ["sockets: used 1131", "TCP: inuse 402 orphan 61 tw 8 alloc 811 mem 240"];
  const FULL = "[4127.114301] TCP: out of memory -- consider tuning tcp_mem";

  test.each([[["The kernel says:"]], [[""]], [["", "and in dmesg:", ""]]])(
    "messages of the kernel behind an output and %j are a log of their own",
    (between) => {
      const paste = ["$ cat /proc/net/sockstat", ...USED, ...between, FULL];
      expect(outputsOf(paste).map(([command]) => command)).toEqual(["cat /proc/net/sockstat", "dmesg"]);
      expect(outputsOf(["```", ...paste, "```"]).map(([command]) => command)).toEqual(["cat /proc/net/sockstat", "dmesg"]);
    },
  );

  test("messages of the kernel within a log, and at once behind an output, belong to what was printed", () => {
    expect(outputsOf(["$ journalctl -k", "x", "", FULL]).map(([command]) => command)).toEqual(["journalctl -k"]);
    expect(outputsOf(["$ cat /proc/net/sockstat", ...USED, FULL]).map(([command]) => command)).toEqual(["cat /proc/net/sockstat"]);
  });

  const RULE = "5209:\tfrom all fwmark 0x4e20 lookup 77";
  const MAIN = "32766:\tfrom all lookup main";

  test("the upper line of a prompt of two lines is no output, and a last line that comes twice is", () => {
    const paste = ["ops at n1 in ~", "$ ip rule show", RULE, MAIN, "", "ops at n1 in ~", "$ ip route", ...ROUTES];
    expect(outputsOf(paste)).toEqual([
      ["ip rule show", `3: ${RULE}`, `4: ${MAIN}`],
      ["ip route", `8: ${ROUTES[0]}`, `9: ${ROUTES[1]}`],
    ]);
    expect(outputsOf(["$ ip rule", RULE, MAIN, "$ ip rule list", MAIN, "$ date"])).toEqual([
      ["ip rule", `2: ${RULE}`, `3: ${MAIN}`],
      ["ip rule list", `5: ${MAIN}`],
    ]);
  });

  test("a restart counts though it prints nothing, and other commands that print nothing do not", () => {
    expect(outputsOf(["# ip rule", RULE, "# netplan apply", "# ip neigh", "# ip rule", MAIN]).map(([command]) => command)).toEqual([
      "ip rule",
      "netplan apply",
      "ip rule",
    ]);
  });
});

test("whatever stands in it: nothing throws, every line is quoted as it stands and belongs to one output", () => {
  const line = fc.oneof(
    fc.constantFrom(
      "",
      "```",
      "````",
      "```sh",
      "~~~",
      "```ip route",
      "> quoted",
      "$ ip rule; ip route",
      "root@n1:~# ip addr",
      "n1:~ # ",
      "# title of it",
      "`ip neigh`",
      "(empty)",
      "exit",
    ),
    fc.constantFrom(
      PROSE,
      LINK,
      ...ROUTES,
      "Tcp:",
      "    17 active",
      "*filter",
      "COMMIT",
      "-A FORWARD -j DROP",
      "[1.234567] eth0: Link is Down",
      "E0117 18:33:58.827088       1 proxier.go:12] x",
    ),
    fc.string({ unit: "binary", maxLength: 60 }).map((text) => text.replaceAll(/[\r\n]/g, "")),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 40 }), (lines) => {
      const seen = new Set<number>();
      for (const { text } of readTranscript(lines.join("\n"), "paste.txt").outputs) {
        text.split("\n").forEach((quoted, i) => {
          if (quoted.trim() === "") return;
          expect(lines[i]).toContain(quoted);
          expect(seen.has(i), `line ${i + 1} twice`).toBe(false);
          seen.add(i);
        });
      }
    }),
    { numRuns: 500, seed: 7 },
  );
});

test("a block of HTML, and a line of a log in a sentence", () => {
  const routes = ROUTES.map((route, i) => `${i + 2}: ${route}`);
  expect(outputsOf(["<pre>", ...ROUTES, "</pre>", PROSE])).toEqual([["ip route", ...routes]]);
  expect(outputsOf(["<pre><code>", ...ROUTES, "</code></pre>", PROSE])).toEqual([["ip route", ...routes]]);
  const entry = "E0114 09:12:44.120931       1 proxier.go:884] Failed to execute iptables-restore";
  expect(outputsOf([`Since then kube-proxy reports \`${entry}\` all the time.`])).toEqual([["kubectl logs kube-proxy", `1: ${entry}`]]);
  expect(outputsOf([`we see \`kube-proxy-x2k4d kube-proxy ${entry}\` in stern`])).toEqual([["stern .", `1: kube-proxy-x2k4d kube-proxy ${entry}`]]);
  // what somebody looked for
  expect(outputsOf(["I do not see `nf_conntrack: table full, dropping packet` in the log."])).toEqual([]);
});

test("commands without prompts in one block, and a sentence that announces the next output", () => {
  const typed = ["ip rule", "0:\tfrom all lookup local", "", "ip route get 10.9.0.1", "RTNETLINK answers: Network is unreachable"];
  expect(outputsOf([PROSE, "```", ...typed, "```"])).toEqual([
    ["ip rule", "4: 0:\tfrom all lookup local"],
    ["ip route get 10.9.0.1", "7: RTNETLINK answers: Network is unreachable"],
  ]);
  const rules = ["-A FORWARD -i lo -j ACCEPT", "-A FORWARD -j REJECT --reject-with icmp-host-prohibited"];
  const text = ["kubectl get services", "NAME   TYPE   CLUSTER-IP", "", "I discovered incorrectly built forward chain in filter table:", "", ...rules];
  expect(outputsOf(text).map(([command]) => command)).toEqual(["kubectl get services", "iptables -S | …"]);
});

test("a field without a number that was made bold belongs to what stands above it", () => {
  const lines = [
    "I asked it just now.",
    "",
    "      Local time: Tue 2026-05-05 03:45:04 UTC",
    "  Universal time: Tue 2026-05-05 03:45:04 UTC",
    "     NTP enabled: yes",
  ];
  const { outputs } = readTranscript([...lines, "**NTP synchronized: no**", "RTC in local TZ: no"].join("\n"), "paste.txt");
  expect(outputs.map(({ command, text }) => [command, text.trim().split("\n").slice(3)])).toEqual([
    ["timedatectl", ["NTP synchronized: no", "RTC in local TZ: no"]],
  ]);
});

test("a command with a pipe and quotes that stands between sentences, and a line in bold below it", () => {
  const command = `netstat -n | awk '/^tcp/ {++S[$NF]} END {for (s in S) print s,S[s]}'`;
  expect(outputsOf([PROSE, "", command, "ESTABLISHED 3122", "**CLOSE_WAIT 58120**", "", "**What I expect**", "", PROSE])).toEqual([
    [command, "4: ESTABLISHED 3122", "5: CLOSE_WAIT 58120"],
  ]);
});

test("the time grows with the lines", () => {
  const hostile = [
    ["Tcp:", "\n", 15_000],
    ["", "```\n```x y\n", 7500],
    ["", `${"`a".repeat(1900)}\n`, 75],
    ["", "10.0.0.0/8 dev e scope link \n\n", 7500],
  ] as const;
  for (const [head, part, size] of hostile)
    expectLinear(
      (times) => head + part.repeat(times),
      (text) => readTranscript(text, "paste.txt"),
      size,
      part.slice(0, 20),
    );
});
