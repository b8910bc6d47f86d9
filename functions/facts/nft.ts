import { operands } from "./command.ts";
import { defineFact, type Part, UnparsedLines, type View } from "./fact.ts";
import { readJson } from "./nft-json.ts";
import { inWords } from "./nft-numeric.ts";
import { Nft, type NftRow } from "./nft-row.ts";
import { readText } from "./nft-text.ts";
import { combine, ranked } from "./parts.ts";
import { growth, samples } from "./sampled.ts";

/** Options that change how the rules are printed, not which. */
const OPTIONS = new Set(
  "--json --handle --numeric --numeric-priority --numeric-protocol --numeric-time --stateless --terse --service --guid --reversedns --echo".split(" "),
);
/** What shows rules without the chain they stand in. */
const SEARCHED = /^[ef]?grep /;
/** What `nft list` shows with rules or sets in it. */
const NOUNS = new Set("ruleset tables table chains chain sets set maps map meters meter".split(" "));

export interface Listing {
  /** What stands behind `list`. */
  readonly words: readonly string[];
  readonly json: boolean;
  readonly handles: boolean;
  readonly stateless: boolean;
  readonly terse: boolean;
}

/** Reads `nft [options] list WHAT`; undefined if it is anything else. Older nft takes options behind the command too. */
export function listing(argv: readonly string[]): Listing | undefined {
  if (argv[0] !== "nft") return undefined;
  const options = argv.slice(1).filter((word) => word.startsWith("-"));
  const [verb, ...words] = operands(argv);
  const known = options.every((option) => (option.startsWith("--") ? OPTIONS.has(option) : /^-[janstSuNpyTe]{1,16}$/.test(option)));
  if (!known || verb !== "list" || !NOUNS.has(words[0] ?? "")) return undefined;
  const has = (letter: string, name: string) => options.some((option) => option === name || (!option.startsWith("--") && option.includes(letter)));
  return { words, json: has("j", "--json"), handles: has("a", "--handle"), stateless: has("s", "--stateless"), terse: has("t", "--terse") };
}

export const nft = defineFact<Nft>({
  id: "nft",
  title: "Tables, chains, rules and sets of nftables",
  commands: [{ argv: ["nft", "-j", "list", "ruleset"], modules: ["nf_tables"] }],
  // NF_TABLES selects NETFILTER_NETLINK
  heldBy: { module: "nf_tables", needs: "nfnetlink" },
  recognize(argv): View | undefined {
    const found = listing(argv);
    if (found === undefined) return undefined;
    const { words, json, handles, stateless, terse } = found;
    const everything = words.length === 1 && words[0] === "ruleset";
    // `list chains` and the like name things without what is in them.
    const names = words[0]?.endsWith("s") ?? false;
    const rank = names ? 0 : (json ? 6 : 3) + (handles && !json ? 1 : 0) - (stateless ? 2 : 0) - (terse ? 1 : 0);
    return { format: json ? "json" : "text", complete: everything && !terse, scope: everything ? "" : words.join(" "), rank };
  },
  schema: Nft,
  parse({ text, argv, view, pipe }) {
    const unparsed = new UnparsedLines();
    const found = listing(argv);
    const elements = !(found?.terse ?? false);
    // `list chains` shows hooks without rules; a filter behind the whole ruleset may have taken some
    const filtered = found?.words.length === 1 && found.words[0] === "ruleset" && elements && !view.complete;
    const rules = /^(?:ruleset|tables?|chain)$/.test(found?.words[0] ?? "") && !filtered;
    return unparsed.with(
      view.format === "json" ? readJson(text, elements, rules, unparsed) : readText(inWords(text), elements, rules, SEARCHED.test(pipe ?? ""), unparsed),
    );
  },
  merge,
});

/** Chain by chain the rules of the best part that has any; tables, chains and sets by name. */
function merge(parts: readonly Part<Nft>[]): Nft {
  const best = ranked(parts);
  const taken = new Map<string, Part<Nft>>();
  const chainKey = (family: string, table: string, chain: string) => `${family} ${table} ${chain}`;
  for (const part of best) {
    for (const row of part.value.rows) {
      const key = chainKey(row.family, row.table, row.chain);
      if (!taken.has(key)) taken.set(key, part);
    }
  }
  const all = best.map((part) => part.value);
  const strays = all.flatMap((value) => value.strays ?? []);
  // what a chain is complete of are the rules that were taken
  const complete = new Set<string>();
  for (const part of best) {
    for (const chain of part.value.chains) {
      const key = chainKey(chain.family, chain.table, chain.name);
      if (chain.complete && (taken.get(key) ?? part) === part) complete.add(key);
    }
  }
  const whole = best.some((part) => part.complete && part.view.scope === "");
  const grown = growthOf(parts);
  const withGrowth = (row: NftRow): NftRow => {
    const packetsDelta = grown.get(placeOf(row));
    return packetsDelta === undefined ? row : { ...row, packetsDelta };
  };
  return {
    tables: combine(
      all.flatMap(({ tables }) => tables),
      (table) => `${table.family} ${table.name}`,
    ).map((table) => ({ ...table, whole })),
    chains: combine(
      all.flatMap(({ chains }) => chains),
      (chain) => chainKey(chain.family, chain.table, chain.name),
    ).map((chain) => ({ ...chain, complete: complete.has(chainKey(chain.family, chain.table, chain.name)) })),
    rows: best.flatMap((part) => part.value.rows.filter((row) => taken.get(chainKey(row.family, row.table, row.chain)) === part).map(withGrowth)),
    sets: combine(
      all.flatMap(({ sets }) => sets),
      (set) => `${set.kind} ${chainKey(set.family, set.table, set.name)}`,
    ),
    ...(strays.length === 0 ? {} : { strays }),
  };
}

const placeOf = (row: NftRow): string => `${row.family} ${row.table} ${row.chain} ${row.position} ${row.spec}`;

/** How many packets each rule took between the two samples, by its place. */
function growthOf(parts: readonly Part<Nft>[]): Map<string, number> {
  const grown = new Map<string, number>();
  for (const { before, after } of samples(parts)) {
    if (before === undefined) continue;
    const old = new Map(before.value.rows.map((row) => [placeOf(row), row.packets]));
    for (const row of after.value.rows) {
      const delta = row.packets === undefined ? undefined : growth(old.get(placeOf(row)), row.packets);
      if (delta !== undefined) grown.set(placeOf(row), delta);
    }
  }
  return grown;
}
