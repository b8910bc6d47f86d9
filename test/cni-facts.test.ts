import { describe, expect, test } from "vitest";
import { type Printed, read } from "./readings.ts";

/** What listings of processes, CNI configuration and forwarding entries prove once they are put together, and what is derived from them. */
describe("process", () => {
  const all = { command: "ps -e -o pid,args", text: "    PID COMMAND\n      1 /sbin/init\n   1980 /opt/bin/flanneld --ip-masq\n" };

  test("a listing of all processes says so, unless it was cut or filtered", () => {
    expect(read("process", all).value.listings).toMatchObject([{ line: 2, output: 0 }]);
    expect(read("process", { ...all, truncated: true }).value.listings).toEqual([]);
    expect(read("process", { ...all, command: "ps -e -o pid,args | grep -v pause" }).value.listings).toEqual([]);
    expect(read("process", { command: "pgrep -a flanneld", text: "1980 /opt/bin/flanneld\n" }).value.listings).toEqual([]);
  });

  test("a bare ps shows every process on BusyBox, where process 1 is in it, and one terminal elsewhere", () => {
    const busybox = read("process", { command: "ps w", text: "PID   USER     COMMAND\n    1 root     init\n  310 root     /bin/k3s server\n" });
    expect([busybox.complete, busybox.value.listings.length]).toEqual([true, 1]);
    const terminal = read("process", { command: "ps", text: "    PID TTY          TIME CMD\n   2313 pts/0    00:00:00 bash\n" });
    expect([terminal.complete, terminal.value.listings]).toEqual([false, []]);
    expect(read("process", { command: "ps w", text: "    PID TTY      STAT   TIME COMMAND\n" }, all).value.rows).toHaveLength(2);
  });
});

describe("cni-config", () => {
  const flannel = '{"cniVersion":"0.3.1","name":"cbr0","plugins":[{"type":"flannel"},{"type":"portmap"}]}';
  const listing = { command: "ls /etc/cni/net.d", text: "10-calico.conflist\n10-flannel.conflist\ncalico-kubeconfig\n" };

  test("texts without names get them from a listing with as many files", () => {
    const texts = { command: "cat /etc/cni/net.d/*.conflist", text: `${flannel.replace("flannel", "calico")}\n${flannel}\n` };
    const { files, plugins } = read("cni-config", listing, texts).value;
    expect(files.filter((row: { config: boolean }) => row.config)).toMatchObject([
      { file: "10-calico.conflist", order: 1, types: ["calico", "portmap"] },
      { file: "10-flannel.conflist", order: 2, types: ["flannel", "portmap"] },
    ]);
    expect(plugins.map((row: { file: string }) => row.file)).not.toContain("file-1.conf");
    const one = read("cni-config", listing, { command: "cat /etc/cni/net.d/*flannel*", text: flannel }).value;
    expect(one.files.map((row: { file: string }) => row.file)).toEqual(["10-calico.conflist", "10-flannel.conflist", "calico-kubeconfig"]);
  });

  test("a text that was cut is not called broken, and a directory of which something is missing is not called empty", () => {
    const cut = { command: "cat /etc/cni/net.d/10-flannel.conflist", text: flannel.slice(0, 60) };
    expect(read("cni-config", cut).value.files).toMatchObject([{ file: "10-flannel.conflist", valid: false }]);
    expect(read("cni-config", { ...cut, truncated: true }).value.files[0]).not.toHaveProperty("valid");
    expect(read("cni-config", { command: "ls /etc/cni/net.d | grep cilium", text: "" }).value.directories).toEqual([]);
    expect(read("cni-config", { command: "ls /etc/cni/net.d", text: "" }).value.directories).toMatchObject([{ exists: true, configs: 0 }]);
  });
});

