import type { Context } from "./context.ts";
import { rowsOf } from "./incident-row.ts";
import { unknownTarget } from "./mute.ts";
import { mutesOn } from "./muted.ts";
import { noteMessage } from "./note.ts";
import type { CommandRequest, Message } from "./ports.ts";
import { incidentsOn } from "./register.ts";
import { untilText } from "./report.ts";
import { isShownTo, standingOf } from "./standing.ts";

/** Lines of one message. */
const SHOWN = 10;
/** Incidents of one node that are looked at. */
const LOOKED_AT = 50;

/** `/netcheck history node1`: the last triages of a node, those of this channel and those that are the asker's business. Only the asker sees it. */
export async function historyMessage({ ports }: Pick<Context, "ports">, { requester, place }: CommandRequest, name: string): Promise<Message> {
  const resolution = await ports.targets.resolve(name);
  if (resolution.kind !== "found") return noteMessage("grey_question", unknownTarget(name, resolution));
  const { name: target, cluster } = resolution.target;
  const standing = await standingOf(await ports.config(), requester, (group) => ports.members(group));
  const registered = await incidentsOn(ports.store, cluster, target, LOOKED_AT);
  const incidents = await Promise.all(registered.map(({ incident }) => ports.store.incident(incident)));
  const shown = incidents.filter((one) => one !== undefined).filter((one) => one.thread?.channel === place.channel || isShownTo(standing, one));
  return {
    template: "history",
    data: {
      target,
      cluster,
      command: `${cluster}/${target}`,
      rows: await rowsOf(
        ports,
        shown.map(({ id }) => id),
        SHOWN,
      ),
      more: Math.max(0, shown.length - SHOWN),
      mutes: (await mutesOn(ports.store, cluster, target, ports.now())).slice(0, SHOWN).map(({ rule, by, until, reason }) => ({
        rule,
        by: by.id,
        until: untilText(until),
        reason,
      })),
    },
  };
}
