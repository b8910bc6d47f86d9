import { durableHandler } from "../../functions/durable/handler.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { ssmTransport } from "../../functions/transports/ssm.ts";
import { collect, examine } from "../../functions/triage/collect.ts";
import { collectMany } from "../../functions/triage/collect-many.ts";
import { Config } from "../../functions/triage/config.ts";
import type { Context } from "../../functions/triage/context.ts";
import { examineMany, loadFleetBatch } from "../../functions/triage/fleet.ts";
import type { Batches, BatchJob, Chat, Durable, JobState, Target } from "../../functions/triage/ports.ts";
import { triage } from "../../functions/triage/workflow.ts";
import { childPorts } from "./child-ports.ts";

/**
 * One measurement in a process of its own: <runbooks> <folder for its files> <how many nodes> <fleet | each | collect | at-once | triage>. fleet: the nodes in batches; each: node by
 * node, as branches of the execution; collect: in batches, without a diagnosis; at-once: the same, with each answer read as one string; triage: the whole triage of the first node, up to its proposal. Prints operations, milliseconds, the peak memory, verdicts.
 */
const [runbooks = "", folder = "", count = "1", mode = "fleet"] = process.argv.slice(2);
const targets: Target[] = Array.from({ length: Number(count) }, (_, at) => {
  const number = String(at + 1).padStart(17, "0");
  return { name: `node${at + 1}`, cluster: "prod", transport: "ssm", address: `i-${number}` };
});
const config = Config.parse({
  clusters: {
    prod: {
      transport: "ssm",
      region: "eu-central-1",
      outputBucket: "outputs",
      targets: Object.fromEntries(targets.map((one) => [one.name, { address: one.address }])),
    },
  },
  policy: [{ id: "all", effect: "allow", approvers: ["U_ALICE"], selfApproval: true }],
});
const ssm = ssmTransport({ cluster: (name) => config.clusters[name] });
let asked = (): void => undefined;
const proposed = new Promise<void>((resolve) => (asked = resolve));
const chat: Chat = {
  post: async (key, place) => {
    if (key.endsWith("/proposal")) asked();
    return { channel: place.channel, ts: key };
  },
  update: async () => undefined,
  whisper: async () => undefined,
  modal: async () => undefined,
  home: async () => undefined,
  upload: async () => undefined,
};
const reached = mode === "at-once" ? { ...ssm, batches: { ...(ssm.batches as Batches), poll: atOnce } } : ssm;
const { engine, ports } = childPorts(folder, config, chat, reached);
const catalogue = loadCatalogue(runbooks, { tolerant: true });

/** What netcheck would do without streams. */
async function* atOnce(jobs: readonly BatchJob[], waitMs: number): AsyncGenerator<{ job: BatchJob; state: JobState }> {
  for await (const { job, state } of ssm.batches?.poll(jobs, waitMs) ?? []) {
    if (state.state !== "done" || state.whole === undefined) throw new Error("the answer came in one piece");
    const { whole, ...rest } = state;
    const pieces: Uint8Array[] = [];
    for await (const piece of whole()) pieces.push(piece);
    yield { job, state: { ...rest, stdout: Buffer.concat(pieces).toString("utf8"), truncated: false } };
  }
}

/** What netcheck would do without batches. */
async function each(durable: Durable, context: Omit<Context, "durable">): Promise<readonly string[]> {
  const branches = targets.map((target, at) => ({
    name: `node-${at + 1}`,
    run: async (child: Durable) => {
      const collected = await collect(child, context.ports, catalogue, "inc-1", target, `n${at + 1}`);
      return collected.ok
        ? child.step(`n${at + 1}-diagnose`, async () => (await examine(context.ports, catalogue, collected.key)).diagnosis.verdict)
        : "not-collected";
    },
  }));
  return (await durable.all("nodes", branches, 10)).map((item) => (item.ok ? item.value : "not-collected"));
}

const requester = { id: "U_ALICE", team: "T" };
await ports.store.open(
  { id: "inc-1", target: "prod", cluster: "prod", requester, createdAt: new Date().toISOString(), state: "collecting" },
  { key: "incident-opened", at: new Date().toISOString(), actor: requester, type: "incident-opened", data: {} },
);
engine.start(
  durableHandler<{ mode: string }>(async (event, durable) => {
    const context = { ports, catalogue, report: () => "" };
    if (event.mode === "each") return { verdicts: await each(durable, context) };
    if (event.mode === "collect" || event.mode === "at-once") {
      const wanted = targets.map((target, at) => ({ target, name: `fleet/${at + 1}` }));
      return {
        verdicts: (await collectMany(durable, { ports, catalogue, incident: "inc-1", phase: "fleet" }, wanted)).map((one) =>
          one.ok ? "collected" : one.reason,
        ),
      };
    }
    if (event.mode === "triage") return triage({ ...context, durable }, { incident: "inc-2", target: "node1", requester, place: { channel: "C" } });
    return { batches: await examineMany({ ...context, durable }, "inc-1", "fleet", targets) };
  }),
);
const started = performance.now();
engine.execute("bench", { mode });
if (mode === "triage") {
  await proposed;
  await engine.idle();
} else await engine.finished("bench");
const ended = engine.execution("bench");
const ms = performance.now() - started;
const result = ended?.result as { batches?: { key?: string }[]; verdicts?: string[] } | undefined;
const verdicts: Record<string, number> = {};
for (const { key = "" } of result?.batches ?? []) for (const { verdict } of await loadFleetBatch(ports, key)) verdicts[verdict] = (verdicts[verdict] ?? 0) + 1;
for (const verdict of result?.verdicts ?? []) verdicts[verdict] = (verdicts[verdict] ?? 0) + 1;
process.stdout.write(
  JSON.stringify({
    operations: ended?.operations,
    status: ended?.status,
    ms,
    peakMb: process.resourceUsage().maxRSS / 1000,
    verdicts,
    error: ended?.error?.ErrorMessage,
  }),
);
process.exit(0);
