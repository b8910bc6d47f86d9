import { describe, expect, test } from "vitest";
import { captureOf } from "../functions/facts/capture.ts";
import { commandLine } from "../functions/facts/command.ts";
import { epochOf, newestFirst, ofEarlierBoot, withAges } from "../functions/facts/log-time.ts";
import { readFacts } from "../functions/facts/read.ts";

const at = (iso: string): number => Date.parse(iso) / 1000;

test.each(["journalctl -k -b -1", "journalctl -u kubelet -b-2", "journalctl --boot=-1 -u kubelet", "journalctl -kb -1", "journalctl --boot -3"])(
  "%s is of an earlier boot and tells nothing of this one",
  (command) => {
    expect(ofEarlierBoot(command.split(" "))).toBe(true);
    const output = { command, file: "x", startMs: 0 };
    const capture = captureOf({ schema: "netcheck.capture/1", target: { name: "node1" }, outputs: [output] }, () => ({
      text: "Nov 21 03:51:28 node1 kernel: eth0: Link is Down\nNov 21 03:51:29 node1 kubelet[7]: E1121 03:51:29.1 1 x.go:1] no\n",
      truncated: false,
    }));
    for (const id of ["kernel-log", "agent-log"]) expect(readFacts(capture).readings.get(id)?.status, id).toBe("absent");
  },
);
test.each(["journalctl -k -b", "journalctl -u kubelet -b 0", "journalctl -b --no-pager"])("%s is of this boot", (command) =>
  expect(ofEarlierBoot(command.split(" "))).toBe(false),
);

describe("the time of a log line", () => {
  test.each([
    ["2026-11-21T03:51:28Z", "2026-11-21T03:51:28Z"],
    ["2026-11-21T03:51:28.5+0100", "2026-11-21T02:51:28.5Z"],
    ["2026-11-21T03:51:28-05:30", "2026-11-21T09:21:28Z"],
    ["2026-11-21T03:51:28,250000+00:00", "2026-11-21T03:51:28.25Z"],
    ["2026/11/21 03:51:28", "2026-11-21T03:51:28Z"],
    ["Sat 2026-11-21 03:51:28 UTC", "2026-11-21T03:51:28Z"],
    ["2026-11-21 03:51:28.000000123 +0000 UTC m=+12.5", "2026-11-21T03:51:28.000000123Z"],
    ["Sat Nov 21 03:51:28 2026", "2026-11-21T03:51:28Z"],
    ["Nov 21 03:51:28", "2026-11-21T03:51:28Z"],
    ["Nov  1 03:51:28.5", "2026-11-01T03:51:28.5Z"],
    ["Nov21 03:51", "2026-11-21T03:51:00Z"],
    ["1121 03:51:28.612345", "2026-11-21T03:51:28.612345Z"],
    // the latest time that is not later than a day after the collection
    ["Dec 31 23:59:59", "2025-12-31T23:59:59Z"],
    ["1122 01:00:00.000000", "2026-11-22T01:00:00Z"],
    ["1763697088.5", "2025-11-21T03:51:28.5Z"],
    // klog's JSON counts milliseconds
    ["1763697088500.25", "2025-11-21T03:51:28.5Z"],
    // journalctl -o short-full: the name of the zone, or its offset where it has no name; CST is the zone of three countries
    ["Sat 2026-11-21 03:51:28 CET", "2026-11-21T02:51:28Z"],
    ["Sat 2026-11-21 03:51:28 EDT", "2026-11-21T07:51:28Z"],
    ["Sat 2026-11-21 03:51:28 -03", "2026-11-21T06:51:28Z"],
    ["Sat 2026-11-21 03:51:28 +0545", "2026-11-20T22:06:28Z"],
    ["Sat 2026-11-21 03:51:28 CST", "2026-11-21T03:51:28Z"],
  ])("%s", (time, iso) => expect(epochOf(time, at("2026-11-21T04:00:00Z"))).toBeCloseTo(at(iso), 3));

  test.each(["", "yesterday", "1321 25:61:61.0", "Foo 12 03:51:28", "2026-13-01T00:00:00Z", "2026-11-21T24:00:00Z", "12"])("%j is no time", (time) =>
    expect(epochOf(time, at("2026-11-21T04:00:00Z"))).toBeUndefined(),
  );

  test("without a year it is not known when the capture does not tell", () => expect(epochOf("Nov 21 03:51:28", undefined)).toBeUndefined());
});

