import type { Config } from "../triage/config.ts";

/**
 * What a transport finds a cluster's named targets by → their names. For a cluster whose fallback it is, only where netcheck.yaml says it: the cluster itself
 * is asked for the others when they are needed.
 */
export function addressesOf({ transport, targets }: Config["clusters"][string], wanted: "ssm" | "debug-pod"): Map<string, string> {
  return new Map(
    Object.entries(targets).flatMap(([name, { address, fallbackAddress }]) => {
      const by = transport === wanted ? (address ?? name) : fallbackAddress;
      return by === undefined ? [] : [[by, name] as const];
    }),
  );
}
