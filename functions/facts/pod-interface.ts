import type { Link } from "./link.ts";

/** Names that CNIs give to the host's end of a pod's interface: Cilium, Calico, VPC CNI, azure-vnet, GKE, kube-router/bridge/Docker. */
const NAMES = /^(?:lxc[0-9a-f]{6,14}|cali[0-9a-f]{6,11}|eni[0-9a-f]{9,12}|azv[0-9a-f]{4,12}|gke[0-9a-f]{6,12}|veth[0-9a-zA-Z_.-]{1,11})$/;
/** Names that no CNI gives to that end: of a node that is itself a container (kind), the uplink is a veth with its other end elsewhere; and Cilium's own pairs. */
const NEVER = /^(?:eth|en|ib|wl|bond|team|lo$|cilium_|lxc_health$)/;

/** True if this is the host's end of a pod's or container's interface, by its name or because its other end is in another network namespace. */
export function isPodInterface(name: string, links: readonly Pick<Link, "interface" | "kind" | "peerNamespace">[]): boolean {
  if (NAMES.test(name)) return true;
  if (NEVER.test(name)) return false;
  const link = links.find((row) => row.interface === name);
  return link?.kind === "veth" && link.peerNamespace !== undefined;
}
