import type { AllMiddlewareArgs, SlackCommandMiddlewareArgs } from "@slack/bolt";
import type { Message, TriageRequest, Work, WorkloadName } from "../../triage/ports.ts";
import type { Renderer } from "../render.ts";
import { shortHash } from "../short-hash.ts";
import { parseChatCommand } from "./chat-command.ts";
import { parseNodes } from "./nodes-command.ts";

/** `/netcheck …`: must answer within 3 seconds, so it only reads the words and hands the work over. */
export function netcheckCommand(work: Work, render: Renderer) {
  return async function netcheck({ command, ack }: SlackCommandMiddlewareArgs & AllMiddlewareArgs): Promise<void> {
    const say = async (message: Message): Promise<void> => {
      const { text, blocks } = render(message);
      // biome-ignore lint/suspicious/noExplicitAny: our templates are validated, Bolt's block types are narrower
      await ack({ response_type: "ephemeral", text, blocks: blocks as any });
    };
    const report = parseReport(command.text) ?? parseNodes(command.text) ?? parseChatCommand(command.text);
    const asked = report ?? parseCommand(command.text);
    const by = {
      incident: incidentId(command.trigger_id),
      requester: { id: command.user_id, team: command.team_id },
      place: { channel: command.channel_id, responseUrl: command.response_url },
    };
    if (command.text.trim() === "") {
      await work.start(by.incident, { kind: "ask", request: { ...by, triggerId: command.trigger_id } });
      return ack();
    }
    if (asked.kind === "help") return say({ template: "help", data: { problem: asked.problem } });
    if (asked.kind === "command") {
      await work.start(by.incident, { kind: "command", request: { ...by, text: asked.text } });
      return ack();
    }
    if (asked.kind === "nodes") {
      await work.start(by.incident, { kind: "fleet", request: { ...by, ask: asked.ask } });
      return ack();
    }
    if (asked.kind === "report") {
      await work.start(by.incident, { kind: "report", request: { ...by, about: asked.about } });
      return ack();
    }
    const request = triageRequest(asked, by);
    await work.start(request.incident, { kind: "triage", request });
    await ack();
  };
}

type Asked =
  | { readonly kind: "help"; readonly problem: string }
  | { readonly kind: "triage"; readonly target: string; readonly against: readonly string[]; readonly workload?: WorkloadName };

/** What was asked, with who asked it and where. */
export function triageRequest(
  { target, against, workload }: Extract<Asked, { kind: "triage" }>,
  by: Pick<TriageRequest, "incident" | "requester" | "place">,
): TriageRequest {
  return { ...by, target, ...(against.length === 0 ? {} : { against }), ...(workload === undefined ? {} : { workload }) };
}

/** An id of an incident, as {@link incidentId} makes it, or as somebody may mistype it. */
const INCIDENT = /^[A-Za-z0-9_-]{1,64}$/;

/** Reads `report INC`; undefined if it is no such question. */
export function parseReport(
  text: string,
): { readonly kind: "report"; readonly about: string } | { readonly kind: "help"; readonly problem: string } | undefined {
  const [first, about, ...more] = text.trim().split(/\s+/);
  if (first?.toLowerCase() !== "report") return undefined;
  if (about === undefined) return { kind: "help", problem: 'A report on which incident? Its id is in its first message, as in "report inc-0123456789ab".' };
  if (more.length === 0 && INCIDENT.test(about)) return { kind: "report", about };
  return { kind: "help", problem: `"${[about, ...more].join(" ").slice(0, 80)}" is no id of an incident; write it as in "report inc-0123456789ab".` };
}

/** As many peers as one command may name. */
const MAX_PEERS = 3;
/** What a DNS name, an instance id or an address may hold, with the name of its cluster before it where two clusters have it. */
const NAME = /^(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,252}\/)?[A-Za-z0-9][A-Za-z0-9_.:-]{0,252}$/;

