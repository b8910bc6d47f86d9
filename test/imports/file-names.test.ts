import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { type Capture, missingFiles } from "../../functions/facts/capture.ts";
import { readCaptures } from "../../functions/imports/index.ts";
import { type Files, folders } from "./folders.ts";

/** What the names of files in a folder tell: the command, which of two moments, and when. */

const { scratch, directory } = folders();
const read = async (files: Files): Promise<Capture> => (await readCaptures(directory(files)))[0] as Capture;
const samplesOf = async (files: Readonly<Record<string, string>>): Promise<unknown[]> =>
  (await read(files)).outputs.map(({ command, sample, text }) => [command, sample, text.trim()]);
const nic = (dropped: number): string => `NIC statistics:\n     rx_out_of_buffer: ${dropped}\n`;

test.each(["journalctl_-k_-b_-1.txt", "journalctl-k-b-1.txt", "journalctl_--boot=-1_-k.log"])(
  "%s is of another boot, and not read by its lines",
  async (name) => {
    const line = "Nov 20 09:31:02 w1 kernel: nf_conntrack: nf_conntrack: table full, dropping packet\n";
    const { outputs } = await read({ [name]: line, "ip_route.txt": "default via 10.0.0.1 dev eth0\n" });
    expect(outputs.filter(({ command }) => !/ (?:-b -1|--boot=-1)/.test(command)).map(({ command }) => command)).toEqual(["ip route"]);
  },
);

test("files that lie deep, packed each by itself", async () => {
  const files = {
    "tmp/collect/2026/node1/net/ip_rule.txt.zst": zstdCompressSync("0:\tfrom all lookup local\n"),
    "tmp/collect/2026/node1/net/ip_route.txt": "default via 10.0.0.1 dev eth0\n",
  };
  expect((await read(files)).outputs.map(({ command, text }) => [command, text])).toEqual([
    ["ip route", "default via 10.0.0.1 dev eth0\n"],
    ["ip rule", "0:\tfrom all lookup local\n"],
  ]);
});

test("one node's name behind all commands", async () => {
  const files = {
    "ip_route.node1.txt": "default via 10.0.0.1 dev eth0\n",
    "ip_rule.node1.txt": "0:\tfrom all lookup local\n",
    "ip_neigh.node1.txt": "10.0.0.1 dev eth0 lladdr 00:16:3e:00:00:01 REACHABLE\n",
  };
  const { target, outputs } = await read(files);
  expect([target, outputs.map(({ command }) => command)]).toEqual(["node1", ["ip neigh", "ip route", "ip rule"]]);
});

