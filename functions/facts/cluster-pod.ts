import { z } from "zod";
import { hasOption, isPromptLine } from "./command.ts";
import { defineFact, type Input, lines, UnparsedLines, type View } from "./fact.ts";
import { addressFamily } from "./ip-address.ts";
import { isCalled } from "./node-name.ts";
import { isPrompt } from "./paste.ts";
import { present } from "./present.ts";

/**
 * Pods with their addresses, as people paste them. netcheck itself never asks the cluster.
 *
 *     NAMESPACE     NAME                       READY   STATUS    RESTARTS      AGE   IP            NODE    NOMINATED NODE   READINESS GATES
 *     kube-system   coredns-76f75df574-8l2wq   1/1     Running   3 (12d ago)   40d   10.244.1.7    wk-1    <none>           <none>
 */
const Pod = z.object({
  line: z.int(),
  name: z.string(),
  /** Of lists only one of all namespaces tells. */
  namespace: z.string().optional(),
  /** "Running", "CrashLoopBackOff", "Init:0/2", …; empty where the output does not tell. */
  status: z.string(),
  /** Of lists only `-o wide` tells, and only of pods that have one; pods of the host network have the node's. */
  address: z.string().optional(),
  /** Of lists only `-o wide` tells. */
  node: z.string().optional(),
  /** True if that is what the node of the capture is called, false if that is called otherwise. */
  own: z.boolean().optional(),
  /** True if the end of the list is missing: there may be more pods like this one. */
  cut: z.boolean().optional(),
});
const Pods = z.object({ rows: z.array(Pod) });
type Pod = z.infer<typeof Pod>;

const HEADER = /^(?:NAMESPACE\s+)?NAME\s+READY\s+STATUS\b|^No resources found|^Defaulted container/;
// RESTARTS is `3`, and since kubectl 1.23 `3 (12d ago)`
const ROW =
  /^(?:([a-z0-9-]{1,63})\s{1,100})?([a-z0-9][a-z0-9.-]{0,252})\s{1,200}\d{1,4}\/\d{1,4}\s{1,20}([A-Z][\w:/.-]{1,60})\s{1,60}\d{1,9}(?: \(\S{1,20} ago\))?\s{1,40}(?:<invalid>|<unknown>|[\ddhmsy]{1,16})(?:\s{1,40}(\S{1,64}))?(?:\s{1,80}(\S{1,253}))?(?:\s.{0,400})?$/;

/** Options of kubectl that take the next word with them. */
const VALUED = /^(?:-[nolcsLf]|--(?:namespace|output|selector|context|cluster|kubeconfig|field-selector|server|user|sort-by|tail))$/;
// kubectl describe: fields of the pod itself stand at the beginning of the line; the second `IP:`, of the list, and the containers' are indented
const DESCRIBED = /^(Name|Namespace|Node|Status|IP):\s{1,80}([^\s/]{1,253})/;
// -o yaml and -o json of one pod
const FIELD = /^\s{0,8}"?(nodeName|phase|podIP)"?: {1,4}"?([^\s",]{1,253})"?,?$/;

