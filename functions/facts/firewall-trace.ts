import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { keeperOf } from "./packet-path-keeper.ts";
import { trafficOf } from "./packet-path-probes.ts";
import { present } from "./present.ts";

/**
 * Packets that the firewall took while somebody watched it (`nft monitor trace`, `xtables-monitor --trace`); the first of each way and place. netcheck itself traces nothing.
 *
 *     trace id b29969c1 ip filter FORWARD packet: iif "cni0" oif "flannel.1" ether saddr … ip saddr 10.244.1.3 ip daddr 10.244.2.7 … ip protocol udp … udp dport 53
 *     trace id b29969c1 ip filter FORWARD policy drop
 */
const Taken = z.object({
  /** What decided: a rule or the policy. */
  line: z.int(),
  family: z.enum(["ip", "ip6", "inet"]),
  table: z.string(),
  chain: z.string(),
  /** No rule decided, but the policy of the chain. */
  byPolicy: z.boolean(),
  /** As printed; empty for a policy. */
  rule: z.string(),
  /** The chains of this table through which it came, and those that it was sent to: of a chain in which no rule matched nothing is printed. */
  via: z.array(z.string()),
  /** Which program keeps the chain or table, where its name tells; absent for the host's own. */
  keeper: z.string().optional(),
  inInterface: z.string().optional(),
  /** Absent for packets to the node itself. */
  outInterface: z.string().optional(),
  /** Whose interfaces they are, as in packet-path; absent for the node's own. */
  inNetwork: z.string().optional(),
  outNetwork: z.string().optional(),
  source: z.string(),
  destination: z.string(),
  /** As printed: "udp", "icmp". */
  protocol: z.string().optional(),
  destinationPort: z.int().optional(),
  /** How many such packets were taken. */
  count: z.int(),
});
const FirewallTrace = z.object({ rows: z.array(Taken) });
type Taken = z.infer<typeof Taken>;
type Place = Pick<Taken, "family" | "table" | "chain" | "byPolicy" | "rule">;
type Packet = Pick<Taken, "inInterface" | "outInterface" | "source" | "destination" | "protocol" | "destinationPort">;

const MAX_ROWS = 100;
/** Packets that are on their way at one time. */
const MAX_OPEN = 1000;
const MAX_VIA = 40;

const NFT = /^\s{0,8}trace id ([0-9a-f]{1,16}) (ip6?|inet) (\S{1,64}) (\S{1,64}) (packet: |rule |policy )(.{0,1500})$/;
const XTABLES_PACKET = /^\s{0,8}PACKET: \d{1,2} ([0-9a-f]{1,16}) (.{1,600})$/;
const XTABLES_VERDICT =
  /^\s{0,8}TRACE: (\d{1,2}) ([0-9a-f]{1,16}) ([^:\s]{1,64}):([^:\s]{1,64}):(rule|policy):(?:0x[0-9a-f]{1,8}:)?([A-Z]{1,16})\b\s{0,4}(.{0,600})$/;

