import type { AllMiddlewareArgs, BlockAction, ButtonAction, SlackActionMiddlewareArgs } from "@slack/bolt";
import type { Click, Place, Work } from "../../triage/ports.ts";
import { actorIn } from "../person.ts";
import { shortHash } from "../short-hash.ts";

/** The buttons on our messages, by action id. */
export const BUTTONS = ["preview", "approve", "dismiss", "again", "reviewed"] as const satisfies readonly Click["action"][];

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
function readClick(body: BlockAction<ButtonAction>, payload: ButtonAction, action: Click["action"]): Click | undefined {
  const value = VALUE.exec(payload.value ?? "");
  if (value === null) return undefined;
  const place = placeOf(body);
  if (place === undefined) return undefined;
  const key = [body.user.id, place.channel, body.message?.ts ?? "", payload.action_id, payload.action_ts];
  return {
    id: `click-${shortHash(key, 20)}`,
    action,
    incident: value[1] as string,
    proposal: value[2],
    actor: actorIn(body),
    place,
    triggerId: body.trigger_id,
  };
}

/** Where a click happened: in a thread; in the Home tab there is no channel, and the answer goes to the person directly. Undefined if neither is told. */
export function placeOf(body: BlockAction<ButtonAction>): Place | undefined {
  const channel = body.channel?.id ?? (body.view === undefined ? undefined : body.user.id);
  if (channel === undefined) return undefined;
  const { message } = body;
  const thread = message === undefined ? undefined : ((message["thread_ts"] as string | undefined) ?? message.ts);
  const responseUrl = body.response_url === undefined || body.response_url === "" ? {} : { responseUrl: body.response_url };
  return { channel, ...(thread === undefined ? {} : { thread }), ...responseUrl };
}
