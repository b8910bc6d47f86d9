import { type Capture, captureOf } from "../functions/facts/capture.ts";
import { type FactReading, readFacts } from "../functions/facts/read.ts";

/** One output as a test writes it down. */
export interface Printed {
  command: string | string[];
  text?: string;
  stderr?: string;
  exitCode?: number;
  truncated?: boolean;
}

/** A capture of these outputs. */
export function capture(outputs: readonly Printed[]): Capture {
  const index = {
    schema: "netcheck.capture/1" as const,
    target: { name: "node1" },
    outputs: outputs.map((output, i) => ({ exitCode: 0, stderr: "", truncated: false, ...output, text: undefined, file: `outputs/${i}.txt` })),
  };
  return captureOf(index, (file) => ({ text: outputs[Number(/\d+/.exec(file)?.[0])]?.text ?? "", truncated: false }));
}

// biome-ignore lint/suspicious/noExplicitAny: the schema of each fact is checked by its fixtures
export type Reading = FactReading & { value: any };
/** What one fact makes of these outputs. */
export const read = (id: string, ...outputs: Printed[]): Reading => readFacts(capture(outputs), new Set([id])).readings.get(id) as Reading;
