import type { AllMiddlewareArgs, BlockAction, ButtonAction, SlackActionMiddlewareArgs } from "@slack/bolt";
import type { FleetRequest, TriageRequest, Work } from "../../triage/ports.ts";
import { actorIn } from "../person.ts";
import { shortHash } from "../short-hash.ts";
import { parseCommand, triageRequest } from "./netcheck-command.ts";
import { parseNodes } from "./nodes-command.ts";

/** Action ids of the buttons on a fleet's messages. */
export const FLEET_BUTTON = /^fleet-\d{1,3}$/;

/** A button on a fleet's message: its value is a command, which is read as if it had been typed. Must answer within 3 seconds. */
export function fleetButton(work: Work) {
  return async function clicked({ body, payload, ack }: SlackActionMiddlewareArgs<BlockAction<ButtonAction>> & AllMiddlewareArgs): Promise<void> {
    const asked = readFleetButton(body, payload);
    // a value that we did not write is nobody's button
    if (asked !== undefined) await work.start(asked.request.incident, asked);
    await ack();
  };
}

/** What a click asks for; undefined if its value is not one of ours. A click that Slack delivers again is the same one; a second click is another. */
export function readFleetButton(
  body: BlockAction<ButtonAction>,
  payload: ButtonAction,
): { readonly kind: "fleet"; readonly request: FleetRequest } | { readonly kind: "triage"; readonly request: TriageRequest } | undefined {
  const value = payload.value ?? "";
  const channel = body.channel?.id;
  if (channel === undefined) return undefined;
  const {
    message_ts: ts = "",
    thread_ts,
    is_ephemeral: alone,
  } = body.container as {
    readonly message_ts?: string;
    readonly thread_ts?: string;
    readonly is_ephemeral?: boolean;
  };
  // what follows from a fleet's first message stands below it; a message that only one person sees begins no thread
  const thread = thread_ts ?? (alone === true || ts === "" ? undefined : ts);
  const key = [body.user.id, channel, ts, value, payload.action_ts];
  const by = {
    incident: `inc-${shortHash(key, 12)}`,
    requester: actorIn(body),
    place: { channel, ...(thread === undefined ? {} : { thread }), ...(body.response_url === undefined ? {} : { responseUrl: body.response_url }) },
  };
  const nodes = parseNodes(value);
  if (nodes !== undefined) return nodes.kind === "nodes" ? { kind: "fleet", request: { ...by, ask: nodes.ask } } : undefined;
  const asked = parseCommand(value);
  return asked.kind === "triage" ? { kind: "triage", request: triageRequest(asked, by) } : undefined;
}
