import { z } from "zod";
import type { AgentLog } from "./agent-log.ts";
import { byWord } from "./by-word.ts";
import type { Pods } from "./cluster-pod.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";

/**
 * One view of the Cilium agent of this node, whoever told of it: its own status, the logs, the events of its pod, the list of processes; and of its BPF
 * maps: metrics, counts of entries held against their capacity, messages.
 */
const Failure = z.object({
  line: z.int(),
  /** "component" (its status says so), "unreachable" (its API cannot be asked), "crash" (its container ends), "log" (it ended with a fatal message). */
  kind: z.enum(["component", "unreachable", "crash", "log"]),
  /** "Cilium", "Kubernetes", …; of components only. */
  component: z.string().optional(),
  /** Told by the CLI, about every node of the cluster. */
  wholeCluster: z.boolean(),
  message: z.string(),
  /** Seconds; of logs and events, where known. */
  age: z.number().optional(),
});
const Answer = z.object({
  line: z.int(),
  /** The agent says that it is well. */
  ok: z.boolean(),
  /** What it says of its controllers was cut off, or does not name those that fail. */
  open: z.boolean().optional(),
});
const FullMap = z.object({
  line: z.int(),
  map: z.string(),
  /** 0 … 1 and above; left out of messages. */
  pressure: z.number().optional(),
  /** "metric", "count" (entries by capacity) or "log" (the agent says that it is full). */
  source: z.enum(["metric", "count", "log"]),
  /** Seconds; of logs, where known. */
  age: z.number().optional(),
});
const CiliumAgent = z.object({
  failures: z.array(Failure),
  answers: z.array(Answer),
  /** Every map whose filling is known, full or not. */
  maps: z.array(FullMap),
});
type CiliumAgent = z.infer<typeof CiliumAgent>;

/** What the agent needs itself: a failure of Hubble, say, costs no traffic. */
const VITAL = new Set(["Cilium", "Kubernetes", "KVStore", "ContainerRuntime"]);
const UNREACHABLE =
  /cilium\.sock.{0,200}(?:no such file|connection refused|deadline exceeded|timed? ?out)|Cilium API client timeout exceeded|^Daemon: Not responding/;
const CRASH = /\bcilium-.{1,250}(?:CrashLoopBackOff|exited with code|back-off restarting)/i;
/** kubelet's own words for a container that ends again and again: the agent's, or one of its pod that must have ended well before the agent starts. */
const BACK_OFF =
  /back-off .{0,80}restarting failed container[= ]"?(?:cilium-agent\b|(?:config|mount-cgroup|apply-sysctl-overwrites|mount-bpf-fs|clean-cilium-state|install-cni-binaries)"? in pod "?cilium-[bcdfghjklmnpqrstvwxz2456789]{5}_)/i;
/** A probe that failed this often is no start that takes its time. */
const MANY = 5;
/** Pods that are made at one time are refused at one time: fewer refusals tell as much if they are this far apart (seconds). */
const SOME = 3;
const LASTING = 120;
const ASKERS = new Set(["kubelet", "containerd", "crio"]);
/** The agent's own health check, asked over HTTP: at its start every two seconds, later every half a minute. */
const HEALTH =
  /^(Startup|Liveness|Readiness) probe failed: .{0,40}:9879\/healthz.{0,200}(?:connection refused|deadline exceeded|timed? ?out|EOF|statuscode: 5\d\d)/;
