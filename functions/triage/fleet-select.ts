import { distance } from "fastest-levenshtein";
import type { Config } from "./config.ts";
import type { Called, FleetRequest, NodeTerm, Ports, Target } from "./ports.ts";

/** From "pool=blue web-*" to the nodes that are meant. */

/** More are not examined at once: see docs/fleet.md for what 1,000 take. */
export const MAX_NODES = 1000;
/** Of more than this whoever asks has to say once more that all of them are meant. */
const CONFIRM_ABOVE = 100;
/** Names that are offered where one is not known. */
const SUGGESTIONS = 5;

/** A choice instead of what was asked: the command that a button stands for. */
export interface Alternative {
  readonly label: string;
  readonly command: string;
}

/** `problem`: a list of nodes that could not be had, for people; "" if all were there. */
export type Selection =
  | { readonly kind: "nodes"; readonly targets: readonly Target[]; readonly problem: string }
  /** Nothing is examined: why, in a sentence for people, and what may have been meant. */
  | { readonly kind: "unclear"; readonly text: string; readonly choices: readonly Alternative[] };

type Examine = Extract<FleetRequest["ask"], { kind: "examine" }>;

/** What was asked for, as it may be typed: "nodes pool=blue web-*". At most 200 characters; `max` for more of it. */
export function selectionWords(terms: readonly NodeTerm[], max = 200): string {
  const words = terms.map((term) => (term.by === "all" ? "all" : term.by === "name" ? term.name : `${term.name}=${term.value}`)).join(" ");
  return words.length > max ? `${words.slice(0, max - 1)}…` : words;
}

/**
 * The nodes that are meant, each once, in the order of cluster and name. Names are added up, labels take away: "web-* db-* zone=a" is every web and db node of
 * zone a. Nothing is guessed: a name that no node has, or several, is told.
 * Throws what the transports say where no list of nodes can be had at all.
 */
export async function selectNodes(ports: Pick<Ports, "config" | "targets">, { terms, confirmed }: Examine): Promise<Selection> {
  const config = await ports.config();
  const { called, problem: unlisted = "" } = await ports.targets.all();
  const problems = new Set(unlisted === "" ? [] : [unlisted]);
  let chosen: readonly Called[];
  const names = terms.flatMap((term) => (term.by === "name" ? [term.name] : []));
  if (names.length === 0) chosen = called;
  else {
    const found: Called[] = [];
    for (const name of names) {
      const hits = name.includes("*") ? called.filter((one) => fits(one, name)) : exactly(called, name);
      if (hits.length === 0 && problems.size > 0) throw new Error([...problems].join("; "));
      if (hits.length === 0) return unknown(called, terms, name);
      if (hits.length > 1 && !name.includes("*")) return ambiguous(hits, terms, name);
      found.push(...hits);
    }
    chosen = [...new Set(found)];
  }
  for (const term of terms) {
    if (term.by !== "label") continue;
    const { has, problem } = await labelled(ports, config, term);
    if (problem !== undefined) problems.add(problem);
    const left = chosen.filter(({ target }) => has(target));
    if (left.length === 0 && problems.size > 0) throw new Error([...problems].join("; "));
    if (left.length === 0) return without(config, terms, term, names.length > 0);
    chosen = left;
  }
  if (chosen.length === 0) {
    if (problems.size > 0) throw new Error([...problems].join("; "));
    return { kind: "unclear", text: "netcheck.yaml names no nodes, and its tags and labels find none.", choices: [] };
  }
  const targets = chosen.map(({ target }) => target).toSorted(byName);
  const count = targets.length;
  if (count > MAX_NODES)
    return {
      kind: "unclear",
      text: `These are ${count} nodes; at most ${MAX_NODES} are examined at once. Take fewer: by cluster ("cluster=${targets[0]?.cluster ?? ""}"), by a label, or by name ("web-*").`,
      choices: [],
    };
  const all = terms.some(({ by }) => by === "all");
  if ((all || count > CONFIRM_ABOVE) && (confirmed === undefined || confirmed < count)) {
    const clusters = [...new Set(targets.map(({ cluster }) => cluster))];
    const more = confirmed === undefined ? "" : ` (there were ${confirmed} a moment ago)`;
    return {
      kind: "unclear",
      text: `These are ${count} nodes${more} of ${clusters.slice(0, 5).join(", ")}${clusters.length > 5 ? ` and ${clusters.length - 5} more clusters` : ""}. Looking at them changes nothing, and takes each of them some seconds of work.`,
      choices: [{ label: `Examine ${count} nodes`, command: `nodes ${selectionWords(terms, 1900)} confirm=${count}` }],
    };
  }
  return { kind: "nodes", targets, problem: [...problems].join("; ") };
}

const order = new Intl.Collator("en", { numeric: true });
const byName = (a: Target, b: Target): number => order.compare(a.cluster, b.cluster) || order.compare(a.name, b.name) || (a.address < b.address ? -1 : 1);

/** As for one node: what the configuration names wins over what lists know. */
function exactly(called: readonly Called[], name: string): readonly Called[] {
  const wanted = name.toLowerCase();
  const hits = called.filter(({ names }) => names.includes(wanted));
  const own = hits.filter(({ target }) => [target.name, `${target.cluster}/${target.name}`].some((one) => one.toLowerCase() === wanted));
  return own.length > 0 ? own : hits;
}

