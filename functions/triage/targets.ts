import { distance } from "fastest-levenshtein";
import type { Config } from "./config.ts";
import type { Called, Discovered, Resolution, Target, Targets } from "./ports.ts";

/** All targets of a configuration that it names. */
export function targetsOf(config: Config): Target[] {
  return Object.entries(config.clusters).flatMap(([cluster, { transport, targets }]) =>
    Object.entries(targets).map(([name, { address }]) => ({ name, cluster, transport, address: address ?? name })),
  );
}

/** The other targets of a target's cluster that are in the same pool, by name; none if it is in no pool. */
export function poolOf(config: Config, target: Pick<Target, "name" | "cluster">): Target[] {
  const targets = config.clusters[target.cluster]?.targets ?? {};
  const pool = Object.hasOwn(targets, target.name) ? targets[target.name]?.pool : undefined;
  if (pool === undefined) return [];
  return targetsOf(config)
    .filter(({ name, cluster }) => cluster === target.cluster && name !== target.name && targets[name]?.pool === pool)
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Asks the transport of a cluster for the nodes that the configuration names only by a tag or a label ({@link Transport.discover}). */
export type Discover = (transport: string, cluster: string, nameTag?: string, labels?: Readonly<Record<string, string>>) => Promise<readonly Discovered[]>;

/**
 * Resolves names. What the configuration names wins: by name, address, or `cluster/name`. Then the nodes that its tags or labels find: by instance id, host name
 * with or without domain, IP address, the name they were registered with, or their Name tag. Several: all of them; none: the nearest names. Throws what `discover` throws.
 */
export function configuredTargets(config: () => Promise<Config>, discover: Discover = async () => []): Targets {
  const listed = (current: Config, named: readonly Called[], labels?: Readonly<Record<string, string>>) =>
    inAll(listsOf(current), async ({ cluster, transport, by }) => {
      const nodes = await discover(by, cluster, undefined, labels);
      return calledBy(cluster, transport, by === transport ? nodes : nodes.flatMap(asMachine), named);
    });
  return {
    async all(labels) {
      const current = await config();
      const named: Called[] = targetsOf(current).map((target) => ({ target, names: callable(target, []) }));
      const { called, problem } = await listed(current, named, labels);
      // a configured node that a list has, too, is called by what the list knows of it as well
      const byAddress = new Map<string, Called>();
      // which tags a node has that only the configuration names is not known
      for (const one of [...(labels === undefined ? named : []), ...called]) {
        const key = `${one.target.cluster} ${one.target.address}`;
        const before = byAddress.get(key);
        byAddress.set(key, { target: before?.target ?? one.target, names: [...new Set([...(before?.names ?? []), ...one.names])] });
      }
      return { called: [...byAddress.values()], ...(problem === undefined ? {} : { problem: problem.message }) };
    },
    async resolve(name) {
      const current = await config();
      const wanted = name.toLowerCase();
      const named: Called[] = targetsOf(current).map((target) => ({ target, names: callable(target, []) }));
      const configured = meant(named, wanted);
      if (configured !== undefined) return configured;
      const found = await listed(current, named);
      const byName = meant(found.called, wanted);
      if (byName !== undefined) return byName;
      const tagged = listsOf(current).filter(({ transport, by }) => transport === by);
      const [tag, inCluster] = splitCluster(
        name,
        tagged.map(({ cluster }) => cluster),
      );
      const chosen = tagged.filter(({ cluster }) => inCluster === undefined || inCluster === cluster);
      const byTag = await inAll(chosen, async ({ cluster, transport }) => {
        const addresses = new Set((await discover(transport, cluster, tag)).map(({ address }) => address));
        return found.called.filter(({ target }) => target.cluster === cluster && addresses.has(target.address));
      });
      const resolution = resolutionOf(byTag.called.map(({ target }) => target));
      if (resolution !== undefined) return resolution;
      // "unknown" would be wrong where we could not look
      const problem = found.problem ?? byTag.problem;
      if (problem !== undefined) throw problem;
      return { kind: "unknown", suggestions: nearest(wanted, [...named, ...found.called]) };
    },
  };
}

/** A list of nodes: of which cluster, reached by which transport, and by which one the list comes. */
interface NodeList {
  readonly cluster: string;
  readonly transport: string;
  readonly by: string;
}

/** The lists that the configuration asks for. Of Kubernetes nodes that Systems Manager reaches there may be two: its own, and the cluster's, which also has nodes whose agent is dead. */
function listsOf({ clusters }: Config): readonly NodeList[] {
  return Object.entries(clusters).flatMap(([cluster, { transport, targetsByTag, debugPods }]) => {
    const byTag = targetsByTag !== undefined && transport !== "debug-pod" ? [{ cluster, transport, by: transport }] : [];
    const byLabel =
      debugPods?.targetsByLabel !== undefined && (transport === "debug-pod" || transport === "ssm") ? [{ cluster, transport, by: "debug-pod" }] : [];
    return [...byTag, ...byLabel];
  });
}

/** A node of a cluster as Systems Manager finds it: by its machine. */
const asMachine = ({ machine, names }: Discovered): readonly Discovered[] => (machine === undefined ? [] : [{ address: machine, names }]);

/** Asks for all lists; one that cannot be had does not hide the others. `problem`: the first reason. */
async function inAll(
  lists: readonly NodeList[],
  ask: (list: NodeList) => Promise<readonly Called[]>,
): Promise<{ readonly called: readonly Called[]; readonly problem?: Error }> {
  const settled = await Promise.allSettled(lists.map(ask));
  const called = settled.flatMap((item) => (item.status === "fulfilled" ? item.value : []));
  const refused = settled.find((item) => item.status === "rejected");
  return { called, ...(refused === undefined ? {} : { problem: refused.reason as Error }) };
}

const callable = ({ name, address, cluster }: Target, more: readonly string[]): readonly string[] =>
  [name, address, `${cluster}/${name}`, ...more, ...more.map((other) => `${cluster}/${other}`)].map((key) => key.toLowerCase());

/** As netcheck.yaml would take a name: what a node calls itself may be anything. */
const PLAIN_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,252}$/;

