import { z } from "zod";
import { defineDerivedFact, type Row } from "./fact.ts";
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
const ChecksumErrors = z.object({ counters: z.array(Counter), messages: z.array(Message) });
type ChecksumErrors = z.infer<typeof ChecksumErrors>;

const MESSAGE = /UDP: bad checksum[.:] From \[?([0-9a-fA-F.:]{2,45}?)\]?:\d{1,5} to \[?[0-9a-fA-F.:]{2,45}?\]?:(\d{1,5}) ulen/;

interface Sources {
  readonly nstat?: { rows: readonly (Row & { name: string; value: number; valueDelta?: number | undefined })[] };
  readonly "kernel-log"?: { rows: readonly (Row & { message: string; age?: number | undefined })[] };
}

export const checksumError = defineDerivedFact<ChecksumErrors>({
  id: "checksum-error",
  title: "Received packets with wrong checksums",
  from: ["nstat", "kernel-log"],
  schema: ChecksumErrors,
  derive(values) {
    const sources = values as Sources;
    return {
      counters: (sources.nstat?.rows ?? [])
        .filter(({ name }) => name === "UdpInCsumErrors" || name === "TcpInCsumErrors")
        .map(({ line, output, text, name, value, valueDelta }) => ({ line, ...present({ output, text }), name, value, ...present({ valueDelta }) })),
      messages: (sources["kernel-log"]?.rows ?? []).flatMap(({ line, output, text, message, age }) => {
        const [, source, port] = MESSAGE.exec(message) ?? [];
        return source === undefined ? [] : [{ line, ...present({ output, text }), source, port: Number(port), ...present({ age }) }];
      }),
    };
  },
});
