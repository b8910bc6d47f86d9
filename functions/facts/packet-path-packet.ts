import { CARD } from "./card-name.ts";
import type { Family } from "./ip-address.ts";
import { type Overlap, overlap, type Range, rangeOf } from "./ip-range.ts";
import { portNamed } from "./service-name.ts";

/** A packet that is thought through the firewall of a node. What is left out is unknown, and a rule that asks for it may match or not. */
export interface Packet {
  readonly family: Family;
  /** Which way it takes: through the node, to one of its own processes, or from one. */
  readonly hook: "forward" | "input" | "output";
  /** Where it comes in; none at "output". */
  readonly inInterface?: string;
  /** Where it goes out; none at "input". */
  readonly outInterface?: string;
  /** An address, or a prefix: some address in it. */
  readonly source?: string;
  readonly destination?: string;
  /** As iptables-save names it: "tcp", "udp", "icmp", "ipencap", … */
  readonly protocol: string;
  readonly sourcePort?: number;
  readonly destinationPort?: number;
  /** What conntrack says of it. */
  readonly state: "NEW" | "ESTABLISHED" | "INVALID" | "UNTRACKED";
  /** The packet mark it comes with; 0 unless told. */
  readonly mark?: number;
  /** A frame that one bridge passes from port to port (bridge-nf-call-iptables=1); the ports where they are known. */
  readonly bridged?: { readonly inPort?: string; readonly outPort?: string };
}

/** True, false, or why it cannot be told. */
export type Answer = boolean | Doubt;
/** Why something cannot be told, in words. */
export type Doubt = string;

/** A packet while it goes: what rules changed of it, and its addresses as numbers. */
export interface Flow {
  readonly packet: Packet;
  /** undefined: unknown. */
  readonly source: Range | undefined;
  readonly destination: Range | undefined;
  /** At "prerouting" no rule can know where it goes out. */
  stage: Stage;
}
export type Stage = "prerouting" | "input" | "forward" | "output" | "postrouting";

/** What a packet carries from rule to rule. Bits of `unknown` are bits of the mark that may be either. */
export interface Marks {
  readonly mark: number;
  readonly unknown: number;
  /** A rule said NOTRACK: conntrack's state is UNTRACKED from then on. "maybe": it cannot be told. */
  readonly untracked: boolean | "maybe";
}

/** The packet at the start of its way. */
export function flowOf(packet: Packet): Flow {
  return {
    packet,
    source: packet.source === undefined ? undefined : rangeOf(packet.source),
    destination: packet.destination === undefined ? undefined : rangeOf(packet.destination),
    stage: "prerouting",
  };
}

/** Unsigned 32 bits. */
export const u32 = (value: number): number => value >>> 0;

/** The one answer of conditions that must all hold: false beats doubt. */
export function all(answers: Iterable<Answer>): Answer {
  let doubt: Doubt | undefined;
  for (const answer of answers) {
    if (answer === false) return false;
    if (answer !== true) doubt ??= answer;
  }
  return doubt ?? true;
}

/** The one answer of conditions of which one must hold: true beats doubt. */
export function any(answers: Iterable<Answer>): Answer {
  let doubt: Doubt | undefined;
  for (const answer of answers) {
    if (answer === true) return true;
    if (answer !== false) doubt ??= answer;
  }
  return doubt ?? false;
}

/** The contrary; a doubt stays one. */
export const not = (answer: Answer): Answer => (typeof answer === "boolean" ? !answer : answer);
export const negatedIf = (negated: boolean, answer: Answer): Answer => (negated ? not(answer) : answer);

const ANSWERS: Readonly<Record<Overlap, boolean | undefined>> = { inside: true, apart: false, partly: undefined };

/** Addresses that no packet of a probe has, even if nothing else is known of it: loopback, multicast, broadcast. */
const NOBODY = ["127.0.0.0/8", "224.0.0.0/3", "::1/128", "ff00::/8"].map((text) => rangeOf(text) as Range);

/** Does an address that is only known to be in `known` lie in `asked` (an address, prefix or range as text)? */
export function inRange(known: Range | undefined, asked: string): Answer {
  const range = rangeOf(asked);
  if (range === undefined) return `what ${asked} stands for is not known`;
  if (known === undefined) return !NOBODY.some((special) => overlap(range, special) === "inside") && `the rule asks for ${asked}`;
  return ANSWERS[overlap(known, range)] ?? `the rule asks for ${asked}`;
}

