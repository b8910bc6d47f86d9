import { lines, type UnparsedLines } from "./fact.ts";
import { type Family, maskLength } from "./ip-address.ts";
import { isMasked, readFamily, readMac, readPrefix } from "./mask.ts";
import { isPrompt } from "./paste.ts";
import { present } from "./present.ts";

/** One block of ifconfig, old (`Link encap:`, BusyBox) or new (`flags=4163<…>`). */
export interface IfconfigBlock {
  readonly line: number;
  /** Without `:1`. */
  readonly interface: string;
  /** `eth0:1`: it shows an address of eth0 that has this label. */
  readonly label?: string;
  flags: string[];
  mtu?: number;
  mac?: string;
  readonly addresses: IfconfigAddress[];
  /** "rx errors", "tx dropped", …, with the line of the received packets. */
  readonly counters: Record<string, number>;
  countersLine?: number;
}

export interface IfconfigAddress {
  readonly line: number;
  readonly family: Family;
  readonly address: string;
  readonly prefixLength?: number;
  readonly scope?: string;
  readonly peer?: string;
  readonly broadcast?: string;
}

const NEW_HEADER = /^(\S{1,127}): flags=-?\d{1,6}<([A-Z0-9_,-]{0,400})>(?:\s+metric \d{1,10})?\s+mtu (\d{1,10})$/;
const OLD_HEADER = /^(\S{1,127})\s+Link encap:[^\t]{1,120}$/;
const HEADER_LIKE = /\bLink encap:|: flags=/;
const NEW_INET = /^inet (\S{1,45})\s+netmask (\S{1,15})(?:\s+(broadcast|destination) (\S{1,45}))?$/;
const OLD_INET = /^inet addr:(\S{1,45})(?:\s+(P-t-P|Bcast):(\S{1,45}))?\s+Mask:(\S{1,15})$/;
const NEW_INET6 = /^inet6 (\S{1,45})\s+prefixlen (\d{1,3})\s+scopeid 0x[0-9a-f]{1,4}<([a-z,]{1,40})>(?:\s+destination \S{1,45})?$/;
const OLD_INET6 = /^inet6 addr: (\S{1,49}) Scope:([A-Za-z,]{1,40})$/;
const HARDWARE = /^(?:ether|loop|unspec|tunnel|tunnel6|sit|ppp|infiniband|gre|ipgre)\b\s*(?:(\S{3,60})\s+)?txqueuelen \d{1,10}\s+\([A-Za-z0-9 /-]{1,40}\)$/;
const OLD_FLAGS = /^(?:\[NO FLAGS\]|[A-Z][A-Z ]{0,200}?)\s+MTU:(\d{1,10})\s+Metric:\d{1,10}$/;
const COUNTS = /^(RX|TX) (?:packets|errors|bytes)[ :]\d/;
const SKIPPED =
  /^(?:collisions:\d+ txqueuelen:\d+|(?:device )?(?:[Ii]nterrupt|[Mm]emory|[Bb]ase(?: address)?)[: ].*|Infiniband hardware address can be incorrect!.*)$/;

/** Reads ifconfig's blocks. Lines it cannot account for go to `unparsed`. */
export function readIfconfig(text: string, unparsed: UnparsedLines): IfconfigBlock[] {
  const blocks: IfconfigBlock[] = [];
  let current: IfconfigBlock | undefined;
  for (const { line, text: content } of lines(text)) {
    const trimmed = content.trim();
    const opened = header(line, trimmed);
    if (opened !== undefined) {
      current = opened;
      blocks.push(opened);
    } else if (HEADER_LIKE.test(trimmed)) {
      // What follows belongs to an interface that we could not read, not to the one before.
      current = undefined;
      unparsed.add(line, content);
    } else if ((current === undefined || !detail(current, line, trimmed)) && !SKIPPED.test(trimmed) && !isPrompt(content)) unparsed.add(line, content);
  }
  return blocks;
}

