import { defineFact, type Input, lines, MAX_UNPARSED, type Parsed, type Part, UnparsedLines, type View } from "./fact.ts";
import { type Request, requestOf } from "./iptables-command.ts";
import { addDeltas, merge, tableKnown } from "./iptables-merge.ts";
import { asSaved, TABLES } from "./iptables-nft.ts";
import { isAllOfIptables } from "./iptables-none.ts";
import { type Family, Iptables } from "./iptables-row.ts";
import { completeBySearch } from "./iptables-search.ts";
import { readSorted } from "./iptables-sorted.ts";
import { Reader } from "./iptables-text.ts";
import { listedTwice } from "./iptables-twice.ts";
import { listing } from "./nft.ts";
import { inWords } from "./nft-numeric.ts";
import { isPrompt } from "./paste.ts";
import { cutAt, isLineCount, takesParts, withoutLineCount } from "./pipe.ts";

export const iptables = defineFact<Iptables>({
  id: "iptables",
  title: "Rules and chains of iptables and ip6tables, of both backends",
  commands: [
    { argv: ["iptables-save", "-c"], samples: 2, modules: ["nf_tables", "nft_compat"] },
    { argv: ["ip6tables-save", "-c"], modules: ["nf_tables", "nft_compat"] },
    { argv: ["iptables-legacy-save", "-c"] },
    { argv: ["ip6tables-legacy-save", "-c"] },
  ],
  recognize(argv): View | undefined {
    if (isVersion(argv)) return { format: VERSION, complete: true, scope: `version ${argv[0]}`, rank: 0, hint: true };
    const request = requestOf(argv);
    if (request === undefined) return nftView(argv);
    const { family, backend, format, table, chain, verbose, numeric } = request;
    const rank = (format === "save" ? 7 : format === "rules" ? 5 : numeric ? 3 : 1) + (verbose ? 1 : 0);
    const scope = [backend === "unknown" ? family : `${family}/${backend}`, table, chain].filter((part) => part !== undefined).join(" ");
    // One chain is a scope of its own, and complete in it: a filter or a cut, which only the reader of the capture knows, must not look like that.
    return { format, complete: true, scope, rank };
  },
  schema: Iptables,
  parse(given) {
    const width = cutAt(given.pipe ?? "");
    // a rule that was cut is not the one that it looks like
    const input =
      width === undefined
        ? given
        : { ...given, view: { ...given.view, complete: false }, text: given.text.replace(/^.*$/gm, (line) => (line.length < width ? line : "")) };
    if (input.view.format === NFT) return readNft(input);
    if (input.view.format === VERSION) return readVersion(input);
    const request = requestOf(input.argv) ?? requestOf(["iptables-save"]);
    // how many there are says nothing of any, and parts of rules are none
    if (takesParts(input.pipe ?? "")) return new UnparsedLines().with({ chains: [], rows: [], warnings: [], programs: [] });
    if (isLineCount(input.pipe ?? "")) return new Reader({ ...input, text: withoutLineCount(input.text, input.pipe ?? "") }, request as Request).read();
    if (input.sorted === true) return readSorted(input, request as Request);
    const twice = input.live === true ? undefined : listedTwice(input.text, input.argv, request as Request);
    if (twice === undefined) {
      const parsed = new Reader(input, request as Request).read();
      if (input.truncated !== true) completeBySearch(parsed.value, input.pipe ?? "", input.text);
      return parsed;
    }
    const [first, last] = [twice.first, twice.last].map((text) => new Reader({ ...input, text }, request as Request).read()) as [
      Parsed<Iptables>,
      Parsed<Iptables>,
    ];
    addDeltas(first.value, last.value);
    const unparsed = [...first.unparsed, ...last.unparsed].slice(0, MAX_UNPARSED);
    return { ...first, unparsed, unparsedCount: first.unparsedCount + last.unparsedCount };
  },
  merge: (parts) => merge(preferred(parts)),
  whole: (parts) => tableKnown(preferred(parts), "filter") && tableKnown(preferred(parts), "nat"),
  provenBy: { from: ["nft", "module"], proves: (own, values) => isAllOfIptables(own, values as Parameters<typeof isAllOfIptables>[1]) },
});

const VERSION = "version";
const isVersion = (argv: readonly string[]): boolean =>
  argv.length === 2 && /^ip6?tables(?:-save)?$/.test(argv[0] ?? "") && /^(?:-V|--version)$/.test(argv[1] ?? "");

