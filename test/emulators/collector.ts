import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import type { Capture } from "../../functions/facts/capture.ts";
import type { Plan } from "../../functions/triage/ports.ts";

/**
 * What the collection script prints on a node whose commands say what a capture holds; commands that the capture lacks are missing tools. Stands for running
 * the script where a thousand nodes are simulated.
 * @param encoding "raw" as on a node without gzip
 */
export function collectorAnswer(capture: Capture, plan: Plan, nonce: string, encoding: "gz" | "raw" = "gz"): Buffer {
  const parts: Buffer[] = [];
  for (const [index, { argv, each, samples = 1 }] of plan.commands.entries()) {
    if (each !== undefined) continue;
    for (let sample = 1; sample <= samples; sample += 1) {
      const found = capture.outputs.find((output) => output.command === argv.join(" ") && (output.sample ?? 1) === sample);
      const [text, stderr] = [Buffer.from(found?.text ?? ""), Buffer.from(found?.stderr ?? "")];
      const code = found === undefined ? 127 : (found.exitCode ?? 0);
      parts.push(Buffer.from(`#${nonce} ${index} - ${sample} ${code} ${index} 1 ${text.length} ${stderr.length} 0\n`), text, stderr);
    }
  }
  return framed(Buffer.concat(parts), nonce, "collect", encoding);
}

/** A payload in the script's frame. */
export function framed(payload: Buffer, nonce: string, kind: string, encoding: "gz" | "raw" = "gz", sum = true): Buffer {
  const body = encoding === "raw" ? payload : Buffer.from(`${gzipSync(payload).toString("base64").replaceAll(/.{76}/g, "$&\n")}\n`);
  const digest = sum ? createHash("sha256").update(body).digest("hex") : "-";
  return Buffer.concat([Buffer.from(`NETCHECK/1 ${nonce} ${kind} ${encoding} ${body.length} ${digest}\n`), body, Buffer.from(`\nNETCHECK/1 ${nonce} end\n`)]);
}
