import { z } from "zod";
import { byWord } from "./by-word.ts";
import { defineDerivedFact, type Row } from "./fact.ts";
import { chainStarts } from "./iptables-chains.ts";
import type { Iptables, IptablesRow } from "./iptables-row.ts";
import type { Nft, NftRow } from "./nft-row.ts";
import { present } from "./present.ts";

/** A rule of iptables, or of a table of nft's own, that stands in its chain more than once, word by word, comment and all. */
const DuplicateRule = z.object({
  /** Of the first of them. */
  line: z.int(),
  /** Of nft's own tables there are more families. */
  family: z.enum(["ipv4", "ipv6", "inet", "arp", "bridge", "netdev"]),
  backend: z.enum(["nft", "legacy", "unknown"]),
  table: z.string(),
  chain: z.string(),
  target: z.string().optional(),
  /** The rule as text. */
  rule: z.string(),
  /** How many there are, at least {@link MIN_COUNT}. */
  count: z.int(),
});
/** Rules that look alike in a listing that leaves the interfaces out: they may be one rule again and again, or one for each interface. */
const Alike = z.object({ line: z.int(), chain: z.string(), count: z.int() });
const DuplicateRules = z.object({ rows: z.array(DuplicateRule), alike: z.array(Alike) });
type DuplicateRules = z.infer<typeof DuplicateRules>;

/** Fewer are common: tools that insert a rule at each start do so a few times. */
const MIN_COUNT = 5;
/** A chain that grows has one or a few rules that do. */
const MAX_ROWS = 100;

interface Sources {
  readonly iptables?: Iptables;
  readonly nft?: Nft;
  readonly "line-count"?: { readonly rows: readonly (Row & Counted)[] };
}
interface Counted {
  readonly of: string;
  readonly family?: "ipv4" | "ipv6";
  readonly backend?: "legacy" | "nft";
  readonly search?: string;
  readonly count: number;
}

/** Where the rules stand that somebody counted by their comment. */
const PLACES = byWord<readonly [table: string, chain: string]>({
  "kubernetes firewall for dropping marked packets": ["filter", "KUBE-FIREWALL"],
  "block incoming localnet connections": ["filter", "KUBE-FIREWALL"],
  "kubernetes postrouting rules": ["nat", "POSTROUTING"],
  "kubernetes forwarding rules": ["filter", "FORWARD"],
  "kubernetes service portals": ["nat", "PREROUTING"],
  "kubernetes service traffic requiring SNAT": ["nat", "KUBE-POSTROUTING"],
});
/** The same comment may stand in several tables and chains, once each. */
const MIN_COUNTED = 20;
/** node-local-dns has a dozen rules for each of its addresses and protocols, and network policies may name it for some pods. */
const MIN_OF_ADDRESS = 400;

export const duplicateRule = defineDerivedFact<DuplicateRules>({
  id: "duplicate-rule",
  title: "Rules of iptables that stand in a chain again and again",
  from: ["iptables", "nft", "line-count"],
  optional: ["nft", "line-count"],
  inPart: ["nft", "line-count"],
  schema: DuplicateRules,
  derive({ iptables, nft, "line-count": counts }: Sources) {
    const all = iptables?.rows ?? [];
    const rows: DuplicateRules["rows"] = (counts?.rows ?? []).flatMap(counted);
    const alike: DuplicateRules["alike"] = [];
    const starts = chainStarts(all);
    for (const [i, start] of starts.entries()) {
      const end = starts[i + 1] ?? start;
      // nearly all chains of kube-proxy are too short; `uniq -c` counts every line
      if (end - start < MIN_COUNT && all[start]?.copies === undefined) continue;
      const chain = all.slice(start, end);
      for (const row of repeated(chain.filter(showsAll))) rows.push(row);
      for (const { line, output, chain: name, count } of repeated(chain.filter((row) => !showsAll(row))))
        alike.push({ line, chain: name, count, ...present({ output }) });
    }
    rows.push(...ofNft(nft?.rows ?? [], (iptables?.rows.length ?? 0) > 0));
    // which of them are alike is not known
    if (rows.length === 0) rows.push(...(counts?.rows ?? []).flatMap(aboutLocalDns));
    return { rows: rows.sort((a, b) => b.count - a.count).slice(0, MAX_ROWS), alike: alike.slice(0, MAX_ROWS) };
  },
});

