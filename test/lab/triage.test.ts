import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Local, startLocal } from "../../functions/local/main.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { debugPodTransport } from "../../functions/transports/debug-pod.ts";
import { scripts } from "../../functions/transports/script.ts";
import { ssmTransport } from "../../functions/transports/ssm.ts";
import { ssmDocument } from "../../functions/transports/ssm-document.ts";
import { unpackCapture } from "../../functions/triage/captures.ts";
import { collectionPlan, fixPlan } from "../../functions/triage/plan.ts";
import { namespaceKubelet } from "../emulators/kubelet.ts";
import { startKubernetes } from "../emulators/kubernetes.ts";
import { type SsmEmulator, startSsm } from "../emulators/ssm.ts";
import { clusterAt, image } from "../transports/pods.ts";
import { UNHURRIED } from "../unhurried.ts";
import { approve } from "./approve.ts";
import { type Incident, type Lab, type LabNode, startLab, type Variant } from "./lab.ts";
import { skipLab } from "./requirements.ts";
import { rested } from "./rested.ts";
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

/** A way to the lab's nodes. */
type Way = keyof typeof WAYS;
/**
 * What stands in the capture as its transport, and the nodes as pods see them: with their own tools, or with the image's alone, where the node's programs are
 * hidden from them. "ssm, else debug-pod": Systems Manager does not know the nodes.
 */
const WAYS = {
  local: { by: "local", pods: {} },
  ssm: { by: "ssm", pods: {} },
  "debug-pod": { by: "debug-pod", pods: {} },
  "debug-pod, nodes without a shell": { by: "debug-pod (image's tools: the node has no shell)", pods: { tools: "machine", shell: false } },
  "ssm, else debug-pod": { by: "debug-pod", pods: {} },
} as const;

let stages = 0;

