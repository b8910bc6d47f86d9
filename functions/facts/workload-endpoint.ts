import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { addressFamily } from "./ip-address.ts";
import { isOwn } from "./node-name.ts";
import { present } from "./present.ts";

/**
 * Which device Calico made for which pod, as people paste it from `calicoctl get workloadendpoints`, or from kubectl, which asks Calico's own API server for the
 * same table. netcheck itself never asks the cluster.
 *
 *     NAMESPACE   WORKLOAD                NODE    NETWORKS           INTERFACE
 *     stage       cart-6d5b9f7c88-h4t2p   wk-4    10.233.118.77/32   calib5e90f1a382
 */
const Endpoint = z.object({
  line: z.int(),
  node: z.string(),
  /** One row for each address of the pod. */
  address: z.string(),
  interface: z.string(),
  /** True if the node is what the node of the capture is called, false if that is called otherwise; absent where that is not known. */
  own: z.boolean().optional(),
});
const WorkloadEndpoints = z.object({ rows: z.array(Endpoint) });
export type WorkloadEndpoint = z.infer<typeof Endpoint>;

const ROW = /\s([a-z0-9][a-z0-9.-]{0,252})\s{1,80}((?:[0-9a-f.:]{3,45}\/(?:32|128),?){1,8})\s{1,80}(cali[0-9a-f]{11})(?:\s|$)/;

export const workloadEndpoint = defineFact({
  id: "workload-endpoint",
  title: "Calico's devices of pods, as the cluster has them (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    const tool = /^(?:calicoctl|kubectl-calico|kubectl)$/.test(argv[0] ?? "");
    if (!tool || !argv.includes("get") || !argv.some((word) => /^(?:wep|workloadendpoints?)(?:\.[a-z.]{1,40})?$/i.test(word))) return undefined;
    return { format: "table", complete: false, scope: argv.slice(1).join(" ").slice(0, 200), rank: 1 };
  },
  schema: WorkloadEndpoints,
  parse({ text, names }) {
    const rows: WorkloadEndpoint[] = [];
    for (const { line, text: content } of lines(text)) {
      const [, node, networks, name] = content.length > 2000 ? [] : (ROW.exec(content) ?? []);
      if (node === undefined || networks === undefined || name === undefined) continue;
      for (const network of networks.split(",")) {
        const [address = "", length] = network.split("/");
        if (addressFamily(address) !== (length === "32" ? "ipv4" : "ipv6")) continue;
        rows.push({ line, node, address, interface: name, ...present({ own: isOwn(names, node) }) });
      }
    }
    return new UnparsedLines().with({ rows });
  },
});
