import { z } from "zod";
import { hasOption, optionValue } from "./command.ts";
import { defineFact, type Input, lines, UnparsedLines, type View } from "./fact.ts";
import { addressFamily, asAddress } from "./ip-address.ts";
import { elementsOf, isTableHeader, type KubeObject, kindInRow, kubeObjects, secondsOf } from "./kube-list.ts";
import { namedWords } from "./kubectl-command.ts";
import { isNamedAlike, isOwn } from "./node-name.ts";
import { isPrompt } from "./paste.ts";
import { showsAll } from "./pipe.ts";
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
  /** The name differs from this node's in numbers alone: it is another node of the same cluster, not another name of this one. */
  alike: z.boolean().optional(),
  /** Seconds since it was made, as far as kubectl's table tells ("3s", "2m10s", "12d"). */
  age: z.number().optional(),
  /** Seconds since it was last restarted, where kubectl's table tells (since 1.23): `3 (12d ago)`. */
  restarted: z.number().optional(),
  /** Of a pod that runs and is not ready (`0/1 Running` in kubectl's table): seconds since it was made or last restarted, whichever is less. */
  unready: z.number().optional(),
  /** True if the end of the list is missing: there may be more pods like this one. */
  cut: z.boolean().optional(),
});
/** All pods of all namespaces were listed, of the whole cluster or of one node: what is not in `rows` is not there. */
const Listing = z.object({
  line: z.int(),
  node: z.string().optional(),
  /** As of a pod, of that node. */
  own: z.boolean().optional(),
});
const Pods = z.object({ rows: z.array(Pod), listings: z.array(Listing) });
export type Pods = z.infer<typeof Pods>;
type Listing = z.infer<typeof Listing>;
type Pod = z.infer<typeof Pod>;

const HEADER = /^(?:NAMESPACE\s+)?NAME\s+READY\s+STATUS\b|^No resources found|^Defaulted container/;
// RESTARTS is `3`, and since kubectl 1.23 `3 (12d ago)`
const ROW =
  /^(?:([a-z0-9-]{1,63})\s{1,100})?([a-z0-9][a-z0-9.-]{0,252})\s{1,200}(\d{1,4}\/\d{1,4})\s{1,20}([A-Z][\w:/.-]{1,60})\s{1,60}\d{1,9}(?: \((\S{1,20}) ago\))?\s{1,40}(<invalid>|<unknown>|[\ddhmsy]{1,16})(?:\s{1,40}(\S{1,64}))?(?:\s{1,80}(\S{1,253}))?(?:\s.{0,400})?$/;

const POD = /^(?:po|pods?)(?:\/.{1,253})?$/;
// kubectl describe: fields of the pod itself stand at the beginning of the line; the second `IP:`, of the list, and the containers' are indented
const DESCRIBED = /^(Name|Namespace|Node|Status|IP):\s{1,80}([^\s/]{1,253})/;
// Docker's own names: k8s_POD_NAME_NAMESPACE_UID_N is the container that holds the pod's network. Its address stands on the same line, or, in JSON, in a later one
const ENGINE_POD = /k8s_POD_([a-z0-9][a-z0-9.-]{0,252})_([a-z0-9-]{1,63})_/;
const ENGINE_ADDRESS = /(?:^|[\s"=:,;|])(\d{1,3}(?:\.\d{1,3}){3})(?:\/\d{1,2})?(?=$|[\s",;|\]}])/;
const ENGINE_FIELD = /^\s{0,80}"(?:IPv4Address|IPAddress)": {1,4}"(\d{1,3}(?:\.\d{1,3}){3})(?:\/\d{1,2})?"/;
/** What a container of it waits for or ended with, which the list of pods has for its state. */
const WAITS = /^ {4}State: {1,20}(\w{1,20})$/;
const WAITS_FOR = /^ {6}Reason: {1,20}([A-Z]\w{1,60})$/;
/** When it was given to its node, or made. Where no event is left the last one is an hour old. */
const SCHEDULED = /^ {2}Normal {1,20}Scheduled {1,40}(\S{1,16}) /;
const START_TIME = /^Start Time: {1,40}(\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4})$/;
/** Since when a container runs, and that it is not ready. */
const STARTED = /^ {6}Started: {1,40}(\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4})$/;
const UNREADY = /^ {4}Ready: {1,40}False$/;
// -o yaml and -o json of one pod
const FIELD = /^\s{0,8}"?(nodeName|phase|podIP)"?: {1,4}"?([^\s",]{1,253})"?,?$/;

