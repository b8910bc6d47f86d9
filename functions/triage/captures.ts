import { createGzip, gunzipSync, gzipSync } from "node:zlib";
import { type Capture, CaptureIndex, captureOf, indexOf } from "../facts/capture.ts";

/** A capture as the store keeps it: gzipped JSON of the index and the texts. */
export function packCapture(capture: Capture): Uint8Array {
  return gzipSync(JSON.stringify({ index: indexOf(capture), texts: Object.fromEntries(capture.outputs.map((output) => [output.file, output.text])) }));
}

/** The same for a large capture, one output at a time: its JSON is never in memory as a whole. */
export async function packLongCapture(capture: Capture): Promise<Uint8Array> {
  const gzip = createGzip();
  const packed: Buffer[] = [];
  gzip.on("data", (chunk: Buffer) => packed.push(chunk));
  const ended = new Promise<void>((resolve, reject) => gzip.once("end", resolve).once("error", reject));
  const write = (text: string): Promise<void> => new Promise((resolve) => (gzip.write(text) ? resolve() : gzip.once("drain", resolve)));
  await write(`{"index":${JSON.stringify(indexOf(capture))},"texts":{`);
  for (const [at, { file, text }] of capture.outputs.entries()) await write(`${at === 0 ? "" : ","}${JSON.stringify(file)}:${JSON.stringify(text)}`);
  gzip.end("}}");
  await ended;
  return Buffer.concat(packed);
}

/** The inverse of {@link packCapture}. Throws on anything else. */
export function unpackCapture(data: Uint8Array): Capture {
  const { index, texts } = JSON.parse(gunzipSync(data, { maxOutputLength: 512 * 1024 * 1024 }).toString("utf8")) as {
    index: unknown;
    texts: Record<string, string>;
  };
  return captureOf(CaptureIndex.parse(index), (file) => (texts[file] === undefined ? undefined : { text: texts[file], truncated: false }));
}
