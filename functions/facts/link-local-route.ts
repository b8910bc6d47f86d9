import { z } from "zod";
import { defineDerivedFact, type Row } from "./fact.ts";
import { within } from "./ip-bits.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";
import type { Route } from "./route.ts";

/**
 * The routes to 169.254.0.0/16, and whether all of them were seen: what a listing of all routes shows, and one of those that someone looked for.
 */
const LinkLocalRoute = z.object({
  rows: z.array(
    z.object({
      line: z.int(),
      interface: z.string(),
      metric: z.int().optional(),
      /** Who made it ("dhcp"); left out where the listing does not tell. */
      protocol: z.string().optional(),
      /** What goes this way has a link-local address of the interface itself, not one of the host. */
      ownSource: z.boolean(),
    }),
  ),
  /** Metrics of the routes that reject such packets ("unreachable"). */
  rejected: z.array(z.object({ line: z.int(), metric: z.int().optional() })),
  /** What the kernel answered when it was asked for the route to such an address. */
  answers: z.array(
    z.object({
      line: z.int(),
      interface: z.string(),
      destination: z.string(),
      /** The source that the packet would have: an address of the node, or a link-local one. */
      source: z.string().optional(),
    }),
  ),
  /** A row where all of them were seen: it stands where the listing begins. */
  complete: z.array(z.object({ line: z.int() })),
});
type LinkLocalRoute = z.infer<typeof LinkLocalRoute>;

interface Sources {
  readonly route?: { rows: readonly (Route & Row)[] };
  readonly "route-search"?: { rows: readonly (Row & { pattern: string })[] };
  readonly "route-answer"?: { rows: readonly (Row & { destination: string; interface: string; preferredSource?: string; from?: string })[] };
}

const PREFIX = "169.254.0.0/16";

export const linkLocalRoute = defineDerivedFact<LinkLocalRoute>({
  id: "link-local-route",
  title: "Routes to 169.254.0.0/16, and whether all of them were seen",
  from: ["route", "route-search", "route-answer"],
  optional: ["route-search", "route-answer"],
  schema: LinkLocalRoute,
  derive(values, whole) {
    const { route, "route-search": search, "route-answer": answer } = values as Sources;
    // other tables are asked by rules of their own
    const all = (route?.rows ?? []).filter((row) => row.family === "ipv4" && row.prefix === PREFIX && row.table === "main");
    const rows = all.filter((row) => row.type === "unicast");
    // of two or three characters other lines have some too, and none of these lacks them
    const looked = (search?.rows ?? []).filter(({ pattern }) => pattern.length > 1 && PREFIX.startsWith(pattern));
    const first = route?.rows[0];
    const complete = whole.has("route") && first !== undefined ? [placed(first)] : looked.map((row) => placed(row));
    return {
      rows: rows.flatMap((row) =>
        row.interface === undefined
          ? []
          : [
              {
                ...placed(row),
                interface: row.interface,
                ownSource: row.source !== undefined && within(row.source, PREFIX),
                ...present({ metric: row.metric, protocol: row.protocol }),
              },
            ],
      ),
      rejected: all
        .filter((row) => ["unreachable", "blackhole", "prohibit"].includes(row.type))
        .map((row) => ({ ...placed(row), ...present({ metric: row.metric }) })),
      answers: (answer?.rows ?? []).flatMap((row) =>
        row.from !== undefined || !within(row.destination, PREFIX)
          ? []
          : [{ ...placed(row), interface: row.interface, destination: row.destination, ...present({ source: row.preferredSource }) }],
      ),
      complete,
    };
  },
});
