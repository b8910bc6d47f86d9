import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { filterValue, ipCommand } from "./ip-command.ts";
import { route } from "./route.ts";

/**
 * What was looked for among the routes, where only the matching ones were shown. The routes themselves are in the fact `route`; this one tells of which of them
 * all were seen.
 *
 *     ip route | grep 169.254          pattern "169.254"
 *     ip route show 169.254.0.0/16     pattern "169.254.0.0/16"
 *     ip route show match 169.254.169.254, which shows those to 169.254.0.0/16, too
 */
const RouteSearch = z.object({
  rows: z.array(
    z.object({
      line: z.int(),
      /** A text that every matching line holds; backslashes are taken off. */
      pattern: z.string(),
    }),
  ),
});

const LINK_LOCAL = /^169\.254\.\d{1,3}\.\d{1,3}(?:\/\d{1,2})?$/;
const PREFIX = /^(?:\d{1,3}\.){3}\d{1,3}\/\d{1,2}$/;

export const routeSearch = defineFact({
  id: "route-search",
  title: "What was looked for among the routes (pasted only)",
  commands: [],
  recognize(argv, search): View | undefined {
    const view = route.recognize(argv);
    if (view === undefined || view.format === "json") return undefined;
    const filters = ipCommand(argv)?.filters ?? [];
    const [only] = filters;
    // one prefix asked for, and nothing else of the main table left out
    const covering = filters.length === 2 && only === "match" && LINK_LOCAL.test(filters[1] ?? "") ? "169.254.0.0/16" : undefined;
    const asked = filters.length === 1 && only !== undefined && PREFIX.test(only) && filterValue(filters, "table") === undefined ? only : covering;
    const pattern = search !== undefined && view.complete ? search : search === undefined ? asked : undefined;
    return pattern === undefined ? undefined : { format: "search", complete: true, scope: pattern.replaceAll("\\", ""), rank: 1 };
  },
  schema: RouteSearch,
  parse({ text, view, truncated }) {
    const [first] = lines(text);
    const seen = first !== undefined && truncated !== true && view.scope !== "";
    return new UnparsedLines().with({ rows: seen ? [{ line: first.line, pattern: view.scope }] : [] });
  },
});
