import { distance } from "fastest-levenshtein";
import type { Config } from "./config.ts";
import type { Target, Targets } from "./ports.ts";

/** All targets of a configuration. */
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

/** Resolves names against the configuration: by name, by address, or `cluster/name`; otherwise the nearest names. */
export function configuredTargets(config: () => Promise<Config>): Targets {
  return {
    async resolve(name) {
      const targets = targetsOf(await config());
      const wanted = name.toLowerCase();
      const matches = targets.filter((target) => [target.name, target.address, `${target.cluster}/${target.name}`].some((key) => key.toLowerCase() === wanted));
      const [only] = matches;
      if (only !== undefined && matches.length === 1) return { kind: "found", target: only };
      if (matches.length > 1) return { kind: "ambiguous", candidates: matches };
      const near = targets
        .map((target) => ({ name: target.name, far: distance(wanted, target.name.toLowerCase()) }))
        .filter(({ name: candidate, far }) => far <= Math.max(2, Math.ceil(candidate.length / 2)) || candidate.toLowerCase().startsWith(wanted))
        .sort((a, b) => a.far - b.far || a.name.localeCompare(b.name));
      return { kind: "unknown", suggestions: near.map((candidate) => candidate.name) };
    },
  };
}
