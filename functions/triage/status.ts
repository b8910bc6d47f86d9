import type { Context } from "./context.ts";
import { rowsOf } from "./incident-row.ts";
import { allMutes } from "./muted.ts";
import type { CommandRequest, Message, Ports } from "./ports.ts";
import { openIncidents } from "./register.ts";
import { untilText } from "./report.ts";
import { isShownTo, standingOf } from "./standing.ts";

/** Lines of one message. */
const SHOWN = 10;
/** Mutes among which those that are the person's business are looked for. */
const MOST_MUTES = 1000;
/** Open incidents that are looked at to find those of this channel. */
const LOOKED_AT = 100;

/** `/netcheck status`: what is open in this channel, and elsewhere what is the asker's business. Only the asker sees it. */
export async function statusMessage({ ports }: Pick<Context, "ports">, { requester, place }: CommandRequest): Promise<Message> {
  const now = ports.now();
  const standing = await standingOf(await ports.config(), requester, (group) => ports.members(group));
  const open = (await openIncidents(ports.store, now)).slice(0, LOOKED_AT);
  const here = new Set(
    await hereOnly(
      ports,
      open.map(({ incident }) => incident),
      place.channel,
    ),
  );
  const shown = open.filter((one) => here.has(one.incident) || isShownTo(standing, one));
  const mutes = (await allMutes(ports.store, now, MOST_MUTES)).filter((one) => isShownTo(standing, { ...one, requester: one.by }));
  return {
    template: "status",
    data: {
      rows: await rowsOf(
        ports,
        shown.map(({ incident }) => incident),
        SHOWN,
      ),
      more: Math.max(0, shown.length - SHOWN),
      mutes: mutes
        .slice(0, SHOWN)
        .map(({ rule, cluster, target, by, until, reason }) => ({ rule, cluster, target, by: by.id, until: untilText(until), reason })),
      mutesMore: Math.max(0, mutes.length - SHOWN),
    },
  };
}

async function hereOnly(ports: Pick<Ports, "store">, ids: readonly string[], channel: string): Promise<readonly string[]> {
  const incidents = await Promise.all(ids.map((id) => ports.store.incident(id)));
  return incidents.flatMap((one) => (one?.thread?.channel === channel ? [one.id] : []));
}
