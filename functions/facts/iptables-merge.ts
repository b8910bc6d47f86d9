import type { Part } from "./fact.ts";
import { type Backend, changed, type Family, type Iptables, type IptablesChain, type IptablesRow, WARNING } from "./iptables-row.ts";

/**
 * True if the parts show all of an IPv4 table: the unnamed program's view, or those of the named backends as far as they hold anything (a view of
 * one backend that is empty says nothing about the other), and of each program that was run a complete one.
 */
export function tableKnown(parts: readonly Part<Iptables>[], table: string): boolean {
  const complete = new Map<string, boolean>();
  let answered = false;
  for (const part of parts) {
    const [program = "", shown = table, chain] = part.view.scope.split(" ");
    if (!program.startsWith("ipv4") || shown !== table || chain !== undefined) continue;
    const whole = part.complete && !part.value.warnings.some((warning) => WARNING.exec(warning.text)?.[1] === table);
    complete.set(program, (complete.get(program) ?? false) || whole);
    if (whole && (program === "ipv4" || part.value.chains.length > 0)) answered = true;
  }
  return answered && [...complete.values()].every((whole) => whole);
}

/**
 * Chain by chain the best view: complete with counters, then complete, then what shows most rules. The second sample only adds deltas.
 * Both backends are kept apart if both hold rules; a backend that holds none is left out.
 */
export function merge(given: readonly Part<Iptables>[]): Iptables {
  const parts = withoutLegacy(withoutLegacy(given, "ipv4"), "ipv6");
  const samples = parts.filter((part) => part.sample === 1);
  const views = (samples.length > 0 ? samples : parts).map(settled);
  const twice = new Set(samples.length > 0 ? parts.filter((part) => part.sample === 2).map((part) => part.view.scope) : []);
  const value = choose(views, twice);
  const programs = samples.filter((part) => part.complete).flatMap((part) => part.value.programs);
  for (const part of samples.length > 0 ? parts : []) if (part.sample === 2) addDeltas(value, part.value);
  const nameOf = (family: Family): Backend => {
    if (versionOf(views, family) !== "unknown") return aliasOfUnnamed(views, family);
    const told = unnamedBackend(views, family);
    if (told !== "unknown") return told;
    const other = otherThanNamed(views, family);
    // nft's own listing shows all of it: these rules are nft's, whoever else may have such
    return other === "unknown" && translated(views, family) && aliasOfUnnamed(views, family) === "nft" ? "nft" : other;
  };
  const unnamed = { ipv4: nameOf("ipv4"), ipv6: nameOf("ipv6") };
  const isUnnamed = ({ family, backend }: Of): boolean => backend === "unknown" && unnamed[family] !== "unknown";
  const { chains, rows } = value.chains.some(isUnnamed) ? withBackend(value, isUnnamed, ({ family }) => unnamed[family]) : value;
  const named = programs.map((program) => (isUnnamed(program) ? { ...program, backend: unnamed[program.family] } : program));
  const variants = views.flatMap((view) => view.variants ?? []);
  return {
    chains,
    rows,
    warnings: views.flatMap((view) => view.warnings),
    programs: variants.length === 0 ? programs : named,
    ...(variants.length === 0 ? {} : { variants }),
  };
}

/** The legacy tables were listed and hold nothing: what the program shows that does not name its backend is nft's, whatever its version suggests. */
function withoutLegacy(parts: readonly Part<Iptables>[], family: Family): readonly Part<Iptables>[] {
  const empty = parts.some(({ view, complete, value }) => complete && view.scope === `${family}/legacy` && !holdsRules(value, family, "legacy"));
  if (!empty) return parts;
  const isOfFamily = (one: Of): boolean => one.family === family;
  return parts.map((part) => {
    const { chains, programs } = part.value;
    const unnamed = !part.view.scope.includes("/") && chains.some((chain) => chain.family === family && (chain.rules > 0 || chain.policy !== "ACCEPT"));
    if (!unnamed) return part;
    const named = programs.map((program) => (isOfFamily(program) ? { ...program, backend: "nft" as const } : program));
    return { ...part, value: { ...part.value, ...withBackend(part.value, isOfFamily, () => "nft"), programs: named } };
  });
}

