import { z } from "zod";
import { defineDerivedFact, type Row } from "./fact.ts";
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
    const groups = new Map<string, ChainGroup>();
    let last: IptablesRow | undefined;
    let current: ChainGroup | undefined;
    for (const row of iptables?.rows ?? []) {
      // the rules of a chain stand together
      if (last?.chain !== row.chain || last.table !== row.table || last.backend !== row.backend || last.family !== row.family) {
        const group = /^[^-_]{0,64}(?:[-_][^-_]{0,64})?/.exec(row.chain)?.[0] ?? row.chain;
        const key = `${row.family} ${row.backend} ${row.table} ${group}`;
        current = groups.get(key);
        if (current === undefined && groups.size < MAX_GROUPS) {
          const { line, family, backend, table, chain, spec } = row;
          const { output } = row as Row;
          current = { line, family, backend, table, group, chain, rule: spec, rules: 0, ...present({ output }) };
          groups.set(key, current);
        }
        last = row;
      }
      if (current === undefined) continue;
      current.rules++;
      if (row.packetsDelta !== undefined) current.packetsDelta = (current.packetsDelta ?? 0) + row.packetsDelta;
    }
    return { rows: [...groups.values()] };
  },
});
