import { z } from "zod";
import { defineDerivedFact, type Row } from "./fact.ts";
import { placed } from "./placed.ts";

/**
 * Whether Cilium is or was on the node: interfaces that it makes, and programs of its socket load balancing, which stay attached where it was taken away. A row stands where
 * the interface or the program stands.
 */
const CiliumPresence = z.object({
  rows: z.array(
    z.object({
      line: z.int(),
      by: z.enum(["interface", "program"]),
      name: z.string(),
    }),
  ),
});
type CiliumPresence = z.infer<typeof CiliumPresence>;

interface Sources {
  readonly link?: { rows: readonly (Row & { interface: string })[] };
  readonly "bpf-cgroup"?: { rows: readonly (Row & { name?: string })[] };
  readonly "bpf-program"?: { rows: readonly (Row & { name?: string })[] };
}

const PROGRAM = /^(?:cil_)?sock[46]_/;

export const ciliumPresence = defineDerivedFact<CiliumPresence>({
  id: "cilium-presence",
  title: "Interfaces and programs that Cilium has made on this node",
  from: ["link", "bpf-cgroup", "bpf-program"],
  // where nothing can list programs, the interfaces tell
  optional: ["bpf-cgroup", "bpf-program"],
  inPart: ["bpf-cgroup", "bpf-program"],
  schema: CiliumPresence,
  derive(values) {
    const sources = values as Sources;
    const programs = [...(sources["bpf-cgroup"]?.rows ?? []), ...(sources["bpf-program"]?.rows ?? [])].filter((row) => PROGRAM.test(row.name ?? ""));
    return {
      rows: [
        ...(sources.link?.rows ?? [])
          .filter((row) => /^(?:lxc|cilium_)/.test(row.interface))
          .map((row) => ({ ...placed(row), by: "interface" as const, name: row.interface })),
        ...programs.slice(0, 100).map((row) => ({ ...placed(row), by: "program" as const, name: row.name ?? "" })),
      ],
    };
  },
});
