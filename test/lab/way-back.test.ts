import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { localTransport } from "../../functions/transports/local.ts";
import type { FixRun } from "../../functions/triage/ports.ts";
import { fixOnNode } from "./fix-on-node.ts";
import { type Incident, type LabNode, startLab, type Variant } from "./lab.ts";
import { skipLab } from "./requirements.ts";
import { RULES } from "./rules.ts";

/** Fixes of the incidents where the node is not as in the write-up: what a way back leaves, and what a check sees that came in between. */
const directory = mkdtempSync(join(tmpdir(), "netcheck-lab-way-back-"));

interface Stage {
  readonly node: LabNode;
  /** Runs a script on the node; what it printed. */
  readonly sh: (script: string) => Promise<string>;
  /** Diagnoses, and fixes with what was found; with the parameters of before where they are given. */
  readonly fix: (known?: Record<string, string>) => Promise<{ run: FixRun; parameters: Record<string, string> }>;
  readonly undo: (known: Record<string, string>) => Promise<FixRun>;
}

async function onStage(incident: Incident, name: string, play: (stage: Stage) => Promise<void>, variant?: Variant): Promise<void> {
  const lab = await startLab([incident], { suffix: `wb${process.pid}${name}` });
  try {
    const node = lab.node(incident);
    const transport = localTransport({ directory: join(directory, name), enter: () => node.enter });
    const target = { name: node.name, cluster: "lab", transport: "local", address: node.name };
    const sh = async (script: string) => {
      const { code, stdout, stderr } = await node.run(["sh", "-ec", script]);
      expect(code, stderr).toBe(0);
      return stdout;
    };
    await node.fault(variant);
    const undo = async (known: Record<string, string>) => (await fixOnNode(transport, target, RULES[incident], "rollback", known)).run;
    await play({ node, sh, fix: (known) => fixOnNode(transport, target, RULES[incident], "fix", known), undo });
  } finally {
    await lab.down();
  }
}

describe.skipIf(skipLab())("the way back, and what came in between", () => {
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  test.concurrent("s1: routes of a DHCP client come back as its own; another metric is another route", () =>
    onStage("s1", "a", async ({ node, sh, fix, undo }) => {
      await sh("for nic in eth0 eth1; do ip route del 169.254.0.0/16 dev $nic; done; ip route add 169.254.0.0/16 dev eth0 proto dhcp scope link metric 1002");
      const before = await sh("ip -4 route show table all");
      const { run, parameters } = await fix();
      expect(run).toMatchObject({ outcome: "succeeded" });
      expect(await node.probe()).toBe(true);
      expect(await undo(parameters)).toMatchObject({ outcome: "succeeded" });
      expect(await sh("ip -4 route show table all")).toBe(before);
      await sh("ip route del 169.254.0.0/16 dev eth0; ip route add 169.254.0.0/16 dev eth0 scope link metric 2000");
      expect((await fix(parameters)).run).toMatchObject({ outcome: "refused" });
    }));

  test.concurrent("s3: a link that was detached already, and a program that a link holds, are left alone", () =>
    onStage(
      "s3",
      "b",
      async ({ node, sh, fix }) => {
        const [programs = "", current = ""] = (await sh("bpftool cgroup show /sys/fs/cgroup | awk 'NR > 1 { print $1 }'")).split("\n");
        const asProgram = { programs, cgroups: "/sys/fs/cgroup", attachTypes: "connect4", links: "", current };
        expect((await fix(asProgram)).run).toMatchObject({ outcome: "refused" });
        const { run, parameters } = await fix();
        expect(run).toMatchObject({ outcome: "succeeded" });
        expect(await node.probe()).toBe(true);
        // the pinned link still exists
        expect((await fix(parameters)).run).toMatchObject({ outcome: "refused" });
      },
      "link",
    ));

  test.concurrent("s5: rules come back in their places among others; a neighbour that is gone is no failure", () =>
    onStage("s5", "c", async ({ node, sh, fix, undo }) => {
      await sh("ebtables -t nat -I PREROUTING -p ARP -i eth0 --arp-op Reply -j dnat --to-dst ff:ff:ff:ff:ff:ff --dnat-target ACCEPT");
      await sh("ebtables -t nat -A PREROUTING -p ARP --arp-op Request --arp-ip-dst 10.240.0.90 -j arpreply --arpreply-mac aa:bb:cc:00:00:90");
      const rules = "ebtables-save | grep -v '^#'";
      const before = await sh(rules);
      const { run, parameters } = await fix();
      expect(run).toMatchObject({ outcome: "succeeded" });
      expect(await node.probe()).toBe(true);
      expect(await sh("ip neigh show dev azure0")).not.toContain("a2:96:88:20:cb:c6");
      expect(await undo(parameters)).toMatchObject({ outcome: "succeeded" });
      expect(await sh(rules)).toBe(before);
      expect((await fix(parameters)).run).toMatchObject({ outcome: "succeeded" });
      // the same addresses, given to pods of azure-vnet
      expect(await undo(parameters)).toMatchObject({ outcome: "succeeded" });
      await sh("ebtables-save | sed s/a2:96:88:20:cb:c6/aa:bb:cc:00:00:32/ >/run/rules; ebtables-restore </run/rules");
      expect((await fix(parameters)).run).toMatchObject({ outcome: "refused" });
    }));
});
