import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { AnyFact } from "../functions/facts/fact.ts";
import { kernelLog } from "../functions/facts/kernel-log.ts";
import { module } from "../functions/facts/module.ts";
import { concatenated } from "../functions/facts/parts.ts";
import { sysctl } from "../functions/facts/sysctl.ts";
import { expectLinear } from "./cpu-time.ts";
import { type Printed, type Reading, read } from "./readings.ts";

/** How several outputs of one fact are put together, and what may be concluded from them. */
const fixture = (path: string): string => readFileSync(new URL(`facts/${path}.txt`, import.meta.url), "utf8");
/** The rows without the quotes. */
const plain = (rows: object[]) => rows.map((row) => ({ ...row, text: undefined }));
const argvOf = (fact: AnyFact, i: number): string[] => [...(fact.commands[i]?.argv ?? [])];

describe("sysctl", () => {
  const keys = argvOf(sysctl, 0).slice(1);
  const pattern = { command: argvOf(sysctl, 1), text: "net.ipv4.conf.all.rp_filter = 1\nnet.ipv4.conf.eth0.rp_filter = 2\n" };
  const most = keys.filter((key) => !key.startsWith("net.bridge."));
  const listed = { command: argvOf(sysctl, 0), text: most.map((key) => `${key} = 7\n`).join(""), exitCode: 1 };
  const stderr = keys
    .filter((key) => key.startsWith("net.bridge."))
    .map((key) => `sysctl: cannot stat /proc/sys/${key.replaceAll(".", "/")}: No such file or directory\n`);

  test("the two commands of the runbook are the whole, absent keys included, and each key is there once", () => {
    const reading = read("sysctl", { ...listed, stderr: stderr.join("") }, pattern);
    expect(reading).toMatchObject({ status: "read", complete: true, reason: "" });
    expect(reading.value.rows).toHaveLength(most.length + 1);
    expect(reading.value.absent.map((row: { key: string }) => row.key).sort()).toEqual(keys.filter((key) => key.startsWith("net.bridge.")).sort());
  });

  test("a key of which nothing is said is not known to be absent", () => {
    const reading = read("sysctl", listed, pattern);
    expect(reading.complete).toBe(false);
    expect(reading.value.absent).toEqual([]);
  });

  test("a complete `sysctl -a` proves absence, and the place in its order is quoted", () => {
    const text = "net.core.somaxconn = 4096\nnet.ipv4.ip_forward = 1\nvm.swappiness = 60\n";
    const reading = read("sysctl", { command: "sysctl -a", text });
    expect(reading.complete).toBe(true);
    expect(reading.value.absent).toContainEqual({ line: 1, key: "net.ipv4.conf.all.rp_filter", output: 0 });
    expect(reading.value.absent).toContainEqual({ line: 2, key: "net.netfilter.nf_conntrack_max", output: 0 });
  });

  test("a listing that begins behind a key, or ends before it, was cut and says nothing of it", () => {
    const tail = read("sysctl", { command: "sysctl -a", text: "net.netfilter.nf_conntrack_timestamp = 0\nvm.swappiness = 60\n" });
    expect(tail.value.absent).toEqual([]);
    const head = read("sysctl", { command: "sysctl -a", text: "abi.vsyscall32 = 1\nkernel.panic = 10\n" });
    expect(head.value.absent).toEqual([]);
  });

  test.each([
    ["cut", { command: "sysctl -a", truncated: true }],
    ["filtered", { command: "sysctl -a | grep net.core" }],
    ["with an unreadable line", { command: "sysctl -a", text: "net.core.somaxconn = 4096\nwhat is this\n" }],
  ])("a listing that is %s proves none", (_, output) => {
    const reading = read("sysctl", { text: "net.core.somaxconn = 4096\n", ...output });
    expect(reading).toMatchObject({ status: "read", complete: false });
    expect(reading.value.absent).toEqual([]);
  });

  test("one absent key alone is an answer", () => {
    const reading = read("sysctl", { command: "sysctl net.bridge.bridge-nf-call-iptables", exitCode: 255, stderr: stderr[0] as string });
    expect(reading.value).toMatchObject({ rows: [], absent: [{ key: "net.bridge.bridge-nf-call-iptables", text: (stderr[0] as string).trim() }] });
  });

  test("a value that one output shows beats the absence that another one tells", () => {
    const cat = { command: "cat /proc/sys/net/bridge/bridge-nf-call-iptables", text: "1\n" };
    const reading = read("sysctl", { command: "sysctl net.bridge.bridge-nf-call-iptables", exitCode: 255, stderr: stderr[0] as string }, cat);
    expect(reading.value).toMatchObject({ rows: [{ value: "1", output: 1 }], absent: [] });
  });
});

