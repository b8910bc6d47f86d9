import { z } from "zod";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { Complaint, complaints } from "./kernel-complaint.ts";
import type { KernelLog } from "./kernel-log.ts";
import { placed } from "./placed.ts";
import type { Sysctl } from "./sysctl.ts";

/**
 * How much memory the buffers of all TCP sockets hold, and how much they may hold (net.ipv4.tcp_mem: low, pressure, high). The machine's, not a namespace's.
 */
const Usage = z.object({
  /** Where the memory in use was read. */
  line: z.int(),
  /** Pages (4 KiB on most machines). */
  pages: z.int(),
  /** From here on the kernel saves memory. */
  pressure: z.int(),
  /** From here on it refuses. */
  high: z.int(),
});
const TcpMemory = z.object({
  /** One row where both are known. */
  rows: z.array(Usage),
  /** net.ipv4.tcp_mem as it was read. */
  limits: z.array(z.object({ line: z.int(), value: z.string() })),
  /** The kernel's complaints that it has no memory left for TCP. */
  complaints: z.array(Complaint),
});
type TcpMemory = z.infer<typeof TcpMemory>;

interface Sources {
  readonly sysctl?: Placed<Sysctl>;
  readonly "socket-summary"?: {
    rows: readonly (Row & { protocol: string; memory?: number; established?: number; closed?: number; orphaned?: number })[];
  };
  readonly "kernel-log"?: Placed<KernelLog>;
}

const COMPLAINT = /^(?:TCP: )?out of memory -- consider tuning tcp_mem|^Out of socket memory\b/i;
const LIMITS = /^(\d{1,15}) (\d{1,15}) (\d{1,15})$/;

export const tcpMemory = defineDerivedFact<TcpMemory>({
  id: "tcp-memory",
  title: "Memory of TCP's buffers, and its limits",
  from: ["socket-summary", "sysctl", "kernel-log"],
  schema: TcpMemory,
  enough: (values, whole) => hardlyAny(values as Sources, whole),
  derive(values) {
    const sources = values as Sources;
    const setting = (sources.sysctl?.rows ?? []).find((row) => row.key === "net.ipv4.tcp_mem" && LIMITS.test(row.value));
    const [, , pressure, high] = LIMITS.exec(setting?.value ?? "") ?? [];
    const used = (sources["socket-summary"]?.rows ?? []).find((row) => row.protocol === "tcp" && row.memory !== undefined);
    const known = used?.memory !== undefined && high !== undefined && Number(high) > 0;
    return {
      rows: known ? [{ ...placed(used), pages: used.memory as number, pressure: Number(pressure), high: Number(high) }] : [],
      limits: setting === undefined ? [] : [{ ...placed(setting), value: setting.value }],
      complaints: complaints(sources["kernel-log"], COMPLAINT),
    };
  },
});

/** Pages of 4 KiB: one MiB. Few sockets ever hold as much. */
const A_SOCKET = 256;

/**
 * True if there are so few sockets that they would not reach the limit with a MiB each, and the kernel, which complains when one is closed beyond it, said nothing
 * in all of its log: `ss -s` tells how many there are and not what they hold.
 */
function hardlyAny(sources: Sources, whole: ReadonlySet<string>): boolean {
  const setting = (sources.sysctl?.rows ?? []).find((row) => row.key === "net.ipv4.tcp_mem" && LIMITS.test(row.value));
  const high = Number(LIMITS.exec(setting?.value ?? "")?.[3] ?? 0);
  const tcp = (sources["socket-summary"]?.rows ?? []).find((row) => row.protocol === "tcp" && row.established !== undefined);
  if (tcp === undefined || !whole.has("kernel-log") || complaints(sources["kernel-log"], COMPLAINT).length > 0) return false;
  return ((tcp.established ?? 0) + (tcp.closed ?? 0) + (tcp.orphaned ?? 0)) * A_SOCKET < high;
}
