import { z } from "zod";
import { CARD } from "./card-name.ts";
import { defineDerivedFact, type Row } from "./fact.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";

/**
 * What the network cards dropped between the two samples. Only interfaces that are hardware, or a virtual machine's idea of it.
 */
const Drops = z.object({
  line: z.int(),
  interface: z.string(),
  /** As the source names it: "rxMissed" (ip -s link), "rx_no_buffer_count" (ethtool -S), "rxfifo/s" (sar). */
  counter: z.string(),
  /**
   * "ring": the card had no room for packets that came in. "stack": the kernel threw them away behind the card, which it also does with frames that nobody
   * asked for (LLDP, STP, other VLANs).
   */
  place: z.enum(["ring", "stack"]),
  /** Packets between the samples; where sar tells ("rxfifo/s"), a second. */
  dropped: z.int(),
  /** Packets that came in meanwhile, where known. */
  received: z.int().optional(),
  /** Member of a bond, or not known: a member that waits drops everything it hears. */
  bonded: z.boolean(),
});
const CardDrops = z.object({
  rows: z.array(Drops),
  /** Interfaces whose counters were read twice. */
  watched: z.array(z.object({ line: z.int(), interface: z.string() })),
  /** Counters of cards (`ethtool -S`) that are above 0 and were read once: a total since the start. */
  once: z.array(z.object({ line: z.int(), interface: z.string(), counter: z.string() })),
});
type CardDrops = z.infer<typeof CardDrops>;

interface Sources {
  readonly link?: {
    rows: readonly (Row & { interface: string; kind?: string; memberKind?: string; master?: string })[];
    statistics: readonly (Row & { interface: string } & Readonly<Record<string, unknown>>)[];
  };
  readonly sar?: { rows: readonly (Row & { interface: string; name: string; rate: number })[] };
  readonly "ethtool-statistics"?: { rows: readonly (Row & { interface: string; name: string; value?: number; valueDelta?: number })[] };
}

/** Devices with a receive ring: cards, also those that drivers and people name otherwise. */
const RECEIVER = new RegExp(String.raw`^(?:${CARD}|ib[ps]?\d|wl|usb\d|bnet\d|nic\d|lan\d|wan\d?$|sfc\d)`);
/** Counters of drivers for packets that found no room in the receive ring: Intel, Mellanox, Broadcom, virtio, ENA, vmxnet3, gve, and the kernel's own names. */
const RING =
  /^(?:rx_missed(?:_errors)?|rx_no_buffer(?:_count)?|rx_fifo_errors|rx_no_dma_resources|rx_out_of_buffer|rx_buff_alloc_err|rx_ring_full|rx_overruns?|rx_over_errors|rx_brb_discard|rx_prio\d_discards|rx_discards_phy|rx_drops|drv dropped rx total|rx_dropped_no_buff\w{0,8}|port\.rx_dropped|rx_no_desc)$/;
/** The same of more drivers: ice; vmxnet3; tg3, bnx2 and bnxt; be2net; Solarflare; one queue of igb, i40e and virtio; stmmac; Cisco; Chelsio; Netvsc; QLogic; Google's gve; Aquantia; Cadence (Raspberry Pi 5) and Broadcom of ARM boards; NXP. */
const RING_OF_OTHERS =
  /^(?:rx_dropped\.nic|pkts rx oob|rx buf alloc fail|(?:\[\d{1,3}\]: ?)?rx_discards|rxbds_empty|rx_drops_no_(?:pbuf|txpb|erx_descr|tpre_descr|skbs|frags)|(?:port_)?rx_nodesc_drops?(?:_cnt)?|rx_queue_\d{1,3}_drops|rx\d{1,3}_drops|(?:mmc_)?rx_fifo_?overflow(?:_errors)?|rx_overflow_cntr|rx_missed_cntr|rx_no_bufs|rx_ovflow\d|rx_no_memory|(?:\d{1,3}: )?no_buff_discards|rx_packet_buffer_drop|rx_buffer_overflow|rx_total_(?:discard_pkts|ring_discards)|rx_no_buffers_posted\[\d{1,3}\]|indroppeddma|rx_resource_errors|r(?:buf|dma)_ovflow_cnt|(?:\[(?:hw|dpni ?)\] )?rx nobuffer discards)$/;
