import { z } from "zod";
import { isPromptLine, optionValue } from "./command.ts";
import { answeredByDefault, defineFact, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { readFamily } from "./mask.ts";
import { eventAge } from "./pod-event.ts";
import { present } from "./present.ts";
import { squeezed } from "./words.ts";

/**
 * Calico's BGP: its peers as `calicoctl` and `birdcl` show them, what the readiness probe complains about, and the TCP connections of port 179.
 *
 *     | 10.20.4.12   | node-to-node mesh | start | 00:21:18 | Active Socket: Connection refused |
 *     Mesh_10_20_4_12 BGP      master   start  00:21:18    Active        Socket: Connection refused
 *     calico/node is not ready: BIRD is not ready: BGP not established with 10.20.4.12
 *     - peerIP: 10.20.4.12                          (kubectl get caliconodestatus node1 -o yaml: since, state and type follow)
 */
const Peer = z.object({
  line: z.int(),
  /** Left out where only BIRD's name of the peer is shown and it holds no IPv4 address. */
  address: z.string().optional(),
  /** BIRD's name: "Mesh_10_20_4_12", "Node_…", "Global_…". */
  name: z.string().optional(),
  /** "node-to-node mesh", "node specific", "global". */
  type: z.string().optional(),
  /** "up", "start", "down". */
  state: z.string(),
  /** As printed: a time of today, or a date. */
  since: z.string().optional(),
  /** Seconds before the collection since when it is so, where `since` is a time of the same day (UTC, as the container of calico-node has it). */
  age: z.number().optional(),
  /** "Established", "Active Socket: Connection refused", "Passive", "Connect", … */
  info: z.string(),
  established: z.boolean(),
});
const Problem = z.object({
  line: z.int(),
  message: z.string(),
  /** Peers without a session, where the message names them. */
  peers: z.array(z.string()),
  /** Of an event of the pod: seconds since it was last seen. */
  age: z.number().optional(),
});
const Connection = z.object({
  line: z.int(),
  /** ESTAB, SYN-SENT, LISTEN, … */
  state: z.string(),
  localAddress: z.string(),
  localPort: z.int(),
  /** "*" or 0.0.0.0 of a listener. */
  remoteAddress: z.string(),
  remotePort: z.int(),
});
const Condition = z.object({ line: z.int(), ready: z.boolean() });
const CalicoNode = z.object({
  peers: z.array(Peer),
  problems: z.array(Problem),
  /** Of port 179, either end. */
  connections: z.array(Connection),
  /** Whether the pod is ready, where `kubectl describe pod` tells. */
  conditions: z.array(Condition),
});
type CalicoNode = z.infer<typeof CalicoNode>;
type Peer = z.infer<typeof Peer>;

const ROW = /^\s{0,20}\|(.{1,400})\|\s*$/;
const TABLE_FRAME = /^\s{0,20}(?:[+|—─\-\s]{3,400}|\|\s{0,10}PEER ADDRESS\b.{0,200})$/i;
const FRAMES =
  /^(?:Calico process is running\.|IPv[46] BGP status|No IPv[46] (?:peers found|address configured)\.|calico-node container is running\..{0,200}|Running felix version .{0,100}|IP: \S{1,45}\s+AS Number: .{0,60}|command terminated with exit code \d{1,3}|Defaulted container .{1,2000})$/;
// "None of the BGP backend processes (BIRD or GoBGP) are running.", "The BGP backend process (BIRD) is not running.", "Calico process is not running."
const NOT_RUNNING = /(?:Calico process is not running|None of the BGP backend processes|BGP backend process(?:es)? .{0,40}not running)/;
// a peer that does not listen on 179: "10.16.81.162.port.178", in BIRD "Node_10_16_81_162_port_178"
const OTHER_PORT = /\.port\.\d{1,5}$/;
const BIRD_FRAME = /^(?:0001 |1002-|2002-| {0,4})?(?:BIRD\s.{0,60}ready\.|name\s+proto\s+table\s+state\s.{0,60}|Access restricted)$/i;
const BIRD_ROW =
  /^(?:1002-| {1,4})?([A-Za-z]\w{1,60})\s{1,40}(BGP|Static|Kernel|Device|Direct|Pipe|RPKI|OSPF|RIP|BFD)\s{1,20}(\S{1,40})\s{1,20}(up|start|down|stop|feed)\s{1,20}(\S{1,12}(?: \d\d:\d\d:\d\d(?:\.\d{1,3})?)?)(?:\s{1,40}(\S.{0,300}))?$/;
const BIRD_DETAIL = /^(?:1006-|1002-)?\s{1,10}([A-Za-z][A-Za-z0-9 ()/_-]{1,40}):\s*(.{0,400})$/;
const BIRD_MORE = /^(?:1006-|1002-)?\s{1,10}\S.{0,400}$/;
const NO_BIRD = /(?:bird6?\.ctl|BIRDv?[46]? socket|querying BIRD|connect to server control socket)/;
const READINESS = /(?:calico[/-]?node is not ready: |^)((?:BIRD|BIRDv?6|felix|bird|bird\/confd|confd)6? is not (?:ready|live)[:.]? .{0,600})/i;
const PEERS_NAMED = /BGP not established with ([0-9a-fA-FxX*.:,\s]{2,1000}?)(?=\d{4}-\d\d-\d\d|[^0-9a-fA-FxX*.:,\s]|$)/;
/** What people write for an address that nobody is to see. */
const PEER_HIDDEN = /BGP not established with (<[\w .-]{1,40}>|\[[\w .-]{1,40}\]|\$\{?\w{1,40}\}?)/;
const ESTABLISHED_ZERO = /[Nn]umber of node\(s\) with BGP peering established = 0/;
/** A line of the events, of which the lines behind it may be a part. */
const EVENT = /^\s{0,8}(?:Normal|Warning)\s{1,40}[A-Z]\w{1,60}\s/;
const CONDITION = /^\s{1,8}Ready\s{1,40}(True|False)\s*$/;
// ss -tan: "SYN-SENT 0 1 10.20.4.17:41022 10.20.4.12:179"; -H or `state x` leave columns out
const SS = /^(?:(?:tcp\s+)?([A-Z][A-Z0-9-]{2,11})\s+)?\d{1,10}\s+\d{1,10}\s+(\S{3,70}):(\d{1,5}|\*)\s+(\S{1,70}):(\d{1,5}|\*)(?:\s.{0,400})?$/;
/** The format and the scope of the log of calico-node, of which nothing is read here. */
const LOG = "log";
// netstat -tan: "tcp        0      1 10.20.4.17:41022        10.20.4.12:179          SYN_SENT"
const NETSTAT = /^tcp6?\s+\d{1,10}\s+\d{1,10}\s+(\S{3,70}):(\d{1,5})\s+(\S{1,70}):(\d{1,5}|\*)\s+([A-Z][A-Z0-9_]{2,11})(?:\s.{0,400})?$/;
const NETSTAT_STATES = new Map(Object.entries({ ESTABLISHED: "ESTAB", SYN_SENT: "SYN-SENT", SYN_RECV: "SYN-RECV" }));
// CalicoNodeStatus as YAML, JSON and `kubectl describe`: "- peerIP: 10.20.4.12", `"state": "Active",`, "Peer IP:  10.20.4.12"
const STATUS = /^\s{0,40}(?:- )?"?(peerIP|Peer IP|since|Since|state|State|type|Type|lastUpdated|Last Updated|kind|Kind)"?:\s{1,20}"?([^",]{1,64}?)"?,?\s*$/;
const STATUS_TYPES = new Map(Object.entries({ NodeMesh: "node-to-node mesh", NodePeer: "node specific", GlobalPeer: "global" }));
/** An agent that writes its status every 10 seconds is gone when it is this old. */
const STATUS_AGE = 600;
const SS_HEADER = /^(?:Netid\s+)?(?:State\s+)?Recv-Q\s+Send-Q\s+Local Address:Port\s+Peer Address:Port.*$/;

