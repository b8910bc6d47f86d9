import type { Context } from "./context.ts";
import type { Message } from "./ports.ts";
import { precisions } from "./votes.ts";

/** Rules in one message. */
const SHOWN = 15;

/** `/netcheck rules`: how many rules there are, and of those that people voted on how often they named the right cause. */
export async function rulesMessage({ ports, catalogue }: Pick<Context, "ports" | "catalogue">): Promise<Message> {
  const voted = await precisions(ports.store);
  const rules = [...catalogue.rules.values()];
  return {
    template: "rules",
    data: {
      count: rules.length,
      causes: rules.filter(({ file }) => file.role === "cause").length,
      broken: catalogue.broken.rules.size,
      rows: voted.slice(0, SHOWN).map(({ rule, right, votes }) => ({
        rule,
        // a rule may have left the catalogue since
        title: catalogue.rules.get(rule)?.file.title ?? "no longer in the catalogue",
        right,
        votes,
        percent: Math.round((100 * right) / votes),
      })),
      more: Math.max(0, voted.length - SHOWN),
    },
  };
}
