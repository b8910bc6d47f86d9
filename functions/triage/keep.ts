import type { Capture } from "../facts/capture.ts";
import { sha256 } from "./audit.ts";
import { packCapture, packLongCapture } from "./captures.ts";
import { whyUnreadable } from "./node-trouble.ts";
import type { CaptureAbout, JobState, Ports, Target } from "./ports.ts";

/** What a collection came to: the key of the capture in the store, or why there is none. */
export type Collected =
  | {
      readonly ok: true;
      readonly key: string;
      readonly outputs: number;
      readonly bytes: number;
      /** The first transport could not look, for this reason; another one did, and this is the node as that one finds it. A fix goes the same way. */
      readonly instead?: { readonly target: Target; readonly reason: string };
    }
  | { readonly ok: false; readonly reason: string };

/** The same, with what the audit trail says of it. */
export interface Kept {
  readonly collected: Collected;
  /** Hash of the capture as it is in the store, and how much is in it. Absent if there is none. */
  readonly facts?: { readonly capture: string; readonly transport: string; readonly outputs: number; readonly notCollected: number };
}

/**
 * Reads what a collection printed and keeps the capture under a key. What cannot be read is a result, with the reason; throws only what the store or the source
 * of a long answer throws.
 */
export async function keepAnswer(
  ports: Pick<Ports, "scripts" | "store">,
  key: string,
  state: Extract<JobState, { state: "done" }>,
  about: Omit<CaptureAbout, "truncated">,
): Promise<Kept> {
  const transport = state.note === undefined ? about.transport : `${about.transport} (${state.note})`;
  let capture: Capture;
  try {
    if (state.capture !== undefined) capture = state.capture;
    else if (state.whole !== undefined) capture = await ports.scripts.readLongCapture(state.whole(), { ...about, transport, truncated: false });
    else capture = ports.scripts.readCapture(state.stdout, { ...about, transport, truncated: state.truncated });
  } catch (error) {
    // the answer is there, it could not be fetched: looking again may help
    if ((error as Error).name === "TransportError" && (error as { retryable?: boolean }).retryable === true) throw error;
    return { collected: { ok: false, reason: whyUnreadable((error as Error).message, state) } };
  }
  // a frame with nothing in it: the node could not even write down what it saw
  if (capture.outputs.length === 0 && state.stderr !== "") return { collected: { ok: false, reason: whyUnreadable("the node's answer is empty", state) } };
  const packed = state.whole === undefined ? packCapture(capture) : await packLongCapture(capture);
  await ports.store.put(key, packed);
  const { outputs, notCollected } = capture;
  return {
    collected: { ok: true, key, outputs: outputs.length, bytes: outputs.reduce((sum, output) => sum + output.text.length, 0) },
    facts: { capture: sha256(packed), transport: about.transport, outputs: outputs.length, notCollected: notCollected.length },
  };
}