export const calicoNode = defineFact({
  id: "calico-node",
  title: "BGP of Calico: peers, readiness, connections of port 179",
  // calicoctl and birdcl are seldom on the node; what bird does shows in its connections
  commands: [{ argv: ["ss", "-tan", "( sport = :179 or dport = :179 )"] }, { argv: ["calicoctl", "node", "status"] }],
  byHand: "calicoctl node status",
  recognize(argv): View | undefined {
    const program = argv[0] ?? "";
    if (program === "calicoctl" && argv[1] === "node" && argv[2] === "status") return { format: "table", complete: true, scope: "peers", rank: 2 };
    if (program === "calicoctl" && argv[1] === "status") return { format: "table", complete: true, scope: "peers", rank: 2 };
    if (program === "birdcl" || program === "birdcl6" || program === "birdc") {
      const at = argv.indexOf("show");
      if (at === -1 || !"protocols".startsWith(argv[at + 1] ?? "-") || (argv[at + 1] ?? "").length < 1) return undefined;
      const names = argv.slice(at + 2).filter((word) => word !== "all");
      return { format: "bird", complete: names.length === 0, scope: "peers", rank: 3 };
    }
    if (program === "calico-node" && argv.some((word) => /^-{1,2}bird6?-(?:ready|live)$/.test(word))) {
      return { format: "probe", complete: true, scope: "readiness", rank: 1 };
    }
    if (program === "kubectl" && argv.some((word) => /calico-node|calico\/node/.test(word)) && argv.includes("describe")) {
      return { format: "describe", complete: true, scope: "readiness", rank: 1 };
    }
    if (
      program === "kubectl" &&
      argv.includes("events") &&
      // when objects were seen last, only the fact of events reads
      !/^(?:json|yaml)$/.test(optionValue(argv, "-o") ?? "") &&
      argv.some((word) => /^(?:calico-system|kube-system|-A)$/.test(word))
    ) {
      return { format: "describe", complete: false, scope: "readiness", rank: 0 };
    }
    // its messages are the fact agent-log's; that there is such a log says that this is a node of Calico's
    if (program === "kubectl" && argv.includes("logs") && argv.some((word) => /calico-node/.test(word)))
      return { format: LOG, complete: true, scope: LOG, rank: 0 };
    if (
      (program === "kubectl" || program === "calicoctl") &&
      argv.some((word) => /^caliconodestatus(?:es)?(?:\.[\w.]{1,60})?(?:\/[\w.-]{1,253})?$/i.test(word))
    ) {
      return argv.includes("get") || argv.includes("describe") ? { format: "status", complete: true, scope: "peers", rank: 2 } : undefined;
    }
    // all connections, of which those of the port are wanted
    const list = argv.slice(1).join(" ");
    if ((program === "ss" && /^-[4tanpieoOHm]*t[4tanpieoOHm]*$/.test(list)) || (program === "netstat" && /^-[4tanpuWe]*n[4tanpuWe]*$/.test(list))) {
      return { format: program === "ss" ? "ss-all" : "netstat", complete: list.includes("a") && list.includes("n"), scope: "connections", rank: 0 };
    }
    if (program === "ss" && argv.some((word) => /:(?:179|bgp)\b/.test(word))) {
      return { format: "ss", complete: argv.some((word) => /^-[a-z]*a/.test(word)), scope: "connections", rank: 1 };
    }
    return undefined;
  },
  schema: CalicoNode,
  // a tool that cannot reach BIRD says so on stderr
  answered: (output) => answeredByDefault(output) || NO_BIRD.test(output.stderr) || NOT_RUNNING.test(output.stderr),
  parse({ text, view, stderr, argv, startedAt }) {
    const unparsed = new UnparsedLines();
    const value: CalicoNode = { peers: [], problems: [], connections: [], conditions: [] };
    if (view.format === "status") return unparsed.with({ ...value, peers: statusPeers(text, startedAt) });
    if (view.format === "ss-all" || view.format === "netstat") {
      for (const { line, text: raw } of lines(text)) {
        const connection = view.format === "netstat" ? netstatConnection(line, raw) : connectionOf(line, raw, undefined);
        if (connection !== undefined && (connection.localPort === BGP || connection.remotePort === BGP)) value.connections.push(connection);
      }
      return unparsed.with(value);
    }
    const takes = view.format === "bird" ? birdReader(value.peers) : tableReader(value.peers);
    // `ss state syn-sent` leaves the column out
    const state = /^state\s+(\S+)$/.exec(argv.slice(argv.indexOf("state"), argv.indexOf("state") + 2).join(" "))?.[1]?.toUpperCase();
    // of the event that a message over several lines belongs to
    let age: number | undefined;
    for (const { line, text: raw } of view.format === LOG ? [] : lines(text)) {
      if (isPromptLine(raw) || FRAMES.test(raw.trim())) continue;
      if (EVENT.test(raw)) age = eventAge(raw.slice(0, 4000));
      const problem = problemOf(line, raw, age);
      if (problem !== undefined) {
        value.problems.push(problem);
        continue;
      }
      if (view.format === "describe") {
        const condition = CONDITION.exec(raw);
        if (condition !== null) value.conditions.push({ line, ready: condition[1] === "True" });
        // the rest of a pod's description is about other things
      } else if (view.format === "ss") {
        const connection = connectionOf(line, raw, state);
        if (connection !== undefined) value.connections.push(connection);
        else if (!SS_HEADER.test(raw.trim())) unparsed.add(line, raw);
      } else if (!takes(line, raw)) unparsed.add(line, raw);
    }
    stderr.split("\n", 20).forEach((message, i) => {
      const problem = text.trim() === "" ? problemOf(i + 1, message) : undefined;
      if (problem !== undefined) value.problems.push(problem);
    });
    value.peers = value.peers.map((row) => ({ ...row, ...present({ age: ageOf(row.since, startedAt) }) }));
    return unparsed.with(value);
  },
  // a log tells nothing of the sessions as they are now
  whole(parts: readonly Part<CalicoNode>[]) {
    const told = parts.filter(({ view }) => view.scope !== LOG);
    return told.length > 0 && told.every(({ view }) => told.some((part) => part.complete && part.view.scope === view.scope));
  },
});

