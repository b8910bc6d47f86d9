import { crc32, deflateRawSync } from "node:zlib";

/** One entry of a zip that may lie about itself. */
export interface ZipEntry {
  readonly name: string;
  readonly content?: string | Buffer;
  /** What the directory claims that it unpacks to, in bytes; the truth unless told. */
  readonly claims?: number;
  /** Unix mode, such as 0o120777 for a symbolic link. */
  readonly mode?: number;
  /** Its data are those of the entry of this index: both overlap. */
  readonly dataOf?: number;
}

/** A zip file, byte by byte: what no tool would write. */
export function zipOf(entries: readonly ZipEntry[]): Buffer {
  const locals: Buffer[] = [];
  const directory: Buffer[] = [];
  const places: number[] = [];
  let at = 0;
  for (const { name, content = "", claims, mode = 0o100644, dataOf } of entries) {
    const raw = Buffer.from(content);
    const packed = deflateRawSync(raw);
    const path = Buffer.from(name);
    // from the compression method to the lengths of name and extra field: the same in both headers
    const common = Buffer.alloc(22);
    common.writeUInt16LE(8, 0);
    common.writeUInt32LE(crc32(raw), 6);
    common.writeUInt32LE(packed.length, 10);
    common.writeUInt32LE(claims ?? raw.length, 14);
    common.writeUInt16LE(path.length, 18);
    places.push(dataOf === undefined ? at : (places[dataOf] as number));
    if (dataOf === undefined) {
      const local = Buffer.concat([Buffer.from([0x50, 0x4b, 3, 4, 20, 0, 0, 0]), common, path, packed]);
      locals.push(local);
      at += local.length;
    }
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE((mode << 16) >>> 0, 6);
    rest.writeUInt32LE(places.at(-1) as number, 10);
    directory.push(Buffer.concat([Buffer.from([0x50, 0x4b, 1, 2, 20, 3, 20, 0, 0, 0]), common, rest, path]));
  }
  const index = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write("PK\u0005\u0006", 0, "latin1");
  end.writeUInt16LE(Math.min(entries.length, 0xffff), 8);
  end.writeUInt16LE(Math.min(entries.length, 0xffff), 10);
  end.writeUInt32LE(index.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...locals, index, end]);
}