/** Whose a chain or a rule is. */
type Of = Pick<IptablesChain, "family" | "backend">;

/** The backend of some chains and their rules changed. */
function withBackend({ chains, rows }: Pick<Iptables, "chains" | "rows">, which: (one: Of) => boolean, backendOf: (one: Of) => Backend) {
  return {
    chains: chains.map((chain) => (which(chain) ? { ...chain, backend: backendOf(chain) } : chain)),
    rows: rows.map((row) => (which(row) ? changed(row, { backend: backendOf(row) }) : row)),
  };
}

interface Settled extends Iptables {
  readonly rank: number;
  /** Backend and family of the program, as the scope names them. */
  readonly scope: string;
}

const BACKENDS = ["nft", "legacy", "unknown"] as const;

/** A part whose output was cut is taken at its word only as far as its format tells where a chain ends. */
function settled(part: Part<Iptables>): Settled {
  const { value, view } = part;
  const cut = !part.complete && view.complete;
  const lastLine = value.chains.at(-1)?.line ?? 0;
  const doubtful = (chain: IptablesChain) => cut && chain.complete && (view.format === "rules" || (view.format === "list" && chain.line === lastLine));
  const chains = cut ? value.chains.map((chain) => (doubtful(chain) ? { ...chain, complete: false } : chain)) : value.chains;
  const { rows, warnings, programs, variants = [] } = value;
  return { chains, rows, warnings, programs, variants, rank: view.rank, scope: view.scope };
}

/** True if a backend was used: rules, chains of its own, or a policy that is not the default. */
function holdsRules(view: Iptables, family: Family, backend: Backend): boolean {
  return view.chains.some((chain) => chain.family === family && chain.backend === backend && (chain.rules > 0 || chain.policy !== "ACCEPT"));
}

/** The backend of the program that does not name it (`iptables`), as far as one of its outputs tells. */
function unnamedBackend(views: readonly Settled[], family: Family): Backend {
  for (const { scope, chains } of views) {
    if (scope.includes("/")) continue;
    for (const chain of chains) if (chain.family === family && chain.backend !== "unknown") return chain.backend;
  }
  return "unknown";
}

/** Which backend the outputs speak of that do not name theirs: the one that the program names elsewhere, else one that shows all that they show. */
function aliasOfUnnamed(views: readonly Settled[], family: Family): Backend {
  const plain = unnamedBackend(views, family);
  if (plain !== "unknown") return plain;
  const shown = content(views, family, "unknown");
  for (const backend of ["nft", "legacy"] as const) {
    const known = content(views, family, backend);
    if (shown.size > 0 && known.size > 0 && [...shown].every((entry) => known.has(entry))) return backend;
  }
  const other = otherThanNamed(views, family);
  return other === "unknown" ? versionOf(views, family) : other;
}

const translated = (views: readonly Settled[], family: Family): boolean =>
  views.some(({ chains }) => chains.some((chain) => chain.family === family && chain.translated === true));

/** Fewer entries than this prove nothing: rules come and go between two commands. */
const MIN_OTHER = 5;

/** The backend of the program that does not name it, where a program that names its own showed the same tables to their ends, and most of this is not in them. */
function otherThanNamed(views: readonly Settled[], family: Family): Backend {
  const shown = [...content(views, family, "unknown")];
  for (const [backend, other] of [["legacy", "nft"] as const, ["nft", "legacy"] as const]) {
    const known = content(views, family, backend);
    const listings = views.filter(({ scope }) => scope.split(" ").length <= 2);
    const whole = listings.flatMap(({ chains }) => chains.filter((chain) => chain.family === family && chain.backend === backend));
    const tables = new Set(whole.map(({ table }) => table).filter((table) => whole.every((chain) => chain.table !== table || chain.complete)));
    const comparable = shown.filter((entry) => tables.has(entry.slice(0, entry.indexOf(" "))));
    const strange = comparable.filter((entry) => !known.has(entry)).length;
    if (known.size > 0 && strange >= MIN_OTHER && strange * 2 > comparable.length) return other;
  }
  return "unknown";
}