/** The agent's own words about what it depends on, which its old probe (`cilium status --brief`) printed. */
const OLD_HEALTH = /^(Liveness|Readiness) probe failed: error in (?:kvstore|kubernetes|container ?runtime|cilium)\b/i;
/** The kubelet folds events together once there were ten of a kind within ten minutes. */
const COMBINED = /^\(combined from similar events\): /;
/** With this the agent, or the container that prepares its configuration, ends; the level is "error". It has asked the API server for minutes before it says so. */
const ENDED = /^(?:msg=|Error: )?"?(?:Failed to start hive|Build config failed|Unable to contact k8s api-server)\b/;
/** With this it got what it had asked for, or all that it needs to serve. */
const CONNECTED = "Connected to apiserver";
const STARTED = "Daemon initialization completed";
const NO_API = /^(?:msg=|Error: )?"?Unable to contact k8s api-server\b/;
/** "cilium-7kvzg", on GKE "anetd-7kvzg": the last letters of a generated name are no vowels. */
const AGENT_POD = /^(?:cilium|anetd)-[bcdfghjklmnpqrstvwxz2456789]{5}$/;
/** As often as it fails in a minute; an agent that starts needs less. */
const A_MINUTE = 30;
/** Seconds after which an agent that is not ready is none that starts. */
const STARTS = 900;
// "…for cilium_policy_00421 map with file descriptor 33: the map is full, please consider resizing it", and of old "…for LB bpf map: You can resize it with …"
const MAP_FULL = /[Uu]nable to update element for (?:cilium_)?(\S{1,100})(?: bpf)? map.{0,200}(?:the map is full|resize it with the flag)/;
const NO_SPACE = /no space left on device|argument list too long/;
// a full disk has the same words
const ABOUT_MAPS = /\b(?:(?:policy)?maps?|bpf|syncPolicyMap)\b/i;
/** "Failed to add PolicyMap key", "syncPolicyMap failed", of old "Update of l4 policy map failed": the map of one endpoint, whose name the message leaves out. */
const POLICY_MAP = /\b(?:syncP|P)olicyMap\b|\bl[34] policy map\b/;
const MAP_NAME = /\b(?:cilium_)?((?:ct|snat_v|lb|policy|ipcache|lxc)[46_a-z0-9]{0,60})\b/;
/** What `cilium bpf … list | wc -l` counts, by the name of the map that holds it. The list begins with no headline. */
const COUNTED = byWord<string>({
  "ct global": "cilium_ct4_global",
  nat: "cilium_snat_v4_external",
  ipcache: "cilium_ipcache",
  ct: "cilium_ct4_global",
});

interface Sources {
  readonly "cilium-status"?: {
    components: readonly (Row & { name: string; value: string; state?: string; good?: number; total?: number })[];
    controllers?: readonly (Row & { name: string; failures: number; message?: string })[];
    problems: readonly (Row & { message: string })[];
    sizes?: readonly { name: string; entries: number }[];
  };
  readonly "cilium-map"?: {
    pressures: readonly (Row & { map: string; pressure: number })[];
    counts: readonly (Row & { map: string; entries: number })[];
    maps: readonly (Row & { name: string; entries?: number; errors?: number })[];
  };
  readonly "bpf-map"?: { rows: readonly (Row & { id: number; type: string; name?: string; maxEntries?: number })[] };
  readonly "line-count"?: { rows: readonly (Row & { of: string; map?: string; count: number })[] };
  readonly "pod-event"?: { rows: readonly (Row & { source: string; reason?: string; age?: number; count: number; message: string })[] };
  readonly "cluster-pod"?: Placed<Pods>;
  readonly "agent-log"?: Placed<AgentLog>;
  readonly process?: {
    rows: readonly { command: string; defunct: boolean }[];
    containers: readonly (Row & { name: string; state: string; attempt?: number })[];
  };
}

export const ciliumAgent = defineDerivedFact<CiliumAgent>({
  id: "cilium-agent",
  title: "The Cilium agent of this node: what fails, and how full its BPF maps are",
  from: ["cilium-status", "cilium-map", "bpf-map", "agent-log", "pod-event", "line-count", "cluster-pod", "process"],
  optional: ["line-count", "cluster-pod", "process"],
  inPart: ["line-count", "cluster-pod", "process"],
  schema: CiliumAgent,
  derive(values) {
    const sources = values as Sources;
    const logs = (sources["agent-log"]?.rows ?? []).filter((row) => row.unit === "cilium-agent" || row.unit === "kubelet" || row.unit === "");
    const events = (sources["pod-event"]?.rows ?? []).filter((row) => row.source === "event");
    return {
      failures: [
        ...statusFailures(sources["cilium-status"]),
        ...outlasting(logs, sources).flatMap(logFailure),
        ...unreachable(sources["agent-log"]?.rows ?? []),
        ...events.flatMap(eventFailure),
        ...crashing(sources),
        ...ended(sources.process),
      ],
      answers: (sources["cilium-status"]?.components ?? [])
        .filter((row) => row.name === "Cilium" && row.state !== undefined)
        .map((row) => ({ ...placed(row), ok: row.state === "ok", ...present({ open: isOpen(sources["cilium-status"]) ? true : undefined }) })),
      maps: [...metrics(sources["cilium-map"]), ...counts(sources), ...logs.flatMap(fullMap)],
    };
  },
});

