import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";

/**
 * Answers that came from another address than the one that was asked, as dig and nslookup complain of them in pasted text: what was translated on the way
 * there was not translated back. The programs may have run in a pod. netcheck itself asks nothing.
 *
 *     ;; reply from unexpected source: 10.42.0.3#53, expected 10.43.0.10#53
 */
const Answer = z.object({
  line: z.int(),
  /** Who answered. */
  from: z.string(),
  fromPort: z.int(),
  /** Who was asked. */
  expected: z.string(),
  expectedPort: z.int(),
  /** The name that was asked for is one of a cluster: "kubernetes.default", "web.shop.svc". */
  ofCluster: z.boolean().optional(),
});
const Answers = z.object({ rows: z.array(Answer) });

const PROGRAMS = new Set(["dig", "nslookup", "host", "delv"]);
/** Behind these a program runs in a container. */
const TOOLS = new Set(["kubectl", "oc", "k3s", "docker", "podman", "crictl", "nerdctl", "microk8s"]);
const CLUSTER_NAME = /^kubernetes(?:\.default)?(?:\.|$)|\.svc(?:\.|$)|\.cluster\.local\.?$/;
const UNEXPECTED = /reply from unexpected source: ([0-9a-fA-F.:]{2,45})#(\d{1,5}), expected ([0-9a-fA-F.:]{2,45})#(\d{1,5})/;

export const serviceAnswer = defineFact({
  id: "service-answer",
  title: "Answers that came from another address than the one asked, as dig and nslookup tell (pasted only)",
  commands: [],
  anywhere: true,
  recognize(argv): View | undefined {
    const asks = PROGRAMS.has(argv[0] ?? "") || (TOOLS.has(argv[0] ?? "") && argv.some((word) => PROGRAMS.has(word)));
    return asks ? { format: "messages", complete: true, scope: argv.join(" ").slice(0, 200), rank: 1 } : undefined;
  },
  schema: Answers,
  parse({ text, argv }) {
    const ofCluster = argv.some((word) => CLUSTER_NAME.test(word)) ? { ofCluster: true } : {};
    const rows: z.infer<typeof Answer>[] = [];
    // what else these programs print is about other things
    for (const { line, text: content } of lines(text)) {
      const match = content.length > 1000 ? null : UNEXPECTED.exec(content);
      if (match === null) continue;
      const [, from, fromPort, expected, expectedPort] = match as unknown as [string, string, string, string, string];
      rows.push({ line, from, fromPort: Number(fromPort), expected, expectedPort: Number(expectedPort), ...ofCluster });
    }
    return new UnparsedLines().with({ rows });
  },
});