export const clusterPod = defineFact({
  id: "cluster-pod",
  title: "Pods of the cluster with their states and addresses (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    const words = argv.filter((word) => !word.startsWith("-"));
    // what Docker says of the pods that it connected itself; of another machine's with -H
    if (words[0] === "docker" && (words[1] === "inspect" || words[2] === "inspect") && !hasOption(argv, "-H", "--host", "--context"))
      return { format: "engine", complete: false, scope: argv.slice(1).join(" ").slice(0, 200), rank: 0 };
    const [program, verb] = argv;
    if (program !== "kubectl" || !(verb === "get" || verb === "describe")) return undefined;
    const named = namedWords(argv);
    if (!(verb === "get" && asksSeveral(named[0] ?? "")) && !named.some((word) => POD.test(word))) return undefined;
    // a namespace, a node or a label: the other pods are not shown
    const all = argv.includes("-A") && !argv.some((word) => word === "-l" || word.startsWith("--field-selector"));
    // what is told of one pod is all that was asked for
    if (verb === "describe") return { format: "described", complete: all || podName(argv) !== undefined, scope: argv.slice(1).join(" "), rank: 2 };
    const output = optionValue(argv, "-o");
    const objects = output === "yaml" || output === "json";
    if (objects && podName(argv) !== undefined) return { format: "object", complete: true, scope: argv.slice(1).join(" "), rank: 2 };
    const columns = columnsOf(output);
    if (output !== undefined && output !== "wide" && !objects && columns === undefined) return undefined;
    return {
      format: objects ? "objects" : columns === undefined ? "table" : "columns",
      complete: all,
      scope: argv.slice(2).join(" "),
      rank: output === undefined ? 1 : 2,
    };
  },
  schema: Pods,
  parse(input) {
    const { text, names, view } = input;
    if (view.format === "engine") return new UnparsedLines().with({ rows: engineOf(text, input.argv), listings: [] });
    if (view.format !== "table" && view.format !== "objects" && view.format !== "columns") {
      const rows = fieldsOf(input);
      const [object] = view.format === "object" ? kubeObjects(text).objects : [];
      const [pod] = rows;
      // "Running" is what its phase is while its container ends again and again
      if (object !== undefined && pod !== undefined) pod.status = stateOf(object) || pod.status;
      // a description ends with the events
      const whole = view.format === "described" && text.slice(text.lastIndexOf("\nName:")).includes("\nEvents:");
      return new UnparsedLines().with({ rows, listings: whole && rows.length > 0 ? listingOf(input) : [] });
    }
    const unparsed = new UnparsedLines();
    const list = view.format === "objects" ? kubeObjects(text) : undefined;
    const objects = list?.objects.filter(({ fields }) => (fields.get("kind")?.value ?? "Pod") === "Pod") ?? [];
    const rows: Pod[] = objects.map((object) => podOf(object, input));
    const shown = text.trimEnd().split("\n");
    // its end is missing: behind the last line
    if (list?.whole === false) unparsed.add(shown.length, shown.at(-1) as string);
    for (const { line, text: content } of list === undefined ? lines(text) : []) {
      if (view.format === "columns") {
        const pod = chosen(line, content, input);
        if (pod !== undefined) rows.push(pod);
        else if (!/^[A-Z][A-Z\d_ -]{0,400}$/.test(content.trim()) && !isPrompt(content)) unparsed.add(line, content);
        continue;
      }
      const kind = kindInRow(content.trim());
      if (kind !== undefined && kind !== "pod") continue;
      const match = ROW.exec(content.trim().replace(/(^|\s)pod\//, "$1"));
      if (match !== null) {
        const [, namespace, name, ready, status, restarted, since, address, node] = match as unknown as [
          string,
          string | undefined,
          string,
          string,
          string,
          string | undefined,
          string,
          string | undefined,
          string | undefined,
        ];
        rows.push({
          line,
          name,
          ...present({ namespace }),
          status,
          ...present({ address: asAddress(address) }),
          ...whoseOf(node, names),
          ...present({ age: secondsOf(since), restarted: secondsOf(restarted ?? ""), unready: unreadyFor(ready, status, secondsOf(restarted ?? since)) }),
        });
      } else if (!HEADER.test(content.trim()) && !isTableHeader(content.trim()) && !isPrompt(content)) unparsed.add(line, content);
    }
    const listed = unparsed.count === 0 && rows.length > 0 ? listingOf(input, rows) : [];
    // of one node's pods all are of that node, whether or not the columns say so
    const node = listed[0]?.node ?? onlyNode(rows, input);
    for (const row of rows) if (row.node === undefined) Object.assign(row, whoseOf(node, names));
    return unparsed.with({ rows: input.truncated === true || list?.whole === false ? rows.map((row) => ({ ...row, cut: true })) : rows, listings: listed });
  },
});

/** For how long containers of a pod that runs may have been not ready; undefined of others. */
function unreadyFor(ready: string, status: string, since: number | undefined): number | undefined {
  const [some, all] = ready.split("/");
  return status === "Running" && some !== all ? since : undefined;
}

/** `kubectl get all`, `kubectl get pods,svc`. */
function asksSeveral(kinds: string): boolean {
  return kinds === "all" || (kinds.includes(",") && kinds.split(",", 20).some((kind) => kind === "pods" || kind === "all"));
}

/** What the columns hold that somebody chose: `custom-columns=NAME:.metadata.name,IP:.status.podIP`, `jsonpath='{range .items[*]}{.metadata.name}{"\t"}{.status.podIP}{"\n"}{end}'`. */
function columnsOf(output: string | undefined): string[] | undefined {
  const [, kind, spec = ""] = /^(custom-columns|jsonpath)=(.{1,2000})$/s.exec(output ?? "") ?? [];
  const paths =
    kind === "custom-columns"
      ? spec.split(",").map((column) => column.slice(column.indexOf(":") + 1))
      : [...spec.matchAll(/\{(\.[\w.[\]]{1,200})\}/g)].map(([, path]) => path ?? "");
  return kind !== undefined && paths.some((path) => /^\.?metadata\.name$/.test(path)) && paths.length > 1
    ? paths.map((path) => path.replace(/^\./, ""))
    : undefined;
}

/** A row of such columns, none of which has a blank in it; undefined if something of it is missing, or it says nothing but the name. */
function chosen(line: number, content: string, { argv, names }: Input): Pod | undefined {
  const paths = columnsOf(optionValue(argv, "-o")) ?? [];
  const words = content.trim().split(/\s+/, 40);
  const value = (path: string): string | undefined => words[paths.indexOf(path)]?.replace(/^<none>$/, "");
  const [name = "", address = "", node = ""] = [value("metadata.name"), value("status.podIP"), value("spec.nodeName")];
  const status = value("status.phase") ?? "";
  if (words.length !== paths.length || !/^[a-z0-9][a-z0-9.-]{0,252}$/.test(name) || (address !== "" && addressFamily(address) === undefined)) return undefined;
  const namespace = value("metadata.namespace") || undefined;
  return { line, name, ...present({ namespace }), status, ...(address === "" ? {} : { address }), ...whoseOf(node === "" ? undefined : node, names) };
}

/** The state that kubectl shows in its table. */
function stateOf(object: KubeObject): string {
  const value = (path: string): string | undefined => object.fields.get(path)?.value;
  const containers = elementsOf(object, "status.containerStatuses").map(
    (fields) => fields.get("state.waiting.reason") ?? fields.get("state.terminated.reason"),
  );
  if (value("metadata.deletionTimestamp") !== undefined) return "Terminating";
  return containers.find((field) => field !== undefined)?.value ?? value("status.reason") ?? value("status.phase") ?? "";
}

/** A pod of a list of objects. */
function podOf(object: KubeObject, { names, startedAt }: Input): Pod {
  const value = (path: string): string | undefined => object.fields.get(path)?.value;
  return {
    line: object.line,
    name: value("metadata.name") ?? "",
    ...present({ namespace: value("metadata.namespace") }),
    status: stateOf(object),
    ...present({ address: asAddress(value("status.podIP")) }),
    ...whoseOf(value("spec.nodeName"), names),
    ...present({ age: ageOf(value("metadata.creationTimestamp"), startedAt) }),
  };
}

/** Seconds between a time of the API and the collection, where both are known. */
function ageOf(time: string | undefined, startedAt: number | undefined): number | undefined {
  const made = Date.parse(time ?? "") / 1000;
  return startedAt === undefined || Number.isNaN(made) ? undefined : Math.max(0, Math.round(startedAt - made));
}

/** One grep for a name: "grep node-7", "grep -w 'node-7.example.org'". */
const SEARCH = /^[ef]?grep(?: -[wFEi]{1,4}){0,3} ["']?([\w.-]{2,253})["']?$/;

/** Whether the command asks for every pod, of the cluster or of one node; all rows of a table that was searched for the name of a node are those of the node. */
function listingOf({ argv, names, pipe, truncated }: Input, rows: readonly Pod[] = []): Listing[] {
  if (!argv.includes("-A") || truncated === true || argv.includes("-l")) return [];
  const searched = SEARCH.exec(pipe ?? "")?.[1];
  const alone = searched === undefined || argv.some((word) => word.startsWith("--field-selector")) ? undefined : rows[0]?.node;
  if (alone?.includes(searched as string) === true && rows.every((row) => row.node === alone))
    return [{ line: 1, node: alone, ...present({ own: isOwn(names, alone) }) }];
  if (!showsAll(pipe ?? "")) return [];
  const selector = argv.find((word) => word.startsWith("--field-selector"));
  if (selector === undefined) return [{ line: 1 }];
  const node = /^--field-selector=spec\.nodeName={1,2}([^,\s]{1,253})$/.exec(selector)?.[1];
  return node === undefined ? [] : [{ line: 1, node, ...present({ own: isOwn(names, node) }) }];
}

/** The node of a cluster of one, of a list without that column: the static pods have its name, and of kube-proxy, which each node has, there is one. */
function onlyNode(rows: readonly Pod[], { argv, pipe, truncated, view }: Input): string | undefined {
  if (view.format !== "table" || truncated === true || !showsAll(pipe ?? "") || argv.includes("-l") || argv.some((word) => word.startsWith("--field-selector")))
    return undefined;
  const servers = rows.flatMap(({ name }) => /^kube-apiserver-(.{1,253})$/.exec(name)?.[1] ?? []);
  const isAlone = servers.length === 1 && rows.filter(({ name }) => name.startsWith("kube-proxy-")).length === 1;
  return isAlone && rows.every((row) => row.node === undefined) ? servers[0] : undefined;
}

/** The node of a pod, and whether that is this one. */
function whoseOf(node: string | undefined, names: readonly string[] | undefined): Pick<Pod, "node" | "own" | "alike"> {
  if (node === undefined || node === "<none>") return {};
  const own = isOwn(names, node);
  return present({ node, own, alike: (own === false && isNamedAlike(names ?? [], node)) || undefined });
}

/** The one pod that is asked for by name; undefined if there are several, or none. */
function podName(argv: readonly string[]): string | undefined {
  const words = namedWords(argv);
  const at = words.findIndex((word) => POD.test(word));
  const named = [...(words[at]?.split("/").slice(1) ?? []), ...words.slice(at + 1)];
  return at === -1 || named.length !== 1 ? undefined : named[0];
}

/** Pods of this node to which Docker gave an address. Containers that are no pods have other names. */
function engineOf(text: string, argv: readonly string[]): Pod[] {
  const rows: Pod[] = [];
  // `docker inspect -f '{{.NetworkSettings.IPAddress}}' k8s_POD_…`: a line for each that was named, with its address or, of one that has none of its own, without
  const named = argv.slice(2).filter((word) => word.startsWith("k8s_"));
  const answers = named.length === 0 ? [] : [...lines(text.trimEnd())].filter((answer) => !isPrompt(answer.text));
  if (answers.length <= named.length && answers.every(({ text: content }) => content.trim() === "" || addressFamily(content.trim()) !== undefined))
    for (const [i, { line, text: content }] of answers.entries()) {
      const [, name, namespace] = content.trim() === "" ? [] : (ENGINE_POD.exec(named[i] ?? "") ?? []);
      if (name !== undefined && namespace !== undefined) rows.push({ line, name, namespace, status: "", address: content.trim(), own: true });
    }
  if (rows.length > 0) return rows;
  let pod: { name: string; namespace: string } | undefined;
  for (const { line, text: content } of lines(text)) {
    if (content.length > 4000) continue;
    const [matched, name, namespace] = ENGINE_POD.exec(content) ?? [];
    if (name !== undefined && namespace !== undefined) pod = { name, namespace };
    // another container begins
    else if (/^\s{0,80}"Name": /.test(content)) pod = undefined;
    const rest = matched === undefined ? undefined : content.replace(matched, " ");
    const address = (rest === undefined ? ENGINE_FIELD.exec(content) : ENGINE_ADDRESS.exec(rest))?.[1];
    if (pod === undefined || address === undefined || addressFamily(address) === undefined) continue;
    rows.push({ line, ...pod, status: "", address, own: true });
    pod = undefined;
  }
  return rows;
}

/** An excerpt about containers that lost what it was set in by, as people paste them, set in again as far as kubectl has it. */
function setIn(text: string): string {
  const [, before] = /^( {0,3})State: /m.exec(text) ?? [];
  return before === undefined ? text : text.replaceAll(/^(?=.)/gm, " ".repeat(4 - before.length));
}

/** Pods that are told of field by field. Their many other lines are about other things. */
function fieldsOf({ text: given, argv, names, view, startedAt }: Input): Pod[] {
  const found: { line: number; name: string | undefined; fields: Map<string, string>; age?: number | undefined; unready?: number | undefined }[] = [];
  const asked = podName(argv);
  const text = view.format === "described" ? setIn(given) : given;
  let runs: string | undefined;
  // the kind of containers that the lines are about, and whether the state of one of them has a reason that matters
  let [section, waits] = ["", false];
  for (const { line, text: content } of lines(text)) {
    if (view.format === "described" && /^[A-Z]/.test(content)) [section, waits] = [content.replace(/:.*/, ""), false];
    // `| grep -A4 State:` and `| sed -n '/^Containers/,$p'` leave nothing but the containers of the one that was asked for
    if (view.format === "described" && /^(?:(?:Init )?Containers)?$/.test(section) && asked !== undefined && found.length === 0 && WAITS.test(content)) {
      if (section === "") section = "Containers";
      found.push({ line, name: asked, fields: new Map() });
    }
    const state = section.endsWith("Containers") ? WAITS.exec(content)?.[1] : undefined;
    if (state !== undefined) waits = state === "Waiting" || state === "Terminated";
    // the time of the last one stands below it
    if (state !== undefined) runs = state === "Running" ? "" : undefined;
    if (runs === "") runs = STARTED.exec(content)?.[1] ?? runs;
    if (section === "Containers" && UNREADY.test(content) && found.length > 0) (found.at(-1) as (typeof found)[number]).unready ??= ageOf(runs, startedAt);
    const reason = waits ? WAITS_FOR.exec(content)?.[1] : undefined;
    const shown = found.at(-1);
    // one that ended is as it should be
    if (reason !== undefined && reason !== "Completed" && shown?.fields.has(section) === false) shown.fields.set(section, reason);
    if (reason !== undefined) waits = false;
    const age = SCHEDULED.exec(content)?.[1];
    const start = START_TIME.exec(content)?.[1];
    if (shown !== undefined && age !== undefined) shown.age = secondsOf(age);
    else if (shown !== undefined && start !== undefined) shown.age ??= ageOf(start, startedAt);
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
  return found.flatMap(({ line, name, fields, age, unready }): Pod[] => {
    const shown = fields.get("IP") ?? fields.get("podIP") ?? "";
    const address = addressFamily(shown) === undefined ? undefined : shown;
    const node = fields.get("Node") ?? fields.get("nodeName");
    const [first, main] = [fields.get("Init Containers"), fields.get("Containers")];
    // the others wait for those that run before them
    const status =
      first !== undefined && (main ?? "PodInitializing") === "PodInitializing" ? `Init:${first}` : (main ?? fields.get("Status") ?? fields.get("phase") ?? "");
    if (name === undefined || (status === "" && address === undefined)) return [];
    return [
      {
        line,
        name,
        ...present({ namespace: fields.get("Namespace"), address }),
        status,
        ...whoseOf(node, names),
        ...present({ age, unready: status === "Running" ? unready : undefined }),
      },
    ];
  });
}
