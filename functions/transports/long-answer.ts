import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createGunzip } from "node:zlib";

/** Reads the frame of a long answer (script.ts says what it looks like) in pieces: nothing but the record at hand is in memory. */

/** One record: words of its header, then two byte strings. `cut`: not as the node sent it. */
export interface AnswerRecord {
  readonly words: readonly string[];
  readonly first: Buffer;
  readonly second: Buffer;
  readonly cut: boolean;
}

export interface LongAnswer {
  readonly nonce: string;
  /** "collect" or what else the script names its frame. */
  readonly kind: string;
  /** Which word of a record's header is the length of its first byte string; the next word is that of the second. */
  readonly lengthsAt: number;
  /** Bytes that it may unpack to. */
  readonly maxPayload: number;
}

/** The frame is looked for in so much of what the node printed. */
const HEADER_WITHIN = 1024 * 1024;
const HEADER = /^NETCHECK\/1 \S+ \S+ (gz|raw) (\d{1,12}) ([0-9a-f]{64}|-)$/;

/**
 * The records of an answer, as they come; returns whether its end was cut off. Throws if there is no frame, if its checksum does not match, or if it cannot be
 * unpacked (known only at the end: what was yielded before counts for nothing then); errors of the source are passed on.
 */
export async function* readLongAnswer(stdout: AsyncIterable<Uint8Array>, about: LongAnswer): AsyncGenerator<AnswerRecord, boolean> {
  const frame = new Frame(stdout, about);
  const { encoding } = await frame.open();
  const payload = encoding === "raw" ? frame.body() : unpacked(frame.body(), about.maxPayload);
  yield* records(payload, about);
  return frame.close();
}

/** The outer frame: header, body of a given length, end line. */
class Frame {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #about: LongAnswer;
  readonly #bytes = new Bytes();
  readonly #hash = createHash("sha256");
  #left = 0;
  #sum = "-";

  constructor(stdout: AsyncIterable<Uint8Array>, about: LongAnswer) {
    this.#source = stdout[Symbol.asyncIterator]();
    this.#about = about;
  }

  async open(): Promise<{ encoding: string }> {
    const mark = `NETCHECK/1 ${this.#about.nonce} ${this.#about.kind} `;
    let more = true;
    while (more && this.#bytes.length < HEADER_WITHIN) {
      more = await this.#pull();
      const text = this.#bytes.peek(HEADER_WITHIN).toString("latin1");
      const start = text.indexOf(mark);
      const end = start === -1 ? -1 : text.indexOf("\n", start);
      const header = end === -1 ? null : HEADER.exec(text.slice(start, end).trimEnd());
      if (header === null) continue;
      const [, encoding = "", size = "", sum = "-"] = header;
      this.#bytes.take(end + 1);
      this.#left = Number(size);
      this.#sum = sum;
      return { encoding };
    }
    const said = this.#bytes.peek(200).toString("utf8").trim();
    throw new Error(`the node sent no result frame${said === "" ? " (nothing at all)" : `; it said: ${said}`}`);
  }

  async *body(): AsyncGenerator<Buffer> {
    while (this.#left > 0 && (this.#bytes.length > 0 || (await this.#pull()))) {
      const chunk = this.#bytes.take(Math.min(this.#left, this.#bytes.length));
      this.#left -= chunk.length;
      this.#hash.update(chunk);
      yield chunk;
    }
  }

