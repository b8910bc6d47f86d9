import { mrkdwn, plain } from "./escape.ts";
import type { Rendered, Renderer } from "./render.ts";

/**
 * The help message drawn beforehand, when the bundle is made: so the acknowledging Lambda, which draws nothing else, starts without Handlebars and zod.
 * Plain JSON: `alone` as it is, `problem` with marks where the problem goes.
 */
export interface HelpPages {
  readonly alone: Rendered;
  readonly problem: Rendered;
}

// Of the private use area, and unescaped only in leaves that Slack shows literally: so what is left of it tells how the leaf is escaped.
const LITERAL = "<\uE000";
const ESCAPED = mrkdwn(LITERAL);

/** Draws the pages, which checks them against Block Kit. */
export function drawHelp(render: Renderer): HelpPages {
  const draw = (problem: string) => render({ template: "help", data: { problem } });
  return { alone: draw(""), problem: draw(LITERAL) };
}

/** A renderer of the template "help" only; what it draws is what the one that drew the pages would. A problem is a sentence, far from any limit. */
export function helpRenderer(pages: HelpPages): Renderer {
  return ({ template, data }) => {
    if (template !== "help") throw new Error(`only the help is drawn here, not "${template}"`);
    const { problem } = data;
    if (typeof problem !== "string" || problem === "") return pages.alone;
    const filled = (text: string) => text.replaceAll(ESCAPED, () => mrkdwn(problem)).replaceAll(LITERAL, () => plain(problem));
    // leaf by leaf: the structure is parsed already
    return JSON.parse(JSON.stringify(pages.problem), (_key, value: unknown) => (typeof value === "string" ? filled(value) : value)) as Rendered;
  };
}
