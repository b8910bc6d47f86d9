import type { Context } from "./context.ts";
import type { PodPlace, Ports, ServiceEndpoint, ServicePlace, Target, WorkloadName } from "./ports.ts";
import { targetsOf } from "./targets.ts";

/** From a pod or a service to the nodes to look at, with the reason for each. */

/** A node, and why it was chosen, for people. */
export interface ChosenNode {
  readonly target: Target;
  readonly why: string;
}

/** `node`: the one that is triaged as any other. `server`: of a service, where it runs; absent if nothing is known to serve it. */
export type Chosen =
  | { readonly kind: "pod"; readonly place: PodPlace; readonly node: ChosenNode }
  | { readonly kind: "service"; readonly place: ServicePlace; readonly node: ChosenNode; readonly server?: ChosenNode };

export type Choice =
  | { readonly kind: "chosen"; readonly chosen: Chosen }
  /** Several clusters have it: the words that ask for each. */
  | { readonly kind: "ambiguous"; readonly words: readonly string[] }
  | { readonly kind: "none"; readonly outcome: string; readonly text: string };

/** "pod shop/web-1", "service prod/shop/web from node3": what people typed, and what a capture of it is called. At most 253 characters. */
export function workloadWords({ kind, cluster, namespace, name, from }: WorkloadName): string {
  return `${kind} ${cluster === undefined ? "" : `${cluster}/`}${namespace}/${name}${from === undefined ? "" : ` from ${from}`}`.slice(0, 253);
}

/** Looks the workload up and chooses nodes, in one step. Throws what the cluster's API or the transports say where they cannot be asked. */
export async function chooseNodes({ durable, ports }: Context, asked: WorkloadName): Promise<Choice> {
  return durable.step("workload", async () => {
    if (ports.workloads === undefined)
      return {
        kind: "none",
        outcome: "unknown",
        text: "Pods and services cannot be looked up here: netcheck.yaml gives access to no cluster's API (debugPods).",
      };
    const resolution = await ports.workloads.find(asked);
    const words = workloadWords(asked);
    if (resolution.kind === "unknown") return { kind: "none", outcome: "unknown", text: `netcheck did not find the ${words}: ${resolution.reason}.` };
    if (resolution.kind === "ambiguous") return { kind: "ambiguous", words: resolution.clusters.map((cluster) => workloadWords({ ...asked, cluster })) };
    return resolution.place.kind === "pod" ? chooseForPod(ports, resolution.place) : chooseForService(ports, asked, resolution.place);
  });
}

async function chooseForPod(ports: Ports, place: PodPlace): Promise<Choice> {
  const target = await targetOf(ports, place.cluster, place.node);
  if (target === undefined) return unreachable(place.cluster, place.node);
  return { kind: "chosen", chosen: { kind: "pod", place, node: { target, why: "the pod runs there" } } };
}

async function chooseForService(ports: Ports, asked: WorkloadName, place: ServicePlace): Promise<Choice> {
  const words = workloadWords(asked);
  if (place.type === "ExternalName")
    return { kind: "none", outcome: "external-name", text: `The ${words} is an ExternalName: only a DNS name for something outside. No node leads to it.` };
  const server = serverOf(place);
  if (asked.from !== undefined) {
    const resolved = await ports.targets.resolve(asked.from);
    const named = resolved.kind === "found" ? resolved.target : await targetOf(ports, place.cluster, place.nodes.includes(asked.from) ? asked.from : "");
    if (named === undefined) return { kind: "none", outcome: "unknown", text: `netcheck knows no node "${asked.from}", from which the ${words} is called.` };
    if (named.cluster !== place.cluster)
      return { kind: "none", outcome: "unknown", text: `${named.name} is a node of ${named.cluster}, and the ${words} is in ${place.cluster}.` };
    return chosenOf(ports, place, { target: named, why: "you named it" }, server);
  }
  const client = clientOf(place, server?.node);
  if (client === undefined)
    return {
      kind: "none",
      outcome: "unknown",
      text: `netcheck knows no node from which to look at the ${words}${place.problems.length === 0 ? "" : ` (${place.problems.join("; ")})`}. Name one: "${words} from <node>".`,
    };
  const target = await targetOf(ports, place.cluster, client.node);
  if (target === undefined) return unreachable(place.cluster, client.node);
  return chosenOf(ports, place, { target, why: client.why }, server);
}

