import { fileURLToPath } from "node:url";
import { type HttpEvent, type HttpResponse, slackHandler } from "../../functions/slack/app.ts";
import { loadTemplates } from "../../functions/slack/render.ts";
import type { WorkEvent } from "../../functions/triage/ports.ts";
import { SECRET } from "./requests.ts";

const render = loadTemplates(fileURLToPath(new URL("../../templates/slack/", import.meta.url)));

export interface Started {
  readonly name: string;
  readonly event: WorkEvent;
}

/** An app of its own, as one Lambda machine has it. `fail`: how many starts fail. */
export function app(fail = 0): { send: (event: HttpEvent) => Promise<HttpResponse>; started: Started[] } {
  const started: Started[] = [];
  let left = fail;
  const work = {
    start: async (name: string, event: WorkEvent): Promise<void> => {
      left -= 1;
      if (left >= 0) throw new Error("no work today");
      started.push({ name, event });
    },
    answer: async (): Promise<boolean> => {
      throw new Error("the door answers no callback");
    },
  };
  return { send: slackHandler({ signingSecret: SECRET, work, render }), started };
}
