import { expect, test } from "vitest";
import { captureOf } from "../functions/facts/capture.ts";
import { readFacts } from "../functions/facts/read.ts";

/** One output, read as the reader of captures does. */
function read(fact: string, command: string | string[], text: string, truncated = false) {
  const index = { schema: "netcheck.capture/1" as const, target: { name: "n1" }, outputs: [{ command, file: "a.txt" }] };
  const reading = readFacts(
    captureOf(index, () => ({ text, truncated })),
    new Set([fact]),
  ).readings.get(fact);
  return reading as typeof reading & { value?: { rows: Record<string, unknown>[] } };
}

test("the last line of a truncated output is not read: half a number is another number", () => {
  const text = "net.core.somaxconn = 4096\nnet.ipv4.tcp_mem = 18831";
  expect(read("sysctl", "sysctl -a", text, true).value?.rows.map(({ key }) => key)).toEqual(["net.core.somaxconn"]);
  expect(read("sysctl", "sysctl -a", text).value?.rows.map(({ key }) => key)).toEqual(["net.core.somaxconn", "net.ipv4.tcp_mem"]);
});

test("nor is it if there is no other line", () => {
  const command = "sysctl net.ipv4.ip_local_port_range";
  expect(read("sysctl", command, "net.ipv4.ip_local_port_range = 1024\t6099", true)).toMatchObject({ complete: false, value: { rows: [] } });
  expect(read("sysctl", command, "net.ipv4.ip_local_port_range = 1024\t6099").value?.rows).toHaveLength(1);
});

test("a line that begins with a bracket is no JSON: its end may be cut, too", () => {
  const text = "[0:0] -A FORWARD -s 10.1.0.0/16 -j ACCEPT\n[3:180] -A FORWARD -s 10.2.0.0/1";
  const sources = (truncated: boolean) => read("iptables", "iptables-save -c -t filter", text, truncated).value?.rows.map(({ source }) => source);
  expect(sources(false)).toEqual(["10.1.0.0/16", "10.2.0.0/1"]);
  expect(sources(true)).toEqual(["10.1.0.0/16"]);
});

test("cut JSON that is one line keeps the rows that are whole", () => {
  const text = '[{"dst":"10.0.0.1","dev":"eth0","lladdr":"02:00:00:00:00:01","state":["REACHABLE"]},{"dst":"10.0.0';
  for (const start of [text, `[ ${text.slice(1)}`, `[\n${text.slice(1)}`])
    expect(read("neighbor", "ip -j neigh", start, true)).toMatchObject({ complete: false, value: { rows: [{ address: "10.0.0.1" }] } });
});

test.each(["ip -br link | grep -A1 eth", "ip -br link | grep eth -B 2", "ip -br link | grep -iC3 -E 'eth|ens'", "ip -br link | grep -2 eth"])(
  "what grep sets between groups of lines is no line of the output: %s",
  (command) => {
    const text = "eth0 UP 02:00:00:00:00:01 <BROADCAST,MULTICAST,UP,LOWER_UP>\n--\neth1 UP 02:00:00:00:00:02 <BROADCAST,MULTICAST,UP,LOWER_UP>\n";
    expect(read("link", command, text)).toMatchObject({ complete: false, unparsed: [], value: { rows: [{ line: 1 }, { line: 3 }] } });
  },
);

test("a program counts as missing if the shell says so of it, not if its output says so of another", () => {
  expect(read("sysctl", "sysctl -a", "bash: sysctl: command not found\n")).toMatchObject({ status: "absent", reason: "sysctl is not installed on the node" });
  const log = 'Jun 10 15:55:24 n1 kube-proxy[1190]: E0610 15:55:24.811934    1190 proxier.go:603] exec: "conntrack": executable file not found in $PATH\n';
  expect(read("agent-log", "journalctl -u kube-proxy", log).value?.rows).toHaveLength(1);
});

test("sorted rules have no position: which stands before which is lost", () => {
  const text =
    "      7 -A FORWARD -j REJECT --reject-with icmp-host-prohibited\n      2 -A FORWARD -s 10.244.0.0/16 -j ACCEPT\n      2 COMMIT\n      1 :FORWARD ACCEPT [0:0]\n";
  const rows = read("iptables", "iptables-save | sort | uniq -c | sort -rn", text).value?.rows;
  expect(rows?.map(({ target, position, copies }) => ({ target, position, copies }))).toEqual([
    { target: "REJECT", position: 0, copies: 7 },
    { target: "ACCEPT", position: 0, copies: 2 },
  ]);
});