/** `iptables v1.8.7 (nf_tables)`; before 1.8 there was only one backend, and no word for it. */
function readVersion({ text, argv }: Input): Parsed<Iptables> {
  const unparsed = new UnparsedLines();
  const family = argv[0]?.startsWith("ip6") ? "ipv6" : "ipv4";
  const variants: NonNullable<Iptables["variants"]> = [];
  for (const { line, text: content } of lines(text)) {
    const [, minor, variant] = /^ip6?tables(?:-save)? v1\.(\d{1,2})(?:\.\d{1,3}){0,2}(?: \((nf_tables|legacy)\))?$/.exec(content.trim()) ?? [];
    if (minor !== undefined && (variant !== undefined || Number(minor) < 8))
      variants.push({ line, family, backend: variant === "nf_tables" ? "nft" : "legacy" });
    else if (!isPrompt(content)) unparsed.add(line, content);
  }
  return unparsed.with({ chains: [], rows: [], warnings: [], programs: [], variants });
}

/** The format of views that are nft's listing of the tables that iptables-nft keeps. */
const NFT = "nft";

/** `nft list ruleset`, `nft list table ip filter`, `nft list chain ip filter FORWARD` as text show the rules of iptables-nft too. */
function nftView(argv: readonly string[]): View | undefined {
  const found = listing(argv);
  if (found === undefined || found.json) return undefined;
  const [noun = "", kind = "", table = "", chain] = found.words;
  if (noun === "ruleset") return found.words.length === 1 ? { format: NFT, complete: true, scope: "ipv4/nft", rank: 1 } : undefined;
  const family = kind === "ip" ? "ipv4" : kind === "ip6" ? "ipv6" : undefined;
  if (family === undefined || !TABLES.has(table) || !(noun === "table" || (noun === "chain" && chain !== undefined))) return undefined;
  return { format: NFT, complete: true, scope: [`${family}/nft`, table, ...(chain === undefined ? [] : [chain])].join(" "), rank: 1 };
}

/** The lines that are no rules of iptables are accounted for by the fact nft. */
function readNft(input: Input): Parsed<Iptables> {
  const text = inWords(input.text);
  const read = (family: Family) => {
    const request = requestOf([family === "ipv4" ? "iptables-nft-save" : "ip6tables-nft-save", "-c"]) as Request;
    return new Reader({ ...input, text: asSaved(text, family) }, request).read();
  };
  const [first, second] = [read("ipv4"), read("ipv6")];
  const chains = [...first.value.chains, ...second.value.chains].map((chain) => ({ ...chain, translated: true }));
  const value = { ...first.value, chains, rows: [...first.value.rows, ...second.value.rows] };
  if (!HIDDEN.test(text)) return { ...first, value };
  const hidden = [...lines(text)].filter((line) => HIDDEN.test(line.text));
  const places = new Set(hidden.map(({ line }) => line));
  const nameOf = ({ family, table }: { readonly family: Family; readonly table: string }, chain: string): string => `${family} ${table} ${chain}`;
  const halfRead = new Set(value.rows.flatMap((row) => (places.has(row.line) ? [nameOf(row, row.chain)] : [])));
  for (const chain of chains) if (halfRead.has(nameOf(chain, chain.name))) chain.complete = false;
  const unparsed = [...first.unparsed, ...hidden].slice(0, MAX_UNPARSED);
  return { value, unparsed, unparsedCount: first.unparsedCount + hidden.length };
}

/** An `nft` that does not know an extension of iptables prints only its name: which state, port, mark or address the rule asks for, or sets, is not seen. */
const HIDDEN = /(?:\bxt (?:match|target) "|# xt_)(?:conntrack|state|tcp|udp|multiport|mark|addrtype|set|DNAT|SNAT|MARK|CT|REDIRECT)\b/;

/** Of a family that iptables itself showed, nft's listing adds nothing, and is the poorer reading. */
function preferred(parts: readonly Part<Iptables>[]): readonly Part<Iptables>[] {
  const own = parts.filter((part) => part.view.format !== NFT);
  if (own.length === parts.length) return parts;
  // where it showed one chain, or some lines, of a table, the others are known from nft's listing alone
  const shown = (family: Family, table: string) =>
    own.some(
      ({ value, view, complete }) =>
        complete &&
        view.scope.split(" ").length <= 2 &&
        value.chains.some((chain) => chain.family === family && chain.backend !== "legacy" && (chain.table === table || chain.table === "unknown")),
    );
  const rest = parts
    .filter((part) => part.view.format === NFT)
    .map((part) => {
      const kept = (row: { readonly family: Family; readonly table: string }) => !shown(row.family, row.table);
      return { ...part, value: { ...part.value, chains: part.value.chains.filter(kept), rows: part.value.rows.filter(kept) } };
    })
    .filter((part) => part.value.chains.length > 0);
  return own.length > 0 && rest.length === 0 ? own : [...own, ...rest];
}
