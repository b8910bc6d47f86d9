import type { Family } from "./ip-address.ts";
import { addressFamily, parsePrefix } from "./ip-address.ts";
import { fromHexIpv6 } from "./ipv6.ts";

/** Addresses as whole numbers, for what text cannot do: which prefix holds which address. */

/** Bits of an address of this family. */
export const widthOf = (family: Family): number => (family === "ipv4" ? 32 : 128);

/** The address as a number, network byte order; undefined if the text is no address. */
export function addressBits(text: string): bigint | undefined {
  const family = addressFamily(text);
  if (family === "ipv4") return BigInt(ipv4Number(text));
  return family === "ipv6" ? ipv6Bits(text) : undefined;
}

const ipv4Number = (text: string): number => text.split(".").reduce((value, byte) => value * 256 + Number(byte), 0);

function ipv6Bits(text: string): bigint {
  const [head = "", tail] = text.split("::");
  const groups = (half: string): number[] =>
    half.split(":").flatMap((group) => (group === "" ? [] : group.includes(".") ? halves(group) : [Number.parseInt(group, 16)]));
  const front = groups(head);
  const back = tail === undefined ? [] : groups(tail);
  const all = [...front, ...Array<number>(8 - front.length - back.length).fill(0), ...back];
  return all.reduce((value, group) => (value << 16n) | BigInt(group), 0n);
}

/** The two groups that an embedded IPv4 address stands for (`::ffff:192.0.2.1`). */
function halves(text: string): [number, number] {
  const number = ipv4Number(text);
  return [Math.floor(number / 65536), number % 65536];
}

/** The number as an address, as it is usually written. */
export function addressText(bits: bigint, family: Family): string {
  if (family === "ipv6") return fromHexIpv6(bits.toString(16).padStart(32, "0"));
  return [24n, 16n, 8n, 0n].map((shift) => Number((bits >> shift) & 255n)).join(".");
}

/** The bits of an address that a prefix of this length keeps. */
export function networkBits(bits: bigint, length: number, family: Family): bigint {
  const rest = BigInt(widthOf(family) - length);
  return (bits >> rest) << rest;
}

interface PrefixBits {
  readonly family: Family;
  readonly network: bigint;
  readonly length: number;
}

// Routes are asked for their prefix again and again; forgotten when it grows large.
const known = new Map<string, PrefixBits | undefined>();
const MAX_KNOWN = 100_000;

/** A prefix with its network as a number; undefined if the text is none. */
export function prefixBits(text: string): PrefixBits | undefined {
  const remembered = known.get(text);
  if (remembered !== undefined || known.has(text)) return remembered;
  const parsed = parsePrefix(text);
  let bits: PrefixBits | undefined;
  if (parsed !== undefined) {
    const length = parsed.length ?? widthOf(parsed.family);
    bits = { family: parsed.family, network: networkBits(addressBits(parsed.address) as bigint, length, parsed.family), length };
  }
  if (known.size >= MAX_KNOWN) known.clear();
  if (text.length < 64) known.set(text, bits);
  return bits;
}

/** True if the address (or the prefix, as a whole) lies in the prefix. False for text that is neither. */
export function within(inner: string, prefix: string): boolean {
  const outer = prefixBits(prefix);
  const bits = prefixBits(inner);
  if (outer === undefined || bits === undefined || bits.family !== outer.family || bits.length < outer.length) return false;
  return networkBits(bits.network, outer.length, outer.family) === outer.network;
}