/**
 * Discovered nodes as targets. Each is called by its first name, unless another node has that name, too: then by the next, and at last by its address, so that
 * people can choose. What the configuration names keeps that name.
 */
function calledBy(cluster: string, transport: string, nodes: readonly Discovered[], named: readonly Called[]): readonly Called[] {
  const configured = named.map(({ target }) => target).filter((target) => target.cluster === cluster);
  const taken = new Set(configured.map(({ name }) => name.toLowerCase()));
  const uses = new Map<string, number>();
  for (const { names } of nodes) for (const name of new Set(names.map((item) => item.toLowerCase()))) uses.set(name, (uses.get(name) ?? 0) + 1);
  const usable = (name: string): boolean => PLAIN_NAME.test(name) && uses.get(name.toLowerCase()) === 1 && !taken.has(name.toLowerCase());
  // an address becomes a name, a key and part of a request: a list that holds something else is not believed there
  const real = nodes.filter(({ address }) => PLAIN_NAME.test(address));
  return real.map(({ address, names }) => {
    const known = configured.find((target) => target.address === address);
    const target = known ?? { name: names.find(usable) ?? address, cluster, transport, address };
    return { target, names: callable(target, names) };
  });
}

function meant(all: readonly Called[], wanted: string): Resolution | undefined {
  return resolutionOf(all.filter(({ names }) => names.includes(wanted)).map(({ target }) => target));
}

function resolutionOf(all: readonly Target[]): Resolution | undefined {
  // two lists may have one node
  const targets = [...new Map(all.toReversed().map((target) => [`${target.cluster} ${target.address}`, target])).values()].toReversed();
  const [only] = targets;
  if (only === undefined) return undefined;
  return targets.length === 1 ? { kind: "found", target: only } : { kind: "ambiguous", candidates: targets };
}

/** "prod/web" → web in prod; a tag may hold a "/" itself. */
function splitCluster(name: string, clusters: readonly string[]): readonly [string, string | undefined] {
  const cluster = clusters.find((item) => name.toLowerCase().startsWith(`${item.toLowerCase()}/`));
  return cluster === undefined ? [name, undefined] : [name.slice(cluster.length + 1), cluster];
}

function nearest(wanted: string, all: readonly Called[]): readonly string[] {
  return [...new Set(all.map(({ target }) => target.name))]
    .flatMap((name) => {
      // people leave the domain out
      const forms = [name.toLowerCase(), name.toLowerCase().split(".")[0] ?? ""].filter((form) => form.length > 3 || form.length === name.length);
      const far = forms.map((form) => ({ form, far: distance(wanted, form) }));
      const near = far.filter((one) => one.far <= Math.max(2, Math.ceil(one.form.length / 2)) || one.form.startsWith(wanted));
      return near.length === 0 ? [] : [{ name, far: Math.min(...near.map((one) => one.far)) }];
    })
    .sort((a, b) => a.far - b.far || a.name.localeCompare(b.name))
    .slice(0, MOST_SUGGESTIONS)
    .map(({ name }) => name);
}

/** A message shows a few; a step's result has its limits. */
const MOST_SUGGESTIONS = 100;