const BGP = 179;

/** The peers of one CalicoNodeStatus; none where it is that of several nodes, or was not written any more when it was asked for, or when it was written was cut off. */
function statusPeers(text: string, startedAt: number | undefined): Peer[] {
  const peers: Peer[] = [];
  let [kinds, current, written]: [number, Peer | undefined, boolean] = [0, undefined, startedAt === undefined];
  for (const { line, text: raw } of lines(text)) {
    const found = STATUS.exec(raw);
    if (found === null) continue;
    const [, key, value] = found as unknown as [string, string, string];
    const name = key.replace(" ", "").toLowerCase();
    if (name === "kind" && value === "CalicoNodeStatus") kinds++;
    if (name === "lastupdated") written = true;
    const age = name === "lastupdated" && startedAt !== undefined ? startedAt - Date.parse(value) / 1000 : 0;
    if (kinds > 1 || age > STATUS_AGE) return [];
    if (name === "peerip") {
      current = { line, address: value, state: "start", info: "", established: false };
      peers.push(current);
    } else if (current !== undefined && name === "state" && current.info === "") {
      current.info = value;
      current.established = value === "Established";
      current.state = current.established ? "up" : "start";
    } else if (current !== undefined && name === "since") current.since ??= value;
    else if (current !== undefined && name === "type") current.type ??= STATUS_TYPES.get(value) ?? value;
  }
  return written ? peers.filter(({ info }) => info !== "") : [];
}

