import { gunzipSync, gzipSync } from "node:zlib";
import { type Capture, CaptureIndex, captureOf, indexOf } from "../facts/capture.ts";

/** A capture as the store keeps it: gzipped JSON of the index and the texts. */
export function packCapture(capture: Capture): Uint8Array {
  return gzipSync(JSON.stringify({ index: indexOf(capture), texts: Object.fromEntries(capture.outputs.map((output) => [output.file, output.text])) }));
}

/** The inverse of {@link packCapture}. Throws on anything else. */
export function unpackCapture(data: Uint8Array): Capture {
  const { index, texts } = JSON.parse(gunzipSync(data, { maxOutputLength: 512 * 1024 * 1024 }).toString("utf8")) as {
    index: unknown;
    texts: Record<string, string>;
  };
  return captureOf(CaptureIndex.parse(index), (file) => ({ text: texts[file] ?? "", truncated: false }));
}
