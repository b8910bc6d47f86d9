import { expect, test } from "vitest";
import { commandLine } from "../functions/facts/command.ts";

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
])("what stands before a command on its line is looked past: %s", (text, argv, filtered) => {
  expect(commandLine(text)).toMatchObject({ argv, filtered });
});