/** True if controllers may fail that are not shown. The CLI has none. */
function isOpen(status: Sources["cilium-status"]): boolean {
  const counted = status?.components.find((row) => row.name === "Controller Status");
  const named = status?.controllers?.filter((row) => row.failures > 0).length ?? 0;
  if (counted === undefined) return status?.components.some((row) => row.name === "Operator") !== true;
  return (counted.total ?? 0) - (counted.good ?? 0) > named;
}

/** "1 pods of DaemonSet cilium are not ready", as far as it was not wrapped. */
const NOT_READY = /\b\d{1,6} pods of (?:DaemonSet|Deployment)\b/;

function statusFailures(status: Sources["cilium-status"]): CiliumAgent["failures"] {
  if (status === undefined) return [];
  // the CLI has an operator among its components, the agent has none
  const wholeCluster = status.components.some((row) => row.name === "Operator");
  // all that the CLI has is a count: of errors that are not shown, or of pods that are not ready, of any node, as while the agents are rolled out
  const counted = status.problems.every((row) => NOT_READY.test(row.message));
  const components = status.components
    .filter((row) => row.state === "failure" && VITAL.has(row.name) && !(wholeCluster && counted))
    .map((row) => ({ ...placed(row), kind: "component" as const, component: row.name, wholeCluster, message: row.value.replace(/^Failure\s+(?=\S)/i, "") }));
  const problems = status.problems.flatMap((row) => {
    const kind = CRASH.test(row.message) ? ("crash" as const) : UNREACHABLE.test(row.message) ? ("unreachable" as const) : undefined;
    return kind === undefined ? [] : [{ ...placed(row), kind, wholeCluster, message: row.message }];
  });
  // tried once a minute, and once one of them succeeds it counts from the beginning
  const endpoints = (status.controllers ?? [])
    .filter((row) => REGENERATION.test(row.name) && row.failures >= MANY)
    .map((row) => ({
      ...placed(row),
      kind: "component" as const,
      component: "The regeneration of an endpoint",
      wholeCluster: false,
      message: `${row.name} failed ${row.failures} times in a row${row.message === undefined ? "" : `: ${row.message}`}`,
    }));
  // a single one may be the fault of its pod's policy
  return [...components, ...problems, ...(endpoints.length > 1 ? endpoints : [])];
}

/** What loads the programs of one pod again after that has failed: as long as it fails, the pod has old ones, or none. */
const REGENERATION = /^endpoint-\d{1,9}-regeneration-recovery$/;

function logFailure(row: NonNullable<Sources["agent-log"]>["rows"][number]): CiliumAgent["failures"] {
  const crash = BACK_OFF.test(row.message);
  if (!crash && ((row.level !== "fatal" && !ENDED.test(row.message)) || row.unit !== "cilium-agent")) return [];
  return [{ ...placed(row), kind: crash ? "crash" : "log", wholeCluster: false, message: spoken(row.message), ...present({ age: row.age }) }];
}

type Logged = NonNullable<Sources["agent-log"]>["rows"][number];

/** Lines without those that the agent's own log goes on from: it reached the API server after all, or was started again and came up. */
function outlasting(logs: readonly Logged[], sources: Sources): readonly Logged[] {
  const connected = newest(logs, CONNECTED);
  const started = newest(logs, STARTED);
  // what it said next went with the end of the log
  const cut = new Set(sources["agent-log"]?.logs.flatMap((log) => (log.unit === "cilium-agent" && log.cut ? [log.output] : [])));
  const passed = (row: Logged): boolean => NO_API.test(row.message) && (cut.has(row.output) || isBefore(row, connected));
  return logs.filter((row) => row.unit !== "cilium-agent" || !(isBefore(row, started) || passed(row)));
}

/** The newest line in which the agent says this, of a log in either direction. */
function newest(logs: readonly Logged[], said: string): Logged | undefined {
  let found: Logged | undefined;
  for (const row of logs) {
    if (row.unit !== "cilium-agent" || !spoken(row.message).startsWith(said)) continue;
    if (found === undefined || (row.age ?? 0) <= (found.age ?? 0)) found = row;
  }
  return found;
}

/** In one log: what two outputs say may be of two agents. */
function isBefore(row: Logged, good: Logged | undefined): boolean {
  if (good === undefined || row.output !== good.output) return false;
  return row.age !== undefined && good.age !== undefined && row.age !== good.age ? row.age > good.age : row.line < good.line;
}

