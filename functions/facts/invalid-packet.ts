import { z } from "zod";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { rulesOf } from "./iptables-chains.ts";
import type { Iptables, IptablesRow } from "./iptables-row.ts";
import { type Complaint, complaints } from "./kernel-complaint.ts";
import type { KernelLog } from "./kernel-log.ts";
import type { Nft } from "./nft-row.ts";
import { keeperOf } from "./packet-path-keeper.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";
import { isPrivate } from "./private-address.ts";
import { Untranslated } from "./tcp-trace.ts";

/**
 * Packets of live connections that connection tracking takes for INVALID: the rules that drop them on the way through the node, and what the kernel's log and a
 * trace of tcpdump say where none does. Such a packet is not translated, so it arrives with an address that its receiver does not know, and is reset.
 */
const Drop = z.object({
  line: z.int(),
  /** "iptables" or "nft". */
  owner: z.string(),
  chain: z.string(),
  packets: z.int().optional(),
  /** Between the two samples; of nft only where another rule of the chain counts, too. */
  packetsDelta: z.int().optional(),
  /** The most that a rule of its chain for other packets took between the two samples; 0 where none is known. */
  busiestDelta: z.int(),
  /** No other rule of its chain was counted twice. */
  alone: z.boolean().optional(),
  /** KUBE-FORWARD stands before Cilium's chain, and takes packets that are not its business. */
  misplaced: z.boolean(),
});

/**
 * The newest message of each connection of which the kernel says that a packet is ahead of the receiver's window (it logs them with nf_conntrack_log_invalid).
 *
 *     nf_ct_proto_6: SEQ is over the upper bound (over the window of the receiver) IN= OUT= SRC=198.51.100.40 DST=10.180.2.14 … PROTO=TCP SPT=80 DPT=43772 …
 */
const Overrun = z.object({
  line: z.int(),
  source: z.string(),
  sourcePort: z.int(),
  destination: z.string(),
  destinationPort: z.int(),
  /** Messages about this connection. */
  count: z.int(),
  /** Seconds between the message and the collection, where known. */
  age: z.number().optional(),
  /** Seconds between it and the kernel's newest message that was read; 0 where that is not known. */
  later: z.number(),
  /** tcpdump shows that the receiver answered this connection with a reset. */
  reset: z.boolean(),
});

/**
 * The newest message of each connection of which a firewall notes that it drops the answer to a SYN as INVALID on its way through the node: the SYN went another way.
 *
 *     STATE_INVALID_DROP: IN=br0 OUT=br0 MAC=… SRC=10.50.0.2 DST=192.168.1.120 … PROTO=TCP SPT=22 DPT=51544 WINDOW=65160 RES=0x00 ACK SYN URGP=0
 */
const Unasked = Overrun.omit({ reset: true });

/** What translates addresses of packets that pass the node; one row for each program. */
const Translator = z.object({
  line: z.int(),
  /** "kube-proxy", "cilium", "other". */
  program: z.string(),
});

/** A chain that decides about packets that pass the node: FORWARD, KUBE-FORWARD, chains of nft at the hook forward. */
const Passage = z.object({ line: z.int(), owner: z.string(), chain: z.string(), complete: z.boolean() });

const InvalidPacket = z.object({
  drops: z.array(Drop),
  overruns: z.array(Overrun),
  /** Answers of servers in private networks. */
  unasked: z.array(Unasked),
  /** Resets of such connections, as tcpdump shows them. */
  resets: z.array(z.object({ line: z.int(), source: z.string(), destination: z.string() })),
  /** Packets that came to a client with the endpoint's own address, and its resets; of a trace on the node, or else of one in a pod. */
  untranslated: z.array(Untranslated),
  translators: z.array(Translator),
  passages: z.array(Passage),
  /** Somebody looked for a rule of iptables that drops them, and there is none. */
  searched: z.array(z.object({ line: z.int() })),
});
type InvalidPacket = z.infer<typeof InvalidPacket>;
type Overrun = z.infer<typeof Overrun>;