test.each([
  ["iptables -S INPUT -v | grep -n 8472", "7:-A INPUT -p udp -m udp --dport 8472 -c 812 61280 -j DROP\n"],
  ["iptables-save | grep -E -in --color 'dport 8472'", "7:-A INPUT -p udp -m udp --dport 8472 -j DROP\n"],
  ["iptables -S INPUT | cat -n", "     7\t-A INPUT -p udp -m udp --dport 8472 -j DROP\n"],
])("the number that stands in front of each line is no part of it: %s", (command, text) => {
  const { value, unparsed } = read("iptables", command, text);
  expect([value?.rows.map(({ destinationPort }) => destinationPort), unparsed]).toEqual([["8472"], []]);
});

test("digits in front of a line that no pipe put there stay", () => {
  expect(read("neighbor", "ip neigh | grep 52:54", "10.0.0.9 dev eth0 lladdr 52:54:00:aa:00:09 STALE\n").value?.rows).toHaveLength(1);
  expect(read("link", "ip -o link | grep -v lo", "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 qdisc mq state UP\n").value?.rows).toMatchObject([
    { index: 2 },
  ]);
});

test("a fact about pods is read from outputs of pods alone, one about the node from the node's", () => {
  const text = "State      Recv-Q Send-Q Local Address:Port Peer Address:Port\nCLOSE-WAIT 1      0      10.0.0.9:41000     10.0.0.7:443\n";
  const inPod = "kubectl exec web-0 -- ss -tan";
  expect([read("stuck-socket", "ss -tan", text).status, read("stuck-socket", inPod, text).value?.rows.length]).toEqual(["absent", 1]);
  expect([read("socket", inPod, text).status, read("socket", "ss -tan", text).value?.rows.length]).toEqual(["absent", 1]);
});

test("of a command whose failure is hushed an empty output tells nothing", () => {
  expect(read("ebtables", "ebtables-save 2>/dev/null || true", "")).toMatchObject({ complete: false });
  expect(read("ebtables", ["bash", "-lc", "ebtables-save 2>/dev/null || true"], "")).toMatchObject({ complete: false });
  expect(read("rule", "ip rule 2>/dev/null || true", "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n")).toMatchObject({ complete: true });
});

test("what a line prints where its command fails is no output of the command", () => {
  expect(read("rule", "ip rule || echo 'no rules here'", "no rules here\n")).toMatchObject({ status: "failed" });
  expect(read("rule", "ip rule || echo 'no rules here'", "0:\tfrom all lookup local\n")).toMatchObject({ status: "read", value: { rows: [{ priority: 0 }] } });
  expect(read("module", "lsmod | grep br_netfilter || echo NOT LOADED", "NOT LOADED\n")).toMatchObject({ status: "failed" });
});

test("nor is the code with which it ended, written below", () => {
  const rule = "0:\tfrom all lookup local\n";
  for (const code of ["command terminated with exit code 1", "[exit 0]", "exit code: 0", "rc=0", "(exit status 0)"])
    expect(read("rule", "ip rule", `${rule}${code}\n`)).toMatchObject({ complete: true, value: { rows: [{ line: 1 }] } });
  expect(read("rule", "ip rule", "command terminated with exit code 1\n")).toMatchObject({ complete: false });
});

test("the time that a script wrote over an output is no line of it", () => {
  const rule = "0:\tfrom all lookup local\n";
  for (const time of ["Tue Nov 26 14:21:40 UTC 2024", "Tue 26 Nov 2024 02:21:40 PM CET", "2024-11-26T14:21:40+00:00"])
    expect(read("rule", "ip rule", `${time}\n${rule}`)).toMatchObject({ complete: true, value: { rows: [{ line: 2 }] } });
  expect(read("rule", "ip -j rule", '2024-11-26 14:21:40\n[{"priority":0,"src":"all","table":"local"}]\n').value?.rows).toHaveLength(1);
});

test("a script that a shell was given as one word is read as a person types it, pipes and all", () => {
  const counted = (command: string | string[]) => {
    const index = { schema: "netcheck.capture/1" as const, target: { name: "n1" }, outputs: [{ command, file: "a.txt" }] };
    const capture = captureOf(index, () => ({ text: "26358\n", truncated: false }));
    return readFacts(capture, new Set(["socket-count"])).readings.get("socket-count")?.value;
  };
  const found = { rows: [{ state: "CLOSE-WAIT", count: 26_358 }] };
  expect(counted(["sh", "-c", "ss -tn state close-wait | wc -l"])).toMatchObject(found);
  expect(counted(["chroot", "/host", "/bin/bash", "-lc", "ss -tn state close-wait | wc -l"])).toMatchObject(found);
});