async function chosenOf(ports: Ports, place: ServicePlace, node: ChosenNode, server: Picked | undefined): Promise<Choice> {
  const target = server === undefined ? undefined : await targetOf(ports, place.cluster, server.node);
  const serving = target === undefined || server === undefined ? {} : { server: { target, why: server.why } };
  return { kind: "chosen", chosen: { kind: "service", place, node, ...serving } };
}

const unreachable = (cluster: string, node: string): Choice => ({
  kind: "none",
  outcome: "unknown",
  text: `The node is ${node} in ${cluster}, and netcheck has no way to it: it is no target of netcheck.yaml, and the cluster has no debugPods there.`,
});

/** A node of a cluster, by the name that the cluster gives it, as a target; undefined if there is no way to it. */
async function targetOf(ports: Pick<Ports, "config" | "targets">, cluster: string, node: string): Promise<Target | undefined> {
  if (node === "") return undefined;
  const config = await ports.config();
  const own = targetsOf(config).filter((target) => target.cluster === cluster);
  const known = own.find(({ address }) => address === node) ?? own.find(({ name }) => name === node);
  if (known !== undefined) return known;
  const resolved = await ports.targets.resolve(`${cluster}/${node}`);
  if (resolved.kind === "found") return resolved.target;
  // the name comes from the cluster itself, not from chat
  return config.clusters[cluster]?.debugPods === undefined ? undefined : { name: node, cluster, transport: "debug-pod", address: node };
}

interface Picked {
  readonly node: string;
  readonly why: string;
}

/** The node of the first endpoint that is ready, on a node that can be looked at if there is one; else of any. */
function serverOf({ endpoints, nodes }: ServicePlace): Picked | undefined {
  const placed = endpoints.filter((endpoint): endpoint is ServiceEndpoint & { node: string } => endpoint.node !== undefined);
  // on another node nothing may be to look at: it is not ready, of Windows, or somebody else's
  const first =
    placed.find(({ ready, node }) => ready && nodes.includes(node)) ??
    placed.find(({ ready }) => ready) ??
    placed.find(({ serving }) => serving === true) ??
    placed[0];
  if (first === undefined) return undefined;
  const what = first.pod ?? `${first.address}:${first.port}`;
  return {
    node: first.node,
    why: first.ready
      ? `${what}, which is ready, runs there`
      : `${what} runs there; no endpoint is ready${first.serving === true ? ", but it still answers" : ""}`,
  };
}

/** A node that calls the service over the network: one without an endpoint of it, if there is one, and if the service takes endpoints of other nodes. */
function clientOf({ endpoints, nodes, onlyLocal }: ServicePlace, server: string | undefined): Picked | undefined {
  if (onlyLocal && server !== undefined) return { node: server, why: "the service takes only endpoints on the calling node (internalTrafficPolicy Local)" };
  const serving = new Set(endpoints.map(({ node }) => node));
  const free = nodes.find((node) => !serving.has(node));
  if (free !== undefined) return { node: free, why: "the first ready node without an endpoint of it" };
  const other = nodes.find((node) => node !== server) ?? endpoints.find(({ node }) => node !== undefined && node !== server)?.node;
  if (other !== undefined) return { node: other, why: "another node than the one that serves; all known nodes have an endpoint of it" };
  return server === undefined ? undefined : { node: server, why: "no other node is known" };
}

/** Which nodes are looked at and why, for the thread. */
export function chosenText(asked: WorkloadName, chosen: Chosen): string {
  const words = workloadWords(asked);
  const { node } = chosen;
  if (chosen.kind === "pod") {
    const { phase, addresses } = chosen.place;
    return `The ${words} (${[phase, ...addresses].join(", ")}) runs on ${node.target.name} of ${node.target.cluster}: that node is examined, and the network inside the pod.`;
  }
  const { place, server } = chosen;
  const ready = place.endpoints.filter((endpoint) => endpoint.ready).length;
  const counted = place.more > 0 ? `more than ${place.endpoints.length}` : String(place.endpoints.length);
  const address = place.addresses.length === 0 ? "no address of its own (headless)" : place.addresses.join(", ");
  const behind = place.problems.some((problem) => problem.startsWith("its endpoints")) ? "" : `; ${counted} endpoints, ${ready} of them ready`;
  const serving =
    server === undefined
      ? "No node is known to serve it."
      : server.target.name === node.target.name
        ? `It is served there, too: ${server.why}.`
        : `${server.target.name} is examined as a server: ${server.why}.`;
  return `The ${words} has ${address}${behind}. ${node.target.name} is examined as a client: ${node.why}. ${serving}`;
}
