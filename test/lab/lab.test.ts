import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { cleanLab, type Incident, incidents, type Lab, type LabNode, startLab, type Variant } from "./lab.ts";
import { skipLab } from "./requirements.ts";

/** How often each incident is made, broken and repaired; the lab's own reliability was measured with LAB_ROUNDS=5. */
const rounds = Number(process.env["LAB_ROUNDS"] ?? 1);

/** The repairs of the write-ups, as an expert types them on the node. */
const repairs: Record<string, string> = {
  s1: `ip route del 169.254.0.0/16 dev eth0; ip route del 169.254.0.0/16 dev eth1; arping -q -U -c 1 -I mgnt 10.5.0.10`,
  s2: `iptables -D FORWARD -m comment --comment "cilium-feeder: CILIUM_FORWARD" -j CILIUM_FORWARD
       iptables -I FORWARD 1 -m comment --comment "cilium-feeder: CILIUM_FORWARD" -j CILIUM_FORWARD`,
  s3: `bpftool cgroup detach /sys/fs/cgroup connect4 id "$(bpftool cgroup show /sys/fs/cgroup | awk 'NR == 2 { print $1 }')"`,
  "s3 link": `cgroup=$(stat -c %i /sys/fs/cgroup)
       bpftool link detach id "$(bpftool link | awk -v id="$cgroup" '$2 == "cgroup" { link = $1 + 0 } $1 == "cgroup_id" && $2 == id { print link }')"`,
  s4: `sysctl -qw net.bridge.bridge-nf-call-iptables=1`,
  "s4 absent": `modprobe br_netfilter && sysctl -qw net.bridge.bridge-nf-call-iptables=1`,
  s5: `for ip in 10.240.0.32 10.240.0.57; do
         ebtables -t nat -D PREROUTING -p ARP --arp-op Request --arp-ip-dst $ip -j arpreply --arpreply-mac a2:96:88:20:cb:c6
         ebtables -t nat -D PREROUTING -p IPv4 -i eth0 --ip-dst $ip -j dnat --to-dst a2:96:88:20:cb:c6 --dnat-target ACCEPT
         ip neigh del $ip dev azure0
       done`,
};

/** Run a shell script on the node; its standard output. Throws when it fails. */
async function sh(node: LabNode, script: string): Promise<string> {
  const { code, stdout, stderr } = await node.run(["sh", "-ec", script]);
  if (code !== 0) throw new Error(`${node.name}: ${script}: exit code ${code}: ${stderr}`);
  return stdout;
}

/** Everything of the given labs that the kernel or the file system still knows: namespaces, cgroups, state, processes. */
function leftovers(suffix: string): string[] {
  const namespaces = existsSync("/run/netns") ? readdirSync("/run/netns").filter((name) => name.endsWith(`-${suffix}`)) : [];
  const cgroups = globSync(`/sys/fs/cgroup/{,*/}nc-lab-*-${suffix}`);
  const mounts = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(`-${suffix}`));
  const state = existsSync(join("/run/netcheck-lab", suffix)) ? [`state ${suffix}`] : [];
  const processes = readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(`-${suffix}`);
      } catch {
        return false; // gone
      }
    });
  return [...namespaces, ...cgroups, ...mounts, ...state, ...processes];
}