/** Nodes of their own, local mode against them, both taken down whatever happens; no pod may be left. */
async function onStage(way: Way, chosen: readonly Incident[], play: (stage: Stage) => Promise<void>): Promise<void> {
  const number = ++stages;
  const directory = mkdtempSync(join(tmpdir(), "netcheck-lab-"));
  const lab = await startLab(chosen, { suffix: `t${process.pid}x${number}` });
  const instance = (node: LabNode): string => `i-${String(number).padStart(16, "0")}${node.name.slice(-1)}`;
  if (way === "ssm") for (const node of lab.nodes) emulator.agents.set(instance(node), { name: node.name, enter: node.enter });
  const kubelets = lab.nodes.map(({ name, enter }) => [name, { kubelet: namespaceKubelet({ enter, ...WAYS[way].pods }) }]);
  const cluster = await startKubernetes({ nodes: Object.fromEntries(kubelets) });
  const config = {
    clusters: {
      lab: {
        transport: way.replace(/,.*/, ""),
        ...(way === "ssm, else debug-pod" ? { fallback: "debug-pod" } : {}),
        debugPods: { image, access: { by: "in-cluster" } },
        targets: Object.fromEntries(lab.nodes.map((node) => [node.name, way.startsWith("ssm") ? { address: instance(node), fallbackAddress: node.name } : {}])),
      },
    },
    policy: [{ id: "sre", effect: "allow", approvers: ["S_SRE", REQUESTER], expires: "10m" }],
  };
  writeFileSync(join(directory, "netcheck.yaml"), JSON.stringify(config));
  let app: Local | undefined;
  try {
    app = await startLocal({
      directory: join(directory, "data"),
      config: join(directory, "netcheck.yaml"),
      enter: (target) => lab.node(target.address).enter,
      workspace: UNHURRIED,
      transports: {
        ssm: ssmTransport({ cluster: () => ({ region: "eu-central-1", outputBucket: "netcheck-outputs" }), pollMs: 50 }),
        "debug-pod": debugPodTransport({ cluster: () => clusterAt(cluster), pauseMs: 50 }),
      },
    });
    await play({ lab, app });
    expect([...cluster.pods.keys()], "pods that were left behind").toEqual([]);
    const made = cluster.requests.filter(({ method }) => method === "POST").length;
    expect(made > 0, "pods were used if and only if they are the way").toBe(way.includes("debug-pod"));
  } finally {
    await app?.close();
    await cluster.close();
    await lab.down();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Sends the slash command and waits until nothing moves any more. Returns the incident's id. */
async function slash(app: Local, target: string): Promise<string> {
  const before = new Set((await app.store.incidents(100)).map((incident) => incident.id));
  const outcome = await app.workspace.command({ user: REQUESTER, channel: CHANNEL, command: "/netcheck", text: target });
  expect(outcome).toEqual({ ok: true });
  const made = async () => (await app.store.incidents(100)).filter((incident) => !before.has(incident.id) && incident.target === target);
  await rested(app.engine, async () => (await made())[0]);
  const fresh = await made();
  expect(fresh).toHaveLength(1);
  return fresh[0]?.id ?? "";
}

const threadOf = async (app: Local, id: string): Promise<string> => {
  const incident = await app.store.incident(id);
  return app.workspace.transcript(CHANNEL, incident?.thread?.ts, REQUESTER);
};

/** Presses the button and, if the modal opens, sends it off. Returns whether it opened. */
async function approveBy(app: Local, id: string, user: string): Promise<boolean> {
  const proposal = await app.store.proposal(`${id}-fix`);
  if (proposal === undefined) throw new Error(await threadOf(app, id));
  return approve(app.workspace, proposal, user, () => app.engine.idle());
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

/** What the stored capture says of how the node was looked at. */
async function transportOf(app: Local, id: string): Promise<string> {
  const data = await app.store.get((await app.store.incident(id))?.capture ?? "none");
  if (data === undefined) throw new Error(await threadOf(app, id));
  return unpackCapture(data).transport;
}

/** The node works, and is told healthy. */
async function sane(way: Way, app: Local, node: LabNode): Promise<void> {
  expect(await node.probe(), "the traffic works").toBe(true);
  const id = await slash(app, node.name);
  expect(await causesOf(app, id), await threadOf(app, id)).toEqual({ verdict: "healthy", causes: [], unchecked: [] });
  expect(await transportOf(app, id)).toBe(WAYS[way].by);
  const said = "through SSM: could not start collect-netcheck";
  expect((await threadOf(app, id)).includes(said), await threadOf(app, id)).toBe(way === "ssm, else debug-pod");
}

/** From the fault to the verified fix, on one node. */
async function heal(app: Local, node: LabNode, rule: string): Promise<void> {
  expect(await node.probe(), "the traffic fails").toBe(false);
  const id = await slash(app, node.name);
  expect((await causesOf(app, id)).causes[0], await threadOf(app, id)).toBe(rule);
  expect(await threadOf(app, id)).toContain("Review and approve…");

  expect(await approveBy(app, id, REQUESTER), "no modal for the requester").toBe(false);
  await app.engine.idle();
  expect((await app.store.proposal(`${id}-fix`))?.state, "the requester may not approve").toBe("pending");
  expect(await node.probe()).toBe(false);

  expect(await approveBy(app, id, APPROVER)).toBe(true);
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

/** What of it each way is tried with, one by one: what "all five at once" has not, since each costs half a minute. */
const TRIED: Readonly<Record<Way, readonly { incident: Incident; variant?: Variant }[]>> = {
  local: [
    { incident: "s3", variant: "link" },
    { incident: "s3", variant: "orphan" },
    { incident: "s4", variant: "absent" },
  ],
  // the same script by another way
  ssm: [],
  "debug-pod": [
    { incident: "s3", variant: "link" },
    { incident: "s4", variant: "absent" },
  ],
  "debug-pod, nodes without a shell": [{ incident: "s2" }, { incident: "s4", variant: "absent" }],
  "ssm, else debug-pod": [{ incident: "s5" }],
};

const ONE_BY_ONE = (Object.keys(WAYS) as Way[]).flatMap((way) =>
  TRIED[way].map(({ incident, variant }) => ({ way, incident, variant: variant ?? ("" as const) })),
);

describe.skipIf(skipLab())("from the fault to the fix", () => {
  // each has nodes of its own: several at once, as many as two cores keep in time
  test.concurrent.for(ONE_BY_ONE)("over $way: $incident $variant healthy, broken, diagnosed, approved, fixed, verified", ({ way, incident, variant }) =>
    onStage(way, [incident], async ({ lab, app }) => {
      const node = lab.node(incident);
      await sane(way, app, node);
      await node.fault(variant === "" ? undefined : variant);
      await heal(app, node, RULES[incident]);
      expect(await verifyStore(app.store)).toEqual([]);
    }),
  );

  test.concurrent.for(["local", "ssm", "debug-pod"] as const)("over %s: all five at once", (way) =>
    onStage(way, ["s1", "s2", "s3", "s4", "s5"], async ({ lab, app }) => {
      // by the other ways the nodes one by one were
      if (way === "local") await Promise.all(lab.nodes.map((node) => sane(way, app, node)));
      await Promise.all(lab.nodes.map((node) => node.fault()));
      await Promise.all(lab.nodes.map((node) => heal(app, node, RULES[node.incident])));
      expect(await verifyStore(app.store)).toEqual([]);
    }),
  );
});
