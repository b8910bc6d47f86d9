import { z } from "zod";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { Complaint, complaints } from "./kernel-complaint.ts";
import type { KernelLog } from "./kernel-log.ts";
import { placed } from "./placed.ts";
import type { Sysctl } from "./sysctl.ts";

/**
 * How full the table of connection tracking is. The limit holds for each network namespace; the numbers are those of the node's own.
 */
const Table = z.object({
  /** Where the number of entries was read. */
  line: z.int(),
  count: z.int(),
  max: z.int(),
  /** count / max. */
  share: z.number(),
});
const ConntrackUsage = z.object({
  /** One row where both numbers are known. */
  tables: z.array(Table),
  /** The same node's settings as they were read: nf_conntrack_count and nf_conntrack_max. */
  settings: z.array(z.object({ line: z.int(), key: z.string(), value: z.string() })),
  /** The kernel's complaints that the table is full. */
  complaints: z.array(Complaint),
});
type ConntrackUsage = z.infer<typeof ConntrackUsage>;

interface Sources {
  readonly sysctl?: Placed<Sysctl>;
  readonly "kernel-log"?: Placed<KernelLog>;
  readonly "line-count"?: { readonly rows: readonly (Row & { of: string; count: number })[] };
}
/** A listing may have left entries out: only that there are many of them is told by their number. */
const NEARLY_FULL = 0.9;

/** "nf_conntrack: table full, dropping packet", with the module's name once or twice, and "in netns 4026532" since Linux 6.4; before 2.6.34 ip_conntrack. */
const FULL = /\b(?:nf|ip)_conntrack: table full/i;
const KEYS = /^net\.(?:netfilter\.nf|nf|ipv4\.netfilter\.ip|ipv4\.ip)_conntrack_(count|max)$/;

export const conntrackUsage = defineDerivedFact<ConntrackUsage>({
  id: "conntrack-usage",
  title: "How full the table of tracked connections is",
  // of conntrack's counters nothing is taken; where they alone were read, the table is not unknown: they tell of entries that were thrown out for want of room
  from: ["sysctl", "kernel-log", "line-count", "conntrack-stats"],
  optional: ["line-count", "conntrack-stats"],
  inPart: ["line-count", "conntrack-stats"],
  schema: ConntrackUsage,
  derive(values) {
    const sources = values as Sources;
    const settings = (sources.sysctl?.rows ?? []).filter((row) => KEYS.test(row.key) && /^\d{1,12}$/.test(row.value));
    const max = settings.find((row) => row.key.endsWith("max"));
    const count = settings.find((row) => row.key.endsWith("count"));
    const limit = Number(max?.value ?? 0);
    const listed = (sources["line-count"]?.rows ?? []).find((row) => row.of === "connections" && limit > 0 && row.count >= limit * NEARLY_FULL);
    const listedTable = listed === undefined ? [] : [{ ...placed(listed), count: listed.count, max: limit, share: listed.count / limit }];
    return {
      // a limit of 0 means that there is none
      tables:
        count === undefined || limit === 0 ? listedTable : [{ ...placed(count), count: Number(count.value), max: limit, share: Number(count.value) / limit }],
      settings: settings.map((row) => ({ ...row })),
      complaints: complaints(sources["kernel-log"], FULL),
    };
  },
});