/** Stand for interfaces whose name is not known: one behind which pods are, and the one of the default route. */
export const SOME_POD = "?pod";
export const SOME_UPLINK = "?uplink";
/** The latter, with the name that it most likely has. */
export const someUplink = (name: string | undefined): string => (name === undefined ? SOME_UPLINK : `${SOME_UPLINK} ${name}`);
/** What is surely not: the first no interface with pods, the second no interface with the default route. */
const NO_POD = new RegExp(
  String.raw`^(?:lo|docker0|br-[0-9a-f]{1,12}|virbr|lxdbr|tailscale|wg|tun\d|${CARD}|bond|team|wl|kube-ipvs0|nodelocaldns|dummy|flannel|vxlan|cilium_|tunl0)`,
);
const NO_UPLINK = /^(?:lo$|docker0|br-[0-9a-f]{1,12}|virbr|lxdbr|cni|cbr0|cali|lxc|veth|kube-|weave|flannel|vxlan|cilium_|tunl0|nodelocaldns|dummy|azure0|azv)/;

/** Is the interface the one that is asked for? `asked` may end in the wildcard `+` (iptables) or `*` (nft). */
export function isInterface(name: string | undefined, asked: string, wildcard: "+" | "*"): Answer {
  if (name === undefined) return false;
  if (name === SOME_POD || name === SOME_UPLINK) {
    if (asked === wildcard) return true;
    return !(name === SOME_POD ? NO_POD : NO_UPLINK).test(asked) && `the rule asks for the interface ${asked}`;
  }
  const known = name.startsWith(`${SOME_UPLINK} `) ? name.slice(SOME_UPLINK.length + 1) : name;
  return asked.endsWith(wildcard) ? known.startsWith(asked.slice(0, -1)) : known === asked;
}

/** Is a packet's source port in a list (see {@link inPorts})? Where it is not known, a program chose it, or the tunnel did: then it is none of the ports below 1024, which servers have. */
export function inSourcePorts(port: number | undefined, asked: string): Answer {
  if (port !== undefined) return inPorts(port, asked);
  const ends = asked.split(/[,:-]/).map((part) => portNumber(part.trim()) ?? Number.MAX_SAFE_INTEGER);
  return !ends.every((end) => end < 1024) && `the rule asks for port ${asked}`;
}

/** Is a port in a list such as `80`, `30000:32767`, `53,5353`, `1000-2000`? */
export function inPorts(port: number | undefined, asked: string): Answer {
  if (port === undefined) return `the rule asks for port ${asked}`;
  return any(asked.split(",").map((part) => inPort(port, part.trim())));
}

function inPort(port: number, asked: string): Answer {
  const [from = "", to] = asked.split(/[:-]/, 2);
  // 0: and :1024 leave an end out.
  const [low, high] = [from === "" ? 0 : portNumber(from), to === undefined ? portNumber(from) : to === "" ? 65_535 : portNumber(to)];
  if (low === undefined || high === undefined) return `which port ${asked} is, is not known`;
  return port >= low && port <= high;
}

const portNumber = (text: string): number | undefined => (/^\d{1,5}$/.test(text) ? Number(text) : portNamed(text));

/** Is (mark & mask) == value? */
export function hasMark({ mark, unknown }: Marks, value: number, mask: number): Answer {
  const surely = u32(mask & ~unknown);
  if (u32(mark & surely) !== u32(value & surely)) return false;
  if (u32(value & ~mask) !== 0) return false;
  return u32(mask & unknown) === 0 || "the mark depends on a rule that could not be worked out";
}

/** The mark after `mark = (mark & ~mask) ^ value`, as iptables' --set-xmark does it. */
export function withMark(marks: Marks, value: number, mask: number): Marks {
  return { ...marks, mark: u32((marks.mark & ~mask) ^ value), unknown: u32(marks.unknown & ~mask) };
}

/** What is known if it is not known which of the two it is. */
export function either(a: Marks, b: Marks): Marks {
  if (a === b) return a;
  const unknown = u32(a.unknown | b.unknown | (a.mark ^ b.mark));
  return { mark: u32(a.mark & ~unknown), unknown, untracked: a.untracked === b.untracked ? a.untracked : "maybe" };
}

/** Conntrack's view of the packet: one of `states` (upper case). DNAT and SNAT are asked for by the same match. */
export function inStates(packet: Packet, { untracked }: Marks, states: readonly string[]): Answer {
  const translated = states.some((state) => state === "DNAT" || state === "SNAT");
  const asked = (state: string): Answer =>
    states.includes(state) || (translated && state !== "UNTRACKED" && packet.state !== "NEW" ? "the rule asks for translated connections" : false);
  if (untracked === true) return asked("UNTRACKED");
  const tracked = asked(packet.state);
  return untracked === "maybe" && tracked !== asked("UNTRACKED") ? "whether the packet is tracked could not be worked out" : tracked;
}