/** The agent's own pod in a list of pods: the one on this node, or where nobody tells which that is, every one of them. */
function crashing(sources: Sources): CiliumAgent["failures"] {
  const agents = (sources["cluster-pod"]?.rows ?? []).filter((row) => AGENT_POD.test(row.name) && row.own !== false);
  // its probe asks the agent how it is; at its start that takes some minutes at most
  const unready = (row: { unready?: number | undefined }): boolean => (row.unready ?? 0) >= STARTS;
  const ends = (row: { status: string; unready?: number | undefined }): boolean => /^(?:Init:)?(?:CrashLoopBackOff|Error)$/.test(row.status) || unready(row);
  const own = agents.filter((row) => row.own === true);
  // of a list that was cut nobody tells whether the others run
  const meant = own.length > 0 || agents.some((row) => row.cut === true) ? own : agents;
  return meant.length > 0 && meant.every(ends)
    ? meant.slice(0, 5).map((row) => ({
        ...placed(row),
        kind: unready(row) ? ("unreachable" as const) : ("crash" as const),
        wholeCluster: row.own !== true,
        message: unready(row) ? `${row.name} runs and is not ready for ${Math.floor((row.unready ?? 0) / 60)} minutes` : `${row.name}: ${row.status}`,
      }))
    : [];
}

/** Its container, which crictl shows to have ended again and again, and of which none runs. */
function ended(process: Sources["process"]): CiliumAgent["failures"] {
  const own = (process?.containers ?? []).filter((row) => row.name === "cilium-agent");
  const runs = own.some((row) => row.state === "running") || process?.rows.some((row) => row.command === "cilium-agent" && !row.defunct) === true;
  const last = own.find((row) => row.state === "exited" && (row.attempt ?? 0) >= MANY);
  return runs || last === undefined
    ? []
    : [{ ...placed(last), kind: "crash", wholeCluster: false, message: `its container was started ${(last.attempt ?? 0) + 1} times and does not run` }];
}

/** What a line of logfmt says, and with which error, without the other fields. */
function spoken(message: string): string {
  const said = /^msg="((?:[^"\\]|\\.){1,1000})"/.exec(message)?.[1];
  const error = /\berr(?:or)?="((?:[^"\\]|\\.){1,2000})"/.exec(message)?.[1];
  return said === undefined ? message : `${said}${error === undefined ? "" : `: ${error}`}`.replaceAll('\\"', '"');
}

/**
 * The CNI plugin waits half a minute for the agent; when it gave up this often, or for some minutes, the agent was away for minutes. The newest of the lines of
 * kubelet, or of the runtime that had called the plugin.
 */
function unreachable(logs: NonNullable<Sources["agent-log"]>["rows"]): CiliumAgent["failures"] {
  const rows = logs.filter((row) => ASKERS.has(row.unit) && UNREACHABLE.test(row.message));
  const newest = rows.at(-1);
  const ages = rows.flatMap(({ age }) => (age === undefined ? [] : [age]));
  const lasting = ages.length >= SOME && Math.max(...ages) - Math.min(...ages) >= LASTING;
  return newest === undefined || (rows.length < MANY && !lasting && !COMBINED.test(newest.message))
    ? []
    : [{ ...placed(newest), kind: "unreachable", wholeCluster: false, message: newest.message, ...present({ age: newest.age }) }];
}

function eventFailure(row: NonNullable<Sources["pod-event"]>["rows"][number]): CiliumAgent["failures"] {
  const probe = (HEALTH.exec(row.message) ?? OLD_HEALTH.exec(row.message))?.[1];
  const often =
    probe === undefined
      ? (row.count >= MANY || COMBINED.test(row.message)) && UNREACHABLE.test(row.message)
      : row.count >= (probe === "Startup" ? A_MINUTE : MANY);
  const kind = BACK_OFF.test(row.message) ? ("crash" as const) : often ? ("unreachable" as const) : undefined;
  return kind === undefined ? [] : [{ ...placed(row), kind, wholeCluster: false, message: row.message, ...present({ age: row.age }) }];
}

/** Maps that throw out their oldest element when they are full, of which nothing that matters is lost: they are full on every busy node. */
const FULL_BY_DESIGN = /^(?:cilium_)?(?:lb[46]_(?:affinity|reverse_sk)|nodeport_neigh[46]|ipv[46]_frag_datagrams)$/;

function metrics(map: Sources["cilium-map"]): CiliumAgent["maps"] {
  return (map?.pressures ?? [])
    .filter((row) => !FULL_BY_DESIGN.test(row.map))
    .map((row) => ({ ...placed(row), map: row.map, pressure: row.pressure, source: "metric" as const }));
}

