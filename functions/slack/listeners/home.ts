import type { AllMiddlewareArgs, BlockAction, ButtonAction, SlackActionMiddlewareArgs, SlackEventMiddlewareArgs } from "@slack/bolt";
import type { Work } from "../../triage/ports.ts";
import { actorIn, actorOf } from "../person.ts";
import { shortHash } from "../short-hash.ts";

/** Of an execution that makes no incident. */
const runId = (...parts: readonly string[]): string => `home-${shortHash(parts, 20)}`;

/** Somebody opened the app: its Home tab is drawn by the worker. Must answer within 3 seconds. */
export function homeOpened(work: Work) {
  return async function opened({ event, body }: SlackEventMiddlewareArgs<"app_home_opened"> & AllMiddlewareArgs): Promise<void> {
    // the tab with the messages needs nothing
    if (event.tab !== "home") return;
    const enterprise = (body as { readonly context_enterprise_id?: string | null }).context_enterprise_id;
    const requester = actorOf(event.user, body.team_id, enterprise ?? undefined, undefined);
    const incident = runId(body.team_id ?? "", event.user, body.event_id);
    await work.start(incident, { kind: "home", request: { incident, requester, place: { channel: event.user } } });
  };
}

/** The button "Examine a node…" of the Home tab: the modal that asks which one. What it comes to goes to the person directly. */
export function askButton(work: Work) {
  return async function clicked({ body, payload, ack }: SlackActionMiddlewareArgs<BlockAction<ButtonAction>> & AllMiddlewareArgs): Promise<void> {
    const incident = runId(body.user.id, payload.action_id, payload.action_ts, body.trigger_id);
    const place = { channel: body.channel?.id ?? body.user.id };
    await work.start(incident, { kind: "ask", request: { incident, requester: actorIn(body), place, triggerId: body.trigger_id } });
    await ack();
  };
}
