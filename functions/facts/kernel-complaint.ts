import { z } from "zod";
import type { Placed } from "./fact.ts";
import type { KernelLog } from "./kernel-log.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";

/** A message of the kernel that says what it has no room for. */
export const Complaint = z.object({
  line: z.int(),
  message: z.string(),
  /** Seconds between the message and the collection, where known. */
  age: z.number().optional(),
  /** Seconds between it and the kernel's newest message that was read; 0 where that is not known. It is at least that old. */
  later: z.number(),
});
type Complaint = z.infer<typeof Complaint>;

/** The messages that a pattern finds, with what is known of their age. */
export function complaints(log: Placed<KernelLog> | undefined, pattern: RegExp): Complaint[] {
  let newest = 0;
  for (const row of log?.rows ?? []) newest = Math.max(newest, row.seconds ?? 0);
  return (log?.rows ?? [])
    .filter((row) => pattern.test(row.message.slice(0, 400)))
    .map((row) => ({
      ...placed(row),
      message: row.message,
      ...present({ age: row.age }),
      later: row.seconds === undefined ? 0 : newest - row.seconds,
    }));
}
