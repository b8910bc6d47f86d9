import type { AllMiddlewareArgs, SlackViewMiddlewareArgs, ViewSubmitAction } from "@slack/bolt";
import type { Place, Work } from "../../triage/ports.ts";
import { actorIn } from "../person.ts";
import { incidentId, parseCommand, triageRequest } from "./netcheck-command.ts";

/** `callback_id` of the modal that asks for a node: templates/slack/ask.json. */
export const ASK = "ask";
const METADATA = /^([CDGUW][A-Z0-9_]{2,20}) (\d{1,16}\.\d{1,10}|-) (https?:\/\/\S{1,500}|-)$/;

/** The modal that asks for a node was sent off: what was typed counts, else what was chosen. Must answer within 3 seconds. */
export function askModal(work: Work) {
  return async function asked({ body, ack }: SlackViewMiddlewareArgs<ViewSubmitAction> & AllMiddlewareArgs): Promise<void> {
    const { values } = body.view.state;
    const typed = (values["typed"]?.["typed"]?.value ?? "").trim();
    const chosen = values["node"]?.["node"]?.selected_option?.value ?? "";
    // errors stand below an input that is there
    const at = "typed";
    if (typed === "" && chosen === "") return ack({ response_action: "errors", errors: { [at]: "Choose a node above, or type its name." } });
    const command = parseCommand(typed === "" ? chosen : typed);
    if (command.kind === "help")
      return ack({ response_action: "errors", errors: { [at]: command.problem === "" ? "Type the name of a node." : command.problem } });
    const place = placeIn(body.view.private_metadata);
    // a modal is sent off once: its id names the incident
    const request = triageRequest(command, { incident: incidentId(body.view.id), requester: actorIn(body), place: place ?? { channel: body.user.id } });
    await work.start(request.incident, { kind: "triage", request });
    await ack();
  };
}

/** What functions/triage/ask.ts wrote; undefined if it is something else: then the answer goes to the person. */
function placeIn(metadata: string): Place | undefined {
  const [, channel, thread, responseUrl] = METADATA.exec(metadata) ?? [];
  if (channel === undefined) return undefined;
  return {
    channel,
    ...(thread === "-" || thread === undefined ? {} : { thread }),
    ...(responseUrl === "-" || responseUrl === undefined ? {} : { responseUrl }),
  };
}