  /** Whether the end was cut off. Throws if what came is not what the node sent. */
  async close(): Promise<boolean> {
    for await (const _rest of this.body());
    if (this.#left > 0) return true;
    if (this.#sum !== "-") {
      if (this.#hash.digest("hex") !== this.#sum) throw new Error("the node's answer was changed on its way: its checksum does not match");
      return false;
    }
    // without a checksum the end line must be where it belongs
    const end = `\nNETCHECK/1 ${this.#about.nonce} end`;
    while (this.#bytes.length < end.length && (await this.#pull()));
    return this.#bytes.peek(end.length).toString("latin1") !== end;
  }

  async #pull(): Promise<boolean> {
    const { value, done } = await this.#source.next();
    if (done === true) return false;
    this.#bytes.push(Buffer.from(value.buffer, value.byteOffset, value.byteLength));
    return true;
  }
}

/** Base64 and gzip undone, piece by piece. */
async function* unpacked(body: AsyncIterable<Buffer>, maxPayload: number): AsyncGenerator<Buffer> {
  // what was cut off is still worth reading
  const gunzip = createGunzip({ finishFlush: constants.Z_SYNC_FLUSH });
  const feeding = pipeline(Readable.from(decoded(body)), gunzip);
  // told by the loop below
  feeding.catch(() => undefined);
  let size = 0;
  try {
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxPayload) throw new Error(`it is larger than ${maxPayload / 1024 / 1024} MB`);
      yield chunk;
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code?.startsWith("Z_") !== true && size <= maxPayload) throw error;
    throw new Error(`the node's answer could not be unpacked: ${message}`, { cause: error });
  }
}

async function* decoded(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let carry = "";
  for await (const chunk of body) {
    const text = carry + chunk.toString("latin1").replaceAll(/\s/g, "");
    const whole = text.length - (text.length % 4);
    carry = text.slice(whole);
    if (whole > 0) yield Buffer.from(text.slice(0, whole), "base64");
  }
  if (carry !== "") yield Buffer.from(carry, "base64");
}

async function* records(payload: AsyncIterable<Buffer>, { nonce, lengthsAt }: LongAnswer): AsyncGenerator<AnswerRecord> {
  const source = payload[Symbol.asyncIterator]();
  const bytes = new Bytes();
  /** Has so many bytes, or all there are. */
  const atLeast = async (count: number): Promise<boolean> => {
    while (bytes.length < count) {
      const { value, done } = await source.next();
      if (done === true) return false;
      bytes.push(value);
    }
    return true;
  };
  const next = `#${nonce} `;
  for (;;) {
    await atLeast(MAX_HEADER);
    const end = bytes.peek(MAX_HEADER).indexOf(10);
    if (end === -1) return;
    const words = bytes
      .take(end + 1)
      .toString("latin1", 0, end)
      .split(" ");
    if (words[0] !== `#${nonce}`) return;
    const [a, b] = [Number(words[lengthsAt]), Number(words[lengthsAt + 1])];
    if (!Number.isSafeInteger(a) || !Number.isSafeInteger(b) || a < 0 || b < 0) return;
    await atLeast(a + b + next.length);
    const first = bytes.take(Math.min(a, bytes.length));
    const second = bytes.take(Math.min(b, bytes.length));
    // what follows is another record or nothing; else bytes were lost or added
    const cut = first.length + second.length < a + b || (bytes.length > 0 && bytes.peek(next.length).toString("latin1") !== next);
    yield { words, first, second, cut };
  }
}

/** A record's header is shorter. */
const MAX_HEADER = 1024;

/** Bytes that came in pieces and are taken in others; each is copied at most once. */
class Bytes {
  #pieces: Buffer[] = [];
  length = 0;

  push(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#pieces.push(piece);
    this.length += piece.length;
  }

  /** At most so many, which stay. */
  peek(count: number): Buffer {
    const [first] = this.#pieces;
    if (first !== undefined && first.length >= count) return first.subarray(0, count);
    return Buffer.concat(this.#pieces).subarray(0, count);
  }

  take(count: number): Buffer {
    const taken: Buffer[] = [];
    let left = count;
    let used = 0;
    for (const piece of this.#pieces) {
      if (left === 0) break;
      const part = piece.subarray(0, left);
      taken.push(part);
      left -= part.length;
      if (part.length === piece.length) used += 1;
      else this.#pieces[used] = piece.subarray(part.length);
    }
    this.#pieces.splice(0, used);
    this.length -= count - left;
    return taken.length === 1 && taken[0] !== undefined ? taken[0] : Buffer.concat(taken);
  }
}
