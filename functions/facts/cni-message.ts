import { z } from "zod";
import type { AgentLog } from "./agent-log.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { epochOf, SOME_YEAR_END } from "./log-time.ts";
import { present } from "./present.ts";

/**
 * What the kubelet, the container runtime and events of pods say about the CNI. Read wherever the configuration or one of the logs was read, so that a
 * rule can decide from either.
 */
const Message = z.object({
  line: z.int(),
  /** "not-ready": no network configuration could be loaded. "agent-down": a plugin does not find its agent. */
  kind: z.enum(["not-ready", "agent-down"]),
  /** Whose agent, as the fact `cni` names it; "" of "not-ready". */
  cni: z.string(),
  /** Program that said it; "" of events, and where it is not known. */
  unit: z.string(),
  message: z.string(),
  /** How often it was seen, of events. */
  count: z.int().optional(),
  /** Seconds before the collection, where known. */
  age: z.number().optional(),
  /** Seconds that the log of the same program goes on after the last such message in it, where the times tell. */
  quiet: z.number().optional(),
});
const Messages = z.object({ rows: z.array(Message) });
type Message = z.infer<typeof Message>;
type Messages = z.infer<typeof Messages>;

const NOT_READY =
  /cni plugin not initialized|cni config uninitialized|no (?:valid )?networks? (?:config )?found in \/\S{1,200}|NetworkPluginNotReady|no CNI configuration file in \/\S{1,200}/i;
/** containerd, at its start: whoever copied the line may have left its name behind. */
const CONTAINERD = /failed to load cni during init/;
/** What a plugin says that runs without its agent. */
const AGENT_DOWN: readonly (readonly [RegExp, string])[] = [
  [/\/var\/lib\/calico\/nodename: no such file/, "calico"],
  [/\/run\/flannel\/subnet\.env: no such file/, "flannel"],
  [/cilium\.sock.{0,80}(?:no such file|connection refused|connect: )|unable to connect to Cilium (?:daemon|agent)/, "cilium"],
  [/127\.0\.0\.1:50051.{0,120}(?:connection refused|timed? ?out|deadline)/, "aws"],
  [/127\.0\.0\.1:6784.{0,120}connection refused/, "weave"],
  // the shim asks the daemon; without that, a client of the API whose file the removal took away
  [/multus\/multus\.sock\b.{0,80}(?:no such file|connection refused)|multus\.kubeconfig: no such file/, "multus"],
  [/kube-ovn-daemon\.sock.{0,80}(?:no such file|connection refused)/, "kube-ovn"],
  [/antrea\/cni\.sock.{0,80}(?:no such file|connection refused)/, "antrea"],
];

interface Said {
  readonly message: string;
  readonly age?: number | undefined;
  readonly time?: string | undefined;
  readonly unit?: string;
  readonly count?: number | undefined;
}
interface Sources {
  readonly "agent-log"?: Placed<AgentLog>;
  readonly "pod-event"?: { rows: readonly (Row & Said & { source: string; startedSince?: boolean })[] };
}

export const cniMessage = defineDerivedFact<Messages>({
  id: "cni-message",
  title: "What kubelet, container runtime and pod events say about the CNI",
  from: ["cni-config", "agent-log", "pod-event"],
  schema: Messages,
  derive(values) {
    const sources = values as Sources;
    // its log lines are those of agent-log, without the program that said them
    const events = (sources["pod-event"]?.rows ?? []).filter((row) => row.source === "event" && row.startedSince !== true);
    const logs = sources["agent-log"]?.rows ?? [];
    const said = logs.flatMap((log) => messageOf(log).map((message) => ({ log, message })));
    const ends = latest(logs.map((log) => momentOf(log)));
    const lasts = latest(said.map(({ log, message }) => momentOf(log, message)));
    const quiet = ({ log, message }: (typeof said)[number]): Message => {
      const end = ends.get(momentOf(log)?.whose ?? "");
      const last = lasts.get(momentOf(log, message)?.whose ?? "");
      return end === undefined || last === undefined ? message : { ...message, quiet: Math.round(end - last) };
    };
    return { rows: [...said.map(quiet), ...events.flatMap(messageOf)] };
  },
});

interface Moment {
  /** Program, and what it says of whom. */
  readonly whose: string;
  readonly seconds: number;
}

function momentOf({ unit = "", time = "" }: Said, { kind, cni }: { kind?: string; cni?: string } = {}): Moment | undefined {
  const dated = epochOf(time, undefined);
  const seconds = dated ?? epochOf(time, SOME_YEAR_END);
  return seconds === undefined ? undefined : { whose: [unit, dated === undefined, kind, cni].join(" "), seconds };
}

function latest(moments: readonly (Moment | undefined)[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const moment of moments) if (moment !== undefined) found.set(moment.whose, Math.max(moment.seconds, found.get(moment.whose) ?? moment.seconds));
  return found;
}

function messageOf(row: Row & Said): Message[] {
  const { line, output, text, message, age, count } = row;
  const unit = CONTAINERD.test(message) ? "containerd" : (row.unit ?? "");
  const base = { line, ...present({ output, text }), unit, message: message.slice(0, 1000), ...present({ age, count }) };
  const down = AGENT_DOWN.find(([pattern]) => pattern.test(message));
  if (down !== undefined) return [{ ...base, kind: "agent-down", cni: down[1] }];
  return NOT_READY.test(message) ? [{ ...base, kind: "not-ready", cni: "" }] : [];
}
