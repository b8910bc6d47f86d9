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
    }),
  ),
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
    const rows = (route?.rows ?? []).filter((row) => row.family === "ipv4" && row.type === "unicast" && row.prefix === PREFIX);
    // of two or three characters other lines have some too, and none of these lacks them
    const looked = (search?.rows ?? []).filter(({ pattern }) => pattern.length > 1 && PREFIX.startsWith(pattern));
    const first = route?.rows[0];
    const complete = whole.has("route") && first !== undefined ? [placed(first)] : looked.map((row) => placed(row));
    return {
      rows: rows.flatMap((row) =>
        row.interface === undefined ? [] : [{ ...placed(row), interface: row.interface, ...(row.metric === undefined ? {} : { metric: row.metric }) }],
      ),
      answers: (answer?.rows ?? []).flatMap((row) =>
        row.from !== undefined || !within(row.destination, PREFIX)
          ? []
          : [{ ...placed(row), interface: row.interface, destination: row.destination, ...present({ source: row.preferredSource }) }],
      ),
      complete,
    };
  },
});
