import { z } from "zod";
import { readMac } from "./mask.ts";

/**
 * A packet of a service's endpoint that reached the client with the endpoint's own address, and the client's reset of it (`reset`): connection tracking did not
 * translate the packet back.
 *
 *     10:31:22.121960 IP 10.0.5.17.8080 > 10.0.3.41.38822: Flags [.], seq 1409025:1416113, ack 189, win 511, length 7088
 *     10:31:22.121982 IP 10.0.3.41.38822 > 10.0.5.17.8080: Flags [R], seq 2210331874, win 0, length 0
 */
export const Untranslated = z.object({
  line: z.int(),
  client: z.string(),
  endpoint: z.string(),
  /** The address that the client talks to. */
  service: z.string(),
  reset: z.boolean(),
});

/** The same SYN, or the same data, sent again to a hardware address (tcpdump -e), with no packet back in the whole trace. */
export const Unanswered = z.object({
  /** Of the second time. */
  line: z.int(),
  /** Where the frames were sent. Lower case, colons. */
  mac: z.string(),
  source: z.string(),
  destination: z.string(),
});

/** A SYN that was sent again, or echo requests of one ping, with no packet back in the whole trace. */
export const Silent = z.object({
  /** Of the second time. */
  line: z.int(),
  source: z.string(),
  destination: z.string(),
  /** Where it came in, as far as the trace tells: of one interface, or of all with their names. */
  interface: z.string().optional(),
});

interface Packet {
  readonly line: number;
  readonly from: string;
  readonly to: string;
  readonly flags: string;
  /** Sequence numbers and length as printed; "" where there are none. */
  readonly sequence: string;
  /** Bytes of data. */
  readonly length: number;
  readonly mac: string | undefined;
}

