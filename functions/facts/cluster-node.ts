import { z } from "zod";
import { hasOption, isPromptLine } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { addressFamily } from "./ip-address.ts";
import { isPrompt } from "./paste.ts";

/**
 * The nodes of the cluster, as people paste them. netcheck itself never asks the cluster.
 *
 *     NAME    STATUS     ROLES           AGE   VERSION   INTERNAL-IP   EXTERNAL-IP   OS-IMAGE             KERNEL-VERSION      CONTAINER-RUNTIME
 *     node1   NotReady   control-plane   23d   v1.29.4   10.20.0.11    <none>        Ubuntu 22.04.4 LTS   5.15.0-91-generic   containerd://1.7.12
 */
const Node = z.object({
  line: z.int(),
  name: z.string(),
  /** "Ready", "NotReady", "Ready,SchedulingDisabled", … */
  status: z.string(),
  /** kubelet's version: "v1.29.4". */
  version: z.string(),
  /** Only `-o wide` tells. */
  internalAddress: z.string().optional(),
});
const Nodes = z.object({ rows: z.array(Node) });

const HEADER = /^NAME\s+STATUS\s+ROLES\s+AGE\s+VERSION\b/;
const STATUS = /^(?:NotReady|Ready|Unknown)(?:,\w{1,40}){0,4}$/;
const NAME = /^[a-z0-9<>][a-z0-9.<>_-]{0,252}$/i;
const VERSION = /^v\d{1,2}\.\d{1,3}\.\S{1,40}$/;

export const clusterNode = defineFact({
  id: "cluster-node",
  title: "Nodes of the cluster with their states and addresses (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    const at = argv.indexOf("get");
    const kind = argv[at + 1] ?? "";
    if (at < 1 || !/^(?:kubectl|oc|k3s)$/.test(argv[0] ?? "") || !/^(?:no|nodes?)(?:\/.{1,253})?$/.test(kind)) return undefined;
    const output = argv.find((word, i) => /^(?:-o|--output)$/.test(argv[i - 1] ?? "") || /^(?:-o|--output=)\w/.test(word));
    // of columns that somebody chose, the name and the addresses are known by their looks
    if (output !== undefined && /(?:jsonpath|custom-columns|go-template).{0,400}(?:[Aa]ddress|InternalIP)/.test(argv.join(" "))) {
      return { format: "chosen", complete: false, scope: "chosen", rank: 0 };
    }
    if (output !== undefined && !/(?:^|=|-o)wide$/.test(output)) return undefined;
    const rest = argv.slice(at + 2).filter((word) => !word.startsWith("-") && word !== "wide");
    return { format: "table", complete: rest.length === 0 && !hasOption(argv, "-l", "--selector"), scope: "", rank: output === undefined ? 1 : 2 };
  },
  schema: Nodes,
  parse({ text, view }) {
    const unparsed = new UnparsedLines();
    const rows: z.infer<typeof Node>[] = [];
    if (view.format === "chosen") return unparsed.with({ rows: [...lines(text)].flatMap(({ line, text: content }) => chosen(line, content)) });
    for (const { line, text: content } of lines(text)) {
      const [name = "", status = "", , , version = "", address = ""] = content.trim().split(/\s+/, 6);
      if (NAME.test(name) && STATUS.test(status) && VERSION.test(version)) {
        rows.push({ line, name, status, version, ...(addressFamily(address) === undefined ? {} : { internalAddress: address }) });
      } else if (!HEADER.test(content.trim()) && !isPrompt(content) && !isPromptLine(content)) unparsed.add(line, content);
    }
    return unparsed.with({ rows });
  },
});

/** A line of names and addresses, in any order: each address is one of a node, named by the first word that is none. */
function chosen(line: number, content: string): z.infer<typeof Node>[] {
  if (isPromptLine(content)) return [];
  const words = content.trim().split(/[\s,]{1,40}/, 200);
  const name = words.find((word) => NAME.test(word) && addressFamily(word) === undefined) ?? "";
  return words.flatMap((word) => (addressFamily(word) === undefined ? [] : [{ line, name, status: "Unknown", version: "", internalAddress: word }]));
}
