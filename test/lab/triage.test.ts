import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Local, startLocal } from "../../functions/local/main.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { scripts } from "../../functions/transports/script.ts";
import { ssmTransport } from "../../functions/transports/ssm.ts";
import { ssmDocument } from "../../functions/transports/ssm-document.ts";
import { collectionPlan, fixPlan } from "../../functions/triage/plan.ts";
import { type SsmEmulator, startSsm } from "../emulators/ssm.ts";
import { type Incident, type Lab, type LabNode, startLab, type Variant } from "./lab.ts";
import { skipLab } from "./requirements.ts";
import { RULES } from "./rules.ts";

/**
 * The whole flow on live kernel state: healthy → no cause; fault → the traffic fails; a signed slash command over HTTP → the thread names the right cause
 * first; a second person approves → the fix runs on the node; verified by collecting again → the traffic works; the audit chain is whole.
 */
const REQUESTER = "U_ALICE";
const APPROVER = "U_BOB";
const CHANNEL = "C_INCIDENTS";
const root = fileURLToPath(new URL("../../", import.meta.url));

interface Stage {
  readonly lab: Lab;
  readonly app: Local;
}

let emulator: SsmEmulator;
beforeAll(async () => {
  emulator = await startSsm({ agents: {} });
  vi.stubEnv("AWS_ENDPOINT_URL_SSM", emulator.url);
  vi.stubEnv("AWS_ENDPOINT_URL_S3", emulator.s3url);
  vi.stubEnv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
  const catalogue = loadCatalogue(join(root, "runbooks"));
  const all = [
    scripts.collect(collectionPlan(catalogue, "netcheck")),
    ...[...catalogue.fixes.values()].map((fix) => scripts.fix(fixPlan(fix))),
    scripts.fixStatus,
  ];
  for (const script of all) emulator.register(ssmDocument(script).name, ssmDocument(script).content);
});
afterAll(async () => {
  await emulator.close();
  vi.unstubAllEnvs();
});

let stages = 0;

