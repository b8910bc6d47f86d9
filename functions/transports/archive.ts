import { closeSync, createReadStream, fstatSync, openSync, readSync } from "node:fs";
import { posix } from "node:path";
import { PassThrough, Readable, Transform, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { extract, type Header } from "tar-stream";

/** Reads some files of a tar, .tar.gz, .tar.xz, .tar.zst or .zip into memory, or one that was packed by itself. Archives are hostile: everything is bounded, and nothing is written anywhere. */

/** All files of an archive together; more is cut. */
const MAX_TOTAL = 512 * 1024 * 1024;
/** Characters of all names together: each may be megabytes long, and they are kept. 50,000 files of a sosreport have 5 million. */
const MAX_NAMES = 32 * 1024 * 1024;
/** What an archive may hold. */
export interface Limits {
  /** Files and folders: headers cost more memory than bytes. */
  readonly entries: number;
  /** Bytes that it unpacks to: more is a bomb. */
  readonly unpacked: number;
}
/** What was taken out so far. Handed to several calls, the limits hold for all of them together: an archive may be full of bombs. */
export interface Taken {
  entries: number;
  /** Bytes, and those of them that were kept. */
  unpacked: number;
  kept: number;
  /** Characters. */
  names: number;
}
export const nothing = (): Taken => ({ entries: 0, unpacked: 0, kept: 0, names: 0 });
const SMALL: Limits = { entries: 20_000, unpacked: 1024 * 1024 * 1024 };

/** The beginning of a file. */
export interface Head {
  readonly bytes: Buffer;
  /** True if the file is longer. */
  readonly truncated: boolean;
}

/** The beginning of the file at a path, whatever kind of file that is. */
export function readHead(path: string, limit: number): Head {
  const descriptor = openSync(path, "r");
  try {
    // to its end, not to its size: a pipe (`<(ssh node1 ip route)`) and what the kernel writes while it is read have none
    const { size } = fstatSync(descriptor);
    let buffer = Buffer.alloc(Math.min(size > 0 ? size : 65_535, limit) + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length <= limit; length += read) {
      if (length === buffer.length) buffer = Buffer.concat([buffer], Math.min(2 * length, limit + 1));
      read = readSync(descriptor, buffer, length, buffer.length - length, null);
    }
    return { bytes: buffer.subarray(0, Math.min(length, limit)), truncated: length > limit };
  } finally {
    closeSync(descriptor);
  }
}

/** Kinds of archives, by the end of the name. */
const KINDS = [
  [/\.(?:tgz|tar\.gz)$/i, "tgz"],
  [/\.(?:txz|tar\.xz)$/i, "txz"],
  [/\.(?:tzst|tar\.zst)$/i, "tzst"],
  [/\.(?:tbz2?|tar\.bz2)$/i, "tbz"],
  [/\.tar$/i, "tar"],
  [/\.zip$/i, "zip"],
] as const;
type Kind = (typeof KINDS)[number][1];

/** The kind of archive that a name promises; undefined if it is none. */
export const archiveKind = (name: string): Kind | undefined => KINDS.find(([pattern]) => pattern.test(name))?.[1];

/** How archives begin, and at which byte. */
const BEGINNINGS: readonly (readonly [number, string, Kind])[] = [
  [0, "\x1f\x8b", "tgz"],
  [0, "\xfd7zXZ\0", "txz"],
  [0, "\x28\xb5\x2f\xfd", "tzst"],
  [0, "BZh", "tbz"],
  [0, "PK\x03\x04", "zip"],
  [257, "ustar", "tar"],
];

/**
 * The kind of archive that a file is: by its name, or where that tells none, as it begins. Downloads often lose the end of their names. Of a file that cannot be
 * read undefined: whoever goes on to read it says why.
 */
export function archiveKindOf(path: string): Kind | undefined {
  const promised = archiveKind(path);
  if (promised !== undefined) return promised;
  let start: string;
  try {
    start = beginningOf(path);
  } catch {
    return undefined;
  }
  return BEGINNINGS.find(([at, text]) => start.startsWith(text, at))?.[2];
}

function beginningOf(path: string): string {
  const descriptor = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(512);
    return bytes.toString("latin1", 0, readSync(descriptor, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(descriptor);
  }
}

/**
 * The regular files of an archive (a path, or the bytes of one that lies in another), each up to the limit in bytes that `limitOf` gives its
 * normalised name; 0 leaves it out. The first of several files with one name counts. Throws an Error that says what is wrong.
 */
export async function unpackSome(
  source: string | { name: string; bytes: Buffer },
  limitOf: (name: string) => number,
  limits: Limits = SMALL,
  taken: Taken = nothing(),
): Promise<Map<string, Head>> {
  const name = typeof source === "string" ? source : source.name;
  const kind = typeof source === "string" ? archiveKindOf(source) : archiveKind(name);
  if (kind === "tbz") throw new Error("it is compressed with bzip2, which netcheck does not read: unpack it first (`tar -xjf`), and name the folder");
  const files = new Files(limitOf, limits, taken);
  if (kind === "zip") {
    await unzip(source, files, limits, taken);
    return files.heads;
  }
  /** Hands what is packed, unpacked and counted, to a reader. */
  const read = async (reader: Writable): Promise<void> => {
    const input = typeof source === "string" ? createReadStream(source) : Readable.from([source.bytes]);
    if (kind === "tar") await pipeline(input, bounded(limits, taken), reader);
    else if (kind === "txz") await pipeline(await unxz(input), bounded(limits, taken), reader);
    else await pipeline(input, kind === "tzst" ? createZstdDecompress() : createGunzip(), bounded(limits, taken), reader);
  };
  const unpack = extract();
  let entries = 0;
  // an async function, so that a limit that is reached ends the unpacking: thrown in a listener it would end the process
  const keep = async (header: Header, stream: Readable): Promise<void> => files.take(header.name, files.limit(header.name, header.type === "file"), stream);
  unpack.on("entry", (header, stream, next) => {
    entries += 1;
    // tar-stream's streams are streamx's, which have all that is used here
    keep(header, stream as unknown as Readable)
      .then(() => next())
      .catch((error: Error) => unpack.destroy(error));
  });
  try {
    await read(unpack as unknown as Writable);
  } catch (cause) {
    if (kind === "tar" || entries > 0 || !(await isPackedAlone())) throw damaged(cause as Error);
  }
  return files.heads;

  /** True if it is one file that was packed by itself (`gzip kern.log`), which is taken then; false if it cannot be unpacked. */
  async function isPackedAlone(): Promise<boolean> {
    const bare = posix.basename(name).replace(/\.(?:gz|xz|zst)$/i, "");
    // people seldom pack anything but a text by itself
    const inside = bare.includes(".") ? bare : `${bare}.txt`;
    const content = new PassThrough();
    const taking = files.take(inside, files.limit(inside, true), content);
    try {
      await Promise.all([read(content), taking]);
      return true;
    } catch (cause) {
      if ((cause as Error).message === tooLarge(limits).message) throw cause;
      return false;
    }
  }
}

/** What a library says of an archive that it cannot read means nothing to most people. What is said here begins with "it". */
function damaged(cause: Error): Error {
  if (/^(?:it|the names) /.test(cause.message)) return cause;
  return new Error(`it is damaged, or was cut when it was copied (${cause.message})`, { cause });
}

/**
 * What a file holds that was packed by itself, told by the end of its name (`.gz`, `.xz`, `.zst`), up to `limit` bytes; of one that was cut, or is damaged behind its beginning, what is there. Any other
 * file as it is. Nothing for what cannot be unpacked at all, which is never the same as a file with nothing in it.
 */
export async function unpackedFile(name: string, head: Head, limit: number): Promise<Head | undefined> {
  const format = /\.(gz|xz|zst)$/.exec(name)?.[1];
  if (format === undefined) return head;
  const input = Readable.from([head.bytes]);
  const chunks: Buffer[] = [];
  let room = limit;
  let { truncated } = head;
  try {
    const output = format === "xz" ? await unxz(input) : input.pipe(format === "gz" ? createGunzip() : createZstdDecompress());
    for await (const data of output) {
      const chunk = Buffer.from(data as Uint8Array);
      chunks.push(chunk.subarray(0, room));
      truncated ||= chunk.length > room;
      room -= Math.min(room, chunk.length);
      if (truncated && room === 0) break;
    }
  } catch {
    if (chunks.length === 0) return undefined;
    truncated = true;
  }
  return { bytes: Buffer.concat(chunks), truncated };
}

/** Text of a file, whatever a person's editor or shell wrote: UTF-8 with or without a byte order mark, or UTF-16 (PowerShell's `>`), the mark lost or not. */
export function decodeText(bytes: Buffer): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return bytes.subarray(2).toString("utf16le");
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return swapped(bytes.subarray(2)).toString("utf16le");
  if (bytes.length >= 16 && /^(?:[\t\n\r -~]\0){8}$/.test(bytes.toString("latin1", 0, 16))) return bytes.toString("utf16le");
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return bytes.subarray(3).toString("utf8");
  return bytes.toString("utf8");
}

/** The bytes in the order of the other kind of machine; half a character at the end is left out. */
const swapped = (bytes: Buffer): Buffer => Buffer.from(bytes.subarray(0, bytes.length - (bytes.length % 2))).swap16();

/** Keeps what is wanted, within the limits. */
class Files {
  readonly heads = new Map<string, Head>();
  readonly #limitOf: (name: string) => number;
  readonly #limits: Limits;
  readonly #taken: Taken;

  constructor(limitOf: (name: string) => number, limits: Limits, taken: Taken) {
    this.#limitOf = limitOf;
    this.#limits = limits;
    this.#taken = taken;
  }

  /** 0 if the file is not wanted. Counts every entry. */
  limit(path: string, regular: boolean): number {
    if (++this.#taken.entries > this.#limits.entries) throw new Error(`it holds more than ${this.#limits.entries} files`);
    this.#taken.names += path.length;
    if (this.#taken.names > MAX_NAMES) throw new Error(`the names of its files alone are longer than ${MAX_NAMES / 1024 / 1024} MB`);
    const name = posix.normalize(path);
    return regular && !this.heads.has(name) ? this.#limitOf(name) : 0;
  }

  /** Reads a stream to its end and keeps at most `limit` bytes of it. */
  async take(path: string, limit: number, stream: Readable): Promise<void> {
    const chunks: Buffer[] = [];
    let size = 0;
    let truncated = false;
    for await (const data of stream) {
      if (limit === 0) continue;
      const chunk = data as Buffer;
      const kept = chunk.subarray(0, Math.max(0, Math.min(limit - size, MAX_TOTAL - this.#taken.kept)));
      if (kept.length < chunk.length) truncated = true;
      if (kept.length > 0) chunks.push(kept);
      size += kept.length;
      this.#taken.kept += kept.length;
    }
    if (limit > 0) this.heads.set(posix.normalize(path), { bytes: Buffer.concat(chunks), truncated });
  }
}

const tooLarge = ({ unpacked }: Limits): Error => new Error(`it unpacks to more than ${unpacked / 1024 / 1024} MB`);

function bounded(limits: Limits, taken: Taken): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      taken.unpacked += chunk.length;
      if (taken.unpacked > limits.unpacked) done(tooLarge(limits));
      else done(null, chunk);
    },
  });
}

/** Loaded only when there is something to unpack: WebAssembly. */
async function unxz(input: Readable): Promise<Readable> {
  // CommonJS, whose names Node finds only behind `default`
  const module: typeof import("xz-decompress") & { default?: typeof import("xz-decompress") } = await import("xz-decompress");
  const { XzReadableStream } = module.default ?? module;
  const output = new XzReadableStream(Readable.toWeb(input) as unknown as ConstructorParameters<typeof module.XzReadableStream>[0]);
  return Readable.fromWeb(output as unknown as ReadableStream);
}

async function unzip(source: string | { name: string; bytes: Buffer }, files: Files, limits: Limits, taken: Taken): Promise<void> {
  const { fromBufferPromise, openPromise } = await import("yauzl");
  const zip = typeof source === "string" ? await openPromise(source) : await fromBufferPromise(source.bytes);
  try {
    for await (const entry of zip.eachEntry()) {
      taken.unpacked += entry.uncompressedSize;
      if (taken.unpacked > limits.unpacked) throw tooLarge(limits);
      const regular = !entry.fileName.endsWith("/");
      // what is not wanted is not even decompressed
      const limit = files.limit(entry.fileName, regular);
      if (limit > 0) await files.take(entry.fileName, limit, await zip.openReadStreamPromise(entry));
    }
  } finally {
    zip.close();
  }
}
