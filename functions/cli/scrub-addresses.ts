import { createHmac } from "node:crypto";
import ipaddr from "ipaddr.js";

/**
 * Pseudonyms for addresses that keep what rules look at: two addresses that share a prefix of n bits share one of n bits afterwards, private stays private,
 * a network stays a network, a broadcast address a broadcast address. A bit is flipped or not depending on a key and on the bits before it (Crypto-PAn's idea),
 * so nothing has to be remembered and one address always gives the same pseudonym.
 */

/** An address or its first bits as text: the family ("4" or "6"), then "0" and "1", 32 or 128 of an address. */
type Bits = string;
const widthOf = (bits: Bits): number => (bits.startsWith("4") ? 32 : 128);
/** The first `length` bits, and the rest. */
const first = (bits: Bits, length: number): Bits => bits.slice(0, length + 1);
const rest = (bits: Bits, length: number): string => bits.slice(length + 1);

interface Range {
  readonly bits: Bits;
  /** True: everything in it stays as it is. False: only the range itself stays where it is. */
  readonly same: boolean;
}

/** Not anybody's: the same on every machine, or reserved for documentation. */
const SAME = [
  "0.0.0.0/8",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3",
  // public resolvers, and Azure's platform address
  "1.1.1.1/32",
  "1.0.0.1/32",
  "8.8.8.8/32",
  "8.8.4.4/32",
  "9.9.9.9/32",
  "168.63.129.16/32",
  "::/127",
  "2001:db8::/32",
  "ff00::/12",
];
/** Ranges with a meaning: an address inside stays inside, but becomes another one. 172.17.0.0/16 is Docker's default bridge. */
const KEPT = [
  "10.0.0.0/8",
  "172.16.0.0/12",
  "172.17.0.0/16",
  "192.168.0.0/16",
  "100.64.0.0/10",
  "198.18.0.0/15",
  "fe80::/64",
  "fe80::/10",
  "fc00::/7",
  "2000::/3",
  "ff02::1:ff00:0/104",
  "64:ff9b::/96",
];
/** What kubeadm, k3s, EKS and MicroK8s give to the cluster's DNS by default; with it the first addresses of its range stay. */
const DEFAULT_DNS = ["10.96.0.10", "10.43.0.10", "10.100.0.10", "172.20.0.10", "10.152.183.10"];

/** Below a network at least this long the host part stays: its network, broadcast and gateway addresses keep their places. */
const HOST_PART_V4 = 24;

/** With a port behind a dot in what tcpdump prints. */
const IPV4 = /(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?:(?!\.?\d)|(?=\.\d{1,5}(?: >|:(?:\s|$))))/gm;

/** Gives addresses pseudonyms. Made once for a capture, of all its texts. */
export class AddressScrubber {
  private readonly key: string;
  private readonly ranges: readonly Range[];
  /** Networks that the capture names. */
  private readonly networks: ReadonlySet<Bits>;
  private readonly addresses = new Map<string, string>();
  private readonly macs = new Map<string, string>();
  private readonly takenMacs = new Set<string>();

  /** True: no host of a network may become its network or broadcast address, at the price of host parts that change less. For ranges that are used densely. */
  private readonly edges: boolean;

  private constructor(edges: boolean, key: string, ranges: readonly Range[], networks: ReadonlySet<Bits>) {
    this.edges = edges;
    this.key = key;
    this.ranges = ranges;
    this.networks = networks;
  }

  /**
   * @param texts everything in which addresses stand
   * @param key secret; two captures scrubbed with the same key get the same pseudonyms
   * @param ranges more ranges that keep their meaning, as prefixes: those that rules name
   * @throws {RangeError} if no assignment is found in which no original address is left
   */
  static of(texts: readonly string[], key: string, ranges: readonly string[] = []): AddressScrubber {
    const originals = new Set(texts.flatMap((text) => text.match(IPV4) ?? []).filter((address) => bitsOf(address) !== undefined));
    const dns = DEFAULT_DNS.filter((address) => originals.has(address)).map((address) => `${address}/28`);
    const fixed = [
      ...[...SAME, ...dns].map((prefix) => ({ bits: networkBits(prefix), same: true })),
      ...[...KEPT, ...ranges].map((prefix) => ({ bits: networkBits(prefix), same: false })),
    ].filter((range) => range.bits.length > 1);
    const networks = networksIn(texts);
    // with thousands of addresses one of them is always in the way
    const free = originals.size > 2000 ? 2 : 50;
    for (let attempt = 0; attempt < free + 50; attempt++) {
      const scrubber = new AddressScrubber(attempt >= free, `${key}/${attempt}`, fixed, networks);
      if (scrubber.isClean(originals)) return scrubber;
    }
    throw new RangeError("could not give every address a pseudonym that is nobody else's address: a range of the capture is used too densely");
  }

  /** The pseudonym of an address without prefix length; the text itself if it is no address. */
  address(text: string): string {
    let result = this.addresses.get(text);
    if (result === undefined) {
      result = this.pseudonym(text);
      this.addresses.set(text, result);
    }
    return result;
  }

