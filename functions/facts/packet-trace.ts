import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { TcpTrace, Unanswered, Untranslated } from "./tcp-trace.ts";

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
const Trace = z.object({
  carriers: z.array(Carrier),
  refusals: z.array(Refusal),
  untranslated: z.array(Untranslated),
  unanswered: z.array(Unanswered),
});
type Trace = z.infer<typeof Trace>;

const ADDRESS = "(\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}\\.\\d{1,3})";
/** Names that tcpdump prints for the ports. */
const PORTS: Readonly<Record<string, number>> = { otv: 8472, "8472": 8472, vxlan: 4789, "4789": 4789, geneve: 6081, "6081": 6081 };
// with -v the addresses stand on a line of their own
const CARRIER = new RegExp(`(?:^|\\bIP |\\s)${ADDRESS}\\.[\\w-]{1,20} > ${ADDRESS}\\.(otv|8472|vxlan|4789|geneve|6081): `);
const REFUSED = new RegExp(
  `(?:^|\\bIP |\\s)${ADDRESS} > ${ADDRESS}: ICMP (?:host )?${ADDRESS} (?:udp port (\\w{1,12}) )?unreachable( - admin prohibited(?: filter)?)?`,
);
/** Rows of each kind. */
const MAX_ROWS = 200;

export const packetTrace = defineFact({
  id: "packet-trace",
  title: "Packets of tunnels, refusals, and TCP packets that went astray, seen with tcpdump (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    return argv[0] === "tcpdump" ? { format: "text", complete: true, scope: argv.slice(1).join(" ").slice(0, 200), rank: 1 } : undefined;
  },
  schema: Trace,
  answered: ({ text, exitCode }) => exitCode === undefined || exitCode === 0 || text.trim() !== "",
  parse({ text, argv }) {
    const value: Trace = { carriers: [], refusals: [], untranslated: [], unanswered: [] };
    const tcp = new TcpTrace(argv);
    // every other packet is about other things
    for (const { line, text: content } of lines(text)) {
      if (content.length > 600) continue;
      tcp.add(line, content);
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
          value.refusals.push({ line, source, destination, reason: "port", ...(number === undefined ? {} : { port: number }) });
        }
      }
    }
    return new UnparsedLines().with({ ...value, untranslated: tcp.untranslated, unanswered: tcp.unanswered() });
  },
});