/** Nodes of their own, local mode against them, both taken down whatever happens. */
async function onStage(transport: "local" | "ssm", chosen: readonly Incident[], play: (stage: Stage) => Promise<void>): Promise<void> {
  const number = ++stages;
  const directory = mkdtempSync(join(tmpdir(), "netcheck-lab-"));
  const lab = await startLab(chosen, { suffix: `t${process.pid}x${number}` });
  const instance = (node: LabNode): string => `i-${String(number).padStart(16, "0")}${node.name.slice(-1)}`;
  if (transport === "ssm") for (const node of lab.nodes) emulator.agents.set(instance(node), { name: node.name, enter: node.enter });
  const targets = lab.nodes.map((node) => `      ${node.name}: { address: ${transport === "ssm" ? instance(node) : node.name} }`).join("\n");
  const config = join(directory, "netcheck.yaml");
  writeFileSync(
    config,
    `clusters:\n  lab:\n    transport: ${transport}\n    targets:\n${targets}\npolicy:\n  - { id: sre, effect: allow, approvers: [S_SRE, ${REQUESTER}], expiresMinutes: 10 }\n`,
  );
  let app: Local | undefined;
  try {
    app = await startLocal({
      directory: join(directory, "data"),
      config,
      enter: (target) => lab.node(target.address).enter,
      transports: { ssm: ssmTransport({ cluster: () => ({ region: "eu-central-1", outputBucket: "netcheck-outputs" }), pollMs: 50 }) },
    });
    await play({ lab, app });
  } finally {
    await app?.close();
    await lab.down();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Sends the slash command and waits until nothing moves any more. Returns the incident's id. */
async function slash(app: Local, target: string): Promise<string> {
  const before = new Set((await app.store.incidents(100)).map((incident) => incident.id));
  const outcome = await app.workspace.command({ user: REQUESTER, channel: CHANNEL, command: "/netcheck", text: target });
  expect(outcome).toEqual({ ok: true });
  await app.engine.idle();
  const fresh = (await app.store.incidents(100)).filter((incident) => !before.has(incident.id) && incident.target === target);
  expect(fresh).toHaveLength(1);
  return fresh[0]?.id ?? "";
}

const threadOf = async (app: Local, id: string): Promise<string> => {
  const incident = await app.store.incident(id);
  return app.workspace.transcript(CHANNEL, incident?.thread?.ts, REQUESTER);
};

async function clickOn(app: Local, id: string, actionId: string, user: string): Promise<void> {
  const proposal = await app.store.proposal(`${id}-fix`);
  const outcome = await app.workspace.click({ user, channel: CHANNEL, ts: proposal?.message?.ts, actionId });
  expect(outcome).toEqual({ ok: true });
}

async function causesOf(app: Local, id: string): Promise<{ verdict: string; causes: string[]; unchecked: { rule: string; reason: string }[] }> {
  const incident = await app.store.incident(id);
  const data = await app.store.get(incident?.diagnosis ?? "none");
  if (data === undefined) throw new Error(await threadOf(app, id));
  const diagnosis = JSON.parse(new TextDecoder().decode(data)) as {
    verdict: string;
    causes: { rule: string }[];
    unchecked: { rule: string; reason: string }[];
  };
  return { verdict: diagnosis.verdict, causes: diagnosis.causes.map((cause) => cause.rule), unchecked: diagnosis.unchecked };
}

/** From the fault to the verified fix, on one node. */
async function heal(app: Local, node: LabNode, rule: string): Promise<void> {
  expect(await node.probe(), "the traffic fails").toBe(false);
  const id = await slash(app, node.name);
  expect((await causesOf(app, id)).causes[0], await threadOf(app, id)).toBe(rule);
  expect(await threadOf(app, id)).toContain("Approve & run");

  await clickOn(app, id, "approve", REQUESTER);
  await app.engine.idle();
  expect((await app.store.proposal(`${id}-fix`))?.state, "the requester may not approve").toBe("pending");
  expect(await node.probe()).toBe(false);

  await clickOn(app, id, "approve", APPROVER);
  const arn = app.engine.execution(id)?.arn ?? "";
  await app.engine.finished(arn);
  const thread = await threadOf(app, id);
  expect((await app.store.incident(id))?.state, thread).toBe("resolved");
  expect((await app.store.proposal(`${id}-fix`))?.state).toBe("succeeded");
  expect(await node.probe(), "the traffic works again").toBe(true);

  const types = (await app.store.audit(id)).map((event) => event.type);
  expect(types).toEqual(
    expect.arrayContaining(["incident-opened", "diagnosed", "fix-proposed", "refused", "approved", "fix-started", "fix-finished", "verified"]),
  );
}

const CASES: { incident: Incident; variant?: Variant }[] = [
  { incident: "s1" },
  { incident: "s2" },
  { incident: "s3" },
  { incident: "s3", variant: "link" },
  { incident: "s4" },
  { incident: "s4", variant: "absent" },
  { incident: "s5" },
];

describe.skipIf(skipLab()).each(["local", "ssm"] as const)("over %s", (transport) => {
  // each has nodes of its own: several at once, as many as two cores keep in time
  test.concurrent.for(CASES)("$incident $variant: healthy, broken, diagnosed, approved, fixed, verified", ({ incident, variant }) =>
    onStage(transport, [incident], async ({ lab, app }) => {
      const node = lab.node(incident);
      expect(await node.probe(), "the traffic works").toBe(true);
      const healthy = await slash(app, node.name);
      expect(await causesOf(app, healthy), await threadOf(app, healthy)).toEqual({ verdict: "healthy", causes: [], unchecked: [] });

      await node.fault(variant);
      await heal(app, node, RULES[incident]);
      expect(await verifyStore(app.store)).toEqual([]);
    }),
  );

  test("all five at once", () =>
    onStage(transport, ["s1", "s2", "s3", "s4", "s5"], async ({ lab, app }) => {
      await Promise.all(lab.nodes.map((node) => node.fault()));
      await Promise.all(lab.nodes.map((node) => heal(app, node, RULES[node.incident])));
      expect(await verifyStore(app.store)).toEqual([]);
    }));
});
