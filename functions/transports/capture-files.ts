import { mkdirSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join, posix, sep } from "node:path";
import { gzipSync } from "node:zlib";
import { pack } from "tar-stream";
import { type CaptureIndex, captureOf, checkIndex, indexOf } from "../facts/capture.ts";
import type { Capture } from "../triage/ports.ts";
import { archiveKindOf, decodeText, type Head, readHead, unpackSome } from "./archive.ts";

/** Reads and writes captures (DESIGN C3): a directory or a `.tgz` with `capture.json` and `outputs/`. Everything in them is hostile. */

/** More of one output is not read: it is cut and marked as truncated. */
export const MAX_OUTPUT = 64 * 1024 * 1024;
/** All outputs of a capture together. */
const MAX_TOTAL = 512 * 1024 * 1024;
const MAX_INDEX = 16 * 1024 * 1024;

interface Text {
  readonly text: string;
  readonly truncated: boolean;
}

/** A capture is not as it must be. The message names file, key and reason. */
export class CaptureError extends Error {
  override readonly name = "CaptureError";
}

/** Reads a capture: a directory, its capture.json, or an archive of one. Nothing is ever read from outside of it. @throws {CaptureError} */
export async function readCaptureFiles(path: string): Promise<Capture> {
  let stats: ReturnType<typeof statSync>;
  try {
    stats = statSync(path);
  } catch (cause) {
    throw new CaptureError(`${path}: could not read it: ${(cause as Error).message}`, { cause });
  }
  if (stats.isDirectory()) return fromDirectory(path);
  if (basename(path) === "capture.json") return fromDirectory(dirname(path));
  if (stats.isFile() && archiveKindOf(path) !== undefined) return fromArchive(path);
  throw new CaptureError(`${path}: a capture is a directory with capture.json, or a .tgz of one`);
}

function fromDirectory(path: string): Capture {
  const file = join(path, "capture.json");
  const root = realpathSync(path);
  /** The text of a file that really lies inside: no link leads out, no device or pipe is opened. */
  const read = (name: string, key: string, limit: number): Text => {
    let real: string;
    try {
      real = realpathSync(join(path, name));
    } catch (cause) {
      throw new CaptureError(key === "" ? `${path}: there is no ${name} in it` : `${file}: ${key}: could not read "${name}": ${(cause as Error).message}`, {
        cause,
      });
    }
    const at = `${file}: ${key === "" ? "" : `${key}: `}"${name}"`;
    if (!real.startsWith(root.endsWith(sep) ? root : root + sep) && real !== root) throw new CaptureError(`${at} leads out of the capture`);
    if (!statSync(real).isFile()) throw new CaptureError(`${at} is not a file`);
    return textOf(readHead(real, limit));
  };
  const head = read("capture.json", "", MAX_INDEX);
  const index = parseIndex(file, head);
  let total = 0;
  let missing: unknown;
  const capture = captureOf(index, (name) => {
    try {
      const text = read(safeName(file, name), "outputs", Math.min(MAX_OUTPUT, Math.max(0, MAX_TOTAL - total)));
      total += text.text.length;
      return text;
    } catch (error) {
      if (((error as Error).cause as NodeJS.ErrnoException | undefined)?.code !== "ENOENT") throw error;
      missing ??= error;
      return undefined;
    }
  });
  // one file that was lost on the way costs only itself; where all are, there is nothing to look at
  if (missing !== undefined && capture.outputs.length === 0) throw missing;
  return capture;
}

/** In two passes: the index first, then only the files that it names, so that nothing else of an archive is ever held in memory. */
async function fromArchive(path: string): Promise<Capture> {
  const indexes = await unpack(path, (name) => (basename(name) === "capture.json" ? MAX_INDEX : 0));
  const indexName = [...indexes.keys()].sort((a, b) => a.length - b.length)[0];
  if (indexName === undefined) throw new CaptureError(`${path}: there is no capture.json in it`);
  const file = `${path}:${indexName}`;
  const index = parseIndex(file, textOf(indexes.get(indexName) as Head));
  const folder = indexName.slice(0, -"capture.json".length);
  const wanted = new Set(index.outputs.map((output) => folder + safeName(file, output.file)));
  const heads = await unpack(path, (name) => (wanted.has(name) ? MAX_OUTPUT : 0));
  const capture = captureOf(index, (name) => {
    const head = heads.get(folder + safeName(file, name));
    return head === undefined ? undefined : textOf(head);
  });
  const [first] = index.outputs;
  if (first !== undefined && capture.outputs.length === 0) throw new CaptureError(`${file}: outputs: "${first.file}" is not a file in the archive`);
  return capture;
}

async function unpack(path: string, limitOf: (name: string) => number): Promise<Map<string, Head>> {
  try {
    return await unpackSome(path, limitOf);
  } catch (cause) {
    throw new CaptureError(`${path}: could not unpack it: ${(cause as Error).message}`, { cause });
  }
}

const textOf = ({ bytes, truncated }: Head): Text => ({ text: decodeText(bytes), truncated });

function parseIndex(file: string, { text, truncated }: Text): CaptureIndex {
  if (truncated) throw new CaptureError(`${file}: it has more than ${MAX_INDEX / 1024 / 1024} MB`);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new CaptureError(`${file}: it is not JSON: ${(cause as Error).message}`, { cause });
  }
  try {
    return checkIndex(json);
  } catch (cause) {
    throw new CaptureError(`${file}: ${(cause as Error).message}`, { cause });
  }
}

/** A relative path that stays inside. */
function safeName(file: string, name: string): string {
  const clean = posix.normalize(name);
  if (name.includes("\0") || clean === ".." || clean.startsWith("../") || clean.startsWith("/"))
    throw new CaptureError(`${file}: outputs: ${JSON.stringify(name)} leads out of the capture`);
  return clean;
}

/** The text of one file that a person names. @throws {CaptureError} */
export function readText(path: string): Text {
  try {
    return textOf(readHead(path, MAX_OUTPUT));
  } catch (cause) {
    throw new CaptureError(`${path}: could not read it: ${(cause as Error).message}`, { cause });
  }
}

/** Writes a capture as a directory, replacing what is there under the same names. @throws {CaptureError} for a file name that leads out of it. */
export function writeCaptureDirectory(capture: Capture, path: string): void {
  mkdirSync(path, { recursive: true });
  for (const output of capture.outputs) {
    const file = join(path, safeName(path, output.file));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, output.text);
  }
  writeFileSync(join(path, "capture.json"), `${JSON.stringify(indexOf(capture), null, 1)}\n`);
}

/** A capture as the bytes of a `.tgz`: always the same bytes for the same capture. */
export async function packCaptureFiles(capture: Capture): Promise<Buffer> {
  const archive = pack();
  const mtime = new Date(0);
  archive.entry({ name: "capture.json", mtime }, `${JSON.stringify(indexOf(capture), null, 1)}\n`);
  for (const output of capture.outputs) archive.entry({ name: safeName("capture", output.file), mtime }, output.text);
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  return gzipSync(Buffer.concat(chunks));
}
