import { createHash } from "node:crypto";
import type { AllMiddlewareArgs, BlockAction, ButtonAction, SlackActionMiddlewareArgs } from "@slack/bolt";
import type { TriageRequest, Work } from "../../triage/ports.ts";
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

/** What a click asks for; undefined if its value is not one of ours. Clicks of one person on one button of one message are one incident. */
export function readChoice(body: BlockAction<ButtonAction>, payload: ButtonAction): TriageRequest | undefined {
  const asked = parseCommand(payload.value ?? "");
  const channel = body.channel?.id;
  if (asked.kind !== "triage" || channel === undefined) return undefined;
  // only the asker sees the message, so Slack does not send it, but where it stands
  const { message_ts: ts = "", thread_ts: thread } = body.container as { readonly message_ts?: string; readonly thread_ts?: string };
  const key = [body.user.id, channel, ts, payload.action_id].join("|");
  return triageRequest(asked, {
    incident: `inc-${createHash("sha256").update(key).digest("hex").slice(0, 12)}`,
    requester: { id: body.user.id, team: body.team?.id ?? body.user.team_id ?? "" },
    place: { channel, ...(thread === undefined ? {} : { thread }), ...(body.response_url === undefined ? {} : { responseUrl: body.response_url }) },
  });
}
