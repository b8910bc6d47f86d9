import type { Capture, Output } from "../../functions/facts/capture.ts";

/** One output of a capture made for a question. */
export const output = (command: string, text: string, more: Partial<Output> = {}): Output => ({
  command,
  argv: undefined,
  file: `outputs/${command.replaceAll(/\W+/g, "-")}.txt`,
  text,
  exitCode: 0,
  durationMs: undefined,
  startMs: undefined,
  stderr: "",
  truncated: false,
  sample: 1,
  ...more,
});

/** A capture of these outputs. */
export const captureOf = (...outputs: Output[]): Capture => ({
  target: "node1",
  transport: "replay",
  runbook: "netcheck",
  startedAt: undefined,
  redacted: 0,
  notCollected: [],
  outputs,
});