export const clusterPod = defineFact({
  id: "cluster-pod",
  title: "Pods of the cluster with their states and addresses (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    const at = argv.findIndex((word) => word === "get" || word === "describe");
    if (at < 1 || !/^(?:kubectl|oc|k3s)$/.test(argv[0] ?? "")) return undefined;
    if (!argv.slice(at + 1).some((word) => /^(?:po|pods?)(?:\/.{1,253})?$/.test(word))) return undefined;
    // what is told of one pod is all that was asked for
    if (argv[at] === "describe") return { format: "described", complete: true, scope: argv.slice(at).join(" "), rank: 2 };
    const output = argv.find((word, i) => /^(?:-o|--output)$/.test(argv[i - 1] ?? "") || /^(?:-o=?|--output=)\w/.test(word));
    if (/(?:^|=|-o)(?:yaml|json)$/.test(output ?? "") && podName(argv) !== undefined)
      return { format: "object", complete: true, scope: argv.slice(at).join(" "), rank: 2 };
    if (output !== undefined && !/(?:^|=|-o)wide$/.test(output)) return undefined;
    // a namespace, a node or a label: the other pods are not shown
    const all = hasOption(argv, "-A", "--all-namespaces", "--all-namespaces=true") && !argv.some((word) => /^(?:-l|--selector|--field-selector)/.test(word));
    return { format: "table", complete: all, scope: argv.slice(at + 1).join(" "), rank: output === undefined ? 1 : 2 };
  },
  schema: Pods,
  parse(input) {
    const { text, names, view } = input;
    if (view.format !== "table") return new UnparsedLines().with({ rows: fieldsOf(input) });
    const unparsed = new UnparsedLines();
    const rows: Pod[] = [];
    for (const { line, text: content } of lines(text)) {
      const match = ROW.exec(content.trim());
      if (match !== null) {
        const [, namespace, name, status, address, node] = match as unknown as [
          string,
          string | undefined,
          string,
          string,
          string | undefined,
          string | undefined,
        ];
        rows.push({
          line,
          name,
          ...(namespace === undefined ? {} : { namespace }),
          status,
          ...(address === undefined || addressFamily(address) === undefined ? {} : { address }),
          ...(node === undefined || node === "<none>" ? {} : { node, ...(names === undefined ? {} : { own: isCalled(names, node) }) }),
        });
      } else if (!HEADER.test(content.trim()) && !isPrompt(content) && !isPromptLine(content)) unparsed.add(line, content);
    }
    return unparsed.with({ rows: input.truncated === true ? rows.map((row) => ({ ...row, cut: true })) : rows });
  },
});

/** The one pod that is asked for by name; undefined if there are several, or none. */
function podName(argv: readonly string[]): string | undefined {
  const words = argv.filter((word, i) => !word.startsWith("-") && !VALUED.test(argv[i - 1] ?? ""));
  const at = words.findIndex((word) => /^(?:po|pods?)(?:\/.{1,253})?$/.test(word));
  const named = [...(words[at]?.split("/").slice(1) ?? []), ...words.slice(at + 1)];
  return at === -1 || named.length !== 1 ? undefined : named[0];
}

/** Pods that are told of field by field. Their many other lines are about other things. */
function fieldsOf({ text, argv, names, view }: Input): Pod[] {
  const found: { line: number; name: string | undefined; fields: Map<string, string> }[] = [];
  const asked = podName(argv);
  for (const { line, text: content } of lines(text)) {
    const [, key = "", value = ""] = (view.format === "described" ? DESCRIBED : FIELD).exec(content) ?? [];
    if (key === "") continue;
    let pod = found.at(-1);
    if (pod === undefined || (key === "Name" && pod.fields.size > 0)) {
      pod = { line, name: asked, fields: new Map() };
      found.push(pod);
    }
    if (key === "Name") pod.name = value;
    if (key.endsWith("IP") && !pod.fields.has(key)) pod.line = line;
    if (!pod.fields.has(key)) pod.fields.set(key, value);
  }
  return found.flatMap(({ line, name, fields }): Pod[] => {
    const shown = fields.get("IP") ?? fields.get("podIP") ?? "";
    const address = addressFamily(shown) === undefined ? undefined : shown;
    const node = fields.get("Node") ?? fields.get("nodeName");
    const status = fields.get("Status") ?? fields.get("phase") ?? "";
    if (name === undefined || (status === "" && address === undefined)) return [];
    return [
      {
        line,
        name,
        ...present({ namespace: fields.get("Namespace"), address }),
        status,
        ...(node === undefined || node === "<none>" ? {} : { node, ...(names === undefined ? {} : { own: isCalled(names, node) }) }),
      },
    ];
  });
}