describe("ovs", () => {
  const show = { command: "ovs-vsctl show", text: fixture("ovs/show") };
  const bondShow = { command: "ovs-appctl bond/show", text: fixture("ovs/bond-show") };
  const listPort = { command: "ovs-vsctl -f json list Port", text: fixture("ovs/list-port-json") };
  const listInterface = { command: "ovs-vsctl list Interface", text: fixture("ovs/list-interface") };
  const members = (reading: Reading) =>
    reading.value.members.map((row: { bond: string; interface: string; active?: boolean }) => [row.bond, row.interface, row.active]);

  test("`show` and `bond/show` tell of each member once, quoted where more is told", () => {
    const reading = read("ovs", show, bondShow);
    expect(reading.complete).toBe(true);
    expect(reading.value.members).toEqual([
      { line: 14, output: 1, bond: "bond1", interface: "eth0", enabled: true, active: false },
      { line: 17, output: 1, bond: "bond1", interface: "eth1", enabled: true, active: true },
    ]);
    expect(reading.value.bonds).toMatchObject([{ name: "bond1", mode: "balance-slb", activeMember: "eth1" }]);
  });

  test("beside `show` a few columns of a table leave nothing open", () => {
    const columns = { command: "ovs-vsctl -f csv --columns=name,type list Interface", text: "name,type\nbr0,internal\n" };
    expect(read("ovs", show, bondShow, columns)).toMatchObject({ complete: true, reason: "" });
    expect(read("ovs", columns)).toMatchObject({ complete: false });
  });

  test("the tables of the database are tied together by their identifiers", () => {
    const reading = read("ovs", listPort, listInterface);
    expect(members(reading)).toEqual([
      ["bond1", "eth0", false],
      ["bond1", "eth1", true],
    ]);
    expect(reading.value.interfaces.map((row: { interface: string; port: string }) => [row.interface, row.port]).sort()).toEqual([
      ["br-bond", "br-bond"],
      ["eth0", "bond1"],
      ["eth1", "bond1"],
      ["mgnt", "mgnt"],
    ]);
    expect(members(read("ovs", listInterface, show, listPort, bondShow))).toHaveLength(2);
  });

  test("a pasted bond/show without its heading gets its name from the bond with the same members", () => {
    const pasted = { command: "ovs-appctl bond/show", text: fixture("ovs/bond-show-write-up-s1") };
    expect(members(read("ovs", { command: "ovs-vsctl show", text: fixture("ovs/show-quoted-old") }, pasted))).toEqual([
      ["bond1", "eth1", true],
      ["bond1", "eth0", false],
    ]);
  });
});

describe("module", () => {
  const lsmod = { command: "lsmod", text: fixture("module/lsmod") };
  const names = { command: argvOf(module, 1), text: fixture("module/sys-module") };

  test("a name that /sys/module has and lsmod has not is built in", () => {
    const { value, complete } = read("module", lsmod, names);
    const builtin = (name: string) => value.rows.filter((row: { name: string }) => row.name === name).map((row: { builtin: boolean }) => row.builtin);
    expect(complete).toBe(true);
    expect(builtin("acpi")).toEqual([true]);
    expect(builtin("bridge")).toEqual([false]);
    expect(read("module", { ...lsmod, truncated: true }, names).value.rows.find((row: { name: string }) => row.name === "acpi")?.builtin).toBe(false);
  });

  test("a kernel without module support is no list of no modules", () => {
    const stderr = "libkmod: ERROR ../libkmod/libkmod-module.c:1725 kmod_module_new_from_loaded: could not open /proc/modules: No such file or directory\n";
    expect(read("module", { command: "lsmod", exitCode: 1, stderr })).toMatchObject({ status: "failed", complete: false });
    expect(read("module", { command: "lsmod", exitCode: 1, text: stderr })).toMatchObject({ status: "failed" });
  });

  test("the list of built-in modules says nothing of the loaded ones", () => {
    expect(read("module", { command: "cat /lib/modules/6.1.0/modules.builtin", text: "kernel/net/bridge/bridge.ko\n" }).complete).toBe(false);
  });
});

