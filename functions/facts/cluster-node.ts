import { z } from "zod";
import { isPromptLine, optionValue } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { addressFamily, asAddress } from "./ip-address.ts";
import { elementsOf, type KubeObject, kubeObjects, secondsOf } from "./kube-list.ts";
import { namedWords } from "./kubectl-command.ts";
import { isOwn } from "./node-name.ts";
import { isPrompt } from "./paste.ts";
import { present } from "./present.ts";

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
  /** Seconds since it joined, as far as kubectl's table tells ("35s", "23d"), or its description, up to the node's last sign of life. */
  age: z.number().optional(),
  /** True if that is what the node of the capture is called, false if that is called otherwise. */
  own: z.boolean().optional(),
});
/** A range that the cluster set aside for the pods of one node: `PodCIDR: 10.244.1.0/24`. */
const Range = z.object({
  line: z.int(),
  prefix: z.string(),
  /** Whose it is, where the command or the text names the node. */
  node: z.string().optional(),
  /** True if that is what the node of the capture is called, false if that is called otherwise. */
  own: z.boolean().optional(),
});
const Nodes = z.object({ rows: z.array(Node), ranges: z.array(Range) });
type Node = z.infer<typeof Node>;
type Range = z.infer<typeof Range>;

const HEADER = /^NAME\s+STATUS\s+ROLES\s+AGE\s+VERSION\b/;
const STATUS = /^(?:NotReady|Ready|Unknown)(?:,\w{1,40}){0,4}$/;
const NAME = /^[a-z0-9<>][a-z0-9.<>_-]{0,252}$/i;
const VERSION = /^v\d{1,2}\.\d{1,3}\.\S{1,40}$/;

/** `kubectl describe node`, YAML, JSON. */
const FIELD = /^\s{0,8}"?(?:PodCIDR|podCIDR)"?:\s{1,80}"?([0-9a-f.:]{3,45}\/\d{1,3})"?,?$/;
const DESCRIBED = /^Name:\s{1,80}(\S{1,253})$/;
/** Whether columns are asked for in which addresses stand. */
const asksAddresses = (argv: readonly string[]): boolean => /(?:jsonpath|custom-columns|go-template).{0,400}(?:[Aa]ddress|InternalIP)/.test(argv.join(" "));
/** `| jq -r '.items[] | .metadata.name + " " + (.status.addresses[] | select(.type=="InternalIP").address)'` */
const PICKS_ADDRESSES = /^jq (?:-\w{1,3} ){0,3}-\w{0,2}r.{1,400}(?:InternalIP|\.address\b)/;
/** `| awk '{print $1, $6}'`, `| tr -s ' ' | cut -d' ' -f1,6`. */
const PICKS_COLUMNS = /(?:^|\| )(?:awk .{0,200}print \$?\d?|cut )/;

