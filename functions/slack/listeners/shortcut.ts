import type { AllMiddlewareArgs, MessageShortcut, SlackShortcutMiddlewareArgs } from "@slack/bolt";
import type { Work } from "../../triage/ports.ts";
import { actorIn } from "../person.ts";
import { shortHash } from "../short-hash.ts";

/** `callback_id` of "Triage the node in this message": infra/slack/manifest.yaml. */
export const MESSAGE_TRIAGE = "triage-message";
/** Characters of a message that are handed over: Slack takes 40,000, and a node is named early. */
const MAX_TEXT = 8000;

/** The menu of a message: must answer within 3 seconds, so it only hands its text over. */
export function messageTriage(work: Work) {
  return async function chosen({ body, ack }: SlackShortcutMiddlewareArgs<MessageShortcut> & AllMiddlewareArgs): Promise<void> {
    const { message, channel, trigger_id: triggerId, response_url: responseUrl } = body;
    const incident = `msg-${shortHash([triggerId], 20)}`;
    const threadTs = message["thread_ts"] as string | undefined;
    const place = {
      channel: channel.id,
      thread: threadTs ?? message.ts ?? body.message_ts,
      ...(threadTs === undefined ? { fresh: true as const } : {}),
      responseUrl,
    };
    const request = { incident, requester: actorIn(body), place, triggerId, text: textOf(message).slice(0, MAX_TEXT) };
    await work.start(incident, { kind: "message-triage", request });
    await ack();
  };
}

/** All that a message shows: monitoring systems put what matters into attachments and blocks. Slack's own encoding of links is undone. */
function textOf(message: MessageShortcut["message"]): string {
  const texts: string[] = [message.text ?? ""];
  const collect = (value: unknown, depth: number): void => {
    if (depth > 10 || texts.length > 500) return;
    if (Array.isArray(value)) for (const item of value) collect(item, depth + 1);
    else if (typeof value === "object" && value !== null)
      for (const [key, item] of Object.entries(value))
        if (typeof item === "string") {
          if (SHOWN.has(key)) texts.push(item);
        } else collect(item, depth + 1);
  };
  collect([message["attachments"], message["blocks"]], 0);
  return texts
    .join("\n")
    .replaceAll(/<[^<>|]*\|([^<>]*)>/g, " $1 ")
    .replaceAll(/<((?:https?|mailto|tel):[^<>|]*)>/g, " $1 ");
}
/** Keys of attachments and blocks whose text people see. */
const SHOWN = new Set(["text", "title", "value", "pretext", "fallback", "footer"]);
