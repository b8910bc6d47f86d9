import type { Work } from "../triage/ports.ts";
import { ClosedCallbackError, DurableExecutionAlreadyStartedError, type Engine } from "./engine.ts";

/** The Work port on the embedded engine. */
export function workOn(engine: Engine): Work {
  return {
    start: async (name, event) => {
      try {
        engine.execute(name, event);
      } catch (error) {
        // as on Lambda: the same request, delivered again in other words (a message that was edited)
        if (!(error instanceof DurableExecutionAlreadyStartedError)) throw error;
      }
    },
    answer: async (callbackId, value) => {
      try {
        engine.succeed(callbackId, JSON.stringify(value));
        return true;
      } catch (error) {
        if (error instanceof ClosedCallbackError) return false;
        throw error;
      }
    },
  };
}
