import { crc32, deflateSync, inflateSync } from "node:zlib";

/** Length of a PNG's signature, and of what a chunk has besides its data: length, type and checksum. */
const [SIGNATURE, AROUND] = [8, 12];

/**
 * The same picture in fewer bytes: what is mostly text on one colour compresses best without the filters that a browser uses.
 * @param png 8 bits a channel, RGB or RGBA, not interlaced: as Chromium makes it
 */
export function smaller(png: Buffer): Buffer {
  const [width, height, channels] = [png.readUInt32BE(16), png.readUInt32BE(20), png[25] === 6 ? 4 : 3];
  const parts: Buffer[] = [png.subarray(0, SIGNATURE)];
  const data: Buffer[] = [];
  for (let at = SIGNATURE; at < png.length; ) {
    const whole = png.subarray(at, at + AROUND + png.readUInt32BE(at));
    const type = whole.toString("latin1", 4, 8);
    if (type === "IDAT") data.push(whole.subarray(8, -4));
    else if (type === "IEND")
      parts.push(chunk("IDAT", deflateSync(plain(inflateSync(Buffer.concat(data)), width * channels, height, channels), { level: 9 })), whole);
    else parts.push(whole);
    at += whole.length;
  }
  return Buffer.concat(parts);
}

/** Lines of a picture without their filters (PNG specification, "Filter types"); each has a byte before it that names its filter. */
function plain(lines: Buffer, length: number, height: number, channels: number): Buffer {
  const out = Buffer.alloc(lines.length);
  for (let y = 0; y < height; y++) {
    const begin = y * (length + 1);
    const filter = lines[begin] ?? 0;
    for (let x = 1; x <= length; x++) {
      const left = x > channels ? (out[begin + x - channels] ?? 0) : 0;
      const above = y > 0 ? (out[begin + x - length - 1] ?? 0) : 0;
      const corner = x > channels && y > 0 ? (out[begin + x - channels - length - 1] ?? 0) : 0;
      const guess = [0, left, above, (left + above) >> 1, filter === 4 ? nearest(left, above, corner) : 0][filter] ?? 0;
      out[begin + x] = ((lines[begin + x] ?? 0) + guess) & 255;
    }
  }
  return out;
}

function nearest(left: number, above: number, corner: number): number {
  const to = left + above - corner;
  const [a, b, c] = [Math.abs(to - left), Math.abs(to - above), Math.abs(to - corner)];
  return a <= b && a <= c ? left : b <= c ? above : corner;
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