describe.skipIf(skipLab())("lab", () => {
  const started: Lab[] = [];
  const start = async (...args: Parameters<typeof startLab>) => {
    const lab = await startLab(...args);
    started.push(lab);
    return lab;
  };
  afterEach(async () => {
    await Promise.all(started.splice(0).map((lab) => lab.down()));
  });

  /** Healthy, broken, repaired by hand. */
  async function cycle(node: LabNode, variant?: Variant) {
    expect(await node.probe(), `${node.name} healthy`).toBe(true);
    await node.fault(variant);
    expect(await node.probe(), `${node.name} broken`).toBe(false);
    await sh(node, repairs[variant === undefined ? node.incident : `${node.incident} ${variant}`] ?? "");
    expect(await node.probe(), `${node.name} repaired`).toBe(true);
  }

  const cases: [Incident, Variant?][] = [...incidents.map((incident): [Incident] => [incident]), ["s3", "link"], ["s4", "absent"]];
  // most of each is waiting for what does not arrive
  test.concurrent.for(cases.map(([incident, variant]) => ({ name: [incident, variant].filter(Boolean).join(" "), incident, variant })))(
    "$name: healthy, broken, repaired, gone",
    async ({ incident, variant }) => {
      const suffix = `${incident}${variant ?? ""}${process.pid}`;
      const lab = await startLab([incident], { suffix });
      try {
        for (let round = 0; round < rounds; round += 1) {
          const node = lab.node(incident);
          if (round > 0) await node.up();
          await cycle(node, variant);
          await node.down();
          expect(leftovers(suffix)).toEqual([]);
        }
      } finally {
        await lab.down();
      }
    },
  );

  test("all five at once, each a world of its own", async () => {
    const lab = await start(incidents, { suffix: `all${process.pid}` });
    await Promise.all(lab.nodes.map((node) => cycle(node)));
    const [node1, node2, node3, node4] = lab.nodes as [LabNode, LabNode, LabNode, LabNode];

    expect(await sh(node1, "ovs-vsctl show; ovs-appctl bond/show")).toMatch(/Bridge br-bond[\s\S]*---- bond1 ----/);
    expect((await node2.run(["ovs-vsctl", "show"])).code, "node2 has no OVS").not.toBe(0);
    expect(await sh(node3, "bpftool cgroup tree")).toContain("cil_sock4_connect");
    expect(await sh(node2, "bpftool cgroup tree")).not.toContain("cil_sock4_connect");
    expect(await sh(node3, "ls /sys/fs/bpf/tc/globals")).toContain("cilium_lb4_services_v2");
    expect(await sh(node2, "ls /sys/fs/bpf/tc/globals")).not.toContain("cilium_lb4_services_v2");
    expect(await sh(node4, "brctl show; ls /sys/class/net")).toMatch(/cni0[\s\S]*veth05420679/);
    for (const node of lab.nodes) expect(await sh(node, "hostname")).toBe(`${node.name}\n`);

    await sh(node1, "touch /run/marker /tmp/marker /var/lib/marker");
    expect(await sh(node2, "ls /run /tmp /var/lib")).not.toContain("marker");
    expect(existsSync("/run/marker") || existsSync("/tmp/marker") || existsSync("/var/lib/marker")).toBe(false);
    // A node's mounts must not keep another node's network namespace alive after its `down`.
    expect(await sh(node2, "cat /proc/self/mountinfo")).not.toContain("nsfs");

    await lab.down();
    expect(leftovers(`all${process.pid}`)).toEqual([]);
  });

  test("two labs of the same incident side by side", async () => {
    const [left, right] = await Promise.all([start(["s4"], { suffix: `left${process.pid}` }), start(["s4"], { suffix: `right${process.pid}` })]);
    await left.node("s4").fault();
    expect(await right.node("s4").probe()).toBe(true);
    expect(await left.node("node4").probe()).toBe(false);
  });

  test("S4 without the module: the sysctl does not exist, and the other module tools still work", async () => {
    const lab = await start(["s4"]);
    const node = lab.node("node4");
    await node.fault("absent");
    const outcome = await node.run(["sysctl", "net.bridge.bridge-nf-call-iptables"]);
    expect(outcome.code).not.toBe(0);
    expect(outcome.stderr).toContain("cannot stat /proc/sys/net/bridge/bridge-nf-call-iptables: No such file or directory");
    expect(await sh(node, "modinfo --version")).toMatch(/^kmod version/);
    expect(existsSync("/proc/sys/net/bridge/bridge-nf-call-iptables"), "only on that node").toBe(true);
  });

  test("the reported non-cures do not cure", async () => {
    const lab = await start(["s1", "s5"]);
    const [node1, node5] = [lab.node("s1"), lab.node("s5")];
    await Promise.all([node1.fault(), node5.fault()]);
    await sh(node1, "ip route del 169.254.0.0/16 dev eth0; ip route del 169.254.0.0/16 dev eth1"); // nobody was told
    await sh(node5, "ip neigh flush dev azure0; iptables -F");
    expect(await node1.probe()).toBe(false);
    expect(await node5.probe()).toBe(false);
  });

  test("what a killed process left behind is removed by the next lab", async () => {
    const source = `import { startLab } from ${JSON.stringify(join(import.meta.dirname, "lab.ts"))};
      await startLab(["s2", "s3"]); console.log("up"); await new Promise(() => setInterval(() => {}, 1000));`;
    const child = spawn(process.execPath, ["--input-type=module-typescript", "--eval", source], { stdio: ["ignore", "pipe", "inherit"] });
    await once(child.stdout, "data");
    const suffix = String(child.pid);
    expect(leftovers(suffix).length).toBeGreaterThan(0);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(await cleanLab()).toContain(suffix);
    expect(leftovers(suffix)).toEqual([]);
  });

  test("a lab that cannot be built says why and leaves nothing", async () => {
    await expect(startLab(["s2"], { suffix: "Not Good" })).rejects.toThrow('could not use suffix "Not Good"');
    const suffix = `twice${process.pid}`;
    const lab = await start(["s4"], { suffix });
    await expect(lab.node("s4").up()).rejects.toThrow(/s4\.sh up failed with exit code \d+: Cannot create namespace/);
    expect(leftovers(suffix)).toEqual([]);
  });
});
