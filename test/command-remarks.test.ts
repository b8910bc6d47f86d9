import { expect, test } from "vitest";
import { asked, commandLine, isRefusal, searchOf } from "../functions/facts/command.ts";
import { cutsNothing, pipeOf, showsAll } from "../functions/facts/pipe.ts";

test.each([
  ["date; ethtool -S eth0 | grep exceeded", ["ethtool", "-S", "eth0"], true],
  ["hostname && ip a", ["ip", "a"], false],
  ["root@n1:~# echo before; date; conntrack -S", ["conntrack", "-S"], false],
  ["ip a; date", ["ip", "a"], false],
  ["date | cat", ["date"], false],
  ["date;", ["date"], false],
  ["while true; do date; ethtool -S ens5 | grep exceeded; sleep 10; done", ["ethtool", "-S", "ens5"], true],
  ["for i in 1 2 3; do netstat -s; sleep 5; done", ["netstat", "-s"], false],
  ["for i in eth0 eth1; do ethtool -S $i; done", ["for", "i", "in", "eth0", "eth1"], false],
  ["while true; do iptables-save; done", ["while", "true"], false],
  ["for s in 1472 1372; do echo == $s; ping -c 2 -M do -s $s 10.0.0.9; done", ["ping", "-c", "2", "-M", "do", "-s", "$s", "10.0.0.9"], false],
  ['for n in n1 n2; do ssh $n "ping -c 1 10.0.0.9"; done', ["for", "n", "in", "n1", "n2"], false],
  ["cat /proc/sys/net/ipv4/conf/{all,eth1}/rp_filter", ["cat", "/proc/sys/net/ipv4/conf/all/rp_filter", "/proc/sys/net/ipv4/conf/eth1/rp_filter"], false],
  ["awk '{print $1,$2}' /proc/net/softnet_stat", ["awk", "{print $1,$2}", "/proc/net/softnet_stat"], false],
  ["watch -n 1 'ethtool -S ens5 | grep exceeded'", ["ethtool", "-S", "ens5"], true],
  ["watch -d conntrack -S", ["conntrack", "-S"], false],
  ["while true; do date +%T; conntrack -S | grep -o 'insert_failed=[0-9]*'; done", ["conntrack", "-S"], true],
  ["while true; do conntrack -L; done", ["while", "true"], false],
  ["ip rule > /tmp/before; systemctl restart systemd-networkd; ip rule > /tmp/after", ["ip", "rule"], true],
  ["nstat > /dev/null; sleep 30; nstat", ["nstat", "--since-noted"], false],
  ["sudo nstat -n; sleep 10; sudo nstat | grep Listen", ["nstat", "--since-noted"], true],
  ["nstat 2> /dev/null; sleep 5; nstat", ["nstat"], false],
  ["nstat -n && sleep 10 && nstat -z | grep Listen", ["nstat", "--since-noted", "-z"], true],
  ["iptables-save 2>&1", ["iptables-save"], false],
  ["iptables-save >>/tmp/save 2>/dev/null", ["iptables-save"], true],
  ["ebtables-save 2>/dev/null || true", ["ebtables-save"], false],
  ["nft list ruleset 2>&1 || echo 'no nft here'; uptime", ["nft", "list", "ruleset"], false],
  ["nft list ruleset || iptables-save", ["nft", "list", "ruleset"], true],
  ["ip rule | grep 512 || true", ["ip", "rule"], true],
  ['bash -lc "ip rule"', ["ip", "rule"], false],
  ["bash --login -x -c 'ip rule'", ["ip", "rule"], false],
  ["sh -ec 'ip rule || exit 1'", ["ip", "rule"], false],
  ["bash collect.sh -c 3", ["bash", "collect.sh", "-c", "3"], false],
  ["limactl shell k3s sudo ip rule", ["ip", "rule"], false],
  ["colima ssh -- ip rule", ["ip", "rule"], false],
  ["tsh ssh --cluster=eu root@node1 'ip rule'", ["ip", "rule"], false],
])("what stands before a command on its line is looked past: %s", (text, argv, filtered) => {
  expect(commandLine(text)).toMatchObject({ argv, filtered });
});

test.each([
  ["ssh n1 'ip route | grep 169.254'", "grep 169.254", "169.254"],
  ['ssh -t core@n1 "sudo iptables-save | grep KUBE-FIREWALL"', "grep KUBE-FIREWALL", "KUBE-FIREWALL"],
  ["sudo sh -c 'ss -tan | grep -c CLOSE-WAIT'", "grep -c CLOSE-WAIT", undefined],
  ['ansible n1 -m shell -a "ip rule | grep 30400"', "grep 30400", "30400"],
  ["kubectl debug node/n1 -it --image=busybox -- chroot /host sh -c 'ip rule | head'", "head", undefined],
  // the pipe of this machine gets what is left of the other one's
  ["ssh n1 'ip route | grep 10.0' | wc -l", "wc -l", undefined],
  ["ssh n1 cat /var/log/x | grep 'a | b'", "grep a | b", "a | b"],
  ["grep 'a | b' /var/log/messages", "", undefined],
  ["ssh n1 'ip route'", "", undefined],
])("the pipe of %s", (command, pipe, search) => {
  expect(pipeOf(command)).toBe(pipe);
  expect(searchOf(command)).toBe(search);
});

test.each([
  ["head -4", true],
  ["head -n 4", true],
  ["tail --lines=4", true],
  ["head", true],
  ["cat | head -9", true],
  ["head -3", false],
  ["head -n 2 | tail", false],
  ["head -n -1", false],
  ["tail -n +1", false],
  ["tail -f", false],
  ["grep -v lo | head -4", false],
  ["cat", false],
])("three lines behind `| %s`: were there no more?", (pipe, whole) => {
  // a paste has lines above, so that the numbers of the lines are its own
  expect(cutsNothing(pipe, "\n\n1: lo\n2: eth0\n3: cni0\n")).toBe(whole);
  expect(cutsNothing(pipe, "\n")).toBe(false);
});

test.each([
  ["", true],
  ["column -t", true],
  ["jq . | tee pods.json | less", true],
  ["cat | grep web", false],
  ["cut -c1-80", false],
])("behind `| %s`: is each line there?", (pipe, whole) => {
  expect(showsAll(pipe)).toBe(whole);
  expect(commandLine(`kubectl get pods -A${pipe === "" ? "" : ` | ${pipe}`}`).filtered).toBe(!whole);
});

test("a command that was run as root asks the same question", () => {
  expect(asked("sudo nstat -az")).toBe("nstat -az");
  expect(asked("sleep 5; sudo nstat -az")).toBe("nstat -az");
  expect(asked("sudo -u postgres ss -tan")).toBe("sudo -u postgres ss -tan");
  expect(isRefusal("Error: Operation not permitted\n")).toBe(true);
  expect(isRefusal("iptables v1.8.7 (nf_tables): Could not fetch rule set generation id: Permission denied (you must be root)\n")).toBe(true);
  expect(isRefusal("-P INPUT ACCEPT\n")).toBe(false);
});
