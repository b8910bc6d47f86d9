import { z } from "zod";
import { byWord } from "./by-word.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { present } from "./present.ts";
import { Silent, TcpTrace, Unanswered, Untranslated } from "./tcp-trace.ts";

/**
 * Packets of tunnels between nodes, refusals of packets, and TCP packets that went astray, as somebody saw them with tcpdump. netcheck itself records no packets.
 *
 *     21:14:08.400187 IP 192.0.2.72.41622 > 192.0.2.73.8472: OTV, flags [I] (0x08), overlay 0, instance 1
 *     21:14:08.400239 IP 192.0.2.73 > 192.0.2.72: ICMP host 192.0.2.73 unreachable - admin prohibited filter, length 142
 */
const Carrier = z.object({
  line: z.int(),
  source: z.string(),
  destination: z.string(),
  /** UDP port that it goes to: 8472 and 4789 (VXLAN), 6081 (Geneve). */
  port: z.int(),
});
/** A VXLAN packet whose outer checksum was wrong where it was seen (with -v); the first of each way. Names where tcpdump looked them up. */
const Damaged = z.object({
  line: z.int(),
  source: z.string(),
  destination: z.string(),
  port: z.int(),
  /**
   * Packets of this way with the checksum 0xffff: that is what address translation of kernels before 5.7 makes of "no checksum". What a card has still to fill in
   * looks like any other number.
   */
  ones: z.int().optional(),
});
const Refusal = z.object({
  line: z.int(),
  /** Who refuses. */
  source: z.string(),
  /** Whose packet it was. */
  destination: z.string(),
  /** "admin-prohibited": a firewall said no. "port": no program or device has the port. */
  reason: z.enum(["admin-prohibited", "port"]),
  /** Of a refused port. */
  port: z.int().optional(),
});
/**
 * A TCP reset, of either end.
 *
 *     15:02:11.448141 IP 10.180.2.14.43772 > 198.51.100.40.80: Flags [R], seq 3351170912, win 0, length 0
 */
const Reset = z.object({
  line: z.int(),
  /** Who resets. */
  source: z.string(),
  sourcePort: z.int().optional(),
  destination: z.string(),
  destinationPort: z.int().optional(),
  /** It acknowledges nothing: the answer to a packet of a connection that the one who resets does not have. */
  bare: z.boolean().optional(),
});

/**
 * Packets that came in by an interface, as a trace of all interfaces (`-i any`) tells; the first of each interface, source and destination.
 *
 *     09:30:14.251877 ens4  In  IP 172.17.64.141 > 172.17.0.83: ICMP echo reply, id 41, seq 1, length 64
 */
const Arrival = z.object({ line: z.int(), interface: z.string(), source: z.string(), destination: z.string() });

/**
 * Packets that the kernel threw away by its reverse path check, as those say who trace where packets end (perf, dropwatch, pwru, trace_pipe): the first line.
 *
 *     0.000 swapper/0 skb:kfree_skb(skbaddr: 0xffff8f1c0211c700, location: 0xffffffff9a6f11c2, protocol: 2048, reason: IP_RPFILTER)
 */
const Filtered = z.object({ line: z.int(), count: z.int() });
/** The same of packets for which a CPU's backlog had no room: the first line, and how many there were. `812 drops at enqueue_to_backlog+e4 (0xffffffff8a1b2ee4) [software]` */
const Overflowed = z.object({ line: z.int(), count: z.int() });

/**
 * TCP data that a router on the way refused as too large, and that was sent again as large as before: the sender does not hear the router, or does not believe it.
 *
 *     14:10:01.022301 IP 10.6.0.1 > 10.6.0.12: ICMP 203.0.113.80 unreachable - need to frag (mtu 1400), length 556
 */
const TooLarge = z.object({
  line: z.int(),
  router: z.string(),
  source: z.string(),
  destination: z.string(),
  /** What the router says fits. */
  mtu: z.int(),
  /** Bytes of data that were sent again after that, and how often. */
  length: z.int(),
  times: z.int(),
});

const Trace = z.object({
  carriers: z.array(Carrier),
  damaged: z.array(Damaged),
  refusals: z.array(Refusal),
  resets: z.array(Reset),
  arrivals: z.array(Arrival),
  untranslated: z.array(Untranslated),
  unanswered: z.array(Unanswered),
  silent: z.array(Silent),
  filtered: z.array(Filtered).optional(),
  overflowed: z.array(Overflowed).optional(),
  tooLarge: z.array(TooLarge).optional(),
});
type Trace = z.infer<typeof Trace>;