/** The maps that one listing of Cilium goes through. */
const LISTED_TOGETHER = byWord<readonly string[]>({
  cilium_ct4_global: ["cilium_ct4_global", "cilium_ct_any4_global", "cilium_ct6_global", "cilium_ct_any6_global"],
  cilium_snat_v4_external: ["cilium_snat_v4_external", "cilium_snat_v6_external"],
});

/** What they hold, as the agent tells it: a map for each kind, and with IPv6 another one as large. */
function sizeOf(name: string, status: Sources["cilium-status"]): number {
  const wanted = name === "cilium_snat_v4_external" ? /^NAT$/ : name === "cilium_ct4_global" ? /^(?:Non-)?TCP connection tracking$/ : undefined;
  const sum = (status?.sizes ?? []).filter((row) => wanted?.test(row.name) === true).reduce((all, row) => all + row.entries, 0);
  return sum * ((status?.components ?? []).some((row) => row.name === "IPAM" && !row.value.includes("IPv6:")) ? 1 : 2);
}

/** Entries that were counted, by the capacity that bpftool tells, or the agent. */
function counts(sources: Sources): CiliumAgent["maps"] {
  const maxOf = (name: string): number | undefined => {
    // the kernel cuts names at 15 characters
    const rows = (sources["bpf-map"]?.rows ?? []).filter(
      (row) => row.name === name || (row.name !== undefined && row.name.length >= 15 && name.startsWith(row.name)),
    );
    return rows.length === 1 ? rows[0]?.maxEntries : undefined;
  };
  const together = (name: string): number | undefined => {
    if (maxOf(name) === undefined) return sizeOf(name, sources["cilium-status"]) || undefined;
    return (LISTED_TOGETHER[name] ?? [name]).reduce((all, each) => all + (maxOf(each) ?? 0), 0);
  };
  const counted = (sources["cilium-map"]?.counts ?? []).flatMap((row) => {
    const name = COUNTED[row.map] ?? row.map;
    const max = together(name);
    // more than that: not all of the maps are known
    return max === undefined || row.entries > max ? [] : [{ row, name, entries: row.entries, max }];
  });
  const listed = (sources["cilium-map"]?.maps ?? []).flatMap((row) =>
    row.entries === undefined || row.entries === 0 ? [] : [{ row, name: row.name, entries: row.entries }],
  );
  const dumped = (sources["line-count"]?.rows ?? []).flatMap((row) => (row.of === "elements" ? dumpedMap(row, sources) : []));
  const single = [...listed, ...dumped].map((each) => ({ ...each, max: maxOf(each.name) }));
  return [...counted, ...single].flatMap(({ row, name, entries, max }) => {
    return max === undefined || max === 0 ? [] : [{ ...placed(row), map: name.replace(/^cilium_/, ""), pressure: entries / max, source: "count" as const }];
  });
}

/** A map whose elements were counted by a dump. One that throws out its oldest element when it is full loses connections, or else nothing that matters. */
function dumpedMap({ map = "", count, ...row }: Row & { map?: string; count: number }, sources: Sources): { row: Row; name: string; entries: number }[] {
  const maps = sources["bpf-map"]?.rows ?? [];
  const [by, which = ""] = map.split(" ");
  const name = by === "id" ? maps.find((other) => String(other.id) === which)?.name : which.split("/").at(-1);
  const kind = maps.find((other) => other.name !== undefined && name?.startsWith(other.name))?.type;
  const isCilium = name?.startsWith("cilium_") && (kind !== "lru_hash" || /^cilium_(?:ct|snat)/.test(name));
  return name !== undefined && isCilium ? [{ row, name, entries: count }] : [];
}

function fullMap(row: NonNullable<Sources["agent-log"]>["rows"][number]): CiliumAgent["maps"] {
  const noSpace = row.unit === "cilium-agent" && NO_SPACE.test(row.message) && ABOUT_MAPS.test(row.message);
  const named = !noSpace ? undefined : POLICY_MAP.test(row.message) ? "policy" : (MAP_NAME.exec(row.message)?.[1] ?? unnamed(row.message));
  const name = MAP_FULL.exec(row.message)?.[1] ?? named;
  return name === undefined ? [] : [{ ...placed(row), map: name, source: "log", ...present({ age: row.age }) }];
}

/** Old messages about services leave the name of the map out, and that of the nodes has words instead. */
function unnamed(message: string): string | undefined {
  if (/\bLB (?:bpf )?map\b|\bservice entry\b/.test(message)) return "lb_services";
  return /\bnode map\b/.test(message) ? "node_map" : undefined;
}