/** What the program's version says of it. Behind what its outputs show: somebody may have asked another one, of a container. */
function versionOf(views: readonly Settled[], family: Family): Backend {
  const said = new Set(views.flatMap(({ variants = [] }) => variants.flatMap((one) => (one.family === family ? [one.backend] : []))));
  return said.size === 1 ? ([...said][0] as Backend) : "unknown";
}

/** What a backend does, as far as every format tells: where the rules of each chain lead, and the policies that are not the default. */
function content(views: readonly Settled[], family: Family, backend: Backend): Set<string> {
  const entries = new Set<string>();
  for (const { chains, rows } of views) {
    for (const chain of chains) {
      if (chain.family === family && chain.backend === backend && chain.policy !== "ACCEPT") entries.add(`${chain.table} ${chain.name} ${chain.policy}`);
    }
    for (const row of rows) if (row.family === family && row.backend === backend) entries.add(`${row.table} ${row.chain} -> ${row.target}`);
  }
  return entries;
}

/** `twice`: the scopes of the commands that were run a second time. Only in their own words are rules found again, so only they tell what was counted between. */
function choose(views: readonly Settled[], twice: ReadonlySet<string>): Pick<Iptables, "chains" | "rows"> {
  let chains: IptablesChain[] = [];
  let rows: IptablesRow[] = [];
  for (const family of ["ipv4", "ipv6"] as const) {
    if (!views.some((view) => view.chains.some((chain) => chain.family === family))) continue;
    const unnamed = aliasOfUnnamed(views, family);
    const backendOf = (backend: Backend) => (backend === "unknown" ? unnamed : backend);
    const used = new Set(BACKENDS.filter((backend) => views.some((view) => holdsRules(view, family, backend))).map(backendOf));
    // Empty tables of another backend (the kernel makes them when somebody looks) must not stand for the real ones.
    const shows = (row: { family: Family; backend: Backend }) => row.family === family && (used.size === 0 || used.has(backendOf(row.backend)));
    const candidates = views.filter((view) => view.chains.some(shows));
    const [only] = candidates;
    if (only === undefined) continue;
    if (candidates.length === 1) {
      const all = only.chains.every(shows);
      chains = chains.concat(all ? only.chains : only.chains.filter(shows));
      rows = rows.concat(all ? only.rows : only.rows.filter(shows));
      continue;
    }
    const keyOf = (backend: Backend, table: string, chain: string) => `${used.size > 1 ? backendOf(backend) : ""} ${table} ${chain}`;
    const best = new Map<string, { view: Settled; chain: IptablesChain; score: number }>();
    // `iptables -S FORWARD` tells the rules, and `iptables -nvL FORWARD | head -1` what the policy took
    const policies = new Map<string, number>();
    for (const view of candidates) {
      const counted = new Set<string>();
      for (const row of view.rows) if (row.packets !== undefined) counted.add(`${row.table} ${row.chain}`);
      // a line of `uniq -c` stands for as many rules as there were copies of it
      const more = new Map<string, number>();
      for (const { table, chain, copies = 1 } of view.rows) if (copies > 1) more.set(`${table} ${chain}`, (more.get(`${table} ${chain}`) ?? 0) + copies - 1);
      for (const chain of view.chains) {
        if (!shows(chain)) continue;
        const key = keyOf(chain.backend, chain.table, chain.name);
        if (chain.packets !== undefined && !policies.has(key)) policies.set(key, chain.packets);
        // nft's listing is the poorer reading of a chain that iptables itself showed to its end
        const counters = chain.translated !== true && (chain.rules === 0 || counted.has(`${chain.table} ${chain.name}`));
        const rising = counters && twice.has(view.scope);
        const score =
          (chain.complete ? 1e12 : 0) +
          (chain.complete && counters ? 1e11 : 0) +
          (chain.complete && rising ? 1e10 : 0) +
          (chain.complete ? 0 : (chain.rules + (more.get(`${chain.table} ${chain.name}`) ?? 0)) * 100) +
          view.rank;
        const rival = best.get(key);
        if (rival === undefined || score > rival.score) best.set(key, { view, chain, score });
      }
    }
    for (const [key, { chain }] of best) {
      const packets = chain.packets ?? (chain.policy === undefined ? undefined : policies.get(key));
      chains.push(packets === chain.packets ? chain : { ...chain, packets });
    }
    for (const view of candidates) {
      for (const row of view.rows) if (shows(row) && best.get(keyOf(row.backend, row.table, row.chain))?.view === view) rows.push(row);
    }
  }
  return { chains, rows };
}