export const clusterNode = defineFact({
  id: "cluster-node",
  title: "Nodes of the cluster with their states and addresses (pasted only)",
  commands: [],
  recognize(argv, _, pipe = ""): View | undefined {
    const [program, verb, kind = ""] = argv;
    if (program !== "kubectl" || !(verb === "get" || verb === "describe") || !/^nodes(?:\/.{1,253})?$/.test(kind)) return undefined;
    const output = optionValue(argv, "-o");
    if (output === "json" && PICKS_ADDRESSES.test(pipe)) return { format: "chosen", complete: false, scope: "chosen", rank: 0 };
    if (verb === "describe" || output === "yaml" || output === "json" || argv.some((word) => word.includes("podCIDR")))
      return { format: "ranges", complete: false, scope: argv.slice(1).join(" ").slice(0, 200), rank: 0, hint: true };
    // of columns that somebody chose, the name and the addresses are known by their looks
    if (output !== undefined && asksAddresses(argv)) return { format: "chosen", complete: false, scope: "chosen", rank: 0 };
    if (output !== undefined && output !== "wide") return undefined;
    // the same of columns of the table that somebody picked
    if (output === "wide" && PICKS_COLUMNS.test(pipe)) return { format: "chosen", complete: false, scope: "chosen", rank: 0 };
    const rest = argv.slice(3).filter((word) => !word.startsWith("-") && word !== "wide");
    return {
      format: "table",
      complete: rest.length === 0 && !kind.includes("/") && !argv.includes("-l"),
      scope: "",
      rank: output === undefined ? 1 : 2,
    };
  },
  schema: Nodes,
  parse({ text, view, argv, names }) {
    const unparsed = new UnparsedLines();
    const rows: Node[] = [];
    if (view.format === "ranges") {
      const columns = asksAddresses(argv);
      const { objects } = kubeObjects(text);
      const rows = columns ? [...lines(text)].flatMap(({ line, text: content }) => chosen(line, content)) : [...objects.flatMap(nodeOf), ...described(text)];
      // of a list each object tells its own name
      const ranges = objects.flatMap((object) => rangeOf(object, names));
      return unparsed.with({ rows: withOwn(rows, names), ranges: ranges.length > 0 ? ranges : rangesOf(text, argv, names) });
    }
    if (view.format === "chosen")
      return unparsed.with({
        rows: withOwn(
          [...lines(text)].flatMap(({ line, text: content }) => chosen(line, content)),
          names,
        ),
        ranges: [],
      });
    for (const { line, text: content } of lines(text)) {
      const [name = "", status = "", , since = "", version = "", address = ""] = content.trim().split(/\s+/, 6);
      if (NAME.test(name) && STATUS.test(status) && VERSION.test(version)) {
        rows.push({ line, name, status, version, ...present({ internalAddress: asAddress(address), age: secondsOf(since) }) });
      } else if (!HEADER.test(content.trim()) && !isPrompt(content)) unparsed.add(line, content);
    }
    return unparsed.with({ rows: withOwn(rows, names), ranges: [] });
  },
});

const withOwn = (rows: readonly Node[], names: readonly string[] | undefined): Node[] =>
  rows.map((row) => ({ ...row, ...present({ own: isOwn(names, row.name) }) }));

/** A node of `-o json` and `-o yaml`. What is told of it in `kubectl describe` is indented otherwise. */
function nodeOf(object: KubeObject): Node[] {
  const value = (path: string): string | undefined => object.fields.get(path)?.value;
  const version = value("status.nodeInfo.kubeletVersion");
  // somebody may have left out what did not matter
  if (version === undefined && value("kind") !== "Node") return [];
  const address = elementsOf(object, "status.addresses")
    .find((fields) => fields.get("type")?.value === "InternalIP")
    ?.get("address");
  const ready = elementsOf(object, "status.conditions")
    .find((fields) => fields.get("type")?.value === "Ready")
    ?.get("status")?.value;
  const state = ready === undefined ? "Unknown" : ready === "True" ? "Ready" : "NotReady";
  return [
    {
      line: object.line,
      name: value("metadata.name") ?? "",
      status: value("spec.unschedulable") === "true" ? `${state},SchedulingDisabled` : state,
      version: version ?? "",
      ...present({ internalAddress: asAddress(address?.value) }),
    },
  ];
}

/**
 * The nodes of `kubectl describe node`, one after the other: name, conditions, address and version, each at the left margin or in a section of its own.
 *
 *     Ready            False   Sun, 22 Nov 2026 14:49:40 +0000   …   KubeletNotReady   container runtime network not ready: …
 */
