import { vi } from "vitest";
import type { Execution } from "../../functions/local/history.ts";

/**
 * Until a triage rests: its execution has ended, or it waits for an approval. Its state alone does not tell: an incident is "diagnosed" before a fix is proposed, and
 * between the two, as between the looks at a collection, the engine may be idle for a while.
 * @param incident undefined while there is none
 */
export async function rested(
  engine: { idle(): Promise<void>; execution(name: string): Execution | undefined },
  incident: () => Promise<{ readonly id: string; readonly state: string } | undefined>,
): Promise<void> {
  await vi.waitFor(
    async () => {
      const { id, state } = (await incident()) ?? { id: "", state: "not there" };
      const ended = !["RUNNING", undefined].includes(engine.execution(id)?.status);
      if (!ended && state !== "awaiting-approval") throw new Error(`the incident is still ${state}`);
      // what tells of the approval comes right behind it
      await engine.idle();
    },
    { timeout: 90_000, interval: 200 },
  );
}