const ADDRESS = "(\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}\\.\\d{1,3})";
/** Names that tcpdump prints for the ports. */
const PORTS = byWord<number>({ otv: 8472, "8472": 8472, vxlan: 4789, "4789": 4789, geneve: 6081, "6081": 6081 });
// with -v the addresses stand on a line of their own
const CARRIER = new RegExp(`(?:^|\\bIP |\\s)${ADDRESS}\\.[\\w-]{1,20} > ${ADDRESS}\\.(otv|8472|vxlan|4789|geneve|6081): `);
const DAMAGED = /(?:^|\s)([\w.:-]{1,253})\.[\w-]{1,20} > ([\w.:-]{1,253})\.(otv|8472|vxlan|4789): \[bad udp cksum (0x[0-9a-f]{1,4})\b/;
const REFUSED = new RegExp(
  `(?:^|\\bIP |\\s)${ADDRESS} > ${ADDRESS}: ICMP (?:host )?${ADDRESS} (?:udp port (\\w{1,12}) )?unreachable( - admin prohibited(?: filter)?)?`,
);
/** Also as tcpdump 3 prints it: `…: R 3351170912:3351170912(0) win 0`. A port may be a name. */
const RESET = new RegExp(`(?:^|\\bIP |\\s)${ADDRESS}\\.([\\w-]{1,20}) > ${ADDRESS}\\.([\\w-]{1,20}): (?:Flags \\[R\\.?\\]|R )`);
const ARRIVAL = new RegExp(
  `^\\S{1,40}(?: \\S{1,20})?\\s{1,4}(\\S{1,15})\\s{1,4}In\\s{1,4}IP ${ADDRESS}(?:\\.[\\w-]{1,20})? > ${ADDRESS}(?:\\.[\\w-]{1,20})?: `,
);
const portOf = (text: string): number | undefined => (/^\d{1,5}$/.test(text) ? Number(text) : NAMED_PORTS[text]);
const NAMED_PORTS = byWord<number>({ http: 80, https: 443, domain: 53, "http-alt": 8080 });
/** `-i eth1`, `-nni eth1`, `--interface=eth1`. */
const INTERFACE = /(?:^|\s)(?:-[a-zA-Z]{0,8}i[ =]?|--interface[ =])([A-Za-z0-9_.@-]{1,15})(?=\s|$)/;
/** Rows of each kind. */
const MAX_ROWS = 200;

export const packetTrace = defineFact({
  id: "packet-trace",
  title: "Packets of tunnels, refusals, and TCP packets that went astray, seen with tcpdump (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    const drops = /^(?:perf|dropwatch|pwru|bpftrace|retis)$/.test(argv[0] ?? "") || (argv[0] === "cat" && /\/tracing\/trace(?:_pipe)?$/.test(argv[1] ?? ""));
    if (drops) return { format: "drops", complete: false, scope: argv.join(" ").slice(0, 200), rank: 0 };
    return argv[0] === "tcpdump" ? { format: "text", complete: true, scope: argv.slice(1).join(" ").slice(0, 200), rank: 1 } : undefined;
  },
  schema: Trace,
  parse({ text, argv, view }) {
    const value: Trace = { carriers: [], damaged: [], refusals: [], resets: [], arrivals: [], untranslated: [], unanswered: [], silent: [] };
    if (view.format === "drops") return new UnparsedLines().with({ ...value, ...filteredIn(text), ...overflowedIn(text) });
    const arrived = new Set<string>();
    const tcp = new TcpTrace(argv);
    // every other packet is about other things
    for (const { line, text: content } of lines(text)) {
      if (content.length > 600) continue;
      tcp.add(line, content);
      const [, resetter, from = "", peer = "", to = ""] = RESET.exec(content) ?? [];
      if (resetter !== undefined && value.resets.length < MAX_ROWS) {
        const bare = content.includes("Flags [R],") || undefined;
        value.resets.push({ line, source: resetter, destination: peer, ...present({ sourcePort: portOf(from), destinationPort: portOf(to), bare }) });
      }
      const [, name, sender = "", receiver = ""] = ARRIVAL.exec(content) ?? [];
      const way = `${name} ${sender} ${receiver}`;
      if (name !== undefined && !arrived.has(way) && value.arrivals.length < MAX_ROWS) {
        arrived.add(way);
        value.arrivals.push({ line, interface: name, source: sender, destination: receiver });
      }
      const damaged = content.includes("[bad udp cksum") ? DAMAGED.exec(content) : null;
      if (damaged !== null) addDamaged(value.damaged, line, damaged);
      const carrier = CARRIER.exec(content);
      const refused = carrier === null ? REFUSED.exec(content) : null;
      if (carrier !== null && value.carriers.length < MAX_ROWS) {
        const [, source = "", destination = "", port = ""] = carrier;
        value.carriers.push({ line, source, destination, port: PORTS[port] as number });
      } else if (refused !== null && value.refusals.length < MAX_ROWS) {
        const [, source = "", destination = "", , port, prohibited] = refused;
        if (prohibited !== undefined) value.refusals.push({ line, source, destination, reason: "admin-prohibited" });
        else if (port !== undefined) {
          const number = PORTS[port] ?? (/^\d{1,5}$/.test(port) ? Number(port) : undefined);
          value.refusals.push({ line, source, destination, reason: "port", ...present({ port: number }) });
        }
      }
    }
    const [, name] = INTERFACE.exec(argv.slice(1).join(" ")) ?? [];
    const silent = tcp.silent().map((row) => ({ ...row, ...present({ interface: name === "any" ? undefined : name }) }));
    return new UnparsedLines().with({ ...value, ...tooLargeIn(text), untranslated: tcp.untranslated, unanswered: tcp.unanswered(), silent });
  },
});

