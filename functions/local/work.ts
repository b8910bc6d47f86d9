import type { Work } from "../triage/ports.ts";
import { ClosedCallbackError, type Engine } from "./engine.ts";

/** The Work port on the embedded engine. */
export function workOn(engine: Engine): Work {
  return {
    start: async (name, event) => {
      engine.execute(name, event);
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
