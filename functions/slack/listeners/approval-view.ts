import type { AllMiddlewareArgs, SlackViewMiddlewareArgs, ViewSubmitAction } from "@slack/bolt";
import type { Click, Work } from "../../triage/ports.ts";
import { actorIn } from "../person.ts";
import { shortHash } from "../short-hash.ts";

/** `callback_id` of the modal that approves: templates/slack/review.json. */
export const APPROVAL = "approval";

/**
 * The modal that approves was sent off: must answer within 3 seconds. What was typed is checked here, because only now it can be said in the modal; all else is
 * the policy's business and answered in the thread.
 */
export function approvalView(work: Work) {
  return async function approved({ body, ack }: SlackViewMiddlewareArgs<ViewSubmitAction> & AllMiddlewareArgs): Promise<void> {
    const shown = readShown(body.view.private_metadata);
    // nothing that we drew: somebody who waits for an answer is told
    if (shown === undefined) return ack({ response_action: "update", view: OUT_OF_DATE });
    const typed = entered(body, "typed");
    const reason = entered(body, "reason");
    const errors = {
      ...(shown.typed && typed !== shown.target ? { typed: `This is not the name of the node. Type ${shown.target}, or cancel.` } : {}),
      ...(shown.reason && reason === "" ? { reason: "A reason is needed: it is told openly, and somebody reviews it." } : {}),
    };
    if (Object.keys(errors).length > 0) return ack({ response_action: "errors", errors });
    const click: Click = {
      // a modal is sent off once: a retry, or a second click on its button, is the same decision
      id: `click-${shortHash([body.user.id, body.view.id, APPROVAL], 20)}`,
      action: "confirm",
      incident: shown.incident,
      proposal: shown.proposal,
      actor: actorIn(body),
      place: { channel: shown.channel, ...(shown.thread === undefined ? {} : { thread: shown.thread }) },
      triggerId: body.trigger_id,
      hash: shown.hash,
      ...(shown.typed ? { typed } : {}),
      ...(shown.reason ? { reason } : {}),
    };
    await work.start(click.id, { kind: "click", click });
    await ack();
  };
}

/** What the modal remembers of itself: what functions/triage/proposal-message.ts wrote, letter by letter. */
interface Shown {
  readonly incident: string;
  readonly proposal: string;
  readonly hash: string;
  readonly channel: string;
  readonly thread: string | undefined;
  /** The name of the node must be typed; a reason must be given. */
  readonly typed: boolean;
  readonly reason: boolean;
  readonly target: string;
}

const SHOWN =
  /^([A-Za-z0-9_-]{1,64}) ([A-Za-z0-9_-]{1,80}) ([0-9a-f]{64}) ([CDGUW][A-Z0-9_]{2,20}) (\d{1,16}\.\d{1,10}|-) (none|typed|reason|both) (\S{1,253})$/;

/** Undefined if we did not write it. */
export function readShown(metadata: string): Shown | undefined {
  const match = SHOWN.exec(metadata);
  if (match === null) return undefined;
  const [, incident = "", proposal = "", hash = "", channel = "", thread = "", asks = "", target = ""] = match;
  return {
    incident,
    proposal,
    hash,
    channel,
    thread: thread === "-" ? undefined : thread,
    typed: asks === "typed" || asks === "both",
    reason: asks === "reason" || asks === "both",
    target,
  };
}

/** What stands in an input, without blanks around it; "" if nothing does. Only texts: what else a payload may hold is not looked at. */
function entered({ view }: ViewSubmitAction, block: string): string {
  const value: unknown = view.state.values[block]?.[block]?.value;
  return typeof value === "string" ? value.trim().slice(0, 3000) : "";
}

const text = (words: string) => ({ type: "plain_text" as const, text: words });
const OUT_OF_DATE = {
  type: "modal" as const,
  title: text("Nothing was decided"),
  close: text("Close"),
  blocks: [
    {
      type: "section" as const,
      text: text("netcheck was changed while this window was open. Close it, and click Review and approve… once more."),
    },
  ],
};