/** "09:59:57" of the day of the collection; undefined if it is no time, or a later one: then it is of another day or another zone. */
function ageOf(since: string | undefined, startedAt: number | undefined): number | undefined {
  const [, hours, minutes, seconds] = /^(\d\d):(\d\d):(\d\d)(?:\.\d{1,3})?$/.exec(since ?? "") ?? [];
  if (hours === undefined || startedAt === undefined) return undefined;
  const age = Math.round((startedAt % 86_400) - (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)));
  return age < 0 ? undefined : age;
}

function netstatConnection(line: number, raw: string): CalicoNode["connections"][number] | undefined {
  const match = NETSTAT.exec(raw.trim());
  if (match === null) return undefined;
  const [, localAddress, localPort, remoteAddress, remotePort, state] = match as unknown as [string, string, string, string, string, string];
  return {
    line,
    state: NETSTAT_STATES.get(state) ?? state.replace("_", "-"),
    localAddress,
    localPort: Number(localPort),
    remoteAddress,
    remotePort: remotePort === "*" ? 0 : Number(remotePort),
  };
}

function problemOf(line: number, raw: string, age?: number): CalicoNode["problems"][number] | undefined {
  const content = squeezed(raw.slice(0, 4000));
  const readiness = READINESS.exec(content)?.[1];
  if (readiness === undefined && !NOT_RUNNING.test(content) && !NO_BIRD.test(content) && !ESTABLISHED_ZERO.test(content)) return undefined;
  const named = PEERS_NAMED.exec(content)?.[1]?.split(/[\s,]+/, 100) ?? [];
  // the daemon's own log line may follow without a blank
  const message = (readiness ?? content).replace(/\s{0,4}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d.{0,4000}$/, "");
  const known = named.filter((address) => readFamily(address, "ipv4") !== undefined);
  const peers = known.length > 0 ? known : (PEER_HIDDEN.exec(content)?.slice(1, 2) ?? []);
  return { line, message: message.slice(0, 600), peers, ...present({ age: eventAge(raw.slice(0, 4000)) ?? age }) };
}

