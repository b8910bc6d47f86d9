import { z } from "zod";
import { isPromptLine, operands } from "./command.ts";
import { answeredByDefault, defineFact, lines, UnparsedLines, type View } from "./fact.ts";

/**
 * What flannel noted for the plugin that connects pods: the pods' network, this node's range and MTU.
 *
 *     FLANNEL_NETWORK=10.244.0.0/16
 *     FLANNEL_SUBNET=10.244.2.1/24
 *     FLANNEL_MTU=1450
 */
const Env = z.object({
  /** Of the MTU; of a file without one, of the range. */
  line: z.int(),
  network: z.string().optional(),
  /** The bridge's address and the length of the node's prefix. */
  subnet: z.string().optional(),
  mtu: z.int().optional(),
});
const FlannelEnv = z.object({ rows: z.array(Env) });

const FILE = "/run/flannel/subnet.env";
const SETTING = /^FLANNEL_(NETWORK|SUBNET|MTU|IPMASQ|IPV6_NETWORK|IPV6_SUBNET)=(\S{0,60})$/;

export const flannelEnv = defineFact({
  id: "flannel-env",
  title: "The node's range of pods and MTU as flannel noted them",
  commands: [{ argv: ["cat", FILE] }],
  recognize(argv): View | undefined {
    const words = operands(argv);
    const own = /^(?:\/host)?(?:\/var)?\/run\/flannel\/subnet\.env$/.test(words.at(-1) ?? "");
    const searched = /^[ef]?grep$/.test(argv[0] ?? "") && words.length === 2;
    return own && (searched || (argv[0] === "cat" && words.length === 1))
      ? { format: "env", complete: !searched, scope: "", rank: searched ? 0 : 1 }
      : undefined;
  },
  schema: FlannelEnv,
  // on a node without flannel there is no such file, which is an answer
  answered: (output) => answeredByDefault(output) || output.stderr.includes("No such file or directory"),
  parse({ text }) {
    const unparsed = new UnparsedLines();
    const row: z.infer<typeof Env> = { line: 0 };
    for (const { line, text: content } of lines(text)) {
      const [, key, value = ""] = SETTING.exec(content.trim()) ?? [];
      if (key === undefined) {
        if (!isPromptLine(content) && !content.endsWith("No such file or directory")) unparsed.add(line, content);
      } else if (key === "NETWORK") row.network = value;
      else if (key === "SUBNET") {
        row.subnet = value;
        if (row.mtu === undefined) row.line = line;
      } else if (key === "MTU" && /^\d{1,5}$/.test(value)) {
        row.mtu = Number(value);
        row.line = line;
      }
    }
    return unparsed.with({ rows: row.line === 0 ? [] : [row] });
  },
});