describe("link", () => {
  const alone = {
    command: "ip link show flannel.1",
    text: "5: flannel.1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 qdisc noqueue state UNKNOWN mode DEFAULT group default \n    link/ether 8e:8f:a1:b5:44:c1 brd ff:ff:ff:ff:ff:ff\n",
  };

  test("a listing of one interface adds what a brief list of all leaves out", () => {
    const states = { command: "ip -br addr", text: "lo               UNKNOWN        127.0.0.1/8\nflannel.1        UNKNOWN        10.244.2.0/32\n" };
    for (const { value } of [read("link", states, alone), read("link", alone, states)])
      expect(plain(value.rows)).toEqual(expect.arrayContaining([expect.objectContaining({ interface: "flannel.1", mac: "8e:8f:a1:b5:44:c1", mtu: 1450 })]));
    const brief = { command: "ip -br link", text: "flannel.1        UNKNOWN        8e:8f:a1:b5:44:c1 <BROADCAST,MULTICAST,UP,LOWER_UP> \n" };
    expect(read("link", brief, alone)).toMatchObject({ complete: true, value: { rows: [{ interface: "flannel.1", mtu: 1450 }] } });
  });

  test("where it was switched in between, the later listing is right", () => {
    const down = { ...alone, text: alone.text.replace("<BROADCAST,MULTICAST,UP,LOWER_UP>", "<BROADCAST,MULTICAST>").replace("state UNKNOWN", "state DOWN") };
    const brief = { command: "ip -br link", text: "flannel.1        UNKNOWN        8e:8f:a1:b5:44:c1 <BROADCAST,MULTICAST,UP,LOWER_UP> \n" };
    expect(read("link", down, brief).value.rows).toMatchObject([{ interface: "flannel.1", up: true, mtu: 1450 }]);
    expect(read("link", brief, down).value.rows).toMatchObject([{ interface: "flannel.1", up: false, mtu: 1450 }]);
  });

  test("it takes nothing from the list of all that it does not have itself", () => {
    const whole = { command: "ip -d link", text: fixture("link/cilium-details") };
    const [first] = read("link", whole).value.rows;
    const brief = { command: `ip -br link show ${first.interface}`, text: `${first.interface}  UP  02:00:00:00:00:01 <UP>\n` };
    expect(read("link", whole, brief).value.rows).toContainEqual(first);
  });
});

describe("bridge, fdb", () => {
  test("brctl adds ids and empty bridges to what `bridge link` tells, and no port twice", () => {
    const link = { command: "bridge -d -j link show", text: fixture("bridge/link-json-details") };
    const { value } = read("bridge", link, { command: "brctl show", text: fixture("bridge/brctl-empty-bridge") });
    expect(value.ports.map((row: { interface: string; output: number }) => [row.interface, row.output])).toEqual([
      ["v1", 0],
      ["v2", 0],
    ]);
    expect(plain(value.bridges)).toEqual([
      { line: 3, output: 1, bridge: "cni0", id: "8000.3a41186f9451", stp: false },
      { line: 2, output: 1, bridge: "br1", id: "8000.000000000000", stp: false },
    ]);
  });

  test("tables of two bridges complement each other; the whole table stands alone", () => {
    const one = { command: "bridge fdb show br cni0", text: fixture("fdb/one-bridge-s4") };
    const other = { command: "bridge fdb show br azure0", text: fixture("fdb/one-bridge-s5") };
    const parts = read("fdb", one, other, one);
    expect(parts.complete).toBe(false);
    expect(parts.value.rows).toHaveLength(26);
    const whole = read("fdb", one, { command: "bridge -j fdb show", text: fixture("fdb/json") });
    expect(whole.complete).toBe(true);
    expect(whole.value.rows).toHaveLength(23);
  });

  test("JSON and text of the same table are the same rows", () => {
    const rows = (command: string, file: string) => plain(read("fdb", { command, text: fixture(file) }).value.rows).map((row) => ({ ...row, line: 0 }));
    expect(rows("bridge -j fdb show", "fdb/json")).toEqual(rows("bridge fdb show", "fdb/text"));
  });
});