describe("ages", () => {
  const now = at("2026-11-21T04:00:00Z");
  test("a line from the future counts as now, an age that is known stays", () => {
    expect(withAges([{ time: "2026-11-21T04:00:09Z" }, { time: "2026-11-21T03:00:00Z", age: 7 }, {}], now, true)).toEqual([
      { time: "2026-11-21T04:00:09Z", age: 0 },
      { time: "2026-11-21T03:00:00Z", age: 7 },
      {},
    ]);
  });
  test("a log that was pasted long after it was read has none, one that a collector read has", () => {
    const rows: { time: string; age?: number }[] = [{ time: "2019-01-14T09:12:01Z" }, { time: "2019-01-14T09:12:02Z" }];
    expect(withAges(rows, now, false)).toEqual(rows);
    expect(withAges(rows, now, true)[1]?.age).toBeCloseTo(now - at("2019-01-14T09:12:02Z"), 3);
    const recent = [...rows, { time: "2026-11-20T09:12:02Z" }];
    expect(withAges(recent, now, false).every((row) => row.age !== undefined)).toBe(true);
    const quiet = [{ time: "2026-08-11T09:12:02Z" }, { time: "Aug 11 09:12:02" }];
    expect(withAges(quiet.slice(0, 1), now, false)[0]).toHaveProperty("age");
    expect(withAges(quiet.slice(1), now, false)[0]).not.toHaveProperty("age");
  });
});

/** Rows of a fact in a capture with one output. */
function rowsOf(fact: string, command: string, text: string, more: { startedAt?: string; startMs?: number } = {}) {
  const { startedAt, startMs } = more;
  const output = { command, file: "outputs/a.txt", ...(startMs === undefined ? {} : { startMs }) };
  const index = { schema: "netcheck.capture/1" as const, target: { name: "node1" }, outputs: [output], ...(startedAt === undefined ? {} : { startedAt }) };
  const reading = readFacts(captureOf(index, () => ({ text, truncated: false }))).readings.get(fact);
  return (reading?.value as { rows: { age?: number; message: string }[] } | undefined)?.rows ?? [];
}

describe("ages of a log of which nobody knows when it was read", () => {
  const ages = (...times: string[]) =>
    withAges(
      times.map((time): { time: string; age?: number } => ({ time })),
      undefined,
      false,
    ).map((row) => row.age);
  test("a line after which the log goes on for an hour is at least that old; of the last hour nothing is known", () => {
    expect(ages("Nov 21 01:00:00", "Nov 21 03:00:00", "Nov 21 03:59:59")).toEqual([10_799, undefined, undefined]);
    expect(ages("2019-01-14T09:00:00Z", "2019-01-14T10:00:00Z")).toEqual([3600, undefined]);
  });
  test("a turn of the year is not taken for a year", () => expect(ages("Dec 31 23:00:00", "Jan  1 00:30:00")).toEqual([undefined, undefined]));
  test("times with and without a year are not compared", () => expect(ages("1121 03:51:28.5", "2019-01-14T10:00:00Z")).toEqual([undefined, undefined]));
  test("the same holds for the kernel's seconds since boot, unless the uptime is known", () => {
    const text = "[ 1000.000000] table full\n[ 1010.000000] a\n[ 9000.000000] b\n";
    expect(rowsOf("kernel-log", "dmesg", text).map((row) => row.age)).toEqual([8000, 7990, undefined]);
  });
});