/** Expressions of iptables in nft's listing, which does not show what they ask for: different rules look alike. What iptables keeps, the fact iptables has. */
const OPAQUE = /(?:^| )(?:#? ?xt_|xt )|^#/;
/** The tables and chains of iptables-nft. */
const OF_IPTABLES = /^(?:raw|mangle|nat|filter|security)$/;

/** Rules in tables of nft's own; of nft's JSON, which the fact iptables does not read, in those of iptables, too. */
function ofNft(all: readonly (NftRow & Row)[], known: boolean): DuplicateRules["rows"] {
  const seen = new Map<string, { readonly row: NftRow & Row; count: number }>();
  for (const row of all) {
    if (
      row.spec === "" ||
      OPAQUE.test(row.spec) ||
      (known && (row.family === "ip" || row.family === "ip6") && OF_IPTABLES.test(row.table) && row.chain === row.chain.toUpperCase())
    )
      continue;
    const key = `${row.family} ${row.table} ${row.chain} ${row.spec} ${row.comment ?? ""}`;
    const other = seen.get(key);
    if (other === undefined) seen.set(key, { row, count: 1 });
    else other.count++;
  }
  return [...seen.values()]
    .filter(({ count }) => count >= MIN_COUNT)
    .map(({ row, count }) => {
      const { line, table, chain, spec, target, output } = row;
      const family = row.family === "ip" ? "ipv4" : row.family === "ip6" ? "ipv6" : row.family;
      return { line, family, backend: "nft" as const, table, chain, rule: spec, count, ...present({ target, output }) };
    });
}

/** A rule of which only the number was kept. */
function counted(row: Row & Counted): DuplicateRules["rows"] {
  const [table, chain] = (row.of === "copies" ? PLACES[row.search ?? ""] : undefined) ?? [];
  if (table === undefined || chain === undefined || row.count < MIN_COUNTED) return [];
  const { line, output, family = "ipv4", backend = "unknown", search = "", count } = row;
  return [{ line, family, backend, table, chain, rule: `/* ${search} */`, count, ...present({ output }) }];
}

/** Far more rules for the address of node-local-dns than it makes: `iptables-save | grep -c 169.254.20.10`. */
function aboutLocalDns(row: Row & Counted): DuplicateRules["rows"] {
  const { line, output, family = "ipv4", backend = "unknown", search = "", count } = row;
  if (row.of !== "copies" || !search.startsWith("169.254.") || count < MIN_OF_ADDRESS) return [];
  return [{ line, family, backend, table: "filter", chain: "INPUT", rule: `/* ${search} */`, count, ...present({ output }) }];
}

/** Of the rules of one chain those that stand in it often enough. */
function repeated(chain: readonly IptablesRow[]): (DuplicateRules["rows"][number] & Row)[] {
  const seen = new Map<string, { readonly row: IptablesRow; count: number }>();
  for (const row of chain) {
    const known = seen.get(row.spec);
    if (known === undefined) seen.set(row.spec, { row, count: row.copies ?? 1 });
    else known.count += row.copies ?? 1;
  }
  return [...seen.values()]
    .filter(({ count }) => count >= MIN_COUNT)
    .map(({ row, count }) => {
      const { line, family, backend, table, chain: name, target, spec } = row;
      const { output } = row as Row;
      return { line, family, backend, table, chain: name, rule: spec, count, ...present({ target, output }) };
    });
}

/**
 * `iptables -L` without `-v` leaves the interfaces out, so that different rules look alike; those with a comment are told apart by it, and those of NodeLocal DNSCache
 * are for no interface.
 */
const showsAll = ({ spec, packets, comment, source, destination, sourcePort, destinationPort }: IptablesRow): boolean =>
  spec.startsWith("-") ||
  spec.startsWith("! -") ||
  packets !== undefined ||
  (comment !== undefined && comment !== "") ||
  ((sourcePort === "53" || destinationPort === "53") && [source, destination].some((address) => LOCAL_CACHE.test(address ?? "")));

/** The address of NodeLocal DNSCache, as kubeadm's and kubespray's manifests have it. */
const LOCAL_CACHE = /^169\.254\.2[05]\.10\/32$/;
