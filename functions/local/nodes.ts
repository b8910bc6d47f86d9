import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Target } from "../triage/ports.ts";

/** Also from dist/cli/, where the bundle is. */
const root = fileURLToPath(new URL("../../", import.meta.url));

/** A node of the pool "blue", recorded live: `node test/lab/record-pool.ts`. */
const blue = (number: number): string => join(root, `functions/local/pool/blue-${number}.tgz`);

/** The replayed nodes: each one of the five incidents, recorded live in the lab before and after its fix; a healthy one; a pool. Relative paths are those of rules. */
const CAPTURES: Record<string, { readonly before: string; readonly after?: string; readonly description: string; readonly inPool?: true }> = {
  node1: {
    before: "linklocal-route-on-bond-member/fixtures/lab-fault",
    after: "linklocal-route-on-bond-member/fixtures/lab-fixed",
    description: "the host drops off the network when a sidecar starts",
  },
  node2: {
    before: "kube-forward-before-cilium/fixtures/lab-fault",
    after: "kube-forward-before-cilium/fixtures/lab-fixed",
    description: "pods connect to outside, then hang",
  },
  node3: {
    before: "stale-socket-lb-program/fixtures/lab-fault",
    after: "stale-socket-lb-program/fixtures/lab-fixed",
    description: "one service address is dead from this node",
  },
  node4: {
    before: "bridge-netfilter-off/fixtures/lab-fault",
    after: "bridge-netfilter-off/fixtures/lab-fixed",
    description: "a service fails when its backend is on the same node",
  },
  node5: {
    before: "stale-ebtables-nat/fixtures/lab-fault",
    after: "stale-ebtables-nat/fixtures/lab-fixed",
    description: "inbound traffic to some pods is lost",
  },
  healthy1: { before: "bridge-netfilter-off/fixtures/lab-healthy", description: "nothing is wrong here" },
  "blue-1": { before: blue(1), description: "healthy, in the pool blue", inPool: true },
  "blue-2": { before: blue(2), description: "healthy, in the pool blue", inPool: true },
  "blue-3": { before: blue(3), description: "a database is out of reach; no rule knows why, so it is compared with its pool" },
  "blue-4": { before: blue(4), description: "healthy, in the pool blue", inPool: true },
};

/** Of the pool "green": nodes 1 to this one. */
const FLEET = 40;
/** Which recording each of them replays, where it is not one of the healthy ones of the pool "blue" in turn. None: nothing was recorded, as if it did not answer. */
const FLEET_RECORDINGS: Readonly<Record<number, string | undefined>> = {
  7: "node4",
  12: "node2",
  14: "node4",
  19: "node5",
  23: "node4",
  28: "node2",
  31: "node4",
  35: "blue-3",
  38: undefined,
};
const HEALTHY = ["blue-1", "blue-2", "blue-4"] as const;
const fleetRecordings = Array.from({ length: FLEET }, (_, index) =>
  Object.hasOwn(FLEET_RECORDINGS, index + 1) ? FLEET_RECORDINGS[index + 1] : HEALTHY[index % HEALTHY.length],
);

/**
 * The pool "green": no recordings of its own, but some of those above under other names, so that there is a fleet to look at. Its nodes differ in nothing but
 * their names where they replay the same recording.
 */
export const fleet: { readonly nodes: ReadonlyMap<string, string | undefined>; readonly recordings: number } = {
  /** Name → the target whose recording it replays; undefined: none. */
  nodes: new Map(fleetRecordings.map((recording, index) => [`green-${index + 1}`, recording])),
  /** Different ones. */
  recordings: new Set(fleetRecordings.filter((recording) => recording !== undefined)).size,
};

/** Something to ask for on the local page. `example`: also for somebody who has not asked anything yet. `needs`: a target without which it makes no sense. */
export interface Offer {
  readonly name: string;
  readonly description: string;
  readonly example: boolean;
  readonly needs?: string;
}

/** What the composer of the local page offers behind the command: nodes, the healthy ones of the pool last, then the other questions. */
export const offered: readonly Offer[] = [
  ...[
    ...Object.entries(CAPTURES).map(([name, { description, inPool }]) => ({ name, description, example: inPool !== true, needs: name })),
    { name: "localhost", description: "this machine, through the local transport", example: true, needs: "localhost" },
    {
      name: "nodes pool=green",
      description: `${fleet.nodes.size} nodes at once: replays of ${fleet.recordings} recordings under other names`,
      example: true,
      needs: "green-1",
    },
  ].toSorted((a, b) => Number(b.example) - Number(a.example)),
  { name: "status", description: "what is open, and what waits for an approval", example: false },
  { name: "history node2", description: "what was found on a node before", example: false, needs: "node2" },
  { name: "rules", description: "the rules, and how often they were right", example: false },
  { name: "mute nic-drops on node2 for 7d because the card is replaced on Monday", description: "hides a finding for a while", example: false, needs: "node2" },
  { name: "help", description: "what it can do", example: true },
];

/** Where the captures of a replayed target are. */
export function capturesOf(runbooks: string): (target: Target) => { before: string; after?: string } | undefined {
  return ({ address }) => {
    const recording = fleet.nodes.get(address) ?? address;
    const captures = Object.hasOwn(CAPTURES, recording) ? CAPTURES[recording] : undefined;
    if (captures === undefined) return undefined;
    const rules = join(runbooks, "rules");
    return { before: resolve(rules, captures.before), ...(captures.after === undefined ? {} : { after: resolve(rules, captures.after) }) };
  };
}