/** Reads the lines of `calicoctl node status` into peers; false for a line that is none. */
function tableReader(peers: Peer[]): (line: number, raw: string) => boolean {
  return (line, raw) => {
    const cells = ROW.exec(raw)?.[1]
      ?.split("|")
      .map((cell) => cell.trim().replace(OTHER_PORT, ""));
    const last = peers.at(-1);
    if (cells?.length === 5 && readFamily(cells[0] as string, "ipv4") !== undefined) {
      peers.push(tablePeer(line, cells as [string, string, string, string, string]));
    } else if (cells?.length === 5 && last !== undefined && cells.slice(0, 4).every((cell) => cell === "")) {
      // a long remark goes on in the next line
      last.info = `${last.info} ${cells[4] ?? ""}`.trim();
      last.established = last.info === "Established";
    } else return TABLE_FRAME.test(raw);
    return true;
  };
}

/** The same of `birdcl show protocols`, and `all`. */
function birdReader(peers: Peer[]): (line: number, raw: string) => boolean {
  // the lines below another protocol are not those of the peer above it
  let detail: Peer | undefined;
  return (line, raw) => {
    const row = BIRD_ROW.exec(raw);
    if (row === null) return BIRD_FRAME.test(raw.trim()) || readDetail(raw, detail);
    detail = row[2] === "BGP" ? birdPeer(line, row) : undefined;
    if (detail !== undefined) peers.push(detail);
    return true;
  };
}

function tablePeer(line: number, [address, type, state, since, printed]: readonly [string, string, string, string, string]): Peer {
  const info = squeezed(printed);
  return { line, address, type, state, since, info, established: info === "Established" };
}

function birdPeer(line: number, row: RegExpExecArray): Peer {
  const [, name, , , state, since, printed] = row as unknown as [string, string, string, string, string, string, string | undefined];
  const info = squeezed(printed ?? "");
  const address = /_(\d{1,3}(?:_\d{1,3}){3})(?:_port_\d{1,5})?$/.exec(name)?.[1]?.replaceAll("_", ".");
  return { line, name, state, since, info, established: /^Established\b/.test(info), ...present({ address }) };
}

/** Reads a line of `show protocols all` into the peer above it; false if it is none. */
function readDetail(raw: string, peer: Peer | undefined): boolean {
  const detail = BIRD_DETAIL.exec(raw);
  if (detail !== null) {
    const [, name, text] = detail as unknown as [string, string, string];
    if (peer !== undefined && name === "Neighbor address" && readFamily(text.trim(), "ipv4") !== undefined) peer.address = text.trim();
    if (peer !== undefined && name === "Last error" && !peer.established && !peer.info.includes(squeezed(text))) peer.info = squeezed(`${peer.info} ${text}`);
    return true;
  }
  return BIRD_MORE.test(raw);
}

function connectionOf(line: number, raw: string, stateGiven: string | undefined): CalicoNode["connections"][number] | undefined {
  const match = SS.exec(raw.trim());
  if (match === null) return undefined;
  const [, shown, local, localPort, remote, remotePort] = match as unknown as [string, string | undefined, string, string, string, string];
  const bare = (address: string): string => address.replace(/^\[(.*)\]$/, "$1").replace(/%\S{1,15}$/, "");
  const state = shown ?? stateGiven;
  if (state === undefined) return undefined;
  const port = (text: string): number => (text === "*" ? 0 : Number(text));
  return { line, state, localAddress: bare(local), localPort: port(localPort), remoteAddress: bare(remote), remotePort: port(remotePort) };
}
