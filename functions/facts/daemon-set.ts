import { z } from "zod";
import { optionValue } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { namedWords } from "./kubectl-command.ts";
import { isPrompt } from "./paste.ts";

/**
 * DaemonSets of the cluster, as people paste them. netcheck itself never asks the cluster.
 *
 *     NAMESPACE      NAME              DESIRED   CURRENT   READY   UP-TO-DATE   AVAILABLE   NODE SELECTOR            AGE
 *     kube-flannel   kube-flannel-ds   3         3         3       3            3           <none>                   2h
 */
const DaemonSet = z.object({
  line: z.int(),
  name: z.string(),
  desired: z.int(),
  ready: z.int(),
  /** "<none>", "kubernetes.io/os=linux". */
  selector: z.string(),
});
const DaemonSets = z.object({
  rows: z.array(DaemonSet),
  /** All DaemonSets of all namespaces were listed, beginning with this line. */
  listings: z.array(z.object({ line: z.int() })),
  /** All of the namespace kube-system. */
  system: z.array(z.object({ line: z.int() })),
});

const ROW =
  /^(?:[a-z0-9-]{1,63}\s{1,80})?([a-z0-9][a-z0-9.-]{0,252})\s{1,80}(\d{1,5})\s{1,20}\d{1,5}\s{1,20}(\d{1,5})\s{1,20}\d{1,5}\s{1,20}\d{1,5}\s{1,20}(\S{1,200})\s{1,80}[\ddhmsy]{1,16}(?:\s|$)/;
const HEADER = /^(?:NAMESPACE\s+)?NAME\s+DESIRED\b|^No resources found|^Error from server \(NotFound\)/;

export const daemonSet = defineFact({
  id: "daemon-set",
  title: "DaemonSets of the cluster (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    if (argv[0] !== "kubectl" || argv[1] !== "get" || !/^(?:ds|daemonsets?(?:\.apps)?)$/.test(namedWords(argv)[0] ?? "")) return undefined;
    const formatted = argv.some((word, at) => word === "-o" && argv[at + 1] !== "wide");
    const chosen = argv.some((word) => word === "-l" || word.startsWith("--field-selector")) || namedWords(argv).length > 1;
    const format = !chosen && optionValue(argv, "-n") === "kube-system" ? "system" : "table";
    return formatted ? undefined : { format, complete: argv.includes("-A") && !chosen, scope: argv.slice(2).join(" ").slice(0, 200), rank: 1 };
  },
  schema: DaemonSets,
  parse({ text, view, truncated, pipe }) {
    const unparsed = new UnparsedLines();
    const rows: z.infer<typeof DaemonSet>[] = [];
    for (const { line, text: content } of lines(text)) {
      const [, name, desired, ready, selector = ""] = ROW.exec(content.trim()) ?? [];
      if (name !== undefined) rows.push({ line, name, desired: Number(desired), ready: Number(ready), selector });
      else if (!HEADER.test(content.trim()) && !isPrompt(content)) unparsed.add(line, content);
    }
    const first = unparsed.count === 0 && truncated !== true && (pipe ?? "") === "" ? rows.slice(0, 1).map(({ line }) => ({ line })) : [];
    return unparsed.with({ rows, listings: view.complete ? first : [], system: view.format === "system" ? first : [] });
  },
});
