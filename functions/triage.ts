import { assembleAws } from "./aws/assembly.ts";
import { durableHandler } from "./durable/handler.ts";
import type { WorkEvent } from "./triage/ports.ts";
import { work } from "./triage/workflow.ts";

/**
 * The durable Lambda that does the work: a triage, files that somebody dropped, a click. Started by name from slack.ts and pager.ts; suspended, it costs nothing.
 */
const assembled = await assembleAws(process.env);

export const handler = durableHandler<WorkEvent>((event, durable) => work({ durable, ...assembled }, event));
