import { z } from "zod";
import { defineDerivedFact, type Row } from "./fact.ts";
import { placed } from "./placed.ts";

/**
 * What the network cards dropped between the two samples. Only interfaces that are hardware, or a virtual machine's idea of it.
 */
const Drops = z.object({
  line: z.int(),
  interface: z.string(),
  /** As the source names it: "rxMissed" (ip -s link), "rx_no_buffer_count" (ethtool -S). */
  counter: z.string(),
  /**
   * "ring": the card had no room for packets that came in. "stack": the kernel threw them away behind the card, which it also does with frames that nobody
   * asked for (LLDP, STP, other VLANs).
   */
  place: z.enum(["ring", "stack"]),
  /** Packets between the samples. */
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
});
type CardDrops = z.infer<typeof CardDrops>;

interface Sources {
  readonly link?: {
    rows: readonly (Row & { interface: string; kind?: string; memberKind?: string; master?: string })[];
    statistics: readonly (Row & { interface: string } & Readonly<Record<string, unknown>>)[];
  };
  readonly "ethtool-statistics"?: { rows: readonly (Row & { interface: string; name: string; valueDelta?: number })[] };
}

/** Names that the kernel, systemd and firmware give to cards. VPC CNI's veths begin with "eni", which is none of them. */
const CARD = /^(?:eth\d|en[opsxP]|em\d|p\d+p\d|ib[ps]?\d|wl|usb\d|bnet\d)/;
/** Counters of drivers for packets that found no room in the receive ring: Intel, Mellanox, Broadcom, virtio, ENA, vmxnet3, gve, and the kernel's own names. */
const RING =
  /^(?:rx_missed(?:_errors)?|rx_no_buffer(?:_count)?|rx_fifo_errors|rx_no_dma_resources|rx_out_of_buffer|rx_buff_alloc_err|rx_ring_full|rx_overruns?|rx_over_errors|rx_brb_discard|rx_prio\d_discards|rx_discards_phy|rx_drops|drv dropped rx total|rx_dropped_no_buff\w{0,8}|port\.rx_dropped|rx_no_desc)$/;
const STACK = { rxMissed: "ring", rxOverrun: "ring", rxDropped: "stack" } as const;

export const cardDrops = defineDerivedFact<CardDrops>({
  id: "card-drops",
  title: "Packets that network cards dropped between two samples",
  from: ["link", "ethtool-statistics"],
  schema: CardDrops,
  derive(values) {
    const { link, "ethtool-statistics": ethtool } = values as Sources;
    const links = new Map((link?.rows ?? []).map((row) => [row.interface, row]));
    const bonds = new Set((link?.rows ?? []).filter((row) => row.kind === "bond").map((row) => row.interface));
    // `ip -d` says what an interface is; a veth in a container is called eth0 too
    const isCard = (name: string): boolean => CARD.test(name) && links.get(name)?.kind === undefined;
    const bonded = (name: string): boolean => {
      const row = links.get(name);
      return row === undefined || row.memberKind === "bond" || (row.master !== undefined && (bonds.has(row.master) || /^bond\d/.test(row.master)));
    };
    const result: CardDrops = { rows: [], watched: [] };
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
    for (const row of ethtool?.rows ?? []) {
      if (row.valueDelta === undefined || row.valueDelta === 0 || !isCard(row.interface) || !RING.test(row.name.toLowerCase())) continue;
      const all = received.get(row.interface);
      const about = { interface: row.interface, counter: row.name, place: "ring" as const, dropped: row.valueDelta, bonded: bonded(row.interface) };
      result.rows.push({ ...placed(row), ...about, ...(all === undefined ? {} : { received: all }) });
    }
    return result;
  },
});
