import { z } from "zod";
import type { BpfLink } from "./bpf-link.ts";
import type { BpfProgram } from "./bpf-program.ts";
import { defineDerivedFact, type Row } from "./fact.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";

/**
 * Programs at the tcx and netkit hooks of interfaces, or where there is none at filters of tc, and which of them have the same name at one hook. `bpftool net` lists
 * them, in the order in which they run; where nobody asked it, the links and the programs together tell the same of tcx and netkit.
 *
 *     cilium_vxlan(10) tcx/ingress cil_from_overlay prog_id 309 link_id 3
 *
 *     3: tcx  prog 309
 *     	ifindex cilium_vxlan(10)  attach_type tcx_ingress
 */
const Program = z.object({
  line: z.int(),
  interface: z.string(),
  /** "tcx/ingress", "tcx/egress", "netkit/primary", "netkit/peer", "clsact/ingress", "clsact/egress". */
  hook: z.string(),
  name: z.string(),
  programId: z.int(),
  linkId: z.int().optional(),
  /** How many programs of this name stand at this hook of this interface. */
  namesakes: z.int(),
  /** 1 for the one of them that was loaded last (program ids grow), 2 for the one before it, … */
  generation: z.int(),
});
const Programs = z.object({ rows: z.array(Program) });
type Program = z.infer<typeof Program>;
type Attached = Row & Omit<Program, "namesakes" | "generation">;

interface Sources {
  readonly "bpf-net"?: { rows: readonly (Row & { interface: string; index?: number; hook: string; name?: string; programId: number; linkId?: number })[] };
  readonly "bpf-link"?: { rows: readonly (BpfLink & Row)[] };
  readonly "bpf-program"?: { rows: readonly (BpfProgram & Row)[] };
}

const HOOK = /^(?:tcx|netkit|clsact)\//;

export const attachedProgram = defineDerivedFact<z.infer<typeof Programs>>({
  id: "attached-program",
  title: "Programs at the tcx, netkit and tc hooks of interfaces, by `bpftool net` or by links and programs",
  from: ["bpf-net", "bpf-link", "bpf-program"],
  schema: Programs,
  enough: (_, whole) => whole.has("bpf-net") || (whole.has("bpf-link") && whole.has("bpf-program")),
  derive(values) {
    const sources = values as Sources;
    const listed = fromNet(sources);
    return { rows: withGenerations(listed.length > 0 ? listed : fromLinks(sources)) };
  },
});

function fromNet({ "bpf-net": net }: Sources): Attached[] {
  // tcx runs before the filters of tc, and what Cilium's program decides there holds
  const decided = new Set((net?.rows ?? []).filter(({ hook }) => hook.startsWith("tcx/")).map((row) => `${row.interface} ${row.hook.slice("tcx/".length)}`));
  return (net?.rows ?? []).flatMap((row) => {
    const { name, programId, linkId, hook } = row;
    if (name === undefined || !HOOK.test(hook)) return [];
    if (hook.startsWith("clsact/") && decided.has(`${row.interface} ${hook.slice("clsact/".length)}`)) return [];
    return [{ ...placed(row), interface: row.interface, hook, name, programId, ...present({ linkId }) }];
  });
}

function fromLinks({ "bpf-link": link, "bpf-program": program }: Sources): Attached[] {
  const names = new Map((program?.rows ?? []).map((row) => [row.id, row.name]));
  return (link?.rows ?? []).flatMap((row) => {
    const hook = (row.attachType ?? "").replace("_", "/");
    const name = row.programId === undefined ? undefined : names.get(row.programId);
    if (name === undefined || row.programId === undefined || row.interface === undefined || !HOOK.test(hook)) return [];
    return [{ ...placed(row), interface: row.interface, hook, name, programId: row.programId, linkId: row.id }];
  });
}

/** Counts the programs of one name at one place, the newest first. */
function withGenerations(rows: readonly Attached[]): (Row & Program)[] {
  const placeOf = (row: Attached): string => `${row.interface} ${row.hook} ${row.name}`;
  const places = new Map<string, Map<number, number>>();
  for (const [place, own] of Map.groupBy(rows, placeOf)) {
    const ids = [...new Set(own.map(({ programId }) => programId))].sort((a, b) => b - a);
    places.set(place, new Map(ids.map((id, i) => [id, i + 1])));
  }
  return rows.map((row) => {
    const generations = places.get(placeOf(row));
    return { ...row, namesakes: generations?.size ?? 1, generation: generations?.get(row.programId) ?? 1 };
  });
}
