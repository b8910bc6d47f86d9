import type { AllMiddlewareArgs, BlockAction, ButtonAction, SlackActionMiddlewareArgs } from "@slack/bolt";
import type { TriageRequest, Work } from "../../triage/ports.ts";
import { actorIn } from "../person.ts";
import { shortHash } from "../short-hash.ts";
import { parseCommand, triageRequest } from "./netcheck-command.ts";

/** A button that says which of several targets was meant: its value is the command, which is read as if it had been typed. Must answer within 3 seconds. */
export function choice(work: Work) {
  return async function chosen({ body, payload, ack }: SlackActionMiddlewareArgs<BlockAction<ButtonAction>> & AllMiddlewareArgs): Promise<void> {
    const request = readChoice(body, payload);
    // a value that we did not write is nobody's button
    if (request !== undefined) await work.start(request.incident, { kind: "triage", request });
    await ack();
  };
}

/** The command, and the thread where it is answered if that is not where the button is. */
const VALUE = /^(.*?)(?: @(\d{1,16}\.\d{1,10}))?$/s;

/**
 * What a click asks for; undefined if its value is not one of ours. Clicks of one person on one button of one message are one incident. A button of the Home
 * tab is there for long: each click is an incident of its own, which is answered to the person.
 */
function readChoice(body: BlockAction<ButtonAction>, payload: ButtonAction): TriageRequest | undefined {
  const [, command = "", elsewhere] = VALUE.exec(payload.value ?? "") ?? [];
  const asked = parseCommand(command);
  const channel = body.channel?.id ?? (body.view === undefined ? undefined : body.user.id);
  if (asked.kind !== "triage" || channel === undefined) return undefined;
  // only the asker sees the message, so Slack does not send it, but where it stands
  const { message_ts: ts = payload.action_ts, thread_ts: thread = elsewhere } = body.container as { readonly message_ts?: string; readonly thread_ts?: string };
  const key = [body.user.id, channel, ts, payload.action_id];
  return triageRequest(asked, {
    incident: `inc-${shortHash(key, 12)}`,
    requester: actorIn(body),
    place: { channel, ...(thread === undefined ? {} : { thread }), ...(body.response_url === undefined ? {} : { responseUrl: body.response_url }) },
  });
}
