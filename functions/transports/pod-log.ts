import { createHash } from "node:crypto";
import { constants, gunzipSync } from "node:zlib";

/** What the program of a debug pod printed. */
export interface PodOutput {
  readonly tools: "host" | "image";
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Not all of stdout is here: it was longer than a pod may print, or the log was cut. */
  readonly truncated: boolean;
}

/** How a log reads. */
export type PodLog =
  | { readonly kind: "whole"; readonly output: PodOutput }
  /** The end is missing, or bytes in the middle. Reading it again may help. */
  | { readonly kind: "cut"; readonly output: PodOutput }
  /** The end is there, the beginning is not: the kubelet began a new file. Nothing brings it back. */
  | { readonly kind: "beheaded" }
  /** No frame at all: `said` is what there is instead. */
  | { readonly kind: "none"; readonly said: string };

/** More is never unpacked. */
const MAX_OUTPUT = 256 * 1024 * 1024;
const HEADER = /^(host|image) (\d{1,3}) (\d{1,12}) (\d{1,12}) (\d{1,12}) ([0-9a-f]{64})$/;

/** Reads the frame of pod-spec's PROGRAM. Lengths, checksum and both marks are checked; the nonce is ours, so nothing a node prints can pass for a frame. */
export function readPodLog(log: string, nonce: string): PodLog {
  const begin = `NETCHECK-POD/1 ${nonce} begin `;
  const start = log.indexOf(begin);
  const lineEnd = log.indexOf("\n", start);
  const header = start === -1 || lineEnd === -1 ? null : HEADER.exec(log.slice(start + begin.length, lineEnd).trimEnd());
  const ended = log.includes(`\nNETCHECK-POD/1 ${nonce} end`);
  if (header === null) return ended ? { kind: "beheaded" } : { kind: "none", said: log.trim().slice(0, 300) };
  const [, tools, code, all, printed, errors, sum] = header as unknown as [string, "host" | "image", string, string, string, string, string];
  const stdoutEnd = lineEnd + 1 + Number(printed);
  const encoded = log.slice(lineEnd + 1, stdoutEnd);
  const encodedErrors = log.slice(stdoutEnd + 1, stdoutEnd + 1 + Number(errors));
  const intact = createHash("sha256").update(encoded).update(encodedErrors).digest("hex") === sum;
  const stdout = unpack(encoded);
  const stderr = unpack(encodedErrors);
  const output: PodOutput = {
    tools,
    exitCode: Number(code),
    stdout: stdout.text,
    stderr: stderr.text,
    truncated: !intact || stdout.cut || Number(printed) < Number(all),
  };
  return { kind: intact && ended ? "whole" : "cut", output };
}

/** As much as can be unpacked. */
function unpack(encoded: string): { text: string; cut: boolean } {
  const bytes = Buffer.from(encoded, "base64");
  if (bytes.length === 0) return { text: "", cut: true };
  try {
    return { text: gunzipSync(bytes, { maxOutputLength: MAX_OUTPUT }).toString("utf8"), cut: false };
  } catch {
    try {
      return { text: gunzipSync(bytes, { maxOutputLength: MAX_OUTPUT, finishFlush: constants.Z_SYNC_FLUSH }).toString("utf8"), cut: true };
    } catch {
      return { text: "", cut: true };
    }
  }
}
