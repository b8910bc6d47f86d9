import { z } from "zod";
import { isPromptLine, optionValue } from "./command.ts";
import { answeredByDefault, defineFact, type Input, lines, UnparsedLines, type View } from "./fact.ts";
import { asInteger, asString, jsonElements } from "./json.ts";
import { type JsonMember, jsonMembers, placeOf } from "./json-members.ts";
import { EXEC_REMARK } from "./kubectl-command.ts";
import { answerOf } from "./paste.ts";
import { present } from "./present.ts";
import { squeezed } from "./words.ts";

/**
 * What the Cilium agent says of itself, and what the CLI says of the whole installation.
 *
 *     Kubernetes:              Ok         1.29 (v1.29.1) [linux/amd64]
 *     Controller Status:       45/46 healthy
 *     Cluster health:          2/3 reachable   (2026-11-21T03:51:28Z)
 */
const states = ["ok", "warning", "failure", "disabled"] as const;
type State = (typeof states)[number];
const Component = z.object({
  line: z.int(),
  /** As printed by `cilium status`: "Kubernetes", "Cilium health daemon", "Controller Status", …; names of the JSON are put into that form. */
  name: z.string(),
  /** What stands behind the name, blanks made one. */
  value: z.string(),
  /** Where the value says so itself. "1 errors, 2 warnings" of the CLI is a failure. */
  state: z.enum(states).optional(),
  /** Of "45/46 healthy" and "2/3 reachable". */
  good: z.int().optional(),
  total: z.int().optional(),
});
const Controller = z.object({
  line: z.int(),
  name: z.string(),
  /** How often it failed in a row; 0 when it is well. */
  failures: z.int(),
  /** As printed ("41s ago", "never") or a time. */
  lastSuccess: z.string().optional(),
  message: z.string().optional(),
});
const Node = z.object({
  line: z.int(),
  name: z.string(),
  address: z.string().optional(),
  /** The node itself answers. */
  reachable: z.boolean(),
  /** The health endpoint (a pod address) on it answers. */
  endpointReachable: z.boolean(),
  self: z.boolean(),
});
const Problem = z.object({ line: z.int(), message: z.string() });
const CiliumStatus = z.object({
  components: z.array(Component),
  /** Short output lists only the failing ones. */
  controllers: z.array(Controller),
  nodes: z.array(Node),
  /** What the tools complain about: the agent cannot be asked, errors of a pod. */
  problems: z.array(Problem),
  /** What the maps of connections and of translations hold ("TCP connection tracking", "Non-TCP connection tracking", "NAT"), of `--verbose`. */
  sizes: z.array(z.object({ line: z.int(), name: z.string(), entries: z.int() })).optional(),
});
type CiliumStatus = z.infer<typeof CiliumStatus>;
type Component = z.infer<typeof Component>;

const SOCKET = /\/run\/cilium\/cilium\.sock/;
// "Kubernetes:   Ok   1.29 (v1.29.1) [linux/amd64]"; names have words, and no blank stands before them
const FIELD = /^([A-Z][A-Za-z0-9/ -]{1,40}):(?:\s+(.{0,2000}))?$/;
// The CLI draws a logo to the left of the first lines.
const LOGO = /^[\s/\\_¯]{2,24}(?=[A-Z]|$)/;
const STATE = /^(ok|warning|failure|failing|disabled|error)\b/i;
const COUNTS = /^(\d{1,9})\/(\d{1,9}) (?:healthy|reachable)/;
const CLI_COUNTS = /^(\d{1,6}) (errors?|warnings?)(?:, (\d{1,6}) (warnings?))?$/;
const CONTROLLER_HEADER = /^\s+Name\s+Last success\s+Last error\s+Count\s+Message/;
const CONTROLLER =
  /^\s+(\S{1,200}(?: \(\S{1,80}\))?)\s{1,80}(never|no error|\S{1,20} ago)\s{1,40}(never|no error|\S{1,20} ago)\s{1,40}(\d{1,9})\s{1,20}(\S.{0,2000})$/;
