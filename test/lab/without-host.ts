import type { Capture } from "../../functions/triage/ports.ts";

/** Programs that tell of the host, not of the node: of other experiments, and of who works here. What stands in their place. */
const HOST: Readonly<Record<string, string>> = { dmesg: "", ps: "    PID COMMAND\n      1 /sbin/init\n", journalctl: "-- No entries --\n" };

/** A capture of a lab node without what it tells of the machine that the lab ran on. */
export function withoutHost(capture: Capture): Capture {
  const instead = (output: Capture["outputs"][number]): string => {
    const text = HOST[output.argv?.[0] ?? ""];
    return text === undefined || output.text === "" ? output.text : text;
  };
  return { ...capture, outputs: capture.outputs.map((output) => ({ ...output, text: instead(output) })) };
}
