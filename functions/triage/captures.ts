import { createGzip, gunzipSync, gzipSync } from "node:zlib";
import { z } from "zod";
import { type Capture, CaptureIndex, captureOf } from "../facts/capture.ts";

/**
 * A capture as the store keeps it: gzipped JSON of all of it. Outputs of one pasted text or log share their file, and keep what no `capture.json` holds (whose they are),
 * so that it is no `capture.json` with its files.
 */
export function packCapture(capture: Capture): Uint8Array {
  return gzipSync(JSON.stringify(capture));
}

/** The same for a large capture, one output at a time: its JSON is never in memory as a whole. */
export async function packLongCapture({ outputs, ...about }: Capture): Promise<Uint8Array> {
  const gzip = createGzip();
  const packed: Buffer[] = [];
  gzip.on("data", (chunk: Buffer) => packed.push(chunk));
  const ended = new Promise<void>((resolve, reject) => gzip.once("end", resolve).once("error", reject));
  const write = (text: string): Promise<void> => new Promise((resolve) => (gzip.write(text) ? resolve() : gzip.once("drain", resolve)));
  await write(`${JSON.stringify(about).slice(0, -1)},"outputs":[`);
  for (const [at, output] of outputs.entries()) await write(`${at === 0 ? "" : ","}${JSON.stringify(output)}`);
  gzip.end("]}");
  await ended;
  return Buffer.concat(packed);
}

const Kept = z.strictObject({
  target: z.string(),
  unnamed: z.literal(true).optional(),
  transport: z.string(),
  runbook: z.string(),
  startedAt: z.string().optional(),
  redacted: z.number(),
  notCollected: z.array(z.strictObject({ command: z.string(), reason: z.string() })),
  outputs: z.array(
    z.strictObject({
      command: z.string(),
      argv: z.array(z.string()).optional(),
      file: z.string(),
      text: z.string(),
      exitCode: z.number().optional(),
      durationMs: z.number().optional(),
      startMs: z.number().optional(),
      stderr: z.string(),
      truncated: z.boolean(),
      sample: z.number(),
      notRun: z.string().optional(),
      machine: z.string().optional(),
      guessed: z.literal(true).optional(),
    }),
  ),
});

/** As captures were kept before: what netcheck was in the middle of when it was replaced by a newer one goes on. */
const KeptByFile = z.strictObject({ index: CaptureIndex, texts: z.record(z.string(), z.string()) });

/** The inverse of {@link packCapture} and {@link packLongCapture}. Throws on anything else. */
export function unpackCapture(data: Uint8Array): Capture {
  const kept = z.union([Kept, KeptByFile]).parse(JSON.parse(gunzipSync(data, { maxOutputLength: 512 * 1024 * 1024 }).toString("utf8")));
  if ("index" in kept) {
    const texts = new Map(Object.entries(kept.texts));
    return captureOf(kept.index, (file) => {
      const text = texts.get(file);
      return text === undefined ? undefined : { text, truncated: false };
    });
  }
  return kept as Capture;
}