describe("in a capture", () => {
  const klog = "E1121 03:51:28.000000       1 reflector.go:138] Failed to watch\n";
  test("the moment counts at which the command began", () => {
    expect(rowsOf("agent-log", "kubectl logs kube-proxy-x", klog, { startedAt: "2026-11-21T03:52:00Z", startMs: 8000 })[0]?.age).toBe(40);
  });
  test("no age without a time of the capture, nor from one that is no time", () => {
    expect(rowsOf("agent-log", "kubectl logs kube-proxy-x", klog)[0]).not.toHaveProperty("age");
    expect(rowsOf("agent-log", "kubectl logs kube-proxy-x", klog, { startedAt: "soon" })[0]).not.toHaveProperty("age");
  });
  test("the kernel's messages too: dmesg -T and the journal", () => {
    const more = { startedAt: "2026-11-21T04:00:00Z" };
    expect(rowsOf("kernel-log", "dmesg -T", "[Sat Nov 21 03:59:00 2026] a\n", more)[0]?.age).toBe(60);
    expect(rowsOf("kernel-log", "journalctl -k -o short-iso", "2026-11-21T03:58:00+0000 n1 kernel: a\n", more)[0]?.age).toBe(120);
  });
});

describe("commands inside containers", () => {
  test.each([
    ["kubectl exec -n kube-system cilium-x7k2p -c cilium-agent -- cilium status --verbose", "cilium status --verbose", false],
    ["kubectl -n kube-system exec -ti kube-proxy-x7k2p -- iptables-save -c", "iptables-save -c", false],
    ["kubectl -n kube-system exec ds/cilium -- bpftool net show", "bpftool net show", false],
    ["kubectl exec -n kube-system aws-node-9xk2l -c aws-node -- curl -s localhost:61679/v1/enis", "curl -s localhost:61679/v1/enis", false],
    ["kubectl exec -n kube-system cilium-operator-5d78c9869d-x7k2p -- ip a", "ip a", true],
    ["kubectl exec -it busybox -- ip route", "ip route", true],
    ["kubectl exec busybox cat /etc/resolv.conf", "cat /etc/resolv.conf", true],
    ["oc debug node/worker-0 -- chroot /host ip rule", "ip rule", false],
    ['kubectl debug node/n1 -it --image=busybox -- chroot /host sh -c "ip -d link"', "ip -d link", false],
    ["kubectl debug web-1 -it --image=busybox -- ip a", "ip a", true],
    ["docker exec kind-worker2 ip route", "ip route", false],
    ["docker exec -it web ip route", "ip route", true],
    ["sudo docker run --rm --net=host --privileged nicolaka/netshoot ip route", "ip route", false],
    ["podman run -it --network host -v /:/host alpine chroot /host ip route", "ip route", false],
    ["unshare -rn ip route", "ip route", true],
    ["unshare --mount ip route", "ip route", false],
    ["ctr -n k8s.io task exec --exec-id 1 0a1b2c ip route", "ctr -n k8s.io task exec --exec-id 1 0a1b2c ip route", true],
    ["docker run --rm --net host --entrypoint iptables-save img -c", "iptables-save -c", false],
    ["docker run --rm --net=host alpine cat /proc/net/softnet_stat", "cat /proc/net/softnet_stat", false],
    ["docker run --rm --net=host alpine sysctl net.ipv4.ip_forward", "sysctl net.ipv4.ip_forward", false],
    ["docker run --rm --net=host alpine cat /etc/resolv.conf", "cat /etc/resolv.conf", true],
    // of a container's processes and files nothing follows for the node's
    ["docker run --rm --net=host alpine ps aux", "ps aux", true],
    ["sudo crictl exec 3f2ab19c0d birdcl show protocols", "birdcl show protocols", false],
    ["ssh -p 2222 root@node1 'sudo iptables-save'", "iptables-save", false],
    ["minikube ssh -- ip a", "ip a", false],
  ])("%s", (command, inner, foreign) => expect(commandLine(command)).toMatchObject({ argv: inner.split(" "), foreign }));

  test.each([
    "kubectl logs -n kube-system kube-proxy-x7k2p",
    "docker ps",
    "docker run --rm busybox ip route",
    "docker run --net=host img",
    "kubectl exec",
    "ssh node1",
  ])("%s stays as it is", (command) => expect(commandLine(command)).toMatchObject({ argv: command.split(" "), foreign: false }));
  test("a filter inside counts", () => expect(commandLine("ssh node1 'iptables-save | grep KUBE'").filtered).toBe(true));
});