/**
 * Writes `packetsDelta` into the chains and rows of the first sample. A rule is the same if text and place in the chain are, and the chain is as long as before;
 * else if it is the only rule of that text in the chain.
 */
export function addDeltas(first: Pick<Iptables, "chains" | "rows">, second: Pick<Iptables, "chains" | "rows">): void {
  const families = new Set(second.chains.map((chain) => chain.family));
  const chainKey = (family: Family, backend: Backend, table: string, chain: string) => `${family} ${backend} ${table} ${chain}`;
  const lengths = new Map<string, number>();
  for (const { family, backend, table, name, rules } of first.chains) lengths.set(chainKey(family, backend, table, name), rules);
  const changed = new Set<string>();
  const policies = new Map<string, number>();
  for (const { family, backend, table, name, rules, packets } of second.chains) {
    const key = chainKey(family, backend, table, name);
    if (lengths.get(key) !== rules) changed.add(key);
    if (packets !== undefined) policies.set(key, packets);
  }
  for (const chain of first.chains) {
    const later = chain.packets === undefined ? undefined : policies.get(chainKey(chain.family, chain.backend, chain.table, chain.name));
    if (later !== undefined && later >= (chain.packets ?? 0)) chain.packetsDelta = later - (chain.packets ?? 0);
  }
  const isChanged = (row: IptablesRow) => changed.size > 0 && changed.has(chainKey(row.family, row.backend, row.table, row.chain));
  const ruleKey = (row: IptablesRow) => `${chainKey(row.family, row.backend, row.table, row.chain)} ${row.spec}`;
  let bySpec: Map<string, IptablesRow | null> | undefined;
  for (let i = 0; i < first.rows.length; i++) {
    const row = first.rows[i] as IptablesRow;
    if (row.packets === undefined || !families.has(row.family)) continue;
    let later: IptablesRow | null | undefined = second.rows[i];
    if (later === undefined || !isSamePlace(row, later) || isChanged(row)) {
      bySpec ??= onlyOnes(second.rows, ruleKey);
      later = bySpec.get(ruleKey(row));
    }
    if (later?.packets === undefined || later.packets < row.packets) continue;
    row.packetsDelta = later.packets - row.packets;
  }
}

function isSamePlace(a: IptablesRow, b: IptablesRow): boolean {
  return a.chain === b.chain && a.position === b.position && a.spec === b.spec && a.table === b.table && a.family === b.family && a.backend === b.backend;
}

/** The rows by key; null where several have it. */
function onlyOnes(rows: readonly IptablesRow[], keyOf: (row: IptablesRow) => string): Map<string, IptablesRow | null> {
  const result = new Map<string, IptablesRow | null>();
  for (const row of rows) {
    const key = keyOf(row);
    result.set(key, result.has(key) ? null : row);
  }
  return result;
}
