import { z } from "zod";
import { defineDerivedFact, type Row } from "./fact.ts";
import { chainStarts } from "./iptables-chains.ts";
import type { Iptables, IptablesRow } from "./iptables-row.ts";
import { present } from "./present.ts";

/**
 * The rules of iptables counted by the beginnings of their chains' names (`KUBE-SVC` for all chains KUBE-SVC-…): one tool names its chains alike, and a node with
 * 100,000 rules has a few dozen groups.
 */
const ChainGroup = z.object({
  /** Of the first rule of the group. */
  line: z.int(),
  family: z.enum(["ipv4", "ipv6"]),
  backend: z.enum(["nft", "legacy", "unknown"]),
  table: z.string(),
  /** The name as far as the second hyphen or underscore. */
  group: z.string(),
  /** Of the first rule. */
  chain: z.string(),
  rule: z.string(),
  /** How many rules the chains of the group hold together; a chain without rules counts nowhere. */
  rules: z.int(),
  /** What they counted together between the two samples. */
  packetsDelta: z.int().optional(),
});
const ChainGroups = z.object({ rows: z.array(ChainGroup) });
type ChainGroup = z.infer<typeof ChainGroup> & Row;

/** Names without a scheme would be groups of their own. */
const MAX_GROUPS = 2000;

export const chainGroup = defineDerivedFact<z.infer<typeof ChainGroups>>({
  id: "chain-group",
  title: "Rules of iptables, counted by the beginnings of their chains' names",
  from: ["iptables"],
  masked: ["iptables"],
  schema: ChainGroups,
  derive({ iptables }: { readonly iptables?: Iptables }) {
    const found: ChainGroup[] = [];
    // of each table by the group's name: a key of all of them for each of ten thousands of chains takes longer than all else
    const tables = new Map<string, Map<string, ChainGroup>>();
    let groups = new Map<string, ChainGroup>();
    let last: IptablesRow | undefined;
    const rows = iptables?.rows ?? [];
    const starts = chainStarts(rows);
    for (let i = 0; i + 1 < starts.length; i++) {
      const [start, end] = [starts[i] as number, starts[i + 1] as number];
      const row = rows[start] as IptablesRow;
      // the chains of a table stand together
      const sameTable = last?.table === row.table && last.backend === row.backend && last.family === row.family;
      if (!sameTable) groups = tableOf(tables, `${row.family} ${row.backend} ${row.table}`);
      last = row;
      const group = groupOf(row.chain);
      let current = groups.get(group);
      if (current === undefined) {
        if (found.length >= MAX_GROUPS) continue;
        const { line, family, backend, table, chain, spec } = row;
        const { output } = row as Row;
        current = { line, family, backend, table, group, chain, rule: spec, rules: 0, ...present({ output }) };
        groups.set(group, current);
        found.push(current);
      }
      current.rules += end - start;
      for (let at = start; at < end; at++) {
        const delta = rows[at]?.packetsDelta;
        if (delta !== undefined) current.packetsDelta = (current.packetsDelta ?? 0) + delta;
      }
    }
    return { rows: found };
  },
});

function tableOf(tables: Map<string, Map<string, ChainGroup>>, key: string): Map<string, ChainGroup> {
  const known = tables.get(key) ?? new Map<string, ChainGroup>();
  tables.set(key, known);
  return known;
}

/** The name as far as its second hyphen or underscore. */
function groupOf(chain: string): string {
  let separators = 0;
  for (let i = 0; i < chain.length; i++) {
    const sign = chain.charCodeAt(i);
    if ((sign === 45 /* - */ || sign === 95) /* _ */ && ++separators === 2) return chain.slice(0, i);
  }
  return chain;
}