interface Reset {
  readonly source: string;
  readonly sourcePort?: number;
  readonly destination: string;
  readonly destinationPort?: number;
}
type Astray = z.infer<typeof Untranslated>;
interface Sources {
  readonly iptables?: Iptables;
  readonly nft?: Nft;
  readonly "kernel-log"?: Placed<KernelLog>;
  readonly "packet-trace"?: { readonly resets: readonly (Row & Reset)[]; readonly untranslated: readonly (Row & Astray)[] };
  readonly "pod-trace"?: { readonly untranslated: readonly (Row & Astray)[] };
  readonly "absent-rule"?: { readonly rows: readonly (Row & { of: string; family: string })[] };
  readonly process?: { readonly rows: readonly (Row & { command: string })[] };
}

const OVERRUN = /nf_ct_(?:tcp|proto_6): SEQ is over (?:the )?upper bound/;
const CONNECTION = /\bSRC=([\d.a-fA-F:]{2,45}) DST=([\d.a-fA-F:]{2,45}) .{0,200}?\bSPT=(\d{1,5}) DPT=(\d{1,5})/;
/** What firewalld and people have written in front of a packet on its way through the node: `STATE_INVALID_DROP: `, `BLOCKED INVALID FORWARD:`. */
const REFUSED = /^(.{0,100}?INVALID.{0,100}?)\bIN=\S{1,15} OUT=\S/i;
const REFUSES = /DROP|DEN(?:Y|IED)|BLOCK|REJECT/i;
/** Chains of iptables that only packets on their way through the node pass. */
const FORWARDED = /FORWARD|forward|^DOCKER-USER$|^cali-(?:fw|tw)-/;
/** nft, from JSON and as text: `ct state invalid drop`, `ct state { invalid } drop`, `ct state vmap { invalid : drop, … }`. */
const NFT_INVALID = /\bct state (?:== )?(?:\{ ?)?(?:[a-z]{3,12} ?, ?){0,4}invalid\b/;
const NFT_INVALID_MAP = /\bct state vmap \{[^}]{0,200}\binvalid : (?:drop|(?:jump|goto) \S{1,64})/;
const TRANSLATES = /\b(?:masquerade|snat|dnat)\b/;
/** Rows of each kind. */
const MAX_ROWS = 200;

export const invalidPacket = defineDerivedFact<InvalidPacket>({
  id: "invalid-packet",
  title: "Packets that connection tracking takes for INVALID: who drops them, and what resets them",
  from: ["iptables", "nft", "kernel-log", "packet-trace", "pod-trace", "absent-rule", "process"],
  optional: ["nft", "kernel-log", "packet-trace", "pod-trace", "absent-rule", "process"],
  inPart: ["nft", "kernel-log", "packet-trace", "pod-trace", "absent-rule", "process"],
  masked: ["iptables", "nft"],
  schema: InvalidPacket,
  derive(values: Sources) {
    const { iptables, nft } = values;
    const trace = values["packet-trace"]?.resets ?? [];
    const astray = [values["packet-trace"], values["pod-trace"]].find((seen) => (seen?.untranslated.length ?? 0) > 0)?.untranslated ?? [];
    const found = connectionsOf(complaints(values["kernel-log"], OVERRUN));
    const overruns = found.map((overrun) => ({ ...overrun, reset: trace.some((reset) => isAnswer(reset, overrun)) }));
    const searched = (values["absent-rule"]?.rows ?? []).filter((row) => row.of === "invalid-drop" && row.family === "ipv4").map((row) => placed(row));
    return {
      drops: [...(iptables === undefined ? [] : dropsOf(iptables)), ...(nft === undefined ? [] : nftDrops(nft))].slice(0, MAX_ROWS),
      overruns,
      unasked: connectionsOf(complaints(values["kernel-log"], REFUSED).filter(({ message }) => isAnswerToSyn(message))),
      resets: trace
        .filter((reset) => found.some((overrun) => isAnswer(reset, overrun)))
        .map((reset) => ({ ...placed(reset), source: reset.source, destination: reset.destination })),
      untranslated: astray.map((row) => ({ ...placed(row), client: row.client, endpoint: row.endpoint, service: row.service, reset: row.reset })),
      translators: translatorsOf(iptables, nft, searched.length === 0 ? undefined : values.process),
      passages: passagesOf(iptables, nft),
      searched,
    };
  },
});

/** Rules of iptables that drop INVALID packets that pass the node. */
function dropsOf({ rows }: Iptables): InvalidPacket["drops"] {
  const isDrop = (row: IptablesRow): boolean => row.target === "DROP" && row.states.includes("INVALID") && !row.statesNegated && FORWARDED.test(row.chain);
  const drops = rows.filter(isDrop);
  const jump = (row: IptablesRow, target: string): IptablesRow | undefined =>
    rulesOf(rows, "FORWARD").find((other) => other.target === target && other.family === row.family && other.backend === row.backend);
  const chainOf = (row: IptablesRow): string => `${row.family} ${row.backend} ${row.table} ${row.chain}`;
  const busiest = new Map<string, number | undefined>(drops.map((row) => [chainOf(row), undefined]));
  // a node has ten thousands of rules, and Calico a drop for each pod
  const names = new Set(drops.map((row) => row.chain));
  for (const row of drops.length === 0 ? [] : rows) {
    if (row.packetsDelta === undefined || !names.has(row.chain) || isDrop(row)) continue;
    const key = chainOf(row);
    if (busiest.has(key)) busiest.set(key, Math.max(busiest.get(key) ?? 0, row.packetsDelta));
  }
  return drops.map((row) => {
    const [own, cilium] = row.chain === "KUBE-FORWARD" ? [jump(row, "KUBE-FORWARD"), jump(row, "CILIUM_FORWARD")] : [];
    return {
      ...placed(row),
      owner: "iptables",
      chain: row.chain,
      busiestDelta: busiest.get(chainOf(row)) ?? 0,
      misplaced: own !== undefined && cilium !== undefined && cilium.position > own.position,
      ...present({ packets: row.packets, packetsDelta: row.packetsDelta, alone: busiest.get(chainOf(row)) === undefined ? true : undefined }),
    };
  });
}

/** The same of nft. What iptables-nft keeps stands in nft's listing, too, and is left out here. */
function nftDrops({ rows, chains }: Nft): InvalidPacket["drops"] {
  const hooks = new Map(chains.map((chain) => [`${chain.family} ${chain.table} ${chain.name}`, chain.hook]));
  return rows.flatMap((row) => {
    const hook = hooks.get(`${row.family} ${row.table} ${row.chain}`);
    const drops = (row.verdict === "drop" && NFT_INVALID.test(row.spec)) || NFT_INVALID_MAP.test(row.spec);
    // a chain without a hook is jumped to from anywhere
    if (!drops || (hook !== undefined && hook !== "forward") || isOfIptables(row)) return [];
    const others = rows.filter((other) => other !== row && other.chain === row.chain && other.table === row.table && other.family === row.family);
    const counted = others.flatMap((other) => other.packetsDelta ?? []);
    // without anything to hold it against, no number is many
    const packetsDelta = counted.length === 0 ? undefined : row.packetsDelta;
    const busiestDelta = Math.max(0, ...counted.slice(0, 1000));
    return [{ ...placed(row), owner: "nft", chain: row.chain, busiestDelta, misplaced: false, ...present({ packets: row.packets, packetsDelta }) }];
  });
}

const isOfIptables = ({ family, table }: { family: string; table: string }): boolean =>
  (family === "ip" || family === "ip6") && /^(?:raw|mangle|nat|filter|security)$/.test(table);

/** One row for each connection, of its newest message. */
function connectionsOf(messages: readonly z.infer<typeof Complaint>[]): Omit<Overrun, "reset">[] {
  const found = new Map<string, Omit<Overrun, "reset">>();
  for (const { message, ...complaint } of messages) {
    const [, source = "", destination = "", from, to] = CONNECTION.exec(message.slice(0, 600)) ?? [];
    if (from === undefined || to === undefined) continue;
    const key = `${source} ${from} ${destination} ${to}`;
    const count = (found.get(key)?.count ?? 0) + 1;
    if (count === 1 && found.size >= MAX_ROWS) continue;
    found.set(key, { ...complaint, source, sourcePort: Number(from), destination, destinationPort: Number(to), count });
  }
  return [...found.values()];
}

/** Whether it is dropped, and a server's of a private network: what others send that nobody asked for comes from anywhere. */
function isAnswerToSyn(message: string): boolean {
  const [, source = ""] = CONNECTION.exec(message.slice(0, 600)) ?? [];
  return REFUSES.test(REFUSED.exec(message)?.[1] ?? "") && / ACK SYN(?: |$)/.test(message) && isPrivate(source);
}

/** Whether a reset is the receiver's answer. A port of which tcpdump printed an unknown name may be any. */
function isAnswer(reset: Reset, { source, sourcePort, destination, destinationPort }: Omit<Overrun, "reset">): boolean {
  const known = reset.sourcePort !== undefined || reset.destinationPort !== undefined;
  const ports = (reset.sourcePort ?? destinationPort) === destinationPort && (reset.destinationPort ?? sourcePort) === sourcePort;
  return known && ports && reset.source === destination && reset.destination === source;
}

/** `process`: where the rules were only searched, kube-proxy itself tells that it translates, and Cilium that netfilter may see half of what passes. */
function translatorsOf(iptables: Iptables | undefined, nft: Nft | undefined, process: Sources["process"]): InvalidPacket["translators"] {
  const { rows = [], chains = [] } = iptables ?? {};
  const filter = (name: string): Row | undefined => chains.find((chain) => chain.table === "filter" && chain.name === name);
  // of a node whose table nat was not read, KUBE-SERVICES says that kube-proxy translates, and so does KUBE-FORWARD where only chains of forwarded packets were asked for
  const asked = chains.every((chain) => chain.name === "FORWARD" || (chain.name === "KUBE-FORWARD" && chain.rules > 0));
  const hinted = (asked || filter("KUBE-SERVICES") !== undefined) && !chains.some((chain) => chain.table === "nat") ? filter("KUBE-FORWARD") : undefined;
  const proxy =
    rows.find((row) => row.chain.startsWith("KUBE-SVC-") || row.target?.startsWith("KUBE-SVC-") === true) ??
    hinted ??
    nft?.tables.find((table) => table.name === "kube-proxy") ??
    process?.rows.find((row) => row.command === "kube-proxy");
  const cilium =
    chains.find((chain) => chain.name.startsWith("CILIUM_")) ??
    rows.find((row) => row.target?.startsWith("CILIUM_") === true) ??
    process?.rows.find((row) => row.command === "cilium-agent");
  const others =
    rows.find((row) => /^(?:MASQUERADE|SNAT|DNAT)$/.test(row.target ?? "")) ??
    chains.find((chain) => keeperOf("", chain.name) === "docker") ??
    nft?.rows.find((row) => TRANSLATES.test(row.spec));
  const all: readonly (readonly [string, Row | undefined])[] = [
    ["kube-proxy", proxy],
    ["cilium", cilium],
    ["other", others],
  ];
  return all.flatMap(([program, row]) => (row === undefined ? [] : [{ ...placed(row), program }]));
}

function passagesOf(iptables: Iptables | undefined, nft: Nft | undefined): InvalidPacket["passages"] {
  const own = (iptables?.chains ?? []).filter((chain) => chain.table === "filter" && (chain.name === "FORWARD" || chain.name === "KUBE-FORWARD"));
  const hooked = (nft?.chains ?? []).filter((chain) => chain.hook === "forward" && !isOfIptables(chain));
  return [
    ...own.map((chain) => ({ ...placed(chain), owner: "iptables", chain: chain.name, complete: chain.complete })),
    ...hooked.map((chain) => ({ ...placed(chain), owner: "nft", chain: chain.name, complete: chain.complete })),
  ].slice(0, MAX_ROWS);
}
