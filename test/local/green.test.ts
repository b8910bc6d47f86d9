import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { root } from "../../functions/local/assembly.ts";
import { type Local, startLocal } from "../../functions/local/main.ts";
import { capturesOf, fleet } from "../../functions/local/nodes.ts";
import { loadFile } from "../../functions/rules/load.ts";
import { MESSAGE_TRIAGE } from "../../functions/slack/listeners/shortcut.ts";
import { Config } from "../../functions/triage/config.ts";
import { poolOf, targetsOf } from "../../functions/triage/targets.ts";

/** The pool "green" of local mode: forty names for a few recordings. */

const config = loadFile(join(root, "functions/local/netcheck.yaml"), Config).value;
let folder: string;
let local: Local;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "netcheck-green-"));
  local = await startLocal({ directory: folder });
});
afterAll(async () => {
  await local.close();
  rmSync(folder, { recursive: true, force: true });
});

test("netcheck.yaml names its nodes; each replays a recording that is there, but one that does not answer", () => {
  const names = targetsOf(config).map(({ name }) => name);
  expect(names.filter((name) => name.startsWith("green-"))).toEqual([...fleet.nodes.keys()]);
  expect([fleet.nodes.size, fleet.recordings]).toEqual([40, 7]);
  expect(poolOf(config, { name: "green-1", cluster: "demo" }).length).toBe(39);
  const find = capturesOf(join(root, "runbooks"));
  const silent = targetsOf(config).filter((target) => {
    const captures = find(target);
    return fleet.nodes.has(target.name) && !(captures !== undefined && existsSync(captures.before));
  });
  expect(silent.map(({ name }) => name)).toEqual(["green-38"]);
});

test("/netcheck nodes pool=green: one message, forty nodes, their causes and what is unlike the rest", async () => {
  const began = process.cpuUsage();
  expect(await local.workspace.command({ user: "U_ALICE", channel: "C_INCIDENTS", command: "/netcheck", text: "nodes pool=green" })).toEqual({ ok: true });
  await local.engine.idle();
  // the time of the processor: the machines of the tests are shared
  const { user, system } = process.cpuUsage(began);
  expect((user + system) / 1_000_000).toBeLessThan(10);
  const text = local.workspace.transcript("C_INCIDENTS");
  for (const part of [
    "40 nodes (pool=green)",
    "31 healthy",
    "green-7, green-14, green-23, green-31",
    "green-12, green-28",
    "1 node without a cause that netcheck knows, but unlike its pool: Only here (rule table 100)",
    "1 node could not be looked at, which says nothing about its network",
    "netcheck-nodes-",
  ])
    expect(text).toContain(part);
  expect(local.workspace.chat.messages("C_INCIDENTS").filter(({ threadTs }) => threadTs === undefined).length).toBe(1);
});

test("the page offers the fleet, the other questions, the shortcut that the app has, and sample pages", () => {
  const { targets, examples, shortcuts, samples } = local.workspace.state("U_ALICE");
  expect(targets.map(({ name }) => name)).toEqual(expect.arrayContaining(["node1", "blue-3", "nodes pool=green", "status", "help"]));
  expect(examples.map(({ command }) => command)).toContain("/netcheck nodes pool=green");
  expect(targets.find(({ name }) => name === "nodes pool=green")?.description).toBe("40 nodes at once: replays of 7 recordings under other names");
  expect(shortcuts).toEqual([{ name: "Triage this node", callbackId: MESSAGE_TRIAGE }]);
  expect(samples?.channel).toBe("C_INCIDENTS");
});

test("two people may approve, one is on call, and each is shown under the names of the policy", () => {
  const { users, groups } = local.workspace.state("U_ALICE");
  expect(users.filter(({ bot }) => bot !== true).map(({ id }) => id)).toEqual(["U_ALICE", "U_BOB", "U_CAROL"]);
  expect(groups).toEqual([
    { id: "S_ONCALL", handle: "oncall", users: ["U_ALICE"] },
    { id: "S_SRE", handle: "sre", users: ["U_BOB", "U_CAROL"] },
  ]);
  expect(config.policy.flatMap((statement) => ("approvers" in statement ? (statement.approvers ?? []) : []))).toEqual(["S_SRE", "U_ALICE"]);
});
