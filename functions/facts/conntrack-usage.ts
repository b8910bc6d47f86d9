import { z } from "zod";
import { defineDerivedFact, type Row } from "./fact.ts";
import { Complaint, complaints, type KernelLog } from "./kernel-complaint.ts";
import { placed } from "./placed.ts";

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
  readonly sysctl?: { rows: readonly (Row & { key: string; value: string })[] };
  readonly "kernel-log"?: KernelLog;
}

/** "nf_conntrack: table full, dropping packet", with the module's name once or twice, and "in netns 4026532" since Linux 6.4; before 2.6.34 ip_conntrack. */
const FULL = /\b(?:nf|ip)_conntrack: table full/i;
const KEYS = /^net\.(?:netfilter\.nf|nf|ipv4\.netfilter\.ip|ipv4\.ip)_conntrack_(count|max)$/;

export const conntrackUsage = defineDerivedFact<ConntrackUsage>({
  id: "conntrack-usage",
  title: "How full the table of tracked connections is",
  from: ["sysctl", "kernel-log"],
  schema: ConntrackUsage,
  derive(values) {
    const sources = values as Sources;
    const settings = (sources.sysctl?.rows ?? []).filter((row) => KEYS.test(row.key) && /^\d{1,12}$/.test(row.value));
    const max = settings.find((row) => row.key.endsWith("max"));
    const count = settings.find((row) => row.key.endsWith("count"));
    const limit = Number(max?.value ?? 0);
    return {
      // a limit of 0 means that there is none
      tables: count === undefined || limit === 0 ? [] : [{ ...placed(count), count: Number(count.value), max: limit, share: Number(count.value) / limit }],
      settings: settings.map((row) => ({ ...row })),
      complaints: complaints(sources["kernel-log"], FULL),
    };
  },
});
