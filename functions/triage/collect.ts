import type { Capture } from "../facts/capture.ts";
import { diagnose } from "../rules/diagnose.ts";
import type { Diagnosis } from "../rules/diagnosis.ts";
import type { Catalogue } from "../rules/load.ts";
import { sha256 } from "./audit.ts";
import { packCapture, unpackCapture } from "./captures.ts";
import { auditDraft, SYSTEM } from "./context.ts";
import { collectionPlan } from "./plan.ts";
import type { Durable, Job, Ports, Target } from "./ports.ts";

/** What a collection came to: the key of the capture in the store, or why there is none. */
export type Collected =
  | { readonly ok: true; readonly key: string; readonly outputs: number; readonly bytes: number }
  | { readonly ok: false; readonly reason: string };

/** How long one look at a running job may block: long enough that a short collection needs no suspension, short enough for a Lambda. */
const LOOK_MS = 8000;

/**
 * Runs the collection runbook on a target and keeps the capture. Collection is read-only, so a start whose outcome is unknown is looked up by its id
 * and otherwise repeated.
 * @param phase names the steps and the capture: "collect", "recheck", "verify"
 */
export async function collect(durable: Durable, ports: Ports, catalogue: Catalogue, incident: string, target: Target, phase: string): Promise<Collected> {
  const { runbook } = await durable.step(`${phase}-plan`, async () => ({ runbook: (await ports.config()).runbook }));
  const plan = collectionPlan(catalogue, runbook);
  const script = ports.scripts.collect(plan);
  const transport = ports.transport(target.transport);
  const key = `captures/${incident}/${phase}`;
  const { nonce, startedAt } = await durable.step(`${phase}-nonce`, async () => ({ nonce: ports.random(32), startedAt: ports.now().toISOString() }));
  const job: Job = { id: `${incident}-${phase}`, script, parameters: {}, nonce };
  try {
    const handle = await durable.step(`${phase}-start`, async () => (await transport.find(target, job.id)) ?? (await transport.start(target, job)));
    return await durable.poll<Collected>(`${phase}-poll`, 60, async () => {
      const state = await transport.poll(target, handle, LOOK_MS);
      if (state.state === "running") return { done: false, afterSeconds: 2 };
      if (state.state !== "done") return { done: true, value: { ok: false, reason: state.reason } };
      let capture: Capture;
      try {
        capture =
          state.capture ??
          ports.scripts.readCapture(state.stdout, { nonce, plan, target: target.name, transport: transport.name, startedAt, truncated: state.truncated });
      } catch (error) {
        const said = state.stderr.trim().split("\n")[0];
        return {
          done: true,
          value: { ok: false, reason: `${(error as Error).message}${said ? `; stderr: ${said.slice(0, 200)}` : ""} (exit code ${state.exitCode})` },
        };
      }
      const packed = packCapture(capture);
      await ports.store.put(key, packed);
      const facts = { capture: sha256(packed), transport: transport.name, outputs: capture.outputs.length, notCollected: capture.notCollected.length };
      await ports.store.record(incident, [auditDraft(ports, `collected/${phase}`, SYSTEM, facts)]);
      return {
        done: true,
        value: { ok: true, key, outputs: capture.outputs.length, bytes: capture.outputs.reduce((sum, output) => sum + output.text.length, 0) },
      };
    });
  } catch (error) {
    return { ok: false, reason: (error as Error).message };
  }
}

/** Diagnoses a stored capture and keeps the diagnosis beside it. */
export async function examine(ports: Ports, catalogue: Catalogue, captureKey: string): Promise<{ key: string; diagnosis: Diagnosis }> {
  const data = await ports.store.get(captureKey);
  if (data === undefined) throw new Error(`the capture ${captureKey} is not in the store any more`);
  const diagnosis = diagnose(unpackCapture(data), catalogue, captureKey, () => ports.now().getTime());
  const key = captureKey.replace(/^captures\//, "diagnoses/");
  await ports.store.put(key, new TextEncoder().encode(JSON.stringify(diagnosis)));
  return { key, diagnosis };
}

/** A stored diagnosis. */
export async function loadDiagnosis(ports: Pick<Ports, "store">, key: string): Promise<Diagnosis> {
  const data = await ports.store.get(key);
  if (data === undefined) throw new Error(`the diagnosis ${key} is not in the store any more`);
  return JSON.parse(new TextDecoder().decode(data)) as Diagnosis;
}
