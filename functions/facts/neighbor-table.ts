import { z } from "zod";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import type { Family } from "./ip-address.ts";
import type { KernelLog } from "./kernel-log.ts";
import type { Neighbor } from "./neighbor.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";
import type { Sysctl } from "./sysctl.ts";

/**
 * How full the neighbour tables are: the kernel's complaints, and the number of entries beside the limit. The limit (gc_thresh3) and the kernel's count
 * are the machine's; a listing shows only the entries of one network namespace, so the true number is the same or higher.
 *
 *     neighbour: arp_cache: neighbor table overflow!
 */
const Complaint = z.object({
  line: z.int(),
  family: z.enum(["ipv4", "ipv6"]),
  /** Seconds before the collection, where known. */
  age: z.number().optional(),
});
const Level = z.object({
  /** Line of the limit. */
  line: z.int(),
  family: z.enum(["ipv4", "ipv6"]),
  /** gc_thresh3. */
  limit: z.int(),
  /** Entries that count towards the limit: permanent ones and those that need no resolution do not. */
  entries: z.int(),
  /** 100 × entries / limit, rounded down. */
  percent: z.int(),
  /** All entries of the network namespace were listed, or counted: there are no fewer, and no more. */
  whole: z.boolean(),
});
const NeighborTable = z.object({ complaints: z.array(Complaint), levels: z.array(Level) });
type Complaint = z.infer<typeof Complaint>;
type Level = z.infer<typeof Level>;

interface Sources {
  readonly neighbor?: { rows: readonly Neighbor[] };
  readonly sysctl?: Placed<Sysctl>;
  readonly "line-count"?: { readonly rows: readonly ({ of: string; family?: Family; count: number } & Row)[] };
  readonly "kernel-log"?: Placed<KernelLog>;
}

// "Neighbour table overflow." (before Linux 3.x), "neighbour: arp_cache: neighbor table overflow!", "net_ratelimit: …" says nothing of it
const OVERFLOW = /(?:^|\b)neighbou?r table overflow/i;

export const neighborTable = defineDerivedFact({
  id: "neighbor-table",
  title: "How full the neighbour tables are",
  // the rule reads the counters itself: named here, so that they alone are enough to be judged
  from: ["neighbor", "sysctl", "kernel-log", "line-count", "neighbor-stats"],
  optional: ["line-count", "neighbor-stats"],
  inPart: ["line-count", "neighbor-stats"],
  schema: NeighborTable,
  derive(values: Sources, wholeOf) {
    const complaints: Complaint[] = [];
    for (const row of values["kernel-log"]?.rows ?? []) {
      if (!OVERFLOW.test(row.message)) continue;
      const { age } = row;
      const family: Family = /ndisc_cache/.test(row.message) ? "ipv6" : "ipv4";
      complaints.push({ ...placed(row), family, ...present({ age }) });
    }
    const levels: Level[] = [];
    for (const family of ["ipv4", "ipv6"] as const) {
      const row = values.sysctl?.rows.find((setting) => setting.key === `net.${family}.neigh.default.gc_thresh3`);
      const limit = Number(row?.value);
      // no more than the limit and a headline: else permanent entries were counted, which the limit is not about
      const counted = values["line-count"]?.rows.find((other) => other.of === "neighbors" && other.family === family && other.count <= limit + 2);
      if (row === undefined || (values.neighbor === undefined && counted === undefined) || !(limit > 0) || !Number.isSafeInteger(limit)) continue;
      const counts = (entry: Neighbor) => entry.family === family && entry.state !== "PERMANENT" && entry.state !== "NOARP" && !entry.proxy;
      const entries = Math.max(values.neighbor?.rows.filter(counts).length ?? 0, counted?.count ?? 0);
      levels.push({
        ...placed(row),
        family,
        limit,
        entries,
        percent: Math.floor((100 * entries) / limit),
        whole: wholeOf.has("neighbor") || counted !== undefined,
      });
    }
    return { complaints, levels };
  },
});
