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

/** What the composer of the local page offers, the healthy nodes of the pool last; `example`: to somebody who has not asked anything yet, too. */
export const offered: readonly { readonly name: string; readonly description: string; readonly example: boolean }[] = [
  ...Object.entries(CAPTURES).map(([name, { description, inPool }]) => ({ name, description, example: inPool !== true })),
  { name: "localhost", description: "this machine, through the local transport", example: true },
].sort((a, b) => Number(b.example) - Number(a.example));

/** Where the captures of a replayed target are. */
export function capturesOf(runbooks: string): (target: Target) => { before: string; after?: string } | undefined {
  return ({ address }) => {
    const captures = Object.hasOwn(CAPTURES, address) ? CAPTURES[address] : undefined;
    if (captures === undefined) return undefined;
    const rules = join(runbooks, "rules");
    return { before: resolve(rules, captures.before), ...(captures.after === undefined ? {} : { after: resolve(rules, captures.after) }) };
  };
}
