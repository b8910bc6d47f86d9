import { createHash } from "node:crypto";
import type { AllMiddlewareArgs, BlockAction, ButtonAction, SlackActionMiddlewareArgs } from "@slack/bolt";
import type { Click, Work } from "../../triage/ports.ts";

/** The buttons on our messages, by action id. */
export const BUTTONS = ["preview", "approve", "dismiss", "again"] as const satisfies readonly Click["action"][];

/** A button: must answer within 3 seconds, so it only says who clicked what and hands the decision over. */
export function button(work: Work, action: Click["action"]) {
  return async function clicked({ body, payload, ack }: SlackActionMiddlewareArgs<BlockAction<ButtonAction>> & AllMiddlewareArgs): Promise<void> {
    const click = readClick(body, payload, action);
    // a value that we did not write is nobody's button
    if (click !== undefined) await work.start(click.id, { kind: "click", click });
    await ack();
  };
}

/** Ids of incidents and proposals as we write them into a button's value. */
const VALUE = /^([A-Za-z0-9_-]{1,64})(?: ([A-Za-z0-9_-]{1,80}))?$/;

/** What a click says; undefined if its value is not one of ours. */
export function readClick(body: BlockAction<ButtonAction>, payload: ButtonAction, action: Click["action"]): Click | undefined {
  const value = VALUE.exec(payload.value ?? "");
  const channel = body.channel?.id;
  if (value === null || channel === undefined) return undefined;
  const message = body.message;
  const thread = message === undefined ? undefined : ((message["thread_ts"] as string | undefined) ?? message.ts);
  const key = [body.user.id, channel, message?.ts ?? "", payload.action_id, payload.action_ts].join("|");
  return {
    id: `click-${createHash("sha256").update(key).digest("hex").slice(0, 20)}`,
    action,
    incident: value[1] as string,
    proposal: value[2],
    actor: { id: body.user.id, team: body.team?.id ?? body.user.team_id ?? "" },
    place: { channel, ...(thread === undefined ? {} : { thread }), ...(body.response_url === undefined ? {} : { responseUrl: body.response_url }) },
    triggerId: body.trigger_id,
  };
}
