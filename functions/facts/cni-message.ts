import { z } from "zod";
import { defineDerivedFact, type Row } from "./fact.ts";
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
  /** Seconds before the collection, where known. */
  age: z.number().optional(),
});
const Messages = z.object({ rows: z.array(Message) });
type Message = z.infer<typeof Message>;
type Messages = z.infer<typeof Messages>;

const NOT_READY =
  /cni plugin not initialized|cni config uninitialized|no (?:valid )?networks? (?:config )?found in \/\S{1,200}|NetworkPluginNotReady|no CNI configuration file in \/\S{1,200}/i;
/** What a plugin says that runs without its agent. */
const AGENT_DOWN: readonly (readonly [RegExp, string])[] = [
  [/\/var\/lib\/calico\/nodename: no such file/, "calico"],
  [/\/run\/flannel\/subnet\.env: no such file/, "flannel"],
  [/cilium\.sock.{0,80}(?:no such file|connection refused|connect: )|unable to connect to Cilium (?:daemon|agent)/, "cilium"],
  [/127\.0\.0\.1:50051.{0,120}(?:connection refused|timed? ?out|deadline)/, "aws"],
  [/127\.0\.0\.1:6784.{0,120}connection refused/, "weave"],
  [/antrea\/cni\.sock.{0,80}(?:no such file|connection refused)/, "antrea"],
];

interface Said {
  readonly message: string;
  readonly age?: number | undefined;
  readonly unit?: string;
}
interface Sources {
  readonly "agent-log"?: { rows: readonly (Row & Said)[] };
  readonly "pod-event"?: { rows: readonly (Row & Said & { source: string })[] };
}

export const cniMessage = defineDerivedFact<Messages>({
  id: "cni-message",
  title: "What kubelet, container runtime and pod events say about the CNI",
  from: ["cni-config", "agent-log", "pod-event"],
  schema: Messages,
  derive(values) {
    const sources = values as Sources;
    // its log lines are those of agent-log, without the program that said them
    const events = (sources["pod-event"]?.rows ?? []).filter((row) => row.source === "event");
    return { rows: [...(sources["agent-log"]?.rows ?? []), ...events].flatMap(messageOf) };
  },
});

function messageOf(row: Row & Said): Message[] {
  const { line, output, text, message, age, unit } = row;
  const base = { line, ...present({ output, text }), unit: unit ?? "", message: message.slice(0, 1000), ...present({ age }) };
  const down = AGENT_DOWN.find(([pattern]) => pattern.test(message));
  if (down !== undefined) return [{ ...base, kind: "agent-down", cni: down[1] }];
  return NOT_READY.test(message) ? [{ ...base, kind: "not-ready", cni: "" }] : [];
}
