import type { Head } from "../transports/archive.ts";

/** What stands on standard input, to its end or to `limit` bytes. Throws what the stream throws. */
export async function standardInput(limit: number): Promise<Head> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of process.stdin) {
    chunks.push(chunk as Buffer);
    length += (chunk as Buffer).length;
    if (length > limit) break;
  }
  return { bytes: Buffer.concat(chunks).subarray(0, limit), truncated: length > limit };
}