describe("fdb", () => {
  const entry = { command: "bridge fdb show dev flannel.1", text: "5a:5d:19:d8:3b:27 dst 192.0.2.12 self permanent\n" };

  test("a listing of one device proves what is not there on that device", () => {
    const reading = read("fdb", entry);
    expect(reading.complete).toBe(false);
    expect(reading.value.listings).toEqual([{ line: 1, interface: "flannel.1" }]);
    expect(read("fdb", { ...entry, truncated: true }).value.listings).toEqual([]);
    expect(read("fdb", { command: "bridge fdb show", text: entry.text.replace(" dst", " dev flannel.1 dst") }).value.listings).toEqual([
      { line: 1, interface: "*" },
    ]);
    // every interface has entries: an empty file was not filled
    expect(read("fdb", { command: "bridge fdb show", text: "" })).toMatchObject({
      status: "failed",
      reason: expect.stringContaining("nothing of what it printed is there") as string,
    });
  });
});

describe("vtep", () => {
  const neighbors = {
    command: "ip neigh show dev flannel.1",
    text: "10.244.2.0 lladdr 5a:5d:19:d8:3b:27 PERMANENT\n10.244.3.0 lladdr 5a:5d:19:d8:3b:99 PERMANENT\n",
  };
  const entries = { command: "bridge fdb show dev flannel.1", text: "5a:5d:19:d8:3b:27 dst 192.0.2.12 self permanent\n" };
  const rows = (...outputs: Printed[]) => read("vtep", ...outputs).value.rows;

  test("an entry is missing only if the device's entries were read", () => {
    expect(rows(neighbors, entries)).toMatchObject([
      { gateway: "10.244.2.0", destination: "192.0.2.12", unforwarded: false },
      { gateway: "10.244.3.0", unforwarded: true },
    ]);
    expect(rows(neighbors)).toMatchObject([{ unforwarded: false }, { unforwarded: false }]);
  });

  test("a device that takes its peers from each packet, and one that is a port of a bridge, are left out", () => {
    const vxlan = "7: vx1: <UP,LOWER_UP> mtu 1450 qdisc noqueue state UNKNOWN\n    link/ether 5a:5d:19:d8:3b:01 brd ff:ff:ff:ff:ff:ff\n    vxlan";
    const route = { command: "ip route", text: "10.1.0.0/24 via 10.1.0.0 dev vx1 onlink\n" };
    expect(rows({ command: "ip -d link", text: `${vxlan} id 0 external dstport 8472\n` }, route)).toEqual([]);
    expect(rows({ command: "ip -d link", text: `${vxlan.replace("noqueue", "noqueue master br0")} id 7 dstport 4789\n` }, route)).toEqual([]);
    expect(rows({ command: "ip -d link", text: `${vxlan} id 7 dstport 4789\n` }, route)).toMatchObject([{ gateway: "10.1.0.0", prefix: "10.1.0.0/24" }]);
  });
});

describe("cni", () => {
  test("a chained configuration belongs to all its plugins; without its text the name tells", () => {
    const chained = '{"name":"portmap","plugins":[{"type":"aws-cni"},{"type":"portmap"},{"type":"cilium-cni"}]}';
    const text = { command: "cat /etc/cni/net.d/05-cilium.conflist", text: chained };
    expect(read("cni", text).value.configs).toMatchObject([{ order: 1, cni: "aws", chain: ["aws", "cilium"] }]);
    const names = { command: "ls /etc/cni/net.d", text: "10-kuberouter.conflist\n20-weave.conflist\n" };
    expect(read("cni", names).value.configs).toMatchObject([{ cni: "kube-router" }, { cni: "weave" }]);
  });

  test("an agent that ended, or whose container did, does not run", () => {
    const ended = { command: "ps -e -o pid,args", text: "    PID COMMAND\n      1 /sbin/init\n   1980 [flanneld] <defunct>\n" };
    expect(read("cni", ended).value.agents).toEqual([]);
    const row = "4f0cf2f1b6f0d   8d147537fb7d1   7 days ago   STATE   kube-flannel   2   1d0e2b1a5c9f7   kube-flannel-ds-8xk2m\n";
    expect(read("cni", { command: "crictl ps -a", text: row.replace("STATE", "Exited") }).value.agents).toEqual([]);
    expect(read("cni", { command: "crictl ps -a", text: row.replace("STATE", "Running") }).value.agents).toMatchObject([{ cni: "flannel" }]);
  });
});
