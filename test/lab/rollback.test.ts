import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Local, startLocal } from "../../functions/local/main.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { UNHURRIED } from "../unhurried.ts";
import { approve } from "./approve.ts";
import { type LabNode, startLab } from "./lab.ts";
import { skipLab } from "./requirements.ts";
import { rested } from "./rested.ts";

/**
 * The way back on live kernel state: a fix that runs well and brings another fault with it → the verification says so → the rollback is offered, approved by a
 * person through signed requests, run → rules and routes of the node are byte for byte what they were before the fix.
 */
const REQUESTER = "U_ALICE";
const APPROVER = "U_BOB";
const CHANNEL = "C_INCIDENTS";

/** What a fix may change on the node, in the kernel's own words; packet counters and the time of the listing left out. */
async function stateOf(node: LabNode): Promise<string> {
  const all = await node.run(["sh", "-c", "iptables-save; ip -4 route show table all; ip -4 rule show; ip -o link show | sed 's/ state .*//'"]);
  expect(all.code, all.stderr).toBe(0);
  return all.stdout.replaceAll(/^#.*\n/gm, "").replaceAll(/\[\d+:\d+\]/g, "");
}

/** As soon as the fix has put Cilium's jump first, something switches forwarding off: another cause, which was not there before. */
const SABOTEUR = `n=0
until iptables -S FORWARD | sed -n 2p | grep -q CILIUM_FORWARD; do n=$((n + 1)); [ "$n" -lt 600 ] || exit 1; sleep 0.1; done
sysctl -qw net.ipv4.ip_forward=0`;

async function thread(app: Local, id: string): Promise<string> {
  return app.workspace.transcript(CHANNEL, (await app.store.incident(id))?.thread?.ts, REQUESTER);
}

test.skipIf(skipLab())("a fix that does not help is undone: the node is byte for byte as before", async () => {
  const directory = mkdtempSync(join(tmpdir(), "netcheck-lab-rollback-"));
  const lab = await startLab(["s2"], { suffix: `rb${process.pid}` });
  let app: Local | undefined;
  try {
    const node = lab.node("s2");
    const config = {
      clusters: { lab: { transport: "local", targets: { [node.name]: {} } } },
      policy: [{ id: "sre", effect: "allow", approvers: [APPROVER], expires: "10m", oneAtATime: "cluster", maxNodes: { most: 1, per: "1h" } }],
    };
    writeFileSync(join(directory, "netcheck.yaml"), JSON.stringify(config));
    app = await startLocal({ directory: join(directory, "data"), config: join(directory, "netcheck.yaml"), enter: () => node.enter, workspace: UNHURRIED });
    const { store, engine, workspace } = app;
    await node.fault();
    expect(await node.probe(), "the traffic fails").toBe(false);
    const before = await stateOf(node);

    expect(await workspace.command({ user: REQUESTER, channel: CHANNEL, command: "/netcheck", text: node.name })).toEqual({ ok: true });
    const newest = async () => (await store.incidents(1))[0];
    await rested(engine, newest);
    const id = (await newest())?.id ?? "";
    const saboteur = node.run(["sh", "-c", SABOTEUR], 90_000);
    const approveBy = async (proposalId: string): Promise<void> => {
      const proposal = await store.proposal(proposalId);
      if (proposal === undefined) throw new Error(await thread(app as Local, id));
      expect(await approve(workspace, proposal, APPROVER, () => engine.idle())).toBe(true);
    };
    await approveBy(`${id}-fix`);
    expect((await saboteur).code, "the fix ran on the node").toBe(0);
    await expect.poll(async () => (await store.incident(id))?.proposal, { timeout: 60_000, interval: 200 }).toBe(`${id}-rollback`);
    await rested(engine, newest);
    const fixed = await stateOf(node);
    expect(fixed, "the fix changed the node").not.toBe(before);
    expect(await thread(app, id)).toContain("something new was found");
    expect((await store.proposal(`${id}-fix`))?.state).toBe("succeeded");

    await approveBy(`${id}-rollback`);
    await engine.finished(engine.execution(id)?.arn ?? "");
    const said = await thread(app, id);
    expect((await store.proposal(`${id}-rollback`))?.state, said).toBe("succeeded");
    expect(await stateOf(node), said).toBe(before);
    // the rules are back, and what the saboteur did is named as the difference
    expect(said).toContain("the node is not as before the fix: new since then");
    const markers = await node.run(["sh", "-c", `cat /var/lib/netcheck/runs/${id}-fix/outcome /var/lib/netcheck/runs/${id}-rollback/outcome`]);
    expect(markers.stdout).toBe("succeeded\nsucceeded\n");
    expect((await store.audit(id)).map(({ type }) => type)).toEqual(expect.arrayContaining(["rollback-proposed", "rollback-started", "rollback-finished"]));
    expect(await verifyStore(store)).toEqual([]);
  } finally {
    await app?.close();
    await lab.down();
    rmSync(directory, { recursive: true, force: true });
  }
});