/** Does a pattern fit a node: one of its names, and the cluster where a "/" is in the pattern? */
function fits({ target, names }: Called, pattern: string): boolean {
  const lower = pattern.toLowerCase();
  const slash = lower.indexOf("/");
  if (slash >= 0 && !globFits(lower.slice(0, slash), target.cluster.toLowerCase())) return false;
  const wanted = lower.slice(slash + 1);
  return names.some((name) => !name.includes("/") && globFits(wanted, name));
}

/** "*" stands for any letters, also none. Takes time in proportion to the name: a pattern is typed by anybody, and held against thousands of names. */
export function globFits(pattern: string, name: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return pattern === name;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return name.length - at >= last.length && name.endsWith(last);
}

/** Who has a label: by netcheck.yaml (pool, cluster), or by the tags and labels that the cloud and the cluster know. */
async function labelled(
  { targets }: Pick<Ports, "targets">,
  config: Config,
  { name, value }: Extract<NodeTerm, { by: "label" }>,
): Promise<{ readonly has: (target: Target) => boolean; readonly problem?: string }> {
  if (name === "cluster") return { has: ({ cluster }) => cluster === value };
  const { called, problem } = await targets.all({ [name]: value });
  const found = new Set(called.map(({ target }) => `${target.cluster} ${target.address}`));
  const has = (target: Target): boolean => found.has(`${target.cluster} ${target.address}`) || (name === "pool" && poolNameOf(config, target) === value);
  return { has, ...(problem === undefined ? {} : { problem }) };
}

/** The pool of a node in netcheck.yaml, if it has one. */
export function poolNameOf(config: Config, { name, cluster }: Pick<Target, "name" | "cluster">): string | undefined {
  const targets = config.clusters[cluster]?.targets ?? {};
  return Object.hasOwn(targets, name) ? targets[name]?.pool : undefined;
}

/** The same command with another word in the place of one. */
const instead = (terms: readonly NodeTerm[], word: string, other: string): string =>
  `nodes ${selectionWords(terms, 1900)
    .split(" ")
    .map((item) => (item === word ? other : item))
    .join(" ")}`;

function unknown(called: readonly Called[], terms: readonly NodeTerm[], name: string): Selection {
  const wanted = name.toLowerCase().replaceAll("*", "");
  const near = nearestOf(
    wanted,
    called.map(({ target }) => target.name),
  );
  const what = name.includes("*") ? `No name of a node fits "${name}".` : `I know no node called "${name}".`;
  const meant = near.length === 0 ? "" : " Did you mean another one?";
  return {
    kind: "unclear",
    text: `${what} Nothing was examined.${meant}`,
    choices: near.map((other) => ({ label: other, command: instead(terms, name, other) })),
  };
}

function ambiguous(hits: readonly Called[], terms: readonly NodeTerm[], name: string): Selection {
  const choices = hits.slice(0, SUGGESTIONS).map(({ target }) => {
    const full = `${target.cluster}/${target.name}`;
    return { label: full, command: instead(terms, name, full) };
  });
  return { kind: "unclear", text: `${hits.length} nodes are called "${name}". Nothing was examined. Which one do you mean?`, choices };
}

/** No node has a label: the values that netcheck.yaml has for it, if it has any. */
function without(config: Config, terms: readonly NodeTerm[], { name, value }: Extract<NodeTerm, { by: "label" }>, named: boolean): Selection {
  const clusters = Object.entries(config.clusters);
  const pools = clusters.flatMap(([, { targets }]) => Object.values(targets).flatMap(({ pool }) => (pool === undefined ? [] : [pool])));
  const known = name === "cluster" ? clusters.map(([cluster]) => cluster) : name === "pool" ? [...new Set(pools)] : [];
  const near = known.length === 0 ? [] : nearestOf(value, known);
  const those = near.length > 0 ? near : known.slice(0, SUGGESTIONS);
  const listed =
    known.length > 0 || clusters.some(([, { targetsByTag, debugPods }]) => targetsByTag !== undefined || debugPods?.targetsByLabel !== undefined)
      ? ""
      : ' Nodes that netcheck.yaml names one by one have no labels but "pool" and "cluster".';
  return {
    kind: "unclear",
    text: `No node ${named ? "of these " : ""}has ${name}=${value}. Nothing was examined.${listed}`,
    choices: those.map((other) => ({ label: `${name}=${other}`, command: instead(terms, `${name}=${value}`, `${name}=${other}`) })),
  };
}

/** The nearest of some names, best first. */
function nearestOf(wanted: string, names: readonly string[]): readonly string[] {
  return [...new Set(names)]
    .map((name) => ({ name, far: distance(wanted, name.toLowerCase()) }))
    .filter(({ name, far }) => far <= Math.max(2, Math.ceil(name.length / 2)) || (wanted.length > 1 && name.toLowerCase().startsWith(wanted)))
    .toSorted((a, b) => a.far - b.far || order.compare(a.name, b.name))
    .slice(0, SUGGESTIONS)
    .map(({ name }) => name);
}
