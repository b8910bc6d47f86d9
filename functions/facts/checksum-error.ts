import { z } from "zod";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import type { KernelLog } from "./kernel-log.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";

/**
 * Received packets with wrong checksums: the protocols' counters, and what the kernel says of single packets.
 *
 *     UdpInCsumErrors                 841                0.0
 *     [ 1423.035722] UDP: bad checksum. From 192.0.2.12:27503 to 192.0.2.11:8472 ulen 75
 */
const Counter = z.object({
  line: z.int(),
  /** "UdpInCsumErrors", "TcpInCsumErrors". */
  name: z.string(),
  value: z.int(),
  /** Growth between the samples; left out without a second sample. */
  valueDelta: z.int().optional(),
});
const Message = z.object({
  line: z.int(),
  /** Who sent the packet. */
  source: z.string(),
  /** UDP port that it was sent to: 8472 and 4789 are those of VXLAN. */
  port: z.int(),
  /** Seconds before the collection, where known. */
  age: z.number().optional(),
});
/** Somebody switched the checksum offload of a tunnel, or of the card below it, off, and a request that got no answer before got one afterwards. */
const Trial = z.object({
  /** Of the change. */
  line: z.int(),
  interface: z.string(),
  /** The request, which was made twice. */
  command: z.string(),
});
/** A VXLAN packet with a wrong checksum in somebody's trace. On the sender, and between virtual machines of one host, that is usual where the offload works. */
const Seen = z.object({
  line: z.int(),
  source: z.string(),
  destination: z.string(),
  port: z.int(),
  /** Packets of this way with the checksum 0xffff, which is no sum that a card has still to fill in: address translation made it of "no checksum". */
  ones: z.int().optional(),
});
const ChecksumErrors = z.object({ seen: z.array(Seen), trials: z.array(Trial), counters: z.array(Counter), messages: z.array(Message) });
type ChecksumErrors = z.infer<typeof ChecksumErrors>;

const MESSAGE = /UDP: bad checksum[.:] From \[?([0-9a-fA-F.:]{2,45}?)\]?:\d{1,5} to \[?[0-9a-fA-F.:]{2,45}?\]?:(\d{1,5}) ulen/;

/** The feature, and what switches it too. */
const FEATURE = /^(?:tx|tx-checksumming|tx-checksum-ip-generic)$/;
/** Ends of pods and bridges, whose packets a tunnel has still before it. */
const OF_PODS = /^(?:veth|cali|lxc|eni[0-9a-f]|azv|cni|docker|br-|virbr|lo$)/;

interface Sources {
  readonly "offload-change"?: { rows: readonly (Row & { interface: string; name: string; on: boolean })[] };
  readonly "packet-trace"?: { damaged: readonly (Row & { source: string; destination: string; port: number; ones?: number })[] };
  readonly attempt?: { rows: readonly (Row & { command: string; answered: boolean })[] };
  readonly nstat?: { rows: readonly (Row & { name: string; value: number; valueDelta?: number | undefined })[] };
  readonly "kernel-log"?: Placed<KernelLog>;
}

export const checksumError = defineDerivedFact<ChecksumErrors>({
  id: "checksum-error",
  title: "Received packets with wrong checksums",
  from: ["nstat", "kernel-log", "offload-change", "attempt", "packet-trace"],
  optional: ["offload-change", "attempt", "packet-trace"],
  schema: ChecksumErrors,
  derive(values) {
    const sources = values as Sources;
    return {
      seen: (sources["packet-trace"]?.damaged ?? []).map((row) => ({
        ...placed(row),
        ...present({ ones: row.ones }),
        source: row.source,
        destination: row.destination,
        port: row.port,
      })),
      trials: trialsOf(sources),
      counters: (sources.nstat?.rows ?? [])
        .filter(({ name }) => name === "UdpInCsumErrors" || name === "TcpInCsumErrors")
        .map((row) => ({ ...placed(row), name: row.name, value: row.value, ...present({ valueDelta: row.valueDelta }) })),
      messages: (sources["kernel-log"]?.rows ?? []).flatMap((row) => {
        const [, source, port] = MESSAGE.exec(row.message) ?? [];
        return source === undefined ? [] : [{ ...placed(row), source, port: Number(port), ...present({ age: row.age }) }];
      }),
    };
  },
});

/** By the order of the outputs: a request without an answer, the change, the same request with one. */
function trialsOf(sources: Sources): ChecksumErrors["trials"] {
  const attempts = sources.attempt?.rows ?? [];
  return (sources["offload-change"]?.rows ?? []).flatMap((change) => {
    if (change.on || !FEATURE.test(change.name) || OF_PODS.test(change.interface) || change.output === undefined) return [];
    const at = change.output;
    const failed = attempts.filter((row) => !row.answered && (row.output ?? at) < at);
    const again = attempts.find((row) => row.answered && (row.output ?? at) > at && failed.some((other) => other.command === row.command));
    return again === undefined ? [] : [{ ...placed(change), interface: change.interface, command: again.command }];
  });
}