describe("a folder of saved outputs", () => {
  test.each([
    ["cat _proc_sys_net_netfilter_nf_conntrack_count", "cat /proc/sys/net/netfilter/nf_conntrack_count", "412\n"],
    ["cat__proc_sys_net_ipv4_conf_all_rp_filter", "cat /proc/sys/net/ipv4/conf/all/rp_filter", "1\n"],
    ["proc_sys_net_ipv4_ip_forward", "cat /proc/sys/net/ipv4/ip_forward", "0\n"],
    ["cat _var_lib_kubelet_config.yaml", "cat /var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\nresolvConf: /etc/resolv.conf\n"],
    ["cat _run_systemd_resolve_resolv.conf", "cat /run/systemd/resolve/resolv.conf", "nameserver 10.0.0.1\n"],
    ["ip-s-link", "ip -s link", "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000\n"],
    ["ss_lntup", "ss -lntup", "Netid State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n"],
    ["iptables-save-c", "iptables-save -c", "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n"],
    ["iptables_t_nat_s", "iptables -t nat -S", "-P PREROUTING ACCEPT\n"],
    ["conntrack-s", "conntrack -S", "cpu=0   \tfound=0 invalid=0 insert=0 insert_failed=0 drop=0 early_drop=0 error=0 search_restart=0\n"],
    ["ethtool-k-eth0", "ethtool -k eth0", "Features for eth0:\nrx-checksumming: on\n"],
    ["journalctl-u-kubelet", "journalctl -u kubelet", "Nov 20 14:11:09 n1 kubelet[1811]: x\n"],
    ["cat-proc-net-softnet-stat", "cat /proc/net/softnet_stat", "00000001 00000000 00000000\n"],
    ["cat%20%2Fproc%2Fnet%2Fsoftnet_stat", "cat /proc/net/softnet_stat", "00000001 00000000 00000000\n"],
    ["ls -la _etc_cni_net.d", "ls -la /etc/cni/net.d", "total 8\n-rw------- 1 root root 612 Nov  9 10:40 10-calico.conflist\n"],
    [
      "tail_-n_12__var_log_aws-routed-eni_ipamd.log",
      "tail -n 12 /var/log/aws-routed-eni/ipamd.log",
      '{"level":"info","ts":"2026-11-20T14:11:02.112Z","msg":"x"}\n',
    ],
  ])("%s is the output of %s", async (name, command, text) =>
    expect((await read({ [`${name}.txt`]: text })).outputs.map((output) => output.command)).toEqual([command]),
  );

  test.each([
    ["ethtool -S enp65s0f0np0.txt", "ethtool -S enp65s0f0np0-2.txt"],
    ["ethtool_-S_enp65s0f0np0_1.txt", "ethtool_-S_enp65s0f0np0_2.txt"],
    ["ethtool -S enp65s0f0np0 (1).txt", "ethtool -S enp65s0f0np0 (2).txt"],
    ["ethtool-S-enp65s0f0np0-t0.log", "ethtool-S-enp65s0f0np0-t1.log"],
    ["ethtool -S enp65s0f0np0 before.txt", "ethtool -S enp65s0f0np0 after.txt"],
  ])("%s and %s are two samples", async (first, second) => {
    const samples = (await read({ [first]: nic(5), [second]: nic(9) })).outputs.map(({ sample, text }) => [sample, text.trim()]);
    expect(samples).toEqual([
      [1, nic(5).trim()],
      [2, nic(9).trim()],
    ]);
  });

  test("numbered files of the counters of rules are samples", async () => {
    const rules = (count: number): string => `*filter\n:FORWARD ACCEPT [${count}:${count}]\nCOMMIT`;
    expect(await samplesOf({ "iptables-save_-c_-t_filter.1.txt": rules(1), "iptables-save_-c_-t_filter.2.txt": rules(2) })).toEqual([
      ["iptables-save -c -t filter", 1, rules(1)],
      ["iptables-save -c -t filter", 2, rules(2)],
    ]);
  });

  test("numbers that belong to the command, other ports and other states are no samples", async () => {
    expect(await samplesOf({ "ethtool -S bond0.1.txt": nic(1), "ethtool -S bond0.2.txt": nic(2) })).toEqual([
      ["ethtool -S bond0.1", 1, nic(1).trim()],
      ["ethtool -S bond0.2", 1, nic(2).trim()],
    ]);
    const route = "default via 10.0.0.1 dev eth1\n";
    expect(await samplesOf({ "ip route show table 1.txt": route, "ip route show table 2.txt": route })).toEqual([
      ["ip route show table 1", 1, route.trim()],
      ["ip route show table 2", 1, route.trim()],
    ]);
  });

  test("`date` among them tells when they were collected", async () => {
    const dmesg = { "dmesg_-T.txt": "[Fri Nov 20 14:12:01 2026] x\n" };
    expect((await read({ ...dmesg, "date.txt": "Fri Nov 20 14:12:31 UTC 2026\n" })).startedAt).toBe("2026-11-20T14:12:31.000Z");
    expect((await read({ ...dmesg, "date.txt": "Fri Nov 20 15:12:31 CET 2026\n" })).startedAt).toBe("2026-11-20T14:12:31.000Z");
    expect((await read({ ...dmesg, "date.txt": "Fri Nov 20 22:12:31 CST 2026\n" })).startedAt).toBeUndefined();
    const index = "file\tnetns\trc\tseconds\tcommand\ndate.txt\t-\t0\t0.001\tdate -u\ndmesg_-T.txt\t-\t0\t0.002\tdmesg -T\n";
    expect((await read({ ...dmesg, "INDEX.tsv": index, "date.txt": "Fri Nov 20 14:12:31 UTC 2026\n" })).startedAt).toBe("2026-11-20T14:12:31.000Z");
  });

  test("files that were packed one by one are unpacked; one that is damaged is told, and is no answer; of one that was cut there is the beginning", async () => {
    const route = "default via 10.0.0.1 dev eth0\n";
    // too varied to become small, so that half of it is on its way
    const rules = Array.from({ length: 20_000 }, (_, i) => `-A FORWARD -s 10.${i % 251}.${(i * 7919) % 256}.${(i * 104_729) % 256}/32 -j ACCEPT\n`).join("");
    const whole = gzipSync(rules);
    const files = {
      "ip_route.txt.gz": gzipSync(route),
      "ip_rule.txt.gz": Buffer.from("no gzip"),
      "iptables_-S.txt.gz": whole.subarray(0, whole.length / 2),
      "ip_neigh.txt": "10.0.0.1 dev eth0 FAILED\n",
    };
    const { outputs, notCollected } = await read(files);
    expect(outputs.map(({ command }) => command)).toEqual(["ip neigh", "ip route", "iptables -S"]);
    expect(outputs.find(({ command }) => command === "ip route")).toMatchObject({ text: route, truncated: false });
    const cut = outputs.find(({ command }) => command === "iptables -S");
    expect(cut?.truncated).toBe(true);
    expect(rules.startsWith(cut?.text.split("\n", 2)[0] ?? "none")).toBe(true);
    expect(missingFiles({ notCollected })).toEqual(["it could not be unpacked: ip_rule.txt.gz was left out"]);
    await expect(read({ "ip_rule.txt.gz": Buffer.from("no gzip") })).rejects.toThrow("it could not be unpacked: ip_rule.txt.gz was left out");
  });

  test("files without an extension are read where their names are commands", async () => {
    const files = { "ip_-s_link": "1: lo: <LOOPBACK,UP> mtu 65536\n", "03_ip_rule": "0:\tfrom all lookup local\n", Makefile: "all:\n", "route.pcap": "x" };
    expect((await read(files)).outputs.map(({ command }) => command)).toEqual(["ip rule", "ip -s link"]);
  });

  test("so does a prompt in a pasted text", async () => {
    const text = "root@node1:~# date\nFri Nov 20 14:12:31 UTC 2026\nroot@node1:~# ip rule\n0:\tfrom all lookup local\n";
    const path = join(scratch, "paste.txt");
    writeFileSync(path, text);
    expect((await readCaptures(path))[0]?.startedAt).toBe("2026-11-20T14:12:31.000Z");
  });
});

test("a text that lies alone in a folder is read like the text itself", async () => {
  const told = JSON.stringify({ cmd: "ip rule", rc: 0, stdout: "0:\tfrom all lookup local", stderr: "" });
  const text = `TASK [ip rule] ****\nok: [wk-2] => ${told}\n`;
  const path = directory({ "paste.txt": text, "expect.json": "{}" });
  const [inFolder, alone] = [await readCaptures(path), await readCaptures(join(path, "paste.txt"))];
  expect(inFolder).toEqual(alone);
  expect(inFolder.map(({ target, outputs }) => [target, outputs.map(({ command }) => command)])).toEqual([["wk-2", ["ip rule"]]]);
  // named by nobody, it is called as the folder
  const [unnamed] = await readCaptures(directory({ "paste.txt": "$ ip rule\n0:\tfrom all lookup local\n" }));
  expect(unnamed).toMatchObject({ unnamed: true });
  expect(unnamed?.target).not.toBe("pasted");
});