describe("kernel-log", () => {
  const dmesg = { command: "dmesg", text: fixture("kernel-log/dmesg") };

  test("with the uptime, messages have an age", () => {
    const { value, complete } = read("kernel-log", { command: argvOf(kernelLog, 1), text: "12399.50 48000.11\n" }, dmesg);
    expect(complete).toBe(true);
    expect(value.rows[1]).toMatchObject({ seconds: 12345.678901, age: 53.821, output: 1 });
    expect(read("kernel-log", dmesg).value.rows[1].age).toBeUndefined();
  });

  test("filtered listings are put together without doubles, and prove no absence", () => {
    const full = { command: "dmesg | grep full", text: "[12345.678901] nf_conntrack: table full\n" };
    const more = { command: "dmesg | grep -i table", text: "[12345.678901] nf_conntrack: table full\n[12350.000123] neighbor table overflow!\n" };
    const reading = read("kernel-log", full, more);
    expect(reading.complete).toBe(false);
    expect(reading.value.rows.map((row: { seconds: number }) => row.seconds)).toEqual([12345.678901, 12350.000123]);
  });

  test("what is new in a second reading is there, too, and the first is older by then", () => {
    const first = { command: "dmesg", text: "[ 1000.000000] eth0: link becomes ready\nno time\n" };
    const again = { ...first, text: `${first.text}[ 9000.000000] nf_conntrack: table full\n` };
    expect(read("kernel-log", first, again).value.rows).toMatchObject([
      { seconds: 1000, age: 8000 },
      { message: "no time" },
      { seconds: 9000, message: "nf_conntrack: table full" },
    ]);
  });

  test("the uptime alone is no log", () => {
    expect(read("kernel-log", { command: "cat /proc/uptime", text: "12399.50 48000.11\n" }).complete).toBe(false);
  });
});

describe("tool", () => {
  test("a tool is missing only if the answer is complete and no other answer has it", () => {
    const missing = (...outputs: Printed[]) => read("tool", ...outputs).value.missing.map((row: { name: string }) => row.name);
    const answer = { command: "command -v ip nft ss", text: "/usr/sbin/ip\n", exitCode: 1 };
    expect(missing(answer)).toEqual(["nft", "ss"]);
    expect(missing(answer, { command: "which nft", text: "/usr/sbin/nft\n" })).toEqual(["ss"]);
    expect(missing({ ...answer, truncated: true })).toEqual([]);
  });
});

describe("agent-log", () => {
  const before = { command: "kubectl -n kube-system logs kube-proxy-x7k2p --previous", text: "E1109 02:01:44.702100       1 proxier.go:760] no conntrack\n" };
  const now = { command: "kubectl -n kube-system logs kube-proxy-x7k2p", text: "I1122 12:58:11.002014       1 proxier.go:805] synced\n" };

  test("what the container said that was there before is as old as the present one's log tells", () => {
    expect(read("agent-log", before, now).value.rows.map((row: { age?: number }) => row.age)).toEqual([undefined, 1_162_586.3]);
  });

  test("without that nobody knows how old it is", () => {
    expect(read("agent-log", before).value.rows[0]).not.toHaveProperty("age");
  });

  test("what is new in a second reading is there, too, and the first is older by then", () => {
    const text = "no time\nI1122 10:58:11.002014       1 proxier.go:805] synced\n";
    const again = { ...now, text: `${text}E1122 12:58:11.002014       1 proxier.go:760] not synced\n` };
    const rows = read("agent-log", { ...now, text }, again).value.rows;
    expect(rows.map(({ message, age }: { message: string; age?: number }) => [message, age])).toEqual([
      ["no time", undefined],
      ["synced", 7200],
      ["not synced", undefined],
    ]);
  });

  test("kubeadm's complaint is read where it stands apart", () => {
    const stderr = "error execution phase preflight:\n\t[ERROR FileExisting-conntrack]: conntrack not found in system path\n";
    const printed = { command: "kubeadm join 10.20.0.5:6443", text: "[preflight] Running pre-flight checks\n", exitCode: 1, stderr };
    expect(read("agent-log", printed).value.rows.map((row: { message: string }) => row.message.trim())).toContain(
      "[ERROR FileExisting-conntrack]: conntrack not found in system path",
    );
  });
});

test("outputs that each count are put together in time: a text may hold thousands of one command", () => {
  const part = (line: number) => ({
    value: { rows: [{ line }] },
    view: { format: "", complete: false, scope: "", rank: 0 },
    sample: 1,
    complete: false,
    at: undefined,
    truncated: false,
  });
  expectLinear(
    (size) => Array.from({ length: size }, (_, i) => part(i)),
    (parts) => expect(concatenated(parts).rows).toHaveLength(parts.length),
    10_000,
  );
});
