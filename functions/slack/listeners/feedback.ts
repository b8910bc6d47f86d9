import type { AllMiddlewareArgs, BlockAction, ButtonAction, SlackActionMiddlewareArgs } from "@slack/bolt";
import type { FeedbackRequest, Vote, Work } from "../../triage/ports.ts";
import { actorIn } from "../person.ts";
import { shortHash } from "../short-hash.ts";
import { placeOf } from "./button.ts";

/** The buttons below a diagnosis, by action id. */
export const VOTES = ["right", "wrong"] as const satisfies readonly Vote[];
const INCIDENT = /^[A-Za-z0-9_-]{1,64}$/;

/** "Right cause" or "Wrong cause": must answer within 3 seconds, so it only hands the vote over. */
export function feedback(work: Work, vote: Vote) {
  return async function voted({ body, payload, ack }: SlackActionMiddlewareArgs<BlockAction<ButtonAction>> & AllMiddlewareArgs): Promise<void> {
    const about = payload.value ?? "";
    const place = placeOf(body);
    // a value that we did not write is nobody's button
    if (INCIDENT.test(about) && place !== undefined) {
      const key = [body.user.id, about, vote, payload.action_ts];
      const incident = `vote-${shortHash(key, 20)}`;
      const request: FeedbackRequest = { incident, requester: actorIn(body), place, about, vote };
      await work.start(incident, { kind: "feedback", request });
    }
    await ack();
  };
}
