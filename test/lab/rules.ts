import type { Incident } from "./lab.ts";

/** The rule that names each incident's cause. */
export const RULES: Record<Incident, string> = {
  s1: "linklocal-route-on-bond-member",
  s2: "kube-forward-before-cilium",
  s3: "stale-socket-lb-program",
  s4: "bridge-netfilter-off",
  s5: "stale-ebtables-nat",
};