const STACK = { rxMissed: "ring", rxOverrun: "ring", rxDropped: "stack" } as const;

export const cardDrops = defineDerivedFact<CardDrops>({
  id: "card-drops",
  title: "Packets that network cards dropped between two samples",
  from: ["link", "ethtool-statistics", "sar"],
  optional: ["sar"],
  schema: CardDrops,
  enough: (values, whole) => untouched(values as Sources, whole),
  derive(values) {
    const { link, sar, "ethtool-statistics": ethtool } = values as Sources;
    const links = new Map((link?.rows ?? []).map((row) => [row.interface, row]));
    const bonds = new Set((link?.rows ?? []).filter((row) => row.kind === "bond").map((row) => row.interface));
    // `ip -d` says what an interface is; a veth in a container is called eth0 too
    const isCard = (name: string): boolean => RECEIVER.test(name) && links.get(name)?.kind === undefined;
    const bonded = (name: string): boolean => {
      const row = links.get(name);
      return row === undefined || row.memberKind === "bond" || (row.master !== undefined && (bonds.has(row.master) || /^bond\d/.test(row.master)));
    };
    const result: CardDrops = { rows: [], watched: [], once: [] };
    const received = new Map<string, number>();
    for (const row of link?.statistics ?? []) {
      if (!isCard(row.interface) || typeof row["rxPacketsDelta"] !== "number") continue;
      const place = placed(row);
      result.watched.push({ ...place, interface: row.interface });
      received.set(row.interface, row["rxPacketsDelta"]);
      for (const [counter, where] of Object.entries(STACK)) {
        const dropped = row[`${counter}Delta`];
        if (typeof dropped !== "number" || dropped === 0) continue;
        result.rows.push({
          ...place,
          interface: row.interface,
          counter,
          place: where,
          dropped,
          received: row["rxPacketsDelta"],
          bonded: bonded(row.interface),
        });
      }
    }
    for (const row of sar?.rows ?? []) {
      const dropped = Math.round(row.rate);
      if (row.name !== "rxfifo/s" || dropped === 0 || !isCard(row.interface)) continue;
      result.rows.push({ ...placed(row), interface: row.interface, counter: row.name, place: "ring", dropped, bonded: bonded(row.interface) });
    }
    for (const row of ethtool?.rows ?? []) {
      const name = row.name.toLowerCase();
      if (!isCard(row.interface) || !(RING.test(name) || RING_OF_OTHERS.test(name))) continue;
      if (row.valueDelta === undefined && (row.value ?? 0) > 0) result.once.push({ ...placed(row), interface: row.interface, counter: row.name });
      if (row.valueDelta === undefined || row.valueDelta === 0) continue;
      const all = received.get(row.interface);
      const about = { interface: row.interface, counter: row.name, place: "ring" as const, dropped: row.valueDelta, bonded: bonded(row.interface) };
      result.rows.push({ ...placed(row), ...about, ...present({ received: all }) });
    }
    return result;
  },
});

/** What systemd and older tools call VMware's card, whose driver tells of a full ring in its own counters only (`pkts rx OOB`). */
const OWN_COUNTERS = /^ens(?:3[2-9]|160|161|192|193|224|225|256)$/;

/** True if no card has dropped a packet since the start: then the counters of the drivers, which are summed up in these, have nothing to add. */
function untouched({ link }: Sources, whole: ReadonlySet<string>): boolean {
  if (!whole.has("link")) return false;
  const cards = (link?.rows ?? []).filter((row) => RECEIVER.test(row.interface) && row.kind === undefined);
  return (
    cards.length > 0 &&
    cards.every(({ interface: name }) => {
      const row = OWN_COUNTERS.test(name) ? undefined : link?.statistics.find((other) => other.interface === name);
      // older tools do not show what was missed
      return row !== undefined && ["rxErrors", "rxDropped", "rxMissed"].every((counter) => row[counter] === 0);
    })
  );
}
