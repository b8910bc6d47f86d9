export type Family = "ipv4" | "ipv6";

const IPV6_CHARACTERS = /^[0-9a-fA-F:.]{2,45}$/;
const GROUP = /^[0-9a-fA-F]{1,4}$/;
const MAC = /^[0-9a-fA-F]{1,2}(?:[:-][0-9a-fA-F]{1,2}){5,19}$/;

/** The family of an address without prefix length; undefined if the text is none. */
export function addressFamily(text: string): Family | undefined {
  if (isIpv4(text)) return "ipv4";
  return isIpv6(text) ? "ipv6" : undefined;
}

/** `text` if it is an address without prefix length. */
export const asAddress = (text: string | undefined): string | undefined => (addressFamily(text ?? "") === undefined ? undefined : text);

/** Four numbers up to 255, of three digits only from 100 on. A scan: large listings spend much of their time here. */
function isIpv4(text: string): boolean {
  let [dots, digits, value] = [0, 0, 0];
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === DOT) {
      if (digits === 0 || ++dots > 3) return false;
      digits = 0;
      value = 0;
    } else {
      if (code < ZERO || code > NINE || digits === 3) return false;
      value = value * 10 + code - ZERO;
      if (++digits === 3 && (value < 100 || value > 255)) return false;
    }
  }
  return dots === 3 && digits > 0;
}
const DOT = 46;
const ZERO = 48;
const NINE = 57;

function isIpv6(text: string): boolean {
  if (!IPV6_CHARACTERS.test(text) || !text.includes(":")) return false;
  const halves = text.split("::");
  if (halves.length > 2) return false;
  const groups = halves.flatMap((half) => (half === "" ? [] : half.split(":")));
  const embedded = isIpv4(groups.at(-1) ?? "");
  if (!(embedded ? groups.slice(0, -1) : groups).every((group) => GROUP.test(group))) return false;
  const count = groups.length + (embedded ? 1 : 0);
  return halves.length === 2 ? count <= 7 : count === 8;
}

/** An address as it stands beside a port, "[fd00::1]", without its brackets. */
export const unbracketed = (address: string): string => address.replace(/^\[|\]$/g, "");

export interface Prefix {
  readonly family: Family;
  readonly address: string;
  /** Absent if the text has none. */
  readonly length: number | undefined;
  /** With length: a host gets /32 or /128. */
  readonly prefix: string;
}

/** Reads `10.0.0.0/8`, `10.0.0.5` (a host), `fe80::/64`. Undefined for anything else. */
export function parsePrefix(text: string): Prefix | undefined {
  const slash = text.indexOf("/");
  const address = slash === -1 ? text : text.slice(0, slash);
  const family = addressFamily(address);
  if (family === undefined) return undefined;
  const host = family === "ipv4" ? 32 : 128;
  if (slash === -1) return { family, address, length: undefined, prefix: `${address}/${host}` };
  const digits = text.slice(slash + 1);
  if (!/^\d{1,3}$/.test(digits) || Number(digits) > host) return undefined;
  return { family, address, length: Number(digits), prefix: `${address}/${Number(digits)}` };
}

/** 24 for `255.255.255.0`; undefined if it is no netmask. */
export function maskLength(mask: string): number | undefined {
  return MASKS.get(mask);
}
const MASKS = new Map(
  Array.from({ length: 33 }, (_, length) => {
    const bits = 2 ** 32 - 2 ** (32 - length);
    return [[24, 16, 8, 0].map((shift) => Math.floor(bits / 2 ** shift) % 256).join("."), length];
  }),
);

/** A hardware address in lower case, colons, leading zeros restored (`a:96:8:0:0:1` → `0a:96:08:00:00:01`); undefined if it is none. */
export function parseMac(text: string): string | undefined {
  if (!MAC.test(text)) return undefined;
  return text
    .toLowerCase()
    .split(/[:-]/)
    .map((byte) => byte.padStart(2, "0"))
    .join(":");
}