function described(text: string): Node[] {
  const rows: Node[] = [];
  const nodes = new Set<Node | undefined>();
  let made: number | undefined;
  for (const { line, text: content } of lines(text)) {
    const name = DESCRIBED.exec(content)?.[1];
    if (name !== undefined) made = undefined;
    if (content.startsWith("Roles: ")) nodes.add(rows.at(-1));
    if (name !== undefined) rows.push({ line, name, status: "Unknown", version: "" });
    const row = rows.at(-1);
    if (row === undefined || content.length > 4000) continue;
    made ??= timeIn(/^CreationTimestamp: {1,40}(.{20,40})$/.exec(content)?.[1]);
    const [, ready, beat] = /^ {2}Ready {1,40}(True|False|Unknown) {1,20}(\w{3}, (?:\d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4})?)/.exec(content) ?? [];
    if (ready !== undefined) row.status = row.status.replace("Unknown", ready === "True" ? "Ready" : "NotReady");
    const last = timeIn(beat);
    if (made !== undefined && last !== undefined) row.age = Math.max(0, last - made);
    if (/^Unschedulable: {1,20}true$/.test(content)) row.status += ",SchedulingDisabled";
    row.version = /^ Kubelet Version: {1,40}(v\d\S{1,40})$/.exec(content.replace(/^ {1,4}/, " "))?.[1] ?? row.version;
    const address = /^ {2}InternalIP: {1,20}(\S{3,45})$/.exec(content)?.[1];
    if (asAddress(address) !== undefined) row.internalAddress ??= address;
  }
  // `describe pod` has a name, too
  return rows.filter((row) => row.version !== "" || (nodes.has(row) && row.status !== "Unknown"));
}

/** `Fri, 20 Nov 2026 09:58:00 +0000` in seconds since 1970. */
function timeIn(text: string | undefined): number | undefined {
  const time = Date.parse(text ?? "") / 1000;
  return Number.isNaN(time) ? undefined : time;
}

/** What `-o json` and `-o yaml` say of a node's range. */
function rangeOf({ fields }: KubeObject, names: readonly string[] | undefined): Range[] {
  const [node, range] = [fields.get("metadata.name")?.value, fields.get("spec.podCIDR")];
  if (node === undefined || range === undefined || addressFamily(range.value.split("/")[0] ?? "") === undefined) return [];
  return [{ line: range.line, prefix: range.value, node, ...present({ own: isOwn(names, node) }) }];
}

/** A line of names and addresses, in any order: each address is one of a node, named by the first word that is none. */
function chosen(line: number, content: string): Node[] {
  if (isPromptLine(content)) return [];
  const words = content.trim().split(/[\s,]{1,40}/, 200);
  const name = words.find((word) => NAME.test(word) && addressFamily(word) === undefined) ?? "";
  return words.flatMap((word) => (addressFamily(word) === undefined ? [] : [{ line, name, status: "Unknown", version: "", internalAddress: word }]));
}

/** The ranges in what is told of one node, or of several one after the other, or in columns that somebody chose. */
function rangesOf(text: string, argv: readonly string[], names: readonly string[] | undefined): Range[] {
  const [kind = "", ...others] = namedWords(argv);
  const named = [...kind.split("/").slice(1), ...others];
  const rows: Range[] = [];
  let node = named.length === 1 ? named[0] : undefined;
  for (const { line, text: content } of lines(text)) {
    if (content.length > 4000 || isPromptLine(content)) continue;
    node = DESCRIBED.exec(content)?.[1] ?? node;
    const field = FIELD.exec(content)?.[1];
    // of columns: a line that has a name and prefixes, or prefixes alone
    const words = content.trim().split(/[\s,"[\]]{1,40}/, 20);
    const isRange = (word: string): boolean => /^[0-9a-f.:]{3,45}\/\d{1,3}$/.test(word) && addressFamily(word.split("/")[0] ?? "") !== undefined;
    const columns =
      argv.some((word) => word.includes("podCIDR")) &&
      words.every((word, i) => word === "" || isRange(word) || addressFamily(word) !== undefined || (i === 0 && NAME.test(word)));
    const whose = columns && !isRange(words[0] ?? "") && words[0] !== "" ? words[0] : node;
    for (const prefix of columns ? words.filter(isRange) : field === undefined ? [] : [field]) {
      rows.push({ line, prefix, ...present({ node: whose, own: isOwn(names, whose) }) });
    }
  }
  return rows;
}