/** Reads the words behind `/netcheck`. */
export function parseCommand(text: string): Asked {
  const words = text.trim().split(/\s+/).filter(Boolean);
  const [first, ...rest] = words;
  if (first === undefined || first.toLowerCase() === "help") return { kind: "help", problem: "" };
  const kind = WORKLOADS.get(first.toLowerCase());
  if (kind !== undefined) return parseWorkload(kind, rest);
  const [joint, ...others] = rest;
  const versus = joint !== undefined && /^(?:vs\.?|versus)$/i.test(joint);
  if (joint !== undefined && !versus)
    return { kind: "help", problem: `"${text.trim().slice(0, 80)}" has more than one word; one target at a time, please, or two with "vs" between them.` };
  const against = others.flatMap((word) => word.split(",")).filter(Boolean);
  if (versus && against.length === 0) return { kind: "help", problem: `Compare ${first.slice(0, 80)} with which node? "vs" needs a second name.` };
  if (against.length > MAX_PEERS) return { kind: "help", problem: `At most ${MAX_PEERS} nodes can stand behind "vs"; these are ${against.length}.` };
  const names = [first, ...against];
  const wrong = names.find((name) => !NAME.test(name));
  if (wrong !== undefined) return { kind: "help", problem: `"${wrong.slice(0, 80)}" cannot be the name of a target.` };
  const twice = names.find((name, index) => names.findIndex((other) => other.toLowerCase() === name.toLowerCase()) !== index);
  if (twice !== undefined) return { kind: "help", problem: `"${twice.slice(0, 80)}" is there twice; a node cannot be compared with itself.` };
  return { kind: "triage", target: first, against };
}

/** First words that are no node's name. */
const WORKLOADS: ReadonlyMap<string, WorkloadName["kind"]> = new Map([
  ["pod", "pod"],
  ["svc", "service"],
  ["service", "service"],
]);
/** What Kubernetes takes as a name; a pod's may hold dots. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const SUBDOMAIN = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/;
/** As netcheck.yaml takes the name of a cluster. */
const CLUSTER = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,252}$/;

/** `pod [cluster/]namespace/name` and `svc [cluster/]namespace/name [from node]`. */
function parseWorkload(kind: WorkloadName["kind"], words: readonly string[]): Asked {
  const [which, joint, node, ...more] = words;
  const example = kind === "pod" ? "pod shop/web-1" : "svc shop/web";
  if (which === undefined) return { kind: "help", problem: `Which ${kind}? Name it with its namespace, as in "${example}".` };
  const parts = which.split("/");
  const [name = "", namespace = "", cluster] = parts.toReversed();
  const fits = LABEL.test(namespace) && (kind === "pod" ? SUBDOMAIN : LABEL).test(name) && (cluster === undefined || CLUSTER.test(cluster));
  if (!fits || parts.length > 3)
    return { kind: "help", problem: `"${which.slice(0, 80)}" is no ${kind} with its namespace; write it as in "${example}", or with the cluster before it.` };
  const from = kind === "service" && joint?.toLowerCase() === "from" ? node : undefined;
  if (joint !== undefined && (from === undefined || more.length > 0)) {
    const known = kind === "service" ? ' Behind a service, "from" and the name of one node may stand.' : " Behind a pod nothing may stand.";
    return { kind: "help", problem: `"${words.slice(1).join(" ").slice(0, 80)}" is not understood.${known}` };
  }
  if (from !== undefined && !NAME.test(from)) return { kind: "help", problem: `"${from.slice(0, 80)}" cannot be the name of a target.` };
  const workload = { kind, ...(cluster === undefined ? {} : { cluster }), namespace, name, ...(from === undefined ? {} : { from }) };
  return { kind: "triage", target: `${kind} ${which}${from === undefined ? "" : ` from ${from}`}`, against: [], workload };
}

/** The incident of a command: the same request delivered twice is the same incident. A trigger id is unique over all workspaces. */
export const incidentId = (triggerId: string): string => `inc-${shortHash([triggerId], 12)}`;
