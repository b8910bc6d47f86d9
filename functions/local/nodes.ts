import { join } from "node:path";
import type { Target } from "../triage/ports.ts";

/** The replayed nodes: each one of the five incidents, recorded live in the lab before and after its fix. */
const CAPTURES: Record<string, { readonly before: string; readonly after?: string; readonly description: string }> = {
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
};

/** What the composer of the local page offers. */
export const offered: readonly { name: string; description: string }[] = [
  ...Object.entries(CAPTURES).map(([name, { description }]) => ({ name, description })),
  { name: "localhost", description: "this machine, through the local transport" },
];

/** Where the captures of a replayed target are. */
export function capturesOf(runbooks: string): (target: Target) => { before: string; after?: string } | undefined {
  return ({ address }) => {
    const captures = Object.hasOwn(CAPTURES, address) ? CAPTURES[address] : undefined;
    if (captures === undefined) return undefined;
    const root = join(runbooks, "rules");
    return { before: join(root, captures.before), ...(captures.after === undefined ? {} : { after: join(root, captures.after) }) };
  };
}