  /** The pseudonym of an address with prefix length; of a network the host part stays zero. */
  prefix(address: string, length: number): string {
    const bits = bitsOf(address);
    const isNetwork = bits !== undefined && length < widthOf(bits) && !rest(bits, length).includes("1");
    return `${isNetwork ? addressOf(this.flipped(first(bits, length)).padEnd(widthOf(bits) + 1, "0"), address) : this.address(address)}/${length}`;
  }

  /** True if an address stays as it is by intention. */
  keeps(address: string): boolean {
    const bits = bitsOf(address);
    if (bits === undefined) return true;
    if (this.ranges.some((range) => range.same && bits.startsWith(range.bits))) return true;
    // 10.0.0.0 of 10.0.0.0/8, its broadcast address: a network as large as a range of ours
    const length = this.networkLength(bits) ?? widthOf(bits);
    for (let i = 1; i <= length; i++) if (!this.isFixed(bits.slice(0, i))) return false;
    return true;
  }

  /** The pseudonym of a MAC, lower case with colons: the bits for group and local administration and a vendor's code stay. */
  mac(mac: string): string {
    if (/^(?:00:00:00:00:00:00|ff:ff:ff:ff:ff:ff|ee:ee:ee:ee:ee:ee|aa:aa:aa:aa:aa:aa|01:00:5e:.*|33:33:(?!ff).*|01:80:c2:.*)$/.test(mac)) return mac;
    let result = this.macs.get(mac);
    const kept = keptOf(mac);
    for (let attempt = 0; result === undefined; attempt++) {
      const digest = this.digest(`mac/${mac}/${attempt}`).toString("hex");
      const made =
        mac.slice(0, kept) +
        (digest.slice(0, 12).match(/../g) ?? [])
          .map((byte) => `:${byte}`)
          .join("")
          .slice(0, 17 - kept);
      if (made !== mac && !this.takenMacs.has(made)) result = made;
    }
    this.macs.set(mac, result);
    this.takenMacs.add(result);
    return result;
  }

  /** Hexadecimal digits of the same number in place of these: ids that name nothing but themselves. */
  hex(text: string): string {
    const digest = this.digest(`hex/${text.toLowerCase()}`)
      .toString("hex")
      .repeat(Math.ceil(text.length / 64));
    return /[A-F]/.test(text) && !/[a-f]/.test(text) ? digest.slice(0, text.length).toUpperCase() : digest.slice(0, text.length);
  }

  private pseudonym(text: string): string {
    const bits = bitsOf(text);
    if (bits === undefined || this.ranges.some((range) => range.same && bits.startsWith(range.bits))) return text;
    // fe80::…:ff:fe…: made of the interface's MAC, and must go on saying so
    if (bits.startsWith("6") && rest(bits, 88).startsWith("1111111111111110"))
      return addressOf(this.flipped(first(bits, 64)) + this.interfaceId(rest(bits, 64)), text);
    const length = this.networkLength(bits);
    if (length === undefined) return addressOf(this.flipped(bits), text);
    const host = rest(bits, length);
    return addressOf(this.flipped(first(bits, length)) + (host.startsWith("1") ? "1" : "0").repeat(host.length), text);
  }

  /** Length of the known network of which this is the network or the broadcast address (the longest); undefined if it is a host. */
  private networkLength(bits: Bits): number | undefined {
    for (let length = widthOf(bits) - 2; length > 0; length--) {
      const host = rest(bits, length);
      // IPv6 has no broadcast addresses
      if (host.includes("1") && (bits.startsWith("6") || host.includes("0"))) return undefined;
      const network = first(bits, length);
      if (this.networks.has(network) || this.ranges.some((range) => range.bits === network)) return length;
    }
    return undefined;
  }