const ENDPOINT = "(\\d{1,3}(?:\\.\\d{1,3}){3}\\.[\\w-]{1,20})";
const TCP = new RegExp(`(?:^|\\s)${ENDPOINT} > ${ENDPOINT}: Flags \\[([A-Z.]{1,8})\\](.{0,300})`);
/** An echo request or reply is like a packet from one end to the other, with the number of the ping as port. */
const ECHO = /(?:^|\s)(\d{1,3}(?:\.\d{1,3}){3}) > (\d{1,3}(?:\.\d{1,3}){3}): ICMP echo (request|reply), id (\d{1,5}), seq \d/;
const FRAME = /(?:^|\s)[\da-f:]{17} > ([\da-f:]{17}), ethertype \S/i;
/** Filters that show one direction of a connection, or only some of its packets. */
const ONE_WAY = /\b(?:src|dst|inbound|outbound|ether|greater|less)\b|\[|(?:^|\s)-Q/;
/** Ends of connections that are told apart, and rows of each kind. */
const MAX_ENDS = 4000;
const MAX_ROWS = 100;
/** Whom one end talks to: a client has a service and its endpoint. */
const MAX_PEERS = 8;

const addressOf = (end: string): string => end.slice(0, end.lastIndexOf("."));

/** Reads a trace of tcpdump line by line: what happened to TCP connections and to pings. */
export class TcpTrace {
  readonly untranslated: z.infer<typeof Untranslated>[] = [];
  readonly #oneWay: boolean;
  readonly #ends = new Map<string, End>();
  readonly #sent = new Map<string, { readonly mac: string; readonly line: number; again: number }>();
  readonly #knocked = new Map<string, { again: number }>();
  readonly #pairs = new Set<string>();
  /** With -v the hardware addresses stand on the line before. */
  #frame: string | undefined;

  /** @param argv the tcpdump command: its filter tells whether answers would be seen */
  constructor(argv: readonly string[]) {
    this.#oneWay = ONE_WAY.test(argv.slice(1).join(" "));
  }

  /** Takes one line of at most 600 characters; lines that are no TCP packets and no pings are of no interest. */
  add(line: number, text: string): void {
    const [, pinging, pinged, kind, id] = ECHO.exec(text) ?? [];
    if (pinging !== undefined && this.#pairs.size < MAX_ENDS) this.#pairs.add(`${pinging}.${id} ${pinged}.${id}`);
    if (kind === "request" && !this.#oneWay) this.#knock(line, `${pinging}.${id} ${pinged}.${id} ping`);
    const frame = readMac(FRAME.exec(text)?.[1] ?? "");
    const [, from, to, flags = "", rest = ""] = TCP.exec(text) ?? [];
    if (from === undefined || to === undefined) {
      this.#frame = frame;
      return;
    }
    const sequence = /\bseq (\d{1,12}(?::\d{1,12})?)/.exec(rest)?.[1] ?? "";
    const length = Number(/, length (\d{1,6})/.exec(rest)?.[1] ?? 0);
    this.#packet({ line, from, to, flags, sequence, length, mac: frame ?? this.#frame });
    this.#frame = undefined;
  }

  /** Packets that were sent again and never answered. Call it at the end of the trace. */
  unanswered(): z.infer<typeof Unanswered>[] {
    const rows: z.infer<typeof Unanswered>[] = [];
    for (const [key, { mac, again }] of this.#sent) {
      const [from = "", to = ""] = key.split(" ");
      if (again > 0 && !this.#pairs.has(`${to} ${from}`) && rows.length < MAX_ROWS)
        rows.push({ line: again, mac, source: addressOf(from), destination: addressOf(to) });
    }
    return rows;
  }

  /** Attempts to connect, and pings, that nobody answered: source and destination once each. Call it at the end of the trace. */
  silent(): z.infer<typeof Silent>[] {
    const rows = new Map<string, z.infer<typeof Silent>>();
    for (const [key, { again }] of this.#knocked) {
      const [from = "", to = ""] = key.split(" ");
      const way = `${addressOf(from)} ${addressOf(to)}`;
      if (again > 0 && !this.#pairs.has(`${to} ${from}`) && !rows.has(way) && rows.size < MAX_ROWS)
        rows.set(way, { line: again, source: addressOf(from), destination: addressOf(to) });
    }
    return [...rows.values()];
  }

  #packet(packet: Packet): void {
    const { from, to } = packet;
    if (this.#pairs.size < MAX_ENDS) this.#pairs.add(`${from} ${to}`);
    this.#count(packet);
    const [sender, receiver] = [this.#end(from), this.#end(to)];
    if (sender === undefined || receiver === undefined) return;
    if (packet.flags.includes("R")) this.#reset(packet, sender);
    sender.sent(packet);
    receiver.received(packet);
  }

  #end(name: string): End | undefined {
    const known = this.#ends.get(name);
    if (known !== undefined || this.#ends.size >= MAX_ENDS) return known;
    const end = new End();
    this.#ends.set(name, end);
    return end;
  }

  #knock(line: number, key: string): void {
    const knocked = this.#knocked.get(key);
    if (knocked !== undefined) knocked.again = line;
    else if (this.#knocked.size < MAX_ENDS) this.#knocked.set(key, { again: 0 });
  }

  #count({ line, from, to, flags, sequence, length, mac }: Packet): void {
    if (!this.#oneWay && flags === "S") this.#knock(line, `${from} ${to} ${sequence}`);
    // a keepalive repeats no more than one byte
    if (this.#oneWay || mac === undefined || sequence === "" || !(flags === "S" || (length > 1 && /^P?\.$/.test(flags)))) return;
    const key = `${from} ${to} ${flags} ${sequence} ${mac}`;
    const before = this.#sent.get(key);
    if (before !== undefined) before.again ||= line;
    else if (this.#sent.size < MAX_ENDS) this.#sent.set(key, { mac, line, again: 0 });
  }

  /**
   * A client talks to a service, both ways were seen, and nobody ended it. Now it resets what came from an endpoint, and the packet did not come a second time
   * with the service's address. A client that gives up a service would have reset that.
   */
  #reset({ line, from, to }: Packet, client: End): void {
    const endpoint = client.peers.get(to);
    if (endpoint === undefined || endpoint.from === 0 || endpoint.ended || this.untranslated.length >= MAX_ROWS) return;
    // the node's side shows each packet of the client before and after the translation, the pod's side only before
    if (endpoint.to !== 0 && endpoint.translationOf === undefined) return;
    for (const [name, service] of client.peers) {
      if (addressOf(name) === addressOf(to) || service.from === 0 || service.to === 0 || service.ended || service.from > endpoint.from) continue;
      if (endpoint.translationOf !== undefined && endpoint.translationOf !== name) continue;
      const row = { client: addressOf(from), endpoint: addressOf(to), service: addressOf(name) };
      this.untranslated.push({ line: endpoint.from, ...row, reset: false }, { line, ...row, reset: true });
      return;
    }
  }
}

interface Peer {
  /** Lines of the last packet from it and to it; 0: none. */
  from: number;
  to: number;
  /** One of both closed or reset the connection. */
  ended: boolean;
  /** Packets to it are those to this peer, translated. */
  translationOf: string | undefined;
}

/** One end of connections: an address with a port. */
class End {
  readonly peers = new Map<string, Peer>();
  #last: { readonly to: string; readonly packet: string } | undefined;

  sent({ line, to, flags, length }: Packet): void {
    const peer = this.#peer(to);
    if (peer === undefined) return;
    const packet = `${flags} ${length}`;
    if (this.#last !== undefined && this.#last.to !== to && this.#last.packet === packet && !flags.includes("R")) peer.translationOf ??= this.#last.to;
    this.#last = { to, packet };
    peer.to = line;
    peer.ended ||= /[RF]/.test(flags);
  }

  received({ line, from, flags }: Packet): void {
    const peer = this.#peer(from);
    if (peer === undefined) return;
    peer.from = line;
    peer.ended ||= /[RF]/.test(flags);
  }

  #peer(name: string): Peer | undefined {
    const known = this.peers.get(name);
    if (known !== undefined || this.peers.size >= MAX_PEERS) return known;
    const peer: Peer = { from: 0, to: 0, ended: false, translationOf: undefined };
    this.peers.set(name, peer);
    return peer;
  }
}
