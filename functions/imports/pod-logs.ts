import { parsedJson } from "../facts/json.ts";
import { decodeText, type Head } from "../transports/archive.ts";

/** Logs of pods in what was collected of a whole cluster: those of the agents that run on each node, and CoreDNS's, which uses the resolvers of its node. */

/** Names of such pods, in a regular expression. */
export const AGENT_POD =
  "(?:kube-proxy|aws-node|cilium|calico-node|canal|rke2-canal|kube-flannel(?:-ds)?|weave-net|kube-router|node-local-dns|nodelocaldns|(?:rke2-)?coredns(?:-rke2-coredns)?)(?:-[a-z0-9]{4,10}){1,2}";

/** Pods and their nodes, from a list of pods. Anything else than what is expected in it is passed over. */
export function placesIn(head: Head): [string, string][] {
  const list = parsedJson(decodeText(head.bytes)) as { items?: unknown } | null | undefined;
  if (!Array.isArray(list?.items)) return [];
  return (list.items as { metadata?: { name?: unknown }; spec?: { nodeName?: unknown } }[]).flatMap((item): [string, string][] => {
    const [name, node] = [item?.metadata?.name, item?.spec?.nodeName];
    return typeof name === "string" && typeof node === "string" && node !== "" ? [[name, node]] : [];
  });
}
