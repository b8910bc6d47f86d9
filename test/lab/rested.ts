import { vi } from "vitest";

/**
 * Until a triage rests: it has ended, or waits for an approval. Between the looks at a collection that takes long the engine is idle, too, and between an idle engine
 * and a look at the state a triage may have gone on: so the state must be the same once it is idle again.
 * @param state of the incident; undefined while there is none
 */
export async function rested(engine: { idle(): Promise<void> }, state: () => Promise<string | undefined>): Promise<void> {
  await vi.waitFor(
    async () => {
      const seen = (await state()) ?? "not there";
      await engine.idle();
      const now = (await state()) ?? "not there";
      if (now !== seen || ["not there", "open", "collecting"].includes(now)) throw new Error(`the incident is still ${now}`);
    },
    { timeout: 90_000, interval: 200 },
  );
}