export const firewallTrace = defineFact({
  id: "firewall-trace",
  title: "Packets that the firewall took while somebody traced it: nft monitor trace, xtables-monitor (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    const traced = (argv[0] === "nft" && argv.includes("monitor")) || argv[0] === "xtables-monitor";
    return traced ? { format: "text", complete: true, scope: argv.slice(1).join(" ").slice(0, 200), rank: 1 } : undefined;
  },
  schema: FirewallTrace,
  // a watch ends with the key that stops it
  answered: () => true,
  parse({ text }) {
    const rows = new Map<string, Taken>();
    const open = new Map<string, { packet: Packet; table: string; via: Set<string> }>();
    const seen = (id: string, packet: Packet | undefined): void => {
      if (packet !== undefined && (open.has(id) || open.size < MAX_OPEN)) open.set(id, { packet, table: "", via: new Set() });
    };
    const pass = (id: string, taken: boolean, line: number, place: Place, target: string | undefined): void => {
      const way = open.get(id);
      if (way === undefined) return;
      if (way.table !== place.table) way.via.clear();
      way.table = place.table;
      for (const chain of [place.chain, target]) if (chain !== undefined && way.via.size < MAX_VIA) way.via.add(chain);
      if (!taken) return;
      open.delete(id);
      const { packet, via } = way;
      const key = [place.family, place.table, place.chain, place.rule, ...Object.values(packet)].join(" ");
      const known = rows.get(key);
      if (known !== undefined) known.count++;
      else if (rows.size < MAX_ROWS) rows.set(key, { line, ...place, ...packet, via: [...via], ...whose(place, packet), count: 1 });
    };
    for (const { line, text: content } of lines(text)) {
      const [, id = "", family, table = "", chain = "", kind, rest = ""] = NFT.exec(content) ?? [];
      if (kind === "packet: ") seen(id, nftPacket(rest));
      else if (family !== undefined) {
        const byPolicy = kind === "policy ";
        const taken = byPolicy ? rest.trim() === "drop" : rest.trimEnd().endsWith("(verdict drop)");
        const rule = byPolicy ? "" : rest.replace(/\s{0,4}\(verdict drop\)\s{0,4}$/, "").slice(0, 400);
        const target = /\(verdict (?:jump|goto) (\S{1,64})\)/.exec(rest)?.[1];
        pass(id, taken, line, { family: family as Taken["family"], table, chain, byPolicy, rule }, target);
      }
      const [, packetId = "", fields] = XTABLES_PACKET.exec(content) ?? [];
      if (fields !== undefined) seen(packetId, xtablesPacket(fields));
      const [, protocol, passed = "", inTable = "", inChain = "", by, verdict, rule = ""] = XTABLES_VERDICT.exec(content) ?? [];
      if (by === undefined) continue;
      const byPolicy = by === "policy";
      const target = verdict === "JUMP" || verdict === "GOTO" ? /^:?(\S{1,64})/.exec(rule)?.[1] : undefined;
      pass(
        passed,
        verdict === "DROP",
        line,
        { family: protocol === "10" ? "ip6" : "ip", table: inTable, chain: inChain, byPolicy, rule: byPolicy ? "" : rule.trim() },
        target,
      );
    }
    return new UnparsedLines().with({ rows: [...rows.values()] });
  },
});

const whose = ({ family, table, chain }: Pick<Taken, "family" | "table" | "chain">, { inInterface, outInterface }: Packet): Partial<Taken> =>
  present({
    keeper: keeperOf(`${family} ${table}`, chain),
    inNetwork: inInterface === undefined ? undefined : trafficOf(inInterface),
    outNetwork: outInterface === undefined ? undefined : trafficOf(outInterface),
  });

function nftPacket(text: string): Packet | undefined {
  const source = / ip6? saddr (\S{2,45})/.exec(text)?.[1];
  const destination = / ip6? daddr (\S{2,45})/.exec(text)?.[1];
  if (source === undefined || destination === undefined) return undefined;
  const port = / (?:tcp|udp|sctp) dport (\d{1,5})\b/.exec(text)?.[1];
  const protocol =
    / (tcp|udp|sctp) dport /.exec(text)?.[1] ?? / (icmp(?:v6)?) type /.exec(text)?.[1] ?? / (?:ip protocol|ip6 nexthdr) (\S{1,12})/.exec(text)?.[1];
  return {
    source,
    destination,
    ...present({
      inInterface: /\biif "([^"]{1,15})"/.exec(text)?.[1],
      outInterface: /\boif "([^"]{1,15})"/.exec(text)?.[1],
      protocol,
      destinationPort: port === undefined ? undefined : Number(port),
    }),
  };
}

function xtablesPacket(text: string): Packet | undefined {
  const field = (name: string): string | undefined => new RegExp(`(?:^|\\s)${name}=(\\S{1,45})`).exec(text)?.[1];
  const source = field("SRC");
  const destination = field("DST");
  if (source === undefined || destination === undefined) return undefined;
  const port = field("DPORT") ?? field("DPT");
  return {
    source,
    destination,
    ...present({
      inInterface: field("IN"),
      outInterface: field("OUT"),
      protocol: field("PROTO")?.toLowerCase(),
      destinationPort: port !== undefined && /^\d{1,5}$/.test(port) ? Number(port) : undefined,
    }),
  };
}
