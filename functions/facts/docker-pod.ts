import { z } from "zod";
import type { Pods } from "./cluster-pod.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { placed } from "./placed.ts";

/**
 * Pods in a pasted list whose address is one that Docker's default network (172.17.0.0/16) gave, told by the list alone: two nodes gave the same one, or
 * other pods, which are not on the nodes' own network, have addresses elsewhere.
 *
 *     nginx-2b5vv   1/1   Running   0   2m   172.17.0.2   w1
 *     nginx-9k7h1   1/1   Running   0   2m   172.17.0.2   w2
 */
const DockerPod = z.object({ line: z.int(), name: z.string(), address: z.string() });
/** A range that the cluster set aside for this node's pods: `PodCIDR: 10.244.1.0/24`. */
const Range = z.object({ line: z.int(), prefix: z.string() });
const DockerPods = z.object({ rows: z.array(DockerPod), ranges: z.array(Range) });

interface Sources {
  readonly "cluster-pod"?: Placed<Pods>;
  readonly "cluster-node"?: { ranges: readonly (Row & { prefix: string; own?: boolean })[] };
}

/** What Docker gives first; the bridge itself has .1. */
const DEFAULT = /^172\.17\.0\.(?:[2-9]|[1-9]\d|1\d\d|2[0-4]\d|25[0-4])$/;
const RUNS = /^(?:Running|CrashLoopBackOff|Error|Completed|Terminating)?$/;
/** Pods that live on the nodes' own network: their addresses are the nodes'. */
const HOST =
  /^(?:calico-node|canal|cilium|kube-flannel|kube-router|weave-net|aws-node|antrea-agent|kube-proxy|etcd|kube-apiserver|kube-controller|kube-scheduler)-/;

export const dockerPod = defineDerivedFact<z.infer<typeof DockerPods>>({
  id: "docker-pod",
  title: "Pods that Docker's default network gave an address, by a pasted list of pods",
  // of services only that a cluster was asked for its endpoints, which the rule judges
  from: ["address", "cluster-pod", "cluster-node", "cluster-service"],
  optional: ["cluster-pod", "cluster-node", "cluster-service"],
  inPart: ["cluster-node"],
  schema: DockerPods,
  // all pods of this node were listed
  enough: (values: Sources, whole) => whole.has("address") && (values["cluster-pod"]?.listings.length ?? 0) > 0,
  derive(values: Sources) {
    const pods = (values["cluster-pod"]?.rows ?? []).filter((row) => row.address !== undefined && RUNS.test(row.status));
    const hosts = new Set(pods.filter((row) => HOST.test(row.name)).map((row) => row.address));
    const own = pods.filter((row) => !hosts.has(row.address));
    const given = own.filter((row) => DEFAULT.test(row.address as string));
    const twice = given.some((row) =>
      given.some((other) => other.address === row.address && other.node !== undefined && row.node !== undefined && other.node !== row.node),
    );
    const elsewhere = hosts.size > 0 && own.some((row) => !(row.address as string).startsWith("172.17."));
    const rows = twice || elsewhere ? given.map((row) => ({ ...placed(row), name: row.name, address: row.address as string })) : [];
    const ranges = (values["cluster-node"]?.ranges ?? []).filter((row) => row.own === true).map((row) => ({ ...placed(row), prefix: row.prefix }));
    return { rows, ranges };
  },
});