describe("a capture that was made in another zone", () => {
  const read = (startedAt: string, command: string, text: string, id: string) => {
    const index = { schema: "netcheck.capture/1" as const, target: { name: "node1" }, startedAt, outputs: [{ command, file: "x", startMs: 0 }] };
    const { value } = readFacts(captureOf(index, () => ({ text, truncated: false }))).readings.get(id) as { value: { rows: { age?: number }[] } };
    return value.rows[0]?.age;
  };
  const syslog = "Nov 21 03:51:28 node1 kernel: neighbour: arp_cache: neighbor table overflow!\n";
  const ctime = "[Sat Nov 21 03:51:28 2026] neighbour: arp_cache: neighbor table overflow!\n";
  const kubelet = "Nov 21 03:51:28 node1 kubelet[7]: E1121 03:51:28.100000 7 x.go:1] no\n";
  const klog = "E1121 03:51:28.100000       1 x.go:1] no\n";

  test.each([
    ["2026-11-21T03:52:28-05:00", 60],
    ["2026-11-21T05:51:28+02:00", 7200],
    ["2026-11-21T03:52:28Z", 60],
  ])("%s: what the node's clock stamps is in that zone", (startedAt, age) => {
    expect(read(startedAt, "dmesg -T", ctime, "kernel-log")).toBe(age);
    expect(read(startedAt, "cat /var/log/messages", syslog, "kernel-log")).toBe(age);
    expect(read(startedAt, "journalctl -u kubelet", kubelet, "agent-log")).toBe(age);
  });
  test("the node says in which zone it is, whatever the collector noted", () => {
    const outputs = [
      { command: "dmesg -T", file: "x", startMs: 0 },
      { command: "timedatectl", file: "y", startMs: 0 },
    ];
    const index = { schema: "netcheck.capture/1" as const, target: { name: "node1" }, startedAt: "2026-11-20T19:52:28Z", outputs };
    const status = "               Local time: Sat 2026-11-21 03:52:29 CST\n                Time zone: Asia/Shanghai (CST, +0800)\n";
    const capture = captureOf(index, (file) => ({ text: file === "x" ? ctime : status, truncated: false }));
    expect(readFacts(capture).readings.get("kernel-log")?.value).toMatchObject({ rows: [{ age: 60 }] });
    for (const command of ["journalctl -k --utc", "TZ=UTC dmesg -T"]) {
      const asked = { ...capture, startedAt: "2026-11-21T03:52:28Z", outputs: capture.outputs.map((one, i) => (i === 0 ? { ...one, command } : one)) };
      expect(readFacts(asked).readings.get("kernel-log")?.value).toMatchObject({ rows: [{ age: 60 }] });
    }
  });
  test("stamps that would be of the future are of a node in UTC, whose collector is elsewhere", () =>
    expect(read("2026-11-20T22:52:28-05:00", "cat /var/log/messages", syslog, "kernel-log")).toBe(60));
  test("of a zone ahead that nothing tells, the lines before the newest count from it", () => {
    const lines = ctime + ctime.replace("03:51:28", "04:51:28");
    expect(read("2026-11-20T20:52:28Z", "dmesg -T", lines, "kernel-log")).toBe(3600);
    expect(read("2026-11-21T04:50:28Z", "dmesg -T", lines, "kernel-log")).toBe(3540);
  });
  test("what a container stamps is in UTC", () =>
    expect(read("2026-11-21T04:52:28+01:00", "kubectl logs kube-proxy-x7k2p", klog, "agent-log")).toBeCloseTo(59.9, 3));
  test("a zone that the line names stays", () =>
    expect(read("2026-11-21T04:52:28+01:00", "journalctl -k -o short-iso", syslog.replace("Nov 21 03:51:28", "2026-11-21T03:51:28+0000"), "kernel-log")).toBe(
      60,
    ));
});

test("a log that shows its newest line first was read at that line's time, or later", () => {
  const rows = ["2026-11-21T04:00:28Z", "2026-11-21T03:51:29Z", "2026-11-21T03:51:29Z"].map((time) => ({ time }));
  expect(newestFirst(rows)).toBe(at("2026-11-21T04:00:28Z"));
  expect(newestFirst([{ time: "Nov 21 04:00:28" }, {}, { time: "Nov 21 03:51:29" }])).toBeDefined();
  for (const others of [[], rows.slice(1), rows.toReversed(), [...rows, { time: "2026-11-21T03:59:00Z" }]]) expect(newestFirst(others)).toBeUndefined();
});
