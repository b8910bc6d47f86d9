import { type DurableContext, type DurableLambdaHandler, withDurableExecution } from "@aws/durable-execution-sdk-js";
import type { Durable } from "../triage/ports.ts";
import { durable } from "./context.ts";

/**
 * Makes a workflow a Lambda handler: the same one runs on Lambda and on the embedded engine (functions/local/engine.ts).
 * `event` is the payload that the execution was started with, parsed but not checked. What the workflow returns (JSON, at most 1 MB) is the
 * result of the execution; an error that it throws fails the execution.
 */
export function durableHandler<Event>(workflow: (event: Event, durable: Durable) => Promise<unknown>): DurableLambdaHandler {
  return withDurableExecution((event: Event, context: DurableContext) => workflow(event, durable(context)));
}
