import { sha256 } from "./audit.ts";
import type { Context, TriageResult } from "./context.ts";
import type { Actor, Page } from "./ports.ts";

/** Who asks for the triages of a page. No person: nothing can be whispered to it, and it approves nothing. */
export const PAGER: Actor = { id: "pager", team: "" };
/** Targets of one page that are examined by themselves; of more, somebody has to choose. */
const MAX_TARGETS = 5;

/** A page from a monitoring system: a triage for each node it names, in the channel that the configuration names for pages. */
export async function page({ durable, ports }: Context, { source, id, title, targets }: Page): Promise<TriageResult> {
  const { channel } = await durable.step("page-channel", async () => ({ channel: (await ports.config()).pages?.channel ?? null }));
  if (channel === null) {
    ports.log("error", "a page came, but netcheck.yaml names no channel for pages (pages.channel)", { run: id });
    return { outcome: "no-channel" };
  }
  for (const [index, target] of targets.slice(0, MAX_TARGETS).entries()) {
    const incident = `inc-${sha256(`${source}\n${id}\n${target}`).slice(0, 12)}`;
    await durable.step(`page-start-${index + 1}`, async () => {
      const because = targets.length > MAX_TARGETS ? `${title} (${targets.length} nodes; the first ${MAX_TARGETS} are examined)` : title;
      await ports.work.start(incident, { kind: "triage", request: { incident, target, requester: PAGER, place: { channel }, because } });
      return null;
    });
  }
  return { outcome: "started" };
}
