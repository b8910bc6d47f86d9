import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { addressFamily, parseMac } from "./ip-address.ts";

/**
 * What flannel wrote about a node into the cluster, as people paste it: the other nodes send to this hardware address. netcheck itself never asks the cluster.
 *
 *     flannel.alpha.coreos.com/backend-data: '{"VNI":1,"VtepMAC":"6e:b9:d5:e1:19:85"}'
 *     flannel.alpha.coreos.com/public-ip: 10.20.0.12
 */
const Annotation = z.object({
  line: z.int(),
  /** Device of the node: "flannel.1", of the IPv6 annotation "flannel-v6.1". */
  interface: z.string(),
  /** Of that device, as the cluster has it. */
  mac: z.string(),
  /** Address of the node, where its annotation was printed behind the other. */
  address: z.string().optional(),
});
const Annotations = z.object({ rows: z.array(Annotation) });
type Annotation = z.infer<typeof Annotation>;

const MAC = /VtepMAC\\{0,3}"\s{0,3}:\s{0,3}\\{0,3}"([0-9a-f:]{17})/i;
const NETWORK = /VNI\\{0,3}"\s{0,3}:\s{0,3}(\d{1,8})/;
const ADDRESS = /flannel\.alpha\.coreos\.com\/public-ip"?\s{0,40}[:=]\s{0,40}['"]?([0-9.]{7,15})/;

export const flannelAnnotation = defineFact({
  id: "flannel-annotation",
  title: "Hardware addresses of flannel's devices as the cluster has them (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    if (!/^(?:kubectl|oc|k3s|microk8s)$/.test(argv[0] ?? "")) return undefined;
    const at = argv.findIndex((word, i) => i > 0 && (word === "get" || word === "describe"));
    if (at === -1 || !/^(?:no|nodes?)(?:\/.{1,253})?$/.test(argv[at + 1] ?? "")) return undefined;
    // a table of nodes shows no annotation
    const output = argv.slice(at).some((word) => /^(?:-o|--output=?)?(?:yaml|json|jsonpath.{0,2000}|custom-columns.{0,2000}|go-template.{0,2000})$/.test(word));
    return argv[at] === "get" && !output ? undefined : { format: "annotations", complete: true, scope: argv.slice(at + 1).join(" "), rank: 1 };
  },
  schema: Annotations,
  parse({ text }) {
    const rows: Annotation[] = [];
    // the rest of a node's description is about other things
    for (const { line, text: content } of lines(text)) {
      const mac = parseMac(MAC.exec(content)?.[1] ?? "");
      const address = ADDRESS.exec(content)?.[1];
      if (mac !== undefined)
        rows.push({ line, interface: `flannel${content.includes("backend-v6-data") ? "-v6" : ""}.${NETWORK.exec(content)?.[1] ?? "1"}`, mac });
      // the names of annotations are sorted: the address comes behind the hardware addresses of its node
      if (address === undefined || addressFamily(address) === undefined) continue;
      const seen = new Set<string>();
      for (let i = rows.length - 1; i >= 0; i--) {
        const row = rows[i] as Annotation;
        // of another node, or already told
        if (row.address !== undefined || seen.has(row.interface)) break;
        seen.add(row.interface);
        rows[i] = { ...row, address };
      }
    }
    return new UnparsedLines().with({ rows });
  },
});
