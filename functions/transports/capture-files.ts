import {
  closeSync,
  createReadStream,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  realpathSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, normalize, sep } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip, gzipSync } from "node:zlib";
import { extract, pack } from "tar-stream";
import { CaptureIndex, captureOf, indexOf } from "../facts/capture.ts";
import type { Capture } from "../triage/ports.ts";

/** Reads and writes captures (DESIGN C3): a directory or a `.tgz` with `capture.json` and `outputs/`. Everything in them is hostile. */

/** More of one output is not read: it is cut and marked as truncated. */
export const MAX_OUTPUT = 64 * 1024 * 1024;
/** All outputs of a capture together. */
const MAX_TOTAL = 512 * 1024 * 1024;
const MAX_INDEX = 16 * 1024 * 1024;

/** A capture is not as it must be. The message names file, key and reason. */
export class CaptureError extends Error {
  override readonly name = "CaptureError";
}

/** Reads a capture. @throws {CaptureError} */
export async function readCaptureFiles(path: string): Promise<Capture> {
  let stats: ReturnType<typeof statSync>;
  try {
    stats = statSync(path);
  } catch (cause) {
    throw new CaptureError(`${path}: could not read it: ${(cause as Error).message}`, { cause });
  }
  if (stats.isDirectory()) return fromDirectory(path);
  if (/\.(?:tgz|tar\.gz|tar)$/.test(path)) return fromArchive(path);
  if (basename(path) === "capture.json") return fromDirectory(dirname(path));
  throw new CaptureError(`${path}: a capture is a directory with capture.json, or a .tgz of one`);
}

function fromDirectory(path: string): Capture {
  const file = join(path, "capture.json");
  if (!existsSync(file)) throw new CaptureError(`${path}: there is no capture.json in it`);
  const index = parseIndex(file, readHead(file, MAX_INDEX).text);
  const root = realpathSync(path);
  let total = 0;
  return captureOf(index, (name) => {
    const inside = safeName(file, name);
    const full = join(path, inside);
    let real: string;
    try {
      real = realpathSync(full);
    } catch (cause) {
      throw new CaptureError(`${file}: outputs: could not read "${name}": ${(cause as Error).message}`, { cause });
    }
    if (real !== root && !real.startsWith(root + sep)) throw new CaptureError(`${file}: outputs: "${name}" leads out of the capture`);
    if (!lstatSync(real).isFile()) throw new CaptureError(`${file}: outputs: "${name}" is not a file`);
    const head = readHead(real, Math.min(MAX_OUTPUT, Math.max(0, MAX_TOTAL - total)));
    total += head.text.length;
    return head;
  });
}

async function fromArchive(path: string): Promise<Capture> {
  const texts = new Map<string, { text: string; truncated: boolean }>();
  let total = 0;
  const unpack = extract();
  unpack.on("entry", (header, stream, next) => {
    const name = header.name.replace(/^(?:\.\/)+/, "");
    const wanted = header.type === "file" && /(?:^|\/)(?:capture\.json|outputs\/[^/]+)$/.test(name) && !name.split("/").includes("..");
    const chunks: Buffer[] = [];
    let size = 0;
    let truncated = false;
    stream.on("data", (data) => {
      const chunk = data as Buffer;
      if (!wanted) return;
      const room = Math.min(MAX_OUTPUT - size, MAX_TOTAL - total);
      if (chunk.length > room) truncated = true;
      const kept = chunk.subarray(0, Math.max(0, room));
      chunks.push(kept);
      size += kept.length;
      total += kept.length;
    });
    stream.on("end", () => {
      if (wanted) texts.set(name, { text: Buffer.concat(chunks).toString("utf8"), truncated });
      next();
    });
    stream.on("error", next);
  });
  try {
    const input = createReadStream(path);
    await (path.endsWith(".tar") ? pipeline(input, unpack) : pipeline(input, createGunzip(), unpack));
  } catch (cause) {
    throw new CaptureError(`${path}: could not unpack it: ${(cause as Error).message}`, { cause });
  }
  const indexName = [...texts.keys()].filter((name) => basename(name) === "capture.json").sort((a, b) => a.length - b.length)[0];
  if (indexName === undefined) throw new CaptureError(`${path}: there is no capture.json in it`);
  const file = `${path}:${indexName}`;
  const index = parseIndex(file, texts.get(indexName)?.text ?? "");
  const folder = indexName.slice(0, -"capture.json".length);
  return captureOf(index, (name) => {
    const text = texts.get(folder + safeName(file, name));
    if (text === undefined) throw new CaptureError(`${file}: outputs: "${name}" is not in the archive`);
    return text;
  });
}

function parseIndex(file: string, text: string): CaptureIndex {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new CaptureError(`${file}: it is not JSON: ${(cause as Error).message}`, { cause });
  }
  const parsed = CaptureIndex.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new CaptureError(`${file}: ${issue?.path.join(".") || "it"}: ${issue?.message ?? "is not valid"}`);
}

/** A relative path that stays inside. */
function safeName(file: string, name: string): string {
  const clean = normalize(name);
  if (name.includes("\0") || clean.startsWith("..") || clean.startsWith(sep)) throw new CaptureError(`${file}: outputs: "${name}" leads out of the capture`);
  return clean;
}

function readHead(path: string, limit: number): { text: string; truncated: boolean } {
  const descriptor = openSync(path, "r");
  try {
    const { size } = fstatSync(descriptor);
    if (size <= limit) return { text: readFileSync(descriptor, "utf8"), truncated: false };
    const buffer = Buffer.alloc(limit);
    readSync(descriptor, buffer, 0, limit, 0);
    return { text: buffer.toString("utf8"), truncated: true };
  } finally {
    closeSync(descriptor);
  }
}

/** Writes a capture as a directory, which must not exist yet or be empty of a capture.json. */
export function writeCaptureDirectory(capture: Capture, path: string): void {
  mkdirSync(join(path, "outputs"), { recursive: true });
  for (const output of capture.outputs) writeFileSync(join(path, output.file), output.text);
  writeFileSync(join(path, "capture.json"), `${JSON.stringify(indexOf(capture), null, 1)}\n`);
}

/** A capture as the bytes of a `.tgz`. */
export async function packCaptureFiles(capture: Capture): Promise<Buffer> {
  const archive = pack();
  archive.entry({ name: "capture.json" }, `${JSON.stringify(indexOf(capture), null, 1)}\n`);
  for (const output of capture.outputs) archive.entry({ name: output.file }, output.text);
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  return gzipSync(Buffer.concat(chunks));
}
