import type { Capture } from "../facts/capture.ts";
import { diagnose } from "../rules/diagnose.ts";
import type { Diagnosis } from "../rules/diagnosis.ts";
import type { Catalogue } from "../rules/load.ts";
import { unpackCapture } from "./captures.ts";
import { auditDraft, SYSTEM } from "./context.ts";
import { type Collected, keepAnswer } from "./keep.ts";
import { collectionPlan } from "./plan.ts";
import { type Durable, type Job, type Ports, type Target, type Transport, TransportError } from "./ports.ts";

export type { Collected } from "./keep.ts";

/** How long one look at a running job may block: long enough that a short collection needs no suspension, short enough for a Lambda. */
const LOOK_MS = 8000;

/**
 * Runs the collection runbook on a target and keeps the capture. Collection is read-only, so a start whose outcome is unknown is looked up by its id
 * and otherwise repeated.
 * @param phase names the steps and the capture: "collect", "recheck", "verify"
 * @param how another runbook than the configured one, with its parameters, and what the capture is of where that is not the node
 */
export async function collect(
  durable: Durable,
  ports: Ports,
  catalogue: Catalogue,
  incident: string,
  target: Target,
  phase: string,
  how: { readonly runbook?: string; readonly parameters?: Readonly<Record<string, string>>; readonly name?: string } = {},
): Promise<Collected> {
  const { runbook, nonce, startedAt } = await durable.step(`${phase}-plan`, async () => ({
    runbook: how.runbook ?? (await ports.config()).runbook,
    nonce: ports.random(32),
    startedAt: ports.now().toISOString(),
  }));
  const plan = collectionPlan(catalogue, runbook);
  const script = ports.scripts.collect(plan);
  const transport = ports.transport(target.transport);
  const key = `captures/${incident}/${phase}`;
  const job: Job = { id: `${incident}-${phase}`, script, parameters: how.parameters ?? {}, nonce };
  let handle: string | undefined;
  let collected: Collected;
  try {
    handle = await durable.step(`${phase}-start`, async () => startAgain(transport, target, job));
    const started = handle;
    collected = await durable.poll<Collected>(`${phase}-poll`, 60, async () => {
      const state = await transport.poll(target, started, LOOK_MS);
      if (state.state === "running") return { done: false, afterSeconds: 2 };
      if (state.state !== "done") return { done: true, value: { ok: false, reason: state.reason } };
      const kept = await keepAnswer(ports, key, state, { nonce, plan, target: how.name ?? target.name, transport: transport.name, startedAt });
      if (kept.facts !== undefined) await ports.store.record(incident, [auditDraft(ports, `collected/${phase}`, SYSTEM, kept.facts)]);
      return { done: true, value: kept.collected };
    });
  } catch (error) {
    collected = { ok: false, reason: (error as Error).message };
    await cancel(durable, ports, transport, target, handle, phase);
  }
  await release(durable, ports, transport, target, handle, phase);
  return collected;
}

/** Starts a collection unless it was started. Where its start may have got lost on the way, trying again does no harm: it only reads. */
async function startAgain(transport: Transport, target: Target, job: Job): Promise<string> {
  try {
    return (await transport.find(target, job.id, true)) ?? (await transport.start(target, job));
  } catch (error) {
    if (error instanceof TransportError) throw error;
    throw Object.assign(new Error((error as Error).message, { cause: error }), { retryable: true });
  }
}

/** Stops a collection that nobody waits for any more. Never fails: what cannot be stopped ends by its own time limit. Never for a fix, which may be running. */
async function cancel(
  durable: Durable,
  ports: Pick<Ports, "log">,
  transport: Transport,
  target: Target,
  handle: string | undefined,
  name: string,
): Promise<void> {
  if (handle !== undefined && transport.cancel !== undefined)
    await inVain(durable, ports, `${name}-cancel`, "could not stop a collection", target, async () => transport.cancel?.(target, handle));
}

/**
 * Lets a transport clear away what a job left behind: a step of its own, because only what is checkpointed is safe. Never fails: what cannot be cleared away
 * expires.
 */
export async function release(
  durable: Durable,
  ports: Pick<Ports, "log">,
  transport: Transport,
  target: Target,
  handle: string | undefined,
  name: string,
): Promise<void> {
  if (handle !== undefined && transport.release !== undefined)
    await inVain(durable, ports, `${name}-release`, "could not clear away what a job left behind; it will expire", target, async () =>
      transport.release?.(target, handle),
    );
}

/** A step that may fail without consequence: then the log says so. */
async function inVain(durable: Durable, ports: Pick<Ports, "log">, name: string, problem: string, target: Target, run: () => Promise<void>): Promise<void> {
  await durable.step(name, async () => {
    await run().catch((error: unknown) => ports.log("warn", problem, { target: target.name, problem: (error as Error).message }));
    return null;
  });
}

/**
 * Diagnoses a stored capture and keeps the diagnosis beside it.
 * @param seen what of the capture is judged; all of it unless told
 */
export async function examine(
  ports: Ports,
  catalogue: Catalogue,
  captureKey: string,
  seen: (capture: Capture) => Capture = (capture) => capture,
): Promise<{ key: string; diagnosis: Diagnosis }> {
  const diagnosis = diagnose(seen(await loadCapture(ports, captureKey)), catalogue, captureKey, () => ports.now().getTime());
  const key = captureKey.replace(/^captures\//, "diagnoses/");
  await ports.store.put(key, new TextEncoder().encode(JSON.stringify(diagnosis)));
  return { key, diagnosis };
}

/** A stored capture. Throws if it is gone. */
export async function loadCapture(ports: Pick<Ports, "store">, key: string): Promise<Capture> {
  const data = await ports.store.get(key);
  if (data === undefined) throw new Error(`the capture ${key} is not in the store any more`);
  return unpackCapture(data);
}

/** A stored diagnosis. */
export async function loadDiagnosis(ports: Pick<Ports, "store">, key: string): Promise<Diagnosis> {
  const data = await ports.store.get(key);
  if (data === undefined) throw new Error(`the diagnosis ${key} is not in the store any more`);
  return JSON.parse(new TextDecoder().decode(data)) as Diagnosis;
}