function header(line: number, content: string): IfconfigBlock | undefined {
  const modern = NEW_HEADER.exec(content);
  if (modern !== null) {
    const [, name, flags, mtu] = modern as unknown as [string, string, string, string];
    return { line, ...named(name), flags: flags.split(",").filter(Boolean), mtu: Number(mtu), addresses: [], counters: {} };
  }
  const old = OLD_HEADER.exec(content);
  if (old === null) return undefined;
  const mac = readMac(/HWaddr (\S{1,60})/.exec(content)?.[1] ?? "");
  // Interfaces without a hardware address get one of sixteen zero bytes.
  return { line, ...named(old[1] as string), flags: [], ...(mac === undefined || mac.length > 17 ? {} : { mac }), addresses: [], counters: {} };
}

function named(name: string): { interface: string; label?: string } {
  const colon = name.indexOf(":");
  return colon <= 0 ? { interface: name } : { interface: name.slice(0, colon), label: name };
}

function detail(block: IfconfigBlock, line: number, content: string): boolean {
  if (COUNTS.test(content)) return counts(block, line, content);
  const hardware = HARDWARE.exec(content);
  if (hardware !== null) {
    const mac = readMac(hardware[1] ?? "");
    if (hardware[1] !== undefined && mac === undefined && !/^[0-9A-Fa-f:-]{11,60}$/.test(hardware[1])) return false;
    if (mac !== undefined && mac.length <= 17) block.mac = mac;
    return true;
  }
  const flags = OLD_FLAGS.exec(content);
  if (flags !== null) {
    block.flags = content.startsWith("[") ? [] : content.slice(0, content.indexOf("MTU:")).trim().split(/\s+/);
    block.mtu = Number(flags[1]);
    return true;
  }
  const address = content.startsWith("inet6") ? inet6(line, content) : inet(line, content);
  if (address === undefined) return false;
  block.addresses.push(address);
  return true;
}

function inet(line: number, content: string): IfconfigAddress | undefined {
  const modern = NEW_INET.exec(content);
  const old = modern === null ? OLD_INET.exec(content) : null;
  const [address, mask, word, other] =
    modern !== null
      ? [modern[1], modern[2], modern[3], modern[4]]
      : old !== null
        ? [old[1], old[4], old[2], old[3]]
        : [undefined, undefined, undefined, undefined];
  const prefixLength = maskLength(mask ?? "");
  const maskKnown = prefixLength !== undefined || isMasked(mask ?? "");
  if (address === undefined || !maskKnown || readFamily(address, "ipv4") !== "ipv4") return undefined;
  const peer = word === "destination" || word === "P-t-P" ? other : undefined;
  const broadcast = peer === undefined && other !== "0.0.0.0" ? other : undefined;
  return { line, family: "ipv4", address, ...present({ prefixLength, peer, broadcast }) };
}

function inet6(line: number, content: string): IfconfigAddress | undefined {
  const match = NEW_INET6.exec(content);
  const parsed = match !== null ? readPrefix(`${match[1]}/${match[2]}`, "ipv6") : readPrefix(OLD_INET6.exec(content)?.[1] ?? "", "ipv6");
  const scope = match?.[3] ?? OLD_INET6.exec(content)?.[2];
  if (parsed?.length === undefined || parsed.family !== "ipv6" || scope === undefined) return undefined;
  return { line, family: "ipv6", address: parsed.address, prefixLength: parsed.length, scope: scope.toLowerCase() };
}

/** `RX packets 3  bytes 224 (224.0 B)`, `TX errors 0  dropped 0 overruns 0 …`, `RX packets:3 errors:0 …`, `RX bytes:224 (224.0 B)  TX bytes:184 (184.0 B)` */
function counts(block: IfconfigBlock, line: number, content: string): boolean {
  let direction = "";
  let name = "";
  for (const word of content
    .replace(/\([^()]{0,40}\)/g, "")
    .trim()
    .split(/[\s:]+/)) {
    if (word === "RX" || word === "TX") direction = word.toLowerCase();
    else if (/^[a-z]{1,20}$/.test(word)) name = word;
    else if (/^\d{1,20}$/.test(word) && name !== "") block.counters[`${direction} ${name}`] = Math.min(Number(word), Number.MAX_SAFE_INTEGER);
    else return false;
  }
  block.countersLine ??= line;
  return true;
}
