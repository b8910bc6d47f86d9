import { BASES, TABLES } from "./iptables-nft.ts";
import type { Iptables } from "./iptables-row.ts";
import type { Nft } from "./nft-row.ts";

/** The legacy interface of the kernel, and its tables: without them no iptables-legacy holds a rule. */
const LEGACY = /^(?:ip6?_tables|ip6?table_\w{1,32})$/;

interface Sources {
  readonly nft: Nft;
  readonly module: { readonly rows: readonly { name: string; size?: number; builtin: boolean }[] };
}

/**
 * True if `own` (nothing, where it is undefined) is all that iptables has on the node: neither backend can hold more. `sources`: the whole ruleset of nftables,
 * in which iptables-nft keeps its rules, and all modules that are loaded.
 */
export function isAllOfIptables(own: Iptables | undefined, { nft, module }: Sources): boolean {
  // only lsmod tells sizes. A kernel that keeps nftables in a module has no part of netfilter's older half in its image
  if (!module.rows.some((row) => row.name === "nf_tables" && row.size !== undefined && !row.builtin)) return false;
  if (module.rows.some(({ name }) => LEGACY.test(name))) return false;
  const seen = new Set((own?.chains ?? []).flatMap((row) => (row.complete ? [`${row.family} ${row.table} ${row.name}`] : [])));
  const kept = nft.chains.filter(({ family, table }) => (family === "ip" || family === "ip6") && TABLES.has(table));
  // in a table that a person made, chains with a hook have other names
  const foreign = new Set(kept.flatMap((row) => (row.hook !== undefined && !BASES.has(row.name) ? [`${row.family} ${row.table}`] : [])));
  return kept.every((row) => foreign.has(`${row.family} ${row.table}`) || seen.has(`${row.family === "ip" ? "ipv4" : "ipv6"} ${row.table} ${row.name}`));
}