  /** The EUI-64 of a MAC's pseudonym. */
  private interfaceId(bits: string): string {
    const bytes = (bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2));
    const [byte1 = 0, byte2 = 0, byte3 = 0, , , byte4 = 0, byte5 = 0, byte6 = 0] = bytes;
    const mac = [byte1 ^ 2, byte2, byte3, byte4, byte5, byte6].map((byte) => byte.toString(16).padStart(2, "0")).join(":");
    const made = this.mac(mac)
      .split(":")
      .map((byte) => Number.parseInt(byte, 16));
    return [(made[0] as number) ^ 2, made[1], made[2], 0xff, 0xfe, made[3], made[4], made[5]]
      .map((byte) => (byte as number).toString(2).padStart(8, "0"))
      .join("");
  }

  private readonly flips = new Map<Bits, boolean>();

  /** Flips bit by bit. What a range of ours depends on is never flipped, nor the host part of a small network. */
  private flipped(bits: Bits): Bits {
    let result = bits[0] as string;
    for (let i = 1; i < bits.length; i++) {
      const before = bits.slice(0, i);
      let flip = this.flips.get(before);
      if (flip === undefined) {
        flip = !this.isFixed(before) && ((this.digest(before)[0] as number) & 1) === 1;
        this.flips.set(before, flip);
      }
      result += flip ? (bits[i] === "1" ? "0" : "1") : (bits[i] as string);
    }
    return result;
  }

  private isFixed(before: Bits): boolean {
    if (this.ranges.some((range) => range.bits.length > before.length && range.bits.startsWith(before))) return true;
    if (this.ranges.some((range) => range.same && before.startsWith(range.bits))) return true;
    if (before.startsWith("6")) return false;
    for (let length = HOST_PART_V4; length < before.length; length++) if (this.networks.has(first(before, length))) return true;
    return this.edges && this.isEdge(before);
  }

  /** True if nothing but zeros, or ones, follow a network that is no range of ours. */
  private isEdge(before: Bits): boolean {
    const tail = /(?:0+|1+)$/.exec(before)?.[0].length ?? 0;
    for (let length = before.length - 1; length >= Math.max(1, before.length - 1 - tail); length--) {
      const network = first(before, length);
      if (this.networks.has(network) && !this.ranges.some((range) => range.bits === network)) return true;
    }
    return false;
  }

  /** No original is left, and no host became the edge of a network. */
  private isClean(originals: ReadonlySet<string>): boolean {
    for (const original of originals) {
      if (this.keeps(original)) continue;
      const made = this.address(original);
      if (originals.has(made) && !this.keeps(made)) return false;
      const bits = bitsOf(original) as Bits;
      if (this.networkLength(bits) !== undefined) continue;
      const madeBits = bitsOf(made) as Bits;
      for (let length = 1; length <= 30; length++) {
        const host = rest(madeBits, length);
        if (this.networks.has(first(bits, length)) && !(host.includes("0") && host.includes("1"))) return false;
      }
    }
    return true;
  }

  private digest(what: string): Buffer {
    return createHmac("sha256", this.key).update(what).digest();
  }
}

/** How many characters of a MAC stay: what software or a vendor gave it, not the part that is one machine's. */
function keptOf(mac: string): number {
  if (mac.startsWith("02:42")) return 5; // Docker: an IPv4 address follows
  if (mac.startsWith("52:54:00") || mac.startsWith("33:33:ff")) return 8;
  // globally administered: the first three bytes are the vendor's
  return (Number.parseInt(mac.slice(0, 2), 16) & 2) === 0 ? 8 : 2;
}

/** The networks that texts name: `a/len`, an address with its mask, `"local":a,"prefixlen":n`. */
function networksIn(texts: readonly string[]): Set<Bits> {
  const found = new Set<Bits>();
  const add = (address: string, length: number): void => {
    const bits = bitsOf(address);
    if (bits !== undefined && length > 0 && length < widthOf(bits)) found.add(first(bits, length));
  };
  for (const text of texts) {
    for (const match of text.matchAll(/(?<![\d.])((?:\d{1,3}\.){3}\d{1,3})\/(\d{1,2})(?![\d.])/g)) add(match[1] as string, Number(match[2]));
    for (const match of text.matchAll(/"(?:local|dst)":\s?"([\d.]{7,15})",\s?"(?:prefixlen|dstlen)":\s?(\d{1,2})/g)) add(match[1] as string, Number(match[2]));
    for (const match of text.matchAll(/(?<![\d.])((?:\d{1,3}\.){3}\d{1,3})[ \t]+(?:\S{1,60}[ \t]+){0,2}?(?:netmask |Mask:)?(255(?:\.\d{1,3}){3})(?![\d.])/g)) {
      const mask = rest(bitsOf(match[2] as string) ?? "", 0);
      if (/^1+0+$/.test(mask)) add(match[1] as string, mask.indexOf("0"));
    }
  }
  return found;
}

/** The bits of an address of either family; undefined if it is none. */
function bitsOf(text: string): Bits | undefined {
  if (/^\d{1,3}(?:\.\d{1,3}){3}$/.test(text)) {
    const bytes = text.split(".").map(Number);
    return bytes.some((byte) => byte > 255) ? undefined : `4${bytes.map(octet).join("")}`;
  }
  if (!text.includes(":") || !ipaddr.IPv6.isValid(text) || text.includes("%")) return undefined;
  return `6${ipaddr.IPv6.parse(text).toByteArray().map(octet).join("")}`;
}
const octet = (byte: number): string => byte.toString(2).padStart(8, "0");

/** An address of bits, written as `like` is: IPv6 in capitals, or with all its zeros, if that one was. */
function addressOf(bits: Bits, like: string): string {
  const bytes = (rest(bits, 0).match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2));
  if (bytes.length === 4) return bytes.join(".");
  const address = new ipaddr.IPv6(bytes);
  if (/^(?:[0-9a-f]{4}:){7}[0-9a-f]{4}$/i.test(like)) return (Buffer.from(bytes).toString("hex").match(/.{4}/g) ?? []).join(":");
  return /[A-F]/.test(like) && !/[a-f]/.test(like) ? address.toRFC5952String().toUpperCase() : address.toRFC5952String();
}

function networkBits(prefix: string): Bits {
  const [address = "", length = ""] = prefix.split("/");
  return first(bitsOf(address) ?? "", Number(length));
}