/** The kernel's word since 5.18, as tools print it: `reason: IP_RPFILTER`, `SKB_DROP_REASON_IP_RPFILTER`. */
const RPFILTER = /\b(?:SKB_DROP_REASON_)?IP_RPFILTER\b/;

function filteredIn(text: string): Pick<Trace, "filtered"> {
  const hits = [...lines(text)].filter(({ text: content }) => content.length <= 600 && RPFILTER.test(content));
  const [first] = hits;
  return first === undefined ? {} : { filtered: [{ line: first.line, count: hits.length }] };
}

const NEED_TO_FRAGMENT = new RegExp(`(?:^|\\bIP |\\s)${ADDRESS} > ${ADDRESS}: ICMP ${ADDRESS} unreachable - need to frag \\(mtu (\\d{3,5})\\)`);
const DATA = new RegExp(
  `(?:^|\\bIP |\\s)${ADDRESS}\\.([\\w-]{1,20}) > ${ADDRESS}\\.([\\w-]{1,20}): Flags \\[[A-Z.]{1,6}\\], seq (\\d{1,10}):\\d{1,10}, .{0,300}length (\\d{1,5})\\b`,
);
/** The headers of IPv4 and TCP without options. */
const HEADERS = 40;

function tooLargeIn(text: string): Pick<Trace, "tooLarge"> {
  const said = new Map<string, z.infer<typeof TooLarge>>();
  const sent = new Set<string>();
  for (const { line, text: content } of lines(text)) {
    if (content.length > 600) continue;
    const [, router, sender, about, mtu] = NEED_TO_FRAGMENT.exec(content) ?? [];
    const place = `${sender} ${about}`;
    if (router !== undefined && sender !== undefined && about !== undefined && !said.has(place) && said.size < MAX_ROWS)
      said.set(place, { line, router, source: sender, destination: about, mtu: Number(mtu), length: 0, times: 0 });
    const [, source, from, destination, to, sequence, length] = DATA.exec(content) ?? [];
    if (source === undefined) continue;
    const known = said.get(`${source} ${destination}`);
    // a sender that heard the router divides the same data otherwise, even where the card does that
    const segment = [source, from, destination, to, sequence, length].join(" ");
    if (known !== undefined && Number(length) + HEADERS > known.mtu && sent.has(segment)) {
      known.times++;
      known.length = Number(length);
    }
    if (sent.size < 10_000) sent.add(segment);
  }
  const found = [...said.values()].filter((row) => row.times > 0);
  return found.length === 0 ? {} : { tooLarge: found };
}

// a packet's line, or what dropwatch, `uniq -c` or bpftrace (`@[CPU_BACKLOG]: 18222`) counted
const BACKLOG = /^\s{0,8}(\d{1,9}) (?:drops at enqueue_to_backlog\b|(?:SKB_DROP_REASON_)?CPU_BACKLOG$)|\b(?:SKB_DROP_REASON_)?CPU_BACKLOG\b(?:\]: (\d{1,9})$)?/;

function overflowedIn(text: string): Pick<Trace, "overflowed"> {
  const hits = [...lines(text)].flatMap(({ line, text: content }) => {
    const match = content.length > 600 ? null : BACKLOG.exec(content);
    return match === null ? [] : [{ line, count: Number(match[1] ?? match[2] ?? 1) }];
  });
  const [first] = hits;
  return first === undefined ? {} : { overflowed: [{ line: first.line, count: hits.reduce((sum, { count }) => sum + count, 0) }] };
}

/** The first packet of each way, with the number of those whose checksum is 0xffff. */
function addDamaged(rows: Trace["damaged"], line: number, [, source = "", destination = "", port = "", sum]: RegExpExecArray): void {
  const ones = sum === "0xffff" ? 1 : 0;
  const known = rows.find((row) => row.source === source && row.destination === destination);
  if (known !== undefined && ones > 0) known.ones = (known.ones ?? 0) + ones;
  else if (known === undefined && rows.length < MAX_ROWS) rows.push({ line, source, destination, port: PORTS[port] as number, ...(ones > 0 ? { ones } : {}) });
}
