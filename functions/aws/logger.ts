import { Logger } from "@aws-lambda-powertools/logger";
import type { Ports } from "../triage/ports.ts";

/**
 * Fields that may be logged: ids, words of ours, numbers. Whatever else somebody adds (a node's output, a message, a token) does not reach the log.
 * `problem` is a sentence of ours that may quote a service; it is cut.
 */
export const LOGGED: ReadonlySet<string> = new Set(
  [
    // whose line it is
    ["incident", "proposal", "run", "click", "target", "node", "cluster", "transport", "handle", "channel", "source"],
    // who was stopped, and by what
    ["actor", "team", "home", "decision", "statement"],
    ["problem", "outcome", "template", "tell", "number", "alerts", "nodes", "clusters", "pods", "events", "ms"],
  ].flat(),
);
const MAX_TEXT = 500;

/** Structured logs with the incident or click as the id to search for. */
export function structuredLog(service: string): Ports["log"] {
  const logger = new Logger({ serviceName: service });
  return (level, message, fields = {}) => {
    const kept = Object.entries(fields)
      .filter(([name]) => LOGGED.has(name))
      .map(([name, value]) => [name, typeof value === "number" || typeof value === "boolean" ? value : String(value).slice(0, MAX_TEXT)]);
    logger[level](message, Object.fromEntries(kept));
  };
}