const SIZE = /^\s+((?:Non-)?TCP connection tracking|NAT)\s{1,60}(\d{1,10})$/;
const NODE_HEADER = /^\s*Name\s+IP\s+(?:Node|Reachable)\s+Endpoints/;
const NODE =
  /^\s+(\S{1,253})(\s\(localhost\))?\s{1,80}([0-9a-fA-F.:]{2,45})\s{1,20}(reachable|unreachable|true|false)(?:\s{1,40}(reachable|unreachable|true|false))?/;
// "Deployment  cilium-operator  Desired: 1, Ready: 1/1", "Containers: …", "Cluster Pods: …", "Image versions …", "Helm chart version: …"
const CLI_REST =
  /^(?:Deployment|DaemonSet|StatefulSet|Containers|Cluster Pods|Image versions|Helm chart version|Configuration|Hubble Relay|ClusterMesh|Envoy DaemonSet)\b/;
const CLI_PROBLEM = /^(Errors|Warnings):\s{1,30}(\S.{0,2000})$/;
const COMPLAINT = /^(?:Error: |Unable to |Cannot |Get "?http|curl: |error: |Is the agent running\?)/;
/** What `--brief` says instead of OK: the first part that fails, "error: kubernetes: Get …". */
const BRIEF = /^error: (kvstore|kubernetes|cilium): (\S.{0,2000})$/;
const BRIEF_NAMES = new Map(Object.entries({ kvstore: "KVStore", kubernetes: "Kubernetes", cilium: "Cilium" }));
// what kubectl adds
// "  Socket LB:            Disabled"; what follows about it (Tracing, Coverage) has a longer name
const SOCKET_LB = /^\s+Socket LB:\s+(\S.{0,80})$/;
const SECTION_END = /^\S/;
const CONFIG_MAP = /^(?:(?:cm|configmaps?)\/)?cilium-config$/;
/** Commands that ask the agent through its socket. */
const ASKED: ReadonlySet<string> = new Set([
  "endpoint",
  "service",
  "identity",
  "policy",
  "node",
  "ip",
  "config",
  "map",
  "metrics",
  "fqdn",
  "recorder",
  "lrp",
  "debuginfo",
]);

export const ciliumStatus = defineFact({
  id: "cilium-status",
  title: "What the Cilium agent (and its CLI) says of its own health",
  // the agent's own API: the node has no Cilium tools, and nothing answers where there is no agent
  commands: [{ argv: ["curl", "-sS", "--max-time", "3", "--unix-socket", "/var/run/cilium/cilium.sock", "http://localhost/v1/healthz"] }],
  byHand: "cilium-dbg status --verbose",
  recognize(argv): View | undefined {
    if (argv[0] === "curl") {
      const socket = optionValue(argv, "--unix-socket") ?? "";
      if (!SOCKET.test(socket) || argv.at(-1)?.endsWith("/v1/healthz") !== true) return undefined;
      return { format: "json", complete: true, scope: "", rank: 4 };
    }
    // of its settings only what the status says, too
    if (argv[0] === "kubectl" || argv[0] === "oc")
      return argv.some((word) => CONFIG_MAP.test(word)) ? { format: "settings", complete: false, scope: "settings", rank: 0 } : undefined;
    if (argv[0] !== "cilium" && argv[0] !== "cilium-dbg") return undefined;
    // of the versions only that the agent does not tell its own
    if (argv[1] === "version") return { format: "version", complete: true, scope: "version", rank: 0 };
    if (argv.includes("--help") || argv.includes("-h")) return undefined;
    // of what the agent is asked besides only that it does not answer
    if (ASKED.has(argv[1] ?? "")) return { format: "asked", complete: false, scope: argv.slice(1, 3).join(" "), rank: 0 };
    if (argv[1] !== "status") return undefined;
    const output = optionValue(argv, "-o", "--output") ?? (argv.includes("-ojson") ? "json" : "");
    const brief = argv.includes("--brief");
    const verbose = argv.some((word) => word === "--verbose" || word.startsWith("--all-"));
    return { format: output === "json" ? "json" : "text", complete: !brief, scope: "", rank: output === "json" ? 3 : verbose ? 2 : 1 };
  },
  schema: CiliumStatus,
  answered: (output) => answeredByDefault(output) || (SOCKET.test(output.stderr) && /agent running/.test(output.stderr)),
  parse: (input) =>
    input.view.format === "version"
      ? fromVersion(input)
      : input.view.format === "settings"
        ? fromSettings(input)
        : input.view.format === "asked"
          ? fromAsked(input)
          : input.view.format === "json" && input.text.includes("{")
            ? fromJson(input)
            : fromText(input),
});

/** Of the ConfigMap that netfilter masquerades (`enable-bpf-masquerade: "false"`), and that nothing translates services at sockets: neither as a whole kube-proxy nor by itself. */
function fromSettings({ text }: Input) {
  const lineOf = (pattern: RegExp): number | undefined => [...lines(text)].find((line) => pattern.test(line.text))?.line;
  const masquerades = lineOf(/^\s{0,8}"?enable-bpf-masquerade"?: ?"?false"?,?\s{0,4}$/);
  const replaces = lineOf(/^\s{0,8}"?kube-proxy-replacement"?: ?"?(?:false|disabled)"?,?\s{0,4}$/);
  const atSockets = lineOf(/^\s{0,8}"?bpf-lb-sock"?: ?"?false"?,?\s{0,4}$/);
  const components = [
    ...(masquerades === undefined ? [] : [componentOf(masquerades, "Masquerading", "IPTables")]),
    ...(replaces === undefined || atSockets === undefined ? [] : [componentOf(atSockets, "Socket LB", "Disabled")]),
  ];
  return new UnparsedLines().with<CiliumStatus>({ components, controllers: [], nodes: [], problems: [] });
}

/** `Error: Cannot get endpoint list: Get "http://localhost/v1/endpoint": dial unix /var/run/cilium/cilium.sock: connect: connection refused`, in the answer or instead of it. */
function fromAsked({ text, stderr }: Input) {
  const told = [...lines(text), ...lines(stderr)].filter(({ text: content }) => SOCKET.test(content) && COMPLAINT.test(content.trim()));
  const problems = told.slice(0, 1).map(({ line, text: content }) => ({ line, message: squeezed(content) }));
  return new UnparsedLines().with<CiliumStatus>({ components: [], controllers: [], nodes: [], problems });
}

/** "Daemon: Not responding" below the version of the client. */
function fromVersion({ text }: Input) {
  const problems = [...lines(text)].filter(({ text: content }) => /^Daemon: (?:Not responding|Unable to )/.test(content.trim()));
  const rows = problems.map(({ line, text: content }) => ({ line, message: squeezed(content) }));
  return new UnparsedLines().with<CiliumStatus>({ components: [], controllers: [], nodes: [], problems: rows });
}

/** What every agent says of itself, set in where another program quoted it. */
const SET_IN = /^\s{1,16}(?:KV[Ss]tore|Kubernetes|Cilium|NodeMonitor|Cilium health daemon|IPAM|Controller Status):\s/;

/** The text as the agent printed it: those that quote it (a test's report, a message below a heading) set all of it in. Lines keep their numbers. */
function atMargin(text: string): string {
  const printed = text.split("\n");
  const quoted = printed.filter((line) => SET_IN.test(line));
  if (quoted.length < 3 || printed.some((line) => /^(?:KV[Ss]tore|Kubernetes|Cilium):/.test(line))) return text;
  const width = Math.min(...quoted.map((line) => line.search(/\S/)));
  return printed.map((line) => (SET_IN.test(line) ? line.trimStart() : line.slice(Math.min(width, Math.max(0, line.search(/\S/)))))).join("\n");
}

function fromText({ text, stderr }: Input) {
  const unparsed = new UnparsedLines();
  const value: CiliumStatus = { components: [], controllers: [], nodes: [], problems: [] };
  let section = "";
  let list: "controllers" | "nodes" | "" = "";
  for (const { line, text: raw } of lines(atMargin(text))) {
    if (isPromptLine(raw) || EXEC_REMARK.test(raw)) continue;
    const content = raw.replace(LOGO, "");
    // nothing but the logo
    if (content.trim() === "") continue;
    const drawn = content.length < raw.length && /[\\/_¯]/.test(raw.slice(0, raw.length - content.length));
    const problem = CLI_PROBLEM.exec(content);
    if (problem !== null) {
      section = problem[1] as string;
      if (section === "Errors") value.problems.push({ line, message: squeezed(problem[2] as string) });
      continue;
    }
    const part = BRIEF.exec(content);
    if (part !== null) {
      value.components.push(componentOf(line, BRIEF_NAMES.get(part[1] as string) ?? "Cilium", `Failure ${squeezed(part[2] as string)}`));
      continue;
    }
    if (COMPLAINT.test(content)) {
      value.problems.push({ line, message: squeezed(content) });
      continue;
    }
    // all that `--brief` prints of an agent that is well
    if (content.trim() === "OK") {
      value.components.push(componentOf(line, "Cilium", "OK"));
      continue;
    }
    const field = SECTION_END.test(raw) || drawn ? FIELD.exec(content) : null;
    if (CLI_REST.test(content) && !drawn) {
      section = "cli";
      list = "";
    } else if (field !== null) {
      section = field[1] as string;
      list = "";
      value.components.push(componentOf(line, section, squeezed(field[2] ?? "")));
    } else if (CONTROLLER_HEADER.test(raw)) list = "controllers";
    else if (NODE_HEADER.test(raw)) list = "nodes";
    else if (list === "controllers" && CONTROLLER.test(raw)) value.controllers.push(controllerOf(line, raw));
    else if (list === "nodes" && NODE.test(raw)) value.nodes.push(nodeOf(line, raw));
    // what belongs to a section is indented: addresses, details of the replacement, sizes of maps, more errors of the CLI
    else if (/^\s/.test(raw) && section !== "") {
      const size = section === "BPF Maps" ? SIZE.exec(raw) : null;
      if (size !== null) value.sizes = [...(value.sizes ?? []), { line, name: size[1] as string, entries: Number(size[2]) }];
      const detail = section === "KubeProxyReplacement Details" ? SOCKET_LB.exec(raw)?.[1] : undefined;
      const last = value.problems.at(-1);
      // the other errors stand below the first one; what begins at the margin is the rest of a line
      if (section === "Errors" && /^ {0,3}\S/.test(raw) && last?.line === line - 1) last.message += raw;
      else if (section === "Errors") value.problems.push({ line, message: squeezed(raw) });
      else if (detail !== undefined) value.components.push(componentOf(line, "Socket LB", detail));
    } else unparsed.add(line, raw);
  }
  if (value.components.length === 0 && value.problems.length === 0) {
    stderr.split("\n", 20).forEach((message, i) => {
      if (SOCKET.test(message)) value.problems.push({ line: i + 1, message: squeezed(message).slice(0, 2000) });
    });
  }
  return unparsed.with(value);
}

function componentOf(line: number, name: string, value: string): Component {
  const counts = COUNTS.exec(value);
  const state = counts === null ? stateOf(value) : undefined;
  return {
    line,
    name,
    value,
    ...present({ state, good: counts === null ? undefined : Number(counts[1]), total: counts === null ? undefined : Number(counts[2]) }),
  };
}

function stateOf(value: string): State | undefined {
  const cli = CLI_COUNTS.exec(value);
  if (cli !== null) return cli[2]?.startsWith("error") === true ? "failure" : "warning";
  const word = STATE.exec(value)?.[1]?.toLowerCase();
  return word === undefined ? undefined : word === "failing" || word === "error" ? "failure" : (word as State);
}

function controllerOf(line: number, content: string): CiliumStatus["controllers"][number] {
  const [, name, lastSuccess, , count, message] = CONTROLLER.exec(content) as unknown as [string, string, string, string, string, string];
  const failed = message.trim() !== "no error";
  return { line, name, failures: failed ? Number(count) : 0, lastSuccess, ...(failed ? { message: squeezed(message) } : {}) };
}

function nodeOf(line: number, content: string): CiliumStatus["nodes"][number] {
  const [, name, self, address, node, endpoint] = NODE.exec(content) as unknown as [string, string, string | undefined, string, string, string | undefined];
  const yes = (word: string | undefined): boolean => word === "reachable" || word === "true";
  return { line, name, address, reachable: yes(node), endpointReachable: endpoint === undefined ? yes(node) : yes(endpoint), self: self !== undefined };
}

/** Members of the API's answer that carry a state, by the name that `cilium status` prints. */
const NAMES: Readonly<Record<string, string>> = {
  kvstore: "KVStore",
  "container-runtime": "ContainerRuntime",
  kubernetes: "Kubernetes",
  cilium: "Cilium",
  hubble: "Hubble",
  "cni-file": "CNI Config file",
};

function fromJson({ text }: Input) {
  const unparsed = new UnparsedLines();
  const value: CiliumStatus = { components: [], controllers: [], nodes: [], problems: [] };
  for (const member of jsonMembers(answerOf(text), unparsed)) {
    const inner = member.value as Record<string, unknown> | null;
    if (Object.hasOwn(NAMES, member.name)) pushState(value, member, NAMES[member.name] as string, inner);
    else if (member.name === "cluster") fromCluster(value, member, unparsed);
    else if (member.name === "controllers" && Array.isArray(member.value)) fromControllers(value, member, unparsed);
    else if (member.name === "kube-proxy-replacement") {
      value.components.push(Object.assign({ line: member.line, name: "KubeProxyReplacement", value: asString(inner?.["mode"]) ?? "" }, placeOf(member)));
    }
    // the other members carry no state
  }
  return unparsed.with(value);
}

function pushState(value: CiliumStatus, member: Pick<JsonMember, "line" | "text">, name: string, inner: Record<string, unknown> | null): void {
  const printed = asString(inner?.["state"]) ?? "";
  const message = asString(inner?.["msg"]) ?? "";
  value.components.push(
    Object.assign(
      { line: member.line, name, value: squeezed(`${printed} ${message}`).slice(0, 2000), ...present({ state: stateOf(printed) }) },
      placeOf(member),
    ),
  );
}

function fromCluster(value: CiliumStatus, member: JsonMember, unparsed: UnparsedLines): void {
  for (const inner of jsonMembers(member.source, unparsed, member.sourceLine)) {
    if (inner.name === "ciliumHealth") pushState(value, inner, "Cilium health daemon", inner.value as Record<string, unknown> | null);
  }
}

function fromControllers(value: CiliumStatus, member: JsonMember, unparsed: UnparsedLines): void {
  const all = jsonElements(member.source, unparsed);
  let failing = 0;
  for (const { value: controller, line, text } of all) {
    const status = controller["status"] as Record<string, unknown> | null | undefined;
    const failures = asInteger(status?.["consecutive-failure-count"]) ?? 0;
    if (failures > 0) failing++;
    const lastSuccess = asString(status?.["last-success-timestamp"]);
    const message = failures > 0 ? asString(status?.["last-failure-msg"])?.slice(0, 2000) : undefined;
    const row = { line: member.sourceLine + line - 1, name: asString(controller["name"]) ?? "", failures, ...present({ lastSuccess, message }) };
    value.controllers.push(Object.assign(row, { text }));
  }
  const counts = `${all.length - failing}/${all.length} healthy`;
  value.components.push(Object.assign(componentOf(member.line, "Controller Status", counts), placeOf({ ...member, text: member.text.slice(0, 120) })));
}
